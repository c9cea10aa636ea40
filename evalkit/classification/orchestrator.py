"""Control of a document's checks: classify, verify, repair, decide.

Source: specification 000, slide 8; contract rulings 1, 3, 4, 5 and 7. At most three rounds of verification. A repair
changes no question, so no model is asked again after a repair.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pydantic import ValidationError

from evalkit.classification.autofix import AutoFixEngine, Repair
from evalkit.classification.document_result import Attempt, UsageReport, UsageTotal
from evalkit.classification.findings import (
    VerifierQuestion,
    build_agent_failure_issue,
    drop_model_issues_covered_by_rules,
    is_agent_failure_issue,
)
from evalkit.classification.offline.model_weights import get_site_weights, load_embedded_weights, use_site_weights
from evalkit.classification.page_windows import find_issues_within_windows, join_window_answers, split_into_windows
from evalkit.classification.patient_check import ANY_PATIENT, PATIENT_CODES, PatientExpectation
from evalkit.classification.primary_classifier import ClassifierQuestion
from evalkit.classification.schema import ClassificationOutput
from evalkit.classification.supplied_classification import normalise_classification
from evalkit.classification.v1_schema import V1SchemaValidator
from evalkit.classification.v2_consistency import V2ConsistencyChecker, find_share_sum_issues
from evalkit.classification.v3_traps import V3TrapDetector
from evalkit.classification.v4_evidence_quality import (
    compute_grounded_ratio,
    score_evidence,
)
from evalkit.classification.v5_arbiter import Decision, V5DecisionMaker, Verdict
from evalkit.classification.verifiers import (
    MergedVerifier,
    Verifier,
    create_shipped_verifiers,
    find_offline_issues,
    find_rule_issues,
    run_step_or_build_failure,
)
from evalkit.core.document_cache import keep_results
from evalkit.document_types import get_own_types, use_own_types
from evalkit.documents.addressed_text import build_addressed_issues
from evalkit.documents.bundle import DocumentBundle
from evalkit.documents.language import get_language_name
from evalkit.documents.page_damage import build_damage_issues
from evalkit.issue import Issue, IssueSeverity, number_issues
from evalkit.llm.answer_normalisation import AnswerShapeError
from evalkit.llm.answer_text import AnswerTextError
from evalkit.llm.embedded import EmbeddedModel
from evalkit.llm.model import Answer, AnswerT, Model, Question, Usage
from evalkit.store import encode_canonical_json

if TYPE_CHECKING:
    from evalkit.documents.page_pictures import PageImage

T = TypeVar("T")

#: Maximum number of rounds of verification after the first.
MAX_RETRIES = 2

RETRIES_EXHAUSTED_REASON = "the repairs did not settle it in three attempts"
REPAIR_CYCLE_REASON = "a repair changed nothing"


@dataclass(frozen=True)
class UnparseableClassification:
    """A supplied classification whose file could not be parsed."""

    reason: str
    """Reason, in words that quote nothing of the file."""


@dataclass(frozen=True)
class ClassificationOutcome:
    """Outcome of classifying and verifying a document: decision, types, issues, cost."""

    verdict: Verdict
    classification: ClassificationOutput | None
    issues: tuple[Issue, ...]
    """Issues of the last attempt, and repaired issues of earlier attempts."""
    attempts: tuple[Attempt, ...]
    evidence_quality_score: float | None
    grounded_ratio: float | None
    usage: UsageReport
    unanswered: tuple[str, ...] = ()
    """Verifiers that failed in the last attempt, including failures that ``on_agent_failure = "ignore"`` leaves out."""


class RetryOrchestrator:
    """Pipeline that classifies and verifies documents independently of each other."""

    def __init__(
        self,
        model: Model | None = None,
        *,
        lossless_repair: bool = False,
        on_agent_failure: Literal["escalate", "ignore"] = "escalate",
        profile: Literal["full", "lean"] = "full",
        window_characters: int | None = None,
        autofix: AutoFixEngine | None = None,
        v3: V3TrapDetector | None = None,
        own_verifiers: Sequence[Verifier] = (),
        include_rule_findings: bool = True,
        languages: Sequence[str] = ("en",),
        seeing_roles: Collection[str] = (),
    ) -> None:
        """Set up the verifiers and the model that they ask.

        ``model`` None: the built-in model. ``lossless_repair``: repair before the first decision. ``profile``: "full" asks
        one question each for V2, V3 and V4, "lean" one for all three. ``window_characters``: maximum size of the part of a
        document that one question is about; None: the whole document. ``own_verifiers``: a site's verifiers, which run after
        V4. ``include_rule_findings`` False: only models answer the verifiers' questions, so that mutation testing can measure
        the models. ``languages``: ISO 639-1 codes of the languages that documents may be in. ``seeing_roles``: roles, in
        small letters, whose model sees pictures.
        """
        self._model = model or EmbeddedModel()
        #: Kept here, because a step on another machine does not know which weights and types are in use.
        self._site_weights = get_site_weights()
        self._own_types = get_own_types()
        self._profile = profile
        self._window_characters = window_characters
        self._include_rule_findings = include_rule_findings
        self._languages = languages
        self.seeing_roles = seeing_roles
        self._lossless_repair = lossless_repair
        self._on_agent_failure = on_agent_failure
        self._v3 = v3
        self._own_verifiers = tuple(own_verifiers)
        self._v5 = V5DecisionMaker()
        self._autofix = autofix or AutoFixEngine()

    async def evaluate(
        self,
        bundle: DocumentBundle,
        supplied: Any = None,
        patient_expectation: PatientExpectation = ANY_PATIENT,
        page_images: Sequence[PageImage] = (),
    ) -> ClassificationOutcome:
        """Classify and verify a document, and decide on the classification.

        ``supplied``: classification by another system, as text or JSON value, or :class:`UnparseableClassification`; None:
        the model classifies. ``patient_expectation``: number and identity of the patients that the file may be about.
        ``page_images``: pictures of pages for the models that see.
        """
        use_own_types(self._own_types)
        with keep_results(), use_site_weights(self._site_weights):
            question_cache = _QuestionCache(self._model, page_images, self.seeing_roles)
            issue_numbering = _IssueNumbering()
            prior_issues = issue_numbering.assign_ids(
                number_issues("reader", collect_reader_issues(bundle, self._languages))
            )
            if not bundle.has_text:
                return self._build_outcome(None, prior_issues, (), question_cache)
            answer, answer_issues = await self._obtain_classification(bundle, supplied, question_cache)
            prior_issues += issue_numbering.assign_ids(answer_issues)
            if answer is None:
                return self._build_outcome(None, prior_issues, (), question_cache)
            # the second reading is by the built-in model, so its own answer gets none
            is_embedded_answer = supplied is None and isinstance(self._model, EmbeddedModel)
            weights = load_embedded_weights()
            v2 = (
                V2ConsistencyChecker(patient_expectation, None, weights.min_probability)
                if is_embedded_answer
                else V2ConsistencyChecker(patient_expectation, weights)
            )
            verifiers = (
                *create_shipped_verifiers(v2, self._v3, question_cache.pictured_pages if supplied is None else ()),
                *self._own_verifiers,
            )
            return await self._verify_and_repair_in_rounds(
                bundle, answer, prior_issues, issue_numbering, question_cache, verifiers
            )

    async def _obtain_classification(
        self, bundle: DocumentBundle, supplied: Any, question_cache: _QuestionCache
    ) -> tuple[ClassificationOutput | None, list[Issue]]:
        if isinstance(supplied, UnparseableClassification):
            return None, [build_unparseable_issue(supplied.reason)]
        if supplied is not None:
            return _read_supplied_classification(supplied, question_cache)
        page_ranges = split_into_windows(bundle, self._window_characters)
        model_answers = await question_cache.ask_all(
            ClassifierQuestion(bundle, pages, question_cache.classifier_images) for pages in page_ranges
        )
        classifications = [answer.value for answer in model_answers if answer.value is not None]
        if len(classifications) == len(model_answers):
            window_answers = list(zip(page_ranges, classifications, strict=True))
            return join_window_answers(window_answers), find_issues_within_windows(bundle, window_answers)
        failed_answer = next(answer for answer in model_answers if answer.value is None)
        if failed_answer.is_unparseable:
            return None, [build_unparseable_issue(failed_answer.failure or "it is not JSON")]
        return None, number_issues("classifier", [build_agent_failure_issue("classifier", failed_answer.failure)])

    async def _verify_and_repair_in_rounds(
        self,
        bundle: DocumentBundle,
        answer: ClassificationOutput,
        prior_issues: list[Issue],
        issue_numbering: _IssueNumbering,
        question_cache: _QuestionCache,
        verifiers: Sequence[Verifier],
    ) -> ClassificationOutcome:
        attempts: list[Attempt] = []
        repaired_issues: list[Issue] = []
        while True:
            repairs: list[Repair] = []
            if self._lossless_repair:
                answer, repaired_early, repairs = self._repair_before_decision(bundle, answer, issue_numbering)
                repaired_issues += repaired_early
            raised_issues = [
                *prior_issues,
                *issue_numbering.assign_ids(
                    await self._collect_round_issues(bundle, answer, question_cache, verifiers)
                ),
            ]
            verdict = self._v5.decide(raised_issues)
            attempts.append(
                Attempt(
                    attempt=len(attempts),
                    decision=verdict.decision,
                    decision_rule=verdict.rule,
                    fingerprint=hash_repairable_parts(answer),
                    issues=tuple(issue.issue_id for issue in raised_issues),
                    repairs=tuple(repairs),
                    # Sorted: the verifiers answer side by side, in any order.
                    normalised=() if attempts else tuple(sorted(question_cache.changes)),
                )
            )
            if verdict.decision is not Decision.AUTO_RETRY:
                break
            if len(attempts) > MAX_RETRIES:
                verdict = replace(
                    verdict, decision=Decision.ESCALATE_TO_SME, rule="retries", reason=RETRIES_EXHAUSTED_REASON
                )
                break
            repaired_answer, applied_repairs = self._autofix.apply(answer, raised_issues)
            if hash_repairable_parts(repaired_answer) in {attempt.fingerprint for attempt in attempts}:
                verdict = replace(verdict, decision=Decision.ESCALATE_TO_SME, rule="cycle", reason=REPAIR_CYCLE_REASON)
                break
            attempts[-1] = attempts[-1].model_copy(update={"repairs": (*attempts[-1].repairs, *applied_repairs)})
            repaired_ids = {repair.issue_id for repair in applied_repairs}
            repaired_issues += [
                issue.model_copy(update={"status": "repaired"})
                for issue in raised_issues
                if issue.issue_id in repaired_ids
            ]
            answer = repaired_answer
        open_ids = {issue.issue_id for issue in raised_issues}
        final_issues = [*raised_issues, *(issue for issue in repaired_issues if issue.issue_id not in open_ids)]
        return self._build_outcome(answer, final_issues, tuple(attempts), question_cache, verdict)

    def _repair_before_decision(
        self, bundle: DocumentBundle, answer: ClassificationOutput, issue_numbering: _IssueNumbering
    ) -> tuple[ClassificationOutput, list[Issue], list[Repair]]:
        """Repair counts, missing types and share sums before the arbiter counts issues.

        Returns the repaired answer, the issues with status "repaired", and the repairs.
        """
        repaired_issues: list[Issue] = []
        all_repairs: list[Repair] = []
        for find_issues in (partial(V1SchemaValidator().validate, bundle=bundle), find_share_sum_issues):
            issues = [issue for issue in issue_numbering.assign_ids(find_issues(answer)) if issue.auto_fixable]
            answer, repairs = self._autofix.apply(answer, issues)
            repaired_issues += [issue.model_copy(update={"status": "repaired"}) for issue in issues]
            all_repairs += repairs
        return answer, repaired_issues, all_repairs

    async def _collect_round_issues(
        self,
        bundle: DocumentBundle,
        answer: ClassificationOutput,
        question_cache: _QuestionCache,
        verifiers: Sequence[Verifier],
    ) -> list[Issue]:
        """Run all verifiers and return their issues: those of rules, then those of models."""
        rule_issues: list[Issue] = []
        offline_issues: list[Issue] = []
        questions_by_agent: dict[str, list[Question[Any]]] = {}
        for verifier in verifiers:
            questions: list[Question[Any]] = []
            found_issues, failures = await self._run_step(verifier, partial(find_rule_issues, verifier, answer, bundle))
            if not failures:
                build_questions = partial(verifier.questions, answer, bundle, (1, bundle.total_pages))
                questions, failures = await self._run_step(verifier, build_questions)
            rule_issues += [*found_issues, *failures]
            questions_by_agent[verifier.agent] = questions
            if questions and self._include_rule_findings:
                found_issues, failures = await self._run_step(
                    verifier, partial(find_offline_issues, verifier, questions)
                )
                offline_issues += [*found_issues, *failures]
        computed_issues = [*rule_issues, *offline_issues]
        # issues about patients say nothing about the answer's consistency, so V2's model is asked all the same
        blocked_agents = {
            issue.agent
            for issue in rule_issues
            if issue.severity is IssueSeverity.BLOCKER and issue.code not in PATIENT_CODES
        }
        model_issues = (
            []
            if V1SchemaValidator.agent in blocked_agents
            else await self._ask_verifiers(
                bundle,
                answer,
                questions_by_agent,
                question_cache,
                verifiers,
                is_consistent=V2ConsistencyChecker.agent not in blocked_agents,
            )
        )
        question_cache.unanswered_agents = frozenset(
            issue.agent for issue in (*computed_issues, *model_issues) if is_agent_failure_issue(issue)
        )
        if self._on_agent_failure == "ignore":
            own_agents = {verifier.agent for verifier in self._own_verifiers}
            model_issues = [
                issue for issue in model_issues if issue.agent in own_agents or not is_agent_failure_issue(issue)
            ]
        return [*computed_issues, *drop_model_issues_covered_by_rules(computed_issues, model_issues)]

    async def _run_step(self, verifier: Verifier, step: Callable[[], Iterable[T]]) -> tuple[list[T], list[Issue]]:
        """Run a verifier's step: return its items, or an issue that says why it failed.

        A site's verifier runs in a thread: waiting for its process must not block other documents.
        """
        run = partial(run_step_or_build_failure, verifier, step)
        return await asyncio.to_thread(run) if verifier in self._own_verifiers else run()

    async def _ask_verifiers(
        self,
        bundle: DocumentBundle,
        answer: ClassificationOutput,
        questions_by_agent: Mapping[str, list[Question[Any]]],
        question_cache: _QuestionCache,
        verifiers: Sequence[Verifier],
        *,
        is_consistent: bool,
    ) -> list[Issue]:
        """Ask the verifiers' questions to the model and convert the answers to issues.

        ``questions_by_agent``: questions of each verifier about the whole document; a verifier without questions is skipped.
        ``is_consistent`` False: V2's rules found a BLOCKER, so V2's question and the merged question are skipped.
        """
        page_ranges = split_into_windows(bundle, self._window_characters)
        merged_verifier = MergedVerifier([verifier for verifier in verifiers if verifier not in self._own_verifiers])

        async def ask(verifier: Verifier) -> list[Issue]:
            questions = questions_by_agent[verifier.agent]
            failures: list[Issue] = []
            if len(page_ranges) > 1:

                def build_questions() -> list[Question[Any]]:
                    return [question for pages in page_ranges for question in verifier.questions(answer, bundle, pages)]

                questions, failures = await self._run_step(verifier, build_questions)
            answers = await question_cache.ask_all(questions)
            found_issues, read_failures = await self._run_step(verifier, partial(verifier.read, answers))
            return [*found_issues, *failures, *read_failures]

        async def ask_merged() -> list[Issue]:
            merged_answers = await question_cache.ask_all(
                merged_verifier.build_question(answer, bundle, pages) for pages in page_ranges
            )
            return merged_verifier.read(merged_answers)

        asked_verifiers = [
            verifier
            for verifier in (self._own_verifiers if self._profile == "lean" else verifiers)
            if questions_by_agent[verifier.agent] and (is_consistent or verifier.agent != V2ConsistencyChecker.agent)
        ]
        merged_asks = [ask_merged()] if self._profile == "lean" and is_consistent else []
        issues_by_asker = await asyncio.gather(*merged_asks, *map(ask, asked_verifiers))
        return [issue for issues in issues_by_asker for issue in issues]

    def _build_outcome(
        self,
        answer: ClassificationOutput | None,
        issues: Sequence[Issue],
        attempts: tuple[Attempt, ...],
        question_cache: _QuestionCache,
        verdict: Verdict | None = None,
    ) -> ClassificationOutcome:
        open_v4_issues = [issue for issue in issues if issue.agent == "V4" and issue.status == "open"]
        return ClassificationOutcome(
            verdict=verdict or self._v5.decide(issues),
            classification=answer,
            issues=tuple(issues),
            attempts=attempts,
            evidence_quality_score=score_evidence(answer, open_v4_issues),
            grounded_ratio=None if answer is None else compute_grounded_ratio(answer, open_v4_issues),
            usage=question_cache.build_usage_report(),
            unanswered=tuple(sorted(question_cache.unanswered_agents)),
        )


class _QuestionCache:
    """Cache of a document's answered questions, which also adds up usage and changes.

    To verifiers' questions it adds pictures, if the role's model sees.
    """

    def __init__(self, model: Model, page_images: Sequence[PageImage], seeing_roles: Collection[str]) -> None:
        self._model = model
        self._page_images = page_images
        self._seeing_roles = seeing_roles
        self._answers_by_key: dict[tuple[object, ...], Answer[Any]] = {}
        self._usage_by_role: dict[str, dict[tuple[object, ...], Usage]] = defaultdict(dict)
        self.unanswered_agents: frozenset[str] = frozenset()
        """Verifiers that failed in the last round."""
        self.changes: list[str] = []
        """Lossless changes made to read the answers, as ``role: change``."""

    @property
    def classifier_images(self) -> Sequence[PageImage]:
        """Pictures for the classifier's model."""
        return self._page_images if ClassifierQuestion.role in self._seeing_roles else ()

    @property
    def pictured_pages(self) -> set[int]:
        """Pages whose pictures the classifier's model has and whose text may lack words."""
        return {image.page_number for image in self.classifier_images if image.may_show_unread_words}

    async def ask(self, question: Question[AnswerT]) -> Answer[AnswerT]:
        question = self._add_pictures(question)
        key = question.role, question.prompt(), question.images
        if key not in self._answers_by_key:
            answer = await self._model.ask(question)
            self._usage_by_role[question.role][key] = answer.usage
            self.note_changes(question.role, answer.normalisation_changes)
            if answer.value is None:  # a failed answer is not cached
                return answer
            self._answers_by_key[key] = answer
        return self._answers_by_key[key]

    def _add_pictures(self, question: Question[AnswerT]) -> Question[AnswerT]:
        """Return a verifier's question with pictures of the pages that text cannot judge.

        These are pages that were read poorly or not at all, and pages of which the answer quotes the picture.
        """
        if not isinstance(question, VerifierQuestion):
            return question
        first_page, last_page = question.pages or (1, question.bundle.total_pages)
        quoted_pages = {
            evidence.page
            for segment in question.classification.segments
            for presence in segment.segment_composition
            for evidence in presence.top_evidence
            if evidence.seen_in_picture
        }
        shown_images = [
            image
            for image in (self._page_images if question.role.lower() in self._seeing_roles else ())
            if first_page <= image.page_number <= last_page
            and (image.page_number in quoted_pages or {"image", "poor"}.intersection(image.reasons))
        ]
        pictured_question: Question[Any] = replace(
            question,
            images=tuple(image.png for image in shown_images),
            pictured_pages=tuple(image.page_number for image in shown_images),
        )
        return pictured_question

    def note_changes(self, role: str, changes: Iterable[str]) -> None:
        """Record the lossless changes made to read an answer, each once per role."""
        self.changes = list(dict.fromkeys((*self.changes, *(f"{role}: {change}" for change in changes))))

    async def ask_all(self, questions: Iterable[Question[AnswerT]]) -> list[Answer[AnswerT]]:
        return list(await asyncio.gather(*(self.ask(question) for question in questions)))

    def build_usage_report(self) -> UsageReport:
        by_agent = {
            role: UsageTotal.from_usages(usages.values()) for role, usages in sorted(self._usage_by_role.items())
        }
        total = UsageTotal.from_usages(usage for usages in self._usage_by_role.values() for usage in usages.values())
        return UsageReport(**total.model_dump(), by_agent=by_agent)


class _IssueNumbering:
    """Numbering of a document's issues; an issue keeps its id in later rounds."""

    def __init__(self) -> None:
        self._ids_by_key: dict[str, str] = {}
        self._last_numbers: dict[str, int] = defaultdict(int)

    def assign_ids(self, issues: Iterable[Issue]) -> list[Issue]:
        repeat_counts: dict[str, int] = defaultdict(int)
        numbered_issues = []
        for issue in issues:
            content = issue.model_dump_json(exclude={"issue_id", "facts"})
            repeat_counts[content] += 1  # two equal issues in one round get two ids
            key = f"{repeat_counts[content]}:{content}"
            if key not in self._ids_by_key:
                self._last_numbers[issue.agent] += 1
                self._ids_by_key[key] = f"{issue.agent.upper()}-{self._last_numbers[issue.agent]:04d}"
            numbered_issues.append(issue.model_copy(update={"issue_id": self._ids_by_key[key]}))
        return numbered_issues


def collect_reader_issues(bundle: DocumentBundle, languages: Sequence[str] = ("en",)) -> Iterator[Issue]:
    """Raise issues about reading: unread, damaged or deceptive pages, languages."""
    if bundle.is_too_slow:
        yield Issue.create(
            "reader",
            "READER-TOO-SLOW",
            IssueSeverity.MAJOR,
            f"The file takes too long to read: none of its {bundle.total_pages} pages was read",
            location="document",
            suggested_fix="Read the pages yourself, or print the file to a new PDF and run that",
            page=1,
            facts={"total": bundle.total_pages},
        )
    elif unreadable_pages := bundle.unreadable_pages:
        problems = dict.fromkeys(
            problem for page_number in unreadable_pages for problem in bundle.page(page_number).problems
        )
        yield Issue.create(
            "reader",
            "READER-NO-TEXT",
            IssueSeverity.BLOCKER,
            f"{len(unreadable_pages)} of {bundle.total_pages} pages could not be read as text (page {_format_page_numbers(unreadable_pages)})"
            + (f". Too poor to read: {'; '.join(list(problems)[:3])}" if problems else ""),
            location="document",
            suggested_fix="Look at these pages, or send a better scan or a file with a text layer",
            page=unreadable_pages[0],
            facts={
                "pages": _format_page_numbers(unreadable_pages),
                "count": len(unreadable_pages),
                "total": bundle.total_pages,
            },
        )
    elif not bundle.has_text:
        yield Issue.create(
            "reader",
            "READER-NO-TEXT",
            IssueSeverity.BLOCKER,
            "Every page of the document is blank",
            location="document",
            suggested_fix="Check whether the right file was sent",
            page=1,
            facts={"total": bundle.total_pages},
        )
    for reason in dict.fromkeys(page.unread for page in bundle.pages if page.unread):
        picture_pages = [page.page_num for page in bundle.pages if page.unread == reason]
        yield Issue.create(
            "reader",
            "READER-PICTURE",
            IssueSeverity.MAJOR,
            f"Pictures on {len(picture_pages)} of {bundle.total_pages} pages may say more than was read "
            f"(page {_format_page_numbers(picture_pages)}): {reason}",
            location="document",
            suggested_fix="Look at the pictures on these pages, or send a better scan",
            page=picture_pages[0],
            facts={"pages": _format_page_numbers(picture_pages), "count": len(picture_pages)},
        )
    yield from build_damage_issues(bundle.pages)
    yield from build_addressed_issues(bundle.pages)
    if bundle.is_repaired:
        yield Issue.create(
            "reader",
            "READER-REPAIRED",
            IssueSeverity.MAJOR,
            "The file was damaged and only opened after a repair; pages or text may be missing",
            location="document",
            suggested_fix="Compare with the original, or send the file again",
        )
    checked_languages = " and ".join(get_language_name(code) for code in languages)
    for code in sorted({page.language for page in bundle.pages} - {"", *languages}):
        language_pages = [page.page_num for page in bundle.pages if page.language == code]
        page_numbers, language_name = _format_page_numbers(language_pages), get_language_name(code)
        yield Issue.create(
            "reader",
            "READER-LANGUAGE",
            IssueSeverity.MAJOR,
            f"This document is in {language_name} (page {page_numbers}); evalkit checks {checked_languages} text only",
            location="document",
            suggested_fix="Have somebody read these pages who knows the language, or send a translation",
            page=language_pages[0],
            facts={"pages": page_numbers, "language": language_name, "checked": checked_languages},
        )


def _format_page_numbers(page_numbers: Sequence[int]) -> str:
    return ", ".join(str(number) for number in page_numbers[:20]) + (" …" if len(page_numbers) > 20 else "")


def build_unparseable_issue(fault: str) -> Issue:
    """Build V1-UNPARSEABLE for an answer that is not a valid classification."""
    issue = Issue.create(
        "V1",
        "V1-UNPARSEABLE",
        IssueSeverity.BLOCKER,
        f"The classification cannot be read: {fault}",
        location="classification",
        suggested_fix="Have the document classified again",
    )
    return number_issues("V1", [issue])[0]


def _read_supplied_classification(
    supplied: Any, question_cache: _QuestionCache
) -> tuple[ClassificationOutput | None, list[Issue]]:
    try:
        normalised = normalise_classification(supplied)
        classification = ClassificationOutput.model_validate(normalised.json_value)
    except ValidationError as error:
        return None, [build_unparseable_issue(_describe_shape_error(error))]
    except (AnswerTextError, AnswerShapeError) as error:
        return None, [build_unparseable_issue(str(error))]
    question_cache.note_changes("classifier", normalised.changes)
    return classification, []


def hash_repairable_parts(answer: ClassificationOutput) -> str:
    """Hash the parts of an answer that repairs can change (MD5).

    An equal hash after a repair means a cycle. Source: contract ruling 7.
    """
    repairable_parts = {
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
    return hashlib.md5(encode_canonical_json(repairable_parts), usedforsecurity=False).hexdigest()


def _describe_shape_error(error: ValidationError) -> str:
    first_error = error.errors(include_input=False, include_url=False)[0]
    location = " → ".join(str(part) for part in first_error["loc"]) or "the whole"
    return f"{location}: {first_error['msg']}"
