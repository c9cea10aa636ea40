"""The JSON files of an output folder: written atomically (temporary name, sync, rename; 0600 in 0700 folders).

:class:`Files` is those of a folder on this machine; given the URL of a folder in a bucket it makes a
:class:`~evalkit.store.bucket.BucketFiles`, as ``pathlib.Path`` makes the path of the system it is on.
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

from evalkit.collector import resting
from evalkit.errors import NotFound, StoreError, UsageError
from evalkit.regular import NotRegular, TooLarge, opened
from evalkit.store.canonical import canonical
from evalkit.store.names import COMMON, LOCK, PART, SCRATCH, TELLING, TURN
from evalkit.store.place import located
from evalkit.store.scratch import is_left, scratch_name

_NAME = re.compile(f"{PART.pattern}(?:/{PART.pattern})*")
_LARGEST = 2 * 1024**3
"""Bytes of a file; a bundle of 20,000 pages has fewer."""
_TURNS = 256
"""So many things can be changed at a time; two that fall on one number wait for each other, which harms nobody."""


class Files:
    """The JSON files of one output folder. Names are relative to it, with forward slashes."""

    def __new__(cls, root: Path | str, database: str | None = None) -> Files:  # noqa: ARG004, PYI034 - as __init__; another class than its own
        """Those of a bucket, where ``root`` is a URL. UsageError for a URL that cannot be used."""
        if cls is Files and isinstance(located(root), str):
            from evalkit.store.bucket import BucketFiles  # a folder on this machine needs none of it

            return super().__new__(BucketFiles)
        return super().__new__(cls)

    def __init__(self, root: Path | str, database: str | None = None) -> None:
        """``root`` is a folder or a URL; ``database`` keeps the turns in a bucket, and is what is set unless given."""
        self.root = located(root)
        self._database = database

    def __reduce__(self) -> tuple[object, ...]:
        return Files, (self.root, self._database)

    @property
    def _folder(self) -> Path:
        return self.root if isinstance(self.root, Path) else Path(self.root)

    def path(self, name: str) -> Path:
        """The file of that name, on this machine. StoreError for a name that could leave the folder."""
        return Path(self._at(name))

    def _at(self, name: str) -> str:
        """As ``path``, which takes longer to put together than to look whether the file is there."""
        return f"{self._folder}/{'/'.join(parts_of(name))}"

    def is_there(self, folder: str | None = None) -> bool:
        """Whether there is the output folder, or the folder of that name in it."""
        return (self._folder if folder is None else self.path(folder)).is_dir()

    def require_ours(self) -> None:
        """UsageError where there is no output folder, or where it is somebody else's; an empty one is nobody's.

        A slip of the pen would put a database among their files. StoreError where it cannot be seen.
        """
        remedy = "Name the output folder of a run, or make one with `evalkit run`."
        if not self.is_there():
            raise UsageError(f"there is no output folder {self.root}", code="OUTPUT-FOLDER", remedy=remedy)
        there = self._in_root()
        strange = [name for name in there - COMMON if not name.startswith(".nfs")]  # .nfs…: removed, but open elsewhere
        if strange and TELLING.isdisjoint(there):
            raise UsageError(f"{self.root} is no output folder of evalkit", code="OUTPUT-FOLDER", remedy=remedy)

    def _in_root(self) -> set[str]:
        """What lies in the output folder itself, by bare names."""
        try:
            return set(os.listdir(self._folder))  # noqa: PTH208 - names alone
        except OSError as error:
            raise _failed(str(self._folder), error) from error

    def exists(self, name: str) -> bool:
        """Whether there is such a file. StoreError where that cannot be seen."""
        try:
            return stat.S_ISREG(os.stat(self._at(name)).st_mode)  # noqa: PTH116 - see _at
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise _failed(name, error) from error

    def names(self, folder: str) -> list[str]:
        """The JSON files of a folder, sorted, as names that ``read`` takes. StoreError where it cannot be seen."""
        inside = self._inside(folder)
        return sorted(f"{folder}/{name}" for name in inside if name.endswith(".json") and PART.fullmatch(name))

    def strays(self, folder: str) -> list[str]:
        """What lies in a folder under names that are none of evalkit's, sorted: it is passed over. StoreError."""
        return sorted(name for name in self._inside(folder) if not PART.fullmatch(name))

    def _inside(self, folder: str) -> list[str]:
        try:
            return os.listdir(self._at(folder))  # noqa: PTH208 - see _at
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _failed(folder, error) from error

    def numbered(self, folder: str, named: Callable[[int], str]) -> list[str]:
        """The JSON files of a folder in which each bears the next number, from 1, and nothing else belongs.

        StoreError where one is lost, and for one that is none of them.
        """
        names = sorted(self.names(folder), key=lambda name: (len(name), name))  # the ten-thousandth has a digit more
        for number, name in enumerate(names, 1):
            if name != named(number):
                raise StoreError(
                    f"{named(number)} is not there, and {name} is",
                    code="STORE-TORN",
                    remedy=f"Restore {folder}/ from a backup; its files are numbered from 1, and nothing else belongs there.",
                )
        return names

    def folders(self, folder: str) -> list[str]:
        """The folders in a folder, sorted, by their bare names. StoreError where it cannot be seen."""
        try:
            inside = self.path(folder).iterdir()
            return sorted(entry.name for entry in inside if PART.fullmatch(entry.name) and entry.is_dir())
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _failed(folder, error) from error

    def raw(self, name: str, at_most: int | None = None) -> bytes:
        """The bytes of a file, or so many of them as there are. NotFound, or StoreError where it cannot be read."""
        try:
            with opened(self._at(name), _LARGEST) as file:
                if at_most is None:
                    return file.read()
                if sys.platform == "linux":  # else it reads ahead: megabytes that nobody asked for
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
                return file.read(at_most)
        except FileNotFoundError as error:
            raise NotFound(f"{name} is not there", code="STORE-NOT-FOUND", remedy="Run the document first.") from error
        except (NotRegular, TooLarge) as error:
            raise StoreError(
                f"{name} is not one of evalkit's files: {error.strerror}",
                code="STORE-TORN",
                remedy="Restore it from a backup.",
            ) from error
        except OSError as error:
            raise _failed(name, error) from error

    def read(
        self, name: str, *, schema_version: int = 1, each: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    ) -> dict[str, Any]:
        """The JSON object of a file. NotFound; StoreError if it is torn or written by a newer evalkit.

        ``each`` is called with every object in the file as soon as it is read, and gives what takes its place.
        """
        return parsed(name, self.raw(name), schema_version=schema_version, each=each)

    def contents(self, folder: str) -> Iterator[tuple[str, bytes]]:
        """Every file in a folder and in those inside, by name: its name, whatever that is, and its bytes. StoreError."""
        try:
            for path in sorted(self.path(folder).rglob("*")):
                if path.is_file():
                    yield str(path.relative_to(self._folder)), path.read_bytes()
        except OSError as error:
            raise _failed(folder, error) from error

    def written_at(self, name: str) -> float | None:
        """When a file was written (seconds since 1970); None where there is none. StoreError where it cannot be seen."""
        try:
            return self.path(name).stat().st_mtime
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _failed(name, error) from error

    def links(self) -> list[str]:
        """What in the output folder is a link, and so lies elsewhere, sorted."""
        return sorted(str(path.relative_to(self._folder)) for path in self._folder.rglob("*") if path.is_symlink())

    def write(self, name: str, value: Any, *, compact: bool = False) -> None:
        """Write a JSON file whole or not at all, replacing what was there."""
        self._put(name, canonical(value) if compact else _readable(value))

    def write_text(self, name: str, text: str) -> None:
        """Write a file that is no JSON, whole or not at all, replacing what was there."""
        self._put(name, text.encode())

    def create(self, name: str, value: Any) -> bool:
        """Write a new JSON file. False, and nothing changed, if there already is one of that name."""
        return self._create(name, _readable(value))

    def remove(self, name: str) -> bool:
        """Remove a file; whether there was one. Of a link, the link alone."""
        *folders, own = parts_of(name)
        try:
            os.lstat(self._at(name))  # mostly there is none, and to open folders takes longer
            with _opened(self._folder, folders) as place:
                os.unlink(own, dir_fd=place)
                os.fsync(place)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise _failed(name, error) from error
        return True

    def remove_folder(self, name: str) -> list[str]:
        """Remove a folder with all that is in it; the names of the files that were."""
        path = self.path(name)
        *folders, own = parts_of(name)
        try:
            with _opened(self._folder, folders) as place:
                if path.is_symlink():
                    inside = [name]
                    os.unlink(own, dir_fd=place)
                else:
                    inside = sorted(f"{name}/{entry.name}" for entry in path.iterdir())
                    shutil.rmtree(own, dir_fd=place)
                os.fsync(place)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _failed(name, error) from error
        return inside

    def sweep(self, older_than: float) -> None:
        """Remove what was written without getting its name before that moment (seconds since 1970)."""
        for leftover in (self._folder / SCRATCH).glob("*"):
            with suppress(OSError):
                if leftover.lstat().st_mtime < older_than:
                    leftover.unlink()

    @contextmanager
    def run_lock(self) -> Iterator[None]:
        """Hold the folder for one run. UsageError if another run holds it. Leftovers of killed runs are swept."""
        try:
            handle = self._lock_file(LOCK)
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

    @contextmanager
    def turn(self, about: str | None = None) -> Iterator[None]:
        """Wait for the turn to change several files: those ``about`` one thing, or any, where nothing is named.

        Not reentrant; see :func:`evalkit.review.lock.writing`. StoreError.
        """
        with ExitStack() as held:
            try:
                handle = self._lock_file(TURN)
                held.callback(os.close, handle)
                # A process that was forked meanwhile has the handle, too: to close ours alone would give nothing back.
                held.callback(_unlock, handle)
                # In order, so that two who want them all do not wait for each other; one by one, since who asked for
                # all at once would wait for a moment in which nobody has any.
                for place in range(_TURNS) if about is None else [zlib.crc32(about.encode()) % _TURNS]:
                    _lock_byte(handle, place)
            except OSError as error:
                raise StoreError(
                    f"the output folder {self.root} cannot be written ({error.strerror})",
                    code="STORE-FAILED",
                    remedy="Mend its rights, or name another folder.",
                ) from error
            yield

    def _lock_file(self, name: str) -> int:
        """A file that is there to be locked, made where there is none. OSError where a link has its name."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return os.open(self._folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)

    def _put(self, name: str, text: bytes) -> None:
        with self._written(name, text) as written:
            written.replace()

    def _create(self, name: str, text: bytes) -> bool:
        with self._written(name, text) as written:
            return written.create()

    def _sweep(self) -> None:
        for leftover in (self._folder / SCRATCH).glob("*-*"):
            with suppress(OSError):
                if is_left(leftover):
                    leftover.unlink()

    @contextmanager
    def _written(self, name: str, text: bytes) -> Iterator[_Written]:
        """The text, written and synced without its name yet, in the same file system.

        Folders are opened one below the other and never through a link, so that nothing is written outside of the root,
        whoever exchanges a folder meanwhile.
        """
        *folders, own = parts_of(name)
        temporary = scratch_name()
        try:
            with (
                _opened(self._folder, [SCRATCH], make=True) as scratch,
                _opened(self._folder, folders, make=True) as place,
            ):
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
                handle = os.open(temporary, flags, 0o600, dir_fd=scratch)
                try:
                    with os.fdopen(handle, "wb") as file:
                        file.write(ended(text))
                        file.flush()
                        os.fsync(file.fileno())
                    yield _Written(temporary, scratch, own, place)
                    os.fsync(place)
                finally:
                    with suppress(FileNotFoundError):
                        os.unlink(temporary, dir_fd=scratch)
        except OSError as error:
            raise _failed(name, error) from error


class _Written(NamedTuple):
    """A file that has all its bytes, and not its name."""

    temporary: str
    scratch: int
    name: str
    place: int

    def replace(self) -> None:
        """Take the name, from whatever has it."""
        os.replace(self.temporary, self.name, src_dir_fd=self.scratch, dst_dir_fd=self.place)

    def create(self) -> bool:
        """Take the name, if nothing has it; whether it was free."""
        try:
            os.link(self.temporary, self.name, src_dir_fd=self.scratch, dst_dir_fd=self.place, follow_symlinks=False)
        except FileExistsError:
            return False
        return True


@contextmanager
def _opened(root: Path, folders: Sequence[str], *, make: bool = False) -> Iterator[int]:
    """A folder below the root, for calls that name a file in it; none of the folders is a link. Made (0700) if wanted."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    if make:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(root, flags)
    try:
        for name in folders:
            if make and _made(name, handle):
                os.fsync(handle)  # else what is written into it on disk might stand nowhere
            inner = os.open(name, flags | os.O_NOFOLLOW, dir_fd=handle)
            os.close(handle)
            handle = inner
        yield handle
    finally:
        os.close(handle)


def _made(name: str, place: int) -> bool:
    """Make a folder (0700) in an open one; False where there is one of that name."""
    try:
        os.mkdir(name, 0o700, dir_fd=place)
    except FileExistsError:
        return False
    return True


def parts_of(name: str) -> list[str]:
    """The parts of a file's name. StoreError for one that could leave the folder."""
    if not _NAME.fullmatch(name):
        raise StoreError(
            "a file name in the output folder has forbidden characters, or is too long",
            code="STORE-NAME",
            remedy="Names consist of letters, digits, '-', '_' and '.'.",
        )
    return name.split("/")


def parsed(
    name: str, raw: bytes, *, schema_version: int, each: Callable[[dict[str, Any]], dict[str, Any]] | None = None
) -> dict[str, Any]:
    """The JSON object of a file of that name and these bytes; ``each`` and StoreError as in ``Files.read``."""
    try:
        with resting():
            value = json.loads(raw, object_hook=each)
        found = value["schema_version"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise StoreError(
            f"{name} is not one of evalkit's JSON files", code="STORE-TORN", remedy="Restore it from a backup."
        ) from error
    if type(found) is not int or not 0 <= found <= schema_version:
        told = found if type(found) is int and abs(found) < 2**31 else "that is no number"  # never a file's words
        raise StoreError(
            f"{name} has schema version {told}; this evalkit reads up to {schema_version}",
            code="STORE-NEWER",
            remedy="Install the evalkit that wrote it.",
        )
    return dict(value)


def ended(text: bytes) -> bytes:
    """The text of a file, with the end of its last line."""
    return text if text.endswith(b"\n") else text + b"\n"


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


def _lock_byte(handle: int, place: int) -> None:
    """Wait until nobody else has that byte of the file. OSError where its file system has no locks.

    A lock of the handle, and not, as ``fcntl.lockf``'s, of the process: threads wait for each other, too. Such ones of
    bytes are Linux's, and so is the shape of what is asked; elsewhere everybody waits for everybody.
    """
    if sys.platform != "linux":
        fcntl.flock(handle, fcntl.LOCK_EX)
        return
    fcntl.fcntl(handle, fcntl.F_OFD_SETLKW, _lock_of(fcntl.F_WRLCK, place, 1))


def _unlock(handle: int) -> None:
    """Give back all bytes of the file, whoever else has the handle."""
    with suppress(OSError):  # what was to be done is done
        if sys.platform != "linux":
            fcntl.flock(handle, fcntl.LOCK_UN)
            return
        fcntl.fcntl(handle, fcntl.F_OFD_SETLK, _lock_of(fcntl.F_UNLCK, 0, 0))


def _lock_of(kind: int, start: int, length: int) -> bytes:
    return struct.pack("hhqqi", kind, os.SEEK_SET, start, length, 0)  # struct flock; a length of 0 is up to the end


def _readable(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False).encode()


def _failed(name: str, error: OSError) -> StoreError:
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return StoreError(
            f"{name} would be written through a link, or a file stands in the place of its folder",
            code="STORE-LINK",
            remedy="Nothing below the output folder may be a link: put the whole folder where there is room.",
        )
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return StoreError(
        f"{name} could not be read or written ({error.strerror or type(error).__name__})",
        code="STORE-FULL" if full else "STORE-FAILED",
        remedy="Free some space and run again: what is finished is kept."
        if full
        else "Mend the folder's rights or choose another with --output.",
    )
