"""Restoring of a backup, without documents that were purged after it.

The folder is made aside, read back, and renamed: a killed restore leaves nothing. Purges that the backup does not know
are repeated before that: their records are looked for in the other backups beside it, and where the caller says.
"""

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import count, takewhile
from pathlib import Path, PurePath

from evalkit.core.clocks import format_iso_seconds, utc_now
from evalkit.errors import UsageError
from evalkit.pipeline.backup import (
    FILES_FOLDER,
    BackupManifest,
    build_damage_error,
    find_newest_backup,
    is_of_same_origin,
    list_backups,
    read_manifest,
    require_intact_files,
)
from evalkit.pipeline.purge import PurgeRecord, find_restored_purged_doc_ids, parse_purge_record, purge
from evalkit.store import (
    PURGE_RECORDS_FOLDER,
    LocalOutputFolder,
    OutputFolder,
    check_and_describe_database,
    hold_aside_folder,
    parse_output_location,
    publish_folder,
    purge_record_file_name,
    require_free_bytes,
    write_private_file,
)


@dataclass(frozen=True)
class RestoreSummary:
    """Summary of a restored output folder."""

    path: str
    backup: str
    made_at: str
    files: int
    bytes: int
    purged: int
    """The number of documents that were purged after the backup, and were deleted again."""
    purge_records: int
    """The number of purges that are recorded, up to the newest record that was found."""
    seconds: float


def find_backup(path: Path) -> Path:
    """Return a backup, or the newest backup in a folder. UsageError if none."""
    backup = path if (path / FILES_FOLDER).is_dir() else find_newest_backup(path)
    if backup is None:
        raise UsageError(
            f"{path} is neither a backup nor a folder of backups",
            code="BACKUP-NONE",
            remedy="Name a folder that `evalkit backup` made, or the folder of all backups.",
        )
    return backup


def check_backup(backup: Path) -> BackupManifest:
    """Check every file and the database of a backup, and return the manifest.

    StoreError if a file is missing, was changed or does not belong there, or is of a newer evalkit.
    """
    manifest = _read_fitting_manifest(backup)
    require_intact_files(backup, manifest.files)
    return manifest


def _read_fitting_manifest(backup: Path) -> BackupManifest:
    manifest, folder = read_manifest(backup), LocalOutputFolder(backup / FILES_FOLDER)
    if differing_names := manifest.files.keys() ^ folder.map_file_versions().keys():
        raise build_damage_error(backup, sorted(differing_names))
    check_and_describe_database(folder)
    return manifest


def restore(
    backup: Path,
    output: Path | str,
    *,
    purged: Path | None = None,
    clock: Callable[[], datetime] = utc_now,
) -> RestoreSummary:
    """Restore a backup as ``output``, a local folder that must be missing or empty.

    ``purged`` is an output folder, or a copy of its ``purged`` folder, with newer records of purges. UsageError, StoreError:
    nothing is left behind then.
    """
    monotonic_start, root = time.monotonic(), _parse_target(output)
    manifest = _read_fitting_manifest(backup)
    with hold_aside_folder(root.absolute().parent) as aside:
        require_free_bytes(aside, (file.size for file in manifest.files.values()))
        for name, file in manifest.files.items():
            content = (backup / FILES_FOLDER / name).read_bytes()
            if hashlib.sha256(content).hexdigest() != file.sha256:
                raise build_damage_error(backup, [name])
            write_private_file(aside / FILES_FOLDER / name, content, aside)
        os.sync()
        require_intact_files(aside, manifest.files)
        restored = LocalOutputFolder(aside / FILES_FOLDER)
        record_count, other_records = _add_newer_purge_records(restored, backup, purged)
        doc_ids = find_restored_purged_doc_ids(restored, other_records) if record_count else []
        purged_documents = purge(restored, doc_ids, purged_at=format_iso_seconds(clock())) if doc_ids else []
        publish_folder(restored.root, root)
    return RestoreSummary(
        path=str(root),
        backup=str(backup),
        made_at=manifest.made_at,
        files=len(manifest.files),
        bytes=sum(file.size for file in manifest.files.values()),
        purged=len(purged_documents),
        purge_records=record_count,
        seconds=round(time.monotonic() - monotonic_start, 3),
    )


def _parse_target(output: Path | str) -> Path:
    """Return the new folder's path. UsageError for a bucket or a folder in use."""
    root = parse_output_location(output)
    if isinstance(root, str):
        raise UsageError(
            f"a backup is restored to a folder on this machine, not to {root}",
            code="OUTPUT-REMOTE",
            remedy="Restore the backup to a folder, run `evalkit move-database`, and copy the files into the bucket.",
        )
    if root.is_symlink() or root.is_file() or root.is_mount() or (root.is_dir() and any(root.iterdir())):
        raise UsageError(
            f"{root} is not empty, or is a file, a link or the root of a disk",
            code="RESTORE-TARGET",
            remedy="Nothing was changed. Move the existing files away, or name a new folder with --output.",
        )
    return root


def _add_newer_purge_records(
    restored: LocalOutputFolder, backup: Path, purged: Path | None
) -> tuple[int, list[PurgeRecord]]:
    """Add newer purge records; return the number of all, and those that do not fit.

    Histories part where a folder was lost after a purge that no backup has, and restored without its record.
    """
    own_records = [content for _, content in restored.iterate_files_recursively(PURGE_RECORDS_FOLDER)]
    histories = [own_records, *_iterate_purge_records(restored, backup, purged)]
    records = max((history for history in histories if history[: len(own_records)] == own_records), key=len)
    for number, content in enumerate(records[len(own_records) :], len(own_records) + 1):
        restored.write_bytes(purge_record_file_name(number), content)
    other_records = {content for history in histories for content in history}.difference(records)
    return len(records) + len(other_records), list(map(parse_purge_record, other_records))


def _iterate_purge_records(restored: OutputFolder, backup: Path, purged: Path | None) -> Iterator[list[bytes]]:
    folders = [
        other / FILES_FOLDER / PURGE_RECORDS_FOLDER
        for other in list_backups(backup.absolute().parent)
        if is_of_same_origin(other, restored)
    ]
    if purged is not None:
        if not purged.is_dir():
            raise UsageError(
                f"{purged} is not a folder",
                code="RESTORE-PURGED",
                remedy="Name the lost output folder or its purged/ folder with --purged, or leave it out.",
            )
        folders.append(purged / PURGE_RECORDS_FOLDER if (purged / PURGE_RECORDS_FOLDER).is_dir() else purged)
    for folder in folders:
        paths = (folder / PurePath(purge_record_file_name(number)).name for number in count(1))
        yield [path.read_bytes() for path in takewhile(Path.is_file, paths)]
