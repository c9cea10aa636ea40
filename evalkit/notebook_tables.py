"""Tables for notebooks, in which a document's name opens its pages.

Cells are formatted and escaped here, because they may hold text of documents; itables draws them, without a network.
"""

import math
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd
from IPython.display import display
from ipywidgets import HTML, VBox
from itables.widget import ITable

from evalkit.core.data_frames import OUTPUT_ATTRIBUTE
from evalkit.errors import EvalkitError
from evalkit.review import view

#: Columns that hold a document's text or the places of its words: too long for a table, and nothing to read there.
_LEFT_OUT_COLUMNS = frozenset({"text", "blocks", "boxes"})
#: Field whose value is the whole text of a report.
_RAW_TEXT_FIELD = "rawText"
_DOCUMENT_COLUMN = "doc_id"
#: Texts of more characters are wrapped, cut after three lines, and whole in a tooltip.
_MAX_UNBROKEN_LENGTH = 24
_MAX_SHOWN_LENGTH = 400
#: Width of a table and smallest width of a column of long text, in characters. A page of 1440 pixels has room for 160.
_TABLE_WIDTH = 160
_MIN_TEXT_WIDTH = 36
_MAX_TOOLTIP_LENGTH = 3000
_RAW_TEXT_NOTE = "Not shown: the whole texts of documents."
_NUMBER_COLUMN = {"className": "evalkit-number", "type": "num"}
_TEXT_COLUMN = {"className": "evalkit-text", "type": "html"}
_STYLE = Path(__file__).with_suffix(".css").read_text("utf-8")
_TABLE_OPTIONS: dict[str, Any] = {
    "allow_html": True,  # every cell is escaped here
    "showIndex": False,
    "maxBytes": 0,
    "maxColumns": 0,
    "classes": "display compact",
    "select": {"style": "single", "selector": ".evalkit-open", "info": False},
}


def show(frame: pd.DataFrame, *, output: Path | str | None = None) -> None:
    """Show a table in a notebook cell, with sorting, search and pages.

    Text is wrapped and cut, and a tooltip has the whole; the first column stays in sight. Raw text of documents is left
    out. If the table has a column ``doc_id``, each name opens the document's pages below the table, at the row's
    ``page`` if there is such a column. ``output`` is the output folder of these documents; None means the folder that
    the table came from, else that of the settings.
    """
    display(DocumentTable(frame, output=output))


class DocumentTable(VBox):  # type: ignore[misc]
    """A table, with the pages of the opened document below it."""

    def __init__(self, frame: pd.DataFrame, *, output: Path | str | None = None) -> None:
        self._output = output or frame.attrs.get(OUTPUT_ATTRIBUTE)
        self._frame = _select_shown_part(frame)
        text_width = max(_MIN_TEXT_WIDTH, _TABLE_WIDTH // max(len(self._frame.columns), 1))
        self.table = ITable(
            _format_frame(self._frame),
            columnDefs=[
                {"targets": [number], **(_NUMBER_COLUMN if _is_numeric(dtype) else _TEXT_COLUMN)}
                for number, dtype in enumerate(self._frame.dtypes)
            ],
            style=f"width:auto;margin:0;--evalkit-text-width:{text_width}ch",
            **_TABLE_OPTIONS,
        )
        self.note = HTML(_RAW_TEXT_NOTE if len(self._frame) < len(frame) else "")
        self.pages = HTML()
        self.table.observe(self._open_selected_document, "selected_rows")
        super().__init__([HTML(f"<style>{_STYLE}</style>"), self.table, self.note, self.pages])
        self.add_class("evalkit-table")

    def _open_selected_document(self, _change: Mapping[str, Any]) -> None:
        self.pages.value = "".join(map(self._format_pages, self.table.selected_rows))

    def _format_pages(self, row_number: int) -> str:
        row = self._frame.iloc[row_number]
        page = row.get("page")
        page_number = None if page is None or pd.isna(page) else int(page)
        try:
            return view(str(row[_DOCUMENT_COLUMN]), output=self._output, page=page_number)._repr_html_()
        except EvalkitError as error:
            return f"<p>{escape(str(error))}</p>"


def _select_shown_part(frame: pd.DataFrame) -> pd.DataFrame:
    if not isinstance(frame.index, pd.RangeIndex) and (None not in frame.index.names):
        frame = frame.reset_index()
    if "field" in frame:
        frame = frame[(frame["field"] != _RAW_TEXT_FIELD).fillna(True).astype(bool)]
    columns = [name for name in frame.columns if name not in _LEFT_OUT_COLUMNS]
    # The document's name comes first, because the first column stays in sight.
    return frame[sorted(columns, key=lambda name: name != _DOCUMENT_COLUMN)]


def _format_frame(frame: pd.DataFrame) -> pd.DataFrame:
    cells = {
        number: [_format_cell(value, is_document=name == _DOCUMENT_COLUMN) for value in frame.iloc[:, number]]
        for number, name in enumerate(frame.columns)
    }
    formatted = pd.DataFrame(cells, dtype=object)
    formatted.columns = pd.Index([escape(_format_name(name)) for name in frame.columns])
    return formatted


def _format_name(column: object) -> str:
    name = _format_value(column)
    return name.replace("_", " ") if name.islower() else name  # in a cross table, values such as AUTO_ACCEPT are names


def _is_numeric(dtype: Any) -> bool:
    return pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype)


def _format_cell(value: object, *, is_document: bool) -> str:
    # Python keeps bytes of a file name that are not text as lone surrogates, which no browser can be sent.
    text = _format_value(value).encode("utf-8", "replace").decode()
    if is_document and text:
        return (
            f'<button type="button" class="evalkit-open" title="Open its pages below the table">{escape(text)}</button>'
        )
    shown = " ".join(text.split())
    if len(shown) <= _MAX_UNBROKEN_LENGTH:
        return f'<span class="evalkit-word">{escape(shown)}</span>'
    return f'<div class="evalkit-cut" title="{escape(_cut(text, _MAX_TOOLTIP_LENGTH))}">{escape(_cut(shown, _MAX_SHOWN_LENGTH))}</div>'


def _cut(text: str, max_length: int) -> str:
    return text if len(text) <= max_length else f"{text[:max_length]}…"


def _format_value(value: object) -> str:
    """Format a value as text: three digits of fractions, missing values empty.

    >>> [_format_value(value) for value in (0.93712, 12, None, True, ("a", "b"), {"V1": 2})]
    ['0.937', '12', '', 'yes', 'a, b', 'V1 2']
    """
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_format_value(nested)}" for name, nested in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(_format_value, value))
    if value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and math.isnan(value)):
        return ""
    if pd.api.types.is_bool(value):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return str(value)
