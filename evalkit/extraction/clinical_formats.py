"""How findings are written in clinical reports: the words of a grade, a margin, a marker, a stage, a variant …

Each function turns the words of a report into the one normal form of that finding, or None where they are none. None of
them says whether the finding is true. Source: specification 002, section 3.3.1; contract ruling 16.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

_ROMAN = {"i": "1", "ii": "2", "iii": "3"}
_GRADE_PREFIX = re.compile(
    r"(?i)^(?:(?:modified|combined|overall|tumou?r|histologic(?:al)?|nottingham|bloom[- ]richardson|scarff|elston|ellis|"
    r"figo|who|sbr|fnclcc|nuclear|edmondson|fuhrman|isup|final|the)[\s,/-]*)*(?:(?:grades?|score|g)(?![a-z])[\s:=.-]*)*"
)
_GRADE = re.compile(
    r"(?i)(?P<number>[123]|i{1,3})(?!\w)(?:\s*(?:of|/|out of)\s*3(?!\d))?|(?P<word>well|moderate(?:ly)?|poorly|poor)\b"
)
_WORDS_OF_GRADE = {
    "well": "well",
    "moderate": "moderately",
    "moderately": "moderately",
    "poor": "poorly",
    "poorly": "poorly",
}

_FREE = re.compile(
    r"(?i)\b(?:negative|uninvolved|not involved|clear|free|unremarkable|tumou?r-free|no (?:residual )?(?:tumou?r|carcinoma|"
    r"malignancy|neoplasm)|r0)\b"
)
_INVOLVED = re.compile(
    r"(?i)(?<!not )\b(?:positive|involve[sd]?|involving|present at|transected|extends? to|r1|r2)\b(?! by)|\binvolved by\b"
)
_CLOSE = re.compile(r"(?i)\bclose(?!st)\b|\bnarrow\b")
_DISTANCE = re.compile(r"(?i)(?P<sign>[<>≤≥]\s*)?(?P<size>\d+(?:\.\d+)?)\s*(?P<unit>mm|cm)\b")

_POLARITY = re.compile(
    r"(?i)\b(?P<no>negative|non-?reactive|not (?:expressed|detected|amplified|seen)|absent|no (?:expression|staining)|lost?|loss)\b"
    r"|\b(?P<maybe>equivocal|indeterminate)\b"
    r"|\b(?P<yes>positive|reactive|expressed|intact|retained|preserved|overexpressed|amplified|detected)\b"
)
_PERCENT = re.compile(
    r"(?P<sign>[<>≤≥~]\s*|over\s+|under\s+|more than\s+|less than\s+|about\s+)?(?P<number>\d+(?:\.\d+)?(?:\s*[-–]\s*\d+(?:\.\d+)?)?)\s*(?:%|percent\b)",
    re.I,
)
_SCORE = re.compile(r"(?<![\w.])(?P<score>[0-3]\s?\+|(?<=score )[0-3])(?![\w%])", re.I)
_SIGNS = {"over": ">", "more than": ">", "under": "<", "less than": "<", "about": "~"}

_STAGE = re.compile(
    r"(?P<prefix>[ycra]{0,2}p?)T(?P<t>is|[0-4X][a-d]?)(?:\s*\((?:DCIS|m|\d)\))?[\s,;.]*"
    r"(?:[ycra]{0,2}p?N(?P<n>[0-3X][a-c]?(?:mi)?)(?P<nodes>\s*\((?:sn|i[+-]|mol[+-])\))?)?[\s,;.]*(?:[cp]?M(?P<m>[01X][a-c]?))?",
)
_GROUP = re.compile(r"(?i)\b(?:stage|figo stage)\s+(?P<group>(?:IV|III|II|I|0)[A-D]?\d?)\b")

_MSI = (
    (re.compile(r"(?i)\bmsi[\s-]*(?:h\b|high)|\bhigh (?:level |microsatellite )(?:of )?(?:microsatellite )?instability|"
                r"microsatellite instability[\s-]*high|^\s*(?:high|instable|unstable)\b|\bmsi\s*\(?(?:instable|unstable)|\bmicrosatellite unstable"), "MSI-H"),
    (re.compile(r"(?i)\bmsi[\s-]*(?:l\b|low)|\blow (?:level |microsatellite )(?:of )?(?:microsatellite )?instability|"
                r"microsatellite instability[\s-]*low|^\s*low\b"), "MSI-L"),
    (re.compile(r"(?i)\bmss\b|\bmicrosatellite[\s-]*stable|^\s*stable\b|\bmsi[\s:-]*stable|"
                r"\bno (?:evidence of )?microsatellite instability|microsatellite instability (?:was )?not detected|^\s*not detected\b"), "MSS"),
)  # fmt: skip
_TMB = re.compile(
    r"(?i)(?P<number>\d+(?:[.,]\d+)?)\s*(?P<unit>(?:(?:somatic\s+)?(?:mut(?:ations?|s)?\.?|variants?)\s*(?:/|per)\s*(?:mb|megabases?)|/\s*mb)\b)?"
)
_MEGABASE = re.compile(r"(?i)mb\b|megabase")

_CODING = r"c\.[*-]?\d+(?:[+-]\d+)?(?:_[*-]?\d+(?:[+-]\d+)?)?(?:[ACGT]>[ACGT]|(?:delins|del|dup|ins|inv)[ACGT]*|=)"
_AMINO = r"(?:Ala|Arg|Asn|Asp|Cys|Gln|Glu|Gly|His|Ile|Leu|Lys|Met|Phe|Pro|Ser|Thr|Trp|Tyr|Val|Ter)"
_PROTEIN = (
    rf"p\.\(?(?:{_AMINO}\d+(?:_{_AMINO}\d+)?(?:{_AMINO}(?:fs(?:\*|Ter)?\d*|ext\S*)?|fs(?:\*|Ter)?\d*|\*|=|del(?:ins{_AMINO}*)?|dup|ins{_AMINO}*)"
    rf"|[ACDEFGHIKLMNPQRSTVWY]\d+(?:_[ACDEFGHIKLMNPQRSTVWY]\d+)?(?:[ACDEFGHIKLMNPQRSTVWY](?:fs\*?\d*)?|fs\*?\d*|\*|del|dup|ins[A-Z]*)|\?)\)?"
)
_SHORT = r"(?<![\w.])[ACDEFGHIKLMNPQRSTVWY][1-9]\d{1,3}(?:[ACDEFGHIKLMNPQRSTVWY]|\*|fs\*?\d*)(?!\w)"
GENE = r"[A-Z][A-Z0-9]{1,7}(?:-[A-Z0-9]{1,3})?"
"""A gene's symbol; many a capitalised word is none."""
HGVS = re.compile(rf"{_CODING}|{_PROTEIN}")
"""A variant in the nomenclature of the Human Genome Variation Society."""
ALTERATION = re.compile(
    rf"{_SHORT}|(?i:exon \d+ (?:deletion|insertion|skipping)|amplification|amplified|rearrangement|homozygous deletion)"
)
"""A variant in the words of a clinic: V600E, exon 19 deletion, amplification."""
_FUSION = re.compile(rf"(?P<first>{GENE})\s*(?:::|-|/)\s*(?P<second>{GENE})\s+(?:gene )?(?:fusion|rearrangement)")
NONE_FOUND = re.compile(
    r"(?i)\bno (?:\w+[\s,-]+){0,6}?(?:variants?|mutations?|alterations?)\b(?:\s+\w+){0,3}?\s+(?:detected|identified|found|reported)|^\s*none detected"
)
"""That no variant was found."""

_LAB = re.compile(
    r"(?P<sign>[<>≤≥]\s*)?(?P<number>\d+(?:[.,]\d+)*)\s*(?P<flag>\*|\b(?:H|L|HH|LL|A|high|low)\b)?(?![-–]\d)", re.I
)
_RANGE = re.compile(
    r"(?i)(?P<low>\d+(?:\.\d+)?)\s*(?:-|–|to)\s*(?P<high>\d+(?:\.\d+)?)|(?P<open>(?:[<>≤≥]=?|below|above|under|over|up to)\s*\d+(?:\.\d+)?|\d+(?:\.\d+)? or (?:above|below|more|less))"
)
_UNIT = re.compile(
    r"(?<![\w/])(?:(?:x\s*)?10\s*(?:\^|\*{1,2}|E)?\s*\d{1,2}\s*/\s*[µumnd]?L|(?:thousand|million|cells?|k|m|th|mil)\s*/\s*(?:[µu]l|mcl|mm3|cumm)|"
    r"(?:[mµunpfk]?g|mcg|[mµnp]?mol|[mµu]?IU|U|mEq|mOsm|cells|copies|ng|pg)\s*/\s*(?:d?L|m?L|[µu]L|kg|g|mmol|h|hr|24\s?h)|mL/min(?:/1\.73\s*m2)?|"
    r"mm/h(?:r|our)?|mmHg|fL|pg|%|ratio|seconds?|sec|g%)(?![\w])",
    re.I,
)
_POWER = re.compile(r"^(x?10)(?:\^|\*{1,2}|E)?(\d{1,2})(?=/)", re.I)


def stripped_grade(text: str) -> str:
    """What is left of a grade without the name of its system; the whole text where nothing would be left.

    >>> [stripped_grade(text) for text in ("Nottingham grade 2", "Grade: II", "G3", "moderately differentiated", "Grade")]
    ['2', 'II', '3', 'moderately differentiated', 'Grade']
    """
    plain = " ".join(text.split())
    return plain[_GRADE_PREFIX.match(plain).end() :] or plain  # type: ignore[union-attr]  # it matches the empty text


def grade(text: str) -> str | None:
    """A histologic grade: 1 to 3, or the degree of differentiation.

    >>> grade("Nottingham grade 2"), grade("Grade III"), grade("G1"), grade("FIGO grade 3/3")
    ('2', '3', '1', '3')
    >>> grade("Poorly differentiated"), grade("well-differentiated"), grade("moderate")
    ('poorly differentiated', 'well differentiated', 'moderately differentiated')
    >>> grade("High"), grade("4"), grade("wellness"), grade("12"), grade("")
    (None, None, None, None, None)
    """
    found = _GRADE.match(stripped_grade(text))
    if not found:
        return None
    if found["number"]:
        return _ROMAN.get(found["number"].lower(), found["number"])
    return f"{_WORDS_OF_GRADE[found['word'].lower()]} differentiated"


def margin(text: str) -> str | None:
    """The state of the surgical margins, with the distance where the words have one.

    >>> margin("Margins negative for carcinoma"), margin("Uninvolved. 1.6 cm to closest margin")
    ('negative', 'negative, 1.6 cm')
    >>> margin("involved by invasive carcinoma"), margin("close (< 1 mm)"), margin("Anterior, 4 mm"), margin("margins inked")
    ('positive', 'close, <1 mm', '4 mm', None)
    """
    distance = _DISTANCE.search(text)
    said = f"{(distance['sign'] or '').strip()}{distance['size']} {distance['unit'].lower()}" if distance else None
    states = ((_CLOSE, "close"), (_FREE, "negative"), (_INVOLVED, "positive"))
    state = next((name for pattern, name in states if pattern.search(text)), None)
    return ", ".join(filter(None, (state, said))) or None


def marker(text: str) -> str | None:
    r"""The result of a stain: positive or negative, score, share of the cells, as far as the words tell.

    >>> marker("95 % of tumor nuclei, strong\tPositive"), marker("Score 1+\tNegative"), marker("negative (0%)")
    ('positive, 95%', 'negative, 1+', 'negative, 0%')
    >>> marker("over 75% of neoplastic nuclei"), marker("3+"), marker("equivocal (2+)"), marker("see comment")
    ('>75%', '3+', 'equivocal, 2+', None)
    >>> marker("Score 0"), marker("negative, score 0")
    ('score 0', 'negative, score 0')
    """
    polarity = _POLARITY.search(text)
    score, percent = _SCORE.search(text), _PERCENT.search(text)
    said = {"no": "negative", "maybe": "equivocal", "yes": "positive"}[polarity.lastgroup or ""] if polarity else None
    share = None
    if percent:
        sign = " ".join((percent["sign"] or "").lower().split())
        share = f"{_SIGNS.get(sign, sign)}{_squeezed(percent['number']).replace('–', '-')}%"
    # A bare digit would not be known for a score when it is read again.
    points = score and (_squeezed(score["score"]) if "+" in score["score"] else f"score {score['score']}")
    return ", ".join(filter(None, (said, points, share))) or None


def stage(text: str) -> str | None:
    """A TNM stage, or a stage group.

    >>> stage("pT1c pN0(sn)"), stage("pT3a. pNX, pMX."), stage("ypT2 N1a M0"), stage("Stage IIIA"), stage("T-cell")
    ('pT1c pN0(sn)', 'pT3a pNX pMX', 'ypT2 ypN1a M0', 'Stage IIIA', None)
    """
    found = _STAGE.search(text)
    if found:
        prefix = found["prefix"]
        parts = [f"{prefix}T{found['t']}"]
        if found["n"]:
            parts.append(f"{prefix}N{found['n']}{_squeezed(found['nodes'] or '')}")
        if found["m"]:
            parts.append(f"{'p' if re.search(r'pM', found.group()) else ''}M{found['m']}")
        return " ".join(parts)
    group = _GROUP.search(text)
    return f"Stage {group['group'].upper()}" if group else None


def msi(text: str) -> str | None:
    """The microsatellite status.

    >>> msi("MSI-High"), msi("microsatellite stable"), msi("MSI (instable)"), msi("MSI-L"), msi("Stable"), msi("pending")
    ('MSI-H', 'MSS', 'MSI-H', 'MSI-L', 'MSS', None)
    >>> msi("No evidence of microsatellite instability")
    'MSS'
    """
    # What says "no instability" holds the words of "instability".
    return next((name for pattern, name in reversed(_MSI) if pattern.search(text)), None)


def tmb(text: str) -> str | None:
    """The tumor mutational burden: the number without its unit.

    >>> tmb("12.4 mut/Mb"), tmb("136.9 variants per megabase"), tmb("8"), tmb("high"), tmb("12 %")
    ('12.4', '136.9', '8', None, None)
    """
    found = _TMB.search(text)
    if not found or (not found["unit"] and not re.fullmatch(r"\s*\d+(?:[.,]\d+)?\s*", text)):
        return None
    return found["number"].replace(",", ".")


def variant(text: str) -> str | None:
    r"""A gene with its change, or that none was found.

    >>> variant("BRCA2\tNM_000059.4\tc.5946delT\tp.Ser1982Argfs*22"), variant("BRAF V600E"), variant("EGFR exon 19 deletion")
    ('BRCA2 c.5946delT p.Ser1982Argfs*22', 'BRAF V600E', 'EGFR exon 19 deletion')
    >>> variant("KRAS c.35G>A (p.Gly12Asp)"), variant("KRAS p.(Gly12Asp)")
    ('KRAS c.35G>A p.Gly12Asp', 'KRAS p.(Gly12Asp)')
    >>> variant("EML4-ALK fusion"), variant("No pathogenic variants were detected"), variant("TP53"), variant("c.35G>A")
    ('EML4::ALK fusion', 'none detected', None, 'c.35G>A')
    """
    if fusion := _FUSION.search(text):
        return f"{fusion['first']}::{fusion['second']} fusion"
    changes = list(dict.fromkeys(_closed(match.group()) for match in HGVS.finditer(text)))
    gene = next(
        (match.group() for match in re.finditer(rf"(?<![\w.]){GENE}(?![\w.])", text) if is_gene(match.group())), None
    )
    if not changes and gene:
        changes = [match.group() for match in ALTERATION.finditer(text)][:1]
    if changes:
        return " ".join(filter(None, (gene, *changes)))
    return "none detected" if NONE_FOUND.search(text) else None


def _closed(change: str) -> str:
    """Without a bracket that was opened before it: ``c.35G>A (p.Gly12Asp)``."""
    return change if "(" in change else change.rstrip(")")


_NO_GENES = frozenset(
    [
        "DNA",
        "RNA",
        "VUS",
        "NGS",
        "PCR",
        "FFPE",
        "EDTA",
        "ACMG",
        "AMP",
        "HGVS",
        "MSI",
        "MSS",
        "TMB",
        "VAF",
        "NAF",
        "CNV",
        "SNV",
        "SNP",
        "FDA",
        "CLIA",
        "CAP",
        "HER2",
        "AND",
        "THE",
        "NOT",
        "FOR",
        "WITH",
        "GENE",
        "NM",
        "NP",
        "POSITIVE",
        "NEGATIVE",
        "RESULT",
        "RESULTS",
        "VARIANT",
        "VARIANTS",
        "DETECTED",
        "TIER",
        "LEVEL",
        "REPORT",
        "FINAL",
        "TEST",
        "PAGE",
        "EXON",
        "SOMATIC",
        "GERMLINE",
    ]
)


def is_gene(word: str) -> bool:
    """Whether a word is written like a gene's symbol and is none of the capitals that reports are full of.

    >>> [is_gene(word) for word in ("BRCA2", "TP53", "KRAS", "DNA", "NM_000059", "Gene", "V600E", "A")]
    [True, True, True, False, False, False, False, False]
    """
    return (
        re.fullmatch(GENE, word) is not None
        and word not in _NO_GENES
        and not word.startswith(("NM", "NP", "ENS"))
        and not re.fullmatch(rf"{_SHORT}|[A-Z]\d{{3,}}", word)
    )


def gene(text: str) -> str | None:
    """A gene's symbol.

    >>> gene(" BRCA2 "), gene("Gene"), gene("c.35G>A")
    ('BRCA2', None, None)
    """
    plain = text.strip()
    return plain if is_gene(plain) else None


def lab(text: str) -> str | None:
    r"""The result of a laboratory test: number, unit, and the range it is compared with in brackets.

    >>> lab("14.9\t\t13.2-17.1\tg/dL"), lab("104 H\t65-99\tmg/dL"), lab("7.2 x10^9/L (Ref: 4.5-11.0)")
    ('14.9 g/dL (13.2-17.1)', '104 H mg/dL (65-99)', '7.2 x10^9/L (4.5-11.0)')
    >>> lab("188\t\tbelow 200\tmg/dL"), lab("<0.5 mg/L"), lab("not done"), lab("251")
    ('188 mg/dL (below 200)', '<0.5 mg/L', None, '251')
    >>> lab("5.2 x 10 9/L"), lab("5.2 10*9/L"), lab("5.2 x10E9/L")
    ('5.2 x10^9/L', '5.2 10^9/L', '5.2 x10^9/L')
    """
    units = _UNIT.search(text)
    bare = text[: units.start()] + " " * len(units.group()) + text[units.end() :] if units else text
    number = _LAB.search(bare)
    if not number:
        return None
    between = _RANGE.search(bare, number.end())
    said = ""
    if between:
        said = f"({between['low']}-{between['high']})" if between["low"] else f"({' '.join(between['open'].split())})"
    sign, flag = (number["sign"] or "").strip(), (number["flag"] or "").upper()
    # An exponent that a page sets small is one all the same: 109 would be another number.
    unit = _POWER.sub(r"\1^\2", _squeezed(units.group())) if units else ""
    return " ".join(filter(None, (f"{sign}{number['number']}", flag, unit, said)))


def _squeezed(text: str) -> str:
    return "".join(text.split())


NORMAL: Mapping[str, Callable[[str], str | None]] = {
    "grade": grade,
    "margin": margin,
    "marker": marker,
    "stage": stage,
    "msi": msi,
    "tmb": tmb,
    "variant": variant,
    "gene": gene,
    "lab": lab,
}
"""The normal form of each format of clinical fields."""
PROBLEMS: Mapping[str, str] = {
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
