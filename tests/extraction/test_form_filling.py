"""Forms as they are drawn, through the reader and the loop, with the embedded model and with scripted ones."""

from __future__ import annotations

import asyncio
import json
import math
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pymupdf
import pytest
from benchmarks import tax_forms
from benchmarks.tax_forms import Box, Drawing, draw, form_1099, form_k1, form_w2
from servers.gemini import Call, GeminiServer

from evalkit.documents.bundle import DocumentBundle, PackedWords, Page, PageStatus
from evalkit.documents.readers import read_document
from evalkit.extraction.extraction_schema import Extraction, FieldStatus
from evalkit.extraction.field_template import list_field_templates
from evalkit.extraction.form_filling import (
    ACCEPTED_BY_GRADER,
    ATTEMPTS_EXHAUSTED,
    BLANK_FORM,
    NOT_EXTRACTED,
    NOT_GRADED,
    WRONG_YEAR,
    FormFieldExtractor,
)
from evalkit.extraction.forms.form_extractor import FormAnswer, FormQuestion, PlacedFormField
from evalkit.extraction.grader import GraderAnswer, GraderQuestion
from evalkit.issue import IssueSeverity
from evalkit.llm.client import LanguageModel
from evalkit.llm.concurrency_limiter import AimdLimiter
from evalkit.llm.embedded import EmbeddedModel
from evalkit.llm.ledger import Ledger
from evalkit.llm.model import Answer, Model, Question
from evalkit.llm.providers.gemini import GeminiProvider

SHARED = tax_forms.SHARED


def bundle(*drawings: Drawing, apart: float = 400.0, text: str = "", seed: int = 4) -> DocumentBundle:
    """The drawings on one page below each other, read as a file is."""
    document = pymupdf.open()
    page = document.new_page(width=612, height=max(792, 60 + apart * len(drawings)))
    for at, one in enumerate(drawings):
        draw(one, random.Random(seed), page, 40 + apart * at)
    if text:
        page.insert_text((200, 20), text, fontsize=24)
    return read(document)


def read(document: Any) -> DocumentBundle:
    return read_document(
        Path("form.pdf"),
        file_bytes=document.tobytes(),
        doc_id="form",
        processing_timestamp="2026-01-01T00:00:00Z",
    )


def fill(read: DocumentBundle, model: Model | None = None, **options: Any) -> list[Extraction]:
    return list(asyncio.run(FormFieldExtractor(model or EmbeddedModel(), **options).extract_forms(read)))


def w2(seed: int = 1) -> Drawing:
    return form_w2(random.Random(seed))


def emptied(one: Drawing, *kept: str) -> Drawing:
    """The form without entries, but for the boxes with these labels."""
    boxes = [
        [box if box.label in kept else replace(box, value="", lines=()) for box in side]
        for side in (one.left, one.right)
    ]
    return replace(one, left=boxes[0], right=boxes[1])


def entered(one: Drawing, label: str, value: str) -> Drawing:
    """The form with another entry in the box of that label."""
    right = [replace(box, value=value) if box.label == label else box for box in one.right]
    return replace(one, right=right, left=[replace(b, value=value) if b.label == label else b for b in one.left])


@pytest.mark.parametrize("number", range(12))
def test_what_is_drawn_is_read(number: int) -> None:
    data, one, _ = tax_forms.redrawn(number, 5, 0.0)
    document = pymupdf.open(stream=data)
    (made,) = fill(read(document))
    assert (made.template, made.stopped_reason) == (one.form, ACCEPTED_BY_GRADER)
    for name, value in one.truth.items():
        field = made.fields[name]
        if value:
            assert tax_forms.normal(one.form, name, field.value or "") == tax_forms.normal(one.form, name, value), name
        else:
            assert field.status is FieldStatus.NOT_PRESENT, name


def tilted(page: Page, degrees: float) -> Page:
    """The page as a scanner sees it that it was laid on askew: recognised, each word's box upright around its slant."""
    slope, aspect = math.tan(math.radians(degrees)), 792 / 612
    words = []
    for start, end, x0, y0, x1, y1 in page.words:
        fall = slope * ((x0 + x1) / 2 - 5000) / aspect
        more = abs(slope) * (x1 - x0) / 2 / aspect
        words.append((start, end, x0, round(y0 + fall - more), x1, round(y1 + fall + more)))
    return page.model_copy(
        update={
            "status": PageStatus.OCR,
            "words": PackedWords(words),
            "confidences": (96,) * len(words),
            "quality": 0.95,
        }
    )


@pytest.mark.parametrize("degrees", [-4.0, -1.5, 1.5, 4.0])
@pytest.mark.parametrize("number", [0, 3, 5])
def test_a_page_put_askew_is_levelled(degrees: float, number: int) -> None:
    data, one, _ = tax_forms.redrawn(number, 5, 0.0)
    given = read(pymupdf.open(stream=data))
    (made,) = fill(given.model_copy(update={"pages": (tilted(given.page(1), degrees),)}))
    right = [
        name
        for name, value in one.truth.items()
        if value
        and tax_forms.normal(one.form, name, made.fields[name].value or "") == tax_forms.normal(one.form, name, value)
    ]
    assert len(right) >= 0.9 * sum(map(bool, one.truth.values()))


def test_letters_in_digits_are_corrected_on_scans_only() -> None:
    one = w2()
    odd = one.truth["wages_tips"].replace("0", "O").replace("1", "l").replace("5", "S").replace("8", "B")
    assert odd != one.truth["wages_tips"]
    given = bundle(entered(one, "Wages, tips, other compensation", odd))
    (as_file,) = fill(given)
    assert as_file.history[0].fields["wages_tips"].value is None
    (as_scan,) = fill(given.model_copy(update={"pages": (tilted(given.page(1), 0.0),)}))
    field = as_scan.fields["wages_tips"]
    assert tax_forms.normal("W-2", "wages_tips", one.truth["wages_tips"]) == field.value
    assert field.raw == odd
    assert as_scan.decision == "ESCALATE_TO_SME"


def test_every_value_stands_on_the_page_where_it_says() -> None:
    given = bundle(w2())
    (made,) = fill(given)
    found = {name: value for name, value in made.fields.items() if value.is_found}
    assert len(found) >= 11
    for value in found.values():
        assert all(line in given.page(1).text for line in (value.raw or "").split("\n"))
        assert (value.quote or "-") in given.page(1).text
        assert value.boxes
        assert all(box[0] == value.page == 1 for box in value.boxes)


def test_a_blank_form_is_blank_at_once() -> None:
    (made,) = fill(bundle(emptied(w2())))
    assert (made.stopped_reason, made.iterations, made.decision) == (BLANK_FORM, 1, "ESCALATE_TO_SME")
    assert made.document_type == "OTHER"
    assert [name for name, value in made.fields.items() if value.is_found] == ["tax_year"]
    assert made.issues[0].message.startswith("[ERROR:incomplete::]")


def test_half_filled_form_takes_three_attempts_and_keeps_fields() -> None:
    (made,) = fill(bundle(emptied(w2(), "Wages, tips, other compensation", "Social security wages")))
    assert (made.stopped_reason, made.iterations, made.met_threshold) == (ATTEMPTS_EXHAUSTED, 3, False)
    assert made.decision == "ESCALATE_TO_SME"
    assert made.fields["wages_tips"].is_found
    assert made.confidence <= 0.5
    assert made.issues[-1].message.startswith("[WARNING:low_confidence::]")
    assert "Could this be a different form type?" in made.history[0].feedback
    assert "Focus only on the most critical fields" in made.history[1].feedback
    assert made.history[2].feedback == ""


def test_a_wrong_year_ends_at_once() -> None:
    one = w2()
    (made,) = fill(bundle(one), expected_tax_year=int(one.year) + 1)
    assert (made.stopped_reason, made.iterations, made.decision) == (WRONG_YEAR, 1, "ESCALATE_TO_SME")
    assert made.fields["wages_tips"].is_found
    (right,) = fill(bundle(one), expected_tax_year=int(one.year))
    assert right.decision == "AUTO_ACCEPT"


def test_a_draft_is_never_accepted() -> None:
    (made,) = fill(bundle(w2(), text="DRAFT"))
    assert made.decision == "ESCALATE_TO_SME"
    assert any(issue.code == "GRADER-DRAFT" for issue in made.issues)


def test_one_altered_amount_escalates() -> None:
    one = w2()
    wrong = f"{float(one.truth['ss_tax_withheld'].replace(',', '')) + 90:,.2f}"
    (made,) = fill(bundle(entered(one, "Social security tax withheld", wrong)))
    assert (made.met_threshold, made.decision) == (True, "ESCALATE_TO_SME")
    (issue,) = made.issues
    assert (issue.code, issue.severity, issue.location) == (
        "GRADER-INCONSISTENT", IssueSeverity.MAJOR, "ss_tax_withheld",
    )  # fmt: skip
    assert issue.boxes == made.fields["ss_tax_withheld"].boxes


@pytest.mark.parametrize("tin", ["***-**-4321", "XXX-XX-4321"])
def test_a_masked_number_is_read(tin: str) -> None:
    (made,) = fill(bundle(entered(form_1099(random.Random(2), "1099-INT"), "RECIPIENT'S TIN", tin)))
    assert made.fields["recipient_tin"].value == "***-**-4321"


@pytest.mark.parametrize(
    ("written", "value"), [("(1,234.50)", "-1234.50"), ("-1,234.50", "-1234.50"), ("$ 1234", "1234.00")]
)
def test_amounts_as_forms_write_them(written: str, value: str) -> None:
    (made,) = fill(bundle(entered(form_k1(random.Random(3)), "Ordinary business income (loss)", written)))
    assert made.fields["ordinary_income"].value == value


def test_a_dash_for_an_amount_is_no_amount() -> None:
    one = form_1099(random.Random(2), "1099-INT")
    (made,) = fill(bundle(entered(one, "Interest income", "$-")))
    field = made.fields["interest_income"]
    assert (field.status, field.value) == (FieldStatus.AMBIGUOUS, None)
    assert "$" in (field.raw or "")
    assert "is not a valid currency amount" in made.history[0].feedback or made.met_threshold
    assert made.decision == "ESCALATE_TO_SME"


@pytest.mark.parametrize(
    "forms",
    [
        (w2, lambda: form_1099(random.Random(9), "1099-NEC")),
        (w2, lambda: w2(8)),
        (lambda: form_1099(random.Random(9), "1099-NEC"), lambda: form_1099(random.Random(7), "1099-INT")),
    ],
)
def test_two_forms_on_a_page_are_two(forms: tuple[Callable[[], Drawing], ...]) -> None:
    drawn = [one() for one in forms]
    made = fill(bundle(*drawn, apart=440))
    assert [one.template for one in made] == [one.form for one in drawn]
    for extraction, one in zip(made, drawn, strict=True):
        amounts = [name for name, value in one.truth.items() if "," in value and "." in value]
        assert amounts
        for name in amounts:
            read = extraction.fields[name].value or ""
            assert tax_forms.normal(one.form, name, read) == tax_forms.normal(one.form, name, one.truth[name]), name


def test_copies_of_one_form_on_a_page_count_once() -> None:
    assert len(fill(bundle(w2(), w2(), apart=440))) == 1


def test_a_letter_about_a_form_is_no_form() -> None:
    document = pymupdf.open()
    page = document.new_page()
    page.insert_text((72, 100), "Dear Ms. Lee, please send us your Form W-2 Wage and Tax Statement for 2023.")
    page.insert_text((72, 120), "We also need Form 1099-INT, should your bank have paid $12.00 of interest.")
    (made,) = fill(read(document))
    assert (made.template, made.decision) == ("OTHER", "ESCALATE_TO_SME")


def test_each_form_page_includes_its_instruction_page() -> None:
    document = pymupdf.open()
    for one in (w2(), form_1099(random.Random(9), "1099-DIV")):
        draw(one, random.Random(4), document.new_page(width=612, height=792), 40)
    document.new_page().insert_text((72, 100), "Instructions for Recipient. Box 1a shows total ordinary dividends.")
    assert [(one.template, one.start_page, one.end_page) for one in fill(read(document))] == [
        ("W-2", 1, 1),
        ("1099-DIV", 2, 3),
    ]


def test_feedback_changes_how_the_embedded_reader_reads() -> None:
    """Labels that are spoilt too much for the first reading are found after feedback."""
    one = form_1099(random.Random(2), "1099-INT")
    spoilt = {"PAYER'S TIN": "PAVFR'S TIN", "RECIPIENT'S TIN": "RECLPLFNT'S TIN"}
    odd = [replace(box, label=spoilt.get(box.label, box.label)) for box in one.left]
    (made,) = fill(bundle(replace(one, left=odd), seed=6))
    for name in ("payer_tin", "recipient_tin"):
        assert not made.history[0].fields[name].is_found
        read = tax_forms.normal(one.form, name, made.fields[name].value or "")
        assert read == tax_forms.normal(one.form, name, one.truth[name]), name
    assert made.history[-1].score or (made.history[0].score or 0) < 0
    assert (made.stopped_reason, made.iterations) == (ACCEPTED_BY_GRADER, 2)


# Other models


class Says:
    """Answers extractor and grader with what it was given, one after another; None is a failure."""

    name = "scripted"

    def __init__(self, *answers: FormAnswer | None, grades: tuple[GraderAnswer | None, ...] = ()) -> None:
        self._answers, self._grades = list(answers), list(grades)
        self.asked: list[Question[Any]] = []

    async def ask(self, question: Question[Any]) -> Answer[Any]:
        self.asked.append(question)
        if isinstance(question, GraderQuestion):
            value: Any = self._grades.pop(0) if self._grades else question.offline()
        else:
            value = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return Answer(question, value, failure=None if value else "no answer")


def answer(one: Drawing, confidence: float = 0.95, **other: str) -> FormAnswer:
    """What a perfect model says of a drawing, with some values of its own."""
    said = one.truth | other
    return FormAnswer(
        reasoning="title",
        likely_type=one.form,
        alternative_types=("1099-NEC",),
        overall_confidence=confidence,
        fields=tuple(
            PlacedFormField(name=name, value=value or None, raw_text=value, page=1, confidence=0.95)
            for name, value in said.items()
        ),
    )


def test_a_models_values_are_proven_on_the_page() -> None:
    one = w2()
    (made,) = fill(bundle(one), Says(answer(one)))
    assert made.decision == "AUTO_ACCEPT"
    assert made.fields["wages_tips"].raw == one.truth["wages_tips"]


def test_a_value_that_is_not_on_the_page_never_passes() -> None:
    one = w2()
    (made,) = fill(bundle(one), Says(answer(one, wages_tips="99,123.45")))
    assert (made.stopped_reason, made.decision) == (ATTEMPTS_EXHAUSTED, "ESCALATE_TO_SME")
    assert made.fields["wages_tips"].value is None
    assert made.issues[0].code == "EXTRACTION-NOT-ON-PAGE"
    assert made.issues[0].severity is IssueSeverity.BLOCKER


def test_an_amount_that_no_field_has_is_for_a_person() -> None:
    """A model that leaves out a box, or takes the amount of another one for it."""
    one = entered(w2(), "Allocated tips", "1,234.50")
    (whole,) = fill(bundle(one), Says(answer(one, box_8="1,234.50")))
    assert whole.decision == "AUTO_ACCEPT"
    for box in ("", one.truth["wages_tips"]):
        (made,) = fill(bundle(one), Says(answer(one, box_8=box)))
        (issue,) = made.issues
        assert (made.met_threshold, made.decision, issue.code) == (True, "ESCALATE_TO_SME", "GRADER-INCOMPLETE")
        assert "whose box was not recognised: 1" in issue.message


def test_an_amount_of_the_forms_own_print_is_no_entry() -> None:
    one = form_1099(random.Random(2), "1099-MISC")
    (made,) = fill(bundle(one, text="Payer made direct sales totaling $5,000 or more"))
    assert made.decision == "AUTO_ACCEPT"


def test_the_second_attempt_is_told_what_was_wrong() -> None:
    one = w2()
    model = Says(answer(one, wages_tips="99,123.45"), answer(one))
    (made,) = fill(bundle(one), model)
    assert (made.stopped_reason, made.iterations) == (ACCEPTED_BY_GRADER, 2)
    prompt = model.asked[1].prompt()
    assert "Previous attempt feedback:" in prompt
    assert "Wages, tips, other compensation: the value is not on the page" in prompt
    assert made.history[1].improvement is not None


def test_the_best_attempt_is_kept_not_the_last() -> None:
    one = w2()
    good, bad = answer(one, confidence=0.7), answer(one, confidence=0.7, wages_tips="", employer_ein="")
    (made,) = fill(bundle(one), Says(bad, good, bad))
    assert (made.stopped_reason, made.iterations) == (ATTEMPTS_EXHAUSTED, 3)
    assert made.fields["wages_tips"].is_found
    assert made.score == made.history[1].score


def test_the_grader_is_asked_only_about_what_the_rules_pass() -> None:
    one = w2()
    model = Says(answer(one, confidence=0.1))
    fill(bundle(one), model)
    assert [question.role for question in model.asked] == ["extractor"] * 3


def test_a_grader_that_says_no_is_heard() -> None:
    one = w2()
    no = GraderAnswer(passed=False, score=40, document_type="W-2", confidence=0.4, feedback="look at box 2")
    model = Says(answer(one), grades=(no, no, no))
    (made,) = fill(bundle(one), model)
    assert (made.stopped_reason, made.decision) == (ATTEMPTS_EXHAUSTED, "ESCALATE_TO_SME")
    assert "look at box 2" in model.asked[2].prompt()


@pytest.mark.parametrize(
    ("model", "reason", "code"),
    [
        (lambda one: Says(None), NOT_EXTRACTED, "EXTRACTOR-AGENT-FAILED"),
        (lambda one: Says(answer(one), grades=(None,)), NOT_GRADED, "GRADER-AGENT-FAILED"),
    ],
)
def test_broken_is_not_failed(model: Callable[[Drawing], Says], reason: str, code: str) -> None:
    one = w2()
    (made,) = fill(bundle(one), model(one))
    assert (made.stopped_reason, made.score, made.decision) == (reason, None, "ESCALATE_TO_SME")
    assert made.issues[0].code == code
    assert made.issues[0].severity is IssueSeverity.BLOCKER


def test_a_type_that_no_template_has_uses_the_generic_one() -> None:
    one = w2()
    said = FormAnswer(likely_type="RECEIPT", overall_confidence=0.6, fields=())
    (made,) = fill(bundle(one), Says(said))
    assert made.template == "OTHER"
    assert made.stopped_reason == BLANK_FORM


def test_prompt_fences_document_and_names_types_and_fields() -> None:
    given = bundle(w2())
    from evalkit.extraction.form_filling import split_into_form_parts

    prompt = FormQuestion(given, split_into_form_parts(given)[0]).prompt()
    assert prompt.startswith("<document-")
    for one in list_field_templates("tax"):
        assert one.document_type in prompt
    for name in ("wages_tips", "box_2a", "control_number", "$X,XXX.XX"):
        assert name in prompt


def test_the_answer_of_a_language_model_is_read_without_places() -> None:
    given = bundle(w2())
    from evalkit.extraction.form_filling import split_into_form_parts

    question = FormQuestion(given, split_into_form_parts(given)[0])
    assert "rows" not in json.dumps(question.get_answer_schema())
    text = json.dumps(
        {
            "likely_type": "W-2",
            "overall_confidence": 0.9,
            "fields": [{"name": "wages_tips", "value": "1", "confidence": 1, "rows": [[0, 5]]}],
        }
    )
    assert question.parse_answer(text).fields[0].rows == ()


def test_a_page_that_nobody_could_read_goes_to_a_person() -> None:
    document = pymupdf.open()
    page = document.new_page()
    pixmap = pymupdf.Pixmap(pymupdf.csRGB, pymupdf.IRect(0, 0, 300, 300))
    pixmap.clear_with(90)
    page.insert_image(page.rect, pixmap=pixmap)
    (made,) = fill(read(document))
    assert (made.score, made.decision) == (None, "ESCALATE_TO_SME")
    assert made.issues[0].code == "READER-NO-TEXT"


def test_a_form_on_a_damaged_page_goes_to_a_person() -> None:
    sound = bundle(w2())
    damaged_page = sound.page(1).model_copy(update={"damage": ("part of the page is missing in the file",)})
    (made,) = fill(sound.model_copy(update={"pages": (damaged_page, *sound.pages[1:])}))
    assert made.decision == "ESCALATE_TO_SME"
    assert made.issues[0].code == "READER-PAGE-DAMAGED"


def test_gemini_is_asked_for_the_form_and_for_the_grade() -> None:
    one = w2()
    given = bundle(one)
    said = answer(one).model_dump_json(by_alias=True)
    graded = {"reasoning": "fine", "pass": "yes", "score": "95%", "document_type": "W-2", "confidence": 0.93}

    def spoken(call: Call) -> str:
        return json.dumps(graded) if "tax document quality grader" in call.prompt else said

    with GeminiServer(spoken) as server:
        provider = GeminiProvider("m", base_url=server.url, api_key="AIza-planted-key")

        async def filled() -> Extraction:
            model = LanguageModel(provider, Ledger(), AimdLimiter(4), time_limit_seconds=30)
            try:
                return (await FormFieldExtractor(model).extract_forms(given))[0]
            finally:
                await model.close()

        made = asyncio.run(filled())
        assert len(server.calls) == 2
    assert (made.decision, made.confidence) == ("AUTO_ACCEPT", 0.93)
    assert made.fields["wages_tips"].raw == one.truth["wages_tips"]
    # A score of up to 100 points is in per cent already.
    assert made.history[0].normalised == (
        "extractor: fields[]: an extra key left out",
        "grader: pass: text read as true or false",
        "grader: score: per cent read as a number",
    )


# Real forms


@pytest.mark.skipif(not SHARED.is_dir(), reason="../shared/data/tax is not here")
def test_the_labelled_forms_are_read(tmp_path: Path) -> None:
    lines = list(tax_forms.golden(show=False))
    first = lines[0]
    right, labelled = map(int, first.split("values ")[1].split(" ")[0].split("/"))
    assert right >= 0.95 * labelled
    assert "invented 0," in first
    assert "typed 10/10" in first
    assert all(" 0 values, Blank form" in line for line in lines[1:])
    assert len(lines) == 4


def test_boxes_have_labels_or_a_number() -> None:
    assert Box("x").label == "x"
    for one in list_field_templates("tax"):
        for field in one.fields:
            if one.name != "OTHER" and field.name != "tax_year":
                assert field.labels or field.box, (one.name, field.name)


def k1(**marks: str) -> DocumentBundle:
    """A Schedule K-1 with its marks and shares beside it."""
    given = {"general": "", "limited": "", "final": "", "profit": "12.5 % 15.0 %", "loss": "12.5 % 15.0 %"} | marks
    document = pymupdf.open()
    page = document.new_page(width=612, height=792)
    draw(form_k1(random.Random(3)), random.Random(4), page, 40)
    lines = [
        (((50, given["final"]), (64, "Final K-1"), (140, given.get("amended", "")), (154, "Amended K-1"))),
        (((50, given["general"]), (64, "General partner or LLC member-manager"))),
        (((50, given["limited"]), (64, "Limited partner or other LLC member"))),
        (((50, "Partner's share of profit, loss, and capital (see instructions):"),)),
        (((50, "Profit"), (120, given["profit"].partition("% ")[0] + "%"), (200, given["profit"].partition("% ")[2]))),
        (((50, "Loss"), (120, given["loss"].partition("% ")[0] + "%"), (200, given["loss"].partition("% ")[2]))),
    ]
    for at, line in enumerate(lines):
        for x, text in line:
            page.insert_text((x, 600 + 16 * at), text, fontsize=8)
    return read(document)


def test_marks_and_shares_of_a_k1_are_read() -> None:
    (made,) = fill(k1(general="X", profit="12.5 % 15.0 %", loss="10 % 20 %"))
    found = {name: value.value for name, value in made.fields.items() if value.is_found}
    assert (found.get("general_partner"), found.get("limited_partner"), found.get("final_k1")) == ("X", None, None)
    assert (found["profit_share_beginning"], found["profit_share_ending"]) == ("12.5", "15.0")
    assert (found["loss_share_beginning"], found["loss_share_ending"]) == ("10", "20")
    assert "capital_share_beginning" not in found


def test_of_one_share_alone_nobody_knows_which_it_is() -> None:
    (made,) = fill(k1(profit="12.5 % "))
    status = {name: made.fields[f"profit_share_{name}"].status for name in ("beginning", "ending")}
    assert status == {"beginning": FieldStatus.AMBIGUOUS, "ending": FieldStatus.NOT_PRESENT}


def test_a_mark_belongs_to_the_label_behind_it() -> None:
    (made,) = fill(k1(amended="X", limited="X"))
    marked = {name for name, value in made.fields.items() if value.is_found and value.value == "X"}
    assert marked == {"amended_k1", "limited_partner"}


def test_a_form_marked_as_void_is_never_accepted() -> None:
    one = form_1099(random.Random(2), "1099-INT")
    for mark, decision in (("", "AUTO_ACCEPT"), ("X", "ESCALATE_TO_SME")):
        (made,) = fill(bundle(one, text=f"{mark} VOID"))
        assert (made.decision, made.fields["void"].is_found) == (decision, bool(mark))
        assert any(issue.code == "GRADER-VOID" for issue in made.issues) is bool(mark)
