"""Pages that documents count themselves: missing, out of order, there twice."""

from __future__ import annotations

import pytest
from builders import NOTE, compose_single_type, document, one_segment, parse_answer, segment
from builders import answer as compose_answer

from evalkit.classification.page_order import find_page_order_issues
from evalkit.documents import DocumentBundle

BODY = [
    "The wound was inspected and found clean. The patient walks with a frame and eats without help. Sutures stay in.",
    "Blood pressure was taken twice in the morning, and the ward doctor asked for a further film of the left ankle joint.",
    "At the third visit the physiotherapist wrote that stairs are managed, and that no further sessions are thought needed.",
    "The family was told about the date of the follow-up, and a letter to the family doctor was dictated on the same day.",
]


def read(*counts: str) -> DocumentBundle:
    return document(*(f"{body}\n{body.upper()}\n{count}" for body, count in zip(BODY, counts, strict=False)))


def codes(bundle: DocumentBundle) -> list[tuple[str, int | None]]:
    answer = parse_answer(one_segment(NOTE, bundle.total_pages))
    return [(issue.code, issue.page) for issue in find_page_order_issues(answer, bundle)]


@pytest.mark.parametrize(
    "counts",
    [
        ("Page 1 of 3", "Page 2 of 3", "Page 3 of 3"),
        ("", "", ""),
        ("Page 7 of 20", "Page 8 of 20", "Page 9 of 20"),  # of a print-out of the whole record
        ("Fax page 1 of 9", "Fax page 2 of 9", "Fax page 3 of 9"),
        ("To: 555 0100 page 1 of 9", "To: 555 0100 page 2 of 9"),
        ("Page 1 of 3", "", "Page 3 of 3"),  # not all pages are counted
    ],
)
def test_whole_documents_raise_nothing(counts: tuple[str, ...]) -> None:
    assert codes(read(*counts)) == []


@pytest.mark.parametrize(
    ("counts", "missing"),
    [
        (("Page 1 of 4", "Page 2 of 4", "Page 4 of 4"), "page 3 is not"),
        (("Page 1 of 4", "Page 2 of 4"), "pages 3 and 4 are not"),
        (("Page 2 of 4", "Page 3 of 4", "Page 4 of 4"), "page 1 is not"),
        (("Page 5 of 30", "Page 8 of 30"), "pages 6 and 7 are not"),
    ],
)
def test_missing_pages_are_named(counts: tuple[str, ...], missing: str) -> None:
    bundle = read(*counts)
    answer = parse_answer(one_segment(NOTE, bundle.total_pages))
    (issue,) = find_page_order_issues(answer, bundle)
    assert issue.code == "V2-PAGES-MISSING"
    assert issue.severity == "MAJOR"
    assert missing in issue.message


def test_pages_out_of_order_are_named_once() -> None:
    assert codes(read("Page 1 of 4", "Page 3 of 4", "Page 2 of 4", "Page 4 of 4")) == [("V2-PAGES-ORDER", 3)]


def test_a_page_that_is_there_twice_is_named() -> None:
    repeated = f"{BODY[0]}\n{BODY[1]}"
    assert codes(document(repeated, BODY[2] * 2, repeated)) == [("V2-PAGES-REPEATED", 3)]


@pytest.mark.parametrize(
    ("order", "pages", "named"),
    [
        ("AbA", [3], "Pages 1 and 3 have"),
        ("AbAcA", [3], "Pages 1, 3 and 5 have"),
        ("ABCdABC", [5], "Pages 1–3 and 5–7 have"),
        ("ABdABeAB", [4], "Pages 1–2, 4–5 and 7–8 have"),
        ("AA", [2], "Pages 1 and 2 have"),
        ("A.BdA.B", [5], "Pages 1–3 and 5–7 have"),  # a short page between belongs to the part
        ("A.BdA,B", [5, 7], "Pages 1 and 5 have"),  # another one ends it
        ("ABdBA", [5, 4], "Pages 1 and 5 have"),  # not in the same order
        ("ABdAeB", [4, 6], "Pages 1 and 4 have"),
    ],
)
def test_a_part_sent_twice_is_named_once_with_its_range(order: str, pages: list[int], named: str) -> None:
    texts = {letter: f"{letter} {body}\n{body}" for letter, body in zip("ABCd", BODY, strict=True)}
    texts |= {"c": texts["C"], "b": texts["B"], "e": f"e {BODY[3]}\n{BODY[0]}", ".": "", ",": "Left blank on purpose"}
    bundle = document(*(texts[letter] for letter in order))
    issues = list(find_page_order_issues(parse_answer(one_segment(NOTE, bundle.total_pages)), bundle))
    assert [issue.page for issue in issues] == pages
    assert issues[0].message.startswith(named)


def test_a_blank_page_is_there_without_a_number() -> None:
    pages = [f"{BODY[0]}\nPage 1 of 3", "", f"{BODY[1]}\nPage 3 of 3"]
    assert codes(document(*pages)) == []


def test_what_runs_through_a_file_counts_no_document() -> None:
    bundle = read("Page 1 of 9", "Page 2 of 9", "Page 3 of 9", "Page 4 of 9")
    parts = [segment(index, 2 * index - 1, 2 * index, NOTE, compose_single_type(NOTE)) for index in (1, 2)]
    answer = parse_answer(compose_answer(*parts, overall=NOTE, shares={NOTE: 1.0}))
    assert list(find_page_order_issues(answer, bundle)) == []


def test_short_equal_pages_are_no_repetition() -> None:
    assert codes(document("Left blank on purpose", "Left blank on purpose")) == []


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        ("Page 2 of 2", []),  # the count goes on: of the file, or of a document that is cut wrongly
        ("Page 1 of 1", ["V2-PAGES-MISSING"]),
        ("Page 2 of 7", ["V2-PAGES-MISSING"]),
    ],
)
def test_pages_that_the_next_document_counts_on_are_not_missing(second: str, expected: list[str]) -> None:
    bundle = read("Page 1 of 2", second)
    parts = [segment(index, index, index, NOTE, compose_single_type(NOTE)) for index in (1, 2)]
    answer = parse_answer(compose_answer(*parts, overall=NOTE, shares={NOTE: 1.0}))
    found = [issue.code for issue in find_page_order_issues(answer, bundle) if issue.segment_index == 1]
    assert found == expected
