"""Invented experts: what they answer about a file, and how long they take."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.first_contact.twelve_weeks.hospitals import load_hospital
from benchmarks.first_contact.twelve_weeks.replay import ReplayDocument

Segments = tuple[tuple[int, int, str], ...]
"""First page, last page and type of each document in a file."""

CONFUSED = {
    "Clinical Note": ("Other", "Radiology Report", "Pathology Report"),
    "Pathology Report": ("Genomic Report", "Clinical Note", "Other"),
    "Genomic Report": ("Pathology Report", "Other", "Clinical Note"),
    "Radiology Report": ("Clinical Note", "Other", "Pathology Report"),
    "Other": ("Clinical Note", "Genomic Report", "Radiology Report"),
}
"""What people mistake each type for, the most frequent first."""
_FREQUENCIES = (6, 3, 1)
SLIPPED_BOUNDARY = 0.4
"""Of the wrong answers about a file with two documents, as many are about where the second begins."""


@dataclass(frozen=True)
class ExpertAnswer:
    """What one reviewer said about one file."""

    document_id: str
    reviewer: str
    kind: str
    """``blind``: given before the program's answer was shown; ``correction``: given with it in sight."""
    segments: Segments
    seconds: float
    day: int


def list_true_segments(document: ReplayDocument) -> Segments:
    """List the true documents of a file."""
    return tuple((segment.start_page, segment.end_page, segment.type) for segment in document.segments)


def is_right(document: ReplayDocument, answer: ExpertAnswer) -> bool:
    """Tell whether an answer has the true pages and types."""
    return answer.segments == list_true_segments(document)


def answer(
    document: ReplayDocument, seed: int, error_rate: float, *, shown: Sequence[tuple[int, int, str]] | None = None
) -> ExpertAnswer:
    """Answer as one of the hospital's reviewers, wrong at this rate.

    ``shown`` is the program's answer: with it the answer is a correction, and of the errors half agree with what was
    shown if that is wrong. Without it the answer is blind. Equal arguments give equal answers.
    """
    chance = random.Random(f"{document.hospital}|{document.id}|{seed}|{shown is not None}")
    reviewer = assign_reviewer(document, seed)
    truth = list_true_segments(document)
    segments = truth
    if chance.random() < error_rate:
        seen = tuple(shown or truth)
        agrees = seen != truth and chance.random() < 0.5
        segments = seen if agrees else mistake(truth, len(document.pages), chance)
    return ExpertAnswer(
        document.id,
        reviewer,
        "blind" if shown is None else "correction",
        segments,
        _draw_seconds(document, shown, chance, wrong=segments != truth),
        document.day,
    )


def assign_reviewer(document: ReplayDocument, seed: int) -> str:
    """Assign the reviewer on duty; equal for blind answers and corrections of one file."""
    reviewers = load_hospital(document.hospital).reviewers
    return random.Random(f"{document.id}|{seed}|duty").choice(reviewers)


def mistake(truth: Segments, pages: int, chance: random.Random) -> Segments:
    """Make one mistake: a slipped or missed boundary, or a type taken for another."""
    if len(truth) > 1 and chance.random() < SLIPPED_BOUNDARY:
        (first, _, kind), (start, last, second) = truth[0], truth[1]
        moved = [page for page in (start - 1, start + 1) if first < page <= last]
        if moved and chance.random() < 0.5:
            begins = chance.choice(moved)
            return ((first, begins - 1, kind), (begins, last, second), *truth[2:])
        return ((1, pages, kind),)
    index = chance.randrange(len(truth))
    first, last, kind = truth[index]
    return (*truth[:index], (first, last, confuse(kind, chance)), *truth[index + 1 :])


def confuse(kind: str, chance: random.Random) -> str:
    """Draw a type that people mistake this one for."""
    return chance.choices(CONFUSED[kind], _FREQUENCIES)[0]


def _draw_seconds(
    document: ReplayDocument, shown: Sequence[tuple[int, int, str]] | None, chance: random.Random, *, wrong: bool
) -> float:
    """Log-normal; about 14 s and 9 s a page if blind, less with an answer in sight, and haste goes with errors."""
    typical = 14 + 9 * len(document.pages)
    if shown is not None:
        typical *= 0.55 if tuple(shown) == list_true_segments(document) else 1.3
    return round(typical * (0.75 if wrong else 1.0) * chance.lognormvariate(0, 0.45), 1)
