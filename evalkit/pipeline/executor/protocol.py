"""Interface of executors, and the configuration of their PDF reader."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from evalkit.documents.bundle import DocumentBundle
from evalkit.documents.readers import resolve_reader_version
from evalkit.errors import ExecutorError

if TYPE_CHECKING:
    from evalkit.documents.ocr import OcrEngineName
    from evalkit.documents.page_pictures import PageImage
    from evalkit.documents.readers.documentai.reader import DocumentAiReader

ArgumentT = TypeVar("ArgumentT")
OutcomeT = TypeVar("OutcomeT")


class InterruptedReadError(ExecutorError):
    """Error for interrupted reading: the process died, or a limit was reached.

    The document is read again, alone, when all others are read.
    """


class ReaderConfig(NamedTuple):
    """Configuration of the PDF reader: its engine and its limits."""

    processor_seconds: int
    """Seconds of processor time that the reading process may take for one file; they start again with each page that
    OCR recognises and each part sent to Document AI."""
    ocr_engine: OcrEngineName = "none"
    """The OCR engine for scanned pages."""
    ocr_page_seconds: int = 30
    """Seconds of processor time that one attempt to recognise a page may take."""
    documentai: DocumentAiReader | None = None
    """The Document AI reader that reads instead of this machine; None to read here."""
    memory_limit_mb: int = 0
    """Megabytes of address space that reading one file may take; 0: no limit."""
    hang_factor: int = 10
    """A file hangs if it takes this many times ``processor_seconds`` by the clock."""

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
    shown_pdf: bytes | None = None
    """PDF that a person is shown instead of the file; None if the file itself is shown."""


class Executor(Protocol):
    """Interface of a process pool or cluster that reads documents and runs steps.

    No language model is asked in these steps, except on this machine.
    """

    reads_alone: bool
    """True if nothing else is being read: what breaks off now is an error of the document."""

    @property
    def max_in_flight(self) -> int:
        """Number of documents to process at once so that no worker is idle."""

    async def read(self, path: Path, *, doc_id: str, processing_timestamp: str) -> BundleWithTimings:
        """Read a document. DocumentError if it cannot be read, or crashes the reader.

        READER-TOO-SLOW if it takes more processor time than allowed, READER-TIMEOUT if only the clock ran out, which is
        the machine's fault. Unless ``reads_alone``, InterruptedReadError instead of these two and of READER-CRASHED and
        READER-MEMORY.
        """

    async def count_pages(self, path: Path) -> int:
        """Return the number of a PDF's pages; 1 if they cannot be counted."""

    async def render_page_images(
        self, pdf: Path | bytes, bundle: DocumentBundle, max_images: int, max_pixels: int
    ) -> tuple[PageImage, ...]:
        """Render the pages of a document that a model should see, on this machine.

        DocumentError if the file cannot be opened, or ends the process that draws it.
        """

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
