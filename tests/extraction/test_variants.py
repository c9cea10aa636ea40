"""Variants that a genomic report found, and those that it only speaks of."""

from __future__ import annotations

import pytest
from builders import document
from extraction.reports import page_of

from evalkit.extraction.clinical.clinical_reader import find_field_values
from evalkit.extraction.clinical.report_structure import ClinicalReport
from evalkit.extraction.field_template import get_field_template

SURE = 0.85


def read_variants(report: ClinicalReport) -> list[str]:
    """Return the variants in normal form; a doubtful one ends with a question mark."""
    field = get_field_template("genomics").get_field("mutations")
    assert field is not None
    return [
        f"{field.normalise(reading.text)}{'' if reading.confidence >= SURE else ' ?'}"
        for reading in find_field_values(field, report)
    ]


SENTENCES = [
    ("VHL, EXON03, c.499C>T, p.(Arg167Trp), Heterozygous", ["VHL c.499C>T p.(Arg167Trp)"]),
    ("A pathogenic variant, c.5266dupC\n(p.Gln1756Profs*74), was identified in the BRCA1 gene.",
     ["BRCA1 c.5266dupC p.Gln1756Profs*74"]),
    ("c.5266dupC in BRCA1 and c.1100delC in CHEK2 were identified.", ["BRCA1 c.5266dupC", "CHEK2 c.1100delC"]),
    ("Gene: MSH2\nDNA change: c.942+3A>T\nClass: Pathogenic\nGene: ATM\nDNA change: c.2442C>A\nProtein: p.Asp814Glu",
     ["MSH2 c.942+3A>T", "ATM c.2442C>A p.Asp814Glu"]),
    ("ERBB2 amplification. CD74(6)::ROS1(34) fusion. MET exon 14 skipping. RB1 splice site 1422-2A>T.",
     ["ERBB2 amplification", "CD74::ROS1 fusion", "MET exon 14 skipping", "RB1 splice site 1422-2A>T"]),
    ("EML4-ALK fusion, 214 reads\nThe ALK fusion is in frame.", ["EML4::ALK fusion"]),
    ("TEST: JAK2 exon 14\nRESULT: c.1849G>T, p.Val617Phe detected", ["JAK2 c.1849G>T p.Val617Phe"]),
    ("No pathogenic variant was identified in BRCA2.\nBRCA2 c.8149G>T p.Ala2717Ser, uncertain significance",
     ["BRCA2 c.8149G>T p.Ala2717Ser"]),
    ("No pathogenic variant was identified in BRCA2.\nBRCA2 c.8149G>T p.Ala2717Ser, pathogenic",
     ["BRCA2 c.8149G>T p.Ala2717Ser ?"]),
    ("KRAS p.Gly12Asp, VAF 23 %.\nKRAS G12D is a driver. KRAS c.35G>A (p.Gly12Asp).", ["KRAS c.35G>A p.Gly12Asp"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "variants"), SENTENCES)
def test_variants_with_their_genes(text: str, variants: list[str]) -> None:
    assert read_variants(ClinicalReport(document(text).pages)) == variants


OTHERS = [
    "The mother carries BRCA2 c.5946delT.",
    "Previously reported: KRAS p.Gly12Cys in the lung tumor.",
    "Patients with EGFR T790M do not respond.",
    "BRAF V600E: not detected.",
    "Indication: sister with PALB2 c.3113G>A",
    "KRAS G12C and EGFR L858R were looked for and are absent.",
    "ESR1 D538G is no longer detectable.",
    "Method\nDetects KRAS p.Gly12Asp from 5 %.",
]


@pytest.mark.parametrize("text", OTHERS)
def test_variants_that_are_no_finding(text: str) -> None:
    report = ClinicalReport(document(f"{text}\nResults\nTP53 c.524G>A (p.Arg175His)").pages)
    assert read_variants(report) == ["TP53 c.524G>A p.Arg175His"]


def test_a_row_without_a_finding_is_no_variant() -> None:
    lines = ("Gene\tVariant\tResult", "KRAS\tG12C\tNot detected", "BRCA1\tDeletion (Exons 1-2)\tPathogenic")
    assert read_variants(ClinicalReport([page_of([("table", "\n".join(lines))])])) == ["BRCA1 Deletion (Exons 1-2)"]


DOUBTS = [
    ("Gene NACA\nVariant c.17OOC>T", ["NACA c.17OOC>T ?"]),
    ("Genes: BRCA1, BRCA2, TP53\nThe variant c.215C>G was found.", ["TP53 c.215C>G ?"]),
    ("KRAS c.35G>A p.Gly12Asp. The KRAS p.Gly12Val variant is known.",
     ["KRAS c.35G>A p.Gly12Asp ?", "KRAS p.Gly12Val ?"]),
    ("BRCA1: No pathogenic variant detected.\nBRCA1 c.68_69delAG", ["BRCA1 c.68_69delAG ?"]),
    ("A fusion was detected.\nMET exon 14 skipping: not detected.", ["none detected ?"]),
    ("BRAF c.1799T>A p.Val600Glu\n\nReplacement: the BRAF variant belongs to another patient.",
     ["BRAF c.1799T>A p.Val600Glu ?"]),
    ("RESULT: POSITIVE - pathogenic variant in PALB2\n\nPALB2 c.3113G>A: uncertain significance", ["PALB2 c.3113G>A ?"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "variants"), DOUBTS)
def test_doubtful_variants_go_to_a_person(text: str, variants: list[str]) -> None:
    assert read_variants(ClinicalReport(document(text).pages)) == variants


def test_one_gene_without_a_variant_is_the_result() -> None:
    assert read_variants(ClinicalReport(document("JAK2 V617F: Not detected").pages)) == ["none detected"]
