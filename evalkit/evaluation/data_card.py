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
from evalkit.evaluation.ground_truth_table import GroundTruthDocument, TableLevel
from evalkit.evaluation.splitting import OVERLAP_THRESHOLD, SHINGLE_WORDS, count_types_by_part
from evalkit.review.ground_truth import GroundTruthSource

if TYPE_CHECKING:
    import pandas as pd

#: The line of the head that says that a folder is an export.
EXPORT_MARKER = "evalkit_export: 1"

_FEATURE_DTYPES = {"string": "string", "Int64": "int64", "Float64": "float64", "bool": "bool"}


@dataclass(frozen=True)
class DataCardFacts:
    """What the card tells."""

    level: TableLevel
    documents_by_split: Mapping[str, tuple[GroundTruthDocument, ...]]
    """By the parts of the split, in their order."""
    row_counts: Mapping[str, int]
    """By the parts."""
    column_descriptions: Mapping[str, tuple[str, str]]
    """pandas' type, and a sentence."""
    unreadable_count: int
    """How many files could not be read."""
    is_split: bool
    missed_identifiers: pd.DataFrame | None
    """What de-identifying misses; None where nothing was de-identified."""
    needless_masking: pd.DataFrame | None
    """What it masks needlessly."""

    @property
    def all_documents(self) -> list[GroundTruthDocument]:
        """All documents."""
        return [document for documents in self.documents_by_split.values() for document in documents]


def render_data_card(facts: DataCardFacts) -> str:
    """The card as Markdown."""
    chapter_renderers = (
        _render_yaml_head,
        _render_title,
        _render_sources,
        _render_split,
        _render_reviewers,
        _render_columns,
        _render_type_definitions,
        _render_masking,
    )
    return "\n".join(line for render_chapter in chapter_renderers for line in render_chapter(facts)) + "\n"


def _render_yaml_head(facts: DataCardFacts) -> Iterator[str]:
    yield from (
        "---",
        EXPORT_MARKER,
        "pretty_name: Ground truth of clinical documents",
        "configs:",
        "- config_name: default",
    )
    # An empty file has no columns, and readers that guess them would fail.
    filled_splits = [name for name, row_count in facts.row_counts.items() if row_count]
    yield "  data_files:" if filled_splits else "  data_files: []"
    for name in filled_splits:
        yield from (f"  - split: {name}", f"    path: data/{name}.jsonl")
    yield from ("dataset_info:", "  features:")
    for name, (dtype, _) in facts.column_descriptions.items():
        yield from (f"  - name: {name}", f"    dtype: {_FEATURE_DTYPES[dtype]}")
    yield "---"


def _render_title(facts: DataCardFacts) -> Iterator[str]:
    simulated_document_count = sum(document.is_simulated for document in facts.all_documents)
    if simulated_document_count:
        simulated_answer_count = sum(document.simulated_answer_count for document in facts.all_documents)
        yield f"**{simulated_document_count} of {len(facts.all_documents)} documents were reviewed by a program (`is_simulated`), which gave "
        yield f"{simulated_answer_count} of {sum(len(document.answer_reviewers) for document in facts.all_documents)} answers. Those are no expert's "
        yield "judgements: use them for demonstrations and tests only.**\n"
    yield "# Ground truth of clinical documents\n"
    yield f"{len(facts.all_documents)} documents, {sum(facts.row_counts.values())} rows, one per {facts.level}."
    yield f"Written by evalkit {version('evalkit')}; definitions of the types: version {load_type_definitions()['version']}."
    if facts.unreadable_count:
        yield f"\n{facts.unreadable_count} files of the output folder could not be read; what stood in them is missing here."
    if facts.missed_identifiers is None:
        yield "\n**Not de-identified.** Document names, reviewers' names and notes are as they were written."


def _render_sources(facts: DataCardFacts) -> Iterator[str]:
    yield "\n## Types and sources\n"
    meaning_by_source: dict[GroundTruthSource, str] = {
        "SME_VALIDATED": "an expert agreed with the agent",
        "SME_CORRECTED": "an expert corrected the agent",
        "AUTO_ACCEPTED": "silver: accepted by rules, **no expert has looked**",
    }
    source_counts = Counter(document.record.ground_truth_source for document in facts.all_documents)
    yield from _render_table(
        ("source", "documents", "meaning"),
        (
            (source, source_counts[source], meaning)
            for source, meaning in meaning_by_source.items()
            if source_counts[source]
        ),
    )
    type_source_counts = Counter(
        (_get_overall_type(document), document.record.ground_truth_source) for document in facts.all_documents
    )
    yield ""
    yield from _render_table(
        ("type of the whole file", *(source for source in meaning_by_source if source_counts[source])),
        (
            (
                document_type,
                *(type_source_counts[document_type, source] for source in meaning_by_source if source_counts[source]),
            )
            for document_type in sorted({document_type for document_type, _ in type_source_counts})
        ),
    )


def _render_split(facts: DataCardFacts) -> Iterator[str]:
    yield "\n## Split\n"
    if not facts.is_split:
        yield "The documents are not divided."
        return
    yield "Documents of one patient (name, record number or birth date on any page), and documents of which more than "
    yield f"{OVERLAP_THRESHOLD:.0%} of the shorter one's runs of {SHINGLE_WORDS} words stand in the other, are on one side.\n"
    doc_ids_by_split = {
        split_name: [document.record.doc_id for document in documents]
        for split_name, documents in facts.documents_by_split.items()
    }
    counts_by_type = count_types_by_part(
        doc_ids_by_split, {document.record.doc_id: _get_overall_type(document) for document in facts.all_documents}
    )
    yield from _render_table(
        ("type", *doc_ids_by_split),
        (
            (document_type, *row)
            for document_type, row in zip(counts_by_type.index, counts_by_type.to_numpy(), strict=True)
        ),
    )
    yield ""
    yield from _render_table(
        ("", *doc_ids_by_split),
        [("documents", *map(len, doc_ids_by_split.values())), ("rows", *facts.row_counts.values())],
    )


def _render_reviewers(facts: DataCardFacts) -> Iterator[str]:
    yield "\n## Reviewers\n"
    document_counts = Counter(document.record.reviewer for document in facts.all_documents if document.record.reviewer)
    answer_counts = Counter(reviewer for document in facts.all_documents for reviewer in document.answer_reviewers)
    yield "Of each: the documents whose record is theirs, and all answers, also to cases that somebody else decided.\n"
    yield from _render_table(
        ("reviewer", "documents", "answers"),
        (
            (reviewer_name, document_counts[reviewer_name], answer_counts[reviewer_name])
            for reviewer_name in sorted(answer_counts)
        ),
    )
    yield "\n## Why documents were reviewed\n"
    yield "Escalated documents are the hard ones: averages over all rows misstate everything. Weigh each row with 1 /"
    yield "`inclusion_probability`.\n"
    reason_counts = Counter(
        (document.record.review_reason or "none (silver)", document.record.inclusion_probability)
        for document in facts.all_documents
    )
    sorted_reasons = sorted(
        reason_counts.items(), key=lambda reason_count: (reason_count[0][0], reason_count[0][1] or 0)
    )
    rows = (
        (reason, "unknown" if probability is None else f"{probability:g}", count)
        for (reason, probability), count in sorted_reasons
    )
    yield from _render_table(("reason", "inclusion probability", "documents"), rows)


def _render_columns(facts: DataCardFacts) -> Iterator[str]:
    yield "\n## Columns\n"
    yield from _render_table(
        ("column", "type", "meaning"),
        ((column_name, *dtype_and_meaning) for column_name, dtype_and_meaning in facts.column_descriptions.items()),
    )


def _render_type_definitions(_: DataCardFacts) -> Iterator[str]:
    definitions = load_type_definitions()
    yield f"\n## What the types mean (version {definitions['version']})"
    for document_type in DocumentType:
        definition = definitions[document_type]
        yield f"\n**{document_type}.** {definition['definition']}\n"
        yield from (f"- {clause}" for clause in definition["includes"])
        yield from (f"- not: {clause}" for clause in definition["excludes"])


def _render_masking(facts: DataCardFacts) -> Iterator[str]:
    if facts.missed_identifiers is None or facts.needless_masking is None:
        return
    yield "\n## De-identification\n"
    yield "Masked by patterns: names behind labels, titles or before degrees, and wherever else these names stand in the"
    yield "document; the words of file names and reviewers' names of the output folder that are no ordinary English;"
    yield "dates, telephone and fax numbers, e-mail addresses, addresses, record and other numbers, ages over 89."
    yield "Kept: years alone, ages up to 89, names of hospitals and laboratories, the PDFs' hashes (who has a PDF can find"
    yield "its row) and when a document was reviewed. Documents are called by their hash, reviewers are numbered, also in notes.\n"
    yield "**Measured on planted identifiers, not a guarantee**: they are invented, and so are the sentences around them."
    yield "Have a person look before this leaves your house.\n"
    yield from _render_table(
        ("kind", "planted", "missed", "share", "at most (95 % interval)"),
        (
            (row["kind"], row["planted"], row["missed"], f"{row['share']:.1%}", f"{row['high']:.1%}")
            for row in facts.missed_identifiers.to_dict("records")
        ),
    )
    yield "\nMedical words masked needlessly, counted in documents of this export:\n"
    yield from _render_table(
        ("kind", "found", "masked", "share"),
        (
            (row["kind"], row["words"], row["masked"], f"{row['masked'] / row['words']:.1%}" if row["words"] else "")
            for row in facts.needless_masking.to_dict("records")
        ),
    )


def _get_overall_type(document: GroundTruthDocument) -> str:
    return str(document.record.ground_truth_classification.dominant_type_overall or "none")


def _render_table(column_names: Iterable[str], rows: Iterable[Iterable[object]]) -> Iterator[str]:
    header_cells = list(column_names)
    yield f"| {' | '.join(header_cells)} |"
    yield f"|{'---|' * len(header_cells)}"
    for row in rows:
        yield f"| {' | '.join(_escape_cell(cell) for cell in row)} |"


def _escape_cell(cell: object) -> str:
    """A cell that cannot end the table or become markup, except for what the card itself makes bold or code."""
    text = re.sub(r"\s+", " ", str(cell))
    return re.sub(r"([|<>\[\]\\])", r"\\\1", text)
