"""The inputs of every entry point: one path or several, and never the whole disk by mistake."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import evalkit_command

import evalkit
from evalkit.errors import UsageError
from evalkit.pipeline import extract
from evalkit.pipeline.document_discovery import discover_documents
from evalkit.settings import Settings


def challenge(paths: Any, output: Path) -> None:
    evalkit.challenge(paths, settings=Settings(), limit=1)


def run(paths: Any, output: Path) -> None:
    evalkit.run(paths, output=output)


def extract_fields(paths: Any, output: Path) -> None:
    extract(paths, output=output)


ENTRY_POINTS = (run, extract_fields, challenge)


@pytest.mark.parametrize("as_type", [str, Path])
def test_one_path_is_not_walked_by_its_characters(
    samples: Path, tmp_path: Path, as_type: Callable[[Path], Any]
) -> None:
    shutil.copy(samples / "quest_cbc.pdf", tmp_path / "quest_cbc.pdf")
    summary = evalkit.run(as_type(tmp_path), output=tmp_path / "output")
    assert [document.doc_id for document in summary.documents] == ["quest_cbc"]
    assert summary.problems == ()
    fields = extract(as_type(tmp_path / "quest_cbc.pdf"), output=tmp_path / "output")
    assert [document.doc_id for document in fields.documents] == ["quest_cbc"]


@pytest.mark.parametrize("entry_point", ENTRY_POINTS)
@pytest.mark.parametrize("is_list", [False, True])
def test_broad_folders_are_refused(
    entry_point: Callable[[Any, Path], None], is_list: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    (tmp_path / "link").symlink_to("/")
    (home / "records").mkdir()
    for broad in ("/", "//", tmp_path / "link", home, f"{home}/records/.."):
        with pytest.raises(UsageError) as refused:
            entry_point([broad] if is_list else broad, tmp_path / "output")
        assert refused.value.code == "READER-BROAD"
    assert not list((tmp_path / "output").glob("results/*"))


def test_the_output_folder_is_refused_as_input(samples: Path, tmp_path: Path) -> None:
    output = tmp_path / "output"
    evalkit.run(samples / "quest_cbc.pdf", output=output)
    for words in (("run", output), ("extract", f"{output}{os.sep}")):
        command = evalkit_command(*words, "--output", output)
        assert command.returncode == 2
        assert "is the output folder itself" in command.stderr
        assert "--yes" in command.stderr


def test_yes_reads_a_broad_folder(samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(samples / "quest_cbc.pdf", tmp_path / "quest_cbc.pdf")
    monkeypatch.setenv("HOME", str(tmp_path))
    command = evalkit_command("run", tmp_path, "--yes", "--output", tmp_path / "output")
    assert command.returncode == 0
    assert (tmp_path / "output" / "results" / "quest_cbc.json").is_file()
    (source,) = discover_documents(tmp_path / "quest_cbc.pdf", {}).sources
    assert source.doc_id == "quest_cbc"


def test_what_no_path_can_be_is_named_as_missing(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    for path in (str(loop), "a\0b"):
        with pytest.raises(UsageError, match="does not exist"):
            discover_documents(path, {})


def test_a_user_may_have_no_home_folder(samples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def find_no_user(number: int) -> None:
        raise KeyError(number)

    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", find_no_user)
    assert discover_documents(samples, {}).sources
