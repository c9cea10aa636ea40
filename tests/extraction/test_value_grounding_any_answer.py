"""Whatever a model answers, a value that is kept stands on the page; every other claim is told to a person."""

from __future__ import annotations

import asyncio
import random

from benchmarks import tax_forms
from builders import document
from extraction.test_form_filling import Says, bundle
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from evalkit.documents.bundle import DocumentBundle
from evalkit.extraction.clinical.clinical_extractor import ClaimedField, ground_claims
from evalkit.extraction.extraction_schema import Extraction, FieldStatus, FieldValue
from evalkit.extraction.field_template import TemplateField, get_field_template
from evalkit.extraction.form_filling import FormFieldExtractor
from evalkit.extraction.forms.form_extractor import FormAnswer, PlacedFormField
from evalkit.grounding import QuoteLocator
from evalkit.grounding.normalise import canonicalise
from evalkit.issue import Issue

W2 = tax_forms.form_w2(random.Random(1))
FORM = bundle(W2)
REPORT = document(
    "Final Diagnosis\nA. Left breast: Invasive ductal carcinoma, Nottingham grade 2.\n"
    "Margins: negative (4 mm)\nER: positive (95%); PR: not positive (0%)",
    "Comment\nTumor size: 2.4 x 1.8 cm. HER2: 2+, equivocal. No lymphovascular invasion.",
)
PATHOLOGY = get_field_template("pathology")

ON_THE_FORM = [value for value in W2.truth.values() if value]
ON_THE_REPORT = [text for page in REPORT.pages for text in (*page.text.split("\n"), *page.text.split())]


@st.composite
def claimed(draw: st.DrawFn, there: list[str]) -> str | None:
    """Words of the page, words like them, and words that no page has."""
    words = draw(st.sampled_from(there))
    return draw(
        st.sampled_from(
            [
                words,
                words[1:],
                words[:-1],
                f"{words}0",
                f"-{words}",
                words.replace(",", "."),
                "".join(str((int(sign) + 1) % 10) if sign.isdigit() else sign for sign in words),
                f"{words}, {draw(st.sampled_from(there))}",
                words.upper(),
                " ".join(words),
                "",
            ]
        )
        | st.text(max_size=12)
        | st.decimals(-(10**6), 10**6, places=2).map(str)
        | st.none()
    )


def rows(size: int) -> st.SearchStrategy[tuple[tuple[int, int], ...]]:
    return st.lists(st.tuples(st.integers(-5, size + 5), st.integers(-5, size + 5)), max_size=3).map(tuple)


PAGES = st.none() | st.integers(-1, 3)
CONFIDENCE = st.floats(allow_nan=False)


def form_fields(known: list[str]) -> st.SearchStrategy[PlacedFormField]:
    return st.builds(
        PlacedFormField,
        name=st.sampled_from(known),
        value=claimed(ON_THE_FORM),
        raw_text=st.none() | claimed(ON_THE_FORM),
        page=PAGES,
        confidence=CONFIDENCE,
        rows=st.just(()) | rows(len(FORM.page(1).text)),
        is_ambiguous=st.booleans(),
    )


ANSWERS = st.builds(
    FormAnswer,
    likely_type=st.sampled_from(["W-2", "1099-NEC", "K-1", "RECEIPT", "nonsense"]),
    overall_confidence=CONFIDENCE,
    fields=st.lists(
        form_fields([*(one.name for one in get_field_template("W-2").fields), "payer_tin", "nobody_asked"])
    ).map(tuple),
)
CLAIMS = st.lists(
    st.builds(
        ClaimedField,
        field=st.sampled_from([*(one.name for one in PATHOLOGY.fields), "nobody_asked"]),
        item=st.none() | st.sampled_from(["ER", "PR", "HER2", ""]),
        status=st.sampled_from(["found", "not_present", "ambiguous"]),
        value=claimed(ON_THE_REPORT),
        quote=st.none() | claimed(ON_THE_REPORT),
        page=PAGES,
        end_page=PAGES,
        first_words=st.none() | claimed(ON_THE_REPORT),
        last_words=st.none() | claimed(ON_THE_REPORT),
        confidence=CONFIDENCE,
    ),
    max_size=12,
)


def stands(value: FieldValue, field: TemplateField, given: DocumentBundle) -> bool:
    """Whether the value's own words are on its page, and mean the value."""
    assert value.page is not None
    assert value.raw is not None
    assert value.value is not None
    locator, text = QuoteLocator(given), given.page(value.page).text
    lines = value.raw.split("\n")
    if not all(locator.has_quote(line, value.page) and line in text for line in lines):
        return False
    means = field.normalise(value.raw)
    return value.value == means or "".join(canonicalise(value.raw).split()) == "".join(
        canonicalise(value.value.replace(",", " ") if len(lines) > 1 else value.value).split()
    )


def is_told(name: str, issues: tuple[Issue, ...]) -> bool:
    return any(issue.location.partition(".")[0] == name for issue in issues)


def filled(answer: FormAnswer) -> Extraction:
    return asyncio.run(FormFieldExtractor(Says(answer)).extract_forms(FORM))[0]


@settings(max_examples=100, phases=(Phase.explicit, Phase.generate))
@given(ANSWERS)
def test_no_value_of_a_form_is_kept_that_its_page_does_not_have(answer: FormAnswer) -> None:
    made = filled(answer)
    known = get_field_template(made.template)
    said = {one.name: one.value for one in answer.fields}
    for name, value in made.fields.items():
        field = known.get_field(name)
        assert field is not None
        if value.is_found:
            assert stands(value, field, FORM), name
            assert field.normalise(value.value or "") is not None
        elif canonicalise(said.get(name) or "") or value.status is FieldStatus.AMBIGUOUS:
            assert is_told(name, made.issues), (name, value)


@settings(max_examples=100, phases=(Phase.explicit, Phase.generate))
@given(CLAIMS)
def test_no_value_of_a_report_is_kept_that_its_pages_do_not_have(claims: list[ClaimedField]) -> None:
    fields, issues = ground_claims(claims, REPORT, (1, 2), PATHOLOGY)
    for name, value in fields.items():
        field = PATHOLOGY.get_field(name.partition(".")[0])
        assert field is not None
        if field.reader in ("whole_text", "section"):
            continue
        if value.is_found:
            assert stands(value, field, REPORT), name
        elif value.status is FieldStatus.NOT_PRESENT and any(
            one.field == field.name and one.status == "found" and canonicalise(one.value or "") for one in claims
        ):
            assert is_told(field.name, issues), name
