"""The kernel's side: the server's variables, and the log.

Imports nothing heavy.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping

from evalkit.core.log_events import EventFormatter, LogLineFormat

#: The variable with the descriptor of the server's log.
LOG_FD_VARIABLE = "EVALKIT_LOG_FD"
#: The variable with the log format of server and kernels: text or json.
LOG_FORMAT_VARIABLE = "EVALKIT_LOG_FORMAT"
#: The prefix of JupyterHub's variables, its token among them: no kernel gets any.
HUB_VARIABLE_PREFIX = "JUPYTERHUB_"
#: The variable with the megabytes that a kernel may use; 0: no limit.
PAGE_MEMORY_VARIABLE = "EVALKIT_PAGE_MEMORY_MB"


def read_log_format(environ: Mapping[str, str] = os.environ) -> LogLineFormat:
    """Read the log format of server and kernels."""
    return "json" if environ.get(LOG_FORMAT_VARIABLE) == "json" else "text"


def send_kernel_log_to_server(environ: Mapping[str, str] = os.environ) -> None:
    """Send ``evalkit.*`` log records to the log of ``evalkit review``, if it runs.

    A kernel's own standard error is closed there: libraries write tracebacks to it, and those may quote documents.
    """
    if LOG_FD_VARIABLE in environ:
        stream = os.fdopen(os.dup(int(environ[LOG_FD_VARIABLE])), "w", buffering=1, encoding="utf-8")
        handler = logging.StreamHandler(stream)
        handler.setFormatter(EventFormatter(read_log_format(environ)))
        logger = logging.getLogger("evalkit")
        logger.addHandler(handler)
        logger.propagate = False
