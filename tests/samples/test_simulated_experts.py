"""Programs in the experts' place: what they take for the truth, and what they refuse in one line."""

from __future__ import annotations

import json
import shutil
from importlib.resources import files
from pathlib import Path

import pytest
from places import open_folder

from evalkit.evaluation.attention_checks import plant_and_queue_attention_checks
from evalkit.evaluation.study import read_study
from evalkit.pipeline import RunSummary
from evalkit.samples.simulated_experts import UNEXPOSED_REVIEWER, main, simulate_and_submit_reviews


@pytest.fixture
def output(demo_run: RunSummary, tmp_path: Path) -> Path:
    return Path(shutil.copytree(demo_run.output, tmp_path / "output"))


def test_a_row_without_segments_is_one_segment(
    output: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    truth = tmp_path / "truth.csv"
    truth.write_text("doc_id,dominant_type\nquest_genomic,Other\n")
    assert main([str(output), str(truth)]) == 0
    assert capsys.readouterr().out.endswith("reviews by simulated experts\n")
    record = json.loads((output / "ground_truth/gt_quest_genomic.json").read_text())
    (segment,) = record["ground_truth_classification"]["segments"]
    assert (segment["start_page"], segment["end_page"], segment["dominant_type"]) == (1, 2, "Other")


def test_a_document_without_a_row_is_left_out_and_named(
    output: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    truth = tmp_path / "truth.csv"
    truth.write_text("doc_id,dominant_type\nquest_genomic,Other\n")
    waiting = {path.stem.removeprefix("sme_packet_") for path in (output / "sme_packets").iterdir()}
    assert main([str(output), str(truth)]) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(f"has no row for them: {', '.join(sorted(waiting - {'quest_genomic'}))}")
    assert {path.name.partition(".")[0] for path in (output / "reviews").iterdir()} == {"quest_genomic"}


def test_named_cases_are_left_for_people(output: Path, samples: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(output), str(samples / "truth.csv"), "quest_genomic", "poor_scan"]) == 0
    reviewed = {path.name for path in (output / "reviews").iterdir()}
    assert "segment_count" in reviewed
    assert not reviewed & {"quest_genomic", "poor_scan"}
    assert capsys.readouterr().err == "", "a case that is left needs no label"


@pytest.mark.parametrize("words", [[], ["output"]])
def test_wrong_arguments_are_one_line(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "OUTPUT TRUTH" in line


@pytest.mark.parametrize(
    "rows",
    [
        None,
        "doc_id\nquest_genomic\n",
        "doc_id,dominant_type\nquest_genomic,Secret\n",
        "doc_id,dominant_type,segments\nquest_genomic,Other,Secret\n",
        "doc_id,dominant_type,segments\nquest_genomic,Other,1-2 Secret\n",
        "doc_id,dominant_type,segments\nquest_genomic,Other,1-99 Other\n",
    ],
    ids=["no file", "no type", "unknown type", "no segments", "unknown type of a segment", "pages that there are not"],
)
def test_a_truth_that_cannot_be_understood_is_one_line(
    output: Path, tmp_path: Path, rows: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    truth = tmp_path / "truth.csv"
    if rows is not None:
        truth.write_text(rows)
    assert main([str(output), str(truth)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "Secret" not in line


def test_a_folder_without_results_is_one_line_and_stays_empty(
    tmp_path: Path, samples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    assert main([str(tmp_path / "empty"), str(samples / "truth.csv")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert list((tmp_path / "empty").iterdir()) == []


@pytest.mark.parametrize("attention", [0.0, 1.0])
def test_planted_faults_are_noticed_as_often_as_it_is_said(output: Path, attention: float) -> None:
    truth = output.parent / "truth.csv"
    truth.write_bytes((files("evalkit.samples") / "content" / "truth.csv").read_bytes())
    simulate_and_submit_reviews(open_folder(output), truth, error_rate=0.0, second_opinion_rate=0.0)
    documents = read_study(output).documents
    drawn = plant_and_queue_attention_checks(
        open_folder(output), 9, seed="one", drawn_at="2026-01-01T00:00:00.000Z"
    ).cases
    assert simulate_and_submit_reviews(open_folder(output), truth, fault_notice_rate=attention) == len(drawn) >= 2
    study = read_study(output)
    assert {(one.reviewer, one.is_fault_noticed, one.is_wrongly_validated) for one in study.attention_checks} == {
        (UNEXPOSED_REVIEWER, attention == 1.0, attention == 0.0)
    }
    assert study.documents == documents
