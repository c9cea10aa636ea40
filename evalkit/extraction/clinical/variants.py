"""Offline reader of genetic variants in tables, sentences and lists.

A change belongs to the gene next to it, before or after, in its row or sentence. What is said of relatives, of earlier
tests or of medicine in general is no finding.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from evalkit.core.grouping import split_into_runs
from evalkit.documents.bundle import Page
from evalkit.extraction.clinical.report_statements import (
    GUESSED_CONFIDENCE,
    LIKELY_CONFIDENCE,
    SURE_CONFIDENCE,
    LocatedClinicalValue,
    extract_sentence_parts,
)
from evalkit.extraction.clinical.report_structure import ClinicalReport, ReportLine
from evalkit.extraction.clinical_formats import (
    find_gene_spans,
    normalise_variant,
)
from evalkit.extraction.field_template import TemplateField
from evalkit.extraction.patterns import get_pattern
from evalkit.grounding.critical_terms import DifferenceKind
from evalkit.grounding.omitted_context import find_omitted_context

#: Most characters between the parts of one variant, such as c.35G>A and p.Gly12Asp.
_MAX_GAP = 70
#: Most characters between a gene and its change.
_MAX_GENE_DISTANCE = 240
#: Most characters of text that is searched at a time.
_MAX_RUN_LENGTH = 4_000
_CHANGE_PATTERNS = ("gene_fusion", "hgvs_like", "alteration")
_Span = tuple[int, int]
_THREE_LETTERS = "AlaArgAsnAspCysGlnGluGlyHisIleLeuLysMetPheProSerThrTrpTyrValTer"
_ONE_LETTER_NAMES = dict(zip(re.findall("...", _THREE_LETTERS), "ARNDCQEGHILKMFPSTWYV*", strict=True))


@dataclass(frozen=True)
class _Variant:
    page: Page
    start: int
    end: int
    gene: str
    confidence: float

    @property
    def text(self) -> str:
        return self.page.text[self.start : self.end]

    @cached_property
    def changes(self) -> frozenset[str]:
        """Changes in a form that is equal for p.Gly12Asp and G12D.

        Also for c.5946delT and c.5946del.
        """
        words = (normalise_variant(self.text) or "").removeprefix(self.gene).split(" ")
        return frozenset(map(_shorten_change, words)) - {"?", "", self.gene}

    @property
    def genes(self) -> set[str]:
        # Of a fusion, both.
        return {self.gene, *(change[2:] for change in self.changes if change.startswith("::"))}

    @property
    def is_called_harmless(self) -> bool:
        """True if the rest of the line calls the variant uncertain or benign."""
        line_end = self.page.text.find("\n", self.end)
        return (
            get_pattern("harmless").search(self.page.text, self.end, line_end if line_end >= 0 else len(self.page.text))
            is not None
        )

    def differs_from(self, other: _Variant) -> bool:
        """Return True if both name the same amino acid with another change."""
        residues, other_residues = (
            {match.group() for change in mention.changes if (match := re.match(r"[A-Z]\d+(?=[A-Z*])", change))}
            for mention in (self, other)
        )
        return not residues.isdisjoint(other_residues) and not self.changes & other.changes


def _shorten_change(change: str) -> str:
    if change.startswith("c."):
        return re.sub(r"(del|dup)[ACGT]+$", r"\1", change)
    letters = re.sub(
        "|".join(_ONE_LETTER_NAMES), lambda match: _ONE_LETTER_NAMES[match.group()], change.removeprefix("p.")
    )
    return re.sub(r"^([A-Z]\d+).*fs.*", r"\1fs", letters.strip("()")).replace("X", "*")


def read_variants(
    _field: TemplateField, report: ClinicalReport, is_second_pass: bool
) -> Iterator[LocatedClinicalValue]:
    """Read each variant with its gene, or the statement that no variant was found.

    The second pass also reads variants in sentences about medicine in general, if there is no other.
    """
    variants = _find_variants(report, is_second_pass)
    for number, variant in enumerate(variants, 1):
        yield LocatedClinicalValue(variant.page, variant.start, variant.end, variant.confidence, str(number))
    statements = [] if variants else list(_find_statements_of_none(report))
    # "Not detected" for one gene, where something else was detected, is no result of the whole report.
    is_doubtful = any(
        get_pattern("found_something").search(get_pattern("no_variant").sub("", line.text))
        for line in report.finding_lines
    )
    for line, match in statements[:1]:
        confidence = GUESSED_CONFIDENCE if is_doubtful else LIKELY_CONFIDENCE
        yield LocatedClinicalValue(line.page, line.start + match.start(), line.start + match.end(), confidence, "1")


def read_genes(_field: TemplateField, report: ClinicalReport, is_second_pass: bool) -> Iterator[LocatedClinicalValue]:
    """Read each gene with a variant once; for a fusion, both genes."""
    for variant in _find_variants(report, is_second_pass):
        gene_spans = list(find_gene_spans(variant.text))
        for start, end in gene_spans if get_pattern("gene_fusion").search(variant.text) else gene_spans[:1]:
            yield LocatedClinicalValue(
                variant.page,
                variant.start + start,
                variant.start + end,
                variant.confidence,
                variant.text[start:end],
            )


def _find_statements_of_none(report: ClinicalReport) -> Iterator[tuple[ReportLine, re.Match[str]]]:
    """Find statements that no variant was found, in words or behind a gene."""
    for line in report.finding_lines:
        match = get_pattern("no_variant").search(line.text)
        if not match and next(find_gene_spans(line.text), None):
            match = get_pattern("variant_not_found").search(line.text)
        if match:
            yield line, match


def _find_variants(report: ClinicalReport, is_second_pass: bool) -> list[_Variant]:
    """Find all variants of the report, each once; a doubtful one has a low confidence."""
    return report.remember((_find_variants, is_second_pass), lambda: _merge_mentions(report, is_second_pass))


def _merge_mentions(report: ClinicalReport, is_second_pass: bool) -> list[_Variant]:
    # Adjacent lines of text; each table row alone.
    runs = split_into_runs(
        report.finding_lines,
        lambda run, line: (
            "row" not in (run[0].kind, line.kind)
            and line.page is run[0].page
            and line.start - run[-1].end <= 1
            and line.end - run[0].start < _MAX_RUN_LENGTH
        ),
    )
    spans: list[_Variant] = []
    for includes_general in (False, True) if is_second_pass else (False,):
        spans = spans or [variant for run in runs for variant in _find_variants_in_text(run, includes_general)]
    # A gene that is said to have no variant, and has one: a person decides. Where only pathogenic variants are denied, an
    # uncertain or benign one contradicts nothing.
    denials = [
        (get_pattern("denies_pathogenic").search(match.group()) is not None, _list_denied_genes(line, match))
        for line, match in _find_statements_of_none(report)
    ] + [
        (False, [line.text[start:end] for start, end in find_gene_spans(line.text)])
        for line in report.finding_lines
        if get_pattern("variant_withdrawn").search(line.text)
    ]
    # A headline of a pathogenic variant, and a gene whose only variant is called uncertain or benign.
    headline_genes = {
        line.text[start:end]
        for line in report.finding_lines
        if get_pattern("positive_pathogenic").search(line.text)
        for start, end in find_gene_spans(line.text)
    }
    genes = Counter(variant.gene for variant in _merge_variants(spans))
    denials += [
        (False, [variant.gene])
        for variant in spans
        if variant.gene in headline_genes and variant.is_called_harmless and genes[variant.gene] == 1
    ]
    return [
        replace(variant, confidence=GUESSED_CONFIDENCE)
        if any(
            variant.gene in genes and not (is_pathogenic_only and variant.is_called_harmless)
            for is_pathogenic_only, genes in denials
        )
        else variant
        for variant in _merge_variants(spans)
    ]


def _list_denied_genes(line: ReportLine, match: re.Match[str]) -> list[str]:
    """List genes that a statement says have no variant.

    Empty if the statement is about one change.
    """
    before, after = extract_sentence_parts(line.text, *match.span())
    sentence = before + match.group() + after
    if any(get_pattern(name).search(sentence) for name in _CHANGE_PATTERNS):
        return []
    return [sentence[start:end] for start, end in find_gene_spans(sentence)]


def _merge_variants(variants: Iterable[_Variant]) -> list[_Variant]:
    """Keep each variant's fullest mention; two that differ in a part are doubtful."""
    merged: list[_Variant] = []
    for variant in variants:
        number = next(
            (
                number
                for number, other in enumerate(merged)
                if (not other.gene or not variant.gene or other.genes & variant.genes)
                and (other.changes & variant.changes or other.differs_from(variant))
            ),
            None,
        )
        if number is None:
            merged.append(variant)
            continue
        other = merged[number]
        fuller = max(other, variant, key=lambda mention: (len(mention.changes), bool(mention.gene)))
        if variant.changes <= other.changes or other.changes <= variant.changes:
            merged[number] = replace(fuller, confidence=max(other.confidence, variant.confidence))
        else:
            merged[number] = replace(other, confidence=GUESSED_CONFIDENCE)
            merged.append(replace(variant, confidence=GUESSED_CONFIDENCE))
    return merged


def _find_variants_in_text(lines: Sequence[ReportLine], includes_general: bool) -> Iterator[_Variant]:
    page, start, is_row = lines[0].page, lines[0].start, lines[0].kind == "row"
    text = page.text[start : lines[-1].end]
    gene_spans = list(find_gene_spans(text))
    if is_row and get_pattern("variant_denied").search(text):
        return
    groups = _group_changes(text, gene_spans)
    for first, last in groups:
        gene_span, is_near = _choose_gene(text, gene_spans, first, last, is_row)
        has_hgvs = get_pattern("hgvs_like").search(text, first, last)
        # A kind of change behind a fusion, as in "TMPRSS2-ERG fusion, rearrangement", is no change of its second gene.
        is_of_fusion = gene_span and any(start < gene_span[0] < end <= first for start, end in groups)
        if not has_hgvs and (is_of_fusion or not (gene_span and is_near)):
            continue
        is_sure = bool(gene_span) and is_near and not (has_hgvs and not get_pattern("hgvs").search(text, first, last))
        gene_start, gene_end = gene_span or (first, last)
        place = start + min(first, gene_start), start + max(last, gene_end)
        if is_row or is_own_finding(page, *place, include_general=includes_general):
            yield _Variant(
                page,
                *place,
                text[gene_start:gene_end] if gene_span else "",
                GUESSED_CONFIDENCE
                if includes_general or not is_sure
                else SURE_CONFIDENCE
                if is_row
                else LIKELY_CONFIDENCE,
            )


def _group_changes(text: str, gene_spans: Sequence[_Span]) -> list[_Span]:
    """Join the names of one change, such as c.35G>A and p.Gly12Asp: start and end."""
    matches = sorted(
        (match for name in _CHANGE_PATTERNS for match in get_pattern(name).finditer(text)),
        key=lambda match: (match.start(), -match.end()),
    )
    disjoint: list[re.Match[str]] = []
    for match in matches:
        if not disjoint or match.start() >= disjoint[-1].end():
            disjoint.append(match)
    groups = split_into_runs(
        disjoint,
        lambda group, match: (
            match.start() - group[-1].end() <= _MAX_GAP
            and _name_change_kind(match) not in map(_name_change_kind, group)
            and not re.search(r"\.\s", text[group[-1].end() : match.start()])
            and not any(group[-1].end() <= gene_start < match.start() for gene_start, _ in gene_spans)
        ),
    )
    return [(group[0].start(), group[-1].end()) for group in groups]


def _name_change_kind(match: re.Match[str]) -> str:
    """Name the level of a change: ``c.`` or ``p.``, or ``""`` for words.

    V600E is ``p.`` too.
    """
    text = match.group()
    return text[:2] if text[1] == "." else "p." if re.match(r"[A-Z]\d", text) else ""


def _choose_gene(
    text: str, gene_spans: Sequence[_Span], start: int, end: int, is_row: bool
) -> tuple[_Span | None, bool]:
    """Choose the gene of the change ``text[start:end]``; and True if it is certain."""
    inside = next((span for span in gene_spans if start <= span[0] < end), None)
    before = next((span for span in reversed(gene_spans) if 0 <= start - span[1] <= _MAX_GENE_DISTANCE), None)
    after = next((span for span in gene_spans if 0 <= span[0] - end <= _MAX_GENE_DISTANCE), None)
    if inside or (before and get_pattern("gap_to_gene").fullmatch(text, before[1], start)):
        return inside or before, True
    if after and get_pattern("gap_to_gene_after").fullmatch(text, end, after[0]):
        return after, True
    if is_row and (before or get_pattern("hgvs_like").search(text, start, end)):
        return before or after, True
    if before:
        is_labelled = re.search(r"(?i)\bgene(?: name)?\W{0,3}$", text[: before[0]][-20:]) is not None
        # A gene in a list of genes is not the gene of the next sentence.
        is_listed = any(0 <= before[0] - other_end <= 5 for _, other_end in gene_spans)
        return before, is_labelled or not (is_listed or re.search(r"[.;]\s", text[before[1] : start]))
    return after if after and not get_pattern("sentence_end").search(text, end, after[0]) else None, False


def is_own_finding(page: Page, start: int, end: int, *, include_general: bool = False) -> bool:
    """Return True if the sentence says that this examination found the variant.

    ``include_general``: also accept sentences about medicine in general, such as "MSI-H tumors respond to …".
    """
    difference = find_omitted_context(page.text, start, end)
    if difference and difference.kind is not DifferenceKind.MODAL:
        return False
    before, after = extract_sentence_parts(page.text, start, end)
    sentence = before + page.text[start:end] + after
    is_general = get_pattern("variant_general").search(sentence)
    is_other = get_pattern("variant_elsewhere").search(sentence) or get_pattern("variant_not_found_before").search(
        before
    )
    return not is_other and (include_general or not is_general)
