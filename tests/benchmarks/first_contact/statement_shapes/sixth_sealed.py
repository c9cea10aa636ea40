"""The sixth sealed half: seven other layouts of cards, brokers, banks and co-operatives, four of each."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal

from benchmarks.first_contact.statement_shapes.drawing import (
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
    invent_both_ways,
    invent_cents,
    month_of,
    moved,
    name_shapes,
    print_after,
    seeded,
    total,
)

_HALF = "sixth sealed"


def _pointed(amount: Decimal) -> str:
    return figure(amount, ".", ",")


def _slashed(day: date) -> str:
    return f"{day:%d/%m/%Y}"


def _whole(amount: Decimal, group: str = ",") -> str:
    return figure(amount, group)[:-3]


def _rounded(entries: Sequence[Entry], opening: Decimal) -> list[Entry]:
    """Return the movements without cents, with their balances computed anew."""
    return balanced([replace(each, amount=(each.amount * 100).quantize(Decimal(1))) for each in entries], opening)


_BRAZILIAN = (
    "PADARIA DO LARGO", "POSTO TRES MARIAS", "MERCADO BOM VIZINHO", "FARMACIA AROEIRA", "LIVRARIA CAJU",
    "RESTAURANTE DA TIA LU", "APLIC MOBILIDADE 0417", "FLORICULTURA IPE",
)  # fmt: skip
_BRAZILIAN_SHOPS = ("MOVEIS CEDRO", "ELETRO PIRACEMA", "OTICA LAGOA", "PNEUS SERRANA", "CURSO LINGUAS MAR")
_BRAZILIAN_ABROAD = ("BLUE MESA HOTEL", "CLOUDNEST STORAGE", "LISBOA LIVROS", "ANDES OUTDOOR")
_BRAZILIAN_CITIES = ("SAO PAULO", "RECIFE", "CURITIBA", "BELEM", "GOIANIA")
_BRAZILIAN_MONTHS = (
    "janeiro",
    "fevereiro",
    "março",
    "abril",
    "maio",
    "junho",
    "julho",
    "agosto",
    "setembro",
    "outubro",
    "novembro",
    "dezembro",
)


def _buy(rng: random.Random, days: Sequence[date], names: Sequence[str], count: int, most: int) -> list[Entry]:
    """Return that many purchases, oldest first."""
    chosen = sorted(rng.choice(days) for _ in range(count))
    return [Entry(day, (rng.choice(names),), -invent_cents(rng, 900, most), Decimal(0), day) for day in chosen]


def _credit(rng: random.Random, days: Sequence[date], paid: Decimal, *, has_cashback: bool) -> list[Entry]:
    """Return the payment of the bill before, what the card gives back, and sometimes a purchase that was returned."""
    booked = [(days[8], "PAGAMENTO RECEBIDO", paid)]
    if has_cashback:
        booked.append((days[-3], "CASHBACK CREDITADO", invent_cents(rng, 700, 4_000)))
    if rng.random() < 0.6:
        booked.append((days[-2], f"ESTORNO {rng.choice(_BRAZILIAN)}", invent_cents(rng, 2_000, 9_000)))
    return [Entry(day, (text,), amount, Decimal(0), day) for day, text, amount in booked]


def _bill(sheet: Sheet, returned: Decimal, previous: Decimal, closing: Decimal) -> None:
    """Print the sums of a bill in a frame, and the terms of the card beside it."""
    top = sheet.y
    for label, amount, sign, kind in (
        ("Total da fatura anterior", previous, "", "opening"), ("Pagamentos e créditos", returned, "- ", "deposits"),
        ("Compras e lançamentos", previous + returned - closing, "+ ", "withdrawals"),
        ("Total desta fatura", closing, "= ", "closing"),
    ):  # fmt: skip
        sheet.pair(55, label, 285, f"{sign}R$ {_pointed(abs(amount))}", bold=sign == "= ")
        sheet.note(kind, amount)
    bottom, sheet.y = sheet.y, top
    sheet.box(45, top - 13, 295, bottom - 2)
    for label, text in (
        ("Pagamento mínimo", f"R$ {_pointed(-closing * Decimal('0.15'))}"), ("Limite total", "R$ 12.000,00"),
        ("Juros do rotativo", "14,90% a.m."), ("IOF adicional", "0,38%"),
    ):  # fmt: skip
        sheet.pair(330, label, 550, text)
    sheet.y = bottom + 18


def _card_with_instalments(seed: int, later: int) -> Statement:
    """Draw a Brazilian card in sections of credits, purchases, instalments, foreign ones, and what falls due later."""
    house, rng = seeded(_HALF, "card with instalments", seed, later)
    bank = ("Cartão Ipê Gold", "Banco Piracema Cartões", "Caju Pay Card", "Cooperativa Serra Azul Card")
    first, last = cycle_of(2024, (4, 12, 6, 9)[seed], house.randint(20, 27), later)
    due = last + timedelta(days=9)
    sheet = Sheet(house, size=house.choice((8.0, 8.5)))
    days = [first + timedelta(days=each) for each in range((last - first).days + 1)]
    previous = -invent_cents(rng, 90_000, 500_000)
    paid = _credit(rng, days, -previous, has_cashback=seed % 2 == 1)
    local = _buy(rng, days, _BRAZILIAN, rng.randint(10, 26), 22_000)
    parts = _buy(rng, days, _BRAZILIAN_SHOPS, rng.randint(3, 7), 45_000)
    dollars, extra = [], dict[int, dict[str, str]]()
    for each in parts:
        part = rng.randint(2, 9)
        extra[id(each)] = {"part": f"{part:02}/{part + rng.randint(1, 3):02}"}
    for each in _buy(rng, days, _BRAZILIAN_ABROAD, rng.randint(2, 5), 60_000):
        rate = Decimal(rng.randint(48_500, 52_900)) / 10_000
        dollars.append(replace(each, lines=(*each.lines, f"Cotação do dólar R$ {rate:.4f}".replace(".", ","))))
        extra[id(dollars[-1])] = {"place": "EXTERIOR", "dollars": _pointed(-each.amount / rate)}
    sections = (
        ("Pagamentos e créditos", paid), ("Compras nacionais", local), ("Compras parceladas", parts),
        ("Compras internacionais", dollars),
    )  # fmt: skip
    sheet.line(45, bank[seed], size=17, bold=True)
    sheet.line(45, f"Fatura de {_BRAZILIAN_MONTHS[due.month - 1]} de {due.year}", size=11)
    sheet.line(
        45, f"Cartão final {house.randint(1000, 9999)}    Fechamento {_slashed(last)}    Vencimento {_slashed(due)}"
    )
    sheet.down(10)
    _bill(sheet, total(paid), previous, previous + sum(total(entries) for _, entries in sections))
    columns = moved(
        house,
        (
            Column("date", 45, "l", ("Data",)),
            Column("text", 88, "l", ("Estabelecimento",)),
            Column("part", 255, "l", ("Parcela",)),
            Column("place", 325, "l", ("Cidade",)),
            Column("dollars", 465, "r", ("US$",)),
            Column("amount", 550, "r", ("R$",)),
        ),
        2.0,
    )

    def signed(amount: Decimal) -> str:
        if amount < 0:
            return _pointed(-amount)
        return f"-{_pointed(amount)}" if seed < 2 else f"{_pointed(amount)}-"

    def cells(each: Entry) -> Cells:
        place = {} if each.amount > 0 else {"place": rng.choice(_BRAZILIAN_CITIES)}
        return {"date": f"{each.day:%d/%m}", "amount": signed(each.amount), **place, **extra.get(id(each), {})}

    for name, entries in sections:
        sheet.need(sheet.step * 8)
        sheet.line(45, name, size=10, bold=True)
        Table(sheet, columns, cells).print(entries)
        sheet.need(sheet.step)
        sheet.pair(330, "Subtotal", 550, signed(total(entries)), bold=True)
        sheet.note("subtotal", total(entries))
        sheet.down(sheet.step * 0.6)
    sheet.need(sheet.step * 6)
    sheet.line(45, "Compras parceladas - próximas faturas", size=10, bold=True)
    for number, share in enumerate((70, 45, 20), 1):
        month = month_of(due.year, due.month, number)[0]
        sheet.pair(
            45, f"{_BRAZILIAN_MONTHS[month.month - 1]} de {month.year}", 250, _pointed(-total(parts) * share / 100)
        )
    sheet.footer = lambda number, count: f"Página {number}/{count}"
    return sheet.finish(rng)


_STOCKS = (
    "ARDEN LITHIUM PLC", "BOREAL TIMBER CORP", "CALDERA FOODS INC", "DRUMLIN WATER TRUST", "ESKER RAIL 4.125% 2031",
    "FELL & MOOR REIT", "GANNET SHIPPING LTD",
)  # fmt: skip


def _broker_by_kinds(seed: int, later: int) -> Statement:
    """Draw a broker's year in sections sorted by security; each day could as well be a month."""
    house, rng = seeded(_HALF, "broker by kinds", seed, later)
    bank = (
        "Meridian Gate Brokers",
        "Halyard International Securities",
        "Kestrel Quay Trading",
        "Ostrava & Pine Global Invest",
    )
    year, is_month_first = 2023 + later + seed % 2, seed in {1, 2}
    sheet = Sheet(house, size=house.choice((8.0, 8.5)), leading=1.5)
    opening = invent_cents(rng, 1_000_000, 5_000_000)

    def made(text: str, amount: Decimal) -> Entry:
        day = date(year, rng.randint(1, 12), rng.randint(1, 12))
        return Entry(day, (text,), amount, Decimal(0), day)

    cash = [made("Wire received", invent_cents(rng, 50_000, 900_000)) for _ in range(rng.randint(3, 5))]
    cash += [made("Wire sent", -invent_cents(rng, 50_000, 300_000)) for _ in range(rng.randint(2, 4))]
    trades, details = [], {}
    for name in sorted(rng.choice(_STOCKS) for _ in range(rng.randint(8, 18))):
        units, price = rng.randint(5, 220), Decimal(rng.randint(20_000, 900_000)) / 10_000
        is_bought = rng.random() < 0.55
        net = (units * price).quantize(Decimal("0.01")) * (-1 if is_bought else 1) - Decimal("4.95")
        trades.append(made(f"{'Bought' if is_bought else 'Sold'} {name}", net))
        details[id(trades[-1])] = (f"{units}.000", f"{price:.4f}")
    income = [made(f"Dividend {name}", invent_cents(rng, 900, 30_000)) for name in sorted(rng.sample(_STOCKS, 4))]
    income += [made("Tax withheld at source", -invent_cents(rng, 100, 4_000)) for _ in range(2)]
    fees = [made("Custody fee", Decimal("-12.50")) for _ in range(rng.randint(2, 4))]
    sections = (("Deposits and withdrawals", cash), ("Trades", trades), ("Dividends and tax", income), ("Fees", fees))
    closing = opening + sum(total(each) for _, each in sections)
    sheet.line(45, bank[seed], size=16, bold=True)
    sheet.line(45, f"Cash account, annual report {year}", size=11)
    sheet.line(45, f"Account U{house.randint(10**6, 10**7 - 1)}    Base currency USD")
    sheet.down(10)

    def bracketed(amount: Decimal) -> str:
        if seed == 3:
            return figure(amount)
        return f"({figure(-amount)})" if amount < 0 else figure(amount)

    sheet.line(45, "Cash summary", size=10, bold=True)
    sheet.pair(45, "Starting cash", 300, bracketed(opening))
    sheet.note("opening", opening)
    for name, entries in sections:
        sheet.pair(45, name, 300, bracketed(total(entries)))
        sheet.note("subtotal", total(entries))
    sheet.rule(45, 300)
    sheet.pair(45, "Ending cash", 300, bracketed(closing), bold=True)
    sheet.note("closing", closing)
    sheet.down(16)
    columns = moved(
        house,
        (
            Column("date", 45, "l", ("Date",)),
            Column("text", 115, "l", ("Activity",)),
            Column("units", 375, "r", ("Quantity",)),
            Column("price", 450, "r", ("Price",)),
            Column("amount", 548, "r", ("Net amount",)),
        ),
        2.0,
    )

    def cells(each: Entry) -> Cells:
        units, price = details.get(id(each), ("", ""))
        return {
            "date": f"{each.day:%m/%d/%Y}" if is_month_first else _slashed(each.day),
            "units": units,
            "price": price,
            "amount": bracketed(each.amount),
        }

    for name, entries in sections:
        sheet.need(sheet.step * 7)
        sheet.line(45, name, size=10, bold=True)
        Table(sheet, columns, cells, has_head=name != "Fees").print(entries)
        sheet.need(sheet.step)
        sheet.pair(115, f"Total {name.lower()}", 548, bracketed(total(entries)), bold=True)
        sheet.note("subtotal", total(entries))
        sheet.down(sheet.step * 0.7)
    return sheet.finish(rng, dates_certain=False)


_JAPANESE = (
    "電気料金 ミドリデンリョク", "家賃 サクラハイツ203", "カード ヤマネコストア", "ATM引出 駅前", "水道料金",
    "振込 タナカ ハナコ", "振込手数料", "保険料 アオゾラ生命",
)  # fmt: skip
_JAPANESE_INCOME = ("給与 カ)ホシゾラ製作所", "振込 スズキ イチロウ", "利息", "入金 窓口")


def _years_of_an_era(seed: int, later: int) -> Statement:
    """Draw a Japanese account in yen, half of the banks with years of the era, with carries from page to page."""
    house, rng = seeded(_HALF, "years of an era", seed, later)
    bank = ("みなと坂銀行", "しらかば信用金庫", "あさぎり銀行", "つるみ川信用組合")
    first, last = month_of(2024, (3, 5, 10, 7)[seed], later)
    sheet = Sheet(house, size=9.0, font="japan", leading=1.6)
    sheet.bold = sheet.font
    opening = Decimal(rng.randint(150_000, 900_000))
    maker = Inventor(rng, _JAPANESE, _JAPANESE_INCOME, most_out=800, most_in=3_000)
    drawn = invent_both_ways(maker, (first, last), rng.randint(26, 50), Decimal(100_000))
    entries = _rounded([replace(each, amount=each.amount * (1 + rng.randint(8, 30))) for each in drawn], opening)
    while min(each.balance for each in entries) < 0:
        opening += 500_000
        entries = balanced(entries, opening)
    is_era = seed > 1

    def named(day: date) -> str:
        return f"{f'令和{day.year - 2018}' if is_era else day.year}年{day.month}月{day.day}日"

    def dated(day: date) -> str:
        year = f"{day.year - 2018}" if is_era else f"{day:%y}" if seed else f"{day:%Y}"
        return f"{year}{'.-'[seed % 2]}{day:%m}{'.-'[seed % 2]}{day:%d}"

    sheet.line(50, bank[seed], size=17)
    sheet.line(50, "普通預金 入出金明細", size=12)
    sheet.line(50, f"{named(first)}から{named(last)}まで")
    sheet.line(50, f"店番 {house.randint(100, 999)}  口座番号 {house.randint(1_000_000, 9_999_999)}  単位 円")
    sheet.down(14)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("年月日",)),
            Column("text", 120, "l", ("摘要",)),
            Column("out", 340, "r", (("お支払金額", "お引出し金額", "出金額", "支払金額")[seed],)),
            Column("in", 430, "r", (("お預り金額", "お預入れ金額", "入金額", "預入金額")[seed],)),
            Column("balance", 530, "r", (("差引残高", "残高")[seed % 2],)),
        ),
        2.0,
    )
    mark = ("", "", "¥", "*")[seed]
    table = Table(
        sheet,
        columns,
        lambda each: {
            "date": dated(each.day),
            "in" if each.amount > 0 else "out": _whole(abs(each.amount)),
            "balance": mark + _whole(each.balance),
        },
        per_page=24,
        row_rule=(50, 530) if seed == 0 else None,
        is_date_once=seed == 1,
        carry_out=lambda balance: {"text": "次頁へ繰越", "balance": mark + _whole(balance)},
        carry_in=lambda balance: {"text": "前頁より繰越", "balance": mark + _whole(balance)},
    )
    sheet.note("opening", opening)
    print_after(table, {"text": "繰越残高", "balance": mark + _whole(opening)}, entries)
    sheet.need(sheet.step * 5)
    sheet.rule(50, 530)
    table.row({"text": "合計", "out": _whole(-total(entries, -1)), "in": _whole(total(entries, 1))})
    sheet.note("withdrawals", total(entries, -1))
    sheet.note("deposits", total(entries, 1))
    sheet.down(sheet.step)
    table.row({"text": "期末残高", "balance": mark + _whole(entries[-1].balance)})
    sheet.note("closing", entries[-1].balance)
    sheet.down(sheet.step * 2)
    sheet.line(50, "普通預金利率 年0.02%  定期預金(1年) 年0.125%", size=7.5)
    sheet.footer = lambda number, count: f"{number}/{count}頁"
    return sheet.finish(rng)


_MEXICAN = (
    "SPEI ENVIADO RENTA DEPTO 4", "PAGO TARJETA FONDA LA CEIBA", "RETIRO CAJERO AUTOMATICO", "RECIBO LUZ DEL BAJIO",
    "PAGO TARJETA PAPELERIA SOL", "COMISION MANEJO DE CUENTA", "IVA COM MANEJO", "PAGO TARJETA GAS NOPAL",
)  # fmt: skip
_MEXICAN_INCOME = ("SPEI RECIBIDO TALLERES AGAVE", "DEPOSITO EFECTIVO", "NOMINA CERAMICA TONALA")
_MEXICAN_MORE = (
    "0417 8802 13 BNET 55021877",
    "RFC: CTO 880417 AB1",
    "AUT: 220841 REF 1,187.70",
    "GUIA: 5502187 CONCEPTO: PAGO",
)
_MEXICAN_MONTHS = ("ENE", "FEB", "MAR", "ABR", "MAY", "JUN", "JUL", "AGO", "SEP", "OCT", "NOV", "DIC")


def _two_balances_a_day(seed: int, later: int) -> Statement:
    """Draw and scan a Mexican account with two days and two balances, these only beside the last row of a day."""
    house, rng = seeded(_HALF, "two balances a day", seed, later)
    bank = ("BANCO DEL BAJIO ALTO", "CAJA POPULAR TONALA", "BANCO SIERRA TARAHUMARA", "BANCO PUERTO ESCONDIDO")
    first, last = month_of(2024, (3, 12, 6, 9)[seed], later)
    sheet = Sheet(house, size=8.8, font="helv", leading=1.55)
    opening = invent_cents(rng, 900_000, 4_000_000)
    maker = Inventor(rng, _MEXICAN, _MEXICAN_INCOME, _MEXICAN_MORE, 0.5, most_out=300_000, most_in=1_200_000, lag=1)
    entries = invent_both_ways(maker, (first, last), rng.randint(18, 34), opening)
    closing, spent, earned = entries[-1].balance, -total(entries, -1), total(entries, 1)

    def abbreviated(day: date) -> str:
        return f"{day.day:02}/{_MEXICAN_MONTHS[day.month - 1]}"

    sheet.line(40, bank[seed], size=16, bold=True)
    sheet.line(40, "ESTADO DE CUENTA", size=11)
    sheet.line(
        40, f"PERIODO DEL {_slashed(first)} AL {_slashed(last)}    No. de cuenta 0{house.randint(10**8, 10**9 - 1)}"
    )
    sheet.down(8)
    sheet.line(40, "Comportamiento", bold=True)
    count = sum(each.amount > 0 for each in entries)
    lines = (
        ("Saldo Anterior", "", opening, "opening"),
        ("Depositos / Abonos (+)", str(count), earned, "deposits"),
        ("Retiros / Cargos (-)", str(len(entries) - count), spent, "withdrawals"),
        ("Saldo Final (+)", "", closing, "closing"),
    )
    for label, number, amount, kind in lines:
        sheet.write(210, number, "r")
        sheet.pair(40, label, 300, figure(amount))
        sheet.note(kind, amount)
    sheet.down(12)
    sheet.line(40, "Detalle de Movimientos Realizados", bold=True)
    columns = moved(
        house,
        (
            Column("date", 40, "l", ("FECHA", "OPER")),
            Column("value", 82, "l", ("", "LIQ")),
            Column("text", 124, "l", ("", "DESCRIPCION")),
            Column("out", 366, "r", ("", "CARGOS")),
            Column("in", 430, "r", ("", "ABONOS")),
            Column("balance", 496, "r", ("SALDO", "OPERACION")),
            Column("settled", 562, "r", ("", "LIQUIDACION")),
        ),
        1.5,
    )
    closes = {
        id(each)
        for each, after in zip(entries, [*entries[1:], None], strict=True)
        if not after or after.day != each.day
    }
    Table(
        sheet,
        columns,
        lambda each: {
            "date": abbreviated(each.day),
            "value": abbreviated(each.value_day),
            "in" if each.amount > 0 else "out": figure(abs(each.amount)),
            "balance": figure(each.balance),
            "settled": figure(each.balance) if id(each) in closes else "",
        },
        is_balance_once=True,
        extent=(40, 562),
    ).print(entries)
    sheet.need(sheet.step * 4)
    sheet.down(sheet.step)
    sheet.line(40, "Total de Movimientos", bold=True)
    for label, amount, kind in (
        ("TOTAL IMPORTE CARGOS", spent, "withdrawals"), ("TOTAL IMPORTE ABONOS", earned, "deposits"),
    ):  # fmt: skip
        sheet.pair(40, label, 300, figure(amount))
        sheet.note(kind, amount)
    sheet.footer = lambda number, count: f"PAGINA {number} / {count}"
    return sheet.finish(rng, scan=True)


_FINNISH = (
    "Korttiosto Leipomo Tuomi", "Vuokra Asunto Oy Lehtokatu 4", "Automaattinosto Kauppatori", "E-lasku Pohjan Sähkö",
    "Korttiosto Kirjakauppa Sulka", "Tilisiirto Virtanen Liisa", "Palvelumaksu", "Korttiosto Kahvila Järvi",
)  # fmt: skip
_FINNISH_INCOME = ("Palkka Saha ja Höylä Oy", "Tilisiirto Mäkelä Pekka", "Palautus Kirjakauppa Sulka")
_FINNISH_MORE = ("Viite 4417 88021", "Viesti: lasku 14-B", "Kortti **** 0092", "Arkistointitunnus A5588TK417")


def _no_year_at_all(seed: int, later: int) -> Statement:
    """Draw a Finnish account without a year on any page, its signs behind the amounts, and the balance of each day."""
    house, rng = seeded(_HALF, "no year at all", seed, later)
    bank = ("Järvenseudun Säästöpankki", "Osuuskassa Kaarna", "Pohjanranta Pankki", "Saaristo Pankki")
    first, last = month_of(2024, (3, 5, 9, 7)[seed], later)
    sheet = Sheet(house, size=house.choice((8.5, 9.0)))
    opening = invent_cents(rng, 90_000, 500_000)
    maker = Inventor(rng, _FINNISH, _FINNISH_INCOME, _FINNISH_MORE, 0.5, income=0.2, lag=1)
    entries = invent_both_ways(maker, (first, last), rng.randint(20, 40), opening)

    def signed(amount: Decimal) -> str:
        return figure(abs(amount), "." if seed < 2 else " ", ",") + ("-" if amount < 0 else "+")

    def dotted(day: date) -> str:
        return f"{day.day}.{day.month}." if seed % 2 else f"{day:%d.%m.}"

    sheet.line(45, bank[seed], size=16, bold=True)
    sheet.line(45, f"TILIOTE {first.month}", size=12, bold=True)
    sheet.line(
        45,
        f"Kausi {dotted(first)} - {dotted(last)}    Tili FI{house.randint(10, 99)} 4417 0010 0{house.randint(10, 99)} 85",
    )
    sheet.down(14)
    columns = moved(
        house,
        (
            Column("date", 45, "l", ("Kirjaus-", "päivä")),
            Column("value", 95, "l", ("Arvo-", "päivä")),
            Column("text", 145, "l", ("Saaja / Maksaja", "Selite")),
            Column("no", 405, "r", ("", "Tap.nro")),
            Column("amount", 535, "r", ("", "Määrä EUR")),
        ),
        2.0,
    )
    numbers = {id(each): str(number) for number, each in enumerate(entries, 1)}
    table = Table(
        sheet,
        columns,
        lambda each: {
            "date": dotted(each.day),
            "value": dotted(each.value_day),
            "no": numbers[id(each)],
            "amount": signed(each.amount),
        },
        row_rule=(45, 535) if seed == 2 else None,
    )
    sheet.note("opening", opening)
    print_after(table, {"text": "Alkusaldo", "amount": signed(opening)}, entries)
    sheet.need(sheet.step * 6)
    sheet.rule(45, 535)
    for kind, sign, label in (("deposits", 1, "Panot"), ("withdrawals", -1, "Otot")):
        count = sum(each.amount * sign > 0 for each in entries)
        sheet.pair(145, f"{label} {count} kpl yhteensä", 535, signed(total(entries, sign)))
        sheet.note(kind, total(entries, sign))
    sheet.pair(145, "Loppusaldo", 535, signed(entries[-1].balance), bold=True)
    sheet.note("closing", entries[-1].balance)
    sheet.footer = lambda number, count: f"Sivu {number} / {count}"
    return sheet.finish(rng, dates_certain=False)


_INDONESIAN = (
    "Bpk Wahyu Santosa", "Ibu Sri Lestari", "Toko Melati", "CV Karya Bersama", "Warung Pak Darmo", "Kelompok Tani Subur",
    "Ibu Ratna Dewi", "Bengkel Jaya", "Bpk Agus Hartono",
)  # fmt: skip
_INDONESIAN_MONTHS = (
    "Januari", "Februari", "Maret", "April", "Mei", "Juni", "Juli", "Agustus", "September", "Oktober", "November",
    "Desember",
)  # fmt: skip


def _codes_without_a_legend(seed: int, later: int) -> Statement:
    """Draw and scan a co-operative's list of amounts with codes of movements that no page explains."""
    house, rng = seeded(_HALF, "codes without a legend", seed, later)
    bank = ("Koperasi Sumber Makmur", "Koperasi Mitra Sejati", "Koperasi Tani Lestari", "Koperasi Karya Nelayan")
    first, last = month_of(2024, (2, 8, 4, 10)[seed], later)
    sheet = Sheet(house, size=9.5, font=house.choice(("helv", "cour")), leading=1.55)
    maker = Inventor(rng, _INDONESIAN, _INDONESIAN, income=0.5, most_out=150_000_000, most_in=150_000_000)
    drawn = invent_both_ways(maker, (first, last), rng.randint(18, 36), Decimal(10**9))
    entries = [replace(each, amount=each.amount.quantize(Decimal(1)) // 500 * 500 + 500) for each in drawn]
    codes = (("11", "21"), ("101", "202"), ("A1", "B1"), ("07", "05"))[seed]
    write = _pointed if seed % 2 else lambda amount: _whole(amount, ".")
    sheet.line(50, bank[seed].upper(), size=15, bold=True)
    sheet.line(50, "Daftar Transaksi Anggota", size=11)
    sheet.line(
        50, f"Bulan {_INDONESIAN_MONTHS[first.month - 1]} {first.year}     No. anggota {house.randint(1000, 9999)}"
    )
    sheet.down(14)
    columns = moved(
        house,
        (
            Column("no", 68, "r", ("No",)),
            Column("date", 84, "l", ("Tanggal",)),
            Column("text", 165, "l", ("Nama",)),
            Column("code", 345, "l", ("Kode",)),
            Column("voucher", 395, "l", ("Bukti",)),
            Column("amount", 540, "r", ("Jumlah (Rp)",)),
        ),
        2.0,
    )
    numbers = {id(each): str(number) for number, each in enumerate(entries, 1)}
    Table(
        sheet,
        columns,
        lambda each: {
            "no": numbers[id(each)],
            "date": f"{each.day:%d-%m-%Y}",
            "code": codes[each.amount < 0],
            "voucher": f"{rng.randint(10_000, 99_999)}",
            "amount": write(abs(each.amount)),
        },
    ).print(entries)
    sheet.need(sheet.step * 4)
    sheet.down(sheet.step)
    for code, sign in zip(codes, (1, -1), strict=True):
        count = sum(each.amount * sign > 0 for each in entries)
        sheet.pair(165, f"Jumlah kode {code}: {count} transaksi", 540, write(abs(total(entries, sign))))
        sheet.note("subtotal", total(entries, sign))
    sheet.footer = lambda number, count: f"Halaman {number} dari {count}"
    return sheet.finish(rng, scan=True, signs_proven=False)


_SOUTH_AFRICAN = (
    "POS Purchase Karoo Grocer", "Debit Order Highveld Insure", "Cash Withdrawal Main Rd", "Internet Pmt Rent Flat 12",
    "POS Purchase Protea Fuel", "Prepaid Airtime 082***4417", "Monthly Account Fee", "Debit Order Baobab Gym",
)  # fmt: skip
_SOUTH_AFRICAN_INCOME = (
    "Salary Drakensberg Mills",
    "Payshap Credit T Mokoena",
    "Refund Karoo Grocer",
    "Cash Deposit Atm 0417",
)


def _suffixes_without_titles(seed: int, later: int) -> Statement:
    """Draw a South African account without titles of columns, Cr behind deposits, and each row's charge at the end."""
    house, rng = seeded(_HALF, "suffixes without titles", seed, later)
    bank = ("Highveld National Bank", "Protea Mutual Bank", "Karoo Savings Bank", "Umhlanga Private Bank")
    first, last = cycle_of(2024, (5, 10, 1, 8)[seed], house.randint(6, 18), later)
    credit, debit = (("Cr", ""), (" CR", " DR"), ("Cr", "Dr"), (" Cr", ""))[seed]
    sheet = Sheet(house, size=house.choice((8.5, 9.0)))
    opening = invent_cents(rng, 200_000, 2_000_000)
    maker = Inventor(
        rng, _SOUTH_AFRICAN, _SOUTH_AFRICAN_INCOME, ("447788*1234", "Ref 88 0417 55,02", "Atm 220841"), 0.3, most_out=180_000,
        most_in=900_000,
    )  # fmt: skip
    entries = invent_both_ways(maker, (first, last), rng.randint(22, 44), opening)
    closing = entries[-1].balance

    def suffixed(amount: Decimal) -> str:
        return figure(abs(amount)) + (credit if amount > 0 else debit)

    sheet.line(45, bank[seed], size=17, bold=True)
    sheet.line(45, f"Statement Period : {first:%d %B %Y} to {last:%d %B %Y}".replace(" 0", " "))
    sheet.line(45, f"Cheque Account {house.randint(10**9, 10**10 - 1)}    VAT 15.00%")
    sheet.down(10)
    top = sheet.y
    sheet.line(45, "Statement Balances", bold=True)
    for kind, label, amount in (("opening", "Opening Balance", opening), ("closing", "Closing Balance", closing)):
        sheet.pair(45, label, 260, figure(amount) + (credit or " Cr"))
        sheet.note(kind, amount)
    bottom, sheet.y = sheet.y, top
    sheet.line(310, "Bank Charges", bold=True)
    for label, amount in (("Service Fees", "69.00"), ("Cash Handling Fees", "14.50"), ("Other Fees", "0.00")):
        sheet.pair(310, label, 545, amount)
    sheet.y = max(bottom, sheet.y) + 16
    sheet.line(45, "Transactions in RAND (ZAR)", size=10, bold=True)
    columns = moved(
        house,
        (
            Column("date", 45, "l"),
            Column("text", 95, "l"),
            Column("amount", 400, "r"),
            Column("balance", 490, "r"),
            Column("charge", 545, "r"),
        ),
        2.0,
    )
    Table(
        sheet,
        columns,
        lambda each: {
            "date": f"{each.day:%d %b}",
            "amount": suffixed(each.amount),
            "balance": figure(each.balance) + credit,
            "charge": f"{rng.choice(('1.50', '2.10', '8.50'))}" if each.amount < 0 and rng.random() < 0.4 else "",
        },
        has_head=False,
    ).print(entries)
    sheet.need(sheet.step * 5)
    sheet.down(sheet.step)
    sheet.line(45, "Turnover for Statement Period", bold=True)
    for kind, sign, label in (("deposits", 1, "Credit"), ("withdrawals", -1, "Debit")):
        count = sum(each.amount * sign > 0 for each in entries)
        sheet.pair(45, f"No. {label} Transactions   {count}", 400, suffixed(total(entries, sign)))
        sheet.note(kind, total(entries, sign))
    return sheet.finish(rng)


SHAPES: dict[str, DrawShape] = name_shapes(
    (
        _card_with_instalments,
        _broker_by_kinds,
        _years_of_an_era,
        _two_balances_a_day,
        _no_year_at_all,
        _codes_without_a_legend,
        _suffixes_without_titles,
    )
)
