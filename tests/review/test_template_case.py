"""Cases about statement templates: what goes to a person, what an expert may change, and what is true afterwards."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import open_folder
from statements.measuring import rows_of
from statements.spoilt import Spoilt, publish_template_case, spoil_template, with_signs_inverted
from typer.testing import CliRunner

from evalkit.cli import app
from evalkit.errors import EvalkitError, NotFound, ReviewRefused, StoreError, UsageError
from evalkit.evaluation.ground_truth_table import load_ground_truth
from evalkit.issue import IssueSeverity
from evalkit.review import Draft, QueueQuery, TemplateReviewCase, compute_packet_digest
from evalkit.review import ReviewSession as Tab
from evalkit.review.attention_checks import get_attention_check_file_name
from evalkit.review.case_files import SMEPacketGenerator, publish_packet_unless_frozen, read_packet
from evalkit.review.index_rebuild import reindex
from evalkit.review.kinds import get_packet_class
from evalkit.review.kinds.statement_template import TEMPLATE_ESCALATION_REASONS
from evalkit.review.template_editing import (
    MIN_EXTENT,
    TEMPLATE_CHOICES,
    add_region_for_page_kind,
    apply_choice,
    describe_template_changes,
    extract_template_if_edited,
    get_edge_page_fraction,
    list_column_edge_names_and_labels,
    move_template_edge,
    rename_column_with_dependents,
)
from evalkit.statements.applied_template import AppliedTemplate
from evalkit.statements.convergence import EscalationReason
from evalkit.statements.review_cycles import ReportedIssue, TemplateCase
from evalkit.statements.reviewer_report import Resolution, TemplateIssue
from evalkit.statements.statement_template import (
    StatementTemplate,
    TemplateStatus,
    parse_template_toml,
    render_template_toml,
)
from evalkit.store import LocalOutputFolder, OutputFolder, packet_file_name

AT = "2026-11-20T10:00:00+00:00"


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Spoilt:
    """A statement of one page, whose box ends before the last row."""
    return spoil_template(tmp_path_factory.mktemp("drawn"), "one")


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Spoilt:
    """A statement of several pages, with debits and credits apart, whose last box ends before the last row."""
    return spoil_template(tmp_path_factory.mktemp("long"), "long", "over several pages")


class Bank:
    """An output folder in which a template went to a person."""

    def __init__(self, desk: Any, one: Spoilt) -> None:
        self.desk, self.files, self.index, self.one = desk, desk.files, desk.index, one
        publish_template_case(self.files, self.index, one)

    @property
    def case_id(self) -> str:
        return self.one.case_id

    @property
    def draft(self) -> StatementTemplate:
        """The template as the person got it."""
        return parse_template_toml(self.one.case.template, "")

    @property
    def mended(self) -> StatementTemplate:
        """The one that reads the whole statement."""
        return self.one.sound

    def stored(self) -> StatementTemplate:
        name = f"templates/{self.one.case.template_id}.toml"
        return parse_template_toml(self.files.read_bytes(name).decode(), name)

    def truth(self) -> dict[str, Any] | None:
        return self.desk.truth(self.case_id)


@pytest.fixture
def bank(workspace: Any, drawn: Spoilt) -> Bank:
    return Bank(workspace, drawn)


def opened(tab: Tab, case_id: str) -> tuple[TemplateReviewCase, Draft]:
    """The case, with all that must be seen seen."""
    case = tab.open_and_claim_case(case_id)
    assert isinstance(case, TemplateReviewCase)
    draft = case.draft
    for page in case.list_pages_with_region(draft):
        draft = draft.show_page_and_mark_seen(page)
    for one in case.issues_within_caps:
        name = one.issue.issue_id
        draft = case.mark_target_and_page_seen(draft, name, case.locate_target(name, draft).page)
    return case, draft


def mended(case: TemplateReviewCase, draft: Draft, one: Spoilt) -> Draft:
    """The draft whose edges are where the sound template has them."""
    for at, region in enumerate(one.sound.regions):
        draft = case.move_edge(draft, f"region.{at}.bottom", region.box[3])
    return draft


# --- the packet ---------------------------------------------------------------------------------------------------


def test_the_packet_ranks_what_reviewers_said_and_keeps_it_whole(bank: Bank, open_tab: Any) -> None:
    packet = read_packet(bank.files, bank.case_id)
    assert (packet.kind, packet.case_id, packet.doc_id) == ("statement_template", "one_bank.statement_template", "one")
    assert packet.decision_reason == "the automatic checks still find faults in the template after its last revision"
    assert packet.template_case == bank.one.case
    assert {one.agent for one in packet.issues} == {"layout_geometry", "semantic_financial"}
    assert not packet.is_first_review_blind
    (row,) = open_tab().load_queue_page().rows
    assert (row.kind, row.blocker, row.dominant_type, row.source) == ("statement_template", 3, "Statement template", "")


@pytest.mark.parametrize(
    ("told", "rank"),
    [("critical", "BLOCKER"), ("high", "BLOCKER"), ("medium", "MAJOR"), ("low", "MINOR")],
)
def test_each_severity_has_its_rank(drawn: Spoilt, told: Any, rank: str) -> None:
    issue = TemplateIssue(issue_id="a_001", severity=told, category="sign_logic", message="m", page=1)
    dismissed = Resolution(issue_id="a_001", winning_reviewer="neither", final_severity="dismissed")
    case = drawn.case.model_copy(
        update={"issues": (ReportedIssue(issue=issue, reported_by=("arbitrator",), resolution=dismissed),)}
    )
    packet = SMEPacketGenerator().template_packet(case, drawn.bundle, created_at=AT)
    (made,) = packet.open_issues
    assert (made.severity, made.code, made.agent) == (IssueSeverity(rank), "TEMPLATE-SIGN-LOGIC", "arbitrator")


@pytest.mark.parametrize("reason", TEMPLATE_ESCALATION_REASONS)
def test_every_reason_to_escalate_is_a_sentence(drawn: Spoilt, reason: EscalationReason) -> None:
    escalation = drawn.case.escalation.model_copy(update={"escalation_reason": reason})
    case = drawn.case.model_copy(update={"escalation": escalation})
    packet = SMEPacketGenerator().template_packet(case, drawn.bundle, created_at=AT)
    assert " " in packet.decision_reason
    assert "_" not in packet.decision_reason


def test_other_packets_say_nothing_of_templates(build: Any, workspace: Any) -> None:
    packet = workspace.publish(build.single("Other"), [build.issue()])
    stored = workspace.files.read_json(packet_file_name("doc2_6"))
    assert "template_case" not in stored
    assert compute_packet_digest(get_packet_class(stored).model_validate(stored)) == compute_packet_digest(packet)


def test_a_packet_without_its_template_is_damaged(bank: Bank, open_tab: Any) -> None:
    stored = bank.files.read_json(packet_file_name(bank.case_id))
    del stored["template_case"]
    bank.files.write_json(packet_file_name(bank.case_id), stored)
    with pytest.raises(StoreError):
        open_tab().open_and_claim_case(bank.case_id)


def test_show_prints_template_without_control_characters(bank: Bank) -> None:
    words = ["--output", str(bank.desk.root)]
    shown = CliRunner().invoke(app, ["show", bank.case_id, *words])
    assert shown.exit_code == 0
    for wanted in ("after its last revision", "[BLOCKER] layout_geometry_001", "[[region]]"):
        assert wanted in shown.output
    as_json = json.loads(CliRunner().invoke(app, ["show", bank.case_id, "--json", *words]).stdout)
    assert as_json["template_case"]["template_id"] == "one_bank"
    hostile = bank.one.case.model_copy(update={"template": "# \x1b[2J"})
    packet = SMEPacketGenerator().template_packet(hostile, bank.one.bundle, created_at=AT)
    publish_packet_unless_frozen(bank.files, bank.index, packet)
    assert "\x1b" not in CliRunner().invoke(app, ["show", bank.case_id, *words]).output


def test_the_queue_finds_it_by_kind_and_by_who_raised_it(bank: Bank, open_tab: Any) -> None:
    for view in (QueueQuery(kind="statement_template"), QueueQuery.from_message({"agent": "layout_geometry"})):
        assert [row.case_id for row in open_tab().load_queue_page(view).rows] == [bank.case_id]
    assert open_tab().choose_next_case_id() == bank.case_id


# --- moves --------------------------------------------------------------------------------------------------------


def test_a_shared_edge_moves_both_columns_and_stays_shared(drawn: Spoilt) -> None:
    template = drawn.sound
    assert get_edge_page_fraction(template, "column.0.right") == get_edge_page_fraction(template, "column.1.left")
    named = dict(list_column_edge_names_and_labels(template, template))
    assert "edge between date and description" in named.values()
    after = move_template_edge(template, "column.1.left", 0.3, opened_template=template)
    assert (after.columns[0].x[1], after.columns[1].x[0]) == (0.3, 0.3)
    # An edge that only comes to lie on its neighbour's does not stick to it.
    apart = template.model_copy(
        update={"columns": (template.columns[0].model_copy(update={"x": (0.01, 0.15)}), *template.columns[1:])}
    )
    back = move_template_edge(
        move_template_edge(apart, "column.0.right", template.columns[1].x[0], opened_template=apart),
        "column.0.right",
        0.15,
        opened_template=apart,
    )
    assert back == apart


edges = st.sampled_from(
    [f"region.0.{side}" for side in ("left", "top", "right", "bottom")]
    + [f"column.{at}.{side}" for at in range(4) for side in ("left", "right")]
)


@given(moves=st.lists(st.tuples(edges, st.floats(-0.5, 1.5)), max_size=8))
def test_whatever_is_moved_the_template_is_one_and_reads_back(drawn: Spoilt, moves: list[tuple[str, float]]) -> None:
    template = drawn.sound
    for name, to in moves:
        template = move_template_edge(template, name, to, opened_template=drawn.sound)
        assert get_edge_page_fraction(template, name) == pytest.approx(min(max(to, 0), 1), abs=1e-4) or _is_held(
            template, name
        )
    assert parse_template_toml(render_template_toml(template), "") == template
    told = list(describe_template_changes(drawn.sound, template))
    assert bool(told) == (template != drawn.sound)


def _is_held(template: StatementTemplate, name: str) -> bool:
    """Whether the edge, or the one that it shares its place with, stands as near to another as there is room."""
    boxes = [(box[0], box[2]) for box in (region.box for region in template.regions)]
    heights = [(region.box[1], region.box[3]) for region in template.regions]
    spans = [*boxes, *heights, *(column.x for column in template.columns)]
    return any(end - start < MIN_EXTENT + 2e-4 for start, end in spans)


@pytest.mark.parametrize("name", ["region.9.top", "column.0.top", "column.99.left", "nonsense", "region.0.middle"])
def test_an_edge_that_there_is_not_is_refused(drawn: Spoilt, name: str) -> None:
    with pytest.raises(ReviewRefused, match="no edge of this name"):
        move_template_edge(drawn.sound, name, 0.5, opened_template=drawn.sound)


def names(template: StatementTemplate) -> list[str]:
    return [column.name for column in template.columns]


def test_columns_are_swapped_and_amount_is_split_into_sides(drawn: Spoilt, long: Spoilt) -> None:
    assert names(drawn.sound) == ["date", "description", "amount", "balance"]
    assert names(rename_column_with_dependents(drawn.sound, 2, "balance")) == [
        "date",
        "description",
        "balance",
        "amount",
    ]
    assert names(rename_column_with_dependents(drawn.sound, 3, "credit")) == ["date", "description", "debit", "credit"]
    assert names(long.sound)[2:] == ["debit", "credit", "balance"]
    assert names(rename_column_with_dependents(long.sound, 2, "credit"))[2:] == ["credit", "debit", "balance"]
    assert names(rename_column_with_dependents(long.sound, 3, "amount"))[2:] == ["other", "amount", "balance"]
    with pytest.raises(ReviewRefused, match="a template needs"):
        rename_column_with_dependents(drawn.sound, 0, "other")
    with pytest.raises(ReviewRefused):
        rename_column_with_dependents(drawn.sound, 0, "nonsense")


@pytest.mark.parametrize(
    ("kept", "page", "kind"),
    [("first", 2, "later"), ("first", 3, "later"), ("later", 1, "first"), ("last", 2, "middle")],
)
def test_a_page_without_a_box_gets_one(long: Spoilt, kept: str, page: int, kind: str) -> None:
    region = long.sound.regions[0].model_copy(update={"pages": kept})
    template = long.sound.model_copy(update={"regions": (region,)})
    after = add_region_for_page_kind(template, page, 3)
    assert [one.pages for one in after.regions] == [kept, kind]
    assert after.find_region_indices(page, 3) == (1,)
    (told,) = describe_template_changes(template, after)
    assert told.startswith("A box is added: transactions on ")
    moved_too = list(
        describe_template_changes(template, move_template_edge(after, "region.0.top", 0.2, opened_template=template))
    )
    assert len(moved_too) == 2
    with pytest.raises(ReviewRefused, match="already has a box"):
        add_region_for_page_kind(after, page, 3)


def test_each_choice_can_be_made_and_is_told_in_words(drawn: Spoilt) -> None:
    for what, choice in TEMPLATE_CHOICES.items():
        for value in choice.list_options(drawn.sound):
            after = apply_choice(drawn.sound, what, value)
            assert choice.read_value(after) == value
            told = list(describe_template_changes(drawn.sound, after))
            assert len(told) == (after != drawn.sound)
            assert all(choice.question in one for one in told)
        with pytest.raises(ReviewRefused):
            apply_choice(drawn.sound, what, "nonsense")


# --- on the screen ------------------------------------------------------------------------------------------------


def test_approval_needs_seen_pages_and_reason_for_unmet_sums(bank: Bank, open_tab: Any) -> None:
    lee = open_tab()
    case = lee.open_and_claim_case(bank.case_id)
    assert case.explain_approval_block(case.draft) == "3 grave doubts and page 1 not yet seen"
    with pytest.raises(ReviewRefused, match="not yet seen"):
        lee.submit_review(bank.case_id, mended(case, case.draft, bank.one))
    case, draft = opened(lee, bank.case_id)
    assert (
        case.explain_approval_block(draft)
        == "2 of 4 sums do not add up: say why the template may be approved, or correct it."
    )
    with pytest.raises(ReviewRefused, match="2 of 4 sums do not add up"):
        lee.submit_review(bank.case_id, draft, validate=True)
    assert case.explain_approval_block(draft.set_unmet_sums_reason("a stamp hides the row")) is None
    assert case.explain_approval_block(mended(case, draft, bank.one)) is None
    assert draft.set_unmet_sums_reason("x").set_template(bank.mended).unmet_sums == "", "it was said of another reading"


def test_a_template_that_reads_nothing_cannot_be_approved(bank: Bank, open_tab: Any) -> None:
    case, draft = opened(open_tab(), bank.case_id)
    draft = case.move_edge(draft, "region.0.bottom", 0).set_unmet_sums_reason("no reason is good enough")
    assert case.apply_template(draft).statement.transactions == ()
    assert (
        case.explain_approval_block(draft) == "The template reads no row of this statement: correct it, or reject it."
    )


def test_what_is_read_has_its_place_and_what_is_not_is_not_found(bank: Bank, open_tab: Any) -> None:
    case, draft = opened(open_tab(), bank.case_id)
    reading = case.apply_template(draft)
    rows = reading.statement.transactions
    assert case.locate_target("row.1", draft).boxes == ((1, *rows[0].boxes[0]),)
    assert case.locate_target("outside.1", draft).style == "near"
    cut = case.locate_target("layout_geometry_001", draft)
    assert cut.boxes == ((1, *reading.statement.outside[0].box),), "the row that was cut off is outlined"
    for at in range(1, len(reading.reconciliation.checks) + 1):
        assert case.locate_target(f"sum.{at}", draft).page == 1
    for name in (f"row.{len(rows) + 1}", "row.0", "left.1", "nonsense"):
        with pytest.raises(NotFound):
            case.locate_target(name, draft)
    assert not case.has_target("outside.1", mended(case, draft, bank.one))


def test_more_of_the_same_issue_is_not_asked_thirty_times(drawn: Spoilt) -> None:
    many = tuple(
        ReportedIssue(
            issue=TemplateIssue(
                issue_id=f"r_{at:03}", severity="high", category="reconciliation_strategy", message=f"row {at}"
            ),
            reported_by=("semantic_financial",),
        )
        for at in range(30)
    )
    packet = SMEPacketGenerator().template_packet(
        drawn.case.model_copy(update={"issues": many}), drawn.bundle, created_at=AT
    )
    case = TemplateReviewCase(packet, drawn.bundle, 0, Draft.from_packet(packet), None, False, ())
    assert (
        len(packet.issues),
        len(case.issues_within_caps),
        len(case.get_viewing_requirements(case.draft).issue_ids),
    ) == (30, 2, 2)


def test_draft_is_stored_and_rebased_onto_a_new_packet(bank: Bank, open_tab: Any) -> None:
    case, draft = opened(open_tab(), bank.case_id)
    draft = case.move_edge(draft, "region.0.top", 0.2)
    assert Draft.model_validate_json(draft.model_dump_json()) == draft
    fresh = Draft.from_packet(case.packet)
    assert draft.rebase_onto(fresh).template == draft.template
    assert draft.rebase_onto(fresh).evidence_seen == ()
    longer = Draft.from_packet(case.packet.model_copy(update={"total_pages": 9}))
    assert draft.rebase_onto(longer).template == draft.template


# --- what is true afterwards --------------------------------------------------------------------------------------


def test_a_changed_template_becomes_stable_with_a_new_version(bank: Bank, open_tab: Any) -> None:
    lee = open_tab()
    case, draft = opened(lee, bank.case_id)
    done = lee.submit_review(bank.case_id, mended(case, draft, bank.one))
    assert (done.review.outcome, done.review.vouched) == ("corrected", ("template",))
    stored = bank.stored()
    assert (stored.status, stored.version) == (TemplateStatus.STABLE, 2)
    assert extract_template_if_edited(case.agent_template, stored) == bank.mended
    rows = rows_of(bank.one.drawn, AppliedTemplate.create(stored, bank.one.bundle).statement)
    assert rows.there == rows.right == rows.read
    truth = bank.truth()
    assert truth is not None
    assert (truth["ground_truth_source"], truth["vouched"]) == ("SME_CORRECTED", ["template"])
    assert StatementTemplate.model_validate(truth["ground_truth_template"]) == stored
    review = bank.files.read_json(f"reviews/{bank.case_id}/0001.json")
    assert review["before"]["version"] == 1
    assert "unmet_sums" not in review
    assert set(review["evidence_seen"]) == set(case.get_viewing_requirements(case.draft).issue_ids)


def test_unchanged_template_keeps_version_and_needs_a_reason(bank: Bank, open_tab: Any) -> None:
    lee = open_tab()
    _, draft = opened(lee, bank.case_id)
    done = lee.submit_review(bank.case_id, draft.set_unmet_sums_reason("a stamp hides the row"), validate=True)
    assert (done.review.outcome, done.review.unmet_sums) == ("validated", "a stamp hides the row")
    assert (bank.stored().status, bank.stored().version) == (TemplateStatus.STABLE, 1)
    assert (bank.truth() or {})["unmet_sums"] == "a stamp hides the row"


def test_a_rejected_template_stays_a_draft_and_leaves_no_truth(bank: Bank, open_tab: Any) -> None:
    lee = open_tab()
    case, draft = opened(lee, bank.case_id)
    done = lee.submit_review(bank.case_id, mended(case, draft, bank.one), undeterminable_reason="another bank's layout")
    assert (done.review.outcome, done.review.after, done.review.vouched) == ("undeterminable", None, ())
    assert bank.stored() == bank.draft
    assert bank.truth() is None
    assert bank.index.list_cases_worst_first("pending") == []


def test_a_closed_case_shows_the_template_as_approved(bank: Bank, open_tab: Any) -> None:
    lee = open_tab()
    case, draft = opened(lee, bank.case_id)
    lee.submit_review(bank.case_id, mended(case, draft, bank.one))
    case = open_tab("dr_kim").open_and_claim_case(bank.case_id)
    assert case.draft.template == bank.mended
    assert case.closing_review.outcome == "corrected"


def test_a_reopened_review_gives_the_draft_back(bank: Bank, open_tab: Any) -> None:
    lee = open_tab()
    case, draft = opened(lee, bank.case_id)
    said = mended(case, draft, bank.one)
    lee.submit_review(bank.case_id, said)
    assert lee.undo_last_submission_and_get_case_id() == bank.case_id
    assert bank.stored() == bank.draft
    assert bank.truth() is None
    case = lee.open_and_claim_case(bank.case_id)
    assert case.draft.template == said.template
    lee.submit_review(bank.case_id, case.draft)
    assert bank.stored().version == 2, "it is the draft's next version, not the withdrawn one's"


def test_from_python_the_same_rules_hold(bank: Bank) -> None:
    helper = bank.desk.helper()
    with pytest.raises(ReviewRefused, match="sums do not add up"):
        helper.save_review(bank.case_id, agrees=True)
    with pytest.raises(ReviewRefused, match="not about fields"):
        helper.save_review(bank.case_id, corrected_fields={"x": "1"})
    with pytest.raises(ReviewRefused, match="about a statement template"):
        helper.save_review(bank.case_id, corrected_dominant_type="Other")
    with pytest.raises(ReviewRefused, match="wrong template_id"):
        helper.save_review(bank.case_id, corrected_template=bank.mended.model_copy(update={"template_id": "other"}))
    with pytest.raises(ReviewRefused, match="Expected '='"):
        helper.save_review(bank.case_id, corrected_template="nonsense")
    with pytest.raises(ReviewRefused, match="all sums add up"):
        helper.save_review(bank.case_id, corrected_template=bank.mended, unmet_sums="why not")
    assert bank.stored() == bank.draft, "nothing was written"
    helper.save_review(bank.case_id, corrected_template=render_template_toml(bank.mended), correction_notes="by hand")
    assert (bank.stored().status, bank.stored().version) == (TemplateStatus.STABLE, 2)


def test_another_case_takes_no_template(build: Any, workspace: Any, drawn: Spoilt) -> None:
    workspace.publish(build.single("Other"), [build.issue()])
    with pytest.raises(ReviewRefused, match="not about a statement template"):
        workspace.helper().save_review("doc2_6", corrected_template=drawn.sound)


def test_templates_are_no_labels(bank: Bank) -> None:
    bank.desk.helper().save_review(bank.case_id, corrected_template=bank.mended)
    assert load_ground_truth(bank.desk.root).empty


def test_template_review_leaves_cases_of_the_statement_alone(bank: Bank, caplog: pytest.LogCaptureFixture) -> None:
    """They have a turn of their own, which whoever reviews the template has not."""
    statement = read_packet(bank.files, bank.case_id).doc_id
    name = f"{statement}-0a1b2c3d"
    bank.files.write_json(
        get_attention_check_file_name(name), {"schema_version": 1, "would": "be refused if it were looked at"}
    )
    bank.files.write_json(packet_file_name(name), {"schema_version": 1})
    bank.desk.helper().save_review(bank.case_id, corrected_template=bank.mended)
    assert bank.files.has_file(packet_file_name(name))
    assert [message for message in caplog.messages if not message.startswith("the index")] == []


def test_signs_are_put_right_by_two_choices(tmp_path: Path, workspace: Any, open_tab: Any) -> None:
    bank = Bank(workspace, spoil_template(tmp_path, "signs", "debit and credit columns", 5, with_signs_inverted))
    lee = open_tab()
    case, draft = opened(lee, bank.case_id)
    assert case.describe_unmet_sums(draft)
    at = names(case.agent_template).index("debit")
    draft = case.edit_template(draft, rename_column_with_dependents, at, "credit")
    assert not case.describe_unmet_sums(draft)
    assert any("debit (money out) → credit (money in)" in one for one in case.describe_changes(draft))
    lee.submit_review(bank.case_id, draft)
    rows = rows_of(bank.one.drawn, AppliedTemplate.create(bank.stored(), bank.one.bundle).statement)
    assert rows.there == rows.right


# --- further opinions ---------------------------------------------------------------------------------------------


def test_template_stays_draft_until_a_third_expert_decides(bank: Bank, open_tab: Any) -> None:
    lee = open_tab("dr_lee")
    case, draft = opened(lee, bank.case_id)
    lee.submit_and_request_second_opinion(bank.case_id, mended(case, draft, bank.one), "is that all of it?")
    assert bank.stored() == bank.draft, "in doubt it is not relied on"
    kim = open_tab("dr_kim")
    second, draft = opened(kim, f"{bank.case_id}.second")
    assert (second.second_opinion_reason, second.is_blind, draft.template) == ("is that all of it?", False, None)
    kim.submit_review(f"{bank.case_id}.second", draft.set_unmet_sums_reason("the row is no row"), validate=True)
    assert bank.stored() == bank.draft
    judge = open_tab("dr_judge")
    third, draft = opened(judge, f"{bank.case_id}.adjudication")
    assert {one.draft.template == bank.mended for one in third.opinions} == {True, False}
    taken = next(one.draft for one in third.opinions if one.draft.template)
    judge.submit_review(f"{bank.case_id}.adjudication", draft.set_template(taken.template))
    assert (bank.stored().status, bank.stored().version) == (TemplateStatus.STABLE, 2)
    assert (bank.truth() or {})["reviewer"] == "dr_judge"


def test_two_experts_who_agree_make_it_stable(bank: Bank, open_tab: Any) -> None:
    lee, kim = open_tab("dr_lee"), open_tab("dr_kim")
    case, draft = opened(lee, bank.case_id)
    lee.submit_and_request_second_opinion(bank.case_id, mended(case, draft, bank.one), "is that all of it?")
    case, draft = opened(kim, f"{bank.case_id}.second")
    kim.submit_review(f"{bank.case_id}.second", mended(case, draft, bank.one))
    assert bank.stored().status is TemplateStatus.STABLE


@pytest.mark.parametrize(("by", "agree"), [(0.003, True), (0.008, False)])
def test_two_hands_drop_no_edge_on_the_same_spot(bank: Bank, open_tab: Any, by: float, agree: bool) -> None:
    lee, kim = open_tab("dr_lee"), open_tab("dr_kim")
    case, draft = opened(lee, bank.case_id)
    lee.submit_and_request_second_opinion(bank.case_id, mended(case, draft, bank.one), "is that all of it?")
    case, draft = opened(kim, f"{bank.case_id}.second")
    theirs = mended(case, draft, bank.one)
    bottom = get_edge_page_fraction(case.get_template(theirs), "region.0.bottom")
    theirs = case.move_edge(theirs, "region.0.bottom", bottom + by)
    assert case.describe_unmet_sums(theirs) == ""
    kim.submit_review(f"{bank.case_id}.second", theirs)
    assert (bank.stored() == bank.mended.model_copy(update={"status": TemplateStatus.STABLE, "version": 2})) is agree
    assert bank.files.has_file(packet_file_name(f"{bank.case_id}.adjudication")) is not agree


def test_sums_that_only_one_of_two_experts_met_are_no_agreement(bank: Bank, open_tab: Any) -> None:
    lee, kim = open_tab("dr_lee"), open_tab("dr_kim")
    case, draft = opened(lee, bank.case_id)
    row = case.apply_template(draft).statement.outside[0].box
    met = case.move_edge(draft, "region.0.bottom", (row[1] + row[3]) / 2 + 0.001)
    unmet = case.move_edge(draft, "region.0.bottom", (row[1] + row[3]) / 2 - 0.001)
    assert (case.describe_unmet_sums(met), bool(case.describe_unmet_sums(unmet))) == ("", True)
    lee.submit_and_request_second_opinion(bank.case_id, met, "is that all of it?")
    case, draft = opened(kim, f"{bank.case_id}.second")
    kim.submit_review(
        f"{bank.case_id}.second", draft.set_template(unmet.template).set_unmet_sums_reason("the row is no row")
    )
    assert bank.stored() == bank.draft
    assert bank.files.has_file(packet_file_name(f"{bank.case_id}.adjudication"))


# --- crashes ------------------------------------------------------------------------------------------------------


class Killed(BaseException):
    """The process is gone."""


def killed_at(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Die before the write of that number, from 0, whatever it writes."""
    left = [count]
    for name in ("write_json", "write_text", "remove_file", "create_json_if_absent"):
        real: Callable[..., Any] = getattr(LocalOutputFolder, name)

        def dying(self: OutputFolder, *words: Any, _real: Callable[..., Any] = real, **more: Any) -> Any:
            if left[0] == 0:
                raise Killed
            left[0] -= 1
            return _real(self, *words, **more)

        monkeypatch.setattr(LocalOutputFolder, name, dying)


def state(bank: Bank) -> dict[str, Any]:
    packet = bank.files.read_json(packet_file_name(bank.case_id))
    truth = bank.truth()
    return {
        "template": bank.stored(),
        "truth": truth and truth | {"reviewed_at": ""},
        "status": packet["review_status"],
    }


def writes() -> Iterator[int]:
    yield from range(8)


@pytest.mark.parametrize("undo", [False, True], ids=["approved", "reopened"])
def test_reindex_heals_a_crash_at_any_write(
    bank: Bank, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, undo: bool
) -> None:
    def act() -> None:
        with closing(bank.desk.helper()) as helper:  # anew: its database goes with the folder
            if undo:
                helper.reopen(bank.case_id, "wrong statement")
            else:
                helper.save_review(bank.case_id, corrected_template=bank.mended)

    if undo:
        bank.desk.helper().save_review(bank.case_id, corrected_template=bank.mended)
    shutil.copytree(bank.desk.root, tmp_path / "kept")
    before = state(bank)
    act()
    wanted = state(bank)
    assert wanted != before
    ends = 0
    for count in writes():
        shutil.rmtree(bank.desk.root)
        shutil.copytree(tmp_path / "kept", bank.desk.root)
        with monkeypatch.context() as patch:
            killed_at(patch, count)
            try:
                act()
                ends += 1
            except Killed:
                pass
        reindex(open_folder(bank.desk.root))
        assert state(bank) == (before if count == 0 else wanted), f"killed at write {count}"
        reindex(open_folder(bank.desk.root))
        assert state(bank) == (before if count == 0 else wanted)
    assert 1 <= ends < 6, "the kills reached every write"


def test_reindex_leaves_what_was_made_since_alone(bank: Bank) -> None:
    helper = bank.desk.helper()
    helper.save_review(bank.case_id, corrected_template=bank.mended)
    newer = bank.stored().model_copy(update={"version": 3, "status": TemplateStatus.DRAFT})
    name = f"templates/{bank.one.case.template_id}.toml"
    bank.files.write_text(name, render_template_toml(newer))
    reindex(open_folder(bank.desk.root))
    assert bank.stored() == newer
    helper.reopen(bank.case_id, "another look")
    assert bank.stored() == newer
    bank.files.write_text(name, "torn")
    reindex(open_folder(bank.desk.root))
    assert bank.stored() == bank.draft


def test_without_a_review_nothing_is_written(bank: Bank) -> None:
    name = f"templates/{bank.one.case.template_id}.toml"
    by_hand = bank.one.case.template + "# a remark\n"
    bank.files.write_text(name, by_hand)
    reindex(open_folder(bank.desk.root))
    assert bank.files.read_bytes(name).decode() == by_hand


def test_a_template_that_cannot_be_read_is_refused_not_shown(bank: Bank, open_tab: Any) -> None:
    broken = bank.one.case.model_copy(update={"template": "nonsense"})
    packet = SMEPacketGenerator().template_packet(broken, bank.one.bundle, created_at=AT)
    publish_packet_unless_frozen(bank.files, bank.index, packet)
    with pytest.raises(UsageError):
        open_tab().open_and_claim_case(bank.case_id).apply_template(Draft.from_packet(packet))
    with pytest.raises(EvalkitError):
        bank.desk.helper().save_review(bank.case_id, agrees=True)


def test_a_packet_reads_back_as_it_was_written(bank: Bank) -> None:
    packet = read_packet(bank.files, bank.case_id)
    assert type(packet).model_validate(packet.model_dump(mode="json")) == packet
    assert isinstance(packet.template_case, TemplateCase)
