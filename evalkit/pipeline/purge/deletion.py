"""Deletion of documents in steps, which an interrupted purge can continue.

Production's labels, the draws and the records of runs list many documents: they are read once and written once for many purged documents.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime

from evalkit.errors import StoreError
from evalkit.pipeline.purge.folder_contents import FolderContents
from evalkit.pipeline.purge.purge_record import (
    PurgedAnswer,
    PurgedChain,
    PurgedDraw,
    PurgedReview,
    PurgeIntent,
    PurgeRecord,
    is_purge_unfinished,
    read_intent,
    read_purge_records,
    save_intent,
)
from evalkit.pipeline.purge.remaining_traces import PurgedDocument, add_remaining_traces
from evalkit.pipeline.purge.selection import assess_expiry
from evalkit.pipeline.run_history import read_run_records, remove_from_record, save_run_record
from evalkit.pipeline.sample_draws import Draw, Stratum, read_all_draws
from evalkit.pipeline.supplied_labels import read_stored_production_labels
from evalkit.review import get_attention_check_file_name, hold_case_write_lock, list_revisions, open_index, read_review
from evalkit.review.ground_truth import hash_review_file
from evalkit.store import (
    MOVED_SQLITE_FILE,
    PRODUCTION_LABELS_FILE,
    PURGE_INTENT_FILE,
    REVIEWS_FOLDER,
    LocalOutputFolder,
    OutputFolder,
    OutputIndex,
    packet_file_name,
    purge_record_file_name,
    read_record,
    sample_draw_file_name,
)

#: Seconds after which a temporary file counts as left behind by a killed process: nobody else writes meanwhile.
_ORPHAN_AGE_SECONDS = 60
#: Number of documents that are removed from the labels and draws at once: each of these files lists every document.
_REGISTRY_BATCH_SIZE = 200


def purge(
    output_folder: OutputFolder,
    doc_ids: Iterable[str],
    *,
    purged_at: str,
    expired_ids: Iterable[str] = (),
    expired_before: datetime | None = None,
    read_answer: Callable[[str], PurgedAnswer | None] = lambda _doc_id: None,
) -> list[PurgedDocument]:
    """Delete documents and everything derived from them; report what was removed.

    With a mail, the files attached to it are deleted too.
    A killed purge is finished first. ``purged_at`` is ISO 8601 in UTC. ``expired_ids`` are what
    ``find_expired_documents`` found for ``expired_before``; a document that was reopened since is kept. ``read_answer``
    returns what the record keeps of a document's answer. NotFound for a
    document of which nothing exists; UsageError if a run is writing; StoreError if something could not be removed, or a
    reader of the database prevented it: the same call continues.
    """
    with (
        output_folder.hold_run_lock(),
        # An unfinished purge explains why the index differs from the files: nothing is to be corrected or restored.
        OutputIndex(output_folder) if is_purge_unfinished(output_folder) else open_index(output_folder) as index,
    ):
        contents = FolderContents.read(output_folder, index)
        intent = read_intent(output_folder) if is_purge_unfinished(output_folder) else PurgeIntent(doc_id=None)
        purged_ids = [doc_id for doc_id in intent.listed if not contents.has_document(doc_id)]  # not imported again
        purged_documents = [*_finish_interrupted_purge(contents, intent, purged_ids)]
        limit_by_doc_id: dict[str, datetime | None] = {}
        for doc_id in contents.add_attached_doc_ids(doc_ids):  # a mistyped name is reported before anything is deleted
            if doc_id not in purged_ids:
                contents.require_document_case_ids(doc_id)
                limit_by_doc_id[doc_id] = None
        limit_by_doc_id |= {
            candidate_id: expired_before
            for candidate_id in expired_ids
            if expired_before and candidate_id not in limit_by_doc_id
        }
        if limit_by_doc_id:
            purged_documents += _purge_documents(contents, limit_by_doc_id, purged_at, purged_ids, read_answer)
        if purged_documents:
            purged_documents = add_remaining_traces(contents, purged_documents)
            # Only now: if killed earlier, the next purge purges the last document again and reports its traces.
            save_intent(output_folder, PurgeIntent(doc_id=None, listed=tuple(purged_ids)))
        if is_purge_unfinished(output_folder) and not index.vacuum():
            raise StoreError(
                "the files are deleted, but the database was being read: its log may still contain the document's text",
                code="PURGE-BUSY",
                remedy="End other processes that use the folder, and run `evalkit purge` without a name to finish.",
            )
        output_folder.changes.record_end()  # only the intent makes it possible to finish later
        output_folder.remove_file(PURGE_INTENT_FILE)
    return purged_documents


def _purge_documents(
    contents: FolderContents,
    expiry_limit_by_doc_id: Mapping[str, datetime | None],
    purged_at: str,
    purged_ids: list[str],
    read_answer: Callable[[str], PurgedAnswer | None],
) -> Iterator[PurgedDocument]:
    """Purge documents and append them to ``purged_ids``.

    One with a time limit is purged only if it is finished and older.
    """
    output_folder = contents.output_folder
    registries, record_number = SharedFiles(contents), len(read_purge_records(output_folder))
    for doc_id, time_limit in expiry_limit_by_doc_id.items():
        # Nobody may submit, draft, open or reopen anything between the decision and the deletion.
        with hold_case_write_lock(output_folder):
            case_ids = contents.list_possible_case_ids(doc_id)
            if time_limit is not None and assess_expiry(contents, doc_id, case_ids, time_limit) != "finished":
                continue
            record_number += 1
            intent = PurgeIntent(
                doc_id=doc_id,
                sha256=contents.find_sha256(doc_id),
                cases=case_ids,
                number=record_number,
                purged_at=purged_at,
                listed=tuple(purged_ids),
                answer=read_answer(doc_id),
            )
            save_intent(output_folder, intent)
            purged_document = _execute_purge(contents, registries, intent)
        yield purged_document
        purged_ids.append(doc_id)
        if len(purged_ids) % _REGISTRY_BATCH_SIZE == 0:
            registries.rewrite_files_without_documents(purged_ids)
    registries.rewrite_files_without_documents(purged_ids)


def map_purge_file_names_by_doc_id(output_folder: OutputFolder, doc_ids: Iterable[str]) -> dict[str, list[str]]:
    """Map each document to the files that ``purge`` would remove, sorted.

    NotFound if nothing of a document exists.
    """
    with open_index(output_folder, read_only=True) as index:
        contents = FolderContents.read(output_folder, index)
        possible_files_by_doc_id = {
            doc_id: contents.list_possible_document_files(
                doc_id, contents.find_sha256(doc_id), contents.require_document_case_ids(doc_id)
            )
            for doc_id in doc_ids
        }
        return {
            doc_id: sorted(filter(output_folder.has_file, (*possible_files, MOVED_SQLITE_FILE)))
            for doc_id, possible_files in possible_files_by_doc_id.items()
        }


def _finish_interrupted_purge(
    contents: FolderContents, intent: PurgeIntent, purged_ids: list[str]
) -> Iterator[PurgedDocument]:
    """Purge the document whose purge was interrupted, and append it to ``purged_ids``."""
    output_folder, doc_id = contents.output_folder, intent.doc_id
    if doc_id is None:
        return
    with hold_case_write_lock(output_folder):
        # A case added since the kill is recorded too: its packet, by which it is found, is removed first.
        case_ids = tuple(sorted({*intent.cases, *contents.list_possible_case_ids(doc_id)}))
        intent = intent.model_copy(update={"cases": case_ids})
        save_intent(output_folder, intent)
        registries = SharedFiles(contents)
        purged_document = _execute_purge(contents, registries, intent)
    purged_ids.append(doc_id)
    registries.rewrite_files_without_documents(purged_ids)
    yield purged_document


def _execute_purge(contents: FolderContents, registries: SharedFiles, intent: PurgeIntent) -> PurgedDocument:
    """Delete the intent's document and report it; files that list many stay unchanged.

    Files that list many documents are rewritten for all of them at once. The caller holds the write lock, and looks for remaining
    traces.
    """
    output_folder, index = contents.output_folder, contents.index
    doc_id, case_ids = intent.doc_id or "", intent.cases
    claim_by_case = index.claims.map_live_claims_by_case_id(intent.purged_at)
    open_case_notes = tuple(
        f"{claim_by_case[affected_case].reviewer} had {affected_case} open"
        for affected_case in case_ids
        if affected_case in claim_by_case
    )
    possible_files = tuple(contents.list_possible_document_files(doc_id, intent.sha256, case_ids))
    output_folder.changes.announce_removal(possible_files)
    # Once the packets are removed, no review can be added: the purge record is complete.
    removed_files = [
        name
        for name in (*map(get_attention_check_file_name, case_ids), *map(packet_file_name, case_ids))
        if output_folder.remove_file(name)
    ]
    record_name = purge_record_file_name(intent.number)
    if not output_folder.has_file(record_name):
        output_folder.create_json_if_absent(
            record_name, _create_purge_record(output_folder, registries, intent).model_dump(mode="json")
        )
    for case_id in case_ids:
        removed_files += output_folder.remove_folder(f"{REVIEWS_FOLDER}/{case_id}")
    removed_files += [name for name in (*possible_files, MOVED_SQLITE_FILE) if output_folder.remove_file(name)]
    new_name_by_case = {
        affected_case: f"{intent.sha256 or f'purge-{intent.number}'}{_get_case_suffix(doc_id, affected_case)}"
        for affected_case in case_ids
    }
    deleted_row_counts = registries.count_naming_files_by_kind(doc_id) | index.delete_document_rows(
        doc_id, case_ids, intent.sha256, new_name_by_case
    )
    if isinstance(output_folder, LocalOutputFolder):
        limit = time.time() - _ORPHAN_AGE_SECONDS
        output_folder.remove_old_temp_files(lambda path: path.lstat().st_mtime < limit)
    review_count = sum(len(chain.reviews) for chain in read_record(output_folder, record_name, PurgeRecord).chains)
    return PurgedDocument(
        doc_id,
        intent.sha256,
        tuple(sorted(removed_files)),
        deleted_row_counts,
        review_count,
        open_case_notes,
        remaining_traces=(),
    )


def _create_purge_record(output_folder: OutputFolder, registries: SharedFiles, intent: PurgeIntent) -> PurgeRecord:
    doc_id = intent.doc_id or ""
    previous_number = intent.number - 1
    reviews_by_case = ((subject, tuple(_create_purged_reviews(output_folder, subject))) for subject in intent.cases)
    return PurgeRecord(
        sha256=intent.sha256,
        purged_at=intent.purged_at,
        chains=tuple(
            PurgedChain(case=_get_case_suffix(doc_id, subject), reviews=purged_reviews)
            for subject, purged_reviews in reviews_by_case
            if purged_reviews
        ),
        draws=tuple(
            PurgedDraw(draw=draw_number, probability=subject.probability[doc_id], was_drawn=doc_id in subject.drawn)
            for draw_number, subject in registries.iterate_draw_numbers_and_strata(doc_id)
        ),
        answer=intent.answer,
        prev_sha256=hashlib.sha256(output_folder.read_bytes(purge_record_file_name(previous_number))).hexdigest()
        if previous_number
        else None,
    )


def _get_case_suffix(doc_id: str, case_id: str) -> str:
    """Return the part of a case_id that does not name the document.

    A template's name, which may be a patient's, is dropped too.
    """
    return case_id.removeprefix(doc_id) if case_id.startswith(doc_id) else case_id[len(case_id.partition(".")[0]) :]


def _create_purged_reviews(output_folder: OutputFolder, case_id: str) -> Iterator[PurgedReview]:
    for revision in list_revisions(output_folder, case_id):
        sha256 = hash_review_file(output_folder, case_id, revision)
        try:
            review = read_review(output_folder, case_id, revision)
        except StoreError:  # a damaged review is removed as well, and its chain does not verify
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


class SharedFiles:
    """Files about many documents: production's labels, draws, records of runs.

    They list many documents. The caller holds the run lock: nobody else writes these files.
    """

    def __init__(self, contents: FolderContents) -> None:
        """Read these files. StoreError if one is damaged."""
        self._output_folder = output_folder = contents.output_folder
        self._path_by_doc_id = {doc_id: str(row["file_path"]) for doc_id, row in contents.row_by_doc_id.items()}
        self._run_records = read_run_records(output_folder)
        self._label_by_doc_id = read_stored_production_labels(output_folder)
        self._draws = read_all_draws(output_folder)

    def iterate_draw_numbers_and_strata(self, doc_id: str) -> Iterator[tuple[int, Stratum]]:
        """Yield each stratum that contains the document, with the number of its draw."""
        for number, draw in enumerate(self._draws, 1):
            yield from ((number, stratum) for stratum in draw.strata if doc_id in stratum.probability)

    def count_naming_files_by_kind(self, doc_id: str) -> dict[str, int]:
        """Count the files that name the document, by kind of file; no zero counts."""
        count_by_kind = {
            "production": int(doc_id in self._label_by_doc_id),
            "draws": len({number for number, _ in self.iterate_draw_numbers_and_strata(doc_id)}),
            "runs": sum(doc_id in record.documents for record in self._run_records),
        }
        return {kind: count for kind, count in count_by_kind.items() if count}

    def rewrite_files_without_documents(self, doc_ids: Collection[str]) -> None:
        """Remove these documents from shared files, and save the changed files.

        The other documents' probabilities do not change.
        """
        removed_ids = frozenset(doc_ids)
        for doc_id in removed_ids:
            self._path_by_doc_id.pop(doc_id, None)
        for number, record in enumerate(self._run_records):
            shortened = remove_from_record(record, removed_ids, tuple(self._path_by_doc_id.values()))
            if shortened != record:
                self._run_records[number] = shortened
                save_run_record(self._output_folder, shortened)
        if removed_ids & self._label_by_doc_id.keys():
            self._label_by_doc_id = {
                doc_id: label for doc_id, label in self._label_by_doc_id.items() if doc_id not in removed_ids
            }
            self._output_folder.write_json(
                PRODUCTION_LABELS_FILE,
                {**self._output_folder.read_json(PRODUCTION_LABELS_FILE), "labels": self._label_by_doc_id},
            )
        for number, draw in enumerate(self._draws, 1):
            if any(removed_ids & stratum.probability.keys() for stratum in draw.strata):
                self._draws[number - 1] = _remove_from_draw(draw, removed_ids)
                self._output_folder.write_json(
                    sample_draw_file_name(number), self._draws[number - 1].model_dump(mode="json")
                )


def _remove_from_draw(draw: Draw, removed_ids: frozenset[str]) -> Draw:
    strata = (
        stratum.model_copy(
            update={
                "probability": {
                    doc_id: probability
                    for doc_id, probability in stratum.probability.items()
                    if doc_id not in removed_ids
                },
                "drawn": tuple(doc_id for doc_id in stratum.drawn if doc_id not in removed_ids),
            }
        )
        for stratum in draw.strata
    )
    return draw.model_copy(update={"strata": tuple(shortened for shortened in strata if shortened.probability)})
