"""Where documents begin: signs at the joins of pages, and the pages as one sequence."""

from __future__ import annotations

import itertools
import math

import pytest
from builders import document, page
from hypothesis import given
from hypothesis import strategies as st

from evalkit.classification.explanation import explain_as_text_lines, explain_segment_types
from evalkit.classification.offline.lexicon import apply_lexicon
from evalkit.classification.offline.model_weights import load_embedded_weights
from evalkit.classification.offline.page_segmentation import (
    JOIN_SIGNS,
    collect_transition_signs,
    compute_beginning_probabilities,
    segment_pages,
)
from evalkit.classification.offline.type_scoring import read_page_for_scoring, select_term_cues
from evalkit.classification.primary_classifier import classify_by_embedded_model
from evalkit.classification.schema import DocumentType
from evalkit.documents.bundle import Block, Identifier, Page

BOX = (0.1, 0.1, 0.9, 0.2)
MRI = "MRI LUMBAR SPINE\nComparison: None\nL4-L5: broad-based disc bulge. Conus terminates at L1.\nIMPRESSION: disc bulge."
SKIN = "FINAL DIAGNOSIS:\nSkin, shave biopsy: basal cell carcinoma.\nGROSS DESCRIPTION: Received in formalin, inked, bisected."
NOTE = (
    "PROGRESS NOTE\nChief complaint: cough.\nShe denies fever. Lungs clear to auscultation.\nPlan: follow up in a week."
)
FORM = "Authorization to release information\nI hereby authorize the release. Signature ______ Date ______"


def signs(*pages: Page) -> list[set[str]]:
    return [set(one) for one in collect_transition_signs([apply_lexicon(one) for one in pages], len(pages))]


def known(one: Page, **identifiers: str) -> Page:
    found = tuple(Identifier(kind=kind, value=value, normal=value, box=BOX) for kind, value in identifiers.items())
    return one.model_copy(update={"identifiers": found})


def laid_out(number: int, end: float, furniture: str = "") -> Page:
    made = page(number, f"{MRI}\n{furniture}" if furniture else MRI, furniture=[furniture])
    boxes = [(0.1, 0.1 + 0.01 * at, 0.9, end) for at, _ in enumerate(made.blocks)]
    blocks = [block.model_copy(update={"box": box}) for block, box in zip(made.blocks, boxes, strict=True)]
    return made.model_copy(update={"blocks": tuple(blocks)})


# ------------------------------------------------------------------------------------------------- signs at a join


def test_every_sign_has_a_learned_weight() -> None:
    assert set(JOIN_SIGNS) == set(load_embedded_weights().transition_weights)


def test_another_person_and_the_same() -> None:
    first = known(page(1, MRI), patient="MARSH HELEN", mrn="1")
    assert "other-person" in signs(first, known(page(2, MRI), patient="OTT UWE", mrn="1"))[0]
    assert "same-person" in signs(first, known(page(2, MRI), patient="MARSH HELEN", mrn="2"))[0]
    assert not {"same-person", "other-person"} & signs(first, page(2, MRI))[0]


def test_stamped_record_number_does_not_identify_the_patient() -> None:
    first = known(page(1, MRI), mrn="4711")
    plain, stamped = page(2, f"{MRI}\nMRN: 9999"), page(2, f"{MRI}\nMRN: 9999", furniture=["MRN: 9999"])
    assert "other-person" in signs(first, known(plain, mrn="9999"))[0]
    assert "other-person" not in signs(first, known(stamped, mrn="9999"))[0]


def test_dates_of_reports() -> None:
    first, same, other = (known(page(1, MRI), report_date=day) for day in ("2024-01-01", "2024-01-01", "2024-02-02"))
    assert "same-date" in signs(first, same)[0]
    assert "other-date" in signs(first, other)[0]


@pytest.mark.parametrize(
    ("before", "after", "sign"),
    [
        ("Page 1 of 3", "Page 2 of 3", "count-goes-on"),
        ("Page 3 of 3", "Page 1 of 2", "count-begins"),
        ("Page 3 of 3", "Page 1 of 2", "count-ended-before"),
        ("Page 1 of 3", "Page 3 of 9", "count-later"),
    ],
)
def test_page_counts(before: str, after: str, sign: str) -> None:
    assert sign in signs(page(7, f"{MRI}\n{before}"), page(8, f"{SKIN}\n{after}"), page(9, NOTE))[0]


def test_a_count_that_runs_through_all_pages_says_nothing() -> None:
    counted = signs(
        *(page(number, f"{text}\nPage {number + 4} of 9") for number, text in enumerate((MRI, SKIN, NOTE), 1))
    )
    assert not any(name.startswith("count") for found in counted for name in found)


@pytest.mark.parametrize(
    ("before", "after", "sign"),
    [
        (MRI, "and so it goes on to the next page\nMore", "mid-sentence"),
        ("1. One thing\n2. Another thing", "3. A third thing", "list-goes-on"),
        (MRI, "Findings (continued)\nNormal.", "continued"),
        (f"{MRI}\nElectronically signed by A. Moore, MD", SKIN, "signed-off-before"),
        ("FAX COVER SHEET\nTo: Dr. Orr", SKIN, "cover-sheet-before"),
        ("Case no: S24-1111\nmore", "Case no: S24-2222\nmore", "other-record"),
        ("Case no: S24-1111\nmore", "Case no: S24-1111\nmore", "same-record"),
        (MRI, "Dear Dr. Orr,\nI saw your patient.", "salutation"),
        ("Doe Clinic\n" + MRI, "Doe Clinic\n" + SKIN, "same-top-line"),
        ("The lungs were seen to be clear on both sides of the chest and", SKIN, "sentence-open-before"),
    ],
)
def test_signs_of_the_text(before: str, after: str, sign: str) -> None:
    assert sign in signs(page(1, before), page(2, after))[0]
    assert sign not in signs(page(1, MRI), page(2, "Normal.\nNothing else."))[0]


def test_where_a_text_ends_on_its_page() -> None:
    assert "short-before" in signs(laid_out(1, 0.4), laid_out(2, 0.4))[0]
    assert "full-before" in signs(laid_out(1, 0.9), laid_out(2, 0.4))[0]
    assert not {"short-before", "full-before"} & signs(page(1, MRI), page(2, SKIN))[0]


def test_headers_that_stay_and_change() -> None:
    assert "same-furniture" in signs(laid_out(1, 0.9, "Doe Clinic 12"), laid_out(2, 0.9, "Doe Clinic 13"))[0]
    assert "other-furniture" in signs(laid_out(1, 0.9, "Doe Clinic"), laid_out(2, 0.9, "Ott Laboratory"))[0]
    through = signs(*(laid_out(number, 0.9, "FROM: RECORDS") for number in (1, 2, 3)))
    assert not any("furniture" in name for found in through for name in found)


# ------------------------------------------------------------------------------------------------- the sequence


def brute(opinions: list[tuple[float, ...]], chances: list[float], strength: float) -> list[float]:
    """The same by adding up every way to cut and type the pages."""
    total, begins = 0.0, [0.0] * len(chances)
    for kinds in itertools.product(range(5), repeat=len(opinions)):
        for cut in itertools.product((False, True), repeat=len(chances)):
            if any(not one and kinds[at] != kinds[at + 1] for at, one in enumerate(cut)):
                continue
            weight = math.exp(sum(strength * row[kind] for row, kind in zip(opinions, kinds, strict=True)))
            weight *= math.prod(math.exp(chances[at]) / 5 for at, one in enumerate(cut) if one)
            total += weight
            for at, one in enumerate(cut):
                begins[at] += weight * one
    return [one / total for one in begins]


_opinion = st.tuples(*[st.floats(-3, 1.6)] * 5)


@given(st.integers(1, 4).flatmap(lambda n: st.tuples(st.lists(_opinion, min_size=n, max_size=n), st.lists(st.floats(-5, 5), min_size=n - 1, max_size=n - 1))), st.floats(0, 1))  # fmt: skip
def test_probabilities_are_those_of_all_ways_to_cut(given_: tuple[list, list], strength: float) -> None:
    opinions, chances = given_
    assert compute_beginning_probabilities(opinions, chances, strength) == pytest.approx(
        brute(opinions, chances, strength), abs=1e-9
    )


@given(st.lists(_opinion, min_size=2, max_size=5), st.permutations(range(5)))
def test_the_order_of_types_does_not_matter(opinions: list[tuple[float, ...]], order: list[int]) -> None:
    chances = [0.5] * (len(opinions) - 1)
    turned = [tuple(row[at] for at in order) for row in opinions]
    assert compute_beginning_probabilities(turned, chances, 0.8) == pytest.approx(
        compute_beginning_probabilities(opinions, chances, 0.8)
    )


@given(st.floats(-20, 20), st.floats(0, 20))
def test_a_stronger_sign_makes_a_beginning_more_probable(chance: float, more: float) -> None:
    flat = [(0.0,) * 5, (0.0,) * 5]
    assert compute_beginning_probabilities(flat, [chance + more], 1) >= compute_beginning_probabilities(
        flat, [chance], 1
    )


_TEXTS = (MRI, SKIN, NOTE, FORM, "", "3", "Page 1 of 2", "and on\nPage 2 of 2", "variant " * 30)


@given(st.lists(st.sampled_from(_TEXTS), max_size=7))
def test_segments_cover_all_pages_once_in_order(texts: list[str]) -> None:
    found = segment_pages([read_page_for_scoring(page(number, text)) for number, text in enumerate(texts, 1)])
    assert [index for start, end in found.document_index_ranges for index in range(start, end)] == list(
        range(len(texts))
    )
    assert all(start < end for start, end in found.document_index_ranges)
    assert all(0 <= join.probability <= 1 for join in found.transitions)


@given(st.lists(st.sampled_from(_TEXTS[:4]), min_size=1, max_size=4), st.integers(0, 4))
def test_an_empty_page_moves_no_other_beginning(texts: list[str], at: int) -> None:
    def beginnings(some: list[str]) -> list[str]:
        pages = [read_page_for_scoring(page(number, text)) for number, text in enumerate(some, 1)]
        return [some[start] for start, _ in segment_pages(pages).document_index_ranges if some[start] or start]

    place = min(at, len(texts))
    with_blank = [*texts[:place], "", *texts[place:]]
    assert len(beginnings(with_blank)) <= len(beginnings(texts))
    if place:
        assert beginnings(with_blank) == beginnings(texts)


def test_pages_naming_another_person_are_separate_documents() -> None:
    first, second = (f"Doe Clinic\nPatient: {name}\n{MRI}" for name in ("Helen Marsh", "Uwe Ott"))
    pages = [known(page(1, first), patient="MARSH HELEN"), known(page(2, second), patient="OTT UWE")]
    assert segment_pages([read_page_for_scoring(one) for one in pages]).document_index_ranges == ((0, 1), (1, 2))


def test_a_block_of_furniture_alone_is_a_thin_page() -> None:
    blocks = (Block(type="paragraph", text="Doe Clinic", box=BOX, furniture=True),)
    thin = page(2, "Doe Clinic").model_copy(update={"blocks": blocks})
    found = segment_pages(
        [
            read_page_for_scoring(page(1, MRI)),
            read_page_for_scoring(thin),
            read_page_for_scoring(page(3, f"PATHOLOGY REPORT\n{SKIN}")),
        ]
    )
    assert found.document_index_ranges == ((0, 2), (2, 3))
    assert [join.page_num for join in found.transitions] == [3]


def test_where_what_cannot_be_read_begins_and_ends_is_told() -> None:
    """A page in another language is no part of the report beside it, and ``show --why`` names it."""
    foreign = "患者主诉头痛两周检查未见异常建议随访" * 30
    bundle = document(MRI, foreign, MRI)
    found = segment_pages([read_page_for_scoring(one) for one in bundle.pages])
    assert found.readability_change_pages == (2, 3)
    assert [start for start, _ in found.document_index_ranges] == [0, 1, 2]
    answer = classify_by_embedded_model(bundle)
    assert explain_segment_types(bundle, answer.segments).turns == (2, 3)
    assert explain_segment_types(bundle, answer.segments).to_json()["turns"] == (2, 3)
    said = [line for line in explain_as_text_lines(bundle, answer.segments) if "cannot meet" in line]
    assert [line.split(" begins")[0] for line in said] == ["page 2", "page 3"]
    assert (
        explain_segment_types(document(MRI, SKIN), classify_by_embedded_model(document(MRI, SKIN)).segments).turns == ()
    )


def test_term_cue_counts_for_its_strongest_type_only() -> None:
    heard = read_page_for_scoring(page(1, NOTE))
    by_kind = [list(select_term_cues(heard, kind)) for kind in DocumentType]
    assert sum(map(len, by_kind)) == len(heard.term_cues) > 0
    for kind, some in zip(DocumentType, by_kind, strict=True):
        for cue in some:
            row = heard.model_weights.weights_by_term[cue.term]
            assert max(zip(row, DocumentType, strict=True))[1] is kind
            assert cue.weight == pytest.approx(sorted(row)[-1] - sorted(row)[-2])
