"""The offline second opinion: what a text looks like by its forms, not by the classifier's words."""

from __future__ import annotations

import time
from itertools import islice

import pytest
from benchmarks.quote_alterations import list_planted_pages
from builders import (
    GENOMIC,
    NOTE,
    OTHER,
    PATHOLOGY,
    RADIOLOGY,
    page,
)
from hypothesis import given
from hypothesis import strategies as st

from evalkit.classification.offline.second_opinion_types import (
    MAX_SIGN_COUNT,
    TYPE_SIGNS,
    measure_type_signs_on_pages,
)
from evalkit.classification.schema import DocumentType

TEXTS = {
    GENOMIC: "NM_007294.4:c.5266dupC, p.Gln1756fs, heterozygous, allele fraction 0.48, pathogenic.",
    PATHOLOGY: "Received in formalin, 3.2 x 2.1 x 1.0 cm, cassettes A1-A4. Margins are negative. Gleason 3 + 4.",
    RADIOLOGY: "CT without contrast, axial images. Liver is unremarkable. No acute fracture. FDG 12 mCi uptake.",
    NOTE: "She denies pain. BP 128/76. Tamoxifen 20 mg daily. We discussed the results. Review of systems negative.",
    OTHER: "WBC 8.2 4.0 - 11.0\nHemoglobin 13.4 12.0 - 16.0\nPlatelets 240 150 - 400\nGlucose 99 70 - 100",
}


@pytest.mark.parametrize("kind", TEXTS)
def test_the_form_of_a_text_speaks_for_its_type(kind: str) -> None:
    assert measure_type_signs_on_pages([page(1, TEXTS[kind])]).strongest_type == kind


def test_a_text_that_says_nothing_speaks_for_no_type() -> None:
    assert measure_type_signs_on_pages([page(1, "Lorem ipsum dolor sit amet.")]).strongest_type is None
    assert measure_type_signs_on_pages([page(1, "")]).strongest_type is None


def test_form_weight_is_capped_at_four_repetitions() -> None:
    def strength(times: int, pages: int = 1) -> float:
        said = [page(number, "see rs12345 here. " * times) for number in range(1, pages + 1)]
        return measure_type_signs_on_pages(said)[DocumentType.GENOMIC_REPORT]

    assert 0 < strength(1) < strength(4) == strength(10) == strength(2, pages=5)


@pytest.mark.parametrize("label", TEXTS)
@pytest.mark.parametrize("kind", TEXTS)
def test_a_label_is_contradicted_by_the_form_of_another(kind: str, label: str) -> None:
    forms = measure_type_signs_on_pages([page(1, TEXTS[kind])])
    assert forms.find_contradicting_type(DocumentType(label)) == (None if kind == label else kind)


WITHOUT_THE_USUAL_FORMS = {
    "screening mammogram": (
        RADIOLOGY,
        "DIGITAL SCREENING MAMMOGRAM, BILATERAL\nReason: annual screening. Prior exams from two and three years ago.\n"
        "The breast tissue is heterogeneously dense. There are no suspicious masses, calcifications or areas of "
        "architectural distortion in either breast.\nBI-RADS 1: Negative. Annual screening is recommended.",
    ),
    "bone density": (
        RADIOLOGY,
        "BONE DENSITOMETRY\nLumbar spine L1-L4: BMD 0.91 g/cm2, T-score -1.3.\nFemoral neck left: BMD 0.71 g/cm2, "
        "T-score -1.9.\nImpression: Osteopenia. The ten-year probability of major fracture is 9 percent. Again in two years.",
    ),
    "smear": (
        PATHOLOGY,
        "GYNECOLOGIC CYTOLOGY REPORT\nSource: cervical, ThinPrep\nSpecimen adequacy: Satisfactory for evaluation. "
        "Endocervical component present.\nInterpretation: Negative for intraepithelial lesion or malignancy.\n"
        "HPV high risk: not detected.\nScreened by C. Ward, cytotechnologist, at the main laboratory",
    ),
    "drug response": (
        GENOMIC,
        "PHARMACOGENOMICS\nGene, diplotype and phenotype\nCYP2C19 *1/*17 rapid metabolizer\nCYP2D6 *4/*4 poor metabolizer\n"
        "Codeine should be avoided; clopidogrel may be given at the usual dose. Other medicines of these enzymes are listed below.",
    ),
    "expression score": (
        GENOMIC,
        "BREAST RECURRENCE SCORE\nThe recurrence score is derived from gene expression of tumor tissue by RT-PCR.\n"
        "Recurrence Score: 24. Benefit of chemotherapy cannot be excluded at this age; endocrine treatment is of use.",
    ),
    "shave of skin": (
        PATHOLOGY,
        "DERMATOPATHOLOGY\nBack, shave: Seborrheic keratosis, irritated.\nGross: A piece of gray skin, 8 x 5 mm, bisected, "
        "all embedded.\nMicroscopic: Acanthosis with horn cysts; no atypia is seen in the levels. The base is not in the plane.",
    ),
    "post mortem": (
        PATHOLOGY,
        "POSTMORTEM EXAMINATION\nThe body is that of an elderly man. The heart weighs 480 g; the coronary arteries are calcified. "
        "Microscopic sections show fibrosis. Cause of death: chronic ischemia of the heart.",
    ),
    "heart by ultrasound": (
        RADIOLOGY,
        "TRANSTHORACIC ECHOCARDIOGRAM\nLVIDd 4.9 cm, EF 60%, RVSP 28 mmHg. Aortic valve: trileaflet, opens well. Mitral valve: "
        "trace regurgitation. The atria are of usual size. No pericardial fluid is there. Rhythm is regular throughout.",
    ),
    "veins": (
        RADIOLOGY,
        "LEFT LEG VENOUS STUDY\nThe common femoral and popliteal veins compress and show phasic flow with respiration. The calf is "
        "soft. No deep thrombus down to the ankle. The great saphenous is small. The other side was not looked at today.",
    ),
    "negative panel": (
        GENOMIC,
        "HEREDITARY CANCER PANEL\nAcme Genomics\nRESULT: NEGATIVE\nNo pathogenic variants were identified in the 47 "
        "genes analyzed.\nGenes analyzed: APC, ATM, BRCA1, BRCA2, CHEK2, MLH1, PALB2, TP53.\nThe patient's risk is to "
        "be judged by family history.",
    ),
}


@pytest.mark.parametrize("name", WITHOUT_THE_USUAL_FORMS)
def test_reports_of_everyday_kinds_have_forms_of_their_own(name: str) -> None:
    kind, text = WITHOUT_THE_USUAL_FORMS[name]
    forms = measure_type_signs_on_pages([page(1, text)])
    assert forms[DocumentType(kind)] > 0
    assert forms.find_contradicting_type(DocumentType(kind)) is None


def test_reference_ranges_in_brackets_are_the_form_of_a_panel() -> None:
    rows = "Leukocytes 7.1 (4.0-10.0)\nErythrocytes 4.61 (4.10-5.40)\nHb 13.2 g/dL (12.0-16.0)\nThrombocytes 251 (<400)"
    forms = measure_type_signs_on_pages([page(1, rows)])
    assert forms.find_contradicting_type(DocumentType.GENOMIC_REPORT) is DocumentType.OTHER
    assert forms.find_contradicting_type(DocumentType.OTHER) is None


MEDICINES = (
    "MEDICATION LIST\nMetformin 500 mg tablet one tablet by mouth twice daily\nLisinopril 10 mg tablet every morning\n"
    "Atorvastatin 40 mg at bedtime\nAspirin 81 mg chewable one daily\nLevothyroxine 75 mcg one daily before breakfast"
)


def test_a_medication_list_alone_has_not_the_form_of_a_note() -> None:
    other = DocumentType.OTHER
    assert measure_type_signs_on_pages([page(1, MEDICINES)]).find_contradicting_type(other) is None
    note = f"PROGRESS NOTE\n{TEXTS[NOTE]}\n{MEDICINES}\nAssessment: stable. Follow up in 3 months."
    forms = measure_type_signs_on_pages([page(1, note)])
    assert forms.find_contradicting_type(DocumentType.CLINICAL_NOTE) is None
    assert forms.find_contradicting_type(other) is DocumentType.CLINICAL_NOTE


def test_what_a_sign_needs_is_in_all_that_it_finds() -> None:
    """Only for speed: with and without it every page counts the same."""
    texts = [one.text for bundle in list_planted_pages(0, 12) for one in bundle.pages] + list(TEXTS.values())
    texts += [text for _, text in WITHOUT_THE_USUAL_FORMS.values()] + [MEDICINES]
    found = 0
    for sign in TYPE_SIGNS:
        for text in texts:
            places = len(list(islice(sign.pattern.finditer(text), MAX_SIGN_COUNT)))
            found += places
            assert sign.count_matches(text, text.encode().lower().decode()) == places, (sign.name, text[:40])
    assert found > 200


@given(st.text(max_size=400))
def test_any_text_can_be_weighed(text: str) -> None:
    assert all(measure_type_signs_on_pages([page(1, text)])[kind] >= 0 for kind in DocumentType)


@pytest.mark.parametrize("filler", ["\n", ".\n"])
def test_empty_lines_cost_no_time(filler: str) -> None:
    """Each search that began at every line went through all the lines below: 20 times as long for 4 times the lines."""
    text = filler * 8_000
    began = time.process_time()
    for sign in TYPE_SIGNS:
        sign.count_matches(
            text + " dear progress note assessment comparison", text + " dear note assessment comparison"
        )
    assert time.process_time() - began < 2
