"""Colours: variables in one place, legible in light and dark."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import widgets.workbench

FOLDER = Path(widgets.workbench.__file__).parent
THEME = (FOLDER / "theme.css").read_text()
COLOURS = {
    name: (light, dark or light)
    for name, light, dark in re.findall(r"--([\w-]+): (?:light-dark\()?(#\w+)(?:, (#\w+)\))?;", THEME)
}
TEXTS = ("ink", "muted", "accent", "blocker", "major", "minor", "found")
TYPES = ("note", "pathology", "genomic", "radiology", "other", "unknown")
TINTS = ("chosen", "warn-ground", "good-ground", "bad-ground", "row-chosen", "wanted")
PAIRS = [
    *((text, ground) for text in (*TEXTS, *TYPES) for ground in ("card", "ground", "soft", "hover")),
    *((text, tint) for text in ("ink", "muted", "accent", "blocker", "major") for tint in TINTS),
    *(("on-fill", fill) for fill in ("accent", "blocker", "major", "minor", "frame", *TYPES)),
    *(("warn-ink", "warn-ground"), ("warn-ink", "wanted"), ("lit-ink", "lit"), ("on-toast", "toast")),
]


def luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_text_contrasts_with_its_ground(theme: int) -> None:
    def contrast(text: str, ground: str) -> float:
        low, high = sorted(luminance(COLOURS[name][theme]) + 0.05 for name in (text, ground))
        return high / low

    assert {pair: contrast(*pair) for pair in PAIRS if contrast(*pair) < 4.5} == {}


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.css")), ids=lambda path: path.stem)
def test_colours_are_variables_of_the_theme(path: Path) -> None:
    style = path.read_text()
    assert set(re.findall(r"var\(--([\w-]+)", style)) <= {*re.findall(r"--([\w-]+):", THEME)}
    rest = THEME[THEME.index("\n}") :] if path.stem == "theme" else style
    assert re.findall(r"(?<=[ (:])(?:#[0-9a-f]{3,8}\b|rgba?\(|(?:white|black)\b(?!-))[^;]*", rest) == []
