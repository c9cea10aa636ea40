"""What is known of an expression before any text is searched for it."""

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.classification.backtracking import Endless, check, is_quick


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(a+)+$", "a repeat within a repeat"),
        (r"(?:\w+\s*)*x", "a repeat within a repeat"),
        (r"^(([a-z])+.)+[A-Z]([a-z])+$", "a repeat within a repeat"),
        ("(a|b|ab)*c", "a repeat within a repeat"),
        ("(?:ab|[a-c]b)+x", "a repeat within a repeat"),
        ("(a{1,9}){1,9}b", "a repeat within a repeat"),
        ("(?=(a+)+b)c", "a repeat within a repeat"),
        ("(a*)*b", "can be nothing at all"),
        ("(a?){30}b", "can be nothing at all"),
        ("(a|a)*b", "several of its choices are the same"),
        (".*foo.*bar", "several repeats can share"),
        (r"\s*\s*\s*x", "several repeats can share"),
        (r"(\w+) \1", "refers back"),
        (r"(a)?(?(1)b|c)", "refers back"),
    ],
)
def test_what_may_take_forever_is_refused_with_the_reason(pattern: str, why: str) -> None:
    with pytest.raises(Endless, match=why):
        check(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        r"\bpage\s+\d+\s+of\s+\d+\b",
        r"(?:\w+\s+){0,5}tumou?r",
        r"(?:all\s+|any\s+|the\s+)*rules",
        r"foo[^.\n]{0,40}bar[^.\n]{0,40}baz",
        r"(\d{2}/){2}\d{4}",
        r"(?:[A-Z]{3}){2}",
        "total.*due",
        "(?>a+)b",
        "(?i:pending)|(?<!not )final",
    ],
)
def test_what_ends_soon_is_taken(pattern: str) -> None:
    check(pattern)
    assert is_quick(pattern)


def test_another_process_is_ended_when_its_time_is_over() -> None:
    began = time.monotonic()
    assert not is_quick("(a+)+$", seconds=0.5)
    assert time.monotonic() - began < 5


def test_looking_through_an_expression_takes_no_time_itself() -> None:
    words = "|".join(f"{one}{other}{one}word" for one in "abcdefg" for other in "hijklmn")
    began = time.process_time()
    check(rf"(?:\b(?:{words})\s+)+x")
    with pytest.raises(Endless, match="too long to be looked through"):
        check(rf"(?:{'(?:ab|cd)e?' * 120})+x")
    assert time.process_time() - began < 5


_LETTERS = st.sampled_from(["a", "b", "[ab]", ".", "ab", r"\w"])
_EXPRESSIONS = st.recursive(
    _LETTERS,
    lambda inner: st.one_of(
        st.builds("{}{}".format, inner, inner),
        st.builds("(?:{}|{})".format, inner, inner),
        st.builds("(?:{}){}".format, inner, st.sampled_from(["*", "+", "?", "{2}", "{0,3}"])),
    ),
    max_leaves=6,
)


@settings(max_examples=300, deadline=None)
@given(_EXPRESSIONS, st.text("ab", min_size=1, max_size=4))
def test_what_is_taken_ends_soon(pattern: str, unit: str) -> None:
    """Twenty-eight letters are enough for what doubles with each: it would take minutes."""
    try:
        check(pattern)
    except Endless:
        return
    text = (unit * 28)[:28] + "!"
    began = time.process_time()
    re.search(f"(?:{pattern})#", text)
    assert time.process_time() - began < 1
