"""Measure what every command answers in an output folder that a storage fault has broken.

``python -m benchmarks.broken_folders open`` prints a row for each idea and the totals; ``sealed`` measures the other half,
``second_open`` and ``second_sealed`` what happens to records, chains and backups.
The states and what a user expects of each command are those of ``first_contact.broken_folders``. Three readings of its rules:

- ``show`` and ``export`` do not need the database: they need not refuse, nor say that the index was rebuilt.
- A command that answers for the cases whose files are there, and names in counts what is missing with a remedy, is counted
  as ``warns``; it is accepted where a refusal with the same words is.
- Commands that read are tried one after the other in one state, each of the others in a state of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.first_contact.broken_folders import faults

DOCUMENTS = 23
#: The case that is shown, claimed and reviewed.
CASE = "adjoining_notes"
TESTS = Path(__file__).parents[1]
SAYS_REBUILT = ("the index was rebuilt", "the index did not agree with the folder")
#: Seconds that the process of the commands may take to load the program.
STARTING_SECONDS = 30
#: What a warning must have besides the gist, so that it counts as one: a remedy.
REMEDIES = ("restore", "run the document", "free", "permission")


@dataclass(frozen=True)
class Attempt:
    """What one command answered in one state."""

    idea: str
    command: str
    outcome: str
    is_accepted: bool
    text: str


@dataclass(frozen=True)
class HealthyFolder:
    """A healthy folder with what every command answers in it."""

    root: Path
    samples: Path
    answers: dict[str, Any]


# ------------------------------------------------------------------------------------------- the commands, in a process


def answer_commands(root: str, samples: str, workspace: str, moment: str, commands: list[str]) -> None:
    """Answer each command in a fork of this process, and print one JSON line for each."""
    for module in ("evalkit.cli.app", "evalkit.review", "evalkit.evaluation.report", "evalkit.pipeline.api"):
        importlib.import_module(module)
    for command in commands:
        reading_end, writing_end = os.pipe()
        if not (child := os.fork()):
            answer = _answer(command, Path(root), Path(samples), Path(workspace), moment)
            with os.fdopen(writing_end, "w") as pipe:
                json.dump(answer, pipe)
            os._exit(0)
        os.close(writing_end)
        with os.fdopen(reading_end) as pipe:
            answer = json.loads(pipe.read() or '{"status": -1, "content": null, "text": "traceback: it was killed"}')
        os.waitpid(child, 0)
        print(json.dumps({"command": command} | answer), flush=True)


def _answer(command: str, root: Path, samples: Path, workspace: Path, moment: str) -> dict[str, Any]:
    from evalkit.errors import EvalkitError

    out, err = io.StringIO(), io.StringIO()
    status, content = 0, None

    def strike() -> None:
        sys.__stdout__.write('{"strike": true}\n')
        sys.__stdout__.flush()
        sys.stdin.readline()

    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            if command in ("review", "claim", "save", "open_review"):
                if moment not in ("before", "backup", "beneath") and command in ("review", "open_review"):
                    strike()
                content = _use_library(command, root, moment, strike)
            elif command in faults.STORING:
                strike_backup = strike if moment == "backup" else lambda: None
                status, content = _use_backup(command, root, workspace, strike_backup, out)
            else:
                if moment not in ("before", "backup"):
                    strike()
                status, content = _use_program(command, root, samples, workspace, out)
        except EvalkitError as error:
            status = 1
            err.write(str(error))
        except Exception:  # noqa: BLE001 - a traceback is an answer, though never a right one
            status = 70
            err.write(traceback.format_exc())
    return {"status": status, "content": content, "text": err.getvalue() + ("" if status == 0 else out.getvalue())}


def _use_library(command: str, root: Path, moment: str, strike: Any) -> Any:
    from stress.saving import looked_at

    from evalkit.review import ReviewSession, SMEReviewHelper
    from evalkit.store import open_output_folder

    if command == "open_review":
        helper = SMEReviewHelper(root, "dr_grey")
        if moment == "beneath":
            strike()
        return sorted(helper.list_pending_reviews()["case_id"])
    session = ReviewSession(open_output_folder(root), "dr_grey", "tab")
    page = session.load_queue_page()
    if moment in ("claim", "beneath"):
        strike()
    if command == "review":
        return sorted(row.case_id for row in session.load_queue_page().rows)
    case = session.open_and_claim_case(CASE)
    if command == "claim":
        return sorted(row.case_id for row in page.rows)
    if moment == "save":
        strike()
    draft = looked_at(case)
    session.save_draft_and_get_time(CASE, draft)
    return session.submit_review(CASE, draft, undeterminable_reason="illegible").review.outcome


def _run_program(*arguments: str) -> int:
    from evalkit.cli.app import main

    sys.argv = ["evalkit", *arguments]
    try:
        main()
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


def _use_backup(command: str, root: Path, workspace: Path, strike: Any, out: io.StringIO) -> tuple[int, Any]:
    """Back the folder up; for ``restore``, list the cases of what is restored from this backup."""
    backups, restored = workspace / "backups", workspace / "restored"
    if status := _run_program("backup", str(backups), "--output", str(root)):
        return status, None
    if command == "backup":
        (stored,) = map(_digest, backups.glob("*/files"))
        return 0, all(stored.get(name) == digest for name, digest in _digest(root).items() if name.endswith(".json"))
    strike()
    if status := _run_program("restore", str(backups), "--output", str(restored)):
        return status, None
    out.truncate(out.seek(0))
    status = _run_program("queue", "--json", "--output", str(restored))
    return status, sorted(case["case_id"] for case in json.loads(out.getvalue())) if status == 0 else None


def _use_program(command: str, root: Path, samples: Path, workspace: Path, out: io.StringIO) -> tuple[int, Any]:
    export = workspace / f"export-{os.getpid()}.jsonl"
    arguments = {
        "queue": ["queue", "--json"],
        "report": ["report", "--json"],
        "show": ["show", CASE, "--json"],
        "export": ["export", "--to", str(export)],
        "audit verify": ["audit", "verify", "--json"],
        "run": ["run", str(samples), str(samples.parent / "new"), "--json"],
    }[command]
    status = _run_program(*arguments, "--output", str(root))
    if command == "queue" and status == 0:
        return status, sorted(case["case_id"] for case in json.loads(out.getvalue()))
    if command == "run" and out.getvalue().startswith("{"):
        documents = json.loads(out.getvalue())["documents"]
        return status, sorted((document["doc_id"], document["decision"]) for document in documents)
    if command == "export" and export.is_file():
        return status, sorted(json.loads(line)["doc_id"] for line in export.read_text().splitlines())
    if command == "audit verify" and out.getvalue().startswith("{"):
        return status, [fault["file"] for fault in json.loads(out.getvalue())["faults"]]
    if command == "report" and status == 0:
        return status, sorted(json.loads(out.getvalue()))
    return status, out.getvalue() if status == 0 else None


# ------------------------------------------------------------------------------------------------------ the measurement


def make_healthy_folder(place: Path) -> HealthyFolder:
    """Make the healthy folder, and note what every command answers in it."""
    samples, root = place / "samples", place / "output"
    python = [sys.executable, "-m"]
    subprocess.run([*python, "evalkit", "samples", str(samples)], check=True, capture_output=True, cwd=TESTS.parent)
    run = [*python, "evalkit", "run", str(samples), "--output", str(root)]
    run += ["--classifications", str(samples / "classifications"), "--production", str(samples / "production.csv")]
    subprocess.run(run, check=False, capture_output=True, cwd=TESTS.parent)
    experts = ["evalkit.samples.simulated_experts", str(root), str(samples / "truth.csv"), *faults.WAITING]
    subprocess.run([*python, *experts], check=True, capture_output=True, cwd=TESTS.parent)
    (place / "new").mkdir()
    (place / "new" / "letter.txt").write_text("Clinical Note\n\nThe patient was seen for a cough. Plan: rest.\n")
    answers = {}
    for command in (*faults.COMMANDS, *faults.STORING):
        copy = place / "copy"
        shutil.copytree(root, copy)
        (answer,) = run_commands(faults.Scene(copy), [command], samples, place, "before", 300)
        if answer["status"] not in (0, 1) or any(said in answer["text"] for said in SAYS_REBUILT):
            raise ValueError(f"{command} calls a healthy folder broken: {answer['text']}")
        answers[command] = answer
        shutil.rmtree(copy)
    if len(answers["queue"]["content"]) != len(faults.WAITING) or len(answers["run"]["content"]) != DOCUMENTS + 1:
        raise ValueError("the folder has other cases and documents than the ideas expect")
    return HealthyFolder(root, samples, answers)


def run_commands(
    scene: faults.Scene, commands: list[str], samples: Path, workspace: Path, moment: str, seconds: float
) -> list[dict[str, Any]]:
    """Run commands in one process, and return their answers."""
    program = [sys.executable, "-m", "benchmarks.broken_folders", "--answer", str(scene.root), str(samples)]
    wrapped = scene.wrap([*program, str(workspace), moment, *commands])
    environment = os.environ | {"PYTHONPATH": f"{TESTS.parent}:{TESTS}", "PYTHONDONTWRITEBYTECODE": "1"}
    process = subprocess.Popen(
        wrapped,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        cwd="/",
        start_new_session=True,  # its forks are ended with it: they may hold a disk that is to be unmounted
    )
    assert process.stdin
    assert process.stdout
    answers: list[dict[str, Any]] = []
    end = partial(_end_session, process)
    watchdog = threading.Timer(seconds * len(commands) + STARTING_SECONDS, end)  # also for one that says nothing
    watchdog.start()
    try:
        for line in process.stdout:
            answer = json.loads(line)
            if "strike" in answer:
                scene.strike()
                process.stdin.write("\n")
                process.stdin.flush()
            else:
                answers.append(answer)
    finally:
        watchdog.cancel()
        end()
        problem = process.communicate()[1]
    missing = {"status": -1, "content": None, "text": f"traceback: no answer {problem[-800:]}"}
    return answers + [{"command": command} | missing for command in commands[len(answers) :]]


def _end_session(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def judge(
    broken: faults.BrokenFolder, command: str, answer: dict[str, Any], healthy: dict[str, Any]
) -> tuple[str, bool]:
    """Name the outcome of an answer, and say whether the user may expect it."""
    expected, text = broken.expectation[command], answer["text"].lower()
    has_gist = all(any(word in text for word in words.split("|")) for words in expected.gist)
    if any(words in text for words in faults.NEVER):
        return "misleads", False
    if answer["status"] == healthy["status"] and _is_same(answer["content"], healthy["content"], broken.waiting):
        outcome = "repairs" if any(said in text for said in SAYS_REBUILT) else "works"
        is_accepted = outcome in expected.outcomes or command in ("show", "export")
    elif answer["status"] in (1, 2):
        outcome = "refuses"
        is_accepted = outcome in expected.outcomes and has_gist
    elif answer["status"] == 0 and text and any(word in text for word in REMEDIES):
        outcome = "warns"
        is_accepted = "refuses" in expected.outcomes and has_gist
    else:
        return "differs", False
    return outcome, is_accepted and (outcome == "works" or not any(words in text for words in expected.never))


def _is_same(content: Any, healthy: Any, waiting: int) -> bool:
    if not waiting or not isinstance(content, list):
        return bool(content == healthy)
    return {*map(str, content)} >= {*map(str, healthy)} and len(content) - len(healthy) in (0, waiting)


def measure_idea(broken: faults.BrokenFolder, healthy: HealthyFolder) -> list[Attempt]:
    """Try every command in a state, and what they answer once the cause is gone."""
    attempts = []
    storing = [[name] for name in faults.STORING if name in broken.expectation]
    for commands in (list(faults.READING), *([name] for name in faults.WRITING), *storing):
        with tempfile.TemporaryDirectory(dir="/var/tmp", ignore_cleanup_errors=True) as place:
            Path(place).chmod(0o755)
            root, workspace = Path(place, "output"), Path(place, "workspace")
            shutil.copytree(healthy.root, root)
            with broken.build(root, workspace) as scene:
                workspace.chmod(0o777)
                before = _digest(scene.root) if broken.is_unchanged else None
                answers = run_commands(scene, commands, healthy.samples, workspace, broken.moment, broken.seconds)
                is_changed = before is not None and len(commands) > 1 and _digest(scene.root) != before
            broken.mend(root, workspace)
            for answer in answers:
                command = answer["command"]
                outcome, is_accepted = judge(broken, command, answer, healthy.answers[command])
                attempts.append(Attempt(broken.name, command, outcome, is_accepted, answer["text"][-600:]))
            if is_changed:
                attempts.append(Attempt(broken.name, "reading", "changes the folder", False, ""))
            attempts.append(_judge_mended(broken, root, workspace, healthy, commands))
    return attempts


def _judge_mended(
    broken: faults.BrokenFolder, root: Path, workspace: Path, healthy: HealthyFolder, commands: list[str]
) -> Attempt:
    """Judge the folder once the cause is gone: every case is listed, and every review is there."""
    scene = faults.Scene(root)
    answers = run_commands(scene, ["queue", "open_review"], healthy.samples, workspace, "before", 60)
    waiting = {*healthy.answers["queue"]["content"]} - ({CASE} if commands == ["save"] else set())
    lost_reviews = [
        path
        for path in (healthy.root / "reviews").rglob("*.json")
        if not (root / path.relative_to(healthy.root)).is_file()
    ]
    is_mended = not lost_reviews and all(
        answer["status"] == 0 and {*answer["content"]} >= waiting for answer in answers
    )
    text = "" if is_mended else json.dumps(answers)[-600:]
    return Attempt(
        broken.name, f"afterwards ({commands[0]})", "works" if is_mended else "stays broken", is_mended, text
    )


def _digest(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        for path in sorted(root.rglob("*"))
        if path.name not in faults.LOCKS
    }


def measure_half(half: str, names: list[str] | None = None) -> Iterator[list[Attempt]]:
    """Measure each idea of a half that this machine can build."""
    ideas = importlib.import_module(f"benchmarks.first_contact.broken_folders.{half}").IDEAS
    with tempfile.TemporaryDirectory(dir="/var/tmp") as place:
        Path(place).chmod(0o755)
        started = time.monotonic()
        healthy = make_healthy_folder(Path(place))
        print(f"the healthy folder is made, in {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
        for path in (healthy.samples, healthy.samples.parent / "new"):
            path.chmod(0o755)
        for broken in ideas:
            if names and broken.name not in names:
                continue
            if obstacle := faults.find_obstacle(broken):
                print(f"{broken.name}: skipped, {obstacle}", flush=True)
                continue
            try:
                yield measure_idea(broken, healthy)
            except subprocess.CalledProcessError as error:
                print(f"{broken.name}: not built, {error}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("half", choices=("open", "sealed", "second_open", "second_sealed"))
    parser.add_argument("names", nargs="*", help="ideas to measure; by default all")
    arguments = parser.parse_args()
    total = Counter[bool]()
    for attempts in measure_half(arguments.half, arguments.names):
        total.update(attempt.is_accepted for attempt in attempts)
        wrong = [attempt for attempt in attempts if not attempt.is_accepted]
        outcomes = Counter(attempt.outcome for attempt in attempts)
        print(f"{attempts[0].idea}: {len(attempts) - len(wrong)} of {len(attempts)} {dict(outcomes)}", flush=True)
        if arguments.half.endswith("open"):  # of a sealed half only the counts are shown
            for attempt in wrong:
                print(f"   {attempt.command}: {attempt.outcome}: {attempt.text.strip()}", flush=True)
    print(f"{total[True]} of {total.total()} answers as expected", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--answer"]:
        answer_commands(*sys.argv[2:6], sys.argv[6:])
    else:
        main()
