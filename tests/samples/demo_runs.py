"""Running the demo's documents, and comparing what two runs left behind."""

import json
from pathlib import Path
from typing import Any

import evalkit
from evalkit.pipeline import RunSummary
from evalkit.store import MONITORING_FILE

#: Of runs that are compared with each other, or with frozen digests.
PATIENT_SALT = "the salt of evalkit's own tests"


def run_samples(samples: Path, output: Path, **options: Any) -> RunSummary:
    return evalkit.run(
        [samples],
        output=output,
        classifications=samples / "classifications",
        production=samples / "production.csv",
        **options,
    )


def without_clocks(value: Any) -> Any:
    """The JSON value without what the contract lets differ between two runs."""
    if isinstance(value, dict):
        return {key: without_clocks(inner) for key, inner in value.items() if not is_clock(key)}
    return [without_clocks(inner) for inner in value] if isinstance(value, list) else value


def is_clock(key: str) -> bool:
    return key in ("times", "processing_timestamp") or key.endswith("_at")


def read_output_files(output: Path) -> dict[str, Any]:
    """Every file of an output folder but the database, the locks, changes and the counts by run.

    Clocks apart, and the sessions of a run, which has one more each time it is continued.
    """
    files = (path for path in sorted(output.rglob("*")) if path.is_file() and path.name != MONITORING_FILE)
    files = (path for path in files if path.parent.name != "changes")
    kept = (path for path in files if not path.name.startswith((".", "evalkit.sqlite")) and path.parent.name != ".tmp")
    return {
        str(path.relative_to(output)): path.read_bytes().hex()
        if path.suffix == ".pdf"
        else without_clocks({key: part for key, part in json.loads(path.read_text()).items() if key != "sessions"})
        for path in kept
    }


def list_file_stamps(output: Path) -> dict[str, tuple[int, int]]:
    """Size and time of the last change of every file but the database's and the locks."""
    files = (path for path in output.rglob("*") if path.is_file())
    kept = (path for path in files if not path.name.startswith((".", "evalkit.sqlite")))
    return {str(path.relative_to(output)): (path.stat().st_size, path.stat().st_mtime_ns) for path in kept}
