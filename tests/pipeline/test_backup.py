"""A backup of a folder in use is whole, and what is restored from it is the folder that it was."""

from __future__ import annotations

import errno
import json
import os
import shlex
import shutil
import stat
import subprocess
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import pytest
from commands import evalkit_command
from pipeline.backing_up import (
    back_up_killed_at,
    count_steps,
    list_queue,
    read_folder,
    restore_killed_at,
)
from pipeline.patient import DOC, OTHER
from places import in_bucket, open_folder, open_index
from review.conftest import Build, Workspace

import evalkit
from evalkit.errors import StoreError, UsageError
from evalkit.pipeline.audit.verify import verify_integrity
from evalkit.pipeline.backup import back_up, list_backups
from evalkit.pipeline.purge import purge, read_purge_records
from evalkit.pipeline.restore import check_backup, find_backup, restore
from evalkit.review import ReviewSession, SMEReviewHelper
from evalkit.store import LocalOutputFolder

LATER = "2027-01-01T00:00:00+00:00"
KILLS = 12


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "backups"


@pytest.fixture
def restored(tmp_path: Path) -> Path:
    return tmp_path / "elsewhere" / "restored"


def backed_up(output: Path | str, target: Path) -> Path:
    return Path(back_up(open_folder(output), target).path)


def test_restored_folder_equals_the_original(output: Path, target: Path, restored: Path) -> None:
    before, cases = read_folder(output), list_queue(output)
    summary = restore(backed_up(output, target), restored)
    assert read_folder(restored) == before
    assert list_queue(restored) == cases
    assert len(cases) > 3
    assert verify_integrity(open_folder(restored)).faults == ()
    assert summary.files == len(before)  # the database stands for the tables
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (target, *target.rglob("*")) if path.is_file()}
    assert modes == {0o600}
    assert {stat.S_IMODE(path.stat().st_mode) for path in (target, *target.rglob("*")) if path.is_dir()} == {0o700}
    assert {path.name for path in restored.parent.iterdir()} == {"restored"}


def test_commands_say_what_was_done(output: Path, target: Path, restored: Path) -> None:
    assert evalkit_command("backup", target, "--output", output, "--json").returncode == 0
    again = json.loads(evalkit_command("backup", target, "--output", output, "--json").stdout)
    assert again["linked"] == again["files"] - 1  # the database is always new
    assert "is intact" in evalkit_command("restore", target, "--check").stdout
    done = evalkit_command("restore", target, "--output", restored)
    assert done.returncode == 0
    assert f"restored to {restored}" in done.stdout
    assert "purge them again" in done.stderr
    assert evalkit_command("audit", "verify", "--output", restored).returncode == 0


@pytest.mark.parametrize("place", ["local", "s3", "gs"])
def test_backup_of_a_server_or_bucket_is_a_local_folder(
    place: str,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    target: Path,
    restored: Path,
) -> None:
    monkeypatch.setenv("EVALKIT_DATABASE", request.getfixturevalue("postgresql").url)
    output = tmp_path / "output" if place == "local" else in_bucket(place, request, monkeypatch)
    fill_small_folder(output)
    cases, faults = list_queue(output), verify_integrity(open_folder(output)).faults
    first = backed_up(output, target)
    assert back_up(open_folder(output), target).linked == len(check_backup(first).files) - 1
    monkeypatch.delenv("EVALKIT_DATABASE")
    restore(find_backup(target), restored)
    assert list_queue(restored) == cases
    assert verify_integrity(open_folder(restored)).faults == faults
    with open_index(restored) as index:
        assert [claim.reviewer for claim in index.claims.map_live_claims_by_case_id("2025").values()] == ["dr_lee"]
    with pytest.raises(UsageError, match="restored to a folder on this machine"):
        restore(first, "s3://hospital/elsewhere")


def fill_small_folder(root: Path | str) -> None:
    """Publish two cases: one is reviewed, and dr_lee has the other open."""
    workspace = Workspace(root)
    for doc_id in ("one_1", "two_2"):
        workspace.publish(Build.single("Pathology Report"), [Build.issue()], doc_id=doc_id)
    workspace.index.close()
    helper = SMEReviewHelper(root, "dr_lee")
    helper.save_review("one_1", undeterminable="it cannot be read")
    helper.close()
    session = ReviewSession(open_folder(root), "dr_lee", "tab")
    session.open_and_claim_case("two_2")


def test_only_what_changed_is_copied_again(output: Path, target: Path) -> None:
    first = backed_up(output, target)
    files = open_folder(output)
    before = check_backup(first)
    files.write_text("guidelines.md", "Read every page.")
    files.write_json(f"results/{OTHER}.json", {**files.read_json(f"results/{OTHER}.json"), "grounded_ratio": 0.5})
    summary = back_up(open_folder(output), target)
    assert summary.linked == len(before.files) - 2  # the database and the result
    assert check_backup(first) == before
    assert check_backup(Path(summary.path)).files["guidelines.md"].size == len("Read every page.\n")
    shared = Path(summary.path) / f"files/results/{DOC}.json"
    assert shared.stat().st_nlink == 2
    shutil.rmtree(first)
    check_backup(Path(summary.path))


def test_damaged_copy_is_made_again(output: Path, target: Path) -> None:
    first = backed_up(output, target)
    name = f"files/results/{DOC}.json"
    (first / name).write_bytes((first / name).read_bytes().replace(b"a", b"b", 1))
    second = backed_up(output, target)
    assert (second / name).read_bytes() == (output / f"results/{DOC}.json").read_bytes()
    check_backup(second)
    (first / "manifest.json").write_text("{")
    (second / "manifest.json").write_text("{")
    assert back_up(open_folder(output), target).linked == 0


def removed(backup: Path) -> None:
    (backup / f"files/results/{DOC}.json").unlink()


def flipped(backup: Path) -> None:
    path = backup / "files/evalkit.sqlite"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def swapped(backup: Path) -> None:
    path = backup / f"files/results/{DOC}.json"
    path.write_bytes(path.read_bytes()[::-1])


def added(backup: Path) -> None:
    (backup / "files/results/stranger.json").write_text("{}")


def torn(backup: Path) -> None:
    (backup / "manifest.json").write_text("{")


def lacking(backup: Path) -> None:
    (backup / "manifest.json").unlink()


def newer(backup: Path) -> None:
    manifest = json.loads((backup / "manifest.json").read_text())
    (backup / "manifest.json").write_text(json.dumps({**manifest, "schema_version": 2}))


@pytest.mark.parametrize("damage", [removed, flipped, swapped, added, torn, lacking, newer])
def test_damaged_backup_restores_nothing(
    output: Path, target: Path, restored: Path, damage: Callable[[Path], None]
) -> None:
    backup = backed_up(output, target)
    damage(backup)
    with pytest.raises(StoreError):
        check_backup(backup)
    with pytest.raises(StoreError):
        restore(backup, restored)
    assert not restored.exists()
    assert not restored.parent.exists() or not list(restored.parent.iterdir())


def test_what_is_refused_is_named(output: Path, target: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="inside of the output folder"):
        back_up(open_folder(output), output / "runs" / "backups")
    (tmp_path / "way").symlink_to(output)
    with pytest.raises(UsageError, match="inside of the output folder"):
        back_up(open_folder(output), tmp_path / "way" / "backups")
    backup = backed_up(output, target)
    before = read_folder(output)
    with pytest.raises(UsageError, match=f"{output} is not empty"):
        restore(backup, output)
    assert read_folder(output) == before
    for place in (tmp_path / "way", backup / "manifest.json", Path("/")):
        with pytest.raises(UsageError, match="is not empty, or is a file"):
            restore(backup, place)
    with pytest.raises(UsageError, match="is neither a backup"):
        find_backup(output)
    (output / "purging.json").write_text('{"schema_version": 1, "doc_id": null}')
    with pytest.raises(UsageError, match="a purge of the output folder is unfinished"):
        back_up(open_folder(output), target)
    assert list_backups(target) == [backup]


def test_links_are_left_out_and_named(output: Path, target: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text("{}")
    (output / "results/link.json").symlink_to(tmp_path / "secret.json")
    summary = back_up(open_folder(output), target)
    assert summary.left_out == ("results/link.json",)
    assert "results/link.json" not in check_backup(Path(summary.path)).files
    told = evalkit_command("backup", target, "--output", output)
    assert (told.returncode, "results/link.json is a link" in told.stderr) == (1, True)


def test_backup_tells_what_is_lost(output: Path, target: Path, caplog: pytest.LogCaptureFixture) -> None:
    next((output / "sme_packets").iterdir()).unlink()
    back_up(open_folder(output), target)
    assert "Restore sme_packets/" in caplog.text


def test_restored_empty_folder_is_replaced(output: Path, target: Path, restored: Path) -> None:
    restored.mkdir(parents=True)
    restore(backed_up(output, target), restored)
    assert read_folder(restored)["tables"]


# -------------------------------------------------------------------------------------------------------- purges


def later() -> datetime:
    return datetime(2027, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize("known_from", ["later backup", "lost folder", "its records"])
def test_purged_patient_does_not_come_back(output: Path, target: Path, restored: Path, known_from: str) -> None:
    backup = backed_up(output, target)
    purge(open_folder(output), [DOC], purged_at=LATER)
    purged = {"later backup": None, "lost folder": output, "its records": output / "purged"}[known_from]
    if known_from == "later backup":
        back_up(open_folder(output), target)
    summary = restore(backup, restored, purged=purged, clock=later)
    assert (summary.purged, summary.purge_records) == (1, 1)
    assert not [path for path in restored.rglob("*") if DOC in path.name]
    assert {row["doc_id"] for row in list_queue(restored)} == {row["doc_id"] for row in list_queue(output)}
    records = read_purge_records(open_folder(restored))
    assert [record.purged_at for record in records] == [LATER, "2027-01-02T00:00:00+00:00"]
    assert verify_integrity(open_folder(restored)).faults == ()


def test_purge_without_a_record_is_undone_and_told(output: Path, target: Path, restored: Path) -> None:
    backup = backed_up(output, target)
    purge(open_folder(output), [DOC], purged_at=LATER)
    done = evalkit_command("restore", backup, "--output", restored)
    made_at = backup.name.replace("-", ":")
    hint, next_step = done.stderr.strip().splitlines()
    assert hint.startswith(
        f"If you purged documents after {made_at[11:16]} UTC on {backup.name[:10]}, purge them again"
    )
    assert f"evalkit audit verify --output {restored}" in next_step
    assert (restored / f"results/{DOC}.json").is_file()


def test_restore_tells_what_it_purged_again(output: Path, target: Path, restored: Path) -> None:
    backup = backed_up(output, target)
    purge(open_folder(output), [DOC], purged_at=LATER)
    done = evalkit_command("restore", backup, "--output", restored, "--purged", output)
    assert "1 document purged after the backup: deleted again" in done.stderr
    assert "If you purged" not in done.stderr


@pytest.mark.parametrize("options", [["--check"], ["--output", "new"]])
def test_backup_without_manifest_names_another(output: Path, target: Path, tmp_path: Path, options: list[str]) -> None:
    first, second = backed_up(output, target), backed_up(output, target)
    lacking(second)
    done = evalkit_command("restore", target, *options, cwd=tmp_path)
    assert done.returncode != 0
    assert f"the backup {second} has no manifest.json: it is incomplete or damaged" in done.stderr
    assert f"Use another backup, such as {first}" in done.stderr
    shutil.rmtree(first)
    assert "such as" not in evalkit_command("restore", target, *options, cwd=tmp_path).stderr


def test_one_damaged_file_of_a_backup_is_singular(output: Path, target: Path) -> None:
    backup = backed_up(output, target)
    removed(backup)
    with pytest.raises(StoreError, match="has 1 file missing, changed or added"):
        check_backup(backup)


def test_records_of_parted_histories_are_united(output: Path, target: Path, restored: Path, tmp_path: Path) -> None:
    """A folder was lost after a purge, restored without its record, and another document was purged there."""
    lost = Path(shutil.copytree(output, tmp_path / "lost"))
    purge(open_folder(lost), [OTHER], purged_at=LATER)
    purge(open_folder(output), [DOC], purged_at=LATER)
    backup = backed_up(output, target)
    summary = restore(backup, restored, purged=lost, clock=later)
    assert (summary.purged, summary.purge_records) == (1, 2)
    assert not [path for path in restored.rglob("*") if OTHER in path.name or DOC in path.name]
    assert verify_integrity(open_folder(restored)).faults == ()


def test_lost_folder_without_purges_has_no_records(output: Path, target: Path, restored: Path, tmp_path: Path) -> None:
    backup = backed_up(output, target)
    assert (output / "production.json").is_file()
    with pytest.raises(UsageError, match="is not a folder"):
        restore(backup, restored, purged=tmp_path / "mistyped")
    assert restore(backup, restored, purged=output).purge_records == 0


def test_backups_of_two_folders_are_not_mixed(output: Path, target: Path, restored: Path, tmp_path: Path) -> None:
    backup = backed_up(output, target)
    other = tmp_path / "other"
    fill_small_folder(other)
    (other / "patient_salt.json").write_text('{"schema_version": 1, "salt": "another"}')
    with pytest.raises(UsageError, match="contains backups of another output folder"):
        back_up(open_folder(other), target)
    (other / "purged").mkdir()
    (other / "purged/0001.json").write_text("{}")
    shutil.copytree(backed_up(other, tmp_path / "elsewhere_backups"), target / "2099-01-01T00-00-00.000Z")
    assert restore(backup, restored).purge_records == 0


# ---------------------------------------------------------------------------------------------------- while in use


def test_backup_while_reviews_are_saved_is_faultless(output: Path, target: Path, tmp_path: Path) -> None:
    is_over = threading.Event()
    saved = count()

    def review() -> None:
        helper = SMEReviewHelper(output, "dr_busy")
        while not is_over.is_set():
            helper.save_review("requisition", undeterminable=f"no {next(saved)}")
            helper.reopen("requisition", "once more")
        helper.close()

    reviewer = threading.Thread(target=review)
    reviewer.start()
    try:
        backups = [backed_up(output, target) for _ in range(4)]
    finally:
        is_over.set()
        reviewer.join()
    counts = []
    for number, backup in enumerate(backups):
        restore(backup, tmp_path / f"restored{number}")
        report = verify_integrity(open_folder(tmp_path / f"restored{number}"))
        assert report.faults == ()
        assert report.count_by_kind["chains_without_head"] == 0
        counts.append(report.count_by_kind["reviews"])
    assert counts == sorted(counts)
    assert counts[-1] > counts[0]


def test_saving_in_several_files_waits_for_a_backup(output: Path) -> None:
    order, is_held = [], threading.Event()

    def save() -> None:
        with open_folder(output).hold_save_lock():
            order.append("saved")

    with open_folder(output).hold_save_lock(for_backup=True):
        saver = threading.Thread(target=save)
        saver.start()
        is_held.wait(0.2)
        order.append("backed up")
    saver.join()
    assert order == ["backed up", "saved"]
    with open_folder(output).hold_save_lock(), open_folder(output).hold_save_lock():
        pass  # savers do not wait for each other


def test_run_saves_no_document_while_a_backup_looks(samples: Path, tmp_path: Path) -> None:
    output, is_waiting = tmp_path / "output", threading.Event()
    run = threading.Thread(target=lambda: evalkit.run([samples / "quest_cbc.pdf"], output=output, workers=1))
    with open_folder(output).hold_save_lock(for_backup=True):
        run.start()
        is_waiting.wait(3.0)  # it takes about one second
        saved = [path.name for path in output.rglob("*.json") if path.name.startswith("quest_cbc")]
    run.join()
    assert saved == []
    assert (output / "results/quest_cbc.json").is_file()


def test_recovery_drill_of_the_documentation(output: Path, target: Path) -> None:
    page = (Path(evalkit.__file__).parent / "docs/operations.md").read_text()
    drill = page.partition("### Recovery drill\n")[2].partition("```\n")[2].partition("```")[0]
    lines = [line.partition("#")[0].replace("/mnt/backup", str(target)) for line in drill.splitlines()]
    assert len(lines) == 6
    cases = list_queue(output)
    purge(open_folder(output), [DOC], purged_at=LATER)
    output.rename(output.parent / "work")
    for line in lines:
        words = shlex.split(line)
        if words[0] == "mv":
            (output.parent / words[1]).rename(output.parent / words[2])
            continue
        done = evalkit_command(*words[1:], cwd=output.parent)
        assert done.returncode == 0, done.stderr
        if words[1:3] == ["audit", "verify"]:
            assert done.stdout.startswith("0 faults: ")
    assert {row["case_id"] for row in list_queue(output.parent / "work")} == {
        row["case_id"] for row in cases if not row["case_id"].startswith(DOC)
    }


# ------------------------------------------------------------------------------------------------ kills and full disks


def test_killed_backup_leaves_none_that_looks_whole(output: Path, target: Path, tmp_path: Path) -> None:
    backed_up(output, target)
    steps = count_steps(lambda: back_up(open_folder(output), tmp_path / "counted"))
    for number in range(0, steps, steps // KILLS):
        back_up_killed_at(number, output, target)


def test_killed_restore_leaves_nothing_or_all(output: Path, target: Path, tmp_path: Path) -> None:
    backup = backed_up(output, target)
    steps = count_steps(lambda: restore(backup, tmp_path / "counted"))
    for number in range(0, steps, steps // KILLS):
        folder = tmp_path / f"killed{number}"
        folder.mkdir()
        restore_killed_at(number, backup, folder)


def test_full_disk_is_told_before_anything_is_written(
    output: Path, target: Path, restored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup = backed_up(output, target)
    needed = sum(file.size for file in check_backup(backup).files.values())
    full = os.statvfs_result((4096, 4096, 100, 10, 10, 100, 100, 100, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda _path: full)
    with pytest.raises(
        StoreError, match=f"bytes are needed, and the disk of {restored.parent} has 40,960 free"
    ) as told:
        restore(backup, restored)
    assert told.value.code == "STORE-FULL"
    assert int(told.value.message.split(" ")[0].replace(",", "")) >= needed
    with pytest.raises(StoreError, match="bytes are needed"):
        back_up(open_folder(output), target.parent / "others")
    assert not list((target.parent / "others").iterdir())


def test_disk_that_fills_meanwhile_leaves_nothing(
    output: Path, target: Path, restored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup = backed_up(output, target)

    def fail() -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "sync", fail)
    for act in (lambda: restore(backup, restored), lambda: back_up(open_folder(output), target)):
        with pytest.raises(StoreError) as told:
            act()
        assert told.value.code == "STORE-FULL"
    assert list_backups(target) == [backup] == list(target.iterdir())
    assert not list(restored.parent.iterdir())


def test_folder_without_a_database_is_backed_up_as_it_is(output: Path, target: Path, restored: Path) -> None:
    cases = list_queue(output)
    for path in output.glob("evalkit.sqlite*"):
        path.unlink()
    backup = backed_up(output, target)
    assert not list(output.glob("evalkit.sqlite*"))
    restore(backup, restored)
    session = ReviewSession(open_folder(restored), "dr_lee", "tab")
    session.close()
    assert {row["case_id"] for row in list_queue(restored)} == {row["case_id"] for row in cases}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_folder_on_a_read_only_disk_is_backed_up(output: Path, target: Path, restored: Path) -> None:
    before = read_folder(output)
    mounting = ["mount", "--bind", str(output), str(output)]
    if subprocess.run(mounting, capture_output=True, check=False).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", str(output)], check=True)
        backup = backed_up(output, target)
    finally:
        subprocess.run(["umount", str(output)], check=True)
    restore(backup, restored)
    assert read_folder(restored) == before


def test_the_output_folder_is_not_changed(output: Path, target: Path) -> None:
    with open_index(output):  # as any command does, this adds what an older database lacks
        pass
    before = read_folder(output)
    backed_up(output, target)
    assert read_folder(output) == before
    assert isinstance(open_folder(output), LocalOutputFolder)
