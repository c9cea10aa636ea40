"""The half `f`: persons, institutions and page layouts of another two dozen systems and decades, European print-outs in English among them."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import timedelta

import pymupdf

from .drawing import FACES, WIDTH, Layout, Sheet
from .persons import MONTHS, Pool, write_day


@dataclass(frozen=True)
class Place:
    """How a place calls its own number, names the number of the country and writes its days."""

    record_label: str
    national_label: str
    national_shape: str
    day_style: str


AMERICAN = ("SSN", "XXX-XX-9999", "mdy")
ENGLISH = ("NHS number", "999 999 9999", "day_first")
IRISH = ("PPSN", "9999999TA", "day_first")
ULSTER = ("H&C No", "999 999 9999", "day_first")
ALBERTAN = ("ULI", "99999-9999", "year_first_abbreviated")
MARITIME = ("Health Card", "9999 999 999", "iso")
AUSTRALIAN = ("Medicare", "2999 99999 9-1", "day_first")
INDIAN = ("Aadhaar", "XXXX XXXX 9999", "day_first_dashes")
SWISS = ("AHV no.", "756.9999.9999.99", "dots")
DUTCH = ("BSN", "999999999", "day_first_dashes")
SPANISH = ("NIE", "X9999999L", "day_first")
ROWS = (
    (
        "Larkspur Valley Medical Center",
        "2200 Mission Ridge Rd, Larkspur, OR 97999   (541) 555-0136",
        "99999999",
        "MRN",
        AMERICAN,
    ),
    (
        "Great Bend Memorial Hospital",
        "601 Levee Street, Great Bend, MO 63999   573-555-0114",
        "M000999999",
        "Unit #",
        AMERICAN,
    ),
    (
        "Harborline Imaging & Diagnostics",
        "48 Commerce Way, Harborline, NJ 07999   Tel: 201.555.0158",
        "HL999999",
        "Patient ID",
        AMERICAN,
    ),
    ("Ojo Claro Clinic", "PO Box 410, Ojo Claro, NM 87999   505-555-0191", "999-99-99", "Chart", AMERICAN),
    (
        "Tamarack County Physicians Group",
        "300 Birch Ave, Tamarack, MN 55999   (218) 555-0109",
        "999999-9",
        "Acct/Chart #",
        AMERICAN,
    ),
    (
        "Wexcombe & Marl Hospitals NHS Trust",
        "Marl Road, Wexcombe WX4 9ZZ   Tel 01632 960 275",
        "MH/999999",
        "Hosp. number",
        ENGLISH,
    ),
    (
        "The Tollgate Surgery",
        "Tollgate Lane, Brackenby DN98 9ZZ   Tel 01632 960 833",
        "999999",
        "Surgery ID",
        ENGLISH,
    ),
    ("Ysbyty Glan Ceirw", "Heol y Bont, Ceirw LL99 9ZZ   01632 960 118", "G9999999", "Case note no.", ENGLISH),
    ("Slieve Croob Area Hospital", "Downs Road, Croob BT99 9ZZ   028 9018 0455", "SC999999", "Casenote", ULSTER),
    (
        "Carrigeen Regional Hospital",
        "Quay Road, Carrigeen, Co. Sligo   071 555 0133",
        "C9999999",
        "Board No.",
        IRISH,
    ),
    (
        "Blackstairs Consultants' Clinic",
        "Suite 4, Market House, Bunclody, Co. Wexford   053 555 0120",
        "BC/99999",
        "File ref.",
        IRISH,
    ),
    (
        "Bow Narrows Health Centre",
        "88 Foothill Trail SW, Bow Narrows AB T0Z 9Z9   403-555-0152",
        "99999999",
        "RHRN",
        ALBERTAN,
    ),
    (
        "Minas Shore Regional Hospital",
        "15 Dyke Road, Minas NS B0Z 9Z9   (902) 555-0139",
        "MS00999999",
        "HUN",
        MARITIME,
    ),
    (
        "Lockyer Plains Hospital",
        "Warrego Road, Lockyer Plains QLD 4999   Ph 07 5550 3321",
        "999999",
        "UR No",
        AUSTRALIAN,
    ),
    (
        "Swan Reach Women's and General",
        "70 Riverside Dr, Swan Reach WA 6999   (08) 5550 2904",
        "Z9999999",
        "UMRN",
        AUSTRALIAN,
    ),
    (
        "Vaigai Mission Hospital",
        "NH 44 Bypass, Madurai 625999   0452 555 0188",
        "VMH/99/999999",
        "O.P. No.",
        INDIAN,
    ),
    (
        "Hooghly Lifeline Nursing Home",
        "22B Strand Road, Kolkata 700999   033 5550 7712",
        "HLN99999999",
        "Regn. No.",
        INDIAN,
    ),
    (
        "Klinik Rosenhang",
        "Seeuferweg 9, 8999 Rosenhang, Switzerland   +41 44 555 01 20",
        "99999999",
        "PID",
        SWISS,
    ),
    (
        "Medisch Centrum De Vliet",
        "Vlietkade 40, 2999 ZZ Vlietwijk, Netherlands   +31 70 555 0145",
        "9999999",
        "Patient no.",
        DUTCH,
    ),
    (
        "Hospital Costa Serena",
        "Av. del Faro 15, 29999 Costa Serena, Spain   +34 952 555 017",
        "NHC-999999",
        "Clin. history",
        SPANISH,
    ),
)
PLACES = {name: Place(label, *country) for name, _, _, label, country in ROWS}
POOL = Pool(
    women=(
        ("Adelaide", "Addie"),
        ("Bridget", "Bridie"),
        ("Catriona", "Cat"),
        ("Dorothea", "Dot"),
        ("Eithne", "Eth"),
        ("Fatima", "Fati"),
        ("Genevieve", "Gen"),
        ("Henrietta", "Etta"),
        ("Isolde", "Izzy"),
        ("Jacqueline", "Jackie"),
        ("Katarzyna", "Kasia"),
        ("Lucinda", "Cindy"),
        ("Mary Ellen", "Mel"),
        ("Meenakshi", "Meena"),
        ("Nerys", "Ness"),
        ("Orlaith", "Orly"),
        ("Priyanka", "Priya"),
        ("Renée", "Ren"),
        ("Saoirse", "Sersh"),
        ("Theodora", "Thea"),
        ("Ursula", "Ulla"),
        ("Verónica", "Vero"),
        ("Wilhelmina", "Mina"),
        ("Yolanda", "Yoli"),
        ("Anneliese", "Anni"),
    ),
    men=(
        ("Ambrose", "Brose"),
        ("Bartholomew", "Bart"),
        ("Cillian", "Kil"),
        ("Dafydd", "Dai"),
        ("Emmanuel", "Manny"),
        ("Frederick", "Fred"),
        ("Gerard", "Gerry"),
        ("Hariharan", "Hari"),
        ("Ibrahim", "Ibi"),
        ("Joaquín", "Quino"),
        ("Krzysztof", "Kris"),
        ("Leopold", "Leo"),
        ("Montgomery", "Monty"),
        ("Narayanan", "Nari"),
        ("Oisín", "Osh"),
        ("Percival", "Percy"),
        ("Raymond", "Ray"),
        ("Sebastiaan", "Bas"),
        ("Thaddeus", "Tad"),
        ("Ulrich", "Uli"),
        ("Vincent", "Vinnie"),
        ("Walter", "Wally"),
        ("Yusuf", "Yus"),
        ("John Henry", "Jack"),
    ),
    unisex=("Robin", "Leslie", "Jordan", "Dana"),
    families=(
        "Abercrombie",
        "Adeyemi",
        "Aguilar Soto",
        "Ahluwalia",
        "Balakrishnan",
        "Barrington-Hughes",
        "Björnsson",
        "Brockelbank",
        "Cadwallader",
        "Castellanos",
        "Crichton",
        "de Groot",
        "De la Torre",
        "Delacroix",
        "Eberhardt",
        "Featherstonehaugh",
        "Fitzwilliam",
        "Gill",
        "Gunawardena",
        "Hathaway",
        "Iyer",
        "Jankowski",
        "Kavanagh",
        "Kilbride",
        "Lindqvist",
        "Mac Giolla Bhríde",
        "McElhinney",
        "Mukhopadhyay",
        "Müller-Ost",
        "Nakamura",
        "O'Donoghue",
        "Oduya",
        "Prendergast",
        "Quigley",
        "Rasmussen",
        "San Martín",
        "Sheikh",
        "Thornbury",
        "Van Houten",
        "von Strahl",
        "Weatherby",
        "Yu",
        "Zamora",
        "James",
        "Thomas",
        "Grace",
        "Price",
        "May",
        "Winter",
        "Banks",
    ),
    clinicians=(
        "Rupert Ellingham",
        "Maeve Corcoran",
        "Sanjay Bhattacharya",
        "Delphine Aubert",
        "Curtis Holloway",
        "Amara Okonkwo",
        "Stellan Frisk",
        "Gillian Prowse",
        "Teodoro Salas",
        "Hye-jin Paik",
        "Wendell Stroud",
        "Niamh Tuohy",
        "Katja Brandl",
        "Ross McKechnie",
        "Leila Farahani",
        "Bertram Oakes",
        "Jaswinder Sohal",
        "Carys Penhallow",
    ),
    institutions=tuple((name, address, shape) for name, address, shape, _, _ in ROWS),
    insurers=(
        "Northfield Mutual Health",
        "Bluewater Benefit Plan",
        "Hibernian Care",
        "Medibridge",
        "Sunrise TPA",
        "Alpenkasse",
    ),
    streets=(
        "Ferry Lane",
        "Orchard Rise",
        "Jacaranda Street",
        "M.G. Road",
        "Linden Quay",
        "Old Mill Drive",
        "Parkwood Court",
    ),
)

TITLES = {
    "Clinical Note": ("Consultation", "Follow-up Visit Note", "Discharge Letter", "History and Physical"),
    "Radiology Report": ("Diagnostic Imaging Consultation", "X-Ray and Imaging Report", "Imaging Findings"),
    "Pathology Report": ("Surgical Pathology Consultation", "Cellular Pathology Report"),
    "Genomic Report": ("Genomic Test Report", "Hereditary Panel Result"),
    "Other": ("Medical Records Copy", "Release of Information"),
}
# What a kind of document calls its day, its author and the one who asked for it.
ROLES = {
    "Clinical Note": ("Date of visit", "Seen by", "Referred by"),
    "Radiology Report": ("Exam date", "Read by", "Requested by"),
    "Pathology Report": ("Specimen taken", "Pathologist", "Surgeon"),
    "Genomic Report": ("Sample received", "Scientist", "Ordered by"),
    "Other": ("Date of issue", "Issued by", "Copy to"),
}
SIGNATURES = (
    "Electronically signed by {} on {}",
    "{}, Attending. Dictated but not read, {}",
    "With kind regards, Dr {}. Typed {}",
    "Approved: Dr. med. {}, {}",
)
LABORATORY_SIGNATURE = "Laboratory director {}. Released {}"
FAX_SENDERS = ("FROM: LVMC HIM DEPT", "CARRIGEEN REGIONAL MED RECORDS", "TAMARACK PHYSICIANS 2185550109")
TESTS = (
    ("Glucose, fasting", "mg/dL", 70, 99),
    ("BUN", "mg/dL", 7, 20),
    ("Hemoglobin A1c", "%", 4.0, 5.6),
    ("Cholesterol, Total", "mg/dL", 125, 199),
    ("HDL Cholesterol", "mg/dL", 40, 80),
    ("LDL (calculated)", "mg/dL", 60, 129),
    ("Triglycerides", "mg/dL", 50, 149),
    ("ALT (SGPT)", "IU/L", 7, 55),
    ("AST (SGOT)", "IU/L", 8, 48),
    ("Uric Acid", "mg/dL", 3.4, 7.0),
    ("Magnesium", "mg/dL", 1.7, 2.4),
    ("Lipase", "U/L", 13, 60),
    ("Vitamin B12", "pg/mL", 232, 1245),
    ("25-OH Vitamin D", "ng/mL", 30, 100),
    ("Free T4", "ng/dL", 0.8, 1.8),
    ("INR", "ratio", 0.9, 1.2),
    ("Fibrinogen", "mg/dL", 200, 400),
    ("LDH", "U/L", 125, 220),
)
MONTH_FIRST = ("mdy", "mdy_short", "mdy_two", "dashes")
DAY_FIRST = ("day_first", "day_first_dashes", "dots")
SEXES = {"F": "Female", "M": "Male"}


# Words of a page.


def get_place(sheet: Sheet) -> Place:
    return PLACES[sheet.card.institution.name]


def get_roles(sheet: Sheet) -> tuple[str, str, str]:
    return next(ROLES[kind] for kind, titles in TITLES.items() if sheet.setting.title in titles)


def fill(shape: str, seed: str) -> str:
    rng = random.Random(f"{shape} {seed}")
    return "".join(str(rng.randint(0, 9)) if sign == "9" else sign for sign in shape)


def invent(sheet: Sheet, shape: str) -> str:
    """A number of no meaning for the identity, the same on every page of the document."""
    return fill(shape, sheet.card.account)


def write_national(sheet: Sheet) -> str:
    """Write the national number: the same for a person in every document of a country."""
    person, place = sheet.card.person, get_place(sheet)
    return fill(place.national_shape, f"{person.born} {person.family} {place.national_label}")


def show_born(sheet: Sheet, style: str = "") -> str:
    """Show the birth date in the style of the place, unless a style is asked for.

    In figures the month is before the day in America only, and the day before the month elsewhere only where the day is above 12;
    dots alone tell that the day is first.
    """
    card, home = sheet.card, get_place(sheet).day_style
    style = style or home
    if home == "mdy":
        style = "mdy" if style in DAY_FIRST else style
    else:
        style = home if style in MONTH_FIRST else style
        if card.birth_style in MONTH_FIRST:
            card.birth_style = "long_day_first"
    if style in ("day_first", "day_first_dashes") and card.person.born.day <= 12:
        style = "abbreviated"
    return sheet.show_birth(style)


def note_birth(sheet: Sheet, birth: str) -> str:
    sheet.printed_birth = sheet.printed_birth or birth
    sheet.printed.append(birth)
    return birth


def show_ordinal_birth(sheet: Sheet) -> str:
    """Show the birth date as 3rd June 1961."""
    day = sheet.card.person.born
    if sheet.card.birth_style:
        return show_born(sheet)
    end = "th" if 11 <= day.day <= 13 else {1: "st", 2: "nd", 3: "rd"}.get(day.day % 10, "th")
    return note_birth(sheet, f"{day.day}{end} {MONTHS[day.month - 1]} {day.year}")


def show_tight_birth(sheet: Sheet) -> str:
    """Show the birth date as 03JUN1961."""
    if sheet.card.birth_style:
        return show_born(sheet)
    return note_birth(sheet, write_day(sheet.card.person.born, "abbreviated_capitals").replace(" ", ""))


def note_name(sheet: Sheet, name: str) -> str:
    sheet.printed_name = sheet.printed_name or name
    sheet.printed.append(name)
    return name


def show_commaless_name(sheet: Sheet) -> str:
    return note_name(sheet, sheet.card.write_name("last_first_capitals").replace(",", ""))


def show_tight_name(sheet: Sheet) -> str:
    return note_name(sheet, sheet.card.write_name("last_first_capitals").replace(", ", ","))


def show_surname_given(sheet: Sheet) -> str:
    """Show the name as SURNAME Given, as on the Continent."""
    return note_name(sheet, f"{sheet.card.write_name('family').upper()} {sheet.card.write_name('given')}")


def show_titled_capitals(sheet: Sheet) -> str:
    return note_name(sheet, sheet.card.write_name("titled").replace(".", "").upper())


def write_seen(sheet: Sheet, days: int = 0) -> str:
    return write_day(sheet.card.seen + timedelta(days=days), get_place(sheet).day_style)


def write_clinician(name: str) -> str:
    given, _, family = name.rpartition(" ")
    return f"{family},{given}".upper()


# Marks on a page.


def fit(
    sheet: Sheet, x: float, y: float, width: float, text: str, size: float, bold: bool = False, face: str | None = None
) -> None:
    """Write one line, smaller if it is too wide for its place."""
    length = pymupdf.get_text_length(text, fontname=FACES[face or sheet.face][bold], fontsize=size)
    sheet.write(x, y, text, size * min(1, width / max(length, 1)), bold, face)


def fit_right(sheet: Sheet, x: float, y: float, width: float, text: str, size: float, bold: bool = False) -> None:
    length = pymupdf.get_text_length(text, fontname=FACES[sheet.face][bold], fontsize=size)
    sheet.write_right(x, y, text, size * min(1, width / max(length, 1)), bold)


def color(
    sheet: Sheet, x: float, y: float, text: str, size: float, shade: tuple[float, float, float], bold: bool = False
) -> None:
    sheet.page.insert_text((x, y), text, fontname=FACES[sheet.face][bold], fontsize=size, color=shade)


def tint(sheet: Sheet, x: float, y: float, width: float, height: float, shade: tuple[float, float, float]) -> None:
    sheet.page.draw_rect((x, y, x + width, y + height), color=None, fill=shade)


def place(sheet: Sheet, y: float, cells: list[tuple[float, float, str]], size: float = 9, bold: bool = False) -> None:
    for x, width, text in cells:
        fit(sheet, x, y, width, text, size, bold)


def list_facts(
    sheet: Sheet,
    x: float,
    y: float,
    facts: list[tuple[str, str]],
    gap: float,
    width: float,
    step: float = 12.5,
    bold: int = 0,
) -> float:
    """Write labels and their texts; 0 has neither in bold, 1 the label, 2 the text. Returns the y below."""
    for label, text in facts:
        fit(sheet, x, y, gap - 4, label, 9, bold=bold == 1)
        fit(sheet, x + gap, y, width - gap, text, 9.5, bold=bold == 2)
        y += step
    return y


def list_right(sheet: Sheet, x: float, y: float, facts: list[tuple[str, str]], width: float, step: float = 12) -> float:
    """Write labels that end at x and texts that begin there."""
    for label, text in facts:
        fit_right(sheet, x - 4, y, 110, label, 9)
        fit(sheet, x + 4, y, width, text, 9)
        y += step
    return y


def head_plain(sheet: Sheet) -> float:
    sheet.write(54, 46, sheet.card.institution.name, 14)
    sheet.write(54, 58, sheet.card.institution.address.replace("   ", " - "), 8)
    return 76


def head_ruled(sheet: Sheet) -> float:
    sheet.draw_line(32, weight=2)
    sheet.write_middle(49, sheet.card.institution.name, 14, bold=True)
    sheet.write_middle(61, sheet.card.institution.address, 8)
    sheet.draw_line(67, weight=0.5)
    return 84


def head_mark(sheet: Sheet) -> float:
    """A mark of the house at the left, the title at the right."""
    sheet.page.draw_circle((68, 46), 13, color=None, fill=(0.25, 0.4, 0.45))
    color(sheet, 62, 51, sheet.card.institution.name.removeprefix("The ")[0], 15, (1, 1, 1), bold=True)
    fit(sheet, 90, 43, 270, sheet.card.institution.name, 12, bold=True)
    fit(sheet, 90, 56, 270, sheet.card.institution.address, 7.5)
    fit_right(sheet, 558, 48, 190, sheet.setting.title, 12, bold=True)
    return 82


# Heads of electronic records.


def draw_numbered_name(sheet: Sheet) -> float:
    """The number in brackets behind the name, the birth date below."""
    card = sheet.card
    fit(
        sheet,
        54,
        40,
        380,
        f"{sheet.show_name('first_last')} ({get_place(sheet).record_label} {sheet.show_number()})",
        12,
        bold=True,
    )
    fit_right(sheet, 558, 40, 120, f"Printed {write_seen(sheet, 9)}", 8)
    fit(
        sheet,
        54,
        53,
        504,
        f"{card.write_label('DOB')} {show_born(sheet)} \xb7 {card.age} yrs \xb7 Legal sex {SEXES[card.person.sex]}",
        9,
    )
    sheet.draw_line(59, weight=0.4)
    return 80


def begin_numbered_name(sheet: Sheet) -> float:
    y = draw_numbered_name(sheet)
    _, author, asked = get_roles(sheet)
    fit(sheet, 54, y, 504, f"{sheet.setting.title} - {sheet.card.institution.name}", 13, bold=True)
    fit(
        sheet,
        54,
        y + 15,
        504,
        f"{author} {sheet.setting.clinicians[0]}, MD on {write_seen(sheet)}   {asked} {sheet.setting.clinicians[1]}, DO   CSN {sheet.show_number('visit')}",
        9,
    )
    return y + 38


def begin_result(sheet: Sheet) -> float:
    """The facts of a result; the patient stands at the foot of the page."""
    card, setting = sheet.card, sheet.setting
    sheet.write_middle(48, "* Final Report *", 12, bold=True)
    facts = [
        ("Result type:", setting.title),
        ("Result date:", f"{write_seen(sheet)} 14:22"),
        ("Result status:", "Auth (Verified)"),
        ("Performed by:", f"{setting.clinicians[0]} on {write_seen(sheet)} 14:20"),
        ("Verified by:", f"{setting.clinicians[2]} on {write_seen(sheet, 1)} 08:05"),
        ("Encounter info:", f"{sheet.show_number('visit')}, {card.institution.name}, Outpatient, {write_seen(sheet)}"),
    ]
    return list_facts(sheet, 54, 72, facts, 86, 504, 12, bold=1) + 14


def finish_result(sheet: Sheet, total: int) -> None:
    sheet.draw_line(738, weight=0.4)
    place(
        sheet,
        749,
        [
            (54, 330, f"Patient name:  {sheet.show_name('last_first_capitals')}"),
            (400, 158, f"Printed by:  {sheet.setting.clinicians[3]}"),
        ],
        8.5,
    )
    place(
        sheet,
        760,
        [
            (54, 330, f"Date of birth:  {show_born(sheet)}"),
            (400, 158, f"Printed on:  {write_seen(sheet, 3)}"),
        ],
        8.5,
    )
    place(
        sheet,
        771,
        [(54, 330, f"Number:  {sheet.show_number()}"), (400, 158, f"Page {sheet.number} of {total}")],
        8.5,
    )


def begin_registration(sheet: Sheet) -> float:
    """A box of hyphens of an old registration system; doctors are written like the patient."""
    card, setting = sheet.card, sheet.setting
    sheet.write(50, 40, f"RUN DATE: {write_seen(sheet, 2)}", 8)
    sheet.write_right(562, 40, "PAGE 1", 8)
    sheet.write_middle(40, card.institution.name.upper(), 10, bold=True)
    sheet.write_middle(52, setting.title.upper(), 9)
    sheet.write(50, 66, "-" * 85, 10)
    rows = (
        (f"PATIENT: {show_tight_name(sheet)}", f"ACCT #: {sheet.show_number('account')}", f"LOC: {invent(sheet, '9')}W"),
        (f"REG DR: {write_clinician(setting.clinicians[0])}", f"AGE/SX: {card.age}/{card.person.sex}", f"ROOM: {invent(sheet, '999')}"),
        (f"ORD DR: {write_clinician(setting.clinicians[1])}", f"DOB: {show_born(sheet, 'mdy_two')}", f"REG: {write_seen(sheet)}"),
        ("STATUS: REG CLI", f"U #: {sheet.show_number()}", "BED: A"),
    )  # fmt: skip
    y = 78.0
    for left, middle, right in rows:
        place(sheet, y, [(54, 236, left), (298, 146, middle), (452, 108, right)], 9)
        y += 11
    sheet.write(50, y, "-" * 85, 10)
    return y + 22


def follow_registration(sheet: Sheet) -> float:
    place(
        sheet,
        40,
        [
            (50, 230, f"Patient: {show_tight_name(sheet)}"),
            (300, 150, f"#{sheet.show_number()}"),
            (460, 100, "(Continued)"),
        ],
        9,
    )
    sheet.write(50, 50, "-" * 85, 10)
    return 72


def begin_care_banner(sheet: Sheet) -> float:
    y = draw_care_banner(sheet)
    setting = sheet.setting
    day, author, asked = get_roles(sheet)
    fit(sheet, 40, y + 4, 520, f"{sheet.card.institution.name} | {setting.title}", 13, bold=True)
    facts = [
        (day, write_day(sheet.card.seen, "abbreviated")),
        (author, f"Dr {setting.clinicians[0]} (GMC {invent(sheet, '7999999')})"),
        (asked, f"Dr {setting.clinicians[1]} (GMC {invent(sheet, '6999999')})"),
        ("Care contact", setting.write_relative("first_last")),
    ]
    return list_facts(sheet, 40, y + 22, facts, 90, 500) + 12


def draw_care_banner(sheet: Sheet) -> float:
    """A coloured band with small labels before large values, the surname first."""
    card, local = sheet.card, get_place(sheet)
    tint(sheet, 0, 18, WIDTH, 42, (0.86, 0.91, 0.96))
    fit(sheet, 40, 36, 230, sheet.show_name("surname_first"), 12, bold=True)
    for x, label, text, width in (
        (285, "Born", f"{show_born(sheet, 'abbreviated')} ({card.age}y)", 124),
        (446, "Gender", SEXES[card.person.sex], 90),
    ):
        color(sheet, x, 36, label, 8, (0.3, 0.3, 0.4))
        fit(sheet, x + 34, 36, width, text, 10, bold=True)
    x = 40.0
    for label, text in (
        ("Address", sheet.setting.street),
        (local.national_label, write_national(sheet)),
        (local.record_label, sheet.show_number()),
    ):
        color(sheet, x, 53, label, 8, (0.3, 0.3, 0.4))
        fit(sheet, x + 60, 53, 120, text, 9)
        x += 184
    return 80


# Forms and tables.


def draw_section(sheet: Sheet, y: float, title: str, rows: list[list[tuple[str, str]]]) -> float:
    """A black title over rows of cells, each with its label before its text."""
    tint(sheet, 54, y, 504, 13, (0.15, 0.15, 0.15))
    color(sheet, 58, y + 10, title, 8.5, (1, 1, 1), bold=True)
    y += 13
    for row in rows:
        width = 504 / len(row)
        for column, (label, text) in enumerate(row):
            x = 54 + column * width
            sheet.draw_box(x, y, width, 16, weight=0.4)
            end = sheet.write(x + 4, y + 11, f"{label}: ", 8)
            fit(sheet, end + 2, y + 11, x + width - end - 6, text, 9.5)
        y += 16
    return y + 5


def begin_referral(sheet: Sheet) -> float:
    """The one who refers and the practice stand around the patient, with numbers of their own."""
    card, setting, local = sheet.card, sheet.setting, get_place(sheet)
    y = head_mark(sheet) + 2
    day, author, asked = get_roles(sheet)
    y = draw_section(
        sheet,
        y,
        "1. Practitioner",
        [
            [(asked, setting.clinicians[1]), ("Licence no.", invent(sheet, "4999999"))],
            [(author, setting.clinicians[0]), (day, write_seen(sheet))],
        ],
    )
    family, given = sheet.show_split_name()
    y = draw_section(
        sheet,
        y,
        "2. Person referred",
        [
            [("Last name", family), ("First name(s)", given)],
            [("Date of birth", show_born(sheet, "long_day_first")), ("Sex at birth", SEXES[card.person.sex])],
            [(local.national_label, write_national(sheet)), (local.record_label, sheet.show_number())],
            [("Lives at", setting.street), ("Referral ID", sheet.show_number("visit"))],
        ],
    )
    y = draw_section(
        sheet,
        y,
        "3. Parent, partner or carer",
        [
            [("Name", setting.write_relative("first_last")), ("Relation", setting.relative_word)],
            [("Date of birth", write_day(setting.relative_born, "long_day_first")), ("Phone", "555 0174")],
        ],
    )
    return y + 16


def finish_referral(sheet: Sheet, total: int) -> None:
    """Later pages show the numbers alone."""
    if sheet.number > 1:
        fit(sheet, 54, 44, 400, f"Referral ID: {sheet.show_number('visit')}    {get_place(sheet).record_label}: {sheet.show_number()}", 9)  # fmt: skip
    sheet.write_right(558, 766, f"Sheet {sheet.number} of {total}", 8)


def begin_headings(sheet: Sheet) -> float:
    """A discharge summary under headings: first the practice, then the patient."""
    card, setting, local = sheet.card, sheet.setting, get_place(sheet)
    y = head_plain(sheet)
    sheet.write(54, y + 6, setting.title, 15, bold=True)
    y += 28
    for heading, facts in (
        (
            "Receiving practice",
            [("GP name", f"Dr {setting.clinicians[1]}"), ("Practice", f"The Health Centre, {setting.street}")],
        ),
        (
            "Patient demographics",
            [
                ("Full name", sheet.show_name("titled")),
                ("Born", show_ordinal_birth(sheet)),
                ("Sex", SEXES[card.person.sex]),
                (local.national_label, write_national(sheet)),
                (local.record_label, sheet.show_number()),
            ],
        ),
        (
            "Admission and discharge",
            [
                ("Admitted", write_day(card.seen, "long_day_first")),
                ("Discharged", write_day(card.seen + timedelta(days=4), "long_day_first")),
                ("Responsible", f"{setting.clinicians[0]}, Consultant"),
            ],
        ),
    ):
        color(sheet, 54, y, heading, 10.5, (0.1, 0.25, 0.5), bold=True)
        sheet.draw_line(y + 3, weight=0.3)
        y = list_facts(sheet, 64, y + 16, facts, 110, 490, 12) + 5
    return y + 12


def finish_headings(sheet: Sheet, total: int) -> None:
    """The name without the birth date at the foot of later pages."""
    if sheet.number > 1:
        fit(sheet, 54, 760, 380, f"{sheet.setting.title} for {sheet.show_name('titled')}", 8.5)
    sheet.write_right(558, 760, f"Page {sheet.number}/{total}", 8.5)


def begin_emergency(sheet: Sheet) -> float:
    """The front sheet of an emergency department: who came, who came along, who is to be told."""
    card, setting, local = sheet.card, sheet.setting, get_place(sheet)
    sheet.write(54, 44, "EMERGENCY DEPARTMENT", 14, bold=True)
    fit(sheet, 54, 57, 300, card.institution.name, 9)
    sheet.draw_box(388, 28, 170, 34, weight=1.2)
    sheet.write(394, 40, "Attendance no.", 8)
    sheet.write(394, 55, sheet.show_number("visit"), 12, bold=True)
    sheet.draw_box(54, 68, 300, 92)
    facts = [
        ("Patient", sheet.show_name("last_first_capitals")),
        ("D. of B.", f"{show_born(sheet, 'abbreviated')}   Age {card.age}   {card.person.sex}"),
        (local.record_label, sheet.show_number()),
        (local.national_label, write_national(sheet)),
        ("Address", setting.street),
        ("Fund / plan", f"{setting.insurer} {setting.member}"),
    ]
    list_facts(sheet, 60, 82, facts, 76, 288, 14, bold=2)
    sheet.draw_box(354, 68, 204, 92)
    facts = [
        ("Arrived", f"{write_seen(sheet)} 02:47"),
        ("Triage", f"Cat 3, RN {setting.clinicians[3].split()[-1]}"),
        ("Seen", f"Dr {setting.clinicians[0]} 03:31"),
        ("N.O.K.", setting.write_relative("first_last")),
        ("N.O.K. born", write_day(setting.relative_born, "abbreviated")),
        ("Own doctor", f"Dr {setting.clinicians[1]}"),
    ]
    list_facts(sheet, 360, 82, facts, 62, 192, 14)
    return 184


def follow_emergency(sheet: Sheet) -> float:
    sheet.draw_box(54, 26, 504, 20)
    place(
        sheet,
        40,
        [
            (58, 120, f"Att. {sheet.show_number('visit')}"),
            (184, 210, sheet.show_name("last_first_capitals")),
            (400, 154, f"D. of B. {show_born(sheet, 'abbreviated')}"),
        ],
        9.5,
        bold=True,
    )
    return 70


def begin_vertical_table(sheet: Sheet) -> float:
    """A table of label and value, row by row, with the numbers of the providers among them."""
    card, setting = sheet.card, sheet.setting
    y = head_ruled(sheet)
    day, author, asked = get_roles(sheet)
    rows = (
        ("Document", setting.title),
        (day, write_seen(sheet)),
        (author, f"{setting.clinicians[0]} (NPI {invent(sheet, '1999999999')})"),
        ("Name of patient", sheet.show_name("first_last")),
        ("Patient's date of birth", show_born(sheet, "abbreviated_month_first")),
        ("Patient's sex", SEXES[card.person.sex]),
        ("Patient's file number", sheet.show_number()),
        (asked, f"{setting.clinicians[1]} (NPI {invent(sheet, '1899999999')})"),
        ("Policy holder", f"{setting.write_relative('first_last')}, {setting.insurer}, {setting.member}"),
    )
    for label, text in rows:
        tint(sheet, 54, y, 150, 15, (0.93, 0.93, 0.93))
        sheet.draw_box(54, y, 504, 15, weight=0.4)
        fit(sheet, 58, y + 11, 142, label, 9)
        fit(sheet, 210, y + 11, 344, text, 9.5)
        y += 15
    return y + 22


def finish_vertical_table(sheet: Sheet, total: int) -> None:
    if sheet.number > 1:
        sheet.write_middle(44, f"File number {sheet.show_number()}", 9)
    sheet.write_middle(766, f"{sheet.number} - {total}", 8)


def draw_dots(sheet: Sheet, x: float, y: float, label: str, text: str, width: float) -> None:
    """A printed label and a dotted line, the text typed a little above the dots."""
    start = sheet.write(x, y, label, 8.5, face="serif") + 3
    sheet.page.draw_line((start, y + 1), (x + width, y + 1), width=0.6, dashes="[1 2] 0")
    fit(sheet, start + 5, y - 1.5, x + width - start - 7, text, 10, face="mono")


def begin_dotted_form(sheet: Sheet) -> float:
    """A printed form of the eighties filled in on a typewriter."""
    card, setting = sheet.card, sheet.setting
    sheet.write_middle(46, card.institution.name.upper(), 13, bold=True)
    sheet.write_middle(62, f"{setting.title.upper()} SHEET", 10)
    family, given = sheet.show_split_name()
    y = 90.0
    for row in (
        (("Surname", family, 250), ("Unit No.", sheet.show_number(), 244)),
        (("Christian or first names", given, 250), ("Ward/Clinic", f"O.P.D. {invent(sheet, '9')}", 244)),
        (
            ("Date of Birth", show_born(sheet, "abbreviated_capitals"), 250),
            ("Consultant", f"Dr {setting.clinicians[0]}", 244),
        ),
        (("Religion", "N/S", 120), ("Sex", card.person.sex, 120), ("Date", write_seen(sheet), 244)),
        (("Next of kin", setting.write_relative("first_last"), 250), ("G.P.", f"Dr {setting.clinicians[1]}", 244)),
    ):
        x = 54.0
        for label, text, width in row:
            draw_dots(sheet, x, y, label, text, width)
            x += width + 10
        y += 19
    sheet.draw_line(y - 4, weight=1.4)
    return y + 16


def follow_dotted_form(sheet: Sheet) -> float:
    family, given = sheet.show_split_name()
    draw_dots(sheet, 54, 44, "Surname", family, 160)
    draw_dots(sheet, 222, 44, "First names", given, 180)
    draw_dots(sheet, 410, 44, "Unit No.", sheet.show_number(), 148)
    draw_dots(sheet, 54, 62, "Date of Birth", show_born(sheet, "abbreviated_capitals"), 180)
    sheet.write_right(558, 62, f"Continuation {sheet.number}", 9)
    return 88


def draw_comb(sheet: Sheet, x: float, y: float, text: str) -> None:
    for at, sign in enumerate(text):
        sheet.draw_box(x + at * 15, y, 15, 18, weight=0.5)
        sheet.write(x + at * 15 + 4, y + 13, sign, 11, face="mono")


def draw_comb_form(sheet: Sheet) -> float:
    """A form to be scanned: the number sign by sign in boxes."""
    sheet.draw_box(36, 30, 540, 64, weight=1.2)
    sheet.write(42, 42, "Client's record number", 7.5)
    draw_comb(sheet, 42, 46, sheet.show_number())
    fit(sheet, 270, 42, 80, "Date of birth", 7.5)
    fit(sheet, 270, 59, 130, show_born(sheet, "abbreviated"), 11, face="mono")
    sheet.write(420, 42, "Sex (circle one)", 7.5)
    sheet.write(426, 59, "M", 10)
    sheet.write(456, 59, "F", 10)
    sheet.page.draw_circle((430 if sheet.card.person.sex == "M" else 459, 55.5), 8, width=0.8)
    sheet.write(42, 76, "Client's name (last, first, middle)", 7.5)
    fit(sheet, 42, 88, 300, sheet.show_name("last_first"), 11, face="mono")
    sheet.write(420, 76, "Form 7-A", 7.5)
    sheet.write(420, 88, f"Sheet {sheet.number}", 9)
    return 116


def begin_comb_form(sheet: Sheet) -> float:
    y = draw_comb_form(sheet)
    _, author, _ = get_roles(sheet)
    fit(sheet, 54, y, 504, f"{sheet.card.institution.name} - {sheet.setting.title}", 12, bold=True)
    sheet.write(54, y + 14, f"{author}: {sheet.setting.clinicians[0]}    Service date: {write_seen(sheet)}", 9)
    return y + 38


# Other words for the patient.


def begin_claimant(sheet: Sheet) -> float:
    """An examination for an insurer: dates of injury and of the examination, numbers of claim and file."""
    card, setting = sheet.card, sheet.setting
    y = head_ruled(sheet)
    sheet.write_middle(y + 4, "INDEPENDENT MEDICAL EXAMINATION", 12, bold=True)
    facts = [
        ("CLAIMANT:", sheet.show_name("first_last")),
        ("CLAIM NUMBER:", invent(sheet, "WC-99-9999999")),
        ("DATE OF INJURY:", write_day(card.seen - timedelta(days=411), "long")),
        ("DATE OF BIRTH:", show_born(sheet, "long")),
        ("DATE OF EXAM:", write_day(card.seen, "long")),
        ("INSURED:", f"{setting.pool.streets[1]} Joinery Ltd, {setting.insurer}"),
        ("EXAMINER:", f"{setting.clinicians[0]}, M.D."),
        ("OUR CHART:", sheet.show_number()),
    ]
    return list_facts(sheet, 90, y + 28, facts, 130, 460, 14, bold=1) + 16


def finish_claimant(sheet: Sheet, total: int) -> None:
    if sheet.number > 1:
        fit(sheet, 60, 40, 300, f"Claimant: {sheet.show_name('first_last')}", 9.5)
        fit(sheet, 60, 52, 300, f"Date of birth: {show_born(sheet, 'long')}", 9.5)
        sheet.write_right(552, 40, f"Page {sheet.number} of {total}", 9.5)
        sheet.write_right(552, 52, f"Exam: {write_day(sheet.card.seen, 'long')}", 9.5)


def begin_employee(sheet: Sheet) -> float:
    """Occupational health: the firm's number and manager beside the clinic's number."""
    card, setting = sheet.card, sheet.setting
    y = head_mark(sheet)
    sheet.draw_line(y - 4, weight=0.6)
    facts = [
        ("Employee", sheet.show_name("last_first")),
        ("Birthdate", show_born(sheet, "long_day_first")),
        ("OH file", sheet.show_number()),
        ("Payroll no.", invent(sheet, "E99999")),
    ]
    list_facts(sheet, 54, y + 10, facts, 70, 250)
    facts = [
        ("Employer", f"{setting.pool.streets[5]} Logistics"),
        ("Line manager", setting.clinicians[3]),
        ("Physician", f"Dr {setting.clinicians[0]}"),
        ("Assessed", write_day(card.seen, "long_day_first")),
    ]
    list_facts(sheet, 316, y + 10, facts, 74, 242)
    sheet.draw_line(y + 58, weight=0.6)
    return y + 82


def finish_employee(sheet: Sheet, total: int) -> None:
    text = f"IN CONFIDENCE: {sheet.show_name('last_first')}, birthdate {show_born(sheet, 'long_day_first')}, OH file {sheet.show_number()}"
    fit(sheet, 54, 762, 430, text, 8)
    sheet.write_right(558, 762, f"{sheet.number} | {total}", 8)


def begin_resident(sheet: Sheet) -> float:
    """A nursing home: the one responsible stands above the resident's own dates."""
    setting = sheet.setting
    y = head_plain(sheet)
    fit(sheet, 54, y + 4, 504, setting.title.upper(), 11, bold=True)
    facts = [
        ("Resident:", sheet.show_name("last_first")),
        ("Room/Bed:", f"{invent(sheet, '299')}-B"),
        ("Responsible party:", f"{setting.write_relative('first_last')} ({setting.relative_word})"),
        ("Admit:", write_seen(sheet, -220)),
    ]
    list_facts(sheet, 54, y + 24, facts, 92, 280, bold=1)
    facts = [
        ("Birth:", show_born(sheet, "mdy_short")),
        ("Res. #:", sheet.show_number()),
        ("Payer ID:", setting.member),
        ("Physician:", setting.clinicians[0]),
    ]
    return list_facts(sheet, 352, y + 24, facts, 56, 206, bold=1) + 16


def finish_resident(sheet: Sheet, total: int) -> None:
    x = 54.0
    for width, label, text in (
        (210, "Resident", sheet.show_name("last_first")),
        (104, "Birth", show_born(sheet, "mdy_short")),
        (100, "Res. #", sheet.show_number()),
        (90, "Page", f"{sheet.number} of {total}"),
    ):
        sheet.draw_box(x, 740, width, 24, weight=0.5)
        sheet.write(x + 3, 748, label, 6.5)
        fit(sheet, x + 3, 760, width - 6, text, 9)
        x += width


def begin_portal(sheet: Sheet) -> float:
    """A page printed from a browser: the relative who is signed in stands above the patient."""
    card, setting = sheet.card, sheet.setting
    sheet.write(30, 33, f"{write_seen(sheet, 30)}, 9:12 AM", 7)
    sheet.write_middle(33, "My Health Record", 7)
    sheet.write_right(558, 52, f"Signed in: {setting.write_relative('first_last')} (proxy)", 8.5)
    fit(sheet, 54, 52, 260, card.institution.name, 11, bold=True)
    sheet.draw_line(60, weight=0.3)
    tint(sheet, 54, 70, 504, 58, (0.95, 0.95, 0.92))
    sheet.write(64, 84, "Viewing the record of", 8)
    fit(sheet, 64, 102, 300, sheet.show_name("first_last"), 16)
    fit(sheet, 64, 119, 470, f"Born {show_born(sheet, 'long')}   Record number {sheet.show_number()}", 9.5)
    sheet.write(54, 148, setting.title, 13, bold=True)
    fit(sheet, 54, 162, 504, f"{write_day(card.seen, 'long')} with {setting.clinicians[0]}. Primary care: {setting.clinicians[1]}", 9.5)  # fmt: skip
    return 184


def follow_portal(sheet: Sheet) -> float:
    sheet.write(30, 33, f"{write_seen(sheet, 30)}, 9:12 AM", 7)
    sheet.write_middle(33, "My Health Record", 7)
    return 62


def finish_portal(sheet: Sheet, total: int) -> None:
    sheet.write(30, 776, f"https://portal.example/record/note?csn={sheet.show_number('visit')}", 7)
    sheet.write_right(582, 776, f"{sheet.number}/{total}", 7)


def draw_client_card(sheet: Sheet, y: float) -> float:
    """A rounded card; the key worker and the carer have fields like the client's."""
    card, setting, local = sheet.card, sheet.setting, get_place(sheet)
    sheet.page.draw_rect((300, y, 564, y + 76), color=(0.2, 0.2, 0.2), width=0.8, radius=0.08)
    facts = [
        ("Client", sheet.show_name("titled_surname" if card.title else "first_last")),
        ("DOB / Age", f"{show_born(sheet, 'abbreviated')} / {card.age}"),
        (f"Client {local.record_label}", sheet.show_number()),
        ("Key worker", f"{setting.clinicians[3]}"),
        ("Carer", f"{setting.write_relative('first_last')} ({setting.relative_word})"),
    ]
    list_facts(sheet, 308, y + 14, facts, 82, 250, 13)
    return y + 76


def begin_client_card(sheet: Sheet) -> float:
    draw_client_card(sheet, 28)
    setting = sheet.setting
    day, author, _ = get_roles(sheet)
    fit(sheet, 48, 44, 240, sheet.card.institution.name, 12, bold=True)
    fit(sheet, 48, 57, 240, sheet.card.institution.address, 8)
    fit(sheet, 48, 80, 240, setting.title, 12)
    fit(sheet, 48, 96, 240, f"{day}: {write_seen(sheet)}   {author}: {setting.clinicians[0]}", 8.5)
    return 132


def follow_client_card(sheet: Sheet) -> float:
    draw_client_card(sheet, 28)
    fit(sheet, 48, 44, 240, f"{sheet.setting.title}, sheet {sheet.number}", 9)
    return 130


# Reports of departments.


def begin_case(sheet: Sheet) -> float:
    """The number of the case in large figures, then the patient at the left and the doctors at the right."""
    card, setting, local = sheet.card, sheet.setting, get_place(sheet)
    day, author, asked = get_roles(sheet)
    y = head_ruled(sheet)
    sheet.write(54, y + 8, f"CASE: {sheet.show_number('accession')}", 15, bold=True)
    fit_right(sheet, 558, y + 8, 280, setting.title, 11, bold=True)
    left = [
        ("PATIENT:", sheet.show_name("last_first_capitals")),
        ("BIRTH DATE:", f"{show_born(sheet)} (Age {card.age})"),
        ("GENDER:", card.person.sex),
        (f"{local.record_label.upper()}:", sheet.show_number()),
        ("ACCT:", sheet.show_number("account")),
    ]
    right = [
        (f"{asked.upper()}:", f"{setting.clinicians[1]}, MD"),
        (f"{author.upper()}:", f"{setting.clinicians[0]}, MD"),
        (f"{day.upper()}:", write_seen(sheet)),
        ("RECEIVED:", write_seen(sheet, 1)),
        ("REPORTED:", write_seen(sheet, 4)),
    ]
    list_facts(sheet, 54, y + 28, left, 84, 290, 12)
    list_facts(sheet, 350, y + 28, right, 92, 208, 12)
    sheet.draw_line(y + 84, weight=1.5)
    return y + 104


def follow_case(sheet: Sheet) -> float:
    place(
        sheet,
        44,
        [
            (54, 110, f"Case: {sheet.show_number('accession')}"),
            (170, 220, f"Patient: {sheet.show_name('last_first_capitals')}"),
            (396, 162, f"Birth date: {show_born(sheet)}"),
        ],
    )
    sheet.draw_line(50, weight=1.5)
    return 74


def begin_specimen(sheet: Sheet) -> float:
    """Rows between upright strokes; later pages have the number of the specimen only."""
    card, setting, local = sheet.card, sheet.setting, get_place(sheet)
    day, author, asked = get_roles(sheet)
    fit(sheet, 54, 44, 380, f"{card.institution.name}: {setting.title}", 11, bold=True)
    sheet.write_right(558, 44, f"Ref {sheet.show_number('accession')}", 10, bold=True)
    sheet.write(50, 58, "_" * 84, 10)
    y = 73.0
    for left, right in (
        (f"Name  {show_surname_given(sheet)}", f"{local.record_label}  {sheet.show_number()}"),
        (f"DoB   {show_born(sheet)}   Sex {card.person.sex}", f"{local.national_label}  {write_national(sheet)}"),
        (f"Ward  OPD {invent(sheet, '9')}", f"{day}  {write_seen(sheet)}"),
        (f"{asked}  {setting.clinicians[1]}", f"{author}  {setting.clinicians[0]}"),
    ):
        place(sheet, y, [(54, 8, "|"), (64, 240, left), (308, 8, "|"), (318, 226, right), (550, 8, "|")], 9.5)
        y += 13
    sheet.write(50, y - 6, "_" * 84, 10)
    return y + 18


def follow_specimen(sheet: Sheet) -> float:
    sheet.write_right(558, 44, f"Ref {sheet.show_number('accession')}   continued ({sheet.number})", 9)
    return 70


def begin_individual(sheet: Sheet) -> float:
    """A family test: the relative has a birth date and a sample too."""
    card, setting, local = sheet.card, sheet.setting, get_place(sheet)
    day, author, asked = get_roles(sheet)
    y = head_mark(sheet) + 4
    for x, heading, facts in (
        (
            54.0,
            "INDIVIDUAL",
            (
                ("Name", sheet.show_name("first_last")),
                ("Born", show_born(sheet, "year_first_abbreviated")),
                ("Sex", SEXES[card.person.sex]),
                (local.record_label, sheet.show_number()),
                ("Lab ref", sheet.show_number("accession")),
            ),
        ),
        (
            226.0,
            "RELATIVE",
            (
                ("Name", setting.write_relative("first_last")),
                ("Born", write_day(setting.relative_born, "year_first_abbreviated")),
                ("Relation", setting.relative_word),
                ("Lab ref", invent(sheet, "REL-999999")),
                ("Reported", "separately"),
            ),
        ),
        (
            398.0,
            "REQUEST",
            (
                (asked, setting.clinicians[1]),
                (author, setting.clinicians[0]),
                (day, write_seen(sheet)),
                ("Reported", write_seen(sheet, 18)),
                ("Status", "Final"),
            ),
        ),
    ):
        tint(sheet, x, y, 162, 14, (0.8, 0.87, 0.8))
        sheet.write(x + 4, y + 10.5, heading, 8.5, bold=True)
        list_facts(sheet, x + 4, y + 27, list(facts), 58, 156, 12)
    return y + 98


def follow_individual(sheet: Sheet) -> float:
    text = f"Individual: {sheet.show_name('first_last')} | born {show_born(sheet, 'year_first_abbreviated')} | lab ref {sheet.show_number('accession')}"
    fit(sheet, 54, 40, 504, text, 9)
    sheet.draw_line(46, weight=0.4)
    return 70


def draw_reading(sheet: Sheet) -> float:
    """A reading service: the name without a comma, the date of birth tight."""
    setting = sheet.setting
    day, _, asked = get_roles(sheet)
    rows = (
        ("NAME:", show_commaless_name(sheet), f"{day.upper()}:", write_seen(sheet)),
        ("DOB:", show_tight_birth(sheet), f"{asked.upper()}:", f"{setting.clinicians[1].upper()} MD"),
        (f"{get_place(sheet).record_label.upper()}:", sheet.show_number(), "ACC:", sheet.show_number("accession")),
    )
    y = 44.0
    for label, text, other, fact in rows:
        place(sheet, y, [(54, 74, label), (132, 190, text), (330, 96, other), (430, 128, fact)], 9.5)
        y += 12
    return y


def begin_reading(sheet: Sheet) -> float:
    y = draw_reading(sheet) + 8
    sheet.write(54, y, f"FACILITY: {sheet.card.institution.name.upper()}", 9.5)
    sheet.write(54, y + 12, f"{sheet.setting.title.upper()}", 10, bold=True)
    sheet.write(54, y + 24, f"INTERPRETED REMOTELY BY {sheet.setting.clinicians[0].upper()} MD", 8.5)
    return y + 48


def begin_team(sheet: Sheet) -> float:
    """A list of the team in which the patient is one name of many."""
    card, setting = sheet.card, sheet.setting
    y = head_plain(sheet)
    day, author, asked = get_roles(sheet)
    sheet.write(54, y + 6, setting.title, 14, bold=True)
    facts = [
        (day, write_seen(sheet)),
        (author, setting.clinicians[0]),
        ("Assistant", setting.clinicians[2]),
        ("Nurse", setting.clinicians[3]),
        ("Patient", f"{sheet.show_name('first_last')}  ({show_born(sheet, 'abbreviated')}, {card.person.sex})"),
        ("Patient number", sheet.show_number()),
        (asked, setting.clinicians[1]),
        ("Informant", f"{setting.write_relative('first_last')}, {setting.relative_word}"),
    ]
    return list_facts(sheet, 54, y + 28, facts, 100, 500, 13) + 12


def finish_team(sheet: Sheet, total: int) -> None:
    if sheet.number > 1:
        fit_right(sheet, 558, 42, 400, f"{sheet.show_name('first_last')}  ({show_born(sheet, 'abbreviated')}, {sheet.card.person.sex})", 9)  # fmt: skip
    sheet.write(54, 42 if sheet.number > 1 else 766, f"{sheet.number} of {total}", 8.5)


# Letters.


def begin_run_on(sheet: Sheet) -> float:
    """A consultant's letter: name, address, birth date and number run on in one heading."""
    card, setting = sheet.card, sheet.setting
    y = head_ruled(sheet) + 6
    sheet.write(60, y, write_day(card.seen, "long_day_first"))
    for row, line in enumerate((f"Dr {setting.clinicians[1]},", "Medical Centre,", f"{setting.street}.")):
        sheet.write(60, y + 24 + row * 13, line)
    y += 76
    heading = f"RE: {sheet.show_name('first_last')}, {invent(sheet, '99')} {setting.pool.streets[0]}. DOB {show_born(sheet)}. {get_place(sheet).record_label} {sheet.show_number()}"
    y = sheet.write_wrapped(60, y, 490, heading, bold=True)
    sheet.write(60, y + 6, f"Dear {setting.clinicians[1].split()[0]},")
    return y + 26


def follow_run_on(sheet: Sheet) -> float:
    sheet.write_middle(46, f"- {sheet.number} -", 9)
    sheet.write(60, 60, f"{get_place(sheet).record_label} {sheet.show_number()}", 9)
    return 84


def begin_patient_line(sheet: Sheet) -> float:
    """An imaging practice writes to the doctor; the name in capitals with its title."""
    card, setting = sheet.card, sheet.setting
    y = head_plain(sheet) + 8
    sheet.write_right(552, y, write_day(card.seen, "long_day_first"))
    sheet.write(60, y, f"DR {setting.clinicians[1].upper()}")
    sheet.write(60, y + 13, setting.street.upper())
    sheet.write(60, y + 34, f"Dear Doctor {setting.clinicians[1].split()[-1]},")
    place(
        sheet,
        y + 56,
        [(60, 320, f"Re: {show_titled_capitals(sheet)}"), (390, 162, f"DOB: {show_born(sheet, 'abbreviated')}")],
        11,
        bold=True,
    )
    place(
        sheet,
        y + 70,
        [(60, 320, f"Our ref: {sheet.show_number('accession')}"), (390, 162, f"Patient ID: {sheet.show_number()}")],
        10,
    )
    sheet.write(60, y + 92, setting.title.upper(), 11, bold=True)
    sheet.draw_line(y + 95, 60, 552, 0.5)
    return y + 114


def follow_patient_line(sheet: Sheet) -> float:
    fit(sheet, 60, 46, 400, f"{show_titled_capitals(sheet)}   {sheet.show_number('accession')}", 9.5)
    return 76


def begin_right_block(sheet: Sheet) -> float:
    """A continental letterhead: the doctors of the department down the left, the patient at the right."""
    card, setting, local = sheet.card, sheet.setting, get_place(sheet)
    fit(sheet, 50, 44, 240, card.institution.name, 12, bold=True)
    fit(sheet, 50, 56, 240, card.institution.address, 7.5)
    y = 76.0
    for role, name in zip(
        ("Head of department", "Senior physicians", "", "Registrar"), setting.clinicians, strict=True
    ):
        if role:
            sheet.write(50, y, role, 7.5, bold=True)
            y += 10
        sheet.write(50, y, f"Dr {name}  (reg. {fill('9999999', name)})", 8)
        y += 11
    for row, line in enumerate(
        (
            f"{card.title} {show_surname_given(sheet)}".strip(),
            f"born on {show_born(sheet, 'long_day_first')}",
            f"{local.record_label} {sheet.show_number()}",
            setting.street,
        )
    ):
        fit_right(sheet, 558, 80 + row * 13, 230, line, 10, bold=row == 0)
    y += 12
    sheet.write(50, y, f"{setting.title}, {write_seen(sheet)}", 12, bold=True)
    return y + 24


def finish_right_block(sheet: Sheet, total: int) -> None:
    if sheet.number > 1:
        fit(sheet, 60, 764, 400, f"{show_surname_given(sheet)} - born on {show_born(sheet, 'long_day_first')}", 8.5)
    sheet.write_right(552, 764, f"{sheet.number}/{total}", 8.5)


def begin_asterisk(sheet: Sheet) -> float:
    """The star of the birth date, as German-speaking clinics set it."""
    card, setting, local = sheet.card, sheet.setting, get_place(sheet)
    y = head_mark(sheet) + 6
    for row, line in enumerate((f"{setting.clinicians[1]}, MD", "Specialist practice", setting.street)):
        sheet.write(60, y + row * 13, line)
    sheet.write_right(552, y, f"Date: {write_day(card.seen, 'dots')}")
    y += 58
    text = f"Patient: {sheet.show_name('last_first')}, *{show_born(sheet, 'dots' if local.day_style != 'mdy' else 'mdy')}, {SEXES[card.person.sex].lower()}"
    fit(sheet, 60, y, 490, text, 11, bold=True)
    fit(sheet, 60, y + 14, 490, f"residing at {setting.street}; PID {sheet.show_number()}; case {sheet.show_number('visit')}", 9.5)  # fmt: skip
    sheet.write(60, y + 36, f"{setting.title}", 12, bold=True)
    sheet.write(60, y + 56, f"Dear colleague {setting.clinicians[1].split()[-1]},")
    return y + 76


def finish_asterisk(sheet: Sheet, total: int) -> None:
    if sheet.number > 1:
        home = get_place(sheet).day_style
        born = show_born(sheet, "dots" if home != "mdy" else "mdy")
        fit(sheet, 60, 44, 430, f"{sheet.show_name('last_first')}, *{born}, letter of {write_day(sheet.card.seen, 'dots')}", 9)  # fmt: skip
    sheet.write_right(552, 44 if sheet.number > 1 else 764, f"Page {sheet.number}/{total}", 9)


# Names in running text.


def begin_named_in_text(sheet: Sheet) -> float:
    """Name, birth date and number in the first sentences only."""
    card, setting = sheet.card, sheet.setting
    local, (_, author, _) = get_place(sheet), get_roles(sheet)
    y = head_plain(sheet)
    sheet.write(60, y + 4, f"{setting.title}, {write_day(card.seen, 'long')}", 11, bold=True)
    sheet.write(60, y + 18, f"{author} {setting.clinicians[0]}", 10)
    he, person = {"F": ("She", "woman"), "M": ("He", "man")}[card.person.sex]
    kin, manner = setting.write_relative("first_last"), setting.rng.randrange(5)
    if manner == 0:
        words = (
            f"I had the pleasure of seeing your patient {sheet.show_name('titled')} in clinic today. {he} was born on {show_born(sheet, 'long')} and carries "
            f"{local.record_label} {sheet.show_number()} with us. {he} was accompanied by {kin}."
        )
    elif manner == 1:
        words = (
            f"CHIEF COMPLAINT: {sheet.show_name('titled')}, a {card.age}-year-old {person} (born {show_born(sheet, 'long_day_first')}), returns to Dr. "
            f"{setting.clinicians[2]} for review. File {sheet.show_number()}."
        )
    elif manner == 2:
        words = (
            f"The records of this institution, kept under number {sheet.show_number()}, show that {sheet.show_name('first_last')}, whose date of birth is given "
            f"as {show_born(sheet, 'long')}, attended on the day above. The person notified was {kin} ({setting.relative_word})."
        )
    elif manner == 3:
        words = (
            f"Thank you for asking me to see {sheet.show_name('first_last')} ({show_ordinal_birth(sheet)}; {sheet.show_number()}), who lives with "
            f"{setting.relative} and is known to my colleague Dr {setting.clinicians[3]}."
        )
    else:
        words = (
            f"Further to my letter to Dr {setting.clinicians[1]}, I reviewed {sheet.show_name('titled')}. For your files: born {show_born(sheet, 'abbreviated')}, "
            f"our number {sheet.show_number()}, insured with {setting.insurer} under {setting.member}."
        )
    return sheet.write_wrapped(60, y + 42, 490, words) + 6


def begin_dictated(sheet: Sheet) -> float:
    """A dictation typed as it was spoken, the family name spelled out."""
    card, setting = sheet.card, sheet.setting
    sheet.write(54, 46, f"Job {invent(sheet, '99999999')}   D: {write_seen(sheet)}   T: {write_seen(sheet, 1)}", 9)
    name, family = sheet.show_name("first_last"), card.write_name("family")
    spelled = "-".join(sign for sign in family.upper() if sign.isalpha())
    words = (
        f"This is Dr. {setting.clinicians[0]} dictating a {setting.title.lower()} on {name}, last name spelled {spelled}, date of birth {show_born(sheet, 'long')}, "
        f"medical record number {sheet.show_number()}. Please send copies to Dr. {setting.clinicians[1]} and to Dr. {setting.clinicians[2]} at "
        f"{card.institution.name}. Date of service {write_day(card.seen, 'long')}."
    )
    return sheet.write_wrapped(54, 68, 500, words) + 10


def follow_dictated(sheet: Sheet) -> float:
    sheet.write(54, 46, f"Job {invent(sheet, '99999999')}   page {sheet.number}", 9)
    return 72


def begin_custodian(sheet: Sheet) -> float:
    """The custodian of records swears to them; a running stamp at the foot of each page is nobody's number."""
    card, setting = sheet.card, sheet.setting
    y = head_ruled(sheet)
    sheet.write_middle(y + 6, "CERTIFICATE OF CUSTODIAN", 12, bold=True)
    words = (
        f"I, {setting.clinicians[3]}, am custodian of the records of {card.institution.name}. The pages annexed are a true copy of the chart of "
        f"{sheet.show_name('first_last_capitals')}, born {show_born(sheet, 'long')}, known to us under number {sheet.show_number()}, released at the request of "
        f"{setting.write_relative('first_last')} and of {setting.insurer} (their file {setting.member}). Sworn {write_day(card.seen, 'long')}."
    )
    y = sheet.write_wrapped(60, y + 28, 490, words) + 8
    sheet.write(60, y, setting.title.upper(), 10.5, bold=True)
    return y + 20


def follow_custodian(sheet: Sheet) -> float:
    sheet.write(60, 46, f"Annex, chart {sheet.show_number()}", 9)
    return 74


def finish_custodian(sheet: Sheet, total: int) -> None:
    sheet.write_right(570, 770, f"REC-{invent(sheet, '9999')}{sheet.number:03}", 9, bold=True)
    sheet.write(54, 770, f"{sheet.number} of {total}", 8)


# Boxes, labels and stickers.


def begin_inpatient(sheet: Sheet) -> float:
    """A discharge summary of the subcontinent: wife of, son of, daughter of; dates of admission and discharge."""
    card, setting = sheet.card, sheet.setting
    sheet.write_middle(44, card.institution.name.upper(), 15, bold=True)
    sheet.write_middle(56, card.institution.address, 8)
    sheet.write_middle(74, setting.title.upper(), 11, bold=True)
    sheet.draw_box(46, 82, 520, 92, weight=1)
    kin = (
        ("D/o" if card.person.sex == "F" else "S/o")
        if not card.person.adult
        else "W/o"
        if card.person.sex == "F"
        else "H/o"
    )
    left = [
        ("Name", f": {sheet.show_name('titled' if card.title else 'first_last')}"),
        (kin, f": {setting.write_relative('first_last')}"),
        ("Age / Sex", f": {card.age} Yrs / {SEXES[card.person.sex]}"),
        ("D.O.B.", f": {show_born(sheet, 'day_first_dashes')}"),
        ("Address", f": {setting.street}"),
        ("Consultant", f": Dr. {setting.clinicians[0]}"),
    ]
    right = [
        ("I.P. No.", f": {sheet.show_number('visit')}"),
        (get_place(sheet).record_label, f": {sheet.show_number()}"),
        ("D.O.A.", f": {write_seen(sheet)}"),
        ("D.O.D.", f": {write_seen(sheet, 5)}"),
        ("Ward/Bed", f": GW-{invent(sheet, '99')}"),
        ("Ref. by", f": Dr. {setting.clinicians[1]}"),
    ]
    list_facts(sheet, 52, 96, left, 68, 290, 14, bold=1)
    list_facts(sheet, 352, 96, right, 72, 210, 14, bold=1)
    return 196


def follow_inpatient(sheet: Sheet) -> float:
    place(
        sheet,
        42,
        [
            (52, 280, f"Name : {sheet.show_name('titled' if sheet.card.title else 'first_last')}"),
            (352, 200, f"I.P. No. : {sheet.show_number('visit')}"),
        ],
        9,
        bold=True,
    )
    return 68


def draw_province(sheet: Sheet) -> float:
    """Labels that end where their values begin, in two columns of a fixed-width face."""
    card, setting, local = sheet.card, sheet.setting, get_place(sheet)
    left = [
        ("PT NAME:", sheet.show_name("last_first_capitals")),
        ("PT DOB:", show_born(sheet)),
        ("PT SEX:", card.person.sex),
        (f"{local.record_label.upper()}:", sheet.show_number()),
    ]
    right = [
        (f"{local.national_label.upper()}:", write_national(sheet)),
        ("ENC #:", sheet.show_number("visit")),
        ("ENC DATE:", write_seen(sheet)),
        ("MRP:", setting.clinicians[0]),
    ]
    list_right(sheet, 140, 44, left, 180)
    list_right(sheet, 414, 44, right, 146)
    sheet.draw_line(88, weight=0.4)
    return 110


def begin_province(sheet: Sheet) -> float:
    y = draw_province(sheet)
    fit(sheet, 60, y, 490, f"{sheet.card.institution.name} / {sheet.setting.title}", 11, bold=True)
    fit(sheet, 60, y + 13, 490, f"cc: {sheet.setting.clinicians[1]}; {sheet.setting.clinicians[2]}", 9)
    return y + 36


def stick(sheet: Sheet, x: float, y: float) -> None:
    card, local = sheet.card, get_place(sheet)
    sheet.draw_box(x, y, 236, 62, weight=0.4)
    fit(sheet, x + 6, y + 14, 224, sheet.show_name("titled_surname" if card.title else "first_last"), 10.5, bold=True)
    fit(sheet, x + 6, y + 27, 224, f"b. {show_born(sheet, 'abbreviated_capitals')}  {card.age}y  {card.person.sex}", 9)
    fit(sheet, x + 6, y + 39, 130, f"{local.record_label} {sheet.show_number()}", 9)
    fit(sheet, x + 6, y + 51, 130, f"{local.national_label} {write_national(sheet)}", 8)
    sheet.draw_bars(x + 146, y + 34, 80, 20)


def begin_two_labels(sheet: Sheet) -> float:
    """Two of the same label side by side, as torn off the sheet of labels."""
    stick(sheet, 54, 26)
    stick(sheet, 322, 26)
    sheet.write(54, 108, sheet.setting.title, 14, bold=True)
    fit(sheet, 54, 122, 504, f"{sheet.card.institution.name}   {write_seen(sheet)}   Dr {sheet.setting.clinicians[0]}", 9)  # fmt: skip
    return 146


def follow_two_labels(sheet: Sheet) -> float:
    stick(sheet, 322, 26)
    return 110


def draw_corner_label(sheet: Sheet) -> None:
    """A small label at the upper right: short words before each figure."""
    card, setting = sheet.card, sheet.setting
    x, y = 372.0, 22.0
    sheet.page.draw_rect((x, y, x + 204, y + 72), color=(0, 0, 0), width=0.5, radius=0.1)
    fit(sheet, x + 8, y + 15, 190, sheet.show_name("last_first_capitals"), 10.5, bold=True)
    fit(
        sheet,
        x + 8,
        y + 28,
        190,
        f"{card.write_label('DOB')}: {show_born(sheet, 'mdy_short')}  {card.age}Y  {card.person.sex}",
        9,
    )
    fit(sheet, x + 8, y + 40, 190, f"MR#: {sheet.show_number()}  ADM: {write_seen(sheet)}", 9)
    fit(sheet, x + 8, y + 52, 190, f"AC#: {sheet.show_number('account')}", 9)
    fit(sheet, x + 8, y + 64, 190, f"ATT: {write_clinician(setting.clinicians[0])}", 9)


def begin_corner_label(sheet: Sheet) -> float:
    draw_corner_label(sheet)
    sheet.write(42, 44, sheet.setting.title.upper(), 13, bold=True)
    fit(sheet, 42, 58, 310, sheet.card.institution.name, 10)
    fit(sheet, 42, 70, 310, sheet.card.institution.address, 8)
    sheet.write(42, 90, "[ ] Chart copy   [x] Physician copy   [ ] Billing", 8)
    return 122


def follow_corner_label(sheet: Sheet) -> float:
    draw_corner_label(sheet)
    sheet.write(42, 44, f"{sheet.setting.title.upper()} (cont.)", 10)
    return 120


# Feet.


def finish_imprint(sheet: Sheet, total: int) -> None:
    """The field for the imprint of a plate at the lower left of each page."""
    sheet.draw_box(46, 716, 520, 56, weight=0.8)
    sheet.page.draw_line((330, 716), (330, 772), width=0.8)
    sheet.write(50, 724, "PATIENT'S IDENTIFICATION (typed or imprinted)", 5.5)
    fit(sheet, 54, 739, 270, show_tight_name(sheet), 10.5, face="mono")
    fit(sheet, 54, 752, 270, f"{show_born(sheet, 'abbreviated_capitals')}  {sheet.card.person.sex}", 10, face="mono")
    fit(sheet, 54, 765, 270, f"REG {sheet.show_number()}", 10, face="mono")
    sheet.write(334, 724, "MEDICAL RECORD", 5.5)
    fit(sheet, 338, 742, 220, sheet.setting.title.upper(), 10, bold=True)
    sheet.write(338, 762, f"Form 509-{total}   page {sheet.number}", 8)


def begin_imprint(sheet: Sheet) -> float:
    day, author, _ = get_roles(sheet)
    sheet.draw_box(46, 30, 520, 34, weight=0.8)
    sheet.page.draw_line((330, 30), (330, 64), width=0.8)
    sheet.write(50, 39, "FACILITY", 5.5)
    fit(sheet, 54, 56, 270, sheet.card.institution.name, 11, bold=True)
    sheet.write(334, 39, f"{day} / {author}".upper(), 5.5)
    fit(sheet, 338, 56, 220, f"{write_seen(sheet)}   {sheet.setting.clinicians[0]}", 10)
    return 88


def begin_typed_foot(sheet: Sheet) -> float:
    sheet.write_middle(48, sheet.card.institution.name, 12)
    sheet.write_middle(62, sheet.setting.title.upper(), 12, bold=True)
    return 90


def finish_typed_foot(sheet: Sheet, total: int) -> None:
    """The typist's block below the text: label, tab, value."""
    facts = [
        ("NAME:", sheet.show_name("last_first_capitals")),
        ("HOSP #:", sheet.show_number()),
        ("BIRTH:", show_born(sheet, "mdy_two")),
        ("PHYS:", f"{sheet.setting.clinicians[0].upper()}, M.D."),
        ("DATE:", f"{write_seen(sheet)}     PAGE {sheet.number} OF {total}"),
    ]
    list_facts(sheet, 60, 716, facts, 60, 480, 12)


def draw_stay(sheet: Sheet) -> float:
    """Dates before the name: admission, discharge and birth in one row of cells."""
    setting, local = sheet.setting, get_place(sheet)
    rows = (
        (
            (110, "Admission", write_seen(sheet)),
            (110, "Discharge", write_seen(sheet, 3)),
            (120, "Birth", show_born(sheet)),
            (164, local.record_label, sheet.show_number()),
        ),
        (
            (110, "Ward", f"Station {invent(sheet, '99')}"),
            (110, "Case", sheet.show_number("visit")),
            (284, "Patient", sheet.show_name("last_first")),
        ),
        (
            (220, "Attending", setting.clinicians[0]),
            (284, "Contact person", setting.write_relative("first_last")),
        ),
    )
    y = 28.0
    for row in rows[: 3 if sheet.number == 1 else 2]:
        x = 54.0
        for width, label, text in row:
            sheet.draw_box(x, y, width, 24, weight=0.4)
            sheet.write(x + 3, y + 8, label, 6.5)
            fit(sheet, x + 3, y + 20, width - 6, text, 9.5)
            x += width
        y += 24
    return y + 24


def begin_stay(sheet: Sheet) -> float:
    y = draw_stay(sheet)
    fit(sheet, 54, y, 504, f"{sheet.setting.title}, {sheet.card.institution.name}", 12, bold=True)
    return y + 24


def begin_foot_cells(sheet: Sheet) -> float:
    y = head_mark(sheet)
    day, author, asked = get_roles(sheet)
    setting = sheet.setting
    facts = [(day, write_seen(sheet)), (author, setting.clinicians[0]), (asked, setting.clinicians[1])]
    return list_facts(sheet, 54, y + 4, facts, 90, 400) + 14


def finish_foot_cells(sheet: Sheet, total: int) -> None:
    """A thin band at the foot with the labels in brackets behind the values."""
    tint(sheet, 0, 746, WIDTH, 22, (0.92, 0.92, 0.92))
    text = (
        f"{sheet.show_name('first_last')} (patient)   {show_born(sheet, 'iso')} (born)   {sheet.show_number()} ({get_place(sheet).record_label})   "
        f"{sheet.show_number('account')} (billing acct)   {sheet.number}/{total}"
    )
    fit(sheet, 40, 760, 532, text, 9)


# Laboratories.


def begin_cumulative_laboratory(sheet: Sheet) -> float:
    card, setting, local = sheet.card, sheet.setting, get_place(sheet)
    sheet.write(54, 44, f"{card.institution.name.upper()} CUMULATIVE PATHOLOGY", 10.5, bold=True)
    y = 62.0
    for left, right in (
        (f"NAME    {show_commaless_name(sheet)}", f"{local.record_label.upper()}  {sheet.show_number()}"),
        (f"DOB/SEX {show_born(sheet, 'abbreviated_capitals')} {card.person.sex}", f"LAB NO  {sheet.show_number('accession')}"),
        (f"ADDR    {setting.street.upper()}", f"COLL    {write_seen(sheet)} 0715"),
        (f"REQ DR  {setting.clinicians[0].upper()}", f"COPY    {setting.clinicians[1].upper()}"),
    ):  # fmt: skip
        place(sheet, y, [(54, 284, left), (350, 208, right)], 9)
        y += 12
    sheet.draw_line(y - 4, weight=0.4)
    return y + 14


def begin_sender_laboratory(sheet: Sheet) -> float:
    """A laboratory of the Continent: the sender's address first, then the patient in one line."""
    card, setting, local = sheet.card, sheet.setting, get_place(sheet)
    fit(sheet, 54, 46, 504, f"Medical Laboratory {card.institution.name}", 12, bold=True)
    for row, line in enumerate(
        (f"Sender: Dr {setting.clinicians[1]} (no. {invent(sheet, '99999')})", setting.street, "Ward 2")
    ):
        sheet.write(54, 68 + row * 12, line, 9)
    facts = [
        ("Order", sheet.show_number("accession")),
        ("Receipt", f"{write_day(card.seen, 'dots')} 09:30"),
        ("Report", f"{write_day(card.seen + timedelta(days=1), 'dots')} 16:10"),
    ]
    list_facts(sheet, 400, 68, facts, 52, 158, 12)
    born = show_born(sheet, "dots" if local.day_style != "mdy" else "mdy")
    tint(sheet, 54, 106, 504, 18, (0.9, 0.9, 0.96))
    fit(sheet, 58, 118, 496, f"{sheet.show_name('last_first')}   born {born}   {card.person.sex.lower()}   {local.record_label} {sheet.show_number()}", 10, bold=True)  # fmt: skip
    return 150


def begin_office_laboratory(sheet: Sheet) -> float:
    """The laboratory of a doctors' office: the guarantor's line among the patient's."""
    card, setting = sheet.card, sheet.setting
    y = head_ruled(sheet)
    facts = [
        ("Patient:", f"{sheet.show_name('first_last')}   ({card.person.sex})"),
        ("Birth date:", show_born(sheet, "mdy_short")),
        ("Chart:", sheet.show_number()),
        ("Guarantor:", f"{setting.write_relative()}   b. {write_day(setting.relative_born, get_place(sheet).day_style)}"),
        ("Drawn by:", f"{setting.clinicians[3]}, {write_seen(sheet)}"),
        ("Provider:", setting.clinicians[0]),
    ]  # fmt: skip
    return list_facts(sheet, 54, y, facts, 70, 500, 12, bold=1) + 14


def begin_chain_laboratory(sheet: Sheet) -> float:
    """A chain of laboratories: name in capitals behind a colon, the code of the collecting centre, a square to scan."""
    card, setting = sheet.card, sheet.setting
    y = head_plain(sheet) - 4
    squares = random.Random(card.account)
    for at in range(144):
        if squares.random() < 0.5:
            tint(sheet, 510 + at % 12 * 4, 24 + at // 12 * 4, 4, 4, (0, 0, 0))
    sheet.draw_line(y + 2)
    left = [
        ("Name", f":  {show_titled_capitals(sheet)}"),
        ("Birth / Age", f":  {show_born(sheet, 'abbreviated')} / {card.age} Years"),
        ("Gender", f":  {SEXES[card.person.sex]}"),
        ("Ref. By", f":  DR. {setting.clinicians[1].upper()}"),
    ]
    right = [
        ("Lab No.", f":  {sheet.show_number('accession')}"),
        ("Registration", f":  {sheet.show_number()}"),
        ("Collected", f":  {write_day(card.seen, 'abbreviated')} 7:40 am"),
        ("Centre code", f":  {invent(sheet, 'C9999')}"),
    ]
    list_facts(sheet, 54, y + 16, left, 64, 290)
    list_facts(sheet, 360, y + 16, right, 70, 198)
    sheet.draw_line(y + 60)
    return y + 82


def follow_chain_laboratory(sheet: Sheet) -> float:
    place(
        sheet,
        44,
        [
            (54, 280, f"Name :  {show_titled_capitals(sheet)}"),
            (360, 198, f"Lab No. :  {sheet.show_number('accession')}"),
        ],
    )
    return 70


def begin_cover(sheet: Sheet) -> float:
    card, setting = sheet.card, sheet.setting
    sheet.draw_box(60, 60, 492, 40, weight=2)
    sheet.write_middle(86, "FAX MESSAGE", 20, bold=True)
    facts = [
        ("To", f"{setting.clinicians[1]}"),
        ("From", f"{setting.clinicians[3]}, {card.institution.name}"),
        ("Re", f"{sheet.show_name('first_last')} (born {show_born(sheet, 'long')})"),
        ("Reference", sheet.show_number()),
        ("Date", write_seen(sheet)),
        ("Call back", "555 0166"),
    ]
    return list_facts(sheet, 72, 134, facts, 80, 470, 24, bold=1) + 20


LAYOUTS = (
    Layout("numbered_name", "banner", begin_numbered_name, draw_numbered_name, face="sans", size=9.5, every_page=True),
    Layout("result_foot", "footer", begin_result, lambda sheet: 60, finish_result, bottom=716, every_page=True),
    Layout("registration_box", "printer", begin_registration, follow_registration, face="mono", size=9),
    Layout("care_banner", "banner", begin_care_banner, draw_care_banner, face="sans", size=9.5, every_page=True),
    Layout("referral_sections", "form", begin_referral, None, finish_referral, face="sans", size=9.5),
    Layout("headings", "headings", begin_headings, None, finish_headings, face="sans", size=9.5),
    Layout("emergency_front", "panels", begin_emergency, follow_emergency, face="sans", size=9.5, every_page=True),
    Layout("vertical_table", "grid", begin_vertical_table, None, finish_vertical_table, size=10),
    Layout("typed_on_dots", "form", begin_dotted_form, follow_dotted_form, face="mono", size=9, every_page=True),
    Layout("comb_boxes", "form", begin_comb_form, draw_comb_form, face="sans", size=9.5, every_page=True),
    Layout(
        "claimant",
        "lines",
        begin_claimant,
        lambda sheet: 80,
        finish_claimant,
        size=11,
        every_page=True,
        grown_only=True,
    ),
    Layout("employee", "columns", begin_employee, None, finish_employee, face="sans", every_page=True, grown_only=True),
    Layout("resident", "columns", begin_resident, None, finish_resident, size=10, every_page=True, grown_only=True),
    Layout("portal_page", "title", begin_portal, follow_portal, finish_portal, face="sans"),
    Layout("client_card", "sticker", begin_client_card, follow_client_card, face="sans", size=9.5, every_page=True),
    Layout("case_number", "columns", begin_case, follow_case, every_page=True),
    Layout("specimen_strokes", "printer", begin_specimen, follow_specimen, face="mono", size=9),
    Layout("individual_tested", "panels", begin_individual, follow_individual, face="sans", size=9.5, every_page=True),
    Layout(
        "reading_service",
        "printer",
        begin_reading,
        lambda s: draw_reading(s) + 16,
        face="mono",
        size=9,
        every_page=True,
    ),
    Layout("team_list", "lines", begin_team, lambda sheet: 66, finish_team, size=11, every_page=True),
    Layout("run_on_heading", "letter", begin_run_on, follow_run_on, size=11),
    Layout("patient_line", "letter", begin_patient_line, follow_patient_line, size=11),
    Layout("right_block", "letter", begin_right_block, None, finish_right_block, every_page=True),
    Layout("birth_star", "letter", begin_asterisk, lambda sheet: 72, finish_asterisk, face="sans", every_page=True),
    Layout("named_in_text", "text", begin_named_in_text, None, size=11, grown_only=True),
    Layout("dictated_opening", "text", begin_dictated, follow_dictated, face="mono", size=9.5),
    Layout("custodian", "text", begin_custodian, follow_custodian, finish_custodian, size=11),
    Layout("inpatient_summary", "box", begin_inpatient, follow_inpatient, face="sans", size=9.5),
    Layout("province_block", "lines", begin_province, draw_province, face="mono", size=9, every_page=True),
    Layout("two_labels", "sticker", begin_two_labels, follow_two_labels, face="sans", size=9.5, every_page=True),
    Layout("corner_label", "sticker", begin_corner_label, follow_corner_label, face="sans", every_page=True),
    Layout("imprint_field", "footer", begin_imprint, None, finish_imprint, bottom=698, every_page=True),
    Layout(
        "typed_foot",
        "footer",
        begin_typed_foot,
        None,
        finish_typed_foot,
        face="mono",
        size=9.5,
        bottom=692,
        every_page=True,
    ),
    Layout("stay_cells", "grid", begin_stay, draw_stay, face="sans", size=9.5, every_page=True),
    Layout("foot_band", "footer", begin_foot_cells, None, finish_foot_cells, face="sans", every_page=True),
    Layout("cumulative_laboratory", "laboratory", begin_cumulative_laboratory, face="mono", size=9, body="laboratory"),
    Layout("sender_laboratory", "laboratory", begin_sender_laboratory, face="sans", size=9.5, body="laboratory"),
    Layout("office_laboratory", "laboratory", begin_office_laboratory, body="laboratory"),
    Layout(
        "chain_laboratory",
        "laboratory",
        begin_chain_laboratory,
        follow_chain_laboratory,
        face="sans",
        body="laboratory",
    ),
)
COVER = Layout("cover_message", "cover", begin_cover, face="serif", size=11.5, body="cover")
COVER_TEXT = (
    "The pages that follow were asked for by telephone.",
    "They are meant for the addressee alone. Whoever receives them in error is asked to call back and to destroy them.",
    "Please confirm receipt.",
)
