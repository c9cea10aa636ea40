"""Cases about fields: what goes to a person, what an expert may say, and what is true afterwards."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import open_folder
from typer.testing import CliRunner

from evalkit.cli import app
from evalkit.errors import CaseTaken, NotFound, ReviewConflict, ReviewRefused, StoreError
from evalkit.extraction.extraction_schema import Extraction, Extractions, FieldStatus, FieldValue, IterationRecord
from evalkit.extraction.field_template import get_field_template
from evalkit.issue import Issue, IssueSeverity, QuoteVerdict
from evalkit.pipeline.field_extraction import load_finished_extractions, queue_fields_or_write_silver_truth
from evalkit.review import FieldAnswer, FieldReviewCase, QueueQuery, SMEPacket, compute_packet_digest
from evalkit.review import ReviewSession as Tab
from evalkit.review.case import HighlightedPlace
from evalkit.review.case_files import SMEPacketGenerator, publish_packet_unless_frozen, read_packet
from evalkit.review.field_answers import (
    ExtractedFields,
    apply_and_locate_field_answers,
    check_field_text,
    find_changed_fields,
    index_fields_by_key,
    is_extraction_review_required,
    parse_field_answer,
)
from evalkit.review.ground_truth import withdraw_silver_ground_truth, write_silver_ground_truth
from evalkit.review.index_rebuild import reindex
from evalkit.review.kinds import get_packet_class
from evalkit.store import bundle_file_name

CASE = "doc2_6.extraction"
TAX, WAGES, NUMBER, TIPS = (f"1.{name}" for name in ("ss_tax_withheld", "wages_tips", "control_number", "box_7"))
PAGES = (
    ("Wages, tips, other compensation 78,819.40", "Social security tax withheld 9,999.99", "paid 4,886.80"),
    ("Nonemployee compensation 512.00",),
)


def found(value: str, raw: str, page: int = 1, *, boxed: bool = True) -> FieldValue:
    boxes = ((page, 0.1, 0.1, 0.9, 0.2),) if boxed else ()
    return FieldValue(status=FieldStatus.FOUND, value=value, raw=raw, page=page, quote=raw, boxes=boxes, confidence=0.9)


def issue(number: int = 1, severity: str = "MAJOR", location: str = "ss_tax_withheld", **more: Any) -> Issue:
    code = more.pop("code", "GRADER-INCONSISTENT")
    message = "[WARNING:inconsistent::] Social security tax is not 6.2% - please verify"
    made = Issue.create("grader", code, IssueSeverity(severity), message, location=location, **more)
    return made.model_copy(update={"issue_id": f"GRADER-{number:04d}"})


def w2(*issues: Issue, decision: str | None = None, **more: Any) -> Extraction:
    """A W-2 on page 1 with four fields, of which the agent found two."""
    absent = FieldValue(status=FieldStatus.NOT_PRESENT)
    given: dict[str, Any] = {
        "template": "W-2",
        "document_type": "W-2",
        "start_page": 1,
        "end_page": 1,
        "score": 0.996,
        "confidence": 0.95,
        "met_threshold": True,
        "stopped_reason": "Accepted by the grader",
        "iterations": 1,
        "history": (IterationRecord(iteration=1, template="W-2", score=0.996),),
        "issues": issues,
        "decision": decision or ("ESCALATE_TO_SME" if issues else "AUTO_ACCEPT"),
        "fields": {
            "wages_tips": found("78819.40", "78,819.40"),
            "ss_tax_withheld": found("9999.99", "9,999.99"),
            "control_number": absent,
            "box_7": absent,
        },
    }
    return Extraction(**(given | more))


def nec(**more: Any) -> Extraction:
    """A 1099-NEC on page 2, accepted."""
    fields = {"nonemployee_compensation": found("512.00", "512.00", 2), "tax_year": found("2022", "2022", 2)}
    given: dict[str, Any] = {
        "template": "1099-NEC",
        "document_type": "1099-NEC",
        "start_page": 2,
        "end_page": 2,
        "fields": fields,
    }
    return w2(**(given | more))


class Office:
    """An output folder in which fields were extracted."""

    def __init__(self, build: Any, desk: Any) -> None:
        self.desk, self.files, self.index = desk, desk.files, desk.index
        self.bundle = build.bundle(PAGES)
        self.files.write_json(bundle_file_name("doc2_6"), self.bundle.model_dump(mode="json"))

    def extracted(self, *made: Extraction) -> None:
        """What follows from these extractions."""
        extractions = Extractions(
            doc_id="doc2_6",
            sha256="ab" * 32,
            fingerprint="f",
            extractions=made,
            model="embedded",
            reader="by hand",
            times={"started_at": "2025-02-01T10:00:00+00:00"},
        )
        self.files.write_json("extractions/doc2_6.json", extractions.model_dump(mode="json"))
        queue_fields_or_write_silver_truth(self.files, self.index, extractions, self.bundle)

    def packet(self) -> SMEPacket:
        return read_packet(self.files, CASE)

    @property
    def has_case(self) -> bool:
        return self.files.has_file(f"sme_packets/sme_packet_{CASE}.json")

    def truth(self) -> dict[str, Any] | None:
        return self.desk.truth(CASE)


@pytest.fixture
def office(build: Any, workspace: Any) -> Office:
    return Office(build, workspace)


def value_of(truth: Mapping[str, Any] | None, name: str, form: int = 0) -> dict[str, Any]:
    assert truth is not None
    return truth["ground_truth_fields"][form]["fields"][name]


# --- the packet ---------------------------------------------------------------------------------------------------


def test_unaccepted_fields_become_one_complete_case(office: Office) -> None:
    office.extracted(w2(issue()), nec())
    packet = office.packet()
    assert (packet.kind, packet.case_id, packet.doc_id) == ("extraction", CASE, "doc2_6")
    assert packet.decision_reason == "W-2 on page 1: amounts on it contradict each other"
    assert (packet.classification, packet.total_issues, packet.v5_decision.value) == (None, 1, "ESCALATE_TO_SME")
    assert [one.document_type for one in packet.extractions] == ["W-2", "1099-NEC"]
    (row,) = office.index.list_cases_worst_first("pending")
    assert (row["case_id"], row["kind"], row["major"]) == (CASE, "extraction", 1)
    assert office.truth() is None


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (w2(issue(code="READER-NO-TEXT")), "not every page could be read"),
        (w2(issue(code="GRADER-AGENT-FAILED")), "a step that reads or checks it gave no answer"),
        (w2(issue(code="GRADER-WRONG-YEAR")), "it is for another tax year"),
        (w2(issue(code="EXTRACTION-NOT-ON-PAGE")), "a value that the program gave is not on the page"),
        (w2(issue(code="EXTRACTION-NONE")), "none of the usual fields was found on it"),
        (w2(issue(), met_threshold=False), "the program is not sure enough of its values"),
        (w2(issue(code="GRADER-UNCERTAIN")), "some of its fields need a person to check them"),
        (w2(issue().model_copy(update={"status": "repaired"})), "some of its fields need a person to check them"),
    ],
)
def test_the_reason_is_a_sentence_for_whoever_looks_at_it(office: Office, made: Extraction, words: str) -> None:
    office.extracted(made)
    packet = office.packet()
    assert packet.decision_reason == f"W-2 on page 1: {words}"


def test_several_that_go_to_a_person_are_counted(office: Office, open_tab: Any) -> None:
    office.extracted(w2(issue()), nec(issues=(issue(2),), decision="ESCALATE_TO_SME"))
    packet = office.packet()
    assert packet.decision_reason.endswith("; 1 more to check")
    (row,) = open_tab().load_queue_page().rows
    assert (row.dominant_type, row.agents, row.source) == ("several", ("grader",), "embedded")


def test_the_queue_is_filtered_by_kind_and_form(office: Office, build: Any, open_tab: Any) -> None:
    office.desk.publish(build.single("Other"), [build.issue()], doc_id="other")
    office.extracted(w2(issue()))
    for view in (QueueQuery(kind="extraction"), QueueQuery(dominant_type="W-2"), QueueQuery(agent="grader")):
        assert [row.case_id for row in open_tab().load_queue_page(view).rows] == [CASE], view
    assert QueueQuery.from_message({"dominant_type": "W-2"}).dominant_type == "W-2"
    assert open_tab().choose_next_case_id() == "other", "a grave doubt comes first"


def test_a_packet_about_a_classification_says_nothing_of_fields(build: Any, workspace: Any) -> None:
    packet = workspace.publish(build.single("Other"), [build.issue()])
    stored = workspace.files.read_json("sme_packets/sme_packet_doc2_6.json")
    assert "extractions" not in stored
    assert compute_packet_digest(get_packet_class(stored).model_validate(stored)) == compute_packet_digest(packet)


def test_new_run_updates_case_until_a_reviewer_opens_it(office: Office, open_tab: Any) -> None:
    office.extracted(w2(issue()))
    office.extracted(w2(issue(), issue(2, "BLOCKER")))
    assert [len(one.issues) for one in office.packet().extractions] == [2]
    office.extracted(w2())
    assert not office.has_case
    assert office.index.list_cases_worst_first("pending") == []
    office.extracted(w2(issue()))
    lee = open_tab()
    lee.open_and_claim_case(CASE)
    with pytest.MonkeyPatch.context() as patch:  # the claim is of the clock of this test
        patch.setattr("evalkit.review.case_files.is_packet_frozen", lambda *_: True)
        office.extracted(w2())
    assert office.has_case
    assert office.truth() is None, "somebody is asked about it"


def test_accepted_fields_never_replace_an_experts_answer(office: Office) -> None:
    office.extracted(w2(), nec())
    truth = office.truth()
    assert truth is not None
    assert (truth["ground_truth_source"], truth["vouched"], truth["reviewer"]) == ("AUTO_ACCEPTED", [], None)
    assert "ground_truth_classification" not in truth
    assert value_of(truth, "nonemployee_compensation", 1)["value"] == "512.00"
    office.extracted(w2(issue()))
    assert office.truth() is None
    office.desk.helper().save_review(CASE, corrected_fields={"ss_tax_withheld": "4,886.80"})
    office.extracted(w2())
    assert (office.truth() or {})["ground_truth_source"] == "SME_CORRECTED"


REPORT = w2(template="pathology", document_type="Pathology Report", fields={"grade": found("2", "2")})


def test_silver_fields_need_the_type_of_the_ground_truth(office: Office, build: Any) -> None:
    office.extracted(REPORT)
    assert office.truth() is None, "nobody has accepted what the document is"
    for kind, is_silver in (("Pathology Report", True), ("Radiology Report", False)):
        write_silver_ground_truth(
            office.files, build.result(build.single(kind, 2), ()), accepted_at="2026-07-01T10:00:00+00:00"
        )
        office.extracted(REPORT)
        assert (office.truth() is not None) is is_silver
    withdraw_silver_ground_truth(office.files, "doc2_6")
    office.extracted(w2())
    assert office.truth() is not None, "a form names its type itself"


def test_correcting_document_type_withdraws_silver_fields(office: Office, build: Any) -> None:
    result = build.result(build.single("Pathology Report", 2), ())
    office.files.write_json("results/doc2_6.json", result.model_dump(mode="json"))
    write_silver_ground_truth(office.files, result, accepted_at="2026-07-01T10:00:00+00:00")
    packet = SMEPacketGenerator().packet(
        result,
        office.bundle,
        review_reason="audit",
        inclusion_probability=0.1,
        production_row=None,
        created_at="2026-07-01T10:00:00+00:00",
    )
    publish_packet_unless_frozen(office.files, office.index, packet)
    office.extracted(REPORT)
    helper = office.desk.helper()
    helper.save_review("doc2_6", agrees=True)
    assert office.truth() is not None
    helper.save_review(
        "doc2_6", corrected_segments=[{"start_page": 1, "end_page": 2, "dominant_type": "Radiology Report"}]
    )
    assert office.truth() is None
    office.extracted(REPORT)
    assert office.truth() is None


def test_what_a_newer_evalkit_extracted_is_not_written_over(office: Office) -> None:
    office.files.write_json("extractions/doc2_6.json", {"schema_version": 99})
    with pytest.raises(StoreError, match="schema version 99"):
        load_finished_extractions(office.files, "doc2_6", "")


def test_a_document_without_forms_has_neither_case_nor_truth(office: Office) -> None:
    office.extracted(w2())
    office.extracted()
    assert (office.has_case, office.truth()) == (False, None)


def test_the_index_is_made_again_from_the_files(office: Office) -> None:
    office.extracted(w2(issue()))
    before = office.index.list_cases_worst_first()
    office.index.remove_cases(CASE)
    reindex(open_folder(office.desk.root))
    assert office.index.list_cases_worst_first() == before


def test_nothing_that_a_document_says_steers_the_terminal(office: Office) -> None:
    office.extracted(w2(issue(), fields={"ss_tax_withheld": found("9\x1b[2J9", "9"), "ihc.\x1b[31m": found("1", "1")}))
    shown = CliRunner().invoke(app, ["show", CASE, "--output", str(office.desk.root)])
    assert shown.exit_code == 0
    assert "\x1b" not in shown.output


def test_queue_and_show_print_it(office: Office) -> None:
    office.extracted(w2(issue()))
    words = ["--output", str(office.desk.root)]
    assert CASE in CliRunner().invoke(app, ["queue", *words]).output
    shown = CliRunner().invoke(app, ["show", CASE, *words]).output
    assert "amounts on it contradict each other" in shown
    assert "78819.40" in shown
    assert "[MAJOR] GRADER-0001" in shown
    as_json = json.loads(CliRunner().invoke(app, ["show", CASE, "--json", *words]).stdout)
    assert as_json["extractions"][0]["fields"]["wages_tips"]["value"] == "78819.40"


# --- what an expert says, from Python -----------------------------------------------------------------------------


def test_corrected_fields_are_normalised_located_and_true(office: Office) -> None:
    office.extracted(w2(issue()), nec())
    helper = office.desk.helper()
    assert helper.load_packet(CASE).extractions[0].template == "W-2"
    said = {"ss_tax_withheld": "$4,886.80", "1.control_number": {"value": "AB 12"}, TIPS: {"status": "ambiguous"}}
    review = helper.save_review(CASE, agrees=False, corrected_fields=said, correction_notes="typed over")
    assert (review.outcome, review.vouched) == ("corrected", (TAX, NUMBER, TIPS))
    truth = office.truth()
    tax = value_of(truth, "ss_tax_withheld")
    assert (tax["status"], tax["value"], tax["raw"], tax["page"]) == ("found", "4886.80", "4,886.80", 1)
    number = value_of(truth, "control_number")
    assert (number["value"], number["page"], number["boxes"]) == ("AB 12", None, []), "no place is made up for it"
    assert value_of(truth, "box_7")["status"] == "ambiguous"
    stored = office.files.read_json(f"reviews/{CASE}/0001.json")
    assert stored["before"][0]["fields"]["ss_tax_withheld"]["value"] == "9999.99"
    assert stored["after"][0]["fields"]["wages_tips"] == stored["before"][0]["fields"]["wages_tips"]
    assert stored["after"][1] == stored["before"][1]
    assert (truth or {})["vouched"] == [TAX, NUMBER, TIPS]


def test_position_is_kept_and_not_guessed_if_ambiguous(office: Office) -> None:
    twice = (found("78819.40", "78,819.40", boxed=False), found("9999.99", "9,999.99"))
    elsewhere = FieldValue(
        **twice[1].model_dump() | {"status": "ambiguous", "page": 2, "boxes": ((2, 0, 0, 0.1, 0.1),)}
    )
    absent = FieldValue(status=FieldStatus.NOT_PRESENT)
    fields = {"wages_tips": twice[0], "ss_tax_withheld": elsewhere, "box_7": absent, "box_8": absent}
    office.extracted(w2(issue(), fields=fields, end_page=2))
    said = {"ss_tax_withheld": "9,999.99", "box_7": "512", "box_8": "4886.80"}
    page = office.bundle.pages[1]
    again = page.model_copy(update={"text": page.text + " $ 4,886.80"})
    office.files.write_json(
        bundle_file_name("doc2_6"),
        office.bundle.model_copy(update={"pages": (office.bundle.pages[0], again)}).model_dump(mode="json"),
    )
    office.desk.helper().save_review(CASE, corrected_fields=said)
    tax, once, two = (value_of(office.truth(), name) for name in ("ss_tax_withheld", "box_7", "box_8"))
    assert (tax["status"], tax["page"], tax["boxes"]) == ("found", 2, [[2, 0, 0, 0.1, 0.1]]), "where the agent read it"
    assert (once["value"], once["page"]) == ("512.00", 2)
    assert (two["value"], two["page"], two["boxes"]) == ("4886.80", None, []), "it stands in two boxes"


def test_agreeing_vouches_for_all_or_for_what_is_named(office: Office) -> None:
    office.extracted(w2(issue()))
    first = office.desk.helper().save_review(CASE, agrees=True)
    assert (first.outcome, first.vouched) == ("validated", (WAGES, TAX, NUMBER, TIPS))
    second = office.desk.helper().save_review(CASE, agrees=True, vouched=["wages_tips"])
    assert second.vouched == (WAGES,)
    assert second.prev_sha256 is not None
    assert (office.truth() or {})["supersedes"] == 1


def test_a_field_that_is_not_there(office: Office) -> None:
    office.extracted(w2(issue()))
    office.desk.helper().save_review(CASE, corrected_fields={"ss_tax_withheld": None})
    tax = value_of(office.truth(), "ss_tax_withheld")
    assert (tax["status"], tax["value"], tax["boxes"]) == ("not_present", None, [])


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"corrected_fields": {"ss_tax_withheld": "48x6"}}, "not a valid currency amount"),
        ({"corrected_fields": {"ss_tax_withheld": " "}}, "type a value"),
        ({"corrected_fields": {"ss_tax_withheld": {"status": "found"}}}, "type a value"),
        ({"corrected_fields": {"ss_tax_withheld": {"status": "lost"}}}, "status"),
        (
            {"corrected_fields": {"ss_tax_withheld": {"status": "not_present", "value": "1"}}},
            "the status is not_present",
        ),
        ({"corrected_fields": {"ss_tax_withheld": 4886.8}}, "Input should be"),
        ({"corrected_fields": {"box_99": "1"}}, "has no field 'box_99'"),
        ({"corrected_fields": {"tax_year": "2021"}}, "several forms have a field 'tax_year'"),
        ({"corrected_fields": {}}, "contains no decision"),
        ({"corrected_dominant_type": "Other"}, "is about fields"),
        ({"agrees": True, "vouched": ["dominant_type"]}, "has no field 'dominant_type'"),
        ({"agrees": True, "corrected_fields": {"ss_tax_withheld": "1"}}, "both validated and corrected"),
    ],
)
def test_what_cannot_be_said_is_refused_and_nothing_is_written(
    office: Office, said: dict[str, Any], words: str
) -> None:
    two = w2(issue(), fields=w2().fields | {"tax_year": found("2022", "2022")})
    office.extracted(two, nec())
    with pytest.raises(ReviewRefused, match=words) as refused:
        office.desk.helper().save_review(CASE, **said)
    assert "48x6" not in str(refused.value), "what was typed is not quoted"
    assert office.files.list_json_files(f"reviews/{CASE}") == []


def test_fields_are_no_correction_of_a_classification(build: Any, workspace: Any) -> None:
    workspace.publish(build.single("Other"), [build.issue()])
    with pytest.raises(ReviewRefused, match="not about fields"):
        workspace.helper().save_review("doc2_6", corrected_fields={"wages_tips": "1"})


def test_failed_extraction_cannot_be_agreed_with(office: Office, open_tab: Any) -> None:
    office.extracted(w2(issue(code="EXTRACTOR-AGENT-FAILED"), history=(), score=None, met_threshold=False))
    with pytest.raises(ReviewRefused, match="nothing to validate"):
        office.desk.helper().save_review(CASE, agrees=True)
    case = open_tab().open_and_claim_case(CASE)
    assert "nothing to validate" in (case.explain_permanent_validation_block() or "")
    office.desk.helper().save_review(CASE, corrected_fields={"wages_tips": "78,819.40"}, base_revision=0)


def test_a_closed_case_shows_the_corrected_fields(office: Office, open_tab: Any) -> None:
    office.extracted(w2(issue()))
    office.desk.helper().save_review(CASE, corrected_fields={TAX: "4886.80"})
    case = open_tab("dr_kim").open_and_claim_case(CASE)
    assert case.get_current_value(case.draft, TAX).value == "4886.80"
    assert (case.closing_review.reviewer, case.is_locked) == ("dr_lee", True)


def test_undeterminable_and_reopened_leave_no_truth(office: Office) -> None:
    office.extracted(w2(issue()))
    office.desk.helper().save_review(CASE, undeterminable="two forms printed over each other")
    assert office.truth() is None
    office.desk.helper().reopen(CASE, "a better scan")
    office.desk.helper().save_review(CASE, agrees=True)
    assert (office.truth() or {})["revision"] == 3
    office.desk.helper().reopen(CASE, "no")
    assert office.truth() is None


# --- at the screen ------------------------------------------------------------------------------------------------


def opened(tab: Callable[..., Tab], reviewer: str = "dr_lee") -> FieldReviewCase:
    case = tab(reviewer).open_and_claim_case(CASE)
    assert isinstance(case, FieldReviewCase)
    return case


def test_the_worst_is_looked_at_first_and_must_be_seen(office: Office, open_tab: Any) -> None:
    office.extracted(w2(issue(1), issue(2, "BLOCKER", "wages_tips"), issue(3, "MINOR", "box_7")), nec())
    lee = open_tab()
    case = lee.open_and_claim_case(CASE)
    assert case.choose_first_target_id() == WAGES
    assert (
        case.get_viewing_requirements(case.draft).page_numbers,
        case.get_viewing_requirements(case.draft).issue_ids,
    ) == (
        (1,),
        ("GRADER-0002", "GRADER-0001"),
    )
    assert case.explain_validation_block(case.draft) == "1 grave doubt, 1 doubt and page 1 not yet seen"
    draft = case.mark_target_and_page_seen(case.draft, WAGES, 1)
    assert case.list_unseen_target_ids(draft) == [TAX]
    with pytest.raises(ReviewRefused, match="1 doubt not yet seen"):
        lee.submit_review(CASE, draft, validate=True)
    draft = case.mark_target_and_page_seen(draft, TAX, 1)
    done = lee.submit_review(CASE, draft, validate=True)
    assert (done.review.outcome, done.review.vouched) == ("validated", (WAGES, TAX)), "what was on screen"
    assert set(done.review.evidence_seen) == {"GRADER-0001", "GRADER-0002"}


def test_a_field_counts_as_seen_on_its_own_page_only(office: Office, open_tab: Any) -> None:
    office.extracted(w2(issue()), nec())
    case = opened(open_tab)
    other = case.mark_target_and_page_seen(case.draft, TAX, 2)
    assert (other.pages_seen, other.fields_seen, other.evidence_seen) == ((2,), (), ())
    assert case.mark_target_and_page_seen(case.draft, "2.nonemployee_compensation", 2).fields_seen == (
        "2.nonemployee_compensation",
    )


def test_an_issue_about_no_field_is_looked_at_too(office: Office, open_tab: Any) -> None:
    about_all = issue(7, location="", boxes=((2, 0.1, 0.1, 0.2, 0.2),), verdict="ALTERED")
    office.extracted(w2(about_all, end_page=2))
    case = opened(open_tab)
    assert case.choose_first_target_id() == "GRADER-0007"
    assert (case.locate_target("GRADER-0007").page, case.locate_target("GRADER-0007").style) == (2, "near")
    assert case.mark_target_and_page_seen(case.draft, "GRADER-0007", 2).evidence_seen == ("GRADER-0007",)
    with pytest.raises(NotFound):
        case.set_field_answer(case.draft, "GRADER-0007", "1")


def test_what_stands_nowhere_is_never_lit(office: Office, open_tab: Any) -> None:
    fields = w2().fields | {"wages_tips": found("1.00", "1.00", boxed=False)}
    office.extracted(w2(issue(), fields=fields))
    case = opened(open_tab)
    for name in (NUMBER, WAGES):
        assert (case.locate_target(name).page, case.locate_target(name).boxes) == (1, ())
    assert case.locate_target(TAX).boxes == ((1, 0.1, 0.1, 0.9, 0.2),)
    assert case.locate_target(TAX).style == "found"


def test_a_place_outside_the_document_is_never_said_to_be_lit(office: Office, open_tab: Any) -> None:
    lost = found("9999.99", "9,999.99", 7)
    near = issue(quote="9,999.99", verdict=QuoteVerdict.ALTERED, boxes=((2, 0.1, 0.1, 0.2, 0.2),))
    office.extracted(w2(issue(), fields={"ss_tax_withheld": lost}))
    lee = open_tab()
    case = lee.open_and_claim_case(CASE)
    assert isinstance(case, FieldReviewCase)
    assert case.locate_target(TAX) == HighlightedPlace(2, (), "near")
    lee.release_case(CASE)
    office.extracted(w2(near, fields={"ss_tax_withheld": lost}), nec())
    case = opened(open_tab, "dr_ito")
    assert case.locate_target(TAX) == HighlightedPlace(2, near.boxes, "near")


def test_a_passage_that_is_only_near_is_never_lit_as_the_value(office: Office, open_tab: Any) -> None:
    near = issue(
        location="control_number", code="EXTRACTION-NOT-ON-PAGE", verdict="ALTERED", boxes=((1, 0, 0, 1, 0.1),)
    )
    office.extracted(w2(near))
    assert opened(open_tab).locate_target(NUMBER).style == "near"


def test_correction_lists_changes_and_vouches_for_seen_fields(office: Office, open_tab: Any) -> None:
    office.extracted(w2(issue()))
    lee = open_tab()
    case = lee.open_and_claim_case(CASE)
    with pytest.raises(ReviewRefused, match="nothing was changed"):
        lee.submit_review(CASE, case.draft)
    draft = case.set_field_answer(case.draft, TAX, "4,886.80")
    draft = case.set_field_answer(draft, TIPS, {"status": "ambiguous", "value": "12"})
    draft = case.mark_target_and_page_seen(draft, WAGES, 1)
    assert case.describe_changes(draft) == (
        "Social security tax withheld: 9999.99 → 4886.80",
        "Social security tips: not present → ambiguous, perhaps 12.00",
    )
    assert case.explain_validation_block(draft) == "You have changed fields: submit them as a correction."
    review = lee.submit_review(CASE, draft).review
    assert (review.outcome, review.vouched) == ("corrected", (WAGES, TAX, TIPS))


def test_saying_what_the_agent_said_is_no_change(office: Office, open_tab: Any) -> None:
    office.extracted(w2(issue()))
    case = opened(open_tab)
    draft = case.set_field_answer(case.draft, TAX, None)
    assert draft.fields == {TAX: FieldAnswer(status=FieldStatus.NOT_PRESENT)}
    assert case.set_field_answer(draft, TAX, "$ 9,999.99").fields == {}


def test_agents_value_is_equal_however_it_is_formatted(office: Office, open_tab: Any) -> None:
    odd = found("$-", "$-").model_copy(update={"status": FieldStatus.AMBIGUOUS})
    office.extracted(w2(issue(), fields={"wages_tips": found("1.00", "1.00"), "ss_tax_withheld": odd}))
    case = opened(open_tab)
    draft = case.set_field_answer(case.draft, TAX, None)
    assert draft.fields
    assert case.set_field_answer(draft, TAX, {"status": "ambiguous", "value": "$-"}).fields == {}
    with pytest.raises(ReviewRefused, match="not a valid currency amount"):
        case.set_field_answer(draft, TAX, {"status": "found", "value": "$-"})


def test_a_draft_survives_a_reload_and_a_new_run_keeps_its_words(office: Office, open_tab: Any, clock: Any) -> None:
    office.extracted(w2(issue()))
    lee = open_tab()
    case = lee.open_and_claim_case(CASE)
    lee.save_draft_and_get_time(CASE, case.set_field_answer(case.draft, TAX, "4,886.80"))
    assert open_tab("dr_lee").open_and_claim_case(CASE).draft.fields == {
        TAX: FieldAnswer(status=FieldStatus.FOUND, value="4886.80")
    }
    lee.release_case(CASE)
    clock.wait(hours=1)
    office.extracted(w2(issue(), issue(2)))
    draft = open_tab("dr_lee").open_and_claim_case(CASE).draft
    assert (draft.fields, draft.notes) == ({}, f"{TAX}: 4886.80"), "a key may mean another form now"


def test_a_claim_and_a_revision_protect_the_case(office: Office, open_tab: Any) -> None:
    office.extracted(w2(issue()))
    lee = open_tab()
    case = lee.open_and_claim_case(CASE)
    with pytest.raises(CaseTaken):
        open_tab("dr_kim").open_and_claim_case(CASE)
    office.desk.helper("dr_kim").save_review(CASE, agrees=True, base_revision=0)
    with pytest.raises(ReviewConflict):
        lee.submit_review(CASE, case.set_field_answer(case.draft, TAX, "1"))


# --- entries of repeated fields -------------------------------------------------------------------------------------

MARKER, PROGESTERONE = "1.ihcMarkers.HER2", "1.ihcMarkers.PR"


def pathology_report(**more: Any) -> Extraction:
    """A pathology report on page 1 with two markers."""
    fields = {"grade": found("2", "2"), "ihcMarkers.ER": found("positive", "positive"), "ihcMarkers.PR": found("3+", "3+"), "margins": FieldValue(status=FieldStatus.NOT_PRESENT)}  # fmt: skip
    given: dict[str, Any] = {"template": "pathology", "document_type": "Pathology Report", "fields": fields}
    return w2(issue(location="ihcMarkers.PR"), **(given | more))


def test_added_marker_is_in_the_truth_and_vouched(office: Office, open_tab: Any) -> None:
    office.extracted(pathology_report())
    lee = open_tab()
    case = lee.open_and_claim_case(CASE)
    draft = case.set_field_answer(case.draft, MARKER, "3+")
    assert case.describe_changes(draft) == ("IHC results: HER2: added → 3+",)
    assert [line.text for line in case.describe_record(draft)] == [
        "IHC results: HER2: added → 3+",
        "You vouch for 1 of 5 fields",
    ]
    review = lee.submit_review(CASE, draft).review
    assert review.vouched == (MARKER,)
    truth = office.truth()
    assert truth is not None
    names = list(truth["ground_truth_fields"][0]["fields"])
    assert names == ["grade", "ihcMarkers.ER", "ihcMarkers.PR", "ihcMarkers.HER2", "margins"]
    assert value_of(truth, "ihcMarkers.HER2")["value"] == "3+"


def test_first_entry_replaces_the_empty_field(office: Office) -> None:
    fields = {"ihcMarkers": FieldValue(status=FieldStatus.NOT_PRESENT), "grade": found("2", "2")}
    office.extracted(pathology_report(fields=fields))
    review = office.desk.helper().save_review(CASE, corrected_fields={"ihcMarkers.HER2": "3+"})
    assert review.vouched == (MARKER,)
    truth = office.truth()
    assert truth is not None
    assert list(truth["ground_truth_fields"][0]["fields"]) == ["ihcMarkers.HER2", "grade"]


def test_deleted_entry_leaves_the_truth_with_its_reason(office: Office, open_tab: Any) -> None:
    office.extracted(pathology_report())
    lee = open_tab()
    case = lee.open_and_claim_case(CASE)
    with pytest.raises(ReviewRefused, match="a reason is required"):
        case.remove_entry(case.draft, PROGESTERONE, " ")
    with pytest.raises(ReviewRefused, match="only entries"):
        case.remove_entry(case.draft, "1.grade", "wrong")
    draft = case.remove_entry(case.draft, PROGESTERONE, "of the control slide")
    assert case.describe_changes(draft) == ("IHC results: PR: 3+ → deleted: of the control slide",)
    review = lee.submit_review(CASE, draft).review
    assert review.vouched == (PROGESTERONE,)
    assert "of the control slide" in review.correction_notes
    truth = office.truth()
    assert truth is not None
    assert "ihcMarkers.PR" not in truth["ground_truth_fields"][0]["fields"]
    forms = tuple(map(ExtractedFields.from_extraction, office.packet().extractions))
    changed = find_changed_fields(forms, review.after)  # type: ignore[arg-type]
    assert list(changed) == [PROGESTERONE]
    assert apply_and_locate_field_answers(forms, changed, office.bundle) == review.after


def test_renamed_entry_is_deleted_and_added(office: Office, open_tab: Any) -> None:
    office.extracted(pathology_report())
    case = opened(open_tab)
    with pytest.raises(ReviewRefused, match="already an entry"):
        case.rename_entry(case.draft, PROGESTERONE, "er")
    draft = case.rename_entry(case.draft, PROGESTERONE, "HER2")
    assert case.describe_changes(draft) == (
        "IHC results: PR: 3+ → deleted: renamed to HER2",
        "IHC results: HER2: added → 3+",
    )
    assert draft.fields[MARKER].page == 1, "the value keeps its place"
    assert case.remove_entry(draft, MARKER, "not there").fields.keys() == {PROGESTERONE}


@pytest.mark.parametrize(
    "key", ["1.grade.x", "3.ihcMarkers.ER", "1.ihcMarkers. ", "1.ihcMarkers." + "x" * 61, "1.", "x"]
)
def test_no_entry_is_added_where_none_can_be(office: Office, open_tab: Any, key: str) -> None:
    office.extracted(pathology_report())
    case = opened(open_tab)
    with pytest.raises(NotFound):
        case.set_field_answer(case.draft, key, "3+")
    with pytest.raises(ReviewRefused):
        office.desk.helper().save_review(CASE, corrected_fields={key: "3+"})


def test_selected_value_keeps_its_place(office: Office, open_tab: Any) -> None:
    office.extracted(pathology_report())
    case = opened(open_tab)
    place = {"page": 2, "boxes": [[2, 0.1, 0.1, 0.2, 0.2]]}
    draft = case.set_field_answer(case.draft, "1.margins", {"value": "negative", **place})
    open_tab("dr_lee")
    review = office.desk.helper().save_review(CASE, corrected_fields=draft.fields, base_revision=0)
    margins = value_of(office.truth(), "margins")
    assert (margins["page"], margins["boxes"]) == (2, [[2, 0.1, 0.1, 0.2, 0.2]])
    forms = tuple(map(ExtractedFields.from_extraction, office.packet().extractions))
    assert find_changed_fields(forms, review.after) == draft.fields  # type: ignore[arg-type]
    for wrong in (
        {"page": 9},
        {"page": "x"},
        {"page": 1, "boxes": [[2, 0, 0, 1, 1]]},
        {"page": 1, "boxes": [[1, 0, 0, 7, 1]]},
    ):
        with pytest.raises(ReviewRefused):
            case.set_field_answer(case.draft, "1.margins", {"value": "negative", **wrong})


def test_what_nobody_looked_at_is_not_vouched_for(office: Office, open_tab: Any) -> None:
    office.extracted(w2(issue(), fields={"wages_tips": found("78819.40", "78,819.40")}))
    case = opened(open_tab)
    assert [line.text for line in case.describe_record(case.draft)] == ["You vouch for 0 of 1 fields"]
    draft = case.mark_target_and_page_seen(case.draft, WAGES, 1)
    assert case.describe_record(draft)[-1].text == "You vouch for 1 of 1 fields"


# --- further opinions ---------------------------------------------------------------------------------------------


def asked(office: Office, tab: Callable[..., Tab], value: str) -> Tab:
    office.extracted(w2(issue()))
    lee = tab("dr_lee")
    case = lee.open_and_claim_case(CASE)
    lee.submit_and_request_second_opinion(CASE, case.set_field_answer(case.draft, TAX, value), "is this a 4?")  # type: ignore[attr-defined]
    return lee


def seconded(tab: Callable[..., Tab], value: str) -> FieldReviewCase:
    kim = tab("dr_kim")
    case = kim.open_and_claim_case(f"{CASE}.second")
    assert isinstance(case, FieldReviewCase)
    kim.submit_review(f"{CASE}.second", case.set_field_answer(case.draft, TAX, value))
    return case


def test_a_second_expert_who_agrees_makes_it_true(office: Office, open_tab: Any) -> None:
    asked(office, open_tab, "4886.80")
    assert office.truth() is None
    with pytest.raises(ReviewRefused, match="given or seen an answer to case"):
        open_tab("dr_lee").open_and_claim_case(f"{CASE}.second")
    case = seconded(open_tab, "$4,886.80")
    assert (case.second_opinion_reason, case.draft.fields, case.is_blind) == ("is this a 4?", {}, False)
    assert value_of(office.truth(), "ss_tax_withheld")["value"] == "4886.80"


def test_a_third_expert_decides_between_two_answers(office: Office, open_tab: Any) -> None:
    asked(office, open_tab, "4886.80")
    seconded(open_tab, "4836.80")
    assert office.truth() is None
    name = f"{CASE}.adjudication"
    judge = open_tab("dr_judge")
    case = judge.open_and_claim_case(name)
    assert {one.draft.fields[TAX].value for one in case.opinions} == {"4886.80", "4836.80"}
    taken = next(one.draft.fields for one in case.opinions if one.draft.fields[TAX].value == "4886.80")
    draft = case.draft.model_copy(update={"fields": taken})
    with pytest.raises(ReviewRefused, match="page 1 not yet seen"):
        judge.submit_review(name, draft)
    judge.submit_review(name, case.mark_target_and_page_seen(draft, TAX, 1))
    truth = office.truth()
    assert value_of(truth, "ss_tax_withheld")["value"] == "4886.80"
    assert (truth or {})["reviewer"] == "dr_judge"
    assert not office.files.has_file(f"ground_truth/gt_{name}.json")


# --- properties ---------------------------------------------------------------------------------------------------

FORM = get_field_template("W-2")
MARKERS = [one for one in get_field_template("pathology").fields if one.format == "marker"]
texts = st.one_of(
    st.text(max_size=12), st.from_regex(r"\(?\$?-?\d{1,3}(,\d{3})?(\.\d{0,2})?\)?", fullmatch=True), st.just("x")
)


@given(field=st.sampled_from(FORM.fields), text=texts)
def test_value_is_accepted_iff_it_matches_the_format(field: Any, text: str) -> None:
    is_good = bool(text.strip()) and field.normalise(text) is not None
    try:
        said = parse_field_answer(field, text)
    except ReviewRefused:
        assert not is_good
    else:
        assert is_good
        assert said.status is FieldStatus.FOUND
        assert parse_field_answer(field, said.value) == said


@given(
    st.lists(st.sampled_from(["score", "1", "2+", "negative", "(", ")", "95 %", "strong"]), max_size=5).map(" ".join)
)
def test_checked_marker_text_is_accepted_on_submission(text: str) -> None:
    for field in MARKERS:
        kept = check_field_text(field, text).value
        assert kept is None or check_field_text(field, kept).value == kept


@given(
    st.dictionaries(
        st.sampled_from([WAGES, TAX]),
        st.one_of(st.none(), st.decimals(0, 99999, places=2).map(str)),
    )
)
def test_what_is_corrected_is_what_differs_and_nothing_else(
    build_once: Any, given_values: dict[str, str | None]
) -> None:
    packet, bundle = build_once
    told = packet.extracted_fields
    said = {key: parse_field_answer(FORM.get_field(key[2:]), value) for key, value in given_values.items()}
    after = apply_and_locate_field_answers(told, said, bundle)
    assert find_changed_fields(told, after) == {
        key: one for key, one in said.items() if (one.status, one.value) != _pair(index_fields_by_key(told)[key])
    }
    assert list(index_fields_by_key(after)) == list(index_fields_by_key(told))


def _pair(value: FieldValue) -> tuple[FieldStatus, str | None]:
    return value.status, value.value


@pytest.fixture(scope="module")
def build_once(build: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    from review.conftest import Workspace

    office = Office(build, Workspace(tmp_path_factory.mktemp("fields") / "output"))
    office.extracted(w2(issue()))
    return office.packet(), office.bundle


def test_who_is_for_a_person_is_the_decision_alone() -> None:
    assert is_extraction_review_required(w2(decision="ESCALATE_TO_SME"))
    assert not is_extraction_review_required(w2(issue(severity="MINOR"), decision="AUTO_ACCEPT"))


def test_another_place_of_the_same_value_is_recorded(office: Office, open_tab: Any) -> None:
    office.extracted(pathology_report())
    lee = open_tab()
    case = lee.open_and_claim_case(CASE)
    agent = case.get_agent_value("1.grade")
    place = {"page": 1, "boxes": ((1, 0.5, 0.5, 0.6, 0.6),)}
    draft = case.set_field_answer(case.draft, "1.grade", {"status": "found", "value": agent.value, **place})
    lee.submit_review(CASE, draft)
    recorded = value_of(office.truth(), "grade")
    assert (recorded["value"], recorded["page"]) == (agent.value, 1)
    assert [tuple(box) for box in recorded["boxes"]] == [(1, 0.5, 0.5, 0.6, 0.6)]


def test_a_field_without_its_last_entry_is_not_present(office: Office) -> None:
    office.extracted(pathology_report(fields={"ihcMarkers.PR": found("3+", "3+"), "grade": found("2", "2")}))
    removal = {"status": "not_present", "removed": "of the control slide"}
    office.desk.helper().save_review(CASE, corrected_fields={"ihcMarkers.PR": removal})
    assert value_of(office.truth(), "ihcMarkers")["status"] == "not_present"
