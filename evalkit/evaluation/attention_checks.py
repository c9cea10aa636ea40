"""Attention checks: show planted faults to experts and count those noticed.

Only planted faults measure this: if an expert validates an ordinary wrong answer, nobody learns that it was wrong.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import pandas as pd

from evalkit.core.clocks import format_iso_seconds, utc_now
from evalkit.errors import UsageError
from evalkit.evaluation.attention_outcomes import (
    AttentionCheckOutcome,
    AttentionCheckStatus,
    read_attention_check_outcomes,
)
from evalkit.evaluation.intervals import estimate_proportion
from evalkit.evaluation.study import read_folder_study
from evalkit.review import ReviewerRoster, hold_case_write_lock, iterate_check_case_and_doc_ids, open_index
from evalkit.review.attention_checks import AttentionCheck
from evalkit.review.attention_checks.planting import plant_and_save_attention_check
from evalkit.review.opinions import queue_or_withdraw_attention_checks
from evalkit.store import OutputFolder, require_evalkit_output_folder

ALL_REVIEWERS, ALL_FAULTS = "(together)", "all"

_DETECTION_COLUMNS = (
    *("reviewer", "simulated", "fault", "seen", "noticed", "validated", "otherwise", "share", "median_seconds"),
    "documents",
)


def tabulate_reviewer_fault_detection(checks: Iterable[AttentionCheckOutcome]) -> pd.DataFrame:
    """Tabulate how often each reviewer noticed each kind of planted fault.

    There are totals over all kinds of fault and over all reviewers.

    Columns: ``reviewer`` (a name, or ``(together)`` for a total over all people or all programs, never over both),
    ``simulated``, ``fault`` (the kind of fault, or ``all``), ``seen`` (number of attention checks answered),
    ``noticed`` (number in which the planted part was corrected), ``validated`` (number in which the wrong answer was
    validated as shown), ``otherwise`` (the reviewer could not tell, asked a colleague or corrected something else),
    ``share`` (noticed / seen, an ``Estimate`` with its exact interval), ``median_seconds`` (active time; None if it was
    not measured) and ``documents`` (their doc_ids, for ``view``).
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


def _summarise_checks(checks: Sequence[AttentionCheckOutcome]) -> dict[str, Any]:
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


def tabulate_attention_checks(checks: Iterable[AttentionCheckOutcome]) -> pd.DataFrame:
    """Tabulate the attention checks, one row each.

    Columns: ``doc_id``, ``fault`` (a sentence), ``standing`` (the check's status in words), ``reviewer``, ``outcome``,
    ``noticed`` (None until answered), ``seconds`` (active), ``simulated``, ``case_id``.
    """
    status_labels: dict[AttentionCheckStatus, str] = {
        "answered": "answered",
        "waiting": "waiting",
        "nobody": "waiting, but every reviewer in the roster already knows the document",
        "void": "left out: a later review changed the truth about the planted part",
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


@dataclass(frozen=True)
class PlantedAttentionChecks:
    """Result of one ``evalkit sample N --seeded``."""

    cases: tuple[AttentionCheck, ...]
    """The attention checks that were added to the review queue."""
    unassignable_case_ids: tuple[str, ...]
    """The case_ids of waiting attention checks, new or earlier, whose document every reviewer in the roster already
    knows."""


def plant_and_queue_attention_checks(
    output_folder: OutputFolder, max_case_count: int, *, seed: str, drawn_at: str
) -> PlantedAttentionChecks:
    """Queue up to ``max_case_count`` review cases with a deliberately wrong answer.

    Each case shows a different document whose type and segments a person has vouched for. Documents vouched for by a
    simulated reviewer are used only if no person has vouched for any document (a demo). The same ``seed`` and
    ``drawn_at`` plant the same faults. UsageError if no fault can be planted or a run is writing; StoreError.
    """
    if max_case_count < 1:
        raise UsageError(
            f"cannot draw {max_case_count} cases", code="SAMPLE-NUMBER", remedy="Give a number of cases of at least 1."
        )
    require_evalkit_output_folder(output_folder)
    with output_folder.hold_run_lock():
        vouched_documents = [
            record
            for record in read_folder_study(output_folder).documents
            if record.truth and record.truth.vouched >= {"dominant_type", "segments"}
        ]
        candidates = [
            record for record in vouched_documents if record.truth and not record.truth.is_simulated
        ] or vouched_documents
        candidates.sort(key=lambda document: hashlib.sha256(f"{seed}:{drawn_at}:{document.sha256}".encode()).digest())
        checked_doc_ids = {doc_id for _, doc_id in iterate_check_case_and_doc_ids(output_folder)}
        deciding_reviewers = ReviewerRoster(output_folder).list_deciding_reviewers()
        with open_index(output_folder) as index:
            new_checks: list[AttentionCheck] = []
            known_to_everybody = 0
            for record in candidates:
                if len(new_checks) == max_case_count:
                    break
                if record.doc_id in checked_doc_ids:
                    continue
                if deciding_reviewers and {review.reviewer for review in record.reviews}.issuperset(deciding_reviewers):
                    known_to_everybody += 1
                    continue
                with hold_case_write_lock(
                    output_folder
                ):  # a review must not change the truth while the fault is planted
                    new_check = plant_and_save_attention_check(
                        output_folder, record.doc_id, seed=seed, drawn_at=drawn_at
                    )
                    if new_check is not None:
                        new_checks.append(new_check)
            with hold_case_write_lock(output_folder):
                queue_or_withdraw_attention_checks(output_folder, index, format_iso_seconds(utc_now()))
        if not new_checks:
            raise _create_nothing_left_error(len(candidates), known_to_everybody)
        waiting_cases = read_attention_check_outcomes(output_folder, [])
        return PlantedAttentionChecks(
            tuple(new_checks), tuple(record.case_id for record in waiting_cases if record.status == "nobody")
        )


def _create_nothing_left_error(candidate_count: int, known_to_everybody_count: int) -> UsageError:
    if known_to_everybody_count:
        return UsageError(
            f"every reviewer in the roster already knows all {known_to_everybody_count} documents in which a fault could be planted",
            code="SAMPLE-NOBODY",
            remedy="Add a reviewer with `evalkit reviewers add NAME`, or draw again after more cases have been decided.",
        )
    return UsageError(
        f"no fault can be planted: a reviewer has confirmed the type and segments of {candidate_count} documents, but each "
        "already has an attention check or allows no suitable fault",
        code="SAMPLE-NOTHING-LEFT",
        remedy="Review more escalated cases first.",
    )
