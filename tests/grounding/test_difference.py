"""What differs between a quote and the page, by kind; noise is no difference."""

import time

import pytest
from builders import document
from hypothesis import given
from hypothesis import strategies as st

from evalkit.documents.bundle import DocumentBundle, PageStatus
from evalkit.grounding import QuoteLocation, QuoteLocator
from evalkit.grounding.difference import DifferenceKind, compare_quote_with_passage

PAGE = (
    "No evidence of metastatic disease is seen. The mass measures 42 mm in the left breast. "
    "BRCA1 c.5266dupC was detected in a heterozygous state. The patient cannot walk. "
    "ER: positive, 95%. The lesion is benign. WBC was 4.2 on 03/12/2024. Ki-67 is < 5 percent. "
    "Hypotension was treated with metoprolol 25 mg daily. "
    "Lymphovascular invasion: not identified. Margins may be involved."
)


def located(quote: str, *, text: str = PAGE, status: PageStatus = PageStatus.TEXT) -> QuoteLocation:
    return QuoteLocator(recognised(document(text), status)).locate(quote, 1)


def recognised(bundle: DocumentBundle, status: PageStatus) -> DocumentBundle:
    return bundle.model_copy(
        update={"pages": tuple(page.model_copy(update={"status": status}) for page in bundle.pages)}
    )


@pytest.mark.parametrize(
    ("quote", "named"),
    [
        ("BRCA2 c.5266dupC was detected in a heterozygous state", "gene or variant: the document says “BRCA1”, the quote “BRCA2”"),
        ("BRCA1 c.5268dupC was detected in a heterozygous state", "gene or variant"),
        ("BRCA1 c.5266delC was detected in a heterozygous state", "gene or variant"),
        ("BRCA1 c.5266dupC was detected in a homozygous state", "gene or variant"),
        ("BRCA1 c.5266dupC was not detected in a heterozygous state", "negation: the quote adds “not”"),
        ("The mass measures 42 cm in the left breast", "unit: the document says “mm”, the quote “cm”"),
        ("The mass measures 4.2 mm in the left breast", "decimal point: the document says “42”, the quote “4.2”"),
        ("The mass measures 43 mm in the left breast", "number"),
        ("The mass measures 42 mm in the right breast", "side or site: the document says “left”, the quote “right”"),
        ("The mass measures 42 mm in the left lung", "word: the document says “breast”, the quote “lung”"),
        ("The patient can walk", "negation: the document says “cannot”, the quote “can”"),
        ("ER: negative, 95%", "finding: the document says “positive”, the quote “negative”"),
        ("The lesion is pathogenic", "pathogenicity: the document says “benign”, the quote “pathogenic”"),
        ("The lesion is malignant", "pathogenicity"),
        ("WBC was 42 on 03/12/2024", "decimal point"),
        ("WBC was 4.2 on 03/13/2024", "date"),
        ("Ki-67 is > 5 percent", "comparator"),
        ("Hypertension was treated with metoprolol 25 mg daily", "word"),
        ("Hypotension was treated with metoprolol 25 mcg daily", "unit"),
        ("Hypotension was treated with metoclopramide 25 mg daily", "word"),
        ("Margins are involved", "degree of certainty"),
        ("Margins must be involved", "degree of certainty"),
        ("evidence of metastatic disease is seen", "negation: the quote leaves out “no”"),
        ("metastatic disease", "negation"),
        ("Lymphovascular invasion", "negation: the quote leaves out “not”"),
        ("Lymphovascular invasion: identified", "negation: the quote leaves out “not”"),
    ],
)  # fmt: skip
def test_what_says_something_else_is_altered_and_named(quote: str, named: str) -> None:
    place = located(quote)
    assert place.verdict == "ALTERED"
    assert named in (place.difference_text or "")
    assert place.page_number == 1
    assert place.boxes or not QuoteLocator(document(PAGE)).has_quote("mass", 1)


@pytest.mark.parametrize(
    ("quote", "place"),
    [
        ("The patient can walk", "The patient cannot walk"),
        ("The lesion is pathogenic", "The lesion is benign"),
        ("WBC was 42 on 03/12/2024", "WBC was 4.2 on 03/12/2024"),
        ("The mass measures 4.2 mm in the left breast", "The mass measures 42 mm in the left breast"),
        ("ER: negative, 95%", "ER: positive, 95%"),
    ],
)
def test_altered_quote_is_located_at_its_exact_source(quote: str, place: str) -> None:
    found = located(quote)
    assert PAGE[found.start : found.end] == place


@pytest.mark.parametrize(
    ("text", "quote", "place"),
    [
        (
            "The patient has a left breast carci-\nnoma. Right breast carcinoma was excluded in full by surgery.",
            "The patient has a right breast carcinoma",
            "The patient has a left breast carci-\nnoma",
        ),
        (
            "Intro. Infil-\ntrates were absent. The infiltrates of the left lung were seen again.",
            "The infiltrates of the right lung were seen",
            "The infiltrates of the left lung were seen",
        ),
        (
            "Impression: No evidence of metastatic disease in the left lung base.",
            "evidence of metastatic disease in the right lung base",
            "No evidence of metastatic disease in the left lung base",
        ),
        ("The ﬁrst biopsy of the left breast was benign.", "The first biopsy of the right breast was benign", None),
    ],
    ids=["hyphen in the quote's place", "hyphen before it", "negation left out", "ligature"],
)
def test_location_handles_hyphenation_and_includes_negation(text, quote, place) -> None:
    found = located(quote, text=text)
    assert found.verdict == "ALTERED"
    assert text[found.start : found.end] == (place or "The ﬁrst biopsy of the left breast was benign")


@pytest.mark.parametrize(
    "quote",
    [
        "No evidence of metastatic disease is seen",
        "BRCA1 c.5266dupC was detected in a heterozygcus state",
        "Hypotension was treated witn metoprolol 25 mg daily",
        "The rnass measures 42 mm in the left breast",
        "the mass measures 42mm in the left breast",
        "Lymphovascular invasion: not identified",
        "The patient cannot walk ER: positive, 95 %",
    ],
)
def test_noise_is_no_difference(quote: str) -> None:
    assert located(quote).is_found


@pytest.mark.parametrize(
    ("quote", "verdict"),
    [
        ("The mass measures 47 mm in the left breast", "UNCERTAIN"),
        ("BRCA1 c.5268dupC was detected in a heterozygous state", "UNCERTAIN"),
        ("The mass measures 42 mm in the right breast", "ALTERED"),
        ("The patient can walk", "ALTERED"),
        ("The mass measures 42 mm in the left breast", "VERBATIM"),
    ],
)
def test_digit_easily_misread_by_ocr_is_not_altered_on_scans(quote: str, verdict: str) -> None:
    assert located(quote, status=PageStatus.OCR).verdict == verdict


def test_what_an_engine_has_spoilt_is_still_the_same_word() -> None:
    text = "Invasive ductal carcinorna of the left breast, grade 2"
    assert located("Invasive ductal carcinoma of the left breast, grade 2", text=text, status=PageStatus.OCR).is_found


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        ("No fever. Cough and night sweats are reported", "Cough and night sweats are reported"),
        ("There is no pain but the swelling is worse", "the swelling is worse"),
        ("The wound is clean. Never smoked", "The wound is clean."),
        ("Denies nausea. Has chest pain on exertion", "Has chest pain on exertion"),
        ("The biopsy does not show\nTumor cells in the duct", "Tumor cells in the duct"),
        ("no thrombus in the left atrium. The valve is thickened", "The valve is thickened"),
    ],
)
def test_a_negation_of_another_clause_reaches_no_quote(text: str, quote: str) -> None:
    assert located(quote, text=text).is_found


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        ("She denies fever, chills, and weight loss today", "chills, and weight loss today"),
        ("There is no\nevidence of residual carcinoma", "evidence of residual carcinoma"),
        ("The biopsy does not show\ntumor cells in the duct", "tumor cells in the duct"),
        ("A pathogenic variant in PALB2 was not detected", "A pathogenic variant in PALB2"),
        ("Deep vein thrombosis has been ruled out", "Deep vein thrombosis"),
        ("Influenza A antigen\tNegative", "Influenza A antigen"),
    ],
)
def test_a_cut_that_loses_the_negation_is_altered(text: str, quote: str) -> None:
    place = located(quote, text=text)
    assert place.verdict == "ALTERED"
    assert "negation: the quote leaves out" in (place.difference_text or "")


def test_quote_with_an_unnegated_occurrence_is_genuine() -> None:
    text = "No evidence of recurrence was seen in May. In June there was evidence of recurrence in the scar"
    assert located("evidence of recurrence", text=text).is_found


def test_a_quote_may_cross_from_one_page_to_the_next() -> None:
    bundle = document("The margins are free and the", "lymph nodes show no tumor cells")
    place = QuoteLocator(bundle).locate("free and the lymph nodes show no tumor cells", 1)
    assert (place.verdict, place.page_number) == ("NOISY", 1)
    assert QuoteLocator(bundle).locate("free and the lymph nodes show no tumor cells", 2).verdict == "NOISY"
    assert QuoteLocator(bundle).locate("free and the lymph nodes show tumor cells", 1).verdict == "ALTERED"


@pytest.mark.parametrize("quote", ["of the", "it is", "and"])
def test_words_that_stand_everywhere_prove_nothing(quote: str) -> None:
    assert located(quote, text="it is one of the best and it is here").verdict == "UNCERTAIN"


def test_passage_starting_inside_a_number_is_widened() -> None:
    found = compare_quote_with_passage(
        "5 mg", "3", ".5 mg", "", is_ocr_text=False, is_known_word=lambda word, often: False
    )
    assert [(one.kind, one.quote_text, one.page_text) for one in found.differences] == [
        (DifferenceKind.NUMBER, "5", "3.5")
    ]
    assert found.compared_span == (0, len("3.5 mg"))


@given(*[st.text("No mtbd3.,-/( \n", max_size=12)] * 4)
def test_any_passage_can_be_compared_wherever_it_is_cut(quote: str, before: str, passage: str, after: str) -> None:
    found = compare_quote_with_passage(
        quote, before, passage, after, is_ocr_text=False, is_known_word=lambda word, often: False
    )
    start, end = found.compared_span or (0, 0)
    assert 0 <= start <= end <= len(before + passage + after)
    assert 0.0 <= found.matched_share <= 1.0


@pytest.mark.parametrize("quote", ["", "   ", "—", "…", "()"])
def test_an_empty_quote_is_absent(quote: str) -> None:
    assert located(quote).verdict == "ABSENT"


def test_a_quote_longer_than_its_page_does_not_pass() -> None:
    place = located(
        "The lesion is benign and nothing else was found in the rest of the specimen", text="The lesion is benign"
    )
    assert place.verdict in ("ALTERED", "ABSENT")


def test_what_is_absent_says_where_something_like_it_stands() -> None:
    bundle = document("Nothing at all.", "Blood pressure was taken while she was sitting down in the clinic")
    place = QuoteLocator(bundle).locate("Blood glucose was raised when he was lying up at the ward", 1)
    assert place.verdict == "ABSENT"
    assert place.page_number is None
    assert place.closest_page in (2, None)


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        # A part of a compound, a number, a variant or a sign is cut off.
        ("the tumor is a non-small cell carcinoma", "small cell carcinoma"),
        ("Non-Hodgkin lymphoma was diagnosed", "Hodgkin lymphoma was diagnosed"),
        ("this is triple-negative breast cancer", "negative breast cancer"),
        ("the margin is tumor-free", "the margin is tumor"),
        ("a < 5 mm nodule in the lung", "5 mm nodule in the lung"),
        ("a 3-5 mm nodule", "5 mm nodule"),
        ("a nodule of 3-5 mm", "nodule of 3"),
        ("0/12 nodes positive for tumor", "12 nodes positive for tumor"),
        ("0/12 nodes positive for tumor", "nodes positive for tumor"),
        ("tumor cells 5% here", "tumor cells 5"),
        ("HER2 IHC score 3+ there", "HER2 IHC score 3"),
        ("Gleason score 3+4 found", "Gleason score 3"),
        ("blood type is A- today", "blood type is A"),
        ("blood type A- was confirmed", "blood type A was confirmed"),
        ("variant c.181T>G found", "variant c.181T"),
        ("variant c.123+1G>A found", "variant c.123"),
        ("T score is -2.5 SD at the hip", "2.5 SD at the hip"),
        # A sign is added or changed.
        ("took 5 mg of drug daily", ".5 mg of drug daily"),
        ("was 2.5 SD at the hip", "-2.5 SD at the hip"),
        ("value \uff1c5 mm here now", "value 5 mm here now"),
        ("count 10\u00b3 per litre here", "count 10\u207b\u00b3 per litre here"),
        ("Lymphovascular invasion: \u2610 Yes \u2612 No", "Lymphovascular invasion: \u2612 Yes \u2610 No"),
        ("Hemoglobin \u2191 today again", "Hemoglobin \u2193 today again"),
        ("No, cancer was found here", "No cancer was found here"),
        # Another drug, place or person, one or two letters away.
        ("treated with erlotinib daily for a year", "treated with nilotinib daily for a year"),
        ("prednisone was given at home", "prednisolone was given at home"),
        ("urethral stricture was seen there", "ureteral stricture was seen there"),
        ("Patient Johanson was seen today", "Patient Johansen was seen today"),
        # What stands beside it turns or frames it.
        ("NEG tumor in the breast", "tumor in the breast"),
        ("No: tumor in the breast", "tumor in the breast"),
        ("R/O: metastatic carcinoma", "metastatic carcinoma"),
        ("metastatic carcinoma has been definitively ruled out", "metastatic carcinoma"),
        ("Negative for fever, chills, night sweats, weight loss, fatigue, cough, hemoptysis, dyspnea", "dyspnea"),
        ("There is no evidence of\nMalignancy in the liver", "Malignancy in the liver"),
        ("family history of breast cancer at age 40", "breast cancer at age 40"),
        ("if the patient has metastatic disease, begin chemotherapy", "metastatic disease"),
        ("Is it metastatic disease ?", "metastatic disease"),
    ],
)
def test_what_a_cut_a_sign_or_a_letter_changes_does_not_pass(text: str, quote: str) -> None:
    assert located(quote, text=text).verdict in ("ALTERED", "UNCERTAIN")


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        ("FINAL DIAGNOSIS: Negative for malignancy", "FINAL DIAGNOSIS"),
        ("Family History: No cancer", "Family History"),
        ("Allergies: None known", "Allergies"),
        ("Patient presents with cough, no fever", "Patient presents with cough"),
        ("Accession No 123 Specimen received in formalin", "Specimen received in formalin"),
        ("Negative for dysplasia, positive for carcinoma", "positive for carcinoma"),
        ("MRI with and without contrast was done", "contrast was done"),
        ("f\u00fcr die Klinik", "fu\u0308r die Klinik"),
        ("\u2265 5 mm in size", ">= 5 mm in size"),
        ("2.5 \u00d7 1.0 cm mass", "2.5 x 1.0 cm mass"),
        ("HER-2 was positive", "HER2 was positive"),
        ("a 45-year-old man", "a 45 year old man"),
        ("x=4.2 was measured", "4.2 was measured"),
    ],
)
def test_what_only_looks_turned_is_genuine(text: str, quote: str) -> None:
    assert located(quote, text=text).is_found


def test_a_genuine_place_elsewhere_goes_before_a_turned_one() -> None:
    bundle = document("no tumor in the breast", "no tumor in the breast today", "seen: tumor in the breast")
    place = QuoteLocator(bundle).locate("tumor in the breast", 1)
    assert (place.verdict, place.page_number) == ("WRONG_PAGE", 3)


def test_what_is_uncertain_elsewhere_is_not_found_elsewhere() -> None:
    assert (
        QuoteLocator(document("nothing", "an atypical cell pattern")).locate("a typical cell pattern", 1).verdict
        != "WRONG_PAGE"
    )


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        ("no,tumor," * 2000, "tumor"),
        ("a- " * 16_000, "a- a- b"),
        ("1" * 16_000 + "a", "1" * 15_000 + "b"),
        ("a'" * 8000, "a'a'b"),
    ],
)
def test_hostile_text_takes_no_time(text: str, quote: str) -> None:
    began = time.process_time()
    located(quote, text=text)
    assert time.process_time() - began < 5
