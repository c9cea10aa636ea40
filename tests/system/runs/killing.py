"""Killing a run without warning, and what a resumed run makes of what is left."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
from patience import SECONDS
from samples.demo_runs import read_output_files

Command = Sequence[str]


def run_of(*arguments: str | Path) -> Command:
    """``evalkit run`` with these arguments, in a process of its own."""
    return [sys.executable, "-m", "evalkit", "run", *map(str, arguments)]


def samples_run(samples: Path, output: Path) -> Command:
    return run_of(
        *(samples, "--output", output),
        *("--classifications", samples / "classifications"),
        *("--production", samples / "production.csv"),
    )


def killed_at_random(command: Command, seed: int, longest: float, environment: Mapping[str, str] | None = None) -> bool:
    """Start a run, kill it and its readers after up to ``longest`` seconds; whether it was still running."""
    run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=_with(environment))
    time.sleep(random.Random(seed).uniform(0.3, longest))
    was_running = run.poll() is None
    readers = psutil.Process(run.pid).children(recursive=True) if was_running else []
    if was_running:
        os.kill(run.pid, signal.SIGKILL)
    run.wait()
    left = psutil.wait_procs(readers, timeout=SECONDS)[1]
    assert not left, "the reading processes outlived the run"
    return was_running


def resume_run(command: Command, output: Path, environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Run to the end what was killed; what the folder then holds."""
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=_with(environment))
    assert not list((output / ".tmp").glob("*"))
    records = [json.loads(path.read_text()) for path in output.glob("runs/*/run.json")]
    assert max(records, key=lambda record: record["number"])["sessions"][-1]["is_complete"]
    return read_output_files(output)


def _with(environment: Mapping[str, str] | None) -> dict[str, str]:
    return os.environ | dict(environment or {})
