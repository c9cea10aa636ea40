"""The kernel's side: what a page learns from the server, and how its log gets there. Imports nothing heavy."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping

from evalkit.core.log_events import EventFormatter, LogLineFormat

LOG_FD_VARIABLE = "EVALKIT_LOG_FD"
"""Names the descriptor of the server's log in a kernel's environment."""
LOG_FORMAT_VARIABLE = "EVALKIT_LOG_FORMAT"
"""Says in their environment how the server and its kernels write their log: text or json."""
HUB_VARIABLE_PREFIX = "JUPYTERHUB_"
"""What JupyterHub tells a service begins with it, its token among them: no kernel gets any of it."""
PAGE_MEMORY_VARIABLE = "EVALKIT_PAGE_MEMORY_MB"
"""Says in a kernel's environment how much memory it may use; 0: as much as there is."""


def read_log_format(environ: Mapping[str, str] = os.environ) -> LogLineFormat:
    """How the server and its kernels write their log."""
    return "json" if environ.get(LOG_FORMAT_VARIABLE) == "json" else "text"


def send_kernel_log_to_server(environ: Mapping[str, str] = os.environ) -> None:
    """Let ``evalkit.*`` log records of this kernel appear in the log of ``evalkit review``.

    A kernel's own standard error is closed there: libraries write tracebacks to it, and those may quote documents.
    Outside ``evalkit review`` nothing changes.
    """
    if LOG_FD_VARIABLE in environ:
        stream = os.fdopen(os.dup(int(environ[LOG_FD_VARIABLE])), "w", buffering=1, encoding="utf-8")
        handler = logging.StreamHandler(stream)
        handler.setFormatter(EventFormatter(read_log_format(environ)))
        logger = logging.getLogger("evalkit")
        logger.addHandler(handler)
        logger.propagate = False
