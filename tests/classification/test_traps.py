"""An expression is searched for a bounded time, and finds what Python's own engine finds."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.classification.traps import find_first_match_with_timeout, load_shipped_traps, require_fast_pattern
from evalkit.errors import UsageError

PATTERNS = sorted({pattern for row in load_shipped_traps().rows for pattern in row.patterns})


@pytest.mark.parametrize("pattern", ["(a+)+$", "(x+x+)+y", r"^(([a-z])+.)+[A-Z]([a-z])+$"])
def test_what_takes_forever_is_given_up_in_time(pattern: str) -> None:
    began = time.monotonic()
    with pytest.raises(UsageError, match=r"takes more than 0\.2 s on a page") as caught:
        require_fast_pattern(pattern, timeout_seconds=0.2)
    assert caught.value.code == "TRAP-SLOW"
    assert time.monotonic() - began < 20


@pytest.mark.parametrize(
    "pattern", [r"\bpage\s+\d+\s+of\s+\d+\b", r"(?:\w+\s+){0,5}tumou?r", "total.*due", "(?<!not )final", "(a|a)*b"]
)
def test_what_ends_soon_is_taken(pattern: str) -> None:
    require_fast_pattern(pattern)


@given(st.sampled_from(PATTERNS), st.text("aeiostnr pgdl.,:0129-\n", max_size=200))
def test_it_finds_what_python_finds(pattern: str, text: str) -> None:
    found = re.search(pattern, text, re.IGNORECASE | re.MULTILINE)
    assert find_first_match_with_timeout(pattern, text) == (found.group() if found else None)
