"""Purging: a patient's document goes, and everything that was made of it; what stays is digests.

``purged/0001.json``, ``0002.json`` …: one record each, never changed, chained by hash. A record has no name and no word of
the document: its SHA-256, and of each review that there was the SHA-256 of its bytes, the one that it was chained to, who
submitted it, when and with what outcome. So a chain that was purged still verifies, one that somebody has removed does
not, and a later run of the same bytes is told.

What is being purged stands in ``purging.json`` until all is done: killed midway, the next purge finishes it first.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path, PurePath
from typing import Any, Literal

from evalkit.batch.identity import Found
from evalkit.batch.lists import Lists
from evalkit.errors import NotFound, StoreError, UsageError
from evalkit.frozen import Frozen
from evalkit.review.ground_truth import Review, newest_revision, read_review, review_sha256, revisions, status_after
from evalkit.review.lock import writing
from evalkit.review.packet import ADJUDICATION, EXTRACTION, SECOND, base_of
from evalkit.review.roles import Role
from evalkit.review.seeded import seeded_cases
from evalkit.statements.record import STATEMENT_TEMPLATE
from evalkit.store import (
    BUNDLES,
    DRAWS,
    EXTRACTIONS,
    GROUND_TRUTH,
    MOVED,
    PACKETS,
    PURGED,
    PURGING,
    RESULTS,
    REVIEWS,
    TEMPLATE_REVIEWS,
    TEMPLATES,
    Files,
    Index,
    bundle_name,
    extraction_name,
    ground_truth_name,
    packet_name,
    purged_name,
    result_name,
    review_name,
    seeded_name,
    shaped,
    template_name,
)

SCHEMA_VERSION = 2
"""With the reviewers' roles."""

_SETTLED = 60
"""Seconds after which what was written and has no name yet never will have one: nobody else writes meanwhile."""
_AT_ONCE = 200
"""Documents that are taken out of the lists in one go: each of them has a row for every document that there is."""
_SAID = (REVIEWS, GROUND_TRUTH, DRAWS, TEMPLATES, TEMPLATE_REVIEWS)
"""Where somebody may have named a document in their own words."""


class PurgedReview(Frozen):
    """What stays of a review."""

    revision: int
    sha256: str
    """Of the bytes of its file."""
    prev_sha256: str | None
    """Of the review before it, as its file said; None for the first, or where its file could not be read."""
    packet_sha256: str | None = None
    reviewer: str | None = None
    submitted_at: str | None = None
    outcome: str | None = None
    seconds_active: float | None = None
    versions: dict[str, str] = {}
    role: Role | None = None
    """What the reviewer was then; None where it is not known."""
    seeded: bool = False
    """Whether it was of a case with a planted fault."""


class PurgedChain(Frozen):
    """What stays of the reviews of one case."""

    case: str
    """What its name has behind the document's: nothing, ``.extraction``, ``.second``, ``-1a2b3c4d`` …"""
    reviews: tuple[PurgedReview, ...]


class PurgedDraw(Frozen):
    """That the document could have been drawn, and with what probability."""

    draw: int
    probability: float
    was_drawn: bool


class PurgeRecord(Frozen):
    """One purge: ``purged/NNNN.json``."""

    schema_version: int = SCHEMA_VERSION
    sha256: str | None
    """Of the document; None where its bytes never could be read."""
    purged_at: str
    """When (ISO 8601, UTC)."""
    chains: tuple[PurgedChain, ...]
    draws: tuple[PurgedDraw, ...]
    prev_sha256: str | None
    """Of the bytes of the record before this one; None for the first."""


class _Intent(Frozen):
    """``purging.json``: what a purge has begun with. The one place that still names the document, and the last to go."""

    schema_version: int = SCHEMA_VERSION
    doc_id: str | None
    """None: the files are gone, and only the database's file is still to be written anew."""
    sha256: str | None = None
    cases: tuple[str, ...] = ()
    number: int = 0
    """Of the record."""
    listed: tuple[str, ...] = ()
    """Documents that were purged before it, and still stand in the lists of many."""
    purged_at: str = ""


@dataclass(frozen=True)
class Purged:
    """What a purge removed."""

    doc_id: str
    sha256: str | None
    files: tuple[str, ...]
    """The files below the output folder that are gone."""
    rows: Mapping[str, int]
    """Rows of the database, by table; of ``production`` and ``draws`` entries of those files."""
    reviews: int
    """How many reviews left their digests."""
    was_open: tuple[str, ...]
    """Who had one of its cases open; they are told when they save."""
    stays: tuple[str, ...]
    """A sentence for each thing that was left and may be about the document."""

    def to_json(self) -> dict[str, Any]:
        """For a program."""
        return {
            "doc_id": self.doc_id,
            "sha256": self.sha256,
            "files": list(self.files),
            "rows": dict(self.rows),
            "reviews": self.reviews,
            "was_open": list(self.was_open),
            "stays": list(self.stays),
        }


@dataclass(frozen=True)
class Expired:
    """The documents that are old enough to go."""

    finished: tuple[str, ...]
    """Those of which no case waits, sorted."""
    waiting: tuple[str, ...]
    """Those that somebody is still to decide about, sorted: they stay until then, or until they are named."""
    unreadable: tuple[str, ...] = ()
    """Those of which a review cannot be read, sorted: they stay until it is restored, or until they are named."""


def purge(
    output: Path | str,
    doc_ids: Iterable[str],
    *,
    purged_at: str,
    old: Iterable[str] = (),
    before: datetime | None = None,
) -> list[Purged]:
    """Remove documents and all that was made of them; what was removed, a purge that was killed before first.

    ``purged_at`` is ISO 8601 in UTC. ``old`` are documents that were ``expired`` by ``before``: when it is its turn, one
    that somebody has reopened since stays. NotFound for a document of which there is nothing; UsageError where a run is
    writing; StoreError where something could not be removed, or a reader of the database held it up: the same call goes on
    from there.
    """
    files = Files(output)
    with files.run_lock(), Index(output) as index:
        folder = _Folder.read(files, index)
        done = [*_finished(folder)]
        wanted = [one for one in dict.fromkeys(doc_ids) if one not in {had.doc_id for had in done}]
        for doc_id in wanted:  # a slip of the pen is told before anything is gone
            folder.require_there(doc_id)
        limits: dict[str, datetime | None] = dict.fromkeys(wanted)
        limits |= {one: before for one in old if before and one not in limits}
        if limits:
            done += _purged(folder, limits, purged_at)
        if done:
            done = _with_stays(folder, done)
            # Only now: killed before, the last of them is purged again, and what stays of it is told.
            files.write(PURGING, _Intent(doc_id=None).model_dump(mode="json"))
        if files.exists(PURGING) and not index.erasure.scrub():
            raise StoreError(
                "the files are gone, but somebody was reading the database: its log may still have their words",
                code="PURGE-BUSY",
                remedy="End what else uses the folder, and purge again: without a name it finishes what is left.",
            )
        files.remove(PURGING)
    return done


def _purged(folder: _Folder, limits: Mapping[str, datetime | None], purged_at: str) -> Iterator[Purged]:
    """Purge those of these documents that may go: all, or where there is a limit those that are finished and older."""
    files = folder.files
    lists, number = Lists(files), len(records(files))
    listed: list[str] = []
    for doc_id, limit in limits.items():
        # Nobody may submit, draft, open or reopen anything from the question whether it may go until it is gone.
        with writing(files):
            cases = folder.about(doc_id)
            if limit is not None and folder.standing(doc_id, cases, limit) != "finished":
                continue
            number += 1
            intent = _Intent(
                doc_id=doc_id,
                sha256=folder.identity(doc_id),
                cases=cases,
                number=number,
                purged_at=purged_at,
                listed=tuple(listed),
            )
            files.write(PURGING, intent.model_dump(mode="json"))
            made = _carried_out(folder, lists, intent)
        yield made
        listed.append(doc_id)
        if len(listed) == _AT_ONCE:
            lists.take_out(listed)
            listed.clear()
    lists.take_out(listed)


def is_begun(output: Path | str) -> bool:
    """Whether a purge was killed, and is to be finished."""
    return Files(output).exists(PURGING)


def removable(output: Path | str, doc_ids: Iterable[str]) -> dict[str, list[str]]:
    """The files that ``purge`` would remove, sorted, by document. NotFound as there."""
    files = Files(output)
    with Index(output) as index:
        folder = _Folder.read(files, index)
        return {doc_id: sorted(_present(folder, doc_id)) for doc_id in doc_ids}


def _present(folder: _Folder, doc_id: str) -> Iterator[str]:
    cases = folder.require_there(doc_id)
    return filter(folder.files.exists, (*folder.own_files(doc_id, folder.identity(doc_id), cases), MOVED))


def expired(output: Path | str, *, before: datetime) -> Expired:
    """The documents of which nothing was made or said since that moment, as their files note it, by whether a case waits."""
    files = Files(output)
    with Index(output) as index:
        folder = _Folder.read(files, index)
        doc_ids = folder.doc_ids()
        found = {doc_id: folder.standing(doc_id, folder.about(doc_id), before) for doc_id in doc_ids}
    kinds = ("finished", "waiting", "unreadable")
    return Expired(**{kind: tuple(one for one in doc_ids if found[one] == kind) for kind in kinds})


def recorded(output: Path | str) -> list[str]:
    """The documents that are there again although they were purged: a backup that is older than the purge was restored.

    One that was let in again on purpose, and so was written after its purge, is none of them.
    """
    files = Files(output)
    purged = {one.sha256: datetime.fromisoformat(one.purged_at) for one in records(files) if one.sha256}
    with Index(output) as index:
        folder = _Folder.read(files, index)
        # Of what was never read, or cannot be, nobody knows which document it is.
        there = {doc_id: purged[sha256] for doc_id in folder.doc_ids() if (sha256 := folder.identity(doc_id)) in purged}
        return [doc_id for doc_id, purged_at in there.items() if folder.is_older(doc_id, purged_at)]


def records(files: Files) -> list[PurgeRecord]:
    """All records of purges, oldest first. StoreError for a damaged one, for one that is lost, and for one that is none."""
    return [_read_record(files, name) for name in files.numbered(PURGED, purged_name)]


def _read_record(files: Files, name: str) -> PurgeRecord:
    return shaped(PurgeRecord, files.read(name, schema_version=SCHEMA_VERSION), name, "Restore it from a backup.")


def without_purged(files: Files, found: Found, known: Iterable[str], *, even_purged: bool = False) -> Found:
    """What was found, without the documents that were purged; each of them is a problem that says so.

    ``known`` are the SHA-256 of documents that are there: one that was let in again after its purge stays in.
    ``even_purged`` lets all in but the one whose purge is not finished.
    """
    purged: dict[str | None, str] = {}
    if not even_purged:
        there = set(known)
        purged = {one.sha256: one.purged_at for one in records(files) if one.sha256 not in there}
    if files.exists(PURGING):
        intent = _read_intent(files)
        purged[intent.sha256] = intent.purged_at
    purged.pop(None, None)
    gone = [one for one in found.sources if one.sha256 in purged]
    return replace(
        found,
        sources=tuple(one for one in found.sources if one.sha256 not in purged),
        problems=(*found.problems, *(_was_purged(one.path, purged[one.sha256]) for one in gone)),
    )


def _was_purged(path: Path, at: str) -> UsageError:
    return UsageError(
        f"{path.name} was purged on {at[:10]}, and is left out",
        code="DOCUMENT-PURGED",
        remedy="Take the file away; if it is to be processed again, say so with --even-purged.",
    )


# ------------------------------------------------------------------------------------------------ what there is


@dataclass(frozen=True)
class _Folder:
    """An output folder, with what is in it of all documents read once for however many are asked about.

    Under the run lock that holds until its end: runs, draws, planted faults and templates, which add documents and cases,
    take it too. All that experts begin beside it are further opinions.
    """

    files: Files
    index: Index
    documents: Mapping[str, Mapping[str, Any]]
    """The rows of the index, by document, as they were at first: what is purged stays in here."""
    own: Mapping[str, list[str]]
    """The case_ids by the part before the first dot, which is the document's name or a seeded case's."""
    seeded: Mapping[str, list[str]]
    """By document."""
    templates: Mapping[str, list[str]]
    """By the document that a template was tried on: these cases bear the template's name."""

    @classmethod
    def read(cls, files: Files, index: Index) -> _Folder:
        own, seeded, templates = defaultdict(list), defaultdict(list), defaultdict(list)
        for case_id in files.folders(REVIEWS):
            own[case_id.partition(".")[0]].append(case_id)
        for folder, prefix in ((PACKETS, "sme_packet_"), (GROUND_TRUTH, "gt_")):
            for name in files.names(folder):
                case_id = PurePath(name).name.removeprefix(prefix).removesuffix(".json")
                own[case_id.partition(".")[0]].append(case_id)
                if base_of(case_id).endswith(STATEMENT_TEMPLATE):
                    doc_id = _stored(files, name).get("doc_id")
                    if isinstance(doc_id, str):
                        templates[doc_id].append(case_id)
        for case_id, doc_id in seeded_cases(files):
            seeded[doc_id].append(case_id)
        return cls(files, index, {row["doc_id"]: row for row in index.documents()}, own, seeded, templates)

    @cached_property
    def cycles(self) -> Mapping[str, list[str]]:
        """The reviews of templates, by the SHA-256 of the statement that the template was tried on."""
        found = defaultdict(list)
        for template_id in self.files.folders(TEMPLATE_REVIEWS):
            for name in self.files.names(f"{TEMPLATE_REVIEWS}/{template_id}"):
                sha256 = _stored(self.files, name).get("statement_sha256")
                if isinstance(sha256, str):
                    found[sha256].append(name)
        return found

    def doc_ids(self) -> list[str]:
        """All documents of which there is anything but what people said, sorted: of statements only the bundle is there."""
        names = (name for folder in (RESULTS, EXTRACTIONS, BUNDLES) for name in self.files.names(folder))
        return sorted({*self.documents, *(PurePath(name).stem for name in names)})

    def noted_last(self, doc_id: str, otherwise: datetime) -> datetime:
        """When the newest of what was made of a document was, by what its files and the index say of their making.

        The files' own times say less: a folder that is copied, or restored from a backup, is all new.
        """
        made = (result_name(doc_id), extraction_name(doc_id), *self.cycles.get(self.identity(doc_id) or "", ()))
        told = [_stored(self.files, name).get("times") for name in made]
        told.append({"processed_at": self.documents.get(doc_id, {}).get("processed_at")})
        noted = [at for times in told for at in _moments(times)]
        if not noted:  # of a statement that was read, and not compared with its template
            noted = [*_moments({"read": _stored(self.files, bundle_name(doc_id)).get("processing_timestamp")})]
        return max(noted, default=otherwise)

    def is_older(self, doc_id: str, than: datetime) -> bool:
        """Whether all that was made of a document is older; where no file notes it, whether all that was said of it is.

        False where neither can be told, because somebody's review cannot be read.
        """
        noted = self.noted_last(doc_id, otherwise=_NEVER)
        if noted > _NEVER:
            return noted < than
        try:
            reviews = self._newest(self.about(doc_id))
        except StoreError:
            return False
        return all(datetime.fromisoformat(one.submitted_at) < than for one in reviews if one)

    def standing(
        self, doc_id: str, every: Iterable[str], before: datetime
    ) -> Literal["finished", "waiting", "young", "unreadable"]:
        """Whether a document with these cases is old enough to go, and if so whether it may."""
        files = self.files
        names = (result_name(doc_id), extraction_name(doc_id), bundle_name(doc_id))
        written = [at for name in names if (at := files.written_at(name)) is not None]
        # Of what was purged meanwhile nothing is old.
        if not written or self.noted_last(doc_id, datetime.fromtimestamp(max(written), UTC)) >= before:
            return "young"
        try:
            last = self._newest(every)
        except StoreError:
            return "unreadable"  # nobody knows when it was closed
        if any(datetime.fromisoformat(one.submitted_at) >= before for one in last if one):
            return "young"
        return "finished" if all(status_after(one) == "completed" for one in last) else "waiting"

    def _newest(self, every: Iterable[str]) -> list[Review | None]:
        """The newest review of each of these cases that is there; None where it has none. StoreError."""
        files = self.files
        cases = [one for one in every if files.exists(packet_name(one))]
        return [read_review(files, one, number) if (number := newest_revision(files, one)) else None for one in cases]

    def about(self, doc_id: str) -> tuple[str, ...]:
        """The case_ids of everything that people were or could be asked about the document.

        With the further opinions on each, whether there are any: one may come at any time, and of one that was withdrawn
        the database still has what was said in it.
        """
        seeded = {*self.seeded.get(doc_id, ()), *self.index.erasure.seeded_cases(doc_id)}
        own = (case_id for name in (doc_id, *seeded) for case_id in self.own.get(name, ()))
        known = {doc_id, doc_id + EXTRACTION, *seeded, *own, *self.templates.get(doc_id, ())}
        return tuple(sorted({base_of(one) + ending for one in known for ending in ("", SECOND, ADJUDICATION)}))

    def require_there(self, doc_id: str) -> tuple[str, ...]:
        """The document's cases. NotFound where there is nothing of it."""
        if re.fullmatch(r"[A-Za-z0-9_-]+", doc_id):
            cases = self.about(doc_id)
            if doc_id in self.documents or any(map(self.files.exists, self.own_files(doc_id, None, cases))):
                return cases
        raise NotFound(
            f"there is no document {doc_id!r}",
            code="PURGE-NOT-FOUND",
            remedy="Name it as `evalkit run` does: the file's name without its ending. All its cases go with it.",
        )

    def own_files(self, doc_id: str, sha256: str | None, cases: Iterable[str]) -> Iterator[str]:
        """The names of all files that are about the document; some may not be there.

        In the order in which they may go: a seeded case's packet would be made again from its record, and results are
        looked up in bundles.
        """
        every = tuple(cases)
        yield from map(seeded_name, every)
        yield from map(packet_name, every)
        yield from (review_name(one, revision) for one in every for revision in revisions(self.files, one))
        yield from map(ground_truth_name, every)
        yield from (extraction_name(doc_id), result_name(doc_id), bundle_name(doc_id))
        if sha256 is not None:
            yield from self.cycles.get(sha256, ())

    def identity(self, doc_id: str) -> str | None:
        """The document's SHA-256, from whatever still knows it."""
        if (row := self.documents.get(doc_id)) and row["sha256"]:
            return str(row["sha256"])
        for name in (result_name(doc_id), extraction_name(doc_id), bundle_name(doc_id)):
            found = _stored(self.files, name).get("sha256")
            if isinstance(found, str):
                return found
        return None


def _stored(files: Files, name: str) -> Mapping[str, Any]:
    """What a file has; nothing, where it cannot be read: `audit verify` names it."""
    try:
        return files.read(name, schema_version=_ANY_VERSION)
    except StoreError:
        return {}


def _moments(times: object) -> Iterator[datetime]:
    """Those that a file has under ``times``."""
    for text in times.values() if isinstance(times, Mapping) else ():
        with suppress(TypeError, ValueError):
            if (at := datetime.fromisoformat(text)).tzinfo is not None:
                yield at


_NEVER = datetime.min.replace(tzinfo=UTC)
_ANY_VERSION = 1 << 31
"""What a newer evalkit wrote is purged too."""


# ---------------------------------------------------------------------------------------------- what is done


def _read_intent(files: Files) -> _Intent:
    return shaped(
        _Intent, files.read(PURGING, schema_version=SCHEMA_VERSION), PURGING, "Remove it, and purge the document again."
    )


def _finished(folder: _Folder) -> Iterator[Purged]:
    """What a purge that was killed had begun with, done to the end."""
    files = folder.files
    if not files.exists(PURGING):
        return
    intent = _read_intent(files)
    doc_id = intent.doc_id
    if doc_id is None:
        return
    with writing(files):
        # A case that came since is written down too: its packet, by which it is found, is the first to go.
        cases = tuple(sorted({*intent.cases, *folder.about(doc_id)}))
        intent = intent.model_copy(update={"cases": cases})
        files.write(PURGING, intent.model_dump(mode="json"))
        lists = Lists(files)
        done = _carried_out(folder, lists, intent)
    lists.take_out((doc_id, *intent.listed))
    yield done


def _carried_out(folder: _Folder, lists: Lists, intent: _Intent) -> Purged:
    """What the intent says, done but for the lists, which are written for many documents at once; for whoever has the
    writers' turn. What stays is not looked for yet.
    """
    files, index = folder.files, folder.index
    doc_id, cases = intent.doc_id or "", intent.cases
    live = index.claims.live(intent.purged_at)
    was_open = tuple(f"{live[one].reviewer} had {one} open" for one in cases if one in live)
    # Without their packets nothing more can be said in these cases: what the record has is all that there was.
    removed = [name for name in (*map(seeded_name, cases), *map(packet_name, cases)) if files.remove(name)]
    if not files.exists(purged_name(intent.number)):
        files.create(purged_name(intent.number), _record(files, lists, intent).model_dump(mode="json"))
    for case_id in cases:
        removed += files.remove_folder(f"{REVIEWS}/{case_id}")
    removed += [name for name in (*folder.own_files(doc_id, intent.sha256, cases), MOVED) if files.remove(name)]
    names = {one: f"{intent.sha256 or f'purge-{intent.number}'}{_ending(doc_id, one)}" for one in cases}
    rows = lists.entries(doc_id) | index.erasure.erase(doc_id, cases, intent.sha256, names)
    files.sweep(time.time() - _SETTLED)
    record = _read_record(files, purged_name(intent.number))
    kept = sum(len(chain.reviews) for chain in record.chains)
    return Purged(doc_id, intent.sha256, tuple(sorted(removed)), rows, kept, was_open, stays=())


def _record(files: Files, lists: Lists, intent: _Intent) -> PurgeRecord:
    doc_id = intent.doc_id or ""
    before = intent.number - 1
    chains = ((one, tuple(_digests(files, one))) for one in intent.cases)
    return PurgeRecord(
        sha256=intent.sha256,
        purged_at=intent.purged_at,
        chains=tuple(PurgedChain(case=_ending(doc_id, one), reviews=found) for one, found in chains if found),
        draws=tuple(
            PurgedDraw(draw=number, probability=one.probability[doc_id], was_drawn=doc_id in one.drawn)
            for number, one in lists.strata_of(doc_id)
        ),
        prev_sha256=hashlib.sha256(files.raw(purged_name(before))).hexdigest() if before else None,
    )


def _ending(doc_id: str, case_id: str) -> str:
    """What a case's name has behind the document's. Templates bear a name of their own, which may be a patient's too."""
    return case_id.removeprefix(doc_id) if case_id.startswith(doc_id) else case_id[len(case_id.partition(".")[0]) :]


def _digests(files: Files, case_id: str) -> Iterator[PurgedReview]:
    for revision in revisions(files, case_id):
        sha256 = review_sha256(files, case_id, revision)
        try:
            review = read_review(files, case_id, revision)
        except StoreError:  # a damaged review goes as well, and its chain does not verify
            yield PurgedReview(revision=revision, sha256=sha256, prev_sha256=None)
            continue
        yield PurgedReview(
            revision=revision,
            sha256=sha256,
            prev_sha256=review.prev_sha256,
            packet_sha256=review.packet_sha256,
            reviewer=review.reviewer,
            submitted_at=review.submitted_at,
            outcome=review.outcome,
            seconds_active=review.seconds_active,
            versions=review.versions,
            role=review.role,
            seeded=review.seeded,
        )


# ------------------------------------------------------------------------------------------------ what stays


def _with_stays(folder: _Folder, done: Sequence[Purged]) -> list[Purged]:
    """What was purged, each with a sentence for everything that is left and may be about it."""
    files, gone = folder.files, {one.doc_id for one in done}
    paths = {one: str(row["file_path"]) for one, row in folder.documents.items() if row["file_path"] is not None}
    sharing = defaultdict(list)
    for doc_id, path in paths.items():
        if doc_id not in gone:
            sharing[path].append(doc_id)
    mentions = _mentions(files, {one: PurePath(paths[one]).name if one in paths else None for one in gone})
    return [
        replace(one, stays=(*_stays(files, one.doc_id, paths.get(one.doc_id), sharing), *mentions[one.doc_id]))
        for one in done
    ]


def _stays(files: Files, doc_id: str, path: str | None, sharing: Mapping[str, list[str]]) -> Iterator[str]:
    if path is not None:
        yield f"the PDF itself, {path}: only what is below the output folder was removed"
        for other in sharing.get(path, ()):
            yield f"document {other}, which was read from the same path: purge it too if it is the same patient's"
    if isinstance(files.root, str):
        yield "what the bucket keeps of objects that were removed (versions, soft delete, replicas): remove it there"
    if files.exists(template_name(doc_id)):
        yield f"{template_name(doc_id)}, a bank's wording under the document's name: remove it if nobody needs it"


def _mentions(files: Files, filenames: Mapping[str, str | None]) -> Mapping[str, list[str]]:
    """By document what somebody names it in, a sentence each; all is read once. ``filenames`` has each one's PDF."""
    sought = {one: json.dumps(name, ensure_ascii=False)[1:-1].encode() for one, name in filenames.items() if name}
    names = {one.encode(): one for one in filenames}
    found: dict[str, list[str]] = {one: [] for one in filenames}
    for folder in _SAID:
        for name, content in files.contents(folder):
            named = {names[one] for one in _words(content) & names.keys()}
            for doc_id in named | {one for one, filename in sought.items() if filename in content}:
                found[doc_id].append(f"{name}, in which somebody names the document: look at it")
    return found


def _words(content: bytes) -> set[bytes]:
    r"""What a JSON file has that may be a document's name: no part of another, and a plain word in quotes only.

    >>> sorted(_words(b'{"notes": "see:\\nscan_2 or my scan-3", "of": "scan"}'))
    [b'notes', b'of', b'scan', b'scan-3', b'scan_2']
    """
    names = {one for one in _NAMES.findall(content) if one and not _PLAIN.fullmatch(one)}
    return names | {*_QUOTED.findall(content)}


#: The letter of an escape is no part of the name that follows it.
_NAMES = re.compile(rb"\\[\\bfnrt]|([A-Za-z0-9_-]+)")
_PLAIN, _QUOTED = re.compile(rb"[a-z]+"), re.compile(rb'(?<=")[a-z]+(?=")')
