"""The cases of what is in doubt are valid answers, and their wrong parts follow from pages and truth."""

import collections

import pytest
from benchmarks.first_contact.in_doubt import find_missed_parts, find_wrong_parts, read_cases, write_cases

import evalkit
from evalkit.classification.document_result import DocumentResult
from evalkit.classification.schema import ClassificationOutput
from evalkit.classification.v1_schema import V1SchemaValidator
from evalkit.documents.readers import read_document

CASES = [case for half in ("open", "sealed") for case in read_cases(half)]
each_case = pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])


@pytest.mark.parametrize("half", ["open", "sealed"])
def test_each_half_has_thirty_cases_of_every_kind(half):
    cases = read_cases(half)
    kinds = collections.Counter(part.partition(":")[0] for case in cases for part in case["wrong"])
    assert len(cases) == 30
    assert set(kinds) == {"boundary", "segment", "patients", "mixture"}
    assert sum(not case["wrong"] for case in cases) == 6
    assert all(len(case["wrong"]) <= 3 for case in cases)


def test_the_halves_share_no_page():
    pages = [{page for case in read_cases(half) for page in case["pages"]} for half in ("open", "sealed")]
    assert not pages[0] & pages[1]


@each_case
def test_wrong_parts_follow_from_the_truth(case):
    derived = find_wrong_parts(case["answer"]["segments"], case["truth"])
    assert derived == set(case["wrong"]) - {"mixture"}
    claimed = {
        (presence["document_type"], presence["presence_level"], evidence["page"])
        for segment in case["answer"]["segments"]
        for presence in segment["segment_composition"]
        if presence["presence_level"] in {"EMBEDDED_RAW", "MENTION_ONLY"}
        for evidence in presence["top_evidence"]
    }
    cut_apart = {segment["dominant_type"] for segment in case["answer"]["segments"]}
    expected = {tuple(row) for row in case["truth"]["also"] if row[0] not in cut_apart}
    assert ("mixture" in case["wrong"]) == ({row for row in claimed if row[0] not in cut_apart} != expected)


@each_case
def test_truth_and_needed_pages_lie_in_the_file(case):
    total = len(case["pages"])
    assert [page for first, last, _ in case["truth"]["segments"] for page in range(first, last + 1)] == [
        *range(1, total + 1)
    ]
    assert len(case["truth"]["persons"]) == total
    assert set(case["needed"]) == set(case["wrong"])
    assert all(pages and set(pages) <= set(range(1, total + 1)) for pages in case["needed"].values())


@each_case
def test_quotes_of_an_answer_are_on_their_pages(case):
    for segment in case["answer"]["segments"]:
        for presence in segment["segment_composition"]:
            assert bool(presence["top_evidence"]) == (presence["presence_level"] != "NO_EVIDENCE")
            for evidence in presence["top_evidence"]:
                assert segment["start_page"] <= evidence["page"] <= segment["end_page"]
                assert evidence["snippet"] in " ".join(case["pages"][evidence["page"] - 1].split())


@each_case
def test_the_answer_has_the_shape_of_the_contract(case, tmp_path):
    folders = write_cases([case], tmp_path)
    bundle = read_document(
        folders.pdfs / f"{case['id']}.pdf", doc_id=case["id"], processing_timestamp="2026-01-01T00:00:00Z"
    )
    assert bundle.total_pages == len(case["pages"])
    for page, text in zip(bundle.pages, case["pages"], strict=True):
        assert text.split()[-1] in page.text
    answer = ClassificationOutput.model_validate_json((folders.answers / f"{case['id']}.json").read_text("utf-8"))
    assert V1SchemaValidator().validate(answer, bundle) == []


def test_a_run_takes_the_written_answers(tmp_path):
    cases = read_cases("open")[:2]
    folders = write_cases(cases, tmp_path / "cases")
    evalkit.run([folders.pdfs], output=tmp_path / "output", classifications=folders.answers)
    for case in cases:
        result = DocumentResult.model_validate_json(
            (tmp_path / "output" / "results" / f"{case['id']}.json").read_text("utf-8")
        )
        given = [(part.start_page, part.end_page) for part in result.classification.segments]
        assert given == [(part["start_page"], part["end_page"]) for part in case["answer"]["segments"]]


@pytest.mark.parametrize(
    ("asked", "seen", "missed"),
    [
        ({"boundary:2", "patients", "segment:1"}, {1, 2, 3}, []),
        ({"boundary:2", "patients", "segment:1"}, {2}, ["boundary:2", "patients"]),
        ({"segment:1"}, {1, 2, 3}, ["boundary:2", "patients"]),
        ({"boundary:2"}, {1, 2}, ["patients", "segment:1"]),
    ],
)
def test_an_expert_finds_only_what_is_asked_and_seen(asked, seen, missed):
    needed = {"boundary:2": [1, 2], "patients": [1, 3], "segment:1": [1, 2]}
    assert find_missed_parts({"wrong": list(needed), "needed": needed}, asked, seen) == missed
