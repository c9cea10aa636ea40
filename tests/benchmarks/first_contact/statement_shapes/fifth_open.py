"""The fifth open half: twelve layouts of current, savings, card and business accounts of ten countries, four banks each."""

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
    Table,
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

_HALF = "fifth open"
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip


def _long(day: date) -> str:
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"


def _american(day: date) -> str:
    return f"{_MONTHS[day.month - 1]} {day.day}, {day.year}"


def _dotted(day: date) -> str:
    return f"{day:%d.%m.%Y}"


def _slashed(day: date) -> str:
    return f"{day:%d/%m/%Y}"


def _euros(amount: Decimal) -> str:
    return figure(amount, ".", ",")


def _sided(amount: Decimal, write: Callable[[Decimal], str] = figure) -> dict[str, str]:
    """Return an amount in the column of its direction."""
    return {"in" if amount > 0 else "out": write(abs(amount))}


def _marked(entries: Sequence[Entry], mark: Callable[[Entry], Sequence[str]]) -> list[Entry]:
    """Return the movements with what stands beside their lines."""
    return [replace(each, marks=tuple(mark(each))) for each in entries]


def _dated(entries: Sequence[Entry]) -> list[Entry]:
    """Return the movements with their days in the texts that tell when something was bought."""
    return [replace(each, lines=tuple(text.format(each.day) for text in each.lines)) for each in entries]


_TYPES = {
    "HOLLYBUSH ENERGY": "DD", "MARSH LANE FOODS": "DEB", "ST CRISPIN COUNCIL TAX": "DD", "PETER R HOLLOWAY": "FPO",
    "LNK FORE STREET": "CPT", "THE COPPER POT": "DEB", "WREN MOBILE": "DD", "TORRIDGE LETTINGS RENT": "SO",
    "BARLEYCORN FUEL": "DEB", "ACCOUNT FEE": "PAY", "QUILLSON LTD SALARY": "BGC", "M J ASHWORTH": "FPI",
    "CHEQUE 000417 PAID IN": "DEP", "INTEREST (GROSS)": "CR", "SADDLERS REFUND": "BGC",
}  # fmt: skip
_CREDIT_TYPES = ("BGC", "FPI", "DEP", "CR")
_TYPE_LEGEND = (
    "Transaction types: BGC Bank Giro Credit, CPT Cashpoint, DD Direct Debit, DEB Debit Card, DEP Deposit,",
    "FPI Faster Payment In, FPO Faster Payment Out, PAY Payment, SO Standing Order. Your deposits are protected up to £85,000.",
)


def _types_beside_the_text(seed: int, later: int) -> Statement:
    """Draw a British current account with a column of type codes, money in and out, and a box of totals."""
    house, rng = seeded(_HALF, "types beside the text", seed, later)
    bank = ("Marram Bank", "Tolgate Building Society", "Penhallow Bank", "Ridgeway & Union Bank")
    first, last = month_of(2023, (4, 12, 7, 10)[seed], later)
    has_end_rows = seed % 2 == 1
    sheet = Sheet(house, size=house.choice((8.5, 9.0)))
    opening = invent_cents(rng, 60_000, 350_000)
    maker = Inventor(
        rng,
        [text for text, kind in _TYPES.items() if kind not in _CREDIT_TYPES],
        [text for text, kind in _TYPES.items() if kind in _CREDIT_TYPES],
        ("0417 880213 40-18-77", "CD 4417", "REF 2208-SEPT", "MOBILE-CHANNEL"),
        0.35,
    )
    entries = invent_both_ways(maker, (first, last), rng.randint(24, 52), opening)
    entries = _marked(entries, lambda each: (_TYPES[each.lines[0]],))
    closing = entries[-1].balance
    sheet.line(45, bank[seed], size=18, bold=True)
    sheet.line(45, "Classic Account statement" if seed % 2 else "CLUB CURRENT ACCOUNT", size=11)
    sheet.line(45, f"{_long(first)} to {_long(last)}")
    sheet.write(560, "Sort code 40-18-77", "r", y=60)
    sheet.write(560, f"Account number {house.randint(10_000_000, 99_999_999)}", "r", y=74)
    sheet.down(14)
    _print_money_box(sheet, (first, last), opening, entries)
    sheet.down(22)
    sheet.line(45, "Your Transactions", size=12, bold=True)
    sheet.down(4)
    ins, outs = ("Money In (£)", "Money Out (£)") if seed < 2 else ("Paid in (£)", "Paid out (£)")
    sides = (Column("in", 405, "r", (ins,)), Column("out", 482, "r", (outs,)))
    if seed == 2:
        sides = (replace(sides[1], x=405), replace(sides[0], x=482))
    columns = moved(
        house,
        (
            Column("date", 45, "l", ("Date",)),
            Column("text", 105, "l", ("Description",)),
            Column("mark", 300, "l", ("Type",)),
            *sides,
            Column("balance", 552, "r", ("Balance (£)",)),
        ),
        2.0,
    )
    day_of = (lambda day: f"{day:%d %b %y}") if seed % 2 else (lambda day: f"{day:%d %b %Y}".upper())
    table = Table(
        sheet,
        columns,
        lambda each: {"date": day_of(each.day), "balance": figure(each.balance), **_sided(each.amount)},
        row_rule=(45, 552) if seed == 3 else None,
    )
    if has_end_rows:
        sheet.note("opening", opening)
        cells = {"date": day_of(first), "text": "STATEMENT OPENING BALANCE", "balance": figure(opening)}
        print_after(table, cells, entries)
        sheet.note("closing", closing)
        table.row({"date": day_of(last), "text": "STATEMENT CLOSING BALANCE", "balance": figure(closing)})
        sheet.down(sheet.step)
    else:
        table.print(entries)
    sheet.need(40)
    sheet.down(14)
    for text in _TYPE_LEGEND:
        sheet.line(45, text, size=7)
    return sheet.finish(rng)


def _print_money_box(sheet: Sheet, period: tuple[date, date], opening: Decimal, entries: Sequence[Entry]) -> None:
    sheet.box(45, sheet.y - 13, 550, sheet.y + 2 * sheet.step)
    for kind, label, amount, day, balance in (
        ("deposits", "Money In", total(entries, 1), period[0], opening),
        ("withdrawals", "Money Out", -total(entries, -1), period[1], entries[-1].balance),
    ):
        sheet.write(55, label)
        sheet.write(240, f"£{figure(amount)}", "r", bold=True)
        sheet.note(kind, amount)
        sheet.write(300, f"Balance on {_long(day)}")
        sheet.line(540, f"£{figure(balance)}", "r", bold=True)
        sheet.note("opening" if kind == "deposits" else "closing", balance)


_LEDGER_CARD = (
    "CHECKCARD {0:%m%d} JUNIPER MARKET #88", "PURCHASE {0:%m%d} TWIN OAKS FUEL", "CHECKCARD {0:%m%d} RED BARN DINER",
    "PURCHASE {0:%m%d} CEDAR PHARMACY 0417", "ATM WITHDRAWAL 000417 ELM & 3RD", "CHECKCARD {0:%m%d} COPPER CANYON BOOKS",
)  # fmt: skip
_CARD_WORDS = ("CHECKCARD", "PURCHASE", "ATM")
_LEDGER_OTHER = (
    "PRAIRIE POWER DES:BILL PMT ID:88210", "LAKESHORE RENT DES:WEB PMT ID:0417", "Zelle payment to Dana Whitfield",
    "GRANITE INSURANCE DES:PREMIUM ID:5512", "Online Banking transfer to SAV 4417",
)  # fmt: skip
_LEDGER_INCOME = (
    "BLUESTEM FREIGHT DES:PAYROLL ID:20417", "Zelle payment from Omar Delgado", "Mobile deposit 0417",
    "JUNIPER MARKET REFUND",
)  # fmt: skip
_LEDGER_MORE = ("INDN:HARPER L QUINN CO ID:4417120 PPD", "CKCD 5411 XXXXXXXXXXXX4417", 'Conf# 8x4417qz; "April share"')


def _ledger_of_days(seed: int, later: int) -> Statement:
    """Draw an American checking account in sections with totals, and a table of each day's balance at the end."""
    house, rng = seeded(_HALF, "ledger of days", seed, later)
    bank = ("First Prairie Bank", "Cedar Valley National", "Bank of the Palisades", "Great Basin Savings Bank")
    first, last = cycle_of(2024, (4, 1, 9, 6)[seed], (30, 18, 24, 11)[seed], later)
    sheet = Sheet(house, size=9.0, width=612, height=792)
    opening = invent_cents(rng, 90_000, 500_000)
    maker = Inventor(rng, _LEDGER_CARD + _LEDGER_OTHER, _LEDGER_INCOME, _LEDGER_MORE, 0.25, most_in=190_000)
    while True:
        entries = _dated(invent_both_ways(maker, (first, last), rng.randint(26, 54), opening))
        deposits = [each for each in entries if each.amount > 0]
        cards = [each for each in entries if each.amount < 0 and each.lines[0].startswith(_CARD_WORDS)]
        others = [each for each in entries if each.amount < 0 and not each.lines[0].startswith(_CARD_WORDS)]
        if cards and others:
            break
    closing = entries[-1].balance
    dollar = "$" if seed % 2 else ""
    sheet.line(50, bank[seed], size=17, bold=True)
    sheet.line(50, "Your Advantage Checking" if seed < 2 else "Everyday Checking", size=12)
    sheet.line(50, f"for {_american(first)} to {_american(last)}")
    sheet.line(50, f"Account number: {house.randint(1000, 9999)} {house.randint(1000, 9999)} 4417")
    sheet.down(12)
    sheet.line(50, "Account summary", size=12, bold=True)
    for label, text in (
        (f"Beginning balance on {_american(first)}", f"${figure(opening)}"),
        ("Deposits and other additions", dollar + figure(total(deposits))),
        ("ATM and debit card subtractions", f"-{dollar}{figure(-total(cards))}"),
        ("Other subtractions", f"-{dollar}{figure(-total(others))}"),
        ("Checks", f"-{dollar}0.00"),
        ("Service fees", f"-{dollar}0.00"),
        (f"Ending balance on {_american(last)}", f"${figure(closing)}"),
    ):
        sheet.pair(50, label, 330, text, bold="balance" in label)
    sheet.note("opening", opening)
    sheet.note("deposits", total(deposits))
    sheet.note("subtotal", total(cards))
    sheet.note("subtotal", total(others))
    sheet.note("closing", closing)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Date",)),
            Column("text", 110, "l", ("Description",)),
            Column("amount", 560, "r", ("Amount",)),
        ),
    )
    for title, some in (
        ("Deposits and other additions", deposits),
        ("ATM and debit card subtractions", cards),
        ("Other subtractions", others),
    ):
        sheet.down(12)
        sheet.need(sheet.step * 8)
        sheet.line(50, title, size=12, bold=True)
        sheet.running_head = partial(sheet.line, 50, f"{title} - continued", bold=True)
        Table(
            sheet,
            columns,
            lambda each: {"date": f"{each.day:%m/%d/%y}", "amount": figure(each.amount)},
            extent=(50, 562),
        ).print(some)
        sheet.running_head = None
        sheet.write(50, f"Total {title[0].lower() if title[0] == 'D' else title[0]}{title[1:]}", bold=True)
        sheet.write(columns[2].x, f"{'-' if total(some) < 0 else ''}${figure(abs(total(some)))}", "r", bold=True)
        sheet.note("deposits" if total(some) > 0 else "subtotal", total(some))
        sheet.down(sheet.step)
    _print_daily_balances(sheet, entries)
    return sheet.finish(rng)


def _print_daily_balances(sheet: Sheet, entries: Sequence[Entry]) -> None:
    days = {each.day: each.balance for each in entries}
    height = -(-len(days) // 3)
    sheet.down(14)
    sheet.need(sheet.step * (height + 4))
    sheet.line(50, "Daily ledger balances", size=12, bold=True)
    for x in (50, 225, 400):
        sheet.write(x, "Date", bold=True)
        sheet.write(x + 130, "Balance ($)", "r", bold=True)
    sheet.down(sheet.step)
    top = sheet.y
    for number, (day, balance) in enumerate(days.items()):
        x, y = 50 + 175 * (number // height), top + sheet.step * (number % height)
        sheet.write(x, f"{day:%m/%d}", y=y)
        sheet.write(x + 130, figure(balance), "r", y=y)
    sheet.y = top + sheet.step * height


_GIRO_OUT = (
    "Lastschrift Stromwerk Auental", "Dauerauftrag/Terminueberweisung Wohnbau Eschenhof", "Lastschrift VISA BAECKEREI KORN",
    "Ueberweisung Sabine Holtkamp", "Lastschrift Funknetz Taunus GmbH", "Lastschrift VISA DROGERIE AM WALL",
)  # fmt: skip
_GIRO_IN = ("Gehalt/Rente Kessler Maschinenbau", "Gutschrift Jonas Feldmann", "Gutschrift Versandhaus Lohberg")
_GIRO_MORE = (
    "NR8804 1177 BERLIN KAUFUMSATZ {0:%d.%m} 201504", "Miete Wohnung 3 links", "Kundennummer 55 10 417, Abschlag",
    "Lohn/Gehalt Abrechnung", "Vertrag 8841-20, Rechnung 4417",
)  # fmt: skip
_GIRO_LAST = ("Mandat: AU-771204", "Referenz: 00417-ZV11-9", "Mandat: FT0099-1")


def _value_day_below(seed: int, later: int) -> Statement:
    """Draw a German direct bank's account: the value date under the booking date, minus before debits."""
    house, rng = seeded(_HALF, "value day below", seed, later)
    bank = ("Direktbank Havelland", "Nordsee-Direkt AG", "Kranich Bank", "Wallner Direkt")
    first, last = month_of(2023, (3, 11, 12, 8)[seed], later)
    sheet = Sheet(house, size=house.choice((8.5, 9.0)))
    opening = invent_cents(rng, 40_000, 300_000)
    maker = Inventor(rng, _GIRO_OUT, _GIRO_IN, most_in=240_000, lag=2)
    entries = [
        replace(
            each, lines=(*each.lines, *(rng.choice(some) for some in (_GIRO_MORE, _GIRO_LAST)[: rng.randint(1, 2)]))
        )
        for each in invent_both_ways(maker, (first, last), rng.randint(18, 40), opening)
    ]
    entries = _marked(_dated(entries), lambda each: ("", _dotted(each.value_day)))
    closing = entries[-1].balance
    sheet.line(45, bank[seed], size=18, bold=True)
    sheet.down(6)
    sheet.line(45, f"Girokonto Nummer {house.randint(1_000_000_000, 9_999_999_999)}")
    top = sheet.y
    sheet.line(45, "Frau Hanna Elsner", size=10)
    sheet.line(45, "Am Speicher 4", size=10)
    sheet.y = top
    for label, text in (
        ("Datum", _dotted(last)),
        ("Auszugsnummer", str(last.month)),
        ("Eingeräumte Kontoüberziehung", "2.500,00"),
        ("Alter Saldo", f"{_euros(opening)} Euro"),
        ("Neuer Saldo", f"{_euros(closing)} Euro"),
    ):
        sheet.pair(330, label, 550, text)
    sheet.note("opening", opening)
    sheet.note("closing", closing)
    sheet.down(12)
    sheet.line(45, f"Kontoauszug {('Monat ' if seed % 2 else '')}{last:%m/%Y}", size=13, bold=True)
    sheet.down(6)
    columns = moved(
        house,
        (
            Column("date", 45, "l", ("Buchung", "Valuta")),
            Column("mark", 45, "l"),
            Column("text", 112, "l", ("Buchung / Verwendungszweck",)),
            Column("amount", 550, "r", ("Betrag (EUR)",)),
        ),
    )
    columns = (columns[0], replace(columns[1], x=columns[0].x), *columns[2:])
    plus = "+" if seed == 3 else ""
    Table(
        sheet,
        columns,
        lambda each: {"date": _dotted(each.day), "amount": (plus if each.amount > 0 else "") + _euros(each.amount)},
        row_rule=(45, 550) if seed == 1 else None,
    ).print(entries)
    sheet.need(sheet.step * 7)
    sheet.down(8)
    sheet.pair(112, "Neuer Saldo", columns[3].x, _euros(closing), bold=True)
    sheet.note("closing", closing)
    sheet.down(10)
    sheet.line(45, "Kunden-Information", bold=True)
    sheet.line(
        45,
        "Sollzinssatz für die eingeräumte Kontoüberziehung seit 01.02.2023: 9,99 % p. a. Bitte prüfen Sie den Auszug;",
        size=7,
    )
    sheet.line(45, "Einwendungen müssen innerhalb von sechs Wochen nach Zugang erhoben werden.", size=7)
    sheet.footer = lambda number, count: f"Seite {number} von {count}"
    return sheet.finish(rng)


_SWISS = (
    ("Bank Rheinfluh", "Kontoauszug", "Datum", "Informationen", "Belastungen", "Gutschriften", "Valuta", "Saldo",
     "Anfangssaldo", "Umsatztotal", "Schlusssaldo", "Übertrag"),
    ("Banque du Jorat", "Relevé de compte", "Date", "Informations", "Débits", "Crédits", "Valeur", "Solde",
     "Solde initial", "Total des mouvements", "Solde final", "Report"),
    ("Banca Valle Maggia", "Estratto conto", "Data", "Informazioni", "Addebiti", "Accrediti", "Valuta", "Saldo",
     "Saldo iniziale", "Totale movimenti", "Saldo finale", "Riporto"),
    ("Albula Private Bank", "Statement of account", "Date", "Information", "Debits", "Credits", "Value date", "Balance",
     "Opening balance", "Total turnover", "Closing balance", "Carried forward"),
)  # fmt: skip
_SWISS_OUT = (
    ("Dauerauftrag Immo Sihlbrugg AG", "Einkauf Metzgerei Zgraggen", "E-Banking-Auftrag Praxis Dr. Amsler", "Bancomat Bezug Bahnhof"),
    ("Ordre permanent Régie Lavaux", "Achat Boucherie Chappuis", "Ordre e-banking Cabinet Monod", "Retrait bancomat Gare"),
    ("Ordine permanente Affitti Verzasca", "Acquisto Panetteria Bernasca", "Ordine e-banking Studio Pedrini", "Prelievo bancomat"),
    ("Standing order Immo Landwasser", "Purchase Davos Sports", "E-banking order Dr. Caflisch", "ATM withdrawal Station"),
)  # fmt: skip
_SWISS_IN = (
    ("Zahlungseingang Huber Treuhand", "Gutschrift QR-Rechnung"),
    ("Entrée de paiement Fiduciaire Rochat", "Avis de crédit QR"),
    ("Entrata pagamento Fiduciaria Lepori", "Accredito fattura QR"),
    ("Incoming payment Caduff Trust Office", "Credit QR invoice"),
)
_SWISS_MORE = ("CH44 0076 2011 6238 5295 7", "7260 Davos Dorf", "0417-22 / 8000 Zürich", "Ref. 21 00000 00003 13947")


def _turnover_total(seed: int, later: int) -> Statement:
    """Draw a Swiss account in one of four languages: turnover totals, value dates, a balance once per day."""
    house, rng = seeded(_HALF, "turnover total", seed, later)
    name, title, day, text, out, income, value, balance, initial, turnover, final, report = _SWISS[seed]
    first, last = month_of(2024, (4, 2, 9, 12)[seed], later)
    sheet = Sheet(house, size=house.choice((8.0, 8.5, 9.0)))
    opening = invent_cents(rng, 150_000, 900_000)
    maker = Inventor(rng, _SWISS_OUT[seed], _SWISS_IN[seed], _SWISS_MORE, 0.7, most_out=160_000, most_in=520_000, lag=1)
    entries = invent_both_ways(maker, (first, last), rng.randint(24, 46), opening)
    closing = entries[-1].balance

    def swiss(amount: Decimal) -> str:
        return figure(amount, "'" if seed != 1 else " ")

    def day_of(when: date) -> str:
        return f"{when:%d.%m.%y}" if seed % 2 == 0 else _dotted(when)

    sheet.line(45, name, size=17, bold=True)
    sheet.down(8)
    sheet.line(45, f"{title} {day_of(first)} - {day_of(last)}", size=12, bold=True)
    sheet.line(45, f"CHF   IBAN CH{house.randint(10, 99)} 0026 3263 8840 {house.randint(1000, 9999)} 3", size=9)
    sheet.down(16)
    columns = moved(
        house,
        (
            Column("date", 45, "l", (day,)),
            Column("text", 100, "l", (text,)),
            Column("out", 355, "r", (out,)),
            Column("in", 425, "r", (income,)),
            Column("value", 440, "l", (value,)),
            Column("balance", 553, "r", (balance,)),
        ),
        2.0,
    )
    carry = (lambda amount: {"text": report, "balance": swiss(amount)}) if seed in {0, 3} else None
    table = Table(
        sheet,
        columns,
        lambda each: {
            "date": day_of(each.day), "value": day_of(each.value_day), "balance": swiss(each.balance),
            **_sided(each.amount, swiss),
        },
        is_balance_once=True,
        carry_out=carry,
        carry_in=carry,
    )  # fmt: skip
    sheet.note("opening", opening)
    print_after(table, {"date": day_of(first), "text": initial, "balance": swiss(opening)}, entries)
    sheet.need(sheet.step * 5)
    sheet.rule(300, 553)
    table.row({"text": turnover, "out": swiss(-total(entries, -1)), "in": swiss(total(entries, 1))}, bold=True)
    sheet.note("withdrawals", -total(entries, -1))
    sheet.note("deposits", total(entries, 1))
    sheet.down(sheet.step)
    table.row({"date": day_of(last), "text": final, "balance": swiss(closing)}, bold=True)
    sheet.note("closing", closing)
    sheet.footer = lambda number, count: f"{number}/{count}"
    return sheet.finish(rng)


_ICIC_OUT = (
    "UPI/409811/mangofresh@upi/Payment/", "BIL/ONL/000417/Tejas Gas/", "ACH/Saraswati Housing/EMI0417", "NFS/CASH WDL/Ring Road",
    "IIN/Deccan Kirana/77120", "MMT/IMPS/409920/Rent May/",
)  # fmt: skip
_ICIC_IN = ("NEFT-CMS88120-Vindhya Systems Salary", "UPI/410227/anjali.rao@upi/Thanks/", "CLG/Nirmal Traders/0417")
_ICIC_MORE = ("HDBK/Axle Finance/8841", "BRN/Koregaon Park", "000044177120", "Ref 22/8")


def _serial_numbers(seed: int, later: int) -> Statement:
    """Draw an Indian savings account: serial numbers, value and transaction dates, cheque numbers, Indian commas."""
    house, rng = seeded(_HALF, "serial numbers", seed, later)
    bank = ("Vindhya Bank Limited", "Konkan Mercantile Bank", "Sahyadri Bank", "Bank of Malwa")
    first, last = month_of(2024, (4, 12, 6, 2)[seed], later)
    sheet = Sheet(house, size=8.0, width=620)
    opening = invent_cents(rng, 1_500_000, 40_000_000)
    maker = Inventor(rng, _ICIC_OUT, _ICIC_IN, _ICIC_MORE, 0.5, most_out=2_500_000, most_in=15_000_000, lag=1)
    entries = invent_both_ways(maker, (first, last), rng.randint(22, 45), opening)
    numbers = {id(each): str(number) for number, each in enumerate(entries, 1)}
    dash = "-" if seed % 2 else ""
    cheques = {id(each): str(rng.randint(100_000, 999_999)) if each.lines[0][:3] == "CLG" else dash for each in entries}
    closing = entries[-1].balance

    def rupees(amount: Decimal) -> str:
        return figure(amount, indian=True)

    def day_of(when: date) -> str:
        return _slashed(when) if seed != 2 else f"{when:%d-%b-%Y}"

    sheet.line(310, bank[seed], "c", size=15, bold=True)
    sheet.line(310, "DETAILED STATEMENT" if seed % 2 else "Account Statement", "c", size=11)
    sheet.down(6)
    sheet.line(40, f"Account Number : {house.randint(100_000, 999_999)}004417 ( INR ) - Mrs. Leela Deshmukh")
    sheet.line(40, f"Transaction Period : From {day_of(first)} To {day_of(last)}")
    sheet.down(10)
    sheet.line(
        40,
        f"Statement of Transactions in Savings Account XXXXXXXX4417 in INR for the period {_american(first)} - {_american(last)}",
        size=7.5,
    )
    sheet.down(8)
    columns = moved(
        house,
        (
            Column("number", 40, "l", ("S", "No.")),
            Column("value", 62, "l", ("Value", "Date")),
            Column("date", 117, "l", ("Transaction", "Date")),
            Column("cheque", 173, "l", ("Cheque", "Number")),
            Column("text", 215, "l", ("Transaction Remarks",)),
            Column("out", 440, "r", ("Withdrawal", "Amount (INR)")),
            Column("in", 510, "r", ("Deposit", "Amount (INR)")),
            Column("balance", 585, "r", ("Balance", "(INR)")),
        ),
        1.5,
    )
    table = Table(
        sheet,
        columns,
        lambda each: {
            "number": numbers[id(each)], "value": day_of(each.value_day), "date": day_of(each.day),
            "cheque": cheques[id(each)], "balance": rupees(each.balance), **_sided(each.amount, rupees),
        },
        row_rule=(40, 587) if seed % 2 else None,
        extent=(40, 587),
    )  # fmt: skip
    sheet.note("opening", opening)
    print_after(table, {"text": "B/F" if seed % 2 else "Opening Balance", "balance": rupees(opening)}, entries)
    if seed >= 2:
        table.row(
            {
                "text": "Total",
                "out": rupees(-total(entries, -1)),
                "in": rupees(total(entries, 1)),
                "balance": rupees(closing),
            },
            bold=True,
        )
        sheet.note("withdrawals", -total(entries, -1))
        sheet.note("deposits", total(entries, 1))
        sheet.note("closing", closing)
        sheet.down(sheet.step)
    sheet.need(50)
    sheet.down(12)
    sheet.line(
        40,
        "Legends: NFS - Cash withdrawal at other bank's ATM, UPI - Unified Payments Interface, CLG - Cheque clearing,",
        size=6.5,
    )
    sheet.line(
        40, "BIL - Internet bill payment, MMT - Money transfer. This is a computer generated statement.", size=6.5
    )
    return sheet.finish(rng)


_BRAZIL_OUT = (
    "Pix - Enviado", "Compra com Cartão", "Pagamento de Boleto", "Débito Serviço Telefone", "Tarifa Pacote de Serviços",
    "Saque Terminal",
)  # fmt: skip
_BRAZIL_IN = ("Pix - Recebido", "Recebimento de Proventos", "TED-Crédito em Conta", "Depósito Online")
_BRAZIL_MORE = (
    "{0:%d/%m} 13:45 PADARIA IPE AMARELO", "Condomínio Vila das Acácias", "{0:%d/%m} 09:02 Marina Prado Teles", "Cobrança referente 0417",
)  # fmt: skip


def _brazilian_marks(seed: int, later: int) -> Statement:
    """Draw a Brazilian current account: agency, lot and document numbers, amounts with C or D, a balance once per day."""
    house, rng = seeded(_HALF, "brazilian marks", seed, later)
    bank = ("Banco Serra Azul", "Banco do Cerrado", "Caixa Popular Ipê", "Banco Mar de Dentro")
    first, last = month_of(2024, (5, 12, 3, 8)[seed], later)
    sheet = Sheet(house, size=8.0, width=620)
    opening = invent_cents(rng, 80_000, 700_000)
    maker = Inventor(rng, _BRAZIL_OUT, _BRAZIL_IN, _BRAZIL_MORE, 0.6, most_out=70_000, most_in=300_000, lag=1)
    entries = [
        replace(each, lines=each.lines[:2])
        for each in _dated(invent_both_ways(maker, (first, last), rng.randint(24, 50), opening))
    ]
    lots = {
        id(each): (f"{rng.randint(1, 9999):04}-{rng.randint(0, 9)}", str(rng.randint(10_000, 99_999)))
        for each in entries
    }
    documents = {
        id(each): f"{rng.randint(100, 999)}.{rng.randint(100, 999)}.000.{rng.randint(10, 999):03}" for each in entries
    }
    closing = entries[-1].balance
    glue = "" if seed == 2 else " "

    def sided(amount: Decimal) -> str:
        return f"{_euros(abs(amount))}{glue}{'D' if amount < 0 else 'C'}"

    def cells(each: Entry) -> Cells:
        agency, lot = lots[id(each)]
        moved_day = each.day - (each.value_day - each.day)
        return {
            "date": _slashed(each.day), "move": _slashed(moved_day) if moved_day != each.day else "", "agency": agency,
            "lot": lot, "document": documents[id(each)], "amount": sided(each.amount), "balance": sided(each.balance),
        }  # fmt: skip

    sheet.line(40, bank[seed], size=16, bold=True)
    sheet.line(40, "Extrato de conta corrente", size=12)
    sheet.down(4)
    sheet.line(
        40,
        f"Agência 0417-{house.randint(0, 9)}    Conta corrente {house.randint(10_000, 99_999)}-7   Tereza Alencar Pinho",
    )
    sheet.line(40, f"Período do extrato: {_slashed(first)} a {_slashed(last)}")
    sheet.down(10)
    sheet.line(40, "Lançamentos", bold=True)
    columns = moved(
        house,
        (
            Column("date", 40, "l", ("Dt.", "balancete")),
            Column("move", 92, "l", ("Dt.", "movimento")),
            Column("agency", 146, "l", ("Ag.", "origem")),
            Column("lot", 184, "l", ("Lote",)),
            Column("text", 218, "l", ("Histórico",)),
            Column("document", 440, "r", ("Documento",)),
            Column("amount", 510, "r", ("Valor R$",)),
            Column("balance", 585, "r", ("Saldo",)),
        ),
        1.5,
    )
    table = Table(
        sheet, columns, cells, is_balance_once=True, extent=(40, 587), row_rule=(40, 587) if seed == 1 else None
    )
    sheet.note("opening", opening)
    before = first - timedelta(days=1)
    print_after(
        table,
        {
            "date": _slashed(before),
            "agency": "0000-0",
            "lot": "00000",
            "text": "Saldo Anterior",
            "balance": sided(opening),
        },
        entries,
    )
    sheet.need(sheet.step * 4)
    sheet.note("closing", closing)
    end = {"date": _slashed(last), "agency": "0000-0", "lot": "00000", "text": "S A L D O", "balance": sided(closing)}
    table.row(end if seed % 2 == 0 else end | {"text": "Saldo Final"}, bold=True)
    sheet.down(sheet.step * 2)
    sheet.line(
        40, "Limite disponível do cheque especial: R$ 2.000,00    Juros 7,90 % a.m.    SAC 0800 0417 0417", size=7
    )
    sheet.footer = lambda number, count: f"Página {number} de {count}"
    return sheet.finish(rng)


_AUSTRALIAN_OUT = (
    "Yarra Provedore FITZROY", "Direct Debit 188417 TORRENS ENERGY", "Transfer to xx0417 NetBank rent", "Magpie Fuel NEWTOWN AU",
    "Wdl ATM Lygon St", "Account Fee",
)  # fmt: skip
_AUSTRALIAN_IN = (
    "Salary BILLABONG FREIGHT P/L",
    "Fast Transfer From A R Nguyen",
    "Refund Yarra Provedore",
    "Cash Dep Branch Carlton",
)
_AUSTRALIAN_MORE = ("Card xx4417", "PayID Phone from CommApp", "Value Date: {0:%d/%m/%Y}", "USD 12.40")


def _value_date_lines(seed: int, later: int) -> Statement:
    """Draw an Australian account: no year in the rows, balances with CR or DR, a line that adds up the totals."""
    house, rng = seeded(_HALF, "value date lines", seed, later)
    bank = ("Southern Cross Bank", "Murrumbidgee Mutual", "Bank of Tasman", "Wattle Credit Union")
    first, last = cycle_of(2023, (6, 12, 9, 12)[seed], (30, 14, 21, 27)[seed], later + 1)
    sheet = Sheet(house, size=9.0)
    opening = -invent_cents(rng, 10_000, 90_000) if seed == 3 else invent_cents(rng, 50_000, 400_000)
    maker = Inventor(rng, _AUSTRALIAN_OUT, _AUSTRALIAN_IN, _AUSTRALIAN_MORE, 0.6, most_in=260_000)
    entries = _dated(invent_both_ways(maker, (first, last), rng.randint(24, 48), opening))
    closing = entries[-1].balance

    def sided(amount: Decimal) -> str:
        return f"${figure(abs(amount))} {'DR' if amount < 0 else 'CR'}"

    sheet.line(45, bank[seed], size=17, bold=True)
    sheet.line(45, "Smart Access" if seed % 2 else "Everyday Account", size=12)
    sheet.down(4)
    top = sheet.y
    sheet.line(45, "Ms Priya Castellan")
    sheet.line(45, "7/41 Rathdowne Street CARLTON VIC 3053")
    after, sheet.y = sheet.y, top
    for label, text in (
        ("Account Number", f"06 3000 {house.randint(1000, 9999)}4417"),
        ("Statement Period", f"{first.day} {first:%b %Y} - {last.day} {last:%b %Y}"),
        ("Closing Balance", sided(closing)),
    ):
        sheet.pair(310, label, 550, text)
    sheet.note("closing", closing)
    sheet.y = max(after, sheet.y) + 16
    columns = moved(
        house,
        (
            Column("date", 45, "l", ("Date",)),
            Column("text", 92, "l", ("Transaction",)),
            Column("out", 370, "r", ("Debit",)),
            Column("in", 455, "r", ("Credit",)),
            Column("balance", 550, "r", ("Balance",)),
        ),
    )
    dollar = "$" if seed % 2 else ""
    table = Table(
        sheet,
        columns,
        lambda each: {
            "date": f"{each.day:%d %b}", "balance": sided(each.balance),
            **_sided(each.amount, lambda amount: dollar + figure(amount)),
        },
    )  # fmt: skip
    sheet.note("opening", opening)
    print_after(
        table, {"date": f"{first:%d %b}", "text": f"{first:%Y} OPENING BALANCE", "balance": sided(opening)}, entries
    )
    sheet.note("closing", closing)
    table.row({"date": f"{last:%d %b}", "text": f"{last:%Y} CLOSING BALANCE", "balance": sided(closing)}, bold=True)
    sheet.down(sheet.step * 2)
    sheet.need(sheet.step * 4)
    for x, label, text in (
        (110, "Opening balance", sided(opening)),
        (195, "-", ""),
        (260, "Total debits", f"${figure(-total(entries, -1))}"),
        (330, "+", ""),
        (390, "Total credits", f"${figure(total(entries, 1))}"),
        (455, "=", ""),
        (530, "Closing balance", sided(closing)),
    ):
        sheet.write(x, label, "c", bold=True)
        sheet.write(x, text, "c", y=sheet.y + sheet.step)
    sheet.down(sheet.step * 2)
    for kind, amount in (
        ("opening", opening),
        ("withdrawals", -total(entries, -1)),
        ("deposits", total(entries, 1)),
        ("closing", closing),
    ):
        sheet.note(kind, amount)
    return sheet.finish(rng)


_SAVER_OUT = ("Withdrawal at branch Hexham", "Transfer to 40417712", "Cheque 000417", "Transfer to Mrs E Dunmore")
_SAVER_IN = (
    "Cash paid in Hexham",
    "Transfer from 40417712",
    "Interest",
    "Standing order Mr J Dunmore",
    "Cheque paid in",
)


def _rates_beside_savings(seed: int, later: int) -> Statement:
    """Draw, as a scan, a building society's savings account with a table of its rates of interest."""
    house, rng = seeded(_HALF, "rates beside savings", seed, later)
    bank = (
        "Hexham Vale Building Society",
        "The Coquetdale",
        "Swale & Tees Building Society",
        "Cleveland Hills Society",
    )
    first, last = month_of(2023, (1, 4, 7, 10)[seed], later * 3)
    last = month_of(first.year, first.month, 2)[1]
    sheet = Sheet(house, size=10.0, font=("helv", "tiro", "helv", "helv")[seed])
    opening = invent_cents(rng, 300_000, 2_500_000)
    maker = Inventor(rng, _SAVER_OUT, _SAVER_IN, income=0.5, most_out=90_000, most_in=150_000)
    entries = invent_both_ways(maker, (first, last), rng.randint(12, 24), opening)
    closing = entries[-1].balance
    sheet.line(298, bank[seed], "c", size=17, bold=True)
    sheet.line(298, ("Fellside Saver", "Instant Access", "90 Day Saver", "Loyalty Saver")[seed], "c", size=12)
    sheet.down(10)
    sheet.pair(50, "Account", 250, f"{house.randint(1000, 9999)}-{house.randint(10_000, 99_999)}")
    sheet.pair(50, "Statement from", 250, _long(first))
    sheet.pair(50, "to", 250, _long(last))
    sheet.down(10)
    sheet.line(50, "Your rates of interest", bold=True)
    for texts in (
        ("Balance", "Gross p.a.", "AER"),
        ("£1 to £4,999", "1.85%", "1.86%"),
        ("£5,000 to £24,999", "2.10%", "2.12%"),
        ("£25,000 and over", "2.35%", "2.37%"),
    ):
        sheet.write(50, texts[0], bold=texts[0] == "Balance")
        sheet.write(230, texts[1], "r")
        sheet.line(300, texts[2], "r")
    sheet.down(12)
    outs, ins = ("Withdrawals", "Receipts") if seed % 2 else ("Withdrawn £", "Paid in £")
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Date",)),
            Column("text", 130, "l", ("Details",)),
            Column("out", 380, "r", (outs,)),
            Column("in", 460, "r", (ins,)),
            Column("balance", 548, "r", ("Balance £" if seed % 2 == 0 else "Balance",)),
        ),
    )
    table = Table(
        sheet,
        columns,
        lambda each: {
            "date": f"{each.day:%d %b %Y}", "balance": figure(each.balance), **_sided(each.amount),
        },
    )  # fmt: skip
    sheet.note("opening", opening)
    print_after(table, {"text": "Balance brought forward", "balance": figure(opening)}, entries)
    sheet.note("closing", closing)
    table.row({"text": "Balance carried forward", "balance": figure(closing)})
    sheet.down(sheet.step * 2)
    sheet.line(50, "Interest is paid without tax taken off. Please keep this statement for your records.", size=8)
    return sheet.finish(rng, scan=True)


_MAPLE_OUT = (
    "SASKATOON FARM MARKET", "POLAR TOQUE SPORTS", "TRILLIUM PHARMACY 417", "MOOSEHEAD FUEL", "LE PETIT PHARE CAFE",
    "NORTHERN RAIL TICKETS", "GEORGIAN BAY HARDWARE",
)  # fmt: skip
_MAPLE_IN = ("PAYMENT - THANK YOU", "TRILLIUM PHARMACY 417 RETURN")


def _balance_calculated(seed: int, later: int) -> Statement:
    """Draw, as a scan, a Canadian card: two dates without a year, minus before payments, a box that adds up."""
    house, rng = seeded(_HALF, "balance calculated", seed, later)
    bank = ("Trillium Visa", "Great Lakes Mastercard", "Inukshuk Cash Back Card", "Fundy Travel Card")
    start, end = cycle_of(2023, (5, 12, 9, 12)[seed], (18, 9, 22, 12)[seed], later + 1)
    sheet = Sheet(house, size=9.5, width=612, height=792, font="helv")
    opening = -invent_cents(rng, 30_000, 260_000)
    maker = Inventor(rng, _MAPLE_OUT, _MAPLE_IN, income=0.14, most_out=24_000, most_in=80_000, lag=2)
    entries = [
        replace(each, lines=(*each.lines, f"FOREIGN CURRENCY {figure(-each.amount / 2)} USD"))
        if each.amount < 0 and rng.random() < 0.15
        else each
        for each in invent_both_ways(maker, (start, end - timedelta(days=2)), rng.randint(16, 34), opening)
    ]
    closing, paid, spent = entries[-1].balance, total(entries, 1), -total(entries, -1)
    sheet.line(50, bank[seed], size=17, bold=True)
    sheet.line(50, f"STATEMENT DATE: {_american(end)}")
    sheet.line(50, f"STATEMENT PERIOD: {_american(start)} to {_american(end)}")
    sheet.line(50, f"Card number XXXX XXXX XXXX {house.randint(1000, 9999)}")
    sheet.down(10)
    sheet.line(50, "CALCULATING YOUR BALANCE", bold=True)
    signed = "-" if seed % 2 else ""
    for label, text in (
        ("Previous Balance", f"${figure(-opening)}"),
        ("Payments & Credits", f"{signed}${figure(paid)}"),
        ("Purchases & Other Charges", f"${figure(spent)}"),
        ("Cash Advances", "$0.00"),
        ("Interest", "$0.00"),
        ("NEW BALANCE", f"{'-' if closing > 0 else ''}${figure(abs(closing))}"),
    ):
        sheet.pair(50, label, 280, text, bold=label == "NEW BALANCE")
    for kind, amount in (("opening", opening), ("deposits", paid), ("withdrawals", spent), ("closing", closing)):
        sheet.note(kind, amount)
    sheet.down(6)
    sheet.line(50, f"Payment due date {_american(end + timedelta(days=21))}    Annual interest rate: purchases 20.99%")
    sheet.down(14)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("TRANSACTION", "DATE")),
            Column("value", 130, "l", ("POSTING", "DATE")),
            Column("text", 195, "l", ("", "ACTIVITY DESCRIPTION")),
            Column("amount", 555, "r", ("", "AMOUNT($)")),
        ),
    )

    def day_of(when: date) -> str:
        return f"{when:%b}{'.' if seed == 3 else ''} {when.day}".upper()

    table = Table(
        sheet,
        columns,
        lambda each: {
            "date": day_of(each.day), "value": day_of(each.value_day),
            "amount": f"{'-' if each.amount > 0 else ''}${figure(abs(each.amount))}",
        },
        extent=(50, 558),
    )  # fmt: skip
    sheet.note("opening", opening)
    print_after(table, {"text": "PREVIOUS STATEMENT BALANCE", "amount": f"${figure(-opening)}"}, entries)
    sheet.note("closing", closing)
    text = f"{'-' if closing > 0 else ''}${figure(abs(closing))}"
    table.row({"text": "TOTAL NEW BALANCE", "amount": text}, bold=True)
    return sheet.finish(rng, scan=True)


_WALLET_OUT = (
    "Hotel Lindenblick",
    "Airport rail link",
    "Cafe Tramontana",
    "Museum shop",
    "Ferry terminal kiosk",
    "Cash machine 0417",
)
_WALLET_IN = ("Top-up by bank transfer", "Top-up by card", "Refund Hotel Lindenblick")


def _wallet_of_numbers(seed: int, later: int) -> Statement:
    """Draw a travel wallet whose dates are two numbers below thirteen: day and month may change places."""
    house, rng = seeded(_HALF, "wallet of numbers", seed, later)
    bank = ("Globetrot Wallet", "Roamwell Prepaid", "Meridian Multi-Currency Card", "Waypoint Money")
    currency = ("USD", "EUR", "USD", "SGD")[seed]
    month = (5, 8, 2, 10)[seed] + later
    sheet = Sheet(house, size=9.0)
    opening = invent_cents(rng, 30_000, 150_000)
    days = [date(2024, month, day) for day in range(1, 13)]
    maker = Inventor(rng, _WALLET_OUT, _WALLET_IN, most_out=12_000, most_in=60_000, days=days)
    entries = invent_both_ways(maker, (days[0], days[-1]), rng.randint(14, 30), opening)
    closing = entries[-1].balance
    form = "%d/%m/%Y" if seed % 2 == 0 else "%m/%d/%Y"
    sheet.line(45, bank[seed], size=17, bold=True)
    sheet.line(45, f"Statement of your {currency} balance", size=12)
    sheet.line(45, f"Card ending {house.randint(1000, 9999)}")
    sheet.down(8)
    for label, amount, kind in (
        ("Opening balance", opening, "opening"),
        ("Money in", total(entries, 1), "deposits"),
        ("Money out", -total(entries, -1), "withdrawals"),
        ("Closing balance", closing, "closing"),
    ):
        sheet.pair(45, label, 260, f"{figure(amount)} {currency}")
        sheet.note(kind, amount)
    sheet.down(14)
    columns = moved(
        house,
        (
            Column("date", 45, "l", ("Date",)),
            Column("text", 120, "l", ("Description",)),
            Column("out", 390, "r", ("Money out",)),
            Column("in", 465, "r", ("Money in",)),
            Column("balance", 550, "r", ("Balance",)),
        ),
    )
    Table(
        sheet,
        columns,
        lambda each: {"date": each.day.strftime(form), "balance": figure(each.balance), **_sided(each.amount)},
        currency=currency,
    ).print(entries)
    sheet.down(12)
    sheet.line(45, "Funds on this wallet are safeguarded. They earn no interest.", size=7)
    return sheet.finish(rng, dates_certain=False)


_LIST_TEXTS = (
    "VIR SEPA MENUISERIE AUBRAC", "VIR SEPA CAMILLE ROUSSEL", "VIR INST ATELIER DU CANAL",  "VIR SEPA SCI LES TILLEULS",
    "OPERATION GUICHET 0417", "VIR SEPA MUTUELLE DU RHONE", "REGULARISATION DOSSIER 8841", "VIR INST PAUL MERCADIER",
)  # fmt: skip


def _list_without_direction(seed: int, later: int) -> Statement:
    """Draw a French list of operations: bare amounts, neutral texts, no sum and no balance; nothing proves a sign."""
    house, rng = seeded(_HALF, "list without direction", seed, later)
    bank = ("Banque des Deux Rives", "Crédit du Vercors", "Caisse Armoricaine", "Banque Saint-Aubin")
    first, last = month_of(2024, (4, 6, 9, 11)[seed], later)
    sheet = Sheet(house, size=9.0)
    maker = Inventor(
        rng, _LIST_TEXTS, _LIST_TEXTS, ("REF 0417-2208", "DOSSIER 77120 LOT 3", "NOTPROVIDED"), 0.4, income=0.4
    )
    entries = invent_both_ways(maker, (first, last), rng.randint(20, 40), invent_cents(rng, 900_000, 2_000_000))
    references = {id(each): f"{rng.randint(1_000_000, 9_999_999)}" for each in entries}
    sheet.line(45, bank[seed], size=17, bold=True)
    sheet.line(45, "LISTE DES OPÉRATIONS", size=12, bold=True)
    sheet.line(
        45, f"Compte n° {house.randint(10_000, 99_999)} 0417 88    Période du {_slashed(first)} au {_slashed(last)}"
    )
    sheet.line(45, "Document d'information, sans valeur de relevé de compte")
    sheet.down(14)
    columns = moved(
        house,
        (
            Column("date", 45, "l", ("Date",)),
            Column("text", 120, "l", ("Libellé",)),
            Column("reference", 400, "l", ("Référence",)),
            Column("amount", 550, "r", ("Montant EUR",)),
        ),
    )
    Table(
        sheet,
        columns,
        lambda each: {
            "date": _slashed(each.day), "reference": references[id(each)], "amount": figure(abs(each.amount), " ", ","),
        },
    ).print(entries)  # fmt: skip
    sheet.rows = [replace(each, balance=None) for each in sheet.rows]
    sheet.footer = lambda number, count: f"Page {number}/{count}"
    return sheet.finish(rng, signs_proven=False)


_POLISH_OUT = (
    "PRZELEW WYCHODZĄCY HURTOWNIA DĄB", "ZAKUP PRZY UŻYCIU KARTY STACJA ŁĄKA", "PRZELEW PODATKOWY", "OPŁATA ZA PROWADZENIE RACHUNKU",
    "PRZELEW WYCHODZĄCY DRUKARNIA WISŁOK", "SPŁATA LEASINGU AUTO-ŻUBR",
)  # fmt: skip
_POLISH_IN = ("PRZELEW PRZYCHODZĄCY SKLEP JARZĘBINA", "PRZELEW PRZYCHODZĄCY GMINA BRZOZÓW", "ZWROT NADPŁATY")
_POLISH_MORE = ("FAKTURA FV/0417/2024", "TYTUŁ: ZAMÓWIENIE 8841", "PODZIELONA PŁATNOŚĆ")


def _page_gone(seed: int, later: int) -> Statement:
    """Draw a Polish business account with running balances of which the second page was lost."""
    house, rng = seeded(_HALF, "page gone", seed, later)
    bank = ("Bank Nadwiślański", "Bank Rzemiosła S.A.", "Kujawski Bank Firm", "Bank Trzech Rzek")
    first, last = month_of(2024, (3, 5, 8, 10)[seed], later)
    sheet = Sheet(house, size=8.5)
    opening = invent_cents(rng, 1_000_000, 8_000_000)
    maker = Inventor(rng, _POLISH_OUT, _POLISH_IN, _POLISH_MORE, 0.5, most_out=700_000, most_in=1_500_000, lag=1)
    entries = invent_both_ways(maker, (first, last), rng.randint(62, 84), opening)
    closing = entries[-1].balance

    def zlotys(amount: Decimal) -> str:
        return figure(amount, "\u00a0" if seed == 1 else " ", ",")

    sheet.line(45, bank[seed], size=17, bold=True)
    sheet.line(45, f"Wyciąg z rachunku bieżącego nr {last.month}/{last.year}", size=12)
    sheet.line(45, f"za okres od {first.isoformat()} do {last.isoformat()}    Waluta: PLN")
    sheet.down(8)
    for label, amount, kind in (
        ("Saldo początkowe", opening, "opening"),
        ("Suma uznań", total(entries, 1), "deposits"),
        ("Suma obciążeń", -total(entries, -1), "withdrawals"),
        ("Saldo końcowe", closing, "closing"),
    ):
        sheet.pair(45, label, 260, zlotys(amount))
        sheet.note(kind, amount)
    sheet.down(14)
    columns = moved(
        house,
        (
            Column("date", 45, "l", ("Data", "księgowania")),
            Column("value", 110, "l", ("Data", "waluty")),
            Column("text", 175, "l", ("Opis operacji",)),
            Column("amount", 465, "r", ("Kwota",)),
            Column("balance", 550, "r", ("Saldo", "po operacji")),
        ),
    )
    Table(
        sheet,
        columns,
        lambda each: {
            "date": each.day.isoformat(), "value": each.value_day.isoformat(), "amount": zlotys(each.amount),
            "balance": zlotys(each.balance),
        },
        per_page=24,
    ).print(entries)  # fmt: skip
    sheet.footer = lambda number, count: f"Strona {number} z {count}"
    return sheet.finish(rng, lost=2, has_sums_right=False)


SHAPES: dict[str, DrawShape] = name_shapes(
    (
        _types_beside_the_text,
        _ledger_of_days,
        _value_day_below,
        _turnover_total,
        _serial_numbers,
        _brazilian_marks,
        _value_date_lines,
        _rates_beside_savings,
        _balance_calculated,
        _wallet_of_numbers,
        _list_without_direction,
        _page_gone,
    )
)
