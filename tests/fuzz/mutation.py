"""Damage to files, the same for equal seeds: to their bytes, and to the JSON values in them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from typing import Any

#: Stands in every damaged text: an error that has it quotes a document.
MARK = "SECRETWORD of a patient"

_WRONG: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, 2**200, 1e308, -1e-308, 0.5, "", "x", MARK, "\ud800", "\x00", "[]"),
    *([], {}, [None], [[]], {"": None}, [MARK], {MARK: MARK}, "9" * 5000, MARK * 2000, "../../etc/passwd", "é" * 99),
)


def _places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield at
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield from _places(one, (*at, key))


def _wrong(dice: random.Random) -> Any:
    """A value of its own: later damage to it must not change what the next file gets."""
    return deepcopy(dice.choice(_WRONG))


def _changed(value: Any, dice: random.Random, change: Callable[[Any, Any], None]) -> Any:
    places = [place for place in _places(value) if place]
    if not places:
        return _wrong(dice)
    *path, key = dice.choice(places)
    inner = value
    for step in path:
        inner = inner[step]
    change(inner, key)
    return value


def _deep(text: str, depth: int) -> str:
    return '{"schema_version": 1, "a": ' + "[" * depth + "]" * depth + "}"


def _of_values(dice: random.Random, text: str) -> str:
    """One to four changes of a value: another in its place, gone, doubled, put elsewhere."""
    value = json.loads(text)
    for _ in range(dice.randint(1, 4)):
        value = _changed(value, dice, dice.choice(_CHANGES)(dice))
    return json.dumps(value, ensure_ascii=dice.random() < 0.9)


_CHANGES: tuple[Callable[[random.Random], Callable[[Any, Any], None]], ...] = (
    lambda dice: lambda inner, key: inner.__setitem__(key, _wrong(dice)),
    lambda _: lambda inner, key: inner.__delitem__(key),
    lambda dice: lambda inner, key: inner.__setitem__(key, [inner[key]] * dice.randint(1, 50)),
    lambda _: lambda inner, key: inner.__setitem__("more" if isinstance(inner, dict) else key, MARK),
    lambda _: lambda inner, key: inner.__setitem__(key, {"schema_version": 1, "value": inner[key]}),
)

_TEXTS: Mapping[str, Callable[[random.Random, str], str]] = {
    "a value": _of_values,
    "many values": lambda dice, text: _of_values(dice, _of_values(dice, text)),
    "nesting": lambda dice, text: _deep(text, dice.choice((10, 500, 990, 1100, 100_000))),
    "another file's": lambda dice, _: dice.choice(("{}", "[]", "null", '"text"', "3", '{"schema_version": 1}', "NaN")),
    "a newer schema": lambda dice, text: text.replace(
        '"schema_version": 1', f'"schema_version": {dice.choice((2, 99))}'
    ),
    "what is no number": lambda dice, text: text.replace("0", dice.choice(("NaN", "Infinity", "1e999", "9" * 5000)), 1),
}


def _bytes(dice: random.Random, data: bytes) -> bytes:
    out = bytearray(data)
    for _ in range(dice.randint(1, 8)):
        at = dice.randrange(len(out) + 1)
        match dice.randrange(5):
            case 0 if at < len(out):
                out[at] ^= 1 << dice.randrange(8)
            case 1:
                out[at:at] = dice.choice((b"\x00", b"\xff\xfe", b'"', b"}", b"[" * 300, MARK.encode()))
            case 2:
                del out[at : at + dice.randint(1, 200)]
            case 3:
                there = dice.randrange(len(out) + 1)
                out[at:at] = out[there : there + dice.randint(1, 500)]
            case _ if dice.random() < 0.3:
                del out[at:]
            case _:
                pass
    return bytes(out)


def damaged_json(dice: random.Random, data: bytes) -> tuple[str, bytes]:
    """What was done, and what became of a JSON file."""
    text = data.decode()
    kind = dice.choice(("bytes", *_TEXTS))
    if kind == "bytes":
        return kind, _bytes(dice, data)
    return kind, _TEXTS[kind](dice, text).encode(errors="surrogatepass")


def damaged_text(dice: random.Random, data: bytes) -> tuple[str, bytes]:
    """What was done, and what became of a file that is no JSON: TOML, CSV, PDF."""
    lines = data.splitlines(keepends=True)
    match dice.randrange(4):
        case 0 if len(lines) > 1:
            dice.shuffle(lines)
            return "order", b"".join(lines)
        case 1 if lines:
            at = dice.randrange(len(lines))
            return "a line", b"".join([*lines[:at], *lines[at:] * dice.randint(0, 2), *lines[at + 1 :]])
        case 2:
            word = dice.choice(
                (b"true", b"[]", b"{}", b"1e999", b"9" * 5000, b'"' + MARK.encode() + b'"', b"=", b"\xff")
            )
            head, sign, tail = data.partition(dice.choice((b"=", b",", b"1", b'"', b"\n")))
            return "a word", head + sign + word + tail
        case _:
            return "bytes", _bytes(dice, data)
