"""A purged document is gone: every file, every row, every byte; its digests stay, and being killed midway loses nothing."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from click.testing import Result
from patience import SECONDS
from pipeline.patient import DOC, FILE, NOW, OTHER, mark_all_seen
from places import in_bucket, open_folder, open_index
from samples.demo_runs import read_output_files, without_clocks
from statements.spoilt import publish_template_case, spoil_template
from tables import trying
from typer.testing import CliRunner

import evalkit
from evalkit.cli import app
from evalkit.errors import NotFound, UsageError
from evalkit.evaluation.study import read_study
from evalkit.pipeline import extract
from evalkit.pipeline.audit.verify import verify_integrity
from evalkit.pipeline.purge import (
    ExpiredDocuments,
    PurgeRecord,
    find_expired_documents,
    find_restored_purged_doc_ids,
    map_purge_file_names_by_doc_id,
    purge,
    read_purge_records,
)
from evalkit.pipeline.sample_draws import Draw, Stratum, read_all_draws, read_probability_by_eligible_doc_id
from evalkit.pipeline.supplied_labels import merge_stored_production_labels, read_stored_production_labels
from evalkit.review import ReviewSession, SMEReviewHelper, index_rebuild
from evalkit.review.case_files import withdraw_packet_unless_frozen
from evalkit.review.index_rebuild import reindex
from evalkit.review.write_lock import hold_case_write_lock
from evalkit.store import (
    MOVED_SQLITE_FILE,
    LocalOutputFolder,
    OutputFolder,
    OutputIndex,
    StoredDraft,
    extraction_file_name,
    result_file_name,
    sample_draw_file_name,
    template_review_file_name,
)

if TYPE_CHECKING:
    from servers.buckets import S3Server
    from servers.postgresql import PostgreSQLServer

LATER = "2027-01-01T00:00:00+00:00"


def words_of(output: Path, doc_id: str) -> set[bytes]:
    text = (output / f"document_bundles/{doc_id}.json").read_text()
    pages = json.loads(text)["pages"]
    return {word.encode() for page in pages for word in re.findall(r"[A-Za-z]{5,}|\d{4,}", page["text"])}


def own_words(output: Path, control: Path) -> set[bytes]:
    """The words that stand in the patient's document alone: in no other one, and in nothing that evalkit says itself.

    Short ones of hexadecimal digits are left out: a hash of something with a clock in it holds them by chance.
    """
    files = [path for path in [*output.rglob("*.json"), *control.rglob("*")] if path.is_file() and is_of_others(path)]
    ours = json.dumps(PurgeRecord.model_json_schema()).encode()
    others = b"".join([*(path.read_bytes() for path in files), ours]).lower()
    by_chance = re.compile(rb"[0-9a-f]{1,7}", re.IGNORECASE)
    return {word for word in words_of(output, DOC) if word.lower() not in others and not by_chance.fullmatch(word)}


def is_of_others(path: Path) -> bool:
    return DOC not in str(path) and path.name != "production.json"


def remembering(output: Path, words: set[bytes]) -> dict[str, bytes]:
    """The files, the database's among them, that still have one of the words, in their name or their bytes."""
    sought = re.compile(b"|".join(map(re.escape, sorted(words))), re.IGNORECASE)
    found = {}
    for path in output.rglob("*"):
        name = str(path.relative_to(output))
        where = sought.search(name.encode()) or (path.is_file() and sought.search(path.read_bytes()))
        if where:
            found[name] = where[0]
    return found


NAMES = {b"Quagmire", b"Zebulon", DOC.encode(), FILE.encode()}


def test_no_byte_of_the_document_or_its_name_stays(output: Path, patient_folder: Path) -> None:
    words = own_words(output, patient_folder.parent / "control") | NAMES
    assert len(words) > 15
    shutil.copy(output / "evalkit.sqlite", output / MOVED_SQLITE_FILE)  # as after a move to PostgreSQL
    assert {"evalkit.sqlite", MOVED_SQLITE_FILE} <= remembering(output, words).keys()
    screen = ReviewSession(
        open_folder(output), "dr_lee", "a tab that is open meanwhile"
    )  # its connection keeps the write-ahead log alive
    screen.load_queue_page()
    (done,) = purge(open_folder(output), [DOC], purged_at=LATER)
    assert (output / "evalkit.sqlite-wal").exists()
    assert remembering(output, words) == {}
    screen.close()
    assert remembering(output, words) == {}
    assert {name.partition("/")[0] for name in done.removed_files} == {
        *(
            "document_bundles",
            "results",
            "extractions",
            "sme_packets",
            "reviews",
            "ground_truth",
            "seeded",
            MOVED_SQLITE_FILE,
        ),
    }
    assert done.deleted_row_counts.keys() >= {
        "documents",
        "cases",
        "closings",
        "drafts",
        "deferrals",
        "calls",
        "production",
        "draws",
    }
    assert done.digested_review_count == 5
    assert any(FILE in line for line in done.remaining_traces)


def test_what_is_about_others_stays_as_it_was(output: Path) -> None:
    before = read_output_files(output)
    purge(open_folder(output), [DOC], purged_at=LATER)
    after = read_output_files(output)
    shared = {"production.json", "draws/0002.json", *(name for name in before if name.startswith("runs/"))}
    gone = before.keys() - after.keys()
    assert all(DOC in name for name in gone)
    assert {name for name in after.keys() - before.keys() if not name.startswith("changes/")} == {"purged/0001.json"}
    assert {name for name in after.keys() & before.keys() if after[name] != before[name]} == shared
    assert after["production.json"]["labels"].keys() == {OTHER}
    assert read_probability_by_eligible_doc_id(open_folder(output))["quest_cbc"] == 0.75
    index = open_index(output)
    assert [call.answer for call in index.call_journal.find_calls("q" + "ff" * 32)] == ["somebody else"]
    index.close()
    assert {one.doc_id for one in read_study(output).documents} == {OTHER, "quest_cbc", "requisition"}


def test_the_record_has_the_digests_of_every_review_and_no_name(output: Path) -> None:
    files = open_folder(output)
    digests = {path.read_bytes() for path in (output / "reviews").rglob("*.json") if DOC in str(path)}
    sha256 = files.read_json(f"results/{DOC}.json")["sha256"]
    purge(open_folder(output), [DOC], purged_at=LATER)
    (record,) = read_purge_records(files)
    kept = {review.sha256 for chain in record.chains for review in chain.reviews}
    assert kept == {hashlib.sha256(one).hexdigest() for one in digests}
    assert {chain.case for chain in record.chains} == {"", ".second", ".adjudication"}
    assert [one.reviewer for one in record.chains[0].reviews] == ["dr_first"] * 3
    assert (record.sha256, record.purged_at) == (sha256, LATER)
    assert [(one.draw, one.probability, one.was_drawn) for one in record.draws] == [(2, 0.5, True)]
    index = open_index(output)
    assert {one.case_id for one in index.view_log.list_all()} == {
        f"{sha256}{end}" for end in ("", ".second", ".adjudication")
    }
    index.close()


def test_records_are_chained(output: Path) -> None:
    purge(open_folder(output), [DOC, OTHER], purged_at=LATER)
    first, second = read_purge_records(open_folder(output))
    assert first.prev_sha256 is None
    assert second.prev_sha256 == hashlib.sha256((output / "purged/0001.json").read_bytes()).hexdigest()


def test_a_dry_run_names_what_goes_and_removes_nothing(output: Path) -> None:
    before = read_output_files(output)
    would = map_purge_file_names_by_doc_id(open_folder(output), [DOC])
    assert read_output_files(output) == before
    (done,) = purge(open_folder(output), [DOC], purged_at=LATER)
    assert would == {DOC: list(done.removed_files)}


@pytest.mark.parametrize("doc_id", ["nobody", "../reviews", "", f"{DOC}.second", "quest"])
def test_what_is_not_there_is_told_before_anything_goes(output: Path, doc_id: str) -> None:
    before = read_output_files(output)
    with pytest.raises(NotFound):
        purge(open_folder(output), [DOC, doc_id], purged_at=LATER)
    assert read_output_files(output) == before


def test_another_document_whose_name_begins_alike_stays(output: Path) -> None:
    files = open_folder(output)
    for folder in ("results", "document_bundles"):
        stored = files.read_json(f"{folder}/quest_cbc.json") | {"doc_id": f"{DOC}-1a2b3c4d", "sha256": "ab" * 32}
        files.write_json(f"{folder}/{DOC}-1a2b3c4d.json", stored)
    purge(open_folder(output), [DOC], purged_at=LATER)
    assert files.has_file(f"results/{DOC}-1a2b3c4d.json")


@pytest.mark.parametrize("notes", [f"see {FILE}", f"not as in:\n{DOC}"])
def test_a_colleague_who_named_the_document_is_pointed_to(output: Path, notes: str) -> None:
    helper = SMEReviewHelper(output, "dr_nine")
    helper.save_review("requisition", agrees=True, correction_notes=notes)
    helper.close()
    named, other = purge(open_folder(output), [DOC, OTHER], purged_at=LATER)
    assert any("reviews/requisition/0001.json" in line for line in named.remaining_traces)
    assert not any("names the document" in line for line in other.remaining_traces)


def test_purge_names_copies_that_evalkit_did_not_write(output: Path) -> None:
    copies = [f"results/{DOC}.json~", f"document_bundles/.{DOC}.json.swp", f"results/results/{DOC}.json"]
    copies += [f"copy/sme_packets/sme_packet_{DOC}.json", f"copy/reviews/{DOC}.second/0001.json"]
    for name in (
        *copies,
        "copy/reviews/requisition/0001.json",
        f"results/{DOC}-1a2b3c4d.json~",
        "results/notes on all.txt",
    ):
        (output / name).parent.mkdir(parents=True, exist_ok=True)
        (output / name).write_text("{}")
    (done,) = purge(open_folder(output), [DOC], purged_at=LATER)
    traces = [line.partition(",")[0] for line in done.remaining_traces if "did not write" in line]
    assert sorted(traces) == sorted(copies)


# ------------------------------------------------------------------------------------------------ people at work


def test_purge_names_open_case_and_its_session_saves_nothing(output: Path) -> None:
    case_id = "requisition"
    desk = ReviewSession(open_folder(output), "dr_lee", "tab")
    case = desk.open_and_claim_case(case_id)
    (done,) = purge(open_folder(output), [case_id], purged_at=NOW)
    assert done.open_case_notes == (f"dr_lee had {case_id} open",)
    for act in (
        lambda: desk.save_draft_and_get_time(case_id, case.draft.set_notes("unpurgeable")),
        lambda: desk.submit_review(case_id, case.draft, undeterminable_reason="unpurgeable"),
        lambda: desk.defer_case_and_get_time(case_id, case.draft, "unpurgeable"),
        lambda: desk.renew_claim(case_id),
    ):
        with pytest.raises(NotFound):
            act()
    desk.close()
    assert remembering(output, {b"unpurgeable", case_id.encode()}) == {}


def test_an_undo_brings_no_draft_back(output: Path) -> None:
    desk = ReviewSession(open_folder(output), "dr_lee", "tab")
    case = desk.open_and_claim_case("requisition")
    desk.submit_review("requisition", case.draft.set_notes("unpurgeable"), undeterminable_reason="unpurgeable")
    purge(open_folder(output), ["requisition"], purged_at=NOW)
    with pytest.raises(NotFound):
        desk.undo_last_submission_and_get_case_id()
    desk.close()
    assert b"unpurgeable" not in (output / "evalkit.sqlite").read_bytes()


# ---------------------------------------------------------------------------------------------- killed midway


def killed_at(number: int, output: Path) -> bool:
    """Purge in a process that kills itself at its ``number``-th change of a file or row; whether it came that far."""
    child = os.fork()
    if child == 0:
        steps = iter(range(number))

        def counted(real: Callable[..., Any]) -> Callable[..., Any]:
            def step(*args: Any, **given: Any) -> Any:
                if next(steps, None) is None:
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(*args, **given)

            return step

        os.unlink, os.rename = counted(os.unlink), counted(os.rename)
        os.replace, os.link, os.rmdir = counted(os.replace), counted(os.link), counted(os.rmdir)
        index = open_index(output)
        kind = type(index)
        kind.delete_document_rows, kind.vacuum = counted(kind.delete_document_rows), counted(kind.vacuum)
        purge(open_folder(output), [DOC], purged_at=LATER)
        os._exit(0)
    return os.waitpid(child, 0)[1] == signal.SIGKILL


@pytest.mark.stress
def test_killed_at_any_step_the_next_purge_finishes(patient_folder: Path, tmp_path: Path) -> None:
    words = own_words(patient_folder, patient_folder.parent / "control") | NAMES
    whole = tmp_path / "whole"
    shutil.copytree(patient_folder, whole)
    purge(open_folder(whole), [DOC], purged_at=LATER)
    with trying("a purge, killed") as tried:
        for number in range(200):
            output = tmp_path / f"killed{number}"
            shutil.copytree(patient_folder, output)
            if not killed_at(number, output):
                break
            tried.times += 1
            # Nobody has to know what it was that was killed: once its intent is written, any purge finishes it.
            begun = (output / "purging.json").exists()
            purge(open_folder(output), [] if begun else [DOC], purged_at=LATER)
            assert read_output_files(output) == read_output_files(whole), number
            assert remembering(output, words) == {}, number
            shutil.rmtree(output)
        assert tried.times > 10


def test_what_is_in_the_record_is_all_that_can_have_been_said(output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A review that is saved between a purge that was killed and the next would be erased without a trace."""
    create, packets = LocalOutputFolder.create_json_if_absent, []

    def noting(files: OutputFolder, name: str, value: Any) -> bool:
        packets.append([*(output / "sme_packets").glob(f"*{DOC}*")])
        return create(files, name, value)

    assert list((output / "sme_packets").glob(f"*{DOC}*"))
    monkeypatch.setattr(LocalOutputFolder, "create_json_if_absent", noting)
    purge(open_folder(output), [DOC], purged_at=LATER)
    assert packets == [[]]


def test_case_added_after_a_killed_purge_is_purged_too(output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(before: str, named: Sequence[str]) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(f"evalkit.pipeline.purge.deletion.{before}", interrupted)
            with pytest.raises(KeyboardInterrupt):
                purge(open_folder(output), named, purged_at=LATER)

    helper = SMEReviewHelper(output, "dr_first")
    helper.reopen(OTHER, "I must look again")
    helper.close()
    killed("_execute_purge", [OTHER])
    desk = ReviewSession(open_folder(output), "dr_first", "tab")
    case = desk.open_and_claim_case(OTHER)
    desk.submit_and_request_second_opinion(OTHER, mark_all_seen(case, case.draft), "is it unpurgeable?")
    desk.close()
    killed("SharedFiles.count_naming_files_by_kind", [])
    assert not list((output / "sme_packets").glob(f"*{OTHER}*"))
    purge(open_folder(output), [], purged_at=LATER)
    assert remembering(output, {OTHER.encode(), b"unpurgeable"}) == {}


def test_nothing_is_to_be_restored_that_a_killed_purge_removed(
    output: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("evalkit.store.OutputIndex.delete_document_rows", interrupted)
        with pytest.raises(KeyboardInterrupt):
            purge(open_folder(output), [OTHER], purged_at=LATER)
    assert not (output / f"sme_packets/sme_packet_{OTHER}.json").exists()
    index = index_rebuild.open_index(open_folder(output))
    assert {case_id.partition(".")[0] for case_id in index.lost_case_ids} == {OTHER}
    assert OTHER not in index.list_case_ids()  # or the screen would offer a case that cannot be opened
    index.close()
    (message,) = caplog.messages
    assert ("run `evalkit purge` without a name" in message, "from a backup" in message) == (True, False)
    purge(open_folder(output), [], purged_at=LATER)
    assert remembering(output, {OTHER.encode()}) == {}


def test_drafts_of_withdrawn_second_opinions_are_purged(output: Path) -> None:
    helper = SMEReviewHelper(output, "dr_first")
    helper.reopen(OTHER, "I must look again")
    helper.close()
    first = ReviewSession(open_folder(output), "dr_first", "tab")
    case = first.open_and_claim_case(OTHER)
    first.submit_and_request_second_opinion(OTHER, mark_all_seen(case, case.draft), "is it?")
    second = ReviewSession(open_folder(output), "dr_second", "tab 2")
    case = second.open_and_claim_case(f"{OTHER}.second")
    second.save_draft_and_get_time(f"{OTHER}.second", case.draft.set_notes("unpurgeable words"))
    second.release_case(f"{OTHER}.second")
    second.close()
    first.undo_last_submission_and_get_case_id()
    first.close()
    assert not (output / f"sme_packets/sme_packet_{OTHER}.second.json").exists()
    assert remembering(output, {b"unpurgeable words"})
    purge(open_folder(output), [OTHER], purged_at=LATER)
    assert remembering(output, {b"unpurgeable words", OTHER.encode()}) == {}


@pytest.mark.parametrize("is_withdrawn", [True, False])
def test_template_drafts_are_purged_with_their_statement(tmp_path: Path, is_withdrawn: bool) -> None:
    """The case bears the template's name: who purges the statement later would not find them."""
    output, one = tmp_path / "output", spoil_template(tmp_path, "first_patient", template_id="bank")
    files, index = open_folder(output), open_index(output)
    publish_template_case(files, index, one)
    index.drafts.save(StoredDraft(one.case_id, "dr_lee", "tab", "0" * 64, '{"notes": "unpurgeable"}', NOW))
    assert index.drafts.find_newest_draft(one.case_id, "dr_lee", "tab")
    if is_withdrawn:
        assert withdraw_packet_unless_frozen(files, index, one.case_id)
    else:
        other = spoil_template(tmp_path, "second_patient", seed=4, template_id="bank")
        assert other.case_id == one.case_id
        publish_template_case(files, index, other)
    assert index.drafts.find_newest_draft(one.case_id, "dr_lee", "tab") is None
    index.close()


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("named", [(), (DOC, OTHER)])
@pytest.mark.parametrize(
    "killed", ["SharedFiles.rewrite_files_without_documents", "add_remaining_traces", "OutputIndex.vacuum"]
)
def test_interrupted_purge_is_completed_in_labels_and_draws(
    output: Path, killed: str, named: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    files = open_folder(output)
    merge_stored_production_labels(files, {one: {"dominant_type": "Other"} for one in (DOC, OTHER, "a_third")})
    shares = {DOC: 0.5, OTHER: 0.25, "a_third": 0.125}
    stratum = Stratum(value="x", probability=shares, drawn=(OTHER,))
    number = len(read_all_draws(files)) + 1
    draw = Draw(by="type", drawn_at=NOW, strata=(stratum, Stratum(value="y", probability={DOC: 1.0}, drawn=())))
    files.create_json_if_absent(sample_draw_file_name(number), draw.model_dump(mode="json"))
    with monkeypatch.context() as patch:
        patch.setattr(f"evalkit.pipeline.purge.deletion.{killed}", interrupted)
        with pytest.raises(KeyboardInterrupt):
            purge(open_folder(output), [DOC, OTHER], purged_at=LATER)
    purge(open_folder(output), named, purged_at=LATER)
    assert not (output / "purging.json").exists()
    assert len(read_purge_records(files)) == 2
    assert not {DOC, OTHER} & read_stored_production_labels(files).keys()
    assert "a_third" in read_stored_production_labels(files)
    (left,) = read_all_draws(files)[number - 1].strata
    assert (dict(left.probability), left.drawn) == ({"a_third": 0.125}, ())
    drawn = {
        one.draw: one.was_drawn
        for record in read_purge_records(files)[-2:]
        for one in record.draws
        if one.draw == number
    }
    assert drawn == {number: True}
    assert [one.probability for one in read_purge_records(files)[-2].draws if one.draw == number] == [0.5, 1.0]


@pytest.mark.parametrize("batch_size", [1, 2, 200])
def test_a_purge_interrupted_twice_goes_on_with_its_names(
    output: Path, batch_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Labels and draws are rewritten after each batch: documents of an earlier batch are known to be purged too."""
    files, names = open_folder(output), ["quest_cbc", "requisition", OTHER, DOC]
    merge_stored_production_labels(files, {name: {"dominant_type": "Other"} for name in (*names, "a_fifth")})
    monkeypatch.setattr("evalkit.pipeline.purge.deletion._REGISTRY_BATCH_SIZE", batch_size)
    delete_rows = OutputIndex.delete_document_rows
    for last in (OTHER, DOC):
        with monkeypatch.context() as patch:
            patch.setattr(
                OutputIndex,
                "delete_document_rows",
                lambda index, doc_id, *rest, last=last: (
                    interrupted() if doc_id == last else delete_rows(index, doc_id, *rest)
                ),
            )
            with pytest.raises(KeyboardInterrupt):
                purge(open_folder(output), names, purged_at=LATER)
    with pytest.raises(NotFound):
        purge(open_folder(output), [*names, "mistyped"], purged_at=LATER)
    purge(open_folder(output), names, purged_at=LATER)
    assert not (output / "purging.json").exists()
    assert len(read_purge_records(files)) == len(names)
    assert list(read_stored_production_labels(files)) == ["a_fifth"]
    assert remembering(output, {name.encode() for name in names}) == {}


def test_a_document_run_again_is_no_part_of_the_old_purge(
    output: Path, samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = open_folder(output)
    with monkeypatch.context() as patch:
        patch.setattr("evalkit.pipeline.purge.deletion.add_remaining_traces", interrupted)
        with pytest.raises(KeyboardInterrupt):
            purge(files, ["requisition", OTHER], purged_at=LATER)
    labels = output.parent / "labels.csv"
    labels.write_text("doc_id,dominant_type\nrequisition,Other\n")
    evalkit.run([samples / "requisition.pdf"], output=output, workers=1, production=labels, even_purged=True)
    purge(open_folder(output), [], purged_at=LATER)
    assert "requisition" in read_stored_production_labels(files)


def test_a_run_beside_a_killed_purge_leaves_the_document_out(output: Path, patient_folder: Path) -> None:
    assert killed_at(8, output)
    assert (output / "purging.json").exists()
    run = evalkit.run([patient_folder.parent / "records" / FILE], output=output, even_purged=True)
    assert run.documents == ()
    assert "purged" in run.problems[0]


# ------------------------------------------------------------------------------------------------- afterwards


def test_purged_document_is_reimported_only_on_request(output: Path, patient_folder: Path) -> None:
    pdf = patient_folder.parent / "records" / FILE
    purge(open_folder(output), [DOC], purged_at=LATER)
    copy = output.parent / "another name.pdf"
    shutil.copy(pdf, copy)
    for run in (evalkit.run([copy], output=output), extract([copy], output=output)):
        assert run.documents == ()
        assert run.exit_status == 1
        assert "another name.pdf was purged on 2027-01-01" in run.problems[0]
    assert remembering(output, {b"another"}) == {}
    again = evalkit.run([copy], output=output, even_purged=True)
    assert [one.doc_id for one in again.documents] == ["another_name"]
    assert evalkit.run([copy], output=output).documents[0].resumed  # it was let in: nobody asks twice
    assert find_restored_purged_doc_ids(open_folder(output)) == ["another_name"]  # the test's purge lies in the future


def test_a_restored_backup_is_purged_again(output: Path, patient_folder: Path, tmp_path: Path) -> None:
    purge(open_folder(output), [DOC], purged_at=LATER)
    restored = tmp_path / "restored"
    shutil.copytree(patient_folder, restored)
    shutil.copytree(output / "purged", restored / "purged")
    assert find_restored_purged_doc_ids(open_folder(restored)) == [DOC]
    purge(open_folder(restored), find_restored_purged_doc_ids(open_folder(restored)), purged_at=LATER)
    assert remembering(restored, own_words(patient_folder, patient_folder.parent / "control") | NAMES) == {}
    assert find_restored_purged_doc_ids(open_folder(restored)) == []


def test_restored_unreadable_document_is_purged_again(tmp_path: Path) -> None:
    files = open_folder(tmp_path / "output")
    failed = {"code": "READER-DAMAGED", "message": "Zebulon.pdf is damaged", "remedy": "Print it."}
    result = {"schema_version": 1, "doc_id": "Zebulon", "sha256": "ab" * 32, "error": failed}
    files.write_json(result_file_name("Zebulon"), result)
    purge(files, ["Zebulon"], purged_at=LATER)
    files.write_json(result_file_name("Zebulon"), result)  # of an evalkit that noted no times there
    assert find_restored_purged_doc_ids(files) == ["Zebulon"]
    files.write_json(
        result_file_name("Zebulon"), result | {"times": {"finished_at": "2027-02-02T00:00:00Z"}}
    )  # let in again
    assert find_restored_purged_doc_ids(files) == []


def test_review_of_restored_document_does_not_prevent_purge(output: Path, patient_folder: Path) -> None:
    purge(open_folder(output), [OTHER], purged_at="2027-01-01T00:00:00+00:00")
    shutil.copytree(patient_folder, output, dirs_exist_ok=True)
    helper = SMEReviewHelper(output, "dr_first", clock=lambda: "2027-02-02T00:00:00+00:00")
    helper.reopen(OTHER, "to look again")
    helper.close()
    assert find_restored_purged_doc_ids(open_folder(output)) == [OTHER]


def test_review_after_reimport_survives_an_old_purge_record(output: Path) -> None:
    purge(open_folder(output), [DOC], purged_at="2026-02-02T00:00:00+00:00")
    sha256 = read_purge_records(open_folder(output))[0].sha256
    files = open_folder(output)
    for name in (
        result_file_name(OTHER),
        extraction_file_name(OTHER),
    ):  # as if its bytes were the purged ones, and no clock stood there
        files.write_json(name, files.read_json(name) | {"sha256": sha256, "times": {}})
    reindex(open_folder(output))
    (output / f"document_bundles/{OTHER}.json").unlink()
    assert find_restored_purged_doc_ids(open_folder(output)) == []  # for its review is newer
    shutil.rmtree(output / f"reviews/{OTHER}")
    assert find_restored_purged_doc_ids(open_folder(output)) == [OTHER]


def aged(output: Path, doc_id: str, at: datetime) -> None:
    """What was made of the document says that it was made then; the files are as young as a restored backup's."""
    files, said = open_folder(output), {"times": {"started_at": at.isoformat(), "finished_at": at.isoformat()}}
    for name in (result_file_name(doc_id), extraction_file_name(doc_id)):
        files.write_json(name, files.read_json(name) | said)
    reindex(open_folder(output))


def test_only_finished_old_documents_expire_on_request(output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime.now(UTC)
    assert find_expired_documents(open_folder(output), unchanged_since=now - timedelta(days=1)) == ExpiredDocuments(
        (), ()
    )
    # The patient's seeded case waits, and a drawn document: the others are closed or were never anybody's.
    listed, names = [], LocalOutputFolder.list_json_files
    with monkeypatch.context() as counted:
        counted.setattr(
            LocalOutputFolder, "list_json_files", lambda files, folder: listed.append(folder) or names(files, folder)
        )
        found = find_expired_documents(open_folder(output), unchanged_since=now + timedelta(days=1))
    assert found.finished == ("quest_cbc", OTHER)
    assert DOC in found.waiting
    assert listed.count("sme_packets") == 1, "by the purge, however many documents there are"
    aged(output, "quest_cbc", now - timedelta(days=400))
    assert find_expired_documents(open_folder(output), unchanged_since=now - timedelta(days=365)) == ExpiredDocuments(
        ("quest_cbc",), ()
    )
    aged(output, DOC, now - timedelta(days=400))

    def say(*words: str) -> Result:
        return CliRunner().invoke(app, ["purge", "--output", str(output), *words])

    monkeypatch.chdir(output.parent)
    (output.parent / "evalkit.toml").write_text("[retention]\ndays = 365\n")
    told = say("--expired")
    assert told.exit_code == 0, told.output
    assert "1 document would be purged; nothing was removed; give --yes to remove them" in told.stdout
    assert (output / "results/quest_cbc.json").exists()
    assert isinstance(say("--expired", "--older-than", "7").exception, UsageError)
    for beside in (("--older-than", "0"), ("--expired", "--yes"), ("--expired", "--dry-run")):
        refused = say("requisition", *beside).exception
        assert isinstance(refused, UsageError)
        assert refused.code == "PURGE-NAMED"
    assert (output / "results/requisition.json").exists()
    assert "36525" in say("--older-than", "800000").output, "the year -165 is none"
    aged(output, OTHER, now - timedelta(days=400))
    torn = output / f"reviews/{OTHER}/0001.json"
    kept = torn.read_bytes()
    torn.write_bytes(kept[:-9])
    assert f"{OTHER} may be old enough, but is kept: one of its reviews cannot be read" in say("--expired").stderr
    torn.write_bytes(kept)
    done = say("--expired", "--yes")
    assert "1 document purged" in done.stdout
    assert not (output / "results/quest_cbc.json").exists()
    assert (output / f"results/{DOC}.json").exists()
    assert (
        say("--older-than", "365").stdout
        == "0 documents would be purged; nothing was removed; give --yes to remove them\n"
    )
    (output.parent / "evalkit.toml").unlink()
    assert "it is not set" in str(say("--expired").exception)


def test_expired_document_reopened_before_its_purge_stays(output: Path) -> None:
    before = datetime.now(UTC) + timedelta(days=1)
    old = find_expired_documents(open_folder(output), unchanged_since=before).finished
    assert old == ("quest_cbc", OTHER)
    helper = SMEReviewHelper(output, "dr_first")
    helper.reopen(OTHER, "I must look again", base_revision=1)
    helper.close()
    (gone,) = purge(open_folder(output), ["quest_cbc"], purged_at=LATER, expired_ids=old, expired_before=before)
    assert gone.doc_id == "quest_cbc"
    assert (output / f"reviews/{OTHER}/0002.json").exists()
    helper = SMEReviewHelper(output, "dr_first")
    helper.save_review(OTHER, agrees=False, corrected_dominant_type="Clinical Note")
    helper.close()
    assert [
        one.doc_id for one in purge(open_folder(output), [], purged_at=LATER, expired_ids=old, expired_before=before)
    ] == [OTHER]


def test_document_reopened_while_purge_waits_for_lock_stays(output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = datetime.now(UTC) + timedelta(days=1)
    has_turn, is_asked_for = threading.Event(), threading.Event()

    def clock() -> str:  # the helper looks at it while it has the document's turn, and has written nothing yet
        has_turn.set()
        assert is_asked_for.wait(SECONDS)
        return datetime.now(UTC).isoformat()

    def asking(files: OutputFolder) -> AbstractContextManager[None]:
        is_asked_for.set()
        return hold_case_write_lock(files)

    def come_back() -> None:
        helper = SMEReviewHelper(output, "dr_first", clock=clock)
        helper.reopen(OTHER, "I must look again", base_revision=1)
        helper.close()

    monkeypatch.setattr("evalkit.pipeline.purge.deletion.hold_case_write_lock", asking)
    with ThreadPoolExecutor(1) as thread:
        expert = thread.submit(come_back)
        assert has_turn.wait(SECONDS)
        assert purge(open_folder(output), [], purged_at=LATER, expired_ids=[OTHER], expired_before=before) == []
        expert.result()
    assert (output / f"reviews/{OTHER}/0002.json").exists()
    assert not (output / "purging.json").exists()


def test_opinion_requested_during_a_purge_is_purged(output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def asking(files: OutputFolder) -> AbstractContextManager[None]:
        monkeypatch.setattr("evalkit.pipeline.purge.deletion.hold_case_write_lock", hold_case_write_lock)
        desk = ReviewSession(open_folder(output), "dr_first", "tab")
        case = desk.open_and_claim_case(OTHER)
        desk.submit_and_request_second_opinion(OTHER, mark_all_seen(case, case.draft), "is it unpurgeable?")
        desk.close()
        return hold_case_write_lock(files)

    helper = SMEReviewHelper(output, "dr_first")
    helper.reopen(OTHER, "I must look again")
    helper.close()
    monkeypatch.setattr("evalkit.pipeline.purge.deletion.hold_case_write_lock", asking)
    (done,) = purge(open_folder(output), [OTHER], purged_at=LATER)
    assert f"sme_packets/sme_packet_{OTHER}.second.json" in done.removed_files
    assert remembering(output, {b"unpurgeable"}) == {}
    assert {one.case for one in read_purge_records(open_folder(output))[0].chains} == {""}


def test_purging_a_document_named_none_keeps_other_packets(output: Path) -> None:
    files = open_folder(output)
    for folder in ("results", "document_bundles"):
        files.write_json(
            f"{folder}/None.json", files.read_json(f"{folder}/quest_cbc.json") | {"doc_id": "None", "sha256": "ab" * 32}
        )
    torn = output / "sme_packets/sme_packet_some_bank.statement_template.json"
    torn.write_text('{"schema_version": 1, "doc_')
    (done,) = purge(open_folder(output), ["None"], purged_at=LATER)
    assert torn.exists()
    assert done.removed_files == ("document_bundles/None.json", "results/None.json")


def test_the_folder_is_read_once_however_many_go(output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    doc_ids = [DOC, OTHER, "quest_cbc", "requisition"]
    listed, names, contents_of = [], LocalOutputFolder.list_json_files, LocalOutputFolder.iterate_files_recursively

    def listing(files: OutputFolder, folder: str) -> list[str]:
        listed.append(folder)
        return names(files, folder)

    def reading(files: OutputFolder, folder: str) -> Iterator[tuple[str, bytes]]:
        listed.append(f"all of {folder}")
        return contents_of(files, folder)

    monkeypatch.setattr(LocalOutputFolder, "list_json_files", listing)
    monkeypatch.setattr(LocalOutputFolder, "iterate_files_recursively", reading)
    assert list(map_purge_file_names_by_doc_id(open_folder(output), doc_ids)) == doc_ids
    assert listed.count("sme_packets") == 1
    purge(open_folder(output), doc_ids, purged_at=LATER)
    assert (listed.count("sme_packets"), listed.count("ground_truth"), listed.count("all of reviews")) == (2, 2, 1)


def test_a_run_that_is_writing_is_not_purged_under_its_hands(output: Path) -> None:
    with open_folder(output).hold_run_lock(), pytest.raises(UsageError, match="another run"):
        purge(open_folder(output), [DOC], purged_at=LATER)


def test_template_review_of_purged_statement_is_removed(tmp_path: Path) -> None:
    """A template's case bears the template's name; the template itself, which has a bank's words only, stays."""
    output, one = tmp_path / "output", spoil_template(tmp_path, "secret_name")
    files, index = open_folder(output), open_index(output)
    publish_template_case(files, index, one)
    files.write_json(
        template_review_file_name(one.case.template_id, 1),
        {"schema_version": 1, "statement_sha256": one.bundle.sha256, "template": ""},
    )
    files.write_json(
        template_review_file_name(one.case.template_id, 2), {"schema_version": 1, "statement_sha256": "another"}
    )
    index.close()
    SMEReviewHelper(output, reviewer="dr_lee").save_review(one.case_id, undeterminable="another bank's")
    purge(open_folder(output), [one.bundle.doc_id], purged_at=LATER)
    left = {path.relative_to(output).as_posix() for path in output.rglob("*") if path.is_file()}
    assert not {
        name for name in left if name.startswith(("document_bundles/", "sme_packets/", "reviews/", "ground_truth/"))
    }
    assert f"template_reviews/{one.case.template_id}/cycle_2.json" in left
    assert f"template_reviews/{one.case.template_id}/cycle_1.json" not in left
    assert f"templates/{one.case.template_id}.toml" in left


# ------------------------------------------------------------------------------------------------ in a bucket


def objects_of(s3: S3Server, bucket: str) -> dict[str, bytes]:
    name, _, prefix = bucket.removeprefix("s3://").partition("/")
    client = s3.client
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=name, Prefix=f"{prefix}/")
    keys = [found["Key"] for page in pages for found in page.get("Contents", ())]
    return {key.removeprefix(f"{prefix}/"): client.get_object(Bucket=name, Key=key)["Body"].read() for key in keys}


def comparable(objects: dict[str, bytes]) -> dict[str, Any]:
    """What two folders that were treated alike have in common: not the names of their schemas, clocks, nor chains."""
    own = ("database.json", "created_once.json", STRAY)
    objects = {key: content for key, content in objects.items() if not key.startswith("changes/")}
    return {key: without_clocks(json.loads(content)) for key, content in objects.items() if key not in own} | {
        key: key for key in objects if key in own
    }


def rows_of(postgresql: PostgreSQLServer, bucket: str) -> bytes:
    """All rows of the folder's schema, as text."""
    schema = open_folder(bucket).read_json("database.json")["schema"]
    with psycopg.connect(postgresql.url) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", [schema]).fetchall()
        rows = [str(connection.execute(f"SELECT * FROM {schema}.{table}").fetchall()) for (table,) in tables]
    return "\n".join(rows).encode()


STRAY = f"reviews/{DOC}/what the sister said.txt"


def put_into(bucket: str, made: Path, s3: S3Server) -> None:
    """The patient's folder as objects, an object that others put there, and the rows that the database has of it."""
    prefix = bucket.removeprefix("s3://hospital/")
    given = {path.relative_to(made).as_posix(): path.read_bytes() for path in made.rglob("*.json")}
    client = s3.client
    for key, content in {**given, STRAY: b"Zebulon"}.items():
        client.put_object(Bucket="hospital", Key=f"{prefix}/{key}", Body=content)
    reindex(open_folder(bucket))
    index = open_index(bucket)
    index.drafts.save(StoredDraft(DOC, "dr_lee", "tab", "0" * 64, '{"notes": "Zebulon"}', NOW))
    index.close()


def test_no_object_of_the_document_stays_in_a_bucket(
    patient_folder: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, s3: S3Server
) -> None:
    bucket = in_bucket("s3", request, monkeypatch)
    postgresql: PostgreSQLServer = request.getfixturevalue("postgresql")
    put_into(bucket, patient_folder, s3)
    stray, name = STRAY, bucket.removeprefix("s3://hospital/")
    others = SMEReviewHelper(bucket, "dr_nine")
    others.save_review("requisition", agrees=True, correction_notes=f"see {FILE}")
    others.close()
    words = own_words(patient_folder, patient_folder.parent / "control") | NAMES
    sought = re.compile(b"|".join(map(re.escape, sorted(words))), re.IGNORECASE)
    assert sought.search(rows_of(postgresql, bucket))
    assert [one.file for one in verify_integrity(open_folder(bucket)).faults] == [STRAY]
    before = objects_of(s3, bucket)

    (done,) = purge(open_folder(bucket), [DOC], purged_at=LATER)

    after = objects_of(s3, bucket)
    named = {"reviews/requisition/0001.json", "ground_truth/gt_requisition.json"}
    assert {key for key, content in after.items() if sought.search(key.encode() + content)} == named
    assert all(any(key in line for line in done.remaining_traces) for key in named)
    assert any("versions" in line for line in done.remaining_traces)
    assert stray in done.removed_files
    assert set(done.removed_files) == before.keys() - after.keys()
    assert all(DOC in key for key in done.removed_files)
    assert {name for name in after.keys() - before.keys() if not name.startswith("changes/")} == {"purged/0001.json"}
    assert not sought.search(rows_of(postgresql, bucket))
    assert verify_integrity(open_folder(bucket)).faults == ()
    assert find_expired_documents(
        open_folder(bucket), unchanged_since=datetime.now(UTC) - timedelta(days=1)
    ) == ExpiredDocuments((), ())
    assert (
        "quest_cbc"
        in find_expired_documents(open_folder(bucket), unchanged_since=datetime.now(UTC) + timedelta(days=1)).finished
    )
    s3.client.delete_object(Bucket="hospital", Key=f"{name}/reviews/requisition/0001.json")
    assert any("requisition" in fault.file for fault in verify_integrity(open_folder(bucket)).faults)


_PURGING = f"""
import os, signal, sys
from evalkit.pipeline.purge import purge
from evalkit.store import open_output_folder
from evalkit.store.bucket import BucketOutputFolder
from evalkit.store import OutputIndex

steps = iter(range(int(sys.argv[2])))

def step():
    if next(steps, None) is None:
        os.kill(os.getpid(), signal.SIGKILL)

request, erase, vacuum = BucketOutputFolder._call_client_on_object, OutputIndex.delete_document_rows, OutputIndex.vacuum
BucketOutputFolder._call_client_on_object = lambda *args, **given: (
    step() if args[2] in ("_pipe_file", "_rm_file") else None, request(*args, **given))[1]
OutputIndex.delete_document_rows = lambda *args: (step(), erase(*args))[1]
OutputIndex.vacuum = lambda *args: (step(), vacuum(*args))[1]
purge(open_output_folder(sys.argv[1], os.environ["EVALKIT_DATABASE"]), [{DOC!r}], purged_at={LATER!r})
"""
"""A purge in a process that kills itself at that change of an object or of rows."""


def purged_until(step: int, bucket: str) -> int:
    """What became of the process that purges until that step."""
    return subprocess.run([sys.executable, "-c", _PURGING, bucket, str(step)], check=False).returncode


@pytest.mark.stress
def test_killed_at_any_step_in_a_bucket_the_next_purge_finishes(
    patient_folder: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, s3: S3Server
) -> None:
    postgresql: PostgreSQLServer = request.getfixturevalue("postgresql")
    words = own_words(patient_folder, patient_folder.parent / "control") | NAMES
    sought = re.compile(b"|".join(map(re.escape, sorted(words))), re.IGNORECASE)
    unfinished = 0

    def filled() -> str:
        place = in_bucket("s3", request, monkeypatch)
        put_into(place, patient_folder, s3)
        return place

    bucket = filled()
    assert purged_until(10**6, bucket) == 0
    whole = comparable(objects_of(s3, bucket))
    with trying("a purge in a bucket, killed") as tried:
        while True:
            bucket = filled()
            before = comparable(objects_of(s3, bucket))
            ended = purged_until(tried.times, bucket)
            if ended == 0:
                break
            assert ended == -signal.SIGKILL
            begun = open_folder(bucket).has_file("purging.json")
            unfinished += begun
            purge(open_folder(bucket), [] if begun else [DOC], purged_at=LATER)
            after = comparable(objects_of(s3, bucket))
            assert after == whole, tried
            assert not [key for key, content in after.items() if sought.search(f"{key} {content}".encode())], tried
            assert not sought.search(rows_of(postgresql, bucket)), tried
            assert verify_integrity(open_folder(bucket)).faults == (), tried
            others = {key for key in before if OTHER in key or "quest_cbc" in key or "requisition" in key}
            assert {key: before[key] for key in others} == {key: after[key] for key in others}, tried
            tried.times += 1
        assert unfinished > 10
