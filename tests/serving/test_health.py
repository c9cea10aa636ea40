"""The health check: a folder that can be used, one that cannot, and one that never answers."""

import asyncio
import os
import threading
import time
from pathlib import Path

import pytest
from places import open_folder

from evalkit.review.roster import ReviewerRoster
from evalkit.serving import health
from evalkit.serving.health import HealthCheck
from evalkit.store import OutputIndex


@pytest.fixture
def output(tmp_path: Path) -> Path:
    ReviewerRoster(open_folder(tmp_path / "output")).add_reviewer_or_replace_code("dr_lee")
    return tmp_path / "output"


def is_usable(output: Path) -> bool:
    return asyncio.run(HealthCheck(open_folder(output)).is_output_usable())


def test_a_folder_that_can_be_used_is_healthy(output: Path) -> None:
    assert is_usable(output), "there was no run yet"
    OutputIndex(open_folder(output)).close()
    assert is_usable(output)


def test_a_damaged_roster_or_database_is_not_healthy(output: Path) -> None:
    OutputIndex(open_folder(output)).close()
    database, roster = output / "evalkit.sqlite", output / "reviewers.json"
    before = database.read_bytes()
    database.write_bytes(b"no database at all" * 1000)
    assert not is_usable(output)
    database.write_bytes(before)
    assert is_usable(output)
    roster.write_text("{}")
    assert not is_usable(output)


def test_a_folder_that_is_gone_or_read_only_is_not_healthy(output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check = HealthCheck(open_folder(output))
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK)  # as on a disk that is mounted read-only
    assert not asyncio.run(check.is_output_usable())
    monkeypatch.undo()
    output.rename(output.with_name("elsewhere"))
    assert not is_usable(output)


def test_many_probes_cause_one_check(output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checks, now = [], [100.0]
    monkeypatch.setattr(health.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(
        HealthCheck, "_check_output", lambda self: (checks.append(now[0]), setattr(self, "_is_usable", True))
    )
    check = HealthCheck(open_folder(output))

    async def probe() -> list[bool]:
        return await asyncio.gather(*(check.is_output_usable() for _ in range(100)))

    for now[0] in (100.0, 104.9, 105.0):
        assert asyncio.run(probe()) == [True] * 100
    assert checks == [100.0, 105.0]


def test_a_check_that_hangs_holds_up_no_probe(output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    released, threads = threading.Event(), threading.active_count()
    monkeypatch.setattr(health, "_CHECK_TIMEOUT", 0.3)
    monkeypatch.setattr(health, "_CHECK_INTERVAL", 0.0)
    monkeypatch.setattr(
        HealthCheck, "_check_output", lambda self: (released.wait(60), setattr(self, "_is_usable", True))
    )
    check = HealthCheck(open_folder(output))

    async def probe() -> list[bool]:
        first = await asyncio.gather(*(check.is_output_usable() for _ in range(20)))
        start = time.monotonic()
        return [*first, await check.is_output_usable(), time.monotonic() - start < 0.2]

    try:
        assert asyncio.run(probe()) == [False] * 21 + [True]
        assert threading.active_count() == threads + 1
        (thread,) = [thread for thread in threading.enumerate() if thread is check._thread]
        assert thread.daemon, "it must not keep the server from ending"
    finally:
        released.set()
    check._thread.join()
    assert asyncio.run(check.is_output_usable())
