"""Outcomes of attention checks: answered, still waiting, or void.

A check is void once a later review changes the truth about the planted part. Changes to other parts of the document do
not matter.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from evalkit.errors import StoreError
from evalkit.review import CaseOpinions, ReviewerRoster, is_simulated_reviewer
from evalkit.review.attention_checks.records import (
    describe_fault,
    is_fault_corrected,
    is_hidden_truth_current,
    iterate_check_case_and_doc_ids,
    read_attention_check,
)
from evalkit.store import OutputFolder, packet_file_name

#: ``waiting``: not answered yet; ``nobody``: not answered, and every reviewer in the roster already knows the document;
#: ``void``: a later review changed the truth about the planted part.
AttentionCheckStatus = Literal["answered", "waiting", "nobody", "void"]


@dataclass(frozen=True, slots=True)
class AttentionCheckOutcome:
    """Status and outcome of one attention check."""

    case_id: str
    doc_id: str
    """The document whose pages the check shows."""
    fault_kind: str
    """``type``, ``boundary`` or ``joined``."""
    fault_description: str
    """A sentence that describes the planted fault."""
    status: AttentionCheckStatus
    reviewer: str | None = None
    is_simulated: bool = False
    """True if a simulated reviewer (a program) answered."""
    outcome: str | None = None
    is_fault_noticed: bool = False
    """True if the reviewer's answer corrects the planted fault."""
    is_colleague_asked: bool = False
    """True if the reviewer asked for a colleague's second opinion."""
    active_seconds: float | None = None
    """Seconds that the reviewer was active on the case; None if not measured."""

    @property
    def is_wrongly_validated(self) -> bool:
        """True if the faulty answer was validated and no colleague was asked."""
        return self.outcome == "validated" and not self.is_colleague_asked


def read_attention_check_outcomes(
    output_folder: OutputFolder, collected_problems: list[str]
) -> Iterator[AttentionCheckOutcome]:
    """Yield the outcome of each attention check of an output folder.

    For each check that cannot be read, a sentence is added to ``collected_problems``.
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
