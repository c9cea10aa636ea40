"""The two answers to the question that an issue asks, and what follows from them.

The answers are in ``issue_answers.toml``. Source: contract, ruling 26.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from evalkit.issue import Issue
from evalkit.review.plain_sentences import collect_known_values, fill_in, load_rows_by_code

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
    """Get the two answers to the question that an issue asks.

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
