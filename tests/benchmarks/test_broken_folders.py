"""Every state of a broken folder is what it says, and its cause goes away again without a loss of what an expert said."""

import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path

import psutil
import pytest
from benchmarks import broken_folders
from benchmarks.first_contact.broken_folders import faults, sealed, second_open, second_sealed
from benchmarks.first_contact.broken_folders import open as opened
from benchmarks.first_contact.broken_folders.faults import Answer, Scene

FIRST = {"open": opened.IDEAS, "sealed": sealed.IDEAS}
HALVES = FIRST | {"second_open": second_open.IDEAS, "second_sealed": second_sealed.IDEAS}
STATES = [pytest.param(broken, id=f"{half}-{n}") for half, ideas in HALVES.items() for n, broken in enumerate(ideas, 1)]
FROZEN = Path(__file__).parents[1] / "contract" / "frozen" / "sql.json"
REVIEWED = ("altered_quotes", "doc2_6", "mailed_report")
APPEND = "import sys; open(sys.argv[1], 'ab').close()"


def write_json(path: Path, **record: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"schema_version": 1, **record}, indent=2))
    path.chmod(0o600)


@pytest.fixture
def place():
    path = Path(tempfile.mkdtemp(prefix="broken_folders_", dir="/var/tmp"))  # a disk that nobody may reach
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def root(place):
    """A folder as evalkit leaves it, of which no record is complete: nothing here reads them."""
    folder = place / "output"
    for name in (*faults.WAITING, *REVIEWED):
        write_json(folder / "sme_packets" / f"sme_packet_{name}.json", case_id=name, doc_id=name)
        write_json(folder / "results" / f"{name}.json", doc_id=name, sha256="ab" * 32)
        write_json(folder / "document_bundles" / f"{name}.json", doc_id=name, sha256="ab" * 32)
    for name in REVIEWED:
        write_json(folder / "reviews" / name / "0001.json", outcome="validated")
        write_json(folder / "ground_truth" / f"gt_{name}.json", doc_id=name)
        write_json(folder / "changes" / f"000{REVIEWED.index(name) + 1}.json", files={})
    write_json(folder / "runs" / "2026-03-01-1" / "run.json", number=1)
    (folder / ".lock").touch()
    (folder / ".review.lock").touch()
    with closing(sqlite3.connect(folder / "evalkit.sqlite", isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=wal")
        statements = json.loads(FROZEN.read_text())["sqlite"]
        for statement in sorted(statements, key=lambda statement: "CREATE INDEX" in statement):
            connection.execute(statement)
        connection.execute("CREATE TABLE schema_number (number INTEGER NOT NULL)")
        connection.execute("INSERT INTO schema_number VALUES (4)")
        for name in (*faults.WAITING, *REVIEWED):
            status = "completed" if name in REVIEWED else "pending"
            connection.execute(
                "INSERT INTO cases (case_id, doc_id, review_status, blocker) VALUES (?, ?, ?, 1)", (name, name, status)
            )
            connection.execute(
                "INSERT INTO documents (doc_id, sha256, processed_at, replaced) VALUES (?, ?, '2026-03-01', 0)",
                (name, "ab" * 32),
            )
        for name in REVIEWED:
            connection.execute("INSERT INTO heads VALUES (?, 1, ?)", (name, "cd" * 32))
            connection.execute("INSERT INTO closings (case_id, reviewer, closed_at) VALUES (?, 'x', 'x')", (name,))
    return folder


def write_backup(place: Path, root: Path) -> None:
    """Write a backup as `evalkit backup` lays it out."""
    shutil.copytree(root, place / "files")
    write_json(place / "manifest.json", files={})


def describe(root: Path) -> dict[str, tuple]:
    files = {}
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        files[path.relative_to(root).as_posix()] = (status.st_mode, status.st_uid, status.st_nlink, content)
    return files


def read_waiting(path: Path) -> set[str]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        return {name for (name,) in connection.execute("SELECT case_id FROM cases WHERE review_status = 'pending'")}


def can_write(scene: Scene, path: Path) -> bool:
    command = scene.wrap([sys.executable, "-c", APPEND, str(path)])
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def is_whole(path: Path) -> bool:
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            return connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    except sqlite3.DatabaseError:
        return False


def is_foreign(path: Path) -> bool:
    with closing(sqlite3.connect(path)) as connection:
        numbered = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'schema_number'").fetchall()
    return is_whole(path) and not (numbered and read_waiting(path) & set(faults.WAITING))


def can_read_all(scene: Scene) -> bool:
    files = [str(path) for path in scene.root.rglob("*") if path.is_file()]
    command = scene.wrap([sys.executable, "-c", "import sys; [open(name).close() for name in sys.argv[1:]]", *files])
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def is_full(scene: Scene) -> bool:
    state = os.statvfs(scene.environment.get("TMPDIR", scene.root.parent))
    return state.f_bavail * state.f_frsize <= 65536 or state.f_favail == 0


#: What makes a state one of its family; of the others the difference to the healthy folder is all.
FAMILIES = {
    "missing": lambda scene, path: not path.exists(),
    "empty": lambda scene, path: path.stat().st_size < 4097 or not read_waiting(path),
    "older copy": lambda scene, path: is_whole(path) and read_waiting(path) != set(faults.WAITING),
    "damage": lambda scene, path: scene.environment or not is_whole(path),
    "not a file of SQLite": lambda scene, path: path.is_symlink() or not path.is_file() or not is_whole(path),
    "foreign": lambda scene, path: is_foreign(path),
    "read-only": lambda scene, path: not can_write(scene, path),
    "permissions": lambda scene, path: scene.is_nobody and not can_read_all(scene),
    "limits": lambda scene, path: scene.wrap(["true"])[0] == "prlimit",
    "full disk": lambda scene, path: is_full(scene),
}


@pytest.mark.parametrize("broken", STATES)
def test_a_state_is_what_it_says_and_mends(broken, root, place):
    if obstacle := faults.find_obstacle(broken):
        pytest.skip(obstacle)
    before = describe(root)
    with broken.build(root, place / "workspace") as scene:
        if broken.moment == "backup":
            write_backup(place / "workspace" / "backups" / "first", root)
            before_backup = describe(place / "workspace" / "backups")
            scene.strike()
            assert describe(place / "workspace" / "backups") != before_backup
        elif broken.moment != "before":
            assert describe(scene.root) == before
            scene.strike()
        is_elsewhere = scene.root != root or scene.environment or scene.limits or scene.is_nobody
        if (
            not is_elsewhere
            and broken.family not in {"locks", "read-only"}
            and broken.moment not in {"beneath", "backup"}
        ):
            assert describe(scene.root) != before
        if broken.family in FAMILIES:
            assert FAMILIES[broken.family](scene, scene.root / "evalkit.sqlite")
    broken.mend(root, place / "workspace")
    after = describe(root)
    records = {name: state for name, state in before.items() if name.endswith(".json")}
    assert {name: after.get(name) for name in records} == records
    assert str(place) not in Path("/proc/mounts").read_text()
    if broken.mend is faults.restore_database:
        assert is_whole(faults.database(root))
        assert read_waiting(faults.database(root)) == set(faults.WAITING)


@pytest.mark.parametrize("half", HALVES)
def test_a_half_expects_something_of_every_command(half):
    ideas = HALVES[half]
    assert len(ideas) >= (30 if half in FIRST else 12)
    assert len({broken.name for broken in ideas}) == len(ideas)
    for broken in ideas:
        commands = faults.COMMANDS if half in FIRST else (*faults.COMMANDS, *faults.STORING)
        assert set(broken.expectation) == set(commands), broken.name
        for answer in broken.expectation.values():
            assert answer.outcomes
            assert answer.outcomes <= {"works", "repairs", "refuses"}
            assert answer.gist or "refuses" not in answer.outcomes


def test_the_halves_have_no_idea_in_common():
    ideas = [broken for half in HALVES.values() for broken in half]
    assert len({broken.name for broken in ideas}) == len(ideas)
    assert len({broken.description for broken in ideas}) == len(ideas)


@pytest.mark.parametrize(("spare", "fits"), [(0, False), (4096, True), (40960, True)])
def test_a_full_disk_has_the_room_that_is_said(spare, fits, root, place):
    if obstacle := faults.find_obstacle(opened.IDEAS[-1]):
        pytest.skip(obstacle)
    (place / "workspace").mkdir()
    with faults.move_to_small_disk(root, place / "workspace") as folder:
        faults.fill(folder.parent, spare)
        state = os.statvfs(folder)
        assert state.f_bavail * state.f_frsize == spare
        if fits:
            (folder / "new").write_bytes(bytes(spare))
        with pytest.raises(OSError, match="No space left"):
            (folder / "newer").write_bytes(bytes(1))
    assert (root / "new").exists() == fits


@pytest.mark.parametrize("ideas", FIRST.values(), ids=FIRST)
def test_a_lock_stops_another_writer(ideas, root, place):
    writers = Counter()
    for broken in ideas:
        if broken.family != "locks":
            continue
        with (
            broken.build(root, place / "workspace") as scene,
            closing(sqlite3.connect(faults.database(scene.root), timeout=0)) as connection,
        ):
            try:
                connection.execute("BEGIN IMMEDIATE")
                writers["free"] += 1
            except sqlite3.OperationalError:
                writers["stopped"] += 1
        assert is_whole(faults.database(root))
    assert writers["stopped"] >= 1
    assert writers["free"] == 1  # a reader, or a lock that SQLite does not know


def test_a_clock_of_1970_is_seen_by_python(root, place):
    (broken,) = (broken for broken in opened.IDEAS if broken.name == "clock_at_1970")
    if obstacle := faults.find_obstacle(broken):
        pytest.skip(obstacle)
    with broken.build(root, place / "workspace") as scene:
        command = [sys.executable, "-c", "import datetime; print(datetime.datetime.now(datetime.UTC).year)"]
        assert subprocess.check_output(scene.wrap(command), text=True) == "1970\n"


@pytest.mark.parametrize(
    ("ideas", "name", "days"),
    [(second_open.IDEAS, "clock_three_days_back", -3), (second_sealed.IDEAS, "clock_years_ahead", 18 * 366)],
)
def test_a_clock_is_off_by_whole_days(ideas, name, days, root, place):
    (broken,) = (broken for broken in ideas if broken.name == name)
    if obstacle := faults.find_obstacle(broken):
        pytest.skip(obstacle)
    with broken.build(root, place / "workspace") as scene:
        command = [sys.executable, "-c", "import time; print(time.time())"]
        shown = float(subprocess.check_output(scene.wrap(command), text=True))
    assert round((shown - time.time()) / 86400) == days


def test_a_command_that_never_answers_is_ended(place, monkeypatch):
    monkeypatch.setattr(broken_folders, "STARTING_SECONDS", 0)
    monkeypatch.setattr(Scene, "wrap", lambda scene, command: [sys.executable, "-c", "input()"])
    (answer,) = broken_folders.run_commands(Scene(place), ["queue"], place, place, "before", 0)
    assert (answer["command"], answer["status"]) == ("queue", -1)


FORK = """
import os, pathlib, sys, time
if child := os.fork():
    pathlib.Path(sys.argv[1]).write_text(str(child))
    sys.exit()
os.closerange(0, 3)
time.sleep(600)
"""


def test_what_a_command_forked_is_ended_with_it(place, monkeypatch):
    monkeypatch.setattr(Scene, "wrap", lambda scene, _: [sys.executable, "-c", FORK, str(place / "child")])
    broken_folders.run_commands(Scene(place), ["queue"], place, place, "before", 60)
    child = int((place / "child").read_text())
    with suppress(psutil.NoSuchProcess):
        psutil.Process(child).wait(timeout=60)


def test_a_state_that_cannot_be_built_is_passed_over(place, monkeypatch, capsys):
    def build(*_):
        raise subprocess.CalledProcessError(32, "mount")

    ideas = faults.Ideas()
    ideas("busy", "read-only", "", {}, moment="claim")(build)
    monkeypatch.setattr(opened, "IDEAS", ideas)
    monkeypatch.setattr(
        broken_folders, "make_healthy_folder", lambda _: broken_folders.HealthyFolder(place, place / "samples", {})
    )
    (place / "samples").mkdir()
    (place / "evalkit.sqlite").touch()
    (place / "new").mkdir()
    assert not list(broken_folders.measure_half("open"))
    assert "busy: not built" in capsys.readouterr().out


def test_answers_combine_with_the_words_of_the_refusal():
    combined = faults.either(faults.works(), faults.refuses("full", "free"))
    assert combined == Answer(frozenset({"works", "refuses"}), ("full", "free"), (*faults.DELETE, *faults.DAMAGED))
