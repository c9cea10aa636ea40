"""The chain of changes: honest work is no fault, whatever is changed behind its back is."""

import json
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from places import open_folder

from evalkit.errors import StoreError
from evalkit.store import LocalOutputFolder, change_chain
from evalkit.store.change_chain import ChainComparison, compare_with_chain, read_chain

RESULT, ROSTER, PACKET = "results/smith_john.json", "reviewers.json", "sme_packets/sme_packet_smith_john.json"
SILVER = {"schema_version": 1, "ground_truth_source": "AUTO_ACCEPTED"}


class Killed(Exception):
    """Stands for the end of the process."""


def compare(folder: Path) -> ChainComparison:
    files = LocalOutputFolder(folder)
    state = read_chain(files)
    comparison = compare_with_chain(files, state)
    comparison.faults += state.faults
    return comparison


def record(**fields: Any) -> dict[str, Any]:
    return {"schema_version": 1, **fields}


def test_a_link_names_no_document(tmp_path: Path) -> None:
    files = LocalOutputFolder(tmp_path)
    with files.hold_run_lock():
        files.write_json(RESULT, record())
        files.write_json("runs/first/results/smith_john.json", record())
    links = b"".join(path.read_bytes() for path in (tmp_path / "changes").iterdir())
    assert b"smith" not in links
    assert compare(tmp_path).recorded_count == 2


def test_a_run_appends_links_in_batches(tmp_path: Path) -> None:
    files = LocalOutputFolder(tmp_path)
    with files.hold_run_lock():
        for number in range(2100):
            files.write_json(f"results/d{number}.json", record())
    assert len(list((tmp_path / "changes").iterdir())) == 4  # its beginning, two batches, its end
    assert compare(tmp_path).recorded_count == 2100


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [(RESULT, b"{}", "changed"), (ROSTER, None, "missing"), (RESULT, None, "missing"), (PACKET, b"{ }", "changed")],
)
def test_a_changed_or_removed_file_is_named(tmp_path: Path, name: str, content: bytes | None, what: str) -> None:
    files = LocalOutputFolder(tmp_path)
    for written in (RESULT, ROSTER, PACKET):
        files.write_json(written, record(review_status="pending"))
    assert compare(tmp_path).faults == []
    if content is None:
        (tmp_path / name).unlink()
        files.write_json("document_bundles/smith_john.json", record())  # so that its name is known
    else:
        (tmp_path / name).write_bytes(content)
    ((fault_name, fault),) = compare(tmp_path).faults
    assert fault_name == name
    assert what in fault


def test_a_packets_status_is_no_change(tmp_path: Path) -> None:
    files = LocalOutputFolder(tmp_path)
    files.write_json(PACKET, record(review_status="pending"))
    files.write_json(PACKET, record(review_status="in_review"), is_recorded=False)
    assert compare(tmp_path).faults == []


def test_reviews_may_replace_an_accepted_answer(tmp_path: Path) -> None:
    files = LocalOutputFolder(tmp_path)
    name = "ground_truth/gt_a.json"
    files.write_json(name, SILVER)
    files.create_json_if_absent("reviews/a/0001.json", record())
    files.write_json(name, record(ground_truth_source="SME_CORRECTED"))
    assert compare(tmp_path).faults == []
    (tmp_path / name).unlink()
    assert compare(tmp_path).faults == []
    (tmp_path / "reviews/a/0001.json").unlink()
    assert [fault[0] for fault in compare(tmp_path).faults] == [name]


def test_a_changed_or_missing_link_is_named(tmp_path: Path) -> None:
    files = LocalOutputFolder(tmp_path)
    for number in range(3):
        files.write_json(f"results/d{number}.json", record())
    second = tmp_path / "changes/0002.json"
    content = second.read_bytes()
    second.write_bytes(content.replace(b"recorded_at", b"recorded_as"))
    assert "changes/0002.json" in dict(compare(tmp_path).faults)
    second.write_bytes(content.replace(b"Z", b"z"))
    assert "changes/0003.json" in dict(compare(tmp_path).faults)
    second.unlink()
    assert "changes/0002.json" in dict(compare(tmp_path).faults)


def test_who_is_many_links_behind_can_still_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_chain, "_MAX_ATTEMPTS", 3)
    behind, ahead = LocalOutputFolder(tmp_path), LocalOutputFolder(tmp_path)
    behind.write_json(RESULT, record())
    for number in range(5):
        ahead.write_json(f"results/d{number}.json", record())
    behind.write_json(RESULT, record(changed=1))
    assert compare(tmp_path).faults == []
    assert compare(tmp_path).unrecorded == {}


def test_a_damaged_newest_link_stops_no_work(tmp_path: Path) -> None:
    files = LocalOutputFolder(tmp_path)
    files.write_json(RESULT, record())
    files.write_json(PACKET, record())
    newest = max((tmp_path / "changes").iterdir())
    newest.write_bytes(b"torn")
    LocalOutputFolder(tmp_path).write_json(ROSTER, record())
    assert f"changes/{newest.name}" in dict(compare(tmp_path).faults)
    assert LocalOutputFolder(tmp_path).read_json(ROSTER) == record()


def test_an_older_folder_is_adopted_by_the_next_run(tmp_path: Path) -> None:
    files = LocalOutputFolder(tmp_path)
    for name in (RESULT, PACKET):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_bytes(json.dumps(record()).encode())
    assert len(compare(tmp_path).unrecorded) == 2
    with files.hold_write_lock():
        files.write_json(ROSTER, record())
    assert len(compare(tmp_path).unrecorded) == 2
    with files.hold_run_lock():
        files.write_json("results/b.json", record())
    comparison = compare(tmp_path)
    assert (comparison.unrecorded, comparison.recorded_count, comparison.faults) == ({}, 4, [])
    assert read_chain(files).adopted_count == 2


def test_an_added_file_is_named_unless_a_run_was_killed(tmp_path: Path) -> None:
    files = LocalOutputFolder(tmp_path)
    files.write_json(RESULT, record())
    with files.hold_run_lock():
        files.write_json("results/b.json", record())
        (tmp_path / "results/c.json").write_text("{}")
        assert compare(tmp_path).faults == []
    (tmp_path / "results/.nfs0001").write_text("")
    (tmp_path / "results/Thumbs.db").write_text("")
    assert [name for name, _ in compare(tmp_path).faults] == ["results/c.json"]


def test_an_added_run_is_named_though_another_command_was_killed(tmp_path: Path) -> None:
    files = LocalOutputFolder(tmp_path)
    with files.hold_run_lock():
        files.write_json("runs/first/run.json", record())
    LocalOutputFolder(tmp_path).changes.announce([ROSTER])
    (tmp_path / "runs/invented").mkdir()
    (tmp_path / "runs/invented/run.json").write_text("{}")
    assert compare(tmp_path).faults == [("runs/invented/run.json", "evalkit did not record that it wrote it")]
    with files.hold_run_lock():
        files.write_json("runs/second/run.json", record())
        assert compare(tmp_path).faults == []  # another run's record may just be written


def test_a_killed_run_is_no_fault_and_is_adopted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = LocalOutputFolder(tmp_path)
    with files.hold_run_lock():
        for name in ("results/a.json", "results/b.json", ROSTER):
            files.write_json(name, record(finished_at="2020-01-01T00:00:00Z"))
    killed = LocalOutputFolder(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(killed.changes, "_append_pending", lambda **_: None)
        with killed.hold_run_lock():
            killed.write_json("results/a.json", record(finished_at="2999-01-01T00:00:00Z"))
            killed.write_json("results/c.json", record(finished_at="2999-01-01T00:00:00Z"))
            killed.write_json(ROSTER, record(reviewers={}))  # no time in it: announced
            killed.write_json("results/kept.json", record())
            killed.remove_file("results/kept.json")
    assert compare(tmp_path).faults == []
    assert len(compare(tmp_path).unrecorded) == 4
    tampered = tmp_path / "results/b.json"
    content = tampered.read_bytes()
    tampered.write_bytes(content.replace(b"2020", b"2021"))
    assert [name for name, _ in compare(tmp_path).faults] == ["results/b.json"]
    tampered.write_bytes(content)
    with files.hold_run_lock():
        files.write_json("results/d.json", record())
    comparison = compare(tmp_path)
    assert (comparison.faults, comparison.unrecorded, comparison.recorded_count) == ([], {}, 5)


def test_a_purge_that_was_killed_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    LocalOutputFolder(tmp_path).write_json(RESULT, record())
    killed = LocalOutputFolder(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(killed.changes, "_append_pending", lambda **_: None)
        with killed.hold_run_lock():
            killed.changes.announce_removal([RESULT])
            killed.remove_file(RESULT)
    assert compare(tmp_path).faults == []
    finishing = LocalOutputFolder(tmp_path)
    with finishing.hold_run_lock():
        finishing.changes.announce_removal([RESULT, "reviews/smith_john/0001.json"])
    assert (compare(tmp_path).faults, compare(tmp_path).unrecorded) == ([], {})


def test_a_full_disk_at_the_end_of_a_change_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = LocalOutputFolder(tmp_path)
    files.write_json(ROSTER, record())

    def refuse(*_: object) -> bool:
        raise StoreError("the disk is full", code="STORE-FULL", remedy="Make room.")

    with monkeypatch.context() as patch:
        with files.hold_write_lock():
            files.create_json_if_absent("draws/0001.json", record())
            patch.setattr(files, "create_link_if_absent", refuse)  # it is stored: no error
        with pytest.raises(StoreError, match="full"):
            files.write_json(ROSTER, record(reviewers={}))  # nothing has changed yet
    assert files.read_json(ROSTER) == record()
    files.write_json("results/b.json", record())
    comparison = compare(tmp_path)
    assert (comparison.faults, comparison.unrecorded, comparison.recorded_count) == ([], {}, 3)


def test_runs_that_begin_at_the_same_moment_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_chain, "format_zulu_now", lambda: "2026-11-29T00:00:00.000Z")  # a coarse clock
    for turn in range(2):
        work(tmp_path, "killed run", [RESULT], turn)
    assert compare(tmp_path).faults == []


def test_a_process_that_runs_twice_is_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = LocalOutputFolder(tmp_path)
    with monkeypatch.context() as patch, files.hold_run_lock():
        patch.setattr(files.changes, "_append_pending", lambda **_: None)  # its end cannot be recorded
        files.write_json("results/b.json", record())
    LocalOutputFolder(tmp_path).write_json(RESULT, record())
    with files.hold_run_lock():
        files.write_json(RESULT, record(times="2999-01-01T00:00:00Z"))
        assert compare(tmp_path).faults == []


def test_writers_at_the_same_time_share_the_chain(output_location: Path | str) -> None:
    writer_count, barrier = 4, Barrier(4)
    anywhere = open_folder(output_location)

    def write(number: int) -> None:
        mine = open_folder(output_location)
        barrier.wait()
        for turn in range(5):
            mine.write_json(f"results/d{number}_{turn}.json", record())

    threads = [Thread(target=write, args=(number,)) for number in range(writer_count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    state = read_chain(anywhere)
    comparison = compare_with_chain(anywhere, state)
    assert (state.faults, comparison.faults, comparison.unrecorded) == ([], [], {})
    assert comparison.recorded_count == 20


NAMES = (RESULT, "results/b.json", PACKET, ROSTER, "ground_truth/gt_b.json", "converted/b.pdf", "runs/one/run.json")
OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["write", "create", "remove", "run", "killed run", "killed"]),
        st.lists(st.sampled_from(NAMES), max_size=4),
    ),
    min_size=1,
    max_size=12,
)


def work(folder: Path, kind: str, names: list[str], turn: int) -> None:
    """Do honest work with a process of its own, which is killed if its kind says so."""
    files = LocalOutputFolder(folder)
    if kind.startswith("killed"):
        files.changes._append_pending = lambda **_: None  # type: ignore[method-assign]
    moment = "2999-01-01T00:00:00Z" if kind == "killed run" else "2020-01-01T00:00:00Z"
    with files.hold_run_lock() if kind.endswith("run") else files.hold_write_lock():
        for name in names:
            if kind == "remove":
                files.remove_file(name)
            elif kind == "create":
                files.create_json_if_absent(name, SILVER | {"turn": turn, "times": moment})
            else:
                files.write_json(name, SILVER | {"turn": turn, "times": moment})


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(OPERATIONS, st.randoms(use_true_random=False))
def test_honest_work_is_no_fault_and_a_flipped_byte_is(
    tmp_path_factory: pytest.TempPathFactory, operations: list[tuple[str, list[str]]], random: Any
) -> None:
    folder = tmp_path_factory.mktemp("output")
    for turn, (kind, names) in enumerate(operations):
        work(folder, kind, names, turn)
        assert compare(folder).faults == [], (turn, kind)
    work(folder, "run", ["results/last.json"], 99)
    comparison = compare(folder)
    assert (comparison.faults, comparison.unrecorded) == ([], {})
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    path = random.choice(paths)
    content = bytearray(path.read_bytes())
    position = random.randrange(len(content) - 1)  # the last byte is a line break
    content[position] ^= 1 << random.randrange(8)
    path.write_bytes(content)
    name = path.relative_to(folder).as_posix()
    is_seen = name in {fault[0] for fault in compare(folder).faults}
    is_newest_link = path.parent.name == "changes" and path == max((folder / "changes").iterdir())
    is_status = bytes(content).find(b'"ground_truth_source": "AUTO_ACCEPTED"') < 0 and name.startswith("ground_truth")
    assert is_seen or is_newest_link or is_status or path.parent.name == "changes"
