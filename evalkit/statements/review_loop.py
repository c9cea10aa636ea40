"""The review of a template: two reviewers side by side, consensus, arbitration, another attempt, approval or a person.

Specification 004, contract ruling 18. What follows from what stands in the tables of :mod:`consensus`,
:mod:`arbitration` and :mod:`convergence`; here it is put in order, and in time.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple, TypeVar

from evalkit.documents.bundle import DocumentBundle
from evalkit.errors import StoreError
from evalkit.llm.embedded import EmbeddedModel
from evalkit.llm.ledger import total
from evalkit.llm.model import Model, Usage
from evalkit.statements.arbitration import ArbitrationReport, arbitrate, disagreements, has_critical
from evalkit.statements.builder import ConsolidatedIssue, RetryInput
from evalkit.statements.consensus import CAPS, MOST, are_duplicates, consensus, merged, shown
from evalkit.statements.convergence import (
    DIVERGING,
    RETRIES,
    Reason,
    Scenario,
    Situation,
    band,
    escalation,
    state_of,
)
from evalkit.statements.proposal import improved
from evalkit.statements.questions import (
    ArbitratorQuestion,
    Asked,
    Picture,
    ReviewerQuestion,
    measured_in,
    said_in,
    with_opinion,
)
from evalkit.statements.reading import Reading
from evalkit.statements.record import (
    ConvergencePoint,
    Cost,
    Cycle,
    Escalation,
    PersistentIssue,
    TemplateCase,
    ToldIssue,
)
from evalkit.statements.report import Category, ReviewerReport, Role, Severity, TemplateIssue
from evalkit.statements.reviewers import Reviewer, review
from evalkit.statements.template import StatementTemplate, write_template
from evalkit.statements.template import Status as TemplateStatus
from evalkit.store import digest

T = TypeVar("T")

_BOTH: tuple[Reviewer, ...] = ("layout_geometry", "semantic_financial")
#: Who looks where ``[vllm_review] enabled`` is false: whether sums meet is what a person sees last.
_ALONE: tuple[Reviewer, ...] = ("semantic_financial",)
#: What retry inputs and people call them.
_NAMES: Mapping[str, str] = {"layout_geometry": "layout_reviewer", "semantic_financial": "semantic_reviewer"}


@dataclass(frozen=True)
class Rules:
    """What may be set: specification 004, "Configuration"."""

    is_enabled: bool = True
    most: Mapping[Severity, int] = field(default_factory=lambda: MOST)
    caps: Mapping[Category, int] = field(default_factory=lambda: CAPS)
    retries: Mapping[Scenario, int] = field(default_factory=lambda: RETRIES)
    diverging: float = DIVERGING
    temperatures: Mapping[Role, float] = field(
        default_factory=lambda: {"layout_geometry": 0.1, "semantic_financial": 0.2, "arbitrator": 0.0}
    )
    reviewer_seconds: float = 60
    both_seconds: float = 90
    arbitration_seconds: float = 45
    cycle_seconds: float = 180
    """One attempt's review; the building of another one has as long again."""


@dataclass(frozen=True)
class Reviewed:
    """What became of a template."""

    template: StatementTemplate
    """The last attempt's; stable where it was approved, else a draft."""
    cycles: tuple[Cycle, ...]
    cost: Cost
    case: TemplateCase | None
    """What a person is asked; None where it was approved."""

    @property
    def is_approved(self) -> bool:
        """Whether nobody has to be asked."""
        return self.case is None


class ReviewLoop:
    """Reviews templates; keeps nothing between them."""

    def __init__(
        self, model_of: Callable[[str], Model], rules: Rules | None = None, *, clock: Callable[[], str]
    ) -> None:
        """``model_of``: who answers ``layout_geometry``, ``semantic_financial``, ``arbitrator`` and ``builder``.

        ``clock``: ISO 8601, UTC.
        """
        self._model_of = model_of
        self._rules = rules or Rules()
        self._clock = clock

    async def review(
        self,
        template: StatementTemplate,
        bundle: DocumentBundle,
        *,
        pictures: Sequence[Picture] = (),
        number: int = 1,
        on_cycle: Callable[[Cycle, int], None] = lambda cycle, number: None,
    ) -> Reviewed:
        """Review a template against a statement, and build others until one is approved or a person has to decide.

        ``pictures``: of the statement's pages, for models that see; ``number``: of the first cycle, where earlier
        reviews of the template have left some; ``on_cycle`` is told each one with its number when it has ended.
        StoreError where an answer could not be kept.
        """
        identity = digest([template.template_id, write_template(template), bundle.sha256, number])[:12]
        past = _Past(f"rc_{identity}", template.template_id, bundle.sha256)
        template = template.model_copy(update={"status": TemplateStatus.DRAFT})
        while True:
            attempt = _Attempt(len(past.cycles) + 1, template, times={})
            decided = await self._attempted(attempt, bundle, tuple(pictures), past)
            following: StatementTemplate | None = None
            if decided.outcome == "retry":
                following, usage = await self._built(attempt, decided, bundle, tuple(pictures))
                attempt.usage.append(usage)
                decided = decided.model_copy(update={"times": attempt.times})
                if following is None:
                    decided = decided.model_copy(
                        update={"outcome": "escalated", "escalation_reason": "max_retries_exceeded"}
                    )
            past.add(attempt, decided)
            on_cycle(past.cycles[-1], number + len(past.cycles) - 1)
            if following is None:
                return past.reviewed(template)
            template = following

    async def _attempted(
        self, attempt: _Attempt, bundle: DocumentBundle, pictures: tuple[Picture, ...], past: _Past
    ) -> Cycle:
        """One attempt, reviewed and decided, whatever happens to it."""
        attempt.times["began_at"] = self._clock()
        roles = _BOTH if self._rules.is_enabled else _ALONE
        try:
            async with asyncio.timeout(self._rules.cycle_seconds):
                about = await self._looked_at(attempt, roles, bundle, pictures, past)
                if about is not None and not attempt.failures and len(roles) > 1:
                    await self._arbitrated(attempt, about, past)
        except TimeoutError:
            attempt.fail((*roles, "arbitrator") if attempt.is_whole(roles) else roles, self._rules.cycle_seconds)
        attempt.times["ended_at"] = self._clock()
        return self._decided(attempt, past)

    # Looking

    async def _looked_at(
        self,
        attempt: _Attempt,
        roles: Sequence[Reviewer],
        bundle: DocumentBundle,
        pictures: tuple[Picture, ...],
        past: _Past,
    ) -> Asked | None:
        """What the reviewers were asked about; None where there was no time to read it."""
        try:
            async with asyncio.timeout(self._rules.both_seconds):
                reading = await aside(lambda: Reading.of(attempt.template, bundle))
                prior = tuple(shown([one.issue for one in past.told], self._rules.caps))
                about = Asked(bundle.sha256, reading, pictures, prior)
                carried = past.said_of(attempt.template)
                looks = (self._look(role, attempt, about, carried.get(role, ()), past) for role in roles)
                await asyncio.gather(*looks)
                return about
        except TimeoutError:
            attempt.fail(roles, self._rules.both_seconds)
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - a defect here must escalate the template, not end the command
            attempt.failures |= {role: f"the statement could not be read ({type(error).__name__})" for role in roles}
        return None

    async def _look(
        self, role: Reviewer, attempt: _Attempt, about: Asked, carried: Sequence[TemplateIssue], past: _Past
    ) -> None:
        """One reviewer's report, or why there is none. It sees nothing of the other one's."""
        rules, model = self._rules, self._model_of(role)
        times = attempt.times[role] = {"began_at": self._clock()}
        question = ReviewerQuestion(
            about, role=role, temperature=rules.temperatures[role], seconds=rules.reviewer_seconds
        )
        identity = f"{role}_{past.identity}_{attempt.number}"

        def measured() -> ReviewerReport:
            return review(about.reading, role, reviewer_id=identity, at=self._clock(), most=rules.most)

        try:
            async with asyncio.timeout(rules.reviewer_seconds):
                report, answer = await asyncio.gather(aside(measured), model.ask(question))
        except TimeoutError:
            attempt.fail([role], rules.reviewer_seconds)
            return
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - as above
            attempt.failures[role] = f"it failed ({type(error).__name__})"
            return
        finally:
            times["ended_at"] = self._clock()
        attempt.usage.append(answer.usage)
        if answer.value is None:
            attempt.failures[role] = answer.failure or "it gave no answer"
            return
        if model.name != EmbeddedModel.name:
            report = with_opinion(
                report,
                answer.value,
                model=model.name,
                pages=len(about.reading.pages),
                unseen=about.unseen,
                carried=carried,
                most=rules.most,
            )
        spent = {"input": answer.usage.input_tokens, "output": answer.usage.output_tokens}
        attempt.reports[role] = report.model_copy(update={"tokens_used": spent, "reviewed_at": times["ended_at"]})

    async def _arbitrated(self, attempt: _Attempt, about: Asked, past: _Past) -> None:
        """Settle what the reviewers disagree on, unless a person has to."""
        rules = self._rules
        layout, semantic = attempt.both
        found = tuple(disagreements(layout, semantic))
        if consensus(layout.is_passed, semantic.is_passed).then != "arbitration" or has_critical(found):
            return
        times = attempt.times["arbitrator"] = {"began_at": self._clock()}
        identity = f"arb_{digest([past.identity, attempt.number])[:12]}"
        measured = measured_in(layout, semantic)
        ruled = arbitrate(
            layout, semantic, arbitration_id=identity, at=self._clock(), measured=measured, most=rules.most
        )
        model = self._model_of("arbitrator")
        question = ArbitratorQuestion(
            about,
            layout=layout,
            semantic=semantic,
            found=found,
            ruled=ruled,
            measured=measured,
            temperature=rules.temperatures["arbitrator"],
            seconds=rules.arbitration_seconds,
        )
        try:
            async with asyncio.timeout(rules.arbitration_seconds):
                answer = await model.ask(question)
        except TimeoutError:
            attempt.fail(["arbitrator"], rules.arbitration_seconds)
            return
        finally:
            times["ended_at"] = self._clock()
        attempt.usage.append(answer.usage)
        if answer.value is None:
            attempt.failures["arbitrator"] = answer.failure or "it gave no answer"
            return
        said = answer.value if model.name != EmbeddedModel.name else None
        attempt.arbitration = arbitrate(
            layout,
            semantic,
            arbitration_id=identity,
            at=times["ended_at"],
            measured=measured,
            most=rules.most,
            said=said,
        )

    # Deciding

    def _decided(self, attempt: _Attempt, past: _Past) -> Cycle:
        """What follows, by the tables."""
        rules, arbitration = self._rules, attempt.arbitration
        told = _told(attempt)
        state = state_of(attempt.number, [one.issue for one in told], [one.issue for one in past.told])
        status = band(state, rules.diverging).status
        row = consensus(*(one.is_passed for one in attempt.both)) if len(attempt.reports) > 1 else None
        # Where a reviewer gave no report there is no row, and without an arbitrator's there is no arbitration.
        is_approved = row is not None and (
            row.then == "approved" or (arbitration is not None and arbitration.final_decision == "approve")
        )
        is_disputed = row is not None and row.then == "arbitration"
        now = Situation(
            attempt=attempt.number,
            scenario="arbitration" if is_disputed else "both_fail",
            status=status,
            has_failed_reviewer=bool(attempt.failures),
            has_critical_disagreement=is_disputed and has_critical(disagreements(*attempt.both)),
            uncertainty=arbitration.uncertainty if arbitration else 0.0,
            is_enabled=rules.is_enabled,
        )
        attempt.scenario = now.scenario
        reason = escalation(now, rules.retries)
        # Of a template that passes, only what was uncertain about it speaks against that.
        if is_approved and reason != "arbitration_uncertain":
            reason = None
        return Cycle(
            review_cycle_id=past.identity,
            template_id=past.template_id,
            statement_sha256=past.statement_sha256,
            attempt=attempt.number,
            template=write_template(attempt.template),
            reports=tuple(attempt.reports[role] for role in _BOTH if role in attempt.reports),
            failures=attempt.failures,
            consensus=row.then if row else None,
            because=_because(attempt, row.because if row else None, is_enabled=rules.is_enabled),
            arbitration=arbitration,
            convergence={**asdict(state), "score": state.convergence_score, "status": status},
            issues=told,
            outcome="escalated" if reason else "approved" if is_approved else "retry",
            escalation_reason=reason,
            times=attempt.times,
        )

    # Building another one

    async def _built(
        self, attempt: _Attempt, cycle: Cycle, bundle: DocumentBundle, pictures: tuple[Picture, ...]
    ) -> tuple[StatementTemplate | None, Usage]:
        """The next attempt's template, and what it cost; None where there is none."""
        retry = retry_input(attempt.number, cycle, attempt.both, self._rules, attempt.scenario)
        times = attempt.times["builder"] = {"began_at": self._clock()}
        try:
            async with asyncio.timeout(self._rules.cycle_seconds):
                made = await improved(
                    self._model_of("builder"),
                    bundle,
                    pictures=pictures,
                    retry=retry,
                    seconds=self._rules.reviewer_seconds,
                    aside=aside,
                )
                return made.built.template, made.usage
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - without another template a person decides about this one
            times["failure"] = type(error).__name__
            return None, Usage()
        finally:
            times["ended_at"] = self._clock()


def retry_input(
    attempt: int, cycle: Cycle, reports: Sequence[ReviewerReport], rules: Rules, scenario: Scenario
) -> RetryInput:
    """What the builder is told: specification 004, "Retry Input to Template Builder Agent"."""
    standing = [one for one in cycle.issues if one.resolution is None or one.resolution.final_severity != "dismissed"]
    kept = {id(one) for one in shown([one.issue for one in standing], rules.caps)}
    return RetryInput(
        retry_attempt=attempt + 1,
        prior_template=cycle.template,
        reviewer_feedback={
            _NAMES[report.reviewer_role]: {
                "pass": report.is_passed,
                "issues": [one.to_json() for one in report.issues],
            }
            for report in reports
        },
        consolidated_issues=tuple(
            ConsolidatedIssue(
                issue_id=one.issue.issue_id,
                severity=one.issue.severity,
                category=one.issue.category,
                message=one.issue.message,
                suggested_fix=one.issue.suggested_fix,
                reported_by=tuple(_NAMES[role] for role in one.reported_by),
            )
            for one in standing
            if id(one.issue) in kept
        ),
        convergence_status=cycle.convergence["status"],
        max_attempts_remaining=max(rules.retries[scenario] - attempt, 0),
    )


@dataclass
class _Attempt:
    """One attempt under way."""

    number: int
    template: StatementTemplate
    times: dict[str, Any]
    reports: dict[Reviewer, ReviewerReport] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    usage: list[Usage] = field(default_factory=list)
    arbitration: ArbitrationReport | None = None
    scenario: Scenario = "both_fail"

    @property
    def both(self) -> tuple[ReviewerReport, ReviewerReport]:
        """Both reports. KeyError where one is missing."""
        return self.reports["layout_geometry"], self.reports["semantic_financial"]

    def is_whole(self, roles: Iterable[Reviewer]) -> bool:
        """Whether all of these have reported."""
        return all(role in self.reports for role in roles)

    def fail(self, roles: Sequence[str], seconds: float) -> None:
        """Their time is over, unless they have said something."""
        for role in roles:
            if role not in self.reports and role not in self.failures:
                self.failures[role] = f"it took longer than {seconds:g} seconds"


class _Past:
    """The cycles of one review."""

    def __init__(self, identity: str, template_id: str, statement_sha256: str) -> None:
        self.identity = identity
        self.template_id = template_id
        self.statement_sha256 = statement_sha256
        self.cycles: list[Cycle] = []
        self._seen: list[tuple[StatementTemplate, dict[Reviewer, list[TemplateIssue]]]] = []
        self._usage = Usage()

    @property
    def told(self) -> Sequence[ToldIssue]:
        """The issues of the attempt before."""
        return self.cycles[-1].issues if self.cycles else ()

    def said_of(self, template: StatementTemplate) -> dict[Reviewer, list[TemplateIssue]]:
        """What models said of the very same template before, however it is numbered."""
        same = (said for seen, said in reversed(self._seen) if seen == _numbered_as(template, seen))
        return next(same, {})

    def add(self, attempt: _Attempt, cycle: Cycle) -> None:
        """An attempt has ended."""
        self._usage = total([self._usage, *attempt.usage])
        self._seen.append((attempt.template, {role: said_in(report) for role, report in attempt.reports.items()}))
        cost = Cost(
            review_cycle_id=self.identity,
            template_id=self.template_id,
            attempts=attempt.number,
            total_tokens={"input": self._usage.input_tokens, "output": self._usage.output_tokens},
            estimated_cost_usd=None if self._usage.cost_usd is None else Decimal(self._usage.cost_usd),
            final_outcome="rejected" if cycle.outcome == "retry" else cycle.outcome,
        )
        self.cycles.append(cycle.model_copy(update={"cost": cost}))

    def reviewed(self, template: StatementTemplate) -> Reviewed:
        """What became of it."""
        last = self.cycles[-1]
        assert last.cost is not None  # noqa: S101 - add gives each cycle one
        if last.outcome == "approved":
            stable = template.model_copy(update={"status": TemplateStatus.STABLE})
            return Reviewed(stable, tuple(self.cycles), last.cost, None)
        case = TemplateCase(
            template_id=self.template_id,
            template=last.template,
            issues=last.issues,
            escalation=_escalation(self.cycles),
        )
        return Reviewed(template, tuple(self.cycles), last.cost, case)


def _numbered_as(template: StatementTemplate, other: StatementTemplate) -> StatementTemplate:
    return template.model_copy(update={"version": other.version})


def _told(attempt: _Attempt) -> tuple[ToldIssue, ...]:
    """Each fault once."""
    resolutions = {one.issue_id: one for one in attempt.arbitration.resolutions} if attempt.arbitration else {}
    sides = [(role, attempt.reports[role].issues) for role in _BOTH if role in attempt.reports]
    return tuple(
        ToldIssue.model_validate(
            {
                "issue": one.issue,
                "reported_by": one.reported_by,
                "resolution": resolutions.get(one.issue.issue_id),
            }
        )
        for one in merged(sides)
    )


def _because(attempt: _Attempt, row: str | None, *, is_enabled: bool) -> str:
    if attempt.failures:
        return f"no report of {', '.join(sorted(attempt.failures))}"
    if not is_enabled:
        return "the review by two is switched off: a person decides"
    if attempt.arbitration:
        return f"{row}: the arbitrator's decision is to {attempt.arbitration.final_decision}"
    return row or "nobody has reviewed it"


# What a person is told


def _escalation(cycles: Sequence[Cycle]) -> Escalation:
    reason = cycles[-1].escalation_reason
    assert reason is not None  # noqa: S101 - only escalated reviews come here
    persistent = _persistent(cycles)
    return Escalation(
        escalation_reason=reason,
        attempt_count=len(cycles),
        all_reviewer_reports=tuple(report for cycle in cycles for report in cycle.reports),
        arbitration_reports=tuple(cycle.arbitration for cycle in cycles if cycle.arbitration),
        convergence_history=tuple(
            ConvergencePoint(attempt=cycle.attempt, issues=len(cycle.issues), score=cycle.convergence["score"])
            for cycle in cycles
        ),
        persistent_issues=persistent,
        recommendation=_recommended(reason, cycles[-1], persistent),
    )


def _persistent(cycles: Sequence[Cycle]) -> tuple[PersistentIssue, ...]:
    """The last cycle's issues that earlier ones had as well."""
    found: list[PersistentIssue] = []
    for told in cycles[-1].issues:
        same = [
            (cycle.attempt, one.issue)
            for cycle in cycles
            for one in cycle.issues
            if are_duplicates(told.issue, one.issue)
        ]
        attempts = tuple(dict.fromkeys(attempt for attempt, _ in same))
        if len(attempts) > 1:
            fixes = dict.fromkeys(one.suggested_fix for _, one in same if one.suggested_fix)
            found.append(
                PersistentIssue(
                    issue_id=told.issue.issue_id, reported_in_attempts=attempts, suggested_fixes_tried=tuple(fixes)
                )
            )
    return tuple(found)


class _Advice(NamedTuple):
    when: Callable[[Reason, Category | None], bool]
    says: str


#: What a person is advised, by the reason and by the category of the worst standing issue; the first that holds.
_ADVICE = (
    _Advice(lambda why, what: why == "reviewer_failed", "Look at the template yourself, or run the review again: a reviewer gave no report"),
    _Advice(lambda why, what: why == "review_disabled" and what is None, "The one reviewer found no fault: compare boxes and rows with the pages"),
    _Advice(lambda why, what: what == "bbox_accuracy", "Manual bounding box adjustment may be required"),
    _Advice(lambda why, what: what == "column_mapping", "Compare what each column is taken for with the titles above it"),
    _Advice(lambda why, what: what == "sign_logic", "Check on the page which amounts came in and which went out"),
    _Advice(lambda why, what: what == "date_format", "Check the order of day, month and year, and where the year is printed"),
    _Advice(lambda why, what: what == "multiline_handling", "Check which lines belong to one row"),
    _Advice(lambda why, what: what == "reconciliation_strategy", "Check whether the printed sums add up at all, and that no row is missing"),
    _Advice(lambda why, what: True, "Compare boxes, columns and rows with the pages"),
)  # fmt: skip


def _recommended(reason: Reason, last: Cycle, persistent: Sequence[PersistentIssue]) -> str:
    stubborn = {one.issue_id for one in persistent}
    order: tuple[Severity, ...] = ("low", "medium", "high", "critical")
    worst = max(
        (one.issue for one in last.issues),
        key=lambda issue: (order.index(issue.severity), issue.issue_id in stubborn),
        default=None,
    )
    what = worst.category if worst else None
    return next(row.says for row in _ADVICE if row.when(reason, what))


# Beside the event loop


async def aside(work: Callable[[], T]) -> T:
    """What ``work`` gives, in a thread of its own: one that does not end holds up nobody, not even the process's end."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def tell(say: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop has ended: nobody waits for it any more
            loop.call_soon_threadsafe(lambda: None if done.done() else say())

    def run() -> None:
        try:
            value = work()
        except Exception as error:  # noqa: BLE001 - raised again where it is waited for
            failure = error
            tell(lambda: done.set_exception(failure))
        else:
            tell(lambda: done.set_result(value))

    threading.Thread(target=run, name="reviewer", daemon=True).start()
    return await done
