"""Folders that an export creates or replaces as a whole.

Only an earlier export is replaced.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evalkit.evaluation.private_files import create_private_file, replace_folder_atomically

#: Name of the file in each exported folder that lists all files which the export wrote.
MANIFEST_NAME = "evalkit-export.json"


@contextmanager
def replace_export_folder(target: Path, format_name: str) -> Iterator[Path]:
    """Yield a new private folder that replaces ``target`` when the block ends.

    Its manifest is written then.
    """
    with replace_folder_atomically(target) as folder:
        yield folder
        manifest = {"evalkit_export": 1, "format": format_name, "files": _list_files(folder)}
        create_private_file(folder / MANIFEST_NAME, json.dumps(manifest, indent=1) + "\n")


def is_earlier_export(folder: Path) -> bool:
    """Return True if a folder contains only one earlier export."""
    try:
        manifest = json.loads((folder / MANIFEST_NAME).read_text("utf-8"))
        is_manifest = isinstance(manifest, dict) and manifest.get("evalkit_export") == 1
        return is_manifest and manifest["files"] == [name for name in _list_files(folder) if name != MANIFEST_NAME]
    except (OSError, ValueError, KeyError):
        return False


def _list_files(folder: Path) -> list[str]:
    """List all files below a folder, and its empty or linked folders.

    No export writes such folders.
    """
    paths = sorted(
        path for path in folder.rglob("*") if not path.is_dir() or path.is_symlink() or not any(path.iterdir())
    )
    return [path.relative_to(folder).as_posix() for path in paths]
