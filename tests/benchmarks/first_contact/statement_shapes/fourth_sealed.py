"""The fourth sealed half: nobody who builds a reader of statements may look at these."""

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
    print_after,
    seeded,
    total,
)

HALF = "fourth sealed"


def _choose(names: Sequence[str], seed: int) -> str:
    return names[seed % len(names)]


def _outward(entry: Entry, group: str = ",", point: str = ".") -> str:
    return figure(-entry.amount, group, point) if entry.amount < 0 else ""


def _inward(entry: Entry, group: str = ",", point: str = ".") -> str:
    return figure(entry.amount, group, point) if entry.amount > 0 else ""


def _brazilian_days(seed: int, later: int) -> Statement:
    """Draw document numbers, debits with a minus and the balance of each day."""
    house, rng = seeded(HALF, "brazilian days", seed, later)
    start, end = month_of(2023, 11 + 2 * seed, later)
    opening = invent_cents(rng, 150_000, 700_000)
    spends = (
        "PIX ENVIADO - MERCADO SAO JORGE", "PAGTO ELETRON COBRANCA CONDOMINIO", "COMPRA CARTAO DEBITO PADARIA REAL",
        "CONTA DE LUZ ENEL", "TARIFA BANCARIA CESTA EXPRESSA", "SAQUE DINHEIRO CORRESP",
    )  # fmt: skip
    incomes = (
        "PIX RECEBIDO - CARLA M SOUZA",
        "CREDITO DE SALARIO",
        "TED RECEBIDA CONSTRUTORA VALE VERDE",
        "RENDIMENTOS POUP FACIL",
    )
    maker = Inventor(rng, spends, incomes, income=0.28, most_out=60_000, most_in=320_000)
    entries = invent_both_ways(maker, (start, end), rng.randint(20, 42), opening)
    closing, paid, spent = entries[-1].balance, total(entries, 1), -total(entries, -1)
    sheet = Sheet(house, size=8.5)
    sheet.line(
        50, _choose(("Banco Ipê", "Banco Serra Dourada", "Bandeirante S.A.", "Banco Guarani"), seed), size=16, bold=True
    )
    sheet.line(
        50,
        house.choice(("Extrato Mensal / Por Período", "Extrato de Conta Corrente", "Extrato para simples conferência")),
        bold=True,
    )
    sheet.line(
        50,
        f"Agência {house.randint(1000, 9999)}   Conta {house.randint(10**5, 10**6)}-{house.randint(0, 9)}   JOANA R TEIXEIRA",
    )
    sheet.line(50, f"Movimentação entre: {start:%d/%m/%Y} e {end:%d/%m/%Y}")
    sheet.line(50, "Limite do cheque especial: 3.000,00")
    sheet.down(16)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Data",)),
            Column("text", 105, "l", (house.choice(("Histórico", "Lançamento", "Lançamentos")),)),
            Column("document", 330, "l", (house.choice(("Docto.", "Documento")),)),
            Column("in", 430, "r", ("Crédito (R$)",)),
            Column("out", 490, "r", ("Débito (R$)",)),
            Column("balance", 552, "r", ("Saldo (R$)",)),
        ),
        1.5,
    )
    day_form = house.choice(("%d/%m/%Y", "%d/%m/%y", "%d/%m"))
    table = Table(
        sheet,
        columns,
        lambda each: {
            "date": each.day.strftime(day_form),
            "document": f"{rng.randint(10**5, 10**6 - 1)}",
            "in": _inward(each, ".", ","),
            "out": f"-{_outward(each, '.', ',')}" if each.amount < 0 else "",
            "balance": figure(each.balance, ".", ","),
        },
        is_date_once=True,
        is_balance_once=True,
    )
    before = start - timedelta(days=1)
    sheet.note("opening", opening)
    opened = {"date": before.strftime(day_form), "text": "SALDO ANTERIOR", "balance": figure(opening, ".", ",")}
    print_after(table, opened, entries)
    sheet.need(4 * sheet.step)
    sheet.down(4)
    sums = {
        "text": "Total",
        "in": figure(paid, ".", ","),
        "out": figure(-spent, ".", ","),
        "balance": figure(closing, ".", ","),
    }
    table.row(sums, bold=True)
    sheet.note("deposits", paid)
    sheet.note("withdrawals", spent)
    sheet.note("closing", closing)
    sheet.down(2 * sheet.step)
    sheet.line(
        50, "Os dados acima têm como base a data de emissão. SAC 0800 700 4471, todos os dias, 24 horas.", size=7
    )
    sheet.footer = lambda number, count: f"Folha {number}/{count}"
    return sheet.finish(rng)


def _polish_signed(seed: int, later: int) -> Statement:
    """Draw signed amounts, the balance after each, and a summary at the top."""
    house, rng = seeded(HALF, "polish signed", seed, later)
    start, end = month_of(2024, 1 + 3 * seed, later)
    opening = invent_cents(rng, 300_000, 1_200_000)
    spends = (
        "ZAKUP PRZY UŻYCIU KARTY BIEDRONKA",
        "PRZELEW WYCHODZĄCY CZYNSZ",
        "BLIK ZAKUP ALLEGRO",
        "PROWIZJA ZA PROWADZENIE RACHUNKU",
        "WYPŁATA BANKOMAT KRAKÓW",
    )
    incomes = ("PRZELEW PRZYCHODZĄCY WYNAGRODZENIE", "BLIK PRZELEW OD M. ZIELIŃSKA", "ŚWIADCZENIE ZUS")
    more = (
        "Tytuł: faktura 12/44",
        "Nadawca: HUTA SZKŁA SP. Z O.O.",
        "Lokalizacja: Kraków PL",
        "Nr karty 4251 **** 0044",
    )
    maker = Inventor(rng, spends, incomes, more, many=0.6, income=0.25, most_out=50_000, most_in=400_000, lag=1)
    entries = invent_both_ways(maker, (start, end - timedelta(days=1)), rng.randint(18, 34), opening)
    closing, paid, spent = entries[-1].balance, total(entries, 1), -total(entries, -1)
    day_form = ("%d.%m.%Y", "%Y-%m-%d", "%d-%m-%Y", "%Y-%m-%d")[seed % 4]
    sheet = Sheet(house, size=8.5, font="helv")
    sheet.line(
        50, _choose(("Bank Wawelski", "Kasa Mazowiecka", "Bank Bałtycki", "PBK Bank Polski"), seed), size=16, bold=True
    )
    sheet.line(
        50,
        f"Wyciąg z rachunku nr {3 + later}/{end.year} za okres {start.strftime(day_form)} - {end.strftime(day_form)}",
        bold=True,
    )
    sheet.line(
        50, f"Numer rachunku {house.randint(10, 99)} 1020 2892 0000 5102 {house.randint(1000, 9999)} 4471   waluta PLN"
    )
    sheet.down(10)
    for label, text, kind, amount in (
        ("Saldo początkowe", figure(opening, " ", ","), "opening", opening),
        ("Suma uznań", figure(paid, " ", ","), "deposits", paid),
        ("Suma obciążeń", figure(-spent, " ", ","), "withdrawals", spent),
        ("Saldo końcowe", figure(closing, " ", ","), "closing", closing),
    ):
        sheet.pair(50, label, 290, text)
        sheet.note(kind, amount)
    sheet.pair(50, "Limit w koncie", 290, "2 000,00")
    sheet.down(14)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Data", "operacji")),
            Column("value", 112, "l", ("Data", "waluty")),
            Column("text", 176, "l", ("Opis operacji", "")),
            Column("amount", 460, "r", (house.choice(("Kwota", "Kwota operacji")), "")),
            Column("balance", 548, "r", ("Saldo", "po operacji")),
        ),
        2.0,
    )
    Table(
        sheet,
        columns,
        lambda each: {
            "date": each.day.strftime(day_form),
            "value": each.value_day.strftime(day_form),
            "amount": figure(each.amount, " ", ","),
            "balance": figure(each.balance, " ", ","),
        },
    ).print(entries)
    sheet.down(10)
    sheet.need(2 * sheet.step)
    sheet.line(50, "Niniejszy dokument jest wydrukiem komputerowym i nie wymaga podpisu ani stempla.", size=7)
    sheet.footer = lambda number, count: f"Strona {number} z {count}"
    return sheet.finish(rng)


def _canadian_scan(seed: int, later: int) -> Statement:
    """Draw a scan with dates in capitals and the sums that open the statement."""
    house, rng = seeded(HALF, "canadian scan", seed, later)
    start, end = cycle_of(2024, 1 + 2 * seed, house.randint(18, 27), later)
    opening = invent_cents(rng, 180_000, 600_000)
    spends = (
        "LOBLAWS 1044 OTTAWA",
        "HYDRO ONE BILL PYMT",
        "SEND E-TFR 4471",
        "TIM HORTONS 0921",
        "MONTHLY ACCOUNT FEE",
        "BELL CANADA PREAUTH",
    )
    incomes = ("PAYROLL DEP NORTHERN MILLS", "E-TRANSFER RECEIVED", "CANADA GST DEPOSIT")
    maker = Inventor(rng, spends, incomes, income=0.28, most_out=22_000, most_in=170_000)
    entries = invent_both_ways(maker, (start, end), rng.randint(16, 30), opening)
    closing, paid, spent = entries[-1].balance, total(entries, 1), -total(entries, -1)
    form = house.choice(("%b %d", "%d %b"))
    sheet = Sheet(house, size=9.5, font=house.choice(("helv", "tiro")), width=612, height=792)
    sheet.line(
        50,
        _choose(("Royal Dominion Bank", "Bank of the Maritimes", "Prairie Trust", "Rideau Savings"), seed),
        size=16,
        bold=True,
    )
    sheet.line(50, house.choice(("Your chequing account statement", "Every Day Chequing")), bold=True)
    sheet.line(50, f"From {start:%B} {start.day}, {start.year} to {end:%B} {end.day}, {end.year}")
    sheet.line(50, f"Account number 0{house.randint(1000, 9999)}-{house.randint(10**6, 10**7)}")
    sheet.down(12)
    for label, text, kind, amount in (
        (f"Your opening balance on {start:%B} {start.day}, {start.year}", f"${figure(opening)}", "opening", opening),
        ("Total deposits into your account", f"+ {figure(paid)}", "deposits", paid),
        ("Total withdrawals from your account", f"- {figure(spent)}", "withdrawals", spent),
        (f"Your closing balance on {end:%B} {end.day}, {end.year}", f"= ${figure(closing)}", "closing", closing),
    ):
        sheet.pair(50, label, 400, text)
        sheet.note(kind, amount)
    sheet.down(16)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Date",)),
            Column("text", 115, "l", ("Description",)),
            Column("out", 375, "r", ("Withdrawals ($)",)),
            Column("in", 465, "r", ("Deposits ($)",)),
            Column("balance", 560, "r", ("Balance ($)",)),
        ),
        2.0,
    )
    table = Table(
        sheet,
        columns,
        lambda each: {
            "date": each.day.strftime(form).upper(),
            "out": _outward(each),
            "in": _inward(each),
            "balance": figure(each.balance),
        },
        extent=(45, 565),
    )
    sheet.note("opening", opening)
    print_after(
        table, {"date": start.strftime(form).upper(), "text": "Opening balance", "balance": figure(opening)}, entries
    )
    table.row({"date": end.strftime(form).upper(), "text": "Closing balance", "balance": figure(closing)}, bold=True)
    sheet.note("closing", closing)
    return sheet.finish(rng, scan=True)


def _yen(amount: Decimal) -> str:
    return f"{amount:,.0f}"


def _yen_without_decimals(seed: int, later: int) -> Statement:
    """Draw whole yen with the year in front and balances brought over pages."""
    house, rng = seeded(HALF, "yen without decimals", seed, later)
    start, end = month_of(2023, 12 + 2 * seed, later)
    opening = Decimal(rng.randint(400_000, 1_800_000))
    spends = (
        "ATM withdrawal SEVEN",
        "Tokyo Gas",
        "Credit card SAISON",
        "Rent transfer MORI ESTATE",
        "NHK",
        "Transfer fee",
        "PASMO charge",
    )
    incomes = ("Salary NIHON SEIKI KK", "Transfer from TANAKA KEIKO", "Interest", "Cash deposit ATM")
    maker = Inventor(rng, spends, incomes, income=0.3, most_out=90_000, most_in=400_000)
    entries = maker.entries(start, end, rng.randint(22, 40), ZERO)
    entries[1] = replace(entries[1], lines=(incomes[0],), amount=Decimal("3120.55"))
    entries[-2] = replace(entries[-2], lines=(spends[0],), amount=Decimal("-200.00"))
    entries = balanced([replace(each, amount=Decimal(int(each.amount * 100))) for each in entries], opening)
    closing, paid, spent = entries[-1].balance, total(entries, 1), -total(entries, -1)
    form = ("%Y/%m/%d", "%Y-%m-%d", "%Y.%m.%d", "%y/%m/%d")[seed % 4]
    sheet = Sheet(house, size=8.5)
    sheet.line(
        50,
        _choose(("Hikari Trust Bank", "Sumida Bank", "Aoba Net Bank", "Kansai Mirai Global"), seed),
        size=15,
        bold=True,
    )
    sheet.line(
        50, house.choice(("Yen Savings Deposit - Transaction Statement", "PowerFlex Ordinary Deposit (JPY)")), bold=True
    )
    sheet.line(
        50,
        f"Period: {start:%Y/%m/%d} - {end:%Y/%m/%d}   Branch {house.randint(100, 999)}   Account {house.randint(10**6, 10**7)}",
    )
    sheet.line(50, "Currency: Japanese Yen (JPY)")
    sheet.down(16)
    is_deposit_first = bool(seed % 2)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Date",)),
            Column("text", 125, "l", (house.choice(("Description", "Transaction", "Remarks")),)),
            Column("in" if is_deposit_first else "out", 370, "r", ("Deposit" if is_deposit_first else "Withdrawal",)),
            Column("out" if is_deposit_first else "in", 455, "r", ("Withdrawal" if is_deposit_first else "Deposit",)),
            Column("balance", 548, "r", ("Balance",)),
        ),
    )
    table = Table(
        sheet,
        columns,
        lambda each: {
            "date": each.day.strftime(form),
            "out": _yen(-each.amount) if each.amount < 0 else "",
            "in": _yen(each.amount) if each.amount > 0 else "",
            "balance": _yen(each.balance),
        },
        per_page=house.randint(15, 19),
        carry_in=lambda amount: {"text": "Balance brought forward", "balance": _yen(amount)},
    )
    sheet.note("opening", opening)
    print_after(table, {"text": "Balance brought forward", "balance": _yen(opening)}, entries)
    sheet.need(4 * sheet.step)
    sheet.down(4)
    sums = {"text": "Total", "out": _yen(spent), "in": _yen(paid), "balance": _yen(closing)}
    table.row(sums, bold=True)
    sheet.note("withdrawals", spent)
    sheet.note("deposits", paid)
    sheet.note("closing", closing)
    sheet.down(2 * sheet.step)
    sheet.line(50, "Interest rate applied 0.020 % p.a. (after tax 0.0159 %).", size=7)
    return sheet.finish(rng)


def _home_loan(seed: int, later: int) -> Statement:
    """Draw a loan over half a year: interest raises the debt, repayments lower it."""
    house, rng = seeded(HALF, "home loan", seed, later)
    first_year, first_month = divmod(2 * 2023 + seed + later, 2)
    start = date(first_year, 1 if not first_month else 7, 1)
    end = date(first_year, 6, 30) if not first_month else date(first_year, 12, 31)
    opening = -invent_cents(rng, 14_000_000, 48_000_000)
    repaid = invent_cents(house, 120_000, 260_000)
    moves: list[tuple[date, str, Decimal]] = []
    day = start + timedelta(days=house.randint(2, 11))
    while day <= end:
        moves.append((day, rng.choice(("Repayment", "Direct debit repayment", "Loan Repayment")), repaid))
        day += timedelta(days=14)
    months = (month_of(start.year, month, 0)[1] for month in range(start.month, end.month + 1))
    moves.extend((last, "Interest charged", -invent_cents(rng, 60_000, 190_000)) for last in months)
    moves.append((start + timedelta(days=rng.randint(20, 150)), "Redraw to 4471", -invent_cents(rng, 50_000, 400_000)))
    moves.append((end, "Service fee", Decimal("-10.00")))
    moves.sort(key=lambda each: each[0])
    entries = balanced([Entry(day, (text,), amount, ZERO, day) for day, text, amount in moves], opening)
    closing = entries[-1].balance
    sheet = Sheet(house, size=9.0)

    def owed(amount: Decimal) -> str:
        return f"{figure(-amount)} DR"

    sheet.line(
        50,
        _choose(("Wattle Home Loans", "Kauri Mortgage Co", "Heartwood Lending", "Tasman Mutual"), seed),
        size=16,
        bold=True,
    )
    sheet.line(50, house.choice(("Variable Rate Home Loan", "Loan account statement", "Mortgage statement")), bold=True)
    sheet.line(50, f"Statement from {start.day} {start:%B %Y} to {end.day} {end:%B %Y}")
    sheet.line(50, f"Loan number {house.randint(10**8, 10**9)}")
    sheet.down(12)
    interest = -sum((each.amount for each in entries if each.lines == ("Interest charged",)), ZERO)
    for label, text, kind, amount in (
        ("Opening balance", owed(opening), "opening", opening),
        ("Total debits", figure(-total(entries, -1)), "withdrawals", -total(entries, -1)),
        ("Total credits", figure(total(entries, 1)), "deposits", total(entries, 1)),
        ("Closing balance", owed(closing), "closing", closing),
        ("Interest charged this period", figure(interest), "subtotal", -interest),
    ):
        sheet.pair(50, label, 320, text)
        sheet.note(kind, amount)
    sheet.pair(50, "Next repayment due", 320, f"{(day):%d %b %Y}")
    sheet.down(16)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Date",)),
            Column("text", 125, "l", ("Transaction",)),
            Column("out", 355, "r", ("Debits",)),
            Column("in", 440, "r", ("Credits",)),
            Column("balance", 548, "r", (house.choice(("Balance", "Loan balance")),)),
        ),
    )
    table = Table(
        sheet,
        columns,
        lambda each: {
            "date": f"{each.day:%d %b %Y}",
            "out": _outward(each),
            "in": _inward(each),
            "balance": owed(each.balance),
        },
        is_date_once=bool(seed % 2),
    )
    sheet.note("opening", opening)
    print_after(table, {"date": f"{start:%d %b %Y}", "text": "Opening balance", "balance": owed(opening)}, entries)
    sheet.down(14)
    sheet.need(6 * sheet.step)
    sheet.line(50, "Interest rates that applied", bold=True)
    for day, rate in ((start, "6.19% p.a."), (start + timedelta(days=60), "6.44% p.a.")):
        sheet.pair(50, f"{day.day} {day:%B %Y}", 230, rate)
    sheet.line(50, "DR means that you owe this amount.", size=7)
    return sheet.finish(rng)


def _card_with_credits(seed: int, later: int) -> Statement:
    """Draw a card whose credits end in CR, with foreign spending over two lines."""
    house, rng = seeded(HALF, "card with credits", seed, later)
    start, end = cycle_of(2024, 1 + 3 * seed, house.randint(6, 24), later)
    opening = -invent_cents(rng, 30_000, 240_000)
    shops = (
        "OCADO RETAIL HATFIELD",
        "TRAINLINE LONDON",
        "B&Q 1402 STOCKPORT",
        "DISHOOM MANCHESTER",
        "RYANAIR DUBLIN",
        "JOHN LEWIS CHEADLE",
    )
    maker = Inventor(
        rng, shops, ("PAYMENT RECEIVED - THANK YOU", "REFUND ASOS LONDON"), ("USD 42.00 @ 1.2650", "INCL NON-STERLING FEE", "EUR 118.00 @ 1.1640"),
        many=0.25, income=0.12, most_out=26_000, most_in=60_000, lag=2,
    )  # fmt: skip
    entries = maker.entries(start, end - timedelta(days=3), rng.randint(18, 44), opening)
    entries = [replace(each, lines=each.lines[:1]) if each.amount > 0 else each for each in entries]
    entries[4] = replace(entries[4], lines=("PAYMENT RECEIVED - THANK YOU",), amount=Decimal("180.00"))
    entries.append(Entry(end, ("INTEREST ON PURCHASES",), -invent_cents(rng, 300, 3_000), ZERO, end))
    entries = balanced(entries, opening)
    closing, paid, spent = entries[-1].balance, total(entries, 1), -total(entries, -1)
    sheet = Sheet(house, size=8.5)
    sheet.line(
        50,
        _choose(("Severnside Credit Card", "Clyde Platinum", "Harrow Rewards", "Mersey Balance Card"), seed),
        size=16,
        bold=True,
    )
    sheet.line(50, f"Statement date {end.day} {end:%B %Y}   Account 5424 **** **** {house.randint(1000, 9999)}")
    sheet.line(50, f"Statement period {start.day} {start:%B %Y} to {end.day} {end:%B %Y}")
    sheet.down(12)
    summary = (
        ("Previous balance", figure(-opening), "opening", opening), ("Payments and credits", f"{figure(paid)} CR", "deposits", paid),
        ("Purchases, charges and interest", figure(spent), "withdrawals", spent), ("New balance", figure(-closing), "closing", closing),
    )  # fmt: skip
    for label, text, kind, amount in summary:
        sheet.pair(50, label, 300, f"£{text}", bold=kind == "closing")
        sheet.note(kind, amount)
    sheet.pair(50, "Minimum payment", 300, f"£{figure(invent_cents(rng, 2_500, 6_000))}")
    due = end + timedelta(days=24)
    sheet.pair(50, "To reach us by", 300, f"{due.day} {due:%B %Y}")
    sheet.pair(50, "Credit limit", 300, "£6,500.00")
    sheet.down(18)
    form = house.choice(("%d %b", "%d %B"))
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Transaction", "date")),
            Column("value", 122, "l", ("Posting", "date")),
            Column("text", 195, "l", ("", "Details")),
            Column("amount", 530, "r", ("", "Amount £")),
            Column("side", 534, "l", ()),
        ),
        2.0,
    )
    is_apart = seed % 2
    Table(
        sheet,
        columns,
        lambda each: {
            "date": each.day.strftime(form),
            "value": each.value_day.strftime(form),
            "amount": figure(abs(each.amount)) + ("CR" if each.amount > 0 and not is_apart else ""),
            "side": "CR" if each.amount > 0 and is_apart else "",
        },
    ).print(entries)
    sheet.down(14)
    sheet.need(7 * sheet.step)
    sheet.line(50, "Summary of interest rates", bold=True)
    for texts in (
        ("Type", "Monthly rate", "Annual rate", "Interest"),
        ("Purchases", "1.836%", "24.4%", "as shown above"),
        ("Cash", "2.205%", "29.9%", "nil"),
    ):
        for place, text in zip((50, 170, 270, 370), texts, strict=True):
            sheet.write(place, text)
        sheet.down(sheet.step)
    return sheet.finish(rng)


def _currency_pockets(seed: int, later: int) -> Statement:
    """Draw two currencies of one customer, each with its own rows and sums."""
    house, rng = seeded(HALF, "currency pockets", seed, later)
    start, end = month_of(2024, 2 + 2 * seed, later)
    sheet = Sheet(house, size=8.5)
    sheet.line(
        50,
        _choose(("Harbour & Peak Bank", "Raffles Commercial", "Victoria Gap Banking", "Telok Bank"), seed),
        size=16,
        bold=True,
    )
    sheet.line(
        50,
        house.choice(("Foreign Currency Account - consolidated statement", "Multi-currency business account")),
        bold=True,
    )
    sheet.line(50, f"{start.day} {start:%b %Y} to {end.day} {end:%b %Y}   LUMEN TRADING PTE LTD")
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Date",)),
            Column("value", 112, "l", ("Value date",)),
            Column("text", 178, "l", ("Transaction details",)),
            Column("in", 385, "r", ("Deposit",)),
            Column("out", 460, "r", ("Withdrawal",)),
            Column("balance", 548, "r", ("Balance",)),
        ),
        2.0,
    )
    spends = ("TT OUTWARD SHENZHEN BEST CO", "CABLE CHARGES", "FX CONVERSION SELL", "SUPPLIER OSAKA PARTS")
    incomes = ("TT INWARD NORDIC BUYER AB", "FX CONVERSION BUY", "EXPORT BILL PROCEEDS", "CREDIT INTEREST")
    for account, currency in enumerate((("USD", "EUR"), ("USD", "AUD"), ("EUR", "GBP"), ("USD", "CHF"))[seed % 4]):
        opening = invent_cents(rng, 1_500_000, 6_000_000)
        maker = Inventor(
            rng,
            spends,
            incomes,
            ("REF 44/71", "OUR CHARGES"),
            many=0.4,
            income=0.45,
            most_out=400_000,
            most_in=600_000,
            lag=2,
        )
        entries = invent_both_ways(maker, (start, end - timedelta(days=2)), rng.randint(9, 18), opening)
        closing, paid, spent = entries[-1].balance, total(entries, 1), -total(entries, -1)
        sheet.down(20)
        sheet.need(10 * sheet.step)
        sheet.line(
            50,
            f"{currency} account {house.randint(100, 999)}-{house.randint(10**5, 10**6)}-{account + 1}",
            size=11,
            bold=True,
        )
        table = Table(
            sheet,
            columns,
            lambda each: {
                "date": f"{each.day:%d %b %Y}",
                "value": f"{each.value_day:%d %b %Y}",
                "in": _inward(each),
                "out": _outward(each),
                "balance": figure(each.balance),
            },
            currency=currency,
            account=account,
        )
        sheet.note("opening", opening, account)
        print_after(
            table, {"date": f"{start:%d %b %Y}", "text": f"B/F BALANCE {currency}", "balance": figure(opening)}, entries
        )
        sheet.need(3 * sheet.step)
        sums = {"text": f"C/F BALANCE {currency}", "in": figure(paid), "out": figure(spent), "balance": figure(closing)}
        table.row(sums, bold=True)
        sheet.note("deposits", paid, account)
        sheet.note("withdrawals", spent, account)
        sheet.note("closing", closing, account)
        sheet.down(sheet.step)
    return sheet.finish(rng)


def _charges_by_member(seed: int, later: int) -> Statement:
    """Draw a charge card: credits first, then each member's charges and total."""
    house, rng = seeded(HALF, "charges by member", seed, later)
    start, end = cycle_of(2023, 12 + 2 * seed, house.randint(10, 25), later)
    last = end - timedelta(days=1)
    opening = -invent_cents(rng, 80_000, 500_000)
    shops = (
        "HERTZ CAR RENTAL DENVER CO",
        "WHOLE FOODS MKT BOULDER CO",
        "APPLE.COM/BILL CUPERTINO CA",
        "MARRIOTT DENVER TECH CENTER",
        "UNITED AIRLINES HOUSTON TX",
    )
    more = ("MISCELLANEOUS", "GROCERY STORE", "REF# 320240610", "TRAVEL AGENCY")
    paid = Inventor(
        rng, shops, ("ELECTRONIC PAYMENT RECEIVED-THANK", "MERCHANDISE RETURN REI.COM"), income=1.0, most_in=150_000
    )
    received = paid.entries(start, last, rng.randint(1, 3), ZERO)
    spender = Inventor(rng, shops, shops, more, many=0.5, income=0.0, most_out=42_000)
    members = [
        (name, spender.entries(start, last, rng.randint(7, 17), ZERO))
        for name in house.sample(("R DELGADO", "ANNE PHILLIPS", "T OYELARAN", "JUN WATANABE"), 2)
    ]
    charged = sum((total(group) for _, group in members), ZERO)
    closing = opening + total(received) + charged
    sheet = Sheet(house, size=8.5, width=612, height=792)
    sheet.line(
        45,
        _choose(("Meridian Gold Card", "Continental Business Card", "Pathfinder Charge", "Statesman Card"), seed),
        size=16,
        bold=True,
    )
    sheet.line(45, f"Closing Date {end:%m/%d/%y}   Account Ending 4-{house.randint(10000, 99999)}")
    sheet.line(45, f"Billing period {start:%m/%d/%y} to {end:%m/%d/%y}")
    sheet.down(10)
    top = sheet.y
    for label, text, kind, amount in (
        ("Previous Balance", f"${figure(-opening)}", "opening", opening),
        ("Payments/Credits", f"-${figure(total(received))}", "deposits", total(received)),
        ("New Charges", f"+${figure(-charged)}", "withdrawals", -charged),
        ("New Balance", f"=${figure(-closing)}", "closing", closing),
    ):
        sheet.pair(330, label, 555, text, bold=kind == "closing")
        sheet.note(kind, amount)
    sheet.write(45, "Please Pay By", y=top)
    sheet.write(45, f"{end + timedelta(days=20):%m/%d/%y}", y=top + sheet.step, bold=True)
    sheet.down(18)
    columns = moved(
        house,
        (
            Column("date", 45, "l", ("Date",)),
            Column("text", 120, "l", ("Description",)),
            Column("amount", 565, "r", ("Amount",)),
        ),
    )
    star = house.choice(("*", ""))

    def print_group(title: str, group: Sequence[Entry], sign: str, label: str) -> None:
        sheet.need(9 * sheet.step)
        sheet.line(45, title, size=11, bold=True)
        table = Table(
            sheet,
            columns,
            lambda each: {
                "date": f"{each.day:%m/%d/%y}{star if each.amount > 0 else ''}",
                "amount": f"{sign}${figure(abs(each.amount))}",
            },
            extent=(45, 570),
        )
        table.print(group)
        sheet.need(sheet.step)
        sheet.pair(45, label, 565, f"{sign}${figure(abs(total(group)))}", bold=True)
        sheet.note("subtotal", total(group))
        sheet.down(12)

    print_group("Payments and Credits", received, "-", "Total Payments and Credits")
    for name, group in members:
        print_group(f"New Charges - {name}", group, "", f"Total for {name}")
    sheet.need(3 * sheet.step)
    sheet.pair(45, "Total New Charges", 565, f"${figure(-charged)}", bold=True)
    sheet.note("withdrawals", -charged)
    if star:
        sheet.line(45, "*Indicates posting date", size=7)
    return sheet.finish(rng)


def _german_scan(seed: int, later: int) -> Statement:
    """Draw a scan with Soll and Haben in columns, old and new balance."""
    house, rng = seeded(HALF, "german scan", seed, later)
    start, end = month_of(2024, 2 + 2 * seed, later)
    opening = invent_cents(rng, 220_000, 800_000)
    spends = (
        "SEPA Lastschrift VATTENFALL",
        "Kartenzahlung EDEKA MARKT",
        "SEPA Dauerauftrag MIETE",
        "Bargeldauszahlung",
        "Kontoentgelt",
    )
    incomes = ("SEPA Gehalt NORDWERK AG", "SEPA Gutschrift FINANZAMT", "Bareinzahlung")
    maker = Inventor(
        rng, spends, incomes, ("Referenz 4471-22", "Rechnung 10233", "Danke"), many=0.35, income=0.3, most_out=42_000, most_in=230_000,
    )  # fmt: skip
    entries = invent_both_ways(maker, (start, end - timedelta(days=1)), rng.randint(14, 24), opening)
    closing, paid, spent = entries[-1].balance, total(entries, 1), -total(entries, -1)
    sheet = Sheet(house, size=9.5, font="helv")
    sheet.line(
        50, _choose(("Hansebank AG", "Deutsche Kreditkasse", "Rheinbank", "Sparbank Dresden"), seed), size=16, bold=True
    )
    sheet.line(50, f"Kontoauszug vom {start:%d.%m.%Y} bis {end:%d.%m.%Y}", bold=True)
    sheet.line(50, f"Filiale {house.randint(100, 999)}   Konto {house.randint(10**6, 10**7)} 00   Auszug {end.month}")
    sheet.down(18)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Buchung",)),
            Column("value", 118, "l", ("Valuta",)),
            Column("text", 188, "l", ("Vorgang",)),
            Column("out", 460, "r", ("Soll",)),
            Column("in", 548, "r", ("Haben",)),
        ),
        2.0,
    )
    table = Table(
        sheet,
        columns,
        lambda each: {
            "date": f"{each.day:%d.%m.%Y}",
            "value": f"{each.value_day:%d.%m.%Y}",
            "out": _outward(each, ".", ","),
            "in": _inward(each, ".", ","),
        },
    )
    sheet.note("opening", opening)
    before = start - timedelta(days=1)
    print_after(table, {"text": f"Alter Saldo per {before:%d.%m.%Y}", "in": figure(opening, ".", ",")}, entries)
    sheet.need(4 * sheet.step)
    table.row({"text": "Summe", "out": figure(spent, ".", ","), "in": figure(paid, ".", ",")}, bold=True)
    sheet.note("withdrawals", spent)
    sheet.note("deposits", paid)
    sheet.down(sheet.step)
    table.row({"text": f"Neuer Saldo per {end:%d.%m.%Y}", "in": figure(closing, ".", ",")}, bold=True)
    sheet.note("closing", closing)
    sheet.footer = lambda number, count: f"Seite {number} von {count}"
    return sheet.finish(rng, scan=True)


def _yearless(seed: int, later: int) -> Statement:
    """Draw an account that prints days and months, and a year nowhere."""
    house, rng = seeded(HALF, "yearless", seed, later)
    start, end = month_of(2023, 2 + 2 * seed, later)
    opening = invent_cents(rng, 120_000, 400_000)
    maker = Inventor(
        rng, ("Card LIDL", "Direct debit EIRCODE ENERGY", "Standing order RENT", "ATM withdrawal"),
        ("Wages HOLLAND GLASS", "Transfer from M Byrne"), income=0.3, most_out=18_000, most_in=120_000,
    )  # fmt: skip
    days = [start + timedelta(days=each) for each in range(28)]
    entries = invent_both_ways(replace(maker, days=days), (start, end), rng.randint(14, 28), opening)
    closing = entries[-1].balance
    sheet = Sheet(house)
    sheet.line(
        50, _choose(("Shannon Credit Union", "Liffey Bank", "Corrib Savings", "Boyne Mutual"), seed), size=16, bold=True
    )
    sheet.line(
        50, f"{house.choice(('Current account', 'Basic account'))}   Member {house.randint(300, 999)}", bold=True
    )
    sheet.line(50, f"Movements from {start.day} {start:%B} to {end.day if end.month != 2 else 28} {end:%B}")
    sheet.down(18)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Date",)),
            Column("text", 110, "l", ("Details",)),
            Column("out", 360, "r", ("Payments out",)),
            Column("in", 450, "r", ("Payments in",)),
            Column("balance", 548, "r", ("Balance",)),
        ),
    )
    table = Table(
        sheet,
        columns,
        lambda each: {
            "date": f"{each.day:%d %b}",
            "out": _outward(each),
            "in": _inward(each),
            "balance": figure(each.balance),
        },
    )
    sheet.note("opening", opening)
    print_after(table, {"text": "Opening balance", "balance": figure(opening)}, entries)
    table.row({"text": "Closing balance", "balance": figure(closing)}, bold=True)
    sheet.note("closing", closing)
    return sheet.finish(rng, dates_certain=False)


def _sheet_missing(seed: int, later: int) -> Statement:
    """Draw a business account over several sheets, of which the second is gone."""
    house, rng = seeded(HALF, "sheet missing", seed, later)
    start, end = month_of(2024, 3 + 2 * seed, later)
    opening = invent_cents(rng, 900_000, 3_000_000)
    spends = ("FPO MIDLAND STEEL", "DD HMRC VAT", "BACS WAGES RUN 4", "CHQ 100471", "DD BUSINESS RATES")
    incomes = ("FPI BRIDGE CONTRACTORS", "BGC COUNTER CREDIT", "BACS HALLAM PLC")
    maker = Inventor(rng, spends, incomes, income=0.4, most_out=180_000, most_in=320_000)
    entries = invent_both_ways(maker, (start, end), rng.randint(27, 44), opening)
    closing, paid, spent = entries[-1].balance, total(entries, 1), -total(entries, -1)
    sheet = Sheet(house)
    sheet.line(
        50,
        _choose(("Trent Business Bank", "Foundry Commercial", "Cotswold Corporate", "Tyne Enterprise Bank"), seed),
        size=16,
        bold=True,
    )
    sheet.line(50, f"Business current account   {start.day} {start:%B %Y} to {end.day} {end:%B %Y}", bold=True)
    sheet.down(8)
    for label, kind, amount in (
        ("Balance at start", "opening", opening), ("Total receipts", "deposits", paid),
        ("Total payments", "withdrawals", spent), ("Balance at end", "closing", closing),
    ):  # fmt: skip
        sheet.pair(50, label, 280, f"£{figure(amount)}")
        sheet.note(kind, amount)
    sheet.down(16)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Date",)),
            Column("text", 130, "l", ("Description",)),
            Column("out", 450, "r", ("Payments",)),
            Column("in", 548, "r", ("Receipts",)),
        ),
    )
    Table(
        sheet,
        columns,
        lambda each: {"date": f"{each.day:%d %b %Y}", "out": _outward(each), "in": _inward(each)},
        per_page=house.randint(9, 12),
    ).print(entries)
    sheet.footer = lambda number, count: f"Sheet {number} of {count}"
    return sheet.finish(rng, lost=2, has_sums_right=False)


def _listed_counterparties(seed: int, later: int) -> Statement:
    """Draw a list from online banking: partners, bare amounts and today's balance."""
    house, rng = seeded(HALF, "listed counterparties", seed, later)
    start, end = month_of(2024, 2 + 3 * seed, later)
    partners = (
        "Alder & Finch Ltd",
        "Quayside Holdings",
        "R. Castellanos",
        "Bluebird Events",
        "Northgate Partners",
        "Studio Orrin",
    )
    maker = Inventor(rng, partners, partners, income=0.45, most_out=70_000, most_in=90_000)
    entries = maker.entries(start, end, rng.randint(12, 26), ZERO)
    sheet = Sheet(house, size=8.5)
    sheet.line(
        50, _choose(("Lanyard Online", "Penny Bank Direct", "Folio Business", "Kestrel Bank"), seed), size=16, bold=True
    )
    sheet.line(50, f"Transaction list   {start:%d %b %Y} - {end:%d %b %Y}", bold=True)
    balance = invent_cents(rng, 200_000, 900_000)
    sheet.line(50, f"Balance today: {figure(balance)} EUR")
    sheet.note("closing", balance)
    sheet.down(18)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Booked",)),
            Column("reference", 130, "l", ("Reference",)),
            Column("text", 230, "l", (house.choice(("Counterparty", "Partner")),)),
            Column("amount", 500, "r", ("Amount",)),
            Column("currency", 515, "l", ("Cur.",)),
        ),
    )
    Table(
        sheet,
        columns,
        lambda each: {
            "date": f"{each.day:%d %b %Y}",
            "reference": f"T{rng.randint(10**6, 10**7 - 1)}",
            "amount": figure(abs(each.amount)),
            "currency": "EUR",
        },
        is_newest_first=bool(seed % 2),
    ).print(entries)
    return sheet.finish(rng, signs_proven=False)


SHAPES: dict[str, DrawShape] = name_shapes(
    (
        _brazilian_days,
        _polish_signed,
        _canadian_scan,
        _yen_without_decimals,
        _home_loan,
        _card_with_credits,
        _currency_pockets,
        _charges_by_member,
        _german_scan,
        _yearless,
        _sheet_missing,
        _listed_counterparties,
    )
)
