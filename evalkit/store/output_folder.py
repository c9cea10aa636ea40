"""The protocol of an output folder's files, and what every kind of folder shares.

:func:`~evalkit.store.folder_factory.open_output_folder` opens one on this machine or in a bucket.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from evalkit.core.gc_pause import pause_gc
from evalkit.errors import StoreError, UsageError
from evalkit.store.canonical_json import encode_canonical_json
from evalkit.store.file_names import NAME_PART_PATTERN, NEUTRAL_NAMES, OUTPUT_MARKERS

_FILE_NAME_PATTERN = re.compile(f"{NAME_PART_PATTERN.pattern}(?:/{NAME_PART_PATTERN.pattern})*")


class OutputFolder(ABC):
    """The files of one output folder. Names are relative to it, with forward slashes.

    Every method raises StoreError if the folder cannot be read or written.
    """

    root: Path | str
    """The folder's path, or the URL of a folder in a bucket."""
    database_url: str | None
    """The PostgreSQL database in the settings; None for ``evalkit.sqlite``."""

    @abstractmethod
    def has_folder(self, subfolder: str | None = None) -> bool:
        """Tell whether the output folder exists, or a folder of that name in it."""

    @abstractmethod
    def has_file(self, name: str) -> bool:
        """Tell whether there is such a file."""

    @abstractmethod
    def list_file_and_folder_names(self, subfolder: str | None = None) -> set[str]:
        """List the bare names in the output folder, or in a folder of it."""

    @abstractmethod
    def list_json_files(self, subfolder: str) -> list[str]:
        """List the JSON files of a folder, sorted, as names for ``read_json``."""

    @abstractmethod
    def list_subfolder_names(self, subfolder: str) -> list[str]:
        """List the folders in a folder by their bare names, sorted."""

    @abstractmethod
    def read_bytes(self, name: str, max_bytes: int | None = None) -> bytes:
        """Read a file, or its first ``max_bytes``. NotFound if there is none."""

    def read_json(
        self,
        name: str,
        *,
        max_schema_version: int = 1,
        object_hook: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
    ) -> dict[str, Any]:
        """Read the JSON object of a file. NotFound if there is none.

        StoreError if it is damaged or written by a newer evalkit. ``object_hook`` is called with every object in the
        file as soon as it is read, and returns its replacement.

        StoreError if it is torn or written by a newer evalkit. ``object_hook`` is called with every object in the file
        as soon as it is read, and gives what takes its place.
        """
        return parse_stored_json(
            name, self.read_bytes(name), max_schema_version=max_schema_version, object_hook=object_hook
        )

    @abstractmethod
    def iterate_files_recursively(self, subfolder: str) -> Iterator[tuple[str, bytes]]:
        """Iterate over the files in and below a folder: any name, and its bytes."""

    @abstractmethod
    def get_modification_time(self, name: str) -> float | None:
        """Return when a file was written (seconds since 1970); None if there is none."""

    def write_json(self, name: str, value: Any, *, compact: bool = False) -> None:
        """Write a JSON file whole or not at all, replacing what was there."""
        self._write_atomically(name, encode_canonical_json(value) if compact else _encode_indented_json(value))

    def write_text(self, name: str, text: str) -> None:
        """Write a text file whole or not at all, replacing what was there."""
        self._write_atomically(name, text.encode())

    def create_json_if_absent(self, name: str, value: Any) -> bool:
        """Write a new JSON file. False, and nothing changed, if the name is taken."""
        return self._create_atomically_if_absent(name, _encode_indented_json(value))

    @abstractmethod
    def remove_file(self, name: str) -> bool:
        """Remove a file, or a link itself, and return whether there was one."""

    @abstractmethod
    def remove_folder(self, name: str) -> list[str]:
        """Remove a folder with its content, and list the files that were there."""

    @abstractmethod
    def hold_run_lock(self) -> AbstractContextManager[None]:
        """Hold the folder for one run. UsageError if another run holds it."""

    @abstractmethod
    def hold_write_lock(self, document_key: str | None = None) -> AbstractContextManager[None]:
        """Hold the write lock for one document, or for the whole folder.

        Not reentrant. See :func:`evalkit.review.write_lock.hold_write_lock`.
        """

    @abstractmethod
    def _write_atomically(self, name: str, content: bytes) -> None:
        """Write a file whole or not at all, replacing what was there."""

    @abstractmethod
    def _create_atomically_if_absent(self, name: str, content: bytes) -> bool:
        """Write a new file whole or not at all; False if the name is taken."""


def require_evalkit_output_folder(output_folder: OutputFolder) -> None:
    """Raise UsageError if the folder does not exist, or is not an output folder.

    An empty folder is accepted. A typing error would put a database among other people's files.
    """
    remedy = "Name the output folder of a run, or create one with `evalkit run`."
    if not output_folder.has_folder():
        raise UsageError(f"there is no output folder {output_folder.root}", code="OUTPUT-FOLDER", remedy=remedy)
    names_in_root = output_folder.list_file_and_folder_names()
    foreign_names = [
        name for name in names_in_root - NEUTRAL_NAMES if not name.startswith(".nfs")
    ]  # .nfs…: removed, but open elsewhere
    if foreign_names and OUTPUT_MARKERS.isdisjoint(names_in_root):
        raise UsageError(
            f"{output_folder.root} is not an output folder of evalkit", code="OUTPUT-FOLDER", remedy=remedy
        )


def list_unrecognised_names(output_folder: OutputFolder, subfolder: str) -> list[str]:
    """List the names in a folder that evalkit ignores, sorted."""
    return sorted(
        name for name in output_folder.list_file_and_folder_names(subfolder) if not NAME_PART_PATTERN.fullmatch(name)
    )


def list_numbered_files_or_raise_on_gap(
    output_folder: OutputFolder, subfolder: str, build_file_name: Callable[[int], str]
) -> list[str]:
    """List the files of a folder whose JSON files are numbered from 1.

    StoreError if one is missing, or does not belong there.
    """
    names = sorted(
        output_folder.list_json_files(subfolder), key=lambda name: (len(name), name)
    )  # the ten-thousandth has a digit more
    for number, name in enumerate(names, 1):
        if name != build_file_name(number):
            raise StoreError(
                f"{build_file_name(number)} is missing, but {name} exists",
                code="STORE-TORN",
                remedy=f"Restore {subfolder}/ from a backup; its files are numbered from 1, and nothing else belongs there.",
            )
    return names


def split_and_validate_file_name(name: str) -> list[str]:
    """Split a file's name. StoreError for one that could leave the folder."""
    if not _FILE_NAME_PATTERN.fullmatch(name):
        raise StoreError(
            "a file name in the output folder has forbidden characters, or is too long",
            code="STORE-NAME",
            remedy="Names consist of letters, digits, '-', '_' and '.'.",
        )
    return name.split("/")


def parse_stored_json(
    file_name: str,
    content: bytes,
    *,
    max_schema_version: int,
    object_hook: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """Parse a file's content.

    Arguments and StoreError as in ``OutputFolder.read_json``.
    """
    try:
        with pause_gc():
            stored = json.loads(content, object_hook=object_hook)
        stored_version = stored["schema_version"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise StoreError(
            f"{file_name} is not one of evalkit's JSON files", code="STORE-TORN", remedy="Restore it from a backup."
        ) from error
    if type(stored_version) is not int or not 0 <= stored_version <= max_schema_version:
        shown_version = (
            stored_version if type(stored_version) is int and abs(stored_version) < 2**31 else "that is no number"
        )  # never a file's words
        raise StoreError(
            f"{file_name} has schema version {shown_version}; this evalkit reads up to {max_schema_version}",
            code="STORE-NEWER",
            remedy="Install the evalkit that wrote it.",
        )
    return dict(stored)


def add_trailing_newline(content: bytes) -> bytes:
    """End the last line of a file's text."""
    return content if content.endswith(b"\n") else content + b"\n"


def build_run_lock_held_error(root: Path | str) -> UsageError:
    """Build the error for a folder that another run holds."""
    return UsageError(
        f"another run is writing to {root}",
        code="OUTPUT-BUSY",
        remedy="Wait until it has ended, or choose another folder with --output.",
    )


def _encode_indented_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False).encode()
