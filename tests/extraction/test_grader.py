"""The rules of specification 003, one by one, as contract ruling 17 has them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from evalkit.extraction.extraction_schema import NOT_PRESENT_VALUE, FieldStatus, FieldValue
from evalkit.extraction.field_template import get_field_template
from evalkit.extraction.grader import (
    FORM_CHECKS,
    FormAttempt,
    GraderAnswer,
    GraderIssue,
    grade_form_attempt,
    lower_grade_by_model_answer,
)
from evalkit.issue import IssueSeverity

W2 = {
    "employee_ssn": "554-03-0876",
    "employer_ein": "63-0065650",
    "employer_name": "NORTH 312",
    "employee_name": "Anastasia Hodges",
    "wages_tips": "23677.70",
    "federal_tax_withheld": "2841.32",
    "ss_wages": "24410.00",
    "ss_tax_withheld": "1513.42",
    "medicare_wages": "24410.00",
    "medicare_tax_withheld": "353.95",
    "tax_year": "2020",
}


def attempt(form: str = "W-2", confidence: float = 0.97, number: int = 1, **values: str | None) -> FormAttempt:
    known = get_field_template(form)
    said: dict[str, str | None] = (W2 if form == "W-2" else {}) | values
    fields = {field.name: NOT_PRESENT_VALUE for field in known.fields}
    fields |= {
        name: FieldValue(status=FieldStatus.FOUND, value=value, raw=value, page=1, confidence=0.97)
        for name, value in said.items()
        if value is not None
    }
    return FormAttempt(known, known.document_type, fields, confidence, ("1099-NEC", "1099-MISC"), number)


def issues(given: FormAttempt, year: int | None = None) -> list[str]:
    return [str(issue) for issue in grade_form_attempt(given, year).issues]


def test_complete_form_passes_with_specified_points() -> None:
    given = grade_form_attempt(attempt(confidence=0.9))
    assert given.passed
    assert given.score == pytest.approx(40 + 30 + 18 + 10)
    assert given.score_part_shares == {"completeness": 0.4, "format": 0.3, "confidence": 0.18, "no_errors": 0.1}
    assert (given.document_type, given.confidence, given.feedback, given.issues) == ("W-2", 0.9, "", ())


def test_missing_required_field_lowers_completeness_and_format() -> None:
    given = grade_form_attempt(attempt(employer_ein=None, confidence=1.0))
    # 5 of 6 required fields; 10 of the 11 fields that have a result
    assert given.score == pytest.approx(40 * 5 / 6 + 30 * 10 / 11 + 20 + 10, abs=0.01)
    assert given.failure_reasons == ("Missing Employer EIN (Box b)",)
    assert given.field_problems["employer_ein"]
    assert given.passed  # 70 % of the required fields, and 70 points, outweigh one reason


def test_a_missing_optional_field_costs_nothing() -> None:
    assert grade_form_attempt(attempt(ss_wages=None, ss_tax_withheld=None)).score == grade_form_attempt(attempt()).score


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("wages_tips", "$-", '"$-" is not a valid currency amount'),
        ("employee_ssn", "55-4030876", '"55-4030876" is not a valid SSN format'),
        ("employer_ein", "554-03-0876", '"554-03-0876" is not a valid EIN format'),
        ("tax_year", "1999", "doesn't match expected format"),
    ],
)
def test_a_value_in_the_wrong_format_is_told(field: str, value: str, told: str) -> None:
    given = grade_form_attempt(attempt(**{field: value}))
    assert told in (given.field_problems[field] or "")
    assert any(told in reason for reason in given.failure_reasons)


@pytest.mark.parametrize("value", ["***-**-0876", "554-03-0876"])
def test_a_masked_number_is_a_number(value: str) -> None:
    assert grade_form_attempt(attempt(employee_ssn=value)).failure_reasons == ()


def test_a_negative_amount_is_an_amount() -> None:
    given = grade_form_attempt(attempt("K-1", partnership_ein="12-3456789", ordinary_income="-500.00", tax_year="2021"))
    assert given.field_problems["ordinary_income"] is None


@pytest.mark.parametrize(
    ("missing", "passes"),
    [
        (("employer_ein",), True),  # 5 of 6
        (("employer_ein", "employer_name"), False),  # 4 of 6: below 70 %
        (("employer_ein", "employer_name", "wages_tips"), False),
    ],
)
def test_seven_of_ten_required_fields_are_valid_or_it_fails(missing: tuple[str, ...], passes: bool) -> None:
    given = grade_form_attempt(attempt(**dict.fromkeys(missing)))
    assert given.passed is passes
    assert given.score >= 70 or len(missing) > 2  # so it is the share that decides


def test_too_few_required_fields_are_told() -> None:
    given = grade_form_attempt(attempt(**dict.fromkeys(("employer_ein", "employer_name", "wages_tips"))))
    assert "Only 3/4 minimum required fields found" in given.failure_reasons
    assert {name for name, problem in given.field_problems.items() if problem} == {
        "employer_ein",
        "employer_name",
        "wages_tips",
    }


def test_below_the_threshold_nothing_passes() -> None:
    given = grade_form_attempt(attempt(confidence=0.79))
    assert not given.passed
    assert given.confidence == 0.5
    assert "Confidence 79% below threshold 80%" in given.failure_reasons
    assert grade_form_attempt(attempt(confidence=0.8)).passed


@pytest.mark.parametrize("values", [{}, {"wages_tips": "0.00", "ss_wages": "0"}])
def test_a_blank_form_is_told_and_final(values: dict[str, str]) -> None:
    empty: dict[str, Any] = dict.fromkeys(W2) | {"tax_year": "2020"} | values
    given = grade_form_attempt(attempt(**empty))
    assert (given.passed, given.is_final, given.document_type) == (False, True, "OTHER")
    assert str(given.issues[0]).startswith("[ERROR:incomplete::] Document appears to be a blank")


def test_a_form_with_one_entry_is_not_blank() -> None:
    empty: dict[str, Any] = dict.fromkeys(W2)
    given = grade_form_attempt(attempt(**(empty | {"wages_tips": "12.00"})))
    assert not given.is_final
    assert not given.passed


def test_a_wrong_year_is_told_and_final() -> None:
    given = grade_form_attempt(attempt(), 2021)
    assert (given.passed, given.is_final) == (False, True)
    assert issues(attempt(), 2021) == ["[ERROR:wrong_year:2021:2020] Document is for tax year 2020, but we need 2021"]
    assert given.score == pytest.approx(grade_form_attempt(attempt()).score - 10)


def test_the_right_year_and_no_expectation_say_nothing() -> None:
    assert issues(attempt(), 2020) == issues(attempt()) == []


def test_a_year_that_cannot_be_told_is_a_warning() -> None:
    assert issues(attempt(tax_year=None), 2020) == [
        "[WARNING:missing_field:tax_year:] Could not determine tax year from document"
    ]


@pytest.mark.parametrize(
    "text", ["DRAFT", "DRAFT AS OF June 4, 2024", "W-2 SAMPLE", "Draft as of 2020: not for filing"]
)
def test_a_draft_does_not_pass(text: str) -> None:
    given = grade_form_attempt(replace(attempt(), page_text=text))
    assert not given.passed
    assert str(given.issues[0]).startswith("[ERROR:draft:final:")


def test_a_word_like_draft_in_a_sentence_is_none() -> None:
    assert grade_form_attempt(replace(attempt(), page_text="a bank draft, and a drafty sample room")).passed


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (
            {
                "ss_wages": "27000.00",
                "ss_tax_withheld": "1674.00",
                "medicare_wages": "27000.00",
                "medicare_tax_withheld": "391.50",
            },
            "Social security wages exceed total wages",
        ),
        ({"federal_tax_withheld": "30000.00"}, "Federal income tax withheld exceeds total wages"),
        ({"ss_tax_withheld": "1531.42"}, "Social security tax is not 6.2%"),
        ({"medicare_tax_withheld": "535.95"}, "Medicare tax is not 1.45%"),
        ({"medicare_wages": "24310.00", "medicare_tax_withheld": "352.50"}, "Social security wages exceed Medicare"),
    ],
)
def test_values_that_cannot_be_true_together_are_a_warning(values: dict[str, str], told: str) -> None:
    given = grade_form_attempt(attempt(**values))
    assert given.passed  # a warning does not veto …
    assert [one.severity for one in given.issues] == ["WARNING"]
    assert str(given.issues[0]).startswith("[WARNING:inconsistent::] " + told)
    # … but somebody looks at it
    assert given.issues[0].to_issue(attempt().fields, "W-2", attempt().template).severity is IssueSeverity.MAJOR


def test_social_security_wages_may_be_a_tenth_above_the_wages() -> None:
    assert issues(attempt(wages_tips="22190.91")) == []  # 24,410 is 1.1 times as much, to the cent
    assert len(issues(attempt(wages_tips="22190.90"))) == 1


def test_tips_2011_rate_and_additional_medicare_tax_are_allowed() -> None:
    assert issues(attempt(box_7="1000.00", ss_tax_withheld="1575.42")) == []
    assert issues(attempt(ss_tax_withheld="1025.22")) == []
    high = {"wages_tips": "300000.00", "ss_wages": "147000.00", "ss_tax_withheld": "9114.00"}
    assert issues(attempt(medicare_wages="300000.00", medicare_tax_withheld="5250.00", **high)) == []


CONTRADICTIONS = [
    ("1099-DIV", {"total_dividends": "10.00", "qualified_dividends": "11.00"}, {"qualified_dividends": "10.00"}),
    ("1099-DIV", {"box_2a": "10.00", "box_2b": "11.00"}, {"box_2b": "10.00"}),
    ("1099-DIV", {"box_2a": "10.00", "box_2d": "11.00"}, {"box_2d": "10.00"}),
    ("1099-INT", {"box_8": "10.00", "box_9": "11.00"}, {"box_9": "10.00"}),
    ("1099-NEC", {"nonemployee_compensation": "10.00", "federal_tax_withheld": "11.00"},
     {"federal_tax_withheld": "10.00"}),
    ("K-1", {"box_6a": "10.00", "box_6b": "11.00"}, {"box_6b": "10.00"}),
    ("K-1", {"box_4a": "10.00", "box_4b": "5.00", "box_4c": "18.00"}, {"box_4c": "15.00"}),
]  # fmt: skip


@pytest.mark.parametrize(("form", "wrong", "mended"), CONTRADICTIONS)
def test_amounts_that_contradict_one_another_are_told(form: str, wrong: dict[str, str], mended: dict[str, str]) -> None:
    inconsistent = [one for one in issues(attempt(form, **wrong)) if "inconsistent" in one]
    assert len(inconsistent) == 1
    assert not any("inconsistent" in one for one in issues(attempt(form, **(wrong | mended))))


def test_every_check_has_a_case() -> None:
    told = {row.field_name for row in FORM_CHECKS if row.template_name != "W-2"}
    assert told == {next(iter(mended)) for _, _, mended in CONTRADICTIONS}
    assert len(FORM_CHECKS) == len(CONTRADICTIONS) + 5


@pytest.mark.parametrize(
    ("field", "raw", "told"),
    [
        ("wages_tips", "1", "the text read as its entry belongs to the printed form"),
        ("box_14", "Other", "the text read as its entry belongs to the printed form"),
        ("employer_name", "Employer's address and ZIP code", "the text read as its entry belongs to the printed form"),
        ("employer_name", "and phone", "the text read as its entry looks like that of another box"),
        ("employer_address", "555-0158", "the text read as its entry looks like that of another box"),
        ("employer_address", "12 Elm Street, Provo, UT 84601", None),
        ("box_14", "(8)", None),
        ("wages_tips", "(8)", "the text read as its entry looks like that of another box"),
        ("employer_name", "Mr", "the text read as its entry has too few letters for a name"),
        ("employer_name", "Federal Foods Co.", None),
        ("box_13_retirement_plan", "X", None),
    ],
)
def test_what_the_form_prints_is_no_entry(field: str, raw: str, told: str | None) -> None:
    value = FieldValue(status=FieldStatus.FOUND, value=raw, raw=raw, page=1, confidence=0.97)
    given = attempt(box_14="Union dues")
    found = [
        one
        for one in grade_form_attempt(replace(given, fields={**given.fields, field: value})).issues
        if one.field == field
    ]
    assert [one.text.partition(": ")[2] for one in found if one.type == "uncertain"] == ([told] if told else [])


@pytest.mark.parametrize(
    ("raw", "is_odd"),
    [
        ("lronbridge Dental Group", True),
        ("Harb0r Partners", True),
        ("Lakeside Savings llc", False),
        ("Ludlow ltd., 12 2nd Street NW, Apt B12", False),
    ],
)
def test_a_name_that_no_one_has_was_misread(raw: str, is_odd: bool) -> None:
    value = FieldValue(status=FieldStatus.FOUND, value=raw, raw=raw, page=1, confidence=0.97)
    given = attempt()
    given = replace(given, fields={**given.fields, "employer_name": value})
    assert grade_form_attempt(given).issues == ()  # in a file somebody wrote it so
    assert [one.type for one in grade_form_attempt(replace(given, has_ocr_pages=True)).issues] == ["uncertain"] * is_odd


def test_first_feedback_names_types_second_critical_fields() -> None:
    first = grade_form_attempt(attempt(confidence=0.1, employer_ein=None)).feedback
    second = grade_form_attempt(attempt(confidence=0.1, employer_ein=None, number=2)).feedback
    third = grade_form_attempt(attempt(confidence=0.1, employer_ein=None, number=3)).feedback
    assert "Employer EIN: typically found in Box b; An EIN is written XX-XXXXXXX" in first
    assert "Could this be a different form type? Check: 1099-NEC, 1099-MISC" in first
    assert "different form type" not in second
    assert "Focus only on the most critical fields" in second
    assert "Focus" not in third


def test_stray_amounts_are_a_warning_and_in_the_feedback() -> None:
    whole = replace(attempt(), stray_amount_count=2)
    assert [(one.severity, one.type) for one in grade_form_attempt(whole).issues] == [("WARNING", "incomplete")]
    failing = replace(attempt(confidence=0.1), stray_amount_count=2)
    assert "Amounts on the form that no field has: 2." in grade_form_attempt(failing).feedback
    assert "no field has" not in grade_form_attempt(attempt(confidence=0.1)).feedback


@pytest.mark.parametrize("kind", ["RECEIPT", "STATEMENT", "OTHER"])
def test_the_generic_template_wants_one_field(kind: str) -> None:
    some = replace(attempt("OTHER", confidence=0.6, any_amounts="12.00"), document_type=kind)
    assert grade_form_attempt(some).passed
    assert grade_form_attempt(some).document_type == kind
    assert not grade_form_attempt(attempt("OTHER", confidence=0.6)).passed


@pytest.mark.parametrize(("status", "severity"), [("required", "WARNING"), ("optional", "INFO")])
def test_ambiguous_entry_is_graver_if_required(status: str, severity: str) -> None:
    name = "employer_ein" if status == "required" else "ss_wages"
    given = attempt()
    unclear = FieldValue(status=FieldStatus.AMBIGUOUS, raw="$-", page=1, confidence=0.9)
    told = grade_form_attempt(replace(given, fields={**given.fields, name: unclear})).issues
    assert [(one.severity, one.type) for one in told] == [(severity, "ambiguous")]


def test_uncertain_or_missing_on_scan_is_an_issue() -> None:
    given = replace(attempt(employer_ein=None), has_ocr_pages=True)
    unsure = FieldValue(status=FieldStatus.FOUND, value="1513.42", raw="1,513.42", page=1, confidence=0.6)
    told = grade_form_attempt(replace(given, fields={**given.fields, "ss_tax_withheld": unsure})).issues
    assert {(one.type, one.field) for one in told} == {
        ("missing_field", "employer_ein"),
        ("uncertain", "ss_tax_withheld"),
    }


@pytest.mark.parametrize(("confidence", "is_odd"), [(0.79, True), (0.8, False)])
def test_a_recognised_number_below_the_limit_is_for_a_person(confidence: float, is_odd: bool) -> None:
    given = attempt()
    wages = given.fields["wages_tips"].model_copy(update={"confidence": confidence})
    given = replace(given, fields={**given.fields, "wages_tips": wages})
    assert grade_form_attempt(given).issues == ()
    assert [one.type for one in grade_form_attempt(replace(given, has_ocr_pages=True)).issues] == ["uncertain"] * is_odd


# A model may only lower


def said(**given: Any) -> GraderAnswer:
    return GraderAnswer(**({"passed": True, "score": 99.0, "document_type": "W-2", "confidence": 0.97} | given))


def test_a_model_that_agrees_changes_nothing() -> None:
    rules = grade_form_attempt(attempt())
    assert lower_grade_by_model_answer(rules, said(score=100.0, confidence=1.0), 0.8) == rules


@pytest.mark.parametrize(
    "answer",
    [
        said(passed=False, feedback="it looks like a draft"),
        said(document_type="1099-NEC"),
        said(confidence=0.7),
        said(issues=(GraderIssue(severity="ERROR", type="draft", text="a draft"),)),
    ],
)
def test_a_model_may_lower(answer: GraderAnswer) -> None:
    given = lower_grade_by_model_answer(grade_form_attempt(attempt()), answer, 0.8)
    assert not given.passed
    assert given.confidence <= 0.5


def test_a_model_never_raises() -> None:
    rules = replace(grade_form_attempt(attempt(confidence=0.85)), score=80.0)
    given = lower_grade_by_model_answer(rules, said(score=100.0, confidence=1.0), 0.8)
    assert (given.score, given.confidence) == (80.0, 0.85)
    failing = grade_form_attempt(attempt(confidence=0.1))
    assert not lower_grade_by_model_answer(failing, said(confidence=1.0), 0.8).passed


def test_model_finding_has_the_specified_format() -> None:
    answer = said(issues=(GraderIssue(severity="warning", type="Odd Name", expected="a", actual="b", text="odd"),))
    assert (
        str(lower_grade_by_model_answer(grade_form_attempt(attempt()), answer, 0.8).issues[0])
        == "[WARNING:odd_name:a:b] odd"
    )
