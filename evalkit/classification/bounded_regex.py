"""Regular expressions from a site's own traps file, matched with a time limit.

Each expression is tried on long texts before it is used. Python's ``re`` backtracks without a limit and cannot be
stopped: ``(a+)+$`` could hold up a run for years. ``regex`` reads the same expressions and stops at a time limit.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import regex

from evalkit.errors import UsageError

#: Time limit for one expression on one text. Shipped expressions take less than a thousandth of it on a page.
TIMEOUT_SECONDS = 2.0
#: Characters of each trial text: enough to show an expression whose time grows with the cube of the length.
_TRIAL_TEXT_LENGTH = 2000


@lru_cache(maxsize=1024)
def compile_case_insensitive(pattern: str) -> regex.Pattern[str]:
    """Compile with case ignored, and ``^`` and ``$`` at every line.

    regex.error if the expression is invalid.
    """
    return regex.compile(pattern, regex.IGNORECASE | regex.MULTILINE)


def find_first_match_with_timeout(pattern: str, text: str, timeout_seconds: float = TIMEOUT_SECONDS) -> str | None:
    """Return the first match as written in the text; None if there is none.

    UsageError TRAP-SLOW if matching takes longer than ``timeout_seconds``.
    """
    try:
        match = compile_case_insensitive(pattern).search(text, timeout=timeout_seconds)
    except TimeoutError:
        raise UsageError(
            f"the expression {pattern!r} takes more than {timeout_seconds:g} s on a page",
            code="TRAP-SLOW",
            remedy="Limit the expression's repeats, for example [^.\\n]{0,40} instead of .*",
        ) from None
    return match.group() if match else None


def require_fast_pattern(
    pattern: str, seed_texts: Iterable[str] = (), timeout_seconds: float = TIMEOUT_SECONDS
) -> None:
    """Raise UsageError TRAP-SLOW if the expression is slow on long texts.

    ``build_stress_texts`` builds these texts; ``timeout_seconds`` is the limit for each of them.
    """
    for text in build_stress_texts(pattern, seed_texts):
        find_first_match_with_timeout(pattern, text, timeout_seconds)


def build_stress_texts(pattern: str, seed_texts: Iterable[str] = ()) -> list[str]:
    """Build long texts that make a slow expression backtrack.

    Each text repeats one letter or digit of the expression, one frequent character or one seed text, and ends in a
    character that no expression expects.
    """
    letters = dict.fromkeys([*"aA1 \n.-,", *(piece for piece in pattern if piece.isalnum())])
    runs = [*letters, *(piece for piece in seed_texts if piece), "a ", "a1", "1 a, "]
    return [(run * (_TRIAL_TEXT_LENGTH // len(run) + 1))[:_TRIAL_TEXT_LENGTH] + "\x00" for run in runs]
