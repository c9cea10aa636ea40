"""Normal forms of clinical findings: grade, margin, marker, stage, variant …

Each ``normalise_…`` function converts a report's words to one normal form, or returns None if they are not in the
format. None of them judges whether a finding is true. Source: specification 002, section 3.3.1; contract ruling 16.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.resources import files

from evalkit.extraction.patterns import get_pattern

_ROMAN_GRADES = {"i": "1", "ii": "2", "iii": "3"}
_DIFFERENTIATION_WORDS = {
    "well": "well",
    "moderate": "moderately",
    "moderately": "moderately",
    "poor": "poorly",
    "poorly": "poorly",
}


_POLARITY_SIGNS = {
    "allred_high": "positive",
    "allred_low": "negative",
    "plus": "positive",
    "stained": "positive",
    "minus": "negative",
}
_COMPARISON_SYMBOLS = {"over": ">", "more than": ">", "under": "<", "less than": "<", "about": "~"}


#: The status by its pattern. MSS is first: "no microsatellite instability" also contains the words of the other two.
_MSI_STATUSES = {"msi_stable": "MSS", "msi_low": "MSI-L", "msi_high": "MSI-H"}


def strip_grading_system(text: str) -> str:
    """Remove the grading system's name from a grade, unless the text is only the name.

    >>> [strip_grading_system(text) for text in ("Nottingham grade 2", "Grade: II", "G3", "moderately differentiated", "Grade")]
    ['2', 'II', '3', 'moderately differentiated', 'Grade']
    """
    plain = " ".join(text.split())
    return plain[get_pattern("grade_prefix").match(plain).end() :] or plain  # type: ignore[union-attr]  # it matches the empty text


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
    text = get_pattern("leader").sub(": ", text)
    if gleason := get_pattern("gleason_score").search(text):
        return f"Gleason {gleason['first']}+{gleason['second']}={int(gleason['first']) + int(gleason['second'])}"
    if group := get_pattern("grade_group").search(text):
        return f"Grade Group {group['group']}"
    plain = strip_grading_system(text)
    match, score = get_pattern("grade").match(plain), get_pattern("nottingham_score").search(plain)
    if score and (not match or score.start() == 0):
        points = int(score["total"] or sum(int(score[part]) for part in ("tubules", "nuclei", "mitoses")))
        return "1" if points < 6 else "2" if points < 8 else "3"
    if not match:
        level = get_pattern("two_tier_grade").search(text)
        return (
            f"{level['level'].lower()} grade"
            if level
            else "grade 4"
            if get_pattern("fourth_grade").search(text)
            else None
        )
    if match["number"]:
        number = _remove_whitespace(match["number"]).replace("–", "-")
        return _ROMAN_GRADES.get(number.lower(), number)
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
    >>> normalise_margin_status("Carcinoma is seen at the edge but does not reach a margin")
    >>> normalise_margin_status("involvement cannot be excluded"), normalise_margin_status("Positive margins: none"), normalise_margin_status("0 mm")
    ('indeterminate', 'negative', 'positive, 0 mm')
    """
    name = get_pattern("margin_name").search(text)
    distance = get_pattern("margin_distance").search(text, name.end() if name else 0) or get_pattern(
        "distance_to_margin"
    ).search(text)
    distance_text = (
        f"{(distance['sign'] or '').strip()}{distance['size']} {distance['unit'].lower()}" if distance else None
    )
    state = _find_margin_state(text) or ("positive" if distance and not float(distance["size"]) else None)
    return ", ".join(filter(None, (state, distance_text))) or None


def _find_margin_state(text: str) -> str | None:
    """Find the gravest margin state: positive, indeterminate, close or negative."""
    states = {
        _find_sentence_margin_state(sentence)
        for sentence in get_pattern("joined_lines").split(get_pattern("no_margin").sub("", text) or text)
    }
    return next((state for state in ("positive", "indeterminate", "close", "negative") if state in states), None)


def _find_sentence_margin_state(text: str) -> str | None:
    involved = list(get_pattern("margin_involved").finditer(text))
    is_uncertain = get_pattern("margin_uncertain").search(text) is not None and "distance" not in text.lower()
    affirmed = [
        match
        for match in involved
        if not get_pattern("margin_negation_before").search(text[max(match.start() - 120, 0) : match.start()])
        and not get_pattern("margin_negation_after").search(text[match.end() : match.end() + 80])
    ]
    if affirmed or is_uncertain:
        return "indeterminate" if is_uncertain else "positive"
    if get_pattern("margin_close").search(text):
        return "close"
    return "negative" if involved or get_pattern("margin_free").search(text) else None


def normalise_marker_result(text: str) -> str | None:
    r"""Normalise a stain's result to polarity, score and percentage of cells.

    >>> normalise_marker_result("95 % of tumor nuclei, strong\tPositive"), normalise_marker_result("Score 1+\tNegative"), normalise_marker_result("negative (0%)")
    ('positive, 95%', 'negative, 1+', 'negative, 0%')
    >>> normalise_marker_result("over 75% of neoplastic nuclei"), normalise_marker_result("3+"), normalise_marker_result("equivocal (2+)"), normalise_marker_result("see comment")
    ('>75%', '3+', 'equivocal, 2+', None)
    >>> normalise_marker_result("Score 0"), normalise_marker_result("negative, score 0"), normalise_marker_result("CPS: 12 (22C3)")
    ('score 0', 'negative, score 0', 'CPS 12')
    """
    polarity = get_pattern("polarity").search(text)
    score, percent = get_pattern("stain_score").search(text), get_pattern("percent").search(text)
    group = polarity.lastgroup or "" if polarity else ""
    polarity_word = _POLARITY_SIGNS.get(group, group.replace("_", " "))
    share = None
    if percent:
        comparison = " ".join((percent["sign"] or "").lower().split())
        share = f"{_COMPARISON_SYMBOLS.get(comparison, comparison)}{_remove_whitespace(percent['number']).replace('–', '-')}%"
    # "score 0" instead of "0", so that normalising the result again gives the same result.
    score_text = score and (_remove_whitespace(score["score"]) if "+" in score["score"] else f"score {score['score']}")
    named_share = get_pattern("stain_share").search(text)
    named_text = named_share and f"{named_share['name'].upper()} {_remove_whitespace(named_share['number'])}"
    return ", ".join(filter(None, (polarity_word, score_text, share, named_text))) or None


def normalise_stage(text: str) -> str | None:
    """Normalise a TNM stage or a stage group.

    >>> normalise_stage("pT1c pN0(sn)"), normalise_stage("pT3a. pNX, pMX."), normalise_stage("ypT2 N1a M0"), normalise_stage("Stage IIIA"), normalise_stage("T-cell")
    ('pT1c pN0(sn)', 'pT3a pNX pMX', 'ypT2 ypN1a M0', 'Stage IIIA', None)
    """
    match = get_pattern("tnm_stage").search(text)
    if match:
        prefix = match["prefix"].lower()
        tumor, nodes, metastases = ((match[part] or "").lower().replace("x", "X") for part in "tnm")
        nodes = nodes and f"{prefix}N{nodes}{_remove_whitespace(match['nodes'] or '')}"
        metastases = metastases and f"{'p' if 'pm' in match.group().lower() else ''}M{metastases}"
        return " ".join(filter(None, (f"{prefix}T{tumor}", nodes, metastases)))
    group = get_pattern("stage_group").search(text)
    return f"Stage {group['group'].upper()}" if group else None


def normalise_msi(text: str) -> str | None:
    """Normalise the microsatellite status to MSI-H, MSI-L or MSS.

    >>> normalise_msi("MSI-High"), normalise_msi("microsatellite stable"), normalise_msi("MSI (instable)"), normalise_msi("MSI-L"), normalise_msi("Stable"), normalise_msi("pending")
    ('MSI-H', 'MSS', 'MSI-H', 'MSI-L', 'MSS', None)
    >>> normalise_msi("No evidence of microsatellite instability"), normalise_msi("MSI-High: not detected")
    ('MSS', None)
    """
    return next((status for name, status in _MSI_STATUSES.items() if get_pattern(name).search(text)), None)


def normalise_tmb(text: str) -> str | None:
    """Normalise the tumor mutational burden to a number without unit.

    >>> normalise_tmb("4.2 (low)"), normalise_tmb("10 Muts/Mb, high")
    ('4.2', '10')
    >>> normalise_tmb("12.4 mut/Mb"), normalise_tmb("136.9 variants per megabase"), normalise_tmb("8"), normalise_tmb("high"), normalise_tmb("12 %")
    ('12.4', '136.9', '8', None, None)
    """
    match = get_pattern("tmb").search(text)
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
    if fusion := get_pattern("gene_fusion").search(text):
        return f"{fusion['first']}::{fusion['second'] or fusion['partner']} fusion"
    # Drop a closing bracket that was opened before the change: c.35G>A (p.Gly12Asp).
    changes = list(
        dict.fromkeys(
            change if "(" in change else change.rstrip(")")
            for change in map(_remove_whitespace, get_pattern("hgvs_like").findall(text))
        )
    )
    gene = next((text[start:end] for start, end in find_gene_spans(text)), None)
    if not changes and gene:
        changes = [match.group() for match in get_pattern("alteration").finditer(text)][:1]
    if changes:
        return " ".join(filter(None, (gene, *changes)))
    return "none detected" if get_pattern("no_variant").search(text) else None


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
    while match := get_pattern("gene_word").search(text, position):
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
    >>> normalise_lab_result("0.41\tug/mL FEU\t<0.50"), normalise_lab_result("9 mg/dL HIGH"), normalise_lab_result("9 mg/dL REF 3-5")
    ('0.41 ug/mL FEU (<0.50)', '9 HIGH mg/dL', '9 mg/dL (3-5)')
    """
    if word := get_pattern("qualitative_result").match(text.strip()):
        return word.group().lower()
    unit_match = get_pattern("lab_unit").search(text)
    plain = _blank_match(text, unit_match)
    number = get_pattern("lab_number").search(plain)
    if not number:
        return None
    reference_range = get_pattern("reference_range").search(plain, number.end())
    limits = reference_range["open"] or f"{reference_range['low']}-{reference_range['high']}" if reference_range else ""
    range_text = limits and f"({' '.join(limits.split())})"
    flag_match = get_pattern("lab_flag").search(_blank_match(plain, reference_range), number.end())
    comparison, flag = (number["sign"] or "").strip(), flag_match.group().upper() if flag_match else ""
    # Restore the mark of an exponent printed as a superscript: 10 9/L is 10^9/L, not 109/L.
    unit = get_pattern("power_of_ten").sub(r"\1^\2", _remove_whitespace(unit_match.group())) if unit_match else ""
    basis = get_pattern("lab_unit_basis").match(text, unit_match.end()) if unit_match else None
    unit += f" {basis.group().strip()}" if basis else ""
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
