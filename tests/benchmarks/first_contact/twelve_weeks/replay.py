"""Builds the replay: labelled texts of one left-out source in the house style of one hospital.

A type that the source lacks is filled with texts written for this benchmark (``written`` in the TOML files); each
segment says where its text came from. A labelled record belongs to one week, or to neighbouring weeks where there are
fewer records than weeks, so that later weeks hold texts that no earlier week has shown.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.first_contact.twelve_weeks.dressing import Patient, dress_document
from benchmarks.first_contact.twelve_weeks.hospitals import Hospital, Sender, load_hospital, read_half, spell_choices
from benchmarks.first_contact.twelve_weeks.labelled_sources import ABSENT, Record, list_sources, read_sources

WEEKS = 12
DAYS = 5
TWO_DOCUMENTS = 0.15
"""Of the files, as many hold two documents."""
SAME_TYPE = 0.25
"""Of those, as many hold two documents of one type."""


@dataclass(frozen=True)
class ReplaySegment:
    """One document inside of a file: its true pages and type, and who sent it."""

    start_page: int
    end_page: int
    type: str
    sender: str
    record: str
    """The labelled record, or the name of the written text."""
    origin: str
    """``source`` or ``written``."""


@dataclass(frozen=True)
class ReplayDocument:
    """One file that reached the hospital."""

    id: str
    hospital: str
    week: int
    day: int
    pages: tuple[str, ...]
    segments: tuple[ReplaySegment, ...]

    @property
    def true_type(self) -> str:
        """The type of most pages; of the first document if several have as many."""
        return max(self.segments, key=lambda segment: segment.end_page - segment.start_page).type

    @property
    def sender(self) -> str:
        """Who sent the first document."""
        return self.segments[0].sender

    @property
    def boundaries(self) -> tuple[int, ...]:
        """The pages after the first on which a document begins."""
        return tuple(segment.start_page for segment in self.segments[1:])


def build_replay(source: str, hospital: str, seed: int, documents_per_week: int) -> list[ReplayDocument]:
    """Build the files of twelve weeks, in the order in which they arrived. Equal arguments give equal files.

    Raises:
        ValueError: the source or the hospital is unknown, or the labelled texts are absent.
    """
    if source not in list_sources():
        raise ValueError(f"No such source: {source!r}; there are {list_sources() or ABSENT}")
    house = load_hospital(hospital)
    chance = random.Random(f"{source}|{hospital}|{seed}")
    by_type: dict[str, list[Record]] = {}
    for record in chance.sample(read_sources()[source], len(read_sources()[source])):
        by_type.setdefault(record.type, []).append(record)
    documents = []
    for week in range(1, WEEKS + 1):
        days = sorted(chance.randint(1, DAYS) for _ in range(documents_per_week))
        for number, day in enumerate(days, 1):
            name = f"w{week:02}-{number:03}"
            documents.append(_build_file(name, house, week, day, by_type, chance))
    return documents


def _build_file(
    name: str,
    house: Hospital,
    week: int,
    day: int,
    by_type: dict[str, list[Record]],
    chance: random.Random,
) -> ReplayDocument:
    kinds = [_draw_type(house, chance)]
    if chance.random() < TWO_DOCUMENTS:
        others = [kind for kind in house.mix if kind != kinds[0]]
        kinds.append(kinds[0] if chance.random() < SAME_TYPE else chance.choice(others))
    texts = [_draw_text(house, kind, week, by_type, chance) for kind in kinds]
    patient = Patient.draw([record.text for record, _ in texts], chance)
    pages: list[str] = []
    segments = []
    for kind, (record, origin) in zip(kinds, texts, strict=True):
        sender = _draw_sender(house, kind, week, chance)
        drawn = dress_document(record, sender, house, patient, (week, day), chance)
        segments.append(
            ReplaySegment(len(pages) + 1, len(pages) + len(drawn), kind, sender.name, record.id, origin),
        )
        pages += drawn
    return ReplayDocument(name, house.name, week, day, tuple(pages), tuple(segments))


def _draw_type(house: Hospital, chance: random.Random) -> str:
    return chance.choices(list(house.mix), list(house.mix.values()))[0]


def _draw_sender(house: Hospital, kind: str, week: int, chance: random.Random) -> Sender:
    senders = [
        sender for sender in house.senders if sender.type == kind and sender.from_week <= week <= sender.until_week
    ]
    return chance.choices(senders, [sender.weight for sender in senders])[0]


def _draw_text(
    house: Hospital, kind: str, week: int, by_type: dict[str, list[Record]], chance: random.Random
) -> tuple[Record, str]:
    if kind in by_type:
        return chance.choice(choose_records(by_type[kind], week)), "source"
    rows = [
        row
        for row in read_half(house.half)["written"]
        if row["type"] == kind and row.get("from_week", 1) <= week <= row.get("until_week", WEEKS)
    ]
    row = chance.choice(rows)
    parts = []
    for part in row["part"]:
        count = min(part.get("pick", len(part["sentences"])), len(part["sentences"]))
        chosen = sorted(chance.sample(range(len(part["sentences"])), count))
        joint = "\n" if part.get("lines") else " "
        body = joint.join(spell_choices(part["sentences"][index], chance) for index in chosen)
        parts.append(f"{part['heading'].upper()}:\n{body}")
    return Record(row["name"], kind, "\n\n".join(parts)), "written"


def choose_records(records: Sequence[Record], week: int) -> Sequence[Record]:
    """Choose the records of one week: no other week's, or one for neighbouring weeks if there are too few."""
    first = (week - 1) * len(records) // WEEKS
    return records[first : max(first + 1, week * len(records) // WEEKS)]
