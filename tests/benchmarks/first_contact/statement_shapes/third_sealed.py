"""The third set's sealed half: accounts of twelve other kinds, not to be looked at while a reader is built."""

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

_HALF = "third sealed"

_WESTERN = (
    "Purchase authorized Sagebrush Deli Reno NV", "Recurring Payment Juniper Gym", "Sierra Gas Bill Pay 0098",
    "ATM Withdrawal 210 Virginia St", "Purchase authorized Pinyon Pets", "Great Basin Mortgage Auto Pmt", "Check",
    "Zelle to Carver Mina", "Monthly Service Fee",
)  # fmt: skip
_WESTERN_INCOME = ("Silver State Schools Payroll", "Edeposit IN Branch", "Zelle From Hayes Odell", "Interest Payment")
_WESTERN_MORE = ("Card 4417", "S004170098", "Ref #Ib0Kx7", "on 03/02")
_GERMAN = (
    "SEPA-Lastschrift", "Kartenzahlung", "Dauerauftrag", "SEPA-Überweisung", "Geldautomat", "Kontoführung",
)  # fmt: skip
_GERMAN_INCOME = ("SEPA-Gutschrift", "Gehaltseingang", "Zinsen Habensaldo", "Scheckeinreichung")
_GERMAN_MORE = (
    "Fernwärme Oderland AG", "Bücherstube Linz am Tor", "Kfz-Versicherung Spessart", "Mandatsref. 0041-77", "RG 2024/118",
    "Gläubiger-ID DE98ZZZ0900", "Wochenmarkt Eifelstr.", "Verwendungszweck Miete",
)  # fmt: skip
_SWISS = (
    "Zahlung Krankenkasse Säntis", "Debitkarte Bäckerei Rigi", "Bancomat Bahnhof Olten", "Dauerauftrag Miete",
    "E-Rechnung Stromwerk Aare", "Debitkarte Buch & Bild", "Dienstleistungspreis",
)  # fmt: skip
_SWISS_INCOME = ("Gutschrift Lohn Uhrenfabrik Jura", "Vergütung Amt für Steuern", "Twint Gutschrift")
_POLISH = (
    "ZAKUP PRZY UŻYCIU KARTY SKLEP ŻABKA-POD LIPĄ", "PRZELEW WYCHODZĄCY CZYNSZ", "WYPŁATA W BANKOMACIE ŁÓDŹ",
    "POLECENIE ZAPŁATY ENERGIA WISŁA", "BLIK ZAKUP KSIĘGARNIA ŚWIT", "OPŁATA ZA KARTĘ",
)  # fmt: skip
_POLISH_INCOME = ("PRZELEW PRZYCHODZĄCY WYNAGRODZENIE", "WPŁATA GOTÓWKOWA", "PRZELEW NA TELEFON PRZYCHODZĄCY")
_POLISH_MORE = ("TYTUŁ: FAKTURA 88/2024", "TYTUŁ: STYCZNIOWE ROZLICZENIE", "NR REF. 7711900", "ADRES: GDAŃSK")
_CANADIAN = (
    "MAPLE HARDWARE GUELPH ON", "LOON LAKE OUTFITTERS KENORA ON", "CAFE DU VIEUX MOULIN QC", "TUNDRA BOOKS WINNIPEG MB",
    "HALIFAX FERRY NS", "GRANVILLE GROCER VANCOUVER BC", "PRESTO RELOAD TORONTO ON",
)  # fmt: skip
_CANADIAN_INCOME = ("PAYMENT - THANK YOU / PAIEMENT - MERCI", "TUNDRA BOOKS WINNIPEG MB", "CASH BACK REWARD")
_CANADIAN_MORE = (
    "74064494003820417788120", "74500018112230044177019", "Foreign Currency-USD 18.00 Exchange rate-1.384500",
    "85216697001300041778812",
)  # fmt: skip
_DUTCH = (
    "Betaalpas Kaashuis Terp", "iDEAL Boekwinkel De Dijk", "SEPA incasso Waterschap Maas", "Geldopname Brink 4",
    "Periodieke overb. Huur", "Betaalpas Visboer Texel", "Kosten pakket",
)  # fmt: skip
_DUTCH_INCOME = ("Bijschrijving Salaris Molenaar BV", "Teruggave Belastingdienst", "Tikkie ontvangen")
_WORLD = ("INWARD FEE", "TT CHARGES", "OUTWARD REMITTANCE KOWLOON", "FX SELL", "CARD TXN SINGAPORE", "CUSTODY FEE")
_WORLD_INCOME = ("INWARD REMITTANCE ALTONA LLC", "FX BUY", "CREDIT INTEREST", "DIVIDEND HARBOR FUND")
_OVERDRAFT = (
    "TO CLG 004177 SREE STEELS", "TO RTGS GODAVARI AGENCIES", "TO CASH SELF", "TO INT DR", "TO NEFT KAVERI POWER",
    "TO CHGS STOCK INSPECTION",
)  # fmt: skip
_OVERDRAFT_INCOME = ("BY CLG KRISHNA TRADERS", "BY RTGS TUNGA EXPORTS", "BY CASH", "BY NEFT BHIMA RETAIL")
_AUSTRALIAN = (
    "Direct Debit Murray Energy", "EFTPOS Galah Grocers Dubbo", "Transfer to xx4417 Rent", "Wdl ATM Anson St Orange",
    "EFTPOS Bunyip Books", "BPAY Orana Council", "Account Fee",
)  # fmt: skip
_AUSTRALIAN_INCOME = (
    "Salary Lachlan Health",
    "Direct Credit Medicare",
    "Cash Dep Branch Dubbo",
    "Fast Transfer From K Bell",
)
_PLAIN = (
    "Thistle & Crane", "Alder 4417", "L Moreau", "Quayside Office", "Ledger ref 20019", "Bright Star", "D Osei",
    "Penrose Hall", "Ledger ref 77410", "Wickham & Daughter",
)  # fmt: skip
_CLUB = ("Members' desk", "Share 4", "Teller 2", "Mobile 0417", "Loan desk", "Kiosk")
_COMPANY = (
    "DDR Rates Northumbria", "CHQ 300417", "FP Slate & Sons", "Card Tyne Toolhire", "DDR Pension Admin", "SO Unit 6 rent",
    "FP Kielder Timber", "Fee unpaid item",
)  # fmt: skip
_COMPANY_INCOME = ("BGC Alnwick Joinery", "FP Hexham Homes", "Lodgement 004", "BGC Rothbury Estates")


def _dotted(amount: Decimal) -> str:
    return figure(abs(amount), ".", ",")


def _apostrophes(amount: Decimal) -> str:
    return figure(amount, "'")


def _spaced(amount: Decimal) -> str:
    return f"{figure(amount, ' ', ',')} PLN"


def _daily_balance(seed: int, later: int) -> Statement:
    """Draw an American account with check numbers, a balance at each day's end, and totals under both columns."""
    house, rng = seeded(_HALF, "daily balance", seed, later)
    bank = ("Great Basin Bank", "Comstock National", "Sagebrush Savings & Loan", "Tahoe Pacific Bank", "Pinyon Bank")[
        seed
    ]
    first, last = cycle_of(2024, (1, 4, 6, 12, 9)[seed], house.randint(7, 25), later)
    sheet = Sheet(house, size=house.choice((8.0, 8.5)), width=612, height=792)
    opening = invent_cents(rng, 400_000, 900_000)
    maker = Inventor(rng, _WESTERN, _WESTERN_INCOME, _WESTERN_MORE, 0.35, 0.22, 40_000, 260_000)
    entries = invent_both_ways(maker, (first, last), rng.randint(32, 60), opening)
    closing, added, taken = entries[-1].balance, total(entries, 1), -total(entries, -1)
    sheet.line(50, bank, size=17, bold=True)
    sheet.line(50, f"Everyday Checking   {last:%B %-d, %Y}   Account number 98{house.randint(10**6, 10**7 - 1)}")
    sheet.down(10)
    sheet.line(50, "Statement period activity summary", size=11, bold=True)
    for kind, label, text, amount in (
        ("opening", f"Beginning balance on {first:%-m/%-d}", f"${figure(opening)}", opening),
        ("deposits", "Deposits/Additions", figure(added), added),
        ("withdrawals", "Withdrawals/Subtractions", f"- {figure(taken)}", taken),
        ("closing", f"Ending balance on {last:%-m/%-d}", f"${figure(closing)}", closing),
    ):
        sheet.pair(50, label, 290, text, bold=kind == "closing")
        sheet.note(kind, amount)
    sheet.down(16)
    sheet.line(50, "Transaction history", size=11, bold=True)
    sheet.down(4)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("", "Date")),
            Column("check", 90, "l", ("Check", "Number")),
            Column("text", 140, "l", ("", "Description")),
            Column("in", 400, "r", ("Deposits/", "Additions")),
            Column("out", 480, "r", ("Withdrawals/", "Subtractions")),
            Column("balance", 560, "r", ("Ending daily", "balance")),
        ),
    )
    checks = {id(each): str(1040 + number) for number, each in enumerate(entries) if each.lines[0] == "Check"}
    table = Table(
        sheet,
        columns,
        lambda each: {
            "date": f"{each.day:%-m/%-d}",
            "check": checks.get(id(each), ""),
            "in" if each.amount > 0 else "out": figure(abs(each.amount)),
            "balance": figure(each.balance),
        },
        is_balance_once=True,
        extent=(45, 565),
    )
    table.print(entries)
    sheet.need(sheet.step * 4)
    table.row({"text": f"Ending balance on {last:%-m/%-d}", "balance": figure(closing)}, bold=True)
    sheet.note("closing", closing)
    sheet.down(sheet.step)
    table.row({"text": "Totals", "in": f"${figure(added)}", "out": f"${figure(taken)}"}, bold=True)
    sheet.note("deposits", added)
    sheet.note("withdrawals", taken)
    sheet.down(24)
    sheet.line(50, "Monthly service fee summary: fee period minimum daily balance $500.00; you paid $10.00.", size=7)
    return sheet.finish(rng)


def _soll_und_haben(seed: int, later: int) -> Statement:
    """Draw a German business account: two dates without a year, debits and credits apart, and a carry on each page."""
    house, rng = seeded(_HALF, "soll und haben", seed, later)
    bank = (
        "Handelsbank Oderland",
        "Bankhaus Spessart & Co.",
        "Eifelbank AG",
        "Kontor- und Kreditbank",
        "Volksbank Aller",
    )
    first, last = cycle_of(2024, (1, 4, 7, 1, 11)[seed], house.randint(10, 24), later)
    sheet = Sheet(house, size=house.choice((8.0, 8.5)), font="helv")
    opening = invent_cents(rng, 900_000, 2_500_000)
    maker = Inventor(rng, _GERMAN, _GERMAN_INCOME, _GERMAN_MORE, 0.9, 0.25, 90_000, 400_000, lag=2)
    entries = invent_both_ways(maker, (first, last), rng.randint(34, 56), opening)
    closing = entries[-1].balance
    sheet.line(50, bank[seed], size=16, bold=True)
    sheet.line(50, f"Kontoauszug vom {first:%d.%m.%Y} bis {last:%d.%m.%Y}", bold=True)
    sheet.line(50, f"Geschäftskonto EUR   Kontonummer {house.randint(10**6, 10**7 - 1)} 00   Auszug {first.month}")
    sheet.down(14)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Buchung",)),
            Column("value", 100, "l", ("Valuta",)),
            Column("text", 150, "l", (house.choice(("Vorgang", "Buchungstext", "Vorgang / Verwendungszweck")),)),
            Column("out", 455, "r", (house.choice(("Soll", "Soll EUR", "Lastschriften")),)),
            Column("in", 545, "r", (house.choice(("Haben", "Haben EUR", "Gutschriften")),)),
        ),
    )
    table = Table(
        sheet,
        columns,
        lambda each: {
            "date": f"{each.day:%d.%m.}",
            "value": f"{each.value_day:%d.%m.}",
            "in" if each.amount > 0 else "out": _dotted(each.amount),
        },
        carry_out=lambda balance: {"text": "Übertrag auf nächste Seite", "in": _dotted(balance)},
        carry_in=lambda balance: {"text": "Übertrag von Vorseite", "in": _dotted(balance)},
    )
    sheet.note("opening", opening)
    print_after(
        table, {"text": f"Alter Saldo per {first - timedelta(days=1):%d.%m.%Y}", "in": _dotted(opening)}, entries
    )
    sheet.need(sheet.step * 4)
    table.row({"text": f"Neuer Saldo per {last:%d.%m.%Y}", "in": _dotted(closing)}, bold=True)
    sheet.note("closing", closing)
    sheet.down(28)
    sheet.line(50, "Kreditlinie 10.000,00 EUR. Sollzinsen 9,75 % p. a. Bitte prüfen Sie Ihren Auszug.", size=7)
    sheet.footer = lambda number, count: f"Blatt {number} / {count}"
    return sheet.finish(rng)


def _newest_first(seed: int, later: int) -> Statement:
    """Draw a Swiss account with apostrophes, the newest movement first, and totals of both columns at the end."""
    house, rng = seeded(_HALF, "newest first", seed, later)
    bank = ("Aare Kantonalbank", "Rigi Bank AG", "Bank Säntis", "Jurassische Handelsbank", "Olten Privatbank")[seed]
    first, last = month_of(2024, (1, 2, 7, 10, 12)[seed], later)
    sheet = Sheet(house, size=house.choice((8.0, 8.5)), font="helv")
    opening = invent_cents(rng, 800_000, 2_000_000)
    maker = Inventor(rng, _SWISS, _SWISS_INCOME, income=0.22, most_out=90_000, most_in=640_000, lag=2)
    entries = invent_both_ways(maker, (first, last), rng.randint(34, 62), opening)
    closing, out, paid = entries[-1].balance, -total(entries, -1), total(entries, 1)
    sheet.line(50, bank, size=16, bold=True)
    sheet.line(50, f"Kontoauszug {first:%d.%m.%Y} - {last:%d.%m.%Y}", bold=True)
    sheet.line(50, f"Privatkonto CHF   IBAN CH{house.randint(10, 99)} 0077 8044 1700 2001 9")
    sheet.down(8)
    sheet.pair(50, "Anfangssaldo", 260, f"CHF {_apostrophes(opening)}")
    sheet.pair(50, "Schlusssaldo", 260, f"CHF {_apostrophes(closing)}", bold=True)
    sheet.note("opening", opening)
    sheet.note("closing", closing)
    sheet.down(14)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Datum",)),
            Column("text", 105, "l", (house.choice(("Buchungstext", "Text", "Informationen")),)),
            Column("out", 345, "r", ("Belastung",)),
            Column("in", 415, "r", ("Gutschrift",)),
            Column("value", 435, "l", ("Valuta",)),
            Column("balance", 550, "r", ("Saldo",)),
        ),
        2.0,
    )
    day = house.choice(("%d.%m.%y", "%d.%m.%Y"))
    table = Table(
        sheet,
        columns,
        lambda each: {
            "date": each.day.strftime(day),
            "in" if each.amount > 0 else "out": _apostrophes(abs(each.amount)),
            "value": each.value_day.strftime("%d.%m.%y"),
            "balance": _apostrophes(each.balance),
        },
        is_newest_first=True,
    )
    table.print(entries)
    sheet.need(sheet.step * 3)
    table.row({"text": "Umsatztotal", "out": _apostrophes(out), "in": _apostrophes(paid)}, bold=True)
    sheet.note("withdrawals", out)
    sheet.note("deposits", paid)
    sheet.down(24)
    sheet.line(50, "Ohne Ihren Gegenbericht innert 30 Tagen gilt dieser Auszug als genehmigt.", size=7)
    sheet.footer = lambda number, count: f"Seite {number}/{count}"
    return sheet.finish(rng)


def _kwota_i_saldo(seed: int, later: int) -> Statement:
    """Draw a Polish account: two full dates, blanks between thousands, the currency behind every amount."""
    house, rng = seeded(_HALF, "kwota i saldo", seed, later)
    bank = ("Bank Pod Lipą S.A.", "Bank Świt", "Wisła Bank", "Bank Spółdzielczy Łęg", "Gdański Bank Handlowy")[seed]
    first, last = month_of(2024, (1, 3, 6, 9, 12)[seed], later)
    sheet = Sheet(house, size=house.choice((7.5, 8.0)), font="helv")
    opening = invent_cents(rng, 600_000, 1_800_000)
    maker = Inventor(rng, _POLISH, _POLISH_INCOME, _POLISH_MORE, 0.55, 0.22, 60_000, 480_000, lag=2)
    entries = invent_both_ways(maker, (first, last), rng.randint(28, 50), opening)
    closing, out, paid = entries[-1].balance, -total(entries, -1), total(entries, 1)
    incomes = sum(each.amount > 0 for each in entries)
    sheet.line(50, bank, size=16, bold=True)
    sheet.line(50, f"Wyciąg z rachunku za okres od {first:%Y-%m-%d} do {last:%Y-%m-%d}", bold=True)
    sheet.line(50, f"Nr rachunku {house.randint(10, 99)} 1140 2004 0000 3002 0417 8812   Waluta: PLN")
    sheet.down(10)
    for kind, label, text, amount in (
        ("opening", "Saldo początkowe", _spaced(opening), opening),
        ("deposits", f"Suma uznań ({incomes})", _spaced(paid), paid),
        ("withdrawals", f"Suma obciążeń ({len(entries) - incomes})", _spaced(-out), out),
        ("closing", "Saldo końcowe", _spaced(closing), closing),
    ):
        sheet.pair(50, label, 270, text, bold=kind == "closing")
        sheet.note(kind, amount)
    sheet.down(14)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Data", "operacji")),
            Column("value", 110, "l", ("Data", "księgowania")),
            Column("text", 170, "l", ("", house.choice(("Opis operacji", "Opis")))),
            Column("amount", 465, "r", ("", "Kwota")),
            Column("balance", 552, "r", ("Saldo", "po operacji")),
        ),
        2.0,
    )
    day = "%d-%m-%Y" if seed == 4 else "%Y-%m-%d"
    table = Table(
        sheet,
        columns,
        lambda each: {
            "date": each.day.strftime(day),
            "value": each.value_day.strftime(day),
            "amount": _spaced(each.amount),
            "balance": _spaced(each.balance),
        },
        row_rule=(45, 555) if seed % 2 else None,
    )
    table.print(entries)
    sheet.down(12)
    sheet.line(50, "Środki objęte ochroną gwarancyjną do równowartości 100 000 EUR.", size=7)
    sheet.footer = lambda number, count: f"Strona {number} z {count}"
    return sheet.finish(rng)


def _dated_twice(seed: int, later: int) -> Statement:
    """Draw a Canadian card: dates as a month's letters, long references under charges, and how the balance came about."""
    house, rng = seeded(_HALF, "dated twice", seed, later)
    bank = (
        "Maple Leaf Visa",
        "Loonie Rewards Mastercard",
        "Great Lakes Visa",
        "Tundra Cashback",
        "Acadia Visa Classic",
    )[seed]
    first, last = cycle_of(2024, (1, 3, 8, 1, 11)[seed], house.randint(5, 26), later)
    sheet = Sheet(house, size=house.choice((8.0, 8.5)), width=612, height=792)
    opening = -invent_cents(rng, 50_000, 320_000)
    maker = Inventor(rng, _CANADIAN, _CANADIAN_INCOME, _CANADIAN_MORE, 0.5, 0.15, 24_000, 90_000, lag=2)
    moves = invent_both_ways(maker, (first, last - timedelta(days=2)), rng.randint(22, 44), opening)
    charge = -invent_cents(rng, 400, 4_000)
    entries = balanced([*moves, Entry(last, ("PURCHASE INTEREST 20.99%",), charge, ZERO, last)], opening)
    closing, paid, spent = entries[-1].balance, total(entries, 1), -total(moves, -1)
    sheet.line(50, bank, size=17, bold=True)
    sheet.line(50, f"STATEMENT FROM {first:%b %d, %Y} TO {last:%b %d, %Y}".upper())
    sheet.line(50, f"MR A TREMBLAY   4500 12** **** {house.randint(1000, 9999)}")
    sheet.down(12)
    top = sheet.y
    sheet.line(50, "PAYMENTS & INTEREST RATES", bold=True)
    due = last + timedelta(days=21)
    for label, text in (
        ("Minimum payment", f"${figure(invent_cents(rng, 1000, 9000))}"),
        ("Payment due date", f"{due:%b %d, %Y}".upper()),
        ("Credit limit", "$9,500.00"),
        ("Annual interest rate purchases", "20.99%"),
        ("Annual interest rate cash advances", "22.99%"),
    ):
        sheet.pair(50, label, 280, text)
    below, sheet.y = sheet.y, top
    sheet.line(330, "CALCULATING YOUR BALANCE", bold=True)
    for kind, label, text, amount in (
        ("opening", "Previous Statement Balance", f"${figure(-opening)}", opening),
        ("deposits", "Payments & credits", f"-${figure(paid)}", paid),
        ("subtotal", "Purchases & debits", f"${figure(spent)}", -spent),
        ("subtotal", "Interest", f"${figure(-charge)}", charge),
        ("closing", "NEW BALANCE", f"${figure(-closing)}" if closing < 0 else f"-${figure(closing)}", closing),
    ):
        sheet.pair(330, label, 560, text, bold=kind == "closing")
        sheet.note(kind, amount)
    sheet.y = max(below, sheet.y) + 18
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("TRANSACTION", "DATE")),
            Column("value", 125, "l", ("POSTING", "DATE")),
            Column("text", 185, "l", ("", "ACTIVITY DESCRIPTION")),
            Column("amount", 560, "r", ("", "AMOUNT ($)")),
        ),
    )
    table = Table(
        sheet,
        columns,
        lambda each: {
            "date": f"{each.day:%b %d}".upper(),
            "value": f"{each.value_day:%b %d}".upper(),
            "amount": f"{'-' if each.amount > 0 else ''}${figure(abs(each.amount))}",
        },
        extent=(45, 565),
    )
    table.print(entries)
    sheet.need(sheet.step * 2)
    sheet.down(8)
    sheet.pair(
        185, "TOTAL ACCOUNT BALANCE", 560, f"${figure(-closing)}" if closing < 0 else f"-${figure(closing)}", bold=True
    )
    sheet.note("closing", closing)
    sheet.line(50, "IMPORTANT: 14 years and 2 months to pay if only the minimum is paid.", size=7)
    return sheet.finish(rng)


def _af_en_bij(seed: int, later: int) -> Statement:
    """Draw a scanned Dutch account: the totals in a line above the rows, out and in as columns."""
    house, rng = seeded(_HALF, "af en bij", seed, later)
    bank = ("Waddenbank", "Brinkbank N.V.", "Maas & Terp Bank", "Coöperatieve Dijkbank", "Texelse Spaarbank")[seed]
    first, last = month_of(2024, (1, 4, 7, 10, 12)[seed], later)
    sheet = Sheet(house, size=9.5, font="helv", leading=1.55)
    opening = invent_cents(rng, 250_000, 800_000)
    maker = Inventor(rng, _DUTCH, _DUTCH_INCOME, income=0.22, most_out=32_000, most_in=260_000)
    entries = invent_both_ways(maker, (first, last), rng.randint(20, 34), opening)
    closing, out, paid = entries[-1].balance, -total(entries, -1), total(entries, 1)
    sheet.line(50, bank, size=17, bold=True)
    sheet.line(50, f"Rekeningafschrift   {first:%d-%m-%Y} t/m {last:%d-%m-%Y}")
    sheet.line(50, f"Betaalrekening NL{house.randint(10, 99)} WADD 0417 8812 90   EUR")
    sheet.down(12)
    labels = ("Vorig saldo", "Totaal afgeschreven", "Totaal bijgeschreven", "Nieuw saldo")
    kinds = ("opening", "withdrawals", "deposits", "closing")
    for x, label, kind, amount in zip((150, 280, 415, 540), labels, kinds, (opening, out, paid, closing), strict=True):
        sheet.write(x, label, "r", bold=True)
        sheet.write(x, _dotted(amount), "r", y=sheet.y + sheet.step)
        sheet.note(kind, amount)
    sheet.down(sheet.step * 3)
    columns = moved(
        house,
        (
            Column("date", 50, "l", (house.choice(("Datum", "Boekdatum")),)),
            Column("text", 140, "l", ("Omschrijving",)),
            Column("out", 440, "r", (house.choice(("Bedrag af", "Af (debet)")),)),
            Column("in", 540, "r", (house.choice(("Bedrag bij", "Bij (credit)")),)),
        ),
    )
    Table(
        sheet,
        columns,
        lambda each: {
            "date": f"{each.day:%d-%m-%Y}",
            "in" if each.amount > 0 else "out": _dotted(each.amount),
        },
    ).print(entries)
    sheet.down(12)
    sheet.line(50, "Dit product valt onder het depositogarantiestelsel. Meer informatie op onze website.", size=8)
    sheet.footer = lambda number, count: f"Blad {number} van {count}"
    return sheet.finish(rng, scan=True)


def _currency_pockets(seed: int, later: int) -> Statement:
    """Draw three currencies of one customer, each with its own balances, under each other."""
    house, rng = seeded(_HALF, "currency pockets", seed, later)
    bank = ("Victoria Peak Bank", "Straits Trade Bank", "Harbour Global", "Altona International", "Meridian Offshore")[
        seed
    ]
    first, last = month_of(2024, (1, 3, 5, 8, 12)[seed], later)
    sheet = Sheet(house, size=house.choice((8.5, 9.0)))
    sheet.line(50, bank, size=17, bold=True)
    sheet.line(50, f"Foreign Currency Statement   {first:%d %b %Y} to {last:%d %b %Y}", bold=True)
    sheet.line(50, f"Integrated account {house.randint(100, 999)}-417881-838")
    for account, currency in enumerate(house.sample(("USD", "EUR", "GBP", "AUD", "CAD"), 3)):
        opening = invent_cents(rng, 900_000, 3_000_000)
        maker = Inventor(rng, _WORLD, _WORLD_INCOME, income=0.4, most_out=160_000, most_in=240_000)
        entries = invent_both_ways(maker, (first, last), rng.randint(7, 15), opening)
        closing, out, paid = entries[-1].balance, -total(entries, -1), total(entries, 1)
        sheet.need(sheet.step * 9)
        sheet.down(16)
        sheet.line(50, f"{currency} Current Account", size=11, bold=True)
        columns = moved(
            house,
            (
                Column("date", 50, "l", ("Date",)),
                Column("text", 120, "l", ("Transaction details",)),
                Column("in", 380, "r", ("Deposit",)),
                Column("out", 460, "r", ("Withdrawal",)),
                Column("balance", 548, "r", (f"Balance ({currency})",)),
            ),
            0.0,
        )
        table = Table(
            sheet,
            columns,
            lambda each: {
                "date": f"{each.day:%d %b %Y}",
                "in" if each.amount > 0 else "out": figure(abs(each.amount)),
                "balance": figure(each.balance),
            },
            currency=currency,
            account=account,
        )
        sheet.note("opening", opening, account)
        print_after(table, {"text": "B/F BALANCE", "balance": figure(opening)}, entries)
        sheet.need(sheet.step * 2)
        table.row({"text": "C/F BALANCE", "balance": figure(closing)})
        sheet.note("closing", closing, account)
        sheet.down(sheet.step)
        table.row({"text": "Total", "in": figure(paid), "out": figure(out)}, bold=True)
        sheet.note("deposits", paid, account)
        sheet.note("withdrawals", out, account)
        sheet.down(sheet.step)
    return sheet.finish(rng)


def _dr_and_cr(seed: int, later: int) -> Statement:
    """Draw an Indian cash-credit account that is always overdrawn: one amount column whose letters tell the direction."""
    house, rng = seeded(_HALF, "dr and cr", seed, later)
    bank = ("Godavari Bank", "Tunga Grameen Bank", "Bhima Urban Co-op Bank", "Kaveri Bank Ltd", "Krishna Valley Bank")[
        seed
    ]
    first, last = month_of(2024, (2, 4, 7, 10, 12)[seed], later)
    sheet = Sheet(house, size=8.0)
    opening = -invent_cents(rng, 90_000_000, 190_000_000)
    maker = Inventor(rng, _OVERDRAFT, _OVERDRAFT_INCOME, income=0.45, most_out=9_000_000, most_in=10_000_000, lag=1)
    entries = invent_both_ways(maker, (first, last), rng.randint(28, 56), opening)
    closing, out, paid = entries[-1].balance, -total(entries, -1), total(entries, 1)
    letters = house.choice((("Dr", "Cr"), ("(Dr)", "(Cr)"), ("DR", "CR")))

    def lettered(amount: Decimal) -> str:
        return f"{figure(abs(amount), indian=True)} {letters[amount > 0]}"

    sheet.line(50, bank, size=15, bold=True)
    sheet.line(50, f"CASH CREDIT A/C 41770{house.randint(10**5, 10**6 - 1)}   M/S LAKSHMI FABRICATORS")
    sheet.line(50, f"Statement for the period {first:%d-%m-%Y} to {last:%d-%m-%Y}   Limit 25,00,000.00")
    sheet.down(14)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Txn Date",)),
            Column("value", 115, "l", ("Value Date",)),
            Column("text", 180, "l", (house.choice(("Particulars", "Description")),)),
            Column("amount", 440, "r", ("Amount (INR)",)),
            Column("balance", 550, "r", ("Balance (INR)",)),
        ),
    )
    table = Table(
        sheet,
        columns,
        lambda each: {
            "date": f"{each.day:%d-%m-%Y}",
            "value": f"{each.value_day:%d-%m-%Y}",
            "amount": lettered(each.amount),
            "balance": lettered(each.balance),
        },
    )
    sheet.note("opening", opening)
    print_after(table, {"text": "OPENING BALANCE", "balance": lettered(opening)}, entries)
    sheet.need(sheet.step * 5)
    sheet.down(8)
    for kind, label, text, amount in (
        ("withdrawals", "Total Debits", figure(out, indian=True), out),
        ("deposits", "Total Credits", figure(paid, indian=True), paid),
        ("closing", "Closing Balance", lettered(closing), closing),
    ):
        sheet.pair(180, label, 440, text, bold=True)
        sheet.note(kind, amount)
    sheet.line(50, "Interest is applied monthly at 11.40% on the daily outstanding.", size=7)
    return sheet.finish(rng)


def _balance_with_letters(seed: int, later: int) -> Statement:
    """Draw a scanned Australian account: the year only on its first and last line, balances marked CR."""
    house, rng = seeded(_HALF, "balance with letters", seed, later)
    bank = ("Orana Bank", "Lachlan Community Bank", "Galah Credit Union", "Macquarie Plains Bank", "Murray Mutual")[
        seed
    ]
    first, last = cycle_of(2024, (1, 5, 8, 10, 1)[seed], house.randint(12, 24), later)
    sheet = Sheet(house, size=9.5, font="helv", leading=1.55)
    opening = invent_cents(rng, 250_000, 900_000)
    maker = Inventor(rng, _AUSTRALIAN, _AUSTRALIAN_INCOME, income=0.22, most_out=34_000, most_in=270_000)
    entries = invent_both_ways(maker, (first, last), rng.randint(20, 30), opening)
    closing, out, paid = entries[-1].balance, -total(entries, -1), total(entries, 1)
    sheet.line(50, bank, size=17, bold=True)
    sheet.line(50, f"Everyday Account   Statement period {first:%-d %b %Y} - {last:%-d %b %Y}")
    sheet.line(50, f"BSB 062-{house.randint(100, 999)}   Account 1044 7719")
    sheet.down(14)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Date",)),
            Column("text", 105, "l", ("Transaction",)),
            Column("out", 360, "r", ("Debit",)),
            Column("in", 440, "r", ("Credit",)),
            Column("balance", 555, "r", ("Balance",)),
        ),
    )
    table = Table(
        sheet,
        columns,
        lambda each: {
            "date": f"{each.day:%d %b}",
            "in" if each.amount > 0 else "out": figure(abs(each.amount)),
            "balance": f"${figure(each.balance)} CR",
        },
    )
    start = {"date": f"{first:%d %b}", "text": f"{first.year} OPENING BALANCE", "balance": f"${figure(opening)} CR"}
    sheet.note("opening", opening)
    print_after(table, start, entries)
    end = {"date": f"{last:%d %b}", "text": f"{last.year} CLOSING BALANCE", "balance": f"${figure(closing)} CR"}
    table.row(end)
    sheet.note("closing", closing)
    sheet.down(28)
    heads = ("Opening balance", "- Total debits", "+ Total credits", "= Closing balance")
    texts = (f"${figure(opening)} CR", f"${figure(out)}", f"${figure(paid)}", f"${figure(closing)} CR")
    kinds = ("opening", "withdrawals", "deposits", "closing")
    sheet.need(sheet.step * 3)
    for x, head, text, kind, amount in zip(
        (150, 280, 415, 550), heads, texts, kinds, (opening, out, paid, closing), strict=True
    ):
        sheet.write(x, head, "r", bold=True)
        sheet.write(x, text, "r", y=sheet.y + sheet.step)
        sheet.note(kind, amount)
    return sheet.finish(rng, scan=True)


def _bare_amounts(seed: int, later: int) -> Statement:
    """Draw a purchasing card's list with one total of everything, which says nothing of any direction."""
    house, rng = seeded(_HALF, "bare amounts", seed, later)
    bank = (
        "Thistle Purchase Card",
        "Crane Corporate Card",
        "Penrose Card Services",
        "Alder Fleet Card",
        "Quayside Card",
    )[seed]
    first, last = month_of(2024, (1, 4, 7, 10, 11)[seed], later)
    sheet = Sheet(house, size=house.choice((8.5, 9.0)), width=612, height=792)
    opening = invent_cents(rng, 80_000, 300_000)
    maker = Inventor(rng, _PLAIN, _PLAIN, income=0.35, most_out=9_000, most_in=15_000, lag=2)
    entries = invent_both_ways(maker, (first, last), rng.randint(22, 46), opening)
    sheet.line(50, bank, size=17, bold=True)
    sheet.line(50, f"Entries of {first:%B %Y}   Card ending {house.randint(1000, 9999)}")
    sheet.down(14)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Date",)),
            Column("text", 150, "l", (house.choice(("Entry", "Name", "Details")),)),
            Column("value", 380, "l", ("Posted",)),
            Column("amount", 560, "r", (house.choice(("Amount", "USD", "Amount $")),)),
        ),
    )
    day = house.choice(("%b %d, %Y", "%Y-%m-%d", "%d-%b-%Y"))
    Table(
        sheet,
        columns,
        lambda each: {
            "date": each.day.strftime(day),
            "value": each.value_day.strftime(day),
            "amount": figure(abs(each.amount)),
        },
        extent=(45, 565),
    ).print(entries)
    sheet.need(sheet.step * 2)
    volume = total(entries, 1) - total(entries, -1)
    sheet.pair(150, f"{len(entries)} entries", 560, figure(volume), bold=True)
    sheet.note("subtotal", volume)
    return sheet.finish(rng, signs_proven=False)


def _either_order(seed: int, later: int) -> Statement:
    """Draw a credit union's share account whose few dates are days up to the twelfth, in two columns."""
    house, rng = seeded(_HALF, "either order", seed, later)
    bank = (
        "Lighthouse Members",
        "Teller Street Union",
        "Kiosk Credit Union",
        "Millpond Co-op",
        "Share & Thrift Union",
    )[seed]
    month, _ = month_of(2023, seed + 5, later)
    sheet = Sheet(house, size=house.choice((9.0, 9.5)))
    opening = invent_cents(rng, 150_000, 700_000)
    days = sorted(rng.sample(range(1, 13), rng.randint(8, 10)))
    maker = Inventor(rng, _CLUB, _CLUB, income=0.5, most_out=40_000, most_in=70_000)
    drawn = invent_both_ways(maker, (month, month), len(days), opening)
    whens = [date(month.year, month.month, each) for each in days]
    entries = [replace(each, day=when, value_day=when) for each, when in zip(drawn, whens, strict=True)]
    closing, out, paid = entries[-1].balance, -total(entries, -1), total(entries, 1)
    sheet.line(50, bank, size=16, bold=True)
    sheet.line(
        50, f"Share account {house.randint(10**5, 10**6 - 1)}   Member since long ago   Leaf {house.randint(3, 40)}"
    )
    sheet.down(10)
    for kind, label, amount in (
        ("opening", "Balance at start", opening),
        ("deposits", "Total paid in", paid),
        ("withdrawals", "Total paid out", out),
        ("closing", "Balance at end", closing),
    ):
        sheet.pair(50, label, 260, figure(amount))
        sheet.note(kind, amount)
    sheet.down(12)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Posted",)),
            Column("value", 120, "l", ("Effective",)),
            Column("text", 195, "l", ("Entry",)),
            Column("amount", 430, "r", ("Amount",)),
            Column("balance", 540, "r", ("Balance",)),
        ),
    )
    day = house.choice(("%d/%m/%Y", "%d-%m-%Y", "%d/%m/%y"))
    Table(
        sheet,
        columns,
        lambda each: {
            "date": each.day.strftime(day),
            "value": each.value_day.strftime(day),
            "amount": figure(each.amount),
            "balance": figure(each.balance),
        },
    ).print(entries)
    return sheet.finish(rng, dates_certain=False)


def _total_astray(seed: int, later: int) -> Statement:
    """Draw a company's account whose printed closing balance and payments out miss what the rows make."""
    house, rng = seeded(_HALF, "total astray", seed, later)
    bank = ("Northumbria Trade Bank", "Tyne Commercial", "Kielder Business Bank", "Hexham & County", "Rothbury Bank")[
        seed
    ]
    first, last = month_of(2024, (1, 3, 6, 9, 12)[seed], later)
    sheet = Sheet(house, size=house.choice((8.5, 9.0)))
    opening = invent_cents(rng, 900_000, 2_500_000)
    maker = Inventor(rng, _COMPANY, _COMPANY_INCOME, income=0.35, most_out=140_000, most_in=320_000)
    entries = invent_both_ways(maker, (first, last), rng.randint(30, 52), opening)
    slip = rng.choice((Decimal("90.00"), Decimal("-270.00"), Decimal("18.00"), Decimal("450.00")))
    out, paid = slip - total(entries, -1), total(entries, 1)
    closing = opening + paid - out
    sheet.line(50, bank, size=16, bold=True)
    sheet.line(50, f"Business account statement   {first:%-d %B %Y} - {last:%-d %B %Y}", bold=True)
    sheet.line(50, f"Sort code 09-41-77   Account {house.randint(10**7, 10**8 - 1)}")
    sheet.down(14)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Date",)),
            Column("text", 130, "l", ("Description",)),
            Column("out", 430, "r", (house.choice(("Payments out", "Debit (£)")),)),
            Column("in", 540, "r", (house.choice(("Payments in", "Credit (£)")),)),
        ),
    )
    table = Table(
        sheet,
        columns,
        lambda each: {"date": f"{each.day:%d %b %Y}", "in" if each.amount > 0 else "out": figure(abs(each.amount))},
    )
    table.print(entries)
    sheet.need(sheet.step * 6)
    sheet.down(10)
    for kind, label, amount in (
        ("opening", f"Opening balance {first:%-d %B %Y}", opening),
        ("deposits", "Total payments in", paid),
        ("withdrawals", "Total payments out", out),
        ("closing", f"Closing balance {last:%-d %B %Y}", closing),
    ):
        sheet.pair(130, label, 430, f"£{figure(amount)}", bold=True)
        sheet.note(kind, amount)
    return sheet.finish(rng, has_sums_right=False)


#: Every function draws one statement of a bank (its seed) and a month (0, or 1 for the next).
SHAPES: dict[str, DrawShape] = name_shapes(
    (
        _daily_balance,
        _soll_und_haben,
        _newest_first,
        _kwota_i_saldo,
        _dated_twice,
        _af_en_bij,
        _currency_pockets,
        _dr_and_cr,
        _balance_with_letters,
        _bare_amounts,
        _either_order,
        _total_astray,
    )
)
