"""Ground truth as a table by document, segment or page, with its source.

``COLUMNS`` explains each column; the data card of an export prints these explanations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from evalkit.core.data_frames import build_frame
from evalkit.core.grouping import group_pairs
from evalkit.documents.bundle import BUNDLE_SCHEMA_VERSION as BUNDLE_VERSION
from evalkit.documents.identity.file_persons import (
    count_pages_of_other_persons,
    group_pages_by_person,
    read_page_facts,
)
from evalkit.errors import StoreError, UsageError
from evalkit.evaluation.fhir.bundle_reader import BUNDLES_FOLDER, read_bundle_export
from evalkit.pipeline.sample_draws import read_probability_by_eligible_doc_id
from evalkit.review import (
    SIMULATED_PREFIX,
    GroundTruth,
    get_base_case_id,
    is_attention_check_review,
    is_simulated_reviewer,
    list_revisions,
)
from evalkit.review.corrections import CLASSIFICATION_PARTS
from evalkit.review.ground_truth import SCHEMA_VERSION
from evalkit.store import (
    GROUND_TRUTH_FOLDER,
    REVIEWS_FOLDER,
    OutputFolder,
    bundle_file_name,
    ground_truth_file_name,
    open_existing_output_folder,
    parse_stored_record,
    review_file_name,
)

if TYPE_CHECKING:
    import pandas as pd

TableLevel = Literal["document", "segment", "page"]

#: One row of a ground-truth table: values by column name.
GroundTruthRow = dict[str, Any]

_LEADING_COLUMNS = {
    "doc_id": "The document's name in evalkit's output folder.",
    "sha256": "SHA-256 of the PDF's bytes, hexadecimal; null if the document's bundle cannot be read.",
    "ground_truth_source": "SME_VALIDATED: an expert agreed with the program. SME_CORRECTED: an expert corrected the "
    "program. AUTO_ACCEPTED (silver): accepted by rules, not reviewed by an expert.",
    "is_simulated": f"True if a simulated reviewer (a program whose name begins with {SIMULATED_PREFIX!r}) answered any "
    f"case of the document, for a demonstration or test.",
    "dominant_type": "The document type of the whole file.",
}
_TRAILING_COLUMNS = {
    "vouched": "The parts that the expert vouches for, separated by spaces: dominant_type, segments, mixture; and the questions "
    "that the expert answered: boundary:PAGE, segment:N, patients. Empty for silver.",
    "number_of_pages": "Number of pages of the PDF; null if the document's bundle cannot be read.",
    "reviewer": "The reviewer of the document; null for silver.",
    "reviewed_at": "Time of the review or, for silver, of acceptance: ISO 8601 in UTC.",
    "review_reason": "Why the document was reviewed: escalated, audit, sample or requested; null for silver.",
    "inclusion_probability": "Probability, 0 to 1, that the document was selected for review (for silver: could have been "
    "selected), over all draws so far; null if unknown. The sampling weight is 1 divided by it.",
    "revision": "The number of the review; 0 for silver.",
    "correction_notes": "The expert's notes on the correction.",
}
#: The columns of each level in order, each with a sentence that explains it.
COLUMNS: dict[TableLevel, dict[str, str]] = {
    "document": {
        **_LEADING_COLUMNS,
        "is_vouched": "True if an expert vouches for dominant_type.",
        "number_of_segments": "Number of segments (source documents) in the file.",
        "segments": "Pages and type of each segment: `1-5 Genomic Report; 6-8 Clinical Note`.",
        "patients_in_file": "Number of different patients named on the pages; null if the document's bundle cannot be read.",
        "pages_of_others": "Number of pages that name a different patient than most pages do; null if the document's bundle "
        "cannot be read.",
        **_TRAILING_COLUMNS,
    },
    "segment": {
        **_LEADING_COLUMNS,
        "segment_index": "The segment's number in its document, from 1.",
        "start_page": "First page, from 1.",
        "end_page": "Last page of the segment, inclusive.",
        "type": "The document type of the segment.",
        "is_vouched": "True if an expert vouches for the segments: their pages and types.",
        **_TRAILING_COLUMNS,
    },
    "page": {
        **_LEADING_COLUMNS,
        "page": "The page's number, from 1.",
        "type": "The document type of the segment that contains the page; null if no segment does.",
        "segment_index": "The number of the segment that contains the page; null if no segment does.",
        "is_vouched": "True if an expert vouches for the segments: their pages and types.",
        **_TRAILING_COLUMNS,
    },
}

#: The pandas dtypes of the columns that are not text; all others are ``string``.
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
    """Ground truth of one document, with facts about the PDF from its bundle."""

    record: GroundTruth
    sha256: str | None
    """SHA-256 of the PDF; None if the bundle cannot be read."""
    page_count: int | None
    """Number of pages of the PDF; None if the bundle cannot be read."""
    patients_in_file: int | None = None
    """Number of different patients named on the pages; None if the bundle cannot be read."""
    pages_of_others: int | None = None
    """Number of pages that name a different patient than most pages do; None if the bundle cannot be read."""
    answer_reviewers: tuple[str, ...] = ()
    """The reviewer of each answer about the document, including second opinions and adjudications."""

    @property
    def simulated_answer_count(self) -> int:
        """Number of answers about the document given by simulated reviewers (programs)."""
        return sum(map(is_simulated_reviewer, self.answer_reviewers))

    @property
    def is_simulated(self) -> bool:
        """True if a simulated reviewer (a program) gave any answer about the document."""
        return self.simulated_answer_count > 0


@dataclass(frozen=True)
class FolderGroundTruth:
    """All classification ground truth of an output folder, and reading errors."""

    documents: tuple[GroundTruthDocument, ...]
    """Documents with ground truth, sorted by file name."""
    problems: tuple[str, ...]
    """A sentence for each file that could not be read, with the file's name but none of its content."""
    reviewers: frozenset[str]
    """Names of all reviewers of any case in the folder, even without ground truth; attention checks are not counted."""


def load_ground_truth(output: Path | str, level: TableLevel = "document", *, silver: bool = False) -> pd.DataFrame:
    """Load an output folder's ground truth: a row per document, segment or page.

    ``output`` may also be a folder of FHIR Bundles that ``evalkit export --format fhir`` wrote.
    ``COLUMNS[level]`` explains the columns. ``silver`` includes AUTO_ACCEPTED records, which no expert has reviewed.
    Rows are sorted by file name, then by segment or page. A record that cannot be read is left out. If a bundle cannot
    be read, the PDF's hash and number of pages are missing, and at level ``page`` all rows of the document. If the
    record of a random draw cannot be read, inclusion probabilities that the draw may have raised are missing.
    ``frame.attrs["problems"]`` lists a sentence for each such file.
    """
    require_choice("level", level, COLUMNS)
    folder_truth = read_folder_ground_truth(output, include_silver=silver)
    rows = build_ground_truth_rows(folder_truth.documents, level)
    dtypes = {name: get_column_dtype(name) for name in COLUMNS[level]}  # fixed, even if there are no rows
    table = build_frame(rows, dtypes, output=output)
    table.attrs["problems"] = list(folder_truth.problems)
    return table


def require_choice(option: str, name: str, choices: Collection[str]) -> None:
    """Raise UsageError, listing all choices, if the option has no such choice."""
    if name not in choices:
        raise UsageError(
            f"there is no {option} {name:s}", code="EXPORT-CHOICE", remedy=f"Choose from {', '.join(choices)}."
        )


def read_folder_ground_truth(output: Path | str, *, include_silver: bool = False) -> FolderGroundTruth:
    """Read the classification ground truth of an output folder or a FHIR export.

    Records of other tasks are skipped. ``include_silver`` adds AUTO_ACCEPTED records. Files that cannot be read are
    listed in ``problems``.
    """
    problems: list[str] = []
    if (Path(output) / BUNDLES_FOLDER).is_dir():  # what `evalkit export --format fhir` wrote
        exported = [
            GroundTruthDocument(truth.record, **truth.facts)
            for truth in read_bundle_export(Path(output), problems)
            if include_silver or _has_vouched_part(truth.record)
        ]
        known_reviewers = frozenset(reviewer for truth in exported for reviewer in truth.answer_reviewers)
        return FolderGroundTruth(tuple(exported), tuple(problems), known_reviewers)
    output_folder = open_existing_output_folder(output)
    draw_probabilities = _read_draw_probabilities(output_folder, problems)
    reviews = list(_iterate_cases_reviewers_outcomes(output_folder, problems))
    reviewers_by_doc_id = group_pairs(
        (get_base_case_id(case_id), reviewer) for case_id, reviewer, outcome in reviews if outcome != "reopened"
    )
    reviewers = {reviewer for _, reviewer, _ in reviews}
    problems += _iterate_missing_truths(output_folder, {case_id: outcome for case_id, _, outcome in reviews})
    documents = []
    for file_name in output_folder.list_json_files(GROUND_TRUTH_FOLDER):
        try:
            record = _read_classification_truth(output_folder, file_name)
        except StoreError as error:
            problems.append(str(error))
            continue
        if record is None:
            continue
        answer_reviewers = reviewers_by_doc_id.get(record.doc_id, [])
        if record.reviewer and record.reviewer not in answer_reviewers:  # the record's review file is missing
            answer_reviewers = [*answer_reviewers, record.reviewer]
        reviewers.update(answer_reviewers)
        if include_silver or _has_vouched_part(record):
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


def _has_vouched_part(record: GroundTruth) -> bool:
    # Parts that nobody vouches for are silver: a record with answers to single questions only has nothing else.
    return not {*record.vouched}.isdisjoint(CLASSIFICATION_PARTS)


def _read_draw_probabilities(output_folder: OutputFolder, collected_problems: list[str]) -> Mapping[str, float] | None:
    """Read each eligible document's draw probability; None if a draw is unreadable."""
    try:
        return read_probability_by_eligible_doc_id(output_folder)
    except StoreError as error:
        collected_problems.append(str(error))
        return None


def _find_inclusion_probability(record: GroundTruth, draw_probabilities: Mapping[str, float] | None) -> float | None:
    """Return the stored inclusion probability, or the higher one of a later draw.

    None if unknown: no probability is stored, or draws cannot be read and might have raised it.
    """
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
    """Yield (case_id, reviewer, outcome) of every review except attention checks."""
    for case_id in output_folder.list_subfolder_names(REVIEWS_FOLDER):
        try:
            file_names = [review_file_name(case_id, revision) for revision in list_revisions(output_folder, case_id)]
        except StoreError:
            continue  # the folder's name is not a valid case_id
        for file_name in file_names:
            try:
                stored_review = output_folder.read_json(file_name, max_schema_version=SCHEMA_VERSION)
            except StoreError as error:
                collected_problems.append(str(error))
                continue
            if is_attention_check_review(stored_review):
                continue
            reviewer, outcome = stored_review.get("reviewer"), stored_review.get("outcome")
            if isinstance(reviewer, str) and isinstance(outcome, str):
                yield case_id, reviewer, outcome
            else:
                collected_problems.append(f"{file_name} is not a valid review record. Restore the file from a backup.")


def _iterate_missing_truths(output_folder: OutputFolder, outcome_by_case: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each reviewed case whose ground truth is missing."""
    opinion_count = Counter(map(get_base_case_id, outcome_by_case))
    present_names = {*output_folder.list_json_files(GROUND_TRUTH_FOLDER)}
    for case_id, outcome in outcome_by_case.items():
        name = ground_truth_file_name(case_id)
        if opinion_count[case_id] == 1 and outcome in ("validated", "corrected") and name not in present_names:
            yield f"{name} is missing, although the case was reviewed. `evalkit reindex` writes it again."


def _read_classification_truth(output_folder: OutputFolder, file_name: str) -> GroundTruth | None:
    stored_record = output_folder.read_json(file_name, max_schema_version=SCHEMA_VERSION)
    if "ground_truth_classification" not in stored_record:
        return None
    return parse_stored_record(GroundTruth, stored_record, file_name, "Restore the file from a backup.")


def _attach_bundle_facts(
    output_folder: OutputFolder, record: GroundTruth, collected_problems: list[str]
) -> GroundTruthDocument:
    try:
        # The JSON is used without validation: validating every word of every page would take many times as long.
        stored_bundle = output_folder.read_json(bundle_file_name(record.doc_id), max_schema_version=BUNDLE_VERSION)
    except StoreError as error:
        collected_problems.append(f"{record.doc_id!r}: {error}")
        return GroundTruthDocument(record, None, None)
    sha256, page_count = stored_bundle.get("sha256"), stored_bundle.get("total_pages")
    if isinstance(sha256, str) and isinstance(page_count, int):
        truth = GroundTruthDocument(record, sha256, page_count)
        with suppress(LookupError, TypeError, ValueError):
            persons = group_pages_by_person(read_page_facts(stored_bundle))
            truth = replace(truth, patients_in_file=len(persons), pages_of_others=count_pages_of_other_persons(persons))
        return truth
    collected_problems.append(
        f"{record.doc_id!r}: the document's bundle has no valid hash or number of pages. Run it with --fresh."
    )
    return GroundTruthDocument(record, None, None)


def build_ground_truth_rows(
    truth_documents: Iterable[GroundTruthDocument], level: TableLevel
) -> Iterator[GroundTruthRow]:
    """Yield the rows of the ground-truth table, with the columns ``COLUMNS[level]``."""
    for truth in truth_documents:
        for level_row in _ROW_ITERATORS[level](truth):
            row = {**_build_provenance_row(truth), **level_row}
            yield {name: row[name] for name in COLUMNS[level]}


def get_column_dtype(column: str) -> str:
    """Return a column's pandas dtype: ``string``, ``Int64``, ``Float64`` or ``bool``."""
    return _COLUMN_DTYPES.get(column, "string")


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
        "segments": "; ".join(
            f"{segment.start_page}-{segment.end_page} {segment.dominant_type}" for segment in segments
        ),
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
        # If no expert vouched for the segments, two may contain the same page: take the first.
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
