"""Review a template until it is approved or a person has to decide.

Specification 004, contract ruling 18. The tables of :mod:`reviewer_report` and :mod:`convergence` decide; this
module runs the steps in order and limits their time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar

from evalkit.documents.bundle import DocumentBundle
from evalkit.errors import ModelSetupError, RunStopped, StoreError
from evalkit.llm.embedded import EmbeddedModel
from evalkit.llm.ledger import sum_usages
from evalkit.llm.model import Model, Usage
from evalkit.statements.applied_template import AppliedTemplate
from evalkit.statements.convergence import (
    DIVERGING_BELOW,
    MAX_RETRIES_BY_SCENARIO,
    EscalationSituation,
    RetryScenario,
    find_escalation_reason,
    measure_convergence,
    select_convergence_status,
)
from evalkit.statements.review_cycles import (
    ReportedIssue,
    ReviewCost,
    ReviewCycle,
    TemplateCase,
    build_escalation,
    find_best_cycle,
    merge_reviewer_issues,
)
from evalkit.statements.reviewer_report import (
    MAX_ISSUES_BY_SEVERITY,
    SHOWN_ISSUE_CAPS,
    ArbitrationReport,
    ReviewerReport,
    ReviewerRole,
    TemplateIssueCategory,
    TemplateIssueSeverity,
    arbitrate_reports,
    find_consensus_rule,
    find_issues_of_only_one_reviewer,
    has_critical_disagreement,
    keep_worst_issues_per_category,
)
from evalkit.statements.rule_based_review import TemplateReviewer, review_by_rules
from evalkit.statements.statement_template import (
    StatementTemplate,
    TemplateStatus,
    list_assumptions,
    render_template_toml,
)
from evalkit.statements.template_builder import (
    BuilderRetryInput,
    ConsolidatedIssue,
    build_best_template,
    build_next_draft,
)
from evalkit.statements.template_questions import (
    ArbitratorQuestion,
    ReviewerQuestion,
    TemplateQuestionContext,
    collect_measured_issue_ids,
    merge_model_answer_into_report,
)
from evalkit.statements.template_retry import TriedTemplate
from evalkit.statements.worker_thread import run_in_daemon_thread
from evalkit.store import hash_canonical_json

CallT = TypeVar("CallT")

if TYPE_CHECKING:
    from evalkit.documents.page_pictures import PageImage

_BOTH_REVIEWERS: tuple[TemplateReviewer, ...] = ("layout_geometry", "semantic_financial")
#: The only reviewer if ``[vllm_review] enabled`` is false: sums are what a person finds hardest to check.
_SINGLE_REVIEWER: tuple[TemplateReviewer, ...] = ("semantic_financial",)
#: The reviewers' names in the builder's retry input.
_FEEDBACK_NAME_BY_ROLE: Mapping[str, str] = {
    "layout_geometry": "layout_reviewer",
    "semantic_financial": "semantic_reviewer",
}


@dataclass(frozen=True)
class ReviewLoopConfig:
    """Limits and temperatures of the review: specification 004, "Configuration"."""

    is_dual_review_enabled: bool = True
    max_issues_by_severity: Mapping[TemplateIssueSeverity, int] = field(default_factory=lambda: MAX_ISSUES_BY_SEVERITY)
    shown_issue_caps: Mapping[TemplateIssueCategory, int] = field(default_factory=lambda: SHOWN_ISSUE_CAPS)
    max_retries_by_scenario: Mapping[RetryScenario, int] = field(default_factory=lambda: MAX_RETRIES_BY_SCENARIO)
    diverging_below: float = DIVERGING_BELOW
    temperature_by_role: Mapping[ReviewerRole, float] = field(
        default_factory=lambda: {"layout_geometry": 0.1, "semantic_financial": 0.2, "arbitrator": 0.0}
    )
    reviewer_seconds: float = 60
    both_reviewers_seconds: float = 90
    arbitration_seconds: float = 45
    cycle_seconds: float = 180
    """Seconds for the review of one attempt; building the next template may take as long again."""


@dataclass(frozen=True)
class TemplateReviewResult:
    """Result of a template's review: final template, attempts, cost and case."""

    template: StatementTemplate
    """The approved template, stable; otherwise the draft with the least grave issues."""
    cycles: tuple[ReviewCycle, ...]
    cost: ReviewCost
    template_case: TemplateCase | None
    """The case that a person has to decide; None if the template was approved."""


class TemplateReviewLoop:
    """Reviews templates with two reviewers, an arbitrator and a builder.

    An instance keeps nothing from one template to the next.
    """

    def __init__(
        self, get_model: Callable[[str], Model], config: ReviewLoopConfig | None = None, *, clock: Callable[[], str]
    ) -> None:
        """``get_model`` returns the model for a role.

        Roles: ``layout_geometry``, ``semantic_financial``, ``arbitrator``, ``builder``. ``clock`` returns the time in
        ISO 8601, UTC.
        """
        self._get_model = get_model
        self._config = config or ReviewLoopConfig()
        self._clock = clock

    async def review_template(
        self,
        template: StatementTemplate,
        bundle: DocumentBundle,
        *,
        page_images: Sequence[PageImage] = (),
        id_if_rejected: str = "",
        first_cycle_number: int = 1,
        on_cycle: Callable[[ReviewCycle], None] = lambda cycle: None,
    ) -> TemplateReviewResult:
        """Review a template; build and review others until one is approved or escalated.

        ``page_images``: images of the statement's pages, for models that see images. ``id_if_rejected``: the id of
        this statement's own template, if the reviewed one belongs to another statement and does not fit; empty keeps
        the id. ``first_cycle_number``: number of the first attempt's record, greater than 1 if an earlier review of
        the template left records. ``on_cycle``: called with each finished attempt's record. StoreError if a model's
        answer could not be stored.
        """
        identity_hash = hash_canonical_json(
            [template.template_id, render_template_toml(template), bundle.sha256, first_cycle_number]
        )[:12]
        history = _ReviewHistory(f"rc_{identity_hash}", template.template_id, bundle.sha256)
        template = template.model_copy(update={"status": TemplateStatus.DRAFT})
        while True:
            attempt = _ReviewAttempt(len(history.cycles) + 1, template, times={})
            cycle = await self._run_attempt(attempt, bundle, tuple(page_images), history)
            if id_if_rejected and not history.cycles and cycle.outcome != "approved":
                cycle = history.start_own_template(attempt, cycle, id_if_rejected)
                template = attempt.template
            next_template: StatementTemplate | None = None
            if cycle.outcome == "retry":
                next_template, usage = await self._build_next_template(
                    attempt, cycle, bundle, tuple(page_images), history
                )
                attempt.usages.append(usage)
                cycle = cycle.model_copy(update={"times": attempt.times})
                if next_template is None:
                    reason = "max_retries_exceeded" if "failure" in attempt.times["builder"] else "hypotheses_exhausted"
                    cycle = cycle.model_copy(update={"outcome": "escalated", "escalation_reason": reason})
            history.add_cycle(attempt, cycle)
            on_cycle(history.cycles[-1])
            if next_template is None:
                return history.build_review_result()
            template = next_template

    async def _run_attempt(
        self,
        attempt: _ReviewAttempt,
        bundle: DocumentBundle,
        page_images: tuple[PageImage, ...],
        history: _ReviewHistory,
    ) -> ReviewCycle:
        """Review one template and decide it; the record includes failures of reviewers."""
        attempt.times["began_at"] = self._clock()
        roles = _BOTH_REVIEWERS if self._config.is_dual_review_enabled else _SINGLE_REVIEWER
        try:
            async with asyncio.timeout(self._config.cycle_seconds):
                context = await self._run_reviewers_and_get_context(attempt, roles, bundle, page_images, history)
                if context is not None and not attempt.failure_by_role and len(roles) > 1:
                    await self._run_arbitration(attempt, context, history)
        except TimeoutError:
            has_all_reports = attempt.report_by_role.keys() >= set(roles)
            attempt.record_timeout_of_silent_roles(
                (*roles, "arbitrator") if has_all_reports else roles, self._config.cycle_seconds
            )
        attempt.times["ended_at"] = self._clock()
        return self._build_decided_cycle(attempt, history)

    async def _run_reviewers_and_get_context(
        self,
        attempt: _ReviewAttempt,
        roles: Sequence[TemplateReviewer],
        bundle: DocumentBundle,
        page_images: tuple[PageImage, ...],
        history: _ReviewHistory,
    ) -> TemplateQuestionContext | None:
        """Run the reviewers in parallel and return the context of their questions.

        None if the time ran out or the statement could not be read; ``attempt`` records the reason.
        """
        try:
            async with asyncio.timeout(self._config.both_reviewers_seconds):
                applied_template = await run_in_daemon_thread(lambda: AppliedTemplate.create(attempt.template, bundle))
                prior_issues = tuple(
                    keep_worst_issues_per_category(
                        [reported_issue.issue for reported_issue in history.previous_issues],
                        self._config.shown_issue_caps,
                    )
                )
                context = TemplateQuestionContext(bundle.sha256, applied_template, page_images, prior_issues)
                reviewer_tasks = (self._run_reviewer(role, attempt, context, history) for role in roles)
                await asyncio.gather(*reviewer_tasks)
                return context
        except TimeoutError:
            attempt.record_timeout_of_silent_roles(roles, self._config.both_reviewers_seconds)
        except (ModelSetupError, RunStopped, StoreError):
            raise
        except Exception as error:  # noqa: BLE001 - a defect here must escalate the template, not end the command
            attempt.failure_by_role |= {
                role: f"the statement could not be read ({type(error).__name__})" for role in roles
            }
        return None

    async def _run_reviewer(
        self,
        role: TemplateReviewer,
        attempt: _ReviewAttempt,
        context: TemplateQuestionContext,
        history: _ReviewHistory,
    ) -> None:
        """Run one reviewer, independently of the other; record the report or the failure."""
        config, model = self._config, self._get_model(role)
        question = ReviewerQuestion(
            context, role=role, temperature=config.temperature_by_role[role], time_limit_seconds=config.reviewer_seconds
        )
        reviewer_id = f"{role}_{history.review_cycle_id}_{attempt.number}"

        def build_measured_report() -> ReviewerReport:
            return review_by_rules(
                context.applied_template,
                role,
                reviewer_id=reviewer_id,
                reviewed_at=self._clock(),
                max_issues_by_severity=config.max_issues_by_severity,
            )

        measured_and_answer = asyncio.gather(run_in_daemon_thread(build_measured_report), model.ask(question))
        result = await self._await_role(attempt, role, config.reviewer_seconds, measured_and_answer)
        if result is None:
            return
        report, answer = result
        attempt.usages.append(answer.usage)
        if answer.value is None:
            attempt.failure_by_role[role] = answer.failure or "it gave no answer"
            return
        if model.name != EmbeddedModel.name:
            report = merge_model_answer_into_report(
                report,
                answer.value,
                model_name=model.name,
                total_pages=len(context.applied_template.lines_by_page),
                unseen_pages=context.pages_without_image,
                max_issues_by_severity=config.max_issues_by_severity,
            )
        tokens_used = {"input": answer.usage.input_tokens, "output": answer.usage.output_tokens}
        attempt.report_by_role[role] = report.model_copy(
            update={"tokens_used": tokens_used, "reviewed_at": attempt.times[role]["ended_at"]}
        )

    async def _await_role(
        self, attempt: _ReviewAttempt, role: ReviewerRole, seconds: float, call: Awaitable[CallT]
    ) -> CallT | None:
        """Await the call of a role, return its result; None after a timeout or an error.

        Start and end, and the reason for a failure, are recorded in ``attempt``. StoreError is raised again.
        """
        times = attempt.times[role] = {"began_at": self._clock()}
        try:
            async with asyncio.timeout(seconds):
                return await call
        except TimeoutError:
            attempt.record_timeout_of_silent_roles([role], seconds)
        except (ModelSetupError, RunStopped, StoreError):
            raise
        except Exception as error:  # noqa: BLE001 - as above
            attempt.failure_by_role[role] = f"it ended with an error ({type(error).__name__})"
        finally:
            times["ended_at"] = self._clock()
        return None

    async def _run_arbitration(
        self, attempt: _ReviewAttempt, context: TemplateQuestionContext, history: _ReviewHistory
    ) -> None:
        """Let the arbitrator decide a template on which the reviewers disagree.

        Nothing is done if both verdicts agree, or if a person must decide because of a critical issue of only one
        reviewer.
        """
        config = self._config
        layout_report, semantic_report = attempt.layout_and_semantic_reports
        disputed_issues = tuple(find_issues_of_only_one_reviewer(layout_report, semantic_report))
        if find_consensus_rule(
            layout_report.is_passed, semantic_report.is_passed
        ).outcome != "arbitration" or has_critical_disagreement(disputed_issues):
            return
        arbitration_id = f"arb_{hash_canonical_json([history.review_cycle_id, attempt.number])[:12]}"
        measured_issue_ids = collect_measured_issue_ids(layout_report, semantic_report)
        report_by_rules = arbitrate_reports(
            layout_report,
            semantic_report,
            arbitration_id=arbitration_id,
            arbitrated_at=self._clock(),
            measured_issue_ids=measured_issue_ids,
            max_issues_by_severity=config.max_issues_by_severity,
        )
        model = self._get_model("arbitrator")
        question = ArbitratorQuestion(
            context,
            layout_report=layout_report,
            semantic_report=semantic_report,
            disputed_issues=disputed_issues,
            report_by_rules=report_by_rules,
            measured_issue_ids=measured_issue_ids,
            temperature=config.temperature_by_role["arbitrator"],
            time_limit_seconds=config.arbitration_seconds,
        )
        answer = await self._await_role(attempt, "arbitrator", config.arbitration_seconds, model.ask(question))
        if answer is None:
            return
        attempt.usages.append(answer.usage)
        if answer.value is None:
            attempt.failure_by_role["arbitrator"] = answer.failure or "it gave no answer"
            return
        model_answer = answer.value if model.name != EmbeddedModel.name else None
        attempt.arbitration = arbitrate_reports(
            layout_report,
            semantic_report,
            arbitration_id=arbitration_id,
            arbitrated_at=attempt.times["arbitrator"]["ended_at"],
            measured_issue_ids=measured_issue_ids,
            max_issues_by_severity=config.max_issues_by_severity,
            model_answer=model_answer,
        )

    def _build_decided_cycle(self, attempt: _ReviewAttempt, history: _ReviewHistory) -> ReviewCycle:
        config, arbitration = self._config, attempt.arbitration
        resolutions = {each.issue_id: each for each in arbitration.resolutions} if arbitration else {}
        reported_issues = tuple(
            reported.model_copy(update={"resolution": resolutions.get(reported.issue.issue_id)})
            for reported in merge_reviewer_issues(
                (role, attempt.report_by_role[role].issues)
                for role in _BOTH_REVIEWERS
                if role in attempt.report_by_role
            )
        )
        convergence = measure_convergence(
            attempt.number,
            [candidate.issue for candidate in reported_issues],
            [candidate.issue for candidate in history.previous_issues],
        )
        status = select_convergence_status(convergence, config.diverging_below)
        consensus_rule = (
            find_consensus_rule(*(candidate.is_passed for candidate in attempt.layout_and_semantic_reports))
            if len(attempt.report_by_role) > 1
            else None
        )
        # Without both reviewers' reports there is no consensus; without the arbitrator's answer there is no
        # arbitration.
        is_approved = consensus_rule is not None and (
            consensus_rule.outcome == "approved"
            or (arbitration is not None and arbitration.final_decision == "approve")
        )
        is_disputed = consensus_rule is not None and consensus_rule.outcome == "arbitration"
        situation = EscalationSituation(
            attempt=attempt.number,
            scenario="arbitration" if is_disputed else "both_fail",
            status=status,
            has_failed_reviewer=bool(attempt.failure_by_role),
            has_critical_disagreement=is_disputed
            and has_critical_disagreement(find_issues_of_only_one_reviewer(*attempt.layout_and_semantic_reports)),
            unresolved_share=arbitration.unresolved_share if arbitration else 0.0,
            is_review_enabled=config.is_dual_review_enabled,
        )
        attempt.scenario = situation.scenario
        reason = find_escalation_reason(situation, config.max_retries_by_scenario)
        # An approved template is handed to a person only if the arbitration left most disagreements unresolved.
        if is_approved and reason != "arbitration_uncertain":
            reason = None
        return ReviewCycle(
            review_cycle_id=history.review_cycle_id,
            template_id=history.template_id,
            statement_sha256=history.statement_sha256,
            attempt=attempt.number,
            template=render_template_toml(attempt.template),
            reports=tuple(attempt.report_by_role[role] for role in _BOTH_REVIEWERS if role in attempt.report_by_role),
            failures=attempt.failure_by_role,
            consensus=consensus_rule.outcome if consensus_rule else None,
            because=_explain_outcome(
                attempt,
                consensus_rule.reason if consensus_rule else None,
                is_dual_review_enabled=config.is_dual_review_enabled,
            ),
            arbitration=arbitration,
            convergence={**asdict(convergence), "score": convergence.convergence_score, "status": status},
            issues=reported_issues,
            outcome="escalated" if reason else "approved" if is_approved else "retry",
            escalation_reason=reason,
            tried=list_assumptions(attempt.template),
            times=attempt.times,
        )

    async def _build_next_template(
        self,
        attempt: _ReviewAttempt,
        cycle: ReviewCycle,
        bundle: DocumentBundle,
        page_images: tuple[PageImage, ...],
        history: _ReviewHistory,
    ) -> tuple[StatementTemplate | None, Usage]:
        """Build the next attempt's template; return the usage too.

        None on failure, and if all hypotheses were tried or are refuted.
        """
        retry = build_retry_input(
            attempt.number, cycle, attempt.layout_and_semantic_reports, self._config, attempt.scenario
        ).model_copy(update={"earlier_attempts": history.tried_templates})
        history.tried_templates = retry.list_tried_templates()
        times = attempt.times["builder"] = {"began_at": self._clock()}
        try:
            async with asyncio.timeout(self._config.cycle_seconds):
                draft = await run_in_daemon_thread(lambda: build_next_draft(bundle, retry))
                if draft is None:
                    return None, Usage()
                proposal_result = await build_best_template(
                    self._get_model("builder"),
                    bundle,
                    draft,
                    page_images=page_images,
                    retry=retry,
                    timeout_seconds=self._config.reviewer_seconds,
                )
                return proposal_result.applied_template.template, proposal_result.usage
        except (ModelSetupError, RunStopped, StoreError):
            raise
        except Exception as error:  # noqa: BLE001 - without another template a person decides about this one
            times["failure"] = type(error).__name__
            return None, Usage()
        finally:
            times["ended_at"] = self._clock()


def build_retry_input(
    attempt_number: int,
    cycle: ReviewCycle,
    reports: Sequence[ReviewerReport],
    config: ReviewLoopConfig,
    scenario: RetryScenario,
) -> BuilderRetryInput:
    """Build the builder's input after a rejection: specification 004, "Retry Input".

    Issues that the arbitrator dismissed and issues that the caps hide are left out of the consolidated issues.
    """
    upheld_issues = [
        reported_issue
        for reported_issue in cycle.issues
        if reported_issue.resolution is None or reported_issue.resolution.final_severity != "dismissed"
    ]
    shown_issue_ids = {
        id(reported_issue)
        for reported_issue in keep_worst_issues_per_category(
            [reported_issue.issue for reported_issue in upheld_issues], config.shown_issue_caps
        )
    }
    return BuilderRetryInput(
        retry_attempt=attempt_number + 1,
        prior_template=cycle.template,
        reviewer_feedback={
            _FEEDBACK_NAME_BY_ROLE[report.reviewer_role]: {
                "pass": report.is_passed,
                "issues": [reported_issue.model_dump(mode="json") for reported_issue in report.issues],
            }
            for report in reports
        },
        consolidated_issues=tuple(
            ConsolidatedIssue(
                issue_id=reported_issue.issue.issue_id,
                severity=reported_issue.issue.severity,
                category=reported_issue.issue.category,
                message=reported_issue.issue.message,
                suggested_fix=reported_issue.issue.suggested_fix,
                reported_by=tuple(_FEEDBACK_NAME_BY_ROLE[role] for role in reported_issue.reported_by),
            )
            for reported_issue in upheld_issues
            if id(reported_issue.issue) in shown_issue_ids
        ),
        convergence_status=cycle.convergence["status"],
        max_attempts_remaining=max(config.max_retries_by_scenario[scenario] - attempt_number, 0),
    )


@dataclass
class _ReviewAttempt:
    number: int
    template: StatementTemplate
    times: dict[str, Any]
    report_by_role: dict[TemplateReviewer, ReviewerReport] = field(default_factory=dict)
    failure_by_role: dict[str, str] = field(default_factory=dict)
    usages: list[Usage] = field(default_factory=list)
    arbitration: ArbitrationReport | None = None
    scenario: RetryScenario = "both_fail"

    @property
    def layout_and_semantic_reports(self) -> tuple[ReviewerReport, ReviewerReport]:
        """The reports of the layout and the semantic reviewer. KeyError if one is missing."""
        return self.report_by_role["layout_geometry"], self.report_by_role["semantic_financial"]

    def record_timeout_of_silent_roles(self, roles: Sequence[str], seconds: float) -> None:
        """Record a timeout as failure of each role that has neither report nor failure."""
        for role in roles:
            if role not in self.report_by_role and role not in self.failure_by_role:
                self.failure_by_role[role] = f"it took longer than {seconds:g} seconds"


@dataclass
class _ReviewHistory:
    review_cycle_id: str
    template_id: str
    statement_sha256: str
    cycles: list[ReviewCycle] = field(default_factory=list)
    tried_templates: tuple[TriedTemplate, ...] = ()
    templates: list[StatementTemplate] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)

    def start_own_template(self, attempt: _ReviewAttempt, cycle: ReviewCycle, template_id: str) -> ReviewCycle:
        """Rename the attempt's template as this statement's first draft.

        Returns the record.
        """
        self.template_id = template_id
        identity = attempt.template.identity.model_copy(update={"built_from": self.statement_sha256})
        attempt.template = attempt.template.model_copy(
            update={"template_id": template_id, "version": 1, "identity": identity}
        )
        renamed = {"template_id": template_id}
        return cycle.model_copy(
            update={
                **renamed,
                "template": render_template_toml(attempt.template),
                "reports": tuple(report.model_copy(update=renamed) for report in cycle.reports),
                "arbitration": cycle.arbitration and cycle.arbitration.model_copy(update=renamed),
            }
        )

    @property
    def previous_issues(self) -> Sequence[ReportedIssue]:
        """The issues of the previous attempt; empty before the second attempt."""
        return self.cycles[-1].issues if self.cycles else ()

    def add_cycle(self, attempt: _ReviewAttempt, cycle: ReviewCycle) -> None:
        """Add a finished attempt, with the cost of the whole review so far."""
        self.usage = sum_usages([self.usage, *attempt.usages])
        self.templates.append(attempt.template)
        cost = ReviewCost(
            review_cycle_id=self.review_cycle_id,
            template_id=self.template_id,
            attempts=attempt.number,
            total_tokens={"input": self.usage.input_tokens, "output": self.usage.output_tokens},
            estimated_cost_usd=None if self.usage.cost_usd is None else Decimal(self.usage.cost_usd),
            final_outcome="rejected" if cycle.outcome == "retry" else cycle.outcome,
        )
        self.cycles.append(cycle.model_copy(update={"cost": cost}))

    def build_review_result(self) -> TemplateReviewResult:
        """Build the review's result: the approved template, or the best one as a case."""
        last_cycle, best_cycle = self.cycles[-1], find_best_cycle(self.cycles)
        assert last_cycle.cost is not None  # noqa: S101 - add gives each cycle one
        if last_cycle.outcome == "approved":
            stable_template = self.templates[-1].model_copy(update={"status": TemplateStatus.STABLE})
            return TemplateReviewResult(stable_template, tuple(self.cycles), last_cycle.cost, None)
        case = TemplateCase(
            template_id=self.template_id,
            template=best_cycle.template,
            issues=best_cycle.issues,
            escalation=build_escalation(self.cycles),
        )
        best_template = self.templates[self.cycles.index(best_cycle)]
        return TemplateReviewResult(best_template, tuple(self.cycles), last_cycle.cost, case)


def _explain_outcome(attempt: _ReviewAttempt, consensus_reason: str | None, *, is_dual_review_enabled: bool) -> str:
    if attempt.failure_by_role:
        return f"no report from {', '.join(sorted(attempt.failure_by_role))}"
    if not is_dual_review_enabled:
        return "the review by two reviewers is switched off: a person decides"
    if attempt.arbitration:
        return f"{consensus_reason}: the arbitrator's decision is to {attempt.arbitration.final_decision}"
    return consensus_reason or "no reviewer has reported"
