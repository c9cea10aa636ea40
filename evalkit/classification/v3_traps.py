"""V3: mistakes that look right and are clinically wrong.

Source: specification 000, slide 5; contract rulings 3 and 9. What the traps know is data, ``traps.toml``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from evalkit.classification.corroboration import forms_of, forms_of_text, frame, stands_in_furniture
from evalkit.classification.findings import (
    Finding,
    Findings,
    Pages,
    VerifierQuestion,
    agent_failed,
    observations,
    primary_types,
    read_findings,
)
from evalkit.classification.schema import (
    REPORT_TYPES,
    ClassificationOutput,
    DocumentType,
    Evidence,
    PresenceLevel,
    Segment,
)
from evalkit.classification.traps import (
    Administrative,
    Boilerplate,
    HiddenText,
    OrderForm,
    PageFurniture,
    Traps,
    shipped_traps,
)
from evalkit.classification.v1_schema import MIXTURE
from evalkit.documents.bundle import DocumentBundle, Page
from evalkit.errors import UsageError
from evalkit.issue import Issue, IssueSeverity, numbered
from evalkit.llm.model import Answer, Question

BLOCKER, MAJOR, MINOR = IssueSeverity.BLOCKER, IssueSeverity.MAJOR, IssueSeverity.MINOR
GENOMIC, NOTE = DocumentType.GENOMIC_REPORT, DocumentType.CLINICAL_NOTE

RESULT = 2.0
"""From this strength of a report's forms on a page is no mere order."""
QUOTING = 2.5
"""From this strength of a note's forms on, around a report or at least half as strong as its, a quoted report makes no
report."""

_REPORTED = re.compile(
    r"\b(?:pathology|imaging|radiology|CT|MRI|sequencing|biopsy|x-?ray|ultrasound)\b[^.\n]{0,40}"
    r"\b(?:showed|shows|found|described|revealed|demonstrated|was read|reads)\b",
    re.IGNORECASE,
)
TEACHING = 3
"""From so many words to a reader on, a text without a patient and a day is a leaflet."""

_TO_A_READER = re.compile(
    r"(?<!thank )\byou(?:rs?|'re|'ll)?\b(?: (?:doctor|surgeon|care team|genetic counsel\w+|results?|risk|family|may|should|will|can|have))?"
    r"|^\W*(?:what|why|how|who|when|where)\b(?: \w+)? (?:is|are|do|does|can|will|should|happens|causes)\b[^\n]{0,80}\?",
    re.IGNORECASE | re.MULTILINE,
)
_OF_SOMEBODY = re.compile(
    r"\b(?:patient(?: name)?|name|DOB|date of birth|MRN|accession|specimen id|collected|received|reported|date)\b[ #.]*:\s*[^\W_]"
    r"|\b\d{1,2}[/.-]\d{1,2}[/.-]\d{2,4}\b|\b\d{4}-\d{2}-\d{2}\b",
    re.IGNORECASE,
)
#: A leaflet has a day as well, on which it was written.
_EDITION = re.compile(
    r"\b(?:(?:last|next|document|leaflet|page)\s(?:reviewed|revised|updated|review|revision)|revised|version|publi(?:shed|cation)"
    r"|printed|issued?)\b(?!\sby\b)[^\n]{0,40}",
    re.IGNORECASE,
)
_IN_QUOTES = re.compile(r"[\"“]([^\"”]{15,600})[\"”]")


class V3TrapDetector:
    """The domain traps."""

    def __init__(self, traps: Traps | None = None) -> None:
        self._traps = traps or shipped_traps()

    def validate(self, classification: ClassificationOutput, bundle: DocumentBundle) -> list[Issue]:
        """The computed part, numbered from V3-0001. A site's expression that takes too long is a BLOCKER."""
        caught = []
        try:
            for issue in self._caught(classification, bundle):
                caught.append(issue)  # noqa: PERF402 - those before the one that fails are kept
        except UsageError as error:
            caught.append(agent_failed("V3", error.message))
        return numbered("V3", caught)

    def questions(
        self, classification: ClassificationOutput, bundle: DocumentBundle, pages: Pages | None = None
    ) -> list[Question[Findings]]:
        """The model's part: traps that only show in context."""
        return [VerifierQuestion("V3", "V3_Trap_Detector", classification, bundle, self._seen_in_context, pages)]

    def observed(self, questions: Iterable[Question[Findings]]) -> list[Issue]:
        """Traps that show in the text's forms, numbered from V3-0001."""
        return observations("V3", questions)

    def read(self, answers: Sequence[Answer[Findings]]) -> list[Issue]:
        """The answers as issues; a missing answer is a BLOCKER."""
        return read_findings("V3", answers)

    def _caught(self, answer: ClassificationOutput, bundle: DocumentBundle) -> Iterator[Issue]:
        yield from _vendor_trap(self._traps, answer, bundle)
        yield from _administrative_trap(self._traps.administrative, answer, bundle)
        yield from _instruction_trap(self._traps, bundle)
        for hidden in self._traps.hidden_text:
            yield from _hidden_trap(hidden, bundle)
        for segment in answer.segments:
            for presence in segment.segment_composition:
                for evidence in presence.top_evidence:
                    yield from _furniture_trap(
                        self._traps, evidence, segment.segment_index, presence.document_type, bundle
                    )

    def _seen_in_context(self, answer: ClassificationOutput, bundle: DocumentBundle) -> Iterator[Finding]:
        yield from _unnamed_vendor(self._traps, answer, bundle)
        for form in self._traps.order_form:
            yield from _order_as_report(form, answer, bundle)
        for boilerplate in self._traps.boilerplate:
            yield from _method_as_result(boilerplate, answer, bundle)
        yield from _quoted_as_report(answer, bundle)
        yield from _taught_as_report(answer, bundle)


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
            _at_most(MAJOR, vendor.severity) if assay else vendor.severity,
            vendor.worded(
                f"Routine lab vendor detected ({signal}) but Genomic Report marked PRIMARY",
                found=signal,
                type=GENOMIC.value,
                level=PresenceLevel.PRIMARY,
                page=page,
            )
            + (f"; its genomic assay {quote} is named on page {page}" if assay else ""),
            location=location,
            suggested_fix="Check that the page is the assay's own report"
            if assay
            else vendor.remedied("Reclassify as 'Other' or downgrade to MENTION_ONLY", found=signal, page=page),
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


def _at_most(most: IssueSeverity, severity: IssueSeverity) -> IssueSeverity:
    return max(most, severity, key=lambda one: one.rank)


def _administrative_trap(
    rows: Sequence[Administrative], answer: ClassificationOutput, bundle: DocumentBundle
) -> Iterator[Issue]:
    in_segments = set()
    whole = list(bundle.pages)
    for segment in answer.segments:
        pages = list(bundle.between(segment.start_page, segment.end_page))
        for presence in segment.segment_composition:
            if presence.presence_level is not PresenceLevel.NO_EVIDENCE:
                in_segments.add(presence.document_type)
                searched = [(row, whole if row.scope == "document" else pages) for row in rows]
                yield from _phrase_issues(searched, presence.document_type, presence.presence_level, segment)
    for entry in answer.document_mixture:
        if entry.presence_level is not PresenceLevel.NO_EVIDENCE and entry.document_type not in in_segments:
            yield from _phrase_issues([(row, whole) for row in rows], entry.document_type, entry.presence_level, None)


def _phrase_issues(
    searched: Iterable[tuple[Administrative, Sequence[Page]]],
    kind: DocumentType,
    level: PresenceLevel,
    segment: Segment | None,
) -> Iterator[Issue]:
    """One issue for all phrases that have nothing of their own to say, one for each other."""
    if kind not in REPORT_TYPES:
        return
    found: dict[tuple[IssueSeverity, str, str], list[tuple[str, int, str]]] = {}
    for row, pages in searched:
        place = next(((page.page_num, said) for page in pages if (said := _said(page, row.phrase))), None)
        if place:
            values = {"found": place[1], "type": kind.value, "level": level.value, "page": place[0]}
            key = row.severity, row.worded("", **values), row.remedied("", **values)
            found.setdefault(key, []).append((row.phrase, *place))
    for (severity, message, remedy), places in found.items():
        words = ", ".join(f"'{phrase}'" for phrase, _, _ in places)
        _, page, quote = places[0]
        yield Issue.of(
            "V3",
            "V3-TRAP-ADMINISTRATIVE",
            severity,
            message or f"Administrative keywords found ({words}) but {kind.value} marked {level.value}",
            location=f"segment {segment.segment_index} → {kind.value}" if segment else f"{MIXTURE} → {kind.value}",
            suggested_fix=remedy or "Reclassify as 'Other', or give the form its own segment",
            segment_index=segment.segment_index if segment else None,
            document_type=kind.value,
            page=page,
            quote=quote,
        )


def _instruction_trap(traps: Traps, bundle: DocumentBundle) -> Iterator[Issue]:
    """Words for a machine, seen or hidden: what the models said of this document may be what it told them to say."""
    for page in bundle.pages:
        hidden = "\n".join(block.text for block in page.blocks if block.hidden)
        shown, unseen = _lowered(page.text), hidden.lower()
        for row in traps.addressed_to_model:
            seen = row.search(page.text) if row.may_be_in(shown) else None
            if seen is None and not (hidden and row.may_be_in(unseen) and row.matches(hidden)):
                continue
            yield Issue.of(
                "V3",
                "V3-TRAP-INSTRUCTION",
                row.severity,
                row.worded(f"Page {page.page_num} has {row.name}", found=seen or "", page=page.page_num)
                + ("" if seen else ", hidden from people who look at it"),
                location=f"page {page.page_num}",
                suggested_fix=row.remedied(_ASK_WHENCE, found=seen or "", page=page.page_num),
                page=page.page_num,
                quote=seen,
            )


_ASK_WHENCE = "Decide without what any model said of this document, and ask where it comes from"
_WORD = re.compile(r"[^\W\d_]{2,}")


def _hidden_trap(row: HiddenText, bundle: DocumentBundle) -> Iterator[Issue]:
    """What is written and nobody sees, as far as the page does not say it as well (an invisible copy of a scan does)."""
    for page in bundle.pages:
        hidden = [word for block in page.blocks if block.hidden for word in _WORD.findall(_lowered(block.text))]
        if len(hidden) < row.words:
            continue
        seen = set(_WORD.findall(_lowered(page.text)))
        new = sum(word not in seen for word in hidden)
        if new < row.words or 2 * new < len(hidden):
            continue
        yield Issue.of(
            "V3",
            "V3-TRAP-HIDDEN",
            row.severity if new >= row.notable else _at_most(MINOR, row.severity),
            row.worded(
                f"Page {page.page_num} has hidden text of {new} words that it does not show", page=page.page_num
            ),
            location=f"page {page.page_num}",
            suggested_fix=row.remedied("Find out who wrote what nobody can see, and why", page=page.page_num),
            page=page.page_num,
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
    rows: Sequence[PageFurniture] = ()
    if stands_in_furniture(evidence, bundle):
        what = "the header or footer of the page"
    else:
        rows = [row for row in traps.page_furniture if row.matches(evidence.snippet)]
        if not rows:
            return
        what = f"header or footer text ({', '.join(row.name for row in rows)})"
    values = {"found": evidence.snippet, "type": kind.value, "page": evidence.page}
    usual = f"The evidence for {kind.value} on page {evidence.page} is {what}"
    remedy = "Quote a sentence of the document's body"
    yield Issue.of(
        "V3",
        "V3-TRAP-FURNITURE",
        min((row.severity for row in rows), key=lambda severity: severity.rank, default=MINOR),
        next((row.worded(usual, **values) for row in rows if row.message), usual),
        location=f"segment {segment_index} → {kind.value} → top_evidence",
        suggested_fix=next((row.remedied(remedy, **values) for row in rows if row.remedy), remedy),
        segment_index=segment_index,
        document_type=kind.value,
        page=evidence.page,
        quote=evidence.snippet,
    )


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
                severity=_at_most(MAJOR, vendor.severity),
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
            said = [words for word in form.words if (words := _said(page, word))]
            if len(said) >= form.at_least and _is_order(kind, page):
                found = ", ".join(said[:4])
                values = {"found": found, "type": kind.value, "level": PresenceLevel.PRIMARY, "page": page.page_num}
                usual = f"Page {page.page_num} looks like an order ({found}) but is claimed as {kind.value}"
                yield Finding(
                    reasoning="The page has the words of an order form and none of the signs of a result.",
                    severity=form.severity,
                    message=form.worded(usual, **values),
                    segment_index=segment.segment_index,
                    document_type=kind.value,
                    page=page.page_num,
                    quote=said[0],
                    suggested_fix=form.remedied("Reclassify the page as 'Other'", **values),
                )


def _is_order(kind: DocumentType, page: Page) -> bool:
    """Whether the page has nothing of the report that it orders, or more of a form."""
    forms = forms_of([page])
    return forms[kind] < max(RESULT, forms[DocumentType.OTHER])


def _method_as_result(row: Boilerplate, answer: ClassificationOutput, bundle: DocumentBundle) -> Iterator[Finding]:
    """A laboratory's words about its method or service, claimed as a report, where no result is said."""
    for segment, kind in primary_types(answer):
        if kind is not row.type:
            continue
        pages = list(bundle.between(segment.start_page, segment.end_page))
        found = row.found("\n".join(page.text for page in pages))
        if len(found) < row.at_least:
            continue
        page = next((page for page in pages if found[0] in page.text), pages[0])
        values = {"found": found[0], "type": kind.value, "level": PresenceLevel.PRIMARY, "page": page.page_num}
        usual = f"Segment {segment.segment_index} says how a test is done and no result, but is claimed as {kind.value}"
        yield Finding(
            reasoning="The text speaks of a method or a service; nothing in it is a patient's result.",
            severity=row.severity,
            message=row.worded(usual, **values),
            segment_index=segment.segment_index,
            document_type=kind.value,
            page=page.page_num,
            quote=found[0],
            suggested_fix=row.remedied("Reclassify as 'Other', or join it to the report that it belongs to", **values),
        )


def _told(kind: DocumentType, pages: Sequence[Page]) -> tuple[Page, str] | None:
    """Where it shows that somebody tells of a report: words of its forms are in quotation marks, or it is said what it
    showed, in a text that is at least half as much a note; or a note stands on both sides of them.
    """
    forms = forms_of(pages)
    if forms[NOTE] < QUOTING:
        return None
    if forms[NOTE] >= forms[kind] / 2 and (said := next(_reported(kind, pages), None)):
        return said
    around = frame("\n".join(page.text for page in pages), kind)
    if around is None or around.strength < QUOTING:
        return None
    return next((page for page in reversed(pages) if around.quote in page.text), pages[-1]), around.quote


def _reported(kind: DocumentType, pages: Iterable[Page]) -> Iterator[tuple[Page, str]]:
    """Words of a report's form in quotation marks, and those of somebody who says what it showed."""
    for page in pages:
        for quoted in _IN_QUOTES.finditer(page.text):
            if forms_of_text(quoted[1])[kind]:
                yield page, quoted[1].strip()
        if found := _REPORTED.search(page.text):
            yield page, found.group()


def _quoted_as_report(answer: ClassificationOutput, bundle: DocumentBundle) -> Iterator[Finding]:
    """A report quoted in a note or letter, claimed as the report."""
    for segment, kind in primary_types(answer):
        if kind not in REPORT_TYPES:
            continue
        if told := _told(kind, list(bundle.between(segment.start_page, segment.end_page))):
            page, quote = told
            yield Finding(
                reasoning="Somebody tells a patient's story and quotes a report; the report itself is elsewhere.",
                severity=MAJOR,
                message=f"Segment {segment.segment_index} seems to be a note that quotes a report, "
                f"but is claimed as {kind.value}",
                segment_index=segment.segment_index,
                document_type=kind.value,
                page=page.page_num,
                quote=quote,
                suggested_fix=f"Reclassify as '{NOTE.value}', with {kind.value} EMBEDDED_RAW or MENTION_ONLY",
            )


def _taught_as_report(answer: ClassificationOutput, bundle: DocumentBundle) -> Iterator[Finding]:
    """A leaflet that explains a test or an illness to whoever reads it, claimed as somebody's report."""
    for segment, kind in primary_types(answer):
        if kind not in REPORT_TYPES:
            continue
        pages = list(bundle.between(segment.start_page, segment.end_page))
        if any(page.identifiers for page in pages):
            continue
        found = [(page, words.group()) for page in pages for words in _TO_A_READER.finditer(page.text)]
        if len(found) < TEACHING or any(_OF_SOMEBODY.search(_EDITION.sub("", page.text)) for page in pages):
            continue
        page, quote = found[0]
        yield Finding(
            reasoning="The text speaks to its reader, and names neither a patient nor a day.",
            severity=MAJOR,
            message=f"Segment {segment.segment_index} seems to explain a test or an illness to patients, "
            f"but is claimed as {kind.value}",
            segment_index=segment.segment_index,
            document_type=kind.value,
            page=page.page_num,
            quote=quote,
            suggested_fix=f"Check whether it is a leaflet, which is '{DocumentType.OTHER.value}'",
        )
