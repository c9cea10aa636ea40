"""Log lines about documents: what happened, how long it took, no document text."""

import json
import logging
from datetime import UTC, datetime
from typing import Literal

from evalkit.core.clocks import format_zulu

LogLineFormat = Literal["text", "json"]

_FIELDS_ATTRIBUTE = "evalkit_fields"
#: Digits of a document's SHA-256 in a log line: enough to find the document, and they reveal no patient.
_SHA256_DIGITS = 12


def log_event(logger: logging.Logger, level: int, event: str, *, document_sha256: str, **fields: float | str) -> None:
    """Log an event of the document with this SHA-256, together with its fields.

    ``fields`` are numbers, codes and names of steps. They appear in the message and, if log lines are JSON, as fields
    of the object.
    """
    event_fields = {"document": document_sha256[:_SHA256_DIGITS], **fields}
    logger.log(
        level,
        "%s %s",
        event,
        " ".join(f"{name}={value}" for name, value in event_fields.items()),
        extra={_FIELDS_ATTRIBUTE: event_fields},
    )


class EventFormatter(logging.Formatter):
    """Formatter of log lines: text for people, or JSON objects for programs."""

    def __init__(self, line_format: LogLineFormat) -> None:
        """Choose lines of text or, with ``json``, one JSON object per line.

        An object has at, level, logger, message, and the fields of the event.
        """
        super().__init__("%(levelname)s %(name)s: %(message)s")
        self.is_json = line_format == "json"

    def format(self, record: logging.LogRecord) -> str:
        """Format a log record as one line; JSON objects leave out the traceback.

        The message of a traceback may quote a document.
        """
        if not self.is_json:
            return super().format(record)
        return json.dumps(self.build_log_fields(record), ensure_ascii=False)

    def build_log_fields(self, record: logging.LogRecord) -> dict[str, float | str]:
        """Build the JSON object of a log record: time, level, logger, message, fields."""
        event_fields: dict[str, float | str] | None = getattr(record, _FIELDS_ATTRIBUTE, None)
        message = str(record.args[0]) if event_fields and isinstance(record.args, tuple) else record.getMessage()
        log_fields: dict[str, float | str] = {
            "at": format_zulu(datetime.fromtimestamp(record.created, UTC)),
            "level": record.levelname,
            "logger": record.name,
            "message": message,
        }
        if record.exc_info and record.exc_info[0]:
            log_fields["error"] = record.exc_info[0].__name__
        return log_fields | (event_fields or {})
