"""Which documents a run is about, and what they are called.

A document is its SHA-256. Its ``doc_id`` is given once, inputs sorted: the file's stem in safe characters, and with
eight hex digits of the hash behind it where another document has that stem already.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from evalkit.documents.file import digest
from evalkit.documents.ingest import find_pdfs
from evalkit.errors import DocumentError, EvalkitError, UsageError

_LONGEST = 120
"""Characters of a stem that a doc_id keeps: case ids and file names are made of it."""


@dataclass(frozen=True)
class Source:
    """One document of a run."""

    doc_id: str
    path: Path
    """Absolute."""
    sha256: str | None
    """None where the bytes cannot be had; ``fault`` says why."""
    fault: DocumentError | None = None


@dataclass(frozen=True)
class Found:
    """What the given paths hold."""

    sources: tuple[Source, ...]
    problems: tuple[EvalkitError, ...]
    """Paths that hold nothing."""
    copies: tuple[tuple[Path, str], ...]
    """Files with the same bytes as another: path, doc_id of that one."""


def find(paths: Iterable[Path | str], known: Mapping[str, str], reserved: Iterable[str] = ()) -> Found:
    """The documents under these paths. ``known`` maps the SHA-256 of earlier documents to their doc_id.

    No new document is called by a ``reserved`` name.

    UsageError where no path was given or none holds a document.
    """
    files, problems = _files(paths)
    if not files:
        raise (
            problems[0]
            if problems
            else UsageError(
                "no PDF was named", code="READER-NO-PDFS", remedy="Name PDF files or folders with PDF files."
            )
        )
    named = dict(known)
    taken = {*known.values(), *reserved}
    sources: list[Source] = []
    copies: list[tuple[Path, str]] = []
    seen: set[str] = set()
    for path in files:
        sha256, fault = _bytes_of(path)
        identity = sha256 or hashlib.sha256(f"unreadable:{path}".encode(errors="replace")).hexdigest()
        if identity in seen:
            copies.append((path, named[identity]))
            continue
        seen.add(identity)
        if identity not in named:
            named[identity] = _new_id(path, identity, taken)
            taken.add(named[identity])
        sources.append(Source(named[identity], path, sha256, fault))
    return Found(tuple(sources), tuple(problems), tuple(copies))


def _bytes_of(path: Path) -> tuple[str | None, DocumentError | None]:
    """The hash of the file's bytes, or why the document cannot be had."""
    try:
        str(path).encode()
        return digest(path), None
    except UnicodeEncodeError:
        name = path.name.encode(errors="replace").decode()
        return None, DocumentError(
            f"the name of {name} or of its folder is not valid text",
            code="READER-NAME",
            remedy="Rename it and run it again.",
        )
    except DocumentError as error:
        return None, error


def _files(paths: Iterable[Path | str]) -> tuple[Sequence[Path], list[EvalkitError]]:
    files: dict[Path, None] = {}
    problems: list[EvalkitError] = []
    for path in paths:
        try:
            found = find_pdfs([Path(path)], on_problem=problems.append)
            files |= dict.fromkeys(Path(os.path.abspath(file)) for file in found)
        except UsageError as error:
            problems.append(error)
    return sorted(files), problems


def _new_id(path: Path, identity: str, taken: set[str]) -> str:
    stem = stem_of(path)
    if stem not in taken:
        return stem
    # A file may be named like another one's stem and hash: then more of the hash.
    return next(name for digits in range(8, 65, 8) if (name := f"{stem}-{identity[:digits]}") not in taken)


def stem_of(path: Path | str) -> str:
    """The file's stem in letters, digits, ``-`` and ``_``; any other run of characters is one ``_``.

    >>> stem_of("Müller, Jane (2).pdf"), stem_of("….pdf")
    ('M_ller_Jane_2_', 'document')
    """
    safe = re.sub(r"[^A-Za-z0-9_-]+", "_", Path(path).stem)[:_LONGEST]
    return safe if re.search(r"[A-Za-z0-9]", safe) else "document"
