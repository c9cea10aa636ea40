"""The open half: shapes that may be looked at while a reader of statements is built."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal

from benchmarks.first_contact.statement_shapes.drawing import (
    ZERO,
    Cells,
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
    month_of,
    moved,
    total,
)

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_SPANISH = ("ENE", "FEB", "MAR", "ABR", "MAY", "JUN", "JUL", "AGO", "SEP", "OCT", "NOV", "DIC")

_SHOPS = (
    "Bramble & Finch Books", "Tidewater Fuel 0417", "Larkspur Grocers", "Copper Kettle Cafe", "Northgate Hardware",
    "Pinecone Outfitters", "Velvet Lane Cinema", "Quarry Road Pharmacy", "Skipjack Ferries", "Mulberry Toys",
    "Old Mill Bakery", "Gable End Furniture", "Rookery Sports", "Blue Heron Noodles", "Kestrel Mobile",
)  # fmt: skip
_CARD_INCOME = ("Payment received, thank you", "Refund Pinecone Outfitters", "Refund Gable End Furniture")
_HOME = (
    "D/D Harbourview Energy", "POS Larkspur Grocers", "ATM Quay Street", "S/O Rent 14 Elm Row", "POS Tidewater Fuel",
    "D/D Clearbrook Water", "POS Copper Kettle Cafe", "D/D Kestrel Mobile", "POS Rookery Sports", "Fee quarterly",
)  # fmt: skip
_HOME_INCOME = ("Salary Oakhurst Joinery", "Lodgement branch 11", "Transfer from saver", "Refund Skipjack Ferries")
_GERMAN = (
    "Lastschrift Lichtquell Energie", "Kartenzahlung Krämer am Tor", "Dauerauftrag Miete Lindenhof",
    "Kartenzahlung Zweirad Ostermann", "Lastschrift Fernklang Telefon", "Auszahlung Automat Marktplatz",
    "Überweisung Verein Bergfreunde",
)  # fmt: skip
_GERMAN_INCOME = ("Gehalt Tischlerei Vogelsang", "Erstattung Kasse Nordlicht", "Gutschrift Flohmarkt")
_GERMAN_MORE = (
    "Mandat LQ-77120", "Danke für Ihren Einkauf", "Kundennummer 558 201", "Verwendung Haus 4 links", "Abschlag 03",
)  # fmt: skip
_DUTCH = (
    "Betaalautomaat Bakker Klaver", "Incasso Polderstroom", "Geldautomaat Dorpsplein", "Overboeking Huur Zeedijk 8",
    "Betaalautomaat Fietshuis Wolf", "Incasso Meerwater", "Betaalautomaat Boekerij",
)  # fmt: skip
_DUTCH_INCOME = ("Salaris Drukkerij Vink", "Terugbetaling Polderstroom", "Overboeking van spaarrekening")
_INDIAN = (
    "UPI/Neem Tree Provisions/40217", "NEFT DR/Saffron Interiors", "ATM WDL Lotus Circle", "ECS/Marigold Power",
    "UPI/Peacock Sweets/55190", "IMPS/Rent Jasmine Villa", "POS/Banyan Electronics",
)  # fmt: skip
_INDIAN_INCOME = ("NEFT/Blue Lotus Software", "CASH DEP Temple Road", "UPI/Kavita Textiles/30018")
_INDIAN_MORE = ("Ref no 000418827315", "Branch Temple Road 0417", "Towards flat 3B maintenance", "Value given same day")
_ITALIAN = (
    "Pagamento carta Osteria Tre Pini", "Ordine permanente Affitto", "Addebito Luce del Lago", "Prelevamento Piazza",
    "Pagamento carta Cicli Monte", "Addebito Voce Telefonia", "Pagamento carta Libreria Gatto",
)  # fmt: skip
_ITALIAN_INCOME = ("Stipendio Falegnameria Riva", "Accredito rimborso", "Bonifico da cliente")
_SPANISH_SPENDS = (
    "COMPRA FRUTERIA LA PARRA", "RECIBO LUZ DEL VALLE", "CAJERO PLAZA MAYOR", "COMPRA ZAPATERIA RUIZ GIL",
    "RECIBO AGUAS CLARAS", "TRANSFERENCIA ALQUILER", "COMPRA LIBRERIA FARO",
)  # fmt: skip
_SPANISH_INCOME = ("NOMINA TALLERES OLMO", "ABONO DEVOLUCION COMPRA", "INGRESO EFECTIVO")


def _seeded(shape: str, seed: int, later: int) -> tuple[random.Random, random.Random]:
    """Return what is fixed for the bank, and what is new in every month."""
    return random.Random(f"open {shape} {seed}"), random.Random(f"open {shape} {seed} {later}")


def _cents(rng: random.Random, least: int, most: int) -> Decimal:
    return Decimal(rng.randint(least, most)) / 100


def _slashed(day: date) -> str:
    return f"{day:%m/%d/%y}"


def _short(day: date) -> str:
    return f"{day.day} {_MONTHS[day.month - 1][:3]}"


def _long(day: date) -> str:
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"


def _card_with_frame(seed: int, later: int) -> Statement:
    """Draw charges without a mark, payments with a minus, the account's summary in a frame at the right."""
    house, rng = _seeded("card with frame", seed, later)
    bank = ("Orchard Street Card", "Palisade Rewards Card", "Mesa Verde Credit", "Tamarack Card Bank", "Gulfside Card")
    start, end = cycle_of(2023, 12 if seed % 2 else 4 + seed, house.randint(9, 21), later + 1)
    sheet = Sheet(house, size=house.choice((8.5, 9.0)), width=612, height=792)
    opening = -_cents(rng, 20_000, 400_000)
    maker = Inventor(rng, _SHOPS, _CARD_INCOME, income=0.12, most_out=30_000, most_in=90_000, lag=2)
    entries = maker.entries(start, end - timedelta(days=2), rng.randint(22, 48), opening)
    if not total(entries, 1):
        entries[3] = replace(entries[3], lines=(_CARD_INCOME[0],), amount=Decimal("250.00"))
    entries = balanced(entries, opening)
    closing, paid, spent = entries[-1].balance, total(entries, 1), -total(entries, -1)
    sheet.line(50, bank[seed], size=17, bold=True)
    sheet.line(50, f"Account ending in {house.randint(1000, 9999)}")
    sheet.down(10)
    due = end + timedelta(days=25)
    top = sheet.y
    sheet.pair(50, "Statement closing date", 250, _slashed(end))
    sheet.pair(50, "Payment due date", 250, _slashed(due))
    sheet.pair(50, "Minimum payment due", 250, f"${figure(_cents(rng, 2500, 9900))}")
    sheet.pair(50, "Credit limit", 250, "$12,000.00")
    after, sheet.y = sheet.y, top
    sheet.box(315, top - 14, 560, top + 5 * sheet.step + 4)
    sheet.write(325, "Account summary", bold=True)
    sheet.down(sheet.step)
    for label, text in (
        ("Previous balance", f"${figure(-opening)}"),
        ("Payments and other credits", f"-${figure(paid)}"),
        ("Purchases, fees and interest", f"+${figure(spent)}"),
        ("New balance", f"${figure(-closing)}"),
    ):
        sheet.pair(325, label, 550, text, bold=label == "New balance")
    sheet.note("opening", opening)
    sheet.note("deposits", paid)
    sheet.note("withdrawals", spent)
    sheet.note("closing", closing)
    sheet.y = max(after, sheet.y) + 30
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Trans", "date")),
            Column("value", 100, "l", ("Post", "date")),
            Column("text", 155, "l", ("", "Description of transaction")),
            Column("amount", 555, "r", ("", "Amount")),
        ),
    )
    sign = house.choice(("-$", "-"))
    Table(
        sheet,
        columns,
        lambda each: {
            "date": f"{each.day:%m/%d}",
            "value": f"{each.value_day:%m/%d}",
            "amount": f"{sign}{figure(each.amount)}" if each.amount > 0 else figure(-each.amount),
        },
        extent=(45, 560),
    ).print(entries)
    sheet.down(14)
    sheet.line(50, "Lost your card? Call us day or night. Interest is computed on the average daily balance.", size=7)
    return sheet.finish(rng)


def _card_in_sections(seed: int, later: int) -> Statement:
    """Draw a card's payments and spending without any mark under headings, the year only in the statement date."""
    house, rng = _seeded("card in sections", seed, later)
    bank = ("Fennel Card", "Whitby Lane Credit", "Thistle & Co Card", "Saltmarsh Card", "Curlew Finance Card")
    start, end = cycle_of(2023, 12, house.randint(8, 24), later + 1)
    sheet = Sheet(house, size=9.0)
    opening = -_cents(rng, 20_000, 200_000)
    maker = Inventor(rng, _SHOPS, ("Payment by direct debit", "Bank transfer received"), income=0.1, most_in=60_000)
    entries = maker.entries(start, end, rng.randint(15, 40), opening)
    entries[0] = replace(entries[0], lines=("Payment by direct debit",), amount=_cents(rng, 5_000, 20_000))
    entries = balanced(entries, opening)
    closing = entries[-1].balance
    sheet.line(300, bank[seed], "c", size=16, bold=True)
    sheet.down(12)
    sheet.line(50, f"Statement date: {_long(end)}")
    sheet.line(50, f"Please pay by {_long(end + timedelta(days=24))}")
    sheet.down(8)
    x = 50.0
    for label, amount, kind in (
        ("Balance from last statement", -opening, "opening"),
        ("Payments received", total(entries, 1), "deposits"),
        ("New spending", -total(entries, -1), "withdrawals"),
        ("Your new balance", -closing, "closing"),
    ):
        sheet.write(x, label, size=8)
        sheet.write(x, f"£{figure(amount)}", bold=True, y=sheet.y + 14)
        x += 125
        if kind == "opening":
            sheet.note("opening", opening)
        elif kind == "closing":
            sheet.note("closing", closing)
        elif kind == "deposits":
            sheet.note("deposits", amount)
        else:
            sheet.note("withdrawals", amount)
    sheet.down(46)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Date",)),
            Column("text", 110, "l", ("Details",)),
            Column("amount", 540, "r", ("Amount £",)),
        ),
    )
    for title, sign in (("Payments to your account", 1), ("What you spent", -1)):
        part = [each for each in entries if each.amount * sign > 0]
        sheet.need(80)
        sheet.line(50, title, size=11, bold=True)
        sheet.down(4)
        Table(
            sheet,
            columns,
            lambda each: {"date": _short(each.day), "amount": figure(abs(each.amount))},
            extent=(48, 545),
        ).print(part)
        sheet.write(columns[1].x, f"Total {title.lower()}", bold=True)
        sheet.write(columns[2].x, figure(abs(total(part))), "r", bold=True)
        sheet.note("subtotal", total(part))
        sheet.down(28)
    return sheet.finish(rng)


def _fleet_charges(seed: int, later: int) -> Statement:
    """Draw a fuel account that has only charges: subtotals by vehicle and the amount due."""
    house, rng = _seeded("fleet charges", seed, later)
    bank = ("Kauri Fleet Account", "Longdrive Fuel Credit", "Rimu Motor Account", "Waystation Fleet", "Tarmac Card")
    first, last = month_of(2024, 1 + seed, later)
    sheet = Sheet(house, size=9.0)
    sheet.line(50, bank[seed], size=15, bold=True)
    sheet.line(
        50, f"Account no. {house.randint(10**6, 10**7)}    Billing month: {_MONTHS[first.month - 1]} {first.year}"
    )
    sheet.line(50, f"Invoice date: {_slashed_day(last + timedelta(days=1))}")
    sheet.down(20)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Date",)),
            Column("text", 130, "l", ("Site and product",)),
            Column("mark", 400, "r", ("Litres",)),
            Column("amount", 540, "r", ("Charges NZ$",)),
        ),
    )
    products = ("Diesel Awanui", "Unleaded 91 Kaitaia Rd", "Car wash Hillcrest", "Diesel Port Rd", "Oil Hillcrest")
    grand = ZERO
    for number in range(house.randint(2, 4)):
        maker = Inventor(rng, products, products, income=0.0, most_out=18_000)
        maker.mark = lambda source: f"{source.randint(900, 7000) / 100:.2f}"
        part = maker.entries(first, last, rng.randint(5, 14), ZERO)
        sheet.need(90)
        sheet.line(50, f"Vehicle {'KLMPRT'[number]}WD {house.randint(100, 999)}", bold=True)
        Table(
            sheet,
            columns,
            lambda each: {"date": _slashed_day(each.day), "amount": figure(-each.amount)},
            is_newest_first=False,
        ).print(part)
        sheet.write(columns[1].x, "Subtotal for this vehicle")
        sheet.write(columns[3].x, figure(-total(part)), "r")
        sheet.note("subtotal", total(part))
        grand += total(part)
        sheet.down(24)
    sheet.need(60)
    sheet.rule(300, 545)
    sheet.write(300, "Total amount due", bold=True)
    sheet.write(columns[3].x, f"NZ${figure(-grand)}", "r", bold=True)
    sheet.note("due", grand)
    sheet.down(30)
    sheet.line(50, "We take this amount by direct debit on the 20th of the following month.", size=7.5)
    return sheet.finish(rng)


def _slashed_day(day: date) -> str:
    return f"{day.day:02}-{_MONTHS[day.month - 1][:3]}-{day.year}"


def _overdrawn(seed: int, later: int) -> Statement:
    """Draw an account in overdraft: DR behind debts, a date once a day, balances carried from page to page."""
    house, rng = _seeded("overdrawn", seed, later)
    bank = ("Bank of Clonderry", "Shannon Vale Bank", "Kilbracken Mutual", "Burren Coast Bank", "Liffeyside Bank")
    start, end = cycle_of(2023, 12, house.randint(5, 27), later + 1)
    sheet = Sheet(house, size=9.0, leading=house.choice((1.4, 1.6)))
    opening = _cents(rng, -60_000, 40_000)
    maker = Inventor(rng, _HOME, _HOME_INCOME, income=0.22, most_in=90_000)
    maker.days = sorted({start + timedelta(days=house.randint(0, 29)) for _ in range(16)})
    entries = maker.entries(start, end, rng.randint(34, 60), opening)

    def owing(amount: Decimal) -> str:
        return f"{figure(abs(amount))} DR" if amount < 0 else figure(amount)

    sheet.line(50, bank[seed], size=16, bold=True)
    sheet.line(50, "Current Account Statement")
    sheet.line(50, f"From {_long(start)} to {_long(end)}")
    sheet.line(50, f"Overdraft limit EUR 1,500.00   Account {house.randint(10**7, 10**8)}")
    sheet.down(16)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Date",)),
            Column("text", 105, "l", ("Transaction details",)),
            Column("out", 375, "r", ("Payments out",)),
            Column("in", 455, "r", ("Payments in",)),
            Column("balance", 548, "r", ("Balance",)),
        ),
    )
    table = Table(
        sheet,
        columns,
        lambda each: {
            "date": _short(each.day),
            "out" if each.amount < 0 else "in": figure(abs(each.amount)),
            "balance": owing(each.balance),
        },
        is_date_once=True,
        is_balance_once=True,
        per_page=house.randint(20, 26),
        carry_out=lambda amount: {"text": "BALANCE CARRIED FORWARD", "balance": owing(amount)},
        carry_in=lambda amount: {"text": "BALANCE BROUGHT FORWARD", "balance": owing(amount)},
    )
    sheet.write(105, "Opening balance")
    sheet.line(columns[4].x, owing(opening), "r")
    sheet.note("opening", opening)
    sheet.down(4)
    table.print(entries)
    sheet.down(6)
    sheet.write(105, "Closing balance", bold=True)
    sheet.line(columns[4].x, owing(entries[-1].balance), "r", bold=True)
    sheet.note("closing", entries[-1].balance)
    return sheet.finish(rng)


def _letters_s_h(seed: int, later: int) -> Statement:
    """Draw S and H in a column of their own, days without a year over New Year, receipts' numbers at the right."""
    house, rng = _seeded("letters S and H", seed, later)
    bank = (
        "Sparverein Rotbuchen",
        "Kreiskasse Aarental",
        "Lindauer Hofbank",
        "Genossenschaft Moorblick",
        "Elbtal Bank",
    )
    start, end = cycle_of(2024 if seed > 2 else 2023, 2 if seed > 2 else 12, house.randint(4, 20), later + 1)
    sheet = Sheet(house, size=8.8)
    sheet.footer = lambda number, count: f"Blatt {number} von {count}"
    opening = _cents(rng, 30_000, 500_000)
    maker = Inventor(rng, _GERMAN, _GERMAN_INCOME, _GERMAN_MORE, many=0.6, income=0.2, lag=2)
    maker.mark = lambda source: source.choice(("", "", f"{source.randint(100, 9999)}.{source.randint(10, 99)}"))
    entries = maker.entries(start, end, rng.randint(14, 34), opening)

    def lettered(amount: Decimal) -> str:
        return f"{figure(abs(amount), '.', ',')} {'S' if amount < 0 else 'H'}"

    sheet.line(545, bank[seed], "r", size=14, bold=True)
    sheet.line(50, f"Kontoauszug Nr. {end.month}/{end.year}")
    sheet.line(50, f"Zeitraum {start:%d.%m.%Y} - {end:%d.%m.%Y}   Kontonummer {house.randint(10**8, 10**9)}   EUR")
    sheet.down(16)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Buchungs-", "tag")),
            Column("value", 100, "l", ("Wert-", "stellung")),
            Column("text", 155, "l", ("", "Vorgang und Verwendung")),
            Column("mark", 430, "r", ("", "Beleg")),
            Column("amount", 520, "r", ("Umsatz", "EUR")),
            Column("side", 528, "l", ("", "S/H")),
        ),
        2.0,
    )
    sheet.write(155, f"Alter Saldo vom {start - timedelta(days=1):%d.%m.%Y}")
    sheet.line(535, lettered(opening), "r")
    sheet.note("opening", opening)
    sheet.down(6)
    Table(
        sheet,
        columns,
        lambda each: {
            "date": f"{each.day:%d.%m.}",
            "value": f"{each.value_day:%d.%m.}",
            "amount": figure(abs(each.amount), ".", ","),
            "side": "S" if each.amount < 0 else "H",
        },
        inner=1.25,
    ).print(entries)
    sheet.down(8)
    sheet.need(70)
    for label, amount in (("Summe Soll", total(entries, -1)), ("Summe Haben", total(entries, 1))):
        sheet.write(155, label)
        sheet.line(535, lettered(amount), "r")
        sheet.note("withdrawals" if amount < 0 else "deposits", abs(amount))
    sheet.write(155, f"Neuer Saldo vom {end:%d.%m.%Y}", bold=True)
    sheet.line(535, lettered(entries[-1].balance), "r", bold=True)
    sheet.note("closing", entries[-1].balance)
    return sheet.finish(rng)


def _af_bij(seed: int, later: int) -> Statement:
    """Draw a scanned Dutch statement: Af or Bij stands in a column, totals of both below."""
    house, rng = _seeded("Af and Bij", seed, later)
    bank = ("Polderbank", "Coöperatie Het Veen", "Grachtenbank", "Waddenkas", "Bank van Oosterdam")
    first, last = month_of(2024, 2 + seed, later)
    sheet = Sheet(house, size=10.0, font="helv", leading=1.6)
    sheet.footer = lambda number, count: f"Blad {number} van {count}"
    opening = _cents(rng, 30_000, 500_000)
    entries = Inventor(rng, _DUTCH, _DUTCH_INCOME, income=0.22).entries(first, last, rng.randint(10, 20), opening)
    sheet.line(50, bank[seed], size=17, bold=True)
    sheet.line(50, "Rekeningoverzicht")
    sheet.line(50, f"Periode {first:%d-%m-%Y} t/m {last:%d-%m-%Y}")
    sheet.down(10)
    sheet.pair(50, f"Beginsaldo op {first:%d-%m-%Y}", 520, figure(opening, ".", ","))
    sheet.note("opening", opening)
    sheet.down(16)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Datum",)),
            Column("text", 135, "l", ("Omschrijving",)),
            Column("side", 390, "l", ("Af/Bij",)),
            Column("amount", 520, "r", ("Bedrag EUR",)),
        ),
    )
    Table(
        sheet,
        columns,
        lambda each: {
            "date": f"{each.day:%d-%m-%Y}",
            "side": "Af" if each.amount < 0 else "Bij",
            "amount": figure(abs(each.amount), ".", ","),
        },
    ).print(entries)
    sheet.down(14)
    sheet.pair(135, "Totaal af", 520, figure(-total(entries, -1), ".", ","))
    sheet.note("withdrawals", -total(entries, -1))
    sheet.pair(135, "Totaal bij", 520, figure(total(entries, 1), ".", ","))
    sheet.note("deposits", total(entries, 1))
    sheet.pair(135, f"Eindsaldo op {last:%d-%m-%Y}", 520, figure(entries[-1].balance, ".", ","), bold=True)
    sheet.note("closing", entries[-1].balance)
    return sheet.finish(rng, scan=True)


def _lakhs(seed: int, later: int) -> Statement:
    """Draw unmarked amounts in lakhs whose direction only the running balance proves; rows go over the page."""
    house, rng = _seeded("lakhs", seed, later)
    bank = ("Neelgiri Co-operative Bank", "Bank of Malwa", "Deccan Gramin Bank", "Coromandel Bank", "Satpura Bank")
    first, last = month_of(2024, 1 + 2 * seed, later)
    sheet = Sheet(house, size=8.5, leading=1.6, bottom=70)
    opening = _cents(rng, 9_000_000, 45_000_000)
    maker = Inventor(rng, _INDIAN, _INDIAN_INCOME, _INDIAN_MORE, many=0.7, income=0.4, most_out=6_000_000)
    maker.most_in = 12_000_000
    entries = maker.entries(first, last, rng.randint(36, 60), opening)
    sheet.line(300, bank[seed].upper(), "c", size=14, bold=True)
    sheet.line(300, "STATEMENT OF ACCOUNT", "c")
    sheet.line(50, f"Savings A/c No. {house.randint(10**10, 10**11)}     Currency: INR")
    sheet.line(50, f"Statement from {first:%d-%m-%Y} to {last:%d-%m-%Y}")
    sheet.down(14)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Txn Date",)),
            Column("text", 120, "l", ("Narration",)),
            Column("amount", 430, "r", ("Transaction", "Amount")),
            Column("balance", 545, "r", ("Running", "Balance")),
        ),
    )
    table = Table(
        sheet,
        columns,
        lambda each: {
            "date": f"{each.day:%d-%m-%Y}",
            "amount": figure(abs(each.amount), indian=True),
            "balance": figure(each.balance, indian=True),
        },
        is_split=True,
        row_rule=(48, 550),
    )
    sheet.write(120, "Balance B/F")
    sheet.line(columns[3].x, figure(opening, indian=True), "r")
    sheet.note("opening", opening)
    sheet.down(6)
    table.print(entries)
    sheet.down(10)
    sheet.write(120, "Balance C/F", bold=True)
    sheet.line(columns[3].x, figure(entries[-1].balance, indian=True), "r", bold=True)
    sheet.note("closing", entries[-1].balance)
    sheet.down(10)
    sheet.line(
        50, "This is a computer generated statement. Deposits are insured up to Rs 5,00,000.00 per depositor.", size=7
    )
    return sheet.finish(rng)


def _nothing_proves(seed: int, later: int) -> Statement:
    """Draw amounts without a mark and rows that say nothing: a person must decide which way they go."""
    house, rng = _seeded("nothing proves", seed, later)
    bank = ("Larch Hollow Credit Union", "Beacon Ridge CU", "Sweetgrass Savings", "Ironbridge Thrift", "Alder Point CU")
    first, last = month_of(2024, 3 + seed, later)
    sheet = Sheet(house, size=9.5, width=612, height=792)
    plain = [*(f"Item {house.randint(2000, 9999)}" for _ in range(14)), "Transfer share 01", "Transfer share 08"]
    entries = Inventor(rng, plain, plain, income=0.4, most_in=60_000).entries(first, last, rng.randint(12, 28), ZERO)
    sheet.line(50, bank[seed], size=16, bold=True)
    sheet.line(50, f"Member activity for {_MONTHS[first.month - 1]} {first.year}")
    sheet.down(18)
    columns = moved(
        house,
        (
            Column("date", 60, "l", ("Date",)),
            Column("text", 170, "l", ("Activity",)),
            Column("amount", 480, "r", ("Amount",)),
        ),
    )
    Table(
        sheet,
        columns,
        lambda each: {
            "date": f"{_MONTHS[each.day.month - 1][:3]} {each.day.day}, {each.day.year}",
            "amount": figure(abs(each.amount)),
        },
    ).print(entries)
    sheet.down(20)
    sheet.line(60, f"{len(entries)} items in this report. Ask a teller for the balance of each share.", size=8)
    return sheet.finish(rng, signs_proven=False)


def _both_orders(seed: int, later: int) -> Statement:
    """Draw days that read as either order, and no period that decides: a person must."""
    house, rng = _seeded("both orders", seed, later)
    bank = ("Meridian Plan Savings", "Halyard Savers", "Corncrake Building Fund", "Juniper Hill Plan", "Wren Savers")
    sheet = Sheet(house, size=9.5)
    year = 2023 + later
    gap = house.randint(1, 2)
    days = [date(year, each + gap, each) for each in range(1, 12 - gap)]
    opening = _cents(rng, 50_000, 300_000)
    maker = Inventor(
        rng, ("Withdrawal", "Plan fee", "Transfer out"), ("Monthly saving", "Bonus", "Interest"), income=0.6
    )
    maker.days = days
    entries = maker.entries(days[0], days[-1], rng.randint(9, 16), opening)
    sheet.line(50, bank[seed], size=15, bold=True)
    sheet.line(50, f"Plan number {house.randint(10**5, 10**6)}")
    sheet.down(20)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Date",)),
            Column("text", 140, "l", ("Entry",)),
            Column("out", 350, "r", ("Withdrawn",)),
            Column("in", 440, "r", ("Paid in",)),
            Column("balance", 540, "r", ("Balance",)),
        ),
    )
    sheet.write(140, "Opening balance")
    sheet.line(columns[4].x, figure(opening), "r")
    sheet.note("opening", opening)
    sheet.down(4)
    Table(
        sheet,
        columns,
        lambda each: {
            "date": f"{each.day:%d/%m/%Y}",
            "out" if each.amount < 0 else "in": figure(abs(each.amount)),
            "balance": figure(each.balance),
        },
    ).print(entries)
    sheet.down(8)
    sheet.write(140, "Closing balance")
    sheet.line(columns[4].x, figure(entries[-1].balance), "r")
    sheet.note("closing", entries[-1].balance)
    return sheet.finish(rng, dates_certain=False)


def _early_days(seed: int, later: int) -> Statement:
    """Draw only days up to the twelfth without a year, which the period at the foot puts in order."""
    house, rng = _seeded("early days", seed, later)
    bank = ("Plover Bank", "Castle Mead Bank", "Greywater Bank", "Estuary Bank", "Bank of Dunmore")
    first, _ = month_of(2024, (3, 5, 6, 8, 10)[seed], later)
    end = first + timedelta(days=11)
    is_american = seed % 2 == 0
    form = "%m/%d" if is_american else "%d/%m"
    sheet = Sheet(house, size=9.0)
    opening = _cents(rng, 50_000, 300_000)
    entries = Inventor(rng, _HOME, _HOME_INCOME).entries(first, end, rng.randint(9, 24), opening)
    sheet.line(540, bank[seed], "r", size=15, bold=True)
    sheet.line(50, "Interim statement")
    sheet.line(50, f"Covers {_long(first)} until {_long(end)}")
    sheet.down(14)
    sheet.write(50, f"Balance at start {figure(opening)}")
    sheet.note("opening", opening)
    sheet.line(300, f"Balance at end {figure(entries[-1].balance)}")
    sheet.note("closing", entries[-1].balance)
    sheet.down(14)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Date",)),
            Column("text", 110, "l", ("Particulars",)),
            Column("amount", 430, "r", ("Amount",)),
            Column("balance", 540, "r", ("Balance",)),
        ),
    )
    Table(
        sheet,
        columns,
        lambda each: {
            "date": each.day.strftime(form),
            "amount": f"{figure(abs(each.amount))}{'-' if each.amount < 0 else '+'}",
            "balance": figure(each.balance),
        },
    ).print(entries)
    return sheet.finish(rng)


def _two_currencies(seed: int, later: int) -> Statement:
    """Draw an account in francs and another in euros in one statement, with apostrophes in the numbers."""
    house, rng = _seeded("two currencies", seed, later)
    bank = (
        "Banca del Ceresio Alto",
        "Cassa Tre Valli",
        "Banca Monte Ghiro",
        "Credito Verzasca Sud",
        "Banca Lago Bruno",
    )
    first, last = month_of(2024, 1 + seed, later)
    sheet = Sheet(house, size=9.0)
    sheet.footer = lambda number, count: f"Pagina {number}/{count}"
    sheet.line(50, bank[seed], size=15, bold=True)
    sheet.line(50, f"Estratto conto dal {first:%d.%m.%Y} al {last:%d.%m.%Y}")
    sheet.down(10)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Data",)),
            Column("text", 108, "l", ("Testo contabile",)),
            Column("out", 350, "r", ("Addebito",)),
            Column("in", 425, "r", ("Accredito",)),
            Column("value", 437, "l", ("Valuta",)),
            Column("balance", 552, "r", ("Saldo",)),
        ),
        1.5,
    )
    mark = house.choice(("'", "’"))
    for account, (name, currency) in enumerate((("Conto privato", "CHF"), ("Conto in valuta", "EUR"))):
        opening = _cents(rng, 90_000, 900_000)
        maker = Inventor(rng, _ITALIAN, _ITALIAN_INCOME, income=0.25, lag=2)
        entries = maker.entries(first, last, rng.randint(9, 20), opening)
        sheet.need(140)
        sheet.down(12)
        sheet.line(
            50,
            f"{name} {house.randint(100, 999)}.{house.randint(100, 999)}-{account} in {currency}",
            size=11,
            bold=True,
        )
        sheet.down(4)
        sheet.write(108, "Saldo iniziale")
        sheet.line(columns[5].x, figure(opening, mark), "r")
        sheet.note("opening", opening, account)
        Table(
            sheet,
            columns,
            lambda each: {
                "date": f"{each.day:%d.%m.%y}",
                "value": f"{each.value_day:%d.%m.%y}",
                "out" if each.amount < 0 else "in": figure(abs(each.amount), mark),
                "balance": figure(each.balance, mark),
            },
            account=account,
            currency=currency,
        ).print(entries)
        sheet.need(40)
        sheet.rule(300, 555)
        sheet.write(108, "Totale movimenti")
        sheet.write(columns[2].x, figure(-total(entries, -1), mark), "r")
        sheet.write(columns[3].x, figure(total(entries, 1), mark), "r")
        sheet.note("withdrawals", -total(entries, -1), account)
        sheet.note("deposits", total(entries, 1), account)
        sheet.down(sheet.step)
        sheet.write(108, f"Saldo finale {currency}", bold=True)
        sheet.line(columns[5].x, figure(entries[-1].balance, mark), "r", bold=True)
        sheet.note("closing", entries[-1].balance, account)
    return sheet.finish(rng)


def _cents_apart(seed: int, later: int) -> Statement:
    """Draw a scanned ledger whose cents stand in cells of their own between ruled lines."""
    house, rng = _seeded("cents apart", seed, later)
    bank = (
        "Farmers Trust of Wapsie",
        "Elkhorn State Bank",
        "Prairie Rose Bank",
        "Cedar Bluff Bank",
        "Bank of Osage Bend",
    )
    first, last = month_of(2024, 2 + seed, later)
    sheet = Sheet(house, size=10.5, font="helv", leading=1.6, width=612, height=792)
    opening = _cents(rng, 90_000, 600_000)
    entries = Inventor(rng, _HOME, _HOME_INCOME).entries(first, last, rng.randint(10, 18), opening)
    sheet.line(50, bank[seed], size=16, bold=True)
    sheet.line(50, f"Statement of account, {_MONTHS[first.month - 1]} 1 to {last.day}, {last.year}")
    sheet.down(14)

    def parted(key: str, amount: Decimal) -> Cells:
        whole, _, cents = figure(amount).partition(".")
        return {key: whole, f"{key} cents": cents}

    columns = (
        Column("date", 50, "l", ("DATE",)),
        Column("text", 105, "l", ("DESCRIPTION",)),
        Column("out", 348, "r", ("CHECKS/DEBITS",)),
        Column("out cents", 356, "l"),
        Column("in", 440, "r", ("DEPOSITS",)),
        Column("in cents", 448, "l"),
        Column("balance", 540, "r", ("BALANCE",)),
        Column("balance cents", 548, "l"),
    )
    table = Table(
        sheet,
        columns,
        lambda each: {
            "date": f"{_MONTHS[each.day.month - 1][:3]} {each.day.day:02}",
            **parted("out" if each.amount < 0 else "in", abs(each.amount)),
            **parted("balance", each.balance),
        },
        row_rule=(45, 564),
        extent=(45, 564),
    )
    top = sheet.y - 12
    table.row({"text": "Balance last statement", **parted("balance", opening)})
    sheet.note("opening", opening)
    sheet.down(sheet.step * 1.2)
    table.print(entries)
    for x in (352.0, 444.0, 544.0):
        sheet.stroke(x, top + 30, sheet.y - sheet.step)
    sheet.down(8)
    table.row({"text": "Balance this statement", **parted("balance", entries[-1].balance)}, bold=True)
    sheet.note("closing", entries[-1].balance)
    return sheet.finish(rng, scan=True)


def _side_by_side(seed: int, later: int) -> Statement:
    """Draw payments in two blocks beside each other, and the daily balances beside the deposits."""
    house, rng = _seeded("side by side", seed, later)
    bank = ("Harvest Moon Bank", "Piney Woods National", "Bank of Tallgrass", "Sandhill Bank", "Red Cedar Bank")
    first, last = month_of(2024, 1 + seed, later)
    sheet = Sheet(house, size=8.6, width=612, height=792)
    opening = _cents(rng, 90_000, 600_000)
    maker = Inventor(rng, _SHOPS[:9], ("Payroll Oakhurst", "Counter deposit", "Wire in"), income=0.2, most_out=30_000)
    entries = maker.entries(first, last, rng.randint(22, 44), opening)
    sheet.line(50, bank[seed], size=16, bold=True)
    sheet.line(50, f"Statement period {first:%m/%d/%Y} through {last:%m/%d/%Y}")
    sheet.down(10)
    gains, costs = ([each for each in entries if each.amount * sign > 0] for sign in (1, -1))
    for label, text in (
        ("Beginning balance", figure(opening)),
        (f"{len(gains)} deposits and additions", figure(total(gains))),
        (f"{len(costs)} withdrawals", f"-{figure(-total(costs))}"),
        ("Ending balance", figure(entries[-1].balance)),
    ):
        sheet.pair(50, label, 330, text)
    sheet.note("opening", opening)
    sheet.note("deposits", total(gains))
    sheet.note("withdrawals", -total(costs))
    sheet.note("closing", entries[-1].balance)
    sheet.down(18)
    sheet.write(370, "Daily ending balance", size=10.5, bold=True)
    sheet.line(50, "Deposits and additions", size=10.5, bold=True)
    sheet.down(4)
    left = moved(
        house,
        (
            Column("date", 50, "l", ("Date",)),
            Column("text", 95, "l", ("Description",)),
            Column("amount", 300, "r", ("Amount",)),
        ),
        2,
    )
    top = sheet.y

    def cells(each: Entry) -> Cells:
        return {"date": f"{each.day:%m/%d}", "amount": figure(abs(each.amount))}

    Table(sheet, left, cells, extent=(48, 305)).print(gains)
    after = sheet.y
    sheet.y = top
    sheet.write(370, "Date", bold=True)
    sheet.line(540, "Balance", "r", bold=True)
    sheet.down(sheet.step * 0.35)
    ends = {each.day: each.balance for each in entries}
    for day in sorted(ends)[:: max(1, len(ends) // 7)]:
        sheet.write(370, f"{day:%m/%d}")
        sheet.line(540, figure(ends[day]), "r")
    sheet.y = max(after, sheet.y) + 18
    sheet.line(50, "Withdrawals", size=10.5, bold=True)
    sheet.down(4)
    half = (len(costs) + 1) // 2
    top, ends_at = sheet.y, []
    for part, offset in ((costs[:half], 0.0), (costs[half:], 265.0)):
        sheet.y = top
        block = [replace(each, x=each.x + offset) for each in left]
        Table(sheet, block, cells, extent=(48 + offset, 305 + offset)).print(part)
        ends_at.append(sheet.y)
    sheet.y = max(ends_at) + 12
    sheet.pair(50, "Total withdrawals", 330, figure(-total(costs)), bold=True)
    sheet.note("withdrawals", -total(costs))
    return sheet.finish(rng)


def _turned_wide(seed: int, later: int) -> Statement:
    """Draw a wide table on a turned page: newest first, withdrawals in parentheses, currency behind."""
    house, rng = _seeded("turned and wide", seed, later)
    bank = ("Banksia Business Bank", "Coolabah Bank", "Murrumba Commercial", "Wattle & Gum Bank", "Brolga Bank")
    first, last = month_of(2024, 1 + seed, later)
    sheet = Sheet(house, size=9.0, width=842, height=595, bottom=50)
    sheet.foot_x = 400
    opening = _cents(rng, 900_000, 6_000_000)
    maker = Inventor(rng, _SHOPS, ("Invoice 0931 settled", "Takings", "Rebate"), income=0.35, lag=1, most_in=400_000)
    maker.mark = lambda source: f"{source.randint(1000, 9999)}.{source.randint(100, 999)}"
    entries = maker.entries(first, last, rng.randint(28, 56), opening)
    sheet.line(50, bank[seed], size=16, bold=True)
    sheet.line(50, f"Business account listing {first:%d/%m/%Y} to {last:%d/%m/%Y}, newest first")
    sheet.down(4)
    sheet.pair(50, "Closing balance", 300, f"{figure(entries[-1].balance)} AUD")
    sheet.pair(50, "Opening balance", 300, f"{figure(opening)} AUD")
    sheet.note("closing", entries[-1].balance)
    sheet.note("opening", opening)
    sheet.down(12)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Posted",)),
            Column("value", 130, "l", ("Effective",)),
            Column("text", 215, "l", ("Narrative",)),
            Column("mark", 520, "r", ("Reference",)),
            Column("amount", 650, "r", ("Amount",)),
            Column("balance", 790, "r", ("Balance",)),
        ),
    )
    Table(
        sheet,
        columns,
        lambda each: {
            "date": f"{each.day:%d/%m/%Y}",
            "value": f"{each.value_day:%d/%m/%Y}",
            "amount": f"({figure(-each.amount)}) AUD" if each.amount < 0 else f"{figure(each.amount)} AUD",
            "balance": f"{figure(each.balance)} AUD",
        },
        is_newest_first=True,
        extent=(45, 795),
    ).print(entries)
    return sheet.finish(rng, turn=90)


def _signs_behind(seed: int, later: int) -> Statement:
    """Draw a scanned Spanish statement: the sign behind the amount, months as words, the year in the period."""
    house, rng = _seeded("signs behind", seed, later)
    bank = ("Caja del Romeral", "Banco Sierra Parda", "Caja Rural del Esparto", "Banco Vega Honda", "Caja Tres Molinos")
    start, end = cycle_of(2023, 12, house.randint(6, 20), later + 1)
    sheet = Sheet(house, size=10.0, font="helv", leading=1.65)
    sheet.footer = lambda number, count: f"Hoja {number}"
    opening = _cents(rng, 60_000, 400_000)
    maker = Inventor(rng, _SPANISH_SPENDS, _SPANISH_INCOME, income=0.25, lag=2)
    entries = maker.entries(start, end - timedelta(days=2), rng.randint(10, 20), opening)

    def signed(amount: Decimal) -> str:
        return figure(abs(amount), ".", ",") + ("-" if amount < 0 else "")

    sheet.line(50, bank[seed].upper(), size=16, bold=True)
    sheet.line(50, "EXTRACTO DE CUENTA CORRIENTE")
    sheet.line(50, f"PERIODO: {start:%d/%m/%Y} A {end:%d/%m/%Y}    DIVISA: EUR")
    sheet.down(14)
    columns = (
        Column("date", 50, "l", ("FECHA",)),
        Column("value", 110, "l", ("F. VALOR",)),
        Column("text", 180, "l", ("CONCEPTO",)),
        Column("amount", 450, "r", ("IMPORTE",)),
        Column("balance", 545, "r", ("SALDO",)),
    )
    sheet.write(180, "SALDO ANTERIOR")
    sheet.line(545, signed(opening), "r")
    sheet.note("opening", opening)
    sheet.down(4)
    Table(
        sheet,
        columns,
        lambda each: {
            "date": f"{each.day.day:02} {_SPANISH[each.day.month - 1]}",
            "value": f"{each.value_day.day:02} {_SPANISH[each.value_day.month - 1]}",
            "amount": signed(each.amount),
            "balance": signed(each.balance),
        },
    ).print(entries)
    sheet.down(8)
    sheet.write(180, "SALDO ACTUAL", bold=True)
    sheet.line(545, signed(entries[-1].balance), "r", bold=True)
    sheet.note("closing", entries[-1].balance)
    return sheet.finish(rng, scan=True)


def _card_leap_day(seed: int, later: int) -> Statement:
    """Draw a scanned card statement with CR behind payments, over the end of a leap year's February."""
    house, rng = _seeded("card with leap day", seed, later)
    bank = ("Kestrel Card", "Ambleside Card", "Northern Star Card", "Peppermint Card", "Lantern Card")
    start, end = cycle_of(2024, 3, house.randint(8, 18), later)
    sheet = Sheet(house, size=10.2, font="helv", leading=1.6)
    opening = -_cents(rng, 20_000, 200_000)
    maker = Inventor(rng, [each.upper() for each in _SHOPS], ("PAYMENT - THANK YOU",), income=0.1, most_in=40_000)
    entries = maker.entries(start, end, rng.randint(10, 20), opening)
    entries[2] = replace(entries[2], lines=("PAYMENT - THANK YOU",), amount=_cents(rng, 10_000, 20_000))
    if not later:
        entries[4] = replace(entries[4], day=date(2024, 2, 29))
    entries = balanced(sorted(entries, key=lambda each: each.day), opening)
    sheet.line(50, bank[seed], size=17, bold=True)
    sheet.line(50, f"Statement date {_long(end)}     Payment due {_long(end + timedelta(days=21))}")
    sheet.down(12)
    sheet.pair(50, "Previous balance", 300, f"${figure(-opening)}")
    sheet.pair(50, "New balance", 300, f"${figure(-entries[-1].balance)}")
    sheet.note("opening", opening)
    sheet.note("closing", entries[-1].balance)
    sheet.down(18)
    columns = (
        Column("date", 50, "l", ("Date",)),
        Column("text", 130, "l", ("Merchant or payment",)),
        Column("amount", 500, "r", ("Amount ($)",)),
    )
    Table(
        sheet,
        columns,
        lambda each: {
            "date": f"{each.day.day:02} {_MONTHS[each.day.month - 1][:3].upper()}",
            "amount": f"{figure(abs(each.amount))}{' CR' if each.amount > 0 else ''}",
        },
    ).print(entries)
    return sheet.finish(rng, scan=True)


def _no_titles(seed: int, later: int) -> Statement:
    """Draw rows without titles, plus or minus in a column of its own, an empty section and corrections."""
    house, rng = _seeded("no titles", seed, later)
    bank = ("Fjellhus Bank", "Granvik Spare", "Havn og Hei Bank", "Lyngen Kasse", "Stabbur Bank")
    first, last = month_of(2024, 1 + 2 * seed, later)
    sheet = Sheet(house, size=9.2)
    opening = _cents(rng, 60_000, 900_000)
    maker = Inventor(rng, _SHOPS[:8], ("Transfer from Havn", "Wages Granitt"), income=0.25, most_out=90_000)
    entries = maker.entries(first, last, rng.randint(16, 40), opening)
    for number in sorted({rng.randrange(3, len(entries)) for _ in range(2)}):
        back = abs(entries[number - 1].amount)
        entries[number] = replace(
            entries[number], day=entries[number - 1].day, lines=("Correction",), amount=back, marks=()
        )
    entries = balanced(sorted(entries, key=lambda each: each.day), opening)
    sheet.line(50, bank[seed], size=15, bold=True)
    sheet.line(50, f"Account {house.randint(1000, 9999)} {house.randint(10, 99)} {house.randint(10000, 99999)}, NOK")
    sheet.line(50, f"{first.isoformat()} to {last.isoformat()}")
    sheet.down(14)
    sheet.line(50, "Savings pocket", size=11, bold=True)
    sheet.line(50, "No transactions in this period.")
    sheet.down(12)
    sheet.line(50, "Everyday pocket", size=11, bold=True)
    sheet.down(4)
    sheet.pair(120, "Balance at start", 500, figure(opening, " ", ","))
    sheet.note("opening", opening)
    sheet.down(4)
    columns = moved(
        house,
        (Column("date", 50, "l"), Column("text", 120, "l"), Column("side", 415, "l"), Column("amount", 500, "r")),
    )
    Table(
        sheet,
        columns,
        lambda each: {
            "date": each.day.isoformat(),
            "side": "-" if each.amount < 0 else "+",
            "amount": figure(abs(each.amount), " ", ","),
        },
        has_head=False,
    ).print(entries)
    sheet.down(8)
    sheet.pair(120, "Balance at end", 500, figure(entries[-1].balance, " ", ","), bold=True)
    sheet.note("closing", entries[-1].balance)
    return sheet.finish(rng)


def _sum_off(seed: int, later: int) -> Statement:
    """Draw a statement whose closing balance its rows do not make: a person must look."""
    house, rng = _seeded("sum off", seed, later)
    bank = ("Pennywell Bank", "Foxglove Current", "Bank of Harbottle", "Millrace Bank", "Sallow & Reed Bank")
    first, last = month_of(2024, 1 + seed, later)
    sheet = Sheet(house, size=9.0)
    opening = _cents(rng, 50_000, 400_000)
    entries = Inventor(rng, _HOME, _HOME_INCOME).entries(first, last, rng.randint(14, 36), opening)
    closing = entries[-1].balance + rng.choice((-1, 1)) * _cents(rng, 900, 9_000)
    sheet.line(50, bank[seed], size=15, bold=True)
    sheet.line(50, f"Your statement, {_long(first)} to {_long(last)}")
    sheet.down(16)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Date",)),
            Column("text", 130, "l", ("Details",)),
            Column("out", 420, "r", ("Money out",)),
            Column("in", 520, "r", ("Money in",)),
        ),
    )
    sheet.pair(130, "Start balance", 520, figure(opening))
    sheet.note("opening", opening)
    sheet.down(4)
    Table(
        sheet,
        columns,
        lambda each: {"date": _short(each.day), "out" if each.amount < 0 else "in": figure(abs(each.amount))},
    ).print(entries)
    sheet.down(6)
    sheet.pair(130, "End balance", 520, figure(closing), bold=True)
    sheet.note("closing", closing)
    return sheet.finish(rng, has_sums_right=False)


def _rows_tell(seed: int, later: int) -> Statement:
    """Draw amounts without a mark whose direction only the rows' wording tells."""
    house, rng = _seeded("rows tell", seed, later)
    bank = ("Hearthstone Credit Union", "Lanternfish CU", "Maple Bend Thrift", "Sandbar Savings", "Tuckahoe Members CU")
    first, last = month_of(2024, 2 + seed, later)
    sheet = Sheet(house, size=9.2, width=612, height=792)
    spends = ("Debit purchase Larkspur Grocers", "ATM withdrawal Quay St", "Bill paid Clearbrook Water", "Debit fee")
    incomes = ("Payroll deposit Oakhurst", "Mobile check deposit", "Dividend earned", "Credit from member 0042")
    entries = Inventor(rng, spends, incomes, income=0.4).entries(first, last, rng.randint(10, 30), ZERO)
    sheet.line(560, bank[seed], "r", size=15, bold=True)
    sheet.line(50, f"History of share 07 from {first:%m/%d/%Y} to {last:%m/%d/%Y}")
    sheet.down(18)
    columns = moved(
        house,
        (
            Column("text", 55, "l", ("What happened",)),
            Column("date", 340, "l", ("When",)),
            Column("amount", 540, "r", ("How much",)),
        ),
    )
    Table(
        sheet, columns, lambda each: {"date": f"{each.day:%m/%d/%Y}", "amount": f"${figure(abs(each.amount))}"}
    ).print(entries)
    return sheet.finish(rng, signs_proven="words")


def _shapes(shapes: Sequence[DrawShape]) -> dict[str, DrawShape]:
    return {each.__name__.strip("_").replace("_", " "): each for each in shapes}


#: Every function draws one statement of a bank (its seed) and a month (0, or 1 for the next).
SHAPES: dict[str, DrawShape] = _shapes(
    (
        _card_with_frame,
        _card_in_sections,
        _fleet_charges,
        _overdrawn,
        _letters_s_h,
        _af_bij,
        _lakhs,
        _nothing_proves,
        _both_orders,
        _early_days,
        _two_currencies,
        _cents_apart,
        _side_by_side,
        _turned_wide,
        _signs_behind,
        _card_leap_day,
        _no_titles,
        _sum_off,
        _rows_tell,
    )
)
