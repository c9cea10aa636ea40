"""Files of labels, production's and true ones: what is read, what is refused with which row, and whom a row labels."""

import json
from pathlib import Path

import pytest
from commands import evalkit_command
from places import open_folder

from evalkit.errors import StoreError, UsageError
from evalkit.pipeline.document_discovery import SourceDocument
from evalkit.pipeline.supplied_labels import (
    MAX_PAGE_NUMBER,
    SuppliedLabels,
    list_unknown_production_labels,
    list_unused_label_problems,
    merge_stored_production_labels,
    parse_typed_page_ranges,
    read_production_labels,
    read_stored_production_labels,
    read_supplied_classifications,
    read_true_labels,
    translate_production_row,
    translate_production_type,
)

HEAD = "doc_id,dominant_type,segments\n"


def written(folder: Path, text: str, name: str = "labels.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def sources(*paths: str) -> list[SourceDocument]:
    """Documents called ``one``, ``two`` …, by path."""
    ids = ("one", "two", "three")
    return [SourceDocument(doc_id, Path(path), None) for doc_id, path in zip(ids, paths, strict=False)]


# ---------------------------------------------------------------------------------------------------------------------
# What is read


@pytest.mark.parametrize("read", [read_production_labels, read_true_labels])
def test_an_empty_cell_behind_the_last_column_says_nothing(tmp_path: Path, read) -> None:
    labels = read(written(tmp_path, "doc_id,dominant_type\na,Other,\nb,Other,, \n"))
    assert labels.label_by_key == {"a": {"dominant_type": "Other"}, "b": {"dominant_type": "Other"}}


@pytest.mark.parametrize("odd", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\n"])
def test_only_the_end_of_a_line_ends_a_row(tmp_path: Path, odd: str) -> None:
    labels = read_production_labels(written(tmp_path, f'filename,dominant_type\n"a{odd}b.pdf",Other\nc.pdf,Other\n'))
    assert list(labels.label_by_key) == [f"a{odd}b.pdf", "c.pdf"]


@pytest.mark.parametrize("read", [read_production_labels, read_true_labels])
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HEAD + "a,Other\nb,Other,1 Other,extra\n", "row 2 has more cells"),
        (HEAD + "a,Other\nb,Other\na,Clinical Note\n", "row 3 contradicts an earlier row about a"),
        (HEAD + 'a,Other,1-2 Other\na,Other,"1 Other; 2 Other"\n', "row 2 contradicts an earlier row about a"),
        (HEAD + "a,Other\n,Other\n", "row 2 needs text in the columns doc_id"),
        (HEAD, "no rows"),
        (
            "doc_id,dominant_type,dominant_type\na,Other,Clinical Note\n",
            "several columns have the same name: dominant_type",
        ),
    ],
)
def test_a_wrong_row_is_named(tmp_path: Path, read, text: str, said: str) -> None:
    code = "TRUTH-LABELS" if read is read_true_labels else "PRODUCTION-LABELS"
    with pytest.raises(UsageError, match=rf"labels\.csv: .*{said}") as refused:
        read(written(tmp_path, text))
    assert refused.value.code == code


@pytest.mark.parametrize("read", [read_production_labels, read_true_labels])
@pytest.mark.parametrize("row", [{"doc_id": 7, "dominant_type": "Other"}, {"doc_id": "b", "dominant_type": ["Other"]}])
def test_what_is_no_text_is_refused(tmp_path: Path, read, row: dict) -> None:
    path = written(tmp_path, json.dumps([{"doc_id": "a", "dominant_type": "Other"}, row]), "labels.json")
    with pytest.raises(UsageError, match=r"labels\.json: row 2 .*text"):
        read(path)


@pytest.mark.parametrize("read", [read_production_labels, read_true_labels])
def test_a_row_that_says_something_twice_is_refused(tmp_path: Path, read) -> None:
    row = '{"doc_id": "a", "dominant_type": "Clinical Note", "dominant_type": "Other"}'
    with pytest.raises(UsageError, match="DuplicateKey"):
        read(written(tmp_path, f"[{row}]", "labels.json"))
    labels = read(written(tmp_path, "doc_id,dominant_type,,\na,Other,,\n"))  # columns without a name say nothing
    assert labels.label_by_key == {"a": {"dominant_type": "Other"}}


def test_the_same_label_twice_is_one(tmp_path: Path) -> None:
    assert list(read_true_labels(written(tmp_path, HEAD + "a,Other,1 Other\na,Other,1 Other\n")).label_by_key) == ["a"]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("b,Genomic report,", "'Genomic report' is none of the types"),
        ("b,Other,1-2 Lab letter", "'Lab letter' is none of the types"),
        ("b,Other,pages 1 to 5", "segments must be written as"),
        ("b,Other,1-99999999999 Other", "a segment has the pages 1-99999999999"),
        ("b,Other,0-2 Other", "a segment has the pages 0-2"),
        ("b,Other,5-2 Other", "a segment has the pages 5-2"),
    ],
)
def test_invalid_true_label_is_refused_but_not_production(tmp_path, row: str, said: str) -> None:
    path = written(tmp_path, HEAD + "a,Other,1 Other\n" + row + "\n")
    with pytest.raises(UsageError, match=rf"true labels .*labels\.csv: row 2: {said}") as refused:
        read_true_labels(path)
    assert refused.value.code == "TRUTH-LABELS"
    assert set(read_production_labels(path).label_by_key) == {"a", "b"}


@pytest.mark.parametrize(
    "segment",
    [
        {"start_page": 1, "end_page": 2, "dominant_type": ["Other"]},
        {"start_page": 1, "end_page": 2, "dominant_type": None},
        {"start_page": 1, "dominant_type": "Other"},
        {"start_page": 1.5, "end_page": 2, "dominant_type": "Other"},
    ],
)
def test_a_truth_as_json_needs_whole_segments(tmp_path: Path, segment: dict) -> None:
    rows = [{"doc_id": "a", "dominant_type": "Other", "segments": [segment]}]
    with pytest.raises(UsageError, match="row 1: "):
        read_true_labels(written(tmp_path, json.dumps(rows), "labels.json"))


def test_spans_come_by_first_page() -> None:
    assert parse_typed_page_ranges("6 Other; 1-5 Clinical Note") == ((1, 5, "Clinical Note"), (6, 6, "Other"))
    objects = [
        {"start_page": start, "end_page": start, "dominant_type": kind} for start, kind in ((3, None), (1, None))
    ]
    assert parse_typed_page_ranges(objects) == ((1, 1, None), (3, 3, None))
    assert parse_typed_page_ranges(f"{MAX_PAGE_NUMBER} Other") == ((MAX_PAGE_NUMBER, MAX_PAGE_NUMBER, "Other"),)


@pytest.mark.parametrize(
    "segments",
    [
        0,
        {},
        [7],
        [None],
        [[1, 2, "Other"]],
        *([{"start_page": 1, "end_page": 2, "dominant_type": kind}] for kind in (["Other"], 7, {})),
        *(
            [{"start_page": page, "end_page": 9, "dominant_type": "Other"}]
            for page in (float("inf"), True, "x", -1, [])
        ),
        "0 Other",
        f"{MAX_PAGE_NUMBER + 1} Other",
        "9" * 5000 + " Other",
    ],
)
def test_what_is_no_segment_is_a_value_error_and_nothing_else(segments) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - that there is no other error is what is tested
        parse_typed_page_ranges(segments)


# ---------------------------------------------------------------------------------------------------------------------
# Whom a row labels


def test_a_file_name_labels_the_one_document_of_that_name() -> None:
    note, other = {"dominant_type": "Clinical Note"}, {"dominant_type": "Other"}
    labels = SuppliedLabels({"scan.pdf": note, "two": other})
    assert labels.map_labels_by_doc_id(sources("a/scan.pdf", "b/report.pdf", "c/none.pdf")) == {
        "one": note,
        "two": other,
    }
    both = sources("a/scan.pdf", "b/report.pdf", "c/scan.pdf")
    assert labels.map_labels_by_doc_id(both) == {"two": other}
    assert labels.find_ambiguous_names(both) == ["scan.pdf"]
    own = SuppliedLabels({"scan.pdf": note, "one": other, "two": note})
    assert own.map_labels_by_doc_id(sources("a/scan.pdf", "b/scan.pdf")) == {"one": other, "two": note}
    assert own.find_ambiguous_names(sources("a/scan.pdf", "b/scan.pdf")) == []


def test_unmatched_label_rows_are_counted_and_five_named() -> None:
    labels = SuppliedLabels({name: {"dominant_type": "Other"} for name in ("one", "scan.pdf", "old", *"abcdef")})
    (problem,) = list_unused_label_problems(labels, sources("x/1.pdf", "x/scan.pdf"), {"old": "y/old.pdf"})
    assert problem.message == "6 rows of production labels belong to no document: a, b, c, d, e …"
    assert labels.find_unmatched_keys(["one", "old"], ["scan.pdf"]) == list("abcdef")
    (problem,) = list_unused_label_problems(SuppliedLabels({"a": {}}), sources("x/1.pdf"), {})
    assert problem.message == "1 row of production labels belongs to no document: a"


# ---------------------------------------------------------------------------------------------------------------------
# What is kept of them


@pytest.mark.parametrize(
    ("word", "type_name"),
    [
        ("Clinical Note", "Clinical Note"),
        ("  clinical\tNOTE\n", "Clinical Note"),
        ("GEN", "Genomic Report"),
        ("gen ", "Genomic Report"),
        ("lab   result", "Other"),
        ("pathology report", "Radiology Report"),  # a site's own word stands before the type of that name
        ("Clinical Notes", None),
        ("LAB", None),
        ("", None),
        (None, None),
    ],
)
def test_production_words_are_mapped_by_trim_case_and_setting(word: str | None, type_name: str | None) -> None:
    foreign_types = {" Gen": "Genomic Report", "Lab Result": "Other", "Pathology Report": "Radiology Report"}
    assert translate_production_type(word, foreign_types) == type_name
    if word:
        row = translate_production_row({"dominant_type": word, "confidence": 0.4}, foreign_types)
        assert row == {"dominant_type": type_name, "confidence": 0.4} | ({} if word == type_name else {"label": word})
        assert translate_production_row(row, foreign_types) == row
        unknown_words = list_unknown_production_labels([row, row], foreign_types)
        assert unknown_words == (() if type_name else (word,))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32-le"])
def test_a_classification_is_read_in_every_encoding_of_json(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "a.json").write_bytes('{"segments": "×"}'.encode(encoding))
    by_doc_id, problems = read_supplied_classifications(tmp_path, [SourceDocument("a", tmp_path / "a.pdf", "0" * 64)])
    assert (by_doc_id, problems) == ({"a": '{"segments": "×"}'}, [])


def test_labels_are_kept_and_added_to(tmp_path: Path) -> None:
    files = open_folder(tmp_path)
    merge_stored_production_labels(files, {"b": {"dominant_type": "Other", "segments": [{"start_page": 1}]}})
    merge_stored_production_labels(files, {"a": {"dominant_type": "LAB", "confidence": "0.4"}})
    assert list(read_stored_production_labels(files).items()) == [
        ("a", {"dominant_type": "LAB", "confidence": "0.4"}),
        ("b", {"dominant_type": "Other", "segments": [{"start_page": 1}]}),
    ]


@pytest.mark.parametrize("labels", [None, [], {"a": 7}, {"a": {"dominant_type": ["x"]}}, {"a": {}}])
def test_a_damaged_file_of_kept_labels_is_a_store_error(tmp_path: Path, labels: object) -> None:
    open_folder(tmp_path).write_json("production.json", {"schema_version": 1, "labels": labels})
    with pytest.raises(StoreError, match=r"production\.json"):
        read_stored_production_labels(open_folder(tmp_path))


@pytest.mark.parametrize(("name", "fields"), [("production", {"labels"}), ("draw", {"by", "drawn_at", "strata"})])
def test_what_is_kept_has_a_schema(name: str, fields: set[str]) -> None:
    schema = json.loads(evalkit_command("schema", name).stdout)
    assert schema["type"] == "object"
    assert set(schema["properties"]) == {"schema_version"} | fields
    assert name in evalkit_command("schema").stdout.split()
