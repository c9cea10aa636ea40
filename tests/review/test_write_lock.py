"""Who waits for whom: writers to one document, and whoever works with the whole folder; nobody else."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest
from patience import SECONDS
from places import open_folder

from evalkit.errors import StoreError
from evalkit.review.write_lock import hold_case_write_lock


@contextmanager
def waiting(turn: AbstractContextManager[None]) -> Iterator[threading.Event]:
    """Somebody who wants that turn; the event says that they had it."""
    had = threading.Event()

    def take() -> None:
        with turn:
            had.set()

    thread = threading.Thread(target=take)
    thread.start()
    yield had
    thread.join(10)
    assert had.is_set()


@pytest.mark.parametrize(
    ("held", "wanted"),
    [
        ("scan", "scan"),
        ("scan", "scan.second"),
        ("scan.extraction", "scan"),
        ("scan", "scan-0a1b2c3d"),  # a seeded case that shows its pages
        ("scan-0a1b2c3d", "scan-0a1b2c3d-4e5f6a7b.second"),
        (None, "scan"),
        ("scan", None),
        (None, None),
    ],
)
def test_what_can_follow_from_each_other_waits(tmp_path: Path, held: str | None, wanted: str | None) -> None:
    turn = partial(hold_case_write_lock, open_folder(tmp_path))
    with ExitStack() as holding:
        holding.enter_context(turn(held))
        with waiting(turn(wanted)) as had:
            assert not had.wait(0.05)
            holding.close()


@pytest.mark.parametrize("wanted", ["fax", "scan_0a1b2c3d", "scan-0a1b2c3"])
def test_other_documents_do_not_wait(tmp_path: Path, wanted: str) -> None:
    with (
        hold_case_write_lock(open_folder(tmp_path), "scan"),
        waiting(hold_case_write_lock(open_folder(tmp_path), wanted)) as had,
    ):
        assert had.wait(SECONDS)


def test_folder_lock_is_not_starved_by_document_locks(tmp_path: Path) -> None:
    """Somebody is always writing to some document, and still there is a turn for all of them."""
    done = threading.Event()

    def come_and_go(number: int) -> None:
        while not done.wait(0.001):
            with hold_case_write_lock(open_folder(tmp_path), f"case_{number}"):
                done.wait(0.01)

    others = [threading.Thread(target=come_and_go, args=(number,)) for number in range(6)]
    for other in others:
        other.start()
    try:
        with waiting(hold_case_write_lock(open_folder(tmp_path))) as had:
            assert had.wait(SECONDS)
    finally:
        done.set()
        for other in others:
            other.join()


@contextmanager
def forked(doing: Callable[[], None]) -> Iterator[int]:
    """A process that does that and then does nothing more, ended in the end; its id, once it has done it."""
    done, told = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            doing()
            os.write(told, b".")
            signal.pause()
        finally:
            os._exit(1)
    try:
        assert os.read(done, 1) == b"."
        yield child
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(done)
        os.close(told)


def test_forked_process_does_not_hold_the_lock(tmp_path: Path) -> None:
    """A run that begins its readers while somebody saves hands them the open file, for as long as they live."""
    with ExitStack() as holding:
        holding.enter_context(hold_case_write_lock(open_folder(tmp_path), "scan"))
        with forked(lambda: None), waiting(hold_case_write_lock(open_folder(tmp_path), "scan")) as had:
            assert not had.wait(0.05)
            holding.close()
            assert had.wait(SECONDS)


@pytest.mark.parametrize("held", ["scan", None])
def test_who_is_killed_has_nothing_any_more(tmp_path: Path, held: str | None) -> None:
    turns = ExitStack()
    mine = waiting(hold_case_write_lock(open_folder(tmp_path), "scan"))
    with forked(lambda: turns.enter_context(hold_case_write_lock(open_folder(tmp_path), held))) as holder, mine as had:
        assert not had.wait(0.05)
        os.kill(holder, signal.SIGKILL)
        assert had.wait(SECONDS)


def test_a_folder_without_locks_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "fcntl", refuse)
    with pytest.raises(StoreError, match="No locks available"), hold_case_write_lock(open_folder(tmp_path), "scan"):
        pass
