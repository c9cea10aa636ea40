"""Two identities: same person, different persons, or cannot tell.

The pairs were written from the ruling alone, by someone who had not read the comparison; half of them stayed sealed
until it was finished.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.documents.bundle import Identifier, IdentifierKind
from evalkit.documents.identity.identifier_values import normalise_identifier
from evalkit.documents.identity.same_person import SamePersonVerdict, compare_persons

_KIND_BY_WORD: dict[str, IdentifierKind] = {
    "record": "mrn", "account": "account", "accession": "accession", "visit": "visit",
}  # fmt: skip


def build_identifier(
    kind: IdentifierKind, value: str, *, issuer: str | None = None, confidence: float = 1.0
) -> Identifier:
    normal = normalise_identifier(kind, value, is_ocr_text=confidence < 1) or ""
    return Identifier(kind=kind, value=value, normal=normal, box=(0, 0, 0, 0), issuer=issuer, confidence=confidence)


def build_identity(identity_json: dict[str, Any]) -> list[Identifier]:
    confidence = 0.95 if identity_json["recognised"] else 1.0
    age = "".join(filter(str.isdigit, identity_json["age"] or ""))
    values: list[tuple[IdentifierKind, str | None, str | None]] = [
        ("patient", identity_json["name"], None),
        ("date_of_birth", identity_json["birth_date"], None),
        ("sex", identity_json["sex"], None),
        ("age", age, None),
        *((_KIND_BY_WORD[number["kind"]], number["number"], number["issuer"]) for number in identity_json["numbers"]),
    ]
    identifiers = [
        build_identifier(kind, value, issuer=issuer, confidence=confidence) for kind, value, issuer in values if value
    ]
    return [identifier for identifier in identifiers if identifier.normal]  # "??/??/19" is no date


def read_pairs() -> list[Any]:
    pairs = [
        json.loads(line)
        for half in ("open", "sealed")
        for line in (Path(__file__).parent / f"identity_pairs_{half}.jsonl").read_text("utf-8").splitlines()
    ]
    return [pytest.param(pair, id=pair["id"]) for pair in pairs]


@pytest.mark.parametrize("pair", read_pairs())
def test_pair_is_judged_as_a_clinician_would(pair: dict[str, Any]) -> None:
    left, right = build_identity(pair["left"]), build_identity(pair["right"])
    assert compare_persons(left, right).relation in pair["expected"], pair["why"]
    assert compare_persons(right, left).relation in pair["expected"], "the other way round"


HELEN = [build_identifier("patient", "Marsh, Helen A"), build_identifier("date_of_birth", "03/22/1971")]


def test_differing_facts_are_named_with_both_sides() -> None:
    uwe = [build_identifier("patient", "Uwe Ott"), build_identifier("date_of_birth", "11/02/1978")]
    comparison = compare_persons(HELEN, uwe)
    assert [(fact.fact, fact.left.value, fact.right.value) for fact in comparison.differing] == [
        ("name", "Marsh, Helen A", "Uwe Ott"),
        ("birth date", "03/22/1971", "11/02/1978"),
    ]
    assert comparison.is_certain


def test_facts_that_were_read_unsurely_are_not_certain() -> None:
    uwe = [
        build_identifier("patient", "Uwe Ott", confidence=0.6),
        build_identifier("date_of_birth", "11/02/1978", confidence=0.97),
    ]
    comparison = compare_persons(HELEN, uwe)
    assert (comparison.relation, comparison.is_certain) == (SamePersonVerdict.DIFFERENT, False)


_NAMES = st.sampled_from(
    ["Marsh, Helen A", "Uwe Ott", "Maria Garcia Lopez", "O'Brien, Sean", "Baby Girl Marsh", "Li Wei", "H. Marsh"]
)
_DATES = st.sampled_from(["03/22/1971", "22 March 1971", "1978-11-02", "3/22/71", "02.11.1978"])


@given(_NAMES, _DATES, _NAMES, _DATES, st.booleans())
def test_comparison_is_symmetric_and_reflexive(
    name: str, birth_date: str, other_name: str, other_date: str, is_recognised: bool
) -> None:
    left = [build_identifier("patient", name), build_identifier("date_of_birth", birth_date)]
    right = [build_identifier("patient", other_name), build_identifier("date_of_birth", other_date)]
    assert compare_persons(left, left).relation is SamePersonVerdict.SAME
    assert (
        compare_persons(left, right, is_ocr_text=is_recognised).relation
        is compare_persons(right, left, is_ocr_text=is_recognised).relation
    )
