"""The JSON files of an output folder: written atomically (temporary name, sync, rename; 0600 in 0700 folders)."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from evalkit.collector import resting
from evalkit.errors import NotFound, StoreError, UsageError
from evalkit.store.canonical import canonical
from evalkit.store.names import LOCK, PART, SCRATCH


class Files:
    """The JSON files of one output folder. Names are relative to it, with forward slashes."""

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root)

    def path(self, name: str) -> Path:
        """The file of that name. StoreError for a name that could leave the folder."""
        parts = name.split("/")
        if not all(PART.fullmatch(part) for part in parts):
            raise StoreError(
                "a file name in the output folder has forbidden characters",
                code="STORE-NAME",
                remedy="Names consist of letters, digits, '-', '_' and '.'.",
            )
        return self.root.joinpath(*parts)

    def exists(self, name: str) -> bool:
        """Whether there is such a file."""
        return self.path(name).is_file()

    def names(self, folder: str) -> list[str]:
        """The JSON files of a folder, sorted, as names that ``read`` takes."""
        try:
            return sorted(f"{folder}/{entry.name}" for entry in self.path(folder).iterdir() if entry.suffix == ".json")
        except FileNotFoundError:
            return []

    def numbered(self, folder: str, named: Callable[[int], str]) -> list[str]:
        """The JSON files of a folder in which each bears the next number, from 1, and nothing else belongs.

        StoreError where one is lost, and for one that is none of them.
        """
        names = self.names(folder)
        for number, name in enumerate(names, 1):
            if name != named(number):
                raise StoreError(
                    f"{named(number)} is not there, and {name} is",
                    code="STORE-TORN",
                    remedy=f"Restore {folder}/ from a backup; its files are numbered from 1, and nothing else belongs there.",
                )
        return names

    def folders(self, folder: str) -> list[str]:
        """The folders in a folder, sorted, by their bare names."""
        try:
            return sorted(entry.name for entry in self.path(folder).iterdir() if entry.is_dir())
        except FileNotFoundError:
            return []

    def raw(self, name: str) -> bytes:
        """The bytes of a file. NotFound, or StoreError where it cannot be read."""
        try:
            return self.path(name).read_bytes()
        except FileNotFoundError as error:
            raise NotFound(f"{name} is not there", code="STORE-NOT-FOUND", remedy="Run the document first.") from error
        except OSError as error:
            raise _failed(name, error) from error

    def read(
        self, name: str, *, schema_version: int = 1, each: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    ) -> dict[str, Any]:
        """The JSON object of a file. NotFound; StoreError if it is torn or written by a newer evalkit.

        ``each`` is called with every object in the file as soon as it is read, and gives what takes its place.
        """
        try:
            with resting():
                value = json.loads(self.raw(name), object_hook=each)
            found = value["schema_version"]
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise StoreError(
                f"{name} is not one of evalkit's JSON files", code="STORE-TORN", remedy="Restore it from a backup."
            ) from error
        if not isinstance(found, int) or found > schema_version:
            raise StoreError(
                f"{name} has schema version {found!r}; this evalkit reads up to {schema_version}",
                code="STORE-NEWER",
                remedy="Install the evalkit that wrote it.",
            )
        return dict(value)

    def write(self, name: str, value: Any, *, compact: bool = False) -> None:
        """Write a JSON file whole or not at all, replacing what was there."""
        with self._temporary(name, canonical(value) if compact else _readable(value)) as (temporary, target):
            os.replace(temporary, target)

    def write_text(self, name: str, text: str) -> None:
        """Write a file that is no JSON, whole or not at all, replacing what was there."""
        with self._temporary(name, text.encode()) as (temporary, target):
            os.replace(temporary, target)

    def create(self, name: str, value: Any) -> bool:
        """Write a new JSON file. False, and nothing changed, if there already is one of that name."""
        with self._temporary(name, _readable(value)) as (temporary, target):
            try:
                os.link(temporary, target)
            except FileExistsError:
                return False
            return True

    def remove(self, name: str) -> bool:
        """Remove a file; whether there was one."""
        path = self.path(name)
        try:
            path.unlink()
            sync_folder(path.parent)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise _failed(name, error) from error
        return True

    def remove_folder(self, name: str) -> list[str]:
        """Remove a folder with all that is in it; the names of the files that were."""
        path = self.path(name)
        try:
            if path.is_symlink():
                path.unlink()
                return [name]
            inside = sorted(f"{name}/{entry.name}" for entry in path.iterdir())
            shutil.rmtree(path)
            sync_folder(path.parent)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _failed(name, error) from error
        return inside

    def sweep(self, older_than: float) -> None:
        """Remove what was written without getting its name before that moment (seconds since 1970)."""
        for leftover in (self.root / SCRATCH).glob("*"):
            with suppress(OSError):
                if leftover.lstat().st_mtime < older_than:
                    leftover.unlink()

    @contextmanager
    def run_lock(self) -> Iterator[None]:
        """Hold the folder for one run. UsageError if another run holds it. Leftovers of killed runs are swept."""
        try:
            self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle = os.open(self.root / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise UsageError(
                f"the output folder {self.root} cannot be written ({error.strerror})",
                code="OUTPUT-FOLDER",
                remedy="Choose another with --output, or mend its rights.",
            ) from error
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise UsageError(
                    f"another run is writing to {self.root}",
                    code="OUTPUT-BUSY",
                    remedy="Wait until it has ended, or choose another folder with --output.",
                ) from error
            self._sweep()
            yield
        finally:
            os.close(handle)

    def _sweep(self) -> None:
        for leftover in (self.root / SCRATCH).glob("*-*"):
            writer = leftover.name.partition("-")[0]
            if writer.isdecimal() and not _alive(int(writer)):
                leftover.unlink(missing_ok=True)

    @contextmanager
    def _temporary(self, name: str, text: bytes) -> Iterator[tuple[Path, Path]]:
        """The text, written and synced under a temporary name in the same file system, and its target."""
        target = self.path(name)
        temporary = self.root / SCRATCH / f"{os.getpid()}-{secrets.token_hex(8)}"
        try:
            for folder in (temporary.parent, target.parent):
                private_folder(folder, self.root)
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(text if text.endswith(b"\n") else text + b"\n")
                file.flush()
                os.fsync(file.fileno())
            yield temporary, target
            sync_folder(target.parent)
        except OSError as error:
            raise _failed(name, error) from error
        finally:
            temporary.unlink(missing_ok=True)


def private_folder(folder: Path, root: Path) -> None:
    """Make a folder at or below the root, and those between them: 0700."""
    if folder != root and not folder.is_dir():
        private_folder(folder.parent, root)
    folder.mkdir(mode=0o700, parents=folder == root, exist_ok=True)


def sync_folder(folder: Path) -> None:
    """What was renamed in the folder outlives a power cut."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _readable(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False).encode()


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


def _failed(name: str, error: OSError) -> StoreError:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return StoreError(
        f"{name} could not be read or written ({error.strerror or type(error).__name__})",
        code="STORE-FULL" if full else "STORE-FAILED",
        remedy="Free some space and run again: what is finished is kept."
        if full
        else "Mend the folder's rights or choose another with --output.",
    )
