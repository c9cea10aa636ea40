"""V4: specification 001, with contract ruling 6. Quotes are compared, not asked about."""

from __future__ import annotations

import re
from itertools import product

import pytest
from builders import (
    DOC2_6,
    EMBEDDED_RAW,
    GENOMIC,
    MENTION_ONLY,
    NO_EVIDENCE,
    NOTE,
    OTHER,
    PATHOLOGY,
    PRIMARY,
    RADIOLOGY,
    Json,
    an_issue,
    answer,
    codes,
    compose_single_type,
    copy_with,
    doc2_6,
    doc2_6_answer,
    document,
    evidence,
    finding,
    one_segment,
    page,
    parse_answer,
    presence,
    scanned_page,
    segment,
)

from evalkit.classification.findings import Findings
from evalkit.classification.v4_evidence_quality import (
    EvidenceAssessment,
    V4EvidenceQualityAssessor,
    compute_grounded_ratio,
    compute_quality_score,
    score_evidence,
)
from evalkit.documents.bundle import DocumentBundle
from evalkit.issue import Issue
from evalkit.llm.model import Answer

FOUND = "BRCA1 c.5266dupC was detected"


def assess(value: Json, bundle: DocumentBundle | None = None) -> EvidenceAssessment:
    return V4EvidenceQualityAssessor().validate(parse_answer(value), bundle or doc2_6())


def quoting(*quotes: Json) -> Json:
    """The genomic report of doc2_6 with these quotes as its evidence."""
    return copy_with(doc2_6_answer(), {"segments.0.segment_composition.0.top_evidence": list(quotes)})


def test_evidence_that_stands_in_the_document_is_faultless() -> None:
    assert assess(doc2_6_answer()) == ([], 1.0)


@pytest.mark.parametrize(
    ("quote", "code", "severity", "found_page"),
    [
        (evidence("deletion of exon eleven in TP53", 2), "V4-QUOTE-ABSENT", "BLOCKER", None),
        (evidence("", 2), "V4-QUOTE-ABSENT", "BLOCKER", None),
        (evidence("... — ...", 2), "V4-QUOTE-ABSENT", "BLOCKER", None),
        (evidence(FOUND, 3), "V4-QUOTE-WRONG-PAGE", "MAJOR", 2),
        (evidence(FOUND, 2, "c.5266dupC", "frameshift"), "V4-ANCHOR-ABSENT", "MAJOR", None),
        (evidence(FOUND, 2, "pathogenic"), "V4-ANCHOR-ABSENT", "MAJOR", None),  # it stands on page 3
        (evidence("heterozygous state", 2), "V4-SNIPPET-LENGTH", "MINOR", None),
        (evidence("Chief complaint: breast lump", 6), "V4-PAGE-OUTSIDE-SEGMENT", "MAJOR", None),
        (evidence(FOUND, 9), "V4-PAGE-OUTSIDE-FILE", "BLOCKER", None),
        (evidence(FOUND, 0), "V4-PAGE-OUTSIDE-FILE", "BLOCKER", None),
        (evidence(FOUND, -2), "V4-PAGE-OUTSIDE-FILE", "BLOCKER", None),
    ],
)
def test_each_fault_of_a_quote(quote: Json, code: str, severity: str, found_page: int | None) -> None:
    issues = [issue for issue in assess(quoting(quote)).issues if issue.code == code]
    (issue,) = issues
    assert (issue.severity, issue.ig_id, issue.agent, issue.auto_fixable) == (severity, "IG-3", "V4", False)
    assert (issue.quote, issue.page, issue.segment_index, issue.document_type) == (
        quote["snippet"],
        quote["page"],
        1,
        GENOMIC,
    )
    assert issue.found_page == found_page


@pytest.mark.parametrize(
    "quote",
    [
        evidence(FOUND, 2),
        evidence("brca1  C.5266dupC was\ndetected", 2),
        evidence(FOUND, 2, "c.5266dupC", "BRCA1", "heterozygous"),
        evidence("a heterozygous state", 2),
        evidence("GENOMIC SEQUENCING REPORT", 1),
    ],
)
def test_noise_in_a_quote_is_no_fault(quote: Json) -> None:
    assert assess(quoting(quote)).issues == []


@pytest.mark.parametrize(("words", "fires"), [(2, True), (3, False), (60, False), (61, True)])
def test_three_to_sixty_words_can_be_judged(words: int, fires: bool) -> None:
    text = " ".join(f"word{number}" for number in range(100))
    snippet = " ".join(text.split()[:words])
    issues = assess(one_segment(GENOMIC, 1, evidence(snippet, 1)), document(text)).issues
    assert codes(issues) == (["V4-SNIPPET-LENGTH"] if fires else [])


@pytest.mark.parametrize(
    ("level", "quotes", "fires"),
    [(PRIMARY, [], True), (PRIMARY, [evidence(FOUND, 2)], False), (MENTION_ONLY, [], False), (NO_EVIDENCE, [], False)],
)
def test_primary_without_evidence_is_a_blocker(level: str, quotes: list[Json], fires: bool) -> None:
    """Specification 001; V1 raises its MINOR beside it (ruling 6)."""
    composition = compose_single_type(NOTE, evidence("Chief complaint: breast lump", 6))
    composition[0] = presence(GENOMIC, level, 0.9, 0.0, *quotes)
    value = answer(segment(1, 1, 8, NOTE, composition), overall=NOTE, shares={NOTE: 1.0})
    issues = assess(value).issues
    assert [(issue.code, issue.severity, issue.document_type) for issue in issues] == (
        [("V4-PRIMARY-NO-EVIDENCE", "BLOCKER", GENOMIC)] if fires else []
    )


@pytest.mark.parametrize(
    "altered",
    [
        "BRCA1 c.5266dupG was detected in a heterozygous state",
        "BRCA1 c.5267dupC was detected in a heterozygous state",
        "BRCA2 c.5266dupC was detected in a heterozygous state",
        "Allele fraction 0.84 at 212x coverage",
        "Allele fraction 0.48 at 21x coverage",
    ],
)
def test_a_quote_with_other_digits_or_genes_never_passes(altered: str) -> None:
    issues = assess(quoting(evidence(altered, 2))).issues
    assert any(issue.severity in ("BLOCKER", "MAJOR") and issue.quote == altered for issue in issues)


@pytest.mark.parametrize(
    ("kind", "snippet", "severity"),
    [
        (OTHER, "my records may be sent to the insurer named above", "MINOR"),
        (NOTE, "my records may be sent to the insurer named above", "BLOCKER"),
        (OTHER, "my records may be sent to the insurer named below", "BLOCKER"),
    ],
)
def test_a_form_stays_one_whatever_its_sentences_turn(kind: str, snippet: str, severity: str) -> None:
    text = "I do not agree that my records may be sent to the insurer named above. Signature. Witness."
    found = [
        issue for issue in assess(one_segment(kind, 1, evidence(snippet, 1)), document(text)).issues if issue.difference
    ]
    assert [(issue.code, issue.severity) for issue in found] == [("V4-QUOTE-ALTERED", severity)]


def test_a_page_that_nobody_could_read_cannot_refute_a_quote() -> None:
    bundle = document(page(1, "", status="image"), "The report continues here with nothing of the kind.")
    (issue,) = assess(one_segment(GENOMIC, 2, evidence(FOUND, 1)), bundle).issues
    assert (issue.code, issue.severity) == ("V4-QUOTE-UNCERTAIN", "MAJOR")


@pytest.mark.parametrize(("quoted", "other"), [("5.2", "5.7"), ("5.7", "5.2")])
def test_a_quote_of_a_doubtful_word_goes_to_a_person(quoted: str, other: str) -> None:
    bundle = document(scanned_page(1, "Invasive carcinoma, the tumor measures 5.2 cm", {"5.2": "5.7"}))
    quote = evidence(f"Invasive carcinoma, the tumor measures {quoted} cm", 1)
    (issue,) = assess(one_segment(PATHOLOGY, 1, quote), bundle).issues
    assert (issue.code, issue.severity) == ("V4-QUOTE-UNCERTAIN", "MAJOR")
    assert dict(issue.facts) == {"kind": "number", "doubt": "reading", "quote_words": quoted, "page_words": other}


def test_doubtful_words_that_nothing_quotes_raise_nothing() -> None:
    bundle = document(scanned_page(1, "Invasive carcinoma of the breast\nPhone 555 0123", {"0123": "0128"}))
    assert not assess(one_segment(PATHOLOGY, 1, evidence("Invasive carcinoma of the breast", 1)), bundle).issues


def test_the_place_of_a_misplaced_quote_is_shown_as_boxes() -> None:
    (issue,) = [one for one in assess(quoting(evidence(FOUND, 3))).issues if one.code == "V4-QUOTE-WRONG-PAGE"]
    assert issue.verdict == "WRONG_PAGE"
    assert [box[0] for box in issue.boxes] == [2]


def with_presence(kind: str, level: str, share: float, *quotes: Json) -> Json:
    """The genomic report of doc2_6 with another type as a part of its first segment."""
    composition = [
        presence(GENOMIC, PRIMARY, 0.9, 1 - share, evidence(FOUND, 2)),
        presence(kind, level, 0.5, share, *quotes),
    ]
    return answer(segment(1, 1, 8, GENOMIC, composition), overall=GENOMIC, shares={GENOMIC: 1 - share, kind: share})


@pytest.mark.parametrize(
    ("kind", "level", "share", "quotes", "fires"),
    [
        (NOTE, EMBEDDED_RAW, 0.3, [], True),
        (NOTE, MENTION_ONLY, 0.11, [], True),
        (NOTE, MENTION_ONLY, 0.10, [], False),
        (NOTE, NO_EVIDENCE, 0.3, [], False),
        (OTHER, EMBEDDED_RAW, 0.3, [], False),
        (NOTE, EMBEDDED_RAW, 0.3, [evidence("Chief complaint: breast lump", 6)], False),
        (NOTE, EMBEDDED_RAW, 0.3, [evidence("Chief complaint: knee pain", 6)], True),
        (NOTE, EMBEDDED_RAW, 0.3, [evidence("Allele fraction 0.48 at 212x coverage", 2)], True),
        (GENOMIC, MENTION_ONLY, 0.3, [evidence("Allele fraction 0.48 at 212x coverage", 2)], False),
    ],
)
def test_presence_with_a_share_needs_a_quote_that_shows_it(
    kind: str, level: str, share: float, quotes: list[Json], fires: bool
) -> None:
    value = with_presence(kind, level, share, *quotes)
    issues = [issue for issue in assess(value).issues if issue.code == "V4-PRESENCE-UNSUPPORTED"]
    assert [(issue.severity, issue.auto_fixable, issue.document_type) for issue in issues] == (
        [("MAJOR", False, kind)] if fires else []
    )


def test_quote_on_another_segments_page_supports_no_presence() -> None:
    composition = [presence(GENOMIC, PRIMARY, 0.9, 0.7, evidence(FOUND, 2))]
    composition.append(presence(NOTE, EMBEDDED_RAW, 0.5, 0.3, evidence("Chief complaint: breast lump", 6)))
    rest = segment(2, 6, 8, NOTE, compose_single_type(NOTE, evidence("Chief complaint: breast lump", 6)))
    value = answer(segment(1, 1, 5, GENOMIC, composition), rest, overall=GENOMIC, shares={GENOMIC: 0.6, NOTE: 0.4})
    assert "V4-PRESENCE-UNSUPPORTED" in codes(assess(value).issues)


@pytest.mark.parametrize(
    ("sentence", "fires"),
    [
        ("Lymph nodes along the aorta are enlarged; the liver, spleen and pancreas are unremarkable", True),
        ("Surgical pathology: invasive carcinoma, margins negative, lymph nodes negative for metastasis", False),
    ],
)
def test_a_sentence_of_the_documents_own_type_shows_no_other_type(sentence: str, fires: bool) -> None:
    bundle = document("CT ABDOMEN. FINDINGS: " + sentence + ".")
    parts = [
        presence(RADIOLOGY, PRIMARY, 0.9, 0.7, evidence(sentence, 1)),
        presence(PATHOLOGY, EMBEDDED_RAW, 0.8, 0.3, evidence(sentence, 1)),
    ]
    value = answer(segment(1, 1, 1, RADIOLOGY, parts), overall=RADIOLOGY, shares={RADIOLOGY: 0.7, PATHOLOGY: 0.3})
    assert ("V4-PRESENCE-UNSUPPORTED" in codes(assess(value, bundle).issues)) is fires


@pytest.mark.parametrize(
    ("value", "issues", "score"),
    [
        (one_segment(GENOMIC, 8, evidence(FOUND, 2)), [], 1.0),
        (one_segment(GENOMIC, 8, evidence(FOUND, 2)), [an_issue("MAJOR", agent="V4")], 0.85),
        (one_segment(GENOMIC, 8, evidence(FOUND, 2)), [an_issue("MAJOR", agent="V2")], 1.0),
        (one_segment(GENOMIC, 8, level=MENTION_ONLY), [], None),
        (one_segment(GENOMIC, 8), [an_issue("BLOCKER", agent="V4")], 0.7),
        (None, [], None),
    ],
)
def test_score_is_null_where_nothing_was_judged(value: Json | None, issues: list[Issue], score: float | None) -> None:
    assert score_evidence(parse_answer(value) if value else None, issues) == score


# ----------------------------------------------------------------------------------------------------- scores


def test_the_score_is_the_specifications_formula() -> None:
    for blockers, majors, minors in product(range(5), repeat=3):
        issues = (
            [an_issue("BLOCKER", agent="V4")] * blockers
            + [an_issue("MAJOR", agent="V4")] * majors
            + [an_issue("MINOR", agent="V4")] * minors
        )
        expected = max(0.0, 1.0 - 0.30 * blockers - 0.15 * majors - 0.05 * minors)
        assert compute_quality_score(issues) == pytest.approx(expected, abs=1e-9)


def test_the_score_is_not_divided_by_the_amount_of_evidence() -> None:
    """Ruling 6: 001's code, not its diagram."""
    good = [evidence(FOUND, 2), evidence("a heterozygous state", 2), evidence(DOC2_6[0].split("\n")[0], 1)]
    assert assess(quoting(evidence(FOUND, 3))).score == assess(quoting(*good, evidence(FOUND, 3))).score == 0.85


@pytest.mark.parametrize(
    ("quotes", "ratio"),
    [
        ([evidence(FOUND, 2)], 1.0),
        ([evidence(FOUND, 2), evidence("nothing of this kind", 2)], 0.5),
        ([evidence(FOUND, 2), evidence("a  HETEROZYGOUS state", 2), evidence("never said anywhere", 1)], 0.6667),
        ([evidence("never said anywhere", 1)], 0.0),
        ([], None),
    ],
)
def test_the_grounded_ratio_is_quotes_found_of_quotes_claimed(quotes: list[Json], ratio: float | None) -> None:
    claimed = parse_answer(one_segment(GENOMIC, 8, *quotes))
    assert compute_grounded_ratio(claimed, V4EvidenceQualityAssessor().validate(claimed, doc2_6()).issues) == ratio


# ------------------------------------------------------------------------------------------- the model's part


def test_the_question_holds_the_claims_and_the_text_of_each_page() -> None:
    (question,) = V4EvidenceQualityAssessor().questions(parse_answer(doc2_6_answer()), doc2_6())
    prompt = question.prompt()
    assert question.role == "V4"
    assert all(re.search(rf"<page-\w+ {page.page_num}>", prompt) for page in doc2_6().pages)
    assert all(f"\n{n}|{text}" in prompt for page in doc2_6().pages for n, text in enumerate(page.paragraphs, 1))
    assert "BRCA1 c.5266dupC" in prompt.split("<classification-")[1]


def test_model_findings_become_evidence_issues() -> None:
    (question,) = V4EvidenceQualityAssessor().questions(parse_answer(doc2_6_answer()), doc2_6())
    said = Findings(findings=(finding("MAJOR", "confidence is out of line", quote=FOUND),))
    (issue,) = V4EvidenceQualityAssessor().read([Answer(question, said)])
    assert (issue.issue_id, issue.ig_id, issue.severity, issue.origin, issue.quote) == (
        "V4-0001",
        "IG-3",
        "MAJOR",
        "model",
        FOUND,
    )


def test_a_missing_answer_is_a_blocker() -> None:
    (question,) = V4EvidenceQualityAssessor().questions(parse_answer(doc2_6_answer()), doc2_6())
    (issue,) = V4EvidenceQualityAssessor().read([Answer(question, None, failure="bad JSON")])
    assert (issue.code, issue.severity) == ("V4-AGENT-FAILED", "BLOCKER")
