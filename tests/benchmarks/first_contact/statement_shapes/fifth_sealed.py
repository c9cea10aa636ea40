"""The fifth sealed half: twelve layouts that are read only to measure; nobody who builds a reader looks at them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from functools import partial

from benchmarks.first_contact.statement_shapes.drawing import (
    Cells,
    Column,
    DrawShape,
    Entry,
    Inventor,
    Sheet,
    Statement,
    SumKind,
    Table,
    TrueRow,
    balanced,
    cycle_of,
    figure,
    invent_both_ways,
    invent_cents,
    month_of,
    moved,
    name_shapes,
    print_after,
    seeded,
    total,
)

_HALF = "fifth sealed"
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_MOIS = (
    "janvier", "février", "mars", "avril", "mai", "juin", "juillet", "août", "septembre", "octobre", "novembre", "décembre",
)  # fmt: skip
_MESES = ("JAN", "FEV", "MAR", "ABR", "MAI", "JUN", "JUL", "AGO", "SET", "OUT", "NOV", "DEZ")


def _american(day: date) -> str:
    return f"{_MONTHS[day.month - 1]} {day.day}, {day.year}"


def _euros(amount: Decimal) -> str:
    return figure(amount, ".", ",")


def _sided(amount: Decimal, write: Callable[[Decimal], str] = figure) -> dict[str, str]:
    """Return an amount in the column of its direction."""
    return {"in" if amount > 0 else "out": write(abs(amount))}


def _note_all(sheet: Sheet, opening: Decimal, entries: Sequence[Entry], account: int = 0) -> None:
    """Note the four sums of a summary."""
    sheet.note("opening", opening, account)
    sheet.note("deposits", total(entries, 1), account)
    sheet.note("withdrawals", -total(entries, -1), account)
    sheet.note("closing", opening + total(entries), account)


_HOLDER_SPENDS = (
    "CASCADE AIRWAYS", "THE OYSTER LOFT", "HARBOR CITY HARDWARE", "BIRCH STREET BISTRO", "METRO GARAGE 0417",
    "WILLOWBROOK ORCHARDS", "SUMMIT TRAIL GEAR",
)  # fmt: skip
_HOLDER_INCOME = ("MOBILE PAYMENT - THANK YOU", "SUMMIT TRAIL GEAR CREDIT", "AUTOPAY PAYMENT - THANK YOU")
_HOLDER_MORE = ("PORTLAND OR", "SEATTLE WA", "+1 503 555 0417", "MERCHANDISE")


def _card_of_two_holders(seed: int, later: int) -> Statement:
    """Draw an American charge card: credits first, then each holder's charges with a total of their own."""
    house, rng = seeded(_HALF, "card of two holders", seed, later)
    bank = (
        "Sterling Peak Platinum Card",
        "Blue Anchor Everyday Card",
        "Evergreen Business Card",
        "Mariner Preferred Card",
    )
    start, end = cycle_of(2024, (3, 12, 8, 1)[seed], (17, 6, 23, 11)[seed], later)
    sheet = Sheet(house, size=9.0, width=612, height=792)
    opening = -invent_cents(rng, 60_000, 420_000)
    maker = Inventor(rng, _HOLDER_SPENDS, _HOLDER_INCOME, _HOLDER_MORE, 0.6, income=0.12, most_in=150_000)
    entries = invent_both_ways(maker, (start, end), rng.randint(26, 48), opening)
    repaid, charges = ([each for each in entries if each.amount * sign > 0] for sign in (1, -1))
    own = [each for each in charges if rng.random() < 0.6] or charges[:1]
    others = [each for each in charges if each not in own]
    closing = entries[-1].balance
    star = "*" if seed % 2 else ""
    sheet.line(50, bank[seed], size=17, bold=True)
    sheet.line(50, "HARRIET J LOCKWOOD")
    sheet.line(50, f"Closing Date {end:%m/%d/%y}")
    sheet.line(50, f"Account Ending 4-{house.randint(10_000, 99_999)}")
    sheet.down(10)
    top = sheet.y
    for label, text in (
        ("Previous Balance", f"${figure(-opening)}"),
        ("Payments/Credits", f"-${figure(total(repaid))}"),
        ("New Charges", f"+${figure(-total(charges))}"),
        ("Fees", "+$0.00"),
        ("Interest Charged", "+$0.00"),
        ("New Balance", f"{'-' if closing > 0 else ''}${figure(abs(closing))}"),
    ):
        sheet.pair(50, label, 270, text, bold=label == "New Balance")
    _note_all(sheet, opening, entries)
    after, sheet.y = sheet.y, top
    for label, text in (
        ("Minimum Payment Due", f"${figure(invent_cents(rng, 3500, 9900))}"),
        ("Payment Due Date", f"{end + timedelta(days=25):%m/%d/%y}"),
        ("Credit Limit", "$15,000.00"),
        ("Days in Billing Period", str((end - start).days + 1)),
    ):
        sheet.pair(330, label, 560, text)
    sheet.y = after + 10
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Date",)),
            Column("text", 125, "l", ("Description",)),
            Column("amount", 560, "r", ("Amount",)),
        ),
    )
    sections: tuple[tuple[str, str, SumKind, Sequence[Entry]], ...] = (
        ("Payments and Credits", "Total Payments and Credits", "deposits", repaid),
        ("New Charges - HARRIET J LOCKWOOD", "Total for HARRIET J LOCKWOOD", "subtotal", own),
        ("New Charges - OWEN P LOCKWOOD", "Total for OWEN P LOCKWOOD", "subtotal", others),
    )
    for title, label, kind, some in sections:
        if not some:
            continue
        sheet.down(10)
        sheet.need(sheet.step * 8)
        sheet.line(50, title, size=11, bold=True)
        sheet.running_head = partial(sheet.line, 50, f"{title} (continued)", bold=True)
        Table(
            sheet,
            columns,
            lambda each: {
                "date": f"{each.day:%m/%d/%y}{star if each.amount > 0 else ''}",
                "amount": f"{'-' if each.amount > 0 else ''}${figure(abs(each.amount))}",
            },
            extent=(50, 562),
        ).print(some)
        sheet.running_head = None
        sheet.write(50, label, bold=True)
        sheet.write(columns[2].x, f"{'-' if total(some) > 0 else ''}${figure(abs(total(some)))}", "r", bold=True)
        sheet.note(kind, total(some))
        sheet.down(sheet.step)
    sheet.down(8)
    if star:
        sheet.line(50, "* Indicates posting date", size=7)
    sheet.line(50, "Annual Percentage Rate for purchases 24.99% (v). Customer care 1-800-555-0417.", size=7)
    return sheet.finish(rng)


_BUSINESS_OUT = (
    "Basislastschrift", "Überweisungsauftrag", "Firmenlastschrift", "Kartenzahlung girocard", "Dauerauftrag", "Sammelüberweisung",
)  # fmt: skip
_BUSINESS_IN = ("Überweisungsgutschrift", "Scheckeinreichung E.v.", "Echtzeit-Überweisungsgutschrift")
_BUSINESS_WHO = (
    "Holzgroßhandel Mühlbauer KG", "Finanzamt Traunstein", "Kfz-Werkstatt Oberhuber", "Gemeinde Achtal", "Elektro Sandmeier GmbH",
)  # fmt: skip
_BUSINESS_MORE = (
    "RE 2024-0417 KD 88120", "EREF: 0417-8841-AB CRED: DE98ZZZ0417", "IBAN: DE19 7016 9543 0000 4177 12", "Abschlag Bauvorhaben Kirchgasse",
)  # fmt: skip


def _carried_to_the_next_leaf(seed: int, later: int) -> Statement:
    """Draw a German business account: days without a year, S and H, balances carried from leaf to leaf."""
    house, rng = seeded(_HALF, "carried to the next leaf", seed, later)
    bank = ("Volksbank Achtal eG", "Raiffeisenbank Weilerbach", "VR-Bank Oberes Lechtal", "Genossenschaftsbank Sulzgau")
    first, last = cycle_of(2023, (4, 12, 10, 12)[seed], (30, 15, 12, 22)[seed], later + 1)
    sheet = Sheet(house, size=house.choice((8.5, 9.0)), font="cour" if seed == 2 else "")
    opening = -invent_cents(rng, 100_000, 400_000) if seed == 3 else invent_cents(rng, 300_000, 2_000_000)
    maker = Inventor(rng, _BUSINESS_OUT, _BUSINESS_IN, most_out=180_000, most_in=500_000, lag=1)
    entries = [
        replace(each, lines=(*each.lines, rng.choice(_BUSINESS_WHO), *rng.sample(_BUSINESS_MORE, rng.randint(0, 2))))
        for each in invent_both_ways(maker, (first, last), rng.randint(22, 44), opening)
    ]
    closing = entries[-1].balance

    def sided(amount: Decimal) -> str:
        return f"{_euros(abs(amount))} {'S' if amount < 0 else 'H'}"

    sheet.line(45, bank[seed], size=16, bold=True)
    sheet.down(6)
    sheet.write(300, f"Kontonummer {house.randint(1_000_000, 9_999_999)}")
    sheet.line(45, "Zimmerei Rupert Anzinger")
    sheet.write(300, "Geschäftskonto, EUR-Konto")
    sheet.line(45, "Bahnhofstraße 17, 83417 Achtal")
    sheet.line(300, f"Kontoauszug Nr. {last.month}/{last.year}", bold=True)
    sheet.down(14)
    columns = moved(
        house,
        (
            Column("date", 45, "l", ("Bu-Tag",)),
            Column("value", 90, "l", ("Wert",)),
            Column("text", 135, "l", ("Vorgang",)),
            Column("amount", 550, "r", ("Betrag in EUR",) if seed % 2 else ("",)),
        ),
    )
    table = Table(
        sheet,
        columns,
        lambda each: {"date": f"{each.day:%d.%m.}", "value": f"{each.value_day:%d.%m.}", "amount": sided(each.amount)},
        carry_out=lambda amount: {"text": f"Übertrag auf Blatt {sheet.number + 1}", "amount": sided(amount)},
        carry_in=lambda amount: {"text": f"Übertrag von Blatt {sheet.number - 1}", "amount": sided(amount)},
    )
    sheet.note("opening", opening)
    before = first - timedelta(days=1)
    print_after(table, {"text": f"alter Kontostand vom {before:%d.%m.%Y}", "amount": sided(opening)}, entries)
    sheet.need(sheet.step * 2)
    sheet.down(4)
    sheet.note("closing", closing)
    table.row({"text": f"neuer Kontostand vom {last:%d.%m.%Y}", "amount": sided(closing)}, bold=True)
    sheet.down(sheet.step * 1.5)
    sheet.line(
        45,
        "Einlagen sind durch die BVR Institutssicherung geschützt. Rechnungsabschlüsse gelten als genehmigt.",
        size=7,
    )
    sheet.footer = lambda number, count: f"Blatt {number} von {count}"
    return sheet.finish(rng)


_FRENCH_OUT = (
    "PRLV SEPA ENERGIE DU MORVAN", "ECH PRET 0417 88120", "FACTURE CARTE BOUCHERIE DULAC", "VIR SEPA EMIS LOYER MARCEAU",
    "RETRAIT DAB PLACE CARNOT", "COTISATION FORMULE COMPTE", "CHEQUE 0041771",
)  # fmt: skip
_FRENCH_IN = ("VIR SEPA RECU TRAITEMENT MAIRIE", "REMISE CHEQUE 8841", "VIR RECU MUTUELLE DES ALPES")
_FRENCH_MORE = (
    "ECH/{0:%d%m%y} ID EMETTEUR/FR41ZZZ0417",
    "MDT/AB-8841-20",
    "REF/FACTURE 2208",
    "DU {0:%d%m%y} CARTE 4974XXXX0417",
)


def _credit_balance_in_words(seed: int, later: int) -> Statement:
    """Draw a French cheque account: days with a dot, debit and credit, balances named and printed in a side's column."""
    house, rng = seeded(_HALF, "credit balance in words", seed, later)
    bank = ("Banque de la Saône", "Crédit Fluvial", "BPC Rives de Loire", "Société Bancaire du Ponant")
    first, last = cycle_of(2024, (4, 1, 9, 12)[seed], (23, 10, 30, 19)[seed], later)
    sheet = Sheet(house, size=house.choice((8.5, 9.0)))
    opening = -invent_cents(rng, 10_000, 60_000) if seed == 3 else invent_cents(rng, 60_000, 300_000)
    maker = Inventor(rng, _FRENCH_OUT, _FRENCH_IN, _FRENCH_MORE, 0.5, most_in=210_000, lag=1)
    entries = [
        replace(each, lines=tuple(text.format(each.day) for text in each.lines))
        for each in invent_both_ways(maker, (first, last), rng.randint(22, 46), opening)
    ]
    closing = entries[-1].balance

    def francs(amount: Decimal) -> str:
        return figure(amount, " " if seed % 2 == 0 else ".", ",")

    def named(amount: Decimal, day: date) -> Cells:
        label = "SOLDE CRÉDITEUR" if amount > 0 else "SOLDE DÉBITEUR"
        return {"text": f"{label} AU {day:%d.%m.%Y}", **_sided(amount, francs)}

    sheet.line(45, bank[seed], size=17, bold=True)
    sheet.down(6)
    sheet.line(45, "RELEVÉ DE COMPTE CHÈQUES", size=12, bold=True)
    sheet.line(
        45,
        f"du {first.day} {_MOIS[first.month - 1]} {first.year} au {last.day} {_MOIS[last.month - 1]} {last.year}",
    )
    sheet.line(45, f"RIB : 30004 00417 {house.randint(10_000_000, 99_999_999)} 41    IBAN : FR76 3000 4004 1788")
    sheet.down(14)
    columns = moved(
        house,
        (
            Column("date", 45, "l", ("Date",)),
            Column("text", 85, "l", ("Nature des opérations",)),
            Column("value", 355, "l", ("Valeur",)),
            Column("out", 475, "r", ("Débit",)),
            Column("in", 550, "r", ("Crédit",)),
        ),
    )
    table = Table(
        sheet,
        columns,
        lambda each: {"date": f"{each.day:%d.%m}", "value": f"{each.value_day:%d.%m}", **_sided(each.amount, francs)},
        row_rule=(45, 550) if seed == 2 else None,
    )
    sheet.note("opening", opening)
    print_after(table, named(opening, first - timedelta(days=1)), entries)
    sheet.need(sheet.step * 4)
    sheet.down(4)
    table.row(
        {"text": "TOTAL DES OPÉRATIONS", "out": francs(-total(entries, -1)), "in": francs(total(entries, 1))}, bold=True
    )
    sheet.note("withdrawals", -total(entries, -1))
    sheet.note("deposits", total(entries, 1))
    sheet.down(sheet.step)
    table.row(named(closing, last), bold=True)
    sheet.note("closing", closing)
    sheet.down(sheet.step * 2)
    sheet.line(45, "Taux annuel effectif global du découvert : 16,40 %. Montant maximum autorisé : 500,00 EUR.", size=7)
    sheet.footer = lambda number, count: f"P. {number}/{count}"
    return sheet.finish(rng)


_DUTCH_TEXTS = {
    "Bakkerij Van Loon UTRECHT": "ba", "Polder Energie BV": "ei", "Huur Stichting Waterwonen": "db", "Geldautomaat Neude": "ga",
    "Sporthuis Kampen": "ba", "Gemeente Vechtdal belastingen": "ei", "Apotheek De Linde": "ba", "Salaris Wijnberg Techniek": "sb",
    "A. de Bruin verjaardag": "cb", "Toeslagen kantoor": "cb",
}  # fmt: skip
_DUTCH_IN = ("sb", "cb")
_DUTCH_MORE = (
    "NL41 RVEC 0417 8812 03",
    "Machtiging 8841-20 Incassant NL99ZZZ0417",
    "Betaalpas 4417 contactloos",
    "Kenmerk 0417 2208 8841",
)


def _codes_and_interest_days(seed: int, later: int) -> Statement:
    """Draw a Dutch current account: two days without a year, a code, debit and credit, a strip of four sums."""
    house, rng = seeded(_HALF, "codes and interest days", seed, later)
    bank = ("Vechtbank", "Regiobank Salland", "Coöperatieve Bank Waterland", "De Zuiderbank")
    first, last = month_of(2023, (5, 12, 8, 11)[seed], later)
    sheet = Sheet(house, size=house.choice((8.5, 9.0)))
    opening = invent_cents(rng, 50_000, 300_000)
    spends = [text for text, code in _DUTCH_TEXTS.items() if code not in _DUTCH_IN]
    incomes = [text for text, code in _DUTCH_TEXTS.items() if code in _DUTCH_IN]
    maker = Inventor(rng, spends, incomes, _DUTCH_MORE, 0.7, most_in=260_000, lag=1)
    entries = invent_both_ways(maker, (first, last), rng.randint(22, 46), opening)
    closing = entries[-1].balance
    plus = " +" if seed >= 2 else ""
    sheet.line(45, bank[seed], size=17, bold=True)
    sheet.line(45, "Rekeningafschrift", size=12)
    sheet.line(45, f"Periode {first:%d-%m-%Y} t/m {last:%d-%m-%Y}    IBAN NL{house.randint(10, 99)} RVEC 0417 8812 03")
    sheet.down(12)
    for number, (label, amount) in enumerate(
        (
            ("Beginsaldo", opening),
            ("Totaal af (debet)", -total(entries, -1)),
            ("Totaal bij (credit)", total(entries, 1)),
            ("Eindsaldo", closing),
        )
    ):
        sheet.write(45 + 130 * number, label, size=8)
        mark = plus if number in {0, 3} else ""
        sheet.write(45 + 130 * number, f"€ {_euros(amount)}{mark}", bold=True, y=sheet.y + 13)
    _note_all(sheet, opening, entries)
    sheet.down(38)
    columns = moved(
        house,
        (
            Column("date", 45, "l", ("Datum", "verwerkt")),
            Column("value", 92, "l", ("Rente-", "datum")),
            Column("code", 138, "l", ("Code",)),
            Column("text", 170, "l", ("Naam / Omschrijving",)),
            Column("out", 465, "r", ("Bedrag af", "(debet)")),
            Column("in", 550, "r", ("Bedrag bij", "(credit)")),
        ),
    )
    Table(
        sheet,
        columns,
        lambda each: {
            "date": f"{each.day:%d-%m}", "value": f"{each.value_day:%d-%m}", "code": _DUTCH_TEXTS[each.lines[0]],
            **_sided(each.amount, _euros),
        },
        row_rule=(45, 550) if seed == 3 else None,
    ).print(entries)  # fmt: skip
    sheet.need(sheet.step * 3)
    sheet.down(10)
    sheet.line(
        45,
        "ba = betaalautomaat  cb = crediteurenbetaling  db = diverse boekingen  ei = euro-incasso  ga = geldautomaat",
        size=7,
    )
    sheet.footer = lambda number, count: f"Blad {number} van {count}"
    return sheet.finish(rng)


_POINTS_OUT = (
    "MALABAR GROCERS KOCHI IN", "COROMANDEL AIR CHENNAI IN", "TAMARIND TREE DINING PUNE IN", "ASHOKA PETROLEUM 0417",
    "LOTUS PHARMACY BENGALURU", "NILGIRI BOOK HOUSE OOTY", "FUEL SURCHARGE WAIVER TAX",
)  # fmt: skip
_POINTS_ABROAD = ("PALM JETTY HOTEL DUBAI", "ORCHID STREET CAFE SINGAPORE", "CLOUDVAULT STORAGE DUBLIN")
_POINTS_IN = ("NETBANKING TRANSFER (Ref# 00417228)", "MALABAR GROCERS REFUND", "AUTOPAY - THANK YOU")


def _points_and_total_dues(seed: int, later: int) -> Statement:
    """Draw an Indian card: reward points, Cr behind credits, purchases abroad apart, and total dues in a strip."""
    house, rng = seeded(_HALF, "points and total dues", seed, later)
    bank = ("Malabar Regalia Card", "Coromandel Bank Credit Card", "Aravalli Platinum", "Brahmaputra Rewards")
    start, end = cycle_of(2024, (4, 1, 7, 11)[seed], (18, 12, 24, 8)[seed], later)
    sheet = Sheet(house, size=8.5)
    opening = -invent_cents(rng, 500_000, 9_000_000)
    maker = Inventor(rng, _POINTS_OUT + _POINTS_ABROAD, _POINTS_IN, income=0.15, most_out=1_200_000, most_in=2_500_000)
    while True:
        entries = invent_both_ways(maker, (start, end), rng.randint(22, 40), opening)
        abroad = [each for each in entries if each.lines[0] in _POINTS_ABROAD]
        if abroad:
            break
    abroad = [
        replace(each, marks=(f"{('USD', 'SGD')[len(each.lines[0]) % 2]} {figure(-each.amount / 80)}",))
        for each in abroad
    ]
    domestic = [each for each in entries if each.lines[0] not in _POINTS_ABROAD]
    closing = entries[-1].balance
    times = {
        id(each): f" {rng.randint(8, 22):02}:{rng.randint(0, 59):02}:{rng.randint(0, 59):02}"
        for each in domestic + abroad
    }

    def rupees(amount: Decimal, mark: str = " Cr") -> str:
        return figure(abs(amount), indian=True) + (mark if amount > 0 else "")

    sheet.line(45, bank[seed], size=17, bold=True)
    sheet.line(45, f"Statement for card XXXX XXXX XXXX {house.randint(1000, 9999)}", size=10)
    sheet.line(45, f"Statement Date: {end:%d/%m/%Y}")
    sheet.down(8)
    for x, label, text in (
        (45, "Payment Due Date", f"{end + timedelta(days=20):%d/%m/%Y}"),
        (205, "Total Dues", rupees(closing)),
        (365, "Minimum Amount Due", figure(invent_cents(rng, 50_000, 300_000), indian=True)),
    ):
        sheet.write(x, label, bold=True)
        sheet.write(x, text, y=sheet.y + 13)
    sheet.note("due", closing)
    sheet.down(40)
    sheet.line(45, "Account Summary", bold=True)
    for number, (label, text) in enumerate(
        (
            ("Opening Balance", rupees(opening)),
            ("Payment/ Credits", rupees(total(entries, 1), "")),
            ("Purchase/ Debits", rupees(total(entries, -1))),
            ("Finance Charges", "0.00"),
            ("Total Dues", rupees(closing)),
        )
    ):
        sheet.write(125 + 105 * number, label, "r", size=8)
        sheet.write(125 + 105 * number, text, "r", y=sheet.y + 13)
    _note_all(sheet, opening, entries)
    sheet.down(38)
    columns = moved(
        house,
        (
            Column("date", 45, "l", ("Date",)),
            Column("text", 150, "l", ("Transaction Description",)),
            Column("mark", 400, "r", ("",)),
            Column("points", 460, "r", ("Reward", "Points")),
            Column("amount", 550, "r", ("Amount", "(in Rs.)")),
        ),
    )

    def cells(each: Entry) -> Cells:
        time = times[id(each)] if seed % 2 == 0 else ""
        points = str(int(-each.amount) // 150) if each.amount < 0 else ""
        return {"date": f"{each.day:%d/%m/%Y}{time}", "points": points, "amount": rupees(each.amount)}

    for title, some in (("Domestic Transactions", domestic), ("International Transactions", abroad)):
        sheet.need(sheet.step * 8)
        sheet.line(45, title, size=11, bold=True)
        foreign = replace(columns[2], head=("Currency", "Amount") if some is abroad else ("",))
        Table(sheet, (*columns[:2], foreign, *columns[3:]), cells).print(some)
        sheet.down(10)
    sheet.need(40)
    sheet.line(
        45,
        "Reward points: opening 4,417  earned 812  disbursed 0  closing 5,229. Finance charges at 3.6% per month.",
        size=7,
    )
    return sheet.finish(rng)


_PIX_OUT = (
    ("Transferência enviada pelo Pix", "Jurema Castanho - 417.882-0 Banco Serra"),
    ("Compra no débito", "Mercado Sabiá"),
    ("Pagamento de boleto efetuado", "Condomínio Edifício Aroeira"),
    ("Compra no débito", "Farmácia Jatobá"),
    ("Pagamento de fatura", "Cartão final 0417"),
)
_PIX_IN = (
    ("Transferência recebida pelo Pix", "Otávio Bandeira Reis - 088.120-4"),
    ("Transferência Recebida", "Editora Mandacaru Ltda"),
    ("Reembolso recebido pelo Pix", "Mercado Sabiá"),
)


def _days_of_ins_and_outs(seed: int, later: int) -> Statement:
    """Draw a Brazilian digital account: each day's incoming and outgoing money under headings with their totals."""
    house, rng = seeded(_HALF, "days of ins and outs", seed, later)
    bank = ("Conta Sabiá", "Banco Digital Jacarandá", "Cajuí Pagamentos", "Conta Araponga")
    first, last = month_of(2024, (4, 12, 8, 2)[seed], later)
    sheet = Sheet(house, size=9.0, font="helv")
    opening = invent_cents(rng, 40_000, 300_000)
    names = dict((*_PIX_OUT, *_PIX_IN))
    maker = Inventor(rng, [each[0] for each in _PIX_OUT], [each[0] for each in _PIX_IN], income=0.35, most_in=120_000)
    entries = [
        replace(each, lines=(*each.lines, names[each.lines[0]]))
        for each in invent_both_ways(maker, (first, last), rng.randint(18, 34), opening)
    ]
    closing = entries[-1].balance
    sheet.line(50, bank[seed], size=17, bold=True)
    sheet.line(
        50,
        f"{first.day:02} {_MESES[first.month - 1]} {first.year} a {last.day:02} {_MESES[last.month - 1]} {last.year}",
    )
    sheet.line(50, f"Agência 0001  Conta {house.randint(1_000_000, 9_999_999)}-4  Valores em R$")
    sheet.down(14)
    for label, text in (
        ("Saldo inicial", _euros(opening)),
        ("Rendimento líquido", "+0,00"),
        ("Total de entradas", f"+{_euros(total(entries, 1))}"),
        ("Total de saídas", f"-{_euros(-total(entries, -1))}"),
        ("Saldo final do período", _euros(closing)),
    ):
        sheet.pair(50, label, 300, text, bold=label.startswith("Saldo final"))
    _note_all(sheet, opening, entries)
    sheet.down(14)
    sheet.line(50, "Movimentações", size=12, bold=True)
    sheet.down(4)
    for day in sorted({each.day for each in entries}):
        sheet.need(sheet.step * 3.5)
        shown = f"{day.day:02} {_MESES[day.month - 1]} {day.year}"
        for label, sign in (("Total de entradas", 1), ("Total de saídas", -1)):
            some = [each for each in entries if each.day == day and each.amount * sign > 0]
            if some:
                _print_direction(sheet, shown, label, some)
                shown = ""
        sheet.down(4)
    sheet.footer = lambda number, count: f"{number} de {count}"
    sheet.foot_x = 520
    return sheet.finish(rng)


def _print_direction(sheet: Sheet, day: str, label: str, entries: Sequence[Entry]) -> None:
    sheet.need(sheet.step * 3.5)
    amount = total(entries)
    sheet.write(50, day, bold=True)
    sheet.write(135, label, bold=True)
    sheet.line(545, f"{'+' if amount > 0 else '-'} {_euros(abs(amount))}", "r", bold=True)
    sheet.note("subtotal", amount)
    for each in entries:
        sheet.need(sheet.step * 2)
        sheet.rows.append(TrueRow(each.day.isoformat(), " ".join(each.lines), each.amount, None, sheet.number))
        sheet.write(135, each.lines[0])
        sheet.write(545, _euros(abs(each.amount)), "r")
        sheet.down(sheet.size * 1.25)
        sheet.line(135, each.lines[1])


_ACTIVITY_OUT = (
    "Contactless Interac purchase - 0417 PRAIRIE FOODS", "Online Banking payment - 8841 BOREAL HYDRO", "ATM withdrawal - AB041788",
    "Monthly fee", "Misc Payment CONDO FEES WESTMOUNT", "Interac purchase - 2208 LOON LAKE GAS",
)  # fmt: skip
_ACTIVITY_IN = (
    "Payroll Deposit TAMARACK SCHOOLS",
    "e-Transfer received Joelle Arsenault",
    "Mobile cheque deposit - 0417",
)


def _activity_once_a_day(seed: int, later: int) -> Statement:
    """Draw, as a scan, a Canadian chequing account: the date and the balance once for each day."""
    house, rng = seeded(_HALF, "activity once a day", seed, later)
    bank = ("Royal Tamarack Bank", "Boreal Trust", "Bank of Assiniboia", "Laurentide Savings")
    first, last = cycle_of(2023, (3, 12, 7, 10)[seed], (28, 16, 20, 5)[seed], later + 1)
    sheet = Sheet(house, size=10.0, width=612, height=792, font="helv")
    opening = invent_cents(rng, 60_000, 400_000)
    maker = Inventor(rng, _ACTIVITY_OUT, _ACTIVITY_IN, most_in=230_000)
    entries = invent_both_ways(maker, (first, last), rng.randint(16, 32), opening)
    closing = entries[-1].balance
    sheet.line(45, bank[seed], size=17, bold=True)
    sheet.line(45, "Your personal chequing account statement", size=12)
    sheet.line(45, f"From {_american(first)} to {_american(last)}")
    sheet.line(45, f"Account number 0417-{house.randint(1_000_000, 9_999_999)}")
    sheet.down(12)
    sheet.line(45, "Summary of your account for this period", bold=True)
    for label, sign, amount in (
        (f"Your opening balance on {_american(first - timedelta(days=1))}", "", opening),
        ("Total deposits into your account", "+ ", total(entries, 1)),
        ("Total withdrawals from your account", "- ", -total(entries, -1)),
        (f"Your closing balance on {_american(last)}", "= ", closing),
    ):
        sheet.pair(45, label, 400, f"{sign}${figure(amount)}" if sign != "+ " else f"+ {figure(amount)}")
    _note_all(sheet, opening, entries)
    sheet.down(16)
    sheet.line(45, "Details of your account activity", size=12, bold=True)
    columns = moved(
        house,
        (
            Column("date", 45, "l", ("Date",)),
            Column("text", 95, "l", ("Description",)),
            Column("out", 415, "r", ("Withdrawals ($)",)),
            Column("in", 490, "r", ("Deposits ($)",)),
            Column("balance", 568, "r", ("Balance ($)",)),
        ),
        2.0,
    )
    table = Table(
        sheet,
        columns,
        lambda each: {"date": f"{each.day.day} {each.day:%b}", "balance": figure(each.balance), **_sided(each.amount)},
        is_date_once=True,
        is_balance_once=True,
        extent=(45, 570),
    )
    sheet.note("opening", opening)
    print_after(table, {"text": "Opening Balance", "balance": figure(opening)}, entries)
    sheet.note("closing", closing)
    table.row({"text": "Closing Balance", "balance": f"${figure(closing)}"}, bold=True)
    return sheet.finish(rng, scan=True)


_TOKYO_OUT = (
    "ATM Shinagawa", "Account transfer KANSAI WATER", "Debit card TSUBAKI STORE", "Transfer to HAYASHI ESTATE", "Account transfer MIYAKO GAS",
)  # fmt: skip
_TOKYO_IN = ("Transfer from ASAHINA TRADING", "Interest", "Cash deposit ATM Ueno")
_DOLLARS_OUT = ("Transfer to yen savings", "Outgoing remittance OAKHURST COLLEGE")
_DOLLARS_IN = ("Exchange from yen savings", "Incoming remittance J SATO")


def _yen_and_dollars(seed: int, later: int) -> Statement:
    """Draw a Japanese bank's statement in English: a yen account without decimals, and a dollar account after it."""
    house, rng = seeded(_HALF, "yen and dollars", seed, later)
    bank = ("Musashino Trust Bank", "Seto International Bank", "Hokuriku First Bank", "Kamogawa Bank")
    first, last = month_of(2024, (4, 12, 9, 6)[seed], later)
    sheet = Sheet(house, size=9.0)

    def day_of(when: date) -> str:
        return f"{when:%Y/%m/%d}" if seed % 2 == 0 else f"{when:%Y.%m.%d}"

    def yen(amount: Decimal) -> str:
        return figure(amount)[:-3]

    sheet.line(45, bank[seed], size=17, bold=True)
    sheet.line(45, "Combined Account Statement", size=12)
    sheet.line(
        45, f"Period {day_of(first)} - {day_of(last)}    Branch 041    Customer {house.randint(100_000, 999_999)}"
    )
    sheet.down(10)
    columns = moved(
        house,
        (
            Column("date", 45, "l", ("Date",)),
            Column("text", 115, "l", ("Description",)),
            Column("out", 370, "r", ("Withdrawal",) if seed < 2 else ("Payment",)),
            Column("in", 460, "r", ("Deposit",)),
            Column("balance", 550, "r", ("Balance",)),
        ),
    )
    for account, (title, currency, write, texts, least, count) in enumerate(
        (
            ("Yen Ordinary Deposit (JPY)", "JPY", yen, (_TOKYO_OUT, _TOKYO_IN), 200_000, (16, 30)),
            ("US Dollar Savings (USD)", "USD", figure, (_DOLLARS_OUT, _DOLLARS_IN), 1_000, (5, 9)),
        )
    ):
        maker = Inventor(rng, *texts, income=0.4, most_out=40_000, most_in=120_000)
        opening = Decimal(rng.randint(least, least * 8)) if account == 0 else invent_cents(rng, 300_000, 900_000)
        drawn = invent_both_ways(maker, (first, last), rng.randint(*count), opening)
        if currency == "JPY":
            drawn = balanced([replace(each, amount=each.amount * 100) for each in drawn], opening)
            opening += max(Decimal(0), 1000 - min(each.balance for each in drawn))
            drawn = balanced(drawn, opening)
        closing = drawn[-1].balance
        sheet.down(10)
        sheet.need(sheet.step * 9)
        sheet.line(45, title, size=11, bold=True)
        sheet.down(4)
        table = Table(
            sheet,
            columns,
            lambda each, write=write: {
                "date": day_of(each.day), "balance": write(each.balance), **_sided(each.amount, write),
            },
            currency=currency,
            account=account,
        )  # fmt: skip
        sheet.note("opening", opening, account)
        print_after(table, {"text": "Balance brought forward", "balance": write(opening)}, drawn)
        table.row({"text": "Total", "out": write(-total(drawn, -1)), "in": write(total(drawn, 1))}, bold=True)
        sheet.note("withdrawals", -total(drawn, -1), account)
        sheet.note("deposits", total(drawn, 1), account)
        sheet.down(sheet.step)
        table.row({"text": "Closing balance", "balance": write(closing)}, bold=True)
        sheet.note("closing", closing, account)
        sheet.down(sheet.step)
    sheet.need(30)
    sheet.down(6)
    sheet.line(45, "Reference rate 1 USD = 151.34 JPY. Interest is shown after withholding tax of 20.315%.", size=7)
    return sheet.finish(rng)


_LOAN_OUT = ("Interest charged", "Loan service fee", "Redraw to 06 3000 4417")
_LOAN_IN = ("Repayment direct debit 0417", "Extra repayment NetPay", "Salary credit WARATAH JOINERY")


def _home_loan(seed: int, later: int) -> Statement:
    """Draw, as a scan, half a year of an Australian home loan: the balance is a debt, and says so."""
    house, rng = seeded(_HALF, "home loan", seed, later)
    bank = ("Bank of Tarkine", "Kimberley Home Loans", "Snowy River Mutual", "Capricorn Building Society")
    first = month_of(2023, (1, 7, 4, 10)[seed], later * 6)[0]
    last = month_of(first.year, first.month, 5)[1]
    sheet = Sheet(house, size=10.0, font=("helv", "tiro", "helv", "helv")[seed])
    opening = -invent_cents(rng, 18_000_000, 60_000_000)
    maker = Inventor(rng, _LOAN_OUT, _LOAN_IN, income=0.55, most_out=290_000, most_in=260_000)
    entries = invent_both_ways(maker, (first, last), rng.randint(18, 30), opening)
    closing = entries[-1].balance
    has_marks = seed % 2 == 0

    def owed(amount: Decimal) -> str:
        return f"{figure(abs(amount))} DR" if has_marks else f"-${figure(abs(amount))}"

    def day_of(when: date) -> str:
        return f"{when:%d %b %Y}" if seed < 2 else f"{when:%d/%m/%Y}"

    sheet.line(45, bank[seed], size=17, bold=True)
    sheet.line(45, ("Variable Rate Home Loan", "Basic Home Loan", "Home Loan", "Investment Loan")[seed], size=12)
    sheet.down(6)
    for label, text in (
        ("Loan account number", f"{house.randint(100, 999)} 041 {house.randint(100, 999)}"),
        ("Statement period", f"{day_of(first)} - {day_of(last)}"),
        ("Opening balance", owed(opening)),
        ("Total debits", f"{'' if has_marks else '$'}{figure(-total(entries, -1))}"),
        ("Total credits", f"{'' if has_marks else '$'}{figure(total(entries, 1))}"),
        ("Closing balance", owed(closing)),
        ("Annual interest rate", "6.240%"),
    ):
        sheet.pair(45, label, 330, text)
    _note_all(sheet, opening, entries)
    sheet.down(16)
    columns = moved(
        house,
        (
            Column("date", 45, "l", ("Date",)),
            Column("text", 130, "l", ("Transaction",)),
            Column("out", 375, "r", ("Debit",)),
            Column("in", 455, "r", ("Credit",)),
            Column("balance", 552, "r", ("Balance",)),
        ),
        2.0,
    )
    table = Table(
        sheet,
        columns,
        lambda each: {"date": day_of(each.day), "balance": owed(each.balance), **_sided(each.amount)},
    )
    sheet.note("opening", opening)
    print_after(table, {"date": day_of(first), "text": "Opening balance", "balance": owed(opening)}, entries)
    sheet.note("closing", closing)
    table.row({"date": day_of(last), "text": "Closing balance", "balance": owed(closing)}, bold=True)
    sheet.down(sheet.step * 2)
    sheet.line(
        45, "If you have trouble paying, call our hardship team. Check each entry and tell us of errors.", size=8
    )
    return sheet.finish(rng, scan=True)


_MBANK_OUT = (
    "ZAKUP KARTĄ PIEKARNIA ŻYTKO", "PRZELEW ZEWNĘTRZNY WYCHODZĄCY CZYNSZ", "WYPŁATA W BANKOMACIE ŁAZY", "OPŁATA ZA KARTĘ",
    "BLIK ZAKUP E-COMMERCE KSIĘGARNIA", "POLECENIE ZAPŁATY ENERGIA ŚLĄSK",
)  # fmt: skip
_MBANK_IN = ("PRZELEW WEWNĘTRZNY PRZYCHODZĄCY", "WYNAGRODZENIE ZAKŁADY DĘBNIK", "ZWROT ZAKUPU KSIĘGARNIA")


def _operation_that_is_missing(seed: int, later: int) -> Statement:
    """Draw a Polish current account of which one operation was not printed: the rows do not make its sums."""
    house, rng = seeded(_HALF, "operation that is missing", seed, later)
    bank = ("Bank Pienin", "Bank Żuławski", "Wielkopolski Bank Detaliczny", "Bank Bieszczad")
    first, last = month_of(2024, (4, 6, 9, 11)[seed], later)
    sheet = Sheet(house, size=house.choice((8.5, 9.0)))
    opening = invent_cents(rng, 100_000, 700_000)
    maker = Inventor(rng, _MBANK_OUT, _MBANK_IN, ("TYTUŁ: 0417/2024", "NR 88 1120 0417 8841"), 0.4, most_in=300_000)
    entries = invent_both_ways(maker, (first, last), rng.randint(22, 40), opening)
    missing = rng.choice([each for each in entries[3:-3] if each.amount * (1 if seed % 2 else -1) > 0] or entries[4:5])

    def zlotys(amount: Decimal) -> str:
        return figure(amount, " ", ",")

    sheet.line(45, bank[seed], size=17, bold=True)
    sheet.line(45, "Elektroniczne zestawienie operacji", size=12)
    sheet.line(45, f"za okres od {first.isoformat()} do {last.isoformat()}    eKonto PLN")
    sheet.down(8)
    for label, amount in (
        ("Saldo początkowe", opening),
        ("Uznania", total(entries, 1)),
        ("Obciążenia", total(entries, -1)),
        ("Saldo końcowe", entries[-1].balance),
    ):
        sheet.pair(45, label, 240, zlotys(amount))
    _note_all(sheet, opening, entries)
    sheet.down(14)
    columns = moved(
        house,
        (
            Column("date", 45, "l", ("Data", "operacji")),
            Column("value", 115, "l", ("Data", "księgowania")),
            Column("text", 190, "l", ("Opis operacji",)),
            Column("amount", 550, "r", ("Kwota",)),
        ),
    )
    Table(
        sheet,
        columns,
        lambda each: {
            "date": each.day.isoformat(), "value": each.value_day.isoformat(), "amount": zlotys(each.amount),
        },
        row_rule=(45, 550) if seed == 2 else None,
    ).print([each for each in entries if each is not missing])  # fmt: skip
    sheet.footer = lambda number, count: f"Strona {number}/{count}"
    return sheet.finish(rng, has_sums_right=False)


_EXTRACT_TEXTS = (
    "Fenwick Rowe Ltd", "A K Pemberton", "Item 000417", "Thames Reach Supplies", "Dovetail Studio", "Item 000418", "Ref 8841/20 Harcourt",
    "L Okonkwo", "Northfield Parish Hall",
)  # fmt: skip


def _extract_of_two_columns(seed: int, later: int) -> Statement:
    """Draw an extract of a British business account: two untitled columns of amounts; nothing proves a sign."""
    house, rng = seeded(_HALF, "extract of two columns", seed, later)
    bank = ("Lambourn & Co Bankers", "Severn Commercial Bank", "Hatherleigh Bank", "Alderney Private Bank")
    first, last = month_of(2024, (3, 6, 8, 10)[seed], later)
    sheet = Sheet(house, size=9.0)
    maker = Inventor(
        rng, _EXTRACT_TEXTS, _EXTRACT_TEXTS, ("Invoice 0417", "Your ref 2208"), 0.3, income=0.45, most_in=60_000
    )
    entries = invent_both_ways(maker, (first, last), rng.randint(20, 36), invent_cents(rng, 2_000_000, 4_000_000))
    left = "in" if seed % 2 else "out"
    sheet.line(45, bank[seed], size=17, bold=True)
    sheet.line(45, f"Account {house.randint(10_000_000, 99_999_999)}  Extract of entries", size=11)
    sheet.line(
        45, f"{first.day} {_MONTHS[first.month - 1]} {first.year} to {last.day} {_MONTHS[last.month - 1]} {last.year}"
    )
    sheet.down(16)
    columns = moved(
        house,
        (
            Column("date", 45, "l"),
            Column("text", 130, "l"),
            Column(left, 440, "r"),
            Column("out" if left == "in" else "in", 550, "r"),
        ),
    )
    Table(sheet, columns, lambda each: {"date": f"{each.day:%d %b %Y}", **_sided(each.amount)}, has_head=False).print(
        entries
    )
    sheet.down(14)
    sheet.line(45, "This extract was made at the request of the customer and is no statement of account.", size=7)
    return sheet.finish(rng, signs_proven=False)


_CLIENT_OUT = ("Disbursement file 0417", "Custody fee", "Payment to beneficiary", "Courier charge")
_CLIENT_IN = ("Funds received", "Interest credited", "Refund of disbursement")


def _same_day_every_month(seed: int, later: int) -> Statement:
    """Draw an escrow account whose dates share one number: months may be days, and days months."""
    house, rng = seeded(_HALF, "same day every month", seed, later)
    bank = ("Calloway Escrow", "Trustees of Bellhaven", "Ironbridge Client Accounts", "Pacific Rim Escrow")
    fixed = house.randint(3, 9)
    sheet = Sheet(house, size=9.0)
    opening = invent_cents(rng, 200_000, 900_000)
    days = [date(2023 + later, month, fixed) for month in range(1, 13)]
    maker = Inventor(rng, _CLIENT_OUT, _CLIENT_IN, income=0.4, most_out=60_000, most_in=150_000, days=days)
    entries = invent_both_ways(maker, (days[0], days[-1]), rng.randint(14, 26), opening)
    closing = entries[-1].balance
    form = ("%m-%d-%Y", "%d-%m-%Y", "%d/%m/%Y", "%m/%d/%Y")[seed]
    sheet.line(298, bank[seed], "c", size=16, bold=True)
    sheet.line(298, "Client account ledger", "c", size=11)
    sheet.line(298, f"File 0417/{house.randint(100, 999)}", "c")
    sheet.down(14)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Date",)),
            Column("text", 125, "l", ("Particulars",)),
            Column("out", 385, "r", ("Debit",)),
            Column("in", 465, "r", ("Credit",)),
            Column("balance", 550, "r", ("Balance",)),
        ),
    )
    table = Table(
        sheet,
        columns,
        lambda each: {"date": each.day.strftime(form), "balance": figure(each.balance), **_sided(each.amount)},
        row_rule=(50, 550) if seed == 3 else None,
    )
    sheet.note("opening", opening)
    print_after(table, {"text": "Balance brought forward", "balance": figure(opening)}, entries)
    table.row({"text": "Totals", "out": figure(-total(entries, -1)), "in": figure(total(entries, 1))}, bold=True)
    sheet.note("withdrawals", -total(entries, -1))
    sheet.note("deposits", total(entries, 1))
    sheet.down(sheet.step)
    table.row({"text": "Balance carried forward", "balance": figure(closing)}, bold=True)
    sheet.note("closing", closing)
    return sheet.finish(rng, dates_certain=False)


SHAPES: dict[str, DrawShape] = name_shapes(
    (
        _card_of_two_holders,
        _carried_to_the_next_leaf,
        _credit_balance_in_words,
        _codes_and_interest_days,
        _points_and_total_dues,
        _days_of_ins_and_outs,
        _activity_once_a_day,
        _yen_and_dollars,
        _home_loan,
        _operation_that_is_missing,
        _extract_of_two_columns,
        _same_day_every_month,
    )
)
