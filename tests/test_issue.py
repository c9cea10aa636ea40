"""Issues: what every task raises and every person reads."""

from __future__ import annotations

import json
import pickle

import pytest
from builders import an_issue
from pydantic import ValidationError

from evalkit.errors import (
    DocumentError,
    EvalkitError,
    ModelError,
    NotFound,
    ReviewConflict,
    ReviewRefused,
    StoreError,
    UsageError,
)
from evalkit.issue import Issue, IssueSeverity, number_issues, sort_by_severity


@pytest.mark.parametrize(
    ("agent", "group"),
    [
        ("V1", "IG-1"),
        ("V2", "IG-2"),
        ("V3", "IG-4"),
        ("V4", "IG-3"),
        ("classifier", "IG-1"),
        ("reader", "IG-1"),
        ("extractor", "IG-3"),
        ("evaluator", "IG-2"),
        ("grader", "IG-2"),
    ],
)
def test_each_agent_raises_issues_of_its_group(agent: str, group: str) -> None:
    assert an_issue("MAJOR", agent=agent).ig_id == group


@pytest.mark.parametrize(("agent", "prefix"), [("V1", "V1"), ("reader", "READER"), ("classifier", "CLASSIFIER")])
def test_ids_are_the_agent_and_a_running_number(agent: str, prefix: str) -> None:
    issues = number_issues(agent, [an_issue("MINOR", agent=agent)] * 3, first_number=9)  # type: ignore[arg-type]
    assert [issue.issue_id for issue in issues] == [f"{prefix}-0009", f"{prefix}-0010", f"{prefix}-0011"]


def test_an_issue_round_trips_through_json() -> None:
    issue = Issue.create(
        "V4",
        "V4-QUOTE-WRONG-PAGE",
        IssueSeverity.MAJOR,
        "it stands elsewhere",
        origin="rule",
        location="segment 1 → Genomic Report",
        segment_index=1,
        document_type="Genomic Report",
        page=3,
        quote="BRCA1 c.5266dupC",
        verdict="WRONG_PAGE",
        difference="page",
        found_page=2,
        boxes=((2, 0.1, 0.2, 0.3, 0.4),),
        status="confirmed",
    )
    assert Issue(**json.loads(issue.model_dump_json())) == issue


def test_a_field_that_no_issue_has_is_refused_by_name() -> None:
    with pytest.raises(ValidationError, match="severityy"):
        Issue(**an_issue("MAJOR").model_dump(), severityy="MINOR")


def test_an_issue_is_never_changed_in_place() -> None:
    with pytest.raises(ValidationError):
        an_issue("MAJOR").severity = IssueSeverity.MINOR  # type: ignore[misc]


def test_worst_first_and_within_a_severity_as_raised() -> None:
    raised = [
        an_issue(severity, location=str(place))
        for place, severity in enumerate(["MINOR", "BLOCKER", "MAJOR", "BLOCKER"])
    ]
    assert [issue.location for issue in sort_by_severity(raised)] == ["1", "3", "2", "0"]


@pytest.mark.parametrize(
    ("kind", "parent"),
    [
        (UsageError, EvalkitError),
        (DocumentError, EvalkitError),
        (ModelError, EvalkitError),
        (StoreError, EvalkitError),
        (NotFound, StoreError),
        (ReviewRefused, EvalkitError),
        (ReviewConflict, ReviewRefused),
    ],
)
def test_errors_keep_message_and_remedy_when_pickled(kind: type[EvalkitError], parent: type[EvalkitError]) -> None:
    error = pickle.loads(pickle.dumps(kind("a.pdf is encrypted", code="PDF-ENCRYPTED", remedy="Remove the password.")))
    assert type(error) is kind
    assert isinstance(error, parent)
    assert (error.code, error.remedy) == ("PDF-ENCRYPTED", "Remove the password.")
    assert str(error) == "a.pdf is encrypted. Remove the password."
    assert "\n" not in str(error)


def test_an_issue_without_facts_is_written_as_before_them() -> None:
    issue = Issue.create("V1", "V1-PAGE-RANGE", IssueSeverity.MAJOR, "a message")
    assert "facts" not in issue.model_dump(mode="json")
    with_facts = issue.model_copy(update={"facts": {"first": 1}})
    assert Issue.model_validate_json(with_facts.model_dump_json()) == with_facts
    assert len({issue, with_facts}) == 2
