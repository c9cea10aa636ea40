"""All reports of a document: segments, templates, and pages that nobody could read (specification 002, section 7)."""

from __future__ import annotations

import asyncio
import re

import pytest
from builders import document, page
from extraction.reports import draw, page_of
from extraction.scripted import Scripted

from evalkit.documents.bundle import DocumentBundle
from evalkit.documents.identity.page_identity import find_patient_identifiers
from evalkit.extraction.extraction_schema import Extraction, FieldStatus
from evalkit.extraction.field_template import FieldNeed, get_field_template, list_field_templates
from evalkit.extraction.reliability_loop import ReliabilityLoop
from evalkit.extraction.report_extraction import (
    MAX_CONCURRENT_LOOPS,
    ReportPageRange,
    choose_clinical_template,
    extract_reports,
)
from evalkit.llm.model import Answer, AnswerT, Model, Question


def extracted(bundle: DocumentBundle, *reports: ReportPageRange, model: Model | None = None) -> list[Extraction]:
    return asyncio.run(extract_reports(bundle, reports, ReliabilityLoop(model=model)))


RUBRICS = {
    # name: required, important, optional
    "pathology": (["histology", "grade"], ["margins", "ihcMarkers"], ["date", "institution", "rawText"]),
    "radiology": (["impression"], ["findings", "measurements"], ["date", "institution", "rawText"]),
    "genomics": (["mutations"], ["msiStatus", "tmb"], ["date", "institution", "rawText"]),
    "lab-report": (["labValues"], [], ["date", "institution", "rawText"]),
    "prescription": (["rawText"], [], ["date", "institution"]),
    "clinical-notes": (["rawText"], [], ["date", "institution"]),
    "discharge-summary": (["rawText"], [], ["date", "institution"]),
    "surgical-notes": (["rawText"], ["margins"], ["date", "institution"]),
    "unknown": (["rawText"], [], ["date", "institution"]),
}


@pytest.mark.parametrize("name", RUBRICS)
def test_the_rubrics_are_the_specifications(name: str) -> None:
    one = get_field_template(name)
    needs = (FieldNeed.REQUIRED, FieldNeed.IMPORTANT, FieldNeed.OPTIONAL)
    assert tuple([field.name for field in one.get_fields_by_need(need)] for need in needs) == RUBRICS[name]
    assert one.threshold == 0.95


def test_there_are_nine_rubrics() -> None:
    assert {one.name for one in list_field_templates("clinical")} == RUBRICS.keys()


CHOICES = [
    ("Pathology Report", "anything", "pathology"),
    ("Radiology Report", "anything", "radiology"),
    ("Genomic Report", "anything", "genomics"),
    ("Clinical Note", "Chief Complaint: cough", "clinical-notes"),
    ("Clinical Note", "DISCHARGE SUMMARY\nHospital Course: uneventful", "discharge-summary"),
    ("Clinical Note", "OPERATIVE REPORT\nPreoperative Diagnosis: hernia", "surgical-notes"),
    ("Other", "LABORATORY REPORT\nReference range", "lab-report"),
    ("Other", "PRESCRIPTION\nDispense: 30\nRefills: 0", "prescription"),
    ("Other", "Authorization to release records", "unknown"),
    ("Other", "Refills", "unknown"),
    ("No such type", "anything", "unknown"),
]


@pytest.mark.parametrize(("document_type", "text", "name"), CHOICES)
def test_the_template_is_chosen_by_type_and_words(document_type: str, text: str, name: str) -> None:
    assert choose_clinical_template(document_type, document(text).pages).name == name


def composite() -> DocumentBundle:
    one, other = draw("pathology", 4), draw("radiology", 4)
    return document(one.bundle.pages[0], other.bundle.pages[0].model_copy(update={"page_num": 2}))


def test_each_report_of_a_composite_document_has_its_own_loop() -> None:
    bundle = composite()
    radiology, pathology = ReportPageRange(2, 2, "Radiology Report"), ReportPageRange(1, 1, "Pathology Report")
    told = extracted(bundle, radiology, pathology)
    assert [(one.template, one.start_page, one.end_page) for one in told] == [("pathology", 1, 1), ("radiology", 2, 2)]
    for one in told:
        pages = {value.page for value in one.fields.values() if value.is_found}
        assert pages == {one.start_page}


def test_alerts_are_logged_without_document_text(caplog: pytest.LogCaptureFixture) -> None:
    bundle = document("Diagnosis: Carcinoma of the breast. The margins and ER were looked at; the grade is below.")
    extracted(bundle, ReportPageRange(1, 1, "Pathology Report"), model=Scripted({"histology": "Carcinoma"}))
    alerts = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert {re.findall(r"metric=(\S+)", alert)[0] for alert in alerts} == {
        "marc.final_score",
        "marc.improvement_per_iteration",
    }
    assert all(f"document={bundle.sha256[:12]}" in alert and not re.search(r"[\n{]", alert) for alert in alerts)
    assert "breast" not in caplog.text


def test_many_reports_do_not_queue_within_their_deadlines() -> None:
    pages = [f"Diagnosis: Carcinoma, grade {1 + number % 3}." for number in range(40)]
    reports = [ReportPageRange(number, number, "Pathology Report") for number in range(1, 41)]
    under_way = most = 0

    class Slow:
        name = "slow"

        async def ask(self, question: Question[AnswerT]) -> Answer[AnswerT]:
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(0.001)
            under_way -= 1
            return Answer(question, question.offline())

    told = extracted(document(*pages), *reports, model=Slow())
    assert [one.start_page for one in told] == list(range(1, 41))
    assert most == MAX_CONCURRENT_LOOPS


def test_the_template_can_be_given() -> None:
    (one,) = extracted(composite(), ReportPageRange(1, 1, "Other", template_name="pathology"))
    assert one.template == "pathology"


def test_a_damaged_page_is_never_accepted() -> None:
    text = "Diagnosis: Invasive ductal carcinoma, grade 2."
    damaged_page = page(1, text).model_copy(update={"damage": ("part of the page is missing in the file",)})
    model = Scripted({"histology": "Invasive ductal carcinoma", "grade": "grade 2"})
    (sound,) = extracted(document(text), ReportPageRange(1, 1, "Pathology Report"), model=model)
    (one,) = extracted(document(damaged_page), ReportPageRange(1, 1, "Pathology Report"), model=model)
    assert (one.score, one.decision) == (sound.score, "ESCALATE_TO_SME")
    assert "READER-PAGE-DAMAGED" in {issue.code for issue in one.issues} - {issue.code for issue in sound.issues}


def test_a_page_that_nobody_could_read_never_enters() -> None:
    bundle = document("Diagnosis: Invasive ductal carcinoma, grade 2.", page(2, "Grade 3", status="image"))
    model = Scripted({"histology": "Invasive ductal carcinoma", "grade": "grade 2"})
    (one,) = extracted(bundle, ReportPageRange(1, 2, "Pathology Report"), model=model)
    assert all("Grade 3" not in prompt for _, prompt in model.asked)
    assert one.met_threshold
    assert one.decision == "ESCALATE_TO_SME", "the other page may say something else"
    assert "READER-NO-TEXT" in {issue.code for issue in one.issues}


def test_a_report_that_nobody_could_read_is_not_tried() -> None:
    poor = page(1, "Grade 3", status="ocr").model_copy(update={"quality": 0.3, "problems": ("the page is very dark",)})
    model = Scripted({"grade": "Grade 3"})
    (one,) = extracted(document(poor), ReportPageRange(1, 1, "Pathology Report"), model=model)
    assert model.asked == []
    assert (one.score, one.decision) == (None, "ESCALATE_TO_SME")
    assert one.stopped_reason == "Document quality too low for extraction"
    issue = next(issue for issue in one.issues if issue.code == "READER-NO-TEXT")
    assert "the page is very dark" in issue.message
    assert "clearer scan" in issue.suggested_fix


def test_a_blank_report_is_for_a_person() -> None:
    (one,) = extracted(document(page(1, "", status="blank")), ReportPageRange(1, 1, "Radiology Report"))
    assert one.decision == "ESCALATE_TO_SME"


def test_every_field_of_the_template_is_there_whatever_happened() -> None:
    poor = page(1, "x", status="failed")
    (one,) = extracted(document(poor), ReportPageRange(1, 1, "Pathology Report"))
    assert list(one.fields) == [field.name for field in get_field_template("pathology").fields]
    assert {value.status for value in one.fields.values()} == {FieldStatus.AMBIGUOUS}


def test_a_note_is_kept_as_its_text() -> None:
    bundle = document(page_of([("heading", "Elmwood Clinic"), ("paragraph", "Chief Complaint: cough.")]))
    (one,) = extracted(bundle, ReportPageRange(1, 1, "Clinical Note"))
    assert one.fields["rawText"].value == "Elmwood Clinic\nChief Complaint: cough."
    assert (one.decision, one.stopped_reason) == (None, "no_fields")
    assert all("rawText" not in record.fields for record in one.history)


@pytest.mark.parametrize(
    ("second", "pages"),
    [
        ("Patient: Anna Kowalsky  DOB: 14/03/1971", [2]),
        ("Patient: Gwendoline Stiles", [2]),
        ("Patient: Anna Kowalski  DOB: 03/14/1951", []),
        ("Page 2 of 2", []),
    ],
)
def test_a_page_of_another_patient_goes_to_a_person(second: str, pages: list[int]) -> None:
    texts = (f"Patient: Anna Kowalski  DOB: 03/14/1951\n{NEGATIVE}", f"{second}\nIMMUNOHISTOCHEMISTRY\nCK7 positive.")
    bundle = document(
        *(
            page(number, text).model_copy(update={"identifiers": find_patient_identifiers(text, ())})
            for number, text in enumerate(texts, 1)
        )
    )
    (extraction,) = extracted(bundle, ReportPageRange(1, 2, "Pathology Report"))
    assert [issue.page for issue in extraction.issues if issue.code == "EXTRACTION-PATIENT"] == pages
    assert extraction.decision == ("ESCALATE_TO_SME" if pages else "AUTO_ACCEPT")


NEGATIVE = "DIAGNOSIS\nKidney: Papillary renal cell carcinoma, WHO/ISUP grade 3. Surgical margins uninvolved.\nReported: 06/18/2024"
