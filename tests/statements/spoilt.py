"""Templates that go to a person: of drawn statements, spoilt on purpose, with what both reviewers measure of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from statements.drawn import Drawn, draw
from statements.faults import inverted

from evalkit.documents.bundle import DocumentBundle
from evalkit.documents.readers import read_document
from evalkit.review.case_files import SMEPacketGenerator, publish_packet_unless_frozen
from evalkit.statements.applied_template import AppliedTemplate
from evalkit.statements.convergence import EscalationReason
from evalkit.statements.review_cycles import ConvergencePoint, Escalation, PersistentIssue, ReportedIssue, TemplateCase
from evalkit.statements.rule_based_review import review_by_rules
from evalkit.statements.statement_template import StatementTemplate, render_template_toml
from evalkit.statements.template_builder import build_draft_template
from evalkit.store import OutputFolder, OutputIndex, bundle_file_name, template_file_name

AT = "2026-11-20T10:00:00+00:00"
Spoil = Callable[[StatementTemplate, AppliedTemplate], StatementTemplate]


@dataclass(frozen=True)
class Spoilt:
    """A statement, the template that reads all of it, and the one that a person is asked about."""

    drawn: Drawn
    bundle: DocumentBundle
    sound: StatementTemplate
    case: TemplateCase

    @property
    def case_id(self) -> str:
        return f"{self.case.template_id}.statement_template"


def without_last_row(template: StatementTemplate, reading: AppliedTemplate) -> StatementTemplate:
    """The box of the last page ends between the last two rows."""
    before, last = reading.statement.transactions[-2:]
    pages = len(reading.lines_by_page)
    bottom = (before.boxes[-1][3] + last.boxes[0][1]) / 2
    plain = template.model_dump(mode="json")
    for at in template.find_region_indices(last.page, pages):
        plain["region"][at]["box"][3] = round(bottom, 4)
    return StatementTemplate.model_validate(plain)


def with_signs_inverted(template: StatementTemplate, reading: AppliedTemplate) -> StatementTemplate:
    """Debits are read as credits."""
    plain = template.model_dump(mode="json")
    inverted(plain)
    return StatementTemplate.model_validate(plain)


def spoil_template(
    folder: Path,
    name: str,
    shape: str = "signed amounts",
    seed: int = 3,
    spoil: Spoil = without_last_row,
    reason: EscalationReason = "max_retries_exceeded",
    **changed: Any,
) -> Spoilt:
    """A statement of that shape, and a spoilt template of it, named ``name``; ``changed`` are fields of the template."""
    drawn = draw(shape, seed)
    path = folder / f"{name}.pdf"
    path.write_bytes(drawn.pdf)
    bundle = read_document(path, doc_id=name, processing_timestamp="")
    sound = build_draft_template(bundle).template.model_copy(update={"template_id": f"{name}_bank", **changed})
    wrong = spoil(sound, AppliedTemplate.create(sound, bundle))
    reading = AppliedTemplate.create(wrong, bundle)
    reports = tuple(
        review_by_rules(reading, role, reviewer_id=role, reviewed_at=AT)
        for role in ("layout_geometry", "semantic_financial")
    )
    issues = tuple(
        ReportedIssue(issue=issue, reported_by=(report.reviewer_role,)) for report in reports for issue in report.issues
    )
    escalation = Escalation(
        escalation_reason=reason,
        attempt_count=4,
        all_reviewer_reports=reports,
        convergence_history=tuple(ConvergencePoint(attempt=at, issues=len(issues), score=0.0) for at in range(1, 5)),
        persistent_issues=(
            PersistentIssue(
                issue_id=issues[0].issue.issue_id,
                reported_in_attempts=(1, 2, 3, 4),
                suggested_fixes_tried=(issues[0].issue.suggested_fix,),
            ),
        )
        if issues
        else (),
        recommendation="Move the box's edge by hand.",
    )
    case = TemplateCase(
        template_id=wrong.template_id, template=render_template_toml(wrong), issues=issues, escalation=escalation
    )
    return Spoilt(drawn, bundle, sound, case)


def publish_template_case(files: OutputFolder, index: OutputIndex, one: Spoilt) -> None:
    """What a run leaves when it asks a person: the statement, the draft, and the case in the queue."""
    files.write_json(bundle_file_name(one.bundle.doc_id), one.bundle.model_dump(mode="json"))
    files.write_text(template_file_name(one.case.template_id), one.case.template)
    publish_packet_unless_frozen(
        files, index, SMEPacketGenerator().template_packet(one.case, one.bundle, created_at=AT)
    )
