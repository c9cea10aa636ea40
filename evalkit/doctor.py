"""What is installed, configured or missing, and the command that mends it."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from evalkit.classification.learned import learned
from evalkit.classification.lexicon import lexicon
from evalkit.classification.schema import type_definitions
from evalkit.classification.trap_examples import given_up, wrong_examples
from evalkit.classification.traps import read_traps, shipped_traps, traps_of
from evalkit.errors import EvalkitError
from evalkit.llm.model import Provider, Request
from evalkit.llm.prompts import prompt_names
from evalkit.settings import Settings
from evalkit.store import Files, located

_PACKAGES = ("pymupdf", "pydantic", "rapidfuzz", "sqlalchemy", "pandas", "ipywidgets", "jupyterlab", "voila")
_SPACE = 1 << 30
"""Bytes of free disk below which a run may not end."""


@dataclass(frozen=True)
class Check:
    """One line of the report."""

    name: str
    is_fine: bool
    found: str
    remedy: str = ""
    """The command or step that mends it."""


def examine(settings: Settings, *, live: bool = False) -> list[Check]:
    """All checks, in reading order. Nothing is written, and nothing leaves the machine unless ``live``: then each
    language model that is set, and Document AI if it reads, is asked once, without any document.
    """
    return [
        Check("python", sys.version_info >= (3, 11), sys.version.split()[0], "Install Python 3.11 or newer."),
        *(_package(name) for name in _PACKAGES),
        _ocr(settings),
        _reader(settings, live=live),
        *(_model(name, settings, live=live) for name in sorted(settings.models.names)),
        _data(),
        *_traps(settings.traps_file),
        _output(settings.output),
        _database(settings),
    ]


def _package(name: str) -> Check:
    try:
        return Check(name, True, version(name))
    except PackageNotFoundError:
        return Check(name, False, "not installed", f"pip install {name}")


def _ocr(settings: Settings) -> Check:
    from evalkit.documents.ocr import engine

    if settings.ocr == "none":
        return Check("OCR", True, "switched off: pages that are pictures go to a person")
    try:
        found = engine(settings.ocr)
    except EvalkitError as error:
        return Check("OCR", False, error.message, error.remedy)
    if found is None:
        remedy = 'apt-get install tesseract-ocr, or pip install "evalkit[ocr]"; without, pages that are pictures go to a person'
        return Check("OCR", False, "no engine is installed", remedy)
    return Check("OCR", True, found.name_and_version)


def _reader(settings: Settings, *, live: bool) -> Check:
    from evalkit.batch.runner import document_ai

    if settings.reader == "local":
        return Check("reader", True, "this machine")
    try:
        asked = document_ai(settings)
        found = asked.reader_version if live else f"Document AI: {asked.processor}"
        return Check("reader", True, found)
    except EvalkitError as error:
        return Check("reader", False, error.message, error.remedy)


def _model(name: str, settings: Settings, *, live: bool) -> Check:
    from evalkit.batch.asking import EMBEDDED, provider_of

    what = "language model" if name != EMBEDDED else "model"
    if name == EMBEDDED:
        return Check(what, True, "embedded: no key, no network")
    try:
        provider = provider_of(name, settings)
        if live:
            asyncio.run(_ask(provider, settings.call_seconds))
        return Check(what, True, f"{name} {'answers' if live else '(--live asks it)'}")
    except EvalkitError as error:
        return Check(what, False, f"{name}: {error.message}", error.remedy)


async def _ask(provider: Provider, seconds: float) -> None:
    """One call of a few tokens. CallFailed."""
    schema = {"type": "object", "properties": {"ready": {"type": "boolean"}}, "required": ["ready"]}
    try:
        await provider.send(Request('Answer with JSON: {"ready": true}', schema, seconds))
    finally:
        await provider.close()


def _data() -> Check:
    try:
        found = (
            f"{len(prompt_names())} prompts, types {type_definitions()['version']}, "
            f"lexicon {lexicon().version}, weights {learned().version}, traps {shipped_traps().version}"
        )
        return Check("prompts and tables", bool(prompt_names()), found, "Install evalkit again.")
    except EvalkitError as error:
        return Check("prompts and tables", False, error.message, error.remedy)


def _traps(path: str | None) -> list[Check]:
    """A site's own traps: are they read, is each done in time, and do they do what their examples say?"""
    if path is None:
        return []
    try:
        traps = traps_of(path)
        own = read_traps(Path(path).read_text("utf-8"), path)
        wrong, less = wrong_examples(traps), given_up(shipped_traps(), own)
    except EvalkitError as error:
        return [Check("own traps", False, error.message, error.remedy)]
    if wrong:
        more = f" and {len(wrong) - 3} more" * (len(wrong) > 3)
        return [Check("own traps", False, f"{path}: {'; '.join(wrong[:3])}{more}", "Correct these rows or examples.")]
    examples = sum(len(row.fires) + len(row.silent) for row in own.rows)
    found = f"{path}: {len(own.rows)} rows, {examples} examples, version {own.version}"
    return [Check("own traps", True, "; ".join([found, *less]))]


def _database(settings: Settings) -> Check:
    from evalkit.store import described

    try:
        return Check("database", True, described(settings.output, settings.database))
    except EvalkitError as error:
        return Check("database", False, error.message, error.remedy)


def _output(output: str) -> Check:
    try:
        folder = located(output)
        if isinstance(folder, str):
            found = "" if Files(folder).is_there() else "; nothing is in it yet"
            return Check("output folder", True, f"{folder}{found}")
    except EvalkitError as error:
        return Check("output folder", False, error.message, error.remedy)
    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.is_dir())
    if not os.access(there, os.W_OK):
        return Check("output folder", False, f"{folder} cannot be written", "Choose another with --output.")
    free = shutil.disk_usage(there).free
    return Check("output folder", free >= _SPACE, f"{folder}, {free / 2**30:.0f} GiB free", "Free some space.")
