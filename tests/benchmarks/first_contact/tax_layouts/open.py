"""The open half of strangers' tax forms: layouts that authors of rules may read."""

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
    first=("Marisol", "Derrick", "Anjali", "Peter", "Yolanda", "Chidi", "Britta", "Samuel", "Leilani", "Hector"),
    last=("Quintero", "Vandermeer", "Iyer", "Okafor", "Lindqvist", "Castellano", "Prewitt", "Nakagawa", "Doyle"),
    firms=(
        "Copper Basin Hospital Inc.",
        "Tallgrass Clinic Services LLC",
        "Pinewater Freight Corp.",
        "Greybridge School District 14",
        "Saltmarsh Catering LLC",
        "Northfold Imaging Inc.",
        "Three Rivers Home Care Corp.",
    ),
    banks=("Fallow County Bank", "Meridian Oak Savings", "Larkspur Credit Union", "Old Ferry Trust Company"),
    streets=("Wexford Lane", "Tamarack Drive", "S Orchard St", "County Road 12", "Beacon Hill Ave", "Larch Court"),
    cities=(
        ("Medford", "OR", "97501"),
        ("Dayton", "OH", "45402"),
        ("Lansing", "MI", "48933"),
        ("Reading", "PA", "19601"),
        ("Fort Wayne", "IN", "46802-1134"),
        ("Albany", "NY", "12207"),
    ),
    localities=("DAYTON", "READING CITY", "LANSING"),
)

OFFICIAL: dict[str, str] = {
    "1": "Wages, tips, other compensation",
    "2": "Federal income tax withheld",
    "3": "Social security wages",
    "4": "Social security tax withheld",
    "5": "Medicare wages and tips",
    "6": "Medicare tax withheld",
    "7": "Social security tips",
    "8": "Allocated tips",
    "10": "Dependent care benefits",
    "11": "Nonqualified plans",
}
SHORT = OFFICIAL | {
    "1": "Wages, tips, other comp.",
    "2": "Fed. income tax withheld",
    "3": "Soc. sec. wages",
    "4": "Soc. sec. tax withheld",
    "6": "Medicare tax w/h",
    "10": "Dep. care benefits",
}
CLIPPED = OFFICIAL | {
    "1": "Wages, tips, etc.",
    "2": "Federal tax withheld",
    "3": "SS wages",
    "4": "SS tax withheld",
    "5": "Medicare wages",
    "6": "Medicare tax",
    "8": "Alloc. tips",
}
NAMES = {
    "1": "wages_tips",
    "2": "federal_tax_withheld",
    "3": "ss_wages",
    "4": "ss_tax_withheld",
    "5": "medicare_wages",
    "6": "medicare_tax_withheld",
    "7": "box_7",
    "8": "box_8",
    "10": "box_10",
    "11": "box_11",
}
EMPLOYER = ("employer_name", "employer_street", "employer_city")
EMPLOYEE = ("employee_name", "employee_street", "employee_city")
PAYER = ("payer_name", "payer_street", "payer_city", "payer_phone")
RECIPIENT = ("recipient_name", "recipient_street", "recipient_city")
TICKS = (
    ("Statutory employee", "box_13_statutory_employee"),
    ("Retirement plan", "box_13_retirement_plan"),
    ("Third-party sick pay", "box_13_third_party_sick_pay"),
)
SHORT_TICKS = tuple(zip(("Stat. emp.", "Ret. plan", "3rd-party sick"), (name for _, name in TICKS), strict=True))


class Painter(Protocol):
    """Draws a layout into a document."""

    def __call__(self, document: Any, facts: Facts, style: Style, **options: Any) -> list[Form]:
        """Draw it; return its forms."""


def wage_cells(words: dict[str, str], order: str) -> list[Cell]:
    """Numbered boxes of a W-2 in the given order."""
    return [(number, words[number], NAMES[number]) for number in order.split()]


def fresh(document: Any, facts: Facts, style: Style, kind: str, *, copies: int = 1, wide: bool = False) -> Pen:
    """A pen on a new page, with one form."""
    size = (792, 612) if wide else (612, 792)
    page = document.new_page(width=size[0], height=size[1])
    return Pen(page, style, facts, [Form(kind, len(document), copies)], 36, 36)


def state_rows(pen: Pen, x: float, y: float, widths: Sequence[float], h: float, labels: Sequence[str]) -> float:
    """Boxes 15 to 20 with one or two rows of values."""
    x_cell = x
    for number, label, w in zip(("15", "16", "17", "18", "19", "20"), labels, widths, strict=True):
        pen.cell(x_cell, y, w, h, (number, label, ""))
        for row, end in enumerate(("", "_2")):
            foot = y + h - 4 - (1 - row) * pen.style.entry_size * 1.25
            if number == "15":
                pen.row(x_cell + 4, foot, (f"box_15{end}_state", f"box_15{end}_id"), "   ")
            else:
                right = number != "20" and pen.style.align == "right"
                pen.entry(
                    x_cell + w - 4 if right else x_cell + 4,
                    foot,
                    f"box_{number}{end}",
                    align="right" if right else "left",
                )
        x_cell += w
    return y + h


STATE_LABELS = (
    "State   Employer's state ID number",
    "State wages, tips, etc.",
    "State income tax",
    "Local wages, tips, etc.",
    "Local income tax",
    "Locality name",
)
STATE_SHORT = ("State/State ID no.", "State wages", "State tax", "Local wages", "Local tax", "Locality")


# ------------------------------------------------------------------------------------------------------- W-2


def ladder(document: Any, facts: Facts, style: Style, **options: Any) -> list[Form]:
    """The official arrangement with boxes of other sizes."""
    words: dict[str, str] = options.get("words", OFFICIAL)
    pen = fresh(document, facts, style, "W-2")
    _ladder(pen, words, options.get("split", 290))
    pen.write(0, 400, "Form", 7)
    pen.write(20, 402, "W-2", 18, style.strong)
    pen.write(62, 402, "Wage and Tax Statement", 9, style.strong)
    pen.entry(300, 402, "tax_year", 16)
    pen.write(380, 394, "Department of the Treasury — Internal Revenue Service", 5.5)
    pen.write(0, 414, "Copy C — For EMPLOYEE'S RECORDS (See Notice to Employee on the back of Copy B.)", 6)
    if options.get("notice"):
        pen.note(
            0,
            450,
            520,
            "Notice to employee. Do you have to file? Refer to the instructions for Forms 1040 to determine whether you"
            " are required to file a tax return. Even if you need not file, you may be eligible for a refund if box 2"
            " shows an amount or if you are eligible for any credit. Box 1. Enter this amount on the wages line of your"
            " return. Box 2. Enter this amount on the federal income tax withheld line of your return. Box 12, code D:"
            " elective deferrals under a section 401(k) arrangement, limited to $19,500 in some years.",
            7,
        )
    return list(pen.forms)


def _ladder(pen: Pen, words: dict[str, str], split: float) -> None:
    half = (540 - split) / 2
    pen.cell(0, 0, 120, 26, ("", "Void", ""))
    pen.cell(120, 0, split - 120, 26, ("a", "Employee's social security number", "employee_ssn"))
    pen.write(split + 6, 10, "OMB No. 1545-0008", 6)
    pen.cell(0, 26, split, 26, ("b", "Employer identification number (EIN)", "employer_ein"))
    pen.cell(0, 52, split, 68, ("c", "Employer's name, address, and ZIP code", "employer_name"), *EMPLOYER[1:])
    pen.cell(0, 120, split, 26, ("d", "Control number", "control_number"))
    pen.cell(0, 146, split, 100, ("e", "Employee's first name and initial     Last name     Suff.", ""))
    pen.block(6, 170, EMPLOYEE)
    pen.write(4, 242, "f  Employee's address and ZIP code", pen.style.label_size)
    pen.grid(split, 26, (half, half), 26, wage_cells(words, "1 2 3 4 5 6 7 8"))
    pen.cell(split, 130, half, 26, ("9", "", ""))
    pen.cell(split + half, 130, half, 26, ("10", words["10"], "box_10"))
    pen.cell(split, 156, half, 26, ("11", words["11"], "box_11"))
    for number, letter in enumerate("abcd"):
        label = "See instructions for box 12" if letter == "a" else "Code"
        names = (f"box_12{letter}_code", f"box_12{letter}_amount")
        pen.cell(split + half, 156 + number * 26, half, 26, (f"12{letter}", label, names[0]), names[1], beside=True)
    pen.cell(split, 182, half, 26, ("13", "", ""))
    for number, (label, name) in enumerate(TICKS):
        pen.tick(split + 10 + number * half / 3.4, 206.5, "", name)
        pen.note(split + 10 + number * half / 3.4, 188, half / 3.4 - 5, label, 4.6)
    pen.cell(split, 208, half, 52, ("14", "Other", ""))
    pen.row(split + 5, 236, ("box_14_word", "box_14_amount"))
    pen.row(split + 5, 250, ("box_14_word2", "box_14_amount2"))
    state_rows(pen, 0, 300, (150, 85, 75, 85, 75, 70), 46, STATE_LABELS)


def money_first(document: Any, facts: Facts, style: Style, **options: Any) -> list[Form]:
    """A payroll maker's slip: amounts on top, people below."""
    words: dict[str, str] = options.get("words", SHORT)
    pen = fresh(document, facts, style, "W-2")
    _money_first(pen, words, tall=options.get("tall", 28))
    pen.write(0, 420, "This information is being furnished to the Internal Revenue Service.", 6)
    return list(pen.forms)


def _money_first(pen: Pen, words: dict[str, str], tall: float = 28) -> None:
    style = pen.style
    y = pen.grid(0, 0, (150, 150), tall, wage_cells(words, "1 2 3 4 5 6"))
    pen.cell(0, y, 110, 26, ("d", "Control number", "control_number"))
    pen.cell(110, y, 190, 26, ("", "Dept.   Corp.   Employer use only", ""))
    pen.cell(0, y + 26, 300, 62, ("c", "Employer's name, address, and ZIP code", "employer_name"), *EMPLOYER[1:])
    pen.cell(0, y + 88, 150, 26, ("b", "Employer's FED ID number", "employer_ein"))
    pen.cell(150, y + 88, 150, 26, ("a", "Employee's SSA number", "employee_ssn"))
    pen.grid(0, y + 114, (150, 150), 26, wage_cells(words, "7 8"))
    pen.cell(0, y + 140, 150, 26, ("10", words["10"], "box_10"))
    pen.cell(150, y + 140, 150, 26, ("11", words["11"], "box_11"))
    pen.cell(0, y + 166, 300, 62, ("e/f", "Employee's name, address and ZIP code", "employee_name"), *EMPLOYEE[1:])
    right = 310.0
    pen.write(right, 16, "W-2", 20, style.strong)
    pen.entry(right + 60, 16, "tax_year", 16)
    pen.note(right, 28, 180, "Employee Reference Copy   Wage and Tax Statement   OMB No. 1545-0008", 7, style.strong)
    for number, letter in enumerate("abcd"):
        names = (f"box_12{letter}_code", f"box_12{letter}_amount")
        label = "See instructions for box 12" if letter == "a" else ""
        pen.cell(right, 50 + 24 * number, 190, 24, (f"12{letter}", label, names[0]), names[1], beside=True, gap="  |  ")
    pen.cell(right, 146, 190, 50, ("14", "Other", ""))
    pen.row(right + 30, 170, ("box_14_amount", "box_14_word"))
    pen.row(right + 30, 184, ("box_14_amount2", "box_14_word2"))
    pen.cell(right, 196, 190, 28, ("13", "", ""))
    for number, (label, name) in enumerate(SHORT_TICKS):
        pen.write(right + 26 + number * 52, 205, label, 5.4)
        pen.tick(right + 26 + number * 52, 218, "", name)
    y = 228.0
    for end in ("", "_2"):
        if end and "box_16_2" not in pen.facts:
            continue
        names = (f"box_15{end}_state", f"box_15{end}_id")
        pen.cell(right, y, 100, 24, ("15", "State/Employer's state ID no.", names[0]), names[1], beside=True)
        pen.cell(right + 100, y, 90, 24, ("16", "State wages, tips, etc.", f"box_16{end}"))
        pen.cell(right, y + 24, 100, 24, ("17", "State income tax", f"box_17{end}"))
        pen.cell(right + 100, y + 24, 90, 24, ("18", "Local wages, tips, etc.", f"box_18{end}"))
        pen.cell(right, y + 48, 100, 24, ("19", "Local income tax", f"box_19{end}"))
        pen.cell(right + 100, y + 48, 90, 24, ("20", "Locality name", f"box_20{end}"))
        y += 76


def four_on_a_page(document: Any, facts: Facts, style: Style, **options: Any) -> list[Form]:
    """Four copies of a slip, two by two, for four returns."""
    pen = fresh(document, facts, style, "W-2", copies=4)
    titles = (
        "Copy B to be filed with employee's FEDERAL tax return",
        "Copy 2 to be filed with employee's STATE return",
        "Copy C for employee's records",
        "Copy 2 to be filed with employee's CITY or LOCAL return",
    )
    for number, title in enumerate(titles):
        corner = pen.moved(26 + (number % 2) * 286, 24 + (number // 2) * 382)
        if options.get("outer"):
            corner.rect(-4, -6, 276, 372, line=0.8)
        _quarter(corner, options.get("words", CLIPPED), title, people_first=options.get("people_first", False))
    return list(pen.forms)


def _quarter(pen: Pen, words: dict[str, str], title: str, *, people_first: bool) -> None:
    h, style = 24.0, pen.style
    pen.write(0, 8, title, 5.5, style.strong)
    pen.write(218, 8, "OMB No. 1545-0008", 5)
    y = 12.0
    blocks: list[float] = [0.0, 1.0] if people_first else [1.0, 0.0]
    for block in blocks:
        if block:
            y = pen.grid(0, y, (134, 134), h, wage_cells(words, "1 2 3 4 5 6"))
            continue
        pen.cell(0, y, 134, h, ("a", "Employee's soc. sec. no.", "employee_ssn"))
        pen.cell(134, y, 134, h, ("b", "Employer ID number (EIN)", "employer_ein"))
        pen.cell(0, y + h, 268, 48, ("c", "Employer's name, address and ZIP code", "employer_name"), *EMPLOYER[1:])
        pen.cell(0, y + h + 48, 268, 48, ("e", "Employee's name, address and ZIP code", "employee_name"), *EMPLOYEE[1:])
        y += h + 96
    pen.cell(0, y, 90, h, ("d", "Control no.", "control_number"))
    pen.grid(90, y, (89, 89), h, wage_cells(words, "7 10"))
    y += h
    for number, letter in enumerate("abcd"):
        names = (f"box_12{letter}_code", f"box_12{letter}_amount")
        pen.cell(67 * number, y, 67, h, (f"12{letter}", "Code", names[0]), names[1], beside=True, gap=" ")
    y += h
    pen.cell(0, y, 134, h + 8, ("13", "", ""))
    for number, (label, name) in enumerate(SHORT_TICKS):
        pen.write(14 + number * 40, y + 8, label, 5)
        pen.tick(14 + number * 40, y + h - 4, "", name, 6)
    pen.cell(134, y, 134, h + 8, ("14", "Other", ""))
    pen.row(140, y + h + 4, ("box_14_word", "box_14_amount"))
    y += h + 8
    for end in ("", "_2"):
        if end and "box_16_2" not in pen.facts:
            continue
        names = (f"box_15{end}_state", f"box_15{end}_id")
        pen.cell(0, y, 112, h, ("15", "State  Employer's state ID", names[0]), names[1], beside=True)
        pen.cell(112, y, 82, h, ("16", "State wages", f"box_16{end}"))
        pen.cell(194, y, 74, h, ("17", "State inc. tax", f"box_17{end}"))
        y += h
        if f"box_18{end}" in pen.facts:
            pen.cell(0, y, 100, h, ("18", "Local wages", f"box_18{end}"))
            pen.cell(100, y, 84, h, ("19", "Local inc. tax", f"box_19{end}"))
            pen.cell(184, y, 84, h, ("20", "Locality name", f"box_20{end}"))
            y += h
    pen.write(0, y + 12, "Form W-2 Wage and Tax Statement", 7, style.strong)
    pen.entry(232, y + 12, "tax_year", 10)


def earnings_summary(document: Any, facts: Facts, style: Style, **options: Any) -> list[Form]:
    """A slip beside a summary that leads from gross pay to the boxes."""
    pen = fresh(document, facts, style, "W-2", wide=True)
    _money_first(pen.moved(250, 40, 0.98), options.get("words", SHORT), 26)
    side = pen.moved(28, 40)
    side.entry(0, 0, "tax_year", 13)
    side.write(34, 0, "W-2 and EARNINGS SUMMARY", 10, style.strong)
    y = side.note(
        0,
        16,
        205,
        "The reverse side includes general information that you may also find helpful. The following reflects your"
        " final pay stub plus any adjustments submitted by your employer.",
        6.5,
    )
    wages = facts.get("wages_tips", "")
    if not isinstance(wages, str):
        rows = (
            ("Gross Pay", wages + 4321, wages + 4321),
            ("Less 401(k) (D-Box 12)", -2100, 0),
            ("Less Other Cafe 125", -2221, -2221),
            ("Reported W-2 Wages", wages, wages + 2100),
        )
        side.write(130, y + 8, "Wages, Tips", 6.5, style.strong, align="right")
        side.write(200, y + 8, "Soc. Sec. Wages", 6.5, style.strong, align="right")
        for label, first, second in rows:
            y += 14
            side.write(0, y + 10, label, 6.5)
            side.write(130, y + 10, f"{first:,.2f}", 7, align="right")
            side.write(200, y + 10, f"{second:,.2f}", 7, align="right")
    side.write(0, y + 44, "Employee W-4 Profile: Single, no dependents", 6.5)
    return list(pen.forms)


def numbered_list(document: Any, facts: Facts, style: Style, **options: Any) -> list[Form]:
    """A W-2 as a plain list of lines, as small employers' programs print it."""
    words: dict[str, str] = options.get("words", OFFICIAL)
    pen = fresh(document, facts, style, "W-2")
    pen.write(0, 10, "SUBSTITUTE FORM W-2", 13, style.strong)
    pen.write(0, 24, "Wage and Tax Statement for calendar year", 8)
    pen.entry(175, 24, "tax_year", 9)
    y = 50.0
    for label, names in (
        ("c Employer", EMPLOYER),
        ("e Employee", EMPLOYEE),
    ):
        pen.write(0, y, label, style.label_size + 1, style.strong)
        pen.block(110, y, names)
        y += 44
    for label, name in (
        ("b Employer identification no.", "employer_ein"),
        ("a Employee social security no.", "employee_ssn"),
        ("d Control number", "control_number"),
    ):
        pen.write(0, y, label, style.label_size + 1)
        pen.entry(150, y, name)
        y += 15
    y += 8
    for number, label, name in wage_cells(words, "1 2 3 4 5 6 7 8 10 11"):
        pen.write(0, y, number, style.label_size + 1, style.strong)
        pen.write(22, y, label, style.label_size + 1)
        if options.get("dots"):
            start = 24 + pen.width(label, style.label_size + 1)
            pen.write(start, y, "." * int((270 - start) / 3), style.label_size)
        pen.entry(340, y, name, align="right")
        y += 15
    for letter in "abcd":
        if f"box_12{letter}_code" in facts:
            pen.write(0, y, f"12{letter}", style.label_size + 1, style.strong)
            pen.write(22, y, "Code and amount", style.label_size + 1)
            pen.row(340, y, (f"box_12{letter}_code", f"box_12{letter}_amount"), "   ", "right")
            y += 15
    for end in ("", "_2"):
        if f"box_16{end}" not in facts:
            continue
        pen.write(0, y, "15", style.label_size + 1, style.strong)
        pen.write(22, y, "State and employer's state ID number", style.label_size + 1)
        pen.row(340, y, (f"box_15{end}_state", f"box_15{end}_id"), " ", "right")
        for number, label in (("16", "State wages, tips, etc."), ("17", "State income tax")):
            y += 15
            pen.write(0, y, number, style.label_size + 1, style.strong)
            pen.write(22, y, label, style.label_size + 1)
            pen.entry(340, y, f"box_{number}{end}", align="right")
        y += 15
    return list(pen.forms)


def two_up(document: Any, facts: Facts, style: Style, **options: Any) -> list[Form]:
    """Two copies above one another, with instructions at the right."""
    pen = fresh(document, facts, style, "W-2", copies=2)
    for number in range(2):
        half = pen.moved(30, 30 + 372 * number)
        half.write(
            0, 8, ("Copy B — To Be Filed With Employee's FEDERAL Return", "Copy C — Employee's Records")[number], 7
        )
        y = half.grid(0, 14, (128, 128, 128), 30, wage_cells(options.get("words", OFFICIAL), "1 3 5 2 4 6"))
        half.cell(0, y, 192, 66, ("c", "Employer's name, address, ZIP", "employer_name"), *EMPLOYER[1:])
        half.cell(192, y, 192, 66, ("e", "Employee's name", "employee_name"), *EMPLOYEE[1:])
        half.cell(0, y + 66, 128, 28, ("b", "Employer ID no.", "employer_ein"))
        half.cell(128, y + 66, 128, 28, ("a", "Employee SSN", "employee_ssn"))
        half.cell(256, y + 66, 128, 28, ("d", "Control no.", "control_number"))
        for place, letter in enumerate("abcd"):
            names = (f"box_12{letter}_code", f"box_12{letter}_amount")
            half.cell(96 * place, y + 94, 96, 28, (f"12{letter}", "", names[0]), names[1], beside=True)
        half.cell(0, y + 122, 150, 30, ("14", "Other", "box_14_word"), "box_14_amount", beside=True)
        for place, (label, name) in enumerate(TICKS):
            half.tick(160 + 76 * place, y + 142, label, name)
        state_rows(half, 0, y + 156, (110, 60, 54, 60, 54, 46), 44, STATE_SHORT)
        half.write(0, y + 214, "W-2 Wage and Tax Statement", 9, style.strong)
        half.entry(150, y + 214, "tax_year", 11)
        half.note(
            400,
            22,
            150,
            "Instructions for employee. Box 1: enter this amount on the wages line of your return. Box 5: you may have"
            " to pay the Additional Medicare Tax on wages above $200,000. Box 12 codes: C taxable cost of group-term"
            " life insurance over $50,000; D elective deferrals; DD cost of employer-sponsored health coverage.",
            6,
        )
    return list(pen.forms)


# ------------------------------------------------------------------------------------------------------ 1099


def bank_letter(document: Any, facts: Facts, style: Style, **options: Any) -> list[Form]:
    """A bank's letter with the boxes of a 1099-INT as a list."""
    pen = fresh(document, facts, style, "1099-INT")
    pen.block(0, 10, PAYER)
    pen.write(0, 70, "Payer's Federal Identification Number:", 7.5)
    pen.entry(170, 70, "payer_tin")
    pen.block(20, 110, RECIPIENT)
    pen.write(330, 110, "Recipient's Taxpayer ID:", 7.5)
    pen.entry(430, 110, "recipient_tin")
    pen.write(330, 124, "Account Number:", 7.5)
    pen.entry(430, 124, "account_number")
    pen.write(330, 138, "Tax Year:", 7.5)
    pen.entry(430, 138, "tax_year")
    pen.write(0, 180, "Substitute Form 1099-INT — Interest Income", 12, style.strong)
    pen.write(400, 180, "OMB No. 1545-0112", 7)
    pen.note(
        0,
        196,
        520,
        "Keep this statement for your records. This is important tax information and is being furnished to the Internal"
        " Revenue Service. If you are required to file a return, a negligence penalty or other sanction may be imposed"
        " on you if this income is taxable and the IRS determines that it has not been reported.",
        6.5,
    )
    y = 240.0
    for number, label, name in INTEREST if options.get("all") else INTEREST[:6]:
        text = f"Box {number}" if options.get("word", True) else f"{number}."
        pen.write(0, y, text, 8, style.strong)
        pen.write(42, y, label, 8)
        pen.entry(440, y, name, align="right")
        pen.rule(0, y + 4, 440, y + 4, 0.3)
        y += 17
    return list(pen.forms)


INTEREST: tuple[Cell, ...] = (
    ("1", "Interest income", "interest_income"),
    ("2", "Early withdrawal penalty", "early_withdrawal_penalty"),
    ("3", "Interest on U.S. Savings Bonds and Treasury obligations", "box_3"),
    ("4", "Federal income tax withheld", "box_4"),
    ("5", "Investment expenses", "box_5"),
    ("6", "Foreign tax paid", "box_6"),
    ("8", "Tax-exempt interest", "box_8"),
    ("9", "Specified private activity bond interest", "box_9"),
    ("10", "Market discount", "box_10"),
    ("11", "Bond premium", "box_11"),
    ("15", "State", "box_15"),
    ("16", "State identification no.", "box_16"),
    ("17", "State tax withheld", "box_17"),
)


def interest_card(document: Any, facts: Facts, style: Style, **options: Any) -> list[Form]:
    """The official arrangement of a 1099-INT, narrower; one or two on a page."""
    pen = fresh(document, facts, style, "1099-INT", copies=2 if options.get("twice") else 1)
    for corner in [pen, pen.moved(36, 420)] if options.get("twice") else [pen]:
        left = options.get("left", 230)
        corner.tick(120, 8, "CORRECTED (if checked)", "corrected")
        _payer_column(corner, left)
        x, w = left, (540 - left) / 3
        corner.cell(x, 14, w, 32, ("", "Payer's RTN (optional)", "payer_rtn"))
        corner.cell(x, 46, w, 30, INTEREST[0])
        corner.write(x + w + 6, 26, "OMB No. 1545-0112", 6)
        if options.get("revision"):
            corner.write(x + w + 6, 36, "Form 1099-INT (Rev. January 2022)", 6)
            corner.write(x + w + 6, 48, "For calendar year", 6)
        else:
            corner.write(x + w + 6, 38, "Form 1099-INT", 7)
        corner.entry(x + w + 60, 60, "tax_year", 12)
        corner.write(x + 2 * w + 6, 40, "Interest Income", 10, style.strong)
        corner.cell(x, 76, w * 2, 28, INTEREST[1])
        corner.cell(x, 104, w * 2, 28, INTEREST[2])
        y = corner.grid(x, 132, (w, w), 28, (INTEREST[3], INTEREST[4], INTEREST[5], INTEREST[6]))
        y = corner.grid(x, y, (w, w), 28, (INTEREST[7], INTEREST[8], INTEREST[9], None))
        corner.grid(x, y, (w * 0.5, w * 0.9, w * 0.8), 28, INTEREST[10:])
        corner.write(x + 2 * w + 10, 90, "Copy B", 10, style.strong)
        corner.note(x + 2 * w + 10, 102, w - 16, "For Recipient. This is important tax information.", 6.5)
    return list(pen.forms)


def _payer_column(pen: Pen, wide: float, *, account: bool = True) -> None:
    label = "PAYER'S name, street address, city or town, state or province, country, ZIP or foreign postal code, and telephone no."
    pen.cell(0, 14, wide, 78, ("", label, "payer_name"), *PAYER[1:])
    pen.cell(0, 92, wide / 2, 28, ("", "PAYER'S TIN", "payer_tin"))
    pen.cell(wide / 2, 92, wide / 2, 28, ("", "RECIPIENT'S TIN", "recipient_tin"))
    pen.cell(0, 120, wide, 28, ("", "RECIPIENT'S name", "recipient_name"))
    pen.cell(0, 148, wide, 28, ("", "Street address (including apt. no.)", "recipient_street"))
    pen.cell(
        0,
        176,
        wide,
        30,
        ("", "City or town, state or province, country, and ZIP or foreign postal code", "recipient_city"),
    )
    if account:
        pen.cell(0, 206, wide, 28, ("", "Account number (see instructions)", "account_number"))


DIVIDENDS: tuple[Cell, ...] = (
    ("1a", "Total ordinary dividends", "total_dividends"),
    ("1b", "Qualified dividends", "qualified_dividends"),
    ("2a", "Total capital gain distr.", "box_2a"),
    ("2b", "Unrecap. Sec. 1250 gain", "box_2b"),
    ("2c", "Section 1202 gain", "box_2c"),
    ("2d", "Collectibles (28%) gain", "box_2d"),
    ("3", "Nondividend distributions", "box_3"),
    ("4", "Federal income tax withheld", "box_4"),
    ("5", "Section 199A dividends", "box_5"),
    ("6", "Investment expenses", "box_6"),
    ("7", "Foreign tax paid", "box_7"),
    ("9", "Cash liquidation distributions", "box_9"),
    ("12", "Exempt-interest dividends", "box_12"),
)


def dividend_strip(document: Any, facts: Facts, style: Style, **options: Any) -> list[Form]:
    """A fund's 1099-DIV as a table of box, description and amount."""
    pen = fresh(document, facts, style, "1099-DIV")
    pen.rect(0, 0, 540, 22, fill=0.85)
    pen.entry(8, 15, "tax_year", 11)
    pen.write(44, 15, "FORM 1099-DIV   DIVIDENDS AND DISTRIBUTIONS", 10, style.strong)
    pen.write(440, 15, "OMB No. 1545-0110", 7)
    pen.write(0, 40, "Payer", 7, style.strong)
    pen.block(0, 52, PAYER)
    pen.write(0, 104, "Payer's Federal ID No.", 7)
    pen.entry(96, 104, "payer_tin")
    pen.write(300, 40, "Recipient", 7, style.strong)
    pen.block(300, 52, RECIPIENT)
    pen.write(300, 104, "Recipient's ID No.", 7)
    pen.entry(386, 104, "recipient_tin")
    pen.write(0, 118, "Fund account no.", 7)
    pen.entry(96, 118, "account_number")
    pen.write(0, 146, "Box", 7.5, style.strong)
    pen.write(40, 146, "Description", 7.5, style.strong)
    pen.write(400, 146, "Amount", 7.5, style.strong, align="right")
    y = 150.0
    old = options.get("year", 2023) < 2021
    cells = [("11", "Exempt-interest dividends", "box_11") if old and cell[0] == "12" else cell for cell in DIVIDENDS]
    for number, label, name in cells:
        if options.get("filled_only") and name not in facts:
            continue
        y += 14
        pen.write(4, y, number, 7.5)
        pen.write(40, y, label, 7.5)
        pen.entry(400, y, name, align="right")
        if options.get("lines"):
            pen.rule(0, y + 4, 404, y + 4, 0.3)
    return list(pen.forms)


def dividend_grid(document: Any, facts: Facts, style: Style, **options: Any) -> list[Form]:
    """A 1099-DIV with the amounts at the left and the people at the right."""
    pen = fresh(document, facts, style, "1099-DIV", wide=options.get("wide", False))
    pen.write(0, 10, "Dividends and Distributions", 11, style.strong)
    pen.write(170, 10, "Form 1099-DIV", 8)
    pen.entry(240, 10, "tax_year", 11)
    cells = [cell for cell in DIVIDENDS if cell[0] != "12"] + [("12", "Exempt-interest dividends", "box_12")]
    pen.grid(0, 20, (126, 126), 30, [*cells[:12], cells[12], None])
    people = pen.moved(pen.left + 272, pen.top + 6)
    people.cell(0, 14, 260, 76, ("", "PAYER'S name, address, ZIP code and telephone no.", "payer_name"), *PAYER[1:])
    people.cell(0, 90, 130, 28, ("", "PAYER'S federal identification no.", "payer_tin"))
    people.cell(130, 90, 130, 28, ("", "RECIPIENT'S identification no.", "recipient_tin"))
    people.cell(0, 118, 260, 66, ("", "RECIPIENT'S name, address and ZIP code", "recipient_name"), *RECIPIENT[1:])
    people.cell(0, 184, 260, 28, ("", "Account number", "account_number"))
    people.tick(0, 234, "FATCA filing requirement", "fatca_filing_requirement")
    return list(pen.forms)


RENTS: tuple[Cell, ...] = (
    ("1", "Rents", "rents"),
    ("2", "Royalties", "royalties"),
    ("3", "Other income", "other_income"),
    ("4", "Federal income tax withheld", "box_4"),
    ("5", "Fishing boat proceeds", "box_5"),
    ("6", "Medical and health care payments", "box_6"),
    ("8", "Substitute payments in lieu of dividends or interest", "box_8"),
    ("9", "Crop insurance proceeds", "box_9"),
    ("10", "Gross proceeds paid to an attorney", "box_10"),
)


def rent_grid(document: Any, facts: Facts, style: Style, **options: Any) -> list[Form]:
    """A 1099-MISC in the official arrangement, in other widths."""
    pen = fresh(document, facts, style, "1099-MISC")
    left = options.get("left", 250)
    pen.tick(200, 8, "CORRECTED (if checked)", "corrected")
    _payer_column(pen, left)
    x, w = left, (540 - left) * 0.36
    pen.write(x + 2 * w + 6, 26, "OMB No. 1545-0115", 6)
    pen.write(x + 2 * w + 6, 40, "Form 1099-MISC", 8, style.strong)
    pen.entry(x + 2 * w + 16, 62, "tax_year", 13)
    pen.note(x + 2 * w + 6, 76, 80, options.get("title", "Miscellaneous Information"), 8, style.strong)
    y = pen.grid(x, 14, (w, w), 30, RENTS[:6])
    if options.get("old"):
        pen.grid(x, y, (w, w), 30, (("7", "Nonemployee compensation", "box_7"), RENTS[6]))
        y += 30
    else:
        pen.cell(x, y, w, 30, ("7", "", ""))
        pen.tick(x + 8, y + 18, "Payer made direct sales totaling $5,000 or more", "box_7")
        pen.cell(x + w, y, w, 30, RENTS[6])
        y = pen.grid(x, y + 30, (w, w), 30, RENTS[7:])
    pen.cell(x, y, w * 0.8, 30, ("16", "State tax withheld", "box_16"))
    pen.cell(x + w * 0.8, y, w, 30, ("17", "State/Payer's state no.", "box_17_state"), "box_17_id", beside=True)
    pen.cell(x + w * 1.8, y, w * 0.9, 30, ("18", "State income", "box_18"))
    return list(pen.forms)


def rent_stub(document: Any, facts: Facts, style: Style, **options: Any) -> list[Form]:
    """A landlord's agent prints only the boxes that are filled, on a stub."""
    pen = fresh(document, facts, style, "1099-MISC")
    pen.rect(0, 0, 400, 250, line=1)
    pen.write(10, 18, "1099-MISC", 14, style.strong)
    pen.write(96, 18, "MISCELLANEOUS INCOME — RECIPIENT COPY", 7)
    pen.write(290, 18, "Tax year", 7)
    pen.entry(330, 18, "tax_year", 11)
    pen.write(10, 36, "FROM (PAYER)", 6, style.strong)
    pen.block(10, 48, PAYER[:3])
    pen.write(210, 36, "TO (RECIPIENT)", 6, style.strong)
    pen.block(210, 48, RECIPIENT)
    pen.write(10, 92, "Payer TIN", 6.5)
    pen.entry(60, 92, "payer_tin")
    pen.write(210, 92, "Recipient TIN", 6.5)
    pen.entry(270, 92, "recipient_tin")
    y = 120.0
    for number, label, name in RENTS:
        if name in facts:
            pen.write(10, y, f"Box {number} {label}", 7)
            pen.entry(380, y, name, align="right")
            y += 16
    return list(pen.forms)


def contractor_slip(document: Any, facts: Facts, style: Style, **options: Any) -> list[Form]:
    """A 1099-NEC slip, one to three on a page."""
    copies = options.get("copies", 1)
    pen = fresh(document, facts, style, "1099-NEC", copies=copies)
    for number in range(copies):
        slip = pen.moved(36, 30 + number * 250)
        _payer_column(slip, 260, account=False)
        slip.cell(0, 206, 260, 26, ("", "Account number (see instructions)", "account_number"))
        slip.write(270, 24, "OMB No. 1545-0116", 6)
        slip.write(270, 40, "Form 1099-NEC", 9, style.strong)
        if options.get("revision"):
            slip.write(270, 50, "(Rev. January 2022)", 5.5)
            slip.write(270, 60, "For calendar year", 6)
        slip.entry(330, 60, "tax_year", 11)
        slip.note(400, 30, 130, "Nonemployee Compensation", 10, style.strong)
        slip.cell(260, 72, 280, 30, ("1", "Nonemployee compensation", "nonemployee_compensation"))
        slip.cell(260, 102, 280, 30, ("2", "", ""))
        slip.tick(276, 118, "", "box_2")
        slip.write(290, 117, "Payer made direct sales totaling $5,000 or more of consumer products", 5.5)
        slip.cell(260, 132, 280, 26, ("3", "", ""))
        slip.cell(260, 158, 280, 28, ("4", "Federal income tax withheld", "federal_tax_withheld"))
        slip.cell(260, 186, 90, 30, ("5", "State tax withheld", "box_5"))
        slip.cell(350, 186, 100, 30, ("6", "State/Payer's state no.", "box_6_state"), "box_6_id", beside=True)
        slip.cell(450, 186, 90, 30, ("7", "State income", "box_7"))
    return list(pen.forms)


def contractor_lines(document: Any, facts: Facts, style: Style, **options: Any) -> list[Form]:
    """An accounts office's 1099-NEC as labelled lines."""
    pen = fresh(document, facts, style, "1099-NEC")
    pen.write(270, 12, "Form 1099-NEC   Nonemployee Compensation", 11, style.strong, align="middle")
    pen.write(270, 26, "(substitute statement, Copy B)", 7, align="middle")
    rows: tuple[tuple[str, tuple[str, ...]], ...] = (
        ("Calendar year", ("tax_year",)),
        ("PAYER'S name", ("payer_name",)),
        ("PAYER'S address", ("payer_street", "payer_city")),
        ("PAYER'S TIN", ("payer_tin",)),
        ("RECIPIENT'S name", ("recipient_name",)),
        ("Street address", ("recipient_street",)),
        ("City, state, ZIP", ("recipient_city",)),
        ("RECIPIENT'S TIN", ("recipient_tin",)),
        ("Account number", ("account_number",)),
        ("1. Nonemployee compensation", ("nonemployee_compensation",)),
        ("4. Federal income tax withheld", ("federal_tax_withheld",)),
        ("5. State tax withheld", ("box_5",)),
        ("6. State/Payer's state no.", ("box_6_state", "box_6_id")),
        ("7. State income", ("box_7",)),
    )
    y = 56.0
    for label, names in rows:
        pen.write(0, y, label + (":" if options.get("colon") else ""), 8)
        pen.row(options.get("column", 190), y, names, ", " if names[0] == "payer_street" else " ")
        y += options.get("step", 18)
    return list(pen.forms)


def consolidated(document: Any, facts: Facts, style: Style, **options: Any) -> list[Form]:
    """A broker's consolidated statement: three forms with one head."""
    page = document.new_page(width=612, height=792)
    kinds = options.get("kinds", ("1099-DIV", "1099-INT", "1099-MISC"))
    forms = [Form(kind, len(document)) for kind in kinds]
    pen = Pen(page, style, facts, forms, 30, 30)
    pen.entry(0, 14, "tax_year", 14)
    pen.write(44, 14, "Consolidated Form 1099", 14, style.strong)
    pen.write(420, 14, "Statement date 02/11", 7)
    pen.block(0, 34, PAYER)
    pen.write(0, 84, "Federal ID Number:", 7)
    pen.entry(84, 84, "payer_tin")
    pen.block(300, 34, RECIPIENT)
    pen.write(300, 72, "Account No.", 7)
    pen.entry(384, 72, "account_number")
    pen.write(300, 84, "Taxpayer ID Number:", 7)
    pen.entry(384, 84, "recipient_tin")
    titles = {
        "1099-DIV": ("Dividends and Distributions", "1545-0110", DIVIDENDS),
        "1099-INT": ("Interest Income", "1545-0112", INTEREST[:10]),
        "1099-MISC": ("Miscellaneous Information", "1545-0115", RENTS[1:4] + RENTS[6:7]),
    }
    y = 104.0
    for form in forms:
        title, number, cells = titles[form.kind]
        part = Pen(page, style, options["parts"][form.kind], [form], 30, 30)
        part.rect(0, y, 550, 14, fill=0.82)
        part.write(4, y + 10, f"Form {form.kind}", 8, style.strong)
        part.write(90, y + 10, f"{title}   (OMB No. {number})", 7)
        y += 16
        columns = options.get("columns", 1)
        for count, (box, label, name) in enumerate(cells):
            x = 275 * (count % columns)
            if count % columns == 0:
                y += 12
            part.write(x + 4, y, box, 6.5)
            part.write(x + 26, y, label, 6.5)
            part.entry(x + (265 if columns == 2 else 540), y, name, align="right")
        y += 22
    pen.write(
        4, y, "Summary of Form 1099-B proceeds: gross proceeds 14,220.18, cost basis 11,904.77 (not covered)", 6.5
    )
    return forms


PENSION: tuple[Cell, ...] = (
    ("1", "Gross distribution", "box_1"),
    ("2a", "Taxable amount", "box_2a"),
    ("3", "Capital gain (included in box 2a)", "box_3"),
    ("4", "Federal income tax withheld", "box_4"),
    ("5", "Employee contributions/Designated Roth contributions or insurance premiums", "box_5"),
    ("6", "Net unrealized appreciation in employer's securities", "box_6"),
    ("7", "Distribution code(s)", "box_7"),
    ("8", "Other", "box_8"),
)


def pension_card(document: Any, facts: Facts, style: Style, **options: Any) -> list[Form]:
    """A 1099-R in the official arrangement, in other widths."""
    pen = fresh(document, facts, style, "1099-R", wide=options.get("wide", False))
    left = options.get("left", 240)
    first = options.get("state_box", 14)
    _payer_column(pen, left)
    x, w = left, (540 - left) / 3
    pen.cell(x, 14, w, 32, PENSION[0])
    pen.cell(x, 46, w, 32, PENSION[1])
    pen.write(x + w + 6, 22, "OMB No. 1545-0119", 6)
    pen.entry(x + w + 20, 40, "tax_year", 13)
    pen.write(x + w + 6, 56, "Form 1099-R", 8, style.strong)
    pen.note(
        x + 2 * w + 6,
        24,
        w - 8,
        "Distributions From Pensions, Annuities, Retirement or Profit-Sharing Plans, IRAs, Insurance Contracts, etc.",
        6.5,
        style.strong,
    )
    pen.tick(x + w + 6, 71, "2b Taxable amount not determined", "_undetermined")
    y = pen.grid(x, 78, (w, w), 34, PENSION[2:8])
    pen.cell(x, y, w * 0.8, 30, (str(first), "State tax withheld", f"box_{first}"))
    names = (f"box_{first + 1}_state", f"box_{first + 1}_id")
    pen.cell(x + w * 0.8, y, w, 30, (str(first + 1), "State/Payer's state no.", names[0]), names[1], beside=True)
    pen.cell(x + w * 1.8, y, w, 30, (str(first + 2), "State distribution", f"box_{first + 2}"))
    return list(pen.forms)


def pension_statement(document: Any, facts: Facts, style: Style, **options: Any) -> list[Form]:
    """A pension fund's yearly statement with the boxes as lines."""
    pen = fresh(document, facts, style, "1099-R")
    pen.write(0, 12, "ANNUAL TAX STATEMENT TO RETIREES", 11, style.strong)
    pen.write(0, 28, "This statement replaces IRS Form 1099-R for tax year", 8)
    pen.entry(210, 28, "tax_year", 9)
    pen.write(0, 52, "Paid by", 7, style.strong)
    pen.block(60, 52, PAYER[:3])
    pen.write(330, 52, "Payer's federal ID", 7)
    pen.entry(410, 52, "payer_tin")
    pen.write(0, 100, "Paid to", 7, style.strong)
    pen.block(60, 100, RECIPIENT)
    pen.write(330, 100, "Recipient's SSN", 7)
    pen.entry(410, 100, "recipient_tin")
    y = 160.0
    for number, label, name in PENSION:
        pen.write(0, y, f"Box {number}", 7.5, style.strong)
        pen.write(46, y, label, 7.5)
        pen.entry(460, y, name, align="right")
        y += 16
    return list(pen.forms)


MORTGAGE: tuple[Cell, ...] = (
    ("1", "Mortgage interest received from payer(s)/borrower(s)", "box_1"),
    ("2", "Outstanding mortgage principal", "box_2"),
    ("3", "Mortgage origination date", "box_3"),
    ("4", "Refund of overpaid interest", "box_4"),
    ("5", "Mortgage insurance premiums", "box_5"),
    ("6", "Points paid on purchase of principal residence", "box_6"),
    ("9", "Number of properties securing the mortgage", "box_9"),
    ("10", "Other", "box_10"),
)


def mortgage_card(document: Any, facts: Facts, style: Style, **options: Any) -> list[Form]:
    """A 1098 in the official arrangement, in other widths."""
    pen = fresh(document, facts, style, "1098")
    left = options.get("left", 270)
    label = "RECIPIENT'S/LENDER'S name, street address, city or town, state, ZIP code, and telephone no."
    pen.cell(0, 14, left, 80, ("", label, "recipient_name"), *RECIPIENT[1:], "recipient_phone")
    pen.cell(0, 94, left / 2, 28, ("", "RECIPIENT'S/LENDER'S TIN", "recipient_tin"))
    pen.cell(left / 2, 94, left / 2, 28, ("", "PAYER'S/BORROWER'S TIN", "payer_tin"))
    pen.cell(0, 122, left, 70, ("", "PAYER'S/BORROWER'S name and address", "payer_name"), "payer_street", "payer_city")
    pen.cell(0, 192, left, 28, ("", "Account number (see instructions)", "account_number"))
    w = (540 - left) / 2
    pen.write(left + 6, 24, "OMB No. 1545-1380", 6)
    pen.write(left + 6, 38, "Form 1098", 8, style.strong)
    pen.entry(left + 60, 38, "tax_year", 12)
    pen.note(left + w + 6, 28, w - 10, "Mortgage Interest Statement", 11, style.strong)
    pen.cell(left, 62, 2 * w, 30, MORTGAGE[0])
    pen.grid(left, 92, (w, w), 32, (*MORTGAGE[1:5], MORTGAGE[5], None, *MORTGAGE[6:]))
    return list(pen.forms)


def mortgage_year(document: Any, facts: Facts, style: Style, **options: Any) -> list[Form]:
    """A lender's yearly loan statement with a 1098 in it."""
    pen = fresh(document, facts, style, "1098")
    pen.write(0, 12, "Year-End Loan Statement and Form 1098 Mortgage Interest Statement", 11, style.strong)
    pen.write(0, 26, "(Substitute form, OMB No. 1545-1380)   Year", 7)
    pen.entry(150, 26, "tax_year", 9)
    pen.write(0, 46, "Recipient/Lender", 7, style.strong)
    pen.block(0, 58, (*RECIPIENT, "recipient_phone"))
    pen.write(0, 110, "Recipient's/Lender's TIN", 7)
    pen.entry(92, 110, "recipient_tin")
    pen.write(300, 46, "Payer/Borrower", 7, style.strong)
    pen.block(300, 58, ("payer_name", "payer_street", "payer_city"))
    pen.write(300, 110, "Payer's/Borrower's TIN", 7)
    pen.entry(392, 110, "payer_tin")
    pen.write(300, 124, "Loan number", 7)
    pen.entry(392, 124, "account_number")
    y = 152.0
    for number, label, name in MORTGAGE:
        if name in facts or not options.get("filled_only"):
            pen.write(0, y, f"{number}.", 7.5, style.strong)
            pen.write(20, y, label, 7.5)
            pen.entry(420, y, name, align="right")
            y += 16
    pen.write(0, y + 20, "Escrow activity (not reported to the IRS)", 8, style.strong)
    for label, amount in (
        ("Beginning balance", "1,902.44"),
        ("Deposits", "4,310.16"),
        ("Hazard insurance paid", "1,287.00"),
    ):
        y += 14
        pen.write(20, y + 22, label, 7)
        pen.write(420, y + 22, amount, 8, align="right")
    return list(pen.forms)


SHARES: tuple[Cell, ...] = (
    ("1", "Ordinary business income (loss)", "ordinary_income"),
    ("2", "Net rental real estate income (loss)", "box_2"),
    ("3", "Other net rental income (loss)", "box_3"),
    ("4a", "Guaranteed payments for services", "box_4a"),
    ("5", "Interest income", "box_5"),
    ("6a", "Ordinary dividends", "box_6a"),
    ("6b", "Qualified dividends", "box_6b"),
    ("7", "Royalties", "box_7"),
    ("8", "Net short-term capital gain (loss)", "box_8"),
    ("9a", "Net long-term capital gain (loss)", "box_9a"),
    ("10", "Net section 1231 gain (loss)", "box_10"),
    ("12", "Section 179 deduction", "box_12"),
)


def partner_columns(document: Any, facts: Facts, style: Style, **options: Any) -> list[Form]:
    """A Schedule K-1 with the partnership at the left and the shares at the right."""
    pen = fresh(document, facts, style, "K-1")
    pen.write(0, 12, "Schedule K-1 (Form 1065)", 11, style.strong)
    pen.entry(150, 12, "tax_year", 13)
    pen.write(0, 24, "Partner's Share of Income, Deductions, Credits, etc.", 8)
    pen.write(0, 42, "Part I   Information About the Partnership", 8, style.strong)
    left = options.get("left", 260)
    pen.cell(0, 48, left, 30, ("A", "Partnership's employer identification number", "partnership_ein"))
    names = ("partnership_street", "partnership_city")
    pen.cell(
        0, 78, left, 72, ("B", "Partnership's name, address, city, state, and ZIP code", "partnership_name"), *names
    )
    pen.write(0, 166, "Part II   Information About the Partner", 8, style.strong)
    pen.cell(0, 172, left, 30, ("E", "Partner's SSN or TIN", "partner_tin"))
    names = ("partner_street", "partner_city")
    pen.cell(0, 202, left, 72, ("F", "Name, address, city, state, and ZIP code for partner", "partner_name"), *names)
    pen.write(left + 10, 42, "Part III   Partner's Share of Current Year Income", 8, style.strong)
    pen.grid(left + 10, 48, (540 - left - 10,) if options.get("single") else ((530 - left) / 2,) * 2, 30, SHARES)
    return list(pen.forms)


def partner_lines(document: Any, facts: Facts, style: Style, **options: Any) -> list[Form]:
    """A Schedule K-1 in a tax program's plain lines."""
    pen = fresh(document, facts, style, "K-1")
    pen.write(0, 12, "SCHEDULE K-1 (FORM 1065) — PARTNER'S SHARE OF INCOME, DEDUCTIONS, CREDITS", 9, style.strong)
    pen.write(0, 28, "Tax year", 8)
    pen.entry(60, 28, "tax_year")
    y = 52.0
    rows: tuple[tuple[str, tuple[str, ...]], ...] = (
        ("A  Partnership's EIN", ("partnership_ein",)),
        ("B  Partnership", ("partnership_name", "partnership_street", "partnership_city")),
        ("E  Partner's identifying number", ("partner_tin",)),
        ("F  Partner", ("partner_name", "partner_street", "partner_city")),
    )
    for label, names in rows:
        pen.write(0, y, label, 8)
        pen.block(170, y, names)
        y += 14 * len(names) + 4
    for number, label, name in SHARES:
        pen.write(0, y, number, 8, style.strong)
        pen.write(26, y, label, 8)
        pen.entry(380, y, name, align="right")
        y += 15
    return list(pen.forms)


# --------------------------------------------------------------------------------------------------- layouts

PLAIN = Style()
RIGHT = Style(align="right", entry="helv", dollar=True)
TINY = Style(label_size=5.2, entry_size=8, entry="helv", line=0.3)
SERIF = Style(face="tiro", strong="tibo", entry="cour", label_size=6.6)
BARE = Style(border="none", label_size=6.2, entry="hebo", entry_size=8.5)
LINED = Style(border="bottom", label_size=5.6, entry="cobo", align="right")
SHOUTED = Style(capitals=True, loud=True, label_size=5.0, entry="cour", numbers="{}. ")
DEJAVU = Style(face="dvcond", strong="dvcondb", entry="dvmono", label_size=5.4, entry_size=8, thousands=False)
ZEROS = Style(zeros=7, entry="cour", numbers="Box {}: ", label_size=5.6)
MASKED = Style(mask="X", entry="helv", dollar=True, align="right")
STARS = Style(mask="*", entry="cour", whole=True)
BLUE = Style(ink=(0.1, 0.15, 0.55), entry="tiro", entry_size=10, dashes=False)
SHADED = Style(shade=0.86, label_size=5.8, entry="helv", align="middle")


def layouts() -> list[Layout]:  # noqa: PLR0915
    """All layouts of this half; the same ones every time."""
    drawn: list[Layout] = []

    def add(name: str, painter: Painter, facts: Facts, style: Style, **options: Any) -> None:
        drawn.append(Layout(f"open-{len(drawn) + 1:02}-{name}", partial(painter, facts=facts, style=style, **options)))

    def inventor() -> Inventor:
        return Inventor(POOL, f"open {len(drawn)}")

    retirement = ("retirement_plan",)
    two = ("OH", "MI")
    add("w2-ladder", ladder, wage_facts(inventor(), 2023, states=("OR",), codes=("D",), ticks=retirement), PLAIN)
    full = wage_facts(inventor(), 2022, states=two, local=True, codes=("D", "DD", "W"), other=("UNION",), tips=True)
    add("w2-ladder-two-states", ladder, full, TINY, split=270, words=OFFICIAL, notice=True)
    add("w2-ladder-serif", ladder, wage_facts(inventor(), 2019, codes=("C", "DD")), SERIF, split=310, notice=True)
    add("w2-ladder-blank", ladder, only_year(wage_facts(inventor(), 2024)), PLAIN, notice=True)
    gone = wage_facts(inventor(), 2021, states=("PA",), local=True)
    add("w2-ladder-no-ein", ladder, without(gone, "employer_ein"), RIGHT)
    add("w2-money-first", money_first, wage_facts(inventor(), 2023, states=("NY",), codes=("D", "AA", "DD")), RIGHT)
    full = wage_facts(inventor(), 2024, states=two, local=True, codes=("E",), other=("SDI", "FLI"), ticks=retirement)
    add("w2-money-first-two-states", money_first, full, PLAIN, tall=30)
    add("w2-money-first-shout", money_first, wage_facts(inventor(), 2020, states=("IN",)), SHOUTED, words=CLIPPED)
    add("w2-money-first-zeros", money_first, wage_facts(inventor(), 2018, codes=("P",)), ZEROS, words=OFFICIAL)
    gone = wage_facts(inventor(), 2022, states=("OR",))
    add("w2-money-first-no-wages", money_first, without(gone, "wages_tips"), MASKED)
    small = Style(label_size=5, entry_size=7.5, entry="helv", line=0.3)
    full = wage_facts(inventor(), 2023, states=("OH",), local=True, codes=("D", "DD"), ticks=retirement)
    add("w2-four", four_on_a_page, full, small)
    full = wage_facts(inventor(), 2021, states=two, codes=("D",), other=("HSA",))
    add(
        "w2-four-two-states", four_on_a_page, full, Style(label_size=5.2, entry_size=7.5), people_first=True, outer=True
    )
    add("w2-four-blank", four_on_a_page, only_year(wage_facts(inventor(), 2025)), small, words=SHORT)
    bare = Style(label_size=5.2, entry_size=7.5, border="none", entry="cobo")
    add("w2-four-bare", four_on_a_page, wage_facts(inventor(), 2025, states=("PA",)), bare, words=SHORT, outer=True)
    full = wage_facts(inventor(), 2022, states=("NY",), codes=("D", "DD"), other=("NYSDI",), ticks=retirement)
    add("w2-earnings-summary", earnings_summary, full, TINY)
    full = wage_facts(inventor(), 2020, states=("MI",), codes=("BB",))
    add("w2-earnings-summary-masked", earnings_summary, full, Style(mask="X", label_size=5.6, entry="helv"))
    add("w2-list", numbered_list, wage_facts(inventor(), 2023, states=("OR",), codes=("D",)), PLAIN)
    add("w2-list-dots", numbered_list, wage_facts(inventor(), 2019, states=two, tips=True), DEJAVU, dots=True)
    gone = wage_facts(inventor(), 2021, states=("IN",))
    add("w2-list-no-number", numbered_list, without(gone, "employee_ssn"), SERIF, words=SHORT)
    full = wage_facts(
        inventor(), 2024, states=("PA",), local=True, codes=("D", "W"), other=("PA SUI",), ticks=retirement
    )
    add("w2-two-up", two_up, full, Style(label_size=5.4, entry_size=8, entry="helv"))
    add("w2-two-up-shaded", two_up, wage_facts(inventor(), 2018, states=("OH",)), SHADED, words=SHORT)
    gone = without(wage_facts(inventor(), 2022, states=("NY",)), "tax_year")
    add("w2-two-up-no-year", two_up, gone, Style(label_size=5.8, entry_size=8, entry="cour"), words=CLIPPED)

    add("int-letter", bank_letter, interest_facts(inventor(), 2023, more=1), PLAIN)
    add("int-letter-all", bank_letter, interest_facts(inventor(), 2021, more=5), RIGHT, all=True)
    add("int-letter-numbers", bank_letter, interest_facts(inventor(), 2019, more=2), MASKED, word=False)
    add("int-letter-no-income", bank_letter, without(interest_facts(inventor(), 2022), "interest_income"), PLAIN)
    add("int-card", interest_card, interest_facts(inventor(), 2024, more=3, state="OH"), PLAIN, revision=True)
    add("int-card-twice", interest_card, interest_facts(inventor(), 2020, more=1), TINY, left=250, twice=True)
    add("int-card-blue", interest_card, interest_facts(inventor(), 2022, more=4), BLUE, left=210)
    add("int-card-blank", interest_card, only_year(interest_facts(inventor(), 2023)), PLAIN, twice=True)
    add("int-card-no-tin", interest_card, without(interest_facts(inventor(), 2021, more=1), "recipient_tin"), SERIF)
    add("div-strip", dividend_strip, dividend_facts(inventor(), 2023, more=5), PLAIN, lines=True)
    add("div-strip-filled", dividend_strip, dividend_facts(inventor(), 2022, more=2), MASKED, filled_only=True)
    add("div-strip-old", dividend_strip, dividend_facts(inventor(), 2019, more=7), DEJAVU, year=2019)
    add("div-grid", dividend_grid, dividend_facts(inventor(), 2024, more=4), RIGHT)
    add("div-grid-bare", dividend_grid, dividend_facts(inventor(), 2021, more=7), BARE, wide=True)
    add("div-grid-no-payer-tin", dividend_grid, without(dividend_facts(inventor(), 2023, more=1), "payer_tin"), LINED)
    add("misc-grid", rent_grid, rent_facts(inventor(), 2023, ("rents",), state="OR"), PLAIN)
    add("misc-grid-many", rent_grid, rent_facts(inventor(), 2021, ("royalties", "box_4", "box_10", "box_7")), TINY)
    old = rent_facts(inventor(), 2019, ("box_7", "other_income"))
    add("misc-grid-old", rent_grid, old, SERIF, old=True, title="Miscellaneous Income", left=230)
    add("misc-grid-blank", rent_grid, only_year(rent_facts(inventor(), 2022, ())), RIGHT)
    add("misc-stub", rent_stub, rent_facts(inventor(), 2022, ("rents", "box_6")), STARS)
    add("misc-stub-shout", rent_stub, rent_facts(inventor(), 2024, ("other_income",)), SHOUTED)
    add("nec-slip", contractor_slip, contractor_facts(inventor(), 2023, tax=True, state="MI"), PLAIN, revision=True)
    add("nec-slip-three", contractor_slip, contractor_facts(inventor(), 2021, sales=True), TINY, copies=3)
    add("nec-slip-blue", contractor_slip, contractor_facts(inventor(), 2025), BLUE)
    add(
        "nec-slip-no-pay",
        contractor_slip,
        without(contractor_facts(inventor(), 2022), "nonemployee_compensation"),
        RIGHT,
    )
    add("nec-slip-blank", contractor_slip, only_year(contractor_facts(inventor(), 2024)), TINY, copies=2)
    add("nec-lines", contractor_lines, contractor_facts(inventor(), 2020, tax=True, state="PA"), DEJAVU, colon=True)
    add("nec-lines-near", contractor_lines, contractor_facts(inventor(), 2024), PLAIN, column=140, step=13)

    for year, kinds, style, columns in (
        (2023, ("1099-DIV", "1099-INT", "1099-MISC"), PLAIN, 1),
        (2021, ("1099-INT", "1099-DIV"), Style(entry="helv", entry_size=7.5, dollar=True, mask="X"), 2),
    ):
        head = payment_head(inventor(), year)
        maker = inventor()
        parts: dict[str, Facts] = {
            "1099-DIV": amounts_of(dividend_facts(maker, year, more=4)),
            "1099-INT": amounts_of(interest_facts(maker, year, more=2)),
            "1099-MISC": amounts_of(rent_facts(maker, year, ("royalties", "box_8"))),
        }
        add(
            "consolidated" if columns == 1 else "consolidated-two-columns",
            consolidated,
            head,
            style,
            parts=parts,
            kinds=kinds,
            columns=columns,
        )

    add("r-card", pension_card, pension_facts(inventor(), 2023, "7", state="MI"), PLAIN)
    add("r-card-old", pension_card, pension_facts(inventor(), 2019, "1", state="OH"), SERIF, state_box=12, left=220)
    add("r-card-no-tin", pension_card, without(pension_facts(inventor(), 2022, "4"), "recipient_tin"), TINY)
    add("r-statement", pension_statement, pension_facts(inventor(), 2024, "7"), MASKED)
    add("mortgage-card", mortgage_card, mortgage_facts(inventor(), 2023), PLAIN)
    add("mortgage-card-blank", mortgage_card, only_year(mortgage_facts(inventor(), 2024)), TINY)
    add("mortgage-year", mortgage_year, mortgage_facts(inventor(), 2022, more=False), RIGHT, filled_only=True)
    add("k1-columns", partner_columns, partner_facts(inventor(), 2023, more=5), PLAIN)
    add("k1-columns-loss", partner_columns, partner_facts(inventor(), 2020, loss=True), RIGHT, single=True, left=280)
    add("k1-columns-no-ein", partner_columns, without(partner_facts(inventor(), 2022), "partnership_ein"), SERIF)
    add("k1-lines", partner_lines, partner_facts(inventor(), 2021, loss=True, more=6), Style(minus="-", entry="cour"))
    return drawn


def payment_head(inventor: Inventor, year: int) -> dict[str, Any]:
    """Payer, recipient and year of a statement of several forms."""
    return {name: fact for name, fact in interest_facts(inventor, year).items() if name != "interest_income"}


def amounts_of(facts: Facts) -> dict[str, Any]:
    """Only the amounts of a form whose head stands above."""
    return {name: fact for name, fact in facts.items() if not isinstance(fact, str)}
