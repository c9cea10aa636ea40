"""Files with types of a hospital's own, and invented documents of such types.

The file is assumed to be TOML with a table for each type: its name, what it is, what it includes and excludes, a LOINC code
and the key of the keyboard that chooses it. ``write_types(rows, names)`` writes it; a reader with other names gives a table of
them (neutral name → its own), and the name of the array of tables as ``types``; ``lists`` false writes includes and excludes
as one text each.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

NAMES = {"types": "types", "name": "name", "definition": "definition", "includes": "includes", "excludes": "excludes",
         "code": "code", "key": "key"}  # fmt: skip
FIVE = ("Clinical Note", "Pathology Report", "Genomic Report", "Radiology Report", "Other")


class OwnType(NamedTuple):
    """A sixth type as a hospital describes it."""

    name: str
    definition: str
    includes: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    code: str | None = None
    key: str | None = None


class TypesFile(NamedTuple):
    """A file of types as a user would name it, and what must become of it."""

    name: str
    what: str
    make: Callable[[Path], None]
    """Write it (or a directory, a pipe, a link) at this path."""
    outcome: Literal["read", "refused"]
    types: tuple[OwnType, ...]
    told: tuple[str, ...]
    """For a refusal, words of which the message has at least one each; alternatives are separated by a bar."""


class TypedDocument(NamedTuple):
    """An invented document with its right type, one of the five or a sixth."""

    name: str
    document_type: str
    pages: tuple[str, ...]


Names = Mapping[str, str]


def quote_toml(value: str) -> str:
    """A basic string of TOML."""
    escaped = "".join(
        f"\\u{ord(letter):04X}"
        if ord(letter) < 32 or ord(letter) == 127
        else {"\\": "\\\\", '"': '\\"'}.get(letter, letter)
        for letter in value
    )
    return f'"{escaped}"'


def write_types(rows: Sequence[OwnType | Mapping[str, Any]], names: Names = NAMES, *, lists: bool = True) -> str:
    """The TOML of these types; a mapping has keys and raw TOML values that no OwnType could have."""
    names = {**NAMES, **names}
    lines = ["# Types of our own\n"]
    for row in rows:
        lines.append(f"[[{names['types']}]]")
        values = row._asdict() if isinstance(row, OwnType) else row
        for key, value in values.items():
            if value is None or value == ():
                continue
            written = value
            if isinstance(value, tuple):
                written = "[" + ", ".join(map(quote_toml, value)) + "]" if lists else quote_toml("; ".join(value))
            elif isinstance(row, OwnType):
                written = quote_toml(value)
            lines.append(f"{names.get(key, key)} = {written}")
        lines.append("")
    return "\n".join(lines)


class TypesIdeas:
    """The files of one half."""

    def __init__(self) -> None:
        self.rows: list[
            tuple[str, str, Callable[[Names, bool], Callable[[Path], None]], tuple[OwnType, ...], tuple[str, ...]]
        ] = []

    def good(self, name: str, what: str, *types: OwnType) -> None:
        """A file that is read with these types."""
        self.rows.append((name, what, lambda names, lists: _writing(write_types(types, names, lists=lists)), types, ()))

    def bad(self, name: str, what: str, rows: Sequence[OwnType | Mapping[str, Any]], *told: str) -> None:
        """A file of these rows, which is refused."""
        self.rows.append((name, what, lambda names, lists: _writing(write_types(rows, names, lists=lists)), (), told))

    def bad_text(self, name: str, what: str, text: str | bytes, *told: str) -> None:
        """A file of these bytes, which is refused."""
        self.rows.append((name, what, lambda names, lists: _writing(text), (), told))

    def special(self, name: str, what: str, make: Callable[[Path], None], *told: str) -> None:
        """Something that is no regular file."""
        self.rows.append((name, what, lambda names, lists: make, (), told))

    def build(self, names: Names = NAMES, *, lists: bool = True) -> Iterator[TypesFile]:
        for name, what, writing, types, told in self.rows:
            yield TypesFile(name, what, writing(names, lists), "read" if types else "refused", types, told)


def _writing(text: str | bytes) -> Callable[[Path], None]:
    data = text.encode() if isinstance(text, str) else text

    def write(path: Path) -> None:
        path.write_bytes(data)

    return write


def make_pipe(path: Path) -> None:
    """A named pipe that nobody writes to: who opens it to read waits for ever."""
    os.mkfifo(path)


def make_ring(path: Path) -> None:
    """A link to itself."""
    path.symlink_to(path.name)


def make_endless(path: Path) -> None:
    """A link to a device that never ends."""
    path.symlink_to("/dev/zero")


def make_dangling(path: Path) -> None:
    """A link to a file that is not there."""
    path.symlink_to(path.with_name("not-there.toml"))


class Wording(NamedTuple):
    """What documents of a type say: titles, and sentences of which each document has some."""

    titles: tuple[str, ...]
    sentences: tuple[str, ...]


FAMILIES = ("Abara", "Bendix", "Castellan", "Dvorak", "Eskola", "Fontaine", "Gruber", "Halloran", "Ivarsson", "Jansen")
GIVEN = ("Ada", "Boris", "Clara", "Denis", "Elin", "Farid", "Gwen", "Hugo", "Irma", "Jonas")


def compose(half: str, kind: str, wording: Wording, count: int) -> Iterator[TypedDocument]:
    """Invented documents of a type, each of one or two pages."""
    for number in range(count):
        rng = random.Random(f"{half}/{kind}/{number}")
        person = f"{rng.choice(GIVEN)} {rng.choice(FAMILIES)}"
        born = f"{rng.randrange(1, 29):02d}/{rng.randrange(1, 13):02d}/{rng.randrange(1935, 2012)}"
        day = f"{rng.randrange(1, 29)} {rng.choice(('January', 'February', 'March'))} 2026"
        size = min(len(wording.sentences), 6 + rng.randrange(4))
        chosen = [wording.sentences[index] for index in sorted(rng.sample(range(len(wording.sentences)), size))]
        filled = [sentence.replace("#", str(rng.randrange(2, 95))).replace("@", day) for sentence in chosen]
        head = [rng.choice(wording.titles), f"Patient: {person}   Born: {born}   Date: {day}", ""]
        half_way = len(filled) // 2 if number % 3 == 0 else len(filled)
        pages = ["\n".join([*head, *filled[:half_way]])]
        if filled[half_way:]:
            pages.append("\n".join([f"{head[0]}, page 2 - {person}", "", *filled[half_way:]]))
        yield TypedDocument(f"{kind}_{number}".lower().replace(" ", "_"), kind, tuple(pages))


def compose_set(half: str, sixth: OwnType, wording: Wording, five: Mapping[str, Wording]) -> list[TypedDocument]:
    """Ten documents of the sixth type and two of each of the five."""
    rows = list(compose(half, sixth.name, wording, 10))
    for kind in FIVE:
        rows += compose(f"{half}/{sixth.name}", kind, five[kind], 2)
    return rows
