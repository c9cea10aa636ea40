"""A quote that an expert refutes is no truth: cases by an author who has not read the code, and rules of our own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from benchmarks.refuted_quotes import find_failures, read_cases

from evalkit.classification.schema import DocumentType
from evalkit.classification.v2_consistency import EXPERT_QUESTION_CODES
from evalkit.errors import ReviewRefused
from evalkit.review import ExpertQuote
from evalkit.review.expert_answers import ExpertAnswers
from evalkit.review.ground_truth import IssueVerdict

CASES = read_cases("open")


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_what_an_expert_refutes_is_no_truth(case: dict[str, Any], tmp_path: Path) -> None:
    assert find_failures(case, tmp_path / "output") == []


# --- an answer of two documents, whose second has a quote in doubt ---------------------------------------------------

GENOMIC, PATHOLOGY, RADIOLOGY = "Genomic Report", "Pathology Report", "Radiology Report"
FALSE, TRUE = "BRCA2 mutation was found", "EGFR p.L858R"


def publish(build: Any, workspace: Any, *issues: Any, shares: dict[str, float] | None = None) -> Any:
    """Pages 1–3 are a genomic report with two quotes, page 4 a pathology report; shares are those of the first."""
    segments = [
        build.segment(1, 1, 3, GENOMIC, shares or {GENOMIC: 0.8, PATHOLOGY: 0.2}, [(FALSE, 1), (TRUE, 2)]),
        build.segment(2, 4, 4, PATHOLOGY, evidence=[("Diagnosis: carcinoma", 4)]),
    ]
    mixture = {kind: 0.75 * share for kind, share in (shares or {GENOMIC: 0.8, PATHOLOGY: 0.2}).items()}
    mixture[PATHOLOGY] = mixture.get(PATHOLOGY, 0.0) + 0.25
    dominant = max(mixture, key=lambda kind: mixture[kind])
    pages = [[FALSE.replace("BRCA2", "BRCA1")], [TRUE], ["end"], ["Diagnosis: carcinoma"]]
    return workspace.publish(build.answer(segments, mixture, dominant), issues, build.bundle(pages))


def doubt(build: Any, **fields: Any) -> Any:
    return build.issue(
        "V4-0001",
        "BLOCKER",
        "V4-QUOTE-ALTERED",
        **({"segment_index": 1, "document_type": GENOMIC, "quote": FALSE, "page": 1} | fields),
    )


def confirm(*issue_ids: str, verdict: str = "confirmed") -> list[dict[str, str]]:
    return [{"issue_id": issue_id, "verdict": verdict} for issue_id in issue_ids]


def list_quotes(truth: dict[str, Any] | None) -> list[tuple[int, str, bool | None]]:
    return [
        (segment["segment_index"], quote["snippet"], quote.get("vouched"))
        for segment in (truth or {})["ground_truth_classification"]["segments"]
        for presence in segment["segment_composition"]
        for quote in presence["top_evidence"]
        if presence["document_type"] == segment["dominant_type"]
    ]


@pytest.mark.parametrize("quote", [FALSE, FALSE.replace(" ", "\n  ", 1)], ids=["word for word", "other spacing"])
def test_a_confirmed_fabrication_is_not_in_the_truth(build: Any, workspace: Any, quote: str) -> None:
    publish(build, workspace, doubt(build, quote=quote))
    review = workspace.helper().save_review("doc2_6", agrees=True, issue_verdicts=confirm("V4-0001"))
    assert list_quotes(workspace.truth()) == [(1, TRUE, False), (2, "Diagnosis: carcinoma", False)]
    assert [row.snippet for row in review.refuted] == [FALSE]
    assert FALSE in review.model_dump_json()  # the answer before stays whole
    assert workspace.truth()["ground_truth_source"] == "SME_VALIDATED"


def test_a_review_without_verdicts_writes_no_new_keys(build: Any, workspace: Any) -> None:
    publish(build, workspace, doubt(build))
    workspace.helper().save_review("doc2_6", agrees=True)
    stored = workspace.files.read_json("reviews/doc2_6/0001.json")
    assert not {"refuted", "changes"} & stored.keys()
    assert {
        key for segment in stored["before"]["segments"] for row in segment["segment_composition"] for key in row
    } == {
        "document_type",
        "presence_level",
        "confidence",
        "segment_share",
        "top_evidence",
    }


def test_a_quote_that_is_not_in_the_answer_strikes_nothing(build: Any, workspace: Any, open_tab: Any) -> None:
    publish(build, workspace, doubt(build, quote="words of another answer"))
    case = open_tab().open_and_claim_case("doc2_6")
    lines = case.describe_record(case.draft.set_issue_verdict("V4-0001", "confirmed"))
    assert "Not in the answer, so not struck: “words of another answer”" in [line.text for line in lines]
    review = workspace.helper("dr_kim").save_review(
        "doc2_6", agrees=True, issue_verdicts=confirm("V4-0001"), base_revision=0
    )
    assert (review.refuted, review.changes) == ((), ())


def test_shares_that_a_strike_changes_are_not_vouched(build: Any, workspace: Any) -> None:
    # The quotes of the second type are those of the first, so both are struck.
    issues = [
        doubt(build, document_type=PATHOLOGY),
        doubt(build, document_type=PATHOLOGY, quote=TRUE).model_copy(update={"issue_id": "V4-0002"}),
    ]
    publish(build, workspace, *issues, shares={GENOMIC: 0.6, PATHOLOGY: 0.4})
    review = workspace.helper().save_review(
        "doc2_6",
        agrees=True,
        issue_verdicts=confirm("V4-0001", "V4-0002"),
        vouched=("dominant_type", "segments", "mixture"),
    )
    # Without what was struck, pathology is no longer the larger part of the file.
    assert review.vouched == ("segments",)
    shares = {row.document_type: row.overall_share for row in review.after.document_mixture if row.overall_share}
    assert shares == {GENOMIC: 0.75, PATHOLOGY: 0.25}


def test_a_strike_in_an_answer_with_broken_shares_fails_nothing(build: Any, workspace: Any, open_tab: Any) -> None:
    issues = [
        doubt(build, document_type=PATHOLOGY),
        doubt(build, document_type=PATHOLOGY, quote=TRUE).model_copy(update={"issue_id": "V4-0002"}),
    ]
    publish(build, workspace, *issues, shares={GENOMIC: -0.5, PATHOLOGY: 0.4})
    case = open_tab().open_and_claim_case("doc2_6")
    draft = case.draft.set_issue_verdict("V4-0001", "confirmed").set_issue_verdict("V4-0002", "confirmed")
    assert f"Struck: “{FALSE}”" in [line.text for line in case.describe_record(draft)]
    review = workspace.helper("dr_kim").save_review(
        "doc2_6",
        corrected_dominant_type=RADIOLOGY,
        issue_verdicts=confirm("V4-0001", "V4-0002"),
        base_revision=0,
    )
    assert (review.vouched, len(review.refuted)) == (("dominant_type",), 2)


# --- the expert's own quotes -----------------------------------------------------------------------------------------


def test_a_validation_with_an_own_quote_is_a_correction(build: Any, workspace: Any) -> None:
    publish(build, workspace, doubt(build))
    quote = ExpertQuote(page=2, snippet="VAF 32 %", boxes=[(2, 0.1, 0.1, 0.3, 0.2)])
    review = workspace.helper().save_review("doc2_6", agrees=True, quotes=[quote])
    assert review.outcome == "corrected"
    added = workspace.truth()["ground_truth_classification"]["segments"][0]["segment_composition"][2]["top_evidence"][
        -1
    ]
    assert added == {
        "snippet": "VAF 32 %",
        "page": 2,
        "anchors_found": [],
        "by": "expert",
        "vouched": True,
        "boxes": [[2, 0.1, 0.1, 0.3, 0.2]],
    }
    assert {"dominant_type", "segments"} <= {*review.vouched}


def test_a_correction_keeps_the_evidence_of_other_documents(build: Any, workspace: Any, open_tab: Any) -> None:
    packet = publish(build, workspace, doubt(build))
    tab = open_tab()
    draft = tab.open_and_claim_case("doc2_6").draft.set_segment_type(1, DocumentType(RADIOLOGY))
    quote = ExpertQuote(page=4, snippet="IMPRESSION: nodule", document_type=RADIOLOGY)
    tab.submit_review("doc2_6", draft.add_quote(quote))
    truth = workspace.truth()["ground_truth_classification"]
    compositions = [segment["segment_composition"] for segment in truth["segments"]]
    assert [row["segment_share"] for row in compositions[0]] == [
        row.segment_share for row in packet.classification.segments[0].segment_composition
    ]
    assert list_quotes(workspace.truth()) == [(1, FALSE, False), (1, TRUE, False), (2, "IMPRESSION: nodule", True)]


def test_a_broken_composition_does_not_refuse_a_correction(build: Any, workspace: Any) -> None:
    publish(build, workspace, shares={GENOMIC: 0.6, PATHOLOGY: 0.1})  # the shares add up to 0.7
    segments = [(1, 3, GENOMIC), (4, 4, RADIOLOGY)]
    review = workspace.helper().save_review("doc2_6", corrected_segments=segments)
    first = review.after.segments[0].segment_composition[2]
    assert (first.segment_share, first.share_vouched) == (1.0, False)
    assert [quote.snippet for quote in first.top_evidence] == [FALSE, TRUE]


# --- questions -------------------------------------------------------------------------------------------------------


def ask(build: Any, code: str, **fields: Any) -> Any:
    return build.issue("V2-0001", "MAJOR", code, **fields)


def test_a_denied_answer_is_refused_until_it_is_meant(build: Any, workspace: Any) -> None:
    publish(build, workspace, ask(build, "V2-UNSURE", segment_index=1, document_type=GENOMIC, page=1))
    helper = workspace.helper()
    with pytest.raises(ReviewRefused, match="Not Genomic Report") as refusal:
        helper.save_review("doc2_6", agrees=True, issue_verdicts=confirm("V2-0001"))
    assert (refusal.value.code, workspace.truth()) == ("REVIEW-CONTRADICTION", None)
    review = helper.save_review("doc2_6", agrees=True, issue_verdicts=confirm("V2-0001"), anyway=True)
    assert (review.outcome, review.issue_verdicts[0].verdict) == ("validated", "confirmed")
    assert "segment:1" not in review.vouched


def test_a_correction_that_follows_the_verdict_is_not_asked_about(build: Any, workspace: Any) -> None:
    publish(build, workspace, ask(build, "V2-UNSURE", segment_index=2, document_type=PATHOLOGY, page=4))
    segments = [(1, 3, GENOMIC), (4, 4, RADIOLOGY)]
    review = workspace.helper().save_review("doc2_6", corrected_segments=segments, issue_verdicts=confirm("V2-0001"))
    assert review.vouched == ("dominant_type", "segments", "segment:2")


@pytest.mark.parametrize(
    ("code", "fields", "part"),
    [
        ("V2-BOUNDARY-DOUBT", {"page": 4, "facts": {"doubt": "stated"}}, "boundary:4"),
        ("V2-BOUNDARY-DOUBT", {"page": 2, "facts": {"doubt": "new", "sign": "has a title"}}, "boundary:2"),
        ("V2-UNSURE", {"page": 4, "segment_index": 2, "document_type": PATHOLOGY}, "segment:2"),
        ("V2-PATIENT-MIXED", {"page": 2, "segment_index": 1}, "patients"),
    ],
)
def test_an_answered_question_is_vouched_for(
    build: Any, workspace: Any, code: str, fields: dict[str, Any], part: str
) -> None:
    publish(build, workspace, ask(build, code, **fields))
    verdicts = confirm("V2-0001", verdict="dismissed")
    review = workspace.helper().save_review("doc2_6", agrees=True, issue_verdicts=verdicts)
    assert review.vouched == ("dominant_type", "segments", part)
    assert workspace.truth()["vouched"] == [*review.vouched]


@pytest.mark.parametrize("code", sorted({*EXPERT_QUESTION_CODES, "V4-PRESENCE-UNSUPPORTED", "READER-LANGUAGE"}))
def test_a_question_refuses_no_validation(build: Any, workspace: Any, open_tab: Any, code: str) -> None:
    prefix = code.partition("-")[0]
    publish(build, workspace, build.issue(f"{prefix}-0001", "BLOCKER", code, segment_index=1, page=1))
    case = open_tab().open_and_claim_case("doc2_6")
    assert case.explain_permanent_validation_block() is None


# --- what will be recorded -------------------------------------------------------------------------------------------


def test_the_record_says_what_is_struck_added_and_vouched(build: Any, workspace: Any, open_tab: Any) -> None:
    publish(build, workspace, doubt(build))
    case = open_tab().open_and_claim_case("doc2_6")
    draft = case.draft.set_issue_verdict("V4-0001", "confirmed").add_quote(ExpertQuote(page=2, snippet="VAF 32 %"))
    assert [(line.kind, line.text) for line in case.describe_record(draft)] == [
        ("type", "Pages 1–3: Genomic Report"),
        ("type", "Page 4: Pathology Report"),
        ("type", "The whole file: Genomic Report"),
        ("quote", f"Struck: “{FALSE}”"),
        ("quote", "Added from page 2: “VAF 32 %”"),
        ("vouch", "You vouch for: file type, document pages and types; 1 of 5 quotes"),
    ]


def test_the_record_of_a_blind_case_shows_only_own_words(build: Any, workspace: Any, open_tab: Any) -> None:
    publish(build, workspace)
    workspace.publish(
        build.single(GENOMIC, 2, [(FALSE, 1)]), (), build.bundle([["a"], ["b"]]), "blind", review_reason="audit"
    )
    case = open_tab().open_and_claim_case("blind")
    lines = case.describe_record(case.draft.set_segment_type(0, DocumentType(RADIOLOGY)))
    assert [line.text for line in lines] == [
        "Pages 1–2: Radiology Report",
        "You vouch for: file type, document pages and types",
    ]


def answers_about(build: Any, answer: Any, *judged: tuple[Any, str]) -> ExpertAnswers:
    verdicts = [IssueVerdict(issue_id=issue.issue_id, verdict=verdict) for issue, verdict in judged]  # type: ignore[arg-type]
    return ExpertAnswers(answer, [issue for issue, _ in judged], verdicts)


def test_a_quote_upheld_on_another_page_stays(build: Any) -> None:
    answer = build.answer(
        [build.segment(1, 1, 3, GENOMIC, {GENOMIC: 1.0}, [(TRUE, 1), (TRUE, 3)])], {GENOMIC: 1.0}, GENOMIC
    )
    wrong, right = (
        build.issue(
            f"V4-{page:04d}", code="V4-QUOTE-WRONG-PAGE", segment_index=1, document_type=GENOMIC, quote=TRUE, page=page
        )
        for page in (1, 3)
    )
    revised = answers_about(build, answer, (wrong, "confirmed"), (right, "dismissed")).apply_to(answer)
    (primary,) = (row for row in revised.segments[0].segment_composition if row.document_type == GENOMIC)
    assert [(quote.page, quote.vouched) for quote in primary.top_evidence] == [(3, True)]
    assert primary.evidence is None
    for_all = answers_about(build, answer, (wrong, "confirmed")).apply_to(answer)
    assert all(not row.top_evidence for row in for_all.segments[0].segment_composition)


def test_only_the_changed_part_of_a_denied_document_is_vouched_for(build: Any) -> None:
    answer = build.answer([build.segment(1, 1, 4, PATHOLOGY)], {PATHOLOGY: 1.0}, PATHOLOGY)
    doubt_of_type = build.issue("V2-0001", code="V2-UNSURE", segment_index=1, document_type=PATHOLOGY)
    denied = answers_about(build, answer, (doubt_of_type, "confirmed"))
    halves = [(1, 2, DocumentType(PATHOLOGY)), (3, 4, DocumentType(RADIOLOGY))]
    assert [(part, agrees) for _, part, agrees in denied.compare_with_record(halves)] == [("segment:2", True)]
    assert denied.find_contradiction(halves) == ""


def test_an_upheld_type_that_is_changed_is_asked_about(build: Any) -> None:
    answer = build.answer([build.segment(1, 1, 4, PATHOLOGY)], {PATHOLOGY: 1.0}, PATHOLOGY)
    doubt_of_type = build.issue("V2-0001", code="V2-UNSURE", segment_index=1, document_type=PATHOLOGY)
    upheld = answers_about(build, answer, (doubt_of_type, "dismissed"))
    assert upheld.find_contradiction([(1, 4, DocumentType(PATHOLOGY))]) == ""
    assert upheld.find_contradiction([(1, 4, DocumentType(RADIOLOGY))]).endswith("?")
