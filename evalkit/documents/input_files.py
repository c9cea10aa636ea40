"""Selection of the files to read: from paths, folders and mails."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from evalkit.documents.mupdf import find_unread_format
from evalkit.documents.readers import FORMATS, SUFFIXES, find_input_format
from evalkit.documents.source_file import find_mail_path, read_mail, read_source_file
from evalkit.errors import DocumentError, UsageError

#: Code of the error that there is no file to read.
NO_INPUT_CODE = "READER-NO-PDFS"
#: The deepest nesting of mails in mails whose attachments are listed.
_MAX_MAIL_DEPTH = 5
_DETECTION_BYTES = 65_536


class SkippedFile(NamedTuple):
    """File in a folder or a mail that is not read because of its format."""

    file: str
    """Path of the file; that of an attachment is below its mail."""
    reason: str
    """Sentence for a person: why it is not read."""


def list_input_files(
    paths: Iterable[Path],
    *,
    on_problem: Callable[[UsageError], None] | None = None,
    on_skipped: Callable[[SkippedFile], None] | None = None,
) -> list[Path]:
    """List the files to read at paths of files and folders, each once and sorted.

    A file that is named itself is listed whatever its ending. From a folder, all files at any depth whose ending belongs
    to an input format (in capitals or small letters) are listed, and PDFs whatever their ending, but no hidden files and
    nothing in hidden folders; ``on_skipped`` is called for each other file. UsageError for a path that does not exist,
    is a pipe or a device, and for a folder without such files. Inside a folder, subfolders that cannot be listed, links
    that lead nowhere or out of the folder, pipes and devices are skipped, each with a call of ``on_problem``.
    """
    files_by_real_path: dict[Path, Path] = {}
    for path in paths:
        if path.is_dir():
            found_files = list(_walk_folder(path, on_problem or (lambda _: None), on_skipped or (lambda _: None)))
            if not found_files:
                raise UsageError(
                    f"no {', '.join(input_format.name for input_format in FORMATS.values())} in the folder {path}",
                    code=NO_INPUT_CODE,
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


def list_attached_files(path: Path, on_skipped: Callable[[SkippedFile], None], depth: int = 1) -> Iterator[Path]:
    """Iterate over the files to read in the mail at ``path``, at any depth.

    Nothing if the file is no mail, or cannot be read; reading it then says why. ``on_skipped`` is called for each
    attachment of another format.
    """
    try:
        first_bytes = read_source_file(path) if find_mail_path(path) else _read_first_bytes(path)
        if find_input_format(first_bytes, path.name) is not FORMATS["mail"]:
            return
        attachments = read_mail(path).attachments
    except DocumentError:
        return
    for name, attachment in attachments.items():
        attached_path = path / name
        if depth < _MAX_MAIL_DEPTH and _is_input_file(name, attachment):
            yield attached_path
            yield from list_attached_files(attached_path, on_skipped, depth + 1)
        else:
            on_skipped(_build_skipped_file(attached_path, attachment))


def _is_input_file(name: str, content: bytes) -> bool:
    """Return True if a file's ending or its content is of a format that is read.

    Any table or calendar would pass for text: files without an ending of text are not read as such.
    """
    input_format = find_input_format(content, name)
    return name.lower().endswith(SUFFIXES) or (input_format is not None and not input_format.has_weak_signature)


def _build_skipped_file(path: Path, first_bytes: bytes) -> SkippedFile:
    unread_format = find_unread_format(first_bytes)
    return SkippedFile(str(path), f"{unread_format['name']}. {unread_format['remedy']}")


def _walk_folder(
    folder: Path, on_problem: Callable[[UsageError], None], on_skipped: Callable[[SkippedFile], None]
) -> Iterator[Path]:
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
        visible_names = sorted(name for name in file_names if not name.startswith("."))
        for file in (Path(current_folder, name) for name in visible_names):
            is_named_like_input = file.name.lower().endswith(SUFFIXES)
            if problem := _find_link_problem(file, real_root):
                if is_named_like_input:
                    on_problem(problem)
                else:
                    on_skipped(SkippedFile(str(file), problem.message))
            elif is_named_like_input or FORMATS["pdf"].has_signature(_read_first_bytes(file)):
                yield file
            else:
                on_skipped(_build_skipped_file(file, _read_first_bytes(file)))


def _find_link_problem(file: Path, real_root: Path) -> UsageError | None:
    """Return why a folder's entry is no file to read; None for a file inside it."""
    if not file.is_file():
        if file.exists():
            return _build_file_skipped_error(
                f"{file} is a pipe or device, not a file", "Save the document to a file first."
            )
        return _build_file_skipped_error(f"the link {file} leads nowhere")
    return None if file.resolve().is_relative_to(real_root) else _build_outside_link_error(file)


def _read_first_bytes(file: Path) -> bytes:
    with suppress(OSError), file.open("rb") as stream:
        return stream.read(_DETECTION_BYTES)
    return b""


def _build_outside_link_error(link: Path) -> UsageError:
    return _build_file_skipped_error(
        f"the link {link} leads out of its folder", "If the file behind the link shall be read too, give its own path."
    )


def _build_file_skipped_error(
    problem: str, remedy: str = "Repair this folder or link and run again; the other files were read."
) -> UsageError:
    return UsageError(problem, code="READER-SKIPPED", remedy=remedy)
