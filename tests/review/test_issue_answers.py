"""Each issue's two answers, and what follows from the one that changes the record."""

from __future__ import annotations

from typing import Any

import pytest

from evalkit.issue import Issue, IssueSeverity
from evalkit.review.plain_sentences import IssueAnswers, get_issue_answers, load_plain_sentences, load_rows_by_code


def issue(code: str, **fields: Any) -> Issue:
    agent: Any = code.partition("-")[0]
    return Issue.create(agent, code, IssueSeverity.MAJOR, "something is wrong", **fields)


def test_every_answer_belongs_to_a_known_code() -> None:
    codes = set(load_rows_by_code("issue_answers.toml", "answers"))
    assert codes - {""} <= set(load_plain_sentences())


@pytest.mark.parametrize(
    ("asking", "answers"),
    [
        (
            issue("V4-QUOTE-ABSENT", quote="BRCA2 mutation"),
            IssueAnswers("The quote is wrong: strike it", "The quote is right", "strike_quote"),
        ),
        (
            issue("V2-BOUNDARY-DOUBT", page=3, facts={"doubt": "stated"}),
            IssueAnswers("The document goes on", "A document begins here", "join_document"),
        ),
        (
            issue("V2-BOUNDARY-DOUBT", page=3, facts={"doubt": "new"}),
            IssueAnswers("A document begins here", "The document goes on", "begin_document"),
        ),
        (
            issue("V3-TRAP-VENDOR", document_type="Genomic Report"),
            IssueAnswers("Not Genomic Report", "It is Genomic Report", "choose_type"),
        ),
        (
            issue(
                "V4-QUOTE-UNCERTAIN",
                quote="5.2 cm",
                facts={"doubt": "reading", "quote_words": "5.2", "page_words": "5.7"},
            ),
            IssueAnswers("The page says 5.7", "The page says 5.2", "strike_quote"),
        ),
        (
            issue("V4-QUOTE-UNCERTAIN", quote="5.2 cm", facts={"doubt": "reading", "quote_words": "5.2"}),
            IssueAnswers("The page does not say this", "The page says 5.2", "strike_quote"),
        ),
        # Without a type to name, or a quote to strike, only the default answers are left.
        (issue("V3-CONTEXT"), IssueAnswers("There is a problem", "No problem", "none")),
        (issue("V4-EVIDENCE-WEAK"), IssueAnswers("There is a problem", "No problem", "none")),
        (issue("V1-SEGMENT-COUNT"), IssueAnswers("There is a problem", "No problem", "none")),
    ],
)
def test_answers_follow_from_the_issue(asking: Issue, answers: IssueAnswers) -> None:
    assert get_issue_answers(asking) == answers
