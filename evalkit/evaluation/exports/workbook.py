"""Workbook (XLSX) of an output folder's queue, issues, fields and truth.

Its sheets are queue, issues, fields, ground truth and report.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Any, TypeVar

from evalkit.classification.document_result import DocumentFailure
from evalkit.core.clocks import format_iso_seconds, utc_now
from evalkit.core.spreadsheets import MAX_SHEET_ROWS, Cell, Sheet, render_workbook
from evalkit.errors import StoreError, UsageError
from evalkit.evaluation.exports.content import ExportContent
from evalkit.evaluation.ground_truth_table import COLUMNS
from evalkit.evaluation.intervals import Estimate
from evalkit.evaluation.private_files import write_private_file
from evalkit.evaluation.report import build_report
from evalkit.evaluation.study import read_folder_study
from evalkit.review import describe_issue, list_pending_cases_worst_first, open_index, read_extractions, read_result
from evalkit.settings import Settings
from evalkit.store import CASE_COLUMNS, EXTRACTIONS_FOLDER, RESULTS_FOLDER, OutputFolder

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_Record = TypeVar("_Record")
_Row = dict[str, Cell]


def write_workbook(content: ExportContent, target: Path) -> int:
    """Write the workbook; return its number of rows.

    UsageError if a sheet would have too many.
    """
    tables: dict[str, tuple[Iterable[str], list[_Row]]] = {
        "queue": (CASE_COLUMNS, _list_queue(content.output_folder)),
        "issues": _collect_columns(_iterate_issues(content)),
        "fields": _collect_columns(_iterate_fields(content)),
        "ground truth": (COLUMNS["document"], [*content.iterate_rows()]),
        "report": _collect_columns(_iterate_figures(content)),
    }
    if long_names := [name for name, (_, rows) in tables.items() if len(rows) > MAX_SHEET_ROWS]:
        raise UsageError(
            f"the sheet {long_names[0]} would have more than {MAX_SHEET_ROWS:,} rows, which no spreadsheet opens",
            code="EXPORT",
            remedy="Export as Parquet instead.",
        )
    sheets = (
        Sheet(name, list(columns), [[_convert_cell(row[column]) for column in columns] for row in rows])
        for name, (columns, rows) in tables.items()
    )
    write_private_file(render_workbook(sheets), target)
    return sum(len(rows) for _, rows in tables.values())


def _collect_columns(rows: Iterator[_Row]) -> tuple[Iterable[str], list[_Row]]:
    collected = list(rows)
    return (collected[0] if collected else {"no rows": None}), collected


def _convert_cell(value: Any) -> Cell:
    """Convert dates and times in text to values, and lists to text.

    A day that spreadsheets do not have stays text.
    """
    if isinstance(value, str):
        try:
            if _DAY.fullmatch(value) and (day := date.fromisoformat(value)).year > 1900:
                return day
            if _DAY.match(value) and (time := datetime.fromisoformat(value)).tzinfo and time.year > 1900:
                return time
        except ValueError:
            pass
        return str(value)
    return value  # type: ignore[no-any-return]  # numbers and None


def _list_queue(output_folder: OutputFolder) -> list[_Row]:
    with open_index(output_folder, read_only=True) as index:
        return [{name: row[name] for name in CASE_COLUMNS} for row in list_pending_cases_worst_first(index)]


def _iterate_records(
    content: ExportContent, folder_name: str, read_record: Callable[[OutputFolder, str], _Record]
) -> Iterator[_Record]:
    """Iterate a folder's records; name unreadable ones in ``content.problems``."""
    for file_name in content.output_folder.list_json_files(folder_name):
        try:
            yield read_record(content.output_folder, file_name.rpartition("/")[2].removesuffix(".json"))
        except StoreError as error:
            content.problems.append(str(error))


def _iterate_issues(content: ExportContent) -> Iterator[_Row]:
    for result in _iterate_records(content, RESULTS_FOLDER, read_result):
        head: _Row = {"document": result.doc_id}
        if isinstance(result, DocumentFailure):
            rows: list[_Row] = [_build_issue_row(code=result.error.code, question=result.error.message)]
        else:
            head["decision"] = result.decision.value
            rows = [
                _build_issue_row(
                    severity=issue.severity.value,
                    status=issue.status,
                    code=issue.code,
                    check=issue.agent,
                    page=issue.page,
                    document_number=issue.segment_index,
                    type=issue.document_type,
                    question=describe_issue(issue),
                    message=issue.message,
                    fix=issue.suggested_fix,
                    quote=issue.quote,
                )
                for issue in result.issues
            ]
        yield from ({"document": None, "decision": "not read"} | head | row for row in rows)


def _build_issue_row(**known: Cell) -> _Row:
    names = ("severity", "status", "code", "check", "page", "document_number", "type", "question", "message", "fix")
    return {name: known.get(name) for name in (*names, "quote")}


def _iterate_fields(content: ExportContent) -> Iterator[_Row]:
    for document in _iterate_records(content, EXTRACTIONS_FOLDER, read_extractions):
        for form in document.extractions:
            for name, field in form.fields.items():
                yield {
                    "document": document.doc_id,
                    "type": form.document_type,
                    "template": form.template,
                    "first_page": form.start_page,
                    "last_page": form.end_page,
                    "decision": form.decision,
                    "field": name,
                    "status": field.status.value,
                    "value": field.value,
                    "page": field.page,
                    "confidence": field.confidence,
                    "quote": field.quote,
                }


def _iterate_figures(content: ExportContent) -> Iterator[_Row]:
    """Iterate the report's tables as one: a row for each cell, with its interval."""
    settings = Settings.load()
    try:
        study = read_folder_study(content.output_folder, foreign_types=settings.foreign_types)
        report = build_report(study, made_at=format_iso_seconds(utc_now()), certificate_settings=settings.certificate)
    except StoreError as error:
        content.problems.append(f"the report is missing: {error}")
        return
    for section in report.sections:
        for table in section.tables:
            for record in table.frame.to_dict("records"):
                label, *_ = record.values()
                for column, value in list(record.items())[1:]:
                    yield {
                        "section": section.title,
                        "table": table.caption,
                        "row": _simplify(label),
                        "column": str(column),
                        **_split_estimate(value),
                    }


def _split_estimate(value: Any) -> Mapping[str, Cell]:
    is_estimate = isinstance(value, Estimate)
    numbers = (value.value, value.low, value.high) if is_estimate else (value, None, None)
    return dict(zip(("value", "low", "high"), map(_simplify, numbers), strict=True))


def _simplify(value: Any) -> Cell:
    """Convert a value of a report's table to one that a cell holds."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    return value.item() if hasattr(value, "item") else str(value)
