"""The server's log: standard error, and nothing in it that a stranger may not read.

Libraries log request addresses with their queries, cells and exceptions whose messages may quote a document. So only
the first line of a record is written, without queries, and of an exception its type and where it was raised.
"""

from __future__ import annotations

import logging
import re
import sys
import traceback
from contextvars import ContextVar
from types import TracebackType

from evalkit.core.log_events import EventFormatter, LogLineFormat

request_id: ContextVar[str] = ContextVar("request_id", default="-")
"""The request that is being served; error pages show it."""

_QUERY_PATTERN = re.compile(r"\?[^\s'\"]*")
_MAX_MESSAGE_LENGTH = 200
_NOISE_PATTERN = re.compile("is not trusted$|websocket_ping_timeout")
"""At every page: trust is JupyterLab's question, and Jupyter counts in milliseconds what Tornado takes for seconds."""

_ExceptionInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class RedactingFormatter(EventFormatter):
    """Level, request, logger, message: see above for what is left out."""

    def format(self, record: logging.LogRecord) -> str:
        """One record, as text or as an object."""
        if self.is_json:
            return super().format(record)
        line = f"{record.levelname} {request_id.get()} {record.name}: {_redact_message(record.getMessage())}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line

    def build_log_fields(self, record: logging.LogRecord) -> dict[str, float | str]:
        """What the object has; of an exception also where it was raised."""
        log_fields = super().build_log_fields(record)
        log_fields |= {"message": _redact_message(str(log_fields["message"])), "request": request_id.get()}
        return log_fields | {"raised": self.formatException(record.exc_info)} if record.exc_info else log_fields

    def formatException(self, ei: _ExceptionInfo) -> str:  # noqa: N802 - the name is logging's
        """Where it was raised, without its message."""
        frames = "".join(f"  {frame.filename}:{frame.lineno} {frame.name}\n" for frame in traceback.extract_tb(ei[2]))
        return f"{frames}  {ei[0].__name__ if ei[0] else 'no exception'}"


def _redact_message(message: str) -> str:
    return _QUERY_PATTERN.sub("?…", message.partition("\n")[0])[:_MAX_MESSAGE_LENGTH]


def configure_server_log(line_format: LogLineFormat) -> None:
    """Send warnings of everybody to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(RedactingFormatter(line_format))
    handler.addFilter(lambda record: not _NOISE_PATTERN.search(record.getMessage()))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.captureWarnings(capture=True)
