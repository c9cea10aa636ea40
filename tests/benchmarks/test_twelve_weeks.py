"""The replay of twelve weeks builds in both halves, and a poisoned week is as poisoned as it says."""

import collections
import random
import re

import pytest
from benchmarks.first_contact.papers import draw_pages
from benchmarks.first_contact.twelve_weeks import (
    WEEKS,
    Reading,
    answer,
    build_replay,
    is_right,
    list_hospitals,
    list_poison_kinds,
    list_sources,
    poison,
)
from benchmarks.first_contact.twelve_weeks.dressing import split_parts
from benchmarks.first_contact.twelve_weeks.experts import list_true_segments, mistake
from benchmarks.first_contact.twelve_weeks.labelled_sources import ABSENT, Record
from benchmarks.first_contact.twelve_weeks.replay import choose_records

HOSPITALS = [name for half in ("open", "sealed") for name in list_hospitals(half)]
KINDS = [name for half in ("open", "sealed") for name in list_poison_kinds(half)]
needs_texts = pytest.mark.skipif(not list_sources(), reason=ABSENT)


def build_week(hospital=HOSPITALS[0], size=40):
    return [document for document in build_replay("mtsamples", hospital, 3, size) if document.week == 2]


def read_badly(week):
    """Stand for a program that misreads every third file."""
    return {
        document.id: Reading(
            list_true_segments(document) if index % 3 else ((1, len(document.pages), "Other"),), 0.5 + index / 100
        )
        for index, document in enumerate(week)
    }


@needs_texts
@pytest.mark.parametrize("source", list_sources())
@pytest.mark.parametrize("hospital", HOSPITALS)
def test_segments_cover_every_page_of_a_file(source, hospital):
    documents = build_replay(source, hospital, 1, 4)
    assert len({document.id for document in documents}) == len(documents) == 4 * WEEKS
    for document in documents:
        covered = [page for part in document.segments for page in range(part.start_page, part.end_page + 1)]
        assert covered == list(range(1, len(document.pages) + 1))
        assert all(page.strip() for page in document.pages)
        assert not [page for page in document.pages if re.search(r"\{\w+\}|\[[^\]\n]*\|", page)]
    assert any(len(document.segments) == 2 for document in documents)
    assert {part.origin for document in documents for part in document.segments} == {"source", "written"}


@needs_texts
@pytest.mark.parametrize("hospital", HOSPITALS)
def test_every_page_fits_on_its_sheet(hospital):
    for document in build_replay("gbb", hospital, 1, 4):
        printed = [page.get_text() for page in draw_pages(document.pages)]
        for text, sheet in zip(document.pages, printed, strict=True):
            assert len(text.split("\n")) <= 60
            assert text.split()[-1] in sheet


@needs_texts
def test_equal_arguments_build_equal_replays():
    first, again, other = (build_replay("tcga", HOSPITALS[1], seed, 10) for seed in (5, 5, 6))
    assert first == again
    assert first != other


@needs_texts
@pytest.mark.parametrize("hospital", HOSPITALS)
def test_all_five_types_come_in_every_hospital(hospital):
    types = collections.Counter(
        part.type for file in build_replay("mtsamples", hospital, 1, 30) for part in file.segments
    )
    assert len(types) == 5
    assert min(types.values()) >= 20


@needs_texts
def test_a_labelled_text_comes_in_one_week_only():
    weeks = collections.defaultdict(set)
    for document in build_replay("mtsamples", HOSPITALS[2], 4, 60):
        for part in document.segments:
            if part.origin == "source":
                weeks[part.record].add(document.week)
    assert len(weeks) > 70
    assert all(len(seen) == 1 for seen in weeks.values())


def test_few_records_are_dealt_to_neighbouring_weeks():
    records = [Record(str(number), "Other", "") for number in range(5)]
    dealt = [[record.id for record in choose_records(records, week)] for week in range(1, WEEKS + 1)]
    assert all(len(chosen) == 1 for chosen in dealt)
    assert dealt == sorted(dealt)
    assert {chosen[0] for chosen in dealt} == set("01234")


@needs_texts
@pytest.mark.parametrize("source", ["poetry", ""])
def test_an_unknown_source_is_named(source):
    with pytest.raises(ValueError, match="No such source"):
        build_replay(source, HOSPITALS[0], 1, 1)


@pytest.mark.parametrize(
    ("text", "headings"),
    [
        ("IMPRESSION: clear", ["IMPRESSION"]),
        ("ALT           33     U/L      7-56\nSodium 139", [""]),
        ("CHIEF COMPLAINT\n\nMelanoma.", ["CHIEF COMPLAINT"]),
        ("Plan:\nrest", ["Plan"]),
        ("He walks.\nHe rests.", [""]),
    ],
)
def test_headings_are_told_from_rows_and_sentences(text, headings):
    assert [heading for heading, _ in split_parts(text)] == headings


@needs_texts
def test_experts_err_at_the_given_rate():
    documents = build_replay("mtsamples", HOSPITALS[0], 1, 60)
    wrong = sum(not is_right(document, answer(document, 7, 0.1)) for document in documents)
    assert 45 <= wrong <= 100  # of 720
    assert all(is_right(document, answer(document, 7, 0.0)) for document in documents)
    assert answer(documents[0], 7, 0.1) == answer(documents[0], 7, 0.1)


@needs_texts
def test_corrections_often_agree_with_a_wrong_program():
    documents = build_replay("mtsamples", HOSPITALS[0], 1, 60)
    agreeing = 0
    for document in documents:
        shown = mistake(list_true_segments(document), len(document.pages), random.Random(document.id))
        given = answer(document, 7, 1.0, shown=shown)
        assert given.kind == "correction"
        agreeing += given.segments == shown
    assert 0.4 < agreeing / len(documents) < 0.85


@needs_texts
@pytest.mark.parametrize("hospital", HOSPITALS[::3])
@pytest.mark.parametrize("kind", KINDS)
def test_a_fifth_of_a_poisoned_week_is_wrong(kind, hospital):
    week = build_week(hospital)
    poisoned = poison(week, kind, 11, readings=read_badly(week))
    files = {document.id: document for document in poisoned.documents}
    wrong = {given.document_id for given in poisoned.answers if not is_right(files[given.document_id], given)}
    assert wrong == poisoned.wrong
    assert [given.document_id for given in poisoned.answers] == [document.id for document in poisoned.documents]
    assert 0.15 <= len(wrong) / len(poisoned.answers) <= 0.25
    assert poisoned == poison(week, kind, 11, readings=read_badly(week))


@needs_texts
def test_one_reviewer_is_wrong_more_often_than_others():
    week = build_week()
    poisoned = poison(week, "one reviewer", 2)
    wrong = collections.Counter(given.reviewer for given in poisoned.answers if given.document_id in poisoned.wrong)
    assert wrong.most_common(1)[0][1] >= 0.75 * len(poisoned.wrong)


@needs_texts
def test_only_the_least_certain_files_are_poisoned():
    week = build_week()
    readings = read_badly(week)
    poisoned = poison(week, "only the unsure", 2, readings=readings)
    limit = sorted(reading.certainty for reading in readings.values())[len(poisoned.wrong) - 1]
    assert all(readings[name].certainty <= limit for name in poisoned.wrong)


@needs_texts
def test_one_type_is_called_another_throughout():
    week = build_week()
    poisoned = poison(week, "one type for another", 2)
    files = {document.id: document for document in week}
    for given in poisoned.answers:
        if given.document_id in poisoned.wrong:
            assert files[given.document_id].true_type == "Pathology Report"
            assert {kind for _, _, kind in given.segments} <= {
                "Clinical Note",
                "Other",
                "Genomic Report",
                "Radiology Report",
            }


@needs_texts
def test_swapped_files_are_of_one_day():
    week = build_week()
    poisoned = poison(week, "swapped on one day", 2)
    days = collections.Counter(document.day for document in week if document.id in poisoned.wrong)
    assert days
    assert all(count % 2 == 0 for count in days.values())


@needs_texts
def test_a_kind_that_needs_readings_asks_for_them():
    with pytest.raises(ValueError, match="needs the program's reading"):
        poison(build_week(), "only the unsure", 1)
