"""History of an output folder's runs, with results that later runs replaced.

``runs/{name}/run.json`` says what a run was: inputs, settings, versions, times, usage of models, and the decision of each
document with the hash of its result. The newest results lie in ``results/`` and ``extractions/``, as ever. Before a run
replaces one that another run made, it copies the old file to ``runs/{name of that run}/results/``. So a result that no
later run changed is stored once, however many runs share it.

A result names its run by the time at which that run, or the session that continued it, started.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from threading import Lock
from typing import Any

from typing_extensions import TypedDict, override

from evalkit.classification.document_result import DocumentFailure, DocumentResult
from evalkit.core.clocks import format_zulu_now
from evalkit.core.records import StrictRecord
from evalkit.errors import NotFound, StoreError, UsageError
from evalkit.pipeline.sample_draws import AuditDraw
from evalkit.store import (
    EXTRACTIONS_FOLDER,
    RESULTS_FOLDER,
    RUNS_FOLDER,
    OutputFolder,
    ReadOnlyFolder,
    encode_canonical_json,
    extraction_file_name,
    hash_canonical_json,
    kept_file_name,
    parse_stored_json,
    read_record,
    result_file_name,
    run_file_name,
)
from evalkit.store.change_chain import list_recorded_run_names

#: Version 2 has the facts of the draw of audits, version 3 the version of the formula of its probabilities.
SCHEMA_VERSION = 3

#: Hex digits that tell one set of prompts from another.
_PROMPT_DIGITS = 4
_MAX_NAME_LENGTH = 64
_NAME_PATTERN = re.compile(rf"[A-Za-z0-9][A-Za-z0-9_.-]{{0,{_MAX_NAME_LENGTH - 1}}}")
#: Names that evalkit gives to runs without one: date and number.
_GIVEN_NAME_PATTERN = re.compile(r"(\d{4}-\d{2}-\d{2})-(\d+)")
#: Accepts every schema version: a file is only copied, and its times are read.
_ANY_VERSION = 1 << 31


class RunInputs(StrictRecord):
    """Paths and options of a run."""

    paths: tuple[str, ...] = ()
    """Absolute paths of the files and folders; without those of which every document was purged."""
    purged_paths: int = 0
    """Number of paths that a purge removed."""
    production: str | None = None
    patients_file: str | None = None
    classifications: str | None = None
    """Folder with another system's classifications."""
    extract: bool = False
    """True if the fields of reports and forms were extracted too."""

    def is_same_as(self, other: RunInputs) -> bool:
        """Return True if ``other`` has the same inputs, apart from purged documents."""
        missing = set(other.paths) - set(self.paths)
        return (
            set(self.paths) <= set(other.paths)
            and len(missing) == self.purged_paths
            and self.model_copy(update={"paths": (), "purged_paths": 0}) == other.model_copy(update={"paths": ()})
        )


class ModelUsage(StrictRecord):
    """Calls of one model in one session, and their cost."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: str | None = "0"
    """US dollars as decimal text; None if the price is unknown."""


class SessionTimes(TypedDict, total=False):
    """Times of a session; without ``finished_at``, it was killed or still runs.

    ``newest_link`` is number and SHA-256 of the newest link of the chain of changes before the record was written: who
    removes the chain must change the record too. It is here because a link's digest follows from its time.
    """

    started_at: str
    finished_at: str
    newest_link: tuple[int, str]
    seconds: float
    seconds_by_model: dict[str, float]
    """Seconds of each model's calls, which overlap; of the built-in model, the seconds of deciding."""


class RunSession(StrictRecord):
    """One command that began or continued a run."""

    times: SessionTimes
    decided: int = 0
    """Number of documents that the session decided, or found to be unreadable."""
    is_complete: bool = False
    """False if the session was stopped before it had processed all documents."""
    usage_by_model: dict[str, ModelUsage] = {}
    audit_draw: AuditDraw | None = None
    """How the session drew audits; None for sessions of an older evalkit."""

    @property
    def is_finished(self) -> bool:
        """True if the session ended normally, so that its work is recorded."""
        return "finished_at" in self.times

    def compute_digest(self) -> str:
        """Compute the SHA-256 (hex) of the session's canonical JSON."""
        return hash_canonical_json(self.model_dump(mode="json"))


class StoredResult(StrictRecord):
    """A document's result or fields, and the run that produced them."""

    run: str
    sha256: str
    """SHA-256 of the file's canonical JSON without its times, so that it does not change if a run is repeated."""


class RunDocument(StrictRecord):
    """One document of a run, with its stored result."""

    sha256: str | None
    fingerprint: str | None
    """Hash of everything that determines the result; None after a failure that may pass."""
    decision: str | None
    """None if the document could not be read."""
    decision_rule: str | None
    error_code: str | None
    result: StoredResult
    fields: StoredResult | None = None


class RunRecord(StrictRecord):
    """Content of ``runs/{name}/run.json``."""

    schema_version: int = SCHEMA_VERSION
    name: str
    number: int
    """Number of the run in its folder, from 1."""
    is_named: bool
    """False if evalkit gave the name."""
    inputs: RunInputs
    settings: dict[str, Any]
    """Reader, models, prompts, tables and settings that determine results."""
    sessions: tuple[RunSession, ...]
    documents: dict[str, RunDocument] = {}

    @property
    def started_at(self) -> str:
        """Time at which the first session started (ISO 8601, UTC)."""
        return self.sessions[0].times["started_at"]

    def summarise(self) -> dict[str, Any]:
        """Return the record for a list of runs, with counts instead of documents."""
        decisions = [document.decision for document in self.documents.values()]
        usages = [usage for session in self.sessions for usage in session.usage_by_model.values()]
        costs = [usage.cost_usd for usage in usages]
        prompts = self.settings.get("versions", {}).get("prompts")
        return {
            "name": self.name,
            "is_named": self.is_named,
            "started_at": self.started_at,
            "finished_at": self.sessions[-1].times.get("finished_at"),
            "is_complete": self.sessions[-1].is_complete,
            "documents": len(decisions),
            "accepted": decisions.count("AUTO_ACCEPT"),
            "escalated": decisions.count("ESCALATE_TO_SME"),
            "failed": decisions.count(None),
            "decided": sum(session.decided for session in self.sessions),
            "calls": sum(usage.calls for usage in usages),
            "tokens": sum(usage.input_tokens + usage.output_tokens for usage in usages),
            "cost_usd": None if None in costs else str(sum(map(Decimal, filter(None, costs)), Decimal(0))),
            "seconds": round(sum(session.times.get("seconds", 0.0) for session in self.sessions), 3),
            "prompts": hash_canonical_json(prompts)[:_PROMPT_DIGITS] if prompts else "",
            "inputs": self.inputs.model_dump(mode="json"),
            "settings": self.settings,
            "sessions": [session.model_dump(mode="json") for session in self.sessions],
        }


def read_run_records(output_folder: OutputFolder) -> list[RunRecord]:
    """Read the records of all runs, oldest first. StoreError if one is damaged."""
    return sorted(
        (read_record(output_folder, name, RunRecord) for name in list_run_files(output_folder)),
        key=lambda record: record.number,
    )


def list_run_files(output_folder: OutputFolder) -> list[str]:
    """List the files with the records of runs, sorted by the runs' names.

    A run that was killed, or that found the disk full, before its record was written leaves an empty folder, which is no
    run. A folder of results without a record is listed: reading it says what is missing.
    """
    names = output_folder.list_subfolder_names(RUNS_FOLDER) if output_folder.has_folder(RUNS_FOLDER) else []
    return [
        run_file_name(name)
        for name in names
        if output_folder.has_file(run_file_name(name)) or output_folder.list_subfolder_names(f"{RUNS_FOLDER}/{name}")
    ]


def find_run_record(output_folder: OutputFolder, name: str) -> RunRecord:
    """Read a run's record. NotFound if the folder has no such run."""
    records = read_run_records(output_folder)
    for record in records:
        if record.name == name:
            return record
    known_names = ", ".join(record.name for record in records[-5:])
    raise NotFound(
        f"there is no run {name[:_MAX_NAME_LENGTH]!r} in {output_folder.root}",
        code="RUN-NOT-FOUND",
        remedy=f"`evalkit runs` lists the runs; the newest are {known_names}." if records else "Run documents first.",
    )


def tabulate_usage_by_day(records: Iterable[RunRecord]) -> list[dict[str, Any]]:
    """List each model's calls, tokens, dollars (as text) and seconds by day.

    The oldest day is first.
    """
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for session in (session for record in records for session in record.sessions):
        day, seconds_by_model = session.times["started_at"][:10], session.times.get("seconds_by_model", {})
        for model, usage in session.usage_by_model.items():
            row = rows.setdefault(
                (day, model),
                {"day": day, "model": model, "calls": 0, "tokens": 0, "cost_usd": "0", "seconds": 0.0},
            )
            row["calls"] += usage.calls
            row["tokens"] += usage.input_tokens + usage.output_tokens
            is_priced = usage.cost_usd is not None and row["cost_usd"] is not None
            row["cost_usd"] = str(Decimal(row["cost_usd"]) + Decimal(usage.cost_usd or 0)) if is_priced else None
            row["seconds"] = round(row["seconds"] + seconds_by_model.get(model, 0.0), 3)
    return [row for _, row in sorted(rows.items())]


# ---------------------------------------------------------------------------------------------- names and beginnings


def require_valid_run_name(name: str, known_names: Iterable[str]) -> None:
    """Raise UsageError if a new run cannot have this name, saying why."""
    folded_names = {known_name.casefold(): known_name for known_name in known_names}
    problem, remedy = None, f"Use up to {_MAX_NAME_LENGTH} letters, digits, '-', '_' and '.', for example baseline-2."
    if not _NAME_PATTERN.fullmatch(name) or ".." in name or name.endswith("."):
        problem = "has forbidden characters, or is too long"
    elif _GIVEN_NAME_PATTERN.fullmatch(name):
        problem = "is one that evalkit gives itself"
    elif (known_name := folded_names.get(name.casefold())) == name:
        problem = "is that of a run whose record is missing"
        remedy = f"Restore {run_file_name(name)} from a backup, or give another --name."
    elif known_name is not None:
        problem = f"differs from that of run {known_name} in capitals only"
    if problem:
        raise UsageError(
            f"the run name {name[:_MAX_NAME_LENGTH]!r} {problem}",
            code="RUN-NAME",
            remedy=remedy,
        )


def find_difference(
    record: RunRecord, inputs: RunInputs, settings: Mapping[str, Any], fingerprint_by_doc_id: Mapping[str, str]
) -> str | None:
    """Describe why these inputs and settings cannot continue a run; None if they can."""
    if not record.inputs.is_same_as(inputs):
        return "other inputs"
    if changed := sorted(key for key in {*record.settings, *settings} if record.settings.get(key) != settings.get(key)):
        return f"other settings ({', '.join(changed)})"
    changed_count = sum(
        document.fingerprint is not None
        and fingerprint_by_doc_id.get(doc_id, document.fingerprint) != document.fingerprint
        for doc_id, document in record.documents.items()
    )
    return f"other classifications or patients for {changed_count} of its documents" if changed_count else None


def begin_or_continue_run(
    output_folder: OutputFolder,
    name: str | None,
    *,
    inputs: RunInputs,
    settings: Mapping[str, Any],
    fingerprint_by_doc_id: Mapping[str, str],
    started_at: str,
    fresh: bool,
) -> RunRecorder:
    """Choose the run to begin or continue; the caller holds the run lock.

    A name that exists continues that run, if it is the newest and nothing differs: new documents are added, and what
    failed is tried again. Without a name, the newest run is continued on the same conditions if it has none either.
    UsageError for a bad name, and for a name whose run cannot be continued.
    """
    records = read_run_records(output_folder)
    newest = records[-1] if records else None
    comparable_settings = json.loads(encode_canonical_json(settings))  # as they are read from a record
    continued = next((record for record in records if record.name == name), None)
    if name is None and newest and not newest.is_named:
        continued = newest
    problem = None
    if continued and newest:
        if continued is not newest:
            problem = f"run {name} is not the newest: {newest.name} came after it"
        elif fresh and continued.documents:
            problem = f"--fresh would replace the results of run {name}"
        elif difference := find_difference(continued, inputs, comparable_settings, fingerprint_by_doc_id):
            problem = f"run {name} was made with {difference}"
    if name is not None and problem:
        raise UsageError(
            problem,
            code="RUN-CHANGED",
            remedy="Give another --name, which starts a new run and keeps the results of this run.",
        )
    if continued is None or problem:
        # A new record must not hide that an older one is missing.
        known_names = {record.name for record in records} | list_recorded_run_names(output_folder)
        if name is not None:
            require_valid_run_name(name, known_names)
        continued = RunRecord(
            name=name or _choose_name(started_at[:10], known_names),
            number=newest.number + 1 if newest else 1,
            is_named=name is not None,
            inputs=inputs,
            settings=comparable_settings,
            sessions=(),
        )
    return RunRecorder(output_folder, records, continued, started_at)


def _choose_name(day: str, known_names: Iterable[str]) -> str:
    matches = map(_GIVEN_NAME_PATTERN.fullmatch, known_names)
    numbers = [int(match[2]) for match in matches if match and match[1] == day]
    return f"{day}-{max(numbers, default=0) + 1}"


def save_run_record(output_folder: OutputFolder, record: RunRecord) -> None:
    """Write a run's record; the caller holds the run lock."""
    output_folder.write_json(run_file_name(record.name), record.model_dump(mode="json"))


# ------------------------------------------------------------------------------------------------ replaced results


class ResultWriter:
    """Writer of results that first saves a copy of another run's result."""

    def __init__(self, output_folder: OutputFolder, records: Iterable[RunRecord]) -> None:
        """Write to ``output_folder``; ``records`` are its runs."""
        self._output_folder = output_folder
        self._run_by_start = {
            session.times["started_at"]: record.name for record in records for session in record.sessions
        }
        self.name = ""

    def write(self, file_name: str, value: Any) -> StoredResult:
        """Write a document's result or fields, and return the hash.

        The file that it replaces is copied to the folder of its run, unless this run made it.
        """
        if self._output_folder.has_file(file_name):
            replaced = self._output_folder.read_bytes(file_name)
            run = self._run_by_start.get(get_run_start(_parse_or_empty(replaced)))
            kept_name = kept_file_name(run, file_name)
            if run and run != self.name and not self._output_folder.has_file(kept_name):
                self._output_folder.write_bytes(kept_name, replaced)
        self._output_folder.write_json(file_name, value)
        return StoredResult(run=self.name, sha256=hash_result(value))


def _parse_or_empty(content: bytes) -> dict[str, Any]:
    """Parse a stored result of any version; empty if it is damaged."""
    with suppress(StoreError):
        return parse_stored_json("", content, max_schema_version=_ANY_VERSION)
    return {}


def get_run_start(result: Mapping[str, Any]) -> str:
    """Return the start time of a result's run; empty if it is not recorded."""
    times = result.get("times")
    return str(times.get("run_started_at", "")) if isinstance(times, Mapping) else ""


def hash_result(result: Mapping[str, Any]) -> str:
    """Hash a document's result or fields, ignoring times."""
    return hash_canonical_json({name: value for name, value in result.items() if name != "times"})


class RunRecorder(ResultWriter):
    """Recorder of the run that a command begins or continues."""

    def __init__(
        self, output_folder: OutputFolder, records: Sequence[RunRecord], record: RunRecord, started_at: str
    ) -> None:
        """``record``: the run, whose sessions do not include this one yet."""
        super().__init__(output_folder, records)
        self.audit_draw: AuditDraw | None = None
        self._run_by_start[started_at] = self.name = record.name
        self._record = record
        self._earlier_documents = records[-1].documents if records else {}
        self._documents = dict(record.documents)
        self._started_at = started_at
        self._decided_count = 0
        self._is_begun = False
        self._lock = Lock()

    @override
    def write(self, file_name: str, value: Any) -> StoredResult:
        with self._lock:  # a killed run must be known too: its results name it by its start
            if not self._is_begun:
                self._save_session(
                    RunSession(times={"started_at": self._started_at}, audit_draw=self.audit_draw),
                    self._record.documents,
                )
                self._is_begun = True
        return super().write(file_name, value)

    def add_document(self, result: DocumentResult | DocumentFailure, stored: StoredResult | None = None) -> None:
        """Add a document; ``stored`` is None if an earlier session or run decided on it."""
        earlier = self._documents.get(result.doc_id) or self._earlier_documents.get(result.doc_id)
        if stored is None and earlier and earlier.fingerprint == result.fingerprint:
            fields = earlier.fields if self._record.inputs.extract else None
            self._documents[result.doc_id] = earlier.model_copy(update={"fields": fields})
            return
        self._decided_count += stored is not None
        decided = result if isinstance(result, DocumentResult) else None
        self._documents[result.doc_id] = RunDocument(
            sha256=result.sha256,
            fingerprint=result.fingerprint,
            decision=decided and decided.decision.value,
            decision_rule=decided and decided.decision_rule,
            error_code=result.error.code if isinstance(result, DocumentFailure) else None,
            result=stored or self._describe_file(result_file_name(result.doc_id)),
        )

    def is_changed(self, result: DocumentResult) -> bool:
        """Return True if the result's file differs from the recorded result."""
        earlier = self._documents.get(result.doc_id) or self._earlier_documents.get(result.doc_id)
        return (
            earlier is not None
            and earlier.fingerprint == result.fingerprint
            and earlier.result.sha256 != self._describe_file(result_file_name(result.doc_id)).sha256
        )

    def add_fields(self, doc_id: str, stored: StoredResult | None) -> None:
        """Add a document's fields; ``stored`` is None if they were extracted earlier."""
        document = self._documents[doc_id]
        stored = stored or document.fields or self._describe_file(extraction_file_name(doc_id))
        self._documents[doc_id] = document.model_copy(update={"fields": stored})

    def _describe_file(self, file_name: str) -> StoredResult:
        result = _parse_or_empty(self._output_folder.read_bytes(file_name))
        return StoredResult(run=self._run_by_start.get(get_run_start(result), ""), sha256=hash_result(result))

    def finish(
        self,
        *,
        is_complete: bool,
        seconds: float,
        usage_by_model: Mapping[str, ModelUsage],
        seconds_by_model: Mapping[str, float],
    ) -> None:
        """Write the run's record at the end, unless the session added nothing."""
        if not self._is_begun and self._documents == self._record.documents:
            return
        session = RunSession(
            times=SessionTimes(
                started_at=self._started_at,
                finished_at=format_zulu_now(),
                seconds=round(seconds, 3),
                seconds_by_model={name: round(amount, 3) for name, amount in sorted(seconds_by_model.items())},
            ),
            decided=self._decided_count,
            is_complete=is_complete,
            usage_by_model=dict(sorted(usage_by_model.items())),
            audit_draw=self.audit_draw,
        )
        self._save_session(session, dict(sorted(self._documents.items())))

    def _save_session(self, session: RunSession, documents: dict[str, RunDocument]) -> None:
        if newest := self._output_folder.changes.append_and_get_newest():
            session.times["newest_link"] = (newest.number, newest.sha256)
        changes = {"sessions": (*self._record.sessions, session), "documents": documents}
        save_run_record(self._output_folder, self._record.model_copy(update=changes))


# ------------------------------------------------------------------------------------------------ the past of a folder


class RunFolder(ReadOnlyFolder):
    """Read-only view of an output folder as one of its runs left it.

    Cases, reviews and ground truth are the newest.
    """

    def __init__(self, output_folder: OutputFolder, record: RunRecord) -> None:
        """``record``: the run."""
        super().__init__(output_folder)
        self._names = {
            name: kept_file_name(stored.run, name)
            for doc_id, document in record.documents.items()
            for name, stored in (
                (result_file_name(doc_id), document.result),
                (extraction_file_name(doc_id), document.fields),
            )
            if stored
        }

    def get_stored_name(self, name: str) -> str:
        """Return the name under which the folder stores a result of the run.

        NotFound if there is none.
        """
        kept_name = self._names.get(name)
        if kept_name is None:
            raise NotFound(
                f"the run has no file {name}", code="STORE-NOT-FOUND", remedy="`evalkit runs` lists the runs."
            )
        return kept_name if self._folder.has_file(kept_name) else name

    @override
    def has_file(self, name: str) -> bool:
        return name in self._names if _is_result_name(name) else self._folder.has_file(name)

    @override
    def list_json_files(self, subfolder: str) -> list[str]:
        if _is_result_name(f"{subfolder}/"):
            return sorted(name for name in self._names if name.startswith(f"{subfolder}/"))
        return self._folder.list_json_files(subfolder)

    @override
    def read_bytes(self, name: str, max_bytes: int | None = None) -> bytes:
        stored_name = self.get_stored_name(name) if _is_result_name(name) else name
        return self._folder.read_bytes(stored_name, max_bytes)


def _is_result_name(name: str) -> bool:
    return name.partition("/")[0] in (RESULTS_FOLDER, EXTRACTIONS_FOLDER)


def open_run(output_folder: OutputFolder, name: str) -> RunFolder:
    """Open the output folder as a run left it. NotFound if there is no such run."""
    return RunFolder(output_folder, find_run_record(output_folder, name))


def remove_from_record(record: RunRecord, doc_ids: Collection[str], remaining_paths: Sequence[str]) -> RunRecord:
    """Remove documents from a run's record, with input paths of these alone.

    ``remaining_paths`` are the files of the documents that stay.
    """
    paths = tuple(
        path
        for path in record.inputs.paths
        if any(other == path or other.startswith(path.rstrip("/") + "/") for other in remaining_paths)
    )
    purged_paths = record.inputs.purged_paths + len(record.inputs.paths) - len(paths)
    return record.model_copy(
        update={
            "documents": {doc_id: entry for doc_id, entry in record.documents.items() if doc_id not in doc_ids},
            "inputs": record.inputs.model_copy(update={"paths": paths, "purged_paths": purged_paths}),
        }
    )
