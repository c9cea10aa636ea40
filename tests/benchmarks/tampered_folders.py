"""Count which changes to an output folder `audit verify` tells, and which honest work it takes for a fault.

    cd tests && python -m benchmarks.tampered_folders open|sealed [--seed 1] [--only NAME]…

Each change is made to a copy of one folder. It is seen if `audit verify` tells a fault, or `audit verify --against` the
export from before.
"""

from __future__ import annotations

import argparse
import importlib
import random
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from benchmarks.first_contact.tampered_folders.changes import NotApplicableError, Tampering
from benchmarks.first_contact.tampered_folders.folder import build_folder
from places import open_folder
from rich.console import Console
from rich.table import Table

from evalkit.document_types import get_own_types, use_own_types
from evalkit.errors import EvalkitError, ReviewRefused
from evalkit.pipeline.audit.verify import verify_integrity


class Trial(NamedTuple):
    """One change, and the files of which the two checks told a fault."""

    tampering: Tampering
    by_verify: tuple[str, ...]
    by_against: tuple[str, ...]

    @property
    def is_right(self) -> bool:
        """Return True if a change that matters is seen by either check, or honest work by none."""
        return bool(self.by_verify or self.by_against) == self.tampering.matters


def try_tamperings(base: Path, tamperings: Iterable[Tampering], seed: int) -> list[Trial]:
    """Make each change to a copy of the built folder; one that finds nothing to change, or is refused, is left out."""
    trials = []
    for tampering in tamperings:
        copy = base.with_name(f"{base.name}_copy")
        shutil.copytree(base, copy, symlinks=True)
        try:
            tampering.apply(copy / "output", random.Random(seed))
        except (NotApplicableError, ReviewRefused):
            continue
        else:
            trials.append(Trial(tampering, *(list_faults(copy, name) for name in (None, "audit.json"))))
        finally:
            shutil.rmtree(copy)
    return trials


def list_faults(base: Path, export: str | None) -> tuple[str, ...]:
    """List the faults that the check tells of a folder, by itself or against the export.

    An error with which the check refuses the folder is told too.
    """
    own_types = get_own_types()
    try:
        report = verify_integrity(open_folder(base / "output"), earlier_export_path=base / export if export else None)
    except EvalkitError as error:
        return (str(error),)
    finally:
        use_own_types(own_types)
    return tuple(f"{fault.file}: {fault.what}" for fault in report.faults)


def main() -> None:
    """Print how many changes are seen by which check, and each change that is not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("half", choices=("open", "sealed"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", default=[])
    options = parser.parse_args()
    half = importlib.import_module(f"benchmarks.first_contact.tampered_folders.{options.half}").TAMPERINGS
    tamperings = [tampering for tampering in half if not options.only or tampering.name in options.only]
    with tempfile.TemporaryDirectory() as folder:
        build_folder(Path(folder) / "base")
        trials = try_tamperings(Path(folder) / "base", tamperings, options.seed)
    table = Table("changes", "tried", "by verify", "by --against", "by either")
    for name, matters in (("that matter", True), ("honest work told as a fault", False)):
        counted = [trial for trial in trials if trial.tampering.matters == matters]
        seen = [(bool(trial.by_verify), bool(trial.by_against)) for trial in counted]
        counts = (sum(one for one, _ in seen), sum(two for _, two in seen), sum(map(any, seen)))
        table.add_row(name, str(len(counted)), *map(str, counts))
    console = Console()
    console.print(table)
    for trial in trials:
        if not trial.is_right:
            console.print(trial.tampering.family, trial.tampering.name, *trial.by_verify[:3], *trial.by_against[:3])


if __name__ == "__main__":
    main()
