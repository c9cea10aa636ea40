"""The third half, `c`: its persons, institutions and page layouts, drawn after forms of several countries."""

from __future__ import annotations

import random

import pymupdf

from .drawing import FACES, WIDTH, Layout, Sheet
from .persons import Institution, Pool, write_day

POOL = Pool(
    women=(
        ("Persephone", "Seph"),
        ("Meredith", "Merry"),
        ("Araminta", "Minty"),
        ("Henrietta", "Etty"),
        ("Thomasina", "Tommie"),
        ("Cordelia", "Delia"),
        ("Adelaide", "Addie"),
        ("Matilda", "Tilly"),
        ("Rosalind", "Roz"),
        ("Winifred", "Winnie"),
        ("Imogen", "Immy"),
        ("Tamsin", "Tam"),
        ("Oluwaseun", "Seun"),
        ("Shanice", "Shan"),
        ("Soledad", "Sole"),
        ("Zoë", "Zo"),
        ("Parvati", "Paro"),
        ("Ngozi", "Zizi"),
        ("Hyun-Joo", "June"),
        ("Siobhan", "Shiv"),
        ("Ottilie", "Otti"),
        ("Marguerite", "Daisy"),
        ("Geraldine", "Gerry"),
        ("Leocadia", "Leo"),
        ("Mary Ellen", "Mellie"),
    ),
    men=(
        ("Leopold", "Poldi"),
        ("Malachi", "Mal"),
        ("Alistair", "Al"),
        ("Montgomery", "Monty"),
        ("Reginald", "Reg"),
        ("Jedediah", "Jed"),
        ("Fitzroy", "Fitz"),
        ("Augustus", "Gus"),
        ("Rutherford", "Ruddy"),
        ("Thaddeus", "Tad"),
        ("Percival", "Val"),
        ("Ezekiel", "Zeke"),
        ("Kwame", "Kay"),
        ("Hiroshi", "Hiro"),
        ("Stanislaw", "Stan"),
        ("Balthazar", "Bal"),
        ("Ángel", "Angelito"),
        ("Jean-Luc", "Luc"),
        ("Mordechai", "Motti"),
        ("Terrence", "Tel"),
        ("Barnaby", "Barney"),
        ("Sylvester", "Sly"),
        ("Giovanni", "Gio"),
        ("Emeka", "Mek"),
        ("Clement", "Clem"),
    ),
    unisex=("Avery", "Ellis", "Rowan", "Quinn"),
    families=(
        "Ostrander",
        "Featherstone",
        "Blackadder",
        "Trevelyan",
        "Achterberg",
        "Mbeki",
        "St. Laurent",
        "O'Shaughnessy",
        "Wojcik",
        "Van der Merwe",
        "Lefebvre",
        "Ng",
        "Oyelaran",
        "Quigley",
        "MacGregor",
        "Rasmussen",
        "Villanueva",
        "Hightower",
        "Snodgrass",
        "Peverell",
        "Kaplan",
        "Yamaguchi",
        "El-Amin",
        "Tremblay",
        "Whitaker",
        "Grimaldi",
        "Standing Bear",
        "Boateng",
        "Drinkwater",
        "Nuñez",
        "Hollis",
        "Lo",
        "Fairweather",
        "Zielinski",
        "Cartwright",
        "Pruitt",
        "Bancroft",
        "Singh Gill",
        "Case",
        "Banks",
        "Noble",
        "English",
        "Day",
        "Winters",
    ),
    clinicians=(
        "Judith Arkwright",
        "Samir Haddad",
        "Fiona Galbraith",
        "Tunde Bakare",
        "Marcus Vandenberg",
        "Ingrid Solheim",
        "Paul Dufresne",
        "Anjali Deshmukh",
        "Craig Mulholland",
        "Wei-Ling Koh",
        "Rafael Ibarra",
        "Hannah Bloomfield",
        "Gareth Penrose",
        "Eleni Pappas",
    ),
    institutions=(
        ("Ashdown General Hospital", "Level 2, 18 Infirmary Road, Ashdown    Phone 555 203 4410", "A9999999"),
        ("Tamarack Regional Health Centre", "40 Lakehead Drive, Tamarack    Tel. 555-318-2200", "9999999"),
        ("Copper Canyon Medical Center", "900 N. Mesa Blvd, Suite 120, Copper Canyon    (555) 441-9030", "10999999"),
        ("Bellwether Cancer Institute", "77 Exchange Place, Bellwether    555.662.1818", "999-999-9"),
        ("Wattle Creek Hospital and Health Service", "Cnr Station and Byron Sts, Wattle Creek    555 7788", "999999"),
        ("Tidewater Memorial Hospital", "1 Patriot Way, Tidewater    (555) 904-6100", "TM99999"),
        ("Saint Columba University Hospital", "Abbey Gate, Columba Hill    Switchboard 555 0144", "SC999999"),
    ),
    insurers=("Keystone Allied HMO", "Provident Shield Gold", "Medicaid Managed Care", "Great Basin Benefit Trust"),
    streets=(
        "Kestrel Close",
        "W. Juniper Blvd",
        "Harbour Parade",
        "Old Toll Road",
        "Sycamore Crescent",
        "Rural Route 4",
    ),
)

TITLES = {
    "Clinical Note": ("Outpatient Consultation", "Progress Notes", "History and Physical", "Clinic Letter"),
    "Radiology Report": ("Medical Imaging Report", "Imaging Result", "Final Radiology Report"),
    "Pathology Report": ("Anatomic Pathology Report", "Histopathology Report"),
    "Genomic Report": ("Tumor Profiling Report", "Genomic Test Result"),
    "Other": ("Health Information Request", "Registration Documents"),
}
SIGNATURES = (
    "Authenticated by {}, MD on {}",
    "Signed: {}, Consultant   {}",
    "Electronically verified by {}, M.D. {} 16:20",
    "{}, MBBS FRACP   {}",
)
LABORATORY_SIGNATURE = "Authorised by {}, Biomedical Scientist, {}"
FAX_SENDERS = (
    "FR:ASHDOWN GEN HOSP MED RECS",
    "FROM-E PAPPAS ROI DESK",
    "BELLWETHER CANCER INST",
    "COPPER CYN HIM 2ND FL",
)
TESTS = (
    ("WBC Count", "x10E3/uL", 3.8, 10.8),
    ("Haemoglobin", "g/dL", 11.7, 16.1),
    ("RDW (calc)", "%", 11.0, 15.0),
    ("Platelet Count", "x10E3/uL", 140, 400),
    ("Absolute Neutrophils", "x10E3/uL", 1.5, 7.8),
    ("Absolute Monocytes", "x10E3/uL", 0.2, 0.95),
    ("Ferritin", "ng/mL", 16, 288),
    ("TSH", "mIU/L", 0.4, 4.5),
    ("Free T4", "ng/dL", 0.8, 1.8),
    ("Magnesium", "mg/dL", 1.5, 2.5),
    ("Phosphate", "mg/dL", 2.5, 4.5),
    ("Alkaline Phosphatase", "U/L", 37, 153),
    ("Total Protein", "g/dL", 6.1, 8.1),
    ("Globulin", "g/dL", 1.9, 3.7),
    ("LD (lactate)", "U/L", 120, 250),
    ("Uric Acid", "mg/dL", 2.5, 7.0),
    ("Cholesterol", "mg/dL", 125, 200),
    ("Triglycerides", "mg/dL", 50, 150),
    ("C-Reactive Protein", "mg/L", 0.5, 8.0),
    ("Vitamin B12", "pg/mL", 200, 1100),
)
SEXES = {"F": "Female", "M": "Male"}


def choose(sheet: Sheet, *choices: str) -> str:
    """Choose a spelling that all pages of the document share."""
    return random.Random(f"{sheet.card.visit} {choices}").choice(choices)


def put(
    sheet: Sheet,
    x: float,
    y: float,
    text: str,
    width: float,
    size: float | None = None,
    bold: bool = False,
    face: str | None = None,
) -> float:
    """Write a line, in smaller letters where it is wider than its place."""
    size = size or sheet.size
    length = pymupdf.get_text_length(text, fontname=FACES[face or sheet.face][bold], fontsize=size)
    return sheet.write(x, y, text, size * min(1, width / max(length, 1)), bold, face)


def put_rows(
    sheet: Sheet, x: float, y: float, rows: tuple[tuple[str, str], ...], gap: float, width: float, size: float = 9
) -> float:
    """Write labels with their values behind them, row by row; return the y below."""
    for label, text in rows:
        put(sheet, x, y, label, gap - 4, size, bold=True)
        put(sheet, x + gap, y, text, width - gap, size)
        y += size * 1.42
    return y


def put_cells(
    sheet: Sheet,
    x: float,
    y: float,
    widths: tuple[float, ...],
    texts: tuple[str, ...],
    height: float = 17,
    size: float = 8.5,
    bold: bool = False,
    shade: float | None = None,
) -> float:
    """Draw one row of a ruled table; return the y of the next row."""
    for width, text in zip(widths, texts, strict=True):
        sheet.draw_box(x, y, width, height, shade=shade, weight=0.6)
        put(sheet, x + 4, y + height - 5, text, width - 8, size, bold)
        x += width
    return y + height


def put_captioned(
    sheet: Sheet, x: float, y: float, widths: tuple[float, ...], cells: tuple[tuple[str, str], ...], height: float = 30
) -> float:
    """Draw one row of a form: small caption in the upper edge of a cell, value beneath."""
    for width, (caption, text) in zip(widths, cells, strict=True):
        sheet.draw_box(x, y, width, height, weight=0.6)
        put(sheet, x + 3, y + 9, caption, width - 6, 7)
        put(sheet, x + 6, y + height - 7, text, width - 10, 10, face="mono")
        x += width
    return y + height


def show_national_number(sheet: Sheet, scheme: str, shape: str) -> str:
    """Print the number a country has for the person, the same in every institution."""
    person = sheet.card.person
    rng = random.Random(f"{scheme} {person.born} {person.given} {person.family}")
    number = Institution(scheme, "", shape).draw_number(rng)
    if number not in sheet.numbers:
        sheet.numbers.append(number)
        sheet.number_kinds.append("record")
    sheet.printed.append(number)
    return number


def write_clinician(name: str) -> str:
    given, family = name.rsplit(" ", 1)
    return f"{family}, {given}"


def begin_banner(sheet: Sheet) -> float:
    """The banner of an electronic record, printed."""
    card, setting = sheet.card, sheet.setting
    sheet.page.draw_rect((36, 28, 576, 84), color=None, fill=(0.88, 0.91, 0.95))
    put(sheet, 44, 47, sheet.show_name("last_first"), 330, 14, bold=True)
    sheet.write_right(568, 46, card.institution.name, 9)
    sheet.write(
        44,
        62,
        f"MRN: {sheet.show_number()}    {card.age} y.o. {SEXES[card.person.sex].lower()}    "
        f"{choose(sheet, 'DOB', 'Birth date')}: {sheet.show_birth('mdy_short')}",
        9.5,
    )
    sheet.write(
        44,
        76,
        f"CSN: {sheet.show_number('visit')}    PCP: {setting.clinicians[1]}, MD    Payor: {setting.insurer}",
        8.5,
    )
    sheet.write(60, 108, f"{setting.title} by {setting.clinicians[0]}, MD at {setting.seen}", 12, bold=True)
    sheet.write(60, 122, f"Author: {setting.clinicians[0]}, MD    Service: Oncology    Author Type: Physician", 8.5)
    sheet.write(60, 133, f"Filed: {setting.seen}    Status: Signed    Editor: {setting.clinicians[2]}, RN", 8.5)
    return 156


def follow_banner(sheet: Sheet) -> float:
    put(sheet, 44, 42, f"{sheet.show_name('last_first')} (MRN {sheet.show_number()})", 340, 10, bold=True)
    sheet.write(44, 54, f"DOB: {sheet.show_birth('mdy_short')}    Encounter Date: {sheet.setting.seen}", 8.5)
    sheet.draw_line(60, 40, 572)
    return 80


def finish_banner(sheet: Sheet, total: int) -> None:
    setting = sheet.setting
    sheet.write(44, 762, f"Printed by {write_clinician(setting.clinicians[3])} [{setting.member[-4:]}]", 8)
    sheet.write_right(572, 762, f"Page {sheet.number} of {total}", 8)


def begin_slashes(sheet: Sheet) -> float:
    setting = sheet.setting
    sheet.write_middle(84, setting.card.institution.name.upper(), 11, bold=True)
    sheet.write_middle(98, setting.title.upper(), 10)
    sheet.write(54, 120, f"ATTENDING: {write_clinician(setting.clinicians[0]).upper()}", 9)
    sheet.write(330, 120, f"DICTATED BY: {write_clinician(setting.clinicians[1]).upper()}", 9)
    sheet.write(54, 132, f"CONTACT: {setting.write_relative().upper()} ({setting.relative_word.upper()})", 9)
    return 158


def finish_slashes(sheet: Sheet, total: int) -> None:
    """A line of values between slashes over every page."""
    card = sheet.card
    name = sheet.show_name("last_first_tight_capitals")
    put(
        sheet,
        54,
        40,
        f"{name} / {card.write_label('DOB')} {sheet.show_birth('mdy')} / {card.age}{card.person.sex} / "
        f"MR# {sheet.show_number()} / ACCT {sheet.show_number('account')}",
        504,
        9,
        bold=True,
    )
    sheet.write(54, 54, f"{card.institution.name.upper()}    {sheet.setting.seen}    PG {sheet.number}/{total}", 8)
    sheet.draw_line(60)


def begin_combined(sheet: Sheet) -> float:
    """Labels joined by slashes, values joined by slashes."""
    card, setting = sheet.card, sheet.setting
    sheet.write(54, 52, card.institution.name, 15, bold=True)
    sheet.write(54, 65, card.institution.address, 8)
    sheet.draw_line(72)
    widths, joint = (150, 354), choose(sheet, " / ", " | ")
    y = 82
    for label, text in (
        (
            joint.join((choose(sheet, "Patient Name", "Name", "Pt Name"), "DOB", "MRN")),
            joint.join((sheet.show_name("last_first"), sheet.show_birth("mdy"), sheet.show_number())),
        ),
        (joint.join(("Age", "Sex")), joint.join((f"{card.age} years", SEXES[card.person.sex]))),
        (joint.join(("Provider", "Date of Service")), joint.join((f"{setting.clinicians[0]}, DO", setting.seen))),
        (
            joint.join(("Subscriber", "Member ID")),
            joint.join((setting.write_relative("first_last"), setting.member)),
        ),
    ):
        y = put_cells(sheet, 54, y, widths, (label, text))
    sheet.write(54, y + 26, setting.title, 13, bold=True)
    return y + 50


def follow_combined(sheet: Sheet) -> float:
    put(
        sheet,
        54,
        46,
        f"Name/DOB/MRN: {sheet.show_name('last_first')} / {sheet.show_birth('mdy')} / {sheet.show_number()}",
        440,
        9,
    )
    sheet.write_right(558, 46, f"pg. {sheet.number}", 9)
    sheet.draw_line(52)
    return 78


def begin_reference_laboratory(sheet: Sheet) -> float:
    """Three blocks side by side: patient, specimen, client."""
    card, setting = sheet.card, sheet.setting
    sheet.write(54, 50, "MERIDIAN REFERENCE LABORATORIES", 14, bold=True, face="sans")
    sheet.write(54, 62, f"Report Status: Final    {setting.seen} 18:42", 8.5, face="sans")
    for x in (54, 222, 390):
        sheet.draw_box(x, 72, 168, 94, weight=0.6)
        sheet.page.draw_rect((x, 72, x + 168, 86), color=(0, 0, 0), width=0.6, fill=(0.85, 0.85, 0.85))
    for x, text in ((58, "Patient Information"), (226, "Specimen Information"), (394, "Client Information")):
        sheet.write(x, 82, text, 8.5, bold=True, face="sans")
    put(sheet, 58, 100, sheet.show_name("last_first_tight_capitals"), 160, 9.5, bold=True)
    put(sheet, 58, 116, f"{card.write_label('DOB')}: {sheet.show_birth('mdy')}  AGE: {card.age}", 160, 8.5)
    put(sheet, 58, 128, f"Gender: {card.person.sex}   Fasting: N", 160, 8.5)
    put(sheet, 58, 140, f"Patient ID: {sheet.show_number()}", 160, 8.5)
    put(sheet, 58, 152, "Phone: 555.871.2204", 160, 8.5)
    for row, text in enumerate(
        (
            f"Specimen: {sheet.show_number('accession')}",
            f"Requisition: {setting.rng.randint(1000000, 9999999)}",
            f"Collected: {setting.seen} / 08:10",
            f"Received:  {setting.seen} / 11:20",
            f"Reported:  {setting.seen} / 18:42",
        )
    ):
        put(sheet, 226, 100 + row * 13, text, 160, 8.5)
    for row, text in enumerate(
        (
            f"Client #: {setting.rng.randint(10000, 99999)}",
            f"{write_clinician(setting.clinicians[0]).upper()}",
            card.institution.name,
            setting.street,
            f"NPI: 1{setting.rng.randint(10**8, 10**9 - 1)}",
        )
    ):
        put(sheet, 394, 100 + row * 13, text, 160, 8.5, face="sans")
    sheet.write(54, 188, "Test Name   Result   Flag   Units   Reference Range", 9, bold=True)
    sheet.draw_line(193)
    return 212


def finish_reference_laboratory(sheet: Sheet, total: int) -> None:
    director = f"Laboratory Director: {sheet.setting.clinicians[2]}, M.D."
    sheet.write(54, 764, f"CLIENT SERVICES: 555.697.8378   {director}   PAGE {sheet.number} OF {total}", 7)


def begin_captioned_laboratory(sheet: Sheet) -> float:
    """A ruled grid with the caption in each cell over its value."""
    card, setting = sheet.card, sheet.setting
    sheet.write(54, 48, card.institution.name, 12, bold=True)
    sheet.write(54, 60, "Department of Laboratory Medicine", 9)
    sheet.write_right(558, 48, "CUMULATIVE RESULTS", 10, bold=True)
    y = put_captioned(
        sheet,
        54,
        70,
        (190, 104, 80, 130),
        (
            (choose(sheet, "PATIENT", "PATIENT NAME", "NAME"), sheet.show_name("last_first_capitals")),
            (choose(sheet, "BIRTHDATE", "DATE OF BIRTH", "D.O.B."), sheet.show_birth("mdy")),
            ("AGE / SEX", f"{card.age} / {card.person.sex}"),
            (choose(sheet, "HOSPITAL NO.", "MED REC NO.", "UNIT NUMBER"), sheet.show_number()),
        ),
    )
    y = put_captioned(
        sheet,
        54,
        y,
        (130, 164, 210),
        (
            ("LAB NO.", sheet.show_number("accession")),
            ("COLLECTED", f"{setting.seen} 06:30"),
            ("REQUESTING CLINICIAN", setting.clinicians[0]),
        ),
    )
    return y + 24


def finish_captioned_laboratory(sheet: Sheet, total: int) -> None:
    sheet.draw_line(742)
    sheet.write_right(558, 754, f"Page {sheet.number} of {total}", 8)
    sheet.write(54, 764, f"Authorised: Dr {sheet.setting.clinicians[3]}, Chemical Pathologist", 7.5)


def begin_imaging(sheet: Sheet) -> float:
    """Two columns whose labels stand flush right."""
    card, setting = sheet.card, sheet.setting
    sheet.write_middle(48, card.institution.name, 14, bold=True)
    sheet.write_middle(60, "Department of Diagnostic Imaging", 9)
    sheet.write_middle(71, card.institution.address, 8)
    sheet.write_middle(92, setting.title.upper(), 11, bold=True)
    left = (
        (choose(sheet, "Patient Name:", "Patient:", "Name:"), sheet.show_name("last_first")),
        (choose(sheet, "Date of Birth:", "Birth Date:", "DOB:"), sheet.show_birth("abbreviated")),
        (choose(sheet, "Med Rec #:", "Medical Record No:", "MR Number:"), sheet.show_number()),
        ("Sex / Age:", f"{card.person.sex} / {card.age}Y"),
        ("Patient Class:", "Outpatient"),
    )
    right = (
        ("Exam Date:", setting.seen),
        ("Accession No:", sheet.show_number("accession")),
        ("Referring Physician:", f"{setting.clinicians[0]}, MD"),
        ("Radiologist:", f"{setting.clinicians[1]}, MD"),
        ("Technologist:", f"{setting.clinicians[3]}, RT(R)"),
    )
    for column, edge, width in ((left, 142, 170), (right, 412, 150)):
        for row, (label, text) in enumerate(column):
            sheet.write_right(edge, 112 + row * 13, label, 9, bold=True)
            put(sheet, edge + 6, 112 + row * 13, text, width, 9)
    sheet.draw_line(100)
    sheet.draw_line(172)
    return 192


def follow_imaging(sheet: Sheet) -> float:
    sheet.write_right(142, 44, "Patient Name:", 9, bold=True)
    put(sheet, 148, 44, sheet.show_name("last_first"), 170, 9)
    sheet.write_right(142, 57, "Date of Birth:", 9, bold=True)
    sheet.write(148, 57, sheet.show_birth("abbreviated"), 9)
    sheet.write_right(412, 44, "Med Rec #:", 9, bold=True)
    sheet.write(418, 44, sheet.show_number(), 9)
    sheet.write_right(412, 57, "Accession No:", 9, bold=True)
    sheet.write(418, 57, sheet.show_number("accession"), 9)
    sheet.draw_line(64)
    return 86


def begin_case_box(sheet: Sheet) -> float:
    """The box of a pathology report: patient left, case right, submitting physician below."""
    card, setting = sheet.card, sheet.setting
    sheet.write(54, 50, card.institution.name, 13, bold=True)
    sheet.write(54, 63, f"Pathology Services    {card.institution.address}", 7.5)
    sheet.write(54, 84, setting.title, 14, bold=True)
    sheet.write_right(558, 84, f"Case: {sheet.show_number('accession')}", 12, bold=True)
    sheet.draw_box(54, 92, 504, 96, weight=1.2)
    sheet.page.draw_line((306, 92), (306, 188), width=0.6)
    put_rows(
        sheet,
        60,
        106,
        (
            (choose(sheet, "Patient:", "Patient Name:", "PATIENT"), sheet.show_name("last_first_capitals")),
            ("MRN/Chart #:", sheet.show_number()),
            ("DOB (Age):", f"{sheet.show_birth('mdy_short')} (Age: {card.age})"),
            ("Gender:", SEXES[card.person.sex]),
            ("Guarantor:", setting.write_relative()),
            ("Account:", sheet.show_number("account")),
        ),
        74,
        240,
    )
    put_rows(
        sheet,
        312,
        106,
        (
            ("Taken:", setting.seen),
            ("Received:", setting.seen),
            ("Submitted by:", f"{setting.clinicians[0]}, MD"),
            ("Pathologist:", f"{setting.clinicians[1]}, MD, PhD"),
            ("Copy to:", f"{setting.clinicians[2]}, MD"),
        ),
        74,
        240,
    )
    return 212


def finish_case_box(sheet: Sheet, total: int) -> None:
    if sheet.number > 1:
        put(
            sheet,
            54,
            46,
            f"{sheet.show_name('last_first_capitals')}      {sheet.show_birth('mdy_short')}      "
            f"MRN/Chart # {sheet.show_number()}      Case {sheet.show_number('accession')}",
            504,
            9,
            bold=True,
        )
        sheet.draw_line(52)
    sheet.write_middle(762, f"- {sheet.number} of {total} -", 8)


def begin_company(sheet: Sheet) -> float:
    """A genomic company's first page: captions in small capitals, values below, three columns."""
    card, setting = sheet.card, sheet.setting
    sheet.page.draw_rect((0, 0, WIDTH, 12), color=None, fill=(0.1, 0.45, 0.45))
    sheet.write(54, 48, "helixara", 22, bold=True)
    sheet.write(152, 48, setting.title, 12)
    sheet.draw_line(60, weight=0.4)
    columns = (
        (
            "PATIENT",
            (
                ("Name", sheet.show_name("first_last")),
                ("Date of Birth", sheet.show_birth("abbreviated_month_first")),
                ("Sex at Birth", SEXES[card.person.sex]),
                ("Medical Record #", sheet.show_number()),
            ),
        ),
        (
            "SPECIMEN",
            (
                ("Specimen ID", sheet.show_number("accession")),
                ("Collection Date", setting.seen),
                ("Received", setting.seen),
                ("Type", "Whole blood / FFPE block"),
            ),
        ),
        (
            "ORDERED BY",
            (
                ("Physician", f"{setting.clinicians[0]}, MD"),
                ("Institution", card.institution.name),
                ("Additional Recipient", f"{setting.clinicians[1]}, MD"),
                ("Laboratory Director", f"{setting.clinicians[2]}, PhD"),
            ),
        ),
    )
    for column, (heading, cells) in enumerate(columns):
        x = 54 + column * 172
        sheet.write(x, 76, heading, 8.5, bold=True)
        for row, (caption, text) in enumerate(cells):
            sheet.page.insert_text((x, 92 + row * 26), caption, fontname="helv", fontsize=7, color=(0.4, 0.4, 0.4))
            put(sheet, x, 103 + row * 26, text, 160, 9)
    sheet.draw_line(192, weight=0.4)
    return 214


def finish_company(sheet: Sheet, total: int) -> None:
    sheet.draw_line(738, weight=0.4)
    put(
        sheet,
        54,
        750,
        f"Patient: {sheet.show_name('first_last')}    DOB: {sheet.show_birth('abbreviated_month_first')}    "
        f"Medical Record #: {sheet.show_number()}",
        430,
        8,
    )
    sheet.write_right(558, 750, f"{sheet.number} / {total}", 8)
    sheet.write(
        54,
        761,
        f"Helixara Genomics, Inc.   CLIA 99D2104417   Electronically signed by {sheet.setting.clinicians[2]}, PhD",
        7,
    )


def begin_transcription(sheet: Sheet) -> float:
    """A typed discharge summary, capitals and colons."""
    card, setting = sheet.card, sheet.setting
    sheet.write_middle(54, card.institution.name.upper(), 11, bold=True)
    sheet.write_middle(67, "DISCHARGE SUMMARY", 10)
    y = 92.0
    for left, right in (
        (
            ("PATIENT NAME:", sheet.show_name("last_first_capitals")),
            (choose(sheet, "MED REC #:", "MR#:", "UNIT NO:"), sheet.show_number()),
        ),
        (("DATE OF BIRTH:", sheet.show_birth("mdy")), ("ACCOUNT #:", sheet.show_number("account"))),
        (("ADMITTED:", setting.seen), ("DISCHARGED:", setting.seen)),
        (("ATTENDING:", f"{setting.clinicians[0].upper()}, M.D."), ("ROOM:", "0412-B")),
        (("NEXT OF KIN:", setting.write_relative().upper()), ("RELATION:", setting.relative_word.upper())),
    ):
        put(sheet, 60, y, left[0], 92, 9.5)
        put(sheet, 154, y, left[1], 190, 9.5)
        put(sheet, 356, y, right[0], 76, 9.5)
        put(sheet, 434, y, right[1], 124, 9.5)
        y += 14
    return y + 16


def follow_transcription(sheet: Sheet) -> float:
    put(sheet, 60, 48, f"{sheet.show_name('last_first_capitals')}", 300, 9.5)
    sheet.write(60, 61, sheet.show_number(), 9.5)
    sheet.write(60, 74, f"Page {sheet.number}", 9.5)
    return 102


def finish_transcription(sheet: Sheet, total: int) -> None:
    if sheet.number == total:
        setting = sheet.setting
        initials = "".join(word[0] for word in setting.clinicians[3].split())
        sheet.write(60, 758, f"D: {setting.seen}  T: {setting.seen}  {initials.lower()}/JOB 40718", 8)


def begin_exchange(sheet: Sheet) -> float:
    """A rendered exchange document: a row of headings, a row of values."""
    card, setting = sheet.card, sheet.setting
    sheet.write(54, 56, "Continuity of Care Document", 16, bold=True)
    sheet.write(54, 70, f"Created on {write_day(card.seen, 'long')} by {card.institution.name}", 8.5)
    y = put_cells(
        sheet,
        54,
        80,
        (150, 100, 64, 90, 100),
        (
            choose(sheet, "Patient", "Patient Name", "Name"),
            choose(sheet, "Date of Birth", "Birthdate", "DOB"),
            choose(sheet, "Sex", "Gender"),
            "Race",
            choose(sheet, "Patient ID", "Medical Record Number", "Identifier"),
        ),
        bold=True,
        shade=0.9,
    )
    y = put_cells(
        sheet,
        54,
        y,
        (150, 100, 64, 90, 100),
        (
            sheet.show_name("first_last"),
            sheet.show_birth("long"),
            SEXES[card.person.sex],
            "Declined",
            sheet.show_number(),
        ),
    )
    y = put_cells(
        sheet,
        54,
        y + 8,
        (130, 124, 130, 120),
        ("Author", "Encounter", "Informant / Relationship", "Custodian"),
        bold=True,
        shade=0.9,
    )
    y = put_cells(
        sheet,
        54,
        y,
        (130, 124, 130, 120),
        (
            f"{setting.clinicians[0]}, MD",
            f"{sheet.show_number('visit')} ({setting.seen})",
            f"{setting.write_relative('first_last')} / {setting.relative_word}",
            card.institution.name,
        ),
    )
    sheet.write(54, y + 24, setting.title, 12, bold=True)
    return y + 46


def finish_exchange(sheet: Sheet, total: int) -> None:
    sheet.write(54, 36, f"Continuity of Care Document - {sheet.show_name('first_last')}", 7.5)
    sheet.write_right(558, 760, f"{sheet.number}/{total}", 7.5)


def begin_clinic_letter(sheet: Sheet) -> float:
    """A clinic letter as hospitals write them to a family doctor."""
    card, setting = sheet.card, sheet.setting
    sheet.write_right(558, 52, card.institution.name, 14, bold=True)
    sheet.write_right(558, 65, card.institution.address, 8)
    sheet.write_right(558, 78, f"Consultant: Dr {setting.clinicians[0]}", 9)
    sheet.write_right(558, 90, f"Secretary: {setting.clinicians[3]}", 9)
    y = 96.0
    for line in (f"Dr {setting.clinicians[1]}", "The Surgery", setting.street, "Lower Haddon"):
        sheet.write(60, y, line)
        y += 13
    sheet.write(60, y + 14, f"Date typed: {write_day(card.seen, 'long_day_first')}", 9.5)
    sheet.write(60, y + 40, f"Dear Dr {setting.clinicians[1].split()[-1]}")
    opening = choose(sheet, "Re:", "RE:", "Regarding:")
    street = f"{setting.rng.randint(2, 90)} {setting.rng.choice(setting.pool.streets)}, Upper Haddon"
    put(sheet, 60, y + 62, f"{opening}  {sheet.show_name('titled_surname')}", 490, bold=True)
    put(
        sheet,
        60,
        y + 76,
        f"{choose(sheet, 'd.o.b.', 'DoB:', 'Date of birth')} {sheet.show_birth('long_day_first')}    "
        f"{choose(sheet, 'Hosp No:', 'Hospital number', 'Our ref:')} {sheet.show_number()}",
        490,
        bold=True,
    )
    put(sheet, 60, y + 90, street, 490, bold=True)
    return y + 114


def follow_clinic_letter(sheet: Sheet) -> float:
    card = sheet.card
    put(
        sheet,
        60,
        50,
        f"{sheet.show_name('titled_surname')}    {sheet.show_birth('long_day_first')}    {sheet.show_number()}",
        400,
        9,
    )
    sheet.write_right(552, 50, f"/{sheet.number}    {write_day(card.seen, 'abbreviated')}", 9)
    return 80


def begin_narrative(sheet: Sheet) -> float:
    """The name stands only in running text."""
    card, setting = sheet.card, sheet.setting
    sheet.write(60, 56, card.institution.name, 15, bold=True)
    sheet.write(60, 70, card.institution.address, 8)
    sheet.draw_line(78)
    sheet.write(60, 100, f"{write_day(card.seen, 'long')}    {setting.title}", 10)
    noun = {"F": "lady", "M": "gentleman"}[card.person.sex]
    doctor = setting.clinicians[1]
    name, manner = sheet.show_name("titled"), setting.rng.randrange(4)
    if manner == 0:
        words = (
            f"Thank you for asking me to see {name}, a pleasant {card.age}-year-old {noun} (DOB {sheet.show_birth('mdy')}; chart "
            f"{sheet.show_number()}), in my clinic. Dr. {doctor} has followed the patient before."
        )
    elif manner == 1:
        words = (
            f"I reviewed {name}, born on {sheet.show_birth('long')}, today. The {setting.relative_word}, "
            f"{setting.write_relative('first_last')}, helped with the history. The hospital number is {sheet.show_number()}."
        )
    elif manner == 2:
        words = (
            f"This letter concerns your patient {name} (date of birth: {sheet.show_birth('long_day_first')}, MRN {sheet.show_number()}), "
            f"whom Dr. {doctor} kindly referred."
        )
    else:
        words = (
            f"To whom it may concern: {name}, whose birth date is {sheet.show_birth('long')}, has been under my care and that of "
            f"Dr. {doctor} since {card.seen.year - 1}."
        )
    return sheet.write_wrapped(60, 124, 490, words) + 6


def print_plate(sheet: Sheet, x: float, y: float) -> None:
    """An embossed plate's imprint: bare values in capitals, hardly a label."""
    card, setting = sheet.card, sheet.setting
    put(sheet, x, y, sheet.show_name("last_first_tight_capitals"), 196, 10.5, bold=True, face="mono")
    put(sheet, x, y + 13, f"{sheet.show_number()}   {card.person.sex}   {card.age}Y", 196, 9.5, face="mono")
    put(sheet, x, y + 25, f"B: {sheet.show_birth('mdy')}   ADM {setting.seen}", 196, 9.5, face="mono")
    put(sheet, x, y + 37, f"DR {write_clinician(setting.clinicians[0]).upper()}", 196, 9.5, face="mono")


def begin_plate(sheet: Sheet) -> float:
    sheet.write(54, 50, sheet.card.institution.name, 11, bold=True)
    sheet.write(54, 64, sheet.setting.title, 10)
    sheet.write(54, 78, "Imprint patient plate at right", 7)
    print_plate(sheet, 358, 44)
    sheet.draw_line(92)
    return 116


def finish_plate(sheet: Sheet, total: int) -> None:
    sheet.write(54, 762, f"Form 3316 (rev. 4/19)    Chart copy    {sheet.number} of {total}", 7)


def begin_federal(sheet: Sheet) -> float:
    sheet.draw_box(54, 40, 504, 24, weight=1)
    sheet.page.draw_line((200, 40), (200, 64), width=1)
    sheet.write(60, 56, "MEDICAL RECORD", 10, bold=True)
    sheet.write(214, 56, sheet.setting.title.upper(), 11, bold=True)
    if sheet.number > 1:
        return 86
    sheet.write(60, 82, f"LOCAL TITLE: {sheet.setting.title.upper()}", 9)
    sheet.write(60, 94, f"DATE OF NOTE: {sheet.setting.seen}@14:05    AUTHOR: {sheet.setting.clinicians[0].upper()}", 9)
    sheet.write(60, 106, f"COSIGNER: {sheet.setting.clinicians[1].upper()}    STATUS: COMPLETED", 9)
    return 132


def finish_federal(sheet: Sheet, total: int) -> None:
    """The identification block in the lower left corner of a standard form."""
    card = sheet.card
    sheet.draw_box(54, 690, 300, 72, weight=0.8)
    sheet.draw_box(354, 690, 204, 72, weight=0.8)
    sheet.write(
        58, 698, "PATIENT'S IDENTIFICATION (Name - last, first, middle; ID No.; date of birth)", 6.5, face="sans"
    )
    put(sheet, 62, 714, sheet.show_name("last_first_tight_capitals"), 284, 10, bold=True)
    put(sheet, 62, 727, f"{sheet.show_number()}    {sheet.show_birth('abbreviated_capitals')}", 284, 9.5)
    sheet.write(62, 740, f"{SEXES[card.person.sex].upper()}  SC: NO", 9)
    put(sheet, 62, 753, card.institution.name.upper(), 284, 8.5)
    sheet.write(358, 698, "REGISTER NO.", 6.5, face="sans")
    sheet.write(362, 714, sheet.show_number("visit"), 9.5)
    sheet.write(358, 742, "STANDARD FORM 509 (REV. 5-99)", 6.5, face="sans")
    sheet.write(358, 753, f"PAGE {sheet.number} OF {total}", 8)


def begin_trust(sheet: Sheet) -> float:
    """A trust's form: surname and forenames in cells of their own."""
    card, setting = sheet.card, sheet.setting
    sheet.write_right(558, 48, card.institution.name, 13, bold=True)
    sheet.write_right(558, 60, "Patient Services", 9)
    sheet.write(54, 60, setting.title, 14, bold=True)
    family, given = sheet.show_split_name()
    y = 74.0
    for left, right in (
        (
            (choose(sheet, "Surname", "Family name", "Last name"), family),
            (choose(sheet, "Forename(s)", "First name(s)", "Given names"), given),
        ),
        (
            (choose(sheet, "Date of birth", "D.o.B.", "DOB"), sheet.show_birth("abbreviated")),
            ("Sex", SEXES[card.person.sex]),
        ),
        (
            (choose(sheet, "Hospital No", "Hosp. number", "Trust ID"), sheet.show_number()),
            ("NHS No", show_national_number(sheet, "nhs", "999 999 9999")),
        ),
        (("Consultant", f"Dr {setting.clinicians[0]}"), ("Ward / Clinic", "Oncology OPD")),
        (
            ("GP", f"Dr {setting.clinicians[1]}"),
            ("Next of kin", f"{setting.write_relative('first_last')} ({setting.relative_word})"),
        ),
    ):
        y = put_cells(sheet, 54, y, (82, 170, 82, 170), (*left, *right))
    return y + 24


def finish_trust(sheet: Sheet, total: int) -> None:
    if sheet.number > 1:
        put(
            sheet,
            54,
            44,
            f"{sheet.show_name('surname_first')}   DoB {sheet.show_birth('abbreviated')}   Hosp No {sheet.show_number()}",
            504,
            9,
            bold=True,
        )
        sheet.draw_line(50)
    sheet.write_middle(762, f"Page {sheet.number} of {total}    OFFICIAL-SENSITIVE", 7.5)


def begin_provincial(sheet: Sheet) -> float:
    """A provincial health authority's report with a health number."""
    card, setting = sheet.card, sheet.setting
    sheet.write(54, 48, card.institution.name, 13, bold=True)
    sheet.write(54, 60, card.institution.address, 8)
    sheet.draw_line(68, weight=1.5)
    put_rows(
        sheet,
        54,
        82,
        (
            ("Patient:", sheet.show_name("last_first_capitals")),
            ("DOB (yyyy-mm-dd):", sheet.show_birth("iso")),
            ("Age / Gender:", f"{card.age} yr / {SEXES[card.person.sex]}"),
            (choose(sheet, "PHN:", "HCN:", "Health Card #:"), show_national_number(sheet, "health", "9999999999")),
        ),
        94,
        270,
    )
    put_rows(
        sheet,
        336,
        82,
        (
            (choose(sheet, "MRN:", "Chart No.:", "Facility ID:"), sheet.show_number()),
            ("Encounter:", sheet.show_number("visit")),
            ("Attending:", setting.clinicians[0]),
            ("Family MD:", setting.clinicians[1]),
        ),
        72,
        222,
    )
    sheet.draw_line(130)
    sheet.write(54, 148, setting.title, 12, bold=True)
    sheet.write(54, 161, f"Service date: {card.seen.isoformat()}    Copies to: {setting.clinicians[2]}", 8.5)
    return 184


def finish_provincial(sheet: Sheet, total: int) -> None:
    sheet.draw_line(740)
    if sheet.number > 1:
        put(
            sheet,
            54,
            752,
            f"Patient: {sheet.show_name('last_first_capitals')}    MRN: {sheet.show_number()}    DOB: {sheet.show_birth('iso')}",
            410,
            8,
        )
    sheet.write_right(558, 752, f"Page {sheet.number} of {total}", 8)
    sheet.write(54, 763, "If you received this in error call Health Records at 555-318-2299.", 7)


def affix_label(sheet: Sheet, x: float, y: float) -> None:
    """A bradma label on the place that the form leaves for it."""
    card, setting = sheet.card, sheet.setting
    sheet.draw_box(x, y, 236, 84, weight=0.5)
    sheet.write(x + 4, y + 9, "AFFIX PATIENT LABEL HERE", 6)
    family, given = sheet.show_split_name()
    put(sheet, x + 6, y + 23, f"{choose(sheet, 'UR No', 'URN', 'UMRN')}: {sheet.show_number()}", 222, 9.5, bold=True)
    put(sheet, x + 6, y + 35, f"Surname: {family}", 222, 9.5, bold=True)
    put(sheet, x + 6, y + 47, f"Given Names: {given}", 222, 9.5)
    put(sheet, x + 6, y + 59, f"DOB: {sheet.show_birth('abbreviated')}   Sex: {card.person.sex}", 222, 9.5)
    put(sheet, x + 6, y + 71, f"{setting.street}    Adm: {setting.seen}", 222, 8)
    put(sheet, x + 6, y + 80, f"Dr: {write_clinician(setting.clinicians[0])}", 222, 7.5)


def begin_affixed(sheet: Sheet) -> float:
    sheet.write(54, 48, sheet.card.institution.name, 11, bold=True)
    sheet.write(54, 66, sheet.setting.title.upper(), 12, bold=True)
    sheet.write(54, 84, f"Facility: {choose(sheet, 'Main campus', 'Day unit', 'Theatre 3')}", 9)
    affix_label(sheet, 322, 30)
    sheet.draw_line(124)
    return 146


def finish_affixed(sheet: Sheet, total: int) -> None:
    sheet.write(54, 762, f"MR 410    DO NOT WRITE IN THIS BINDING MARGIN    Page {sheet.number} of {total}", 7)


def fill_lines(
    sheet: Sheet, y: float, fields: tuple[tuple[str, str], ...], widths: tuple[float, ...], x: float = 54
) -> float:
    """Values on a line, each with a small caption under the line."""
    for width, (caption, text) in zip(widths, fields, strict=True):
        put(sheet, x + 3, y, text, width - 16, 10, face="mono")
        sheet.draw_line(y + 3, x, x + width - 10, 0.6)
        put(sheet, x, y + 11, caption, width - 10, 7)
        x += width
    return y + 32


def begin_filled_lines(sheet: Sheet) -> float:
    """A form in which the caption stands beneath what is filled in."""
    card, setting = sheet.card, sheet.setting
    sheet.write_middle(50, card.institution.name, 13, bold=True)
    sheet.write_middle(64, setting.title, 11)
    family, given = sheet.show_split_name()
    y = fill_lines(
        sheet,
        96,
        (
            (choose(sheet, "Patient's last name", "Last name", "Patient last name"), family),
            (choose(sheet, "First name, middle initial", "First name and M.I."), given),
            (choose(sheet, "Date of birth", "Birth date (month / day / year)"), sheet.show_birth("mdy")),
        ),
        (180, 180, 144),
    )
    y = fill_lines(
        sheet,
        y,
        (
            ("Medical record number", sheet.show_number()),
            ("Sex", card.person.sex),
            ("Street address", setting.street),
            ("Telephone", "555-209-4471"),
        ),
        (140, 44, 200, 120),
    )
    y = fill_lines(
        sheet,
        y,
        (
            ("Name of insured (if other than patient)", setting.write_relative("first_last")),
            ("Relationship", setting.relative_word),
            ("Treating physician", setting.clinicians[0]),
        ),
        (210, 100, 194),
    )
    return y + 10


def follow_filled_lines(sheet: Sheet) -> float:
    return fill_lines(
        sheet,
        48,
        (
            ("Patient name", sheet.show_name("last_first")),
            ("Date of birth", sheet.show_birth("mdy")),
            ("Medical record number", sheet.show_number()),
        ),
        (220, 140, 144),
    )


def begin_numbered_form(sheet: Sheet) -> float:
    """Numbered items of a claim-like form; the insured is asked for beside the patient."""
    card, setting = sheet.card, sheet.setting
    sheet.write(54, 50, card.institution.name, 12, bold=True)
    sheet.write(54, 63, f"{setting.title} - face sheet", 9)
    y = put_captioned(
        sheet,
        54,
        72,
        (236, 130, 138),
        (
            ("1. PATIENT'S NAME (Last Name, First Name, Middle Initial)", sheet.show_name("last_first_capitals")),
            ("2. PATIENT'S BIRTH DATE", sheet.show_birth("mdy")),
            ("3. SEX / AGE", f"{card.person.sex} / {card.age}"),
        ),
    )
    y = put_captioned(
        sheet,
        54,
        y,
        (236, 130, 138),
        (
            ("4. INSURED'S NAME (Last Name, First Name, Middle Initial)", setting.write_relative().upper()),
            ("5. INSURED'S DATE OF BIRTH", write_day(setting.relative_born, "mdy")),
            ("6. INSURED'S I.D. NUMBER", setting.member),
        ),
    )
    y = put_captioned(
        sheet,
        54,
        y,
        (126, 110, 130, 138),
        (
            ("7. MEDICAL RECORD NO.", sheet.show_number()),
            ("8. PATIENT'S ACCOUNT NO.", sheet.show_number("account")),
            ("9. DATE OF SERVICE", setting.seen),
            ("10. REFERRING PROVIDER", write_clinician(setting.clinicians[0]).upper()),
        ),
    )
    return y + 24


def follow_numbered_form(sheet: Sheet) -> float:
    y = put_captioned(
        sheet,
        54,
        34,
        (236, 130, 138),
        (
            ("PATIENT'S NAME", sheet.show_name("last_first_capitals")),
            ("BIRTH DATE", sheet.show_birth("mdy")),
            ("MEDICAL RECORD NO.", sheet.show_number()),
        ),
    )
    return y + 24


def begin_address(sheet: Sheet) -> float:
    """Blocks of several lines with an address: the patient left, the guarantor right."""
    card, setting = sheet.card, sheet.setting
    sheet.write(54, 50, card.institution.name, 14, bold=True)
    sheet.write(54, 62, card.institution.address, 8)
    sheet.write_right(558, 50, setting.title, 11)
    sheet.draw_line(70)
    sheet.write(54, 88, "Patient:", 9.5, bold=True)
    for row, text in enumerate(
        (
            sheet.show_name("first_last"),
            setting.street,
            "Unit 4B",
            "Home: (555) 270-1139",
            f"{choose(sheet, 'Date of Birth', 'DOB', 'Born')}: {sheet.show_birth('mdy')}",
            f"{choose(sheet, 'Chart #', 'Patient No.', 'MRN')}: {sheet.show_number()}",
        )
    ):
        put(sheet, 106, 88 + row * 12.5, text, 176, 9.5)
    sheet.write(300, 88, choose(sheet, "Guarantor:", "Responsible Party:", "Bill To:"), 9.5, bold=True)
    for row, text in enumerate(
        (
            setting.write_relative("first_last"),
            setting.street,
            f"Date of Birth: {write_day(setting.relative_born, 'mdy')}",
            f"{setting.insurer}   ID {setting.member}",
            f"Visit date: {setting.seen}",
            f"Provider: {setting.clinicians[0]}, MD",
        )
    ):
        put(sheet, 394, 88 + row * 12.5, text, 164, 9.5)
    return 184


def follow_address(sheet: Sheet) -> float:
    card = sheet.card
    put(sheet, 54, 48, f"Patient: {sheet.show_name('first_last')}", 240, 9)
    put(
        sheet, 300, 48, f"{card.write_label('DOB')}: {sheet.show_birth('mdy')}   Chart #: {sheet.show_number()}", 258, 9
    )
    return 76


def begin_visit_summary(sheet: Sheet) -> float:
    """A summary the patient takes home."""
    card, setting = sheet.card, sheet.setting
    sheet.write(54, 54, "AFTER VISIT SUMMARY", 18, bold=True)
    put(
        sheet,
        54,
        72,
        f"{sheet.show_name('first_last')}   {choose(sheet, 'DOB', 'Date of birth', 'Birthdate')}: "
        f"{sheet.show_birth('mdy_short')}   MRN: {sheet.show_number()}",
        504,
        10,
    )
    sheet.draw_line(80, weight=2)
    sheet.write(54, 98, f"{setting.seen}   {card.institution.name}   You saw {setting.clinicians[0]}, MD", 9)
    sheet.write(54, 111, f"Primary care: {setting.clinicians[1]}, NP", 9)
    sheet.write(54, 134, setting.title, 12, bold=True)
    return 156


def finish_visit_summary(sheet: Sheet, total: int) -> None:
    put(
        sheet,
        54,
        758,
        f"{sheet.show_name('first_last')} (MRN: {sheet.show_number()}) · DOB: {sheet.show_birth('mdy_short')} · "
        f"Printed {sheet.setting.seen}",
        420,
        8,
    )
    sheet.write_right(558, 758, f"Page {sheet.number} of {total}", 8)


def begin_registration(sheet: Sheet) -> float:
    """A ruled sheet with a label in every other cell, relatives included."""
    card, setting = sheet.card, sheet.setting
    sheet.write_middle(48, card.institution.name, 13, bold=True)
    sheet.write_middle(61, f"{setting.title} - Patient Demographics", 9)
    y = 72.0
    born = write_day(setting.relative_born, "mdy")
    for left, right in (
        (
            (choose(sheet, "Legal Name", "Patient Legal Name", "Full Name"), sheet.show_name("last_first")),
            (choose(sheet, "Medical Record #", "MRN", "MR No."), sheet.show_number()),
        ),
        (
            (choose(sheet, "Birth Date", "DOB / Age", "Date of Birth"), f"{sheet.show_birth('dashes')} ({card.age})"),
            ("Birth Sex", SEXES[card.person.sex]),
        ),
        (
            ("Emergency Contact" if card.person.adult else "Mother", setting.write_relative("first_last")),
            ("Contact DOB", born),
        ),
        (("Subscriber", setting.write_relative()), ("Policy #", setting.member)),
        (("Attending", f"{setting.clinicians[0]}, MD"), ("Admit Date", setting.seen)),
    ):
        y = put_cells(sheet, 54, y, (104, 164, 90, 146), (*left, *right), 16)
    return y + 24


def finish_registration(sheet: Sheet, total: int) -> None:
    if sheet.number > 1:
        put_cells(
            sheet,
            54,
            32,
            (214, 130, 160),
            (
                sheet.show_name("last_first"),
                f"DOB {sheet.show_birth('dashes')}",
                f"MRN {sheet.show_number()}",
            ),
        )
    sheet.write_right(558, 762, f"{sheet.number} of {total}", 8)


def begin_margin_line(sheet: Sheet) -> float:
    card, setting = sheet.card, sheet.setting
    sheet.write(54, 50, card.institution.name, 12, bold=True)
    sheet.write(54, 62, card.institution.address, 8)
    sheet.write_middle(88, setting.title.upper(), 12, bold=True)
    sheet.write(
        54, 106, f"Dictating: {setting.clinicians[0]}, MD    Date: {setting.seen}    Dept: Hematology/Oncology", 9
    )
    return 130


def finish_margin_line(sheet: Sheet, total: int) -> None:
    """The identity only in two lines at the foot of each page."""
    card = sheet.card
    sheet.draw_box(54, 736, 504, 30, weight=0.6)
    label = choose(sheet, "Pt:", "Patient", "Pt. Name:")
    put(sheet, 58, 748, f"{label} {sheet.show_name('last_first')}", 250, 8.5, bold=True)
    put(sheet, 58, 760, f"{choose(sheet, 'Pt ID', 'MR No.', 'Med. Rec. No.')} {sheet.show_number()}", 250, 8.5)
    put(
        sheet, 320, 748, f"{card.write_label('D.O.B.')} {sheet.show_birth('mdy_two')}   Sex {card.person.sex}", 160, 8.5
    )
    put(sheet, 320, 760, f"Encounter {sheet.show_number('visit')}", 160, 8.5)
    sheet.write_right(552, 760, f"{sheet.number}/{total}", 8.5)


def begin_pipes(sheet: Sheet) -> float:
    setting = sheet.setting
    sheet.write(54, 80, setting.card.institution.name, 13, bold=True)
    sheet.write(54, 96, setting.title, 11)
    sheet.write_right(558, 80, f"Ordering: {setting.clinicians[0]}, MD", 9)
    sheet.write_right(558, 92, f"Resulted: {setting.seen}", 9)
    sheet.draw_line(104)
    return 126


def finish_pipes(sheet: Sheet, total: int) -> None:
    """A banner line between pipes: age and sex first, the birth date in parentheses."""
    card = sheet.card
    sheet.page.draw_rect((0, 24, WIDTH, 46), color=None, fill=(0.9, 0.9, 0.9))
    put(
        sheet,
        54,
        38,
        f"{sheet.show_name('last_first')} | {card.age} yo {card.person.sex} ({sheet.show_birth('mdy')}) | "
        f"{choose(sheet, 'MRN', 'EMRN', 'ID')} {sheet.show_number()} | Acc {sheet.show_number('accession')}",
        504,
        9.5,
        bold=True,
    )
    sheet.write_right(558, 764, f"Page {sheet.number} of {total}", 8)


def begin_cover(sheet: Sheet) -> float:
    card, setting = sheet.card, sheet.setting
    sheet.write(60, 74, card.institution.name, 14, bold=True)
    sheet.write(60, 88, card.institution.address, 8)
    sheet.write(60, 124, "FACSIMILE TRANSMITTAL", 20, bold=True)
    sheet.draw_line(134, weight=1.5)
    y = put_rows(
        sheet,
        60,
        160,
        (
            ("To:", f"Dr {setting.clinicians[1]}"),
            ("Attn:", "Medical Records"),
            ("From:", setting.clinicians[2]),
            ("Fax no.:", "555-771-3040"),
            ("Date sent:", setting.seen),
            ("Subject:", f"Records of {sheet.show_name('last_first')}, DOB {sheet.show_birth('mdy')}"),
        ),
        80,
        490,
        11,
    )
    sheet.draw_line(y + 4)
    return y + 34


LAYOUTS = (
    Layout(
        "record_banner",
        "running_header",
        begin_banner,
        follow_banner,
        finish_banner,
        face="sans",
        size=9.5,
        every_page=True,
    ),
    Layout(
        "slash_line",
        "running_header",
        begin_slashes,
        lambda sheet: 84,
        finish_slashes,
        face="mono",
        size=9,
        bottom=730,
        every_page=True,
    ),
    Layout(
        "pipe_line",
        "running_header",
        begin_pipes,
        lambda sheet: 70,
        finish_pipes,
        face="sans",
        size=10,
        every_page=True,
    ),
    Layout("combined_labels", "table", begin_combined, follow_combined, face="sans", size=10, every_page=True),
    Layout(
        "laboratory_blocks",
        "laboratory",
        begin_reference_laboratory,
        None,
        finish_reference_laboratory,
        face="mono",
        size=9,
        body="laboratory",
    ),
    Layout(
        "laboratory_captions",
        "laboratory",
        begin_captioned_laboratory,
        None,
        finish_captioned_laboratory,
        face="sans",
        size=9.5,
        body="laboratory",
    ),
    Layout("imaging_two_columns", "letterhead", begin_imaging, follow_imaging, size=10.5, every_page=True),
    Layout("pathology_case_box", "box", begin_case_box, None, finish_case_box, face="sans", size=9.5, every_page=True),
    Layout("genomic_company", "box", begin_company, None, finish_company, face="sans", size=9, every_page=True),
    Layout(
        "discharge_typed",
        "letterhead",
        begin_transcription,
        follow_transcription,
        finish_transcription,
        face="mono",
        size=9,
    ),
    Layout("exchange_header_row", "ccda", begin_exchange, None, finish_exchange, face="sans", size=9.5),
    Layout(
        "clinic_letter", "letter", begin_clinic_letter, follow_clinic_letter, size=11, every_page=True, grown_only=True
    ),
    Layout("named_in_text", "text", begin_narrative, None, size=11, grown_only=True),
    Layout("plate_imprint", "sticker", begin_plate, begin_plate, finish_plate, face="sans", size=10, every_page=True),
    Layout(
        "federal_form",
        "footer",
        begin_federal,
        begin_federal,
        finish_federal,
        face="mono",
        size=9,
        bottom=676,
        every_page=True,
    ),
    Layout("footer_lines", "footer", begin_margin_line, None, finish_margin_line, size=10.5, every_page=True),
    Layout("trust_form", "table", begin_trust, lambda sheet: 76, finish_trust, face="sans", size=10, every_page=True),
    Layout("provincial_report", "letterhead", begin_provincial, None, finish_provincial, size=10.5, every_page=True),
    Layout(
        "affixed_label", "sticker", begin_affixed, begin_affixed, finish_affixed, face="sans", size=10, every_page=True
    ),
    Layout("filled_lines", "form", begin_filled_lines, follow_filled_lines, face="sans", size=9.5, every_page=True),
    Layout("numbered_form", "form", begin_numbered_form, follow_numbered_form, face="sans", size=9.5, every_page=True),
    Layout("address_blocks", "letterhead", begin_address, follow_address, face="sans", size=10, every_page=True),
    Layout(
        "visit_summary",
        "footer",
        begin_visit_summary,
        None,
        finish_visit_summary,
        face="sans",
        size=10,
        every_page=True,
    ),
    Layout(
        "registration_table",
        "table",
        begin_registration,
        lambda sheet: 78,
        finish_registration,
        size=10.5,
        every_page=True,
    ),
)
COVER = Layout("transmittal", "letter", begin_cover, face="serif", size=11, body="cover")
COVER_TEXT = (
    "The pages that follow were requested by your office. Please confirm receipt by telephone.",
    "If you are not the addressee, destroy all pages and let the sender know at once.",
    "Number of pages: see the header of the last sheet.",
)
