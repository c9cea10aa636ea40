"""Location of an output folder, a local path or bucket URL: parsing, opening."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from evalkit.document_types import get_own_types, parse_own_types, read_types_file, use_own_types
from evalkit.errors import UsageError
from evalkit.store.file_names import OWN_TYPES_FILE, REVIEWS_FOLDER
from evalkit.store.local_folder import LocalOutputFolder
from evalkit.store.output_folder import OutputFolder, require_evalkit_output_folder

#: Matches a scheme also in capitals or with a slash too few: otherwise a mistyped URL would become a local folder, in
#: which patients' documents would be stored.
_SCHEME_PATTERN = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+|((?i:s3|gs|file)):")
#: Allows no ``?`` and no ``@``, because a key in the address would be printed with it.
_BUCKET_URL_PATTERN = re.compile(r"(?:s3|gs)://[a-z0-9][a-z0-9._-]{1,220}[a-z0-9](?:/[A-Za-z0-9_=-][A-Za-z0-9_=.-]*)*")


def parse_output_location(output: Path | str) -> Path | str:
    """Parse an output location: a local path or a bucket URL (``s3://…``, ``gs://…``).

    UsageError for any other URL.

    >>> parse_output_location("output"), parse_output_location("file:///srv/output")
    (PosixPath('output'), PosixPath('/srv/output'))
    >>> parse_output_location("s3://bucket/hospital/"), parse_output_location(Path("gs://bucket")), parse_output_location("S3://bucket")
    ('s3://bucket/hospital', 'gs://bucket', 's3://bucket')
    """
    text = str(output)
    scheme_match = _SCHEME_PATTERN.match(text)
    if not scheme_match:
        return Path(output)
    scheme = (scheme_match[1] or "").lower()
    if scheme == "file" and urlsplit(text).netloc in ("", "localhost"):
        return Path(unquote(urlsplit(text).path))
    # pathlib merges two slashes: without this, Path("s3://bucket") would be a local folder.
    url = f"{scheme}://{text[scheme_match.end() :].rstrip('/')}"
    if not _BUCKET_URL_PATTERN.fullmatch(url):
        raise UsageError(
            "the output location is a URL that evalkit does not support",
            code="OUTPUT-URL",
            remedy="Name a folder, or s3://BUCKET/PREFIX or gs://BUCKET/PREFIX; credentials come from the environment.",
        )
    return url


def open_output_folder(root: Path | str, database_url: str | None = None) -> OutputFolder:
    """Open the output folder at a local path or at a bucket URL.

    Nothing is created or requested yet. ``database_url`` is the PostgreSQL database of the folder's claims, drafts,
    journal and index; None is ``evalkit.sqlite``. The site's own document types that a local folder keeps are in force
    from now on. UsageError if the URL cannot be used, if a local folder holds other people's files, or if the types
    cannot be read.
    """
    location = parse_output_location(root)
    if isinstance(location, Path):
        output_folder = LocalOutputFolder(location, database_url)
        require_evalkit_output_folder(output_folder, may_be_missing=True)
        use_stored_types(output_folder)
        return output_folder
    from evalkit.store.bucket import BucketOutputFolder  # not needed for a folder on this machine

    return BucketOutputFolder(location, database_url)


def open_existing_output_folder(root: Path | str, database_url: str | None = None) -> OutputFolder:
    """Open the output folder of an earlier run. UsageError if there is none."""
    output_folder = open_output_folder(root, database_url)
    require_evalkit_output_folder(output_folder)
    use_stored_types(output_folder)
    return output_folder


def use_stored_types(output_folder: OutputFolder) -> None:
    """Add the document types stored in the folder to the types in use.

    UsageError if its file is damaged.
    """
    if output_folder.has_file(OWN_TYPES_FILE):
        path = f"{output_folder.root}/{OWN_TYPES_FILE}"
        use_own_types(parse_own_types(output_folder.read_bytes(OWN_TYPES_FILE), path) | get_own_types())


def store_own_types(output_folder: OutputFolder, types_file: str) -> None:
    """Use only this file's document types, and copy the file to the folder.

    UsageError if the file is unusable, or if it lacks a type that the folder's reviews may name: they could not be read.
    """
    content = read_types_file(types_file)
    records = parse_own_types(content, types_file)
    if output_folder.has_file(OWN_TYPES_FILE) and output_folder.has_folder(REVIEWS_FOLDER):
        stored_names = parse_own_types(output_folder.read_bytes(OWN_TYPES_FILE), OWN_TYPES_FILE).keys()
        if dropped_names := ", ".join(sorted(stored_names - records.keys())):
            raise UsageError(
                f"{types_file} lacks {dropped_names}, without which reviews in {output_folder.root} could not be read",
                code="TYPES-DROPPED",
                remedy="Keep the old types in the file too, or choose another output folder with --output.",
            )
    use_own_types(records)
    if not output_folder.has_file(OWN_TYPES_FILE) or output_folder.read_bytes(OWN_TYPES_FILE) != content:
        output_folder.write_bytes(OWN_TYPES_FILE, content)
