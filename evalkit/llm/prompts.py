"""Prompts are files with declared variables.

A prompt file is a ``string.Template``: ``${name}`` is a variable, ``$$`` a dollar sign. Missing and unknown variables
are errors by name. The document's text comes first in every prompt and is the same to the byte for all who ask about
it; it is fenced, because document text is data and never an instruction.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from evalkit.documents.bundle import DocumentBundle, Page
from evalkit.errors import UsageError
from evalkit.store import encode_canonical_json


def prompt_names() -> list[str]:
    """The prompt files there are, sorted, without their ending."""
    return sorted(path.stem for path in _folder().glob("*.txt"))


def render(name: str, **values: str) -> str:
    """The prompt ``prompts/{name}.txt`` with its variables filled in. UsageError where they do not fit."""
    template, declared = _template(name)
    if wrong := sorted(declared ^ values.keys()):
        raise UsageError(
            f"prompt {name}: variables {', '.join(wrong)} are missing or unknown",
            code="PROMPT-VARIABLES",
            remedy=f"The file declares {', '.join(sorted(declared)) or 'none'}; call it with exactly these.",
        )
    return template.substitute(values)


def prompt_versions() -> dict[str, str]:
    """The first 12 hex digits of each prompt file's SHA-256: a result carries them."""
    return {name: hashlib.sha256(_text(name).encode()).hexdigest()[:12] for name in prompt_names()}


def fenced(bundle: DocumentBundle, pages: Iterable[Page] | None = None) -> str:
    """The pages' paragraphs, numbered, between marks that the document cannot forge: they hold a part of its hash."""
    mark = _mark(bundle)
    parts = [
        f"<page-{mark} number={page.page_num} status={page.status.value}>\n{_paragraphs(page)}\n</page-{mark}>"
        for page in (bundle.pages if pages is None else pages)
    ]
    return "\n".join([f"<document-{mark} pages={bundle.total_pages}>", *parts, f"</document-{mark}>"])


def _paragraphs(page: Page) -> str:
    return "\n".join(f"[{number}] {paragraph}" for number, paragraph in enumerate(page.paragraphs, 1))


def fenced_claims(bundle: DocumentBundle, claims: Any, name: str = "classification") -> str:
    """What a model wrote, as JSON between marks of that name that it cannot forge: it quotes the document."""
    return fenced_json(claims, name, bundle.sha256)


def fenced_json(value: Any, name: str, about: str) -> str:
    """JSON between marks that it cannot forge: they hold a part of the hash of itself and of what it is about."""
    said = as_json(value)
    # Not the document's mark: whoever wrote the value has read that one.
    mark = hashlib.sha256(f"fence:{about}:{said}".encode()).hexdigest()[:12]
    return f"<{name}-{mark}>\n{said}\n</{name}-{mark}>"


def _mark(bundle: DocumentBundle) -> str:
    return hashlib.sha256(f"fence:{bundle.sha256}".encode()).hexdigest()[:12]


def as_json(value: Any) -> str:
    """Compact JSON, the same text for the same value."""
    return encode_canonical_json(value).decode()


@cache
def _folder() -> Path:
    shipped = Path(str(files("evalkit"))) / "_prompts"  # in a wheel; beside the package in a checkout
    return shipped if shipped.is_dir() else Path(__file__).parents[2] / "prompts"


@cache
def _template(name: str) -> tuple[Template, frozenset[str]]:
    """The prompt, and the variables that it declares."""
    template = Template(_text(name))
    return template, frozenset(template.get_identifiers())


@cache
def _text(name: str) -> str:
    path = _folder() / f"{name}.txt"
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise UsageError(
            f"prompt {name} is not there", code="PROMPT-MISSING", remedy=f"There are {', '.join(prompt_names())}."
        ) from error
