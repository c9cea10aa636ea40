"""The lexicon is data that is checked on loading, and applied to pages by pure functions."""

from __future__ import annotations

import copy
import re
import tomllib
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.classification.offline.lexicon import (
    CueMatch,
    apply_lexicon,
    load_lexicon,
    parse_lexicon,
    rewrite_word_start_for_speed,
    score_cues,
)
from evalkit.classification.schema import DocumentType
from evalkit.documents.bundle import Block, BlockType, LayoutMetadata, Page, PageStatus
from evalkit.errors import UsageError

BOX = (0.1, 0.1, 0.9, 0.2)
NOTE, PATHOLOGY, GENOMIC, RADIOLOGY, OTHER = DocumentType


def make_page(*paragraphs: str, kind: BlockType = "paragraph") -> Page:
    """A page of these paragraphs; one that begins with # is a header or footer."""
    blocks = tuple(Block(type=kind, text=p.lstrip("#"), box=BOX, furniture=p.startswith("#")) for p in paragraphs)
    texts = tuple(block.text for block in blocks)
    return Page(
        page_num=1,
        status=PageStatus.TEXT if texts else PageStatus.BLANK,
        text="\n".join(texts),
        paragraphs=texts,
        layout_metadata=LayoutMetadata(block_types=(kind,) * len(texts), has_tables=False),
        blocks=blocks,
    )


@pytest.fixture
def data() -> dict[str, Any]:
    """The shipped file, free to be spoilt."""
    return copy.deepcopy(tomllib.loads((files("evalkit.classification.offline") / "lexicon.toml").read_text("utf-8")))


# ------------------------------------------------------------------------------------------------------- loading


def test_shipped_lexicon_speaks_of_all_types_and_zones() -> None:
    groups = load_lexicon().groups
    assert {group.document_type for group in groups} == set(DocumentType)
    for kind in DocumentType:
        assert {group.zone for group in groups if group.document_type is kind} == {"title", "heading", "body"}
    assert load_lexicon().version
    assert load_lexicon() is load_lexicon()


@pytest.mark.parametrize(
    ("table", "change", "said"),
    [
        ("group", {"weight": 0}, "weight: Input should be greater than 0"),
        ("group", {"weight": True}, "weight: Input should be a valid number"),
        ("group", {"weight": "3"}, "weight: Input should be a valid number"),
        ("group", {"limit": -1}, "limit: Input should be greater than 0"),
        ("group", {"type": "Letter"}, "type: Input should be 'Clinical Note'"),
        ("group", {"zone": "margin"}, "zone: Input should be 'title'"),
        ("group", {"phrases": ["gene", "Genes"]}, "phrases: the phrase 'gene' appears twice"),
        ("group", {"phrases": ["--"]}, "phrases → 0: the phrase '--' contains no word"),
        ("group", {"phrases": [3]}, "phrases → 0: Input should be a valid string"),
        ("group", {"patterns": ["(open"]}, "patterns → 0: the pattern '(open' is not a valid regular expression"),
        ("group", {"patterns": ["x*"]}, "patterns → 0: the pattern 'x*' matches empty text"),
        ("group", {"symbols": ["TWO WORDS"]}, "symbols → 0: String should match pattern"),
        ("group", {"phrases": [], "patterns": [], "symbols": []}, "has no phrases, symbols or patterns"),
        ("group", {"wieght": 2}, "wieght: Extra inputs are not permitted"),
        ("group", {"weight": None}, "weight: Field required"),
        ("start", {"where": "middle"}, "where: Input should be 'top'"),
        ("start", {"weight": -2}, "weight: Input should be greater than 0"),
    ],
)
def test_a_wrong_entry_is_named(data: dict[str, Any], table: str, change: dict[str, Any], said: str) -> None:
    row = data[table][0]
    row.update(change)
    for key in [key for key, value in change.items() if value is None]:
        del row[key]
    with pytest.raises(UsageError) as error:
        parse_lexicon(data)
    assert said in error.value.message
    assert (row.get("id") or row["name"]) in error.value.message


def test_an_entry_without_a_name_is_numbered(data: dict[str, Any]) -> None:
    del data["group"][1]["id"]
    with pytest.raises(UsageError, match="group → 1 → id: Field required"):
        parse_lexicon(data)


def test_two_entries_of_one_name(data: dict[str, Any]) -> None:
    data["group"].append(data["group"][0])
    with pytest.raises(UsageError, match="two entries have the id"):
        parse_lexicon(data)


def test_a_lexicon_without_version(data: dict[str, Any]) -> None:
    del data["version"]
    with pytest.raises(UsageError, match="version: Field required"):
        parse_lexicon(data)


# ------------------------------------------------------------------------------------------------------- reading


def terms(page: Page, kind: DocumentType, zone: str) -> set[str]:
    return {cue.term for cue in apply_lexicon(page).cues if cue.document_type is kind and cue.zone == zone}


def test_cues_say_where_they_stand() -> None:
    page = make_page("Jane Doe", "GROSS DESCRIPTION: Received in\nformalin is an ellipse of skin.")
    for cue in apply_lexicon(page).cues:
        assert 0 <= cue.start < cue.end <= len(page.text)
    found = {page.text[cue.start : cue.end] for cue in apply_lexicon(page).cues}
    assert {"GROSS DESCRIPTION", "Received in\nformalin", "ellipse of skin"} <= found


@pytest.mark.parametrize(
    "text",
    ["FINDINGS: The liver is normal.", "Findings\nThe liver is normal.", "2. Findings:", "FINDINGS / IMPRESSION:"],
)
def test_headings_are_heard_as_headings(text: str) -> None:
    assert "finding" in terms(make_page(text), RADIOLOGY, "heading")


@pytest.mark.parametrize("text", ["the findings were discussed", "Incidental findings were present: two cysts"])
def test_the_same_word_in_a_sentence_is_no_heading(text: str) -> None:
    assert "finding" not in terms(make_page(text), RADIOLOGY, "heading")


def test_a_heading_block_is_a_heading_without_colon() -> None:
    assert "hospital course" in terms(make_page("hospital course", kind="heading"), NOTE, "heading")


def test_a_title_is_one_only_at_the_top() -> None:
    filler = [f"Line {number} of other words" for number in range(20)]
    assert terms(make_page("PATHOLOGY REPORT", *filler), PATHOLOGY, "title")
    assert not terms(make_page(*filler, "PATHOLOGY REPORT"), PATHOLOGY, "title")


def test_a_sentence_about_a_report_is_no_title() -> None:
    assert not terms(make_page("The pathology report was reviewed with the patient."), PATHOLOGY, "title")


@pytest.mark.parametrize("box", ["☐ ", "□ ", "[ ] ", "• ", "- ", "____ ", "? "])
def test_a_tick_box_is_no_title(box: str) -> None:
    assert not terms(make_page(f"{box}Discharge Summary", f"{box}Radiology Report"), NOTE, "title")


def test_a_list_of_kinds_of_records_has_one_title() -> None:
    page = make_page("Release of Medical Records", "Discharge Summary", "Radiology Report")
    assert terms(page, OTHER, "title")
    assert not terms(page, NOTE, "title")
    assert not terms(page, RADIOLOGY, "title")


def test_furniture_says_nothing() -> None:
    reading = apply_lexicon(make_page("#PATHOLOGY REPORT gross description: received in formalin"))
    assert reading.cues == ()
    assert not any(reading.scores.values())


def test_symbols_need_their_case() -> None:
    assert "ALK" in terms(make_page("ALK was sequenced"), GENOMIC, "body")
    assert "ALK" not in terms(make_page("alk was low"), GENOMIC, "body")


def test_the_longer_phrase_counts_once() -> None:
    page = make_page("PAST MEDICAL HISTORY: none")
    assert terms(page, NOTE, "heading") == {"past medical history"}
    assert not terms(page, NOTE, "body")


# ------------------------------------------------------------------------------------------------------- scoring


def a_cue(term: str, entry: str = "pathology-microscopy") -> CueMatch:
    group = load_lexicon().groups_by_id[entry]
    return CueMatch(group.document_type, entry, group.zone, group.weight, 0, 1, term)


def test_repeats_never_count_more_than_double() -> None:
    weight = load_lexicon().groups_by_id["pathology-microscopy"].weight
    scores = [score_cues([a_cue("stroma")] * times)[PATHOLOGY] for times in (0, 1, 2, 50)]
    assert scores[:3] == [0, weight, 1.5 * weight]
    assert scores[2] < scores[3] <= 2 * weight


def test_two_words_say_more_than_one_word_twice() -> None:
    assert score_cues([a_cue("stroma"), a_cue("mitose")])[PATHOLOGY] > score_cues([a_cue("stroma")] * 2)[PATHOLOGY]


def test_a_group_has_a_limit() -> None:
    group = load_lexicon().groups_by_id["genomic-gene"]
    assert score_cues([a_cue(symbol, group.id) for symbol in group.symbols])[GENOMIC] == group.max_page_weight


def test_one_repeated_word_decides_nothing() -> None:
    assert max(apply_lexicon(make_page("variant " * 500)).scores.values()) <= 1


# ------------------------------------------------------------------------------------ starts, numbers and vendors


def test_what_a_first_page_shows() -> None:
    page = make_page(
        "Lakeview Medical Center", "12 Oak Street  Tel (555) 123-4567", "Accession: S24-1188", "CHIEF COMPLAINT: cough"
    )
    signs = {sign.id for sign in apply_lexicon(page).beginning_signs}
    assert {"letterhead-organisation", "letterhead-address", "record-number", "opening-section"} <= signs
    assert apply_lexicon(page).record_numbers == {"s24-1188"}


def test_what_a_last_page_shows() -> None:
    assert apply_lexicon(make_page("Follow up in a week.", "Electronically signed by A. Moore, MD")).is_signed_off
    assert not apply_lexicon(make_page("Electronically signed by A. Moore, MD", *["More text"] * 5)).is_signed_off


@pytest.mark.parametrize("text", ["Page 2 of 5", "#page 2/5", "P.002/005"])
def test_page_counts_are_read_in_footers_too(text: str) -> None:
    assert apply_lexicon(make_page("Some text", text)).pagination_marks == ((2, 5),)


@pytest.mark.parametrize(
    ("paragraphs", "vendors"),
    [
        (["Quest Diagnostics", "CBC"], ("Quest Diagnostics",)),
        (["#LABORATORY CORPORATION OF AMERICA", "CBC"], ("LabCorp",)),
        (["Report", *["text"] * 9, "Testing performed at: ARUP Laboratories, Salt Lake City"], ("ARUP Laboratories",)),
        (["Office Visit", *["text"] * 9, "She had blood drawn at Quest Diagnostics last week."], ()),
        (["Invitae", "Tested by Ambry Genetics"], ("Invitae", "Ambry Genetics")),
        (["Requested by Dr. Tempusson"], ()),
    ],
)
def test_vendors_are_those_who_report(paragraphs: list[str], vendors: tuple[str, ...]) -> None:
    assert apply_lexicon(make_page(*paragraphs)).vendors == vendors


def test_an_empty_page_says_nothing() -> None:
    reading = apply_lexicon(make_page())
    assert (reading.cues, reading.beginning_signs, reading.vendors) == ((), (), ())
    assert not any(reading.scores.values())


BEGUN = (r"\bpN(?:[0-3]|x)\b", r"\bp\.\(?[A-Z]\d", r"\bnuc ish\b", r"\b4[5-7],X", r"\ba\.?b", r"\brs\d+|chr")


@pytest.mark.parametrize("pattern", [*BEGUN, r"\bcolou?r", r"\bab+c", r"\ba|b", r"\bab{2}", r"(?i)\brs\d"])
@given(st.text(st.sampled_from("aábcnNpPrRsxXcho ur.(A1254,_-\n"), max_size=40))
def test_a_quick_expression_finds_the_same(pattern: str, text: str) -> None:
    assert (rewrite_word_start_for_speed(pattern) != pattern) is (pattern in BEGUN)
    for said in (text, f"{text} pN1 p.(A1 xpN2 nuc ish ishnuc ish 46,X colour abbc rs12 ars12 chr ab"):
        found, wanted = (
            list(re.finditer(one, said, re.MULTILINE)) for one in (rewrite_word_start_for_speed(pattern), pattern)
        )
        assert [one.span() for one in found] == [one.span() for one in wanted]
