"""Factory of output folders on this machine and in buckets."""

from __future__ import annotations

from pathlib import Path

from evalkit.store.local_folder import LocalOutputFolder
from evalkit.store.output_folder import OutputFolder
from evalkit.store.output_location import parse_output_location


def open_output_folder(root: Path | str, database_url: str | None = None) -> OutputFolder:
    """Open the output folder at a local path or at a bucket URL.

    Nothing is created or requested yet. ``database_url`` is the PostgreSQL database of the folder's claims, drafts,
    journal and index; None is ``evalkit.sqlite``. UsageError if the URL cannot be used.
    """
    location = parse_output_location(root)
    if isinstance(location, Path):
        return LocalOutputFolder(location, database_url)
    from evalkit.store.bucket import BucketOutputFolder  # not needed for a folder on this machine

    return BucketOutputFolder(location, database_url)
