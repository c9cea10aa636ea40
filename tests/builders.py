"""Documents and classifications for the tests, in the field's words.

Answers are plain JSON values, as a classifier sends them; ``read`` makes the model of one, ``edited`` a changed copy.
The standard document is the slides' own: doc2_6, eight pages, a genomic report on 1-5 and a clinical note on 6-8.
"""

from __future__ import annotations

import copy
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from evalkit.classification.classifier_answer import extract_quote
from evalkit.classification.findings import Finding, Findings
from evalkit.classification.schema import ClassificationOutput, Evidence
from evalkit.classification.v2_consistency import EXPERT_QUESTION_CODES
from evalkit.documents.bundle import Block, DocumentBundle, LayoutMetadata, Page, PageStatus
from evalkit.issue import Issue, IssueSeverity
from evalkit.llm.model import Answer, AnswerT, Question, Usage

NOTE, PATHOLOGY, GENOMIC, RADIOLOGY, OTHER = (
    "Clinical Note",
    "Pathology Report",
    "Genomic Report",
    "Radiology Report",
    "Other",
)
TYPES = (GENOMIC, NOTE, PATHOLOGY, RADIOLOGY, OTHER)
PRIMARY, EMBEDDED_RAW, MENTION_ONLY, NO_EVIDENCE = "PRIMARY", "EMBEDDED_RAW", "MENTION_ONLY", "NO_EVIDENCE"

Json = dict[str, Any]

# ------------------------------------------------------------------------------------------------- documents


def page(number: int, text: str, status: str = "text", furniture: Sequence[str] = ()) -> Page:
    """A page whose lines are its paragraphs, each line one row of words; ``furniture`` names lines that are that."""
    lines = text.split("\n") if text else []
    words, at = [], 0
    for row, line in enumerate(lines):
        for match in re.finditer(r"\S+", line):
            top = 500 + 300 * row
            words.append(
                (at + match.start(), at + match.end(), 100 + 90 * match.start(), top, 100 + 90 * match.end(), top + 200)
            )
        at += len(line) + 1
    blocks = tuple(
        Block(type="paragraph", text=line, box=(0.0, 0.0, 1.0, 1.0), furniture=line in furniture) for line in lines
    )
    return Page(
        page_num=number,
        status=PageStatus(status),
        text=text,
        paragraphs=tuple(lines),
        layout_metadata=LayoutMetadata(block_types=("paragraph",) * len(lines), has_tables=False),
        blocks=blocks,
        words=tuple(words),
    )


def scanned_page(number: int, text: str, doubts: Mapping[str, str]) -> Page:
    """A page read by OCR; ``doubts`` names doubtful words, each with the other engine's reading."""
    recognised = page(number, text, status="ocr")
    words = [text[start:end] for start, end, *_ in recognised.words]
    readings = {position: doubts[word] for position, word in enumerate(words) if word in doubts}
    return recognised.model_copy(update={"doubtful": tuple(readings), "second_readings": tuple(readings.values())})


def document(*pages: str | Page, is_repaired: bool = False) -> DocumentBundle:
    """A document of these pages; a page given as text is a page with a text layer."""
    made = tuple(one if isinstance(one, Page) else page(number, one) for number, one in enumerate(pages, 1))
    return DocumentBundle(
        doc_id="doc2_6",
        file_path="/data/input/raw_documents/doc2_6.pdf",
        sha256=hashlib.sha256("\f".join(one.text for one in made).encode()).hexdigest(),
        reader="builder",
        is_repaired=is_repaired,
        total_pages=len(made),
        processing_timestamp="2025-02-18T14:30:00Z",
        pages=made,
    )


DOC2_6 = (
    "GENOMIC SEQUENCING REPORT\nPatient: John Doe\nSpecimen: Blood\nBRCA1/2 Analysis, full gene sequencing",
    "VARIANT FINDINGS\nBRCA1 c.5266dupC was detected in a heterozygous state.\nAllele fraction 0.48 at 212x coverage.",
    "VARIANT CLASSIFICATION\nThe variant is classified as pathogenic.\nReference sequence NM_007294.4",
    "METHODS\nGenomic DNA was enriched by hybrid capture and sequenced on both strands.",
    "INTERPRETATION\nThe ordering physician's note describes a strong family history.\nLoss of function at chr17.",
    "PROGRESS NOTE\nChief complaint: breast lump noticed two weeks ago.\nThe patient reports no pain.",
    "ASSESSMENT AND PLAN\nWe discussed the genomic report with the patient today.\nFollow up in 6 weeks.",
    "MEDICATIONS\nTamoxifen 20 mg daily by mouth.\nBlood pressure 128/76, pulse 72.",
)


def doc2_6() -> DocumentBundle:
    """Slide 2's example."""
    return document(*DOC2_6)


# --------------------------------------------------------------------------------------------------- answers


def evidence(snippet: str, page: int, *anchors: str) -> Json:
    """A quote, as a classifier claims it."""
    return {"snippet": snippet, "page": page, "anchors_found": list(anchors)}


def presence(kind: str, level: str, confidence: float, share: float, *quotes: Json) -> Json:
    """How much of a segment is of that type."""
    return {
        "document_type": kind,
        "presence_level": level,
        "confidence": confidence,
        "segment_share": share,
        "top_evidence": list(quotes),
    }


def segment(index: int, start: int, end: int, dominant: str | None, composition: Sequence[Json]) -> Json:
    """A run of pages that is one source document."""
    return {
        "segment_index": index,
        "start_page": start,
        "end_page": end,
        "segment_page_count": end - start + 1,
        "dominant_type": dominant,
        "reasoning": "",
        "segment_composition": list(composition),
    }


def compose_single_type(kind: str, *quotes: Json, level: str = PRIMARY, confidence: float = 0.9) -> list[Json]:
    """The composition of a segment that is of one type alone."""
    return [
        presence(one, level, confidence, 1.0, *quotes) if one == kind else presence(one, NO_EVIDENCE, 0.0, 0.0)
        for one in TYPES
    ]


def compose_shares(shares: Mapping[str, float], *quotes: Json) -> list[Json]:
    """A composition of these shares: the first named type is PRIMARY with the quotes, the others NO_EVIDENCE."""
    first = next(iter(shares))
    return [
        presence(kind, PRIMARY, 0.9, shares.get(kind, 0.0), *quotes)
        if kind == first
        else presence(kind, NO_EVIDENCE, 0.0, shares.get(kind, 0.0))
        for kind in TYPES
    ]


def mixture(shares: Mapping[str, float], levels: Mapping[str, str]) -> list[Json]:
    """The shares of the whole document."""
    return [
        {
            "document_type": kind,
            "presence_level": levels.get(kind, NO_EVIDENCE),
            "confidence": 0.9 if levels.get(kind, NO_EVIDENCE) != NO_EVIDENCE else 0.0,
            "overall_share": shares.get(kind, 0.0),
        }
        for kind in TYPES
    ]


def answer(*segments: Json, overall: str | None, shares: Mapping[str, float], **other: Any) -> Json:
    """A classification; a type's level in the mixture is PRIMARY where some segment says so."""
    claimed = {
        one["document_type"]
        for part in segments
        for one in part["segment_composition"]
        if one["presence_level"] == PRIMARY
    }
    return {
        "dominant_type_overall": overall,
        "number_of_segments": len(segments),
        "segments": list(segments),
        "document_mixture": mixture(shares, dict.fromkeys(claimed, PRIMARY)),
        "vendor_signals": [],
        "self_evaluation": None,
    } | other


def one_segment(kind: str, pages: int, *quotes: Json, level: str = PRIMARY, **other: Any) -> Json:
    """A classification that calls the whole document one type."""
    made = answer(
        segment(1, 1, pages, kind, compose_single_type(kind, *quotes, level=level)),
        overall=kind,
        shares={kind: 1.0},
        **other,
    )
    made["document_mixture"] = mixture({kind: 1.0}, {kind: level})
    return made


def doc2_6_answer() -> Json:
    """Slide 2's classification of doc2_6, nothing wrong with it. Types are in the order of ``TYPES``."""
    report = segment(
        1,
        1,
        5,
        GENOMIC,
        [
            presence(GENOMIC, PRIMARY, 0.92, 0.85, evidence("BRCA1 c.5266dupC was detected", 2, "c.5266dupC")),
            presence(NOTE, MENTION_ONLY, 0.30, 0.10, evidence("note describes a strong family history", 5)),
            presence(PATHOLOGY, NO_EVIDENCE, 0.00, 0.02),
            presence(RADIOLOGY, NO_EVIDENCE, 0.00, 0.02),
            presence(OTHER, NO_EVIDENCE, 0.00, 0.01),
        ],
    )
    note = segment(
        2,
        6,
        8,
        NOTE,
        [
            presence(GENOMIC, MENTION_ONLY, 0.20, 0.06, evidence("discussed the genomic report", 7, "genomic report")),
            presence(NOTE, PRIMARY, 0.88, 0.90, evidence("Chief complaint: breast lump", 6, "Chief complaint")),
            presence(PATHOLOGY, NO_EVIDENCE, 0.00, 0.02),
            presence(RADIOLOGY, NO_EVIDENCE, 0.00, 0.01),
            presence(OTHER, NO_EVIDENCE, 0.00, 0.01),
        ],
    )
    shares = {GENOMIC: 0.5537, NOTE: 0.4, PATHOLOGY: 0.02, RADIOLOGY: 0.0163, OTHER: 0.01}
    return answer(report, note, overall=GENOMIC, shares=shares, vendor_signals=["Myriad Genetics"])


def parse_answer(value: Json) -> ClassificationOutput:
    """The answer as the rules see it."""
    return ClassificationOutput.model_validate(value)


def compose_model_answer(value: ClassificationOutput, bundle: DocumentBundle, notes: str = "") -> Json:
    """What a language model that thinks so is asked to write: quotes by their place, nothing that is computed."""
    return {
        "segments": [
            {
                "start_page": part.start_page,
                "end_page": part.end_page,
                "notes": notes,
                "reasoning": part.reasoning,
                "types": [
                    {
                        "evidence": [_name_place(quote, bundle) for quote in row.top_evidence],
                        "document_type": row.document_type.value,
                        "presence_level": row.presence_level.value,
                        "confidence": row.confidence,
                    }
                    for row in part.segment_composition
                    if row.presence_level != NO_EVIDENCE
                ],
            }
            for part in value.segments
        ],
        "vendor_signals": list(value.vendor_signals),
        "self_evaluation": "",
    }


def _name_place(quote: Evidence, bundle: DocumentBundle) -> Json:
    page, words = bundle.page(quote.page), quote.snippet.split()
    number = next(
        (
            number
            for number, text in enumerate(page.paragraphs, 1)
            if quote.snippet.startswith(text) or quote.snippet in text
        ),
        1,
    )
    for count in range(3, len(words) + 1):
        first, last = " ".join(words[:count]), " ".join(words[-count:])
        if (extract_quote(page, number, first, last) or "").split() == words:
            return {"page": quote.page, "paragraph": number, "first_words": first, "last_words": last}
    raise ValueError("the quote is not on its page")


def copy_with(value: Json, changes: Mapping[str, Any]) -> Json:
    """A copy with other values at these places: ``{"segments.0.start_page": 0}``."""
    changed = copy.deepcopy(value)
    for place, new in changes.items():
        *way, last = (int(step) if step.isdigit() else step for step in place.split("."))
        holder: Any = changed
        for step in way:
            holder = holder[step]
        holder[last] = new
    return changed


def copy_without(value: Json, place: str, position: int) -> Json:
    """A copy of which one element of the list at that place is missing."""
    changed = copy_with(value, {})
    holder: Any = changed
    for step in place.split("."):
        holder = holder[int(step) if step.isdigit() else step]
    del holder[position]
    return changed


# ---------------------------------------------------------------------------------------------------- issues


def codes(issues: Iterable[Issue]) -> list[str]:
    """The codes of the issues, sorted."""
    return sorted(issue.code for issue in issues)


def drop_expert_questions(issues: Iterable[Issue]) -> list[Issue]:
    """The issues about an answer's arithmetic: without what only the text, or whoever reads it, can answer."""
    return [issue for issue in issues if issue.code not in EXPERT_QUESTION_CODES]


def an_issue(severity: str, *, auto_fixable: bool = False, agent: str = "V2", **fields: Any) -> Issue:
    """An issue of that weight."""
    code = fields.pop("code", f"{agent}-EXAMPLE")
    return Issue.create(agent, code, IssueSeverity(severity), "an example", auto_fixable=auto_fixable, **fields)  # type: ignore[arg-type]


def finding(severity: str, message: str = "the text says otherwise", **fields: Any) -> Finding:
    """What a verifier's model may say."""
    return Finding(reasoning="because", severity=IssueSeverity(severity), message=message, **fields)


class CountingModel:
    """A model that is asked and counted: it says what it was given to say, and fails where it was told to."""

    name = "counting"

    def __init__(
        self,
        classification: Json | None = None,
        findings: Mapping[str, Sequence[Finding]] | None = None,
        failing: Iterable[str] = (),
        unparseable: Iterable[str] = (),
    ) -> None:
        self._classification = classification
        self._findings = findings or {}
        self._failing, self._unparseable = set(failing), set(unparseable)
        self.prompts: list[tuple[str, str]] = []

    @property
    def asked(self) -> list[str]:
        """The roles that were asked, sorted; one entry per call."""
        return sorted(role for role, _ in self.prompts)

    async def ask(self, question: Question[AnswerT]) -> Answer[AnswerT]:
        self.prompts.append((question.role, question.prompt()))
        usage = Usage(calls=1, input_tokens=100, output_tokens=10, cost_usd="0.01")
        if question.role in self._failing:
            return Answer(question, None, failure="it timed out", usage=usage)
        if question.role in self._unparseable:
            return Answer(question, None, failure="segments: Field required", is_unparseable=True, usage=usage)
        if question.role == "classifier":
            assert self._classification is not None, "the classifier was asked without need"
            value: Any = question.answer_type.model_validate(self._classification)
        else:
            value = Findings(findings=tuple(self._findings.get(question.role, ())))
        return Answer(question, value, usage=usage)
