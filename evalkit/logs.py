"""Log lines for programs: what happened to which document, how long each step took. Never a name, never a word of it."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Literal

from evalkit.clocks import to_the_millisecond

Form = Literal["text", "json"]

_FIELDS = "evalkit_fields"
_DIGITS = 12
"""Of a document's SHA-256: enough to find it, and it tells nobody who the patient is."""


def tell(log: logging.Logger, level: int, what: str, *, document: str, **fields: float | str) -> None:
    """Log ``what`` happened to the document of that SHA-256; ``fields`` are numbers, codes and names of steps.

    They are words of the message, for whoever logs in his own way, and fields of the object.
    """
    told = {"document": document[:_DIGITS], **fields}
    log.log(level, "%s %s", what, " ".join(f"{name}={value}" for name, value in told.items()), extra={_FIELDS: told})


class Lines(logging.Formatter):
    """A line for a person, or an object for a program."""

    def __init__(self, form: Form) -> None:
        """``json``: at, level, logger, message, and whatever ``tell`` was given."""
        super().__init__("%(levelname)s %(name)s: %(message)s")
        self.is_json = form == "json"

    def format(self, record: logging.LogRecord) -> str:
        """The line. A traceback is no part of an object: its message may quote a document."""
        if not self.is_json:
            return super().format(record)
        return json.dumps(self.told(record), ensure_ascii=False)

    def told(self, record: logging.LogRecord) -> dict[str, float | str]:
        """What the object has."""
        fields: dict[str, float | str] | None = getattr(record, _FIELDS, None)
        what = str(record.args[0]) if fields and isinstance(record.args, tuple) else record.getMessage()
        at = to_the_millisecond(datetime.fromtimestamp(record.created, UTC))
        told: dict[str, float | str] = {"at": at, "level": record.levelname, "logger": record.name, "message": what}
        if record.exc_info and record.exc_info[0]:
            told["error"] = record.exc_info[0].__name__
        return told | (fields or {})
