"""Drawn statements and what the builder makes of them: built once, whichever tests and workers look at them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from once import make_once
from statements.drawn import SHAPES, Drawn, draw
from statements.measuring import bundle_of

from evalkit.documents.bundle import DocumentBundle
from evalkit.documents.ocr import resolve_ocr_engine
from evalkit.documents.scanned_pages import PageOcrSettings
from evalkit.statements.applied_template import AppliedTemplate
from evalkit.statements.template_builder import build_draft_template


class BuiltStatement(NamedTuple):
    """A drawn statement as it was read, and the template that was built of it."""

    drawn: Drawn
    bundle: DocumentBundle
    build: AppliedTemplate


BuildStatement = Callable[[str, int], BuiltStatement]


@pytest.fixture(scope="session")
def build_statement(tmp_path_factory: pytest.TempPathFactory) -> BuildStatement:
    """Builds the statement of a shape and a seed."""

    def build(shape: str, seed: int, folder: Path) -> BuiltStatement:
        engine = resolve_ocr_engine() if SHAPES[shape].is_scanned else None
        drawn = draw(shape, seed)
        bundle = bundle_of(drawn, folder, PageOcrSettings(engine, 60) if engine else None)
        return BuiltStatement(drawn, bundle, build_draft_template(bundle))

    @functools.cache
    def build_once(shape: str, seed: int) -> BuiltStatement:
        return make_once(tmp_path_factory, f"{shape} {seed}", functools.partial(build, shape, seed))

    return build_once
