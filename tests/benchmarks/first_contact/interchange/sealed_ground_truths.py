"""The sealed half of the truths that go out and come back."""

from __future__ import annotations

from collections.abc import Iterator

from .truths import RoundTrip, Truth, TruthIdeas

idea = TruthIdeas("sealed")


def build() -> Iterator[RoundTrip]:
    """All cases of this half."""
    return idea.build()


def change(**changes: object) -> object:
    """An idea that only changes fields of the record."""
    return lambda t: t.record.update(changes)


SILVER = {
    "reviewer": None,
    "ground_truth_source": "AUTO_ACCEPTED",
    "vouched": [],
    "review_reason": None,
    "packet_sha256": None,
}
CORRECTED = {"ground_truth_source": "SME_CORRECTED"}
idea.add([
    ("plain_report", "G3", "one genomic report, validated", change()),
    ("plain_five", "O1 R2 G1 N3 P1", "all five types in one file", change()),
    ("note_json", "R1", "a note that is JSON", change(**CORRECTED, correction_notes='{"outcome": "validated", "n": [1, null]}')),
    ("note_null", "R1", "a note that is the word null", change(**CORRECTED, correction_notes="null")),
    ("note_number", "R1", "a note that is a number with leading zeros", change(**CORRECTED, correction_notes="007")),
    ("note_date", "R1", "a note that a spreadsheet would take for a date", change(**CORRECTED, correction_notes="MARCH1")),
    ("note_separator", "R1", "a note with line and paragraph separators and a vertical tab",
     change(**CORRECTED, correction_notes="a\u2028b\u2029c\x0bd\x85e")),
    ("note_commas", "R1", "a note with commas, semicolons, pipes and carets", change(**CORRECTED, correction_notes="a,b;c|d^e~f\\.br\\")),
    ("note_emoji", "R1", "a note of emoji with joiners and a flag", change(**CORRECTED, correction_notes="👩🏽‍⚕️ 🇨🇭 ✅")),
    ("note_backslashes", "R1", "a note that ends with a backslash", change(**CORRECTED, correction_notes="C:\\scans\\new\\")),
    ("note_reply", "R1", "a note with a quoted reply of another person", change(**CORRECTED, correction_notes="> See page 2\n>> Done\n-- \ndr")),
    ("name_at", "R1", "a reviewer who is an address of mail", change(reviewer="ines.dà-silva+sme@klinik.example")),
    ("name_digits", "R1", "a reviewer who is a number", change(reviewer="00042")),
    ("name_long", "R1", "a reviewer's name of 200 letters", change(reviewer="von " * 49 + "Berg")),
    ("name_cyrillic", "R1", "a reviewer whose name looks Latin and is Cyrillic", change(reviewer="Dr Оreа")),
    ("silver_other", "O4", "silver, all Other", change(**SILVER)),
    ("silver_audit", "R2", "silver that was drawn for an audit and not seen yet",
     change(**SILVER | {"review_reason": "audit", "inclusion_probability": 0.125})),
    ("vouched_segment", "P1 N2 R1", "the second document alone is vouched for", change(vouched=["segment:2"])),
    ("vouched_boundaries", "P1 N1 R1", "both boundaries, no type", change(vouched=["boundary:2", "boundary:3"])),
    ("vouched_mixture", "P1 N2", "mixture and type, not the segments", change(vouched=["dominant_type", "mixture"])),
    ("vouched_all", "P1 N1", "everything that can be vouched for", change(
        vouched=["dominant_type", "segments", "mixture", "boundary:2", "segment:1", "segment:2", "patients"])),
    ("probability_one", "R1", "drawn with certainty", change(review_reason="requested", inclusion_probability=1.0)),
    ("probability_long", "R1", "a probability of 17 digits", change(review_reason="sample", inclusion_probability=0.12345678901234568)),
    ("zone_zulu", "R1", "reviewed in the last second of a year, with Z", change(reviewed_at="2026-12-31T23:59:59Z")),
    ("zone_west", "R1", "reviewed west of Greenwich on a leap day", change(reviewed_at="2028-02-29T19:00:00-10:00")),
    ("dots_in_name", "R1", "a document whose name has a dot like a case of a further opinion", change(doc_id="scan-second")),
    ("long_name", "R1", "a document whose name has 120 letters", change(doc_id="A" * 100 + "_" + "b" * 19)),
    ("page_one_of_300", "O1 N299", "one page, then 299", change()),
    ("alternating", " ".join(["G1", "O1"] * 12), "reports and Other by turns", change()),
    ("ten_pages_each", "R10 P10 N10 G10 O10", "fifty pages in equal shares: the dominant type is a tie", change()),
])  # fmt: skip


@idea("undeterminable_second", "R2", "validated, then a second look said that nobody can tell")
def _(t: Truth) -> None:
    t.review("validated")
    t.review("undeterminable", correction_notes="pages missing:\n2 of 4")
    t.end("nothing", "undeterminable")


@idea("corrected_segments", "R1 R2 N1", "the expert moved a boundary and the mixture was not looked at")
def _(t: Truth) -> None:
    t.record |= {**CORRECTED, "vouched": ["dominant_type", "segments"], "correction_notes": "two reports, not one"}


@idea("all_embedded", "R2", "nothing is primary: two embedded types at half each")
def _(t: Truth) -> None:
    for letter in "RP":
        t.presence(1, letter).update(presence_level="EMBEDDED_RAW", segment_share=0.5, confidence=0.7)
    t.quote(1, "P", "Diagnosis quoted in full: fibroadenoma.", 1)


@idea("sum_above_one", "R2", "shares of one segment that sum to 1.2, as the expert left them")
def _(t: Truth) -> None:
    t.presence(1, "R").update(segment_share=0.8)
    t.presence(1, "G").update(presence_level="EMBEDDED_RAW", segment_share=0.4, confidence=0.6)
    t.quote(1, "G", "BRAF p.V600E (outside laboratory).", 2)


@idea("three_types_left_out", "R1", "a composition of two rows: the other types are not named")
def _(t: Truth) -> None:
    t.segments[0]["segment_composition"] = t.segments[0]["segment_composition"][3:]


@idea("mixture_empty", "R1", "a mixture without any row, which nobody vouched for")
def _(t: Truth) -> None:
    t.answer["document_mixture"] = []
    t.record["vouched"] = ["dominant_type", "segments"]


@idea("one_of_three_struck", "G2", "one of three quotes was struck; the others stay in their order")
def _(t: Truth) -> None:
    t.quote(1, "G", "TP53 c.743G>A p.(Arg248Gln)", 2, vouched=True)
    t.presence(1, "G")["top_evidence"].pop(0)


@idea("quote_in_picture", "R1", "a quote that was seen only in a picture of the page")
def _(t: Truth) -> None:
    t.quote(1, "R", "L KNEE AP", 1, printed="", seen_in_picture=True, boxes=[[1, 300, 12.5, 355.75, 20]])


@idea("quote_many_boxes", "P2", "one quote with boxes on two pages")
def _(t: Truth) -> None:
    t.quote(1, "P", "Margins: see the next page.", 1, boxes=[[1, 46, 700, 300, 712], [2, 46, 46.01, 120, 57.99]])


@idea("quote_shape", "P1", "a quote with double spaces, a tab and typographic ligatures")
def _(t: Truth) -> None:
    t.quote(1, "P", "Speciﬁc  stain:\tpositive – diﬀuse", 1)


@idea("quote_empty_anchors", "N1", "anchors with an empty word, a repeated one and a comma")
def _(t: Truth) -> None:
    t.presence(1, "N")["top_evidence"][0]["anchors_found"] = ["", "Plan", "Plan", "rest, fluids"]


@idea("quotes_200", "N2", "200 quotes for one presence")
def _(t: Truth) -> None:
    for number in range(200):
        t.quote(1, "N", f"Entry {number}: pulse {60 + number % 40}.", 1 + number % 2)


@idea("three_patients_family", "N1 R1 N1", "a mother and two children; the first and last page are of one person")
def _(t: Truth) -> None:
    for segment, key in zip(t.segments, "aba", strict=True):
        seen = ["patient", "date_of_birth", "sex"]
        segment["patient"] = {"name_key": t.hash(key), "number_key": None, "fields_seen": seen}


@idea("silver_replaced", "R1", "silver first, then a validation, then a correction by somebody else")
def _(t: Truth) -> None:
    t.record |= SILVER
    t.revise(
        ground_truth_source="SME_VALIDATED",
        reviewer="dr_lee",
        vouched=["dominant_type"],
        packet_sha256=t.hash("packet"),
    )
    t.revise(ground_truth_source="SME_CORRECTED", reviewer="dr_o’hara", corrected_dominant_type="Other")


@idea("vendors", "G1", "vendor signals with markup and a self-evaluation that is an object")
def _(t: Truth) -> None:
    t.answer["vendor_signals"] = ["Müller & Söhne <GmbH>", "Quest", ""]
    t.answer["self_evaluation"] = {"sure": 0.5, "why": ["a", {"b": None}], "π": True}


@idea("type_unknown", "R1", "an answer that names a type which is none of the table's")
def _(t: Truth) -> None:
    t.as_classification()["segments"][0]["dominant_type"] = "Operative Note"
    t.end("refused", "type")


@idea("newer_version", "R1", "a truth of a later version of the program")
def _(t: Truth) -> None:
    t.record["schema_version"] = 999
    t.end("refused", "version")
