"""Variables and logging that the kernel of a page shares with the server.

This module imports no large libraries.
"""

import logging
import os
from collections.abc import Mapping

from evalkit.core.log_events import EventFormatter, LogLineFormat

#: Environment variable with the file descriptor of the server's log.
LOG_FD_VARIABLE = "EVALKIT_LOG_FD"
#: Environment variable with the log format of server and kernels: ``text`` or ``json``.
LOG_FORMAT_VARIABLE = "EVALKIT_LOG_FORMAT"
#: Prefix of JupyterHub's environment variables, which include its token; they are not passed to kernels.
HUB_VARIABLE_PREFIX = "JUPYTERHUB_"
#: Environment variable with the megabytes of memory that a kernel may use; 0 means no limit.
PAGE_MEMORY_VARIABLE = "EVALKIT_PAGE_MEMORY_MB"


def read_log_format(environ: Mapping[str, str] = os.environ) -> LogLineFormat:
    """Return the log format in ``EVALKIT_LOG_FORMAT``; ``text`` unless ``json``."""
    return "json" if environ.get(LOG_FORMAT_VARIABLE) == "json" else "text"


def send_kernel_log_to_server(environ: Mapping[str, str] = os.environ) -> None:
    """Send the kernel's log records to the log of ``evalkit review``, if it runs.

    The server discards a kernel's standard error, because tracebacks of libraries may quote documents.
    """
    if LOG_FD_VARIABLE in environ:
        stream = os.fdopen(os.dup(int(environ[LOG_FD_VARIABLE])), "w", buffering=1, encoding="utf-8")
        handler = logging.StreamHandler(stream)
        handler.setFormatter(EventFormatter(read_log_format(environ)))
        logger = logging.getLogger("evalkit")
        logger.addHandler(handler)
        logger.propagate = False
