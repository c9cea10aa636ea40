"""The inputs for interchange are what they say: words are on their pages, schemas hold, halves differ."""

import importlib
import shutil

import pymupdf
import pytest
from benchmarks.first_contact.interchange.packets import SourceFile
from benchmarks.first_contact.interchange.revealing import find_words, open_pdf, read_shown_words

PACKAGE = "benchmarks.first_contact.interchange"
HALVES = ("open", "sealed")
ENCRYPTED = {"encrypted_rc4", "encrypted_aes"}
DRAWN_ONLY = {"type3_glyphs"}
"""Pages whose words no text layer has."""


def build(half: str, kind: str) -> list:
    return list(importlib.import_module(f"{PACKAGE}.{half}_{kind}").build())


@pytest.fixture(scope="module", params=HALVES)
def sources(request: pytest.FixtureRequest) -> list[SourceFile]:
    return build(request.param, "source_files")


def cut_naively(source: SourceFile, index: int) -> bytes:
    """The pages of a segment as MuPDF copies them, with no further care."""
    segment = source.segments[index]
    cut = pymupdf.open()
    cut.insert_pdf(open_pdf(source.data), from_page=segment.start - 1, to_page=segment.end - 1)
    return cut.tobytes(garbage=4)


def test_source_files_are_many_and_have_names(sources: list[SourceFile]) -> None:
    assert len({source.name for source in sources}) == len(sources) >= 50
    assert all(source.foreign_words and all(source.foreign_words) for source in sources)
    assert all(len(source.segments) in range(2, 7) for source in sources)


def test_source_files_are_the_same_each_time() -> None:
    for half in HALVES:
        pairs = zip(build(half, "source_files"), build(half, "source_files"), strict=True)
        assert [a.name for a, b in pairs if a != b and a.name not in ENCRYPTED] == []


def test_halves_of_source_files_share_no_idea() -> None:
    ideas = [{(source.name, source.what) for source in build(half, "source_files")} for half in HALVES]
    assert not {name for name, _ in ideas[0]} & {name for name, _ in ideas[1]}
    assert not {what for _, what in ideas[0]} & {what for _, what in ideas[1]}


def test_every_word_is_somewhere_in_its_file(sources: list[SourceFile]) -> None:
    for source in sources:
        words = {word for row in [*source.words_of_page.values(), *source.foreign_words] for word in row}
        assert find_words(source.data, words) == words, source.name


def test_pages_show_their_words_and_no_others(sources: list[SourceFile]) -> None:
    for source in sources:
        if source.suffix != "pdf" or source.name in DRAWN_ONLY:
            continue
        document = open_pdf(source.data)
        assert len(document) == source.segments[-1].end
        for page in document:
            words = set(source.words_of_page["", page.number + 1])
            assert read_shown_words(page, words) == words, (source.name, page.number + 1)


@pytest.mark.skipif(not shutil.which("tesseract"), reason="needs tesseract-ocr")
def test_a_second_reader_sees_the_words_as_well(sources: list[SourceFile]) -> None:
    for source in sources[::6] + [source for source in sources if source.name in DRAWN_ONLY]:
        if source.suffix == "pdf":
            # Without its text layer, the page has what an eye sees.
            page = open_pdf(source.data)[0]
            flat = pymupdf.open()
            shown = page.get_pixmap(dpi=200)
            flat.new_page(width=page.rect.width, height=page.rect.height).insert_image(page.rect, pixmap=shown)
            words = set(source.words_of_page["", 1])
            read = read_shown_words(flat[0], words, recognise=True)
            assert len(read) >= len(words) - 1, source.name


def test_the_finder_is_silent_about_a_clean_cut(sources: list[SourceFile]) -> None:
    plain = [source for source in sources if source.name.startswith("plain")]
    assert len(plain) == 2
    for source in plain:
        for index, foreign in enumerate(source.foreign_words):
            assert find_words(cut_naively(source, index), foreign) == set()


def test_a_naive_cut_carries_foreign_words(sources: list[SourceFile]) -> None:
    leaking = [
        source.name
        for source in sources
        if source.suffix == "pdf"
        and any(find_words(cut_naively(source, index), foreign) for index, foreign in enumerate(source.foreign_words))
    ]
    assert len(leaking) >= 20
