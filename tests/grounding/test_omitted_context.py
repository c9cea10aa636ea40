"""What stands beside a quote."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from builders import document

from evalkit.grounding import QuoteLocator
from evalkit.grounding.omitted_context import find_omitted_context, load_context_tables


@pytest.mark.parametrize(
    ("first", "second", "quote"),
    [
        ("There is no evidence of\ninvasive", "carcinoma in the duct", "invasive carcinoma in the duct"),
        ("No.\nInvasive", "carcinoma in the duct", "Invasive carcinoma in the duct"),
        ("Invasive carcinoma in", "the duct is not seen", "Invasive carcinoma in the duct"),
        ("Family history: breast", "cancer in two cousins", "breast cancer in two cousins"),
    ],
)
def test_what_runs_on_to_the_next_page_is_read_as_if_on_one(first: str, second: str, quote: str) -> None:
    apart = QuoteLocator(document(first, second)).locate(quote, 1)
    together = QuoteLocator(document(f"{first}\n{second}")).locate(quote, 1)
    assert (apart.verdict, apart.difference_text) == (together.verdict, together.difference_text)


ROWS = [
    (row["kind"], example, turns)
    for row in load_context_tables()["cue"]
    for turns, name in ((True, "turns"), (False, "keeps"))
    for example in row[name]
]


@pytest.mark.parametrize(("kind", "example", "turns"), ROWS)
def test_each_row_of_the_table_does_what_its_examples_show(kind: str, example: str, turns: bool) -> None:
    before, _, rest = example.partition("«")
    quote, _, after = rest.partition("»")
    difference = find_omitted_context(before + quote + after, len(before), len(before) + len(quote))
    assert (difference and difference.kind) == (kind if turns else None)


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        ("Smoker: No   Alcohol: No   Pulse: 82, regular", "Pulse: 82, regular"),
        ("Smoker: No Pulse: 82, regular", "Pulse: 82, regular"),
        ("Pacemaker [ ] Yes [x] No Metal implants: screws in the ankle", "Metal implants: screws in the ankle"),
        ("Urgent? Yes / (No) Specimen: shave of the left ear", "Specimen: shave of the left ear"),
        ("Oedema: none\nMurmur: grade 3 systolic at the apex", "grade 3 systolic at the apex"),
        ("Not only is the valve stenotic but it leaks", "the valve stenotic"),
        ("Non-small cell carcinoma and squamous cell carcinoma", "squamous cell carcinoma"),
    ],
)
def test_answer_to_another_item_negates_nothing(text: str, quote: str) -> None:
    assert QuoteLocator(document(text)).locate(quote, 1).is_found


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        ("[x] No evidence of spread to the bone", "evidence of spread to the bone"),
        ("Findings: No carcinoma is seen in the block", "carcinoma is seen in the block"),
    ],
)
def test_no_in_front_of_its_own_finding_still_negates(text: str, quote: str) -> None:
    assert QuoteLocator(document(text)).locate(quote, 1).verdict == "ALTERED"


@pytest.mark.parametrize(
    ("text", "quote", "is_found"),
    [
        ("Fever, weight loss, ? endocarditis of the mitral valve", "endocarditis of the mitral valve", False),
        ("? admission\n? discharge summary\n? records of the last year", "records of the last year", True),
        ("Variants above a fraction of ? 5 % were kept", "5 % were kept", True),
    ],
)
def test_question_mark_before_words_asks_unless_a_lost_box(text: str, quote: str, is_found: bool) -> None:
    assert QuoteLocator(document(text)).locate(quote, 1).is_found is is_found


@pytest.mark.parametrize(
    ("text", "quote", "is_found"),
    [
        ("Concern is raised that this may be an early carcinoma", "this may be an early carcinoma", True),
        ("An early carcinoma is considered less likely", "An early carcinoma is considered", False),
    ],
)
def test_quote_that_has_the_doubt_itself_omits_none(text: str, quote: str, is_found: bool) -> None:
    assert QuoteLocator(document(text)).locate(quote, 1).is_found is is_found


#: Ambiguous: what is absent may be both.
UNDECIDED = {"The absence of bowel sounds and «a rigid abdomen» led to laparotomy."}
CUT_SENTENCES = [
    (side, sentence)
    for file_name in ("cut_sentences.toml", "further_cut_sentences.toml")
    for side, sentences_by_kind in tomllib.loads((Path(__file__).parent / file_name).read_text("utf-8")).items()
    for sentences in sentences_by_kind.values()
    for sentence in sentences
    if sentence not in UNDECIDED
]


@pytest.mark.parametrize(("side", "sentence"), CUT_SENTENCES)
def test_cut_or_elided_quote_is_found_if_nothing_turns_it(side: str, sentence: str) -> None:
    quote = " … ".join(re.findall("«(.*?)»", sentence))
    location = QuoteLocator(document(re.sub("[«»]", "", sentence))).locate(quote, 1)
    assert location.is_found is (side == "harmless"), location.difference_text


@pytest.mark.parametrize(
    ("sentence", "is_found"),
    [
        ("«The nodule» in the lingula «may represent a scar».", True),
        ("«The nodule» in the lingula may «represent a scar».", False),
        ("«The cyst» of the ovary «was not seen today».", True),
        ("«The cyst» of the ovary was not «seen today».", False),
        ("«She has», in all probability, «a torn meniscus».", False),
        ("«She has», with a limp, «a torn meniscus».", True),
    ],
)
def test_only_what_no_part_of_the_quote_has_is_left_out(sentence: str, is_found: bool) -> None:
    quote = " … ".join(re.findall("«(.*?)»", sentence))
    assert QuoteLocator(document(re.sub("[«»]", "", sentence))).locate(quote, 1).is_found is is_found


def test_cut_sentences_are_not_copied_into_the_table() -> None:
    examples = {example for row in load_context_tables()["cue"] for example in (*row["turns"], *row["keeps"])}
    assert examples.isdisjoint(sentence for _, sentence in CUT_SENTENCES)
