"""Integrity: whether everything in the output folder still is what machines and people left there.

Reviews are chained by SHA-256, packets are named in them by theirs, ground truth follows from reviews: what was changed,
exchanged or taken out does not fit any more, and is named with its file and what mends it. The newest review of a case,
which no other is chained to, is vouched for by the database. What `purge` removed fits: its record has the digests. Nothing
here is signed: who may write files and database can forge all of it. An export of the decisions that is kept elsewhere
shows that too (``against``).
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path, PurePath
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter

from evalkit.batch.draws import draws
from evalkit.batch.labels import stored_production
from evalkit.batch.purge import records
from evalkit.classification.result import DocumentResult
from evalkit.classification.v5_arbiter import Decision
from evalkit.errors import EvalkitError, StoreError, UsageError
from evalkit.regular import read_regular
from evalkit.review.ground_truth import (
    Review,
    if_readable,
    is_as_saved,
    newest_revision,
    numbered,
    review_sha256,
    silver,
    silver_fields,
)
from evalkit.review.lock import writing
from evalkit.review.opinions import Opinions
from evalkit.review.packet import EXTRACTION, SMEPacket, base_of, packet_digest, read_packet, to_json
from evalkit.review.queue import case_ids
from evalkit.review.roster import Roster
from evalkit.review.seeded import read_seeded, seeded_cases
from evalkit.review.stored import read_bundle, read_extractions, read_result
from evalkit.store import (
    BUNDLES,
    DRAWS,
    EXTRACTIONS,
    GROUND_TRUTH,
    PACKETS,
    PRODUCTION,
    PURGED,
    PURGING,
    RESULTS,
    REVIEWS,
    ROSTER,
    SEEDED,
    Files,
    Head,
    Index,
    bundle_name,
    ground_truth_name,
    packet_name,
    purged_name,
    result_name,
    review_name,
    seeded_name,
)

_FOLDERS = (BUNDLES, RESULTS, PACKETS, REVIEWS, GROUND_TRUTH, EXTRACTIONS, SEEDED, DRAWS, PURGED)
_BACKUP = "Restore it from a backup: it is never changed."
_REINDEX = "`evalkit reindex` makes it again from the reviews."


@dataclass(frozen=True)
class Fault:
    """One thing that is not as it was left."""

    file: str
    """Relative to the output folder."""
    what: str
    remedy: str


@dataclass(frozen=True)
class Checked:
    """What was looked at, and what is wrong with it."""

    counts: Mapping[str, int]
    """How many reviews, cases, results … there are; of how many chains the database does not know the newest review, so
    that nothing vouches for it: `evalkit reindex` notes them, as they are then."""
    faults: tuple[Fault, ...]

    def to_json(self) -> dict[str, Any]:
        """For a program."""
        return {"counts": dict(self.counts), "faults": [vars(one) for one in self.faults]}


def verify(output: Path | str, *, against: Path | None = None) -> Checked:
    """Look at every file; experts may work meanwhile. ``against`` is an earlier ``audit export`` as JSON.

    UsageError where that cannot be read.
    """
    files = Files(output)
    with Index(output) as index:
        faults = [fault for check in _CHECKS for fault in check(files, index)]
        heads = {head.case_id for head in index.heads.all()}
        if against is not None:
            faults += _missing(files, index, against)
    chains = files.folders(REVIEWS)
    counts = {
        "results": len(files.names(RESULTS)),
        "cases": len(case_ids(files)),
        "chains": len(chains),
        "chains_without_head": sum(one not in heads for one in chains),
        "reviews": sum(len(files.names(f"{REVIEWS}/{one}")) for one in chains),
        "ground_truth": len(files.names(GROUND_TRUTH)),
        "seeded": len(files.names(SEEDED)),
        "draws": len(files.names(DRAWS)),
        "purged": len(files.names(PURGED)),
    }
    return Checked(counts, tuple(faults))


def _told(name: str, look: Callable[[], Iterable[Fault]]) -> Iterator[Fault]:
    """What the look finds; a file that cannot be read is a fault itself."""
    try:
        yield from look()
    except EvalkitError as error:
        yield Fault(name, error.message, error.remedy)


# -------------------------------------------------------------------------------------------------- documents


def _documents(files: Files, _index: Index) -> Iterator[Fault]:
    for name in files.names(RESULTS):
        yield from _told(name, partial(_document, files, PurePath(name).stem))
    for name in files.names(EXTRACTIONS):
        yield from _told(name, partial(_extracted, files, name))


def _document(files: Files, doc_id: str) -> Iterator[Fault]:
    name = result_name(doc_id)
    result = read_result(files, doc_id)
    if result.doc_id != doc_id:
        yield Fault(name, "it is about another document", "Run the document with --fresh.")
    if not isinstance(result, DocumentResult):
        return
    if result.decision is Decision.ESCALATE_TO_SME and not files.exists(packet_name(doc_id)):
        yield Fault(
            packet_name(doc_id), "its document goes to a person, and it is not there", "Run the document again."
        )
    bundle = read_bundle(files, doc_id)
    if (bundle.doc_id, bundle.sha256) != (doc_id, result.sha256):
        yield Fault(bundle_name(doc_id), "it is another document than the result is about", "Run it with --fresh.")


def _extracted(files: Files, name: str) -> Iterator[Fault]:
    if read_extractions(files, PurePath(name).stem).doc_id != PurePath(name).stem:
        yield Fault(name, "it is about another document", "Extract the document with --fresh.")


# ---------------------------------------------------------------------------------------------------- reviews


def _reviews(files: Files, _index: Index) -> Iterator[Fault]:
    for case_id in files.folders(REVIEWS):
        with writing(files, case_id):
            yield from list(_told(f"{REVIEWS}/{case_id}", partial(_chain, files, case_id)))


def _chain(files: Files, case_id: str) -> Iterator[Fault]:
    files.numbered(f"{REVIEWS}/{case_id}", partial(review_name, case_id))
    chain = numbered(files, case_id)
    before = None
    for revision, review in chain:
        name = review_name(case_id, revision)
        if review.prev_sha256 != before:
            said = (
                "the first one has none before it"
                if revision == 1
                else f"{review_name(case_id, revision - 1)} is another"
            )
            yield Fault(name, f"it does not follow the review before it: {said}", f"Restore both. {_BACKUP}")
        before = review_sha256(files, case_id, revision)
    yield from _told(packet_name(case_id), partial(_reviewed, files, case_id, chain))


def _reviewed(files: Files, case_id: str, chain: list[tuple[int, Review]]) -> Iterator[Fault]:
    packet = read_packet(files, case_id)
    seen = packet_digest(packet)
    for revision, review in chain:
        if review.packet_sha256 != seen:
            yield Fault(packet_name(case_id), f"it is not what review {revision} was given on", _BACKUP)
        if review.seeded != packet.is_seeded:
            yield Fault(
                review_name(case_id, revision), "it and its packet differ in whether a fault was planted", _BACKUP
            )


# ----------------------------------------------------------------------------------------------- ground truth


def _truths(files: Files, _index: Index) -> Iterator[Fault]:
    known = {*case_ids(files), *files.folders(REVIEWS)}
    given = {PurePath(name).name.removeprefix("gt_").removesuffix(".json") for name in files.names(GROUND_TRUTH)}
    accepted = {PurePath(name).stem for name in files.names(RESULTS)}
    for case_id in sorted({base_of(one) for one in known} | given | accepted):
        with writing(files, case_id):
            yield from list(_told(ground_truth_name(case_id), partial(_truth, files, case_id)))


def _truth(files: Files, case_id: str) -> Iterator[Fault]:
    name = ground_truth_name(case_id)
    stored = if_readable(files, name)
    if stored is None and files.exists(name):
        yield Fault(name, "it cannot be read", _REINDEX)
        return
    if newest_revision(files, case_id):
        record = Opinions.read(files, case_id).record()
        if stored != (record and record.model_dump(mode="json")):
            yield Fault(name, "it is not what the reviews say", _REINDEX)
    elif stored is not None and stored.get("ground_truth_source") != "AUTO_ACCEPTED":
        yield Fault(name, "it claims an expert's word, and no review gives it", "Restore the reviews from a backup.")
    else:
        yield from _silver(files, case_id, stored)


def _silver(files: Files, case_id: str, stored: Mapping[str, Any] | None) -> Iterator[Fault]:
    """Whether what nobody looked at is what the machine accepted."""
    name, doc_id = ground_truth_name(case_id), case_id.removesuffix(EXTRACTION)
    again = "Run the document with --fresh."
    if case_id != doc_id:
        if stored is None:
            return
        fields = silver_fields(read_extractions(files, doc_id), accepted_at=_any_of(stored)[0])
        if stored != fields.model_dump(mode="json"):
            yield Fault(name, "it is not what was extracted", again)
        return
    result = read_result(files, doc_id) if files.exists(result_name(doc_id)) else None
    is_accepted = isinstance(result, DocumentResult) and result.decision is Decision.AUTO_ACCEPT
    if is_accepted != (stored is not None):
        yield Fault(name, "it is not what was accepted", again)
    elif isinstance(result, DocumentResult) and stored is not None:
        at, probability = _any_of(stored)
        if stored != silver(result, accepted_at=at, inclusion_probability=probability).model_dump(mode="json"):
            yield Fault(name, "it is not what was accepted", again)


def _any_of(stored: Mapping[str, Any]) -> tuple[str, float | None]:
    """What a silver record alone knows: when it was accepted, and with what probability it could have been drawn."""
    probability = stored.get("inclusion_probability")
    is_one = isinstance(probability, float) and 0 <= probability <= 1
    return str(stored.get("reviewed_at")), probability if is_one else None


# ------------------------------------------------------------------------------------------ what else there is


def _packets(files: Files, _index: Index) -> Iterator[Fault]:
    planted = {case_id for case_id, _ in seeded_cases(files)}
    for name in files.names(SEEDED):
        if PurePath(name).stem not in planted:
            yield Fault(name, "it is no seeded case's", "Move it elsewhere.")
    for case_id in case_ids(files):
        with writing(files, case_id):
            yield from list(_told(packet_name(case_id), partial(_packet, files, case_id, case_id in planted)))


def _packet(files: Files, case_id: str, is_planted: bool) -> Iterator[Fault]:
    packet = read_packet(files, case_id)
    if packet.is_seeded and not is_planted:
        yield Fault(seeded_name(case_id), "it is gone, and its case is there", "Restore it from a backup.")
    elif is_planted:
        yield from _told(seeded_name(case_id), partial(_planted, files, case_id, packet))
    elif packet.kind == "classification" and case_id == packet.doc_id and not newest_revision(files, case_id):
        yield from _told(result_name(case_id), partial(_asked, files, packet))


def _asked(files: Files, packet: SMEPacket) -> Iterator[Fault]:
    """Whether what nobody has answered yet is what was decided: no review vouches for it so far.

    Of a run that found the case open the packet is older than the result, and stays what that person saw.
    """
    result = read_result(files, packet.doc_id)
    if not isinstance(result, DocumentResult) or packet.created_at != result.times.get("finished_at"):
        return
    is_same = (
        (packet.classification, packet.v5_decision) == (result.classification, result.decision)
        and (packet.decision_rule, packet.decision_reason) == (result.decision_rule, result.decision_reason)
        and {one.issue_id: one for one in packet.issues} == {one.issue_id: one for one in result.issues}
    )
    if not is_same:
        yield Fault(packet_name(packet.case_id), "it is not what was decided", "Run the document with --fresh.")


def _planted(files: Files, case_id: str, packet: SMEPacket) -> Iterator[Fault]:
    drawn = read_seeded(files, case_id).packet
    if to_json(drawn) != to_json(packet) | {"review_status": drawn.review_status}:
        yield Fault(packet_name(case_id), f"it is not what {seeded_name(case_id)} says", _BACKUP)


def _lists(files: Files, _index: Index) -> Iterator[Fault]:
    yield from _told(DRAWS, partial(_drawn, files))
    yield from _told(PRODUCTION, partial(_readable, partial(stored_production, files)))
    yield from _told(ROSTER, partial(_readable, Roster(files).names))


def _readable(read: Callable[[], object]) -> tuple[Fault, ...]:
    read()
    return ()


def _drawn(files: Files) -> Iterator[Fault]:
    for number, draw in enumerate(draws(files), 1):
        names = {doc_id for one in draw.strata for doc_id in one.probability}
        if lost := sorted(one for one in names if not files.exists(result_name(one))):
            what = f"{len(lost)} documents that draw {number} could have drawn have no result, such as {lost[0]}"
            yield Fault(
                result_name(lost[0]), what, "Restore it from a backup; `evalkit purge` takes documents out of draws."
            )


def _links(files: Files, _index: Index) -> Iterator[Fault]:
    for name in files.links():
        yield Fault(name, "it is a link", "Put what it leads to in its place.")


def _purges(files: Files, _index: Index) -> Iterator[Fault]:
    if files.exists(PURGING):
        yield Fault(PURGING, "a purge was begun and is not finished", "`evalkit purge` without a name finishes it.")
    yield from _told(PURGED, partial(_purged, files))


def _purged(files: Files) -> Iterator[Fault]:
    before = None
    for number, record in enumerate(records(files), 1):
        name = purged_name(number)
        if record.prev_sha256 != before:
            yield Fault(name, "it does not follow the record before it", f"Restore both. {_BACKUP}")
        before = hashlib.sha256(files.raw(name)).hexdigest()
        for chain in record.chains:
            numbers = [one.revision for one in chain.reviews]
            links = [left.sha256 == right.prev_sha256 for left, right in pairwise(chain.reviews)]
            if numbers != list(range(1, len(numbers) + 1)) or chain.reviews[0].prev_sha256 or not all(links):
                what = f"the chain of the purged case '{chain.case}' did not verify when it was purged, or was changed since"
                yield Fault(name, what, _BACKUP)


def _newest(files: Files, index: Index) -> Iterator[Fault]:
    """No later review vouches for the newest one; the database noted its digest when it was saved."""
    for case_id in [head.case_id for head in index.heads.all()]:
        with writing(files, case_id):
            # As it is now: a purge may have been here since.
            if head := index.heads.of(case_id):
                yield from list(_told(review_name(case_id, head.revision), partial(_saved, files, head)))


def _saved(files: Files, head: Head) -> Iterator[Fault]:
    if not is_as_saved(files, head):
        name = review_name(head.case_id, head.revision)
        yield Fault(name, "it is not the review that was saved, or is gone", _BACKUP)


def _strays(files: Files, _index: Index) -> Iterator[Fault]:
    chains = (f"{REVIEWS}/{case_id}" for case_id in files.folders(REVIEWS))
    for folder in (*_FOLDERS, *chains):
        for name in files.strays(folder):
            yield Fault(f"{folder}/{name}", "evalkit has not written it, and passes it over", "Move it elsewhere.")


_CHECKS: tuple[Callable[[Files, Index], Iterator[Fault]], ...] = (
    _documents,
    _reviews,
    _truths,
    _packets,
    _lists,
    _links,
    _purges,
    _newest,
    _strays,
)


class _Exported(BaseModel):
    """Of an export's event what does not change, whatever is purged later."""

    model_config = ConfigDict(strict=True)

    event: str
    at: str | None
    who: str | None
    case_id: str | None
    document_sha256: str | None
    revision: int | None
    sha256: str | None


_EXPORT = TypeAdapter(list[_Exported])


def _missing(files: Files, index: Index, against: Path) -> Iterator[Fault]:
    """What an earlier export has, and that is not there any more: reviews that were not purged, purges, openings."""
    try:
        rows = _EXPORT.validate_python(json.loads(read_regular(against))["events"])
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise UsageError(
            f"{against} is no export of decisions ({type(error).__name__})",
            code="AUDIT-AGAINST",
            remedy="Give a file that `evalkit audit export --to FILE.json` wrote.",
        ) from None
    try:
        purges = records(files)
    except StoreError:  # `_purges` names it
        purges = []
    purged = {one.sha256 for record in purges for chain in record.chains for one in chain.reviews}
    for row in rows:
        if row.event == "reviewed" and row.sha256 not in purged and not _is_there(files, row):
            what = f"review {row.revision} is not the one that was exported, or is gone"
            yield Fault(f"{REVIEWS}/{row.case_id}", what, _BACKUP)
    recorded = {(one.sha256, one.purged_at) for one in purges}
    for row in rows:
        if row.event == "purged" and (row.document_sha256, row.at) not in recorded:
            yield Fault(PURGED, f"the purge of {row.at} that was exported has no record any more", _BACKUP)
    # By who and when: of a purged document, the case has another name since.
    opened = Counter((row.who, row.at) for row in rows if row.event == "opened")
    if lost := (opened - Counter((one.reviewer, one.opened_at) for one in index.views.all())).total():
        yield Fault("the view log", f"{lost} of the openings that were exported are gone", "Restore the database.")


def _is_there(files: Files, row: _Exported) -> bool:
    """Whether an exported review still is what it was."""
    try:
        return review_sha256(files, row.case_id or "", row.revision or 0) == row.sha256
    except EvalkitError:
        return False
