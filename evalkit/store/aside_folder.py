"""Folders built under a temporary name and published by one rename."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from evalkit.errors import StoreError, choose_disk_remedy, is_disk_full
from evalkit.store.local_folder import (
    fsync_folder,
    generate_process_temp_name,
    is_orphaned_temp_file,
    make_private_folder_and_parents,
)

_ASIDE_PARENT = ".evalkit-aside"
#: A file takes whole blocks of the disk.
_BLOCK_BYTES = 4096


@contextmanager
def hold_aside_folder(parent: Path) -> Iterator[Path]:
    """Yield a new temporary folder in ``parent``; remove leftovers at the end.

    What killed processes left there is removed too. StoreError for every OSError inside of the block.
    """
    aside_parent = parent / _ASIDE_PARENT
    try:
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in aside_parent.glob("*"):
            if is_orphaned_temp_file(folder):
                shutil.rmtree(folder, ignore_errors=True)
        aside = aside_parent / generate_process_temp_name()
        make_private_folder_and_parents(aside, parent)
        try:
            yield aside
        finally:
            shutil.rmtree(aside, ignore_errors=True)
            with suppress(OSError):  # another process has its folder there
                aside_parent.rmdir()
    except OSError as error:
        raise StoreError(
            f"{parent} cannot be read or written ({error.strerror or type(error).__name__})",
            code="STORE-FULL" if is_disk_full(error) else "STORE-FAILED",
            remedy=f"Nothing was left behind. {choose_disk_remedy(error, 'Correct the permissions, or name another folder.')}",
        ) from None


def publish_folder(aside: Path, path: Path) -> None:
    """Sync a folder to disk and rename it. OSError if the name exists.

    An empty folder of this name is replaced.
    """
    os.sync()
    aside.rename(path)
    fsync_folder(path.parent)


def require_free_bytes(aside: Path, sizes: Iterable[int]) -> None:
    """Raise StoreError if the disk of a temporary folder lacks space for files."""
    needed_bytes = sum(-(-size // _BLOCK_BYTES) * _BLOCK_BYTES for size in sizes)
    free_bytes = shutil.disk_usage(aside).free
    if needed_bytes > free_bytes:
        raise StoreError(
            f"{needed_bytes:,} bytes are needed, and the disk of {aside.parent.parent} has {free_bytes:,} free",
            code="STORE-FULL",
            remedy="Nothing was left behind. Free some disk space, or name a folder on another disk.",
        )


def write_private_file(path: Path, content: bytes, topmost_folder: Path) -> None:
    """Create a file (0600) below ``topmost_folder``. OSError if it exists."""
    make_private_folder_and_parents(path.parent, topmost_folder)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(content)


def hash_file_on_disk(path: Path) -> str | None:
    """Compute the SHA-256 (hex) of a file on the disk; None if it is missing."""
    try:
        with path.open("rb", buffering=0) as file:
            if sys.platform == "linux":
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return None


def find_changed_files(folder: Path, sha256_by_name: Mapping[str, str]) -> list[str]:
    """List the files that differ from their SHA-256, or are missing."""
    return [name for name, sha256 in sha256_by_name.items() if hash_file_on_disk(folder / name) != sha256]
