"""An output folder on this machine, whose files are written atomically.

Each file is written under a temporary name, synced and renamed. Files have mode 0600, folders 0700.
"""

from __future__ import annotations

import errno
import fcntl
import os
import platform
import re
import secrets
import shlex
import shutil
import stat
import struct
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path, PurePath
from typing import NamedTuple

from typing_extensions import override

from evalkit.core.safe_io import FileTooLarge, NotARegularFile, open_regular_file
from evalkit.errors import NotFound, StoreError, UsageError, choose_disk_remedy, is_disk_full
from evalkit.store.change_chain import RECORDED_FILES, RECORDED_FOLDERS
from evalkit.store.file_names import (
    NAME_PART_PATTERN,
    REVIEWS_FOLDER,
    RUN_LOCK_FILE,
    SAVE_LOCK_FILE,
    SQLITE_FILE,
    TEMP_FOLDER,
    WRITE_LOCK_FILE,
)
from evalkit.store.output_folder import (
    FileVersion,
    OutputFolder,
    add_trailing_newline,
    build_run_lock_held_error,
    split_and_validate_file_name,
)

#: Maximum bytes of a file that is read; the bundle of a document with 20,000 pages is smaller.
_MAX_FILE_BYTES = 2 * 1024**3
#: Number of write locks that documents share by hash. Two documents with the same lock wait for each other, which is
#: harmless.
_LOCK_SLOTS = 256
#: Files and folders that may name or quote a patient.
_PRIVATE_NAMES = (*RECORDED_FOLDERS, *RECORDED_FILES, REVIEWS_FOLDER, SQLITE_FILE)
#: Permissions with which somebody else can change a file or folder.
CHANGING_MODES = stat.S_IWGRP | stat.S_IWOTH
#: Permissions that no file or folder with a patient's data needs.
EXPOSING_MODES = CHANGING_MODES | stat.S_IRWXO


class LocalOutputFolder(OutputFolder):
    """An :class:`OutputFolder` on this machine."""

    def __init__(self, root: Path, database_url: str | None = None) -> None:
        """Use the folder at ``root``, which need not exist yet."""
        self.root: Path = root
        self.database_url = database_url

    def local_path(self, name: str) -> Path:
        """Return the path of a file. StoreError if the name could lead out of the folder."""
        return Path(self._local_path_text(name))

    def _local_path_text(self, name: str) -> str:
        """Return ``local_path`` as text, because building a Path takes longer."""
        return f"{self.root}/{'/'.join(split_and_validate_file_name(name))}"

    @override
    def has_folder(self, subfolder: str | None = None) -> bool:
        return (self.root if subfolder is None else self.local_path(subfolder)).is_dir()

    @override
    def has_file(self, name: str) -> bool:
        try:
            return stat.S_ISREG(os.stat(self._local_path_text(name)).st_mode)  # noqa: PTH116 - as _local_path_text
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise _build_store_error(self.root, name, error) from error

    @override
    def list_file_and_folder_names(self, subfolder: str | None = None) -> set[str]:
        try:
            return set(os.listdir(self.root if subfolder is None else self._local_path_text(subfolder)))  # noqa: PTH208 - names alone
        except OSError as error:
            if subfolder is not None and isinstance(error, FileNotFoundError):
                return set()
            raise _build_store_error(self.root, subfolder or "", error) from error

    @override
    def list_subfolder_names(self, subfolder: str) -> list[str]:
        try:
            children = self.local_path(subfolder).iterdir()
            return sorted(
                child.name for child in children if NAME_PART_PATTERN.fullmatch(child.name) and child.is_dir()
            )
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _build_store_error(self.root, subfolder, error) from error

    @override
    def read_bytes(self, name: str, max_bytes: int | None = None) -> bytes:
        return self._read_path(self._local_path_text(name), name, max_bytes)

    def _read_path(self, path: str, name: str, max_bytes: int | None = None) -> bytes:
        try:
            with open_regular_file(path, _MAX_FILE_BYTES) as file:
                if max_bytes is None:
                    return file.read()
                if sys.platform == "linux":  # otherwise the system reads megabytes ahead
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
                return file.read(max_bytes)
        except FileNotFoundError as error:
            raise NotFound(
                f"{name} does not exist",
                code="STORE-NOT-FOUND",
                remedy="Process the document with `evalkit run` first.",
            ) from error
        except (NotARegularFile, FileTooLarge, IsADirectoryError) as error:
            raise StoreError(
                f"{name} is not one of evalkit's files: {error.strerror}",
                code="STORE-TORN",
                remedy="Move this item out of the output folder, and restore the file of this name from a backup.",
            ) from error
        except OSError as error:
            raise _build_store_error(self.root, name, error) from error

    @override
    def map_file_versions(self, subfolder: str | None = None) -> dict[str, FileVersion]:
        return {
            name: FileVersion(status.st_size, f"{status.st_ino}-{status.st_mtime_ns}")
            for name, status in self._iterate_statuses(subfolder)
            if stat.S_ISREG(status.st_mode)
        }

    def _iterate_statuses(self, subfolder: str | None = None) -> Iterator[tuple[str, os.stat_result]]:
        """Yield name and status of every file, folder and link below a folder."""
        folder_paths = [str(self.root) if subfolder is None else self._local_path_text(subfolder)]
        try:
            while folder_paths:
                for entry in _scan_folder(folder_paths.pop()):
                    status = entry.stat(follow_symlinks=False)
                    if stat.S_ISDIR(status.st_mode):
                        folder_paths.append(entry.path)
                    yield entry.path[len(str(self.root)) + 1 :], status
        except OSError as error:
            raise _build_store_error(self.root, subfolder or "", error) from error

    @override
    def read_listed_file(self, name: str) -> bytes:
        return self._read_path(f"{self.root}/{name:s}", name)

    @override
    def get_modification_time(self, name: str) -> float | None:
        try:
            return self.local_path(name).stat().st_mtime
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _build_store_error(self.root, name, error) from error

    def list_symlinks(self) -> list[str]:
        """List all symbolic links in the output folder and its subfolders, sorted."""
        return sorted(name for name, status in self._iterate_statuses() if stat.S_ISLNK(status.st_mode))

    def list_exposed_names(self, top_names: Iterable[str] = _PRIVATE_NAMES, modes: int = EXPOSING_MODES) -> list[str]:
        """List, sorted, the files and folders that grant one of these permissions."""
        tops = frozenset(top_names)
        return sorted(
            name
            for name, status in self._iterate_statuses()
            if name.partition("/")[0] in tops
            and not PurePath(name).name.startswith(".")
            and not stat.S_ISLNK(status.st_mode)
            and status.st_mode & modes
        )

    @staticmethod
    def get_permission_remedy(root: Path) -> str:
        """Return advice if other users can read or change files under ``root``."""
        return f"Run: chmod -R g-w,o= {shlex.quote(str(root))}"

    @override
    def _remove_file(self, name: str) -> bool:
        *parent_names, file_name = split_and_validate_file_name(name)
        try:
            os.lstat(self._local_path_text(name))  # usually the file is missing, and opening its folders takes longer
            with _open_nested_folder(self.root, parent_names) as parent_fd:
                os.unlink(file_name, dir_fd=parent_fd)
                os.fsync(parent_fd)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise _build_store_error(self.root, name, error) from error
        return True

    @override
    def remove_folder(self, name: str) -> list[str]:
        path = self.local_path(name)
        *parent_names, folder_name = split_and_validate_file_name(name)
        try:
            with _open_nested_folder(self.root, parent_names) as parent_fd:
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
            raise _build_store_error(self.root, name, error) from error
        return removed_names

    def remove_old_temp_files(self, is_old: Callable[[Path], bool]) -> None:
        """Remove temporary files that no running process needs."""
        for temp_file in (self.root / TEMP_FOLDER).glob("*"):
            with suppress(OSError):
                if is_old(temp_file):
                    temp_file.unlink()

    @override
    @contextmanager
    def _acquire_run_lock(self) -> Iterator[None]:
        """Hold the folder's run lock, and remove temporary files of killed runs.

        UsageError if another run holds the lock.
        """
        with ExitStack() as exit_stack:
            try:
                lock_fd = self._open_lock_file(RUN_LOCK_FILE, exit_stack)
                fcntl.flock(lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise build_run_lock_held_error(self.root) from error
            except OSError as error:
                raise UsageError(
                    f"the output folder {self.root} cannot be written ({error.strerror})",
                    code="OUTPUT-FOLDER",
                    remedy=_choose_remedy(error, RUN_LOCK_FILE),
                ) from error
            self.remove_old_temp_files(is_orphaned_temp_file)
            yield

    @override
    @contextmanager
    def hold_save_lock(self, *, for_backup: bool = False) -> Iterator[None]:
        if self._is_read_only:
            yield
            return
        with ExitStack() as exit_stack:
            try:
                lock_fd = self._open_lock_file(SAVE_LOCK_FILE, exit_stack)
                fcntl.flock(lock_fd, fcntl.LOCK_EX if for_backup else fcntl.LOCK_SH)
            except OSError as error:
                raise _build_store_error(self.root, SAVE_LOCK_FILE, error) from error
            exit_stack.callback(fcntl.flock, lock_fd, fcntl.LOCK_UN)  # a process forked meanwhile has the handle too
            yield

    @override
    @contextmanager
    def _acquire_write_lock(self, document_key: str | None) -> Iterator[None]:
        if self._is_read_only:
            yield
            return
        with ExitStack() as exit_stack:
            try:
                lock_fd = self._open_lock_file(WRITE_LOCK_FILE, exit_stack)
                # A process forked meanwhile has this handle too: closing it in this process alone would not unlock.
                exit_stack.callback(_unlock_file, lock_fd)
                # In ascending order, so that two processes that lock the whole folder do not deadlock. Byte by byte,
                # because a lock of all bytes at once would wait for a moment at which nobody holds any of them.
                for slot in (
                    range(_LOCK_SLOTS) if document_key is None else [zlib.crc32(document_key.encode()) % _LOCK_SLOTS]
                ):
                    _wait_and_lock_byte(lock_fd, slot)
            except OSError as error:
                raise StoreError(
                    f"the output folder {self.root} cannot be written ({error.strerror})",
                    code="STORE-FULL" if is_disk_full(error) else "STORE-FAILED",
                    remedy=_choose_remedy(error, WRITE_LOCK_FILE),
                ) from error
            yield

    @property
    def _is_read_only(self) -> bool:
        """Return True if nothing can be written that a lock would protect."""
        return self.root.is_dir() and not os.access(self.root, os.W_OK)

    def _open_lock_file(self, name: str, exit_stack: ExitStack) -> int:
        """Open a lock file, creating it if missing, until the end of ``exit_stack``.

        OSError if it is a symbolic link.
        """
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock_fd = os.open(self.root / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        exit_stack.callback(os.close, lock_fd)
        return lock_fd

    @override
    def _write_atomically(self, name: str, content: bytes) -> None:
        with self._stage_file(name, content) as staged_file:
            os.replace(
                staged_file.temp_name,
                staged_file.file_name,
                src_dir_fd=staged_file.temp_folder_fd,
                dst_dir_fd=staged_file.parent_fd,
            )

    @override
    def _create_atomically_if_absent(self, name: str, content: bytes) -> bool:
        with self._stage_file(name, content) as staged_file:
            return staged_file.link_into_place_if_absent()

    @contextmanager
    def _stage_file(self, name: str, content: bytes) -> Iterator[_StagedFile]:
        """Write and sync a file under a temporary name, and yield it for renaming.

        Each folder is opened relative to its parent and never through a link, so that nothing is written outside of the
        root, even if a folder is replaced meanwhile.
        """
        *parent_names, file_name = split_and_validate_file_name(name)
        temp_name = generate_process_temp_name()
        try:
            with (
                _open_nested_folder(self.root, [TEMP_FOLDER], create_missing=True) as temp_folder_fd,
                _open_nested_folder(self.root, parent_names, create_missing=True) as parent_fd,
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
            raise _build_store_error(self.root, name, error) from error


def require_local_folder(output_folder: OutputFolder) -> LocalOutputFolder:
    """Return the output folder if it is local. UsageError if it is in a bucket."""
    if isinstance(output_folder, LocalOutputFolder):
        return output_folder
    raise UsageError(
        f"this command needs an output folder on this machine, not {output_folder.root}",
        code="OUTPUT-REMOTE",
        remedy="Copy the folder to this machine with the provider's own tool, and name the copy with --output.",
    )


def _scan_folder(path: str) -> list[os.DirEntry[str]]:
    """List a folder; empty if it was removed meanwhile."""
    try:
        with os.scandir(path) as entries:
            return list(entries)
    except FileNotFoundError:
        return []


class _StagedFile(NamedTuple):
    """Complete file under a temporary name, which is ready to be renamed."""

    temp_name: str
    temp_folder_fd: int
    file_name: str
    parent_fd: int

    def link_into_place_if_absent(self) -> bool:
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
def _open_nested_folder(root: Path, path_parts: Sequence[str], *, create_missing: bool = False) -> Iterator[int]:
    """Open a folder below the root without following links; yield its descriptor.

    With ``create_missing``, missing folders are created with mode 0700.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    if create_missing:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder_fd = os.open(root, flags)
    try:
        for folder_name in path_parts:
            if create_missing and _make_folder(folder_name, folder_fd):
                os.fsync(folder_fd)  # otherwise a power cut could lose the folder and its files
            child_fd = os.open(folder_name, flags | os.O_NOFOLLOW, dir_fd=folder_fd)
            os.close(folder_fd)
            folder_fd = child_fd
        yield folder_fd
    finally:
        os.close(folder_fd)


def _make_folder(folder_name: str, parent_fd: int) -> bool:
    try:
        os.mkdir(folder_name, 0o700, dir_fd=parent_fd)
    except FileExistsError:
        return False
    return True


def make_private_folder_and_parents(folder: Path, topmost_folder: Path) -> None:
    """Create a folder and its parents up to ``topmost_folder``, with mode 0700."""
    if folder != topmost_folder and not folder.is_dir():
        make_private_folder_and_parents(folder.parent, topmost_folder)
    folder.mkdir(mode=0o700, parents=folder == topmost_folder, exist_ok=True)


def fsync_folder(folder: Path) -> None:
    """Sync a folder to disk, so that renames in it survive a power cut."""
    folder_fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder_fd)
    finally:
        os.close(folder_fd)


def _wait_and_lock_byte(lock_fd: int, byte_offset: int) -> None:
    """Wait until one byte of the file is unlocked, and lock it.

    OSError if the file system has no locks. The lock belongs to the open file, not to the process as ``fcntl.lockf``'s
    does, so that threads wait for each other, too. Only Linux has such locks of single bytes; elsewhere the whole file
    is locked.
    """
    if sys.platform != "linux":
        fcntl.flock(lock_fd, fcntl.LOCK_EX)
        return
    fcntl.fcntl(lock_fd, fcntl.F_OFD_SETLKW, _pack_flock(fcntl.F_WRLCK, byte_offset, 1))


def _unlock_file(lock_fd: int) -> None:
    """Unlock all bytes of the file, even if a forked process has the handle too."""
    with suppress(OSError):  # the work under the lock is finished already
        if sys.platform != "linux":
            fcntl.flock(lock_fd, fcntl.LOCK_UN)
            return
        fcntl.fcntl(lock_fd, fcntl.F_OFD_SETLK, _pack_flock(fcntl.F_UNLCK, 0, 0))


def _pack_flock(lock_type: int, start: int, length: int) -> bytes:
    return struct.pack(
        "hhqqi", lock_type, os.SEEK_SET, start, length, 0
    )  # struct flock; a length of 0 means up to the end of the file


_LINK_REMEDY = "Remove links below the output folder: to use another disk, move the whole folder. Move files out that have the name of one of its folders, such as {temp}."
#: What helps, by error; ``{name}`` is the file.
_REMEDY_BY_ERRNO = {
    errno.EISDIR: "Move the folder {name} out of the output folder: a file belongs there.",
    errno.ENOLCK: "This disk has no file locks: use a local disk, or mount the network drive with locks.",
    errno.EOPNOTSUPP: "This disk has no file locks: use a local disk, or mount the network drive with locks.",
}


def _choose_remedy(error: OSError, name: str) -> str:
    permission_remedy = "Correct the folder's permissions, or choose another folder with --output."
    remedy = _REMEDY_BY_ERRNO.get(error.errno or 0, permission_remedy).format(name=name)
    return choose_disk_remedy(error, remedy)


def _build_store_error(root: Path, name: str, error: OSError) -> StoreError:
    path = root / name
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return StoreError(
            f"{path} cannot be written: its path contains a link, or a file where a folder belongs",
            code="STORE-LINK",
            remedy=_LINK_REMEDY.format(temp=TEMP_FOLDER),
        )
    return StoreError(
        f"{path} could not be read or written ({error.strerror or type(error).__name__})",
        code="STORE-FULL" if is_disk_full(error) else "STORE-FAILED",
        remedy=_choose_remedy(error, name),
    )


_TEMP_NAME_PATTERN = re.compile(r"(?:([0-9a-f]{8})\.)?(\d+)-")
#: Seconds after which another machine's temporary file counts as left behind.
_ORPHAN_AGE_SECONDS = 86_400


def generate_process_temp_name() -> str:
    """Generate a unique file name that identifies this machine and process."""
    return f"{_identify_machine()}.{os.getpid()}-{secrets.token_hex(8)}"


def is_orphaned_temp_file(path: Path) -> bool:
    """Return True if the process that wrote a temporary file has ended.

    OSError if the file's times are unknown. Several machines may work in one folder, each with its own process numbers:
    for another machine's file the age decides.
    """
    name_match = _TEMP_NAME_PATTERN.match(path.name)
    if name_match is None:
        return False
    if name_match[1] == _identify_machine():
        return not _is_running(int(name_match[2]))
    return time.time() - path.lstat().st_mtime > _ORPHAN_AGE_SECONDS


@cache
def _identify_machine() -> str:
    """Return a hash that identifies this boot of the machine, or this container."""
    try:
        machine_identity = Path("/proc/sys/kernel/random/boot_id").read_text("ascii") + str(
            Path("/proc/self/ns/pid").stat().st_ino
        )
    except OSError:
        machine_identity = platform.node()
    return f"{zlib.crc32(machine_identity.encode()):08x}"


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True
