"""The outcome of a run: one summary for each document, and one for all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evalkit.classification.document_result import DocumentResult, Failure
from evalkit.classification.v5_arbiter import count_open_issues
from evalkit.documents.bundle import DocumentBundle
from evalkit.errors import EvalkitError
from evalkit.issue import IssueSeverity
from evalkit.llm.model import Usage
from evalkit.pipeline.batch_execution import BatchSummary
from evalkit.pipeline.document_discovery import SourceDocument, encode_path_as_text
from evalkit.pipeline.run_timings import RunTimings
from evalkit.store import open_output_folder, result_file_name

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class DocumentSummary:
    """The outcome of one document."""

    doc_id: str
    pdf_filename: str
    pages: int | None
    decision: str | None
    """AUTO_ACCEPT, ESCALATE_TO_SME; None if it failed."""
    decision_rule: str | None
    dominant_type: str | None
    blocker: int
    major: int
    minor: int
    """Open issues."""
    raised_by: tuple[str, ...]
    """The agents of the open BLOCKER and MAJOR issues."""
    attempts: int
    evidence_quality_score: float | None
    calls: int
    """This run's calls of models."""
    resumed: bool
    """True if an earlier run finished it, and nothing was done now."""
    error: str | None = None
    """The reason of its failure, and the remedy."""
    tokens: int = 0
    """Input and output of these calls."""
    cost_usd: str | None = "0"
    """Of these calls, a decimal number as text; None if a price is unknown."""
    has_unexpected_patients: bool = False
    """True if the file has several patients' documents although the setting ``patients`` allows one."""


_MANY_PATIENTS_SHARE = 0.20
"""If more files than this share are about several patients, the archive is filed so."""
_ISSUE_COLUMNS = (
    "issue_id",
    "agent",
    "severity",
    "code",
    "message",
    "location",
    "segment_index",
    "page",
    "quote",
    "verdict",
    "status",
)


@dataclass(frozen=True)
class RunSummary(BatchSummary[DocumentSummary]):
    """The outcome of a run."""

    timings: RunTimings = field(default_factory=RunTimings)
    """The seconds of this run's documents; not part of the JSON."""
    unknown_production_labels: tuple[str, ...] = ()
    """Production's words that are none of the five types, and not in ``foreign_types``."""

    def to_json(self, document_to_json: Callable[[DocumentSummary], dict[str, Any]]) -> dict[str, Any]:
        """Return the summary for a program, with production's unknown labels."""
        return super().to_json(document_to_json) | {"unknown_production_labels": list(self.unknown_production_labels)}

    @property
    def label_hint(self) -> str | None:
        """A sentence about production's unknown labels and their setting.

        None without any.
        """
        if not self.unknown_production_labels:
            return None
        words = ", ".join(map(repr, self.unknown_production_labels))
        return (
            f"Production's labels {words} are none of the five types and are not compared: map them in [foreign_types]"
        )

    @property
    def setting_hint(self) -> str | None:
        """A sentence about the setting that the run's files call for; None without any."""
        count = sum(document.has_unexpected_patients for document in self.documents)
        if count <= _MANY_PATIENTS_SHARE * len(self.documents):
            return None
        return (
            f"{count} of {len(self.documents)} files hold documents of several patients: if that is how they are filed, "
            'set patients = "several", or patients_by_folder for their folder'
        )

    def to_frame(self) -> pd.DataFrame:
        """Return one row per document, columns as the fields of :class:`DocumentSummary`."""
        import pandas as pd

        columns = list(DocumentSummary.__dataclass_fields__)
        return pd.DataFrame([vars(document) for document in self.documents], columns=columns)

    def issues_frame(self) -> pd.DataFrame:
        """Return one row per issue: doc_id and the issue's main fields."""
        import pandas as pd

        output_folder = open_output_folder(self.output)
        results = [
            output_folder.read_json(result_file_name(document.doc_id))
            for document in self.documents
            if document.decision
        ]
        rows = [{"doc_id": result["doc_id"]} | issue for result in results for issue in result["issues"]]
        return pd.DataFrame(rows, columns=["doc_id", *_ISSUE_COLUMNS])


RunProgressCallback = Callable[[DocumentSummary, int, int], None]
"""Called after each document: its summary, how many are done, how many there are."""


def summarise_result(
    result: DocumentResult, source: SourceDocument, bundle: DocumentBundle, run_usage: Usage | None
) -> DocumentSummary:
    """Summarise a result and this run's usage for it.

    ``run_usage`` is None if an earlier run finished it.
    """
    usage_of_run = run_usage or Usage()
    counts = count_open_issues(result.issues)
    answer = result.classification
    return DocumentSummary(
        doc_id=result.doc_id,
        pdf_filename=source.path.name,
        pages=bundle.total_pages,
        decision=result.decision.value,
        decision_rule=result.decision_rule,
        dominant_type=answer.dominant_type_overall if answer else None,
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
    )


def summarise_failure(
    source: SourceDocument, error: EvalkitError | Failure, *, resumed: bool = False
) -> DocumentSummary:
    """Summarise a document that could not be processed."""
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
