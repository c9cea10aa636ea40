"""Sealed: developers of the product do not read this file.

The half `h_sealed`: persons, institutions and 22 page layouts.
"""

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
from .persons import Pool, write_day

POOL = Pool(
    women=(
        ("Agnieszka", "Aga"),
        ("Beatriz", "Bia"),
        ("Caitríona", "Cáit"),
        ("Deepika", "Deepa"),
        ("Ebere", "Ebe"),
        ("Franziska", "Franzi"),
        ("Georgina", "Georgie"),
        ("Hildegard", "Hilde"),
        ("Isadora", "Isa"),
        ("Jacinta", "Jaci"),
        ("Kirsten Marie", "Kirsten"),
        ("Lindiwe", "Lindi"),
        ("Maëlle", "Maë"),
        ("Nirmala", "Nimmi"),
        ("Oyinkansola", "Oyin"),
        ("Penelope", "Penny"),
        ("Qiuyue", "Qiu"),
        ("Rafaela", "Rafa"),
        ("Siobhan", "Shiv"),
        ("Tuulikki", "Tuuli"),
        ("Victoria", "Vicky"),
        ("Wambui", "Wambi"),
        ("Ximena", "Mena"),
        ("Yasmin", "Yas"),
        ("Zainab", "Zai"),
        ("Dorothy", "Dolly"),
    ),
    men=(
        ("Alejandro", "Alex"),
        ("Balasubramaniam", "Bala"),
        ("Cuthbert", "Bertie"),
        ("Dieter", "Didi"),
        ("Emeka", "Em"),
        ("Francisco", "Paco"),
        ("Gillespie", "Gil"),
        ("Håkon", "Hå"),
        ("Ibrahim", "Ibby"),
        ("Jean-Luc", "Jean"),
        ("Kofi", "Kof"),
        ("Leonard", "Len"),
        ("Mohammed Ali", "Mo"),
        ("Nicolás", "Nico"),
        ("Otieno", "Oti"),
        ("Pradeep", "Pradi"),
        ("Quentin", "Quin"),
        ("Rutger", "Rut"),
        ("Stanislav", "Stan"),
        ("Thabo", "Tabs"),
        ("Uwe", "Uli"),
        ("Vincent", "Vince"),
        ("Wojciech", "Wojtek"),
        ("Xavier", "Xavi"),
        ("Christopher", "Kit"),
        ("Jonathan", "Jon"),
    ),
    unisex=("Taylor", "Casey", "Noor", "Jean"),
    families=(
        "Adebayo",
        "Amundsen",
        "Arroyo Medina",
        "Ashworth-Lane",
        "Banerjee",
        "Barr",
        "Bernardes",
        "Brøndum",
        "Cholmondeley",
        "Coetzee",
        "Corrigan",
        "Dalgleish",
        "de Oliveira Nunes",
        "Del Toro",
        "Eze",
        "Feeney",
        "Fischer-Kühn",
        "Gebremariam",
        "Goldsworthy",
        "Haq",
        "Hernández Ríos",
        "Hirsch",
        "Igwe",
        "Jayawardena",
        "Karlsson",
        "Khumalo",
        "Kwon",
        "L'Hermitte",
        "Laurent",
        "Luo",
        "MacEachern",
        "Mazur",
        "Mwangi",
        "Nair",
        "Ndiaye",
        "O'Halloran",
        "Okonjo",
        "Pemberton",
        "Prentiss",
        "Rasmussen",
        "Reyes",
        "Saint-Clair",
        "Schäfer",
        "Strong",
        "Subramanian",
        "Tremblay-Roy",
        "van der Merwe",
        "Winter",
        "Zhou",
        "Bishop",
    ),
    clinicians=(
        "Amara Diallo",
        "Bertrand Fouquet",
        "Catherine Lockhart",
        "Derek Ainsley",
        "Eduardo Pizarro",
        "Freya Halvorsen",
        "Gopal Srinivasan",
        "Hannah Bruckner",
        "Ifeanyi Obi",
        "Jillian Crosby",
        "Krzysztof Lis",
        "Lorna Macfarlane",
        "Marcelo Teles",
        "Nokuthula Zwane",
        "Owen Pritchard",
        "Priscilla Tan",
        "Roland Echeverria",
        "Sunita Kapoor",
    ),
    institutions=(
        ("Whispering Pines Medical Associates", "210 Pine St, Alder Falls, OR 97999   (541) 555-0102|USA", "99999999"),
        ("Tidewater Memorial Hospital", "1 Admiral Way, Tidewater, VA 23999   757-555-0175|USA", "M9999999"),
        ("Northfork Advanced Imaging", "850 Northfork Rd, Fork City, MO 64999   816.555.0128|USA", "NF9999999"),
        ("Helix Meadow Genetics", "5 Discovery Loop, Helix Park, MA 01999   (617) 555-0190|USA", "9999999"),
        ("Ellerbeck General Infirmary", "Infirmary Road, Ellerbeck EB99 2RT   01632 960 440|England", "E9999999"),
        ("The Willowbank Practice", "Willow Street, Ellerbeck EB99 7PP   01632 960 418|England", "9999999"),
        ("Strathmorrie Royal Hospital", "Royal Crescent, Strathmorrie SM99 0HH   01632 960 707|Scotland", "999999999"),
        ("St Attracta's University Hospital", "Bridge Road, Ballycroy, Co. Mayo   094 555 0101|Ireland", "A9999999"),
        ("Maple Bluff General Hospital", "90 Queen St N, Maple Bluff ON L9Z 9Z9   905-555-0156|Canada", "MB9999999"),
        ("Te Awa District Hospital", "12 Rata Street, Te Awa 9999   07 555 0144|New Zealand", "ZKB9999"),
        ("Klinikum Weidenau", "Weidenallee 20, 99998 Weidenau   +49 5551 990|Germany", "99999999"),
        (
            "Centre Hospitalier du Val Fleuri",
            "4 rue des Tilleuls, 99400 Val-Fleuri   +33 5 55 01 99|France",
            "8099999999",
        ),
        ("Björkbacka Hospital", "Sjukhusvägen 2, 999 99 Björkbacka   +46 555 010 00|Sweden", "B99999999"),
        ("Szpital Miejski Lipowa", "ul. Lipowa 7, 99-999 Lipowa   +48 55 555 01 10|Poland", "99999/9999"),
        ("Kaveri Heart & General Hospital", "Temple Road, Kaveripuram 620999   0431 555 880|India", "KHG.9999999"),
        ("Oke-Ado Specialist Hospital", "Ring Road, Oke-Ado   +234 1 555 0190|Nigeria", "OSH/999999"),
        ("Vaalkrans Day Hospital", "2 Jacaranda Street, Vaalkrans 9998   016 555 0100|South Africa", "VK9999999"),
        ("Sanatorio San Jacinto", "Av. Juárez 1200, San Jacinto   +52 55 5555 0130|Mexico", "99999999"),
    ),
    insurers=(
        "Keystone Harbor Health",
        "Three Rivers Medicare Advantage",
        "Mutuelle du Midi",
        "Nordlicht BKK",
        "Savanna Health HMO",
        "Bharat Suraksha TPA",
    ),
    streets=(
        "Hawthorn Grove",
        "Magnolia Blvd",
        "Rue des Acacias",
        "Birkenweg",
        "Station Road",
        "Avenida Hidalgo",
        "Marina Crescent",
    ),
)

TITLES = {
    "Clinical Note": ("Progress Note", "Discharge Letter", "New Patient Consultation", "Inpatient Note", "Follow-Up"),
    "Radiology Report": ("Diagnostic Imaging Report", "Radiology Consultation", "Imaging Findings"),
    "Pathology Report": ("Histopathology Report", "Anatomic Pathology Report"),
    "Genomic Report": ("Genetic Test Result", "Molecular Profile"),
    "Other": ("Records Release", "Request Form", "Notice"),
}
SIGNATURES = (
    "This note was signed electronically by {}, {}",
    "{}, specialist registrar   {}",
    "Approved by: {}, {} 17:22",
    "With best wishes, {}   {}",
)
LABORATORY_SIGNATURE = "Laboratory director: {}   {}"
FAX_SENDERS = ("TIDEWATER MEM ROI", "WILLOWBANK PRACT", "KLINIKUM WEIDENAU ZNA", "NORTHFORK IMG")
TESTS = (
    ("WBC", "x10E3/uL", 3.4, 10.8),
    ("RBC", "x10E6/uL", 3.77, 5.28),
    ("Hemoglobin", "g/dL", 11.1, 15.9),
    ("Hematocrit", "%", 34, 46.6),
    ("MCH", "pg", 26.6, 33),
    ("Platelets", "x10E3/uL", 150, 450),
    ("Neutrophils", "%", 40, 74),
    ("Glucose", "mg/dL", 70, 99),
    ("BUN", "mg/dL", 6, 24),
    ("Creatinine", "mg/dL", 0.57, 1.0),
    ("Sodium", "mmol/L", 134, 144),
    ("Potassium", "mmol/L", 3.5, 5.2),
    ("Carbon Dioxide, Total", "mmol/L", 20, 29),
    ("Protein, Total", "g/dL", 6, 8.5),
    ("Bilirubin, Total", "mg/dL", 0.1, 1.2),
    ("Alkaline Phosphatase", "IU/L", 44, 121),
    ("LDL Chol Calc", "mg/dL", 30, 99),
    ("Vitamin D, 25-Hydroxy", "ng/mL", 30, 100),
)


# Print-outs of record systems.


def begin_progress(sheet: Sheet) -> float:
    """A practice system's progress note: the provider's name is the heading."""
    card, setting = sheet.card, sheet.setting
    put(sheet, LEFT, 42, "Progress Notes", 13, True)
    put(sheet, RIGHT, 42, f"{setting.clinicians[0]}, MD", 12, True, align="right", width=300)
    put(sheet, RIGHT, 54, card.institution.name, 8.5, align="right", width=300)
    sheet.draw_line(60, weight=0.5)
    left = [
        ("Patient:", sheet.show_name("last_first")),
        ("DOB:", f"{born(sheet)}   Age: {card.age} Y   Sex: {SEXES[card.person.sex]}"),
        ("Phone:", "555-0138"),
        ("Address:", setting.street),
    ]
    right = [
        ("Account Number:", sheet.show_number()),
        ("Provider:", f"{setting.clinicians[0]}, MD"),
        ("Date:", day_of(sheet)),
        ("Insurance:", setting.insurer),
    ]
    list_pairs(sheet, LEFT, 76, left, 52, 290)
    y = list_pairs(sheet, 350, 76, right, 86, 208)
    put(sheet, LEFT, y + 4, f"{land_of(sheet).doctor}: {setting.clinicians[1]}", 9)
    return y + 24


def finish_progress(sheet: Sheet, total: int) -> None:
    sheet.draw_line(756, weight=0.4)
    line = (
        f"Patient: {sheet.show_name('last_first')}   DOB: {born(sheet)}   Progress Note: {sheet.setting.clinicians[0]}, "
        f"MD   {day_of(sheet)}"
    )
    foot(sheet, total, line, 8)


def begin_ambulance(sheet: Sheet) -> float:
    """A run report in small boxes, the crew and the person who called among them."""
    card, setting, land = sheet.card, sheet.setting, land_of(sheet)
    put(sheet, LEFT, 42, "PATIENT CARE REPORT", 13, True)
    put(sheet, RIGHT, 42, f"Incident # {sheet.show_number('visit')}", 10, True, align="right", width=160)
    family, given = sheet.show_split_name()
    rows = [
        [
            (126, "Date of service", day_of(sheet)),
            (126, "Unit", "MEDIC 7"),
            (126, "Crew chief / cert.", f"{setting.clinicians[2]} / {write_fixed(sheet, 'crew', '99999')}"),
            (126, "Caller", setting.write_relative("first_last")),
        ],
        [
            (168, "Patient last name", family),
            (168, "First, MI", given),
            (84, "Age", str(card.age)),
            (84, "Sex", card.person.sex),
        ],
        [
            (168, "Date of birth", born(sheet)),
            (168, f"Receiving facility {land.record}", sheet.show_number()),
            (168, "Facility", card.institution.name),
        ],
        [
            (168, "Next of kin", f"{setting.write_relative('first_last')}, {setting.relative_word}"),
            (168, "Payer / ID", f"{setting.insurer} {setting.member}"),
            (168, "Physician", setting.clinicians[1]),
        ],
    ]
    return rule_rows(sheet, 52, rows, height=25, beside=0) + 22


def follow_ambulance(sheet: Sheet) -> float:
    put(sheet, LEFT, 44, f"PCR continued   Incident # {sheet.show_number('visit')}", 9)
    put(sheet, RIGHT, 44, str(sheet.number), 9, align="right")
    return 70


def begin_portal(sheet: Sheet) -> float:
    """A portal's page printed by the patient: one line of facts under the browser's own."""
    setting = sheet.setting
    draw_portal_line(sheet)
    line = (
        f"Name: {sheet.show_name('first_last')} | {land_of(sheet).birth}: {born(sheet, 'mdy_short')} | "
        f"{land_of(sheet).record}: {sheet.show_number()} | {land_of(sheet).doctor}: {setting.clinicians[1]}"
    )
    put(sheet, LEFT, 58, line, 9, width=504)
    put(sheet, LEFT, 84, f"{setting.title} - Details", 15, True)
    put(sheet, LEFT, 98, f"Ordered by {setting.clinicians[0]} on {day_of(sheet, 'abbreviated_month_first')}", 8.5)
    put(sheet, LEFT, 110, f"Proxy viewing: {setting.write_relative('first_last')}", 8.5, pale=True)
    return 134


def draw_portal_line(sheet: Sheet) -> float:
    put(sheet, 36, 28, day_of(sheet, "mdy_short"), 7.5)
    put(sheet, 306, 28, f"My Health - {sheet.setting.title}", 7.5, align="middle")
    return 60


def finish_portal(sheet: Sheet, total: int) -> None:
    put(sheet, 36, 778, "https://myhealth.example.org/app/test-results/details", 7.5)
    put(sheet, 576, 778, f"{sheet.number}/{total}", 7.5, align="right")


def begin_blocks(sheet: Sheet) -> float:
    """Patient, facility and encounter in three blocks; the name bears no label."""
    card, setting, land = sheet.card, sheet.setting, land_of(sheet)
    blocks = (
        (
            "PATIENT",
            [
                ("", sheet.show_name("first_last")),
                ("DOB", born(sheet)),
                ("AGE", f"{card.age} yrs"),
                ("SEX", SEXES[card.person.sex]),
                (land.record, sheet.show_number()),
            ],
        ),
        ("FACILITY", [("", card.institution.name), ("T", "555-0144"), ("", write_address(sheet))]),
        (
            "ENCOUNTER",
            [
                ("", setting.title),
                ("NOTE TYPE", "SOAP"),
                ("SEEN BY", setting.clinicians[0]),
                ("DATE", day_of(sheet)),
                ("AGE AT DOS", f"{card.age} yrs"),
            ],
        ),
    )
    for at, (head, rows) in enumerate(blocks):
        x = LEFT + at * 172
        put(sheet, x, 44, head, 8, True, pale=True)
        sheet.draw_line(48, x, x + 160, 0.5)
        for row, (label, text) in enumerate(rows):
            y = 62 + row * 12.5
            put(sheet, x, y, label, 7.5, width=54, pale=True)
            put(sheet, x + (58 if label else 0), y, text, 9.5, not label, 102 if label else 160)
    return 142


def finish_blocks(sheet: Sheet, total: int) -> None:
    foot(
        sheet,
        total,
        f"{sheet.show_name('first_last')}   DOB {born(sheet)}   {sheet.setting.title} {day_of(sheet)}",
        7.5,
    )


def draw_flowsheet_head(sheet: Sheet) -> float:
    put(sheet, LEFT, 42, sheet.card.institution.name, 10, True)
    put(sheet, RIGHT, 42, sheet.setting.title.upper(), 11, True, align="right", width=220)
    sheet.draw_line(48)
    put(sheet, LEFT, 60, f"Date {day_of(sheet)}    Time ______    Unit ______    Allergies: see list", 8.5)
    return 84


def finish_flowsheet(sheet: Sheet, total: int) -> None:
    """The addressograph plate in the lower right corner, five lines without labels."""
    card, setting = sheet.card, sheet.setting
    put(sheet, LEFT, 764, f"Form {write_fixed(sheet, 'form', '99-9999')}  Rev. 4   {sheet.number}/{total}", 7)
    put(sheet, LEFT, 700, f"Reviewed by: {setting.clinicians[3]}, RN", 8.5)
    sheet.draw_box(330, 690, 240, 76, weight=0.6)
    lines = (
        f"{sheet.show_number('account')}   {day_of(sheet)}",
        sheet.show_name("last_first_capitals"),
        f"{born(sheet)}   {card.person.sex}   {card.age}Y",
        sheet.show_number(),
        setting.clinicians[0].upper(),
    )
    for at, line in enumerate(lines):
        put(sheet, 336, 704 + at * 13.5, line, 9.5, width=228)


def begin_leaders(sheet: Sheet) -> float:
    """An interface's text print: labels with dots up to the colon."""
    card, setting = sheet.card, sheet.setting
    put(sheet, LEFT, 40, f"{card.institution.name.upper()}", 10, True)
    rows = [
        ("REPORT", setting.title.upper()),
        ("PATIENT NAME", sheet.show_name("last_first_capitals")),
        ("PATIENT ID", sheet.show_number()),
        ("BIRTH DATE", born(sheet)),
        ("SEX", card.person.sex),
        ("ORDER NUMBER", sheet.show_number("accession")),
        ("ORDERING PROV", setting.clinicians[1].upper()),
        ("OBSERVED", f"{day_of(sheet)} 0911"),
        ("INSURED", f"{setting.write_relative('last_first').upper()}  {born_kin(sheet)}"),
    ]
    for at, (label, text) in enumerate(rows):
        put(sheet, LEFT, 58 + at * 11, f"{label:.<18}: {text}", 9)
    put(sheet, LEFT, 58 + len(rows) * 11, "=" * 90, 9)
    return 58 + len(rows) * 11 + 18


def follow_leaders(sheet: Sheet) -> float:
    put(sheet, LEFT, 40, f"{'PATIENT NAME':.<18}: {sheet.show_name('last_first_capitals')}  (CONT'D)", 9)
    put(sheet, LEFT, 51, f"{'ORDER NUMBER':.<18}: {sheet.show_number('accession')}   PAGE {sheet.number}", 9)
    return 76


# Letters.


def begin_gateway(sheet: Sheet) -> float:
    """A referral message as the gateway prints it: sections, the referrer's numbers in their own."""
    card, setting, land = sheet.card, sheet.setting, land_of(sheet)
    put(sheet, LEFT, 42, f"REFERRAL TO {sheet.card.institution.name.upper()}", 12, True)
    put(
        sheet, LEFT, 55, f"Unique care pathway no. {sheet.show_number('visit')}   Date of referral {day_of(sheet)}", 8.5
    )
    family, given = sheet.show_split_name()
    y = bar(sheet, 62, "REFERRER")
    rows = [
        ("Name", f"Dr {setting.clinicians[1]}"),
        ("Code", write_fixed(sheet, "code", "G9999999")),
        ("Practice", setting.street),
    ]
    y = list_pairs(sheet, LEFT + 4, y, rows, 80, 500)
    y = bar(sheet, y - 6, "PATIENT DEMOGRAPHICS")
    left = [("Surname", family), ("Forename(s)", given), (land.birth, born(sheet)), ("Sex", SEXES[card.person.sex])]
    right = [
        (land.national, write_national(sheet)),
        (land.record, sheet.show_number()),
        ("Address", setting.street),
        ("Carer/parent", setting.write_relative("first_last")),
    ]
    list_pairs(sheet, LEFT + 4, y, left, 80, 262)
    y = list_pairs(sheet, 330, y, right, 80, 228)
    return bar(sheet, y - 6, "CLINICAL INFORMATION") + 4


def finish_gateway(sheet: Sheet, total: int) -> None:
    family, given = sheet.show_split_name()
    foot(sheet, total, f"{given} {family}   {land_of(sheet).record} {sheet.show_number()}", 8)


def begin_consult(sheet: Sheet) -> float:
    """A consultant's letter: one RE line for all of the identity."""
    card, setting, land = sheet.card, sheet.setting, land_of(sheet)
    put(sheet, 306, 42, f"{setting.clinicians[0]}, MD, FRCPC", 13, True, align="middle")
    put(sheet, 306, 54, f"{card.institution.name}, {write_address(sheet)}", 8, align="middle")
    put(sheet, LEFT, 80, day_of(sheet, "long"), 10)
    put(sheet, LEFT, 100, f"Dr. {setting.clinicians[1]}", 10)
    put(sheet, LEFT, 113, setting.street, 10)
    put(sheet, LEFT, 136, "RE:", 10, True)
    put(sheet, LEFT + 30, 136, sheet.show_name("last_first"), 10, True, 474)
    line = (
        f"{land.birth}: {born(sheet)}   {land.national}: {write_national(sheet)}   {land.record} {sheet.show_number()}"
    )
    put(sheet, LEFT + 30, 149, line, 9.5, width=474)
    put(sheet, LEFT, 172, f"Dear Dr. {setting.clinicians[1].split()[-1]}:", 10)
    return 194


def follow_consult(sheet: Sheet) -> float:
    put(sheet, LEFT, 44, f"RE: {sheet.show_name('last_first')}", 9, width=300)
    put(sheet, LEFT, 55, day_of(sheet, "long"), 9)
    put(sheet, LEFT, 66, f"Page {sheet.number}", 9)
    return 92


def begin_discharge(sheet: Sheet) -> float:
    """A discharge summary under the standard headings, practice before hospital."""
    card, setting, land = sheet.card, sheet.setting, land_of(sheet)
    y = head_left(sheet)
    put(sheet, RIGHT, 42, "Discharge summary", 12, True, align="right", width=150)
    y = bar(sheet, y - 8, "Patient details")
    left = [
        ("Patient name", surname_titled(sheet)),
        (land.birth, f"{born(sheet)} ({card.age} years)"),
        ("Gender", SEXES[card.person.sex]),
    ]
    right = [(land.national, write_national(sheet)), (land.record, sheet.show_number()), ("Address", setting.street)]
    list_pairs(sheet, LEFT + 4, y, left, 76, 262)
    y = list_pairs(sheet, 330, y, right, 76, 228)
    y = bar(sheet, y - 6, f"{land.doctor} practice")
    left = [("Name", f"Dr {setting.clinicians[1]}"), ("Practice code", write_fixed(sheet, "practice", "Y99999"))]
    right = [("Address", setting.street), ("Telephone", "01632 960 299")]
    list_pairs(sheet, LEFT + 4, y, left, 76, 262)
    y = list_pairs(sheet, 330, y, right, 76, 228)
    y = bar(sheet, y - 6, "Admission and discharge details")
    left = [("Consultant", setting.clinicians[0]), ("Spell no.", sheet.show_number("visit"))]
    right = [("Discharged", day_of(sheet)), ("Collected by", setting.write_relative("first_last"))]
    list_pairs(sheet, LEFT + 4, y, left, 76, 262)
    y = list_pairs(sheet, 330, y, right, 76, 228)
    return bar(sheet, y - 6, "Clinical summary") + 4


def finish_discharge(sheet: Sheet, total: int) -> None:
    line = f"{surname_titled(sheet)}   {land_of(sheet).birth} {born(sheet)}   {land_of(sheet).record} {sheet.show_number()}"
    foot(sheet, total, line, 8)


def draw_staff_column(sheet: Sheet) -> float:
    """Letter paper with the staff down the left and the patient down the right of the text."""
    card, setting, land = sheet.card, sheet.setting, land_of(sheet)
    put(sheet, 306, 44, card.institution.name, 14, True, align="middle")
    sheet.draw_line(52, 36, 576, 1)
    put(sheet, 36, 74, "Our doctors", 7.5, True)
    for at, name in enumerate(setting.clinicians):
        put(sheet, 36, 88 + at * 26, name, 8, width=104)
        put(sheet, 36, 97 + at * 26, ("Director", "Consultant", "Registrar", "Secretary")[at], 7, width=104, pale=True)
    rows = [
        ("Patient", sheet.show_name("first_last")),
        ("Born", born(sheet)),
        (land.record, sheet.show_number()),
        ("Seen", day_of(sheet)),
    ]
    if sheet.number == 1:
        rows += [(land.national, write_national(sheet)), (land.kin, setting.write_relative("first_last"))]
        put(sheet, 150, 74, f"{setting.title}, for Dr {setting.clinicians[1]}", 10, True, 312)
    stack(sheet, 474, 74, rows, 100, 8.5, 16)
    return 96


# Sheets of particular countries.


def draw_nordic(sheet: Sheet) -> float:
    """Record paper: unit left, identity right; the personal number ahead of the name."""
    card, setting, land = sheet.card, sheet.setting, land_of(sheet)
    put(sheet, LEFT, 40, card.institution.name, 10, True, 250)
    put(sheet, LEFT, 52, "Medical clinic", 9)
    put(sheet, LEFT, 64, f"Record note {day_of(sheet, 'iso')}", 9)
    put(sheet, LEFT, 76, f"Sheet {sheet.number}", 9)
    lines = (
        write_national(sheet),
        sheet.show_name("last_first"),
        f"{land.birth} {born(sheet)}",
        f"{land.record} {sheet.show_number()}",
    )
    for at, line in enumerate(lines):
        put(sheet, 330, 40 + at * 12, line, 9.5, at < 2, 228)
    sheet.draw_line(84, weight=0.4)
    if sheet.number > 1:
        return 104
    put(sheet, LEFT, 102, setting.title, 11, True)
    put(sheet, LEFT, 116, f"Responsible: {setting.clinicians[0]}, copy: {setting.clinicians[1]}", 9)
    return 138


def begin_usage_name(sheet: Sheet) -> float:
    """Birth name and name in use in cells of their own, as the identity rules there ask."""
    card, setting, land = sheet.card, sheet.setting, land_of(sheet)
    y = head_middle(sheet)
    put(sheet, 306, y + 2, setting.title.upper(), 11, True, align="middle")
    family, given = sheet.show_split_name()
    maiden = card.person.former_family if card.person.sex == "F" and card.person.adult else card.write_name("family")
    rows = [
        [(168, "Birth name", maiden.upper()), (168, "Name in use", family), (168, "First name(s)", given)],
        [(168, "Born on", born(sheet)), (168, "Sex", card.person.sex), (168, land.national, write_national(sheet))],
        [
            (168, land.record, sheet.show_number()),
            (168, "Stay No.", sheet.show_number("visit")),
            (168, "Unit", "Internal medicine"),
        ],
        [
            (168, "Head of department", f"Prof. {setting.clinicians[3]}"),
            (168, "Requested by", f"Dr {setting.clinicians[1]}"),
            (168, "Date", day_of(sheet)),
        ],
    ]
    return rule_rows(sheet, y + 10, rows, height=25, beside=0) + 22


def finish_usage_name(sheet: Sheet, total: int) -> None:
    family, given = sheet.show_split_name()
    foot(sheet, total, f"{family} {given}, born on {born(sheet)}, {land_of(sheet).record} {sheet.show_number()}", 7.5)


def begin_case_folder(sheet: Sheet) -> float:
    """A case folder's first sheet with its particulars on dotted lines."""
    card, setting = sheet.card, sheet.setting
    y = head_middle(sheet)
    put(sheet, 306, y + 2, "PATIENT'S CASE NOTE", 12, True, align="middle")
    family, given = sheet.show_split_name()
    rows = (
        (("Hosp. No.", sheet.show_number()), ("Date", day_of(sheet))),
        (("Surname", family), ("Other Names", given)),
        (("Age / D.O.B", f"{card.age} / {born(sheet)}"), ("Sex", SEXES[card.person.sex])),
        (("Religion", "..........."), ("Occupation", "...........")),
        (("Next of Kin", setting.write_relative("first_last")), ("Relationship", setting.relative_word)),
        (("Address", setting.street), ("Phone", "0800 555 0142")),
        (("Consultant", f"Dr. {setting.clinicians[0]}"), ("NHIA / HMO No.", setting.member)),
    )
    for at, row in enumerate(rows):
        line = y + 22 + at * 16
        for x, (label, text) in zip((LEFT, 320), row, strict=True):
            put(sheet, x, line, f"{label}:", 9, width=72)
            put(sheet, x + 76, line, text, 10, width=166)
            sheet.page.draw_line((x + 74, line + 3), (x + 238, line + 3), width=0.5, dashes="[1 2]")
    return y + 152


def follow_case_folder(sheet: Sheet) -> float:
    put(sheet, LEFT, 44, f"Name: {surname_given(sheet)}", 9.5, width=300)
    put(sheet, RIGHT, 44, f"Hosp. No.: {sheet.show_number()}", 9.5, align="right", width=180)
    return 70


# Imaging, pathology, genetics.


def begin_imaging(sheet: Sheet) -> float:
    """An imaging centre's letter: the referrer at the left, the patient in the box at the right."""
    setting = sheet.setting
    y = head_left(sheet, 15)
    for at, line in enumerate(
        (
            f"{setting.clinicians[1]}, MD",
            setting.street,
            f"NPI {write_fixed(sheet, 'npi', '1999999999')}",
            "Fax 555-0177",
        )
    ):
        put(sheet, LEFT, y + 10 + at * 12, line, 9.5, width=230)
    sheet.draw_box(306, y - 2, 252, 76, weight=0.6)
    rows = [
        ("PATIENT:", sheet.show_name("last_first_capitals")),
        ("DATE OF BIRTH:", born(sheet)),
        ("PATIENT ID:", sheet.show_number()),
        ("ACCESSION:", sheet.show_number("accession")),
        ("EXAM DATE:", day_of(sheet)),
    ]
    list_pairs(sheet, 312, y + 12, rows, 84, 240, 13)
    put(sheet, LEFT, y + 96, f"EXAM: {setting.title.upper()}", 10, True)
    return y + 118


def follow_imaging(sheet: Sheet) -> float:
    line = f"{sheet.show_name('last_first_capitals')}   ID {sheet.show_number()}   EXAM DATE {day_of(sheet)}   PAGE {sheet.number}"
    put(sheet, LEFT, 44, line, 8.5, width=504)
    sheet.draw_line(50, weight=0.4)
    return 72


def begin_tissue(sheet: Sheet) -> float:
    """A pathologist's letter to the sender: a star stands for born."""
    card, setting, land = sheet.card, sheet.setting, land_of(sheet)
    y = head_right(sheet)
    put(sheet, RIGHT, y - 6, "Institute of Pathology", 9, align="right")
    put(sheet, LEFT, y + 4, f"Dr. med. {setting.clinicians[1]}", 10)
    put(sheet, LEFT, y + 17, setting.street, 10)
    rows = [("Journal no.", sheet.show_number("accession")), ("Received", day_of(sheet)), ("Reported", day_of(sheet))]
    list_pairs(sheet, 390, y + 14, rows, 70, 168)
    put(sheet, LEFT, y + 64, f"{setting.title}", 12, True)
    line = f"Patient: {sheet.show_name('last_first')}, * {born(sheet, 'dots')}, {card.person.sex}"
    put(sheet, LEFT, y + 80, line, 10.5, True, 504)
    put(sheet, LEFT, y + 93, f"{land.record} {sheet.show_number()}, {setting.insurer}", 9)
    return y + 116


def follow_tissue(sheet: Sheet) -> float:
    put(sheet, LEFT, 44, f"Journal no. {sheet.show_number('accession')}, page {sheet.number}", 9)
    return 70


def begin_family_samples(sheet: Sheet) -> float:
    """A sequencing report: the patient first, then the relatives' samples with their birth dates."""
    card, setting, land = sheet.card, sheet.setting, land_of(sheet)
    y = head_left(sheet)
    put(sheet, LEFT, y + 4, setting.title.upper(), 13, True)
    left = [
        ("Patient name:", sheet.show_name("first_last")),
        ("Birth date:", born(sheet)),
        (f"{land.record}:", sheet.show_number()),
    ]
    right = [
        ("Accession:", sheet.show_number("accession")),
        ("Ordered by:", setting.clinicians[1]),
        ("Report date:", day_of(sheet)),
    ]
    list_pairs(sheet, LEFT, y + 24, left, 76, 280)
    y = list_pairs(sheet, 350, y + 24, right, 76, 208)
    put(sheet, LEFT, y + 8, "Family members included in the analysis", 9, True)
    born_mother = card.person.born.replace(year=card.person.born.year - 27, day=17)
    rows = [
        [
            (90, "", "Mother"),
            (190, "", write_mother(sheet)),
            (124, "", write_day(born_mother, "iso")),
            (100, "", write_fixed(sheet, "m", "S9999999")),
        ],
        [
            (90, "", setting.relative_word.capitalize() if card.person.adult else "Aunt"),
            (190, "", setting.write_relative("first_last")),
            (124, "", born_kin(sheet, "iso")),
            (100, "", write_fixed(sheet, "r", "S9999999")),
        ],
    ]
    return rule_rows(sheet, y + 14, rows) + 20


def finish_family_samples(sheet: Sheet, total: int) -> None:
    foot(
        sheet, total, f"{sheet.show_name('first_last')}   {born(sheet)}   Accession {sheet.show_number('accession')}", 8
    )


def begin_genetics_columns(sheet: Sheet) -> float:
    """A genetics company's report: three columns of labels above their values."""
    card, setting, land = sheet.card, sheet.setting, land_of(sheet)
    put(sheet, LEFT, 46, card.institution.name, 14, True, 300)
    put(sheet, RIGHT, 46, setting.title, 10, align="right", width=190)
    sheet.draw_line(54, weight=1.5)
    columns = (
        [
            ("Patient name", sheet.show_name("first_last")),
            ("DOB", born(sheet)),
            ("Sex assigned at birth", SEXES[card.person.sex]),
            (f"Patient ID ({land.record})", sheet.show_number()),
        ],
        [
            ("Sample type", "Saliva"),
            ("Sample collection date", day_of(sheet)),
            ("Sample accession date", day_of(sheet)),
            ("Report date", day_of(sheet)),
        ],
        [
            ("Report #", sheet.show_number("accession")),
            ("Clinical team", setting.clinicians[0]),
            ("", setting.clinicians[1]),
            ("", setting.clinicians[2]),
        ],
    )
    for at, rows in enumerate(columns):
        stack(sheet, LEFT + at * 172, 70, rows, 160, 9.5, 16)
    sheet.draw_line(172, weight=0.4)
    return 194


def follow_genetics_columns(sheet: Sheet) -> float:
    line = f"Patient name: {sheet.show_name('first_last')}   Report #: {sheet.show_number('accession')}"
    put(sheet, LEFT, 44, line, 9, width=400)
    put(sheet, RIGHT, 44, f"Page {sheet.number}", 9, align="right")
    return 70


# Forms.


def begin_urgent(sheet: Sheet) -> float:
    """A suspected-cancer referral form: patient table beside the practice's."""
    card, setting, land = sheet.card, sheet.setting, land_of(sheet)
    put(sheet, 306, 42, "URGENT SUSPECTED CANCER REFERRAL", 13, True, align="middle")
    put(sheet, 306, 55, f"Send to {card.institution.name} within 24 hours", 8.5, align="middle")
    family, given = sheet.show_split_name()
    rows = [
        [(252, "REFERRING PRACTICE", ""), (252, "PATIENT DETAILS", "")],
        [(252, "Referrer", f"Dr {setting.clinicians[1]}"), (252, "Surname", family)],
        [(252, "Practice", f"{setting.street} Surgery"), (252, "First name", given)],
        [(252, "Code", write_fixed(sheet, "practice", "Y99999")), (252, land.birth, born(sheet))],
        [(252, "Telephone", "01632 960 210"), (252, land.national, write_national(sheet))],
        [(252, "Decision to refer", day_of(sheet)), (252, land.record, sheet.show_number())],
        [
            (252, "Usual doctor", f"Dr {setting.clinicians[2]}"),
            (252, "Carer / interpreter", setting.write_relative("first_last")),
        ],
    ]
    y = rule_rows(sheet, 64, rows[:1], beside=0.8)
    return rule_rows(sheet, y, rows[1:]) + 22


def follow_urgent(sheet: Sheet) -> float:
    put(sheet, RIGHT, 44, f"{surname_given(sheet)}  {born(sheet)}", 9, align="right", width=380)
    put(sheet, LEFT, 44, f"Page {sheet.number}", 9)
    return 70


def begin_authorization(sheet: Sheet) -> float:
    """A plan's decision letter to the provider: member before subscriber."""
    card, setting = sheet.card, sheet.setting
    put(sheet, LEFT, 44, setting.insurer, 15, True)
    put(sheet, LEFT, 56, "Utilization Management", 9)
    put(sheet, LEFT, 80, day_of(sheet, "long"), 10)
    for at, line in enumerate((f"{setting.clinicians[0]}, MD", card.institution.name, write_address(sheet))):
        put(sheet, LEFT, 100 + at * 13, line, 10, width=400)
    rows = [
        ("Member Name:", sheet.show_name("first_last")),
        ("Member Date of Birth:", born(sheet)),
        ("Member ID:", setting.member),
        ("Subscriber:", f"{setting.write_relative('first_last')}, {born_kin(sheet)}"),
        ("Reference Number:", sheet.show_number("account")),
        ("Your Patient Number:", sheet.show_number()),
        ("Requesting Provider:", f"{setting.clinicians[0]}, NPI {write_fixed(sheet, 'npi', '1999999999')}"),
    ]
    y = list_pairs(sheet, LEFT + 30, 154, rows, 120, 460, 13, 9.5)
    put(sheet, LEFT, y + 10, f"Dear {setting.clinicians[0]}:", 10)
    return y + 32


def follow_authorization(sheet: Sheet) -> float:
    put(sheet, LEFT, 44, f"Reference Number: {sheet.show_number('account')}", 9)
    put(sheet, LEFT, 55, f"Page {sheet.number}", 9)
    return 80


def begin_release(sheet: Sheet) -> float:
    """A release form: blanks filled in above their rules, with the names borne before."""
    card, setting, land = sheet.card, sheet.setting, land_of(sheet)
    y = head_middle(sheet, 13)
    put(sheet, 306, y + 4, "AUTHORIZATION FOR RELEASE OF HEALTH INFORMATION", 11, True, align="middle")
    rows = (
        ((LEFT, "Patient Name", sheet.show_name("first_last"), 330), (394, "Date of Birth", born(sheet), 164)),
        (
            (LEFT, "Other Names Used", card.person.former_family if card.person.sex == "F" else "none", 330),
            (394, land.record, sheet.show_number(), 164),
        ),
        ((LEFT, "Address", setting.street, 330), (394, "Phone", "555-0151", 164)),
        (
            (LEFT, "Release to", setting.write_relative("first_last"), 330),
            (394, "Relationship", setting.relative_word, 164),
        ),
        ((LEFT, "Provider", setting.clinicians[0], 330), (394, "Date", day_of(sheet), 164)),
    )
    for at, row in enumerate(rows):
        line = y + 26 + at * 18
        for x, label, text, width in row:
            gap = 92 if width > 200 else 68
            put(sheet, x, line, f"{label}:", 9, width=gap - 4)
            put(sheet, x + gap, line, text, 10, width=width - gap - 4)
            sheet.draw_line(line + 3, x + gap - 2, x + width - 6, 0.4)
    return y + 132


def finish_release(sheet: Sheet, total: int) -> None:
    sheet.draw_box(372, 724, 186, 44, weight=0.5)
    put(sheet, 376, 732, "PATIENT LABEL", 6, pale=True)
    put(sheet, 376, 746, sheet.show_name("last_first"), 9, True, 178)
    put(sheet, 376, 759, f"{sheet.show_number()}   {born(sheet)}", 9, width=178)
    put(sheet, LEFT, 764, f"Form HIM-{write_fixed(sheet, 'him', '999')}   Page {sheet.number} of {total}", 7.5)


# Laboratories and the cover.


def begin_client_columns(sheet: Sheet) -> float:
    """A reference laboratory: patient, specimen and client in three columns."""
    card, setting = sheet.card, sheet.setting
    head_left(sheet, 14)
    put(sheet, RIGHT, 42, "Report Status: Final", 10, True, align="right", width=130)
    columns = (
        (
            "Patient Information",
            [
                note(sheet, card.write_name("last_first").upper()),
                f"DOB: {born(sheet)}   AGE: {card.age}",
                f"Gender: {card.person.sex}   Fasting: Y",
                "Phone: 555.0136",
                f"Patient ID: {sheet.show_number()}",
            ],
        ),
        (
            "Specimen Information",
            [
                f"Specimen: {sheet.show_number('accession')}",
                f"Requisition: {write_fixed(sheet, 'requisition', '0099999')}",
                f"Collected: {day_of(sheet)} / 08:05",
                f"Received: {day_of(sheet)} / 20:31",
                f"Reported: {day_of(sheet)} / 23:48",
            ],
        ),
        (
            "Client Information",
            [
                f"Client #: {write_fixed(sheet, 'client', '99999999')}",
                setting.clinicians[1].upper(),
                card.institution.name.upper(),
                "Attn: laboratory contact",
                setting.street.upper(),
            ],
        ),
    )
    for at, (head, lines) in enumerate(columns):
        x = LEFT + at * 170
        sheet.draw_box(x, 66, 166, 84, weight=0.4)
        put(sheet, x + 4, 77, head, 9, True, 158)
        for row, line in enumerate(lines):
            put(sheet, x + 4, 91 + row * 12, line, 9, row == 0 and at == 0, 158)
    return 174


def finish_client_columns(sheet: Sheet, total: int) -> None:
    foot(sheet, total, f"CLIENT SERVICES: 555.0100   SPECIMEN: {sheet.show_number('accession')}", 7.5)


def begin_details_panels(sheet: Sheet) -> float:
    """A regional laboratory: a strip of numbers, then details of patient, specimen and doctor."""
    card, setting = sheet.card, sheet.setting
    put(sheet, LEFT, 44, sheet.card.institution.name, 12, True, 260)
    put(sheet, RIGHT, 44, "Laboratory Report", 12, True, align="right", width=200)
    rows = [
        [
            (126, "Specimen ID", sheet.show_number("accession")),
            (126, "Control ID", write_fixed(sheet, "control", "L9999999999")),
            (126, "Acct #", write_fixed(sheet, "client", "99999999")),
            (126, "Phone", "555-0147"),
        ]
    ]
    y = rule_rows(sheet, 54, rows, height=25, beside=0)
    put(sheet, LEFT, y + 16, sheet.show_name("last_first_capitals"), 10.5, True, 250)
    put(sheet, LEFT, y + 29, setting.street, 9)
    put(sheet, 330, y + 16, card.institution.name, 9, width=228)
    put(sheet, 330, y + 29, write_address(sheet), 8, width=228)
    panels = (
        (
            "Patient Details",
            [
                ("DOB:", born(sheet)),
                ("Age(y):", f"{card.age:03}"),
                ("Gender:", card.person.sex),
                ("Patient ID:", sheet.show_number()),
            ],
        ),
        (
            "Specimen Details",
            [
                ("Collected:", day_of(sheet)),
                ("Received:", day_of(sheet)),
                ("Entered:", day_of(sheet)),
                ("Reported:", day_of(sheet)),
            ],
        ),
        (
            "Physician Details",
            [
                ("Ordering:", setting.clinicians[1]),
                ("Referring:", setting.clinicians[2]),
                ("ID:", write_fixed(sheet, "phys", "99999")),
                ("NPI:", write_fixed(sheet, "npi", "1999999999")),
            ],
        ),
    )
    for at, (head, pairs) in enumerate(panels):
        x = LEFT + at * 170
        put(sheet, x, y + 50, head, 9, True)
        list_pairs(sheet, x, y + 63, pairs, 54, 164, 11.5, 8.5, "none")
    sheet.draw_line(y + 106)
    return y + 126


def begin_cover(sheet: Sheet) -> float:
    setting = sheet.setting
    y = head_middle(sheet, 15)
    put(sheet, 306, y + 20, "FAX COVER SHEET", 20, True, align="middle")
    rows = [
        [(252, "TO", setting.clinicians[1]), (252, "FROM", setting.clinicians[3])],
        [(252, "FAX", "555-0118"), (252, "DATE", day_of(sheet))],
        [(252, "PATIENT", sheet.show_name("last_first")), (252, "BIRTH DATE", born(sheet))],
        [(504, "RECORD NUMBER", sheet.show_number())],
    ]
    return rule_rows(sheet, y + 40, rows, height=24, beside=0.3) + 34


CLINICAL = ("Clinical Note",)
IMAGING = ("Radiology Report",)
PATHOLOGY = ("Pathology Report",)
GENOMIC = ("Genomic Report",)
FORM = ("Other",)
LAYOUTS = (
    Layout(
        "progress_note_provider",
        "columns",
        begin_progress,
        None,
        finish_progress,
        "sans",
        9.5,
        every_page=True,
        types=CLINICAL,
    ),
    Layout("ambulance_record", "form", begin_ambulance, follow_ambulance, face="sans", size=9.5, types=CLINICAL),
    Layout("portal_line", "lines", begin_portal, draw_portal_line, finish_portal, face="sans", size=10),
    Layout("three_blocks", "columns", begin_blocks, None, finish_blocks, face="sans", size=9.5, every_page=True),
    Layout(
        "flowsheet_corner",
        "sticker",
        draw_flowsheet_head,
        draw_flowsheet_head,
        finish_flowsheet,
        bottom=676,
        every_page=True,
    ),
    Layout("dot_leaders", "lines", begin_leaders, follow_leaders, face="mono", size=9),
    Layout("gateway_referral", "lines", begin_gateway, None, finish_gateway, face="sans", size=9.5, types=CLINICAL),
    Layout("provincial_consult", "letter", begin_consult, follow_consult, size=10.5, types=CLINICAL + IMAGING),
    Layout(
        "discharge_headings",
        "panels",
        begin_discharge,
        None,
        finish_discharge,
        "sans",
        9.5,
        every_page=True,
        types=CLINICAL,
    ),
    Layout("staff_column", "margin", draw_staff_column, draw_staff_column, size=10, margin=150, every_page=True),
    Layout("nordic_corner", "corners", draw_nordic, draw_nordic, face="sans", size=9.5, every_page=True),
    Layout("usage_name_grid", "grid", begin_usage_name, None, finish_usage_name, "sans", 9.5, every_page=True),
    Layout("case_folder", "form", begin_case_folder, follow_case_folder, size=10.5),
    Layout("imaging_centre", "box", begin_imaging, follow_imaging, face="sans", size=10, types=IMAGING),
    Layout("tissue_letter", "letter", begin_tissue, follow_tissue, size=10.5, types=PATHOLOGY),
    Layout(
        "family_samples",
        "table",
        begin_family_samples,
        None,
        finish_family_samples,
        "sans",
        9.5,
        every_page=True,
        types=GENOMIC,
    ),
    Layout(
        "genetics_columns",
        "columns",
        begin_genetics_columns,
        follow_genetics_columns,
        face="sans",
        size=9.5,
        types=GENOMIC,
    ),
    Layout(
        "urgent_referral",
        "form",
        begin_urgent,
        follow_urgent,
        face="sans",
        size=9.5,
        every_page=True,
        types=FORM + CLINICAL,
    ),
    Layout("authorization_letter", "letter", begin_authorization, follow_authorization, size=10.5, types=FORM),
    Layout("underlined_release", "form", begin_release, None, finish_release, bottom=708, every_page=True, types=FORM),
    Layout(
        "client_columns",
        "laboratory",
        begin_client_columns,
        None,
        finish_client_columns,
        face="sans",
        size=9.5,
        body="laboratory",
    ),
    Layout("details_panels", "laboratory", begin_details_panels, face="sans", size=9.5, body="laboratory"),
)
COVER = Layout("cover_sheet", "cover", begin_cover, face="sans", size=11, body="cover")
COVER_TEXT = (
    "Number of pages including this one: see the header.",
    "The documents that come with this fax hold protected health information.",
    "If you are not the addressee, destroy them and tell us.",
)
