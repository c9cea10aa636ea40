"""Letters of an invented hospital that the shipped weights read badly, answered week by week."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

GIVEN = ["Aldo", "Berit", "Carol", "Derya", "Edda", "Fiete", "Greta", "Henning", "Imke", "Jonte"]
FAMILY = ["Ahornblatt", "Birkenau", "Castell", "Dornbach", "Ebersfeld", "Fichtner", "Grauwacke", "Hollerith"]
TISSUE = (
    "the piece shows nests of pale cells with dark cores", "glands lie back to back at the rim", "the inked rim is free",
    "the cells stain brown for the marker", "threads of scar run through the lump", "no cells were seen in the vessels",
    "the lump measures nine millimetres in the dish", "we cut three blocks and looked at twelve slides",
)  # fmt: skip
AILMENT = (
    "the knee hurts on stairs since spring", "sleep is poor and tea helps little", "the pulse was calm when we listened",
    "we agreed on a brace and on walking", "the cough has gone since the move", "pills were halved and will be checked in May",
    "no fever at home, appetite as before", "the blood pressure at home is fair",
)  # fmt: skip


class Letter(NamedTuple):
    """A letter with its type and the moment of its answer."""

    name: str
    text: str
    kind: str
    answered_at: datetime


def write_letters(count: int, seed: int = 1) -> Iterator[Letter]:
    """Letters of two senders, eight a week; the sender tells the type."""
    chance = random.Random(seed)
    names = chance.sample([(given, family) for given in GIVEN for family in FAMILY], count)
    for number, (given, family) in enumerate(names):
        kind, sender, sentences = (
            ("Pathology Report", "Institute of Thin Slices", TISSUE)
            if number % 2
            else ("Clinical Note", "House for General Ailments", AILMENT)
        )
        born = f"{chance.randint(1, 12):02}/{chance.randint(1, 28):02}/{chance.randint(1930, 2000)}"
        body = ". ".join(sentence.capitalize() for sentence in chance.sample(sentences, 5))
        lines = [
            "ALDERMOOR UNITED CLINICS",
            sender,
            f"Patient: {family}, {given}   DOB: {born}   MRN: {chance.randint(10**6, 10**7)}",
            "",
            "Dear colleague,",
            "we write about the above.",
            f"{body}.",
            "With kind regards",
        ]
        moment = datetime(2026, 1, 5, 9, tzinfo=UTC) + timedelta(weeks=number // 8, hours=number % 8)
        yield Letter(f"letter_{number:03}", "\n".join(lines), kind, moment)


def write_folder(folder: Path, count: int) -> list[Letter]:
    """The letters as text files."""
    folder.mkdir(parents=True, exist_ok=True)
    letters = list(write_letters(count))
    for letter in letters:
        (folder / f"{letter.name}.txt").write_text(letter.text, "utf-8")
    return letters
