"""The sealed half of strangers' tax forms: authors of rules do not read it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol

from benchmarks.first_contact.tax_layouts.drawing import (
    Cell,
    Facts,
    Form,
    Inventor,
    Layout,
    Pen,
    Pool,
    Style,
    contractor_facts,
    dividend_facts,
    interest_facts,
    mortgage_facts,
    only_year,
    partner_facts,
    pension_facts,
    rent_facts,
    wage_facts,
    without,
)

POOL = Pool(
    first=("Ingrid", "Tobias", "Farah", "Desmond", "Keiko", "Paulette", "Ravi", "Solveig", "Emeka", "Corinne"),
    last=("Abernathy", "Szymanski", "Fontaine", "Mbeki", "Halvorsen", "Ruiz", "Thackeray", "Okonjo", "Weiss", "McRae"),
    firms=(
        "Cedar Gorge Orthopedics LLC",
        "Blue Heron Pharmacy Inc.",
        "Lantern Street Bakery LLC",
        "Harrow & Pike Surveying Inc.",
        "Saint Odile Nursing Center",
        "Quill River Electric Corp.",
        "Amberfield Staffing Inc.",
    ),
    banks=("Stonebridge National Bank", "Wheatland Mutual", "First Cascade Federal", "Harborlight Funds"),
    streets=("Juniper Way", "Old Mill Road", "N 7th Street", "Prospect Parkway", "Sycamore Ct", "Route 9 West"),
    cities=(
        ("Duluth", "MN", "55802"),
        ("Savannah", "GA", "31401"),
        ("Provo", "UT", "84601"),
        ("Louisville", "KY", "40202"),
        ("Wilmington", "DE", "19801-3305"),
        ("Topeka", "KS", "66603"),
    ),
    localities=("LOUISVILLE", "WILMINGTON", "JEFFERSON"),
)

WORDS: dict[str, tuple[str, str]] = {
    "1": ("Wages, tips, other compens.", "wages_tips"),
    "2": ("Federal income tax w/held", "federal_tax_withheld"),
    "3": ("Social Security wages", "ss_wages"),
    "4": ("Social Security tax w/held", "ss_tax_withheld"),
    "5": ("Medicare wages & tips", "medicare_wages"),
    "6": ("Medicare tax w/held", "medicare_tax_withheld"),
    "7": ("Social Security tips", "box_7"),
    "8": ("Allocated tips", "box_8"),
    "10": ("Dependent care benefits", "box_10"),
    "11": ("Nonqualified plans", "box_11"),
}
FULL = WORDS | {
    "1": ("Wages, tips, other compensation", "wages_tips"),
    "2": ("Federal income tax withheld", "federal_tax_withheld"),
    "4": ("Social security tax withheld", "ss_tax_withheld"),
    "6": ("Medicare tax withheld", "medicare_tax_withheld"),
}
BRIEF = WORDS | {
    "1": ("Wages/Tips/Other comp", "wages_tips"),
    "2": ("Fed income tax", "federal_tax_withheld"),
    "3": ("Soc Sec wages", "ss_wages"),
    "4": ("Soc Sec tax", "ss_tax_withheld"),
    "5": ("Medicare wages/tips", "medicare_wages"),
    "6": ("Medicare tax", "medicare_tax_withheld"),
    "7": ("Soc Sec tips", "box_7"),
    "10": ("Dependent care", "box_10"),
}
FIRM = ("employer_name", "employer_street", "employer_city")
WORKER = ("employee_name", "employee_street", "employee_city")
SENDER = ("payer_name", "payer_street", "payer_city")
RECEIVER = ("recipient_name", "recipient_street", "recipient_city")
TICKS = (
    ("Statutory employee", "box_13_statutory_employee"),
    ("Retirement plan", "box_13_retirement_plan"),
    ("Third-party sick pay", "box_13_third_party_sick_pay"),
)


class Painter(Protocol):
    """Draws a layout into a document."""

    def __call__(self, document: Any, facts: Facts, style: Style, **options: Any) -> list[Form]:
        """Draw it; return its forms."""


def wages(words: dict[str, tuple[str, str]], order: str) -> list[Cell]:
    """Numbered boxes of a W-2 in the given order."""
    return [(number, *words[number]) for number in order.split()]


def sheet(document: Any, facts: Facts, style: Style, kind: str, *, copies: int = 1, flat: bool = False) -> Pen:
    """A pen on a new page, with one form."""
    page = document.new_page(width=792 if flat else 612, height=612 if flat else 792)
    return Pen(page, style, facts, [Form(kind, len(document), copies)], 42, 44)


def code_boxes(pen: Pen, x: float, y: float, w: float, h: float, *, across: bool) -> None:
    """Boxes 12a to 12d beside or below one another."""
    for number, letter in enumerate("abcd"):
        place = (x + w * number, y) if across else (x, y + h * number)
        names = (f"box_12{letter}_code", f"box_12{letter}_amount")
        pen.cell(*place, w, h, (f"12{letter}", "Code" if letter == "a" else "", names[0]), names[1], beside=True)


def state_line(pen: Pen, x: float, y: float, widths: Sequence[float], h: float, end: str = "") -> None:
    """Boxes 15 to 20 of one state as a row of boxes."""
    names = (f"box_15{end}_state", f"box_15{end}_id")
    pen.cell(x, y, widths[0], h, ("15", "State / Employer state I.D. no.", names[0]), names[1], beside=True)
    x += widths[0]
    rest = (
        ("16", "State wages, tips, etc."),
        ("17", "State income tax"),
        ("18", "Local wages, tips"),
        ("19", "Local income tax"),
        ("20", "Locality"),
    )
    for (number, label), w in zip(rest, widths[1:], strict=True):
        pen.cell(x, y, w, h, (number, label, f"box_{number}{end}"))
        x += w


# ------------------------------------------------------------------------------------------------------- W-2


def tower(document: Any, facts: Facts, style: Style, **options: Any) -> list[Form]:
    """People in a narrow tower, amounts in one column of wide boxes."""
    pen = sheet(document, facts, style, "W-2")
    pen.write(0, 10, "Form W-2 Wage & Tax Statement", 11, style.strong)
    pen.entry(200, 10, "tax_year", 12)
    w = options.get("people", 200)
    pen.cell(0, 20, w, 30, ("a", "Employee's social security no.", "employee_ssn"))
    pen.cell(0, 50, w, 66, ("e", "Employee's name", ""))
    pen.block(6, 70, WORKER)
    pen.cell(0, 116, w, 30, ("b", "Employer I.D. no. (EIN)", "employer_ein"))
    pen.cell(0, 146, w, 66, ("c", "Employer's name & address", ""))
    pen.block(6, 166, FIRM)
    pen.cell(0, 212, w, 30, ("d", "Control no.", "control_number"))
    y = pen.grid(
        w + 12, 20, (200,), options.get("tall", 26), wages(options.get("words", WORDS), "1 2 3 4 5 6 7 8 10 11")
    )
    code_boxes(pen, w + 222, 20, 96, 28, across=False)
    pen.cell(w + 222, 132, 96, 52, ("14", "Other", ""))
    pen.row(w + 227, 160, ("box_14_word", "box_14_amount"))
    pen.row(w + 227, 174, ("box_14_word2", "box_14_amount2"))
    for number, (label, name) in enumerate(TICKS):
        pen.tick(w + 226, 206 + 14 * number, label, name)
    state_line(pen, 0, y + 6, (140, 85, 75, 85, 70, 75), 30)
    if "box_16_2" in facts:
        state_line(pen, 0, y + 36, (140, 85, 75, 85, 70, 75), 30, "_2")
    return list(pen.forms)


def checkerboard(document: Any, facts: Facts, style: Style, **options: Any) -> list[Form]:
    """Amounts in a board of four columns, people in a strip at its foot."""
    pen = sheet(document, facts, style, "W-2")
    _checkerboard(pen, options.get("words", FULL), options.get("wide", 530), top=options.get("people_on_top", False))
    pen.note(0, 330, 500, "This information is being furnished to the IRS. Copy C, for the employee's records.", 6.5)
    return list(pen.forms)


def _checkerboard(pen: Pen, words: dict[str, tuple[str, str]], wide: float, *, top: bool) -> float:
    w, h = wide / 4, 28.0
    pen.entry(0, 10, "tax_year", 12)
    pen.write(40, 10, "W-2   Wage and Tax Statement     OMB No. 1545-0008", 8, pen.style.strong)
    board = 16 + (100 if top else 0)
    people = 16 if top else board + 5 * h
    pen.grid(0, board, (w, w, w, w), h, wages(words, "1 2 3 4 5 6 7 8"))
    pen.grid(0, board + 2 * h, (w, w), h, wages(words, "10 11"))
    pen.cell(2 * w, board + 2 * h, w, h, ("13", "", ""))
    for number, (_, name) in enumerate(TICKS):
        pen.write(2 * w + 26 + number * w * 0.25, board + 2 * h + 9, ("Stat", "Retire", "3rd Pty")[number], 5)
        pen.tick(2 * w + 26 + number * w * 0.25, board + 2 * h + 21, "", name)
    pen.cell(3 * w, board + 2 * h, w, 2 * h, ("14", "Other", ""))
    pen.row(3 * w + 5, board + 2 * h + 24, ("box_14_word", "box_14_amount"))
    pen.row(3 * w + 5, board + 2 * h + 36, ("box_14_word2", "box_14_amount2"))
    code_boxes(pen, 0, board + 3 * h, w * 0.75, h, across=True)
    pen.cell(0, board + 4 * h, w, h, ("d", "Control number", "control_number"))
    pen.cell(w, board + 4 * h, w, h, ("b", "Employer's EIN", "employer_ein"))
    pen.cell(2 * w, board + 4 * h, 2 * w, h, ("a", "Employee's SSN", "employee_ssn"))
    pen.cell(0, people, 2 * w, 70, ("c", "Employer's name, address, ZIP", "employer_name"), *FIRM[1:])
    pen.cell(2 * w, people, 2 * w, 70, ("e f", "Employee's name, address, ZIP", "employee_name"), *WORKER[1:])
    foot = max(board + 5 * h, people + 70)
    share = wide / 530
    widths = [share * size for size in (130, 90, 75, 90, 70, 75)]
    state_line(pen, 0, foot, widths, 28)
    if "box_16_2" in pen.facts:
        state_line(pen, 0, foot + 28, widths, 28, "_2")
        foot += 28
    return foot + 28


def three_stacked(document: Any, facts: Facts, style: Style, **options: Any) -> list[Form]:
    """Three copies above one another on a sheet to tear."""
    pen = sheet(document, facts, style, "W-2", copies=3)
    for number in range(3):
        strip = pen.moved(40, 26 + 252 * number, 0.78)
        strip.write(430, 10, ("Federal copy", "State copy", "Employee copy")[number], 8)
        _checkerboard(strip, options.get("words", WORDS), 660, top=False)
        if number:
            pen.rule(-30, 252 * number - 24, 550, 252 * number - 24, 0.2)
    return list(pen.forms)


def flat_quad(document: Any, facts: Facts, style: Style, **options: Any) -> list[Form]:
    """Four copies on a page in landscape, people between the columns of amounts."""
    pen = sheet(document, facts, style, "W-2", copies=4, flat=True)
    for number in range(4):
        copy = pen.moved(30 + 370 * (number % 2), 30 + 278 * (number // 2))
        copy.write(0, 8, ("Copy B", "Copy C", "Copy 2", "Copy 2")[number], 6.5, style.strong)
        copy.write(180, 8, "W-2 Wage and Tax Statement", 6.5, style.strong, align="middle")
        copy.entry(330, 8, "tax_year", 9)
        words = options.get("words", BRIEF)
        copy.grid(0, 14, (90,), 26, wages(words, "1 3 5 7 10"))
        copy.grid(270, 14, (90,), 26, wages(words, "2 4 6 8 11"))
        copy.cell(90, 14, 90, 26, ("a", "Employee SSN", "employee_ssn"))
        copy.cell(180, 14, 90, 26, ("b", "Employer ID (EIN)", "employer_ein"))
        copy.cell(90, 40, 180, 50, ("c", "Employer", "employer_name"), *FIRM[1:])
        copy.cell(90, 90, 180, 54, ("e", "Employee", "employee_name"), *WORKER[1:])
        code_boxes(copy, 0, 144, 72, 26, across=True)
        copy.cell(288, 144, 72, 26, ("d", "Control", "control_number"))
        copy.cell(0, 170, 130, 26, ("14", "Other", "box_14_word"), "box_14_amount", beside=True)
        for place, (label, name) in enumerate(TICKS):
            copy.tick(140 + 76 * place, 186, label, name, 6, 60)
        state_line(copy, 0, 196, (90, 62, 52, 58, 46, 52), 26)
        if "box_16_2" in facts:
            state_line(copy, 0, 222, (90, 62, 52, 58, 46, 52), 26, "_2")
    return list(pen.forms)


def window_letter(document: Any, facts: Facts, style: Style, **options: Any) -> list[Form]:
    """A letter for a window envelope; the form is a list of pairs in two columns."""
    pen = sheet(document, facts, style, "W-2")
    pen.block(0, 12, FIRM)
    pen.block(40, 110, WORKER)
    pen.write(300, 12, "IMPORTANT TAX RETURN DOCUMENT ENCLOSED", 8, style.strong)
    y = 210.0
    pen.write(0, y, "W-2 Wage and Tax Statement for the year", 10, style.strong)
    pen.entry(230, y, "tax_year", 10)
    pairs: list[tuple[str, tuple[str, ...]]] = [
        ("(a) Employee's social security number", ("employee_ssn",)),
        ("(b) Employer identification number", ("employer_ein",)),
        ("(c) Employer's name", ("employer_name",)),
        ("(d) Control number", ("control_number",)),
        ("(e) Employee's name", ("employee_name",)),
    ]
    pairs += [
        (f"({number}) {label}", (name,)) for number, label, name in wages(options.get("words", FULL), "1 2 3 4 5 6")
    ]
    pairs += [(f"(12{c}) Code and amount", (f"box_12{c}_code", f"box_12{c}_amount")) for c in "ab"]
    pairs += [("(14) Other", ("box_14_word", "box_14_amount"))]
    pairs += [("(15) State, employer's state number", ("box_15_state", "box_15_id"))]
    pairs += [("(16) State wages, tips, etc.", ("box_16",)), ("(17) State income tax", ("box_17",))]
    pairs += [("(18) Local wages", ("box_18",)), ("(19) Local income tax", ("box_19",)), ("(20) Locality", ("box_20",))]
    for count, (label, names) in enumerate(pairs):
        x = 0 if count < (len(pairs) + 1) // 2 else 275
        row = count % ((len(pairs) + 1) // 2)
        pen.write(x, y + 24 + 18 * row, label, 6.5)
        pen.row(x + 250, y + 24 + 18 * row, names, " ", "right")
    return list(pen.forms)


def last_stub(document: Any, facts: Facts, style: Style, **options: Any) -> list[Form]:
    """The last pay slip of the year above, the form below."""
    pen = sheet(document, facts, style, "W-2")
    pen.write(0, 10, "YEAR-END PAY SUMMARY", 10, style.strong)
    pen.write(250, 24, "This period", 7, style.strong, align="right")
    pen.write(350, 24, "Year to date", 7, style.strong, align="right")
    pay = facts.get("wages_tips", "")
    if not isinstance(pay, str):
        rows = (
            ("Regular pay", pay / 26, pay + 2880),
            ("Medical pre-tax", -110, -2880),
            ("Net pay", pay / 33, pay / 3 * 2),
        )
        for place, (label, now, year) in enumerate(rows):
            pen.write(0, 38 + 13 * place, label, 7)
            pen.write(250, 38 + 13 * place, f"{now:,.2f}", 8, "cour", align="right")
            pen.write(350, 38 + 13 * place, f"{year:,.2f}", 8, "cour", align="right")
    below = pen.moved(42, 150)
    _checkerboard(below, options.get("words", WORDS), options.get("wide", 500), top=True)
    return list(pen.forms)


def headed_rows(document: Any, facts: Facts, style: Style, **options: Any) -> list[Form]:
    """A spreadsheet: a row of headings, the values below it."""
    pen = sheet(document, facts, style, "W-2", flat=True)
    pen.write(0, 10, "W-2 WAGE AND TAX STATEMENT", 12, style.strong)
    pen.write(230, 10, "Tax Year", 7)
    pen.entry(264, 10, "tax_year", 10)
    rows: list[list[tuple[str, tuple[str, ...]]]] = [
        [
            ("a. Employee SSN", ("employee_ssn",)),
            ("b. Employer EIN", ("employer_ein",)),
            ("d. Control number", ("control_number",)),
        ],
        [("c. Employer name", ("employer_name",)), ("Employer address", FIRM[1:])],
        [("e. Employee name", ("employee_name",)), ("f. Employee address", WORKER[1:])],
        [(f"{number}. {label}", (name,)) for number, label, name in wages(options.get("words", FULL), "1 2 3 4 5 6")],
        [(f"12{letter}.", (f"box_12{letter}_code", f"box_12{letter}_amount")) for letter in "abcd"],
    ]
    for end in ("", "_2"):
        if f"box_16{end}" in facts or not end:
            row: list[tuple[str, tuple[str, ...]]] = [("15. State / ID", (f"box_15{end}_state", f"box_15{end}_id"))]
            labels = ("State wages", "State tax", "Local wages", "Local tax", "Locality")
            row += [(f"{n}. {label}", (f"box_{n}{end}",)) for n, label in zip(range(16, 21), labels, strict=True)]
            rows.append(row)
    y = 30.0
    for line in rows:
        w = 700 / len(line)
        if options.get("grey"):
            pen.rect(0, y, 700, 11, fill=0.88)
        for number, (label, names) in enumerate(line):
            pen.write(number * w + 3, y + 8, label, style.label_size)
            pen.row(number * w + 3, y + 22, names, ", " if len(names) == 2 and "street" in names[0] else " ")
            if options.get("ruled"):
                pen.rect(number * w, y, w, 27, line=0.4)
        y += 34
    return list(pen.forms)


def underlined(document: Any, facts: Facts, style: Style, **options: Any) -> list[Form]:
    """Values on rules, labels in small print below them."""
    pen = sheet(document, facts, style, "W-2")
    pen.write(265, 12, "Wage and Tax Statement (Form W-2)", 12, style.strong, align="middle")
    pen.entry(265, 28, "tax_year", 11, "middle")
    y = 44.0
    people: list[Cell] = [
        ("a", "Employee's social security number", "employee_ssn"),
        ("b", "Employer identification number", "employer_ein"),
    ]
    y = pen.grid(0, y, (260, 260), 20, people) + 8
    pen.cell(0, y, 260, 40, ("c", "Employer's name, address, and ZIP code", "employer_name"), *FIRM[1:])
    pen.cell(260, y, 260, 40, ("e", "Employee's name, address, and ZIP code", "employee_name"), *WORKER[1:])
    y = pen.grid(0, y + 60, (130, 130, 130, 130), 20, wages(options.get("words", FULL), "1 3 5 7 2 4 6 8")) + 4
    code_boxes(pen, 0, y, 130, 20, across=True)
    state_line(pen, 0, y + 36, (130, 90, 80, 80, 70, 70), 20)
    return list(pen.forms)


# ------------------------------------------------------------------------------------------------------ 1099

INTEREST: tuple[Cell, ...] = (
    ("1", "Interest income not included in box 3", "interest_income"),
    ("2", "Early withdrawal penalty", "early_withdrawal_penalty"),
    ("3", "Int. on U.S. Savings Bonds & Treas. obligations", "box_3"),
    ("4", "Fed. income tax withheld", "box_4"),
    ("6", "Foreign tax paid", "box_6"),
    ("8", "Tax-exempt interest", "box_8"),
    ("9", "Spec. private activity bond int.", "box_9"),
    ("11", "Bond premium", "box_11"),
)


def ledger(document: Any, facts: Facts, style: Style, **options: Any) -> list[Form]:
    """A bank's year-end statement: the boxes as rows of a ruled table."""
    kind: str = options.get("kind", "1099-INT")
    cells: tuple[Cell, ...] = options.get("cells", INTEREST)
    pen = sheet(document, facts, style, kind)
    pen.rect(-8, -8, 544, 50, fill=0.9)
    pen.block(0, 8, (*SENDER, "payer_phone"), 10)
    pen.write(520, 12, options.get("title", "INTEREST INCOME"), 11, style.strong, align="right")
    pen.write(520, 24, f"Form {kind} (substitute) — Copy B for recipient", 7, align="right")
    left = (("Payer's TIN", "payer_tin"), ("Your TIN", "recipient_tin"), ("Account", "account_number"))
    for place, (label, name) in enumerate(left):
        pen.write(300, 66 + 14 * place, label, 7)
        pen.entry(400, 66 + 14 * place, name)
    pen.write(300, 108, "For calendar year", 7)
    pen.entry(400, 108, "tax_year")
    pen.block(0, 66, RECEIVER)
    y = 136.0
    pen.rect(0, y, 520, 16, line=0.5, fill=0.8)
    for indent, head in ((4, "IRS box"), (60, "What is reported"), (420, "Amount")):
        pen.write(indent, y + 11, head, 7, style.strong)
    for number, label, name in cells:
        y += 16
        pen.rect(0, y, 520, 16, line=0.3)
        pen.rule(54, y, 54, y + 16, 0.3)
        pen.rule(400, y, 400, y + 16, 0.3)
        pen.write(14, y + 11, number, 7.5)
        pen.write(60, y + 11, label, 7.5)
        pen.entry(514, y + 11.5, name, align="right")
    pen.note(0, y + 40, 500, "Information in this statement is furnished to the Internal Revenue Service.", 6.5)
    return list(pen.forms)


def mirrored(document: Any, facts: Facts, style: Style, **options: Any) -> list[Form]:
    """Amounts at the left in boxes, people at the right."""
    kind: str = options.get("kind", "1099-INT")
    cells: tuple[Cell, ...] = options.get("cells", INTEREST)
    copies = 2 if options.get("twice") else 1
    pen = sheet(document, facts, style, kind, copies=copies)
    for number in range(copies):
        half = pen.moved(42, 44 + 372 * number)
        half.write(0, 8, f"Form {kind}", 10, style.strong)
        half.write(12 + half.width(f"Form {kind}", 10, style.strong), 8, options.get("title", "Interest Income"), 9)
        half.entry(525, 8, "tax_year", 13, "right")
        w = options.get("left", 240) / 2
        half.grid(0, 18, (w, w), options.get("tall", 32), cells)
        x = 2 * w + 14
        wide = 525 - x
        label = "Payer's name, street address, city, state, ZIP code and phone"
        half.cell(x, 18, wide, 74, ("", label, "payer_name"), *SENDER[1:], "payer_phone")
        half.cell(x, 92, wide, 28, ("", "Payer's Federal ID number", "payer_tin"))
        half.cell(x, 120, wide, 28, ("", "Recipient's ID number", "recipient_tin"))
        half.cell(x, 148, wide, 62, ("", "Recipient's name and address", "recipient_name"), *RECEIVER[1:])
        half.cell(x, 210, wide, 28, ("", "Account no.", "account_number"))
        half.tick(x, 256, "Corrected", "corrected")
    return list(pen.forms)


def titled_columns(document: Any, facts: Facts, style: Style, **options: Any) -> list[Form]:
    """Two rows of headings with the values below, as a spreadsheet prints them."""
    kind: str = options.get("kind", "1099-INT")
    cells: tuple[Cell, ...] = options.get("cells", INTEREST)
    pen = sheet(document, facts, style, kind, flat=True)
    pen.write(0, 10, f"{kind} {options.get('title', 'Interest Income')}", 12, style.strong)
    pen.write(400, 10, "Year:", 8)
    pen.entry(424, 10, "tax_year", 10)
    people = (
        (("Payer", SENDER[:1]), ("Payer address", SENDER[1:]), ("Payer TIN", ("payer_tin",))),
        (
            ("Recipient", RECEIVER[:1]),
            ("Street", RECEIVER[1:2]),
            ("City/State/ZIP", RECEIVER[2:]),
            ("Recipient TIN", ("recipient_tin",)),
        ),
    )
    y = 34.0
    for row in people:
        for number, (label, names) in enumerate(row):
            x = 700 / len(row) * number * (1.08 if len(row) == 3 else 1)
            pen.write(x, y, label, 7, style.strong)
            pen.row(x, y + 14, names, ", ")
        y += 36
    per_row = options.get("per_row", 4)
    for start in range(0, len(cells), per_row):
        for place, (box, label, name) in enumerate(cells[start : start + per_row]):
            x = 700 / per_row * place
            pen.note(x, y, 700 / per_row - 12, f"Box {box} {label}", 6.5)
            pen.entry(x, y + 26, name)
        pen.rule(0, y + 32, 700, y + 32)
        y += 44
    return list(pen.forms)


DIVIDENDS: tuple[Cell, ...] = (
    ("1a", "Total ordinary dividends", "total_dividends"),
    ("1b", "Qualified dividends", "qualified_dividends"),
    ("2a", "Total capital gain distributions", "box_2a"),
    ("2b", "Unrecaptured Sec. 1250 gain", "box_2b"),
    ("3", "Nondividend distributions", "box_3"),
    ("4", "Fed. income tax withheld", "box_4"),
    ("5", "Section 199A dividends", "box_5"),
    ("6", "Investment expenses", "box_6"),
    ("7", "Foreign tax paid", "box_7"),
    ("12", "Exempt-interest dividends", "box_12"),
)


def monthly_fund(document: Any, facts: Facts, style: Style, **options: Any) -> list[Form]:
    """A fund's form with a table of the months' payments below it."""
    pen = sheet(document, facts, style, "1099-DIV")
    pen.block(0, 12, (*SENDER, "payer_phone"))
    pen.write(300, 12, "Form 1099-DIV Dividends and Distributions", 8, style.strong)
    pen.write(300, 26, "Tax year", 7)
    pen.entry(360, 26, "tax_year")
    for place, (label, name) in enumerate(
        (("Payer's Fed. ID", "payer_tin"), ("Shareholder TIN", "recipient_tin"), ("Account", "account_number"))
    ):
        pen.write(300, 40 + 13 * place, label, 7)
        pen.entry(380, 40 + 13 * place, name)
    pen.write(0, 74, "Recipient", 6.5, style.strong)
    pen.block(0, 86, RECEIVER)
    y = 140.0
    for count, (number, label, name) in enumerate(DIVIDENDS):
        x = 270 * (count % 2)
        pen.write(x, y, f"{number}  {label}", 7)
        pen.entry(x + 250, y, name, align="right")
        y += 15 * (count % 2)
    y += 24
    pen.write(0, y, "Detail of payments (not part of the form)", 8, style.strong)
    for month, paid in (
        ("March 29", "131.20"),
        ("June 28", "128.44"),
        ("September 27", "140.09"),
        ("December 30", "311.71"),
    ):
        y += 13
        pen.write(10, y, month, 7.5)
        pen.write(160, y, "Ordinary dividend", 7.5)
        pen.write(330, y, paid, 8, style.entry, align="right")
    return list(pen.forms)


RENTS: tuple[Cell, ...] = (
    ("1", "Rents", "rents"),
    ("2", "Royalties", "royalties"),
    ("3", "Other income", "other_income"),
    ("4", "Fed. income tax withheld", "box_4"),
    ("5", "Fishing boat proceeds", "box_5"),
    ("6", "Medical & health care payments", "box_6"),
    ("8", "Substitute payments in lieu of div. or int.", "box_8"),
    ("10", "Gross proceeds paid to an attorney", "box_10"),
)
PAY: tuple[Cell, ...] = (
    ("1", "Nonemployee compensation", "nonemployee_compensation"),
    ("4", "Fed. income tax withheld", "federal_tax_withheld"),
    ("5", "State tax withheld", "box_5"),
    ("7", "State income", "box_7"),
)


def prose_letter(document: Any, facts: Facts, style: Style, **options: Any) -> list[Form]:
    """A letter that names the amounts by box among sentences."""
    kind: str = options.get("kind", "1099-MISC")
    cells: tuple[Cell, ...] = options.get("cells", RENTS)
    pen = sheet(document, facts, style, kind)
    pen.block(0, 12, (*SENDER, "payer_phone"))
    pen.block(0, 90, RECEIVER)
    pen.write(
        0, 150, f"Re: Form {kind}, {options.get('title', 'Miscellaneous Information')}, tax year", 8.5, style.strong
    )
    pen.entry(330, 150, "tax_year")
    pen.note(0, 168, 500, "Dear recipient: below are the payments that we reported to the IRS under your number.", 8)
    pen.write(0, 194, "Our federal tax identification number (payer's TIN):", 8)
    pen.entry(230, 194, "payer_tin")
    pen.write(0, 208, "Your taxpayer identification number (recipient's TIN):", 8)
    pen.entry(230, 208, "recipient_tin")
    y = 234.0
    for number, label, name in cells:
        if name in facts or not options.get("filled_only", True):
            pen.write(16, y, f"{label} (Box {number})", 8)
            pen.entry(400, y, name, align="right")
            y += 16
    pen.note(0, y + 14, 500, "Please keep this letter with your tax records. No other copy will be mailed to you.", 8)
    return list(pen.forms)


def flat_strip(document: Any, facts: Facts, style: Style, **options: Any) -> list[Form]:
    """A wide strip: payer, recipient and amounts in three panels side by side."""
    kind: str = options.get("kind", "1099-NEC")
    cells: tuple[Cell, ...] = options.get("cells", PAY)
    copies = options.get("copies", 1)
    pen = sheet(document, facts, style, kind, copies=copies, flat=True)
    for number in range(copies):
        strip = pen.moved(36, 34 + 260 * number)
        strip.entry(0, 10, "tax_year", 13)
        strip.write(44, 10, f"Form {kind}  {options.get('title', 'Nonemployee Compensation')}", 10, style.strong)
        strip.cell(
            0, 20, 240, 84, ("", "PAYER'S name, address and telephone number", "payer_name"), *SENDER[1:], "payer_phone"
        )
        strip.cell(0, 104, 240, 30, ("", "PAYER'S TIN", "payer_tin"))
        strip.cell(240, 20, 240, 84, ("", "RECIPIENT'S name and address", "recipient_name"), *RECEIVER[1:])
        strip.cell(240, 104, 240, 30, ("", "RECIPIENT'S TIN", "recipient_tin"))
        strip.cell(0, 134, 480, 26, ("", "Account number", "account_number"))
        strip.grid(480, 20, (120, 120) if len(cells) > 4 else (240,), 30, cells)
        if kind == "1099-NEC":
            strip.cell(480, 140, 240, 30, ("6", "State/Payer's state no.", "box_6_state"), "box_6_id", beside=True)
            strip.tick(0, 174, "2 Direct sales of $5,000 or more", "box_2", 6.5, 160)
    return list(pen.forms)


def cheque_stub(document: Any, facts: Facts, style: Style, **options: Any) -> list[Form]:
    """A stub the size of a cheque, label and value on one line."""
    kind: str = options.get("kind", "1099-NEC")
    cells: tuple[Cell, ...] = options.get("cells", PAY)
    pen = sheet(document, facts, style, kind)
    pen.rect(-6, -10, 500, 204, line=1)
    pen.write(0, 8, f"{kind} {options.get('title', 'NONEMPLOYEE COMPENSATION').upper()}", 9, style.strong)
    pen.write(380, 8, "YEAR", 7)
    pen.entry(410, 8, "tax_year", 11)
    lines: list[tuple[str, tuple[str, ...]]] = [
        ("Payer", SENDER[:1]),
        ("", SENDER[1:]),
        ("Payer TIN", ("payer_tin",)),
        ("Recipient", RECEIVER[:1]),
        ("Address", RECEIVER[1:2]),
        ("City/State/ZIP", RECEIVER[2:]),
        ("Recipient TIN", ("recipient_tin",)),
    ]
    for number, (label, names) in enumerate(lines):
        pen.write(0, 30 + 15 * number, label, style.label_size + 1)
        pen.row(76, 30 + 15 * number, names, ", ")
    for number, (box, label, name) in enumerate(cells):
        pen.write(290, 30 + 15 * number, f"{box} {label}", style.label_size + 0.5)
        pen.entry(486, 30 + 15 * number, name, align="right")
    return list(pen.forms)


def panels(document: Any, facts: Facts, style: Style, **options: Any) -> list[Form]:
    """A broker's statement over two pages, its forms in panels beside one another."""
    parts: dict[str, Facts] = options["parts"]
    order: Sequence[Sequence[str]] = options["pages"]
    forms: list[Form] = []
    contents = {
        "1099-INT": ("Interest Income", INTEREST),
        "1099-DIV": ("Dividends & Distributions", DIVIDENDS),
        "1099-MISC": ("Miscellaneous Information", RENTS[:4] + RENTS[6:7]),
    }
    for number, kinds in enumerate(order, 1):
        page = document.new_page(width=612, height=792)
        mine = [Form(kind, number) for kind in kinds]
        pen = Pen(page, style, facts, mine, 40, 36)
        pen.write(0, 12, "Tax Information Statement", 13, style.strong)
        pen.entry(12 + pen.width("Tax Information Statement", 13, style.strong), 12, "tax_year", 13)
        pen.write(525, 12, f"Page {number} of {len(order)}", 7, align="right")
        pen.write(0, 30, "PAYER", 6.5, style.strong)
        pen.block(0, 42, (*SENDER, "payer_phone"))
        pen.write(0, 92, "Payer's TIN", 7)
        pen.entry(60, 92, "payer_tin")
        pen.write(270, 30, "RECIPIENT", 6.5, style.strong)
        pen.block(270, 42, RECEIVER)
        pen.write(270, 80, "Account", 7)
        pen.entry(340, 80, "account_number")
        pen.write(270, 92, "Recipient's TIN", 7)
        pen.entry(340, 92, "recipient_tin")
        for place, form in enumerate(mine):
            title, cells = contents[form.kind]
            panel = Pen(page, style, parts[form.kind], [form], 40 + 270 * place, 146)
            panel.rect(0, 0, 256, 40 + 15 * len(cells), line=0.8)
            panel.write(8, 14, f"FORM {form.kind}: {title.upper()}", 7.5, style.strong)
            for count, (box, label, name) in enumerate(cells):
                panel.write(8, 34 + 15 * count, f"{box}-", 6.5)
                panel.note(28, 34 + 15 * count, 150, label, 6.2)
                panel.entry(248, 34 + 15 * count, name, align="right")
        pen.note(0, 380, 520, "1099-B sales are listed on a separate statement: proceeds 8,904.55, basis 7,120.00.", 7)
        forms += mine
    return forms


PENSION: tuple[Cell, ...] = (
    ("1", "Gross distribution", "box_1"),
    ("2a", "Taxable amount", "box_2a"),
    ("3", "Capital gain (incl. in box 2a)", "box_3"),
    ("4", "Fed. income tax withheld", "box_4"),
    ("5", "Employee contrib./Roth contrib. or insurance premiums", "box_5"),
    ("7", "Distribution code(s)", "box_7"),
    ("14", "State tax withheld", "box_14"),
    ("16", "State distribution", "box_16"),
)
OLD_PENSION = (*PENSION[:6], ("12", "State tax withheld", "box_12"), ("14", "State distribution", "box_14"))
MORTGAGE: tuple[Cell, ...] = (
    ("1", "Mortgage interest received", "box_1"),
    ("2", "Outstanding mortgage principal", "box_2"),
    ("3", "Mortgage origination date", "box_3"),
    ("4", "Refund of overpaid interest", "box_4"),
    ("5", "Mortgage insurance premiums", "box_5"),
    ("6", "Points paid on purchase", "box_6"),
    ("9", "No. of properties securing the mortgage", "box_9"),
    ("10", "Other (real estate taxes)", "box_10"),
)


def loan_panel(document: Any, facts: Facts, style: Style, **options: Any) -> list[Form]:
    """A lender's 1098: amounts on top in boxes, lender and borrower below."""
    pen = sheet(document, facts, style, "1098")
    pen.write(0, 10, "MORTGAGE INTEREST STATEMENT", 11, style.strong)
    pen.write(240, 10, "Form 1098 (substitute)", 7)
    pen.entry(525, 10, "tax_year", 12, "right")
    w = options.get("wide", 520) / 4
    y = pen.grid(0, 20, (w, w, w, w), 34, MORTGAGE) + 6
    below = (*RECEIVER[1:], "recipient_phone")
    pen.cell(0, y, 2 * w, 78, ("", "Recipient's/Lender's name and address", "recipient_name"), *below)
    pen.cell(2 * w, y, 2 * w, 78, ("", "Payer's/Borrower's name and address", "payer_name"), *SENDER[1:])
    pen.cell(0, y + 78, 2 * w, 28, ("", "Recipient's/Lender's federal ID no.", "recipient_tin"))
    pen.cell(2 * w, y + 78, 2 * w, 28, ("", "Payer's/Borrower's taxpayer ID no.", "payer_tin"))
    pen.cell(0, y + 106, 2 * w, 28, ("", "Loan number", "account_number"))
    return list(pen.forms)


def loan_letter(document: Any, facts: Facts, style: Style, **options: Any) -> list[Form]:
    """A lender's letter: people on top, the boxes as lines with leaders."""
    pen = sheet(document, facts, style, "1098")
    pen.write(0, 12, "Lender (recipient):", 7)
    pen.block(90, 12, (*RECEIVER, "recipient_phone"))
    pen.write(330, 12, "Lender's TIN:", 7)
    pen.entry(400, 12, "recipient_tin")
    pen.write(0, 70, "Borrower (payer):", 7)
    pen.block(90, 70, SENDER)
    pen.write(330, 70, "Borrower's TIN:", 7)
    pen.entry(400, 70, "payer_tin")
    pen.write(330, 84, "Loan no.:", 7)
    pen.entry(400, 84, "account_number")
    pen.write(0, 134, "Form 1098 Mortgage Interest Statement, calendar year", 9.5, style.strong)
    pen.entry(290, 134, "tax_year", 9.5)
    for number, (box, label, name) in enumerate(MORTGAGE):
        y = 158 + 16 * number
        pen.write(0, y, f"{box}. {label}", 7.5)
        start = 4 + pen.width(f"{box}. {label}", 7.5)
        pen.write(start, y, ". " * int((330 - start) / 4.2), 7.5)
        pen.entry(430, y, name, align="right")
    return list(pen.forms)


SHARES: tuple[Cell, ...] = (
    ("1", "Ordinary business income (loss)", "ordinary_income"),
    ("2", "Net rental real estate inc. (loss)", "box_2"),
    ("4a", "Guaranteed payments: services", "box_4a"),
    ("5", "Interest income", "box_5"),
    ("6a", "Ordinary dividends", "box_6a"),
    ("6b", "Qualified dividends", "box_6b"),
    ("8", "Net short-term cap. gain (loss)", "box_8"),
    ("9a", "Net long-term cap. gain (loss)", "box_9a"),
    ("12", "Section 179 deduction", "box_12"),
)


def share_board(document: Any, facts: Facts, style: Style, **options: Any) -> list[Form]:
    """A K-1 in landscape: partnership, partner and shares in three columns."""
    pen = sheet(document, facts, style, "K-1", flat=True)
    pen.write(0, 10, "Schedule K-1", 13, style.strong)
    pen.write(90, 10, "(Form 1065)  Partner's Share of Income, Deductions, Credits, etc.", 8)
    pen.entry(700, 10, "tax_year", 13, "right")
    w = options.get("people", 210)
    below = ("partnership_street", "partnership_city")
    pen.cell(0, 22, w, 32, ("A", "Partnership's employer I.D. number", "partnership_ein"))
    pen.cell(0, 54, w, 76, ("B", "Partnership's name and address", "partnership_name"), *below)
    pen.cell(w, 22, w, 32, ("E", "Partner's SSN or TIN", "partner_tin"))
    pen.cell(w, 54, w, 76, ("F", "Partner's name and address", "partner_name"), "partner_street", "partner_city")
    rest = 700 - 2 * w - 10
    pen.grid(2 * w + 10, 22, (rest / 2, rest / 2), 32, (*SHARES, None))
    return list(pen.forms)


def share_list(document: Any, facts: Facts, style: Style, **options: Any) -> list[Form]:
    """A K-1 as an accountant's summary with the line numbers at the right."""
    pen = sheet(document, facts, style, "K-1")
    pen.entry(0, 12, "tax_year", 12)
    pen.write(40, 12, "Form 1065, Schedule K-1: summary of partner's share", 10, style.strong)
    pen.write(0, 36, "Partnership's name (B)", 7)
    pen.block(120, 36, ("partnership_name", "partnership_street", "partnership_city"))
    pen.write(0, 78, "Partnership's EIN (A)", 7)
    pen.entry(120, 78, "partnership_ein")
    pen.write(0, 98, "Partner's name (F)", 7)
    pen.block(120, 98, ("partner_name", "partner_street", "partner_city"))
    pen.write(0, 140, "Partner's SSN/TIN (E)", 7)
    pen.entry(120, 140, "partner_tin")
    for number, (box, label, name) in enumerate(SHARES):
        y = 172 + 16 * number
        pen.write(0, y, label, 7.5)
        pen.write(240, y, f"Line {box}", 7, align="right")
        pen.entry(360, y, name, align="right")
        pen.rule(0, y + 4, 360, y + 4, 0.2)
    return list(pen.forms)


# --------------------------------------------------------------------------------------------------- layouts

HOUSE = Style(face="dvcond", strong="dvcondb", entry="dvcond", label_size=5.6, entry_size=8.5)
CLERK = Style(face="tiro", strong="tibo", entry="tiro", label_size=6.4, entry_size=10, numbers="{}. ")
TYPED = Style(entry="cobo", entry_size=9, label_size=5.8, numbers="{}) ")
DOLLARS = Style(entry="helv", dollar=True, align="right", label_size=6, entry_size=8.5, line=0.8)
OPEN = Style(border="none", face="dvserif", strong="dvserifb", entry="dvmono", label_size=5.2, entry_size=8)
RULED = Style(border="bottom", label_size=6, entry="hebo", align="middle")
CAPITALS = Style(capitals=True, loud=True, label_size=5.2, entry="helv", entry_size=8.5, numbers="Box {} ")
BARE = Style(thousands=False, dashes=False, entry="cour", label_size=6.2)
HIDDEN = Style(mask="*", entry="dvmono", face="dvsans", strong="dvsansb", label_size=5.2, entry_size=7.6)
CROSSED = Style(mask="X", entry="cour", dollar=True, label_size=6.5)
FILLED = Style(zeros=6, entry="cour", align="right", label_size=5.5)
ROUND = Style(whole=True, entry="tiro", entry_size=10, dollar=True)
INKED = Style(ink=(0.05, 0.25, 0.2), entry="hebo", entry_size=8.5, shade=0.9, label_size=5.4)
UNDER = Style(border="bottom", place="below", entry="tiro", entry_size=9.5, label_size=5.4)


def layouts() -> list[Layout]:  # noqa: PLR0915
    """All layouts of this half; the same ones every time."""
    drawn: list[Layout] = []

    def add(name: str, painter: Painter, facts: Facts, style: Style, **options: Any) -> None:
        drawn.append(
            Layout(f"sealed-{len(drawn) + 1:02}-{name}", partial(painter, facts=facts, style=style, **options))
        )

    def inventor() -> Inventor:
        return Inventor(POOL, f"sealed {len(drawn)}")

    plan = ("retirement_plan",)
    two = ("KY", "MN")
    full = wage_facts(inventor(), 2024, states=("GA",), codes=("D", "W"), other=("S125",), ticks=plan)
    add("w2-tower", tower, full, HOUSE)
    full = wage_facts(inventor(), 2022, states=two, local=True, codes=("D", "DD", "AA"), tips=True)
    add("w2-tower-two-states", tower, full, DOLLARS, words=FULL, tall=28, people=190)
    add("w2-tower-old", tower, wage_facts(inventor(), 2018, states=("UT",)), CLERK, words=BRIEF)
    gone = wage_facts(inventor(), 2023, states=("KS",), codes=("D",))
    add("w2-tower-no-tax", tower, without(gone, "federal_tax_withheld"), HOUSE, words=FULL)
    full = wage_facts(inventor(), 2023, states=("MN",), codes=("C", "DD"), other=("UNIF", "RET"), ticks=plan)
    add("w2-board", checkerboard, full, TYPED)
    add(
        "w2-board-capitals",
        checkerboard,
        wage_facts(inventor(), 2021, states=("KY",), local=True),
        CAPITALS,
        words=WORDS,
    )
    full = wage_facts(inventor(), 2020, states=two, codes=("S",))
    add("w2-board-open", checkerboard, full, OPEN, people_on_top=True)
    add("w2-board-blank", checkerboard, only_year(wage_facts(inventor(), 2023)), HOUSE)
    gone = wage_facts(inventor(), 2024, states=("GA",))
    add("w2-board-no-employer", checkerboard, without(gone, *FIRM), DOLLARS, people_on_top=True)
    full = wage_facts(inventor(), 2023, states=("DE",), local=True, codes=("D",), other=("PFL",), ticks=plan)
    add("w2-three", three_stacked, full, Style(entry="helv", label_size=6.6, entry_size=9.5))
    dense = Style(face="dvcond", strong="dvcondb", entry="dvmono", label_size=6.6, entry_size=9, mask="X")
    add("w2-three-masked", three_stacked, wage_facts(inventor(), 2021, codes=("DD",)), dense, words=FULL)
    tight = Style(entry="helv", label_size=5, entry_size=7.4, line=0.4)
    full = wage_facts(inventor(), 2022, states=two, codes=("D", "E"), other=("HLTH",), ticks=plan)
    add("w2-flat-four", flat_quad, full, tight)
    slim = Style(face="dvcond", strong="dvcondb", entry="dvcond", label_size=5, entry_size=7.6, border="bottom")
    add("w2-flat-four-ruled", flat_quad, wage_facts(inventor(), 2025, states=("KY",), local=True), slim, words=WORDS)
    add("w2-flat-four-blank", flat_quad, only_year(wage_facts(inventor(), 2022)), tight)
    full = wage_facts(inventor(), 2021, states=("KS",), codes=("D", "W"), other=("HSA",))
    add("w2-window", window_letter, full, Style(entry="helv", entry_size=8.5))
    gone = wage_facts(inventor(), 2023, states=("MN",))
    add("w2-window-no-number", window_letter, without(gone, "employer_ein"), BARE)
    add("w2-last-stub", last_stub, wage_facts(inventor(), 2019, states=("GA",), codes=("D", "DD")), HOUSE)
    full = wage_facts(inventor(), 2023, states=two, local=True, codes=("P",), ticks=plan)
    add("w2-last-stub-zeros", last_stub, full, FILLED, words=BRIEF, wide=520)
    full = wage_facts(inventor(), 2024, states=two, codes=("D", "DD", "W", "C"))
    add("w2-rows", headed_rows, full, Style(entry="helv", entry_size=8.5), ruled=True)
    add("w2-rows-grey", headed_rows, wage_facts(inventor(), 2020, states=("UT",)), HIDDEN, grey=True, words=BRIEF)
    add("w2-under", underlined, wage_facts(inventor(), 2022, states=("DE",), local=True, codes=("D", "W")), UNDER)
    gone = without(wage_facts(inventor(), 2021, states=("KS",)), "employee_ssn")
    add("w2-under-no-person", underlined, gone, UNDER, words=WORDS)

    add("int-ledger", ledger, interest_facts(inventor(), 2023, more=3), HOUSE)
    add("int-ledger-capitals", ledger, interest_facts(inventor(), 2020, more=1), CROSSED)
    add("int-ledger-no-payer-tin", ledger, without(interest_facts(inventor(), 2024, more=1), "payer_tin"), TYPED)
    add("int-mirror", mirrored, interest_facts(inventor(), 2022, more=5), DOLLARS)
    add("int-mirror-twice", mirrored, interest_facts(inventor(), 2019, more=2), HIDDEN, twice=True, left=250)
    add("int-mirror-blank", mirrored, only_year(interest_facts(inventor(), 2021)), CLERK)
    add("int-columns", titled_columns, interest_facts(inventor(), 2024, more=4), OPEN)
    gone = without(interest_facts(inventor(), 2023), "interest_income")
    add("int-columns-no-income", titled_columns, gone, HOUSE, per_row=3)
    dividends = {"kind": "1099-DIV", "cells": DIVIDENDS, "title": "Dividends and Distributions"}
    add("div-ledger", ledger, dividend_facts(inventor(), 2022, more=4), CLERK, **dividends)
    add("div-mirror", mirrored, dividend_facts(inventor(), 2024, more=6), INKED, **dividends)
    add("div-columns", titled_columns, dividend_facts(inventor(), 2023, more=2), BARE, **dividends)
    add("div-monthly", monthly_fund, dividend_facts(inventor(), 2021, more=6), TYPED)
    add("div-monthly-masked", monthly_fund, dividend_facts(inventor(), 2023, more=1), HIDDEN)
    gone = without(dividend_facts(inventor(), 2022, more=2), "recipient_tin")
    add("div-mirror-no-tin", mirrored, gone, RULED, **dividends)
    rents = {"kind": "1099-MISC", "cells": RENTS, "title": "Miscellaneous Information"}
    add("misc-letter", prose_letter, rent_facts(inventor(), 2023, ("rents", "box_4")), DOLLARS)
    add("misc-letter-all", prose_letter, rent_facts(inventor(), 2021, ("royalties",)), CLERK, filled_only=False)
    add("misc-strip", flat_strip, rent_facts(inventor(), 2024, ("other_income", "box_6")), HOUSE, **rents)
    add("misc-mirror", mirrored, rent_facts(inventor(), 2022, ("rents", "box_10")), RULED, **rents)
    old = {"kind": "1099-MISC", "title": "Miscellaneous Income"}
    earlier = (*RENTS[:6], ("7", "Nonemployee compensation", "box_7"), RENTS[6])
    add("misc-stub-old", cheque_stub, rent_facts(inventor(), 2018, ("box_7", "box_4")), TYPED, cells=earlier, **old)
    add("misc-strip-blank", flat_strip, only_year(rent_facts(inventor(), 2023, ())), DOLLARS, **rents)
    add("nec-strip", flat_strip, contractor_facts(inventor(), 2022, tax=True, state="UT", sales=True), TYPED)
    add("nec-strip-twice", flat_strip, contractor_facts(inventor(), 2024), HIDDEN, copies=2)
    add("nec-stub", cheque_stub, contractor_facts(inventor(), 2021, tax=True), CROSSED)
    add("nec-stub-round", cheque_stub, contractor_facts(inventor(), 2020), ROUND)
    pay = {"kind": "1099-NEC", "cells": PAY, "title": "Nonemployee Compensation"}
    add("nec-letter", prose_letter, contractor_facts(inventor(), 2023), INKED, **pay)
    add("nec-mirror-no-year", mirrored, without(contractor_facts(inventor(), 2023), "tax_year"), HOUSE, **pay)
    add("nec-strip-no-pay", flat_strip, without(contractor_facts(inventor(), 2021), "nonemployee_compensation"), CLERK)

    for year, pages, style in (
        (2022, (("1099-INT", "1099-DIV"), ("1099-MISC",)), Style(entry="helv", entry_size=7.5)),
        (
            2024,
            (("1099-DIV", "1099-INT"),),
            Style(face="dvcond", strong="dvcondb", entry="dvmono", entry_size=7, dollar=True),
        ),
    ):
        maker = inventor()
        head = without(interest_facts(maker, year), "interest_income")
        parts = {
            "1099-INT": _amounts(interest_facts(maker, year, more=4)),
            "1099-DIV": _amounts(dividend_facts(maker, year, more=3)),
            "1099-MISC": _amounts(rent_facts(maker, year, ("royalties", "other_income"))),
        }
        add("panels" if len(pages) == 2 else "panels-one-page", panels, head, style, parts=parts, pages=pages)

    pension = {"kind": "1099-R", "cells": PENSION, "title": "Distributions From Pensions, Annuities, IRAs, etc."}
    add("r-mirror", mirrored, _no_number(pension_facts(inventor(), 2024, "4", state="GA")), DOLLARS, **pension)
    add("r-ledger", ledger, pension_facts(inventor(), 2022, "7"), CROSSED, **pension)
    older = pension | {"cells": OLD_PENSION}
    add("r-columns-old", titled_columns, _no_number(pension_facts(inventor(), 2018, "G", state="KS")), HOUSE, **older)
    add(
        "r-ledger-no-amount", ledger, without(pension_facts(inventor(), 2023, "1"), "box_1", "box_2a"), TYPED, **pension
    )
    add("loan-panel", loan_panel, mortgage_facts(inventor(), 2024), HOUSE)
    add("loan-panel-no-tin", loan_panel, without(mortgage_facts(inventor(), 2021), "payer_tin"), DOLLARS)
    add("loan-letter", loan_letter, mortgage_facts(inventor(), 2023), CLERK)
    add("k1-board", share_board, partner_facts(inventor(), 2022, more=6), HOUSE)
    add("k1-board-blank", share_board, only_year(partner_facts(inventor(), 2023)), CLERK)
    add("k1-list", share_list, partner_facts(inventor(), 2024, loss=True, more=4), TYPED)
    add(
        "k1-list-minus",
        share_list,
        partner_facts(inventor(), 2019, loss=True),
        Style(minus="-", entry="helv", dollar=True),
    )
    return drawn


def _amounts(facts: Facts) -> dict[str, Any]:
    return {name: fact for name, fact in facts.items() if not isinstance(fact, str)}


def _no_number(facts: Facts) -> dict[str, Any]:
    """Without the payer's number at the state, for which the layout has no box."""
    return {name: fact for name, fact in facts.items() if not name.endswith(("_state", "_id"))}
