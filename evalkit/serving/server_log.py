"""The server's log on standard error, without any document text.

Libraries log request URLs with queries, notebook cells, and exceptions whose messages may quote a document. So only the
first line of a record is written, without URL queries; of an exception only its type and traceback locations.
"""

import logging
import re
import sys
import traceback
from contextvars import ContextVar
from types import TracebackType

from typing_extensions import override

from evalkit.core.log_events import EventFormatter, LogLineFormat

#: Id of the current request, which error pages show and log lines contain; "-" outside a request.
request_id: ContextVar[str] = ContextVar("request_id", default="-")

_QUERY_PATTERN = re.compile(r"\?[^\s'\"]*")
_MAX_MESSAGE_LENGTH = 200
#: Useless warnings that every page causes: on untrusted notebooks, and on a ping timeout that Jupyter gives in another
#: unit than Tornado expects.
_NOISE_PATTERN = re.compile("is not trusted$|websocket_ping_timeout")

_ExceptionInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class RedactingFormatter(EventFormatter):
    """Log formatter that removes URL queries, further lines and exception messages."""

    @override
    def format(self, record: logging.LogRecord) -> str:
        if self.is_json:
            return super().format(record)
        line = f"{record.levelname} {request_id.get()} {record.name}: {_redact_message(record.getMessage())}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line

    @override
    def build_log_fields(self, record: logging.LogRecord) -> dict[str, float | str]:
        log_fields = super().build_log_fields(record)
        log_fields |= {"message": _redact_message(str(log_fields["message"])), "request": request_id.get()}
        return log_fields | {"raised": self.formatException(record.exc_info)} if record.exc_info else log_fields

    @override
    def formatException(self, ei: _ExceptionInfo) -> str:  # without the message, which may quote a document
        frames = "".join(f"  {frame.filename}:{frame.lineno} {frame.name}\n" for frame in traceback.extract_tb(ei[2]))
        return f"{frames}  {ei[0].__name__ if ei[0] else 'no exception'}"


def _redact_message(message: str) -> str:
    return _QUERY_PATTERN.sub("?…", message.partition("\n")[0])[:_MAX_MESSAGE_LENGTH]


def configure_server_log(line_format: LogLineFormat) -> None:
    """Log warnings of all libraries to standard error, without document text."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(RedactingFormatter(line_format))
    handler.addFilter(lambda record: not _NOISE_PATTERN.search(record.getMessage()))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.captureWarnings(capture=True)
