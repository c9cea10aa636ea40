"""Several statements of a report about one field: the same, different, corrected, or about something else."""

from __future__ import annotations

import asyncio

import pytest
from builders import document

from evalkit.extraction.extraction_schema import FieldStatus, FieldValue
from evalkit.extraction.field_template import get_field_template
from evalkit.extraction.reliability_loop import ReliabilityLoop

DIAGNOSIS = "FINAL DIAGNOSIS\nBreast, excision: Invasive ductal carcinoma, grade 2.\n"


def extract(text: str, name: str) -> FieldValue:
    result = asyncio.run(ReliabilityLoop().execute(document(text), [1], get_field_template("pathology")))
    assert result.best_iteration is not None
    return result.best_iteration.attempt.fields[name]


DIFFERENT = [
    # field, text, the gravest value, the other values
    ("margins", "MARGINS:\n- Neck margin: Negative\n- SMA margin: Positive (tumor at ink)", "positive", ["negative"]),
    ("margins", "Margins: The neck margin is negative. The SMA margin is involved.", "positive", ["negative"]),
    ("margins", "Margins: negative.\nTumor is transected at the radial margin.", "positive", ["negative"]),
    ("margins", "Margins: negative\nResection status: R1", "positive", ["negative"]),
    ("margins", "Margins negative.\nNote: involvement of the deep margin cannot be excluded.", "indeterminate", ["negative"]),
    ("grade", "Microscopy: poorly differentiated.", "poorly differentiated", ["2"]),
    ("grade", "Nottingham score: 3+3+3 = 9", "3", ["2"]),
    ("ihcMarkers.ER", "ER: positive (90%)\nSpecimen B: ER: negative (0%)", "positive, 90%", ["negative, 0%"]),
    ("ihcMarkers.HER2", "HER2: negative (1+)\nHER2 FISH: amplified", "positive", ["negative, 1+"]),
    ("histology", "Comment: we favor invasive lobular carcinoma.", "Invasive ductal carcinoma", ["invasive lobular carcinoma"]),
    ("stage", "pT2 pN0\nComment: with invasion of the skin, therefore pT4b.", "pT4b", ["pT2 pN0"]),
    ("tumorSize", "Tumor size: 1.6 cm\nComment: the tumor measures 2.9 cm.", "2.9 cm", ["1.6 cm"]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "gravest", "others"), DIFFERENT)
def test_gravest_of_different_values_is_ambiguous(name: str, text: str, gravest: str, others: list[str]) -> None:
    value = extract(DIAGNOSIS + text, name)
    assert value.status is FieldStatus.AMBIGUOUS
    assert value.candidates == (gravest, *others)
    assert value.value == gravest
    assert (value.raw or "?").split()[0] in (value.quote or "")
    assert {place.value for place in value.places} == set(others)
    assert all(place.raw.split()[0] in place.quote and place.boxes for place in value.places)


SAME = [
    ("margins", "Margins: negative, closest 2 mm.\nMargins are free of tumor. R0.", "negative, 2 mm"),
    ("margins", "Margins: negative. Two of three lymph nodes positive.", "negative"),
    ("margins", "Margins: negative. A margin is reported as positive if tumor is at ink.", "negative"),
    ("grade", "The tumor is moderately differentiated (G2). Nottingham score 6/9.", "2"),
    ("grade", "Ductal carcinoma in situ, nuclear grade 3. Prior biopsy: grade 3.", "2"),
    ("ihcMarkers.HER2", "HER2: 3+\nComment: HER2 is overexpressed.", "3+"),
    ("ihcMarkers.ER", "ER: negative (0%)\nER positive control adequate.", "negative, 0%"),
    ("histology", "Carcinoma of no special type (formerly invasive ductal carcinoma).", "Invasive ductal carcinoma"),
    ("stage", "pT2\npN1a\npM0", "pT2 pN1a pM0"),
    ("margins", "Margins: negative. A margin of 1 mm or less counts as positive.", "negative"),
    ("ihcMarkers.ER", "ER: negative (0%)\nOn-slide controls for ER (tonsil) stained positive.", "negative, 0%"),
    ("ihcMarkers.ER", "Contralateral cancer in 2009: ER negative.\nER: positive (85%)", "positive, 85%"),
    ("ihcMarkers.HER2", "HER2 negative (IHC 1+). HER2 IHC 2+ is reflexed to FISH.", "negative, 1+"),
    ("stage", "pT2 pNX\npT1: up to 5 cm; pT2: over 5 cm; pT4: over 15 cm.", "pT2 pNX"),
    ("tumorSize", "CT: renal mass of 52 mm.\nDiameter: 46 mm", "46 mm"),
    ("stage", "FIGO stage IB2, pT1b2 pN0.", "pT1b2 pN0"),
    ("tumorSize", "Tumor size: 1.6 cm\nThe tumor of 16 mm is firm.", "1.6 cm"),
]


@pytest.mark.parametrize(("name", "text", "expected"), SAME)
def test_same_meaning_in_other_words_is_found(name: str, text: str, expected: str) -> None:
    value = extract(DIAGNOSIS + text, name)
    assert (value.status, value.value, value.places) == (FieldStatus.FOUND, expected, ())


CORRECTED = [
    ("ihcMarkers.ER", "ER: negative (0%)\nADDENDUM: ER positive (80%). The result above is corrected.", "positive, 80%"),
    ("ihcMarkers.ER", "ER: negative (0%)\nADDENDUM: Repeat ER on block A3: positive (80%). ER is corrected.", "positive, 80%"),
    ("ihcMarkers.HER2", "HER2 IHC: equivocal (2+)\nHER2 FISH: not amplified", "negative"),
    ("margins", "Margins: negative (previously reported as positive)", "negative"),
    ("histology", "AMENDED DIAGNOSIS: changed from ductal carcinoma to invasive lobular carcinoma.", "invasive lobular carcinoma"),
    ("grade", "CORRECTED REPORT: the histologic grade reads 3, not 2.", "3"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "expected"), CORRECTED)
def test_corrected_value_replaces_the_earlier_value(name: str, text: str, expected: str) -> None:
    value = extract(DIAGNOSIS + text, name)
    assert (value.status, value.value) == (FieldStatus.FOUND, expected)


def test_ambiguous_value_goes_to_a_person_with_its_places() -> None:
    text = DIAGNOSIS + "Margins: negative\nPosterior margin: positive"
    result = asyncio.run(ReliabilityLoop().execute(document(text), [1], get_field_template("pathology")))
    assert result.decision == "ESCALATE_TO_SME"
    assert result.best_iteration is not None
    descriptions = [issue.description for issue in result.best_iteration.feedback.issues if issue.field == "margins"]
    expected = 'Extracted "positive" from page 1, but the source also says "negative" on page 1: which is right?'
    assert descriptions == [expected]
