"""Exports: what was meant is what is read, in every format, and nothing is left half done."""

from __future__ import annotations

import csv
import errno
import json
import os
from pathlib import Path
from typing import Any

import datasets
import duckdb
import pandas as pd
import pyarrow.parquet as pq
import pytest
import yaml
from evaluation.truths import NOTE, OTHER, Output
from hypothesis import given, settings
from hypothesis import strategies as st
from places import open_index

from evalkit.errors import EvalkitError, StoreError, UsageError
from evalkit.evaluation.export import export_ground_truth
from evalkit.evaluation.exports import csv_table, dataset_folder, jsonl, parquet
from evalkit.evaluation.exports.content import PAGE_BREAK, ExportedTruth
from evalkit.evaluation.exports.csv_table import CSV_COLUMNS
from evalkit.evaluation.ground_truth_table import COLUMNS, load_ground_truth
from evalkit.evaluation.private_files import write_private_csv
from evalkit.store import result_file_name, review_file_name

SPLIT = {"train": 0.5, "test": 0.5}
LEVELS = ("document", "segment", "page")
FORMATS = ("jsonl", "csv", "parquet", "folder")


@pytest.fixture
def output(tmp_path: Path) -> Output:
    made = Output(tmp_path / "output")
    made.add(
        "Smith_John_2", [(1, 2, NOTE), (3, 3, OTHER)], pages=["Patient: John Smith\tMRN: 44-120", "Mr. Smith", "x"]
    )
    made.add("two", reviewer="simulated_1", correction_notes="=cmd|' /C calc'!A0")
    made.add("shiny", silver=True, pages=["other words"])
    return made


def lines(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".parquet":
        return list(pq.read_table(path).to_pylist())
    return [json.loads(line) for line in path.read_text().split("\n")[:-1]]


def everything(folder: Path) -> str:
    """What all files say; Parquet also decoded, because it may be compressed."""
    said = []
    for path in folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            said.append(content.decode("latin-1"))
            if content.startswith(b"PAR1"):
                said.append(json.dumps(pq.read_table(path).to_pylist(), default=str))
    return "\n".join(said)


def test_jsonl_of_documents_is_the_whole_records(output: Output, tmp_path: Path) -> None:
    assert export_ground_truth(output.root, tmp_path / "t.jsonl") == 2
    stored = [json.loads(path.read_text()) for path in sorted((output.root / "ground_truth").iterdir())]
    simulated = {"Smith_John_2": False, "two": True}
    meant = [one | {"is_simulated": simulated[one["doc_id"]]} for one in stored if one["doc_id"] != "shiny"]
    for segment in (segment for one in meant for segment in one["ground_truth_classification"]["segments"]):
        del segment["patient"]  # keys stay behind
    exported = lines(tmp_path / "t.jsonl")
    assert all({one.pop("patients_in_file") is None, one.pop("pages_of_others") is None} == {False} for one in exported)
    assert exported == meant


def test_each_line_of_documents_has_the_shape_that_is_documented(output: Output, tmp_path: Path) -> None:
    export_ground_truth(output.root, tmp_path / "t", split=SPLIT, with_text=True, silver=True)
    read = [ExportedTruth.model_validate(one) for one in lines(tmp_path / "t")]
    assert [one.schema_version for one in read] == [1, 1, 1]
    assert [one.is_simulated for one in read] == [False, False, True]
    assert all(one.split and one.text for one in read)


def test_a_second_opinion_of_a_program_marks_the_line_too(output: Output, tmp_path: Path) -> None:
    second = {"schema_version": 1, "reviewer": "simulated_9", "outcome": "validated"}
    output.files.write_json(review_file_name("Smith_John_2.second", 1), second)
    export_ground_truth(output.root, tmp_path / "t", deidentify=True)
    assert [one["is_simulated"] for one in lines(tmp_path / "t")] == [True, True]


@pytest.mark.parametrize("deidentify", [False, True])
def test_exported_quotes_say_who_vouches_for_them(tmp_path: Path, deidentify: bool) -> None:
    output = Output(tmp_path / "output")
    output.add("doc", [(1, 1, OTHER)])
    name = "ground_truth/gt_doc.json"
    record = output.files.read_json(name)
    (presence,) = [
        row
        for row in record["ground_truth_classification"]["segments"][0]["segment_composition"]
        if row["top_evidence"]
    ]
    own = {"snippet": "Refill request", "page": 1, "by": "expert", "vouched": True}
    presence |= {"top_evidence": [presence["top_evidence"][0] | {"vouched": False}, own], "share_vouched": False}
    record["vouched"] = ["segments", "boundary:2", "segment:1", "patients"]
    output.files.write_json(name, record)
    export_ground_truth(output.root, tmp_path / "t.jsonl", deidentify=deidentify)
    (exported,) = lines(tmp_path / "t.jsonl")
    (row,) = [
        row
        for row in exported["ground_truth_classification"]["segments"][0]["segment_composition"]
        if row["top_evidence"]
    ]
    assert [quote["vouched"] for quote in row["top_evidence"]] == [False, True]
    assert [quote.get("by") for quote in row["top_evidence"]] == [None, "expert"]
    assert row["share_vouched"] is False
    (document,) = load_ground_truth(output.root).to_dict("records")
    assert (document["is_vouched"], document["vouched"]) == (False, "segments boundary:2 segment:1 patients")


def test_csv_columns_are_stable_and_formulas_inert(output: Output, tmp_path: Path) -> None:
    export_ground_truth(output.root, tmp_path / "t.csv", file_format="csv")
    with (tmp_path / "t.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == CSV_COLUMNS
    assert rows[0]["segments"] == "1-2 Clinical Note; 3-3 Other"
    assert rows[1]["correction_notes"] == "'=cmd|' /C calc'!A0"
    assert [one["is_simulated"] for one in rows] == ["False", "True"]


@pytest.mark.parametrize("level", LEVELS)
def test_parquet_has_the_columns_typed(output: Output, tmp_path: Path, level: Any) -> None:
    export_ground_truth(output.root, tmp_path / "t.parquet", file_format="parquet", level=level, silver=True)
    table = pq.read_table(tmp_path / "t.parquet")
    assert table.column_names == list(COLUMNS[level])
    meant = load_ground_truth(output.root, level, silver=True)
    assert table.to_pandas(types_mapper=None)["doc_id"].tolist() == meant["doc_id"].tolist()
    assert str(table.schema.field("revision").type) == "int64"
    assert str(table.schema.field("is_vouched").type) == "bool"


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("level", LEVELS)
def test_everything_is_private_and_nothing_else_is_left(
    output: Output, tmp_path: Path, file_format: Any, level: Any
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    for _ in range(2):  # the second takes the first one's place
        count = export_ground_truth(
            output.root, place / "out", file_format=file_format, level=level, split=SPLIT, with_text=True
        )
    assert count == {"document": 2, "segment": 3, "page": 4}[level]
    assert [path.name for path in place.iterdir()] == ["out"]
    for path in [place / "out", *(place / "out").rglob("*")]:
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600)


def test_no_records_are_an_export_too(tmp_path: Path) -> None:
    (tmp_path / "output").mkdir()
    for file_format in FORMATS:
        made = export_ground_truth(tmp_path / "output", tmp_path / file_format, file_format=file_format, split=SPLIT)  # type: ignore[arg-type]
        assert made == 0
    assert (
        yaml.safe_load((tmp_path / "folder/README.md").read_text().split("---\n")[1])["configs"][0]["data_files"] == []
    )


@settings(max_examples=40)
@given(note=st.text(st.characters(exclude_categories=["Cs"])), quote=st.text(st.characters(exclude_categories=["Cs"])))
def test_whatever_people_write_is_read_again(tmp_path_factory: pytest.TempPathFactory, note: str, quote: str) -> None:
    root = tmp_path_factory.mktemp("any")
    output = Output(root / "output")
    output.add("one", correction_notes=note, quote=quote, pages=[quote])
    for file_format in FORMATS:
        export_ground_truth(output.root, root / file_format, file_format=file_format, with_text=True)  # type: ignore[arg-type]
    (record,) = lines(root / "jsonl")
    assert record["correction_notes"] == note
    (row,) = pq.read_table(root / "parquet").to_pylist()
    assert (row["correction_notes"], row["text"]) == (note, quote.replace(PAGE_BREAK, " "))


def test_text_comes_only_when_asked_for_and_by_level(output: Output, tmp_path: Path) -> None:
    export_ground_truth(output.root, tmp_path / "none.jsonl", level="page")
    assert "text" not in lines(tmp_path / "none.jsonl")[0]
    texts = {}
    for level in LEVELS:
        export_ground_truth(output.root, tmp_path / level, level=level, with_text=True)  # type: ignore[arg-type]
        texts[level] = [one["text"] for one in lines(tmp_path / level) if one["doc_id"] != "two"]
    first, second, third = "Patient: John Smith\tMRN: 44-120", "Mr. Smith", "x"
    assert texts["page"] == [first, second, third]
    assert texts["segment"] == [f"{first}\f{second}", third]
    assert texts["document"] == [f"{first}\f{second}\f{third}"]


def test_form_feeds_in_a_text_do_no_harm(output: Output, tmp_path: Path) -> None:
    path = output.root / "document_bundles/two.json"
    stored = json.loads(path.read_text())
    stored["pages"][0]["text"] = "one and \f"
    path.write_text(json.dumps(stored))
    export_ground_truth(output.root, tmp_path / "t", with_text=True)
    assert lines(tmp_path / "t")[1]["text"] == "one and  "


def test_the_card_is_a_dataset_card(output: Output, tmp_path: Path) -> None:
    export_ground_truth(output.root, tmp_path / "data set", file_format="folder", silver=True, split=SPLIT)
    card = (tmp_path / "data set/README.md").read_text()
    head = yaml.safe_load(card.split("---\n")[1])
    for one in head["configs"][0]["data_files"]:
        assert lines(tmp_path / "data set" / one["path"])
        assert {row["split"] for row in lines(tmp_path / "data set" / one["path"])} == {one["split"]}
    assert [one["name"] for one in head["dataset_info"]["features"]] == [*COLUMNS["document"], "split"]
    assert card.split("---\n")[2].startswith("**1 of 3 documents were reviewed by a program")
    for said in (
        "not reviewed by an expert",
        "| audit | 0.25 | 2 |",
        "| dr\\_lee | 1 |".replace("\\_", "_"),
        "Not de-identified",
    ):
        assert said in card
    assert "Smith" not in card  # file names may hold patients' names


def test_a_reviewers_name_cannot_end_a_table(output: Output, tmp_path: Path) -> None:
    output.add("three", reviewer="a | b\n\n# <script>")
    export_ground_truth(output.root, tmp_path / "f", file_format="folder")
    assert "| a \\| b # \\<script\\> | 1 |" in (tmp_path / "f/README.md").read_text()


def test_documents_of_one_patient_are_on_one_side(tmp_path: Path) -> None:
    output = Output(tmp_path / "output")
    for i in range(30):
        output.add(f"d{i}", identifiers=[("mrn", str(i // 3))], pages=[f"text {i} about nothing else"])
    export_ground_truth(output.root, tmp_path / "t", split=SPLIT)
    sides: dict[int, set[str]] = {}
    for row in lines(tmp_path / "t"):
        sides.setdefault(int(row["doc_id"][1:]) // 3, set()).add(row["split"])
    assert all(len(side) == 1 for side in sides.values())
    assert {name for side in sides.values() for name in side} == {"train", "test"}


@pytest.mark.parametrize("file_format", FORMATS)
def test_de_identified_exports_tell_nobody(output: Output, tmp_path: Path, file_format: Any) -> None:
    output.add("two", reviewer="dr_kim", correction_notes="asked dr_lee about Smith_John_2", pages=["p"])
    place = tmp_path / "place"
    place.mkdir()
    export_ground_truth(output.root, place / "t", file_format=file_format, deidentify=True, with_text=True, split=SPLIT)
    written = everything(place)
    for secret in ("Smith", "John", "44-120", "dr_lee", "dr_kim"):
        assert secret not in written
    for said in (f"doc_{output.sha256('two')[:12]}", "reviewer_1", "reviewer_2"):
        assert said in written


def reviewed(output: Output, case_id: str, reviewer: str, outcome: str = "validated") -> None:
    number = len(output.files.list_json_files(f"reviews/{case_id}")) + 1
    output.files.write_json(
        review_file_name(case_id, number), {"schema_version": 1, "reviewer": reviewer, "outcome": outcome}
    )


@pytest.mark.parametrize("file_format", FORMATS)
def test_names_outside_the_export_are_hidden_too(output: Output, tmp_path: Path, file_format: Any) -> None:
    note = (
        "same patient as smith_john_req (pending) and helen_marsh.pdf; discussed with dr_kim and Ann Lee; "
        "cf. 'Jones, Peter CT.pdf' / Jones_Peter_CT, SMITH, ray.stone; see brandt_eva"
    )
    output.add("noted", correction_notes=note, quote="Peter waited", pages=["Peter waited with eva"])
    for doc_id, file_path in (
        ("smith_john_req", "x"),
        ("helen_marsh", "x"),
        ("Jones_Peter_CT", "/in/Jones, Peter CT.pdf"),
    ):
        output.files.write_json(result_file_name(doc_id), {"schema_version": 1})
        index = open_index(output.root)
        index.upsert_document_and_mark_replaced(
            {"doc_id": doc_id, "sha256": output.sha256(doc_id), "file_path": file_path}
        )
        index.close()
    output.files.write_json(
        result_file_name("brandt_eva"), {"schema_version": 1, "sha256": output.sha256("brandt_eva")}
    )
    reviewed(output, "helen_marsh", "Dr_Kim", "undeterminable")
    reviewed(output, "helen_marsh.second", "Ann Lee")
    output.files.write_json("reviewers.json", {"schema_version": 1, "reviewers": {"ray.stone": "0"}})
    place = tmp_path / "place"
    place.mkdir()
    export_ground_truth(output.root, place / "t", file_format=file_format, deidentify=True, with_text=True)
    written = everything(place).casefold()
    for secret in (
        "smith",
        "john",
        "helen",
        "marsh",
        "kim",
        "ann lee",
        "jones",
        "peter",
        "ray.stone",
        "brandt",
        "eva ",
    ):
        assert secret not in written
    for doc_id in ("smith_john_req", "helen_marsh", "Jones_Peter_CT", "brandt_eva"):
        assert f"doc_{output.sha256(doc_id)[:12]}" in written


def test_damaged_review_or_roster_stops_deidentified_export(output: Output, tmp_path: Path) -> None:
    reviewed(output, "two", "dr_kim")
    (output.root / "reviews/two/0001.json").write_text("{")
    (output.root / "reviewers.json").write_text("{")
    with pytest.raises(StoreError, match=r"reviews/two/0001.json .*reviewers.json"):
        export_ground_truth(output.root, tmp_path / "t", deidentify=True)
    assert len(lines(tmp_path / "t")) == 2


@pytest.mark.parametrize("file_format", FORMATS)
def test_probabilities_are_those_of_the_last_draw(output: Output, tmp_path: Path, file_format: Any) -> None:
    draw = {"value": "all", "probability": {"two": 0.7, "shiny": 0.5, "Smith_John_2": 0.1}, "drawn": []}
    output.files.write_json("draws/0001.json", {"schema_version": 1, "by": "type", "drawn_at": "", "strata": [draw]})
    place = tmp_path / "t"
    export_ground_truth(output.root, place, file_format=file_format, silver=True)
    if file_format == "parquet":
        rows = pq.read_table(place).to_pylist()
    elif file_format == "csv":
        rows = list(csv.DictReader(place.open(newline="")))
    else:
        rows = lines(place / "data/train.parquet" if file_format == "folder" else place)
    found = {row["doc_id"]: float(row["inclusion_probability"]) for row in rows}
    assert found == {"two": 0.7, "shiny": 0.5, "Smith_John_2": 0.25}
    if file_format == "folder":
        assert "| audit | 0.7 | 1 |" in (place / "README.md").read_text()


def test_the_card_counts_every_answer_of_a_program(output: Output, tmp_path: Path) -> None:
    for case_id, reviewer in (
        ("Smith_John_2", "dr_lee"),
        ("Smith_John_2.second", "simulated_birch"),
        ("two", "simulated_1"),
    ):
        reviewed(output, case_id, reviewer)
    reviewed(output, "two", "simulated_2", "reopened")
    for deidentify in (False, True):
        export_ground_truth(output.root, tmp_path / "f", file_format="folder", deidentify=deidentify)
        card = " ".join((tmp_path / "f/README.md").read_text().split())
        assert "**2 of 2 documents were reviewed by a program (`is_simulated`), which gave 2 of 3 answers." in card
        assert [row["is_simulated"] for row in lines(tmp_path / "f/data/train.parquet")] == [True, True]
    export_ground_truth(output.root, tmp_path / "f", file_format="folder")
    card = (tmp_path / "f/README.md").read_text()
    assert "| simulated_birch | 0 | 1 |" in card
    assert "| dr_lee | 1 | 1 |" in card


def test_a_simulated_reviewer_stays_marked(output: Output, tmp_path: Path) -> None:
    export_ground_truth(output.root, tmp_path / "t", deidentify=True)
    assert {one["reviewer"].startswith("simulated_") for one in lines(tmp_path / "t")} == {True, False}
    export_ground_truth(output.root, tmp_path / "s", level="segment", deidentify=True)
    assert sum(one["is_simulated"] for one in lines(tmp_path / "s")) == 1


def test_the_card_of_a_de_identified_export_promises_nothing(output: Output, tmp_path: Path) -> None:
    export_ground_truth(output.root, tmp_path / "f", file_format="folder", deidentify=True)
    card = (tmp_path / "f/README.md").read_text()
    assert "**No guarantee**: names without a label" in card
    assert "Smith" not in everything(tmp_path / "f")


@pytest.mark.parametrize("pages", ["", ', "pages": 3'], ids=["torn", "of another shape"])
def test_a_damaged_bundle_is_named_and_the_others_are_written(output: Output, tmp_path: Path, pages: str) -> None:
    head = f'{{"schema_version": 1, "sha256": "{"ab" * 32}", "total_pages": 3'
    (output.root / "document_bundles/Smith_John_2.json").write_text(f"{head}{pages}}}" if pages else head)
    with pytest.raises(StoreError, match="Smith_John_2"):
        export_ground_truth(output.root, tmp_path / "t", deidentify=True, with_text=True, split=SPLIT)
    assert [one["doc_id"] for one in lines(tmp_path / "t")] == [f"doc_{output.sha256('two')[:12]}"]


def test_a_folder_that_is_no_export_is_refused_and_kept(output: Output, tmp_path: Path) -> None:
    export_ground_truth(output.root, tmp_path / "f", file_format="folder")
    (tmp_path / "f/data/mine.txt").write_text("mine")
    for place in (tmp_path / "f", tmp_path, output.root):
        with pytest.raises(UsageError):
            export_ground_truth(output.root, place, file_format="folder")
    assert (tmp_path / "f/data/mine.txt").read_text() == "mine"
    assert (output.root / "ground_truth").is_dir()


@pytest.mark.parametrize("file_format", FORMATS)
def test_what_cannot_be_written_is_one_error(output: Output, tmp_path: Path, file_format: Any) -> None:
    for place in (tmp_path / "gone/deep/t", output.root / "ground_truth", Path("/dev/null")):
        with pytest.raises(UsageError):
            export_ground_truth(output.root, place, file_format=file_format)
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize("file_format", [*FORMATS, "labelstudio", "fhir"])
def test_full_disk_is_told_with_its_remedy(
    output: Output, tmp_path: Path, file_format: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "place"
    place.mkdir()

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", fail)
    monkeypatch.setattr(os, "rename", fail)
    with pytest.raises(UsageError, match=r"exported cannot be written.*No space left") as told:
        export_ground_truth(output.root, place / "exported", file_format=file_format)
    assert told.value.remedy.startswith("Free some disk space")
    assert not list(place.iterdir())


def test_a_link_is_followed(output: Output, tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    export_ground_truth(output.root, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert len(lines(tmp_path / "real")) == 2


@pytest.mark.parametrize("column", ["reviewer", "is_simulated"])
@pytest.mark.parametrize("file_format", FORMATS)
def test_what_reads_otherwise_than_meant_is_named_and_not_kept(
    output: Output, tmp_path: Path, file_format: Any, column: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name in ((jsonl, "_read_jsonl"), (csv_table, "_read_csv"), (parquet, "_read_parquet")):
        read = getattr(module, name)
        monkeypatch.setattr(module, name, lambda path, read=read: [row | {column: "x"} for row in read(path)])
    place = tmp_path / "place"
    place.mkdir()
    with pytest.raises(EvalkitError, match=f"row 1 differs in {column}"):
        export_ground_truth(output.root, place / "t", file_format=file_format)
    assert list(place.iterdir()) == []


def test_a_cut_export_leaves_the_one_before(output: Output, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "place"
    place.mkdir()
    export_ground_truth(output.root, place / "f", file_format="folder")
    before = everything(place)
    monkeypatch.setattr(dataset_folder, "render_data_card", lambda **facts: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        export_ground_truth(output.root, place / "f", file_format="folder", silver=True)
    assert everything(place) == before


@pytest.mark.parametrize("file_format", ["parquet", "folder"])
def test_these_need_a_place(output: Output, file_format: Any) -> None:
    with pytest.raises(UsageError):
        export_ground_truth(output.root, None, file_format=file_format)


def test_standard_output(output: Output, capsys: pytest.CaptureFixture[str]) -> None:
    assert export_ground_truth(output.root, None, level="segment") == 3
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_a_saved_table_has_empty_cells_for_what_is_missing(tmp_path: Path) -> None:
    table = pd.DataFrame({"type": ["Other", None], "share": [None, 0.5], "documents": [("a",), ()], "n": [1, 2]})
    write_private_csv(table, tmp_path / "t.csv")
    with (tmp_path / "t.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(one["type"], one["share"], one["n"]) for one in rows] == [("Other", "", "1"), ("", "0.5", "2")]
    assert (tmp_path / "t.csv").stat().st_mode & 0o777 == 0o600


def test_duckdb_reads_each_level_with_its_types(output: Output, tmp_path: Path) -> None:
    for level in LEVELS:
        export_ground_truth(
            output.root, tmp_path / f"{level}.parquet", file_format="parquet", level=level, silver=True, split=SPLIT
        )
    with duckdb.connect() as database:

        def select(text: str, level: str) -> list[tuple[Any, ...]]:
            return database.execute(f"SELECT {text} FROM '{tmp_path}/{level}.parquet' ORDER BY doc_id").fetchall()

        segments = "list_transform(segments, lambda one: one.type || ' ' || one.start_page)"
        assert select(f"doc_id, {segments}", "document") == [
            ("Smith_John_2", ["Clinical Note 1", "Other 3"]),
            ("shiny", ["Other 1"]),
            ("two", ["Other 1"]),
        ]
        assert select("year(reviewed_at), typeof(reviewed_at), vouched[1], is_simulated", "document")[0] == (
            *(2025, "TIMESTAMP WITH TIME ZONE", "dominant_type", False),
        )
        assert select("doc_id, type, end_page - start_page", "segment")[0] == ("Smith_John_2", "Clinical Note", 1)
        assert len(select("page, type, inclusion_probability", "page")) == 5
        kinds = dict(
            database.execute(
                f"SELECT column_name, column_type FROM (DESCRIBE FROM '{tmp_path}/page.parquet')"
            ).fetchall()
        )
        assert (kinds["page"], kinds["vouched"], kinds["is_vouched"]) == ("BIGINT", "VARCHAR[]", "BOOLEAN")
    columns = pq.ParquetFile(tmp_path / "page.parquet").metadata.row_group(0)
    encodings = {columns.column(i).path_in_schema: columns.column(i).encodings for i in range(columns.num_columns)}
    assert "RLE_DICTIONARY" in encodings["type"]
    assert "RLE_DICTIONARY" not in encodings["correction_notes"]


@pytest.mark.parametrize("level", LEVELS)
def test_hugging_face_opens_the_folder(
    output: Output, tmp_path: Path, level: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(12):
        output.add(f"more_{number}", pages=[f"words {number} of their own"])
    shares = {"train": 0.5, "validation": 0.25, "test": 0.25}
    counted: dict[str, int] = {}
    place = tmp_path / "dataset"
    count = export_ground_truth(
        output.root, place, file_format="folder", level=level, split=shares, with_text=True, report_split=counted.update
    )
    monkeypatch.setattr("datasets.config.HF_DATASETS_OFFLINE", True)
    opened = datasets.load_dataset(str(place), cache_dir=str(tmp_path / "cache"))
    assert opened.keys() == shares.keys() == counted.keys()
    assert sum(counted.values()) == 14
    assert sum(map(len, opened.values())) == count
    for part, rows in opened.items():
        assert rows.features["reviewed_at"].dtype == "timestamp[us, tz=UTC]"
        assert rows.features["inclusion_probability"].dtype == "float64"
        assert rows.features["vouched"].feature.dtype == "string"
        if level == "document":
            assert len(rows) == counted[part]
            assert rows[0]["segments"][0]["start_page"] == 1
        if level == "page":
            assert rows.features["page"].dtype == "int64"


def test_without_a_split_no_shares_are_told(output: Output, tmp_path: Path) -> None:
    told: list[Any] = []
    export_ground_truth(output.root, tmp_path / "t", report_split=told.append)
    assert told == []


@pytest.mark.parametrize(
    ("call", "remedy"),
    [
        (lambda root: export_ground_truth(root, None, file_format="cvs"), "Choose from jsonl, csv, parquet"),
        (lambda root: export_ground_truth(root, None, level="pages"), "Choose from document, segment, page."),
        (lambda root: load_ground_truth(root, "pages"), "Choose from document, segment, page."),
    ],
)
def test_an_unknown_format_or_level_is_named_with_the_known(tmp_path: Path, call: Any, remedy: str) -> None:
    with pytest.raises(UsageError, match=r"there is no (format cvs|level pages)") as raised:
        call(tmp_path)
    assert remedy in raised.value.remedy
