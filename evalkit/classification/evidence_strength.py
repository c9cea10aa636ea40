"""Strength of a quote as evidence of a document type.

Evidence states something of the type: a finding, a value, a variant, a diagnosis or an encounter.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache, partial
from typing import NamedTuple

from evalkit.classification.findings import Finding, iter_segment_primary_types
from evalkit.classification.primary_classifier import classify_by_embedded_model
from evalkit.classification.schema import PATTERNS, ClassificationOutput, DocumentType, Evidence
from evalkit.core.document_cache import cache_document_text
from evalkit.core.package_tables import load_package_table
from evalkit.document_types import FIVE_TYPES
from evalkit.documents.bundle import Block, DocumentBundle
from evalkit.grounding.normalise import canonicalise
from evalkit.issue import IssueSeverity

MAJOR, MINOR = IssueSeverity.MAJOR, IssueSeverity.MINOR


#: Types of which quotes show signs: not Other, and not a site's own.
TYPES_WITH_SIGNS = frozenset(FIVE_TYPES) - {DocumentType.OTHER}


class EvidencePattern(NamedTuple):
    """Row of ``evidence_strength.toml``: a pattern of strong or weak evidence.

    A weak quote is still evidence if it has one of the result kinds in ``excused_by``.
    """

    name: str
    pattern: re.Pattern[str]
    reason: str = ""
    excused_by: frozenset[str] = frozenset()
    types: frozenset[DocumentType] = TYPES_WITH_SIGNS


#: Load the tables of ``evidence_strength.toml``; cached.
load_strength_tables = partial(load_package_table, "evalkit.classification", "evidence_strength.toml")


@cache
def _load_rows(table_name: str) -> tuple[EvidencePattern, ...]:
    return tuple(
        EvidencePattern(
            row["name"],
            re.compile(row["pattern"], 0 if row.get("case") else re.IGNORECASE),
            row.get("reason", ""),
            frozenset(row.get("excused_by", ())),
            frozenset(map(DocumentType, row["types"])) if "types" in row else EvidencePattern._field_defaults["types"],
        )
        for row in load_strength_tables()[table_name]
    )


@cache_document_text(256)  # several checks ask about the same quote, and answers repeat quotes
def find_result_kinds(quote: str) -> frozenset[str]:
    """Return the names of the kinds of results that the quote states.

    >>> sorted(find_result_kinds("Estrogen receptor: positive (95%)")), sorted(find_result_kinds("SURGICAL PATHOLOGY REPORT"))
    (['answer', 'measure'], [])
    """
    return frozenset(row.name for row in _load_rows("result") if row.pattern.search(quote))


@cache
def _load_evidence_patterns_by_type() -> Mapping[DocumentType, tuple[re.Pattern[str], frozenset[str]]]:
    return {
        DocumentType(row["type"]): (re.compile(row["pattern"], re.IGNORECASE), frozenset(row["results"]))
        for row in load_strength_tables()["sign"]
    }


def has_sign_of_type(quote: str, kind: DocumentType) -> bool:
    """Return True if the quote contains words or results typical of the type.

    Always True for Other and for a site's own types, whose signs nobody has written down.

    >>> has_sign_of_type("MRI of the knee last year", DocumentType.RADIOLOGY_REPORT)
    True
    """
    if kind not in TYPES_WITH_SIGNS:
        return True
    pattern, results = _load_evidence_patterns_by_type()[kind]
    return bool(pattern.search(quote)) or not results.isdisjoint(find_result_kinds(quote))


@cache_document_text(256)
def find_weakness(quote: str, kind: DocumentType) -> EvidencePattern | None:
    """Return why a quote is weak evidence of the type; None if it is not weak.

    >>> find_weakness("Please see the enclosed laboratory report", DocumentType.GENOMIC_REPORT).name
    'a generic reference'
    """
    rows = [row for row in _load_rows("weakness") if kind in row.types and row.pattern.search(quote)]
    results = find_result_kinds(quote) if rows else frozenset()
    return next((row for row in rows if results.isdisjoint(row.excused_by)), None)


_HIGH_CONFIDENCE = 0.7


def find_weak_evidence(answer: ClassificationOutput, bundle: DocumentBundle) -> Iterator[Finding]:
    """Find document types marked PRIMARY whose quotes do not support the type.

    MAJOR if all quotes of the type are weak; MINOR if a generic reference is quoted beside better quotes.
    """
    for segment, kind in iter_segment_primary_types(answer):
        for presence in segment.segment_composition:
            if presence.document_type is not kind:
                continue
            weak_quotes = [
                (quoted_evidence, weakness)
                for quoted_evidence in presence.top_evidence
                if (weakness := _find_evidence_weakness(quoted_evidence, kind, bundle))
            ]
            is_all_weak = len(weak_quotes) == len(presence.top_evidence)
            if not is_all_weak:  # beside good evidence, only a generic reference is worth a remark
                weak_quotes = [
                    (quoted_evidence, weakness)
                    for quoted_evidence, weakness in weak_quotes
                    if weakness.name == GENERIC_REFERENCE
                ]
            if not weak_quotes:
                continue
            is_unsupported = is_all_weak and presence.confidence >= _HIGH_CONFIDENCE
            evidence, weakness = weak_quotes[0]
            snippet = " ".join(evidence.snippet.split())
            yield Finding(
                reasoning=f"The quote {weakness.reason}.",
                severity=MAJOR if is_all_weak else MINOR,
                message=f"Evidence snippet '{snippet}' is {weakness.name}, not specific evidence of {kind.value}."
                + (f" Confidence {presence.confidence:g} is not supported by it." if is_unsupported else ""),
                segment_index=segment.segment_index,
                document_type=kind.value,
                page=evidence.page,
                quote=evidence.snippet,
                suggested_fix="Quote a finding, a value or a diagnosis",
            )


def find_weak_evidence_of_other_models(answer: ClassificationOutput, bundle: DocumentBundle) -> Iterator[Finding]:
    """Find weak evidence, except quotes that the built-in model would choose.

    The built-in model's quotes are only places where its words match.
    """
    findings = list(find_weak_evidence(answer, bundle))
    own_quotes = {
        (kind, evidence.page, evidence.snippet)
        for segment, kind in (iter_segment_primary_types(classify_by_embedded_model(bundle)) if findings else ())
        for presence in segment.segment_composition
        for evidence in presence.top_evidence
        if presence.document_type is kind
    }
    yield from (
        finding for finding in findings if (finding.document_type, finding.page, finding.quote) not in own_quotes
    )


GENERIC_REFERENCE = "a generic reference"
_TITLE_OR_WORD_LIST = EvidencePattern(
    "a title or a list of words", re.compile(""), "states nothing: it is no sentence and has no value"
)
_ONLY_FURNITURE = EvidencePattern(
    "the header or footer of the page", re.compile(""), "says whose page it is, or who printed it"
)
_LINE_OF_ANY_DOCUMENT = EvidencePattern(
    "a line that any document could have", re.compile(""), "names nothing that is particular to the type"
)


def _find_evidence_weakness(evidence: Evidence, kind: DocumentType, bundle: DocumentBundle) -> EvidencePattern | None:
    quote = evidence.snippet
    if weakness := find_weakness(quote, kind):
        return weakness
    if is_only_in_furniture(evidence, bundle):
        return _ONLY_FURNITURE
    results = find_result_kinds(quote)
    if kind is not DocumentType.OTHER and not is_statement(quote) and results <= {"finding", "diagnosis"}:
        return _TITLE_OR_WORD_LIST
    has_terms = PATTERNS["body_terms"].search(quote) or (
        kind not in TYPES_WITH_SIGNS and PATTERNS["paper_terms"].search(quote)
    )
    return None if results or has_terms else _LINE_OF_ANY_DOCUMENT


_WORDS_PER_STATEMENT = 12


def is_statement(quote: str) -> bool:
    """Return True if the quote makes a statement, not just names a thing.

    A statement is a sentence, a value, a label with its content, or a diagnosis; a title or a list of words is none.

    >>> [is_statement(quote) for quote in ("SURGICAL PATHOLOGY REPORT", "Margins are negative", "Diagnosis: melanoma", "2.3 cm")]
    [False, True, True, True]
    >>> [is_statement(quote) for quote in ("Department of Pathology", "Cough and fever for some days.")]
    [False, True]
    """
    word_count = len(quote.split())
    if PATTERNS["value"].search(quote) or PATTERNS["note_phrase"].search(quote) or PATTERNS["telegram"].search(quote):
        return True
    if (
        word_count <= _WORDS_PER_STATEMENT
        and PATTERNS["diagnosis"].search(quote)
        and not PATTERNS["non_diagnosis_nouns"].search(quote)
    ):
        return True
    content_word_count = max(
        word_count - len(PATTERNS["linking_words"].findall(quote)), 1
    )  # linking words are not counted: a list of words has none
    return len(PATTERNS["statement_words"].findall(quote)) * _WORDS_PER_STATEMENT >= content_word_count


def is_only_in_furniture(evidence: Evidence, bundle: DocumentBundle) -> bool:
    """Return True if the quote is only in the header or footer of its page."""
    if not 1 <= evidence.page <= bundle.total_pages:
        return False
    blocks = bundle.page(evidence.page).visible_blocks
    furniture = [block for block in blocks if block.furniture]
    if not furniture or not (canonical_quote := canonicalise(evidence.snippet)):
        return False

    def has_quote(block: Block) -> bool:
        return canonical_quote in canonicalise(block.text)

    return any(map(has_quote, furniture)) and not any(has_quote(block) for block in blocks if not block.furniture)
