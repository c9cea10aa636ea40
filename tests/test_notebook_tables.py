"""Tables in a notebook: ``evalkit.show``."""

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evalkit
from evalkit.notebook_tables import DocumentTable
from evalkit.pipeline import RunSummary

PAYLOAD = "<img src=x onerror=window.__xss=1>"


def get_cells(table: DocumentTable) -> list[list[str]]:
    arguments = table.table.get_state("_dt_args")["_dt_args"]
    return json.loads(arguments["data_json"])


def get_headers(table: DocumentTable) -> list[str]:
    return re.findall(r"<th[^>]*>(.*?)</th>", table.table.get_state("_dt_args")["_dt_args"]["table_html"])


@given(st.lists(st.text(st.sampled_from("<>&\"' a\n")) | st.text(), min_size=1, max_size=5))
def test_no_text_becomes_html(texts: list[str]) -> None:
    frame = pd.DataFrame({"doc_id": texts, "value": [text * 20 for text in texts]}, dtype=object)
    for row in get_cells(DocumentTable(frame)):
        for cell in row:
            assert "<" not in re.sub(r"^<(button|span|div)( [a-z]+=\"[^\"<>]*\")*>|</(button|span|div)>$", "", cell)


def test_headers_and_hostile_cells_are_escaped() -> None:
    table = DocumentTable(pd.DataFrame({PAYLOAD: [PAYLOAD], "doc_id": [PAYLOAD], "short": ["<script>"]}))
    state = json.dumps(table.table.get_state("_dt_args"))
    assert "<img" not in state
    assert "<script" not in state
    assert get_headers(table)[0] == "doc id", "the document's name comes first"


def test_a_file_name_that_is_no_text_is_shown() -> None:
    ((cell,),) = get_cells(DocumentTable(pd.DataFrame({"pdf_filename": ["a\udcff.pdf"]}, dtype=object)))
    assert "a?.pdf" in cell


def test_long_text_is_cut_and_whole_in_a_tooltip() -> None:
    text = "word " * 500
    ((cell,),) = get_cells(DocumentTable(pd.DataFrame({"message": [text]})))
    tooltip, shown = re.fullmatch(r'<div class="evalkit-cut" title="(.*)">(.*)</div>', cell).groups()
    assert tooltip == text
    assert len(shown) == 401
    assert shown.endswith("…")


def test_raw_text_and_boxes_are_left_out() -> None:
    fields = ["date", "rawText", None]
    frame = pd.DataFrame({"field": fields, "value": ["2025-02-01", "all of it", "x"], "boxes": [[]] * 3, "text": "t"})
    table = DocumentTable(frame)
    assert [[re.sub("<[^>]*>", "", cell) for cell in row] for row in get_cells(table)] == [
        ["date", "2025-02-01"],
        ["", "x"],
    ]
    assert table.note.value
    assert DocumentTable(frame[:1]).note.value == ""


def test_numbers_are_aligned_and_named_indexes_are_columns() -> None:
    table = DocumentTable(pd.crosstab(pd.Series(["a", "b"], name="agent"), pd.Series(["x", "y"], name="type")))
    definitions = table.table.get_state("_dt_args")["_dt_args"]["columnDefs"]
    assert get_headers(table) == ["agent", "x", "y"]
    assert [definition["className"] for definition in definitions] == [
        "evalkit-text",
        "evalkit-number",
        "evalkit-number",
    ]


def test_every_row_of_a_large_table_is_there() -> None:
    assert (
        len(get_cells(DocumentTable(pd.DataFrame({f"message_{number}": ["text"] * 3000 for number in range(9)}))))
        == 3000
    )


def test_the_name_of_a_document_opens_its_pages(demo_run: RunSummary) -> None:
    table = DocumentTable(demo_run.issues_frame().sort_values("page", ascending=False))
    row = list(table._frame["doc_id"]).index("fabricated_quote")
    table.table.selected_rows = [row]
    assert "fabricated_quote: ESCALATE_TO_SME" in table.pages.value
    assert f"<p>Page {table._frame['page'].iloc[row]}</p>" in table.pages.value
    assert table.pages.value.count("<img") == 1
    table.table.selected_rows = []
    assert table.pages.value == ""


def test_a_document_that_is_gone_is_named_with_a_remedy(demo_run: RunSummary) -> None:
    frame: Any = pd.DataFrame({"doc_id": [PAYLOAD]})
    table = DocumentTable(frame, output=demo_run.output)
    table.table.selected_rows = [0]
    assert table.pages.value.startswith("<p>")
    assert PAYLOAD not in table.pages.value


def test_show_displays_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []
    monkeypatch.setattr("evalkit.notebook_tables.display", shown.append)
    assert evalkit.show(pd.DataFrame({"a": []})) is None
    assert isinstance(shown[0], DocumentTable)


def test_styles_of_the_screens_do_not_touch_tables(demo_run: RunSummary) -> None:
    shown = json.dumps(get_cells(DocumentTable(demo_run.issues_frame())))
    classes = {name for words in re.findall(r'class=\\"([^"\\]*)', shown) for name in words.split()}
    styles = [path.read_text() for path in Path(evalkit.__file__).parents[1].glob("widgets/*.css")]
    assert len(classes) == 3
    assert len(styles) > 5
    assert not [name for name in classes for style in styles if f".{name}" in style]
