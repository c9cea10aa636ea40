"""Outcomes of attention checks, counted while the planted part's truth holds.

A revision of something else in the document takes nothing away.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from evalkit.errors import StoreError
from evalkit.review.attention_checks.records import (
    describe_fault,
    is_fault_corrected,
    is_hidden_truth_current,
    iterate_check_case_and_doc_ids,
    read_attention_check,
)
from evalkit.review.ground_truth import is_simulated_reviewer
from evalkit.review.opinions import CaseOpinions
from evalkit.review.roster import ReviewerRoster
from evalkit.store import OutputFolder, packet_file_name

#: ``nobody``: it waits, and everybody in the roster knows the document; ``void``: of the planted part something else is
#: true now.
AttentionCheckStatus = Literal["answered", "waiting", "nobody", "void"]


@dataclass(frozen=True, slots=True)
class AttentionCheckOutcome:
    """One attention check, and what became of it."""

    case_id: str
    doc_id: str
    """The document whose pages it shows."""
    fault_kind: str
    """``type``, ``boundary`` or ``joined``."""
    fault_description: str
    """What was planted, in a sentence."""
    status: AttentionCheckStatus
    reviewer: str | None = None
    is_simulated: bool = False
    """Whether a program answered."""
    outcome: str | None = None
    is_fault_noticed: bool = False
    """Whether the answer corrects what was planted."""
    is_colleague_asked: bool = False
    """Whether a colleague was to be asked too."""
    active_seconds: float | None = None
    """Active seconds; None where nobody measured."""

    @property
    def is_wrongly_validated(self) -> bool:
        """True if the wrong answer was validated and no colleague was asked."""
        return self.outcome == "validated" and not self.is_colleague_asked


def read_attention_check_outcomes(
    output_folder: OutputFolder, collected_problems: list[str]
) -> Iterator[AttentionCheckOutcome]:
    """Read the attention checks of an output folder, in order.

    ``collected_problems`` gets a sentence for each that cannot be read.
    """
    roster = ReviewerRoster(output_folder).list_deciding_reviewers()
    for case_id, _ in iterate_check_case_and_doc_ids(output_folder):
        try:
            yield _read_attention_check_outcome(output_folder, case_id, roster)
        except StoreError as error:
            collected_problems.append(str(error))


def _read_attention_check_outcome(
    output_folder: OutputFolder, case_id: str, deciding_reviewers: Sequence[str]
) -> AttentionCheckOutcome:
    attention_check = read_attention_check(output_folder, case_id)
    identity_fields = (
        case_id,
        attention_check.doc_id,
        attention_check.fault.kind,
        describe_fault(attention_check.fault),
    )
    if not output_folder.has_file(packet_file_name(case_id)) or not is_hidden_truth_current(
        output_folder, attention_check
    ):
        return AttentionCheckOutcome(*identity_fields, "void")
    opinions = CaseOpinions.read(output_folder, case_id)
    reviews = opinions.numbered_reviews_by_case_id[case_id]
    if not reviews:
        is_everyone_excluded = bool(deciding_reviewers) and set(deciding_reviewers) <= set(
            opinions.list_excluded_reviewers(case_id)
        )
        return AttentionCheckOutcome(*identity_fields, "nobody" if is_everyone_excluded else "waiting")
    review = reviews[0][1]
    return AttentionCheckOutcome(
        *identity_fields,
        "answered",
        review.reviewer,
        is_simulated_reviewer(review.reviewer),
        review.outcome,
        is_fault_corrected(attention_check.fault, review),
        bool(review.second_opinion),
        review.seconds_active,
    )
