"""Warnings about input that differs from earlier runs.

They are about new words, layouts and senders, poor reading, many escalations. Each run counts, for each stratum, how
much of its documents was new. A stratum whose newest runs differ from those before is warned about: more of its
accepted documents are audited, a limited number. By then they are usual. A warning brakes nothing: only errors do.

``monitoring.json`` has numbers only: sums by stratum and run, and by keyed hash how many documents had a word or a line.
Words share 65,536 counters and count as known from three documents on, so that no word of a patient can be told from
them, and a purge leaves them as they are.
"""

import base64
import binascii
import hashlib
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from threading import Lock

import numpy as np
from pydantic import Field

from evalkit.core.package_tables import load_package_table
from evalkit.core.records import StrictRecord
from evalkit.documents.bundle import DocumentBundle, Page
from evalkit.documents.identity.file_persons import has_patient_identifier
from evalkit.errors import StoreError
from evalkit.pipeline.drift import find_unusual_runs
from evalkit.store import MONITORING_FILE, OutputFolder, parse_stored_record

SCHEMA_VERSION = 1
#: Measures of a document, each 0..1, and what a person calls a high value.
MEASURES = {
    "new_words": "words that no earlier document had",
    "new_layout": "headers and footers that no earlier document had",
    "new_sender": "letterheads that no earlier document had",
    "poor_reading": "pages that were read badly",
    "escalated": "documents that were not accepted",
}
_TABLE = load_package_table("evalkit.pipeline", "drift.toml")["inputs"]
_COUNTERS, _MAX_COUNT = 2**16, 255
_MOST_LINES = 20_000
#: Number of lines at the top of the first page of which one may name the sender.
_TOP_LINES = 3
_WORD_PATTERN = re.compile(r"[^\W\d_]{3,}")


class StratumCounts(StrictRecord):
    """Counts of one run's documents in one stratum."""

    documents: int = 0
    audits: int = 0
    """Number of accepted documents that were drawn for audit."""
    sums: dict[str, float] = {}
    """Sum of each measure over the documents."""


class MonitoredRun(StrictRecord):
    """Counts of one run by stratum, and the warnings that followed from them."""

    started_at: str
    strata: dict[str, StratumCounts]
    warnings: dict[str, dict[str, int]] = {}
    """Stratum → measure → number of newest runs, this one included, that are unusual."""


class MonitoringRecord(StrictRecord):
    """Content of ``monitoring.json``."""

    schema_version: int = SCHEMA_VERSION
    document_count: int = Field(0, ge=0)
    word_counts: str = ""
    """Number of documents (at most 255) by counter of words: bytes, compressed, in Base64."""
    line_counts: dict[str, int] = {}
    """Number of documents by hash of a letterhead, header or footer."""
    runs: list[MonitoredRun] = []


def read_monitoring_record(output_folder: OutputFolder) -> MonitoringRecord:
    """Read the counts of earlier runs; empty if there are none.

    StoreError if the file is damaged.
    """
    if not output_folder.has_file(MONITORING_FILE):
        return MonitoringRecord()
    return parse_stored_record(
        MonitoringRecord,
        output_folder.read_json(MONITORING_FILE, max_schema_version=SCHEMA_VERSION),
        MONITORING_FILE,
        "Delete the file: the next run starts the monitoring again.",
    )


def find_warned_strata(runs: Iterable[MonitoredRun]) -> dict[str, str]:
    """Map each stratum under a warning to the measure that is unusual."""
    audits_left: dict[str, int] = {}
    measure_by_stratum: dict[str, str] = {}
    for run in runs:
        for stratum, counts in run.strata.items():
            audits_left[stratum] = audits_left.get(stratum, 0) - counts.audits
        for stratum, warnings in run.warnings.items():
            audits_left[stratum] = _TABLE["warning_audits"]
            measure_by_stratum[stratum] = next(iter(warnings))
    return {stratum: measure for stratum, measure in measure_by_stratum.items() if audits_left[stratum] > 0}


def map_warned_starts(runs: Sequence[MonitoredRun]) -> dict[str, list[str]]:
    """Map each stratum with warnings to the start times of its first unusual runs."""
    starts_by_stratum: dict[str, list[str]] = {}
    for position, run in enumerate(runs):
        for stratum, warnings in run.warnings.items():
            own_runs = [earlier for earlier in runs[: position + 1] if stratum in earlier.strata]
            first_run = own_runs[-min(max(warnings.values()), len(own_runs))]
            starts_by_stratum.setdefault(stratum, []).append(first_run.started_at)
    return starts_by_stratum


def find_warnings(earlier_runs: Iterable[MonitoredRun], newest_run: MonitoredRun) -> dict[str, dict[str, int]]:
    """Find the measures by which a stratum's newest runs are unusual.

    What was warned about is usual from then on: only runs since the unusual ones began are compared.
    """
    runs = [*earlier_runs, newest_run]
    warnings: dict[str, dict[str, int]] = {}
    for stratum in newest_run.strata:
        own_runs = [run for run in runs if stratum in run.strata]
        for measure in MEASURES:
            measured = [run for run in own_runs if measure in run.strata[stratum].sums]
            lengths = [run.warnings.get(stratum, {}).get(measure) for run in measured]
            warned_at = max((position for position, length in enumerate(lengths) if length), default=-1)
            compared = measured[max(warned_at + 1 - (lengths[warned_at] or 0), 0) if warned_at >= 0 else 0 :]
            if measure not in newest_run.strata[stratum].sums:
                continue
            length = find_unusual_runs(
                np.array([run.strata[stratum].sums[measure] for run in compared]),
                np.array([float(run.strata[stratum].documents) for run in compared]),
            )
            if length:
                warnings.setdefault(stratum, {})[measure] = length
    return warnings


class InputMonitor:
    """Counter of unusual input in a run's documents, compared with earlier runs."""

    def __init__(self, output_folder: OutputFolder, salt: bytes) -> None:
        self._output_folder = output_folder
        self._salt = hashlib.sha256(salt).digest()
        self._lock = Lock()
        self._record = read_monitoring_record(output_folder)
        self._word_counts = _unpack_counts(self._record.word_counts)
        self._new_word_counts = np.zeros(_COUNTERS, dtype=np.int64)
        self._new_line_counts: Counter[str] = Counter()
        self._document_count = 0
        self._counts_by_stratum: dict[str, StratumCounts] = {}
        self.warned_strata = find_warned_strata(self._record.runs)

    def add_document(self, bundle: DocumentBundle, stratum: str, *, is_escalated: bool, is_audited: bool) -> None:
        """Count a document that this run has decided."""
        words = np.fromiter(self._hash_words(bundle), dtype=np.int64)
        furniture = [(block.text, page) for page in bundle.pages for block in page.visible_blocks if block.furniture]
        top_lines = [(line, page) for page in bundle.pages[:1] for line in page.text.split("\n") if line.strip()]
        footer_keys, sender_keys = set(self._hash_lines(furniture)), set(self._hash_lines(top_lines[:_TOP_LINES]))
        measures = {"escalated": float(is_escalated), "poor_reading": _measure_poor_reading(bundle)}
        if self._record.document_count >= _TABLE["min_known_documents"]:
            min_documents = _TABLE["min_documents_with_word"]
            # Rare words of many documents fill the counters that they share, so that a known word needs more documents.
            min_count = min(max(min_documents, round(_TABLE["known_share"] * self._record.document_count)), _MAX_COUNT)
            known = self._word_counts[words] >= min_count
            measures["new_words"] = float(1 - known.mean()) if len(words) else 0.0
            for measure, keys in (("new_layout", footer_keys), ("new_sender", sender_keys)):
                is_known = any(self._record.line_counts.get(key, 0) >= min_documents for key in keys)
                measures[measure] = float(bool(keys) and not is_known)
        with self._lock:
            self._document_count += 1
            self._new_word_counts[words] += 1
            self._new_line_counts.update(footer_keys | sender_keys)
            counts = self._counts_by_stratum.get(stratum, StratumCounts())
            self._counts_by_stratum[stratum] = StratumCounts(
                documents=counts.documents + 1,
                audits=counts.audits + is_audited,
                sums={name: round(counts.sums.get(name, 0.0) + value, 6) for name, value in measures.items()},
            )

    def save(self, started_at: str) -> None:
        """Store the run's counts and warnings, if it decided any document."""
        if not self._document_count:
            return
        run = MonitoredRun(started_at=started_at, strata=dict(sorted(self._counts_by_stratum.items())))
        run = run.model_copy(update={"warnings": find_warnings(self._record.runs, run)})
        line_counts = Counter(self._record.line_counts) + self._new_line_counts
        record = MonitoringRecord(
            document_count=self._record.document_count + self._document_count,
            word_counts=_pack_counts(self._word_counts + self._new_word_counts),
            line_counts=dict(sorted(line_counts.most_common(_MOST_LINES))),
            runs=[*self._record.runs, run][-_TABLE["stored_runs"] :],
        )
        self._output_folder.write_json(MONITORING_FILE, record.model_dump(mode="json"))

    def _hash(self, text: str) -> str:
        return hashlib.blake2b(text.encode(errors="replace"), key=self._salt, digest_size=6).hexdigest()

    def _hash_words(self, bundle: DocumentBundle) -> set[int]:
        words = {word for page in bundle.pages for word in _WORD_PATTERN.findall(page.text.casefold())}
        return {int(self._hash(word), 16) % _COUNTERS for word in words}

    def _hash_lines(self, lines: Iterable[tuple[str, Page]]) -> Iterator[str]:
        """Yield each line's hash of letters: numbers and dates differ between pages.

        A line about the page's patient is left out: whoever has the key could confirm a guessed name.
        """
        for line, page in lines:
            letters = " ".join(_WORD_PATTERN.findall(line.casefold()))
            if letters and not has_patient_identifier(line, page):
                yield self._hash(letters)


def _measure_poor_reading(bundle: DocumentBundle) -> float:
    """Return how badly the pages were read: 0 if perfectly, 1 if no page was."""
    qualities = [
        0.0 if not page.status.is_readable else 1.0 if page.quality is None else page.quality for page in bundle.pages
    ]
    return 1 - sum(qualities) / len(qualities) if qualities else 1.0


def _pack_counts(counts: np.ndarray) -> str:
    return base64.b64encode(zlib.compress(np.minimum(counts, _MAX_COUNT).astype(np.uint8).tobytes(), 9)).decode()


def _unpack_counts(packed: str) -> np.ndarray:
    if not packed:
        return np.zeros(_COUNTERS, dtype=np.int64)
    try:
        data = zlib.decompressobj().decompress(base64.b64decode(packed, validate=True), _COUNTERS)
    except (binascii.Error, zlib.error):
        data = b""
    if len(data) != _COUNTERS:
        raise StoreError(
            f"{MONITORING_FILE} is damaged",
            code="STORE-TORN",
            remedy="Delete the file: the next run starts the monitoring again.",
        )
    return np.frombuffer(data, dtype=np.uint8).astype(np.int64)
