"""Interface of executors, and the configuration of their PDF reader."""

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
    """Configuration of the PDF reader: its engine and its limits."""

    timeout_seconds: int
    """Time limit in seconds for one file; it starts again with each page that OCR recognises and each part sent to
    Document AI."""
    ocr_engine: OcrEngineName = "none"
    """The OCR engine for scanned pages."""
    ocr_page_seconds: int = 30
    """Time limit in seconds for one attempt to recognise a page."""
    documentai: DocumentAiReader | None = None
    """The Document AI reader that reads instead of this machine; None to read here."""
    memory_limit_mb: int = 0
    """Megabytes of address space that reading one file may take; 0: no limit."""

    @property
    def reader_version(self) -> str:
        """Name and version of the reader, as bundles contain them.

        UsageError if the reader is not installed or cannot be reached.
        """
        return resolve_reader_version(self.ocr_engine, self.documentai)


class BundleWithTimings(NamedTuple):
    """Bundle of a document, and the seconds that reading took."""

    bundle: DocumentBundle
    seconds_by_step: dict[str, float]
    """Seconds of ``recognising`` scanned pages, of all other ``reading``, and of ``waiting`` for a reading process."""


class Executor(Protocol):
    """Interface of a process pool or cluster that reads documents and runs steps.

    No language model is asked in these steps, except on this machine.
    """

    @property
    def max_in_flight(self) -> int:
        """Number of documents to process at once so that no worker is idle; it may change."""

    async def read(self, path: Path, *, doc_id: str, processing_timestamp: str) -> BundleWithTimings:
        """Read a PDF. DocumentError if the PDF cannot be read, or crashes the reader."""

    async def run_step(
        self,
        step_name: str,
        function: Callable[[DocumentBundle, ArgumentT], Coroutine[Any, Any, OutcomeT]],
        bundle: DocumentBundle,
        argument: ArgumentT,
    ) -> OutcomeT:
        """Return ``function(bundle, argument)``, computed here or on another machine.

        ``step_name`` is the step's name on a dashboard.
        """
