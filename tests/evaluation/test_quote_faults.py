"""Altered quotes: each kind changes one place, and what would not change the meaning is left alone."""

import random

import pytest
from benchmarks.quote_alterations import list_planted_pages
from builders import document

from evalkit.evaluation.challenge.quote_faults import QuotableText, load_quote_faults

KINDS = tuple(load_quote_faults())


def altered_texts(kind: str, text: str) -> set[str]:
    quotable = QuotableText(document(text))
    drawn = (quotable.draw_altered_quote(kind, 1, 1, random.Random(seed)) for seed in range(60))
    return {quote.text for quote in drawn if quote}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_alters_what_is_not_in_its_document(kind: str) -> None:
    count = 0
    for bundle in list_planted_pages(0, 4):
        quotable, text = QuotableText(bundle), " ".join(" ".join(page.text for page in bundle.pages).split())
        for seed in range(10):
            quote = quotable.draw_altered_quote(kind, 1, bundle.total_pages, random.Random(seed))
            count += quote is not None
            assert quote is None or kind == "negation-cut" or quote.text not in text
            assert quote == quotable.draw_altered_quote(kind, 1, bundle.total_pages, random.Random(seed))
    assert count


@pytest.mark.parametrize(
    ("kind", "text", "altered"),
    [
        ("digit", "The mass is of grade 2 today", "The mass is of grade 7 today"),
        ("decimal", "The mass measures 4.2 mm today", "The mass measures 42 mm today"),
        ("sign", "The T-score was -2.5 at the hip", "The T-score was 2.5 at the hip"),
        ("date", "Seen on March 5 by us", "Seen on April 5 by us"),
        ("unit", "A nodule of 8 mm was seen", "A nodule of 8 cm was seen"),
        ("number-word", "A tumor of stage II was found", "A tumor of stage III was found"),
        ("comparator", "A value of < 5 was found", "A value of > 5 was found"),
        ("negation", "She denies fever or chills", "She reports fever or chills"),
        ("negation", "The margin is involved by tumor", "The margin is not involved by tumor"),
        ("negation-cut", "There is no fever or chills today", "fever or chills today"),
        ("modal", "This may be a metastasis", "This is a metastasis"),
        ("laterality", "A mass of the Left breast", "A mass of the Right breast"),
        ("polarity", "The tumor cells are POSITIVE for it", "The tumor cells are NEGATIVE for it"),
        ("pathogenicity", "This variant is likely pathogenic today", "This variant is pathogenic today"),
        ("gene", "A variant in BRCA1 was found", "A variant in BRCA2 was found"),
        ("variant", "The variant c.5266dupC was found", "The variant c.5266delC was found"),
        ("name", "Seen by Dr. Miller in the clinic", "Seen by Dr. Thornbury in the clinic"),
        ("content-word", "A mass in the liver was seen", "A mass in the lung was seen"),
        ("inserted-word", "The melanoma was removed long ago", "The metastatic melanoma was removed long ago"),
        ("deleted-word", "A family history of breast cancer", "A history of breast cancer"),
        ("swapped", "ER positive, PR negative today", "ER negative, PR positive today"),
        ("swapped", "the sodium 138, potassium 4.1", "the sodium 4.1, potassium 138"),
    ],
)
def test_what_can_be_altered(kind: str, text: str, altered: str) -> None:
    assert altered in altered_texts(kind, text)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("digit", "1. Hypertension is well controlled"),
        ("digit", "The variant c.5266dupC in BRCA1"),
        ("sign", "- 5 mg of the drug daily"),
        ("date", "She may come back later"),
        ("comparator", "The variant c.123A>G was found"),
        ("negation", "Not only the liver and lung"),
        ("modal", "As soon as possible, please"),
        ("laterality", "She left the hospital against advice"),
        ("laterality", "You have the right to refuse"),
        ("laterality", "Both left and right ovaries"),
        ("polarity", "Each marker is positive or negative"),
        ("deleted-word", "A 3-week history of fatigue"),
        ("swapped", "The tissue measures 5.0 x 3.8 x 2.5 cm"),
        ("swapped", "The left breast and the right breast"),
        ("spliced", "The only sentence of its document"),
    ],
)
def test_what_would_mean_the_same_is_left_alone(kind: str, text: str) -> None:
    assert altered_texts(kind, text) == set()


def test_hidden_words_and_headers_are_not_quoted() -> None:
    page = document("The mass is in the left breast").pages[0]
    for change in ({"furniture": True}, {"hidden": True}):
        blocks = tuple(block.model_copy(update=change) for block in page.blocks)
        bundle = document(page.model_copy(update={"blocks": blocks}))
        assert QuotableText(bundle).draw_altered_quote("laterality", 1, 1, random.Random(0)) is None
