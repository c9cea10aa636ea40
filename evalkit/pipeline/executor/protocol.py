"""What an executor does, and what it has to know about reading."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from evalkit.documents.bundle import DocumentBundle
from evalkit.documents.readers import resolve_reader_version

if TYPE_CHECKING:
    from evalkit.documents.ocr import OcrEngineName
    from evalkit.documents.readers.documentai.reader import DocumentAiReader

ArgumentT = TypeVar("ArgumentT")
OutcomeT = TypeVar("OutcomeT")


class ReaderConfig(NamedTuple):
    """What reads, and how long it may take."""

    timeout_seconds: int
    """Seconds for one file, or until its next page is recognised or its next portion sent."""
    ocr_engine: OcrEngineName = "none"
    """What recognises pages that are pictures."""
    ocr_page_seconds: int = 30
    """Seconds that recognising one page once may take."""
    documentai: DocumentAiReader | None = None
    """What reads instead of this machine."""
    memory_limit_mb: int = 0
    """Megabytes of address space that reading one file may take; 0: as much as there is."""

    @property
    def reader_version(self) -> str:
        """Name and version of what reads, as bundles carry them. UsageError if it is not installed or not reached."""
        return resolve_reader_version(self.ocr_engine, self.documentai)


class BundleWithTimings(NamedTuple):
    """A document that was read, and what that took."""

    bundle: DocumentBundle
    seconds_by_step: dict[str, float]
    """``recognising`` pages that are pictures, all other ``reading``, and ``waiting`` for a process that reads."""


class Executor(Protocol):
    """Reads documents, and takes steps about them where no language model has to be asked."""

    @property
    def max_in_flight(self) -> int:
        """How many documents should be under way to keep it busy; this may change."""

    async def read(self, path: Path, *, doc_id: str, processing_timestamp: str) -> BundleWithTimings:
        """Read a PDF. DocumentError if it cannot be read, also if it ends the process that reads it."""

    async def run_step(
        self,
        step_name: str,
        function: Callable[[DocumentBundle, ArgumentT], Coroutine[Any, Any, OutcomeT]],
        bundle: DocumentBundle,
        argument: ArgumentT,
    ) -> OutcomeT:
        """Answer ``function(bundle, argument)``, from another machine if there is one for it.

        ``step_name`` is its name on a dashboard.
        """
