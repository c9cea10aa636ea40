"""The open half of types files, good and broken, and documents of the good ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from .own_types import NAMES, Names, OwnType, TypedDocument, TypesFile, TypesIdeas, Wording, compose_set, make_pipe

files = TypesIdeas()

OPERATIVE = OwnType(
    "Operative Note", "A surgeon's account of an operation: what was done, found and removed.",
    ("operation reports", "procedure notes of theatre"), ("consent forms", "anaesthesia charts"), "11504-8", "v",
)  # fmt: skip
ECHO = OwnType(
    "Echo Report",
    "The result of an ultrasound examination of the heart.",
    ("stress echo",),
    ("ECG strips",),
    "34552-0",
    "e",
)
DENTAL = OwnType(
    "Dental Record", "A dentist's findings and treatment, tooth by tooth.", ("periodontal charts",), (), None, "d"
)
BRIEF = OwnType("Entlassungsbrief", "Ärztlicher Brief über einen stationären Aufenthalt, für die Weiterbehandlung.",
                ("Arztbriefe", "Verlegungsbriefe"), ("Überweisungen",), "18842-5", "ß")  # fmt: skip
SLEEP = OwnType(
    "Sleep Study",
    "The recording of a night in a sleep laboratory, with its interpretation.",
    ("polysomnography",),
    (),
    "28633-6",
)
NURSING = OwnType(
    "Nursing Note", "What a nurse observed and did in a shift.", ("wound charts",), ("doctors' rounds",), "34746-8", "u"
)

WORDINGS = {
    OPERATIVE.name: Wording(
        ("OPERATIVE NOTE", "Operation report", "Theatre record of the operation"),
        ("Operation: laparoscopic cholecystectomy.", "Surgeon: Dr Ostrander. Assistant: Dr Pell.", "Anaesthesia: general, by tube.",
         "The patient was placed supine and prepared and draped.", "A # mm port was placed below the navel under vision.",
         "Calot's triangle was dissected and the critical view obtained.", "Cystic duct and artery were clipped and cut.",
         "The gallbladder was taken off its bed and removed in a bag.", "Estimated blood loss # ml. No drain.",
         "Swabs and instruments were counted and complete.", "Skin closed with absorbable suture.", "To recovery in good condition."),
    ),
    ECHO.name: Wording(
        ("TRANSTHORACIC ECHOCARDIOGRAM", "Echo report", "Ultrasound of the heart"),
        ("Left ventricle of normal size, wall 1.# cm.", "Ejection fraction # % by Simpson's method.", "No regional wall motion abnormality.",
         "Left atrium mildly dilated, # ml/m2.", "Mitral valve: mild regurgitation.", "Aortic valve: three cusps, peak gradient # mmHg.",
         "Right ventricle: TAPSE # mm.", "Estimated pulmonary pressure # mmHg.", "No pericardial effusion.",
         "E/e' ratio #. Diastolic function grade 1.", "Image quality fair, sinus rhythm # per minute.",
         "Conclusion: normal systolic function, mild mitral regurgitation."),
    ),
    DENTAL.name: Wording(
        ("Dental record", "Dentist's chart", "Examination of teeth and gums"),
        ("Tooth 36: caries, mesial and occlusal.", "Tooth 11: crown, margins sound.", "Probing depths 2 to # mm.", "Bleeding on probing # %.",
         "Tooth 46: composite filling placed under rubber dam.", "Local anaesthetic: articaine # mg.", "Scaling and polishing of both arches.",
         "Tooth 28 missing.", "Occlusion: class I, no premature contact.", "Advised to brush twice a day and floss.",
         "Bitewing films reviewed, no further caries.", "Next recall in # weeks."),
    ),
    BRIEF.name: Wording(
        ("Entlassungsbrief", "Arztbrief über den stationären Aufenthalt", "Vorläufiger Entlassungsbrief"),
        ("Sehr geehrte Kollegin, wir berichten über unsere gemeinsame Patientin.", "Stationärer Aufenthalt bis zum @.",
         "Diagnosen: ambulant erworbene Pneumonie rechts.", "Aufnahmebefund: Temperatur 38,# °C, Rasselgeräusche rechts basal.",
         "Therapie: Ampicillin und Sulbactam über # Tage.", "Verlauf: rasche Entfieberung, Mobilisation ohne Atemnot.",
         "Entlassmedikation: Ramipril 5 mg 1-0-0.", "Wir bitten um Kontrolle der Entzündungswerte.", "Kein Anhalt für Raumforderung.",
         "Wiedervorstellung bei Verschlechterung jederzeit.", "Mit freundlichen kollegialen Grüßen"),
    ),
    SLEEP.name: Wording(
        ("POLYSOMNOGRAPHY", "Sleep study report", "Night recording in the sleep laboratory"),
        ("Total sleep time # minutes, efficiency # %.", "Sleep latency # minutes.", "Apnoea-hypopnoea index # per hour.",
         "Lowest oxygen saturation # %.", "REM sleep # % of sleep time.", "Limb movements # per hour, few with arousal.",
         "Snoring in all positions.", "Central apnoeas were rare.", "Recorded: EEG, EOG, chin EMG, airflow, effort, pulse oximetry.",
         "Interpretation: moderate obstructive sleep apnoea.", "A trial of positive airway pressure is suggested.", "Scored by the rules of 2012."),
    ),
    NURSING.name: Wording(
        ("Nursing note, night shift", "Nurses' record", "Shift report, ward 5"),
        ("Slept from 23:00 with two interruptions.", "Turned every two hours; skin over the sacrum intact.", "Drank # ml of tea.",
         "Urine # ml by catheter, clear.", "Pain # of 100 on the scale at 02:00, paracetamol given as charted.", "Dressing on the left heel changed, dry.",
         "Asked for the priest, who was informed.", "Bell within reach, rails up.", "Mouth care done.", "Daughter rang at 21:15.",
         "Weight # kg on the bed scale.", "Handed over to the early shift."),
    ),
}  # fmt: skip

FIVE = {
    "Clinical Note": Wording(
        ("Progress note", "Clinic visit"),
        ("Seen today with her husband; tired since @.", "No chest pain, no fever.", "On examination pulse #, lungs clear.", "Abdomen soft, no mass.",
         "Impression: iron deficiency.", "Plan: ferrous sulfate, blood count in # days.", "She agrees with the plan.", "Home medicines were reviewed."),
    ),
    "Pathology Report": Wording(
        ("Surgical pathology report", "Histopathology"),
        ("Specimen: colon polyp.", "Received @ in formalin: a fragment of # mm.", "Microscopy: tubular adenoma with low-grade dysplasia.",
         "Resection margin free.", "Diagnosis: tubular adenoma.", "No invasive carcinoma in # sections.", "Reported by the pathologist on duty.", "Immunostains were not needed."),
    ),
    "Genomic Report": Wording(
        ("Molecular pathology report", "Gene panel, tumour"),
        ("Variant: BRAF c.1799T>A p.(Val600Glu), allele fraction # %.", "Mean coverage # times.", "No variant in NRAS or KIT.", "Interpretation: tier I, sensitive to BRAF inhibitors.",
         "Method: hybrid capture of # genes.", "Reference: GRCh38.", "Tumour content # %.", "Reported @."),
    ),
    "Radiology Report": Wording(
        ("CT abdomen", "Radiology report"),
        ("Technique: portal venous phase.", "Comparison: @.", "Liver without focal lesion.", "A cyst of # mm in the left kidney.", "No free fluid.",
         "Impression: no acute abnormality.", "Lung bases clear.", "Read by the radiologist on call."),
    ),
    "Other": Wording(
        ("Consent to release of records", "Insurance form"),
        ("I allow the clinic to send my records.", "Policy number 4#-#.", "Valid until @.", "Signature of the patient:", "Tick one: letter, fax, portal.",
         "Fee: # dollars.", "Form 12-B, keep a copy.", "Return to the front desk."),
    ),
}  # fmt: skip

for number, own in enumerate((OPERATIVE, ECHO, DENTAL, BRIEF, SLEEP, NURSING)):
    files.good(f"good_{number}", f"one sixth type: {own.name}", own)
files.good(
    "ten_types",
    "ten types at once",
    *(OwnType(f"Form {name}", f"Forms of series {name}.", key=str(i)) for i, name in enumerate("KLMQSTUVWX")),
)
files.good(
    "only_name",
    "a type with a name and a definition, nothing else",
    OwnType("Vaccination Record", "Vaccines that were given, by date."),
)
files.bad(
    "name_twice",
    "two types of one name",
    [ECHO, ECHO._replace(definition="Again.", key="h")],
    "twice|duplicate|same name|Echo Report",
)
files.bad(
    "name_other_case",
    "two names that differ in capitals alone",
    [ECHO, ECHO._replace(name="ECHO REPORT", key="h")],
    "twice|duplicate|capital|case|same",
)
files.bad("key_twice", "two types with one key", [ECHO, DENTAL._replace(key="e")], "key")
files.bad(
    "loinc_check", "a LOINC code with a wrong check digit", [OPERATIVE._replace(code="11504-7")], "11504-7|check digit"
)
files.bad(
    "redefined",
    "one of the five, defined anew",
    [OwnType("Pathology Report", "Whatever the laboratory sends.")],
    "Pathology Report|five|built-in",
)
files.bad("no_definition", "an empty definition", [ECHO._replace(definition="")], "definition")
files.bad("markup", "markup in a name", [ECHO._replace(name="Echo <script>alert(1)</script>")], "name|character|<")
files.bad(
    "escape", "a terminal escape in a name", [ECHO._replace(name="Echo \x1b[31mReport")], "name|character|control"
)
files.bad("key_long", "a key of two letters", [ECHO._replace(key="ec")], "key")
files.bad(
    "types_500",
    "500 types",
    [OwnType(f"Form {number}", f"Forms of number {number}.") for number in range(500)],
    "500|many|at most",
)
files.bad_text("not_toml", "a table that is not closed", '[[types\nname = "Echo Report"\n', "TOML|line")
files.bad_text("binary", "a picture", b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4, "TOML|UTF-8|text")
files.bad_text("empty", "an empty file", "", "no type|empty|types")
files.special("directory", "a directory", lambda path: path.mkdir(), "directory|folder|file")
files.special("pipe", "a named pipe", make_pipe, "file|pipe|regular")


def build(names: Names = NAMES, *, lists: bool = True) -> Iterator[TypesFile]:
    """All files of this half."""
    return files.build(names, lists=lists)


def build_documents() -> dict[str, list[TypedDocument]]:
    """For each sixth type with documents: ten of it and ten of the five."""
    types = (OPERATIVE, ECHO, DENTAL, BRIEF, SLEEP, NURSING)
    return {own.name: compose_set("open", own, WORDINGS[own.name], FIVE) for own in types}


def write_all(folder: Path) -> None:
    """Write every file of the half into a folder, to look at them."""
    for row in build():
        row.make(folder / f"{row.name}.toml")
