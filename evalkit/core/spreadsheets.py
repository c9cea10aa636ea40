"""Text in tables that a spreadsheet opens: formulas are escaped, and unescaped again."""

from __future__ import annotations

import re

#: Text that a spreadsheet would run as a formula, also behind blanks; apostrophes before it are escapes.
_FORMULA = re.compile(r"'*\s*[=+\-@\t\r]")


def escape_formula(text: str) -> str:
    """Prefix text with an apostrophe if a spreadsheet would run it as a formula.

    >>> escape_formula("=1+1"), escape_formula("'=1+1"), escape_formula("a = b"), escape_formula("'tis")
    ("'=1+1", "''=1+1", 'a = b', "'tis")
    """
    return f"'{text}" if _FORMULA.match(text) else text


def unescape_formula(text: str) -> str:
    """Return the text that ``escape_formula`` was given.

    >>> unescape_formula("'=1+1"), unescape_formula("''=1+1"), unescape_formula("'tis")
    ('=1+1', "'=1+1", "'tis")
    """
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text
