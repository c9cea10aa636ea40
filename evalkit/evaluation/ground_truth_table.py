"""Ground truth by document, segment or page, with the source of each row.

What each column means is data (``COLUMNS``): the data card of an export prints it, and so may a notebook.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ValidationError

from evalkit.classification.schema import Segment
from evalkit.core.grouping import group_pairs
from evalkit.documents.bundle import BUNDLE_SCHEMA_VERSION as BUNDLE_VERSION
from evalkit.documents.identity.file_persons import count_pages_of_other_persons, group_stored_pages_by_person
from evalkit.errors import StoreError
from evalkit.pipeline.sample_draws import read_probability_by_eligible_doc_id
from evalkit.review.attention_checks import is_attention_check_review
from evalkit.review.ground_truth import (
    SCHEMA_VERSION,
    SIMULATED_PREFIX,
    GroundTruth,
    is_simulated_reviewer,
    list_revisions,
)
from evalkit.review.packet import get_base_case_id
from evalkit.store import (
    GROUND_TRUTH_FOLDER,
    REVIEWS_FOLDER,
    OutputFolder,
    bundle_file_name,
    open_output_folder,
    review_file_name,
)

if TYPE_CHECKING:
    import pandas as pd

TableLevel = Literal["document", "segment", "page"]

#: A row of a table, by column.
GroundTruthRow = dict[str, Any]

_LEADING_COLUMNS = {
    "doc_id": "The document; its name in evalkit's output folder.",
    "sha256": "SHA-256 of the PDF's bytes, hexadecimal; null where the document's bundle cannot be read.",
    "ground_truth_source": "SME_VALIDATED: an expert agreed. SME_CORRECTED: an expert corrected. "
    "AUTO_ACCEPTED (silver): accepted by rules, nobody has looked.",
    "is_simulated": f"True where a program answered any case of the document, for a demonstration or test: a reviewer's "
    f"name begins with {SIMULATED_PREFIX!r}.",
    "dominant_type": "The document type of the whole file.",
}
_TRAILING_COLUMNS = {
    "vouched": "The parts that the expert vouches for, separated by spaces: dominant_type, segments, mixture. Empty for silver.",
    "number_of_pages": "Pages of the PDF; null where the document's bundle cannot be read.",
    "reviewer": "Who reviewed it; null for silver.",
    "reviewed_at": "When it was reviewed or accepted, ISO 8601 in UTC.",
    "review_reason": "Why the case was in the queue: escalated, audit, sample or requested; null for silver.",
    "inclusion_probability": "Probability, 0 to 1, with which the document came to be reviewed or, of silver, could have "
    "come to it, all draws until now included; null where nobody knows. Weights are 1 divided by it.",
    "revision": "The number of the review; 0 for silver.",
    "correction_notes": "The expert's words.",
}
#: What each column means, by level, in the columns' order.
COLUMNS: dict[TableLevel, dict[str, str]] = {
    "document": {
        **_LEADING_COLUMNS,
        "is_vouched": "True if an expert vouches for dominant_type.",
        "number_of_segments": "How many source documents the file holds.",
        "segments": "Pages and type of each segment: `1-5 Genomic Report; 6-8 Clinical Note`.",
        "patients_in_file": "How many patients the pages name; null where the document's bundle cannot be read.",
        "pages_of_others": "How many pages name another patient than most pages do; null likewise.",
        **_TRAILING_COLUMNS,
    },
    "segment": {
        **_LEADING_COLUMNS,
        "segment_index": "The segment's number in its document, from 1.",
        "start_page": "First page, from 1.",
        "end_page": "Last page, itself part of the segment.",
        "type": "The document type of the segment.",
        "is_vouched": "True if an expert vouches for the segments: their pages and types.",
        **_TRAILING_COLUMNS,
    },
    "page": {
        **_LEADING_COLUMNS,
        "page": "The page's number, from 1.",
        "type": "The document type of the segment that the page belongs to; null where none covers it.",
        "segment_index": "The segment that the page belongs to; null where none covers it.",
        "is_vouched": "True if an expert vouches for the segments: their pages and types.",
        **_TRAILING_COLUMNS,
    },
}

#: pandas' types of the columns that are not text. Text and whole numbers may be missing.
_COLUMN_DTYPES = {
    **dict.fromkeys(("is_simulated", "is_vouched"), "bool"),
    **dict.fromkeys(
        (
            *("number_of_pages", "number_of_segments", "patients_in_file", "pages_of_others"),
            *("segment_index", "start_page", "end_page", "page", "revision"),
        ),
        "Int64",
    ),
    "inclusion_probability": "Float64",
}


@dataclass(frozen=True)
class GroundTruthDocument:
    """Ground truth of one document, with its bundle's facts about the PDF."""

    record: GroundTruth
    sha256: str | None
    """Of the PDF; None where the bundle cannot be read."""
    page_count: int | None
    """None where the bundle cannot be read."""
    patients_in_file: int | None = None
    """How many patients the pages name; None where the bundle cannot be read."""
    pages_of_others: int | None = None
    """How many pages name another patient than most pages do; None likewise."""
    answer_reviewers: tuple[str, ...] = ()
    """The reviewer of every answer to a case of the document, also of second opinions and of who decided between two."""

    @property
    def simulated_answer_count(self) -> int:
        """Number of these answers that a program gave."""
        return sum(map(is_simulated_reviewer, self.answer_reviewers))

    @property
    def is_simulated(self) -> bool:
        """True if a program answered any of its cases."""
        return self.simulated_answer_count > 0


@dataclass(frozen=True)
class FolderGroundTruth:
    """The ground truth of an output folder."""

    documents: tuple[GroundTruthDocument, ...]
    """By the names of their files."""
    problems: tuple[str, ...]
    """A sentence for each file that could not be read; it names the file and quotes nothing of it."""
    reviewers: frozenset[str]
    """Everybody who has reviewed any case of the folder, with or without ground truth; attention checks apart."""


def load_ground_truth(output: Path | str, level: TableLevel = "document", *, silver: bool = False) -> pd.DataFrame:
    """Load an output folder's ground truth: a row per document, segment or page.

    ``COLUMNS[level]`` says what the columns mean. ``silver`` takes the AUTO_ACCEPTED records too, which no expert has
    seen. Rows come by file name, segments and pages in their order. A record that cannot be read is left out, and of
    one whose bundle cannot be read hash and pages are missing (at level ``page`` all its rows); where a draw cannot be
    read, the probabilities that it may have raised are. ``frame.attrs["problems"]`` names these files, a sentence each.
    """
    folder_truth = read_folder_ground_truth(output, include_silver=silver)
    table = build_typed_frame(build_ground_truth_rows(folder_truth.documents, level), COLUMNS[level])
    table.attrs["problems"] = list(folder_truth.problems)
    return table


def read_folder_ground_truth(output: Path | str, *, include_silver: bool = False) -> FolderGroundTruth:
    """Read the ground truth of classifications; other tasks' records are skipped."""
    output_folder = open_output_folder(output)
    problems: list[str] = []
    draw_probabilities = _read_draw_probabilities(output_folder, problems)
    reviews = list(_iterate_cases_reviewers_outcomes(output_folder, problems))
    reviewers_by_doc_id = group_pairs(
        (get_base_case_id(case_id), reviewer) for case_id, reviewer, outcome in reviews if outcome != "reopened"
    )
    reviewers = {reviewer for _, reviewer, _ in reviews}
    documents = []
    for file_name in output_folder.list_json_files(GROUND_TRUTH_FOLDER):
        try:
            record = _read_classification_truth(output_folder, file_name)
        except StoreError as error:
            problems.append(error.message)
            continue
        if record is None:
            continue
        answer_reviewers = reviewers_by_doc_id.get(record.doc_id, [])
        if record.reviewer and record.reviewer not in answer_reviewers:  # its review is lost
            answer_reviewers = [*answer_reviewers, record.reviewer]
        reviewers.update(answer_reviewers)
        if include_silver or record.ground_truth_source != "AUTO_ACCEPTED":
            raised_record = record.model_copy(
                update={"inclusion_probability": _find_inclusion_probability(record, draw_probabilities)}
            )
            documents.append(
                replace(
                    _attach_bundle_facts(output_folder, raised_record, problems),
                    answer_reviewers=tuple(answer_reviewers),
                )
            )
    return FolderGroundTruth(tuple(documents), tuple(problems), frozenset(reviewers))


def _read_draw_probabilities(output_folder: OutputFolder, collected_problems: list[str]) -> Mapping[str, float] | None:
    """Read the draws' probabilities; None if one cannot be read."""
    try:
        return read_probability_by_eligible_doc_id(output_folder)
    except StoreError as error:
        collected_problems.append(error.message)
        return None


def _find_inclusion_probability(record: GroundTruth, draw_probabilities: Mapping[str, float] | None) -> float | None:
    """Find the probability of review: as stored, or as a later draw raised it."""
    stored_probability = record.inclusion_probability
    if draw_probabilities is None:
        return stored_probability if stored_probability == 1 else None
    return max(
        (
            probability
            for probability in (stored_probability, draw_probabilities.get(record.doc_id))
            if probability is not None
        ),
        default=None,
    )


def _iterate_cases_reviewers_outcomes(
    output_folder: OutputFolder, collected_problems: list[str]
) -> Iterator[tuple[str, str, str]]:
    """Yield case, reviewer and outcome of every review except attention checks."""
    for case_id in output_folder.list_subfolder_names(REVIEWS_FOLDER):
        try:
            file_names = [review_file_name(case_id, revision) for revision in list_revisions(output_folder, case_id)]
        except StoreError:
            continue  # no case is called so
        for file_name in file_names:
            try:
                stored_review = output_folder.read_json(file_name, max_schema_version=SCHEMA_VERSION)
            except StoreError as error:
                collected_problems.append(error.message)
                continue
            if is_attention_check_review(stored_review):
                continue
            reviewer, outcome = stored_review.get("reviewer"), stored_review.get("outcome")
            if isinstance(reviewer, str) and isinstance(outcome, str):
                yield case_id, reviewer, outcome
            else:
                collected_problems.append(f"{file_name} does not have the shape of a review")


def _read_classification_truth(output_folder: OutputFolder, file_name: str) -> GroundTruth | None:
    stored_record = output_folder.read_json(file_name, max_schema_version=SCHEMA_VERSION)
    if "ground_truth_classification" not in stored_record:
        return None
    try:
        record = GroundTruth.model_validate(stored_record)
        record.model_dump_json()  # half a character passes a JSON parser and then cannot be written down again
    except (ValidationError, ValueError):
        # Without the cause: pydantic's message would quote the patient's document.
        raise StoreError(
            f"{file_name} does not have the shape of ground truth",
            code="STORE-TORN",
            remedy="Restore it from a backup.",
        ) from None
    return record


def _attach_bundle_facts(
    output_folder: OutputFolder, record: GroundTruth, collected_problems: list[str]
) -> GroundTruthDocument:
    try:
        # As it is: validating every word of every page would take many times as long.
        stored_bundle = output_folder.read_json(bundle_file_name(record.doc_id), max_schema_version=BUNDLE_VERSION)
    except StoreError as error:
        collected_problems.append(f"{record.doc_id!r}: {error.message}")
        return GroundTruthDocument(record, None, None)
    sha256, page_count = stored_bundle.get("sha256"), stored_bundle.get("total_pages")
    if isinstance(sha256, str) and isinstance(page_count, int):
        truth = GroundTruthDocument(record, sha256, page_count)
        with suppress(LookupError, TypeError, ValueError):
            persons = group_stored_pages_by_person(stored_bundle)
            truth = replace(truth, patients_in_file=len(persons), pages_of_others=count_pages_of_other_persons(persons))
        return truth
    collected_problems.append(f"{record.doc_id!r}: its bundle does not have the shape of one")
    return GroundTruthDocument(record, None, None)


def build_ground_truth_rows(
    truth_documents: Iterable[GroundTruthDocument], level: TableLevel
) -> Iterator[GroundTruthRow]:
    """Build the table's rows, columns in the order of ``COLUMNS[level]``."""
    for truth in truth_documents:
        for level_row in _ROW_ITERATORS[level](truth):
            row = {**_build_provenance_row(truth), **level_row}
            yield {name: row[name] for name in COLUMNS[level]}


def build_typed_frame(records: Iterable[Mapping[str, Any]], ordered_column_names: Iterable[str]) -> pd.DataFrame:
    """Build a table of these columns with types that do not depend on its rows."""
    import pandas as pd

    column_names = list(ordered_column_names)
    return pd.DataFrame(list(records), columns=column_names).astype(
        {name: get_column_dtype(name) for name in column_names}
    )


def get_column_dtype(column: str) -> str:
    """Pandas' type of a column: ``string``, ``Int64``, ``Float64`` or ``bool``."""
    return _COLUMN_DTYPES.get(column, "string")


def format_segments(segments: Iterable[Segment]) -> str:
    """``1-5 Genomic Report; 6-8 Clinical Note``."""
    return "; ".join(f"{segment.start_page}-{segment.end_page} {segment.dominant_type}" for segment in segments)


def _build_provenance_row(truth: GroundTruthDocument) -> GroundTruthRow:
    record = truth.record
    return {
        "doc_id": record.doc_id,
        "sha256": truth.sha256,
        "ground_truth_source": record.ground_truth_source,
        "is_simulated": truth.is_simulated,
        "dominant_type": _convert_to_text(record.ground_truth_classification.dominant_type_overall),
        "vouched": " ".join(record.vouched),
        "number_of_pages": truth.page_count,
        "reviewer": record.reviewer,
        "reviewed_at": record.reviewed_at,
        "review_reason": record.review_reason,
        "inclusion_probability": record.inclusion_probability,
        "revision": record.revision,
        "correction_notes": record.correction_notes,
    }


def _iterate_document_rows(truth: GroundTruthDocument) -> Iterator[GroundTruthRow]:
    segments = truth.record.ground_truth_classification.segments
    yield {
        "is_vouched": "dominant_type" in truth.record.vouched,
        "number_of_segments": len(segments),
        "segments": format_segments(segments),
        "patients_in_file": truth.patients_in_file,
        "pages_of_others": truth.pages_of_others,
    }


def _iterate_segment_rows(truth: GroundTruthDocument) -> Iterator[GroundTruthRow]:
    for segment in truth.record.ground_truth_classification.segments:
        yield {
            "segment_index": segment.segment_index,
            "start_page": segment.start_page,
            "end_page": segment.end_page,
            "type": _convert_to_text(segment.dominant_type),
            "is_vouched": "segments" in truth.record.vouched,
        }


def _iterate_page_rows(truth: GroundTruthDocument) -> Iterator[GroundTruthRow]:
    segments = truth.record.ground_truth_classification.segments
    for page in range(1, (truth.page_count or 0) + 1):
        # Of segments that nobody vouched for, two may claim a page.
        segment = next(
            (candidate for candidate in segments if candidate.start_page <= page <= candidate.end_page), None
        )
        yield {
            "page": page,
            "type": segment and _convert_to_text(segment.dominant_type),
            "segment_index": segment and segment.segment_index,
            "is_vouched": "segments" in truth.record.vouched,
        }


def _convert_to_text(value: str | None) -> str | None:
    return None if value is None else str(value)


_ROW_ITERATORS = {"document": _iterate_document_rows, "segment": _iterate_segment_rows, "page": _iterate_page_rows}
