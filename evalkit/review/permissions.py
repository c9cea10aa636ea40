"""Permissions: experts answer cases, adjudicators also decide between two answers, analysts only look.

Anyone who gave one of the two answers cannot decide between them, whatever their role. Without an adjudicator who
could, any other expert may decide, so that no case waits for ever.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import Literal

from evalkit.errors import ReviewRefused
from evalkit.review.packet import ADJUDICATION_SUFFIX

ReviewerRole = Literal["expert", "adjudicator", "analyst"]

READ_ONLY_SENTENCE = "You are an analyst here: you can look at cases, and decide none."


@dataclass(frozen=True)
class Permissions:
    """One reviewer's role, and who else could decide between two answers."""

    role: ReviewerRole = "expert"
    adjudicators: tuple[str, ...] = ()
    """The names of all adjudicators, sorted."""

    @property
    def is_read_only(self) -> bool:
        """True if they may decide nothing at all."""
        return self.role == "analyst"

    @property
    def responsible_adjudicators(self) -> tuple[str, ...]:
        """The adjudicators to whom they leave adjudications.

        Empty: nobody is named, or they are one of them.
        """
        return () if self.role == "adjudicator" else self.adjudicators

    def is_reserved_for_adjudicator(self, case_id: str, excluded_reviewers: Container[str]) -> bool:
        """Decide whether the case is left to an adjudicator, which this reviewer is not.

        ``excluded_reviewers`` are the reviewers who must not answer it, because they have.
        """
        return case_id.endswith(ADJUDICATION_SUFFIX) and any(
            name not in excluded_reviewers for name in self.responsible_adjudicators
        )

    def require_deciding_role(self, refused_case_id: str) -> None:
        """ReviewRefused if this reviewer's role lets them decide no case."""
        if self.is_read_only:
            raise ReviewRefused(
                f"case {refused_case_id!r} is not an analyst's to decide",
                code="REVIEW-ROLE",
                remedy="Leave it to an expert.",
            )

    def require_case_permission(self, case_id: str, excluded_reviewers: Container[str]) -> None:
        """ReviewRefused if this reviewer's role does not let them decide the case."""
        self.require_deciding_role(case_id)
        if self.is_reserved_for_adjudicator(case_id, excluded_reviewers):
            raise ReviewRefused(
                f"in case {case_id!r} an adjudicator decides between two answers",
                code="REVIEW-ROLE",
                remedy="Leave it to one, and take the next case.",
            )
