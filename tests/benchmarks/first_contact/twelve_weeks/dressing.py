"""Puts a text into a hospital's house style: letterhead, furniture, headings, order of parts, abbreviations."""

from __future__ import annotations

import datetime as dt
import random
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.first_contact.twelve_weeks.hospitals import Hospital, Sender, spell_choices
from benchmarks.first_contact.twelve_weeks.labelled_sources import Record

COLUMNS, LINES = 92, 56
LONGEST = 4200
"""Characters of a text that are shown; a longer one is cut at the end of a part."""
SKIPPED_PARTS = 0.15
_FIRST_DAY = dt.date(2025, 1, 6)
_GIVEN = """
Aurelio Brigid Casimir Delphine Emeric Farida Gunnar Hesper Isidor Jolanda Kwame Leocadia Mirko Nettie Osvaldo
Perpetua Quentin Rosalba Sixten Theodora Ulrich Verena Wendell Xenia Yusuf Zelda
"""
_FAMILY = """
Abernethy Bellweather Coldstream Drummholm Eastlake Featherby Grimsdale Holloman Ivorsen Jessamy Kettlewell
Lindqvist Marchbanks Nightwood Oxborrow Penhallow Quarrington Redfearn Silverthorn Tattersby Underhay Vanstone
Whitlock Yardley Zimmerle
"""
_HEADING = re.compile(
    r"^\s*(?:([A-Z][A-Z0-9 /&'(),-]{2,48}):\s*|([A-Z][A-Z /&-]{3,48})$|([A-Z][A-Za-z /&-]{2,40}):\s*$)"
)
_PATIENT_NAME = re.compile(r"(?m)^\W*(?:Patient )?Name:\s*([A-Z][\w'-]+(?: [A-Z]\.?)?) ([A-Z][\w'-]+)\s*$")
_PERSON = re.compile(r"\b([A-Z][a-z'-]+) ([A-Z][a-z'-]+) is (?:a|an) (?:[\w-]+ ){0,2}?\d+[- ]year[- ]old")
_ADDRESSED = re.compile(r"\b(Mr|Mrs|Ms|Miss)\b(\.?) (?:[A-Z][a-z'-]+ )?[A-Z][a-z'-]+")
_AGE = re.compile(r"\b(\d{1,2})[- ]year[- ]old")
_BIRTH_DATE = re.compile(r"(?im)^(\W*(?:date of birth|dob):\s*).*$")
_DROPPED = re.compile(
    r"\b(?:the|a|an|is|are|was|were|has been|have been|there is|there are|there was|patient|she|he|his|her)\b ?", re.I
)


@dataclass(frozen=True)
class Patient:
    """An invented person."""

    given: str
    family: str
    born: dt.date
    number: str

    @classmethod
    def draw(cls, texts: Sequence[str], chance: random.Random) -> Patient:
        """Draw a person of the age that the first of the texts with an age states."""
        days = chance.randint(0, 26000)
        age = next((int(match[1]) for match in map(_AGE.search, texts) if match), None)
        born = dt.date(1932, 1, 1) + dt.timedelta(days=days)
        if age is not None:
            born = _FIRST_DAY - dt.timedelta(days=round(365.25 * age) + 100 + days % 200)
        given, family = chance.choice(_GIVEN.split()), chance.choice(_FAMILY.split())
        return cls(given, family, born, str(chance.randint(1_000_000, 9_999_999)))


def dress_document(
    record: Record, sender: Sender, house: Hospital, patient: Patient, when: tuple[int, int], chance: random.Random
) -> list[str]:
    """Dress one text as this sender would send it, as the texts of its pages."""
    style: dict[str, Any] = {**house.style, **sender.look}
    week, day = when
    date = _FIRST_DAY + dt.timedelta(days=7 * (week - 1) + day - 1)
    signer = chance.choice(sender.signers) if sender.signers else ""
    words = {
        "hospital": house.name,
        "sender": sender.name,
        "family": patient.family,
        "given": patient.given,
        "born": patient.born.strftime(style.get("date", "%m/%d/%Y")),
        "number": patient.number,
        "date": date.strftime(style.get("date", "%m/%d/%Y")),
        "signer": signer,
        "order": f"{chance.randint(100, 999)}-{chance.randint(10000, 99999)}",
    }
    parts = split_parts(_give_name(record.text, patient))
    parts = _shorten(parts, chance)
    parts = _reorder(parts, style.get("order", "as written"), chance)
    lines = _write_opening(record.type, style, words, chance)
    for number, (heading, body) in enumerate(parts, 1):
        lines += _write_part(number, heading, body, style)
    lines += [line.format(**words) for line in style.get("closing", ())]
    return _lay_out(lines, style, words, chance)


def split_parts(text: str) -> list[tuple[str, str]]:
    """Split a text into headings and what follows them; a text without headings is one part."""
    parts: list[tuple[str, list[str]]] = [("", [])]
    for line in text.splitlines():
        heading = _HEADING.match(line)
        if heading:
            parts.append(((heading[1] or heading[2] or heading[3]).strip(), [line[heading.end() :]]))
        else:
            parts[-1][1].append(line)
    return [(heading, "\n".join(body).strip()) for heading, body in parts if heading or "".join(body).strip()]


def _give_name(text: str, patient: Patient) -> str:
    """Call the person of the text as the letterhead does."""
    name = _PATIENT_NAME.search(text) or _PERSON.search(text)
    if name:
        text = text.replace(f"{name[1]} {name[2]}", f"{patient.given} {patient.family}")
        text = re.sub(rf"\b{re.escape(name[2])}\b", patient.family, text)
    text = _ADDRESSED.sub(lambda match: f"{match[1]}{match[2]} {patient.family}", text)
    return _BIRTH_DATE.sub(lambda match: match[1] + patient.born.isoformat(), text)


def _shorten(parts: list[tuple[str, str]], chance: random.Random) -> list[tuple[str, str]]:
    """Leave out some inner parts, as another visit would, and more of them while the text is too long."""
    chosen = [
        (heading, body[:LONGEST])
        for index, (heading, body) in enumerate(parts)
        if index in {0, len(parts) - 1} or chance.random() >= SKIPPED_PARTS
    ]
    while len(chosen) > 2 and sum(len(body) for _, body in chosen) > LONGEST:
        del chosen[chance.randrange(1, len(chosen) - 1)]
    return chosen


def _reorder(parts: list[tuple[str, str]], order: str, chance: random.Random) -> list[tuple[str, str]]:
    if order == "last first" and len(parts) > 2:
        return [parts[-1], *parts[:-1]]
    if order == "reversed":
        return parts[::-1]
    if order == "shuffled":
        return chance.sample(parts, len(parts))
    return parts


def _write_opening(kind: str, style: dict[str, Any], words: dict[str, str], chance: random.Random) -> list[str]:
    lines = [line.format(**words) for line in style.get("letterhead", ())]
    titles = style.get("titles", {}).get(kind)
    if titles:
        lines += ["", chance.choice(titles).format(**words)]
    lines += ["", *(line.format(**words) for line in style.get("identity", ())), ""]
    lines += [spell_choices(line, chance).format(**words) for line in style.get("greeting", ())]
    return lines


def _write_part(number: int, heading: str, body: str, style: dict[str, Any]) -> list[str]:
    heading = style.get("headings", {}).get(heading.upper(), heading)
    for long, short in style.get("abbreviations", {}).items():
        body = re.sub(rf"\b{long}\b", short, body, flags=re.I)
    if style.get("terse"):
        body = re.sub(r"\s*\n\s*", "\n", re.sub(r"[ \t]+", " ", _DROPPED.sub("", body))).replace(". ", " / ")
    look = style.get("heading", "upper")
    line = {
        "upper": f"{heading.upper()}:",
        "title": heading.title(),
        "numbered": f"{number}. {heading.capitalize()}",
        "inline": f"{heading.lower()} -",
        "ruled": f"---- {heading.upper()} ----",
        "none": "",
    }[look]
    paragraphs = [textwrap.wrap(paragraph, COLUMNS) or [""] for paragraph in body.split("\n")]
    written = [line for paragraph in paragraphs for line in paragraph]
    return [*([line] if heading and line else []), *written, ""]


def _lay_out(lines: list[str], style: dict[str, Any], words: dict[str, str], chance: random.Random) -> list[str]:
    """Cut into pages, with running heads, feet and stamps."""
    head, foot, stamps = style.get("head", ()), style.get("foot", ()), style.get("stamps", ())
    room = LINES - len(head) - len(foot) - 3
    sheets = [lines[start : start + room] for start in range(0, len(lines), room)]
    pages = []
    for number, sheet in enumerate(sheets, 1):
        counted = {**words, "page": str(number), "pages": str(len(sheets))}
        written = list(sheet)
        if stamps and chance.random() < style.get("stamped", 0.3):
            written.insert(chance.randint(0, min(12, len(written))), chance.choice(stamps).format(**counted))
        running = [line.format(**counted) for line in head] if number > 1 or style.get("head_on_first") else []
        written = [*running, *written, "", *(line.format(**counted) for line in foot)]
        pages.append("\n".join(line.rstrip() for line in written))
    return [_keep_printable(page) for page in pages]


def _keep_printable(page: str) -> str:
    """Leave out the signs that a typewriter's font lacks."""
    return page.replace("\t", "    ").encode("cp1252", "ignore").decode("cp1252")
