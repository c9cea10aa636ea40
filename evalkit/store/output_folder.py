"""Interface of an output folder, and code shared by its implementations.

:func:`~evalkit.store.output_location.open_output_folder` opens an output folder on this machine or in a bucket.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from pydantic_core import from_json
from typing_extensions import override

from evalkit.core.gc_pause import pause_gc
from evalkit.errors import StoreError, UsageError
from evalkit.store.canonical_json import StoredModel, encode_canonical_json, parse_stored_record
from evalkit.store.change_chain import ChangeRecorder, is_recorded
from evalkit.store.file_names import (
    GROUND_TRUTH_FOLDER,
    NAME_PART_PATTERN,
    NETWORK_DRIVE_PREFIX,
    NEUTRAL_NAMES,
    OUTPUT_MARKERS,
)

_FILE_NAME_PATTERN = re.compile(f"{NAME_PART_PATTERN.pattern}(?:/{NAME_PART_PATTERN.pattern})*")
#: Escape of half a surrogate pair; evalkit writes characters as they are.
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")


class FileVersion(NamedTuple):
    """Size in bytes and version of a stored file; new content has a new version."""

    size: int
    version: str


class OutputFolder(ABC):
    """File access to one output folder; file names are relative to it, with slashes.

    Every method raises StoreError if the folder cannot be read or written.
    """

    root: Path | str
    """The path of a local folder, or the URL of a folder in a bucket."""
    database_url: str | None
    """The URL of the PostgreSQL database that the settings name; None if the database is ``evalkit.sqlite``."""

    @abstractmethod
    def has_folder(self, subfolder: str | None = None) -> bool:
        """Return True if the output folder exists, or ``subfolder`` in it if given."""

    @abstractmethod
    def has_file(self, name: str) -> bool:
        """Return True if the output folder has a file of this name."""

    @abstractmethod
    def list_file_and_folder_names(self, subfolder: str | None = None) -> set[str]:
        """Return the names (without path) in ``subfolder`` or, by default, in the root."""

    def list_json_files(self, subfolder: str) -> list[str]:
        """List the JSON files in ``subfolder``, sorted, as names that ``read_json`` takes."""
        return sorted(
            f"{subfolder}/{name}"
            for name in self.list_file_and_folder_names(subfolder)
            if name.endswith(".json") and NAME_PART_PATTERN.fullmatch(name)
        )

    @abstractmethod
    def list_subfolder_names(self, subfolder: str) -> list[str]:
        """List the names (without path) of the folders in ``subfolder``, sorted."""

    @abstractmethod
    def read_bytes(self, name: str, max_bytes: int | None = None) -> bytes:
        """Read a file, or only its first ``max_bytes``. NotFound if the file is missing."""

    def read_json(
        self,
        name: str,
        *,
        max_schema_version: int = 1,
        object_hook: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
    ) -> dict[str, Any]:
        """Read a file that contains one JSON object. NotFound if the file is missing.

        StoreError if the file is damaged or written by a newer evalkit. ``object_hook`` is called with every object in
        the file as soon as it is read, and returns its replacement.
        """
        return parse_stored_json(
            name, self.read_bytes(name), max_schema_version=max_schema_version, object_hook=object_hook
        )

    def iterate_files_recursively(self, subfolder: str) -> Iterator[tuple[str, bytes]]:
        """Yield the name and the bytes of every file in a folder and its subfolders.

        The files may have names that evalkit itself would not choose.
        """
        yield from ((name, self.read_listed_file(name)) for name in sorted(self.map_file_versions(subfolder)))

    @abstractmethod
    def map_file_versions(self, subfolder: str | None = None) -> dict[str, FileVersion]:
        """Map every file below a folder, by default the root, to its version.

        Links are left out. The files may have names that evalkit itself would not choose.
        """

    @abstractmethod
    def read_listed_file(self, name: str) -> bytes:
        """Read a file that ``map_file_versions`` named. NotFound if it is missing now."""

    @abstractmethod
    def get_modification_time(self, name: str) -> float | None:
        """Return when a file was last written (seconds since 1970); None if it is missing."""

    @cached_property
    def changes(self) -> ChangeRecorder:
        """The recorder of changes to this folder."""
        return ChangeRecorder(self)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the recorder: another process records its own changes."""
        return {name: value for name, value in vars(self).items() if name != "changes"}

    def write_json(self, name: str, value: Any, *, compact: bool = False, is_recorded: bool = True) -> None:
        """Write a JSON file atomically, replacing an existing file of this name.

        ``is_recorded`` is False for a change that the chain of changes does not cover.
        """
        content = encode_canonical_json(value) if compact else encode_indented_json(value)
        if is_recorded:
            self.write_bytes(name, content)
        else:
            self._write_atomically(name, content)

    def write_text(self, name: str, text: str) -> None:
        """Write a text file atomically, replacing an existing file of this name."""
        self.write_bytes(name, text.encode())

    def write_bytes(self, name: str, content: bytes) -> None:
        """Write a file atomically, replacing an existing file of this name."""
        if not is_recorded(name, content):
            self._write_atomically(name, content)
            return
        split_and_validate_file_name(name)
        self.changes.announce((name,), content)
        self._write_atomically(name, content)
        self.changes.add(name, content)

    def create_json_if_absent(self, name: str, value: Any) -> bool:
        """Create a JSON file atomically; return False, changing nothing, if it exists."""
        content = encode_indented_json(value)
        if not is_recorded(name, content):
            return self._create_atomically_if_absent(name, content)
        split_and_validate_file_name(name)
        self.changes.announce((name,), content)
        is_created = self._create_atomically_if_absent(name, content)
        if is_created:
            self.changes.add(name, content)
        return is_created

    def create_link_if_absent(self, name: str, content: bytes) -> bool:
        """Create the file of a link in the chain of changes; return False if it exists."""
        return self._create_atomically_if_absent(name, content)

    def remove_file(self, name: str) -> bool:
        """Remove a file (a link itself, not its target); return False if it is missing."""
        if not is_recorded(name) or not self.has_file(name):
            return self._remove_file(name)
        content = self.read_bytes(name) if name.startswith(GROUND_TRUTH_FOLDER) else None
        if not is_recorded(name, content):
            return self._remove_file(name)
        self.changes.announce((name,))
        is_removed = self._remove_file(name)
        self.changes.add(name, None)
        return is_removed

    @abstractmethod
    def remove_folder(self, name: str) -> list[str]:
        """Remove a folder with its content, and list the names of the removed files."""

    @contextmanager
    def hold_run_lock(self, *, saves_in_steps: bool = False) -> Iterator[None]:
        """Hold the folder's run lock. UsageError if another run holds it.

        A backup waits for the whole block or, with ``saves_in_steps``, for the blocks of ``hold_save_lock`` in it.
        """
        save_lock = nullcontext() if saves_in_steps else self.hold_save_lock()
        with self._acquire_run_lock(), save_lock, self.changes.hold_scope(is_run=True):
            yield

    @abstractmethod
    def hold_save_lock(self, *, for_backup: bool = False) -> AbstractContextManager[None]:
        """Hold the save lock, so that a backup has all files saved meanwhile or none.

        Savers do not wait for each other, only for a backup. The write lock may be taken inside, not outside.
        """

    @contextmanager
    def hold_write_lock(self, document_key: str | None = None) -> Iterator[None]:
        """Hold the write lock of one document or, without a key, of the whole folder.

        Not reentrant. See :func:`evalkit.review.write_lock.hold_case_write_lock`.
        """
        with self._acquire_write_lock(document_key), self.changes.hold_scope():
            yield

    @abstractmethod
    def _acquire_run_lock(self) -> AbstractContextManager[None]:
        """Hold the run lock, as ``hold_run_lock`` does, without recording changes."""

    @abstractmethod
    def _acquire_write_lock(self, document_key: str | None) -> AbstractContextManager[None]:
        """Hold a write lock, as ``hold_write_lock`` does, without recording changes."""

    @abstractmethod
    def _remove_file(self, name: str) -> bool:
        """Remove a file (a link itself, not its target); return False if it is missing."""

    @abstractmethod
    def _write_atomically(self, name: str, content: bytes) -> None:
        """Write a file atomically, replacing an existing file of this name."""

    @abstractmethod
    def _create_atomically_if_absent(self, name: str, content: bytes) -> bool:
        """Create a file atomically; return False, changing nothing, if it exists."""


class ReadOnlyFolder(OutputFolder):
    """Read-only view of an output folder."""

    def __init__(self, output_folder: OutputFolder) -> None:
        """View ``output_folder``, whose files are read when they are asked for."""
        self.root, self.database_url = output_folder.root, output_folder.database_url
        self._folder = output_folder

    @override
    def has_folder(self, subfolder: str | None = None) -> bool:
        return self._folder.has_folder(subfolder)

    @override
    def has_file(self, name: str) -> bool:
        return self._folder.has_file(name)

    @override
    def list_file_and_folder_names(self, subfolder: str | None = None) -> set[str]:
        return self._folder.list_file_and_folder_names(subfolder)

    @override
    def list_subfolder_names(self, subfolder: str) -> list[str]:
        return self._folder.list_subfolder_names(subfolder)

    @override
    def read_bytes(self, name: str, max_bytes: int | None = None) -> bytes:
        return self._folder.read_bytes(name, max_bytes)

    @override
    def map_file_versions(self, subfolder: str | None = None) -> dict[str, FileVersion]:
        return self._folder.map_file_versions(subfolder)

    @override
    def read_listed_file(self, name: str) -> bytes:
        return self._folder.read_listed_file(name)

    @override
    def get_modification_time(self, name: str) -> float | None:
        return self._folder.get_modification_time(name)

    def _refuse_change(self, *_arguments: Any, **_options: Any) -> Any:
        raise StoreError(
            "the state of an output folder at an earlier time is read-only",
            code="STORE-PAST",
            remedy="Report this error.",
        )

    remove_file = remove_folder = hold_run_lock = hold_save_lock = hold_write_lock = _refuse_change
    _remove_file = _acquire_run_lock = _acquire_write_lock = _refuse_change
    _write_atomically = _create_atomically_if_absent = _refuse_change


def require_evalkit_output_folder(output_folder: OutputFolder, *, may_be_missing: bool = False) -> None:
    """Raise UsageError if the folder does not exist, or is not an output folder.

    An empty folder is accepted. Without this check, a mistyped path would put a database among other people's files.
    """
    remedy = "Name the output folder of a run, or create one with `evalkit run`."
    if not output_folder.has_folder():
        if may_be_missing:
            return
        raise UsageError(f"there is no output folder {output_folder.root}", code="OUTPUT-FOLDER", remedy=remedy)
    names_in_root = output_folder.list_file_and_folder_names()
    foreign_names = [name for name in names_in_root - NEUTRAL_NAMES if not name.startswith(NETWORK_DRIVE_PREFIX)]
    if foreign_names and OUTPUT_MARKERS.isdisjoint(names_in_root):
        raise UsageError(
            f"{output_folder.root} is not an output folder of evalkit", code="OUTPUT-FOLDER", remedy=remedy
        )


def list_unrecognised_names(output_folder: OutputFolder, subfolder: str) -> list[str]:
    """List, sorted, the names in a folder that break evalkit's rules for file names."""
    return sorted(
        name
        for name in output_folder.list_file_and_folder_names(subfolder)
        if not (NAME_PART_PATTERN.fullmatch(name) or name.startswith(NETWORK_DRIVE_PREFIX))
    )


def list_numbered_files_or_raise_on_gap(
    output_folder: OutputFolder, subfolder: str, build_file_name: Callable[[int], str]
) -> list[str]:
    """List a folder's JSON files numbered from 1, in order; StoreError on a gap.

    StoreError if a number is missing, or if the folder has a JSON file with another name.
    """
    names = sorted(
        output_folder.list_json_files(subfolder), key=lambda name: (len(name), name)
    )  # number 10,000 has one digit more than the numbers before it
    for number, name in enumerate(names, 1):
        if name != build_file_name(number):
            raise StoreError(
                f"{build_file_name(number)} is missing, but {name} exists",
                code="STORE-TORN",
                remedy=f"Restore {subfolder}/ from a backup; its files are numbered from 1, and nothing else belongs there.",
            )
    return names


def read_numbered_records(
    output_folder: OutputFolder, subfolder: str, build_file_name: Callable[[int], str], record_type: type[StoredModel]
) -> list[StoredModel]:
    """Read a folder's records, which are numbered from 1, oldest first.

    StoreError if a record is damaged or missing, or if the folder has another JSON file.
    """
    return [
        read_record(output_folder, file_name, record_type)
        for file_name in list_numbered_files_or_raise_on_gap(output_folder, subfolder, build_file_name)
    ]


def read_record(output_folder: OutputFolder, file_name: str, record_type: type[StoredModel]) -> StoredModel:
    """Read the record in this file. NotFound if it is missing, StoreError if damaged."""
    newest_version: int = record_type.model_fields["schema_version"].default
    stored_json = output_folder.read_json(file_name, max_schema_version=newest_version)
    return parse_stored_record(record_type, stored_json, file_name, "Restore the file from a backup.")


def split_and_validate_file_name(name: str) -> list[str]:
    """Split a file name at its slashes. StoreError if it could lead out of the folder."""
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
    """Parse the content of a stored JSON file, and check its ``schema_version``.

    Arguments and StoreError as in ``OutputFolder.read_json``.
    """
    try:
        with pause_gc():
            stored = json.loads(content, object_hook=object_hook) if object_hook else _parse_json(content)
        if _SURROGATE_ESCAPE.search(content):
            encode_canonical_json(stored)  # half of a surrogate pair can be read, but not be written or hashed
        stored_version = stored["schema_version"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise StoreError(
            f"{file_name:s} cannot be read: it is empty, cut off, or not one of evalkit's JSON files",
            code="STORE-TORN",
            remedy="Restore the file from a backup.",
        ) from error
    if type(stored_version) is not int or not 0 <= stored_version <= max_schema_version:
        shown_version = (
            stored_version if type(stored_version) is int and abs(stored_version) < 2**31 else "(not a number)"
        )  # the file's text is never quoted
        raise StoreError(
            f"{file_name} has schema version {shown_version}; this evalkit reads versions up to {max_schema_version}",
            code="STORE-NEWER",
            remedy="Install the version of evalkit that wrote the file.",
        )
    return dict(stored)


def _parse_json(content: bytes) -> Any:
    try:
        return from_json(content)  # twice as fast
    except ValueError:  # also where values are nested more than 200 deep
        return json.loads(content)


def add_trailing_newline(content: bytes) -> bytes:
    """Return the content with a newline added, unless it ends with one."""
    return content if content.endswith(b"\n") else content + b"\n"


def build_run_lock_held_error(root: Path | str) -> UsageError:
    """Build the error for a run that starts while another run holds the folder."""
    return UsageError(
        f"another run is writing to {root}",
        code="OUTPUT-BUSY",
        remedy="Wait until the other run has ended, or choose another folder with --output.",
    )


def encode_indented_json(value: Any) -> bytes:
    """Encode a value as ``OutputFolder.write_json`` writes it."""
    return json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False).encode()
