"""Sealed: developers of the product do not read this file.

The half `g`: persons, institutions and page layouts of print-outs of other vendors and decades.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

import pymupdf

from .drawing import FACES, WIDTH, Layout, Sheet
from .persons import Pool, write_day

POOL = Pool(
    women=(
        ("Angharad", "Hari"),
        ("Deirdre", "Dee"),
        ("Katherine", "Kitty"),
        ("Margaret", "Peggy"),
        ("Elizabeth", "Betsy"),
        ("Rosaleen", "Rosie"),
        ("Padmavathi", "Padma"),
        ("Jayalakshmi", "Jaya"),
        ("Gurpreet", "Preeti"),
        ("Solveig", "Sol"),
        ("Annelies", "Anneke"),
        ("Geneviève", "Ginette"),
        ("Mary Lou", "Malou"),
        ("Consolata", "Connie"),
        ("Temperance", "Tempe"),
        ("Henrietta", "Etta"),
        ("Josephine", "Josie"),
        ("Valentina", "Tina"),
        ("Folasade", "Sade"),
        ("Thi Mai", "Mai"),
        ("Esperanza", "Espy"),
        ("Caroline", "Carrie"),
        ("Marlene", "Marnie"),
        ("Wilhelmina", "Mina"),
        ("Dorothea", "Dot"),
        ("Jacqueline", "Jackie"),
    ),
    men=(
        ("Llewelyn", "Llew"),
        ("Fearghal", "Ferg"),
        ("William", "Bill"),
        ("Richard", "Dick"),
        ("Theodore", "Ted"),
        ("Ramachandran", "Ram"),
        ("Jaswinder", "Jassi"),
        ("Faisal", "Fez"),
        ("Bartholomew", "Bart"),
        ("Lars Erik", "Lasse"),
        ("Hendrik", "Henk"),
        ("Jean-François", "Jeff"),
        ("Carmelo", "Charlie"),
        ("Emmanuel", "Manny"),
        ("Kwabena", "Kobby"),
        ("Minh Duc", "Duc"),
        ("Ignacio", "Nacho"),
        ("Raymond", "Ray"),
        ("Lawrence", "Larry"),
        ("Patrick", "Paddy"),
        ("Frederick", "Fritz"),
        ("Montgomery", "Monty"),
        ("Ezekiel", "Zeke"),
        ("Leopold", "Leo"),
        ("Stephanos", "Stef"),
        ("Russell", "Rusty"),
    ),
    unisex=("Robin", "Leslie", "Jordan", "Alex"),
    families=(
        "ap Rhys",
        "Prydderch",
        "Bebbington",
        "Featherstone",
        "Huxtable",
        "Smallwood-Tate",
        "McIlwraith",
        "O'Muircheartaigh",
        "Mac Giolla Bhríde",
        "Ó Súilleabháin",
        "Fitzmaurice",
        "de Vries",
        "van den Broek",
        "Müller-Brandt",
        "Sørensen",
        "Åkerlund",
        "Zammit",
        "Camilleri",
        "Hadjigeorgiou",
        "Kowalczyk",
        "Teixeira",
        "Bélisle",
        "St-Amand",
        "Desrosiers",
        "Ramírez Ortega",
        "de la Cruz",
        "Begay",
        "Venkataraman",
        "Bhattacharya",
        "Pillai",
        "Singh",
        "Rao",
        "Qureshi",
        "Adeyemi",
        "Boateng",
        "Nguyen",
        "Park",
        "Tan",
        "Page",
        "May",
        "Case",
        "Major",
        "Rose",
        "Short",
        "Lamb",
        "Whittingham",
        "Stubblefield",
        "Vandergriff",
        "Oxley",
        "Haverstock",
    ),
    clinicians=(
        "Rhodri Caradog",
        "Niamh Tierney",
        "Julian Pakenham",
        "Saoirse Delahunt",
        "Anil Ghoshal",
        "Meenakshi Sundar",
        "Lachlan Burridge",
        "Corinne Thibodeau",
        "Garrett Lindqvist",
        "Yolanda Espinoza",
        "Maarten Hoekstra",
        "Beatrice Aellig",
        "Joseph Farrugia",
        "Wendell Prather",
        "Roberta Stockdale",
        "Clive Mountjoy",
        "Darnell Whitmore",
        "Helga Reinholt",
    ),
    institutions=(
        ("Nant-y-Garth General Hospital", "Ffordd y Felin, Nant-y-Garth LL99 3QD   Tel 01632 960 228", "9999999X"),
        ("Belmore & Foyleside Hospitals", "Strand Avenue, Belmore BT99 7PL   Tel 028 9018 0331", "BF9999999"),
        ("Thornmere Vale Hospitals NHS Trust", "Cottage Lane, Thornmere TV9 9QQ   Tel 01632 960 774", "K999999"),
        ("St Gobnait's Hospital", "Mill Road, Carrigmoyle, Co. Clare   Tel 065 555 2280", "C999999"),
        (
            "Rivière-aux-Pins General Hospital",
            "88, chemin du Barrage, Rivière-aux-Pins QC J9Z 9Z9   819 555-0144",
            "999999",
        ),
        ("Bow Crossing Medical Centre", "2210 Foothill Trail SW, Bow Crossing AB T9Z 0A9   403-555-0119", "9999999"),
        ("Fundy Basin Regional Health", "31 Wharf Street, Port Lorne NS B9Z 9A1   (902) 555-0186", "F000999999"),
        ("Mirrabah Base Hospital", "Cnr Palm & George Streets, Mirrabah QLD 4999   Ph 07 5550 3318", "999999"),
        ("Swan Terrace Private Hospital", "40 Terrace Road, Wandilup WA 6999   Ph 08 5550 7702", "J9999999"),
        (
            "Shri Vardhan Institute of Medical Sciences",
            "Sector 9, Vardhan Nagar 302999   Ph 0141 555 6060",
            "SV/99/99999",
        ),
        ("Coromandel Mission Hospital", "Church Road, Pallavapuram 600999   Ph 044 5550 1919", "999999D"),
        ("Zuiderhaven Medical Center", "Kadeweg 12, 3999 ZH Zuiderhaven, The Netherlands   +31 10 555 0120", "9999999"),
        ("Seeblick Clinic Group", "Uferstrasse 4, 9990 Seeblick, Switzerland   +41 71 555 01 44", "99999999"),
        ("St Publius Diagnostic Centre", "Triq il-Bajja, Marsaforn MFN 9999, Malta   +356 5550 1180", "M-999999"),
        ("Elk Prairie Memorial Hospital", "1100 Grange Ave, Elk Prairie, NE 68999   308-555-0150", "M000999999"),
        ("Saguaro Bend Community Health", "7 Ocotillo Plaza, Saguaro Bend, AZ 85998   (520) 555-0133", "99-99-99-9"),
        ("Harlan & Whitcomb Medical Group", "45 Court Square, Ste 300, Whitcomb, OH 43999   740.555.0108", "999999.0"),
        ("Marrow Bay Hospital", "9 Lighthouse Rd, Marrow Bay, ME 04999   207-555-0172", "E9999999999"),
    ),
    insurers=(
        "Prairie Farmers Benefit",
        "Foyle Provident",
        "Helvetia Kasse",
        "Banksia Health Fund",
        "Star of Deccan General",
        "Blue Granite PPO",
    ),
    streets=(
        "Chapel Hill",
        "Lime Kiln Lane",
        "Gandhi Salai",
        "Dorpsstraat",
        "Ironbark Drive",
        "Old Mill Road",
        "Rue du Quai",
    ),
)

TITLES = {
    "Clinical Note": (
        "Out-Patient Review",
        "Discharge Communication",
        "History & Physical",
        "Follow-up Visit",
        "Ward Round Entry",
    ),
    "Radiology Report": ("Imaging Consultation", "X-Ray and Scan Report", "Diagnostic Imaging Result"),
    "Pathology Report": ("Tissue Examination", "Surgical Pathology Consultation"),
    "Genomic Report": ("Hereditary Panel Result", "Tumour Profile"),
    "Other": ("Release of Records", "Chart Copy", "Correspondence"),
}
SIGNATURES = (
    "Electronically approved: {} [{}]",
    "Dictated but not signed - {} - {}",
    "With kind regards, Dr {}   {}",
    "/s/ {}, MD   {}",
    "{} MCh FRCSI, typed {}",
)
LABORATORY_SIGNATURE = "Released by {}, Chief Scientist, {}"
FAX_SENDERS = ("MARROW BAY HOSP HIM", "GP OUT TRAY", "FROM: BOW CROSSING MC", "CMH WARD C OFFICE")
TESTS = (
    ("Hb", "g/dL", 11.5, 16.5),
    ("Total WBC count", "10^3/uL", 4.0, 10.5),
    ("Platelet count", "10^3/uL", 150, 410),
    ("PCV (spun)", "%", 36, 48),
    ("MCV", "fL", 80, 99),
    ("RDW (calc.)", "%", 11.5, 14.8),
    ("S. Sodium", "mEq/L", 135, 146),
    ("S. Potassium", "mEq/L", 3.5, 5.1),
    ("Chloride", "mEq/L", 96, 108),
    ("BUN", "mg/dL", 7, 21),
    ("S. Creatinine", "mg/dL", 0.6, 1.3),
    ("Fasting glucose", "mg/dL", 70, 99),
    ("HbA1c", "%", 4.2, 5.7),
    ("AST (serum)", "U/L", 8, 38),
    ("ALT (serum)", "U/L", 7, 42),
    ("Albumin", "g/dL", 3.4, 5.0),
    ("Total cholesterol", "mg/dL", 120, 200),
    ("Triglycerides", "mg/dL", 40, 150),
    ("Vitamin B12", "pg/mL", 200, 900),
    ("Free T4", "ng/dL", 0.8, 1.8),
)


@dataclass(frozen=True)
class Land:
    """The words for numbers in a country, and its way to write a day."""

    national: str
    shape: str
    record: str
    style: str
    family: str = "Surname"
    given: str = "Forenames"


WALES = Land("NHS/GIG no.", "999 999 9999", "Hosp/Ysb no.", "day_first")
ULSTER = Land("H&C No.", "399 999 9999", "Casenote No.", "abbreviated")
THORNMERE = Land("NHS", "499-999-9999", "PAS No.", "abbreviated")
EIRE = Land("GMS no.", "G99999A", "Chart", "day_first")
QUEBEC = Land("RAMQ", "", "Dossier", "iso", "Last name", "Given names")
ALBERTA = Land("ULI", "59999-9999", "Regional #", "abbreviated", "Last name", "Given names")
FUNDY = Land("HCN", "0009 999 999", "K#", "year_first_abbreviated", "Last name", "Given names")
QUEENSLAND = Land("M'care", "4999 99999 1", "UR No.", "day_first", "Family", "Given")
PERTH = Land("DVA", "WX999999", "UMRN", "day_first", "Surname", "Forenames")
RAJASTHAN = Land("Aadhaar", "XXXX-XXXX-9999", "CR No.", "day_first_dashes", "Surname", "First name")
TAMIL = Land("Govt ID", "TN9999999", "Hosp. No.", "abbreviated", "Surname", "First name")
HOLLAND = Land("BSN", "199999999", "Pat.nr.", "day_first_dashes", "Surname", "First names")
SWISS = Land("AHV no.", "756.9999.9999.99", "PID", "dots", "Surname", "First name")
MALTA = Land("ID Card", "0999999(M)", "Reg. No.", "day_first", "Surname", "Name")
USA = Land("MBI", "1EG9-TE9-MK99", "MR #", "mdy", "Last Name", "First Name")
LANDS = dict(
    zip(
        (name for name, _, _ in POOL.institutions),
        (
            WALES,
            ULSTER,
            THORNMERE,
            EIRE,
            QUEBEC,
            ALBERTA,
            FUNDY,
            QUEENSLAND,
            PERTH,
            RAJASTHAN,
            TAMIL,
            HOLLAND,
            SWISS,
            MALTA,
        )
        + (USA,) * 4,
        strict=True,
    )
)
MONTH_FIRST = ("mdy", "mdy_short", "mdy_two", "dashes")
SEXES = {"F": "Female", "M": "Male"}
Pairs = list[tuple[str, str]]


# Words.


def land_of(sheet: Sheet) -> Land:
    return LANDS[sheet.card.institution.name]


def write_fixed(sheet: Sheet, mark: str, shape: str) -> str:
    """Write a number that stays the same on all pages of the document; each 9 is a digit."""
    rng = random.Random(f"{mark} {sheet.card.account} {sheet.card.visit}")
    return "".join(str(rng.randint(1, 9)) if sign == "9" else sign for sign in shape)


def write_national(sheet: Sheet) -> str:
    """Write the national number: one for a person in a country, the provincial card number with the letters of the name."""
    person, land = sheet.card.person, land_of(sheet)
    rng = random.Random(f"{land.national} {person.family} {person.born}")
    if land is QUEBEC:
        letters = (re.sub(r"\W", "", person.family) + "XXX")[:3] + person.given[0]
        month = person.born.month + (50 if person.sex == "F" else 0)
        return f"{letters.upper()} {person.born:%y}{month:02} {person.born:%d}{rng.randint(10, 99)}"
    return "".join(str(rng.randint(0, 9)) if sign == "9" else sign for sign in land.shape)


def born(sheet: Sheet, style: str = "") -> str:
    """Show the birth date as the country writes it, unless a style is asked for.

    Month before day in figures is left to the States; day before month in figures is for days above 12, with dots for all.
    """
    card, land = sheet.card, land_of(sheet)
    style = style or land.style
    if land is not USA:
        if style in MONTH_FIRST:
            style = land.style
        if card.birth_style in MONTH_FIRST:
            card.birth_style = "abbreviated_capitals"
    if style.startswith("day_first") and card.person.born.day <= 12:
        style = "long_day_first"
    return sheet.show_birth(style)


def day_of(sheet: Sheet, style: str = "") -> str:
    land = land_of(sheet)
    return write_day(sheet.card.seen, land.style if not style or (style in MONTH_FIRST and land is not USA) else style)


def born_kin(sheet: Sheet, style: str = "") -> str:
    return write_day(sheet.setting.relative_born, style or land_of(sheet).style)


def note(sheet: Sheet, name: str) -> str:
    sheet.printed_name = sheet.printed_name or name
    sheet.printed.append(name)
    return name


def tight(sheet: Sheet) -> str:
    """Show LAST,FIRST MIDDLE without a space."""
    return note(sheet, sheet.card.write_name("last_first_capitals").replace(", ", ","))


def surname_given(sheet: Sheet) -> str:
    """Show SURNAME Given without any mark between."""
    return note(sheet, f"{sheet.card.write_name('family').upper()} {sheet.card.write_name('given')}")


def initials(sheet: Sheet) -> str:
    """Show title, initials and family name."""
    card = sheet.card
    letters = "".join(f"{word[0].upper()}." for word in card.write_name("given").split())
    return note(sheet, f"{card.title} {letters} {card.write_name('family')}".strip())


def kin_name(sheet: Sheet, order: str = "first_last") -> str:
    return sheet.setting.write_relative(order)


# Strokes.


def fit(
    sheet: Sheet,
    x: float,
    y: float,
    width: float,
    text: str,
    size: float = 9,
    bold: bool = False,
    face: str | None = None,
) -> None:
    """Write a line, smaller where it would not go in."""
    font = FACES[face or sheet.face][bold]
    long = max(pymupdf.get_text_length(text, fontname=font, fontsize=size), 1)
    sheet.write(x, y, text, min(size, size * width / long), bold, face)


def fit_right(sheet: Sheet, to: float, y: float, width: float, text: str, size: float = 9, bold: bool = False) -> None:
    font = FACES[sheet.face][bold]
    long = max(pymupdf.get_text_length(text, fontname=font, fontsize=size), 1)
    sheet.write_right(to, y, text, min(size, size * width / long), bold)


def fit_middle(sheet: Sheet, y: float, text: str, size: float = 9, bold: bool = False, width: float = 504) -> None:
    font = FACES[sheet.face][bold]
    long = max(pymupdf.get_text_length(text, fontname=font, fontsize=size), 1)
    sheet.write_middle(y, text, min(size, size * width / long), bold)


def pale(sheet: Sheet, x: float, y: float, text: str, size: float = 7) -> None:
    sheet.page.insert_text((x, y), text, fontname=FACES[sheet.face][0], fontsize=size, color=(0.4, 0.4, 0.4))


def column(
    sheet: Sheet, x: float, y: float, pairs: Pairs, gap: float, width: float, step: float = 12.5, bold: bool = False
) -> float:
    """Write plain labels, their texts to the right, bold at will; returns the y below."""
    for label, text in pairs:
        fit(sheet, x, y, gap - 3, label, 8.5)
        fit(sheet, x + gap, y, width - gap, text, 9, bold)
        y += step
    return y


def cells(sheet: Sheet, y: float, row: list[tuple[float, str, str]], height: float = 25, x: float = 54) -> float:
    """Draw a row of boxes, the label small at the upper edge, the text beneath it."""
    for width, label, text in row:
        sheet.draw_box(x, y, width, height, weight=0.5)
        fit(sheet, x + 3, y + 8, width - 6, label, 6)
        fit(sheet, x + 4, y + height - 5, width - 8, text, 9.5)
        x += width
    return y + height


def table(sheet: Sheet, y: float, widths: tuple[float, ...], rows: list[tuple[str, ...]], x: float = 54) -> float:
    """Draw a ruled table, its first row bold."""
    for at, row in enumerate(rows):
        left = x
        for width, text in zip(widths, row, strict=True):
            sheet.draw_box(left, y, width, 16, shade=0.88 if at == 0 else None, weight=0.4)
            fit(sheet, left + 3, y + 11.5, width - 6, text, 8.5, bold=at == 0)
            left += width
        y += 16
    return y


def sideways(
    sheet: Sheet, x: float, y: float, text: str, size: float = 9, bold: bool = False, rotate: int = 90
) -> None:
    sheet.page.insert_text((x, y), text, fontname=FACES[sheet.face][bold], fontsize=size, rotate=rotate)


def crest(sheet: Sheet) -> float:
    """A letterhead with a round mark at the left."""
    card = sheet.card
    sheet.page.draw_circle((70, 48), 15, width=1.2)
    fit(sheet, 61, 53, 18, "".join(word[0] for word in re.findall(r"\w+", card.institution.name)[:2]), 12, bold=True)
    fit(sheet, 96, 46, 460, card.institution.name, 14, bold=True)
    fit(sheet, 96, 59, 460, card.institution.address, 8)
    return 84


def masthead(sheet: Sheet) -> float:
    """Title left, institution right, a thick rule beneath."""
    fit(sheet, 54, 46, 250, sheet.setting.title, 14, bold=True)
    fit_right(sheet, 558, 40, 240, sheet.card.institution.name, 10, bold=True)
    fit_right(sheet, 558, 51, 300, sheet.card.institution.address, 7)
    sheet.draw_line(57, weight=2)
    return 74


# Line printers.


def begin_run_report(sheet: Sheet) -> float:
    card, setting = sheet.card, sheet.setting
    fit(sheet, 54, 40, 504, f"RUN DATE: {day_of(sheet, 'mdy_two')}     {card.institution.name.upper()} **LIVE**", 9)
    fit(
        sheet,
        54,
        51,
        504,
        f"RUN TIME: {setting.rng.choice(('0612', '1345', '2208'))}         {setting.title.upper()}",
        9,
    )
    sheet.write(54, 62, f"RUN USER: {setting.clinicians[3].split()[-1][:5].upper()}.{setting.clinicians[3][0]}", 9)
    left = [
        ("Name:", tight(sheet)),
        ("Unit#:", sheet.show_number()),
        ("Acct#:", sheet.show_number("account")),
        ("Attend Dr:", setting.clinicians[0].split()[-1] + "," + setting.clinicians[0].split()[0]),
    ]
    right = [
        ("Age/Sx:", f"{card.age}/{card.person.sex}"),
        ("DOB:", born(sheet, "mdy_two")),
        ("Reg:", day_of(sheet, "mdy_two")),
        ("Loc:", setting.rng.choice(("4W 412-1", "ER", "SDS", "ICU 07-A"))),
    ]
    column(sheet, 54, 84, left, 66, 290, 11.5)
    column(sheet, 360, 84, right, 58, 198, 11.5)
    sheet.write(54, 132, "-" * 92, 9)
    return 150


def follow_run_report(sheet: Sheet) -> float:
    fit(sheet, 54, 44, 420, f"Patient: {tight(sheet)}   #{sheet.show_number('account')}   (Continued)", 9)
    sheet.write_right(558, 44, f"PAGE {sheet.number}", 9)
    return 70


def begin_ascii_box(sheet: Sheet) -> float:
    card, setting, land = sheet.card, sheet.setting, land_of(sheet)
    name = card.institution.name.upper()
    rows = [
        f"{setting.title.upper()}",
        f"{'HOSP NO':<9}: {sheet.show_number():<26}{'SPEC':<7}: GEN MED",
        f"{'NAME':<9}: {surname_given(sheet):<26}{'CONS':<7}: {setting.clinicians[0].split()[-1].upper()}",
        f"{'D OF B':<9}: {born(sheet, 'abbreviated_capitals'):<26}{'SEX':<7}: {card.person.sex}",
        f"{land.national.upper()[:9]:<9}: {write_national(sheet):<26}{'GP':<7}: {setting.clinicians[1].split()[-1].upper()}",
        f"{'NOK':<9}: {kin_name(sheet).upper():<26}{'EPISODE':<7}: {sheet.show_number('visit')}",
    ]
    sheet.write(54, 42, name, 9, bold=True)
    wide = max(76, *(len(row) for row in rows))
    lines = ["+" + "-" * (wide + 2) + "+", *(f"| {row:<{wide}} |" for row in rows), "+" + "-" * (wide + 2) + "+"]
    for at, line in enumerate(lines):
        fit(sheet, 54, 58 + at * 11, 504, line, 9)
    return 58 + len(lines) * 11 + 14


def finish_ascii_box(sheet: Sheet, total: int) -> None:
    if sheet.number > 1:
        line = f"** {sheet.show_number()} ** {surname_given(sheet)} ** D OF B {born(sheet, 'abbreviated_capitals')} **"
        fit(sheet, 54, 44, 440, line, 9)
    sheet.write_right(558, 768, f"SHEET {sheet.number}/{total}", 8)


def begin_columns_report(sheet: Sheet) -> float:
    """A batch listing: headings in one line, values in the next, both without rules."""
    card, setting = sheet.card, sheet.setting
    fit(
        sheet,
        40,
        40,
        530,
        f"{card.institution.name.upper()}    {setting.title.upper()}    PRINTED {day_of(sheet, 'iso')}",
        9,
    )
    heads = (40, "PT NUMBER"), (140, "PATIENT NAME"), (330, "BIRTHDT"), (424, "S"), (444, "PHYS"), (530, "SVC")
    values = (
        (94, sheet.show_number()),
        (184, tight(sheet)),
        (88, born(sheet, "iso")),
        (16, card.person.sex),
        (80, setting.clinicians[0].split()[-1].upper()[:10]),
        (42, "MED"),
    )
    for (x, head), (width, text) in zip(heads, values, strict=True):
        sheet.write(x, 62, head, 8.5)
        fit(sheet, x, 75, width, text, 8.5)
    heads = (40, "BILL ACCT"), (140, "RESP PARTY"), (330, "RP BIRTHDT"), (424, "PLAN")
    values = (
        (94, sheet.show_number("account")),
        (184, kin_name(sheet, "last_first").upper()),
        (88, born_kin(sheet, "iso")),
        (150, setting.insurer.upper()),
    )
    for (x, head), (width, text) in zip(heads, values, strict=True):
        sheet.write(x, 91, head, 8.5)
        fit(sheet, x, 104, width, text, 8.5)
    return 130


def follow_columns_report(sheet: Sheet) -> float:
    sheet.write(40, 40, f"PT NUMBER {sheet.show_number()}     CONT. {sheet.number}", 8.5)
    return 66


# Lines at the head or the foot of each page.


def draw_parenthesis(sheet: Sheet) -> float:
    line = f"{sheet.show_name('last_first_capitals')} (id #{sheet.show_number()}, dob: {born(sheet, 'mdy')})"
    fit(sheet, 36, 34, 400, line, 9.5)
    sheet.write_right(576, 34, day_of(sheet), 8)
    return 64


def begin_parenthesis(sheet: Sheet) -> float:
    draw_parenthesis(sheet)
    setting = sheet.setting
    fit_middle(sheet, 62, sheet.card.institution.name, 14)
    fit_middle(sheet, 75, sheet.card.institution.address.replace("   ", " * "), 8)
    fit(sheet, 60, 98, 490, f"Encounter Date: {day_of(sheet)}    Provider: {setting.clinicians[0]}, PA-C", 9)
    fit(
        sheet,
        60,
        111,
        490,
        f"Supervising: {setting.clinicians[1]}, MD    NPI: {write_fixed(sheet, 'npi', '1999999999')}",
        9,
    )
    sheet.write(60, 132, setting.title, 11, bold=True)
    return 150


def draw_asterisk(sheet: Sheet) -> float:
    card = sheet.card
    sex = {"F": "f", "M": "m"}[card.person.sex]
    line = f"{sheet.show_name('last_first')}, *{born(sheet, 'dots')}, {sex}     Pat.-No. {sheet.show_number()}     Case {sheet.show_number('visit')}"
    fit(sheet, 60, 40, 492, line, 9)
    sheet.draw_line(46, 60, 552, 0.4)
    return 72


def begin_asterisk(sheet: Sheet) -> float:
    draw_asterisk(sheet)
    setting = sheet.setting
    fit(sheet, 60, 68, 492, sheet.card.institution.name, 13, bold=True)
    fit(sheet, 60, 80, 492, sheet.card.institution.address, 7.5)
    fit(
        sheet,
        60,
        104,
        492,
        f"Head physician: Prof. Dr. {setting.clinicians[0]}   Ward physician: {setting.clinicians[2]}",
        9,
    )
    sheet.write(60, 124, f"{setting.title} of {day_of(sheet, 'dots')}", 12, bold=True)
    return 146


def draw_strip(sheet: Sheet) -> float:
    """A band as on a wrist, bars at its left end."""
    card = sheet.card
    sheet.page.draw_rect((40, 26, 572, 54), color=(0, 0, 0), width=0.7, radius=0.3)
    sheet.draw_bars(52, 31, 70, 18)
    fit(sheet, 132, 38, 190, sheet.show_name("last_first_capitals"), 9.5, bold=True)
    fit(sheet, 132, 49, 190, f"{card.age} yr {SEXES[card.person.sex]}   Allergies: see chart", 7.5)
    fit(sheet, 332, 38, 112, f"Birth: {born(sheet, 'abbreviated')}", 9)
    fit(sheet, 332, 49, 112, f"Adm: {day_of(sheet, 'abbreviated')}", 7.5)
    fit(sheet, 450, 38, 112, f"M.R. # {sheet.show_number()}", 9)
    fit(sheet, 450, 49, 112, f"HAR {sheet.show_number('account')}", 7.5)
    return 82


def begin_strip(sheet: Sheet) -> float:
    draw_strip(sheet)
    fit_middle(sheet, 78, f"{sheet.card.institution.name} - {sheet.setting.title}", 12, bold=True)
    fit_middle(sheet, 92, f"Author: {sheet.setting.clinicians[0]}   Cosigner: {sheet.setting.clinicians[1]}", 9)
    return 116


def begin_foot_codes(sheet: Sheet) -> float:
    y = crest(sheet)
    sheet.write(60, y + 8, sheet.setting.title, 13, bold=True)
    fit(
        sheet,
        60,
        y + 24,
        490,
        f"Seen {day_of(sheet, 'long_day_first')} by {sheet.setting.clinicians[0]}, referred by {sheet.setting.clinicians[1]}",
        9.5,
    )
    return y + 50


def finish_foot_codes(sheet: Sheet, total: int) -> None:
    line = f"PtName={sheet.show_name('last_first')}  PtDoB={born(sheet, 'iso')}  PtNo={sheet.show_number()}  Pg={sheet.number}/{total}"
    fit(sheet, 60, 758, 492, line, 8, face="mono")


def begin_resident(sheet: Sheet) -> float:
    setting = sheet.setting
    fit_middle(sheet, 46, f"{sheet.card.institution.name} - Extended Care Wing", 12, bold=True)
    fit_middle(sheet, 60, setting.title.upper(), 11)
    fit(
        sheet,
        54,
        84,
        504,
        f"Date of service {day_of(sheet)}      Responsible party: {kin_name(sheet)} ({setting.relative_word})",
        9,
    )
    return 108


def finish_resident(sheet: Sheet, total: int) -> None:
    cells(
        sheet,
        734,
        [
            (186, "RESIDENT - Last, First, Middle", sheet.show_name("last_first")),
            (90, "BIRTH DATE", born(sheet)),
            (108, "ATTENDING", sheet.setting.clinicians[0]),
            (74, "RECORD NO.", sheet.show_number()),
            (46, "PAGE", f"{sheet.number}/{total}"),
        ],
        26,
    )


def begin_foot_pair(sheet: Sheet) -> float:
    y = masthead(sheet)
    return (
        column(
            sheet,
            54,
            y + 6,
            [("Dept.", "Medical Specialties"), ("Practitioner", sheet.setting.clinicians[0]), ("Date", day_of(sheet))],
            70,
            400,
        )
        + 14
    )


def finish_foot_pair(sheet: Sheet, total: int) -> None:
    """Name and birth date at the foot of odd pages, the numbers alone at that of even pages."""
    sheet.draw_line(738, weight=0.3)
    if sheet.number % 2:
        fit(sheet, 54, 750, 300, f"{sheet.show_name('first_last')}   b. {born(sheet, 'abbreviated')}", 8.5)
        fit_right(sheet, 558, 750, 190, f"{land_of(sheet).record} {sheet.show_number()}", 8.5)
    else:
        fit(sheet, 54, 750, 200, f"{land_of(sheet).record} {sheet.show_number()}", 8.5)
        fit_right(sheet, 558, 750, 190, f"Enc. {sheet.show_number('visit')}", 8.5)
    sheet.write_middle(764, f"{sheet.number} ({total})", 8)


# Tables and forms.


def begin_roles(sheet: Sheet) -> float:
    """One table of all the people of the case, the patient not on top."""
    setting, land = sheet.setting, land_of(sheet)
    y = masthead(sheet)
    minor = not sheet.card.person.adult
    rows = [
        ("Role", "Name", "Born", "Number", "Telephone"),
        ("Policy holder", kin_name(sheet, "last_first"), born_kin(sheet), setting.member, "555 0161"),
        ("Patient", sheet.show_name("last_first"), born(sheet), sheet.show_number(), "555 0162"),
        ("Mother" if minor else "Next of kin", kin_name(sheet, "last_first"), born_kin(sheet), "-", "555 0163"),
        ("Physician", setting.clinicians[0], "-", f"Lic. {write_fixed(sheet, 'licence', '99999')}", "555 0164"),
        ("Referrer", setting.clinicians[1], "-", f"Lic. {write_fixed(sheet, 'other', '99999')}", "555 0165"),
    ]
    y = table(sheet, y, (84, 168, 96, 96, 60), rows)
    fit(
        sheet, 54, y + 14, 504, f"{land.national} of patient {write_national(sheet)}.  Contact on {day_of(sheet)}.", 8.5
    )
    return y + 36


def follow_roles(sheet: Sheet) -> float:
    sheet.write(54, 44, f"Case file {sheet.show_number()}, continued", 9)
    return 72


def begin_edischarge(sheet: Sheet) -> float:
    """Sections with a heading bar, one label a line: patient, then practice, then stay."""
    card, setting, land = sheet.card, sheet.setting, land_of(sheet)
    y = crest(sheet)
    family, given = sheet.show_split_name()

    def section(x: float, top: float, title: str, pairs: Pairs) -> float:
        sheet.page.draw_rect((x, top, x + 248, top + 14), color=None, fill=(0.78, 0.87, 0.84))
        sheet.write(x + 4, top + 10.5, title, 9, bold=True)
        return column(sheet, x + 4, top + 27, pairs, 78, 240, 12)

    below = section(
        54,
        y,
        "Patient details",
        [
            (land.given, given),
            (land.family, family),
            ("DoB", born(sheet)),
            ("Gender", SEXES[card.person.sex]),
            ("Hosp Num", sheet.show_number()),
            (land.national, write_national(sheet)),
            ("Address", setting.street),
        ],
    )
    section(
        310,
        y,
        "Registered practice",
        [
            ("GP", f"Dr {setting.clinicians[1]}"),
            ("Practice", "Health Centre, Bridge Row"),
            ("Code", write_fixed(sheet, "code", "W99999")),
            ("NOK", kin_name(sheet)),
            ("NOK relation", setting.relative_word),
            ("NOK DoB", born_kin(sheet)),
        ],
    )
    end = section(
        54,
        below + 2,
        "Stay",
        [
            ("Spell ID", sheet.show_number("visit")),
            ("Consultant", setting.clinicians[0]),
            ("Discharged", day_of(sheet)),
        ],
    )
    return end + 16


def finish_edischarge(sheet: Sheet, total: int) -> None:
    line = f"{sheet.show_name('last_first')} - {sheet.show_number()}" if sheet.number > 1 else "Copy to patient: yes"
    fit(sheet, 54, 760, 380, line, 8)
    sheet.write_right(558, 760, f"Page {sheet.number} of {total}", 8)


def draw_meeting(sheet: Sheet, y: float) -> float:
    """One row of a meeting's list."""
    setting = sheet.setting
    rows = [
        ("No.", "Patient", "D. of B.", "Unit number", "Under", "Date"),
        (
            write_fixed(sheet, "row", "9"),
            surname_given(sheet),
            born(sheet),
            sheet.show_number(),
            setting.clinicians[0],
            day_of(sheet),
        ),
    ]
    return table(sheet, y, (26, 154, 88, 76, 90, 70), rows)


def begin_meeting(sheet: Sheet) -> float:
    y = masthead(sheet)
    fit(
        sheet,
        54,
        y,
        504,
        f"Chair: {sheet.setting.clinicians[2]}   Core members present: {sheet.setting.clinicians[1]}, {sheet.setting.clinicians[3]}",
        8.5,
    )
    return draw_meeting(sheet, y + 8) + 22


def follow_meeting(sheet: Sheet) -> float:
    return draw_meeting(sheet, 30) + 22


def begin_claim(sheet: Sheet) -> float:
    """Numbered fields of a claim; the insured comes before the patient."""
    card, setting = sheet.card, sheet.setting
    fit(sheet, 54, 40, 300, f"ATTACHMENT TO CLAIM   {setting.insurer.upper()}", 10, bold=True)
    fit_right(sheet, 558, 40, 190, card.institution.name, 8.5)
    y = cells(
        sheet,
        48,
        [
            (168, "1a. INSURED'S I.D. NUMBER", setting.member),
            (210, "4. INSURED'S NAME (Last, First)", kin_name(sheet, "last_first").upper()),
            (126, "11a. INSURED'S DATE OF BIRTH", born_kin(sheet)),
        ],
    )
    y = cells(
        sheet,
        y,
        [
            (252, "2. PATIENT'S NAME (Last, First, Middle)", sheet.show_name("last_first_capitals")),
            (126, "3. PATIENT'S BIRTH DATE", born(sheet)),
            (126, "SEX", "M [X]   F [ ]" if card.person.sex == "M" else "M [ ]   F [X]"),
        ],
    )
    y = cells(
        sheet,
        y,
        [
            (168, "5. PATIENT'S ADDRESS", setting.street),
            (84, "6. RELATIONSHIP", "CHILD" if not card.person.adult else "SPOUSE"),
            (126, "10. FILE NO. AT PROVIDER", sheet.show_number()),
            (126, "26. PATIENT'S ACCOUNT NO.", sheet.show_number("account")),
        ],
    )
    y = cells(
        sheet,
        y,
        [
            (252, "17. REFERRING PROVIDER", setting.clinicians[1].upper()),
            (126, "17b. NPI", write_fixed(sheet, "npi", "1999999999")),
            (126, "24a. DATE OF SERVICE", day_of(sheet)),
        ],
    )
    sheet.write(54, y + 20, setting.title.upper(), 10, bold=True)
    return y + 38


def follow_claim(sheet: Sheet) -> float:
    cells(
        sheet, 28, [(160, "26. PATIENT'S ACCOUNT NO.", sheet.show_number("account")), (80, "SHEET", str(sheet.number))]
    )
    return 78


def blank_line(sheet: Sheet, x: float, y: float, width: float, label: str, text: str) -> None:
    """Write a label with its text on a line behind it, as filled in by hand."""
    x1 = sheet.write(x, y, label, 8.5) + 3
    sheet.draw_line(y + 2, x1, x + width, 0.4)
    fit(sheet, x1 + 3, y, x + width - x1 - 6, text, 10, face="mono")


def begin_intake(sheet: Sheet) -> float:
    card, setting = sheet.card, sheet.setting
    fit_middle(sheet, 44, card.institution.name, 13, bold=True)
    fit_middle(sheet, 57, "PATIENT REGISTRATION - please print", 9)
    name = sheet.show_split_name()
    y = 78.0
    blank_line(sheet, 54, y, 210, "Patient's last name:", name[0])
    blank_line(sheet, 272, y, 190, "First, middle:", name[1])
    blank_line(sheet, 470, y, 88, "Sex:", card.person.sex)
    blank_line(sheet, 54, y + 18, 200, "Birth date:", born(sheet))
    blank_line(sheet, 262, y + 18, 90, "Age:", str(card.age))
    blank_line(sheet, 360, y + 18, 198, "Street:", setting.street)
    blank_line(sheet, 54, y + 36, 290, "Person responsible for bill:", kin_name(sheet))
    blank_line(sheet, 352, y + 36, 206, "Birth date:", born_kin(sheet))
    blank_line(sheet, 54, y + 54, 290, "Primary insurance:", setting.insurer)
    blank_line(sheet, 352, y + 54, 206, "Policy no.:", setting.member)
    blank_line(sheet, 54, y + 72, 290, "Family doctor:", setting.clinicians[1])
    blank_line(sheet, 352, y + 72, 206, "Today's date:", day_of(sheet))
    sheet.draw_box(54, y + 82, 504, 18, weight=0.5)
    sheet.write(
        58, y + 94, f"OFFICE USE   Pt. chart number {sheet.show_number()}   Visit {sheet.show_number('visit')}", 8.5
    )
    return y + 124


def follow_intake(sheet: Sheet) -> float:
    blank_line(sheet, 54, 44, 280, "Patient's name:", sheet.show_name("first_last"))
    blank_line(sheet, 342, 44, 216, "Birth date:", born(sheet))
    return 74


def begin_date_cells(sheet: Sheet) -> float:
    """A form of a health board: the birth date in cells for day, month and year."""
    card, setting, land = sheet.card, sheet.setting, land_of(sheet)
    y = crest(sheet)
    fit(sheet, 54, y + 2, 500, setting.title.upper(), 11, bold=True)
    y += 12
    family, given = sheet.show_split_name()
    y = cells(
        sheet,
        y,
        [(180, land.family.upper(), family), (180, land.given.upper(), given), (144, "TITLE", card.title or "-")],
    )
    shown = born(sheet, "abbreviated_capitals")
    parts = shown.split(" ") if not card.birth_style else [shown]
    width = 180 / len(parts)
    for at, label in enumerate(("DAY", "MONTH", "YEAR") if len(parts) == 3 else ("DATE OF BIRTH",)):
        cells(sheet, y, [(width, f"BORN: {label}" if len(parts) == 3 else label, "")], x=54 + at * width)
    for at, part in enumerate(parts):
        fit(sheet, 58 + at * width, y + 20, width - 8, part, 9.5)
    y = cells(
        sheet,
        y,
        [
            (60, "SEX", card.person.sex),
            (120, "CASE SHEET NO.", sheet.show_number()),
            (144, land.national, write_national(sheet)),
        ],
        x=234,
    )
    y = cells(
        sheet,
        y,
        [
            (252, "REFERRED BY", setting.clinicians[1]),
            (252, "SEEN BY / ON", f"{setting.clinicians[0]}, {day_of(sheet)}"),
        ],
    )
    return y + 22


def follow_date_cells(sheet: Sheet) -> float:
    row = [
        (230.0, "NAME", sheet.show_name("last_first")),
        (150.0, "DATE OF BIRTH", born(sheet, "abbreviated_capitals")),
        (124.0, "CASE SHEET NO.", sheet.show_number()),
    ]
    return cells(sheet, 28, row) + 24


# Cards, labels and margins.


def draw_imprint(sheet: Sheet) -> None:
    """The imprint of a hospital card: no labels, the mother's or spouse's name below the own name."""
    card, setting = sheet.card, sheet.setting
    x = 336.0
    sheet.page.draw_rect((x, 26, x + 236, 108), color=(0.5, 0.5, 0.5), width=0.5)
    fit(sheet, x + 8, 40, 130, sheet.show_number(), 12, bold=True, face="mono")
    fit(sheet, x + 150, 40, 80, day_of(sheet, "iso"), 8.5, face="mono")
    fit(sheet, x + 8, 54, 220, sheet.show_name("last_first_capitals"), 11, bold=True, face="mono")
    fit(sheet, x + 8, 67, 220, f"{born(sheet, 'iso')} {card.person.sex}  {write_national(sheet)}", 9.5, face="mono")
    fit(
        sheet,
        x + 8,
        79,
        220,
        f"{'M' if not card.person.adult else 'C'}: {kin_name(sheet, 'last_first').upper()}",
        8.5,
        face="mono",
    )
    fit(sheet, x + 8, 90, 220, setting.street.upper(), 8.5, face="mono")
    fit(
        sheet,
        x + 8,
        101,
        220,
        f"DR {setting.clinicians[1].upper()} {write_fixed(sheet, 'permit', '99999')}",
        8,
        face="mono",
    )


def begin_imprint(sheet: Sheet) -> float:
    draw_imprint(sheet)
    fit(sheet, 54, 44, 270, sheet.card.institution.name, 11, bold=True)
    fit(sheet, 54, 58, 270, sheet.card.institution.address, 7.5)
    fit(sheet, 54, 84, 270, sheet.setting.title, 13, bold=True)
    fit(sheet, 54, 99, 270, f"M.D.: {sheet.setting.clinicians[0]}", 8.5)
    return 134


def follow_imprint(sheet: Sheet) -> float:
    draw_imprint(sheet)
    fit(sheet, 54, 44, 270, f"{sheet.setting.title} (cont'd / suite)", 10)
    return 134


def begin_binding(sheet: Sheet) -> float:
    fit(sheet, 80, 44, 470, sheet.card.institution.name, 13, bold=True)
    fit(sheet, 80, 57, 470, sheet.card.institution.address, 8)
    fit(sheet, 80, 80, 450, f"Clinician: {sheet.setting.clinicians[0]}   Date/time: {day_of(sheet)} 1420h", 9)
    return 106


def finish_binding(sheet: Sheet, total: int) -> None:
    """The identity runs up the binding margin, the title of the form down the other edge."""
    sheet.draw_line(0, 48, 48, 0.5)
    sheet.page.draw_line((52, 20), (52, 772), width=0.4)
    sheet.page.draw_line((562, 20), (562, 772), width=0.4)
    record = land_of(sheet).record
    sideways(sheet, 32, 760, f"{surname_given(sheet)}", 10.5, bold=True)
    sideways(sheet, 45, 760, f"Birthdate {born(sheet)}    {record} {sheet.show_number()}", 9.5)
    sideways(sheet, 574, 120, sheet.setting.title.upper(), 11, bold=True, rotate=270)
    sheet.write_middle(770, f"{sheet.number} | {total}", 8)


def finish_labels(sheet: Sheet, total: int) -> None:
    """Three small labels for tubes at the foot of the first page; later pages have the number alone."""
    card = sheet.card
    if sheet.number > 1:
        sheet.write(54, 760, f"MR {sheet.show_number()}", 8.5)
    else:
        for at in range(3):
            x = 54 + at * 172
            sheet.page.draw_rect((x, 704, x + 160, 756), color=(0.4, 0.4, 0.4), width=0.5, radius=0.08)
            fit(sheet, x + 6, 716, 148, tight(sheet), 9, bold=True)
            fit(sheet, x + 6, 727, 148, f"{born(sheet, 'dashes')}  {card.age}{card.person.sex}", 8)
            fit(sheet, x + 6, 737, 148, f"MR {sheet.show_number()}", 8)
            sheet.draw_bars(x + 6, 741, 140, 10)
    sheet.write_right(558, 770, f"{sheet.number} of {total}", 8)


def begin_labels(sheet: Sheet) -> float:
    y = masthead(sheet)
    fit(
        sheet,
        54,
        y + 4,
        504,
        f"Ordered by {sheet.setting.clinicians[0]} on {day_of(sheet)}; Order ID {sheet.show_number('accession')}",
        9,
    )
    return y + 28


def draw_folder(sheet: Sheet, small: bool) -> float:
    """A tab as on a folder: family name large, the rest small beneath."""
    card = sheet.card
    family, given = sheet.show_split_name()
    x, height = 54.0, 40.0
    sheet.page.draw_rect((x, 26, x + 300, 26 + height), color=(0, 0, 0), fill=(0.95, 0.95, 0.86), width=0.6)
    fit(sheet, x + 6, 42, 150, family, 14, bold=True)
    fit(sheet, x + 164, 42, 130, given, 11)
    fit(sheet, x + 6, 58, 150, f"born {born(sheet, 'long_day_first')} ({card.person.sex})", 8.5)
    fit(sheet, x + 164, 58, 130, f"no. {sheet.show_number()}", 8.5)
    if small:
        sheet.write_right(558, 42, f"folio {sheet.number}", 9)
    return 94


def begin_folder(sheet: Sheet) -> float:
    draw_folder(sheet, small=False)
    fit_right(sheet, 558, 40, 190, sheet.card.institution.name, 10, bold=True)
    fit_right(sheet, 558, 52, 190, sheet.card.institution.address.split("   ")[0], 7)
    fit_right(sheet, 558, 64, 190, sheet.card.institution.address.split("   ")[-1], 7)
    fit(
        sheet,
        54,
        88,
        504,
        f"{sheet.setting.title} - {day_of(sheet, 'long_day_first')} - {sheet.setting.clinicians[0]}",
        10,
        bold=True,
    )
    return 112


def follow_folder(sheet: Sheet) -> float:
    return draw_folder(sheet, small=True)


# Letters.


def begin_bilingual(sheet: Sheet) -> float:
    """A letter with labels in two languages."""
    setting, land = sheet.setting, land_of(sheet)
    y = crest(sheet)
    pairs = [
        (
            "Ein cyf / Our ref",
            f"{setting.clinicians[0][0]}{setting.clinicians[0].split()[-1][0]}/{setting.clinicians[3][:2].lower()}",
        ),
        ("Dyddiad / Date", day_of(sheet, "long_day_first")),
        ("Enw / Name", sheet.show_name("titled")),
        ("Dyddiad geni / Date of birth", born(sheet, "long_day_first")),
        ("Rhif ysbyty / Hospital number", sheet.show_number()),
        (land.national, write_national(sheet)),
    ]
    y = column(sheet, 60, y + 4, pairs, 146, 490, 13, bold=True)
    sheet.write(60, y + 10, f"Annwyl / Dear Dr {setting.clinicians[1].split()[-1]}")
    return y + 32


def finish_bilingual(sheet: Sheet, total: int) -> None:
    if sheet.number > 1:
        fit(sheet, 60, 46, 490, f"{sheet.show_name('titled')}  -  tudalen / page {sheet.number} o / of {total}", 9)


def begin_underlined(sheet: Sheet) -> float:
    """The patient in centred lines with a rule beneath each, between salutation and text."""
    setting = sheet.setting
    y = crest(sheet)
    sheet.write(60, y + 4, f"Dr. {setting.clinicians[1]}, The Medical Centre, Main Street")
    sheet.write(60, y + 20, day_of(sheet, "long_day_first"))
    sheet.write(60, y + 42, f"Dear {setting.clinicians[1].split()[0]},")
    for at, line in enumerate(
        (
            f"RE: {sheet.show_name('first_last')}, {setting.street}",
            f"D.O.B. {born(sheet, 'abbreviated_capitals')}",
            f"Chart: {sheet.show_number()}",
        )
    ):
        fit_middle(sheet, y + 62 + at * 15, line, 11, bold=True, width=440)
        sheet.draw_line(y + 64 + at * 15, 150, 462, 0.5)
    return y + 120


def follow_underlined(sheet: Sheet) -> float:
    sheet.write(60, 46, f"Chart: {sheet.show_number()} / {sheet.number}", 10)
    return 76


def draw_concerning(sheet: Sheet, y: float) -> None:
    card = sheet.card
    line = f"Concerning: {initials(sheet)}, born {born(sheet, 'day_first_dashes')} ({card.person.sex}), patient number {sheet.show_number()}"
    fit(sheet, 60, y, 492, line, 10, bold=True)


def begin_concerning(sheet: Sheet) -> float:
    setting = sheet.setting
    fit(sheet, 60, 44, 300, sheet.card.institution.name, 14)
    for at, (label, text) in enumerate(
        (
            ("department", "Internal Medicine"),
            ("our reference", write_fixed(sheet, "reference", "99999999/ab")),
            ("handled by", setting.clinicians[3]),
            ("date", day_of(sheet, "long_day_first")),
        )
    ):
        pale(sheet, 400, 42 + at * 22, label)
        fit(sheet, 400, 52 + at * 22, 158, text, 9)
    sheet.write(60, 84, f"{setting.clinicians[1]}, general practitioner")
    sheet.write(60, 98, setting.street)
    draw_concerning(sheet, 146)
    sheet.write(60, 166, "Dear colleague,")
    return 188


def follow_concerning(sheet: Sheet) -> float:
    draw_concerning(sheet, 44)
    return 74


def begin_rooms(sheet: Sheet) -> float:
    """The letterhead of a doctor's own rooms: the doctor's name and numbers larger than anything."""
    setting = sheet.setting
    fit_right(sheet, 552, 46, 400, f"Dr {setting.clinicians[0]}", 16, bold=True)
    sheet.write_right(552, 59, "MBBS FRACP, Consultant Physician", 9)
    sheet.write_right(
        552,
        71,
        f"Provider No. {write_fixed(sheet, 'provider', '999999')}JH   ABN {write_fixed(sheet, 'abn', '99 999 999 999')}",
        8,
    )
    fit_right(sheet, 552, 82, 490, f"Rooms at {sheet.card.institution.name}, {sheet.card.institution.address}", 7.5)
    sheet.write(60, 104, day_of(sheet, "long_day_first"))
    sheet.write(60, 122, f"Dr {setting.clinicians[1]}")
    sheet.write(60, 135, f"Provider No. {write_fixed(sheet, 'referrer', '999999')}AK", 9)
    sheet.write(60, 156, f"Dear {setting.clinicians[1].split()[0]}")
    name = note(sheet, f"{sheet.card.write_name('given')} {sheet.card.write_name('family').upper()}")
    fit(
        sheet,
        60,
        176,
        490,
        f"re: {name}  -  DOB {born(sheet)}  -  File {sheet.show_number()}  -  {setting.street}",
        10,
        bold=True,
    )
    return 198


def follow_rooms(sheet: Sheet) -> float:
    fit(sheet, 60, 46, 400, f"{sheet.number}.   re: {sheet.show_name('first_last')}", 10)
    return 76


def begin_to_patient(sheet: Sheet) -> float:
    """A letter to the patient; the identity in the reference lines, the name in the address."""
    card, setting, land = sheet.card, sheet.setting, land_of(sheet)
    y = crest(sheet)
    sheet.write(60, y + 14, sheet.show_name("titled"))
    sheet.write(60, y + 28, setting.street)
    column(
        sheet,
        360,
        y + 4,
        [
            ("Your reference", sheet.show_number()),
            ("Your date of birth", born(sheet)),
            (land.national, write_national(sheet)),
            ("Clinic of", setting.clinicians[0]),
            ("Date typed", day_of(sheet)),
        ],
        90,
        198,
    )
    sheet.write(60, y + 84, f"Dear {card.write_name('family_titled')}")
    return y + 108


def follow_to_patient(sheet: Sheet) -> float:
    sheet.write_right(552, 44, f"Your reference {sheet.show_number()}, sheet {sheet.number}", 9)
    return 72


def begin_portal(sheet: Sheet) -> float:
    """A message printed from a portal; a proxy may have sent it."""
    card, setting = sheet.card, sheet.setting
    fit(sheet, 54, 42, 504, f"{card.institution.name} Secure Messaging - printed {day_of(sheet)}", 8.5)
    sheet.draw_line(48, weight=0.3)
    pairs = [
        ("From:", f"{kin_name(sheet)} (proxy, {setting.relative_word})"),
        ("To:", f"{setting.clinicians[0]} Care Team"),
        ("Cc:", setting.clinicians[1]),
        ("Subject:", f"RE: {setting.title}"),
        (
            "Patient:",
            f"{sheet.show_name('first_last')} | {born(sheet, 'abbreviated_month_first')} | {card.person.sex} | PID {sheet.show_number()}",
        ),
    ]
    return column(sheet, 54, 66, pairs, 56, 504, 13) + 16


def finish_portal(sheet: Sheet, total: int) -> None:
    fit(sheet, 54, 764, 420, f"https://portal.example/msg?pid={sheet.show_number()}&view=print", 7.5)
    sheet.write_right(558, 764, f"{sheet.number}/{total}", 7.5)


def begin_second_opinion(sheet: Sheet) -> float:
    """Identity in a paragraph above the salutation, the sender's doctors with dates before it."""
    setting = sheet.setting
    y = masthead(sheet)
    sheet.write(60, y + 8, f"Received from: {setting.clinicians[1]}, {day_of(sheet, 'abbreviated')}", 9.5)
    sheet.write(60, y + 21, f"Reviewed by: {setting.clinicians[0]}, {day_of(sheet, 'abbreviated')}", 9.5)
    words = (
        f"Subject of this opinion: {sheet.show_name('first_last')} (date of birth {born(sheet, 'long')}; "
        f"our file {sheet.show_number()}; your slides {sheet.show_number('accession')})."
    )
    return sheet.write_wrapped(60, y + 42, 490, words, 10.5, bold=True) + 8


def follow_second_opinion(sheet: Sheet) -> float:
    sheet.write(60, 44, f"{sheet.show_name('first_last')}, {born(sheet, 'long')}", 9)
    return 72


# Names in running text.


def begin_named_in_text(sheet: Sheet) -> float:
    card, setting, land = sheet.card, sheet.setting, land_of(sheet)
    y = crest(sheet)
    sheet.write(60, y + 4, setting.title, 12, bold=True)
    one = {"F": "woman", "M": "man"}[card.person.sex]
    manner = setting.rng.randrange(5)
    if manner == 0:
        family = card.write_name("family")
        words = (
            f"This is Dr. {setting.clinicians[0]} dictating on {sheet.show_name('first_last')}, spelled {'-'.join(re.sub(' ', '', family.upper()))}, medical "
            f"record {sheet.show_number()}, birth date {born(sheet, 'long')}. Copy to Dr. {setting.clinicians[1]}, please."
        )
    elif manner == 1:
        words = (
            f"Thank you for sending me {sheet.show_name('titled')} of {setting.street}, whom I saw with {setting.relative_word} on {day_of(sheet, 'long_day_first')}. "
            f"As you know, this {card.age} year old {one} was born on {born(sheet, 'long_day_first')}. {land.record} {sheet.show_number()}."
        )
    elif manner == 2:
        words = (
            f"I reviewed the notes of {surname_given(sheet)} (dob {born(sheet, 'abbreviated')}, {land.national} {write_national(sheet)}, {land.record} "
            f"{sheet.show_number()}) at the request of Dr {setting.clinicians[2]}, who last met the patient on {day_of(sheet, 'abbreviated')}."
        )
    elif manner == 3:
        words = (
            f"{kin_name(sheet)}, born {born_kin(sheet, 'long')}, attended as {setting.relative_word} and informant. The patient, {sheet.show_name('first_last')}, "
            f"born {born(sheet, 'long')}, file {sheet.show_number()}, was examined by Dr. {setting.clinicians[0]}."
        )
    else:
        words = (
            f"Telephone call with {setting.relative} regarding {setting.relative_word}'s results: {sheet.show_name('first_last')}, identity checked by date of birth "
            f"{born(sheet, 'abbreviated_month_first')} and chart {sheet.show_number()}. Call taken by {setting.clinicians[3]}, RN."
        )
    return sheet.write_wrapped(60, y + 26, 490, words) + 6


def begin_certificate(sheet: Sheet) -> float:
    """To whom it may concern, or a consent in the first person."""
    card, setting, land = sheet.card, sheet.setting, land_of(sheet)
    fit_middle(sheet, 46, card.institution.name.upper(), 14, bold=True)
    fit_middle(sheet, 60, card.institution.address, 8)
    manner = setting.rng.choice((0, 1, 2) if card.person.adult else (0, 2))
    child = {"F": "D/o", "M": "S/o"}[card.person.sex]
    kin = f"{child if not card.person.adult else 'W/o' if card.person.sex == 'F' else 'spouse of'} {kin_name(sheet)}"
    if manner == 0:
        head = "TO WHOM IT MAY CONCERN"
        words = (
            f"This is to certify that {sheet.show_name('titled')}, {kin}, resident of {setting.street}, born {born(sheet, 'long_day_first')} and registered here "
            f"under {land.record} {sheet.show_number()}, attended on {day_of(sheet, 'long_day_first')}. The findings of Dr. {setting.clinicians[0]} (Reg. No. "
            f"{write_fixed(sheet, 'council', '99999')}) follow."
        )
    elif manner == 1:
        head = "AUTHORITY AND STATEMENT"
        words = (
            f"I, {sheet.show_name('first_last')}, date of birth {born(sheet, 'long')}, hereby authorise {card.institution.name} to give the extract below to "
            f"{setting.insurer} and to {kin_name(sheet)}, my {setting.relative_word}. My number with the hospital is {sheet.show_number()}, with the insurer {setting.member}."
        )
    else:
        head = "EXTRACT FROM THE REGISTER"
        words = (
            f"Entry {sheet.show_number()}: {sheet.show_name('last_first')}; {SEXES[card.person.sex].lower()}; date of birth {born(sheet, 'abbreviated')}; "
            f"guardian or spouse {kin_name(sheet)}; entered by {setting.clinicians[2]} on {day_of(sheet, 'abbreviated')}."
        )
    fit_middle(sheet, 88, head, 12, bold=True)
    return sheet.write_wrapped(60, 112, 490, words) + 8


def finish_certificate(sheet: Sheet, total: int) -> None:
    if sheet.number > 1:
        sheet.write(60, 762, f"Register number {sheet.show_number()}", 8.5)
    sheet.write_right(552, 762, f"{sheet.number} of {total}", 8.5)


def draw_nameless(sheet: Sheet) -> None:
    line = f"{land_of(sheet).record} {sheet.show_number()}     DOB {born(sheet, 'abbreviated')}     {SEXES[sheet.card.person.sex]}     Confidential"
    fit(sheet, 60, 36, 492, line, 8.5)


def begin_nameless(sheet: Sheet) -> float:
    """A head with birth date and number but no name, the name in the first sentence."""
    setting = sheet.setting
    draw_nameless(sheet)
    fit(sheet, 60, 64, 492, sheet.card.institution.name, 13, bold=True)
    fit(
        sheet,
        60,
        82,
        492,
        f"{setting.title}, clinic of Dr {setting.clinicians[0]}, {day_of(sheet, 'long_day_first')}",
        10,
    )
    seen = setting.rng.choice(
        ("reviewed in clinic", "seen on the ward", "assessed by video", "discussed with the team")
    )
    words = f"{sheet.show_name('titled')} was {seen} today together with {setting.relative} ({setting.relative_word}). Copy: Dr {setting.clinicians[1]}."
    return sheet.write_wrapped(60, 108, 490, words) + 6


def follow_nameless(sheet: Sheet) -> float:
    draw_nameless(sheet)
    return 66


# Imaging.


def begin_centred_pairs(sheet: Sheet) -> float:
    """Labels right-aligned on a middle axis, values to the right of it."""
    card, setting = sheet.card, sheet.setting
    fit_middle(sheet, 46, card.institution.name, 14, bold=True)
    fit_middle(sheet, 59, card.institution.address, 8)
    y = 84.0
    for label, text in (
        ("PATIENT NAME", sheet.show_name("first_last_capitals")),
        ("PATIENT #", sheet.show_number()),
        ("DATE OF BIRTH", born(sheet, "mdy_short")),
        ("REFERRING", f"{setting.clinicians[1].upper()}, M.D."),
        ("EXAM DATE", day_of(sheet)),
        ("EXAM #", sheet.show_number("accession")),
    ):
        sheet.write_right(270, y, label, 9, bold=True)
        fit(sheet, 282, y, 270, text, 9.5)
        y += 13
    fit_middle(sheet, y + 8, setting.title.upper(), 11, bold=True)
    return y + 30


def finish_centred_pairs(sheet: Sheet, total: int) -> None:
    if sheet.number > 1:
        fit(sheet, 60, 40, 300, sheet.show_name("first_last_capitals"), 9)
        sheet.write(60, 51, f"Date of Birth {born(sheet, 'mdy_short')}", 9)
        sheet.write_right(552, 40, f"EXAM # {sheet.show_number('accession')}", 9)
    sheet.write_middle(766, f"Page {sheet.number} / {total}", 8)


def begin_event(sheet: Sheet) -> float:
    """A result as sent to wards: short lines, two fields each, a colon behind every label."""
    card, setting, land = sheet.card, sheet.setting, land_of(sheet)
    fit(sheet, 54, 44, 504, f"{card.institution.name} - {setting.title}", 11, bold=True)
    fit(
        sheet, 54, 62, 504, f"Event: {sheet.show_number('accession')}   Attended: {day_of(sheet)}   Status: Verified", 9
    )
    fit(
        sheet,
        54,
        75,
        504,
        f"Pt: {surname_given(sheet)}   Sex: {card.person.sex}   DoB: {born(sheet)}   Age at event: {card.age}",
        9,
    )
    fit(sheet, 54, 88, 504, f"Nos: {sheet.show_number()} (local) / {write_national(sheet)} ({land.national})", 9)
    fit(
        sheet,
        54,
        101,
        504,
        f"Referrer: {setting.clinicians[1]} (C{write_fixed(sheet, 'council', '9999999')})   Reporter: {setting.clinicians[0]}",
        9,
    )
    sheet.draw_line(108, weight=0.4)
    return 130


def follow_event(sheet: Sheet) -> float:
    sheet.write(54, 44, f"Event: {sheet.show_number('accession')}   (cont'd, {sheet.number})", 9)
    return 70


def begin_bottom_table(sheet: Sheet) -> float:
    y = crest(sheet)
    sheet.write(60, y + 6, f"{sheet.setting.title}   {day_of(sheet)}", 12, bold=True)
    return y + 32


def finish_bottom_table(sheet: Sheet, total: int) -> None:
    """The identity in a table under the text of each page."""
    card, setting = sheet.card, sheet.setting
    rows = [
        ("Examined person", "Birth date", "Reg. number", "Study", "Sent by"),
        (
            sheet.show_name("last_first"),
            born(sheet),
            sheet.show_number(),
            sheet.show_number("accession"),
            setting.clinicians[1],
        ),
    ]
    table(sheet, 712, (164, 96, 84, 70, 90), rows)
    fit(sheet, 54, 758, 400, f"Radiologist {setting.clinicians[0]}, {card.institution.name}", 8)
    sheet.write_right(558, 758, f"{sheet.number}/{total}", 8)


def begin_module(sheet: Sheet) -> float:
    """A structured report as a list of attributes."""
    card, setting = sheet.card, sheet.setting
    family, given = card.write_name("family"), card.write_name("given")
    fit(sheet, 54, 44, 504, f"Structured report - {setting.title}", 12, bold=True)
    pairs = [
        (
            "Patient's Name",
            note(sheet, f"{family}^{given}".upper()),
        ),
        ("Patient ID", sheet.show_number()),
        ("Patient's Birth Date", born(sheet, "compact")),
        ("Patient's Sex", card.person.sex),
        ("Accession Number", sheet.show_number("accession")),
        ("Study Date", day_of(sheet, "compact")),
        ("Institution Name", card.institution.name),
        ("Referring Physician's Name", "^".join(reversed(setting.clinicians[1].upper().split()))),
        ("Verifying Observer", "^".join(reversed(setting.clinicians[0].upper().split()))),
    ]
    return column(sheet, 54, 64, pairs, 136, 504, 12) + 12


def follow_module(sheet: Sheet) -> float:
    sheet.write(54, 44, f"Patient ID {sheet.show_number()}   Accession Number {sheet.show_number('accession')}", 8.5)
    return 70


# Tissue and genes.


def begin_two_sides(sheet: Sheet) -> float:
    card, setting = sheet.card, sheet.setting
    fit_middle(sheet, 44, f"{card.institution.name} Department of Pathology", 12, bold=True)
    fit_right(sheet, 558, 62, 240, f"SPECIMEN # {sheet.show_number('accession')}", 11, bold=True)
    sheet.draw_line(68)
    left = [
        ("Pt. Name:", sheet.show_name("last_first")),
        ("Med. Rec.:", sheet.show_number()),
        ("DOB (Age):", f"{born(sheet)} ({card.age})"),
        ("Gender:", card.person.sex),
    ]
    right = [
        ("Obtained:", day_of(sheet)),
        ("Received:", day_of(sheet)),
        ("Submitting:", f"{setting.clinicians[1]}, MD"),
        ("Pathologist:", f"{setting.clinicians[0]}, MD"),
    ]
    column(sheet, 54, 82, left, 66, 270, 12.5, bold=True)
    column(sheet, 340, 82, right, 66, 218)
    sheet.draw_line(126)
    return 148


def follow_two_sides(sheet: Sheet) -> float:
    fit(sheet, 54, 42, 320, f"Pt. Name: {sheet.show_name('last_first')}", 9)
    fit_right(sheet, 558, 42, 190, f"SPECIMEN # {sheet.show_number('accession')}", 9)
    return 70


def draw_gene_foot(sheet: Sheet, total: int) -> None:
    sheet.page.draw_rect((0, 744, WIDTH, 762), color=None, fill=(0.86, 0.9, 0.96))
    line = f"{sheet.show_name('first_last')}   |   DOB {born(sheet, 'abbreviated')}   |   Case {sheet.show_number('accession')}"
    fit(sheet, 54, 756, 430, line, 8.5)
    sheet.write_right(558, 756, f"{sheet.number} / {total}", 8.5)


def begin_gene_strip(sheet: Sheet) -> float:
    """Groups of small headings with several unlabelled lines each."""
    card, setting = sheet.card, sheet.setting
    fit(sheet, 54, 48, 330, setting.title, 17)
    fit_right(sheet, 558, 44, 200, card.institution.name, 9, bold=True)
    groups = (
        (
            54,
            168,
            "REPORTED FOR",
            (
                sheet.show_name("first_last"),
                f"{born(sheet, 'abbreviated')}, sex at birth {card.person.sex}",
                f"client ref. {sheet.show_number()}",
            ),
        ),
        (
            234,
            156,
            "ORDERED BY",
            (setting.clinicians[1], card.institution.name, f"NPI {write_fixed(sheet, 'npi', '1999999999')}"),
        ),
        (
            402,
            156,
            "SAMPLE",
            (
                sheet.show_number("accession"),
                f"blood, taken {day_of(sheet, 'abbreviated')}",
                f"signed {setting.clinicians[0]}",
            ),
        ),
    )
    for x, width, head, lines in groups:
        pale(sheet, x, 70, head, 7)
        sheet.draw_line(73, x, x + width, 0.4)
        for at, line in enumerate(lines):
            fit(sheet, x, 85 + at * 12, width, line, 9.5 if at else 10.5, bold=at == 0)
    return 138


def begin_proband(sheet: Sheet) -> float:
    """The tested individual and the relatives of the trio, each with birth date and number."""
    card, setting = sheet.card, sheet.setting
    y = masthead(sheet)
    minor = not card.person.adult
    rows = [
        ("Individual", "Name", "Birth date", "Laboratory ID"),
        ("Tested (proband)", sheet.show_name("first_last"), born(sheet, "abbreviated"), sheet.show_number("accession")),
        (
            "Mother" if minor else "Partner",
            kin_name(sheet),
            born_kin(sheet, "abbreviated"),
            write_fixed(sheet, "kin", "G99-99999"),
        ),
    ]
    y = table(sheet, y, (110, 180, 106, 108), rows)
    fit(
        sheet,
        54,
        y + 14,
        504,
        f"Hospital file of the proband: {sheet.show_number()}     Requested by {setting.clinicians[0]}, {day_of(sheet)}",
        9,
    )
    return y + 38


def follow_proband(sheet: Sheet) -> float:
    sheet.write(54, 44, f"Laboratory ID {sheet.show_number('accession')}", 9)
    fit_right(sheet, 558, 44, 330, f"Proband: {sheet.show_name('first_last')}, {born(sheet, 'abbreviated')}", 9)
    return 72


def begin_refs(sheet: Sheet) -> float:
    """A private pathology service: the patient between two doctors."""
    card, setting, land = sheet.card, sheet.setting, land_of(sheet)
    y = crest(sheet)
    sheet.draw_box(54, y - 6, 504, 58, weight=0.6)
    column(
        sheet,
        60,
        y + 6,
        [
            ("Dr:", setting.clinicians[1]),
            ("Copies:", setting.clinicians[2]),
            ("Your ref:", write_fixed(sheet, "yours", "99999")),
        ],
        46,
        150,
        14,
    )
    sheet.page.draw_line((214, y - 6), (214, y + 52), width=0.5)
    fit(sheet, 222, y + 7, 196, surname_given(sheet), 11, bold=True)
    fit(sheet, 222, y + 20, 196, setting.street, 8.5)
    fit(sheet, 222, y + 33, 196, f"{born(sheet)}    {SEXES[card.person.sex]}    {card.age} Yrs", 9)
    fit(sheet, 222, y + 46, 196, f"{land.record}: {sheet.show_number()}", 9)
    sheet.page.draw_line((424, y - 6), (424, y + 52), width=0.5)
    column(
        sheet,
        430,
        y + 6,
        [("Lab ref:", sheet.show_number("accession")), ("Taken:", day_of(sheet)), ("Path.:", setting.clinicians[0])],
        42,
        124,
        14,
    )
    sheet.write(54, y + 74, setting.title.upper(), 11, bold=True)
    return y + 94


# Clinics and wards.


def begin_legal(sheet: Sheet) -> float:
    """Legal, preferred and former names side by side."""
    card, setting = sheet.card, sheet.setting
    y = masthead(sheet)
    pairs = [
        ("Legal name", sheet.show_name("first_last")),
        ("Goes by", card.person.nickname),
        ("Date born", born(sheet, "long")),
    ]
    if card.person.sex == "F" and card.family == card.person.family and card.person.adult:
        pairs.append(("Former last name", card.person.former_family))
    pairs.append(("Person ID", sheet.show_number()))
    below = column(sheet, 54, y + 6, pairs, 84, 280, bold=True)
    column(
        sheet,
        350,
        y + 6,
        [
            ("Visit", f"{day_of(sheet)}, {sheet.show_number('visit')}"),
            ("With", f"{setting.clinicians[0]}, DO"),
            ("PCP", setting.clinicians[1]),
            ("Coverage", f"{setting.insurer}"),
            ("Subscriber", f"{kin_name(sheet)} {born_kin(sheet, 'long')}"),
        ],
        56,
        208,
    )
    return max(below, y + 70) + 14


def finish_legal(sheet: Sheet, total: int) -> None:
    if sheet.number > 1:
        fit(
            sheet,
            54,
            760,
            420,
            f"Legal name {sheet.show_name('first_last')}   Date born {born(sheet, 'long')}   Person ID {sheet.show_number()}",
            8.5,
        )
    sheet.write_right(558, 760, f"{sheet.number} of {total}", 8.5)


def begin_triage(sheet: Sheet) -> float:
    """An emergency sheet full of abbreviations; times and other people all around."""
    card, setting, land = sheet.card, sheet.setting, land_of(sheet)
    family, given = card.write_name("family").upper(), card.write_name("given")
    fit(sheet, 40, 40, 330, f"{card.institution.name.upper()} - ED RECORD", 11, bold=True)
    fit_right(sheet, 572, 40, 180, f"ED Att. {sheet.show_number('visit')}", 10, bold=True)
    sheet.draw_box(40, 48, 532, 74, weight=1)
    column(
        sheet,
        46,
        62,
        [
            ("Sname", family),
            ("Fname", given),
            ("d.o.b", born(sheet)),
            ("Sex/Age", f"{card.person.sex} {card.age}"),
        ],
        40,
        180,
        15,
        bold=True,
    )
    sheet.printed_name = f"{family}, {given}"
    sheet.printed += [family, given]
    column(
        sheet,
        232,
        62,
        [
            ("Hosp#", sheet.show_number()),
            (land.national, write_national(sheet)),
            ("Addr", setting.street),
            ("NOK", f"{kin_name(sheet)} ({setting.relative_word})"),
        ],
        48,
        174,
        15,
    )
    column(
        sheet,
        416,
        62,
        [
            ("Arr", f"{day_of(sheet)} 0612"),
            ("Mode", "Amb"),
            ("Triage", f"cat {write_fixed(sheet, 'triage', '9')[:1]}"),
            ("Dr", setting.clinicians[0]),
        ],
        40,
        152,
        15,
    )
    return 146


def follow_triage(sheet: Sheet) -> float:
    line = f"{sheet.show_name('last_first')}   d.o.b {born(sheet)}   Hosp# {sheet.show_number()}   ED Att. {sheet.show_number('visit')}"
    fit(sheet, 40, 40, 532, line, 9)
    return 70


def begin_opd_card(sheet: Sheet) -> float:
    """An out-patient card: the father's, husband's or mother's name follows the own name."""
    card, setting, land = sheet.card, sheet.setting, land_of(sheet)
    fit_middle(sheet, 44, card.institution.name.upper(), 13, bold=True)
    fit_middle(sheet, 57, card.institution.address, 8)
    fit_middle(sheet, 72, "OUT PATIENT CARD - not valid for medico-legal purposes", 8.5)
    kin = ({"F": "D/o", "M": "S/o"} if not card.person.adult else {"F": "W/o", "M": "H/o"})[card.person.sex]
    sheet.draw_box(54, 80, 504, 60, weight=0.6)
    left = [
        ("Regd. No.", f": {sheet.show_number()}"),
        ("Name", f": {note(sheet, card.write_name('titled').upper())}"),
        (kin, f": {kin_name(sheet).upper()}"),
        ("Age / D.O.B.", f": {card.age} YRS / {born(sheet, 'day_first_dashes')}"),
    ]
    right = [
        ("Dept", ": GENERAL MEDICINE II"),
        ("Consultant", f": DR {setting.clinicians[0].upper()}"),
        ("OP No. / Dt", f": {sheet.show_number('visit')} / {day_of(sheet, 'abbreviated')}"),
        (land.national, f": {write_national(sheet)}"),
    ]
    column(sheet, 60, 94, left, 66, 260, 13)
    column(sheet, 336, 94, right, 66, 218, 13)
    return 164


def follow_opd_card(sheet: Sheet) -> float:
    sheet.write(54, 44, f"Regd. No. : {sheet.show_number()}", 9)
    sheet.write_right(558, 44, f"Sheet {sheet.number}", 9)
    return 70


def begin_inpatient(sheet: Sheet) -> float:
    """A discharge summary in a grid with the admission's numbers before the patient's."""
    card, setting, land = sheet.card, sheet.setting, land_of(sheet)
    y = crest(sheet)
    fit_middle(sheet, y + 2, setting.title.upper(), 12, bold=True)
    y += 10
    rows = [
        [("I.P. No.", sheet.show_number("visit")), ("Bill No.", sheet.show_number("account"))],
        [("M.R.D. No.", sheet.show_number()), (land.national, write_national(sheet))],
        [("Patient", sheet.show_name("titled")), ("Birth Date", born(sheet))],
        [("Attendant", f"{kin_name(sheet)} ({setting.relative_word})"), ("Gender", SEXES[card.person.sex])],
        [
            ("Unit Chief", f"Dr. {setting.clinicians[0]}, Reg. {write_fixed(sheet, 'council', '99999')}"),
            ("Discharged", day_of(sheet)),
        ],
    ]
    for row in rows:
        for at, (label, text) in enumerate(row):
            x, width = (54, 300) if at == 0 else (354, 204)
            sheet.draw_box(x, y, width, 16, weight=0.4)
            fit(sheet, x + 4, y + 11.5, 62, label, 8.5, bold=True)
            fit(sheet, x + 68, y + 11.5, width - 72, f": {text}", 9)
        y += 16
    return y + 22


def finish_inpatient(sheet: Sheet, total: int) -> None:
    line = (
        f"M.R.D. No. {sheet.show_number()} / {sheet.show_name('titled')} / {born(sheet)}"
        if sheet.number > 1
        else "Prepared by: medical records"
    )
    fit(sheet, 54, 760, 430, line, 8.5)
    sheet.write_right(558, 760, f"{sheet.number}/{total}", 8.5)


def begin_community(sheet: Sheet) -> float:
    """A community service: client and carer, with the key worker's number."""
    card, setting = sheet.card, sheet.setting
    y = masthead(sheet)
    for at, (label, text, extra) in enumerate(
        (
            ("Key worker", setting.clinicians[0], f"staff no. {write_fixed(sheet, 'staff', '999999')}"),
            (
                "Client",
                sheet.show_name("first_last"),
                f"birthdate {born(sheet, 'abbreviated')}, client no. {sheet.show_number()}",
            ),
            (
                "Parent" if not card.person.adult else "Carer",
                kin_name(sheet),
                f"birthdate {born_kin(sheet, 'abbreviated')}, carer no. {write_fixed(sheet, 'carer', '999999')}",
            ),
        )
    ):
        sheet.write(54, y + 6 + at * 15, label, 9, bold=True)
        fit(sheet, 120, y + 6 + at * 15, 180, text, 9.5)
        fit(sheet, 310, y + 6 + at * 15, 248, extra, 9)
    fit(sheet, 54, y + 54, 504, f"Contact: home visit, {day_of(sheet)}, no. {sheet.show_number('visit')}", 9)
    return y + 78


def follow_community(sheet: Sheet) -> float:
    fit(sheet, 54, 44, 504, f"Client {sheet.show_name('first_last')}, birthdate {born(sheet, 'abbreviated')}", 9)
    return 72


def begin_mail(sheet: Sheet) -> float:
    """A secure mail printed: the identity in the subject."""
    card, setting = sheet.card, sheet.setting
    sheet.write(54, 40, setting.clinicians[3], 11, bold=True)
    sheet.draw_line(46, weight=1.5)
    pairs = [
        ("From:", f"{setting.clinicians[0]} [{card.institution.name}]"),
        ("Sent:", day_of(sheet, "long_day_first") + " 16:05"),
        ("To:", f"{setting.clinicians[1]}; {setting.clinicians[3]}"),
        (
            "Subject:",
            f"[SECURE] {sheet.show_name('last_first_capitals')} / {born(sheet, 'abbreviated_capitals')} / {sheet.show_number()} - {setting.title}",
        ),
        ("Attachments:", f"{write_fixed(sheet, 'file', 'scan_99999')}.pdf"),
    ]
    return column(sheet, 54, 62, pairs, 66, 504, 13) + 16


# Laboratories.


def begin_cumulative(sheet: Sheet) -> float:
    card, setting, land = sheet.card, sheet.setting, land_of(sheet)
    fit(
        sheet,
        54,
        42,
        504,
        f"{surname_given(sheet)}   {born(sheet)}   {card.person.sex}   {sheet.show_number()}",
        12,
        bold=True,
    )
    sheet.draw_line(48, weight=1.2)
    fit(sheet, 54, 62, 504, f"{card.institution.name}, Blood Sciences.  {land.national} {write_national(sheet)}", 9)
    fit(
        sheet,
        54,
        75,
        504,
        f"Sample {sheet.show_number('accession')}  rec'd {day_of(sheet)}  for {setting.clinicians[1]}  auth {setting.clinicians[3]}",
        9,
    )
    return 102


def begin_health_card(sheet: Sheet) -> float:
    card, setting = sheet.card, sheet.setting
    fit_middle(sheet, 46, f"{card.institution.name} - Clinical Laboratory Services", 12, bold=True)
    fit_middle(sheet, 59, card.institution.address, 8)
    y = 70.0
    y = cells(
        sheet,
        y,
        [
            (180, "Name of patient", note(sheet, card.write_name("titled").upper())),
            (130, "Sex / birth date", f"{card.person.sex} / {born(sheet, 'abbreviated')}"),
            (104, "Lab. reg. no.", sheet.show_number("accession")),
            (90, "Hospital reg. no.", sheet.show_number()),
        ],
    )
    y = cells(
        sheet,
        y,
        [
            (180, "Referred by", f"Dr. {setting.clinicians[1]}"),
            (130, "Collected on", day_of(sheet, "abbreviated") + " 07:30"),
            (104, "Reported on", day_of(sheet, "abbreviated") + " 13:15"),
            (90, "Receipt no.", sheet.show_number("account")),
        ],
    )
    return y + 24


def follow_health_card(sheet: Sheet) -> float:
    sheet.write(54, 44, f"Lab. reg. no. {sheet.show_number('accession')}", 9)
    return 70


def begin_office_laboratory(sheet: Sheet) -> float:
    """An office laboratory: the clinic's doctors listed before the patient."""
    card, setting = sheet.card, sheet.setting
    fit(sheet, 54, 44, 504, card.institution.name, 13, bold=True)
    fit(sheet, 54, 57, 504, ", ".join(f"{name} MD" for name in setting.clinicians), 8)
    sheet.write(54, 76, "IN-HOUSE LABORATORY", 10, bold=True)
    left = [
        ("PATIENT", tight(sheet)),
        ("BIRTHDATE", born(sheet, "mdy_short")),
        ("CHART", sheet.show_number()),
    ]
    right = [
        ("ORDER", sheet.show_number("accession")),
        ("DRAWN", f"{day_of(sheet)} 0845"),
        ("ORDERED BY", setting.clinicians[0].split()[-1].upper()),
    ]
    column(sheet, 54, 92, left, 66, 270, 12)
    column(sheet, 340, 92, right, 74, 218, 12)
    return 144


def begin_collector(sheet: Sheet) -> float:
    """A regional laboratory: delivery address large, patient in the line under it."""
    card, setting, land = sheet.card, sheet.setting, land_of(sheet)
    fit_right(sheet, 558, 42, 300, f"{card.institution.name} Laboratory", 11, bold=True)
    for at, line in enumerate(
        (
            f"Dr {setting.clinicians[1]}",
            f"Practice {setting.street}",
            f"Billing {write_fixed(sheet, 'billing', '9999-99')}",
        )
    ):
        sheet.write(60, 60 + at * 14, line, 11)
    sheet.draw_line(96, weight=0.5)
    line = f"Patient {sheet.show_name('last_first')}   Born {born(sheet, 'year_first_abbreviated')}   Sex {card.person.sex}"
    fit(sheet, 60, 110, 492, line, 9.5, bold=True)
    fit(
        sheet,
        60,
        124,
        492,
        f"{land.national} {write_national(sheet)}   {land.record} {sheet.show_number()}   Req {sheet.show_number('accession')}   {day_of(sheet)}",
        9,
    )
    sheet.draw_line(130, weight=0.5)
    return 152


def begin_cover(sheet: Sheet) -> float:
    card, setting = sheet.card, sheet.setting
    sheet.write_middle(76, "FAX", 30, bold=True)
    fit_middle(sheet, 98, f"{card.institution.name}, Medical Records", 11)
    y = 130.0
    for left, right in (
        (("To", setting.clinicians[1]), ("From", setting.clinicians[3])),
        (("Tel. no.", "555 0182"), ("Fax no.", "555 0183")),
        (("Patient", sheet.show_name("first_last")), ("Date of birth", born(sheet, "abbreviated"))),
        (("Record", sheet.show_number()), ("Sent on", day_of(sheet, "abbreviated"))),
    ):
        for x, (label, text) in ((72, left), (318, right)):
            sheet.draw_box(x, y, 222, 24, weight=0.6)
            sheet.write(x + 5, y + 15, label, 9, bold=True)
            fit(sheet, x + 72, y + 15, 144, text, 10)
        y += 30
    return y + 24


LAYOUTS = (
    Layout("run_report", "printer", begin_run_report, follow_run_report, face="mono", size=9),
    Layout("ascii_box", "printer", begin_ascii_box, None, finish_ascii_box, face="mono", size=9, every_page=True),
    Layout("columns_report", "printer", begin_columns_report, follow_columns_report, face="mono", size=9),
    Layout("parenthesis", "banner", begin_parenthesis, draw_parenthesis, face="sans", size=9.5, every_page=True),
    Layout("asterisk", "banner", begin_asterisk, draw_asterisk, face="sans", size=10, every_page=True),
    Layout("strip", "banner", begin_strip, draw_strip, face="sans", size=9.5, every_page=True),
    Layout("foot_codes", "footer", begin_foot_codes, None, finish_foot_codes, every_page=True),
    Layout("resident_foot", "footer", begin_resident, None, finish_resident, face="sans", size=9.5, every_page=True),
    Layout("foot_pair", "footer", begin_foot_pair, None, finish_foot_pair, face="sans", size=10),
    Layout("roles_table", "table", begin_roles, follow_roles, face="sans", size=9.5),
    Layout("edischarge", "panels", begin_edischarge, None, finish_edischarge, face="sans", size=9.5),
    Layout("meeting_row", "table", begin_meeting, follow_meeting, face="sans", size=9.5, every_page=True),
    Layout("claim_fields", "form", begin_claim, follow_claim, face="sans", size=9.5),
    Layout("intake_form", "form", begin_intake, follow_intake, size=10, every_page=True),
    Layout("date_cells", "form", begin_date_cells, follow_date_cells, face="sans", size=9.5, every_page=True),
    Layout("card_imprint", "sticker", begin_imprint, follow_imprint, face="sans", size=9.5, every_page=True),
    Layout("binding_margin", "margin", begin_binding, None, finish_binding, size=10, margin=80, every_page=True),
    Layout("tube_labels", "sticker", begin_labels, None, finish_labels, face="sans", size=9.5, bottom=690),
    Layout("folder_tab", "sticker", begin_folder, follow_folder, every_page=True),
    Layout("bilingual_letter", "letter", begin_bilingual, None, finish_bilingual, size=11, grown_only=True),
    Layout("underlined_letter", "letter", begin_underlined, follow_underlined, size=11, grown_only=True),
    Layout("concerning_letter", "letter", begin_concerning, follow_concerning, face="sans", size=10, every_page=True),
    Layout("rooms_letter", "letter", begin_rooms, follow_rooms, size=11),
    Layout("letter_to_patient", "letter", begin_to_patient, follow_to_patient, size=11, grown_only=True),
    Layout("portal_message", "lines", begin_portal, None, finish_portal, face="sans", size=10),
    Layout("second_opinion", "text", begin_second_opinion, follow_second_opinion, every_page=True),
    Layout("named_in_text", "text", begin_named_in_text, None, size=11, grown_only=True),
    Layout("certificate", "text", begin_certificate, None, finish_certificate, size=11),
    Layout("nameless_head", "text", begin_nameless, follow_nameless, size=11, grown_only=True),
    Layout(
        "centred_pairs",
        "stacked",
        begin_centred_pairs,
        lambda sheet: 78,
        finish_centred_pairs,
        size=10,
        every_page=True,
    ),
    Layout("event_lines", "lines", begin_event, follow_event, face="sans", size=9.5),
    Layout("bottom_table", "footer", begin_bottom_table, None, finish_bottom_table, bottom=692, every_page=True),
    Layout("attribute_list", "lines", begin_module, follow_module, face="sans", size=9.5),
    Layout("two_sides", "columns", begin_two_sides, follow_two_sides, size=10),
    Layout("gene_strip", "columns", begin_gene_strip, None, draw_gene_foot, face="sans", size=9.5, every_page=True),
    Layout("proband_table", "table", begin_proband, follow_proband, face="sans", size=9.5, every_page=True),
    Layout("between_doctors", "box", begin_refs, None, face="sans", size=9.5),
    Layout("legal_name", "columns", begin_legal, None, finish_legal, face="sans", size=9.5, every_page=True),
    Layout("triage_sheet", "box", begin_triage, follow_triage, face="sans", size=9.5, every_page=True),
    Layout("opd_card", "box", begin_opd_card, follow_opd_card, size=10),
    Layout("inpatient_grid", "grid", begin_inpatient, None, finish_inpatient, size=10, every_page=True),
    Layout("community_lines", "lines", begin_community, follow_community, face="sans", size=10, every_page=True),
    Layout("mail_subject", "lines", begin_mail, None, face="sans", size=10),
    Layout("cumulative_laboratory", "laboratory", begin_cumulative, face="sans", size=9.5, body="laboratory"),
    Layout("receipt_laboratory", "laboratory", begin_health_card, follow_health_card, size=10, body="laboratory"),
    Layout("office_laboratory", "laboratory", begin_office_laboratory, face="mono", size=9, body="laboratory"),
    Layout("regional_laboratory", "laboratory", begin_collector, face="sans", size=9.5, body="laboratory"),
)
COVER = Layout("cover_boxes", "cover", begin_cover, face="sans", size=11, body="cover")
COVER_TEXT = (
    "Please find the copies you asked for behind this sheet.",
    "These pages are confidential and meant for the addressee alone.",
    "Call the sender if a page is missing or cannot be read.",
)
