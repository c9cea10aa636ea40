"""The words that statements print for columns and totals (``wording.toml``)."""

from __future__ import annotations

import tomllib
import unicodedata
from functools import cache, lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator

from evalkit.core.records import StrictRecord
from evalkit.errors import UsageError

if TYPE_CHECKING:
    import regex

#: Time limit for one pattern on one line; a thousandth of it is usually enough.
_MATCH_TIMEOUT_SECONDS = 1.0
#: Lines that are expensive for patterns that can split them in many ways.
_BACKTRACKING_PROBES = tuple(
    run * (200 // len(run)) + "\x00" for run in ("a", "1", " ", "-", ".", "a ", "1 ", "a1", "1,", "1.00 ")
)


@lru_cache(maxsize=4096)
def require_safe_pattern(pattern: str) -> str:
    """Return the pattern. ValueError if it is invalid, unbounded, or matches all."""
    import regex  # the expert's kernel seldom opens a template

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
        raise ValueError("takes too long on long lines: bound its repeats") from None
    return pattern


LinePattern = Annotated[str, AfterValidator(require_safe_pattern)]
"""A regular expression that ignores case."""


class BankVocabulary(StrictRecord):
    """Patterns by their meaning."""

    columns: dict[str, LinePattern]
    """A column's name in a template → the pattern of its title."""
    opening: LinePattern
    closing: LinePattern
    deposits: LinePattern
    """The sum of all deposits, or a part of it."""
    withdrawals: LinePattern
    deposits_heading: LinePattern
    """A heading above deposits only."""
    withdrawals_heading: LinePattern
    account: LinePattern
    """A heading that names an account with its number."""
    period: LinePattern
    bank: LinePattern
    """A line that names a bank."""
    whole: LinePattern
    """A total of all deposits or withdrawals, not of one kind."""
    subtotal: LinePattern
    """Any total."""
    furniture: tuple[LinePattern, ...]
    """Lines within a table that are not transactions."""


@cache
def load_bank_vocabulary() -> BankVocabulary:
    """Load the shipped vocabulary."""
    return BankVocabulary.model_validate(
        tomllib.loads((files("evalkit.statements") / "wording.toml").read_text("utf-8"))
    )


@lru_cache(maxsize=16384)  # the builder reads the same lines with every draft
def match_at_line_start(pattern: str, text: str) -> regex.Match[str] | None:
    """Match the pattern at the start of the text, ignoring symbols and accents.

    UsageError TEMPLATE-SLOW if it takes a second. Python's own engine could not be stopped and would block everything else.
    """
    try:
        return _compile_line_pattern(pattern).match(_strip_accents(text), timeout=_MATCH_TIMEOUT_SECONDS)
    except TimeoutError:
        raise UsageError(
            f"a regular expression of a template takes more than {_MATCH_TIMEOUT_SECONDS:g} s on a line",
            code="TEMPLATE-SLOW",
            remedy="Bound the repeats in its headings, labels, furniture and ends.",
        ) from None


@lru_cache(maxsize=4096)
def _compile_line_pattern(pattern: str) -> regex.Pattern[str]:
    import regex

    return regex.compile(rf"\W*(?:{_strip_accents(pattern)})", regex.IGNORECASE)


def _strip_accents(text: str) -> str:
    """Remove accents, which capitals are often printed without; keep the length."""
    if text.isascii():
        return text
    return "".join(unicodedata.normalize("NFD", character)[0] for character in text)
