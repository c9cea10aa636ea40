"""The systemd units of the documentation are ones that systemd understands, and start commands that evalkit has."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import typer

import evalkit
from evalkit.cli.app import app

PAGE = (Path(evalkit.__file__).parent / "docs/operations.md").read_text()
#: Each unit's file name, and its text: the block that follows its path.
UNITS = dict(
    re.findall(r"`/etc/systemd/system/(evalkit-[a-z]+\.[a-z]+)`.*?\n```\n(\[Unit\].*?)^```$", PAGE, re.S | re.M)
)
SERVICES = sorted(name for name in UNITS if name.endswith(".service"))
PROGRAM = "/srv/evalkit/.venv/bin/evalkit"
#: The greatest exposure, of 10, that `systemd-analyze security` may find for the hardened units.
GREATEST_EXPOSURE = 25


def values_of(unit: str, key: str) -> list[str]:
    return re.findall(rf"^{key}=(.*)$", UNITS[unit], re.MULTILINE)


def analyze(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run systemd-analyze on the units, whose program need not exist here."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    for name, text in UNITS.items():
        (folder / name).write_text(text.replace(PROGRAM, "/bin/true"))
    command = ["systemd-analyze", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_units_are_those_that_the_page_names() -> None:
    assert set(UNITS) == {
        *("evalkit-inbox.service", "evalkit-inbox.timer"),
        *("evalkit-review.service", "evalkit-backup.service", "evalkit-backup.timer"),
    }
    for name in UNITS:
        assert name.removesuffix(".timer") + ".service" in UNITS or name.endswith(".service")


@pytest.mark.parametrize("unit", SERVICES)
def test_a_unit_starts_a_command_with_valid_options(unit: str) -> None:
    command = typer.main.get_command(app)
    lines = [line for line in values_of(unit, "ExecStart") if line.startswith(PROGRAM)]
    assert lines
    for line in lines:
        words = shlex.split(line)[1:]
        subcommand = command.commands[words[0]]
        subcommand.make_context(words[0], words[1:], resilient_parsing=False)


@pytest.mark.parametrize("unit", SERVICES)
def test_a_unit_may_write_where_its_command_writes(unit: str) -> None:
    (folders,) = values_of(unit, "ReadWritePaths")
    (work,) = values_of(unit, "WorkingDirectory")
    for line in values_of(unit, "ExecStart"):
        words = shlex.split(line)
        for place in [f"{work}/{words[words.index('--output') + 1]}"] if "--output" in words else []:
            assert place in folders.split()
    assert values_of(unit, "ProtectSystem") == ["strict"]


@pytest.mark.parametrize("unit", sorted(UNITS))
def test_systemd_understands_a_unit(unit: str, tmp_path: Path) -> None:
    done = analyze(tmp_path, "verify", "--man=no", f"./{unit}")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("unit", SERVICES)
def test_systemd_finds_little_exposure(unit: str, tmp_path: Path) -> None:
    done = analyze(tmp_path, "security", "--offline=true", f"--threshold={GREATEST_EXPOSURE}", f"./{unit}")
    assert done.returncode == 0, done.stdout
