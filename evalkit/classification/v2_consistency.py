"""V2: does the answer agree with itself, and does the text carry its labels?

Source: specification 000, slide 4; contract rulings 2, 3, 8 and 12. The first part is arithmetic; the second is one
question to a model, which is not asked where the first part found a BLOCKER.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from evalkit.classification.autofix import is_repairable, sums_to_one
from evalkit.classification.continuity import strange_beginnings
from evalkit.classification.corroboration import contradictions
from evalkit.classification.findings import Finding, Findings, Pages, VerifierQuestion, observations, read_findings
from evalkit.classification.schema import (
    ClassificationOutput,
    DocumentType,
    MixtureEntry,
    PresenceLevel,
    Segment,
    TypePresence,
    exact,
)
from evalkit.classification.v1_schema import MIXTURE
from evalkit.documents.bundle import DocumentBundle
from evalkit.issue import Issue, IssueSeverity, numbered
from evalkit.llm.model import Answer, Question

BLOCKER, MAJOR, MINOR = IssueSeverity.BLOCKER, IssueSeverity.MAJOR, IssueSeverity.MINOR

#: Where ``self_evaluation`` names joins that the classifier is unsure of: ``[{"page": 3, "begins": 0.46}]``, ``begins`` the
#: probability that a document begins on the page.
DOUBTS = "doubtful_joins"
#: Where it says the rest in words.
SUMMARY = "summary"

#: How far the mixture may be from the page-weighted shares of the segments, per type, this distance included.
MIXTURE_TOLERANCE = Decimal("0.05")
#: Overall shares that are this near to the largest, or nearer, are a tie.
TIE = Decimal("0.01")


class V2ConsistencyChecker:
    """The consistency checks."""

    def validate(self, classification: ClassificationOutput, bundle: DocumentBundle) -> list[Issue]:
        """The computed part, numbered from V2-0001."""
        return numbered("V2", _faults(classification, bundle.total_pages))

    def questions(
        self, classification: ClassificationOutput, bundle: DocumentBundle, pages: Pages | None = None
    ) -> list[Question[Findings]]:
        """The model's part: does the text of each segment match its labels?"""
        return [VerifierQuestion("V2", "V2_Internal_Consistency_Checker", classification, bundle, _seen_in_text, pages)]

    def observed(self, questions: Iterable[Question[Findings]]) -> list[Issue]:
        """What the forms of the text say against its labels and boundaries, numbered from V2-0001."""
        return observations("V2", questions)

    def read(self, answers: Sequence[Answer[Findings]]) -> list[Issue]:
        """The answers as issues; a missing answer is a BLOCKER."""
        return read_findings("V2", answers)


def _seen_in_text(answer: ClassificationOutput, bundle: DocumentBundle) -> Iterator[Finding]:
    yield from contradictions(answer, bundle)
    yield from strange_beginnings(answer, bundle)


def _faults(answer: ClassificationOutput, total_pages: int) -> Iterator[Issue]:
    for segment in answer.segments:
        yield from _share_sum(answer, segment.segment_composition, segment.segment_index)
        yield from _dominant_in_segment(segment)
    yield from _share_sum(answer, answer.document_mixture, None)
    yield from _overlaps(answer.segments)
    yield from _gaps(answer.segments, total_pages)
    yield from _dominant_overall(answer)
    yield from _mixture(answer)
    yield from _presence(answer)
    yield from _doubts(answer, total_pages)


def _share(entry: TypePresence | MixtureEntry) -> float:
    return entry.segment_share if isinstance(entry, TypePresence) else entry.overall_share


def _share_sum(
    answer: ClassificationOutput, entries: Sequence[TypePresence | MixtureEntry], segment_index: int | None
) -> Iterator[Issue]:
    shares = [_share(entry) for entry in entries]
    if sums_to_one(shares):
        return
    code = "V2-MIXTURE-SHARE-SUM" if segment_index is None else "V2-SEGMENT-SHARE-SUM"
    what = "Mixture overall_share values" if segment_index is None else f"Segment {segment_index} shares"
    fixable = is_repairable(code, answer, segment_index)
    yield Issue.of(
        "V2",
        code,
        MAJOR,
        f"{what} sum to {sum(exact(shares)):.3f} instead of 1.0",
        location=MIXTURE if segment_index is None else f"segment {segment_index}",
        suggested_fix="Divide each share by their sum" if fixable else "Estimate the shares again",
        auto_fixable=fixable,
        segment_index=segment_index,
    )


def _dominant_in_segment(segment: Segment) -> Iterator[Issue]:
    at = f"segment {segment.segment_index}"
    if segment.dominant_type is None:
        yield _cannot_tell(f"The classifier cannot tell what segment {segment.segment_index} is", at, segment)
        return
    shares = {presence.document_type: presence.segment_share for presence in segment.segment_composition}
    largest = max(shares.values(), default=0.0)
    if shares.get(segment.dominant_type, 0.0) < largest:
        others = " or ".join(kind.value for kind, share in shares.items() if share == largest)
        yield Issue.of(
            "V2",
            "V2-DOMINANT-SEGMENT",
            MAJOR,
            f"Segment {segment.segment_index} is called {segment.dominant_type.value}, "
            f"but its largest share is {others} ({largest:g})",
            location=f"{at} → dominant_type",
            suggested_fix=f"Decide between {segment.dominant_type.value} and {others}",
            segment_index=segment.segment_index,
            document_type=segment.dominant_type.value,
        )
        return
    levels = {presence.document_type: presence.presence_level for presence in segment.segment_composition}
    yield from _called_not_primary(segment.dominant_type, levels, segment.segment_index)


def _cannot_tell(message: str, at: str, segment: Segment | None = None) -> Issue:
    return Issue.of(
        "V2",
        "V2-CANNOT-TELL",
        MAJOR,
        message,
        location=f"{at} → dominant_type" if segment else at,
        suggested_fix="Look at the pages and choose the type",
        segment_index=segment.segment_index if segment else None,
    )


def _in_order(segments: Sequence[Segment]) -> list[Segment]:
    """The segments that cover any page, by their first page."""
    whole = [segment for segment in segments if segment.start_page <= segment.end_page]
    return sorted(whole, key=lambda segment: (segment.start_page, segment.end_page))


def _overlaps(segments: Sequence[Segment]) -> Iterator[Issue]:
    furthest: Segment | None = None
    for segment in _in_order(segments):
        if furthest and segment.start_page <= furthest.end_page:
            pages = _pages(segment.start_page, min(segment.end_page, furthest.end_page))
            yield Issue.of(
                "V2",
                "V2-PAGE-OVERLAP",
                BLOCKER,
                f"Segments {furthest.segment_index} and {segment.segment_index} both claim {pages}",
                location=f"segment {segment.segment_index}",
                suggested_fix="Give each page to exactly one segment",
                segment_index=segment.segment_index,
                page=segment.start_page,
            )
        if furthest is None or segment.end_page > furthest.end_page:
            furthest = segment


def _gaps(segments: Sequence[Segment], total_pages: int) -> Iterator[Issue]:
    expected = 1
    for start, end in [*((one.start_page, one.end_page) for one in _in_order(segments)), (total_pages + 1,) * 2]:
        last_missing = min(start - 1, total_pages)
        if expected <= last_missing:
            yield Issue.of(
                "V2",
                "V2-PAGE-GAP",
                BLOCKER,
                f"No segment covers {_pages(expected, last_missing)}",
                location="segments",
                suggested_fix="Give each page to exactly one segment",
                page=expected,
            )
        expected = max(expected, end + 1)


def _pages(start: int, end: int) -> str:
    return f"page {start}" if start == end else f"pages {start}–{end}"


def _dominant_overall(answer: ClassificationOutput) -> Iterator[Issue]:
    called = answer.dominant_type_overall
    if called is None:
        yield _cannot_tell("The classifier cannot tell what the document mainly is", "dominant_type_overall")
        return
    shares = {entry.document_type: exact([entry.overall_share])[0] for entry in answer.document_mixture}
    largest = max(shares.values(), default=Decimal(0))
    near = nearly_largest(answer.document_mixture)
    winner = tie_winner(near, answer.segments) if near else None
    if called is not winner:
        yield Issue.of(
            "V2",
            "V2-DOMINANT-OVERALL",
            MAJOR,
            f"The document is called {called.value}, but its largest overall share is "
            f"{winner.value if winner else 'nothing'} ({largest:g})",
            location="dominant_type_overall",
            suggested_fix=f"Decide between {called.value} and {winner.value}" if winner else "Choose the type",
            document_type=called.value,
        )
        return
    if len(near) > 1:
        tied = " and ".join(kind.value for kind in near)
        yield Issue.of(
            "V2",
            "V2-DOMINANT-TIE",
            MINOR,
            f"{tied} have equal overall shares",
            location="dominant_type_overall",
            document_type=called.value,
        )
    if answer.segments:
        levels = {entry.document_type: entry.presence_level for entry in answer.document_mixture}
        yield from _called_not_primary(called, levels, None)


def nearly_largest(mixture: Sequence[MixtureEntry]) -> list[DocumentType]:
    """The types whose overall share is the largest, or equal to it within the tie's width."""
    shares = exact(entry.overall_share for entry in mixture)
    largest = max(shares, default=Decimal(0))
    return [entry.document_type for entry, share in zip(mixture, shares, strict=True) if largest - share <= TIE]


def tie_winner(tied: Sequence[DocumentType], segments: Sequence[Segment]) -> DocumentType:
    """Of types with equal overall shares: more pages, then report before Other, then the first (ruling 12).

    The first is the one whose segment comes first in the document; of types without one, the first that is named.
    """
    pages: Counter[DocumentType | None] = Counter()
    first: dict[DocumentType | None, int] = {}
    for segment in _in_order(segments):
        pages[segment.dominant_type] += segment.end_page - segment.start_page + 1
        first.setdefault(segment.dominant_type, -segment.start_page)
    nowhere = min(first.values(), default=0) - 1
    return max(tied, key=lambda kind: (pages[kind], kind is not DocumentType.OTHER, first.get(kind, nowhere)))


def _mixture(answer: ClassificationOutput) -> Iterator[Issue]:
    """The mixture against the page-weighted shares; both normalised, as wrong sums are another issue."""
    stated = _proportions([(1, answer.document_mixture)])
    weighted = _proportions([(one.end_page - one.start_page + 1, one.segment_composition) for one in answer.segments])
    if stated is None or weighted is None:
        return
    wrong = [kind for kind in DocumentType if abs(stated[kind] - weighted[kind]) > MIXTURE_TOLERANCE]
    if wrong:
        worst = max(wrong, key=lambda kind: abs(stated[kind] - weighted[kind]))
        yield Issue.of(
            "V2",
            "V2-MIXTURE",
            MAJOR,
            f"The mixture gives {worst.value} {stated[worst]:.2f}, but the segments' pages give {weighted[worst]:.2f}",
            location=f"{MIXTURE} → {worst.value}",
            suggested_fix="Weigh the segments' shares by their pages",
            document_type=worst.value,
        )


def _presence(answer: ClassificationOutput) -> Iterator[Issue]:
    """The mixture must not deny what a segment is, nor claim what no segment has."""
    mixed = {entry.document_type: entry.presence_level for entry in answer.document_mixture}
    for kind, level in mixed.items():
        in_segments = [
            presence.presence_level
            for segment in answer.segments
            for presence in segment.segment_composition
            if presence.document_type is kind
        ]
        denied = level is PresenceLevel.NO_EVIDENCE and PresenceLevel.PRIMARY in in_segments
        unfounded = level is PresenceLevel.PRIMARY and set(in_segments) <= {PresenceLevel.NO_EVIDENCE}
        if answer.segments and (denied or unfounded):
            yield Issue.of(
                "V2",
                "V2-MIXTURE-PRESENCE",
                MAJOR,
                f"The mixture calls {kind.value} {level.value}, but "
                + ("a segment calls it PRIMARY" if denied else "no segment has any of it"),
                location=f"{MIXTURE} → {kind.value}",
                suggested_fix="Decide which of the two is right",
                document_type=kind.value,
            )


def _doubts(answer: ClassificationOutput, total_pages: int) -> Iterator[Issue]:
    """Joins of which the classifier itself says that it cannot tell whether a document begins there."""
    for page, chance in sorted(doubted_joins(answer).items()):
        if not 1 <= page <= total_pages:
            continue
        is_told = isinstance(chance, int | float) and 0 <= chance <= 1
        yield Issue.of(
            "V2",
            "V2-BOUNDARY-DOUBT",
            MAJOR,
            f"The classifier itself is unsure whether a document begins on page {page}"
            + (f" ({chance:.0%})" if is_told else ""),
            location="segments",
            suggested_fix=f"Look whether page {page} goes on with the page before",
            segment_index=next(
                (one.segment_index for one in answer.segments if one.start_page <= page <= one.end_page), None
            ),
            page=page,
        )


def doubted_joins(answer: ClassificationOutput) -> dict[int, Any]:
    """Page → what is told of its join, as ``DOUBTS`` says; whatever has another shape is no doubt."""
    told = answer.self_evaluation.get(DOUBTS) if isinstance(answer.self_evaluation, dict) else None
    rows = [row for row in told if isinstance(row, dict)] if isinstance(told, list) else []
    return {row["page"]: row.get("begins") for row in rows if type(row.get("page")) is int}


def _called_not_primary(
    called: DocumentType, levels: Mapping[DocumentType, PresenceLevel], segment_index: int | None
) -> Iterator[Issue]:
    """The largest share is not enough: a type that is only mentioned is not what a thing is."""
    level = levels.get(called)
    if level in (None, PresenceLevel.PRIMARY):
        return
    what = "The document" if segment_index is None else f"Segment {segment_index}"
    yield Issue.of(
        "V2",
        "V2-DOMINANT-PRESENCE",
        MAJOR,
        f"{what} is called {called.value}, which is only {level} in it",
        location="dominant_type_overall" if segment_index is None else f"segment {segment_index} → dominant_type",
        suggested_fix="Decide whether it is that type",
        segment_index=segment_index,
        document_type=called.value,
    )


def _proportions(
    parts: Sequence[tuple[int, Sequence[TypePresence | MixtureEntry]]],
) -> dict[DocumentType, Decimal] | None:
    """Each type's part of the whole, parts weighted by their pages; None where the numbers allow no such thing."""
    totals = dict.fromkeys(DocumentType, Decimal(0))
    pages = 0
    for weight, entries in parts:
        shares = exact(_share(entry) for entry in entries)
        if weight < 1 or sum(shares) <= 0 or any(share < 0 for share in shares):
            return None
        pages += weight
        for entry, share in zip(entries, shares, strict=True):
            totals[entry.document_type] += weight * share / sum(shares)
    return {kind: total / pages for kind, total in totals.items()} if pages else None
