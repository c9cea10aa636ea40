"""Packets: what they say, how issues are printed, when they may be rewritten."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from evalkit.errors import NotFound, StoreError
from evalkit.review import (
    compute_packet_digest,
    issue_text,
    publish_packet_unless_frozen,
    rebuild_case_files_and_list_index_rows,
    withdraw_packet_unless_frozen,
)
from evalkit.review.case_files import build_case_index_row, read_packet
from evalkit.review.packet import is_packet_frozen
from evalkit.store import CASE_COLUMNS, hash_canonical_json

KEYS = """
    schema_version kind case_id doc_id pdf_filename pdf_path total_pages v5_decision decision_rule decision_reason
    total_issues issues_summary issues classification proposed_repairs production_differs production_classification
    document_bundle_path review_status review_reason inclusion_probability created_at
"""

SLIDE_9 = """\
[BLOCKER] V3-0001 (Agent: V3)
  Message:   Routine lab vendor detected (Quest Diagnostics) but
             Genomic Report marked PRIMARY
  Location:  document_mixture → Genomic Report
  Fix:       Reclassify as 'Other' or downgrade to MENTION_ONLY"""


def slide_9_issues(build: Any) -> list[Any]:
    return [
        build.issue("V1-0001", "MINOR", "V1-NO-EVIDENCE", message="Missing evidence for Other"),
        build.issue("V2-0001", "MAJOR", "V2-SEGMENT-SHARE-SUM", status="repaired"),
        build.issue("V4-0001", "MAJOR", "V4-QUOTE-UNCERTAIN", message="Evidence snippet not found"),
        build.issue(
            message="Routine lab vendor detected (Quest Diagnostics) but Genomic Report marked PRIMARY",
            location="document_mixture → Genomic Report",
            suggested_fix="Reclassify as 'Other' or downgrade to MENTION_ONLY",
        ),
    ]


def test_an_issue_is_printed_as_slide_9_prints_it(build: Any) -> None:
    assert issue_text(slide_9_issues(build)[-1]) == SLIDE_9


def test_issue_text_skips_empty_lines_and_control_characters(build: Any) -> None:
    text = issue_text(build.issue(message="a\x1b[2Jb\n\u202ec"))
    assert text.splitlines() == ["[BLOCKER] V3-0001 (Agent: V3)", "  Message:   a\ufffd[2Jb \ufffdc"]


def test_a_packet_has_the_contracts_keys_and_slide_9s_summary(build: Any) -> None:
    packet = build.packet(
        build.result(build.single("Genomic Report"), slide_9_issues(build)),
        production_row={"dominant_type": "Other", "confidence": 0.7},
    )
    value = packet.model_dump(mode="json")
    assert list(value) == KEYS.split()
    assert value["v5_decision"] == "ESCALATE_TO_SME"
    assert value["decision_reason"] == "a critical failure cannot be corrected automatically"
    assert value["total_issues"] == 3
    assert [(one["severity"], one["agent"], one["issue_id"]) for one in value["issues_summary"]] == [
        ("BLOCKER", "V3", "V3-0001"),
        ("MAJOR", "V4", "V4-0001"),
        ("MINOR", "V1", "V1-0001"),
    ]
    assert [one["issue_id"] for one in value["issues"]] == ["V3-0001", "V4-0001", "V2-0001", "V1-0001"]
    assert value["pdf_filename"] == "doc2_6.pdf"
    assert value["document_bundle_path"] == "document_bundles/doc2_6.json"
    assert value["review_status"] == "pending"
    assert value["production_differs"] is True
    assert value["production_classification"] == {"dominant_type": "Other", "confidence": 0.7}
    assert type(packet).model_validate(json.loads(json.dumps(value))) == packet


@pytest.mark.parametrize(
    ("said", "differs"),
    [
        (None, None),
        ({"dominant_type": "Other"}, True),
        ({"dominant_type": "Genomic Report"}, False),
        ({"dominant_type": None, "label": "LAB"}, None),
    ],
)
def test_production_differs_only_where_it_said_something(build: Any, said: Any, differs: bool | None) -> None:
    packet = build.packet(build.result(build.single("Genomic Report")), production_row=said)
    assert packet.production_differs is differs
    assert packet.production_classification == said


def test_repairs_are_offered_not_done(build: Any) -> None:
    answer = build.single("Other").model_copy(update={"number_of_segments": 4})
    issue = build.issue("V1-0001", code="V1-SEGMENT-COUNT", auto_fixable=True)
    packet = build.packet(build.result(answer, [issue]))
    assert packet.classification.to_json() == answer.to_json()
    assert [(repair.issue_id, repair.before, repair.after) for repair in packet.proposed_repairs] == [("V1-0001", 4, 1)]


def test_a_packet_without_any_answer(build: Any) -> None:
    issue = build.issue("CLASSIFIER-0001".replace("CLASSIFIER", "classifier"), code="CLASSIFIER-AGENT-FAILED")
    packet = build.packet(build.result(None, [issue]), production_row={"dominant_type": "Other"})
    assert packet.classification is None
    assert packet.proposed_repairs == ()
    assert packet.production_differs is True


def test_the_hash_leaves_out_the_review_status_and_nothing_else(build: Any) -> None:
    packet = build.packet(build.result(build.single("Other")))
    assert compute_packet_digest(packet.model_copy(update={"review_status": "completed"})) == compute_packet_digest(
        packet
    )
    for key, value in {"created_at": "later", "total_issues": 9, "review_reason": "audit"}.items():
        assert compute_packet_digest(packet.model_copy(update={key: value})) != compute_packet_digest(packet)


def test_the_hash_is_that_of_the_file(build: Any, workspace: Any) -> None:
    packet = workspace.publish(build.single("Other"), [build.issue(boxes=((1, 0.1, 0.2, 0.3, 0.4),))])
    stored = json.loads((workspace.root / "sme_packets/sme_packet_doc2_6.json").read_bytes())
    del stored["review_status"]
    assert hash_canonical_json(stored) == compute_packet_digest(packet)


def test_publishing_again_writes_only_what_changed(build: Any, workspace: Any) -> None:
    first = workspace.publish(build.single("Other"))
    path = workspace.root / "sme_packets/sme_packet_doc2_6.json"
    before = path.read_bytes()
    assert (
        publish_packet_unless_frozen(
            workspace.files, workspace.index, first.model_copy(update={"created_at": "2026-01-01"})
        )
        is False
    )
    assert path.read_bytes() == before
    assert (
        publish_packet_unless_frozen(
            workspace.files, workspace.index, first.model_copy(update={"decision_rule": "4", "created_at": "2026"})
        )
        is True
    )
    assert read_packet(workspace.files, "doc2_6").created_at == "2026"


def test_a_packet_is_frozen_once_it_was_reviewed(build: Any, workspace: Any) -> None:
    packet = workspace.publish(build.single("Other"), [build.issue()])
    workspace.helper().save_review("doc2_6", agrees=True)
    before = read_packet(workspace.files, "doc2_6")
    assert is_packet_frozen(workspace.files, workspace.index, "doc2_6", "2025-02-01T12:00:00+00:00")
    assert (
        publish_packet_unless_frozen(workspace.files, workspace.index, packet.model_copy(update={"decision_rule": "4"}))
        is False
    )
    assert withdraw_packet_unless_frozen(workspace.files, workspace.index, "doc2_6") is False
    assert read_packet(workspace.files, "doc2_6") == before
    assert [row["review_status"] for row in workspace.index.list_cases_worst_first()] == ["completed"]


def test_a_reopened_packet_is_frozen_too(build: Any, workspace: Any) -> None:
    packet = workspace.publish(build.single("Other"))
    helper = workspace.helper()
    helper.save_review("doc2_6", agrees=True)
    helper.reopen("doc2_6", "the wrong patient")
    assert (
        publish_packet_unless_frozen(workspace.files, workspace.index, packet.model_copy(update={"decision_rule": "4"}))
        is False
    )


def test_withdrawing_takes_file_and_row_away(build: Any, workspace: Any) -> None:
    workspace.publish(build.single("Other"))
    assert withdraw_packet_unless_frozen(workspace.files, workspace.index, "doc2_6") is True
    assert workspace.index.list_cases_worst_first() == []
    assert withdraw_packet_unless_frozen(workspace.files, workspace.index, "doc2_6") is False
    with pytest.raises(NotFound, match="doc2_6"):
        read_packet(workspace.files, "doc2_6")


def test_the_row_counts_open_issues_and_can_be_rebuilt(build: Any, workspace: Any) -> None:
    workspace.publish(build.single("Genomic Report"), slide_9_issues(build))
    workspace.publish(build.single("Other"), doc_id="doc2_7")
    workspace.helper().save_review("doc2_7", agrees=True)
    rows = workspace.index.list_cases_worst_first()
    assert tuple(rows[0]) == CASE_COLUMNS
    assert (rows[0]["blocker"], rows[0]["major"], rows[0]["minor"]) == (1, 1, 1)
    rebuilt = [
        {name: row[name] for name in CASE_COLUMNS}
        for one in ("doc2_6", "doc2_7")
        for row in rebuild_case_files_and_list_index_rows(workspace.files, one)
    ]
    assert rebuilt == sorted(rows, key=lambda row: row["case_id"])


def test_row_names_questions_whose_pages_these_are(build: Any) -> None:
    issues = [build.issue("V2-0001", code="V2-PATIENT-MIXED"), build.issue("V4-0001")]
    packet = build.packet(build.result(build.single("Other"), issues))
    assert build_case_index_row(packet, "pending")["agents"] == "V2,V2-PATIENT,V4"


@pytest.mark.parametrize("case_id", ["../x", "a/b", "", ".", "..", "doc2_6\n", "/etc/passwd", "x.json/../y", "a\x00b"])
def test_a_case_id_is_never_a_path(build: Any, workspace: Any, case_id: str) -> None:
    workspace.publish(build.single("Other"))
    helper = workspace.helper()
    for call in (
        partial(helper.load_packet, case_id),
        partial(helper.save_review, case_id, agrees=True),
        partial(helper.reopen, case_id, "why"),
        partial(helper.reviews, case_id),
    ):
        with pytest.raises(NotFound):
            call()
    assert not (workspace.root / "reviews").exists()


def test_a_damaged_packet_is_named_and_not_quoted(build: Any, workspace: Any) -> None:
    packet = workspace.publish(build.single("Other"))
    secret = "Jane Doe 1970-01-01"
    workspace.files.write_json(
        "sme_packets/sme_packet_doc2_6.json", {**packet.model_dump(mode="json"), "total_pages": secret}
    )
    with pytest.raises(StoreError, match="sme_packet_doc2_6") as caught:
        read_packet(workspace.files, "doc2_6")
    assert secret not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("page_count", [-1, 2**31])
def test_a_packet_of_impossibly_many_pages_is_refused(build: Any, workspace: Any, page_count: int) -> None:
    packet = workspace.publish(build.single("Other"))
    damaged = {**packet.model_dump(mode="json"), "total_pages": page_count}
    workspace.files.write_json("sme_packets/sme_packet_doc2_6.json", damaged)
    with pytest.raises(StoreError, match="sme_packet_doc2_6"):
        read_packet(workspace.files, "doc2_6")
