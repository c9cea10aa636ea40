"""The third set's open half: accounts of twelve kinds and countries, which may be looked at while a reader is built."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal

from benchmarks.first_contact.statement_shapes.drawing import (
    ZERO,
    Column,
    DrawShape,
    Entry,
    Inventor,
    Sheet,
    Statement,
    Table,
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

_HALF = "third open"

_CODED = (
    "DD   WESSEX RIVERS WATER", "VIS   HOLLIN GROCERS LEEDS", "VIS   MARLOW & PYKE", ")))   BAKER ON THE CORNER",
    "SO   R T ALDERSON RENT", "ATM   CASH STATION PARADE", "BP   P IQBAL", "DD   ARGYLL BOROUGH CTAX",
    ")))   RIVERSIDE PARKING", "DR   NON-STERLING FEE", "VIS   ORBITAL BROADBAND",
)  # fmt: skip
_CODED_INCOME = ("CR   FENWICK ROWE LLP SALARY", "CR   H M OKAFOR", "BP   REFUND MARLOW & PYKE", "CR   CASH PAID IN")
_CODED_MORE = ("YORK", "INV 20817", "FLAT 2 ALMA TERRACE", "CD 7714", "ON 8 MAY BCC")
_US_CARDS = (
    "CHECKCARD PLAINS COFFEE WICHITA KS", "PURCHASE DRY CREEK HARDWARE", "CHECKCARD FOUR WINDS FUEL TOPEKA KS",
    "PURCHASE TALLGRASS MARKET", "CHECKCARD BUFFALO DINER", "RECURRING SKYLARK STREAMING CA",
)  # fmt: skip
_US_OTHERS = (
    "PRAIRIE POWER DES:ONLINE PMT ID:00417", "FLINT HILLS RENT DES:WEB PAY", "PLAINSBANK ATM #0042 WITHDRWL",
    "COTTONWOOD INS DES:PREMIUM", "Zelle payment to Dana Whitaker",
)  # fmt: skip
_US_INCOME = (
    "KANSAS SEED CO DES:PAYROLL ID:8841", "Zelle payment from Lou Ortega", "BRANCH DEPOSIT", "MOBILE CHECK DEPOSIT",
)  # fmt: skip
_SPARKASSE = ("Lastschrift", "Kartenzahlung girocard", "Dauerauftrag", "Bargeldauszahlung", "Online-Überweisung")
_SPARKASSE_INCOME = ("Gutschrift Überweisung", "Lohn, Gehalt, Rente", "Rückgabe Kartenzahlung")
_SPARKASSE_MORE = (
    "Stadtwerke Heidemoor GmbH", "Markt am Deich SAGT DANKE", "Hausverwaltung Plön u. Söhne", "Kd.Nr. 4471-20",
    "EREF: NOTPROVIDED", "Versicherung Elbwart AG", "Abschlag Gas 02", "Radhaus Timm Kappelholm",
)  # fmt: skip
_FRENCH = (
    "PRLV SEPA ENERGIE DU LARGE", "CARTE BOULANGERIE AUX TROIS PINS", "VIR SEPA LOYER MME CHAPUIS", "RETRAIT DAB CORNICHE",
    "CARTE LIBRAIRIE DU PORT", "PRLV SEPA MUTUELLE GARRIGUE", "CHEQUE 0048113", "COTISATION CARTE",
)  # fmt: skip
_FRENCH_INCOME = ("VIR RECU ATELIERS MISTRAL", "REMISE CHEQUES", "VIR RECU CAF DES CALANQUES")
_FRENCH_MORE = ("REF 8812 AX", "MDT FR47ZZZ", "SALAIRE", "DU 28/12 A 19H", "ECH MENSUELLE")
_NARRATIONS = (
    "UPI-ANJALI STORES-ANJALI@OKBANK", "POS 4160XX8841 SARAVANA MART", "ATW-512967-MG ROAD", "NWD-BESCOM BILLDESK",
    "ACH D- SURAKSHA LIFE INS", "IMPS-RENT-MEENA IYER", "UPI-CHAI POINT-Q882@YBL",
)  # fmt: skip
_NARRATION_INCOME = (
    "NEFT CR-ORCHID INFOSYS-SALARY",
    "UPI-KIRAN RAO-KIRAN@OKPAY",
    "CASH DEPOSIT BY SELF",
    "INT PD CREDIT",
)
_NARRATION_MORE = ("-000418331207-NA", "-PAYMENT FROM PHONE", "-BANGALORE", "-NOV DUES")
_MEMBERS = ("ELENA R VOSS", "MARCUS T VOSS", "PRIYA N VOSS")
_CHARGES = (
    "HIGHLAND AIR    DENVER CO", "MESA GRILL    BOULDER CO", "CANYON BOOKS    MOAB UT", "TRAILHEAD GEAR    AURORA CO",
    "PEAK PARKING    DENVER CO", "CACTUS CAB    TUCSON AZ", "RED ROCK MARKET    GOLDEN CO", "ASPEN PHARMACY    VAIL CO",
)  # fmt: skip
_CHARGES_MORE = ("AIRLINE TICKET", "RESTAURANT", "MERCHANDISE", "TIP INCLUDED")
_BRAZILIAN = (
    "PIX TRANSF Joana S", "RSCCARTAO MERCADO IPE", "INT PAG TIT BANCO 077", "DA ENERGIA SERRANA", "SAQUE 24H PRACA XV",
    "PAG BOLETO CONDOMINIO", "TAR PACOTE MENSAL", "PIX QRS PADARIA SOL",
)  # fmt: skip
_BRAZILIAN_INCOME = ("REMUNERACAO/SALARIO", "PIX TRANSF Otavio M", "TED RECEBIDA COOP VALE", "REND PAGO APLIC AUT")
_YEN = (
    "DEBIT CARD MIDORI FOODS", "ATM WITHDRAWAL", "RENT SAKURA ESTATE", "ELECTRICITY MINATO", "TRANSFER FEE",
    "INSURANCE HOSHI LIFE", "DEBIT CARD KITANO BOOKS", "WATER BUREAU",
)  # fmt: skip
_YEN_INCOME = ("SALARY NAGISA TRADING KK", "TRANSFER FROM TANAKA YUI", "CASH DEPOSIT ATM", "INTEREST AFTER TAX")
_NEUTRAL = (
    "Harwood & Lisle", "J Benedetti", "Ref 77120 K", "Oakley Travel Desk", "M and S Fraser", "Tollgate 19",
    "Pell Street Collective", "A Nakamura", "Brightwater 0081", "Ref 40932 B",
)  # fmt: skip
_SAVER = ("Transfer J Dray", "Standing order 2", "Branch counter", "Transfer Ardmore", "Online 6612", "Adjustment")
_TRADE = (
    "CHQ 001172", "BACS Ironmasters Ltd", "DD Fleet Lease Co", "FPO Hallam Packaging", "DD Business Rates", "CHG Account fee",
    "FPO Weir Logistics", "Card Quill Stationers",
)  # fmt: skip
_TRADE_INCOME = ("BGC Castle Fabrics", "FPI Dunmore Retail", "Deposit 500214", "BGC Loxley Interiors")
_TRADE_MORE = ("INV 9921", "A/C 00417", "PO 55-210", "RENTAL BAY 4")


def _french(amount: Decimal) -> str:
    return figure(abs(amount), " ", ",")


def _german(amount: Decimal) -> str:
    return figure(amount, ".", ",")


def _yen(amount: Decimal) -> str:
    return f"{int(abs(amount)):,}"


def _in_columns(entry: Entry, less: str = "out", more: str = "in") -> dict[str, str]:
    return {more if entry.amount > 0 else less: figure(abs(entry.amount))}


def _type_codes(seed: int, later: int) -> Statement:
    """Draw a British current account: codes before details, a balance once a day, and carries on every page."""
    house, rng = seeded(_HALF, "type codes", seed, later)
    bank = ("Wharfedale Bank", "Severn & Provincial", "Kingsway Bank plc", "Royal Mercia Bank", "Lothian Trust Bank")[
        seed
    ]
    first, last = cycle_of(2024, (1, 3, 7, 12, 10)[seed], house.randint(8, 24), later)
    sheet = Sheet(house, size=house.choice((8.0, 8.5)))
    opening = invent_cents(rng, 300_000, 900_000)
    maker = Inventor(rng, _CODED, _CODED_INCOME, _CODED_MORE, 0.4, 0.22, 25_000, 220_000)
    entries = invent_both_ways(maker, (first, last), rng.randint(38, 70), opening)
    closing, paid_in, paid_out = entries[-1].balance, total(entries, 1), -total(entries, -1)
    sheet.line(50, bank, size=17, bold=True)
    sheet.line(50, f"{first:%-d %B %Y} to {last:%-d %B %Y}", bold=True)
    sheet.line(50, f"Account Name  Ms R Alderson   Sortcode 40-{house.randint(10, 99)}-18   Account 5120 4417")
    sheet.down(10)
    sheet.line(330, "Account Summary", bold=True)
    for kind, label, amount in (
        ("opening", "Opening Balance", opening),
        ("deposits", "Payments In", paid_in),
        ("withdrawals", "Payments Out", paid_out),
        ("closing", "Closing Balance", closing),
    ):
        sheet.pair(330, label, 545, figure(amount))
        sheet.note(kind, amount)
    sheet.down(16)
    sheet.line(50, "Your Bank Account details", bold=True)
    sheet.down(4)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Date",)),
            Column("text", 105, "l", ("Payment type and details",)),
            Column("out", 400, "r", (house.choice(("Paid out", "£ Paid out")),)),
            Column("in", 472, "r", (house.choice(("Paid in", "£ Paid in")),)),
            Column("balance", 545, "r", ("Balance",)),
        ),
    )
    table = Table(
        sheet,
        columns,
        lambda each: {"date": f"{each.day:%d %b %y}", "balance": figure(each.balance)} | _in_columns(each),
        is_date_once=True,
        is_balance_once=True,
        carry_out=lambda balance: {"text": "BALANCE CARRIED FORWARD", "balance": figure(balance)},
        carry_in=lambda balance: {"text": "BALANCE BROUGHT FORWARD", "balance": figure(balance)},
    )
    start = {"date": f"{first - timedelta(days=1):%d %b %y}", "text": "BALANCE BROUGHT FORWARD"}
    sheet.note("opening", opening)
    print_after(table, start | {"balance": figure(opening)}, entries)
    table.row({"date": f"{last:%d %b %y}", "text": "BALANCE CARRIED FORWARD", "balance": figure(closing)})
    sheet.note("closing", closing)
    sheet.down(24)
    sheet.line(50, "AER 1.35% on balances up to 25,000.00; EAR 39.90% on arranged overdrafts over 500.00", size=7)
    return sheet.finish(rng)


def _ledger_balances(seed: int, later: int) -> Statement:
    """Draw an American checking account: sections with totals, a card's subtotal, daily balances side by side."""
    house, rng = seeded(_HALF, "ledger balances", seed, later)
    bank = (
        "First Prairie Bank",
        "Bluestem National",
        "Union Territory Bank",
        "Arkansas River Bank",
        "Sunflower Savings",
    )
    first, last = month_of(2024, (1, 2, 6, 11, 12)[seed], later)
    sheet = Sheet(house, size=house.choice((8.5, 9.0)), width=612, height=792)
    opening = invent_cents(rng, 500_000, 1_200_000)
    maker = Inventor(rng, _US_OTHERS, _US_INCOME, (), 0, 0.35, 60_000, 260_000)
    other = invent_both_ways(maker, (first, last), rng.randint(14, 22), opening)
    card = Inventor(rng, _US_CARDS, (), income=0, most_out=9_000).entries(first, last, rng.randint(12, 30), ZERO)
    entries = balanced(sorted([*other, *card], key=lambda each: each.day), opening)
    closing, added, taken = entries[-1].balance, total(entries, 1), total(entries, -1)
    sheet.line(50, bank[seed], size=16, bold=True)
    sheet.line(50, f"Your checking account for {first:%B %-d, %Y} to {last:%B %-d, %Y}")
    sheet.line(50, f"Account number: 0041 77{house.randint(10, 99)} 9018")
    sheet.down(12)
    sheet.line(50, "Account summary", size=12, bold=True)
    for kind, label, amount in (
        ("opening", f"Beginning balance on {first:%B %-d, %Y}", opening),
        ("deposits", "Deposits and other additions", added),
        ("withdrawals", "Withdrawals and other subtractions", taken),
        ("closing", f"Ending balance on {last:%B %-d, %Y}", closing),
    ):
        mark = "$" if kind in ("opening", "closing") else ""
        sheet.pair(50, label, 330, f"{mark}{figure(amount)}", bold=kind == "closing")
        sheet.note(kind, amount)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Date",)),
            Column("text", 110, "l", ("Description",)),
            Column("amount", 560, "r", ("Amount",)),
        ),
    )
    day = house.choice(("%m/%d/%y", "%m/%d"))
    table = Table(
        sheet, columns, lambda each: {"date": each.day.strftime(day), "amount": figure(each.amount)}, extent=(45, 565)
    )

    def section(title: str, ends: str, kind: str, some: list[Entry]) -> None:
        sheet.need(sheet.step * 8)
        sheet.down(12)
        sheet.line(50, title, size=11, bold=True)
        sheet.down(4)
        table.print(some)
        sheet.need(sheet.step * 2)
        sheet.pair(50, ends, 560, f"{'-' if total(some) < 0 else ''}${figure(abs(total(some)))}", bold=True)
        sheet.note(kind, total(some))

    section(
        "Deposits and other additions",
        "Total deposits and other additions",
        "deposits",
        [each for each in entries if each.amount > 0],
    )
    section(
        "Withdrawals and other subtractions",
        "Total other subtractions",
        "subtotal",
        [each for each in entries if each.amount < 0 and each.lines[0] not in _US_CARDS],
    )
    number = house.randint(1000, 9999)
    section(
        f"Card account # XXXX XXXX XXXX {number}",
        f"Subtotal for card account # XXXX XXXX XXXX {number}",
        "subtotal",
        [each for each in entries if each.lines[0] in _US_CARDS],
    )
    sheet.pair(50, "Total withdrawals and other subtractions", 560, f"-${figure(-taken)}", bold=True)
    sheet.note("withdrawals", taken)
    sheet.need(sheet.step * 14)
    sheet.down(14)
    sheet.line(50, "Daily ledger balances", size=11, bold=True)
    for x in (50, 230, 410):
        sheet.write(x, "Date", bold=True)
        sheet.write(x + 130, "Balance ($)", "r", bold=True)
    sheet.down(sheet.step)
    ends = {each.day: each.balance for each in entries}
    for number, (when, balance) in enumerate(ends.items()):
        x = (50, 230, 410)[number % 3]
        sheet.write(x, f"{when:%m/%d}")
        sheet.write(x + 130, figure(balance), "r")
        if number % 3 == 2:
            sheet.down(sheet.step)
    return sheet.finish(rng)


def _kontostand(seed: int, later: int) -> Statement:
    """Draw a German giro account: signed amounts, a booking's kind above its details, the balance before and after."""
    house, rng = seeded(_HALF, "kontostand", seed, later)
    bank = (
        "Sparkasse Heidemoor",
        "Kreissparkasse Elbwinkel",
        "Stadtsparkasse Plön-Süd",
        "Nordkasse Timm",
        "Sparkasse Aue",
    )
    first, last = month_of(2024, (1, 3, 8, 12, 5)[seed], later)
    sheet = Sheet(house, size=house.choice((8.5, 9.0)), font="helv")
    opening = invent_cents(rng, 250_000, 700_000)
    maker = Inventor(rng, _SPARKASSE, _SPARKASSE_INCOME, _SPARKASSE_MORE, 1.0, 0.2, 30_000, 290_000)
    entries = invent_both_ways(maker, (first, last), rng.randint(24, 44), opening)
    closing = entries[-1].balance
    is_behind = seed % 2 == 1

    def signed(amount: Decimal) -> str:
        if is_behind:
            return _german(abs(amount)) + ("-" if amount < 0 else "+")
        return _german(amount)

    sheet.line(50, bank[seed], size=15, bold=True)
    sheet.down(6)
    sheet.line(330, f"Kontoauszug {first.month}/{first.year}", bold=True)
    sheet.line(330, f"Girokonto DE{house.randint(10, 99)} 2145 0990 0041 77{house.randint(10, 99)}")
    sheet.down(18)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Datum",)),
            Column("text", 125, "l", ("Erläuterung",)),
            Column("amount", 540, "r", (house.choice(("Betrag EUR", "Betrag in EUR", "Soll- / Haben+ EUR")),)),
        ),
    )
    table = Table(sheet, columns, lambda each: {"date": f"{each.day:%d.%m.%Y}", "amount": signed(each.amount)})
    before = first - timedelta(days=house.randint(1, 3))
    cells = {"text": f"Kontostand am {before:%d.%m.%Y}, Auszug Nr. {before.month}", "amount": signed(opening)}
    sheet.note("opening", opening)
    print_after(table, cells, entries)
    sheet.need(sheet.step * 5)
    sheet.down(6)
    sheet.write(125, f"Kontostand am {last:%d.%m.%Y} um 20:04 Uhr", bold=True)
    sheet.line(columns[2].x, signed(closing), "r", bold=True)
    sheet.note("closing", closing)
    sheet.down(10)
    sheet.line(50, "Ihr Dispositionskredit: 3.000,00 EUR zu 11,25 % p. a. Anzahl Anlagen: 0", size=7)
    sheet.footer = lambda number, count: f"Seite {number} von {count}"
    return sheet.finish(rng)


def _solde(seed: int, later: int) -> Statement:
    """Draw a French account: day and month only, the value date in the middle, totals of both columns."""
    house, rng = seeded(_HALF, "solde", seed, later)
    bank = (
        "Banque de la Corniche",
        "Crédit Garrigue",
        "Caisse du Littoral",
        "Société des Calanques",
        "Banque Trois Pins",
    )
    first, last = cycle_of(2024, (2, 1, 5, 9, 1)[seed], (6, 19, 4, 26, 11)[seed], later)
    sheet = Sheet(house, size=house.choice((8.5, 9.0)), font="helv")
    opening = invent_cents(rng, 300_000, 800_000)
    maker = Inventor(rng, _FRENCH, _FRENCH_INCOME, _FRENCH_MORE, 0.45, 0.22, 32_000, 240_000, lag=2)
    entries = invent_both_ways(maker, (first, last), rng.randint(28, 52), opening)
    closing, debited, credited = entries[-1].balance, -total(entries, -1), total(entries, 1)
    sheet.line(50, bank[seed], size=15, bold=True)
    sheet.line(50, "RELEVÉ DE COMPTE CHÈQUES", size=11, bold=True)
    sheet.line(50, f"du {first:%d/%m/%Y} au {last:%d/%m/%Y}")
    sheet.line(50, f"RIB 30004 0{house.randint(1000, 9999)} 00017 22  Monnaie du compte : EUR")
    sheet.down(14)
    day = house.choice(("%d.%m", "%d/%m", "%d %m"))
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Date",)),
            Column("text", 95, "l", (house.choice(("Nature des opérations", "Libellé", "Opérations")),)),
            Column("value", 345, "l", ("Valeur",)),
            Column("out", 465, "r", ("Débit",)),
            Column("in", 545, "r", ("Crédit",)),
        ),
    )
    table = Table(
        sheet,
        columns,
        lambda each: {
            "date": each.day.strftime(day),
            "value": each.value_day.strftime(day),
            "in" if each.amount > 0 else "out": _french(each.amount),
        },
    )
    start = f"SOLDE CRÉDITEUR AU {first - timedelta(days=1):%d.%m.%Y}"
    sheet.note("opening", opening)
    print_after(table, {"text": start, "in": _french(opening)}, entries)
    sheet.need(sheet.step * 4)
    table.row({"text": "TOTAL DES OPÉRATIONS", "out": _french(debited), "in": _french(credited)}, bold=True)
    sheet.note("withdrawals", debited)
    sheet.note("deposits", credited)
    sheet.down(sheet.step)
    table.row({"text": f"SOLDE CRÉDITEUR AU {last:%d.%m.%Y}", "in": _french(closing)}, bold=True)
    sheet.note("closing", closing)
    sheet.down(26)
    sheet.line(50, "Garantie des dépôts : 100 000,00 EUR par client. Médiateur : voir nos conditions.", size=7)
    sheet.footer = lambda number, count: f"P. {number}/{count}"
    return sheet.finish(rng)


def _closing_balances(seed: int, later: int) -> Statement:
    """Draw an Indian savings account: reference numbers, value dates, a balance in every row, a summary of counts."""
    house, rng = seeded(_HALF, "closing balances", seed, later)
    bank = ("Deccan Commerce Bank", "Vindhya Bank Ltd", "Konkan First Bank", "Nilgiri Bank", "Malwa Mercantile Bank")[
        seed
    ]
    first, last = month_of(2024, (1, 4, 8, 11, 12)[seed], later)
    sheet = Sheet(house, size=7.5, leading=1.5)
    opening = invent_cents(rng, 8_000_000, 30_000_000)
    maker = Inventor(rng, _NARRATIONS, _NARRATION_INCOME, _NARRATION_MORE, 0.6, 0.25, 1_500_000, 9_000_000)
    entries = invent_both_ways(maker, (first, last), rng.randint(30, 60), opening)
    closing, debited, credited = entries[-1].balance, -total(entries, -1), total(entries, 1)

    def lakhs(amount: Decimal) -> str:
        return figure(amount, indian=True)

    sheet.line(50, bank, size=14, bold=True)
    sheet.line(50, f"Account No : 0041{house.randint(10**8, 10**9 - 1)}   IFSC : DECN0000417   Branch : MG ROAD")
    sheet.line(50, f"Statement of account   From : {first:%d/%m/%Y}   To : {last:%d/%m/%Y}", bold=True)
    sheet.down(12)
    columns = moved(
        house,
        (
            Column("date", 45, "l", ("Date",)),
            Column("text", 90, "l", ("Narration",)),
            Column("reference", 262, "l", ("Chq./Ref.No.",)),
            Column("value", 335, "l", ("Value Dt",)),
            Column("out", 432, "r", ("Withdrawal Amt.",)),
            Column("in", 494, "r", ("Deposit Amt.",)),
            Column("balance", 558, "r", ("Closing Balance",)),
        ),
        1.0,
    )
    references = {id(each): f"{rng.randint(10**11, 10**12 - 1):016d}" for each in entries}
    table = Table(
        sheet,
        columns,
        lambda each: {
            "date": f"{each.day:%d/%m/%y}",
            "reference": references[id(each)],
            "value": f"{each.value_day:%d/%m/%y}",
            "in" if each.amount > 0 else "out": lakhs(abs(each.amount)),
            "balance": lakhs(each.balance),
        },
        extent=(40, 562),
    )
    table.print(entries)
    sheet.need(sheet.step * 6)
    sheet.down(10)
    sheet.line(45, "STATEMENT SUMMARY :-", bold=True)
    heads = ("Opening Balance", "Dr Count", "Cr Count", "Debits", "Credits", "Closing Bal")
    incomes = sum(each.amount > 0 for each in entries)
    texts = (lakhs(opening), str(len(entries) - incomes), str(incomes), lakhs(debited), lakhs(credited), lakhs(closing))
    for x, head, text in zip((110, 180, 240, 330, 430, 540), heads, texts, strict=True):
        sheet.write(x, head, "r", bold=True)
        sheet.write(x, text, "r", y=sheet.y + sheet.step)
    for kind, amount in (("opening", opening), ("withdrawals", debited), ("deposits", credited), ("closing", closing)):
        sheet.note(kind, amount)
    sheet.down(sheet.step * 3)
    sheet.line(
        45, "Contents of this statement will be considered correct if no error is reported within 30 days.", size=6.5
    )
    return sheet.finish(rng)


def _cardmembers(seed: int, later: int) -> Statement:
    """Draw an American charge card: payments, charges of each member with a total, fees, interest, and a rate table."""
    house, rng = seeded(_HALF, "cardmembers", seed, later)
    bank = ("Rocky Ridge Card", "Continental Divide", "Summit Charge Card", "Four Corners Card", "Mile High Rewards")[
        seed
    ]
    first, last = cycle_of(2024, (1, 4, 8, 10, 12)[seed], house.randint(6, 27), later)
    sheet = Sheet(house, size=house.choice((8.0, 8.5)), width=612, height=792)
    opening = -invent_cents(rng, 60_000, 500_000)
    members = _MEMBERS[: house.randint(2, 3)]
    paid = [Entry(first + timedelta(days=rng.randint(4, 20)), ("ONLINE PAYMENT - THANK YOU",), -opening, ZERO, first)]
    credit = rng.random() < 0.6
    if credit:
        lines = (rng.choice(_CHARGES), "CREDIT FOR RETURN")
        paid.append(Entry(last - timedelta(days=2), lines, invent_cents(rng, 900, 9_000), ZERO, last))
    maker = Inventor(rng, _CHARGES, (), _CHARGES_MORE, 0.35, 0, 45_000)
    charges = {each: maker.entries(first, last, rng.randint(7, 18), ZERO) for each in members}
    fees = [Entry(last, ("LATE PAYMENT FEE",), -Decimal("29.00"), ZERO, last)]
    interest = [Entry(last, ("INTEREST CHARGE ON PURCHASES",), -invent_cents(rng, 300, 6_000), ZERO, last)]
    spent = -sum((total(each) for each in charges.values()), ZERO)
    closing = opening + total(paid) - spent + total(fees) + total(interest)
    sheet.line(50, bank, size=18, bold=True)
    sheet.pair(
        50, f"{members[0]}   Account ending 7-{house.randint(10000, 99999)}", 560, f"Closing date {last:%m/%d/%y}"
    )
    sheet.line(
        50, f"Billing period {first:%m/%d/%y} to {last:%m/%d/%y}; payment due {last + timedelta(days=25):%m/%d/%y}"
    )
    sheet.down(14)
    sheet.line(330, "Account Summary", size=11, bold=True)
    for kind, label, amount in (
        ("opening", "Previous Balance", opening),
        ("deposits", "Payments/Credits", total(paid)),
        ("subtotal", "New Charges", -spent),
        ("subtotal", "Fees", total(fees)),
        ("subtotal", "Interest Charged", total(interest)),
        ("closing", "New Balance", closing),
    ):
        mark = {"deposits": "-", "subtotal": "+"}.get(kind, "")
        sheet.pair(330, label, 560, f"{mark}${figure(abs(amount))}", bold=kind == "closing")
        sheet.note(kind, amount)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Date",)),
            Column("text", 110, "l", ("Description",)),
            Column("amount", 560, "r", ("Amount",)),
        ),
    )

    def money(entry: Entry) -> str:
        return f"{'-' if entry.amount > 0 else ''}${figure(abs(entry.amount))}"

    table = Table(
        sheet, columns, lambda each: {"date": f"{each.day:%m/%d/%y}", "amount": money(each)}, extent=(45, 565)
    )

    def section(title: str, end: str, kind: str, some: list[Entry]) -> None:
        sheet.need(sheet.step * 8)
        sheet.down(10)
        sheet.line(50, title, size=11, bold=True)
        table.print(some)
        sheet.need(sheet.step)
        sheet.pair(50, end, 560, f"{'-' if total(some) > 0 else ''}${figure(abs(total(some)))}", bold=True)
        sheet.note(kind, total(some))

    section("Payments and Credits", "Total Payments and Credits", "deposits", paid)
    for member, some in charges.items():
        section(f"New Charges   {member}", f"Total for {member}", "subtotal", some)
    sheet.pair(50, "Total New Charges", 560, f"${figure(spent)}", bold=True)
    sheet.note("subtotal", -spent)
    section("Fees", "Total Fees for this Period", "subtotal", fees)
    section("Interest Charged", "Total Interest Charged for this Period", "subtotal", interest)
    sheet.need(sheet.step * 8)
    sheet.down(14)
    sheet.line(50, "Interest Charge Calculation", size=11, bold=True)
    for x, texts in (
        (50, ("Type of balance", "Purchases", "Cash Advances")),
        (300, ("Annual Percentage Rate", "21.24% (v)", "29.99% (v)")),
        (430, ("Balance subject to rate", f"${figure(invent_cents(rng, 40_000, 90_000))}", "$0.00")),
    ):
        for number, text in enumerate(texts):
            sheet.write(x, text, y=sheet.y + number * sheet.step, bold=not number)
    return sheet.finish(rng)


def _saldo_do_dia(seed: int, later: int) -> Statement:
    """Draw a Brazilian account: a minus behind debits and, after each day, a line with the day's balance."""
    house, rng = seeded(_HALF, "saldo do dia", seed, later)
    bank = ("Banco Ipê", "Banco Serrano S.A.", "Banco do Vale", "Caixa Praça XV", "Banco Otávio Lima")[seed]
    first, last = month_of(2024, (1, 3, 7, 10, 12)[seed], later)
    sheet = Sheet(house, size=house.choice((8.5, 9.0)), font="helv")
    opening = invent_cents(rng, 250_000, 900_000)
    days = [first + timedelta(days=each) for each in sorted(rng.sample(range(28), 12))]
    maker = Inventor(rng, _BRAZILIAN, _BRAZILIAN_INCOME, income=0.22, most_out=38_000, most_in=310_000, days=days)
    entries = invent_both_ways(maker, (first, last), rng.randint(26, 44), opening)
    closing = entries[-1].balance

    def signed(amount: Decimal) -> str:
        return _german(abs(amount)) + ("-" if amount < 0 else "")

    sheet.line(50, bank, size=16, bold=True)
    sheet.line(50, "extrato de conta corrente", size=11, bold=True)
    sheet.line(50, f"agência 0417   conta {house.randint(10000, 99999)}-3   período {first:%d/%m/%Y} a {last:%d/%m/%Y}")
    sheet.down(14)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("data",)),
            Column("text", 110, "l", (house.choice(("lançamentos", "descrição", "histórico")),)),
            Column("amount", 430, "r", ("valor (R$)",)),
            Column("saldo", 545, "r", ("saldo (R$)",)),
        ),
    )
    day = "%d/%m" if seed % 2 else "%d/%m/%Y"
    table = Table(sheet, columns, lambda each: {"date": each.day.strftime(day), "amount": signed(each.amount)})
    table.head()
    table.row({"text": "SALDO ANTERIOR", "saldo": signed(opening)})
    sheet.note("opening", opening)
    sheet.down(sheet.step)
    sheet.running_head = table.head
    plain = replace(table, has_head=False)
    for when in sorted({each.day for each in entries}):
        some = [each for each in entries if each.day == when]
        plain.print(some)
        sheet.need(sheet.step)
        table.row({"date": when.strftime(day), "text": "SALDO DO DIA", "saldo": signed(some[-1].balance)}, bold=True)
        sheet.note("carried", some[-1].balance)
        sheet.down(sheet.step)
    sheet.running_head = None
    sheet.need(sheet.step * 3)
    sheet.down(8)
    sheet.pair(50, f"saldo em conta corrente em {last:%d/%m/%Y}", columns[3].x, signed(closing), bold=True)
    sheet.note("closing", closing)
    sheet.line(50, "limite da conta contratado 1.500,00   CET 151,8% a.a.   central 24 horas 4004 0000", size=7)
    sheet.footer = lambda number, count: f"página {number} de {count}"
    return sheet.finish(rng)


def _home_loan(seed: int, later: int) -> Statement:
    """Draw a scanned Australian home loan: a balance owed that is marked DR, interest charged, repayments credited."""
    house, rng = seeded(_HALF, "home loan", seed, later)
    bank = (
        "Banksia Home Loans",
        "Coolabah Bank",
        "Wattle Mutual",
        "Southern Cross Credit",
        "Jacaranda Building Society",
    )
    first, _ = month_of(2023, (7, 10, 1, 4, 11)[seed], later * 6)
    _, last = month_of(first.year, first.month, 5)
    sheet = Sheet(house, size=9.5, font="helv", leading=1.6)
    opening = -invent_cents(rng, 18_000_000, 42_000_000)
    fortnights = [first + timedelta(days=each) for each in range(rng.randint(3, 13), (last - first).days, 14)]
    repaid = invent_cents(rng, 90_000, 160_000)
    entries = [Entry(each, ("Repayment from 0417 8812",), repaid, ZERO, each) for each in fortnights]
    for number in range(6):
        _, end = month_of(first.year, first.month, number)
        entries.append(Entry(end, ("Interest charged",), -invent_cents(rng, 95_000, 180_000), ZERO, end))
        if number == 2:
            entries.append(Entry(end, ("Loan service fee",), -Decimal("8.00"), ZERO, end))
    extra = fortnights[4] + timedelta(days=1)
    entries.append(Entry(extra, ("Extra repayment",), invent_cents(rng, 20_000, 300_000), ZERO, extra))
    entries = balanced(sorted(entries, key=lambda each: each.day), opening)
    closing, debited, credited = entries[-1].balance, -total(entries, -1), total(entries, 1)

    def owed(balance: Decimal) -> str:
        return f"${figure(abs(balance))} DR"

    sheet.line(50, bank[seed], size=17, bold=True)
    sheet.line(50, "Home Loan statement", size=12, bold=True)
    sheet.line(50, f"Statement period {first:%-d %b %Y} - {last:%-d %b %Y}")
    sheet.line(50, f"Account number 062{house.randint(100, 999)} 1044 7719   Interest rate 6.14% p.a.")
    sheet.down(12)
    for kind, label, text, amount in (
        ("opening", "Opening balance", owed(opening), opening),
        ("withdrawals", "Total debits", f"${figure(debited)}", debited),
        ("deposits", "Total credits", f"${figure(credited)}", credited),
        ("closing", "Closing balance", owed(closing), closing),
    ):
        sheet.pair(50, label, 300, text)
        sheet.note(kind, amount)
    sheet.down(16)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Date",)),
            Column("text", 130, "l", ("Transaction",)),
            Column("out", 360, "r", ("Debit",)),
            Column("in", 440, "r", ("Credit",)),
            Column("balance", 550, "r", ("Balance",)),
        ),
    )
    day = house.choice(("%d %b %Y", "%d/%m/%Y"))
    table = Table(
        sheet, columns, lambda each: {"date": each.day.strftime(day), "balance": owed(each.balance)} | _in_columns(each)
    )
    table.print(entries)
    sheet.down(12)
    sheet.line(
        50, "Interest is worked out each day on the closing balance and charged on the last day of the month.", size=8
    )
    return sheet.finish(rng, scan=True)


def _ordinary_deposit(seed: int, later: int) -> Statement:
    """Draw a scanned Japanese account in English: the year first, and yen without decimals."""
    house, rng = seeded(_HALF, "ordinary deposit", seed, later)
    bank = ("Minato Trust Bank", "Hoshi Bank, Ltd.", "Nagisa Bank", "Kitano Mutual Bank", "Sakura Bay Bank")[seed]
    first, last = month_of(2024, (1, 2, 6, 9, 12)[seed], later)
    sheet = Sheet(house, size=9.5, font="helv", leading=1.6)
    opening = invent_cents(rng, 400_000, 1_500_000)
    maker = Inventor(rng, _YEN, _YEN_INCOME, income=0.25, most_out=60_000, most_in=320_000)
    drawn = invent_both_ways(maker, (first, last), rng.randint(18, 32), opening)
    opening *= 100
    entries = balanced([replace(each, amount=each.amount * 100) for each in drawn], opening)
    closing, out, paid = entries[-1].balance, -total(entries, -1), total(entries, 1)
    sheet.line(50, bank, size=17, bold=True)
    sheet.line(50, f"Statement of Account   {first:%Y/%m/%d} - {last:%Y/%m/%d}")
    sheet.line(50, f"Yen Ordinary Deposit   Branch 014   Account No. {house.randint(10**6, 10**7 - 1)}   Currency: JPY")
    sheet.down(16)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Date",)),
            Column("text", 135, "l", (house.choice(("Transaction", "Particulars")),)),
            Column("out", 370, "r", (house.choice(("Withdrawal", "Withdrawals")),)),
            Column("in", 455, "r", (house.choice(("Deposit", "Deposits")),)),
            Column("balance", 545, "r", ("Balance",)),
        ),
    )
    table = Table(
        sheet,
        columns,
        lambda each: {
            "date": f"{each.day:%Y/%m/%d}",
            "in" if each.amount > 0 else "out": _yen(each.amount),
            "balance": _yen(each.balance),
        },
    )
    print_after(table, {"text": "Balance brought forward", "balance": _yen(opening)}, entries)
    sheet.need(sheet.step * 3)
    table.row({"text": "Total", "out": _yen(out), "in": _yen(paid), "balance": _yen(closing)}, bold=True)
    for kind, amount in (("opening", opening), ("withdrawals", out), ("deposits", paid), ("closing", closing)):
        sheet.note(kind, amount)
    sheet.down(26)
    sheet.line(50, "Deposits are protected up to JPY 10,000,000 by the deposit insurance system.", size=8)
    return sheet.finish(rng, scan=True)


def _unmarked_card(seed: int, later: int) -> Statement:
    """Draw a prepaid card's list: no marks, no opening balance, and names that tell no direction."""
    house, rng = seeded(_HALF, "unmarked card", seed, later)
    bank = ("Peregrine Prepaid", "Otter Card", "Nimbus Wallet Card", "Lantern Card", "Harbour Prepaid")[seed]
    first, last = month_of(2024, (2, 5, 6, 9, 11)[seed], later)
    sheet = Sheet(house, size=house.choice((8.5, 9.0)))
    opening = invent_cents(rng, 60_000, 200_000)
    maker = Inventor(rng, _NEUTRAL, _NEUTRAL, income=0.3, most_out=8_000, most_in=20_000)
    entries = invent_both_ways(maker, (first, last), rng.randint(20, 42), opening)
    sheet.line(50, bank, size=17, bold=True)
    sheet.line(50, f"Card activity {first:%-d %B %Y} - {last:%-d %B %Y}   Card **** {house.randint(1000, 9999)}")
    sheet.pair(50, f"Available on {last:%-d %B %Y}", 300, f"£{figure(entries[-1].balance)}", bold=True)
    sheet.note("closing", entries[-1].balance)
    sheet.down(14)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Date",)),
            Column("text", 140, "l", (house.choice(("Details", "Activity", "Reference")),)),
            Column("amount", 540, "r", (house.choice(("Amount", "GBP", "Amount (£)")),)),
        ),
    )
    Table(sheet, columns, lambda each: {"date": f"{each.day:%d %b %Y}", "amount": figure(abs(each.amount))}).print(
        entries
    )
    sheet.down(14)
    sheet.line(50, "Replacement card £5.00   Cash machine £1.50   Paper statement £1.00", size=7)
    return sheet.finish(rng, signs_proven=False)


def _days_or_months(seed: int, later: int) -> Statement:
    """Draw a savings account whose dates rise as days of one month and as months of one year."""
    house, rng = seeded(_HALF, "days or months", seed, later)
    bank = ("Ardmore Savings", "Tern Island Saver", "Friendly Thrift", "Mariner Savings Bank", "Copperfield Saver")[
        seed
    ]
    first, _ = month_of(2024, seed + 3, later)
    sheet = Sheet(house, size=house.choice((9.0, 9.5)))
    opening = invent_cents(rng, 200_000, 900_000)
    days = sorted(rng.sample(range(1, 13), rng.randint(8, 11)))
    maker = Inventor(rng, _SAVER, _SAVER, income=0.5, most_out=60_000, most_in=90_000)
    drawn = invent_both_ways(maker, (first, first), len(days), opening)
    whens = [date(first.year, first.month, each) for each in days]
    entries = [replace(each, day=when, value_day=when) for each, when in zip(drawn, whens, strict=True)]
    closing = entries[-1].balance
    sheet.line(50, bank, size=16, bold=True)
    sheet.line(50, f"Reserve account {house.randint(10**7, 10**8 - 1)}   Sheet {house.randint(11, 60)}")
    sheet.down(12)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Date",)),
            Column("text", 125, "l", ("Details",)),
            Column("out", 360, "r", (house.choice(("Withdrawn", "Paid out")),)),
            Column("in", 450, "r", (house.choice(("Deposited", "Paid in")),)),
            Column("balance", 545, "r", ("Balance",)),
        ),
    )
    day = house.choice(("%d/%m/%y", "%d/%m/%Y", "%d-%m-%y"))
    table = Table(
        sheet,
        columns,
        lambda each: {"date": each.day.strftime(day), "balance": figure(each.balance)} | _in_columns(each),
    )
    sheet.note("opening", opening)
    print_after(table, {"text": "Brought forward", "balance": figure(opening)}, entries)
    table.row({"text": "Closing balance", "balance": figure(closing)}, bold=True)
    sheet.note("closing", closing)
    sheet.down(24)
    sheet.line(50, "Balance tier        Gross rate", bold=True)
    for tier, rate in (("up to 4,999.99", "1.10 %"), ("5,000.00 and over", "1.85 %")):
        sheet.pair(50, tier, 220, rate)
    return sheet.finish(rng, dates_certain=False)


def _middle_page_lost(seed: int, later: int) -> Statement:
    """Draw a business account without running balances, of which the second of at least three pages is missing."""
    house, rng = seeded(_HALF, "middle page lost", seed, later)
    bank = ("Don Valley Business Bank", "Hallam Commercial", "Trent & Dove", "Weir Business Banking", "Loxley Bank")[
        seed
    ]
    first, last = month_of(2024, (1, 4, 7, 9, 10)[seed], later)
    sheet = Sheet(house, size=8.5)
    opening = invent_cents(rng, 1_500_000, 4_000_000)
    maker = Inventor(rng, _TRADE, _TRADE_INCOME, _TRADE_MORE, 0.3, 0.35, 180_000, 420_000, lag=2)
    entries = invent_both_ways(maker, (first, last), rng.randint(66, 84), opening)
    closing, debited, credited = entries[-1].balance, -total(entries, -1), total(entries, 1)
    sheet.line(50, bank, size=16, bold=True)
    sheet.line(50, f"Business current account   {first:%-d %B %Y} to {last:%-d %B %Y}")
    sheet.pair(50, "Opening balance", 300, f"£{figure(opening)}")
    sheet.note("opening", opening)
    sheet.down(10)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Entry date",)),
            Column("value", 115, "l", ("Value date",)),
            Column("text", 185, "l", ("Details",)),
            Column("out", 460, "r", ("Debits",)),
            Column("in", 545, "r", ("Credits",)),
        ),
    )
    table = Table(
        sheet,
        columns,
        lambda each: {"date": f"{each.day:%-d %b %Y}", "value": f"{each.value_day:%-d %b %Y}"} | _in_columns(each),
        per_page=28,
    )
    table.print(entries)
    sheet.need(sheet.step * 4)
    table.row({"text": "Totals", "out": figure(debited), "in": figure(credited)}, bold=True)
    sheet.note("withdrawals", debited)
    sheet.note("deposits", credited)
    sheet.down(sheet.step)
    sheet.pair(185, f"Closing balance on {last:%-d %B %Y}", 545, f"£{figure(closing)}", bold=True)
    sheet.note("closing", closing)
    sheet.footer = lambda number, count: f"Sheet {number} of {count}"
    return sheet.finish(rng, has_sums_right=False, lost=2)


#: Every function draws one statement of a bank (its seed) and a month (0, or 1 for the next).
SHAPES: dict[str, DrawShape] = name_shapes(
    (
        _type_codes,
        _ledger_balances,
        _kontostand,
        _solde,
        _closing_balances,
        _cardmembers,
        _saldo_do_dia,
        _home_loan,
        _ordinary_deposit,
        _unmarked_card,
        _days_or_months,
        _middle_page_lost,
    )
)
