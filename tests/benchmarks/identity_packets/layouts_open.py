"""The open half: its persons, institutions and page layouts. Developers look at these."""

from __future__ import annotations

from .drawing import WIDTH, Layout, Sheet
from .persons import Pool, write_day

POOL = Pool(
    women=(
        ("Helen", "Nell"),
        ("Margaret", "Peggy"),
        ("Elizabeth", "Beth"),
        ("Katherine", "Kathy"),
        ("Patricia", "Pat"),
        ("Deborah", "Debbie"),
        ("Susan", "Sue"),
        ("Jennifer", "Jen"),
        ("Rebecca", "Becky"),
        ("Dorothy", "Dot"),
        ("Victoria", "Vicky"),
        ("Christine", "Chris"),
        ("Barbara", "Barb"),
        ("Theresa", "Terry"),
        ("Angela", "Angie"),
        ("Josephine", "Jo"),
        ("Fatima", "Fati"),
        ("Anneliese", "Anne"),
        ("Guadalupe", "Lupe"),
        ("María", "Mari"),
        ("Priyanka", "Priya"),
        ("Yolanda", "Yoli"),
        ("Constance", "Connie"),
        ("Loretta", "Etta"),
    ),
    men=(
        ("William", "Bill"),
        ("Robert", "Bob"),
        ("James", "Jim"),
        ("Charles", "Chuck"),
        ("Edward", "Ted"),
        ("Richard", "Dick"),
        ("Lawrence", "Larry"),
        ("Anthony", "Tony"),
        ("Francis", "Frank"),
        ("Theodore", "Theo"),
        ("Gerald", "Jerry"),
        ("Eugene", "Gene"),
        ("Frederick", "Fred"),
        ("Raymond", "Ray"),
        ("Salvatore", "Sal"),
        ("Muhammad", "Mo"),
        ("José", "Pepe"),
        ("Dmitri", "Dima"),
        ("Harold", "Hal"),
        ("Leonard", "Len"),
        ("Ignacio", "Nacho"),
        ("Clifford", "Cliff"),
        ("Rajesh", "Raj"),
        ("Vincent", "Vinnie"),
    ),
    unisex=("Leslie", "Robin", "Jordan", "Casey"),
    families=(
        "Marsh",
        "Holloway",
        "Petersen",
        "O'Brien",
        "Van Dyke",
        "Castellano",
        "Whitmore",
        "Kowalczyk",
        "Nguyen",
        "Delgado",
        "Fitzgerald",
        "Harris",
        "Lindgren",
        "Barnwell",
        "de la Cruz",
        "McAllister",
        "Thornburg",
        "Abernathy",
        "Garcia",
        "Müller",
        "Okafor",
        "Vernon",
        "Carmichael",
        "Underhill",
        "Stern",
        "Burnham",
        "Hutchinson",
        "Romero",
        "Larkin",
        "Schroeder",
        "Tillman",
        "Corwin",
        "Hernandez",
        "Mathis",
        "Bjornstad",
        "Farnsworth",
        "Kim",
        "Dunning",
        "Cornell",
        "Iverson",
        "Rollins",
        "Park",
        "Young",
        "May",
        "Lane",
    ),
    clinicians=(
        "Alan Prescott",
        "Meera Iyengar",
        "Thomas Lindholm",
        "Grace Adeyemi",
        "Walter Sung",
        "Nora Feldman",
        "Carlos Vidal",
        "Joan Eriksen",
        "Peter Haas",
        "Lucille Tran",
        "Simon Oduya",
        "Dana Whitlock",
        "Ruth Zimmer",
        "Owen Pratt",
    ),
    institutions=(
        ("Northfield Clinic", "6465 Hospital St, Northfield   Tel (555) 711-0142", "9999999"),
        ("Lakeshore University Hospitals", "2550 College St, Lakeshore   Tel (555) 405-7558", "99-99-99"),
        ("Mercy Valley Medical Group", "4131 Elm Ave, Mercy Valley   Tel (555) 607-2015", "M999999"),
        ("Prairie Sky Community Hospital", "3309 Hospital Ave, Prairie Sky   Tel (555) 028-8982", "00999999"),
        ("Harborside Health System", "9439 Hospital St, Harborside   Tel (555) 817-1770", "99999999"),
        ("St. Brendan Hospital", "7300 Hospital St, Brendan   Tel (555) 617-8483", "E9999999"),
    ),
    insurers=("Blue Prairie Health", "Union Mutual PPO", "Medicare Part B", "Heartland Choice"),
    streets=("Oak Avenue", "Dearborn St", "Mill Road", "Chapel Lane", "Front Street"),
)

TITLES = {
    "Clinical Note": ("CONSULTATION NOTE", "OFFICE VISIT NOTE", "PROGRESS NOTE"),
    "Radiology Report": ("DIAGNOSTIC IMAGING REPORT", "RADIOLOGY REPORT"),
    "Pathology Report": ("SURGICAL PATHOLOGY REPORT",),
    "Genomic Report": ("MOLECULAR ONCOLOGY REPORT",),
    "Other": ("RECORDS FORM", "PATIENT FORM"),
}
SIGNATURES = ("Electronically signed by {}, MD   {}", "Dictated by {}, MD. Transcribed {}", "Reviewed by: {}, MD  {}")
LABORATORY_SIGNATURE = "Reviewed by: {}, MLS   {}"
FAX_SENDERS = ("FROM: DANA WHITLOCK RN, RECORDS", "FROM: NORTHFIELD CLINIC HIM", "FROM: OWEN PRATT MD OFFICE")
TESTS = (
    ("White Blood Cells", "K/uL", 4.0, 11.0),
    ("Red Blood Cells", "M/uL", 4.1, 5.6),
    ("Hemoglobin", "g/dL", 12.0, 16.5),
    ("Hematocrit", "%", 36, 48),
    ("MCV", "fL", 80, 100),
    ("Platelets", "K/uL", 150, 400),
    ("Neutrophils", "%", 45, 74),
    ("Lymphocytes", "%", 16, 45),
    ("Sodium", "mmol/L", 135, 145),
    ("Potassium", "mmol/L", 3.5, 5.1),
    ("Chloride", "mmol/L", 98, 107),
    ("Carbon Dioxide", "mmol/L", 22, 30),
    ("Glucose", "mg/dL", 70, 99),
    ("Urea Nitrogen", "mg/dL", 7, 20),
    ("Creatinine", "mg/dL", 0.6, 1.3),
    ("Calcium", "mg/dL", 8.6, 10.3),
    ("Albumin", "g/dL", 3.5, 5.0),
    ("Bilirubin, Total", "mg/dL", 0.2, 1.2),
    ("ALT", "U/L", 7, 56),
    ("AST", "U/L", 10, 40),
)


def head_letter(sheet: Sheet, size: float = 14) -> float:
    place = sheet.card.institution
    sheet.write(60, 60, place.name, size, bold=True)
    sheet.write(60, 74, place.address, 8)
    return 92


def begin_letterhead(sheet: Sheet) -> float:
    setting, card = sheet.setting, sheet.card
    y = head_letter(sheet)
    sheet.write(60, y + 6, setting.title, 12, bold=True)
    y += 26
    with_guarantor = not card.person.adult or setting.rng.random() < 0.4
    sheet.draw_box(56, y - 12, 500, 80 if with_guarantor else 66)
    left = (
        ("Patient Name:", sheet.show_name("last_first")),
        (card.write_label("DOB") + ":", f"{sheet.show_birth('mdy')} ({card.age} yrs)"),
        ("Sex:", card.person.sex),
        ("MRN:", sheet.show_number()),
        ("Account #:", sheet.show_number("account")),
    )
    right = (
        ("Date of Service:", setting.seen),
        ("Attending:", f"{setting.clinicians[0]}, MD"),
        ("Referring:", f"{setting.clinicians[1]}, MD"),
        ("Insured:", f"{setting.write_relative()} ({setting.relative_word})"),
        ("Plan / Member ID:", f"{setting.insurer} {setting.member}"),
    )
    if with_guarantor:
        right += (
            ("Guarantor:", f"{setting.write_relative('first_last')}, DOB {write_day(setting.relative_born, 'mdy')}"),
        )
    for column, x, gap in ((left, 62, 78), (right, 300, 92)):
        for row, (label, text) in enumerate(column):
            sheet.write_pair(x, y + row * 12.5, label, text, gap, 9)
    return y + (88 if with_guarantor else 72)


def follow_letterhead(sheet: Sheet) -> float:
    card = sheet.card
    sheet.write(
        60,
        50,
        f"{sheet.show_name('last_first')}    MRN: {sheet.show_number()}    {card.write_label('DOB')}: {sheet.show_birth('mdy')}",
        9,
    )
    return 78


def begin_lines(sheet: Sheet) -> float:
    setting, card = sheet.setting, sheet.card
    y = head_letter(sheet)
    sheet.write(60, y + 4, setting.title, 11, bold=True)
    sheet.write(
        60,
        y + 22,
        f"Patient: {sheet.show_name('last_first')}    {card.write_label('DOB')}: {sheet.show_birth('mdy')}",
        9.5,
    )
    sheet.write(
        60,
        y + 35,
        f"MRN: {sheet.show_number()}    Date: {setting.seen}    Accession: {sheet.show_number('accession')}",
        9.5,
    )
    sheet.write(60, y + 48, f"Ordering Provider: {setting.clinicians[0]}, MD    cc: {setting.clinicians[1]}, DO", 9.5)
    return y + 72


def finish_lines(sheet: Sheet, total: int) -> None:
    if sheet.number > 1:
        sheet.write(60, 760, f"MRN: {sheet.show_number()}", 8)
    sheet.write_right(552, 760, f"Page {sheet.number} of {total}", 8)


def begin_running(sheet: Sheet) -> float:
    setting = sheet.setting
    sheet.write(60, 92, setting.card.institution.name, 13, bold=True)
    sheet.write(60, 110, setting.title.title(), 11)
    sheet.write(
        60,
        126,
        f"Date of visit {setting.seen}   Seen by {setting.clinicians[0]}, MD   Emergency contact: {setting.write_relative('first_last')} "
        f"({setting.relative_word}) (555) 360-8746",
        8.5,
    )
    return 150


def finish_running(sheet: Sheet, total: int) -> None:
    card = sheet.card
    sheet.write(
        50,
        40,
        f"Patient: {sheet.show_name('last_first_capitals')} | {card.write_label('DOB')}: {sheet.show_birth('mdy')} | Sex: {card.person.sex} | "
        f"MRN: {sheet.show_number()}",
        8.5,
    )
    sheet.write_right(562, 52, f"Page {sheet.number} of {total}", 8)
    sheet.draw_line(58, 50, 562)


def begin_footed(sheet: Sheet) -> float:
    y = head_letter(sheet, 16)
    sheet.draw_line(80)
    sheet.write_middle(y + 16, sheet.setting.title, 13, bold=True)
    sheet.write(
        60, y + 38, f"Requested by: {sheet.setting.clinicians[0]}, MD        Report date: {sheet.setting.seen}", 9.5
    )
    return y + 62


def finish_footed(sheet: Sheet, total: int) -> None:
    card = sheet.card
    sheet.draw_line(744)
    sheet.write(
        54,
        757,
        f"{sheet.show_name('first_last')} - {card.write_label('DOB')} {sheet.show_birth('mdy_short')} - MRN {sheet.show_number()}",
        8,
    )
    sheet.write_right(558, 757, f"{sheet.number}/{total}", 8)
    sheet.write(54, 768, "Confidential. If you are not the intended recipient, notify the sender.", 6.5)


def stick(sheet: Sheet, x: float, y: float) -> None:
    """A label as a registration desk prints it."""
    card, setting = sheet.card, sheet.setting
    sheet.draw_box(x, y, 210, 76)
    sheet.write(x + 6, y + 13, sheet.show_name("last_first_capitals"), 10.5, bold=True, face="sans")
    sheet.write(
        x + 6,
        y + 26,
        f"{card.write_label('DOB')} {sheet.show_birth('mdy')}   {card.age}Y   {card.person.sex}",
        8.5,
        face="sans",
    )
    sheet.write(x + 6, y + 38, f"MR# {sheet.show_number()}   Acct {sheet.show_number('account')}", 8.5, face="sans")
    sheet.write(
        x + 6,
        y + 50,
        f"Adm {setting.seen}  Att: {setting.clinicians[0].split()[-1].upper()}, {setting.clinicians[0].split()[0].upper()}",
        8,
        face="sans",
    )
    sheet.draw_bars(x + 6, y + 55, 150, 16)


def begin_sticker(sheet: Sheet) -> float:
    sheet.write(54, 56, sheet.card.institution.name, 12, bold=True)
    sheet.write(54, 70, sheet.setting.title, 10)
    sheet.write(54, 84, f"Unit: {sheet.setting.rng.choice(('4 West', 'ICU', 'Outpatient Oncology'))}", 9)
    stick(sheet, 350, 36)
    return 138


def follow_sticker(sheet: Sheet) -> float:
    """Every other page got a label."""
    if sheet.number % 2 == 1:
        stick(sheet, 350, 36)
        return 138
    return 60


def draw_cells(
    sheet: Sheet, y: float, columns: list[tuple[str, str]], x: float = 54, width: float = 504, height: float = 32
) -> float:
    step = width / len(columns)
    for at, (label, text) in enumerate(columns):
        sheet.draw_box(x + at * step, y, step, height, weight=0.6)
        sheet.write(x + at * step + 4, y + 11, label, 8, bold=True)
        sheet.write(x + at * step + 4, y + 25, text, 8.5)
    return y + height


def begin_stacked(sheet: Sheet) -> float:
    """A C-CDA style sheet: label above content, cell by cell."""
    card, setting = sheet.card, sheet.setting
    sheet.write(54, 60, f"{card.institution.name}: {setting.title.title()}", 14, bold=True)
    y = draw_cells(
        sheet,
        74,
        [
            ("Patient", sheet.show_name("first_last")),
            ("Date of birth", sheet.show_birth("long")),
            ("Sex", {"F": "Female", "M": "Male"}[card.person.sex]),
            ("Patient ID", sheet.show_number()),
        ],
    )
    y = draw_cells(
        sheet,
        y,
        [
            ("Visit ID", sheet.show_number("visit")),
            ("Author", f"{setting.clinicians[0]}, MD"),
            ("Created On", write_day(card.seen, "long")),
        ],
    )
    y = draw_cells(
        sheet,
        y,
        [
            (
                "Next of kin" if card.person.adult else "Guardian",
                f"{setting.write_relative('first_last')} ({setting.relative_word})",
            ),
            ("Primary care", f"Dr. {setting.clinicians[1]}"),
            ("Document maintained by", card.institution.name),
        ],
    )
    return y + 22


def begin_told(sheet: Sheet) -> float:
    """The name stands only in the first sentence."""
    card, setting = sheet.card, sheet.setting
    y = head_letter(sheet)
    sheet.write(60, y + 10, setting.title, 12, bold=True)
    sheet.write(60, y + 26, f"Seen on {write_day(card.seen, 'long')}, {setting.clinicians[0]}, MD", 9)
    person = {"F": "woman", "M": "man"}[card.person.sex]
    relative = f"{setting.relative_word}, {setting.write_relative('first_last')},"
    manner = setting.rng.randrange(3)
    if manner == 0:
        words = (
            f"{sheet.show_name('titled')}, a {card.age}-year-old {person} born {sheet.show_birth('long_day_first')}, was seen today at the request of "
            f"Dr. {setting.clinicians[1]}. The {relative} came along."
        )
    elif manner == 1:
        words = (
            f"I had the pleasure of seeing {sheet.show_name('titled')} (date of birth {sheet.show_birth('long')}, our record {sheet.show_number()}) "
            f"together with Dr. {setting.clinicians[1]}. The patient's {relative} was present."
        )
    else:
        words = (
            f"{sheet.show_name('titled')}, date of birth {sheet.show_birth('long')}, is known to us under record number {sheet.show_number()} and "
            f"returns for follow-up. Dr. {setting.clinicians[1]} referred the patient."
        )
    return sheet.write_wrapped(60, y + 50, 490, words) + 6


def follow_told(sheet: Sheet) -> float:
    """Some later pages name the patient by title and family name, most do not at all."""
    if sheet.number == 3 and sheet.card.title:
        return sheet.write_wrapped(60, 66, 490, f"{sheet.show_name('family_titled')} agrees with what follows.") + 6
    return 66


def begin_letter(sheet: Sheet) -> float:
    card, setting = sheet.card, sheet.setting
    y = head_letter(sheet) + 14
    for line in (write_day(card.seen, "long"), "", f"{setting.clinicians[1]}, MD", setting.street, "Springfield"):
        sheet.write(60, y, line)
        y += 13
    y += 8
    sheet.write(60, y, f"RE:   {sheet.show_name('first_last')}", bold=True)
    sheet.write(
        60,
        y + 13,
        f"      {card.write_label('DOB')}: {sheet.show_birth('mdy')}     MRN: {sheet.show_number()}",
        bold=True,
    )
    sheet.write(60, y + 36, f"Dear Dr. {setting.clinicians[1].split()[-1]}:")
    return y + 56


def follow_letter(sheet: Sheet) -> float:
    """The old way of a second page: name, date, page."""
    sheet.write(60, 54, f"RE: {sheet.show_name('first_last')}, {sheet.setting.seen}, page {sheet.number}", 9.5)
    return 84


def begin_laboratory(sheet: Sheet) -> float:
    card, setting = sheet.card, sheet.setting
    sheet.write_middle(50, f"{card.institution.name} - Clinical Laboratory", 12, bold=True)
    sheet.write_middle(
        63, f"Laboratory Director: {setting.clinicians[2]}, MD, PhD   CLIA 05D0{setting.rng.randint(100000, 999999)}", 8
    )
    sheet.draw_line(70)
    rows = (
        (("Patient:", sheet.show_name("last_first_capitals")), ("Accession:", sheet.show_number("accession"))),
        ((card.write_label("DOB") + ":", sheet.show_birth("mdy")), ("Collected:", f"{setting.seen} 07:42")),
        (("Age/Sex:", f"{card.age} / {card.person.sex}"), ("Received:", f"{setting.seen} 09:15")),
        (("MRN:", sheet.show_number()), ("Reported:", f"{setting.seen} 14:03")),
        (
            (
                "Ordering:",
                f"{setting.clinicians[0].split()[-1].upper()}, {setting.clinicians[0].split()[0].upper()} MD",
            ),
            ("Collected by:", f"{setting.clinicians[3]}, RN"),
        ),
    )
    y = 86
    for left, right in rows:
        sheet.write_pair(60, y, *left, 76, 9.5)
        sheet.write_pair(330, y, *right, 84, 9.5)
        y += 13
    sheet.draw_line(y - 2)
    return y + 18


def finish_laboratory(sheet: Sheet, total: int) -> None:
    if sheet.number > 1:
        sheet.write(60, 46, f"{sheet.show_name('last_first_capitals')}   ACC {sheet.show_number('accession')}", 9)
    sheet.write(
        60,
        764,
        f"FINAL REPORT   Page {sheet.number} of {total}   Performed at {sheet.card.institution.name}, Dir. {sheet.setting.clinicians[2]}, MD",
        7.5,
    )


def begin_genetics(sheet: Sheet) -> float:
    """A box at the right with family name and forename in rows of their own; the addressee at the left is a physician."""
    card, setting = sheet.card, sheet.setting
    sheet.page.draw_rect((0, 24, WIDTH, 44), color=None, fill=(0.2, 0.3, 0.6))
    sheet.write(60, 64, card.institution.name, 13, bold=True)
    for row, line in enumerate((f"Dr. {setting.clinicians[0]}", card.institution.name, setting.street, "Capital")):
        sheet.write(60, 98 + row * 12, line, 9)
    family, given = sheet.show_split_name()
    sheet.draw_box(338, 84, 220, 88, shade=0.94, weight=0.3)
    for row, (label, text) in enumerate(
        (
            ("Name", family),
            ("Forename", given),
            ("Date of birth", sheet.show_birth("dots")),
            ("Sex", {"F": "female", "M": "male"}[card.person.sex]),
            ("Patient-ID", sheet.show_number()),
            ("Sample receipt", write_day(card.seen, "dots")),
        )
    ):
        sheet.write_pair(346, 98 + row * 13, label, text, 86, 8.5)
    title = f"{setting.title.title()} - {sheet.show_name('last_first')} | {sheet.show_birth('dots')}"
    sheet.write(60, 202, title, 12, bold=True)
    return 228


def finish_genetics(sheet: Sheet, total: int) -> None:
    if sheet.number > 1:
        sheet.write(
            60,
            764,
            f"Medical Report {sheet.show_name('first_last')}, DOB. {sheet.show_birth('dots')} | Page {sheet.number} of {total}",
            7.5,
        )


def begin_cover(sheet: Sheet) -> float:
    card, setting = sheet.card, sheet.setting
    sheet.write(60, 80, "FAX COVER SHEET", 22, bold=True)
    stick(sheet, 350, 96)
    for row, (label, text) in enumerate(
        (
            ("TO:", f"Dr. {setting.clinicians[1]}"),
            ("FROM:", f"{setting.clinicians[2]}, RN"),
            ("FAX:", "(555) 611-2098"),
            ("DATE:", setting.seen),
            ("OFFICE:", card.institution.name),
        )
    ):
        sheet.write_pair(60, 120 + row * 22, label, text, 70, 11)
    return 250


LAYOUTS = (
    Layout("letterhead_two_columns", "letterhead", begin_letterhead, follow_letterhead, size=10.5, every_page=True),
    Layout("plain_lines", "letterhead", begin_lines, None, finish_lines, face="mono", size=9),
    Layout(
        "running_header",
        "running_header",
        begin_running,
        lambda sheet: 84,
        finish_running,
        face="sans",
        size=9.5,
        every_page=True,
    ),
    Layout("footer_only", "footer", begin_footed, None, finish_footed, every_page=True),
    Layout("sticker_top_right", "sticker", begin_sticker, follow_sticker, face="sans", size=9.5),
    Layout("ccda_stacked", "ccda", begin_stacked, None, face="sans", size=9.5),
    Layout("named_in_text", "text", begin_told, follow_told, size=11, grown_only=True),
    Layout("letter_re", "letter", begin_letter, follow_letter, size=11, grown_only=True),
    Layout(
        "laboratory_last_first",
        "laboratory",
        begin_laboratory,
        None,
        finish_laboratory,
        face="mono",
        size=9.5,
        body="laboratory",
    ),
    Layout("genetics_box", "box", begin_genetics, None, finish_genetics, face="sans", size=9.5, every_page=True),
)
COVER = Layout("cover_with_sticker", "sticker", begin_cover, face="sans", size=11, body="cover")
COVER_TEXT = (
    "Pages including this one: as shown in the header line.",
    "Please find the records you asked for. Call us if a page is missing.",
    "This transmission is confidential and meant for the addressee only.",
)
