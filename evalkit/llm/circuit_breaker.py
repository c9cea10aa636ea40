"""Circuit breaker: pause calls of a model while its service is down."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from evalkit.errors import RunStopped
from evalkit.llm.model import ModelCallError

#: Failed calls in a row after which no further call is made until a test question was answered.
_FAILURES_BEFORE_OPENING = 5


def name_model(model_name: str, message: str) -> str:
    """Add the model's name to a failure's message if the provider left it out.

    >>> name_model("gemini:m", "Gemini is out of quota"), name_model("openai:m", "openai:m is out of quota")
    ('gemini:m: Gemini is out of quota', 'openai:m is out of quota')
    """
    return message if model_name in message else f"{model_name}: {message}"


class CircuitBreaker:
    """Circuit breaker before a model's calls; open while its service is down.

    Open (no calls) after some failures in a row; a test question after growing pauses decides when calls go on. If one
    was asked and none is answered within ``outage_seconds``, RunStopped: the machine is at fault and no document.
    """

    def __init__(
        self,
        model_name: str,
        probe: Callable[[], Awaitable[ModelCallError | None]],
        *,
        outage_seconds: float,
        first_pause_seconds: float,
        max_pause_seconds: float,
    ) -> None:
        """Set up the gate; ``probe`` asks a test question and returns its failure."""
        self._model_name = model_name
        self._probe = probe
        self._outage_seconds = outage_seconds
        self._first_pause_seconds = first_pause_seconds
        self._max_pause_seconds = max_pause_seconds
        self._failures_in_a_row = 0
        self._opened_at: float | None = None
        self._pause_seconds = 0.0
        self._failure: ModelCallError | None = None
        self._lock = asyncio.Lock()
        self._failed_probes = self._failed_probes_before = 0

    @property
    def is_open(self) -> bool:
        """True while no calls are allowed."""
        return self._opened_at is not None

    def record_success(self) -> None:
        """Count a call that was answered."""
        self._failures_in_a_row = 0

    def record_failure(self, error: ModelCallError) -> None:
        """Count a failed call, and open the breaker after too many in a row."""
        self._failures_in_a_row += 1
        if self._failures_in_a_row >= _FAILURES_BEFORE_OPENING:
            self.open(error, self._first_pause_seconds)

    def open(self, error: ModelCallError, pause_seconds: float = 0.0) -> None:
        """Block calls until a test question, sent after a pause, has been answered."""
        if self._opened_at is None:
            self._opened_at, self._failure, self._pause_seconds = time.monotonic(), error, pause_seconds
            self._failed_probes_before = self._failed_probes

    def _has_failed_for_too_long(self, opened_at: float) -> bool:
        # On a busy machine the first who waits may come late: until a test question failed, nobody knows of an outage.
        waited_seconds = time.monotonic() - opened_at if self._failed_probes > self._failed_probes_before else 0.0
        return waited_seconds + self._pause_seconds > self._outage_seconds

    async def wait_until_closed(self) -> bool:
        """Wait while calls are blocked; return True if a test question failed meanwhile.

        Among those who wait, one at a time sends the test question. RunStopped if the outage takes too long, or the
        provider announced a longer pause.
        """
        failed_probes = self._failed_probes_before if self.is_open else self._failed_probes
        async with self._lock:
            while self._opened_at is not None and self._failure is not None:
                if self._has_failed_for_too_long(self._opened_at):
                    raise RunStopped(
                        f"{name_model(self._model_name, self._failure.message)}, and takes no calls within {self._outage_seconds:.0f} "
                        "seconds: the run was stopped",
                        code=self._failure.code,
                        remedy=f"{self._failure.remedy} Then run the same command again: finished documents are kept.",
                    )
                await asyncio.sleep(self._pause_seconds)
                if failure := await self._probe():
                    self._failed_probes += 1
                    self._failure = failure
                    longer_pause = max(2 * self._pause_seconds, self._first_pause_seconds)
                    self._pause_seconds = max(min(longer_pause, self._max_pause_seconds), failure.retry_after or 0.0)
                else:
                    self._opened_at, self._failures_in_a_row = None, 0
        return self._failed_probes > failed_probes
