"""Terms that may be learned: shared by several groups, letters only, no names."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from evalkit.classification.training.labelled_texts import DOCUMENT_TYPES
from evalkit.classification.training.training_set import TrainingSet
from evalkit.documents.identity.identifier_values import load_given_names

MIN_TERM_GROUPS = 4
"""So many groups must share a term."""
MIN_TYPE_GROUPS = 3
"""So many groups of a type must have a term that speaks for it: one source's habits are no evidence."""
#: A word with a capital letter this often inside of sentences is a name.
_MIN_NAME_CAPITAL_SHARE = 0.5
_WORD_IN_SENTENCE_PATTERN = re.compile(r"(?<=[\w,;] )([A-Za-z][a-z]+)\b")
_EXCLUDED_TERMS = frozenset(
    [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
        "jan",
        "feb",
        "mar",
        "apr",
        "jun",
        "jul",
        "aug",
        "sep",
        "sept",
        "oct",
        "nov",
        "dec",
        "mon",
        "tue",
        "wed",
        "thu",
        "fri",
        "sat",
        "sun",
        "mister",
        "miss",
        "mrs",
        "name",
        "usa",
        "utc",
        "doctor",
        "www",
        "com",
        "http",
        "https",
    ]
)
#: A term of these words alone shows a style, not a type.
_STOP_WORDS = frozenset(
    [
        "a",
        "about",
        "after",
        "all",
        "also",
        "an",
        "and",
        "any",
        "are",
        "as",
        "at",
        "be",
        "been",
        "being",
        "below",
        "but",
        "by",
        "can",
        "could",
        "do",
        "does",
        "done",
        "each",
        "for",
        "from",
        "has",
        "have",
        "if",
        "in",
        "into",
        "is",
        "it",
        "its",
        "may",
        "more",
        "most",
        "no",
        "not",
        "of",
        "off",
        "on",
        "or",
        "other",
        "out",
        "over",
        "per",
        "so",
        "some",
        "such",
        "than",
        "that",
        "the",
        "their",
        "then",
        "there",
        "these",
        "this",
        "those",
        "through",
        "to",
        "under",
        "up",
        "upon",
        "us",
        "what",
        "when",
        "where",
        "which",
        "while",
        "who",
        "with",
        "within",
        "without",
    ]
)


def find_proper_names(texts: Iterable[str]) -> set[str]:
    """Words that mostly have a capital letter in the middle of a sentence."""
    capital_counts: Counter[str] = Counter()
    lowercase_counts: Counter[str] = Counter()
    for text in texts:
        for match in _WORD_IN_SENTENCE_PATTERN.finditer(text):
            (capital_counts if match[1][0].isupper() else lowercase_counts)[match[1].lower()] += 1
    return {
        word
        for word, count in capital_counts.items()
        if count >= _MIN_NAME_CAPITAL_SHARE * (count + lowercase_counts[word])
    }


def select_vocabulary(
    training_set: TrainingSet, rows: npt.NDArray[np.intp], min_groups: int = MIN_TERM_GROUPS
) -> list[str]:
    """Select the terms that enough groups share and that are no names, sorted."""
    groups_by_term: dict[str, set[str]] = defaultdict(set)
    whole_text_rows = [row for row in rows if training_set.variants[row].name == "whole"]
    for row in whole_text_rows:
        for term in training_set.term_sets[row]:
            groups_by_term[term].add(training_set.variants[row].original.group)
    excluded_words = (
        find_proper_names(training_set.variants[row].text for row in whole_text_rows)
        | load_given_names()
        | _EXCLUDED_TERMS
    )
    return sorted(
        term
        for term, term_groups in groups_by_term.items()
        if len(term_groups) >= min_groups
        and excluded_words.isdisjoint(words := term.split(" "))
        and not _STOP_WORDS.issuperset(words)
        and not any(map(_is_placeholder, words))
    )


def _is_placeholder(word: str) -> bool:
    """Tell if letters are in alphabetical order: ``abc``, ``xyz``."""
    return len(word) > 2 and all(ord(after) - ord(before) == 1 for before, after in pairwise(word))


def mark_unsupported_terms_by_type(
    training_set: TrainingSet, rows: npt.NDArray[np.intp], vocabulary: Sequence[str]
) -> npt.NDArray[np.bool_]:
    """Mark terms that too few groups of a type have to speak for it.

    One row a term, one column a type.
    """
    index_by_term = {term: term_index for term_index, term in enumerate(vocabulary)}
    groups_by_cell: dict[tuple[int, int], set[str]] = defaultdict(set)
    for row in rows:
        if training_set.variants[row].name == "whole":
            for term in training_set.term_sets[row] & index_by_term.keys():
                groups_by_cell[index_by_term[term], int(training_set.true_types[row])].add(
                    training_set.variants[row].original.group
                )
    is_unsupported = np.ones((len(vocabulary), len(DOCUMENT_TYPES)), dtype=bool)
    for (term_index, type_index), groups in groups_by_cell.items():
        is_unsupported[term_index, type_index] = len(groups) < MIN_TYPE_GROUPS
    return is_unsupported
