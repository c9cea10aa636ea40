"""Quotes: a quote passes only where its own words stand on its own page."""

from __future__ import annotations

import pytest
from builders import DOC2_6, doc2_6, document, page, scanned_page
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from evalkit.documents.bundle import DocumentBundle
from evalkit.grounding import QuoteLocation, QuoteLocator
from evalkit.grounding.difference import has_content_words

PASSES = ("VERBATIM", "NOISY")


def locate(quote: str, number: int, *pages: str) -> QuoteLocation:
    return QuoteLocator(document(*pages) if pages else doc2_6()).locate(quote, number)


def words_at(place: QuoteLocation, bundle: DocumentBundle) -> str:
    assert place.page_number is not None
    return bundle.page(place.page_number).text[place.start : place.end]


# --------------------------------------------------------------------------------------------------- verdicts


@pytest.mark.parametrize(
    ("text", "quote", "verdict"),
    [
        ("BRCA1 c.5266dupC was detected", "BRCA1 c.5266dupC was detected", "VERBATIM"),
        ("BRCA1 c.5266dupC was detected", "c.5266dupC was", "VERBATIM"),
        ("BRCA1 c.5266dupC was detected", "  c.5266dupC was\n", "VERBATIM"),
        ("BRCA1 c.5266dupC\nwas   detected", "BRCA1 c.5266dupC was detected", "NOISY"),
        ("BRCA1 c.5266dupC was detected", "brca1 C.5266DUPC Was Detected", "NOISY"),
        ("no deﬁnite ﬂow void", "no definite flow void", "NOISY"),
        ("no definite flow void", "no deﬁnite ﬂow void", "NOISY"),
        ("the patient’s “own” words", 'the patient\'s "own" words', "NOISY"),
        ("invasive carci-\nnoma of the breast", "invasive carcinoma of the breast", "NOISY"),
        ("invasive carcinoma of the breast", "invasive carci-\nnoma of the breast", "NOISY"),
        ("a non-small cell carcinoma", "a nonsmall cell carcinoma", "NOISY"),
        ("sizes 3–5 mm", "sizes 3-5 mm", "NOISY"),
        ("WBC 8.2 x 10³/µL", "WBC 8.2 x 10³/μL", "NOISY"),
        ("nothing of the kind is written here", "invasive carcinoma of the breast", "ABSENT"),
    ],
)
def test_a_quote_on_its_page(text: str, quote: str, verdict: str) -> None:
    place = locate(quote, 1, text)
    assert place.verdict == verdict
    assert place.is_found is (verdict in PASSES)
    assert place.page_number == (1 if place.is_found else None)


@pytest.mark.parametrize(("claimed", "stands_on"), [(1, 2), (3, 2), (8, 2), (0, 2), (9, 2), (-4, 2), (10**12, 2)])
def test_a_quote_that_stands_on_another_page(claimed: int, stands_on: int) -> None:
    place = locate("BRCA1 c.5266dupC was detected", claimed)
    assert (place.verdict, place.page_number, place.is_found) == ("WRONG_PAGE", stands_on, False)
    assert words_at(place, doc2_6()) == "BRCA1 c.5266dupC was detected"


def test_of_several_other_pages_the_nearest_is_named() -> None:
    quote = "see the table below"
    place = locate(quote, 4, quote, "nothing", "nothing", "nothing else", quote, "nothing")
    assert place.page_number == 5


def test_the_claimed_page_goes_before_a_better_copy_elsewhere() -> None:
    place = locate("Margins are Negative", 2, "Margins are Negative", "margins are negative")
    assert (place.verdict, place.page_number) == ("NOISY", 2)


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        ("a margin of 11.2 mm", "1.2 mm"),
        ("a margin of 1.25 mm", "1.2"),
        ("a grade of 4.2 in all", "4"),
        ("a grade of 4.2 in all", "2 in all"),
        ("a count of 4,200 in all", "4"),
        ("a count of 4,200 in all", "200 in all"),
        ("WBC 8.2 x 10³ per litre", "WBC 8.2 x 103 per litre"),
        ("WBC 8.2 x 103 per litre", "WBC 8.2 x 10³ per litre"),
        ("WBC 8.2 x 10³ per litre", "8.2 x 10"),
        ("sizes 3-5 mm", "sizes 35 mm"),
        ("BRCA11 was read", "BRCA1"),
        ("unremarkable liver", "remarkable liver"),
        ("the margin is 42 mm", "the margin is 4"),
        ("½ mm from the margin", "2 mm from the margin"),
        ("depth ⅔ cm in total", "3 cm in total"),
        ("margin 1\u200b2 mm in total", "2 mm in total"),
    ],
)
def test_a_part_of_a_word_or_number_is_not_that_word_or_number(text: str, quote: str) -> None:
    place = locate(quote, 1, text)
    assert place.verdict not in (*PASSES, "WRONG_PAGE")


def test_divided_words_are_other_words() -> None:
    for said, stands in (("a typical cells seen", "atypical cells seen"), ("a symptomatic man", "asymptomatic man")):
        for quote, text in ((said, stands), (stands, said)):
            assert QuoteLocator(document(page(1, text))).locate(quote, 1).verdict == "UNCERTAIN"


def test_a_line_break_may_divide_a_word() -> None:
    assert (
        QuoteLocator(document(page(1, "the micro-\nscopic view"))).locate("the microscopic view", 1).verdict == "NOISY"
    )


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        ("Nottingham grade 1\n2 mm from the margin", "grade 12 mm from the margin"),
        ("Gleason\t3\t4\ttotal", "Gleason 34 total"),
        ("the tumour measures 12 mm", "the tumour measures 1 2 mm"),
    ],
)
def test_two_numbers_are_not_one_number(text: str, quote: str) -> None:
    """Whitespace is noise between words; between digits it makes another number."""
    assert not locate(quote, 1, text).is_found


@pytest.mark.parametrize(
    ("text", "quote"),
    [("the grade is 4.", "4"), ("grade 4, margin 2", "grade 4"), ("(1.2 mm)", "1.2 mm"), ("x=4.2;", "4.2")],
)
def test_a_number_before_a_full_stop_or_comma_is_that_number(text: str, quote: str) -> None:
    assert locate(quote, 1, text).verdict == "VERBATIM"


@pytest.mark.parametrize("digit", "0123456789")
@pytest.mark.parametrize("place", [20, 21, 23])
def test_a_changed_digit_never_passes(place: int, digit: str) -> None:
    true = "The tumour measures 14.7 mm and lies 3 mm from the inked margin of the specimen."
    claimed = true[:place] + digit + true[place + 1 :]
    found = locate(claimed, 1, true, "another page")
    assert found.is_found is (claimed == true)
    if claimed != true:
        assert found.verdict != "WRONG_PAGE"


@pytest.mark.parametrize("quote", ["", " ", "\n\t", ".", "...", "— – -", "“”", "()", "\u200b", "%"])
def test_a_quote_without_a_letter_or_digit_is_nowhere(quote: str) -> None:
    place = locate(quote, 1, f"text ... with {quote} — – - “” () in it")
    assert (place.verdict, place.page_number, place.boxes) == ("ABSENT", None, ())


@pytest.mark.parametrize("text", ["", "short", "GENOMIC SEQUENCING REPORT"])
def test_a_quote_that_is_longer_than_the_page_is_not_on_it(text: str) -> None:
    assert locate("GENOMIC SEQUENCING REPORT of a patient seen last week", 1, text).verdict == "ABSENT"


def test_near_miss_is_altered_and_shows_the_passage() -> None:
    place = locate("BRCA1 c.5266dupC was expected in a heterozygous state", 2)
    assert (place.verdict, place.page_number) == ("ALTERED", 2)
    assert place.difference_text == "finding: the document says “detected”, the quote “expected”"
    assert 85 <= place.similarity < 100
    assert "BRCA1 c.5266dupC was detected" in words_at(place, doc2_6())
    assert place.boxes


@pytest.mark.parametrize(
    ("status", "verdict"), [("image", "UNCERTAIN"), ("failed", "UNCERTAIN"), ("blank", "ABSENT"), ("text", "ABSENT")]
)
def test_what_nobody_could_read_can_neither_confirm_nor_refute(status: str, verdict: str) -> None:
    bundle = document(page(1, "", status=status), "another page")
    place = QuoteLocator(bundle).locate("invasive carcinoma of the breast", 1)
    assert (place.verdict, place.page_number) == (verdict, None)


@settings(max_examples=50)
@given(st.integers(0, 7), st.integers(0, 200), st.integers(1, 80))
def test_words_copied_from_a_page_are_verbatim_and_located(number: int, start: int, length: int) -> None:
    words = DOC2_6[number].split(" ")
    start %= len(words)
    quote = " ".join(words[start : start + length])
    assume(has_content_words(quote))
    place = locate(quote, number + 1)
    assert place.verdict == "VERBATIM"
    assert words_at(place, doc2_6()).casefold() == quote.strip().casefold()


def test_a_verbatim_quote_is_shown_where_it_stands_verbatim() -> None:
    text = "INTERPRETATION OF THE RESULT\nThe interpretation of the result is below."
    place = locate("interpretation of the result", 1, text)
    assert place.verdict == "VERBATIM"
    assert words_at(place, document(text)) == "interpretation of the result"


@given(st.text(max_size=80), st.integers(-2, 10))
def test_any_quote_gets_a_verdict(quote: str, number: int) -> None:
    place = locate(quote, number)
    assert place.is_found <= (place.page_number == number)


@pytest.mark.parametrize(
    ("anchor", "number", "there"),
    [
        ("c.5266dupC", 2, True),
        ("VARIANT findings", 2, True),
        ("c.5266dup", 2, False),
        ("pathogenic", 2, False),
        ("pathogenic", 3, True),
        ("", 2, False),
        ("pathogenic", 0, False),
        ("pathogenic", 99, False),
    ],
)
def test_an_anchor_is_on_the_page_or_not(anchor: str, number: int, there: bool) -> None:
    assert QuoteLocator(doc2_6()).has_quote(anchor, number) is there


# -------------------------------------------------------------------------------------------------- elided quotes

ELIDED_PAGE = (
    "Gross: a polyp of 9 mm. The stalk is free. Diagnosis: tubular adenoma, low grade.\n"
    "The patient denies chills, sweats or fever at night. The mole is by no means a melanoma of the skin."
)


@pytest.mark.parametrize(
    ("quote", "verdict"),
    [
        ("a polyp of 9 mm ... tubular adenoma, low grade", "NOISY"),
        ("a polyp of 9 mm […] The stalk is free", "NOISY"),
        ("a polyp of 9 mm (. . .) tubular adenoma", "NOISY"),
        ("... tubular adenoma, low grade …", "NOISY"),
        ("The patient denies ... fever at night", "NOISY"),
        ("chills, sweats … fever at night", "ALTERED"),
        ("The mole is ... a melanoma of the skin", "ALTERED"),
        ("a polyp of 9 mm ... tubular carcinoma, low grade", "ALTERED"),
        ("a polyp of 9 mm ... villous growth of the colon", "ABSENT"),
        ("tubular adenoma … a polyp of 9 mm", "UNCERTAIN"),
        ("The stalk is ... tubular adenoma", "UNCERTAIN"),
    ],
)
def test_elided_quote_is_worth_its_worst_part(quote: str, verdict: str) -> None:
    assert locate(quote, 1, ELIDED_PAGE).verdict == verdict


def test_boxes_of_an_elided_quote_surround_each_part() -> None:
    place = locate("a polyp of 9 mm ... low grade", 1, ELIDED_PAGE)
    assert [ELIDED_PAGE[start:end] for _, start, end in place.page_spans] == ["a polyp of 9 mm", "low grade"]
    assert len(place.boxes) == 2


@pytest.mark.parametrize("dash", "-‐‑‒–—―−⸺")
@pytest.mark.parametrize("other_dash", ["-", "–", "—", "--"])
def test_every_dash_and_hyphen_is_the_same(dash: str, other_dash: str) -> None:
    text = "an ABL1{0}BCR fusion and a 12{0}14 mm nodule, grade II{0}III"
    assert locate(text.format(other_dash).replace("--14", "-14"), 1, text.format(dash)).is_found


def test_long_dash_ends_a_word() -> None:
    assert locate("invasive carcinoma", 1, "invasive carcinoma—poorly differentiated").verdict == "VERBATIM"


@pytest.mark.parametrize(
    ("text", "quote", "is_found"),
    [
        ("Margins negative for tumour", "Margins are negative for tumour", True),
        ("The margins are negative for tumour", "The margins negative for tumour", True),
        ("Progesterone receptor: weak (5%)", "Progesterone receptor is weak (5%)", True),
        ("The pain is gone today", "The pain was gone today", False),
        ("Nodes not involved by tumour", "Nodes are involved by tumour", False),
        ("Ejection fraction 32% by echo", "Ejection fraction is 23% by echo", False),
    ],
)
def test_missing_or_added_copula_alone_is_noise(text: str, quote: str, is_found: bool) -> None:
    assert locate(quote, 1, text).is_found is is_found


def test_recognised_text_that_agrees_with_a_picture_is_noisy() -> None:
    bundle = document(page(1, "invasive carcinoma of the breast", status="image"))
    assert QuoteLocator(bundle).locate("invasive carcinoma of the breast", 1).verdict == "NOISY"
    assert QuoteLocator(bundle).locate("lobular carcinoma in situ of the left side", 1).verdict == "UNCERTAIN"


# ------------------------------------------------------------------------------------------------------ boxes


def test_boxes_are_one_rectangle_per_line() -> None:
    text = "The margin\nis involved by\ninvasive carcinoma today"
    place = locate("margin is involved by invasive carcinoma", 1, text)
    # page() sets each line on its own row: 0.05, 0.08, 0.11; a character is 0.009 wide and begins at 0.01.
    assert place.boxes == (
        (1, 0.046, 0.05, 0.1, 0.07),
        (1, 0.01, 0.08, 0.136, 0.1),
        (1, 0.01, 0.11, 0.172, 0.13),
    )


def test_boxes_hold_the_quoted_words_and_no_others() -> None:
    (box,) = locate("detected in a", 2).boxes
    assert box == (2, 0.199, 0.08, 0.316, 0.1)


@pytest.mark.parametrize(("claimed", "found"), [(2, 2), (5, 2)])
def test_boxes_lie_on_the_page_where_the_words_stand(claimed: int, found: int) -> None:
    boxes = locate("BRCA1 c.5266dupC was detected", claimed).boxes
    assert [box[0] for box in boxes] == [found]
    assert all(0 <= edge <= 1 for box in boxes for edge in box[1:])
    assert all(x0 < x1 and y0 < y1 for _, x0, y0, x1, y1 in boxes)


# --------------------------------------------------------------------------------------------------- doubtful words

FAX = (
    "Final diagnosis: tumor measures 5.2 cm, margin clear.\nGene BRCA1 was positive in 12 cells of 80 seen, grade 1 0."
)
FAX_DOUBTS = {"5.2": "5.7", "BRCA1": "BRCA2", "margin": "rnargin", "12": "", "cells": "cells,", "1": "1.0", "0.": "1.0"}


@pytest.mark.parametrize(
    ("quote", "readings"),
    [
        ("tumor measures 5.2 cm", ("5.2", "5.7")),
        ("tumor measures 5.7 cm", ("5.7", "5.2")),
        ("tumor … 5.7 cm", ("5.7", "5.2")),
        ("5.7 cm", ("5.7", "5.2")),
        ("Gene BRCA2 was positive", ("BRCA2", "BRCA1")),
        ("was positive in 12 cells", ("12", "")),
        ("5.2 cm, margin clear. Gene BRCA2 was", ("5.2 … BRCA2", "5.7 … BRCA1")),
        ("seen, grade 1 0", ("1 0", "1.0")),
    ],
)
def test_a_quote_with_a_doubtful_word_is_uncertain(quote: str, readings: tuple[str, str]) -> None:
    place = QuoteLocator(document(scanned_page(1, FAX, FAX_DOUBTS))).locate(quote, 1)
    assert (place.verdict, place.page_number) == ("UNCERTAIN", 1)
    assert place.difference is not None
    assert (place.difference.quote_text, place.difference.page_text) == readings
    assert all(word.boxes for word in place.doubtful_words)


@pytest.mark.parametrize("quote", ["margin clear", "cells of 80 seen", "Final diagnosis"])
def test_doubtful_words_without_a_number_or_code_do_not_count(quote: str) -> None:
    place = QuoteLocator(document(scanned_page(1, FAX, FAX_DOUBTS))).locate(quote, 1)
    assert place.is_found
    assert not place.doubtful_words


def test_a_second_reading_does_not_excuse_another_number() -> None:
    bundle = document(scanned_page(1, "tumor measures 31 cm\nThe margin was 5.2 mm wide", {"5.2": "64"}))
    assert QuoteLocator(bundle).locate("tumor measures 64 cm", 1).verdict == "ALTERED"
