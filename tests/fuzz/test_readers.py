"""Damaged PDFs are decided or refused by name, and the whole one among them is accepted."""

from __future__ import annotations

from pathlib import Path

from fuzz.reading import read_damaged


def test_damaged_pdfs(samples: Path, tmp_path: Path) -> None:
    table = read_damaged(samples, tmp_path, each=6, seed=0)
    assert table.faults == []
    print(f"\n{table}")
