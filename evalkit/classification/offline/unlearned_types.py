"""Documents that may have a site's own type, which the built-in model never saw.

Its probabilities are those of the five types alone, so the text of a sixth would get the most similar of them, often
with certainty. So while a site has own types, the model names a type only for documents whose title it knows, and not if
title or words are those of a site's type (contract ruling 20).
"""

import re
from collections.abc import Iterable, Sequence
from functools import cache

from evalkit.classification.offline.lexicon import LexiconReading, load_lexicon
from evalkit.document_types import FIVE_TYPES, DocumentTypeRecord, get_own_types, load_type_records

#: Words of this many letters at least tell types apart; longer ones are compared by their beginning.
_MIN_LETTERS, _STEM_LETTERS = 4, 6
#: The words of a type's description that a text has if it may be of the type: this share, and this many.
_MIN_SHARE, _MIN_WORDS = 0.3, 3
#: A longer line at the top of a page is no title; a title of the five is among the first lines.
_MAX_TITLE_LENGTH, _MAX_TITLE_WORDS, _TITLE_LINES = 110, 8, 5

_WORD = re.compile(rf"[^\W\d_]{{{_MIN_LETTERS},}}")


def find_unlearned_type(readings: Sequence[LexiconReading]) -> str | None:
    """Return why a document may have a type that was not learned; None if it cannot.

    The reason completes a sentence: "its title is that of Operative Note".
    """
    own_types = get_own_types()
    if not own_types:
        return None
    titles = [line for reading in readings for line in reading.top_lines if len(line) <= _MAX_TITLE_LENGTH]
    title_words = [set(_list_words(title)) for title in titles]
    text_stems = {_cut_stem(word) for reading in readings for word in _list_words(reading.page.text)}
    for name, record in own_types.items():
        name_words = _find_name_words(name)
        if any(_has_all(words, name_words) for words in title_words):
            return f"its title is like that of {name}"
        if any(" ".join(title.casefold().split()) in coding.names for coding in record.titles for title in titles):
            return f"its title is one of {name}"
        stems = _find_own_stems(name, record)
        if len(stems & text_stems) >= max(_MIN_WORDS, _MIN_SHARE * len(stems)):
            return f"it has the words of {name}"
    if not _has_known_title(readings[0]):
        return f"it has no title that tells it from {', '.join(own_types)}"
    return None


def _has_known_title(reading: LexiconReading) -> bool:
    """Return True if one of the first lines is a title of one of the five types.

    The title may be in capitals or not.
    """
    lines = [re.findall(r"[^\W_]+", line.casefold()) for line in reading.top_lines[:_TITLE_LINES]]
    titles = [f" {' '.join(words)} " for words in lines if len(words) <= _MAX_TITLE_WORDS]
    return any(f" {phrase} " in title for title in titles for phrase in _find_title_phrases())


@cache
def _find_title_phrases() -> frozenset[str]:
    return frozenset(phrase for group in load_lexicon().groups if group.zone == "title" for phrase in group.phrases)


def _list_words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _cut_stem(word: str) -> str:
    return word[:_STEM_LETTERS]


def _has_all(words: Iterable[str], name_words: frozenset[str]) -> bool:
    """Return True if each name word begins like a word: "echo" like "echocardiogram"."""
    return all(
        any(_cut_stem(word).startswith(_cut_stem(name_word)) or name_word.startswith(word) for word in words)
        for name_word in name_words
    )


@cache
def _find_common_stems(*, in_names: bool) -> frozenset[str]:
    """Return the stems of the words in the names of the five types.

    Without ``in_names``, also of the words that describe the types.
    """
    records = load_type_records()
    texts = [text for kind in FIVE_TYPES for text in (kind.value, records[kind].definition, *records[kind].includes)]
    return frozenset(_cut_stem(word) for text in (FIVE_TYPES if in_names else texts) for word in _list_words(text))


@cache
def _find_name_words(name: str) -> frozenset[str]:
    """Return the words of a type's name that none of the five names has.

    All words if the five names have them all.
    """
    words = frozenset(re.findall(r"[^\W_]+", name.casefold()))
    return frozenset(word for word in words if _cut_stem(word) not in _find_common_stems(in_names=True)) or words


def _find_own_stems(name: str, record: DocumentTypeRecord) -> frozenset[str]:
    """Return the beginnings of the words that describe this type and none of the five."""
    texts = (name, record.definition, *record.includes, *(title for coding in record.titles for title in coding.names))
    return frozenset(_cut_stem(word) for text in texts for word in _list_words(text)) - _find_common_stems(
        in_names=False
    )
