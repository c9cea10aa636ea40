"""Whose page, and the same patient's as the page before?"""

from __future__ import annotations

import pytest
from builders import document, page

from evalkit.documents.bundle import DocumentBundle
from evalkit.documents.identity.page_identity import find_patient_identifiers
from evalkit.documents.patient_banner import build_patient_banners, list_page_ranges_by_person

DOE = "Patient: John Doe DOB: 01/15/1970"
ROE = "Patient: Jane Roe DOB: 03/02/1981"


def read(*texts: str) -> DocumentBundle:
    made = [page(number, text) for number, text in enumerate(texts, 1)]
    return document(
        *(one.model_copy(update={"identifiers": find_patient_identifiers(one.text, one.words)}) for one in made)
    )


@pytest.mark.parametrize(
    ("texts", "text", "relation", "words"),
    [
        ((DOE,), "DOE, JOHN · 01/15/1970", "first", ""),
        ((DOE, "DOE, JOHN DOB: 15-Jan-1970"), "DOE, JOHN · 01/15/1970", "same", "same as page 1"),
        ((DOE, ROE), "ROE, JANE · 03/02/1981", "other", "another patient than page 1: DOE, JOHN · 01/15/1970"),
        ((DOE, "Patient: Jane Roe"), "ROE, JANE", "doubtful", "name read differently: DOE, JOHN / ROE, JANE"),
        ((DOE, "DOB: 03/02/1981"), "no patient name read · 03/02/1981", "doubtful",
         "birth date read differently: 01/15/1970 / 03/02/1981"),
        ((DOE, "DOB: 01/15/1970"), "no patient name read · 01/15/1970", "same", "same as page 1"),
        ((DOE, "Patient: John Doe DOB: 01/16/1970"), "DOE, JOHN · 01/16/1970", "doubtful",
         "birth date read differently: 01/15/1970 / 01/16/1970"),
        ((DOE, "DOB: 01/15/1970", "Patient: Jane Roe DOB: 01/15/1970"), "ROE, JANE · 01/15/1970", "same",
         "same as page 2"),
        ((DOE, "Patient: Jane Roe DOB: 01/15/1970"), "ROE, JANE · 01/15/1970", "doubtful",
         "name read differently: DOE, JOHN / ROE, JANE"),
        ((DOE, "Patient: Jon Doe DOB: 01/15/1970"), "DOE, JON · 01/15/1970", "same", "same as page 1"),
        ((DOE, ROE, DOE), "DOE, JOHN · 01/15/1970", "same", "same as page 1"),
        ((DOE, ROE, ROE), "ROE, JANE · 03/02/1981", "same", "same as page 2"),
        ((DOE, "Nothing here"), "no patient name read", "none", ""),
        ((DOE, "Nothing here", DOE), "DOE, JOHN · 01/15/1970", "same", "same as page 1"),
        ((DOE, "MRN: 555012"), "no patient name read · record 555012", "first", ""),
        ((DOE, "MRN: 555012", "Patient: Jane Roe"), "ROE, JANE", "doubtful",
         "name read differently: DOE, JOHN / ROE, JANE"),
        (("Reported: 02/01/2025", "Patient: John Doe Reported: 02/06/2025"), "DOE, JOHN · dated 02/06/2025", "first", ""),
        (("", ""), "no patient name read", "none", ""),
    ],
)  # fmt: skip
def test_a_page_says_whose_it_is(texts: tuple[str, ...], text: str, relation: str, words: str) -> None:
    *_, last = build_patient_banners(read(*texts))
    assert (last.text, last.relation, last.relation_text) == (text, relation, words)


def test_every_page_has_one_and_it_can_be_checked_on_the_page() -> None:
    bundle = read(DOE, "", DOE)
    banners = list(build_patient_banners(bundle))
    assert [banner.relation for banner in banners] == ["first", "none", "same"]
    assert banners[0].identifiers == bundle.page(1).identifiers
    assert len(banners[0].identifiers) == 2


def test_a_red_page_carries_what_differs_on_both_pages() -> None:
    bundle = read(DOE, ROE)
    _, banner = build_patient_banners(bundle)
    assert (banner.relation, banner.compared_page) == ("other", 1)
    assert [difference.fact for difference in banner.differences] == ["name", "birth date"]
    assert banner.differences[0].left in bundle.page(1).identifiers
    assert banner.differences[0].right in bundle.page(2).identifiers


def test_ranges_of_a_person_end_at_another_one() -> None:
    bundle = read(DOE, "", DOE, ROE, "nothing", ROE, DOE, ROE)
    assert list_page_ranges_by_person(bundle) == [((1, 3), (7, 7)), ((4, 6), (8, 8))]
