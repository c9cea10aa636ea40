"""What others have put beside the documents is a file of bounded size, or is named and not waited for."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from places import open_folder

from evalkit.classification.orchestrator import UnparseableClassification
from evalkit.classification.traps import load_shipped_and_site_traps
from evalkit.core.safe_io import FileTooLarge, NotARegularFile, read_regular_file
from evalkit.documents.source_file import hash_source_file, read_source_file
from evalkit.errors import DocumentError, StoreError, UsageError
from evalkit.pipeline.document_discovery import SourceDocument
from evalkit.pipeline.supplied_labels import read_production_labels, read_supplied_classifications, read_true_labels

pytestmark = pytest.mark.timeout(20)


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(path))  # the name of a socket may not be long


def a_sparse_file(path: Path) -> None:
    path.touch()
    os.truncate(path, 200 * 1024**3)


UNFIT = {
    "pipe": os.mkfifo,
    "socket": a_socket,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "sparse file": a_sparse_file,
}


@pytest.fixture(params=UNFIT.values(), ids=UNFIT.keys())
def unfit(request: pytest.FixtureRequest) -> Callable[[Path], Path]:
    def make(path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        request.param(path)
        return path

    return make


def test_a_file_is_read_whole_up_to_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"12345678")
    assert read_regular_file(path, 8) == b"12345678"
    with pytest.raises(FileTooLarge):
        read_regular_file(path, 7)
    with pytest.raises(FileTooLarge):  # it says that it has no bytes
        read_regular_file("/proc/self/status", 7)
    with pytest.raises(IsADirectoryError):
        read_regular_file(tmp_path)


def test_what_is_no_file_of_that_size_is_refused(unfit: Callable[[Path], Path], tmp_path: Path) -> None:
    with pytest.raises((NotARegularFile, FileTooLarge), match=r"pipe or device|larger than 256 MB"):
        read_regular_file(unfit(tmp_path / "a"))


@pytest.mark.parametrize(
    ("read", "name"),
    [
        (read_production_labels, "a.csv"),
        (read_production_labels, "a.json"),
        (read_true_labels, "a.csv"),
        (load_shipped_and_site_traps, "a.toml"),
    ],
)
def test_what_stands_beside_the_documents_is_named(
    unfit: Callable[[Path], Path], tmp_path: Path, read: Callable[..., object], name: str
) -> None:
    path = unfit(tmp_path / name)
    with pytest.raises(UsageError, match=r"pipe or device|larger than") as refused:
        read(str(path) if read is load_shipped_and_site_traps else path)
    assert str(path) in refused.value.message


def test_a_classification_is_unparseable(unfit: Callable[[Path], Path], tmp_path: Path) -> None:
    unfit(tmp_path / "one.json")
    supplied, problems = read_supplied_classifications(tmp_path, [SourceDocument("one", tmp_path / "one.pdf", None)])
    assert isinstance(supplied["one"], UnparseableClassification)
    assert problems == []


@pytest.mark.parametrize("read", [read_source_file, hash_source_file])
def test_a_document_is_refused_before_it_is_read(
    unfit: Callable[[Path], Path], tmp_path: Path, read: Callable[[Path], object]
) -> None:
    with pytest.raises(DocumentError, match=r"a\.pdf is (a pipe or device|larger than 512 MB)"):
        read(unfit(tmp_path / "a.pdf"))


@pytest.mark.parametrize("at_most", [None, 100])
def test_in_the_output_folder_it_is_a_damaged_file(
    unfit: Callable[[Path], Path], tmp_path: Path, at_most: int | None
) -> None:
    unfit(tmp_path / "results" / "a.json")
    with pytest.raises(StoreError, match=r"results/a\.json is not one of evalkit's files") as refused:
        open_folder(tmp_path).read_bytes("results/a.json", at_most)
    assert refused.value.code == "STORE-TORN"
