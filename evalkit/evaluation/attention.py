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
from evalkit.evaluation.intervals import exact
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

Standing = Literal["answered", "waiting", "nobody", "void"]
"""``nobody``: it waits, and everybody in the roster knows the document; ``void``: of the planted part something else is true now."""

TOGETHER, EVERY = "(together)", "all"

_COLUMNS = (
    *("reviewer", "simulated", "fault", "seen", "noticed", "validated", "otherwise", "share", "median_seconds"),
    "documents",
)


@dataclass(frozen=True, slots=True)
class SeededCase:
    """One seeded case, and what became of it."""

    case_id: str
    doc_id: str
    """The document whose pages it shows."""
    kind: str
    """``type``, ``boundary`` or ``joined``."""
    fault: str
    """What was planted, in a sentence."""
    standing: Standing
    reviewer: str | None = None
    is_simulated: bool = False
    """Whether a program answered."""
    outcome: str | None = None
    is_noticed: bool = False
    """Whether the answer corrects what was planted."""
    asked: bool = False
    """Whether a colleague was to be asked too."""
    seconds: float | None = None
    """Active seconds; None where nobody measured."""

    @property
    def is_passed(self) -> bool:
        """Whether the wrong answer was validated, and nobody asked."""
        return self.outcome == "validated" and not self.asked


def read(files: OutputFolder, problems: list[str]) -> Iterator[SeededCase]:
    """The seeded cases of an output folder, in order; a sentence in ``problems`` for each that cannot be read."""
    roster = Roster(files).list_deciding_reviewers()
    for case_id, _ in iterate_seeded_cases(files):
        try:
            yield _read(files, case_id, roster)
        except StoreError as error:
            problems.append(str(error))


def _read(files: OutputFolder, case_id: str, roster: Sequence[str]) -> SeededCase:
    seeded = read_seeded_case(files, case_id)
    about = (case_id, seeded.doc_id, seeded.fault.kind, describe_fault(seeded.fault))
    if not files.has_file(packet_file_name(case_id)) or not is_seeded_truth_current(files, seeded):
        return SeededCase(*about, "void")
    opinions = CaseOpinions.read(files, case_id)
    chain = opinions.reviews_by_case[case_id]
    if not chain:
        is_for_nobody = bool(roster) and set(roster) <= set(opinions.list_excluded_reviewers(case_id))
        return SeededCase(*about, "nobody" if is_for_nobody else "waiting")
    review = chain[0][1]
    return SeededCase(
        *about,
        "answered",
        review.reviewer,
        is_simulated(review.reviewer),
        review.outcome,
        is_fault_corrected(seeded.fault, review),
        bool(review.second_opinion),
        review.seconds_active,
    )


def attention(cases: Iterable[SeededCase]) -> pd.DataFrame:
    """One row per reviewer and kind of fault, with one of all kinds, and such rows of all reviewers together.

    Columns: ``reviewer`` (or ``(together)``: people and programs never in one row), ``simulated``, ``fault`` (its kind or
    ``all``), ``seen`` (seeded cases answered), ``noticed`` (the planted part was corrected), ``validated`` (the wrong
    answer as it was shown), ``otherwise`` (could not tell, asked a colleague, corrected something else), ``share``
    (noticed of seen, an ``Estimate`` with its exact interval), ``median_seconds`` (active; None where nobody measured)
    and ``documents`` (doc_ids, to ``view``).
    """
    answered = [one for one in cases if one.standing == "answered"]
    rows = []
    for simulated in (False, True):
        of_kind = [one for one in answered if one.is_simulated == simulated]
        people = sorted({str(one.reviewer) for one in of_kind})
        answers = [(name, [one for one in of_kind if one.reviewer == name]) for name in people]
        for reviewer, own in (*answers, (TOGETHER, of_kind)):
            kinds = [(kind, [one for one in own if one.kind == kind]) for kind in sorted({one.kind for one in own})]
            for kind, chosen in (*kinds, (EVERY, own)):
                if chosen:
                    rows.append({"reviewer": reviewer, "simulated": simulated, "fault": kind, **_counted(chosen)})
    return pd.DataFrame(rows, columns=list(_COLUMNS))


def _counted(cases: Sequence[SeededCase]) -> dict[str, Any]:
    noticed = sum(one.is_noticed for one in cases)
    passed = sum(one.is_passed for one in cases)
    seconds = [one.seconds for one in cases if one.seconds is not None]
    return {
        "seen": len(cases),
        "noticed": noticed,
        "validated": passed,
        "otherwise": len(cases) - noticed - passed,
        "share": exact(noticed, len(cases)),
        "median_seconds": median(seconds) if seconds else None,
        "documents": tuple(one.doc_id for one in cases),
    }


def listed(cases: Iterable[SeededCase]) -> pd.DataFrame:
    """One row per seeded case: ``doc_id``, ``fault``, ``standing``, ``reviewer``, ``outcome``, ``noticed``, ``seconds``,
    ``simulated``, ``case_id``.
    """
    words: dict[Standing, str] = {
        "answered": "answered",
        "waiting": "waits",
        "nobody": "waits, and nobody may take it: everybody in the roster knows the document",
        "void": "left out: of the planted part something else is true now",
    }
    return pd.DataFrame(
        [
            (
                one.doc_id,
                one.fault,
                words[one.standing],
                one.reviewer,
                one.outcome,
                one.is_noticed if one.standing == "answered" else None,
                one.seconds,
                one.is_simulated,
                one.case_id,
            )
            for one in cases
        ],
        columns=[
            *("doc_id", "fault", "standing", "reviewer", "outcome", "noticed", "seconds", "simulated", "case_id"),
        ],
    )
