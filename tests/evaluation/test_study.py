"""What a study reads from an output folder: every document once, with what is known of it."""

from __future__ import annotations

import json
import math
import shutil
from collections import Counter
from pathlib import Path

import pytest
from evaluation.studies import GENOMIC, NOTE, OTHER
from places import open_folder

import evalkit
from evalkit.errors import UsageError
from evalkit.evaluation.ground_truth_table import read_folder_ground_truth
from evalkit.evaluation.sampling import draw_and_queue_sample
from evalkit.evaluation.study import Study, read_study
from evalkit.pipeline import RunSummary
from evalkit.pipeline.supplied_labels import parse_typed_page_ranges
from evalkit.review import SMEReviewHelper
from evalkit.review.ground_truth import ShownMachineAnswers
from evalkit.review.index_rebuild import reindex
from evalkit.samples.simulated_experts import simulate_and_submit_reviews
from evalkit.store import OutputIndex

NOW = "2026-01-01T00:00:00.000Z"


@pytest.fixture
def output(demo_run: RunSummary, tmp_path: Path) -> Path:
    shutil.copytree(demo_run.output, tmp_path / "output")
    return tmp_path / "output"


def known(study: Study) -> dict:
    return {one.doc_id: one for one in study.documents}


def test_every_document_stands_somewhere(output: Path) -> None:
    study = read_study(output)
    assert study.problems == ()
    assert Counter(document.truth_status for document in study.documents) == {"unseen": 12, "pending": 11}
    one = known(study)["doc2_6"]
    assert one.agent_labels.segments == ((1, 5, GENOMIC), (6, 8, NOTE))
    assert (one.production_labels.dominant_type, one.production_labels.confidence) == (NOTE, 0.57)
    assert (one.inclusion_probability, one.review_probability, one.page_count, one.decision) == (
        0.2,
        0,
        8,
        "AUTO_ACCEPT",
    )
    assert known(study)["quest_genomic"].review_probability == 1.0
    assert [issue.code for issue in known(study)["segment_count"].issues] == ["V1-SEGMENT-COUNT"]


def test_a_document_whose_file_was_exchanged_stands_apart(output: Path) -> None:
    before = read_study(output)
    with OutputIndex(open_folder(output)) as index:
        (row,) = (row for row in index.list_documents() if row["doc_id"] == "doc2_6")
        index.upsert_document_and_mark_replaced(row | {"doc_id": "rescanned"})
    after = read_study(output)
    assert [one.doc_id for one in after.replaced_documents] == ["doc2_6"]
    assert "doc2_6" not in known(after)
    assert {one.doc_id for one in after.documents_ever} == {one.doc_id for one in before.documents}


def test_the_result_describes_the_file_as_its_bundle_does(output: Path) -> None:
    def describe(study: Study) -> dict:
        names = ("source_folder", "sender", "language", "page_form", "patients_in_file", "pages_of_others")
        return {one.doc_id: {name: getattr(one, name) for name in names} for one in study.documents}

    stored = describe(read_study(output))
    assert stored["quest_genomic"] == {
        "source_folder": "samples",
        "sender": "",
        "language": "en",
        "page_form": "text",
        "patients_in_file": 1,
        "pages_of_others": 0,
    }
    assert any(one["sender"] for one in stored.values())
    shutil.move(output / "document_bundles", output / "moved")
    assert describe(read_study(output)) == stored
    shutil.move(output / "moved", output / "document_bundles")
    for path in (output / "results").iterdir():  # as an older version wrote it
        result = json.loads(path.read_text())
        del result["properties"]
        path.write_text(json.dumps(result))
    assert describe(read_study(output)) == stored
    shutil.rmtree(output / "document_bundles")
    assert {tuple(one.values()) for one in describe(read_study(output)).values()} == {("", "", "", "", None, None)}


def test_reviews_are_the_truth_and_simulations_are_marked(output: Path) -> None:
    with_person = SMEReviewHelper(output, "dr_lee")
    with_person.save_review(
        "quest_genomic",
        agrees=False,
        corrected_dominant_type=OTHER,
        issue_verdicts=[{"issue_id": "V3-0001", "verdict": "confirmed"}],
    )
    with_person.save_review("poor_scan", undeterminable="nobody can read it")
    with_person.close()
    SMEReviewHelper(output, "simulated_ash").save_review("segment_count", agrees=True, seconds_active=12.5)
    study = read_study(output)
    assert Counter(document.truth_status for document in study.documents) == {
        "unseen": 12,
        "pending": 8,
        "reviewed": 2,
        "undeterminable": 1,
    }
    assert study.simulated_review_count == 1
    corrected, validated = known(study)["quest_genomic"], known(study)["segment_count"]
    assert (corrected.truth.labels.dominant_type, corrected.truth.vouched) == (OTHER, {"dominant_type"})
    assert {issue.issue_id: issue.expert_verdict for issue in corrected.issues}["V3-0001"] == "confirmed"
    assert (validated.truth.source, validated.truth.is_simulated) == ("SME_VALIDATED", True)
    (answer,) = validated.reviews
    assert (answer.outcome, answer.active_seconds, answer.is_blind, answer.labels_before.dominant_type) == (
        "validated", 12.5, False, "Radiology Report",
    )  # fmt: skip


def test_damaged_file_is_named_and_counts_as_unreadable(output: Path) -> None:
    (output / "results" / "doc2_6.json").write_text("{")
    (output / "sme_packets" / "sme_packet_quest_genomic.json").write_text('{"schema_version": 1}')
    study = read_study(output)
    assert len(study.documents) == 23
    assert {one.doc_id for one in study.documents if one.truth_status == "unreadable"} == {"doc2_6", "quest_genomic"}
    assert (
        known(study)["quest_genomic"].production_labels.dominant_type == OTHER
    )  # what production says of it stays in question
    assert len(study.problems) == 2
    assert all(name in " ".join(study.problems) for name in ("doc2_6", "quest_genomic"))


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("classification", "segments", 0, "start_page"), "1"),
        (("classification", "segments", 0, "dominant_type"), ["Other"]),
        (("classification", "document_mixture", 0, "overall_share"), None),
        (("classification", "document_mixture", 0, "overall_share"), math.nan),
        (("classification", "document_mixture", 0, "presence_level"), 3),
        (("classification", "dominant_type_overall"), {}),
        (("evidence_quality_score",), math.inf),
        (("usage", "calls"), "four"),
        (("times", "finished_at"), []),
        (("sha256",), {}),
        (("properties", "patients_in_file"), -1),
        (("error",), {"code": {}}),
        (("issues", 0, "severity"), "WORST"),
        (("issues", 0, "page"), "two"),
    ],
)
def test_a_damaged_value_is_as_good_as_a_damaged_file(output: Path, place: tuple, value: object) -> None:
    path = output / "results" / "quest_genomic.json"
    result = json.loads(path.read_text())
    inner = result
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = value
    path.write_text(json.dumps(result))
    study = read_study(output)
    assert [one.doc_id for one in study.documents if one.truth_status == "unreadable"] == ["quest_genomic"]
    assert "quest_genomic" in study.problems[0]


def test_a_packet_of_impossibly_many_pages_is_damaged(output: Path) -> None:
    path = output / "sme_packets" / "sme_packet_quest_genomic.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"total_pages": 20_001}))
    study = read_study(output)
    assert [one.doc_id for one in study.documents if one.truth_status == "unreadable"] == ["quest_genomic"]


def test_labels_that_are_given_stand_before_reviews(output: Path, tmp_path: Path) -> None:
    gold = tmp_path / "labels.csv"
    gold.write_text("filename,dominant_type,segments\ndoc2_6.pdf,Other,1-8 Other\nquest_cbc.pdf,Other,\n")
    study = read_study(output, truth=gold)
    one, other = known(study)["doc2_6"], known(study)["quest_cbc"]
    assert (one.truth.source, one.truth.labels.segments, one.review_probability) == ("GOLD", ((1, 8, OTHER),), 1.0)
    assert other.truth.vouched == {"dominant_type"}
    assert known(study)["clinical_note"].truth is None


def test_foreign_labels_are_mapped_or_said(output: Path, tmp_path: Path) -> None:
    labels = tmp_path / "production.json"
    rows = [
        {"doc_id": "doc2_6", "dominant_type": "GENOMICS", "segments": "1-5 GENOMICS; 6-8 Clinical Note"},
        {"doc_id": "quest_cbc", "dominant_type": "LAB"},
        {"doc_id": "fabricated_quote", "dominant_type": " radiology  REPORT ", "confidence": "much"},
        {"doc_id": "clinical_note", "dominant_type": NOTE, "confidence": "inf"},
    ]
    labels.write_text(json.dumps(rows))
    study = read_study(output, production=labels, foreign_types={"Genomics ": GENOMIC})
    assert known(study)["doc2_6"].production_labels.segments == ((1, 5, GENOMIC), (6, 8, NOTE))
    assert known(study)["quest_cbc"].production_labels is None
    assert known(study)["fabricated_quote"].production_labels.dominant_type == "Radiology Report"
    assert known(study)["clinical_note"].production_labels.confidence is None
    assert study.problems == ()
    assert len(study.label_warnings) == 2
    assert any("'LAB'" in one and "foreign_types" in one for one in study.label_warnings)
    assert known(study)["quest_genomic"].production_labels.dominant_type == OTHER  # the run's own label still counts


def test_failed_document_is_known_without_path_after_reindex(output: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.pdf").write_bytes(b"")
    evalkit.run([tmp_path / "empty.pdf"], output=output)
    reindex(open_folder(output))
    study = read_study(output)
    assert known(study)["empty"].truth_status == "unreadable"
    assert len(study.documents) == 24
    labels = tmp_path / "labels.csv"
    labels.write_text("doc_id,dominant_type\nempty,Other\nnowhere,Other\n")
    run = evalkit.run([tmp_path / "empty.pdf"], output=output, production=labels)
    assert [line for line in run.problems if "belongs to no document: nowhere" in line]


def test_a_folder_without_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no results"):
        read_study(tmp_path)


def test_draw_is_queued_counted_and_kept_by_the_next_run(output: Path, samples: Path) -> None:
    draw = draw_and_queue_sample(open_folder(output), 3, "production", seed="one", drawn_at=NOW)
    drawn = {name for one in draw.strata for name in one.drawn}
    assert len(drawn) == 3
    evalkit.run(
        [samples], output=output, classifications=samples / "classifications", production=samples / "production.csv"
    )
    study = read_study(output)
    assert {one.doc_id for one in study.documents if one.truth_status == "pending" and one.is_accepted} >= drawn
    waiting = SMEReviewHelper(output, "dr_lee").list_pending_reviews().set_index("case_id")
    assert set(waiting.loc[sorted(drawn), "review_reason"]) == {"sample"}
    for stratum in draw.strata:
        for name, probability in stratum.probability.items():
            assert known(study)[name].inclusion_probability == pytest.approx(probability)


def test_next_draw_finishes_unwritten_cases(output: Path) -> None:
    first = draw_and_queue_sample(open_folder(output), 2, "type", seed="one", drawn_at=NOW)
    lost = first.strata[0].drawn[0]
    (output / "sme_packets" / f"sme_packet_{lost}.json").unlink()
    draw_and_queue_sample(open_folder(output), 1, "type", seed="one", drawn_at=NOW)
    assert (output / "sme_packets" / f"sme_packet_{lost}.json").exists()


def test_simulated_experts_review_all_pending_correctly(output: Path, samples: Path) -> None:
    draw_and_queue_sample(open_folder(output), 30, "type", seed="one", drawn_at=NOW)
    assert (
        simulate_and_submit_reviews(open_folder(output), samples / "truth.csv", error_rate=0.0, second_opinion_rate=0.0)
        == 22
    )
    study = read_study(output)
    assert Counter(document.truth_status for document in study.documents) == {"reviewed": 22, "pending": 1}
    assert study.simulated_review_count == len(study.reviews) == 22
    gold = known(read_study(output, truth=samples / "truth.csv"))
    for one in study.reviewed_documents:
        assert one.truth.labels.dominant_type == gold[one.doc_id].truth.labels.dominant_type
        assert one.truth.labels.segments == gold[one.doc_id].truth.labels.segments


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("1-5 Genomic Report; 6 Other", ((1, 5, GENOMIC), (6, 6, OTHER))),
        ("", ()),
        (None, ()),
        ([{"start_page": 1, "end_page": 2, "dominant_type": None}], ((1, 2, None),)),
    ],
)
def test_segments_are_read_as_they_are_written(written, read) -> None:
    assert parse_typed_page_ranges(written) == read


@pytest.mark.parametrize("written", ["Genomic Report", "1-5", 7, [{"start_page": 1}], ["1-5 Other"]])
def test_segments_in_another_form_are_refused(written) -> None:
    with pytest.raises(ValueError, match="segment"):
        parse_typed_page_ranges(written)


def test_an_answer_changed_after_the_stop_counts_as_blind(output: Path) -> None:
    helper = SMEReviewHelper(output, "dr_lee")
    blind = ShownMachineAnswers(agent=False)
    helper.save_review("doc2_6", corrected_dominant_type="Other", correction_notes="blind", shown=blind)
    helper.save_review("doc2_6", agrees=True, correction_notes="then the program's")
    (document,) = (record for record in read_study(output).documents if record.doc_id == "doc2_6")
    assert document.truth is not None
    assert (document.truth.labels.dominant_type, document.truth.source) == ("Other", "SME_CORRECTED")
    assert [(review.revision, review.is_blind) for review in document.reviews] == [(1, True)]
    (truth,) = (row for row in read_folder_ground_truth(output).documents if row.record.doc_id == "doc2_6")
    assert truth.record.ground_truth_classification.dominant_type_overall == "Genomic Report"
