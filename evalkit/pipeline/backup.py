"""Backups of an output folder: dated folders of plain files with a manifest.

``TO/2026-11-28T05-43-12.250Z/files/`` has the output folder's files, among them the database as ``evalkit.sqlite``, also
if it is in PostgreSQL; ``manifest.json`` has the size and SHA-256 of each. A file that has not changed since the newest
backup in ``TO`` is a hard link to that backup's copy. A backup is made aside, synced, read back and renamed: one that has
its name is whole.
"""

import hashlib
import importlib.metadata
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from evalkit.core.clocks import format_zulu, utc_now
from evalkit.core.records import LazyStrictRecord
from evalkit.core.wording import format_count
from evalkit.errors import NotFound, StoreError, UsageError
from evalkit.review.index_rebuild import warn_of_differences
from evalkit.store import (
    PATIENT_SALT_FILE,
    PURGE_INTENT_FILE,
    SQLITE_FILE,
    FileVersion,
    LocalOutputFolder,
    OutputFolder,
    OutputIndex,
    encode_indented_json,
    find_changed_files,
    hash_file_on_disk,
    hold_aside_folder,
    is_coordination_file,
    make_private_folder_and_parents,
    publish_folder,
    read_record,
    require_free_bytes,
    write_private_file,
)

FILES_FOLDER = "files"
_MANIFEST_FILE = "manifest.json"
_BACKUP_NAME_PATTERN = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z")
#: Number of times that the folder is read again under the locks, until nothing changes any more: only programs other than
#: evalkit still write then.
_MAX_PASSES = 10


class BackedUpFile(LazyStrictRecord):
    """A file in a backup."""

    size: int
    sha256: str
    version: str
    """The version of the original, by which the next backup recognises it."""


class BackupManifest(LazyStrictRecord):
    """Manifest of a backup: its files with their hashes."""

    schema_version: int = 1
    evalkit: str
    made_at: str
    files: dict[str, BackedUpFile]


@dataclass(frozen=True)
class BackupSummary:
    """Summary of a finished backup."""

    path: str
    files: int
    bytes: int
    linked: int
    """The number of files that are links to the backup before."""
    left_out: tuple[str, ...]
    """Links in the output folder, which are not followed."""
    seconds: float


def back_up(output_folder: OutputFolder, target: Path, *, clock: Callable[[], datetime] = utc_now) -> BackupSummary:
    """Back up the output folder to the folder ``target``, created if missing.

    Runs and reviewers may work meanwhile; they wait only while the last changes are copied. UsageError if ``target`` is in
    the output folder, or a purge is unfinished; StoreError, also if the disk is too small: nothing is left behind.
    """
    root = output_folder.root
    if isinstance(root, Path) and target.resolve().is_relative_to(root.resolve()):
        raise UsageError(
            f"the backup {target} would be inside of the output folder",
            code="BACKUP-INSIDE",
            remedy="Name a folder outside of it, best on another disk.",
        )
    earlier_backup = find_newest_backup(target)
    if earlier_backup is not None and not is_of_same_origin(earlier_backup, output_folder):
        raise UsageError(
            f"{target} contains backups of another output folder",
            code="BACKUP-OTHER",
            remedy="Name a separate backup folder for each output folder.",
        )
    monotonic_start = time.monotonic()
    # A database that is missing stays so: it is rebuilt from the files, now or after a restore.
    is_read_only = output_folder.database_url is None and not os.access(Path(root) / SQLITE_FILE, os.W_OK)
    index = OutputIndex(output_folder, read_only=is_read_only)
    with hold_aside_folder(target) as aside, index, ExitStack() as snapshot:
        warn_of_differences(output_folder, index)
        copier = _ChangeCopier(output_folder, aside, earlier_backup)
        copier.copy_changes()
        copier.copy_changes()  # what changed during the first pass, so that little is left for the last one
        with output_folder.hold_save_lock(for_backup=True), output_folder.hold_write_lock():
            if output_folder.has_file(PURGE_INTENT_FILE):
                raise UsageError(
                    "a purge of the output folder is unfinished",
                    code="BACKUP-PURGE",
                    remedy="Wait until the purge has ended, or finish it with `evalkit purge` without a DOC_ID; then back up.",
                )
            made_at = format_zulu(clock())
            write_database = snapshot.enter_context(index.hold_snapshot())
            for _ in range(_MAX_PASSES):
                if not copier.copy_changes():
                    break
        copier.add_database(write_database)
        os.sync()
        require_intact_files(
            aside, {name: file for name, file in copier.files.items() if name not in copier.linked_names}
        )
        manifest = BackupManifest(evalkit=importlib.metadata.version("evalkit"), made_at=made_at, files=copier.files)
        write_private_file(aside / _MANIFEST_FILE, encode_indented_json(manifest.model_dump(mode="json")), aside)
        path = target / made_at.replace(":", "-")
        publish_folder(aside, path)
    return BackupSummary(
        path=str(path),
        files=len(copier.files),
        bytes=sum(file.size for file in copier.files.values()),
        linked=len(copier.linked_names),
        left_out=tuple(output_folder.list_symlinks()) if isinstance(output_folder, LocalOutputFolder) else (),
        seconds=round(time.monotonic() - monotonic_start, 3),
    )


def list_backups(folder: Path) -> list[Path]:
    """List the backups in a folder of backups, oldest first."""
    return sorted(path for path in folder.glob("*") if _BACKUP_NAME_PATTERN.fullmatch(path.name))


def find_newest_backup(folder: Path) -> Path | None:
    """Return the newest backup in a folder of backups; None if it has none."""
    return next(reversed(list_backups(folder)), None)


def is_of_same_origin(backup: Path, output_folder: OutputFolder) -> bool:
    """Return False if a backup is from another output folder (another salt)."""
    salt_path = backup / FILES_FOLDER / PATIENT_SALT_FILE
    if not salt_path.is_file() or not output_folder.has_file(PATIENT_SALT_FILE):
        return True
    return salt_path.read_bytes() == output_folder.read_bytes(PATIENT_SALT_FILE)


def read_manifest(backup: Path) -> BackupManifest:
    """Read a backup's manifest. StoreError if missing, damaged or of a newer evalkit."""
    try:
        return read_record(LocalOutputFolder(backup), _MANIFEST_FILE, BackupManifest)
    except NotFound:
        raise _build_backup_error(backup, f"has no {_MANIFEST_FILE}: it is incomplete or damaged") from None


def require_intact_files(backup: Path, files: Mapping[str, BackedUpFile]) -> None:
    """Read a backup's files. StoreError if a file is missing or was changed."""
    changed_names = find_changed_files(backup / FILES_FOLDER, {name: file.sha256 for name, file in files.items()})
    if changed_names:
        raise build_damage_error(backup, changed_names)


def build_damage_error(backup: Path, names: Sequence[str]) -> StoreError:
    """Build the error for a backup in which these files are damaged."""
    count = format_count(len(names), "file")
    return _build_backup_error(backup, f"has {count} missing, changed or added, such as {names[0]}")


def _build_backup_error(backup: Path, problem: str) -> StoreError:
    """Build the error for a damaged backup; it names the newest other one beside it."""
    others = [path for path in list_backups(backup.absolute().parent) if path.name != backup.name]
    hint = f", such as {others[-1]}" if others else ""
    return StoreError(
        f"the backup {backup} {problem}",
        code="BACKUP-DAMAGED",
        remedy=f"Use another backup{hint}, and check this disk: a healthy disk keeps what was written to it.",
    )


class _ChangeCopier:
    """Copier of a folder's files that copies again what changed meanwhile."""

    def __init__(self, output_folder: OutputFolder, aside: Path, earlier_backup: Path | None) -> None:
        """Copy to the backup ``aside``, or link to the files of ``earlier_backup``."""
        self.files: dict[str, BackedUpFile] = {}
        self.linked_names: set[str] = set()
        self._output_folder = output_folder
        self._aside, self._folder = aside, aside / FILES_FOLDER
        self._earlier_files: dict[str, BackedUpFile] = {}
        if earlier_backup is not None:
            self._earlier_folder = earlier_backup / FILES_FOLDER
            with suppress(StoreError):  # nothing is linked to a damaged backup
                self._earlier_files = read_manifest(earlier_backup).files

    def copy_changes(self) -> bool:
        """Copy what changed since the last call; return False if nothing did."""
        versions = {
            name: version
            for name, version in self._output_folder.map_file_versions().items()
            if not is_coordination_file(name)
        }
        gone_names = self.files.keys() - versions.keys()
        changed = {
            name: version for name, version in versions.items() if not _has_version(self.files.get(name), version)
        }
        for name in (*gone_names, *changed):
            if self.files.pop(name, None):
                (self._folder / name).unlink()  # not overwritten: it may be a link to an earlier backup's copy
            self.linked_names.discard(name)
        new_sizes = (version.size for name, version in changed.items() if not self._is_linkable(name, version))
        require_free_bytes(self._aside, new_sizes)
        for name, version in changed.items():
            with suppress(NotFound):  # removed meanwhile
                if not self._link(name, version):
                    self._copy(name, version)
        return bool(gone_names or changed)

    def add_database(self, write_database: Callable[[Path], None]) -> None:
        path, database_path = self._folder / SQLITE_FILE, Path(self._output_folder.root) / SQLITE_FILE
        require_free_bytes(self._aside, [database_path.stat().st_size] if database_path.is_file() else [])
        write_private_file(path, b"", self._aside)
        write_database(path)
        self.files[SQLITE_FILE] = BackedUpFile(
            size=path.stat().st_size, sha256=str(hash_file_on_disk(path)), version=""
        )

    def _is_linkable(self, name: str, version: FileVersion) -> bool:
        return _has_version(self._earlier_files.get(name), version)

    def _link(self, name: str, version: FileVersion) -> bool:
        """Link to the copy in the earlier backup; False if it has none, or a damaged one."""
        path = self._folder / name
        if not self._is_linkable(name, version):
            return False
        file = self._earlier_files[name]
        make_private_folder_and_parents(path.parent, self._aside)
        try:
            os.link(self._earlier_folder / name, path)
        except OSError:  # it is missing, or the disk has no hard links, or too many of it
            return False
        if hash_file_on_disk(path) != file.sha256:
            path.unlink()
            return False
        self.files[name] = file
        self.linked_names.add(name)
        return True

    def _copy(self, name: str, version: FileVersion) -> None:
        content = self._output_folder.read_listed_file(name)
        write_private_file(self._folder / name, content, self._aside)
        self.files[name] = BackedUpFile(
            size=len(content), sha256=hashlib.sha256(content).hexdigest(), version=version.version
        )


def _has_version(file: BackedUpFile | None, version: FileVersion) -> bool:
    return file is not None and (file.size, file.version) == version
