"""The files to read, found from paths of files and folders."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from evalkit.documents.readers import FORMATS, SUFFIXES
from evalkit.errors import UsageError


def list_input_files(paths: Iterable[Path], *, on_problem: Callable[[UsageError], None] | None = None) -> list[Path]:
    """List the files to read at paths of files and folders, each once and sorted.

    A file that is named itself is listed whatever its ending. From a folder, all files at any depth whose ending belongs
    to an input format (in capitals or small letters) are listed, but no hidden files and nothing in hidden folders.
    UsageError for a path that does not exist, is a pipe or a device, and for a folder without such files. Inside a
    folder, subfolders that cannot be listed, links that lead nowhere or out of the folder, pipes and devices are
    skipped, each with a call of ``on_problem``.
    """
    files_by_real_path: dict[Path, Path] = {}
    for path in paths:
        if path.is_dir():
            found_files = list(_walk_folder(path, on_problem or (lambda _: None)))
            if not found_files:
                raise UsageError(
                    f"no {', '.join(input_format.name for input_format in FORMATS.values())} in the folder {path}",
                    code="READER-NO-PDFS",
                    remedy=f"Name a folder with {', '.join(SUFFIXES)} files, or the files themselves.",
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
    """Iterate over the visible files in a folder and its subfolders.

    Links to folders inside ``folder`` are followed, but each real folder is visited once, so that loops end. Links that
    lead out of ``folder`` are skipped: a person who may put links there need not be allowed to read their targets.
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
        f"the link {link} leads out of its folder", "If the file behind the link shall be read too, give its own path."
    )


def _build_file_skipped_error(
    problem: str, remedy: str = "Repair this folder or link and run again; the other files were read."
) -> UsageError:
    return UsageError(problem, code="READER-SKIPPED", remedy=remedy)
