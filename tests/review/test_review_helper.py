"""Saving reviews: slide 10's two outcomes, the chain of files, ground truth, refusals and races."""

from __future__ import annotations

import hashlib
import json
import stat
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from review.racing import race_for_reviews, run_together

from evalkit.classification.patient_keys import drop_patient_keys
from evalkit.errors import NotFound, ReviewConflict, ReviewRefused, StoreError, UsageError
from evalkit.evaluation.ground_truth_table import read_folder_ground_truth
from evalkit.review import (
    SMEReviewHelper,
    compute_packet_digest,
    publish_packet_unless_frozen,
    rebuild_case_files_and_list_index_rows,
    withdraw_silver_ground_truth,
    write_silver_ground_truth,
)
from evalkit.review.case_files import read_packet, read_review
from evalkit.review.ground_truth import (
    find_newest_revision,
    read_silver_audit_probability,
    remove_mismatched_silver_fields,
)
from evalkit.store import CASE_COLUMNS, LocalOutputFolder, OutputFolder, ground_truth_file_name

pytestmark = pytest.mark.usefixtures("database")

REVIEW_KEYS = """
    schema_version reviewer submitted_at seconds_active outcome before after repairs_applied correction_notes
    issue_verdicts vouched pages_seen evidence_seen shown segment_flags second_opinion packet_sha256 prev_sha256 versions
    signature
"""
TRUTH_KEYS = """
    schema_version doc_id ground_truth_source ground_truth_classification corrected_dominant_type correction_notes
    reviewer reviewed_at vouched review_reason inclusion_probability packet_sha256 revision supersedes
"""
COLUMNS = """
    case_id doc_id kind pdf_filename pages blocker major minor decision_reason review_reason review_status
"""
NOTES = (
    "This is a routine CBC from Quest, not a genomic report. "
    "Gene-like column headers (WBC, RBC) confused the classifier."
)


@pytest.fixture
def genomic(build: Any, workspace: Any) -> Any:
    """Slide 10's first case: a Quest CBC that the agent calls a genomic report."""
    bundle = build.bundle([["Quest Diagnostics", "CBC: WBC 6.1, RBC 4.5"], ["Reference ranges"]])
    return workspace.publish(build.single("Genomic Report", pages=2), [build.issue()], bundle)


@pytest.fixture
def pathology(build: Any, workspace: Any) -> Any:
    """Slide 10's second case: a surgical biopsy report, correctly called."""
    return workspace.publish(build.single("Pathology Report"), [build.issue("V4-0001", "MAJOR", "V4-EVIDENCE-WEAK")])


@pytest.mark.both_databases
def test_slide_10_the_expert_corrects(genomic: Any, workspace: Any) -> None:
    review = workspace.helper().save_review(
        "doc2_6", agrees=False, corrected_dominant_type="Other", correction_notes=NOTES, issue_verdicts=[]
    )
    truth = workspace.truth()
    assert set(truth) == set(TRUTH_KEYS.split())
    assert truth["ground_truth_source"] == "SME_CORRECTED"
    assert truth["corrected_dominant_type"] == "Other"
    assert truth["correction_notes"] == NOTES
    assert (truth["reviewer"], truth["reviewed_at"]) == ("dr_lee", "2025-02-01T12:00:00+00:00")
    assert truth["vouched"] == ["dominant_type"]
    assert (truth["revision"], truth["supersedes"]) == (1, None)
    assert (truth["review_reason"], truth["inclusion_probability"]) == ("escalated", 1.0)
    assert truth["packet_sha256"] == compute_packet_digest(genomic)
    answer = truth["ground_truth_classification"]
    assert answer["dominant_type_overall"] == "Other"
    assert [(one["start_page"], one["end_page"], one["dominant_type"]) for one in answer["segments"]] == [
        (1, 2, "Other")
    ]
    assert review.before == drop_patient_keys(genomic.classification)
    assert review.after is not None
    for segment in answer["segments"]:
        del segment["patient"]  # of the pages, not of the review
    assert review.after.to_json() == answer


@pytest.mark.parametrize(
    ("said", "vouched"),
    [
        ({"corrected_dominant_type": "Other"}, ["dominant_type"]),
        ({"corrected_segments": [(1, 2, "Other")]}, ["dominant_type", "segments"]),
        ({"corrected_mixture": [{"document_type": "Other", "overall_share": 1}]}, ["mixture"]),
        ({"corrected_dominant_type": "Other", "vouched": ["segments"]}, ["segments"]),
        ({"agrees": True}, ["dominant_type", "segments"]),
        ({"agrees": True, "vouched": []}, []),
    ],
)
def test_an_expert_stands_for_what_they_corrected(
    genomic: Any, workspace: Any, said: dict[str, Any], vouched: list[str]
) -> None:
    workspace.helper().save_review("doc2_6", **said)
    assert workspace.truth()["vouched"] == vouched


def test_slide_10_the_expert_validates(pathology: Any, workspace: Any) -> None:
    workspace.helper().save_review("doc2_6", agrees=True)
    truth = workspace.truth()
    assert truth["ground_truth_source"] == "SME_VALIDATED"
    assert truth["ground_truth_classification"] == pathology.classification.model_dump(mode="json")
    assert truth["corrected_dominant_type"] is None
    assert truth["vouched"] == ["dominant_type", "segments"]


def test_a_review_has_the_contracts_keys(pathology: Any, workspace: Any) -> None:
    given = workspace.helper().save_review(
        "doc2_6",
        agrees=True,
        issue_verdicts=[{"issue_id": "V4-0001", "verdict": "dismissed", "note": "it is there"}],
        seconds_active=41.5,
        pages_seen=[1],
        evidence_seen=["V4-0001"],
        segment_flags=[{"segment_index": 1, "flag": "duplicate"}],
        vouched=["mixture", "segments", "dominant_type"],
    )
    stored = workspace.files.read_json("reviews/doc2_6/0001.json")
    assert stored == given.model_dump(mode="json")
    assert set(stored) == set(REVIEW_KEYS.split())
    assert stored["outcome"] == "validated"
    assert stored["shown"] == {"agent": True, "production": "after"}
    assert stored["vouched"] == ["dominant_type", "segments", "mixture"]
    assert stored["issue_verdicts"] == [{"issue_id": "V4-0001", "verdict": "dismissed", "note": "it is there"}]
    assert stored["prev_sha256"] is None
    assert set(stored["versions"]) == {"evalkit", "types"}


def test_files_are_private(pathology: Any, workspace: Any) -> None:
    workspace.helper().save_review("doc2_6", agrees=True)
    for path in workspace.root.rglob("*"):
        expected = 0o700 if path.is_dir() else 0o600
        if not path.name.startswith("evalkit.sqlite-"):  # SQLite makes these, with the database's own rights
            assert stat.S_IMODE(path.stat().st_mode) == expected, path


def test_a_second_correction_is_revision_2_and_the_first_stays(genomic: Any, workspace: Any) -> None:
    helper = workspace.helper()
    helper.save_review("doc2_6", corrected_dominant_type="Other")
    first = (workspace.root / "reviews/doc2_6/0001.json").read_bytes()
    helper.save_review("doc2_6", corrected_dominant_type="Clinical Note", base_revision=1)
    assert (workspace.root / "reviews/doc2_6/0001.json").read_bytes() == first
    second = workspace.files.read_json("reviews/doc2_6/0002.json")
    assert second["prev_sha256"] == hashlib.sha256(first).hexdigest()
    truth = workspace.truth()
    assert (truth["revision"], truth["supersedes"]) == (2, 1)
    assert truth["corrected_dominant_type"] == "Clinical Note"
    assert helper.revision("doc2_6") == 2
    assert [review.outcome for review in helper.reviews("doc2_6")] == ["corrected", "corrected"]


def test_review_sets_packet_status_and_keeps_its_hash(genomic: Any, workspace: Any) -> None:
    helper = workspace.helper()
    helper.save_review("doc2_6", corrected_dominant_type="Other")
    packet = helper.load_packet("doc2_6")
    assert packet.review_status == "completed"
    assert compute_packet_digest(packet) == compute_packet_digest(genomic)
    assert helper.list_pending_reviews().empty
    assert helper.save_review("doc2_6", corrected_dominant_type="Other").packet_sha256 == compute_packet_digest(genomic)


def test_undeterminable_closes_without_ground_truth(genomic: Any, workspace: Any) -> None:
    helper = workspace.helper()
    helper.save_review("doc2_6", corrected_dominant_type="Other")
    review = helper.save_review("doc2_6", undeterminable="illegible scan", vouched=["segments"])
    assert workspace.truth() is None
    assert (review.outcome, review.correction_notes, review.after, review.vouched) == (
        "undeterminable",
        "illegible scan",
        None,
        (),
    )
    assert helper.load_packet("doc2_6").review_status == "completed"
    assert helper.list_pending_reviews().empty


def test_reopening_removes_ground_truth_and_the_case_waits_again(genomic: Any, workspace: Any) -> None:
    helper = workspace.helper()
    helper.save_review("doc2_6", corrected_dominant_type="Other")
    assert helper.reopen("doc2_6", "I misread page 2").outcome == "reopened"
    assert workspace.truth() is None
    assert helper.load_packet("doc2_6").review_status == "pending"
    assert list(helper.list_pending_reviews()["case_id"]) == ["doc2_6"]
    with pytest.raises(ReviewRefused, match="not closed"):
        helper.reopen("doc2_6", "again")
    helper.save_review("doc2_6", agrees=True)
    assert (workspace.truth()["revision"], workspace.truth()["supersedes"]) == (3, 1)
    with pytest.raises(ReviewRefused, match="reason"):
        helper.reopen("doc2_6", " ")


# --- silver ------------------------------------------------------------------------------------------------------


def test_silver_is_written_once_and_its_clock_stays(build: Any, workspace: Any) -> None:
    result = build.result(build.single("Other"))
    assert write_silver_ground_truth(workspace.files, result, accepted_at="2025-01-01") is True
    truth = workspace.truth()
    assert set(truth) == set(TRUTH_KEYS.split())
    assert (truth["ground_truth_source"], truth["revision"], truth["reviewer"]) == ("AUTO_ACCEPTED", 0, None)
    assert write_silver_ground_truth(workspace.files, result, accepted_at="2026-01-01") is False
    assert workspace.truth() == truth
    assert (
        write_silver_ground_truth(workspace.files, build.result(build.single("Clinical Note")), accepted_at="2026")
        is True
    )
    assert workspace.truth()["reviewed_at"] == "2026"
    with pytest.raises(ReviewRefused):
        write_silver_ground_truth(
            workspace.files, build.result(build.single("Other"), [build.issue()]), accepted_at="2026"
        )


def test_a_review_supersedes_silver_and_silver_never_a_review(build: Any, workspace: Any) -> None:
    answer = build.single("Other")
    result = build.result(answer)
    write_silver_ground_truth(workspace.files, result, accepted_at="2025-01-01")
    workspace.publish(answer, review_reason="audit", inclusion_probability=0.2)
    helper = workspace.helper()
    helper.save_review("doc2_6", agrees=True)
    truth = workspace.truth()
    assert (truth["supersedes"], truth["review_reason"], truth["inclusion_probability"]) == (0, "audit", 0.2)
    assert write_silver_ground_truth(workspace.files, result, accepted_at="2026-01-01") is False
    assert withdraw_silver_ground_truth(workspace.files, "doc2_6") is False
    assert workspace.truth() == truth
    helper.save_review("doc2_6", undeterminable="illegible")
    assert write_silver_ground_truth(workspace.files, result, accepted_at="2026-01-01") is False
    assert workspace.truth() is None


@pytest.mark.parametrize("torn", [{}, {"ground_truth_source": 3}, {"ground_truth_source": "AUTO_ACCEPTED"}])
def test_a_silver_record_of_another_shape_is_none(build: Any, workspace: Any, torn: dict[str, Any]) -> None:
    workspace.files.write_json(ground_truth_file_name("a"), {"schema_version": 1, "inclusion_probability": "x", **torn})
    assert read_silver_audit_probability(workspace.files, "a") is None
    workspace.files.write_json(ground_truth_file_name("a.extraction"), {"schema_version": 1, **torn})
    remove_mismatched_silver_fields(workspace.files, "a")
    assert withdraw_silver_ground_truth(workspace.files, "a") is (torn.get("ground_truth_source") == "AUTO_ACCEPTED")


@pytest.mark.parametrize("outcome", ["undeterminable", "reopened"])
def test_no_ground_truth_means_no_silver_either(build: Any, workspace: Any, outcome: str) -> None:
    write_silver_ground_truth(workspace.files, build.result(build.single("Other")), accepted_at="2025")
    workspace.publish(build.single("Other"))
    helper = workspace.helper()
    if outcome == "undeterminable":
        helper.save_review("doc2_6", undeterminable="illegible")
    else:
        helper.save_review("doc2_6", agrees=True)
        helper.reopen("doc2_6", "wrong")
    assert workspace.truth() is None


def test_silver_is_withdrawn_and_never_mixed_in_unasked(build: Any, workspace: Any) -> None:
    write_silver_ground_truth(workspace.files, build.result(build.single("Other"), doc_id="a"), accepted_at="2025")
    workspace.publish(build.single("Other"), doc_id="b")
    workspace.helper().save_review("b", agrees=True)
    assert [truth.record.doc_id for truth in read_folder_ground_truth(workspace.root).documents] == ["b"]
    assert [
        truth.record.doc_id for truth in read_folder_ground_truth(workspace.root, include_silver=True).documents
    ] == [
        "a",
        "b",
    ]
    assert withdraw_silver_ground_truth(workspace.files, "a") is True
    assert withdraw_silver_ground_truth(workspace.files, "a") is False
    assert withdraw_silver_ground_truth(workspace.files, "b") is False
    assert workspace.truth("b") is not None


def test_a_crash_after_the_review_is_healed(genomic: Any, workspace: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    helper = workspace.helper()
    with monkeypatch.context() as patched:

        def full(self: OutputFolder, name: str, value: Any, *, compact: bool = False) -> None:
            raise StoreError("full", code="STORE-FULL", remedy="")

        patched.setattr(LocalOutputFolder, "write_json", full)
        with pytest.raises(StoreError):
            helper.save_review("doc2_6", corrected_dominant_type="Other")
    assert find_newest_revision(workspace.files, "doc2_6") == 1
    assert workspace.truth() is None
    assert [row["review_status"] for row in rebuild_case_files_and_list_index_rows(workspace.files, "doc2_6")] == [
        "completed"
    ]
    truth = workspace.truth()
    assert truth["revision"] == 1
    assert read_packet(workspace.files, "doc2_6").review_status == "completed"
    (workspace.root / "ground_truth/gt_doc2_6.json").unlink()
    rebuild_case_files_and_list_index_rows(workspace.files, "doc2_6")
    assert workspace.truth() == truth


def test_reprojecting_without_reviews_leaves_silver(build: Any, workspace: Any) -> None:
    write_silver_ground_truth(workspace.files, build.result(build.single("Other")), accepted_at="2025")
    workspace.publish(build.single("Other"))
    assert [row["review_status"] for row in rebuild_case_files_and_list_index_rows(workspace.files, "doc2_6")] == [
        "pending"
    ]
    assert workspace.truth()["ground_truth_source"] == "AUTO_ACCEPTED"


# --- the queue ----------------------------------------------------------------------------------------------------


def test_the_queue_is_worst_first_with_the_contracts_columns(build: Any, workspace: Any) -> None:
    assert list(workspace.helper().list_pending_reviews().columns) == list(CASE_COLUMNS)
    blocker, major, minor = (build.issue(f"V3-000{n}", s) for n, s in enumerate(("BLOCKER", "MAJOR", "MINOR"), 1))
    for doc_id, issues in {
        "c": [minor],
        "b": [major],
        "d": [major],
        "a": [],
        "z": [blocker, major],
        "y": [blocker],
    }.items():
        workspace.publish(build.single("Other"), issues, doc_id=doc_id)
    frame = workspace.helper().list_pending_reviews()
    assert list(frame["case_id"]) == ["z", "y", "b", "d", "c", "a"]
    assert list(frame.columns) == COLUMNS.split()


# --- refusals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"agrees": False},
        {"agrees": True, "corrected_dominant_type": "Other"},
        {"agrees": True, "undeterminable": "illegible"},
        {"corrected_dominant_type": "Other", "undeterminable": "illegible"},
        {"undeterminable": "  "},
        {"corrected_dominant_type": "Cardiology"},
        {"corrected_segments": []},
        {"corrected_segments": [{"start_page": 1, "end_page": 1}]},
        {"corrected_segments": [{"start_page": 1, "end_page": 1, "dominant_type": "Other", "composition": []}]},
        {"corrected_segments": [{"start_page": 1, "end_page": 2, "dominant_type": "Other"}]},
        {"corrected_segments": [{"start_page": 1, "end_page": 0, "dominant_type": "Other"}]},
        {"corrected_mixture": [{"document_type": "Other", "overall_share": float("nan")}]},
        {"corrected_mixture": [{"document_type": "Other", "overall_share": 0.4}]},
        {"agrees": True, "vouched": ["everything"]},
        {"agrees": True, "issue_verdicts": [{"issue_id": "V9-0001", "verdict": "confirmed"}]},
        {"agrees": True, "issue_verdicts": [{"issue_id": "V4-0001", "verdict": "perhaps"}]},
        {"agrees": True, "issue_verdicts": [{"issue_id": "V4-0001", "verdict": "confirmed"}] * 2},
        {"agrees": True, "seconds_active": float("nan")},
        {"agrees": True, "pages_seen": ["first"]},
    ],
)
def test_what_cannot_stand_is_refused_and_nothing_is_written(
    pathology: Any, workspace: Any, said: dict[str, Any]
) -> None:
    with pytest.raises(ReviewRefused) as caught:
        workspace.helper().save_review("doc2_6", **said)
    assert "\n" not in str(caught.value)
    assert not (workspace.root / "reviews").exists()
    assert workspace.truth() is None
    assert [row["review_status"] for row in workspace.index.list_cases_worst_first()] == ["pending"]


def test_a_missing_case_is_named_with_what_to_do(workspace: Any) -> None:
    helper = workspace.helper()
    with pytest.raises(NotFound, match=r"doc9.*list_pending_reviews"):
        helper.save_review("doc9", agrees=True)


def test_a_helper_needs_a_name_and_a_folder_that_is_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="name"):
        SMEReviewHelper(tmp_path, " ")
    with pytest.raises(UsageError, match="folder"):
        SMEReviewHelper(tmp_path / "nowhere", "dr_lee")
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("base", [0, 2, 7, -1])
def test_a_stale_revision_is_a_conflict(genomic: Any, workspace: Any, base: int) -> None:
    helper = workspace.helper()
    helper.save_review("doc2_6", corrected_dominant_type="Other", base_revision=0)
    with pytest.raises(ReviewConflict):
        helper.save_review("doc2_6", corrected_dominant_type="Clinical Note", base_revision=base)
    with pytest.raises(ReviewConflict):
        helper.reopen("doc2_6", "why", base_revision=base)
    assert find_newest_revision(workspace.files, "doc2_6") == 1
    assert workspace.truth()["corrected_dominant_type"] == "Other"


# --- races ---------------------------------------------------------------------------------------------------------


def test_of_two_threads_exactly_one_saves(genomic: Any, workspace: Any) -> None:
    helpers = [workspace.helper("dr_lee"), workspace.helper("dr_kim")]
    for revision in range(50):
        said = {"corrected_dominant_type": "Other", "base_revision": revision}
        outcomes = run_together(*(partial(helper.save_review, "doc2_6", **said) for helper in helpers))
        assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Review", "ReviewConflict"]
        winner = next(outcome for outcome in outcomes if not isinstance(outcome, Exception))
        assert workspace.truth()["reviewer"] == winner.reviewer
        assert workspace.truth()["revision"] == revision + 1
    chain = [json.loads((workspace.root / f"reviews/doc2_6/{n:04d}.json").read_bytes()) for n in range(1, 51)]
    hashes = [
        hashlib.sha256((workspace.root / f"reviews/doc2_6/{n:04d}.json").read_bytes()).hexdigest() for n in range(1, 51)
    ]
    assert [review["prev_sha256"] for review in chain] == [None, *hashes[:-1]]


def test_600_unlocked_races_each_store_one_review(genomic: Any, workspace: Any) -> None:
    workspace.helper().save_review("doc2_6", corrected_dominant_type="Other")
    race_for_reviews(workspace.root, read_review(workspace.files, "doc2_6", 1), 600)


def test_without_a_base_revision_both_are_kept(genomic: Any, workspace: Any) -> None:
    helpers = [workspace.helper(name) for name in ("a", "b", "c")]
    run_together(*(partial(helper.save_review, "doc2_6", corrected_dominant_type="Other") for helper in helpers))
    assert find_newest_revision(workspace.files, "doc2_6") == 3
    assert workspace.truth()["revision"] == 3
    assert workspace.truth()["reviewer"] == read_review(workspace.files, "doc2_6", 3).reviewer


def _save_at(root: str, reviewer: str, revision: int, moment: float) -> str:
    helper = SMEReviewHelper(root, reviewer)
    time.sleep(max(0.0, moment - time.time()))
    try:
        helper.save_review("doc2_6", corrected_dominant_type="Other", base_revision=revision)
    except ReviewConflict:
        return "conflict"
    finally:
        helper.close()
    return "saved"


@pytest.mark.both_databases
def test_of_two_processes_exactly_one_saves(genomic: Any, workspace: Any) -> None:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        list(pool.map(abs, range(2)))
        for revision in range(8):
            moment = time.time() + 0.05
            futures = [pool.submit(_save_at, str(workspace.root), name, revision, moment) for name in ("a", "b")]
            assert sorted(future.result() for future in futures) == ["conflict", "saved"]
    assert workspace.truth()["revision"] == 8


def test_concurrent_run_never_replaces_a_reviewed_packet(build: Any, workspace: Any) -> None:
    for turn in range(40):
        doc_id = f"doc_{turn}"
        packet = workspace.publish(build.single("Other"), doc_id=doc_id)
        newer = packet.model_copy(update={"decision_rule": "8"})
        helper = workspace.helper()
        outcomes = run_together(
            partial(helper.save_review, doc_id, agrees=True),
            partial(publish_packet_unless_frozen, workspace.files, workspace.index, newer),
        )
        assert compute_packet_digest(read_packet(workspace.files, doc_id)) == outcomes[0].packet_sha256
        assert read_packet(workspace.files, doc_id).review_status == "completed"
