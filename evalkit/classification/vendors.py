"""Names of laboratories, to recognise vendors and vendor traps."""

import re
from collections.abc import Iterator, Sequence
from functools import cache, partial
from typing import Annotated, Any

from pydantic import AfterValidator, Field, ValidationError

from evalkit.classification.schema import PATTERNS
from evalkit.core.document_cache import cache_document_text
from evalkit.core.package_tables import load_package_table
from evalkit.core.records import StrictRecord, describe_first_row_error
from evalkit.documents.furniture import blank_web_and_mail_addresses
from evalkit.errors import UsageError

LETTERHEAD_LINES, MAX_LETTERHEAD_LINE_LENGTH = 8, 110


def _require_letters(name: str) -> str:
    if not any(map(str.isalnum, name)):
        raise ValueError("the name has no letter or digit and would match every text; remove it")
    return name


SearchableName = Annotated[str, AfterValidator(_require_letters)]


class Vendor(StrictRecord):
    """Laboratory of ``vendors.toml``: canonical name, and names in texts."""

    name: SearchableName
    names: tuple[SearchableName, ...] = Field(min_length=1)
    """Names that mean nothing but this laboratory."""
    short_names: tuple[SearchableName, ...] = ()
    """Names that are also ordinary words, and count only in letterheads or similar."""


class _VendorTable(StrictRecord):
    vendor: tuple[Vendor, ...]
    routine_vendor: tuple[dict[str, Any], ...]
    """Rows of trap 1; ``traps`` checks the fields that are not names."""


@cache
def load_vendors() -> tuple[Vendor, ...]:
    """Load the laboratories that come with evalkit; cached."""
    return parse_vendors(load_vendor_rows())


#: Load ``vendors.toml`` without checking it; cached.
load_vendor_rows = partial(load_package_table, "evalkit.classification", "vendors.toml")


def parse_vendors(rows: dict[str, Any]) -> tuple[Vendor, ...]:
    """Convert TOML data to checked laboratories, laboratories of trap 1 first.

    UsageError that names the wrong row.
    """
    try:
        table = _VendorTable.model_validate(rows)
        routine_vendors = tuple(
            Vendor.model_validate({name: row[name] for name in Vendor.model_fields if name in row})
            for row in table.routine_vendor
        )
    except ValidationError as error:
        problem = describe_first_row_error(error, rows)
        raise UsageError(
            f"vendors.toml: {problem}", code="VENDORS", remedy="Correct the row that the message names."
        ) from error
    vendors = (*routine_vendors, *table.vendor)
    names = [vendor.name for vendor in vendors]
    if repeated_names := [name for name in names if names.count(name) > 1]:
        raise UsageError(
            f"vendors.toml: two laboratories have the name {repeated_names[0]!r}",
            code="VENDORS",
            remedy="Rename or remove one of the two rows.",
        )
    return vendors


def is_signal_of_vendor(vendor: Vendor, signal: str) -> bool:
    """Return True if a vendor signal contains one of the laboratory's names."""
    return (
        next(iter_name_spans((*vendor.names, *vendor.short_names), blank_web_and_mail_addresses(signal)), None)
        is not None
    )


def find_vendor_mentions(vendor: Vendor, text: str) -> Iterator[tuple[int, int]]:
    """Yield the places (start, end) where the text names the laboratory.

    Web and mail addresses are left out. A short name counts only at the beginning of a letterhead's line, or in a line that
    names the performing laboratory.
    """
    prose = blank_web_and_mail_addresses(text)
    yield from iter_name_spans(vendor.names, prose)
    for start, end in iter_name_spans(vendor.short_names, prose):
        line_start = prose.rfind("\n", 0, start) + 1
        is_first_word = not prose[line_start:start].strip()
        is_letterhead_line = (
            is_first_word and is_in_letterhead(text, start) and not PATTERNS["person"].match(prose, end)
        )
        if prose[start].isupper() and (is_letterhead_line or is_in_performing_lab_line(text, start)):
            yield start, end


def is_in_letterhead(text: str, position: int) -> bool:
    """Return True if the position is in a short line near the top of the page."""
    return position < _find_letterhead_end(text) and len(_get_line(text, position)) <= MAX_LETTERHEAD_LINE_LENGTH


@cache_document_text(64)
def _find_letterhead_end(text: str) -> int:
    end = filled_lines = 0
    for line in text.split("\n"):
        end += len(line) + 1
        filled_lines += bool(line.strip())
        if filled_lines == LETTERHEAD_LINES:
            break
    return end


def is_in_performing_lab_line(text: str, position: int) -> bool:
    """Return True if the line of this position names who performed a test."""
    return PATTERNS["performing_lab"].search(_get_line(text, position)) is not None


def _get_line(text: str, position: int) -> str:
    end = text.find("\n", position)
    return text[text.rfind("\n", 0, position) + 1 : end if end >= 0 else len(text)].strip()


def iter_name_spans(names: Sequence[str], text: str) -> Iterator[tuple[int, int]]:
    """Yield the places (start, end) of these names as whole words.

    Case is ignored, and up to three separators between the letters.
    """
    letters_of_text = _keep_letters_and_digits(text)
    for name in names:
        if _keep_letters_and_digits(name) in letters_of_text:  # a quick test that excludes nearly all names
            yield from (match.span() for match in _compile_name(name).finditer(text))


@cache_document_text(512)  # the same names and pages are compared again and again
def _keep_letters_and_digits(text: str) -> str:
    return PATTERNS["separator"].sub("", text).lower()


@cache
def _compile_name(name: str) -> re.Pattern[str]:
    letters = r"[\W_]{0,3}".join(re.escape(letter) for letter in name if letter.isalnum())
    return re.compile(rf"(?<!\w){letters}(?!\w)", re.IGNORECASE)
