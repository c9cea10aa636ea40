"""Check that no file in the output folder was changed after it was written.

Reviews are chained by SHA-256, they contain the SHA-256 of their packets, and ground truth follows from reviews: a file
that was changed, exchanged or removed no longer fits, and is reported with a remedy. What machines wrote is listed in the
chain of changes. The database has the SHA-256 of a case's newest review, and of the newest link, to which nothing is chained. Files that `purge` removed are no fault: its record has their
digests. Nothing is signed: anyone who may write files and database can forge all of it, unless an export of the
decisions is kept elsewhere (``earlier_export_path``).
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path, PurePath
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

from evalkit.classification.document_result import SCHEMA_VERSION as RESULT_SCHEMA_VERSION
from evalkit.classification.document_result import DocumentResult
from evalkit.classification.patient_keys import attach_patient_keys
from evalkit.classification.v5_arbiter import Decision
from evalkit.core.records import DiscreetModel
from evalkit.core.safe_io import read_regular_file
from evalkit.errors import EvalkitError, StoreError, UsageError
from evalkit.pipeline.audit.trail import list_audit_events_and_problems
from evalkit.pipeline.event_log import find_changed_events
from evalkit.pipeline.purge import read_purge_records
from evalkit.pipeline.run_history import (
    RunRecord,
    RunSession,
    get_run_start,
    hash_result,
    list_run_files,
    read_run_records,
)
from evalkit.pipeline.sample_draws import (
    PROBABILITY_FORMULA,
    compute_result_risk,
    is_drawn_for_audit,
    read_all_draws,
)
from evalkit.pipeline.supplied_labels import read_stored_production_labels
from evalkit.review.attention_checks import (
    find_attention_check_damage,
    get_attention_check_file_name,
    is_attention_check,
    list_stray_attention_check_files,
)
from evalkit.review.case_files import read_numbered_reviews, read_packet
from evalkit.review.ground_truth import (
    GroundTruth,
    GroundTruthRecord,
    Review,
    build_silver_fields,
    build_silver_ground_truth,
    find_newest_revision,
    hash_review_file,
    is_newest_review_unchanged,
    read_json_unless_missing_or_torn,
    read_silver_audit_probability,
)
from evalkit.review.index_rebuild import open_index
from evalkit.review.loaders import load_if_intact, read_bundle, read_extractions, read_result
from evalkit.review.opinions import CaseOpinions
from evalkit.review.packet import EXTRACTION_SUFFIX, SMEPacket, compute_packet_digest, get_base_case_id
from evalkit.review.queue import list_case_ids_with_packet
from evalkit.review.roster import ReviewerRoster
from evalkit.review.write_lock import hold_case_write_lock
from evalkit.store import (
    ATTENTION_CHECKS_FOLDER,
    BUNDLES_FOLDER,
    EVENTS_FOLDER,
    EXTRACTIONS_FOLDER,
    GROUND_TRUTH_FOLDER,
    PACKETS_FOLDER,
    PRODUCTION_LABELS_FILE,
    PURGE_INTENT_FILE,
    PURGE_RECORDS_FOLDER,
    RESULTS_FOLDER,
    REVIEWS_FOLDER,
    ROSTER_FILE,
    RUNS_FOLDER,
    SAMPLE_DRAWS_FOLDER,
    SITE_WEIGHTS_FOLDER,
    SQLITE_FILE,
    LocalOutputFolder,
    OutputFolder,
    OutputIndex,
    ReviewChainHead,
    bundle_file_name,
    check_and_describe_database,
    event_file_name,
    ground_truth_file_name,
    kept_file_name,
    list_numbered_files_or_raise_on_gap,
    list_unrecognised_names,
    packet_file_name,
    purge_record_file_name,
    result_file_name,
    review_file_name,
    run_file_name,
)
from evalkit.store.change_chain import ChainState, compare_with_chain, is_link_unchanged, read_chain
from evalkit.store.file_names import CHANGES_FOLDER, change_link_file_name
from evalkit.store.index import CHANGES_HEAD_ID
from evalkit.store.local_folder import CHANGING_MODES, EXPOSING_MODES

_CHECKED_FOLDERS = (
    BUNDLES_FOLDER,
    RESULTS_FOLDER,
    PACKETS_FOLDER,
    REVIEWS_FOLDER,
    GROUND_TRUTH_FOLDER,
    EXTRACTIONS_FOLDER,
    ATTENTION_CHECKS_FOLDER,
    SAMPLE_DRAWS_FOLDER,
    EVENTS_FOLDER,
    SITE_WEIGHTS_FOLDER,
    PURGE_RECORDS_FOLDER,
)
_RESTORE_REMEDY = "Restore the file from a backup: evalkit never changes this file after writing it."
_CHAIN_REMEDY = "Restore the file from a backup, or find out who changed it: evalkit records each of its own changes."
_REINDEX_REMEDY = "`evalkit reindex` rewrites it from the reviews."


@dataclass(frozen=True)
class IntegrityFault:
    """Fault of a file: what is wrong with the file, and how to repair it."""

    file: str
    """The file's name, relative to the output folder."""
    what: str
    remedy: str


@dataclass(frozen=True)
class IntegrityReport:
    """Numbers of checked files, and the faults found in these files."""

    count_by_kind: Mapping[str, int]
    """The numbers of reviews, cases, results …; ``chains_without_head`` counts cases whose newest review the database
    does not know, so that a change of that review is not noticed. `evalkit reindex` records such reviews as it finds
    them."""
    faults: tuple[IntegrityFault, ...]
    notes: tuple[str, ...] = ()
    """Sentences about what is no fault."""

    def to_json(self) -> dict[str, Any]:
        """Return the report as a JSON object."""
        return {
            "counts": dict(self.count_by_kind),
            "faults": [vars(fault) for fault in self.faults],
            "notes": list(self.notes),
        }


def verify_integrity(output_folder: OutputFolder, *, earlier_export_path: Path | None = None) -> IntegrityReport:
    """Check every file of the output folder; experts may work at the same time.

    ``earlier_export_path`` is an earlier ``audit export`` as JSON, with which the files are compared. UsageError if
    that export cannot be read.
    """
    with open_index(output_folder, read_only=True) as index:
        faults = [fault for check in _CHECKS for fault in check(output_folder, index)]
        case_ids_with_head = {head.case_id for head in index.review_heads.list_all()}
        if earlier_export_path is not None:
            faults += _check_against_export(output_folder, index, earlier_export_path)
        chain = read_chain(output_folder)
        comparison = compare_with_chain(output_folder, chain, (row["doc_id"] for row in index.list_documents()))
        chain.faults += [
            (change_link_file_name(number), "it was changed after it was recorded, or is missing")
            for number, sha256 in _list_known_links(output_folder, index)
            if not is_link_unchanged(output_folder, number, sha256)
        ]
        faulty_names = {fault.file for fault in faults}
        faults += [
            IntegrityFault(name, what, _CHAIN_REMEDY)
            for name, what in (*chain.faults, *comparison.faults)
            if name not in faulty_names
        ]
    chain_ids = output_folder.list_subfolder_names(REVIEWS_FOLDER)
    count_by_kind = {
        "results": len(output_folder.list_json_files(RESULTS_FOLDER)),
        "cases": len(list_case_ids_with_packet(output_folder)),
        "chains": len(chain_ids),
        "chains_without_head": sum(chain_id not in case_ids_with_head for chain_id in chain_ids),
        "reviews": sum(len(output_folder.list_json_files(f"{REVIEWS_FOLDER}/{chain_id}")) for chain_id in chain_ids),
        "ground_truth": len(output_folder.list_json_files(GROUND_TRUTH_FOLDER)),
        "seeded": len(output_folder.list_json_files(ATTENTION_CHECKS_FOLDER)),
        "draws": len(output_folder.list_json_files(SAMPLE_DRAWS_FOLDER)),
        "runs": len(list_run_files(output_folder)),
        "events": len(output_folder.list_json_files(EVENTS_FOLDER)),
        "purged": len(output_folder.list_json_files(PURGE_RECORDS_FOLDER)),
        "recorded_files": comparison.recorded_count,
        "adopted_files": chain.adopted_count,
        "not_yet_recorded": len(comparison.unrecorded),
    }
    notes = [*_list_permission_notes(output_folder)]
    if earlier_export_path is not None:
        exported_events = _read_export(earlier_export_path)
        notes += _list_roster_notes(output_folder, exported_events)
        notes += _list_change_notes(output_folder, chain, exported_events)
    return IntegrityReport(count_by_kind, tuple(faults), tuple(notes))


def _list_known_links(output_folder: OutputFolder, index: OutputIndex) -> list[tuple[int, str]]:
    """List number and SHA-256 of the links that database and runs name."""
    head = index.review_heads.find(CHANGES_HEAD_ID)
    links = {(head.revision, head.sha256)} if head else set()
    with suppress(StoreError):  # a damaged record is a fault of its own
        sessions = [session for record in read_run_records(output_folder) for session in record.sessions]
        links |= {link for session in sessions if (link := session.times.get("newest_link"))}
    return sorted(links)


def _run_check_as_faults(file_name: str, check: Callable[[], Iterable[IntegrityFault]]) -> Iterator[IntegrityFault]:
    """Yield a check's faults; an error while reading becomes a fault of the file."""
    try:
        yield from check()
    except EvalkitError as error:
        yield IntegrityFault(file_name, error.message, error.remedy)
    except (ValueError, TypeError, LookupError, AttributeError):  # each record can be read, but another's was put here
        yield IntegrityFault(file_name, "it contradicts other records of its case", _RESTORE_REMEDY)


def _check_each(
    list_subjects: Callable[[OutputFolder], Iterable[str]],
    name_file: Callable[[str], str],
    find_faults: Callable[[OutputFolder, str], Iterable[IntegrityFault]],
    output_folder: OutputFolder,
    _index: OutputIndex,
    *,
    is_locked: bool = False,
) -> Iterator[IntegrityFault]:
    """Check all files of one kind, which ``list_subjects`` lists.

    It lists them by name, document or case.

    ``is_locked``: a fault is found again while the case's write lock is held, so that it is none of a half-saved review.
    """
    for subject in list_subjects(output_folder):
        check = partial(_run_check_as_faults, name_file(subject), partial(find_faults, output_folder, subject))
        if any(check()):
            with hold_case_write_lock(output_folder, subject) if is_locked else nullcontext():
                yield from list(check())


# -------------------------------------------------------------------------------------------------- documents


def _check_document(output_folder: OutputFolder, name: str) -> Iterator[IntegrityFault]:
    doc_id = PurePath(name).stem
    result = read_result(output_folder, doc_id)
    if not isinstance(result, DocumentResult):
        return
    if result.decision is Decision.ESCALATE_TO_SME and not output_folder.has_file(packet_file_name(doc_id)):
        yield IntegrityFault(
            packet_file_name(doc_id), "its document was escalated, but the packet is missing", "Run the document again."
        )
    if read_bundle(output_folder, doc_id).sha256 != result.sha256:
        yield IntegrityFault(
            bundle_file_name(doc_id), "it is of another document than the result", "Run the document with --fresh."
        )


# ---------------------------------------------------------------------------------------------------- reviews


def _check_review_chain(output_folder: OutputFolder, case_id: str) -> Iterator[IntegrityFault]:
    list_numbered_files_or_raise_on_gap(
        output_folder, f"{REVIEWS_FOLDER}/{case_id}", partial(review_file_name, case_id)
    )
    chain = read_numbered_reviews(output_folder, case_id)
    previous_sha256 = None
    for revision, review in chain:
        name = review_file_name(case_id, revision)
        if review.prev_sha256 != previous_sha256:
            explanation = (
                "the first review must not name an earlier one"
                if revision == 1
                else f"{review_file_name(case_id, revision - 1)} has another SHA-256"
            )
            yield IntegrityFault(
                name,
                f"it does not follow the review before it: {explanation}",
                "Restore both files from a backup: they are never changed.",
            )
        if review.signature and review.signature.record_sha256 != review.compute_record_digest():
            yield IntegrityFault(name, "its signature belongs to another record", _RESTORE_REMEDY)
        previous_sha256 = hash_review_file(output_folder, case_id, revision)
    yield from _run_check_as_faults(
        packet_file_name(case_id), partial(_check_reviewed_packet, output_folder, case_id, chain)
    )


def _check_reviewed_packet(
    output_folder: OutputFolder, case_id: str, chain: list[tuple[int, Review]]
) -> Iterator[IntegrityFault]:
    packet = read_packet(output_folder, case_id)
    packet_sha256 = compute_packet_digest(packet)
    for revision, review in chain:
        if review.packet_sha256 != packet_sha256:
            yield IntegrityFault(
                packet_file_name(case_id), f"it is not the packet that review {revision} was made on", _RESTORE_REMEDY
            )
        if review.seeded != packet.is_attention_check:
            yield IntegrityFault(
                review_file_name(case_id, revision),
                "review and packet disagree on whether the case has a planted fault",
                _RESTORE_REMEDY,
            )


# ----------------------------------------------------------------------------------------------- ground truth


def _list_ids_with_ground_truth(output_folder: OutputFolder) -> list[str]:
    """List the cases and documents that have ground truth or should have it."""
    reviewable_ids = {*list_case_ids_with_packet(output_folder), *output_folder.list_subfolder_names(REVIEWS_FOLDER)}
    truth_ids = {
        PurePath(name).name.removeprefix("gt_").removesuffix(".json")
        for name in output_folder.list_json_files(GROUND_TRUTH_FOLDER)
    }
    result_ids = {PurePath(name).stem for name in output_folder.list_json_files(RESULTS_FOLDER)}
    return sorted({get_base_case_id(known_id) for known_id in reviewable_ids} | truth_ids | result_ids)


def _check_ground_truth(output_folder: OutputFolder, case_id: str) -> Iterator[IntegrityFault]:
    name = ground_truth_file_name(case_id)
    stored_truth = read_json_unless_missing_or_torn(output_folder, name)
    if stored_truth is None and output_folder.has_file(name):
        yield IntegrityFault(name, "it cannot be read", _REINDEX_REMEDY)
        return
    if find_newest_revision(output_folder, case_id):
        record = CaseOpinions.read(output_folder, case_id).build_ground_truth()
        if not _is_equal_to_projection(stored_truth, record):
            yield IntegrityFault(name, "it differs from the reviews", _REINDEX_REMEDY)
    elif stored_truth is not None and stored_truth.get("ground_truth_source") != "AUTO_ACCEPTED":
        yield IntegrityFault(
            name, "it claims to be an expert's, but the case has no review", "Restore the reviews from a backup."
        )
    else:
        yield from _check_silver_truth(output_folder, case_id, stored_truth)


def _is_equal_to_projection(stored_truth: Mapping[str, Any] | None, record: GroundTruthRecord | None) -> bool:
    """Return True if stored ground truth equals what the reviews say.

    Patients' keys of corrected pages are not compared.
    """
    if isinstance(record, GroundTruth) and stored_truth is not None:
        try:
            stored_classification = GroundTruth.model_validate(stored_truth).ground_truth_classification
        except ValidationError:
            return False
        classification = record.ground_truth_classification
        known_patients = {
            pages: patient for pages, patient in classification.patient_keys_by_page_range.items() if patient
        }
        classification = attach_patient_keys(
            classification, stored_classification.patient_keys_by_page_range | known_patients
        )
        record = record.model_copy(update={"ground_truth_classification": classification})
    return stored_truth == (record and record.model_dump(mode="json"))


def _check_silver_truth(
    output_folder: OutputFolder, case_id: str, stored_truth: Mapping[str, Any] | None
) -> Iterator[IntegrityFault]:
    """Check that ground truth without a review equals what the program accepted."""
    name, doc_id = ground_truth_file_name(case_id), case_id.removesuffix(EXTRACTION_SUFFIX)
    rerun_remedy = "Run the document with --fresh."
    if case_id != doc_id:
        if stored_truth is None:
            return
        expected_fields = build_silver_fields(
            read_extractions(output_folder, doc_id), accepted_at=_get_accepted_at_and_probability(stored_truth)[0]
        )
        if stored_truth != expected_fields.model_dump(mode="json"):
            yield IntegrityFault(name, "it differs from the extracted fields", rerun_remedy)
        return
    result = read_result(output_folder, doc_id) if output_folder.has_file(result_file_name(doc_id)) else None
    is_accepted = isinstance(result, DocumentResult) and result.decision is Decision.AUTO_ACCEPT
    if is_accepted != (stored_truth is not None):
        yield IntegrityFault(name, "it differs from the accepted result", rerun_remedy)
    elif isinstance(result, DocumentResult) and stored_truth is not None:
        accepted_at, probability = _get_accepted_at_and_probability(stored_truth)
        if stored_truth != build_silver_ground_truth(
            result, accepted_at=accepted_at, inclusion_probability=probability
        ).model_dump(mode="json"):
            yield IntegrityFault(name, "it differs from the accepted result", rerun_remedy)


def _get_accepted_at_and_probability(stored_truth: Mapping[str, Any]) -> tuple[str, float | None]:
    """Return the acceptance time and inclusion probability of a silver record.

    The probability is None if it is missing or invalid.
    """
    probability = stored_truth.get("inclusion_probability")
    is_probability = isinstance(probability, float) and 0 <= probability <= 1
    return str(stored_truth.get("reviewed_at")), probability if is_probability else None


# ---------------------------------------------------------------------------------------------- other files


def _check_packet(output_folder: OutputFolder, case_id: str) -> Iterator[IntegrityFault]:
    packet = read_packet(output_folder, case_id)
    if packet.review_status == "completed" and not find_newest_revision(output_folder, case_id):
        yield IntegrityFault(packet_file_name(case_id), "it is marked as completed without a review", _REINDEX_REMEDY)
    if is_attention_check(output_folder, packet):
        yield from _run_check_as_faults(
            get_attention_check_file_name(case_id), partial(_check_attention_check, output_folder, packet)
        )
    elif packet.has_attention_checks and case_id == packet.doc_id and not find_newest_revision(output_folder, case_id):
        yield from _run_check_as_faults(
            result_file_name(case_id), partial(_check_pending_packet, output_folder, packet)
        )


def _check_pending_packet(output_folder: OutputFolder, packet: SMEPacket) -> Iterator[IntegrityFault]:
    """Check that the packet of a case without reviews equals the result.

    If a person had the case open during a run, the packet is older than the result, stays what that person saw, and is
    not compared.
    """
    result = read_result(output_folder, packet.doc_id)
    if not isinstance(result, DocumentResult) or packet.created_at != result.times.get("finished_at"):
        return
    is_same = (
        (packet.classification, packet.v5_decision) == (result.classification, result.decision)
        and (packet.decision_rule, packet.decision_reason) == (result.decision_rule, result.decision_reason)
        and {issue.issue_id: issue for issue in packet.issues} == {issue.issue_id: issue for issue in result.issues}
    )
    if not is_same:
        yield IntegrityFault(
            packet_file_name(packet.case_id), "it differs from the result", "Run the document with --fresh."
        )


def _check_attention_check(output_folder: OutputFolder, packet: SMEPacket) -> Iterator[IntegrityFault]:
    if damage := find_attention_check_damage(output_folder, packet):
        yield IntegrityFault(*damage, _RESTORE_REMEDY)


_READERS: Mapping[str, Callable[[OutputFolder], object]] = {
    PRODUCTION_LABELS_FILE: read_stored_production_labels,
    ROSTER_FILE: lambda output_folder: ReviewerRoster(output_folder).list_reviewers(),
    SAMPLE_DRAWS_FOLDER: read_all_draws,
    RUNS_FOLDER: read_run_records,
    SQLITE_FILE: check_and_describe_database,
}


def _require_readable(
    read: Callable[[OutputFolder, str], object], output_folder: OutputFolder, subject: str
) -> tuple[()]:
    """Read a record whose damage is an error. StoreError."""
    read(output_folder, subject)
    return ()


class _RunHistory:
    """Records of an output folder's runs, with which results and audits are compared."""

    def __init__(self, output_folder: OutputFolder) -> None:
        self._output_folder = output_folder
        records = read_run_records(output_folder)
        self._record_by_start = {
            session.times["started_at"]: record for record in records for session in record.sessions
        }
        self._session_by_start = {
            session.times["started_at"]: session for record in records for session in record.sessions
        }
        self._newest_documents = {doc_id: entry for record in records for doc_id, entry in record.documents.items()}

    def check_result(self, name: str) -> Iterator[IntegrityFault]:
        """Compare a result with the records of runs, and draw its audit again."""
        if (
            not self._record_by_start
            or (result := load_if_intact(read_result, self._output_folder, PurePath(name).stem)) is None
        ):
            return
        stored = self._output_folder.read_json(name, max_schema_version=RESULT_SCHEMA_VERSION)
        session, recorded = self._session_by_start.get(get_run_start(stored)), self._newest_documents.get(result.doc_id)
        if session is None:
            yield IntegrityFault(name, "no run recorded that it made this result", _CHAIN_REMEDY)
        elif session.is_finished and (  # a run that was killed has not recorded it
            recorded is None
            or (recorded.result.sha256, recorded.decision) != (hash_result(stored), stored.get("decision"))
        ):
            yield IntegrityFault(name, "it is not the result that the newest run recorded", _CHAIN_REMEDY)
        elif session.audit_draw and isinstance(result, DocumentResult) and result.decision is Decision.AUTO_ACCEPT:
            yield from self._check_audit(result.doc_id, stored)

    def _check_audit(self, doc_id: str, stored: Mapping[str, Any]) -> Iterator[IntegrityFault]:
        name, accepted_probability = (
            packet_file_name(doc_id),
            read_silver_audit_probability(self._output_folder, doc_id),
        )
        seeds = {session.audit_draw.seed for session in self._session_by_start.values() if session.audit_draw}
        packet = load_if_intact(read_packet, self._output_folder, doc_id)
        drawn_probability = packet.inclusion_probability if packet and packet.review_reason == "audit" else None
        if not self._output_folder.has_file(name):
            if accepted_probability is not None and all(
                is_drawn_for_audit(seed, stored["sha256"], accepted_probability) for seed in seeds
            ):
                yield IntegrityFault(name, "the document is drawn for audit, but the case is missing", _CHAIN_REMEDY)
        elif drawn_probability is not None:
            if not any(is_drawn_for_audit(seed, stored["sha256"], drawn_probability) for seed in seeds):
                yield IntegrityFault(name, "it is an audit that its probability does not draw", _CHAIN_REMEDY)
            if accepted_probability not in (None, drawn_probability):
                yield IntegrityFault(name, "its probability is not that of the accepted answer", _CHAIN_REMEDY)
        probabilities = {accepted_probability, drawn_probability} - {None}
        if not all(self._is_probability_possible(doc_id, stored, probability) for probability in probabilities):
            name = name if accepted_probability is None else ground_truth_file_name(doc_id)
            yield IntegrityFault(name, "its probability of an audit follows from no recorded run", _CHAIN_REMEDY)

    def _is_probability_possible(self, doc_id: str, stored: Mapping[str, Any], probability: float | None) -> bool:
        """Return True if the probability follows from a recorded draw and a result.

        An answer keeps the probability with which it was first accepted, so earlier results are tried too. True if
        records miss what is needed: of an older evalkit, of another formula, or of a run that was killed and whose
        results were replaced.
        """
        draw = self._session_by_start[get_run_start(stored)].audit_draw
        if draw and probability in draw.list_probabilities(compute_result_risk(stored)):
            return True
        names = {kept_file_name(record.name, result_file_name(doc_id)) for record in self._record_by_start.values()}
        results = [
            stored,
            *(
                self._output_folder.read_json(name, max_schema_version=RESULT_SCHEMA_VERSION)
                for name in names
                if self._output_folder.has_file(name)
            ),
        ]
        records = [self._record_by_start.get(get_run_start(result)) for result in results]
        draws = [session.audit_draw for session in self._session_by_start.values()]
        is_known = all(draw and draw.formula == PROBABILITY_FORMULA for draw in draws) and all(
            record and all(session.is_finished for session in record.sessions) for record in records
        )
        return not is_known or any(
            draw and probability in draw.list_probabilities(compute_result_risk(result))
            for draw in draws
            for result in results
            if result.get("classification")
        )


def _check_runs(output_folder: OutputFolder, _folder: str) -> Iterator[IntegrityFault]:
    """Compare all results with the records of runs."""
    history = _RunHistory(output_folder)
    for name in output_folder.list_json_files(RESULTS_FOLDER):
        if any(history.check_result(name)):
            history = _RunHistory(output_folder)  # a run may have begun since
            yield from history.check_result(name)


def _check_permissions(output_folder: OutputFolder, _index: OutputIndex) -> Iterator[IntegrityFault]:
    """Tell what others can read of patients' data, or change."""
    if not isinstance(output_folder, LocalOutputFolder):
        return
    changeable_names = output_folder.list_exposed_names((CHANGES_FOLDER,), CHANGING_MODES)
    if names := [*output_folder.list_exposed_names(), *changeable_names]:
        yield IntegrityFault(
            names[0],
            f"other users may read or change it, and {len(names) - 1} more files or folders",
            output_folder.get_permission_remedy(output_folder.root),
        )


def _list_permission_notes(output_folder: OutputFolder) -> Iterator[str]:
    """Tell if others can read the chain of changes, which names no patient."""
    reading_modes = EXPOSING_MODES & ~CHANGING_MODES
    if isinstance(output_folder, LocalOutputFolder) and output_folder.list_exposed_names(
        (CHANGES_FOLDER,), reading_modes
    ):
        remedy = output_folder.get_permission_remedy(output_folder.root)
        yield f"Other users may read {CHANGES_FOLDER}/, which has hashes of names and files. {remedy}"


def _check_no_symlinks(output_folder: OutputFolder, _index: OutputIndex) -> Iterator[IntegrityFault]:
    if isinstance(output_folder, LocalOutputFolder):
        for name in output_folder.list_symlinks():
            yield IntegrityFault(name, "it is a link", "Replace the link with the file that it leads to.")


def _check_event_chain(output_folder: OutputFolder, _folder: str) -> Iterator[IntegrityFault]:
    for name in find_changed_events(output_folder):
        yield IntegrityFault(name, "the event after it was recorded with another SHA-256", _RESTORE_REMEDY)


def _check_purge_records(output_folder: OutputFolder, _folder: str) -> Iterator[IntegrityFault]:
    if output_folder.has_file(PURGE_INTENT_FILE):
        yield IntegrityFault(
            PURGE_INTENT_FILE, "a purge is unfinished", "Run `evalkit purge` without a name to finish it."
        )
    previous_sha256 = None
    for number, record in enumerate(read_purge_records(output_folder), 1):
        name = purge_record_file_name(number)
        if record.prev_sha256 != previous_sha256:
            yield IntegrityFault(
                name,
                "it does not follow the record before it",
                "Restore both files from a backup: they are never changed.",
            )
        previous_sha256 = hashlib.sha256(output_folder.read_bytes(name)).hexdigest()
        for chain in record.chains:
            revisions = [review.revision for review in chain.reviews]
            link_checks = [earlier.sha256 == later.prev_sha256 for earlier, later in pairwise(chain.reviews)]
            if revisions != list(range(1, len(revisions) + 1)) or chain.reviews[0].prev_sha256 or not all(link_checks):
                explanation = f"the reviews of the purged case '{chain.case}' were not an intact chain when purged, or the record was changed since"
                yield IntegrityFault(name, explanation, _RESTORE_REMEDY)


def _check_review_heads(output_folder: OutputFolder, index: OutputIndex) -> Iterator[IntegrityFault]:
    """Check each case's newest review against its SHA-256 in the database."""
    for listed_head in index.review_heads.list_all():
        if listed_head.case_id != CHANGES_HEAD_ID and _list_head_faults(output_folder, listed_head):
            with hold_case_write_lock(output_folder, listed_head.case_id):
                # Read again: a review or a purge may have changed it since.
                head = index.review_heads.find(listed_head.case_id)
                yield from _list_head_faults(output_folder, head) if head else ()


def _list_head_faults(output_folder: OutputFolder, head: ReviewChainHead) -> list[IntegrityFault]:
    name = review_file_name(head.case_id, head.revision)
    fault = IntegrityFault(name, "it was changed after it was saved, or is missing", _RESTORE_REMEDY)
    return [*_run_check_as_faults(name, lambda: () if is_newest_review_unchanged(output_folder, head) else (fault,))]


def _check_index_statuses(output_folder: OutputFolder, index: OutputIndex) -> Iterator[IntegrityFault]:
    """Name the cases that the queue calls answered, and that nobody answered."""
    for row in index.list_cases_worst_first("completed"):
        if not find_newest_revision(output_folder, row["case_id"]):
            what = "the database calls it completed, but it has no review: no expert is shown it"
            yield IntegrityFault(packet_file_name(row["case_id"]), what, "`evalkit reindex` writes the index again.")


def _check_foreign_files(output_folder: OutputFolder, _index: OutputIndex) -> Iterator[IntegrityFault]:
    nested_folders = (
        f"{folder}/{name}"
        for folder in (REVIEWS_FOLDER, RUNS_FOLDER)
        for name in output_folder.list_subfolder_names(folder)
    )
    for subfolder in (*_CHECKED_FOLDERS, *nested_folders):
        for name in list_unrecognised_names(output_folder, subfolder):
            yield IntegrityFault(
                f"{subfolder}/{name}",
                "evalkit did not write it, and ignores it",
                "Move the file out of the output folder.",
            )


_CHECKS: tuple[Callable[[OutputFolder, OutputIndex], Iterator[IntegrityFault]], ...] = (
    partial(_check_each, lambda folder: folder.list_json_files(RESULTS_FOLDER), str, _check_document),
    partial(
        _check_each,
        lambda folder: folder.list_json_files(EXTRACTIONS_FOLDER),
        str,
        partial(_require_readable, lambda folder, name: read_extractions(folder, PurePath(name).stem)),
    ),
    partial(
        _check_each,
        lambda folder: folder.list_subfolder_names(REVIEWS_FOLDER),
        lambda case_id: f"{REVIEWS_FOLDER}/{case_id}",
        _check_review_chain,
        is_locked=True,
    ),
    partial(_check_each, _list_ids_with_ground_truth, ground_truth_file_name, _check_ground_truth, is_locked=True),
    partial(
        _check_each,
        list_stray_attention_check_files,
        str,
        lambda _, name: (
            IntegrityFault(name, "it belongs to no attention check", "Move the file out of the output folder."),
        ),
    ),
    partial(_check_each, list_case_ids_with_packet, packet_file_name, _check_packet, is_locked=True),
    partial(
        _check_each,
        lambda _: _READERS,
        str,
        partial(_require_readable, lambda folder, name: _READERS[name](folder)),
    ),
    partial(_check_each, lambda _: (RUNS_FOLDER,), str, _check_runs),
    _check_no_symlinks,
    _check_permissions,
    partial(_check_each, lambda _: (PURGE_RECORDS_FOLDER,), str, _check_purge_records),
    partial(_check_each, lambda _: (EVENTS_FOLDER,), str, _check_event_chain),
    _check_review_heads,
    _check_index_statuses,
    _check_foreign_files,
)


class _ExportedEvent(DiscreetModel):
    """Fields of an exported event that no later purge changes."""

    model_config = ConfigDict(strict=True)

    event: str
    at: str | None
    who: str | None
    case_id: str | None
    document_sha256: str | None
    outcome: str | None
    revision: int | None
    review_reason: str | None = None
    sha256: str | None


_EXPORT_ADAPTER = TypeAdapter(list[_ExportedEvent], config=DiscreetModel.model_config)


def _read_export(earlier_export_path: Path) -> list[_ExportedEvent]:
    """Read an earlier export. UsageError if it cannot be read."""
    try:
        return _EXPORT_ADAPTER.validate_python(json.loads(read_regular_file(earlier_export_path))["events"])
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise UsageError(
            f"{earlier_export_path} is not an export of decisions ({type(error).__name__})",
            code="AUDIT-AGAINST",
            remedy="Give a file that `evalkit audit export --to FILE.json` wrote.",
        ) from None


def _check_against_export(
    output_folder: OutputFolder, index: OutputIndex, earlier_export_path: Path
) -> Iterator[IntegrityFault]:
    exported_events = _read_export(earlier_export_path)
    try:
        purge_records = read_purge_records(output_folder)
    except StoreError:  # `_check_purges` reports it
        purge_records = []
    purged_sha256s = {
        stored_record.sha256 for record in purge_records for chain in record.chains for stored_record in chain.reviews
    }
    present_events = {
        hashlib.sha256(output_folder.read_bytes(name)).hexdigest()
        for name in output_folder.list_json_files(EVENTS_FOLDER)
    }
    for exported_event in exported_events:
        if exported_event.event == "logged" and exported_event.sha256 not in present_events:
            yield IntegrityFault(
                event_file_name(exported_event.revision or 0),
                "this event of the log was changed since the export, or is missing",
                _RESTORE_REMEDY,
            )
        if (
            exported_event.event == "reviewed"
            and exported_event.sha256 not in purged_sha256s
            and not _is_exported_review_unchanged(output_folder, exported_event)
        ):
            explanation = f"review {exported_event.revision} was changed since the export, or is missing"
            yield IntegrityFault(f"{REVIEWS_FOLDER}/{exported_event.case_id}", explanation, _RESTORE_REMEDY)
    yield from _check_exported_work(
        output_folder, exported_events, {stored_record.sha256 for stored_record in purge_records}
    )
    recorded_purges = {(stored_record.sha256, stored_record.purged_at) for stored_record in purge_records}
    for exported_event in exported_events:
        if (
            exported_event.event == "purged"
            and (exported_event.document_sha256, exported_event.at) not in recorded_purges
        ):
            yield IntegrityFault(
                PURGE_RECORDS_FOLDER,
                f"the exported purge of {exported_event.at} has no record",
                _RESTORE_REMEDY,
            )
    exported_views = [event for event in exported_events if event.event == "opened"]
    present_views = index.view_log.list_all()
    lost_count = _count_lost(
        ((event.who, event.at) for event in exported_views),
        ((view.reviewer, view.opened_at) for view in present_views),
    )
    moved_count = _count_lost(  # a purge changes the case_id
        (
            (event.who, event.at, event.case_id)
            for event in exported_views
            if event.case_id and output_folder.has_file(packet_file_name(event.case_id))
        ),
        ((view.reviewer, view.opened_at, view.case_id) for view in present_views),
    )
    if count := max(lost_count, moved_count):
        yield IntegrityFault(
            "the view log", f"{count} of the exported openings are missing", "Restore the database from a backup."
        )


def _count_lost(exported: Iterable[tuple[str | None, ...]], present: Iterable[tuple[str | None, ...]]) -> int:
    return (Counter(exported) - Counter(present)).total()


def _check_exported_work(
    output_folder: OutputFolder, exported_events: Collection[_ExportedEvent], purged_sha256s: Collection[str | None]
) -> Iterator[IntegrityFault]:
    """Check that exported decisions are unchanged, or replaced by later runs."""
    later_sessions = _list_later_sessions(output_folder, exported_events)
    later_starts = {session.times["started_at"] for _, session in later_sessions}
    present_events, _ = list_audit_events_and_problems(output_folder)
    present_sessions = {event["sha256"] for event in present_events if event["event"] == "ran"}
    present_by_key = {(event["event"], event["case_id"]): event for event in present_events}
    for exported in exported_events:
        if exported.event == "chained" and not is_link_unchanged(
            output_folder, exported.revision or 0, exported.sha256 or ""
        ):
            name = change_link_file_name(exported.revision or 0)
            yield IntegrityFault(name, "it was changed since the export, or is missing", _CHAIN_REMEDY)
        if exported.event == "ran" and exported.sha256 not in present_sessions:
            name = run_file_name(exported.outcome)
            yield IntegrityFault(name, f"its session of {exported.at} is not what it was at the export", _CHAIN_REMEDY)
        if exported.event not in ("decided", "drawn") or exported.document_sha256 in purged_sha256s:
            continue
        case_id, present = exported.case_id or "", present_by_key.get((exported.event, exported.case_id))
        is_draw = exported.event == "drawn"
        if present and (exported.sha256, exported.review_reason, exported.outcome) in (
            (present["sha256"], present["review_reason"], present["outcome"]),
            (None, present["review_reason"], present["outcome"]),  # an older evalkit exported no digest
        ):
            continue
        result = load_if_intact(read_result, output_folder, case_id)
        is_decided_later = result is not None and result.times.get("run_started_at") in later_starts
        if not is_decided_later and not (is_draw and any(case_id in record.documents for record, _ in later_sessions)):
            name = (packet_file_name if is_draw else result_file_name)(case_id)
            yield IntegrityFault(name, "it is not what it was at the export, and no later run decided", _CHAIN_REMEDY)


def _list_later_sessions(
    output_folder: OutputFolder, exported_events: Collection[_ExportedEvent]
) -> list[tuple[RunRecord, RunSession]]:
    """List the sessions of runs that ended after an export, or have not ended.

    The chain of changes says which is later, because clocks may be late. [] if a record is damaged.
    """
    known_sha256s = {event.sha256 for event in exported_events if event.event == "ran"}
    known_number = max((event.revision or 0 for event in exported_events if event.event == "chained"), default=0)
    with suppress(StoreError):  # a check of its own reports it
        return [
            (record, session)
            for record in read_run_records(output_folder)
            for session in record.sessions
            if not session.is_finished
            or (
                session.times.get("newest_link", (0, ""))[0] > known_number
                and session.compute_digest() not in known_sha256s
            )
        ]
    return []


def _list_change_notes(
    output_folder: OutputFolder, chain: ChainState, exported_events: Collection[_ExportedEvent]
) -> Iterator[str]:
    """Tell what was recorded since an export.

    Whoever can write into the folder can append a link too.
    """
    exported_numbers = [event.revision or 0 for event in exported_events if event.event == "chained"]
    if not exported_numbers:
        return  # an older evalkit exported no chain
    changed = Counter(
        name.partition("/")[0] for name, (_, number) in chain.entries.items() if number > max(exported_numbers)
    )
    if changed:
        counts = ", ".join(name if "." in name else f"{count} in {name}" for name, count in sorted(changed.items()))
        yield f"Since the export, changes of these files were recorded; compare them with what was done: {counts}"
    for record, session in _list_later_sessions(output_folder, exported_events):
        counted = f"and decided {session.decided} documents" if session.is_finished else "and did not end by itself"
        yield f"Since the export, run {record.name} was started or continued at {session.times['started_at']} {counted}"


def _list_roster_notes(output_folder: OutputFolder, exported_events: Collection[_ExportedEvent]) -> Iterator[str]:
    """Tell the names that were added to the roster since an export, and the new codes."""
    exported_codes = {str(event.who): event.sha256 for event in exported_events if event.event == "registered"}
    present_events, _ = list_audit_events_and_problems(output_folder)
    if not any(event.event == "chained" for event in exported_events):
        return  # an older evalkit exported no roster
    present_codes = {str(event["who"]): event["sha256"] for event in present_events if event["event"] == "registered"}
    for name in sorted(present_codes.keys() | exported_codes.keys()):
        if present_codes.get(name) != exported_codes.get(name):
            what = (
                "was added to"
                if name not in exported_codes
                else "has a new code in"
                if name in present_codes
                else "was removed from"
            )
            yield f"Since the export, {name} {what} the roster"


def _is_exported_review_unchanged(output_folder: OutputFolder, exported_event: _ExportedEvent) -> bool:
    case_id, revision = exported_event.case_id or "", exported_event.revision or 0
    with suppress(EvalkitError):
        return hash_review_file(output_folder, case_id, revision) == exported_event.sha256
    return False
