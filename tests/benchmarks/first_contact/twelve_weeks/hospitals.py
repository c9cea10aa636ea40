"""Invented hospitals: letterheads, senders, stamps and house styles from ``open.toml`` and ``sealed.toml``."""

from __future__ import annotations

import random
import re
import tomllib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
HALVES = ("open", "sealed")
_CHOICE = re.compile(r"\[([^\[\]]*\|[^\[\]]*)\]")


@dataclass(frozen=True)
class Sender:
    """A department, practice or laboratory and the type of what it sends."""

    name: str
    type: str
    weight: float = 1.0
    from_week: int = 1
    until_week: int = 12
    signers: tuple[str, ...] = ()
    look: dict[str, Any] = field(default_factory=dict, hash=False)
    """Parts of the style that this sender does otherwise than the hospital."""


@dataclass(frozen=True)
class Hospital:
    """A hospital with its house style."""

    name: str
    half: str
    reviewers: tuple[str, ...]
    mix: dict[str, float]
    senders: tuple[Sender, ...]
    style: dict[str, Any]


@cache
def read_half(half: str) -> dict[str, Any]:
    """Read one half's tables: ``hospital``, ``written`` and ``poison``."""
    return tomllib.loads((HERE / f"{half}.toml").read_text("utf-8"))


@cache
def load_hospital(name: str) -> Hospital:
    """Load a hospital of either half by its name."""
    for half in HALVES:
        for row in read_half(half)["hospital"]:
            if row["name"] == name:
                senders = tuple(
                    Sender(**{**sender, "signers": tuple(sender.get("signers", ()))}) for sender in row["sender"]
                )
                return Hospital(name, half, tuple(row["reviewers"]), row["mix"], senders, row["style"])
    raise ValueError(f"No such hospital: {name!r}; list_hospitals() names them")


def list_hospitals(half: str = "open") -> list[str]:
    """List the names of one half's hospitals."""
    return [row["name"] for row in read_half(half)["hospital"]]


def spell_choices(text: str, chance: random.Random) -> str:
    """Replace each ``[a|b|c]`` by one of its choices, innermost first."""
    while _CHOICE.search(text):
        text = _CHOICE.sub(lambda match: chance.choice(match[1].split("|")), text, count=1)
    return text
