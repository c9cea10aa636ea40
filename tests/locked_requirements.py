"""Print the part of requirements.lock, with its hashes, that evalkit and some of its extras need: for `make install`."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]


def read_direct_requirements(pyproject: str, extras: Iterable[str]) -> Iterator[str]:
    """Yield the requirements of the build, of the package and of the extras.

    Raises:
        ValueError: If there is no such extra.
    """
    content = tomllib.loads(pyproject)
    yield from content["build-system"]["requires"]
    yield from content["project"]["dependencies"]
    optional = content["project"]["optional-dependencies"]
    for extra in extras:
        if extra not in optional:
            raise ValueError(f"evalkit has no extra {extra!r}: choose among {', '.join(optional)}")
        yield from optional[extra]


def select_requirements(lock: str, direct: Iterable[str]) -> str:
    """Return the pins that the requirements need, directly or through others, as the lock's "via" comments tell."""
    pins = re.findall(r"^[^\s#].*\n(?:[ \t].*\n?)*", lock, re.MULTILINE)
    pins_by_name: dict[str, list[str]] = {}
    names_by_parent: dict[str, set[str]] = {}
    for pin in pins:
        name = normalise_name(pin)
        pins_by_name.setdefault(name, []).append(pin)
        for parent in re.findall(r"^ +#(?: via)? +([\w.-]+)$", pin, re.MULTILINE):
            names_by_parent.setdefault(parent, set()).add(name)
    selected: set[str] = set()
    waiting = {normalise_name(requirement) for requirement in direct}
    while waiting:
        selected |= waiting
        waiting = {name for parent in waiting for name in names_by_parent.get(parent, ())} - selected
    missing = selected - pins_by_name.keys()
    if missing:
        raise ValueError(f"requirements.lock lacks {', '.join(sorted(missing))}: run make lock")
    return "".join(pin for name, pins in pins_by_name.items() if name in selected for pin in pins)


def normalise_name(requirement: str) -> str:
    """Return the normalised name of the package that a requirement is about.

    >>> normalise_name("pydantic_ai-slim[openai]>=2.68")
    'pydantic-ai-slim'
    """
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement, maxsplit=1)[0]).lower()


if __name__ == "__main__":
    try:
        requirements = read_direct_requirements((ROOT / "pyproject.toml").read_text("utf-8"), sys.argv[1:])
        print(select_requirements((ROOT / "requirements.lock").read_text("utf-8"), requirements), end="")
    except ValueError as error:
        sys.exit(str(error))
