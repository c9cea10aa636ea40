"""The inputs for interchange are what they say: words are on their pages, schemas hold, halves differ."""

import importlib
import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import jsonschema
import pymupdf
import pytest
from benchmarks.first_contact.interchange.answers import DOCUMENTS
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


def print_schema(kind: str) -> jsonschema.Draft202012Validator:
    command = [sys.executable, "-m", "evalkit", "schema", kind]
    printed = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    return jsonschema.Draft202012Validator(json.loads(printed))


@pytest.mark.parametrize("half", HALVES)
def test_ground_truths_are_valid_unless_refused(half: str) -> None:
    validators = {kind: print_schema(kind) for kind in ("ground_truth", "classification", "review")}
    truths = build(half, "ground_truths")
    assert len({truth.name for truth in truths}) == len(truths) >= 40
    for truth in truths:
        for record in truth.records:
            is_valid = validators[truth.kind].is_valid(record) and record.get("schema_version", 1) == 1
            assert is_valid == (truth.outcome != "refused"), truth.name
        for review in truth.reviews:
            validators["review"].validate(review)
        assert bool(truth.records) == (truth.outcome != "nothing")


@pytest.mark.parametrize("half", HALVES)
def test_quotes_of_ground_truths_are_on_their_pages(half: str) -> None:
    for truth in build(half, "ground_truths"):
        for record in truth.records:
            for segment in record.get("ground_truth_classification", record)["segments"]:
                pages = range(segment["start_page"], segment["end_page"] + 1)
                for quote in (quote for row in segment["segment_composition"] for quote in row.get("top_evidence", [])):
                    assert quote["page"] in pages
                    in_picture = quote.get("seen_in_picture", False)
                    assert (quote["snippet"] in truth.pages[quote["page"] - 1]) != in_picture, truth.name


@pytest.mark.parametrize("half", HALVES)
def test_label_files_say_what_they_expect(half: str) -> None:
    files = build(half, "label_studio")
    assert len({file.name for file in files}) == len(files) >= 40
    for file in files:
        expected = file.expected
        assert (expected.outcome == "imported") == bool(expected.answers), file.name
        assert expected.outcome == "imported" or expected.told, file.name
        for document, answers in expected.answers.items():
            assert document in DOCUMENTS
            for answer in answers:
                pages = [page for start, end, _ in answer.segments for page in range(start, end + 1)]
                assert pages == list(range(1, DOCUMENTS[document].pages + 1))


@pytest.mark.parametrize("half", HALVES)
def test_sound_label_files_have_the_keys_of_the_tool(half: str) -> None:
    for file in build(half, "label_studio"):
        if file.expected.outcome != "imported" or file.suffix != "json" or file.name.startswith("minimal"):
            continue
        tasks = json.loads(file.data.decode("utf-8-sig"))
        for task in [task for task in (tasks if isinstance(tasks, list) else [tasks]) if isinstance(task, dict)]:
            for annotation in (row for row in task["annotations"] if isinstance(row, dict)):
                assert {"id", "completed_by", "result", "was_cancelled", "ground_truth"} <= annotation.keys()
                for row in annotation["result"]:
                    key = {"textarea": "text", "pairwise": "selected"}.get(row["type"], row["type"])
                    assert row["type"] == "relation" or key in row["value"], (file.name, row["type"])


@pytest.mark.parametrize("half", HALVES)
def test_label_files_follow_a_table_of_names(half: str) -> None:
    module = importlib.import_module(f"{PACKAGE}.{half}_label_studio")
    names = {"page_type": "kind_of_page", "document": "doc_id", "begins": "starts"}
    renamed = {file.name: file for file in module.build(module.adapt(names))}
    plain = {file.name: file for file in module.build()}
    assert renamed.keys() == plain.keys()
    full = next(name for name in renamed if name.startswith("full"))
    assert b'"kind_of_page"' in renamed[full].data
    assert b'"page_type"' not in renamed[full].data
    assert renamed[full].expected == plain[full].expected


def compute_loinc_digit(number: str) -> int:
    doubled = "".join(str(int(digit) * (2 if place % 2 == 0 else 1)) for place, digit in enumerate(reversed(number)))
    return -sum(map(int, doubled)) % 10


@pytest.mark.parametrize("half", HALVES)
def test_types_files_hold_what_they_say(half: str, tmp_path: Path) -> None:
    files = build(half, "types_files")
    assert len({file.name for file in files}) == len(files) >= 20
    for file in files:
        path = tmp_path / file.name
        file.make(path)
        assert path.is_symlink() or path.exists()
        if file.outcome == "read":
            rows = tomllib.loads(path.read_text())["types"]
            assert [row["name"] for row in rows] == [own.name for own in file.types]
            for row in rows:
                assert row["definition"]
                number, _, digit = row.get("code", "11504-8").partition("-")
                assert int(digit) == compute_loinc_digit(number)
        else:
            assert file.told


@pytest.mark.parametrize("half", HALVES)
def test_sixth_types_have_ten_documents_and_ten_others(half: str) -> None:
    sets = importlib.import_module(f"{PACKAGE}.{half}_types_files").build_documents()
    assert len(sets) >= 5
    for name, documents in sets.items():
        assert len(documents) == 20
        assert sum(document.document_type == name for document in documents) == 10
        assert len({document.pages for document in documents}) == 20
