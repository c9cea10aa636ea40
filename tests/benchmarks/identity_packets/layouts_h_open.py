"""The half `h_open`: persons, institutions and 22 page layouts."""

from __future__ import annotations

from .drawing import Layout, Sheet
from .layouts_h import (
    LEFT,
    RIGHT,
    SEXES,
    bar,
    born,
    born_kin,
    day_of,
    foot,
    head_left,
    head_middle,
    head_right,
    land_of,
    list_pairs,
    note,
    put,
    rule_rows,
    stack,
    surname_given,
    surname_titled,
    write_address,
    write_fixed,
    write_mother,
    write_national,
)
from .persons import Pool

POOL = Pool(
    women=(
        ("Annika", "Anni"),
        ("Bronwen", "Bron"),
        ("Chidinma", "Chichi"),
        ("Concepción", "Concha"),
        ("Danuta", "Danka"),
        ("Eleanor", "Nell"),
        ("Fatoumata", "Fatou"),
        ("Gabriela", "Gabi"),
        ("Harriet", "Hattie"),
        ("Ines Maria", "Ines"),
        ("Juliane", "Jule"),
        ("Kavitha", "Kavi"),
        ("Leilani", "Lani"),
        ("Mwanaisha", "Aisha"),
        ("Nkechi", "Kechi"),
        ("Ottilie", "Tilly"),
        ("Philippa", "Pippa"),
        ("Rosalind", "Roz"),
        ("Shabnam", "Shabi"),
        ("Thandiwe", "Thandi"),
        ("Ursula", "Ulla"),
        ("Véronique", "Véro"),
        ("Winifred", "Winnie"),
        ("Zsuzsanna", "Zsuzsi"),
        ("Mei-Ling", "Mei"),
        ("Barbara", "Babs"),
    ),
    men=(
        ("Abelardo", "Lalo"),
        ("Benedikt", "Ben"),
        ("Cornelius", "Neil"),
        ("Dhananjay", "Jay"),
        ("Edmund", "Ned"),
        ("Fitzgerald", "Gerry"),
        ("Guillermo", "Memo"),
        ("Hyun-woo", "Hyun"),
        ("Iskandar", "Iskan"),
        ("José Antonio", "Toño"),
        ("Kazimierz", "Kazik"),
        ("Lukas", "Luk"),
        ("Maximilian", "Max"),
        ("Njoroge", "Njo"),
        ("Oluwaseun", "Seun"),
        ("Percival", "Percy"),
        ("Reginald", "Reg"),
        ("Sibusiso", "Sbu"),
        ("Tobias", "Tobi"),
        ("Venkatesh", "Venky"),
        ("Walter", "Wally"),
        ("Yusuf", "Yus"),
        ("Zachariah", "Zack"),
        ("Samuel", "Sam"),
        ("Archibald", "Archie"),
        ("Gareth", "Gaz"),
    ),
    unisex=("Kelly", "Morgan", "Jamie", "Sasha"),
    families=(
        "Abernathy",
        "Achterberg",
        "Agarwal",
        "Alvarenga Prado",
        "Amankwah",
        "Baptiste",
        "Birch",
        "Blankenship",
        "Brennan",
        "Castellanos Vega",
        "Chukwuemeka",
        "Cobb",
        "da Costa e Silva",
        "Delacroix",
        "D'Souza",
        "Dlamini",
        "Eichhorn",
        "El Mansouri",
        "Fernsby",
        "Gallagher-Hume",
        "Grünwald",
        "Hakimi",
        "Hollingsworth",
        "Ivey",
        "Jensen",
        "Kamau",
        "Kjærgaard",
        "Krishnamurthy",
        "Lim",
        "MacAskill",
        "Mokoena",
        "Nakagawa",
        "Nwosu",
        "O'Driscoll",
        "Pohl",
        "Quintero",
        "Ravensworth",
        "Sandoval",
        "Szymanek",
        "Tchakounté",
        "Thistlewood",
        "Underhill",
        "Van Houten",
        "von Rabenau",
        "Wanjiru",
        "West",
        "Yadav",
        "Young",
        "Zubiri",
        "Church",
    ),
    clinicians=(
        "Adaeze Mbanefo",
        "Alistair Drummond",
        "Birgit Hasselbach",
        "Carlos Iturralde",
        "Deborah Klein",
        "Elspeth Rannoch",
        "Farouk Benali",
        "Grace Muthoni",
        "Harold Winterbourne",
        "Indira Chandran",
        "Joaquim Serrano",
        "Kathleen Doyle",
        "Lwazi Ndlovu",
        "Miriam Feldstein",
        "Nils Bergqvist",
        "Ophelia Grant",
        "Pierre Lemaître",
        "Stewart Callander",
    ),
    institutions=(
        (
            "Blue Heron Regional Medical Center",
            "900 Cypress Pkwy, Heron Lake, FL 32999   (352) 555-0141|USA",
            "99999999",
        ),
        ("Cedar Notch Family Practice", "14 Mill Rd, Cedar Notch, VT 05999   802-555-0117|USA", "9999999"),
        (
            "Lakeshore Integrated Health",
            "3300 Harbor Blvd, Ste 210, Port Ellis, WI 53999   414.555.0160|USA",
            "E99999999",
        ),
        ("Desert Mesa Diagnostics", "77 Mesa Verde Dr, Mesa Alta, NM 87999   (505) 555-0122|USA", "DM-9999999"),
        (
            "Pennycross University Hospitals NHS Trust",
            "Hexley Road, Pennycross PX9 9TT   01632 960 115|England",
            "R9999999",
        ),
        ("Saltmarsh Lane Surgery", "2 Saltmarsh Lane, Orford Quay OQ9 4ZZ   01632 960 301|England", "9999999"),
        ("Kilbrechan Community Hospital", "Abbey Brae, Kilbrechan KB99 1AA   01632 960 650|Scotland", "K9999999"),
        ("Corrib View Clinic", "Quay Street, Gort na Mara, Co. Galway   091 555 0133|Ireland", "CV999999"),
        ("Birch River Health Centre", "411 Portage Way, Birch River MB R9Z 0Z0   204-555-0139|Canada", "99999999"),
        (
            "Wattle Park Specialist Centre",
            "Level 2, 60 Wattle Street, Wattle Park VIC 3999   03 5550 8811|Australia",
            "9999999",
        ),
        ("Marienstift Hospital Lindental", "Am Stift 3, 99999 Lindental   +49 5555 0140|Germany", "9999999999"),
        ("Sankt Kilian District Hospital", "Kirchplatz 1, 9999 Sankt Kilian   +43 5555 170|Austria", "99999999"),
        ("Hospital General La Ribera", "Calle Mayor 80, 99999 La Ribera   +34 955 550 144|Spain", "9999999"),
        (
            "Sri Annapurna Multispeciality Hospital",
            "MG Road, Annapurna Nagar 560999   080 5550 2244|India",
            "SAM9999999",
        ),
        ("Mount Elgon Mission Hospital", "P.O. Box 99, Elgon Market   +254 555 010 180|Kenya", "MEH/999999/99"),
        ("Protea Ridge Private Hospital", "18 Protea Avenue, Ridgeway 9999   021 555 0190|South Africa", "PR9999999"),
        ("Hospital Santa Clara do Vale", "Rua das Flores 500, Vale Verde SP   +55 19 5555 0110|Brazil", "99999999"),
        ("Clínica Los Alcázares", "Carrera 15 No. 99-40, Villanueva   +57 1 555 0170|Colombia", "99999999"),
    ),
    insurers=(
        "Great Basin Mutual Health",
        "Copperline Health Plans",
        "AssurVie Mutuelle",
        "Ubuntu Medical Scheme",
        "Ganga General Insurance",
        "Saúde Serrana",
    ),
    streets=(
        "Orchard Close",
        "Juniper Court",
        "Lindenweg",
        "Calle del Sol",
        "Nehru Road",
        "Kirkton Street",
        "Acacia Avenue",
    ),
)

TITLES = {
    "Clinical Note": ("Discharge Summary", "Office Visit", "Consultation", "Progress Note", "Emergency Attendance"),
    "Radiology Report": ("Radiology Report", "Imaging Result", "Final Report - Imaging"),
    "Pathology Report": ("Surgical Pathology Report", "Histology Report"),
    "Genomic Report": ("Comprehensive Genomic Profile", "Germline Test Report"),
    "Other": ("Authorization to Release Information", "Consent", "Administrative Form"),
}
SIGNATURES = (
    "Electronically signed by {} on {}",
    "Yours sincerely, {}   (dictated {})",
    "{}, consultant. Authorised {}",
    "Signed: {}   Date: {}",
)
LABORATORY_SIGNATURE = "Validated by {}, pathologist, on {}"
FAX_SENDERS = ("BLUE HERON RMC", "PENNYCROSS RECORDS", "MARIENSTIFT SEKR 2", "FROM:WATTLE PARK SPEC")
TESTS = (
    ("Haemoglobin", "g/dL", 11.5, 16.0),
    ("White cell count", "10^9/L", 4.0, 11.0),
    ("Platelets", "10^9/L", 150, 400),
    ("Haematocrit", "%", 36, 47),
    ("Mean cell volume", "fL", 80, 98),
    ("Sodium", "mmol/L", 135, 145),
    ("Potassium", "mmol/L", 3.5, 5.2),
    ("Urea", "mmol/L", 2.5, 7.8),
    ("Creatinine", "umol/L", 50, 105),
    ("eGFR", "mL/min", 60, 120),
    ("Bilirubin total", "umol/L", 3, 21),
    ("ALP", "U/L", 30, 130),
    ("Gamma GT", "U/L", 8, 55),
    ("Calcium adjusted", "mmol/L", 2.2, 2.6),
    ("Ferritin", "ug/L", 15, 200),
    ("TSH", "mIU/L", 0.4, 4.2),
    ("Glucose fasting", "mmol/L", 3.9, 5.6),
    ("CRP", "mg/L", 0, 5),
)


# Print-outs of record systems.


def begin_cda_table(sheet: Sheet) -> float:
    """A care document as a browser renders and prints it; later pages carry the browser's lines alone."""
    card, setting = sheet.card, sheet.setting
    draw_browser_line(sheet)
    put(sheet, 306, 62, f"Summary of Care: {setting.title}", 14, True, align="middle")
    half = (RIGHT - LEFT) / 2
    rows = [
        [(2 * half, "Patient", sheet.show_name("first_last"))],
        [(half, "Date of birth", born(sheet, "long")), (half, "Sex", SEXES[card.person.sex])],
        [(half, "Race", "Information not available"), (half, "Ethnicity", "Information not available")],
        [(2 * half, "Contact info", f"Primary Home: {setting.street}   Tel: 555-0143")],
        [(2 * half, "Patient IDs", f"{sheet.show_number()}   2.16.840.1.113883.19.5.99999")],
        [(half, "Document Id", write_fixed(sheet, "cda", "9999a9-99f9")), (half, "Created", day_of(sheet, "long"))],
        [(half, "Author", f"{setting.clinicians[0]}, MD"), (half, "Contact info", card.institution.name)],
        [(half, "Emergency contact", setting.write_relative("first_last")), (half, "Relation", setting.relative_word)],
        [(2 * half, "Document maintained by", card.institution.name)],
    ]
    y = 74.0
    for row in rows:
        y = rule_rows(sheet, y, [row], beside=0.17 if len(row) == 1 else 0.34)
    return y + 24


def draw_browser_line(sheet: Sheet) -> float:
    put(sheet, 36, 30, f"{day_of(sheet, 'mdy_short')}, 9:14 AM", 7.5)
    put(sheet, 306, 30, "Summary of Care", 7.5, align="middle")
    return 66


def finish_cda_table(sheet: Sheet, total: int) -> None:
    put(sheet, 36, 776, f"file:///C:/Downloads/ccd_{write_fixed(sheet, 'file', '999999')}.xml", 7.5)
    put(sheet, 576, 776, f"{sheet.number}/{total}", 7.5, align="right")


def begin_last_page(sheet: Sheet) -> float:
    """A transcribed dictation: the identity stands at its end."""
    y = head_middle(sheet)
    put(sheet, 306, y + 6, sheet.setting.title.upper(), 12, True, align="middle")
    return y + 32


def finish_last_page(sheet: Sheet, total: int) -> None:
    setting = sheet.setting
    if sheet.number == total:
        sheet.draw_line(690, weight=1.2)
        initials = "".join(word[0] for word in setting.clinicians[0].split())
        left = [
            ("PATIENT:", sheet.show_name("last_first_capitals")),
            ("MEDICAL RECORD #:", sheet.show_number()),
            ("BIRTH DATE:", born(sheet)),
            ("ADMITTED:", day_of(sheet)),
        ]
        right = [
            ("DICTATED BY:", setting.clinicians[0].upper()),
            ("D:", f"{day_of(sheet)} 14:20"),
            ("T:", f"{day_of(sheet)} 19:02  {initials}/{write_fixed(sheet, 'typist', '999')}"),
            ("JOB #:", write_fixed(sheet, "job", "9999999")),
        ]
        list_pairs(sheet, LEFT, 706, left, 104, 280, 13)
        list_pairs(sheet, 350, 706, right, 76, 208, 13)
    put(sheet, 306, 772, f"Page {sheet.number} of {total}", 8, align="middle")


def draw_result_header(sheet: Sheet) -> float:
    """A result print-out: identifiers on top, the result's own properties below them."""
    card, setting, land = sheet.card, sheet.setting, land_of(sheet)
    put(sheet, 306, 36, card.institution.name, 10, True, align="middle")
    left = [("Patient Name:", sheet.show_name("last_first_capitals")), ("Date of Birth:", born(sheet))]
    right = [(f"{land.record}:", sheet.show_number()), ("FIN:", sheet.show_number("account"))]
    list_pairs(sheet, LEFT, 54, left, 78, 300)
    list_pairs(sheet, 370, 54, right, 92, 188)
    sheet.draw_line(72, weight=0.5)
    if sheet.number > 1:
        put(sheet, 306, 86, "* Final Report *", 9, align="middle")
        return 108
    rows = [
        ("Result type:", setting.title),
        ("Result date:", f"{day_of(sheet, 'long')} 10:42"),
        ("Result status:", "Auth (Verified)"),
        ("Performed by:", f"{setting.clinicians[0]} on {day_of(sheet, 'long')} 10:42"),
        ("Verified by:", f"{setting.clinicians[2]} on {day_of(sheet, 'long')} 16:05"),
        ("Encounter info:", f"{sheet.show_number('account')}, {card.institution.name}, Inpatient, {day_of(sheet)} -"),
    ]
    return list_pairs(sheet, LEFT, 88, rows, 92, 500) + 16


def finish_result_header(sheet: Sheet, total: int) -> None:
    put(sheet, LEFT, 762, f"Printed by: {sheet.setting.clinicians[3]}", 8)
    put(sheet, LEFT, 772, f"Printed on: {day_of(sheet)} 11:58", 8)
    put(sheet, RIGHT, 762, f"Page {sheet.number} of {total}", 8, align="right")
    if sheet.number < total:
        put(sheet, RIGHT, 772, "(Continued)", 8, align="right")


def begin_visit_banner(sheet: Sheet) -> float:
    """A visit summary handed to the patient: a large name over a line of codes."""
    card, setting = sheet.card, sheet.setting
    put(sheet, LEFT, 48, "VISIT SUMMARY", 9, True, pale=True)
    put(sheet, LEFT, 70, sheet.show_name("first_last"), 18, True, 340)
    put(
        sheet,
        LEFT,
        84,
        f"MRN: {sheet.show_number()} · DOB: {born(sheet, 'mdy_short')} · {SEXES[card.person.sex]}",
        9,
        width=340,
    )
    rows = [
        ("", day_of(sheet, "long")),
        ("", card.institution.name),
        ("Your provider", setting.clinicians[0]),
        ("Next appointment", f"with {setting.clinicians[1]}"),
    ]
    stack(sheet, 410, 48, rows, 150, 9)
    sheet.draw_line(114, weight=2)
    return 136


def finish_visit_banner(sheet: Sheet, total: int) -> None:
    line = f"{sheet.show_name('first_last')} (MRN: {sheet.show_number()}) · Printed at {day_of(sheet)} 3:51 PM"
    foot(sheet, total, line, 8)


def draw_parentheses(sheet: Sheet) -> float:
    """A practice system: number and birth date in brackets behind the name, on every page."""
    card, setting = sheet.card, sheet.setting
    name = sheet.show_name("last_first")
    put(sheet, LEFT, 36, f"{name} (id #{sheet.show_number()}, dob: {born(sheet)})", 9, True)
    if sheet.number > 1:
        return 66
    sheet.draw_line(42, weight=0.5)
    put(sheet, LEFT, 62, f"{card.institution.name} · {write_address(sheet)}", 8.5)
    put(sheet, LEFT, 84, f"{setting.title} - {day_of(sheet)}", 12, True)
    rows = [
        ("Provider", f"{setting.clinicians[0]}, MD (Supervising: {setting.clinicians[1]}, MD)"),
        ("Insurance", f"Med Primary: {setting.insurer}   Insurance #: {setting.member}"),
        ("", f"Policy holder: {setting.write_relative('first_last')}, {born_kin(sheet)}"),
        ("Prescription", "on file, drug benefit checked"),
    ]
    return list_pairs(sheet, LEFT, 102, rows, 72, 504) + 14


def begin_federal(sheet: Sheet) -> float:
    """A federal hospital's note: the patient stands in the imprint box at the foot alone."""
    setting = sheet.setting
    put(sheet, LEFT, 40, f"MEDICAL RECORD      |   {setting.title}", 10, True)
    sheet.draw_line(46)
    rows = [
        f"LOCAL TITLE: {setting.title.upper()}",
        f"DATE OF NOTE: {day_of(sheet, 'month_capitals')}@10:33     ENTRY DATE: {day_of(sheet, 'month_capitals')}@10:51",
        f"AUTHOR: {setting.clinicians[0].upper()}     EXP COSIGNER: {setting.clinicians[2].upper()}",
        "URGENCY:                STATUS: COMPLETED",
    ]
    for at, row in enumerate(rows):
        put(sheet, LEFT, 64 + at * 12, row, 9)
    return 136


def finish_federal(sheet: Sheet, total: int) -> None:
    card, setting = sheet.card, sheet.setting
    sheet.draw_box(LEFT, 704, 320, 62, weight=0.6)
    sheet.draw_box(LEFT + 320, 704, 184, 62, weight=0.6)
    put(sheet, LEFT + 4, 712, "PATIENT NAME AND ADDRESS (Mechanical imprinting, if available)", 6, width=312)
    lines = (
        sheet.show_name("last_first_tight_capitals"),
        setting.street.upper(),
        f"{sheet.show_number()}      {born(sheet, 'month_capitals')}",
    )
    for at, line in enumerate(lines):
        put(sheet, LEFT + 8, 725 + at * 12, line, 9, width=304)
    put(sheet, LEFT + 324, 718, "Electronic Medical Documentation", 8, True, 176)
    put(sheet, LEFT + 324, 732, f"Printed at {card.institution.name}", 8, width=176)
    put(sheet, LEFT + 324, 746, f"{day_of(sheet, 'month_capitals')}      page {sheet.number}", 8, width=176)


# Letters.


def begin_specialist(sheet: Sheet) -> float:
    """A specialist's letter: name in the subject line, birth date and address below it."""
    card, setting, land = sheet.card, sheet.setting, land_of(sheet)
    put(sheet, LEFT, 44, f"Dr {setting.clinicians[0]}", 14, True)
    put(sheet, LEFT, 56, f"MBBS FRACP   Provider No. {write_fixed(sheet, 'provider', '999999')}4K", 8)
    put(sheet, RIGHT, 44, card.institution.name, 9, align="right", width=250)
    put(sheet, RIGHT, 56, write_address(sheet), 7.5, align="right", width=250)
    sheet.draw_line(62)
    put(sheet, LEFT, 82, day_of(sheet, "long_day_first"), 10)
    put(sheet, RIGHT, 82, f"Our ref: {sheet.show_number()}", 9, align="right")
    put(sheet, LEFT, 104, f"Dr {setting.clinicians[1]}", 10)
    put(sheet, LEFT, 117, setting.street, 10)
    put(sheet, LEFT, 140, f"Dear {setting.clinicians[1].split()[0]},", 10)
    put(sheet, LEFT, 160, f"re: {sheet.show_name('titled')}", 10.5, True)
    put(sheet, LEFT + 18, 173, f"{born(sheet)}   {setting.street}   Ph 5550 0127", 9.5)
    put(sheet, LEFT + 18, 185, f"{land.national} {write_national(sheet)}", 9.5)
    return 210


def follow_specialist(sheet: Sheet) -> float:
    put(sheet, LEFT, 46, f"re: {sheet.show_name('titled')}   continued, page {sheet.number}", 9)
    return 72


def draw_practice_banner(sheet: Sheet) -> float:
    """A practice system's record print-out: the patient banner heads every page."""
    card, setting, land = sheet.card, sheet.setting, land_of(sheet)
    sheet.draw_box(40, 34, 532, 34, shade=0.9, weight=0.4)
    put(sheet, 46, 48, surname_titled(sheet), 12, True, 190)
    put(sheet, 246, 48, "Born", 7, pale=True)
    put(sheet, 268, 48, f"{born(sheet, 'abbreviated')} ({card.age}y)", 9.5, width=110)
    put(sheet, 386, 48, f"Gender {SEXES[card.person.sex]}", 9)
    put(sheet, 46, 62, f"{land.national} {write_national(sheet)}", 9, width=190)
    put(sheet, 246, 62, f"{land.record} {sheet.show_number()}", 9, width=130)
    put(sheet, 386, 62, f"Usual {land.doctor}: {setting.clinicians[1]}", 8.5, width=182)
    if sheet.number > 1:
        return 94
    put(sheet, 46, 88, f"{card.institution.name}, {write_address(sheet)}", 8.5)
    put(
        sheet,
        46,
        108,
        f"{setting.title} (recorded {day_of(sheet, 'abbreviated')} by {setting.clinicians[0]})",
        10.5,
        True,
    )
    return 134


def finish_practice_banner(sheet: Sheet, total: int) -> None:
    foot(sheet, total, f"CONFIDENTIAL: PERSONAL DATA   Printed {day_of(sheet)} by {sheet.setting.clinicians[3]}", 7.5)


def begin_mutual(sheet: Sheet) -> float:
    """A hospital doctor's letter: the mutual patient in one sentence, the numbers in the column at the right."""
    card, setting, land = sheet.card, sheet.setting, land_of(sheet)
    head_middle(sheet, 13)
    put(sheet, LEFT, 92, f"Dr. med. {setting.clinicians[1]}", 10)
    put(sheet, LEFT, 105, setting.street, 10)
    rows = [
        ("Head physician", f"Prof. {setting.clinicians[3]}"),
        (f"{land.record}", sheet.show_number()),
        ("Case", sheet.show_number("visit")),
        ("Date", day_of(sheet)),
    ]
    list_pairs(sheet, 380, 92, rows, 72, 186, 12, 8.5)
    put(sheet, LEFT, 156, "Dear colleague,", 10)
    word = "Mr." if card.person.sex == "M" else "Mrs."
    patient = f"{word} {sheet.show_name('last_first')}, born {born(sheet, 'dots')}"
    text = (
        f"we report on our mutual patient {patient}, resident at {setting.street}, insured with {setting.insurer}, "
        f"who was under our in-patient care until {day_of(sheet, 'dots')}."
    )
    return sheet.write_wrapped(LEFT, 174, RIGHT - LEFT, text, 10.5, True) + 12


def follow_mutual(sheet: Sheet) -> float:
    put(
        sheet,
        LEFT,
        44,
        f"Page {sheet.number} of the letter on {sheet.show_name('last_first')}, * {born(sheet, 'dots')}",
        9,
    )
    sheet.draw_line(50, weight=0.4)
    return 74


def begin_clinic_letter(sheet: Sheet) -> float:
    """A clinic letter: references at the right, the patient in bold under the salutation."""
    setting, land = sheet.setting, land_of(sheet)
    y = head_right(sheet)
    mark = "".join(word[0] for word in setting.clinicians[0].split())
    rows = [
        ("Our Ref:", f"{mark}/{setting.clinicians[3].split()[0][:2].lower()}/{sheet.show_number()}"),
        (f"{land.national}:", write_national(sheet)),
        ("Clinic Date:", day_of(sheet)),
        ("Date Typed:", day_of(sheet)),
    ]
    list_pairs(sheet, 370, y, rows, 76, 188)
    put(sheet, LEFT, y, "PRIVATE & CONFIDENTIAL", 9, True)
    put(sheet, LEFT, y + 14, f"Dr {setting.clinicians[1]}", 10)
    put(sheet, LEFT, y + 27, setting.street, 10)
    put(sheet, LEFT, y + 66, f"Dear Dr {setting.clinicians[1].split()[-1]}", 10)
    put(sheet, 306, y + 86, sheet.show_name("titled_surname"), 10.5, True, align="middle")
    put(sheet, 306, y + 99, f"{land.birth}: {born(sheet)}", 10, True, align="middle")
    put(sheet, 306, y + 112, setting.street, 9.5, align="middle")
    return y + 136


def follow_clinic_letter(sheet: Sheet) -> float:
    put(sheet, 306, 46, f"- {sheet.number} -", 9, align="middle")
    put(sheet, RIGHT, 46, sheet.show_number(), 9, align="right")
    return 72


# Sheets of particular countries.


def begin_surnames(sheet: Sheet) -> float:
    """Surnames and names in cells of their own, the party who answers for the account beside them."""
    card, setting, land = sheet.card, sheet.setting, land_of(sheet)
    y = head_middle(sheet)
    put(sheet, 306, y, setting.title.upper(), 11, True, align="middle")
    family, given = sheet.show_split_name()
    rows = [
        [
            (168, "Surnames", family),
            (168, "Names", given),
            (168, f"{land.national} (type and No.)", write_national(sheet)),
        ],
        [
            (168, land.birth, born(sheet)),
            (84, "Age", f"{card.age} years"),
            (84, "Sex", card.person.sex),
            (168, land.record, sheet.show_number()),
        ],
        [
            (168, "Admission No.", sheet.show_number("visit")),
            (168, "Insurer", setting.insurer),
            (168, "Attention date", day_of(sheet)),
        ],
        [
            (168, "Responsible party", setting.write_relative("first_last")),
            (84, "Relationship", setting.relative_word),
            (84, "Phone", "555 0166"),
            (168, "Treating professional", setting.clinicians[0]),
        ],
    ]
    return rule_rows(sheet, y + 8, rows, height=25, beside=0) + 22


def finish_surnames(sheet: Sheet, total: int) -> None:
    family, given = sheet.show_split_name()
    foot(
        sheet,
        total,
        f"{land_of(sheet).record} {sheet.show_number()}   {given} {family}   Printed by {sheet.setting.clinicians[3]}",
    )


def draw_sticker(sheet: Sheet) -> float:
    """Ward paper with the patient's label stuck into the box at the upper right."""
    card, setting, land = sheet.card, sheet.setting, land_of(sheet)
    put(sheet, LEFT, 46, card.institution.name, 12, True, 236)
    put(sheet, LEFT, 58, write_address(sheet), 7, width=236)
    put(sheet, LEFT, 84, setting.title.upper(), 13, True, 236)
    put(sheet, LEFT, 104, f"Facility ........................   Page {sheet.number}", 8)
    sheet.draw_box(306, 32, 262, 92, weight=0.4)
    put(sheet, 310, 40, "AFFIX PATIENT LABEL HERE", 6, pale=True)
    sheet.draw_box(316, 45, 240, 74, shade=1, weight=0.8)
    lines = (
        f"{land.record} {sheet.show_number()}",
        surname_given(sheet),
        f"{born(sheet)}     {card.person.sex}     {card.age} yrs",
        setting.street,
        f"{setting.clinicians[0].split()[-1]}, {setting.clinicians[0].split()[0]} (Dr)   Adm {day_of(sheet)}",
    )
    for at, line in enumerate(lines):
        put(sheet, 322, 57 + at * 11.5, line, 9, at == 1, 226)
    sheet.draw_bars(322, 108, 120, 8)
    return 150


def begin_mother(sheet: Sheet) -> float:
    """A sheet that names the mother, as registers do where names are many and alike."""
    card, setting, land = sheet.card, sheet.setting, land_of(sheet)
    y = head_left(sheet)
    put(sheet, RIGHT, 42, setting.title, 11, True, align="right", width=180)
    left = [
        ("Patient", sheet.show_name("first_last")),
        ("Mother", write_mother(sheet)),
        ("Birth", f"{born(sheet)}   ({card.age} years)"),
        ("Health plan", f"{setting.insurer} - card {setting.member}"),
    ]
    right = [
        (land.record, sheet.show_number()),
        (land.national, write_national(sheet)),
        ("Attendance", f"{sheet.show_number('visit')}  {day_of(sheet)}"),
        ("Physician", f"Dr. {setting.clinicians[0]} reg. {write_fixed(sheet, 'council', '99999')}"),
    ]
    list_pairs(sheet, LEFT, y, left, 62, 280, 14)
    return list_pairs(sheet, 344, y, right, 92, 214, 14) + 14


def follow_mother(sheet: Sheet) -> float:
    line = f"Patient: {sheet.show_name('first_last')}   Mother: {write_mother(sheet)}   Record: {sheet.show_number()}"
    put(sheet, LEFT, 44, line, 8.5, width=504)
    sheet.draw_line(50, weight=0.4)
    return 72


# Imaging, pathology, genetics.


def draw_film_corners(sheet: Sheet) -> float:
    """A print from the viewer: texts without labels in the corners."""
    card, setting = sheet.card, sheet.setting
    lines = (
        sheet.show_name("last_first_capitals"),
        f"{born(sheet, 'abbreviated_capitals')}   {card.person.sex}   {card.age:03}Y",
        sheet.show_number(),
    )
    for at, line in enumerate(lines):
        put(sheet, 36, 38 + at * 12, line, 9.5, width=270)
    lines = (
        card.institution.name,
        f"{day_of(sheet, 'abbreviated_capitals')}  09:47:12",
        sheet.show_number("accession"),
    )
    for at, line in enumerate(lines):
        put(sheet, 576, 38 + at * 12, line, 9.5, align="right", width=262)
    if sheet.number == 1:
        put(sheet, 306, 96, sheet.setting.title, 12, True, align="middle")
        put(sheet, 306, 110, f"Requested by {setting.clinicians[1]}", 9, align="middle")
        return 136
    return 96


def finish_film_corners(sheet: Sheet, total: int) -> None:
    put(sheet, 36, 768, f"Se: {sheet.number}/{total}   Im: 12", 9)
    put(sheet, 576, 768, "W 400  L 40   Zoom 100%", 9, align="right")


def begin_case_report(sheet: Sheet) -> float:
    card, setting = sheet.card, sheet.setting
    y = head_middle(sheet, 13)
    put(sheet, 306, y + 4, "DEPARTMENT OF PATHOLOGY AND LABORATORY MEDICINE", 9, align="middle")
    put(sheet, LEFT, y + 26, "Patient:", 9, True)
    put(sheet, LEFT + 66, y + 26, sheet.show_name("last_first_capitals"), 10.5, True, 210)
    put(sheet, 340, y + 26, f"Case #: {sheet.show_number('accession')}", 11, True)
    left = [
        ("MRN:", sheet.show_number()),
        ("DOB (Age):", f"{born(sheet)} ({card.age})"),
        ("Gender:", card.person.sex),
        ("Location:", "OR MAIN"),
    ]
    right = [
        ("Submitting:", f"{setting.clinicians[1]}, MD"),
        ("Copy to:", f"{setting.clinicians[2]}, MD"),
        ("Collected:", day_of(sheet)),
        ("Received:", day_of(sheet)),
    ]
    list_pairs(sheet, LEFT, y + 40, left, 66, 276)
    y = list_pairs(sheet, 340, y + 40, right, 66, 218)
    sheet.draw_line(y - 4, weight=1.5)
    return y + 16


def follow_case_report(sheet: Sheet) -> float:
    put(sheet, LEFT, 44, f"Patient: {sheet.show_name('last_first_capitals')}", 9)
    put(sheet, RIGHT, 44, f"Case #: {sheet.show_number('accession')}", 9, align="right", width=160)
    return 70


def begin_tumour_columns(sheet: Sheet) -> float:
    """A sequencing company's report: patient, physician and specimen side by side."""
    card, setting = sheet.card, sheet.setting
    put(sheet, LEFT, 46, f"{setting.title}", 15, True, 300)
    put(sheet, RIGHT, 40, "REPORT DATE", 6.5, align="right", pale=True)
    put(sheet, RIGHT, 51, day_of(sheet, "abbreviated"), 9, align="right")
    columns = (
        (
            "PATIENT",
            [
                ("DISEASE", "see result below"),
                ("NAME", sheet.show_name("last_first")),
                ("DATE OF BIRTH", born(sheet, "long_day_first")),
                ("SEX", SEXES[card.person.sex]),
                ("MEDICAL RECORD #", sheet.show_number()),
            ],
        ),
        (
            "PHYSICIAN",
            [
                ("ORDERING PHYSICIAN", setting.clinicians[0]),
                ("MEDICAL FACILITY", card.institution.name),
                ("ADDITIONAL RECIPIENT", setting.clinicians[1]),
                ("MEDICAL FACILITY ID", write_fixed(sheet, "facility", "999999")),
                ("PATHOLOGIST", setting.clinicians[2]),
            ],
        ),
        (
            "SPECIMEN",
            [
                ("SPECIMEN ID", sheet.show_number("accession")),
                ("SPECIMEN TYPE", "Block"),
                ("DATE OF COLLECTION", day_of(sheet, "long_day_first")),
                ("SPECIMEN RECEIVED", day_of(sheet, "long_day_first")),
                ("ORDERED TEST #", write_fixed(sheet, "order", "ORD-9999999-01")),
            ],
        ),
    )
    for at, (head, rows) in enumerate(columns):
        x = LEFT + at * 170
        sheet.draw_box(x, 62, 164, 130, shade=0.93, weight=0.2)
        put(sheet, x + 6, 75, head, 8.5, True)
        stack(sheet, x + 6, 88, rows, 152, 8.5, 12)
    return 216


def follow_tumour_columns(sheet: Sheet) -> float:
    cells = (
        ("PATIENT", sheet.show_name("last_first")),
        ("REPORT DATE", day_of(sheet, "abbreviated")),
        ("ORDERED TEST #", write_fixed(sheet, "order", "ORD-9999999-01")),
    )
    for at, (label, text) in enumerate(cells):
        stack(sheet, LEFT + at * 190, 38, [(label, text)], 170, 9)
    sheet.draw_line(56, weight=0.4)
    return 78


def begin_risk_letter(sheet: Sheet) -> float:
    """A genetic counsellor's letter to the patient, with the relative who was tested first."""
    setting = sheet.setting
    y = head_left(sheet)
    put(sheet, LEFT, y + 4, sheet.show_name("titled"), 10.5)
    put(sheet, LEFT, y + 17, setting.street, 10.5)
    put(sheet, 372, y + 4, f"Genetics ref: {sheet.show_number()}", 9)
    put(sheet, 372, y + 16, f"Family ref: {write_fixed(sheet, 'family', 'F99999')}", 9)
    put(sheet, 372, y + 28, f"Your date of birth: {born(sheet, 'long_day_first')}", 9)
    put(sheet, 372, y + 40, f"Date: {day_of(sheet, 'long_day_first')}", 9)
    put(sheet, LEFT, y + 62, f"Dear {sheet.show_name('family_titled')},", 10.5)
    text = (
        f"Thank you for coming to the genetic clinic. We spoke about the result of your {setting.relative_word} "
        f"{setting.write_relative('first_last')} (born {born_kin(sheet, 'long_day_first')}), who gave leave to use it."
    )
    return sheet.write_wrapped(LEFT, y + 80, RIGHT - LEFT, text, 10.5) + 8


def follow_risk_letter(sheet: Sheet) -> float:
    put(sheet, LEFT, 46, f"Genetics ref: {sheet.show_number()}", 9)
    put(sheet, RIGHT, 46, f"Page {sheet.number}", 9, align="right")
    return 72


# Forms.


def begin_consent(sheet: Sheet) -> float:
    """A consent form: patient details on ruled lines, the professional's among them."""
    card, setting, land = sheet.card, sheet.setting, land_of(sheet)
    y = head_right(sheet)
    put(sheet, LEFT, y + 4, "Patient agreement to investigation or treatment", 13, True)
    put(sheet, LEFT, y + 22, "Patient details (or pre-printed label)", 10, True)
    family, given = sheet.show_split_name()
    rows = [
        ("Patient's surname/family name", family),
        ("Patient's first names", given),
        ("Date of birth", born(sheet)),
        ("Responsible health professional", f"Dr {setting.clinicians[0]}"),
        ("Job title", "Consultant"),
        (f"{land.record} (or other identifier)", sheet.show_number()),
        ("", "[X] Male   [ ] Female" if card.person.sex == "M" else "[ ] Male   [X] Female"),
        ("Special requirements", "none stated"),
    ]
    for at, (label, text) in enumerate(rows):
        line = y + 40 + at * 16
        put(sheet, LEFT, line, label, 9.5, width=180)
        put(sheet, 240, line, text, 10, width=310)
        sheet.draw_line(line + 3, 236, RIGHT, 0.3)
    return y + 190


def follow_consent(sheet: Sheet) -> float:
    sheet.draw_box(300, 34, 258, 44, weight=0.5)
    put(sheet, 304, 43, "Patient identifier/label", 6.5, pale=True)
    put(sheet, 306, 57, surname_given(sheet), 10, True, 246)
    put(sheet, 306, 71, f"{born(sheet)}     {sheet.show_number()}", 9, width=246)
    return 104


def begin_benefits(sheet: Sheet) -> float:
    """A statement of benefits: it is addressed to the member, and the patient is another."""
    card, setting = sheet.card, sheet.setting
    put(sheet, LEFT, 44, setting.insurer, 15, True)
    put(sheet, RIGHT, 44, "EXPLANATION OF BENEFITS - THIS IS NOT A BILL", 8.5, True, align="right", width=260)
    for at, line in enumerate((setting.write_relative("first_last").upper(), setting.street.upper(), "UNIT 4")):
        put(sheet, LEFT + 10, 78 + at * 13, line, 10, width=230)
    rows = [
        ("Member name", setting.write_relative("first_last")),
        ("Member ID", setting.member),
        ("Member date of birth", born_kin(sheet)),
        ("Group", write_fixed(sheet, "group", "GRP-99999")),
        ("Date processed", day_of(sheet)),
    ]
    list_pairs(sheet, 330, 70, rows, 100, 228)
    y = bar(sheet, 136, "Claim detail")
    left = [
        ("Patient", sheet.show_name("first_last")),
        ("Patient date of birth", born(sheet)),
        ("Relationship", "spouse of member" if card.person.adult else "child of member"),
    ]
    right = [
        ("Claim number", sheet.show_number("account")),
        ("Provider", card.institution.name),
        ("Patient no. there", sheet.show_number()),
    ]
    list_pairs(sheet, LEFT + 4, y, left, 100, 268)
    return list_pairs(sheet, 330, y, right, 100, 228) + 16


def follow_benefits(sheet: Sheet) -> float:
    put(sheet, LEFT, 44, f"Claim {sheet.show_number('account')} (continued)", 9)
    put(sheet, RIGHT, 44, f"Patient: {sheet.show_name('first_last')}", 9, align="right", width=260)
    return 70


def begin_statement(sheet: Sheet) -> float:
    """An insurer's form for the attending doctor: the policy's owner before the person insured."""
    card, setting, land = sheet.card, sheet.setting, land_of(sheet)
    put(sheet, LEFT, 44, setting.insurer, 13, True)
    put(sheet, LEFT, 58, "ATTENDING PHYSICIAN'S STATEMENT", 11, True)
    put(sheet, RIGHT, 44, f"Form {write_fixed(sheet, 'form', 'APS-999')}", 8, align="right")
    y = bar(sheet, 68, "PART 1 - POLICY") - 8
    rows = [
        [
            (190, "Policy owner", setting.write_relative("first_last")),
            (124, "Owner's birth date", born_kin(sheet)),
            (190, "Policy number", setting.member),
        ]
    ]
    y = rule_rows(sheet, y, rows, height=25, beside=0)
    y = bar(sheet, y + 4, "PART 2 - PERSON INSURED (PATIENT)") - 8
    rows = [
        [
            (190, "Full name", sheet.show_name("first_last")),
            (124, "Birth date", born(sheet)),
            (190, "Claim number", sheet.show_number("account")),
        ],
        [
            (190, "Hospital", card.institution.name),
            (124, "Record number there", sheet.show_number()),
            (190, f"{land.national}", write_national(sheet)),
        ],
    ]
    y = rule_rows(sheet, y, rows, height=25, beside=0)
    y = bar(sheet, y + 4, "PART 3 - TO BE COMPLETED BY THE PHYSICIAN") - 8
    rows = [[(314, "Name of physician", setting.clinicians[0]), (190, "First consulted", day_of(sheet))]]
    return rule_rows(sheet, y, rows, height=25, beside=0) + 22


def follow_statement(sheet: Sheet) -> float:
    line = f"Person insured: {sheet.show_name('first_last')}   Birth date: {born(sheet)}   Policy number: {sheet.setting.member}"
    put(sheet, LEFT, 44, line, 8.5, width=504)
    sheet.draw_line(50, weight=0.4)
    return 74


# Laboratories and the cover.


def begin_diagnostics(sheet: Sheet) -> float:
    """A chain of laboratories: two columns with a barcode between."""
    card, setting, land = sheet.card, sheet.setting, land_of(sheet)
    head_left(sheet, 15)
    sheet.draw_bars(246, 66, 116, 16)
    put(sheet, 304, 91, sheet.show_number("accession"), 8, align="middle")
    left = [
        ("Name", f": {note(sheet, sheet.card.write_name('titled').upper())}"),
        ("Age / Gender", f": {card.age} Years / {SEXES[card.person.sex]}"),
        ("DOB", f": {born(sheet)}"),
        ("Ref. By", f": DR. {setting.clinicians[1].upper()}"),
        ("Client", f": {card.institution.name}"),
    ]
    right = [
        ("Lab No.", f": {sheet.show_number('accession')}"),
        (land.record, f": {sheet.show_number()}"),
        ("Collected", f": {day_of(sheet)} 07:55:00AM"),
        ("Reported", f": {day_of(sheet)} 05:31:12PM"),
        ("Report Status", ": Final"),
    ]
    list_pairs(sheet, LEFT, 108, left, 70, 280, 13)
    y = list_pairs(sheet, 350, 108, right, 84, 208, 13)
    sheet.draw_line(y - 4)
    return y + 16


def finish_diagnostics(sheet: Sheet, total: int) -> None:
    foot(sheet, total, "Results relate only to the sample received. Please correlate clinically.", 7.5)


def begin_medical_aid(sheet: Sheet) -> float:
    """A private laboratory: patient, guarantor and medical aid in three columns."""
    card, setting, land = sheet.card, sheet.setting, land_of(sheet)
    y = head_middle(sheet)
    columns = (
        (
            LEFT,
            [
                ("Patient", note(sheet, f"{card.write_name('family')} {card.write_name('given')}".upper())),
                ("Birth date / Sex", f"{born(sheet)}  {card.person.sex}"),
                (land.national, write_national(sheet)),
                (land.record, sheet.show_number()),
            ],
        ),
        (
            228,
            [
                ("Guarantor", setting.write_relative("last_first").upper()),
                ("Medical aid", setting.insurer),
                ("Member no. / dep.", f"{setting.member} / {setting.rng.choice(('01', '02', '03'))}"),
                ("Plan", "Classic comprehensive"),
            ],
        ),
        (
            402,
            [
                ("Referred by", f"Dr {setting.clinicians[1]}"),
                ("Requisition", sheet.show_number("accession")),
                ("Collected", f"{day_of(sheet)} 08:10"),
                ("Printed", f"{day_of(sheet)} 15:44"),
            ],
        ),
    )
    for x, rows in columns:
        stack(sheet, x, y + 6, rows, 156, 9)
    sheet.draw_line(y + 92, weight=1)
    return y + 112


def begin_cover(sheet: Sheet) -> float:
    setting = sheet.setting
    y = head_left(sheet, 15)
    put(sheet, LEFT, y + 20, "Facsimile transmittal", 20, True)
    rows = [
        ("To:", f"Dr {setting.clinicians[1]}, 555-0119"),
        ("From:", f"{setting.clinicians[3]}, health records"),
        ("Date:", day_of(sheet)),
        ("Re:", f"{sheet.show_name('last_first')}, born {born(sheet)}"),
        ("Our number:", sheet.show_number()),
    ]
    return list_pairs(sheet, LEFT, y + 52, rows, 90, 480, 20, 11) + 24


CLINICAL = ("Clinical Note",)
IMAGING = ("Radiology Report",)
PATHOLOGY = ("Pathology Report",)
GENOMIC = ("Genomic Report",)
FORM = ("Other",)
LAYOUTS = (
    Layout("cda_table", "table", begin_cda_table, draw_browser_line, finish_cda_table, face="sans", size=9.5),
    Layout("last_page_block", "footer", begin_last_page, None, finish_last_page, face="mono", size=9, bottom=676),
    Layout(
        "result_header",
        "banner",
        draw_result_header,
        draw_result_header,
        finish_result_header,
        face="sans",
        size=9.5,
        every_page=True,
    ),
    Layout("avs_banner", "banner", begin_visit_banner, None, finish_visit_banner, face="sans", size=10, types=CLINICAL),
    Layout("id_dob_parens", "banner", draw_parentheses, draw_parentheses, face="sans", size=9.5, every_page=True),
    Layout("imprint_foot", "footer", begin_federal, None, finish_federal, "mono", 9, bottom=690, every_page=True),
    Layout("specialist_re", "letter", begin_specialist, follow_specialist, size=10.5, types=CLINICAL + IMAGING),
    Layout(
        "gp_summary",
        "banner",
        draw_practice_banner,
        draw_practice_banner,
        finish_practice_banner,
        face="sans",
        size=9.5,
        every_page=True,
    ),
    Layout(
        "physician_sentence", "letter", begin_mutual, follow_mutual, every_page=True, grown_only=True, types=CLINICAL
    ),
    Layout(
        "clinic_letter_refs", "letter", begin_clinic_letter, follow_clinic_letter, face="sans", size=10, types=CLINICAL
    ),
    Layout("surnames_columns", "grid", begin_surnames, None, finish_surnames, face="sans", size=9.5),
    Layout("ward_sticker", "sticker", draw_sticker, draw_sticker, face="sans", size=10, every_page=True),
    Layout("mother_name_sheet", "columns", begin_mother, follow_mother, face="sans", size=10),
    Layout(
        "film_corners",
        "corners",
        draw_film_corners,
        draw_film_corners,
        finish_film_corners,
        face="sans",
        size=10,
        every_page=True,
        types=IMAGING,
    ),
    Layout("case_report", "columns", begin_case_report, follow_case_report, size=10, types=PATHOLOGY),
    Layout(
        "tumour_columns",
        "columns",
        begin_tumour_columns,
        follow_tumour_columns,
        face="sans",
        size=9.5,
        types=GENOMIC,
    ),
    Layout("risk_letter", "letter", begin_risk_letter, follow_risk_letter, grown_only=True, types=GENOMIC),
    Layout("consent_label", "form", begin_consent, follow_consent, face="sans", size=10, every_page=True, types=FORM),
    Layout("benefits_statement", "form", begin_benefits, follow_benefits, face="sans", size=9.5, types=FORM),
    Layout(
        "attending_statement",
        "form",
        begin_statement,
        follow_statement,
        face="sans",
        size=9.5,
        every_page=True,
        types=FORM + CLINICAL,
    ),
    Layout(
        "barcode_diagnostics",
        "laboratory",
        begin_diagnostics,
        None,
        finish_diagnostics,
        face="sans",
        size=9.5,
        body="laboratory",
    ),
    Layout("medical_aid", "laboratory", begin_medical_aid, face="sans", size=9.5, body="laboratory"),
)
COVER = Layout("cover_transmittal", "cover", begin_cover, face="sans", size=11, body="cover")
COVER_TEXT = (
    "The records you requested follow this page.",
    "This transmission may contain confidential health information for the addressee only.",
    "If you received it in error, please telephone the sender at once.",
)
