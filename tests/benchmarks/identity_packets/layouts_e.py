"""Half e: persons, institutions and page layouts. Sealed: developers of the product do not read this file."""

from __future__ import annotations

import random

from .drawing import WIDTH, Layout, Sheet
from .persons import Pool, write_day

POOL = Pool(
    women=(
        ("Winifred", "Winnie"),
        ("Gabrielle", "Gabby"),
        ("Philippa", "Pippa"),
        ("Rosalind", "Roz"),
        ("Jacqueline", "Jackie"),
        ("Madeleine", "Maddie"),
        ("Bernadette", "Bernie"),
        ("Imogen", "Immy"),
        ("Siobhan", "Shiv"),
        ("Natasha", "Tasha"),
        ("Henrietta", "Hattie"),
        ("Chidinma", "Chidi"),
        ("Aparna", "Appu"),
        ("Concepción", "Concha"),
        ("Renée", "Ren"),
        ("Tabitha", "Tabby"),
        ("Marguerite", "Margo"),
        ("Ludmila", "Mila"),
        ("Keisha", "Kiki"),
        ("Hye-jin", "Jinny"),
        ("Florence", "Flo"),
        ("Sandra", "Sandy"),
        ("Delphine", "Del"),
        ("April", "Apri"),
    ),
    men=(
        ("Alistair", "Ali"),
        ("Bartholomew", "Bart"),
        ("Nathaniel", "Nate"),
        ("Desmond", "Des"),
        ("Cornelius", "Neil"),
        ("Gregory", "Greg"),
        ("Rodrigo", "Rod"),
        ("Sylvester", "Sly"),
        ("Maximilian", "Max"),
        ("Emeka", "Meka"),
        ("Venkatesh", "Venky"),
        ("Ruairi", "Rory"),
        ("Jean-Luc", "Luc"),
        ("Zachary", "Zach"),
        ("Duncan", "Dunc"),
        ("Mitchell", "Mitch"),
        ("Tobias", "Toby"),
        ("Kwabena", "Kobi"),
        ("André", "Dre"),
        ("Solomon", "Sol"),
        ("Wendell", "Wen"),
        ("Grant", "Gran"),
        ("Vladislav", "Vlad"),
        ("Hiroshi", "Hiro"),
    ),
    unisex=("Morgan", "Alexis", "Rowan", "Sidney"),
    families=(
        "Ashworth",
        "Pemberton",
        "MacGillivray",
        "Featherstone",
        "Oyelaran",
        "Krishnamurthy",
        "St. Clair",
        "Van der Merwe",
        "O'Donoghue",
        "Quigley",
        "Castonguay",
        "Beauchamp",
        "Echeverría",
        "Lundqvist",
        "Szymanski",
        "Di Pasquale",
        "Thistlewood",
        "Wickham",
        "Cavanaugh",
        "Hargreaves",
        "Mbeki",
        "Tanaka",
        "Sørensen",
        "Drummond",
        "Kettering",
        "Lyle",
        "Ng",
        "Wu",
        "Prior",
        "Page",
        "Street",
        "Ward",
        "Bishop",
        "Winter",
        "Rose",
        "Ellsworth",
        "Gallardo",
        "Yarborough",
        "Blackwood",
        "Steinmetz",
        "Achterberg",
        "Villanueva",
        "Moriarty",
        "Tidwell",
        "Cruickshank",
    ),
    clinicians=(
        "Harriet Osgood",
        "Devendra Kulkarni",
        "Miles Rutherford",
        "Ingrid Hallstrom",
        "Stephen Achebe",
        "Lorna McTavish",
        "Paul Wexler",
        "Yuki Morimoto",
        "Cecilia Arroyo",
        "Neville Strand",
        "Beatrice Fontaine",
        "Karl Nussbaum",
        "Sunita Bhatt",
        "Geoffrey Lomax",
    ),
    institutions=(
        ("Cedar Hollow Medical Center", "1180 Juniper Pkwy, Cedar Hollow   Phone 555-640-2217", "99999999"),
        ("Tri-Rivers Health", "77 Confluence Way, Three Forks   Phone 555-218-9034", "E99999999"),
        ("Ashgrove General Hospital", "Victoria Road, Ashgrove   Telephone 0555 491 6620", "A999999"),
        ("Bayview Oncology & Hematology Associates", "902 Pier Street, Suite 410, Bayview   Ph 555-377-1508", "999999"),
        ("Summit Ridge Regional Medical Center", "4400 Ridgeline Dr, Summit Ridge   Phone 555-903-4471", "MR00999999"),
        ("St. Columba's Hospital", "Abbey Terrace, Kilmore   Telephone 0555 204 8811", "999-99-99"),
        ("Lakemont University Health Network", "25 Regent Avenue, Lakemont   Tel 555-770-3360", "7999999"),
    ),
    insurers=("Cascade Health Plan", "Pioneer Mutual HMO", "Medicare Part A", "Keystone Employees Benefit"),
    streets=("Juniper Court", "Harbour Road", "Wellington Street", "Quarry Hill", "Orchard Close"),
)

TITLES = {
    "Clinical Note": ("Progress Notes", "Consultation", "History and Physical", "Clinic Visit"),
    "Radiology Report": ("Imaging Report", "Diagnostic Radiology"),
    "Pathology Report": ("Surgical Pathology Report", "Anatomic Pathology"),
    "Genomic Report": ("Genomic Profiling Report",),
    "Other": ("Patient Record", "Administrative Form"),
}
SIGNATURES = (
    "Electronically signed by {}, MD on {}",
    "Authenticated by {}, MD   {}",
    "Signed: {}, MD   {}",
)
LABORATORY_SIGNATURE = "Verified by: {}, MT(ASCP)   {}"
FAX_SENDERS = ("CEDAR HOLLOW MED REC", "From: Bayview Oncology", "TRI-RIVERS HIM DEPT", "LORNA MCTAVISH OFFICE")
TESTS = (
    ("WBC", "x10E3/uL", 3.4, 10.8),
    ("RBC", "x10E6/uL", 3.77, 5.8),
    ("Hemoglobin", "g/dL", 11.1, 17.7),
    ("Hematocrit", "%", 34.0, 51.0),
    ("MCV", "fL", 79, 97),
    ("MCH", "pg", 26.6, 33.0),
    ("RDW", "%", 11.6, 15.4),
    ("Platelet Count", "x10E3/uL", 150, 450),
    ("Glucose", "mg/dL", 70, 99),
    ("BUN", "mg/dL", 6, 24),
    ("Creatinine", "mg/dL", 0.57, 1.27),
    ("Sodium", "mmol/L", 134, 144),
    ("Potassium", "mmol/L", 3.5, 5.2),
    ("Chloride", "mmol/L", 96, 106),
    ("Calcium", "mg/dL", 8.7, 10.2),
    ("Protein, Total", "g/dL", 6.0, 8.5),
    ("Alkaline Phosphatase", "IU/L", 44, 121),
    ("Ferritin", "ng/mL", 15, 400),
    ("TSH", "uIU/mL", 0.45, 4.5),
    ("Hemoglobin A1c", "%", 4.8, 5.6),
)

SEXES = {"F": "Female", "M": "Male"}
Rows = tuple[tuple[str, str], ...]


def fix_random(sheet: Sheet) -> random.Random:
    """Draw the same details on every page of a document."""
    return random.Random(sheet.card.visit)


def write_rows(
    sheet: Sheet, x: float, y: float, rows: Rows, gap: float, size: float = 9, step: float = 12.5, bold: bool = True
) -> float:
    for label, text in rows:
        sheet.write(x, y, label, size, bold=bold)
        sheet.write(x + gap, y, text, size)
        y += step
    return y


def write_clinician(name: str, style: str = "last_first") -> str:
    given, family = name.split(" ", 1)
    return {
        "last_first": f"{family}, {given}, MD",
        "capitals": f"{family},{given}".upper(),
        "initial": f"Dr {given[0]} {family}",
    }[style]


def write_health_number(sheet: Sheet) -> str:
    """A national number of the person: the same in every document."""
    person = sheet.card.person
    digits = str(random.Random(f"{person.given} {person.born}").randint(4 * 10**9, 5 * 10**9))
    return f"{digits[:3]} {digits[3:6]} {digits[6:]}"


def write_clock(sheet: Sheet) -> str:
    rng = fix_random(sheet)
    return f"{rng.randint(8, 18):02}:{rng.randint(0, 59):02}"


def draw_grid(
    sheet: Sheet, x: float, y: float, rows: list[list[tuple[str, str, float]]], height: float = 28, size: float = 9.5
) -> float:
    """Draw cells with a small caption over the content; the widths are in points."""
    for row in rows:
        left = x
        for label, text, width in row:
            sheet.draw_box(left, y, width, height, weight=0.5)
            sheet.write(left + 3, y + 9, label, 6.8)
            sheet.write(left + 3, y + height - 6, text, size, bold=True)
            left += width
        y += height
    return y


# A release of records: the facility at the left, the patient and the stay at the right, on every page.


def head_release(sheet: Sheet) -> float:
    card = sheet.card
    street, _, phone = card.institution.address.partition("   ")
    sheet.write(36, 40, card.institution.name, 9)
    sheet.write(36, 51, street, 8)
    sheet.write(36, 61, phone, 8)
    sheet.write(330, 40, sheet.show_name("last_first"), 10, bold=True)
    sheet.write(
        330, 51, f"MRN: {sheet.show_number()}, DOB: {sheet.show_birth('mdy_short')}, Sex: {card.person.sex}", 8.5
    )
    day = write_day(card.seen, "mdy_short")
    sheet.write(330, 61, f"Acct #: {sheet.show_number('account')}   Adm: {day}, D/C: {day}", 8.5)
    sheet.draw_line(67, 36, 576)
    return 88


def begin_release(sheet: Sheet) -> float:
    setting = sheet.setting
    y = head_release(sheet)
    sheet.page.draw_rect((36, y - 12, 576, y + 4), color=None, fill=(0.86, 0.86, 0.86))
    sheet.write(
        40, y, f"{setting.title} by {setting.clinicians[0]}, MD at {setting.seen} {write_clock(sheet)}", 9.5, True
    )
    rows = (
        ("Author:", f"{setting.clinicians[0]}, MD"),
        ("Service:", "Hematology and Oncology"),
        ("Author Type:", "Physician"),
        ("Filed:", f"{setting.seen} {write_clock(sheet)}"),
        ("Editor:", f"{setting.clinicians[2]}, MD (Physician)"),
        ("Status:", "Signed"),
    )
    write_rows(sheet, 40, y + 20, rows[::2], 62, 8.5)
    write_rows(sheet, 320, y + 20, rows[1::2], 62, 8.5)
    return y + 72


def finish_release(sheet: Sheet, total: int) -> None:
    number = fix_random(sheet).randint(10**7, 10**8)
    sheet.draw_line(750, 36, 576)
    sheet.write(36, 761, f"Release ID {number}   Printed by {sheet.setting.clinicians[3]}, RHIT", 7.5)
    sheet.write_right(576, 761, f"Page {sheet.number} of {total}", 7.5)


# A visit print: name and number in large type, the rest in small lines, the foot repeats it.


def begin_visit(sheet: Sheet) -> float:
    card, setting = sheet.card, sheet.setting
    sheet.write(50, 52, card.institution.name, 11, bold=True)
    sheet.write_right(562, 52, setting.title, 11, bold=True)
    sheet.draw_line(60, 50, 562, 1.6)
    sheet.write(50, 80, sheet.show_name("first_last"), 15, bold=True)
    sheet.write(50, 94, f"{card.age} y.o. {SEXES[card.person.sex].lower()}, born {sheet.show_birth('mdy_short')}", 9)
    sheet.write(50, 107, f"MRN {sheet.show_number()}    CSN {fix_random(sheet).randint(10**8, 10**9)}", 9)
    sheet.write(330, 80, f"{write_day(card.seen, 'mdy_short')} {write_clock(sheet)}   Office Visit", 9)
    sheet.write(330, 94, f"Provider: {write_clinician(setting.clinicians[0])}", 9)
    sheet.write(330, 107, f"PCP: {write_clinician(setting.clinicians[1])}", 9)
    y = 120
    if not card.person.adult:
        sheet.write(50, y, f"Accompanied by: {setting.write_relative('first_last')} ({setting.relative_word})", 9)
        y += 13
    sheet.draw_line(y, 50, 562)
    return y + 20


def finish_visit(sheet: Sheet, total: int) -> None:
    sheet.draw_line(746, 50, 562)
    sheet.write(
        50,
        757,
        f"{sheet.show_name('last_first')} (MRN {sheet.show_number()}) DOB {sheet.show_birth('mdy_short')}",
        8,
    )
    sheet.write_right(562, 757, f"Printed {write_day(sheet.card.seen, 'mdy_short')}  Page {sheet.number} of {total}", 8)


# A hospital system's result print: two columns under the facility, repeated on every page.


def head_result(sheet: Sheet) -> float:
    card, setting = sheet.card, sheet.setting
    sheet.write_middle(42, card.institution.name, 12, bold=True)
    sheet.write_middle(53, card.institution.address, 7.5)
    left = (
        ("Patient:", sheet.show_name("last_first_capitals")),
        ("MRN:", sheet.show_number()),
        ("FIN:", sheet.show_number("account")),
    )
    right = (
        ("DOB/Age/Sex:", f"{sheet.show_birth('mdy')}   {card.age} years   {SEXES[card.person.sex]}"),
        ("Admit/Disch:", f"{setting.seen} - {setting.seen}"),
        ("Attending:", f"{write_clinician(setting.clinicians[0])}"),
    )
    sheet.draw_box(48, 60, 516, 44)
    write_rows(sheet, 54, 73, left, 48)
    write_rows(sheet, 312, 73, right, 72)
    return 124


def begin_result(sheet: Sheet) -> float:
    setting = sheet.setting
    y = head_result(sheet)
    sheet.write_middle(y, setting.title, 12, bold=True)
    stamp = f"{setting.seen} {write_clock(sheet)}"
    rows = (
        ("Result Type:", setting.title),
        ("Result Date:", stamp),
        ("Result Status:", "Auth (Verified)"),
        ("Performed By:", f"{write_clinician(setting.clinicians[0])} on {stamp}"),
        ("Verified By:", f"{write_clinician(setting.clinicians[2])} on {stamp}"),
        ("Encounter Info:", f"{sheet.show_number('account')}, {setting.card.institution.name}, Outpatient"),
    )
    return write_rows(sheet, 60, y + 18, rows, 92, 9) + 12


def finish_result(sheet: Sheet, total: int) -> None:
    stamp = f"{sheet.setting.seen} {write_clock(sheet)}"
    sheet.write(48, 762, f"Report Request ID: {fix_random(sheet).randint(10**8, 10**9)}", 7.5)
    sheet.write_middle(762, f"Page {sheet.number} of {total}", 7.5)
    sheet.write_right(564, 762, f"Print Date/Time: {stamp}", 7.5)


# A character-cell system: capitals, codes, dotted rules.


def begin_terminal(sheet: Sheet) -> float:
    card, setting = sheet.card, sheet.setting
    rng = fix_random(sheet)
    sheet.write_middle(46, card.institution.name.upper(), 10, bold=True)
    sheet.write_middle(57, card.institution.address, 8)
    sheet.write(48, 72, "-" * 90, 9.5)
    doctor = write_clinician(setting.clinicians[0], "capitals")
    lines = (
        (f"PATIENT: {sheet.show_name('last_first_tight_capitals')}", f"ACCT #: {sheet.show_number('account')}"),
        (f"DOB: {sheet.show_birth('mdy_two')}", f"U #: {sheet.show_number()}"),
        (f"AGE/SX: {card.age}/{card.person.sex}", f"ROOM: {rng.choice(('4N', 'ICU', 'OPT'))}-{rng.randint(1, 30)}"),
        (f"ADM DR: {doctor}", f"REG: {write_day(card.seen, 'mdy_two')}"),
        (f"PCP: {write_clinician(setting.clinicians[1], 'capitals')}", "STATUS: DEP CLI"),
    )
    y = 85.0
    for left, right in lines:
        sheet.write(48, y, left, 9)
        sheet.write(370, y, right, 9)
        y += 12
    sheet.write(48, y, "-" * 90, 9.5)
    sheet.write_middle(y + 16, f"*** {setting.title.upper()} ***", 9.5)
    return y + 36


def follow_terminal(sheet: Sheet) -> float:
    sheet.write(48, 46, f"Patient: {sheet.show_name('last_first_tight_capitals')}", 9)
    sheet.write(370, 46, f"Unit #: {sheet.show_number()}", 9)
    sheet.write(48, 58, f"D.O.B.: {sheet.show_birth('mdy_two')}", 9)
    sheet.write(370, 58, f"Page: {sheet.number}", 9)
    sheet.write(48, 70, "-" * 90, 9.5)
    return 92


# A federal hospital's print: the patient's block is at the foot, as on old standard forms.


def begin_standard_form(sheet: Sheet) -> float:
    setting = sheet.setting
    sheet.write(54, 46, "MEDICAL RECORD", 10, bold=True)
    sheet.write(300, 46, setting.title, 10, bold=True)
    sheet.draw_line(52)
    if sheet.number == 1:
        sheet.write(54, 66, f"LOCAL TITLE: {setting.title.upper()}", 9)
        sheet.write(54, 78, f"DATE OF NOTE: {month_stamp(sheet)}   ENTRY DATE: {month_stamp(sheet)}", 9)
        sheet.write(54, 90, f"      AUTHOR: {write_clinician(setting.clinicians[0], 'capitals')}", 9)
        sheet.write(54, 102, "     URGENCY:                     STATUS: COMPLETED", 9)
        return 124
    sheet.write(54, 66, f"{month_stamp(sheet)}   ** CONTINUED FROM PREVIOUS PAGE **", 9)
    return 88


def month_stamp(sheet: Sheet) -> str:
    return f"{write_day(sheet.card.seen, 'month_capitals')}@{write_clock(sheet)}"


def finish_standard_form(sheet: Sheet, total: int) -> None:
    sheet.draw_line(716)
    sheet.write(54, 728, "PATIENT'S IDENTIFICATION (Name, number, birth date)", 7)
    sheet.write(54, 741, sheet.show_name("last_first_tight_capitals"), 9.5)
    sheet.write(54, 753, sheet.show_number(), 9.5)
    sheet.write(54, 765, f"DOB:{sheet.show_birth('mdy')}", 9.5)
    sheet.write(340, 741, sheet.card.institution.name.upper(), 8)
    sheet.write(340, 753, f"Printed at {month_stamp(sheet)}", 8)
    sheet.write(340, 765, f"Page {sheet.number} of {total}", 8)


# A commercial laboratory: three columns of patient, specimen and client.


def head_specimen(sheet: Sheet) -> float:
    card, setting = sheet.card, sheet.setting
    rng = fix_random(sheet)
    sheet.write(40, 50, card.institution.name, 15, bold=True)
    sheet.write(40, 62, "Reference Laboratories", 9)
    sheet.write_right(572, 50, "Report Status: Final", 10, bold=True)
    for x, words in ((40, "Patient Information"), (232, "Specimen Information"), (414, "Client Information")):
        sheet.page.draw_rect((x - 4, 72, x + 160, 86), color=None, fill=(0.82, 0.88, 0.82))
        sheet.write(x, 82, words, 9, bold=True)
    sheet.write(40, 99, sheet.show_name("last_first_capitals"), 10, bold=True)
    rows: Rows = (
        ("DOB:", f"{sheet.show_birth('mdy')}   AGE: {card.age}"),
        ("Gender:", card.person.sex),
        ("Phone:", f"555.{rng.randint(200, 999)}.{rng.randint(1000, 9999)}"),
        ("Patient ID:", sheet.show_number()),
    )
    write_rows(sheet, 40, 112, rows, 56, 8.5, 11.5, bold=False)
    rows = (
        ("Specimen:", sheet.show_number("accession")),
        ("Requisition:", f"00{rng.randint(10000, 99999)}"),
        ("Collected:", f"{setting.seen} / 08:10"),
        ("Received:", f"{setting.seen} / 21:44"),
        ("Reported:", f"{setting.seen} / 23:19"),
    )
    write_rows(sheet, 232, 99, rows, 58, 8.5, 11.5, bold=False)
    client = (
        f"Client #: {rng.randint(10**7, 10**8)}",
        setting.clinicians[0].upper(),
        card.institution.name.upper()[:30],
        f"{setting.street.upper()}",
    )
    for row, line in enumerate(client):
        sheet.write(414, 99 + row * 11.5, line, 8.5)
    sheet.draw_line(158, 36, 576)
    return 180


def follow_specimen(sheet: Sheet) -> float:
    sheet.write(40, 50, sheet.show_name("last_first_capitals"), 10, bold=True)
    sheet.write(40, 62, f"DOB: {sheet.show_birth('mdy')}   Patient ID: {sheet.show_number()}", 8.5)
    sheet.write(340, 50, f"Specimen: {sheet.show_number('accession')}", 8.5)
    sheet.write(340, 62, f"Collected: {sheet.setting.seen} / 08:10", 8.5)
    sheet.draw_line(70, 36, 576)
    return 92


def finish_specimen(sheet: Sheet, total: int) -> None:
    sheet.write(
        40,
        764,
        f"CLIENT SERVICES: 555.240.1100   SPECIMEN: {sheet.show_number('accession')}   "
        f"LABORATORY DIRECTOR: {sheet.setting.clinicians[2].upper()}, MD   PAGE {sheet.number} OF {total}",
        7,
    )


# A second laboratory: a grid of captions and contents.


def begin_grid_laboratory(sheet: Sheet) -> float:
    card, setting = sheet.card, sheet.setting
    sheet.write(50, 48, f"{card.institution.name} Laboratory", 13, bold=True)
    sheet.write_right(562, 48, "Patient Report", 12)
    y = draw_grid(
        sheet,
        50,
        58,
        [
            [
                ("Specimen ID", sheet.show_number("accession"), 128),
                ("Account Number", sheet.show_number("account"), 128),
                ("Patient ID", sheet.show_number(), 128),
                ("Control ID", str(fix_random(sheet).randint(10**9, 10**10)), 128),
            ],
            [
                ("Patient Last Name", sheet.show_split_name()[0], 170),
                ("Patient First Name", card.write_name("given"), 171),
                ("Physician", write_clinician(setting.clinicians[0], "capitals"), 171),
            ],
            [
                ("Date of Birth", sheet.show_birth("mdy"), 128),
                ("Age (Y/M/D)", f"{card.age}/03/11", 128),
                ("Sex", card.person.sex, 64),
                ("Date Collected", setting.seen, 96),
                ("Date Reported", setting.seen, 96),
            ],
        ],
    )
    sheet.write(50, y + 14, "Tests Ordered: CBC With Differential; Comp. Metabolic Panel; Venipuncture", 8)
    return y + 38


def follow_grid_laboratory(sheet: Sheet) -> float:
    sheet.write(50, 48, f"Patient: {sheet.show_name('last_first')}", 9, bold=True)
    sheet.write(50, 60, f"DOB: {sheet.show_birth('mdy')}", 9)
    sheet.write(330, 48, f"Patient ID: {sheet.show_number()}", 9)
    return 84


# Anatomic pathology: a double-ruled block with the case number.


def begin_pathology(sheet: Sheet) -> float:
    card, setting = sheet.card, sheet.setting
    sheet.write_middle(48, card.institution.name, 13, bold=True)
    sheet.write_middle(60, "Department of Pathology and Laboratory Medicine", 9.5)
    sheet.write_middle(71, card.institution.address, 8)
    sheet.write_middle(92, setting.title.upper(), 12.5, bold=True)
    sheet.draw_line(100)
    sheet.draw_line(102.5)
    left = (
        ("Patient:", sheet.show_name("last_first_capitals")),
        ("MRN:", sheet.show_number()),
        ("DOB:", f"{sheet.show_birth('mdy_short')} (Age: {card.age})"),
        ("Gender:", card.person.sex),
        ("Location:", "Ambulatory Surgery"),
    )
    right = (
        ("Case #:", sheet.show_number("accession")),
        ("Procedure Date:", setting.seen),
        ("Date Received:", setting.seen),
        ("Submitting MD:", setting.clinicians[1]),
        ("Copies to:", f"{setting.clinicians[3]}, DO"),
    )
    write_rows(sheet, 58, 116, left, 58, 9.5)
    y = write_rows(sheet, 330, 116, right, 88, 9.5)
    sheet.draw_line(y - 4)
    sheet.draw_line(y - 1.5)
    return y + 18


def finish_pathology(sheet: Sheet, total: int) -> None:
    if sheet.number > 1:
        sheet.write(58, 44, f"{sheet.show_name('last_first_capitals')}   {sheet.show_number('accession')}", 9.5, True)
        sheet.write_right(554, 44, f"MRN {sheet.show_number()}  DOB {sheet.show_birth('mdy_short')}", 9.5)
        sheet.draw_line(50)
    sheet.write(58, 762, f"Pathologist: {sheet.setting.clinicians[2]}, MD", 8)
    sheet.write_right(554, 762, f"Page {sheet.number} of {total}", 8)


# A British clinic letter.


def begin_trust_letter(sheet: Sheet) -> float:
    card, setting = sheet.card, sheet.setting
    sheet.write_right(552, 48, f"{card.institution.name} NHS Foundation Trust", 12, bold=True)
    street, _, phone = card.institution.address.partition("   ")
    sheet.write_right(552, 61, street, 8.5)
    sheet.write_right(552, 72, phone, 8.5)
    consultant = write_clinician(setting.clinicians[0], "initial")
    rows = (
        ("Consultant:", consultant),
        ("Our ref:", f"{setting.clinicians[0].split()[-1][:2].upper()}/SEC/{fix_random(sheet).randint(100, 999)}"),
        ("Hospital No:", sheet.show_number()),
        ("NHS No:", write_health_number(sheet)),
        ("Clinic date:", write_day(card.seen, "long_day_first")),
    )
    write_rows(sheet, 340, 96, rows, 72, 9.5)
    y = 96.0
    for line in (write_clinician(setting.clinicians[1], "initial"), "The Surgery", setting.street, "Ashgrove"):
        sheet.write(60, y, line, 10)
        y += 13
    sheet.write(60, 182, f"Dear {write_clinician(setting.clinicians[1], 'initial')}")
    sheet.write(
        60, 202, f"Re: {sheet.show_name('titled_surname')}, d.o.b. {sheet.show_birth('abbreviated')}", bold=True
    )
    home = fix_random(sheet).choice(setting.pool.streets)
    sheet.write(60, 215, f"{fix_random(sheet).randint(2, 90)} {home}, Ashgrove", bold=True)
    return 238


def finish_trust_letter(sheet: Sheet, total: int) -> None:
    sheet.write(
        60,
        764,
        f"{sheet.show_name('titled')}   DOB: {sheet.show_birth('abbreviated')}   Hosp No: {sheet.show_number()}   "
        f"Page {sheet.number} of {total}",
        8,
    )


# A British discharge form: a table of captions, each page with the patient's row.


def begin_discharge_form(sheet: Sheet) -> float:
    card, setting = sheet.card, sheet.setting
    sheet.write(46, 46, card.institution.name, 12, bold=True)
    sheet.write_right(566, 46, setting.title.upper(), 11, bold=True)
    family, given = sheet.show_split_name()
    y = draw_grid(
        sheet,
        46,
        56,
        [
            [
                ("Surname", family, 180),
                ("Forename(s)", given, 180),
                ("Title", card.title.strip("."), 60),
                ("Sex", SEXES[card.person.sex], 100),
            ],
            [
                ("Date of Birth", sheet.show_birth("abbreviated"), 130),
                ("Hospital Number", sheet.show_number(), 130),
                ("NHS Number", write_health_number(sheet), 130),
                ("Date", write_day(card.seen, "abbreviated"), 130),
            ],
            [
                ("Consultant", write_clinician(setting.clinicians[0], "initial"), 130),
                ("Ward / Clinic", "Oncology Day Unit", 130),
                ("Registered GP", write_clinician(setting.clinicians[1], "initial"), 130),
                (
                    "Next of kin" if card.person.adult else "Parent / guardian",
                    setting.write_relative("first_last"),
                    130,
                ),
            ],
        ],
        30,
    )
    return y + 22


def follow_discharge_form(sheet: Sheet) -> float:
    y = draw_grid(
        sheet,
        46,
        36,
        [
            [
                ("Patient name", sheet.show_name("last_first"), 220),
                ("DOB", sheet.show_birth("abbreviated"), 110),
                ("Hospital Number", sheet.show_number(), 110),
                ("Page", str(sheet.number), 80),
            ]
        ],
    )
    return y + 20


# An Australian imaging practice.


def begin_imaging_practice(sheet: Sheet) -> float:
    card, setting = sheet.card, sheet.setting
    sheet.page.draw_rect((0, 0, WIDTH, 12), color=None, fill=(0.1, 0.45, 0.45))
    sheet.write(60, 46, f"{card.institution.name} Imaging", 16)
    sheet.write(60, 58, card.institution.address, 8)
    rng = fix_random(sheet)
    for row, line in enumerate(
        (
            write_clinician(setting.clinicians[1], "initial"),
            f"Provider No. 2{rng.randint(10000, 99999)}K",
            setting.street,
        )
    ):
        sheet.write(60, 84 + row * 12, line, 9.5)
    rows = (
        ("Patient", sheet.show_name("surname_first")),
        ("DOB", sheet.show_birth("long_day_first")),
        ("Patient ID", sheet.show_number()),
        ("Accession", sheet.show_number("accession")),
        ("Exam date", write_day(card.seen, "long_day_first")),
    )
    y = write_rows(sheet, 300, 84, rows, 62, 9.5, 13)
    sheet.write(60, y + 6, f"Copy to: {write_clinician(setting.clinicians[3], 'initial')}", 9)
    sheet.write(60, y + 28, setting.title.upper(), 11.5, bold=True)
    return y + 50


def follow_imaging_practice(sheet: Sheet) -> float:
    sheet.write_right(
        552,
        48,
        f"{sheet.show_name('surname_first')}   {sheet.show_birth('long_day_first')}   ID {sheet.show_number()}",
        9,
    )
    sheet.draw_line(54, 60, 552, 0.5)
    return 78


# A Canadian network: year first, a health card.


def head_network(sheet: Sheet) -> float:
    card = sheet.card
    sheet.write(50, 46, card.institution.name, 12, bold=True)
    sheet.write(50, 57, card.institution.address, 7.5)
    sheet.draw_box(318, 34, 244, 58, weight=0.6)
    sheet.write(324, 46, sheet.show_name("last_first_capitals"), 10, bold=True)
    sheet.write(324, 58, f"DOB: {sheet.show_birth('year_first')}   Sex: {card.person.sex}   Age: {card.age}", 8.5)
    sheet.write(324, 70, f"MRN: {sheet.show_number()}   Visit: {sheet.show_number('visit')}", 8.5)
    sheet.write(324, 82, f"HCN: {write_health_number(sheet).replace(' ', '-')} ON", 8.5)
    return 112


def begin_network(sheet: Sheet) -> float:
    setting, card = sheet.setting, sheet.card
    y = head_network(sheet)
    sheet.write(50, y, setting.title, 13, bold=True)
    rows = (
        ("Service Date:", write_day(card.seen, "year_first")),
        ("Dictated By:", f"{setting.clinicians[0]}, MD, FRCPC"),
        ("Referring MD:", setting.clinicians[1]),
        ("Family MD:", setting.clinicians[3]),
    )
    write_rows(sheet, 50, y + 18, rows[:2], 74)
    return write_rows(sheet, 318, y + 18, rows[2:], 74) + 14


def finish_network(sheet: Sheet, total: int) -> None:
    sheet.write_middle(764, f"Confidential patient information   Page {sheet.number} of {total}", 7.5)


# Practices: a line of abbreviations, a dot-matrix foot, three blocks, a bracketed line.


def head_practice_line(sheet: Sheet) -> float:
    card = sheet.card
    sheet.write(
        48,
        42,
        f"{sheet.show_name('last_first_capitals')}   DOB: {sheet.show_birth('mdy')} ({card.age} yo {card.person.sex})   "
        f"Acc No. {sheet.show_number()}   DOS: {sheet.setting.seen}",
        8.5,
        bold=True,
    )
    sheet.draw_line(48, 48, 564)
    return 70


def begin_practice_line(sheet: Sheet) -> float:
    card, setting = sheet.card, sheet.setting
    y = head_practice_line(sheet)
    sheet.write_right(564, y, setting.title, 14, bold=True)
    sheet.write_right(564, y + 13, f"Provider: {setting.clinicians[0]}, M.D.", 9)
    sheet.write_right(564, y + 25, card.institution.name, 9)
    sheet.write(48, y, f"Address: {setting.street}, Springdale", 8.5)
    holder = fix_random(sheet).random() < 0.5 or not card.person.adult
    insured = setting.write_relative("first_last") if holder else "Self"
    sheet.write(48, y + 12, f"Insurance: {setting.insurer}   Payer ID: {fix_random(sheet).randint(10000, 99999)}", 8.5)
    sheet.write(48, y + 24, f"Insured: {insured}   Guarantor: {insured}", 8.5)
    sheet.write(48, y + 36, f"Appointment Facility: {card.institution.name}", 8.5)
    return y + 62


def finish_practice_line(sheet: Sheet, total: int) -> None:
    sheet.write(
        48,
        764,
        f"Patient: {sheet.show_name('last_first')}   DOB: {sheet.show_birth('mdy')}   {sheet.setting.title}: "
        f"{sheet.setting.clinicians[0]}, M.D.   {sheet.setting.seen}   {sheet.number}/{total}",
        7.5,
    )


def begin_practice_stack(sheet: Sheet) -> float:
    card, setting = sheet.card, sheet.setting
    sheet.write_middle(48, card.institution.name, 14, bold=True)
    sheet.write_middle(60, card.institution.address, 8.5)
    rows = (
        ("PATIENT:", sheet.show_name("first_last")),
        ("DATE OF BIRTH:", sheet.show_birth("mdy")),
        ("DATE:", f"{setting.seen} {write_clock(sheet)}"),
        ("HISTORIAN:", "self" if card.person.adult else f"mother, {setting.write_relative('first_last')}"),
        ("VISIT TYPE:", setting.title),
    )
    return write_rows(sheet, 54, 84, rows, 100, 9.5, 13, bold=True) + 12


def finish_practice_stack(sheet: Sheet, total: int) -> None:
    sheet.write(
        54,
        762,
        f"{sheet.show_name('last_first')}  {sheet.show_number()}  {sheet.show_birth('mdy')}  "
        f"{sheet.setting.seen} {write_clock(sheet)}  Page: {sheet.number}/{total}",
        8,
    )


def begin_practice_blocks(sheet: Sheet) -> float:
    card, setting = sheet.card, sheet.setting
    blocks = (
        (
            48,
            "PATIENT",
            sheet.show_name("first_last"),
            (
                ("DOB", sheet.show_birth("mdy")),
                ("AGE", f"{card.age} yrs"),
                ("SEX", SEXES[card.person.sex]),
                ("PRN", sheet.show_number()),
            ),
        ),
        (
            226,
            "FACILITY",
            card.institution.name[:28],
            (("T", "(555) 230-8870"), ("F", "(555) 230-8871"), ("A", setting.street)),
        ),
        (
            400,
            "ENCOUNTER",
            setting.title,
            (
                ("NOTE TYPE", "SOAP Note"),
                ("SEEN BY", f"{setting.clinicians[0]}"),
                ("DATE", setting.seen),
                ("AGE AT DOS", f"{card.age} yrs"),
            ),
        ),
    )
    for x, heading, first, rows in blocks:
        sheet.write(x, 48, heading, 8)
        sheet.draw_line(52, x, x + 160, 0.5)
        sheet.write(x, 66, first, 10, bold=True)
        for row, (label, text) in enumerate(rows):
            sheet.write(x, 80 + row * 12, label, 7.5)
            sheet.write(x + (56 if x > 300 else 32), 80 + row * 12, text, 8.5)
    return 148


def finish_practice_blocks(sheet: Sheet, total: int) -> None:
    if sheet.number > 1:
        sheet.write(48, 44, sheet.show_name("first_last"), 9, bold=True)
        sheet.write(250, 44, f"DOB: {sheet.show_birth('mdy')}", 8.5)
        sheet.write_right(564, 44, f"PRN: {sheet.show_number()}", 8.5)
        sheet.draw_line(50, 48, 564, 0.5)
    sheet.write(48, 764, f"{sheet.setting.title}   {sheet.setting.seen}   Page {sheet.number} of {total}", 7.5)


def head_bracketed(sheet: Sheet) -> float:
    card = sheet.card
    sheet.write(
        54, 40, f"{sheet.show_name('last_first')} (id #{sheet.show_number()}, dob: {sheet.show_birth('mdy')})", 8.5
    )
    sheet.write_right(558, 40, card.institution.name, 8.5)
    return 66


def begin_bracketed(sheet: Sheet) -> float:
    card, setting = sheet.card, sheet.setting
    y = head_bracketed(sheet)
    sheet.write(54, y, setting.title, 13, bold=True)
    sheet.write(
        54, y + 18, f"Date: {setting.seen}   Dept: {card.institution.name}   Provider: {setting.clinicians[0]}, MD", 8.5
    )
    sheet.write(54, y + 31, f"Insurance: Med Primary: {setting.insurer}   Insurance #: {setting.member}", 8.5)
    sheet.write(
        54,
        y + 44,
        f"Policy holder: {setting.write_relative()}   Relationship: {setting.relative_word}   "
        f"Referring: {write_clinician(setting.clinicians[1])}",
        8.5,
    )
    return y + 70


def finish_bracketed(sheet: Sheet, total: int) -> None:
    sheet.write(54, 764, f"Encounter Date: {sheet.setting.seen}   {sheet.number} of {total}", 7.5)


# A tumour panel: dark bands with captions over contents.


def begin_panel(sheet: Sheet) -> float:
    card, setting = sheet.card, sheet.setting
    sheet.page.draw_rect((0, 0, WIDTH, 30), color=None, fill=(0.2, 0.2, 0.25))
    sheet.page.insert_text((40, 20), setting.title.upper(), fontname="hebo", fontsize=13, color=(1, 1, 1))
    columns = (
        (
            "PATIENT",
            (
                ("NAME", sheet.show_name("last_first")),
                ("DATE OF BIRTH", sheet.show_birth("abbreviated_capitals")),
                ("SEX", SEXES[card.person.sex]),
                ("MEDICAL RECORD #", sheet.show_number()),
            ),
        ),
        (
            "PHYSICIAN",
            (
                ("ORDERING PHYSICIAN", write_clinician(setting.clinicians[0])),
                ("MEDICAL FACILITY", card.institution.name[:30]),
                ("ADDITIONAL RECIPIENT", write_clinician(setting.clinicians[1])),
                ("PATHOLOGIST", write_clinician(setting.clinicians[2])),
            ),
        ),
        (
            "SPECIMEN",
            (
                ("SPECIMEN ID", sheet.show_number("accession")),
                ("SPECIMEN TYPE", "Block"),
                ("DATE OF COLLECTION", write_day(card.seen, "abbreviated_capitals")),
                ("SPECIMEN RECEIVED", write_day(card.seen, "abbreviated_capitals")),
            ),
        ),
    )
    for number, (heading, rows) in enumerate(columns):
        x = 40 + number * 182
        sheet.page.draw_rect((x - 4, 40, x + 172, 54), color=None, fill=(0.88, 0.88, 0.9))
        sheet.write(x, 50, heading, 8.5, bold=True)
        for row, (label, text) in enumerate(rows):
            sheet.write(x, 67 + row * 23, label, 6.5)
            sheet.write(x, 77 + row * 23, text, 9)
    return 178


def follow_panel(sheet: Sheet) -> float:
    card = sheet.card
    sheet.page.draw_rect((0, 0, WIDTH, 12), color=None, fill=(0.2, 0.2, 0.25))
    for x, label, text in (
        (40, "PATIENT", sheet.show_name("last_first")),
        (230, "DATE OF BIRTH", sheet.show_birth("abbreviated_capitals")),
        (340, "MEDICAL RECORD #", sheet.show_number()),
        (460, "REPORT DATE", write_day(card.seen, "abbreviated_capitals")),
    ):
        sheet.write(x, 28, label, 6.5)
        sheet.write(x, 39, text, 9, bold=True)
    sheet.draw_line(46, 36, 576, 0.5)
    return 70


def finish_panel(sheet: Sheet, total: int) -> None:
    sheet.write(40, 764, f"Electronically signed by {sheet.setting.clinicians[2]}, M.D.   {sheet.setting.seen}", 7)
    sheet.write_right(572, 764, f"PAGE {sheet.number} of {total}", 7)


# A hereditary test: captions left, contents right, three columns without lines.


def begin_hereditary(sheet: Sheet) -> float:
    card, setting = sheet.card, sheet.setting
    sheet.write(50, 50, setting.title, 17, bold=True)
    sheet.write_right(562, 50, card.institution.name, 9)
    left = (
        ("Patient name:", sheet.show_name("first_last")),
        ("DOB:", sheet.show_birth("mdy")),
        ("Sex assigned at birth:", SEXES[card.person.sex]),
        ("MRN:", sheet.show_number()),
    )
    right = (
        ("Sample type:", "Blood"),
        ("Sample collection date:", setting.seen),
        ("Accession ID:", sheet.show_number("accession")),
        ("Clinical team:", setting.clinicians[0]),
        ("", setting.clinicians[3]),
    )
    write_rows(sheet, 50, 74, left, 98, 8.5)
    y = write_rows(sheet, 330, 74, right, 104, 8.5)
    sheet.draw_line(y - 4, 50, 562, 0.5)
    return y + 16


def finish_hereditary(sheet: Sheet, total: int) -> None:
    sheet.draw_line(750, 50, 562, 0.5)
    sheet.write(
        50,
        760,
        f"Patient name: {sheet.show_name('first_last')}   DOB: {sheet.show_birth('mdy')}   MRN: {sheet.show_number()}",
        7.5,
    )
    sheet.write_right(562, 760, f"Page {sheet.number} of {total}", 7.5)


# A label stuck on a ward's form: on every page, at the right or at the foot.


def stick(sheet: Sheet, x: float, y: float) -> None:
    card, setting = sheet.card, sheet.setting
    sheet.draw_box(x, y, 216, 74, weight=0.4)
    sheet.write(x + 6, y + 13, sheet.show_name("last_first_tight_capitals"), 10, bold=True, face="sans")
    sheet.write(x + 6, y + 25, f"MRN:{sheet.show_number()}   CSN:{sheet.show_number('account')}", 8, face="sans")
    sheet.write(
        x + 6, y + 36, f"DOB:{sheet.show_birth('mdy')}  {card.age} yrs  {SEXES[card.person.sex]}", 8, face="sans"
    )
    sheet.write(x + 6, y + 47, f"{write_clinician(setting.clinicians[0], 'capitals')}   {setting.seen}", 8, face="sans")
    sheet.draw_bars(x + 6, y + 52, 140, 18)


def begin_ward_form(sheet: Sheet) -> float:
    sheet.draw_box(40, 30, 532, 88)
    sheet.write(48, 46, sheet.card.institution.name, 12, bold=True)
    sheet.write(48, 62, sheet.setting.title.upper(), 11, bold=True)
    sheet.write(48, 78, f"Form 40-{fix_random(sheet).randint(100, 999)} (Rev. 06/21)", 7)
    sheet.write(48, 108, "Affix patient label here", 7)
    stick(sheet, 350, 37)
    return 140


def begin_foot_label(sheet: Sheet) -> float:
    sheet.write(54, 48, sheet.setting.title.upper(), 12, bold=True)
    sheet.write_right(558, 48, sheet.card.institution.name, 9)
    sheet.draw_line(56)
    if sheet.number == 1:
        sheet.write(54, 72, f"Date: {sheet.setting.seen}    Time: {write_clock(sheet)}    Allergies: NKDA", 9)
        return 96
    return 78


def finish_foot_label(sheet: Sheet, total: int) -> None:
    sheet.draw_line(692)
    sheet.write(54, 706, "Clinician signature / date / time:", 7.5)
    sheet.write(54, 760, f"Page {sheet.number} of {total}", 7.5)
    stick(sheet, 342, 698)


# A form that is filled in: contents on lines, captions below them.


def write_blank(sheet: Sheet, x: float, y: float, width: float, text: str, caption: str) -> None:
    sheet.write(x + 4, y, text, 10)
    sheet.draw_line(y + 3, x, x + width, 0.5)
    sheet.write(x, y + 11, caption, 7)


def begin_filled_form(sheet: Sheet) -> float:
    card, setting = sheet.card, sheet.setting
    sheet.write_middle(46, card.institution.name, 12, bold=True)
    sheet.write_middle(60, setting.title, 11)
    family, given = sheet.show_split_name()
    write_blank(sheet, 54, 86, 190, family, "Patient's Last Name")
    write_blank(sheet, 252, 86, 180, given, "First Name, Middle")
    write_blank(sheet, 440, 86, 118, sheet.show_birth("mdy"), "Date of Birth")
    write_blank(sheet, 54, 114, 190, sheet.show_number(), "Medical Record Number")
    write_blank(sheet, 252, 114, 180, f"{setting.street}, Springdale", "Street Address, City")
    write_blank(sheet, 440, 114, 118, "555-318-2204", "Telephone")
    kin = "Spouse / Next of Kin" if card.person.adult else "Mother / Legal Guardian"
    write_blank(sheet, 54, 142, 190, setting.write_relative("first_last"), kin)
    write_blank(sheet, 252, 142, 180, write_day(setting.relative_born, "mdy"), "Their Date of Birth")
    write_blank(sheet, 440, 142, 118, setting.clinicians[1], "Primary Care Physician")
    return 178


def finish_filled_form(sheet: Sheet, total: int) -> None:
    sheet.write(
        54,
        762,
        f"Patient Name: {sheet.show_name('first_last')}     Date of Birth: {sheet.show_birth('mdy')}     "
        f"MRN: {sheet.show_number()}     {sheet.number} of {total}",
        8,
    )


# A transcription service: capital captions, the later pages headed by name and page.


def begin_dictation(sheet: Sheet) -> float:
    card, setting = sheet.card, sheet.setting
    sheet.write_middle(52, card.institution.name.upper(), 12, bold=True)
    sheet.write_middle(64, card.institution.address, 9)
    sheet.write_middle(84, setting.title.upper(), 12, bold=True)
    rows = (
        ("PATIENT NAME:", sheet.show_name("last_first_capitals")),
        ("MEDICAL RECORD NUMBER:", sheet.show_number()),
        ("DATE OF BIRTH:", sheet.show_birth("mdy")),
        ("ACCOUNT NUMBER:", sheet.show_number("account")),
        ("DATE OF SERVICE:", setting.seen),
        ("ATTENDING PHYSICIAN:", f"{setting.clinicians[0].upper()}, MD"),
        ("REFERRING PHYSICIAN:", f"{setting.clinicians[1].upper()}, MD"),
    )
    return write_rows(sheet, 60, 108, rows, 160, 10, 13, bold=False) + 12


def follow_dictation(sheet: Sheet) -> float:
    rows = (
        ("PATIENT NAME:", sheet.show_name("last_first_capitals")),
        ("MEDICAL RECORD NUMBER:", sheet.show_number()),
        ("DATE OF BIRTH:", sheet.show_birth("mdy")),
        ("PAGE:", str(sheet.number)),
    )
    return write_rows(sheet, 60, 48, rows, 160, 10, 12.5, bold=False) + 14


# A registration sheet: patient, guarantor, subscriber and contact, each with a name and most with a birth date.


def begin_registration(sheet: Sheet) -> float:
    card, setting = sheet.card, sheet.setting
    born = write_day(setting.relative_born, "mdy")
    relative = setting.write_relative()
    sheet.write(44, 44, card.institution.name, 12, bold=True)
    sheet.write_right(568, 44, "FACE SHEET", 12, bold=True)
    contact = (("Name", relative), ("Relation", setting.relative_word.title()), ("Phone", "555-318-2204"))
    sections: tuple[tuple[str, Rows], ...] = (
        (
            "PATIENT",
            (
                ("Name", sheet.show_name("last_first")),
                ("DOB", sheet.show_birth("mdy")),
                ("Sex / Age", f"{card.person.sex} / {card.age}"),
                ("MRN", sheet.show_number()),
                ("Account", sheet.show_number("account")),
                ("Address", setting.street),
            ),
        ),
        ("GUARANTOR", (("Name", relative), ("DOB", born), ("Relation", setting.relative_word.title()))),
        ("SUBSCRIBER", (("Name", relative), ("DOB", born), ("Plan", setting.insurer), ("Policy #", setting.member))),
        ("EMERGENCY CONTACT" if card.person.adult else "MOTHER", contact[:3]),
        (
            "PROVIDERS",
            (
                ("Attending", write_clinician(setting.clinicians[0])),
                ("Referring", write_clinician(setting.clinicians[1])),
                ("PCP", write_clinician(setting.clinicians[3])),
            ),
        ),
    )
    y = 54.0
    for heading, rows in sections:
        sheet.page.draw_rect((44, y, 568, y + 12), color=None, fill=(0.85, 0.85, 0.85))
        sheet.write(48, y + 9, heading, 8, bold=True)
        for number, (label, text) in enumerate(rows):
            x, line = 48 + (number % 3) * 176, y + 23 + (number // 3) * 12
            sheet.write(x, line, f"{label}:", 8, bold=True)
            sheet.write(x + 46, line, text, 8)
        y += 17 + 12 * ((len(rows) + 2) // 3)
    sheet.write(48, y + 14, setting.title, 11, bold=True)
    return y + 34


def follow_registration(sheet: Sheet) -> float:
    sheet.write(44, 42, f"Patient: {sheet.show_name('last_first')}", 9, bold=True)
    sheet.write(270, 42, f"DOB: {sheet.show_birth('mdy')}", 9)
    sheet.write(390, 42, f"MRN: {sheet.show_number()}", 9)
    sheet.write(44, 53, f"Guarantor: {sheet.setting.write_relative()}", 8)
    sheet.write(270, 53, f"Attending: {write_clinician(sheet.setting.clinicians[0])}", 8)
    sheet.draw_line(58, 44, 568)
    return 80


# A cardiology or imaging table: two captions and contents in each ruled row.


def begin_study_table(sheet: Sheet) -> float:
    card, setting = sheet.card, sheet.setting
    rng = fix_random(sheet)
    sheet.write_middle(46, card.institution.name, 13, bold=True)
    sheet.write_middle(60, setting.title, 11, bold=True)
    rows = (
        (("Name:", sheet.show_name("last_first_capitals")), ("Study Date:", f"{setting.seen} {write_clock(sheet)}")),
        (("MRN:", sheet.show_number()), ("Patient Location:", "Outpatient")),
        (("DOB:", sheet.show_birth("mdy")), ("Gender:", SEXES[card.person.sex])),
        (("Age:", f"{card.age} yrs"), ("Height / Weight:", f"{rng.randint(58, 74)} in / {rng.randint(110, 240)} lb")),
        (("Accession #:", sheet.show_number("accession")), ("Ordering Physician:", setting.clinicians[0])),
        (("Performed By:", f"{setting.clinicians[3]}, RT"), ("Referring Physician:", setting.clinicians[1])),
    )
    y = 70.0
    for row in rows:
        for x, (label, text) in zip((54, 306), row, strict=True):
            sheet.draw_box(x, y, 252, 15, weight=0.4)
            sheet.write(x + 4, y + 11, label, 8.5, bold=True)
            sheet.write(x + (68 if x < 100 else 92), y + 11, text, 8.5)
        y += 15
    return y + 22


def finish_study_table(sheet: Sheet, total: int) -> None:
    if sheet.number > 1:
        sheet.write(54, 44, f"Name: {sheet.show_name('last_first_capitals')}", 9)
        sheet.write(270, 44, f"MRN: {sheet.show_number()}", 9)
        sheet.write(390, 44, f"DOB: {sheet.show_birth('mdy')}", 9)
        sheet.draw_line(50)
    sheet.write_right(558, 764, f"Page {sheet.number} of {total}", 8)


# An imaging centre: one long line with bars, a referrer in front.


def begin_barred(sheet: Sheet) -> float:
    card, setting = sheet.card, sheet.setting
    sheet.write(54, 50, card.institution.name, 15, bold=True)
    sheet.write(54, 63, card.institution.address, 8)
    sheet.write(54, 86, "TO:", 9, bold=True)
    sheet.write(84, 86, f"{setting.clinicians[1]}, MD", 9)
    sheet.write(300, 86, "EXAM DATE:", 9, bold=True)
    sheet.write(364, 86, setting.seen, 9)
    sheet.write(54, 99, "CC:", 9, bold=True)
    sheet.write(84, 99, f"{setting.clinicians[3]}, MD", 9)
    sheet.write(300, 99, "EXAM:", 9, bold=True)
    sheet.write(364, 99, setting.title, 9)
    sheet.draw_line(106)
    sheet.write(
        54,
        119,
        f"PATIENT: {sheet.show_name('last_first_capitals')} | DOB: {sheet.show_birth('mdy')} | "
        f"SEX: {card.person.sex} | MRN: {sheet.show_number()} | ACC: {sheet.show_number('accession')}",
        8.5,
    )
    sheet.draw_line(125)
    return 146


def follow_barred(sheet: Sheet) -> float:
    sheet.write(
        54,
        44,
        f"{sheet.show_name('last_first_capitals')} | DOB: {sheet.show_birth('mdy')} | MRN: {sheet.show_number()} | "
        f"EXAM DATE: {sheet.setting.seen}",
        8.5,
    )
    sheet.draw_line(50)
    return 74


# A letter whose first sentence names the patient.


def begin_named_in_text(sheet: Sheet) -> float:
    card, setting = sheet.card, sheet.setting
    sheet.write_middle(52, card.institution.name, 14, bold=True)
    sheet.write_middle(65, card.institution.address, 8.5)
    sheet.write(60, 92, write_day(card.seen, "long"))
    sheet.write(60, 116, f"{setting.clinicians[1]}, MD")
    sheet.write(60, 129, setting.street)
    sheet.write(60, 156, f"Dear Dr. {setting.clinicians[1].split()[-1]},")
    person = {"F": "woman", "M": "man"}[card.person.sex]
    if fix_random(sheet).random() < 0.5:
        words = (
            f"Thank you for referring {sheet.show_name('titled')} (DOB {sheet.show_birth('long')}, "
            f"MRN {sheet.show_number()}), whom I saw in clinic today."
        )
    else:
        words = (
            f"Your patient {sheet.show_name('titled')} is a {card.age}-year-old {person}, date of birth "
            f"{sheet.show_birth('mdy')}, medical record number {sheet.show_number()}, who came with "
            f"{setting.relative_word} {setting.write_relative('first_last')}."
        )
    return sheet.write_wrapped(60, 178, 490, words) + 6


def follow_named_in_text(sheet: Sheet) -> float:
    sheet.write(60, 48, sheet.show_name("titled"), 10)
    sheet.write(60, 61, write_day(sheet.card.seen, "long"), 10)
    sheet.write(60, 74, f"Page {sheet.number}", 10)
    return 100


def begin_cover(sheet: Sheet) -> float:
    setting, card = sheet.setting, sheet.card
    sheet.write(54, 64, card.institution.name, 14, bold=True)
    sheet.write(54, 92, "Facsimile Transmittal", 20, bold=True)
    rows = (
        ("To:", f"{setting.clinicians[1]}, MD"),
        ("From:", f"{setting.clinicians[3]}, Health Information"),
        ("Fax:", "555-618-0093"),
        ("Date:", setting.seen),
        ("Re:", f"{sheet.show_name('last_first')}   DOB {sheet.show_birth('mdy')}"),
    )
    y = write_rows(sheet, 54, 126, rows, 60, 11, 22)
    sheet.draw_line(y)
    return y + 30


LAYOUTS = (
    Layout(
        "records_release",
        "running_header",
        begin_release,
        head_release,
        finish_release,
        face="sans",
        size=9.5,
        margin=40,
        every_page=True,
    ),
    Layout(
        "visit_summary",
        "footer",
        begin_visit,
        None,
        finish_visit,
        face="sans",
        size=9.5,
        margin=50,
        every_page=True,
    ),
    Layout(
        "result_print",
        "running_header",
        begin_result,
        head_result,
        finish_result,
        face="sans",
        size=9.5,
        every_page=True,
    ),
    Layout(
        "terminal_print",
        "monospace",
        begin_terminal,
        follow_terminal,
        face="mono",
        size=9,
        margin=48,
        every_page=True,
    ),
    Layout(
        "standard_form_foot",
        "footer",
        begin_standard_form,
        begin_standard_form,
        finish_standard_form,
        face="mono",
        size=9,
        margin=54,
        bottom=704,
        every_page=True,
    ),
    Layout(
        "reference_laboratory",
        "laboratory",
        head_specimen,
        follow_specimen,
        finish_specimen,
        face="sans",
        size=9.5,
        margin=40,
        body="laboratory",
    ),
    Layout(
        "grid_laboratory",
        "laboratory",
        begin_grid_laboratory,
        follow_grid_laboratory,
        face="sans",
        size=9.5,
        margin=50,
        body="laboratory",
    ),
    Layout(
        "pathology_case",
        "letterhead",
        begin_pathology,
        None,
        finish_pathology,
        every_page=True,
    ),
    Layout(
        "trust_letter",
        "letter",
        begin_trust_letter,
        None,
        finish_trust_letter,
        face="sans",
        size=10,
        grown_only=True,
        every_page=True,
    ),
    Layout(
        "discharge_form",
        "form",
        begin_discharge_form,
        follow_discharge_form,
        face="sans",
        size=9.5,
        margin=46,
        every_page=True,
    ),
    Layout(
        "imaging_practice",
        "letter",
        begin_imaging_practice,
        follow_imaging_practice,
        face="sans",
        size=10,
        every_page=True,
    ),
    Layout(
        "network_box",
        "box",
        begin_network,
        head_network,
        finish_network,
        face="sans",
        size=9.5,
        margin=50,
        every_page=True,
    ),
    Layout(
        "practice_line",
        "running_header",
        begin_practice_line,
        head_practice_line,
        finish_practice_line,
        face="sans",
        size=9.5,
        margin=48,
        every_page=True,
    ),
    Layout(
        "practice_stack",
        "footer",
        begin_practice_stack,
        None,
        finish_practice_stack,
        size=10.5,
        margin=54,
        every_page=True,
    ),
    Layout(
        "practice_blocks",
        "blocks",
        begin_practice_blocks,
        None,
        finish_practice_blocks,
        face="sans",
        size=9.5,
        margin=48,
        every_page=True,
    ),
    Layout(
        "bracketed_line",
        "running_header",
        begin_bracketed,
        head_bracketed,
        finish_bracketed,
        face="sans",
        size=9.5,
        margin=54,
        every_page=True,
    ),
    Layout(
        "tumour_panel",
        "blocks",
        begin_panel,
        follow_panel,
        finish_panel,
        face="sans",
        size=9.5,
        margin=40,
        every_page=True,
    ),
    Layout(
        "hereditary_test",
        "footer",
        begin_hereditary,
        None,
        finish_hereditary,
        face="sans",
        size=9.5,
        margin=50,
        every_page=True,
    ),
    Layout(
        "ward_label",
        "sticker",
        begin_ward_form,
        begin_ward_form,
        size=10.5,
        margin=48,
        every_page=True,
    ),
    Layout(
        "foot_label",
        "sticker",
        begin_foot_label,
        begin_foot_label,
        finish_foot_label,
        size=10.5,
        margin=54,
        bottom=680,
        every_page=True,
    ),
    Layout(
        "filled_form",
        "form",
        begin_filled_form,
        None,
        finish_filled_form,
        face="sans",
        size=9.5,
        margin=54,
        every_page=True,
    ),
    Layout("dictation", "letterhead", begin_dictation, follow_dictation, face="mono", size=9.5, every_page=True),
    Layout(
        "registration_sheet",
        "form",
        begin_registration,
        follow_registration,
        face="sans",
        size=9.5,
        margin=48,
        every_page=True,
    ),
    Layout(
        "study_table",
        "table",
        begin_study_table,
        None,
        finish_study_table,
        face="sans",
        size=9.5,
        margin=54,
        every_page=True,
    ),
    Layout("barred_line", "letterhead", begin_barred, follow_barred, size=10.5, margin=54, every_page=True),
    Layout("named_in_text", "text", begin_named_in_text, follow_named_in_text, size=11, grown_only=True),
)
COVER = Layout("cover_with_subject", "cover", begin_cover, face="sans", size=11, margin=54, body="cover")
COVER_TEXT = (
    "The records you requested follow this page.",
    "If any page is missing or cannot be read, please telephone the number above.",
    "The information in this facsimile is confidential. If you received it in error, destroy it and notify us.",
)
