"""V2, V3 and V4 in one question, for those who pay by the call (``--profile lean``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from evalkit.classification.findings import (
    Finding,
    Findings,
    Pages,
    Verifier,
    VerifierName,
    agent_failed,
    issues_of,
    verifier_prompt,
)
from evalkit.classification.schema import ClassificationOutput
from evalkit.documents.bundle import DocumentBundle
from evalkit.issue import Issue, numbered
from evalkit.llm.model import Answer, DocumentQuestion, Question

_CHECKS: tuple[VerifierName, ...] = ("V2", "V3", "V4")


class MergedFinding(Finding):
    """A finding, and whose it is."""

    check: VerifierName


class MergedFindings(BaseModel):
    """The whole answer; an empty list says that all three looked and found nothing."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    findings: tuple[MergedFinding, ...]


@dataclass(frozen=True)
class MergedQuestion(DocumentQuestion[MergedFindings]):
    """What V2, V3 and V4 want to know about the same pages."""

    parts: tuple[Question[Findings], ...]
    classification: ClassificationOutput
    bundle: DocumentBundle
    pages: Pages | None = None
    role: str = "verifier"
    answer_type: type[MergedFindings] = MergedFindings

    def worded(self) -> str:
        """Document first, then the claims, the three tasks last."""
        return verifier_prompt("Merged_Verifier", self.classification, self.bundle, self.pages)

    def offline(self) -> MergedFindings:
        """What each of them says."""
        return MergedFindings(
            findings=tuple(
                MergedFinding.model_validate(vars(finding) | {"check": part.role})
                for part in self.parts
                for finding in part.offline().findings
            )
        )


class MergedVerifier:
    """Asks for all three."""

    def __init__(self, verifiers: Sequence[Verifier]) -> None:
        self._verifiers = verifiers

    def question(
        self, classification: ClassificationOutput, bundle: DocumentBundle, pages: Pages | None = None
    ) -> MergedQuestion:
        """The one question, of the whole document or of these pages."""
        parts = (part for verifier in self._verifiers for part in verifier.questions(classification, bundle, pages))
        return MergedQuestion(tuple(parts), classification, bundle, pages)

    def read(self, answers: Sequence[Answer[MergedFindings]]) -> list[Issue]:
        """The answers as issues of V2, V3 and V4; a missing answer is a BLOCKER of each: none of them was done."""
        return [issue for check in _CHECKS for issue in numbered(check, _issues(check, answers))]


def _issues(check: VerifierName, answers: Sequence[Answer[MergedFindings]]) -> Iterator[Issue]:
    for answer in answers:
        if answer.value is None:
            yield agent_failed(check, answer.failure)
        else:
            yield from issues_of(check, [finding for finding in answer.value.findings if finding.check == check])
