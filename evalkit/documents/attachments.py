"""Mails with attachments: each attachment is read as a document of its own.

An attachment's path is the mail's path followed by its name, e.g. ``inbox/letter.eml/report.pdf``. A mail in a mail is
an attachment with attachments of its own.
"""

import email
import io
import mimetypes
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from email.message import EmailMessage
from email.policy import default as modern_policy
from pathlib import Path, PurePosixPath
from typing import NamedTuple, cast

from evalkit.documents.charsets import decode_text
from evalkit.errors import DocumentError

MAIL_SUFFIXES = (".eml",)
MAX_MAIL_BYTES = 128 * 1024 * 1024
_MAX_PARTS, _MAX_DEPTH = 1000, 50
_MAX_NAME_LENGTH = 120
_ENCRYPTED_TYPES = {"application/pkcs7-mime", "application/x-pkcs7-mime", "multipart/encrypted"}
#: Beginning of a mail: header lines, among them at least two that mails have.
_HEADER_BLOCK = re.compile(rb"(?:From [^\n]*\n)?(?:[!-9;-~]+:[^\n]*\n(?:[ \t][^\n]*\n)*){2,}\r?\n?")
_MAIL_HEADER = re.compile(rb"(?im)^(?:from|to|date|subject|mime-version|message-id|received|return-path|content-type):")
_MIN_MAIL_HEADERS, _DETECTION_BYTES = 2, 65_536
#: A picture that is shown within a mail's text is a document only from this size on: smaller ones are logos.
_MIN_PAGE_PIXELS = 600 * 600
_UNSAFE_CHARACTERS = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]+")


class Mail(NamedTuple):
    """A parsed mail: the text that its recipient sees, and the attached files."""

    headers: Mapping[str, str]
    """Sender, recipients, date and subject, by the header's name; only those that the mail has."""
    bodies: tuple[tuple[str, str], ...]
    """Texts in order, each with its subtype: ``plain`` or ``html``."""
    attachments: Mapping[str, bytes]
    """Contents of the attachments by name; names are unique and free of folders."""
    logos: tuple[str, ...]
    """Names of the small pictures within the text, which are not read."""
    is_damaged: bool
    """True if the mail ends within a part, or a part cannot be decoded."""


def has_mail_signature(content: bytes) -> bool:
    """Return True if a file begins with the headers of a mail."""
    header_block = _HEADER_BLOCK.match(content[:_DETECTION_BYTES].lstrip(b"\xef\xbb\xbf\r\n").replace(b"\r\n", b"\n"))
    return bool(header_block and len({*map(bytes.lower, _MAIL_HEADER.findall(header_block[0]))}) >= _MIN_MAIL_HEADERS)


def parse_mail(content: bytes, name: str) -> Mail:
    """Parse a mail; ``name`` is its file name for error messages.

    DocumentError: READER-DAMAGED, READER-TOO-LARGE.
    """
    if len(content) > MAX_MAIL_BYTES:
        raise _build_too_large_error(name)
    try:
        message = email.message_from_bytes(content, policy=modern_policy)
        parts = _list_leaf_parts(message)
        bodies = tuple((part.get_content_subtype(), _decode_text_part(part)) for part in parts if _is_body(part))
        logos = [part for part in parts if _is_logo(part)]
        attachments = _name_attachments([part for part in parts if part not in logos and not _is_body(part)])
        is_damaged = any(part.defects for part in message.walk())
        headers = {key: str(message[key]) for key in ("From", "To", "Cc", "Date", "Subject") if message[key]}
    except MemoryError:
        raise
    except _MailTooLargeError:
        raise _build_too_large_error(name) from None
    except Exception:  # noqa: BLE001 - the parser's errors share no base, and may quote the mail: not chained
        raise DocumentError(
            f"{name} is damaged: it cannot be read as a mail",
            code="READER-DAMAGED",
            remedy="Save the mail and its attachments again in the mail program, and run evalkit on these files.",
        ) from None
    if message.get_content_type() in _ENCRYPTED_TYPES and message.get_param("smime-type") != "signed-data":
        raise DocumentError(
            f"the mail {name} is encrypted",
            code="READER-ENCRYPTED",
            remedy="Open it in the mail program, save its text and attachments as files, and run evalkit on these files.",
        )
    return Mail(headers, bodies, attachments, tuple(_clean_name(part, 1) for part in logos), is_damaged)


class _MailTooLargeError(Exception):
    pass


def _build_too_large_error(name: str) -> DocumentError:
    return DocumentError(
        f"the mail {name} has more than {MAX_MAIL_BYTES // 1024**2} MB, {_MAX_PARTS:,} parts or {_MAX_DEPTH} levels",
        code="READER-TOO-LARGE",
        remedy="Save the attachments of the mail as files, and run evalkit on these files.",
    )


def get_source_folder(path: Path) -> Path:
    """Return the folder of a file, or of the mail to which the file is attached."""
    return next(parent for parent in path.parents if parent.suffix.lower() not in MAIL_SUFFIXES)


def _list_leaf_parts(message: EmailMessage, depth: int = 0) -> list[EmailMessage]:
    """List texts and attachments; of alternative texts, only the richest with words."""
    if depth > _MAX_DEPTH:
        raise _MailTooLargeError
    if message.get_content_maintype() != "multipart":
        return [message]
    leaves_by_child = [_list_leaf_parts(cast("EmailMessage", child), depth + 1) for child in message.iter_parts()]
    if message.get_content_subtype() == "alternative":
        chosen = next((leaves for leaves in reversed(leaves_by_child) if any(map(_has_words, leaves))), None)
        if chosen is not None:
            leaves_by_child = [
                leaves if leaves is chosen else [leaf for leaf in leaves if not _is_body(leaf)]
                for leaves in leaves_by_child
            ]
    leaves = [leaf for child_leaves in leaves_by_child for leaf in child_leaves]
    if len(leaves) > _MAX_PARTS:
        raise _MailTooLargeError
    return leaves


def _is_body(part: EmailMessage) -> bool:
    return part.get_content_type() in ("text/plain", "text/html") and not (
        part.get_filename() or part.get_content_disposition() == "attachment"
    )


def _has_words(part: EmailMessage) -> bool:
    return _is_body(part) and bool(re.sub(r"<[^<>]*>|\s|&nbsp;", "", _decode_text_part(part)))


def _decode_text_part(part: EmailMessage) -> str:
    return decode_text(_get_content(part), part.get_content_charset() or "")


def _get_content(part: EmailMessage) -> bytes:
    if part.get_content_type() == "message/rfc822":
        return bytes(part.get_content().as_bytes())
    payload = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""


def _name_attachments(parts: Sequence[EmailMessage]) -> dict[str, bytes]:
    """Return the contents of parts by unique names; merge equal parts of one name."""
    attachments: dict[str, bytes] = {}
    contents_by_name: dict[str, set[bytes]] = defaultdict(set)
    for position, part in enumerate(parts, 1):
        written_name, content = _clean_name(part, position), _get_content(part)
        if content in contents_by_name[written_name]:
            continue
        contents_by_name[written_name].add(content)
        number, name = len(contents_by_name[written_name]), PurePosixPath(written_name)
        while (unique_name := f"{name.stem} ({number}){name.suffix}" if number > 1 else written_name) in attachments:
            number += 1
        attachments[unique_name] = content
    return attachments


def _clean_name(part: EmailMessage, position: int) -> str:
    written_name = re.split(r"[/\\]", _UNSAFE_CHARACTERS.sub("", part.get_filename() or ""))[-1].strip().lstrip(".")
    is_mail = part.get_content_type() == "message/rfc822"
    suffix = MAIL_SUFFIXES[0] if is_mail else mimetypes.guess_extension(part.get_content_type()) or ""
    if is_mail and not written_name.lower().endswith(MAIL_SUFFIXES):
        written_name = f"{written_name or f'attachment {position}'}{suffix}"  # by its path, it is known as a mail
    name = PurePosixPath(written_name or f"attachment {position}{suffix}")
    return name.stem[:_MAX_NAME_LENGTH] + name.suffix[:_MAX_NAME_LENGTH]


def _is_logo(part: EmailMessage) -> bool:
    if part.get_content_maintype() != "image" or not (
        "Content-ID" in part or part.get_content_disposition() == "inline"
    ):
        return False
    from PIL import Image  # 0.1 s, and few mails have pictures in their text

    try:
        with Image.open(io.BytesIO(_get_content(part))) as image:
            return image.width * image.height < _MIN_PAGE_PIXELS
    except Exception:  # noqa: BLE001 - Pillow's errors share no base; a broken picture is named as unreadable later
        return False
