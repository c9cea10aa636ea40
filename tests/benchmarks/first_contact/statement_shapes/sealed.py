"""The sealed half: shapes that only measure; nobody who builds a reader of statements looks at them."""

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

_ENGLISH = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_FRENCH = ("janv.", "févr.", "mars", "avr.", "mai", "juin", "juill.", "août", "sept.", "oct.", "nov.", "déc.")
_SWEDISH_SHOPS = (
    "Ullas Garn och Band", "Kvarnens Bageri", "Björkbackens Järn", "Norrskens Sport", "Gamla Torgets Frukt",
    "Västra Cykelboden", "Lilla Lampaffären", "Stenbrons Apotek",
)  # fmt: skip
_TOWNS = ("Åsby", "Ekholma", "Norrlunda", "Sandvik", "Tallhed")
_BRAZILIAN = (
    "Padaria Flor do Campo", "Posto Trevo Azul", "Livraria Capivara", "Mercado Boa Serra", "Farmácia Ipê Roxo",
    "Cinema Lua Cheia", "Pet Shop Tamanduá", "Restaurante Maré Mansa",
)  # fmt: skip
_FARES = (
    "SPAZA EIGHTEEN", "VELDT FUEL STOP", "PROTEA STATIONERS", "KAROO TYRES", "DEBIT ORDER SUNBIRD MEDICAL",
    "CASH WITHDRAWAL KLOOF RD", "AIRTIME", "CARD SWIPE ROOIBOS CAFE", "SERVICE FEE",
)  # fmt: skip
_FARES_IN = ("CREDIT TRANSFER A MOLOI", "CASH DEPOSIT", "SALARY FYNBOS TRADERS")
_PORTUGUESE = (
    "Compra Mercearia do Cais", "Débito direto Luzes do Minho", "Levantamento Multi Rossio", "Renda Travessa do Forno",
    "Compra Sapataria Andorinha", "Débito direto Águas da Serra", "Comissão de manutenção",
)  # fmt: skip
_PORTUGUESE_IN = ("Vencimento Carpintaria Sobral", "Transferência recebida", "Reembolso Seguros Garça")
_PORTUGUESE_MORE = ("Ref. 291 003 118", "Entidade 20411", "Cartão terminado em 5520", "Autorização permanente")
# The descriptions of scans keep to letters that an engine for English can tell apart.
_BELGIAN = (
    "Achat Boulangerie du Beffroi", "Domiciliation Gaz du Hainaut", "Retrait Place Verte", "Virement loyer Mercier",
    "Achat Cycles Tilleul", "Domiciliation Eaux Claires", "Frais de tenue",
)  # fmt: skip
_BELGIAN_IN = ("Versement salaire Atelier Lune", "Remboursement mutuelle", "Virement de Dubreuil")
_NORSE = (
    "Kortbruk Fjordbakeri", "Avtalegiro Nordkraft", "Minibank Storgata", "Husleie Solbakken", "Kortbruk Sykkelsmia",
    "Avtalegiro Fjellnett", "Gebyr",
)  # fmt: skip
_NORSE_IN = ("Fra Trevaren Sag", "Innskudd", "Tilbakebetaling Nordkraft")
_FILIPINO = (
    "BILLS PAYMENT ISLA ELECTRIC", "POS MANGGAHAN MART", "ATM BAYWALK", "FUND TRANSFER TO R SANTOL", "POS KAPE TALA",
    "BILLS PAYMENT AGOS WATER",
)  # fmt: skip
_FILIPINO_IN = ("PAYROLL NARRA WORKS", "FUND TRANSFER FROM L DALISAY", "CHECK DEPOSIT")
_STRAITS = (
    "GIRO Orchid Town Council", "Card Laksa Corner", "Transfer Kallang Tuition", "Card Merbau Books", "ATM Jurong Hill",
    "GIRO Straits Mobile",
)  # fmt: skip
_STRAITS_IN = ("Salary Tembusu Design", "Incoming transfer", "Cashback")
_BRITISH = (
    "Puddleduck Nursery", "The Brass Monkey", "Hobnob Stores", "Wexcombe Rail", "Tallow & Wick", "Greenfinch Vets",
    "Ropewalk Gym", "Marsh Lane Garage",
)  # fmt: skip
_BRITISH_IN = ("Wages Puffin Paints", "Refund Tallow & Wick", "From J Lavender")
_FINNISH = (
    "Korttiosto Metsolan Kauppa", "Vuokra Kivikuja", "Laskunmaksu Revontuli", "Nosto Asematori", "Korttiosto Kahvila Sini",
    "Puhelinlasku Honka",
)  # fmt: skip
_FINNISH_IN = ("Palkka Veistamo Oy Koivu", "Tilisiirto Laine", "Palautus Metsolan Kauppa")
_POLISH = (
    "Zakupy Piekarnia Pod Lipą", "Przelew czynsz Wierzbowa", "Wypłata bankomat Rynek", "Opłata Prąd Północ",
    "Zakupy Księgarnia Sowa", "Telefon Dzwonek",
)  # fmt: skip
_POLISH_IN = ("Wynagrodzenie Stolarnia Jodła", "Wpłata własna", "Przelew od Zofii")


def _seeded(shape: str, seed: int, later: int) -> tuple[random.Random, random.Random]:
    """Return what is fixed for the bank, and what is new in every month."""
    return random.Random(f"sealed {shape} {seed}"), random.Random(f"sealed {shape} {seed} {later}")


def _cents(rng: random.Random, least: int, most: int) -> Decimal:
    return Decimal(rng.randint(least, most)) / 100


def _card_by_totals(seed: int, later: int) -> Statement:
    """Draw a card whose charges carry a minus and whose payments carry nothing: only both balances prove it."""
    house, rng = _seeded("card by totals", seed, later)
    bank = ("Carte Érable Doré", "Caisse Rive-Sud Carte", "Carte Grand Héron", "Crédit Boréal", "Carte Saguenay Plus")
    start, end = cycle_of(2023, 12 if seed < 3 else 6, house.randint(7, 22), later + 1)
    sheet = Sheet(house, size=8.8, width=612, height=792)
    sheet.footer = lambda number, count: f"{number} de {count}"
    opening = -_cents(rng, 30_000, 300_000)
    paid = ("Paiement reçu, merci",)
    shops = ("Épicerie du Quai", "Garage Tremblant Nord", "Librairie Harfang", "Café des Neiges", "Ferme Lajeune")
    maker = Inventor(rng, shops, paid, income=0.12, lag=2)
    maker.most_in = 70_000
    entries = maker.entries(start, end - timedelta(days=3), rng.randint(18, 44), opening)
    entries[1] = replace(entries[1], lines=paid, amount=_cents(rng, 9_000, 30_000))
    entries = balanced(entries, opening)

    def dollars(amount: Decimal) -> str:
        return figure(amount, " ", ",") + " $"

    sheet.line(560, bank[seed], "r", size=16, bold=True)
    sheet.line(50, f"Date du relevé : {end.day} {_FRENCH[end.month - 1]} {end.year}")
    due = end + timedelta(days=21)
    sheet.line(50, f"Date d'échéance du paiement : {due.day} {_FRENCH[due.month - 1]} {due.year}")
    sheet.line(50, f"Paiement minimum : {dollars(_cents(rng, 1000, 8000))}   Limite : 7 500,00 $")
    sheet.down(14)
    sheet.rule(48, 560)
    for x, label, amount, kind in ((50, "Solde précédent", opening, 0), (330, "Nouveau solde", entries[-1].balance, 1)):
        sheet.write(x, label)
        sheet.write(x + 210, dollars(-amount), "r", bold=True)
        sheet.note("closing" if kind else "opening", amount)
    sheet.down(34)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Date de", "l'opération")),
            Column("value", 120, "l", ("Date", "d'inscription")),
            Column("text", 200, "l", ("", "Description")),
            Column("amount", 550, "r", ("Montant", "($)")),
        ),
    )
    Table(
        sheet,
        columns,
        lambda each: {
            "date": f"{each.day.day:02} {_FRENCH[each.day.month - 1]}",
            "value": f"{each.value_day.day:02} {_FRENCH[each.value_day.month - 1]}",
            "amount": figure(each.amount, " ", ","),
        },
        extent=(48, 560),
        per_page=30,
    ).print(entries)
    return sheet.finish(rng)


def _card_in_three_parts(seed: int, later: int) -> Statement:
    """Draw payments, purchases and fees of a card without marks in three parts, each with its sum."""
    house, rng = _seeded("card in three parts", seed, later)
    bank = ("Cartão Araucária", "Cartão Jaguatirica", "Banco Cerrado Cartões", "Cartão Vitória-Régia", "Cartão Sabiá")
    start, end = cycle_of(2023, 12, house.randint(10, 27), later + 1)
    sheet = Sheet(house, size=9.0)
    sheet.footer = lambda number, count: f"Página {number}/{count}"
    opening = -_cents(rng, 20_000, 200_000)
    spent = Inventor(rng, _BRAZILIAN, _BRAZILIAN, income=0.0).entries(start, end, rng.randint(12, 34), ZERO)
    paid = [
        Entry(start + timedelta(days=day), ("Pagamento efetuado",), _cents(rng, 5_000, 60_000), ZERO, start)
        for day in sorted(rng.sample(range(20), rng.randint(1, 2)))
    ]
    fees = [
        Entry(end, (name,), -_cents(rng, 300, 4_000), ZERO, end) for name in ("Encargos do período", "Anuidade 03/12")
    ]
    everything = [*paid, *spent, *fees]
    closing = opening + total(everything)
    sheet.line(50, bank[seed], size=16, bold=True)
    sheet.line(50, f"Fatura fechada em {end:%d/%m/%Y}")
    sheet.line(50, f"Vencimento {end + timedelta(days=9):%d/%m/%Y}     Melhor dia de compra {end.day}")
    sheet.down(14)
    for label, amount in (("Total da fatura anterior", opening), ("Total desta fatura a pagar", closing)):
        sheet.pair(50, label, 330, f"R$ {figure(-amount, '.', ',')}", bold=amount is closing)
        sheet.note("closing" if amount is closing else "opening", amount)
    sheet.down(20)
    columns = moved(
        house,
        (
            Column("date", 55, "l", ("Data",)),
            Column("text", 120, "l", ("Estabelecimento ou lançamento",)),
            Column("amount", 500, "r", ("Valor R$",)),
        ),
    )
    for title, part in (("Pagamentos e créditos", paid), ("Compras nacionais", spent), ("Tarifas e encargos", fees)):
        sheet.need(90)
        sheet.line(50, title.upper(), bold=True)
        sheet.down(3)
        Table(
            sheet,
            columns,
            lambda each: {"date": f"{each.day:%d/%m}", "amount": figure(abs(each.amount), ".", ",")},
            extent=(50, 505),
        ).print(part)
        sheet.rule(400, 505)
        sheet.down(3)
        sheet.write(columns[1].x, f"Soma de {title.lower()}")
        sheet.write(columns[2].x, figure(abs(total(part)), ".", ","), "r")
        sheet.note("subtotal", total(part))
        sheet.down(26)
    return sheet.finish(rng)


def _purchase_account(seed: int, later: int) -> Statement:
    """Draw a purchase account: everything is charged, cards have subtotals, and one amount is to be paid."""
    house, rng = _seeded("purchase account", seed, later)
    bank = ("Granit Köpkonto", "Tärnan Kredit", "Lingon Konto", "Fyren Köpkort", "Hedvig & Co Konto")
    first, last = month_of(2024, 2 + seed, later)
    sheet = Sheet(house, size=9.2)
    sheet.footer = lambda number, count: f"Sida {number} ({count})"
    sheet.line(50, bank[seed], size=16, bold=True)
    sheet.write(330, f"Fakturadatum {last + timedelta(days=2)}")
    sheet.line(50, f"Kundnummer {house.randint(10**6, 10**7)}")
    sheet.write(330, f"Förfallodag {last + timedelta(days=30)}")
    sheet.line(50, f"Avser köp {first} till {last}")
    sheet.down(20)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Köpdatum",)),
            Column("text", 125, "l", ("Inköpsställe",)),
            Column("place", 320, "l", ("Ort",)),
            Column("amount", 520, "r", ("Debiteras kr",)),
        ),
    )
    grand = ZERO
    for number in range(house.randint(1, 3)):
        maker = Inventor(rng, _SWEDISH_SHOPS, _SWEDISH_SHOPS, income=0.0, most_out=160_000)
        part = maker.entries(first, last, rng.randint(9, 18), ZERO)
        places = {each: rng.choice(_TOWNS) for each in part}
        sheet.need(90)
        sheet.line(50, f"Kort som slutar på {house.randint(1000, 9999)}", bold=True)
        Table(
            sheet,
            columns,
            lambda each, towns=places: {  # type: ignore[misc]
                "date": each.day.isoformat(),
                "place": towns[each],
                "amount": figure(-each.amount, " ", ","),
            },
            head_rule=number % 2 == 0,
        ).print(part)
        sheet.write(columns[1].x, "Summa köp på kortet")
        sheet.write(columns[3].x, figure(-total(part), " ", ","), "r")
        sheet.note("subtotal", total(part))
        grand += total(part)
        sheet.down(26)
    sheet.need(60)
    sheet.box(300, sheet.y - 14, 530, sheet.y + 8)
    sheet.write(310, "Att betala", bold=True)
    sheet.write(columns[3].x, f"{figure(-grand, ' ', ',')} kr", "r", bold=True)
    sheet.note("due", grand)
    return sheet.finish(rng)


def _letters_glued(seed: int, later: int) -> Statement:
    """Draw an overdraft with Dr and Cr right behind amounts and balances, carried from page to page."""
    house, rng = _seeded("letters glued", seed, later)
    bank = ("Baobab Bank", "Witrivier Bank", "Ubuntu Mutual", "Khaya People's Bank", "Drakensview Bank")
    start, end = cycle_of(2023, 12, house.randint(6, 25), later + 1)
    sheet = Sheet(house, size=8.8)
    opening = -_cents(rng, 50_000, 900_000)
    maker = Inventor(rng, _FARES, _FARES_IN, income=0.2, most_in=120_000)
    entries = maker.entries(start, end, rng.randint(36, 60), opening)
    group = house.choice((" ", ","))

    def marked(amount: Decimal) -> str:
        return figure(abs(amount), group) + ("Dr" if amount < 0 else "Cr")

    sheet.line(545, bank[seed], "r", size=15, bold=True)
    sheet.line(50, "CHEQUE ACCOUNT")
    sheet.line(
        50, f"Statement No {house.randint(20, 90)}   Statement date {end.day} {_ENGLISH[end.month - 1]} {end.year}"
    )
    sheet.line(50, f"Facility R{figure(Decimal(20000), group)}   Rate 14.25%")
    sheet.down(14)
    columns = moved(
        house,
        (
            Column("text", 50, "l", ("Details",)),
            Column("date", 285, "l", ("Date",)),
            Column("amount", 430, "r", ("Amount (R)",)),
            Column("balance", 540, "r", ("Balance (R)",)),
        ),
    )
    sheet.write(50, "Balance last statement")
    sheet.line(columns[3].x, marked(opening), "r")
    sheet.note("opening", opening)
    sheet.down(6)
    Table(
        sheet,
        columns,
        lambda each: {
            "date": f"{each.day.day:02} {_ENGLISH[each.day.month - 1]}",
            "amount": marked(each.amount),
            "balance": marked(each.balance),
        },
        per_page=house.randint(20, 27),
        carry_out=lambda amount: {"text": "Carried over", "balance": marked(amount)},
        carry_in=lambda amount: {"text": "Brought over", "balance": marked(amount)},
    ).print(entries)
    sheet.down(10)
    sheet.need(50)
    sheet.pair(50, "Balance this statement", columns[3].x, marked(entries[-1].balance), bold=True)
    sheet.note("closing", entries[-1].balance)
    sheet.pair(50, "Total debits", columns[3].x, figure(-total(entries, -1), group))
    sheet.note("withdrawals", -total(entries, -1))
    sheet.pair(50, "Total credits", columns[3].x, figure(total(entries, 1), group))
    sheet.note("deposits", total(entries, 1))
    return sheet.finish(rng)


def _letters_between(seed: int, later: int) -> Statement:
    """Draw D or C between amount and balance, lines of reference numbers at the right, days without a year."""
    house, rng = _seeded("letters between", seed, later)
    bank = ("Banco da Ribeira Velha", "Caixa do Alto Sado", "Banco Oliveira do Sul", "Crédito Raiano", "Banco Cegonha")
    start, end = cycle_of(2024 if seed > 2 else 2023, 2 if seed > 2 else 12, house.randint(5, 19), later + 1)
    sheet = Sheet(house, size=8.6)
    sheet.footer = lambda number, count: f"Pág. {number} / {count}"
    opening = _cents(rng, 60_000, 600_000)
    maker = Inventor(rng, _PORTUGUESE, _PORTUGUESE_IN, _PORTUGUESE_MORE, many=0.55, income=0.2, lag=2)
    maker.mark = lambda source: source.choice(
        ("", f"{source.randint(10, 999)}.{source.randint(100, 999)},{source.randint(10, 99)}")
    )
    entries = maker.entries(start, end - timedelta(days=2), rng.randint(15, 34), opening)
    sheet.line(50, bank[seed], size=15, bold=True)
    sheet.line(
        50, f"Extrato de {start:%d-%m-%Y} a {end:%d-%m-%Y}     Moeda EUR     Conta {house.randint(10**8, 10**9)}"
    )
    sheet.down(16)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Data", "mov.")),
            Column("value", 85, "l", ("Data", "valor")),
            Column("text", 122, "l", ("", "Descrição do movimento")),
            Column("mark", 385, "r", ("", "Documento")),
            Column("amount", 455, "r", ("", "Montante")),
            Column("side", 463, "l", ("", "D/C")),
            Column("balance", 550, "r", ("Saldo", "contabilístico")),
        ),
        1.5,
    )
    sheet.write(122, "Saldo inicial")
    sheet.line(columns[6].x, figure(opening, ".", ","), "r")
    sheet.note("opening", opening)
    sheet.down(6)
    Table(
        sheet,
        columns,
        lambda each: {
            "date": f"{each.day:%d/%m}",
            "value": f"{each.value_day:%d/%m}",
            "amount": figure(abs(each.amount), ".", ","),
            "side": "D" if each.amount < 0 else "C",
            "balance": figure(each.balance, ".", ","),
        },
        row_rule=(48, 553),
        inner=1.25,
        is_split=True,
    ).print(entries)
    sheet.down(8)
    sheet.write(122, "Saldo final", bold=True)
    sheet.line(columns[6].x, figure(entries[-1].balance, ".", ","), "r", bold=True)
    sheet.note("closing", entries[-1].balance)
    return sheet.finish(rng)


def _letter_in_front(seed: int, later: int) -> Statement:
    """Draw a scanned statement with D or C in a column in front of the amounts."""
    house, rng = _seeded("letter in front", seed, later)
    bank = ("Banque du Condroz", "Crédit des Ardoises", "Caisse du Beffroi", "Banque Meuse et Lys", "Crédit Gaumais")
    first, last = month_of(2024, 1 + seed, later)
    sheet = Sheet(house, size=10.0, font="helv", leading=1.6)
    opening = _cents(rng, 40_000, 500_000)
    entries = Inventor(rng, _BELGIAN, _BELGIAN_IN, income=0.25).entries(first, last, rng.randint(10, 20), opening)
    sheet.line(50, bank[seed], size=16, bold=True)
    sheet.line(50, f"Extrait de compte no {house.randint(10, 60)}")
    sheet.line(50, f"Période du {first:%d/%m/%Y} au {last:%d/%m/%Y}")
    sheet.down(14)
    columns = (
        Column("date", 50, "l", ("Date",)),
        Column("text", 140, "l", ("Libellé",)),
        Column("side", 392, "l", ("D/C",)),
        Column("amount", 520, "r", ("Montant EUR",)),
    )
    Table(
        sheet,
        columns,
        lambda each: {
            "date": f"{each.day:%d/%m/%Y}",
            "side": "D" if each.amount < 0 else "C",
            "amount": figure(abs(each.amount), ".", ","),
        },
    ).print(entries)
    sheet.down(14)
    for label, amount in (
        ("Solde précédent", opening),
        ("Total débits (D)", -total(entries, -1)),
        ("Total crédits (C)", total(entries, 1)),
        ("Nouveau solde", entries[-1].balance),
    ):
        sheet.pair(140, label, 520, figure(amount, ".", ","), bold=label == "Nouveau solde")
    sheet.note("opening", opening)
    sheet.note("withdrawals", -total(entries, -1))
    sheet.note("deposits", total(entries, 1))
    sheet.note("closing", entries[-1].balance)
    return sheet.finish(rng, scan=True)


def _crowns_apart(seed: int, later: int) -> Statement:
    """Draw a scanned statement whose smaller coin stands in cells of its own."""
    house, rng = _seeded("crowns apart", seed, later)
    bank = ("Utsira Sparebank", "Havgløtt Bank", "Bygdebanken Elvetun", "Sognsvik Bank", "Nordlia Spare")
    first, last = month_of(2024, 3 + seed, later)
    sheet = Sheet(house, size=10.5, font="helv", leading=1.6)
    sheet.footer = lambda number, count: f"Side {number} av {count}"
    opening = _cents(rng, 300_000, 3_000_000)
    maker = Inventor(rng, _NORSE, _NORSE_IN, income=0.25, most_out=400_000, most_in=1_500_000)
    entries = maker.entries(first, last, rng.randint(10, 18), opening)

    def parted(key: str, amount: Decimal) -> Cells:
        whole, _, ore = figure(amount, " ").partition(".")
        return {key: whole, f"{key} ore": ore}

    sheet.line(300, bank[seed], "c", size=16, bold=True)
    sheet.line(50, f"Kontoutskrift {first:%d.%m.%Y} - {last:%d.%m.%Y}")
    sheet.down(16)
    columns = (
        Column("date", 50, "l", ("Dato",)),
        Column("text", 120, "l", ("Forklaring",)),
        Column("out", 385, "r", ("Ut av konto kr",)),
        Column("out ore", 394, "l", ("øre",)),
        Column("in", 505, "r", ("Inn på konto kr",)),
        Column("in ore", 514, "l", ("øre",)),
    )
    table = Table(
        sheet,
        columns,
        lambda each: {
            "date": f"{each.day:%d.%m.}",
            **parted("out" if each.amount < 0 else "in", abs(each.amount)),
        },
        extent=(45, 540),
    )
    table.print(entries)
    sheet.down(4)
    table.row({"text": "Sum", **parted("out", -total(entries, -1)), **parted("in", total(entries, 1))}, bold=True)
    sheet.note("withdrawals", -total(entries, -1))
    sheet.note("deposits", total(entries, 1))
    sheet.down(sheet.step * 1.5)
    table.row({"text": f"Inngående saldo {first:%d.%m.%Y}", **parted("in", opening)})
    sheet.down(sheet.step)
    closing = entries[-1].balance
    side = "in" if closing >= 0 else "out"
    table.row({"text": f"Utgående saldo {last:%d.%m.%Y}", **parted(side, abs(closing))}, bold=True)
    sheet.note("opening", opening)
    sheet.note("closing", closing)
    return sheet.finish(rng, scan=True)


def _latest_on_top(seed: int, later: int) -> Statement:
    """Draw unmarked amounts, latest on top, whose direction follows from the balances alone."""
    house, rng = _seeded("latest on top", seed, later)
    bank = ("Bangko Luntian", "Dagat Savings Bank", "Mayumi Rural Bank", "Habagat Commercial", "Sinag Thrift Bank")
    first, last = month_of(2024, 2 + seed, later)
    sheet = Sheet(house, size=9.0, bottom=70)
    opening = _cents(rng, 30_000_000, 90_000_000)
    maker = Inventor(rng, _FILIPINO, _FILIPINO_IN, income=0.35, most_out=1_500_000, most_in=2_500_000)
    entries = maker.entries(first, last, rng.randint(26, 60), opening)
    sheet.line(50, bank[seed], size=15, bold=True)
    sheet.line(50, f"Account history {first:%B} {first.day}, {first.year} to {last:%B} {last.day}, {last.year}")
    sheet.line(50, f"Ending balance PHP {figure(entries[-1].balance)}")
    sheet.note("closing", entries[-1].balance)
    sheet.down(16)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Date",)),
            Column("amount", 235, "r", ("Transaction Amount",)),
            Column("balance", 345, "r", ("Available Balance",)),
            Column("text", 370, "l", ("Remarks",)),
        ),
    )
    Table(
        sheet,
        columns,
        lambda each: {
            "date": f"{each.day:%m/%d/%Y}",
            "amount": f"PHP {figure(abs(each.amount))}",
            "balance": f"PHP {figure(each.balance)}",
        },
        is_newest_first=True,
    ).print(entries)
    sheet.down(6)
    sheet.line(50, f"Beginning balance PHP {figure(opening)}")
    sheet.note("opening", opening)
    return sheet.finish(rng)


def _told_by_words(seed: int, later: int) -> Statement:
    """Draw unmarked amounts whose direction only the rows' own words tell."""
    house, rng = _seeded("told by words", seed, later)
    bank = (
        "Haystack Savings",
        "Penny Lane Friendly Society",
        "Cobbler's Thrift",
        "Old Ferry Savings",
        "Wool Town Fund",
    )
    first, last = month_of(2024, 1 + seed, later)
    sheet = Sheet(house, size=9.5)
    spends = ("Cash withdrawal", "Card payment Hobnob Stores", "Withdrawal branch 04", "Fee charged")
    incomes = ("Cash deposit", "Salary paid in", "Deposit cheque 000417", "Interest credited")
    entries = Inventor(rng, spends, incomes, income=0.45).entries(first, last, rng.randint(10, 26), ZERO)
    sheet.line(50, bank[seed], size=15, bold=True)
    sheet.line(50, f"Passbook sheet {house.randint(3, 40)}, {first.day} {first:%B} to {last.day} {last:%B} {last.year}")
    sheet.down(20)
    columns = moved(
        house,
        (Column("date", 60, "l", ("On",)), Column("text", 160, "l", ("Entry",)), Column("amount", 470, "r", ("Sum",))),
    )
    Table(
        sheet,
        columns,
        lambda each: {
            "date": f"{each.day.day:02}-{_ENGLISH[each.day.month - 1].upper()}",
            "amount": figure(abs(each.amount)),
        },
    ).print(entries)
    return sheet.finish(rng, signs_proven="words")


def _one_balance(seed: int, later: int) -> Statement:
    """Draw unmarked amounts beside a single balance, which proves nothing: a person must decide."""
    house, rng = _seeded("one balance", seed, later)
    bank = ("Quayle Trust Bank", "Ellan Vannin Deposit", "Rosehip Private Bank", "Harcourt & Pell", "Sark Roads Bank")
    first, last = month_of(2024, 2 + seed, later)
    sheet = Sheet(house, size=9.2)
    names = [
        f"{kind} {house.randint(100, 999)}/{house.randint(10, 99)}"
        for kind in ("Order", "Ticket", "Note")
        for _ in range(5)
    ]
    opening = _cents(rng, 100_000, 900_000)
    entries = Inventor(rng, names, names, income=0.5, most_in=80_000).entries(first, last, rng.randint(11, 30), opening)
    sheet.line(300, bank[seed], "c", size=15, bold=True)
    sheet.line(300, f"Movements {first:%d/%m/%Y} - {last:%d/%m/%Y}", "c")
    sheet.down(18)
    columns = moved(
        house,
        (
            Column("date", 60, "l", ("Day",)),
            Column("amount", 250, "r", ("GBP",)),
            Column("text", 300, "l", ("Reference",)),
        ),
    )
    Table(
        sheet,
        columns,
        lambda each: {"date": f"{each.day:%d/%m/%Y}", "amount": figure(abs(each.amount))},
        row_rule=(50, 480),
    ).print(entries)
    sheet.down(16)
    sheet.line(60, f"Balance on {last:%d/%m/%Y}: GBP {figure(entries[-1].balance)}", bold=True)
    sheet.note("closing", entries[-1].balance)
    return sheet.finish(rng, signs_proven=False)


def _either_way(seed: int, later: int) -> Statement:
    """Draw a year's few entries whose days and months may be exchanged, under no period."""
    house, rng = _seeded("either way", seed, later)
    bank = ("Tern Island Loans", "Cordwainers' Fund", "Lodestar Deposit", "Ochre Hills Lending", "Bellwether Fund")
    sheet = Sheet(house, size=9.0, width=612, height=792)
    year = 2024 + later
    months = sorted(house.sample(range(1, 13), 8))
    pairs = list(zip(months, sorted(house.sample(range(1, 13), 8)), strict=True))
    maker = Inventor(rng, ("Drawdown", "Administration", "Payout"), ("Contribution", "Credit", "Top-up"), income=0.6)
    maker.days = [date(year, month, day) for month, day in pairs if month != day]
    opening = _cents(rng, 80_000, 300_000)
    entries = maker.entries(maker.days[0], maker.days[-1], rng.randint(9, 16), opening)
    # Both readings are possible only where each entry's day and month differ and neither exceeds twelve.
    sheet.line(560, bank[seed], "r", size=15, bold=True)
    sheet.line(50, f"Record of agreement {house.randint(10**4, 10**5)}")
    sheet.down(14)
    sheet.pair(50, "Brought forward", 250, figure(opening))
    sheet.note("opening", opening)
    sheet.pair(50, "Carried forward", 250, figure(entries[-1].balance))
    sheet.note("closing", entries[-1].balance)
    sheet.down(14)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Entered",)),
            Column("text", 150, "l", ("Kind",)),
            Column("amount", 400, "r", ("Amount",)),
            Column("balance", 520, "r", ("Balance",)),
        ),
    )
    Table(
        sheet,
        columns,
        lambda each: {
            "date": f"{each.day:%m-%d-%y}",
            "amount": ("-" if each.amount < 0 else "+") + figure(abs(each.amount)),
            "balance": figure(each.balance),
        },
    ).print(entries)
    return sheet.finish(rng, dates_certain=False)


def _decided_by_balances(seed: int, later: int) -> Statement:
    """Draw days up to the twelfth that are put in order by the days of the balances."""
    house, rng = _seeded("decided by balances", seed, later)
    bank = ("Cinnabar Bank", "Wheatsheaf Bank", "Bank of Lower Fens", "Turnstone Bank", "Gatehouse Bank")
    first, _ = month_of(2024, (4, 6, 7, 9, 11)[seed], later)
    end, before = first + timedelta(days=11), first - timedelta(days=1)
    is_american = seed % 2 == 1
    form = "%m/%d/%Y" if is_american else "%d/%m/%Y"
    sheet = Sheet(house, size=9.2)
    opening = _cents(rng, 50_000, 300_000)
    entries = Inventor(rng, _BRITISH, _BRITISH_IN).entries(first, end, rng.randint(10, 26), opening)
    sheet.line(50, bank[seed], size=16, bold=True)
    sheet.line(50, "Mini statement")
    sheet.down(14)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Date",)),
            Column("text", 130, "l", ("Payee or payer",)),
            Column("in", 380, "r", ("Received",)),
            Column("out", 470, "r", ("Spent",)),
        ),
    )
    sheet.pair(130, f"Balance on {before.strftime(form)}", 470, figure(opening))
    sheet.note("opening", opening)
    sheet.down(6)
    Table(
        sheet,
        columns,
        lambda each: {
            "date": each.day.strftime(form),
            "out" if each.amount < 0 else "in": figure(abs(each.amount)),
        },
    ).print(entries)
    sheet.down(6)
    sheet.write(130, "Totals")
    sheet.write(columns[2].x, figure(total(entries, 1)), "r")
    sheet.line(columns[3].x, figure(-total(entries, -1)), "r")
    sheet.note("deposits", total(entries, 1))
    sheet.note("withdrawals", -total(entries, -1))
    sheet.pair(130, f"Balance on {end.strftime(form)}", 470, figure(entries[-1].balance))
    sheet.note("closing", entries[-1].balance)
    return sheet.finish(rng)


def _two_dollars(seed: int, later: int) -> Statement:
    """Draw two accounts in two kinds of dollars, the currency in front, an overview of both on top."""
    house, rng = _seeded("two dollars", seed, later)
    bank = ("Straits Lantern Bank", "Merlion Hill Bank", "Temasek Row Bank", "Pandan Bank", "Raintree Bank")
    first, last = month_of(2024, 1 + 2 * seed, later)
    sheet = Sheet(house, size=8.8)
    accounts = []
    for account, (name, mark, code) in enumerate((("Everyday Saver", "S$", "SGD"), ("Global Account", "US$", "USD"))):
        opening = _cents(rng, 90_000, 900_000)
        maker = Inventor(rng, _STRAITS, _STRAITS_IN, income=0.25)
        entries = maker.entries(first, last, rng.randint(8, 24), opening)
        accounts.append(
            (account, f"{name} {house.randint(100, 999)}-{house.randint(10000, 99999)}", mark, code, opening, entries)
        )
    sheet.line(50, bank[seed], size=16, bold=True)
    sheet.line(50, f"Consolidated statement as at {last.day} {_ENGLISH[last.month - 1]} {last.year}")
    sheet.down(12)
    sheet.write(50, "Your accounts", bold=True)
    sheet.line(420, f"{_ENGLISH[last.month - 1]} balance", "r", bold=True)
    for account, title, mark, _, _, entries in accounts:
        sheet.pair(50, title, 420, f"{mark}{figure(entries[-1].balance)}")
        sheet.note("closing", entries[-1].balance, account)
    for account, title, mark, code, opening, entries in accounts:
        sheet.down(22)
        sheet.need(140)
        sheet.line(50, f"{title} ({code})", size=11, bold=True)
        columns = moved(
            house,
            (
                Column("date", 50, "l", ("Date",)),
                Column("text", 105, "l", ("Description",)),
                Column("out", 345, "r", ("Withdrawal",)),
                Column("in", 440, "r", ("Deposit",)),
                Column("balance", 540, "r", ("Balance",)),
            ),
            2,
        )

        def marked(amount: Decimal, mark: str = mark) -> str:
            return f"{'-' if amount < 0 else ''}{mark}{figure(abs(amount))}"

        table = Table(
            sheet,
            columns,
            lambda each, marked=marked: {  # type: ignore[misc]
                "date": f"{each.day.day:02} {_ENGLISH[each.day.month - 1]}",
                "out" if each.amount < 0 else "in": marked(abs(each.amount)),
                "balance": marked(each.balance),
            },
            account=account,
            currency=code,
            is_date_once=True,
        )
        sheet.write(105, "Balance brought forward")
        sheet.line(columns[4].x, marked(opening), "r")
        sheet.note("opening", opening, account)
        sheet.down(3)
        table.print(entries)
        sheet.need(30)
        table.row({"text": "Total", "out": marked(-total(entries, -1)), "in": marked(total(entries, 1))}, bold=True)
        sheet.note("withdrawals", -total(entries, -1), account)
        sheet.note("deposits", total(entries, 1), account)
        sheet.down(sheet.step)
    return sheet.finish(rng)


def _newspaper(seed: int, later: int) -> Statement:
    """Draw one list of movements that goes on in a second column of the page, like a newspaper."""
    house, rng = _seeded("newspaper", seed, later)
    bank = ("Livret Bel Air", "Épargne du Vallon", "Caisse Pré Fleuri", "Livret des Halles", "Épargne Grand Large")
    first, last = month_of(2024, 1 + seed, later)
    sheet = Sheet(house, size=8.4)
    opening = _cents(rng, 100_000, 900_000)
    maker = Inventor(
        rng,
        ("Retrait guichet", "Achat Vélos Tilleul", "Prélèvement gaz", "Chèque émis"),
        ("Versement", "Intérêts", "Virement reçu"),
    )
    entries = maker.entries(first, last, rng.randint(20, 44), opening)
    sheet.line(50, bank[seed], size=15, bold=True)
    sheet.line(50, f"Relevé des mouvements du {first:%d/%m/%Y} au {last:%d/%m/%Y}")
    sheet.down(10)
    sheet.pair(50, "Solde au début", 285, f"{figure(opening, ' ', ',')} €")
    sheet.note("opening", opening)
    sheet.pair(50, "Solde à la fin", 285, f"{figure(entries[-1].balance, ' ', ',')} €")
    sheet.note("closing", entries[-1].balance)
    sheet.down(18)
    left = moved(
        house,
        (
            Column("date", 50, "l", ("Date",)),
            Column("text", 105, "l", ("Opération",)),
            Column("amount", 285, "r", ("Montant €",)),
        ),
        2,
    )
    half, top, ends = (len(entries) + 1) // 2, sheet.y, []
    for part, offset in ((entries[:half], 0.0), (entries[half:], 262.0)):
        sheet.y = top
        Table(
            sheet,
            [replace(each, x=each.x + offset) for each in left],
            lambda each: {
                "date": f"{each.day:%d/%m}",
                "amount": ("- " if each.amount < 0 else "+ ") + figure(abs(each.amount), " ", ","),
            },
            extent=(48 + offset, 290 + offset),
        ).print(part)
        ends.append(sheet.y)
    sheet.stroke(302, top, max(ends))
    sheet.y = max(ends) + 14
    sheet.line(50, f"{len(entries)} opérations. Taux annuel 2,25 %.", size=7.5)
    return sheet.finish(rng)


def _turned_ledger(seed: int, later: int) -> Statement:
    """Draw a turned ledger with titles over three lines and sums carried from page to page."""
    house, rng = _seeded("turned ledger", seed, later)
    bank = (
        "Harrowgate Treasury Bank",
        "Anvil Commercial",
        "Brightwater Merchant Bank",
        "Lockkeeper's Bank",
        "Fosse Bank",
    )
    first, last = month_of(2024, 2 + seed, later)
    sheet = Sheet(house, size=8.8, width=842, height=595, bottom=56)
    sheet.foot_x = 60
    opening = _cents(rng, 900_000, 9_000_000)
    maker = Inventor(rng, _BRITISH, ("Invoice settled", "Card takings", "Grant"), income=0.35, lag=2, most_in=400_000)
    maker.mark = lambda source: f"{source.randint(100000, 999999)}"
    entries = maker.entries(first, last, rng.randint(30, 58), opening)
    sheet.line(790, bank[seed], "r", size=15, bold=True)
    sheet.line(50, f"Ledger of account {house.randint(10**7, 10**8)} GBP")
    sheet.line(50, f"{first.day} {first:%B %Y} to {last.day} {last:%B %Y}")
    sheet.down(14)
    columns = moved(
        house,
        (
            Column("mark", 100, "r", ("", "Serial", "number")),
            Column("date", 120, "l", ("", "Entry", "date")),
            Column("value", 200, "l", ("", "Value", "date")),
            Column("text", 285, "l", ("", "", "Particulars of the entry")),
            Column("out", 560, "r", ("Debited", "to the", "account")),
            Column("in", 670, "r", ("Credited", "to the", "account")),
            Column("balance", 790, "r", ("Balance", "after the", "entry")),
        ),
    )
    Table(
        sheet,
        columns,
        lambda each: {
            "date": f"{each.day:%d.%m.%y}",
            "value": f"{each.value_day:%d.%m.%y}",
            "out" if each.amount < 0 else "in": figure(abs(each.amount)),
            "balance": figure(each.balance),
        },
        carry_out=lambda amount: {"text": "Balance to next sheet", "balance": figure(amount)},
        carry_in=lambda amount: {"text": "Balance from previous sheet", "balance": figure(amount)},
        extent=(45, 795),
        per_page=22,
    ).print(entries)
    sheet.down(8)
    sheet.need(40)
    sheet.pair(285, "Opening position", 790, figure(opening))
    sheet.note("opening", opening)
    sheet.pair(285, "Closing position", 790, figure(entries[-1].balance), bold=True)
    sheet.note("closing", entries[-1].balance)
    return sheet.finish(rng, turn=270)


def _plus_behind(seed: int, later: int) -> Statement:
    """Draw a scanned statement with plus or minus behind every amount, over New Year, days without a year."""
    house, rng = _seeded("plus behind", seed, later)
    bank = ("Saaristopankki", "Kivikylän Säästöpankki", "Järviseudun Pankki", "Pankki Pohjantähti", "Havupankki")
    start, end = cycle_of(2023, 12, house.randint(8, 20), later + 1)
    sheet = Sheet(house, size=10.0, font="helv", leading=1.65)
    sheet.footer = lambda number, count: f"Sivu {number}"
    opening = _cents(rng, 60_000, 400_000)
    maker = Inventor(rng, _FINNISH, _FINNISH_IN, income=0.25, lag=2)
    entries = maker.entries(start, end - timedelta(days=2), rng.randint(10, 20), opening)

    def signed(amount: Decimal) -> str:
        return figure(abs(amount), " ", ",") + ("-" if amount < 0 else "+")

    sheet.line(50, bank[seed], size=16, bold=True)
    sheet.line(50, f"TILIOTE {start:%d.%m.%Y} - {end:%d.%m.%Y}")
    sheet.down(14)
    sheet.pair(50, "Alkusaldo", 500, signed(opening))
    sheet.note("opening", opening)
    sheet.down(10)
    columns = (
        Column("date", 50, "l", ("Kirjauspäivä",)),
        Column("value", 140, "l", ("Arvopäivä",)),
        Column("text", 220, "l", ("Selitys",)),
        Column("amount", 500, "r", ("Määrä EUR",)),
    )
    Table(
        sheet,
        columns,
        lambda each: {
            "date": f"{each.day:%d.%m.}",
            "value": f"{each.value_day:%d.%m.}",
            "amount": signed(each.amount),
        },
    ).print(entries)
    sheet.down(10)
    sheet.pair(50, "Panot yhteensä", 500, signed(total(entries, 1)))
    sheet.note("deposits", total(entries, 1))
    sheet.pair(50, "Otot yhteensä", 500, signed(total(entries, -1)))
    sheet.note("withdrawals", -total(entries, -1))
    sheet.pair(50, "Loppusaldo", 500, signed(entries[-1].balance), bold=True)
    sheet.note("closing", entries[-1].balance)
    return sheet.finish(rng, scan=True)


def _card_in_leap_year(seed: int, later: int) -> Statement:
    """Draw a scanned card with a minus in front of payments and the twenty-ninth of February among the days."""
    house, rng = _seeded("card in leap year", seed, later)
    bank = ("Sandpiper Visa-free Card", "Two Rivers Card", "Hickory Card", "Bluebonnet Card", "Saguaro Card")
    start, end = cycle_of(2024, 3, house.randint(9, 20), later)
    sheet = Sheet(house, size=10.2, font="helv", leading=1.6, width=612, height=792)
    opening = -_cents(rng, 20_000, 200_000)
    shops = ("DUSTY BOOTS RANCH SUPPLY", "PECAN GROVE DINER", "LONE OAK GAS", "MESA BOOKS", "CHAPARRAL PETS")
    maker = Inventor(rng, shops, ("AUTOPAY PAYMENT",), income=0.1, most_in=40_000)
    entries = maker.entries(start, end, rng.randint(10, 20), opening)
    entries[2] = replace(entries[2], lines=("AUTOPAY PAYMENT",), amount=_cents(rng, 10_000, 20_000))
    if not later:
        entries[5] = replace(entries[5], day=date(2024, 2, 29))
    entries = balanced(sorted(entries, key=lambda each: each.day), opening)
    sheet.line(560, bank[seed], "r", size=15, bold=True)
    sheet.line(50, f"Billing cycle {start:%m/%d/%Y} - {end:%m/%d/%Y}")
    sheet.line(50, f"Payment due date {end + timedelta(days=25):%m/%d/%Y}")
    sheet.down(14)
    for x, label, amount in (
        (50, "Previous balance", -opening),
        (180, "- Payments", total(entries, 1)),
        (300, "+ Purchases", -total(entries, -1)),
        (430, "= New balance", -entries[-1].balance),
    ):
        sheet.write(x, label)
        sheet.write(x, f"${figure(amount)}", y=sheet.y + 16, bold=True)
    sheet.note("opening", opening)
    sheet.note("deposits", total(entries, 1))
    sheet.note("withdrawals", -total(entries, -1))
    sheet.note("closing", entries[-1].balance)
    sheet.down(50)
    columns = (
        Column("date", 50, "l", ("Date",)),
        Column("text", 130, "l", ("Transaction",)),
        Column("amount", 540, "r", ("Amount",)),
    )
    Table(
        sheet,
        columns,
        lambda each: {
            "date": f"{each.day:%m/%d}",
            "amount": f"-${figure(each.amount)}" if each.amount > 0 else f"${figure(-each.amount)}",
        },
        extent=(45, 545),
    ).print(entries)
    return sheet.finish(rng, scan=True)


def _bare_rows(seed: int, later: int) -> Statement:
    """Draw rows under no titles, the currency behind, an empty part, and entries that were reversed."""
    house, rng = _seeded("bare rows", seed, later)
    bank = ("Bank Spółdzielczy Jarzębina", "Kasa Modrzewie", "Bank Pod Dębem", "Kasa Słowik", "Bank Nadwiślany")
    first, last = month_of(2024, 1 + 2 * seed, later)
    sheet = Sheet(house, size=9.2)
    sheet.footer = lambda number, count: f"Strona {number} z {count}"
    opening = _cents(rng, 60_000, 900_000)
    entries = Inventor(rng, _POLISH, _POLISH_IN, income=0.25, most_out=90_000).entries(
        first, last, rng.randint(16, 44), opening
    )
    for number in sorted({rng.randrange(3, len(entries)) for _ in range(2)}):
        before = entries[number - 1]
        entries[number] = replace(
            entries[number], day=before.day, lines=("Korekta", before.lines[0]), amount=-before.amount
        )
    entries = balanced(sorted(entries, key=lambda each: each.day), opening)

    def zloty(amount: Decimal) -> str:
        return ("-" if amount < 0 else "+") + figure(abs(amount), " ", ",") + " PLN"

    sheet.line(50, bank[seed], size=15, bold=True)
    sheet.line(50, f"Wyciąg za okres {first:%d.%m.%Y} - {last:%d.%m.%Y}")
    sheet.line(50, f"Saldo początkowe: {figure(opening, ' ', ',')} PLN")
    sheet.note("opening", opening)
    sheet.line(50, f"Saldo końcowe: {figure(entries[-1].balance, ' ', ',')} PLN")
    sheet.note("closing", entries[-1].balance)
    sheet.down(16)
    sheet.line(50, "Lokaty", size=11, bold=True)
    sheet.line(50, "Brak operacji w tym okresie")
    sheet.down(12)
    sheet.line(50, "Rachunek osobisty", size=11, bold=True)
    sheet.down(6)
    columns = moved(house, (Column("date", 50, "l"), Column("text", 125, "l"), Column("amount", 520, "r")))
    Table(
        sheet,
        columns,
        lambda each: {"date": f"{each.day:%d.%m.%Y}", "amount": zloty(each.amount)},
        has_head=False,
        row_rule=(48, 525),
    ).print(entries)
    return sheet.finish(rng)


def _page_lost(seed: int, later: int) -> Statement:
    """Draw a statement whose middle page is lost: a person must look."""
    house, rng = _seeded("page lost", seed, later)
    bank = ("Sorrel Bank", "Gannet Rock Bank", "Bank of Upper Wold", "Damson & Co Bank", "Hopfield Bank")
    start, end = cycle_of(2024, 2 + seed, house.randint(9, 24), later)
    sheet = Sheet(house, size=9.0)
    opening = _cents(rng, 50_000, 400_000)
    entries = Inventor(rng, _BRITISH, _BRITISH_IN).entries(start, end, rng.randint(46, 60), opening)
    sheet.line(50, bank[seed], size=15, bold=True)
    sheet.line(50, f"{start.day} {start:%B %Y} - {end.day} {end:%B %Y}")
    sheet.down(14)
    sheet.pair(50, "Opening balance", 545, figure(opening))
    sheet.note("opening", opening)
    sheet.pair(50, "Closing balance", 545, figure(entries[-1].balance))
    sheet.note("closing", entries[-1].balance)
    sheet.down(10)
    columns = moved(
        house,
        (
            Column("date", 50, "l", ("Date",)),
            Column("text", 115, "l", ("Transaction",)),
            Column("amount", 440, "r", ("In/Out",)),
            Column("balance", 545, "r", ("Balance",)),
        ),
    )
    Table(
        sheet,
        columns,
        lambda each: {
            "date": f"{each.day.day:02} {_ENGLISH[each.day.month - 1]} {each.day:%y}",
            "amount": figure(each.amount),
            "balance": figure(each.balance),
        },
        per_page=20,
    ).print(entries)
    return sheet.finish(rng, has_sums_right=False, lost=2)


def _shapes(shapes: Sequence[DrawShape]) -> dict[str, DrawShape]:
    return {each.__name__.strip("_").replace("_", " "): each for each in shapes}


#: Every function draws one statement of a bank (its seed) and a month (0, or 1 for the next).
SHAPES: dict[str, DrawShape] = _shapes(
    (
        _card_by_totals,
        _card_in_three_parts,
        _purchase_account,
        _letters_glued,
        _letters_between,
        _letter_in_front,
        _crowns_apart,
        _latest_on_top,
        _told_by_words,
        _one_balance,
        _either_way,
        _decided_by_balances,
        _two_dollars,
        _newspaper,
        _turned_ledger,
        _plus_behind,
        _card_in_leap_year,
        _bare_rows,
        _page_lost,
    )
)
