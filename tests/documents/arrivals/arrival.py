"""A file as it arrives at a hospital, and what a careful person expects to be made of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Arrival:
    """One arriving file and what must become of it.

    Attributes:
        file: Name inside of the folder; its ending may lie about what the file holds.
        format: What the file is or claims to be: TIFF, JPEG, PNG, DOCX, HTML, TXT, EML or C-CDA.
        outcome: "read" if the words must appear, "named" if it must be refused by name, with the reason and a remedy.
        words: What a person sees, in reading order; more words between them (bullets, senders of mails) are no fault.
            For DOCX header, body, footnotes, footer; for mails the subject, then the body, then nothing of attachments.
        pages: Pages of a picture file; None where layout decides.
        attachments: File names, without folders, that become documents of their own; "" stands for any name.
            An inline picture counts if it has the size of a page (both sides 600 pixels or more); logos do not.
            The same content under the same name stands here once, and may become one document or two.
        what: One sentence on the situation.
        is_damaged: Some of the file is lost: what is whole is read, and the loss is told.
        absent: Text that must not be among the words read: deleted, hidden, or of a file that must not be opened.
        named_attachments: Attachments that cannot be read and must be named.
        may_be_named: Refusing the whole file by name is as right as reading all of it; reading a part is wrong.
    """

    file: str
    format: str
    outcome: Literal["read", "named"]
    words: tuple[str, ...]
    pages: int | None
    attachments: tuple[str, ...]
    what: str
    is_damaged: bool = False
    absent: tuple[str, ...] = ()
    named_attachments: tuple[str, ...] = ()
    may_be_named: bool = False
