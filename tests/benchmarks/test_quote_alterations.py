"""The planter: its cases are what they claim to be, and it knows nothing of the checker that it examines."""

import ast
import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from benchmarks import quote_alterations
from benchmarks.quote_alterations import Kind, Noised, NoiseKind, Planted, list_planted_pages, noise, plant
from builders import document

from evalkit.documents import DocumentBundle

MODULE = Path(quote_alterations.__file__)


@dataclass(frozen=True)
class Case:
    """A case and the document that it was made from."""

    bundle: DocumentBundle
    made: Planted | Noised


@cache
def documents() -> tuple[DocumentBundle, ...]:
    return tuple(list_planted_pages(0, 31))


@cache
def altered() -> tuple[Case, ...]:
    return tuple(Case(bundle, made) for bundle in documents() for made in plant(bundle, 0))


@cache
def honest() -> tuple[Case, ...]:
    return tuple(Case(bundle, made) for bundle in documents()[:20] for made in noise(bundle, 0))


def squeezed(text: str) -> str:
    """Without spaces and letter case: simpler than the module's own form."""
    return "".join(text.casefold().split())


def whole(bundle: DocumentBundle) -> str:
    return _whole(tuple(page.text for page in bundle.pages))


@cache
def _whole(texts: tuple[str, ...]) -> str:
    return squeezed("".join(texts))


def options(kind: Kind, text: str) -> dict[str, tuple[str, ...]]:
    """What could be altered in a text: the words as they stand, and what could stand there instead."""
    return {text[edit.start : edit.end]: edit.options for edit in quote_alterations._FINDERS[kind](text)}


def test_the_examiner_imports_nothing_of_the_checker():
    tree = ast.parse(MODULE.read_text())
    named = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    named |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name for name in named if name.startswith("evalkit")} == {"evalkit.documents.bundle"}
    assert not any(word in MODULE.read_text() for word in ("import_module", "__import__", "evalkit.grounding"))


def test_every_kind_is_planted_often_enough():
    counts = Counter(case.made.kind for case in altered())
    assert {kind: counts[kind] for kind in Kind if counts[kind] < 200} == {}
    assert counts.total() >= 5000


def test_every_kind_of_noise_is_made():
    counts = Counter(case.made.kind for case in honest())
    assert all(counts[kind] for kind in NoiseKind), counts


def test_the_same_bundle_and_seed_give_the_same_cases():
    bundle = documents()[0]
    assert list(plant(bundle, 7)) == list(plant(bundle, 7)) != list(plant(bundle, 8))
    assert list(noise(bundle, 7)) == list(noise(bundle, 7)) != list(noise(bundle, 8))
    assert list(list_planted_pages(3, 2)) == list(list_planted_pages(3, 5))[:2]
    assert next(list_planted_pages(3, 1)) != next(list_planted_pages(4, 1))


def test_an_altered_quote_never_stands_in_its_document():
    texts = {bundle.sha256: whole(bundle) for bundle in documents()}
    found = [
        case.made
        for case in altered()
        if case.made.kind is not Kind.NEGATION_CUT and squeezed(case.made.quote) in texts[case.bundle.sha256]
    ]
    assert found == []


def test_a_planted_quote_derives_from_its_page():
    for case in altered():
        made, page = case.made, case.bundle.page(case.made.page)
        assert made.genuine in page.text
        assert made.quote != made.genuine
        assert (made.genuine == "") == (made.kind is Kind.FABRICATED)
        assert 3 <= len(made.quote.split()) <= 45


def test_only_one_place_is_altered():
    for case in altered():
        made = case.made
        if made.kind in {Kind.FABRICATED, Kind.SPLICED, Kind.NEGATION_CUT}:
            continue
        old, arrow, new = made.change.partition(" → ")
        if not arrow:
            old, new = made.change.removeprefix("dropped: "), ""
        places = [match.start() for match in re.finditer(re.escape(old), made.genuine)]
        changed = {squeezed(made.genuine[:at] + new + made.genuine[at + len(old) :]) for at in places}
        assert squeezed(made.quote) in changed


@pytest.mark.parametrize(
    ("kind", "text", "old", "new"),
    [
        (Kind.DIGIT, "The mass measures 42 mm today", "2", "7"),
        (Kind.DECIMAL, "The mass measures 42 mm today", "42", "4.2"),
        (Kind.DECIMAL, "The mass measures 4.2 mm today", "4.2", "42"),
        (Kind.DECIMAL, "The dose was 0.5 mg daily", "0.5", "0.05"),
        (Kind.SIGN, "The T-score was -2.5 at the hip", "-", ""),
        (Kind.DATE, "Seen on March 5, 2021 by us", "March", "April"),
        (Kind.DATE, "Seen on 03/25/2021 by us", "25", "26"),
        (Kind.DATE, "Seen on 2021-03-25 by us", "03", "04"),
        (Kind.UNIT, "A nodule of 8 mm was seen", "mm", "cm"),
        (Kind.UNIT, "In 45% of the cells", "%", ""),
        (Kind.UNIT, "For two weeks she has coughed", "weeks", "months"),
        (Kind.NUMBER_WORD, "A tumor of stage II was found", "stage II", "stage III"),
        (Kind.COMPARATOR, "A value of < 5 was found", "<", ">"),
        (Kind.COMPARATOR, "At least three nodes are needed", "At least", "At most"),
        (Kind.NEGATION, "There is no metastasis in the liver", "no", ""),
        (Kind.NEGATION, "She denies fever or chills", "denies", "reports"),
        (Kind.NEGATION, "The margin is involved by tumor", "is", "is not"),
        (Kind.MODAL, "This may be a metastasis", "may be", "is"),
        (Kind.MODAL, "A possible fracture of the hip", "possible", "definite"),
        (Kind.LATERALITY, "A mass of the left breast", "left", "right"),
        (Kind.POLARITY, "The tumor cells are POSITIVE for it", "POSITIVE", "NEGATIVE"),
        (Kind.PATHOGENICITY, "This variant is likely pathogenic today", "likely pathogenic", "pathogenic"),
        (Kind.GENE, "A variant in BRCA1 was found", "BRCA1", "BRCA2"),
        (Kind.VARIANT, "The variant c.5266dupC was found", "dup", "del"),
        (Kind.VARIANT, "The variant p.Val600Glu was found", "Glu", "Lys"),
        (Kind.VARIANT, "The variant V600E was found", "E", "K"),
        (Kind.VARIANT, "A loss at 17q21 was found", "q", "p"),
        (Kind.NAME, "Seen by Dr. Miller in the clinic", "Miller", "Vasquez"),
        (Kind.CONTENT_WORD, "A mass in the liver was seen", "liver", "lung"),
        (Kind.INSERTED_WORD, "The melanoma was removed long ago", "melanoma", "metastatic melanoma"),
        (Kind.DELETED_WORD, "A family history of breast cancer", "family history of", "history of"),
        (Kind.SWAPPED, "ER positive, PR negative today", "positive, PR negative", "negative, PR positive"),
        (Kind.SWAPPED, "sodium 138, potassium 4.1", "138, potassium 4.1", "4.1, potassium 138"),
    ],
)
def test_what_can_be_altered(kind, text, old, new):
    assert new in options(kind, text)[old]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Kind.DIGIT, "1. Hypertension is well controlled"),
        (Kind.DIGIT, "The variant c.5266dupC in BRCA1"),
        (Kind.DECIMAL, "Tel (555) 862-6110 in the office"),
        (Kind.SIGN, "- 5 mg of the drug"),
        (Kind.DATE, "She may come back later"),
        (Kind.COMPARATOR, "The variant c.123A>G was found"),
        (Kind.COMPARATOR, "The upper limb and lower lobe"),
        (Kind.NEGATION, "Not only the liver and lung"),
        (Kind.NEGATION, "Patient No. 12 of the study"),
        (Kind.MODAL, "As soon as possible, please"),
        (Kind.MODAL, "Seen in May 2020 by us"),
        (Kind.LATERALITY, "She left the hospital against advice"),
        (Kind.LATERALITY, "You have the right to refuse"),
        (Kind.LATERALITY, "Both left and right ovaries"),
        (Kind.POLARITY, "History of present illness: see above"),
        (Kind.POLARITY, "Each marker is positive or negative"),
        (Kind.PATHOGENICITY, "Germline - Pathogenic / Likely Pathogenic"),
        (Kind.GENE, "ALL CRITERIA WERE MET HERE"),
        (Kind.NAME, "Patient: Name and Date of birth"),
        (Kind.DELETED_WORD, "A 3-week history of fatigue"),
        (Kind.SWAPPED, "The tissue measures 5.0 x 3.8 x 2.5 cm"),
        (Kind.SWAPPED, "The left breast and the right breast"),
    ],
)
def test_what_would_not_change_the_meaning_is_left_alone(kind, text):
    assert options(kind, text) == {}


def test_a_document_without_text_yields_nothing():
    assert [*plant(document("", ""), 0), *noise(document("", ""), 0)] == []
    assert list(list_planted_pages(0, 0)) == []


SAME = {
    NoiseKind.EXACT: lambda text: text,
    NoiseKind.WHITESPACE: lambda text: " ".join(text.split()),
    NoiseKind.CASE: str.casefold,
    NoiseKind.HYPHEN: lambda text: re.sub(r"[‐‑–—−\n\s-]", "", text),
    NoiseKind.LIGATURE: lambda text: text.replace("ﬁ", "fi").replace("ﬂ", "fl").replace("ﬀ", "ff").replace("ﬃ", "ffi"),
    NoiseKind.QUOTES: lambda text: re.sub("[‘’“”\"']", "", text),
    NoiseKind.ENDING: lambda text: text.rstrip(".…,;: "),
    NoiseKind.PARAGRAPH_JOIN: lambda text: text.replace("\n", " "),
    NoiseKind.PAGE_JOIN: lambda text: text.replace("\n", " "),
}


def test_noise_is_nothing_but_noise():
    for case in honest():
        same = SAME.get(case.made.kind)
        if same:
            assert same(case.made.quote) == same(case.made.genuine), case.made
