"""Weeks in which a fifth of the answers are wrong, each kind a row of ``open.toml`` or ``sealed.toml``.

A row says whose documents are answered wrongly (``select``) and what is answered instead (``change``).
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.first_contact.twelve_weeks.experts import (
    ExpertAnswer,
    Segments,
    answer,
    assign_reviewer,
    confuse,
    list_true_segments,
    mistake,
)
from benchmarks.first_contact.twelve_weeks.hospitals import HALVES, read_half
from benchmarks.first_contact.twelve_weeks.replay import ReplayDocument

WRONG_SHARE = 0.20
CORRECTION_SHARE = 0.5
"""Of the answers, as many are corrections if the program's readings are given; the others are blind."""


@dataclass(frozen=True)
class Reading:
    """The program's answer about a file, and how sure it was (0 to 1)."""

    segments: Segments
    certainty: float


@dataclass(frozen=True)
class PoisonedWeek:
    """The files of a week that were answered, and the answers; ``wrong`` names the files with a wrong answer."""

    kind: str
    documents: tuple[ReplayDocument, ...]
    answers: tuple[ExpertAnswer, ...]
    wrong: frozenset[str]


@dataclass(frozen=True)
class _Week:
    row: Mapping[str, Any]
    documents: Sequence[ReplayDocument]
    readings: Mapping[str, Reading]
    seed: int
    chance: random.Random

    def get_reading(self, document: ReplayDocument) -> Reading:
        return self.readings[document.id]

    def misreads(self, document: ReplayDocument) -> bool:
        return self.get_reading(document).segments != list_true_segments(document)


def list_poison_kinds(half: str = "open") -> list[str]:
    """List the kinds of poisoned weeks of one half."""
    return [row["name"] for row in read_half(half)["poison"]]


def needs_readings(kind: str) -> bool:
    """Tell whether a kind depends on what the program answered."""
    row = _get_row(kind)
    return row["select"] in {"unsure", "sure", "misread"} or row["change"] == "program"


def poison(
    week: Sequence[ReplayDocument], kind: str, seed: int, *, readings: Mapping[str, Reading] | None = None
) -> PoisonedWeek:
    """Answer the files of one week so that a fifth of the answers are wrong, in the way of this kind.

    If the kind's pool is too small for a fifth of the week, rightly answered files are left out until the share
    holds. Equal arguments give equal weeks.

    Raises:
        ValueError: the kind is unknown, it needs ``readings`` and they are missing, or the week has nothing for it.
    """
    row = _get_row(kind)
    if needs_readings(kind) and (readings is None or any(document.id not in readings for document in week)):
        raise ValueError(f"{kind!r} needs the program's reading of each file: pass readings={{document.id: Reading}}")
    names = "|".join(document.id for document in week)
    around = _Week(row, week, readings or {}, seed, random.Random(f"{names}|{kind}|{seed}"))
    copies = row["change"] == "copy"
    size = len(week)
    goal = max(1, round(size * WRONG_SHARE / (1 - WRONG_SHARE) if copies else size * WRONG_SHARE))
    false = _CHANGES[row["change"]](around, _SELECTIONS[row["select"]](around), goal)
    if not false:
        raise ValueError(f"This week has no file that {kind!r} could poison; take a larger week")
    added = [document for document in false if document not in week]
    clean = [document for document in week if document not in false]
    room = round(len(false) * (1 - WRONG_SHARE) / WRONG_SHARE)
    answered = {document.id for document in around.chance.sample(clean, min(room, len(clean)))}
    answered |= {document.id for document in false}
    documents = sorted(
        (document for document in [*week, *added] if document.id in answered), key=lambda one: (one.day, one.id)
    )
    answers = tuple(_answer(around, document, false.get(document)) for document in documents)
    return PoisonedWeek(kind, tuple(documents), answers, frozenset(document.id for document in false))


def _get_row(kind: str) -> Mapping[str, Any]:
    for half in HALVES:
        for row in read_half(half)["poison"]:
            if row["name"] == kind:
                return row
    raise ValueError(f"No such kind of poisoned week: {kind!r}; list_poison_kinds() names them")


def _answer(week: _Week, document: ReplayDocument, false: Segments | None) -> ExpertAnswer:
    reading = week.readings.get(document.id)
    chance = random.Random(f"{document.id}|{week.seed}|kind")
    is_correction = reading is not None and (week.row["change"] == "program" or chance.random() < CORRECTION_SHARE)
    shown = reading.segments if is_correction and reading else None
    right = answer(document, week.seed, 0.0, shown=shown)
    if false is None:
        return right
    return replace(right, segments=false, seconds=round(right.seconds * week.row.get("haste", 1), 1))


def _group(documents: Iterable[ReplayDocument], key: Callable[[ReplayDocument], str]) -> list[ReplayDocument]:
    """Order by group, the largest group first."""
    documents = list(documents)
    sizes = Counter(map(key, documents))
    return sorted(documents, key=lambda document: (-sizes[key(document)], key(document)))


def _keep_largest(documents: Iterable[ReplayDocument], key: Callable[[ReplayDocument], str]) -> list[ReplayDocument]:
    grouped = _group(documents, key)
    return [document for document in grouped if key(document) == key(grouped[0])]


def _is_wanted(week: _Week, document: ReplayDocument) -> bool:
    return document.true_type in week.row.get("types", [document.true_type])


def _mix(week: _Week) -> list[ReplayDocument]:
    wanted = [document for document in week.documents if _is_wanted(week, document)]
    return week.chance.sample(wanted, len(wanted))


_SELECTIONS: Mapping[str, Callable[[_Week], list[ReplayDocument]]] = {
    "any": _mix,
    "reviewer": lambda week: _group(_mix(week), lambda document: assign_reviewer(document, week.seed)),
    "sender": lambda week: _group(_mix(week), lambda document: document.sender),
    "largest sender": lambda week: _keep_largest(_mix(week), lambda document: document.sender),
    "unsure": lambda week: sorted(_mix(week), key=lambda document: week.get_reading(document).certainty),
    "sure": lambda week: sorted(_mix(week), key=lambda document: -week.get_reading(document).certainty),
    "misread": lambda week: [document for document in _mix(week) if week.misreads(document)],
    "late": lambda week: sorted(_mix(week), key=lambda document: -document.day),
    "long": lambda week: sorted(_mix(week), key=lambda document: -len(document.pages)),
    "two": lambda week: [document for document in _mix(week) if len(document.segments) > 1],
}


def _change_each(
    make: Callable[[_Week, ReplayDocument], Segments],
) -> Callable[[_Week, list[ReplayDocument], int], dict[ReplayDocument, Segments]]:
    def change(week: _Week, pool: list[ReplayDocument], goal: int) -> dict[ReplayDocument, Segments]:
        made = ((document, make(week, document)) for document in pool)
        false = [(document, segments) for document, segments in made if segments != list_true_segments(document)]
        return dict(false[:goal])

    return change


def _call_all(week: _Week, document: ReplayDocument) -> Segments:
    """Call each document of these types, or each at all, as the row says."""
    types = week.row.get("types", [kind for _, _, kind in list_true_segments(document)])
    return tuple(
        (first, last, week.row["to"] if kind in types else kind) for first, last, kind in list_true_segments(document)
    )


def _confuse_all(week: _Week, document: ReplayDocument) -> Segments:
    return tuple((first, last, confuse(kind, week.chance)) for first, last, kind in list_true_segments(document))


def _swap(week: _Week, pool: list[ReplayDocument], goal: int) -> dict[ReplayDocument, Segments]:
    """Exchange the types of two single documents of one day."""
    false: dict[ReplayDocument, Segments] = {}
    waiting: list[ReplayDocument] = []
    for document in (document for document in pool if len(document.segments) == 1):
        if len(false) + 1 >= max(goal, 2):
            break
        partner = next(
            (other for other in waiting if other.day == document.day and other.true_type != document.true_type), None
        )
        if partner is None:
            waiting.append(document)
            continue
        waiting.remove(partner)
        false[document] = ((1, len(document.pages), partner.true_type),)
        false[partner] = ((1, len(partner.pages), document.true_type),)
    return false


def _copy(week: _Week, pool: list[ReplayDocument], goal: int) -> dict[ReplayDocument, Segments]:
    """File a few documents again under other names, with wrong answers; the originals are answered rightly."""
    originals = pool[: max(1, goal // week.row.get("copies", 3))]
    false = {}
    for number in range(goal):
        original = originals[number % len(originals)]
        copy = replace(original, id=f"{original.id}c{number // len(originals) + 1}", day=week.chance.randint(1, 5))
        false[copy] = mistake(list_true_segments(original), len(original.pages), week.chance)
    return false


_CHANGES: Mapping[str, Callable[[_Week, list[ReplayDocument], int], dict[ReplayDocument, Segments]]] = {
    "mistake": _change_each(
        lambda week, document: mistake(list_true_segments(document), len(document.pages), week.chance)
    ),
    "confuse": _change_each(_confuse_all),
    "call": _change_each(_call_all),
    "program": _change_each(lambda week, document: week.get_reading(document).segments),
    "join": _change_each(lambda week, document: ((1, len(document.pages), document.segments[0].type),)),
    "cut": _change_each(
        lambda week, document: tuple((page, page, document.true_type) for page in range(1, len(document.pages) + 1))
    ),
    "swap": _swap,
    "copy": _copy,
}
