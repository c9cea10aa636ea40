"""The confidence of a row: recognised words, corrected characters, printed sums."""

from __future__ import annotations

import pytest
from statements.drawn import draw

from evalkit.documents.bundle import DocumentBundle, PageStatus
from evalkit.documents.readers import read_document
from evalkit.statements.applied_template import AppliedTemplate, rate_transactions
from evalkit.statements.statement_template import PrintedSumLabels, TemplateStatus
from evalkit.statements.template_builder import build_draft_template
from evalkit.statements.text_lines import group_words_into_lines


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> DocumentBundle:
    path = tmp_path_factory.mktemp("drawn") / "a.pdf"
    path.write_bytes(draw("signed amounts", 3).pdf)
    return read_document(path, doc_id="a", processing_timestamp="")


def rated(bundle: DocumentBundle, doubts: dict[str, int], *, with_sums: bool, is_spoilt: bool = False) -> list[float]:
    """Rate the rows as if they were recognised, with these confidences for some words."""
    sound = build_draft_template(bundle).template
    pages = []
    for page in bundle.pages:
        texts = [page.text[start:end] for start, end, *_ in page.words]
        confidences = tuple(doubts.get(text, 100) for text in texts)
        pages.append(page.model_copy(update={"status": PageStatus.OCR, "confidences": confidences}))
    template = sound if with_sums else sound.model_copy(update={"reconciliation": PrintedSumLabels()})
    if not with_sums:
        columns = tuple(column for column in template.columns if column.name != "balance")
        template = template.model_copy(update={"columns": columns})
    if is_spoilt:
        amounts = sound.amounts.model_copy(
            update={"withdrawal": sound.amounts.deposit, "deposit": sound.amounts.withdrawal}
        )
        template = template.model_copy(update={"amounts": amounts})
    applied = AppliedTemplate.create(template, bundle.model_copy(update={"pages": tuple(pages)}))
    return [transaction.confidence or 0.0 for transaction in rate_transactions(applied).transactions]


def test_printed_words_and_met_sums_are_certain(bundle: DocumentBundle) -> None:
    assert set(rated(bundle, {}, with_sums=True)) == {1.0}
    assert set(rated(bundle, {}, with_sums=False)) == {0.9}, "no sum proves the amounts"


def test_a_doubtful_date_or_amount_lowers_its_row_only(bundle: DocumentBundle) -> None:
    first = AppliedTemplate.create(build_draft_template(bundle).template, bundle).statement.transactions[0]
    words = [word.text for line in group_words_into_lines(bundle.pages[0]) for word in line.words]
    amount = next(word for word in words if word.replace(",", "").replace("$", "").endswith(str(abs(first.amount))))
    date = words[words.index(first.description.split()[0]) - 1]
    without, proven = (rated(bundle, {amount: 40, date: 70}, with_sums=with_sums) for with_sums in (False, True))
    assert without[0] == 0.4
    assert proven[0] == 0.7, "a met sum proves the amount, and no date"
    assert set(without[1:]) <= {0.9, 0.7}
    assert set(proven[1:]) <= {1.0, 0.7}


def test_a_sum_that_is_not_met_leaves_doubt(bundle: DocumentBundle) -> None:
    assert max(rated(bundle, {}, with_sums=True, is_spoilt=True)) <= 0.5


def test_a_draft_whose_signs_nothing_proves_is_in_doubt(bundle: DocumentBundle) -> None:
    template = build_draft_template(bundle).template
    amounts = template.amounts.model_copy(update={"sign_proof": ()})
    for status, highest in (("draft", 0.5), ("stable", 1.0)):
        unproven = template.model_copy(update={"amounts": amounts, "status": TemplateStatus(status)})
        statement = rate_transactions(AppliedTemplate.create(unproven, bundle))
        assert {transaction.confidence for transaction in statement.transactions} == {highest}


def test_a_word_that_two_engines_read_differently_counts_half(bundle: DocumentBundle) -> None:
    page = bundle.pages[0]
    doubtful = page.model_copy(
        update={"status": PageStatus.OCR, "confidences": (80,) * len(page.words), "doubtful": (0,)}
    )
    words = [word.confidence for line in group_words_into_lines(doubtful) for word in line.words]
    assert sorted(words)[:2] == [0.4, 0.8]
    assert {word.confidence for line in group_words_into_lines(page) for word in line.words} == {1.0}
