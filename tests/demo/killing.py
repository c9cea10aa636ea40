"""Killing a run without warning, and what a resumed run makes of what is left."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
from demo.outputs import contents


def killed_at_random(samples: Path, output: Path, seed: int, longest: float) -> bool:
    """Start a run, kill it and its readers after up to ``longest`` seconds; whether it was still running."""
    run = subprocess.Popen(_command(samples, output), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(random.Random(seed).uniform(0.3, longest))
    was_running = run.poll() is None
    readers = psutil.Process(run.pid).children(recursive=True) if was_running else []
    if was_running:
        os.kill(run.pid, signal.SIGKILL)
    run.wait()
    left = psutil.wait_procs(readers, timeout=20)[1]
    assert not left, "the reading processes outlived the run"
    return was_running


def resumed(samples: Path, output: Path) -> dict[str, object]:
    """Run to the end what was killed; what the folder then holds."""
    subprocess.run(_command(samples, output), check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert not list((output / ".tmp").glob("*"))
    return contents(output)


def _command(samples: Path, output: Path) -> list[str]:
    return [
        *(sys.executable, "-m", "evalkit", "run", str(samples), "--output", str(output)),
        *("--classifications", str(samples / "classifications")),
        *("--production", str(samples / "production.csv")),
    ]
