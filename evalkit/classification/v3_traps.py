"""V3: mistakes that look right and are clinically wrong.

Source: specification 000, slide 5; contract rulings 3 and 9. What the traps know is data, ``traps.toml``.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from evalkit.classification.corroboration import carries
from evalkit.classification.findings import Finding, Findings, Pages, VerifierQuestion, primary_types, read_findings
from evalkit.classification.schema import (
    REPORT_TYPES,
    ClassificationOutput,
    DocumentType,
    Evidence,
    PresenceLevel,
    Segment,
)
from evalkit.classification.v1_schema import MIXTURE
from evalkit.documents.bundle import Block, DocumentBundle, Page
from evalkit.errors import UsageError
from evalkit.grounding.normalise import canonical_text
from evalkit.issue import Issue, IssueSeverity, numbered
from evalkit.llm.model import Answer, Question

BLOCKER, MAJOR, MINOR = IssueSeverity.BLOCKER, IssueSeverity.MAJOR, IssueSeverity.MINOR
GENOMIC = DocumentType.GENOMIC_REPORT


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RoutineVendor(_Data):
    """A laboratory of trap 1."""

    name: str
    names: tuple[str, ...] = Field(min_length=1)
    genomic_assays: tuple[str, ...]

    def is_in(self, text: str) -> bool:
        """Whether the text has one of its names; case, spaces and punctuation do not matter."""
        plain = _plain(text)
        return any(_plain(name) in plain for name in self.names)


class Administrative(_Data):
    """Trap 2."""

    scope: Literal["segment", "document"]
    keywords: tuple[str, ...]


def _compiles(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from error
    return pattern


class _Pattern(_Data):
    name: str
    pattern: Annotated[str, AfterValidator(_compiles)]

    def search(self, text: str) -> str | None:
        """The first place in the text, as it is written there."""
        found = re.search(self.pattern, text, re.IGNORECASE)
        return found.group() if found else None

    def matches(self, text: str) -> bool:
        """Whether the text holds it."""
        return self.search(text) is not None


class PageFurniture(_Pattern):
    """One kind of header or footer text of trap 3."""


class AddressedToModel(_Pattern):
    """One kind of words that speak to a machine."""


class OrderForm(_Data):
    """Words of forms that order tests."""

    at_least: int
    words: tuple[str, ...]


class Traps(_Data):
    """``traps.toml``."""

    version: str
    routine_vendor: tuple[RoutineVendor, ...]
    administrative: Administrative
    page_furniture: tuple[PageFurniture, ...]
    order_form: OrderForm
    addressed_to_model: tuple[AddressedToModel, ...] = ()


@cache
def shipped_traps() -> Traps:
    """The traps that evalkit ships. UsageError naming the row that is wrong."""
    return read_traps((files("evalkit.classification") / "traps.toml").read_text("utf-8"))


def read_traps(text: str) -> Traps:
    """Traps from the text of a TOML file. UsageError naming the row that is wrong."""
    try:
        return Traps.model_validate(tomllib.loads(text))
    except ValidationError as error:
        first = error.errors()[0]
        where = " → ".join(str(part) for part in first["loc"])
        raise UsageError(f"traps: {where}: {first['msg']}", code="TRAPS", remedy="Correct that row.") from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"traps: {error}", code="TRAPS", remedy="Correct that line.") from error


class V3TrapDetector:
    """The domain traps."""

    def __init__(self, traps: Traps | None = None) -> None:
        self._traps = traps or shipped_traps()

    def validate(self, classification: ClassificationOutput, bundle: DocumentBundle) -> list[Issue]:
        """The computed part, numbered from V3-0001."""
        return numbered("V3", self._caught(classification, bundle))

    def questions(
        self, classification: ClassificationOutput, bundle: DocumentBundle, pages: Pages | None = None
    ) -> list[Question[Findings]]:
        """The model's part: traps that only show in context."""
        return [VerifierQuestion("V3", "V3_Trap_Detector", classification, bundle, self._seen_in_context, pages)]

    def read(self, answers: Sequence[Answer[Findings]]) -> list[Issue]:
        """The answers as issues; a missing answer is a BLOCKER."""
        return read_findings("V3", answers)

    def _caught(self, answer: ClassificationOutput, bundle: DocumentBundle) -> Iterator[Issue]:
        yield from _vendor_trap(self._traps, answer, bundle)
        yield from _administrative_trap(self._traps.administrative, answer, bundle)
        yield from _instruction_trap(self._traps, bundle)
        for segment in answer.segments:
            for presence in segment.segment_composition:
                for evidence in presence.top_evidence:
                    yield from _furniture_trap(
                        self._traps, evidence, segment.segment_index, presence.document_type, bundle
                    )

    def _seen_in_context(self, answer: ClassificationOutput, bundle: DocumentBundle) -> Iterator[Finding]:
        yield from _unnamed_vendor(self._traps, answer, bundle)
        yield from _order_as_report(self._traps.order_form, answer, bundle)


@lru_cache(maxsize=512)  # the vendors' names, and the letterheads that are compared with each of them
def _plain(text: str) -> str:
    return "".join(filter(str.isalnum, canonical_text(text)))


def _genomic_claim(answer: ClassificationOutput) -> str | None:
    """Where Genomic Report is claimed as PRIMARY, if anywhere."""
    for entry in answer.document_mixture:
        if entry.document_type is GENOMIC and entry.presence_level is PresenceLevel.PRIMARY:
            return f"{MIXTURE} → {GENOMIC.value}"
    claimed = next((segment for segment, kind in primary_types(answer) if kind is GENOMIC), None)
    return f"segment {claimed.segment_index} → {GENOMIC.value}" if claimed else None


def _genomic_pages(answer: ClassificationOutput, bundle: DocumentBundle) -> list[Page]:
    """The pages of the segments that claim Genomic Report as PRIMARY; all, where only the mixture does."""
    segments = [segment for segment, kind in primary_types(answer) if kind is GENOMIC]
    return [page for one in segments for page in bundle.between(one.start_page, one.end_page)] or list(bundle.pages)


def _vendor_trap(traps: Traps, answer: ClassificationOutput, bundle: DocumentBundle) -> Iterator[Issue]:
    location = _genomic_claim(answer)
    if location is None:
        return
    for vendor in traps.routine_vendor:
        signal = next((text for text in answer.vendor_signals if vendor.is_in(text)), None)
        if signal is None:
            continue
        pages = _genomic_pages(answer, bundle)
        assay = _written(vendor.genomic_assays, pages)
        page, quote = assay or _written(vendor.names, [*pages, *bundle.pages]) or (None, None)
        yield Issue.of(
            "V3",
            "V3-TRAP-VENDOR",
            MAJOR if assay else BLOCKER,
            f"Routine lab vendor detected ({signal}) but Genomic Report marked PRIMARY"
            + (f"; its genomic assay {quote} is named on page {page}" if assay else ""),
            location=location,
            suggested_fix="Check that the page is the assay's own report"
            if assay
            else "Reclassify as 'Other' or downgrade to MENTION_ONLY",
            document_type=GENOMIC.value,
            page=page,
            quote=quote,
        )


def _written(names: Sequence[str], pages: Sequence[Page]) -> tuple[int, str] | None:
    """The first page that has one of the names, and the name as the page writes it."""
    for page in pages:
        for name in names:
            letters = r"\W{0,3}".join(re.escape(letter) for letter in name if letter.isalnum())
            if found := re.search(rf"(?<!\w){letters}", page.text, re.IGNORECASE):
                return page.page_num, found.group()
    return None


def _administrative_trap(trap: Administrative, answer: ClassificationOutput, bundle: DocumentBundle) -> Iterator[Issue]:
    in_segments = set()
    for segment in answer.segments:
        pages = list(bundle.pages if trap.scope == "document" else bundle.between(segment.start_page, segment.end_page))
        for presence in segment.segment_composition:
            if presence.presence_level is not PresenceLevel.NO_EVIDENCE:
                in_segments.add(presence.document_type)
                yield from _keyword_issue(trap, presence.document_type, presence.presence_level, pages, segment)
    for entry in answer.document_mixture:
        if entry.presence_level is not PresenceLevel.NO_EVIDENCE and entry.document_type not in in_segments:
            yield from _keyword_issue(trap, entry.document_type, entry.presence_level, list(bundle.pages), None)


def _keyword_issue(
    trap: Administrative, kind: DocumentType, level: PresenceLevel, pages: Sequence[Page], segment: Segment | None
) -> Iterator[Issue]:
    if kind not in REPORT_TYPES:
        return
    # The first page that says it comes last here, and stays.
    found = {
        word: (page.page_num, said) for word in trap.keywords for page in pages[::-1] if (said := _said(page, word))
    }
    if not found:
        return
    page, quote = next(iter(found.values()))
    words = ", ".join(f"'{keyword}'" for keyword in found)
    yield Issue.of(
        "V3",
        "V3-TRAP-ADMINISTRATIVE",
        BLOCKER,
        f"Administrative keywords found ({words}) but {kind.value} marked {level.value}",
        location=f"segment {segment.segment_index} → {kind.value}" if segment else f"{MIXTURE} → {kind.value}",
        suggested_fix="Reclassify as 'Other', or give the form its own segment",
        segment_index=segment.segment_index if segment else None,
        document_type=kind.value,
        page=page,
        quote=quote,
    )


def _instruction_trap(traps: Traps, bundle: DocumentBundle) -> Iterator[Issue]:
    """Words for a machine, seen or hidden: what the models said of this document may be what it told them to say."""
    for page in bundle.pages:
        hidden = "\n".join(block.text for block in page.blocks if block.hidden)
        for row in traps.addressed_to_model:
            seen = row.search(page.text)
            if seen is None and not row.matches(hidden):
                continue
            yield Issue.of(
                "V3",
                "V3-TRAP-INSTRUCTION",
                MAJOR,
                f"Page {page.page_num} has {row.name}" + ("" if seen else ", hidden from people who look at it"),
                location=f"page {page.page_num}",
                suggested_fix="Decide without what any model said of this document, and ask where it comes from",
                page=page.page_num,
                quote=seen,
            )


def _said(page: Page, phrase: str) -> str | None:
    """The phrase as the page writes it, in whole words; case, line breaks and a plural s do not matter."""
    if phrase.isascii() and not all(word in _lowered(page.text) for word in phrase.lower().split()):
        return None  # nearly always, and known at once
    words = r"\s+".join(re.escape(word) for word in phrase.split())
    found = re.search(rf"(?<!\w){words}s?(?!\w)", page.text, re.IGNORECASE)
    return found.group() if found else None


#: What else re.IGNORECASE takes for ASCII letters; the sign for Kelvin is lowered by itself.
_ASCII_TOO = str.maketrans("İıſ", "iis")


@lru_cache(maxsize=512)  # every phrase is looked for on the same pages
def _lowered(text: str) -> str:
    return (text if text.isascii() else text.translate(_ASCII_TOO)).lower()


def _furniture_trap(
    traps: Traps, evidence: Evidence, segment_index: int, kind: DocumentType, bundle: DocumentBundle
) -> Iterator[Issue]:
    if _is_marked_furniture(evidence, bundle):
        what = "the header or footer of the page"
    else:
        names = [row.name for row in traps.page_furniture if row.matches(evidence.snippet)]
        if not names:
            return
        what = f"header or footer text ({', '.join(names)})"
    yield Issue.of(
        "V3",
        "V3-TRAP-FURNITURE",
        MINOR,
        f"The evidence for {kind.value} on page {evidence.page} is {what}",
        location=f"segment {segment_index} → {kind.value} → top_evidence",
        suggested_fix="Quote a sentence of the document's body",
        segment_index=segment_index,
        document_type=kind.value,
        page=evidence.page,
        quote=evidence.snippet,
    )


def _is_marked_furniture(evidence: Evidence, bundle: DocumentBundle) -> bool:
    """Whether the quote stands in the page's furniture and nowhere else on it."""
    if not 1 <= evidence.page <= bundle.total_pages:
        return False
    blocks = bundle.page(evidence.page).visible_blocks
    furniture = [block for block in blocks if block.furniture]
    if not furniture or not (wanted := canonical_text(evidence.snippet)):
        return False

    def holds(block: Block) -> bool:
        return wanted in canonical_text(block.text)

    return any(map(holds, furniture)) and not any(holds(block) for block in blocks if not block.furniture)


def _unnamed_vendor(traps: Traps, answer: ClassificationOutput, bundle: DocumentBundle) -> Iterator[Finding]:
    """A routine laboratory's letterhead over a claimed genomic report, although vendor_signals leave it out."""
    if _genomic_claim(answer) is None:
        return
    for vendor in traps.routine_vendor:
        if any(map(vendor.is_in, answer.vendor_signals)):
            continue
        pages = _genomic_pages(answer, bundle)
        page = next((page for page in pages if any(map(vendor.is_in, page.paragraphs[:3]))), None)
        if page and not _written(vendor.genomic_assays, pages):
            yield Finding(
                reasoning="A letterhead says who made the report; this laboratory's everyday product is blood panels.",
                severity=MAJOR,
                message=f"{vendor.name} stands in the letterhead of page {page.page_num}, is missing in "
                "vendor_signals, and Genomic Report is marked PRIMARY",
                document_type=GENOMIC.value,
                page=page.page_num,
                quote=next(filter(vendor.is_in, page.paragraphs)),
                suggested_fix="Check whether this is a routine panel",
            )


def _order_as_report(form: OrderForm, answer: ClassificationOutput, bundle: DocumentBundle) -> Iterator[Finding]:
    """A page that orders tests, claimed as their report."""
    for segment, kind in primary_types(answer):
        if kind not in REPORT_TYPES:
            continue
        for page in bundle.between(segment.start_page, segment.end_page):
            words = [word for word in form.words if _said(page, word)]
            if len(words) >= form.at_least and not carries(kind, [page]):
                yield Finding(
                    reasoning="The page has the words of an order form and none of the signs of a result.",
                    severity=MAJOR,
                    message=f"Page {page.page_num} looks like an order ({', '.join(words[:4])}) "
                    f"but is claimed as {kind.value}",
                    segment_index=segment.segment_index,
                    document_type=kind.value,
                    page=page.page_num,
                    suggested_fix="Reclassify the page as 'Other'",
                )
