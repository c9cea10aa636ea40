"""Study of an output folder: every processed document, the base of all evaluation.

Reading goes on where a file is damaged: the file is named in ``Study.problems`` and its document counts as unreadable,
so that nothing that is missing makes a figure better.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from evalkit.classification.page_risks import compute_page_risks
from evalkit.classification.schema import DocumentType
from evalkit.core.grouping import group_pairs
from evalkit.documents.bundle import BUNDLE_SCHEMA_VERSION
from evalkit.documents.identity.file_persons import (
    FilePerson,
    count_pages_of_other_persons,
    group_stored_pages_by_person,
)
from evalkit.errors import EvalkitError, UsageError
from evalkit.evaluation.attention_outcomes import AttentionCheckOutcome, read_attention_check_outcomes
from evalkit.issue import Issue
from evalkit.pipeline.sample_draws import read_all_draws, read_probability_by_eligible_doc_id
from evalkit.pipeline.supplied_labels import (
    SuppliedLabels,
    TypedPageRange,
    get_production_label,
    parse_typed_page_ranges,
    read_production_labels,
    read_stored_production_labels,
    read_true_labels,
    translate_production_type,
)
from evalkit.review.attention_checks import is_attention_check_review
from evalkit.review.ground_truth import SCHEMA_VERSION as TRUTH_VERSION
from evalkit.review.ground_truth import is_simulated_reviewer, list_revisions
from evalkit.review.packet import ADJUDICATION_SUFFIX, SECOND_SUFFIX
from evalkit.settings import Settings
from evalkit.store import (
    GROUND_TRUTH_FOLDER,
    PACKETS_FOLDER,
    RESULTS_FOLDER,
    REVIEWS_FOLDER,
    OutputFolder,
    OutputIndex,
    bundle_file_name,
    ground_truth_file_name,
    has_database,
    open_output_folder,
    packet_file_name,
    result_file_name,
    review_file_name,
)

if TYPE_CHECKING:
    import pandas as pd

#: What is known of a document's truth. ``unseen``: accepted and not drawn for anybody to look at.
TruthStatus = Literal["reviewed", "undeterminable", "pending", "unseen", "unreadable"]

TYPE_NAMES = tuple(kind.value for kind in DocumentType)

#: So many rows that belong to nothing are named.
_MAX_NAMED_ROWS = 5


@dataclass(frozen=True, slots=True)
class DocumentLabels:
    """Labels that a source gives a document."""

    dominant_type: str | None
    """None: cannot tell, or no usable answer."""
    segments: tuple[TypedPageRange, ...] = ()
    """First page, last page, type; empty where nothing is said of segments."""
    presence_levels: Mapping[str, str] = field(default_factory=dict)
    """Document type → presence level in the whole document."""
    mixture_shares: Mapping[str, float] = field(default_factory=dict)
    """Document type → share of the whole document, 0..1."""
    confidence: float | None = None
    """In the dominant type, 0..1."""


@dataclass(frozen=True, slots=True)
class KnownTruth:
    """Truth about a document, with its source."""

    labels: DocumentLabels
    source: Literal["SME_VALIDATED", "SME_CORRECTED", "GOLD"]
    """``GOLD``: a file of labels that was given."""
    vouched: frozenset[str]
    """Of ``dominant_type``, ``segments``, ``mixture_shares``: only these parts may be measured by."""
    reviewer: str | None
    is_simulated: bool
    """Whether a program, not a person, reviewed it."""
    review_reason: str | None
    notes: str = ""

    def is_vouched(self, part: str) -> bool:
        """Return True if that part was vouched for."""
        return part in self.vouched


class IssueWithVerdict(NamedTuple):
    """One issue, and what experts said of it."""

    issue_id: str
    code: str
    agent: str
    origin: str
    severity: str
    status: str
    page: int | None
    message: str
    verdict: str | None
    """``confirmed``, ``dismissed``, or None: no expert said anything."""
    auto_fixable: bool = False
    """Whether arithmetic could have repaired it: some rows of the arbiter's table count only such, or only others."""


@dataclass(frozen=True, slots=True)
class ReviewRecord:
    """One submitted review of one case."""

    case_id: str
    revision: int
    reviewer: str
    is_simulated: bool
    outcome: str
    submitted_at: str
    active_seconds: float | None
    """Active seconds; None where nobody measured."""
    is_blind: bool
    """Whether the agent's answer was hidden until this one was given."""
    review_reason: str
    labels_before: DocumentLabels | None
    """What the agent had said."""
    labels_after: DocumentLabels | None
    """What the reviewer says; None where nothing was decided."""
    vouched: frozenset[str] = frozenset()
    segment_flags: tuple[Mapping[str, Any], ...] = ()
    """Remarks about single segments, as the review has them: ``segment_index``, ``flag``, perhaps pages."""


@dataclass(frozen=True, slots=True)
class DocumentRecord:
    """One processed document."""

    doc_id: str
    sha256: str | None
    filename: str
    truth_status: TruthStatus
    decision: str | None
    """AUTO_ACCEPT or ESCALATE_TO_SME; None where it could not be read."""
    decision_rule: str | None = None
    decision_reason: str = ""
    page_count: int | None = None
    agent_labels: DocumentLabels | None = None
    """The pipeline's answer; None where it gave no usable one."""
    source_folder: str = ""
    """Name of the folder from which the file was read; empty where nobody knows."""
    patients_in_file: int | None = None
    """How many patients the pages name; None where nobody knows."""
    pages_of_others: int | None = None
    """How many pages name another patient than most pages do; None likewise."""
    production_labels: DocumentLabels | None = None
    """The production classifier's label; None where it is not known."""
    truth: KnownTruth | None = None
    inclusion_probability: float | None = None
    """The probability with which it was drawn, or could have been, 0..1; 1 where it was escalated; None: unreadable, or nobody knows."""
    review_probability: float | None = None
    """That of having been looked at by now: ``inclusion_probability``, times the share of those drawn alike that were; 1 where the
    truth was given, 0 where all of these still wait. So a draw by itself makes no figure better or worse."""
    weighting_cell: tuple[Any, ...] = ()
    """Documents with equal cells were drawn alike: by the same draws, from the same strata, at the same rate."""
    review_reason: str | None = None
    """Why it is or was in the queue; None where it never was."""
    is_deferred: bool = False
    """Whether an expert had it open and deferred it."""
    issues: tuple[IssueWithVerdict, ...] = ()
    reviews: tuple[ReviewRecord, ...] = ()
    """Oldest first, those of second opinions and adjudications behind the case's own."""
    page_risks: tuple[float, ...] = ()
    """Of each page, that its type or the seam before it is wrong, 0..1, as the result tells of itself."""
    evidence_quality_score: float | None = None
    grounded_ratio: float | None = None
    call_count: int = 0
    token_count: int = 0
    cost_usd: Decimal | None = Decimal(0)
    """None where nobody knows the price."""
    processing_seconds: float | None = None
    """From begin to end of its processing, waiting included."""
    error_code: str | None = None

    @property
    def sampling_weight(self) -> float:
        """Number of documents it represents where its truth is known, at least 1."""
        return 1 / self.review_probability if self.review_probability else 1.0

    @property
    def has_expert_action(self) -> bool:
        """True if an expert opened it and acted, even if its truth stays unknown."""
        return self.truth is not None or self.truth_status == "undeterminable" or bool(self.reviews) or self.is_deferred

    @property
    def is_accepted(self) -> bool:
        """True if the arbiter accepted it."""
        return self.decision == "AUTO_ACCEPT"


@dataclass(frozen=True)
class Study:
    """All processed documents of one output folder by doc_id, current versions only."""

    output: Path | str
    documents: tuple[DocumentRecord, ...]
    problems: tuple[str, ...]
    """A sentence for each damaged file."""
    label_warnings: tuple[str, ...] = ()
    """A sentence for each label that could not be used as it is."""
    attention_checks: tuple[AttentionCheckOutcome, ...] = ()
    """The cases whose shown answer is wrong on purpose: none of their reviews is an answer about a document."""

    @property
    def reviewed_documents(self) -> list[DocumentRecord]:
        """The documents whose truth is known."""
        return [document for document in self.documents if document.truth is not None]

    @property
    def reviews(self) -> list[ReviewRecord]:
        """Every review of every document."""
        return [review for document in self.documents for review in document.reviews]

    @property
    def simulated_review_count(self) -> int:
        """Number of reviews that a program made; figures based on any must say so."""
        return sum(review.is_simulated for review in self.reviews)

    def to_frame(self) -> pd.DataFrame:
        """One row per document.

        Columns: ``doc_id``, ``filename``, ``pages``, ``standing``, ``decision``, ``agent`` and ``confidence``,
        ``patients_in_file``, ``pages_of_others``, ``production``, ``truth`` and ``source`` of it, ``blocker``, ``major``, ``minor`` (open issues),
        ``grounded_ratio``, ``probability`` (of having been looked at by now), ``seconds``, ``cost_usd``.
        """
        import pandas as pd

        return pd.DataFrame([_build_frame_row(document) for document in self.documents])

    def count_truth_statuses(self) -> Counter[TruthStatus]:
        """Count the documents by truth status."""
        return Counter(document.truth_status for document in self.documents)


def _build_frame_row(document: DocumentRecord) -> dict[str, Any]:
    open_issues = Counter(issue.severity for issue in document.issues if issue.status == "open")
    return {
        "doc_id": document.doc_id,
        "filename": document.filename,
        "pages": document.page_count,
        "standing": document.truth_status,
        "decision": document.decision,
        "agent": document.agent_labels.dominant_type if document.agent_labels else None,
        "confidence": document.agent_labels.confidence if document.agent_labels else None,
        "patients_in_file": document.patients_in_file,
        "pages_of_others": document.pages_of_others,
        "production": document.production_labels.dominant_type if document.production_labels else None,
        "truth": document.truth.labels.dominant_type if document.truth else None,
        "source": document.truth.source if document.truth else None,
        **{severity.lower(): open_issues[severity] for severity in ("BLOCKER", "MAJOR", "MINOR")},
        "grounded_ratio": document.grounded_ratio,
        "probability": document.review_probability,
        "seconds": document.processing_seconds,
        "cost_usd": document.cost_usd,
    }


def read_study(
    output: Path | str,
    *,
    truth: Path | str | None = None,
    production: Path | str | None = None,
    foreign_types: Mapping[str, str] | None = None,
    settings: Settings | None = None,
) -> Study:
    """Read an output folder.

    Args:
        output: the folder of a run.
        truth: CSV or JSON with labels that are known to be right (``doc_id`` or ``filename``, ``dominant_type``,
            optional ``segments`` as ``1-5 Genomic Report; 6-8 Clinical Note``); they are the truth of all documents they name,
            before any review.
        production: CSV or JSON with the production classifier's labels, before those that a run was given.
        foreign_types: a label of the production classifier → one of the five types.
        settings: instead of the environment and ``evalkit.toml``; they name the database.

    Raises:
        UsageError: the folder, or a file of labels, is not there or not readable; a label is mapped to no type.
        StoreError: a draw, ``production_labels.json`` or the index is damaged: they are about all documents.
    """
    output_folder = open_output_folder(output, (settings or Settings.load()).database)
    return read_folder_study(output_folder, truth=truth, production=production, foreign_types=foreign_types)


def read_folder_study(
    output_folder: OutputFolder,
    *,
    truth: Path | str | None = None,
    production: Path | str | None = None,
    foreign_types: Mapping[str, str] | None = None,
) -> Study:
    """Read an output folder that is open, as ``read_study`` does."""
    if not output_folder.has_folder(RESULTS_FOLDER):
        raise UsageError(
            f"{output_folder.root} holds no results",
            code="OUTPUT-FOLDER",
            remedy="Name the output folder of an `evalkit run`.",
        )
    for foreign_label, type_name in (foreign_types or {}).items():
        if type_name not in TYPE_NAMES:
            raise UsageError(
                f"[foreign_types] maps {foreign_label!r} to {type_name!r}",
                code="FOREIGN-TYPES",
                remedy=f"Map it to one of {', '.join(TYPE_NAMES)}.",
            )
    reader = _StudyReader(output_folder, dict(foreign_types or {}))
    reader.load_label_files(truth, production)
    documents = [
        reader.read_document_or_report_problem(result_name.rpartition("/")[2].removesuffix(".json"))
        for result_name in reader.iterate_current_result_names()
    ]
    reader.warn_about_unmatched_labels(documents)
    attention_checks = tuple(read_attention_check_outcomes(reader.output_folder, reader.problems))
    return Study(
        output_folder.root,
        tuple(add_review_probabilities(documents)),
        tuple(reader.problems),
        tuple(dict.fromkeys(reader.label_warnings)),
        attention_checks,
    )


def add_review_probabilities(documents: Iterable[DocumentRecord]) -> list[DocumentRecord]:
    """Add to each document the probability of having been reviewed by now.

    Of those drawn alike, the ones that still wait are taken for like those that were looked at. That is right where all
    were, and nearly so where neither remarks nor names go with being wrong: nobody chooses the next case, but the queue
    shows those with more remarks first, then goes by name. Source: response weights within cells of equal probability (Little, JASA 81, 1986).
    """
    all_documents = list(documents)
    queued_documents = [
        document for document in all_documents if document.review_reason is not None and not _has_gold_truth(document)
    ]
    queued_counts = Counter(document.weighting_cell for document in queued_documents)
    handled_counts = Counter(document.weighting_cell for document in queued_documents if document.has_expert_action)

    def compute_review_probability(document: DocumentRecord) -> float | None:
        if _has_gold_truth(document):
            return 1.0
        if not document.is_accepted or not document.inclusion_probability or not queued_counts[document.weighting_cell]:
            return document.inclusion_probability
        return (
            document.inclusion_probability
            * handled_counts[document.weighting_cell]
            / queued_counts[document.weighting_cell]
        )

    return [replace(document, review_probability=compute_review_probability(document)) for document in all_documents]


def _has_gold_truth(document: DocumentRecord) -> bool:
    """Return True if its truth comes from a file of labels, whatever was drawn."""
    return document.truth is not None and document.truth.source == "GOLD"


def parse_classification_labels(classification: Mapping[str, Any] | None) -> DocumentLabels | None:
    """Parse a stored classification. LookupError, TypeError, ValueError if it is none."""
    if classification is None:
        return None
    dominant_type = classification["dominant_type_overall"]
    mixture_parts = [(_require_type(part["document_type"], str), part) for part in classification["document_mixture"]]
    return DocumentLabels(
        _require_type(dominant_type, str, _NONE_TYPE),
        tuple(
            (
                _require_type(part["start_page"], int),
                _require_type(part["end_page"], int),
                _require_type(part["dominant_type"], str, _NONE_TYPE),
            )
            for part in classification["segments"]
        ),
        {type_name: _require_type(part["presence_level"], str) for type_name, part in mixture_parts},
        {type_name: _require_type(part["overall_share"], int, float) for type_name, part in mixture_parts},
        next(
            (
                _require_type(part["confidence"], int, float)
                for type_name, part in mixture_parts
                if type_name == dominant_type
            ),
            None,
        ),
    )


_NONE_TYPE = type(None)


def _require_type(value: Any, *allowed_types: type) -> Any:
    """Require one of these types, and finite. TypeError, ValueError: damaged file."""
    if type(value) not in allowed_types:
        raise TypeError("a value is of another type")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("a number is none")
    return value


class _StudyReader:
    """One pass over an output folder."""

    def __init__(self, output_folder: OutputFolder, foreign_types: Mapping[str, str]) -> None:
        self.output_folder = output_folder
        self.problems: list[str] = []
        self.label_warnings: list[str] = []
        self._foreign_types = foreign_types
        self._index_rows = self._read_index_rows()
        paths = [row["file_path"] for row in self._index_rows.values() if not row["replaced"]]
        # An index that was made again has none of what could not be read.
        self._filename_counts = Counter(Path(path).name for path in paths if path)
        self._packet_names = set(output_folder.list_json_files(PACKETS_FOLDER))
        self._ground_truth_names = set(output_folder.list_json_files(GROUND_TRUTH_FOLDER))
        self._reviewed_case_ids = set(output_folder.list_subfolder_names(REVIEWS_FOLDER))
        self._draw_probabilities = read_probability_by_eligible_doc_id(output_folder)
        self._strata_by_doc_id = _map_strata_by_doc_id(output_folder)
        self._supplied_labels: dict[str, SuppliedLabels] = {}
        self._gold_rows: Mapping[str, Mapping[str, Any]] = {}
        self._production_rows: Mapping[str, Mapping[str, Any]] = {}

    def _read_index_rows(self) -> dict[str, dict[str, Any]]:
        if not has_database(self.output_folder):
            return {}
        with OutputIndex(self.output_folder) as index:
            return {row["doc_id"]: row for row in index.list_documents()}

    def iterate_current_result_names(self) -> Iterator[str]:
        """Yield the result files of documents as they are now."""
        for name in self.output_folder.list_json_files(RESULTS_FOLDER):
            row = self._index_rows.get(name.rpartition("/")[2].removesuffix(".json"))
            if not (row and row["replaced"]):
                yield name

    def load_label_files(self, truth_path: Path | str | None, production_path: Path | str | None) -> None:
        """Read the files of labels."""
        if truth_path is not None:
            self._supplied_labels["known labels"] = read_true_labels(Path(truth_path))
            self._gold_rows = self._supplied_labels["known labels"].label_by_key
        self._production_rows = read_stored_production_labels(self.output_folder)
        if production_path is not None:
            self._supplied_labels["production labels"] = read_production_labels(Path(production_path))
            self._production_rows = {**self._production_rows, **self._supplied_labels["production labels"].label_by_key}

    def warn_about_unmatched_labels(self, documents: Iterable[DocumentRecord]) -> None:
        """Say which rows of labels belong to no document."""
        all_documents = list(documents)
        for label_source, labels in self._supplied_labels.items():
            unmatched_keys = labels.find_unmatched_keys(
                (document.doc_id for document in all_documents), (document.filename for document in all_documents)
            )
            if unmatched_keys:
                remainder_text = (
                    f" and {len(unmatched_keys) - _MAX_NAMED_ROWS} more"
                    if len(unmatched_keys) > _MAX_NAMED_ROWS
                    else ""
                )
                self.label_warnings.append(
                    f"{label_source} of no document here: {', '.join(unmatched_keys[:_MAX_NAMED_ROWS])}{remainder_text}"
                )

    def _read_json(self, name: str) -> dict[str, Any]:
        return self.output_folder.read_json(name, max_schema_version=TRUTH_VERSION)

    def read_document_or_report_problem(self, doc_id: str) -> DocumentRecord:
        """One document; an unreadable one where a file of it is damaged."""
        filename = Path((self._index_rows.get(doc_id) or {}).get("file_path") or f"{doc_id}.pdf").name
        try:
            result = self._read_json(result_file_name(doc_id))
            return self._build_document(doc_id, filename, result)
        except EvalkitError as error:
            self.problems.append(str(error))
        except (KeyError, TypeError, AttributeError, ValueError, ArithmeticError):
            self.problems.append(f"{RESULTS_FOLDER}/{doc_id}.json or a file of its case does not have its shape")
        return self._create_unreadable_document(doc_id, filename, None, "STORE-TORN")

    def _create_unreadable_document(self, doc_id: str, filename: str, sha256: str | None, code: str) -> DocumentRecord:
        """Create an unreadable document: it stays in every denominator."""
        production = self._parse_production_labels_or_warn(
            self._find_label_row_or_warn(self._production_rows, doc_id, filename)
        )
        return DocumentRecord(
            doc_id, sha256, filename, "unreadable", None, production_labels=production, error_code=code
        )

    def _build_document(self, doc_id: str, filename: str, result: Mapping[str, Any]) -> DocumentRecord:
        if "error" in result:
            return self._create_unreadable_document(doc_id, filename, result.get("sha256"), result["error"]["code"])
        gold_row = self._find_label_row_or_warn(self._gold_rows, doc_id, filename)
        packet = self._read_if_present(packet_file_name(doc_id), self._packet_names)
        ground_truth = self._read_if_present(ground_truth_file_name(doc_id), self._ground_truth_names)
        truth = _parse_known_label_row(gold_row) if gold_row else _parse_expert_truth(ground_truth)
        reviews = list(self._iterate_reviews(doc_id))
        usage = result["usage"]
        agent_labels = parse_classification_labels(result["classification"])
        is_accepted = result["decision"] == "AUTO_ACCEPT"
        inclusion_probability = self._find_inclusion_probability(doc_id, packet or ground_truth) if is_accepted else 1.0
        source_folder, persons = self._read_source_and_persons(doc_id)
        page_count = _require_type(packet["total_pages"], int) if packet else _find_last_page(agent_labels)
        return DocumentRecord(
            doc_id=doc_id,
            source_folder=source_folder,
            patients_in_file=None if persons is None else len(persons),
            pages_of_others=None if persons is None else count_pages_of_other_persons(persons),
            sha256=result["sha256"],
            filename=filename,
            truth_status="reviewed" if truth else _determine_truth_status(packet, reviews, is_accepted=is_accepted),
            decision=result["decision"],
            decision_rule=result["decision_rule"],
            decision_reason=result["decision_reason"],
            page_count=page_count,
            agent_labels=agent_labels,
            production_labels=self._parse_production_labels_or_warn(
                self._find_label_row_or_warn(self._production_rows, doc_id, filename) or _get_production_row(packet)
            ),
            truth=truth,
            inclusion_probability=inclusion_probability,
            weighting_cell=(inclusion_probability, *self._strata_by_doc_id.get(doc_id, ())) if is_accepted else (),
            review_reason=packet["review_reason"] if packet else None,
            is_deferred=packet is not None and packet["review_status"] == "deferred",
            issues=tuple(_attach_expert_verdicts(result["issues"], _collect_verdicts(result, packet, reviews))),
            reviews=tuple(
                _parse_review(*numbered_review, packet["review_reason"] if packet else "")
                for numbered_review in reviews
            ),
            page_risks=tuple(compute_page_risks(result["classification"], result["issues"], page_count or 0)),
            evidence_quality_score=_parse_number(result["evidence_quality_score"]),
            grounded_ratio=_parse_number(result["grounded_ratio"]),
            call_count=_require_type(usage["calls"], int),
            token_count=_require_type(usage["input_tokens"], int) + _require_type(usage["output_tokens"], int),
            cost_usd=None if usage["cost_usd"] is None else Decimal(usage["cost_usd"]),
            processing_seconds=_compute_elapsed_seconds(result["times"]),
        )

    def _read_source_and_persons(self, doc_id: str) -> tuple[str, list[FilePerson] | None]:
        """Read the file's folder and the persons on its pages; None if unreadable."""
        try:
            stored_bundle = self.output_folder.read_json(
                bundle_file_name(doc_id), max_schema_version=BUNDLE_SCHEMA_VERSION
            )
            return Path(stored_bundle["file_path"]).parent.name, group_stored_pages_by_person(stored_bundle)
        except (EvalkitError, LookupError, TypeError, ValueError):  # no other figure needs it
            return "", None

    def _read_if_present(self, name: str, names: AbstractSet[str]) -> dict[str, Any] | None:
        return self._read_json(name) if name in names else None

    def _iterate_reviews(self, doc_id: str) -> Iterator[tuple[str, int, dict[str, Any]]]:
        """Yield the reviews of a document's cases, those of further opinions last."""
        for case_id in (doc_id, f"{doc_id}{SECOND_SUFFIX}", f"{doc_id}{ADJUDICATION_SUFFIX}"):
            if case_id in self._reviewed_case_ids:
                for revision in list_revisions(self.output_folder, case_id):
                    review = self._read_json(review_file_name(case_id, revision))
                    if not is_attention_check_review(review):
                        yield case_id, revision, review

    def _find_inclusion_probability(self, doc_id: str, stored_case: Mapping[str, Any] | None) -> float | None:
        """Find an accepted document's probability of review, by the latest draw."""
        stored_probability = _parse_number(stored_case["inclusion_probability"]) if stored_case else None
        highest_probability = max(
            (
                probability
                for probability in (stored_probability, self._draw_probabilities.get(doc_id))
                if probability is not None
            ),
            default=None,
        )
        if highest_probability is not None and not 0 <= highest_probability <= 1:
            raise ValueError("a probability is not from 0 to 1")
        return highest_probability

    def _find_label_row_or_warn(
        self, label_rows: Mapping[str, Mapping[str, Any]], doc_id: str, filename: str
    ) -> Mapping[str, Any] | None:
        """Find the document's row by doc_id, or by a file name that is unique."""
        if doc_id not in label_rows and filename in label_rows and self._filename_counts[filename] > 1:
            self.label_warnings.append(
                f"{self._filename_counts[filename]} documents are called {filename}: labels must name the doc_id"
            )
            return None
        return label_rows.get(doc_id) or label_rows.get(filename)

    def _parse_production_labels_or_warn(self, row: Mapping[str, Any] | None) -> DocumentLabels | None:
        """Parse a production row to the five types; None if its label is not mapped."""
        if row is None:
            return None
        word = get_production_label(row)
        type_name = translate_production_type(word, self._foreign_types)
        if type_name is None:
            self.label_warnings.append(
                f"production says {word!r}, which is none of the five types: map it in [foreign_types]"
            )
            return None
        try:
            confidence = None if row.get("confidence") is None else _require_type(float(row["confidence"]), float)
            segment_spans = [
                (start_page, end_page, translate_production_type(span_type, self._foreign_types))
                for start_page, end_page, span_type in parse_typed_page_ranges(row.get("segments"))
            ]
        except (TypeError, ValueError):
            self.label_warnings.append(
                "a production label has a confidence or segments that cannot be read: its type alone is used"
            )
            confidence, segment_spans = None, []
        return DocumentLabels(type_name, tuple(segment_spans), confidence=confidence)


def _map_strata_by_doc_id(output_folder: OutputFolder) -> dict[str, tuple[str, ...]]:
    """doc_id → the strata that it was in, one for each draw that could have drawn it."""
    strata_by_doc_id = group_pairs(
        (doc_id, f"{draw_number}:{stratum.value}")
        for draw_number, draw in enumerate(read_all_draws(output_folder), 1)
        for stratum in draw.strata
        for doc_id in stratum.probability
    )
    return {doc_id: tuple(strata) for doc_id, strata in strata_by_doc_id.items()}


def _parse_expert_truth(ground_truth: Mapping[str, Any] | None) -> KnownTruth | None:
    if ground_truth is None or ground_truth["ground_truth_source"] == "AUTO_ACCEPTED":  # silver: nobody looked
        return None
    labels = parse_classification_labels(ground_truth["ground_truth_classification"])
    if labels is None:
        return None
    return KnownTruth(
        labels,
        ground_truth["ground_truth_source"],
        frozenset(ground_truth["vouched"]),
        ground_truth["reviewer"],
        is_simulated_reviewer(ground_truth["reviewer"]),
        ground_truth["review_reason"],
        ground_truth["correction_notes"],
    )


def _parse_review(case_id: str, revision: int, review: Mapping[str, Any], review_reason: str) -> ReviewRecord:
    return ReviewRecord(
        case_id=case_id,
        revision=revision,
        reviewer=review["reviewer"],
        is_simulated=is_simulated_reviewer(review["reviewer"]),
        outcome=review["outcome"],
        submitted_at=review["submitted_at"],
        active_seconds=_parse_number(review["seconds_active"]),
        is_blind=not review["shown"]["agent"],
        review_reason=review_reason,
        labels_before=parse_classification_labels(review["before"]),
        labels_after=parse_classification_labels(review["after"]),
        vouched=frozenset(review["vouched"]),
        segment_flags=tuple(map(_require_valid_segment_flag, review["segment_flags"])),
    )


def _require_valid_segment_flag(flag: Any) -> Mapping[str, Any]:
    for page_key in ("start_page", "end_page"):
        _require_type(_require_type(flag, dict).get(page_key), int, _NONE_TYPE)
    return cast("Mapping[str, Any]", flag)


def _determine_truth_status(
    packet: Mapping[str, Any] | None, reviews: Sequence[tuple[str, int, Mapping[str, Any]]], *, is_accepted: bool
) -> TruthStatus:
    if reviews and reviews[-1][2]["outcome"] == "undeterminable":
        return "undeterminable"
    return "unseen" if packet is None and is_accepted else "pending"


def _parse_known_label_row(row: Mapping[str, Any]) -> KnownTruth:
    segment_spans = parse_typed_page_ranges(row.get("segments"))
    vouched = frozenset({"dominant_type", "segments"} if segment_spans else {"dominant_type"})
    return KnownTruth(
        DocumentLabels(row["dominant_type"], segment_spans),
        "GOLD",
        vouched,
        None,
        is_simulated=False,
        review_reason=None,
    )


def _get_production_row(packet: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    return packet["production_classification"] if packet else None


def _find_last_page(agent_labels: DocumentLabels | None) -> int | None:
    return max((end for _, end, _ in agent_labels.segments), default=None) if agent_labels else None


def _parse_number(value: Any) -> float | None:
    """Parse a number, None for null. TypeError, ValueError: damaged file."""
    return None if value is None else float(_require_type(value, int, float))


def _collect_verdicts(
    result: Mapping[str, Any], packet: Mapping[str, Any] | None, reviews: Sequence[tuple[str, int, Mapping[str, Any]]]
) -> dict[str, str]:
    """Collect the newest expert verdict by issue_id, for issues the result still has."""
    verdict_by_issue_id = {
        record["issue_id"]: record["verdict"] for *_, review in reviews for record in review["issue_verdicts"]
    }
    judged_identities = {_get_issue_identity(record) for record in packet["issues"]} if packet else set()
    return {
        record["issue_id"]: verdict_by_issue_id[record["issue_id"]]
        for record in result["issues"]
        if record["issue_id"] in verdict_by_issue_id and _get_issue_identity(record) in judged_identities
    }


def _get_issue_identity(issue: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(issue[name] for name in ("issue_id", "code", "page", "message"))


def _attach_expert_verdicts(
    issues: Sequence[Mapping[str, Any]], verdict_by_issue_id: Mapping[str, str]
) -> Iterator[IssueWithVerdict]:
    for issue in issues:
        Issue.model_validate(issue)  # ValueError
        yield IssueWithVerdict(
            issue["issue_id"],
            issue["code"],
            issue["agent"],
            issue["origin"],
            issue["severity"],
            issue["status"],
            issue["page"],
            issue["message"],
            verdict_by_issue_id.get(issue["issue_id"]),
            issue["auto_fixable"],
        )


def _compute_elapsed_seconds(timings: Mapping[str, Any]) -> float | None:
    try:
        started_at, finished_at = (datetime.fromisoformat(timings[name]) for name in ("started_at", "finished_at"))
    except (KeyError, ValueError):
        return None
    return (finished_at - started_at).total_seconds()
