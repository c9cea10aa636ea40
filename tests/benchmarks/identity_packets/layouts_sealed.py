"""The sealed half: its persons, institutions and page layouts. Whoever works on the reading of identities does not open this file."""

from __future__ import annotations

from .drawing import Layout, Sheet
from .persons import Pool, write_day

POOL = Pool(
    women=(
        ("Charlotte", "Lottie"),
        ("Abigail", "Abby"),
        ("Jacqueline", "Jackie"),
        ("Cynthia", "Cindy"),
        ("Pamela", "Pam"),
        ("Gwendolyn", "Gwen"),
        ("Philippa", "Pippa"),
        ("Samantha", "Sam"),
        ("Veronica", "Ronnie"),
        ("Eleanor", "Nora"),
        ("Beatrice", "Bea"),
        ("Frances", "Fran"),
        ("Rosemary", "Rosie"),
        ("Judith", "Judy"),
        ("Antonia", "Toni"),
        ("Magdalena", "Lena"),
        ("Concepción", "Concha"),
        ("Birgit", "Gitte"),
        ("Wilhelmina", "Mina"),
        ("Aisha", "Ash"),
        ("Nguyet", "Moon"),
        ("Harriet", "Hattie"),
        ("Millicent", "Millie"),
        ("Roberta", "Bobbie"),
    ),
    men=(
        ("Alexander", "Alex"),
        ("Benjamin", "Ben"),
        ("Christopher", "Kit"),
        ("Daniel", "Dan"),
        ("Gregory", "Greg"),
        ("Jonathan", "Jon"),
        ("Michael", "Mike"),
        ("Nathaniel", "Nate"),
        ("Patrick", "Paddy"),
        ("Stephen", "Steve"),
        ("Thomas", "Tom"),
        ("Walter", "Walt"),
        ("Albert", "Bert"),
        ("Alfred", "Fred"),
        ("Bartholomew", "Bart"),
        ("Cornelius", "Neil"),
        ("Maximilian", "Max"),
        ("Sebastián", "Seba"),
        ("Nikolai", "Kolya"),
        ("Archibald", "Archie"),
        ("Desmond", "Des"),
        ("Humphrey", "Hump"),
        ("Tobias", "Toby"),
        ("Zachary", "Zack"),
    ),
    unisex=("Taylor", "Morgan", "Alexis", "Dana"),
    families=(
        "Ashworth",
        "Pemberton",
        "Rosenthal",
        "D'Angelo",
        "Van der Meer",
        "Ortiz-Lopez",
        "Gallagher",
        "Jankowski",
        "Tran",
        "Figueroa",
        "Blackwood",
        "Turner",
        "Eklund",
        "Kernighan",
        "St. Clair",
        "MacLeod",
        "Winterbourne",
        "Calloway",
        "Rodriguez",
        "Jäger",
        "Adebayo",
        "Merriweather",
        "Loughlin",
        "Braithwaite",
        "Hornsby",
        "Quimby",
        "Ellison",
        "Salazar",
        "Warner",
        "Dietrich",
        "Cullen",
        "Barrington",
        "Sorensen",
        "Mendoza",
        "Fairbanks",
        "Lee",
        "Clay",
        "Coburn",
        "Orne",
        "Redfern",
        "Vance",
        "Stone",
        "Wade",
        "Rich",
        "Page",
    ),
    clinicians=(
        "Miriam Katz",
        "Hugo Bellamy",
        "Anand Pillai",
        "Sofia Marchetti",
        "Edwin Osei",
        "Claire Beaumont",
        "Victor Nakamura",
        "Irene Dragan",
        "Julian Frost",
        "Paula Reinholt",
        "Samuel Ade",
        "Bridget Nolan",
        "Ester Lundqvist",
        "Kenneth Yeo",
    ),
    institutions=(
        ("Cedar Ridge Regional Medical Center", "18 Cedar Parkway, Ridgeton  -  (555) 233-9000", "H-999999"),
        ("Bay Point Oncology Associates", "700 Bay Point Drive, Suite 210  -  (555) 320-4411", "999999"),
        ("Queen Anne Infirmary", "Infirmary Road, Annesbury  -  (555) 870-1200", "999 999 9"),
        ("Tri-County Diagnostic Center", "5 County Square, Millbrook  -  (555) 664-0909", "TC9999999"),
        ("Sacred Heart Health Partners", "1200 Cathedral Ave, Easton  -  (555) 471-3535", "099999999"),
        ("Whitehall Veterans Hospital", "44 Liberty Blvd, Whitehall  -  (555) 909-7171", "W99-9999"),
    ),
    insurers=("Evergreen Mutual", "Statewide HMO", "Pinnacle Select", "Railway Employees Plan"),
    streets=("Orchard Terrace", "Bridge Street", "Laurel Court", "Station Road", "Highland Blvd"),
)

TITLES = {
    "Clinical Note": ("History and Physical", "Clinic Follow-up", "Initial Consultation"),
    "Radiology Report": ("Imaging Findings", "X-Ray / CT / US Interpretation"),
    "Pathology Report": ("Histopathology Report",),
    "Genomic Report": ("Genomic Profiling Report",),
    "Other": ("Health Information Form", "Administrative Form"),
}
SIGNATURES = ("Signed: {}, M.D., {}", "Authenticated electronically: {} MD, {}", "{}, MD - verified {}")
LABORATORY_SIGNATURE = "Results verified: {}, MT(ASCP), {}"
FAX_SENDERS = ("From: Bridget Nolan, Med Records", "Bay Point Oncology Fax 2", "KENNETH YEO MD PC")
TESTS = (
    ("Cholesterol, total", "mg/dL", 120, 200),
    ("Triglycerides", "mg/dL", 40, 150),
    ("HDL cholesterol", "mg/dL", 40, 80),
    ("LDL, calculated", "mg/dL", 50, 130),
    ("TSH", "uIU/mL", 0.4, 4.5),
    ("Free T4", "ng/dL", 0.8, 1.8),
    ("Prothrombin time", "sec", 11, 13.5),
    ("INR", "ratio", 0.9, 1.1),
    ("aPTT", "sec", 25, 35),
    ("Ferritin", "ng/mL", 15, 200),
    ("Iron", "ug/dL", 50, 170),
    ("Vitamin B12", "pg/mL", 200, 900),
    ("Folate", "ng/mL", 3, 17),
    ("CRP", "mg/L", 0.1, 5),
    ("ESR", "mm/h", 1, 20),
    ("Uric acid", "mg/dL", 3.4, 7.0),
    ("LDH", "U/L", 120, 246),
    ("Magnesium", "mg/dL", 1.7, 2.2),
    ("Phosphorus", "mg/dL", 2.5, 4.5),
)
SEXES = {"F": "Female", "M": "Male"}


def reverse(name: str) -> str:
    given, family = name.split(" ", 1)
    return f"{family}, {given}"


def begin_registration(sheet: Sheet) -> float:
    """Names of the house in the middle, below it two columns between rules: the encounter at the left, the patient at the right."""
    setting, card = sheet.setting, sheet.card
    sheet.write_middle(46, card.institution.name.upper(), 13, bold=True)
    sheet.write_middle(59, card.institution.address, 8)
    sheet.draw_line(68)
    left = [
        ("Provider", f"{reverse(setting.clinicians[0])} MD"),
        ("PCP", f"{reverse(setting.clinicians[1])} DO"),
        ("Encounter date", write_day(card.seen, "abbreviated")),
        ("Encounter #", sheet.show_number("visit")),
        ("Subscriber", f"{setting.write_relative()} / {setting.relative_word}"),
    ]
    right = [
        ("Name", sheet.show_name("last_first")),
        ("Date of Birth", sheet.show_birth("abbreviated")),
        ("Age / Gender", f"{card.age} y / {SEXES[card.person.sex]}"),
        ("Unit Number", sheet.show_number()),
        ("Payer ID", f"{setting.insurer}, {setting.member}"),
    ]
    if not card.person.adult:
        right.append(
            (
                "Mother",
                f"{setting.write_relative('first_last')}, born {write_day(setting.relative_born, 'abbreviated')}",
            )
        )
    elif setting.rng.random() < 0.4:
        left.append(("Subscriber DOB", write_day(setting.relative_born, "abbreviated")))
    for column, x, gap in ((left, 56, 84), (right, 318, 78)):
        for row, (label, text) in enumerate(column):
            sheet.write(x, 84 + row * 12.5, label, 8)
            sheet.write(x + gap, 84 + row * 12.5, text, 9)
    sheet.draw_line(154)
    sheet.write_middle(172, setting.title, 12, bold=True)
    return 194


def follow_registration(sheet: Sheet) -> float:
    sheet.write_right(
        556,
        44,
        f"{sheet.show_name('last_first')}   Unit Number {sheet.show_number()}   Date of Birth {sheet.show_birth('abbreviated')}",
        8.5,
    )
    sheet.draw_line(50)
    return 74


def begin_spread(sheet: Sheet) -> float:
    """Spaced labels under a rule and a cross, as ultrasound programs print them."""
    setting, card = sheet.setting, sheet.card
    sheet.write_middle(58, card.institution.name, 18)
    sheet.page.draw_rect((520, 38, 528, 62), color=None, fill=(0.8, 0.1, 0.1))
    sheet.page.draw_rect((512, 46, 536, 54), color=None, fill=(0.8, 0.1, 0.1))
    sheet.draw_line(74, weight=1.6)
    sheet.write(60, 98, f"Patient ID :  {sheet.show_number()}")
    sheet.write(60, 118, f"Patient Name :  {sheet.show_name('first_last')}")
    sheet.write(60, 138, f"Gender :  {SEXES[card.person.sex]}")
    sheet.write(380, 98, f"Birth Date :  {sheet.show_birth('mdy')}")
    sheet.write(380, 118, f"Patient Age :  {card.age} years")
    sheet.write(380, 138, f"Ref. Physician :  {setting.clinicians[1]}")
    sheet.write(60, 168, setting.title, 13, bold=True)
    return 190


def begin_banner(sheet: Sheet) -> float:
    setting = sheet.setting
    sheet.write(56, 104, setting.title, 14, bold=True)
    sheet.write(
        56,
        119,
        f"{setting.card.institution.name} / {setting.clinicians[0]} MD / {write_day(setting.card.seen, 'abbreviated_month_first')}",
        9,
    )
    sheet.write(
        56,
        132,
        f"In case of emergency notify: {setting.write_relative('first_last')}, {setting.relative_word}, tel. (555) 442-1187",
        8.5,
    )
    return 158


def finish_banner(sheet: Sheet, total: int) -> None:
    """Two lines in a gray band on every page; whoever printed it stands there too."""
    card, setting = sheet.card, sheet.setting
    sheet.draw_box(40, 26, 532, 36, shade=0.93, weight=0.4)
    sheet.write(46, 40, sheet.show_name("last_first"), 11, bold=True)
    sheet.write(
        46,
        54,
        f"Med Rec #: {sheet.show_number()}   Birthdate: {sheet.show_birth('mdy_short')}   {card.age} yr {SEXES[card.person.sex]}",
        8.5,
    )
    sheet.write_right(566, 40, f"Printed by: {reverse(setting.clinicians[3])}", 8)
    sheet.write_right(566, 54, f"Sheet {sheet.number} / {total}", 8)


def begin_tail(sheet: Sheet) -> float:
    setting = sheet.setting
    sheet.write_right(552, 56, setting.card.institution.name, 12, bold=True)
    sheet.write_right(552, 69, setting.card.institution.address, 7.5)
    sheet.write(60, 100, setting.title, 15, bold=True)
    sheet.write(
        60, 118, f"For: {setting.clinicians[1]}, MD      By: {setting.clinicians[0]}, MD      On: {setting.seen}", 9
    )
    return 146


def finish_tail(sheet: Sheet, total: int) -> None:
    """A row of cells at the foot of every page."""
    cells = (
        ("Patient", sheet.show_name("last_first_capitals"), 190),
        ("Birth date", sheet.show_birth("mdy"), 110),
        ("Chart No.", sheet.show_number(), 110),
        ("Page", f"{sheet.number} of {total}", 70),
    )
    x = 60.0
    for label, text, width in cells:
        sheet.draw_box(x, 736, width, 28, weight=0.5)
        sheet.write(x + 4, 746, label, 6.5)
        sheet.write(x + 4, 758, text, 9)
        x += width


def attach(sheet: Sheet, x: float, y: float) -> None:
    """A ward label: bars on top, number before name."""
    card, setting = sheet.card, sheet.setting
    sheet.draw_box(x, y, 216, 84, weight=1.2)
    sheet.draw_bars(x + 8, y + 6, 180, 18)
    sheet.write(x + 8, y + 36, f"{sheet.show_number()}   V#{sheet.show_number('visit')}", 9, face="sans")
    sheet.write(x + 8, y + 50, sheet.show_name("last_first_capitals"), 11, bold=True, face="sans")
    sheet.write(
        x + 8, y + 63, f"B: {sheet.show_birth('mdy')}  SEX: {card.person.sex}  AGE: {card.age}", 8.5, face="sans"
    )
    sheet.write(
        x + 8,
        y + 75,
        f"PCP {reverse(setting.clinicians[1])}  LOC {setting.rng.randint(2, 7)}N-{setting.rng.randint(10, 40)}",
        8,
        face="sans",
    )


def begin_label(sheet: Sheet) -> float:
    sheet.write(50, 50, sheet.setting.title, 13, bold=True)
    sheet.write(50, 66, sheet.card.institution.name, 10)
    sheet.write(50, 80, "PATIENT IDENTIFICATION: place label here >", 7)
    sheet.write(50, 94, f"Ordering: {sheet.setting.clinicians[0]} MD", 9)
    attach(sheet, 352, 28)
    return 140


def follow_label(sheet: Sheet) -> float:
    """Nobody labels the second page; the third, sometimes."""
    if sheet.number == 3:
        attach(sheet, 352, 28)
        return 134
    sheet.write(352, 50, "PATIENT IDENTIFICATION", 7)
    return 80


def begin_grid(sheet: Sheet) -> float:
    """The table of a C-CDA style sheet: label cells in gray, several lines in a cell."""
    card, setting = sheet.card, sheet.setting
    sheet.write_middle(54, f"{card.institution.name}: {setting.title}", 14, bold=True)
    contact = [setting.street, "Beaverton, OR 97867", "Tel: (555) 816-4357"]
    rows = (
        (("Patient", [sheet.show_name("first_last")]), ("Contact info", contact)),
        (("Date of birth", [sheet.show_birth("long")]), ("Sex", [SEXES[card.person.sex]])),
        (
            ("Patient IDs", [sheet.show_number(), "2.16.840.1.113883.19.5"]),
            ("Document Created", [write_day(card.seen, "long")]),
        ),
        (
            (
                "Next of Kin" if card.person.adult else "Parent",
                [setting.write_relative("first_last"), f"Relationship: {setting.relative_word}"],
            ),
            ("Legal authenticator", [f"{setting.clinicians[0]}, MD"]),
        ),
        (
            ("Informant", [setting.write_relative("first_last")]),
            ("Care provision", [f"Primary performer: {setting.clinicians[1]}", setting.clinicians[3]]),
        ),
    )
    y = 68.0
    for row in rows:
        height = max(len(lines) for _, lines in row) * 11 + 6
        for x, (label, lines) in zip((54, 306), row, strict=False):
            sheet.draw_box(x, y, 86, height, shade=0.88, weight=0.5)
            sheet.draw_box(x + 86, y, 166, height, weight=0.5)
            sheet.write(x + 4, y + 11, label, 8.5, bold=True)
            for at, line in enumerate(lines):
                sheet.write(x + 90, y + 11 + at * 11, line, 8.5)
        y += height
    return y + 20


def begin_narrated(sheet: Sheet) -> float:
    """No header names the patient; the opening of the text does."""
    card, setting = sheet.card, sheet.setting
    sheet.write(60, 62, card.institution.name, 13, bold=True)
    sheet.write(60, 75, card.institution.address, 8)
    sheet.write(
        60,
        104,
        f"{setting.title}, {write_day(card.seen, 'long_day_first')}. Dictating physician: {setting.clinicians[0]}.",
        10,
        bold=True,
    )
    lady = {"F": "lady", "M": "gentleman"}[card.person.sex]
    manner = setting.rng.randrange(3)
    if manner == 0:
        words = (
            f"This {card.age} year old {lady}, {sheet.show_name('first_last')}, whose date of birth is {sheet.show_birth('long')}, attended our department. "
            f"The history is partly from the {setting.relative_word}, {setting.write_relative('first_last')}."
        )
    elif manner == 1:
        words = (
            f"Thank you, Dr. {setting.clinicians[1].split()[-1]}, for sending me {sheet.show_name('titled')} (born {sheet.show_birth('long_day_first')}, "
            f"chart number {sheet.show_number()}). Dr. {setting.clinicians[2]} saw the patient last year."
        )
    else:
        words = (
            f"HISTORY: {sheet.show_name('titled')}, d.o.b. {sheet.show_birth('mdy')}, hospital number {sheet.show_number()}, comes back today with "
            f"{setting.write_relative('first_last')}, the {setting.relative_word}."
        )
    return sheet.write_wrapped(60, 126, 490, words) + 6


def follow_narrated(sheet: Sheet) -> float:
    if sheet.number == 2 and sheet.card.title and sheet.setting.rng.random() < 0.4:
        return (
            sheet.write_wrapped(
                60, 64, 490, f"All of this was explained to {sheet.show_name('family_titled')}, who agreed."
            )
            + 6
        )
    return 64


def begin_correspondence(sheet: Sheet) -> float:
    card, setting = sheet.card, sheet.setting
    sheet.write_right(552, 54, card.institution.name, 12, bold=True)
    sheet.write_right(552, 66, card.institution.address, 8)
    sheet.write_right(552, 78, f"Consultant: {setting.clinicians[0]}", 8)
    for row, line in enumerate((f"Dr {setting.clinicians[1]}", setting.street, "Annesbury")):
        sheet.write(60, 104 + row * 13, line)
    sheet.write(60, 156, write_day(card.seen, "long_day_first"))
    sheet.write(60, 182, f"Dear Dr {setting.clinicians[1].split()[-1]},")
    sheet.write(60, 204, f"Re: {sheet.show_name('titled')}   D.O.B. {sheet.show_birth('long_day_first')}", bold=True)
    sheet.write(
        60,
        217,
        f"Hospital No. {sheet.show_number()}   {setting.rng.randint(1, 99)} {setting.pool.streets[0]}",
        bold=True,
    )
    return 240


def follow_correspondence(sheet: Sheet) -> float:
    sheet.write(60, 50, f"{sheet.card.institution.name}   Continued   Re: {sheet.show_name('titled')}", 8.5)
    return 78


def begin_specimen(sheet: Sheet) -> float:
    card, setting = sheet.card, sheet.setting
    sheet.draw_box(40, 34, 532, 104)
    sheet.draw_line(52, 40, 572)
    sheet.page.draw_line((306, 52), (306, 138), width=0.6)
    sheet.write(
        46, 47, f"{card.institution.name.upper()}  DEPARTMENT OF PATHOLOGY AND LABORATORY MEDICINE", 9, bold=True
    )
    left = (
        (sheet.show_name("last_first_capitals"), True),
        (f"D.O.B.: {sheet.show_birth('mdy')}   AGE: {card.age}Y   SEX: {card.person.sex}", False),
        (f"HOSP#: {sheet.show_number()}", False),
        (f"ACCT#: {sheet.show_number('account')}", False),
        (f"PHYS: {reverse(setting.clinicians[0]).upper()}", False),
        (f"COPY: {reverse(setting.clinicians[1]).upper()}", False),
    )
    right = (
        f"SPECIMEN #: {sheet.show_number('accession')}",
        f"COLLECTED: {setting.seen} 0610",
        f"RECEIVED:  {setting.seen} 0655",
        f"REPORTED:  {setting.seen} 1120",
        f"PHLEBOTOMIST: {setting.clinicians[3]}",
        f"DIRECTOR: {setting.clinicians[2]}, M.D.",
    )
    for row, (text, bold) in enumerate(left):
        sheet.write(46, 65 + row * 13, text, 9, bold=bold)
    for row, text in enumerate(right):
        sheet.write(312, 65 + row * 13, text, 9)
    sheet.write(46, 156, "TEST   RESULT   UNITS   REFERENCE", 9, bold=True)
    return 172


def finish_specimen(sheet: Sheet, total: int) -> None:
    if sheet.number > 1:
        sheet.write(46, 44, f"{sheet.show_name('last_first_capitals')}   HOSP#: {sheet.show_number()}   CONTINUED", 9)
    sheet.write_middle(766, f"Laboratory director {sheet.setting.clinicians[2]}, M.D.   {sheet.number} of {total}", 8)


def begin_request(sheet: Sheet) -> float:
    """A payer's form: the physician's half before the patient's half, last and first name in cells of their own."""
    card, setting = sheet.card, sheet.setting
    sheet.write(50, 50, f"{setting.insurer}  -  {setting.title}", 13, bold=True)
    sheet.page.draw_rect((50, 60, 562, 74), color=None, fill=(0, 0, 0))
    for x, text in ((90, "PHYSICIAN INFORMATION"), (360, "PATIENT INFORMATION")):
        sheet.page.insert_text((x, 70), text, fontname="hebo", fontsize=8.5, color=(1, 1, 1))
    family, given = sheet.show_split_name()
    left = (
        ("* Physician Name:", setting.clinicians[0]),
        ("* NPI:", str(setting.rng.randint(1000000000, 1999999999))),
        ("Contact Person:", setting.clinicians[3]),
        ("Office:", card.institution.name),
        ("Phone:", "(555) 324-7878"),
    )
    right = (
        ("* Last Name:", family),
        ("* First Name:", given),
        ("* Date of Birth:", sheet.show_birth("mdy")),
        ("Facility MRN:", sheet.show_number()),
        ("Policyholder:", f"{setting.write_relative('first_last')} ({setting.relative_word})"),
    )
    for column, x, gap in ((left, 50, 84), (right, 306, 78)):
        for row, (label, text) in enumerate(column):
            sheet.draw_box(x, 74 + row * 18, 256, 18, weight=0.5)
            sheet.write(x + 4, 86 + row * 18, label, 8)
            sheet.write(x + 4 + gap, 86 + row * 18, text, 9)
    return 186


def finish_request(sheet: Sheet, total: int) -> None:
    if sheet.number > 1:
        sheet.write(
            50,
            764,
            f"Member: {sheet.show_name('first_last')}   Date of Birth: {sheet.show_birth('mdy')}   Facility MRN: {sheet.show_number()}",
            8,
        )
    sheet.write_right(562, 764, f"{sheet.number}/{total}", 8)


def begin_transmittal(sheet: Sheet) -> float:
    setting = sheet.setting
    sheet.draw_box(50, 50, 290, 40, shade=0.1)
    sheet.page.insert_text((62, 78), "Facsimile Transmittal", fontname="hebo", fontsize=20, color=(1, 1, 1))
    attach(sheet, 352, 44)
    for row, (label, text) in enumerate(
        (
            ("Sender", f"{setting.clinicians[3]}, Medical Records"),
            ("Recipient", f"Dr {setting.clinicians[1]}"),
            ("Attention", setting.clinicians[2]),
            ("Facility", sheet.card.institution.name),
            ("Sent", setting.seen),
        )
    ):
        sheet.write(60, 160 + row * 24, label, 9)
        sheet.write(140, 160 + row * 24, text, 11)
        sheet.draw_line(165 + row * 24, 140, 460, 0.4)
    return 310


LAYOUTS = (
    Layout("registration_columns", "letterhead", begin_registration, follow_registration, size=10.5, every_page=True),
    Layout("spread_labels", "letterhead", begin_spread, None, face="sans", size=10),
    Layout("gray_banner", "running_header", begin_banner, lambda sheet: 92, finish_banner, size=10.5, every_page=True),
    Layout("footer_cells", "footer", begin_tail, None, finish_tail, face="sans", size=9.5, every_page=True),
    Layout("ward_label", "sticker", begin_label, follow_label, face="mono", size=9),
    Layout("ccda_grid", "ccda", begin_grid, None, size=10.5),
    Layout("narrated", "text", begin_narrated, follow_narrated, size=11, grown_only=True),
    Layout("correspondence_re", "letter", begin_correspondence, follow_correspondence, size=11, grown_only=True),
    Layout(
        "specimen_report", "laboratory", begin_specimen, None, finish_specimen, face="mono", size=9.5, body="laboratory"
    ),
    Layout("request_form", "box", begin_request, None, finish_request, face="sans", size=9.5, every_page=True),
)
COVER = Layout("transmittal_with_label", "sticker", begin_transmittal, face="serif", size=11, body="cover")
COVER_TEXT = (
    "Records requested by your office follow this sheet.",
    "Notify us by telephone if you received this in error.",
    "Unauthorized disclosure is prohibited by law.",
)
