"""The command line, in a process of its own or, a second or three quicker, in the test's."""

from __future__ import annotations

import io
import logging
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from evalkit.cli import main


def evalkit_process(*words: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The command as a shell starts it: for what a process of its own shows."""
    command = [sys.executable, "-m", "evalkit", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)


def evalkit_command(*words: object, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """The whole command in this process."""
    told, complaints = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(told), redirect_stderr(complaints):
        patch.setattr(sys, "argv", ["evalkit", *map(str, words)])
        patch.setattr(logging.root, "handlers", [])  # or the test's own would get what is logged
        patch.chdir(cwd or Path.cwd())
        for name, value in environment.items():
            patch.setenv(name, value)
        with pytest.raises(SystemExit) as ended:
            main()
    return subprocess.CompletedProcess(words, int(ended.value.code or 0), told.getvalue(), complaints.getvalue())
