"""What is read in clinical reports without a language model, and what only another look finds."""

from __future__ import annotations

import time

import pytest
from builders import document, page
from extraction.reports import page_of

from evalkit.documents.bundle import Block, PackedWords
from evalkit.extraction.clinical.clinical_reader import find_field_values, find_line_mentioning_field
from evalkit.extraction.clinical.report_structure import ClinicalReport
from evalkit.extraction.field_template import get_field_template
from evalkit.extraction.value_grounding import normalise_on_page


def values(kind: str, name: str, report: ClinicalReport, *, again: bool = False) -> dict[str, str] | list[str]:
    field = get_field_template(kind).get_field(name)
    assert field is not None
    found = find_field_values(field, report, include_second_pass=again)
    told = [(one.item, field.normalise(one.text) or one.text) for one in found]
    return dict(told) if field.many else [value for _, value in told]


FIRST_LOOK = [
    # rubric, field, text, the first value
    ("pathology", "histology", "Histologic type: Infiltrating ductal carcinoma.", "Infiltrating ductal carcinoma"),
    ("pathology", "histology", "Final Diagnosis\nLung: Squamous cell carcinoma.", "Squamous cell carcinoma"),
    ("pathology", "histology", "FINAL DIAGNOSIS: INVASIVE LOBULAR CARCINOMA.", "INVASIVE LOBULAR CARCINOMA"),
    ("pathology", "grade", "Histologic grade: Moderately differentiated. Tumor extent: x", "moderately differentiated"),
    ("pathology", "grade", "Invasive carcinoma, Nottingham grade 2, 1.8 cm.", "2"),
    ("pathology", "grade", "Adenocarcinoma, FIGO grade 3/3 with invasion.", "3"),
    ("pathology", "grade", "Grade III", "3"),
    ("pathology", "margins", "Margins: Uninvolved.", "negative"),
    ("pathology", "margins", "Surgical margins: involved by carcinoma", "positive"),
    ("pathology", "margins", "Margins: negative (4 mm)", "negative, 4 mm"),
    ("pathology", "margins", "All margins are uninvolved.", "negative"),
    ("pathology", "margins", "Tumor is present at the base of the shave.", "positive"),
    ("pathology", "histology", "REPORT - INVASIVE CARCINOMA\nHistologic type Invasive lobular carcinoma", "Invasive lobular carcinoma"),
    ("pathology", "ihcMarkers", "Correction: the extent of PR was typed as 4%. PR 40%, positive.", "positive, 40%"),
    ("lab-report", "labValues", "Isolate: Escherichia coli", "Escherichia coli"),
    ("lab-report", "labValues", "Epithelial cells Few", "few"),
    ("pathology", "margins", "The side edges (nearest 2 mm) and the base (1.5 mm) are clear.", "negative, 2 mm"),
    ("pathology", "margins", "Closest margin: 4 mm\nMargins: negative", "negative"),
    ("pathology", "histology", "Sections of the breast show invasive ductal carcinoma.", "invasive ductal carcinoma"),
    ("pathology", "grade", "The tumor is poorly differentiated.", "poorly differentiated"),
    ("pathology", "grade", "Histologic grade\n2\nMargins", "2"),
    ("pathology", "margins", "Tumor extends to the deep margin.", "positive"),
    ("pathology", "stage", "Pathologic stage: pT1c pN0(sn)", "pT1c pN0(sn)"),
    ("pathology", "stage", "pT category pT3\npN category pN1b", "pT3 pN1b"),
    ("pathology", "histology", "6 Conclusion\nAcute myeloid leukaemia, with maturation.", "Acute myeloid leukaemia"),
    ("pathology", "tumorSize", "Specimen size: 18 cm\nTumor size: 2.2 X 1.8 cm.", "2.2 x 1.8 cm"),
    ("pathology", "date", "DOB: 09/05/1961\nReported: 02/07/2025 11:20", "2025-02-07"),
    ("pathology", "institution", "Northgate University Hospital\n12 Foundry Street", "Northgate University Hospital"),
    ("clinical-notes", "institution", "- Institution: City General Hospital", "City General Hospital"),
    ("radiology", "impression", "FINDINGS: Clear lungs.\nIMPRESSION: No acute disease.", "No acute disease."),
    ("radiology", "impression", "Conclusion\nStable.\nElectronically signed by X, MD", "Stable."),
    ("radiology", "findings", "Findings\nA nodule.\nImpression\nStable.", "A nodule."),
    ("genomics", "msiStatus", "MSI status: MSS", "MSS"),
    ("genomics", "msiStatus", "Microsatellite instability: MSI (instable)", "MSI-H"),
    ("genomics", "tmb", "Tumor mutational burden: 12.4 mut/Mb", "12.4"),
    ("genomics", "tmb", "a high mutational load of approximately 136.9 variants per megabase", "136.9"),
    ("genomics", "date", "Date of report: February 4, 2025", "2025-02-04"),
    ("genomics", "date", "Collected: 01/02/2025   Reported: 01/09/2025\nAMENDED REPORT issued 01/20/2025", "2025-01-20"),
    ("genomics", "date", "Name: Lee, Jo DOB: 10/17/1947\nMRN: 4874 Date: 03/18/2023 Accession: G15", "2023-03-18"),
    ("genomics", "date", "Electronically signed by A. Poe, MD on 19-Jan-2024", "2024-01-19"),
    ("genomics", "date", "Born: 29/03/1973\nReport date: 27/03/2024", "2024-03-27"),
    ("genomics", "date", "Institute of Oncology 28 February 2024\nBorn 11 December 1945", "2024-02-28"),
    ("genomics", "institution", "Toronto Cancer Hospital\nClinic: Windsor Hospital", "Toronto Cancer Hospital"),
    ("genomics", "institution", "Lakeview Clinic\nPerforming laboratory: Foundry Labs, 1 Foundry Lane", "Foundry Labs"),
    ("genomics", "msiStatus", "This tumor is MSI-High.\nMSI-H tumors respond to treatment.", "MSI-H"),
    ("genomics", "msiStatus", "Microsatellite status: MS-Stable", "MSS"),
    ("radiology", "impression", "Lungs clear. Impression: No acute disease.", "No acute disease."),
    ("radiology", "impression", "BREAST FINDINGS\nA mass.\nASSESSMENT AND RECOMMENDATION\nBI-RADS 4.", "BI-RADS 4."),
    ("radiology", "impression", "Opinion\nA lesion.\nDr A. Wynn, FRCR", "A lesion."),
    ("radiology", "impression", "Summary\nA cyst.\nSonogram read by A. Wynn, MD", "A cyst."),
    ("radiology", "impression", "Impression\nA mass.\nReader: Ann Wynn, MD, PhD", "A mass."),
    ("radiology", "institution", "Norrland Neuroimaging Group\nImpression\nStable.", "Norrland Neuroimaging Group"),
    ("lab-report", "labValues", "- Hematocrit: 35.0% (Ref 36.0-45.0)", "35.0 % (36.0-45.0)"),
    ("lab-report", "labValues", "Glucose 104 H 65-99 mg/dL", "104 H mg/dL (65-99)"),
    ("lab-report", "labValues", "Platelets 96 x10(3)/uL (140-400)", "96 x10^3/uL (140-400)"),
    ("lab-report", "date", "Sample drawn 2 May 2024 06:45. Report printed 3 May 2024.", "2024-05-03"),
    ("pathology", "histology", "Breast: invasive ductal carcinoma (no special type).", "invasive ductal carcinoma (no special type)"),
    ("pathology", "histology", "Skin: melanoma of superficial spreading type.", "melanoma of superficial spreading type"),
    ("pathology", "grade", "Lymph node: Follicular lymphoma, grade 1-2.", "1-2"),
    ("pathology", "grade", "Lymph node: Follicular lymphoma, grade 3A.", "3A"),
    ("pathology", "margins", "Margin 0.2 mm, which is therefore regarded as involved.", "positive, 0.2 mm"),
    ("pathology", "tumorSize", "A pale nodule of 13 mm, 2 mm from the capsule.", "13 mm"),
    ("pathology", "tumorSize", "An 11 x 8 mm brown plaque. A smaller nodule of 3 mm.", "11 x 8 mm"),
    ("pathology", "tumorSize", "Greatest dimension of the invasive focus: 16 mm", "16 mm"),
    ("pathology", "date", "Sex: F Reported: 2024-Oct-09", "2024-10-09"),
    ("pathology", "date", "Sent by : Dr. (Mrs.) Ann Bell Reported on : 24-Sep-2024", "2024-09-24"),
    ("pathology", "date", "REVISED REPORT - replaces our report of 8 May 2023\nReport date: 9 May 2024", "2024-05-09"),
    ("radiology", "date", "Exam date: 05/05/2024 Reported: 05/06/2024", "2024-05-06"),
    ("radiology", "impression", "IMPRESSION: Stable. Thank you for your referral.", "Stable."),
    ("radiology", "impression", "IMPRESSION: Stable.\nADDENDUM 20 Sep 2024 15:10: Seen again.", "Stable."),
    ("radiology", "impression", "IMPRESSION\nStable.\nElm Street Imaging Partners 1/1", "Stable."),
    ("pathology", "institution", "Vance-Whitmore Skin Pathology\nDermatopathology laboratory", "Vance-Whitmore Skin Pathology"),
    ("genomics", "institution", "Marlin Oncogenomics\nTumor report", "Marlin Oncogenomics"),
    ("genomics", "mutations", "BRCA1 c.5266dup, classified as pathogenic", "BRCA1 c.5266dup"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "name", "text", "value"), FIRST_LOOK)
def test_a_first_look(kind: str, name: str, text: str, value: str) -> None:
    told = values(kind, name, ClinicalReport(document(text).pages))
    assert list(told.values() if isinstance(told, dict) else told)[:1] == [value]


ANOTHER_LOOK = [
    (
        "pathology",
        "histology",
        "Microscopic\nBenign breast tissue with apocrine change",
        "Benign breast tissue with apocrine change",
    ),
    ("pathology", "grade", "Differentiation: well", "well differentiated"),
    ("radiology", "impression", "FINDINGS: Clear.\nRESULT: No acute disease.", "No acute disease."),
    ("radiology", "findings", "Details\nA nodule.\nSummary\nStable.", "A nodule."),
    ("genomics", "msiStatus", "The tumor is of high microsatellite instability.", "MSI-H"),
    ("genomics", "tmb", "We found 9.5 mutations per megabase.", "9.5"),
    ("pathology", "date", "Collected: 02/03/2025", "2025-02-03"),
]


@pytest.mark.parametrize(("kind", "name", "text", "value"), ANOTHER_LOOK)
def test_another_look_finds_what_the_first_does_not(kind: str, name: str, text: str, value: str) -> None:
    report = ClinicalReport(document(text).pages)
    assert values(kind, name, report) == []
    assert values(kind, name, report, again=True)[:1] == [value]
    assert find_line_mentioning_field(get_field_template(kind).get_field(name), report) is not None or name in (
        "date",
        "institution",
    )


NOT_THERE = [
    ("pathology", "histology", "Diagnosis: Lymph nodes negative for metastatic carcinoma."),
    ("pathology", "grade", "Fever was low-grade. Ductal carcinoma in situ, nuclear grade 2."),
    ("pathology", "grade", "Histologic grade: Not specified."),
    ("pathology", "margins", "The margins are inked blue."),
    ("pathology", "date", "Date of birth: 01.01.1901"),
    ("pathology", "date", "Born: 29/03/1973\nSeen: 03/29/2024\nReport date: 04/03/2024"),  # either order is printed
    ("genomics", "msiStatus", "Method: MSI-H is called where 20 % of loci are unstable."),
    ("genomics", "institution", "Clinic: Windsor Regional"),
    ("pathology", "institution", "Please consult the Department of Pathology."),
    ("radiology", "impression", "The patient made a good impression on us."),
    ("genomics", "tmb", "Allele fraction 12 %"),
    ("pathology", "histology", "The clinical impression was of a basal cell carcinoma."),
    ("pathology", "tumorSize", "The tumor is 1.5 mm clear of the surface. Margin free of melanoma, 7 mm."),
    ("lab-report", "date", "Prothrombin time: 12.4 s (10.5-13.5)"),
]


@pytest.mark.parametrize(("kind", "name", "text"), NOT_THERE)
def test_what_is_not_said_is_not_read(kind: str, name: str, text: str) -> None:
    report = ClinicalReport(document(text).pages)
    assert values(kind, name, report) == []
    assert values(kind, name, report, again=True) == []


def rows(*lines: str) -> ClinicalReport:
    return ClinicalReport([page_of([("table", "\n".join(lines))])])


def test_stains_in_a_table() -> None:
    report = rows(
        "Marker\tClone\tResult\tInterpretation",
        "Estrogen receptor\tSP1\t95 % of tumor nuclei, strong\tPositive",
        "HER2 (c-erbB-2)\t4B5\tScore 1+\tNegative",
        "Ki-67\t30-9\t14 % of tumor nuclei\tLow",
    )
    assert values("pathology", "ihcMarkers", report) == {"ER": "positive, 95%", "HER2": "negative, 1+", "Ki-67": "14%"}


def test_a_first_row_with_a_value_is_no_header() -> None:
    assert values("pathology", "tumorSize", rows("Size\t3.1 cm", "Margins\tnegative")) == ["3.1 cm"]


def test_report_date_below_its_header_is_no_birth_date() -> None:
    report = rows("Patient\tBirth date\tReport date", "Haldane, Emeka\tApril 19, 1984\tJuly 23, 2024")
    assert values("pathology", "date", report)[:1] == ["2024-07-23"]


def test_stains_in_a_sentence() -> None:
    text = "Immunohistochemistry\nER: positive (80%); PR: negative (0%), HER2: equivocal (2+). Ki-67: 30%."
    told = values("pathology", "ihcMarkers", ClinicalReport(document(text).pages))
    assert told == {"ER": "positive, 80%", "PR": "negative, 0%", "HER2": "equivocal, 2+", "Ki-67": "30%"}


@pytest.mark.parametrize(
    ("text", "stains"),
    [
        ("STAINS: P40 POSITIVE, CA9 NEGATIVE.", {"p40": "positive", "CAIX": "negative"}),
        (
            "The cells express CD20 and CD5; they lack CD10.",
            {"CD20": "positive", "CD5": "positive", "CD10": "negative"},
        ),
        ("CD20 (+), CD10 (-), cyclin D1 (-).", {"CD20": "positive", "CD10": "negative", "cyclin D1": "negative"}),
        ("CD3 is negative. Background T cells are positive for CD3.", {"CD3": "negative"}),
    ],
)
def test_stains_in_capitals_verbs_and_other_cells(text: str, stains: dict[str, str]) -> None:
    assert values("pathology", "ihcMarkers", ClinicalReport(document(text).pages)) == stains


def test_abbreviated_results_in_a_table() -> None:
    table = rows("Antibody\tLymphoma cells", "CD20\tPos", "CD10\tNeg")
    assert values("pathology", "ihcMarkers", table) == {"CD20": "positive", "CD10": "negative"}


def test_a_laboratory_row_with_test_and_result_in_a_cell() -> None:
    table = rows("Test Result Units\tRange", "Urea 9.1 * mmol/L\t2.5 - 7.8")
    assert values("lab-report", "labValues", table) == {"Urea": "9.1 * mmol/L (2.5-7.8)"}


def test_a_column_with_an_iso_date_is_an_earlier_one() -> None:
    table = rows("Lesion\tCurrent\t2024-07-23", "Segment 4\t21 mm\t34 mm")
    assert values("radiology", "measurements", table) == {"1": "21 mm"}


def test_a_stain_is_no_part_of_another_word() -> None:
    text = "The ERCP was positive. PRIMER: positive. The patient remains positive per telephone."
    assert values("pathology", "ihcMarkers", ClinicalReport(document(text).pages), again=True) == {}


def test_measurements_exclude_technique_and_prior_sizes() -> None:
    text = "Technique\nReconstructed at 3 mm.\nFindings\nA 6 mm nodule; a mass of 3.2 x 1.5 cm. 5 mL of contrast."
    assert values("radiology", "measurements", ClinicalReport(document(text).pages)) == {
        "1": "6 mm",
        "2": "3.2 x 1.5 cm",
    }
    table = rows("Lesion\tToday\t08/12/2024", "Nodule\t6 mm\t4 mm")
    assert values("radiology", "measurements", table) == {"1": "6 mm"}


def test_variants_in_a_table_and_in_words() -> None:
    table = rows("Gene\tVariant\tProtein", "BRCA2\tc.5946delT\tp.Ser1982Argfs*22", "ATM\tc.2119T>C\tp.Ser707Pro")
    assert values("genomics", "mutations", table) == {
        "1": "BRCA2 c.5946delT p.Ser1982Argfs*22",
        "2": "ATM c.2119T>C p.Ser707Pro",
    }
    words = ClinicalReport(document("BRAF V600E was detected. KRAS c.35G>A (p.Gly12Asp). No EGFR L858R.").pages)
    assert values("genomics", "mutations", words) == {"1": "BRAF V600E", "2": "KRAS c.35G>A p.Gly12Asp"}
    assert values("genomics", "genes", words) == {"KRAS": "KRAS", "BRAF": "BRAF"}


@pytest.mark.parametrize(
    "text", ["NRAS, BRAF V600E, ERBB2 amplification: not found.", "PERTINENT NEGATIVES\nBRAF V600E"]
)
def test_a_list_of_negatives_is_no_finding(text: str) -> None:
    report = ClinicalReport(document(f"Result: KRAS G12D was detected.\n{text}").pages)
    assert values("genomics", "mutations", report) == {"1": "KRAS G12D"}


def test_a_fusion_and_its_kind_are_one_variant() -> None:
    table = rows("Alteration\tNucleotide\tKind\tFraction", "TMPRSS2-ERG fusion\t-\trearrangement\t3.1 %")
    assert values("genomics", "mutations", table) == {"1": "TMPRSS2::ERG fusion"}


def test_a_list_behind_not_found_holds_no_variant() -> None:
    report = ClinicalReport(document("MYC amplification was seen. NOT FOUND: EGFR, MET exon 14 skipping, RET.").pages)
    assert values("genomics", "mutations", report) == {"1": "MYC amplification"}


def test_a_cut_off_beside_a_result_is_not_the_results() -> None:
    table = rows("Signature\tResult\tCut-off", "Tumor mutational burden\t5.3 mut/Mb\thigh if >= 10 mut/Mb")
    assert values("genomics", "tmb", table) == ["5.3"]


def test_a_margin_at_a_vessel_is_no_stain() -> None:
    text = "MARGINS:\n- Pancreatic neck margin: Negative\n- SMA margin: Positive (tumor at inked margin)"
    assert values("pathology", "ihcMarkers", ClinicalReport(document(text).pages), again=True) == {}


def test_stains_that_were_not_stained_have_no_result() -> None:
    report = ClinicalReport(
        document("PMS2 retained. MLH1 and MSH2 were not stained, as their partners are retained.").pages
    )
    assert values("pathology", "ihcMarkers", report) == {"PMS2": "retained"}


def test_an_assessment_beside_an_impression_is_another_part() -> None:
    report = ClinicalReport(document("Impression\nA mass of the right breast.\nAssessment\nBI-RADS category 5").pages)
    assert values("radiology", "impression", report) == ["A mass of the right breast."]


def test_a_corrected_result_without_a_unit() -> None:
    text = "AMENDED REPORT 11 Nov 2025. INR 2.4 (corrected; first issued as 4.2)."
    assert values("lab-report", "labValues", ClinicalReport(document(text).pages)) == {"INR": "2.4"}


def test_no_variant_is_a_finding_too() -> None:
    report = ClinicalReport(document("No pathogenic variants were detected.").pages)
    assert values("genomics", "mutations", report) == {"1": "none detected"}


def test_the_rows_of_a_laboratory_report() -> None:
    table = rows(
        "Test name\tIn range\tOut of range\tReference range\tUnits",
        "WBC\t6.4\t\t3.8-10.8\tThousand/uL",
        "GLUCOSE\t\t104 H\t65-99\tmg/dL",
    )
    assert values("lab-report", "labValues", table) == {
        "WBC": "6.4 Thousand/uL (3.8-10.8)",
        "GLUCOSE": "104 H mg/dL (65-99)",
    }


def test_a_laboratory_table_with_the_test_after_its_result() -> None:
    table = rows("Result\tUnits\tTest\tLow-high", "11.9\tg/dL\tHb\t13.0-17.0")
    assert values("lab-report", "labValues", table) == {"Hb": "11.9 g/dL (13.0-17.0)"}


def test_a_laboratory_table_without_a_header() -> None:
    table = rows("Sodium\t140\tmmol/L\t135-146", "ALT\t19\tU/L\t9-46", "Visit\t12")
    assert values("lab-report", "labValues", table) == {"Sodium": "140 mmol/L (135-146)", "ALT": "19 U/L (9-46)"}
    assert values("lab-report", "labValues", table, again=True)["Visit"] == "12"


def test_of_two_results_in_a_row_none_is_sure() -> None:
    table = rows("Test name\tPercent\tAbsolute\tReference range\tUnits", "NEUTROPHILS\t61.0\t5002\t1500-7800\tcells/uL")
    assert values("lab-report", "labValues", table) == {}


def test_a_telephone_number_is_no_laboratory_result() -> None:
    report = ClinicalReport(document("Client service 555-0170\nFerritin 14 ng/mL (16-154)").pages)
    assert values("lab-report", "labValues", report) == {"Ferritin": "14 ng/mL (16-154)"}


def test_signs_are_results_of_stains_beside_other_signs() -> None:
    report = ClinicalReport(document("Immunohistochemistry: p40 +, CK5/6 +, TTF-1 -, synaptophysin -.").pages)
    assert values("pathology", "ihcMarkers", report) == {
        "p40": "positive",
        "CK5/6": "positive",
        "TTF-1": "negative",
        "synaptophysin": "negative",
    }


def test_large_letters_name_the_institution() -> None:
    page = page_of(
        [("heading", "Klinikum Rosenfels"), ("paragraph", "Institute of Pathology"), ("paragraph", "Text " * 9)]
    )
    words = [(*word[:5], word[5] + 60) if word[1] <= 18 else word for word in page.words]
    report = ClinicalReport([page.model_copy(update={"words": PackedWords(words)})])
    assert values("pathology", "institution", report)[0] == "Klinikum Rosenfels"
    assert values("pathology", "institution", ClinicalReport([page]))[0] == "Institute of Pathology"


def test_a_department_beside_the_institution_is_no_part_of_its_name() -> None:
    report = ClinicalReport(document("PINECREST MEMORIAL HOSPITAL      SURGICAL PATHOLOGY\nA polyp.").pages)
    assert values("pathology", "institution", report)[0] == "PINECREST MEMORIAL HOSPITAL"


def test_results_in_a_sentence() -> None:
    text = "CBC: WBC 7.2 x10^9/L (Ref: 4.5-11.0), Hemoglobin 14.0 g/dL (Ref: 12.0-16.0)."
    assert values("lab-report", "labValues", ClinicalReport(document(text).pages)) == {
        "WBC": "7.2 x10^9/L (4.5-11.0)",
        "Hemoglobin": "14.0 g/dL (12.0-16.0)",
    }


def test_a_part_goes_on_behind_a_page_and_ends_at_the_signature() -> None:
    report = ClinicalReport(
        document("Findings\nClear lungs.", "No effusion.\nIMPRESSION: Stable.\nVictor Almeida, MD 02/10/2025").pages
    )
    assert [part.name for part in report.sections] == ["findings", "impression"]
    assert [len(part.spans) for part in report.sections] == [2, 1]
    assert values("radiology", "impression", report) == ["Stable."]
    assert values("radiology", "findings", report) == ["Clear lungs. No effusion."]


def test_a_printed_line_that_is_a_heading_begins_a_part() -> None:
    lines = page(1, "Findings\nSpleen normal.\nConclusion\nStable.\nRead by: A. Wynn, MD")
    joined = Block(type="paragraph", text=lines.text.replace("\n", " "), box=(0.0, 0.0, 1.0, 1.0))
    report = ClinicalReport([lines.model_copy(update={"blocks": (joined,), "text": joined.text})])
    assert values("radiology", "findings", report) == ["Spleen normal."]
    assert values("radiology", "impression", report) == ["Stable."]


def test_headings_within_a_paragraph_begin_a_part() -> None:
    report = ClinicalReport(
        document("PROCEDURE. Biopsy. CLINICAL HISTORY. Grade 1 before. FINAL DIAGNOSIS. Carcinoma, grade 3.").pages
    )
    assert values("pathology", "grade", report) == ["3"]


def test_a_page_of_one_long_line_is_read_in_no_time() -> None:
    nasty = "Nottingham grade " * 1_000 + "ER " * 1_000 + "margin " * 1_000 + "12 x " * 1_000
    began = time.process_time()
    report = ClinicalReport(document(nasty).pages)
    for kind in ("pathology", "radiology", "genomics", "lab-report"):
        for field in get_field_template(kind).fields:
            find_field_values(field, report, include_second_pass=True)
            find_line_mentioning_field(field, report)
    assert time.process_time() - began < 5


def test_labels_in_headers_and_footers_are_read_too() -> None:
    strip = "DOE, JANE  MRN 70021  Reported: 02/07/2025"
    report = ClinicalReport([page(1, f"{strip}\nFINAL DIAGNOSIS: Tubular adenoma.", furniture=[strip])])
    assert values("pathology", "date", report) == ["2025-02-07"]
    assert all(strip not in line.text for line in report.body_lines)


@pytest.mark.parametrize(
    ("text", "stains"),
    [
        ("Positive: CD34. Negative: S100, desmin.", {"CD34": "positive", "S100": "negative", "desmin": "negative"}),
        ("The cells are positive for CAIX and negative for CK7.", {"CAIX": "positive", "CK7": "negative"}),
        ("Immunoreactive with CK7 but non-reactive for CK20 and p40.", {"CK7": "positive", "CK20": "negative", "p40": "negative"}),
        ("Positive stains: ER (90%), PR (40%). Negative: HER2 (1+).", {"ER": "positive, 90%", "PR": "positive, 40%", "HER2": "negative, 1+"}),
        ("Positive for CK7; CK20 negative.", {"CK7": "positive", "CK20": "negative"}),
        ("HER2 (IHC) ...... Negative (0)", {"HER2": "negative"}),
        ("p40 diffusely and strongly positive", {"p40": "positive"}),
    ],
)  # fmt: skip
def test_a_result_before_a_list_of_stains_is_of_each(text: str, stains: dict[str, str]) -> None:
    report = ClinicalReport(document(f"Immunohistochemistry\n{text}").pages)
    assert values("pathology", "ihcMarkers", report) == stains


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("Born: 29/03/1973\nReport date: 04/03/2024", "2024-03-04"),
        ("Nephrectomy 24/11/2023; received 24/11/2023; report authorised 05/12/2023", "2023-12-05"),
        ("Taken 11/24/2023; report authorised 05/12/2023", "2023-05-12"),
    ],
)
def test_the_other_dates_of_a_page_tell_day_from_month(text: str, day: str) -> None:
    page = document(text).pages[0]
    field = get_field_template("pathology").get_field("date")
    assert field
    (reading, *_) = find_field_values(field, ClinicalReport([page]))
    assert normalise_on_page(field, reading.text, page) == day


def test_the_latest_unlabelled_date_of_a_letterhead_counts() -> None:
    text = "Elm Hospital\n2024-08-22\n2024-08-27"
    assert values("pathology", "date", ClinicalReport(document(text).pages))[:1] == ["2024-08-27"]


@pytest.mark.parametrize(
    "text",
    [
        "Signed Dr O. Fenn",
        "Registrar: Dr N. Ibbotson",
        "==========\nApproved: Hiroshi Banfield, MD",
        "Second reader agrees. Dr Ola Fenn, 03 Mar 2025",
        "Attending: Hiroshi Banfield, MD, 2025-03-03",
        "N. Ibbotson, consultant radiologist, 03/03/2025",
    ],
)
def test_a_signature_is_no_part_of_the_impression(text: str) -> None:
    report = ClinicalReport(document(f"IMPRESSION\nStable nodule.\n{text}").pages)
    (impression,) = values("radiology", "impression", report)
    assert impression.rstrip("=").strip() == "Stable nodule."


def test_laboratory_results_listed_in_a_line() -> None:
    text = "INR 1.1 [0.9-1.2]; D-dimer 0.31 mg/L FEU [< 0.50]; Fibrinogen 5.2 g/L [2.0-4.0] *. Lactate on 3 May 2024: 2.2 mmol/L."
    assert values("lab-report", "labValues", ClinicalReport(document(text).pages)) == {
        "INR": "1.1 (0.9-1.2)",
        "D-dimer": "0.31 mg/L FEU (< 0.50)",
        "Fibrinogen": "5.2 * g/L (2.0-4.0)",
    }


def test_a_patients_age_is_no_laboratory_result() -> None:
    text = "Name : MARLOW Odile    Sex / Age at visit : 52 Yrs/F\nPlatelets : 188,000 /cumm   (150,000 - 410,000)"
    found = values("lab-report", "labValues", ClinicalReport(document(text).pages))
    assert found == {"Platelets": "188,000 /cumm (150,000-410,000)"}


def test_a_laboratory_result_may_be_a_word() -> None:
    text = "Nitrite: negative\n\nKetones - trace\n\nHBs antigen: non-reactive"
    assert values("lab-report", "labValues", ClinicalReport(document(text).pages)) == {
        "Nitrite": "negative",
        "Ketones": "trace",
        "HBs antigen": "non-reactive",
    }


def test_a_size_under_gross_counts_if_no_other_does() -> None:
    gross = "Gross:\n\nWedge of lung with a firm white nodule of 21 mm."
    assert values("pathology", "tumorSize", ClinicalReport(document(gross).pages)) == ["21 mm"]
    text = f"Diagnosis: Adenocarcinoma.\n\nTumor size: 19 mm\n\n{gross}"
    assert values("pathology", "tumorSize", ClinicalReport(document(text).pages))[0] == "19 mm"


@pytest.mark.parametrize(
    "text",
    [
        "Scan of 02/03/2024; report of 02/04/2024",
        "Taken 4 Feb 2024 07:10, reported 4 Feb 2024",
        "Read and signed by A. Lee MD, 02/04/2024",
    ],
)
def test_a_report_date_behind_less_usual_words(text: str) -> None:
    assert values("radiology", "date", ClinicalReport(document(text).pages))[:1] == ["2024-02-04"]


def test_stains_that_the_lexicon_lacks() -> None:
    text = "Positive: CD20, FOXP1 and GCET1.\n\nThe cells are positive for p63, negative for cytokeratin and malignant spread."
    stains = values("pathology", "ihcMarkers", ClinicalReport(document(text).pages))
    assert stains == {
        "CD20": "positive",
        "FOXP1": "positive",
        "GCET1": "positive",
        "p63": "positive",
        "cytokeratin": "negative",
    }


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Iliac crest, biopsy: Plasma cell myeloma, 45% of cells.", "Plasma cell myeloma"),
        ("Bladder: noninvasive papillary urothelial carcinoma.", "noninvasive papillary urothelial carcinoma"),
        ("Penhallow Sarcoma Centre\nThigh: myxofibrosarcoma.", "myxofibrosarcoma"),
        ("Sections favor a follicular lymphoma.", "follicular lymphoma"),
    ],
)
def test_a_tumor_name_begins_where_its_clause_does(text: str, name: str) -> None:
    assert values("pathology", "histology", ClinicalReport(document(text).pages))[-1] == name


def test_a_tumor_name_is_not_cut_before_its_features() -> None:
    text = "Tumor type Adenocarcinoma with neuroendocrine differentiation"
    assert values("pathology", "histology", ClinicalReport(document(text).pages)) == [
        "Adenocarcinoma with neuroendocrine differentiation"
    ]


@pytest.mark.parametrize(
    ("text", "stains"),
    [
        ("The cells stain for CD20 and PAX5. There is no staining for CD10, CD5 or TdT.", {"CD20": "positive", "PAX5": "positive", "CD10": "negative", "CD5": "negative", "TdT": "negative"}),
        ("MMR: no loss of MLH1, PMS2 or MSH6.", {"MLH1": "retained", "PMS2": "retained", "MSH6": "retained"}),
        ("ER: Allred 7/8. PR: Allred score 2/8.", {"ER": "positive", "PR": "negative"}),
        ("synaptophysin diffuse +", {"synaptophysin": "positive"}),
    ],
)  # fmt: skip
def test_stains_in_other_words(text: str, stains: dict[str, str]) -> None:
    assert values("pathology", "ihcMarkers", ClinicalReport(document(text).pages)) == stains


@pytest.mark.parametrize(
    ("kind", "name", "text", "value"),
    [
        ("pathology", "stage", "STAGE: PT3B PN1", "pT3b pN1"),
        ("pathology", "grade", "LEFT: GLEASON 3+4=7. OVERALL: GLEASON 4+4=8, WORST CORE.", "Gleason 4+4=8"),
        ("pathology", "histology", "Diffuse large B-cell lymphoma. Carcinoma and melanoma are excluded.", "Diffuse large B-cell lymphoma"),
        ("pathology", "margins", "MARGINS: RADIAL NEGATIVE, 8 MM. P16: BLOCK POSITIVE.", "negative, 8 mm"),
        ("pathology", "tumorSize", "The size was typed as 5.1 cm. Tumor size 1.5 cm.", "1.5 cm"),
        ("genomics", "msiStatus", "Microsatellites: stable", "MSS"),
    ],
)  # fmt: skip
def test_values_in_other_words(kind: str, name: str, text: str, value: str) -> None:
    read = values(kind, name, ClinicalReport(document(text).pages))
    assert list(read.values() if isinstance(read, dict) else read)[:1] == [value]


def test_a_score_in_the_row_of_a_grade_group_is_no_group() -> None:
    assert "Grade Group 4" not in values(
        "pathology", "grade", rows("Item\tFinding", "Gleason / Grade Group\t4+3=7 / 3")
    )
