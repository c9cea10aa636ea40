"""What others rely on stays as it was committed; a change of it is a change of a file in ``frozen``, which a commit names."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from contract.surface import FROZEN, SURFACES, describe_demo, frozen_text

from evalkit.pipeline import RunSummary


@pytest.mark.parametrize("name", [name for name in SURFACES if name != "demo"])
def test_surface_is_frozen(name: str) -> None:
    assert frozen_text(name) == (FROZEN / f"{name}.json").read_text()


def test_demo_folder_is_frozen(samples: Path, finished_run: RunSummary) -> None:
    frozen = json.loads((FROZEN / "demo.json").read_text())
    if not shutil.which("tesseract"):
        pytest.skip("tesseract is not installed: pages that are pictures would not be read")
    current = describe_demo(samples, Path(finished_run.output))
    if current["engine"] != frozen["engine"]:
        recognised = ("scanned", "poor_scan", "faxed_packet")
        current, frozen = (
            {
                path: digest
                for path, digest in surface.items()
                if not any(name in path for name in ("engine", *recognised))
            }
            for surface in (current, frozen)
        )
    assert current == frozen
