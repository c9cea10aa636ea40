"""Whatever is done to a file, loading it gives a value or an error of ours that names it and quotes nothing."""

from __future__ import annotations

from pathlib import Path

from fuzz.loading import fuzz


def test_damaged_files_are_refused_by_name_or_read(patient_folder: Path, tmp_path: Path) -> None:
    table = fuzz(patient_folder, tmp_path, each=12, seed=0)
    assert table.faults == []
    print(f"\n{table}")


def test_a_run_over_a_damaged_folder_mends_or_names_it(patient_folder: Path, tmp_path: Path) -> None:
    from fuzz.reading import resumed_over_damage

    table = resumed_over_damage(patient_folder, tmp_path, each=6, seed=0)
    assert table.faults == []
    print(f"\n{table}")
