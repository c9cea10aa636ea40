"""Health of the review server: output folder and database are usable."""

from __future__ import annotations

import asyncio
import math
import os
import time
from threading import Thread

from evalkit.errors import EvalkitError
from evalkit.review.roster import ReviewerRoster
from evalkit.store import OutputFolder, check_and_describe_database

#: Seconds after which the last result is checked again, and to wait for a check.
_CHECK_INTERVAL, _CHECK_TIMEOUT = 5.0, 3.0
_POLL_SECONDS = 0.1


class HealthCheck:
    """Check of the output folder, at most every five seconds.

    It runs in a thread, because reading a folder on a lost network drive can block for ever. Only one thread runs at a
    time, however many probes come.
    """

    def __init__(self, output_folder: OutputFolder) -> None:
        self._output_folder = output_folder
        self._thread = Thread()
        self._started_at = -math.inf
        self._is_usable = False

    async def is_output_usable(self) -> bool:
        """Return True if the output folder and its database can be used."""
        if not self._thread.is_alive() and time.monotonic() >= self._started_at + _CHECK_INTERVAL:
            # A daemon: a check that blocks must not keep the server from ending.
            self._thread, self._started_at = Thread(target=self._check_output, daemon=True), time.monotonic()
            self._thread.start()
        while self._thread.is_alive():
            if time.monotonic() > self._started_at + _CHECK_TIMEOUT:
                return False
            await asyncio.sleep(_POLL_SECONDS)
        return self._is_usable

    def _check_output(self) -> None:
        root = self._output_folder.root
        try:
            ReviewerRoster(self._output_folder).list_reviewers()
            check_and_describe_database(self._output_folder, is_thorough=False)
            self._is_usable = isinstance(root, str) or os.access(root, os.W_OK | os.X_OK)
        except (EvalkitError, OSError):
            self._is_usable = False
