"""The data card of an exported folder: what is in it, who says so, and how far that can be trusted.

It is Markdown with the YAML head that Hugging Face's tools read. It names no document: file names may hold patients'
names.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING

from evalkit.classification.schema import DocumentType, load_type_definitions
from evalkit.evaluation.ground_truth import Level, Truth
from evalkit.evaluation.splitting import OVERLAP, SHINGLE, by_type
from evalkit.review.ground_truth import GroundTruthSource

if TYPE_CHECKING:
    import pandas as pd

#: The line of the head that says that a folder is an export.
MARK = "evalkit_export: 1"

_FEATURES = {"string": "string", "Int64": "int64", "Float64": "float64", "bool": "bool"}


@dataclass(frozen=True)
class Facts:
    """What the card tells."""

    level: Level
    documents: Mapping[str, tuple[Truth, ...]]
    """By the parts of the split, in their order."""
    rows: Mapping[str, int]
    """By the parts."""
    columns: Mapping[str, tuple[str, str]]
    """pandas' type, and a sentence."""
    left_out: int
    """How many files could not be read."""
    is_divided: bool
    misses: pd.DataFrame | None
    """What de-identifying misses; None where nothing was de-identified."""
    harm: pd.DataFrame | None
    """What it masks needlessly."""

    @property
    def truths(self) -> list[Truth]:
        """All documents."""
        return [truth for part in self.documents.values() for truth in part]


def data_card(facts: Facts) -> str:
    """The card as Markdown."""
    chapters = (_head, _title, _sources, _parts, _reviewers, _columns, _types, _masking)
    return "\n".join(line for chapter in chapters for line in chapter(facts)) + "\n"


def _head(facts: Facts) -> Iterator[str]:
    yield from ("---", MARK, "pretty_name: Ground truth of clinical documents", "configs:", "- config_name: default")
    # An empty file has no columns, and readers that guess them would fail.
    filled = [name for name, count in facts.rows.items() if count]
    yield "  data_files:" if filled else "  data_files: []"
    for name in filled:
        yield from (f"  - split: {name}", f"    path: data/{name}.jsonl")
    yield from ("dataset_info:", "  features:")
    for name, (dtype, _) in facts.columns.items():
        yield from (f"  - name: {name}", f"    dtype: {_FEATURES[dtype]}")
    yield "---"


def _title(facts: Facts) -> Iterator[str]:
    simulated = sum(truth.is_simulated for truth in facts.truths)
    if simulated:
        answers = sum(truth.simulated for truth in facts.truths)
        yield f"**{simulated} of {len(facts.truths)} documents were reviewed by a program (`is_simulated`), which gave "
        yield f"{answers} of {sum(len(truth.answered_by) for truth in facts.truths)} answers. Those are no expert's "
        yield "judgements: use them for demonstrations and tests only.**\n"
    yield "# Ground truth of clinical documents\n"
    yield f"{len(facts.truths)} documents, {sum(facts.rows.values())} rows, one per {facts.level}."
    yield f"Written by evalkit {version('evalkit')}; definitions of the types: version {load_type_definitions()['version']}."
    if facts.left_out:
        yield f"\n{facts.left_out} files of the output folder could not be read; what stood in them is missing here."
    if facts.misses is None:
        yield "\n**Not de-identified.** Document names, reviewers' names and notes are as they were written."


def _sources(facts: Facts) -> Iterator[str]:
    yield "\n## Types and sources\n"
    meanings: dict[GroundTruthSource, str] = {
        "SME_VALIDATED": "an expert agreed with the agent",
        "SME_CORRECTED": "an expert corrected the agent",
        "AUTO_ACCEPTED": "silver: accepted by rules, **no expert has looked**",
    }
    found = Counter(truth.record.ground_truth_source for truth in facts.truths)
    yield from _table(
        ("source", "documents", "meaning"),
        ((name, found[name], told) for name, told in meanings.items() if found[name]),
    )
    types = Counter((_type(truth), truth.record.ground_truth_source) for truth in facts.truths)
    yield ""
    yield from _table(
        ("type of the whole file", *(name for name in meanings if found[name])),
        (
            (kind, *(types[kind, name] for name in meanings if found[name]))
            for kind in sorted({kind for kind, _ in types})
        ),
    )


def _parts(facts: Facts) -> Iterator[str]:
    yield "\n## Split\n"
    if not facts.is_divided:
        yield "The documents are not divided."
        return
    yield "Documents of one patient (name, record number or birth date on any page), and documents of which more than "
    yield f"{OVERLAP:.0%} of the shorter one's runs of {SHINGLE} words stand in the other, are on one side.\n"
    names = {name: [truth.record.doc_id for truth in part] for name, part in facts.documents.items()}
    counts = by_type(names, {truth.record.doc_id: _type(truth) for truth in facts.truths})
    yield from _table(
        ("type", *names), ((kind, *row) for kind, row in zip(counts.index, counts.to_numpy(), strict=True))
    )
    yield ""
    yield from _table(("", *names), [("documents", *map(len, names.values())), ("rows", *facts.rows.values())])


def _reviewers(facts: Facts) -> Iterator[str]:
    yield "\n## Reviewers\n"
    found = Counter(truth.record.reviewer for truth in facts.truths if truth.record.reviewer)
    answers = Counter(reviewer for truth in facts.truths for reviewer in truth.answered_by)
    yield "Of each: the documents whose record is theirs, and all answers, also to cases that somebody else decided.\n"
    yield from _table(
        ("reviewer", "documents", "answers"), ((name, found[name], answers[name]) for name in sorted(answers))
    )
    yield "\n## Why documents were reviewed\n"
    yield "Escalated documents are the hard ones: averages over all rows misstate everything. Weigh each row with 1 /"
    yield "`inclusion_probability`.\n"
    reasons = Counter(
        (truth.record.review_reason or "none (silver)", truth.record.inclusion_probability) for truth in facts.truths
    )
    ordered = sorted(reasons.items(), key=lambda one: (one[0][0], one[0][1] or 0))
    rows = ((reason, "unknown" if p is None else f"{p:g}", count) for (reason, p), count in ordered)
    yield from _table(("reason", "inclusion probability", "documents"), rows)


def _columns(facts: Facts) -> Iterator[str]:
    yield "\n## Columns\n"
    yield from _table(("column", "type", "meaning"), ((name, *told) for name, told in facts.columns.items()))


def _types(_: Facts) -> Iterator[str]:
    definitions = load_type_definitions()
    yield f"\n## What the types mean (version {definitions['version']})"
    for kind in DocumentType:
        told = definitions[kind]
        yield f"\n**{kind}.** {told['definition']}\n"
        yield from (f"- {one}" for one in told["includes"])
        yield from (f"- not: {one}" for one in told["excludes"])


def _masking(facts: Facts) -> Iterator[str]:
    if facts.misses is None or facts.harm is None:
        return
    yield "\n## De-identification\n"
    yield "Masked by patterns: names behind labels, titles or before degrees, and wherever else these names stand in the"
    yield "document; the words of file names and reviewers' names of the output folder that are no ordinary English;"
    yield "dates, telephone and fax numbers, e-mail addresses, addresses, record and other numbers, ages over 89."
    yield "Kept: years alone, ages up to 89, names of hospitals and laboratories, the PDFs' hashes (who has a PDF can find"
    yield "its row) and when a document was reviewed. Documents are called by their hash, reviewers are numbered, also in notes.\n"
    yield "**Measured on planted identifiers, not a guarantee**: they are invented, and so are the sentences around them."
    yield "Have a person look before this leaves your house.\n"
    yield from _table(
        ("kind", "planted", "missed", "share", "at most (95 % interval)"),
        (
            (one["kind"], one["planted"], one["missed"], f"{one['share']:.1%}", f"{one['high']:.1%}")
            for one in facts.misses.to_dict("records")
        ),
    )
    yield "\nMedical words masked needlessly, counted in documents of this export:\n"
    yield from _table(
        ("kind", "found", "masked", "share"),
        (
            (one["kind"], one["words"], one["masked"], f"{one['masked'] / one['words']:.1%}" if one["words"] else "")
            for one in facts.harm.to_dict("records")
        ),
    )


def _type(truth: Truth) -> str:
    return str(truth.record.ground_truth_classification.dominant_type_overall or "none")


def _table(names: Iterable[str], rows: Iterable[Iterable[object]]) -> Iterator[str]:
    columns = list(names)
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    for row in rows:
        yield f"| {' | '.join(_plain(cell) for cell in row)} |"


def _plain(cell: object) -> str:
    """A cell that cannot end the table or become markup, except for what the card itself makes bold or code."""
    text = re.sub(r"\s+", " ", str(cell))
    return re.sub(r"([|<>\[\]\\])", r"\\\1", text)
