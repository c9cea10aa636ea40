"""Doubts about values that are shorter than their printed text.

A judge of the fields (contract ruling 20c) that knows no word of reports: it compares a value with the page's words
beside it, with the other values of its field, and with the rows between them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise, product

from evalkit.documents.bundle import Page
from evalkit.extraction.extraction_schema import FieldValue
from evalkit.extraction.optimizer import EvaluationIssue
from evalkit.extraction.printed_rows import PrintedPage

#: By field, the printed words that a value must keep: its numbers, its percentages, or units and signs of a result.
_KEPT_WORDS = {
    "stage": re.compile(r"\S*\d\S*"),
    "ihcMarkers": re.compile(r"\d+(?= ?%)"),
    "labValues": re.compile(r"[^\s()\[\]–-]*(?:[^\W\d_]|[*#%])[^\s()\[\]–-]*"),
}
#: A result in a sentence ends here; in a row of a table, its words are those of the whole row.
_RESULT_END = re.compile(r"[;,]\s|\.(?:\s|$)|\s[(\[]")
#: Fields with a value in each row.
_ROW_FIELDS = ("labValues", "ihcMarkers")
_NUMBER = re.compile(r"(?<![\w/.-])\d+(?:[.,]\d+)?(?![\w/-])").search
#: More rows than this between two values are another part of the report.
_MAX_GAP = 5
#: Issues quote at most this many characters of a row.
_MAX_QUOTE = 80
_BRACKETS = re.compile(r"\([^()]*\)")
#: A cell of words in a result's place, as in the column of ranges: "not established".
_PHRASE_CELL = re.compile(r"^[^\W\d]+(?: [^\W\d]+)+$", re.MULTILINE)
#: The number of a limit with its unit: "36%".
_NUMBER_BEFORE_UNIT = re.compile(r"^[<>]?[\d.,]+(?=[^\d.,])")


def find_partial_values(fields: Mapping[str, FieldValue]) -> Iterator[EvaluationIssue]:
    """Find values that lack a word of their place, or lie within another value."""
    values = {name: value for name, value in fields.items() if value.is_found}
    item_words = {_squeeze(word) for name in values for word in re.split(r"[\s()\[\]–-]+", name.partition(".")[2])}
    for name, value in values.items():
        # Another test's result may be in the same row.
        known_text = " ".join(_squeeze(other.value or "") for other in values.values() if other.quote == value.quote)
        lost_words = [
            word
            for word in _list_kept_words(name, value)
            if _squeeze(word) not in item_words and _squeeze(_NUMBER_BEFORE_UNIT.sub("", word)) not in known_text
        ]
        if lost_words:
            description = f'"{value.value}" lacks "{" ".join(lost_words)}", which is printed beside it'
            yield EvaluationIssue("major", name, description)
    variants = {
        name: {*re.findall(r"[^\W_]+", value.value or "")} for name, value in values.items() if "mutations." in name
    }
    for name, words in variants.items():
        if whole := next((other for other in variants if other != name and words <= variants[other]), None):
            description = f'"{values[name].value}" may be the same as "{values[whole].value}"'
            yield EvaluationIssue("major", name, description)


def _list_kept_words(name: str, value: FieldValue) -> list[str]:
    field, _, item = name.partition(".")
    pattern, raw, quote = _KEPT_WORDS.get(field), value.raw or "", value.quote or ""
    if field != "labValues":
        return pattern.findall(_BRACKETS.sub(" ", raw)) if pattern else []
    if "\t" in quote and re.search(r"\d", value.value or ""):
        for phrase in _PHRASE_CELL.findall(raw):
            quote = quote.replace(phrase, "")
    elif "\t" in quote:
        quote = quote[: quote.find(raw.split("\n")[0])]  # a word behind a result in words is the usual result
    else:
        start = max(0, quote.find(raw.split("\n")[0], max(0, quote.find(item))))
        quote = _RESULT_END.split(quote[start:], maxsplit=1)[0]
    return _KEPT_WORDS[field].findall(quote)


def find_skipped_rows(pages: Iterable[Page], fields: Mapping[str, FieldValue]) -> Iterator[EvaluationIssue]:
    """Find rows between rows of a field's values from which nothing was taken.

    Where one of them is no row of cells, only those with a number count: others may be a heading, or a header.
    """
    for page, field in product(pages, _ROW_FIELDS):
        boxes = [
            [10_000 * edge for edge in box[1:]]
            for name, value in fields.items()
            if name.partition(".")[0] == field
            for box in value.boxes
            if box[0] == page.page_num
        ]
        rows = PrintedPage(page).split_into_rows(0, len(page.text)) if len(boxes) > 1 else []
        words = {word[0]: word for word in page.words}
        used = [
            number
            for number, row in enumerate(rows)
            if any(
                x0 < cell.right and cell.left < x1 and y0 <= (words[cell.start][3] + words[cell.start][5]) / 2 <= y1
                for cell in row
                for x0, y0, x1, y1 in boxes
            )
        ]
        texts = [tuple(cell.text for cell in row) for row in rows]
        # The cells of a header may come again.
        others = Counter(text[1:] for number, text in enumerate(texts) if number not in used)
        for first, last in pairwise(used):
            skipped = [
                number for number in range(first + 1, last) if others[texts[number][1:]] == 1 or not texts[number][1:]
            ]
            is_one_table = all(len(texts[number]) > 1 for number in skipped)
            yield from (
                EvaluationIssue(
                    "major",
                    field,
                    f'Nothing was taken from "{" ".join(texts[number])[:_MAX_QUOTE]}" on page {page.page_num}',
                    f"Read the rows of page {page.page_num}",
                    (page.page_num, rows[number][0].start, rows[number][-1].end),
                )
                for number in skipped
                if is_one_table or (len(skipped) <= _MAX_GAP and _NUMBER(" ".join(texts[number])))
            )


def _squeeze(text: str) -> str:
    """Keep letters, digits and signs; spell a power of ten in one way."""
    return re.sub(r"(?<=10)[e*]+(?=\d)|[^\w%*#]", "", text.lower().replace("µ", "u").replace("μ", "u"))
