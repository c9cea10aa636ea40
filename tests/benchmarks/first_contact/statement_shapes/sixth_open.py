"""The sixth open half: seven layouts of banks, mobile money and payment services of many countries, four of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from itertools import groupby

from benchmarks.first_contact.statement_shapes.drawing import (
    Cells,
    Column,
    DrawShape,
    Entry,
    Inventor,
    Sheet,
    Statement,
    Table,
    TrueRow,
    balanced,
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

_HALF = "sixth open"


def _spaced(amount: Decimal) -> str:
    return figure(amount, " ", ",")


def _pointed(amount: Decimal) -> str:
    return figure(amount, ".", ",")


def _dotted(day: date) -> str:
    return f"{day:%d.%m.%Y}"


def _slashed(day: date) -> str:
    return f"{day:%d/%m/%Y}"


_POLISH_MONTHS = (
    "stycznia", "lutego", "marca", "kwietnia", "maja", "czerwca", "lipca", "sierpnia", "września", "października",
    "listopada", "grudnia",
)  # fmt: skip
_POLISH_DAYS = ("poniedziałek", "wtorek", "środa", "czwartek", "piątek", "sobota", "niedziela")
_POLISH = (
    "Płatność kartą Piekarnia Pod Kasztanem", "Przelew czynsz ul. Lipowa 4 m. 12", "Płatność kartą Warzywniak u Zosi",
    "Wypłata z bankomatu Rynek 7", "Polecenie zapłaty Energia Roztocze", "Blik zakup Sklep Rowerek",
    "Opłata za prowadzenie rachunku", "Płatność kartą Stacja Benzyn Mostek",
)  # fmt: skip
_POLISH_INCOME = (
    "Przelew przychodzący wynagrodzenie Tartak Sosna",
    "Wpłata gotówki oddział Kępno",
    "Zwrot Sklep Rowerek",
)
_POLISH_MORE = (
    "61 1090 4417 0000 0712 1981 2874", "Tytuł: umowa 14/B", "Nr karty 4417 **** **** 0092", "Ref 000 218 744,00",
)  # fmt: skip
_POLISH_FEES = (("Przelew natychmiastowy", "5,00"), ("Wypłata za granicą", "9,50"), ("Duplikat karty", "25,00"))


def _days_as_headings(seed: int, later: int) -> Statement:
    """Draw movements without dates under headings in words, and the balance of each day under it."""
    house, rng = seeded(_HALF, "days as headings", seed, later)
    bank = ("Bank Ludowy w Zalesiu", "Wisłok Bank S.A.", "Bank Kaszubski Morena", "Alfabet Bank Polska")
    first, last = month_of(2024, (3, 11, 5, 8)[seed], later)
    sheet = Sheet(house, size=house.choice((8.5, 9.0, 9.5)))
    opening = invent_cents(rng, 120_000, 700_000)
    maker = Inventor(rng, _POLISH, _POLISH_INCOME, _POLISH_MORE, 0.45, income=0.2)
    entries = invent_both_ways(maker, (first, last), rng.randint(22, 44), opening)
    sheet.line(50, bank[seed], size=16, bold=True)
    sheet.line(50, "Wyciąg z rachunku osobistego", size=11)
    sheet.line(50, f"za okres od {_dotted(first)} do {_dotted(last)}")
    sheet.line(50, f"Nr rachunku 52 {house.randint(1000, 9999)} 0417 0000 0001 {house.randint(1000, 9999)} 0033")
    sheet.down(10)
    top = sheet.y
    for label, amount, kind in (
        ("Saldo początkowe", opening, "opening"),
        ("Suma uznań", total(entries, 1), "deposits"),
        ("Suma obciążeń", total(entries, -1), "withdrawals"),
        ("Saldo końcowe", entries[-1].balance, "closing"),
    ):
        sheet.pair(60, label, 270, f"{_spaced(amount)} zł")
        sheet.note(kind, amount)
    bottom = sheet.y
    sheet.box(50, top - 13, 280, bottom - 3)
    if seed in {1, 2}:
        sheet.y = top
        sheet.line(330, "Wybrane opłaty z taryfy", bold=True)
        for label, text in _POLISH_FEES:
            sheet.pair(330, label, 545, f"{text} zł")
        sheet.y = max(bottom, sheet.y)
    sheet.down(16)

    def head(day: date) -> None:
        words = f"{day.day} {_POLISH_MONTHS[day.month - 1]}"
        name = _POLISH_DAYS[day.weekday()]
        sheet.line(
            50, (f"{words} {day.year}", f"{name}, {words}", f"{name}, {words} {day.year}", words)[seed], bold=True
        )

    for day, group in groupby(entries, lambda each: each.day):
        movements = list(group)
        sheet.need(sheet.step * 5)
        head(day)
        for each in movements:
            if not sheet.has_room(sheet.step * (len(each.lines) + 1)):
                sheet.new_page()
                head(day)
            sheet.rows.append(TrueRow(day.isoformat(), " ".join(each.lines), each.amount, None, sheet.number, "", 0))
            sign = "+" if each.amount > 0 and seed % 2 else ""
            sheet.write(545, f"{sign}{_spaced(each.amount)} zł", "r")
            for number, text in enumerate(each.lines):
                sheet.down(sheet.size * 1.2 if number else 0)
                sheet.write(62, text)
            sheet.down(sheet.step)
        if seed % 2:
            sheet.write(62, "Saldo na koniec dnia")
            sheet.line(545, f"{_spaced(movements[-1].balance)} zł", "r", bold=True)
            sheet.note("carried", movements[-1].balance)
        sheet.down(sheet.step * 0.4)
    sheet.footer = lambda number, count: f"Strona {number} z {count}"
    return sheet.finish(rng)


_MOBILE = (
    "Customer Transfer to 2547****118 - AMINA OTIENO", "Pay Bill to 880417 - LAKESIDE POWER Acc. 55021877",
    "Merchant Payment to 604417 - DUKA LA BABA", "Airtime Purchase", "Cash Withdrawal at Agent Till 300912 - KISIMA STORES",
    "Pay Bill Charge", "Customer Transfer of Funds Charge", "Savings Pot Deposit",
)  # fmt: skip
_MOBILE_INCOME = (
    "Funds received from 2547****902 - JOSEPH KIMANI", "Business Payment from 511004 - SHAMBA FRESH LTD",
    "Deposit of Funds at Agent Till 300912 - KISIMA STORES", "Savings Pot Withdrawal",
)  # fmt: skip
_SWAHILI = (
    "Kutuma pesa kwa 25571***204 - NEEMA MUSHI", "Lipa bili 880417 - MAJI SAFI Kumb. 55021877", "Lipa kwa simu 604417 - GENGE LA MAMA",
    "Nunua muda wa maongezi", "Kutoa pesa kwa wakala 300912 - DUKA KISIMA", "Ada ya kutuma pesa",
)  # fmt: skip
_SWAHILI_INCOME = (
    "Kupokea pesa kutoka 25571***877 - JUMA SALEHE", "Kuweka pesa kwa wakala 300912 - DUKA KISIMA", "Malipo kutoka kampuni 511004 - SHAMBA BORA",
)  # fmt: skip
_MOBILE_TITLES = (
    ("Receipt No.", "Completion Time", "Details", "Status", "Paid In", "Withdrawn", "Balance"),
    ("Na. ya risiti", "Muda", "Maelezo", "Hali", "Ulizopokea", "Ulizotoa", "Salio"),
    ("Txn ID", "Date & Time", "Transaction Details", "Status", "Money In", "Money Out", "Wallet Balance"),
    ("Kumb. Na.", "Tarehe na saa", "Maelezo ya muamala", "Hali", "Kuingia", "Kutoka", "Salio"),
)


def _mobile_wallet(seed: int, later: int) -> Statement:
    """Draw a wallet newest first, with receipt numbers, times and a summary by kinds of movements at the top."""
    house, rng = seeded(_HALF, "mobile wallet", seed, later)
    service = ("Jirani Pesa", "Tujenge Pesa", "Kiboko Money", "Pesa Tumbawe")
    is_swahili = seed % 2 == 1
    first, last = month_of(2024, (2, 6, 12, 9)[seed], later)
    sheet = Sheet(house, size=7.5, leading=1.6)
    opening = invent_cents(rng, 200_000, 1_500_000)
    spends, incomes = (_SWAHILI, _SWAHILI_INCOME) if is_swahili else (_MOBILE, _MOBILE_INCOME)
    maker = Inventor(rng, spends, incomes, income=0.3, most_out=300_000, most_in=900_000)
    entries = invent_both_ways(maker, (first, last), rng.randint(24, 60), opening)
    seconds = sorted(rng.randint(7 * 3600, 22 * 3600) for _ in entries)
    clocks = {id(each): f"{each.day} {timedelta(seconds=at)!s:0>8}" for each, at in zip(entries, seconds, strict=True)}
    sheet.line(45, service[seed].upper(), size=17, bold=True)
    sheet.line(45, "TAARIFA YA MIAMALA" if is_swahili else "WALLET STATEMENT", size=11)
    sheet.line(45, f"{'Mteja' if is_swahili else 'Customer'}: 2547*****{house.randint(100, 999)}")
    sheet.line(45, f"{'Kipindi' if is_swahili else 'Statement period'}: {first:%d %b %Y} - {last:%d %b %Y}")
    sheet.down(10)
    _print_kinds(sheet, entries, is_swahili=is_swahili)
    sheet.down(20)
    sheet.footer = lambda number, count: f"{number} / {count}"
    places = ((45, "l"), (104, "l"), (188, "l"), (382, "l"), (452, "r"), (504, "r"), (558, "r"))
    keys = ("receipt", "date", "text", "status", "in", "out", "balance")
    columns = moved(
        house,
        [Column(key, *place, (title,)) for key, place, title in zip(keys, places, _MOBILE_TITLES[seed], strict=True)],
        2.0,
    )

    def cells(each: Entry) -> Cells:
        letters = "".join(rng.choice("ABCDEFGHJKLMNPQRSTUVWXYZ0123456789") for _ in range(8))
        blank = "0.00" if seed == 2 else ""
        out = figure(each.amount if seed in {0, 3} else -each.amount)
        return {
            "receipt": f"S{letters}",
            "date": clocks[id(each)],
            "status": "Imekamilika" if is_swahili else "Completed",
            "in": figure(each.amount) if each.amount > 0 else blank,
            "out": out if each.amount < 0 else blank,
            "balance": figure(each.balance),
        }

    Table(
        sheet, columns, cells, is_newest_first=True, row_rule=(45, 558) if seed < 2 else None, extent=(45, 558)
    ).print(entries)
    return sheet.finish(rng)


def _print_kinds(sheet: Sheet, entries: Sequence[Entry], *, is_swahili: bool) -> None:
    """Print what came and went by the first two words of the movements, and the totals."""
    heads = ("AINA YA MUAMALA", "KUINGIA", "KUTOKA") if is_swahili else ("TRANSACTION TYPE", "PAID IN", "PAID OUT")
    for x, side, text in zip((45, 300, 380), "lrr", heads, strict=True):
        sheet.write(x, text, side, bold=True)
    sheet.down(sheet.step)
    for kind in sorted({" ".join(each.lines[0].split()[:2]) for each in entries}):
        some = [each for each in entries if each.lines[0].startswith(kind)]
        sheet.write(300, figure(total(some, 1)), "r")
        sheet.write(380, figure(-total(some, -1)), "r")
        sheet.line(45, kind.upper())
    sheet.write(300, figure(total(entries, 1)), "r", bold=True)
    sheet.write(380, figure(-total(entries, -1)), "r", bold=True)
    sheet.note("deposits", total(entries, 1))
    sheet.note("withdrawals", total(entries, -1))
    sheet.line(45, "JUMLAH" if is_swahili else "TOTAL", bold=True)


_NORWEGIAN = (
    "Varekjøp Fjelldagligvare Bodø", "Avtalegiro Nordlys Kraft", "Giro Husleie Strandgata 14", "Minibank Torget 2",
    "Varekjøp Bokstua Tind", "Kontaktløs Kafé Skjæret", "Overføring Kari Nordahl", "Gebyr nettgiro",
)  # fmt: skip
_NORWEGIAN_INCOME = ("Lønn Havbruk Lofoten AS", "Overføring fra Ola Myhre", "Tilbakebetaling Bokstua Tind")
_NORWEGIAN_MORE = (
    "*4417 02.03 NOK 349,00 Kurs: 1,0000", "Eur 12,50 Kurs 11,4521", "KID 004417 8802 13", "Arkivref 2208 417,50",
    "Nota 55 021 877",
)  # fmt: skip


def _date_at_the_end(seed: int, later: int) -> Statement:
    """Draw the text first and the days last, as four digits; the old balance stands in the column of deposits."""
    house, rng = seeded(_HALF, "date at the end", seed, later)
    bank = ("Sparebanken Fjord og Vidde", "Nordkyst Bank", "Bygdebanken Hallingskarv", "Skjærgård Sparebank")
    first, last = month_of(2024, (4, 9, 1, 6)[seed], later)
    write = _pointed if seed < 2 else _spaced
    sheet = Sheet(house, size=house.choice((8.5, 9.0)))
    opening = invent_cents(rng, 400_000, 2_500_000)
    maker = Inventor(
        rng, _NORWEGIAN, _NORWEGIAN_INCOME, _NORWEGIAN_MORE, 0.4, most_out=300_000, most_in=1_800_000, lag=2
    )
    entries = invent_both_ways(maker, (first, last), rng.randint(20, 46), opening)
    closing = entries[-1].balance
    sheet.write(550, f"Kontoutskrift nr. {first.month} for perioden {_dotted(first)} - {_dotted(last)}", "r", y=60)
    sheet.write(550, f"Konto 4417.{house.randint(10, 99)}.{house.randint(10_000, 99_999)}", "r", y=74)
    sheet.down(4)
    sheet.line(45, bank[seed], size=15, bold=True)
    sheet.down(24)
    sides = [("out", "Ut av konto"), ("in", "Inn på konto")]
    days = [("value", "Rentedato"), ("date", "Bokført")]
    if seed in {1, 3}:
        days.reverse()
    columns = moved(
        house,
        (
            Column("text", 45, "l", ("Forklaring",)),
            *(Column(key, x, "r", (head,)) for (key, head), x in zip(sides, (370, 452), strict=True)),
            *(Column(key, x, "l", (head,)) for (key, head), x in zip(days, (466, 516), strict=True)),
        ),
        2.0,
    )
    table = Table(
        sheet,
        columns,
        lambda each: {
            "date": f"{each.day:%d%m}",
            "value": f"{each.value_day:%d%m}",
            "in" if each.amount > 0 else "out": write(abs(each.amount)),
        },
        inner=1.25,
    )
    sheet.note("opening", opening)
    before = first - timedelta(days=1)
    print_after(table, {"text": f"Saldo fra kontoutskrift {_dotted(before)}", "in": write(opening)}, entries)
    sheet.need(sheet.step * 4)
    sheet.rule(45, 550)
    table.row({"text": "Sum", "out": write(-total(entries, -1)), "in": write(total(entries, 1))})
    sheet.note("withdrawals", total(entries, -1))
    sheet.note("deposits", total(entries, 1))
    sheet.down(sheet.step)
    table.row({"text": f"Saldo i Deres favør {_dotted(last)}", "in": write(closing)}, bold=True)
    sheet.note("closing", closing)
    sheet.down(sheet.step * 2)
    sheet.line(
        45, "Innskuddsrente: 0 - 99.999 0,25 %   100.000 - 499.999 0,80 %   Rente godskrives 31. desember.", size=7
    )
    sheet.footer = lambda number, count: f"Side {number} av {count}"
    return sheet.finish(rng)


_AFRICAN = (
    "POS PURCHASE HARMATTAN STORES", "NIP TRF TO YAKUBU IBRAHIM", "ATM WDL OKELE MARKET", "ELECTRICITY TOKEN 44170092",
    "SMS ALERT CHARGE", "STAMP DUTY", "AIRTIME 0803***4417", "CHQ 000417 CLEARED", "TRF TO ADA NWANKWO RENT",
)  # fmt: skip
_AFRICAN_INCOME = ("NIP CR FROM SAVANNA AGRO", "CASH DEP BRANCH 017", "REVERSAL POS PURCHASE", "SALARY KOLA TEXTILES")


def _remarks_behind_the_balance(seed: int, later: int) -> Statement:
    """Draw and scan an African account: references, sums and balance stand before the remarks, pages are carried."""
    house, rng = seeded(_HALF, "remarks behind the balance", seed, later)
    bank = ("Harmattan Trust Bank", "Volta Crescent Bank", "Baobab Commercial Bank", "Palm Coast Bank")
    first, last = month_of(2023, (5, 10, 7, 3)[seed], later)
    sheet = Sheet(house, size=9.0, font="helv", leading=1.6, width=842, height=595, bottom=50)
    sheet.foot_x = 390.0
    opening = invent_cents(rng, 5_000_000, 30_000_000)
    maker = Inventor(rng, _AFRICAN, _AFRICAN_INCOME, most_out=900_000, most_in=6_000_000, lag=1)
    entries = invent_both_ways(maker, (first, last), rng.randint(18, 40), opening)
    closing = entries[-1].balance
    sheet.line(45, bank[seed], size=17, bold=True)
    sheet.line(45, "ACCOUNT STATEMENT", size=11)
    sheet.line(45, f"Period: {first:%d-%b-%Y} to {last:%d-%b-%Y}    Account No: 00{house.randint(10**7, 10**8 - 1)}")
    sheet.down(6)
    boxes = (
        ("Opening Balance", opening, "opening"), ("Total Debit", -total(entries, -1), "withdrawals"),
        ("Total Credit", total(entries, 1), "deposits"), ("Closing Balance", closing, "closing"),
    )  # fmt: skip
    for number, (label, amount, kind) in enumerate(boxes):
        sheet.write(45 + 190 * number, label, bold=True)
        sheet.write(45 + 190 * number, figure(amount), y=sheet.y + sheet.step)
        sheet.note(kind, amount)
    sheet.down(sheet.step * 3)
    blank = ("", "0.00", "-", "")[seed]
    columns = moved(
        house,
        (
            Column("date", 45, "l", ("Trans Date",)),
            Column("value", 115, "l", ("Value Date",)),
            Column("ref", 185, "l", ("Reference",)),
            Column("out", 350, "r", ("Debit",)),
            Column("in", 430, "r", ("Credit",)),
            Column("balance", 520, "r", ("Balance",)),
            Column("text", 545, "l", ("Remarks",)),
        ),
    )
    Table(
        sheet,
        columns,
        lambda each: {
            "date": f"{each.day:%d-%b-%Y}",
            "value": f"{each.value_day:%d-%b-%Y}",
            "ref": f"{rng.choice('FST')}{rng.randint(10**6, 10**7 - 1)}",
            "in": figure(each.amount) if each.amount > 0 else blank,
            "out": figure(-each.amount) if each.amount < 0 else blank,
            "balance": figure(each.balance),
        },
        carry_out=lambda balance: {"text": "BALANCE C/F", "balance": figure(balance)},
        carry_in=lambda balance: {"text": "BALANCE B/F", "balance": figure(balance)},
        extent=(45, 790),
    ).print(entries)
    return sheet.finish(rng, scan=True)


_UNION = ("Withdrawal counter", "Transfer to loan 0417", "Christmas club transfer", "Cheque withdrawal", "Passbook fee")
_UNION_INCOME = ("Payroll deposit", "Cash deposit", "Transfer from member", "Cheque deposit", "Dividend credited")


def _first_days_of_a_quarter(seed: int, later: int) -> Statement:
    """Draw and scan two accounts of a credit union; each day could as well be a month, and both orders rise."""
    house, rng = seeded(_HALF, "first days of a quarter", seed, later)
    bank = (
        "Bluewater Co-operative Credit Union",
        "Coral Key Members Union",
        "Frigate Bay Credit Union",
        "Mangrove Savings League",
    )
    is_month_first = seed % 2 == 1
    start, year = 3 + seed % 2 + 3 * later, 2023 + seed % 2
    sheet = Sheet(house, size=9.5, font=house.choice(("helv", "tiro")), leading=1.6)
    sheet.line(50, bank[seed], size=16, bold=True)
    sheet.line(50, "MEMBER STATEMENT", size=11)
    sheet.line(50, f"Member no. {house.randint(10_000, 99_999)}     Quarter statement     All amounts in dollars")
    sheet.down(14)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Date",)),
            Column("text", 130, "l", ("Transaction",)),
            Column("out", 375, "r", ("Withdrawals",)),
            Column("in", 460, "r", ("Deposits",)),
            Column("balance", 545, "r", ("Balance",)),
        ),
    )
    for account, name in enumerate(("Regular shares", "Ordinary deposits")):
        # the first and the second number rise by turns, so that neither order of day and month goes back
        firsts, seconds, steps = start + rng.randint(-1, 1), start, []
        while seconds < start + 3 and firsts < start + 4:
            steps += [(firsts, seconds)] * rng.randint(1, 2)
            if (rng.random() < 0.5 and firsts < start + 3) or seconds == start + 2:
                firsts += 1
            else:
                seconds += 1
        days = [date(year, a, b) if is_month_first else date(year, b, a) for a, b in steps]
        opening = invent_cents(rng, 80_000, 400_000)
        maker = Inventor(rng, _UNION, _UNION_INCOME, income=0.5, most_out=20_000, most_in=60_000)
        entries = invent_both_ways(maker, (days[0], days[-1]), len(days), opening)
        entries = [replace(each, day=day) for each, day in zip(entries, days, strict=True)]
        sheet.need(sheet.step * 12)
        sheet.line(50, f"{name}  -  suffix 0{account + 1}", size=11, bold=True)
        sheet.note("opening", opening, account)
        table = Table(
            sheet,
            columns,
            lambda each: {
                "date": f"{each.day:%m/%d/%Y}" if is_month_first else _slashed(each.day),
                "in" if each.amount > 0 else "out": figure(abs(each.amount)),
                "balance": figure(each.balance),
            },
            account=account,
        )
        print_after(table, {"text": "Previous balance", "balance": figure(opening)}, entries)
        table.row({"text": "Closing balance", "balance": figure(entries[-1].balance)}, bold=True)
        sheet.note("closing", entries[-1].balance, account)
        sheet.down(sheet.step * 2)
    sheet.need(sheet.step * 5)
    sheet.line(50, "Dividend rates per annum", bold=True)
    for band, rate in (("Up to 1,000.00", "1.25%"), ("1,000.01 to 5,000.00", "1.75%"), ("Over 5,000.00", "2.10%")):
        sheet.pair(50, band, 260, rate)
    return sheet.finish(rng, scan=True, dates_certain=False)


_BULGARIAN = (
    "Мария Стоянова", "Ателие Роза ЕООД", "Георги Димитров", "Книжарница Лист", "Петров и синове ООД", "Елена Колева",
    "Сдружение Чист въздух", "Иван Тодоров", "Ферма Балкан АД", "Николай Ангелов",
)  # fmt: skip
_BULGARIAN_MORE = (
    "BG80 VRNB 9661 1020 3456 78",
    "договор 14/2",
    "фактура 0000418827",
    "по споразумение",
    "реф. 5502 187,70",
)


def _two_columns_without_titles(seed: int, later: int) -> Statement:
    """Draw a payment service whose two columns of amounts have no titles; names pay and are paid, nothing adds up."""
    house, rng = seeded(_HALF, "two columns without titles", seed, later)
    service = ("Вихрен Пей", "Разплата Онлайн", "Монета Експрес", "Експрес Поща Плащания")
    first, last = month_of(2024, (2, 7, 5, 10)[seed], later)
    write = (_spaced, _pointed, figure, _spaced)[seed]
    sheet = Sheet(house, size=house.choice((8.5, 9.0)))
    maker = Inventor(rng, _BULGARIAN, _BULGARIAN, _BULGARIAN_MORE, 0.5, income=0.5, most_out=150_000, most_in=150_000)
    entries = invent_both_ways(maker, (first, last), rng.randint(20, 42), Decimal(1_000_000))
    sheet.line(50, service[seed], size=16, bold=True)
    sheet.line(50, "Справка за движения", size=11)
    sheet.line(
        50, f"Период {_dotted(first)} г. - {_dotted(last)} г.     Клиентски номер {house.randint(100_000, 999_999)}"
    )
    sheet.down(16)
    heads = ("№", "Дата", "Контрагент / основание", "Документ")
    columns = moved(
        house,
        (
            *(
                Column(key, x, "l", (head,))
                for key, x, head in zip(("no", "date", "text", "ref"), (50, 78, 142, 330), heads, strict=True)
            ),
            Column("out" if seed % 2 else "in", 470, "r", ("лв.",) if seed < 2 else ()),
            Column("in" if seed % 2 else "out", 545, "r", ("лв.",) if seed < 2 else ()),
        ),
        2.0,
    )
    numbers = {id(each): str(number) for number, each in enumerate(entries, 1)}
    table = Table(
        sheet,
        columns,
        lambda each: {
            "no": numbers[id(each)],
            "date": _dotted(each.day),
            "ref": f"{rng.randint(100_000, 999_999)}/{rng.randint(10, 99)}",
            "in" if each.amount > 0 else "out": write(abs(each.amount)),
        },
        row_rule=(50, 545) if seed in {0, 3} else None,
        is_head_repeated=seed != 1,
    )
    table.print(entries)
    sheet.need(sheet.step * 2)
    table.row({"text": "Общо", "in": write(total(entries, 1)), "out": write(-total(entries, -1))}, bold=True)
    sheet.note("deposits", total(entries, 1))
    sheet.note("withdrawals", total(entries, -1))
    sheet.footer = lambda number, count: f"стр. {number} от {count}"
    return sheet.finish(rng, signs_proven=False)


_TURKISH = (
    "Market alışverişi Çınaraltı Gıda", "Fatura ödemesi Işık Elektrik", "ATM para çekme Kuruçeşme", "Kira ödemesi Yıldız Apt. 5",
    "Kart ödemesi Güneş Kırtasiye", "Havale gönderilen Ayşe Öztürk", "EFT masrafı", "Taksit 03/09 Beyaz Eşya Dünyası",
)  # fmt: skip
_TURKISH_INCOME = (
    "Maaş ödemesi Zeytin Tarım A.Ş.",
    "Havale gelen Mehmet Şahin",
    "İade Güneş Kırtasiye",
    "Nakit yatırma",
)
_EURO_SPENDS = (
    "Döviz satış kur 35,4120",
    "SWIFT giden Haus Linde GmbH",
    "Kart ödemesi Café Ufer Köln",
    "SWIFT masrafı",
)
_EURO_INCOME = ("SWIFT gelen Atelier Nord", "Döviz alış kur 35,6075")
_TURKISH_MORE = ("Ref 2208-417,50", "Kart 4417 **** 0092", "Sorgu no 550218")


def _two_currencies_with_letters(seed: int, later: int) -> Statement:
    """Draw a Turkish customer's accounts in lira and euro, with letters of debit and credit behind each amount."""
    house, rng = seeded(_HALF, "two currencies with letters", seed, later)
    bank = ("Boğaz Katılım Bankası", "Toros Bank", "Ege Yakası Bankası", "Anadolu Pınar Bank")
    first, last = month_of(2024, (1, 8, 4, 11)[seed], later)
    debit, credit = ((" B", " A"), (" (B)", " (A)"), ("B", "A"), (" B", " A"))[seed]
    sheet = Sheet(house, size=house.choice((8.5, 9.0)))
    sheet.line(45, bank[seed], size=17, bold=True)
    sheet.line(45, "HESAP EKSTRESİ", size=12)
    sheet.line(45, f"Dönem: {_slashed(first)} - {_slashed(last)}     Müşteri no: {house.randint(10**6, 10**7 - 1)}")
    if seed != 2:
        sheet.line(45, f"{debit.strip()}: Borç   {credit.strip()}: Alacak", size=7.5)
    sheet.down(12)
    columns = moved(
        house,
        (
            Column("date", 45, "l", ("Tarih",)),
            Column("slip", 105, "l", ("Fiş No",)),
            Column("text", 155, "l", ("Açıklama",)),
            Column("amount", 450, "r", ("İşlem Tutarı",)),
            Column("balance", 550, "r", ("Bakiye",)),
        ),
        2.0,
    )

    def lettered(amount: Decimal) -> str:
        return _pointed(abs(amount)) + (debit if amount < 0 else credit)

    for account, (name, currency, spends, incomes, most) in enumerate(
        (
            ("Vadesiz TL Hesabı", "TRY", _TURKISH, _TURKISH_INCOME, 900_000),
            ("Vadesiz Döviz Hesabı EUR", "EUR", _EURO_SPENDS, _EURO_INCOME, 60_000),
        )
    ):
        opening = invent_cents(rng, most, most * 5)
        maker = Inventor(rng, spends, incomes, _TURKISH_MORE, 0.3, most_out=most, most_in=most * 3)
        count = rng.randint(16, 34) if not account else rng.randint(7, 13)
        entries = balanced(invent_both_ways(maker, (first, last), count, opening), opening)
        sheet.need(sheet.step * 10)
        sheet.line(
            45,
            f"{name}   TR{house.randint(10, 99)} 0004 4170 0000 {house.randint(1000, 9999)} 0{account + 1}",
            bold=True,
        )
        table = Table(
            sheet,
            columns,
            lambda each: {
                "date": _slashed(each.day),
                "slip": str(rng.randint(1000, 9999)),
                "amount": lettered(each.amount),
                "balance": lettered(each.balance),
            },
            is_date_once=seed == 3,
            currency=currency,
            account=account,
        )
        sheet.note("opening", opening, account)
        print_after(table, {"text": "Devreden bakiye", "balance": lettered(opening)}, entries)
        sheet.need(sheet.step * 3)
        sheet.rule(45, 550)
        sheet.pair(155, "Toplam borç", 450, _pointed(-total(entries, -1)))
        sheet.note("withdrawals", total(entries, -1), account)
        sheet.pair(155, "Toplam alacak", 450, _pointed(total(entries, 1)))
        sheet.note("deposits", total(entries, 1), account)
        sheet.pair(155, "Dönem sonu bakiyesi", 550, lettered(entries[-1].balance), bold=True)
        sheet.note("closing", entries[-1].balance, account)
        sheet.down(sheet.step * 1.5)
    sheet.footer = lambda number, count: f"Sayfa {number}/{count}"
    return sheet.finish(rng)


SHAPES: dict[str, DrawShape] = name_shapes(
    (
        _days_as_headings,
        _mobile_wallet,
        _date_at_the_end,
        _remarks_behind_the_balance,
        _first_days_of_a_quarter,
        _two_columns_without_titles,
        _two_currencies_with_letters,
    )
)
