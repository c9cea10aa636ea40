"""Doubt values that hold less than their place prints, or are a part of another value.

A judge of the fields (contract ruling 20c) that knows no word of reports: it compares a value with the page's words
beside it, and with the other values of its field.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

from evalkit.extraction.extraction_schema import FieldValue
from evalkit.extraction.optimizer import EvaluationIssue

#: By field, the printed words that a value must keep: its numbers, its percentages, or units and signs of a result.
_KEPT_WORDS = {
    "stage": re.compile(r"\S*\d\S*"),
    "ihcMarkers": re.compile(r"\d+(?= ?%)"),
    "labValues": re.compile(r"[^\s()\[\]–-]*(?:[^\W\d_]|[*#%])[^\s()\[\]–-]*"),
}
#: A result in a sentence ends here; in a row of a table, its words are those of the whole row.
_RESULT_END = re.compile(r"[;,]\s|\.(?:\s|$)|\s[(\[]")
_BRACKETS = re.compile(r"\([^()]*\)")
#: The number of a limit with its unit: "36%".
_NUMBER_BEFORE_UNIT = re.compile(r"^[<>]?[\d.,]+(?=[^\d.,])")


def find_partial_values(fields: Mapping[str, FieldValue]) -> Iterator[EvaluationIssue]:
    """Find values that lack a word of their place, and variants within another one."""
    found_values = {name: value for name, value in fields.items() if value.is_found}
    values_by_quote: dict[str, str] = defaultdict(str)
    names: set[str] = set()
    for name, value in found_values.items():
        values_by_quote[value.quote or ""] += _squeeze(f"{value.value}; ")
        names |= {*map(_squeeze, re.split(r"[\s()\[\]–-]+", name.partition(".")[2]))}
    for name, value in found_values.items():
        lost_words = [
            word
            for word in _list_kept_words(name, value)
            if _squeeze(word) not in names
            and _squeeze(_NUMBER_BEFORE_UNIT.sub("", word)) not in values_by_quote[value.quote or ""]
        ]
        if lost_words:
            description = f'"{value.value}" lacks "{" ".join(lost_words)}", which is printed beside it'
            yield EvaluationIssue("major", name, description)
    variants = {name: _split(value.value) for name, value in found_values.items() if name.startswith("mutations.")}
    for name, words in variants.items():
        if whole := next((other for other in variants if other != name and words <= variants[other]), None):
            description = f'"{found_values[name].value}" may be the same as "{found_values[whole].value}"'
            yield EvaluationIssue("major", name, description)


def _list_kept_words(name: str, value: FieldValue) -> list[str]:
    field, _, item = name.partition(".")
    raw, text = value.raw or "", value.quote or ""
    if field not in _KEPT_WORDS:
        return []
    if field != "labValues":
        text = _BRACKETS.sub(" ", raw)
    elif "\t" not in text:
        start = max(0, text.find(raw.split("\n")[0], max(0, text.find(item))))
        text = _RESULT_END.split(text[start:], maxsplit=1)[0]
    elif not re.search(r"\d", value.value or ""):
        text = text[: text.find(raw)]  # a word behind a word is the usual result
    return _KEPT_WORDS[field].findall(text)


def _split(text: str | None) -> set[str]:
    return set(re.findall(r"[^\W_]+", text or ""))


def _squeeze(text: str) -> str:
    return re.sub(r"[^\w%*#]", "", text.lower().replace("µ", "u").replace("μ", "u"))
