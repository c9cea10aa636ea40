"""The seventh open half: seven layouts of banks, societies, cards, brokers and payment services, four of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
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

_HALF = "seventh open"


def _pointed(amount: Decimal) -> str:
    return figure(amount, ".", ",")


def _spaced(amount: Decimal) -> str:
    return figure(amount, " ", ",")


def _dotted(day: date) -> str:
    return f"{day:%d.%m.%Y}"


@dataclass(frozen=True)
class _Turnover:
    """The words of a bank that prints debit and credit before what they were for."""

    bank: str
    title: str
    period: str
    opening: str
    closing: str
    turnover: str
    number: str
    debit: str
    credit: str
    text: str
    date: str
    balance: str
    page: str
    spends: Sequence[str]
    incomes: Sequence[str]
    more: Sequence[str]


_TURNOVERS = (
    _Turnover(
        "Банка Розова долина АД", "Извлечение по сметка", "за периода {} г. – {} г.", "Начално салдо", "Крайно салдо",
        "Обороти за периода", "№", "Дебит", "Кредит", "Основание", "Дата", "Салдо", "Страница {} от {}",
        ("Плащане ПОС Книжарница Сова", "Такса месечна поддръжка", "Теглене АТМ Пловдив", "Превод наем", "Ток Тракия",
         "Плащане ПОС Пекарна Изгрев"),
        ("Заплата Винарна Стрелча", "Получен превод", "Вноска на каса"),
        ("Реф. 240 117,30", "Карта 4417 **** 0912", "Договор 88/2", "BG18 RZBB 9155 1004 4417"),
    ),
    _Turnover(
        "Моравска банка а.д. Ниш", "Извод текућег рачуна", "у периоду од {} до {}", "Претходно стање", "Ново стање",
        "Укупан промет", "Р.бр.", "Задужење", "Одобрење", "Опис промене", "Датум", "Стање", "Страна {} од {}",
        ("Куповина Пекара Жито", "Подизање готовине", "Провизија банке", "Рачун за струју", "Куповина Књижара Лист",
         "Пренос станарина"),
        ("Зарада Стругара Јавор", "Уплата готовине", "Повраћај Књижара Лист"),
        ("Позив 97 41-118.20", "Шифра 221", "265-000041180-12"),
    ),
    _Turnover(
        "АТ Полісся Банк", "Виписка за рахунком", "за період з {} по {}", "Вхідний залишок", "Вихідний залишок",
        "Усього обороти", "№ п/п", "Дебет", "Кредит", "Призначення платежу", "Дата", "Залишок", "Стор. {} з {}",
        ("Оплата товарів Книгарня", "Зняття готівки", "Комісія за обслуговування", "Комунальні послуги",
         "Оплата Пекарня Колос", "Переказ за оренду"),
        ("Заробітна плата ТОВ Бджола", "Поповнення рахунку", "Повернення коштів"),
        ("Док. 118204", "Картка 5168 **** 4417", "без ПДВ 1 204,00"),
    ),
    _Turnover(
        "Τράπεζα Ευρώτα", "Κίνηση λογαριασμού", "από {} έως {}", "Υπόλοιπο έναρξης", "Τελικό υπόλοιπο",
        "Σύνολα", "Α/Α", "Χρέωση", "Πίστωση", "Αιτιολογία", "Ημ/νία", "Υπόλοιπο", "Σελίδα {} από {}",
        ("Αγορά Βιβλιοπωλείο", "Ανάληψη ΑΤΜ Σπάρτη", "Έξοδα τήρησης", "Πληρωμή ΔΕΗ", "Αγορά Φούρνος Ήλιος",
         "Ενοίκιο"),
        ("Μισθοδοσία Ελαιώνες", "Κατάθεση μετρητών", "Επιστροφή αγοράς"),
        ("Κωδ. 0041.18", "Κάρτα 4417 **** 0033", "Παραστατικό 118.204"),
    ),
)  # fmt: skip


def _debit_before_the_words(seed: int, later: int) -> Statement:
    """Draw debit and credit left of what they were for, the date behind it, and turnovers under the rows."""
    house, rng = seeded(_HALF, "debit before the words", seed, later)
    words = _TURNOVERS[seed]
    first, last = month_of(2024, (2, 9, 12, 5)[seed], later)
    sheet = Sheet(house, size=house.choice((8.5, 9.0)))
    opening = invent_cents(rng, 90_000, 800_000)
    maker = Inventor(rng, words.spends, words.incomes, words.more, 0.4, income=0.22)
    entries = invent_both_ways(maker, (first, last), rng.randint(20, 42), opening)
    show = (_spaced, _pointed, _spaced, _pointed)[seed]
    sheet.line(50, words.bank, size=15, bold=True)
    sheet.line(50, words.title, size=11)
    sheet.line(50, words.period.format(_dotted(first), _dotted(last)))
    sheet.down(12)
    sheet.pair(50, words.opening, 225, show(opening), bold=True)
    sheet.note("opening", opening)
    sheet.down(8)
    has_balance = seed in {1, 3}
    columns = moved(
        house,
        (
            Column("number", 72, "r", (words.number,)),
            Column("debit", 145, "r", (words.debit,)),
            Column("credit", 215, "r", (words.credit,)),
            Column("text", 232, "l", (words.text,)),
            Column("date", 412 if has_balance else 480, "l", (words.date,)),
            *([Column("balance", 545, "r", (words.balance,))] if has_balance else []),
        ),
    )
    places = {id(each): number for number, each in enumerate(entries, 1)}
    table = Table(
        sheet,
        columns,
        lambda each: {
            "number": str(places[id(each)]),
            "debit": show(-each.amount) if each.amount < 0 else "",
            "credit": show(each.amount) if each.amount > 0 else "",
            "date": _dotted(each.day),
            "balance": show(each.balance) if has_balance else "",
        },
    )
    table.print(entries)
    sheet.need(sheet.step * 4)
    sheet.rule(45, 550)
    sheet.down(4)
    spent, paid = -total(entries, -1), total(entries, 1)
    table.row({"debit": show(spent), "credit": show(paid), "text": words.turnover}, bold=True)
    sheet.note("withdrawals", spent)
    sheet.note("deposits", paid)
    sheet.down(sheet.step * 1.6)
    sheet.pair(50, words.closing, 225, show(entries[-1].balance), bold=True)
    sheet.note("closing", entries[-1].balance)
    sheet.footer = words.page.format
    return sheet.finish(rng)


_PORTUGUESE_MONTHS = ("jan", "fev", "mar", "abr", "mai", "jun", "jul", "ago", "set", "out", "nov", "dez")
_PORTUGUESE = (
    "Livraria Beira Rio", "Mercado Dona Zefa", "Posto Ipê Amarelo", "Farmácia Boa Hora", "Oficina Roda Viva",
    "Padaria Pão Quente", "Loja Sapato Fino", "Passagens Asa Norte",
)  # fmt: skip
_ABROAD = ("Cloudberry Storage Dublin", "Hotel Meridian Lima", "Paperplane Apps", "Museum Shop Wien")
_CREDITS = ("Estorno Loja Sapato Fino", "Cashback do mês", "Crédito de confiança")


def _invoice_with_instalments(seed: int, later: int) -> Statement:
    """Draw a card's invoice: credits and purchases apart, instalments that look like dates, currencies, days in words."""
    house, rng = seeded(_HALF, "invoice with instalments", seed, later)
    first, last = cycle_of(2024, (4, 1, 8, 11)[seed], (27, 20, 25, 3)[seed], later)
    sheet = Sheet(house, size=house.choice((8.5, 9.0, 9.5)))
    currency = ("R$", "R$", "€", "R$")[seed]
    opening = -invent_cents(rng, 60_000, 450_000)
    maker = Inventor(rng, _PORTUGUESE, _CREDITS, income=0.1, most_out=60_000, most_in=9_000)
    entries = [_with_instalment(each, currency) for each in maker.entries(first, last, rng.randint(20, 40), opening)]
    paid_on = first + timedelta(days=rng.randint(6, 14))
    payment = Entry(paid_on, ("Pagamento recebido",), -opening, opening, paid_on)
    entries = balanced(sorted([*entries, payment], key=lambda each: each.day), opening)
    due = last + timedelta(days=10)
    month = _PORTUGUESE_MONTHS[last.month - 1]
    bank = ("Cartão Jacarandá", "Banco Maracujá Cartões", "Cartão Atlântico Azul", "Conta Sabiá")[seed]
    sheet.line(50, bank, size=17, bold=True)
    sheet.line(50, f"{'Extrato' if seed == 2 else 'Fatura'} de {month}/{last.year}", size=11)
    sheet.line(50, f"Movimentos de {first:%d/%m/%Y} a {last:%d/%m/%Y}")
    sheet.line(50, f"Cartão final {house.randint(1000, 9999)}   Vencimento {due:%d/%m/%Y}")
    sheet.down(10)
    top = sheet.y
    spent, paid, closing = -total(entries, -1), total(entries, 1), entries[-1].balance
    for label, amount, kind, true in (
        ("Saldo anterior", -opening, "opening", opening),
        ("(-) Pagamentos e créditos", paid, "deposits", paid),
        ("(+) Compras e encargos", spent, "withdrawals", spent),
        ("(=) Total a pagar", -closing, "closing", closing),
    ):
        sheet.pair(60, label, 285, f"{currency} {_pointed(amount)}", bold=kind == "closing")
        sheet.note(kind, true)
    bottom = sheet.y
    sheet.box(50, top - 13, 295, bottom - 3)
    sheet.y = top
    sheet.line(325, "Parcelas dos próximos meses", bold=True)
    for number in range(3):
        name = _PORTUGUESE_MONTHS[(last.month + number) % 12]
        sheet.pair(325, name, 545, f"{currency} {_pointed(invent_cents(rng, 8_000, 90_000))}")
    sheet.y = bottom + 18
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Data",)),
            Column("text", 105, "l", ("Lançamento",)),
            Column("amount", 545, "r", (f"Valor ({currency})",)),
        ),
    )
    minus = ("-", "- ", "-", "−")[seed]

    def cells(entry: Entry) -> Cells:
        name = _PORTUGUESE_MONTHS[entry.day.month - 1]
        day = (
            f"{entry.day:%d} {name}",
            f"{entry.day:%d}/{name}",
            f"{entry.day:%d} {name.upper()}",
            f"{entry.day:%d} de {name}",
        )
        return {"date": day[seed], "amount": (minus if entry.amount > 0 else "") + _pointed(abs(entry.amount))}

    sections: tuple[tuple[str, str, int], ...] = (
        ("Pagamentos e créditos", "Total de pagamentos e créditos", 1),
        ("Compras", "Total de compras", -1),
    )
    for title, sum_title, sign in sections if seed != 1 else sections[::-1]:
        sheet.need(sheet.step * 6)
        sheet.line(50, title, size=11, bold=True)
        some = [each for each in entries if each.amount * sign > 0]
        Table(sheet, columns, cells, has_head=seed in {0, 2}).print(some)
        sheet.pair(105, sum_title, 545, (minus if sign > 0 else "") + _pointed(abs(total(some))), bold=True)
        sheet.note("subtotal", total(some))
        sheet.down(8)
    sheet.need(sheet.step * 3)
    sheet.line(50, "Juros do rotativo 14,90 % ao mês. Limite de saque em espécie 1.500,00.", size=7)
    sheet.footer = lambda number, count: f"{number}/{count}"
    return sheet.finish(rng)


def _with_instalment(entry: Entry, currency: str) -> Entry:
    """Make some purchases a part of several, others one abroad."""
    chance = int(abs(entry.amount) * 100)
    if entry.amount > 0:
        return entry
    if chance % 4 == 0:
        count = 3 + chance % 9
        return replace(entry, lines=(f"{entry.lines[0]} parc. {1 + chance % count:02}/{count:02}",))
    if chance % 5 == 0:
        rate = Decimal("5.1840") if currency == "R$" else Decimal("0.9215")
        foreign = (-entry.amount / rate).quantize(Decimal("0.01"))
        text = f"USD {_pointed(foreign)} câmbio {str(rate).replace('.', ',')}"
        return replace(entry, lines=(_ABROAD[chance % len(_ABROAD)], text))
    return entry


_SOCIETY = (
    "Withdrawal Harbour Street branch", "Cheque 004417", "Direct debit Larkfield Water", "Transfer to 20 41 18 00441720",
    "Cash machine Tobermory", "Standing order Rent Flat 3",
)  # fmt: skip
_SOCIETY_INCOME = ("Cash paid in", "Salary Corran Fisheries", "Cheque paid in 118204", "Transfer from Mrs E Baird")


def _balance_comes_first(seed: int, later: int) -> Statement:
    """Draw half a year of a building society as a scan, its columns from the balance to the date, rates beside."""
    house, rng = seeded(_HALF, "balance comes first", seed, later)
    first = month_of(2023, (1, 7, 4, 10)[seed], 6 * later)[0]
    last = month_of(first.year, first.month, 5)[1]
    sheet = Sheet(house, size=9.5)
    opening = invent_cents(rng, 150_000, 900_000)
    maker = Inventor(rng, _SOCIETY, _SOCIETY_INCOME, income=0.3, most_out=60_000)
    entries = invent_both_ways(maker, (first, last), rng.randint(16, 30), opening)
    interest = Entry(last, ("Interest added",), invent_cents(rng, 900, 9_000), opening, last)
    entries = balanced([*entries, interest], opening)
    bank = (
        "Kilbrannan Building Society",
        "Wexcombe & Vale Society",
        "Dunmanus Credit Union",
        "Tasman Permanent Society",
    )
    sheet.line(50, bank[seed], size=16, bold=True)
    sheet.line(50, ("Passbook Saver", "Regular account", "Share account", "Everyday saver")[seed], size=11)
    sheet.line(50, f"{first.day} {first:%B %Y} to {last.day} {last:%B %Y}")
    sheet.line(50, f"Roll number {house.randint(1, 9)}/{house.randint(10_000, 99_999)}-{house.randint(100, 999)}")
    sheet.down(10)
    bottom, sheet.y = sheet.y, 74
    sheet.line(370, "Gross interest a year", bold=True)
    for start, rate in (("1.00", "1.85"), ("5,000.00", "2.10"), ("25,000.00", "2.45")):
        sheet.pair(370, f"{start} and over", 545, f"{rate}%")
    sheet.y = max(bottom, sheet.y) + 12
    columns = moved(
        house,
        (
            Column("balance", 118, "r", ("Balance",)),
            Column("in", 190, "r", ("Paid in",)),
            Column("out", 262, "r", ("Paid out",)),
            Column("text", 285, "l", ("Details",)),
            Column("date", 478, "l", ("Date",)),
        ),
    )
    form = ("%d %b %Y", "%d %B %Y", "%d-%b-%y", "%d %b %y")[seed]
    table = Table(
        sheet,
        columns if seed != 3 else tuple(replace(each, head=()) for each in columns),
        lambda each: {
            "balance": figure(each.balance),
            "in": figure(each.amount) if each.amount > 0 else "",
            "out": figure(-each.amount) if each.amount < 0 else "",
            "date": each.day.strftime(form),
        },
        has_head=seed != 3,
        is_date_once=seed == 2,
    )
    sheet.note("opening", opening)
    print_after(table, {"balance": figure(opening), "text": "Balance brought forward"}, entries)
    sheet.need(sheet.step * 3)
    table.row({"balance": figure(entries[-1].balance), "text": "Balance at end of statement"}, bold=True)
    sheet.note("closing", entries[-1].balance)
    return sheet.finish(rng, scan=True)


_TURKISH_NAMES = (
    "Ayşe Demirtaş", "Çınar Kırtasiye", "Mehmet Öztoprak", "Gül Pastanesi", "Deniz Yıldırım", "Kaya İnşaat Ltd.",
    "Işık Elektrik", "Zeynep Akbulut",
)  # fmt: skip
_ROMANIAN_NAMES = (
    "Ion Țepeș-Marin", "Brutăria Spicul", "Elena Vărzaru", "Librăria Cuibul", "Florin Sârbu", "Atelier Șurub SRL",
    "Mara Ghiță", "Lemn și Piatră SRL",
)  # fmt: skip


def _names_and_amounts(seed: int, later: int) -> Statement:
    """Draw only who, when and how much: nothing on the page says which way the money went."""
    house, rng = seeded(_HALF, "names and amounts", seed, later)
    is_turkish = seed < 2
    names = _TURKISH_NAMES if is_turkish else _ROMANIAN_NAMES
    first, last = month_of(2024, (6, 10, 3, 12)[seed], later)
    sheet = Sheet(house, size=house.choice((9.0, 9.5)))
    more = (
        ("İşlem 118.204", "Kart 4417 **** 0912", "Sipariş 2.041,18")
        if is_turkish
        else ("Operațiune 118.204", "Card 4417 **** 0912", "Comanda 2.041,18")
    )
    maker = Inventor(rng, names, names, more, 0.35, income=0.4, most_out=90_000, most_in=90_000)
    entries = maker.entries(first, last, rng.randint(16, 36), Decimal(500_000))
    bank = ("Papatya Ödeme", "Kervan Cüzdan", "Portofel Cocor", "PlatăRapid")[seed]
    sheet.line(50, bank, size=18, bold=True)
    title = "Hesap hareketleri" if is_turkish else "Lista operațiunilor"
    sheet.line(50, f"{title}  {_dotted(first)} – {_dotted(last)}")
    sheet.line(50, f"{'Müşteri no' if is_turkish else 'Client nr.'} {house.randint(100_000, 999_999)}")
    limit = "Günlük limit 20.000,00 TL" if is_turkish else "Limita zilnică 5.000,00 lei"
    sheet.line(50, limit, size=8)
    sheet.down(16)
    unit = " TL" if is_turkish else " lei"
    columns = (
        (Column("date", 50, "l"), Column("time", 112, "l"), Column("text", 155, "l"), Column("amount", 545, "r")),
        (Column("amount", 130, "r"), Column("text", 150, "l"), Column("date", 440, "l"), Column("time", 510, "l")),
        (Column("text", 50, "l"), Column("date", 300, "l"), Column("time", 370, "l"), Column("amount", 545, "r")),
        (Column("time", 50, "l"), Column("date", 90, "l"), Column("amount", 240, "r"), Column("text", 262, "l")),
    )[seed]
    Table(
        sheet,
        moved(house, columns),
        lambda each: {
            "date": _dotted(each.day),
            "time": f"{rng.randint(7, 22):02}:{rng.randint(0, 59):02}",
            "amount": _pointed(abs(each.amount)) + (unit if seed % 2 else ""),
        },
        has_head=False,
        row_rule=(45, 550) if seed in {0, 3} else None,
    ).print(entries)
    sheet.down(10)
    count = len(entries)
    sheet.line(50, f"{count} işlem listelendi." if is_turkish else f"{count} operațiuni.", size=8)
    sheet.footer = lambda number, pages: f"{number} / {pages}"
    return sheet.finish(rng, signs_proven=False)


_SHARES = ("Northwind Rail", "Quayside Foods", "Basalt Mining", "Tern Shipping", "Palm Grid Energy", "Oxbow Timber")


def _cash_at_the_broker(seed: int, later: int) -> Statement:
    """Draw a broker's cash account whose days and months may be read either way round."""
    house, rng = seeded(_HALF, "cash at the broker", seed, later)
    is_month_first = seed in {1, 2}
    days = _twofold_days(1 + 4 * later, is_month_first=is_month_first)
    sheet = Sheet(house, size=8.5)
    opening = invent_cents(rng, 900_000, 3_000_000)
    spends = [f"Buy {each}" for each in _SHARES] + ["Custody fee", "Wire to bank"]
    incomes = [f"Sell {each}" for each in _SHARES] + ["Dividend Tern Shipping", "Wire from bank", "Credit interest"]
    maker = Inventor(rng, spends, incomes, income=0.45, most_out=250_000, most_in=250_000, days=days)
    entries = invent_both_ways(maker, (days[0], days[-1]), rng.randint(14, 24), opening)
    bank = ("Harbour Lane Securities", "Coral Cay Brokers Ltd", "Monrovia Share Desk", "Saddle Peak Investments")
    sheet.line(50, bank[seed], size=16, bold=True)
    sheet.line(50, f"Cash account {('USD', 'USD', 'USD', 'ZAR')[seed]}   Client {house.randint(10_000, 99_999)}")
    sheet.line(50, f"Statement no. {3 + later}")
    sheet.down(14)
    debit = (lambda text: f"({text})") if seed % 2 else (lambda text: f"-{text}")
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Settled",)),
            Column("ref", 108, "l", ("Reference",)),
            Column("text", 175, "l", ("Transaction",)),
            Column("units", 345, "r", ("Units",)),
            Column("price", 400, "r", ("Price",)),
            Column("amount", 475, "r", ("Amount",)),
            Column("balance", 548, "r", ("Cash balance",)),
        ),
        2.0,
    )

    def cells(entry: Entry) -> Cells:
        has_shares = entry.lines[0].startswith(("Buy", "Sell"))
        units = rng.randint(5, 400)
        return {
            "date": entry.day.strftime("%m/%d/%Y" if is_month_first else "%d/%m/%Y"),
            "ref": f"{rng.randint(100, 999)}.{rng.randint(10, 99)}" if seed > 1 else f"T{rng.randint(10_000, 99_999)}",
            "units": str(units) if has_shares else "",
            "price": figure(abs(entry.amount) / units) if has_shares else "",
            "amount": figure(entry.amount) if entry.amount > 0 else debit(figure(-entry.amount)),
            "balance": figure(entry.balance),
        }

    sheet.note("opening", opening)
    print_after(Table(sheet, columns, cells), {"text": "Cash brought forward", "balance": figure(opening)}, entries)
    sheet.down(6)
    sheet.pair(175, "Cash carried forward", 548, figure(entries[-1].balance), bold=True)
    sheet.note("closing", entries[-1].balance)
    return sheet.finish(rng, dates_certain=False)


def _twofold_days(start: int, *, is_month_first: bool) -> list[date]:
    """Return days that stay in their order when day and month change places."""
    pairs = [
        (start, start + 1),
        (start, start + 3),
        (start + 1, start + 3),
        (start + 2, start + 4),
        (start + 3, start + 4),
    ]
    return [date(2024, one, two) if is_month_first else date(2024, two, one) for one, two in pairs]


_HUNGARIAN = (
    ("Kártyás vásárlás", "Kedvenc Könyvesbolt"), ("Átutalás", "Lakbér Akác utca 4"), ("Készpénzfelvét", "ATM Győr 0441"),
    ("Csoportos beszedés", "Pannon Áram"), ("Számlavezetési díj", "havi"), ("Kártyás vásárlás", "Búzavirág Pékség"),
)  # fmt: skip
_HUNGARIAN_INCOME = (
    ("Jóváírás", "Munkabér Fenyő Kft."),
    ("Befizetés", "pénztár"),
    ("Visszatérítés", "Kedvenc Könyvesbolt"),
)
_CZECH = (
    ("Platba kartou", "Knihkupectví Sova"), ("Odchozí platba", "Nájem Lipová 12"), ("Výběr z bankomatu", "Olomouc 0441"),
    ("Inkaso", "Moravská energie"), ("Poplatek", "vedení účtu"), ("Platba kartou", "Pekárna U Mlýna"),
)  # fmt: skip
_CZECH_INCOME = (
    ("Příchozí platba", "Mzda Pila Dub s.r.o."),
    ("Vklad hotovosti", "pobočka"),
    ("Vratka", "Knihkupectví Sova"),
)


def _signs_behind(seed: int, later: int) -> Statement:
    """Draw signs behind the amounts, value dates under the days, carries on each page and sums in a box at the end."""
    house, rng = seeded(_HALF, "signs behind", seed, later)
    is_hungarian = seed % 2 == 0
    spends, incomes = (_HUNGARIAN, _HUNGARIAN_INCOME) if is_hungarian else (_CZECH, _CZECH_INCOME)
    first, last = month_of(2024, (12, 4, 7, 10)[seed], later)
    sheet = Sheet(house, size=house.choice((8.5, 9.0)))
    opening = invent_cents(rng, 300_000, 900_000)
    lines = {each[0] + each[1]: each for each in (*spends, *incomes)}
    maker = Inventor(rng, ["".join(each) for each in spends], ["".join(each) for each in incomes], lag=2)
    entries = []
    for each in invent_both_ways(maker, (first, last), rng.randint(24, 48), opening):
        text = lines[each.lines[0]]
        third = (
            f"Biz. {rng.randint(100, 999)} {rng.randint(100, 999)},00"
            if is_hungarian
            else f"VS {rng.randint(10**6, 10**7)}",
        )
        value = f"{each.value_day:%Y.%m.%d.}" if is_hungarian else f"{each.value_day.day}.{each.value_day.month}."
        entries.append(replace(each, lines=text + (third if rng.random() < 0.4 else ()), marks=("", value)))

    def signed(amount: Decimal) -> str:
        return _spaced(abs(amount)) + ("+" if amount >= 0 else "-")

    bank = ("Kisalföldi Bank Zrt.", "Hanácká spořitelna", "Tiszavirág Takarék", "Banka Jizera a.s.")[seed]
    sheet.line(50, bank, size=16, bold=True)
    sheet.line(50, "Számlakivonat" if is_hungarian else "Výpis z účtu", size=11)
    sheet.line(
        50,
        f"Időszak: {first:%Y.%m.%d.} – {last:%Y.%m.%d.}"
        if is_hungarian
        else f"Období {first.day}.{first.month}.{first.year} – {last.day}.{last.month}.{last.year}",
    )
    sheet.down(14)
    heads = (
        (("Könyvelés", "Értéknap"), ("Megnevezés", "Partner, közlemény"), ("Összeg", "HUF"))
        if is_hungarian
        else (("Zaúčtováno", "Valuta"), ("Typ pohybu", "Protistrana, symbol"), ("Částka", "CZK"))
    )
    columns = moved(
        house,
        (Column("date", 50, "l", heads[0]), Column("text", 130, "l", heads[1]), Column("amount", 530, "r", heads[2])),
    )
    columns = (*columns, Column("mark", columns[0].x, "l"))
    out, back = (
        ("Egyenleg átvitel", "Egyenleg áthozat")
        if is_hungarian
        else ("Zůstatek k převodu", "Převod z předchozí strany")
    )
    Table(
        sheet,
        columns,
        lambda each: {
            "date": f"{each.day:%Y.%m.%d.}" if is_hungarian else f"{each.day.day}.{each.day.month}.",
            "amount": signed(each.amount),
        },
        per_page=(16, 13, 15, 14)[seed],
        carry_out=lambda balance: {"text": out, "amount": signed(balance)},
        carry_in=lambda balance: {"text": back, "amount": signed(balance)},
        is_head_repeated=seed != 3,
    ).print(entries)
    sheet.need(sheet.step * 7)
    sheet.down(12)
    top = sheet.y
    labels = (
        ("Nyitó egyenleg", "Jóváírások összesen", "Terhelések összesen", "Záró egyenleg")
        if is_hungarian
        else ("Počáteční zůstatek", "Připsáno celkem", "Odepsáno celkem", "Konečný zůstatek")
    )
    sums = (opening, total(entries, 1), total(entries, -1), entries[-1].balance)
    for label, amount, kind in zip(labels, sums, ("opening", "deposits", "withdrawals", "closing"), strict=True):
        sheet.pair(260, label, 530, signed(amount))
        sheet.note(kind, amount)
    sheet.box(250, top - 13, 540, sheet.y - 3)
    sheet.footer = lambda number, count: f"{number}. oldal / {count}" if is_hungarian else f"Strana {number}/{count}"
    return sheet.finish(rng)


_LAKH = (
    "UPI/406122189034/KIRANA STORE", "NEFT/RENT/MEENA IYER", "ATM WDL 004417 MYSURU", "CHQ PAID SELF", "SMS CHARGES",
    "ELECTRICITY BOARD 118204", "POS 4417XXXX0912 TEXTILES",
)  # fmt: skip
_LAKH_INCOME = ("NEFT/SALARY/KAVERI SILKS", "CASH DEPOSIT", "UPI/406122183321/R NAIR", "CHQ DEPOSIT 55021")


def _lakhs_with_letters(seed: int, later: int) -> Statement:
    """Draw a co-operative bank's pages as scans: lakhs, letters behind the balance, carries, grand totals."""
    house, rng = seeded(_HALF, "lakhs with letters", seed, later)
    first, last = month_of(2024, (1, 8, 11, 5)[seed], later)
    sheet = Sheet(house, size=8.5, font="helv")
    opening = invent_cents(rng, 2_000_000, 30_000_000)
    maker = Inventor(rng, _LAKH, _LAKH_INCOME, income=0.3, most_out=900_000, most_in=9_000_000)
    entries = invent_both_ways(maker, (first, last), rng.randint(18, 34), opening)

    def show(amount: Decimal) -> str:
        return figure(amount, indian=True)

    def lettered(amount: Decimal) -> str:
        return show(amount) + ("Cr" if seed % 2 else " Cr")

    bank = ("Cauvery Co-operative Bank", "Malwa Gramin Sahakari Bank", "Deccan Weavers Bank", "Sarhad Mercantile Bank")
    sheet.line(297, bank[seed].upper(), "c", size=14, bold=True)
    sheet.line(297, "STATEMENT OF ACCOUNT", "c")
    sheet.line(50, f"Savings A/c {house.randint(10**8, 10**9)}   From {first:%d-%b-%Y} To {last:%d-%b-%Y}")
    sheet.down(12)
    columns = moved(
        house,
        (
            Column("number", 62, "r", ("Sr",)),
            Column("text", 72, "l", ("Particulars",)),
            Column("date", 252, "l", ("Date",)),
            Column("ref", 310, "l", ("Ref/Chq",)),
            Column("out", 410, "r", ("Withdrawals",)),
            Column("in", 480, "r", ("Deposits",)),
            Column("balance", 555, "r", ("Balance",)),
        ),
        1.5,
    )
    places = {id(each): number for number, each in enumerate(entries, 1)}
    table = Table(
        sheet,
        columns,
        lambda each: {
            "number": str(places[id(each)]),
            "date": f"{each.day:%d-%b-%y}",
            "ref": f"{rng.randint(1000, 999_999):06}" if each.amount < 0 else "",
            "out": show(-each.amount) if each.amount < 0 else "",
            "in": show(each.amount) if each.amount > 0 else "",
            "balance": lettered(each.balance),
        },
        per_page=(18, 99, 16, 14)[seed],
        carry_out=lambda balance: {"text": "CARRIED FORWARD", "balance": lettered(balance)},
        carry_in=lambda balance: {"text": "BROUGHT FORWARD", "balance": lettered(balance)},
        extent=(45, 560),
    )
    sheet.note("opening", opening)
    print_after(table, {"text": "OPENING BALANCE", "balance": lettered(opening)}, entries)
    sheet.need(sheet.step * 4)
    sheet.rule(45, 560)
    sheet.down(5)
    spent, paid = -total(entries, -1), total(entries, 1)
    closing = lettered(entries[-1].balance)
    table.row({"text": "GRAND TOTAL", "out": show(spent), "in": show(paid), "balance": closing}, bold=True)
    sheet.note("withdrawals", spent)
    sheet.note("deposits", paid)
    sheet.note("closing", entries[-1].balance)
    return sheet.finish(rng, scan=True)


SHAPES: dict[str, DrawShape] = name_shapes(
    (
        _debit_before_the_words,
        _invoice_with_instalments,
        _balance_comes_first,
        _names_and_amounts,
        _cash_at_the_broker,
        _signs_behind,
        _lakhs_with_letters,
    )
)
