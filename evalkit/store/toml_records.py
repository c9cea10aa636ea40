"""Parsing of records that people write as TOML; errors name the faulty line."""

from __future__ import annotations

import re
import tomllib
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from evalkit.errors import UsageError

RecordT = TypeVar("RecordT", bound=BaseModel)

#: Names of rows that an error may show: others may be a document's words.
_PLAIN_NAME = re.compile(r"\w[\w-]{0,63}")


def parse_toml_record(text: str, file_name: str, record_type: type[RecordT]) -> RecordT:
    """Parse a TOML text as a ``record_type``. UsageError if it is invalid.

    The error names the file, the line and the entry.
    """
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # the error's text names the line
        raise build_template_error(file_name, str(error)) from error
    try:
        return record_type.model_validate(table)
    except ValidationError as error:
        first_error = error.errors(include_url=False, include_input=False)[0]
        entry_path = first_error["loc"]
        problem = ": ".join(
            filter(None, (_describe_entry(table, entry_path), first_error["msg"].removeprefix("Value error, ")))
        )
        raise build_template_error(f"{file_name}, line {_find_entry_line(text, entry_path)}", problem) from error


def build_template_error(place: str, problem: str) -> UsageError:
    """Build the UsageError for an invalid template; ``place`` is its file and line."""
    return UsageError(
        f"template {place}: {problem}", code="TEMPLATE", remedy="Correct the line that the message names."
    )


def _describe_entry(toml_table: Any, entry_path: tuple[int | str, ...]) -> str:
    """Describe an entry by its path; table rows appear by a plain name."""
    names: list[str] = []
    for part in entry_path:
        is_row = isinstance(part, int) and isinstance(toml_table, list) and part < len(toml_table)
        toml_table = toml_table[part] if is_row else toml_table.get(part) if isinstance(toml_table, dict) else None
        row_name = toml_table.get("name") if is_row and isinstance(toml_table, dict) else None
        is_named = isinstance(row_name, str) and _PLAIN_NAME.fullmatch(row_name)
        names.append(str(row_name if is_named else (part + 1 if isinstance(part, int) else part)))
    return " → ".join(names)


def _find_entry_line(text: str, entry_path: tuple[int | str, ...]) -> int:
    """Find an entry's line (from 1), else the nearest table's, else the first line."""
    best_match, line_number, table_counts, table_path = (0, 1), 1, dict[str, int](), tuple[int | str, ...]()
    for line_number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*(\[\[?)\s*([\w.]+)", line):
            table_path = tuple(header[2].split("."))
            if header[1] == "[[":
                table_path = (*table_path, table_counts.setdefault(header[2], 0))
                table_counts[header[2]] += 1
            line_path = table_path
        elif key := re.match(r"\s*([\w-]+)\s*=", line):
            line_path = (*table_path, key[1])
        else:
            continue
        if entry_path[: len(line_path)] == line_path and len(line_path) > best_match[0]:
            best_match = len(line_path), line_number
    return best_match[1]
