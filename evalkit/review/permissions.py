"""Permissions by role: expert, adjudicator, analyst (who only reads).

Nobody may decide between two answers of which one is their own, whatever their role. If no adjudicator is left who may
decide, any other expert may, so that no case waits forever.
"""

from collections.abc import Container
from dataclasses import dataclass
from typing import Literal, cast, get_args

from evalkit.errors import ReviewRefused, UsageError
from evalkit.review.packet import ADJUDICATION_SUFFIX, ReviewTask

ReviewerRole = Literal["expert", "adjudicator", "analyst"]


def parse_tasks(text: str) -> tuple[ReviewTask, ...]:
    """Parse names of tasks, separated by commas; UsageError if one is unknown."""
    names = [name.strip() for name in text.split(",")]
    if not set(names) <= set(get_args(ReviewTask)):
        raise UsageError(
            f"{text[:60]!r} is not a list of reviewers' tasks",
            code="REVIEWER-TASKS",
            remedy="Name one or more of clinical, tax, bank, separated by commas.",
        )
    return cast("tuple[ReviewTask, ...]", tuple(names))


READ_ONLY_SENTENCE = "Your role is analyst: you can read cases, but not decide them."


@dataclass(frozen=True)
class Permissions:
    """Permissions of one reviewer, by role and by the list of adjudicators."""

    role: ReviewerRole = "expert"
    adjudicators: tuple[str, ...] = ()
    """The names of all adjudicators of the output folder, sorted."""
    tasks: tuple[ReviewTask, ...] = ()
    """The tasks whose cases come to the reviewer unasked; empty for all."""

    @property
    def is_read_only(self) -> bool:
        """True if the reviewer may read cases but not decide any."""
        return self.role == "analyst"

    def is_reserved_for_adjudicator(self, case_id: str, excluded_reviewers: Container[str]) -> bool:
        """Return True if the case is an adjudication that only an adjudicator may decide.

        False for an adjudicator, and if all adjudicators are among ``excluded_reviewers``, who must not answer the case.
        """
        if self.role == "adjudicator" or not case_id.endswith(ADJUDICATION_SUFFIX):
            return False
        return any(name not in excluded_reviewers for name in self.adjudicators)

    def require_deciding_role(self, refused_case_id: str) -> None:
        """Raise ReviewRefused if the reviewer is an analyst."""
        if self.is_read_only:
            raise ReviewRefused(
                f"your role is analyst, so you cannot decide case {refused_case_id!r}",
                code="REVIEW-ROLE",
                remedy="Leave the case to an expert.",
            )

    def require_case_permission(self, case_id: str, excluded_reviewers: Container[str]) -> None:
        """Raise ReviewRefused if the reviewer's role does not permit deciding the case."""
        self.require_deciding_role(case_id)
        if self.is_reserved_for_adjudicator(case_id, excluded_reviewers):
            raise ReviewRefused(
                f"only an adjudicator may decide between the two answers in case {case_id!r}",
                code="REVIEW-ROLE",
                remedy="Leave the case to an adjudicator, and take the next case.",
            )
