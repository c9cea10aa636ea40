"""Numbers that a second engine reads again: what both read is sure, what they do not share is in doubt."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from PIL import Image

from evalkit.documents.quality import OcrWord
from evalkit.documents.second_reading import read_words_again

PAGE = Image.new("L", (1000, 100), 255)


class Reader:
    name_and_version = "reader 1"

    def __init__(self, *texts: str, confidence: float = 1.0) -> None:
        self.texts = [(text, confidence) for text in texts]
        self.sizes: list[tuple[int, int]] = []

    def read_cut_outs(self, cut_outs: Sequence[Image.Image]) -> list[tuple[str, float]]:
        self.sizes = [image.size for image in cut_outs]
        return self.texts


def line(*words: tuple[str, int], gap: int = 60) -> list[OcrWord]:
    """Words of one line, 20 pixels high and 100 wide, with their confidences."""
    step = 100 + gap
    return [OcrWord(text, step * n, 40, step * n + 100, 60, sure, 0) for n, (text, sure) in enumerate(words)]


def test_a_number_that_both_read_is_sure():
    words, doubts = read_words_again(line(("Size", 96), ("5.2", 80), ("cm.", 96)), PAGE, Reader("5.2"))
    assert [word.confidence for word in words] == [96, 95, 96]
    assert not doubts


def test_two_very_unsure_readings_make_no_sure_number():
    words, doubts = read_words_again(line(("5.2", 60)), PAGE, Reader("5.2"))
    assert words[0].confidence == 60
    assert not doubts


def test_an_unsure_number_gets_the_second_reading():
    words, doubts = read_words_again(line(("(p.Argl8lHis),", 60)), PAGE, Reader("p.Arg181His"))
    assert words[0].text == "(p.Arg181His),"
    assert doubts == {0: "p.Argl8lHis"}


def test_a_sure_number_keeps_its_reading_and_is_in_doubt():
    words, doubts = read_words_again(line(("52", 95)), PAGE, Reader("5.2"))
    assert words[0].text == "52"
    assert doubts == {0: "5.2"}


@pytest.mark.parametrize("reader", [None, Reader("")], ids=["no second engine", "nothing read"])
def test_without_a_second_reading_confidence_decides(reader):
    assert read_words_again(line(("5.2", 94)), PAGE, reader)[1] == {0: ""}
    assert read_words_again(line(("5.2", 97)), PAGE, reader)[1] == {}


def test_only_words_that_matter_are_read_again():
    reader = Reader("BRCA", "mL")
    words = line(("Specimen", 40), ("BRCA", 70), ("received", 40), ("mL", 70), ("EGFR", 95))
    assert read_words_again(words, PAGE, reader)[1] == {}
    assert len(reader.sizes) == 2


def test_numbers_that_may_have_lost_a_hyphen_are_in_doubt():
    reader = Reader("555-5312")
    words, doubts = read_words_again(line(("555", 97), ("5312", 97), gap=20), PAGE, reader)
    assert [word.text for word in words] == ["555", "5312"]
    assert doubts == {0: "555-5312", 1: "555-5312"}
    assert read_words_again(line(("555", 97), ("5312", 97), gap=20), PAGE, Reader("555 5312"))[1].keys() == {0, 1}
    assert reader.sizes == [(220 + 4, 20 + 8)]


def test_a_list_of_codes_is_compared_code_by_code():
    words, doubts = read_words_again(line(("GLI1,", 97), ("GNA1l,", 80), gap=10), PAGE, Reader("GLI1,GNA11,"))
    assert doubts == {1: "GNA1l"}
    assert words[1].text == "GNA11,"


@pytest.mark.parametrize(("first_confidence", "doubts"), [(94, {0: ""}), (95, {})])
def test_an_unsure_second_reading_confirms_nothing(first_confidence, doubts):
    words, found = read_words_again(line(("5.2", first_confidence)), PAGE, Reader("5.2", confidence=0.94))
    assert words[0].confidence == first_confidence
    assert found == doubts
    assert read_words_again(line(("52", 94)), PAGE, Reader("5.2", confidence=0.94))[1] == {0: "5.2"}


@pytest.mark.parametrize("words", [("09/24/1939", "02:07"), ("8:00", "1950"), ("13:12:59", "7")])
def test_a_date_and_a_clock_time_lost_no_mark_between_them(words):
    reader = Reader("".join(words))
    assert read_words_again(line(*((word, 96) for word in words), gap=20), PAGE, reader)[1] == {}


def test_brackets_around_a_number_are_no_difference():
    assert read_words_again(line(("(206)", 96), ("555-4357", 96), gap=20), PAGE, Reader("(206)555-4357"))[1] == {}


@pytest.mark.parametrize(
    ("word", "is_doubtful"),
    [
        ("603/3", True),
        ("19/0,", True),
        ("1/355", True),
        ("120/80", False),
        ("3/2014", False),
        ("10/10", False),
        ("5/10", False),
        ("000179.2:", True),
        ("0.25", False),
        ("5-month-", True),
        ("5-month", False),
    ],
)
def test_forms_that_both_engines_misread_are_doubtful(word, is_doubtful):
    words, doubts = read_words_again(line((word, 96)), PAGE, Reader(word))
    assert doubts == ({0: ""} if is_doubtful else {})
    assert words[0].text == word
