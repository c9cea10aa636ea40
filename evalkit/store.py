"""output/: what machines and people said is in files; the database only indexes them and coordinates people.

:class:`Files` writes JSON atomically (temporary name, sync, rename; 0600 in 0700 folders) and creates reviews
exclusively. :class:`Index` holds the tables of documents, cases and closed cases, which can always be rebuilt from the
files, and four that cannot and that a rebuild leaves alone: :class:`Claims`, who has which case open, :class:`Drafts`, what
somebody has not submitted yet, :class:`Deferrals`, what somebody has put off and why, and :class:`Calls`, what language
models answered. Times are ISO 8601 in UTC, to the second: they compare as text.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import re
import secrets
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from pydantic import BaseModel, ValidationError
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.schema import CreateColumn, CreateIndex, CreateTable

from evalkit.collector import resting
from evalkit.errors import NotFound, StoreError, UsageError

BUNDLES = "document_bundles"
RESULTS = "results"
PACKETS = "sme_packets"
REVIEWS = "reviews"
GROUND_TRUTH = "ground_truth"
EXTRACTIONS = "extractions"
SEEDED = "seeded"
DRAWS = "draws"
PRODUCTION = "production.json"

_SCRATCH = ".tmp"
_LOCK = ".lock"
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*")


def bundle_name(doc_id: str) -> str:
    """Where a document's bundle lies."""
    return f"{BUNDLES}/{doc_id}.json"


def result_name(doc_id: str) -> str:
    """Where a document's result lies."""
    return f"{RESULTS}/{doc_id}.json"


def extraction_name(doc_id: str) -> str:
    """Where the fields of a document's reports and forms lie."""
    return f"{EXTRACTIONS}/{doc_id}.json"


def packet_name(case_id: str) -> str:
    """Where a case's packet lies."""
    return f"{PACKETS}/sme_packet_{case_id}.json"


def review_name(case_id: str, revision: int) -> str:
    """Where a case's review of that number lies."""
    return f"{REVIEWS}/{case_id}/{revision:04d}.json"


def ground_truth_name(case_id: str) -> str:
    """Where a case's ground truth lies."""
    return f"{GROUND_TRUTH}/gt_{case_id}.json"


def seeded_name(case_id: str) -> str:
    """Where it stands what was planted in a seeded case."""
    return f"{SEEDED}/{case_id}.json"


def draw_name(number: int) -> str:
    """Where the draw of that number lies."""
    return f"{DRAWS}/{number:04d}.json"


def canonical(value: Any) -> bytes:
    """The one JSON text of a value: sorted keys, no spaces, UTF-8. Hashes are taken of it."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def digest(value: Any) -> str:
    """SHA-256 (hex) of the canonical JSON."""
    return hashlib.sha256(canonical(value)).hexdigest()


M = TypeVar("M", bound=BaseModel)


def shaped(model: type[M], stored: Mapping[str, Any], name: str, remedy: str) -> M:
    """What a file holds, as its model. StoreError that names the file, with this remedy, where it has another shape."""
    try:
        return model.model_validate(stored)
    except ValidationError:
        # Without the cause: pydantic's message would quote the patient's document.
        raise StoreError(f"{name} does not have the shape of its kind", code="STORE-TORN", remedy=remedy) from None


class Files:
    """The JSON files of one output folder. Names are relative to it, with forward slashes."""

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root)

    def path(self, name: str) -> Path:
        """The file of that name. StoreError for a name that could leave the folder."""
        parts = name.split("/")
        if not all(_NAME.fullmatch(part) for part in parts):
            raise StoreError(
                "a file name in the output folder has forbidden characters",
                code="STORE-NAME",
                remedy="Names consist of letters, digits, '-', '_' and '.'.",
            )
        return self.root.joinpath(*parts)

    def exists(self, name: str) -> bool:
        """Whether there is such a file."""
        return self.path(name).is_file()

    def names(self, folder: str) -> list[str]:
        """The JSON files of a folder, sorted, as names that ``read`` takes."""
        try:
            return sorted(f"{folder}/{entry.name}" for entry in self.path(folder).iterdir() if entry.suffix == ".json")
        except FileNotFoundError:
            return []

    def folders(self, folder: str) -> list[str]:
        """The folders in a folder, sorted, by their bare names."""
        try:
            return sorted(entry.name for entry in self.path(folder).iterdir() if entry.is_dir())
        except FileNotFoundError:
            return []

    def raw(self, name: str) -> bytes:
        """The bytes of a file. NotFound, or StoreError where it cannot be read."""
        try:
            return self.path(name).read_bytes()
        except FileNotFoundError as error:
            raise NotFound(f"{name} is not there", code="STORE-NOT-FOUND", remedy="Run the document first.") from error
        except OSError as error:
            raise _failed(name, error) from error

    def read(
        self, name: str, *, schema_version: int = 1, each: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    ) -> dict[str, Any]:
        """The JSON object of a file. NotFound; StoreError if it is torn or written by a newer evalkit.

        ``each`` is called with every object in the file as soon as it is read, and gives what takes its place.
        """
        try:
            with resting():
                value = json.loads(self.raw(name), object_hook=each)
            found = value["schema_version"]
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise StoreError(
                f"{name} is not one of evalkit's JSON files", code="STORE-TORN", remedy="Restore it from a backup."
            ) from error
        if not isinstance(found, int) or found > schema_version:
            raise StoreError(
                f"{name} has schema version {found!r}; this evalkit reads up to {schema_version}",
                code="STORE-NEWER",
                remedy="Install the evalkit that wrote it.",
            )
        return dict(value)

    def write(self, name: str, value: Any, *, compact: bool = False) -> None:
        """Write a JSON file whole or not at all, replacing what was there."""
        with self._temporary(name, value, compact=compact) as (temporary, target):
            os.replace(temporary, target)

    def create(self, name: str, value: Any) -> bool:
        """Write a new JSON file. False, and nothing changed, if there already is one of that name."""
        with self._temporary(name, value, compact=False) as (temporary, target):
            try:
                os.link(temporary, target)
            except FileExistsError:
                return False
            return True

    def remove(self, name: str) -> bool:
        """Remove a file; whether there was one."""
        path = self.path(name)
        try:
            path.unlink()
            _sync_folder(path.parent)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise _failed(name, error) from error
        return True

    @contextmanager
    def run_lock(self) -> Iterator[None]:
        """Hold the folder for one run. UsageError if another run holds it. Leftovers of killed runs are swept."""
        try:
            self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle = os.open(self.root / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise UsageError(
                f"the output folder {self.root} cannot be written ({error.strerror})",
                code="OUTPUT-FOLDER",
                remedy="Choose another with --output, or mend its rights.",
            ) from error
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise UsageError(
                    f"another run is writing to {self.root}",
                    code="OUTPUT-BUSY",
                    remedy="Wait until it has ended, or choose another folder with --output.",
                ) from error
            self._sweep()
            yield
        finally:
            os.close(handle)

    def _sweep(self) -> None:
        for leftover in (self.root / _SCRATCH).glob("*-*"):
            writer = leftover.name.partition("-")[0]
            if writer.isdecimal() and not _alive(int(writer)):
                leftover.unlink(missing_ok=True)

    @contextmanager
    def _temporary(self, name: str, value: Any, *, compact: bool) -> Iterator[tuple[Path, Path]]:
        """The value, written and synced under a temporary name in the same file system, and its target."""
        target = self.path(name)
        temporary = self.root / _SCRATCH / f"{os.getpid()}-{secrets.token_hex(8)}"
        text = (
            canonical(value) if compact else json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False).encode()
        )
        try:
            for folder in (temporary.parent, target.parent):
                _private_folder(folder, self.root)
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(text + b"\n")
                file.flush()
                os.fsync(file.fileno())
            yield temporary, target
            _sync_folder(target.parent)
        except OSError as error:
            raise _failed(name, error) from error
        finally:
            temporary.unlink(missing_ok=True)


def _private_folder(folder: Path, root: Path) -> None:
    if folder != root and not folder.is_dir():
        _private_folder(folder.parent, root)
    folder.mkdir(mode=0o700, parents=folder == root, exist_ok=True)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


def _failed(name: str, error: OSError) -> StoreError:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return StoreError(
        f"{name} could not be read or written ({error.strerror or type(error).__name__})",
        code="STORE-FULL" if full else "STORE-FAILED",
        remedy="Free some space and run again: what is finished is kept."
        if full
        else "Mend the folder's rights or choose another with --output.",
    )


_metadata = sa.MetaData()

_documents = sa.Table(
    "documents",
    _metadata,
    sa.Column("doc_id", sa.String, primary_key=True),
    sa.Column("sha256", sa.String, index=True),
    sa.Column("file_path", sa.String, index=True),
    sa.Column("processed_at", sa.String),
    sa.Column("fingerprint", sa.String),
    sa.Column("decision", sa.String),
    sa.Column("error_code", sa.String),
    sa.Column("replaced", sa.Boolean, nullable=False, default=False),
)

#: By what cases are told apart, beside their age: the name for the outside and the column.
_FACETS = {
    "severity": "told_severity",
    "dominant_type": "told_type",
    "agents": "told_agents",
    "review_reason": "review_reason",
    "source": "source",
    "kind": "kind",
}
#: Before a reviewer has answered a blind case, nothing may tell what the agent said about it.
_IS_HIDDEN = "is_blind = 1 AND review_status != 'completed'"

_cases = sa.Table(
    "cases",
    _metadata,
    sa.Column("case_id", sa.String, primary_key=True),
    sa.Column("doc_id", sa.String, index=True),
    sa.Column("kind", sa.String),
    sa.Column("pdf_filename", sa.String),
    sa.Column("pages", sa.Integer),
    sa.Column("blocker", sa.Integer),
    sa.Column("major", sa.Integer),
    sa.Column("minor", sa.Integer),
    sa.Column("decision_reason", sa.String),
    sa.Column("review_reason", sa.String),
    sa.Column("review_status", sa.String, index=True),
    # NULL in a row that an older evalkit wrote: what stands below is not known of it yet.
    sa.Column("created_at", sa.String),
    sa.Column("dominant_type", sa.String, nullable=False, server_default=""),
    sa.Column("agents", sa.String, nullable=False, server_default=""),
    sa.Column("source", sa.String, nullable=False, server_default=""),
    sa.Column("is_blind", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("barred", sa.String, nullable=False, server_default=""),
    # Of a seeded case the document whose pages it shows; else empty.
    sa.Column("shows", sa.String, nullable=False, server_default=""),
    # 0 waits or is open, 1 put off, 2 finished: the order of the queue.
    sa.Column(
        "standing",
        sa.Integer,
        sa.Computed("CASE review_status WHEN 'completed' THEN 2 WHEN 'deferred' THEN 1 ELSE 0 END"),
    ),
    # What the queue tells of the agent's answer; empty where it is hidden or not known.
    sa.Column("is_hidden", sa.Boolean, sa.Computed(_IS_HIDDEN)),
    sa.Column(
        "told_severity",
        sa.String,
        sa.Computed(
            f"CASE WHEN {_IS_HIDDEN} THEN '' WHEN blocker > 0 THEN 'BLOCKER' WHEN major > 0 THEN 'MAJOR' "
            "WHEN minor > 0 THEN 'MINOR' ELSE 'none' END"
        ),
    ),
    sa.Column(
        "told_type",
        sa.String,
        sa.Computed(
            f"CASE WHEN ({_IS_HIDDEN}) OR created_at IS NULL THEN '' "
            "WHEN dominant_type = '' THEN 'cannot tell' ELSE dominant_type END"
        ),
    ),
    sa.Column("told_agents", sa.String, sa.Computed(f"CASE WHEN {_IS_HIDDEN} THEN '' ELSE agents END")),
    sa.Index("ix_cases_worst", "review_status", sa.desc("blocker"), sa.desc("major"), sa.desc("minor"), "case_id"),
    sa.Index("ix_cases_listed", "standing", sa.desc("blocker"), sa.desc("major"), sa.desc("minor"), "case_id"),
    # All that the numbers beside the filters are counted from, in their order: nothing is sorted, no row is read.
    sa.Index("ix_cases_told", "standing", *_FACETS.values(), "created_at"),
)

_closings = sa.Table(
    "closings",
    _metadata,
    sa.Column("case_id", sa.String, primary_key=True),
    sa.Column("reviewer", sa.String, nullable=False, index=True),
    sa.Column("closed_at", sa.String, nullable=False, index=True),
    sa.Column("seconds_active", sa.Float),
)

_claims = sa.Table(
    "claims",
    _metadata,
    sa.Column("case_id", sa.String, primary_key=True),
    sa.Column("reviewer", sa.String, nullable=False),
    sa.Column("session", sa.String, nullable=False),
    sa.Column("since", sa.String, nullable=False),
    sa.Column("expires_at", sa.String, nullable=False),
)

# The tab is part of the key: two tabs of one person that are both open must not write over each other's work.
_drafts = sa.Table(
    "drafts",
    _metadata,
    sa.Column("case_id", sa.String, primary_key=True),
    sa.Column("reviewer", sa.String, primary_key=True),
    sa.Column("session", sa.String, primary_key=True),
    sa.Column("packet_sha256", sa.String, nullable=False),
    sa.Column("draft", sa.String, nullable=False),
    sa.Column("saved_at", sa.String, nullable=False),
)

_deferrals = sa.Table(
    "deferrals",
    _metadata,
    sa.Column("case_id", sa.String, primary_key=True),
    sa.Column("reviewer", sa.String, nullable=False),
    sa.Column("reason", sa.String, nullable=False),
    sa.Column("deferred_at", sa.String, nullable=False),
)

_calls = sa.Table(
    "calls",
    _metadata,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("question", sa.String, nullable=False, index=True),
    sa.Column("document", sa.String, nullable=False, index=True),
    sa.Column("role", sa.String, nullable=False),
    sa.Column("model", sa.String, nullable=False),
    sa.Column("asked_at", sa.String, nullable=False),
    sa.Column("seconds", sa.Float, nullable=False),
    sa.Column("answer", sa.String),
    sa.Column("failure", sa.String),
    sa.Column("input_tokens", sa.Integer, nullable=False),
    sa.Column("output_tokens", sa.Integer, nullable=False),
    sa.Column("cached_tokens", sa.Integer, nullable=False),
    sa.Column("thought_tokens", sa.Integer, nullable=False),
    sa.Column("cost_usd", sa.String),
    sqlite_autoincrement=True,
)

# A run that asks everything anew and was interrupted goes on with what it was answered since this call.
_fresh = sa.Table("fresh", _metadata, sa.Column("after", sa.Integer, primary_key=True))

#: What is said of a case in a table, in the order in which people read it; the index knows more, for ``CaseList``.
CASE_COLUMNS = (
    *("case_id", "doc_id", "kind", "pdf_filename", "pages", "blocker", "major", "minor"),
    *("decision_reason", "review_reason", "review_status"),
)


class Index:
    """``evalkit.sqlite``: which documents and cases there are. Rows are plain dicts by column name."""

    def __init__(self, root: Path | str) -> None:
        path = Path(root) / "evalkit.sqlite"
        try:
            if not path.exists():
                _new_database(path)
            self._engine = _engine(path)
            _prepare(self._engine)
        except (OSError, sa.exc.SQLAlchemyError) as error:
            raise StoreError(
                f"the index {path} cannot be opened ({type(error).__name__})",
                code="STORE-INDEX",
                remedy="Mend the folder's rights; if the file is damaged, delete it (open drafts and the paid answers of "
                "language models go with it) and run `evalkit reindex`.",
            ) from error
        self.case_list = CaseList(self._engine)
        self.claims = Claims(self._engine)
        self.drafts = Drafts(self._engine)
        self.deferrals = Deferrals(self._engine)
        self.calls = Calls(self._engine)

    def close(self) -> None:
        """Give the database file back."""
        self._engine.dispose()

    @contextmanager
    def together(self) -> Iterator[None]:
        """What this thread does with the database inside is one transaction: one sync of the disk instead of many."""
        with _transaction(self._engine) as connection:
            joined = _joined.set(connection)
            try:
                yield
            finally:
                _joined.reset(joined)

    def documents(self) -> list[dict[str, Any]]:
        """All documents, sorted by doc_id."""
        return self._rows(sa.select(_documents).order_by(_documents.c.doc_id))

    def cases(self, *statuses: str) -> list[dict[str, Any]]:
        """The cases of these review statuses (all, where none is named), strictly worst first: ``CASE_COLUMNS``."""
        query = sa.select(*(_cases.c[name] for name in CASE_COLUMNS)).order_by(*_WORST_FIRST)
        return self._rows(query.where(_cases.c.review_status.in_(statuses)) if statuses else query)

    def put_document(self, row: dict[str, Any]) -> None:
        """Insert or replace a document's row; an older document from the same path is marked replaced."""
        with _transaction(self._engine) as connection:
            connection.execute(
                sa.update(_documents)
                .where(_documents.c.file_path == row["file_path"], _documents.c.doc_id != row["doc_id"])
                .values(replaced=True)
            )
            _replace(connection, _documents, row)

    def put_case(self, row: dict[str, Any]) -> None:
        """Insert a case's row, or change what is named of it."""
        putting = insert(_cases).values(**row).on_conflict_do_update(index_elements=[_cases.c.case_id], set_=row)
        with _transaction(self._engine) as connection:
            connection.execute(putting)

    def set_status(self, case_id: str, status: str) -> None:
        """Change a case's ``review_status``, and nothing else of its row."""
        with _transaction(self._engine) as connection:
            connection.execute(sa.update(_cases).where(_cases.c.case_id == case_id).values(review_status=status))

    def drop_case(self, case_id: str) -> None:
        """Forget a case that was withdrawn, and that it was put off."""
        with _transaction(self._engine) as connection:
            connection.execute(sa.delete(_cases).where(_cases.c.case_id == case_id))
            connection.execute(sa.delete(_deferrals).where(_deferrals.c.case_id == case_id))

    def put_closing(self, case_id: str, reviewer: str, closed_at: str, seconds_active: float | None = None) -> None:
        """Note who closed a case, when, and how long it took (None: not measured); a case's newest review counts."""
        row = {"case_id": case_id, "reviewer": reviewer, "closed_at": closed_at, "seconds_active": seconds_active}
        with _transaction(self._engine) as connection:
            _replace(connection, _closings, row)

    def drop_closing(self, case_id: str) -> None:
        """Forget that a case was closed: it was reopened."""
        with _transaction(self._engine) as connection:
            connection.execute(sa.delete(_closings).where(_closings.c.case_id == case_id))

    def closed(self, *, since: str = "", reviewer: str | None = None) -> int:
        """How many cases are closed, at or after ``since``, by ``reviewer`` if one is named."""
        query = sa.select(sa.func.count()).select_from(_closings).where(_closings.c.closed_at >= since)
        if reviewer is not None:
            query = query.where(_closings.c.reviewer == reviewer)
        with _transaction(self._engine) as connection:
            return connection.execute(query).scalar_one()

    def seconds_active(self, reviewer: str, *, since: str = "") -> list[float]:
        """How long each case took that the reviewer closed at or after ``since``, as far as it was measured."""
        row = _closings.c
        query = sa.select(row.seconds_active).where(
            row.reviewer == reviewer, row.closed_at >= since, row.seconds_active > 0
        )
        with _transaction(self._engine) as connection:
            return list(connection.execute(query).scalars())

    def rebuild(
        self,
        documents: Sequence[dict[str, Any]],
        cases: Sequence[dict[str, Any]],
        closings: Sequence[dict[str, Any]] | None = None,
    ) -> None:
        """Replace all rows at once, those of closed cases only if they are given; other tables are left alone."""
        with _transaction(self._engine) as connection:
            for table, rows in ((_documents, documents), (_cases, cases), (_closings, closings)):
                if rows is None:
                    continue
                connection.execute(sa.delete(table))
                for row in rows:
                    connection.execute(sa.insert(table).values(**row))

    def _rows(self, query: sa.Select[Any]) -> list[dict[str, Any]]:
        with _transaction(self._engine) as connection:
            return [dict(row) for row in connection.execute(query).mappings()]


_FINISHED = 2  # of ``standing``

_WORST_FIRST = (*(_cases.c[name].desc() for name in ("blocker", "major", "minor")), _cases.c.case_id)
_FILE_NAME = sa.func.folded(_cases.c.pdf_filename)
_ORDERS: dict[str, tuple[sa.ColumnElement[Any], ...]] = {
    "worst": _WORST_FIRST,
    "oldest": (_cases.c.created_at.asc().nulls_last(), *_WORST_FIRST),
    "newest": (_cases.c.created_at.desc().nulls_last(), *_WORST_FIRST),
    "name": (_FILE_NAME, *_WORST_FIRST),
    "pages": (_cases.c.pages, *_WORST_FIRST),
}


@dataclass(frozen=True)
class Moments:
    """The present, as a queue sees it (ISO 8601, UTC)."""

    now: str
    day_ago: str
    week_ago: str


class CaseList:
    """The queue of cases, read a page at a time. Which statuses are listed is the caller's choice."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    def by_status(self) -> dict[str, int]:
        """How many cases there are of each review status."""
        status = _cases.c.review_status
        with _transaction(self._engine) as connection:
            found = connection.execute(sa.select(status, sa.func.count()).group_by(status)).all()
        return {row[0]: row[1] for row in found}

    def groups(
        self, at: Moments, *, is_finished_shown: bool, search: str = "", reader: str | None = None
    ) -> list[dict[str, Any]]:
        """How many cases (``count``) there are of each combination of ``severity`` (of the worst open issue, or none),
        ``dominant_type`` (or ``cannot tell``), ``agents`` (joined by commas), ``review_reason``, ``source``, ``kind``
        and ``age`` (day, week, older). What a blind case must not tell yet is empty. A combination comes more than once
        where some of its cases wait and others do not.

        ``search`` is a part of a file name or case id, whatever its case; all of it is taken as it stands. What
        ``reader`` must not read yet, because a seeded case about the same document may come to them, is left out.
        """
        facets = [_cases.c[column].label(name) for name, column in _FACETS.items()]
        ages = _ages(at)
        query = (
            sa.select(*facets, *(sa.func.count().filter(age) for age in ages.values()))
            .where(*_listed(is_finished_shown, search, reader))
            .group_by(_cases.c.standing, *(_cases.c[column] for column in _FACETS.values()))
        )
        with _transaction(self._engine) as connection:
            return [
                {**dict(zip(_FACETS, row, strict=False)), "age": age, "count": count}
                for row in connection.execute(query)
                for age, count in zip(ages, row[len(_FACETS) :], strict=True)
                if count
            ]

    def page(
        self,
        at: Moments,
        *,
        is_finished_shown: bool,
        search: str = "",
        reader: str | None = None,
        facets: Mapping[str, str],
        order: str,
        limit: int,
        offset: int,
    ) -> list[dict[str, Any]]:
        """Some of the cases, by column name, each with the facets, ``holder``, ``session`` and ``since`` of its claim,
        and with who put it off (``deferred_by``) and why (``deferred_because``).

        ``facets`` are values by the names of ``groups``; of ``agents`` it names one. ``order`` is ``worst``,
        ``oldest``, ``newest``, ``name`` or ``pages`` (the fewest first); deferred cases come after those that wait,
        and completed ones last.
        """
        claim = _claims.c
        plain = [column for column in _cases.columns if column.computed is None and column.name not in _FACETS]
        query = (
            sa.select(
                *plain,
                *(_cases.c[column].label(name) for name, column in _FACETS.items()),
                _cases.c.is_hidden,
                claim.reviewer.label("holder"),
                claim.session,
                claim.since,
                _deferrals.c.reviewer.label("deferred_by"),
                _deferrals.c.reason.label("deferred_because"),
            )
            .outerjoin(_claims, sa.and_(claim.case_id == _cases.c.case_id, claim.expires_at > at.now))
            .outerjoin(_deferrals, _deferrals.c.case_id == _cases.c.case_id)
            .where(*_listed(is_finished_shown, search, reader), *(_has(*facet, at) for facet in facets.items()))
            .order_by(_cases.c.standing, *_ORDERS[order])
            .limit(limit)
            .offset(offset)
        )
        with _transaction(self._engine) as connection:
            return [dict(row) for row in connection.execute(query).mappings()]

    def worst(self, *, kinds: Sequence[str], barred: str, reasons: Sequence[str] | None = None) -> str | None:
        """The worst case of these kinds, and reasons if any are named, that waits and that ``barred`` may do."""
        row = _cases.c
        query = (
            sa.select(row.case_id)
            .where(row.review_status == "pending", row.kind.in_(kinds), sa.not_(_names(row.barred, barred)))
            .order_by(*_WORST_FIRST)
            .limit(1)
        )
        if reasons is not None:
            query = query.where(row.review_reason.in_(reasons))
        with _transaction(self._engine) as connection:
            return connection.execute(query).scalar()

    def contradicting_claims(self, now: str) -> list[str]:
        """The cases that say ``in_review`` without a claim that lives at ``now``, or wait although there is one."""
        status = _cases.c.review_status
        live = sa.select(_claims.c.case_id).where(_claims.c.expires_at > now)
        left = sa.select(_cases.c.case_id).where(status == "in_review", _cases.c.case_id.not_in(live))
        hidden = sa.select(_cases.c.case_id).where(status.in_(("pending", "deferred")), _cases.c.case_id.in_(live))
        with _transaction(self._engine) as connection:
            return list(connection.execute(left.union(hidden)).scalars())

    def unknown(self, limit: int) -> list[str]:
        """The worst of the open cases whose row an older evalkit wrote, without half of what it holds now."""
        query = (
            sa.select(_cases.c.case_id)
            .where(_cases.c.created_at.is_(None), _cases.c.review_status != "completed")
            .order_by(*_WORST_FIRST)
            .limit(limit)
        )
        with _transaction(self._engine) as connection:
            return list(connection.execute(query).scalars())


def _listed(is_finished_shown: bool, search: str, reader: str | None) -> Iterator[sa.ColumnElement[bool]]:
    yield _cases.c.standing <= (_FINISHED if is_finished_shown else _FINISHED - 1)
    if reader is not None and is_finished_shown:
        seeded = _cases.alias("seeded").c
        waits = sa.and_(seeded.shows != "", seeded.review_status != "completed", sa.not_(_names(seeded.barred, reader)))
        answers = sa.select(seeded.shows).where(waits)
        yield sa.or_(_cases.c.review_status != "completed", _cases.c.doc_id.not_in(answers))
    if search:
        wanted = folded(search)
        yield sa.or_(*(sa.func.instr(text, wanted) > 0 for text in (_FILE_NAME, sa.func.folded(_cases.c.case_id))))


def _ages(at: Moments) -> dict[str, sa.ColumnElement[bool]]:
    """What it means to be of each age. Cases are counted by these: to group by an age would sort them all."""
    made = _cases.c.created_at
    return {
        "": made.is_(None),
        "day": made >= at.day_ago,
        "week": sa.and_(made >= at.week_ago, made < at.day_ago),
        "older": made < at.week_ago,
    }


def _has(facet: str, value: str, at: Moments) -> sa.ColumnElement[bool]:
    if facet == "age":
        return _ages(at)[value]
    column = _cases.c[_FACETS[facet]]
    return _names(column, value) if facet == "agents" else column == value


def _names(joined: sa.ColumnElement[Any], name: str) -> sa.ColumnElement[bool]:
    """Whether the name is one of those that are joined by commas."""
    return sa.func.instr("," + joined + ",", f",{name},") > 0


def folded(text: str | None) -> str:
    """A text as it is compared in a search: capitals and ways to write an accent make no difference."""
    return unicodedata.normalize("NFC", text or "").casefold()


@dataclass(frozen=True)
class Claim:
    """Who has a case open: one reviewer in one browser tab."""

    case_id: str
    reviewer: str
    session: str
    """The tab's id; it survives a reload of the tab."""
    since: str
    expires_at: str
    """From this moment on anybody may take the case."""


class Claims:
    """Who has which case open. At most one claim per case lives; one whose time is up counts for nothing."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    def take(self, wanted: Claim, *, now: str, take_over: bool = False) -> Claim:
        """The claim on the case that stands afterwards: the wanted one, unless another's lives.

        One statement compares and takes, so of several threads or processes exactly one gets a free case. Its own tab
        renews a claim, which keeps its ``since``; ``take_over`` takes it from whoever has it.
        """
        row = _claims.c
        is_live = row.expires_at > now
        is_own = sa.and_(row.reviewer == wanted.reviewer, row.session == wanted.session)
        since = sa.case((sa.and_(is_own, is_live), row.since), else_=wanted.since)
        taking = insert(_claims).values(**asdict(wanted))
        taken = taking.on_conflict_do_update(
            index_elements=[row.case_id],
            set_={**asdict(wanted), "since": since},
            where=sa.true() if take_over else sa.or_(is_own, sa.not_(is_live)),
        ).returning(_claims)
        with _transaction(self._engine) as connection:
            # Where the statement took nothing, the transaction still holds the writer's lock: the other stays.
            found = (
                connection.execute(taken).mappings().first()
                or connection.execute(sa.select(_claims).where(row.case_id == wanted.case_id)).mappings().one()
            )
            return Claim(**found)

    def live(self, now: str, case_id: str | None = None) -> dict[str, Claim]:
        """The claims that live, by case_id; of one case, if it is named."""
        query = sa.select(_claims).where(_claims.c.expires_at > now)
        if case_id is not None:
            query = query.where(_claims.c.case_id == case_id)
        with _transaction(self._engine) as connection:
            return {row["case_id"]: Claim(**row) for row in connection.execute(query).mappings()}

    def drop(self, case_id: str, *, reviewer: str | None = None, session: str | None = None) -> bool:
        """End the claim on a case, if it is this reviewer's or tab's where one is named; whether there was one."""
        query = sa.delete(_claims).where(_claims.c.case_id == case_id)
        if reviewer is not None:
            query = query.where(_claims.c.reviewer == reviewer)
        if session is not None:
            query = query.where(_claims.c.session == session)
        with _transaction(self._engine) as connection:
            return connection.execute(query).rowcount > 0


@dataclass(frozen=True)
class StoredDraft:
    """What a reviewer has said about a case in one tab and not submitted yet."""

    case_id: str
    reviewer: str
    session: str
    packet_sha256: str
    """The packet that was on the screen."""
    draft: str
    """JSON. It is about a patient."""
    saved_at: str


class Drafts:
    """Unsubmitted work. On disk before ``put`` returns; it needs no claim and outlives one."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    def put(self, draft: StoredDraft) -> None:
        """Insert or replace the draft of that case, reviewer and tab."""
        putting = insert(_drafts).values(**asdict(draft))
        keys = [column.name for column in _drafts.primary_key.columns]
        with _transaction(self._engine) as connection:
            connection.execute(putting.on_conflict_do_update(index_elements=keys, set_=asdict(draft)))

    def newest(self, case_id: str, reviewer: str, session: str) -> StoredDraft | None:
        """The reviewer's newest draft of the case from any tab; of equally new ones that of ``session``."""
        row = _drafts.c
        query = (
            sa.select(_drafts)
            .where(row.case_id == case_id, row.reviewer == reviewer)
            .order_by(row.saved_at.desc(), sa.desc(row.session == session), row.session)
        )
        with _transaction(self._engine) as connection:
            found = connection.execute(query).mappings().first()
        return None if found is None else StoredDraft(**found)

    def drop(self, case_id: str, reviewer: str, session: str, *, until: str) -> None:
        """Remove the tab's draft of the case, and those of the reviewer's other tabs saved up to ``until``."""
        row = _drafts.c
        query = sa.delete(_drafts).where(
            row.case_id == case_id,
            row.reviewer == reviewer,
            sa.or_(row.session == session, row.saved_at <= until),
        )
        with _transaction(self._engine) as connection:
            connection.execute(query)


@dataclass(frozen=True)
class Deferral:
    """Who has put off a case, and why."""

    case_id: str
    reviewer: str
    reason: str
    """The reviewer's words, for whoever takes the case next."""
    deferred_at: str


class Deferrals:
    """Cases that somebody has put off. A deferral outlives claims; it ends with the case's next review."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    def put(self, deferral: Deferral) -> None:
        """Insert or replace a case's deferral."""
        with _transaction(self._engine) as connection:
            _replace(connection, _deferrals, asdict(deferral))

    def of(self, case_id: str) -> Deferral | None:
        """The deferral of a case, if it was put off."""
        query = sa.select(_deferrals).where(_deferrals.c.case_id == case_id)
        with _transaction(self._engine) as connection:
            found = connection.execute(query).mappings().first()
        return None if found is None else Deferral(**found)

    def all(self) -> dict[str, Deferral]:
        """All deferrals, by case_id."""
        with _transaction(self._engine) as connection:
            return {row["case_id"]: Deferral(**row) for row in connection.execute(sa.select(_deferrals)).mappings()}

    def drop(self, case_id: str) -> None:
        """End the deferral of a case, if there is one."""
        with _transaction(self._engine) as connection:
            connection.execute(sa.delete(_deferrals).where(_deferrals.c.case_id == case_id))


@dataclass(frozen=True)
class Call:
    """One call of a language model."""

    question: str
    """SHA-256 of all that the model was sent, and of its name: equal ones are the same question."""
    document: str
    """SHA-256 of the document that it was about."""
    role: str
    model: str
    asked_at: str
    seconds: float
    answer: str | None
    """What the model wrote, whole; it quotes the document. None where no whole answer came."""
    failure: str | None
    """The code of what went wrong; None where the answer could be used."""
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    thought_tokens: int
    cost_usd: str | None
    """A decimal number; None where nobody knows the price."""


class Calls:
    """The journal of calls: what was asked is on disk before its answer is used."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    def add(self, call: Call) -> None:
        """Append it."""
        with _transaction(self._engine) as connection:
            connection.execute(sa.insert(_calls).values(**vars(call)))

    def of(self, question: str, *, after: int = 0) -> list[Call]:
        """The calls of that question, oldest first; only those behind number ``after``."""
        row = _calls.c
        query = sa.select(_calls).where(row.question == question, row.number > after).order_by(row.number)
        with _transaction(self._engine) as connection:
            found = connection.execute(query).mappings().all()
        return [Call(**{name: value for name, value in one.items() if name != "number"}) for one in found]

    def begin_fresh(self) -> int:
        """The number of the newest call when the fresh run began that has not ended yet; one begins, if none has."""
        with _transaction(self._engine) as connection:
            begun = connection.execute(sa.select(_fresh.c.after)).scalar()
            if begun is None:
                begun = connection.execute(sa.select(sa.func.max(_calls.c.number))).scalar() or 0
                connection.execute(sa.insert(_fresh).values(after=begun))
            return int(begun)

    def end_fresh(self) -> None:
        """No fresh run is under way any more."""
        with _transaction(self._engine) as connection:
            connection.execute(sa.delete(_fresh))


def _engine(path: Path) -> sa.Engine:
    """The database: waits 30 s for other writers, and keeps values, which may be a patient's, out of its errors."""
    engine = sa.create_engine(f"sqlite:///{path}", connect_args={"timeout": 30}, hide_parameters=True)
    sa.event.listen(engine, "connect", _connected)
    return engine


def _connected(connection: Any, _record: object) -> None:
    # What is called saved must outlive a power cut; WAL alone syncs only now and then.
    connection.execute("PRAGMA synchronous=FULL")
    connection.create_function("folded", 1, folded, deterministic=True)


def _new_database(path: Path) -> None:
    """Put an empty database there, private, unless somebody else just did.

    It is made under another name: of two that switch a new database to WAL at once, SQLite fails one; and closing the
    file that others have open already would take their locks away.
    """
    temporary = path.parent / _SCRATCH / f"{os.getpid()}-{secrets.token_hex(8)}"
    _private_folder(temporary.parent, path.parent)
    os.close(os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    try:
        engine = _engine(temporary)
        _prepare(engine)
        engine.dispose()
        with suppress(FileExistsError):
            os.link(temporary, path)
        _sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def _prepare(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        connection.exec_driver_sql("PRAGMA journal_mode=WAL")
        # MetaData.create_all looks first and creates then: of two that add a table at once, one would fail.
        for table in _metadata.sorted_tables:
            connection.execute(CreateTable(table, if_not_exists=True))
        if _missing(connection):
            connection.exec_driver_sql("BEGIN IMMEDIATE")  # of two that open an older database, one adds the columns
            for column in _missing(connection):
                described = CreateColumn(column).compile(dialect=connection.dialect)
                connection.exec_driver_sql(f"ALTER TABLE {column.table.name} ADD COLUMN {described}")
        for table in _metadata.sorted_tables:
            for index in table.indexes:
                connection.execute(CreateIndex(index, if_not_exists=True))


def _missing(connection: sa.Connection) -> list[sa.Column[Any]]:
    """The columns that the database of an older evalkit lacks; it has its rows and keeps them."""
    there = {
        table.name: {row[1] for row in connection.exec_driver_sql(f"PRAGMA table_xinfo({table.name})")}
        for table in _metadata.sorted_tables
    }
    return [
        column for table in _metadata.sorted_tables for column in table.columns if column.name not in there[table.name]
    ]


_joined: ContextVar[sa.Connection | None] = ContextVar("joined", default=None)


@contextmanager
def _transaction(engine: sa.Engine) -> Iterator[sa.Connection]:
    """All of it or nothing, on disk when it ends. StoreError where the database cannot be read or written."""
    joined = _joined.get()
    if joined is not None and joined.engine is engine:
        yield joined
        return
    try:
        with engine.begin() as connection:
            yield connection
    except sa.exc.SQLAlchemyError as error:
        raise StoreError(
            f"the database of the output folder could not be read or written ({type(error).__name__})",
            code="STORE-INDEX",
            remedy="Nothing of it was saved: free some space or mend the folder's rights, then try again.",
        ) from error


def _replace(connection: sa.Connection, table: sa.Table, row: dict[str, Any]) -> None:
    key = next(iter(table.primary_key.columns))
    connection.execute(sa.delete(table).where(key == row[key.name]))
    connection.execute(sa.insert(table).values(**row))
