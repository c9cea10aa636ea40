"""Find the files that given paths mean."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from evalkit.documents.readers import FORMATS, SUFFIXES
from evalkit.errors import UsageError


def list_input_files(paths: Iterable[Path], *, on_problem: Callable[[UsageError], None] | None = None) -> list[Path]:
    """List the files that are meant, each once, sorted by path.

    A named file is taken whatever its ending; a folder gives its files with an ending that some format has, in any case,
    at any depth, without hidden files and folders. UsageError for a path that does not exist and for a folder without
    such files. Folders inside that cannot be listed, links that lead nowhere or out of the folder, pipes and devices go
    to ``on_problem``.
    """
    files_by_real_path: dict[Path, Path] = {}
    for path in paths:
        if path.is_dir():
            found_files = list(_walk_folder(path, on_problem or (lambda _: None)))
            if not found_files:
                raise UsageError(
                    f"no {' or '.join(input_format.name for input_format in FORMATS.values())} in the folder {path}",
                    code="READER-NO-PDFS",
                    remedy=f"Name a folder with {' or '.join(SUFFIXES)} files, or the files themselves.",
                )
        elif path.is_file():
            found_files = [path]
        elif path.exists():
            raise UsageError(
                f"{path} is a pipe or device", code="READER-MISSING", remedy="Save the document to a file first."
            )
        else:
            raise UsageError(f"{path} does not exist", code="READER-MISSING", remedy="Check the path.")
        for file in found_files:
            files_by_real_path.setdefault(file.resolve(), file)
    return sorted(files_by_real_path.values())


def _walk_folder(folder: Path, on_problem: Callable[[UsageError], None]) -> Iterator[Path]:
    """Walk a folder's files. Links to folders inside it are followed, each real folder once, so that loops end.

    A link that leads out of the folder is left out: who may put files there need not be allowed to read all others.
    """
    visited: set[Path] = set()
    real_root = folder.resolve()

    for current_folder, subfolders, file_names in os.walk(
        folder,
        followlinks=True,
        onerror=lambda error: on_problem(_build_file_skipped_error(f"the folder {error.filename} cannot be listed")),
    ):
        real_folder = Path(current_folder).resolve()
        if real_folder in visited or not real_folder.is_relative_to(real_root):
            if real_folder not in visited:
                on_problem(_build_outside_link_error(Path(current_folder)))
            subfolders.clear()
            continue
        visited.add(real_folder)
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        visible_names = sorted(
            name for name in file_names if not name.startswith(".") and name.lower().endswith(SUFFIXES)
        )
        for file in (Path(current_folder, name) for name in visible_names):
            if not file.is_file():
                if file.exists():
                    on_problem(
                        _build_file_skipped_error(
                            f"{file} is a pipe or device, not a file", "Save the document to a file first."
                        )
                    )
                elif file.is_symlink():
                    on_problem(_build_file_skipped_error(f"the link {file} leads nowhere"))
            elif file.resolve().is_relative_to(real_root):
                yield file
            else:
                on_problem(_build_outside_link_error(file))


def _build_outside_link_error(link: Path) -> UsageError:
    return _build_file_skipped_error(
        f"the link {link} leads out of its folder", "Name the file that it leads to, if that is meant too."
    )


def _build_file_skipped_error(problem: str, remedy: str = "Fix it and run again; the others were read.") -> UsageError:
    return UsageError(problem, code="READER-SKIPPED", remedy=remedy)
