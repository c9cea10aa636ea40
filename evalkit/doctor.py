"""What is installed, configured or missing, and the command that mends it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from evalkit.classification.learned import learned
from evalkit.classification.lexicon import lexicon
from evalkit.classification.schema import type_definitions
from evalkit.classification.trap_examples import given_up, wrong_examples
from evalkit.classification.traps import read_traps, shipped_traps, traps_of
from evalkit.errors import EvalkitError
from evalkit.extras import installing
from evalkit.llm.model import Provider, Request
from evalkit.llm.prompts import prompt_names
from evalkit.llm.sight import LEAST_CONTEXT, SHOWN, known_of, picture
from evalkit.regular import read_regular
from evalkit.settings import LOCAL, Settings
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
    """All checks, in reading order. No file is written; the database, bucket and cluster that are set are looked for.

    Each language model that is set, and Document AI if it reads, is asked only if ``live``: once, without any document.
    """
    return [
        Check("python", sys.version_info >= (3, 11), sys.version.split()[0], "Install Python 3.11 or newer."),
        *(_package(name) for name in _PACKAGES),
        _ocr(settings),
        _reader(settings, live=live),
        _executor(settings),
        *_models(settings, live=live),
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
        remedy = (
            f"apt-get install tesseract-ocr, or {installing('ocr')}; without, pages that are pictures go to a person"
        )
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


def _executor(settings: Settings) -> Check:
    """Where PDFs are read; a cluster is looked for, as by a run."""
    from evalkit.batch.reading import How
    from evalkit.batch.round import cluster_of
    from evalkit.batch.runner import in_a_thread

    if settings.executor == LOCAL:
        return Check("executor", True, "this machine")
    try:
        cluster = cluster_of(settings, How(settings.read_seconds, settings.ocr), decides=False)
        return Check("executor", True, in_a_thread(cluster.described()))
    except EvalkitError as error:
        return Check("executor", False, error.message, error.remedy)


def _models(settings: Settings, *, live: bool) -> Iterator[Check]:
    """Each language model that is set, and whether those that review templates see what they are to review."""
    given = settings.vllm_review.reviewers
    named = (given.layout_model, given.semantic_model, given.arbitrator_model)
    reviewing = {name or settings.models.default for name in named}
    for name in sorted(settings.models.names | reviewing):
        check, said = _model(name, settings, live=live, is_reviewer=name in reviewing)
        yield check
        if name in reviewing:
            seen = _sees(name, said)
            # Who has set it for documents alone need not care.
            yield seen if name in named else replace(seen, is_fine=True)


def _model(name: str, settings: Settings, *, live: bool, is_reviewer: bool) -> tuple[Check, str | None]:
    """Whether it can be asked; what it answered, if it was."""
    from evalkit.batch.asking import EMBEDDED, provider_of
    from evalkit.batch.runner import in_a_thread

    what = "language model" if name != EMBEDDED else "model"
    if name == EMBEDDED:
        return Check(what, True, "embedded: no key, no network"), None
    try:
        provider = provider_of(name, settings)
        said = in_a_thread(_ask(provider, settings.call_seconds, is_reviewer=is_reviewer)) if live else None
        return Check(what, True, f"{name} {'answers' if live else '(--live asks it)'}"), said
    except EvalkitError as error:
        return Check(what, False, f"{name}: {error.message}", error.remedy), None


def _sees(name: str, said: str | None) -> Check:
    """Whether a model can review templates. ``said``: what it answered to a picture; None where it was not asked."""
    from evalkit.batch.asking import EMBEDDED

    what, remedy = "template reviewer", "Name a model that sees pictures in the section [vllm_review.reviewers]."
    if name == EMBEDDED:
        return Check(what, True, "embedded: measured checks alone, without pictures")
    known = known_of(name)
    if said is not None and SHOWN not in said:
        return Check(what, False, f"{name} was shown a picture and did not read the number on it", remedy)
    if said is None and known and not known.sees:
        return Check(what, False, f"{name} sees no pictures", remedy)
    sees = "sees pictures" if said or known else "pictures: not known (--live shows it one)"
    if known is None or known.context is None:
        context = f"how much it reads at once is not known: {LEAST_CONTEXT:,} tokens are needed"
    elif known.context < LEAST_CONTEXT:
        return Check(
            what, False, f"{name} reads {known.context:,} tokens at once, {LEAST_CONTEXT:,} are needed", remedy
        )
    else:
        context = f"reads {known.context:,} tokens at once"
    return Check(what, True, f"{name} {sees}; {context}")


async def _ask(provider: Provider, seconds: float, *, is_reviewer: bool) -> str:
    """What it answers to one call of a few tokens, with a picture for a reviewer. CallFailed."""
    properties: dict[str, Any] = {"ready": {"type": "boolean"}}
    prompt = 'Answer with JSON: {"ready": true}'
    if is_reviewer:
        properties |= {"number": {"type": ["string", "null"]}}
        prompt = 'Which number stands on the picture? Answer with JSON: {"ready": true, "number": ...}, null if you see none.'
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    try:
        reply = await provider.send(Request(prompt, schema, seconds, (picture(),) if is_reviewer else ()))
        return reply.text
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
        own = read_traps(read_regular(path).decode(), path)
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
    if folder.exists() and not folder.is_dir():
        return Check("output folder", False, f"{folder} is no folder", "Choose another with --output.")
    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.is_dir())
    if not os.access(there, os.W_OK):
        return Check("output folder", False, f"{folder} cannot be written", "Choose another with --output.")
    free = shutil.disk_usage(there).free
    return Check("output folder", free >= _SPACE, f"{folder}, {free / 2**30:.0f} GiB free", "Free some space.")
