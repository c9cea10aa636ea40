"""The open half of the truths that go out and come back."""

from __future__ import annotations

from collections.abc import Iterator

from .truths import RoundTrip, Truth, TruthIdeas

idea = TruthIdeas("open")


def build() -> Iterator[RoundTrip]:
    """All cases of this half."""
    return idea.build()


def note(value: str) -> object:
    """An idea that only writes a note."""
    return lambda t: t.record.update(correction_notes=value, ground_truth_source="SME_CORRECTED")


idea.add([
    ("plain_note", "N2", "one note, validated", lambda t: None),
    ("plain_three", "P2 N1 R1", "three documents, validated", lambda t: None),
    ("note_lines", "N1", "a note of three lines with an empty one", note("first line\n\nthird line\n")),
    ("note_windows_lines", "N1", "a note with Windows' ends of lines and a tab", note("first\r\nsecond\tafter a tab\r\n")),
    ("note_quotes", "N1", "a note with all kinds of quotation marks", note("He said \"no\" – 'never', “niemals”, «jamais», `none`, \\ and /")),
    ("note_markup", "N1", "a note that looks like HTML and like a FHIR reference", note("<b>5 < 6 & 7 > 2</b> <script>alert(1)</script> Patient/123 &amp;")),
    ("note_spaces", "N1", "a note that begins and ends with spaces", note("  indented, then two spaces  ")),
    ("note_formula", "O1", "a note that a spreadsheet would take for a formula", note("=HYPERLINK(\"http://example.org\";\"x\")")),
    ("note_long", "N1", "a note of 40,000 letters", note("Long. " * 6_667)),
    ("note_no_words", "N1", "a note of one no-break space and a zero-width joiner", note("\u00a0\u200d")),
    ("name_umlaut", "N1", "a reviewer with umlauts and an apostrophe", lambda t: t.record.update(reviewer="Dr. Jörg O’Müller-Šťastný")),
    ("name_right_to_left", "N1", "a reviewer's name in Hebrew with a note in Arabic",
     lambda t: t.record.update(reviewer="ד״ר כהן", correction_notes="تقرير مختبر", ground_truth_source="SME_CORRECTED")),
    ("name_joined", "N1", "a decomposed and a composed é in the reviewer's name", lambda t: t.record.update(reviewer="e\u0301ve é")),
    ("reviewer_missing", "N1", "silver of nobody", lambda t: t.record.update(
        reviewer=None, ground_truth_source="AUTO_ACCEPTED", vouched=[], review_reason=None, packet_sha256=None)),
    ("silver_three", "P1 N1 G1", "silver of three documents", lambda t: t.record.update(
        reviewer=None, ground_truth_source="AUTO_ACCEPTED", vouched=[], review_reason=None, packet_sha256=None)),
    ("vouched_type", "N2 P1", "only the type is vouched for", lambda t: t.record.update(vouched=["dominant_type"])),
    ("vouched_no_mixture", "N2 P1", "type and segments, not the mixture", lambda t: t.record.update(vouched=["dominant_type", "segments"])),
    ("vouched_boundary", "N2 P1 R1", "one boundary of two is vouched for", lambda t: t.record.update(vouched=["boundary:3"])),
    ("vouched_nothing", "N2", "a correction in which nothing is vouched for", lambda t: t.record.update(vouched=[])),
    ("probability_small", "N1", "drawn with a very small probability", lambda t: t.record.update(
        review_reason="sample", inclusion_probability=1e-7)),
    ("probability_third", "N1", "drawn with a probability that no decimal holds", lambda t: t.record.update(
        review_reason="audit", inclusion_probability=1 / 3)),
    ("zone_east", "N1", "reviewed east of Greenwich, with microseconds", lambda t: t.record.update(
        reviewed_at="2026-03-29T02:30:00.000001+05:45")),
    ("single_other", "O1", "one page, Other", lambda t: None),
    ("other_between", "N1 O1 N1", "one page of Other between two notes", lambda t: None),
    ("same_type_twice", "P1 P1 P1", "three documents of one type, one after another", lambda t: None),
    ("page_300", "N150 R149 O1", "300 pages in three documents", lambda t: None),
    ("segments_60", " ".join(["N1", "R1", "P1"] * 20), "60 documents of a page each", lambda t: None),
])  # fmt: skip


@idea("undeterminable", "N2", "an expert could not tell")
def _(t: Truth) -> None:
    t.review("undeterminable", correction_notes="illegible scan")
    t.end("nothing", "undeterminable")


@idea("reopened", "N2", "validated and then opened again: there is no truth now")
def _(t: Truth) -> None:
    t.review("validated")
    t.review("reopened")
    t.end("nothing", "reopened")


@idea("corrected_type", "O2", "called Other by the program, a note by the expert")
def _(t: Truth) -> None:
    t.record |= {
        "ground_truth_source": "SME_CORRECTED",
        "corrected_dominant_type": "Clinical Note",
        "vouched": ["dominant_type"],
    }
    t.answer["dominant_type_overall"] = "Clinical Note"


@idea("embedded", "N3", "a note with a pathology report copied in and a scan mentioned: shares overlap")
def _(t: Truth) -> None:
    for letter, level, share, confidence in (
        ("N", "PRIMARY", 0.6, 0.91),
        ("P", "EMBEDDED_RAW", 0.35, 0.8),
        ("R", "MENTION_ONLY", 0.05, 0.55),
    ):
        t.presence(1, letter).update(presence_level=level, segment_share=share, confidence=confidence)
    t.quote(1, "P", "Final diagnosis (copied): ductal carcinoma in situ.", 2)
    t.quote(1, "R", "CT of the chest last year was normal.", 3)


@idea("shares_of_thirds", "N3", "shares of a third each, which sum to 1 only nearly")
def _(t: Truth) -> None:
    for letter in "NPR":
        t.presence(1, letter).update(presence_level="PRIMARY", segment_share=1 / 3, confidence=0.5)


@idea("share_zero", "N2", "a presence with a quote and a share of zero")
def _(t: Truth) -> None:
    t.presence(1, "G").update(presence_level="MENTION_ONLY", segment_share=0.0, confidence=0.4)
    t.quote(1, "G", "Genetic testing was discussed.", 2)


@idea("refuted", "N2", "the expert struck the only quote of a presence, which is now without evidence")
def _(t: Truth) -> None:
    t.presence(1, "P").update(presence_level="NO_EVIDENCE", segment_share=0.0, top_evidence=[])
    t.presence(1, "N").update(share_vouched=False)


@idea("refuted_primary", "P1", "the type stays, all its quotes are refuted")
def _(t: Truth) -> None:
    t.presence(1, "P").update(top_evidence=[], evidence="refuted")


@idea("own_quote", "N1", "a quote of the expert's own, with boxes on the page")
def _(t: Truth) -> None:
    t.quote(1, "N", "Blood pressure 128/76.", 1, by="expert", vouched=True, boxes=[[1, 46.0, 80.55, 170.25, 92.1]])


@idea("quote_unseen", "N1", "a quote that nobody looked at")
def _(t: Truth) -> None:
    t.quote(1, "N", "Weight 71 kg.", 1, vouched=False)


@idea("quote_unicode", "G1", "quotes with Greek letters, a micro sign, minus, soft hyphen and an astral letter")
def _(t: Truth) -> None:
    t.quote(1, "G", "β-globin −28 (A→G), 5 µg/ml, ≥ 99 %, \U0001d6fd", 1)


@idea("quote_over_lines", "N1", "a quote over three printed lines")
def _(t: Truth) -> None:
    t.quote(1, "N", "The cough began\nafter a journey\nby train.", 1)


@idea("quote_twice", "R2", "the same quote on two pages")
def _(t: Truth) -> None:
    t.quote(1, "R", "Addendum: no change.", 1)
    t.quote(1, "R", "Addendum: no change.", 2)


@idea("two_patients", "N1 N1", "two patients by their keys")
def _(t: Truth) -> None:
    for index, segment in enumerate(t.segments):
        segment["patient"] = {
            "name_key": t.hash(f"n{index}"),
            "number_key": t.hash(f"m{index}"),
            "fields_seen": ["patient", "mrn"],
        }
    t.record["vouched"] = ["dominant_type", "segments", "patients"]


@idea("patient_half_known", "N1 P1", "one patient by number only, another without any key")
def _(t: Truth) -> None:
    t.segments[0]["patient"] = {"name_key": None, "number_key": t.hash("m"), "fields_seen": ["accession"]}
    t.segments[1]["patient"] = {"name_key": None, "number_key": None, "fields_seen": []}


@idea("three_revisions", "N1 P1", "validated, corrected, corrected again")
def _(t: Truth) -> None:
    t.revise(ground_truth_source="SME_CORRECTED", correction_notes="second", reviewed_at="2026-03-03T10:00:00+00:00")
    t.revise(
        ground_truth_source="SME_CORRECTED",
        correction_notes="third",
        reviewer="dr_bell",
        reviewed_at="2026-03-04T10:00:00+00:00",
    )


@idea("no_confidence", "N1", "an answer of another program without confidences")
def _(t: Truth) -> None:
    answer = t.as_classification()
    for row in [*answer["document_mixture"], *answer["segments"][0]["segment_composition"]]:
        del row["confidence"]
    t.end("refused", "confidence")


@idea("cannot_tell", "N2", "an answer whose program cannot tell the type")
def _(t: Truth) -> None:
    answer = t.as_classification()
    answer["dominant_type_overall"] = answer["segments"][0]["dominant_type"] = None
