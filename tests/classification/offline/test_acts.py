"""Acts: whether a text does what its type does, or only uses its words. Texts of the tests' own; no exact probability."""

from __future__ import annotations

import itertools
import textwrap
from pathlib import Path

import pymupdf
import pytest
from builders import (
    EMBEDDED_RAW,
    GENOMIC,
    MENTION_ONLY,
    NO_EVIDENCE,
    NOTE,
    OTHER,
    PATHOLOGY,
    PRIMARY,
    RADIOLOGY,
    TYPES,
    codes,
    compose_single_type,
    copy_with,
    doc2_6,
    doc2_6_answer,
    document,
    one_segment,
    page,
    parse_answer,
    presence,
    segment,
)
from builders import answer as compose_answer
from classification.offline.test_second_opinion_types import TEXTS
from hypothesis import given
from hypothesis import strategies as st

from evalkit.classification.offline.acts import (
    ACT_DESCRIPTIONS,
    ACT_IN_OTHER_CODE,
    MIN_WORDS_TO_JUDGE,
    NO_ACT_CODE,
    ActReading,
    find_act_issues,
    find_contradicted_types,
    load_act_features,
    load_act_weights,
    read_act_of_segment,
)
from evalkit.classification.offline.second_opinion_types import measure_type_signs_on_pages
from evalkit.classification.schema import DocumentType
from evalkit.documents.bundle import DocumentBundle
from evalkit.documents.readers import read_document
from evalkit.issue import Issue

PERFORMED = {
    NOTE: (
        "FOLLOW-UP VISIT\nMrs. Ortega is a 58-year-old woman who was seen today for her diabetes, accompanied by her son. "
        "She reports that her sugars have been between 7 and 9. She denies chest pain and has had no falls.\n"
        "Exam: Blood pressure 132/78, pulse 70. Lungs clear, feet without ulcers.\n"
        "Assessment: Type 2 diabetes, improved since the spring.\n"
        "Plan: We discussed her diet and will continue metformin 500 mg twice daily. She will return in three months."
    ),
    PATHOLOGY: (
        "SURGICAL PATHOLOGY\nGross description: Received in formalin is a piece of tan skin, 1.4 x 0.9 x 0.4 cm, inked and "
        "entirely submitted in cassette A1.\nMicroscopic description: Sections show nests of atypical basaloid cells with "
        "peripheral palisading in the dermis. The deep margin is free of tumor.\n"
        "Diagnosis: Skin of the left cheek, excision: basal cell carcinoma, nodular type, completely excised.\n"
        "Electronically signed by M. Adler, MD, pathologist"
    ),
    GENOMIC: (
        "MOLECULAR RESULT\nGene: MLH1. A heterozygous variant, c.1852_1853delinsGC (p.Lys618Ala), was detected in the DNA of "
        "this patient's blood at a read depth of 240x.\nClassification: likely pathogenic.\n"
        "Interpretation: The variant changes a residue that is conserved in the protein and is consistent with Lynch "
        "syndrome in this patient. No other pathogenic variants were identified in the 26 genes analyzed.\n"
        "Reviewed and reported by the laboratory director."
    ),
    RADIOLOGY: (
        "CT OF THE ABDOMEN AND PELVIS\nTechnique: Axial images with intravenous contrast.\nFindings: The liver is normal in "
        "size and there is no focal lesion. The kidneys enhance symmetrically, without hydronephrosis. There is a 7 mm "
        "calculus in the gallbladder. No free fluid is seen.\n"
        "Impression: Cholelithiasis without evidence of cholecystitis. Otherwise unremarkable examination."
    ),
}

NOT_PERFORMED = {
    "order": (
        RADIOLOGY,
        "IMAGING REQUEST\nPlease schedule the patient for: CT of the abdomen with contrast. Priority: routine\n"
        "Indication: pain in the right flank, please rule out stones. ICD-10: R10.9  CPT: 74178\n"
        "Please call the patient to arrange an appointment and send the report to the ordering provider by fax. Is the "
        "patient pregnant? yes / no   Allergy to contrast? yes / no\nOrdering provider signature: ____________  NPI: ________",
    ),
    "leaflet": (
        PATHOLOGY,
        "UNDERSTANDING YOUR BIOPSY RESULT\nA biopsy is a small piece of tissue that your doctor has taken from you. If you "
        "are told that your biopsy is benign, this means that no cancer cells were found. Most people can go back to work "
        "the next day. You may have some bleeding. Call your doctor if you have a fever. What is a margin? It is the edge "
        "of the tissue. You should keep the wound dry and ask your nurse if you have questions. See www.biopsyfacts.org.",
    ),
    "advert": (
        GENOMIC,
        "JOIN OUR TEAM\nWe are hiring a variant scientist for our growing laboratory. You will classify variants in "
        "hereditary cancer genes and work with our directors. The successful candidate must have a doctorate and two years "
        "of experience with sequencing data. We offer a competitive salary, benefits and a friendly team. Apply on our "
        "career page at www.genelab.com/careers and tell us why you would like to work with us!",
    ),
    "method sheet": (
        GENOMIC,
        "ASSAY DESCRIPTION\nThe panel is intended for use in the detection of germline variants in 84 genes. Genomic DNA is "
        "enriched by hybrid capture and sequenced by the laboratory. Sensitivity for single nucleotide variants is 99.5% "
        "and the limit of detection is 10%. Specimen requirements: 4 mL of whole blood in an EDTA tube. Turnaround time: 14 "
        "days. Please contact client services if you have questions about shipping. Balanced changes are not detected.",
    ),
    "insurer": (
        NOTE,
        "NOTICE OF DENIAL OF COVERAGE\nDear member, we have reviewed the request for an MRI that your provider submitted. "
        "Your plan covers this service only if it is medically necessary. The request does not meet our criteria because no "
        "record of physical therapy was enclosed. You may appeal this decision within 180 days. To appeal, please send a "
        "letter to the address below or call member services. Your claim number and policy number must be included.",
    ),
    "template": (
        NOTE,
        "CLINIC VISIT TEMPLATE: please fill in all fields and return the form to the front desk.\nName: ____________\n"
        "Date: ____________\nChief complaint: ____________\nHistory: ____________\n[ ] fever  [ ] cough  [ ] rash  [ ] none\n"
        "Allergies: ____________\nMedicines: ____________\nHave you ever been told that you have diabetes? yes / no\n"
        "Do you smoke? yes / no\nExam: ____________\nAssessment: ____________\nPlan: ____________\nSignature: ____________",
    ),
}
"""Papers that use the words of a type, and the type that they are called."""

ROWS = "\n".join(
    f"{analyte} {measured} {low} - {high}"
    for analyte, measured, low, high in (
        ("WBC", 8.2, 4.0, 11.0), ("Hemoglobin", 13.4, 12.0, 16.0), ("Platelets", 240, 150, 400), ("Glucose", 99, 70, 100),
        ("Sodium", 139, 135, 145), ("Potassium", 4.1, 3.5, 5.1), ("Creatinine", 0.9, 0.6, 1.2), ("ALT", 22, 7, 56),
    )
)  # fmt: skip


def find_issues(kind: str, *texts: str) -> list[Issue]:
    """The act issues of an answer that calls the whole document one type."""
    return list(find_act_issues(parse_answer(one_segment(kind, len(texts))), document(*texts)))


def read_acts(*texts: str) -> ActReading:
    return ActReading([page(number, text) for number, text in enumerate(texts, 1)], load_act_weights())


# ------------------------------------------------------------------------------------------------ V2-NO-ACT


@pytest.mark.parametrize("kind", PERFORMED)
def test_a_text_that_performs_its_act_raises_nothing(kind: str) -> None:
    assert read_acts(PERFORMED[kind]).likeliest_type == kind
    assert find_issues(kind, PERFORMED[kind]) == []


@pytest.mark.parametrize("name", NOT_PERFORMED)
def test_words_of_a_type_without_its_act_are_raised(name: str) -> None:
    kind, text = NOT_PERFORMED[name]
    (issue,) = find_issues(kind, text)
    assert (issue.code, issue.severity, issue.auto_fixable) == (NO_ACT_CODE, "MAJOR", False)
    assert (issue.segment_index, issue.document_type, issue.page) == (1, kind, 1)
    assert issue.quote
    assert issue.quote in text
    assert f"is called {kind}" in issue.message
    signs = (*load_act_features().descriptions.values(), "is a form that was hardly filled in")
    assert any(f" the text {sign}" in issue.message for sign in signs)
    assert find_issues(OTHER, text) == []


@pytest.mark.parametrize(("kind", "claimed"), list(itertools.permutations(PERFORMED, 2)))
def test_the_act_of_another_type_is_not_the_claimed_one(kind: str, claimed: str) -> None:
    (issue,) = find_issues(claimed, PERFORMED[kind])
    assert (issue.code, issue.document_type) == (NO_ACT_CODE, claimed)
    assert f"it reads like {ACT_DESCRIPTIONS[DocumentType(kind)]}" in issue.message


# ------------------------------------------------------------------------------------------- V2-ACT-IN-OTHER


@pytest.mark.parametrize("kind", PERFORMED)
def test_other_that_performs_an_act_is_raised(kind: str) -> None:
    (issue,) = find_issues(OTHER, "\n".join(ROWS.splitlines()[:2]), PERFORMED[kind])
    assert (issue.code, issue.severity, issue.document_type) == (ACT_IN_OTHER_CODE, "MAJOR", OTHER)
    assert ACT_DESCRIPTIONS[DocumentType(kind)] in issue.message
    assert kind in issue.suggested_fix
    assert issue.quote in PERFORMED[kind] + ROWS


def test_laboratory_rows_are_no_act() -> None:
    assert find_issues(OTHER, f"LABORATORY RESULTS\n{ROWS}\n{ROWS}") == []
    assert codes(find_issues(NOTE, f"LABORATORY RESULTS\n{ROWS}\n{ROWS}")) == [NO_ACT_CODE]


# ----------------------------------------------------------------------------------------- what is judged at all


def test_little_text_misses_no_act() -> None:
    words = NOT_PERFORMED["order"][1].split()
    assert find_issues(RADIOLOGY, " ".join(words[: MIN_WORDS_TO_JUDGE - 1])) == []
    assert find_issues(RADIOLOGY, "", " ".join(words[: MIN_WORDS_TO_JUDGE - 1]), "") == []
    assert find_issues(RADIOLOGY, " ".join(words[:20]), " ".join(words[20:])) != []


def test_a_segment_without_a_type_or_text_is_not_judged() -> None:
    untyped = copy_with(one_segment(NOTE, 1), {"segments.0.dominant_type": None})
    assert list(find_act_issues(parse_answer(untyped), document(NOT_PERFORMED["order"][1]))) == []
    blank = parse_answer(one_segment(NOTE, 2)).segments[0]
    assert read_act_of_segment(blank, document("", " \n")) is None
    reading = read_act_of_segment(
        parse_answer(one_segment(NOTE, 3)).segments[0], document(PERFORMED[NOTE], "", PERFORMED[NOTE])
    )
    assert reading is not None
    assert [one.page_num for one in reading.pages] == [1, 3]


def test_each_segment_is_read_by_itself() -> None:
    texts = (PERFORMED[NOTE], *(text for _, text in NOT_PERFORMED.values()))
    parts = [
        segment(number, number, number, kind, compose_single_type(kind))
        for number, kind in enumerate((NOTE, *(kind for kind, _ in NOT_PERFORMED.values())), 1)
    ]
    value = parse_answer(compose_answer(*parts, overall=NOTE, shares={NOTE: 1.0}))
    found = list(find_act_issues(value, document(*texts)))
    assert [(issue.segment_index, issue.page) for issue in found] == [
        (number, number) for number in range(2, len(texts) + 1)
    ]


def test_pages_of_results_do_not_hide_a_note() -> None:
    pages = (f"LABORATORY RESULTS\n{ROWS}\n{ROWS}", PERFORMED[NOTE], ROWS, ROWS)
    assert find_issues(NOTE, *pages) == []
    whole = read_acts(*pages)
    assert (
        whole.compute_act_probability(DocumentType.CLINICAL_NOTE)
        >= read_acts(PERFORMED[NOTE]).probabilities[DocumentType.CLINICAL_NOTE]
    )
    # A report is not found in a note that quotes one by the page.
    assert (
        read_acts(PERFORMED[NOTE], PERFORMED[RADIOLOGY]).compute_act_probability(DocumentType.RADIOLOGY_REPORT)
        == (read_acts(PERFORMED[NOTE], PERFORMED[RADIOLOGY]).probabilities[DocumentType.RADIOLOGY_REPORT])
    )


@pytest.mark.parametrize(
    ("level", "is_raised"), [(PRIMARY, False), (EMBEDDED_RAW, False), (MENTION_ONLY, True), (NO_EVIDENCE, True)]
)
def test_a_report_may_be_followed_by_the_text_it_names(level: str, is_raised: bool) -> None:
    """Its act is looked for on its first pages, if it is said that a note's own text follows."""
    pages = (PERFORMED[GENOMIC], *[PERFORMED[NOTE]] * 3)
    composition = [
        presence(GENOMIC, PRIMARY, 0.9, 0.6),
        presence(NOTE, level, 0.6, 0.4),
        *(presence(kind, NO_EVIDENCE, 0.0, 0.0) for kind in TYPES if kind not in (GENOMIC, NOTE)),
    ]
    bundle = document(*pages)
    first, last = (
        parse_answer(copy_with(one_segment(GENOMIC, 4), {"segments.0.segment_composition": composition})),
        document(*pages[::-1]),
    )
    assert codes(find_act_issues(first, bundle)) == ([NO_ACT_CODE] if is_raised else [])
    assert codes(find_act_issues(first, last)) == [NO_ACT_CODE], "a note that quotes a report begins as a note"


# ---------------------------------------------------------------------------------------------- V2's question


@pytest.mark.parametrize("label", TEXTS)
@pytest.mark.parametrize("kind", TEXTS)
def test_label_is_contradicted_only_by_text_of_another_type(kind: str, label: str) -> None:
    found = list(find_contradicted_types(parse_answer(one_segment(label, 1)), document(TEXTS[kind])))
    assert bool(found) is (kind != label)
    for one in found:
        assert one.severity == "MAJOR"
        assert one.quote
        assert one.quote in TEXTS[kind]
        assert (one.segment_index, one.document_type, one.page) == (1, label, 1)
        assert kind in one.suggested_fix


def test_only_what_is_called_primary_can_be_contradicted() -> None:
    value = parse_answer(one_segment(GENOMIC, 1, level=MENTION_ONLY))
    assert list(find_contradicted_types(value, document(TEXTS[OTHER]))) == []


def test_the_slides_own_document_is_not_contradicted() -> None:
    assert list(find_contradicted_types(parse_answer(doc2_6_answer()), doc2_6())) == []
    assert list(find_act_issues(parse_answer(doc2_6_answer()), doc2_6())) == []


def test_little_text_contradicts_nothing() -> None:
    assert list(find_contradicted_types(parse_answer(one_segment(GENOMIC, 1)), document("Hemoglobin 13.4"))) == []


def test_forms_contradict_nothing_where_the_act_is_performed() -> None:
    """Rows of results are no note's form, but a note may have pages of them."""
    story = (
        "Subjective: She has had a sore throat since Sunday and is tired. Her son was ill last week.\n"
        "Objective: Throat red without exudate, neck supple, ears clear.\nAssessment: Viral pharyngitis.\n"
        "She was reassured and will come back if it gets worse."
    )
    note = parse_answer(one_segment(NOTE, 2))
    for texts, is_performed in (((story, ROWS), True), ((ROWS, ROWS), False)):
        pages = [page(number, text) for number, text in enumerate(texts, 1)]
        assert (
            measure_type_signs_on_pages(pages).find_contradicting_type(DocumentType.CLINICAL_NOTE) is DocumentType.OTHER
        )
        assert bool(list(find_contradicted_types(note, document(*texts)))) is not is_performed


# ------------------------------------------------------------------------------------------------- properties

PASSAGES = st.sampled_from(
    [
        line
        for text in (*PERFORMED.values(), *(text for _, text in NOT_PERFORMED.values()))
        for line in text.splitlines()
    ]
)
PAGES = st.lists(st.lists(PASSAGES | st.text(max_size=80), max_size=6).map("\n".join), min_size=1, max_size=4)


@given(PAGES)
def test_probabilities_of_any_text_sum_to_one(texts: list[str]) -> None:
    reading = read_acts(*texts)
    assert sum(reading.probabilities.values()) == pytest.approx(1)
    assert set(reading.probabilities) == set(DocumentType)
    for kind in DocumentType:
        for contained_types in (frozenset(), frozenset(DocumentType) - {kind}):
            probability = reading.compute_act_probability(kind, contained_types)
            assert reading.probabilities[kind] <= probability <= 1
    assert reading.probabilities[reading.likeliest_type] == max(reading.probabilities.values())


@given(PAGES, st.data())
def test_the_order_of_pages_does_not_matter(texts: list[str], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(texts))
    first, second = read_acts(*texts), read_acts(*shuffled)
    assert first.probabilities == pytest.approx(second.probabilities)
    for kind in DocumentType:
        if kind is not DocumentType.OTHER:
            assert set(first.rank_feature_names(kind, DocumentType.OTHER)) == set(
                second.rank_feature_names(kind, DocumentType.OTHER)
            )


@given(PAGES, st.sampled_from(TYPES))
def test_each_issue_quotes_the_page_that_it_names(texts: list[str], kind: str) -> None:
    for issue in find_issues(kind, *texts):
        assert issue.code == (ACT_IN_OTHER_CODE if kind == OTHER else NO_ACT_CODE)
        assert texts[issue.page - 1].strip()
        assert issue.quote is None or issue.quote in texts[issue.page - 1]


@given(PAGES, st.sampled_from(list(itertools.permutations(DocumentType, 2))))
def test_signs_for_one_type_are_none_for_the_other(texts: list[str], kinds: tuple[DocumentType, DocumentType]) -> None:
    reading = read_acts(*texts)
    signs, opposite = reading.rank_feature_names(*kinds), reading.rank_feature_names(*kinds[::-1])
    assert set(signs).isdisjoint(opposite)
    assert {*signs, *opposite} <= set(load_act_features().names)


@pytest.mark.parametrize(("strong", "weak"), [("reader", "writer"), ("writer", "reader")])
def test_the_sign_that_speaks_most_comes_first(strong: str, weak: str) -> None:
    weights = load_act_weights()
    row_by_name = {strong: (0.0, 0.0, 0.0, 0.0, 2.0), weak: (0.0, 0.0, 0.0, 0.0, 0.5)}
    features = {name: (0.0, 1.0, row_by_name.get(name, (0.0,) * 5)) for name in weights.features}
    reading = ActReading(
        [page(1, "Bring your card. My card is here.")], weights.model_copy(update={"features": features})
    )
    assert reading.rank_feature_names(DocumentType.OTHER, DocumentType.CLINICAL_NOTE) == [strong, weak]
    assert reading.rank_feature_names(DocumentType.CLINICAL_NOTE, DocumentType.OTHER) == []


# ---------------------------------------------------------------------------------------------------- weights


def test_shipped_weights_are_of_the_shipped_features() -> None:
    weights = load_act_weights()
    assert tuple(weights.features) == load_act_features().names
    assert all(deviation > 0 for _, deviation, _ in weights.features.values())
    assert set(weights.learned_from) == set(DocumentType)
    assert 0 < weights.min_claimed_probability < 1
    assert weights.max_act_probability > 0.5, "what is called Other must rather not be Other"


def test_an_answer_cannot_talk_an_act_into_pages() -> None:
    """One page of a report does not make pages of a leaflet a report, whatever the answer says that they contain."""
    leaflet = LEAFLET_PAGE
    answer = one_segment(RADIOLOGY, 5)
    answer["segments"][0]["segment_composition"][0] |= {
        "document_type": NOTE, "presence_level": "EMBEDDED_RAW", "segment_share": 0.05,
    }  # fmt: skip
    bundle = document(PERFORMED[RADIOLOGY], *(f"{leaflet} Part {number}." for number in range(4)))
    assert [issue.code for issue in find_act_issues(parse_answer(answer), bundle)] == [NO_ACT_CODE]


LEAFLET_PAGE = (
    "Before your scan you should drink two glasses of water. You may eat if you wish. Please tell us if you could be pregnant, "
    "or if you have a pacemaker. Most people find that the scan does not hurt. You can go home when it is done, and your doctor "
    "will usually have your results within a week. If you have questions, call us. Do not wear jewellery. Bring your letter."
)


def read_drawn(text: str) -> DocumentBundle:
    """The bundle of a page that is drawn and read again, with its patient."""
    drawn = pymupdf.open()
    lines = [part for line in text.split("\n") for part in textwrap.wrap(line, 90)]
    drawn.new_page().insert_text((40, 60), lines, fontsize=9)
    return read_document(
        Path("x.pdf"), file_bytes=drawn.tobytes(), doc_id="x", processing_timestamp="2026-01-01T00:00:00Z"
    )


@pytest.mark.parametrize("kind", [NOTE, PATHOLOGY, GENOMIC, RADIOLOGY])
def test_no_issue_shows_whose_page_it_is(kind: str) -> None:
    """The passage that is shown must not name the patient: issues are kept where pages are not."""
    name = "Wilhelmina Katarzyna Ostrowska"
    page = f"Patient: {name}   DOB: 03/14/1951   MRN: 4471902\n{LEAFLET_PAGE.replace('you', name + ', you')}"
    issues = list(find_act_issues(parse_answer(one_segment(kind, 1)), read_drawn(page)))
    assert issues
    for issue in issues:
        assert "Ostrowska" not in issue.model_dump_json()
        assert "4471902" not in issue.model_dump_json()
