"""V3: traps, which are typical errors that look right but are clinically wrong.

Source: specification 000, slide 5; contract rulings 3 and 9. The words and patterns of the traps are data
(``traps.toml``).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from evalkit.classification.evidence_strength import is_only_in_furniture
from evalkit.classification.findings import (
    Finding,
    ShippedVerifier,
    build_agent_failure_issue,
    iter_segment_primary_types,
)
from evalkit.classification.offline.second_opinion_types import (
    find_note_around_report,
    measure_type_signs_in_text,
    measure_type_signs_on_pages,
)
from evalkit.classification.schema import (
    PATTERNS,
    REPORT_TYPES,
    ClassificationOutput,
    DocumentType,
    Evidence,
    PresenceLevel,
    Segment,
)
from evalkit.classification.traps import (
    AdministrativePhraseTrap,
    BoilerplateTrap,
    HiddenTextTrap,
    OrderFormTrap,
    PageFurnitureTrap,
    RoutineVendorTrap,
    Traps,
    load_shipped_traps,
)
from evalkit.classification.v1_schema import MIXTURE_LOCATION
from evalkit.classification.vendors import find_vendor_mentions, is_signal_of_vendor, iter_name_spans
from evalkit.core.document_cache import cache_document_text
from evalkit.documents.bundle import DocumentBundle, Page
from evalkit.documents.furniture import blank_web_and_mail_addresses, strip_stamp_lines
from evalkit.errors import UsageError
from evalkit.issue import Issue, IssueSeverity, number_issues

BLOCKER, MAJOR, MINOR = IssueSeverity.BLOCKER, IssueSeverity.MAJOR, IssueSeverity.MINOR
GENOMIC, NOTE = DocumentType.GENOMIC_REPORT, DocumentType.CLINICAL_NOTE

#: Strength of a report's signs from which pages with words of an order contain a result too.
MIN_RESULT_STRENGTH = 2.0
#: Minimum strength of a note's signs at which a report in the text is taken as quoted by the note.
MIN_QUOTING_STRENGTH = 2.5

_LETTERHEAD_LINES = 3
#: Number of phrases that address the reader from which a text without patient and date is a leaflet.
MIN_READER_PHRASES = 3


class V3TrapDetector(ShippedVerifier):
    """Verifier V3: looks for the traps of ``traps.toml``."""

    agent = "V3"
    prompt_name = "V3_Trap_Detector"

    def __init__(self, traps: Traps | None = None) -> None:
        self._traps = traps or load_shipped_traps()

    def validate(self, classification: ClassificationOutput, bundle: DocumentBundle) -> list[Issue]:
        """Return what V3's rules find in a classification, numbered from V3-0001.

        If a site's expression exceeds its time limit, the issues found before and the BLOCKER V3-AGENT-FAILED are returned.
        """
        trap_issues = []
        try:
            for issue in self._find_trap_issues(classification, bundle):
                trap_issues.append(issue)  # noqa: PERF402 - issues before a failure are kept
        except UsageError as error:
            trap_issues.append(build_agent_failure_issue("V3", error.message))
        return number_issues("V3", trap_issues)

    def _find_trap_issues(self, answer: ClassificationOutput, bundle: DocumentBundle) -> Iterator[Issue]:
        yield from _check_vendor_trap(self._traps, answer, bundle)
        yield from _check_administrative_trap(self._traps.administrative, answer, bundle)
        yield from _check_prompt_injection_trap(self._traps, bundle)
        for hidden_text in self._traps.hidden_text:
            yield from _check_hidden_text(hidden_text, bundle)
        for segment in answer.segments:
            for presence in segment.segment_composition:
                for evidence in presence.top_evidence:
                    yield from _check_furniture_trap(
                        self._traps, evidence, segment.segment_index, presence.document_type, bundle
                    )

    def find_in_text(self, answer: ClassificationOutput, bundle: DocumentBundle, /) -> Iterator[Finding]:
        """Find the traps that can only be seen from the surrounding text."""
        yield from _check_unnamed_vendor(self._traps, answer, bundle)
        for form in self._traps.order_form:
            yield from _check_order_form(form, answer, bundle)
        for boilerplate in self._traps.boilerplate:
            yield from _check_boilerplate(boilerplate, answer, bundle)
        yield from _check_quoted_report(answer, bundle)
        yield from _check_leaflet(answer, bundle)


def _locate_genomic_claim(answer: ClassificationOutput) -> str | None:
    for entry in answer.document_mixture:
        if entry.document_type is GENOMIC and entry.presence_level is PresenceLevel.PRIMARY:
            return f"{MIXTURE_LOCATION} → {GENOMIC.value}"
    claiming_segment = next((segment for segment, kind in iter_segment_primary_types(answer) if kind is GENOMIC), None)
    return f"segment {claiming_segment.segment_index} → {GENOMIC.value}" if claiming_segment else None


def _select_genomic_pages(answer: ClassificationOutput, bundle: DocumentBundle) -> list[Page]:
    genomic_segments = [segment for segment, kind in iter_segment_primary_types(answer) if kind is GENOMIC]
    return [
        page
        for genomic_segment in genomic_segments
        for page in bundle.iter_pages(genomic_segment.start_page, genomic_segment.end_page)
    ] or list(bundle.pages)


def _check_vendor_trap(traps: Traps, answer: ClassificationOutput, bundle: DocumentBundle) -> Iterator[Issue]:
    location = _locate_genomic_claim(answer)
    if location is None:
        return
    for vendor in traps.routine_vendor:
        signal = next((signal for signal in answer.vendor_signals if is_signal_of_vendor(vendor, signal)), None)
        if signal is None:
            continue
        pages = _select_genomic_pages(answer, bundle)
        mention = _find_vendor_on_pages(vendor, pages)
        if mention is None and _find_vendor_on_pages(vendor, bundle.pages):
            continue  # the vendor's pages belong to another segment
        assay = _find_written_name(vendor.genomic_assays, pages)
        page, quote = assay or mention or (None, None)
        yield Issue.create(
            "V3",
            "V3-TRAP-VENDOR",
            _limit_severity(MAJOR, vendor.severity) if assay else vendor.severity,
            vendor.render_message(
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
            else vendor.render_remedy("Reclassify as 'Other' or downgrade to MENTION_ONLY", found=signal, page=page),
            document_type=GENOMIC.value,
            page=page,
            quote=quote,
            facts={"vendor": vendor.name} | ({"assay": quote} if assay else {}),
        )


def _find_vendor_on_pages(vendor: RoutineVendorTrap, pages: Sequence[Page]) -> tuple[int, str] | None:
    """Return the first page that names the laboratory, and the name as written.

    Lines of fax stamps are left out. None if no page names it.
    """
    for page in pages:
        text = strip_stamp_lines(page)
        if span := next(find_vendor_mentions(vendor, text), None):
            return page.page_num, text[slice(*span)]
    return None


def _find_written_name(names: Sequence[str], pages: Sequence[Page]) -> tuple[int, str] | None:
    for page in pages:
        if span := next(iter_name_spans(names, blank_web_and_mail_addresses(page.text)), None):
            return page.page_num, page.text[slice(*span)]
    return None


def _limit_severity(worst_allowed: IssueSeverity, severity: IssueSeverity) -> IssueSeverity:
    return max(worst_allowed, severity, key=lambda candidate: candidate.rank)


def _check_administrative_trap(
    rows: Sequence[AdministrativePhraseTrap], answer: ClassificationOutput, bundle: DocumentBundle
) -> Iterator[Issue]:
    segment_types = set()
    all_pages = list(bundle.pages)
    for segment in answer.segments:
        pages = list(bundle.iter_pages(segment.start_page, segment.end_page))
        for presence in segment.segment_composition:
            if presence.presence_level is not PresenceLevel.NO_EVIDENCE:
                segment_types.add(presence.document_type)
                searched_rows = [(row, all_pages if row.scope == "document" else pages) for row in rows]
                yield from _build_phrase_issues(searched_rows, presence.document_type, presence.presence_level, segment)
    for entry in answer.document_mixture:
        if entry.presence_level is not PresenceLevel.NO_EVIDENCE and entry.document_type not in segment_types:
            yield from _build_phrase_issues(
                [(row, all_pages) for row in rows], entry.document_type, entry.presence_level, None
            )


def _build_phrase_issues(
    searched_rows: Iterable[tuple[AdministrativePhraseTrap, Sequence[Page]]],
    kind: DocumentType,
    level: PresenceLevel,
    segment: Segment | None,
) -> Iterator[Issue]:
    """Raise V3-TRAP-ADMINISTRATIVE for administrative phrases on a report's pages.

    Phrases with the same severity, message and remedy share an issue.
    """
    if kind not in REPORT_TYPES:
        return
    places_by_message: dict[tuple[IssueSeverity, str, str], list[tuple[str, int, str]]] = {}
    for row, pages in searched_rows:
        if place := _find_administrative_words(row, pages, kind):
            placeholders = {"found": place[1], "type": kind.value, "level": level.value, "page": place[0]}
            key = row.severity, row.render_message("", **placeholders), row.render_remedy("", **placeholders)
            places_by_message.setdefault(key, []).append((row.phrase, *place))
    for (severity, message, remedy), places in places_by_message.items():
        phrase_list = ", ".join(f"'{phrase}'" for phrase, _, _ in places)
        _, page, quote = places[0]
        yield Issue.create(
            "V3",
            "V3-TRAP-ADMINISTRATIVE",
            severity,
            message or f"Administrative keywords found ({phrase_list}) but {kind.value} marked {level.value}",
            location=f"segment {segment.segment_index} → {kind.value}"
            if segment
            else f"{MIXTURE_LOCATION} → {kind.value}",
            suggested_fix=remedy or "Reclassify as 'Other', or give the form its own segment",
            segment_index=segment.segment_index if segment else None,
            document_type=kind.value,
            page=page,
            quote=quote,
            facts={"words": ", ".join(phrase for phrase, _, _ in places)},
        )


def _find_administrative_words(
    row: AdministrativePhraseTrap, pages: Sequence[Page], kind: DocumentType
) -> tuple[int, str] | None:
    """Return the first page with the row's phrase, and the phrase as written.

    Stamps and addresses are left out, and labels of header lines too unless the pages look like an order. None if no page
    has the phrase.
    """
    for page in pages:
        if not row.can_match(_lower_text(page.text)):
            continue  # a quick test that excludes nearly all pages
        text = blank_web_and_mail_addresses(strip_stamp_lines(page))
        written_words = row.find_match(text)
        if written_words and row.find_match(_strip_header_labels(text)) is None and not _is_order(kind, pages):
            continue
        if written_words:
            return page.page_num, written_words
    return None


def _strip_header_labels(text: str) -> str:
    """Remove labels with numbers from header lines.

    Header lines have two labels, or are next to another line with labels. The first line is kept if it has one label,
    because that may be the title.
    """
    lines = text.split("\n")
    label_counts = [0, *(len(PATTERNS["label"].findall(line)) for line in lines), 0]
    return "\n".join(
        PATTERNS["number_label"].sub(" ", line)
        if label_counts[number] > 1 or (number > 1 and label_counts[number - 1] + label_counts[number + 1])
        else line
        for number, line in enumerate(lines, 1)
    )


def _check_prompt_injection_trap(traps: Traps, bundle: DocumentBundle) -> Iterator[Issue]:
    """Raise V3-TRAP-INSTRUCTION for visible or hidden words that address a model.

    A model's answer about the document may follow such words.
    """
    for page in bundle.pages:
        hidden_text = "\n".join(block.text for block in page.blocks if block.hidden)
        visible_lowercase, hidden_lowercase = _lower_text(page.text), hidden_text.lower()
        for row in traps.addressed_to_model:
            visible_match = row.find_match(page.text) if row.can_match(visible_lowercase) else None
            if visible_match is None and not (
                hidden_text and row.can_match(hidden_lowercase) and row.find_match(hidden_text)
            ):
                continue
            yield Issue.create(
                "V3",
                "V3-TRAP-INSTRUCTION",
                row.severity,
                row.render_message(
                    f"Page {page.page_num} has {row.name}", found=visible_match or "", page=page.page_num
                )
                + ("" if visible_match else ", hidden from people who look at it"),
                location=f"page {page.page_num}",
                suggested_fix=row.render_remedy(_INSTRUCTION_REMEDY, found=visible_match or "", page=page.page_num),
                page=page.page_num,
                quote=visible_match,
                facts={"visibility": "visible" if visible_match else "hidden"},
            )


_INSTRUCTION_REMEDY = "Decide without any model's answer about this document, and ask where the file comes from"


def _check_hidden_text(row: HiddenTextTrap, bundle: DocumentBundle) -> Iterator[Issue]:
    """Raise V3-TRAP-HIDDEN for hidden words that the page does not show as well.

    The invisible text layer of a scan is shown by the scan, and so raises nothing.
    """
    for page in bundle.pages:
        hidden_words = [
            word for block in page.blocks if block.hidden for word in PATTERNS["word"].findall(_lower_text(block.text))
        ]
        if len(hidden_words) < row.words:
            continue
        visible_words = set(PATTERNS["word"].findall(_lower_text(page.text)))
        new_word_count = sum(word not in visible_words for word in hidden_words)
        if new_word_count < row.words or 2 * new_word_count < len(hidden_words):
            continue
        yield Issue.create(
            "V3",
            "V3-TRAP-HIDDEN",
            row.severity if new_word_count >= row.notable else _limit_severity(MINOR, row.severity),
            row.render_message(
                f"Page {page.page_num} has hidden text of {new_word_count} words that it does not show",
                page=page.page_num,
            ),
            location=f"page {page.page_num}",
            suggested_fix=row.render_remedy("Find out who wrote the hidden text, and why", page=page.page_num),
            page=page.page_num,
            facts={"count": new_word_count},
        )


def _find_phrase(page: Page, phrase: str) -> str | None:
    """Return the phrase as the page writes it, or None.

    Whole words; case, line breaks and a plural s are ignored.
    """
    if phrase.isascii() and not all(word in _lower_text(page.text) for word in phrase.lower().split()):
        return None  # a quick test that excludes nearly all pages
    phrase_pattern = r"\s+".join(re.escape(word) for word in phrase.split())
    match = re.search(rf"(?<!\w){phrase_pattern}s?(?!\w)", page.text, re.IGNORECASE)
    return match.group() if match else None


#: Characters that re.IGNORECASE matches with ASCII letters; ``str.lower`` already converts the Kelvin sign.
_ASCII_EQUIVALENTS = str.maketrans("İıſ", "iis")


@cache_document_text(512)  # every phrase is searched on the same pages
def _lower_text(text: str) -> str:
    return (text if text.isascii() else text.translate(_ASCII_EQUIVALENTS)).lower()


def _check_furniture_trap(
    traps: Traps, evidence: Evidence, segment_index: int, kind: DocumentType, bundle: DocumentBundle
) -> Iterator[Issue]:
    rows: Sequence[PageFurnitureTrap] = ()
    if is_only_in_furniture(evidence, bundle):
        description = "the header or footer of the page"
    else:
        rows = [row for row in traps.page_furniture if row.find_match(evidence.snippet)]
        if not rows:
            return
        description = f"header or footer text ({', '.join(row.name for row in rows)})"
    placeholders = {"found": evidence.snippet, "type": kind.value, "page": evidence.page}
    default_message = f"The evidence for {kind.value} on page {evidence.page} is {description}"
    default_remedy = "Quote a sentence of the document's body"
    yield Issue.create(
        "V3",
        "V3-TRAP-FURNITURE",
        min((row.severity for row in rows), key=lambda severity: severity.rank, default=MINOR),
        next((row.render_message(default_message, **placeholders) for row in rows if row.message), default_message),
        location=f"segment {segment_index} → {kind.value} → top_evidence",
        suggested_fix=next(
            (row.render_remedy(default_remedy, **placeholders) for row in rows if row.remedy), default_remedy
        ),
        segment_index=segment_index,
        document_type=kind.value,
        page=evidence.page,
        quote=evidence.snippet,
    )


def _check_unnamed_vendor(traps: Traps, answer: ClassificationOutput, bundle: DocumentBundle) -> Iterator[Finding]:
    """Find genomic reports with a routine laboratory's letterhead.

    Only for laboratories that ``vendor_signals`` leaves out, because the others are found by trap 1.
    """
    if _locate_genomic_claim(answer) is None:
        return
    for vendor in traps.routine_vendor:
        if any(is_signal_of_vendor(vendor, signal) for signal in answer.vendor_signals):
            continue
        pages = _select_genomic_pages(answer, bundle)
        page = next((page for page in pages if _find_vendor_in_letterhead(vendor, page)), None)
        if page and not _find_written_name(vendor.genomic_assays, pages):
            yield Finding(
                reasoning="A letterhead says who made the report; this laboratory's everyday product is blood panels.",
                severity=_limit_severity(MAJOR, vendor.severity),
                message=f"{vendor.name} is in the letterhead of page {page.page_num}, is missing in "
                "vendor_signals, and Genomic Report is marked PRIMARY",
                document_type=GENOMIC.value,
                page=page.page_num,
                quote=_find_vendor_in_letterhead(vendor, page),
                suggested_fix="Check whether this is a routine panel",
            )


def _find_vendor_in_letterhead(vendor: RoutineVendorTrap, page: Page) -> str | None:
    letterhead = islice((text for text in strip_stamp_lines(page).split("\n") if text.strip()), _LETTERHEAD_LINES)
    return next((line for line in letterhead if any(find_vendor_mentions(vendor, line))), None)


def _iter_report_segments(
    answer: ClassificationOutput, bundle: DocumentBundle
) -> Iterator[tuple[Segment, DocumentType, list[Page]]]:
    """Yield the segments called a report, with each such type and their pages."""
    for segment, kind in iter_segment_primary_types(answer):
        if kind in REPORT_TYPES:
            yield segment, kind, list(bundle.iter_pages(segment.start_page, segment.end_page))


def _check_order_form(
    order_form: OrderFormTrap, answer: ClassificationOutput, bundle: DocumentBundle
) -> Iterator[Finding]:
    for segment, kind, pages in _iter_report_segments(answer, bundle):
        for page in pages:
            written_words = [written_word for word in order_form.words if (written_word := _find_phrase(page, word))]
            if len(written_words) >= order_form.at_least and _is_order(kind, [page]):
                word_list = ", ".join(written_words[:4])
                placeholders = {
                    "found": word_list,
                    "type": kind.value,
                    "level": PresenceLevel.PRIMARY,
                    "page": page.page_num,
                }
                default_message = (
                    f"Page {page.page_num} looks like an order ({word_list}) but is claimed as {kind.value}"
                )
                yield Finding(
                    reasoning="The page has the words of an order form and none of the signs of a result.",
                    severity=order_form.severity,
                    message=order_form.render_message(default_message, **placeholders),
                    segment_index=segment.segment_index,
                    document_type=kind.value,
                    page=page.page_num,
                    quote=written_words[0],
                    suggested_fix=order_form.render_remedy("Reclassify the page as 'Other'", **placeholders),
                )


def _is_order(kind: DocumentType, pages: Sequence[Page]) -> bool:
    """Return True if the pages have few signs of the report, or more signs of a form."""
    forms = measure_type_signs_on_pages(pages)
    return forms[kind] < max(MIN_RESULT_STRENGTH, forms[DocumentType.OTHER])


def _check_boilerplate(
    boilerplate: BoilerplateTrap, answer: ClassificationOutput, bundle: DocumentBundle
) -> Iterator[Finding]:
    """Find segments called a report that describe a method and have no result."""
    for segment, kind in iter_segment_primary_types(answer):
        if kind is not boilerplate.type:
            continue
        pages = list(bundle.iter_pages(segment.start_page, segment.end_page))
        phrases = boilerplate.find_phrases_unless_result("\n".join(page.text for page in pages))
        if len(phrases) < boilerplate.at_least:
            continue
        page = next((page for page in pages if phrases[0] in page.text), pages[0])
        placeholders = {"found": phrases[0], "type": kind.value, "level": PresenceLevel.PRIMARY, "page": page.page_num}
        default_message = (
            f"Segment {segment.segment_index} says how a test is done and no result, but is claimed as {kind.value}"
        )
        yield Finding(
            reasoning="The text describes a method or a service and has no patient's result.",
            severity=boilerplate.severity,
            message=boilerplate.render_message(default_message, **placeholders),
            segment_index=segment.segment_index,
            document_type=kind.value,
            page=page.page_num,
            quote=phrases[0],
            suggested_fix=boilerplate.render_remedy(
                "Reclassify as 'Other', or join the segment with the report that it belongs to", **placeholders
            ),
        )


def _locate_quoted_report(kind: DocumentType, pages: Sequence[Page]) -> tuple[Page, str] | None:
    """Return the page and the words that show that a note quotes a report.

    The report's signs are in quotation marks or retold, in a text whose signs of a note are at least half as strong; or
    signs of a note are on both sides of them. None if neither applies.
    """
    forms = measure_type_signs_on_pages(pages)
    if forms[NOTE] < MIN_QUOTING_STRENGTH:
        return None
    if forms[NOTE] >= forms[kind] / 2 and (reported_place := next(_find_reported_words(kind, pages), None)):
        return reported_place
    note_frame = find_note_around_report("\n".join(page.text for page in pages), kind)
    if note_frame is None or note_frame.strength < MIN_QUOTING_STRENGTH:
        return None
    return next((page for page in reversed(pages) if note_frame.quote in page.text), pages[-1]), note_frame.quote


def _find_reported_words(kind: DocumentType, pages: Iterable[Page]) -> Iterator[tuple[Page, str]]:
    """Yield page and words where a report is in quotation marks or a result is retold."""
    for page in pages:
        for quoted_match in PATTERNS["quoted_text"].finditer(page.text):
            if measure_type_signs_in_text(quoted_match[1])[kind]:
                yield page, quoted_match[1].strip()
        if reported_match := PATTERNS["reported_result"].search(page.text):
            yield page, reported_match.group()


def _check_quoted_report(answer: ClassificationOutput, bundle: DocumentBundle) -> Iterator[Finding]:
    for segment, kind, pages in _iter_report_segments(answer, bundle):
        if quoted_place := _locate_quoted_report(kind, pages):
            page, quote = quoted_place
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


def _check_leaflet(answer: ClassificationOutput, bundle: DocumentBundle) -> Iterator[Finding]:
    for segment, kind, pages in _iter_report_segments(answer, bundle):
        if any(identifier.kind not in ("sex", "age") for page in pages for identifier in page.identifiers):
            continue
        reader_phrases = [
            (page, match.group()) for page in pages for match in PATTERNS["reader_phrase"].finditer(page.text)
        ]
        if len(reader_phrases) < MIN_READER_PHRASES or any(
            PATTERNS["patient_data"].search(PATTERNS["edition_date"].sub("", page.text)) for page in pages
        ):
            continue
        page, quote = reader_phrases[0]
        yield Finding(
            reasoning="The text addresses its reader, and names neither a patient nor a date.",
            severity=MAJOR,
            message=f"Segment {segment.segment_index} seems to explain a test or an illness to patients, "
            f"but is claimed as {kind.value}",
            segment_index=segment.segment_index,
            document_type=kind.value,
            page=page.page_num,
            quote=quote,
            suggested_fix=f"Check whether the segment is a leaflet, whose type is '{DocumentType.OTHER.value}'",
        )
