"""What statements call their columns and totals: ``wording.toml``, which a builder looks for and a template quotes."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from functools import cache
from importlib.resources import files
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict


def compiles(pattern: str) -> str:
    """The pattern itself. ValueError where it is not a regular expression, or matches nothing at all."""
    try:
        compiled = re.compile(pattern, re.IGNORECASE)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from error
    if compiled.search(""):
        raise ValueError("matches every line")
    return pattern


Pattern = Annotated[str, AfterValidator(compiles)]
"""A regular expression, of which small and capital letters are the same."""


class Wording(BaseModel):
    """Patterns by what they name."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    columns: dict[str, Pattern]
    """A column's name in a template → what its title says."""
    opening: Pattern
    closing: Pattern
    deposits: Pattern
    """The sum of all deposits, or a part of it."""
    withdrawals: Pattern
    deposits_heading: Pattern
    """A heading above deposits only."""
    withdrawals_heading: Pattern
    account: Pattern
    """A heading that names an account with its number."""
    period: Pattern
    bank: Pattern
    """A line that names a bank."""
    whole: Pattern
    """A total of all deposits or withdrawals, not of a kind of them."""
    subtotal: Pattern
    """Any total."""
    furniture: tuple[Pattern, ...]
    """Lines within a table that are no transactions."""


@cache
def wording() -> Wording:
    """The shipped one."""
    return Wording.model_validate(tomllib.loads((files("evalkit.statements") / "wording.toml").read_text("utf-8")))


def matches(pattern: str, text: str) -> re.Match[str] | None:
    """Where the pattern is at the beginning of the text, behind signs that are no letters; accents do not count."""
    return _compiled(pattern).match(_plain(text))


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"\W*(?:{_plain(pattern)})", re.IGNORECASE)


def _plain(text: str) -> str:
    """Without accents, which capitals mostly are printed without; as long as before."""
    if text.isascii():
        return text
    return "".join(unicodedata.normalize("NFD", sign)[0] for sign in text)
