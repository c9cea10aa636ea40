"""The fourth open half: layouts that banks of several countries print, drawn without knowledge of the reader."""

from __future__ import annotations

from collections.abc import Sequence
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
    seeded,
    total,
)

HALF = "fourth open"
_BRITISH_SPENDS = (
    "TESCO STORES 3142 LEEDS", "TFL TRAVEL CH", "COUNCIL TAX WAKEFIELD", "BRITISH GAS", "GREGGS PLC",
    "AMZNMKTPLACE", "THAMES WATER", "VODAFONE LTD", "BOOTS 0412 YORK", "J HARGREAVES RENT",
)  # fmt: skip
_BRITISH_INCOMES = ("ACME LOGISTICS LTD SALARY", "HMRC CHILD BENEFIT", "P OKAFOR", "EBAY COMMERCE UK")
_AMERICAN_SPENDS = (
    "PUBLIX #1187 TAMPA FL", "SHELL OIL 57442 OCALA FL", "ZELLE TO MARIA ORTEGA", "DUKE ENERGY BILL PAY",
    "NETFLIX.COM LOS GATOS CA", "HOME DEPOT 6318 TAMPA FL", "GEICO AUTO DES:PAYMENT", "STARBUCKS STORE 08812",
)  # fmt: skip
_AMERICAN_INCOMES = ("BAYSIDE SCHOOLS DES:PAYROLL", "MOBILE DEPOSIT", "ZELLE FROM K NGUYEN", "IRS TREAS 310 TAX REF")


def _bank(names: Sequence[str], seed: int) -> str:
    return names[seed % len(names)]


def _one_way(entry: Entry, sign: int, group: str = ",", point: str = ".", *, indian: bool = False) -> str:
    """Return the amount if the movement goes that way, or nothing."""
    return figure(abs(entry.amount), group, point, indian=indian) if entry.amount * sign > 0 else ""


def _long_day(day: date) -> str:
    return f"{day.day} {day:%B %Y}"


def _british_codes(seed: int, later: int) -> Statement:
    """Draw codes of payment kinds, balances at the end of a day, and carries."""
    house, rng = seeded(HALF, "british codes", seed, later)
    start, end = month_of(2023, 10 + seed, later)
    opening = invent_cents(rng, -40_000, -5_000) if seed % 2 else invent_cents(rng, 200_000, 600_000)
    maker = Inventor(rng, _BRITISH_SPENDS, _BRITISH_INCOMES, income=0.2, most_out=16_000, most_in=140_000)
    entries = invent_both_ways(maker, (start, end), rng.randint(24, 44), opening)
    closing = entries[-1].balance
    sheet = Sheet(house, size=8.5)

    def worded(amount: Decimal) -> str:
        return figure(abs(amount)) + (" D" if amount < 0 else "")

    sheet.line(
        50, _bank(("Northfold Bank UK", "Aldwych & Severn", "Pennine Clearing Bank", "Calder Bank"), seed), size=16
    )
    sheet.line(
        50, f"Your {house.choice(('Bank Account', 'Advance Account', 'Graduate Bank Account'))} details", bold=True
    )
    sheet.line(50, f"{_long_day(start)} to {_long_day(end)}")
    sheet.line(50, f"Sortcode 40-{house.randint(10, 99)}-{house.randint(10, 99)}   Sheet Number {40 + later}")
    top = sheet.y + 6
    sheet.y = top + 14
    sheet.write(330, "Account Summary", bold=True)
    sheet.down(sheet.step)
    summary = (
        ("Opening Balance", worded(opening)), ("Payments In", figure(total(entries, 1))),
        ("Payments Out", figure(-total(entries, -1))), ("Closing Balance", worded(closing)),
    )  # fmt: skip
    for label, text in summary:
        sheet.pair(330, label, 545, text)
    sheet.box(320, top, 552, sheet.y)
    sheet.note("opening", opening)
    sheet.note("deposits", total(entries, 1))
    sheet.note("withdrawals", -total(entries, -1))
    sheet.note("closing", closing)
    sheet.down(24)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Date",)),
            Column("code", 104, "l", ("Type",)),
            Column("text", 136, "l", ("Payment details",)),
            Column("out", 390, "r", ("£Paid out",)),
            Column("in", 465, "r", ("£Paid in",)),
            Column("balance", 545, "r", ("£Balance",)),
        ),
        2.0,
    )
    codes = {True: ("CR", "BP", "TFR"), False: ("VIS", "DD", "SO", ")))", "ATM")}
    day_form = house.choice(("%d %b %y", "%d %b %Y"))
    table = Table(
        sheet,
        columns,
        lambda each: {
            "date": each.day.strftime(day_form),
            "code": rng.choice(codes[each.amount > 0]),
            "out": _one_way(each, -1),
            "in": _one_way(each, 1),
            "balance": worded(each.balance),
        },
        is_date_once=True,
        is_balance_once=True,
        per_page=house.randint(13, 18),
        carry_out=lambda amount: {"text": "BALANCE CARRIED FORWARD", "balance": worded(amount)},
        carry_in=lambda amount: {"text": "BALANCE BROUGHT FORWARD", "balance": worded(amount)},
    )
    table.head()
    table.row({"date": start.strftime(day_form), "text": "BALANCE BROUGHT FORWARD", "balance": worded(opening)})
    sheet.note("opening", opening)
    sheet.down(sheet.step)
    sheet.running_head = table.head
    replace(table, has_head=False).print(entries)
    table.row({"date": end.strftime(day_form), "text": "BALANCE CARRIED FORWARD", "balance": worded(closing)})
    sheet.note("closing", closing)
    sheet.down(2 * sheet.step)
    sheet.running_head = None
    sheet.need(40)
    sheet.line(
        50, "D beside a balance means overdrawn. Debit interest 39.9% EAR variable; credit interest 0.00% AER.", size=7
    )
    return sheet.finish(rng)


def _american_sections(seed: int, later: int) -> Statement:
    """Draw additions, subtractions and fees apart, and each day's ledger balance."""
    house, rng = seeded(HALF, "american sections", seed, later)
    start, end = cycle_of(2024, 1 + 3 * seed, house.randint(12, 26), later)
    opening = invent_cents(rng, 300_000, 900_000)
    maker = Inventor(rng, _AMERICAN_SPENDS, _AMERICAN_INCOMES, income=0.25, most_out=28_000, most_in=180_000)
    entries = invent_both_ways(maker, (start, end - timedelta(days=1)), rng.randint(20, 38), opening)
    fee = Decimal(house.choice(("4.95", "12.00", "16.00")))
    entries = balanced([*entries, Entry(end, ("Monthly Maintenance Fee",), -fee, ZERO, end)], opening)
    added, spent, closing = total(entries, 1), -total(entries, -1) - fee, entries[-1].balance
    sheet = Sheet(house, width=612, height=792)
    sheet.line(
        45, _bank(("Palmetto National", "First Cumberland Bank", "Lakeshore Trust", "Sonora Community"), seed), size=16
    )
    sheet.line(45, f"Your {house.choice(('Advantage Banking', 'Everyday Checking', 'Core Checking'))}", bold=True)
    sheet.line(45, f"for {start:%B} {start.day}, {start.year} to {end:%B} {end.day}, {end.year}")
    sheet.line(
        45, f"Account number: {house.randint(1000, 9999)} {house.randint(1000, 9999)} {house.randint(1000, 9999)}"
    )
    sheet.down(14)
    sheet.line(45, "Account summary", size=12, bold=True)
    sheet.pair(45, f"Beginning balance on {start:%B} {start.day}, {start.year}", 330, f"${figure(opening)}")
    sheet.note("opening", opening)
    sheet.pair(45, "Deposits and other additions", 330, figure(added))
    sheet.note("deposits", added)
    sheet.pair(45, "Withdrawals and other subtractions", 330, figure(-spent))
    sheet.note("subtotal", -spent)
    sheet.pair(45, "Service fees", 330, figure(-fee))
    sheet.note("subtotal", -fee)
    sheet.pair(45, f"Ending balance on {end:%B} {end.day}, {end.year}", 330, f"${figure(closing)}", bold=True)
    sheet.note("closing", closing)
    columns = moved(
        house,
        (
            Column("date", 45, "l", ("Date",)),
            Column("text", 120, "l", ("Description",)),
            Column("amount", 565, "r", ("Amount",)),
        ),
    )
    parts = (
        ("Deposits and other additions", [each for each in entries if each.amount > 0], added),
        ("Withdrawals and other subtractions", [each for each in entries[:-1] if each.amount < 0], -spent),
        ("Service fees", entries[-1:], -fee),
    )
    for title, part, amount in parts:
        sheet.down(16)
        sheet.need(9 * sheet.step)
        sheet.line(45, title, size=12, bold=True)
        table = Table(
            sheet,
            columns,
            lambda each: {"date": f"{each.day:%m/%d/%y}", "amount": figure(each.amount)},
            extent=(45, 570),
        )
        table.print(part)
        sheet.need(sheet.step)
        sheet.pair(
            45,
            f"Total {title[0].lower()}{title[1:]}",
            565,
            f"{'-' if amount < 0 else ''}${figure(abs(amount))}",
            bold=True,
        )
        sheet.note("deposits" if amount > 0 else "subtotal", amount)
    days = {each.day: each.balance for each in entries}
    sheet.down(16)
    sheet.need((4 + len(days) // 3) * sheet.step)
    sheet.line(45, "Daily ledger balances", size=12, bold=True)
    for number in range(3):
        sheet.write(45 + number * 180, "Date", bold=True)
        sheet.write(185 + number * 180, "Balance($)", "r", bold=True)
    sheet.down(sheet.step)
    for number, (day, balance) in enumerate(days.items()):
        sheet.write(45 + number % 3 * 180, f"{day:%m/%d}")
        sheet.write(185 + number % 3 * 180, figure(balance), "r")
        if number % 3 == 2:
            sheet.down(sheet.step)
    return sheet.finish(rng)


_GERMAN_OUT = (
    "Basislastschrift STADTWERKE BOCHUM", "Kartenzahlung REWE SAGT DANKE 4471", "Dauerauftrag HAUSVERWALTUNG KLEIN",
    "Kartenzahlung DM DROGERIEMARKT", "Basislastschrift TELEFON AG BONN", "Auszahlung GAA FILIALE MITTE",
)  # fmt: skip
_GERMAN_IN = (
    "Lohn/Gehalt MASCHINENBAU VOSS GMBH",
    "Überweisungsgutschrift FAMILIENKASSE",
    "Überweisungsgutschrift J. BRANDT",
)
_GERMAN_MORE = (
    "Rechnung vom Vormonat", "Kundennr. K-4471 / 88", "EREF: NOTPROVIDED", "Verwendungszweck siehe Anlage",
    "Gläubiger-ID DE98ZZZ00000", "Mandat M-2201-B", "Vielen Dank für Ihren Einkauf",
)  # fmt: skip


def _german_sides(seed: int, later: int) -> Statement:
    """Draw bookings with S and H after the amount, old and new balance, carries."""
    house, rng = seeded(HALF, "german sides", seed, later)
    start, end = month_of(2023, 11 + seed, later)
    opening = invent_cents(rng, -90_000, -10_000) if seed == 2 else invent_cents(rng, 250_000, 700_000)
    maker = Inventor(
        rng, _GERMAN_OUT, _GERMAN_IN, _GERMAN_MORE, many=0.7, income=0.25, most_out=45_000, most_in=260_000, lag=2
    )
    entries = invent_both_ways(maker, (start, end - timedelta(days=2)), rng.randint(20, 36), opening)
    closing = entries[-1].balance
    sheet = Sheet(house, size=8.5)

    def sided(amount: Decimal) -> str:
        return f"{figure(abs(amount), '.', ',')} {'S' if amount < 0 else 'H'}"

    name = _bank(
        ("Volksbank Ruhrtal eG", "Raiffeisenbank Isarwinkel", "VR Bank Nordheide", "Bergische Genossenschaftsbank"),
        seed,
    )
    blatt = house.choice(("Blatt", "Seite"))
    sheet.line(50, name, size=15, bold=True)
    sheet.line(50, "Kontoauszug", size=12, bold=True)
    sheet.line(50, f"Nr. {end.month}/{end.year}   {blatt} 1   erstellt am {end:%d.%m.%Y}")
    sheet.line(
        50,
        f"Kontonummer {house.randint(10**6, 10**7)}   {house.choice(('VR-PrivatKonto', 'Girokonto', 'Kontokorrent'))}   EUR-Konto",
    )
    sheet.line(50, "Herrn/Frau A. Musterfeld, Lindenweg 4, 44787 Bochum")
    sheet.down(14)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Bu-Tag",)),
            Column("value", 92, "l", ("Wert",)),
            Column("text", 136, "l", ("Vorgang",)),
            Column("amount", 545, "r", (house.choice(("Betrag EUR", "Umsatz EUR")),)),
        ),
    )

    def page_head() -> None:
        sheet.line(50, f"{name}   Kontoauszug Nr. {end.month}/{end.year}   {blatt} {sheet.number}")
        sheet.down(10)

    table = Table(
        sheet,
        columns,
        lambda each: {"date": f"{each.day:%d.%m.}", "value": f"{each.value_day:%d.%m.}", "amount": sided(each.amount)},
        per_page=house.randint(11, 15),
        carry_out=lambda amount: {"text": f"Übertrag auf {blatt} {sheet.number + 1}", "amount": sided(amount)},
        carry_in=lambda amount: {"text": f"Übertrag von {blatt} {sheet.number - 1}", "amount": sided(amount)},
    )
    table.head()
    before = start - timedelta(days=1)
    table.row({"text": f"alter Kontostand vom {before:%d.%m.%Y}", "amount": sided(opening)}, bold=True)
    sheet.note("opening", opening)
    sheet.down(1.5 * sheet.step)
    sheet.running_head = lambda: (page_head(), table.head())[0]
    replace(table, has_head=False).print(entries)
    sheet.need(3 * sheet.step)
    sheet.down(4)
    table.row({"text": f"neuer Kontostand vom {end:%d.%m.%Y}", "amount": sided(closing)}, bold=True)
    sheet.note("closing", closing)
    sheet.down(2 * sheet.step)
    sheet.line(
        50, "Eingeräumte Kontoüberziehung 2.000,00 EUR. Sollzinssatz 10,85 %, geduldete Überziehung 14,85 %.", size=7
    )
    sheet.line(50, "Bitte prüfen Sie die Buchungen. Einwendungen sind innerhalb von sechs Wochen zu erheben.", size=7)
    sheet.footer = lambda number, count: ""
    return sheet.finish(rng)


def _french_totals(seed: int, later: int) -> Statement:
    """Draw debit and credit columns, the old balance in one, and totals below."""
    house, rng = seeded(HALF, "french totals", seed, later)
    start, end = month_of(2024, 2 + seed, later)
    opening = invent_cents(rng, 180_000, 500_000)
    spends = (
        "PAIEMENT CARTE MONOPRIX LYON", "PRELEVEMENT EDF CLIENTS PARTICULIERS", "PRLV SEPA FREE TELECOM",
        "RETRAIT DAB LYON BELLECOUR", "PAIEMENT CARTE SNCF INTERNET", "VIR SEPA LOYER SCI DES TILLEULS",
    )  # fmt: skip
    incomes = ("VIR RECU SALAIRE STE DUMONT", "VIR SEPA CPAM RHONE", "REMISE CHEQUE 0000412", "VIR INST M. LEFEVRE")
    more = ("REF 4471 XX", "MANDAT FR-22-B", "MOTIF LOYER", "ID EMETTEUR FR41ZZZ")
    maker = Inventor(rng, spends, incomes, more, many=0.4, income=0.25, most_out=38_000, most_in=210_000, lag=2)
    entries = invent_both_ways(maker, (start, end - timedelta(days=2)), rng.randint(18, 38), opening)
    closing = entries[-1].balance
    group = house.choice((" ", " ", "."))
    sheet = Sheet(house, size=8.5)
    sheet.line(
        50,
        _bank(("Banque du Rhône", "Crédit Littoral", "Caisse Bretonne", "Société Mosellane de Banque"), seed),
        size=16,
        bold=True,
    )
    sheet.line(50, house.choice(("RELEVE DE COMPTE CHEQUES", "RELEVE DE VOTRE COMPTE", "COMPTE DE DEPOT")), bold=True)
    sheet.line(50, f"P. {1 + later}   du {start:%d/%m/%Y} au {end:%d/%m/%Y}   Monnaie du compte : EURO")
    sheet.line(50, f"RIB : 30004 00{house.randint(100, 999)} 000{house.randint(10**7, 10**8)} 41")
    sheet.line(50, "Votre facilité de caisse autorisée : 500,00")
    sheet.down(16)
    day_form = house.choice(("%d.%m", "%d/%m"))
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Date",)),
            Column("text", 95, "l", ("Nature des opérations",)),
            Column("value", 345, "l", ("Valeur",)),
            Column("out", 460, "r", ("Débit",)),
            Column("in", 545, "r", ("Crédit",)),
        ),
    )
    table = Table(
        sheet,
        columns,
        lambda each: {
            "date": each.day.strftime(day_form),
            "value": each.value_day.strftime(day_form),
            "out": _one_way(each, -1, group, ","),
            "in": _one_way(each, 1, group, ","),
        },
    )
    table.head()
    before = start - timedelta(days=1)
    table.row({"text": f"SOLDE CREDITEUR AU {before:%d.%m.%Y}", "in": figure(opening, group, ",")}, bold=True)
    sheet.note("opening", opening)
    sheet.down(sheet.step)
    sheet.running_head = table.head
    replace(table, has_head=False).print(entries)
    sheet.running_head = None
    sheet.need(4 * sheet.step)
    sheet.down(4)
    paid, spent = total(entries, 1), -total(entries, -1)
    title = house.choice(("TOTAL DES OPERATIONS", "Total des opérations"))
    table.row({"text": title, "out": figure(spent, group, ","), "in": figure(paid, group, ",")}, bold=True)
    sheet.note("withdrawals", spent)
    sheet.note("deposits", paid)
    sheet.down(sheet.step)
    table.row({"text": f"SOLDE CREDITEUR AU {end:%d.%m.%Y}", "in": figure(closing, group, ",")}, bold=True)
    sheet.note("closing", closing)
    sheet.down(2 * sheet.step)
    sheet.line(
        50, "Garantie des dépôts : votre banque adhère au FGDR, dans la limite de 100 000 euros par déposant.", size=7
    )
    sheet.footer = lambda number, count: f"{number}/{count}"
    return sheet.finish(rng)


_SWISS_HEADS = (
    ("Kontoauszug", "Datum", "Informationen", "Belastungen", "Gutschriften", "Valuta", "Saldo", "Anfangssaldo", "Schlusssaldo", "Umsatztotal"),
    ("Extrait de compte", "Date", "Informations", "Débits", "Crédits", "Valeur", "Solde", "Solde initial", "Solde final", "Total des mouvements"),
    ("Kontoauszug", "Datum", "Buchungstext", "Belastung", "Gutschrift", "Valuta", "Saldo", "Saldovortrag", "Schlusssaldo", "Umsatztotal"),
    ("Estratto conto", "Data", "Informazioni", "Addebiti", "Accrediti", "Valuta", "Saldo", "Saldo iniziale", "Saldo finale", "Totale movimenti"),
)  # fmt: skip


def _swiss_newest_first(seed: int, later: int) -> Statement:
    """Draw a company's account, newest first, with value dates and apostrophes."""
    house, rng = seeded(HALF, "swiss newest first", seed, later)
    title, day, text, outward, inward, value, balance, first, last, both = _SWISS_HEADS[seed % 4]
    start, end = month_of(2024, 3 + 2 * seed, later)
    opening = invent_cents(rng, 2_500_000, 9_000_000)
    spends = (
        "SWISSCOM (SCHWEIZ) AG",
        "SUVA LUZERN",
        "IMMO BELLEVUE AG, MIETE",
        "AXPO SERVICES",
        "E-BANKING SAMMELAUFTRAG",
    )
    incomes = ("HOTEL ADLER GMBH", "BAUMANN & CO", "GENOSSENSCHAFT MIGRA", "TWINT SAMMELGUTSCHRIFT")
    more = ("ZAHLUNGSREF. 4471-22", "8004 ZUERICH", "RF18 5390 0754", "ORDER 77-B", "CH-3000 BERN")
    maker = Inventor(rng, spends, incomes, more, many=0.6, income=0.4, most_out=900_000, most_in=1_400_000, lag=3)
    entries = invent_both_ways(maker, (start, end - timedelta(days=3)), rng.randint(18, 34), opening)
    closing, currency = entries[-1].balance, ("CHF", "CHF", "EUR", "USD")[seed % 4]
    sheet = Sheet(house, size=8.0)
    sheet.line(
        50,
        _bank(("Zürcher Handelskasse", "Banque du Jorat", "Aare Privatbank", "Banca del Ceresio"), seed),
        size=15,
        bold=True,
    )
    sheet.line(50, f"{title} {start:%d.%m.%Y} - {end:%d.%m.%Y}", bold=True)
    sheet.line(
        50,
        f"Tobler Metallbau AG   IBAN CH{house.randint(10, 99)} 0023 0230 {house.randint(1000, 9999)} 4401 X   {currency}",
    )
    sheet.down(16)
    columns = moved(
        house,
        (
            Column("date", 50, "l", (day,)),
            Column("text", 105, "l", (text,)),
            Column("out", 345, "r", (outward,)),
            Column("in", 425, "r", (inward,)),
            Column("value", 438, "l", (value,)),
            Column("balance", 550, "r", (balance,)),
        ),
        1.5,
    )
    table = Table(
        sheet,
        columns,
        lambda each: {
            "date": f"{each.day:%d.%m.%Y}",
            "out": _one_way(each, -1, "'"),
            "in": _one_way(each, 1, "'"),
            "value": f"{each.value_day:%d.%m.%Y}",
            "balance": figure(each.balance, "'"),
        },
        is_newest_first=True,
    )
    table.head()
    table.row({"date": f"{end:%d.%m.%Y}", "text": last, "balance": figure(closing, "'")}, bold=True)
    sheet.note("closing", closing)
    sheet.down(sheet.step)
    sheet.running_head = table.head
    replace(table, has_head=False).print(entries)
    sheet.running_head = None
    sheet.need(4 * sheet.step)
    table.row({"date": f"{start:%d.%m.%Y}", "text": first, "balance": figure(opening, "'")}, bold=True)
    sheet.note("opening", opening)
    sheet.down(1.5 * sheet.step)
    paid, spent = total(entries, 1), -total(entries, -1)
    table.row({"text": both, "out": figure(spent, "'"), "in": figure(paid, "'")}, bold=True)
    sheet.note("withdrawals", spent)
    sheet.note("deposits", paid)
    return sheet.finish(rng)


def _indian_narration(seed: int, later: int) -> Statement:
    """Draw narrations over several lines, lakh grouping and a summary at the end."""
    house, rng = seeded(HALF, "indian narration", seed, later)
    start, end = month_of(2024, 1 + 2 * seed, later)
    opening = invent_cents(rng, 12_000_000, 60_000_000)
    spends = (
        "UPI-RAMESH TRADERS-PAYTMQR28@PAYTM", "ACH D- BAJAJ FINANCE-4471", "IMPS-PRIYA NAIR-KKBK-RENT",
        "POS 416021XXXXXX MORE RETAIL", "NEFT DR-ICIC0000104-S K ELECTRICALS", "ATW-416021XXXXXX-MUMBAI",
    )  # fmt: skip
    incomes = (
        "NEFT CR-CITI0000002-INFRATECH PVT LTD",
        "UPI-ANITA DESAI-OKHDFC",
        "INTEREST PAID TILL DATE",
        "CASH DEP ANDHERI EAST",
    )
    more = ("YESB0PTMUPI-UPI", "PAYMENT FROM PHONE", "NETBANK, MUM", "SALARY AND ARREARS", "COLLECT REQUEST")
    maker = Inventor(rng, spends, incomes, more, many=0.65, income=0.3, most_out=2_500_000, most_in=16_000_000)
    entries = invent_both_ways(maker, (start, end), rng.randint(22, 46), opening)
    closing, paid, spent = entries[-1].balance, total(entries, 1), -total(entries, -1)
    sheet = Sheet(house, size=7.5, leading=1.6)
    sheet.line(
        40, _bank(("DECCAN BANK LTD.", "Sahyadri Bank", "Malabar Coast Bank", "YAMUNA BANK"), seed), size=15, bold=True
    )
    sheet.line(40, f"MR A K SHARMA   Account Branch : ANDHERI EAST   Account No : 501000{house.randint(10**7, 10**8)}")
    sheet.line(40, f"Cust ID : {house.randint(10**7, 10**8)}   OD Limit : 0.00   Currency : INR")
    sheet.line(40, f"Statement of account   From : {start:%d/%m/%Y}   To : {end:%d/%m/%Y}", bold=True)
    sheet.down(14)
    day_form = ("%d/%m/%y", "%d-%m-%Y", "%d/%m/%Y", "%d/%m/%y")[seed % 4]
    columns = moved(
        house,
        (
            Column("date", 40, "l", ("Date",)),
            Column("text", 88, "l", ("Narration",)),
            Column("ref", 272, "l", (house.choice(("Chq./Ref.No.", "Ref No./Cheque No.")),)),
            Column("value", 345, "l", ("Value Dt",)),
            Column("out", 438, "r", ("Withdrawal Amt.",)),
            Column("in", 500, "r", ("Deposit Amt.",)),
            Column("balance", 566, "r", ("Closing Balance",)),
        ),
        1.0,
    )
    Table(
        sheet,
        columns,
        lambda each: {
            "date": each.day.strftime(day_form),
            "ref": f"0000{rng.randint(10**8, 10**9 - 1)}",
            "value": each.value_day.strftime(day_form),
            "out": _one_way(each, -1, indian=True),
            "in": _one_way(each, 1, indian=True),
            "balance": figure(each.balance, indian=True),
        },
        extent=(36, 570),
    ).print(entries)
    sheet.down(10)
    sheet.need(5 * sheet.step)
    sheet.line(40, "STATEMENT SUMMARY :-", bold=True)
    places = (130, 190, 240, 340, 440, 560)
    counts = [sum(each.amount * sign > 0 for each in entries) for sign in (-1, 1)]
    heads = ("Opening Balance", "Dr Count", "Cr Count", "Debits", "Credits", "Closing Bal")
    values = [figure(each, indian=True) for each in (opening, spent, paid, closing)]
    for texts in (heads, (values[0], *map(str, counts), *values[1:])):
        for place, text in zip(places, texts, strict=True):
            sheet.write(place, text, "r", bold=texts is heads)
        sheet.down(sheet.step)
    sheet.note("opening", opening)
    sheet.note("withdrawals", spent)
    sheet.note("deposits", paid)
    sheet.note("closing", closing)
    sheet.down(10)
    sheet.line(40, "This is a computer generated statement and does not require signature.", size=7)
    sheet.foot_x = 480
    return sheet.finish(rng)


def _card_rates(sheet: Sheet, year: int) -> None:
    """Print what the year cost so far and the rates of interest."""
    sheet.line(300, f"{year} Totals Year-to-Date", "c", bold=True)
    sheet.pair(150, f"Total fees charged in {year}", 450, "$58.00")
    sheet.pair(150, f"Total interest charged in {year}", 450, "$141.37")
    sheet.down(8)
    sheet.line(45, "INTEREST CHARGES", size=11, bold=True)
    for texts in (
        ("Balance Type", "Annual Percentage Rate (APR)", "Balance Subject To Interest Rate"),
        ("Purchases", "21.49%(v)(d)", "$1,244.18"),
    ):
        for place, text, side in zip((45, 330, 565), texts, "lrr", strict=True):
            sheet.write(place, text, side)
        sheet.down(sheet.step)


def _american_card(seed: int, later: int) -> Statement:
    """Draw a card with payments, purchases, fees and interest apart, and its rates."""
    house, rng = seeded(HALF, "american card", seed, later)
    start, end = cycle_of(2023, 12 + 2 * seed, house.randint(8, 22), later)
    opening = -invent_cents(rng, 60_000, 350_000)
    shops = (
        "TRADER JOE S #441 SEATTLE WA", "DELTA AIR 0062214471 ATLANTA", "UBER *TRIP HELP.UBER.COM CA",
        "COSTCO WHSE #0006 TUKWILA WA", "SPOTIFY USA NEW YORK NY", "CHEVRON 0092 BELLEVUE WA", "THE UPS STORE 1187",
    )  # fmt: skip
    last = end - timedelta(days=1)
    bought = Inventor(rng, shops, shops, income=0.0, most_out=24_000).entries(start, last, rng.randint(16, 40), ZERO)
    paid_in = Inventor(rng, shops, ("Payment Thank You-Mobile", "AMZN Mktp RETURN"), income=1.0, most_in=90_000)
    refunds = paid_in.entries(start, last, rng.randint(1, 3), ZERO)
    fees = [Entry(last, ("LATE FEE",), Decimal("-29.00"), ZERO, last)] if seed % 2 else []
    interest = [Entry(end, ("PURCHASE INTEREST CHARGE",), -invent_cents(rng, 500, 6_000), ZERO, end)]
    groups = (
        ("PAYMENTS AND OTHER CREDITS", refunds), ("PURCHASE", bought), ("FEES CHARGED", fees), ("INTEREST CHARGED", interest),
    )  # fmt: skip
    closing = opening + sum((total(group) for _, group in groups), ZERO)
    sheet = Sheet(house, width=612, height=792)
    sheet.line(
        45,
        _bank(("Sequoia Freedom Card", "Rainier Sapphire", "Hudson Cash Rewards", "Ozark Platinum"), seed),
        size=16,
        bold=True,
    )
    due = end + timedelta(days=25)
    sheet.pair(45, "New Balance", 260, f"${figure(-closing)}", bold=True)
    sheet.pair(45, "Minimum Payment Due", 260, f"${figure(invent_cents(rng, 2_500, 6_000))}")
    sheet.pair(45, "Payment Due Date", 260, f"{due:%m/%d/%y}")
    sheet.note("closing", closing)
    sheet.down(8)
    sheet.line(
        45,
        "Late Payment Warning: If we do not receive your minimum payment by the due date, you may pay up to $40.00.",
        size=7,
    )
    sheet.down(10)
    sheet.line(45, "ACCOUNT SUMMARY", size=11, bold=True)
    sheet.line(45, f"Account Number: XXXX XXXX XXXX {house.randint(1000, 9999)}")
    sheet.pair(45, "Previous Balance", 300, f"${figure(-opening)}")
    sheet.note("opening", opening)
    for label, mark, group in (
        ("Payment, Credits", "-", refunds), ("Purchases", "+", bought), ("Cash Advances", "", []),
        ("Fees Charged", "+" if fees else "", fees), ("Interest Charged", "+", interest),
    ):  # fmt: skip
        amount = abs(total(group))
        sheet.pair(45, label, 300, f"{mark}${figure(amount)}")
        if group:
            sheet.note("deposits" if group is refunds else "subtotal", total(group))
    sheet.pair(45, "New Balance", 300, f"${figure(-closing)}", bold=True)
    sheet.note("closing", closing)
    sheet.pair(45, "Opening/Closing Date", 300, f"{start:%m/%d/%y} - {end:%m/%d/%y}")
    sheet.pair(45, "Credit Limit", 300, "$14,500.00")
    sheet.down(16)
    sheet.line(45, "ACCOUNT ACTIVITY", size=11, bold=True)
    columns = moved(
        house,
        (
            Column("date", 45, "l", ("Date of", "Transaction")),
            Column("text", 125, "l", ("", "Merchant Name or Transaction Description")),
            Column("amount", 565, "r", ("", "$ Amount")),
        ),
    )
    table = Table(
        sheet,
        columns,
        lambda each: {"date": f"{each.day:%m/%d}", "amount": figure(-each.amount)},
        has_head=False,
        extent=(45, 570),
    )
    sheet.running_head = replace(table, has_head=True).head
    sheet.running_head()
    for title, group in groups:
        if group:
            sheet.need(7 * sheet.step)
            sheet.line(125, title, bold=True)
            table.print(group)
            sheet.down(6)
    sheet.running_head = None
    sheet.down(8)
    sheet.need(9 * sheet.step)
    _card_rates(sheet, end.year)
    return sheet.finish(rng)


def _australian_scan(seed: int, later: int) -> Statement:
    """Draw a scan with CR after each balance and one line of sums at the end."""
    house, rng = seeded(HALF, "australian scan", seed, later)
    start, end = month_of(2024, 4 + 2 * seed, later)
    opening = invent_cents(rng, 250_000, 700_000)
    spends = (
        "WOOLWORTHS 1187 CARLTON VIC",
        "Direct Debit AGL ENERGY",
        "BPAY YARRA VALLEY WATER",
        "MYKI TOP UP MELBOURNE",
        "Transfer to R Papadakis",
    )
    incomes = ("Salary COASTAL FREIGHT PTY", "Transfer from J Nguyen", "Direct Credit MEDICARE")
    maker = Inventor(rng, spends, incomes, income=0.28, most_out=26_000, most_in=190_000)
    entries = invent_both_ways(maker, (start, end), rng.randint(16, 30), opening)
    closing, paid, spent = entries[-1].balance, total(entries, 1), -total(entries, -1)
    sheet = Sheet(house, size=9.5, font="helv")
    sheet.line(
        50,
        _bank(("Southern Cross Mutual", "Bass Strait Bank", "Murray River Bank", "Great Ocean Bank"), seed),
        size=16,
        bold=True,
    )
    sheet.line(50, house.choice(("Smart Access", "Everyday Account", "Classic Banking")), bold=True)
    sheet.line(50, f"Statement Period  {start.day} {start:%b %Y} - {end.day} {end:%b %Y}")
    sheet.line(50, f"Account Number 06 {house.randint(1000, 9999)} {house.randint(10**7, 10**8)}")
    sheet.down(18)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Date",)),
            Column("text", 105, "l", ("Transaction",)),
            Column("out", 365, "r", ("Debit",)),
            Column("in", 450, "r", ("Credit",)),
            Column("balance", 550, "r", ("Balance",)),
        ),
        2.0,
    )
    table = Table(
        sheet,
        columns,
        lambda each: {
            "date": f"{each.day:%d %b}",
            "out": _one_way(each, -1),
            "in": f"${_one_way(each, 1)}" if each.amount > 0 else "",
            "balance": f"${figure(each.balance)} CR",
        },
    )
    table.head()
    table.row(
        {"date": f"{start:%d %b}", "text": f"{start.year} OPENING BALANCE", "balance": f"${figure(opening)} CR"},
        bold=True,
    )
    sheet.note("opening", opening)
    sheet.down(sheet.step)
    sheet.running_head = table.head
    replace(table, has_head=False).print(entries)
    sheet.running_head = None
    table.row(
        {"date": f"{end:%d %b}", "text": f"{end.year} CLOSING BALANCE", "balance": f"${figure(closing)} CR"}, bold=True
    )
    sheet.note("closing", closing)
    sheet.down(2 * sheet.step)
    sheet.need(3 * sheet.step)
    for texts in (
        ("Opening balance", "- Total debits", "+ Total credits", "= Closing balance"),
        (f"${figure(opening)} CR", f"${figure(spent)}", f"${figure(paid)}", f"${figure(closing)} CR"),
    ):
        for number, text in enumerate(texts):
            sheet.write(150 + number * 130, text, "r")
        sheet.down(sheet.step)
    sheet.note("opening", opening)
    sheet.note("withdrawals", spent)
    sheet.note("deposits", paid)
    sheet.note("closing", closing)
    return sheet.finish(rng, scan=True)


def _savings_scan(seed: int, later: int) -> Statement:
    """Draw a scan of a year's savings with interest and the rates that applied."""
    house, rng = seeded(HALF, "savings scan", seed, later)
    year = 2021 + seed % 2 + later
    start, end = date(year, 4, 6), date(year + 1, 4, 5)
    opening = invent_cents(rng, 400_000, 1_500_000)
    maker = Inventor(
        rng, ("Withdrawal Counter", "Transfer to Current Account", "Cheque Issued"),
        ("Receipt Cash", "Standing Order R Whitcombe", "Cheque Received"), income=0.6, most_out=60_000, most_in=80_000,
    )  # fmt: skip
    entries = invent_both_ways(maker, (start, end - timedelta(days=6)), rng.randint(12, 22), opening)
    quarters = [date(year, 6, 30), date(year, 9, 30), date(year, 12, 31), date(year + 1, 3, 31)]
    paid_interest = [Entry(day, ("Gross Interest",), invent_cents(rng, 900, 9_000), ZERO, day) for day in quarters]
    entries = balanced(sorted([*entries, *paid_interest], key=lambda each: each.day), opening)
    closing, paid, spent = entries[-1].balance, total(entries, 1), -total(entries, -1)
    sheet = Sheet(house, size=9.5, font=house.choice(("helv", "tiro")))
    sheet.line(
        50,
        _bank(
            (
                "Holme Valley Building Society",
                "Teesdale Permanent",
                "The Mendip Building Society",
                "Wharfe Savings Bank",
            ),
            seed,
        ),
        size=15,
        bold=True,
    )
    sheet.line(50, f"{house.choice(('Cash ISA', 'Easy Access Saver', 'Regular Saver'))} - annual statement", bold=True)
    sheet.line(50, f"For the tax year {_long_day(start)} to {_long_day(end)}")
    sheet.line(50, f"Roll number 4/{house.randint(10**5, 10**6)}-2   Mrs E Whitcombe")
    sheet.down(12)
    for label, amount, kind in (
        (f"Balance at {_long_day(start)}", opening, "opening"), ("Total paid in including interest", paid, "deposits"),
        ("Total withdrawn", spent, "withdrawals"), (f"Balance at {_long_day(end)}", closing, "closing"),
    ):  # fmt: skip
        sheet.pair(50, label, 340, f"£{figure(amount)}")
        sheet.note(kind, amount)
    sheet.down(16)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Date",)),
            Column("text", 130, "l", ("Details",)),
            Column("out", 370, "r", ("Withdrawals £",)),
            Column("in", 455, "r", ("Receipts £",)),
            Column("balance", 548, "r", ("Balance £",)),
        ),
        2.0,
    )
    Table(
        sheet,
        columns,
        lambda each: {
            "date": f"{each.day:%d %b %Y}",
            "out": _one_way(each, -1),
            "in": _one_way(each, 1),
            "balance": figure(each.balance),
        },
    ).print(entries)
    sheet.down(14)
    sheet.need(7 * sheet.step)
    interest = total(paid_interest)
    sheet.pair(50, "Gross interest paid in this tax year", 340, f"£{figure(interest)}", bold=True)
    sheet.note("subtotal", interest)
    sheet.down(10)
    for texts in (
        ("Rates from", "Balance", "Gross p.a. / AER"),
        (_long_day(start), "£1 and above", "0.85%"),
        (_long_day(quarters[1]), "£1 and above", "1.35%"),
    ):
        for place, text in zip((50, 190, 330), texts, strict=True):
            sheet.write(place, text)
        sheet.down(sheet.step)
    return sheet.finish(rng, scan=True)


def _unmarked_prepaid(seed: int, later: int) -> Statement:
    """Draw a prepaid card whose amounts carry no direction and no sum."""
    house, rng = seeded(HALF, "unmarked prepaid", seed, later)
    start, end = month_of(2024, 2 + 3 * seed, later)
    texts = (
        "TERMINAL 004412",
        "SETTLEMENT BATCH 7",
        "CARD ENTRY 2201",
        "ADJUSTMENT ITEM",
        "CHANNEL 3 ITEM",
        "NETWORK POSTING",
    )
    maker = Inventor(rng, texts, texts, income=0.3, most_out=9_000, most_in=30_000)
    entries = maker.entries(start, end, rng.randint(14, 28), ZERO)
    sheet = Sheet(house, width=612, height=792)
    sheet.line(
        50,
        _bank(("Quickload Prepaid", "PayPocket Card", "Brightway Payroll Card", "Metro Flex Prepaid"), seed),
        size=16,
        bold=True,
    )
    sheet.line(50, f"Account history {start:%B} {start.day}, {start.year} - {end:%B} {end.day}, {end.year}")
    sheet.line(50, f"Card ending {house.randint(1000, 9999)}   Cardholder S. Delacroix   Items listed: {len(entries)}")
    sheet.down(20)
    columns = moved(
        house,
        (
            Column("date", 50, "l", (house.choice(("Date", "Posted")),)),
            Column("time", 130, "l", ("Time",)),
            Column("text", 200, "l", ("Item",)),
            Column("amount", 540, "r", (house.choice(("Amount", "Amount (USD)", "USD")),)),
        ),
    )
    Table(
        sheet,
        columns,
        lambda each: {
            "date": f"{each.day:%b %d, %Y}",
            "time": f"{rng.randint(6, 22):02}:{rng.randint(0, 59):02}",
            "amount": figure(abs(each.amount)),
        },
    ).print(entries)
    sheet.down(16)
    sheet.line(50, "Questions about an item? Call the number on the back of your card within 60 days.", size=7)
    return sheet.finish(rng, signs_proven=False)


def _either_order(seed: int, later: int) -> Statement:
    """Draw a year's account whose dates rise in both orders of day and month."""
    house, rng = seeded(HALF, "either order", seed, later)
    year = 2023 + later
    count = rng.randint(10, 16)
    lefts, rights = (sorted(rng.randint(1, 12) for _ in range(count)) for _ in range(2))
    lefts[0], rights[0], lefts[-1], rights[-1] = 1, 2, 11, 12
    lefts[1:-1], rights[1:-1] = (
        [min(max(each, low), high) for each in side[1:-1]] for side, low, high in ((lefts, 1, 11), (rights, 2, 12))
    )
    opening = balance = invent_cents(rng, 900_000, 3_000_000)
    entries = []
    for left, right in zip(lefts, rights, strict=True):
        day = date(year, right, left) if seed % 2 else date(year, left, right)
        is_income = rng.random() < 0.5
        amount = invent_cents(rng, 2_000, 60_000) * (1 if is_income else -1)
        balance += amount
        text = rng.choice(
            ("Inward remittance", "Deposit", "Credit interest")
            if is_income
            else ("Outward remittance", "Withdrawal", "Account fee")
        )
        entries.append(Entry(day, (text,), amount, balance, day))
    form = "%d/%m/%Y" if seed % 2 else "%m/%d/%Y"
    sheet = Sheet(house)
    sheet.line(
        50,
        _bank(("Meridian International", "Coral Private Banking", "Straits Global Deposits", "Atoll Trust Bank"), seed),
        size=16,
        bold=True,
    )
    sheet.line(50, f"Term and call account   {house.choice(('USD', 'EUR'))}   Year {year}")
    sheet.line(50, f"Account {house.randint(10**7, 10**8)}   Printed 12/12/{year}")
    sheet.down(18)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Date",)),
            Column("text", 140, "l", ("Particulars",)),
            Column("out", 350, "r", ("Withdrawals",)),
            Column("in", 445, "r", ("Deposits",)),
            Column("balance", 548, "r", ("Balance",)),
        ),
    )
    table = Table(
        sheet,
        columns,
        lambda each: {
            "date": each.day.strftime(form), "out": _one_way(each, -1), "in": _one_way(each, 1),
            "balance": figure(each.balance),
        },
    )  # fmt: skip
    table.head()
    table.row({"text": "Opening balance", "balance": figure(opening)})
    sheet.note("opening", opening)
    sheet.down(sheet.step)
    replace(table, has_head=False).print(entries)
    table.row({"text": "Closing balance", "balance": figure(balance)}, bold=True)
    sheet.note("closing", balance)
    return sheet.finish(rng, dates_certain=False)


def _dropped_row(seed: int, later: int) -> Statement:
    """Draw Dutch debits and credits whose totals hold a row that was not printed."""
    house, rng = seeded(HALF, "dropped row", seed, later)
    start, end = month_of(2024, 1 + 2 * seed, later)
    opening = invent_cents(rng, 200_000, 600_000)
    spends = (
        "Albert Heijn 1187 Utrecht",
        "Vitens NV drinkwater",
        "Zilveren Kruis premie",
        "NS Groep OV-chipkaart",
        "Huur Woonstichting De Linde",
    )
    incomes = ("Salaris Van Dongen BV", "Belastingdienst toeslagen", "Tikkie J. de Boer")
    more = ("IBAN: NL20INGB0001234567", "Omschrijving: factuur 4471", "Kenmerk: 22-B", "Pasvolgnr: 003")
    maker = Inventor(rng, spends, incomes, more, many=0.5, income=0.25, most_out=30_000, most_in=200_000)
    entries = invent_both_ways(maker, (start, end), rng.randint(16, 30), opening)
    closing, paid, spent = entries[-1].balance, total(entries, 1), -total(entries, -1)
    printed = [*entries[:7], *entries[8:]]
    sheet = Sheet(house, size=8.5)
    sheet.line(
        50,
        _bank(("Waterland Bank", "De Nieuwe Spaarbank", "Maasbank", "Friesche Handelsbank"), seed),
        size=15,
        bold=True,
    )
    sheet.line(50, f"Rekeningafschrift betaalrekening   {start:%d-%m-%Y} t/m {end:%d-%m-%Y}", bold=True)
    sheet.line(50, f"NL{house.randint(10, 99)} WATR 0{house.randint(10**8, 10**9)}   EUR   Volgnummer {3 + later}")
    sheet.down(12)
    heads = ("Beginsaldo", "Totaal af", "Totaal bij", "Eindsaldo")
    values = (opening, spent, paid, closing)
    for number, (head, amount, kind) in enumerate(
        zip(heads, values, ("opening", "withdrawals", "deposits", "closing"), strict=True)
    ):
        sheet.write(150 + number * 130, head, "r", bold=True)
        sheet.write(150 + number * 130, figure(amount, ".", ","), "r", y=sheet.y + sheet.step)
        sheet.note(kind, amount)
    sheet.down(3.5 * sheet.step)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Boekdatum",)),
            Column("text", 125, "l", ("Naam / Omschrijving",)),
            Column("out", 460, "r", ("Bedrag af",)),
            Column("in", 545, "r", ("Bedrag bij",)),
        ),
    )
    Table(
        sheet,
        columns,
        lambda each: {
            "date": f"{each.day:%d-%m-%Y}",
            "out": _one_way(each, -1, ".", ","),
            "in": _one_way(each, 1, ".", ","),
        },
    ).print(printed)
    sheet.footer = lambda number, count: f"Pagina {number} van {count}"
    return sheet.finish(rng, has_sums_right=False)


SHAPES: dict[str, DrawShape] = name_shapes(
    (
        _british_codes,
        _american_sections,
        _german_sides,
        _french_totals,
        _swiss_newest_first,
        _indian_narration,
        _american_card,
        _australian_scan,
        _savings_scan,
        _unmarked_prepaid,
        _either_order,
        _dropped_row,
    )
)
