"""How often experts notice a fault that was planted in the answer on their screen.

Seeded cases alone say this: of a wrong answer that was validated by itself, nobody knows. A case counts only while what is
known of the planted part is still true; a revision of something else in the document takes nothing away.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal

import pandas as pd

from evalkit.errors import StoreError
from evalkit.evaluation.intervals import estimate_proportion
from evalkit.review.ground_truth import is_simulated
from evalkit.review.opinions import CaseOpinions
from evalkit.review.roster import Roster
from evalkit.review.seeded_cases import (
    describe_fault,
    is_fault_corrected,
    is_seeded_truth_current,
    iterate_seeded_cases,
    read_seeded_case,
)
from evalkit.store import OutputFolder, packet_file_name

AttentionCheckStatus = Literal["answered", "waiting", "nobody", "void"]
"""``nobody``: it waits, and everybody in the roster knows the document; ``void``: of the planted part something else is true now."""

ALL_REVIEWERS, ALL_FAULTS = "(together)", "all"

_DETECTION_COLUMNS = (
    *("reviewer", "simulated", "fault", "seen", "noticed", "validated", "otherwise", "share", "median_seconds"),
    "documents",
)


@dataclass(frozen=True, slots=True)
class AttentionCheck:
    """One seeded case, and what became of it."""

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
        """Whether the wrong answer was validated, and nobody asked."""
        return self.outcome == "validated" and not self.is_colleague_asked


def read_attention_checks(output_folder: OutputFolder, problems: list[str]) -> Iterator[AttentionCheck]:
    """The seeded cases of an output folder, in order; a sentence in ``problems`` for each that cannot be read."""
    roster = Roster(output_folder).list_deciding_reviewers()
    for case_id, _ in iterate_seeded_cases(output_folder):
        try:
            yield _read_attention_check(output_folder, case_id, roster)
        except StoreError as error:
            problems.append(str(error))


def _read_attention_check(output_folder: OutputFolder, case_id: str, roster: Sequence[str]) -> AttentionCheck:
    seeded_case = read_seeded_case(output_folder, case_id)
    identity_fields = (case_id, seeded_case.doc_id, seeded_case.fault.kind, describe_fault(seeded_case.fault))
    if not output_folder.has_file(packet_file_name(case_id)) or not is_seeded_truth_current(output_folder, seeded_case):
        return AttentionCheck(*identity_fields, "void")
    opinions = CaseOpinions.read(output_folder, case_id)
    reviews = opinions.reviews_by_case[case_id]
    if not reviews:
        is_everyone_excluded = bool(roster) and set(roster) <= set(opinions.list_excluded_reviewers(case_id))
        return AttentionCheck(*identity_fields, "nobody" if is_everyone_excluded else "waiting")
    review = reviews[0][1]
    return AttentionCheck(
        *identity_fields,
        "answered",
        review.reviewer,
        is_simulated(review.reviewer),
        review.outcome,
        is_fault_corrected(seeded_case.fault, review),
        bool(review.second_opinion),
        review.seconds_active,
    )


def tabulate_fault_detection(checks: Iterable[AttentionCheck]) -> pd.DataFrame:
    """One row per reviewer and kind of fault, with one of all kinds, and such rows of all reviewers together.

    Columns: ``reviewer`` (or ``(together)``: people and programs never in one row), ``simulated``, ``fault`` (its kind or
    ``all``), ``seen`` (seeded cases answered), ``noticed`` (the planted part was corrected), ``validated`` (the wrong
    answer as it was shown), ``otherwise`` (could not tell, asked a colleague, corrected something else), ``share``
    (noticed of seen, an ``Estimate`` with its exact interval), ``median_seconds`` (active; None where nobody measured)
    and ``documents`` (doc_ids, to ``view``).
    """
    answered_checks = [check for check in checks if check.status == "answered"]
    rows = []
    for is_program in (False, True):
        group_checks = [check for check in answered_checks if check.is_simulated == is_program]
        reviewer_names = sorted({str(check.reviewer) for check in group_checks})
        checks_by_reviewer = [
            (reviewer_name, [check for check in group_checks if check.reviewer == reviewer_name])
            for reviewer_name in reviewer_names
        ]
        for reviewer, reviewer_checks in (*checks_by_reviewer, (ALL_REVIEWERS, group_checks)):
            checks_by_kind = [
                (kind, [check for check in reviewer_checks if check.fault_kind == kind])
                for kind in sorted({check.fault_kind for check in reviewer_checks})
            ]
            for kind, kind_checks in (*checks_by_kind, (ALL_FAULTS, reviewer_checks)):
                if kind_checks:
                    rows.append(
                        {
                            "reviewer": reviewer,
                            "simulated": is_program,
                            "fault": kind,
                            **_summarise_checks(kind_checks),
                        }
                    )
    return pd.DataFrame(rows, columns=list(_DETECTION_COLUMNS))


def _summarise_checks(checks: Sequence[AttentionCheck]) -> dict[str, Any]:
    noticed_count = sum(check.is_fault_noticed for check in checks)
    wrongly_validated_count = sum(check.is_wrongly_validated for check in checks)
    active_seconds = [check.active_seconds for check in checks if check.active_seconds is not None]
    return {
        "seen": len(checks),
        "noticed": noticed_count,
        "validated": wrongly_validated_count,
        "otherwise": len(checks) - noticed_count - wrongly_validated_count,
        "share": estimate_proportion(noticed_count, len(checks)),
        "median_seconds": median(active_seconds) if active_seconds else None,
        "documents": tuple(check.doc_id for check in checks),
    }


def tabulate_attention_checks(checks: Iterable[AttentionCheck]) -> pd.DataFrame:
    """One row per seeded case: ``doc_id``, ``fault_description``, ``status``, ``reviewer``, ``outcome``, ``noticed``, ``active_seconds``,
    ``simulated``, ``case_id``.
    """
    status_labels: dict[AttentionCheckStatus, str] = {
        "answered": "answered",
        "waiting": "waits",
        "nobody": "waits, and nobody may take it: everybody in the roster knows the document",
        "void": "left out: of the planted part something else is true now",
    }
    return pd.DataFrame(
        [
            (
                check.doc_id,
                check.fault_description,
                status_labels[check.status],
                check.reviewer,
                check.outcome,
                check.is_fault_noticed if check.status == "answered" else None,
                check.active_seconds,
                check.is_simulated,
                check.case_id,
            )
            for check in checks
        ],
        columns=[
            *("doc_id", "fault", "standing", "reviewer", "outcome", "noticed", "seconds", "simulated", "case_id"),
        ],
    )
