"""The sealed half of types files, good and broken, and documents of the good ones."""

from __future__ import annotations

from collections.abc import Iterator

from .own_types import (
    NAMES,
    Names,
    OwnType,
    TypedDocument,
    TypesFile,
    TypesIdeas,
    Wording,
    compose_set,
    make_dangling,
    make_endless,
    make_ring,
)

files = TypesIdeas()

COLONOSCOPY = OwnType(
    "Colonoscopy Report",
    "What an endoscopist saw and did in the colon.",
    ("polypectomy",),
    ("histology of polyps",),
    "18746-8",
    "y",
)
EEG = OwnType(
    "EEG Report", "The recording of brain waves and its reading.", ("sleep-deprived EEG",), (), "11523-8", "w"
)
ANAESTHESIA = OwnType(
    "Anaesthesia Record",
    "Drugs, vital signs and events during an anaesthetic.",
    (),
    ("the surgeon's account",),
    None,
    "a",
)
EYE = OwnType(
    "Augenärztlicher Befund – Größe & Druck",
    "Visus, Druck und Spaltlampe; Befund einer Augenärztin.",
    ("Fundus",),
    ("Brillenrezept",),
    None,
    "ö",
)
LUNG = OwnType(
    "Spirometry Report", "Lung function: volumes and flows before and after a bronchodilator.", (), (), "18759-1", "7"
)
THERAPY = OwnType(
    "理学療法記録", "A physiotherapist's record: range, strength, exercises.", ("gait analysis",), (), None, None
)

WORDINGS = {
    COLONOSCOPY.name: Wording(
        ("COLONOSCOPY", "Endoscopy report, lower tract", "Colonoscopy and polypectomy"),
        ("Instrument passed to the caecum, ileum seen.", "Bowel preparation # of 90 by the Boston scale.", "A polyp of # mm in the sigmoid, removed by snare.",
         "Diverticula in the left colon, not inflamed.", "Withdrawal time # minutes.", "Sedation: propofol # mg.", "No bleeding at the end.",
         "Retroflexion in the rectum: small haemorrhoids.", "Material sent in one jar.", "Next colonoscopy in five years.",
         "Tolerated well; home after # minutes.", "Endoscopist: Dr Quiroga."),
    ),
    EEG.name: Wording(
        ("ELECTROENCEPHALOGRAM", "EEG report", "Recording of brain waves"),
        ("Background of # Hz alpha, reacts to eye opening.", "Photic driving at # Hz.", "Hyperventilation for three minutes: mild slowing.",
         "Single sharp waves over the left temporal leads.", "No seizure was recorded.", "Twenty-one electrodes, # minutes.",
         "Stage two sleep with spindles.", "Muscle artefact in the frontal leads.", "Reading: mildly abnormal, left temporal.",
         "Does not exclude epilepsy.", "ECG lead regular at # per minute."),
    ),
    ANAESTHESIA.name: Wording(
        ("Anaesthesia record", "ANAESTHETIC CHART", "Record of anaesthesia"),
        ("Induction 08:#: propofol, fentanyl, rocuronium.", "Tube size 7.5, Cormack grade 1, # cm at the teeth.", "Sevoflurane # % end tidal.",
         "Pressure 110/# at incision.", "Ringer # ml.", "ASA class 2. Fasting since midnight.", "Sugammadex # mg at the end.",
         "Train of four 4/4.", "Handover to recovery 10:#.", "Temperature 36.# by the nasal probe.", "Ondansetron 4 mg.", "No event."),
    ),
    EYE.name: Wording(
        ("Augenärztlicher Befund", "Augenklinik: Untersuchungsbefund", "Befund Spaltlampe und Fundus"),
        ("Visus rechts 0,#, links 0,#.", "Augeninnendruck # mmHg beidseits.", "Spaltlampe: Hornhaut klar, Vorderkammer tief.",
         "Linse: beginnende Rindentrübung.", "Fundus: Papille vital, randscharf.", "Makula trocken.", "Gesichtsfeld ohne Ausfälle.",
         "Therapie: Tropfen dreimal täglich.", "Kontrolle in # Wochen.", "Pupillen isokor."),
    ),
    LUNG.name: Wording(
        ("SPIROMETRY", "Lung function test", "Flow and volume, before and after salbutamol"),
        ("FEV1 2.# l, # % of predicted.", "FVC 3.# l, # % of predicted.", "Ratio 0.#.", "After salbutamol FEV1 rose by # ml.",
         "Three acceptable blows, two alike.", "DLCO # % of predicted.", "Residual volume # %.", "Reading: mild obstruction, reversible.",
         "Smoker of # pack years.", "Height 1#7 cm, upright.", "Calibrated at 07:50."),
    ),
    THERAPY.name: Wording(
        ("理学療法記録", "理学療法 経過記録", "リハビリテーション記録"),
        ("右膝の可動域は#度。", "大腿四頭筋の筋力は4。", "平行棒内歩行を#分行った。", "疼痛は軽度。", "階段昇降は見守りで可能。", "自主訓練を指導した。",
         "次回は@に予定する。", "杖歩行#メートル。", "血圧は安定していた。", "目標は屋外歩行の自立。"),
    ),
}  # fmt: skip

FIVE = {
    "Clinical Note": Wording(
        ("Consultation, rheumatology", "Emergency department note"),
        ("He came by himself because of a swollen knee since @.", "No injury. Takes allopurinol.", "Examination: warm left knee, range # degrees.", "Heart sounds normal.",
         "Assessment: likely gout.", "Plan: colchicine, rest, call in # days.", "Allergies: none known.", "Lives with his sister."),
    ),
    "Pathology Report": Wording(
        ("Cytopathology", "Biopsy report"),
        ("Specimen: fine needle aspirate of the thyroid.", "Smears: # of good quality.", "Groups of follicular cells with clear nuclei and grooves.",
         "Diagnosis: Bethesda VI, papillary carcinoma.", "Received @.", "Colloid scant.", "Signed by two pathologists.", "Material for molecular tests is kept."),
    ),
    "Genomic Report": Wording(
        ("Germline panel, hereditary cancer", "Exome sequencing, trio"),
        ("BRCA2 c.5946del p.(Ser1982Argfs*22), heterozygous, pathogenic.", "Mean depth #.", "No copy number change in # genes.", "ACMG class 5.",
         "Transcript NM_000059.4.", "Genetic counselling is offered.", "Parents were tested: inherited from the mother.", "Reported @."),
    ),
    "Radiology Report": Wording(
        ("MRI of the brain", "Ultrasound of the thyroid"),
        ("Sequences: T1, T2, FLAIR, diffusion.", "No restricted diffusion.", "A nodule of # mm, TI-RADS 3.", "Ventricles of normal width.", "Compared with @.",
         "Conclusion: no sign of recent infarction.", "Contrast # ml, no reaction.", "Sinuses clear."),
    ),
    "Other": Wording(
        ("Appointment letter", "Pharmacy refill list"),
        ("Your appointment is on @ at 10:#.", "Bring your card.", "Parking: level #.", "Refills: two of metformin.", "To cancel, ring the desk.", "Page for the front office.",
         "Copay # dollars.", "This is no medical record."),
    ),
}  # fmt: skip

GOOD = (COLONOSCOPY, EEG, ANAESTHESIA, EYE, LUNG, THERAPY)
for number, own in enumerate(GOOD):
    files.good(f"good_{number}", f"a sixth type: {own.code or 'without a code'}, key {own.key or 'of no choice'}", own)
files.good("six_together", "six types with keys of several alphabets", *GOOD)
files.good(
    "long_lists",
    "a type that includes forty kinds",
    OwnType("Registry Form", "Forms of registries.", tuple(f"registry {n}" for n in range(40))),
)
files.good("close_names", "two types whose names begin with one of the five", OwnType("Clinical Note Addendum", "Later words to a note.", key="n"),
           OwnType("Other Imaging", "Pictures without a reading.", key="g"))  # fmt: skip
files.bad(
    "spaces_alone",
    "two names that differ in spaces",
    [EEG, EEG._replace(name="EEG  Report ", key="q")],
    "twice|duplicate|same|space|name",
)
files.bad(
    "looks_like_five",
    "one of the five with a Cyrillic letter",
    [OwnType("Оther", "Looks like Other.")],
    "Other|letter|name|alike|alphabet",
)
files.bad(
    "five_lower",
    "one of the five in small letters",
    [OwnType("genomic report", "Our own reading of it.")],
    "enomic|five|built-in",
)
files.bad(
    "composed_twice",
    "one name in two Unicode forms",
    [OwnType("Befund é", "Eins."), OwnType("Befund e\u0301", "Zwei.")],
    "twice|duplicate|same|name",
)
files.bad("name_empty", "a name of spaces", [EEG._replace(name="   ")], "name")
files.bad("name_missing", "a type without a name", [{"definition": '"Something."'}], "name")
files.bad(
    "definition_spaces", "a definition of spaces and an end of line", [EEG._replace(definition=" \n ")], "definition"
)
files.bad("name_number", "a name that is a number", [{"name": "7", "definition": '"Seven."'}], "name|text|string")
files.bad("name_lines", "a name of two lines", [EEG._replace(name="EEG\nReport")], "name|line|character")
files.bad(
    "name_turned",
    "a name with a mark that turns the direction of writing",
    [EEG._replace(name="EEG \u202etropeR")],
    "name|character|direction",
)
files.bad("name_long", "a name of 5,000 letters", [EEG._replace(name="E" * 5_000)], "name|long")
files.bad("loinc_words", "a name where a code is due", [EEG._replace(code="EEG study")], "EEG study|LOINC|code")
files.bad("loinc_part", "a code without its check digit", [EEG._replace(code="11523")], "11523|LOINC|check digit|code")
files.bad(
    "loinc_answer_list",
    "an answer list of LOINC where a code is due",
    [EEG._replace(code="LL715-4")],
    "LL715-4|LOINC|code",
)
files.bad("key_of_five", "a key of spaces", [EEG._replace(key=" ")], "key")
files.bad("key_enter", "a key that is the end of a line", [EEG._replace(key="\n")], "key")
files.bad(
    "field_unknown",
    "a misspelled field",
    [{"name": '"EEG Report"', "definition": '"Brain waves."', "exclude": '["x"]'}],
    "exclude",
)
files.bad(
    "include_numbers",
    "numbers among what is included",
    [{"name": '"EEG Report"', "definition": '"Brain waves."', "includes": "[1, 2]"}],
    "includes|text|string",
)
files.bad_text(
    "latin",
    "umlauts in Latin-1",
    '[[types]]\nname = "Befund Größe"\ndefinition = "x"\n'.encode("latin-1"),
    "UTF-8|encod|TOML",
)
files.bad_text(
    "json", "JSON in place of TOML", '{"types": [{"name": "EEG Report", "definition": "Brain waves."}]}', "TOML|line"
)
files.bad_text("zeros", "a megabyte of zeros", bytes(1_000_000), "TOML|text|large|UTF-8")
files.bad_text("deep", "ten thousand brackets", "types = " + "[" * 10_000, "TOML|deep|nest|line")
files.bad_text(
    "table_twice", "one table defined twice", '[types]\nname = "a"\n[types]\nname = "b"\n', "TOML|twice|line|types"
)
files.bad_text("huge", "twenty megabytes of comments", b"# nothing\n" * 2_000_000, "large|size|no type|MB|types")
files.special("ring", "a link to itself", make_ring, "link|file|loop|read")
files.special("endless", "a link to a device without an end", make_endless, "file|regular|device")
files.special("nowhere", "a link to nothing", make_dangling, "not|missing|no such|exist")


def build(names: Names = NAMES, *, lists: bool = True) -> Iterator[TypesFile]:
    """All files of this half."""
    return files.build(names, lists=lists)


def build_documents() -> dict[str, list[TypedDocument]]:
    """For each sixth type with documents: ten of it and ten of the five."""
    return {own.name: compose_set("sealed", own, WORDINGS[own.name], FIVE) for own in GOOD}
