"""The sentence: propose → check → decide → repair → check …, or escalate to a person.

Source: specification 000, slide 8; contract rulings 1, 3, 4, 5 and 7. At most three rounds of verification; a repair
asks no model again.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from pydantic import ValidationError

from evalkit.classification.autofix import AutoFixEngine, Repair
from evalkit.classification.findings import Findings, Verifier, added, agent_failed, is_failure
from evalkit.classification.merged_verifier import MergedVerifier
from evalkit.classification.primary_classifier import PrimaryClassifier
from evalkit.classification.result import Attempt, UsageReport, UsageTotal
from evalkit.classification.schema import ClassificationOutput
from evalkit.classification.v1_schema import V1SchemaValidator
from evalkit.classification.v2_consistency import V2ConsistencyChecker
from evalkit.classification.v3_traps import V3TrapDetector
from evalkit.classification.v4_evidence_quality import V4EvidenceQualityAssessor, quality_score
from evalkit.classification.v5_arbiter import Decision, V5DecisionMaker, Verdict
from evalkit.classification.windows import faults, joined, windows
from evalkit.documents.bundle import DocumentBundle
from evalkit.issue import Issue, IssueSeverity, numbered
from evalkit.llm.embedded import EmbeddedModel
from evalkit.llm.model import A, Answer, Model, Question, Usage
from evalkit.store import canonical

MAX_RETRIES = 2
"""Rounds after the first."""

ON_RETRIES = "the repairs did not settle it in three attempts"
ON_CYCLE = "a repair changed nothing"


@dataclass(frozen=True)
class Unparseable:
    """A supplied classification that is not even JSON."""

    reason: str
    """In words that quote nothing of it."""


@dataclass(frozen=True)
class Outcome:
    """All that came of one document."""

    verdict: Verdict
    classification: ClassificationOutput | None
    issues: tuple[Issue, ...]
    """The last attempt's, and earlier ones that were repaired."""
    attempts: tuple[Attempt, ...]
    evidence_quality_score: float | None
    grounded_ratio: float | None
    usage: UsageReport
    unanswered: tuple[str, ...] = ()
    """Verifiers that could not answer about the last attempt, also where that is to be ignored."""


class RetryOrchestrator:
    """Runs the pipeline on one document after another; keeps nothing between them."""

    def __init__(
        self,
        model: Model | None = None,
        *,
        lossless_repair: bool = False,
        on_agent_failure: Literal["escalate", "ignore"] = "escalate",
        profile: Literal["full", "lean"] = "full",
        window: int | None = None,
        autofix: AutoFixEngine | None = None,
        v3: V3TrapDetector | None = None,
        observing: bool = True,
    ) -> None:
        """``profile``: V2, V3 and V4 ask for themselves, or all in one question.

        ``window``: so many characters of a document are asked about at once; None: all of it. ``observing``: what the
        verifiers compute from the text is raised beside what the model says; without it a challenge shows what the
        model sees by itself.
        """
        self._model = model or EmbeddedModel()
        self._profile = profile
        self._window = window
        self._observing = observing
        self._lossless_repair = lossless_repair
        self._on_agent_failure = on_agent_failure
        self._classifier = PrimaryClassifier()
        self._v1 = V1SchemaValidator()
        self._v2 = V2ConsistencyChecker()
        self._v3 = v3 or V3TrapDetector()
        self._v4 = V4EvidenceQualityAssessor()
        self._verifiers: tuple[Verifier, ...] = (self._v2, self._v3, self._v4)
        self._merged = MergedVerifier(self._verifiers)
        self._v5 = V5DecisionMaker()
        self._autofix = autofix or AutoFixEngine()

    async def evaluate(self, bundle: DocumentBundle, supplied: Any = None) -> Outcome:
        """Classify and verify a document.

        ``supplied`` is the JSON value of a classification that another system made, or :class:`Unparseable`; without
        it the model is asked.
        """
        asked = _Asked(self._model)
        issues = _Register()
        read = issues.enter(numbered("reader", reader_issues(bundle)))
        if not bundle.has_text:
            return self._ended(None, read, (), asked)
        answer, found = await self._propose(bundle, supplied, asked)
        read += issues.enter(found)
        if answer is None:
            return self._ended(None, read, (), asked)
        return await self._rounds(bundle, answer, read, issues, asked)

    async def _propose(
        self, bundle: DocumentBundle, supplied: Any, asked: _Asked
    ) -> tuple[ClassificationOutput | None, list[Issue]]:
        """The classification, if there is one, and what is wrong with the way in which it came."""
        if isinstance(supplied, Unparseable):
            return None, [unparseable(supplied.reason)]
        if supplied is not None:
            try:
                return ClassificationOutput.model_validate(supplied), []
            except ValidationError as error:
                return None, [unparseable(_first_fault(error))]
        parts = windows(bundle, self._window)
        given = await asked.ask_all(self._classifier.question(bundle, pages) for pages in parts)
        answers = [answer.value for answer in given if answer.value is not None]
        if len(answers) == len(given):
            told = list(zip(parts, answers, strict=True))
            return joined(told), faults(bundle, told)
        failed = next(answer for answer in given if answer.value is None)
        if failed.unparseable:
            return None, [unparseable(failed.failure or "it is not JSON")]
        return None, numbered("classifier", [agent_failed("classifier", failed.failure)])

    async def _rounds(
        self,
        bundle: DocumentBundle,
        answer: ClassificationOutput,
        read: list[Issue],
        register: _Register,
        asked: _Asked,
    ) -> Outcome:
        attempts: list[Attempt] = []
        repaired: list[Issue] = []
        while True:
            repairs: list[Repair] = []
            if self._lossless_repair:
                answer, mended, repairs = self._repair_blockers(bundle, answer, register)
                repaired += mended
            v4, ratio = self._v4.grounded(answer, bundle)
            found = [*read, *register.enter(await self._verify(bundle, answer, v4.issues, asked))]
            verdict = self._v5.decide(found)
            attempts.append(_attempt(len(attempts), verdict, answer, found, repairs))
            if verdict.decision is not Decision.AUTO_RETRY:
                break
            if len(attempts) > MAX_RETRIES:
                verdict = replace(verdict, decision=Decision.ESCALATE_TO_SME, rule="retries", reason=ON_RETRIES)
                break
            changed, done = self._autofix.apply(answer, found)
            if fingerprint(changed) in {attempt.fingerprint for attempt in attempts}:
                verdict = replace(verdict, decision=Decision.ESCALATE_TO_SME, rule="cycle", reason=ON_CYCLE)
                break
            attempts[-1] = attempts[-1].model_copy(update={"repairs": (*attempts[-1].repairs, *done)})
            mended_ids = {repair.issue_id for repair in done}
            repaired += [
                issue.model_copy(update={"status": "repaired"}) for issue in found if issue.issue_id in mended_ids
            ]
            answer = changed
        still_open = {issue.issue_id for issue in found}
        kept = [*found, *(issue for issue in repaired if issue.issue_id not in still_open)]
        return self._ended(answer, kept, tuple(attempts), asked, verdict, ratio)

    def _repair_blockers(
        self, bundle: DocumentBundle, answer: ClassificationOutput, register: _Register
    ) -> tuple[ClassificationOutput, list[Issue], list[Repair]]:
        """Mend what can be mended without loss, so that the arbiter does not count it."""
        blockers = [
            issue
            for issue in register.enter(self._v1.validate(answer, bundle))
            if issue.severity is IssueSeverity.BLOCKER and issue.auto_fixable
        ]
        changed, done = self._autofix.apply(answer, blockers)
        return changed, [issue.model_copy(update={"status": "repaired"}) for issue in blockers], done

    async def _verify(
        self, bundle: DocumentBundle, answer: ClassificationOutput, v4: list[Issue], asked: _Asked
    ) -> list[Issue]:
        """All issues of one round; whatever is computed is raised always, that of V4 was before."""
        asked.unanswered = frozenset()
        v1 = self._v1.validate(answer, bundle)
        v2 = self._v2.validate(answer, bundle)
        v3 = self._v3.validate(answer, bundle)
        whole = [verifier.questions(answer, bundle, (1, bundle.total_pages)) for verifier in self._verifiers]
        observed = [
            issue
            for verifier, questions in zip(self._verifiers, whole, strict=True)
            for issue in (verifier.observed(questions) if self._observing else ())
        ]
        said = [] if _has_blocker(v1) else await self._said(bundle, answer, whole, asked, is_sound=not _has_blocker(v2))
        computed = [*v1, *v2, *v3, *v4, *observed]
        asked.unanswered |= {issue.agent for issue in computed if is_failure(issue)}
        return [*computed, *added(computed, said)]

    async def _said(
        self,
        bundle: DocumentBundle,
        answer: ClassificationOutput,
        whole: Sequence[list[Question[Findings]]],
        asked: _Asked,
        *,
        is_sound: bool,
    ) -> list[Issue]:
        """What the verifiers' models say; V2's is not asked about an answer that is not sound, nor the merged one.

        ``whole``: each verifier's questions about all pages.
        """
        parts = windows(bundle, self._window)
        if self._profile == "lean":
            if not is_sound:
                return []
            merged = await asked.ask_all(self._merged.question(answer, bundle, pages) for pages in parts)
            return self._heeded(self._merged.read(merged), asked)

        def questions(verifier: Verifier, about_all: list[Question[Findings]]) -> list[Question[Findings]]:
            if len(parts) == 1:
                return about_all
            return [one for pages in parts for one in verifier.questions(answer, bundle, pages)]

        rows = list(zip(self._verifiers, whole, strict=True))[0 if is_sound else 1 :]
        answers = await asyncio.gather(*(asked.ask_all(questions(*row)) for row in rows))
        opinions = [verifier.read(given) for (verifier, _), given in zip(rows, answers, strict=True)]
        return self._heeded([issue for opinion in opinions for issue in opinion], asked)

    def _heeded(self, opinions: Sequence[Issue], asked: _Asked) -> list[Issue]:
        """The opinions that count: with ``on_agent_failure = "ignore"`` a verifier's failure does not, but is kept in mind."""
        asked.unanswered |= {issue.agent for issue in opinions if is_failure(issue)}
        ignore = self._on_agent_failure == "ignore"
        return [issue for issue in opinions if not (ignore and is_failure(issue))]

    def _ended(
        self,
        answer: ClassificationOutput | None,
        issues: Sequence[Issue],
        attempts: tuple[Attempt, ...],
        asked: _Asked,
        verdict: Verdict | None = None,
        grounded_ratio: float | None = None,
    ) -> Outcome:
        v4 = [issue for issue in issues if issue.agent == "V4" and issue.status == "open"]
        unknown = answer is None or any(issue.code == "V4-AGENT-FAILED" for issue in v4)
        return Outcome(
            verdict=verdict or self._v5.decide(issues),
            classification=answer,
            issues=tuple(issues),
            attempts=attempts,
            evidence_quality_score=None if unknown else quality_score(v4),
            grounded_ratio=grounded_ratio,
            usage=asked.usage(),
            unanswered=tuple(sorted(asked.unanswered)),
        )


class _Asked:
    """The questions of one document: equal ones are asked once, every call is counted."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._answers: dict[tuple[str, str], Answer[Any]] = {}
        self._usage: dict[str, dict[str, Usage]] = defaultdict(dict)
        self.unanswered: frozenset[str] = frozenset()
        """The verifiers that could not answer in the last round."""

    async def ask(self, question: Question[A]) -> Answer[A]:
        key = question.role, question.prompt()
        if key not in self._answers:
            answer = await self._model.ask(question)
            self._usage[question.role][key[1]] = answer.usage
            if answer.value is None:  # a failure is never used again
                return answer
            self._answers[key] = answer
        return self._answers[key]

    async def ask_all(self, questions: Iterable[Question[A]]) -> list[Answer[A]]:
        return list(await asyncio.gather(*(self.ask(question) for question in questions)))

    def usage(self) -> UsageReport:
        by_agent = {role: UsageTotal.of(usages.values()) for role, usages in sorted(self._usage.items())}
        whole = UsageTotal.of(usage for usages in self._usage.values() for usage in usages.values())
        return UsageReport(**whole.model_dump(), by_agent=by_agent)


class _Register:
    """Gives each issue of a document one id: the same issue in two rounds keeps it, numbering runs on."""

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}
        self._last: dict[str, int] = defaultdict(int)

    def enter(self, issues: Iterable[Issue]) -> list[Issue]:
        seen: dict[str, int] = defaultdict(int)
        entered = []
        for issue in issues:
            content = issue.model_dump_json(exclude={"issue_id"})
            seen[content] += 1  # two equal issues in one round are two
            key = f"{seen[content]}:{content}"
            if key not in self._ids:
                self._last[issue.agent] += 1
                self._ids[key] = f"{issue.agent.upper()}-{self._last[issue.agent]:04d}"
            entered.append(issue.model_copy(update={"issue_id": self._ids[key]}))
        return entered


def reader_issues(bundle: DocumentBundle) -> list[Issue]:
    """What reading alone says against trusting anything about this document."""
    issues = []
    if unreadable := bundle.unreadable_pages:
        problems = dict.fromkeys(problem for number in unreadable for problem in bundle.page(number).problems)
        issues.append(
            Issue.of(
                "reader",
                "READER-NO-TEXT",
                IssueSeverity.BLOCKER,
                f"{len(unreadable)} of {bundle.total_pages} pages could not be read as text (page {_listed(unreadable)})"
                + (f". Too poor to read: {'; '.join(list(problems)[:3])}" if problems else ""),
                location="document",
                suggested_fix="Look at these pages, or send a better scan or a file with a text layer",
                page=unreadable[0],
            )
        )
    elif not bundle.has_text:
        issues.append(
            Issue.of(
                "reader",
                "READER-NO-TEXT",
                IssueSeverity.BLOCKER,
                "Every page of the document is blank",
                location="document",
                suggested_fix="Check whether the right file was sent",
                page=1,
            )
        )
    for why in dict.fromkeys(page.unread for page in bundle.pages if page.unread):
        unread = [page.page_num for page in bundle.pages if page.unread == why]
        issues.append(
            Issue.of(
                "reader",
                "READER-PICTURE",
                IssueSeverity.MAJOR,
                f"Pictures on {len(unread)} of {bundle.total_pages} pages may say more than was read "
                f"(page {_listed(unread)}): {why}",
                location="document",
                suggested_fix="Look at the pictures on these pages, or send a better scan",
                page=unread[0],
            )
        )
    if bundle.is_repaired:
        issues.append(
            Issue.of(
                "reader",
                "READER-REPAIRED",
                IssueSeverity.MAJOR,
                "The file was damaged and only opened after a repair; pages or text may be missing",
                location="document",
                suggested_fix="Compare with the original, or send the file again",
            )
        )
    return issues


def _listed(pages: Sequence[int]) -> str:
    return ", ".join(str(number) for number in pages[:20]) + (" …" if len(pages) > 20 else "")


def unparseable(fault: str) -> Issue:
    """The issue that an answer has not the shape of a classification."""
    issue = Issue.of(
        "V1",
        "V1-UNPARSEABLE",
        IssueSeverity.BLOCKER,
        f"The classification cannot be read: {fault}",
        location="classification",
        suggested_fix="Have the document classified again",
    )
    return numbered("V1", [issue])[0]


def fingerprint(answer: ClassificationOutput) -> str:
    """MD5 of everything that a repair may change, and of the boundaries and types it belongs to (ruling 7)."""
    value = {
        "number_of_segments": answer.number_of_segments,
        "dominant_type_overall": answer.dominant_type_overall,
        "segments": [
            [
                segment.segment_index,
                segment.start_page,
                segment.end_page,
                segment.segment_page_count,
                segment.dominant_type,
                [[presence.document_type, presence.segment_share] for presence in segment.segment_composition],
            ]
            for segment in answer.segments
        ],
        "mixture": [[entry.document_type, entry.overall_share] for entry in answer.document_mixture],
    }
    return hashlib.md5(canonical(value), usedforsecurity=False).hexdigest()


def _attempt(
    number: int, verdict: Verdict, answer: ClassificationOutput, found: Sequence[Issue], repairs: Sequence[Repair]
) -> Attempt:
    return Attempt(
        attempt=number,
        decision=verdict.decision,
        decision_rule=verdict.rule,
        fingerprint=fingerprint(answer),
        issues=tuple(issue.issue_id for issue in found),
        repairs=tuple(repairs),
    )


def _has_blocker(issues: Iterable[Issue]) -> bool:
    return any(issue.severity is IssueSeverity.BLOCKER for issue in issues)


def _first_fault(error: ValidationError) -> str:
    first = error.errors(include_input=False, include_url=False)[0]
    place = " → ".join(str(part) for part in first["loc"]) or "the whole"
    return f"{place}: {first['msg']}"
