"""The JSON files of an output folder: written atomically (temporary name, sync, rename; 0600 in 0700 folders).

:class:`OutputFolder` is those of a folder on this machine; given the URL of a folder in a bucket it makes a
:class:`~evalkit.store.bucket.BucketOutputFolder`, as ``pathlib.Path`` makes the path of the system it is on.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import shutil
import stat
import struct
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from evalkit.core.gc_pause import pause_gc
from evalkit.core.safe_io import FileTooLarge, NotARegularFile, open_regular_file
from evalkit.errors import NotFound, StoreError, UsageError
from evalkit.store.canonical_json import encode_canonical_json
from evalkit.store.file_names import (
    NAME_PART_PATTERN,
    NEUTRAL_NAMES,
    OUTPUT_MARKERS,
    RUN_LOCK_FILE,
    TEMP_FOLDER,
    WRITE_LOCK_FILE,
)
from evalkit.store.output_location import parse_output_location
from evalkit.store.temp_files import generate_temp_name, is_orphaned

_FILE_NAME_PATTERN = re.compile(f"{NAME_PART_PATTERN.pattern}(?:/{NAME_PART_PATTERN.pattern})*")
_MAX_FILE_BYTES = 2 * 1024**3
"""Bytes of a file; a bundle of 20,000 pages has fewer."""
_LOCK_SLOTS = 256
"""So many things can be changed at a time; two that fall on one number wait for each other, which harms nobody."""


class OutputFolder:
    """The JSON files of one output folder. Names are relative to it, with forward slashes."""

    def __new__(cls, root: Path | str, database_url: str | None = None) -> OutputFolder:  # noqa: ARG004, PYI034 - as __init__; another class than its own
        """Those of a bucket, where ``root`` is a URL. UsageError for a URL that cannot be used."""
        if cls is OutputFolder and isinstance(parse_output_location(root), str):
            from evalkit.store.bucket import BucketOutputFolder  # a folder on this machine needs none of it

            return super().__new__(BucketOutputFolder)
        return super().__new__(cls)

    def __init__(self, root: Path | str, database_url: str | None = None) -> None:
        """``root`` is a folder or a URL; ``database_url`` keeps the turns in a bucket, and is what is set unless given."""
        self.root = parse_output_location(root)
        self._database_url = database_url

    def __reduce__(self) -> tuple[object, ...]:
        return OutputFolder, (self.root, self._database_url)

    @property
    def _local_root(self) -> Path:
        return self.root if isinstance(self.root, Path) else Path(self.root)

    def local_path(self, name: str) -> Path:
        """The file of that name, on this machine. StoreError for a name that could leave the folder."""
        return Path(self._local_path_text(name))

    def _local_path_text(self, name: str) -> str:
        """As ``local_path``, which takes longer to put together than to look whether the file is there."""
        return f"{self._local_root}/{'/'.join(split_file_name(name))}"

    def has_folder(self, subfolder: str | None = None) -> bool:
        """Whether there is the output folder, or the folder of that name in it."""
        return (self._local_root if subfolder is None else self.local_path(subfolder)).is_dir()

    def require_output_folder(self) -> None:
        """UsageError where there is no output folder, or where it is somebody else's; an empty one is nobody's.

        A slip of the pen would put a database among their files. StoreError where it cannot be seen.
        """
        remedy = "Name the output folder of a run, or make one with `evalkit run`."
        if not self.has_folder():
            raise UsageError(f"there is no output folder {self.root}", code="OUTPUT-FOLDER", remedy=remedy)
        names_in_root = self._list_root()
        foreign_names = [
            name for name in names_in_root - NEUTRAL_NAMES if not name.startswith(".nfs")
        ]  # .nfs…: removed, but open elsewhere
        if foreign_names and OUTPUT_MARKERS.isdisjoint(names_in_root):
            raise UsageError(f"{self.root} is no output folder of evalkit", code="OUTPUT-FOLDER", remedy=remedy)

    def _list_root(self) -> set[str]:
        """What lies in the output folder itself, by bare names."""
        try:
            return set(os.listdir(self._local_root))  # noqa: PTH208 - names alone
        except OSError as error:
            raise _build_store_error(str(self._local_root), error) from error

    def has_file(self, name: str) -> bool:
        """Whether there is such a file. StoreError where that cannot be seen."""
        try:
            return stat.S_ISREG(os.stat(self._local_path_text(name)).st_mode)  # noqa: PTH116 - see _at
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise _build_store_error(name, error) from error

    def list_json_files(self, subfolder: str) -> list[str]:
        """The JSON files of a folder, sorted, as names that ``read_json`` takes. StoreError where it cannot be seen."""
        child_names = self._list_subfolder(subfolder)
        return sorted(
            f"{subfolder}/{name}"
            for name in child_names
            if name.endswith(".json") and NAME_PART_PATTERN.fullmatch(name)
        )

    def list_foreign_names(self, subfolder: str) -> list[str]:
        """What lies in a folder under names that are none of evalkit's, sorted: it is passed over. StoreError."""
        return sorted(name for name in self._list_subfolder(subfolder) if not NAME_PART_PATTERN.fullmatch(name))

    def _list_subfolder(self, subfolder: str) -> list[str]:
        try:
            return os.listdir(self._local_path_text(subfolder))  # noqa: PTH208 - see _at
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _build_store_error(subfolder, error) from error

    def list_sequence_files(self, subfolder: str, name_for_number: Callable[[int], str]) -> list[str]:
        """The JSON files of a folder in which each bears the next number, from 1, and nothing else belongs.

        StoreError where one is lost, and for one that is none of them.
        """
        names = sorted(
            self.list_json_files(subfolder), key=lambda name: (len(name), name)
        )  # the ten-thousandth has a digit more
        for number, name in enumerate(names, 1):
            if name != name_for_number(number):
                raise StoreError(
                    f"{name_for_number(number)} is not there, and {name} is",
                    code="STORE-TORN",
                    remedy=f"Restore {subfolder}/ from a backup; its files are numbered from 1, and nothing else belongs there.",
                )
        return names

    def list_subfolders(self, subfolder: str) -> list[str]:
        """The folders in a folder, sorted, by their bare names. StoreError where it cannot be seen."""
        try:
            children = self.local_path(subfolder).iterdir()
            return sorted(
                child.name for child in children if NAME_PART_PATTERN.fullmatch(child.name) and child.is_dir()
            )
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _build_store_error(subfolder, error) from error

    def read_bytes(self, name: str, max_bytes: int | None = None) -> bytes:
        """The bytes of a file, or so many of them as there are. NotFound, or StoreError where it cannot be read."""
        try:
            with open_regular_file(self._local_path_text(name), _MAX_FILE_BYTES) as file:
                if max_bytes is None:
                    return file.read()
                if sys.platform == "linux":  # else it reads ahead: megabytes that nobody asked for
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
                return file.read(max_bytes)
        except FileNotFoundError as error:
            raise NotFound(f"{name} is not there", code="STORE-NOT-FOUND", remedy="Run the document first.") from error
        except (NotARegularFile, FileTooLarge) as error:
            raise StoreError(
                f"{name} is not one of evalkit's files: {error.strerror}",
                code="STORE-TORN",
                remedy="Restore it from a backup.",
            ) from error
        except OSError as error:
            raise _build_store_error(name, error) from error

    def read_json(
        self,
        name: str,
        *,
        schema_version: int = 1,
        object_hook: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
    ) -> dict[str, Any]:
        """The JSON object of a file. NotFound; StoreError if it is torn or written by a newer evalkit.

        ``object_hook`` is called with every object in the file as soon as it is read, and gives what takes its place.
        """
        return parse_stored_json(name, self.read_bytes(name), schema_version=schema_version, object_hook=object_hook)

    def iterate_file_bytes(self, subfolder: str) -> Iterator[tuple[str, bytes]]:
        """Every file in a folder and in those inside, by name: its name, whatever that is, and its bytes. StoreError."""
        try:
            for path in sorted(self.local_path(subfolder).rglob("*")):
                if path.is_file():
                    yield str(path.relative_to(self._local_root)), path.read_bytes()
        except OSError as error:
            raise _build_store_error(subfolder, error) from error

    def get_modification_time(self, name: str) -> float | None:
        """When a file was written (seconds since 1970); None where there is none. StoreError where it cannot be seen."""
        try:
            return self.local_path(name).stat().st_mtime
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _build_store_error(name, error) from error

    def list_links(self) -> list[str]:
        """What in the output folder is a link, and so lies elsewhere, sorted."""
        return sorted(
            str(path.relative_to(self._local_root)) for path in self._local_root.rglob("*") if path.is_symlink()
        )

    def write_json(self, name: str, value: Any, *, compact: bool = False) -> None:
        """Write a JSON file whole or not at all, replacing what was there."""
        self._atomic_write(name, encode_canonical_json(value) if compact else _encode_indented_json(value))

    def write_text(self, name: str, text: str) -> None:
        """Write a file that is no JSON, whole or not at all, replacing what was there."""
        self._atomic_write(name, text.encode())

    def create_json(self, name: str, value: Any) -> bool:
        """Write a new JSON file. False, and nothing changed, if there already is one of that name."""
        return self._atomic_create(name, _encode_indented_json(value))

    def remove_file(self, name: str) -> bool:
        """Remove a file; whether there was one. Of a link, the link alone."""
        *parent_names, file_name = split_file_name(name)
        try:
            os.lstat(self._local_path_text(name))  # mostly there is none, and to open folders takes longer
            with _open_folder(self._local_root, parent_names) as parent_fd:
                os.unlink(file_name, dir_fd=parent_fd)
                os.fsync(parent_fd)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise _build_store_error(name, error) from error
        return True

    def remove_folder(self, name: str) -> list[str]:
        """Remove a folder with all that is in it; the names of the files that were."""
        path = self.local_path(name)
        *parent_names, folder_name = split_file_name(name)
        try:
            with _open_folder(self._local_root, parent_names) as parent_fd:
                if path.is_symlink():
                    removed_names = [name]
                    os.unlink(folder_name, dir_fd=parent_fd)
                else:
                    removed_names = sorted(f"{name}/{child.name}" for child in path.iterdir())
                    shutil.rmtree(folder_name, dir_fd=parent_fd)
                os.fsync(parent_fd)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _build_store_error(name, error) from error
        return removed_names

    def remove_old_temp_files(self, written_before: float) -> None:
        """Remove what was written without getting its name before that moment (seconds since 1970)."""
        for temp_file in (self._local_root / TEMP_FOLDER).glob("*"):
            with suppress(OSError):
                if temp_file.lstat().st_mtime < written_before:
                    temp_file.unlink()

    @contextmanager
    def run_lock(self) -> Iterator[None]:
        """Hold the folder for one run. UsageError if another run holds it. Leftovers of killed runs are swept."""
        try:
            lock_fd = self._open_lock_file(RUN_LOCK_FILE)
        except OSError as error:
            raise UsageError(
                f"the output folder {self.root} cannot be written ({error.strerror})",
                code="OUTPUT-FOLDER",
                remedy="Choose another with --output, or mend its rights.",
            ) from error
        try:
            try:
                fcntl.flock(lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise UsageError(
                    f"another run is writing to {self.root}",
                    code="OUTPUT-BUSY",
                    remedy="Wait until it has ended, or choose another folder with --output.",
                ) from error
            self._remove_orphans()
            yield
        finally:
            os.close(lock_fd)

    @contextmanager
    def write_lock(self, key: str | None = None) -> Iterator[None]:
        """Wait for the turn to change several files: those ``key`` one thing, or any, where nothing is named.

        Not reentrant; see :func:`evalkit.review.write_lock.hold_write_lock`. StoreError.
        """
        with ExitStack() as exit_stack:
            try:
                lock_fd = self._open_lock_file(WRITE_LOCK_FILE)
                exit_stack.callback(os.close, lock_fd)
                # A process that was forked meanwhile has the handle, too: to close ours alone would give nothing back.
                exit_stack.callback(_unlock_file, lock_fd)
                # In order, so that two who want them all do not wait for each other; one by one, since who asked for
                # all at once would wait for a moment in which nobody has any.
                for slot in range(_LOCK_SLOTS) if key is None else [zlib.crc32(key.encode()) % _LOCK_SLOTS]:
                    _lock_byte(lock_fd, slot)
            except OSError as error:
                raise StoreError(
                    f"the output folder {self.root} cannot be written ({error.strerror})",
                    code="STORE-FAILED",
                    remedy="Mend its rights, or name another folder.",
                ) from error
            yield

    def _open_lock_file(self, name: str) -> int:
        """A file that is there to be locked, made where there is none. OSError where a link has its name."""
        self._local_root.mkdir(parents=True, exist_ok=True, mode=0o700)
        return os.open(self._local_root / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)

    def _atomic_write(self, name: str, content: bytes) -> None:
        with self._stage_file(name, content) as staged_file:
            staged_file.publish()

    def _atomic_create(self, name: str, content: bytes) -> bool:
        with self._stage_file(name, content) as staged_file:
            return staged_file.publish_if_absent()

    def _remove_orphans(self) -> None:
        for temp_file in (self._local_root / TEMP_FOLDER).glob("*-*"):
            with suppress(OSError):
                if is_orphaned(temp_file):
                    temp_file.unlink()

    @contextmanager
    def _stage_file(self, name: str, content: bytes) -> Iterator[_StagedFile]:
        """The text, written and synced without its name yet, in the same file system.

        Folders are opened one below the other and never through a link, so that nothing is written outside of the root,
        whoever exchanges a folder meanwhile.
        """
        *parent_names, file_name = split_file_name(name)
        temp_name = generate_temp_name()
        try:
            with (
                _open_folder(self._local_root, [TEMP_FOLDER], create_missing=True) as temp_folder_fd,
                _open_folder(self._local_root, parent_names, create_missing=True) as parent_fd,
            ):
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
                temp_fd = os.open(temp_name, flags, 0o600, dir_fd=temp_folder_fd)
                try:
                    with os.fdopen(temp_fd, "wb") as file:
                        file.write(add_trailing_newline(content))
                        file.flush()
                        os.fsync(file.fileno())
                    yield _StagedFile(temp_name, temp_folder_fd, file_name, parent_fd)
                    os.fsync(parent_fd)
                finally:
                    with suppress(FileNotFoundError):
                        os.unlink(temp_name, dir_fd=temp_folder_fd)
        except OSError as error:
            raise _build_store_error(name, error) from error


class _StagedFile(NamedTuple):
    """A file that has all its bytes, and not its name."""

    temp_name: str
    temp_folder_fd: int
    file_name: str
    parent_fd: int

    def publish(self) -> None:
        """Take the name, from whatever has it."""
        os.replace(self.temp_name, self.file_name, src_dir_fd=self.temp_folder_fd, dst_dir_fd=self.parent_fd)

    def publish_if_absent(self) -> bool:
        """Take the name, if nothing has it; whether it was free."""
        try:
            os.link(
                self.temp_name,
                self.file_name,
                src_dir_fd=self.temp_folder_fd,
                dst_dir_fd=self.parent_fd,
                follow_symlinks=False,
            )
        except FileExistsError:
            return False
        return True


@contextmanager
def _open_folder(root: Path, folder_names: Sequence[str], *, create_missing: bool = False) -> Iterator[int]:
    """A folder below the root, for calls that name a file in it; none of the folders is a link. Made (0700) if wanted."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    if create_missing:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder_fd = os.open(root, flags)
    try:
        for folder_name in folder_names:
            if create_missing and _make_folder(folder_name, folder_fd):
                os.fsync(folder_fd)  # else what is written into it on disk might stand nowhere
            child_fd = os.open(folder_name, flags | os.O_NOFOLLOW, dir_fd=folder_fd)
            os.close(folder_fd)
            folder_fd = child_fd
        yield folder_fd
    finally:
        os.close(folder_fd)


def _make_folder(folder_name: str, parent_fd: int) -> bool:
    """Make a folder (0700) in an open one; False where there is one of that name."""
    try:
        os.mkdir(folder_name, 0o700, dir_fd=parent_fd)
    except FileExistsError:
        return False
    return True


def split_file_name(name: str) -> list[str]:
    """The parts of a file's name. StoreError for one that could leave the folder."""
    if not _FILE_NAME_PATTERN.fullmatch(name):
        raise StoreError(
            "a file name in the output folder has forbidden characters, or is too long",
            code="STORE-NAME",
            remedy="Names consist of letters, digits, '-', '_' and '.'.",
        )
    return name.split("/")


def parse_stored_json(
    name: str,
    content: bytes,
    *,
    schema_version: int,
    object_hook: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """The JSON object of a file of that name and these bytes; ``object_hook`` and StoreError as in ``OutputFolder.read_json``."""
    try:
        with pause_gc():
            stored = json.loads(content, object_hook=object_hook)
        stored_version = stored["schema_version"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise StoreError(
            f"{name} is not one of evalkit's JSON files", code="STORE-TORN", remedy="Restore it from a backup."
        ) from error
    if type(stored_version) is not int or not 0 <= stored_version <= schema_version:
        shown_version = (
            stored_version if type(stored_version) is int and abs(stored_version) < 2**31 else "that is no number"
        )  # never a file's words
        raise StoreError(
            f"{name} has schema version {shown_version}; this evalkit reads up to {schema_version}",
            code="STORE-NEWER",
            remedy="Install the evalkit that wrote it.",
        )
    return dict(stored)


def add_trailing_newline(content: bytes) -> bytes:
    """The text of a file, with the end of its last line."""
    return content if content.endswith(b"\n") else content + b"\n"


def make_private_folder(folder: Path, root: Path) -> None:
    """Make a folder at or below the root, and those between them: 0700."""
    if folder != root and not folder.is_dir():
        make_private_folder(folder.parent, root)
    folder.mkdir(mode=0o700, parents=folder == root, exist_ok=True)


def sync_folder(folder: Path) -> None:
    """What was renamed in the folder outlives a power cut."""
    folder_fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder_fd)
    finally:
        os.close(folder_fd)


def _lock_byte(lock_fd: int, slot: int) -> None:
    """Wait until nobody else has that byte of the file. OSError where its file system has no locks.

    A lock of the handle, and not, as ``fcntl.lockf``'s, of the process: threads wait for each other, too. Such ones of
    bytes are Linux's, and so is the shape of what is asked; elsewhere everybody waits for everybody.
    """
    if sys.platform != "linux":
        fcntl.flock(lock_fd, fcntl.LOCK_EX)
        return
    fcntl.fcntl(lock_fd, fcntl.F_OFD_SETLKW, _pack_flock(fcntl.F_WRLCK, slot, 1))


def _unlock_file(lock_fd: int) -> None:
    """Give back all bytes of the file, whoever else has the handle."""
    with suppress(OSError):  # what was to be done is done
        if sys.platform != "linux":
            fcntl.flock(lock_fd, fcntl.LOCK_UN)
            return
        fcntl.fcntl(lock_fd, fcntl.F_OFD_SETLK, _pack_flock(fcntl.F_UNLCK, 0, 0))


def _pack_flock(lock_type: int, start: int, length: int) -> bytes:
    return struct.pack(
        "hhqqi", lock_type, os.SEEK_SET, start, length, 0
    )  # struct flock; a length of 0 is up to the end


def _encode_indented_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False).encode()


def _build_store_error(name: str, error: OSError) -> StoreError:
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return StoreError(
            f"{name} would be written through a link, or a file stands in the place of its folder",
            code="STORE-LINK",
            remedy="Nothing below the output folder may be a link: put the whole folder where there is room.",
        )
    is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return StoreError(
        f"{name} could not be read or written ({error.strerror or type(error).__name__})",
        code="STORE-FULL" if is_full else "STORE-FAILED",
        remedy="Free some space and run again: what is finished is kept."
        if is_full
        else "Mend the folder's rights or choose another with --output.",
    )
