"""Regular expressions that a site may write, with a time limit.

They are tried on long texts before they are used.

Python's own engine tries all ways of dividing a text among an expression's repeats, and cannot be stopped: ``(a+)+$``
would hold up a run for years. ``regex`` reads the same expressions, and gives up when its time is over.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import regex

from evalkit.errors import UsageError

TIMEOUT_SECONDS = 2.0
"""For one expression on one text. Shipped ones take less than a thousandth of it on a page."""
_TRIAL_TEXT_LENGTH = 2000
"""Letters of each text of a trial: enough for what grows with the third power of them."""


@lru_cache(maxsize=1024)
def compile_case_insensitive(pattern: str) -> regex.Pattern[str]:
    """Compile the expression, ignoring case, ``^`` and ``$`` at every line.

    regex.error if it is invalid.
    """
    return regex.compile(pattern, regex.IGNORECASE | regex.MULTILINE)


def find_first_match_with_timeout(pattern: str, text: str, timeout_seconds: float = TIMEOUT_SECONDS) -> str | None:
    """Find the first match in the text, as it is written there.

    UsageError TRAP-SLOW if that takes too long.
    """
    try:
        match = compile_case_insensitive(pattern).search(text, timeout=timeout_seconds)
    except TimeoutError:
        raise UsageError(
            f"{pattern!r} takes more than {timeout_seconds:g} s on a page",
            code="TRAP-SLOW",
            remedy="Bound its repeats, as in [^.\\n]{0,40} instead of .*",
        ) from None
    return match.group() if match else None


def require_fast_pattern(
    pattern: str, seed_texts: Iterable[str] = (), timeout_seconds: float = TIMEOUT_SECONDS
) -> None:
    """Raise UsageError TRAP-SLOW if the expression is slow on long texts.

    The texts are those of ``build_stress_texts``.
    """
    for text in build_stress_texts(pattern, seed_texts):
        find_first_match_with_timeout(pattern, text, timeout_seconds)


def build_stress_texts(pattern: str, seed_texts: Iterable[str] = ()) -> list[str]:
    """Build long texts that are hard for the expression.

    Each letter of it and of its classes, and each seed text, again and again, all ending in a character that no
    expression expects.
    """
    letters = dict.fromkeys([*"aA1 \n.-,", *(piece for piece in pattern if piece.isalnum())])
    runs = [*letters, *(piece for piece in seed_texts if piece), "a ", "a1", "1 a, "]
    return [(run * (_TRIAL_TEXT_LENGTH // len(run) + 1))[:_TRIAL_TEXT_LENGTH] + "\x00" for run in runs]
