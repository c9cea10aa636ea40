"""The words of a page are packed, and nobody who reads them can tell; a damaged one is refused without a word of it."""

import json
import pickle
import tracemalloc
from typing import Any

import pytest
from builders import document, page
from hypothesis import given
from hypothesis import strategies as st
from places import open_folder
from pydantic import ValidationError

from evalkit.documents.bundle import DocumentBundle, PackedWords, Page, compact_page_json_in_place
from evalkit.errors import StoreError
from evalkit.review.loaders import read_bundle
from evalkit.store import OutputFolder, bundle_file_name

SMALL, NUMBERS = st.integers(0, 2**16 - 1), st.integers(-(2**31), 2**31 - 1)  # two ways to keep them
WORDS = st.one_of(st.lists(st.tuples(*[number] * 6), max_size=8).map(tuple) for number in (SMALL, NUMBERS))
SECRET = 77077


@given(WORDS, st.integers(-9, 9), st.integers(-9, 9), st.sampled_from([None, 1, 2, -1]))
def test_packed_words_read_as_the_tuple_of_them(words: tuple[Any, ...], start: int, end: int, step: int | None) -> None:
    kept = PackedWords(words)
    assert kept == words
    assert kept == PackedWords(list(words))
    assert hash(kept) == hash(words)
    assert (len(kept), list(kept), bool(kept)) == (len(words), list(words), bool(words))
    assert kept[start:end:step] == words[start:end:step]
    assert [kept[at] for at in range(-len(words), len(words))] == [*words, *words]
    assert pickle.loads(pickle.dumps(kept)) == kept


def test_other_words_are_not_equal_and_no_place_is_made_up() -> None:
    one = PackedWords([(0, 3, 1, 2, 3, 4)])
    assert one != PackedWords([(0, 3, 1, 2, 3, 5)])
    assert one != ()
    assert one != [(0, 3, 1, 2, 3, 4)]  # as a tuple
    with pytest.raises(IndexError):
        one[1]


def stored(files: OutputFolder, damaged: Any) -> str:
    value = json.loads(document("Sheet 1: reviewed with the patient").model_dump_json())
    value["pages"][0]["words"] = damaged(value["pages"][0]["words"])
    files.write_json(bundle_file_name("doc2_6"), value, compact=True)
    return "doc2_6"


def test_a_bundle_from_a_file_is_the_one_that_was_written(tmp_path: Any) -> None:
    files, before = open_folder(tmp_path), document("Sheet 1: reviewed with the patient")
    files.write_json(bundle_file_name("doc2_6"), before.model_dump(mode="json"), compact=True)
    after = read_bundle(files, "doc2_6")
    assert after == before
    assert after.page(1).words
    assert after.model_dump() == before.model_dump()
    assert after.model_dump(mode="json") == json.loads(files.read_bytes(bundle_file_name("doc2_6")))
    assert DocumentBundle.model_validate_json(after.model_dump_json()) == before


DAMAGED = {
    "five numbers": lambda words: [*words, [SECRET, 2, 3, 4, 5]],
    "seven numbers": lambda words: [*words, [SECRET, 2, 3, 4, 5, 6, 7]],
    "five and seven": lambda words: [[SECRET, 2, 3, 4, 5], [SECRET, 2, 3, 4, 5, 6, 7]],
    "a fraction": lambda words: [*words, [SECRET + 0.5, 2, 3, 4, 5, 6]],
    "a text": lambda words: [*words, [str(SECRET) + "x", 2, 3, 4, 5, 6]],
    "six letters": lambda words: [*words, f"{SECRET}x"],
    "nothing": lambda words: [*words, None],
    "null": lambda words: None,
    "an object": lambda words: {},
    "a number": lambda words: SECRET,
    "no 31 bits": lambda words: [*words, [SECRET * 10**9, 2, 3, 4, 5, 6]],
    "no 64 bits": lambda words: [*words, [SECRET * 10**19, 2, 3, 4, 5, 6]],
}


@pytest.mark.parametrize("damaged", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_word_is_refused_on_reading(tmp_path: Any, damaged: Any) -> None:
    files = open_folder(tmp_path)
    doc_id = stored(files, damaged)
    with pytest.raises(StoreError) as refused:
        read_bundle(files, doc_id)
    assert refused.value.code == "STORE-TORN"
    assert str(SECRET) not in str(refused.value)
    assert refused.value.__cause__ is None
    with pytest.raises(ValidationError):
        DocumentBundle.model_validate_json(files.read_bytes(bundle_file_name(doc_id)))


def test_a_damaged_number_of_pages_costs_no_memory() -> None:
    stored = document(page(1, "Quiet.")).model_dump(mode="json") | {"total_pages": 10**6}
    tracemalloc.start()
    try:
        with pytest.raises(ValidationError, match="total_pages"):
            DocumentBundle.model_validate(stored)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


def test_only_words_are_packed() -> None:
    assert compact_page_json_in_place({"words": [[0, 1, 2, 3, 4, 5]], "text": "a"}) == {
        "words": ((0, 1, 2, 3, 4, 5),),
        "text": "a",
    }
    assert compact_page_json_in_place({"text": "words"}) == {"text": "words"}
    assert compact_page_json_in_place({"words": [[0, 1]]}) == {"words": [[0, 1]]}


@pytest.mark.parametrize(
    ("doubtful", "second_readings", "is_valid"),
    [
        ((), (), True),
        ((0, 2), ("5.2", ""), True),
        ((0,), (), False),
        ((), ("5.2",), False),
        ((2, 0), ("a", "b"), False),
        ((1, 1), ("a", "b"), False),
        ((3,), ("a",), False),
        ((-1,), ("a",), False),
    ],
)
def test_doubtful_words_are_ascending_and_on_the_page(
    doubtful: tuple[int, ...], second_readings: tuple[str, ...], is_valid: bool
) -> None:
    fields = page(1, "Size 5.2 cm").model_dump() | {"doubtful": doubtful, "second_readings": second_readings}
    if is_valid:
        checked = Page.model_validate(fields)
        assert ("doubtful" in checked.model_dump()) == bool(doubtful)
        assert Page.model_validate_json(checked.model_dump_json()) == checked
    else:
        with pytest.raises(ValidationError):
            Page.model_validate(fields)
