"""Ground truth as a table: rows by level, provenance, and what cannot be read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from evaluation.truths import NOTE, OTHER, Output

from evalkit.errors import StoreError
from evalkit.evaluation.export import export_ground_truth
from evalkit.evaluation.ground_truth_table import COLUMNS, TableLevel, load_ground_truth, read_folder_ground_truth
from evalkit.store import review_file_name

LEVELS: tuple[TableLevel, ...] = ("document", "segment", "page")


@pytest.fixture
def output(tmp_path: Path) -> Output:
    made = Output(tmp_path / "output")
    made.add("two", [(1, 2, NOTE), (3, 3, OTHER)], pages=["a", "b", "c"])
    made.add("alone", [(1, 1, OTHER)], reviewer="simulated_1", vouched=("dominant_type",))
    made.add("shiny", [(1, 1, NOTE)], silver=True)
    return made


@pytest.mark.parametrize("level", LEVELS)
def test_every_column_is_documented_and_comes_in_order(output: Output, level: TableLevel) -> None:
    empty = output.root.parent / "empty"
    empty.mkdir()
    for root in (output.root, empty):
        table = load_ground_truth(root, level)
        assert list(table.columns) == list(COLUMNS[level])
        assert table.dtypes.equals(load_ground_truth(output.root, level, silver=True).dtypes)
    assert all(meaning.endswith(".") for meaning in COLUMNS[level].values())


def test_silver_comes_only_when_asked_for(output: Output) -> None:
    assert set(load_ground_truth(output.root)["doc_id"]) == {"alone", "two"}
    assert set(load_ground_truth(output.root, silver=True)["doc_id"]) == {"alone", "shiny", "two"}


def test_a_row_per_segment(output: Output) -> None:
    table = load_ground_truth(output.root, "segment").set_index("doc_id")
    two = table.loc["two", ["segment_index", "start_page", "end_page", "type"]].to_numpy().tolist()
    assert two == [[1, 1, 2, NOTE], [2, 3, 3, OTHER]]
    assert table["is_vouched"].to_dict() == {"two": True, "alone": False}


def test_a_row_per_page(output: Output) -> None:
    table = load_ground_truth(output.root, "page")
    two = table[table["doc_id"] == "two"]
    assert two[["page", "type", "segment_index"]].to_numpy().tolist() == [[1, NOTE, 1], [2, NOTE, 1], [3, OTHER, 2]]
    assert (two["number_of_pages"] == 3).all()


def test_pages_that_no_segment_covers_have_no_type(tmp_path: Path) -> None:
    output = Output(tmp_path)
    output.add("gap", [(2, 10**9, NOTE)], pages=["a", "b"], vouched=("dominant_type",))
    table = load_ground_truth(tmp_path, "page")
    assert table["type"].isna().tolist() == [True, False]
    assert not table["is_vouched"].any()


@pytest.mark.parametrize("level", LEVELS)
def test_every_row_says_where_it_is_from(output: Output, level: TableLevel) -> None:
    table = load_ground_truth(output.root, level, silver=True).set_index("doc_id")
    assert set(table.loc[["two"], "sha256"]) == {output.sha256("two")}
    assert set(table.loc[["two"], "reviewer"]) == {"dr_lee"}
    assert set(table.loc[["two"], "inclusion_probability"]) == {0.25}
    assert set(table.loc[["two"], "review_reason"]) == {"audit"}
    assert table.loc[["shiny"], "reviewer"].isna().all()
    assert table.loc[["alone"], "is_simulated"].all()
    assert not table.loc[["two", "shiny"], "is_simulated"].any()


@pytest.mark.parametrize("level", LEVELS)
def test_a_later_draw_raises_the_probability_and_never_lowers_it(output: Output, level: TableLevel) -> None:
    output.add("asked", inclusion_probability=None, review_reason="requested")
    output.add("hard", inclusion_probability=1.0, review_reason="escalated")
    share = {"two": 0.6, "alone": 0.1, "asked": 0.3, "shiny": 0.5}
    for number, factor in enumerate((0.5, 1), 1):
        stratum = {"value": "all", "probability": {name: factor * p for name, p in share.items()}, "drawn": []}
        draw = {"schema_version": 1, "by": "type", "drawn_at": "", "strata": [stratum]}
        output.files.write_json(f"draws/{number:04d}.json", draw)
    table = load_ground_truth(output.root, level, silver=True).groupby("doc_id")["inclusion_probability"].max()
    assert table.to_dict() == {"two": 0.6, "alone": 0.25, "asked": 0.3, "hard": 1.0, "shiny": 0.5}


def test_of_a_damaged_draw_nobody_knows_what_it_raised(output: Output) -> None:
    output.add("hard", inclusion_probability=1.0, review_reason="escalated")
    (output.root / "draws").mkdir()
    (output.root / "draws/0001.json").write_text("{")
    table = load_ground_truth(output.root).set_index("doc_id")["inclusion_probability"]
    assert table.isna().to_dict() == {"two": True, "alone": True, "hard": False}
    (problem,) = load_ground_truth(output.root).attrs["problems"]
    assert "draws/0001.json" in problem


def test_program_answer_marks_document_as_simulated(output: Output) -> None:
    for case_id, reviewer, outcome in (
        ("two", "dr_lee", "validated"),
        ("two.second", "simulated_2", "corrected"),
        ("two.adjudication", "dr_kim", "validated"),
        ("other", "simulated_3", "undeterminable"),
    ):
        review = {"schema_version": 1, "reviewer": reviewer, "outcome": outcome}
        output.files.write_json(review_file_name(case_id, 1), review)
    (output.root / "reviews/no case").mkdir()
    assert load_ground_truth(output.root).set_index("doc_id")["is_simulated"].to_dict() == {"alone": True, "two": True}
    found = read_folder_ground_truth(output.root)
    assert found.reviewers == {"dr_lee", "dr_kim", "simulated_1", "simulated_2", "simulated_3"}
    assert {one.record.doc_id: one.simulated_answer_count for one in found.documents} == {"alone": 1, "two": 1}


@pytest.mark.parametrize("review", ["{", '{"schema_version": 1, "reviewer": 7, "outcome": "validated"}'])
def test_a_damaged_review_is_named(output: Output, review: str) -> None:
    output.files.write_json(review_file_name("two", 1), {})
    (output.root / "reviews/two/0001.json").write_text(review)
    (problem,) = load_ground_truth(output.root).attrs["problems"]
    assert "reviews/two/0001.json" in problem


def test_lost_ground_truth_of_a_review_is_named(output: Output) -> None:
    for case_id, outcome in (("lost", "corrected"), ("two", "validated"), ("unread", "undeterminable")):
        review = {"schema_version": 1, "reviewer": "dr_lee", "outcome": outcome}
        output.files.write_json(review_file_name(case_id, 1), review)
        output.files.write_json(review_file_name(f"{case_id}.second", 1), review)
    output.files.write_json(review_file_name("gone", 1), {"schema_version": 1, "reviewer": "x", "outcome": "validated"})
    (problem,) = load_ground_truth(output.root).attrs["problems"]
    assert problem.startswith("ground_truth/gt_gone.json is missing")


def test_a_damaged_bundle_is_named_and_the_others_are_whole(output: Output) -> None:
    (output.root / "document_bundles/two.json").write_text("{")
    for level in LEVELS:
        table = load_ground_truth(output.root, level)
        assert len(table.attrs["problems"]) == 1
        assert "two" in table.attrs["problems"][0]
        assert "alone" in set(table["doc_id"])
    assert load_ground_truth(output.root).set_index("doc_id").loc[["two"], "sha256"].isna().all()


def test_dropped_types_are_named_with_their_remedy(output: Output, tmp_path: Path) -> None:
    path = output.root / "ground_truth/gt_two.json"
    path.write_text(path.read_text().replace(NOTE, "Dental Chart"))
    with pytest.raises(StoreError, match=r"gt_two\.json contains a document type that .* types_file") as raised:
        export_ground_truth(output.root, tmp_path / "t")
    assert not {"backup", "Dental"} & {*str(raised.value).split()}


@pytest.mark.parametrize(
    "change",
    [
        {"revision": "many"},
        {"ground_truth_source": "HEARSAY"},
        {"correction_notes": "half a \ud800 sign"},
        {"schema_version": 99},
        {"doc_id": "../../etc/passwd"},
    ],
)
def test_a_damaged_record_is_named_without_a_word_of_it(output: Output, change: dict[str, Any]) -> None:
    path = output.root / "ground_truth/gt_two.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"correction_notes": "Mr. Secret"} | change))
    table = load_ground_truth(output.root)
    assert "alone" in set(table["doc_id"])
    assert len(table.attrs["problems"]) == 1
    assert "Secret" not in table.attrs["problems"][0]


def test_records_of_other_tasks_are_passed_over(output: Output) -> None:
    path = output.root / "ground_truth/gt_two.extraction.json"
    path.write_text(json.dumps({"schema_version": 1, "doc_id": "two", "ground_truth_fields": {}}))
    table = load_ground_truth(output.root)
    assert table["doc_id"].tolist() == ["alone", "two"]
    assert table.attrs["problems"] == []
