"""Disks that are full, or fill while a command works: it fails with a remedy, nothing is lost, and with room it works."""

from __future__ import annotations

import json
import random
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pipeline.backing_up import list_queue
from pipeline.conftest import patient_folder
from pipeline.patient import DOC
from places import open_folder
from stress.full_disks import (
    Contents,
    Outcome,
    Resource,
    SmallDisk,
    Step,
    draw_rooms,
    list_temporary_files,
    measure_levels,
    mount_small_disk,
    run_in_child,
)
from stress.saving import looked_at
from tables import trying
from warm_pools import create_cold_pool

from evalkit.cli import main
from evalkit.errors import EvalkitError
from evalkit.pipeline.audit.verify import verify_integrity
from evalkit.pipeline.backup import back_up
from evalkit.pipeline.executor import reader_pool
from evalkit.review import ReviewSession
from evalkit.review.case_files import read_review_status

__all__ = ["patient_folder"]

pytestmark = pytest.mark.stress

#: Number of full disks for each command and each way in which a disk is full.
TIMES = 50
CASE, NOTES = "requisition", "Zebulon's aunt called"


@dataclass(frozen=True)
class Place:
    """Where a command works: its disk, and what lies elsewhere."""

    disk: Path
    records: Path
    backups: Path

    @property
    def output(self) -> Path:
        return self.disk / "output"


Act = Callable[[Place], None]


def run_command_line(words: str, place: Place) -> None:
    """Run a command, in whose words fields stand for the places."""
    sys.argv = ["evalkit", *(word.format(**vars(place)) for word in words.split()), "--output", str(place.output)]
    reader_pool.create_process_pool = create_cold_pool  # the warm ones belong to the process of the test
    main()


def review(place: Place) -> None:
    """Save a draft and submit it, as the screen does; a case that is decided already stays as it is."""
    if read_review_status(open_folder(place.output), CASE) == "completed":
        return
    try:
        desk = ReviewSession(open_folder(place.output), "dr_fourth", "tab")
        draft = looked_at(desk.open_and_claim_case(CASE)).set_notes(NOTES)
        desk.save_draft_and_get_time(CASE, draft)
        desk.submit_review(CASE, draft, undeterminable_reason="illegible")
        desk.close()
    except EvalkitError as error:
        print(f"evalkit: {error}")
        sys.exit(1)


QUEUE, REINDEX = partial(run_command_line, "queue"), partial(run_command_line, "reindex")

#: Each command, with what it begins with: the patient's folder, the same without its database, or nothing.
COMMANDS: dict[str, tuple[str, Act]] = {
    "run": (
        "nothing",
        partial(run_command_line, "run {records} --classifications {records} --workers 1 --extract --name one"),
    ),
    "review": ("patient", review),
    "purge": ("patient", partial(run_command_line, f"purge {DOC}")),
    "reviewers": ("patient", partial(run_command_line, "reviewers add dr_fourth")),
    "reindex": ("patient", REINDEX),
    "create database": ("no database", REINDEX),
    "backup": ("patient", partial(run_command_line, "backup {disk}/backups")),
    "restore": ("nothing", partial(run_command_line, "restore {backups}")),
    **{
        f"export {name}": (
            "patient",
            partial(run_command_line, f"export --format {name} --to {{disk}}/exported.{name}"),
        )
        for name in ("jsonl", "csv", "parquet", "folder", "labelstudio", "fhir", "xlsx")
    },
}


@pytest.fixture(scope="module")
def place(samples: Path, patient_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Place:
    folder = tmp_path_factory.mktemp("full_disks")
    records = folder / "records"
    records.mkdir()
    for name in ("altered_quotes.pdf", "quest_cbc.pdf", "classifications/altered_quotes.json"):
        shutil.copy(samples / name, records)
    back_up(open_folder(patient_folder), folder / "backups")
    return Place(folder / "disk", records, folder / "backups")


@dataclass(frozen=True)
class Trial:
    """A command on disks of its own, compared with the same command on a large disk."""

    place: Place
    act: Act
    start: str
    patient_folder: Path
    scratch: Path
    before: Contents
    undisturbed: Contents
    queue: list[dict[str, Any]]
    """The queue after the undisturbed command."""
    levels: list[int]
    """What was in use of the disk before each of its steps, and at the end."""

    @classmethod
    def prepare(cls, command: str, resource: str, place: Place, patient_folder: Path, scratch: Path) -> Trial:
        start, act = COMMANDS[command]
        with mount_small_disk(place.disk) as disk:
            fill_output(start, patient_folder, place.output)
            before = Contents.read(place.disk, scratch / "copy")
            levels = measure_levels(partial(act, place), disk, resource, scratch / "log")
            undisturbed = Contents.read(place.disk, scratch / "copy")
        queue = list_queue(scratch / "copy/output")
        return cls(place, act, start, patient_folder, scratch, before, undisturbed, queue, levels)

    def find_faults(self, limit_disk: Callable[[SmallDisk], Step | None]) -> list[str]:
        """Run the command on a full disk and again once there is room; list all that is wrong."""
        with mount_small_disk(self.place.disk) as disk:
            fill_output(self.start, self.patient_folder, self.place.output)
            failed = run_in_child(partial(self.act, self.place), self.scratch / "log", limit_disk(disk))
            faults = [*self._check_output(failed), *self._check_full_disk(failed)]
            disk.make_room()
            is_reindex_told = "evalkit reindex" in failed.output
            for is_due, act in ((is_reindex_told, REINDEX), (failed.status, self.act)):
                if is_due and (again := run_in_child(partial(act, self.place), self.scratch / "log")).status:
                    faults.append(f"with room: {again.output}")
            return [*faults, *self._check_end(is_review_saved=is_reindex_told)]

    def _check_output(self, failed: Outcome) -> Iterator[str]:
        """Check that a failure has a remedy, and that nothing of a document is told."""
        if failed.status not in (0, 1, 2) or "Traceback" in failed.output:
            yield f"ended with {failed.status}: {failed.output}"
        if failed.status and not ("disk space" in failed.output or "evalkit reindex" in failed.output):
            yield f"without a remedy: {failed.output}"
        if words := [word for word in (*read_paragraphs(self.undisturbed), NOTES) if word in failed.output]:
            yield f"told {words[0]!r}"

    def _check_full_disk(self, failed: Outcome) -> Iterator[str]:
        """Check that what was there before is there, and that nothing half-written is."""
        now = Contents.read(self.place.disk, self.scratch / "copy")
        yield from (f"lost: {name}" for name in self.before.find_lost(self.undisturbed, now))
        yield from (f"torn: {name}" for name in now.find_torn())
        yield from (f"left behind: {name}" for name in list_temporary_files(self.place.disk))
        if self.before.files:  # a first run that failed left a document unfinished, and that is told as what it is
            queue = run_in_child(partial(QUEUE, self.place), self.scratch / "log")
            is_purging = (self.place.output / "purging.json").exists()
            if queue.status and not (is_purging and "evalkit purge" in queue.output):
                yield f"queue: {queue.output}"
            # An unfinished purge, and ground truth that does not follow its review yet, are told with their remedy.
            faults = verify_integrity(open_folder(self.place.output)).faults
            if not ("purging.json" in {fault.file for fault in faults} or "evalkit reindex" in failed.output):
                yield from (f"{fault}, while the disk is full" for fault in faults)

    def _check_end(self, *, is_review_saved: bool) -> Iterator[str]:
        now = Contents.read(self.place.disk, self.scratch / "copy")
        yield from (f"left behind at the end: {name}" for name in list_temporary_files(self.place.disk))
        yield from map(str, verify_integrity(open_folder(self.place.output)).faults)
        if list_queue(self.scratch / "copy/output") != self.queue:
            yield "the queue differs"
        # A review that could not be entered into the database keeps its draft, and its claim until that expires.
        ignored = ("drafts", "claims") if is_review_saved else ()
        expected, found = self.undisturbed.without_clocks(self.before), now.without_clocks(self.before)
        for name in sorted({*expected, *found}):
            if expected.get(name) != found.get(name) and not name.endswith(ignored):
                yield f"{name}: {expected.get(name)} became {found.get(name)}"


def read_paragraphs(contents: Contents) -> Iterator[str]:
    """Read the longer paragraphs of all documents."""
    for name, content in contents.files.items():
        if "document_bundles/" in name and name.endswith(".json"):
            for page in json.loads(content)["pages"]:
                yield from (block["text"] for block in page["blocks"] if len(block["text"]) >= 20)


def fill_output(start: str, patient_folder: Path, output: Path) -> None:
    if start != "nothing":
        shutil.copytree(patient_folder, output)
    if start == "no database":
        for path in output.glob("evalkit.sqlite*"):
            path.unlink()


@pytest.mark.parametrize("resource", ["size", "nr_inodes"])
@pytest.mark.parametrize("command", COMMANDS)
def test_full_disk_loses_nothing_and_works_with_room(
    command: str, resource: Resource, place: Place, patient_folder: Path, tmp_path: Path
) -> None:
    trial = Trial.prepare(command, resource, place, patient_folder, tmp_path)

    def limit_disk(room: int, disk: SmallDisk) -> None:
        disk.limit(resource, disk.count_used(resource) + room)

    rooms = draw_rooms(trial.levels, TIMES, command)
    faults = {room: trial.find_faults(partial(limit_disk, room)) for room in rooms}
    report_faults(f"a disk with little room ({resource}), {command}", faults)


@pytest.mark.parametrize("command", COMMANDS)
def test_disk_that_fills_meanwhile_loses_nothing(
    command: str, place: Place, patient_folder: Path, tmp_path: Path
) -> None:
    trial = Trial.prepare(command, "size", place, patient_folder, tmp_path)

    def fill_at(number: int, disk: SmallDisk) -> Step:
        steps = iter(range(number))

        def fill_disk() -> None:
            if next(steps, None) is None and not disk.is_full():
                disk.fill()

        return fill_disk

    step_count = len(trial.levels) - 1
    numbers = random.Random(command).sample(range(step_count), min(TIMES, step_count))
    faults = {number: trial.find_faults(partial(fill_at, number)) for number in sorted(numbers)}
    report_faults(f"a disk that others fill, {command}", faults)


def report_faults(kind: str, faults: dict[int, list[str]]) -> None:
    with trying(kind, len(faults)):
        faulty = {number: sentences for number, sentences in faults.items() if sentences}
        assert not faulty, faulty
