"""From ``evalkit.sqlite`` to PostgreSQL: all of it, or nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from commands import evalkit_command
from places import open_folder, open_index
from review.conftest import Build, Workspace
from servers.postgresql import PASSWORD, PostgreSQLServer

from evalkit.errors import StoreError, UsageError
from evalkit.review.index_rebuild import move_database, reindex
from evalkit.store import CaseClaim, CaseView, ColleagueReply, Deferral, ModelCall, OutputIndex, QueuePlace, StoredDraft

NOW, LATER = "2025-01-02T00:00:00+00:00", "2099-01-02T00:15:00+00:00"
CALL = ModelCall("q", "d", "v2", "m", NOW, 1.5, '{"ä": 1}', None, 1, 2, 3, 4, "0.0100")


@pytest.fixture
def worked_on(build: type[Build], workspace: Workspace) -> Path:
    """A folder with two cases and a row in each table."""
    for case_id in ("a", "b"):
        workspace.publish(build.single("Other"), [build.issue()], doc_id=case_id)
    lee = workspace.helper()
    lee.save_review("b", undeterminable="illegible")
    lee.close()
    workspace.index.upsert_document_and_mark_replaced(
        {"doc_id": "a", "file_path": "/Ä.pdf", "sha256": "s", "replaced": True}
    )
    workspace.index.claims.acquire_or_get_live_claim(CaseClaim("a", "dr_lee", "tab", NOW, LATER), now=NOW)
    workspace.index.drafts.save(StoredDraft("a", "dr_lee", "tab", "0" * 64, "{}", NOW))
    workspace.index.deferrals.save(Deferral("a", "dr_kim", "why", NOW))
    workspace.index.queue_places.save(QueuePlace("dr_lee", "{}", "a"))
    workspace.index.replies.save(ColleagueReply("a", "dr_kim", "dr_lee", "because", NOW))
    for _ in range(3):
        workspace.index.call_journal.add_call(CALL)
    for case_id in ("a", "b"):
        workspace.index.view_log.save(CaseView(case_id, "dr_lee", NOW))
    workspace.index.call_journal.get_or_mark_last_call_before_run()
    workspace.index.close()
    return workspace.root


def everything(index: OutputIndex) -> Any:
    return (
        index.list_documents(),
        index.list_cases_worst_first(),
        index.count_closed_cases(reviewer="dr_lee"),
        index.claims.map_live_claims_by_case_id(NOW),
        index.drafts.find_newest_draft("a", "dr_lee", "tab"),
        index.deferrals.list_all(),
        index.queue_places.find("dr_lee"),
        index.replies.list_replies("dr_kim"),
        index.call_journal.find_calls("q"),
        index.call_journal.get_or_mark_last_call_before_run(),
        index.review_heads.list_all(),
        index.view_log.list_all(),
    )


def seen(folder: Path, url: str | None = None) -> Any:
    with open_index(folder, url) as index:
        return everything(index)


def test_everything_is_there_and_goes_on(worked_on: Path, postgresql: PostgreSQLServer) -> None:
    before = seen(worked_on)
    moved = move_database(open_folder(worked_on), postgresql.url)
    assert moved == {
        **dict.fromkeys(
            ("documents", "closings", "claims", "drafts", "deferrals", "fresh", "heads", "places", "replies"), 1
        ),
        "cases": 2,
        "calls": 3,
        "views": 2,
    }
    assert seen(worked_on, postgresql.url) == before
    assert not list(worked_on.glob("evalkit.sqlite"))
    assert (worked_on / "evalkit.sqlite.moved").stat().st_mode & 0o077 == 0
    index = open_index(worked_on, postgresql.url)
    index.call_journal.add_call(CALL)  # its number is the next one
    assert len(index.call_journal.find_calls("q", after_call_number=3)) == 1
    index.view_log.save(CaseView("a", "dr_kim", LATER))
    assert [one.opened_at for one in index.view_log.list_all()] == [NOW, NOW, LATER]
    index.close()


def test_where_nothing_was_numbered_counting_begins_at_one(tmp_path: Path, postgresql: PostgreSQLServer) -> None:
    open_index(tmp_path).close()
    move_database(open_folder(tmp_path), postgresql.url)
    index = open_index(tmp_path, postgresql.url)
    index.call_journal.add_call(CALL)
    assert (
        len(index.call_journal.find_calls("q", after_call_number=0)),
        len(index.call_journal.find_calls("q", after_call_number=1)),
    ) == (1, 0)
    index.view_log.save(CaseView("a", "dr_kim", NOW))
    index.close()


def test_by_the_command_line_and_back_to_work(
    worked_on: Path, postgresql: PostgreSQLServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("move-database", "--output", worked_on)
    refused = evalkit_command(*words)
    assert refused.returncode == 2
    assert "no PostgreSQL database is set" in refused.stderr
    monkeypatch.setenv("EVALKIT_DATABASE", postgresql.url)
    done = evalkit_command(*words)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("16 rows of 12 tables moved")
    assert PASSWORD not in done.stdout + done.stderr
    again = evalkit_command(*words)
    assert again.returncode == 2
    assert "already in PostgreSQL" in again.stderr


def test_nothing_moves_while_somebody_has_it_open(worked_on: Path, postgresql: PostgreSQLServer) -> None:
    reader = open_index(worked_on)
    before = everything(reader)
    with pytest.raises(StoreError, match="another process has") as refused:
        move_database(open_folder(worked_on), postgresql.url)
    assert refused.value.code == "STORE-BUSY"
    assert everything(reader) == before
    reader.close()
    assert not (worked_on / "database.json").exists()
    move_database(open_folder(worked_on), postgresql.url)


def test_a_server_that_breaks_off_leaves_everything_as_it_was(
    worked_on: Path, postgresql: PostgreSQLServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, schemas = seen(worked_on), _schemas(postgresql)

    def fails(*_: Any) -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr("evalkit.store.postgresql.try_record_schema_name", fails)
        with pytest.raises(KeyboardInterrupt):
            move_database(open_folder(worked_on), postgresql.url)
    assert _schemas(postgresql) == schemas
    assert seen(worked_on) == before


def test_a_move_that_was_killed_before_its_last_step_is_ended(
    worked_on: Path, postgresql: PostgreSQLServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = seen(worked_on)

    def killed(*_: Any) -> Path:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(Path, "rename", killed)
        with pytest.raises(KeyboardInterrupt):
            move_database(open_folder(worked_on), postgresql.url)
    move_database(open_folder(worked_on), postgresql.url)
    assert seen(worked_on, postgresql.url) == before
    monkeypatch.setenv("EVALKIT_DATABASE", postgresql.url)
    assert reindex(open_folder(worked_on))[1] == 2


def test_there_must_be_something_to_move(tmp_path: Path, postgresql: PostgreSQLServer) -> None:
    with pytest.raises(UsageError, match="not created yet"):
        move_database(open_folder(tmp_path), postgresql.url)


def _schemas(server: PostgreSQLServer) -> list[str]:
    return server.execute("SELECT nspname FROM pg_namespace ORDER BY 1", "evalkit").split()
