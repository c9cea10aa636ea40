"""Strokes and words of the halves `h_open` and `h_sealed`; no layout, person or institution stands here.

The 44 layouts are divided between `layouts_h_open` and `layouts_h_sealed` within their groups by the hash of their names.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import pymupdf

from .drawing import FACES, Sheet
from .persons import write_day

LEFT, RIGHT = 54.0, 558.0
MONTH_FIRST = ("mdy", "mdy_short", "mdy_two", "dashes")
SEXES = {"F": "Female", "M": "Male"}
Pairs = list[tuple[str, str]]
Row = list[tuple[float, str, str]]


@dataclass(frozen=True)
class Land:
    """A country's words; in `shape` each 9 is a digit and %y, %m, %d are of the birth date."""

    national: str
    shape: str
    record: str
    style: str
    birth: str
    doctor: str
    kin: str


USA = Land("SSN", "XXX-XX-9999", "MRN", "mdy", "DOB", "PCP", "Emergency contact")
# Keyed by the word behind the bar in an institution's address.
LANDS = {
    "USA": USA,
    "England": Land("NHS No.", "999 999 9999", "Hospital No.", "day_first", "Date of Birth", "GP", "Next of kin"),
    "Scotland": Land("CHI", "%d%m%y9999", "Unit No.", "day_first", "D.o.B.", "GP", "Next of kin"),
    "Ireland": Land("IHI", "99 9999 9999", "Chart No.", "day_first", "DOB", "GP", "N.O.K."),
    "Canada": Land("HN", "9999 999 999", "Chart #", "iso", "DOB", "Family physician", "Emergency contact"),
    "Australia": Land("Medicare No.", "2999 99999 9", "URN", "day_first", "DOB", "LMO", "NOK"),
    "New Zealand": Land("ACC No.", "1009999999", "Patient No.", "abbreviated", "D.O.B.", "GP", "Contact person"),
    "Germany": Land("Insured no.", "A999999999", "Patient ID", "dots", "born", "Family doctor", "Relative"),
    "Austria": Land("SV no.", "9999 %d%m%y", "Admission no.", "dots", "born on", "Family doctor", "Relative"),
    "France": Land("INS", "1 %y %m 75 999 999 99", "IPP", "day_first", "Born on", "Treating physician", "To notify"),
    "Spain": Land("CIP", "BBBB%y%m99999", "NHC", "day_first", "Date of birth", "Primary care", "Accompanied by"),
    "Sweden": Land("Personal ID no.", "%Y%m%d-9999", "Case no.", "iso", "Born", "Health centre", "Next of kin"),
    "Poland": Land("PESEL", "%y%m%d99999", "Main book no.", "dots", "Date of birth", "Family doctor", "Authorised"),
    "India": Land("ABHA No.", "91-9999-9999-9999", "UHID", "day_first_dashes", "DOB", "Ref. by", "Attendant"),
    "Kenya": Land("SHA No.", "CR999999999-9", "OP/IP No.", "day_first", "D.O.B", "Clinician", "Next of kin"),
    "Nigeria": Land("NIN", "99999999999", "Hosp. No.", "day_first", "Date of Birth", "Referred by", "Next of Kin"),
    "South Africa": Land("ID No.", "%y%m%d9999089", "Folder No.", "year_first", "Birth date", "Ref. Dr", "Guarantor"),
    "Brazil": Land("CNS", "799 9999 9999 9999", "Record (Prontuário)", "day_first", "Birth", "Physician", "Companion"),
    "Colombia": Land("CC", "99.999.999", "HC No.", "day_first", "Date of birth", "Referring", "Responsible party"),
    "Mexico": Land("NSS", "99 99 99 9999 9", "Exp. No.", "day_first", "Date of birth", "Referring", "Responsible"),
}


def land_of(sheet: Sheet) -> Land:
    return LANDS[sheet.card.institution.address.rsplit("|", 1)[1]]


def write_address(sheet: Sheet) -> str:
    return sheet.card.institution.address.rsplit("|", 1)[0]


def write_fixed(sheet: Sheet, mark: str, shape: str) -> str:
    """Write a number that stays the same on all pages of the document; each 9 is a digit."""
    rng = random.Random(f"{mark} {sheet.card.account} {sheet.card.visit}")
    return "".join(str(rng.randint(1, 9)) if sign == "9" else sign for sign in shape)


def write_national(sheet: Sheet) -> str:
    """Write the national number, the same in every document of a person in a country."""
    person, land = sheet.card.person, land_of(sheet)
    rng = random.Random(f"{land.national} {person.family} {person.born}")
    shape = "".join(str(rng.randint(0, 9)) if sign == "9" else sign for sign in land.shape)
    return person.born.strftime(shape)


def born(sheet: Sheet, style: str = "") -> str:
    """Show the birth date as the country writes it, unless a style is asked for.

    Month before day in figures is left to the States, and day before month with strokes to days above 12:
    the truth of a page must not hang on another page.
    """
    card, land = sheet.card, land_of(sheet)
    style = style or land.style
    if land is not USA:
        if style in MONTH_FIRST:
            style = land.style
        if card.birth_style in MONTH_FIRST:
            card.birth_style = "long_day_first"
    if style.startswith("day_first") and card.person.born.day <= 12:
        style = "abbreviated"
    return sheet.show_birth(style)


def day_of(sheet: Sheet, style: str = "") -> str:
    land = land_of(sheet)
    return write_day(sheet.card.seen, land.style if not style or (style in MONTH_FIRST and land is not USA) else style)


def born_kin(sheet: Sheet, style: str = "") -> str:
    land = land_of(sheet)
    return write_day(
        sheet.setting.relative_born, land.style if not style or (style in MONTH_FIRST and land is not USA) else style
    )


def write_mother(sheet: Sheet) -> str:
    """Write the mother's name, of an adult too."""
    person = sheet.card.person
    rng = random.Random(f"mother {person.given} {person.family} {person.born}")
    given = rng.choice([pair[0] for pair in sheet.setting.pool.women if pair[0] not in (person.given, person.middle)])
    return f"{given} {person.family}"


def note(sheet: Sheet, name: str) -> str:
    """Note a form of the name that the card does not write."""
    sheet.printed_name = sheet.printed_name or name
    sheet.printed.append(name)
    return name


def surname_given(sheet: Sheet) -> str:
    """Show SURNAME Given, without a comma."""
    return note(sheet, f"{sheet.card.write_name('family').upper()} {sheet.card.write_name('given')}")


def surname_titled(sheet: Sheet) -> str:
    """Show SURNAME, Given (Title)."""
    return sheet.show_name("surname_first")


def put(
    sheet: Sheet,
    x: float,
    y: float,
    text: str,
    size: float = 9,
    bold: bool = False,
    width: float = 0,
    align: str = "left",
    pale: bool = False,
) -> None:
    """Write a line from, up to or around x, smaller where it would not go in."""
    font = FACES[sheet.face][bold]
    room = width or {"left": 576 - x, "right": x - 36, "middle": 2 * min(x - 36, 576 - x)}[align]
    long = pymupdf.get_text_length(text, fontname=font, fontsize=size)
    size, long = (size * room / long, room) if long > room else (size, long)
    x -= {"left": 0, "right": long, "middle": long / 2}[align]
    shade = 0.42 if pale else 0
    sheet.page.insert_text((x, y), text, fontname=font, fontsize=size, color=(shade,) * 3)


def list_pairs(
    sheet: Sheet,
    x: float,
    y: float,
    rows: Pairs,
    gap: float,
    width: float,
    step: float = 12,
    size: float = 9,
    bold: str = "label",
) -> float:
    """Write labels with their texts to the right; returns the y below."""
    for label, text in rows:
        put(sheet, x, y, label, size, bold == "label", gap - 3)
        put(sheet, x + gap, y, text, size, bold == "text", width - gap)
        y += step
    return y


def stack(
    sheet: Sheet, x: float, y: float, rows: Pairs, width: float, size: float = 9, step: float | None = None
) -> float:
    """Write small labels with their texts below them; a row without label is a line alone."""
    for label, text in rows:
        if label:
            put(sheet, x, y, label, size - 2.5, width=width, pale=True)
            y += size + 0.5
        put(sheet, x, y, text, size, width=width)
        y += step or size + 3.5
    return y


def rule_rows(
    sheet: Sheet, y: float, rows: list[Row], x: float = LEFT, height: float = 16, beside: float = 0.36
) -> float:
    """Draw rows of cells; the label takes its share of a cell, or stands small above the text where `beside` is 0."""
    for row in rows:
        left = x
        for width, label, text in row:
            sheet.draw_box(left, y, width, height, weight=0.5)
            if beside:
                gap = width * beside if label else 4
                if label:
                    put(sheet, left + 4, y + height - 5, label, 8, True, gap - 6)
                put(sheet, left + gap, y + height - 5, text, 9, False, width - gap - 4)
            else:
                put(sheet, left + 3, y + 8, label, 6, False, width - 6)
                put(sheet, left + 5, y + height - 5, text, 9.5, False, width - 9)
            left += width
        y += height
    return y


def bar(sheet: Sheet, y: float, text: str, x: float = LEFT, width: float = RIGHT - LEFT) -> float:
    """Draw a shaded heading; returns the base of the first line below."""
    sheet.draw_box(x, y, width, 14, shade=0.85, weight=0.3)
    put(sheet, x + 4, y + 10.5, text, 9, True, width - 8)
    return y + 26


def foot(sheet: Sheet, total: int, text: str, size: float = 8, y: float = 768) -> None:
    put(sheet, LEFT, y, text, size, width=420)
    put(sheet, RIGHT, y, f"Page {sheet.number} of {total}", size, align="right")


def head_middle(sheet: Sheet, size: float = 14) -> float:
    put(sheet, 306, 44, sheet.card.institution.name, size, True, align="middle")
    put(sheet, 306, 56, write_address(sheet), 8, align="middle")
    return 74


def head_left(sheet: Sheet, size: float = 13) -> float:
    put(sheet, LEFT, 42, sheet.card.institution.name, size, True)
    put(sheet, LEFT, 53, write_address(sheet), 8, pale=True)
    sheet.draw_line(59)
    return 76


def head_right(sheet: Sheet, size: float = 12) -> float:
    put(sheet, RIGHT, 42, sheet.card.institution.name, size, True, align="right")
    put(sheet, RIGHT, 53, write_address(sheet), 8, align="right")
    return 72
