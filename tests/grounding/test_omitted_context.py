"""What stands beside a quote."""

from __future__ import annotations

import pytest
from builders import document

from evalkit.grounding import QuoteLocator
from evalkit.grounding.omitted_context import find_omitted_context, load_context_tables


@pytest.mark.parametrize(
    ("first", "second", "quote"),
    [
        ("There is no evidence of\ninvasive", "carcinoma in the duct", "invasive carcinoma in the duct"),
        ("No.\nInvasive", "carcinoma in the duct", "Invasive carcinoma in the duct"),
        ("Invasive carcinoma in", "the duct is not seen", "Invasive carcinoma in the duct"),
        ("Family history: breast", "cancer in two cousins", "breast cancer in two cousins"),
    ],
)
def test_what_runs_on_to_the_next_page_is_read_as_if_on_one(first: str, second: str, quote: str) -> None:
    apart = QuoteLocator(document(first, second)).locate(quote, 1)
    together = QuoteLocator(document(f"{first}\n{second}")).locate(quote, 1)
    assert (apart.verdict, apart.difference_text) == (together.verdict, together.difference_text)


ROWS = [
    (row["kind"], example, turns)
    for row in load_context_tables()["cue"]
    for turns, name in ((True, "turns"), (False, "keeps"))
    for example in row[name]
]


@pytest.mark.parametrize(("kind", "example", "turns"), ROWS)
def test_each_row_of_the_table_does_what_its_examples_show(kind: str, example: str, turns: bool) -> None:
    before, _, rest = example.partition("«")
    quote, _, after = rest.partition("»")
    difference = find_omitted_context(before + quote + after, len(before), len(before) + len(quote))
    assert (difference and difference.kind) == (kind if turns else None)
