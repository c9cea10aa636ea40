"""Ask a model for a template, and use it only if it reads the statement as well."""

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
from evalkit.statements.template_builder import BuilderRetryInput, build_draft_template
from evalkit.statements.template_questions import BuilderQuestion, PageImage, TemplateQuestionContext
from evalkit.statements.worker_thread import run_in_daemon_thread

#: Longer proposals of a model are cut; no template is as long.
_MAX_PROPOSAL_LENGTH = 100_000


class ProposalResult(NamedTuple):
    """The template to use, the model usage, and the model that proposed the template."""

    applied_template: AppliedTemplate
    usage: Usage
    proposed_by: str = ""
    """The model whose proposal is used; empty if the program's own template is used."""


async def build_best_template(
    model: Model,
    bundle: DocumentBundle,
    *,
    page_images: Sequence[PageImage] = (),
    retry: BuilderRetryInput | None = None,
    timeout_seconds: float | None = None,
) -> ProposalResult:
    """Build a template by rules, and use a model's proposal instead if it is as good.

    If the model does not answer, or its proposal is invalid or reads the statement worse, the template built by rules
    is used. ``timeout_seconds``: for the model's answer.

    Raises the errors of ``build_draft_template``, and StoreError if the answer could not be stored.
    """
    applied_template = await run_in_daemon_thread(lambda: build_draft_template(bundle, retry=retry))
    if model.name == EmbeddedModel.name:
        return ProposalResult(applied_template, Usage())
    context = TemplateQuestionContext(bundle.sha256, applied_template, tuple(page_images))
    retry_json = None if retry is None else retry.model_dump(mode="json")
    answer = await model.ask(BuilderQuestion(context, retry=retry_json, time_limit_seconds=timeout_seconds))
    proposal_toml = answer.value.template if answer.value else None
    proposed_template = (
        None if proposal_toml is None else parse_proposed_template(proposal_toml, applied_template.template)
    )
    if proposed_template is None:
        return ProposalResult(applied_template, answer.usage)
    applied_proposal = await run_in_daemon_thread(lambda: applied_template.apply_other_template(proposed_template))
    if not is_at_least_as_good(applied_proposal, applied_template):
        return ProposalResult(applied_template, answer.usage)
    return ProposalResult(applied_proposal, answer.usage, model.name)


def parse_proposed_template(proposal_toml: str, measured_template: StatementTemplate) -> StatementTemplate | None:
    """Parse the template that a model proposed; None if it is not valid.

    Template id, version and schema version are taken from ``measured_template``; the status is draft. Patterns that
    ``measured_template`` does not contain are matched as plain words, because a model's regular expression could take
    too long.
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
    """Return True if ``proposed`` reads as much as ``reference``, and as correctly.

    Its issues must not be worse than the reference's (compared by number, critical first), and it must read no fewer
    transactions and meet no fewer sums.
    """
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


#: Fields of a template whose values are patterns.
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
