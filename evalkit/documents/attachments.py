"""Files within a mail: each attachment is a document of its own.

An attachment's path is the mail's path followed by its name, e.g. ``inbox/letter.eml/report.pdf``. A mail in a mail is
an attachment with attachments of its own.
"""

from __future__ import annotations

import email
import io
import mimetypes
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from email.message import EmailMessage
from email.policy import default as modern_policy
from pathlib import Path, PurePosixPath
from typing import NamedTuple, cast

from evalkit.errors import DocumentError

MAIL_SUFFIXES = (".eml",)
MAX_MAIL_BYTES = 128 * 1024 * 1024
_MAX_PARTS = 1000
_MAX_NAME_LENGTH = 120
#: Beginning of a mail: header lines, among them at least two that mails have.
_HEADER_BLOCK = re.compile(rb"(?:From [^\n]*\n)?(?:[!-9;-~]+:[^\n]*\n(?:[ \t][^\n]*\n)*){2,}\r?\n?")
_MAIL_HEADER = re.compile(rb"(?im)^(?:from|to|date|subject|mime-version|message-id|received|return-path|content-type):")
_MIN_MAIL_HEADERS, _DETECTION_BYTES = 2, 65_536
#: A picture that is shown within a mail's text is a page only from this size on, in pixels: smaller ones are logos.
_MIN_PAGE_SIDE = 600
_UNSAFE_CHARACTERS = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]+")


class Mail(NamedTuple):
    """Mail taken apart: what its reader sees at once, and the files with it."""

    headers: Mapping[str, str]
    """Sender, recipients, date and subject, by the header's name; only those that the mail has."""
    bodies: tuple[tuple[str, str], ...]
    """Texts in order, each with its subtype: ``plain`` or ``html``."""
    attachments: Mapping[str, bytes]
    """Contents of the attachments by name; names are unique and free of folders."""
    is_damaged: bool
    """True if the mail ends within a part, or a part cannot be decoded."""


def has_mail_signature(content: bytes) -> bool:
    """Return True if a file begins with the headers of a mail."""
    header_block = _HEADER_BLOCK.match(content[:_DETECTION_BYTES].lstrip(b"\xef\xbb\xbf\r\n").replace(b"\r\n", b"\n"))
    return bool(header_block and len({*map(bytes.lower, _MAIL_HEADER.findall(header_block[0]))}) >= _MIN_MAIL_HEADERS)


def parse_mail(content: bytes, name: str) -> Mail:
    """Take a mail apart; ``name`` is its file name for errors.

    DocumentError: READER-DAMAGED, READER-TOO-LARGE.
    """
    if len(content) > MAX_MAIL_BYTES:
        raise DocumentError(
            f"the mail {name} is larger than {MAX_MAIL_BYTES // 1024**2} MB",
            code="READER-TOO-LARGE",
            remedy="Save its attachments as files, and run those.",
        )
    try:
        message = email.message_from_bytes(content, policy=modern_policy)
        parts = list(_iterate_leaf_parts(message))
        bodies = tuple((part.get_content_subtype(), _decode_text_part(part)) for part in parts if _is_body(part))
        attachments: dict[str, bytes] = {}
        for position, part in enumerate((part for part in parts if not _is_body(part)), 1):
            _add_attachment(attachments, part, position)
        headers = {key: str(message[key]) for key in ("From", "To", "Cc", "Date", "Subject") if message[key]}
    except (MemoryError, DocumentError):
        raise
    except Exception:  # noqa: BLE001 - the parser's errors share no base, and may quote the mail: not chained
        raise DocumentError(
            f"{name} is damaged: it cannot be read as a mail",
            code="READER-DAMAGED",
            remedy="Save the mail and its attachments again in the mail program, and run those files.",
        ) from None
    return Mail(headers, bodies, attachments, any(part.defects for part in (message, *parts)))


def is_attachment_path(path: Path) -> bool:
    """Return True if a path is below a mail's; the mail may be on another machine."""
    return get_source_folder(path) != path.parent


def get_source_folder(path: Path) -> Path:
    """Return the folder of a file, or of the mail to which the file is attached."""
    return next(parent for parent in path.parents if parent.suffix.lower() not in MAIL_SUFFIXES)


def find_attachment(mail: Mail, name: str, names_below: tuple[str, ...] = ()) -> bytes:
    """Return the content of a mail's attachment, at any depth of mails in mails.

    DocumentError: READER-UNREADABLE if there is no such attachment; or as ``parse_mail``.
    """
    content = mail.attachments.get(name)
    if content is None:
        raise DocumentError(
            f"the mail has no attachment {name}",
            code="READER-UNREADABLE",
            remedy="Check that the mail is complete, then run it again.",
        )
    return find_attachment(parse_mail(content, name), names_below[0], names_below[1:]) if names_below else content


def _iterate_leaf_parts(message: EmailMessage, depth: int = 0) -> Iterator[EmailMessage]:
    """Iterate over texts and attachments; of alternatives, the richest with words."""
    if message.get_content_maintype() != "multipart" or depth > 50:
        yield message
        return
    children = cast("list[EmailMessage]", list(message.iter_parts())[:_MAX_PARTS])
    if message.get_content_subtype() == "alternative":
        texts = [child for child in children if child.get_content_maintype() in ("text", "multipart")]
        children = next(
            ([child] for child in reversed(texts) if any(map(_has_words, _iterate_leaf_parts(child, depth + 1)))),
            children,
        )
    for child in children:
        yield from _iterate_leaf_parts(child, depth + 1)


def _is_body(part: EmailMessage) -> bool:
    return part.get_content_type() in ("text/plain", "text/html") and not (
        part.get_filename() or part.get_content_disposition() == "attachment"
    )


def _has_words(part: EmailMessage) -> bool:
    return _is_body(part) and bool(re.sub(r"<[^>]*>|\s|&nbsp;", "", _decode_text_part(part)))


def _decode_text_part(part: EmailMessage) -> str:
    payload = part.get_payload(decode=True)
    payload_bytes = payload if isinstance(payload, bytes) else b""
    for charset in (part.get_content_charset(), "utf-8"):
        with suppress(LookupError, UnicodeError):
            if charset:
                return payload_bytes.decode(charset)
    return payload_bytes.decode("cp1252", errors="replace")


def _add_attachment(attachments: dict[str, bytes], part: EmailMessage, position: int) -> None:
    """Add a part under a name of its own, unless it is a logo or was added before."""
    if part.get_content_type() == "message/rfc822":
        content = part.get_content().as_bytes()
    else:
        payload = part.get_payload(decode=True)
        content = payload if isinstance(payload, bytes) else b""
    if _is_logo(part, content):
        return
    stem_and_suffix = PurePosixPath(_clean_name(part, position))
    name, number = stem_and_suffix.name, 1
    while name in attachments and attachments[name] != content:
        number += 1
        name = f"{stem_and_suffix.stem} ({number}){stem_and_suffix.suffix}"
    attachments[name] = content


def _clean_name(part: EmailMessage, position: int) -> str:
    written_name = re.split(r"[/\\]", _UNSAFE_CHARACTERS.sub("", part.get_filename() or ""))[-1].strip().lstrip(".")
    is_mail = part.get_content_type() == "message/rfc822"
    suffix = MAIL_SUFFIXES[0] if is_mail else mimetypes.guess_extension(part.get_content_type()) or ""
    name = PurePosixPath(written_name or f"attachment {position}{suffix}")
    return name.stem[:_MAX_NAME_LENGTH] + name.suffix[:_MAX_NAME_LENGTH]


def _is_logo(part: EmailMessage, content: bytes) -> bool:
    if part.get_content_maintype() != "image" or not (
        "Content-ID" in part or part.get_content_disposition() == "inline"
    ):
        return False
    from PIL import Image  # 0.1 s, and few mails have pictures in their text

    try:
        with Image.open(io.BytesIO(content)) as image:
            return min(image.size) < _MIN_PAGE_SIDE
    except Exception:  # noqa: BLE001 - Pillow's errors share no base; a broken picture is named as unreadable later
        return False
