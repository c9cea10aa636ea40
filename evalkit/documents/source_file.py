"""Bytes and SHA-256 of a source file, with a size limit and clear errors.

A source file is a file on the disk, or an attachment in a mail on the disk (``inbox/letter.eml/report.pdf``).
"""

import hashlib
import os
from pathlib import Path

from evalkit.core.document_cache import cache_document_text
from evalkit.core.safe_io import FileTooLarge, NotARegularFile, open_regular_file, read_regular_file
from evalkit.documents.attachments import Mail, parse_mail
from evalkit.errors import DocumentError

MAX_FILE_BYTES = 512 * 1024 * 1024


def read_source_file(path: Path) -> bytes:
    """Return all bytes of a file, or of an attachment in a mail.

    DocumentError: READER-UNREADABLE, READER-TOO-LARGE; READER-DAMAGED for an attachment of a damaged mail.
    """
    mail_path = find_mail_path(path)
    try:
        if mail_path is None:
            return read_regular_file(path, MAX_FILE_BYTES)
        mail_state = mail_path.stat()
    except OSError as error:
        raise build_read_error(mail_path or path, error) from error
    content = _read_mail(path.parent, mail_state.st_mtime_ns, mail_state.st_size).attachments.get(path.name)
    if content is None:
        raise DocumentError(
            f"the mail {path.parent.name} has no attachment {path.name}",
            code="READER-UNREADABLE",
            remedy="Check that the mail is complete, then run the mail again.",
        )
    return content


def read_mail(path: Path) -> Mail:
    """Read and parse the mail at ``path``, which is a file or an attachment.

    Errors as ``read_source_file``, and as ``parse_mail``.
    """
    return parse_mail(read_source_file(path), path.name)


@cache_document_text(5)  # the attachments of a mail are read one after the other, also those of mails in it
def _read_mail(path: Path, _modified_ns: int, _size: int) -> Mail:
    return read_mail(path)


def find_mail_path(path: Path) -> Path | None:
    """Return the mail file that contains the attachment ``path``; None for a file."""
    # Path.is_file raises for a folder that may not be searched; the reason is named when the file is opened.
    return next((parent for parent in path.parents if os.path.isfile(parent)), None)  # noqa: PTH113 - as above


def hash_source_file(path: Path) -> str:
    """Return a file's SHA-256 as 64 hex digits, without loading the whole file.

    Errors as ``read_source_file``.
    """
    if find_mail_path(path):
        return hashlib.sha256(read_source_file(path)).hexdigest()
    try:
        with open_regular_file(path, MAX_FILE_BYTES) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise build_read_error(path, error) from error


def build_read_error(path: Path, error: OSError) -> DocumentError:
    """Return the DocumentError for an OSError that opening or reading a file raised.

    Its code is READER-TOO-LARGE or READER-UNREADABLE.
    """
    if isinstance(error, FileTooLarge):
        return DocumentError(
            f"{path.name} is larger than {MAX_FILE_BYTES // 1024**2} MB",
            code="READER-TOO-LARGE",
            remedy="Split the file into smaller files, or export it with smaller images.",
        )
    reason = {
        FileNotFoundError: "does not exist",
        IsADirectoryError: "is a folder",
        NotARegularFile: "is a pipe or device, not a file",
        PermissionError: "may not be read by this user",
    }.get(type(error), "could not be read from the disk")
    return DocumentError(
        f"{path.name} {reason}",
        code="READER-UNREADABLE",
        remedy="Check that the file exists and that you may open it, then run again.",
    )
