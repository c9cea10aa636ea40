"""What the text itself looks like, by other features than the classifier's words.

The embedded model's second opinion. It looks at the form of what stands there: variant notation, measurements in
three dimensions, result rows with reference ranges, doses, vital signs, lines to fill in. It shares no list with the
lexicon, or it would agree with each of its mistakes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from typing import NamedTuple

from evalkit.classification.findings import Finding, iter_segment_primary_types
from evalkit.classification.schema import (
    ClassificationOutput,
    DocumentType,
    Evidence,
)
from evalkit.documents.bundle import Block, DocumentBundle, Page
from evalkit.grounding.normalise import canonicalise
from evalkit.issue import IssueSeverity

MAJOR, MINOR = IssueSeverity.MAJOR, IssueSeverity.MINOR
NOTE, PATHOLOGY, GENOMIC, RADIOLOGY, OTHER = DocumentType


@dataclass(frozen=True)
class TypeSign:
    """A form that text of one type has."""

    document_type: DocumentType
    name: str
    """As the expert reads it, in the plural."""
    required_substrings: str
    """Parted by commas: of these small letters every place has some, so that most pages need not be searched; empty: search all."""
    expression: str
    weight: float = 1.0
    is_case_sensitive: bool = False
    is_in_reports: bool = False
    """Of a note's sign: reports begin or end with it as well, so that around a report it shows no note."""

    # Compiled when a text is searched: a program that searches none, as an expert's page, is half a megabyte smaller.
    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The expression, compiled."""
        return re.compile(self.expression, re.MULTILINE | (0 if self.is_case_sensitive else re.IGNORECASE))

    @cached_property
    def pattern_for_lowercase_text(self) -> re.Pattern[str] | None:
        """The same for small letters, where the case does not matter: searched several times as fast. None: it matters."""
        if self.is_case_sensitive:
            return None
        lowercase_expression = re.sub(
            r"\\.|[A-Z]", lambda match: match[0] if match[0][0] == "\\" else match[0].lower(), self.expression
        )
        return re.compile(lowercase_expression, re.MULTILINE)

    def count_matches(self, text: str, lowercase_text: str) -> int:
        """How often it is in the text, at most ``MAX_SIGN_COUNT`` times; ``lowercase_text``: the text in small letters."""
        if not any(substring in lowercase_text for substring in self.required_substrings.split(", ")):
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

MAX_SIGN_COUNT = 4
"""A sign counts at most so often: one repeated form cannot decide."""

CONTRADICTION_LEAD = 2.5
"""So much stronger another type must be to speak against a label ..."""

CONTRADICTION_RATIO = 1.8
"""... and so many times."""


class SignMatch(NamedTuple):
    """The weightiest sign of a type on some pages, and the first words that show it."""

    sign: TypeSign
    page: Page
    quote: str


class TypeSignStrengths:
    """How strongly the forms of some pages speak for each type, from 0."""

    def __init__(self, counts_by_page: Iterable[Sequence[int]]) -> None:
        """``counts_by_page``: of each page, how often it has each of ``TYPE_SIGNS``."""
        self._sign_counts = [min(sum(column), MAX_SIGN_COUNT) for column in zip(*counts_by_page, strict=True)] or [
            0
        ] * len(TYPE_SIGNS)
        self._strengths = dict.fromkeys(DocumentType, 0.0)
        for sign, count in zip(TYPE_SIGNS, self._sign_counts, strict=True):
            self._strengths[sign.document_type] += count * sign.weight

    def __getitem__(self, kind: DocumentType) -> float:
        return self._strengths[kind]

    @property
    def strongest_type(self) -> DocumentType | None:
        """The type that most speaks for; None where nothing speaks for any."""
        leading_type = max(self._strengths, key=lambda kind: self._strengths[kind])
        return leading_type if self._strengths[leading_type] else None

    def find_contradicting_type(self, claimed_type: DocumentType) -> DocumentType | None:
        """The type that the text has the form of instead of this one, if any."""
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
        """What on these pages, which the forms are of, speaks most for a type. ValueError where nothing does."""
        weighted_signs = [
            (count * sign.weight, sign)
            for sign, count in zip(TYPE_SIGNS, self._sign_counts, strict=True)
            if sign.document_type is kind
        ]
        for strength, sign in sorted(weighted_signs, key=lambda weighted_sign: -weighted_sign[0]):
            for page in pages if strength else ():
                if match := sign.pattern.search(page.text):
                    return SignMatch(sign, page, match.group().strip())
        raise ValueError("no sign of that type stands on these pages")


def lower_ascii(text: str) -> str:
    """Make ASCII letters small and leave all others, so that nothing moves."""
    return text.encode(errors="surrogatepass").lower().decode(errors="surrogatepass")


@lru_cache(maxsize=1024)  # several checks ask about the same pages
def count_type_signs(text: str) -> tuple[int, ...]:
    """Count each of ``TYPE_SIGNS`` in a text, at most ``MAX_SIGN_COUNT`` times."""
    lowercase_text = lower_ascii(text)
    return tuple(sign.count_matches(text, lowercase_text) for sign in TYPE_SIGNS)


def measure_type_signs_in_text(text: str) -> TypeSignStrengths:
    """The forms of a piece of text."""
    return TypeSignStrengths([count_type_signs(text)])


def measure_type_signs_on_pages(pages: Iterable[Page]) -> TypeSignStrengths:
    """The forms of these pages together."""
    return TypeSignStrengths([count_type_signs(page.text) for page in pages])


class NoteAroundReport(NamedTuple):
    """What speaks of a note on both sides of a report."""

    strength: float
    quote: str
    """The first words of a note behind the report."""


def find_note_around_report(text: str, report_type: DocumentType) -> NoteAroundReport | None:
    """The note around the forms of a report, from the first of them to the last; None where not both sides have any."""
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
    if kind is not OTHER and not is_statement(evidence.snippet):
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
