"""Merged verifier: the questions of V2, V3 and V4 in one call, for fewer calls.

``--profile lean`` uses it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evalkit.classification.answer_normalisation import normalise_answer
from evalkit.classification.findings import (
    Finding,
    Findings,
    PageRange,
    VerifierName,
    build_agent_failure_issue,
    convert_findings_to_issues,
    render_verifier_prompt,
)
from evalkit.classification.schema import ClassificationOutput
from evalkit.classification.verifiers import Verifier
from evalkit.documents.bundle import DocumentBundle
from evalkit.issue import Issue, number_issues
from evalkit.llm.answer_text import NormalisedAnswer
from evalkit.llm.model import Answer, DocumentQuestion, Question

_MERGED_VERIFIERS: tuple[VerifierName, ...] = ("V2", "V3", "V4")


class MergedFinding(Finding):
    """A finding, and whose it is."""

    check: VerifierName


class MergedFindings(Findings):
    """The whole answer; an empty list says that all three looked and found nothing."""

    findings: tuple[MergedFinding, ...]


@dataclass(frozen=True)
class MergedQuestion(DocumentQuestion[MergedFindings]):
    """One question to a model in place of those of V2, V3 and V4 about these pages."""

    questions: tuple[Question[Findings], ...]
    classification: ClassificationOutput
    bundle: DocumentBundle
    pages: PageRange | None = None
    role: str = "verifier"
    answer_type: type[MergedFindings] = MergedFindings

    def render_prompt(self) -> str:
        """Render the prompt: document first, then the claims, the three tasks last."""
        return render_verifier_prompt("Merged_Verifier", self.classification, self.bundle, self.pages)

    def normalise_answer(self, text: str) -> NormalisedAnswer:
        """Normalise the model's JSON to ``MergedFindings``; a bare list is accepted."""
        return normalise_answer(text, self.answer_type)

    def offline(self) -> MergedFindings:
        """Return the findings of the rules of V2, V3 and V4, each with its verifier."""
        return MergedFindings(
            findings=tuple(
                MergedFinding.model_validate(vars(finding) | {"check": question.role})
                for question in self.questions
                for finding in question.offline().findings
            )
        )


class MergedVerifier:
    """Verifier that asks the questions of V2, V3 and V4 in one."""

    def __init__(self, verifiers: Sequence[Verifier]) -> None:
        self._verifiers = verifiers

    def build_question(
        self, classification: ClassificationOutput, bundle: DocumentBundle, pages: PageRange | None = None
    ) -> MergedQuestion:
        """Build the merged question about these pages; None: the whole document."""
        questions = (
            question for verifier in self._verifiers for question in verifier.questions(classification, bundle, pages)
        )
        return MergedQuestion(tuple(questions), classification, bundle, pages)

    def read(self, answers: Sequence[Answer[MergedFindings]]) -> list[Issue]:
        """Convert the answers to issues of V2, V3 and V4.

        A missing answer becomes a BLOCKER of each of the three, because none of their checks was made.
        """
        return [
            issue
            for check in _MERGED_VERIFIERS
            for issue in number_issues(check, _convert_answers_of_verifier(check, answers))
        ]


def _convert_answers_of_verifier(verifier: VerifierName, answers: Sequence[Answer[MergedFindings]]) -> Iterator[Issue]:
    for answer in answers:
        if answer.value is None:
            yield build_agent_failure_issue(verifier, answer.failure)
        else:
            yield from convert_findings_to_issues(
                verifier, [finding for finding in answer.value.findings if finding.check == verifier]
            )
