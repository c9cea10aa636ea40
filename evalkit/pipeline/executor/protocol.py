"""The executor's protocol, and how it is to read."""

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
    """The reader, and its limits."""

    timeout_seconds: int
    """Seconds for one file, or until its next page is recognised or its next portion sent."""
    ocr_engine: OcrEngineName = "none"
    """The OCR engine for scanned pages."""
    ocr_page_seconds: int = 30
    """Seconds that recognising one page once may take."""
    documentai: DocumentAiReader | None = None
    """The reader instead of this machine."""
    memory_limit_mb: int = 0
    """Megabytes of address space that reading one file may take; 0: no limit."""

    @property
    def reader_version(self) -> str:
        """The reader's name and version, as in bundles.

        UsageError if it is not installed or not reached.
        """
        return resolve_reader_version(self.ocr_engine, self.documentai)


class BundleWithTimings(NamedTuple):
    """A document's bundle, and how long reading took."""

    bundle: DocumentBundle
    seconds_by_step: dict[str, float]
    """``recognising`` scanned pages, all other ``reading``, and ``waiting`` for a reading process."""


class Executor(Protocol):
    """A reader of documents that also runs steps for which no language model is asked."""

    @property
    def max_in_flight(self) -> int:
        """The number of documents that keep it busy; it may change."""

    async def read(self, path: Path, *, doc_id: str, processing_timestamp: str) -> BundleWithTimings:
        """Read a PDF. DocumentError if it cannot be read, or crashes its process."""

    async def run_step(
        self,
        step_name: str,
        function: Callable[[DocumentBundle, ArgumentT], Coroutine[Any, Any, OutcomeT]],
        bundle: DocumentBundle,
        argument: ArgumentT,
    ) -> OutcomeT:
        """Run ``function(bundle, argument)``, on another machine if there is one for it.

        ``step_name`` is its name on a dashboard.
        """
