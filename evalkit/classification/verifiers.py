"""Interface of the verifiers, which check a classification, and their steps.

Any exception of a verifier becomes the BLOCKER ``{AGENT}-AGENT-FAILED``, because a failed check does not mean "no
issues". :class:`MergedVerifier` asks the questions of V2, V3 and V4 in one call; ``--profile lean`` uses it.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar, get_args

from evalkit.classification.findings import (
    MergedFinding,
    MergedFindings,
    PageRange,
    VerifierName,
    VerifierQuestion,
    build_agent_failure_issue,
    build_issues_from_answers,
)
from evalkit.classification.schema import ClassificationOutput
from evalkit.classification.v1_schema import V1SchemaValidator
from evalkit.classification.v2_consistency import V2ConsistencyChecker
from evalkit.classification.v3_traps import V3TrapDetector
from evalkit.classification.v4_evidence_quality import EvidenceAssessment, V4EvidenceQualityAssessor
from evalkit.documents.bundle import DocumentBundle
from evalkit.errors import UsageError
from evalkit.issue import Agent, Issue
from evalkit.llm.model import Answer, Question

log = logging.getLogger(__name__)

T = TypeVar("T")


class Verifier(Protocol):
    """Interface of a verifier, which checks a classification by rules and a model."""

    @property
    def agent(self) -> Agent:
        """Name of the verifier, with which the codes and ids of its issues begin."""

    def validate(
        self, classification: ClassificationOutput, bundle: DocumentBundle
    ) -> Sequence[Issue] | EvidenceAssessment:
        """Return the issues that rules find without a model."""

    def questions(
        self, classification: ClassificationOutput, bundle: DocumentBundle, pages: PageRange | None = None
    ) -> Sequence[Question[Any]]:
        """Return the questions to a model about these pages, by default about all pages."""

    def read(self, answers: Sequence[Answer[Any]]) -> Sequence[Issue]:
        """Convert the model's answers to issues."""


def create_shipped_verifiers(
    v2: V2ConsistencyChecker, v3: V3TrapDetector | None = None, pictured_pages: Collection[int] = ()
) -> tuple[Verifier, ...]:
    """Return V1 to V4 in this order; ``v3`` None: with evalkit's own traps.

    ``pictured_pages`` as for ``V4EvidenceQualityAssessor``.
    """
    return V1SchemaValidator(), v2, v3 or V3TrapDetector(), V4EvidenceQualityAssessor(pictured_pages)


def find_rule_issues(verifier: Verifier, answer: ClassificationOutput, bundle: DocumentBundle) -> list[Issue]:
    """Return the issues that the verifier finds without asking a language model."""
    computed = verifier.validate(answer, bundle)
    return list(computed.issues if isinstance(computed, EvidenceAssessment) else computed)


def find_offline_issues(verifier: Verifier, questions: Iterable[Question[Any]]) -> list[Issue]:
    """Answer the verifier's questions offline; return the answers as issues of rules."""
    issues = verifier.read([Answer(question, question.offline()) for question in questions])
    return [issue.model_copy(update={"origin": "rule"}) for issue in issues]


def run_step_or_build_failure(verifier: Verifier, step: Callable[[], Iterable[T]]) -> tuple[list[T], list[Issue]]:
    """Run a verifier's step: return its results, or an issue if it failed."""
    try:
        return list(step()), []
    except UsageError as error:
        return [], [build_agent_failure_issue(verifier.agent, error.message)]
    except Exception as error:  # noqa: BLE001 - it must escalate the case, not end the run
        # logged without the traceback, because its message could quote the document
        log.error("the rules of %s failed with %s", verifier.agent, type(error).__name__)  # noqa: TRY400
        return [], [build_agent_failure_issue(verifier.agent, f"computing failed ({type(error).__name__})")]


class MergedVerifier:
    """Verifier that asks a model the questions of V2, V3 and V4 in one call."""

    def __init__(self, verifiers: Sequence[Verifier]) -> None:
        self._verifiers = verifiers

    def build_question(
        self, classification: ClassificationOutput, bundle: DocumentBundle, pages: PageRange | None = None
    ) -> VerifierQuestion:
        """Build the merged question about these pages, by default about all pages."""
        questions = [
            question for verifier in self._verifiers for question in verifier.questions(classification, bundle, pages)
        ]

        def find_by_rules(*_: object) -> Iterator[MergedFinding]:
            for question in questions:
                for finding in question.offline().findings:
                    yield MergedFinding.model_validate(vars(finding) | {"check": question.role})

        return VerifierQuestion(
            "verifier", "Merged_Verifier", classification, bundle, find_by_rules, pages, answer_type=MergedFindings
        )

    def read(self, answers: Sequence[Answer[Any]]) -> list[Issue]:
        """Convert the answers to issues of V2, V3 and V4.

        A missing answer becomes a BLOCKER of each of the three, because none of their checks was made.
        """
        return [issue for check in get_args(VerifierName) for issue in build_issues_from_answers(check, answers)]
