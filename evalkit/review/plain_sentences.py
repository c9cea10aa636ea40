"""Plain sentences about issues for the clinician's screen, and their answers.

The sentences are in ``plain_sentences.toml``; the two answers to the question that an issue asks, and what follows from
them, in ``issue_answers.toml``. Source of the answers: contract, ruling 26.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from evalkit.core.grouping import group_by
from evalkit.core.package_tables import load_package_table
from evalkit.issue import Issue

MAX_SENTENCE_LENGTH = 160
#: Maximum lengths of a value filled into a sentence: the first one at which the sentence is short enough.
_MAX_WORDS_LENGTHS = (110, 64, 32, 16)


@cache
def load_rows_by_code(file_name: str, table_name: str) -> dict[str, list[dict[str, Any]]]:
    """Load a table of this package: issue code → its rows in order; cached."""
    return group_by(load_package_table("evalkit.review", file_name)[table_name], lambda row: str(row["code"]))


def load_plain_sentences() -> dict[str, list[dict[str, Any]]]:
    """Load the table: issue code → rows with ``text`` and optional ``when``."""
    return load_rows_by_code("plain_sentences.toml", "sentence")


def collect_known_values(issue: Issue) -> dict[str, Any]:
    """Collect the values of an issue that a sentence can contain."""
    fields = issue.model_dump(mode="json", include={"page", "found_page", "document_type", "quote", "severity"})
    return {name: value for name, value in (fields | dict(issue.facts)).items() if value is not None}


def describe_issue(issue: Issue) -> str:
    """Describe an issue to a clinician: what is in doubt, and a question.

    Returns the issue's message if the code has no sentence, as for a site's verifier, or if a fact is missing.
    """
    fallback_code = (
        "GRADER-MODEL" if issue.agent == "grader" else ""
    )  # a model may raise codes that the table does not have
    rows = [row for code in (issue.code, fallback_code) for row in load_plain_sentences().get(code, ())]
    known = collect_known_values(issue)
    for row in rows:
        if row.get("when", {}).items() <= known.items():
            # Page ranges in an answer about some pages count from the first of these.
            note = (
                " (Pages counted from page {counted_from}.)"
                if "counted_from" in known and "{window}" not in row["text"]
                else ""
            )
            with suppress(KeyError):
                return fill_in(row["text"] + note, known)
    return issue.message


def fill_in(text: str, known: Mapping[str, Any]) -> str:
    """Insert values into a text, shortened so that the text fits on the screen.

    KeyError if a value is missing.
    """
    filled = ""
    for max_length in _MAX_WORDS_LENGTHS:
        filled = text.format_map(_ShortenedValues(known, max_length))
        filled = filled[:1].upper() + filled[1:]
        if len(filled) <= MAX_SENTENCE_LENGTH:
            break
    return filled


def shows_own_words(issue: Issue) -> bool:
    """Return True if the issue's own message says more than its plain sentence.

    So it is with a model's finding, and with an issue of a site's own verifier.
    """
    is_unexplained = issue.code == "EXTRACTION-VALUE" and not {"reading", "item"} & issue.facts.keys()
    return issue.origin == "model" or is_unexplained or describe_issue(issue) == issue.message


class _ShortenedValues(dict[str, Any]):
    """Values of which only those that a text names are shortened."""

    def __init__(self, known: Mapping[str, Any], max_length: int) -> None:
        super().__init__()
        self._known, self._max_length = known, max_length

    def __missing__(self, name: str) -> str:
        return _shorten(self._known[name], 10_000 if name == "finding" else self._max_length)


def _shorten(value: object, max_length: int) -> str:
    # Invisible characters of a document could reorder the words of the sentence around them.
    words = "".join(letter if letter.isprintable() else " " for letter in " ".join(str(value).split()))
    return words if len(words) <= max_length else words[: max_length - 1].rstrip() + "…"


AnswerEffect = Literal[
    "strike_quote",
    "begin_document",
    "join_document",
    "decide_boundary",
    "choose_type",
    "remove_type",
    "other_patient",
    "none",
]


@dataclass(frozen=True)
class IssueAnswers:
    """The two answers to an issue's question, as labels of buttons."""

    change: str
    """Answer that changes what the program had; stored as the verdict ``confirmed``."""
    keep: str
    """The other answer, stored as the verdict ``dismissed``."""
    effect: AnswerEffect
    """What follows from ``change``."""


def get_issue_answers(issue: Issue) -> IssueAnswers:
    """Get the two possible answers to an issue's question.

    An issue with an unknown code has the answers "There is a problem" and "No problem". An answer about a quote needs a quote: an issue without one has the default answers.
    """
    return next(_iterate_matching_answers(issue))


def _iterate_matching_answers(issue: Issue) -> Iterator[IssueAnswers]:
    known, rows_by_code = collect_known_values(issue), load_rows_by_code("issue_answers.toml", "answers")
    for row in (*rows_by_code.get(issue.code, ()), *rows_by_code[""]):
        if row.get("when", {}).items() <= known.items() and ("quote" in known or row.get("effect") != "strike_quote"):
            with suppress(KeyError):  # a value is missing
                yield IssueAnswers(
                    fill_in(row["change"], known), fill_in(row["keep"], known), row.get("effect", "none")
                )
