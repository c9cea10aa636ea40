"""Study of an output folder: every processed document with its truth and reviews.

All evaluation is computed from a :class:`Study`. If a file is damaged, reading continues: the file is named in
``Study.problems`` and its document counts as unreadable, so missing data never improves a figure.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from evalkit.classification.page_risks import combine_page_risks, compute_page_risks
from evalkit.core.data_frames import TEXT, build_frame
from evalkit.core.gc_pause import pause_gc
from evalkit.core.grouping import group_pairs
from evalkit.document_types import list_type_names
from evalkit.documents.bundle import BUNDLE_SCHEMA_VERSION
from evalkit.documents.file_properties import FileProperties, describe_file
from evalkit.documents.identity.file_persons import group_pages_by_person, read_page_facts
from evalkit.documents.mupdf import MAX_PAGES
from evalkit.errors import EvalkitError, UsageError
from evalkit.evaluation.attention_outcomes import AttentionCheckOutcome, read_attention_check_outcomes
from evalkit.issue import Issue, IssueSeverity
from evalkit.pipeline.event_log import LoggedEvent, read_events
from evalkit.pipeline.purge import PurgedAnswer, read_purge_records
from evalkit.pipeline.run_history import open_run
from evalkit.pipeline.sample_draws import read_all_draws, read_probability_by_eligible_doc_id
from evalkit.pipeline.strata import STRATUM_SEPARATOR, StratumKey, build_stratum_key, describe_documents
from evalkit.pipeline.supplied_labels import (
    SuppliedLabels,
    TypedPageRange,
    format_typed_page_ranges,
    get_production_label,
    parse_typed_page_ranges,
    read_production_labels,
    read_stored_production_labels,
    read_true_labels,
    translate_production_type,
)
from evalkit.review import (
    ADJUDICATION_SUFFIX,
    SECOND_SUFFIX,
    is_attention_check_review,
    is_simulated_reviewer,
    list_revisions,
    open_index,
)
from evalkit.review.ground_truth import SCHEMA_VERSION as TRUTH_VERSION
from evalkit.review.ground_truth import SOURCE_BY_OUTCOME
from evalkit.settings import Settings
from evalkit.store import (
    EXTRACTIONS_FOLDER,
    GROUND_TRUTH_FOLDER,
    PACKETS_FOLDER,
    RESULTS_FOLDER,
    REVIEWS_FOLDER,
    TEMPLATE_REVIEWS_FOLDER,
    OutputFolder,
    bundle_file_name,
    ground_truth_file_name,
    open_existing_output_folder,
    open_output_folder,
    packet_file_name,
    result_file_name,
    review_file_name,
)

if TYPE_CHECKING:
    import pandas as pd

#: State of knowledge about a document's truth. ``reviewed``: decided by an expert or labelled in a file;
#: ``undeterminable``: an expert could not tell the type; ``pending``: waiting for review; ``unseen``: accepted and not
#: drawn for review; ``unreadable``: the document or one of its stored files could not be read.
TruthStatus = Literal["reviewed", "undeterminable", "pending", "unseen", "unreadable"]

#: Maximum number of unmatched label rows named in a warning; further ones are only counted.
_MAX_NAMED_ROWS = 5


@dataclass(frozen=True, slots=True)
class DocumentLabels:
    """Labels of a document from one source: the agent, an expert or a file of labels."""

    dominant_type: str | None
    """Type of the whole document; None if the source cannot tell."""
    segments: tuple[TypedPageRange, ...] = ()
    """(first page, last page, type) of each segment; empty if the source gives no segments."""
    presence_levels: Mapping[str, str] = field(default_factory=dict)
    """Document type → presence level in the whole document."""
    mixture_shares: Mapping[str, float] = field(default_factory=dict)
    """Document type → share of the whole document, 0..1."""
    confidence: float | None = None
    """Confidence in the dominant type, 0..1; None if the source gives none."""


@dataclass(frozen=True, slots=True)
class KnownTruth:
    """Known true labels of a document, with their source."""

    labels: DocumentLabels
    source: Literal["SME_VALIDATED", "SME_CORRECTED", "GOLD"]
    """``SME_VALIDATED`` or ``SME_CORRECTED``: an expert's review; ``GOLD``: a file of labels."""
    vouched: frozenset[str]
    """Parts known to be right (``dominant_type``, ``segments``, ``mixture``); only these may be used as truth. An answered
    question is listed too (``boundary:3``), and is no truth about the whole."""
    reviewer: str | None
    is_simulated: bool
    """True if a simulated reviewer (a program) reviewed the document."""
    review_reason: str | None
    notes: str = ""

    def is_vouched(self, part: str) -> bool:
        """Return True if an expert confirmed this part, such as ``segments``."""
        return part in self.vouched


class IssueWithVerdict(Issue):
    """Issue of a document with the experts' verdict on it."""

    expert_verdict: str | None
    """``confirmed`` or ``dismissed``; None if no expert has judged the issue."""


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
    """Seconds that the reviewer was active on the case; None if not measured."""
    is_blind: bool
    """True if the agent's answer was hidden until the reviewer had answered."""
    review_reason: str
    labels_before: DocumentLabels | None
    """The agent's labels before the review."""
    labels_after: DocumentLabels | None
    """The reviewer's labels; None if the review decided nothing."""
    vouched: frozenset[str] = frozenset()
    is_short: bool = False
    """True if the expert was asked only about the parts in doubt."""
    struck_quotes: int = 0
    """Number of quotes that the reviewer struck."""
    segment_flags: tuple[Mapping[str, Any], ...] = ()
    """The reviewer's flags on single segments, as stored: ``segment_index``, ``flag`` and optional page numbers."""
    signature_meaning: str = ""
    """What the reviewer stated by submitting; empty if the review is older than such statements."""


@dataclass(frozen=True, slots=True)
class DocumentRecord:
    """One processed document: its answer, truth, issues, reviews and cost."""

    doc_id: str
    sha256: str | None
    filename: str
    truth_status: TruthStatus
    decision: str | None
    """AUTO_ACCEPT or ESCALATE_TO_SME; None if the document could not be read."""
    decision_rule: str | None = None
    decision_reason: str = ""
    page_count: int | None = None
    agent_labels: DocumentLabels | None = None
    """The program's labels; None if it gave no usable answer."""
    source_folder: str = ""
    """Name of the folder from which the file was read; empty if unknown."""
    sender: str = ""
    """Institution that the pages name most often as the issuer of their numbers; empty if unknown."""
    language: str = ""
    """ISO 639-1 code of the language of most pages; empty if unknown."""
    page_form: str = ""
    """``text``, ``scan`` or ``text and scan``; empty if unknown."""
    patients_in_file: int | None = None
    """Number of different patients named on the pages; None if unknown."""
    pages_of_others: int | None = None
    """Number of pages that name a different patient than most pages do; None if unknown."""
    production_labels: DocumentLabels | None = None
    """The production classifier's labels; None if unknown."""
    truth: KnownTruth | None = None
    inclusion_probability: float | None = None
    """Probability (0..1) that the document is selected for review; 1 if escalated; None if unreadable or unknown."""
    review_probability: float | None = None
    """Probability (0..1) that the document has been reviewed by now: ``inclusion_probability`` times the reviewed share
    of the drawn documents in its ``weighting_cell``. 1 if a file of labels gives the truth, 0 if all of them still
    wait. So queueing further documents alone changes no figure."""
    weighting_cell: tuple[Any, ...] = ()
    """Group of accepted documents with like selection: same draws, same strata, about the same probability."""
    review_reason: str | None = None
    """Why the document is or was in the review queue; None if it never was."""
    is_answer_shown: bool = True
    """False if the experts' case shows another answer, which another run gave."""
    doubtful_parts: frozenset[str] = frozenset()
    """The parts in doubt of an escalated answer, if its case could ask only about these (``boundary:3``, ``segment:2``)."""
    asks_only_doubts: bool = False
    """True if the case asks only about these; False if it was drawn to be shown whole. Whether the rest is right is known only
    of those that were drawn: an expert who opens the whole file by choice had a reason."""
    is_deferred: bool = False
    """True if an expert opened the case and deferred it."""
    issues: tuple[IssueWithVerdict, ...] = ()
    reviews: tuple[ReviewRecord, ...] = ()
    """Reviews of the document's own case, oldest first, then those of its second opinion and of its adjudication."""
    page_risks: tuple[float, ...] = ()
    """Risk (0..1) of each page that its type or the boundary before it is wrong, computed from answer and issues."""
    risk: float = 1.0
    """Risk (0..1) that the answer is wrong anywhere, as the program states it: not calibrated on reviews."""
    stratum: StratumKey | None = None
    """Documents alike enough to share one error rate; None if unreadable."""
    run_started_at: str = ""
    """Start of the run that decided about the document (ISO 8601)."""
    decided_at: str = ""
    """Time of the decision (ISO 8601)."""
    evidence_quality_score: float | None = None
    grounded_ratio: float | None = None
    call_count: int = 0
    token_count: int = 0
    cost_usd: Decimal | None = Decimal(0)
    """Cost of the document's model calls; None if a price is unknown."""
    processing_seconds: float | None = None
    """Seconds from start to end of processing, including waiting; None if not recorded."""
    error_code: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    """Models, prompts, tables and program that gave the answer, each with its version."""

    @property
    def sampling_weight(self) -> float:
        """Number of documents that a reviewed document represents; at least 1."""
        return 1 / self.review_probability if self.review_probability else 1.0

    @property
    def has_expert_action(self) -> bool:
        """True if an expert has acted on the document, even if its truth is still unknown."""
        if self.asks_only_doubts and not _has_gold_truth(self):
            return False  # nobody acted on the answer as a whole, for which the document was not drawn
        return self.truth is not None or self.truth_status == "undeterminable" or bool(self.reviews) or self.is_deferred

    @property
    def is_accepted(self) -> bool:
        """True if the arbiter accepted the document."""
        return self.decision == "AUTO_ACCEPT"


@dataclass(frozen=True)
class Study:
    """All current documents of an output folder, by doc_id."""

    output: Path | str
    documents: tuple[DocumentRecord, ...]
    problems: tuple[str, ...]
    """A sentence for each damaged file."""
    label_warnings: tuple[str, ...] = ()
    """A sentence for each supplied label that could not be used, or only in part."""
    attention_checks: tuple[AttentionCheckOutcome, ...] = ()
    """Outcomes of cases with a deliberately wrong answer; their reviews are not part of any document's reviews."""
    events: tuple[LoggedEvent, ...] = ()
    """The folder's own decisions, oldest first: certificates, brakes, promotions."""
    run: str = ""
    """Name of the run whose answers these are; empty: the newest answers."""
    replaced_documents: tuple[DocumentRecord, ...] = ()
    """Documents whose file was exchanged for another, and what is known of purged ones. Only certificates and brakes count them: a wrong answer about a bad
    scan stays wrong when a better one arrives."""

    @property
    def folder(self) -> OutputFolder:
        """The output folder, or its state after the run that the study is about."""
        output_folder = open_output_folder(self.output)
        return open_run(output_folder, self.run) if self.run else output_folder

    @property
    def documents_ever(self) -> tuple[DocumentRecord, ...]:
        """The documents, including those whose file was replaced since."""
        return (*self.documents, *self.replaced_documents)

    @property
    def reviewed_documents(self) -> list[DocumentRecord]:
        """The documents with known truth."""
        return [document for document in self.documents if document.truth is not None]

    @property
    def reviews(self) -> list[ReviewRecord]:
        """The reviews of all documents, without attention checks."""
        return [review for document in self.documents for review in document.reviews]

    @property
    def simulated_review_count(self) -> int:
        """Number of reviews by simulated reviewers, which every figure must mention."""
        return sum(review.is_simulated for review in self.reviews)

    @cached_property
    def version_labels(self) -> Mapping[tuple[str, ...], str]:
        """Short name of each combination of reader, model and versions.

        They are ``V1``, ``V2`` … in order of use.
        """
        first_use: dict[tuple[str, ...], str] = {}
        for document in self.documents:
            if document.stratum:
                parts = document.stratum[2:]
                first_use[parts] = min(document.decided_at, first_use.get(parts, document.decided_at))
        ordered = sorted(first_use, key=lambda parts: (first_use[parts], parts))
        return {parts: f"V{number}" for number, parts in enumerate(ordered, 1)}

    def describe_stratum(self, name: str) -> str:
        """Describe a stratum in words, such as "Pathology Report from inbox, V1"."""
        versions = tuple(name.split(STRATUM_SEPARATOR)[2:])
        label = self.version_labels.get(versions, "an earlier version")
        return describe_documents(name) + (f", {label}" if versions else "")

    def versions_frame(self) -> pd.DataFrame:
        """Return a table of the combinations of reader, model and versions, by short name."""
        import pandas as pd

        rows = [(label, *parts) for parts, label in self.version_labels.items()]
        return pd.DataFrame(rows, columns=["name", "reader", "model", "all versions"])

    def to_frame(self) -> pd.DataFrame:
        """Return a table with one row per document.

        Columns: ``doc_id``, ``filename``, ``pages``, ``standing`` (truth status), ``decision``, ``agent`` (the
        program's type) with its ``confidence`` and ``segments``, ``patients_in_file``, ``pages_of_others``, ``production`` (that
        classifier's type), ``truth`` (the true type) and its ``source``, ``blocker``, ``major`` and ``minor`` (number
        of open issues), ``grounded_ratio``, ``probability`` (that the document has been reviewed by now), ``seconds``,
        ``cost_usd``.
        """
        return build_frame(map(_build_frame_row, self.documents), _DTYPE_BY_COLUMN, output=self.output)


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
        "segments": format_typed_page_ranges(document.agent_labels.segments) if document.agent_labels else None,
        "patients_in_file": document.patients_in_file,
        "pages_of_others": document.pages_of_others,
        "production": document.production_labels.dominant_type if document.production_labels else None,
        "truth": document.truth.labels.dominant_type if document.truth else None,
        "source": document.truth.source if document.truth else None,
        **{severity.lower(): open_issues[severity] for severity in IssueSeverity},
        "grounded_ratio": document.grounded_ratio,
        "probability": document.review_probability,
        "seconds": document.processing_seconds,
        "cost_usd": None if document.cost_usd is None else float(document.cost_usd),
    }


_DTYPE_BY_COLUMN = {
    **dict.fromkeys(("doc_id", "filename"), TEXT),
    "pages": "Int64",
    **dict.fromkeys(("standing", "decision", "agent"), TEXT),
    "confidence": "Float64",
    "segments": TEXT,
    **dict.fromkeys(("patients_in_file", "pages_of_others"), "Int64"),
    **dict.fromkeys(("production", "truth", "source"), TEXT),
    **dict.fromkeys(("blocker", "major", "minor"), "Int64"),
    **dict.fromkeys(("grounded_ratio", "probability", "seconds", "cost_usd"), "Float64"),
}


def read_study(
    output: Path | str,
    *,
    truth: Path | str | None = None,
    production: Path | str | None = None,
    foreign_types: Mapping[str, str] | None = None,
    settings: Settings | None = None,
) -> Study:
    """Read all processed documents of an output folder, with truths and reviews.

    Args:
        output: the output folder of a run.
        truth: CSV or JSON file of labels known to be right (``doc_id`` or ``filename``, ``dominant_type``, optional
            ``segments`` as ``1-5 Genomic Report; 6-8 Clinical Note``). For the documents in this file, the labels
            replace the truth from reviews.
        production: CSV or JSON file of the production classifier's labels, which replace labels given to the run.
        foreign_types: label of the production classifier → one of the five document types.
        settings: settings to use instead of the environment and ``evalkit.toml``; only the database is read from them.

    Raises:
        UsageError: the folder or a file of labels is missing or unreadable, or ``foreign_types`` maps a label to an
            unknown type.
        StoreError: a draw, an event, ``production_labels.json`` or the index is damaged; these files concern all
            documents.
    """
    output_folder = open_existing_output_folder(output, (settings or Settings.load()).database)
    return read_folder_study(output_folder, truth=truth, production=production, foreign_types=foreign_types)


def read_folder_study(
    output_folder: OutputFolder,
    *,
    truth: Path | str | None = None,
    production: Path | str | None = None,
    foreign_types: Mapping[str, str] | None = None,
) -> Study:
    """Read all processed documents of an open output folder; see ``read_study``."""
    if not any(map(output_folder.has_folder, (RESULTS_FOLDER, EXTRACTIONS_FOLDER, TEMPLATE_REVIEWS_FOLDER))):
        raise UsageError(
            f"{output_folder.root} holds no results",
            code="OUTPUT-FOLDER",
            remedy="Give the output folder of an `evalkit run`, `evalkit extract` or `evalkit review-template`, or a run that "
            "`evalkit runs` lists.",
        )
    for foreign_label, type_name in (foreign_types or {}).items():
        if type_name not in list_type_names():
            raise UsageError(
                f"[foreign_types] maps the label {foreign_label!r} to {type_name!r}, which is not a document type",
                code="FOREIGN-TYPES",
                remedy=f"Map this label to one of {', '.join(list_type_names())}.",
            )
    reader = _StudyReader(output_folder, dict(foreign_types or {}))
    reader.load_label_files(truth, production)
    with pause_gc():  # which would look at all documents read so far again and again
        documents, replaced_documents = (
            [*map(reader.read_document_or_report_problem, reader.iterate_doc_ids(replaced=replaced))]
            for replaced in (False, True)
        )
    reader.warn_about_unmatched_labels(documents)
    attention_checks = tuple(read_attention_check_outcomes(reader.output_folder, reader.problems))
    sources = {document.stratum.source for document in (*documents, *replaced_documents) if document.stratum}
    purged_documents = _restore_purged_documents(
        output_folder, {hash_source_folder(source): source for source in sources}
    )
    present_answers = {(document.sha256, document.decided_at) for document in (*documents, *replaced_documents)}
    replaced_documents += [
        document for document in purged_documents if (document.sha256, document.decided_at) not in present_answers
    ]
    return Study(
        output_folder.root,
        tuple(add_review_probabilities(documents)),
        tuple(reader.problems),
        tuple(dict.fromkeys(reader.label_warnings)),
        attention_checks,
        tuple(read_events(output_folder)),
        replaced_documents=tuple(replaced_documents),
    )


def hash_source_folder(source: str) -> str:
    """Hash the name of a source folder, which may be a patient's name."""
    return hashlib.sha256(source.encode("utf-8", "surrogateescape")).hexdigest()


def read_documents_for_purge(output_folder: OutputFolder) -> Callable[[str], DocumentRecord | None]:
    """Return a function that reads a document's record, or None without result."""
    reader = _StudyReader(output_folder, {})

    def read_document(doc_id: str) -> DocumentRecord | None:
        has_result = output_folder.has_file(result_file_name(doc_id))
        return reader.read_document_or_report_problem(doc_id) if has_result else None

    return read_document


def _restore_purged_documents(
    output_folder: OutputFolder, source_by_sha256: Mapping[str, str]
) -> Iterator[DocumentRecord]:
    """Yield the answers that records of purges keep, as documents without text."""
    answers: dict[tuple[str | None, str], PurgedAnswer] = {}
    for record in read_purge_records(output_folder):
        if record.answer:  # a document that was restored from a backup is purged again
            answers.setdefault((record.sha256, record.answer.decided_at), record.answer)
    for (sha256, _), answer in answers.items():
        stratum = StratumKey(*answer.stratum)
        stratum = stratum._replace(source=source_by_sha256.get(stratum.source, "a purged source"))
        right, wrong = DocumentLabels(stratum.document_type), DocumentLabels(None)
        review = ReviewRecord(
            case_id="",
            revision=1,
            reviewer="",
            is_simulated=answer.is_simulated,
            outcome="",
            submitted_at=answer.answered_at or "",
            active_seconds=None,
            is_blind=answer.audit != "unanswered",
            review_reason=answer.review_reason or "",
            labels_before=right,
            labels_after=right if answer.audit == "right" else wrong,
        )
        truth = KnownTruth(
            labels=right if answer.is_type_right else wrong,
            source="SME_VALIDATED" if answer.is_type_right else "SME_CORRECTED",
            vouched=frozenset({"dominant_type"}),
            reviewer=None,
            is_simulated=answer.is_simulated,
            review_reason=answer.review_reason,
        )
        yield DocumentRecord(
            doc_id=sha256 or "",
            sha256=sha256,
            filename="",
            truth_status="unseen" if answer.is_type_right is None else "reviewed",
            decision=answer.decision,
            agent_labels=right,
            truth=None if answer.is_type_right is None else truth,
            inclusion_probability=answer.probability,
            review_reason=answer.review_reason,
            reviews=(review,) if answer.answered_at else (),
            risk=answer.risk,
            stratum=stratum,
            run_started_at=answer.run_started_at,
            decided_at=answer.decided_at,
        )


#: What the folder's newest state says about a document, whichever run's answer is judged.
_REVIEW_FIELDS = (
    *("truth_status", "truth", "inclusion_probability", "review_probability", "weighting_cell", "review_reason"),
    *("doubtful_parts", "asks_only_doubts", "is_deferred", "reviews"),
)


def select_run(newest: Study, output_folder: OutputFolder, run: str) -> Study:
    """Replace the answers in a study by the answers that one run gave.

    Reviews, truth and the probabilities of review stay. NotFound if the folder has no such run.
    """
    newest_by_doc_id = {document.doc_id: document for document in newest.documents_ever}
    reader = _StudyReader(open_run(output_folder, run), {})
    documents = []
    for doc_id in (*reader.iterate_doc_ids(replaced=False), *reader.iterate_doc_ids(replaced=True)):
        answered, known = reader.read_document_or_report_problem(doc_id), newest_by_doc_id[doc_id]
        changes: dict[str, Any] = {name: getattr(known, name) for name in _REVIEW_FIELDS}
        if answered.truth_status == "unreadable":
            changes |= {"truth_status": "unreadable"}
        documents.append(replace(answered, production_labels=known.production_labels, **changes))
    problems = tuple(dict.fromkeys((*newest.problems, *reader.problems)))
    return replace(newest, documents=tuple(documents), problems=problems, run=run, replaced_documents=())


def add_review_probabilities(documents: Iterable[DocumentRecord]) -> list[DocumentRecord]:
    """Add to each document the probability that it has been reviewed by now.

    Among drawn documents of one ``weighting_cell``, those that still wait are assumed to be like those already
    reviewed. This is exact if all are reviewed, and nearly exact unless errors depend on remarks or names: reviewers do
    not choose the next case, but the queue shows cases with more remarks first, then sorts by name. Source: response
    weights within cells of equal probability (Little, JASA 81, 1986).
    """
    all_documents = list(documents)
    queued_documents = [
        document
        for document in all_documents
        if document.review_reason is not None and not (document.asks_only_doubts or _has_gold_truth(document))
    ]
    queued_counts = Counter(document.weighting_cell for document in queued_documents)
    handled_counts = Counter(document.weighting_cell for document in queued_documents if document.has_expert_action)

    def compute_review_probability(document: DocumentRecord) -> float | None:
        if _has_gold_truth(document):
            return 1.0
        if document.doubtful_parts and not handled_counts[document.weighting_cell]:
            return 0.0  # no whole case was answered that could stand for this one
        if (
            not document.weighting_cell
            or not document.inclusion_probability
            or not queued_counts[document.weighting_cell]
        ):
            return document.inclusion_probability
        return (
            document.inclusion_probability
            * handled_counts[document.weighting_cell]
            / queued_counts[document.weighting_cell]
        )

    return [replace(document, review_probability=compute_review_probability(document)) for document in all_documents]


def _has_gold_truth(document: DocumentRecord) -> bool:
    """Return True if the document's truth comes from a file of labels."""
    return document.truth is not None and document.truth.source == "GOLD"


def parse_classification_labels(classification: Mapping[str, Any] | None) -> DocumentLabels | None:
    """Parse a stored classification to labels; None for None.

    LookupError, TypeError or ValueError if the JSON is not a valid classification.
    """
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
    """Return the value if it has one of the allowed types and is finite.

    TypeError or ValueError otherwise: the file is damaged.
    """
    if type(value) not in allowed_types:
        raise TypeError("a stored value has an unexpected type")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("a stored number is infinite or not a number")
    return value


class _StudyReader:
    """Reader of an output folder, which collects problems and label warnings."""

    def __init__(self, output_folder: OutputFolder, foreign_types: Mapping[str, str]) -> None:
        self.output_folder = output_folder
        self.problems: list[str] = []
        self.label_warnings: list[str] = []
        self._foreign_types = foreign_types
        with open_index(output_folder, read_only=True) as index:
            self._index_rows = {row["doc_id"]: row for row in index.list_documents()}
        paths = [row["file_path"] for row in self._index_rows.values() if not row["replaced"]]
        # A rebuilt index has no rows for files that could not be read.
        self._filename_counts = Counter(Path(path).name for path in paths if path)
        self._packet_names = set(output_folder.list_json_files(PACKETS_FOLDER))
        self._ground_truth_names = set(output_folder.list_json_files(GROUND_TRUTH_FOLDER))
        self._reviewed_case_ids = set(output_folder.list_subfolder_names(REVIEWS_FOLDER))
        self._draw_probabilities = read_probability_by_eligible_doc_id(output_folder)
        self._strata_by_doc_id = _map_strata_by_doc_id(output_folder)
        self._supplied_labels: dict[str, SuppliedLabels] = {}
        self._gold_rows: Mapping[str, Mapping[str, Any]] = {}
        self._production_rows: Mapping[str, Mapping[str, Any]] = {}

    def iterate_doc_ids(self, *, replaced: bool) -> Iterator[str]:
        """Yield the doc_ids of results, either those that were replaced or the others."""
        for name in self.output_folder.list_json_files(RESULTS_FOLDER):
            doc_id = name.rpartition("/")[2].removesuffix(".json")
            if bool((self._index_rows.get(doc_id) or {}).get("replaced")) is replaced:
                yield doc_id

    def load_label_files(self, truth_path: Path | str | None, production_path: Path | str | None) -> None:
        if truth_path is not None:
            self._supplied_labels["known labels"] = read_true_labels(Path(truth_path))
            self._gold_rows = self._supplied_labels["known labels"].label_by_key
        self._production_rows = read_stored_production_labels(self.output_folder)
        if production_path is not None:
            self._supplied_labels["production labels"] = read_production_labels(Path(production_path))
            self._production_rows = {**self._production_rows, **self._supplied_labels["production labels"].label_by_key}

    def warn_about_unmatched_labels(self, documents: Iterable[DocumentRecord]) -> None:
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
                    f"{label_source} that match no document in the folder: "
                    f"{', '.join(unmatched_keys[:_MAX_NAMED_ROWS])}{remainder_text}"
                )

    def _read_json(self, name: str) -> dict[str, Any]:
        return self.output_folder.read_json(name, max_schema_version=TRUTH_VERSION)

    def read_document_or_report_problem(self, doc_id: str) -> DocumentRecord:
        """Read a document; report a damaged file and return the document as unreadable."""
        filename = Path((self._index_rows.get(doc_id) or {}).get("file_path") or f"{doc_id}.pdf").name
        try:
            return self._build_document(doc_id, filename, self._read_json(result_file_name(doc_id)))
        except EvalkitError as error:
            self.problems.append(str(error))
        except (KeyError, TypeError, AttributeError, ValueError, ArithmeticError):
            self.problems.append(f"{RESULTS_FOLDER}/{doc_id}.json or a file of this document's case is damaged")
        return self._create_unreadable_document(doc_id, filename, None, "STORE-TORN")

    def _create_unreadable_document(self, doc_id: str, filename: str, sha256: str | None, code: str) -> DocumentRecord:
        """Create the record of an unreadable document, which stays in every denominator."""
        production = self._parse_production_labels_or_warn(
            self._find_label_row_or_warn(self._production_rows, doc_id, filename)
        )
        return DocumentRecord(
            doc_id, sha256, filename, "unreadable", None, production_labels=production, error_code=code
        )

    def _build_document(self, doc_id: str, filename: str, result: Mapping[str, Any]) -> DocumentRecord:
        if "error" in result:
            sha256 = _require_type(result.get("sha256"), str, _NONE_TYPE)
            return self._create_unreadable_document(
                doc_id, filename, sha256, _require_type(result["error"]["code"], str)
            )
        gold_row = self._find_label_row_or_warn(self._gold_rows, doc_id, filename)
        packet = self._read_if_present(packet_file_name(doc_id), self._packet_names)
        reviews = list(self._iterate_reviews(doc_id))
        ground_truth = _restore_blind_answer(
            self._read_if_present(ground_truth_file_name(doc_id), self._ground_truth_names), doc_id, reviews
        )
        truth = _parse_known_label_row(gold_row) if gold_row else _parse_expert_truth(ground_truth)
        usage = result["usage"]
        agent_labels = parse_classification_labels(result["classification"])
        is_accepted = result["decision"] == "AUTO_ACCEPT"
        plan = (packet or {}).get("review_plan") or {}
        doubtful_parts = frozenset(part["part"] for part in plan.get("asked", ()))
        asks_only_doubts = bool(doubtful_parts) and not plan["is_shown_whole"]
        if truth and asks_only_doubts and truth.source != "GOLD":
            truth = replace(truth, vouched=truth.vouched - {"dominant_type", "segments", "mixture"})
        inclusion_probability = (
            self._find_inclusion_probability(doc_id, packet or ground_truth)
            if is_accepted
            else _parse_number(plan.get("shown_whole_probability", 1.0))
        )
        properties = self._read_properties(doc_id, result)
        page_ranges = (
            [(first_page, last_page) for first_page, last_page, _ in agent_labels.segments] if agent_labels else []
        )
        page_count = (
            _require_type(packet["total_pages"], int)
            if packet
            else max((last_page for _, last_page in page_ranges), default=None)
        )
        if (page_count or 0) > MAX_PAGES:
            raise ValueError("a stored number of pages is larger than a file can have")
        page_risks = tuple(compute_page_risks(result["classification"], result["issues"], page_count or 0))
        return DocumentRecord(
            doc_id=doc_id,
            **dict(properties),
            sha256=_require_type(result["sha256"], str),
            filename=filename,
            truth_status="reviewed" if truth else _determine_truth_status(packet, reviews, is_accepted=is_accepted),
            decision=_require_type(result["decision"], str),
            decision_rule=_require_type(result["decision_rule"], str),
            decision_reason=_require_type(result["decision_reason"], str),
            page_count=page_count,
            agent_labels=agent_labels,
            production_labels=self._parse_production_labels_or_warn(
                self._find_label_row_or_warn(self._production_rows, doc_id, filename)
                or (packet["production_classification"] if packet else None)
            ),
            truth=truth,
            inclusion_probability=inclusion_probability,
            weighting_cell=(
                (_group_probability(inclusion_probability), *self._strata_by_doc_id.get(doc_id, ()))
                if is_accepted
                else ("shown whole", inclusion_probability)
                if doubtful_parts
                else ()
            ),
            doubtful_parts=doubtful_parts,
            asks_only_doubts=asks_only_doubts,
            review_reason=packet["review_reason"] if packet else None,
            is_answer_shown=packet is None or packet["classification"] == result["classification"],
            is_deferred=packet is not None and packet["review_status"] == "deferred",
            issues=tuple(_attach_expert_verdicts(result["issues"], _collect_verdicts(result, packet, reviews))),
            reviews=tuple(
                _parse_review(*numbered_review, packet["review_reason"] if packet else "")
                for numbered_review in reviews
            ),
            page_risks=page_risks,
            risk=combine_page_risks(page_risks, page_ranges),
            stratum=build_stratum_key(
                document_type=agent_labels.dominant_type if agent_labels else None,
                source=properties.source_folder,
                reader=_require_type(result["reader"], str),
                model=_require_type(result["model"], str),
                versions=result["versions"],
            ),
            run_started_at=_require_type(result["times"].get("run_started_at", ""), str),
            decided_at=_require_type(result["times"].get("finished_at", ""), str),
            evidence_quality_score=_parse_number(result["evidence_quality_score"]),
            grounded_ratio=_parse_number(result["grounded_ratio"]),
            call_count=_require_type(usage["calls"], int),
            token_count=_require_type(usage["input_tokens"], int) + _require_type(usage["output_tokens"], int),
            cost_usd=None if usage["cost_usd"] is None else Decimal(usage["cost_usd"]),
            processing_seconds=_compute_elapsed_seconds(result["times"]),
            versions=_flatten_versions(json.dumps({"model": result["model"]} | result["versions"])),
        )

    def _read_properties(self, doc_id: str, result: Mapping[str, Any]) -> FileProperties:
        """Read the file's properties from the result, or else from the bundle.

        Nothing is known if the bundle is damaged.
        """
        if result.get("properties") is not None:
            return FileProperties.model_validate(result["properties"])
        try:
            bundle = self.output_folder.read_json(bundle_file_name(doc_id), max_schema_version=BUNDLE_SCHEMA_VERSION)
            pages = read_page_facts(bundle)
            return describe_file(bundle["file_path"], pages, group_pages_by_person(pages))
        except (EvalkitError, LookupError, TypeError, ValueError, AttributeError):  # the answer needs no bundle
            return FileProperties()

    def _read_if_present(self, name: str, names: AbstractSet[str]) -> dict[str, Any] | None:
        return self._read_json(name) if name in names else None

    def _iterate_reviews(self, doc_id: str) -> Iterator[tuple[str, int, dict[str, Any]]]:
        """Yield a document's (case_id, revision, review), then those of further opinions.

        An answer that was changed after the program's was shown is left out: the blind one before it counts.
        """
        for case_id in (doc_id, f"{doc_id}{SECOND_SUFFIX}", f"{doc_id}{ADJUDICATION_SUFFIX}"):
            if case_id in self._reviewed_case_ids:
                reviews = [
                    (case_id, revision, review)
                    for revision in list_revisions(self.output_folder, case_id)
                    if not is_attention_check_review(review := self._read_json(review_file_name(case_id, revision)))
                ]
                if reviews and reviews[-1][2].get("unblinded"):
                    counts = (count for count, row in enumerate(reviews, 1) if _is_blind_answer(row[2]))
                    reviews = reviews[: max(counts, default=None)]
                yield from reviews

    def _find_inclusion_probability(self, doc_id: str, stored_case: Mapping[str, Any] | None) -> float | None:
        """Return an accepted document's inclusion probability: the highest recorded one.

        None if no draw or case records one.
        """
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
            raise ValueError("a stored inclusion probability is not between 0 and 1")
        return highest_probability

    def _find_label_row_or_warn(
        self, label_rows: Mapping[str, Mapping[str, Any]], doc_id: str, filename: str
    ) -> Mapping[str, Any] | None:
        """Return the document's label row by doc_id, or by file name if that is unique."""
        if doc_id not in label_rows and filename in label_rows and self._filename_counts[filename] > 1:
            self.label_warnings.append(
                f"{self._filename_counts[filename]} documents have the file name {filename}: label them by doc_id"
            )
            return None
        return label_rows.get(doc_id) or label_rows.get(filename)

    def _parse_production_labels_or_warn(self, row: Mapping[str, Any] | None) -> DocumentLabels | None:
        """Convert a production row to labels; warn if its label is unknown.

        None without a row, or if the row's label is mapped to none of the five types.
        """
        if row is None:
            return None
        word = get_production_label(row)
        type_name = translate_production_type(word, self._foreign_types)
        if type_name is None:
            self.label_warnings.append(
                f"the production label {word!r} is none of the five types: map it to one of them in [foreign_types]"
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
                "the confidence or segments of a production label cannot be read: only its type is used"
            )
            confidence, segment_spans = None, []
        return DocumentLabels(type_name, tuple(segment_spans), confidence=confidence)


def _group_probability(probability: float | None) -> int | None:
    """Return a number that is equal for probabilities within a factor of about 1.4."""
    return round(2 * math.log2(probability)) if probability else None


def _map_strata_by_doc_id(output_folder: OutputFolder) -> dict[str, tuple[str, ...]]:
    """Map each doc_id to its strata, one for each draw that could have drawn it."""
    strata_by_doc_id = group_pairs(
        (doc_id, f"{draw_number}:{stratum.value}")
        for draw_number, draw in enumerate(read_all_draws(output_folder), 1)
        for stratum in draw.strata
        for doc_id in stratum.probability
    )
    return {doc_id: tuple(strata) for doc_id, strata in strata_by_doc_id.items()}


def _is_blind_answer(review: Mapping[str, Any]) -> bool:
    return review["after"] is not None and not review["shown"]["agent"]


def _restore_blind_answer(
    ground_truth: Mapping[str, Any] | None, doc_id: str, reviews: Sequence[tuple[str, int, Mapping[str, Any]]]
) -> Mapping[str, Any] | None:
    """Replace ground truth that was changed after unblinding by the blind answer."""
    is_adjudicated = any(case_id.endswith(ADJUDICATION_SUFFIX) for case_id, *_ in reviews)
    newest = [(revision, review) for case_id, revision, review in reviews if case_id == doc_id][-1:]
    for revision, review in newest:
        if ground_truth and ground_truth["revision"] > revision and _is_blind_answer(review) and not is_adjudicated:
            answer_fields = {name: review[name] for name in ("vouched", "reviewer", "correction_notes")}
            source = SOURCE_BY_OUTCOME[review["outcome"]]
            answer_fields |= {"ground_truth_classification": review["after"], "ground_truth_source": source}
            return {**ground_truth, **answer_fields}
    return ground_truth


def _parse_expert_truth(ground_truth: Mapping[str, Any] | None) -> KnownTruth | None:
    if ground_truth is None or ground_truth["ground_truth_source"] == "AUTO_ACCEPTED":  # silver: not reviewed
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
        is_short=review["shown"].get("form") == "short",
        struck_quotes=len(_require_type(review.get("refuted", []), list)),
        segment_flags=tuple(map(_require_valid_segment_flag, review["segment_flags"])),
        signature_meaning=review.get("signature", {}).get("meaning", ""),
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
    return KnownTruth(
        DocumentLabels(row["dominant_type"], segment_spans),
        "GOLD",
        frozenset({"dominant_type", "segments"} if segment_spans else {"dominant_type"}),
        None,
        is_simulated=False,
        review_reason=None,
    )


def _parse_number(value: Any) -> float | None:
    """Convert a stored number to float; None stays None.

    TypeError or ValueError if the value is no finite number: the file is damaged.
    """
    return None if value is None else float(_require_type(value, int, float))


def _collect_verdicts(
    result: Mapping[str, Any], packet: Mapping[str, Any] | None, reviews: Sequence[tuple[str, int, Mapping[str, Any]]]
) -> dict[str, str]:
    """Collect the newest expert verdicts by issue_id, for issues still in the result."""
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
    for issue in issues:  # ValueError if an issue is damaged
        yield IssueWithVerdict.model_validate({**issue, "expert_verdict": verdict_by_issue_id.get(issue["issue_id"])})


@lru_cache(maxsize=64)  # most documents of a run share their versions
def _flatten_versions(versions_json: str) -> Mapping[str, str]:
    """Return the versions by component.

    For example ``model``, ``model v2``, ``prompt Merged_Verifier`` or ``evalkit``.
    """
    flat_versions: dict[str, str] = {}
    for name, value in json.loads(versions_json).items():
        parts = value if isinstance(value, dict) else {"": value}
        flat_versions |= {f"{name.removesuffix('s')} {part}" if part else name: str(parts[part]) for part in parts}
    return flat_versions


def _compute_elapsed_seconds(timings: Mapping[str, Any]) -> float | None:
    try:
        started_at, finished_at = (datetime.fromisoformat(timings[name]) for name in ("started_at", "finished_at"))
    except (KeyError, ValueError):
        return None
    return (finished_at - started_at).total_seconds()
