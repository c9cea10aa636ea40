"""How much a quote says: evidence for a type is a finding, a value, a variant, a diagnosis, an encounter."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evalkit.classification.findings import Finding, iter_segment_primary_types
from evalkit.classification.schema import ClassificationOutput, DocumentType, Evidence
from evalkit.classification.second_opinion_types import TYPE_SIGNS
from evalkit.documents.bundle import Block, DocumentBundle
from evalkit.grounding.normalise import canonicalise
from evalkit.issue import IssueSeverity

MAJOR, MINOR = IssueSeverity.MAJOR, IssueSeverity.MINOR

_REFERENCE_PHRASES = re.compile(
    r"\b(?:see|refer to|please (?:see|find|note|refer)|as (?:noted|above|described|discussed)|attached|enclosed|overleaf|"
    r"report (?:to )?follows?|results? (?:are |is )?(?:attached|enclosed|pending|available|below|on request)|on request|"
    r"see (?:page|next|over)|(?:sent|mailed|reported) separately|(?:to|will) follow|accompanying|hereto|(?:separate|next|following) (?:sheet|page)|for details)\b",
    re.IGNORECASE,
)
_FILLER_WORDS = re.compile(
    r"\b(?:the|for|a|an|of|to|in|on|is|are|this|report|results?|page|sheet|document|copy)\b", re.IGNORECASE
)
#: Words of which a finding, an order or a form is made; without any of them a line could stand in every document.
_CLINICAL_TERMS = re.compile(
    r"\b\w{2,40}(?:itis|omas?|osis|oses|emia|ectomy|oscopy|plasty|opathy|algia|uria|otomy|genic|cytes?|plasia|trophy|ectasia)\b"
    r"|\b(?:carcin|cardi|pulmon|hepat|renal|gastr|neuro|cyst|lymph|node|nodul|lesion|mass|tumou?r|cancer|malign|benign|fractur"
    r"|stenos|effusion|dis[ck]|arter|vein|venous|aort|liver|spleen|kidney|lung|breast|prostat|colon|bowel|uter|ovar|thyroid|brain"
    r"|spin[ae]|bone|heart|chest|abdom|pelvi|skin|blood|pain|fever|nause|vomit|cough|dyspn|symptom|diagnos|treat|therap|surg"
    r"|medic|dose|tablet|mg\b|mm\b|cm\b|exam|normal|gene|mutation|variant|sequenc|specimen|biops|margin|cell|nuclear|stain|allerg"
    r"|weight|infect|wound|pregnan|fetal|infant|child|year-old|eye|ear\b|nose|throat|knee|hip\b|shoulder|foot|hand\b|head\b|neck"
    r"|alcohol|smok|tobacco|diabet|hypertens|insulin|seizure|stroke|depress|anxi|sleep|urin|stool|bladder|consent|authori[sz]"
    r"|disclos|releas|health information|insur|policy|bill|payment|order|requisition|test|panel|result|glucose|sodium|potassium"
    r"|hemoglobin|platelet|cholesterol|creatinine|prescri|refill|pharmac|impression|finding|technique|contrast|history|patholog|radiolog|oncolog|genom|genetic|chromosom|DNA\b"
    r"|RNA\b|laborator|imaging|progress note|consult|discharge|operati|anesthe|incision"
    r"|cultur|bacteri|susceptib|fax cover|cover sheet|facsimile|transmittal|referral|waiver|certificat|questionnaire|registration|appointment)",
    re.IGNORECASE,
)
_HIGH_CONFIDENCE = 0.7


def find_weak_evidence(answer: ClassificationOutput, bundle: DocumentBundle) -> Iterator[Finding]:
    """V4's question: types claimed as PRIMARY that rest on quotes which could stand in any document."""
    for segment, kind in iter_segment_primary_types(answer):
        for presence in segment.segment_composition:
            if presence.document_type is not kind:
                continue
            weak_quotes = [
                (quoted_evidence, weakness)
                for quoted_evidence in presence.top_evidence
                if (weakness := _describe_weakness(quoted_evidence, kind, bundle))
            ]
            is_all_weak = len(weak_quotes) == len(presence.top_evidence)
            if not is_all_weak:  # beside good evidence a dull line does no harm; only a reference was meant as more
                weak_quotes = [
                    (quoted_evidence, weakness)
                    for quoted_evidence, weakness in weak_quotes
                    if weakness == GENERIC_REFERENCE
                ]
            if not weak_quotes:
                continue
            is_unsupported = is_all_weak and presence.confidence >= _HIGH_CONFIDENCE
            evidence, weakness = weak_quotes[0]
            snippet = " ".join(evidence.snippet.split())
            yield Finding(
                reasoning=f"The quote {_WEAKNESS_REASONS[weakness]}.",
                severity=MAJOR if is_all_weak else MINOR,
                message=f"Evidence snippet '{snippet}' is {weakness}, not specific evidence of {kind.value}."
                + (f" Confidence {presence.confidence:g} is not supported by it." if is_unsupported else ""),
                segment_index=segment.segment_index,
                document_type=kind.value,
                page=evidence.page,
                quote=evidence.snippet,
                suggested_fix="Quote a finding",
            )


GENERIC_REFERENCE = "a generic reference"
TITLE_OR_WORD_LIST = "a title or a list of words"
_WEAKNESS_REASONS = {
    TITLE_OR_WORD_LIST: "states nothing: it is no sentence and has no value",
    GENERIC_REFERENCE: "only points elsewhere",
    "the header or footer of the page": "says whose page it is, or who printed it",
    "a line that any document could have": "names nothing that is particular to the type",
}


def _describe_weakness(evidence: Evidence, kind: DocumentType, bundle: DocumentBundle) -> str:
    """What the quote is instead of evidence; empty where it is some."""
    if is_generic_reference(evidence):
        return GENERIC_REFERENCE
    if is_only_in_furniture(evidence, bundle):
        return "the header or footer of the page"
    if kind is not DocumentType.OTHER and not is_statement(evidence.snippet):
        return TITLE_OR_WORD_LIST
    has_type_sign = any(sign.pattern.search(evidence.snippet) for sign in TYPE_SIGNS if sign.document_type is kind)
    return "" if has_type_sign or _CLINICAL_TERMS.search(evidence.snippet) else "a line that any document could have"


#: What makes a sentence of words, here and where English is not spoken, and ends of words that say that something is so.
_STATEMENT_WORDS = re.compile(
    r"\b(?:is|are|was|were|be|been|has|have|had|no|not|non|none|with|without|within|in|on|at|by|from|to|shows?|seen|found|noted"
    r"|negative|positive|normal|present|absent|clear|intact|unremarkable|consistent|free|benign|she|he|who|this|that|there|if"
    r"|do|does|may|can|could|versus|reveals?|demonstrates?|extends?|abuts?|measures?|depends?|represents?|includes?|involves?|contains?|suggests?"
    r"|ist|sind|wird|wurde|kein\w*|mit|ohne|est|sont|avec|sans|pas|es|son|con|sin|se|jest|bez|nie|z)\b|\b\w{3,}(?:ed|ing|ly)\b",
    re.IGNORECASE,
)
#: A number, a variant, a level of the spine; a label with what stands behind it; a script without spaces. A gene's name,
#: which has a number too, is no value.
_VALUE_PATTERN = re.compile(
    r"(?<![A-Za-z\d])\d|\b[cgmnp]\.\S|\b[A-Z]\d{2,4}(?:[A-Z*]|fs)(?!\w)|\b[A-Z]\d+[-/][A-Z]?\d|[^\W\d_]\s*:\s*[^\W_]"
    r"|[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]{4,}"
)
#: A disease or a change that is said to be of some kind, size or place: a diagnosis needs no verb.
_DIAGNOSIS_PATTERN = re.compile(
    r"\b(?:invasive|infiltrating|in situ|squamous|basal|small|large|clear|ductal|lobular|papillary|follicular|metastatic|malignant"
    r"|acute|chronic|mild|moderate|severe|minimal|trace|focal|diffuse|multifocal|left|right|bilateral|complex|simple|degenerative"
    r"|old|new|stable|complete|partial)\s(?:[^\W\d_]+\s){0,2}(?:\w{3,}(?:oma|itis|osis|plasia|trophy|ectasis|pathy|lithiasis)s?"
    r"|effusions?|fractures?|tears?|mass(?:es)?|nodules?|lesions?|changes|hernia(?:tion)?|infarct(?:ion)?|h(?:a)?emorrhage|o?edema"
    r"|cysts?|calcul(?:us|i)|leuk(?:a)?emia|pneumothorax|thrombus)\b",
    re.IGNORECASE,
)
#: What a diagnosis is not called by: the names of tests, papers and places.
_NON_DIAGNOSIS_NOUNS = re.compile(
    r"\b(?:reports?|panels?|tests?|genes?|stud(?:y|ies)|clinics?|cent(?:er|re)s?|departments?|services?|programs?|forms?|history"
    r"|diagnos[ei]s|guidelines?|therap\w+|society|foundation)\b",
    re.IGNORECASE,
)
_LINKING_WORDS = re.compile(r"\b(?:the|an?|of|and|or|its|into|along|which)\b", re.IGNORECASE)
_WORDS_PER_STATEMENT = 12
#: Notes are written in phrases: "Cough and fever for four days." has no verb.
_NOTE_PHRASE_PATTERN = re.compile(r"\b(?:and|or|of|for|to|the|an?|as|since|after|before)\b.*[a-z]\.$", re.DOTALL)


def is_statement(quote: str) -> bool:
    """Whether the quote says that something is so: a sentence, a value, a label with what stands behind it, a diagnosis.

    >>> [is_statement(quote) for quote in ("SURGICAL PATHOLOGY REPORT", "Margins are negative", "Diagnosis: melanoma", "2.3 cm")]
    [False, True, True, True]
    >>> [is_statement(quote) for quote in ("Department of Pathology", "Cough and fever for some days.")]
    [False, True]
    """
    word_count = len(quote.split())
    if _VALUE_PATTERN.search(quote) or _NOTE_PHRASE_PATTERN.search(quote):
        return True
    if (
        word_count <= _WORDS_PER_STATEMENT
        and _DIAGNOSIS_PATTERN.search(quote)
        and not _NON_DIAGNOSIS_NOUNS.search(quote)
    ):
        return True
    content_word_count = max(
        word_count - len(_LINKING_WORDS.findall(quote)), 1
    )  # a list of words has nothing that joins them
    return len(_STATEMENT_WORDS.findall(quote)) * _WORDS_PER_STATEMENT >= content_word_count


def is_generic_reference(evidence: Evidence) -> bool:
    """Whether the quote only points elsewhere: phrases of reference and at most three other words, and no sign.

    >>> is_generic_reference(Evidence(snippet="See attached results", page=2))
    True
    >>> is_generic_reference(Evidence(snippet="See attached: BRCA1 c.5266dupC, pathogenic", page=2))
    False
    """
    remainder = _REFERENCE_PHRASES.sub(" ", evidence.snippet)
    content = _FILLER_WORDS.sub(" ", remainder)
    points_elsewhere = (
        remainder != evidence.snippet and len(re.findall(r"\w+", content)) <= 3 and not _CLINICAL_TERMS.search(content)
    )
    return points_elsewhere and not any(sign.pattern.search(evidence.snippet) for sign in TYPE_SIGNS)


def is_only_in_furniture(evidence: Evidence, bundle: DocumentBundle) -> bool:
    """Whether the quote stands in the page's furniture and nowhere else on it."""
    if not 1 <= evidence.page <= bundle.total_pages:
        return False
    blocks = bundle.page(evidence.page).visible_blocks
    furniture = [block for block in blocks if block.furniture]
    if not furniture or not (canonical_quote := canonicalise(evidence.snippet)):
        return False

    def has_quote(block: Block) -> bool:
        return canonical_quote in canonicalise(block.text)

    return any(map(has_quote, furniture)) and not any(has_quote(block) for block in blocks if not block.furniture)
