"""Strength of a quote as evidence of a document type.

Evidence states something of the type: a finding, a value, a variant, a diagnosis or an encounter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache, partial
from typing import NamedTuple

from evalkit.classification.findings import Finding, iter_segment_primary_types
from evalkit.classification.primary_classifier import classify_by_embedded_model
from evalkit.classification.schema import ClassificationOutput, DocumentType, Evidence
from evalkit.core.package_tables import load_package_table
from evalkit.document_types import FIVE_TYPES
from evalkit.documents.bundle import Block, DocumentBundle
from evalkit.grounding.normalise import canonicalise
from evalkit.issue import IssueSeverity

MAJOR, MINOR = IssueSeverity.MAJOR, IssueSeverity.MINOR


#: Types of which quotes show signs: not Other, and not a site's own.
TYPES_WITH_SIGNS = frozenset(FIVE_TYPES) - {DocumentType.OTHER}


class EvidencePattern(NamedTuple):
    """Row of ``evidence_strength.toml``: a pattern of results or of weak quotes.

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


@lru_cache(maxsize=256)  # several checks ask about the same quote, and answers repeat quotes
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
    """Return True if the quote has words or results of the type, or mentions it.

    Always True for Other and for a site's own types, whose signs nobody has written down.

    >>> has_sign_of_type("MRI of the knee last year", DocumentType.RADIOLOGY_REPORT)
    True
    """
    if kind not in TYPES_WITH_SIGNS:
        return True
    pattern, results = _load_evidence_patterns_by_type()[kind]
    return bool(pattern.search(quote)) or not results.isdisjoint(find_result_kinds(quote))


@lru_cache(maxsize=256)
def find_weakness(quote: str, kind: DocumentType) -> EvidencePattern | None:
    """Return the weak form of a quote that is no evidence of the type, or None.

    >>> find_weakness("Please see the enclosed laboratory report", DocumentType.GENOMIC_REPORT).name
    'a generic reference'
    """
    rows = [row for row in _load_rows("weakness") if kind in row.types and row.pattern.search(quote)]
    results = find_result_kinds(quote) if rows else frozenset()
    return next((row for row in rows if results.isdisjoint(row.excused_by)), None)


#: Beginnings of words for the body, diseases and treatments: a sentence without any of them could be in any document.
_BODY_TERMS = re.compile(
    r"\b\w{2,40}(?:itis|omas?|osis|oses|emia|ectomy|oscopy|plasty|opathy|algia|uria|otomy|genic|cytes?|plasia|trophy|ectasia)\b"
    r"(?<!diagnosis)(?<!diagnoses)(?<!prognosis)(?<!genomic)"
    r"|\b(?:carcin|cardi|pulmon|hepat|renal|gastr|neuro|cyst|lymph|node|nodul|lesion|mass\b|masses|tumou?r(?! (?:board|conference|centre|center))|cancer|malign|benign"
    r"|fractur|stenos|effusion|dis[ck]s?\b|arter|vein|venous|aort|liver|spleen|kidney|lung|breast|prostat|colon|bowel|uter|ovar"
    r"|thyroid|brain|spin[ae]|bone|heart|chest|abdom|pelvi|skin|blood|pain|fever|nause|vomit|cough|dyspn|symptom|treat|therap"
    r"|surg|medicat|medicine|dose|tablet|mg\b|mm\b|cm\b|biops|margin|cell|nuclear|allerg|invasi|muscul|muscle|mucos|tendon|ligament|joint"
    r"|nerve|gland|ulcer|flexion|hernia|append|gallbl|bile|duct|pancrea|stomach|o?esoph|trachea|bronch|pleur|mediast|ventric"
    r"|atri[au]|valve|coronar|carotid|pulse|respir|oxygen|gait|reflex|sensation|mood|affect\b|memory|speech|vision|hearing|balance"
    r"|dizz|rash|itch|swell|o?edema|bleed|bruis|fatigue|appetit|diarrh|weight|infect|wound|pregnan|fetal|infant|child|year-old"
    r"|eye|ear\b|nose|throat|knee|hip\b|shoulder|foot|hand\b|head\b|neck|alcohol|smok|tobacco|diabet|hypertens|insulin|seizure"
    r"|stroke|depress|anxi|sleep|urin|stool|bladder|glucose|sodium|potassium|hemoglobin|platelet|cholesterol|creatinine"
    r"|meds\b|murmur|tender|palpa|guarding|rales|wheez|rhythm|fontanel|testic|epididym|rectal|vertebr|plaque|cord\b|skull|csf\b"
    r"|vessel|ischa?emi|hydroceph|white matter|clavic|ileostomy|colostomy|endometr|myometr|cervi[xc]|fallop|adipose|h(?:a)?emato"
    r"|densit|quadrant|lobe\b|lobes\b|lucen|opaci|t(?:oo|ee)th|dental|h(?:a)?emorrh|graft|stent|implant|suture|ana?esthe|scar\b"
    r"|anesthe|incision|cultur|bacteri|susceptib)",
    re.IGNORECASE,
)
#: Words of administrative papers (consents, orders, bills): evidence of the type Other.
_PAPER_TERMS = re.compile(
    r"\b(?:consent|authori[sz]|disclos|releas|health information|insur|policy|bill|payment|order|requisition|test|panel|result"
    r"|diagnos|exam|specimen|prescri|refill|pharmac|history|laborator|imaging|discharge|fax cover|cover sheet|facsimile"
    r"|transmittal|referral|waiver|certificat|questionnaire|registration|appointment|sign(?:ed|ature)|hereby|understand|agree|revo[ck]|expire|privacy"
    r"|recipient|guardian|representative|request|record|copy|copies|facility|form\b|address|phone|refus|permission|fee\b)",
    re.IGNORECASE,
)
_HIGH_CONFIDENCE = 0.7


def find_weak_evidence(answer: ClassificationOutput, bundle: DocumentBundle) -> Iterator[Finding]:
    """Answer V4's question: find PRIMARY types whose quotes do not show the type.

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
    """Find weak evidence, leaving out quotes that the embedded model would choose.

    The embedded model's quotes are only places where its words match.
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
    has_terms = _BODY_TERMS.search(quote) or (kind not in TYPES_WITH_SIGNS and _PAPER_TERMS.search(quote))
    return None if results or has_terms else _LINE_OF_ANY_DOCUMENT


#: Words and word endings that are typical of sentences, in English and other languages.
_STATEMENT_WORDS = re.compile(
    r"\b(?:is|are|was|were|be|been|has|have|had|no|not|non|none|with|without|within|in|on|at|by|from|to|shows?|seen|found|noted"
    r"|negative|positive|normal|present|absent|clear|intact|unremarkable|consistent|free|benign|she|he|who|this|that|there|if"
    r"|do|does|may|can|could|versus|reveals?|demonstrates?|extends?|abuts?|measures?|depends?|represents?|includes?|involves?|contains?|suggests?"
    r"|ist|sind|wird|wurde|kein\w*|mit|ohne|est|sont|avec|sans|pas|es|son|con|sin|se|jest|bez|nie|z)\b|\b\w{3,}(?:ed|ing|ly)\b",
    re.IGNORECASE,
)
#: A value: a number, a variant, a level of the spine, a label with its content, or a script without spaces. The name
#: of a gene is no value, although it may have a number.
_VALUE_PATTERN = re.compile(
    r"(?<![A-Za-z\d])\d|\b[cgmnp]\.\S|\b[A-Z]\d{2,4}(?:[A-Z*]|fs)(?!\w)|\b[A-Z]\d+[-/][A-Z]?\d|[^\W\d_]\s*:\s*[^\W_]"
    r"|[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]{4,}"
)
#: A disease or change with its kind, size or place: a diagnosis without a verb.
_DIAGNOSIS_PATTERN = re.compile(
    r"\b(?:invasive|infiltrating|in situ|squamous|basal|small|large|clear|ductal|lobular|papillary|follicular|metastatic|malignant"
    r"|acute|chronic|mild|moderate|severe|minimal|trace|focal|diffuse|multifocal|left|right|bilateral|complex|simple|degenerative"
    r"|old|new|stable|complete|partial)\s(?:[^\W\d_]+\s){0,2}(?:\w{3,}(?:oma|itis|osis|plasia|trophy|ectasis|pathy|lithiasis)s?"
    r"|effusions?|fractures?|tears?|mass(?:es)?|nodules?|lesions?|changes|hernia(?:tion)?|infarct(?:ion)?|h(?:a)?emorrhage|o?edema"
    r"|cysts?|calcul(?:us|i)|leuk(?:a)?emia|pneumothorax|thrombus)\b",
    re.IGNORECASE,
)
#: Names of tests, papers and institutions: a phrase with one of these words is no diagnosis.
_NON_DIAGNOSIS_NOUNS = re.compile(
    r"\b(?:reports?|panels?|tests?|genes?|stud(?:y|ies)|clinics?|cent(?:er|re)s?|departments?|services?|programs?|forms?|history"
    r"|diagnos[ei]s|guidelines?|therap\w+|society|foundation)\b",
    re.IGNORECASE,
)
_LINKING_WORDS = re.compile(r"\b(?:the|an?|of|and|or|its|into|along|which)\b", re.IGNORECASE)
_WORDS_PER_STATEMENT = 12
#: Findings without a verb: "Scalp clean, no crust", or a change with its place: "adenoma of the colon".
_TELEGRAM_PATTERN = re.compile(
    r"(?<![a-z])[a-z]{3,}+[,;] [a-z]{3,}|(?:oma|itis|osis|polyp|cyst|ulcer|nodule|mass|fracture|tear|stone|lesion)s? (?:of|in|with|at) (?:the|an?|both|left|right)\b"
)
#: Phrases of notes that end like a sentence but have no verb: "Cough and fever for four days."
_NOTE_PHRASE_PATTERN = re.compile(r"\b(?:and|or|of|for|to|the|an?|as|since|after|before)\b.*[a-z]\.$", re.DOTALL)


def is_statement(quote: str) -> bool:
    """Return True if the quote states something.

    A statement is a sentence, a value, a label with its content, or a diagnosis; a title or a list of words is none.

    >>> [is_statement(quote) for quote in ("SURGICAL PATHOLOGY REPORT", "Margins are negative", "Diagnosis: melanoma", "2.3 cm")]
    [False, True, True, True]
    >>> [is_statement(quote) for quote in ("Department of Pathology", "Cough and fever for some days.")]
    [False, True]
    """
    word_count = len(quote.split())
    if _VALUE_PATTERN.search(quote) or _NOTE_PHRASE_PATTERN.search(quote) or _TELEGRAM_PATTERN.search(quote):
        return True
    if (
        word_count <= _WORDS_PER_STATEMENT
        and _DIAGNOSIS_PATTERN.search(quote)
        and not _NON_DIAGNOSIS_NOUNS.search(quote)
    ):
        return True
    content_word_count = max(
        word_count - len(_LINKING_WORDS.findall(quote)), 1
    )  # linking words are not counted: a list of words has none
    return len(_STATEMENT_WORDS.findall(quote)) * _WORDS_PER_STATEMENT >= content_word_count


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
