"""The index is what the files say, however it was read and whatever became of a file."""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from places import open_folder, open_index
from review.conftest import Build, Workspace

from evalkit.errors import StoreError
from evalkit.pipeline.audit.verify import verify_integrity
from evalkit.review import index_rebuild as rebuilding
from evalkit.review.loaders import read_source_file_path
from evalkit.store import (
    CaseClaim,
    Deferral,
    OutputIndex,
    ReviewChainHead,
    StoredDraft,
    bundle_file_name,
    check_and_describe_database,
    packet_file_name,
    result_file_name,
    review_file_name,
)

CASES = [f"case_{number}" for number in range(5)]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """Five cases, one of which is decided, and two results; several processes read the cases."""
    monkeypatch.setattr(rebuilding, "_CHUNK_SIZE", 2)
    monkeypatch.setattr(rebuilding, "_MIN_PARALLEL_CHUNKS", 2)
    monkeypatch.setattr(rebuilding, "_MAX_WORKERS", 2)
    desk = Workspace(tmp_path / "output")
    for doc_id in CASES:
        desk.publish(Build.single("Genomic Report"), [Build.issue()], doc_id=doc_id)
    for doc_id in CASES[-2:]:
        result = Build.result(Build.single("Genomic Report"), [Build.issue()], doc_id)
        at = {"times": {"finished_at": "2025-02-01T10:00:00+00:00"}}
        desk.files.write_json(result_file_name(doc_id), result.model_copy(update=at).model_dump(mode="json"))
    desk.helper().save_review(CASES[0], corrected_dominant_type="Other")
    return desk


def test_several_processes_read_what_one_does(desk: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    truth = desk.truth(CASES[0])
    desk.files.remove_file(f"ground_truth/gt_{CASES[0]}.json")
    assert rebuilding.reindex(open_folder(desk.root)) == (2, 5)
    read = desk.index.list_cases_worst_first(), desk.index.list_documents(), desk.index.count_closed_cases()
    assert [row["case_id"] for row in read[0] if row["review_status"] == "completed"] == CASES[:1]
    assert desk.truth(CASES[0]) == truth
    monkeypatch.undo()
    assert rebuilding.reindex(open_folder(desk.root)) == (2, 5)
    assert (desk.index.list_cases_worst_first(), desk.index.list_documents(), desk.index.count_closed_cases()) == read


def damage_index(root: Path, name: str, definition: str) -> None:
    """Give an index the entries of another definition than it has."""
    with closing(sqlite3.connect(root / "evalkit.sqlite", isolation_level=None)) as connection:
        (statement,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (name,)).fetchone()
        connection.execute(f"DROP INDEX {name}")
        connection.execute(definition)
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_master SET sql = ? WHERE name = ?", (statement, name))


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("ix_cases_listed", "standing, blocker DESC, major DESC, minor DESC, case_id, task) WHERE standing < 0"),
        ("ix_cases_review_status", "review_status) WHERE case_id > 'case_1'"),
        ("ix_cases_worst", "kind, blocker DESC, major DESC, minor DESC, case_id)"),
    ],
)
@pytest.mark.parametrize("read_only", [True, False])
def test_a_damaged_search_index_is_rebuilt(
    desk: Workspace, caplog: pytest.LogCaptureFixture, name: str, columns: str, read_only: bool
) -> None:
    desk.index.claims.save(CaseClaim(CASES[1], "dr_grey", "tab", "2026-01-01", "2099-01-01"))
    desk.index.close()
    damage_index(desk.root, name, f"CREATE INDEX {name} ON cases ({columns}")
    assert "its search index is damaged" in describe_fault(desk.root)
    faults = verify_integrity(open_folder(desk.root)).faults
    assert [fault.remedy for fault in faults if fault.file == "evalkit.sqlite"]
    with caplog.at_level("WARNING"), rebuilding.open_index(open_folder(desk.root), read_only=read_only) as index:
        assert [row["case_id"] for row in index.list_cases_worst_first("pending")] == CASES[1:]
        assert index.case_list.count_by_status() == {"pending": 4, "completed": 1}
        assert index.claims.find(CASES[1])
    assert "the index was rebuilt from its rows" in caplog.text
    assert ("its search index is damaged" in describe_fault(desk.root)) == read_only
    rebuilding.reindex(open_folder(desk.root))
    assert describe_fault(desk.root) == ""


def describe_fault(root: Path) -> str:
    try:
        check_and_describe_database(open_folder(root))
    except StoreError as error:
        return error.message
    return ""


@pytest.mark.parametrize("limit", [2, 20_000])
def test_an_index_behind_its_bucket_is_corrected(
    bucket: str, limit: int, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rebuilding, "_MAX_LISTED_IN_BUCKET", limit)
    desk = Workspace(bucket)
    for doc_id in CASES[:4]:
        desk.publish(Build.single("Genomic Report"), [Build.issue()], doc_id=doc_id)
    desk.helper().save_review(CASES[0], corrected_dominant_type="Other")
    desk.index.upsert_case({"case_id": CASES[0], "review_status": "pending"})
    desk.index.review_heads.save(ReviewChainHead(CASES[0], 0, "of no review"))
    desk.index.remove_cases(CASES[1])
    desk.files.remove_file(packet_file_name(CASES[2]))
    with caplog.at_level("WARNING"), rebuilding.open_index(open_folder(bucket)) as index:
        waiting = {row["case_id"] for row in index.list_cases_worst_first("pending")}
    expected = {CASES[1], CASES[3]} if limit > 2 else {CASES[0], CASES[2], CASES[3]}
    assert waiting == expected
    assert ("1 packet had no case in the index, 1 case had no packet" in caplog.text) == (limit > 2)


def test_review_heads_are_rebuilt_and_never_reverted(desk: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebuilding, "_MIN_PARALLEL_CHUNKS", 9)  # in this process
    noted = desk.index.review_heads.list_all()
    assert [(one.case_id, one.revision) for one in noted] == [(CASES[0], 1)]
    desk.index.review_heads.save(ReviewChainHead(CASES[0], 0, "of the review before"))
    rebuilding.reindex(open_folder(desk.root))
    assert desk.index.review_heads.list_all() == noted
    (desk.root / f"reviews/{CASES[0]}/0001.json").unlink()
    rebuilding.reindex(open_folder(desk.root))
    assert desk.index.review_heads.list_all() == noted
    assert f"reviews/{CASES[0]}/0001.json" in [one.file for one in verify_integrity(open_folder(desk.root)).faults]


@pytest.mark.parametrize(
    "name", [packet_file_name(CASES[3]), f"reviews/{CASES[0]}/0001.json", result_file_name(CASES[4])]
)
def test_a_torn_file_is_named_and_no_row_is_lost(desk: Workspace, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    before = desk.index.list_cases_worst_first()
    path = desk.root / name
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(StoreError, match=name) as refused:
        rebuilding.reindex(open_folder(desk.root))
    assert refused.value.code == "STORE-TORN"
    assert desk.index.list_cases_worst_first() == before


def test_who_reads_has_ended_when_others_may_write_again(desk: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database that fails in the middle leaves no process behind that still makes files from old reviews."""
    others = set(multiprocessing.active_children())

    def full(_: OutputIndex, documents: Iterable[Any], cases: Iterable[Any], closings: Iterable[Any]) -> None:
        assert list(islice(cases, 1))
        assert set(multiprocessing.active_children()) - others
        raise StoreError("the disk is full", code="STORE-INDEX", remedy="Free some space.")

    monkeypatch.setattr(OutputIndex, "rebuild", full)
    with pytest.raises(StoreError) as refused:
        rebuilding.reindex(open_folder(desk.root))
    assert set(multiprocessing.active_children()) <= others
    assert refused.value.code == "STORE-INDEX"


def test_drafts_are_saved_while_the_folder_is_read(desk: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may take longer than SQLite lets another writer wait."""
    monkeypatch.setattr(rebuilding, "_MIN_PARALLEL_CHUNKS", 9)  # in this process
    written = []

    def reading(read: Callable[..., Any]) -> Callable[..., Any]:
        def also_writing(*given: Any, **named: Any) -> Any:
            other = open_index(desk.root)
            other.drafts.save(
                StoredDraft(CASES[1], "dr_lee", "tab", "0" * 64, f"{len(written)}", "2025-01-02T00:00:00")
            )
            other.close()
            written.append(read.__name__)
            return read(*given, **named)

        return also_writing

    for read in (rebuilding._read_document_rows, rebuilding._read_case_rows, rebuilding.read_result):
        monkeypatch.setattr(rebuilding, read.__name__, reading(read))
    assert rebuilding.reindex(open_folder(desk.root)) == (2, 5)
    assert {"_read_document_rows", "_read_case_rows"} <= set(written)
    assert desk.index.drafts.find_newest_draft(CASES[1], "dr_lee", "tab").draft == f"{len(written) - 1}"


def test_an_index_that_failed_is_rebuilt_by_the_same_process(desk: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    def torn(*_: Any) -> Any:
        raise StoreError("torn", code="STORE-TORN", remedy="none")

    row = {"doc_id": "a", "sha256": None, "file_path": None, "processed_at": None, "fingerprint": None}
    row |= {"decision": None, "error_code": None, "replaced": False}
    with pytest.raises(StoreError):
        desk.index.rebuild([row], map(torn, CASES), [])
    desk.index.rebuild([row], [], [])
    assert [one["doc_id"] for one in desk.index.list_documents()] == ["a"]
    assert desk.index.list_cases_worst_first() == []


def ended(*_: Any, **__: Any) -> list[Any]:
    os._exit(1)


def test_killed_rebuild_is_reported_and_loses_no_row(desk: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    before = desk.index.list_cases_worst_first()
    monkeypatch.setattr(rebuilding, "_read_case_rows", ended)
    with pytest.raises(StoreError, match="the index is unchanged") as refused:
        rebuilding.reindex(open_folder(desk.root))
    assert refused.value.code == "REINDEX-ENDED"
    assert desk.index.list_cases_worst_first() == before


@pytest.mark.parametrize(
    "path", ["/in/a.pdf", "/in/" + "\x01" * 4000, *("/in/" + "x" * more + "ü" * 4100 for more in (0, 1))]
)
def test_where_a_document_was_read_from_stands_at_its_beginning(tmp_path: Path, path: str) -> None:
    """Or behind what is looked at first, which may end within a sign of it."""
    files, name = open_folder(tmp_path), bundle_file_name("a")
    files.write_json(name, Build.bundle().model_copy(update={"file_path": path}).model_dump(mode="json"))
    assert read_source_file_path(files, "a") == path
    files.local_path(name).write_bytes(files.read_bytes(name).partition(b'"pages"')[0])
    if len(path) < 100:
        assert read_source_file_path(files, "a") == path
    else:
        with pytest.raises(StoreError, match=name):
            read_source_file_path(files, "a")


@pytest.mark.parametrize("head", [b"", b"[]", b'{"file_path": 3}', b'{"doc_id": "a", "file_path": "/in/a.p'])
def test_a_bundle_that_does_not_say_it_is_named(tmp_path: Path, head: bytes) -> None:
    files, name = open_folder(tmp_path), bundle_file_name("a")
    files.write_json(name, {})
    files.local_path(name).write_bytes(head)
    with pytest.raises(StoreError, match=name):
        read_source_file_path(files, "a")


# ------------------------------------------------------------------------------------------------ opening an index


def remove_rows(desk: Workspace, table: str, case_id: str) -> None:
    with closing(sqlite3.connect(desk.root / "evalkit.sqlite")) as connection, connection:
        connection.execute(f"DELETE FROM {table} WHERE case_id = ?", (case_id,))


def list_rows(desk: Workspace, *, read_only: bool) -> list[tuple[str, str]]:
    with rebuilding.open_index(open_folder(desk.root), read_only=read_only) as index:
        return [(row["case_id"], row["review_status"]) for row in index.list_cases_worst_first()]


@pytest.fixture
def settled_desk(desk: Workspace, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setattr(rebuilding, "_SETTLING_SECONDS", 0)
    list_rows(desk, read_only=False)  # the results of the fixture have no rows
    return desk


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize(
    ("table", "case_id", "words"),
    [("cases", CASES[2], "1 packet had no case"), ("heads", CASES[0], "1 case had a newer review")],
)
def test_rows_older_than_the_folder_are_corrected(
    settled_desk: Workspace, caplog: pytest.LogCaptureFixture, table: str, case_id: str, words: str, read_only: bool
) -> None:
    before = list_rows(settled_desk, read_only=True)
    remove_rows(settled_desk, table, case_id)
    stored = settled_desk.index.list_case_ids()
    caplog.clear()
    assert list_rows(settled_desk, read_only=read_only) == before
    assert words in caplog.text
    assert (settled_desk.index.list_case_ids() == stored) is (read_only or table == "heads")
    caplog.clear()
    assert list_rows(settled_desk, read_only=False) == before
    assert bool(caplog.text) is read_only


def test_an_agreeing_folder_is_opened_in_silence(settled_desk: Workspace, caplog: pytest.LogCaptureFixture) -> None:
    caplog.clear()
    for read_only in (True, False):
        assert len(list_rows(settled_desk, read_only=read_only)) == len(CASES)
    assert caplog.text == ""


def test_a_case_written_while_names_are_compared_is_not_lost(
    settled_desk: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    for reading in ("list_case_ids_with_packet", "list_ids_in_file_names"):
        original = getattr(rebuilding, reading)

        def read_before_another_process_writes(
            *folder: Any, _original: Callable[..., Any] = original, _doc_id: str = reading
        ) -> Any:
            read = _original(*folder)
            settled_desk.publish(Build.single("Genomic Report"), [Build.issue()], doc_id=_doc_id)
            return read

        with monkeypatch.context() as patch:
            patch.setattr(rebuilding, reading, read_before_another_process_writes)
            assert not rebuilding.IndexDifferences.find(settled_desk.files, settled_desk.index).lost_cases


def test_lost_packet_is_told_and_its_deferral_is_kept(
    settled_desk: Workspace, caplog: pytest.LogCaptureFixture
) -> None:
    settled_desk.index.deferrals.save(Deferral(CASES[3], "dr_lee", "ask the ward", "2026-11-27T08:00:00Z"))
    path = settled_desk.root / packet_file_name(CASES[3])
    content = path.read_bytes()
    path.unlink()
    assert CASES[3] not in dict(list_rows(settled_desk, read_only=False))
    assert "1 case had no packet" in caplog.text
    assert "Restore sme_packets/" in caplog.text
    path.write_bytes(content)
    assert dict(list_rows(settled_desk, read_only=False))[CASES[3]] == "deferred"


def test_reviewed_case_without_packet_and_row_is_told(
    settled_desk: Workspace, caplog: pytest.LogCaptureFixture
) -> None:
    (settled_desk.root / packet_file_name(CASES[0])).unlink()
    for table in ("cases", "heads"):
        remove_rows(settled_desk, table, CASES[0])
    caplog.clear()
    list_rows(settled_desk, read_only=True)
    assert "1 case had no packet" in caplog.text


def test_lost_result_is_told_and_its_row_is_kept(settled_desk: Workspace, caplog: pytest.LogCaptureFixture) -> None:
    (settled_desk.root / result_file_name(CASES[4])).unlink()
    for _ in range(2):
        caplog.clear()
        list_rows(settled_desk, read_only=False)
        assert "1 document had no result file" in caplog.text
        assert "Restore results/" in caplog.text
    assert CASES[4] in settled_desk.index.map_decisions_by_doc_id()


def test_lost_review_is_told_and_no_remedy_is_a_reindex(
    settled_desk: Workspace, caplog: pytest.LogCaptureFixture
) -> None:
    (settled_desk.root / review_file_name(CASES[0], 1)).unlink()
    for _ in range(2):
        caplog.clear()
        list_rows(settled_desk, read_only=True)
        assert "1 case had a review whose file is missing. Restore reviews/ from a backup" in caplog.text
        assert "reindex" not in caplog.text


def test_packet_without_a_case_id_hides_no_other(settled_desk: Workspace) -> None:
    (settled_desk.root / packet_file_name("")).write_text("{}")
    assert len(list_rows(settled_desk, read_only=True)) == len(CASES)
    assert rebuilding.reindex(open_folder(settled_desk.root)) == (2, len(CASES))


def test_torn_packet_that_nobody_began_is_written_again(settled_desk: Workspace) -> None:
    for case_id in CASES[:2]:
        (settled_desk.root / packet_file_name(case_id)).write_bytes(b"{")
        settled_desk.publish(Build.single("Genomic Report"), [Build.issue()], doc_id=case_id)
    assert (
        settled_desk.root / packet_file_name(CASES[0])
    ).read_bytes() == b"{"  # its review was made on the lost bytes
    assert settled_desk.files.read_json(packet_file_name(CASES[1]))["case_id"] == CASES[1]


def test_database_of_another_folder_is_refused_by_name(settled_desk: Workspace) -> None:
    with closing(sqlite3.connect(settled_desk.root / "evalkit.sqlite")) as connection, connection:
        connection.execute("UPDATE cases SET case_id = 'b_' || case_id")
        connection.execute("UPDATE documents SET doc_id = 'b_' || doc_id")
    for read_only in (True, False):
        with pytest.raises(StoreError, match="another output folder"):
            list_rows(settled_desk, read_only=read_only)
    with pytest.raises(StoreError, match="another output folder"):
        rebuilding.reindex(open_folder(settled_desk.root))


@pytest.mark.parametrize("read_only", [True, False])
def test_unreadable_packet_is_counted_and_hides_no_other(
    settled_desk: Workspace, caplog: pytest.LogCaptureFixture, read_only: bool
) -> None:
    (settled_desk.root / packet_file_name(CASES[1])).write_bytes(b"{")
    settled_desk.index.close()
    for path in settled_desk.root.glob("evalkit.sqlite*"):
        path.unlink()
    listed = [case_id for case_id, _ in list_rows(settled_desk, read_only=read_only)]
    assert sorted(listed) == sorted({*CASES} - {CASES[1]})
    assert "1 file could not be read" in caplog.text
    assert "claims, drafts" in caplog.text


def test_changes_of_an_index_that_is_only_read_are_refused(settled_desk: Workspace) -> None:
    remove_rows(settled_desk, "cases", CASES[2])
    with rebuilding.open_index(open_folder(settled_desk.root), read_only=True) as index, pytest.raises(StoreError):
        index.set_review_status(CASES[2], "completed")
