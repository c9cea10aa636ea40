"""The house's guidelines, which somebody else has written into the output folder."""

from pathlib import Path

import pytest
from places import open_folder, open_index

from evalkit.review.guidelines import MAX_GUIDELINES_BYTES, read_guidelines

TEXT = """\ufeff# Our house rules

A consent form is Other.
Ask before you correct.

- first <b>thing</b>
2. second\u202e thing\x00
## More
"""


@pytest.fixture(autouse=True)
def output(tmp_path: Path) -> None:
    """The folder is evalkit's: others are refused."""
    open_index(tmp_path).close()


def test_headings_lists_and_paragraphs_are_read(tmp_path: Path) -> None:
    (tmp_path / "guidelines.md").write_text(TEXT, "utf-8")
    assert read_guidelines(open_folder(tmp_path)) == [
        {"kind": "heading", "lines": ["Our house rules"]},
        {"kind": "text", "lines": ["A consent form is Other.", "Ask before you correct."]},
        {"kind": "list", "lines": ["first <b>thing</b>", "second thing"]},
        {"kind": "heading", "lines": ["More"]},
    ]


def test_without_a_file_there_are_no_guidelines(tmp_path: Path) -> None:
    assert read_guidelines(open_folder(tmp_path)) == []


@pytest.mark.parametrize(
    ("content", "problem"), [(b"a" * (MAX_GUIDELINES_BYTES + 1), "longer than 64 kB"), (b"\xff\xfe", "not UTF-8")]
)
def test_a_file_that_cannot_be_shown_is_reported(tmp_path: Path, content: bytes, problem: str) -> None:
    (tmp_path / "guidelines.md").write_bytes(content)
    (block,) = read_guidelines(open_folder(tmp_path))
    assert problem in block["lines"][0]


def test_a_link_to_another_place_is_no_guideline(tmp_path: Path) -> None:
    (tmp_path / "guidelines.md").symlink_to("/dev/zero")
    (block,) = read_guidelines(open_folder(tmp_path))
    assert "cannot be shown" in block["lines"][0]
