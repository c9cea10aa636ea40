"""Every rule that an extraction is judged by, as a row: a value that breaks it, and one that does not."""

from __future__ import annotations

import pytest
from extraction.scripted import found_value

from evalkit.extraction.clinical.clinical_rules import ACCURACY_RULES, CONSISTENCY_RULES, VALIDITY_RULES
from evalkit.extraction.evaluator import score_accuracy, score_clinical_validity, score_consistency
from evalkit.extraction.extraction_schema import FieldValue
from evalkit.extraction.field_template import get_field_template

PATHOLOGY = get_field_template("pathology")

VALUES = [
    # field, value, what is wrong with it
    ("grade", "2", None),
    ("grade", "Grade III", None),
    ("grade", "moderately differentiated", None),
    ("grade", "High", "Invalid grade"),
    ("grade", "4", "Invalid grade"),
    ("grade", "wellness", "Invalid grade"),
    ("ihcMarkers.ER", "positive, 95%", None),
    ("ihcMarkers.ER", "strong", "Invalid receptor"),
    ("ihcMarkers.PR", "95%", None),
    ("ihcMarkers.PR", "3+", "Invalid receptor"),
    # Exactly ER and PR: the letters within another name are another stain.
    ("ihcMarkers.HER2", "3+", None),
    ("ihcMarkers.PRAME", "diffuse", None),
    ("ihcMarkers.Ki-67", "14%", None),
    ("ihcMarkers.Ki-67", "140%", "more than 100 %"),
    ("measurements.1", "6 mm", None),
    ("measurements.1", "6", "missing units"),
    ("measurements.1", "6 nodules", "missing units"),
    ("measurements.1", "180 cm", "more than a metre"),
    ("tumorSize", "1.8", "missing units"),
    ("tumorSize", "1.8 cm", None),
    ("msiStatus", "MSI-H", None),
    ("msiStatus", "stable", None),
    ("msiStatus", "pending", "Invalid MSI"),
    ("tmb", "12.4", None),
    ("tmb", "12.4 mut/Mb", None),
    ("tmb", "high", "numeric"),
    ("mutations.1", "BRCA2 c.5946delT", None),
    ("mutations.1", "BRAF V600E", None),
    ("mutations.1", "none detected", None),
    ("mutations.1", "TP53", "without its change"),
    ("mutations.1", "EML4::ALK fusion", None),
    ("mutations.1", "c.35G>A", "without its gene"),
]


@pytest.mark.parametrize(("name", "value", "wrong"), VALUES)
def test_clinical_validity(name: str, value: str, wrong: str | None) -> None:
    score, issues = score_clinical_validity({name: found_value(value)})
    assert score == (1.0 if wrong is None else 0.9)
    assert [issue.field for issue in issues] == ([] if wrong is None else [name])
    assert wrong is None or (wrong in issues[0].description and value in issues[0].description)


def test_every_validity_rule_has_a_row() -> None:
    told = [said for _, _, said in VALUES if said]
    assert all(any(said in rule.message for said in told) for rule in VALIDITY_RULES)


def test_validity_falls_by_0_1_per_issue_down_to_the_floor() -> None:
    wrong = {f"measurements.{number}": found_value(str(number)) for number in range(1, 12)}
    scores = [score_clinical_validity(dict(list(wrong.items())[:many]))[0] for many in (0, 1, 3, 7, 11)]
    assert scores == pytest.approx([1.0, 0.9, 0.7, 0.3, 0.3])


CARCINOMA = {"histology": found_value("Invasive ductal carcinoma")}
VARIANT = {"mutations.1": found_value("BRAF V600E")}


def lesion_sizes(impression: str, findings: str, **sizes: str) -> dict[str, FieldValue]:
    texts = {"impression": impression, "findings": findings}
    return {
        name: found_value(text) for name, text in (texts | {f"measurements.{key}": sizes[key] for key in sizes}).items()
    }


TOGETHER = [
    # fields, absent ones, the conflict
    (CARCINOMA, (), "grade not extracted"),
    (CARCINOMA | {"grade": found_value("2")}, (), None),
    (CARCINOMA, ("grade",), None),
    ({"histology": found_value("Melanoma")}, (), None),
    (VARIANT, (), "MSI status not extracted"),
    (VARIANT | {"msiStatus": found_value("MSS")}, (), None),
    (VARIANT, ("msiStatus",), None),
    ({"ihcMarkers.ER": found_value("positive, 0%")}, (), "contradicts a receptor"),
    ({"ihcMarkers.PR": found_value("negative, 60%")}, (), "contradicts a receptor"),
    ({"ihcMarkers.PR": found_value("negative, 0%")}, (), None),
    ({"ihcMarkers.HER2": found_value("positive, 1+")}, (), "HER2 score"),
    ({"ihcMarkers.HER2": found_value("negative, 3+")}, (), "HER2 score"),
    ({"ihcMarkers.HER2": found_value("negative, 1+")}, (), None),
    ({"ihcMarkers.HER2": found_value("positive, 90%")}, (), None),
    (VARIANT | {"mutations.2": found_value("none detected")}, ("msiStatus",), "none was detected"),
    ({"mutations.1": found_value("none detected")}, ("msiStatus",), None),
    (lesion_sizes("Cyst of 31 mm.", "The cyst spans 13 mm.", a="31 mm", b="13 mm"), (), "size in the impression"),
    (lesion_sizes("Cyst of 3 cm.", "The cyst spans 31 x 24 mm.", a="3 cm", b="31 x 24 mm"), (), None),
    (
        lesion_sizes("Cyst of 4 cm.", "The cyst spans 31 x 24 mm.", a="4 cm", b="31 x 24 mm"),
        (),
        "size in the impression",
    ),
    # A size that was not extracted is a limit or an earlier one; findings without sizes contradict none.
    (lesion_sizes("Repeat if above 6 mm.", "The cyst spans 13 mm.", b="13 mm"), (), None),
    (lesion_sizes("Cyst of 31 mm.", "There is a cyst.", a="31 mm"), (), None),
]


@pytest.mark.parametrize(("fields", "gone", "conflict"), TOGETHER)
def test_consistency(fields: dict[str, FieldValue], gone: tuple[str, ...], conflict: str | None) -> None:
    score, issues = score_consistency(fields, frozenset(gone))
    assert score == (1.0 if conflict is None else 0.85)
    assert len(issues) == (0 if conflict is None else 1)
    assert conflict is None or conflict in issues[0].description


def test_every_consistency_rule_has_a_row() -> None:
    told = [said for _, _, said in TOGETHER if said]
    assert all(any(said in rule.message for said in told) for rule in CONSISTENCY_RULES)


def test_consistency_does_not_fall_below_its_floor() -> None:
    fields = CARCINOMA | {
        "ihcMarkers.ER": found_value("positive, 0%"),
        "ihcMarkers.HER2": found_value("negative, 3+"),
        "mutations.1": found_value("none detected"),
        "mutations.2": found_value("BRAF V600E"),
    }
    assert score_consistency(fields)[0] == 0.5


PASSAGES = [
    # rule, field, words, passage, whether it is broken
    ("denied", "histology", "carcinoma", "Lymph nodes negative for carcinoma.", True),
    ("denied", "histology", "carcinoma", "Invasive carcinoma is seen.", False),
    ("denied", "histology", "carcinoma", "Negative for carcinoma in A. Carcinoma in B.", False),
    ("nuclear grade", "grade", "grade 2", "Ductal carcinoma in situ, nuclear grade 2.", True),
    ("nuclear grade", "grade", "grade 2", "Carcinoma, Nottingham grade 2.", False),
    ("other marker", "ihcMarkers.PR", "positive", "ER: positive", True),
    ("other marker", "ihcMarkers.PR", "positive", "Progesterone receptor: positive", False),
    ("other marker", "ihcMarkers.PR", "negative", "ER negative; PR: negative", False),
    ("share left out", "ihcMarkers.ER", "positive", "ER: positive (95%)", True),
    ("share left out", "ihcMarkers.ER", "positive (95%)", "ER: positive (95%)", False),
    ("share left out", "ihcMarkers.HER2", "negative", "PR: negative (0%); HER2: negative; Ki-67: 47%", False),
    ("distance left out", "margins", "Uninvolved", "Margins: Uninvolved (0.3 cm)", True),
    ("distance left out", "margins", "Uninvolved (0.3 cm)", "Margins: Uninvolved (0.3 cm)", False),
]


@pytest.mark.parametrize(("rule", "name", "words", "passage", "is_broken"), PASSAGES)
def test_accuracy_rules(rule: str, name: str, words: str, passage: str, is_broken: bool) -> None:
    row = next(one for one in ACCURACY_RULES if one.name == rule)
    value = found_value(words, quote=passage)
    assert (row.describe_value_problem(name, value) is not None) is is_broken
    score, _ = score_accuracy(PATHOLOGY, {name: value}, ())
    assert score == (row.score_if_violated if is_broken else 1.0)


def test_every_accuracy_rule_has_both_rows() -> None:
    assert {(rule.name, way) for rule in ACCURACY_RULES for way in (True, False)} == {
        (rule, is_broken) for rule, *_, is_broken in PASSAGES
    }
