"""A model's template, used only if it reads at least as well as the measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from evalkit.documents.bundle import DocumentBundle
from evalkit.errors import UsageError
from evalkit.llm.embedded import EmbeddedModel
from evalkit.llm.model import Model, Usage
from evalkit.statements.applied_template import AppliedTemplate
from evalkit.statements.layout_survey import build_pattern_with_any_numbers
from evalkit.statements.reviewer_report import SeverityRank
from evalkit.statements.rule_based_review import CHECKS_BY_REVIEWER
from evalkit.statements.statement_template import StatementTemplate, TemplateStatus, parse_template_toml
from evalkit.statements.template_builder import BuilderRetryInput, TemplateBuildResult, build_draft_template
from evalkit.statements.template_questions import BuilderQuestion, PageImage, TemplateQuestionContext
from evalkit.statements.worker_thread import run_in_daemon_thread

#: Most characters of a proposal; no template is longer.
_MAX_PROPOSAL_LENGTH = 100_000


class ProposalResult(NamedTuple):
    """A template, and the cost of asking for it."""

    build_result: TemplateBuildResult
    usage: Usage
    proposed_by: str = ""
    """The model whose proposal was used; empty for the measured one."""


async def build_best_template(
    model: Model,
    bundle: DocumentBundle,
    *,
    page_images: Sequence[PageImage] = (),
    retry: BuilderRetryInput | None = None,
    timeout_seconds: float | None = None,
) -> ProposalResult:
    """Build the measured template, or use a model's better one.

    Errors as of ``build_draft_template``; StoreError.

    If the model does not answer, or its answer is invalid or reads less, the measured template is used.
    """
    measured_build = await run_in_daemon_thread(lambda: build_draft_template(bundle, retry=retry))
    if model.name == EmbeddedModel.name:
        return ProposalResult(measured_build, Usage())
    applied_template = await run_in_daemon_thread(lambda: AppliedTemplate.create(measured_build.template, bundle))
    context = TemplateQuestionContext(bundle.sha256, applied_template, tuple(page_images))
    retry_json = None if retry is None else retry.model_dump(mode="json")
    answer = await model.ask(BuilderQuestion(context, retry=retry_json, time_limit_seconds=timeout_seconds))
    proposal_toml = answer.value.template if answer.value else None
    proposed_template = (
        None if proposal_toml is None else parse_proposed_template(proposal_toml, measured_build.template)
    )
    if proposed_template is None:
        return ProposalResult(measured_build, answer.usage)
    applied_proposal = await run_in_daemon_thread(lambda: applied_template.apply_other_template(proposed_template))
    if not is_at_least_as_good(applied_proposal, applied_template):
        return ProposalResult(measured_build, answer.usage)
    proposed_build = TemplateBuildResult(
        applied_proposal.template,
        applied_proposal.statement,
        applied_proposal.reconciliation,
        measured_build.hypotheses_tried + 1,
    )
    return ProposalResult(proposed_build, answer.usage, model.name)


def parse_proposed_template(proposal_toml: str, measured_template: StatementTemplate) -> StatementTemplate | None:
    """Parse a model's TOML; None if it is not a template.

    Identity, number and status are those of the measured template. Patterns that it does not have become plain words: a
    model's regular expression could run for ever.
    """
    try:
        parsed_template = parse_template_toml(proposal_toml[:_MAX_PROPOSAL_LENGTH], "proposal")
        known_patterns = set(_collect_patterns(measured_template.model_dump(mode="json")))
        sanitised_fields = _escape_unknown_patterns(
            parsed_template.model_dump(mode="json", by_alias=True), known_patterns
        )
        fixed_fields = {
            "template_id": measured_template.template_id,
            "version": measured_template.version,
            "status": TemplateStatus.DRAFT,
        }
        return StatementTemplate.model_validate(
            {**sanitised_fields, **fixed_fields, "schema_version": measured_template.schema_version}
        )
    except (UsageError, ValueError, RecursionError):
        return None


def is_at_least_as_good(proposed: AppliedTemplate, reference: AppliedTemplate) -> bool:
    """Compare with a reference: no worse issues, no fewer rows, no fewer met sums."""
    return (
        _count_findings_by_severity(proposed) <= _count_findings_by_severity(reference)
        and len(proposed.statement.transactions) >= len(reference.statement.transactions)
        and _count_met_sums(proposed) >= _count_met_sums(reference)
    )


def _count_findings_by_severity(applied_template: AppliedTemplate) -> tuple[int, ...]:
    ranks = [
        SeverityRank[finding.severity]
        for checks in CHECKS_BY_REVIEWER.values()
        for check in checks
        for finding in check(applied_template)
    ]
    return tuple(ranks.count(rank) for rank in sorted(SeverityRank, reverse=True))


def _count_met_sums(applied_template: AppliedTemplate) -> int:
    return sum(check.is_met for check in applied_template.reconciliation.checks)


#: Keys of a template that hold patterns.
_PATTERN_FIELDS = frozenset(("period", "furniture", "accounts", "ends", "opening", "closing", "heading", "label"))


def _collect_patterns(value: Any, key: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for name, child in value.items():
            yield from _collect_patterns(child, name)
    elif isinstance(value, list):
        for child in value:
            yield from _collect_patterns(child, key)
    elif isinstance(value, str) and key in _PATTERN_FIELDS:
        yield value


def _escape_unknown_patterns(value: Any, known_patterns: set[str], key: str = "") -> Any:
    if isinstance(value, dict):
        return {name: _escape_unknown_patterns(child, known_patterns, name) for name, child in value.items()}
    if isinstance(value, list):
        return [_escape_unknown_patterns(child, known_patterns, key) for child in value]
    return (
        build_pattern_with_any_numbers(value)
        if isinstance(value, str) and key in _PATTERN_FIELDS and value not in known_patterns
        else value
    )
