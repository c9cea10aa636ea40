"""Second opinion on types, by text patterns that the classifier does not use.

The forms are variant notation, measurements in three dimensions, result rows with reference ranges, doses, vital signs,
lines to fill in and the like. No list is shared with the lexicon, because the second opinion would then repeat the
lexicon's mistakes.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from evalkit.classification.schema import DocumentType
from evalkit.core.document_cache import cache_document_text
from evalkit.document_types import FIVE_TYPES
from evalkit.documents.bundle import Page
from evalkit.issue import IssueSeverity

MAJOR = IssueSeverity.MAJOR
NOTE, PATHOLOGY, GENOMIC, RADIOLOGY, OTHER = FIVE_TYPES


@dataclass(frozen=True)
class TypeSign:
    """Text pattern that is typical of one type: a regular expression with a weight."""

    document_type: DocumentType
    name: str
    """Name of the form for the expert, in the plural."""
    prefilter_substrings: str
    """Lower-case strings separated by ", "; texts with none of them are not searched. Empty: all texts are searched."""
    expression: str
    weight: float = 1.0
    is_case_sensitive: bool = False
    is_in_reports: bool = False
    """True if this form of notes also begins or ends reports, so that it shows no note around a report."""

    @cached_property
    def _prefilters(self) -> list[str]:
        return self.prefilter_substrings.split(", ")

    # compiled at the first search, because a process that searches nothing then needs half a megabyte less
    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Compiled expression."""
        return re.compile(self.expression, re.MULTILINE | (0 if self.is_case_sensitive else re.IGNORECASE))

    @cached_property
    def pattern_for_lowercase_text(self) -> re.Pattern[str] | None:
        """Pattern for lower-case text, several times as fast; None if case matters."""
        if self.is_case_sensitive:
            return None
        lowercase_expression = re.sub(
            r"\\.|[A-Z]", lambda match: match[0] if match[0][0] == "\\" else match[0].lower(), self.expression
        )
        return re.compile(lowercase_expression, re.MULTILINE)

    def count_matches(self, text: str, lowercase_text: str) -> int:
        """Count the matches in a text, at most ``MAX_SIGN_COUNT``.

        ``lowercase_text`` is the same text in lower case.
        """
        if not any(map(lowercase_text.__contains__, self._prefilters)):
            return 0
        matches = (
            self.pattern_for_lowercase_text.finditer(lowercase_text)
            if self.pattern_for_lowercase_text
            else self.pattern.finditer(text)
        )
        return sum(1 for _ in islice(matches, MAX_SIGN_COUNT))


_NUMBER = r"\d+(?:[.,]\d+)?"

# fmt: off
TYPE_SIGNS = (
    TypeSign(GENOMIC, "variants in HGVS notation", "", r"\b[cgmnp]\.\(?(?:\d+|[A-Z][a-z]{2}\d+|[A-Z]\d+)[\w>_*+=()-]*", 2.0, is_case_sensitive=True),
    TypeSign(GENOMIC, "variants by amino acids", "", r"\b(?:[ACDEFGHIKLMNPQRSTVWY]\d{2,4}(?:[ACDEFGHIKLMNPQRSTVWY*]|fs|del|dup|ins))\b", 1.5, is_case_sensitive=True),
    TypeSign(GENOMIC, "reference sequences", "nm_, np_, nc_, ng_, enst, lrg, rs1, rs2, rs3, rs4, rs5, rs6, rs7, rs8, rs9", r"\b(?:(?:NM|NP|NC|NG)_|ENST|LRG_?)\d{3,}(?:\.\d+)?\b|\brs[1-9]\d{3,}\b", 2.0, is_case_sensitive=True),
    TypeSign(GENOMIC, "allele fractions or zygosity", "zygous, vaf, allele", r"\b(?:heterozygous|homozygous|hemizygous|VAF|allele (?:fraction|frequency))\b", 1.5),
    TypeSign(GENOMIC, "variant classifications", "pathogenic, significance, vus", r"\b(?:likely )?pathogenic\b|\bvariants? of (?:uncertain|unknown) (?:clinical )?significance\b|\bVUS\b", 1.0),
    TypeSign(GENOMIC, "results of a whole panel", "pathogenic, reportable, significan, recurrence score", r"\bno (?:other |known |reportable |clinically significant |deleterious |likely )*(?:pathogenic|reportable|deleterious|significant)(?: or likely pathogenic)? (?:\w+ )?(?:variants?|mutations?|alterations?)\b[^.\n]{0,20}\b(?:identified|detected|found)\b|\brecurrence score(?: result)?\W{1,3}\d{1,3}\b", 1.0),
    TypeSign(GENOMIC, "sequencing measures", "read depth, coverage, mutation, mut, tumor mut, tumour mut, microsatellite, copy number", r"\b(?:read depth|mean coverage|\d+x coverage|mutations?/m(?:ega)?b|tumou?r mutational burden|microsatellite|copy number)\b", 1.5),
    TypeSign(GENOMIC, "karyotypes or loci", "5,x, 6,x, 7,x, chr, p1, p2, p3, q1, q2, q3, q4", r"\b4[5-7],X[XY]\b|\b(?:\d{1,2}|X)(?:p[1-3]|q[1-4])\d?(?:\.\d+)?\b|\bchr(?:\d{1,2}|X|Y)\b", 1.5, is_case_sensitive=True),
    TypeSign(GENOMIC, "star alleles or drug response", "*, metaboli", r"\*\d{1,3}[A-Z]?/\*\d{1,3}\b|\b(?:poor|normal|intermediate|rapid|ultrarapid|extensive) metaboli[sz]ers?\b", 1.2),
    TypeSign(GENOMIC, "scores of gene expression", "recurrence score, gene scores, rt-pcr, gene expression, rna expression", r"\brecurrence score(?: result)?\W{1,3}\d{1,3}\b|\bgene scores?\b|\bRT-?PCR\b|\b(?:gene|RNA) expression\b", 1.0),
    TypeSign(PATHOLOGY, "measurements in three dimensions", "cm", rf"{_NUMBER}\s*(?:cm)?\s*[x×]\s*{_NUMBER}\s*(?:cm)?\s*[x×]\s*{_NUMBER}\s*cm", 0.5),
    TypeSign(PATHOLOGY, "block or cassette codes", "cassette, block, submitted, representative, sectioned, formalin", r"\b(?:cassettes?|blocks?|submitted (?:entirely|in toto|in [A-Z0-9])|representative sections?|serially sectioned|in formalin)\b", 2.0),
    TypeSign(PATHOLOGY, "stages or grades read from tissue", "t0, t1, t2, t3, t4, gleason, nottingham, histologic", r"\bp?T[0-4][a-c]?,?\s*p?N[0-3X]|\bgleason\b|\bnottingham\b|\bhistologic(?:al)? (?:grade|type)\b", 1.5),
    TypeSign(PATHOLOGY, "margins and invasion", "margin, invasion", r"\bmargins?\b[^.\n]{0,40}\b(?:negative|positive|free|uninvolved|involved)\b|\b(?:lympho)?vascular invasion\b|\bperineural invasion\b", 1.5),
    TypeSign(PATHOLOGY, "words of a smear's report", "satisfactory, intraepithelial, thinprep, endocervical, surepath, atypical squamous", r"\bsatisfactory for (?:evaluation|interpretation)\b|\bnegative for intraepithelial\b|\bsquamous intraepithelial\b|\bThinPrep\b|\bSurePath\b|\bendocervical(?:/transformation zone)? component\b|\batypical squamous\b", 1.2),
    TypeSign(PATHOLOGY, "stains", "h&e, hematoxylin, immuno, cytokeratin, ki-67, ki67, p63, ck0, ck1, ck2, ck3, ck4, ck5, ck6, ck7, ck8, ck9", r"\b(?:H&E|hematoxylin|immunohistochem\w+|immunostain\w*|cytokeratin|Ki-?67|p63|CK\d+)\b", 1.0),
    TypeSign(PATHOLOGY, "descriptions of cells", "nucle, mitos, mitotic, stroma, glandular, epithelium, lymphocytes, cytoplasm", r"\b(?:nuclei|nuclear|mitos[ei]s|mitotic|stroma|glandular|epithelium|lymphocytes|cytoplasm)\b", 0.7),
    TypeSign(PATHOLOGY, "how tissue is cut and described", "inked, sected, embedded, processed, piece, pieces, fragment, chippings, weigh, sections", r"\b(?:inked|bisected|trisected)\b|\ball\s(?:embedded|processed)\b|\b(?:pieces?|fragments?|chippings)\sof\s(?:\w+[\s-]){0,2}(?:skin|tissue|mucosa)\b|\bweigh(?:s|ing)?\s(?:\d+\sand\s)?\d+(?:\.\d+)?\s?g\b|\b(?:microscopic\s)?sections\s(?:of\sthe\s\w+\s)?show\b", 1.2),
    TypeSign(PATHOLOGY, "headings of a look through a microscope", "microscop, macroscop, gross, patholog, postmortem, post-mortem", r"^[^\S\n]*(?:(?:microscopic|macroscopic|gross)(?: (?:description|appearances?|examination|findings))?|microscopy|macroscopy|histopathological (?:diagnosis|recognition|examination))\s*:|\b(?:dermato|cyto|histo)pathologist\b|\bpost-?mortem examination\b|\bpatho(?:logist|morphologist)\b", 1.0),
    TypeSign(PATHOLOGY, "cells of smears, fluids and marrow", "cytotechnolog, papanicolaou, urothelial, squamous cells, blasts, megakaryocyt, erythroid, spicules, flow cytometry, malignant cells", r"\bcytotechnologist\b|\bpapanicolaou\b|\burothelial (?:cells|carcinoma)\b|\bsquamous cells\b|\b(?:ring sidero)?blasts?\b \d|\bmegakaryocytes?\b|\berythroid\b|\bspicules\b|\bflow cytometry\b|\bmalignant cells\b", 0.8),
    TypeSign(RADIOLOGY, "techniques of imaging", "axial, sagittal, coronal, contrast, lateral, view, weighted, transducer, transvaginal", r"\b(?:axial|sagittal|coronal)\b|\b(?:with|without) (?:intravenous |iv )?contrast\b|\bAP (?:and|&) lateral\b|\b[2-5] views?\b|\bT[12][- ]weighted\b|\btransducer\b|\btransvaginal\b", 1.5),
    TypeSign(RADIOLOGY, "doses of tracer or ray", "mci, mbq, mgy, msv, kvp", rf"{_NUMBER}\s*(?:mCi|MBq|mGy|mSv|kVp)\b", 2.0, is_case_sensitive=True),
    TypeSign(RADIOLOGY, "densities and signals", "attenuation, intens, echogenic, hypoechoic, radiolucen, opacit, enhancement, uptake", r"\b(?:attenuation|hyper-?intens\w+|hypo-?intens\w+|echogenic\w*|hypoechoic|radiolucen\w+|opacit(?:y|ies)|enhancement|signal intensity|uptake)\b", 1.2),
    TypeSign(RADIOLOGY, "normal organs listed", "normal, unremarkable, clear, patent", r"\b(?:liver|spleen|kidneys?|pancreas|heart|lungs?|ventricles|aorta|gallbladder|mediastin\w+)\b[^.\n]{0,60}\b(?:normal|unremarkable|clear|within normal limits|patent)\b", 1.0),
    TypeSign(RADIOLOGY, "absent findings of imaging", "no ", r"\bno (?:evidence of |acute |focal )*(?:fracture|pneumothorax|effusion|hemorrhage|infiltrate|mass effect|midline shift|consolidation|hydronephrosis|adenopathy)", 1.0),
    TypeSign(RADIOLOGY, "findings and categories of breast and bone imaging", "bi-rads, birads, breast, architectural, t-score, z-score, bmd", r"\bBI-?RADS\b(?: category)?\W{0,3}[0-6]\b|\bbreasts? (?:tissue|parenchyma) (?:is|are) (?:\w+ ){0,2}(?:dense|fatty)\b|\bscattered (?:areas of )?fibroglandular\b|\barchitectural distortion\b|\b[TZ]-scores?\b\W{0,3}(?:is |of |was )?[+-−–]?\d|\bBMD\b", 1.2),
    TypeSign(RADIOLOGY, "kinds of pictures", "radiograph, sono, grayscale, gray-scale, doppler, fluoroscop, tomogra, projection, scout, barium, urogram, angiogram, spect, gated, survey film, image", r"\b(?:radiographs?|radiographic|sono(?:gram|graphic)\w*|gray-?scale|doppler|fluoroscop\w+|tomogra\w+|projections?|scout|barium|urogram|angiogram|SPECT|gated|survey film|(?:axial|stress|resting|spot|delayed|multiplanar) images?)\b", 0.8),
    TypeSign(RADIOLOGY, "what pictures show", "visuali, imaged, demonstrated, stable, unchanged, normal", r"\b(?:is|are|was|were) (?:well |again |not |also |clearly )?(?:visuali[sz]ed|imaged|demonstrated)\b|\b(?:visuali[sz]ed|imaged) (?:portions?|lungs?|osseous|bones)\b|\b(?:stable|unchanged) (?:from|since|compared)\b|\bnormal (?:in )?(?:size|caliber|contour|course)\b", 0.8),
    TypeSign(RADIOLOGY, "findings of imaging", "disc, disk, foramin, sac, stenosis, phlebolith, osteophyt, atelectasis, spondylosis, hydronephrosis, calcification, free fluid, gestational, fetal heart, amniotic, bpd, crown-rump, placenta, systolic, ejection, perfusion", r"\bdis[ck] (?:desiccation|herniation|protrusion|spaces?|bulg\w+|height)\b|\b(?:neural|foraminal) (?:foramin\w+|stenosis|compromise)\b|\bthecal sac\b|\bcanal stenosis\b|\b(?:phlebolith|osteophyt|atelectasis|spondylosis|hydronephrosis)\w*|\bcalcifications?\b|\bfree fluid\b|\bgestational (?:age|sac)\b|\bfetal heart\b|\bamniotic fluid\b|\b(?:BPD|crown-rump)\b|\bplacenta\b|\bpeak systolic\b|\bejection fraction\b|\bperfusion\b", 1.0),
    TypeSign(RADIOLOGY, "headings of an examination by pictures", "technique, comparison, reason for, indication, exam", r"^[^\S\n]*(?:TECHNIQUE|COMPARISON|REASON FOR (?:THE )?EXAM\w*|CLINICAL INDICATION)\s*:|\bEXAM(?:INATION)?\s*:\s*(?:\w+[ -]){0,4}(?:CT|MRI?|x-?ray|ultrasound|scan|spine|chest|abdomen|enema|swallow|radiograph\w*|mammogra\w+)\b", 1.2),
    TypeSign(RADIOLOGY, "measures of the heart by ultrasound", "lvid, ivsd, rvsp, ef , trileaflet, gradient, valve", r"\b(?:LVID[ds]|IVSd|RVSP|TAPSE)\b|\bEF (?:is |of )?\d{2}|\btrileaflet\b|\bgradient (?:is |of )?\d+ ?mmHg|\b(?:mitral|aortic|tricuspid) valve\s*:", 1.0),
    TypeSign(RADIOLOGY, "veins by ultrasound", "compress, phasic, thrombus", r"\bveins? compress\w*\b|\bcompressib(?:le|ility)\b|\bphasic flow\b|\bno (?:\w+ )?thrombus\b", 1.0),
    TypeSign(RADIOLOGY, "sequences and joints by magnetic resonance", "t1, t2, proton density, fat-supp, fat supp, multiplanar, meniscus, meniscal, ligament", r"\b(?:T1|T2|proton density|fat[- ]suppressed)[^.\n]{0,40}\b(?:sequences?|weighted|images)\b|\bmultiplanar\b|\b(?:posterior|anterior) horn\b[^.\n]{0,30}\bmenisc\w+", 1.2),
    TypeSign(RADIOLOGY, "tubes and lines on films", "carina, vena cava, bibasilar, low volumes, lung volumes", r"\btip\b[^.\n]{0,30}\b(?:above the carina|vena cava)\b|\bbibasilar\b|\b(?:low|reduced) (?:lung )?volumes\b", 1.0),
    TypeSign(NOTE, "vital signs", "bp, blood pressure, pulse, heart rate, temperature, respirations", r"\b(?:BP|blood pressure)\b\W{0,4}(?:is |of |was )?\d{2,3}/\d{2,3}|\b(?:pulse|heart rate|temperature|respirations)\b\W{0,3}(?:is |of |was )?\d{2,3}", 1.5),
    TypeSign(NOTE, "doses", "mg, mcg, unit", rf"\b{_NUMBER}\s*(?:mg|mcg|units?)\b[^.\n]{{0,25}}\b(?:daily|bid|tid|qid|q\.?d\.?|b\.i\.d|p\.?o\.?|qhs|nightly|twice|every|once|as needed|prn)\b", 1.2),
    TypeSign(NOTE, "a patient's story", "denies, report, state, present, complain, notes, was seen, returns, admits, comes, came, spoke, is here", r"\b(?:patient|he|she|mother|father)\s+(?:\w+\s+)?(?:denies|reports?|states?|presents?|presented|complains?|notes|was seen|returns|admits|comes|came|spoke|is here)\b", 1.2),
    TypeSign(NOTE, "ages in words", "old", r"\b\d{1,3}[- ](?:year|month|week|day)s?[- ]old\b", 0.7, is_in_reports=True),
    TypeSign(NOTE, "what the writer does next", "discussed, recommend, examined, reviewed, will, have, believe, advised, explained, think, saw, appreciate, ask, told, plan", r"\b(?:I|we)\s+(?:\w+\s+)?(?:discussed|recommend\w*|examined|reviewed|will|have|believe|advised|explained|think|saw|appreciate|ask|asked|told|plan)\b", 1.0),
    TypeSign(NOTE, "follow-up plans", "follow, plan, assessment", r"\bfollow[- ]?up\b[^.\n]{0,40}\b(?:in|with|week|month|day)|\b(?:plan|assessment)\s*:", 1.0),
    TypeSign(NOTE, "histories and examinations", "systems, history, physical, complaint", r"\b(?:review of systems|past (?:medical|surgical) history|social history|family history|physical exam\w*|chief complaint)\b", 1.0),
    TypeSign(NOTE, "steps of an operation", "prepped, incision, anesthesia, blood loss, was ", r"\b(?:prepped and draped|incision|anesthesia|estimated blood loss|was (?:closed|sutured|irrigated|intubated|extubated))\b", 1.2),
    TypeSign(NOTE, "what people ask, feel and are told", "ask, wish, want, agree, understand, felt, feels, would like, was , improved, will", r"\b(?:she|he|they|(?:the )?patient|mother|father|family|wife|husband|daughter|son) (?:asked|asks|wishes|wants|wanted|agrees|agreed|understands|feels|felt|would like|was told|was advised|was seen|was given|improved|will (?:be|see|return|follow))\b", 1.0),
    TypeSign(NOTE, "words of a talk with a therapist", "session, affect, mood, coping, homework, anxi", r"\b(?:(?:therapy|counsel?ling|individual|group) session|session (?:number )?\d+|mood|affect|coping|homework|anxious|anxiety)\b", 1.0),
    TypeSign(NOTE, "titles of notes", "note, summary, report, letter", r"^[^\w\n]*(?:progress|discharge|(?:genetic )?counsel?ling|consult(?:ation)?|office visit|clinic|emergency (?:department|room)|tumou?r board|nursing|operative|admission|follow-?up|telephone) (?:note|summary|report|letter)\b", 1.5),
    TypeSign(NOTE, "parts of a progress note", "subjective, objective, assessment, plan, disposition, course", r"^[^\S\n]*(?:SUBJECTIVE|OBJECTIVE|ASSESSMENT|PLAN|DISPOSITION|HOSPITAL COURSE)\s*[:.]", 1.0),
    TypeSign(NOTE, "letters", "dear, sincerely, thank you", r"^[^\S\n]*(?:dear\b|sincerely\b|thank you for (?:referring|asking|seeing))", 1.5, is_in_reports=True),
    TypeSign(OTHER, "result rows with reference ranges", "", rf"(?<![\d.]){_NUMBER}\s*[HL*]?\s+(?:[A-Za-z%/^µμ0-9³]*\s+)?\(?(?:{_NUMBER}\s*[-–]\s*{_NUMBER}|[<>]\s*{_NUMBER})", 1.2),
    TypeSign(OTHER, "routine analytes with values", "wbc, rbc, emoglobin, ematocrit, plt, platelet, mcv, glucose, sodium, potassium, chloride, creatinine, bun, alt, ast, cholesterol, tsh, hba1c, calcium, albumin, bilirubin", rf"\b(?:WBC|RBC|h(?:a)?emoglobin|h(?:a)?ematocrit|PLT|platelets?|MCV|glucose|sodium|potassium|chloride|creatinine|BUN|ALT|AST|cholesterol|TSH|HbA1c|calcium|albumin|bilirubin)\b[^.\n]{{0,12}}\s{_NUMBER}", 1.5),
    TypeSign(OTHER, "lines to fill in", "____, ........, ☐, □, ❑, [], [ ], ( ), (  ), (   )", r"_{4,}|\.{8,}|☐|□|❑|\[ ?\]|\( {1,3}\)", 1.2),
    TypeSign(OTHER, "consent and release wording", "i hereby, i also, i further, i author, i consent, i under, i agree, i acknow, i request, signature, revoke, guardian, representative", r"\bI (?:hereby |also |further )?(?:authorize|consent|understand|agree|acknowledge|request)\b|\bsignature of\b|\brevoke\b|\blegal (?:guardian|representative)\b", 1.5),
    TypeSign(OTHER, "rows of medicines", "mg, mcg, unit, meq, puff, drop", rf"^[^\S\n]*[A-Za-z][\w /-]{{2,40}}[\s,]{_NUMBER}\s?(?:mg|mcg|units?|mEq|puffs?|drops?)\b[^\n.;:]{{0,70}}$", 1.0),
    TypeSign(OTHER, "prescription wording", "refill, disp, sig:, sig :, rx", r"\b(?:refills?|dispense|disp)\b\W{0,3}#?\d+|^ *sig ?:|\bRx\b", 1.5),
    TypeSign(OTHER, "fax and billing wording", "pages, confidentiality, policy, subscriber, to:, from:, attn:, to :, from :, attn :", r"\bnumber of pages\b|\bpages? including\b|\bconfidentiality notice\b|\bpolicy (?:number|holder)\b|\bsubscriber\b|^ *(?:to|from|attn) ?:", 1.0),
)
# fmt: on

#: Maximum count of a sign, so that one repeated form cannot decide.
MAX_SIGN_COUNT = 4

#: Minimum lead in strength by which another type contradicts the claimed type.
CONTRADICTION_LEAD = 2.5

#: Minimum ratio of strengths at which another type contradicts the claimed type; the lead must be reached too.
CONTRADICTION_RATIO = 1.8


class SignMatch(NamedTuple):
    """Strongest sign of a type on some pages, with its first match as quote."""

    sign: TypeSign
    page: Page
    quote: str


class TypeSignStrengths:
    """Strength, from 0, of the text patterns of each type on some pages.

    It is 0 for a site's own type.
    """

    def __init__(self, counts_by_page: Iterable[Sequence[int]]) -> None:
        """Sum the counts of each of ``TYPE_SIGNS`` over the pages, one row per page."""
        self._sign_counts = [min(sum(column), MAX_SIGN_COUNT) for column in zip(*counts_by_page, strict=True)] or [
            0
        ] * len(TYPE_SIGNS)
        self._strengths = dict.fromkeys(FIVE_TYPES, 0.0)
        for sign, count in zip(TYPE_SIGNS, self._sign_counts, strict=True):
            self._strengths[sign.document_type] += count * sign.weight

    def __getitem__(self, kind: DocumentType) -> float:
        return self._strengths.get(kind, 0.0)

    @property
    def strongest_type(self) -> DocumentType | None:
        """Type with the strongest patterns; None if no pattern was found."""
        leading_type = max(self._strengths, key=lambda kind: self._strengths[kind])
        return leading_type if self._strengths[leading_type] else None

    def find_contradicting_type(self, claimed_type: DocumentType) -> DocumentType | None:
        """Return the type with clearly stronger patterns than the claimed type, or None."""
        leading_type = self.strongest_type
        if leading_type is None or leading_type is claimed_type:
            return None
        return (
            leading_type
            if self[leading_type]
            >= max(self[claimed_type] + CONTRADICTION_LEAD, CONTRADICTION_RATIO * self[claimed_type])
            else None
        )

    def find_strongest_sign_match(self, kind: DocumentType, pages: Sequence[Page]) -> SignMatch:
        """Find the type's strongest sign, and its first match on ``pages``.

        ``pages`` must be the pages that were counted. ValueError if no sign of the type matches.
        """
        weighted_signs = [
            (count * sign.weight, sign)
            for sign, count in zip(TYPE_SIGNS, self._sign_counts, strict=True)
            if sign.document_type is kind
        ]
        for strength, sign in sorted(weighted_signs, key=lambda weighted_sign: -weighted_sign[0]):
            for page in pages if strength else ():
                if match := sign.pattern.search(page.text):
                    return SignMatch(sign, page, match.group().strip())
        raise ValueError("these pages contain no phrase that is typical of the document type")


def lower_ascii(text: str) -> str:
    """Convert only ASCII letters to lower case, so that no character changes place."""
    return text.encode(errors="surrogatepass").lower().decode(errors="surrogatepass")


@cache_document_text(1024)  # several checks ask about the same pages
def count_type_signs(text: str) -> tuple[int, ...]:
    """Count each of ``TYPE_SIGNS`` in a text, at most ``MAX_SIGN_COUNT`` times."""
    lowercase_text = lower_ascii(text)
    return tuple(sign.count_matches(text, lowercase_text) for sign in TYPE_SIGNS)


def measure_type_signs_in_text(text: str) -> TypeSignStrengths:
    """Measure the strength of each type's signs in a text."""
    return TypeSignStrengths([count_type_signs(text)])


def measure_type_signs_on_pages(pages: Iterable[Page]) -> TypeSignStrengths:
    """Measure the strength of each type's signs on these pages together."""
    return TypeSignStrengths([count_type_signs(page.text) for page in pages])


class NoteAroundReport(NamedTuple):
    """A note around a report: strength of the note's patterns, and a quote."""

    strength: float
    quote: str
    """First match of a note's sign after the report."""


def find_note_around_report(text: str, report_type: DocumentType) -> NoteAroundReport | None:
    """Find patterns of a clinical note before and after the patterns of a report.

    None if the text has no sign of the report, or none of a note before or after it.
    """
    report_spans = [
        match.span()
        for sign in TYPE_SIGNS
        if sign.document_type is report_type
        for match in sign.pattern.finditer(text)
    ]
    if not report_spans:
        return None
    report_start, report_end = min(start for start, _ in report_spans), max(stop for _, stop in report_spans)
    strength, has_note_before, note_matches_after = 0.0, False, []
    for sign in TYPE_SIGNS:
        if sign.document_type is NOTE and not sign.is_in_reports:
            note_matches = [
                match
                for match in sign.pattern.finditer(text)
                if match.end() <= report_start or match.start() >= report_end
            ]
            sign_matches_after = [match for match in note_matches if match.start() >= report_end]
            strength += min(len(note_matches), MAX_SIGN_COUNT) * sign.weight
            has_note_before = has_note_before or len(sign_matches_after) < len(note_matches)
            note_matches_after += sign_matches_after
    if not (has_note_before and note_matches_after):
        return None
    return NoteAroundReport(strength, min(note_matches_after, key=lambda match: match.start()).group().strip())
