"""The half `d`: persons, institutions and page layouts of many English-speaking countries."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pymupdf

from .drawing import FACES, HEIGHT, WIDTH, Layout, Sheet
from .persons import Pool, write_day

POOL = Pool(
    women=(
        ("Imogen", "Immy"),
        ("Philippa", "Pippa"),
        ("Bronwyn", "Bron"),
        ("Siobhan", "Shiv"),
        ("Aoife", "Effie"),
        ("Thandiwe", "Thandi"),
        ("Lakshmi", "Lucky"),
        ("Sunita", "Suni"),
        ("Noor", "Nouri"),
        ("Khadija", "Khadi"),
        ("Georgina", "Georgie"),
        ("Winifred", "Winnie"),
        ("Marguerite", "Margot"),
        ("Chloé", "Clo"),
        ("Tabitha", "Tabby"),
        ("Rosalind", "Roz"),
        ("Harriet", "Hattie"),
        ("Eleanor", "Ellie"),
        ("Gwendolyn", "Gwen"),
        ("Oluwaseun", "Seun"),
        ("Xiu Ying", "Ying"),
        ("Anahera", "Ana"),
        ("Millicent", "Millie"),
        ("Beatrix", "Bea"),
    ),
    men=(
        ("Alistair", "Ali"),
        ("Benjamin", "Benny"),
        ("Cormac", "Mac"),
        ("Declan", "Dec"),
        ("Gareth", "Gaz"),
        ("Sipho", "Sips"),
        ("Venkatesh", "Venky"),
        ("Harpreet", "Harry"),
        ("Abdulrahman", "Abdul"),
        ("Khalid", "Khal"),
        ("Nathaniel", "Nate"),
        ("Christopher", "Kit"),
        ("Étienne", "Steve"),
        ("Maxwell", "Max"),
        ("Zachary", "Zach"),
        ("Barnaby", "Barney"),
        ("Rangi", "Ra"),
        ("Jean-Paul", "JP"),
        ("Tobias", "Toby"),
        ("Augustine", "Gus"),
        ("Wei Liang", "Liang"),
        ("Pieter", "Piet"),
        ("Dominic", "Dom"),
        ("Solomon", "Sol"),
    ),
    unisex=("Morgan", "Quinn", "Ashley", "Kiran"),
    families=(
        "Ashworth",
        "Pemberton-Gray",
        "Llewellyn",
        "O'Shaughnessy",
        "MacGillivray",
        "Ní Dhomhnaill",
        "Naidoo",
        "van der Merwe",
        "Dlamini",
        "Botha",
        "Chatterjee",
        "Subramaniam",
        "Kaur",
        "Deshpande",
        "Al Mansoori",
        "bin Rashid",
        "Al-Haddad",
        "Tremblay",
        "Bélanger",
        "St. Pierre",
        "Wong",
        "Li",
        "Papadopoulos",
        "Ngata",
        "Te Whata",
        "Fairweather",
        "Cholmondeley",
        "Birtwistle",
        "Ogilvie",
        "Trevithick",
        "Gallagher",
        "Rowbotham",
        "D'Souza",
        "Fernandes",
        "Wickramasinghe",
        "Oyelaran",
        "Nkosi",
        "Bright",
        "Day",
        "Street",
        "Ward",
        "Bishop",
        "Cross",
        "Vance",
        "Kowhai",
        "Zielinski",
    ),
    clinicians=(
        "Hamish Duthie",
        "Orla Brannigan",
        "Vikram Kulkarni",
        "Celeste Marchand",
        "Bruce Tolliver",
        "Zanele Mokoena",
        "Layla Haddadin",
        "Edmund Thackeray",
        "Phoebe Arkwright",
        "Neil Sandoval",
        "Ingrid Aaltonen",
        "Desmond Kwok",
        "Marisol Quintero",
        "Padraig Keane",
        "Tessa Wainwright",
        "Gordon Ruddock",
    ),
    institutions=(
        ("St Aldhelm's NHS Foundation Trust", "Priory Way, Aldhelm BA9 4ZQ   Tel 01632 960 411", "Q9999999"),
        ("Castlebrae Royal Infirmary", "14 Infirmary Brae, Castlebrae EH90 2XX   Tel 0131 496 0712", "9999999Z"),
        ("Wattle Creek District Hospital", "211 Bourke Road, Wattle Creek NSW 2999   Ph (02) 5550 4417", "9999999"),
        ("Corio Heads Specialist Centre", "8 Esplanade, Corio Heads VIC 3999   Ph (03) 5550 1120", "CH-999999"),
        ("Kawartha Shores Health Centre", "400 Lock Street N, Lindenby ON K9Z 1A1   (705) 555-0163", "KS99999999"),
        ("Fraser Gate Regional Hospital", "1515 Cedar Bluff Dr, Fraser Gate BC V0Z 9Z9   (604) 555-0128", "FG0999999"),
        ("Galtee University Hospital", "Clonmel Road, Galtee, Co. Tipperary   Tel 062 555 901", "9999999"),
        (
            "Sahyadri Heights Multispeciality Hospital",
            "Plot 7, Ring Road, Pune 411099   Tel 020 5550 2211",
            "SHM.99999999",
        ),
        ("Al Rimal Specialist Hospital", "Corniche Street, Abu Dhabi, P.O. Box 99041   Tel 02 555 0190", "H00999999"),
        ("Drakenzicht Private Hospital", "3 Berg Street, Drakenzicht 3299   Tel 033 555 0147", "DZ9999999"),
        ("Kauri Coast Health", "77 Harbour Terrace, Kauri Point 0999   Ph 09 555 0188", "99999999"),
        ("Tidewater Regional Cancer Institute", "900 Inlet Pkwy, Tidewater, VA 23999   804.555.0137", "T99-99999"),
        ("Piedmont Crossing Family Practice", "12 Depot St, Suite B, Crossing, NC 27999   919-555-0121", "9999999"),
        ("Mesa Verde Medical Pavilion", "5800 W. Canyon Blvd, Mesa Seca, AZ 85999   (480) 555-0175", "000999999"),
    ),
    insurers=(
        "Southern Cross Mutual",
        "Discovery Bay Medical Scheme",
        "Daman Shield",
        "Laya Corrib",
        "Carolina Trust HMO",
    ),
    streets=("Harbour View", "Bluegum Crescent", "Station Parade", "Kildare Terrace", "Sector 14", "Protea Close"),
)

TITLES = {
    "Clinical Note": ("Outpatient Clinic Letter", "Progress Notes", "Ambulatory Care Summary", "Specialist Review"),
    "Radiology Report": ("Medical Imaging Report", "Department of Radiology - Result"),
    "Pathology Report": ("Histopathology Report", "Anatomical Pathology Final Report"),
    "Genomic Report": ("Molecular Genetics Report", "Somatic Variant Report"),
    "Other": ("Health Information Services", "Patient Record Extract"),
}
SIGNATURES = (
    "Dr {}, Consultant. Authorised {}",
    "Yours sincerely, {} MBBS FRCP   ({})",
    "Verified by {} MB BCh BAO on {}",
    "Signed: {}, DO   {}",
)
LABORATORY_SIGNATURE = "Validated by: {}, FRCPath   {}"
FAX_SENDERS = ("TX: MEDICAL RECORDS DESK 2", "KAWARTHA SHORES HC - HRD", "DR E THACKERAY ROOMS")
TESTS = (
    ("Haemoglobin", "g/L", 115, 165),
    ("WCC", "x10^9/L", 4.0, 11.0),
    ("Platelets", "x10^9/L", 150, 400),
    ("Haematocrit", "L/L", 0.4, 0.5),
    ("Mean Cell Volume", "fL", 80, 100),
    ("Neutrophils (abs)", "x10^9/L", 2.0, 7.5),
    ("Sodium", "mmol/L", 133, 146),
    ("Potassium", "mmol/L", 3.5, 5.3),
    ("Urea", "mmol/L", 2.5, 7.8),
    ("Creatinine", "umol/L", 45, 104),
    ("Adjusted Calcium", "mmol/L", 2.2, 2.6),
    ("Phosphate", "mmol/L", 0.8, 1.5),
    ("Total Bilirubin", "umol/L", 2, 21),
    ("Alk Phos", "U/L", 30, 130),
    ("Gamma GT", "U/L", 5, 50),
    ("C-Reactive Protein", "mg/L", 1, 5),
    ("Ferritin", "ug/L", 15, 300),
    ("TSH", "mU/L", 0.3, 4.2),
)


@dataclass(frozen=True)
class Country:
    """How a country names its numbers and writes its days."""

    national_label: str
    national_shape: str
    record_label: str
    day_style: str


ENGLAND = Country("NHS No", "999 999 9999", "Hospital No", "abbreviated")
SCOTLAND = Country("CHI", "D9999", "Unit No", "day_first")
AUSTRALIA = Country("Medicare No", "2999 99999 9", "URN", "day_first")
ONTARIO = Country("HCN", "9999-999-999-XK", "MRN", "iso")
COLUMBIA = Country("PHN", "9999 999 999", "MRN", "year_first_abbreviated")
IRELAND = Country("IHI", "99999999999999", "Chart No", "day_first")
INDIA = Country("ABHA No", "99-9999-9999-9999", "UHID", "day_first_dashes")
EMIRATES = Country("Emirates ID", "784-B-9999999-9", "File No", "abbreviated")
SOUTH_AFRICA = Country("ID No", "Y99990899", "Folio No", "year_first")
NEW_ZEALAND = Country("NHI", "ZKC9999", "Clinic No", "day_first")
STATES = Country("SSN", "XXX-XX-9999", "Med Rec #", "mdy")
COUNTRIES = dict(
    zip(
        (name for name, _, _ in POOL.institutions),
        (
            ENGLAND,
            SCOTLAND,
            AUSTRALIA,
            AUSTRALIA,
            ONTARIO,
            COLUMBIA,
            IRELAND,
            INDIA,
            EMIRATES,
            SOUTH_AFRICA,
            NEW_ZEALAND,
            STATES,
            STATES,
            STATES,
        ),
        strict=True,
    )
)
MONTH_FIRST = ("mdy", "mdy_short", "mdy_two", "dashes")
SEXES = {"F": "Female", "M": "Male"}


def get_country(sheet: Sheet) -> Country:
    return COUNTRIES[sheet.card.institution.name]


def write_national(sheet: Sheet) -> str:
    """Write the national number: the same for a person in every document of a country."""
    person, country = sheet.card.person, get_country(sheet)
    rng = random.Random(f"{person.born} {person.family} {country.national_label}")
    places = {"D": f"{person.born:%d%m%y}", "Y": f"{person.born:%y%m%d}", "B": str(person.born.year)}
    return "".join(str(rng.randint(0, 9)) if sign == "9" else places.get(sign, sign) for sign in country.national_shape)


def show_born(sheet: Sheet, style: str = "") -> str:
    """Show the birth date in the style of the country, unless a style is asked for.

    Month before day in figures is for the States only. Day before month in figures is unambiguous only if the day is above 12;
    else the month is a word.
    """
    card, country = sheet.card, get_country(sheet)
    style = style or country.day_style
    if country is not STATES:
        if style in MONTH_FIRST:
            style = country.day_style
        if card.birth_style in MONTH_FIRST:
            card.birth_style = "long_day_first"
    if style.startswith("day_first") and card.person.born.day <= 12:
        style = "abbreviated"
    return sheet.show_birth(style)


def write_seen(sheet: Sheet) -> str:
    return write_day(sheet.card.seen, get_country(sheet).day_style)


def note_name(sheet: Sheet, name: str) -> str:
    sheet.printed_name = sheet.printed_name or name
    sheet.printed.append(name)
    return name


def show_tight_name(sheet: Sheet) -> str:
    """Show the name as LAST,FIRST MIDDLE without a space behind the comma."""
    return note_name(sheet, sheet.card.write_name("last_first_capitals").replace(", ", ","))


def show_surname_capitals(sheet: Sheet) -> str:
    """Show the name as SURNAME, Given (Title)."""
    name = note_name(sheet, f"{sheet.card.write_name('family').upper()}, {sheet.card.write_name('given')}")
    return f"{name} ({sheet.card.title.rstrip('.')})" if sheet.card.title else name


def show_given_surname_capitals(sheet: Sheet) -> str:
    return note_name(sheet, f"{sheet.card.write_name('given')} {sheet.card.write_name('family').upper()}")


def fit(
    sheet: Sheet, x: float, y: float, width: float, text: str, size: float, bold: bool = False, face: str | None = None
) -> None:
    """Write one line, smaller if it is too wide for its place."""
    font = FACES[face or sheet.face][bold]
    size = min(size, size * width / max(pymupdf.get_text_length(text, fontname=font, fontsize=size), 1))
    sheet.write(x, y, text, size, bold, face)


def write_gray(sheet: Sheet, x: float, y: float, text: str, size: float = 7) -> None:
    sheet.page.insert_text((x, y), text, fontname=FACES[sheet.face][0], fontsize=size, color=(0.35, 0.35, 0.35))


def list_pairs(
    sheet: Sheet, x: float, y: float, pairs: list[tuple[str, str]], gap: float, width: float, step: float = 12.5
) -> float:
    """Write labels in bold with their texts to the right; returns the y below."""
    for label, text in pairs:
        sheet.write(x, y, label, 8.5, bold=True)
        fit(sheet, x + gap, y, width - gap, text, 9)
        y += step
    return y


def head_middle(sheet: Sheet) -> float:
    sheet.write_middle(48, sheet.card.institution.name.upper(), 13, bold=True)
    sheet.write_middle(61, sheet.card.institution.address, 8)
    sheet.write_middle(78, sheet.setting.title, 11, bold=True)
    return 92


def head_right(sheet: Sheet) -> float:
    name, _, rest = sheet.card.institution.address.partition("   ")
    sheet.write_right(552, 48, sheet.card.institution.name, 13, bold=True)
    sheet.write_right(552, 61, name, 8)
    sheet.write_right(552, 71, rest, 8)
    return 90


def head_left(sheet: Sheet) -> float:
    sheet.write(54, 46, sheet.card.institution.name, 12, bold=True)
    sheet.write(54, 58, sheet.card.institution.address, 7.5)
    sheet.write(54, 76, sheet.setting.title.upper(), 11, bold=True)
    return 90


# Banner lines without labels.


def draw_bare_pipes(sheet: Sheet) -> float:
    card = sheet.card
    words = (
        sheet.show_name("last_first"),
        SEXES[card.person.sex],
        show_born(sheet, "iso"),
        f"{card.age} y",
        sheet.show_number(),
    )
    fit(sheet, 54, 42, 504, "  |  ".join(words), 10, bold=True)
    sheet.draw_line(48, weight=1.4)
    return 70


def begin_bare_pipes(sheet: Sheet) -> float:
    draw_bare_pipes(sheet)
    sheet.write(54, 68, sheet.card.institution.name, 12)
    sheet.write_right(558, 68, sheet.setting.title, 10, bold=True)
    sheet.write(
        54,
        82,
        f"Encounter {sheet.show_number('visit')}  |  {write_seen(sheet)}  |  Dr {sheet.setting.clinicians[0]}",
        8.5,
    )
    return 108


def draw_bare_slashes(sheet: Sheet) -> float:
    words = (
        sheet.show_name("first_last_capitals"),
        show_born(sheet, "abbreviated"),
        sheet.card.person.sex,
        sheet.show_number(),
    )
    sheet.write_right(558, 40, " / ".join(words), 8.5)
    return 66


def begin_bare_slashes(sheet: Sheet) -> float:
    draw_bare_slashes(sheet)
    sheet.write(54, 70, sheet.card.institution.name, 15, bold=True)
    sheet.write(54, 84, sheet.card.institution.address, 8)
    sheet.write(54, 104, f"{sheet.setting.title}, {write_seen(sheet)}. Copy to: Dr {sheet.setting.clinicians[1]}", 9.5)
    return 128


def begin_dashes(sheet: Sheet) -> float:
    card, setting = sheet.card, sheet.setting
    y = head_left(sheet) + 4
    ward = setting.rng.choice(("Ward 4B", "Acute Medical Unit", "Day Oncology", "Bed 17, Cardiac"))
    line = f"{sheet.show_name('first_last_capitals')} - {show_born(sheet)} - {card.person.sex} - {get_country(sheet).record_label} {sheet.show_number()} - {ward}"
    fit(sheet, 54, y + 6, 504, line, 10, bold=True)
    fit(
        sheet,
        54,
        y + 20,
        504,
        f"Consultant: {setting.clinicians[0]} - Admitted {write_seen(sheet)} - Episode {sheet.show_number('visit')}",
        9,
    )
    sheet.draw_line(y + 28)
    return y + 48


def finish_dashes(sheet: Sheet, total: int) -> None:
    if sheet.number > 1:
        fit(
            sheet,
            54,
            46,
            420,
            f"{sheet.show_name('first_last_capitals')} - {show_born(sheet)} - {sheet.show_number()}",
            9,
        )
    sheet.write_right(558, 46 if sheet.number > 1 else 764, f"{sheet.number} of {total}", 8)


def draw_brackets(sheet: Sheet) -> float:
    card = sheet.card
    line = f"{sheet.show_name('last_first')} ({card.person.sex}, {card.age}y, b. {show_born(sheet, 'long_day_first')}) #{sheet.show_number()}"
    sheet.page.draw_rect((0, 20, WIDTH, 44), color=None, fill=(0.88, 0.92, 0.9))
    fit(sheet, 40, 36, 440, line, 10, bold=True)
    sheet.write_right(580, 36, f"p. {sheet.number}", 8)
    return 72


def begin_brackets(sheet: Sheet) -> float:
    y = draw_brackets(sheet)
    sheet.write(40, y, sheet.setting.title, 14, bold=True)
    sheet.write(40, y + 15, f"{sheet.card.institution.name}  {sheet.card.institution.address}", 8)
    fit(
        sheet, 40, y + 28, 520, f"{write_seen(sheet)}, {sheet.setting.clinicians[0]} / {sheet.setting.clinicians[1]}", 9
    )
    return y + 52


def draw_semicolons(sheet: Sheet) -> float:
    line = f"Pt: {show_tight_name(sheet)}; Birthdate: {show_born(sheet, 'mdy_short')}; Chart #: {sheet.show_number()}; PCP: {sheet.setting.clinicians[1]}"
    fit(sheet, 60, 44, 492, line, 9)
    return 72


def begin_semicolons(sheet: Sheet) -> float:
    draw_semicolons(sheet)
    sheet.write_middle(72, sheet.card.institution.name, 12, bold=True)
    sheet.write_middle(86, sheet.card.institution.address, 8)
    sheet.write(60, 108, f"{sheet.setting.title.upper()}   DATE: {write_seen(sheet)}", 10, bold=True)
    return 130


# Grids with and without rules.


def draw_grid(
    sheet: Sheet, y: float, rows: list[list[tuple[str, str]]], x: float = 54, width: float = 504, label: float = 80
) -> float:
    """Draw a ruled table whose label cells are shaded, each with its value cell at the right."""
    for row in rows:
        step = width / len(row)
        for column, (name, text) in enumerate(row):
            left = x + column * step
            sheet.draw_box(left, y, label, 17, shade=0.9, weight=0.5)
            sheet.draw_box(left + label, y, step - label, 17, weight=0.5)
            fit(sheet, left + 3, y + 12, label - 6, name, 8, bold=True)
            fit(sheet, left + label + 4, y + 12, step - label - 8, text, 9)
        y += 17
    return y


def begin_ruled_grid(sheet: Sheet) -> float:
    card, setting, country = sheet.card, sheet.setting, get_country(sheet)
    y = head_middle(sheet)
    family, given = sheet.show_split_name()
    rows = [
        [("Surname", family), ("Forename(s)", given)],
        [("Date of Birth", show_born(sheet)), ("Sex / Age", f"{SEXES[card.person.sex]} / {card.age} yrs")],
        [(country.record_label, sheet.show_number()), (country.national_label, write_national(sheet))],
        [("Consultant", f"Dr {setting.clinicians[0]}"), ("GP", f"Dr {setting.clinicians[1]}, {setting.street}")],
        [
            ("Next of kin", f"{setting.write_relative('first_last')} ({setting.relative_word})"),
            ("Seen", write_seen(sheet)),
        ],
    ]
    return draw_grid(sheet, y, rows) + 22


def follow_ruled_grid(sheet: Sheet) -> float:
    rows = [
        [("Patient", show_surname_capitals(sheet)), ("D.O.B.", show_born(sheet))],
        [("Hosp. No.", sheet.show_number()), ("Sheet", str(sheet.number))],
    ]
    return draw_grid(sheet, 30, rows, label=54) + 24


def begin_label_under_line(sheet: Sheet) -> float:
    """A paper form: the value on a line, its label under the line."""
    card, setting = sheet.card, sheet.setting
    y = head_middle(sheet) + 22
    family, given = sheet.show_split_name()
    rows = (
        (
            (54, 150, family, "Family name"),
            (214, 170, given, "Given name(s)"),
            (394, 164, show_born(sheet, "month_capitals"), "Birth date"),
        ),
        (
            (54, 150, sheet.show_number(), "Health record number"),
            (214, 170, f"{setting.street}", "Street address"),
            (394, 60, card.person.sex, "Sex"),
            (464, 94, write_seen(sheet), "Date of visit"),
        ),
        (
            (54, 330, f"Dr {setting.clinicians[0]}", "Responsible practitioner"),
            (394, 164, f"{setting.insurer} {setting.member}", "Fund and member number"),
        ),
    )
    for row in rows:
        for x, width, text, label in row:
            fit(sheet, x + 3, y, width - 6, text, 10)
            sheet.draw_line(y + 3, x, x + width, 0.5)
            write_gray(sheet, x + 3, y + 11, label)
        y += 30
    return y + 6


def finish_label_under_line(sheet: Sheet, total: int) -> None:
    """Later pages repeat name and birth date at the foot, labels below."""
    if sheet.number > 1:
        for x, width, text, label in (
            (54, 220, sheet.show_name("last_first"), "Patient's full name"),
            (284, 110, show_born(sheet, "month_capitals"), "Birth date"),
            (404, 100, sheet.show_number(), "Health record number"),
        ):
            fit(sheet, x + 3, 752, width - 6, text, 9)
            sheet.draw_line(755, x, x + width, 0.5)
            write_gray(sheet, x + 3, 763, label)
    sheet.write_right(558, 763, f"{sheet.number}/{total}", 7.5)


def write_stacks(sheet: Sheet, y: float, row: list[tuple[float, float, str, str]]) -> None:
    """Write gray labels with their values below."""
    for x, width, label, text in row:
        write_gray(sheet, x, y, label.upper(), 6.5)
        fit(sheet, x, y + 12, width, text, 9.5)


def begin_gray_labels(sheet: Sheet) -> float:
    """A screen print of a cloud record: small gray labels above the values, no rules."""
    card, setting, country = sheet.card, sheet.setting, get_country(sheet)
    sheet.write(54, 48, sheet.setting.title, 16, bold=True)
    write_gray(sheet, 54, 61, f"{card.institution.name}   {card.institution.address}", 8)
    write_stacks(
        sheet,
        82,
        [
            (54, 190, "Patient", sheet.show_name("first_last")),
            (254, 110, "Birthday", show_born(sheet, "abbreviated_month_first")),
            (374, 60, "Legal sex", SEXES[card.person.sex]),
            (444, 114, "Patient no.", sheet.show_number()),
        ],
    )
    write_stacks(
        sheet,
        110,
        [
            (54, 190, "Provider", f"{setting.clinicians[0]}, NP"),
            (254, 110, "Encounter date", write_seen(sheet)),
            (374, 60, "Language", "English"),
            (444, 114, country.national_label, write_national(sheet)),
        ],
    )
    write_stacks(
        sheet,
        138,
        [
            (54, 190, "Primary insured", setting.write_relative()),
            (254, 110, "Insured's birthday", write_day(setting.relative_born, "abbreviated_month_first")),
            (374, 184, "Payer", f"{setting.insurer}, {setting.member}"),
        ],
    )
    return 176


def follow_gray_labels(sheet: Sheet) -> float:
    write_stacks(
        sheet,
        36,
        [
            (54, 220, "Patient", sheet.show_name("first_last")),
            (284, 110, "Birthday", show_born(sheet, "abbreviated_month_first")),
            (404, 150, "Patient no.", sheet.show_number()),
        ],
    )
    return 72


def draw_value_row(sheet: Sheet, y: float, columns: list[tuple[float, str, str]], ruled: bool = True) -> float:
    """Draw a row of headings with a row of values beneath."""
    x = 54.0
    sheet.page.draw_rect((54, y, 558, y + 15), color=None, fill=(0.82, 0.86, 0.93))
    for width, heading, text in columns:
        fit(sheet, x + 3, y + 11, width - 6, heading, 8.5, bold=True)
        fit(sheet, x + 3, y + 27, width - 6, text, 8.5)
        if ruled:
            sheet.draw_box(x, y, width, 33, weight=0.4)
        x += width
    return y + 33


def begin_value_rows(sheet: Sheet) -> float:
    """An exported care record: heading rows over value rows."""
    card, setting = sheet.card, sheet.setting
    sheet.write(54, 48, f"{setting.title} from {card.institution.name}", 13, bold=True)
    y = draw_value_row(
        sheet,
        60,
        [
            (170, "Patient", sheet.show_name("first_last")),
            (100, "Birth Date/Time", show_born(sheet, "long")),
            (56, "Gender", SEXES[card.person.sex]),
            (88, "Ethnicity", "Not stated"),
            (90, "Patient IDs", sheet.show_number()),
        ],
    )
    y = draw_value_row(
        sheet,
        y + 6,
        [
            (130, "Author", f"{setting.clinicians[0]}"),
            (130, "Custodian", card.institution.name),
            (130, "Informant", f"{setting.write_relative('first_last')} ({setting.relative_word})"),
            (114, "Effective time", write_day(card.seen, "long")),
        ],
    )
    return y + 22


def follow_value_rows(sheet: Sheet) -> float:
    return (
        draw_value_row(
            sheet,
            34,
            [
                (224, "Patient", sheet.show_name("first_last")),
                (140, "Birth Date/Time", show_born(sheet, "long")),
                (140, "Patient IDs", sheet.show_number()),
            ],
        )
        + 24
    )


def begin_three_columns(sheet: Sheet) -> float:
    card, setting, country = sheet.card, sheet.setting, get_country(sheet)
    y = head_left(sheet)
    sheet.draw_line(y - 4)
    columns = (
        (
            54.0,
            [
                ("Name", f": {sheet.show_name('last_first')}"),
                ("DOB", f": {show_born(sheet)}"),
                ("Gender", f": {SEXES[card.person.sex]}"),
                ("Address", f": {setting.street}"),
            ],
        ),
        (
            236.0,
            [
                ("MRN", f": {sheet.show_number()}"),
                ("FIN", f": {sheet.show_number('account')}"),
                (country.national_label, f": {write_national(sheet)}"),
                ("Payer", f": {setting.insurer}"),
            ],
        ),
        (
            404.0,
            [
                ("Attending", f": {setting.clinicians[0]}"),
                ("Referring", f": {setting.clinicians[1]}"),
                ("Admit", f": {write_seen(sheet)}"),
                ("Location", ": OPD 2"),
            ],
        ),
    )
    for x, pairs in columns:
        list_pairs(sheet, x, y + 8, pairs, 52, 176 if x == 54 else 158)
    sheet.draw_line(y + 54)
    return y + 76


def follow_three_columns(sheet: Sheet) -> float:
    for x, width, pair in (
        (54, 230, ("Name", f": {sheet.show_name('last_first')}")),
        (300, 120, ("DOB", f": {show_born(sheet)}")),
        (430, 128, ("MRN", f": {sheet.show_number()}")),
    ):
        list_pairs(sheet, x, 44, [pair], 34, width)
    sheet.draw_line(50)
    return 74


# Combined labels.


def begin_combined(sheet: Sheet) -> float:
    card, setting = sheet.card, sheet.setting
    y = head_right(sheet)
    sheet.write(54, y, setting.title, 13, bold=True)
    pairs = [
        (
            "Name/DOB/MRN:",
            f"{sheet.show_name('last_first_capitals')} / {show_born(sheet, 'mdy')} / {sheet.show_number()}",
        ),
        ("Age/Sex/Acct:", f"{card.age} yrs / {card.person.sex} / {sheet.show_number('account')}"),
        ("Physician/Service/Date:", f"{setting.clinicians[0]} / Internal Medicine / {write_seen(sheet)}"),
    ]
    return list_pairs(sheet, 54, y + 18, pairs, 112, 504) + 14


def finish_combined(sheet: Sheet, total: int) -> None:
    if sheet.number > 1:
        list_pairs(
            sheet,
            54,
            42,
            [
                (
                    "Name/DOB/MRN:",
                    f"{sheet.show_name('last_first_capitals')} / {show_born(sheet, 'mdy')} / {sheet.show_number()}",
                )
            ],
            112,
            440,
        )
    sheet.write_right(558, 764, f"Page {sheet.number} of {total}", 8)


def begin_dotted(sheet: Sheet) -> float:
    """Dot leaders from the label to the value, as an old line printer sets them."""
    card, setting, country = sheet.card, sheet.setting, get_country(sheet)
    sheet.write(54, 48, card.institution.name.upper(), 11, bold=True)
    sheet.write(54, 60, setting.title.upper(), 10)
    y = 80.0
    for label, text in (
        ("PATIENT", show_tight_name(sheet)),
        ("BORN", f"{show_born(sheet, 'abbreviated_capitals')}  AGE {card.age}  SEX {card.person.sex}"),
        (country.record_label.upper(), sheet.show_number()),
        ("ACCOUNT", sheet.show_number("account")),
        ("PHYSICIAN", setting.clinicians[0].upper()),
        ("SERVICE DATE", write_day(card.seen, "abbreviated_capitals")),
    ):
        fit(sheet, 54, y, 500, f"{label} {'.' * (22 - len(label))} {text}", 9.5)
        y += 12
    return y + 14


def follow_dotted(sheet: Sheet) -> float:
    fit(sheet, 54, 44, 500, f"PATIENT {'.' * 6} {show_tight_name(sheet)}", 9.5)
    fit(sheet, 54, 56, 500, f"BORN {'.' * 9} {show_born(sheet, 'abbreviated_capitals')}     {sheet.show_number()}", 9.5)
    return 84


def begin_teletype(sheet: Sheet) -> float:
    """A transcription header in capitals, two fields a line."""
    card, setting = sheet.card, sheet.setting
    sheet.write_middle(46, card.institution.name.upper(), 11, bold=True)
    sheet.write_middle(60, setting.title.upper(), 10)
    rows = (
        (f"PATIENT NAME: {show_tight_name(sheet)}", f"ADMIT DATE: {write_seen(sheet)}"),
        (f"PT ACCT#: {sheet.show_number('account')}", f"DICTATED BY: {setting.clinicians[0].upper()}"),
        (f"MED REC#: {sheet.show_number()}", f"ATTENDING: {setting.clinicians[2].upper()}"),
        (f"BIRTHDATE: {show_born(sheet, 'mdy_two')}", f"ROOM: {setting.rng.randint(100, 699)}"),
    )
    y = 84.0
    for left, right in rows:
        fit(sheet, 54, y, 280, left, 9.5)
        fit(sheet, 344, y, 214, right, 9.5)
        y += 12
    sheet.write(54, y + 4, "=" * 84, 10)
    return y + 24


def finish_teletype(sheet: Sheet, total: int) -> None:
    if sheet.number > 1:
        fit(
            sheet,
            54,
            40,
            504,
            f"{show_tight_name(sheet)}   {show_born(sheet, 'mdy_two')}   MED REC#: {sheet.show_number()}",
            9.5,
        )
    sheet.write_middle(764, f"PAGE {sheet.number} OF {total}   D: {write_seen(sheet)}  T: {write_seen(sheet)}", 8)


# Letters.


def begin_british_letter(sheet: Sheet) -> float:
    """A clinic letter: addressee, salutation, then the patient in a bold line over the text."""
    card, setting, country = sheet.card, sheet.setting, get_country(sheet)
    y = head_right(sheet) + 6
    sheet.write(
        60, y, f"Our ref: {setting.clinicians[0][0]}{setting.clinicians[0].split()[-1][0]}/{sheet.show_number()}", 9
    )
    sheet.write(60, y + 12, f"Clinic date: {write_day(card.seen, 'long_day_first')}", 9)
    for row, line in enumerate((f"Dr {setting.clinicians[1]}", "The Surgery", "Market Square")):
        sheet.write(60, y + 34 + row * 13, line)
    y += 84
    sheet.write(60, y, f"Dear Dr {setting.clinicians[1].split()[-1]}")
    fit(sheet, 60, y + 20, 490, f"{sheet.show_name('titled')}, DOB: {show_born(sheet)}", 11, bold=True)
    fit(
        sheet,
        60,
        y + 33,
        490,
        f"{country.national_label}: {write_national(sheet)}, {country.record_label}: {sheet.show_number()}",
        10,
        bold=True,
    )
    fit(sheet, 60, y + 46, 490, f"{setting.street}", 10, bold=True)
    return y + 70


def follow_british_letter(sheet: Sheet) -> float:
    fit(sheet, 60, 48, 490, f"Re: {sheet.show_name('titled')}, {sheet.show_number()} (page {sheet.number})", 9)
    return 78


def begin_regarding(sheet: Sheet) -> float:
    """A block of RE: with one label a line."""
    card, setting = sheet.card, sheet.setting
    y = head_middle(sheet) + 8
    sheet.write(60, y, write_day(card.seen, "long"))
    sheet.write(60, y + 24, f"{setting.insurer}, Claims Department")
    sheet.write(60, y + 37, f"Attention: {setting.clinicians[3]}")
    y += 62
    for row, (label, text) in enumerate(
        (
            ("RE:", sheet.show_name("first_last")),
            ("Subscriber:", setting.write_relative("first_last")),
            ("D/O/B:", show_born(sheet, "mdy")),
            ("Policy:", setting.member),
            ("Our file:", sheet.show_number()),
        )
    ):
        sheet.write(110, y + row * 13, label, bold=True)
        fit(sheet, 190, y + row * 13, 360, text, sheet.size)
    return y + 86


def finish_regarding(sheet: Sheet, total: int) -> None:
    if sheet.number > 1:
        sheet.write(60, 40, sheet.show_name("first_last"), 9.5)
        sheet.write(60, 52, f"D/O/B: {show_born(sheet, 'mdy')}", 9.5)
        sheet.write(60, 64, f"Page {sheet.number} of {total}", 9.5)


def begin_named_in_text(sheet: Sheet) -> float:
    """Name and birth date only in the running text, in one of several turns of phrase."""
    card, setting = sheet.card, sheet.setting
    y = head_right(sheet)
    person = {"F": "lady", "M": "gentleman"}[card.person.sex]
    sheet.write(60, y, f"{setting.title}   {write_day(card.seen, 'long_day_first')}", 11, bold=True)
    manner = setting.rng.randrange(4)
    if manner == 0:
        words = (
            f"Many thanks for referring this {card.age} year old {person}, {sheet.show_name('titled')} (d.o.b. {show_born(sheet, 'long_day_first')}, "
            f"{get_country(sheet).record_label} {sheet.show_number()}), whom I reviewed with my registrar, Dr {setting.clinicians[2]}."
        )
    elif manner == 1:
        words = (
            f"This is to certify that {sheet.show_name('titled')}, born on {show_born(sheet, 'long')} and registered here as {sheet.show_number()}, "
            f"has been under the care of Dr {setting.clinicians[0]}."
        )
    elif manner == 2:
        words = (
            f"PATIENT IDENTIFICATION: {sheet.show_name('first_last')} is a {card.age}-year-old {person} whose date of birth is {show_born(sheet, 'long')}; the chart "
            f"number is {sheet.show_number()}. History was obtained from {setting.write_relative('first_last')}, the patient's {setting.relative_word}."
        )
    else:
        words = (
            f"It was a pleasure to meet {sheet.show_name('titled')} and {setting.relative_word} {setting.relative} today. To confirm identity we checked the date "
            f"of birth ({show_born(sheet, 'abbreviated')}) and hospital number ({sheet.show_number()})."
        )
    return sheet.write_wrapped(60, y + 26, 490, words) + 6


# Stickers.


def stick_bare(sheet: Sheet, x: float, y: float) -> None:
    """An addressograph label: hardly any label words."""
    card, setting, country = sheet.card, sheet.setting, get_country(sheet)
    sheet.page.draw_rect((x, y, x + 216, y + 84), color=(0.3, 0.3, 0.3), width=0.6, radius=0.06)
    fit(sheet, x + 8, y + 15, 130, sheet.show_number(), 11, bold=True, face="mono")
    sheet.write(x + 150, y + 15, f"{card.person.sex}  {card.age}Y", 9, face="mono")
    fit(sheet, x + 8, y + 29, 200, show_surname_capitals(sheet), 10.5, bold=True, face="mono")
    fit(sheet, x + 8, y + 42, 200, show_born(sheet, "abbreviated_capitals"), 10, face="mono")
    fit(sheet, x + 8, y + 54, 200, setting.street, 8, face="mono")
    fit(sheet, x + 8, y + 65, 200, f"{write_national(sheet)}  {country.national_label}", 8, face="mono")
    fit(sheet, x + 8, y + 76, 200, f"DR {setting.clinicians[1].upper()}", 8, face="mono")


def begin_addressograph(sheet: Sheet) -> float:
    stick_bare(sheet, 40, 28)
    sheet.write(280, 46, sheet.card.institution.name, 11, bold=True)
    fit(sheet, 280, 60, 290, sheet.card.institution.address, 8)
    fit(sheet, 280, 82, 290, sheet.setting.title.upper(), 12, bold=True)
    sheet.write(280, 98, f"Date: {write_seen(sheet)}     Clinician: {sheet.setting.clinicians[0]}", 8.5)
    sheet.draw_line(120, 40, 572)
    return 142


def follow_addressograph(sheet: Sheet) -> float:
    stick_bare(sheet, 40, 28)
    sheet.write(280, 46, sheet.setting.title.upper() + " (continued)", 10, bold=True)
    return 142


def finish_foot_sticker(sheet: Sheet, total: int) -> None:
    """A label in the lower right corner of each page, its bars to the right."""
    x, y = 330.0, 712.0
    sheet.draw_box(x, y, 242, 60, weight=0.5)
    fit(sheet, x + 6, y + 13, 230, sheet.show_name("last_first_capitals"), 10, bold=True)
    sheet.write(x + 6, y + 26, f"D.O.B. {show_born(sheet)}", 8.5)
    sheet.write(x + 6, y + 38, f"UR {sheet.show_number()}", 8.5)
    sheet.write(x + 6, y + 50, f"Visit {sheet.show_number('visit')}", 8.5)
    sheet.draw_bars(x + 140, y + 24, 90, 28)
    sheet.write(54, 764, f"MR {sheet.setting.rng.randint(10, 89)}   {sheet.number}/{total}", 8)


def begin_foot_sticker(sheet: Sheet) -> float:
    y = head_left(sheet)
    fit(
        sheet,
        54,
        y + 4,
        504,
        f"Treating team: {sheet.setting.clinicians[0]}, {sheet.setting.clinicians[2]} (registrar)    {write_seen(sheet)}",
        9,
    )
    return y + 28


def begin_labelled_sticker(sheet: Sheet) -> float:
    """The printed frame of a chart form with the fields of the label in it."""
    card = sheet.card
    fit(sheet, 54, 50, 226, card.institution.name, 11, bold=True)
    fit(sheet, 54, 64, 226, sheet.setting.title.upper(), 13, bold=True)
    sheet.write(54, 80, f"Facility: {sheet.setting.rng.choice(('Main campus', 'Annexe', 'Outreach clinic'))}", 8.5)
    fit(sheet, 54, 94, 220, f"Medical officer: Dr {sheet.setting.clinicians[0]}", 8.5)
    family, given = sheet.show_split_name()
    x, y = 290.0, 28.0
    sheet.draw_box(x, y, 282, 92, weight=1)
    for row, (label, text) in enumerate(
        (
            ("URN:", sheet.show_number()),
            ("Family name:", family),
            ("Given name(s):", given),
            ("Address:", sheet.setting.street),
        )
    ):
        sheet.write(x + 6, y + 15 + row * 15, label, 8)
        fit(sheet, x + 74, y + 15 + row * 15, 200, text, 10, bold=True)
    sheet.write(x + 6, y + 75, "Date of birth:", 8)
    sheet.write(x + 74, y + 75, show_born(sheet), 10, bold=True)
    sheet.write(x + 170, y + 75, "Sex:", 8)
    sheet.write(x + 192, y + 75, "[x] M  [ ] F  [ ] I" if card.person.sex == "M" else "[ ] M  [x] F  [ ] I", 8)
    write_gray(sheet, x + 6, y + 87, "(Affix patient identification label here)", 7)
    return 146


def follow_labelled_sticker(sheet: Sheet) -> float:
    sheet.write(54, 44, "Family name:", 8)
    family, given = sheet.show_split_name()
    fit(sheet, 108, 44, 130, family, 9.5, bold=True)
    sheet.write(246, 44, "Given:", 8)
    fit(sheet, 274, 44, 110, given, 9.5, bold=True)
    sheet.write(392, 44, "DOB:", 8)
    sheet.write(414, 44, show_born(sheet), 9, bold=True)
    sheet.write(480, 44, "URN:", 8)
    fit(sheet, 502, 44, 70, sheet.show_number(), 9, bold=True)
    return 72


# Feet, margins and corners.


def begin_three_part_foot(sheet: Sheet) -> float:
    y = head_middle(sheet)
    sheet.write_middle(
        y + 2, f"Requesting doctor: {sheet.setting.clinicians[0]}   Examination date: {write_seen(sheet)}", 9
    )
    return y + 26


def finish_three_part_foot(sheet: Sheet, total: int) -> None:
    sheet.draw_line(742, weight=0.4)
    fit(sheet, 54, 755, 230, sheet.show_name("last_first"), 9)
    sheet.write_middle(755, f"Born: {show_born(sheet, 'long_day_first')}", 9)
    sheet.write_right(558, 755, f"ID {sheet.show_number()}", 9)
    sheet.write_middle(768, f"- {sheet.number} / {total} -", 7.5)


def begin_sidebar(sheet: Sheet) -> float:
    sheet.write(150, 48, sheet.setting.title, 15, bold=True)
    fit(sheet, 150, 62, 410, f"{sheet.card.institution.name}   {sheet.card.institution.address}", 8)
    return 92


def finish_sidebar(sheet: Sheet, total: int) -> None:
    """A shaded column at the left with the labels over the values."""
    card, setting = sheet.card, sheet.setting
    sheet.page.draw_rect((0, 0, 132, HEIGHT), color=None, fill=(0.93, 0.93, 0.9))
    family, given = sheet.show_split_name()
    y = 60.0
    for label, text in (
        ("Surname", family),
        ("First name", given),
        ("Born", show_born(sheet)),
        ("Sex", SEXES[card.person.sex]),
        (get_country(sheet).record_label, sheet.show_number()),
        ("Visit", sheet.show_number("visit")),
        ("Seen by", setting.clinicians[0]),
        ("Referred by", setting.clinicians[1]),
        ("On", write_seen(sheet)),
        ("Page", f"{sheet.number} of {total}"),
    ):
        write_gray(sheet, 16, y, label, 7.5)
        fit(sheet, 16, y + 12, 108, text, 9.5, bold=True)
        y += 32


def finish_image_corners(sheet: Sheet, total: int) -> None:
    """The corner texts of an imaging archive: values only, the name with a caret."""
    card = sheet.card
    family, given = card.write_name("family"), card.write_name("given")
    fit(sheet, 24, 24, 260, note_name(sheet, f"{family}^{given}".upper()), 9)
    sheet.write(24, 35, f"{sheet.show_number()}", 9)
    sheet.write(24, 46, f"{show_born(sheet, 'compact')} {card.person.sex}", 9)
    sheet.write_right(588, 24, card.institution.name, 9)
    sheet.write_right(588, 35, f"Acc {sheet.show_number('accession')}", 9)
    sheet.write_right(588, 46, write_day(card.seen, "compact"), 9)
    sheet.write_right(588, 772, f"{sheet.number}/{total}", 8)


def begin_image_corners(sheet: Sheet) -> float:
    sheet.write_middle(74, sheet.setting.title, 13, bold=True)
    sheet.write_middle(88, f"Referrer: {sheet.setting.clinicians[1]}   Reporting: {sheet.setting.clinicians[0]}", 9)
    return 114


def begin_foot_sentence(sheet: Sheet) -> float:
    y = head_left(sheet)
    list_pairs(
        sheet,
        54,
        y + 6,
        [("Clinic:", "Ambulatory, Level 2"), ("Doctor:", sheet.setting.clinicians[0]), ("Date:", write_seen(sheet))],
        50,
        300,
    )
    return y + 60


def finish_foot_sentence(sheet: Sheet, total: int) -> None:
    line = (
        f"Page {sheet.number} of {total} of the record of {sheet.show_name('first_last')} (born {show_born(sheet, 'long_day_first')}, "
        f"number {sheet.show_number()}), printed {write_seen(sheet)} by {sheet.setting.clinicians[3]}"
    )
    fit(sheet, 54, 762, 504, line, 8)


# Face sheets and boxes with other people.


def draw_panel(
    sheet: Sheet, x: float, y: float, width: float, title: str, pairs: list[tuple[str, str]], gap: float
) -> float:
    height = 20 + 12.5 * len(pairs)
    sheet.draw_box(x, y, width, height, weight=0.6)
    sheet.page.draw_rect((x, y, x + width, y + 13), color=None, fill=(0.2, 0.25, 0.3))
    sheet.page.insert_text((x + 5, y + 10), title, fontname=FACES[sheet.face][1], fontsize=8.5, color=(1, 1, 1))
    list_pairs(sheet, x + 5, y + 25, pairs, gap, width - 10)
    return y + height


def begin_face_sheet(sheet: Sheet) -> float:
    """The person who pays is named before the patient, with a birth date too."""
    card, setting = sheet.card, sheet.setting
    y = head_middle(sheet)
    relative = setting.write_relative()
    draw_panel(
        sheet,
        54,
        y,
        248,
        "GUARANTOR",
        [
            ("Name:", relative),
            ("DOB:", write_day(setting.relative_born, get_country(sheet).day_style)),
            ("Relation:", setting.relative_word.title()),
            ("Employer:", "Self"),
        ],
        54,
    )
    below = draw_panel(
        sheet,
        310,
        y,
        248,
        "PATIENT",
        [
            ("Name:", sheet.show_name("last_first")),
            (f"{card.write_label('DOB')}:", show_born(sheet, "mdy")),
            ("MRN:", sheet.show_number()),
            ("Acct:", sheet.show_number("account")),
        ],
        54,
    )
    draw_panel(
        sheet,
        54,
        below + 6,
        248,
        "SUBSCRIBER / PLAN",
        [("Name:", relative), ("Plan:", setting.insurer), ("Policy ID:", setting.member)],
        54,
    )
    below = draw_panel(
        sheet,
        310,
        below + 6,
        248,
        "PROVIDERS",
        [("Attending:", setting.clinicians[0]), ("Admitting:", setting.clinicians[2]), ("PCP:", setting.clinicians[1])],
        54,
    )
    return below + 24


def finish_face_sheet(sheet: Sheet, total: int) -> None:
    sheet.write(54, 764, f"{sheet.number}/{total}", 8)
    if sheet.number > 1:
        sheet.write_right(
            558, 764, f"{sheet.show_name('last_first')}  {show_born(sheet, 'mdy')}  {sheet.show_number()}", 8.5
        )


def begin_mother(sheet: Sheet) -> float:
    """Family lines around the patient: mother or spouse above, emergency contact below."""
    card, setting = sheet.card, sheet.setting
    y = head_left(sheet) + 8
    kin = "Mother" if not card.person.adult else "Spouse"
    pairs = [
        (f"{kin}'s Name", setting.write_relative("first_last")),
        (f"{kin}'s DOB", write_day(setting.relative_born, "abbreviated")),
        ("Patient Full Name", sheet.show_name("first_last")),
        ("Patient DOB", show_born(sheet, "abbreviated")),
        ("Patient No.", sheet.show_number()),
        ("Emergency Contact", f"{setting.write_relative('first_last')}, 555 0{setting.rng.randint(100, 199)}"),
        ("Clinician", f"{setting.clinicians[0]}, {write_seen(sheet)}"),
    ]
    return list_pairs(sheet, 54, y, pairs, 104, 504) + 14


def follow_mother(sheet: Sheet) -> float:
    list_pairs(
        sheet,
        54,
        40,
        [
            ("Patient Full Name", sheet.show_name("first_last")),
            ("Patient DOB", show_born(sheet, "abbreviated")),
            ("Patient No.", sheet.show_number()),
        ],
        104,
        504,
        11,
    )
    return 92


def draw_provider_first(sheet: Sheet, y: float) -> float:
    """Four unlike headings in a row; the provider stands where the eye expects the patient."""
    card, setting = sheet.card, sheet.setting
    columns = (
        (
            54.0,
            118.0,
            "Provider",
            (f"{setting.clinicians[0]}, MD", "Haematology", "NPI 10" + str(setting.rng.randint(10**7, 10**8 - 1))),
        ),
        (
            180.0,
            182.0,
            "Patient",
            (
                sheet.show_name("first_last"),
                f"{show_born(sheet, 'mdy_short')} ({card.age} y/o {card.person.sex})",
                f"MRN {sheet.show_number()}",
            ),
        ),
        (370.0, 90.0, "Encounter", (write_seen(sheet), sheet.show_number("visit"), "Office visit")),
        (468.0, 90.0, "Facility", (" ".join(card.institution.name.split()[:2]), "Suite 210", "")),
    )
    for x, width, heading, lines in columns:
        sheet.write(x, y, heading, 8.5, bold=True)
        sheet.draw_line(y + 3, x, x + width, 0.5)
        for row, line in enumerate(lines):
            fit(sheet, x, y + 15 + row * 12, width, line, 9)
    return y + 64


def begin_provider_first(sheet: Sheet) -> float:
    return draw_provider_first(sheet, head_left(sheet) + 8)


def follow_provider_first(sheet: Sheet) -> float:
    return draw_provider_first(sheet, 40)


def begin_gulf(sheet: Sheet) -> float:
    """A file header with nationality and identity card, label and value split by a colon column."""
    card, setting, country = sheet.card, sheet.setting, get_country(sheet)
    y = head_middle(sheet)
    sheet.draw_box(50, y - 2, 512, 72, weight=1)
    left = [
        ("File No.", f":  {sheet.show_number()}"),
        ("Patient Name", f":  {note_name(sheet, card.write_name('titled').upper())}"),
        ("Birth Dt. / Age", f":  {show_born(sheet, 'abbreviated')} / {card.age} Years"),
        ("Gender", f":  {SEXES[card.person.sex]}"),
        (country.national_label, f":  {write_national(sheet)}"),
    ]
    right = [
        ("Visit No.", f":  {sheet.show_number('visit')}"),
        ("Visit Date", f":  {write_day(card.seen, 'abbreviated')}"),
        ("Doctor", f":  Dr. {setting.clinicians[0]}"),
        ("Insurance", f":  {setting.insurer}"),
        ("Card No.", f":  {setting.member}"),
    ]
    list_pairs(sheet, 56, y + 10, left, 76, 300, 13)
    list_pairs(sheet, 368, y + 10, right, 54, 190, 13)
    return y + 92


def follow_gulf(sheet: Sheet) -> float:
    sheet.draw_box(50, 28, 512, 22, weight=1)
    fit(
        sheet,
        56,
        43,
        500,
        f"File No.: {sheet.show_number()}     Patient Name: {sheet.show_name('first_last')}     Birth Dt.: {show_born(sheet, 'abbreviated')}",
        9,
    )
    return 76


def begin_big_name(sheet: Sheet) -> float:
    """A visit summary for the patient: the name as the title of the page."""
    card, setting = sheet.card, sheet.setting
    fit(sheet, 54, 58, 400, sheet.show_name("first_last"), 20, bold=True)
    sheet.write(
        54, 76, f"Born {show_born(sheet, 'long_day_first')} ({card.age} years), {SEXES[card.person.sex].lower()}", 10
    )
    fit(
        sheet,
        54,
        89,
        400,
        f"{get_country(sheet).national_label} {write_national(sheet)}, local number {sheet.show_number()}",
        9,
    )
    sheet.draw_line(98, weight=2)
    fit(
        sheet,
        54,
        114,
        504,
        f"{setting.title} by {setting.clinicians[0]}, {card.institution.name}, {write_seen(sheet)}",
        9.5,
    )
    return 140


def finish_big_name(sheet: Sheet, total: int) -> None:
    if sheet.number > 1:
        fit(
            sheet,
            54,
            44,
            420,
            f"{sheet.show_name('first_last')}, born {show_born(sheet, 'long_day_first')}",
            9.5,
            bold=True,
        )
        sheet.write_right(558, 44, f"{sheet.number} of {total}", 9)


def begin_canadian_form(sheet: Sheet) -> float:
    """Cells with the label small in their upper left corner, the order of the date in the label."""
    card, setting, country = sheet.card, sheet.setting, get_country(sheet)
    y = head_left(sheet) - 4
    family, given = sheet.show_split_name()
    rows = (
        (
            (180, "Last name / Nom", family),
            (180, "First name / Prénom", given),
            (144, "D.O.B. (yyyy/mm/dd)", show_born(sheet, "year_first")),
        ),
        (
            (180, country.national_label, write_national(sheet)),
            (180, "Chart no.", sheet.show_number()),
            (144, "Sex", SEXES[card.person.sex]),
        ),
        (
            (360, "Ordering practitioner / copies to", f"{setting.clinicians[0]}; {setting.clinicians[1]}"),
            (144, "Service date", write_day(card.seen, "year_first")),
        ),
    )
    for row in rows:
        x = 54.0
        for width, label, text in row:
            sheet.draw_box(x, y, width, 26, weight=0.5)
            sheet.write(x + 3, y + 7, label, 5.5)
            fit(sheet, x + 6, y + 21, width - 12, text, 10)
            x += width
        y += 26
    return y + 22


def finish_canadian_form(sheet: Sheet, total: int) -> None:
    if sheet.number > 1:
        fit(
            sheet,
            54,
            44,
            430,
            f"{sheet.show_name('last_first')}   DOB(y/m/d) {show_born(sheet, 'year_first')}   Chart no. {sheet.show_number()}",
            9,
        )
    sheet.write_right(558, 764, f"Form HR-{total}{sheet.number}4   pg {sheet.number}/{total}", 7.5)


def begin_practice_printout(sheet: Sheet) -> float:
    """The printout of a general practice system: the name underlined, details in a run of sentences."""
    card, setting, country = sheet.card, sheet.setting, get_country(sheet)
    sheet.write_right(558, 44, card.institution.name, 9)
    sheet.write_right(558, 55, f"Printed {write_seen(sheet)}", 8)
    fit(sheet, 54, 50, 330, show_given_surname_capitals(sheet), 13, bold=True)
    sheet.draw_line(54, 54, 384, 0.8)
    sheet.write(
        54, 68, f"Date of Birth: {show_born(sheet, 'day_first')} ({card.age}y)   Gender: {SEXES[card.person.sex]}", 9.5
    )
    fit(
        sheet,
        54,
        81,
        504,
        f"{country.national_label}: {write_national(sheet)}   Practice No: {sheet.show_number()}   Usual GP: {setting.clinicians[1]}",
        9,
    )
    fit(
        sheet,
        54,
        94,
        504,
        f"{setting.street}   Contact: {setting.write_relative('first_last')} ({setting.relative_word})",
        9,
    )
    sheet.write(54, 116, setting.title, 11, bold=True)
    return 136


def follow_practice_printout(sheet: Sheet) -> float:
    fit(
        sheet,
        54,
        44,
        504,
        f"{show_given_surname_capitals(sheet)}   Date of Birth: {show_born(sheet, 'day_first')}   {sheet.show_number()}",
        9,
    )
    return 72


# Laboratories.


def begin_british_laboratory(sheet: Sheet) -> float:
    card, setting, country = sheet.card, sheet.setting, get_country(sheet)
    sheet.write(54, 44, f"{card.institution.name} Pathology Directorate", 12, bold=True)
    family, given = sheet.show_split_name()
    sheet.draw_box(54, 54, 504, 66, weight=0.5)
    list_pairs(
        sheet,
        60,
        67,
        [("Surname", family), ("Forename", given), ("D.o.B.", show_born(sheet, "day_first")), ("Sex", card.person.sex)],
        56,
        170,
        14,
    )
    list_pairs(
        sheet,
        236,
        67,
        [
            (country.national_label, write_national(sheet)),
            ("Hosp No.", sheet.show_number()),
            ("Lab No.", sheet.show_number("accession")),
            ("Source", "Outpatients"),
        ],
        60,
        170,
        14,
    )
    list_pairs(
        sheet,
        412,
        67,
        [("Requester", setting.clinicians[0]), ("Taken", write_seen(sheet)), ("Rec'd", write_seen(sheet))],
        50,
        142,
        14,
    )
    return 144


def begin_indian_laboratory(sheet: Sheet) -> float:
    card, setting = sheet.card, sheet.setting
    y = head_middle(sheet)
    left = [
        ("Patient Name", f": {sheet.show_name('titled' if card.title else 'first_last')}"),
        ("DOB/Age/Gender", f": {show_born(sheet, 'day_first_dashes')}/{card.age} Y/{SEXES[card.person.sex]}"),
        ("UHID/MR No", f": {sheet.show_number()}"),
        ("Visit ID", f": {sheet.show_number('visit')}"),
        ("Ref Doctor", f": Dr.{setting.clinicians[1].upper()}"),
    ]
    day = write_day(card.seen, "abbreviated")
    right = [
        ("Collected", f": {day} 08:12AM"),
        ("Received", f": {day} 10:40AM"),
        ("Reported", f": {day} 01:55PM"),
        ("Status", ": Final Report"),
        ("Sponsor Name", f": {setting.insurer}"),
    ]
    list_pairs(sheet, 54, y + 4, left, 84, 300)
    list_pairs(sheet, 368, y + 4, right, 68, 190)
    sheet.draw_line(y + 62)
    return y + 82


def follow_indian_laboratory(sheet: Sheet) -> float:
    list_pairs(
        sheet,
        54,
        44,
        [("Patient Name", f": {sheet.show_name('titled' if sheet.card.title else 'first_last')}")],
        84,
        300,
    )
    list_pairs(sheet, 368, 44, [("UHID/MR No", f": {sheet.show_number()}")], 68, 190)
    return 74


def begin_commercial_laboratory(sheet: Sheet) -> float:
    """Three boxes: patient, specimen, client; names of physicians in the last."""
    card, setting = sheet.card, sheet.setting
    fit(sheet, 54, 44, 360, f"{card.institution.name} Reference Laboratory", 12, bold=True)
    sheet.write_right(558, 44, "Report Status: FINAL", 9, bold=True)
    boxes = (
        (
            "Patient Information",
            (
                (sheet.show_name("last_first_capitals"), True),
                (f"DOB: {show_born(sheet, 'mdy')}   AGE: {card.age}", False),
                (f"Gender: {card.person.sex}   Fasting: U", False),
                (f"Patient ID: {sheet.show_number()}", False),
            ),
        ),
        (
            "Specimen Information",
            (
                (f"Specimen: {sheet.show_number('accession')}", True),
                (f"Requisition: {setting.rng.randint(10**6, 10**7 - 1)}", False),
                (f"Collected: {write_seen(sheet)}", False),
                (f"Received: {write_seen(sheet)}", False),
            ),
        ),
        (
            "Client Information",
            (
                (f"{setting.clinicians[0].split()[-1].upper()}, {setting.clinicians[0].split()[0].upper()}", True),
                (card.institution.name, False),
                (setting.street, False),
                (f"Client #: {setting.rng.randint(10000, 99999)}", False),
            ),
        ),
    )
    for column, (heading, lines) in enumerate(boxes):
        x = 54 + column * 168
        sheet.draw_box(x, 54, 168, 72, weight=0.6)
        sheet.write(x + 5, 66, heading, 9, bold=True)
        for row, (line, bold) in enumerate(lines):
            fit(sheet, x + 5, 80 + row * 12, 158, line, 9, bold=bold)
    return 152


def begin_cover(sheet: Sheet) -> float:
    card, setting = sheet.card, sheet.setting
    sheet.write_middle(84, "FACSIMILE TRANSMITTAL", 20, bold=True)
    sheet.write_middle(100, card.institution.name, 10)
    pairs = [
        ("Attention", f"{setting.clinicians[1]}, Records"),
        ("From", f"{setting.clinicians[2]}, Health Information"),
        ("Sent", write_seen(sheet)),
        ("Regarding", f"{sheet.show_name('last_first')}, born {show_born(sheet, 'long_day_first')}"),
        ("Your number", sheet.show_number()),
        ("Fax", "555 0119"),
    ]
    return list_pairs(sheet, 90, 140, pairs, 90, 440, 22) + 24


LAYOUTS = (
    Layout("bare_pipes", "banner", begin_bare_pipes, draw_bare_pipes, face="sans", size=9.5, every_page=True),
    Layout("bare_slashes", "banner", begin_bare_slashes, draw_bare_slashes, every_page=True),
    Layout("dashes", "banner", begin_dashes, lambda sheet: 74, finish_dashes, face="sans", size=9.5, every_page=True),
    Layout("brackets", "banner", begin_brackets, draw_brackets, face="sans", size=9.5, every_page=True),
    Layout("semicolons", "banner", begin_semicolons, draw_semicolons, face="mono", size=9, every_page=True),
    Layout("ruled_grid", "grid", begin_ruled_grid, follow_ruled_grid, face="sans", size=9.5, every_page=True),
    Layout("label_under_line", "form", begin_label_under_line, None, finish_label_under_line, every_page=True),
    Layout("gray_labels", "stacked", begin_gray_labels, follow_gray_labels, face="sans", size=9.5, every_page=True),
    Layout("value_rows", "ccda", begin_value_rows, follow_value_rows, face="sans", size=9.5, every_page=True),
    Layout(
        "three_columns", "columns", begin_three_columns, follow_three_columns, face="sans", size=9.5, every_page=True
    ),
    Layout("combined_label", "combined", begin_combined, None, finish_combined, every_page=True),
    Layout("dotted_leaders", "printer", begin_dotted, follow_dotted, face="mono", size=9, every_page=True),
    Layout("teletype", "printer", begin_teletype, None, finish_teletype, face="mono", size=9, every_page=True),
    Layout("british_letter", "letter", begin_british_letter, follow_british_letter, size=11, grown_only=True),
    Layout("regarding_block", "letter", begin_regarding, lambda sheet: 92, finish_regarding, size=11, every_page=True),
    Layout("named_in_text", "text", begin_named_in_text, None, size=11, grown_only=True),
    Layout(
        "addressograph", "sticker", begin_addressograph, follow_addressograph, face="sans", size=9.5, every_page=True
    ),
    Layout(
        "foot_sticker",
        "sticker",
        begin_foot_sticker,
        None,
        finish_foot_sticker,
        face="sans",
        size=9.5,
        bottom=698,
        every_page=True,
    ),
    Layout(
        "labelled_sticker", "sticker", begin_labelled_sticker, follow_labelled_sticker, face="sans", every_page=True
    ),
    Layout("three_part_foot", "footer", begin_three_part_foot, None, finish_three_part_foot, every_page=True),
    Layout(
        "sidebar",
        "sidebar",
        begin_sidebar,
        lambda sheet: 60,
        finish_sidebar,
        face="sans",
        size=9.5,
        margin=150,
        every_page=True,
    ),
    Layout(
        "image_corners",
        "corners",
        begin_image_corners,
        lambda sheet: 74,
        finish_image_corners,
        face="mono",
        size=9,
        every_page=True,
    ),
    Layout("foot_sentence", "footer", begin_foot_sentence, None, finish_foot_sentence, every_page=True),
    Layout("face_sheet", "panels", begin_face_sheet, None, finish_face_sheet, face="sans", size=9.5, every_page=True),
    Layout("family_lines", "lines", begin_mother, follow_mother, face="sans", size=9.5, every_page=True),
    Layout("provider_first", "columns", begin_provider_first, follow_provider_first, size=10, every_page=True),
    Layout("gulf_file", "box", begin_gulf, follow_gulf, face="sans", size=9.5, every_page=True),
    Layout("big_name", "title", begin_big_name, lambda sheet: 70, finish_big_name, face="sans", every_page=True),
    Layout(
        "canadian_form", "form", begin_canadian_form, lambda sheet: 70, finish_canadian_form, size=10, every_page=True
    ),
    Layout(
        "practice_printout",
        "lines",
        begin_practice_printout,
        follow_practice_printout,
        face="sans",
        size=9.5,
        every_page=True,
    ),
    Layout("british_laboratory", "laboratory", begin_british_laboratory, face="sans", size=9.5, body="laboratory"),
    Layout(
        "indian_laboratory",
        "laboratory",
        begin_indian_laboratory,
        follow_indian_laboratory,
        face="sans",
        body="laboratory",
    ),
    Layout("commercial_laboratory", "laboratory", begin_commercial_laboratory, face="mono", size=9, body="laboratory"),
)
COVER = Layout("cover_transmittal", "cover", begin_cover, face="sans", size=11, body="cover")
COVER_TEXT = (
    "The number of sheets sent is in the top line of this page.",
    "Enclosed: the extract requested by your office.",
    "If you received these sheets by mistake, please shred them and telephone the sender.",
)
