"""What the sentences of a report are about, and the values that are doubted for it."""

from __future__ import annotations

import pytest
from builders import document
from extraction.scripted import found_value

from evalkit.extraction.extraction_schema import FieldValue
from evalkit.extraction.sentence_topics import (
    classify_sentences,
    find_topic_doubts,
    load_topic_weights,
    split_sentences,
)


def list_doubted(text: str, fields: dict[str, FieldValue]) -> list[str]:
    return [issue.field for issue in find_topic_doubts(classify_sentences(document(text).pages), fields)]


def quote_section(text: str) -> FieldValue:
    return found_value(text).model_copy(update={"raw": text})


@pytest.mark.parametrize(
    "end",
    [
        "Read by Bertram Oduya, MD",
        "Dr. Ines Falk, 12 May 2024",
        "Lakeview Imaging Center, page 1 of 2",
        "Attending: H. Moor, MD",
    ],
)
@pytest.mark.parametrize("field", ["impression", "findings"])
def test_a_section_that_ends_with_a_signature_is_doubted(end: str, field: str) -> None:
    section = "No pulmonary embolism. There is a small left pleural effusion."
    assert list_doubted("", {field: quote_section(f"{section}\n{end}")}) == [field]
    assert list_doubted("", {field: quote_section(section)}) == []


@pytest.mark.parametrize(
    "sentence",
    [
        "The liver is normal in size and contour.",
        "LUNGS: Clear.",
        "2. Recommend follow-up CT in 6 months.",
        "Degenerative changes of the lumbar spine.",
        "BI-RADS 2, benign.",
        "Lesion\tPlace\tSize",
        "BIOMETRIC DATA:",
    ],
)
def test_sentences_of_a_section_are_not_doubted(sentence: str) -> None:
    assert list_doubted("", {"findings": quote_section(sentence)}) == []


def test_a_date_is_doubted_if_another_is_far_more_probable() -> None:
    text = "This replaces our report of 3 May 2023\nReport date: 9 June 2024"
    date = found_value("2023-05-03").model_copy(update={"raw": "3 May 2023"})
    assert list_doubted(text, {"date": date}) == ["date"]
    right = found_value("2024-06-09").model_copy(update={"raw": "9 June 2024"})
    assert list_doubted(text, {"date": right}) == []
    assert list_doubted(text, {"date": found_value("2024-06-09").model_copy(update={"raw": "not on the page"})}) == []


def test_a_long_quote_in_an_issue_is_shortened() -> None:
    signature = f"Read by {' '.join(['Bertram Oduya-Lindqvist'] * 9)}, MD"
    (issue,) = find_topic_doubts((), {"impression": quote_section(signature)})
    assert len(issue.description) < 130


def test_each_feature_has_a_weight_for_each_topic() -> None:
    weights = load_topic_weights()
    assert weights.weights.shape == (len(weights.index_by_feature), len(weights.topics))
    assert weights.bias.shape == (len(weights.topics),)
    assert {"impression", "findings"}.isdisjoint(weights.topics)


def test_a_wrapped_line_is_one_sentence() -> None:
    assert split_sentences("Margins are\nfree. The node\tis clear\n\nJ. Roe") == [
        "Margins are\nfree.",
        "The node\tis clear",
        "J. Roe",
    ]
