"""Words that change the meaning of a quote (``difference.toml``)."""

from enum import StrEnum
from functools import cache, partial

from evalkit.core.package_tables import PatternTable, load_package_table
from evalkit.grounding.tokens import fold_word


class DifferenceKind(StrEnum):
    """Kind of a difference between a quote and the document, in words for a clinician."""

    NUMBER = "number"
    DECIMAL = "decimal point"
    DATE = "date"
    UNIT = "unit"
    COMPARATOR = "comparator"
    NEGATION = "negation"
    MODAL = "degree of certainty"
    LATERALITY = "side or site"
    POLARITY = "finding"
    PATHOGENICITY = "pathogenicity"
    GENE = "gene or variant"
    NAME = "name or code"
    WORD = "word"
    DIVISION = "division into words"
    TIME = "another time"
    PERSON = "another person"
    CONDITION = "condition"
    QUESTION = "question"


_KIND_BY_NAME = {
    "negation": DifferenceKind.NEGATION,
    "polarity": DifferenceKind.POLARITY,
    "modal": DifferenceKind.MODAL,
    "laterality": DifferenceKind.LATERALITY,
    "pathogenicity": DifferenceKind.PATHOGENICITY,
    "gene or variant": DifferenceKind.GENE,
    "unit": DifferenceKind.UNIT,
    "comparator": DifferenceKind.COMPARATOR,
    "date": DifferenceKind.DATE,
    "number": DifferenceKind.NUMBER,
}


#: Patterns of ``patterns.toml`` by name.
PATTERNS = PatternTable("evalkit.grounding", "patterns.toml")
#: Load the tables of ``difference.toml``; cached.
_load_difference_tables = partial(load_package_table, "evalkit.grounding", "difference.toml")


@cache
def load_kind_by_word() -> dict[str, DifferenceKind]:
    """Return the kind of each critical word, by the word in folded form."""
    kind_by_word: dict[str, DifferenceKind] = {}
    for row in _load_difference_tables()["kind"]:
        for word in row["words"]:
            kind_by_word.setdefault(fold_word(word), _KIND_BY_NAME[row["name"]])
    return kind_by_word


@cache
def load_terms(table_name: str, list_name: str = "words") -> frozenset[str]:
    """Return a list from ``difference.toml``: words, or phrases of up to three words.

    ``table_name`` is a table of that file, ``list_name`` the name of the list in it.
    """
    return frozenset(_load_difference_tables()[table_name][list_name])


def get_terms_version() -> str:
    """Return the version of ``difference.toml``, which is part of every fingerprint."""
    return str(_load_difference_tables()["version"])
