"""Which words are real: the list says the same as the one it was made of."""

from spellchecker import SpellChecker

from evalkit.grounding.vocabulary import DocumentVocabulary, is_english_word

LISTED = SpellChecker().word_frequency.dictionary


def test_every_listed_word_is_found_and_no_part_of_one() -> None:
    assert all(is_english_word(word) for word in LISTED)
    parts = {cut for word in list(LISTED)[::7] for cut in (word[1:], word[:-1], word + "s", f"{word} ")}
    assert {part for part in parts if is_english_word(part)} == {part for part in parts if part in LISTED}


def test_what_stands_outside_the_list_is_no_word() -> None:
    assert not any(
        is_english_word(word) for word in ("", " ", "\0", "\ud800", "zzzzzz", "\N{OLD ITALIC LETTER A}", "the and")
    )


def test_a_word_that_the_document_uses_often_enough_is_real() -> None:
    is_word = DocumentVocabulary(["Tamoxifenol tamoxifenol", "once"])
    assert is_word("tamoxifenol", 2)
    assert not is_word("tamoxifenol", 3)
    assert is_word("patient", 3)
