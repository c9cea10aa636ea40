"""output/: whole files or none, private, created once, and nothing outside the folder."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import shutil
import stat
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import open_folder, open_index
from pydantic import BaseModel

from evalkit.errors import EvalkitError, NotFound, StoreError, UsageError
from evalkit.pipeline import RunSummary
from evalkit.store import (
    CASE_COLUMNS,
    SAMPLE_DRAWS_FOLDER,
    LocalOutputFolder,
    OutputFolder,
    OutputIndex,
    bundle_file_name,
    encode_canonical_json,
    ground_truth_file_name,
    hash_canonical_json,
    list_numbered_files_or_raise_on_gap,
    packet_file_name,
    parse_stored_record,
    require_evalkit_output_folder,
    result_file_name,
    review_file_name,
    sample_draw_file_name,
)
from evalkit.store.local_folder import generate_process_temp_name

REVIEW = "reviews/doc2_6/0001.json"


@pytest.fixture
def files(tmp_path: Path) -> OutputFolder:
    return open_folder(tmp_path / "output")


@pytest.fixture
def anywhere(output_location: Path | str) -> OutputFolder:
    return open_folder(output_location)


@pytest.fixture
def no_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def everything(files: OutputFolder) -> list[Path]:
    return sorted(path for path in files.root.rglob("*") if path.is_file())


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_files_lie_where_the_contract_says() -> None:
    assert bundle_file_name("doc2_6") == "document_bundles/doc2_6.json"
    assert result_file_name("doc2_6") == "results/doc2_6.json"
    assert packet_file_name("doc2_6") == "sme_packets/sme_packet_doc2_6.json"
    assert review_file_name("doc2_6", 1) == REVIEW
    assert ground_truth_file_name("doc2_6") == "ground_truth/gt_doc2_6.json"


# ---------------------------------------------------------------------------------------------- writing, reading


@pytest.mark.parametrize("compact", [True, False])
def test_what_was_written_is_read(anywhere: OutputFolder, compact: bool) -> None:
    value = {"schema_version": 1, "name": "Ångström – 10³", "list": [1, 2.5, None, True]}
    anywhere.write_json("results/a.json", value, compact=compact)
    assert anywhere.read_json("results/a.json") == value
    assert anywhere.has_file("results/a.json")
    assert json.loads(anywhere.read_bytes("results/a.json")) == value
    anywhere.write_text("templates/a.toml", "bank = 'Ö'")
    assert anywhere.read_bytes("templates/a.toml") == "bank = 'Ö'\n".encode()


@pytest.mark.parametrize("at_most", [1, 4, 5, 8192])
def test_the_beginning_of_a_file_is_read_alone(anywhere: OutputFolder, at_most: int) -> None:
    anywhere.write_text("templates/a.toml", "bank")
    assert anywhere.read_bytes("templates/a.toml", at_most) == b"bank\n"[:at_most]
    with pytest.raises(NotFound):
        anywhere.read_bytes("templates/b.toml", at_most)


def test_writing_again_replaces(anywhere: OutputFolder) -> None:
    for number in (1, 2):
        anywhere.write_json("results/a.json", {"schema_version": 1, "number": number})
    assert anywhere.read_json("results/a.json")["number"] == 2
    assert anywhere.list_json_files("results") == ["results/a.json"]


def test_an_overwrite_leaves_one_file(files: OutputFolder) -> None:
    for number in (1, 2):
        files.write_json("notes/a.json", {"schema_version": 1, "number": number})
    assert everything(files) == [files.root / "notes/a.json"]


@pytest.mark.usefixtures("no_umask")
@pytest.mark.parametrize("how", ["write_json", "create_json_if_absent"])
def test_files_are_private_in_private_folders_whatever_the_umask(files: OutputFolder, how: str) -> None:
    getattr(files, how)(REVIEW, {"schema_version": 1})
    assert mode(files.local_path(REVIEW)) == 0o600
    folders = [files.root, *(path for path in files.root.rglob("*") if path.is_dir())]
    assert len(folders) >= 3
    assert {mode(folder) for folder in folders} == {0o700}


def test_the_ten_thousandth_numbered_file_follows_the_one_before(files: OutputFolder) -> None:
    names = [sample_draw_file_name(number) for number in range(1, 10_002)]
    for name in names:
        files.local_path(name).parent.mkdir(parents=True, exist_ok=True)
        files.local_path(name).touch()
    assert list_numbered_files_or_raise_on_gap(files, SAMPLE_DRAWS_FOLDER, sample_draw_file_name) == names
    files.remove_file(sample_draw_file_name(1001))
    with pytest.raises(StoreError, match=r"1001\.json is missing"):
        list_numbered_files_or_raise_on_gap(files, SAMPLE_DRAWS_FOLDER, sample_draw_file_name)


def test_removing_a_folder_leaves_its_neighbours(anywhere: OutputFolder) -> None:
    assert anywhere.remove_folder("reviews/doc") == []
    for name in ("reviews/doc/0001.json", "reviews/doc/0002.json", "reviews/doc2/0001.json", "reviews/doc.json"):
        anywhere.write_json(name, {"schema_version": 1})
    assert [name for name, _ in anywhere.iterate_files_recursively("reviews/doc")] == [
        "reviews/doc/0001.json",
        "reviews/doc/0002.json",
    ]
    assert anywhere.remove_folder("reviews/doc") == ["reviews/doc/0001.json", "reviews/doc/0002.json"]
    left = [(name, json.loads(content)) for name, content in anywhere.iterate_files_recursively("reviews")]
    assert left == [(name, {"schema_version": 1}) for name in ("reviews/doc.json", "reviews/doc2/0001.json")]
    if isinstance(anywhere, LocalOutputFolder):
        assert anywhere.list_symlinks() == []


def test_a_file_says_when_it_was_written(anywhere: OutputFolder) -> None:
    assert anywhere.get_modification_time(REVIEW) is None
    anywhere.write_json(REVIEW, {"schema_version": 1})
    written = anywhere.get_modification_time(REVIEW)
    assert written is not None
    assert abs(written - time.time()) < 60


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize(("number", "code"), [(errno.ENOSPC, "STORE-FULL"), (errno.EIO, "STORE-FAILED")])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    files: OutputFolder, monkeypatch: pytest.MonkeyPatch, step: str, number: int, code: str
) -> None:
    files.write_json("notes/a.json", {"schema_version": 1, "is": "old"})

    def fail(*_: Any, **__: Any) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as broken:
        broken.setattr(os, step, fail)
        with pytest.raises(StoreError, match=rf"^{files.root}/notes/a\.json") as refused:
            files.write_json("notes/a.json", {"schema_version": 1, "is": "new"})
    assert refused.value.code == code
    assert "finished documents" not in refused.value.remedy
    assert files.read_json("notes/a.json")["is"] == "old"
    assert everything(files) == [files.root / "notes/a.json"]


def test_the_contents_are_synced_before_the_name_is_given(files: OutputFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    files.write_json("notes/a.json", {"schema_version": 1})
    files.create_json_if_absent(REVIEW, {"schema_version": 1})
    order: list[str] = []
    for name in ("fsync", "replace", "link"):
        real: Callable[..., Any] = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *a, _real=real, _name=name, **k: (order.append(_name), _real(*a, **k))[1])
    files.write_json("notes/a.json", {"schema_version": 1})
    assert order[:2] == ["fsync", "replace"]
    assert order[2:] == ["fsync"]  # the folder, so that the name survives a power cut too
    order.clear()
    files.create_json_if_absent(review_file_name("doc2_6", 2), {"schema_version": 1})
    assert order == ["fsync", "link", "fsync"]


def test_a_new_folder_is_synced_where_it_stands(files: OutputFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    real = os.fsync
    monkeypatch.setattr(
        os, "fsync", lambda one: (synced.append(str(Path(f"/proc/self/fd/{one}").readlink())), real(one))[1]
    )
    files.create_json_if_absent(REVIEW, {"schema_version": 1})
    reviews = Path(files.root).resolve() / "reviews"
    assert {str(reviews), str(reviews / "doc2_6")} <= set(synced)


def test_invalid_json_value_is_refused_before_writing(files: OutputFolder) -> None:
    files.write_json("notes/a.json", {"schema_version": 1, "is": "old"})
    with pytest.raises((ValueError, TypeError, StoreError)):
        files.write_json("notes/a.json", {"schema_version": 1, "score": float("nan")})
    assert files.read_json("notes/a.json")["is"] == "old"
    assert everything(files) == [files.root / "notes/a.json"]


def test_a_reader_beside_a_writer_sees_whole_files_only(anywhere: OutputFolder) -> None:
    files, turns = anywhere, 60 if isinstance(anywhere.root, Path) else 30
    big = {number: {"schema_version": 1, "number": number, "text": str(number) * 20_000} for number in range(2)}
    files.write_json("results/a.json", big[0])
    done = threading.Event()

    def keep_writing() -> None:
        for turn in range(turns):
            files.write_json("results/a.json", big[turn % 2])
        done.set()

    def keep_reading() -> int:
        seen = 0
        while not done.is_set():
            value = files.read_json("results/a.json")
            assert value == big[value["number"]]
            seen += 1
        return seen

    with ThreadPoolExecutor(4) as threads:
        readers = [threads.submit(keep_reading) for _ in range(3)]
        threads.submit(keep_writing).result()
        assert sum(reader.result() for reader in readers) > 0


# ------------------------------------------------------------------------------------------------ creating once


def test_the_first_to_create_wins_and_the_second_changes_nothing(anywhere: OutputFolder) -> None:
    for reviewer, wins in (("dr_lee", True), ("dr_kim", False), ("dr_lee", False)):
        assert anywhere.create_json_if_absent(REVIEW, {"schema_version": 1, "reviewer": reviewer}) is wins
    assert anywhere.read_json(REVIEW)["reviewer"] == "dr_lee"
    assert anywhere.list_json_files("reviews/doc2_6") == [REVIEW]


def test_a_file_that_was_created_is_alone(files: OutputFolder) -> None:
    for _ in range(2):
        files.create_json_if_absent(REVIEW, {"schema_version": 1})
    assert everything(files) == [files.root / REVIEW]


def test_of_many_at_once_exactly_one_creates(anywhere: OutputFolder) -> None:
    files, revisions = anywhere, 20 if isinstance(anywhere.root, Path) else 5
    for revision in range(1, revisions + 1):
        name = review_file_name("doc2_6", revision)
        start = threading.Barrier(8)

        def create(reviewer: int, name: str = name, start: threading.Barrier = start) -> bool:
            start.wait()
            return files.create_json_if_absent(name, {"schema_version": 1, "reviewer": reviewer})

        with ThreadPoolExecutor(8) as threads:
            won = list(threads.map(create, range(8)))
        assert won.count(True) == 1
        assert files.read_json(name)["reviewer"] == won.index(True)
    assert len(files.list_json_files("reviews/doc2_6")) == revisions


# --------------------------------------------------------------------------------------------------------- names


@pytest.mark.parametrize(
    "name",
    [
        "../secret.json",
        "results/../../secret.json",
        "results/..",
        "..",
        ".",
        "",
        "/etc/passwd",
        "results//a.json",
        "results/",
        "results/a\x00.json",
        "results/a\n.json",
        "results/a.json\n",
        "results/.hidden",
        ".tmp/x",
        "results\\..\\a.json",
        "results/ä.json",
        "results/a b.json",
        "~/x",
        "results/%2e%2e/a.json",
    ],
)
def test_no_name_leaves_the_folder(files: OutputFolder, name: str) -> None:
    uses: list[Callable[[], object]] = [
        lambda: files.write_json(name, {"schema_version": 1}),
        lambda: files.create_json_if_absent(name, {"schema_version": 1}),
        lambda: files.read_json(name),
        lambda: files.read_bytes(name),
        lambda: files.remove_file(name),
        lambda: files.has_file(name),
    ]
    for use in uses:
        with pytest.raises(StoreError) as refused:
            use()
        assert refused.value.code == "STORE-NAME"
    assert not files.root.exists() or everything(files) == []


@given(st.text(alphabet="a.-_/\\ \x00~é0", max_size=12))
def test_whatever_a_name_is_it_is_refused_or_inside(name: str) -> None:
    try:
        path = LocalOutputFolder(Path("/srv/output")).local_path(name)
    except StoreError:
        return
    assert Path(os.path.normpath(path)).is_relative_to("/srv/output")
    assert path != Path("/srv/output")


# ---------------------------------------------------------------------------------------------- damaged and newer


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b'{"schema_version": 1, "half": "of a fi',
        b"[1, 2]",
        b"null",
        b"7",
        b'"text"',
        b"{}",
        b'{"version": 1}',
        b"\xff\xfe\x00",
        b'{"schema_version": 1, "text": "\\ud800"}',
        b'{"schema_version": 1, "\\uDC00": 1}',
        b"[" * 100_000,
    ],
)
def test_a_torn_file_is_refused_by_name(files: OutputFolder, content: bytes) -> None:
    files.write_json("results/a.json", {"schema_version": 1})
    files.local_path("results/a.json").write_bytes(content)
    with pytest.raises(StoreError, match=r"results/a\.json") as refused:
        files.read_json("results/a.json")
    assert refused.value.code == "STORE-TORN"
    assert refused.value.remedy


def test_an_escaped_surrogate_pair_is_read(files: OutputFolder) -> None:
    files.write_json("results/a.json", {"schema_version": 1})
    files.local_path("results/a.json").write_bytes(b'{"schema_version": 1, "text": "\\ud83d\\ude00"}')
    assert files.read_json("results/a.json")["text"] == "\U0001f600"


@pytest.mark.parametrize(("found", "readable"), [(1, True), (2, False), (10**6, False), ("1", False), (None, False)])
def test_a_newer_file_is_refused_by_name(files: OutputFolder, found: Any, readable: bool) -> None:
    files.write_json("results/a.json", {"schema_version": found})
    if readable:
        assert files.read_json("results/a.json") == {"schema_version": 1}
        return
    with pytest.raises(StoreError, match=r"results/a\.json") as refused:
        files.read_json("results/a.json")
    assert refused.value.code == "STORE-NEWER"


def test_what_is_not_there_is_not_found(anywhere: OutputFolder) -> None:
    files = anywhere
    for use in (files.read_json, files.read_bytes):
        with pytest.raises(NotFound, match=r"results/a\.json"):
            use("results/a.json")
    assert not files.has_file("results/a.json")
    assert files.remove_file("results/a.json") is False
    assert files.list_json_files("results") == files.list_subfolder_names("reviews") == []
    assert not files.has_folder()
    assert not files.has_folder("results")


def test_removing_and_listing(anywhere: OutputFolder) -> None:
    files = anywhere
    for name in ("results/b.json", "results/a.json", "reviews/y/0001.json", "reviews/x/0001.json"):
        files.write_json(name, {"schema_version": 1})
    files.write_text("results/notes.txt", "a person's own")
    assert files.has_folder()
    assert files.has_folder("results")
    assert not files.has_folder("result")
    assert files.list_json_files("results") == ["results/a.json", "results/b.json"]
    assert files.list_subfolder_names("reviews") == ["x", "y"]
    assert files.remove_file("results/a.json") is True
    assert files.list_json_files("results") == ["results/b.json"]


# ---------------------------------------------------------------------------------------------------- one run


def test_two_runs_cannot_hold_one_folder(anywhere: OutputFolder) -> None:
    files = anywhere
    with files.hold_run_lock(), pytest.raises(UsageError) as refused, open_folder(files.root).hold_run_lock():
        pass
    assert refused.value.code == "OUTPUT-BUSY"
    with open_folder(files.root).hold_run_lock():
        files.write_json("results/a.json", {"schema_version": 1})


def test_the_folder_is_free_again_after_a_run_that_failed(anywhere: OutputFolder) -> None:
    files = anywhere
    with pytest.raises(ZeroDivisionError), files.hold_run_lock():
        raise ZeroDivisionError
    with files.hold_run_lock():
        pass


@pytest.fixture
def scratch(files: OutputFolder) -> Path:
    folder = files.root / ".tmp"
    folder.mkdir(parents=True)
    return folder


def dead_process() -> int:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return pid


def test_temp_files_of_killed_runs_only_are_removed(files: OutputFolder, scratch: Path) -> None:
    own = generate_process_temp_name()
    dead, alive = scratch / own.replace(f".{os.getpid()}-", f".{dead_process()}-"), scratch / own
    dead.write_text("{")
    alive.write_text("{")
    with files.hold_run_lock():
        assert [path.name for path in scratch.iterdir()] == [alive.name]


def test_temp_files_of_other_machines_are_removed_when_old(files: OutputFolder, scratch: Path) -> None:
    pid = dead_process()  # here; there it may be at work
    fresh, old = scratch / f"0badcafe.{pid}-0011", scratch / f"0badcafe.{pid}-0022"
    earlier = scratch / f"{pid}-0033"  # of an evalkit that did not say which machine's
    for path in (fresh, old, earlier):
        path.write_text("{")
    for path in (old, earlier):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    with files.hold_run_lock():
        assert [path.name for path in scratch.iterdir()] == [fresh.name]


@pytest.mark.parametrize(
    "look",
    [
        LocalOutputFolder.list_json_files,
        LocalOutputFolder.list_subfolder_names,
        lambda files, name: files.get_modification_time(f"{name}/a.json"),
    ],
)
def test_a_file_in_the_place_of_a_folder_is_told(
    files: OutputFolder, look: Callable[[OutputFolder, str], object]
) -> None:
    files.root.mkdir(parents=True)
    (files.root / "reviews").write_text("")
    with pytest.raises(StoreError, match="reviews") as refused:
        look(files, "reviews")
    assert refused.value.code == "STORE-LINK"


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP])
@pytest.mark.parametrize(
    "hold", [LocalOutputFolder.hold_run_lock, LocalOutputFolder.hold_save_lock, LocalOutputFolder.hold_write_lock]
)
def test_a_disk_without_locks_is_told(
    files: OutputFolder, monkeypatch: pytest.MonkeyPatch, hold: Callable[[OutputFolder], Any], number: int
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    monkeypatch.setattr(fcntl, "fcntl", refuse)
    with pytest.raises(EvalkitError, match="no file locks"), hold(files):
        pass


def test_a_folder_in_the_place_of_a_file_is_told(files: OutputFolder) -> None:
    for name in (".lock", "results/a.json"):
        (files.root / name).mkdir(parents=True)
    with pytest.raises(EvalkitError, match=r"Move the folder \.lock out"), files.hold_run_lock():
        pass
    with pytest.raises(StoreError, match=r"Move this item out of the output folder") as refused:
        files.read_json("results/a.json")
    assert refused.value.code == "STORE-TORN"


@pytest.mark.parametrize("stray", [".DS_Store", ".nfs000000000001", "notes.txt"])
def test_a_stray_file_among_the_leftovers_stops_no_run(files: OutputFolder, scratch: Path, stray: str) -> None:
    (scratch / stray).write_text("")
    with files.hold_run_lock():
        pass


def test_a_folder_that_cannot_be_made_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UsageError) as refused, open_folder(tmp_path / "file" / "output").hold_run_lock():
        pass
    assert refused.value.code == "OUTPUT-FOLDER"


@pytest.mark.parametrize(
    ("names", "is_ours"),
    [
        ([], True),
        ([".lock", ".tmp", "lost+found"], True),
        (["evalkit.toml"], True),
        (["results", "reviews"], True),
        (["templates"], True),
        (["database.json"], True),
        (["reviewers.json", "notes.txt"], True),
        (["evalkit.sqlite", "notes.txt"], True),
        (["document_bundles", "results", "notes.txt"], True),  # its database was lost
        (["notes.txt"], False),
        (["templates", "app.py"], False),
        (["results", "model.bin"], False),
        ([".bashrc", ".ssh"], False),
    ],
)
def test_an_output_folder_is_told_from_somebody_elses(tmp_path: Path, names: list[str], is_ours: bool) -> None:
    for name in names:
        (tmp_path / name).mkdir() if "." not in name.strip(".") else (tmp_path / name).touch()
    if is_ours:
        require_evalkit_output_folder(open_folder(tmp_path))
    else:
        with pytest.raises(UsageError, match="not an output folder of evalkit"):
            require_evalkit_output_folder(open_folder(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)


def test_what_a_run_leaves_is_an_output_folder(demo_run: RunSummary, tmp_path: Path) -> None:
    """Also where the database was lost, and whatever lies beside."""
    left = shutil.copytree(demo_run.output, tmp_path / "left", ignore=shutil.ignore_patterns("evalkit.sqlite*"))
    (left / "notes.txt").touch()
    require_evalkit_output_folder(open_folder(left))


# ------------------------------------------------------------------------------------------------- canonical JSON


def test_canonical_json_does_not_depend_on_the_order_of_keys() -> None:
    one = {"b": [1, {"d": 1, "c": 2}], "a": "ä"}
    other = {"a": "ä", "b": [1, {"c": 2, "d": 1}]}
    assert encode_canonical_json(one) == encode_canonical_json(other) == '{"a":"ä","b":[1,{"c":2,"d":1}]}'.encode()
    assert (
        hash_canonical_json(one)
        == hash_canonical_json(other)
        != hash_canonical_json({"a": "ä", "b": [{"c": 2, "d": 1}, 1]})
    )
    assert len(hash_canonical_json(one)) == 64


def test_canonical_json_has_no_nan() -> None:
    with pytest.raises(ValueError, match="JSON"):
        encode_canonical_json(float("nan"))


# -------------------------------------------------------------------------------------------------------- index


@pytest.fixture
def index(database: str, tmp_path: Path) -> Iterator[OutputIndex]:
    made = open_index(tmp_path / "output")
    yield made
    made.close()


def case(case_id: str, blocker: int = 0, major: int = 0, minor: int = 0, status: str = "pending") -> dict[str, Any]:
    row = dict.fromkeys(CASE_COLUMNS)
    return row | {
        "case_id": case_id,
        "doc_id": case_id,
        "blocker": blocker,
        "major": major,
        "minor": minor,
        "review_status": status,
    }


def row_of(doc_id: str, path: str) -> dict[str, Any]:
    return {"doc_id": doc_id, "file_path": path, "sha256": doc_id, "replaced": False}


def test_the_columns_of_the_queue_are_the_contracts() -> None:
    assert set(CASE_COLUMNS) == {
        *("case_id", "doc_id", "kind", "pdf_filename", "pages", "blocker", "major", "minor"),
        *("decision_reason", "review_reason", "review_status"),
    }


def test_cases_are_strictly_worst_first(index: OutputIndex) -> None:
    for row in (case("d"), case("c", minor=9), case("b", major=1), case("a2", blocker=1), case("a1", 1, 2), case("0")):
        index.upsert_case(row)
    assert [row["case_id"] for row in index.list_cases_worst_first()] == ["a1", "a2", "b", "c", "0", "d"]


def test_cases_of_some_statuses(index: OutputIndex) -> None:
    for status in ("pending", "in_review", "deferred", "completed"):
        index.upsert_case(case(status, status=status))
    assert [row["case_id"] for row in index.list_cases_worst_first("pending", "deferred")] == ["deferred", "pending"]
    assert len(index.list_cases_worst_first()) == 4
    index.remove_cases("pending")
    assert index.list_cases_worst_first("pending") == []


def test_a_case_is_one_row_and_the_newest(index: OutputIndex) -> None:
    index.upsert_case(case("a", blocker=1))
    index.upsert_case(case("a", minor=1))
    (row,) = index.list_cases_worst_first()
    assert (row["blocker"], row["minor"]) == (0, 1)


def test_new_bytes_at_an_old_path_replace_the_old_document(index: OutputIndex) -> None:
    index.upsert_document_and_mark_replaced(row_of("old", "in/a.pdf"))
    index.upsert_document_and_mark_replaced(row_of("other", "in/b.pdf"))
    index.upsert_document_and_mark_replaced(row_of("new", "in/a.pdf"))
    assert {row["doc_id"]: row["replaced"] for row in index.list_documents()} == {
        "old": True,
        "other": False,
        "new": False,
    }


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("method", ["upsert_case", "upsert_document_and_mark_replaced", "record_closed_case"])
def test_a_row_of_other_columns_is_refused_by_name(index: OutputIndex, method: str) -> None:
    key = "doc_id" if "document" in method else "case_id"
    with pytest.raises(UsageError, match=rf"lacks .*\b{key}\b") as raised:
        getattr(index, method)({"segments": "Zorblatt"})
    assert "Zorblatt" not in str(raised.value)
    full = {
        "upsert_case": case("a"),
        "upsert_document_and_mark_replaced": row_of("a", "in/a.pdf"),
        "record_closed_case": {"case_id": "a", "reviewer": "dr_lee", "closed_at": "2026-01-01T00:00:00+00:00"},
    }[method]
    with pytest.raises(UsageError, match="unknown column") as raised:
        getattr(index, method)({**full, "Zorblatt": 1})
    assert "Zorblatt" not in str(raised.value)
    getattr(index, method)(full)


def test_a_rebuilt_index_holds_exactly_what_it_was_given(index: OutputIndex) -> None:
    index.upsert_document_and_mark_replaced(row_of("gone", "in/a.pdf"))
    index.upsert_case(case("gone"))
    index.rebuild([row_of("kept", "in/b.pdf")], [case("kept")], [])
    assert [row["doc_id"] for row in index.list_documents()] == ["kept"]
    assert [row["case_id"] for row in index.list_cases_worst_first()] == ["kept"]


def test_the_index_outlives_its_process_and_is_private(tmp_path: Path) -> None:
    first = open_index(tmp_path / "output")
    first.upsert_case(case("a"))
    first.close()
    second = open_index(tmp_path / "output")
    assert [row["case_id"] for row in second.list_cases_worst_first()] == ["a"]
    second.close()
    assert mode(tmp_path / "output" / "evalkit.sqlite") == 0o600


def test_a_damaged_index_says_how_to_mend_it(tmp_path: Path) -> None:
    (tmp_path / "evalkit.sqlite").write_bytes(b"this is no database, whatever it is called" * 100)
    with pytest.raises(StoreError, match="reindex") as refused:
        open_index(tmp_path)
    assert refused.value.code == "STORE-DAMAGED"


class _Shape(BaseModel):
    schema_version: int
    pages: int


def test_invalid_file_is_refused_by_name_and_never_quoted() -> None:
    of_a_patient = {"schema_version": 1, "pages": "John Smith"}
    assert parse_stored_record(_Shape, {"schema_version": 1, "pages": 2}, "results/a.json", "Run it again.").pages == 2
    with pytest.raises(StoreError, match=re.escape("results/a.json lacks fields")) as refused:
        parse_stored_record(_Shape, of_a_patient, "results/a.json", "Run it again.")
    assert refused.value.remedy == "Run it again."
    told = "".join(traceback.format_exception(refused.value))
    assert "John Smith" not in told


# ------------------------------------------------------------------------------------------------------- links


def test_nothing_is_written_or_removed_through_a_folder_link(files: OutputFolder, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "a.json").write_text("mine")
    files.write_json("draws/0001.json", {"schema_version": 1})
    (files.root / "results").symlink_to(elsewhere)
    for act in (
        lambda: files.write_json("results/a.json", {"schema_version": 1}),
        lambda: files.create_json_if_absent("results/b.json", {"schema_version": 1}),
        lambda: files.write_text("results/t.toml", "x"),
        lambda: files.remove_file("results/a.json"),
        lambda: files.remove_folder("results/inner"),
    ):
        with pytest.raises(StoreError, match="link") as refused:
            act()
        assert refused.value.code == "STORE-LINK"
    assert {path.name: path.read_text() for path in elsewhere.iterdir()} == {"a.json": "mine"}


@pytest.mark.parametrize("act", ["remove_file", "has_file", "read_bytes"])
def test_what_cannot_be_looked_at_is_not_taken_for_absent(files: OutputFolder, act: str) -> None:
    """A purge would call a document removed that is still there."""
    files.write_json("draws/0001.json", {"schema_version": 1})
    (files.root / "results").symlink_to("results")
    with pytest.raises(StoreError, match="link") as refused:
        getattr(files, act)("results/a.json")
    assert refused.value.code == "STORE-LINK"


def test_a_file_in_the_place_of_a_folder_is_told_to_who_removes(files: OutputFolder) -> None:
    files.write_json("draws/0001.json", {"schema_version": 1})
    (files.root / "results").write_text("mine")
    assert not files.has_file("results/a.json")
    with pytest.raises(StoreError) as refused:
        files.remove_file("results/a.json")
    assert refused.value.code == "STORE-LINK"


def test_file_link_is_replaced_and_its_target_kept(files: OutputFolder, tmp_path: Path) -> None:
    mine = tmp_path / "mine.json"
    mine.write_text("mine")
    files.write_json("results/a.json", {"schema_version": 1})
    for act in (
        lambda: files.write_json("results/a.json", {"schema_version": 1}),
        lambda: files.remove_file("results/a.json"),
    ):
        (files.root / "results/a.json").unlink()
        (files.root / "results/a.json").symlink_to(mine)
        act()
        assert mine.read_text() == "mine"
        assert not (files.root / "results/a.json").is_symlink()
    (files.root / "results/b.json").symlink_to(tmp_path / "nowhere.json")
    assert not files.create_json_if_absent("results/b.json", {"schema_version": 1})
    assert not (tmp_path / "nowhere.json").exists()


@pytest.mark.parametrize("name", [".tmp", ".lock", ".review.lock", "evalkit.sqlite"])
def test_links_in_place_of_evalkits_own_files_are_refused(files: OutputFolder, tmp_path: Path, name: str) -> None:
    from evalkit.errors import EvalkitError
    from evalkit.review.write_lock import hold_case_write_lock

    target = tmp_path / "target"
    target.mkdir() if name == ".tmp" else None
    files.root.mkdir()
    (files.root / name).symlink_to(target)

    def act() -> None:
        if name == ".tmp":
            files.write_json("results/a.json", {"schema_version": 1})
        elif name == ".lock":
            with files.hold_run_lock():
                pass
        elif name == ".review.lock":
            with hold_case_write_lock(files):
                pass
        else:
            open_index(files.root)

    with pytest.raises(EvalkitError):
        act()
    assert list(target.iterdir()) == [] if name == ".tmp" else not target.exists()


def test_replacing_folder_by_link_during_write_leaks_nothing(files: OutputFolder, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    folder, aside = files.root / "results", files.root / "aside"
    folder.mkdir(parents=True)
    is_over = threading.Event()

    def exchange() -> None:
        while not is_over.is_set():
            folder.rename(aside)
            folder.symlink_to(elsewhere)
            folder.unlink()
            aside.rename(folder)

    with ThreadPoolExecutor(1) as attacker:
        work = attacker.submit(exchange)
        outcomes = set()
        for number in range(400):
            try:
                files.write_json(f"results/{number}.json", {"schema_version": 1})
                outcomes.add("written")
            except StoreError as error:
                outcomes.add(error.code)
            except FileExistsError:
                outcomes.add("made meanwhile")
        is_over.set()
        work.exception()
    assert outcomes >= {"written"}
    assert list(elsewhere.iterdir()) == []
