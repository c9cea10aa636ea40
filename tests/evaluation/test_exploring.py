"""Choices of documents: filters combine, and every part counts what the others leave."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from evaluation.findings import finding
from evaluation.studies import GENOMIC, NOTE, OTHER, document, escalated_document, labels, study, truth
from hypothesis import given, settings
from hypothesis import strategies as st
from places import open_folder

from evalkit.evaluation.exploring import FILTERS, StudyExplorer, _name_rules, list_page_differences
from evalkit.evaluation.headline_estimates import estimate_headlines
from evalkit.evaluation.study import read_study
from evalkit.evaluation.verifier_performance import summarise_rule_cases, tabulate_rule_performance
from evalkit.pipeline import RunSummary
from evalkit.samples.simulated_experts import simulate_and_submit_reviews

RIGHT = document("right", truth=truth(), source_folder="inbox", sender="Pine Hill", language="en", page_form="text")
WRONG = escalated_document(
    "wrong",
    truth=truth(OTHER),
    agent_labels=labels(NOTE, confidence=0.62),
    production_labels=labels(GENOMIC),
    source_folder="fax",
    page_form="scan",
    page_count=7,
    issues=(finding("V3-TRAP", expert_verdict="confirmed"), finding("V4-QUOTE", "MINOR", expert_verdict="dismissed")),
)
UNSEEN = document("unseen", agent_labels=labels(GENOMIC, confidence=0.97), source_folder="fax", page_form="scan")
UNREAD = document("unread", truth_status="unreadable", decision=None, agent_labels=None, page_count=None)
STUDY = study(RIGHT, WRONG, UNSEEN, UNREAD)


@pytest.fixture(scope="module")
def explorer() -> StudyExplorer:
    return StudyExplorer(STUDY)


def cell(answer: dict, reference: str, judged: str) -> int:
    matrix = answer["matrix"]
    return matrix["counts"][matrix["rows"].index(reference)][matrix["columns"].index(judged)]


def values(answer: dict, name: str) -> dict[str, int]:
    return dict(next(one for one in answer["slices"] if one["name"] == name)["values"])


def test_without_filters_everything_counts(explorer: StudyExplorer) -> None:
    answer = explorer.answer({}, "program")
    assert (answer["matching"], answer["total"]) == (4, 4)
    assert (cell(answer, NOTE, NOTE), cell(answer, OTHER, NOTE)) == (1, 1)
    assert answer["matrix"]["unknown"] == 2
    assert values(answer, "source") == {"fax": 2, "inbox": 1, "unknown": 1}
    assert values(answer, "pages") == {"2–5": 2, "6–20": 1, "unknown": 1}
    assert [row["doc_id"] for row in answer["documents"]] == ["wrong", "unseen", "unread", "right"]


def test_filters_combine_and_a_part_ignores_its_own(explorer: StudyExplorer) -> None:
    answer = explorer.answer({"source": "fax", "truth": OTHER}, "program")
    assert [row["doc_id"] for row in answer["documents"]] == ["wrong"]
    assert values(answer, "source") == {"fax": 1}
    assert cell(answer, NOTE, NOTE) == 0  # it came by another way
    assert values(explorer.answer({"source": "fax"}, "program"), "source") == {"fax": 2, "inbox": 1, "unknown": 1}


def test_each_comparison_has_its_own_sides(explorer: StudyExplorer) -> None:
    assert cell(explorer.answer({}, "production"), OTHER, GENOMIC) == 1
    both = explorer.answer({}, "both")
    assert cell(both, NOTE, GENOMIC) == 1
    assert both["matrix"]["unknown"] == 3


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"rule": "V3-TRAP"}, ["wrong"]),
        ({"rule": "V3-NEVER"}, []),
        ({"confidence": "60–70 %"}, ["wrong"]),
        ({"confidence": "90–100 %"}, ["unseen"]),
        ({"form": "scan", "decision": "accepted"}, ["unseen"]),
        ({"program": "cannot tell"}, ["unread"]),
        ({"source": "never seen"}, []),
    ],
)
def test_documents_behind_a_filter(explorer: StudyExplorer, filters: dict, found: list[str]) -> None:
    assert explorer.list_doc_ids(filters, "program") == found
    assert explorer.answer(filters, "program")["matching"] == len(found)


def test_a_bar_of_reliability_opens_the_documents_it_counts(explorer: StudyExplorer) -> None:
    (row,) = explorer.answer({}, "program")["reliability"]
    assert (row["bin"], row["n"], row["accuracy"]) == ("60–70 %", 1, 0.0)
    assert explorer.list_doc_ids({"confidence": row["bin"]}, "program") == ["wrong"]


def test_shares_are_the_report_s_headlines(demo_run: RunSummary, samples: Path, tmp_path: Path) -> None:
    """Audits and certain reviews are in the demo, so a plain mean of the reviewed documents is another number."""
    output = tmp_path / "output"
    shutil.copytree(demo_run.output, output)
    simulate_and_submit_reviews(open_folder(output), samples / "truth.csv")
    reviewed = read_study(output, production=samples / "production.csv")
    headlines = {headline.name: headline for headline in estimate_headlines(reviewed)}
    expected = [headlines["Type of the document right"], headlines["Production's type right"]]
    shares = StudyExplorer(reviewed).answer({}, "program")["shares"]
    assert [(share["value"], share["low"], share["high"], share["n"]) for share in shares] == [
        (*headline.estimate[:3], headline.reviewed_count) for headline in expected
    ]
    assert shares[0]["value"] != expected[0].reviewed_estimate.value


def test_shares_count_only_the_chosen_documents(explorer: StudyExplorer) -> None:
    (program, production) = explorer.answer({"source": "fax", "review": WRONG.truth_status}, "program")["shares"]
    assert (program["value"], program["n"], production["value"], production["n"]) == (0.0, 1, 0.0, 1)
    (program, production) = explorer.answer({"source": "inbox"}, "program")["shares"]
    assert (program["value"], production["value"], production["n"]) == (1.0, None, 0)


def test_rules_say_what_the_report_says(explorer: StudyExplorer) -> None:
    rules = {row["rule"]: row for row in explorer.answer({}, "program")["rules"]}
    table = tabulate_rule_performance(STUDY).set_index("code")
    assert {name: (row["precision"], row["wrong"], row["documents"]) for name, row in rules.items()} == {
        "V3-TRAP": (1.0, 1, 1),
        "V4-QUOTE": (0.0, 1, 1),
    }
    assert table.loc["V3-TRAP", ["wrong", "alone", "corrected"]].tolist() == [1, 1, 1]
    assert explorer.answer({"source": "inbox"}, "program")["rules"] == []


@settings(max_examples=25)
@given(st.lists(st.sampled_from((RIGHT, WRONG, UNSEEN, UNREAD)), max_size=12))
def test_rule_sums_do_not_depend_on_how_documents_are_divided(chosen: list) -> None:
    many = study(*(replace(one, doc_id=f"{one.doc_id}{number}") for number, one in enumerate(chosen)))
    whole = StudyExplorer(many)
    counted = sum(
        sum(row["wrong"] for row in whole.answer({"source": value}, "program")["rules"])
        for value in values(whole.answer({}, "program"), "source")
    )
    assert counted == tabulate_rule_performance(many)["wrong"].sum()


def test_no_document_at_all() -> None:
    answer = StudyExplorer(study()).answer({}, "program")
    assert (answer["matching"], answer["documents"], answer["rules"], answer["reliability"]) == (0, [], [], [])
    assert summarise_rule_cases(StudyExplorer(study())._rule_cases).empty


def test_the_list_has_pages() -> None:
    many = StudyExplorer(study(*(document(f"d{number:03}") for number in range(60))))
    sizes = [len(many.answer({}, "program", page)["documents"]) for page in (0, 1, 2, 99, -1)]
    assert sizes == [25, 25, 10, 10, 25]


def test_every_filter_is_a_property(explorer: StudyExplorer) -> None:
    assert set(FILTERS) - {"rule"} <= set(explorer.frame.columns)


SPANS = truth(NOTE, (1, 2, NOTE), (3, 4, OTHER))


@pytest.mark.parametrize(
    ("fields", "comparison", "sentences"),
    [
        (
            {"truth": SPANS, "agent_labels": labels(NOTE, (1, 3, NOTE), (4, 4, OTHER))},
            "program",
            [
                (3, "Page 3: the program says Clinical Note, the truth Other."),
                (4, "Page 4: a document begins here for the program, not for the truth."),
            ],
        ),
        (
            {"truth": SPANS, "agent_labels": labels(NOTE, (1, 1, NOTE), (2, 2, NOTE), (3, 4, OTHER))},
            "program",
            [(2, "Page 2: a document begins here for the program, not for the truth.")],
        ),
        (
            {"truth": truth(NOTE, (1, 4, NOTE)), "agent_labels": labels(NOTE, (1, 4, NOTE))},
            "program",
            [],
        ),
        (
            {"production_labels": labels(OTHER), "agent_labels": labels(NOTE, (1, 2, OTHER), (3, 4, NOTE))},
            "production",
            [],
        ),
        ({"truth": truth(NOTE, (1, 4, NOTE)), "agent_labels": None}, "program", []),
    ],
)
def test_pages_that_differ_are_named(fields: dict, comparison: str, sentences: list) -> None:
    made = document("one", page_count=4, **fields)
    assert [tuple(row) for row in list_page_differences(made, comparison)] == sentences


def test_types_without_pages_differ_where_the_judged_type_is() -> None:
    made = document(
        "one",
        page_count=4,
        agent_labels=labels(NOTE, (1, 2, OTHER), (3, 4, NOTE)),
        production_labels=replace(labels(OTHER), segments=()),
    )
    assert [tuple(row) for row in list_page_differences(made, "both")] == [
        (1, "Production calls the file Other, the program Clinical Note.")
    ]


def test_a_rule_is_named_by_its_code_once() -> None:
    cases = pd.DataFrame({"agent": ["V4", "reader", "V4"], "code": ["V4-QUOTE", "READER-NO-TEXT", "OWN-CHECK"]})
    assert _name_rules(cases) == ["V4-QUOTE", "READER-NO-TEXT", "V4 OWN-CHECK"]
