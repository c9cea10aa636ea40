"""The independent count of what a report prints, and its check against the fields."""

from __future__ import annotations

import pytest
from builders import document
from extraction.scripted import found_value

from evalkit.extraction.extraction_schema import FieldStatus, FieldValue
from evalkit.extraction.field_template import get_field_template
from evalkit.extraction.item_count import CountedItem, count_items, find_doubted_values, find_unread_items


def count(text: str, kind: str) -> list[CountedItem]:
    return [item for item in count_items(document(text).pages) if item.kind == kind]


def list_states(text: str, kind: str) -> set[tuple[str, str]]:
    return {(item.name, item.state) for item in count(text, kind) if item.role == "present"}


def list_unread(text: str, values: dict[str, str], template: str = "pathology") -> list[str]:
    fields = {name: found_value(value) for name, value in values.items()}
    issues = find_unread_items(count_items(document(text).pages), fields, get_field_template(template))
    return [issue.field for issue in issues if issue.severity != "minor"]


def list_doubted(text: str, values: dict[str, str], template: str = "pathology") -> list[str]:
    fields = {name: found_value(value) for name, value in values.items()}
    issues = find_doubted_values(count_items(document(text).pages), fields, get_field_template(template))
    return list(dict.fromkeys(issue.field for issue in issues))


# ------------------------------------------------------------------------------------------------- variants


@pytest.mark.parametrize(
    "text",
    [
        "BRCA2 c.5946delT",
        "MLH1 c.17OOC>T pathogenic",
        "APC c. 3927_3931del",
        "TP53 c.672+1G›T",
        "KRAS p.(Gly12Asp)",
        "BRAF V600E detected",
        "ATM p.R2832fs*12",
        "EGFR exon 19 deletion",
        "MET exon 14 skipping",
        "EML4-ALK fusion",
        "ERBB2 amplification",
        "MSH2 deletion of exons 1-6",
    ],
)
def test_a_printed_variant_must_be_in_a_field(text: str) -> None:
    assert list_unread(f"Result: {text}", {}, "genomics") == ["mutations"]


@pytest.mark.parametrize(
    "text",
    [
        "METHODOLOGY\nLibraries are made by PCR amplification. Control: c.35G>A",
        "FAMILY HISTORY\nBRCA1 c.68_69del",
        "Her mother carries BRCA1 c.68_69delAG.",
        "BRAF V600E: not detected",
        "No EGFR exon 19 deletion was found.",
        "KIT D816V would not respond.",
        "Level 2C and T12 L1 are described",
        "The p.Gly12Asp change is common (Smith et al, PMID: 12345678).",
    ],
)
def test_a_variant_in_another_role_is_not_asked_for(text: str) -> None:
    assert list_unread(text, {}, "genomics") == []


def test_one_name_of_a_variant_holds_its_other_names() -> None:
    text = "KRAS NM_004985.5 c.35G>A p.Gly12Asp; The G12D change of KRAS G12D is known. BRCA1 c.181T>G (p.Cys61Gly)"
    assert list_unread(text, {"mutations.1": "KRAS c.35G>A p.Gly12Asp"}, "genomics") == ["mutations"]
    both = {"mutations.1": "KRAS c.35G>A p.Gly12Asp", "mutations.2": "BRCA1 p.C61G"}
    assert list_unread(text, both, "genomics") == []


@pytest.mark.parametrize(
    "announcement",
    [
        "Two pathogenic variants were identified.",
        "Variant 1 of 2",
        "We detected 2 clinically significant variants.",
        "Actionable: 2 variants",
    ],
)
def test_announced_variants_are_counted(announcement: str) -> None:
    text = f"{announcement}\nBRCA1 c.181T>G"
    assert list_unread(text, {"mutations.1": "BRCA1 c.181T>G"}, "genomics") == ["mutations"]
    both = {"mutations.1": "BRCA1 c.181T>G", "mutations.2": "another"}
    assert list_unread(text, both, "genomics") == []


def test_a_relatives_variant_as_value_is_doubted() -> None:
    text = "Indication: sister with PALB2 c.3113G>A\nRESULT\nBRCA2 c.5946del, heterozygous"
    values = {"mutations.1": "PALB2 c.3113G>A", "mutations.2": "BRCA2 c.5946del"}
    assert list_doubted(text, values, "genomics") == ["mutations.1"]


@pytest.mark.parametrize(
    ("text", "states"),
    [
        ("Microsatellite status: MSS", {"stable"}),
        ("MSI-High", {"high"}),
        ("No microsatellite instability was detected", {"stable"}),
        ("Microsatellite instability: MSI (instable)", {"high"}),
        ("MSI status: MSS (MSI-H, MSI-L or MSS)", set()),
    ],
)
def test_microsatellite_status_is_counted(text: str, states: set[str]) -> None:
    assert {state for _, state in list_states(text, "microsatellite")} == states


def test_another_microsatellite_status_is_doubted() -> None:
    text = "Microsatellite status: MSS\nCOMMENT\nBy PCR the tumor is MSI-H."
    assert list_doubted(text, {"msiStatus": "MSS"}, "genomics") == ["msiStatus"]


# ------------------------------------------------------------------------------------------------- margins


@pytest.mark.parametrize(
    "statement",
    [
        "The SMA margin is positive for carcinoma.",
        "Carcinoma extends to the inked margin.",
        "Tumor is present at the deep margin.",
        "MARGINS:\n- Neck: Negative\n- Uncinate: Positive (0 mm)",
        "Positive for DCIS at the anterior margin",
        "All margins negative except the radial margin, which is involved by tumor",
        "Resection status: R1",
        "The tumor is transected at the lateral margin.",
        "The excision is incompletely excised.",
    ],
)
def test_an_involved_margin_contradicts_a_negative_value(statement: str) -> None:
    assert list_doubted(f"DIAGNOSIS\n{statement}", {"margins": "negative"}) == ["margins"]


@pytest.mark.parametrize(
    "statement",
    [
        "All margins are negative; the closest is 2 mm.",
        "Margins uninvolved by invasive carcinoma.",
        "No carcinoma at the inked margin.",
        "The tumor does not reach the margin.",
        "No margin is involved.",
        "Lymph nodes: 2/14 positive. Margins: negative.",
        "Margins: negative Pleura: invaded",
        "GROSS DESCRIPTION\nThe mass extends to the inked margin.\nDIAGNOSIS\nMargins: free of tumor",
        "No ink on tumor.",
    ],
)
def test_a_free_margin_contradicts_no_negative_value(statement: str) -> None:
    assert list_doubted(f"DIAGNOSIS\n{statement}", {"margins": "negative, 2 mm"}) == []


# ------------------------------------------------------------------------------------------------- grade


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("Nottingham grade 2 (tubules 3, nuclei 3, mitoses 2, total 8/9)", ("three-tier", "3")),
        ("Gleason score 4+3=7", ("gleason", "3")),
        ("Grade Group 3", ("gleason", "3")),
        ("Fuhrman nuclear grade III", ("fuhrman", "3")),
        ("FIGO grade 1", ("three-tier", "1")),
        ("Poorly differentiated adenocarcinoma", ("three-tier", "3")),
        ("NHG2", ("three-tier", "2")),
    ],
)
def test_a_grade_is_counted_in_its_system(text: str, state: tuple[str, str]) -> None:
    assert state in list_states(text, "grade")


def test_another_grade_of_the_same_system_is_doubted() -> None:
    assert list_doubted("Histologic grade: G2\nCOMMENT\nPoorly differentiated tumor.", {"grade": "2"}) == ["grade"]


@pytest.mark.parametrize(
    "text",
    [
        "Histologic grade: 2\nModerately differentiated",
        "Histologic grade: 2\nDCIS, nuclear grade 3",
        "Histologic grade: 2\nThe biopsy was grade 3",
        "Histologic grade: 2\nGrading scale: G1 well, G2 moderate, G3 poor",
    ],
)
def test_an_equal_or_other_grade_is_not_doubted(text: str) -> None:
    assert list_doubted(text, {"grade": "2"}) == []


# ------------------------------------------------------------------------------------------------- stains


@pytest.mark.parametrize(
    ("text", "states"),
    [
        ("ER and PR positive", {("ER", "positive"), ("PR", "positive")}),
        ("positive for CK7 and TTF-1, and negative for CK20", {("CK7", "positive"), ("TTF1", "positive"), ("CK20", "negative")}),
        ("Estrogen receptor (ER): 0%", {("ER", "negative")}),
        ("HER2 (IHC): 2+; FISH: not amplified", {("HER2", "equivocal"), ("HER2", "negative")}),
        ("MLH1, PMS2 and MSH6 show retained expression", {("MLH1", "positive"), ("PMS2", "positive"), ("MSH6", "positive")}),
        ("p53 is wild type", {("P53", "wild")}),
        ("MSH2 and MSH6 retained", {("MSH2", "positive"), ("MSH6", "positive")}),
        ("Positive control adequate for ER", set()),
        ("1 % or more is defined as ER positive", set()),
        ("SMA margin: Positive", set()),
    ],
)  # fmt: skip
def test_stains_are_counted_with_their_result(text: str, states: set[tuple[str, str]]) -> None:
    assert {(name, state) for name, state in list_states(text, "biomarker") if state} == states


def test_an_opposite_receptor_result_is_doubted() -> None:
    text = "ER: negative (0%)\nADDENDUM: Repeat ER on block A3: positive (80%)."
    assert list_doubted(text, {"ihcMarkers.ER": "negative, 0%"}) == ["ihcMarkers.ER"]


def test_a_stain_in_no_field_is_missed() -> None:
    assert list_unread("TTF-1 positive, napsin A positive", {"ihcMarkers.TTF-1": "positive"}) == ["ihcMarkers"]


# ------------------------------------------------------------------------------------------------- sizes, laboratory, dates


def test_a_lesions_size_must_be_in_a_field() -> None:
    text = "FINDINGS: A nodule of 12 mm, previously 8 mm. Axial 5 mm images. Liver cyst 2.1 x 1.4 cm."
    assert list_unread(text, {"findings": text, "measurements.1": "1.2 cm"}, "radiology") == ["measurements"]
    whole = {"findings": text, "measurements.1": "12 mm", "measurements.2": "2.1 x 1.4 cm"}
    assert list_unread(text, whole, "radiology") == []


def test_a_size_after_if_is_a_condition() -> None:
    text = "FINDINGS: A nodule of 12 mm; biopsy is suggested if over 1.5 cm."
    assert list_unread(text, {"findings": text, "measurements.1": "12 mm"}, "radiology") == []


def test_a_former_size_as_value_is_doubted() -> None:
    text = "FINDINGS: A nodule of 12 mm, previously 8 mm."
    assert list_doubted(text, {"measurements.1": "12 mm", "measurements.2": "8 mm"}, "radiology") == ["measurements.2"]


def test_each_impression_must_be_in_the_value() -> None:
    text = "IMPRESSION: No bleeding.\nFINDINGS: Crack in C2.\nIMPRESSION: Fracture of C2."
    values = {"impression": "No bleeding.", "findings": "Crack in C2."}
    assert list_unread(text, values, "radiology") == ["impression"]


def test_a_laboratory_row_must_be_in_a_field() -> None:
    text = "Hemoglobin: 11.5 g/dL (Ref 12.0-15.0)\nSodium 140 mmol/L (135-145)"
    assert list_unread(text, {"labValues.Hemoglobin": "11.5 g/dL (12.0-15.0)"}, "lab-report") == ["labValues"]


def test_a_limit_in_words_is_no_laboratory_result() -> None:
    text = (
        "LDL\t117 H\tbelow 100\tmg/dL\nBetween 100 and 125 mg/dL a second test is advised.\nHDL\t52\t40 or above\tmg/dL"
    )
    assert {item.state for item in count(text, "laboratory") if item.role == "present"} == {"117", "52"}


def test_an_interval_with_its_unit_is_no_result() -> None:
    text = "Urea\t11.2 mmol/L\t2.5-7.8 mmol/L\nAmmonia\t19 umol/L\t<21 umol/L"
    present = [item.state for item in count(text, "laboratory") if item.role == "present"]
    assert present == ["11.2", "19"]


def test_each_of_two_results_in_a_row_is_counted() -> None:
    items = count("NEUTROPHILS\t61.0\t5002\t1500-7800\tcells/uL", "laboratory")
    assert [(item.name, item.state, item.role) for item in items] == [
        ("NEUTROPHILS", "61.0", "present"),
        ("NEUTROPHILS", "5002", "present"),
    ]


def test_a_later_size_in_a_tables_row_is_a_former_one() -> None:
    items = count("Left renal calculus\t3 / 79\t4 mm\t3 mm\tunchanged", "measurement")
    assert [(item.text, item.role) for item in items] == [("4 mm", "present"), ("3 mm", "former")]


def test_a_birth_date_is_no_date_of_the_report() -> None:
    roles = {item.text: item.role for item in count("DOB: 03/04/1961\nReported: 5 May 2024\nBorn 2 June 1950", "date")}
    assert roles == {"03/04/1961": "birth", "5 May 2024": "present", "2 June 1950": "birth"}


def test_a_birth_date_as_value_is_doubted() -> None:
    fields = {"date": FieldValue(status=FieldStatus.FOUND, value="1961-03-04", raw="03/04/1961", page=1)}
    items = count_items(document("DOB: 03/04/1961\nReported: 05/06/2024").pages)
    (issue,) = find_doubted_values(items, fields, get_field_template("pathology"))
    assert issue.description == 'The report prints "1961-03-04" on page 1 only as birth'


@pytest.mark.parametrize("row", ["Potassium\t5.4\tH\tmmol/L\t3.5-5.1", "INR\t2.6 H\tratio\t0.8-1.2"])
def test_a_row_of_a_table_with_a_flag_is_counted(row: str) -> None:
    assert list_unread(f"Test\tResult\tFlag\tUnit\tRange\n{row}", {}, "lab-report") == ["labValues"]


def test_a_former_result_is_not_asked_for() -> None:
    assert list_unread("Earlier PSA: 06/10/2024 0.02 ng/mL; 03/04/2024 4.81 ng/mL.", {}, "lab-report") == []


# ------------------------------------------------------------------------------------------------- issues


def test_an_issue_names_item_and_page() -> None:
    pages = count_items(document("page one", "RESULT\nBRCA1 c.181T>G").pages)
    (issue,) = find_unread_items(pages, {}, get_field_template("genomics"))
    assert issue.severity == "major"
    assert issue.description == 'The report prints the variant "c.181T>G" on page 2, which is in no field'


def test_a_doubt_names_both_places() -> None:
    text = "Margins: negative\nDeep margin: positive"
    fields = {"margins": FieldValue(status=FieldStatus.FOUND, value="negative", page=1)}
    (issue,) = find_doubted_values(count_items(document(text).pages), fields, get_field_template("pathology"))
    assert issue.description == (
        'The value is "negative" on page 1, but the report also prints "margin: positive" on page 1'
    )


def test_an_ambiguous_value_is_not_doubted_again() -> None:
    fields = {"margins": FieldValue(status=FieldStatus.AMBIGUOUS, value="positive", page=1)}
    items = count_items(document("Margins: negative\nDeep margin: positive").pages)
    assert find_doubted_values(items, fields, get_field_template("pathology")) == ()


@pytest.mark.parametrize("piece", ["margin ", "c.1", "ER ", "1 x ", "positive for ", "A ", "( ", "Gleason 3 + "])
def test_a_hostile_line_of_100_kb_is_counted(piece: str) -> None:
    assert all(item.page == 1 for item in count_items(document(piece * (100_000 // len(piece))).pages))


# ------------------------------------------------------------------------------- where a stain or margin is printed


@pytest.mark.parametrize(
    ("text", "values", "doubted"),
    [
        ("MSH6 intact\n\nComment: the loss of MSH6 suggests Lynch syndrome.", {"ihcMarkers.MSH6": "retained"}, True),
        ("MSH6 intact\n\nComment: there is no loss of MSH6.", {"ihcMarkers.MSH6": "retained"}, False),
        ("Receptors and HER2: ER positive in 85%, HER2 negative", {"ihcMarkers.HER2": "negative"}, False),
        ("GATA3 positive\n\nGATA3: reagent control negative", {"ihcMarkers.GATA3": "positive"}, False),
        ("Margins negative\n\nNote: sarcoma cells reach the painted surface.", {"margins": "negative"}, True),
        ("Margins negative\n\nGross: the vein margin is positive for tumor.", {"margins": "negative"}, True),
    ],
)
def test_doubt_follows_what_a_finding_is_about(text: str, values: dict[str, str], doubted: bool) -> None:
    assert bool(list_doubted(text, values)) is doubted


# ------------------------------------------------------------------------------------------------- structural doubts


@pytest.mark.parametrize(
    "text",
    [
        "HER2: block has gone to the reference bench; figures will travel under separate cover",
        "S100 is strongly positive; HMB-45 focally so.",
        "None of the cells took up CDX2.",
        "Immunostains are in progress.",
        "Hormone receptors will be reported later.",
    ],
)
def test_a_named_stain_without_a_value_is_missed(text: str) -> None:
    assert set(list_unread(f"DIAGNOSIS\n{text}", {"ihcMarkers.S100": "positive"})) == {"ihcMarkers"}


@pytest.mark.parametrize("text", ["Ki-67 was not performed.", "Markers to follow if requested."])
def test_a_stain_that_nobody_made_is_not_missed(text: str) -> None:
    assert list_unread(f"DIAGNOSIS\n{text}", {}) == []


@pytest.mark.parametrize(
    "text",
    [
        "In block A11 the green pigment lies directly upon the outermost invasive cords.",
        "Tumor nests run flush with the painted rim.",
        "Carcinoma meets the cut surface posteriorly.",
        "The margins will be reported after recuts.",
    ],
)
def test_tumor_on_a_surface_contradicts_free_margins(text: str) -> None:
    assert list_doubted(f"DIAGNOSIS\nMargins negative.\n{text}", {"margins": "negative"}) == ["margins"]


@pytest.mark.parametrize("text", ["All inks are remote from tumor.", "The specimen is inked blue and black."])
def test_ink_without_tumor_contradicts_no_margin(text: str) -> None:
    assert list_doubted(f"DIAGNOSIS\nMargins negative.\n{text}", {"margins": "negative"}) == []


@pytest.mark.parametrize(
    ("change", "doubted"),
    [
        ("KRAS c.35G>A p.Gly12Asp", []),
        ("BRAF c.1799T>A V600E", []),
        ("TP53 c.524G>A p.(Arg175His)", []),
        ("APC c.4348C>T p.R1450*", []),
        ("KRAS c.35G>A p.Gly12Val", ["mutations.1"]),
        ("KRAS c.38G>A p.Gly12Asp", ["mutations.1"]),
        ("BRAF c.1799T>A V600K", ["mutations.1"]),
        ("ARID2 c.1799T>A c.2750C>T p.V600E p.S917F", ["mutations.1"]),
    ],
)
def test_a_coding_change_must_make_its_protein_change(change: str, doubted: list[str]) -> None:
    assert list_doubted(f"Result\n{change}", {"mutations.1": change}, "genomics") == doubted


@pytest.mark.parametrize(
    "text",
    [
        "The tumor harbors a pair of reportable changes.",
        "Both variants were identified in the plasma.",
        "Genomic findings (2)",
        "Sequencing uncovered two alterations.",
    ],
)
def test_a_number_in_other_words_announces_variants(text: str) -> None:
    lines = f"{text}\nKRAS c.35G>A p.Gly12Asp"
    assert list_unread(lines, {"mutations.1": "KRAS c.35G>A p.Gly12Asp"}, "genomics") == ["mutations"]


@pytest.mark.parametrize(
    ("findings", "impression", "doubted"),
    [
        ("A mass of 4.6 cm arises from the kidney beside the liver.", "Left renal mass of 4.6 cm.", True),
        ("Left level II node, 2.1 cm.", "Right level II node, 2.1 cm.", True),
        ("Right lung: nodule of 12 mm. Left lung clear.", "Left lung nodule of 12 mm.", True),
        ("Right lung: nodule of 12 mm. Left lung clear.", "Right lung nodule of 12 mm.", False),
        ("A mass of the right temporal lobe. The left lobe is normal.", "Metastasis of the left temporal lobe.", True),
        ("Nodule in the RUL.", "Right lung nodule.", False),
        ("Effusions on both sides.", "Left pleural effusion.", False),
    ],
)
def test_an_impression_names_no_other_side(findings: str, impression: str, doubted: bool) -> None:
    text = f"FINDINGS\n{findings}\nIMPRESSION\n{impression}"
    assert bool(list_doubted(text, {"impression": impression}, "radiology")) == doubted


@pytest.mark.parametrize(
    ("impression", "doubted"),
    [
        ("Dr Calder will put her view to paper once the films have come.", True),
        ("Final reading to follow.", True),
        ("To be dictated.", True),
        ("Stable nodule. Signed: Jo Fenn, MD", True),
        ("Stable nodule. The patient will need a CT in 6 months.", False),
        ("Pneumothorax, discussed with Dr Fenn at 14:00.", False),
    ],
)
def test_an_announced_impression_is_none(impression: str, doubted: bool) -> None:
    text = f"FINDINGS\nA nodule.\nIMPRESSION\n{impression}"
    assert list_doubted(text, {"impression": impression}, "radiology") == ["impression"] * doubted


@pytest.mark.parametrize(
    "text",
    [
        "Back in the spring it spanned 14 mm; motion defeats the calipers.",
        "Two years ago the nodule stood at 14 mm.",
        "It had been 14 mm at diagnosis.",
    ],
)
def test_a_size_of_another_time_is_doubted(text: str) -> None:
    assert list_doubted(f"Findings\n{text}", {"measurements.1": "14 mm"}, "radiology") == ["measurements.1"]


@pytest.mark.parametrize(
    ("text", "doubted"),
    [
        ("RIDER OF 16 MAY 2024\nFour in five nuclei stain.", True),
        ("Added 05/16/2024: the receptors were repeated.", True),
        ("Signed by A. Bee, MD 05/16/2024", False),
        ("Printed 05/16/2024", False),
        ("Received 01/05/2024", False),
    ],
)
def test_a_later_date_without_label_is_an_addition(text: str, doubted: bool) -> None:
    assert list_doubted(f"Reported: 05/02/2024\n{text}", {"date": "2024-05-02"}) == ["date"] * doubted


def test_a_core_of_higher_grade_contradicts_the_overall_grade() -> None:
    rows = "Site\tGleason\nLeft mid\t4+3=7\nRight base\t3+3=6\n"
    assert list_doubted(f"{rows}Overall: Gleason score 3+4=7", {"grade": "Gleason 3+4=7"}) == ["grade"]
    assert list_doubted(f"{rows}Overall: Gleason score 4+3=7", {"grade": "Gleason 4+3=7"}) == []


# ------------------------------------------------------------------------------------------------- reports that are not whole


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("pathology", "Bronchial marg\n*** LINE LOST ***\nresection specimen"),
        ("pathology", "[Page 2 of 3 was not received]"),
        ("pathology", "INTERIM REPORT\nLeiomyosarcoma"),
        ("genomics", "-- lower part of the table not legible on this copy --"),
        ("radiology", "Scan incomplete: sheet 2 missing"),
        ("lab-report", "Iron studies - PRELIMINARY REPORT, more will follow"),
        ("radiology", "Stone of the ureter ... [text lost]"),
        ("pathology", "The labels name two different patients; identity is being checked."),
    ],
)
def test_a_notice_of_lost_or_open_text_is_asked_about(template: str, text: str) -> None:
    field = {"pathology": "histology", "genomics": "mutations", "radiology": "impression", "lab-report": "labValues"}
    assert field[template] in list_unread(text, {"impression": text, "histology": text}, template)


@pytest.mark.parametrize(
    "text",
    [
        "Copy to the referring physician.",
        "Page 2 of 3",
        "This report replaces the preliminary report of 3 May.",
        "Slides with label missing were returned in 2019",
        "------------------------------",
    ],
)
def test_other_notices_ask_nothing(text: str) -> None:
    assert list_unread(text, {}) == []


@pytest.mark.parametrize(
    ("impression", "doubted"),
    [
        ("Mass of the breast, BI-RADS", True),
        ("Mass in segment 7 of the liver, probably a", True),
        ("Nodule of the upper lobe (series 4,", True),
        ("Mass of the breast, BI-RADS 4", False),
        ("No acute disease", False),
        ("Nodule of the upper lobe (series 4)", False),
    ],
)
def test_an_impression_that_breaks_off_is_doubted(impression: str, *, doubted: bool) -> None:
    text = f"IMPRESSION\n{impression}"
    assert list_doubted(text, {"impression": impression}, "radiology") == ["impression"] * doubted


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("ADDENDUM 05/08/2024 09:10: There is also a thrombus in the portal vein.", True),
        ("Correction: the mass is on the left.", True),
        ("ADDENDUM 05/08/2024: The result was telephoned to Dr. Hall.", False),
    ],
)
def test_an_addition_to_an_imaging_report_is_asked_about(text: str, *, asked: bool) -> None:
    report = f"IMPRESSION: Gallstones.\n{text}"
    assert list_unread(report, {"impression": "Gallstones."}, "radiology") == ["impression"] * asked


# ------------------------------------------------------------------------------------------------- doubtful results


@pytest.mark.parametrize(
    "row",
    [
        "Ferritin: to follow",
        "Folate: specimen insufficient",
        "Potassium\tHEMOLYZED\t\tmmol/L",
        "Vitamin B12: 2#4 pmol/L (145-569)",
        "Calcium: 2.l mmol/L",
        "The potassium cannot be relied upon.",
        "Please repeat with a fresh sample.",
        "The zinc was mistyped; please read 12.0 umol/L.",
        "Potassium\tsee note\t\tmmol/L",
        "Amended at 10:00: the chloride was 101 mmol/L, not 110 mmol/L.",
    ],
)
def test_an_open_or_damaged_result_is_asked_about(row: str) -> None:
    report = f"Sodium 140 mmol/L (135-145)\n{row}"
    assert "labValues" in list_unread(report, {"labValues.Sodium": "140 mmol/L (135-145)"}, "lab-report")


@pytest.mark.parametrize("text", ["Specimen integrity: acceptable", "No haemolysis.", "Vitamin B12: 214 pmol/L"])
def test_a_usual_remark_is_no_open_result(text: str) -> None:
    assert count(text, "open_result") == []


@pytest.mark.parametrize(
    ("value", "doubted"),
    [("96 L x10^3/uL (140-400)", False), ("96 H x10^3/uL (140-400)", True)],
)
def test_a_false_flag_is_doubted(value: str, *, doubted: bool) -> None:
    table = "TEST\tRESULT\tFLAG\tUNITS\tREFERENCE\nPlatelets\t96\tL\tx10(3)/uL\t140-400"
    assert list_doubted(table, {"labValues.Platelets": value}, "lab-report") == ["labValues.Platelets"] * doubted


@pytest.mark.parametrize(
    ("text", "values", "template"),
    [
        ("PR\tPositive\t40%\tModerate", {"ihcMarkers.PR": "4%"}, "pathology"),
        ("The isolate is resistant to oxacillin.", {"labValues.Oxacillin": "0.5 S"}, "lab-report"),
        (
            "Adenocarcinoma invading 14 of 20 mm of myometrium (70%).\nMyometrial invasion: Less than half",
            {"stage": "pT1a"},
            "pathology",
        ),
        ("Tumor is present at the base of the shave.", {"margins": "negative"}, "pathology"),
    ],
)
def test_another_statement_of_one_thing_is_a_doubt(text: str, values: dict[str, str], template: str) -> None:
    assert list_doubted(text, values, template) == list(values)


@pytest.mark.parametrize(
    ("text", "values", "template"),
    [
        ("PR\tPositive\t40%\nThe share of PR was typed as 4%.", {"ihcMarkers.PR": "positive, 40%"}, "pathology"),
        ("The isolate is resistant to oxacillin.", {"labValues.Oxacillin": ">8 R"}, "lab-report"),
        ("Myometrial invasion: less than half (30 %)", {"stage": "pT1a"}, "pathology"),
        (
            "No variant detected.\nTest for c.5946del, pathogenic in her sister.",
            {"mutations.1": "none detected"},
            "genomics",
        ),
    ],
)
def test_the_same_or_a_former_statement_is_no_doubt(text: str, values: dict[str, str], template: str) -> None:
    assert list_doubted(text, values, template) == []


@pytest.mark.parametrize("number", ["11", "0", "23"])
def test_any_number_of_variants_is_a_number(number: str) -> None:
    fields = {"mutations.1": "KRAS c.35G>A"}
    announced = list_unread(f"{number} variants were identified.", fields, "genomics")
    assert announced == ["mutations"] * (int(number) > 1)


def test_a_doctors_title_ends_no_statement() -> None:
    items = count("Exam date 2025-04-29\nDictated and signed: Dr. Gisele Thornquist, 2025-04-30", "added_date")
    assert {item.role for item in items} == {"labelled"}
    assert count("OPINION\nBenign findings. Routine screening.", "findings") == []


def test_an_isolate_must_be_in_a_field() -> None:
    assert list_unread("Isolate: Escherichia coli", {}, "lab-report") == ["labValues"]
    assert list_unread("Isolate: Escherichia coli", {"labValues.Isolate": "Escherichia coli"}, "lab-report") == []


@pytest.mark.parametrize("text", ["cyclin D1 negative", "IDH1 R132H negative"])
def test_a_part_of_a_stains_name_is_no_stain(text: str) -> None:
    assert {item.name for item in count(text, "biomarker")} == {"CYCLIND1" if "cyclin" in text else "IDH1"}


@pytest.mark.parametrize(
    "text", ["ZAP9 positive in most cells.", "Immunohistochemistry\nLangerhans\tNegative", "QTR-2 diffusely positive"]
)
def test_a_stain_that_no_list_has_is_missed(text: str) -> None:
    assert list_unread(text, {}) == ["ihcMarkers"]


@pytest.mark.parametrize("text", ["MARGINS POSITIVE", "HPV positive", "Both NODES NEGATIVE", "LVI negative"])
def test_other_words_in_capitals_are_no_stain(text: str) -> None:
    assert count(text, "biomarker") == []


@pytest.mark.parametrize(
    ("text", "doubted"),
    [
        ("ER\tPositive, 90%\tNegative, 0%", True),
        ("ER\tPositive\t90%", False),
        ("ER\tPos\t90%", False),
        ("ER positive (90%). The ER stain is being repeated.", True),
        ("ER positive. A score of 0% would be ER negative.", False),
        ("ER positive. Reactive lymphocytes are ER negative.", False),
    ],
)
def test_another_column_or_a_repeat_doubts_a_stain(text: str, *, doubted: bool) -> None:
    assert list_doubted(text, {"ihcMarkers.ER": "positive, 90%"}) == ["ihcMarkers.ER"] * doubted


def test_a_headline_names_the_gene_of_the_variant() -> None:
    text = "Result: a pathogenic variant was identified in MSH2\nVariant: MSH6 c.3261dup"
    assert list_unread(text, {"mutations.1": "MSH6 c.3261dup"}, "genomics") == ["mutations"]
    assert list_unread(text.replace("MSH2", "MSH6"), {"mutations.1": "MSH6 c.3261dup"}, "genomics") == []


@pytest.mark.parametrize(
    ("text", "doubted"),
    [
        ("No pathogenic variant was found.\nBRCA2 c.5946del, heterozygous, pathogenic", True),
        ("No variant of significance was detected.\nBy PCR BRCA2 c.5946del was detected.", True),
        ("No other variant was found.\nBRCA2 c.5946del, heterozygous, pathogenic", False),
        ("No pathogenic variant was found.\nBRCA2 c.5946del, of uncertain significance", False),
        ("No variant was found in VHL.\nBRCA2 c.5946del, heterozygous, pathogenic", False),
    ],
)
def test_a_negative_headline_doubts_a_variant(text: str, *, doubted: bool) -> None:
    assert list_doubted(text, {"mutations.1": "BRCA2 c.5946del"}, "genomics") == ["mutations.1"] * doubted


def test_a_condition_is_no_microsatellite_status() -> None:
    text = "Microsatellite status: MSS\nThe status is MSI-High if more than 20 percent of loci are unstable."
    assert list_doubted(text, {"msiStatus": "MSS"}, "genomics") == []


@pytest.mark.parametrize(
    ("text", "state"),
    [("Zinc\t14", "14"), ("Nitrite: negative", "negative"), ("INR 3.4 [2.0-3.0]", "3.4"), ("Ferritin 12 ug/kg", "12")],
)
def test_a_result_of_any_unit_or_none_is_counted(text: str, state: str) -> None:
    assert [(item.state, bool(item.name)) for item in count(text, "laboratory")] == [(state, True)]
    assert list_unread(text, {"labValues.Other": "1"}, "lab-report") == ["labValues"]


@pytest.mark.parametrize(
    ("text", "is_gap"),
    [
        ("Negative: CD20, CD4#, and", True),
        ("allele fr%c", True),
        ("== scan stops: the rest was not sent ==", True),
        ("The cut edges were inked and the specimen was sent to the", True),
        ("Accession #4711, 40% of cells", False),
        ("Copies to the referring surgeon of this case", False),
    ],
)
def test_damaged_or_lost_text_is_noticed(text: str, *, is_gap: bool) -> None:
    assert bool(count(text, "gap")) is is_gap


@pytest.mark.parametrize(
    ("text", "is_doubted"),
    [
        ("Stone in the ureter. The spleen is unremark", True),
        ("Round opacity in the breast that is highly suspicious for mali", True),
        ("Stone in the ureter. The spleen is unremarkable.", False),
        ("No acute disease", False),
    ],
)
def test_an_impression_without_its_end_is_doubted(text: str, *, is_doubted: bool) -> None:
    assert list_doubted(f"Impression: {text}", {"impression": text}, "radiology") == ["impression"] * is_doubted


def test_variants_looked_for_and_not_found_are_none() -> None:
    text = "Looked for and not found\nEGFR exon 19 deletion; MET exon 14 skipping."
    assert list_unread(text, {}, "genomics") == []


@pytest.mark.parametrize(
    ("impression", "is_doubted"),
    [
        ("Small pneumothorax.", True),
        ("No pneumothorax.", False),
        ("Fracture of the rib.", False),
        ("No fracture.", True),
    ],
)
def test_an_impression_against_all_findings_is_doubted(impression: str, *, is_doubted: bool) -> None:
    text = f"FINDINGS: No pneumothorax. Displaced fracture of a rib.\nIMPRESSION: {impression}"
    assert ("impression" in list_doubted(text, {"impression": impression}, "radiology")) is is_doubted


@pytest.mark.parametrize(
    ("value", "text", "is_doubted"),
    [
        ("Adenocarcinoma", "Nodal lymphoma.", True),
        ("Adenocarcinoma", "Squamous carcinoma of the lung.", True),
        ("Adenocarcinoma", "Invasive carcinoma of the lung.", False),
        ("Adenocarcinoma", "A lymphoma is excluded.", False),
        ("Adenocarcinoma", "History: melanoma of the skin.", False),
        ("Adenocarcinoma", "Tubular adenoma of the colon.", False),
        ("Pleomorphic sarcoma", "Our diagnosis: leiomyosarcoma.", True),
        ("Invasive carcinoma", "Type: invasive lobular carcinoma.", True),
        ("Invasive lobular carcinoma", "Title: carcinoma of the breast.", False),
        ("Follicular carcinoma", "Opinion: follicular adenoma.", True),
    ],
)
def test_another_or_more_exact_tumor_doubts_the_diagnosis(value: str, text: str, *, is_doubted: bool) -> None:
    assert list_doubted(text, {"histology": value}) == ["histology"] * is_doubted


@pytest.mark.parametrize(
    ("stage", "is_doubted"), [("pT3", True), ("pT3 pN1b", False), ("Stage IIIB", False), ("pN1b", False)]
)
def test_a_stage_without_a_printed_category_is_doubted(stage: str, *, is_doubted: bool) -> None:
    text = "Size 3 cm\npT category pT3\nNodes 3 of 21\npN category pN1b"
    assert list_doubted(text, {"stage": stage}) == ["stage"] * is_doubted


def test_a_second_mutational_burden_is_a_contradiction() -> None:
    text = "Tumor mutational burden 14.2 mut/Mb\nWith a mutational burden of 4.2 mut/Mb it is not supported by this measure."
    assert list_doubted(text, {"tmb": "14.2"}, "genomics") == ["tmb"]


@pytest.mark.parametrize(("last", "is_missing"), [("Sheet 2 of 3", True), ("Sheet 3 of 3", False), ("", False)])
def test_the_last_of_the_counted_pages_is_there(last: str, *, is_missing: bool) -> None:
    pages = document("Adenocarcinoma.\nSheet 1 of 3" if last else "Adenocarcinoma.\nSheet 3 of 4", last or "x").pages
    unread = find_unread_items(count_items(pages), {}, get_field_template("pathology"))
    assert any("pages" in issue.description for issue in unread) is is_missing


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("ERBB2: 11 copies", "mutations"),
        ("Microsatellite result overleaf", "msiStatus"),
        ("TMB as given before", "tmb"),
    ],
)
def test_a_mention_that_no_rule_reads_is_counted(text: str, field: str) -> None:
    assert field in list_unread(text, {}, "genomics")


def test_a_grade_that_replaces_another_is_not_contradicted() -> None:
    page = document("Carcinoma, grade 2.\nThe grade is changed: grade 3.").pages
    items, template = count_items(page), get_field_template("pathology")
    value = found_value("3").model_copy(update={"quote": "The grade is changed: grade 3."})
    assert not find_doubted_values(items, {"grade": value}, template)
    assert find_doubted_values(items, {"grade": found_value("3")}, template)


def test_a_negative_of_named_genes_is_no_headline() -> None:
    text = (
        "KRAS c.35G>A detected. No BRAF V600E and no NRAS variant was found.\nALK and RET rearrangements: not detected."
    )
    assert list_doubted(text, {"mutations.1": "KRAS c.35G>A"}, "genomics") == []
    assert list_unread(text, {"mutations.1": "KRAS c.35G>A"}, "genomics") == []


def test_a_size_without_a_unit_is_counted() -> None:
    assert list_unread("The liver lesion measures 34 x 28, new.", {}, "radiology") == ["measurements"]
    assert list_unread("The liver lesion measures 34 x 28 mm.", {"measurements.1": "34 x 28 mm"}, "radiology") == []


def test_a_stain_whose_next_test_is_awaited_is_doubted() -> None:
    assert list_doubted("HER2 2+; ISH result awaited.", {"ihcMarkers.HER2": "2+"}) == ["ihcMarkers.HER2"]


def test_a_tumor_that_is_cut_through_doubts_a_free_margin() -> None:
    text = "Completely excised.\nThe tumour is cut through at the base."
    assert list_doubted(text, {"margins": "negative"}) == ["margins"]


def test_cores_of_lower_grades_only_doubt_a_grade() -> None:
    text = "Gleason score 4+4=8\nA\t3/6\t{}\t11 mm"
    assert list_doubted(text.format("3+4=7"), {"grade": "Gleason 4+4=8"}) == ["grade"]
    assert list_doubted(text.format("4+4=8"), {"grade": "Gleason 4+4=8"}) == []


@pytest.mark.parametrize(("text", "is_doubted"), [("This replaces the result of May 12.", False), ("All final.", True)])
def test_a_result_that_replaces_another_is_in_no_doubt(text: str, *, is_doubted: bool) -> None:
    quote = f"Corrected HER2 result: Positive (IHC 3+). {text}"
    value = found_value("positive, 3+").model_copy(update={"quote": quote})
    items = count_items(document(f"HER2\tNegative (IHC 1+)\n{quote}").pages)
    doubted = find_doubted_values(items, {"ihcMarkers.HER2": value}, get_field_template("pathology"))
    assert bool(doubted) is is_doubted


def test_a_case_number_is_no_stain() -> None:
    assert list_unread("Our no. CD25-20716.", {}) == []


def test_a_numbered_heading_ends_the_gross_part() -> None:
    text = "2. Gross findings\nBowel of 24 cm.\n3. Histology\nTumor glands reach the inked circumferential margin."
    assert [item.role for item in count(text, "margin")] == ["present"]


def test_a_category_under_its_heading_is_no_impression() -> None:
    values = {"impression": "A mass."}
    assert list_unread("Impression\nA mass.\nAssessment\nBI-RADS category 5", values, "radiology") == []
    assert list_unread("Impression\nA mass.\nAssessment\nA cyst is likely.", values, "radiology") == ["impression"]


def test_a_result_of_a_test_without_units_is_counted() -> None:
    assert list_unread("INR 2.4 (corrected). Target INR 2.0-3.0.", {"labValues.APTT": "38 s"}, "lab-report") == [
        "labValues"
    ]


@pytest.mark.parametrize(
    "impression", ["Suspicious mass of the right breast at 4 o'clock", "Right breast, 4 o'clock: BI-RADS 5"]
)
def test_a_side_is_doubted_by_the_position_on_the_clock(impression: str) -> None:
    findings = "Left breast, 4 o'clock, 3 cm from the nipple: an irregular mass. Right breast: no mass.\nIMPRESSION\n"
    assert list_doubted(findings + impression, {"impression": impression}, "radiology") == ["impression"]
    right = impression.replace("right", "left").replace("Right", "Left")
    assert list_doubted(findings + right, {"impression": right}, "radiology") == []


def test_a_corrected_result_below_a_table_goes_to_a_person() -> None:
    text = "Potassium\t6.8\tmmol/L\t3.5-5.1\nPotassium {}result 4.6 mmol/L."
    values = {"labValues.Potassium": "6.8 mmol/L (3.5-5.1)", "labValues.Potassium result": "4.6 mmol/L"}
    assert list_unread(text.format(""), values, "lab-report") == []
    assert list_unread(text.format("corrected "), values, "lab-report") == ["labValues"]
