"""Hash chain of all changes in an output folder, which reveals tampering.

``changes/0001.json``, ``0002.json`` … are created exclusively and never changed. Each link lists the SHA-256 of files that
were written, and the files that were removed, since the link before it, whose own SHA-256 it contains. Names in links are
keyed hashes, because a file's name may name a patient. A run appends links in batches; any other command appends one at
the end. Before existing files are changed, a link announces it, so that a killed process leaves no false alarm.

Reviews are not listed: they have chains of their own. Neither is ground truth that follows from them.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import PurePath
from threading import RLock
from typing import Any, Protocol

from evalkit.core.clocks import format_zulu_now
from evalkit.core.records import StrictRecord
from evalkit.core.wording import format_count
from evalkit.errors import StoreError
from evalkit.store.canonical_json import encode_canonical_json, parse_stored_record
from evalkit.store.file_names import (
    ATTENTION_CHECKS_FOLDER,
    BUNDLES_FOLDER,
    CHANGES_FOLDER,
    CONVERTED_FOLDER,
    EVENTS_FOLDER,
    EXTRACTIONS_FOLDER,
    GROUND_TRUTH_FOLDER,
    MONITORING_FILE,
    NAME_PART_PATTERN,
    NEUTRAL_NAMES,
    OWN_TYPES_FILE,
    PACKETS_FOLDER,
    PATIENT_SALT_FILE,
    PRODUCTION_LABELS_FILE,
    PURGE_RECORDS_FOLDER,
    RESULTS_FOLDER,
    REVIEWS_FOLDER,
    ROSTER_FILE,
    RUNS_FOLDER,
    SAMPLE_DRAWS_FOLDER,
    SITE_WEIGHTS_FOLDER,
    TEMPLATE_REVIEWS_FOLDER,
    TEMPLATES_FOLDER,
    change_link_file_name,
)

SCHEMA_VERSION = 1

RECORDED_FOLDERS = (
    BUNDLES_FOLDER,
    CONVERTED_FOLDER,
    RESULTS_FOLDER,
    EXTRACTIONS_FOLDER,
    PACKETS_FOLDER,
    GROUND_TRUTH_FOLDER,
    ATTENTION_CHECKS_FOLDER,
    SAMPLE_DRAWS_FOLDER,
    EVENTS_FOLDER,
    SITE_WEIGHTS_FOLDER,
    RUNS_FOLDER,
    TEMPLATES_FOLDER,
    TEMPLATE_REVIEWS_FOLDER,
    PURGE_RECORDS_FOLDER,
)
RECORDED_FILES = (ROSTER_FILE, PRODUCTION_LABELS_FILE, OWN_TYPES_FILE, MONITORING_FILE, PATIENT_SALT_FILE)
#: Folders whose files are numbered, and so name no document.
NUMBERED_FOLDERS = frozenset(
    (CHANGES_FOLDER, SAMPLE_DRAWS_FOLDER, EVENTS_FOLDER, SITE_WEIGHTS_FOLDER, PURGE_RECORDS_FOLDER)
)
#: What the names of a folder's files begin with, before the case_id.
PREFIX_BY_FOLDER = {PACKETS_FOLDER: "sme_packet_", GROUND_TRUTH_FOLDER: "gt_"}
#: Hex digits of a hashed name.
HASH_DIGITS = 12

#: In place of a digest: the file is about to be changed by a process that has not finished, or was killed.
_CHANGING = "changing"
#: In place of a writer: the next run looks for files that nobody recorded.
_NOBODY = "nobody"
_BATCH_SIZE, _BATCH_SECONDS = 1024, 30.0
_MAX_ATTEMPTS = 1000
_SALT_BYTES = 16
_RESTORE_REMEDY = "Restore the file from a backup: evalkit never changes this file after writing it."
_CASE_PATTERN = re.compile(r"[A-Za-z0-9_-]+")
_STATUS_PATTERN = re.compile(rb'"review_status": ?"[a-z_]+"')
_SILVER_PATTERN = re.compile(rb'"ground_truth_source": ?"AUTO_ACCEPTED"')
_TIME_PATTERN = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")

log = logging.getLogger(__name__)
#: Writer of this process → sentence that says what the chain of a folder lacks.
open_problems: dict[str, str] = {}


class ChangeLink(StrictRecord):
    """One link of the hash chain, stored as ``changes/NNNN.json``."""

    schema_version: int = SCHEMA_VERSION
    recorded_at: str
    files: dict[str, str | None]
    """Hashed file name → SHA-256 (hex) of its bytes; None if it was removed, ``changing`` if it is about to change."""
    writers: dict[str, str]
    """The writers that have announced changes and not finished: id → when a run began, or empty for other commands."""
    is_adopted: bool = False
    """True if the files were found unrecorded: written by an older evalkit, or by a process that was killed."""
    salt: str | None = None
    """Key of the names' hashes (hex); only in the first link."""
    prev_sha256: str | None
    """SHA-256 of the bytes of the link before it; None for the first link."""

    @property
    def unfinished_runs(self) -> set[tuple[str, str]]:
        """Id and beginning of each run that has not finished.

        Two runs may begin at the same moment of a coarse clock, and a process may run twice.
        """
        return {(writer, run_opened_at) for writer, run_opened_at in self.writers.items() if run_opened_at}


@dataclass(frozen=True)
class NumberedLink:
    """A link of the chain, its number from 1, and its SHA-256 (hex)."""

    number: int
    sha256: str
    link: ChangeLink


class RecordedFiles(Protocol):
    """Interface through which the hash chain reads and writes files."""

    def has_folder(self, subfolder: str | None = None) -> bool:
        """Return True if the folder exists; see ``OutputFolder``."""

    def has_file(self, name: str) -> bool:
        """Return True if the file exists; see ``OutputFolder``."""

    def read_bytes(self, name: str, max_bytes: int | None = None) -> bytes:
        """Read a file's bytes; see ``OutputFolder``."""

    def list_json_files(self, subfolder: str) -> list[str]:
        """List the JSON files of a subfolder; see ``OutputFolder``."""

    def list_subfolder_names(self, subfolder: str) -> list[str]:
        """List the names of subfolders; see ``OutputFolder``."""

    def map_file_versions(self, subfolder: str | None = None) -> Mapping[str, Any]:
        """Map each file to its version; see ``OutputFolder``."""

    def read_listed_file(self, name: str) -> bytes:
        """Read a file that ``map_file_versions`` listed; see ``OutputFolder``."""

    def read_json(self, name: str, *, max_schema_version: int = 1) -> dict[str, Any]:
        """Read a JSON file; see ``OutputFolder``."""

    def create_link_if_absent(self, name: str, content: bytes) -> bool:
        """Create the file of a chain link; return False if it exists."""


class FileNameHasher:
    """Replaces document names in file names by keyed hashes, and back."""

    def __init__(self, salt: bytes) -> None:
        """``salt`` is the key of the hashes."""
        self.salt = salt
        self._name_by_hash: dict[str, str] = {}
        self._hash_by_name: dict[str, str] = {}

    def hash_text(self, text: str) -> str:
        """Hash a text with the secret salt; ``reveal`` can find the text again."""
        if text not in self._hash_by_name:
            digest = hmac.digest(self.salt, text.encode("utf-8", "surrogateescape"), "sha256").hex()[:HASH_DIGITS]
            self._hash_by_name[text], self._name_by_hash[digest] = digest, text
        return self._hash_by_name[text]

    def hash_file_name(self, name: str) -> str:
        """Replace the document's name in a file name by its hash."""
        folder, _, rest = name.partition("/")
        if not rest or folder in NUMBERED_FOLDERS:
            return name
        if folder == RUNS_FOLDER:  # runs/{name of the run}/results/{document}.json
            parent, _, last_name = name.rpartition("/")
            return f"{parent}/{self._hash_case(last_name)}"
        prefix = PREFIX_BY_FOLDER.get(folder, "")
        case = rest.removeprefix(prefix) if rest.startswith(prefix) else ""
        return f"{folder}/{prefix}{self._hash_case(case)}" if case else f"{folder}/{self.hash_text(rest)}"

    def _hash_case(self, case: str) -> str:
        match = _CASE_PATTERN.match(case)
        return self.hash_text(case) if match is None else f"{self.hash_text(match[0])}{case[match.end() :]}"

    def reveal(self, hashed_name: str) -> str:
        """Replace the hashes in a file name by document names, where known."""
        return re.sub(
            rf"[0-9a-f]{{{HASH_DIGITS}}}", lambda match: self._name_by_hash.get(match[0], match[0]), hashed_name
        )


def compute_recorded_digest(name: str, content: bytes) -> str:
    """Compute the SHA-256 (hex) of a file, as chain links store it.

    The status in a packet, which follows from claims and reviews, and a last line break are left out.
    """
    if name.startswith(PACKETS_FOLDER):
        content = _STATUS_PATTERN.sub(b"", content)
    return hashlib.sha256(content.removesuffix(b"\n")).hexdigest()


def is_recorded(name: str, content: bytes | None = None) -> bool:
    """Return True if the chain lists files with this name and content."""
    folder = name.partition("/")[0]
    if folder == GROUND_TRUTH_FOLDER and content is not None:
        return _SILVER_PATTERN.search(content) is not None
    return folder in RECORDED_FOLDERS or name in RECORDED_FILES


@dataclass
class ChainState:
    """Files that the hash chain lists, and the faults of the chain itself."""

    entries: dict[str, tuple[str | None, int]] = field(default_factory=dict)
    """Hashed file name → its newest entry, and the number of the link that has it."""
    faults: list[tuple[str, str]] = field(default_factory=list)
    """Files of the chain, each with what is wrong."""
    newest: NumberedLink | None = None
    salt: bytes = b""
    adopted_count: int = 0
    run_link_number: int = 0
    """Number of the link with which the run began that has not finished; 0 if there is none."""

    @property
    def run_opened_at(self) -> str:
        """Time at which the run that has not finished began; empty if there is none."""
        return max(self.newest.link.writers.values(), default="") if self.newest else ""

    def explains_no_new_file(self, name: str) -> bool:
        """Return True if no unfinished command can have written a new file.

        Only a run writes records of runs, and the next run adopts those of an older evalkit.
        """
        writers = self.newest.link.writers if self.newest else {_NOBODY: ""}
        is_about_run = name.startswith(f"{RUNS_FOLDER}/")
        return not ((_NOBODY in writers or any(writers.values())) if is_about_run else writers)


def read_chain(files: RecordedFiles) -> ChainState:
    """Read the whole chain. StoreError only if the folder cannot be read."""
    state = ChainState()
    previous_sha256: str | None = None
    for number in range(1, find_newest_number(files) + 1):
        name = change_link_file_name(number)
        expected_sha256, previous_sha256 = previous_sha256, None
        try:
            previous_sha256 = compute_recorded_digest(name, files.read_bytes(name))
            numbered = _read_link(files, number)
        except StoreError as error:
            state.faults.append((name, error.message))
            continue
        link = numbered.link
        if link.prev_sha256 != expected_sha256:
            state.faults.append((name, "the link before it was recorded with another SHA-256"))
        if link.is_adopted:
            state.adopted_count += len(link.files)
        if link.unfinished_runs != (state.newest.link.unfinished_runs if state.newest else set()):
            state.run_link_number = number if link.unfinished_runs else 0
        state.salt = state.salt or bytes.fromhex(link.salt or "")
        state.entries.update({hashed_name: (digest, number) for hashed_name, digest in link.files.items()})
        state.newest = numbered
    return state


def list_recorded_run_names(files: RecordedFiles) -> set[str]:
    """List the names of all runs whose files should exist.

    StoreError if the folder cannot be read.
    """
    entries = read_chain(files).entries.items()
    return {
        name.split("/")[1]
        for name, (digest, _) in entries
        if digest not in (None, _CHANGING) and name.startswith(f"{RUNS_FOLDER}/")
    }


def find_newest_number(files: RecordedFiles) -> int:
    """Return the number of the newest chain link; 0 if there is no chain."""
    stems = (PurePath(name).stem for name in files.list_json_files(CHANGES_FOLDER))
    return max((int(stem) for stem in stems if stem.isdecimal()), default=0)


def has_unfinished_command(files: RecordedFiles) -> bool:
    """Return True if a command other than a run did not finish its changes."""
    number = find_newest_number(files)
    writers = _read_link_or_blank(files, number).link.writers if number else {}
    return any(not run_opened_at and writer != _NOBODY for writer, run_opened_at in writers.items())


def is_link_unchanged(files: RecordedFiles, number: int, sha256: str) -> bool:
    """Return True if the chain still contains this link."""
    name = change_link_file_name(number)
    return files.has_file(name) and compute_recorded_digest(name, files.read_bytes(name)) == sha256


def _read_link(files: RecordedFiles, number: int) -> NumberedLink:
    name = change_link_file_name(number)
    sha256 = compute_recorded_digest(name, files.read_bytes(name))
    stored = files.read_json(name, max_schema_version=SCHEMA_VERSION)
    return NumberedLink(number, sha256, parse_stored_record(ChangeLink, stored, name, _RESTORE_REMEDY))


def _read_link_or_blank(files: RecordedFiles, number: int) -> NumberedLink:
    """Read a link; a damaged one becomes a blank, and is reported by a check."""
    try:
        return _read_link(files, number)
    except StoreError:
        name = change_link_file_name(number)
        blank = ChangeLink(recorded_at="", files={}, writers={_NOBODY: ""}, prev_sha256=None)
        return NumberedLink(number, compute_recorded_digest(name, files.read_bytes(name)), blank)


@dataclass
class ChainComparison:
    """Differences between the files of an output folder and its hash chain."""

    unrecorded: dict[str, str | None] = field(default_factory=dict)
    """Hashed name → digest of each file that no link lists yet, and that is no fault; None if it is gone."""
    faults: list[tuple[str, str]] = field(default_factory=list)
    """Files that were changed or removed after they were recorded, each with what is wrong."""
    recorded_count: int = 0


def compare_with_chain(files: RecordedFiles, state: ChainState, known_ids: Iterable[str] = ()) -> ChainComparison:
    """Compare all files with the chain; files of ``known_ids`` may be missing."""
    comparison, hasher, entries = ChainComparison(), FileNameHasher(state.salt), dict(state.entries)
    for known_id in (*known_ids, *files.list_subfolder_names(REVIEWS_FOLDER)):
        hasher.hash_file_name(f"{RESULTS_FOLDER}/{known_id}")
    for name, content in _iterate_recorded_files(files):
        hashed_name = hasher.hash_file_name(name)
        recorded_digest, number = entries.pop(hashed_name, (None, 0))
        digest = compute_recorded_digest(name, content)
        if not is_recorded(name, content):
            continue
        if recorded_digest == digest:
            comparison.recorded_count += 1
        elif recorded_digest is None and state.explains_no_new_file(name):
            comparison.faults.append((name, "evalkit did not record that it wrote it"))
        elif recorded_digest in (None, _CHANGING) or (
            number <= state.run_link_number and is_newer(content, state.run_opened_at)
        ):
            comparison.unrecorded[hashed_name] = digest
        else:
            comparison.faults.append((name, "it was changed after it was recorded"))
    for hashed_name, (recorded_digest, _) in entries.items():
        name = hasher.reveal(hashed_name)
        case_id = PurePath(name).stem.removeprefix(PREFIX_BY_FOLDER[GROUND_TRUTH_FOLDER])
        if recorded_digest == _CHANGING:
            comparison.unrecorded[hashed_name] = None
        elif recorded_digest is not None and not (
            name.startswith(GROUND_TRUTH_FOLDER) and files.list_json_files(f"{REVIEWS_FOLDER}/{case_id}")
        ):  # reviews replace accepted answers
            comparison.faults.append((name, "it was recorded, but is missing"))
    return comparison


def _iterate_recorded_files(files: RecordedFiles) -> Iterator[tuple[str, bytes]]:
    for folder in filter(files.has_folder, RECORDED_FOLDERS):
        for name in sorted(files.map_file_versions(folder)):
            *_, file_name = parts = name.split("/")  # what others leave in folders is no record
            if file_name not in NEUTRAL_NAMES and all(map(NAME_PART_PATTERN.fullmatch, parts)):
                yield name, _read_or_blank(files, name)
    yield from ((name, files.read_bytes(name)) for name in filter(files.has_file, RECORDED_FILES))


def _read_or_blank(files: RecordedFiles, name: str) -> bytes:
    """Read a file; one that cannot be read counts as changed."""
    try:
        return files.read_listed_file(name)
    except StoreError:
        return b""


def is_newer(content: bytes, moment: str) -> bool:
    """Return True if the content contains a time at or after ``moment``."""
    beginning = moment[:19].encode()
    return bool(moment) and any(match[0] >= beginning for match in _TIME_PATTERN.finditer(content))


class ChangeRecorder:
    """Recorder of this process's changes to one output folder."""

    def __init__(self, files: RecordedFiles) -> None:
        """Record changes of ``files``; nothing is read yet."""
        self._files = files
        self._lock = RLock()
        self._writer_id = secrets.token_hex(4)
        self._pending: dict[str, str | None] = {}
        self._announced: set[str] = set()
        self._recorded_in_run: set[str] = set()
        self._newest: NumberedLink | None = None
        self._hasher: FileNameHasher | None = None
        self._is_open = False
        self._run_opened_at = ""
        self._scope_count = 0
        self._flushed_at = 0.0

    @property
    def problem(self) -> str:
        """Sentence about changes that could not be recorded; empty if none failed."""
        return open_problems.get(self._writer_id, "")

    @contextmanager
    def hold_scope(self, *, is_run: bool = False) -> Iterator[None]:
        """Record all changes within the block together; the caller holds a lock."""
        with self._lock:
            self._scope_count += 1
            if is_run:
                self._run_opened_at, self._flushed_at = format_zulu_now(), time.monotonic()
                self._is_open = False  # the end of an earlier run may not have been recorded
        try:
            yield
        finally:
            with self._lock:
                self._scope_count -= 1
                self._run_opened_at = "" if is_run else self._run_opened_at
                if not self._run_opened_at:
                    self._append_pending(is_finished=True)

    def announce(self, names: Iterable[str], content: bytes = b"") -> None:
        """Record that these files are about to change, if needed. StoreError.

        A run need not announce a file whose new ``content`` shows by its times that the run wrote it.
        """
        with self._lock:
            if self._run_opened_at and not self._is_open:
                self._open_run()
            announced = [
                name
                for name in names
                if name not in self._announced and not (self._run_opened_at and self._is_explained(name, content))
            ]
            if announced:
                self._append(dict.fromkeys(announced, _CHANGING), is_finished=False)
                self._announced.update(announced)

    def _is_explained(self, name: str, content: bytes) -> bool:
        """Return True if the beginning of the run explains what becomes of the file."""
        is_written_by_run = name not in self._recorded_in_run and is_newer(content, self._run_opened_at)
        return is_written_by_run or not self._files.has_file(name)

    def announce_removal(self, names: Iterable[str]) -> None:
        """Record that these files are about to be removed, and then their removal."""
        recorded_names = list(filter(is_recorded, names))
        with self._lock:
            self.announce(recorded_names)
            self._pending.update(dict.fromkeys(recorded_names))

    def add(self, name: str, content: bytes | None) -> None:
        """Record a file as written, or as removed if ``content`` is None."""
        with self._lock:
            self._pending[name] = None if content is None else compute_recorded_digest(name, content)
            if not self._scope_count:
                self._append_pending(is_finished=True)
            elif len(self._pending) >= _BATCH_SIZE or (
                self._run_opened_at and time.monotonic() - self._flushed_at > _BATCH_SECONDS
            ):
                self._append_pending(is_finished=False)

    def append_and_get_newest(self) -> NumberedLink | None:
        """Save pending changes to the chain; return this process's newest link or None."""
        with self._lock:
            self._append_pending(is_finished=False)
            return self._newest

    def _open_run(self) -> None:
        """Begin a run: adopt what an older evalkit or a killed process left unrecorded."""
        self._newest = None  # another process may have appended links since
        newest = self._find_newest()
        unrecorded: dict[str, str | None] = {}
        if newest is None or newest.link.writers:
            state = read_chain(self._files)
            if newest is None:
                state.salt = self._get_hasher().salt
            unrecorded = compare_with_chain(self._files, state).unrecorded
        self._append(unrecorded, is_finished=False, is_hashed=True)

    def record_end(self) -> None:
        """Record now that the command has ended.

        StoreError if it cannot be recorded: then the command has not ended.
        """
        with self._lock:
            self._append_pending_or_raise(is_finished=True)

    def _append_pending(self, *, is_finished: bool) -> None:
        try:
            self._append_pending_or_raise(is_finished=is_finished)
        except StoreError as error:  # the files are written; the next run records them
            what = (
                f"{format_count(len(self._pending), 'change')} of files" if self._pending else "the end of the command"
            )
            open_problems[self._writer_id] = f"The chain of changes lacks {what} until the next run: {error}"
            log.warning("%s", self.problem)

    def _append_pending_or_raise(self, *, is_finished: bool) -> None:
        if not (self._pending or (is_finished and self._is_open)):
            return
        self._append(self._pending, is_finished=is_finished)
        open_problems.pop(self._writer_id, None)
        self._recorded_in_run = set() if is_finished else self._recorded_in_run | self._pending.keys()
        self._announced = set() if is_finished else self._announced
        self._pending = {}

    def _append(self, files: Mapping[str, str | None], *, is_finished: bool, is_hashed: bool = False) -> None:
        for _ in range(_MAX_ATTEMPTS):
            newest, hasher = self._find_newest(), self._get_hasher()
            # The first link of another command leaves older files to the next run, which adopts them.
            writers = {} if is_hashed else dict(newest.link.writers) if newest else {_NOBODY: ""}
            writers.pop(self._writer_id, None)
            link = ChangeLink(
                recorded_at=format_zulu_now(),
                files=dict(files) if is_hashed else {hasher.hash_file_name(name): files[name] for name in files},
                writers=writers if is_finished else {**writers, self._writer_id: self._run_opened_at},
                is_adopted=is_hashed and bool(files),
                salt=None if newest else hasher.salt.hex(),
                prev_sha256=newest and newest.sha256,
            )
            number = newest.number + 1 if newest else 1
            name, content = change_link_file_name(number), encode_canonical_json(link.model_dump(mode="json"))
            if self._files.create_link_if_absent(name, content):
                self._newest = NumberedLink(number, compute_recorded_digest(name, content), link)
                self._is_open, self._flushed_at = not is_finished, time.monotonic()
                return
            self._newest = None  # others may have appended thousands since
            if newest is None:
                self._hasher = None
                if is_hashed:
                    self._open_run()
                    return
        raise StoreError(
            "other processes recorded changes at the same time", code="STORE-FAILED", remedy="Run the command again."
        )

    def _find_newest(self) -> NumberedLink | None:
        if self._newest is None and (number := find_newest_number(self._files)):
            self._newest = _read_link_or_blank(self._files, number)
        return self._newest

    def _get_hasher(self) -> FileNameHasher:
        if self._hasher is None:
            salt = _read_link(self._files, 1).link.salt if self._find_newest() else None
            self._hasher = FileNameHasher(bytes.fromhex(salt) if salt else secrets.token_bytes(_SALT_BYTES))
        return self._hasher
