"""Patterns of the words that bank statements print (``wording.toml``)."""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator

from evalkit.core.document_cache import cache_document_text
from evalkit.core.package_tables import load_package_table
from evalkit.core.records import StrictRecord
from evalkit.errors import UsageError

if TYPE_CHECKING:
    import regex

#: Time limit for matching one pattern with one line; a match usually takes a millisecond.
_MATCH_TIMEOUT_SECONDS = 1.0
#: A printed line is shorter; more of a hostile one is not searched.
_MAX_SEARCHED_LENGTH = 500
#: Long lines on which patterns with nested repetitions would backtrack for a very long time.
_BACKTRACKING_PROBES = tuple(
    run * (200 // len(run)) + "\x00" for run in ("a", "1", " ", "-", ".", "a ", "1 ", "a1", "1,", "1.00 ")
)


@cache_document_text(4096)
def require_safe_pattern(pattern: str) -> str:
    """Return the pattern unchanged. ValueError if it is not safe to use on statements.

    Refused: an invalid regular expression, one that matches every line, and one that takes too long on long lines.
    """
    import regex  # imported late: the experts' screen seldom needs it

    try:
        compiled_pattern = regex.compile(pattern, regex.IGNORECASE)
        _compile_line_pattern(pattern)
    except (regex.error, RecursionError, OverflowError) as error:
        raise ValueError(f"not a regular expression: {error}") from error
    try:
        if compiled_pattern.search("", timeout=_MATCH_TIMEOUT_SECONDS):
            raise ValueError("matches every line")
        for probe in _BACKTRACKING_PROBES:
            _compile_line_pattern(pattern).match(probe, timeout=_MATCH_TIMEOUT_SECONDS)
    except TimeoutError:
        raise ValueError(
            "takes too long on long lines: limit its repetitions, for example .{0,40} instead of .*"
        ) from None
    return pattern


#: A regular expression that is matched at the start of a line or cell, ignoring case.
LinePattern = Annotated[str, AfterValidator(require_safe_pattern)]


class BankVocabulary(StrictRecord):
    """Patterns of the words that statements print, by meaning."""

    columns: dict[str, LinePattern]
    """The pattern of a column's printed title, by the column's name in a template."""
    opening: LinePattern
    closing: LinePattern
    deposits: LinePattern
    """The label of the sum of all deposits, or of a part of them."""
    withdrawals: LinePattern
    deposits_heading: LinePattern
    """A heading above deposits only."""
    withdrawals_heading: LinePattern
    account: LinePattern
    """A heading that names an account with its number."""
    period: LinePattern
    due_date: LinePattern
    """Words before the date of a payment or of the next statement, looked for anywhere in a line."""
    bank: LinePattern
    """A line that names a bank."""
    whole: LinePattern
    """The label of a total of all deposits or all withdrawals, not only of one kind."""
    other_period: LinePattern
    """Words, anywhere in a label, of a sum over another time than the statement's, such as a year to date."""
    subtotal: LinePattern
    """The label of any total."""
    furniture: tuple[LinePattern, ...]
    """Lines within a table that are not transactions, such as totals of a page."""


@cache
def load_bank_vocabulary() -> BankVocabulary:
    """Load the patterns that evalkit ships."""
    return BankVocabulary.model_validate(load_package_table("evalkit.statements", "wording.toml"))


@cache_document_text(16384)  # the builder matches the same lines for every hypothesis
def match_at_line_start(pattern: str, text: str) -> regex.Match[str] | None:
    """Match the pattern at the start of the text; ignore leading symbols and accents.

    UsageError TEMPLATE-SLOW if matching takes more than a second. The package ``regex`` is used because matching with
    ``re`` cannot be stopped.
    """
    return _apply_line_pattern(pattern, text, is_at_start=True)


@cache_document_text(16384)
def search_in_line(pattern: str, text: str) -> regex.Match[str] | None:
    """Find the pattern in the text's first 500 characters, ignoring accents.

    UsageError TEMPLATE-SLOW if matching takes more than a second.
    """
    return _apply_line_pattern(pattern, text[:_MAX_SEARCHED_LENGTH], is_at_start=False)


def _apply_line_pattern(pattern: str, text: str, *, is_at_start: bool) -> regex.Match[str] | None:
    compiled_pattern = _compile_line_pattern(pattern)
    try:
        apply = compiled_pattern.match if is_at_start else compiled_pattern.search
        return apply(strip_accents(text), timeout=_MATCH_TIMEOUT_SECONDS)
    except TimeoutError:
        raise UsageError(
            f"a regular expression of a template takes more than {_MATCH_TIMEOUT_SECONDS:g} s on a line",
            code="TEMPLATE-SLOW",
            remedy="Limit the repetitions in the template's headings, labels, furniture and ends: .{0,40} instead of .*.",
        ) from None


def _compile_line_pattern(pattern: str) -> regex.Pattern[str]:
    # The patterns that evalkit ships stay; those of a template are made of a statement's words.
    return (_compile_shipped_pattern if pattern in _list_shipped_patterns() else _compile_own_pattern)(pattern)


def _compile_pattern(pattern: str) -> regex.Pattern[str]:
    import regex

    return regex.compile(rf"\W*(?:{strip_accents(pattern)})", regex.IGNORECASE)


_compile_shipped_pattern, _compile_own_pattern = cache(_compile_pattern), cache_document_text(4096)(_compile_pattern)


@cache
def _list_shipped_patterns() -> frozenset[str]:
    table = load_package_table("evalkit.statements", "wording.toml")
    return frozenset(pattern for pattern in (*table.values(), *table["columns"].values()) if isinstance(pattern, str))


def strip_accents(text: str) -> str:
    """Replace each accented letter by its base letter; the length stays the same.

    Banks often print capital letters without accents.
    """
    if text.isascii():
        return text
    return "".join(unicodedata.normalize("NFD", character)[0] for character in text)
