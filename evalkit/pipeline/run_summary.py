"""Summaries of a run: one for each document, and one for the whole run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evalkit.classification.document_result import DocumentResult, Failure
from evalkit.classification.v5_arbiter import count_open_issues
from evalkit.core.data_frames import TEXT, build_frame
from evalkit.core.notebook_cards import format_card
from evalkit.core.timings import FAILED_STEP
from evalkit.core.wording import count_names, format_count
from evalkit.documents.bundle import DocumentBundle
from evalkit.errors import EvalkitError
from evalkit.issue import IssueSeverity
from evalkit.llm.model import Usage
from evalkit.pipeline.batch_execution import BatchSummary
from evalkit.pipeline.document_discovery import SourceDocument, encode_path_as_text
from evalkit.pipeline.event_log import LoggedEvent
from evalkit.pipeline.supplied_labels import format_typed_page_ranges
from evalkit.store import open_output_folder, result_file_name

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class DocumentSummary:
    """Summary of one processed document: its decision, type and issue counts."""

    doc_id: str
    pdf_filename: str
    pages: int | None
    decision: str | None
    """AUTO_ACCEPT or ESCALATE_TO_SME; None if the document failed."""
    decision_rule: str | None
    dominant_type: str | None
    blocker: int
    major: int
    minor: int
    """The number of open MINOR issues; ``blocker`` and ``major`` count the open issues of these severities."""
    raised_by: tuple[str, ...]
    """The agents of the open BLOCKER and MAJOR issues."""
    attempts: int
    evidence_quality_score: float | None
    calls: int
    """The number of calls of models in this run."""
    resumed: bool
    """True if an earlier run finished the document, so that this run did nothing."""
    error: str | None = None
    """The reason why the document failed, and the remedy; None if it did not fail."""
    tokens: int = 0
    """The input and output tokens of this run's calls."""
    cost_usd: str | None = "0"
    """The cost of this run's calls in US dollars, as decimal text; None if a price is unknown."""
    has_unexpected_patients: bool = False
    """True if the file has several patients' documents although the setting ``patients`` allows one."""
    confidence: float | None = None
    """The answer's confidence (0 to 1) in the dominant type; None if there is no answer."""
    segments: str | None = None
    """Pages and type of each segment: ``1-5 Genomic Report; 6-8 Clinical Note``; None if there is no answer."""
    seconds: float | None = None
    """Seconds that the document took when it was processed, without waiting; None if not recorded."""

    def _repr_html_(self) -> str:
        counts_text = f"{self.blocker} BLOCKER, {self.major} MAJOR, {self.minor} MINOR"
        lines = (self.error,) if self.error else (f"{self.segments}", f"open issues: {counts_text}")
        return format_card(
            f"{self.doc_id}: {self.decision or 'NOT READ'}, {self.dominant_type or 'no type'}",
            lines,
            () if self.error else ((f'evalkit.view("{self.doc_id}")', "its pages, with the evidence highlighted"),),
        )


#: If more than this share of the files are about several patients, the summary suggests the setting for such files.
_MANY_PATIENTS_SHARE = 0.20
#: Dtypes of the table's columns, by the type of the summary's field.
_DTYPE_BY_FIELD_TYPE = {
    **dict.fromkeys(("str", "str | None", "tuple[str, ...]"), TEXT),
    **dict.fromkeys(("int", "int | None"), "Int64"),
    "float | None": "Float64",
    "bool": "bool",
}
_DTYPE_BY_ISSUE_COLUMN = {
    **dict.fromkeys(("doc_id", "issue_id", "agent", "severity", "code", "message", "location"), TEXT),
    **dict.fromkeys(("segment_index", "page"), "Int64"),
    **dict.fromkeys(("quote", "verdict", "status"), TEXT),
}


#: Printed label of each step that counts, in the order of processing. ``waiting`` does not count: there are always more
#: documents than processes.
_LABEL_BY_STEP = {
    "reading": "reading",
    "recognising": "recognising",
    "asking": "models",
    "deciding": "deciding",
    "extracting": "fields",
    FAILED_STEP: "unreadable documents",
}


@dataclass
class RunTimings:
    """Seconds that documents took, by step and by document.

    Many documents are processed at once, so the sum exceeds the run's duration.
    """

    seconds_by_step: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    seconds_by_document: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def add(self, doc_id: str, seconds_by_step: Mapping[str, float]) -> None:
        """Add the seconds of a document's steps."""
        for step, seconds in seconds_by_step.items():
            if step in _LABEL_BY_STEP:
                self.seconds_by_step[step] += seconds
                self.seconds_by_document[doc_id] += seconds

    def format_timing_line(self, run_seconds: float) -> str:
        """Format a line: a run's seconds, the steps in percent, and the slowest document.

        >>> timings = RunTimings()
        >>> timings.add("a", {"waiting": 9.0, "reading": 6.0, "asking": 2.5})
        >>> timings.add("b", {"reading": 0.5, "asking": 1.0})
        >>> timings.format_timing_line(7.0)
        'Time: 7.0 s; reading 65 %, models 35 %; slowest document a 8.5 s'
        """
        total = sum(self.seconds_by_step.values())
        if not total:
            return f"Time: {run_seconds:.1f} s"
        percent_by_label = {
            label: round(100 * self.seconds_by_step[step] / total) for step, label in _LABEL_BY_STEP.items()
        }
        parts = ", ".join(f"{label} {percent} %" for label, percent in percent_by_label.items() if percent)
        slowest_id, slowest_seconds = max(self.seconds_by_document.items(), key=lambda document: document[1])
        return f"Time: {run_seconds:.1f} s; {parts}; slowest document {slowest_id} {slowest_seconds:.1f} s"


@dataclass(frozen=True)
class RunSummary(BatchSummary[DocumentSummary]):
    """Summary of a run: its documents, problems, duration and usage of models."""

    timings: RunTimings = field(default_factory=RunTimings)
    """The seconds of this run by step and document; not part of the JSON."""
    unknown_production_labels: tuple[str, ...] = ()
    """Production's labels that are none of the five types and that ``foreign_types`` does not map."""
    run: str = ""
    """Name of the run."""
    kept_classifications: str | None = None
    """Sentence that says that the run before's classifications were used; None if they were not."""
    promotion: LoggedEvent | None = None
    """Promotion of the site's own weights that were in force; None for the weights that came with evalkit."""

    def to_json(self, document_to_json: Callable[[DocumentSummary], dict[str, Any]]) -> dict[str, Any]:
        """Return the summary as JSON, with the run and production's unknown labels."""
        return super().to_json(document_to_json) | {
            "run": self.run,
            "kept_classifications": self.kept_classifications,
            "unknown_production_labels": list(self.unknown_production_labels),
        }

    @property
    def weights_note(self) -> str | None:
        """Sentence that names a site's own weights; None if evalkit's own are used."""
        if self.promotion is None:
            return None
        facts, date = self.promotion.facts, self.promotion.recorded_at[:10]
        return f"Built-in model: your own weights {facts['challenger']}, promoted on {date} by {self.promotion.recorded_by}."

    @property
    def label_hint(self) -> str | None:
        """Sentence that asks to map production's unknown labels, or None."""
        if not self.unknown_production_labels:
            return None
        words = ", ".join(map(repr, self.unknown_production_labels))
        return (
            f"Production's labels {words} are none of the five types and are not compared: map them in [foreign_types]"
        )

    @property
    def setting_hint(self) -> str | None:
        """Sentence that suggests the setting ``patients``, or None."""
        count = sum(document.has_unexpected_patients for document in self.documents)
        if count <= _MANY_PATIENTS_SHARE * len(self.documents):
            return None
        return (
            f"{count} of {len(self.documents)} files have documents of several patients: if this is intended, "
            'set patients = "several", or patients_by_folder for their folder'
        )

    @property
    def headline(self) -> str:
        """Line that counts the documents by decision."""
        resumed_count = sum(document.resumed for document in self.documents)
        resumed_note = f"; {resumed_count} were finished before" if resumed_count else ""
        counts_text = count_names([document.decision or "NOT READ" for document in self.documents])
        skipped_note = f", {format_count(len(self.skipped), 'file')} skipped" if self.skipped else ""
        return f"{format_count(len(self.documents), 'document')}: {counts_text}{resumed_note}{skipped_note}"

    def _repr_html_(self) -> str:
        return format_card(
            self.headline,
            (
                self.timings.format_timing_line(self.seconds),
                *self.list_failure_lines(),
                *filter(None, (self.weights_note, self.label_hint, self.setting_hint)),
            ),
            (
                (
                    "evalkit.show(run.to_frame())",
                    "the documents, each a link to its pages; run.issues_frame() the issues",
                ),
                (f"evalkit review --output {self.output}", "the waiting cases, for experts"),
                (f'evalkit.report("{self.output}")', "how good the decisions are"),
            ),
        )

    def to_frame(self) -> pd.DataFrame:
        """Return a table with one row per document and the fields of its summary."""
        rows = (
            vars(document)
            | {
                "raised_by": ", ".join(document.raised_by),
                "cost_usd": None if document.cost_usd is None else float(document.cost_usd),
            }
            for document in self.documents
        )
        dtypes = {
            name: _DTYPE_BY_FIELD_TYPE[str(declared.type)]
            for name, declared in DocumentSummary.__dataclass_fields__.items()
        }
        return build_frame(rows, dtypes | {"cost_usd": "Float64"}, output=self.output)

    def issues_frame(self) -> pd.DataFrame:
        """Return a table with one row per issue: its doc_id and its main fields."""
        output_folder = open_output_folder(self.output)
        results = [
            output_folder.read_json(result_file_name(document.doc_id))
            for document in self.documents
            if document.decision
        ]
        rows = ({"doc_id": result["doc_id"]} | issue for result in results for issue in result["issues"])
        return build_frame(rows, _DTYPE_BY_ISSUE_COLUMN, output=self.output)


#: Function called after each document with its summary, the number of finished documents, and the number of all.
RunProgressCallback = Callable[[DocumentSummary, int, int], None]


def summarise_result(
    result: DocumentResult, source: SourceDocument, bundle: DocumentBundle, run_usage: Usage | None
) -> DocumentSummary:
    """Build the summary of a document that has a result.

    ``run_usage`` is this run's usage of models for the document; None if an earlier run finished it.
    """
    usage_of_run = run_usage or Usage()
    counts = count_open_issues(result.issues)
    answer = result.classification
    dominant_type = answer.dominant_type_overall if answer else None
    step_seconds = result.times.get("seconds", {})
    return DocumentSummary(
        doc_id=result.doc_id,
        pdf_filename=source.path.name,
        pages=bundle.total_pages,
        decision=result.decision.value,
        decision_rule=result.decision_rule,
        dominant_type=dominant_type,
        blocker=counts.blocker,
        major=counts.major,
        minor=counts.minor,
        raised_by=tuple(
            sorted({issue.agent for issue in result.open_issues if issue.severity is not IssueSeverity.MINOR})
        ),
        attempts=len(result.attempts),
        evidence_quality_score=result.evidence_quality_score,
        calls=usage_of_run.calls,
        resumed=run_usage is None,
        tokens=usage_of_run.input_tokens + usage_of_run.output_tokens,
        cost_usd=usage_of_run.cost_usd,
        has_unexpected_patients=any(
            issue.code == "V2-PATIENT-SEVERAL" and issue.severity is IssueSeverity.MAJOR for issue in result.open_issues
        ),
        confidence=next(
            (
                entry.confidence
                for entry in (answer.document_mixture if answer else ())
                if entry.document_type == dominant_type
            ),
            None,
        ),
        segments=format_typed_page_ranges(answer.typed_page_ranges) if answer else None,
        seconds=round(sum(step_seconds.get(step, 0.0) for step in _LABEL_BY_STEP), 3) if step_seconds else None,
    )


def summarise_failure(
    source: SourceDocument, error: EvalkitError | Failure, *, resumed: bool = False
) -> DocumentSummary:
    """Build the summary of a document that could not be processed."""
    return DocumentSummary(
        doc_id=source.doc_id,
        pdf_filename=encode_path_as_text(source.path.name),
        pages=None,
        decision=None,
        decision_rule=None,
        dominant_type=None,
        blocker=0,
        major=0,
        minor=0,
        raised_by=(),
        attempts=0,
        evidence_quality_score=None,
        calls=0,
        resumed=resumed,
        error=f"{error.message}. {error.remedy}",
    )
