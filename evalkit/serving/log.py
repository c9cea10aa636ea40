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

from evalkit.logs import Form, Lines

request_id: ContextVar[str] = ContextVar("request_id", default="-")
"""The request that is being served; error pages show it."""

_QUERY = re.compile(r"\?[^\s'\"]*")
_LONGEST = 200
_NOISE = re.compile("is not trusted$|websocket_ping_timeout")
"""At every page: trust is JupyterLab's question, and Jupyter counts in milliseconds what Tornado takes for seconds."""

_Caught = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class Discreet(Lines):
    """Level, request, logger, message: see above for what is left out."""

    def format(self, record: logging.LogRecord) -> str:
        """One record, as text or as an object."""
        if self.is_json:
            return super().format(record)
        line = f"{record.levelname} {request_id.get()} {record.name}: {_harmless(record.getMessage())}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line

    def told(self, record: logging.LogRecord) -> dict[str, float | str]:
        """What the object has; of an exception also where it was raised."""
        told = super().told(record)
        told |= {"message": _harmless(str(told["message"])), "request": request_id.get()}
        return told | {"raised": self.formatException(record.exc_info)} if record.exc_info else told

    def formatException(self, ei: _Caught) -> str:  # noqa: N802 - the name is logging's
        """Where it was raised, without its message."""
        frames = "".join(f"  {frame.filename}:{frame.lineno} {frame.name}\n" for frame in traceback.extract_tb(ei[2]))
        return f"{frames}  {ei[0].__name__ if ei[0] else 'no exception'}"


def _harmless(message: str) -> str:
    return _QUERY.sub("?…", message.partition("\n")[0])[:_LONGEST]


def configure(form: Form) -> None:
    """Send warnings of everybody to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Discreet(form))
    handler.addFilter(lambda record: not _NOISE.search(record.getMessage()))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.captureWarnings(capture=True)
