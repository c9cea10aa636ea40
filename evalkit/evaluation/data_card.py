"""The data card of an export: its contents, their sources and known limits.

The card is Markdown with the YAML front matter that Hugging Face's tools read. It names no document, because file names
may contain patients' names.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from itertools import chain
from typing import TYPE_CHECKING

from evalkit.classification.schema import DocumentType
from evalkit.document_types import compute_types_version, load_type_records
from evalkit.evaluation.ground_truth_table import GroundTruthDocument, TableLevel
from evalkit.evaluation.splitting import OVERLAP_THRESHOLD, SHINGLE_WORDS, count_types_by_part
from evalkit.review.ground_truth import GroundTruthSource

if TYPE_CHECKING:
    from jinja2 import Template


_MEANING_BY_SOURCE: dict[GroundTruthSource, str] = {
    "SME_VALIDATED": "an expert agreed with the agent",
    "SME_CORRECTED": "an expert corrected the agent",
    "AUTO_ACCEPTED": "silver: accepted by rules, **not reviewed by an expert**",
}
#: Types of columns by their names in Arrow, as the front matter of Hugging Face's data sets says them if otherwise.
_FEATURES = {
    "double": "dtype: float64",
    "list<item: string>": "list: string",
    "list<item: struct<start_page: int64, end_page: int64, type: string>>": "list:\n"
    + "\n".join(
        f"    - name: {name}\n      dtype: {dtype}"
        for name, dtype in (("start_page", "int64"), ("end_page", "int64"), ("type", "string"))
    ),
}


def render_data_card(
    *,
    level: TableLevel,
    documents_by_split: Mapping[str, tuple[GroundTruthDocument, ...]],
    row_counts: Mapping[str, int],
    column_descriptions: Mapping[str, tuple[str, str]],
    unreadable_count: int,
    is_split: bool,
    is_masked: bool,
) -> str:
    """Render the data card as Markdown from ``data_card.md.j2``.

    Args:
        level: what a row of the export is about.
        documents_by_split: the exported documents, by part of the split (``train``, ``test`` …).
        row_counts: number of exported rows, by part of the split.
        column_descriptions: by column name, the Arrow type and a sentence that explains the column.
        unreadable_count: number of problems met during the export, such as files that could not be read.
        is_split: True if the export was split on request.
        is_masked: True if the export is de-identified.
    """
    documents = list(chain.from_iterable(documents_by_split.values()))
    source_counts = Counter(document.record.ground_truth_source for document in documents)
    type_counts = Counter((_get_overall_type(document), document.record.ground_truth_source) for document in documents)
    sources = [source for source in _MEANING_BY_SOURCE if source_counts[source]]
    document_counts = Counter(document.record.reviewer for document in documents if document.record.reviewer)
    answer_counts = Counter(reviewer for document in documents for reviewer in document.answer_reviewers)
    reason_counts = Counter(
        (document.record.review_reason or "none (silver)", document.record.inclusion_probability)
        for document in documents
    )
    doc_ids_by_split = {
        split_name: [document.record.doc_id for document in split_documents]
        for split_name, split_documents in documents_by_split.items()
    }
    counts_by_type = count_types_by_part(
        doc_ids_by_split, {document.record.doc_id: _get_overall_type(document) for document in documents}
    )
    return _load_card_template().render(
        level=level,
        row_counts=row_counts,
        column_descriptions=column_descriptions,
        unreadable_count=unreadable_count,
        is_split=is_split,
        is_masked=is_masked,
        documents=documents,
        features=_FEATURES,
        row_total=sum(row_counts.values()),
        version=version("evalkit"),
        definitions=load_type_records(),
        types_version=compute_types_version(),
        types=list(DocumentType),
        overlap_threshold=OVERLAP_THRESHOLD,
        shingle_words=SHINGLE_WORDS,
        answer_counts=answer_counts,
        sources=sources,
        source_rows=[(source, source_counts[source], _MEANING_BY_SOURCE[source]) for source in sources],
        type_rows=[
            (type_name, *(type_counts[type_name, source] for source in sources))
            for type_name in sorted({type_name for type_name, _ in type_counts})
        ],
        splits=list(doc_ids_by_split),
        split_rows=list(counts_by_type.itertuples(name=None)),
        split_sizes=list(map(len, doc_ids_by_split.values())),
        reviewer_rows=[
            (reviewer, document_counts[reviewer], answer_counts[reviewer]) for reviewer in sorted(answer_counts)
        ],
        reason_rows=[
            (reason, "unknown" if probability is None else f"{probability:g}", count)
            for (reason, probability), count in sorted(
                reason_counts.items(), key=lambda reason_count: (reason_count[0][0], reason_count[0][1] or 0)
            )
        ],
        column_rows=[(name, *description) for name, description in column_descriptions.items()],
    )


@cache
def _load_card_template() -> Template:
    from jinja2 import Environment, PackageLoader

    environment = Environment(  # noqa: S701 - Markdown, whose cells are escaped below
        loader=PackageLoader("evalkit.evaluation"), trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    environment.globals["table"] = _format_table
    return environment.get_template("data_card.md.j2")


def _get_overall_type(document: GroundTruthDocument) -> str:
    return str(document.record.ground_truth_classification.dominant_type_overall or "none")


def _format_table(column_names: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    lines = [f"| {' | '.join(map(_escape_cell, row))} |" for row in rows]
    return "\n".join([f"| {' | '.join(column_names)} |", f"|{'---|' * len(column_names)}", *lines])


def _escape_cell(cell: object) -> str:
    """Escape a Markdown table cell, but keep the card's own bold and code marks."""
    return re.sub(r"([|<>\[\]\\])", r"\\\1", re.sub(r"\s+", " ", str(cell)))
