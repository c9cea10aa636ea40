"""Parsing of typed field values: accept the whole text, or refuse it.

A format's normal form keeps only what it knows. A word is accounted for if the normal form changes without it, if it is
the field's own name, or if it is a filler of the format. Every other word (a negation, a doubt, a second result, another
unit) would be lost without a trace. Source: contract, ruling 27g.
"""

import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import NamedTuple

from evalkit.extraction.clinical_formats import CLINICAL_NORMALISERS
from evalkit.extraction.field_template import TemplateField
from evalkit.extraction.formats import clean_text


class TypedFormat(NamedTuple):
    """The ways in which people type a value of one format.

    ``keeps``: all that a value of the format can say, for the sentence of a refusal. ``fillers``: words that say nothing
    beyond the format itself. ``rewrites``: spellings to rewrite before normalising, with their replacements. Regular
    expressions: ``additions`` match further facts, with which the value is kept in the words as typed; ``other_values``
    whole texts that are values as they are; ``unclear_texts`` whole texts with two readings, written clearly as in
    ``clear_example``.
    """

    keeps: str
    fillers: str = ""
    rewrites: tuple[tuple[str, str], ...] = ()
    additions: str = "(?!)"
    other_values: str = "(?!)"
    unclear_texts: str = "(?!)"
    clear_example: str = ""


_DECIMAL_COMMA = (r"(?<![\d,.])(\d+),(\d{1,2})(?![\d,])", r"\1.\2")
_NEGATIVE = (r"(?i)\bneg(?:a?t?i?ve?)?\b\.?", "negative")
_POSITIVE = (r"(?i)\bpos(?:i?t?i?ve?)?\b\.?", "positive")
_PERCENT_WORD = (r"(?i)\bper ?c\w*", "%")
_NUMBER_WORDS = tuple(
    (rf"(?i)^{word}\b", str(number))
    for number, word in enumerate(
        [
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
            "thirteen",
            "fourteen",
            "fifteen",
            "sixteen",
            "seventeen",
            "eighteen",
            "nineteen",
            "twenty",
        ]
    )
)
#: How people type each format; formats without a row are taken as they are, or refused.
TYPED_FORMATS: dict[str, TypedFormat] = {
    "grade": TypedFormat(
        "one grade: 1, 2, 3 or well, moderately or poorly differentiated",
        "grade score g tumor tumour histologic histological nottingham bloom richardson scarff elston ellis modified sbr "
        "figo who overall final the of carcinoma adenocarcinoma differentiated diff differentiation",
        ((r"(?i)\bmod(?:erate)?\b\.?(?! *to)", "moderately"), (r"(\b[123]|\bi{1,3})\s*(?:/|out of|of)\s*3\b", r"\1")),
        r"(?i)\b(?:fuhrman|isup|fnclcc|edmondson|nuclear|combined)\b|\bscore \d/9|\((?:well|moderately|poorly)[ -]differentiated\)",
    ),
    "margin": TypedFormat(
        "the status of one margin (negative, positive or close) and its distance",
        "margin margins surgical resection status all are is was the of for by to from at and with invasive carcinoma tumor "
        "tumour cancer malignancy closest nearest distance clearance it",
        (_NEGATIVE, _POSITIVE, _DECIMAL_COMMA),
        other_values=r"R[012]",
    ),
    "marker": TypedFormat(
        "one result for one marker (positive, negative or equivocal; score; percentage)",
        "of in the is are for by tumor tumour cancer neoplastic cells nuclei staining stain stained expression ihc "
        "immunohistochemistry immunostain status result score index",
        (_NEGATIVE, _POSITIVE, (r"^\+$", "positive"), _PERCENT_WORD, _DECIMAL_COMMA),
        r"(?i)\b(?:nuclear|cytoplasmic|membranous|strong(?:ly)?|moderate(?:ly)?|weak(?:ly)?|diffuse(?:ly)?|focal(?:ly)?|patchy|"
        r"intensity|low(?= positive)|TPS|CPS)\b|\ballred(?: score)? \d(?:/8)?|\bH-score \d+",
    ),
    "stage": TypedFormat(
        "one stage: pT, pN and M, or one stage group",
        "stage group pathologic pathological clinical category ptnm tnm",
        (
            (r"(?i)(?<=[IV]) (?=[A-D]\d?$)", ""),
            *(
                (rf"(?i)^(?:stage )?{number}(?=[a-d]?\d?$)", f"Stage {roman}")
                for number, roman in (("1", "I"), ("2", "II"), ("3", "III"), ("4", "IV"))
            ),
            (r"^(?:IV|III|II|I)[A-D]?\d?$", r"Stage \g<0>"),
        ),
        r"(?i)\b(?:figo|ajcc|uicc)?,? ?(?:20[012]\d|\d(?:th|nd|rd) ed(?:ition|\.)?)|\b(?:figo|ajcc|uicc)\b|\((?:m|DCIS|\d)\)",
        r"[ycra]{0,2}p?N[0-3X][a-c]?(?:mi)?(?: ?\((?:sn|i[+-]|mol[+-])\))?|[cp]?M[01X][a-c]?",
    ),
    "msi": TypedFormat(
        "one microsatellite status: MSS, MSI-L or MSI-H",
        "msi status microsatellite tumor tumour is",
        (),
        r"(?i)\b[pd]MMR\b|\b\d/\d (?:loci|markers)(?: (?:un)?stable)?",
    ),
    "tmb": TypedFormat(
        "one number of mutations per megabase",
        "tmb tumor tumour mutational burden is mut/mb",
        ((r"(?i)\b(?:m|muts?|mutations?|variants?)\s*(?:/|per)\s*(?:mb|megabases?)\b", "mut/Mb"), _DECIMAL_COMMA),
        r"(?i)(?<=tmb)[- ](?:h|l|high|low|intermediate)\b",
    ),
    "variant": TypedFormat(
        "one variant: its gene and its change",
        "variant variants mutation mutations gene in with the was were detected identified found",
        (
            (r"\bc\. *(\d+) *([ACGT]) *> *([ACGT])\b", r"c.\1\2>\3"),
            (r"(?i)\bex(?:on)?\.? ?(?=\d)", "exon "),
            (r"(?i)\bamp(?:lified|l)?\b\.?", "amplification"),
            (r"(?i)(exon \d+) del\b\.?", r"\1 deletion"),
            (r"(?i)(exon \d+) ins\b\.?", r"\1 insertion"),
        ),
        r"(?i)\b(?:VAF|allele fraction|allele frequency)\b[ :=]*\d+(?:[.,]\d+)?\s*%|\bexon \d+(?: (?:deletion|insertion|skipping))?\b"
        r"|\bNM_\d+(?:\.\d+)?\b"
        r"|(?i:\b(?:(?:likely )?(?:pathogenic|benign)|VUS|somatic|germline|heterozygous|homozygous)\b)",
    ),
    "gene": TypedFormat("one gene symbol", "gene"),
    "lab": TypedFormat(
        "one number with its flag, unit and reference range",
        "result ref reference range normal",
        ((r"\bu(?=mol|g/|L\b|IU)", "µ"), (r"-+>", "→")),
        other_values=r"(?i)(?:non-?|weakly )?reactive|negative|positive|(?:not |none )?detected|trace",
        unclear_texts=r"\d{1,3},\d{3}",
        clear_example="1234 or 1.234",
    ),
    "measurement": TypedFormat(
        "one size with its unit",
        "in the size greatest maximum maximal largest longest dimension diameter thickness measuring measures",
        ((r"(?i)\b(mm|cm)s\b", r"\1"), (r"(?i)\b(?:(m)illi|(c)enti)met(?:er|re)s?\b", r"\1\2m"), _DECIMAL_COMMA),
    ),
    "percentage": TypedFormat(
        "one percentage",
        "of the cells tumor tumour",
        (_PERCENT_WORD, _DECIMAL_COMMA),
        other_values=r"[<>≤≥] ?\d+(?:\.\d+)? ?%",
    ),
    "number": TypedFormat(
        "one number", "", (*_NUMBER_WORDS, _DECIMAL_COMMA), other_values=r"(?i)\d+ ?/ ?\d+(?: ?hpf)?"
    ),
    "date": TypedFormat(
        "one day",
        "on",
        ((r"^(1[3-9]|2\d|3[01])[-/.](0?[1-9]|1[0-2])[-/.](\d{4})$", r"\3-\2-\1"),),
        unclear_texts=r"(0?[1-9]|1[0-2])[-/.](?!\1\b)(?:0?[1-9]|1[0-2])[-/.](?:\d\d)?\d\d",
        clear_example="3 Apr 2025 or 2025-04-03",
    ),
}
#: Words that are never a part of a field's name: without them a text may mean the opposite.
_MEANING_WORDS = frozenset(["no", "not", "non", "none", "and", "or", "without", "versus", "than"])
_MIN_MISSPELT_LETTERS = 6


def parse_typed_text(field: TemplateField, text: str) -> tuple[str | None, str]:
    """Return a typed text's value or None, and the words that it would lose.

    The value is the normal form if it accounts for every word; a text with further facts that its format allows is its own
    value. With words that would be lost, there is no value.
    """
    typed_text, row = clean_text(text), TYPED_FORMATS.get(field.format)
    plain_value = field.normalise(typed_text)
    if row is None or plain_value == typed_text:
        return plain_value, ""
    own_words, fillers = set(_iterate_own_words(field)), set(row.fillers.split())
    known_words = fillers | own_words
    full_text = _rewrite(typed_text, row)
    unnamed_text = _rewrite(_blank_words(full_text, own_words), row)
    if re.fullmatch(row.other_values, unnamed_text):
        return unnamed_text, ""
    bare_text = _blank_words(re.sub(row.additions, " ", unnamed_text), fillers)
    is_searched = field.format in CLINICAL_NORMALISERS
    sources = (unnamed_text, bare_text, full_text) if is_searched else (bare_text, unnamed_text, full_text)
    value, source = next(((form, text) for text in sources if (form := field.normalise(text))), (None, ""))
    if value is None or not is_searched:
        return value, ""
    blank_additions = re.sub(row.additions, lambda addition: " " * len(addition[0]), source)
    if lost_words := _find_lost_words(blank_additions, value, field, known_words):
        return None, lost_words
    has_additions = re.search(row.additions, unnamed_text) and value in map(
        field.normalise, (blank_additions, bare_text)
    )
    return clean_text(text) if has_additions else value, ""


def _find_lost_words(text: str, value: str, field: TemplateField, known_words: set[str]) -> str:
    """Find the words without which the text has the same normal form; empty for none."""
    clauses = [clause for clause in re.split(r"[,;()/]|\s[-–]\s", text) if clause.strip()]
    if len(clauses) > 1 and all(field.normalise(clause) == value for clause in clauses):
        return ", ".join(filter(None, (_find_lost_words(clause, value, field, known_words) for clause in clauses)))
    lost_characters = [" "] * len(text)
    for match in re.finditer(r"mut/Mb|[^\W\d_]+|\d+(?:[.,]\d+)*|[^\w\s,;:.()\[\]/\"'-]", text):
        if (
            not _is_known_word(match[0], known_words)
            and field.normalise(text[: match.start()] + " " + text[match.end() :]) == value
            and field.normalise(match[0]) != value
        ):
            lost_characters[slice(*match.span())] = match[0]
    return ", ".join("".join(lost_characters).split())


def _iterate_own_words(field: TemplateField) -> Iterator[str]:
    """Yield the words of a field's name and labels, unless they could be its value."""
    for name in (re.sub(r"\(.*?\)", " ", field.description), *field.labels):
        for word in re.findall(r"[^\W_][\w-]*", name):
            plain_word = word.replace("-", "").lower()
            if not plain_word.isdigit() and plain_word not in _MEANING_WORDS and not field.normalise(word):
                yield plain_word


def _is_known_word(word: str, known_words: set[str]) -> bool:
    plain_word = word.replace("-", "").lower()
    parts = set(word.lower().split("-"))
    is_misspelt = len(plain_word) >= _MIN_MISSPELT_LETTERS and get_close_matches(plain_word, known_words, 1, 0.85)
    return plain_word in known_words or parts <= known_words or bool(is_misspelt)


def _rewrite(text: str, row: TypedFormat) -> str:
    for pattern, replacement in row.rewrites:
        text = re.sub(pattern, replacement, text)
    return text


def _blank_words(text: str, known_words: set[str]) -> str:
    blanked = re.sub(r"[^\W_][\w-]*", lambda word: " " if _is_known_word(word[0], known_words) else word[0], text)
    return re.sub(r"\(\s*\)", "", " ".join(blanked.split())).strip(" ,;:")
