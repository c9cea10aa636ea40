"""Codes of LOINC: form and check digit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from evalkit.core.loinc import Coding, compute_check_digit, require_loinc_term

# Terms as US Core and HL7's Genomics Reporting print them.
PUBLISHED_TERMS = (
    "18842-5",
    "11488-4",
    "34117-2",
    "11506-3",
    "28570-0",
    "34109-9",
    "51969-4",
    "48018-6",
    "94076-7",
    "1988-5",
)


@pytest.mark.parametrize("term", PUBLISHED_TERMS)
def test_published_terms_have_the_check_digit(term: str) -> None:
    assert compute_check_digit(term[:-2]) == int(term[-1])


@given(st.integers(1, 9_999_999), st.integers(1, 9))
def test_another_check_digit_is_refused(number: int, offset: int) -> None:
    right = compute_check_digit(str(number))
    require_loinc_term(f"{number}-{right}")
    with pytest.raises(ValueError, match=f"the check digit of {number} is {right}"):
        require_loinc_term(f"{number}-{(right + offset) % 10}")


@given(st.integers(10, 9_999_999), st.data())
def test_any_mistyped_digit_is_detected(number: int, data: st.DataObject) -> None:
    digits = str(number)
    place = data.draw(st.integers(0, len(digits) - 1))
    other = data.draw(st.sampled_from([digit for digit in "0123456789" if digit != digits[place]]))
    assert compute_check_digit(digits) != compute_check_digit(digits[:place] + other + digits[place + 1 :])


@pytest.mark.parametrize(
    "code",
    ["", "18842", "18842-", "-5", "18842-55", "12345678-0", "18842–5", "١٨٨٤٢-٥", " 18842-5", "18842-5\n", "LX7839-6"],
)
def test_other_forms_are_refused(code: str) -> None:
    with pytest.raises(ValidationError):
        Coding(code=code, display="Discharge summary")


def test_other_code_systems_keep_their_own_forms() -> None:
    assert Coding(code="GE", display="Genetics", system="http://terminology.hl7.org/CodeSystem/v2-0074").code == "GE"
    assert Coding(code="LP7839-6", display="Pathology").system == "http://loinc.org"
