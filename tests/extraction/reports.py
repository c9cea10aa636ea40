"""Clinical reports of known truth, drawn by a seed from made-up values into the layouts and wordings of such reports.

>>> drawn = draw("pathology", 1)
>>> drawn.truth["grade"].value in ("1", "2", "3", "well differentiated", "moderately differentiated", "poorly differentiated")
True

No value comes from a patient. Every value's own words stand in the report exactly once as they are in ``Known.words``; what
is not in the truth is not in the report.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from evalkit.documents.bundle import Block, DocumentBundle, LayoutMetadata, Page, PageStatus

KINDS = ("pathology", "radiology", "genomics", "lab-report")
TYPES = {
    "pathology": "Pathology Report",
    "radiology": "Radiology Report",
    "genomics": "Genomic Report",
    "lab-report": "Other",
}
Rows = list[tuple[str, str]]
"""Type and text of each block."""


class Known(NamedTuple):
    """What the report says in one field."""

    value: str
    """As it is kept."""
    words: str
    """As the report writes it."""


@dataclass(frozen=True)
class Drawn:
    """A report and all that it says."""

    kind: str
    layout: str
    bundle: DocumentBundle
    truth: Mapping[str, Known]
    """By field; of a field of many values by its name and theirs."""

    @property
    def document_type(self) -> str:
        return TYPES[self.kind]


def draw(kind: str, seed: int) -> Drawn:
    """The report of that seed."""
    dice = random.Random(f"{kind}:{seed}")
    layout = dice.choice(list(_LAYOUTS[kind]))
    truth: dict[str, Known] = {}
    rows = _letterhead(kind, dice, truth)
    rows += _LAYOUTS[kind][layout](dice, truth)
    rows += [("paragraph", dice.choice(["Page 1 of 1", "This report was reviewed before release.", "End of report."]))]
    return Drawn(kind, layout, document(rows, f"{kind}-{seed}"), truth)


def corpus(each: int, first: int = 0) -> list[Drawn]:
    """So many reports of every kind."""
    return [draw(kind, seed) for kind in KINDS for seed in range(first, first + each)]


# ------------------------------------------------------------------------------------------------- pages


def page_of(rows: Sequence[tuple[str, str]], number: int = 1, status: str = "text") -> Page:
    """A page of these blocks, one under the other."""
    text = "\n".join(text for _, text in rows)
    words, line = [], 0
    for match in re.finditer(r"\S+|\n", text):
        if match.group() == "\n":
            line += 1
            continue
        left = 100 + 40 * (match.start() - text.rfind("\n", 0, match.start()) - 1)
        top = 300 + 200 * line
        words.append((match.start(), match.end(), left, top, left + 40 * len(match.group()), top + 140))
    blocks = tuple(Block(type=kind, text=text, box=(0.0, 0.0, 1.0, 1.0)) for kind, text in rows)
    return Page(
        page_num=number,
        status=PageStatus(status),
        text=text,
        paragraphs=tuple(text for _, text in rows),
        layout_metadata=LayoutMetadata(
            block_types=tuple(kind for kind, _ in rows), has_tables=any(kind == "table" for kind, _ in rows)
        ),
        blocks=blocks,
        words=tuple(words),
    )


def document(*pages: Sequence[tuple[str, str]] | Page | str) -> DocumentBundle:
    """A document of these pages, or of one page's rows and a name."""
    name = pages[-1] if isinstance(pages[-1], str) else "report"
    made = [
        one if isinstance(one, Page) else page_of(one, number)
        for number, one in enumerate((one for one in pages if not isinstance(one, str)), 1)
    ]
    return DocumentBundle(
        doc_id=str(name),
        file_path=f"/data/{name}.pdf",
        sha256=hashlib.sha256("\f".join([str(name), *(one.text for one in made)]).encode()).hexdigest(),
        reader="drawn",
        total_pages=len(made),
        processing_timestamp="2025-02-18T14:30:00Z",
        pages=tuple(made),
    )


# ------------------------------------------------------------------------------------------------- what all have

_PLACES = ("Northgate", "Harborview", "Elmwood", "Riverside", "St. Brendan", "Lakeshore", "Millbrook", "Cedar Hill")
_HOUSES = {
    "pathology": ("University Hospital", "Medical Center", "Pathology Associates"),
    "radiology": ("Imaging Associates", "Radiology Group", "Medical Center"),
    "genomics": ("Genomics Laboratory", "Diagnostics", "Cancer Center"),
    "lab-report": ("Clinical Laboratory", "Diagnostics", "Family Health Clinic"),
}


def _letterhead(kind: str, dice: random.Random, truth: dict[str, Known]) -> Rows:
    house = f"{dice.choice(_PLACES)} {dice.choice(_HOUSES[kind])}"
    truth["institution"] = Known(house, house)
    day = f"{dice.randint(1, 12):02d}/{dice.randint(1, 28):02d}/2025"
    month, number, year = day.split("/")
    birth = f"{dice.randint(1, 12):02d}/{dice.randint(1, 28):02d}/{dice.randint(1935, 1995)}"
    label = dice.choice(
        ("Reported", "Report date", "Date of report", "Date reported", "Electronically signed", "Verified")
    )
    truth["date"] = Known(f"{year}-{month}-{number}", day)
    titles = {
        "pathology": ("SURGICAL PATHOLOGY REPORT", "Histopathology report"),
        "radiology": ("RADIOLOGY REPORT", "CT chest, abdomen and pelvis"),
        "genomics": ("MOLECULAR PROFILE", "Tumor panel, 324 genes"),
        "lab-report": ("LABORATORY REPORT", "Chemistry and hematology"),
    }
    about = f"Patient: Test Person\tDOB: {birth}\n{label}: {day}\tMRN: T-{dice.randint(1000, 9999)}"
    return [("heading", house), ("table", about), ("heading", dice.choice(titles[kind]))]


# ------------------------------------------------------------------------------------------------- pathology

_TUMORS = (
    ("Invasive ductal carcinoma", "left breast, lumpectomy"),
    ("Invasive lobular carcinoma", "right breast, mastectomy"),
    ("Mucinous adenocarcinoma", "sigmoid colon, resection"),
    ("Squamous cell carcinoma", "left upper lobe, lobectomy"),
    ("Endometrioid adenocarcinoma", "uterus, hysterectomy"),
    ("Papillary thyroid carcinoma", "thyroid, right lobe"),
)
_GRADES = (
    ("Nottingham grade {n}", "{n}"),
    ("Grade {r}", "{n}"),
    ("histologic grade {n}", "{n}"),
    ("{d} differentiated", "{d} differentiated"),
)
_MARGINS = (
    ("Margins are negative for carcinoma", "negative"),
    ("All margins are uninvolved", "negative"),
    ("Margins free of tumor", "negative"),
    ("Margins involved by invasive carcinoma", "positive"),
    ("Margins positive", "positive"),
)


def _grade(dice: random.Random) -> Known:
    number = dice.randint(1, 3)
    wording, value = dice.choice(_GRADES)
    names = {"n": str(number), "r": "I" * number, "d": ("Well", "Moderately", "Poorly")[number - 1]}
    return Known(value.format(**names).lower() if "{d}" in value else value.format(**names), wording.format(**names))


def _stains(dice: random.Random) -> dict[str, tuple[str, str, Known]]:
    """By stain: its name as written, what stands between, the result."""
    er, pr, ki = dice.choice((0, 5, 40, 80, 95)), dice.choice((0, 10, 60, 90)), dice.randint(3, 70)
    score = dice.choice(("0", "1+", "2+", "3+"))
    verdict = {"0": "negative", "1+": "negative", "2+": "equivocal", "3+": "positive"}[score]
    made = {}
    for name, long, share in (("ER", "Estrogen receptor", er), ("PR", "Progesterone receptor", pr)):
        polarity = "positive" if share else "negative"
        words = dice.choice((f"{polarity} ({share}%)", f"{polarity}, {share}% of nuclei", f"{share}% {polarity}"))
        made[name] = (dice.choice((name, long)), ": ", Known(f"{polarity}, {share}%", words))
    value = f"{verdict}, {score}" if score != "0" else verdict
    made["HER2"] = (
        dice.choice(("HER2", "HER-2/neu")),
        ": ",
        Known(value, f"{verdict} ({score})" if score != "0" else verdict),
    )
    made["Ki-67"] = (dice.choice(("Ki-67", "Ki67")), ": ", Known(f"{ki}%", f"{ki}%"))
    return made


def _pathology(dice: random.Random, truth: dict[str, Known]) -> tuple[str, Known, Known, str]:
    """Tumor, grade, margins and place; the margins of a biopsy are not told."""
    tumor, place = dice.choice(_TUMORS)
    grade, (margin_words, margin) = _grade(dice), dice.choice(_MARGINS)
    truth["histology"] = Known(tumor, tumor)
    truth["grade"] = grade
    truth["margins"] = Known(margin, margin_words)
    return tumor, grade, truth["margins"], place


def _synoptic(dice: random.Random, truth: dict[str, Known]) -> Rows:
    tumor, grade, margins, place = _pathology(dice, truth)
    label = dice.choice(("Histologic grade", "Grade", "Differentiation", "Overall grade", "Bloom-Richardson grade"))
    status = {"negative": "Uninvolved", "positive": "Involved by carcinoma"}[margins.value]
    distance = dice.choice(("", " (4 mm)", " (0.3 cm)")) if margins.value == "negative" else ""
    truth["margins"] = Known(
        f"{margins.value}, {distance.strip(' ()')}" if distance else margins.value, f"{status}{distance}"
    )
    bare = re.sub(r"(?i)^(?:nottingham |histologic )?grade ", "", grade.words)
    truth["grade"] = Known(grade.value, bare)
    rows = [
        f"Procedure\t{place}",
        f"{dice.choice(('Histologic type', 'Histological type', 'Tumor type'))}\t{tumor}",
        f"{label}\t{bare}",
        f"{dice.choice(('Margins', 'Surgical margins', 'Margin status', 'Resection margins'))}\t{status}{distance}",
    ]
    blocks = [("heading", "Synoptic Summary"), ("table", "Feature\tFinding\n" + "\n".join(rows))]
    if dice.random() < 0.7:
        blocks += _stain_table(dice, truth)
    return blocks


def _stain_table(dice: random.Random, truth: dict[str, Known]) -> Rows:
    rows = []
    for name, (written, _, known) in _stains(dice).items():
        rows.append(f"{written}\t{known.words}")
        truth[f"ihcMarkers.{name}"] = known
    return [("heading", "Immunohistochemistry"), ("table", "Marker\tResult\n" + "\n".join(rows))]


def _diagnosis(dice: random.Random, truth: dict[str, Known]) -> Rows:
    tumor, grade, margins, place = _pathology(dice, truth)
    sentence = (
        f"A. {place[0].upper()}{place[1:]}: {tumor}, {grade.words}, 1.8 cm in greatest dimension. {margins.words}."
    )
    rows = [
        ("heading", dice.choice(("Final Pathologic Diagnosis", "FINAL DIAGNOSIS", "Diagnosis"))),
        ("list_item", sentence),
        ("heading", "Clinical History"),
        ("paragraph", "A palpable mass; a prior biopsy showed carcinoma in situ, grade 1."),
        ("heading", "Gross Description"),
        (
            "paragraph",
            "Received fresh is a specimen of 7.2 x 5.8 x 3.1 cm; the surgical margins are inked blue and black.",
        ),
    ]
    if dice.random() < 0.7:
        told = _stains(dice)
        rows += [
            ("heading", "Immunohistochemistry"),
            ("paragraph", "; ".join(f"{written}{sign}{known.words}" for written, sign, known in told.values()) + "."),
        ]
        truth |= {f"ihcMarkers.{name}": known for name, (_, _, known) in told.items()}
    return rows


def _narrative(dice: random.Random, truth: dict[str, Known]) -> Rows:
    tumor, grade, margins, place = _pathology(dice, truth)
    rows = [
        ("heading", "Microscopic Description"),
        ("paragraph", f"Sections of the {place.split(',')[0]} show {tumor.lower()}, {grade.words.lower()}."),
        ("paragraph", f"{margins.words}. Lymphovascular invasion is not identified."),
    ]
    truth["histology"] = Known(tumor.lower(), tumor.lower())
    truth["grade"] = Known(grade.value, grade.words.lower())
    if dice.random() < 0.5:
        er, ki = dice.choice((60, 75, 90)), dice.randint(5, 60)
        truth["ihcMarkers.ER"] = Known(f">{er}%", f"over {er}% of tumor nuclei")
        truth["ihcMarkers.Ki-67"] = Known(f"{ki}%", f"{ki}% of cells")
        rows.append(
            ("paragraph", f"Estrogen receptors are found in over {er}% of tumor nuclei. Ki-67 stains {ki}% of cells.")
        )
    return rows


def _stacked(dice: random.Random, truth: dict[str, Known]) -> Rows:
    """Labels above their answers, as forms print them."""
    tumor, grade, margins, _ = _pathology(dice, truth)
    bare = re.sub(r"(?i)^(?:nottingham |histologic )?grade ", "", grade.words)
    truth["grade"] = Known(grade.value, bare)
    rows = []
    for label, words in (("Histologic type", tumor), ("Histologic grade", bare), ("Margins", margins.words)):
        rows += [("paragraph", label), ("paragraph", words)]
    return rows


# ------------------------------------------------------------------------------------------------- radiology

_SITES = (
    "right lower lobe nodule",
    "hepatic lesion in segment VI",
    "left adrenal mass",
    "mediastinal lymph node",
    "renal cyst",
)


def _lesions(dice: random.Random, truth: dict[str, Known]) -> list[str]:
    sizes: list[str] = []
    sentences = []
    for number, site in enumerate(dice.sample(_SITES, dice.randint(1, 3)), 1):
        while (
            size := dice.choice(
                (
                    f"{dice.randint(3, 40)} mm",
                    f"{dice.randint(1, 9)}.{dice.randint(1, 9)} cm",
                    f"{dice.randint(1, 9)}.{dice.randint(1, 9)} x {dice.randint(1, 9)}.{dice.randint(1, 9)} cm",
                )
            )
        ) in sizes:
            pass
        sizes.append(size)
        truth[f"measurements.{number}"] = Known(size, size)
        sentences.append(f"A {site} measures {size}.")
    return sentences


def _radiology(dice: random.Random, truth: dict[str, Known], headings: tuple[str, str], inline: bool) -> Rows:
    sentences = _lesions(dice, truth)
    findings = " ".join(
        [*sentences, dice.choice(("No pleural effusion.", "The heart is of normal size.", "No free fluid."))]
    )
    impression = dice.choice(
        (
            "1. No evidence of metastatic disease.",
            "Stable disease since the prior examination.",
            "Findings suspicious for recurrence.",
        )
    )
    truth["findings"], truth["impression"] = Known(findings, findings), Known(impression, impression)
    parts = [
        ("Technique", "Helical images were reconstructed at 3 mm slice thickness."),
        (headings[0], findings),
        (headings[1], impression),
    ]
    if inline:
        return [("paragraph", f"{name.upper()}: {text}") for name, text in parts]
    return [row for name, text in parts for row in (("heading", name), ("paragraph", text))]


def _usual(dice: random.Random, truth: dict[str, Known]) -> Rows:
    return _radiology(
        dice, truth, ("Findings", dice.choice(("Impression", "Conclusion", "Opinion"))), inline=dice.random() < 0.5
    )


def _unusual(dice: random.Random, truth: dict[str, Known]) -> Rows:
    headings = (
        dice.choice(("Findings", "Observations")),
        dice.choice(("Summary", "Assessment", "Final impression", "Impression")),
    )
    return _radiology(dice, truth, headings, inline=dice.random() < 0.5)


# ------------------------------------------------------------------------------------------------- genomics

_VARIANTS = (
    ("BRCA2", "c.5946delT", "p.Ser1982Argfs*22"), ("TP53", "c.524G>A", "p.Arg175His"), ("KRAS", "c.35G>A", "p.Gly12Asp"),
    ("PIK3CA", "c.3140A>G", "p.His1047Arg"), ("ATM", "c.2119T>C", "p.Ser707Pro"), ("PTEN", "c.388C>T", "p.Arg130*"),
)  # fmt: skip
_CLINICAL = (("BRAF", "V600E"), ("EGFR", "L858R"), ("NRAS", "Q61R"), ("EGFR", "exon 19 deletion"))


def _signatures(dice: random.Random, truth: dict[str, Known], inline: bool) -> Rows:
    rows = []
    if dice.random() < 0.8:
        value, words = dice.choice(
            (
                ("MSS", "MSS"),
                ("MSI-H", "MSI-High"),
                ("MSS", "Stable"),
                ("MSI-H", "MSI-H"),
                ("MSS", "microsatellite stable"),
            )
        )
        truth["msiStatus"] = Known(value, words)
        rows.append((dice.choice(("MSI status", "Microsatellite status", "Microsatellite instability")), words))
    if dice.random() < 0.8:
        number = f"{dice.randint(1, 60)}.{dice.randint(0, 9)}"
        unit = dice.choice(("mut/Mb", "mutations/Mb", "mutations per megabase"))
        truth["tmb"] = Known(number, f"{number} {unit}")
        rows.append(
            (
                dice.choice(("Tumor mutational burden", "TMB", "Tumor mutation burden (TMB)", "Mutational load")),
                f"{number} {unit}",
            )
        )
    if not rows:
        return []
    if inline:
        return [("paragraph", f"{label}: {words}") for label, words in rows]
    return [("heading", "Genomic signatures"), ("table", "\n".join(f"{label}\t{words}" for label, words in rows))]


def _variant_table(dice: random.Random, truth: dict[str, Known]) -> Rows:
    rows = []
    for number, (gene, coding, protein) in enumerate(dice.sample(_VARIANTS, dice.randint(1, 3)), 1):
        rows.append(f"{gene}\t{coding}\t{protein}\t{dice.randint(5, 60)} %")
        truth[f"mutations.{number}"] = Known(f"{gene} {coding} {protein}", f"{gene}\t{coding}\t{protein}")
    table = "Gene\tCoding change\tProtein change\tAllele fraction\n" + "\n".join(rows)
    return [("heading", "Variants"), ("table", table), *_signatures(dice, truth, inline=dice.random() < 0.5)]


def _variant_words(dice: random.Random, truth: dict[str, Known]) -> Rows:
    gene, coding, protein = dice.choice(_VARIANTS)
    truth["mutations.1"] = Known(f"{gene} {coding} {protein}", f"{gene} {coding} ({protein})")
    rows = [("heading", "Results"), ("paragraph", f"A variant was identified: {gene} {coding} ({protein}).")]
    return [*rows, *_signatures(dice, truth, inline=True)]


def _variant_clinical(dice: random.Random, truth: dict[str, Known]) -> Rows:
    gene, change = dice.choice(_CLINICAL)
    truth["mutations.1"] = Known(f"{gene} {change}", f"{gene} {change}")
    rows = [("heading", "Results"), ("paragraph", f"Pathogenic variants detected: {gene} {change}.")]
    return [*rows, *_signatures(dice, truth, inline=True)]


def _no_variant(dice: random.Random, truth: dict[str, Known]) -> Rows:
    words = dice.choice(("No pathogenic variants were detected", "No reportable variants identified"))
    truth["mutations.1"] = Known("none detected", words)
    return [("heading", "Results"), ("paragraph", f"{words}."), *_signatures(dice, truth, inline=True)]


# ------------------------------------------------------------------------------------------------- laboratory

_TESTS = (
    ("WBC", 4, 11, 1, "10^9/L"), ("Hemoglobin", 12, 17, 1, "g/dL"), ("Platelets", 150, 400, 0, "10^9/L"),
    ("Glucose", 65, 99, 0, "mg/dL"), ("Creatinine", 0.6, 1.3, 2, "mg/dL"), ("Sodium", 135, 146, 0, "mmol/L"),
    ("Potassium", 3.5, 5.3, 1, "mmol/L"), ("ALT", 9, 46, 0, "U/L"),
)  # fmt: skip


def _results(dice: random.Random) -> list[tuple[str, str, str, str]]:
    """Name, result, unit, range of some tests."""
    rows = []
    for name, low, high, digits, unit in dice.sample(_TESTS, dice.randint(3, 6)):
        value = dice.uniform(0.7 * low, 1.3 * high)
        rows.append((name, f"{value:.{digits}f}", unit, f"{low}-{high}"))
    return rows


def _lab_table(dice: random.Random, truth: dict[str, Known]) -> Rows:
    has_header = dice.random() < 0.6
    rows = []
    for name, value, unit, between in _results(dice):
        rows.append(f"{name}\t{value}\t{unit}\t{between}")
        truth[f"labValues.{name}"] = Known(f"{value} {unit} ({between})", f"{value}\t{unit}\t{between}")
    header = ["Test\tResult\tUnit\tReference range"] if has_header else []
    return [("heading", "Results"), ("table", "\n".join([*header, *rows]))]


def _lab_words(dice: random.Random, truth: dict[str, Known]) -> Rows:
    sign = dice.choice((" ", ": "))
    told = []
    for name, value, unit, between in _results(dice):
        words = f"{value} {unit} ({dice.choice(('Ref: ', 'Reference: ', ''))}{between})"
        told.append(f"{name}{sign}{words}")
        truth[f"labValues.{name}"] = Known(f"{value} {unit} ({between})", words)
    return [("heading", "Lab Results"), ("paragraph", ", ".join(told) + ".")]


# ------------------------------------------------------------------------------------------------- letters


def _letter(dice: random.Random, truth: dict[str, Known]) -> Rows:
    """In words that no rubric lists, without headings: for a person, or a better reader than the embedded one."""
    tumor, margin = dice.choice((("infiltrating duct carcinoma", "negative"), ("oat cell carcinoma", "positive")))
    number, said = dice.choice((("2", "two"), ("3", "three")))
    edge = {"negative": "No tumor is seen on ink", "positive": "Tumor is seen on ink"}[margin]
    truth["histology"] = Known(tumor, tumor)
    truth["grade"] = Known(number, f"grade {said}")
    truth["margins"] = Known(margin, edge)
    return [("paragraph", f"Dear colleague, the lesion proved to be an {tumor} of grade {said}. {edge}.")]


def _radiology_letter(dice: random.Random, truth: dict[str, Known]) -> Rows:
    sentences = _lesions(dice, truth)
    thought = dice.choice(("All in all this looks benign.", "We think of recurrence first."))
    truth["impression"] = Known(thought, thought)
    return [("paragraph", " ".join(["Dear colleague, thank you for sending this patient.", *sentences, thought]))]


def _genomic_prose(dice: random.Random, truth: dict[str, Known]) -> Rows:
    gene, change = dice.choice((("BRAF", "Val600Glu"), ("KRAS", "Gly12Asp")))
    truth["mutations.1"] = Known(f"{gene} carries {change}", f"{gene} carries {change}")
    rows = [("paragraph", f"On sequencing, the tumor's {gene} carries {change} in a third of all reads.")]
    return [*rows, *_signatures(dice, truth, inline=True)]


def _lab_prose(dice: random.Random, truth: dict[str, Known]) -> Rows:
    sodium, potassium = dice.randint(125, 150), f"{dice.randint(3, 5)}.{dice.randint(0, 9)}"
    truth["labValues.Sodium"] = Known(str(sodium), str(sodium))
    truth["labValues.Potassium"] = Known(potassium, potassium)
    return [("paragraph", f"The sodium came back at {sodium} and the potassium at {potassium}, both in mmol/L.")]


LETTERS = ("letter",)
"""Layouts that the embedded model is not made for."""
_Layout = Callable[[random.Random, dict[str, Known]], Rows]
_LAYOUTS: Mapping[str, Mapping[str, _Layout]] = {
    "pathology": {
        "synoptic": _synoptic,
        "diagnosis": _diagnosis,
        "narrative": _narrative,
        "stacked": _stacked,
        "letter": _letter,
    },
    "radiology": {"usual": _usual, "unusual": _unusual, "letter": _radiology_letter},
    "genomics": {
        "table": _variant_table,
        "words": _variant_words,
        "clinical": _variant_clinical,
        "none": _no_variant,
        "letter": _genomic_prose,
    },
    "lab-report": {"table": _lab_table, "words": _lab_words, "letter": _lab_prose},
}
