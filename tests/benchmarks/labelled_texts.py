"""The texts that everything is learned from and judged by: labelled ones, and invented ones of authors."""

from __future__ import annotations

import json
from dataclasses import replace

from benchmarks.first_contact.papers import HERE
from benchmarks.measuring import DATA, ROOT, bundles_of

from evalkit.classification.schema import DocumentType
from evalkit.classification.training import labelled_texts
from evalkit.classification.training.labelled_texts import LabelledText

TEXTS = ROOT.parent / "shared" / "data" / "clinical_text.jsonl"
INVENTED = ROOT / "tests" / "classification" / "invented.toml"
NOT_LEARNED = "blank forms"
"""Their licence is not stated: they are judged only."""
_SOURCES = {
    "raulista1997": "mtsamples",
    "wyim": "aci-bench",
    "riyaaap": "tcga",
    "HL7": "hl7",
    "JoshuaSardinha": "synthetic",
    "jmandel": NOT_LEARNED,
}


def examples() -> list[LabelledText]:
    """All labelled texts, by source; excerpts of one report are one group."""
    real = labelled_texts.read_labelled_texts([TEXTS]) if TEXTS.exists() else []
    sourced = [replace(one, source=_SOURCES[one.source.split(":")[1].split("/")[0]]) for one in real]
    told = {one.id: one.source for one in real}
    grouped = [
        replace(one, group="hl7 pdf" if ".pdf" in told[one.id] else "hl7 svg") if one.source == "hl7" else one
        for one in sourced
    ]
    invented = (replace(one, source="invented") for one in labelled_texts.read_labelled_texts([INVENTED]))
    return [*grouped, *invented, *read_more_documents()]


def read_more_documents() -> list[LabelledText]:
    """``clinical_more``, where it is: documents of one segment with a text layer, by source."""
    folder = DATA.parent / "clinical_more"
    if not folder.is_dir():
        return []
    labels = [json.loads(line) for line in (folder / "labels.jsonl").read_text("utf-8").splitlines()]
    singles = [label for label in labels if len(label["segments"]) == 1 and not label["scan"]]
    return [
        LabelledText(
            label["file"],
            DocumentType(label["segments"][0]["type"]),
            "\n".join(page.text for page in bundle.pages),
            "_".join(label["file"].replace("__", "_").split("_")[:2]),
            label["file"].split("__")[0],
        )
        for label, bundle in zip(singles, bundles_of([folder / label["file"] for label in singles]), strict=True)
    ]


def read_author_texts(name: str) -> list[LabelledText]:
    """Invented texts that are learned from, their author as source. Nobody wrote for both the classifier and the acts."""
    rows = [json.loads(line) for line in (HERE / name).read_text("utf-8").splitlines()]
    return [
        LabelledText(row["id"], DocumentType(row["type"]), row["text"], row["group"], row["id"].split("-")[0])
        for row in rows
    ]


def collect_classifier_texts() -> list[LabelledText]:
    """All texts that the embedded classifier learns from."""
    return [*examples(), *read_author_texts("classifier_training.jsonl")]


def collect_act_texts() -> list[LabelledText]:
    """All texts that the reading of acts learns from."""
    return [*examples(), *read_author_texts("act_training.jsonl")]
