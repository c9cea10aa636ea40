"""The seventh sealed half: nobody who builds a reader of statements looks at these before it is measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
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

_HALF = "seventh sealed"


def _spaced(amount: Decimal) -> str:
    return figure(amount, " ", ",")


def _pointed(amount: Decimal) -> str:
    return figure(amount, ".", ",")


def _dotted(day: date) -> str:
    return f"{day:%d.%m.%Y}"


def _whole(amount: Decimal) -> str:
    return figure(amount)[:-3]


@dataclass(frozen=True)
class _EastAsian:
    """How a bank east of Asia prints: its words, days, amounts, and the order of its columns."""

    bank: str
    title: str
    day: Callable[[date], str]
    show: Callable[[Decimal], str]
    order: tuple[str, ...]
    heads: dict[str, str]
    opening: str
    spends: Sequence[str]
    incomes: Sequence[str]
    more: Sequence[str]
    period: str = "{0.year}年{0.month}月{0.day}日 - {1.year}年{1.month}月{1.day}日"


_EAST_ASIAN = (
    _EastAsian(
        "維港商業銀行", "綜合月結單", lambda day: f"{day.month}月{day.day}日", figure,
        ("date", "text", "in", "out", "balance"),
        {"date": "日期", "text": "交易摘要", "in": "存入", "out": "支出", "balance": "結餘"}, "承上結餘",
        ("櫃員機提款 旺角", "自動轉賬 中華煤氣", "銀行收費", "信用卡付款", "轉賬 陳大文"), ("薪金 海景茶餐廳", "現金存款", "支票存款 004417"),
        ("參考編號 118204", "卡號 4417 0912"),
    ),
    _EastAsian(
        "玉山腳合作金庫", "存款交易明細", lambda day: f"{day:%Y/%m/%d}", _whole,
        ("date", "text", "out", "in", "balance", "note"),
        {"date": "交易日期", "text": "摘要", "out": "支出金額", "in": "存入金額", "balance": "餘額", "note": "備註"}, "期初餘額",
        ("跨行轉出", "提款機提款", "水費代繳", "刷卡消費 書店", "手續費"), ("薪資轉入", "現金存入", "跨行轉入"), (),
    ),
    _EastAsian(
        "さくら川信用金庫", "普通預金お取引明細", lambda day: f"{day:%y-%m-%d}", _whole,
        ("date", "out", "in", "text", "balance"),
        {"date": "年月日", "out": "お支払金額", "in": "お預り金額", "text": "お取引内容", "balance": "差引残高"}, "繰越",
        ("電気料金", "現金引出", "振込 ヤマダタロウ", "カード代金", "手数料"), ("給料振込 ミドリ製作所", "現金預入", "振込入金 スズキ"),
        ("取扱店 041", "番号 118204"),
    ),
    _EastAsian(
        "한강새마을은행", "예금 거래내역서", lambda day: f"{day:%Y.%m.%d}", _whole,
        ("date", "text", "out", "in", "balance"),
        {"date": "거래일자", "text": "적요", "out": "찾으신금액", "in": "맡기신금액", "balance": "잔액"}, "이월잔액",
        ("체크카드 서점", "자동이체 전기요금", "현금출금", "이체 김영수", "수수료"), ("급여 푸른상사", "현금입금", "이체입금 박지민"),
        ("승인번호 118204",), "{0.year}.{0.month:02}.{0.day:02} ~ {1.year}.{1.month:02}.{1.day:02}",
    ),
)  # fmt: skip
_EAST_ASIAN_PLACES = {
    ("date", "text", "in", "out", "balance"): (50, 125, 350, 445, 545),
    ("date", "text", "out", "in", "balance"): (50, 125, 350, 445, 545),
    ("date", "text", "out", "in", "balance", "note"): (50, 120, 290, 370, 455, 475),
    ("date", "out", "in", "text", "balance"): (50, 185, 275, 300, 545),
}


def _east_asian_pages(seed: int, later: int) -> Statement:
    """Draw titles and days in Chinese, Japanese and Korean; some amounts have no decimals."""
    house, rng = seeded(_HALF, "east asian pages", seed, later)
    words = _EAST_ASIAN[seed]
    first, last = month_of(2024, (3, 6, 9, 11)[seed], later)
    sheet = Sheet(house, size=house.choice((9.0, 9.5)), font="cjk")
    sheet.bold = sheet.font
    scale = Decimal(1 if words.show is figure else 100)
    opening = invent_cents(rng, 200_000, 900_000).quantize(Decimal(1)) * scale
    maker = Inventor(rng, words.spends, words.incomes, words.more, 0.3 if words.more else 0.0, income=0.25)
    made = invent_both_ways(maker, (first, last), rng.randint(18, 38), opening / scale)
    entries = balanced([replace(each, amount=each.amount * scale) for each in made], opening)
    sheet.line(50, words.bank, size=16)
    sheet.line(50, words.title, size=11)
    sheet.line(50, words.period.format(first, last))
    sheet.line(50, f"{house.randint(100, 999)}-{house.randint(1000, 9999)}-{house.randint(100, 999)}")
    sheet.down(12)
    columns = moved(
        house,
        tuple(
            Column(key, x, "r" if key in {"in", "out", "balance"} else "l", (words.heads[key],))
            for key, x in zip(words.order, _EAST_ASIAN_PLACES[words.order], strict=True)
        ),
    )
    table = Table(
        sheet,
        columns,
        lambda each: {
            "date": words.day(each.day),
            "out": words.show(-each.amount) if each.amount < 0 else "",
            "in": words.show(each.amount) if each.amount > 0 else "",
            "balance": words.show(each.balance),
            "note": f"{rng.randint(100, 999)}{rng.randint(1000, 9999)}" if rng.random() < 0.5 else "",
        },
        is_date_once=seed == 0,
        is_balance_once=seed == 0,
        row_rule=(45, 550) if seed == 2 else None,
    )
    sheet.note("opening", opening)
    print_after(table, {"text": words.opening, "balance": words.show(opening)}, entries)
    sheet.footer = lambda number, count: f"{number} / {count}"
    return sheet.finish(rng)


_FRENCH = (
    "Achat carte Librairie du Grund", "Retrait distributeur Gare", "Domiciliation Eau & Gaz", "Virement loyer",
    "Frais de tenue de compte", "Achat carte Boulangerie Thill",
)  # fmt: skip
_FRENCH_INCOME = ("Virement salaire Fonderie Alzette", "Versement au guichet", "Remboursement Librairie du Grund")
_GERMAN = (
    "Karteneinkauf Buchladen Ruggell", "Bargeldbezug Vaduz", "Lastschrift Wasserwerk", "Dauerauftrag Miete",
    "Kontoführung", "Karteneinkauf Bäckerei Korn",
)  # fmt: skip
_GERMAN_INCOME = ("Lohn Sägerei Rheintal", "Einzahlung Schalter", "Rückvergütung Buchladen Ruggell")


def _titles_only_once(seed: int, later: int) -> Statement:
    """Draw accounts in two currencies one under the other, with titles only over the first, foreign amounts in lines."""
    house, rng = seeded(_HALF, "titles only once", seed, later)
    is_french = seed % 2 == 0
    spends, incomes = (_FRENCH, _FRENCH_INCOME) if is_french else (_GERMAN, _GERMAN_INCOME)
    show = (_pointed, lambda amount: figure(amount, "'"), lambda amount: figure(amount, "'"), _pointed)[seed]
    home = ("EUR", "CHF", "CHF", "EUR")[seed]
    first, last = month_of(2024, (2, 5, 8, 11)[seed], later)
    sheet = Sheet(house, size=house.choice((8.5, 9.0)))
    bank = ("Banque de l'Alzette", "Landbank Eschnerberg", "Caisse du Rhône", "Grenzland Kreditbank")[seed]
    sheet.line(50, bank, size=16, bold=True)
    sheet.line(50, "Extrait de comptes" if is_french else "Kontoauszug", size=11)
    link = ("du", "au") if is_french else ("vom", "bis")
    sheet.line(50, f"{link[0]} {_dotted(first)} {link[1]} {_dotted(last)}")
    if seed in {1, 2}:
        under, sheet.y = sheet.y, 72
        sheet.line(390, "Gebühren je Posten" if seed == 1 else "Frais par opération", bold=True, size=8)
        for label, text in (("Visa", "1.50"), ("SEPA", "0.30"), ("Swift", "12.00")):
            sheet.pair(390, label, 548, f"CHF {text}")
        sheet.y = max(under, sheet.y)
    sheet.down(14)
    heads = (
        ("Date", "Libellé", "Valeur", "Débit", "Crédit", "Solde")
        if is_french
        else ("Datum", "Buchungstext", "Valuta", "Belastung", "Gutschrift", "Saldo")
    )
    places = ((50, "l"), (112, "l"), (300, "l"), (405, "r"), (475, "r"), (548, "r"))
    keys = ("date", "text", "value", "out", "in", "balance")
    columns = moved(
        house, [Column(key, x, side, (head,)) for key, (x, side), head in zip(keys, places, heads, strict=True)]
    )
    start, end = ("Solde initial", "Solde final") if is_french else ("Anfangssaldo", "Schlusssaldo")
    for account, currency in enumerate((home, "USD")):
        opening = invent_cents(rng, 150_000, 700_000)
        more = (
            f"{'GBP' if account else 'USD'} 118.20 x 0.9132",
            "4417 12XX XXXX 0912",
            "Réf. 004.118,20" if is_french else "Ref. 004.118,20",
        )
        maker = Inventor(rng, spends, incomes, more, 0.35, lag=2)
        entries = invent_both_ways(maker, (first, last), rng.randint(9, 20), opening)
        sheet.need(sheet.step * 8)
        number = f"{house.randint(100, 999)}.{house.randint(100, 999)}-{account + 1}"
        sheet.line(50, f"{'Compte' if is_french else 'Konto'} {number}  {currency}", size=10.5, bold=True)
        table = Table(
            sheet,
            columns,
            lambda each: {
                "date": _dotted(each.day),
                "value": f"{each.value_day:%d.%m.}",
                "out": show(-each.amount) if each.amount < 0 else "",
                "in": show(each.amount) if each.amount > 0 else "",
                "balance": show(each.balance),
            },
            has_head=not account,
            is_head_repeated=False,
            is_balance_once=True,
            currency=currency,
            account=account,
        )
        table.head()
        table.row({"text": start, "balance": show(opening)})
        sheet.note("opening", opening, account)
        sheet.down(sheet.step)
        replace(table, has_head=False).print(entries)
        sheet.need(sheet.step * 2)
        table.row({"text": end, "balance": show(entries[-1].balance)}, bold=True)
        sheet.note("closing", entries[-1].balance, account)
        sheet.down(sheet.step * 2)
    sheet.footer = lambda number, count: f"{'Page' if is_french else 'Seite'} {number}/{count}"
    return sheet.finish(rng)


@dataclass(frozen=True)
class _Nordic:
    """The words of a broker of the north."""

    bank: str
    title: str
    buy: str
    sell: str
    others: tuple[str, ...]
    incomes: tuple[str, ...]
    heads: tuple[str, ...]
    opening: str
    closing: str


_NORDICS = (
    _Nordic(
        "Tallmo Fondkommission", "Likvidkonto SEK", "Köp", "Sälj", ("Uttag", "Preliminärskatt", "Depåavgift"),
        ("Insättning", "Utdelning", "Ränta"), ("Bokförd", "Händelse", "Antal", "Kurs", "Avgift", "Belopp", "Saldo"),
        "Ingående saldo", "Utgående saldo",
    ),
    _Nordic(
        "Lyngby Fondsmægler", "Afkastkonto DKK", "Køb", "Salg", ("Hævning", "Udbytteskat", "Depotgebyr"),
        ("Indskud", "Udbytte", "Rente"), ("Bogført", "Tekst", "Stk.", "Kurs", "Kurtage", "Beløb", "Saldo"),
        "Primosaldo", "Ultimosaldo",
    ),
    _Nordic(
        "Fjellvik Megling", "Oppgjørskonto NOK", "Kjøp", "Salg", ("Uttak", "Kildeskatt", "Depotgebyr"),
        ("Innskudd", "Utbytte", "Rente"), ("Bokført", "Hendelse", "Antall", "Kurs", "Kurtasje", "Beløp", "Saldo"),
        "Inngående saldo", "Utgående saldo",
    ),
    _Nordic(
        "Saimaa Arvopaperit", "Rahatili EUR", "Osto", "Myynti", ("Nosto", "Ennakonpidätys", "Säilytysmaksu"),
        ("Talletus", "Osinko", "Korko"), ("Kirjattu", "Tapahtuma", "Määrä", "Hinta", "Kulut", "Summa", "Saldo"),
        "Alkusaldo", "Loppusaldo",
    ),
)  # fmt: skip
_ISSUERS = ("Granit", "Ripe Energi", "Nordvik Skog", "Polar Foods", "Havn Logistik", "Vitra Data")


def _newest_trade_first(seed: int, later: int) -> Statement:
    """Draw a broker's settlements from the last day back, with counts, prices and fees beside the amounts."""
    house, rng = seeded(_HALF, "newest trade first", seed, later)
    words = _NORDICS[seed]
    first, last = month_of(2024, (1, 4, 7, 12)[seed], 2 * later)
    last = month_of(first.year, first.month, 1)[1]
    sheet = Sheet(house, size=8.5)
    opening = invent_cents(rng, 2_000_000, 6_000_000)
    spends = [f"{words.buy} {each}" for each in _ISSUERS] + list(words.others)
    incomes = [f"{words.sell} {each}" for each in _ISSUERS] + list(words.incomes)
    maker = Inventor(rng, spends, incomes, income=0.45, most_out=400_000, most_in=400_000, lag=2)
    entries = invent_both_ways(maker, (first, last), rng.randint(16, 34), opening)
    entries = [
        replace(each, lines=(*each.lines, f"ISIN SE00{rng.randint(10**7, 10**8)}")) if _is_trade(each, words) else each
        for each in entries
    ]
    minus = ("-", "−", "−", "-")[seed]
    show = _pointed if seed == 1 else _spaced

    def signed(amount: Decimal) -> str:
        return (minus if amount < 0 else "+" if seed == 3 else "") + show(abs(amount))

    sheet.line(50, words.bank, size=16, bold=True)
    sheet.line(50, f"{words.title}  {house.randint(100_000, 999_999)}", size=11)
    sheet.line(50, f"{first:%Y-%m-%d} – {last:%Y-%m-%d}" if seed in {0, 2} else f"{_dotted(first)} - {_dotted(last)}")
    sheet.down(14)
    keys = ("date", "text", "units", "price", "fee", "amount", "balance")
    places = ((50, "l"), (115, "l"), (290, "r"), (345, "r"), (400, "r"), (470, "r"), (548, "r"))
    columns = moved(
        house,
        [Column(key, x, side, (head,)) for key, (x, side), head in zip(keys, places, words.heads, strict=True)],
        2.0,
    )

    def cells(entry: Entry) -> Cells:
        is_trade = _is_trade(entry, words)
        units, fee = rng.randint(5, 300), invent_cents(rng, 100, 149)
        return {
            "date": f"{entry.day:%Y-%m-%d}" if seed in {0, 2} else _dotted(entry.day),
            "units": str(units) if is_trade else "",
            "price": show((abs(entry.amount) - fee if entry.amount < 0 else abs(entry.amount) + fee) / units)
            if is_trade
            else "",
            "fee": show(fee) if is_trade else "",
            "amount": signed(entry.amount),
            "balance": show(entry.balance),
        }

    table = Table(sheet, columns, cells, is_newest_first=True)
    closing = entries[-1].balance
    sheet.note("closing", closing)
    print_after(table, {"text": words.closing, "balance": show(closing)}, entries)
    sheet.need(sheet.step * 2)
    table.row({"text": words.opening, "balance": show(opening)})
    sheet.note("opening", opening)
    sheet.footer = lambda number, count: f"{number} ({count})"
    return sheet.finish(rng)


def _is_trade(entry: Entry, words: _Nordic) -> bool:
    return entry.lines[0].startswith((f"{words.buy} ", f"{words.sell} "))


_ITALIAN_MONTHS = ("GEN", "FEB", "MAR", "APR", "MAG", "GIU", "LUG", "AGO", "SET", "OTT", "NOV", "DIC")
_ITALIAN = (
    "Pagamento carta Libreria Il Gufo", "Prelievo sportello automatico", "Addebito Acquedotto Valle", "Bonifico affitto",
    "Spese tenuta conto", "Pagamento carta Forno Spiga",
)  # fmt: skip
_ITALIAN_INCOME = ("Stipendio Segheria Larice", "Versamento contanti", "Storno Libreria Il Gufo")
_CROATIAN = (
    "Kartica Knjižara Sova", "Isplata bankomat Pula", "Vodovod Istra", "Prijenos najam", "Naknada vođenje računa",
    "Kartica Pekara Klas",
)  # fmt: skip
_CROATIAN_INCOME = ("Plaća Pilana Bor", "Polog gotovine", "Povrat Knjižara Sova")


def _no_year_anywhere(seed: int, later: int) -> Statement:
    """Draw days and months over two months, a balance at the end of each day, and no year on any page."""
    house, rng = seeded(_HALF, "no year anywhere", seed, later)
    is_italian = seed % 2 == 0
    spends, incomes = (_ITALIAN, _ITALIAN_INCOME) if is_italian else (_CROATIAN, _CROATIAN_INCOME)
    first = month_of(2024, (3, 8, 5, 1)[seed], 2 * later)[0]
    last = month_of(first.year, first.month, 1)[1]
    sheet = Sheet(house, size=house.choice((9.0, 9.5)))
    opening = invent_cents(rng, 120_000, 600_000)
    more = ("Rif. 004.118,20", "Carta 4417 **** 0912") if is_italian else ("Poziv 004.118,20", "Kartica 4417 **** 0912")
    maker = Inventor(rng, spends, incomes, more, 0.3)
    entries = invent_both_ways(maker, (first, last), rng.randint(20, 40), opening)
    bank = ("Cassa Rurale del Larice", "Istarska štedionica", "Banca Popolare di Valsorda", "Banka Velebit d.d.")[seed]
    sheet.line(50, bank, size=16, bold=True)
    sheet.line(50, f"{'Estratto conto n.' if is_italian else 'Izvadak br.'} {2 + later}", size=11)
    sheet.line(50, f"{'Conto' if is_italian else 'Račun'} {house.randint(10**6, 10**7)}-{house.randint(10, 99)}")
    sheet.down(14)
    heads = (
        ("Giorno", "Descrizione", "Dare", "Avere", "Saldo")
        if is_italian
        else ("Dan", "Opis", "Isplata", "Uplata", "Stanje")
    )
    orders = (("date", "out", "in", "text", "balance"), ("date", "text", "out", "in", "balance"))
    places = {
        orders[0]: ((50, "l"), (160, "r"), (240, "r"), (262, "l"), (545, "r")),
        orders[1]: ((50, "l"), (100, "l"), (380, "r"), (460, "r"), (545, "r")),
    }
    order = orders[0] if is_italian else orders[1]
    names = dict(zip(("date", "text", "out", "in", "balance"), heads, strict=True))
    columns = moved(
        house, [Column(key, x, side, (names[key],)) for key, (x, side) in zip(order, places[order], strict=True)]
    )

    def day(entry: Entry) -> str:
        return f"{entry.day:%d} {_ITALIAN_MONTHS[entry.day.month - 1]}" if is_italian else f"{entry.day:%d.%m.}"

    table = Table(
        sheet,
        columns,
        lambda each: {
            "date": day(each),
            "out": _pointed(-each.amount) if each.amount < 0 else "",
            "in": _pointed(each.amount) if each.amount > 0 else "",
            "balance": _pointed(each.balance),
        },
        is_balance_once=True,
        is_date_once=seed == 2,
    )
    start, end = ("Saldo precedente", "Saldo finale") if is_italian else ("Prethodno stanje", "Novo stanje")
    sheet.note("opening", opening)
    print_after(table, {"text": start, "balance": _pointed(opening)}, entries)
    sheet.need(sheet.step * 2)
    table.row({"text": end, "balance": _pointed(entries[-1].balance)}, bold=True)
    sheet.note("closing", entries[-1].balance)
    sheet.footer = lambda number, count: f"Foglio {number}" if is_italian else f"List {number}"
    return sheet.finish(rng, dates_certain=False)


_DUTCH_NAMES = (
    "J. Vermaak", "Boekhandel Uil", "K. van Rooyen", "Bakkerij De Aar", "Fam. Kasanpawiro", "Houthandel Spaan",
    "M. Lachman", "Tuincentrum Varen",
)  # fmt: skip


def _scanned_names(seed: int, later: int) -> Statement:
    """Draw a scan of names and amounts in columns with titles, where nothing says which way the money went."""
    house, rng = seeded(_HALF, "scanned names", seed, later)
    is_afrikaans = seed in {1, 2}
    first, last = month_of(2024, (2, 5, 9, 12)[seed], later)
    sheet = Sheet(house, size=9.5, font="helv")
    maker = Inventor(rng, _DUTCH_NAMES, _DUTCH_NAMES, income=0.45, most_out=120_000, most_in=120_000)
    entries = maker.entries(first, last, rng.randint(14, 30), Decimal(500_000))
    bank = ("Betaaldienst Parasol", "Kremetart Betaalpunt", "Wit Olifant Beursie", "Surika Betaal N.V.")[seed]
    sheet.line(50, bank, size=17, bold=True)
    title = "Transaksielys" if is_afrikaans else "Transactieoverzicht"
    sheet.line(50, f"{title} {first:%d-%m-%Y} {'tot' if is_afrikaans else 't/m'} {last:%d-%m-%Y}")
    sheet.line(50, f"{'Gebruiker' if is_afrikaans else 'Klant'} {house.randint(10_000, 99_999)}")
    sheet.down(16)
    show = _spaced if is_afrikaans else _pointed
    heads = (
        ("Datum", "Tyd", "Persoon of winkel", "Kode", "Bedrag R")
        if is_afrikaans
        else ("Datum", "Tijd", "Persoon of winkel", "Kenmerk", f"Bedrag {('EUR', '', '', 'SRD')[seed]}")
    )
    keys = ("date", "time", "text", "ref", "amount")
    places = (
        ((50, "l"), (125, "l"), (175, "l"), (350, "l"), (545, "r")),
        ((410, "l"), (490, "l"), (140, "l"), (290, "l"), (120, "r")),
        ((50, "l"), (125, "l"), (280, "l"), (440, "l"), (255, "r")),
        ((250, "l"), (330, "l"), (50, "l"), (390, "l"), (545, "r")),
    )[seed]
    columns = moved(
        house, [Column(key, x, side, (head,)) for key, (x, side), head in zip(keys, places, heads, strict=True)]
    )
    Table(
        sheet,
        columns,
        lambda each: {
            "date": f"{each.day:%d-%m-%Y}",
            "time": f"{rng.randint(7, 22):02}:{rng.randint(0, 59):02}",
            "ref": f"{rng.randint(1000, 9999)}.{rng.randint(10, 99)}",
            "amount": show(abs(each.amount)),
        },
    ).print(entries)
    sheet.footer = lambda number, count: f"Blad {number} van {count}"
    return sheet.finish(rng, scan=True, signs_proven=False)


_QUEBEC = (
    "Achat Librairie du Huard", "Retrait guichet Rimouski", "Paiement Hydro-Fleuve", "Virement loyer",
    "Frais mensuels", "Achat Boulangerie Le Fournil",
)  # fmt: skip
_QUEBEC_INCOME = ("Paie Scierie Matane", "Dépôt au comptoir", "Remboursement Librairie du Huard")
_PUERTO_RICAN = (
    "Compra Librería El Múcaro", "Retiro cajero Ponce", "Pago Luz del Sur", "Transferencia renta",
    "Cargo mensual", "Compra Panadería La Ceiba",
)  # fmt: skip
_PUERTO_RICAN_INCOME = ("Nómina Taller Guayacán", "Depósito en sucursal", "Reembolso Librería El Múcaro")


def _either_order(seed: int, later: int) -> Statement:
    """Draw a quarter with codes and two-figure years, whose days stay in order when day and month change places."""
    house, rng = seeded(_HALF, "either order", seed, later)
    is_french = seed % 2 == 0
    is_month_first = seed in {1, 2}
    pairs = [(low, high) for low, high in ((2, 4), (2, 5), (3, 5), (3, 7), (4, 8), (5, 8))]
    pairs = [(low + 3 * later, high + 3 * later) for low, high in pairs]
    days = [date(2023, one, two) if is_month_first else date(2023, two, one) for one, two in pairs]
    spends, incomes = (_QUEBEC, _QUEBEC_INCOME) if is_french else (_PUERTO_RICAN, _PUERTO_RICAN_INCOME)
    sheet = Sheet(house, size=house.choice((8.5, 9.0)))
    opening = invent_cents(rng, 120_000, 500_000)
    maker = Inventor(rng, spends, incomes, days=days)
    entries = invent_both_ways(maker, (days[0], days[-1]), rng.randint(16, 28), opening)
    bank = ("Caisse du Bas-Fleuve", "Cooperativa La Ceiba", "Caisse Saint-Aubert", "Banco Guayacán")[seed]
    sheet.line(50, bank, size=16, bold=True)
    sheet.line(50, "Relevé de compte" if is_french else "Estado de cuenta", size=11)
    sheet.line(50, f"{'Folio' if is_french else 'Cuenta'} {house.randint(10_000, 99_999)}")
    sheet.down(8)
    top = sheet.y
    show = (lambda amount: f"{_spaced(amount)} $") if is_french else figure
    labels = (
        ("Solde reporté", "Total des dépôts", "Total des retraits", "Solde à la fin")
        if is_french
        else ("Balance anterior", "Depósitos y créditos", "Retiros y cargos", "Balance final")
    )
    sums = (opening, total(entries, 1), -total(entries, -1), entries[-1].balance)
    for label, amount, kind in zip(labels, sums, ("opening", "deposits", "withdrawals", "closing"), strict=True):
        sheet.pair(310, label, 540, show(amount))
        sheet.note(kind, amount)
    sheet.box(300, top - 13, 550, sheet.y - 3)
    sheet.down(16)
    heads = (
        ("Date", "Code", "Description", "Montant", "Solde")
        if is_french
        else ("Fecha", "Tipo", "Detalle", "Importe", "Balance")
    )
    keys = ("date", "code", "text", "amount", "balance")
    places = ((50, "l"), (105, "l"), (140, "l"), (450, "r"), (545, "r"))
    columns = moved(
        house, [Column(key, x, side, (head,)) for key, (x, side), head in zip(keys, places, heads, strict=True)]
    )
    form = "%m/%d/%y" if is_month_first else "%d/%m/%y"
    Table(
        sheet,
        columns,
        lambda each: {
            "date": each.day.strftime(form if seed < 2 else form.replace("/", "-")),
            "code": ("DEP" if each.amount > 0 else "RET"),
            "amount": (_spaced if is_french else figure)(each.amount),
            "balance": (_spaced if is_french else figure)(each.balance),
        },
    ).print(entries)
    sheet.footer = lambda number, count: f"{'Page' if is_french else 'Página'} {number} de {count}"
    return sheet.finish(rng, dates_certain=False)


_INDONESIAN_MONTHS = (
    "JANUARI", "FEBRUARI", "MARET", "APRIL", "MEI", "JUNI", "JULI", "AGUSTUS", "SEPTEMBER", "OKTOBER", "NOVEMBER",
    "DESEMBER",
)  # fmt: skip
_MALAY_MONTHS = (
    "JANUARI", "FEBRUARI", "MAC", "APRIL", "MEI", "JUN", "JULAI", "OGOS", "SEPTEMBER", "OKTOBER", "NOVEMBER", "DISEMBER",
)  # fmt: skip
_INDONESIAN = (
    "KARTU DEBIT TOKO BUKU ELANG", "TARIK TUNAI ATM 0441", "TRSF E-BANKING SEWA KOST", "BIAYA ADM", "BAYAR LISTRIK 118204",
    "KARTU DEBIT WARUNG SARI",
)  # fmt: skip
_INDONESIAN_INCOME = ("GAJI CV MELATI JAYA", "SETORAN TUNAI", "TRSF DARI BUDI S")
_MALAY = (
    "DEBIT KAD KEDAI BUKU HELANG", "PENGELUARAN ATM 0441", "PINDAHAN SEWA RUMAH", "CAJ PERKHIDMATAN", "BIL ELEKTRIK 118204",
    "DEBIT KAD GERAI SERI",
)  # fmt: skip
_MALAY_INCOME = ("GAJI KILANG CEMPAKA", "DEPOSIT TUNAI", "PINDAHAN DARI AZLAN")


def _letters_beside_the_movement(seed: int, later: int) -> Statement:
    """Draw scans with letters behind the movement, the year in the title alone, and the sums under the rows."""
    house, rng = seeded(_HALF, "letters beside the movement", seed, later)
    is_indonesian = seed < 2
    spends, incomes = (_INDONESIAN, _INDONESIAN_INCOME) if is_indonesian else (_MALAY, _MALAY_INCOME)
    first, last = month_of(2024, (3, 10, 7, 1)[seed], later)
    sheet = Sheet(house, size=9.0, font=("helv", "cour", "helv", "cour")[seed])
    scale = 100 if is_indonesian else 1
    opening = invent_cents(rng, 200_000 * scale, 900_000 * scale)
    more = ("REF 0041 1820", "KARTU 4417XXXX0912") if is_indonesian else ("RUJ 0041 1820", "KAD 4417XXXX0912")
    maker = Inventor(rng, spends, incomes, more, 0.3, most_out=40_000 * scale, most_in=250_000 * scale)
    entries = invent_both_ways(maker, (first, last), rng.randint(16, 32), opening)
    bank = ("BANK TIRTA NUSANTARA", "BPR LERENG MERAPI", "BANK SELAT TIMUR", "KOPERASI BANK SERINDIT")[seed]
    sheet.line(50, bank, size=15, bold=True)
    sheet.line(50, "REKENING TABUNGAN" if is_indonesian else "PENYATA AKAUN SIMPANAN", size=11)
    month = (_INDONESIAN_MONTHS if is_indonesian else _MALAY_MONTHS)[first.month - 1]
    sheet.line(50, f"{'PERIODE' if is_indonesian else 'TEMPOH'} : {month} {first.year}")
    sheet.line(50, f"NO. {house.randint(10**9, 10**10 - 1)}")
    sheet.down(12)
    heads = (
        ("TANGGAL", "KETERANGAN", "CBG", "MUTASI", "SALDO")
        if is_indonesian
        else ("TARIKH", "KETERANGAN", "CAW", "AMAUN", "BAKI")
    )
    columns = moved(
        house,
        (
            Column("date", 50, "l", heads[:1]),
            Column("text", 110, "l", heads[1:2]),
            Column("branch", 305, "l", heads[2:3]),
            Column("amount", 425, "r", heads[3:4]),
            Column("letters", 432, "l"),
            Column("balance", 548, "r", heads[4:]),
        ),
        2.0,
    )
    letters = ("", "DB") if seed == 0 else ("CR", "DB") if is_indonesian else ("KR", "DT")
    table = Table(
        sheet,
        columns,
        lambda each: {
            "date": f"{each.day:%d/%m}",
            "branch": f"{rng.randint(1, 999):04}",
            "amount": figure(abs(each.amount)),
            "letters": letters[each.amount < 0],
            "balance": figure(each.balance),
        },
        is_balance_once=True,
    )
    start = "SALDO AWAL" if is_indonesian else "BAKI AWAL"
    sheet.note("opening", opening)
    print_after(table, {"text": start, "balance": figure(opening)}, entries)
    sheet.need(sheet.step * 6)
    sheet.down(10)
    labels = (
        ("SALDO AWAL", "MUTASI CR", "MUTASI DB", "SALDO AKHIR")
        if is_indonesian
        else ("BAKI AWAL", "JUMLAH KREDIT", "JUMLAH DEBIT", "BAKI AKHIR")
    )
    sums = (opening, total(entries, 1), -total(entries, -1), entries[-1].balance)
    for label, amount, kind in zip(labels, sums, ("opening", "deposits", "withdrawals", "closing"), strict=True):
        sheet.pair(110, f"{label} :", 330, figure(amount))
        sheet.note(kind, amount)
    sheet.footer = lambda number, count: f"{'Halaman' if is_indonesian else 'Muka'} {number} / {count}"
    return sheet.finish(rng, scan=True)


SHAPES: dict[str, DrawShape] = name_shapes(
    (
        _east_asian_pages,
        _titles_only_once,
        _newest_trade_first,
        _no_year_anywhere,
        _scanned_names,
        _either_order,
        _letters_beside_the_movement,
    )
)
