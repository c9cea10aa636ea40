"""Discovery of a run's documents, and assignment of their names (doc_ids).

A document is identified by the SHA-256 of its bytes. It gets its ``doc_id`` once, with the inputs sorted: the file's
stem in safe characters, followed by eight hex digits of the hash if another document has that stem already.
"""

import hashlib
import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self, TypeAlias

from evalkit.documents.input_files import NO_INPUT_CODE, SkippedFile, list_attached_files, list_input_files
from evalkit.documents.source_file import hash_source_file
from evalkit.errors import DocumentError, EvalkitError, UsageError

#: The inputs of a run: one path of a file or folder, or several.
InputPaths: TypeAlias = Path | str | Iterable[Path | str]

#: Maximum characters of a file's stem in a doc_id, which becomes part of case ids and file names.
_MAX_STEM_LENGTH = 120


@dataclass(frozen=True)
class SourceDocument:
    """Input document of a run: its doc_id, path and SHA-256."""

    doc_id: str
    path: Path
    """The absolute path of the file."""
    sha256: str | None
    """The SHA-256 of the file's bytes; None if they cannot be read, for the reason in ``read_error``."""
    read_error: DocumentError | None = None


@dataclass(frozen=True)
class DiscoveredDocuments:
    """Documents found at the paths of a run, with problems and duplicates."""

    sources: tuple[SourceDocument, ...]
    problems: tuple[EvalkitError, ...]
    """The errors of the paths at which no document was found."""
    duplicate_paths_and_doc_ids: tuple[tuple[Path, str], ...]
    """Files with the same bytes as another document: the file's path, and the doc_id of that document."""
    skipped: tuple[SkippedFile, ...] = ()
    """Files in folders and mails that are not read because of their format."""

    def leave_out_skipped(self, run_inputs: Iterable[Path | str | None]) -> Self:
        """Return a copy that does not count the run's other input files as skipped."""
        input_paths = [Path(os.path.abspath(run_input)) for run_input in run_inputs if run_input is not None]
        return replace(
            self,
            skipped=tuple(
                skipped_file
                for skipped_file in self.skipped
                if not any(map(Path(os.path.abspath(skipped_file.file)).is_relative_to, input_paths))
            ),
        )


def discover_documents(
    paths: InputPaths,
    doc_id_by_sha256: Mapping[str, str],
    reserved_ids: Iterable[str] = (),
    *,
    output_root: Path | str | None = None,
    yes: bool = False,
    settle_seconds: float = 0,
) -> DiscoveredDocuments:
    """Find the documents at these paths, and assign each a doc_id.

    ``doc_id_by_sha256`` has the documents of earlier runs, which keep their doc_ids. No new document gets one of the
    ``reserved_ids``. ``yes``: accept ``/``, the home folder and the output folder as inputs. ``settle_seconds``: skip
    files that changed that recently, because they may be half copied; then there may be no document at all. UsageError
    for such a folder without ``yes``, if no path is given, or if none of the paths contains a document.
    """
    skipped: list[SkippedFile] = []
    input_paths = list_paths(paths)
    if not yes:
        _refuse_broad_folders(input_paths, output_root)
    paths_of_files, problems = _find_files(input_paths, skipped, settle_seconds)
    if settle_seconds:
        problems = [problem for problem in problems if problem.code != NO_INPUT_CODE]
    if not paths_of_files and (problems or not settle_seconds or not input_paths):
        raise (
            problems[0]
            if problems
            else UsageError(
                "no input file was named", code=NO_INPUT_CODE, remedy="Name PDF files, or folders that contain them."
            )
        )
    id_by_hash = dict(doc_id_by_sha256)
    taken_ids = {*doc_id_by_sha256.values(), *reserved_ids}
    sources: list[SourceDocument] = []
    copies: list[tuple[Path, str]] = []
    seen_hashes: set[str] = set()
    for path in paths_of_files:
        sha256, read_error = _hash_file(path)
        document_hash = sha256 or hashlib.sha256(f"unreadable:{path}".encode(errors="replace")).hexdigest()
        if document_hash in seen_hashes:
            copies.append((path, id_by_hash[document_hash]))
            continue
        seen_hashes.add(document_hash)
        if document_hash not in id_by_hash:
            id_by_hash[document_hash] = _create_doc_id(path, document_hash, taken_ids)
            taken_ids.add(id_by_hash[document_hash])
        sources.append(SourceDocument(id_by_hash[document_hash], path, sha256, read_error))
    return DiscoveredDocuments(tuple(sources), tuple(problems), tuple(copies), tuple(skipped))


def list_paths(paths: InputPaths) -> list[Path | str]:
    """Return the caller's paths as a list, also for a single text or Path.

    >>> list_paths("records/"), list_paths(["a.pdf", "b.pdf"])
    (['records/'], ['a.pdf', 'b.pdf'])
    """
    return [paths] if isinstance(paths, str | Path) else list(paths)


def _refuse_broad_folders(paths: Iterable[Path | str], output_root: Path | str | None) -> None:
    """Raise UsageError for ``/``, the home folder and the output folder.

    Everything below them would be read and sent to the model, and nobody means that.
    """
    broad_folders = {Path("/"): "the whole disk"}
    with suppress(RuntimeError):  # in a container, the user may have no home folder
        broad_folders[Path.home().resolve()] = "your home folder"
    if isinstance(output_root, Path):
        broad_folders[output_root.resolve()] = "the output folder itself"
    for path in paths:
        try:
            description = broad_folders.get(Path(path).resolve())
        except (RuntimeError, ValueError):  # a loop of links or a null character, which is reported as a missing file
            continue
        if description:
            raise UsageError(
                f"the input {path} is {description}: every document below it would be read",
                code="READER-BROAD",
                remedy="Name the folder with the documents; run and extract take --yes (in Python yes=True) if you mean it.",
            )


def _hash_file(path: Path) -> tuple[str | None, DocumentError | None]:
    try:
        str(path).encode()
        return hash_source_file(path), None
    except UnicodeEncodeError:
        name = encode_path_as_text(path.name)
        return None, DocumentError(
            f"the name of {name} or of its folder is not valid text",
            code="READER-NAME",
            remedy="Rename the file or folder, and run the document again.",
        )
    except DocumentError as error:
        return None, error


def _find_files(
    paths: Iterable[Path | str], skipped: list[SkippedFile], settle_seconds: float
) -> tuple[Sequence[Path], list[EvalkitError]]:
    unique_paths: dict[Path, None] = {}
    problems: list[EvalkitError] = []
    for path in paths:
        try:
            input_paths = list_input_files([Path(path)], on_problem=problems.append, on_skipped=skipped.append)
            for input_path in (Path(os.path.abspath(input_path)) for input_path in input_paths):
                if _is_being_written(input_path, settle_seconds):
                    skipped.append(
                        SkippedFile(
                            str(input_path), f"it changed in the last {settle_seconds:g} s; the next run reads it"
                        )
                    )
                    continue
                unique_paths |= dict.fromkeys((input_path, *list_attached_files(input_path, skipped.append)))
        except UsageError as error:
            problems.append(error)
    return sorted(unique_paths), problems


def _is_being_written(path: Path, settle_seconds: float) -> bool:
    """Return True if a file changed so recently that it may be half copied."""
    with suppress(OSError):  # reading it says why
        return abs(time.time() - path.stat().st_mtime) < settle_seconds
    return False


def _create_doc_id(path: Path, document_hash: str, taken_ids: set[str]) -> str:
    stem = sanitise_file_stem(path)
    if stem not in taken_ids:
        return stem
    # Another file may be named like this stem with eight digits: then more digits of the hash are used.
    return next(
        candidate for digits in range(8, 65, 8) if (candidate := f"{stem}-{document_hash[:digits]}") not in taken_ids
    )


def sanitise_file_stem(path: Path | str) -> str:
    """Reduce a file's stem to letters, digits, ``-`` and ``_``.

    Each run of other characters becomes one ``_``; a stem without letters and digits becomes ``document``.

    >>> sanitise_file_stem("Müller, Jane (2).pdf"), sanitise_file_stem("….pdf")
    ('M_ller_Jane_2_', 'document')
    """
    safe_stem = re.sub(r"[^A-Za-z0-9_-]+", "_", Path(path).stem)[:_MAX_STEM_LENGTH]
    return safe_stem if re.search(r"[A-Za-z0-9]", safe_stem) else "document"


def encode_path_as_text(path: Path | str) -> str:
    """Return a path as valid Unicode text; undecodable bytes become ``?``."""
    return str(path).encode(errors="replace").decode()
