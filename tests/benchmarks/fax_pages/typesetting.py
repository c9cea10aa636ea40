"""Typesetting of plain texts as hospitals' papers: six layouts, eight fonts, invented letterheads and tables."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from pathlib import Path

import pymupdf

DEJAVU = Path("/usr/share/fonts/truetype/dejavu")
WIDTH, HEIGHT = 612.0, 792.0
FONTS = (
    ("helv", "hebo"),
    ("tiro", "tibo"),
    ("cour", "cobo"),
    ("DejaVuSans", "DejaVuSans-Bold"),
    ("DejaVuSerif", "DejaVuSerif-Bold"),
    ("DejaVuSansMono", "DejaVuSansMono-Bold"),
    ("helv", "tibo"),
    ("tiro", "hebo"),
)
SIGNS = str.maketrans({"\x92": "'", "\xad": None, "\x88": None, "¨": None, "£": None, "\t": " "})

PLACES = (
    "Alder Creek",
    "Northgate",
    "St. Brannoc",
    "Harlow Valley",
    "Three Rivers",
    "Pinecrest",
    "Old Quay",
    "Mesa Verde",
)
HOUSES = (
    "Regional Medical Center",
    "Community Hospital",
    "Cancer Institute",
    "Imaging Associates",
    "Clinic",
    "Pathology Group",
)
STREETS = ("Orchard Street", "Harbor Road", "Mill Lane", "Second Avenue", "Quarry Hill", "Station Square")
TOWNS = ("Fairhaven, ME 04930", "Dunmore, PA 18512", "Elkton, KY 42220", "Sable, MN 55901", "Corvin, OR 97330")
FIRST = ("Maren", "Tobias", "Ines", "Radu", "Leonie", "Oskar", "Amara", "Kwame", "Yuki", "Selma", "Pascal", "Nadia")
LAST = ("Hollister", "Vantongeren", "Quiroga", "Ashdown", "Brightwell", "Ferreira", "Lindqvist", "Okonjo", "Marchetti")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
ANALYTES = (
    ("Hemoglobin", "g/dL", 7.0, 17.5, 1, "12.0-16.0"),
    ("White cells", "10*9/L", 1.5, 22.0, 1, "4.0-10.5"),
    ("Platelets", "10*9/L", 40, 510, 0, "150-400"),
    ("Sodium", "mmol/L", 121, 152, 0, "136-145"),
    ("Potassium", "mmol/L", 2.4, 6.4, 1, "3.5-5.1"),
    ("Creatinine", "mg/dL", 0.4, 4.8, 2, "0.60-1.20"),
    ("CEA", "ng/mL", 0.5, 88.0, 1, "< 3.0"),
    ("CA 19-9", "U/mL", 2, 980, 0, "< 37"),
    ("PSA", "ng/mL", 0.01, 41.0, 2, "0.00-4.00"),
    ("TSH", "mIU/L", 0.02, 9.9, 2, "0.27-4.20"),
    ("INR", "", 0.9, 4.4, 1, "0.9-1.1"),
    ("Ferritin", "ug/L", 4, 900, 0, "13-150"),
)


@dataclass
class Sheet:
    """A page that is being set, from the top down."""

    page: pymupdf.Page
    body: pymupdf.Font
    bold: pymupdf.Font
    size: float
    left: float
    right: float
    y: float

    def put(self, x: float, y: float, text: str, *, bold: bool = False, size: float | None = None) -> None:
        """Set one run of text at its baseline."""
        writer = pymupdf.TextWriter(self.page.rect)
        writer.append((x, y), text, font=self.bold if bold else self.body, fontsize=size or self.size)
        writer.write_text(self.page)

    def rule(self, y: float, width: float = 0.8) -> None:
        """Draw a line from margin to margin."""
        self.page.draw_line((self.left, y), (self.right, y), width=width)


def open_font(name: str) -> pymupdf.Font:
    """One of the fonts that come with MuPDF, or one of the DejaVu family."""
    return pymupdf.Font(fontfile=str(DEJAVU / f"{name}.ttf")) if name.startswith("DejaVu") else pymupdf.Font(name)


def break_lines(text: str, font: pymupdf.Font, size: float, width: float) -> list[str]:
    """Break one paragraph into lines that fit."""
    lines: list[str] = []
    line = ""
    for word in text.split():
        longer = f"{line} {word}".strip()
        if line and font.text_length(longer, size) > width:
            lines.append(line)
            line = word
        else:
            line = longer
    return [*lines, line] if line else lines


def invent_digits(rng: random.Random, count: int) -> str:
    """A number of that many digits."""
    return "".join(rng.choice("0123456789") for _ in range(count))


def invent_date(rng: random.Random) -> str:
    """A day in one of the ways in which hospitals write it."""
    year, month, day = rng.randint(1938, 2025), rng.randint(1, 12), rng.randint(1, 28)
    return rng.choice(
        (
            f"{month:02}/{day:02}/{year}",
            f"{year}-{month:02}-{day:02}",
            f"{day} {MONTHS[month - 1]} {year}",
            f"{month}/{day}/{year % 100:02}",
        )
    )


def set_letterhead(sheet: Sheet, rng: random.Random) -> None:
    """Name and address of an invented hospital, on the left or in the middle, with a rule or without."""
    name = f"{rng.choice(PLACES)} {rng.choice(HOUSES)}"
    address = f"{rng.randint(3, 9800)} {rng.choice(STREETS)}, {rng.choice(TOWNS)}"
    phones = f"Tel ({invent_digits(rng, 3)}) 555-{invent_digits(rng, 4)}   Fax ({invent_digits(rng, 3)}) 555-{invent_digits(rng, 4)}"
    centred = rng.random() < 0.45
    rows = (
        (name, True, sheet.size + rng.choice((2, 4, 6))),
        (address, False, sheet.size - 1),
        (phones, False, sheet.size - 1),
    )
    for text, bold, size in rows:
        font = sheet.bold if bold else sheet.body
        x = (WIDTH - font.text_length(text, size)) / 2 if centred else sheet.left
        sheet.put(x, sheet.y, text, bold=bold, size=size)
        sheet.y += size * 1.35
    if rng.random() < 0.6:
        sheet.rule(sheet.y, rng.choice((0.5, 1.0, 2.0)))
    sheet.y += 14


def set_patient(sheet: Sheet, rng: random.Random, *, boxed: bool) -> None:
    """The patient's facts in two columns, in a box or free."""
    facts = [
        ("Patient", f"{rng.choice(FIRST)} {rng.choice(LAST)}"),
        (rng.choice(("MRN", "Unit No", "Chart #")), invent_digits(rng, rng.choice((6, 7, 8)))),
        (rng.choice(("DOB", "Born", "Date of birth")), invent_date(rng)),
        (rng.choice(("Visit", "Seen", "Collected")), invent_date(rng)),
        (
            rng.choice(("Account", "Accession", "Case")),
            f"{rng.choice('SHLQ')}{invent_digits(rng, 2)}-{invent_digits(rng, 5)}",
        ),
        (rng.choice(("Physician", "Ordered by", "cc")), f"{rng.choice(LAST)}, {rng.choice(FIRST)} MD"),
    ]
    top = sheet.y - sheet.size * 1.3
    middle = (sheet.left + sheet.right) / 2
    for number, (label, value) in enumerate(facts):
        x = sheet.left + 5 if number % 2 == 0 else middle
        sheet.put(x, sheet.y, f"{label}:", bold=True)
        sheet.put(x + sheet.bold.text_length(f"{label}: ", sheet.size) + 2, sheet.y, value)
        if number % 2:
            sheet.y += sheet.size * 1.4
    if boxed:
        sheet.page.draw_rect(pymupdf.Rect(sheet.left, top, sheet.right, sheet.y - sheet.size * 0.7), width=0.8)
    sheet.y += sheet.size * 0.9


def set_results(sheet: Sheet, rng: random.Random, *, ruled: bool) -> None:
    """A small table of laboratory results, with rules or without."""
    columns = [sheet.left + share * (sheet.right - sheet.left) for share in (0.01, 0.34, 0.5, 0.68, 0.9)]
    top = sheet.y - sheet.size * 1.1
    for x, title in zip(columns, ("Test", "Result", "Units", "Reference", "Flag"), strict=True):
        sheet.put(x, sheet.y, title, bold=True)
    for name, unit, low, high, places, reference in rng.sample(ANALYTES, rng.randint(4, 7)):
        sheet.y += sheet.size * 1.35
        value = f"{rng.uniform(low, high):.{places}f}"
        for x, text in zip(columns, (name, value, unit, reference, rng.choice(("", "", "H", "L"))), strict=True):
            if text:
                sheet.put(x, sheet.y, text)
        if ruled:
            sheet.rule(sheet.y + sheet.size * 0.35, 0.4)
    if ruled:
        sheet.page.draw_rect(pymupdf.Rect(sheet.left, top, sheet.right, sheet.y + sheet.size * 0.35), width=0.8)
    sheet.y += sheet.size * 2.2


def is_heading(line: str) -> bool:
    """True if a line of the text looks like a heading."""
    return len(line) < 60 and (line.rstrip().endswith(":") or (line.isupper() and any(map(str.isalpha, line))))


def set_body(sheet: Sheet, lines: list[str], *, side: float, leading: float, justified: bool, words: int) -> None:
    """Set the text until the page is full or has ``words`` words; headings go into the side column, if there is one."""
    left = sheet.left + side
    width = sheet.right - left
    bottom = HEIGHT - 62
    count = 0
    for line in lines:
        heading = is_heading(line)
        font = sheet.bold if heading else sheet.body
        room = side - 8 if heading and side else width
        broken = break_lines(line, font, sheet.size, room)
        start = sheet.y
        for number, part in enumerate(broken):
            if sheet.y > bottom or count > words:
                return
            x = sheet.left if heading else left
            count += len(part.split())
            parts = part.split()
            if justified and not heading and number < len(broken) - 1 and len(parts) > 3:
                gap = (room - sum(sheet.body.text_length(word, sheet.size) for word in parts)) / (len(parts) - 1)
                for word in parts:
                    sheet.put(x, sheet.y, word)
                    x += sheet.body.text_length(word, sheet.size) + gap
            else:
                sheet.put(x, sheet.y, part, bold=heading)
            sheet.y += sheet.size * leading
        if heading and side and len(broken) == 1:
            sheet.y = start
        elif not heading:
            sheet.y += sheet.size * 0.35


def typeset(text: str, seed: int) -> pymupdf.Document:
    """Set the beginning of a text as one page; layout, fonts and invented matter come from the seed."""
    rng = random.Random(seed)
    lines = [line for raw in text.translate(SIGNS).splitlines() if (line := re.sub(r"\s+", " ", raw).strip())]
    document = pymupdf.open()
    page = document.new_page(width=WIDTH, height=HEIGHT)
    body, bold = rng.choice(FONTS)
    wide = "Mono" in body or body.startswith(("cour", "DejaVu"))
    size = rng.choice((8.5, 9, 9.5, 10)) if wide else rng.choice((9, 9.5, 10, 10.5, 11, 12))
    margin = rng.choice((46, 54, 64, 78))
    sheet = Sheet(page, open_font(body), open_font(bold), size, margin, WIDTH - margin, rng.choice((56, 66, 74)))
    layout = rng.choice(("letter", "report", "boxed", "memo", "side", "narrow"))
    if rng.random() < 0.5:
        sender = f"{invent_date(rng)}  {rng.randint(0, 23):02}:{rng.randint(0, 59):02}  From: {rng.choice(PLACES)}  Fax {invent_digits(rng, 3)}-555-{invent_digits(rng, 4)}"
        sheet.put(30, 26, f"{sender}   P. {rng.randint(1, 9):02}/{rng.randint(9, 14):02}", size=9)
    if layout != "memo":
        set_letterhead(sheet, rng)
    set_patient(sheet, rng, boxed=layout == "boxed" or rng.random() < 0.2)
    if rng.random() < 0.35:
        set_results(sheet, rng, ruled=rng.random() < 0.5)
    if layout == "narrow":
        sheet.left += 40
        sheet.right -= 40
    set_body(
        sheet,
        lines,
        side=104 if layout == "side" else 0,
        leading=rng.choice((1.2, 1.3, 1.45)),
        justified=layout == "report",
        words=rng.randint(170, 260),
    )
    if layout == "boxed":
        page.draw_rect(pymupdf.Rect(sheet.left - 10, 36, sheet.right + 10, HEIGHT - 44), width=1)
    if rng.random() < 0.5:
        sheet.put(
            sheet.left,
            HEIGHT - 30,
            f"Page {rng.randint(1, 4)} of {rng.randint(4, 7)}   Form {rng.randint(100, 999)}-{rng.choice('ABCDE')}",
            size=8.5,
        )
    return document
