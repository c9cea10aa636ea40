"""Normal forms of clinical findings: grade, margin, marker, stage, variant …

Each ``normalise_…`` function converts a report's words to one normal form, or returns None if they are not in the
format. None of them judges whether a finding is true. Source: specification 002, section 3.3.1; contract ruling 16.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.resources import files

_ROMAN_GRADES = {"i": "1", "ii": "2", "iii": "3"}
_GRADE_PREFIX = re.compile(
    r"(?i)^(?:(?:modified|combined|overall|tumou?r|histologic(?:al)?|nottingham|bloom[- ]richardson|scarff|elston|ellis|"
    r"figo|who|sbr|fnclcc|nuclear|edmondson|fuhrman|isup|final|the)[\s,/-]*)*(?:(?:grades?|score|g)(?![a-z])[\s:=.-]*(?:(?:is|of|reads|was|now|be|read|to|should|changed|corrected|revised|upgraded|downgraded|from\s+[1-3])\s+)*)*"
)
_GRADE = re.compile(
    r"(?i)(?P<number>[123]|i{1,3})(?!\w)(?:\s*(?:of|/|out of)\s*3(?!\d))?|(?P<word>well|moderate(?:ly)?|poorly|poor)\b"
    r"(?:[\s-]+to[\s-]+(?P<second_word>moderately|poorly)\b)?"
)
_GLEASON_SCORE = re.compile(r"(?i)(?:gleason\D{0,40}|^\s*)(?P<first>[3-5])\s*\+\s*(?P<second>[3-5])(?!\s*\+)")
_GRADE_GROUP = re.compile(r"(?i)\bgrade group\D{0,40}(?P<group>[1-5])\b")
_NOTTINGHAM_SCORE = re.compile(
    r"(?i)(?:tub\w*\D{1,30})?(?P<tubules>[1-3])(?:\s*\+\s*|\W{1,3}(?:nucle|pleo)\D{1,30})(?P<nuclei>[1-3])(?:\s*\+\s*|\W{1,3}mito\D{1,30})(?P<mitoses>[1-3])"
    r"|(?P<total>[3-9])\s?(?:/|of)\s?9\b"
)
_TWO_TIER_GRADE = re.compile(r"(?i)\b(?P<level>high|low)[- ]grade\b")
_FOURTH_GRADE = re.compile(r"(?i)\bgrade[:\s]+(?:4|iv)\b")
_DIFFERENTIATION_WORDS = {
    "well": "well",
    "moderate": "moderately",
    "moderately": "moderately",
    "poor": "poorly",
    "poorly": "poorly",
}

_MARGIN_FREE = re.compile(
    r"(?i)(?<!not )\b(?:negative|uninvolved|not involved|clear(?:ed)?|free|unremarkable|tumou?r-free|(?:completely|fully|is) excised|complete excision|excision (?:is|appears) complete|r0|"
    r"no (?:residual )?(?:tumou?r|carcinoma|malignancy|neoplasm))\b"
)
_MARGIN_INVOLVED = re.compile(
    r"(?i)\b(?:positive|involve[sd]?|involving|involvement|transect(?:s|ed|ing)|r1|r2|incompletely excised|incomplete excision|excision (?:is|appears) incomplete|not (?:free|clear|negative)|"
    r"(?:extend|reach|abut|touch)(?:s|es|ing)?\s+(?:(?!within\b)\w+\s+){0,2}?(?:(?:to|into|the)\s+(?!within\b)|ink)|tumou?r (?:on|at) ink|ink on|"
    r"(?:tumou?r|carcinoma|melanoma|sarcoma|DCIS|disease|malignan\w+|neoplasm|cells?|glands?|present)[^.;:,]{0,60}\b(?:at|on)\s+(?:the\s+)?(?:[\w/-]+\s+){0,4}(?:margins?|ink|edges?)|"
    r"margins?(?:\s+of \w+)?\s*(?::|shows?|contains?|has|have|with)\s+(?:(?!no\b|not\b|free\b|without\b|negative\b|clear\b|uninvolved\b)\w+\s+){0,3}(?:carcinoma|tumou?r|DCIS|melanoma|sarcoma|disease|dysplasia)(?!-?\s*(?:free|is|size))|"
    r"present at)\b"
)
_MARGIN_NEGATION_BEFORE = re.compile(
    r"(?i)\b(?:no|not|non|without|neither|nor|never|free of|negative for|absence of|clear of|uninvolved|does not|do not|did not)\b-?"
    r"(?: (?:\w+ ){0,2}margins?\b)?(?:(?!\b(?:but|however|except|although|margins?)\b)[^.;:]){0,60}$"
)
_MARGIN_NEGATION_AFTER = re.compile(
    r"(?i)^[^.;,]{0,40}?[:=\t]\s*(?:none|no|absent|not (?:identified|seen|present|applicable)|negative|nil|0)\b|^(?:\s+\w+){0,3}\s+(?:is|are|was|were)?\s*not (?:identified|seen|present)"
)
_MARGIN_UNCERTAIN = re.compile(
    r"(?i)\bcannot be (?:\w+ )?(?:excluded|assessed|evaluated|determined|ruled out)|\bindeterminate\b|\bequivocal\b|\bnot (?:assessable|evaluable)\b|"
    r"\bdifficult to (?:assess|evaluate)|\bsuspicious\b"
)
_MARGIN_CLOSE = re.compile(
    r"(?i)\bclose(?!st)\b|\bnarrow\b|\bthreatened\b|\b(?:within|less than) (?:[01](?:\.\d+)?) mm\b"
)
#: The end of a line without a full stop, where the next line begins a sentence.
_JOINED_LINES = re.compile(r"(?<=[a-z)]) (?=[A-Z][a-z]+ [a-z])")
#: In a sentence about margins: an earlier state in brackets, and statements about lymph nodes, vessels or stains.
_NO_MARGIN = re.compile(
    r"(?i)\((?:previous|original|former|initial)[^)]*\)|\b(?:(?:(?!margin)\w+ ){0,2}(?:lymph )?nodes?|lymphovascular|vascular|perineural|ER|PR|HER2)\b(?:(?!margin)[^.;,\t]){0,80}|\b(?:pleura|capsule)\b(?:(?!margin)[^.;,:\t]){0,80}"
)
_MARGIN_NAME = re.compile(r"(?i)\b(?:margins?|edges?|excis\w+)\b")
_MARGIN_DISTANCE = re.compile(r"(?i)(?P<sign>[<>≤≥]\s*)?(?P<size>\d+(?:\.\d+)?)\s*(?P<unit>mm|cm)\b")
#: A distance before the margin's name; another size there is the tumor's.
_DISTANCE_TO_MARGIN = re.compile(
    rf"{_MARGIN_DISTANCE.pattern}(?=\s*(?:\w+ ){{0,2}}(?:from|to|of|away|off|clear|clearance|margins?)\b)"
)

_POLARITY = re.compile(
    r"(?i)\b(?P<negative>(?:immuno)?negative|non-?(?:(?:immuno)?reactive|amplified)|not (?:over-?expressed|expressed|detected|amplified|seen)|no amplification|absent|"
    r"no (?:expression|staining))\b"
    r"|\b(?P<lost>lost?|loss)\b|\b(?P<retained>retained|intact|preserved)\b|\b(?P<wild_type>wild[- ]?type)\b|\b(?P<aberrant>aberrant|mutant)\b"
    r"|\b(?P<equivocal>equivocal|indeterminate)\b"
    r"|\b(?P<positive>(?:immuno)?positiv(?:e|ity)|(?:immuno)?reactiv(?:e|ity)|expressed|over-?expressed|amplified|detected)\b|^\s*(?P<sign>\+)"
)
_PERCENT = re.compile(
    r"(?P<sign>[<>≤≥~]\s*|over\s+|under\s+|more than\s+|less than\s+|about\s+)?(?P<number>\d+(?:\.\d+)?(?:\s*[-–]\s*\d+(?:\.\d+)?)?)\s*(?:%|percent\b)",
    re.I,
)
_STAIN_SCORE = re.compile(r"(?<![\w.])(?P<score>[0-3]\s?\+|(?<=score )[0-3])(?![\w%])", re.I)
_COMPARISON_SYMBOLS = {"over": ">", "more than": ">", "under": "<", "less than": "<", "about": "~"}

_TNM_STAGE = re.compile(
    r"(?P<prefix>[ycra]{0,2}p?)T(?P<t>is|[0-4X](?:[a-d]\d?)?)(?:\s*\((?:DCIS|m|\d)\))?[\s,;.]*"
    r"(?:[ycra]{0,2}p?N(?P<n>[0-3X][a-c]?(?:mi)?)(?P<nodes>\s*\((?:sn|i[+-]|mol[+-])\))?)?[\s,;.]*(?:[cp]?M(?P<m>[01X][a-c]?))?",
)
_STAGE_GROUP = re.compile(r"(?i)\bstage(?: group)?:?\s+(?P<group>(?:IV|III|II|I|0)[A-D]?\d?)\b")

_MSI_PATTERNS = (
    (re.compile(r"(?i)\bmsi[\s-]*(?:h|high)\b(?!\W{1,4}(?:status )?(?:was |is )?(?:not |negative|absent|no\b))|\bhigh (?:level |microsatellite )(?:of )?(?:microsatellite )?instability|"
                r"microsatellite instability[\s-]*high|^\s*(?:high|instable|unstable)\b|\bmsi\s*\(?(?:instable|unstable)|\bmicrosatellite unstable|\bdMMR\b|\bmismatch repair[- ]defici"), "MSI-H"),
    (re.compile(r"(?i)\bmsi[\s-]*(?:l\b|low)|\blow (?:level |microsatellite )(?:of )?(?:microsatellite )?instability|"
                r"microsatellite instability[\s-]*low|^\s*low\b"), "MSI-L"),
    (re.compile(r"(?i)\bmss\b|\bmicrosatellite[\s-]*stable|^\s*stable\b|\bmsi[\s:-]*stable|"
                r"\bms[\s-]stable\b|\bno (?:evidence of )?microsatellite instability|microsatellite instability:? (?:was |is )?(?:not detected|negative|absent)|^\s*(?:not detected|negative|absent|none)\b"), "MSS"),
)  # fmt: skip
_TMB = re.compile(
    r"(?i)(?P<number>\d+(?:[.,]\d+)?)\s*(?P<unit>(?:(?:somatic\s+)?(?:mut(?:ations?|s)?\.?|variants?)\s*(?:/|per)\s*(?:mb|megabases?)|/\s*mb)\b)?"
)

_NUCLEOTIDE_POSITION = r"[*-]?\d+(?:[+-]\d+)?"
_CODING_CHANGE = rf"c\.{_NUCLEOTIDE_POSITION}(?:_{_NUCLEOTIDE_POSITION})?(?:\s?[ACGT]\s?>\s?[ACGT]|(?:delins|del|dup|ins|inv)(?:[ACGT]+|\d{{1,3}})?|=)"
_AMINO_ACID = r"(?:Ala|Arg|Asn|Asp|Cys|Gln|Glu|Gly|His|Ile|Leu|Lys|Met|Phe|Pro|Ser|Thr|Trp|Tyr|Val|Ter)"
_RESIDUE = r"[ACDEFGHIKLMNPQRSTVWY]"
_FRAMESHIFT = r"fs(?:\*|Ter|X)?\d*"
_PROTEIN_CHANGE = (
    rf"p\.\(?(?:{_AMINO_ACID}\d+(?:_{_AMINO_ACID}\d+)?(?:{_AMINO_ACID}(?:{_FRAMESHIFT}|ext\S*)?|{_FRAMESHIFT}|[*X=?]|del(?:ins{_AMINO_ACID}*)?|dup|ins{_AMINO_ACID}*)"
    rf"|{_RESIDUE}\d+(?:_{_RESIDUE}\d+)?(?:{_RESIDUE}(?:{_FRAMESHIFT})?|{_FRAMESHIFT}|[*X=?]|del(?:ins[A-Z]*)?|dup|ins[A-Z]*)|[?=])\)?"
)
_SHORT_PROTEIN_CHANGE = rf"(?<![\w.]){_RESIDUE}[1-9]\d{{1,3}}(?:_{_RESIDUE}\d+)?(?:{_RESIDUE}(?:{_FRAMESHIFT})?|\*|{_FRAMESHIFT}|del(?:ins[A-Z]+)?|dup|ins[A-Z]+)(?!\w)"
#: A word in the form of a gene symbol; many other words in capitals match too: see ``is_gene_symbol``.
GENE_PATTERN = r"(?:C\d{1,2}orf\d{1,3}|[A-Z][A-Z0-9]{1,9}(?:-[A-Z0-9]{1,4})?)"
_GENE_WORD = re.compile(rf"(?<![\w.])(?<![a-z]-){GENE_PATTERN}(?!\w)")
#: A variant in the nomenclature of the Human Genome Variation Society: c.35G>A, p.Gly12Asp.
HGVS_PATTERN = re.compile(rf"(?<![\w.])(?:{_CODING_CHANGE}|{_PROTEIN_CHANGE})(?![\w>])")
#: As ``HGVS_PATTERN``, or a word that begins like such a variant: of a rare form, or damaged (c.17OOC>T).
HGVS_LIKE_PATTERN = re.compile(
    rf"{HGVS_PATTERN.pattern}|(?<![\w.])[cp]\.[(*?_-]{{0,5}}(?:[A-Z][a-z]{{0,2}})?[\dOIl][^\s,;|]{{0,40}}?(?:[A-Z>*]|del|dup|ins|fs)[^\s,;|]{{0,40}}(?<![.:])"
)
_EXONS = r"(?:exons?|ex)\s?\d+(?:\s?(?:-|–|to|through|and)\s?\d+)?"
#: A variant in everyday clinical words: V600E, exon 19 deletion, amplification.
ALTERATION_PATTERN = re.compile(
    rf"{_SHORT_PROTEIN_CHANGE}|(?i:\b(?:{_EXONS}[\s-](?:skipping|(?:in-frame )?(?:del(?:etions?)?|ins(?:ertions?)?|dup(?:lications?)?))"
    rf"|(?:deletion|duplication|skipping|loss)(?: of| in)? (?:{_EXONS}|\({_EXONS}\))|splice site \d+[+-]\d+[ACGT]>[ACGT]|amplification|amplified|rearrangement|rearranged|internal tandem duplication|ITD|vIII"
    r"|(?:homozygous|biallelic|deep|whole[ -]gene|entire gene|full gene) (?:deletion|loss)|copy number (?:gain|loss)|gene fusion|fusion)(?!\w))"
    r"|(?:(?<=\t)|(?<=[A-Z0-9] ))(?i:loss|gain|deletion|duplication)(?= *(?:[\t\n]|$))"
)
_FUSION_WORD = r"(?i:(?:gene )?(?:fusion|rearrangement))"
#: A fusion of two genes: EML4::ALK, EML4-ALK fusion.
GENE_FUSION_PATTERN = re.compile(
    rf"(?P<first>{GENE_PATTERN})\s*(?:\([^()]{{1,20}}\))?(?:::\s*(?P<second>{GENE_PATTERN})(?:\s+{_FUSION_WORD})?|(?:-|–|/)\s*(?P<partner>{GENE_PATTERN})\s+{_FUSION_WORD})"
)
#: A statement that no variant was found.
NO_VARIANT_PATTERN = re.compile(
    r"(?i)\bno (?!(?:other|additional|further)\b)(?:[\w/-]+[\s,]+){0,8}?(?:variants?|mutations?|alterations?|fusions?)\b(?:[\s,(]+[\w/)-]+){0,10}?\s+(?:detected|identified|found|reported|observed|seen|present)\b"
    r"|\bnegative for (?:[\w/-]+\s+){0,5}?(?:variants?|mutations?|alterations?)\b|^\s*(?:none|not) (?:detected|identified|found)\b|^\s*wild[ -]?type\b|^\W*(?:(?:test|overall|final)\s+)?results?\W+negative\b"
)

_LAB_NUMBER = re.compile(r"(?P<sign>[<>≤≥]\s*)?(?P<number>\d+(?:[.,]\d+)*)(?![-–]\d)")
_LAB_FLAG = re.compile(r"(?<![\w/.-])(?:\*|HH?|LL?|A|(?i:high|low|abnormal|critical))(?![\w/-])")
_REFERENCE_RANGE = re.compile(
    r"(?i)(?P<low>\d+(?:\.\d+)?)\s*(?:-|–|to)\s*(?P<high>\d+(?:\.\d+)?)|(?P<open>(?:[<>≤≥]=?|below|above|under|over|up to|less than|greater than)\s*\d+(?:\.\d+)?|\d+(?:\.\d+)? or (?:above|below|more|less))"
)
_LAB_UNIT = re.compile(
    r"(?<![A-Za-z/])(?:(?:x\s*)?10\s*(?:\^|\*{1,2}|E)?\s*[\d³⁶⁹]{1,2}\s*/\s*[µμumnd]?L|(?:thousand|million|cells?|k|m|th|mil)\s*/\s*(?:[µμu]l|mcl|mm3|cumm)|"
    r"(?:[mµμunpfk]?g|mcg|[mµμnpu]?mol|[mµμuk]?IU|[mk]?U|AU|mEq|mOsm|cells|copies|ng|pg)\s*/\s*(?:d?L|m?L|[µμu]L|kg|g|m?mol|h|hr|24\s?h)|mL/min(?:/1\.73\s*m2)?|"
    r"/\s?(?:HPF|LPF|[µμu]L)|mm/h(?:r|our)?|mmHg|fL|pg|%|ratio|seconds?|sec|s|g%)(?![\w])",
    re.I,
)
_RANGE_AND_UNIT = re.sub(r"\?P<\w+>", "?:", rf"(?:{_REFERENCE_RANGE.pattern[4:]})\s*(?:{_LAB_UNIT.pattern})?")
#: A line of text that is a result: test, number, flag, unit and range, of which the unit or the range is there.
LAB_LINE_PATTERN = re.compile(
    rf"\W{{0,4}}(?P<name>[a-z][a-z0-9 ,/()%+.'-]{{1,45}}?)(?:\s*:\s*|\s*\.{{2,}}\s*|\s+)(?P<value>[<>≤≥]?\s?\d+(?:[.,]\d+)*(?!\d)\s*[\[(]?(?:{_LAB_FLAG.pattern})?[\])]?"
    rf"\s*(?:(?:{_LAB_UNIT.pattern})\s*[\[(]?(?:{_LAB_FLAG.pattern})?[\])]?(?:[\s,;]*[\[(]?(?:(?:ref(?:erence)?|normal|range|interval)\b[.:\s]*)*{_RANGE_AND_UNIT}[\])]?)?"
    rf"|[\s,;]*[\[(]?(?:(?:ref(?:erence)?|normal|range|interval)\b[.:\s]*)*{_RANGE_AND_UNIT}[\])]?)\s*[\[(]?(?:{_LAB_FLAG.pattern})?[\])]?)\s*",
    re.I,
)
_QUALITATIVE_RESULT = re.compile(
    r"(?i)(?:negative|positive|(?:non[- ]?)?reactive|(?:not )?detected|none(?: seen| detected)?|trace|absent|present|normal|abnormal|clear)\b"
)
_POWER_OF_TEN = re.compile(r"^(x?10)(?:\^|\*{1,2}|E)?(\d{1,2})(?=/)", re.I)


def strip_grading_system(text: str) -> str:
    """Remove the grading system's name from a grade, unless the text is only the name.

    >>> [strip_grading_system(text) for text in ("Nottingham grade 2", "Grade: II", "G3", "moderately differentiated", "Grade")]
    ['2', 'II', '3', 'moderately differentiated', 'Grade']
    """
    plain = " ".join(text.split())
    return plain[_GRADE_PREFIX.match(plain).end() :] or plain  # type: ignore[union-attr]  # it matches the empty text


def normalise_grade(text: str) -> str | None:
    """Normalise a histologic grade to 1, 2, 3 or a degree of differentiation.

    >>> normalise_grade("Nottingham grade 2"), normalise_grade("Grade III"), normalise_grade("G1"), normalise_grade("FIGO grade 3/3")
    ('2', '3', '1', '3')
    >>> normalise_grade("Poorly differentiated"), normalise_grade("well-differentiated"), normalise_grade("moderate")
    ('poorly differentiated', 'well differentiated', 'moderately differentiated')
    >>> normalise_grade("High"), normalise_grade("4"), normalise_grade("wellness"), normalise_grade("12"), normalise_grade("")
    (None, None, None, None, None)
    >>> normalise_grade("Gleason score 3 + 4 = 7"), normalise_grade("Grade Group 2"), normalise_grade("WHO/ISUP grade 4")
    ('Gleason 3+4=7', 'Grade Group 2', 'grade 4')
    >>> normalise_grade("Nottingham score 8/9"), normalise_grade("3+2+2 = 7"), normalise_grade("moderately to poorly differentiated")
    ('3', '2', 'moderately to poorly differentiated')
    """
    if gleason := _GLEASON_SCORE.search(text):
        return f"Gleason {gleason['first']}+{gleason['second']}={int(gleason['first']) + int(gleason['second'])}"
    if group := _GRADE_GROUP.search(text):
        return f"Grade Group {group['group']}"
    plain = strip_grading_system(text)
    match, score = _GRADE.match(plain), _NOTTINGHAM_SCORE.search(plain)
    if score and (not match or score.start() == 0):
        points = int(score["total"] or sum(int(score[part]) for part in ("tubules", "nuclei", "mitoses")))
        return "1" if points < 6 else "2" if points < 8 else "3"
    if not match:
        level = _TWO_TIER_GRADE.search(text)
        return f"{level['level'].lower()} grade" if level else "grade 4" if _FOURTH_GRADE.search(text) else None
    if match["number"]:
        return _ROMAN_GRADES.get(match["number"].lower(), match["number"])
    second_word = f" to {match['second_word'].lower()}" if match["second_word"] else ""
    return f"{_DIFFERENTIATION_WORDS[match['word'].lower()]}{second_word} differentiated"


def normalise_margin_status(text: str) -> str | None:
    """Normalise surgical margins to negative, positive or close, with any distance.

    >>> normalise_margin_status("Margins negative for carcinoma"), normalise_margin_status("Uninvolved. 1.6 cm to closest margin")
    ('negative', 'negative, 1.6 cm')
    >>> normalise_margin_status("involved by invasive carcinoma"), normalise_margin_status("close (< 1 mm)"), normalise_margin_status("Anterior, 4 mm"), normalise_margin_status("margins inked")
    ('positive', 'close, <1 mm', '4 mm', None)
    >>> normalise_margin_status("negative except the deep margin, which is positive"), normalise_margin_status("No carcinoma at the margin")
    ('positive', 'negative')
    >>> normalise_margin_status("involvement cannot be excluded"), normalise_margin_status("Positive margins: none"), normalise_margin_status("0 mm")
    ('indeterminate', 'negative', 'positive, 0 mm')
    """
    name = _MARGIN_NAME.search(text)
    distance = _MARGIN_DISTANCE.search(text, name.end() if name else 0) or _DISTANCE_TO_MARGIN.search(text)
    distance_text = (
        f"{(distance['sign'] or '').strip()}{distance['size']} {distance['unit'].lower()}" if distance else None
    )
    state = _find_margin_state(text) or ("positive" if distance and not float(distance["size"]) else None)
    return ", ".join(filter(None, (state, distance_text))) or None


def _find_margin_state(text: str) -> str | None:
    """Find the gravest state of the margins in a text: positive, indeterminate, close or negative."""
    states = {
        _find_sentence_margin_state(sentence) for sentence in _JOINED_LINES.split(_NO_MARGIN.sub("", text) or text)
    }
    return next((state for state in ("positive", "indeterminate", "close", "negative") if state in states), None)


def _find_sentence_margin_state(text: str) -> str | None:
    involved = list(_MARGIN_INVOLVED.finditer(text))
    is_uncertain = _MARGIN_UNCERTAIN.search(text) is not None and "distance" not in text.lower()
    affirmed = [
        match
        for match in involved
        if not _MARGIN_NEGATION_BEFORE.search(text[max(match.start() - 120, 0) : match.start()])
        and not _MARGIN_NEGATION_AFTER.search(text[match.end() : match.end() + 80])
    ]
    if affirmed or is_uncertain:
        return "indeterminate" if is_uncertain else "positive"
    if _MARGIN_CLOSE.search(text):
        return "close"
    return "negative" if involved or _MARGIN_FREE.search(text) else None


def normalise_marker_result(text: str) -> str | None:
    r"""Normalise a stain's result to polarity, score and percentage of cells.

    >>> normalise_marker_result("95 % of tumor nuclei, strong\tPositive"), normalise_marker_result("Score 1+\tNegative"), normalise_marker_result("negative (0%)")
    ('positive, 95%', 'negative, 1+', 'negative, 0%')
    >>> normalise_marker_result("over 75% of neoplastic nuclei"), normalise_marker_result("3+"), normalise_marker_result("equivocal (2+)"), normalise_marker_result("see comment")
    ('>75%', '3+', 'equivocal, 2+', None)
    >>> normalise_marker_result("Score 0"), normalise_marker_result("negative, score 0")
    ('score 0', 'negative, score 0')
    """
    polarity = _POLARITY.search(text)
    score, percent = _STAIN_SCORE.search(text), _PERCENT.search(text)
    polarity_word = (polarity.lastgroup or "").replace("sign", "positive").replace("_", " ") if polarity else None
    share = None
    if percent:
        comparison = " ".join((percent["sign"] or "").lower().split())
        share = f"{_COMPARISON_SYMBOLS.get(comparison, comparison)}{_remove_whitespace(percent['number']).replace('–', '-')}%"
    # "score 0" instead of "0", so that normalising the result again gives the same result.
    score_text = score and (_remove_whitespace(score["score"]) if "+" in score["score"] else f"score {score['score']}")
    return ", ".join(filter(None, (polarity_word, score_text, share))) or None


def normalise_stage(text: str) -> str | None:
    """Normalise a TNM stage or a stage group.

    >>> normalise_stage("pT1c pN0(sn)"), normalise_stage("pT3a. pNX, pMX."), normalise_stage("ypT2 N1a M0"), normalise_stage("Stage IIIA"), normalise_stage("T-cell")
    ('pT1c pN0(sn)', 'pT3a pNX pMX', 'ypT2 ypN1a M0', 'Stage IIIA', None)
    """
    match = _TNM_STAGE.search(text)
    if match:
        prefix = match["prefix"]
        nodes = match["n"] and f"{prefix}N{match['n']}{_remove_whitespace(match['nodes'] or '')}"
        metastases = match["m"] and f"{'p' if 'pM' in match.group() else ''}M{match['m']}"
        return " ".join(filter(None, (f"{prefix}T{match['t']}", nodes, metastases)))
    group = _STAGE_GROUP.search(text)
    return f"Stage {group['group'].upper()}" if group else None


def normalise_msi(text: str) -> str | None:
    """Normalise the microsatellite status to MSI-H, MSI-L or MSS.

    >>> normalise_msi("MSI-High"), normalise_msi("microsatellite stable"), normalise_msi("MSI (instable)"), normalise_msi("MSI-L"), normalise_msi("Stable"), normalise_msi("pending")
    ('MSI-H', 'MSS', 'MSI-H', 'MSI-L', 'MSS', None)
    >>> normalise_msi("No evidence of microsatellite instability"), normalise_msi("MSI-High: not detected")
    ('MSS', None)
    """
    # MSS is tested first: "no microsatellite instability" also contains the words of the other two.
    return next((name for pattern, name in reversed(_MSI_PATTERNS) if pattern.search(text)), None)


def normalise_tmb(text: str) -> str | None:
    """Normalise the tumor mutational burden to a number without unit.

    >>> normalise_tmb("4.2 (low)"), normalise_tmb("10 Muts/Mb, high")
    ('4.2', '10')
    >>> normalise_tmb("12.4 mut/Mb"), normalise_tmb("136.9 variants per megabase"), normalise_tmb("8"), normalise_tmb("high"), normalise_tmb("12 %")
    ('12.4', '136.9', '8', None, None)
    """
    match = _TMB.search(text)
    if not match or (
        not match["unit"] and not re.fullmatch(r"(?i)\s*\d+(?:[.,]\d+)?[\s,(]*(?:low|high|intermediate)?[\s)]*", text)
    ):
        return None
    return match["number"].replace(",", ".")


def normalise_variant(text: str) -> str | None:
    r"""Normalise a variant to gene and change, or to "none detected".

    >>> normalise_variant("BRCA2\tNM_000059.4\tc.5946delT\tp.Ser1982Argfs*22"), normalise_variant("BRAF V600E"), normalise_variant("EGFR exon 19 deletion")
    ('BRCA2 c.5946delT p.Ser1982Argfs*22', 'BRAF V600E', 'EGFR exon 19 deletion')
    >>> normalise_variant("KRAS c.35G>A (p.Gly12Asp)"), normalise_variant("KRAS p.(Gly12Asp)")
    ('KRAS c.35G>A p.Gly12Asp', 'KRAS p.(Gly12Asp)')
    >>> normalise_variant("EML4-ALK fusion"), normalise_variant("No pathogenic variants were detected"), normalise_variant("TP53"), normalise_variant("c.35G>A")
    ('EML4::ALK fusion', 'none detected', None, 'c.35G>A')
    """
    if fusion := GENE_FUSION_PATTERN.search(text):
        return f"{fusion['first']}::{fusion['second'] or fusion['partner']} fusion"
    # Drop a closing bracket that was opened before the change: c.35G>A (p.Gly12Asp).
    changes = list(
        dict.fromkeys(
            change if "(" in change else change.rstrip(")")
            for change in map(_remove_whitespace, HGVS_LIKE_PATTERN.findall(text))
        )
    )
    gene = next((text[start:end] for start, end in find_gene_spans(text)), None)
    if not changes and gene:
        changes = [match.group() for match in ALTERATION_PATTERN.finditer(text)][:1]
    if changes:
        return " ".join(filter(None, (gene, *changes)))
    return "none detected" if NO_VARIANT_PATTERN.search(text) else None


@cache
def _load_gene_symbols() -> frozenset[str]:
    text = (files("evalkit.extraction") / "gene_symbols.txt").read_text("utf-8")
    return frozenset(line for line in text.splitlines() if not line.startswith("#"))


def is_gene_symbol(word: str) -> bool:
    """Return True if the word is the symbol of a human gene.

    >>> [is_gene_symbol(word) for word in ("BRCA2", "TP53", "NKX2-1", "DNA", "EXON03", "Gene", "V600E")]
    [True, True, True, False, False, False, False]
    """
    return word in _load_gene_symbols()


def find_gene_spans(text: str) -> Iterator[tuple[int, int]]:
    """Find the gene symbols in a text: start and end of each.

    >>> [text[start:end] for text in ("BRCA1-associated", "VHL, EXON03", "EML4::ALK") for start, end in find_gene_spans(text)]
    ['BRCA1', 'VHL', 'EML4', 'ALK']
    """
    position = 0
    while match := _GENE_WORD.search(text, position):
        # The word behind a hyphen belongs to the symbol (NKX2-1) or does not (FLT3-ITD).
        words = (match.group(), match.group().partition("-")[0])
        word = next((word for word in words if is_gene_symbol(word)), None)
        position = match.start() + len(word or words[1])
        if word:
            yield match.start(), position


def normalise_gene(text: str) -> str | None:
    """Normalise a gene symbol: strip spaces; None if it is no gene symbol.

    >>> normalise_gene(" BRCA2 "), normalise_gene("Gene"), normalise_gene("c.35G>A")
    ('BRCA2', None, None)
    """
    plain = text.strip()
    return plain if is_gene_symbol(plain) else None


def normalise_lab_result(text: str) -> str | None:
    r"""Normalise a laboratory result to number, flag, unit and (reference range).

    >>> normalise_lab_result("14.9\t\t13.2-17.1\tg/dL"), normalise_lab_result("104 H\t65-99\tmg/dL"), normalise_lab_result("7.2 x10^9/L (Ref: 4.5-11.0)")
    ('14.9 g/dL (13.2-17.1)', '104 H mg/dL (65-99)', '7.2 x10^9/L (4.5-11.0)')
    >>> normalise_lab_result("188\t\tbelow 200\tmg/dL"), normalise_lab_result("<0.5 mg/L"), normalise_lab_result("not done"), normalise_lab_result("251")
    ('188 mg/dL (below 200)', '<0.5 mg/L', None, '251')
    >>> normalise_lab_result("35.0% (Ref 36.0-45.0)"), normalise_lab_result("104\tmg/dL\t65-99\tH"), normalise_lab_result("Non-reactive")
    ('35.0 % (36.0-45.0)', '104 H mg/dL (65-99)', 'non-reactive')
    >>> normalise_lab_result("5.2 x 10 9/L"), normalise_lab_result("5.2 10*9/L"), normalise_lab_result("5.2 x10E9/L")
    ('5.2 x10^9/L', '5.2 10^9/L', '5.2 x10^9/L')
    """
    unit_match = _LAB_UNIT.search(text)
    plain = _blank_match(text, unit_match)
    number = _LAB_NUMBER.search(plain)
    if not number:
        word = _QUALITATIVE_RESULT.match(text.strip())
        return word.group().lower() if word else None
    reference_range = _REFERENCE_RANGE.search(plain, number.end())
    limits = reference_range["open"] or f"{reference_range['low']}-{reference_range['high']}" if reference_range else ""
    range_text = limits and f"({' '.join(limits.split())})"
    flag_match = _LAB_FLAG.search(_blank_match(plain, reference_range), number.end())
    comparison, flag = (number["sign"] or "").strip(), flag_match.group().upper() if flag_match else ""
    # Restore the mark of an exponent printed as a superscript: 10 9/L is 10^9/L, not 109/L.
    unit = _POWER_OF_TEN.sub(r"\1^\2", _remove_whitespace(unit_match.group())) if unit_match else ""
    return " ".join(filter(None, (f"{comparison}{number['number']}", flag, unit, range_text)))


def _blank_match(text: str, match: re.Match[str] | None) -> str:
    """Replace a match by spaces, so that positions stay as they are."""
    return f"{text[: match.start()]}{' ' * len(match.group())}{text[match.end() :]}" if match else text


def _remove_whitespace(text: str) -> str:
    return "".join(text.split())


#: The normalising function of each clinical format.
CLINICAL_NORMALISERS: Mapping[str, Callable[[str], str | None]] = {
    "grade": normalise_grade,
    "margin": normalise_margin_status,
    "marker": normalise_marker_result,
    "stage": normalise_stage,
    "msi": normalise_msi,
    "tmb": normalise_tmb,
    "variant": normalise_variant,
    "gene": normalise_gene,
    "lab": normalise_lab_result,
}
#: Predicates for the sentence about a text that is not in the format.
CLINICAL_FORMAT_ERRORS: Mapping[str, str] = {
    "grade": "is not a grade of 1 to 3 or a degree of differentiation",
    "margin": "does not say whether the margins are free",
    "marker": "is not the result of a stain",
    "stage": "is not a stage",
    "msi": "is not a microsatellite status",
    "tmb": "is not a number of mutations per megabase",
    "variant": "is not a variant",
    "gene": "is not the symbol of a gene",
    "lab": "is not a result of a laboratory test",
}
