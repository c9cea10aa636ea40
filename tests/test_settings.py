"""Settings: precedence, and errors of one line."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import evalkit_command


def test_settings_come_from_option_then_environment_then_file(samples: Path, tmp_path: Path) -> None:
    (tmp_path / "evalkit.toml").write_text('output = "from_file"\n')
    document = samples / "quest_cbc.pdf"
    evalkit_command("run", document, cwd=tmp_path)
    evalkit_command("run", document, cwd=tmp_path, EVALKIT_OUTPUT="from_environment")
    evalkit_command("run", document, "--output", "from_option", cwd=tmp_path, EVALKIT_OUTPUT="from_environment")
    assert {path.name for path in tmp_path.iterdir()} == {
        "evalkit.toml",
        "from_file",
        "from_environment",
        "from_option",
    }


@pytest.mark.parametrize(
    "text",
    [
        "outptu = 'x'",
        "workers = -1",
        "workers = [",
        "[models]\ndefault = 'gpt'",
        "audit_rate = 2.0",
        "[foreign_types]\nGEN = 'Genomc Report'",
    ],
)
def test_wrong_settings_are_one_line(samples: Path, tmp_path: Path, text: str) -> None:
    (tmp_path / "evalkit.toml").write_text(text)
    shown = evalkit_command("run", samples / "quest_cbc.pdf", cwd=tmp_path)
    assert shown.returncode == 2
    assert len(shown.stderr.strip().splitlines()) == 1


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "make",
    [
        Path.mkdir,
        os.mkfifo,
        lambda path: path.symlink_to("nowhere"),
        lambda path: path.symlink_to("evalkit.toml"),
        lambda path: path.symlink_to("/dev/zero"),
    ],
    ids=["folder", "pipe", "dangling link", "link to itself", "device"],
)
def test_settings_that_are_no_file_are_not_passed_over(
    samples: Path, tmp_path: Path, make: Callable[[Path], object]
) -> None:
    make(tmp_path / "evalkit.toml")
    shown = evalkit_command("run", samples / "quest_cbc.pdf", cwd=tmp_path)
    assert shown.returncode == 2
    (line,) = shown.stderr.splitlines()
    assert line.startswith("evalkit: evalkit.toml in this folder cannot be read")
    assert not (tmp_path / "output").exists()
