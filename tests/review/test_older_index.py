"""The queue over the database file of an older evalkit, which SQLite alone has."""

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from evalkit.review.queue import QueueView
from evalkit.store import Index

LATER = "2099-01-01T00:00:00+00:00"


@pytest.fixture
def older(build: Any, desk: Any) -> Iterator[Path]:
    """An output folder whose database has none of the newer columns, with a case, a claim and a draft."""
    desk.publish(build.single("Genomic Report"), [build.issue()], doc_id="a")
    desk.index.close()
    path = desk.root / "evalkit.sqlite"
    database = sqlite3.connect(path)
    for name in ("worst", "listed", "asked", "unknown", "shows"):
        database.execute(f"DROP INDEX ix_cases_{name}")
    for table, column in (
        *(("cases", name) for name in ("standing", "is_hidden", "told", "told_severity", "told_type", "told_agents")),
        *(("cases", name) for name in ("created_at", "dominant_type", "agents", "source", "is_blind", "barred")),
        ("closings", "seconds_active"),
    ):
        database.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
    for column in ("folded_name", "folded_id"):
        database.execute(f"ALTER TABLE cases DROP COLUMN {column}")
    for table in ("views", "heads", "alembic_version"):
        database.execute(f"DROP TABLE {table}")
    database.execute("INSERT INTO claims VALUES ('a', 'dr_kim', 'tab', '2025', ?)", (LATER,))
    database.execute("INSERT INTO drafts VALUES ('a', 'dr_kim', 'tab', 'x', '{}', '2025')")
    database.execute("INSERT INTO closings VALUES ('z', 'dr_kim', '2025')")
    database.commit()
    database.close()
    return path


def test_an_older_index_keeps_what_it_has_and_learns_the_rest(older: Path, tab: Any, desk: Any) -> None:
    lee = tab("dr_lee")
    (row,) = lee.queue().rows
    assert (row.holder, row.dominant_type, row.agents) == ("dr_kim", "Genomic Report", ("V3",))
    assert row.created_at == "2025-02-01T10:00:00+00:00"
    index = Index(desk.root)
    assert index.drafts.newest("a", "dr_kim", "tab") is not None
    assert index.closed(reviewer="dr_kim") == 1
    index.close()


def test_a_row_whose_packet_is_torn_stands_in_the_queue_all_the_same(older: Path, tab: Any, desk: Any) -> None:
    (desk.root / "sme_packets/sme_packet_a.json").write_text("{")
    lee = tab("dr_lee")
    for _ in range(2):
        (row,) = lee.queue().rows
        assert (row.case_id, row.created_at, row.blocker) == ("a", "", 1)
    assert lee.queue(QueueView(sort="oldest")).matching == 1


def test_several_may_open_an_older_index_at_once(older: Path, desk: Any) -> None:
    with ThreadPoolExecutor(8) as threads:
        opened = list(threads.map(lambda _: Index(desk.root), range(8)))
    for index in opened:
        assert [row["case_id"] for row in index.cases()] == ["a"]
        index.close()
