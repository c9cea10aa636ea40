"""What two pages state, side by side: at a boundary in doubt, and in a question about their patients."""

import pytest
from builders import document, page

from evalkit.documents.bundle import DocumentBundle, Identifier, IdentifierKind
from evalkit.documents.identity.identifier_values import normalise_identifier
from widgets.boundary_strip import compare_page_facts, compare_patient_facts


@pytest.fixture
def bundle() -> DocumentBundle:
    """Two pages of two patients, of which only the second has an accession number."""
    facts: list[dict[IdentifierKind, str]] = [
        {"patient": "MARSH, HELEN", "date_of_birth": "04/12/1951"},
        {"patient": "OKORO, DANIEL", "date_of_birth": "11/30/1978", "accession": "S26-10442"},
    ]
    pages = [
        page(number, "A text.").model_copy(
            update={
                "identifiers": tuple(
                    Identifier(kind=kind, value=value, normal=normalise_identifier(kind, value) or "", box=(0, 0, 1, 1))
                    for kind, value in stated.items()
                )
            }
        )
        for number, stated in enumerate(facts, 1)
    ]
    return document(*pages)


def test_boundary_shows_the_numbers_of_documents_too(bundle: DocumentBundle) -> None:
    rows = {row["name"]: row["values"] for row in compare_page_facts(bundle.page(1), bundle.page(2), bundle)}
    assert rows["Accession number"] == ["", "S26-10442"]


def test_patients_are_compared_by_what_names_a_person(bundle: DocumentBundle) -> None:
    rows = compare_patient_facts(bundle, [1, 2])
    assert [(row["name"], row["values"], row["is_other_patient"]) for row in rows] == [
        ("Name", ["MARSH, HELEN", "OKORO, DANIEL"], True),
        ("Date of birth", ["04/12/1951", "11/30/1978"], True),
    ]
    assert compare_patient_facts(bundle, []) == []
