"""What a review records about the signature of its reviewer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evalkit.review.case_files import read_numbered_reviews
from evalkit.review.ground_truth import Review, ShownMachineAnswers, load_signature_meanings


@pytest.fixture
def case(build: Any, workspace: Any) -> Any:
    return workspace.publish(build.single("Pathology Report"), [build.issue("V4-0001", "MAJOR", "V4-EVIDENCE-WEAK")])


@pytest.mark.parametrize(
    ("answer", "decision"),
    [
        ({"agrees": True}, "validated"),
        ({"corrected_dominant_type": "Other"}, "corrected"),
        ({"corrected_dominant_type": "Other", "shown": ShownMachineAnswers(agent=False)}, "blind"),
        ({"undeterminable": "illegible"}, "undeterminable"),
        ({"undeterminable": "illegible", "shown": ShownMachineAnswers(agent=False)}, "undeterminable"),
    ],
)
def test_a_signature_states_what_was_decided(case: Any, workspace: Any, answer: Any, decision: str) -> None:
    review = workspace.helper().save_review("doc2_6", **answer)
    assert review.signature.meaning == load_signature_meanings()[decision]
    assert review.signature.document_sha256 == workspace.files.read_json("document_bundles/doc2_6.json")["sha256"]


def test_a_signature_fits_only_its_own_record(case: Any, workspace: Any) -> None:
    helper = workspace.helper()
    helper.save_review("doc2_6", agrees=True)
    helper.save_review("doc2_6", corrected_dominant_type="Other", base_revision=1)
    for name in ("reviews/doc2_6/0001.json", "reviews/doc2_6/0002.json"):
        stored = workspace.files.read_json(name)
        assert Review.model_validate(stored).compute_record_digest() == stored["signature"]["record_sha256"]
        for key, value in (
            ("reviewer", "dr_kim"),
            ("submitted_at", "2025-02-02T12:00:00+00:00"),
            ("packet_sha256", "0" * 64),
            ("prev_sha256", "0" * 64),
            ("outcome", "undeterminable"),
            ("after", None),
            ("signature", stored["signature"] | {"meaning": "approved"}),
            ("signature", stored["signature"] | {"document_sha256": None}),
        ):
            changed = Review.model_validate(stored | {key: value})
            assert changed.compute_record_digest() != stored["signature"]["record_sha256"], key


def test_reopening_is_signed_too(case: Any, workspace: Any) -> None:
    helper = workspace.helper()
    helper.save_review("doc2_6", agrees=True)
    helper.reopen("doc2_6", "look again")
    signature = workspace.files.read_json("reviews/doc2_6/0002.json")["signature"]
    assert signature["meaning"] == load_signature_meanings()["reopened"]


def test_reviews_without_a_signature_are_read(case: Any, workspace: Any) -> None:
    workspace.helper().save_review("doc2_6", agrees=True)
    path = workspace.root / "reviews/doc2_6/0001.json"
    stored = json.loads(path.read_text())
    del stored["signature"]
    path.write_text(json.dumps(stored))
    [(_, review)] = read_numbered_reviews(workspace.files, "doc2_6")
    assert review.signature is None
    assert review.model_dump(mode="json") == stored
