"""One list of laboratories for vendor signals and for trap 1."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from builders import document

from evalkit.classification.offline.lexicon import apply_lexicon
from evalkit.classification.primary_classifier import classify_by_embedded_model
from evalkit.classification.traps import load_shipped_traps
from evalkit.classification.v3_traps import V3TrapDetector
from evalkit.classification.vendors import find_vendor_mentions, load_vendor_rows, load_vendors, parse_vendors
from evalkit.errors import UsageError

GENOMIC_TEXT = (
    "HEREDITARY CANCER GENE PANEL\nRESULT: POSITIVE\nA pathogenic variant was detected: BRCA2 c.5946delT (p.Ser1982fs), "
    "heterozygous.\nINTERPRETATION: This variant is classified as pathogenic. Next-generation sequencing of 28 genes.\n"
    "METHODOLOGY: Exons were captured and sequenced; variants are named by HGVS."
)


def name_vendors(text: str) -> tuple[str, ...]:
    return apply_lexicon(document(text).page(1)).vendors


@pytest.mark.parametrize("trap", load_shipped_traps().routine_vendor, ids=lambda trap: trap.id)
def test_classifier_and_trap_read_one_list(trap: Any) -> None:
    (vendor,) = (vendor for vendor in load_vendors() if vendor.name == trap.name)
    assert (vendor.names, vendor.short_names) == (trap.names, trap.short_names)
    for name in (*trap.names, *trap.short_names):
        assert name_vendors(f"{name}\n{GENOMIC_TEXT}") == (trap.name,)


@pytest.mark.parametrize("trap", load_shipped_traps().routine_vendor, ids=lambda trap: trap.id)
def test_trap_1_meets_the_embedded_models_own_answers(trap: Any) -> None:
    bundle = document(f"{trap.names[-1]}\n12 Mill Lane\n{GENOMIC_TEXT}")
    answer = classify_by_embedded_model(bundle)
    assert answer.dominant_type_overall == "Genomic Report"
    issues = V3TrapDetector().validate(answer, bundle)
    assert [(issue.code, issue.severity, issue.page) for issue in issues] == [("V3-TRAP-VENDOR", "BLOCKER", 1)]


@pytest.mark.parametrize(
    ("text", "vendors"),
    [
        ("Quest\n12 Mill Lane", ("Quest Diagnostics",)),
        ("QUEST DIAG. - Teterboro", ("Quest Diagnostics",)),
        ("Report\n" * 9 + "Performing laboratory: Quest, Teterboro", ("Quest Diagnostics",)),
        ("Report\n" * 9 + "Blood was drawn at Quest.", ()),
        ("Quest, Maria\nSeen today", ()),
        ("In quest of a cause\nquest for a cause", ()),
        ("Myriad genes were read", ("Myriad Genetics",)),
        ("A myriad of genes was read", ()),
        ("Request Dx code", ()),
        ("See www.labcorp.com or help@labcorp.com", ()),
    ],
)
def test_short_names_and_addresses(text: str, vendors: tuple[str, ...]) -> None:
    assert name_vendors(text) == vendors


def test_a_fax_stamp_names_no_vendor() -> None:
    stamp = "06/11/2023 08:04 FROM: QUEST DIAGNOSTICS TO: 555-0190 P.02/09"
    page = document(f"{stamp}\n{GENOMIC_TEXT}").page(1)
    blocks = tuple(block.model_copy(update={"furniture": block.text == stamp}) for block in page.blocks)
    assert apply_lexicon(page).vendors == ("Quest Diagnostics",)
    assert apply_lexicon(page.model_copy(update={"blocks": blocks})).vendors == ()


def test_a_name_is_found_whatever_divides_its_letters() -> None:
    (vendor,) = (vendor for vendor in load_vendors() if vendor.name == "BioReference")
    for text in ("BIO-REFERENCE", "Bio Reference Laboratories", "bioreference"):
        assert list(find_vendor_mentions(vendor, text))
    assert not list(find_vendor_mentions(vendor, "bioreferences of symbioreference"))


@pytest.mark.parametrize(
    ("kind", "change", "problem"),
    [
        ("vendor", {"names": []}, "names: Tuple should have at least 1 item"),
        ("vendor", {"names": ["--"]}, "names → 0: the name has no letter"),
        ("routine_vendor", {"name": "Invitae"}, "two laboratories have the name 'Invitae'"),
    ],
)
def test_a_wrong_row_of_vendors_is_named(kind: str, change: dict[str, Any], problem: str) -> None:
    rows = copy.deepcopy(load_vendor_rows())
    rows[kind][0] |= change
    with pytest.raises(UsageError) as error:
        parse_vendors(rows)
    assert problem in error.value.message
