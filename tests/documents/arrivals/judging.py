"""What became of an arriving file, compared with what a careful person expects."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

from documents.arrivals.arrival import Arrival

from evalkit.documents import DocumentBundle, PageStatus
from evalkit.documents.ocr import resolve_ocr_engine
from evalkit.documents.readers import read_document
from evalkit.documents.scanned_pages import PageOcrSettings
from evalkit.errors import DocumentError

#: The longest texts whose order of words is compared, too.
MAX_ORDERED_WORDS = 5000
PICTURES = ("TIFF", "JPEG", "PNG")


@dataclass(frozen=True)
class Outcome:
    """What became of one file: the share of its words that were read, or the error's code; and what is wrong."""

    word_share: float | None
    code: str | None
    faults: tuple[str, ...]


def judge(arrival: Arrival, folder: Path) -> Outcome:
    """Read one file with OCR and compare."""
    try:
        bundle = read_document(
            folder / arrival.file,
            doc_id="arrival",
            processing_timestamp="",
            ocr_settings=PageOcrSettings(resolve_ocr_engine("tesseract"), 60),
        )
    except DocumentError as error:
        faults = [] if arrival.outcome == "named" or arrival.may_be_named else ["refused"]
        faults += [] if arrival.file in error.message and error.remedy else ["without name or remedy"]
        return Outcome(None, error.code, tuple(faults))
    words = " ".join(page.text for page in bundle.pages).split()
    # Words of a picture within a text come after the text's own.
    is_ordered = all(page.status is not PageStatus.OCR for page in bundle.pages) or arrival.format in PICTURES
    share = share_of_words(arrival.words, words, is_ordered=is_ordered)
    return Outcome(share, None, tuple(faults_of(arrival, bundle, words, share)))


def faults_of(arrival: Arrival, bundle: DocumentBundle, words: list[str], share: float) -> list[str]:
    """Name what is wrong with a file that was read."""
    is_told = bundle.is_repaired or any(page.status is PageStatus.FAILED for page in bundle.pages)
    # An engine's mistake in a letter is no fault of the reader of the format.
    needed_share = 0.9 if arrival.format in PICTURES else 0.995
    checks = {
        "read, though it must be refused": arrival.outcome == "named",
        f"only {share:.1%} of the words": share < needed_share,
        f"{bundle.total_pages} pages": arrival.pages is not None and arrival.pages != bundle.total_pages,
        "loss not told": arrival.is_damaged and not is_told,
        "told as damaged": is_told and not arrival.is_damaged,
        "read what nobody sees": any(text in " ".join(words) for text in arrival.absent),
    }
    return [fault for fault, is_so in checks.items() if is_so]


def share_of_words(expected: tuple[str, ...], words: list[str], *, is_ordered: bool) -> float:
    """Measure which share of the expected words was read, in their order where the text is not too long."""
    if not expected:
        return 1.0
    if not is_ordered or max(len(expected), len(words)) > MAX_ORDERED_WORDS:
        return (Counter(expected) & Counter(words)).total() / len(expected)
    blocks = SequenceMatcher(None, expected, words, autojunk=False).get_matching_blocks()
    return sum(block.size for block in blocks) / len(expected)
