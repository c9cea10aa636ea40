"""Finding files, reading their bytes, naming them by their hash."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from evalkit.documents import source_file
from evalkit.documents.input_files import SkippedFile, list_input_files
from evalkit.documents.readers import read_document
from evalkit.documents.readers.pdf import get_local_reader_version
from evalkit.documents.source_file import hash_source_file, read_source_file
from evalkit.errors import DocumentError, UsageError

from .drawing import LEFT, lines, pdf


@pytest.fixture
def records(tmp_path: Path) -> Path:
    """A folder as people keep them."""
    for name in ("b.pdf", "a.PDF", "notes.xyz", ".hidden.pdf", "sub/c.pdf", ".cache/d.pdf", "._a.pdf"):
        path = tmp_path / "records" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"no PDF" if path.suffix == ".xyz" else b"%PDF-1.4")
    (tmp_path / "records" / "folder.pdf").mkdir()
    return tmp_path / "records"


def test_folders_are_searched_recursively_without_hidden_files(records: Path) -> None:
    assert [str(path.relative_to(records)) for path in list_input_files([records])] == ["a.PDF", "b.pdf", "sub/c.pdf"]


def test_other_files_are_skipped_by_name_and_pdfs_are_read_whatever_their_ending(records: Path) -> None:
    (records / "scan.dat").write_bytes(b"%PDF-1.4")
    (records / "sub" / "table.xlsx").write_bytes(b"PK\x03\x04")
    skipped: list[SkippedFile] = []
    names = [path.name for path in list_input_files([records], on_skipped=skipped.append)]
    assert names == ["a.PDF", "b.pdf", "scan.dat", "c.pdf"]
    assert sorted(Path(one.file).name for one in skipped) == ["notes.xyz", "table.xlsx"]
    assert all("save it as PDF" in one.reason for one in skipped)


def test_named_file_is_read_whatever_its_suffix_and_only_once(records: Path) -> None:
    named = [
        records / "notes.xyz",
        records,
        records / "b.pdf",
        records / "sub" / ".." / "b.pdf",
        records / ".hidden.pdf",
    ]
    assert [path.name for path in list_input_files(named)] == [".hidden.pdf", "a.PDF", "b.pdf", "notes.xyz", "c.pdf"]


@pytest.mark.timeout(20)
def test_link_loops_end_and_links_do_not_double(records: Path) -> None:
    for name in ("loop", "again", "once_more"):  # without a memory, three loops would be 3 ** 40 folders
        (records / "sub" / name).symlink_to(records)
    (records / "again.pdf").symlink_to(records / "b.pdf")
    (records / "gone.pdf").symlink_to(records / "nowhere.pdf")
    assert len(list_input_files([records])) == 3


def test_links_out_of_the_folder_are_named_and_not_followed(records: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.pdf").write_bytes(b"%PDF-1.4")
    (records / "file.pdf").symlink_to(outside / "secret.pdf")
    (records / "sub" / "folder").symlink_to(outside)
    (records / "root").symlink_to("/")
    problems: list[UsageError] = []
    found = list_input_files([records], on_problem=problems.append)
    assert [path.name for path in found] == ["a.PDF", "b.pdf", "c.pdf"]
    assert sorted(str(one).partition(" leads out")[0] for one in problems) == [
        f"the link {records / name}" for name in ("file.pdf", "root", "sub/folder")
    ]
    assert [path.name for path in list_input_files([records / "file.pdf"])] == ["file.pdf"]  # whoever names it means it
    (tmp_path / "link").symlink_to(records)
    assert len(list_input_files([tmp_path / "link"])) == 3


def test_what_is_no_file_is_named(records: Path) -> None:
    os.mkfifo(records / "pipe.pdf")
    os.mkfifo(records / "sub" / "pipe")
    (records / "sub" / "link.pdf").symlink_to("pipe")
    (records / "null.pdf").symlink_to("/dev/null")
    problems: list[UsageError] = []
    assert len(list_input_files([records], on_problem=problems.append)) == 3
    assert sorted(one.message for one in problems) == [
        f"{records / name} is a pipe or device, not a file" for name in ("null.pdf", "pipe.pdf", "sub/link.pdf")
    ]


def test_missing_paths_and_empty_folders_are_usage_errors(records: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere\.pdf does not exist"):
        list_input_files([records / "nowhere.pdf"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r"no PDF, .*EML.* in the folder"):
        list_input_files([records, tmp_path / "empty"])


def test_a_bundle_and_its_hash_come_from_one_reading(tmp_path: Path) -> None:
    path = tmp_path / "report.pdf"
    path.write_bytes(pdf(lines(LEFT)))
    bundle = read_document(path, doc_id="report", processing_timestamp="2026-01-02T03:04:05Z")
    assert bundle.sha256 == hash_source_file(path) == hashlib.sha256(path.read_bytes()).hexdigest()
    assert (bundle.file_path, bundle.reader.split(", ")[0]) == (str(path), get_local_reader_version())
    assert read_document(path, doc_id="report", processing_timestamp="2026-01-02T03:04:05Z") == bundle


def code_of(path: Path) -> str:
    with pytest.raises(DocumentError) as caught:
        read_source_file(path)
    assert path.name in caught.value.message
    return caught.value.code


def test_unreadable_paths(tmp_path: Path) -> None:
    assert code_of(tmp_path / "missing.pdf") == "READER-UNREADABLE"
    assert code_of(tmp_path) == "READER-UNREADABLE"
    with pytest.raises(DocumentError, match="does not exist"):
        hash_source_file(tmp_path / "missing.pdf")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_without_permission(tmp_path: Path) -> None:
    path = tmp_path / "locked.pdf"
    path.write_bytes(b"%PDF-1.4")
    path.chmod(0)
    assert code_of(path) == "READER-UNREADABLE"


def test_permission_is_named_as_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "no")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(DocumentError, match="may not be read by this user"):
        read_source_file(tmp_path / "x.pdf")


@pytest.mark.parametrize("read", [read_source_file, hash_source_file])
def test_a_folder_that_cannot_be_searched(tmp_path: Path, read: Callable[[Path], object]) -> None:
    too_long_name = "x" * 300  # refused by the disk, for root too
    with pytest.raises(DocumentError, match="could not be read from the disk"):
        read(tmp_path / too_long_name / "a.pdf")


def test_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_file, "MAX_FILE_BYTES", 8)
    path = tmp_path / "big.pdf"
    path.write_bytes(b"%PDF-1.4")
    assert read_source_file(path) == b"%PDF-1.4"
    path.write_bytes(b"%PDF-1.4\n")
    assert code_of(path) == "READER-TOO-LARGE"
    with pytest.raises(DocumentError, match="larger than"):  # nor does anybody wait for its hash
        hash_source_file(path)
