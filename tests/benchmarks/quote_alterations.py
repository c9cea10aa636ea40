"""Alterations planted into real quotes, to measure a checker of quotes blindly.

:func:`plant` cuts quotes out of a document and changes the meaning of each in exactly one place; a checker must catch
all of them. :func:`noise` cuts quotes and returns them as a model does that quotes honestly: other spaces, dashes,
letter cases, misread letters in ordinary words; a checker must accept all of them. :func:`list_planted_pages` writes
documents of its own, because real ones hold too few of some kinds.

This is the blind examiner: nothing here is shared with the checker, neither code nor word lists. The lists say what
would matter to a clinician, not what some checker knows. In doubt a case is left out: an altered quote never stands in
the document itself (see ``_loose``), and a row's guard names the contexts in which its swap would leave the meaning as
it was or hit another sense of the word.

Everything is drawn from ``random.Random`` seeded with text, so the same bundle and seed give the same cases on every
machine and under every hash seed. Positions are characters of a paragraph, ends exclusive.
"""

from __future__ import annotations

import hashlib
import random
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from itertools import pairwise

from evalkit.documents.bundle import (
    Block,
    BlockType,
    DocumentBundle,
    LayoutMetadata,
    PackedWords,
    Page,
    PageStatus,
    WordPosition,
)


class Kind(StrEnum):
    """What was altered."""

    DIGIT = "digit"
    DECIMAL = "decimal"
    SIGN = "sign"
    DATE = "date"
    UNIT = "unit"
    NUMBER_WORD = "number_word"
    """Numbers in words, Roman stages, how often and by which way a drug is given."""
    COMPARATOR = "comparator"
    NEGATION = "negation"
    NEGATION_CUT = "negation_cut"
    """Nothing is changed, but the quote begins behind the negation that governs it."""
    MODAL = "modal"
    LATERALITY = "laterality"
    POLARITY = "polarity"
    PATHOGENICITY = "pathogenicity"
    GENE = "gene"
    VARIANT = "variant"
    NAME = "name"
    CONTENT_WORD = "content_word"
    INSERTED_WORD = "inserted_word"
    DELETED_WORD = "deleted_word"
    SWAPPED = "swapped"
    """Two words or values of the quote have changed places: ER positive, PR negative the other way round."""
    SPLICED = "spliced"
    """The beginning of one sentence with the end of another."""
    FABRICATED = "fabricated"


class NoiseKind(StrEnum):
    """How an honest quote differs from the page."""

    EXACT = "exact"
    WHITESPACE = "whitespace"
    HYPHEN = "hyphen"
    CASE = "case"
    LIGATURE = "ligature"
    QUOTES = "quotes"
    CHARACTERS = "characters"
    ENDING = "ending"
    """A full stop or dots added where the quote ends."""
    PARAGRAPH_JOIN = "paragraph_join"
    PAGE_JOIN = "page_join"


@dataclass(frozen=True)
class Planted:
    """A quote that must not be accepted."""

    kind: Kind
    genuine: str
    """As the page has it; for ``spliced`` its first half; empty for ``fabricated``."""
    quote: str
    page: int
    """The page it is claimed for, from 1."""
    change: str
    """``BRCA1 → BRCA2``."""


@dataclass(frozen=True)
class Noised:
    """A quote that must be accepted."""

    kind: NoiseKind
    genuine: str
    """As the page has it; joined by a line break where it crosses paragraphs or pages."""
    quote: str
    page: int
    """The page it begins on, from 1."""


@dataclass(frozen=True)
class _Edit:
    """One place of a paragraph and what may stand there instead; equal ends insert."""

    start: int
    end: int
    options: tuple[str, ...]


@dataclass(frozen=True)
class _Row:
    """One phrase, what may replace it ("" drops it), and the contexts in which it is left alone.

    ``unless`` is searched in the casefolded forty characters before, the phrase between « and », forty after.
    """

    options: tuple[str, ...]
    unless: str


_WORDS_MIN, _WORDS_MAX = 4, 40
_PER_PARAGRAPH = 2
_WINDOWS = 4
_CONTEXT = 40


# ------------------------------------------------------------------------------------------------- word lists


def _words(text: str) -> tuple[str, ...]:
    """The entries of a comma-separated list."""
    return tuple(entry.strip() for entry in text.replace("\n", " ").split(",") if entry.strip())


#: Words of which one can stand for another in a sentence but never means it. No synonyms and no broader terms in one
#: row, and nothing that is also an everyday word.
_GROUPS: Mapping[str, tuple[str, ...]] = {
    "organ": _words(
        "liver, lung, kidney, spleen, pancreas, stomach, colon, bladder, brain, thyroid, breast, prostate, ovary,"
        "uterus, cervix, esophagus, gallbladder, duodenum, adrenal gland, appendix, rectum, larynx, tongue, testis"
    ),
    "organs": _words("lungs, kidneys, ovaries, breasts, adrenal glands, tonsils, eyes, ears, hips, knees, shoulders"),
    "of_organ": _words(
        "hepatic, renal, pulmonary, cardiac, splenic, pancreatic, gastric, colonic, cerebral, ovarian, prostatic,"
        "uterine, esophageal, duodenal, rectal, laryngeal"
    ),
    "joint": _words("hip, knee, shoulder, ankle, wrist, elbow"),
    "bone": _words("femur, tibia, fibula, humerus, radius, ulna, pelvis, sternum, clavicle, scapula, skull, mandible"),
    "vessel": _words(
        "aorta, portal vein, pulmonary artery, carotid artery, femoral artery, renal artery, superior vena cava,"
        "subclavian vein, coronary artery, popliteal vein"
    ),
    "relative": _words(
        "mother, father, sister, brother, son, daughter, aunt, uncle, grandmother, grandfather, cousin, niece, nephew"
    ),
    "person": _words("man, woman, boy, girl"),
    "sex": _words("male, female"),
    "spouse": _words("wife, husband"),
    "drug": _words(
        "metformin, lisinopril, atorvastatin, amlodipine, metoprolol, losartan, omeprazole, levothyroxine, warfarin,"
        "apixaban, clopidogrel, furosemide, hydrochlorothiazide, gabapentin, sertraline, prednisone, albuterol,"
        "amoxicillin, azithromycin, ciprofloxacin, vancomycin, ceftriaxone, insulin glargine, heparin, enoxaparin,"
        "morphine, oxycodone, hydromorphone, fentanyl, ibuprofen, acetaminophen, naproxen, ondansetron, tamoxifen,"
        "letrozole, anastrozole, trastuzumab, pembrolizumab, nivolumab, bevacizumab, cetuximab, rituximab, olaparib,"
        "osimertinib, erlotinib, imatinib, vemurafenib, dabrafenib, cisplatin, carboplatin, oxaliplatin, paclitaxel,"
        "docetaxel, doxorubicin, cyclophosphamide, gemcitabine, capecitabine, methotrexate, lorazepam, haloperidol,"
        "quetiapine, lithium, digoxin, amiodarone, spironolactone, allopurinol, colchicine, pantoprazole, famotidine"
    ),
    "antigen": _words("penicillin, sulfa, latex, codeine, iodine, peanuts, shellfish"),
    "symptom": _words(
        "fever, cough, headache, nausea, vomiting, diarrhea, constipation, dizziness, rash, fatigue, dyspnea,"
        "hemoptysis, hematuria, dysuria, chest pain, abdominal pain, back pain, palpitations, syncope, jaundice,"
        "pruritus, dysphagia, hoarseness, weight loss, night sweats, edema, tinnitus, blurred vision, numbness"
    ),
    "disease": _words(
        "hypertension, diabetes mellitus, asthma, pneumonia, emphysema, tuberculosis, epilepsy, migraine, stroke,"
        "osteoporosis, rheumatoid arthritis, osteoarthritis, gout, cirrhosis, hepatitis C, pancreatitis, appendicitis,"
        "cholecystitis, diverticulitis, ulcerative colitis, pyelonephritis, cellulitis, sepsis, endocarditis,"
        "atrial fibrillation, heart failure, coronary artery disease, pulmonary embolism, pneumothorax,"
        "pleural effusion, deep vein thrombosis, hypothyroidism, anemia, depression, dementia, lupus, psoriasis,"
        "sarcoidosis, multiple sclerosis, sleep apnea, hydronephrosis, cardiomyopathy, meningitis, otitis media"
    ),
    "tumor": _words(
        "ductal carcinoma, lobular carcinoma, squamous cell carcinoma, adenocarcinoma, urothelial carcinoma,"
        "small cell carcinoma, renal cell carcinoma, hepatocellular carcinoma, melanoma, mesothelioma, glioblastoma,"
        "osteosarcoma, leiomyosarcoma, neuroblastoma, diffuse large B-cell lymphoma, multiple myeloma,"
        "acute myeloid leukemia, basal cell carcinoma, papillary thyroid carcinoma, meningioma, thymoma, seminoma"
    ),
    "cancer": _words(
        "breast cancer, lung cancer, colon cancer, prostate cancer, ovarian cancer, pancreatic cancer, bladder cancer,"
        "thyroid cancer, gastric cancer, cervical cancer, endometrial cancer, kidney cancer"
    ),
    "modality": _words(
        "computed tomography, magnetic resonance imaging, ultrasound, mammography, scintigraphy, fluoroscopy,"
        "positron emission tomography, radiography, angiography"
    ),
    "scan": _words("CT, MRI, PET"),
    "specimen": _words("saliva, urine, sputum, stool, cerebrospinal fluid, bone marrow, pleural fluid, hair"),
    "procedure": _words(
        "mastectomy, lumpectomy, colectomy, hysterectomy, cholecystectomy, appendectomy, nephrectomy, prostatectomy,"
        "thyroidectomy, lobectomy, splenectomy, tonsillectomy, colonoscopy, bronchoscopy, cystoscopy, thoracentesis,"
        "paracentesis, craniotomy, laminectomy, oophorectomy"
    ),
    "therapy": _words("chemotherapy, radiotherapy, immunotherapy, hemodialysis, physical therapy, psychotherapy"),
    "clinic": _words(
        "cardiology, oncology, neurology, urology, nephrology, gastroenterology, dermatology, ophthalmology,"
        "psychiatry, orthopedics, rheumatology, endocrinology, hematology, pulmonology"
    ),
    "analyte": _words(
        "sodium, potassium, chloride, calcium, magnesium, phosphorus, creatinine, glucose, bilirubin, albumin,"
        "hemoglobin, ferritin, lactate, troponin, ammonia, lipase, hematocrit, triglycerides, cholesterol"
    ),
    "marker": _words("CK7, CK20, TTF-1, GATA3, PAX8, CDX2, p40, p63, SOX10, S100, synaptophysin, chromogranin, Ki-67"),
    "receptor": _words("estrogen receptor, progesterone receptor, androgen receptor"),
    "cell": _words("neutrophils, lymphocytes, eosinophils, monocytes, basophils, platelets, erythrocytes"),
    "germ": _words(
        "Escherichia coli, Staphylococcus aureus, Klebsiella pneumoniae, Pseudomonas aeruginosa, Candida albicans,"
        "Streptococcus pneumoniae, Clostridioides difficile, Helicobacter pylori"
    ),
    "texture": _words("solid, cystic, necrotic, calcified"),
    "habit": _words("tobacco, alcohol, cocaine, cannabis, heroin"),
    "vaccine": _words("influenza, tetanus, measles, rubella, hepatitis B, varicella, polio, pertussis"),
}

_GENE_FAMILIES = (
    _words("BRCA1, BRCA2, PALB2, BARD1, BRIP1"),
    _words("MLH1, MLH3, MSH2, MSH3, MSH6, PMS1, PMS2, EPCAM"),
    _words("KRAS, NRAS, HRAS, BRAF, ARAF, RAF1, RIT1"),
    _words("EGFR, ERBB2, ERBB3, ERBB4"),
    _words("FGFR1, FGFR2, FGFR3, FGFR4"),
    _words("NTRK1, NTRK2, NTRK3"),
    _words("PIK3CA, PIK3CB, PIK3R1, PTEN, AKT1, AKT2, MTOR"),
    _words("CDKN2A, CDKN2B, CDKN1B, CDK4, CDK6, CDK12, CCND1, CCNE1"),
    _words("TP53, TP63, MDM2, MDM4, RB1"),
    _words("ATM, ATR, CHEK1, CHEK2, NBN, MRE11, FANCA, FANCC"),
    _words("RAD51C, RAD51D, RAD50"),
    _words("IDH1, IDH2"),
    _words("TSC1, TSC2, NF1, NF2, VHL, FH"),
    _words("SDHA, SDHB, SDHC, SDHD"),
    _words("SMAD2, SMAD3, SMAD4, BMPR1A, STK11, APC, MUTYH, CDH1"),
    _words("JAK1, JAK2, JAK3, STAT3, CALR, MPL"),
    _words("DNMT3A, DNMT3B, TET1, TET2, ASXL1, EZH2"),
    _words("FLT1, FLT3, FLT4, KDR, CSF1R, PDGFRA, PDGFRB"),
    _words("ALK, ROS1, RET, MET, KIT, LTK"),
    _words("BCL2, BCL6, MYC, MYCN, MYB"),
    _words("NOTCH1, NOTCH2, NOTCH3, FBXW7"),
    _words("ARID1A, ARID1B, ARID2, SMARCA4, SMARCB1, PBRM1, BAP1, KMT2A, KMT2D, SETD2"),
    _words("NPM1, RUNX1, CEBPA, GATA1, GATA2, WT1, ETV6"),
    _words("SF3B1, SRSF2, U2AF1, ZRSR2"),
    _words("MYH6, MYH7, MYBPC3, TNNT2, TNNI3, LMNA, SCN5A, KCNQ1, KCNH2, RYR1, RYR2"),
    _words("COL1A1, COL1A2, COL3A1, COL4A5, FBN1, FBN2, TGFBR1, TGFBR2"),
    _words("CYP2C9, CYP2C19, CYP2D6, CYP3A4, CYP3A5, DPYD, TPMT, UGT1A1, SLCO1B1, VKORC1"),
    _words("CFTR, HBB, HBA1, HBA2, G6PD, HFE, SMN1, SMN2, DMD, FMR1, HTT, PAH, GAA, GBA1, HEXA, LDLR, APOB, PCSK9"),
    _words("GJB2, GJB6, USH2A, MECP2, SCN1A, SCN2A, CDKL5, PKD1, PKD2, F2, F5, F8, F9"),
    _words("ESR1, ESR2, TERT, TMPRSS2, ERG, EWSR1, FOXA1, FOXL2, GNAS, GNAQ, GNA11, POLE, POLD1, HOXB13, MAX, MEN1"),
)
_GENES = tuple(dict.fromkeys(gene for family in _GENE_FAMILIES for gene in family))
#: Symbols that are also words or codes: taken for genes only where the text is not all in capitals.
_GENE_OR_WORD = frozenset({"MET", "KIT", "RET", "MAX", "ATM", "ATR", "F2", "F5", "F8", "F9", "ERG", "FH", "VHL"})

_SURNAMES = _words(
    "Abernathy, Bergstrom, Castellano, Delacroix, Ferreira, Goldstein, Haraldsen, Ibrahim, Kowalski, Lindqvist,"
    "Montgomery, Nakamura, Oyelaran, Pellegrino, Rasmussen, Sandoval, Thornbury, Vasquez, Whitfield, Zielinski"
)
_FIRST_NAMES = _words("Agnes, Bernard, Clara, Dmitri, Elena, Felix, Greta, Hassan, Ingrid, Jerome, Keiko, Lorenzo")

#: Words that carry no clinical decision: only these are misread by ``NoiseKind.CHARACTERS``.
_ORDINARY = frozenset(
    _words(
        "about, according, accordingly, addition, additional, address, addressed, again, along, although, among,"
        "another, appearance, appears, appeared, approximately, appointment, area, areas, arranged, around, article,"
        "asked, assessed, assessment, attached, based, because, become, begin, being, between, brought, business,"
        "called, carefully, cassette, cassettes, center, chart, children, clinic, clinical, collected,"
        "comment, comments, compared, comparison, concerning, condition, conditions, consists, consisting, contact,"
        "containing, contains, container, conversation, copies, correlation, course, current, currently, customary,"
        "department, described, describes, description, designated, details, developed, different, directly,"
        "disclosure, discussed, discussion, document, documents, documented, during, either, encounter, entire,"
        "entirely, estimated, evaluated, evaluation, everything, examination, examined, explained, family,"
        "following, follows, formalin, format, found, further, general, given, gross, grossly, guidance, health,"
        "history, hospital, however, illness, image, images, imaging, impression, include, includes, included,"
        "including, indicated, indication, information, initially, interpretation, interview, itself, labeled,"
        "labelled, laboratory, letter, limited, listed, material, matter, measured, measures, measuring, medical,"
        "medicine, meeting, member, method, methods, minutes, moment, morning, notes, noted, number, obtained,"
        "office, order, ordered, other, others, otherwise, outside, overall, parents, particular, patient, patients,"
        "performed, person, personal, physician, picture, place, placed, please, point, portion, practice, prepared,"
        "presentation, presented, previously, procedure, process, program, provide, provided, provider, purpose,"
        "questions, reason, receive, received, record, records, reference, referred, referral, regarding, region,"
        "related, release, remaining, report, reported, reports, representative, request, requested, response,"
        "result, results, return, returned, review, reviewed, sample, samples, section, sections, sectioned,"
        "separate, separately, sequence, sequenced, sequencing, service, services, setting, several, similar, since,"
        "specimen, specimens, started, statement, still, structure, structures, studies, study, submitted,"
        "subsequent, suggested, summary, support, surface, surgical, surrounding, system, taken, taking, technique,"
        "telephone, their, there, therefore, these, thing, things, those, though, through, throughout, tissue,"
        "today, together, treated, treatment, understand, using, usual, various, visit, visited, visualized,"
        "weighing, where, which, while, within, written, yesterday"
    )
)


# ------------------------------------------------------------------------------------------------- the phrases

#: ``old => new; new`` or ``one <> other`` in both directions, then ``:: guard``; "-" drops the words.
_PHRASES: Mapping[Kind, str] = {
    Kind.COMPARATOR: r"""
        less than <> greater than
        fewer than <> more than
        lower than <> higher than
        smaller than <> larger than
        at least <> at most
        no more than <> no less than
        not more than <> not less than
        up to => at least :: » (date|now|speed|the|his|her|you|and)
        above <> below :: (stated|described|indicated|listed|mentioned|noted|as|the|named|specified|line) «|» (named|mentioned|the knee|knee|listed|is|are|i\b|and|signed|information|facility|address|,|\.|\))
        exceeds => is below
        before <> after :: look\w* «|» (all|care)|here«
        prior to => after
        earlier than <> later than
        older than <> younger than
        longer than <> shorter than
        more often <> less often
        over => under :: » (?!\d)
        under => over :: » (?!\d)
        maximum <> minimum
        upper limit <> lower limit
        within => beyond :: » (?!\d|one|two|three|four|five|six|seven|eight|nine|ten|twelve)
        not to exceed => at least
        higher <> lower :: » (uter|outer|inner|segm|lobe|back|quadrant|extremit|limb|abdom|pole|leg|respir|gi |tract|lung|education|level of)
        increase <> decrease
    """,
    Kind.NEGATION: r"""
        no longer => still
        not yet => already
        no => - :: » ?(\.|#|:|,|;|\)|\d|/|\]|$|longer|matter|later|yes|more|less)|(serial|id|phone|fax|account|record|case|part|room|yes|or|/|policy|accession|bed|ref|mr|license|group)\W*«
        not => - :: » (only|just|limited|until|necessarily|to mention|uncommon|unusual|applicable|yet|signif|more|less|to exceed)|» ?(\.|,|\)|$)|\b(or|why|whether|if) «
        without <> with :: (consistent|compatible|associated|diagnosed|treated|along|compared|together|complies|comply|agree|communicate|contact|correlat\w*|familiar|deal\w*|start\w*|do|up|in|stained|presents?|presented|labell?ed|discussed|patient|inked|begin\w*|continued?|concern\w*) «|» (?!evidence|difficult|contrast|pain|fever|metasta|invasion|involvement|complication|symptom|residual|radiation|nausea|bleeding|extension|necrosis|hydroneph|deficit|abnormal|effusion|consolidation|assistance|insulin|oxygen|perforation|atypia|dysplasia|recurrence)
        denies => reports; admits
        denied => reported; admitted :: (was|were|been|be|is) «
        deny => report
        never => always; often :: » (smok|used|drink|drank|married|been)
        never smoked => smoked
        never smoker => current smoker
        nonsmoker => smoker
        non-smoker => smoker
        none => some :: » of the above
        neither => both :: ».*\bnor\b
        nobody => everybody
        nothing => something
        lacks => shows
        lacking => showing
        unable => able
        absence of <> presence of
        unremarkable => remarkable
        noncontributory => contributory
        nontender => tender
        non-tender => tender
        nondistended => distended
        non-distended => distended
        noninvasive => invasive :: » (venti|prenatal|test|screen|monit)
        non-small cell => small cell
        nonpalpable => palpable
        afebrile => febrile
        asymptomatic <> symptomatic
        anicteric => icteric
        atraumatic => traumatic
        atypical => typical
        atypia => normal cytology
        uninvolved => involved
        unaffected => affected
        unchanged => changed
        uncomplicated => complicated
        unresectable => resectable
        unspecified => specified
        uncontrolled => controlled
        unresponsive => responsive
        noncompliant => compliant
        nonobstructive => obstructive
        nondisplaced => displaced
        unilocular => multilocular
        free of => involved by :: (feel|call|charge|scent) «
        rules out => confirms
        rule out => confirm
        ruled out => confirmed
        excluded => confirmed :: be «
        didn't => did
        doesn't => does
        don't => do
        wasn't => was
        weren't => were
        isn't => is
        aren't => are
        hasn't => has
        haven't => have
        hadn't => had
        won't => will
        can't => can
        couldn't => could
        shouldn't => should
        wouldn't => would
        is => is not :: «[^»]*» (not|no|never|without|only|none|nothing|to be|there|it|he|she|that|unlikely|\W)|\b(no|not|nor|never|that|there|as|what|if|whether|nothing|none|neither) [^.]*«
        was => was not :: «[^»]*» (not|no|never|without|only|none|nothing|to be|there|it|he|she|\W)|\b(no|not|nor|never|that|there|as|what|if|whether|nothing|none|neither) [^.]*«
        are => are not :: «[^»]*» (not|no|never|without|only|none|nothing|to be|there|it|they|you|\W)|\b(no|not|nor|never|that|there|as|what|if|whether|nothing|none|neither) [^.]*«
        were => were not :: «[^»]*» (not|no|never|without|only|none|nothing|to be|there|it|they|\W)|\b(no|not|nor|never|that|there|as|what|if|whether|nothing|none|neither) [^.]*«
        has been => has not been :: \b(no|not|nor|never|that|if|whether|nothing|none|neither) [^.]*«|» (no|not)\b
        have been => have not been :: \b(no|not|nor|never|that|if|whether|nothing|none|neither) [^.]*«|» (no|not)\b
        there is => there is no :: » (no|not|a|an|also|the|only|still|one|\W)
        there are => there are no :: » (no|not|also|the|only|still|one|two|three|\d|\W)
        evidence of => no evidence of :: \b(no|not|without|any|nor|strong|the|of|little) «
        signs of => no signs of :: \b(no|not|without|any|nor|vital|the|of|show\w*|for) «
        shows => does not show :: \b(no|not|nor|which|that) [^.]*«|» no\b
        demonstrates => does not demonstrate :: \b(no|not|nor|which|that) [^.]*«|» no\b
        reveals => does not reveal :: \b(no|not|nor|which|that) [^.]*«|» no\b
        reports => denies :: (the|of|these|all|my|our|lab|pathology|medical|progress|radiology|test|and|previous|prior|these|imaging|such) «|» (no|that no|from|and|of|are|were|to|not)\b
        complains of => denies
        authorize => do not authorize :: (not|to) «
    """,
    Kind.MODAL: r"""
        may be => is; cannot be; must be :: » not|\bor «
        may => must; will; cannot :: (in|of|since|until|last|by|from|early|late|or)\W*«|» (\d|of |be\b|not|or |also|have|,)|[\d-]«
        might => must; will :: » not
        can => cannot :: » (of|not|be able|\d|you)|\b(a|the|if|as|you|i|where|how|what) «
        cannot => can; should
        could => must; will :: » (not|only|have)
        should => should not; need not; may :: » (not|have|you|only|any|i)\b
        must => may; need not :: » not
        will => will not; may :: » (not|only|be able|no)\b|\b(living|free|a|the|my|his|her) «
        would => would not :: » (not|rather|only|have been|like)\b
        possible => definite; confirmed :: (as|if|where|when|wherever|all|is it|best|of all) «|im«
        possibly => definitely
        probable => definite
        probably => definitely
        likely <> unlikely :: » (pathogenic|benign)|(more|most|less|very|highly|as) «
        suspicious for => diagnostic of
        suspected => confirmed; excluded
        suspect => have excluded
        suggests => proves; excludes
        suggest => prove; exclude
        suggestive of => diagnostic of
        suggesting => proving; excluding
        consistent with <> inconsistent with
        compatible with <> incompatible with
        concerning for => diagnostic of; not concerning for
        worrisome for => diagnostic of
        cannot be excluded => is excluded
        cannot be ruled out => is ruled out
        presumed => proven
        presumptive => definitive
        questionable => definite
        equivocal => unequivocal
        preliminary => final
        as needed => around the clock
        planned => completed; cancelled
        required <> optional
        recommended => contraindicated; declined
        recommend => advise against
        recommends => advises against
        offered => refused
        potential => established
        at risk for => diagnosed with
        at risk of => diagnosed with
        eligible <> ineligible
        voluntary => mandatory
        voluntarily => under protest
        favored => excluded
        considered => ruled out :: (be|is|are|not) «|» (to be|as|for|a|an)\b
    """,
    Kind.LATERALITY: r"""
        left <> right :: \b(he|she|they|who|has|had|have|was|is|be|been|patient|all|the) «(left|right)» (the|his|her|a|on|for|at|against|in|after|before|home|untreated|alone|to|without|over|with|as|is|by|open)\b|«right» (to|of|now|away|after|before|here|there|that|not)\b|\b(all|that's|it's|own|legal|your|no|any|just) «right»|«left» (the|his|her|home|alone|behind|unsigned|blank|untreated|against|ama|without)\b|is «|was «left»
        left-sided <> right-sided
        (l) <> (r)
        lt <> rt :: » ?\d
        bilateral <> unilateral
        bilaterally <> unilaterally
        ipsilateral <> contralateral
        medial <> lateral
        medially <> laterally
        proximal <> distal
        proximally <> distally
        anterior <> posterior :: » (probab|prob)
        anteriorly <> posteriorly
        superior <> inferior :: » (to (the )?(placebo|standard|other))
        superiorly <> inferiorly
        upper <> lower :: » (limit|dose|bound|end|case)
        dorsal <> ventral
        palmar <> dorsal
        cranial <> caudal :: » nerve
        inner <> outer
        superficial => deep
        deep => superficial :: » (breath|tendon|sleep|cut|level|learn|brain)|(knee|skin|take a|take|in)-? «
        intrahepatic <> extrahepatic
        intraperitoneal <> retroperitoneal
        supraclavicular <> infraclavicular
        apical <> basal :: » (cell|metab|gang|ins)
        frontal <> occipital :: » (view|and lat|proj)
        parietal <> temporal :: » (arter|pleura)
        cervical <> lumbar :: » (cancer|canal|os|intra|cytolog|smear|dyspl|biops|mass|carc|squam|lymph|aden)
        luq <> ruq
        llq <> rlq
        lul <> rul
        lll <> rll
        od <> os :: «os» |» (acid|level)
    """,
    Kind.POLARITY: r"""
        positive <> negative :: » (pressure|airway|pred|control)|(hiv|gram|pseudo|false)-«|(rh)\W*«|» (and|or|/) ?«?
        gram-positive <> gram-negative
        seropositive <> seronegative
        triple-negative => triple-positive
        present => absent :: » (illness|for|with|to|at|on|in the (office|room|clinic)|the|an?|address|day|time|pain|condition|when|during|during|complaint)|\b(at|of|the|his|her|to|was|who|were|may|not|past|and|also|up to|current|past or) «
        absent => present
        detected => not detected :: \b(no|not|none|never|nothing|without|if|been|be|any) [^.]*«
        not detected => detected
        identified => not identified :: \b(no|not|none|never|nothing|without|if|been|be|any|is|was) [^.]*«|de«|» (as|by|with|per|individual)
        not identified => identified
        not seen => seen
        not involved => involved
        increased <> decreased
        increasing <> decreasing
        increases <> decreases
        elevated => reduced; normal
        reduced => elevated :: (open) «|» (frac)
        reactive <> nonreactive :: c-«|» (protein|airway|lymph|hyper|change)
        normal => abnormal :: » (saline|sinus|range|limits|ref|sal|tissue|control|pressure)|ab«|\b(within|return to|ref\w*|the) «
        abnormal => normal :: \b(no|any) «
        within normal limits => outside normal limits; abnormal
        within normal range => outside normal range
        normal range => critical range :: (ref\w*|within) «
        stable <> unstable :: hemodynamically un«
        improved <> worsened
        improving <> worsening
        improvement <> deterioration
        better <> worse :: » (business|serve|help|under)
        regular <> irregular :: » (diet|insulin|visit|bas|follow|check|inter|med|ex)
        well differentiated <> poorly differentiated
        well-differentiated <> poorly-differentiated
        well controlled <> poorly controlled
        high-grade <> low-grade
        high grade <> low grade
        high risk <> low risk
        high-risk <> low-risk
        high => low :: » (school|res|chol|def|qual|power|protein|dens|flow|throughput|blood)|» ?-(?!grade|risk)|-«
        low => high :: » (back|fat|res|dens|power|flow|salt|sodium|dose|mid|air|trans|molec|anter)|» ?-(?!grade|risk)|-«|\b(too|follow|be) «
        acute <> chronic :: » (distress|care|kidney injury|myel|lymph|on chr|phase)|(and|on|or|/) ?«|» ?(and|or|on|/)
        mild => severe
        severe => mild
        minimal <> extensive :: » (change|resid)
        hypertension => hypotension
        hypotension => hypertension
        hyperglycemia <> hypoglycemia
        hyperkalemia <> hypokalemia
        hypernatremia <> hyponatremia
        hypercalcemia <> hypocalcemia
        hyperthyroidism <> hypothyroidism
        hyperechoic <> hypoechoic
        hyperintense <> hypointense
        hyperdense <> hypodense
        tachycardia <> bradycardia
        tachycardic <> bradycardic
        tachypneic => apneic
        weight loss <> weight gain
        resolved => persistent
        persistent => resolved
        complete <> incomplete :: » (blood|cbc|the|this|physical|a|list|meta|and|all|form|rev|your)
        completely => partially
        adequate <> inadequate
        sufficient <> insufficient
        sensitive <> resistant :: » (info|health|data|material|c-reac)|hyper«|(price|time|micro)-«
        susceptible <> resistant
        sensitivity <> resistance :: » (and|,)|vascular «
        intact => disrupted :: » (skin)? ?(dis)
        patent => occluded
        enlarged => atrophic
        displaced => nondisplaced :: non-?«
        hyperactive <> hypoactive
        healed => unhealed
        cured => uncured
        controlled => uncontrolled :: » (sub|study|trial|rel|drug)|(random\w*|placebo|well|poorly)[- ]«|un«
        obstructive => nonobstructive :: » (sleep|pulm|lung|airway)|non-?«
        alive <> deceased
        responded => failed to respond :: (not) «|» to (the|this|my|your) (request|question|quer)
        current smoker => former smoker
        former smoker => current smoker
        maternal <> paternal :: » (and|or|age|fetal)
        pregnant => not pregnant :: (not|if|are you|non) «
        single <> multiple :: » (sclerosis|myel|choice|end|sex|nuc|view|lumen|sign|daily|dose|medic|times|port)
        recurrent => resolved :: » (laryng)
        worsens <> improves
        yes => no :: » ?(/|or|no|□|\[|\()|(no|/|or|□|\[)\W*«
    """,
    Kind.PATHOGENICITY: r"""
        likely pathogenic => pathogenic; benign; likely benign :: » ?/|/ ?«|» (or|and)|(or|and) «
        likely benign => benign; pathogenic; likely pathogenic :: » ?/|/ ?«|» (or|and)|(or|and) «
        pathogenic => benign; likely pathogenic; of uncertain significance :: likely «|non-?«|» ?/|/ ?«|» (or|and)
        benign => malignant; likely benign :: likely «|» ?/|/ ?«|» (prostat|positional|parox|intracran|or|and|essential)
        malignant => benign :: » (hyper|mel)|» ?/|» (or|and)|non-?«
        malignancy => benign change :: » risk
        variant of uncertain significance => pathogenic variant; benign variant
        variants of uncertain significance => pathogenic variants; benign variants
        variant of unknown significance => pathogenic variant; benign variant
        uncertain significance => known pathogenicity :: of «
        uncertain clinical significance => established clinical significance
        unknown significance => known pathogenicity :: of «
        vus => pathogenic variant; benign variant
        pathogenicity => benignity
        carcinoma in situ => invasive carcinoma :: ductal «|lobular «
        in situ => invasive :: » (hyb|pcr)
        invasive carcinoma => carcinoma in situ
        invasive => noninvasive :: non-?«|» (vent|mon|proc)|lympho\w+ «
        adenocarcinoma => adenoma; hyperplasia
        adenoma => adenocarcinoma
        adenomas => adenocarcinomas
        tubular adenoma => tubular adenocarcinoma
        carcinoma => adenoma; dysplasia :: » in situ|invasive «|(ductal|lobular|squamous cell|basal cell|renal cell|hepatocellular|urothelial|small cell|papillary thyroid) «
        squamous cell carcinoma => squamous papilloma; squamous metaplasia
        basal cell carcinoma => seborrheic keratosis
        ductal carcinoma => ductal hyperplasia
        lobular carcinoma => lobular hyperplasia
        melanoma => nevus; melanosis
        nevus => melanoma
        sarcoma => fibroma
        leiomyosarcoma => leiomyoma
        leiomyoma => leiomyosarcoma
        leiomyomas => leiomyosarcomas
        lipoma => liposarcoma
        fibroadenoma => phyllodes tumor
        hemangioma => angiosarcoma
        lymphoma => lymphoid hyperplasia
        dysplasia => metaplasia; carcinoma :: fibro«|fibrous «
        metaplasia => dysplasia
        hyperplasia => neoplasia :: » of prost
        neoplastic => inflammatory :: non-?«
        metastatic => primary; reactive
        metastasis => granuloma
        metastases => granulomas; cysts
        metastatic disease => inflammatory disease
        cancer => cyst :: » (center|soc|inst|pre|reg|screen|gen|risk|syn|care|type|panel)
        cyst => tumor
        tumor suppressor => proto-oncogene
        tumor => cyst; scar :: » (board|marker|necro|suppr|mut|type|prop|norm|block|pro|sample)
        mutation => polymorphism
        mutations => polymorphisms
        deleterious => tolerated
        tier i => tier III
        tier ii => tier IV
    """,
    Kind.VARIANT: r"""
        heterozygous <> homozygous
        hemizygous => homozygous
        compound heterozygous => homozygous
        heterozygote <> homozygote
        germline <> somatic :: » ?(/|and|or)|(and|or|/) ?«
        missense => nonsense; frameshift
        nonsense => missense
        frameshift => missense; in-frame
        synonymous => nonsense :: non-?«
        splice site => promoter
        deletion => duplication; insertion :: » ?/|/ ?«|(and|or) «|» (and|or)
        duplication => deletion :: » ?/|/ ?«|(and|or) «|» (and|or)
        insertion => deletion :: » ?/|/ ?«|(and|or) «|» (and|or)
        insertions => duplications :: » ?/|/ ?«|(and|or) «|» (and|or)
        amplification => deletion :: pcr «
        amplified => deleted :: (pcr|was|were) «
        copy number gain <> copy number loss
        loss of function <> gain of function
        loss-of-function <> gain-of-function
        de novo => inherited
        autosomal dominant <> autosomal recessive
        x-linked => autosomal
        mosaic => constitutional
        wild type => mutant
        wild-type => mutant
        microsatellite stable => microsatellite instability-high
        msi-high => microsatellite stable
        in cis <> in trans
        fusion => deletion :: spinal «|cervical «|lumbar «
        hypermethylated => unmethylated
        carrier => non-carrier :: non-?«|(insurance|a mail) «
    """,
    Kind.NUMBER_WORD: r"""
        one => two; three :: (no|any|this|that|every|which|each|some|the) «|«[^»]*» (of the above|or more|another|can|who)|-«|» ?[-=]
        two => three; four :: -«
        three => two; four; five :: -«
        four => three; five :: -«
        five => four; six :: -«
        six => five; seven; eight :: -«
        seven => six; eight :: -«
        eight => seven; nine :: -«
        nine => eight; ten :: -«
        ten => nine; twelve :: -«
        twelve => ten; fourteen
        twenty => thirty
        thirty => forty
        first => second; third :: last|middle|» (name|aid|line|appoint|visit)|at «
        second => third; first :: » (opinion|s\b|hand)|per «|each «
        third => second; fourth :: » (party|part)|one[- ]«
        once => twice :: » (the|you|he|she|this|in a|i\b|we|again|it|signed|all)|at «
        twice => once; three times
        half => quarter; third :: » (life|sib)|and a «
        double => single :: » (vis|check|strand|blind)
        stage i => stage III; stage II
        stage ii => stage III; stage IV
        stage iii => stage II; stage IV
        stage iv => stage II; stage III
        stage iia => stage IIIA
        stage iiia => stage IIA
        grade i => grade III
        grade ii => grade III; grade I
        grade iii => grade I; grade II
        type i => type II :: » i
        type ii => type I
        daily => weekly; every other day; hourly :: twice «|three times «|once «|activit\w* of «|» (liv|act|life|rout)|four times «
        weekly => daily; monthly :: bi-?«|twice «
        monthly => weekly; yearly
        annually => monthly
        twice daily => once daily; four times daily
        once daily => twice daily
        three times daily => twice daily
        every other day => every day
        bid => tid; qid
        b.i.d. => t.i.d.
        tid => bid; qid
        t.i.d. => b.i.d.
        qid => bid
        qhs => qam
        at bedtime => every morning
        in the morning => in the evening :: \b(4|5|early) «
        by mouth => intravenously; per rectum
        orally => intravenously
        intravenously => orally
        intravenous => oral :: » (drug use|contrast|drug ab|user)
        subcutaneously => intravenously
        subcutaneous => intramuscular :: » (tis|fat|emph|nod|soft)
    """,
    Kind.DELETED_WORD: r"""
        family history of => history of
        family history is => history is
        history of => - :: (week|day|month|year|hour)s?['’]? «|(no|family|past|a|the|with|of|medical|prior|strong|any|long|his|her|personal|natural|significant|remote|denies) «|» (the|this|present|your)
        a history of => - :: » (present|this)
        risk of => - :: [\d%] «|chance|\b(the|a|at|increased|high|low|no|any|lifetime) «
        risk factors for => -
        possible => - :: » (ther|treat|option|side|cause|interact|strat|reason|way|use|expl)|(as|if|all|is|be|where) «|» ?[.,]
        probable => -
        suspected => - :: \b(is|was|are|were|be) «|» ?(to|by|of|that)
        suspicious for => -
        rule out => -
        mild => - :: » ?(,|to|and|or)|(and|to|or) «
        minimal => - :: » ?(,|to|and|or)|» change
        trace => - :: » (the|of|to|back)
        borderline => -
        partial => -
        partially => -
        former => - :: \bthe «
        prior => - :: » (?!stroke|myocard|infarct|surg|fracture|cancer|hemorr|chemo|pregnan|cesar|smok|alcohol|transpl)
        previous => - :: » (?!stroke|myocard|infarct|surg|fracture|cancer|hemorr|chemo|pregnan|cesar|smok|alcohol|transpl)
        no longer => -
        declined => -
        allergic to => -
        intolerant of => -
        refused => - :: » ?[,.]
        almost => - :: » (?!complet|normal|all|resolv|occlu|never|no)
        nearly => - :: » (?!complet|normal|all|resolv|occlu)
        rarely => -
        occasionally => -
        focal => - :: \b(no|not|without)\b[^.]*«|» ?(,|and|neuro)
        focally => -
        isolated => - :: (was|were|is|are|be|been) «|» (by|from)
        benign-appearing => -
        atypical => - :: » ?(,|and|or)
        low-grade => -
        in situ => - :: » hyb
        in remission => -
        status post removal of => -
        resolved => - :: (has|have|was|is|had|been) «|» ?[.,;]
        if indicated => -
        if symptoms worsen => -
        except => including :: » (as|for the|that)
        only => - :: \b(not|the|an?|if|read) «|» (?!one|two|three|four|\d|if|when|as needed|after|in the left|in the right)
    """,
    Kind.INSERTED_WORD: r"""
        history of => family history of; no history of :: (\ba|week|day|month|year|hour)s?['’]? «|\b(family|no|the|natural|without|denies|negative|maternal|paternal) [^.]*«|» present
        pain => severe pain; radiating pain; phantom pain :: (chest|back|abdominal|no|severe|any|joint|for|deny|denies|not|of|with|neck|knee|pelvic|leg|mild|chronic|acute|moderate) «|» (med|man|scale|clin|relief|control|score)
        mass => malignant mass; second mass; growing mass :: (body|muscle|lean|bone|no|malignant|or|,|second|ventricular) «|» (index|spec|eff)
        nodule => malignant nodule; second nodule :: (no|,|or|malignant|second) «
        lesion => malignant lesion; second lesion :: (no|,|or|malignant|second) «
        effusion => malignant effusion :: (no|or|malignant) «
        fracture => pathologic fracture; open fracture; old fracture :: (no|or|open|pathologic|old|closed|compression|prior|acute) «
        pneumonia => recurrent pneumonia; aspiration pneumonia; resolved pneumonia :: (no|aspiration|recurrent|resolved|lobar|interstitial|organizing) «
        lymphadenopathy => bulky lymphadenopathy; necrotic lymphadenopathy :: (no|or|bulky|cervical|axillary|any) «
        infection => recurrent infection; hospital-acquired infection :: (no|recurrent|tract|respiratory|or|any|wound|viral|acquired|ear|hiv) «|» (con|pre|rate)
        carcinoma => metastatic carcinoma; recurrent carcinoma :: (no|cell|ductal|lobular|metastatic|recurrent|invasive|of|or|thyroid|for|urothelial|infiltrating|endometrioid|serous) «
        adenocarcinoma => metastatic adenocarcinoma; recurrent adenocarcinoma :: (metastatic|recurrent|of|no|or|for) «
        melanoma => metastatic melanoma; recurrent melanoma :: (metastatic|recurrent|no|or|of) «
        cancer => metastatic cancer; recurrent cancer :: (breast|lung|colon|prostate|ovarian|pancreatic|bladder|thyroid|gastric|cervical|endometrial|kidney|metastatic|of|hereditary|skin|colorectal|the|no|or|for|national|american|uterine) «|» (cent|soc|inst|risk|gene|pre|syn|panel|screen|reg|net|care|type|treat)
        hypertension => uncontrolled hypertension; portal hypertension; resolved hypertension :: (pulmonary|portal|uncontrolled|no|resolved|essential|intracranial|controlled|benign|gestational) «
        diabetes mellitus => gestational diabetes mellitus; uncontrolled diabetes mellitus :: (gestational|uncontrolled|no|type \w+|\d) «
        asthma => severe asthma; childhood asthma :: (severe|childhood|no|mild|persistent|intermittent) «
        mutation => homozygous mutation; benign mutation; germline mutation :: (no|germline|somatic|homozygous|heterozygous|missense|point|frameshift|nonsense|benign) «|» (test|anal|pan|car)
        smoker => former smoker; heavy smoker :: (former|current|non|never|ex|heavy|no|non-)\W*«
        tenderness => rebound tenderness :: (no|rebound|or|any|costovertebral) «
        murmur => diastolic murmur :: (no|diastolic|systolic|or|,) «
        swelling => facial swelling; painless swelling :: (no|facial|or|,|of|joint|leg|ankle) «
        surgery => emergency surgery; palliative surgery; second surgery :: (no|emergency|for|department|plastic|general|of|orthopedic|thoracic|palliative|second|after|during) «|» (cent|dep)
        chemotherapy => palliative chemotherapy; prior chemotherapy :: (no|palliative|prior|adjuvant|neoadjuvant|or|of) «
    """,
    Kind.CONTENT_WORD: r"""
        started => stopped :: » (to|when|about|on)|(has|symptoms|pain|it|that|which) «
        start => stop :: (to|the|from|at) «|» (of|date|time|to|with)
        stopped => resumed
        continue => discontinue :: (to|will) «|» to
        continued => discontinued :: dis«|» to
        discontinue => continue
        discontinued => continued
        admitted => discharged :: » (to (using|drink|smok)|that)
        discharged => readmitted
        accepted => refused
        agreed => refused
        agrees => refuses
        consented => objected
        survived => died
        died => survived
        gained => lost
        lost => gained :: » (to follow|conscious|his|her|the)
        inpatient <> outpatient
        living <> deceased :: » (will|arr|sit|with|alone|room|exp|facil)|of «|daily «|assisted «
        biological <> adopted :: » (age|spec|male|female|sex)
        removed => left in place :: (was|were|been|be) «
        preserved => sacrificed
        retained => removed
        sharp => dull
        burning => crushing
        constant <> intermittent
        sudden <> gradual :: » (death|infant)
        clear => opaque :: » (to|that|margin|cell|of|all|from|the|for)|(is|it|not|un|crystal|made) «
        dry <> productive :: » (mouth|eye|skin|weight|ice|mucous)
        supine <> prone
        pre-operative <> post-operative
        preoperative <> postoperative
        premenopausal <> postmenopausal
        nulliparous <> multiparous
        singleton => twin
        cephalic <> breech
        vaginal delivery <> cesarean delivery
        primary care => intensive care
        whole body => half body
        employer => insurer
        pharmacist => dentist
        alone => with family
        married => divorced; widowed
        divorced => married
        widowed => married
        full code => do not resuscitate
        aspirin => clopidogrel; warfarin
        insulin => warfarin; prednisone :: » (glarg|lis|resis|dep|sens|deg|asp)
        tylenol => motrin
        lasix => lipitor
        smoking => drinking :: » (cess|his|stat)
    """,
}

#: After a number or a number word. A unit's options are other quantities, never another spelling of its own.
_UNITS = r"""
    mm => cm
    cm => mm
    cms => mms
    m => cm :: » ?(\d|\.|-|,|pm|am)
    km => m
    mg => mcg; g
    mcg => mg
    ug => mg
    µg => mg
    μg => mg
    g => mg; kg
    grams => milligrams; kilograms
    gram => milligram
    kg => g; lb
    kilograms => pounds
    lb => kg
    lbs => kg
    pounds => kilograms
    pound => kilogram
    ml => L
    cc => L
    dl => mL
    l => mL
    liters => milliliters
    liter => milliliter
    mg/dl => mmol/L; g/dL
    g/dl => mg/dL
    g/l => mg/L
    mg/l => g/L
    mmol/l => mg/dL; µmol/L
    µmol/l => mmol/L
    umol/l => mmol/L
    meq/l => mg/dL
    ng/ml => pg/mL; mcg/mL
    pg/ml => ng/mL
    mcg/ml => ng/mL
    ng/dl => mg/dL
    mg/kg => mcg/kg; g/kg
    mcg/kg => mg/kg
    u/l => kU/L
    iu/l => kIU/L
    units => mL; milliunits :: » of (blood|packed|pack|prbc)
    units/ml => mL
    mmhg => cmH2O
    mm hg => cm H2O
    mcg/hr => mg/hr
    ml/hr => L/hr
    l/min => mL/min
    ml/min => L/min
    mg/day => g/day; mg/week
    mg/week => mg/day
    meq => mg
    mmol => mol
    °c => °F
    °f => °C
    degrees celsius => degrees Fahrenheit
    degrees fahrenheit => degrees Celsius
    gy => cGy
    cgy => Gy
    msv => µSv
    mci => µCi
    mev => keV
    bp => kb :: (read|paired) «|» (\d|of|was)
    kb => Mb
    mb => kb
    % => -
    percent => -
    seconds => minutes
    second => minute
    minutes => hours; seconds
    minute => hour
    mins => hours
    min => hr
    hours => days; minutes
    hour => day
    hrs => days
    days => weeks; months
    day => week
    weeks => days; months
    week => month
    wks => months
    months => years; weeks
    month => year
    years => months; weeks
    year => month
    yrs => months
    year-old => month-old; week-old
    years old => months old
    month-old => year-old
    week-old => year-old
    yo => mo
    y/o => m/o
    pack-years => packs
    pack-year => pack
    packs => cigarettes
    pack => cigarette
    tablets => capsules
    fold => percent
    x => % :: » ?\d|\d x
"""

_NUMBER_WORDS = "one|two|three|four|five|six|seven|eight|nine|ten|twelve|several|few"

#: A quote that begins behind one of these has lost its negation.
_CUT_CUES = re.compile(
    r"\b(?:no (?:evidence|signs?|history|features|indication) of|no|not|without(?: evidence of)?|den(?:ies|ied)(?: any)?"
    r"|negative for|absence of|never|free of|rules? out|ruled out|unable to|failed to|lacks?|cannot|non|un)"
    r"(?:(?<=non)-|[^\S\n\t]+)(?=\w)",
    re.IGNORECASE,
)
_NOT_CUT = re.compile(
    r"(only|just|longer|more|less|matter|later|limited|necessarily|to mention|applicable|yet|until|uncommon|unusual"
    r"|in-?significant|without|un\w+|non\w+|absent|negative|\d)\b",
    re.IGNORECASE,
)

#: A quote that leaves one of these outside is not an honest quote of its sentence.
_TURNS = re.compile(
    r"\b(no|not|non|nor|none|never|neither|without|den(y|ies|ied|ying)|negative|absent|absence|lack\w*|free of|fail\w*"
    r"|unable|cannot|except\w*|exclud\w*|rul(e|es|ed|ing) out|unlikely|un\w{4,}|if|unless|whether|may|might|could|can"
    r"|should|would|must|possibl\w*|probabl\w*|likely|suspect\w*|suspici\w*|suggest\w*|question\w*|concern\w*|risk"
    r"|history|family|mother|father|versus|vs|resolved|former|prior|previous\w*|hardly|rarely|little|few|only|less|more"
    r"|instead|rather|but|however|although|declin\w*|refus\w*|stop\w*|discontinu\w*|decreas\w*|increas\w*|allerg\w*"
    r"|differential|r/o|neg|non\w{3,}|positive|reactive|detected|normal|abnormal|present|elevated|low|high|\w+n't)\b",
    re.IGNORECASE,
)


@cache
def _phrase_rows(kind: Kind) -> Mapping[str, _Row]:
    """The rows of that kind by casefolded phrase, groups and qualifiers included."""
    rows = dict(_parsed(_PHRASES[kind]))
    if kind is Kind.CONTENT_WORD:
        for name, group in _GROUPS.items():
            for word in group:
                others = tuple(other for other in group if other != word)
                rows.setdefault(word.casefold(), _Row(others, _GROUP_GUARDS.get(name, "")))
    return rows


#: Where a word of that group means something else.
_GROUP_GUARDS: Mapping[str, str] = {
    "organ": r"» (rate|failure|cancer|center|function)|\b(the american|vermiform) «",
    "cell": r"(large|b|t) «",
    "joint": r"(the) «» hop",
    "sex": r"» (and|or)|» ?/|(and|or|/) ?«",
    "bone": r"» of|(within a) «",
    "scan": r"-«|» ?-|/«|» ?/",
    "organs": r"(and|or) «» (and|or)|\b(and|or) «|» (and|or)|, «",
    "person": r"(hu|the) «» (of|in)",
    "marker": r"/«|» ?/",
    "texture": r"(and|or|/|,) ?«|» ?(and|or|/|,|food)",
    "vaccine": r"(haemophilus) «",
}


def _parsed(table: str) -> Iterator[tuple[str, _Row]]:
    """The rows of a table in the notation of ``_PHRASES``."""
    for line in filter(None, map(str.strip, table.splitlines())):
        swap, _, unless = line.partition(" :: ")
        if " <> " in swap:
            first, other = swap.split(" <> ")
            yield first.strip(), _Row((other.strip(),), unless)
            yield other.strip(), _Row((first.strip(),), unless)
        else:
            old, new = swap.split(" => ")
            yield (
                old.strip(),
                _Row(tuple("" if option.strip() == "-" else option.strip() for option in new.split(";")), unless),
            )


@cache
def _any_of(phrases: tuple[str, ...]) -> re.Pattern[str]:
    """Any of the phrases as whole words, the longest first, any space between their words."""
    longest_first = sorted(phrases, key=lambda phrase: (-len(phrase), phrase))
    body = "|".join(r"\s+".join(map(re.escape, phrase.split())) for phrase in longest_first)
    return re.compile(rf"(?<![\w-])(?:{body})(?![\w-]|['’]\w)", re.IGNORECASE)


def _context(text: str, start: int, end: int) -> tuple[str, str]:
    """What stands around a place, casefolded and with single spaces: before and after."""
    before, after = text[max(0, start - _CONTEXT) : start], text[end : end + _CONTEXT]
    return re.sub(r"\s+", " ", before.casefold()), re.sub(r"\s+", " ", after.casefold())


def _allowed(text: str, start: int, end: int, row: _Row) -> tuple[str, ...]:
    """The options of a row that change the meaning there: the guard is silent, the new word does not stand beside."""
    before, after = _context(text, start, end)
    old = text[start:end]
    if row.unless and _compiled(row.unless).search(f"{before}«{old.casefold()}»{after}"):
        return ()
    # "left and right" with one side exchanged says "right and right": nonsense rather than another meaning.
    near = f"{before[-25:]} {after[:25]}"
    return tuple(_cased(old, new) for new in row.options if not new or not _stands(new.casefold(), near))


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """The pattern; there are more guards than ``re`` keeps compiled."""
    return re.compile(pattern)


def _stands(word: str, text: str) -> bool:
    """Whether the word stands in the text as a whole word."""
    position = text.find(word)
    while position >= 0:
        if (
            not text[position - 1 : position].isalnum()
            and not text[position + len(word) : position + len(word) + 1].isalnum()
        ):
            return True
        position = text.find(word, position + 1)
    return False


def _cased(old: str, new: str) -> str:
    """The new words in the old ones' letter case; symbols such as CT and mL stay as they are written."""
    if old.isupper() and sum(map(str.isalpha, old)) > (1 if new.islower() else 4):
        return new.upper()
    if old[:1].isupper() and new.islower():
        return new[:1].upper() + new[1:]
    return new


def _phrase_edits(kind: Kind, text: str) -> Iterator[_Edit]:
    rows = _phrase_rows(kind)
    for match in _any_of(tuple(rows)).finditer(text):
        row = rows.get(" ".join(match.group().casefold().split()))
        options = _allowed(text, *match.span(), row) if row else ()
        if options:
            yield _Edit(*match.span(), options)


# ------------------------------------------------------------------------------------------- numbers and dates

_MONTHS = _words("January, February, March, April, May, June, July, August, September, October, November, December")
_SHORT_MONTHS = tuple(month[:3] for month in _MONTHS)
_WEEKDAYS = _words("Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday")
_MONTH = "|".join((*_MONTHS, "Sept", *_SHORT_MONTHS))
_SLASHED = re.compile(r"(?<![\d/.-])(\d{1,2})([/.-])(\d{1,2})\2((?:19|20)\d\d|\d\d)(?![\d/]|[.-]\d)")
_ISO = re.compile(r"(?<![\d-])((?:19|20)\d\d)-(\d\d)-(\d\d)(?!\d|-)")
_SPELLED = re.compile(
    rf"\b(?:(?P<before>\d{{1,2}})(?:st|nd|rd|th)?[\s-]+)?(?P<month>{_MONTH})\b\.?"
    r"(?:[\s-]+(?P<day>\d{1,2})(?:st|nd|rd|th)?(?!\d))?(?:,?[\s-]+(?P<year>(?:19|20)\d\d))?",
    re.IGNORECASE,
)
_YEAR = re.compile(
    r"(?<=\b)(?:in|since|of|until|from|by|year|early|late|during|before|after)\s+((?:19[3-9]|20[0-3])\d)\b(?![/-])",
    re.IGNORECASE,
)
_WEEKDAY = re.compile(rf"\b(?:{'|'.join(_WEEKDAYS)})\b", re.IGNORECASE)

_HGVS = re.compile(r"(?<![\w.])[cgmn]\.[-*]?\d[\w*+\->=]*[\w*=]")
_PROTEIN = re.compile(
    r"(?<![\w.])p\.\(?(?P<ref>[A-Z][a-z]{2}|[A-Z])(?P<at>\d+)(?P<alt>[A-Z][a-z]{2}|[A-Z*])?(?P<rest>\w*)"
)
_SHORT_PROTEIN = re.compile(
    r"(?<![\w.-])(?P<ref>[ACDEFGHIKLMNPQRSTVWY])(?P<at>\d{2,4})(?P<alt>[ACDEFGHIKLMNPQRSTVWY])(?![\w-])"
)
_RS = re.compile(r"\brs\d{3,}\b")
_BAND = re.compile(r"(?<![\w.])(?P<chr>[1-9]|1\d|2[0-2]|[XY])(?P<arm>[pq])(?P<at>[1-4]\d?)(?:\.\d+)?(?![\w])")
_ACCESSION = re.compile(r"\b(?:N[MPCGR]_|ENS[TPG])\d+")
_EXON = re.compile(r"\b(?:exons?|introns?|codons?)\s+(\d+)\b", re.IGNORECASE)
_TRANSLOCATION = re.compile(r"\b(?:t|inv|del|dup)\((\d+)(?:;(\d+))?\)")
_STAR = re.compile(r"(?<=\*)\d+(?=/|\b)(?:/\*\d+)?")
_AMINO_ACIDS = _words(
    "Ala, Arg, Asn, Asp, Cys, Gln, Glu, Gly, His, Ile, Leu, Lys, Met, Phe, Pro, Ser, Thr, Trp, Tyr, Val"
)
_BASES = "ACGT"

_GENE = re.compile(rf"(?<![\w-])(?:{'|'.join(sorted(_GENES, key=lambda gene: (-len(gene), gene)))})(?![\w/]|-\d)")
_NAMED = (_HGVS, _PROTEIN, _SHORT_PROTEIN, _RS, _BAND, _ACCESSION, _GENE, _SLASHED, _ISO, _SPELLED, _YEAR)
_MARKER_NUMBER = re.compile(
    r"(?:^|[.;:]\s*|\n)\(?\d{1,2}[.)](?!\d)|\b(?:page|pg\.?)\s*\d+(?:\s*of\s*\d+)?", re.IGNORECASE
)


def _other_digits(text: str, start: int, end: int) -> Iterator[_Edit]:
    """Each digit of text[start:end] exchanged; the first of several never becomes a zero."""
    for position in range(start, end):
        if not ("0" <= text[position] <= "9"):
            continue
        leads = not text[position - 1 : position].isdigit() and text[position + 1 : position + 2].isdigit()
        yield _Edit(
            position,
            position + 1,
            tuple(option for option in "0123456789" if option != text[position] and not (leads and option == "0")),
        )


def _covered(text: str, patterns: Iterable[re.Pattern[str]]) -> set[int]:
    return {position for pattern in patterns for match in pattern.finditer(text) for position in range(*match.span())}


def _digit_edits(text: str) -> Iterator[_Edit]:
    """Digits of values, stages and numbers; not of dates, genes and variants, which are kinds of their own."""
    taken = _covered(text, (*_NAMED, _MARKER_NUMBER))
    for edit in _other_digits(text, 0, len(text)):
        if edit.start not in taken:
            yield edit


_PLAIN_NUMBER = re.compile(
    r"(?<![\w.,/:#+−–-])(\d{1,3})(?:\.(\d{1,3}))?(?![\w/:]*\d|[.,]\d|[-–:/]|st\b|nd\b|rd\b|th\b|[A-Z])"
)


def _decimal_edits(text: str) -> Iterator[_Edit]:
    taken = _covered(text, (*_NAMED, _MARKER_NUMBER))
    for match in () if _CONTACT.search(text) else _PLAIN_NUMBER.finditer(text):
        if match.start() in taken:
            continue
        whole, part = match.group(1), match.group(2) or ""
        digits = whole + part
        moved = [
            f"{digits[:position] or '0'}.{digits[position:]}"
            for position in range(len(digits))
            if position != len(whole)
        ]
        moved += [f".0{part}"] if whole == "0" and part else []
        moved += [digits.lstrip("0") or "0"] if part else [f"{whole}0"]
        options = tuple(
            option for option in moved if float(option) != float(match.group()) and not re.match(r"0\d", option)
        )
        if options:
            yield _Edit(*match.span(), options)


#: Lines of addresses and telephone numbers: a moved point or a sign says nothing there.
_CONTACT = re.compile(
    r"\b(tel|fax|phone|p\.?o\.? box|str|ave|street|road|suite|contact)\b|\(\d{3}\)\s*\d{3}", re.IGNORECASE
)
_SIGNED = re.compile(r"(?<=[\s(:=])(?P<sign>[-−–+])(?=\.?\d)(?!\d{4})")


def _sign_edits(text: str) -> Iterator[_Edit]:
    for match in _SIGNED.finditer(text):
        before = text[: match.start()].rsplit("\n", 1)[-1]
        # "5 -10" is a range, and a dash that opens a line is a bullet.
        if not before.strip() or re.search(r"\d\s+$", before) or _CONTACT.search(text):
            continue
        yield _Edit(*match.span(), ("-",) if match["sign"] == "+" else ("", "+"))


def _padded(numbers: Iterable[int], like: str) -> tuple[str, ...]:
    """The numbers but that one, as wide as it is written."""
    return tuple(f"{number:0{len(like)}d}" for number in numbers if number != int(like))


def _years(year: str) -> tuple[str, ...]:
    return tuple(f"{int(year) + step:0{len(year)}d}" for step in (-10, -2, -1, 1, 2, 10) if int(year) + step >= 0)


def _slashed_edits(match: re.Match[str]) -> Iterator[_Edit]:
    """Of 03/25/2011. Which of the two is the month stays open: each keeps to what a month could be, or to what it was."""
    first, other = int(match[1]), int(match[3])
    if min(first, other) < 1 or max(first, other) > 31 or min(first, other) > 12:
        return
    if match[2] == "." and len(match[4]) < 4:  # a section number
        return
    for group in (1, 3):
        span = range(1, 13) if int(match[group]) <= 12 else range(13, 29)
        yield _Edit(*match.span(group), _padded(span, match[group]))
    yield _Edit(*match.span(4), _years(match[4]))


def _spelled_edits(match: re.Match[str]) -> Iterator[_Edit]:
    """Of March 25, 2011; a month alone could be a name or a verb."""
    if not (match["before"] or match["day"] or match["year"]):
        return
    yield _Edit(*match.span("month"), _other_months(match["month"]))
    for part in ("before", "day"):
        if match[part]:
            yield _Edit(*match.span(part), _padded(range(1, 29), match[part]))
    if match["year"]:
        yield _Edit(*match.span("year"), _years(match["year"]))


def _date_edits(text: str) -> Iterator[_Edit]:
    for match in _SLASHED.finditer(text):
        yield from _slashed_edits(match)
    for match in _ISO.finditer(text):
        yield _Edit(*match.span(1), _years(match[1]))
        yield _Edit(*match.span(2), _padded(range(1, 13), match[2]))
        yield _Edit(*match.span(3), _padded(range(1, 29), match[3]))
    for match in _SPELLED.finditer(text):
        yield from _spelled_edits(match)
    for match in _YEAR.finditer(text):
        yield _Edit(*match.span(1), _years(match[1]))
    for match in _WEEKDAY.finditer(text):
        others = tuple(_cased(match.group(), day) for day in _WEEKDAYS if day.casefold() != match.group().casefold())
        yield _Edit(*match.span(), others)


def _other_months(month: str) -> tuple[str, ...]:
    """The other months, long or short as that one is; May, which is both, becomes a long one."""
    names = _SHORT_MONTHS if month.casefold() == "sept" or (len(month) == 3 and month.casefold() != "may") else _MONTHS
    return tuple(_cased(month, name) for name in names if name.casefold()[:3] != month.casefold()[:3])


@cache
def _unit_rows() -> tuple[Mapping[str, _Row], re.Pattern[str]]:
    rows = dict(_parsed(_UNITS))
    longest_first = sorted(rows, key=lambda unit: (-len(unit), unit))
    body = "|".join(re.escape(unit) for unit in longest_first)
    return rows, re.compile(
        rf"(?:(?<=[\d.])|(?<=\d )|(?<=\d-)|(?:\b(?:{_NUMBER_WORDS})[\s-]))\s?(?P<unit>{body})(?![\w/^²³]|-(?!old))",
        re.I,
    )


def _unit_edits(text: str) -> Iterator[_Edit]:
    rows, pattern = _unit_rows()
    for match in pattern.finditer(text):
        unit = match["unit"]
        # A capital M, G or B is a unit of something else, and "5 l" in small print a misread one.
        if len(unit) == 1 and unit not in {"g", "L", "l", "m", "%", "x"}:
            continue
        options = _allowed(text, *match.span("unit"), rows[unit.casefold()])
        if options:
            yield _Edit(*match.span("unit"), options)


_COMPARED = re.compile(r"(?<![\w<>=-])(?P<sign><=|>=|[<>≤≥])(?=\s?\d)")
_OPPOSITE = {"<": (">",), ">": ("<",), "≤": ("≥",), "≥": ("≤",), "<=": (">=",), ">=": ("<=",)}


def _comparator_edits(text: str) -> Iterator[_Edit]:
    yield from (_Edit(*match.span(), _OPPOSITE[match["sign"]]) for match in _COMPARED.finditer(text))
    yield from _phrase_edits(Kind.COMPARATOR, text)


# ------------------------------------------------------------------------------------------ genes and variants


@cache
def _gene_options(gene: str) -> tuple[str, ...]:
    """Siblings first, then the symbol with a letter lost or a digit too many, then a stranger."""
    siblings = [other for family in _GENE_FAMILIES if gene in family for other in family if other != gene]
    # Longer and shorter symbols only where a number tells the members of a family apart: others could be aliases.
    ends_in_digit = gene[-1].isdigit() and len(gene) > 3
    bent = [f"{gene}{gene[-1]}", gene[:-1]] if ends_in_digit and not gene[:-1][-1].isdigit() else []
    stranger = _GENES[(_GENES.index(gene) * 37 + 11) % len(_GENES)]
    return tuple(dict.fromkeys(option for option in (*siblings, *bent, stranger) if option != gene))


def _gene_edits(text: str) -> Iterator[_Edit]:
    shouting = text.isupper()
    for match in _GENE.finditer(text):
        if match.group() in _GENE_OR_WORD and shouting:
            continue
        options = tuple(option for option in _gene_options(match.group()) if not _stands(option, text))
        if options:
            yield _Edit(*match.span(), options)


_EVENTS = {"del": ("dup", "ins"), "dup": ("del",), "ins": ("del", "dup"), "inv": ("del",)}


def _hgvs_edits(text: str, start: int, end: int) -> Iterator[_Edit]:
    """Of c.5266dupC: a digit, the event, a base."""
    yield from _other_digits(text, start, end)
    for match in re.finditer(r"del|dup|ins|inv", text[start:end]):
        if text[start:end].find("delins") == match.start() or text[start:end].find("delins") == match.start() - 3 >= 0:
            continue
        yield _Edit(start + match.start(), start + match.end(), _EVENTS[match.group()])
    for match in re.finditer(r"([ACGT])>([ACGT])", text[start:end]):
        position = start + match.end() - 1
        yield _Edit(position, position + 1, tuple(base for base in _BASES if base not in match.group()))
    for match in re.finditer(r"(?<=dup|del|ins)[ACGT]$", text[start:end]):
        position = start + match.start()
        yield _Edit(position, position + 1, tuple(base for base in _BASES if base != match.group()))


def _protein_edits(text: str, match: re.Match[str]) -> Iterator[_Edit]:
    """Of p.Val600Glu or V600E: a digit, an amino acid."""
    yield from _other_digits(text, *match.span("at"))
    for part in ("ref", "alt"):
        acid = match[part] or "*"
        acids = _AMINO_ACIDS if len(acid) > 1 else tuple("ACDEFGHIKLMNPQRSTVWY")
        if acid in acids:
            yield _Edit(*match.span(part), tuple(option for option in acids if option not in match.group()))


def _band_edits(text: str, match: re.Match[str]) -> Iterator[_Edit]:
    """Of 17q21: the arm, the band, the chromosome."""
    yield _Edit(*match.span("arm"), ("q" if match["arm"] == "p" else "p",))
    yield from _other_digits(text, *match.span("at"))
    yield _Edit(*match.span("chr"), _chromosomes(match["chr"]))


def _chromosomes(*taken: str) -> tuple[str, ...]:
    return tuple(
        option for option in _words("1, 3, 4, 7, 8, 9, 11, 12, 13, 14, 17, 18, 21, 22, X") if option not in taken
    )


def _variant_edits(text: str) -> Iterator[_Edit]:
    for match in _HGVS.finditer(text):
        yield from _hgvs_edits(text, *match.span())
    for match in (*_PROTEIN.finditer(text), *_SHORT_PROTEIN.finditer(text)):
        yield from _protein_edits(text, match)
    for match in (*_RS.finditer(text), *_ACCESSION.finditer(text), *_STAR.finditer(text)):
        yield from _other_digits(text, *match.span())
    for match in _BAND.finditer(text):
        yield from _band_edits(text, match)
    for match in _EXON.finditer(text):
        yield _Edit(*match.span(1), tuple(str(int(match[1]) + step) for step in (-1, 1, 2, 10) if int(match[1]) + step))
    for match in _TRANSLOCATION.finditer(text):
        for group in (1, 2):
            if match[group]:
                yield _Edit(*match.span(group), _chromosomes(match[1], match[2]))
    yield from _phrase_edits(Kind.VARIANT, text)


# ---------------------------------------------------------------------------------------- names, swaps, splices

_PERSON = re.compile(
    r"(?:(?:\b(?:Patient(?: Name)?|Name|Physician|Provider|Signed by|Attending|Ordered by|Surgeon|Pathologist"
    r"|Radiologist|Referring)\s*:\s*(?:Dr\.?\s+)?)|\b(?:Dr|Mr|Mrs|Ms)\.?\s+)"
    r"(?P<name>[A-Z][a-z]{2,})(?=[\s,.;)]|$)(?:,?\s+(?P<more>[A-Z][a-z]{2,})(?=[\s,.;)]|$))?"
)
_NO_NAME = frozenset(
    _words(
        "Name, Date, Address, Information, Phone, Signature, Status, History, Care, Age, Sex, Gender, Number, Medical,"
        "Not, None, The, See, Unknown, Patient, Physician, Doctor, Home, Birth, Hospital, Clinic, Center, Signed,"
        "Specimen, Report, Test, City, General, Insurance, Department, University, Health, Saint, Mercy, Regional,"
        "Accession, Location, Account, Service, Room, Electronically, Order, Visit, Admission, Collected, Received"
    )
)


def _name_edits(text: str) -> Iterator[_Edit]:
    for match in _PERSON.finditer(text):
        for part in ("name", "more"):
            word = match[part]
            if word and word not in _NO_NAME and match["name"] not in _NO_NAME:
                # A surname may stand first or last: a rarer surname in either place is another person.
                yield _Edit(*match.span(part), tuple(option for option in _SURNAMES if option not in text))


_ANSWERED = re.compile(
    r"\b(?P<what>[A-Za-z][\w-]{1,})(?P<link>\s+(?:is|was)\s+|\s+|:\s*)(?P<answer>not detected|detected|positive|negative"
    r"|present|absent|normal|abnormal|elevated|low|high)\b(?!-)",
    re.IGNORECASE,
)
_MEASURED = re.compile(
    r"\b(?P<what>[A-Za-z][A-Za-z-]{2,})(?P<link>(?:\s+(?:is|was|of))?\s+|:\s*)(?P<answer>\d+(?:\.\d+)?)(?![\w/.:-]*\d|[-–:/x×])"
)
_SIDED = re.compile(r"\b(?P<answer>left|right)\s+(?P<what>[a-z]+(?:\s+[a-z]+)?)", re.IGNORECASE)
_NO_LABEL = frozenset(
    _words(
        "and, to, or, than, the, about, with, by, at, in, on, from, over, under, until, since, between, no, not, for,"
        "age, aged, approximately, times, mostly, is, was, are, were, both, either, false, tested, section, chapter,"
        "item, page, form, level, room, suite, part, box, street, day, week, hpv, another, other, plus, minus"
    )
) | frozenset(month.casefold() for month in (*_MONTHS, *_SHORT_MONTHS))


def _swap_edits(text: str) -> Iterator[_Edit]:
    """Two answers, two values or two sides that change places; their subjects must differ, or nothing would change."""
    taken = _covered(text, (_SLASHED, _ISO, _SPELLED, _YEAR, _MARKER_NUMBER))
    for pattern in (_ANSWERED, _MEASURED, _SIDED):
        matches = [
            match
            for match in pattern.finditer(text)
            if match["what"].casefold() not in _NO_LABEL and match.start("answer") not in taken
        ]
        for first, other in pairwise(matches):
            between = text[first.end("answer") : other.start("answer")]
            same = first["answer"].casefold() == other["answer"].casefold()
            if same or first["what"].casefold() == other["what"].casefold() or not 1 <= len(between.split()) <= 14:
                continue
            if pattern is _MEASURED and float(first["answer"]) == float(other["answer"]):
                continue
            if pattern is _SIDED and (first["what"].split()[0].casefold() == other["what"].split()[0].casefold()):
                continue
            swapped = _cased(first["answer"], other["answer"]) + between + _cased(other["answer"], first["answer"])
            yield _Edit(first.start("answer"), other.end("answer"), (swapped,))


_FINDERS: Mapping[Kind, Callable[[str], Iterator[_Edit]]] = {
    Kind.DIGIT: _digit_edits,
    Kind.DECIMAL: _decimal_edits,
    Kind.SIGN: _sign_edits,
    Kind.DATE: _date_edits,
    Kind.UNIT: _unit_edits,
    Kind.NUMBER_WORD: lambda text: _phrase_edits(Kind.NUMBER_WORD, text),
    Kind.COMPARATOR: _comparator_edits,
    Kind.NEGATION: lambda text: _phrase_edits(Kind.NEGATION, text),
    Kind.MODAL: lambda text: _phrase_edits(Kind.MODAL, text),
    Kind.LATERALITY: lambda text: _phrase_edits(Kind.LATERALITY, text),
    Kind.POLARITY: lambda text: _phrase_edits(Kind.POLARITY, text),
    Kind.PATHOGENICITY: lambda text: _phrase_edits(Kind.PATHOGENICITY, text),
    Kind.GENE: _gene_edits,
    Kind.VARIANT: _variant_edits,
    Kind.NAME: _name_edits,
    Kind.CONTENT_WORD: lambda text: _phrase_edits(Kind.CONTENT_WORD, text),
    Kind.INSERTED_WORD: lambda text: _phrase_edits(Kind.INSERTED_WORD, text),
    Kind.DELETED_WORD: lambda text: _phrase_edits(Kind.DELETED_WORD, text),
    Kind.SWAPPED: _swap_edits,
}


# --------------------------------------------------------------------------------------------- quotes and pages

_TOKEN = re.compile(r"\S+")
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+(?=[^a-z])|\n")
_DASHES = dict.fromkeys(map(ord, "‐‑‒–—−―"), "-")


def _dice(*seeds: object) -> random.Random:
    """Randomness that depends on these alone: text seeds are hashed the same way by every Python."""
    return random.Random(":".join(map(str, seeds)))


def _loose(text: str) -> str:
    """A form in which two texts are equal if they could be read as the same words.

    Letters casefolded, digits and signs of comparison stay; points, commas, slashes and colons stay beside digits,
    signs before numbers; everything else goes, spaces and hyphens too. Coarser than any honest reader: a case whose
    altered quote is in the document by this form is left out.
    """
    text = unicodedata.normalize("NFKC", text).casefold().translate(_DASHES)
    text = re.sub(r"(?<![^\s(:=])-(?=\.?\d)", "~", text)
    text = re.sub(r"\.(?=\d)|(?<=\d)[,/:](?=\d)", lambda match: chr(ord(match.group()) + 0xE000), text)
    return "".join(
        character for character in text if character.isalnum() or character in "<>≤≥=+%±°*~" or character >= "\ue000"
    )


@dataclass(frozen=True)
class _Passage:
    """One paragraph a person can see and a model would quote."""

    page: int
    number: int
    """Its place among the page's paragraphs, from 0."""
    text: str
    before: str
    """The paragraph above it on the page, or ""."""


def _passages(bundle: DocumentBundle) -> Iterator[_Passage]:
    for page in bundle.pages:
        before = ""
        for number, (text, block) in enumerate(zip(page.paragraphs, page.visible_blocks, strict=True)):
            if not block.furniture:
                yield _Passage(page.page_num, number, text, before)
                before = text


def _whole(bundle: DocumentBundle) -> str:
    """All that the document says, hidden words too, in the loose form."""
    hidden = (block.text for page in bundle.pages for block in page.blocks if block.hidden)
    return "".join(map(_loose, (*(page.text for page in bundle.pages), *hidden)))


def _window(text: str, start: int, end: int, dice: random.Random) -> tuple[int, int] | None:
    """Whole words around a place: its sentence, or some words to both sides, none of them perhaps."""
    tokens = [match.span() for match in _TOKEN.finditer(text)]
    if len(tokens) < _WORDS_MIN:
        return None
    first = max((number for number, (position, _) in enumerate(tokens) if position <= start), default=0)
    last = max((number for number, (position, _) in enumerate(tokens) if position < end), default=first)
    last = max(first, last)
    if dice.random() < 0.5:
        lo, hi = _sentence(text, tokens[first][0], tokens[last][1])
        if _WORDS_MIN <= len(text[lo:hi].split()) <= _WORDS_MAX:
            return lo, hi
    size = min(len(tokens), max(last - first + 1, dice.randint(_WORDS_MIN, _WORDS_MAX)))
    if size > _WORDS_MAX:
        return None
    begin = dice.randint(max(0, last - size + 1), min(first, len(tokens) - size))
    return tokens[begin][0], tokens[begin + size - 1][1]


def _sentence(text: str, start: int, end: int) -> tuple[int, int]:
    """The sentences that a place touches, without the spaces around them."""
    stops = [(match.start(), match.end()) for match in _SENTENCE_END.finditer(text)]
    lo = max((stop for _, stop in stops if stop <= start), default=0)
    hi = min((begin for begin, _ in stops if begin >= end), default=len(text))
    inner = text[lo:hi]
    return lo + len(inner) - len(inner.lstrip()), hi - (len(inner) - len(inner.rstrip()))


def _applied(text: str, lo: int, hi: int, edit: _Edit, new: str) -> str:
    """text[lo:hi] with the edit made; a dropped word takes one of its spaces along."""
    head, tail = text[lo : edit.start], text[edit.end : hi]
    if not new and (not head or head[-1].isspace()):
        tail = tail.lstrip()
    return (head + new + tail).strip()


def _change(old: str, new: str) -> str:
    return f"{old} → {new}" if old and new else (f"dropped: {old}" if old else f"inserted: {new}")


def _altered(kind: Kind, passage: _Passage, whole: str, text: str, dice: random.Random) -> Iterator[Planted]:
    """Up to ``_PER_PARAGRAPH`` cases of one kind out of one paragraph; ``text`` is the document's, casefolded."""
    edits = list(_FINDERS[kind](passage.text))
    for edit in dice.sample(edits, min(len(edits), _PER_PARAGRAPH)):
        # Models mix up what stands on the same pages: such a replacement is preferred half of the time.
        known = [option for option in edit.options if option and option.casefold() in text]
        new = dice.choice(known if known and dice.random() < 0.5 else edit.options)
        for _ in range(_WINDOWS):
            window = _window(passage.text, edit.start, edit.end, dice)
            if not window:
                break
            genuine, quote = passage.text[slice(*window)], _applied(passage.text, *window, edit, new)
            if len(quote.split()) >= _WORDS_MIN - 1 and _loose(quote) not in whole:
                old = passage.text[edit.start : edit.end]
                yield Planted(kind, genuine, quote, passage.page, _change(old, new))
                break


def _cut_behind_negation(passage: _Passage, whole: str, dice: random.Random) -> Iterator[Planted]:
    """Quotes that begin right behind a negation, or at a later member of the list that it governs."""
    cues = list(_CUT_CUES.finditer(passage.text))
    for cue in dice.sample(cues, min(len(cues), _PER_PARAGRAPH)):
        _, end = _sentence(passage.text, *cue.span())
        governed = re.split(
            r"\b(?:but|except|however|although|and (?:is|was|has|the|he|she|i))\b|:", passage.text[cue.end() : end]
        )[0]
        tokens = [match.span() for match in _TOKEN.finditer(governed)][:_WORDS_MAX]
        if len(tokens) < 3 or _NOT_CUT.match(governed) or _outside(passage.text, cue.start()):
            continue
        lists = [
            position
            for position, (a, b) in enumerate(tokens)
            if a and governed[a:b] == "or" and len(tokens) - position > 3
        ]
        begin = tokens[dice.choice([0, 0, *(position + 1 for position in lists)])][0]
        quote = governed[begin : tokens[-1][1]].rstrip(" ,;")
        negated = passage.text[cue.start() : cue.end() + begin + len(quote)]
        # The words must not stand anywhere else without their negation.
        if whole.count(_loose(quote)) == whole.count(_loose(negated)) and len(quote.split()) >= 3:
            yield Planted(Kind.NEGATION_CUT, negated, quote, passage.page, f"cut off: {cue.group().strip()}")


def _outside(text: str, start: int) -> bool:
    """Whether the sentence has turned before that place: without its negation "not without" says the same again."""
    lo, _ = _sentence(text, start, start)
    return bool(_TURNS.search(text[lo:start]))


def _halves(text: str) -> list[tuple[int, int]]:
    """The sentences of a paragraph that are long enough to be cut in two."""
    stops = [0, *(match.end() for match in _SENTENCE_END.finditer(text)), len(text)]
    spans = [_sentence(text, a, max(a, b - 1)) for a, b in pairwise(stops) if b > a]
    return [span for span in spans if 6 <= len(text[slice(*span)].split()) <= _WORDS_MAX]


def _spliced(passages: Sequence[_Passage], whole: str, dice: random.Random) -> Iterator[Planted]:
    """The first half of a sentence with the second half of one from elsewhere in the document."""
    sentences = [(passage, span) for passage in passages for span in _halves(passage.text)]
    for passage, span in sentences:
        if dice.random() > 0.4:
            continue
        other, others = dice.choice(sentences)
        ones = passage.text[slice(*span)]
        second = other.text[slice(*others)].split()
        tokens = [match.span() for match in _TOKEN.finditer(ones)]
        head = ones[: tokens[len(tokens) // 2 - 1][1]]
        tail = " ".join(second[len(second) // 2 :])
        quote = f"{head} {tail}"
        if (passage.page, passage.number) != (other.page, other.number) and _loose(quote) not in whole:
            yield Planted(Kind.SPLICED, head, quote, passage.page, f"{head} … | … {tail}")


def _fabricated(bundle: DocumentBundle, whole: str, dice: random.Random) -> Iterator[Planted]:
    """Three invented sentences for every page with text."""
    for page in bundle.pages:
        for _ in range(3 if page.text.strip() else 0):
            quote = _filled(dice.choice(_INVENTED), dice)
            if _loose(quote) not in whole:
                yield Planted(Kind.FABRICATED, "", quote, page.page_num, f"inserted: {quote}")


def plant(bundle: DocumentBundle, seed: int) -> Iterator[Planted]:
    """Quotes of the document whose meaning was changed in exactly one place, page by page and kind by kind.

    Args:
        bundle: the document; one without text yields nothing.
        seed: the same bundle (by its SHA-256) and seed give the same cases.
    """
    whole = _whole(bundle)
    text = "\n".join(page.text for page in bundle.pages).casefold()
    passages = list(_passages(bundle))
    for passage in passages:
        for kind in _FINDERS:
            dice = _dice(seed, bundle.sha256, passage.page, passage.number, kind)
            yield from _altered(kind, passage, whole, text, dice)
        dice = _dice(seed, bundle.sha256, passage.page, passage.number, Kind.NEGATION_CUT)
        yield from _cut_behind_negation(passage, whole, dice)
    yield from _spliced(passages, whole, _dice(seed, bundle.sha256, Kind.SPLICED))
    yield from _fabricated(bundle, whole, _dice(seed, bundle.sha256, Kind.FABRICATED))


# ----------------------------------------------------------------------------------------------- honest quotes


def _honest(passage: _Passage, dice: random.Random) -> tuple[int, int] | None:
    """Where a quote can be cut that leaves outside nothing on which its meaning turns, or None."""
    text = passage.text
    tokens = [match.span() for match in _TOKEN.finditer(text)]
    if len(tokens) < _WORDS_MIN or (
        not re.search(r"[.!?]\W*$", passage.before) and _TURNS.search(passage.before[-40:])
    ):
        return None
    for _ in range(_WINDOWS):
        first = dice.randrange(len(tokens) - _WORDS_MIN + 1)
        window = _window(text, tokens[first][0], tokens[first + _WORDS_MIN - 1][1], dice)
        if not window:
            continue
        lo, hi = _sentence(text, *window)
        if not _TURNS.search(text[lo : window[0]]) and not _TURNS.search(text[window[1] : hi]):
            return window
    return None


@cache
def _decisive() -> frozenset[str]:
    """Every word of the phrases and groups, what they say and what may replace them."""
    rows = {old: row for kind in _PHRASES for old, row in _phrase_rows(kind).items()}
    phrases = (*rows, *(option for row in rows.values() for option in row.options), *dict(_parsed(_UNITS)))
    return frozenset(word for phrase in phrases for word in re.findall(r"[a-z]{2,}", phrase.casefold()))


def _ordinary(text: str) -> list[tuple[int, int]]:
    """The words without clinical weight, five letters or more, in small print."""
    words = re.finditer(r"(?<![\w'’-])[a-z]{5,}(?![\w'’-])", text)
    return [match.span() for match in words if match.group() in _ORDINARY and match.group() not in _decisive()]


def _spaced(text: str, dice: random.Random) -> str:
    def other(match: re.Match[str]) -> str:
        if match.group() != " ":
            return " "
        return dice.choice(("\n", "  ", " ", " ", " ", " ", " \n", "\u00a0"))

    return re.sub(r"\s+", other, text)


def _hyphened(text: str, dice: random.Random) -> str:
    """Line-end hyphens joined; or dashes of another kind; or a word broken at a line's end."""
    joined = re.sub(r"(?<=[a-z])-\n(?=[a-z])", "", text)
    if joined != text:
        return joined
    if "-" in text and dice.random() < 0.6:
        return text.replace("-", dice.choice("‐‑–—−"))
    words = [match.span() for match in re.finditer(r"(?<![\w'’-])[a-z]{7,}(?![\w'’-])", text)]
    if not words:
        return text
    start, end = dice.choice(words)
    position = dice.randint(start + 3, end - 3)
    return f"{text[:position]}-\n{text[position:]}"


def _recased(text: str, dice: random.Random) -> str:
    return dice.choice((str.upper, str.lower, str.title, str.capitalize))(text)


_LIGATURES = (("ffi", "ﬃ"), ("ffl", "ﬄ"), ("ff", "ﬀ"), ("fi", "ﬁ"), ("fl", "ﬂ"))


def _ligated(text: str, _: random.Random) -> str:
    """Letters joined as printers join them; taken apart where the page has them joined."""
    if any(joined in text for _, joined in _LIGATURES):
        for letters, joined in _LIGATURES:
            text = text.replace(joined, letters)
        return text
    for letters, joined in _LIGATURES:
        text = text.replace(letters, joined)
    return text


def _requoted(text: str, dice: random.Random) -> str:
    """Straight marks curled, curly ones straightened."""
    if re.search("[‘’“”]", text):
        return text.translate(str.maketrans("‘’“”", "''\"\""))
    text = re.sub(r"(?<=\w)'", "’", text)
    text = re.sub(r'"(?=\w)', "“", text)
    return text.replace('"', "”") if dice.random() < 0.9 else text


_MISREAD = (
    ("rn", "m"),
    ("m", "rn"),
    ("l", "i"),
    ("i", "l"),
    ("o", "c"),
    ("e", "c"),
    ("c", "e"),
    ("h", "b"),
    ("u", "ii"),
)


#: Real words one slip away from an ordinary one.
_NEAR = frozenset(_words("patents, patent, medial, pace, planed, though, through, quite, quiet, causal, casual, sting"))


def _misread(word: str, dice: random.Random) -> str | None:
    """The word with one letter misread, dropped or doubled, its ends kept; None if that gave another real word."""
    position = dice.randrange(1, len(word) - 1)
    confusions = [
        word[:where] + new + word[where + len(old) :]
        for old, new in _MISREAD
        for where in range(1, len(word) - len(old))
        if word.startswith(old, where)
    ]
    lost, doubled = word[:position] + word[position + 1 :], word[: position + 1] + word[position:]
    misread = dice.choice((*confusions, lost, doubled) if confusions else (lost, doubled))
    return None if misread == word or misread in _ORDINARY | _decisive() | _NEAR else misread


def _noisy(text: str, dice: random.Random) -> str:
    """One to two per cent of the characters misread, one to a word, only in words that decide nothing."""
    spans = _ordinary(text)
    wanted = max(1, round(len(text) * dice.uniform(0.01, 0.02)))
    chosen = sorted(dice.sample(spans, min(wanted, len(spans))), reverse=True)
    for start, end in chosen:
        misread = _misread(text[start:end], dice)
        if misread and misread not in text:
            text = text[:start] + misread + text[end:]
    return text


def _ended(text: str, dice: random.Random) -> str:
    return f"{text.rstrip('.,;: ')}{dice.choice(('.', '...', '…'))}"


_NOISES: Mapping[NoiseKind, Callable[[str, random.Random], str]] = {
    NoiseKind.EXACT: lambda text, dice: text,
    NoiseKind.WHITESPACE: _spaced,
    NoiseKind.HYPHEN: _hyphened,
    NoiseKind.CASE: _recased,
    NoiseKind.LIGATURE: _ligated,
    NoiseKind.QUOTES: _requoted,
    NoiseKind.CHARACTERS: _noisy,
    NoiseKind.ENDING: _ended,
}


def _joined(first: str, second: str, dice: random.Random) -> tuple[str, str] | None:
    """The end of one paragraph and the beginning of the next, whole sentences; how the page has it and the quote."""
    lo, _ = _sentence(first, len(first), len(first))
    _, hi = _sentence(second, 0, 0)
    parts = first[lo:].strip(), second[:hi].strip()
    if not all(3 <= len(part.split()) <= _WORDS_MAX // 2 for part in parts):
        return None
    return "\n".join(parts), dice.choice((" ", " ", "\n")).join(parts)


def noise(bundle: DocumentBundle, seed: int) -> Iterator[Noised]:
    """Quotes of the document as an honest model returns them; each stands on the page but for its kind of noise.

    Args:
        bundle: the document; one without text yields nothing.
        seed: the same bundle (by its SHA-256) and seed give the same cases.
    """
    passages = list(_passages(bundle))
    for passage in passages:
        for kind, changed in _NOISES.items():
            dice = _dice(seed, bundle.sha256, passage.page, passage.number, kind)
            window = _honest(passage, dice)
            if window is None:
                continue
            genuine = passage.text[slice(*window)]
            quote = changed(genuine, dice)
            if quote != genuine or kind is NoiseKind.EXACT:
                yield Noised(kind, genuine, quote, passage.page)
    for first, other in pairwise(passages):
        across = first.page != other.page
        kind = NoiseKind.PAGE_JOIN if across else NoiseKind.PARAGRAPH_JOIN
        dice = _dice(seed, bundle.sha256, first.page, first.number, kind)
        joined = _joined(first.text, other.text, dice)
        if joined and other.page - first.page <= 1 and (across or other.number == first.number + 1):
            yield Noised(kind, *joined, first.page)


# ------------------------------------------------------------------------------------------ documents of its own


def _number(low: int, high: int) -> Callable[[random.Random], str]:
    return lambda dice: str(dice.randint(low, high))


def _decimal(low: int, high: int) -> Callable[[random.Random], str]:
    """Tenths between these whole numbers."""
    return lambda dice: f"{dice.randint(low * 10 + 1, high * 10) / 10:.1f}"


def _date(dice: random.Random) -> str:
    """A day, in one of the ways in which documents write it."""
    year, month, day = dice.randint(1998, 2025), dice.randint(1, 12), dice.randint(1, 28)
    name = _MONTHS[month - 1]
    return dice.choice(
        (
            f"{month:02d}/{day:02d}/{year}",
            f"{month}/{day}/{year % 100:02d}",
            f"{year}-{month:02d}-{day:02d}",
            f"{name} {day}, {year}",
            f"{day} {name} {year}",
            f"{day:02d}-{name[:3]}-{year}",
            f"{name[:3]} {day}, {year}",
            f"{name} {year}",
        )
    )


def _coding(dice: random.Random) -> str:
    """A coding variant, on a made-up position."""
    position, base, other = dice.randint(12, 9800), *dice.sample(_BASES, 2)
    return dice.choice(
        (
            f"c.{position}{base}>{other}",
            f"c.{position}dup{base}",
            f"c.{position}del{base}",
            f"c.{position}_{position + dice.randint(1, 9)}del",
            f"c.{position}+{dice.randint(1, 5)}{base}>{other}",
            f"c.{position}_{position + 1}ins{base}{other}",
        )
    )


def _amino(dice: random.Random) -> str:
    """A protein variant, on a made-up position."""
    position, (first, other) = dice.randint(12, 2400), dice.sample(_AMINO_ACIDS, 2)
    return dice.choice(
        (
            f"p.{first}{position}{other}",
            f"p.({first}{position}{other})",
            f"p.{first}{position}*",
            f"p.{first}{position}{other}fs*{dice.randint(3, 60)}",
        )
    )


def _of(*groups: str) -> Callable[[random.Random], str]:
    entries = tuple(word for group in groups for word in _GROUPS[group])
    return lambda dice: dice.choice(entries)


def _from(entries: str) -> Callable[[random.Random], str]:
    listed = _words(entries)
    return lambda dice: dice.choice(listed)


_SLOTS: Mapping[str, Callable[[random.Random], str]] = {
    "age": _number(19, 91),
    "n": _number(2, 29),
    "mm": _number(2, 48),
    "pct": _number(3, 97),
    "dose": _from("2.5, 5, 10, 12.5, 20, 25, 40, 50, 75, 80, 100, 150, 250, 500"),
    "size": _decimal(0, 9),
    "small": _decimal(0, 2),
    "lab": _decimal(1, 14),
    "big": _number(40, 480),
    "sys": _number(98, 178),
    "dia": _number(52, 98),
    "hr": _number(52, 118),
    "tenths": lambda dice: f"0.{dice.randint(11, 89)}",
    "sign": lambda dice: f"-{dice.randint(1, 39) / 10:.1f}",
    "few": _from("two, three, four, five, six, seven, eight, nine"),
    "roman": _from("I, II, III, IV"),
    "time": _from("days, weeks, months, years"),
    "date": _date,
    "day": lambda dice: dice.choice(_WEEKDAYS),
    "year": _number(1962, 2024),
    "gene": lambda dice: dice.choice([gene for gene in _GENES if gene not in _GENE_OR_WORD]),
    "cdna": _coding,
    "protein": _amino,
    "rs": lambda dice: f"rs{dice.randint(1000, 99999999)}",
    "band": lambda dice: f"{dice.randint(1, 22)}{dice.choice('pq')}{dice.randint(11, 36)}",
    "nm": lambda dice: f"NM_{dice.randint(100, 9999):06d}.{dice.randint(1, 6)}",
    "zyg": _from("heterozygous, homozygous, hemizygous"),
    "acmg": _from("pathogenic, likely pathogenic, benign, likely benign, a variant of uncertain significance"),
    "side": _from("left, right"),
    "level": _from("upper, lower"),
    "face": _from("anterior, posterior, medial, lateral, superior, inferior"),
    "end": _from("proximal, distal"),
    "both": _from("bilateral, unilateral"),
    "drug": _of("drug"),
    "organ": _of("organ"),
    "organish": _of("of_organ"),
    "bone": _of("bone"),
    "joint": _of("joint"),
    "vessel": _of("vessel"),
    "relative": _of("relative"),
    "sex": _of("sex"),
    "person": _of("person"),
    "symptom": _of("symptom"),
    "disease": _of("disease"),
    "tumor": _of("tumor"),
    "cancer": _of("cancer"),
    "modality": _of("modality", "scan"),
    "procedure": _of("procedure"),
    "therapy": _of("therapy"),
    "clinic": _of("clinic"),
    "analyte": _of("analyte"),
    "marker": _of("marker"),
    "cell": _of("cell"),
    "germ": _of("germ"),
    "specimen": _of("specimen"),
    "antigen": _of("antigen"),
    "habit": _of("habit"),
    "name": lambda dice: dice.choice(_SURNAMES),
    "first": lambda dice: dice.choice(_FIRST_NAMES),
    "posneg": _from("positive, negative"),
    "updown": _from("increased, decreased"),
    "course": _from("stable, improved, worsened, unchanged"),
    "hilo": _from("elevated, reduced, normal, high, low"),
    "diff": _from("well, poorly"),
    "grade": _from("low-grade, high-grade"),
    "often": _from("daily, twice daily, three times daily, weekly, at bedtime, every other day"),
    "via": _from("by mouth, intravenously, subcutaneously"),
    "doubt": _from("suspicious for, suggestive of, consistent with, compatible with, concerning for"),
    "perhaps": _from("possible, probable, likely, suspected"),
    "degree": _from("mild, severe, minimal, extensive"),
}


def _filled(template: str, dice: random.Random) -> str:
    """The template with every slot drawn; the same slot twice never gets the same filling."""
    used: set[str] = set()

    def draw(match: re.Match[str]) -> str:
        filling = _SLOTS[match.group(1)](dice)
        for _ in range(20):
            if filling not in used:
                break
            filling = _SLOTS[match.group(1)](dice)
        used.add(filling)
        return filling

    text = re.sub(r"\{(\w+)\}", draw, template)
    return text[:1].upper() + text[1:]


_PATHOLOGY = """
The {side} {organ} specimen is received fresh and weighs {big} grams.
Sections of the {organ} show {diff} differentiated {tumor}, {grade}, with extensive necrosis.
The tumor measures {size} x {lab} x {small} cm and lies {mm} mm from the {face} margin.
No evidence of lymphovascular invasion is seen in the sections examined.
Metastatic carcinoma is present in {n} of 30 lymph nodes, the largest deposit measuring {mm} mm.
The surgical margins are negative for tumor; the closest margin is the {face} margin at {small} cm.
The {face} margin is positive for invasive carcinoma over {mm} mm.
Estrogen receptor is positive in {pct}% of nuclei, progesterone receptor is negative.
Estrogen receptor negative, progesterone receptor positive, HER2 negative by immunohistochemistry.
The tumor cells are positive for {marker} and negative for {marker}.
Ki-67 labels approximately {pct}% of the tumor nuclei, which is above the cutoff of 20%.
The mitotic count is less than {n} per 10 high power fields.
Perineural invasion is not identified in any of the {few} blocks submitted.
Tumor invades more than half of the {organ} wall without involvement of the serosa.
The findings are {doubt} {tumor}, but sampling error cannot be excluded.
Features are {doubt} {tumor}; clinical correlation is recommended.
Benign {organish} tissue with chronic inflammation and no dysplasia.
The polyp is a tubular adenoma with low-grade dysplasia, completely excised.
There is ductal carcinoma in situ of high-grade type adjacent to the invasive carcinoma.
Final diagnosis: {tumor} of the {side} {organ}, stage {roman}, margins uninvolved.
Pathologic stage pT{n}, at least stage {roman}, based on the {side} {procedure} specimen.
The {face} half of the specimen is inked blue and serially sectioned at {mm} mm intervals.
Two of the {few} fragments contain {tumor}; the remaining tissue is unremarkable.
Frozen section was reported as benign to Dr. {name} on {date}.
The {organ} contains a nodule that may be a metastasis from the known {cancer}.
Malignant cells are not seen in the cytology of the {specimen}.
Pathologist: {name}, {first}. Reviewed with Dr. {name} on {date}.
Received in formalin on {date} and labeled with the patient's name "{first} {name}".
Residual melanoma is absent; the scar measures {size} cm in greatest dimension.
PD-L1 tumor proportion score is greater than {pct}% in the {organish} metastasis.
The tumor shows mild nuclear atypia and fewer than {n} mitoses in the most active area.
"""

_GENOMIC = """
{gene} {cdna} {protein} was detected in a {zyg} state at an allele fraction of {tenths}.
The {gene} variant {cdna} is classified as {acmg} according to current guidelines.
A {zyg} variant, {nm}:{cdna}, was identified in exon {n} of the {gene} gene.
Ordered by: Dr. {name}, {clinic}. Sample collected from Mrs. {name} on {date}.
No pathogenic variants were detected in {gene} or in the other genes of this panel.
This individual is {posneg} for the {gene} {protein} mutation.
The missense variant {protein} in {gene} is likely pathogenic and segregates with disease in the family.
A variant of uncertain significance, {cdna}, was found in {gene}; it should not be used for clinical decisions.
The polymorphism {rs} near {gene} is {zyg} in this sample.
Copy number gain at {band} includes {gene}; a deletion at {band} was not confirmed.
A deletion of exon {n} of {gene} was confirmed by a second method.
Loss of function of {gene} is a known mechanism of disease and is autosomal dominant.
Tumor mutational burden is {lab} mutations per megabase and the tumor is microsatellite stable.
Mean coverage was {big}x, and {pct}% of target bases were covered at more than 20x.
The {gene} fusion with {gene} was detected by RNA sequencing; no reciprocal transcript was found.
Germline testing is recommended because the {gene} allele fraction is above {pct}%.
The variant {cdna} in {gene} was inherited from the {relative} and is absent in the {relative}.
The {gene} frameshift {protein} is predicted to cause loss of function and is pathogenic.
{gene} amplification is present, with an estimated copy number of {n}.
Somatic variants below an allele fraction of 5% cannot be detected with this assay.
The patient is a carrier of the {gene} variant {cdna} and may benefit from {drug}.
Genotype {gene} *1/*2 predicts decreased metabolism of {drug}; consider a lower dose.
Translocation t(9;22) was not detected in {n} metaphases; the karyotype is normal.
The benign variant {protein} in {gene} was not reported in the summary.
Insertion {cdna} in {gene} has been reported in fewer than {n} families with {cancer}.
The {gene} promoter is hypermethylated, whereas {gene} is wild type.
Variants in {gene} with population frequency higher than {small}% were excluded from the report.
De novo occurrence of {gene} {cdna} could not be proven because the {relative} was unavailable.
Interpretation: {gene} {protein} is {acmg}, variant {rs}, located on chromosome {band}.
"""

_RADIOLOGY = """
Radiologist: {name}, {first}. Findings were called to Dr. {name} on {day}.
CT of the chest was performed without contrast on {date} and compared with the study of {date}.
There is no evidence of pulmonary embolism or acute aortic dissection in this examination.
There is a {size} cm mass in the {side} {level} lobe, previously {lab} cm.
A {mm} mm nodule in the {side} {level} lobe is {course} since {date}.
The {side} kidney measures {lab} cm, and the {side} ureter is normal.
The left kidney is enlarged and the right ureter is normal in caliber.
No {side} pleural effusion is seen, and there is no pneumothorax on this view.
The {face} wall of the {vessel} is thickened to {mm} mm, which is {doubt} vasculitis.
{both} hydronephrosis is present and has {course} compared with the prior {modality}.
A nondisplaced fracture of the {end} {side} {bone} is again identified.
There is a displaced fracture of the {end} {bone} without dislocation of the {joint}.
The {organ} is normal in size, contour and signal; no focal lesion is identified.
A hypoechoic lesion of {mm} mm lies in the {face} part of the {organ} and may represent a cyst.
{perhaps} {disease}; follow-up {modality} should be performed in {few} months.
Impression: findings are {doubt} {disease}. Metastatic disease cannot be excluded.
The {vessel} is patent without evidence of thrombus or significant stenosis.
The {organish} lesion is hyperintense on T2 and measures less than {size} cm.
Mild cardiomegaly is present, and the lungs are clear bilaterally on the frontal view.
The {organ} mass has {updown} from {size} cm to {lab} cm since the scan of {date}.
BI-RADS category 4: a {perhaps} abnormality in the {level} outer quadrant of the {side} breast.
The T-score of the lumbar spine is {sign} and of the femoral neck {sign}.
Bone density: T-score {sign}, Z-score {sign}, consistent with osteopenia.
Deep vein thrombosis of the {side} popliteal vein is present; the {side} femoral vein is normal.
There is a {grade} obstruction of the {end} {organ} with transition point in the {side} {level} quadrant.
No intracranial hemorrhage, mass effect or midline shift is present today.
Degenerative changes of the {joint} are {degree}, more than expected for age.
Radiation dose was {lab} mSv, and {dose} mL of contrast was given {via}.
The previously seen {side} {organish} lesion is no longer visible on {modality}.
"""

_NOTE = """
The patient is a {age}-year-old {person} with a history of {disease} and {disease}.
She denies {symptom}, {symptom} or {symptom} since her last visit on {date}.
He reports {symptom} for the past {few} {time} and never smoked.
Patient: {name}, {first}. Seen by Dr. {name} in {clinic} on {date}.
Family history of {cancer} in the {relative}, diagnosed at age {age}.
His {relative} had {disease} and his {relative} had {cancer} before age {age}.
The patient was started on {drug} {dose} mg {often} for {disease}.
We will stop {drug} and continue {drug} {dose} mg {via} {often}.
Allergic to {antigen}; tolerated {drug} without difficulty in {year}.
Blood pressure {sys}/{dia} mmHg, pulse {hr}, temperature 37.{n} °C, oxygen saturation {pct}%.
On examination the {side} {joint} is tender, with swelling of the {face} aspect.
The abdomen is nontender and the patient is afebrile and in no acute distress.
There is no history of {disease}, {disease} or {disease} in this patient.
Assessment: {perhaps} {disease}; rule out {disease} with {modality}.
The {symptom} has been {course} and may be due to {disease}.
She can return to work on {day}, {date}, if she remains asymptomatic.
The patient should not take {drug} with {drug} because of the risk of bleeding.
He underwent {side} {procedure} in {year} and received {few} cycles of {therapy}.
The patient has mild {symptom} that is worse in the morning and better after {drug}.
Former smoker, {n} pack-years, quit in {year}; drinks fewer than {few} beers weekly.
She is unable to walk more than {few} blocks without {symptom}.
"I don't think the {drug} helps," the patient's {relative} said at today's visit.
Plan: increase {drug} from {dose} mg to {dose} mg {often}, recheck {analyte} in {few} weeks.
If symptoms worsen, the patient must call the {clinic} clinic before {date}.
The patient was admitted on {date} with acute {disease} and was discharged after {few} days.
Likely {disease}; he would benefit from {therapy} if cardiac function permits.
She declined {therapy} and was referred to Dr. {name} for a second opinion.
The wound of the {side} {joint} is healed, without signs of infection or drainage.
Her {disease} is well controlled on {drug}, {dose} mg {via} {often}.
Patient's {relative} is alive at {age}; the {relative} died of {cancer} in {year}.
He is {posneg} for hepatitis B surface antigen and was vaccinated in {year}.
No known drug allergies; takes {drug} {dose} mcg {often} and {drug} as needed.
The first cycle of {therapy} was given on {date}, the second is planned for {date}.
Neurologic exam: reflexes are present in both arms, absent at the {side} ankle.
The infant's base excess was {sign} and the refraction of the {side} eye {sign} diopters.
The T-score of the {side} hip was {sign} in {year}, and bone density is {updown} since then.
The base excess of {sign} mmol/L on {date} improved after {drug}.
Refraction: sphere {sign}, cylinder {sign}, axis {big} in the {side} eye.
Attending: {name}, {first}. Reason for visit: {symptom} and {perhaps} {disease}.
"""

_LABS = """
{analyte} {lab} mmol/L, {analyte} {big} mg/dL, {analyte} within normal limits.
Sodium was {big} mmol/L, potassium was {lab} mmol/L on admission.
White blood cell count is {hilo} at {lab} x10^9/L with {pct}% {cell}.
Hemoglobin {lab} g/dL, platelets {big} x10^9/L, creatinine {tenths} mg/dL.
Base excess {sign} mmol/L, pH 7.{pct}, lactate {lab} mmol/L, anion gap {n}.
The {specimen} culture is {posneg} for {germ}, sensitive to {drug} and resistant to {drug}.
Troponin is less than {tenths} ng/mL and was repeated after {few} hours.
C-reactive protein rose to > {big} mg/L; procalcitonin is < {tenths} ng/mL.
HIV antibody is nonreactive, hepatitis C antibody is reactive; confirm with RNA.
Hemoglobin A1c {lab}% on {date}, target below {lab}%.
Prothrombin time is elevated at {n} seconds, INR {lab}, on {drug} {dose} mg {often}.
The estimated glomerular filtration rate is {pct} mL/min, down from {hr} mL/min on {date}.
Urinalysis: protein present, nitrite absent, leukocyte esterase positive, ketones negative.
Viral load was not detected; the lower limit of quantification is {n} copies/mL.
The {analyte} level is {hilo}, with values between {lab} and {big} over the past {few} days.
Ordered by: {name}. Collected on {date} and received within {few} hours.
Ferritin ≥ {big} ng/mL and transferrin saturation ≤ {pct}% were confirmed.
Specific gravity is normal; red cells are increased at more than {n} per field.
The sweat chloride was at least {big} mmol/L in both samples of {date}.
Venous blood gas: base excess {sign} mmol/L, calculated from the sample of {date}.
The weight change was {sign} kg over {few} days, and the z-score for height is {sign}.
Fluid balance was {sign} L on {day} and {sign} L on {day}, weight {lab} kg lower.
"""

_CONSENT = """
I understand that I may revoke this authorization at any time in writing.
This authorization expires {n} months after {date} unless I state an earlier date.
I am not required to sign this form, and my treatment will not depend on it.
I authorize the release of my {clinic} records from {date} to {date}.
Copies are provided within {n} days; a fee of up to ${n} per page can be charged.
Physician: {name}. The patient's {relative} signed on {day}, {date}.
Records about {disease} or {therapy} must not be disclosed without my written consent.
The {organ} of the donor was accepted, and the recipient's blood group is compatible with it.
Appointments in {clinic} should be cancelled at least {n} hours before the visit.
"I'll bring my {relative} to the office on {day}," the patient's letter says.
Payment is required before the {procedure}; the insurer's approval is possible by {date}.
"""

_GENRES = (
    ("SURGICAL PATHOLOGY REPORT", _PATHOLOGY),
    ("MOLECULAR GENETICS REPORT", _GENOMIC),
    ("DIAGNOSTIC IMAGING", _RADIOLOGY),
    ("CLINIC NOTE", _NOTE),
    ("PROGRESS NOTE", _NOTE),
    ("LABORATORY RESULTS", _LABS),
    ("AUTHORIZATION AND CORRESPONDENCE", _CONSENT),
)

#: What no document here says: none of these is a sentence of ``_GENRES``.
_INVENTED = tuple(
    line.strip()
    for line in """
        Emergency {procedure} was performed after the patient developed {disease} during the night.
        The family elected comfort measures only and hospice was contacted on {date}.
        Biopsy of the {side} {organ} demonstrated {tumor} invading the adjacent {vessel}.
        Genetic counseling disclosed a pathogenic {gene} variant, {cdna}, in both siblings.
        The patient was intubated for respiratory failure and transferred to intensive care.
        {drug} was withheld because of an anaphylactic reaction in {year}.
        Repeat {modality} showed a new {mm} mm metastasis in the {organ}.
        Dr. {name} explained that surgery was not an option at this stage of the disease.
        A blood transfusion of {few} units was given for a hemoglobin of {lab} g/dL.
        The {side} lower extremity was amputated below the knee in {year}.
        Immunohistochemistry was diffusely positive for {marker}, supporting {tumor}.
        She completed {few} cycles of neoadjuvant {therapy} with {drug} and {drug}.
        The patient's {relative} reported a seizure lasting {few} minutes at home.
        Homozygous loss of {gene} was found together with amplification of {gene}.
        He was enrolled in a phase {roman} trial of {drug} for refractory {cancer}.
        Culture of the {specimen} grew {germ} resistant to all agents tested.
        Fetal heart rate was {hr} beats per minute at {n} weeks of gestation.
        Lumbar puncture yielded turbid fluid with {big} cells per microliter.
        The coroner's report listed {disease} as the immediate cause of death.
        Ejection fraction fell to {pct}% after the second infusion of {drug}.
        Sentinel node mapping identified {few} hot nodes in the {side} axilla.
        The pacemaker was interrogated and its battery replaced on {date}.
        Corneal transplantation of the {side} eye was complicated by rejection.
        An insulin pump was fitted and the patient trained by the diabetes nurse.
        The {vessel} was ligated after an intraoperative hemorrhage of {big} mL.
        Suicidal ideation was disclosed during the {clinic} consultation.
    """.splitlines()
    if line.strip()
)

_LINE = 92
_PAGES_PER_DOCUMENT = 3
_CELLS = ("mmol/L", "mg/dL", "g/dL", "ng/mL", "U/L")


def _table(dice: random.Random) -> str:
    """Rows of analyte, value and unit, remark."""
    rows = (
        f"{_SLOTS['analyte'](dice).capitalize()}\t{_SLOTS['lab'](dice)} {dice.choice(_CELLS)}\t"
        f"{dice.choice(('normal', 'high', 'low', 'not detected', 'elevated'))}"
        for _ in range(dice.randint(3, 6))
    )
    return "\n".join(rows)


def _written(dice: random.Random) -> Iterator[tuple[BlockType, str]]:
    """One page: heading, paragraphs of one to four sentences, list items, perhaps a table, no sentence twice."""
    heading, sentences = dice.choice(_GENRES)
    yield "heading", heading
    templates = [line for line in sentences.splitlines() if line]
    dice.shuffle(templates)
    while len(templates) > 10:
        if dice.random() < 0.25:
            yield "list_item", f"- {_filled(templates.pop(), dice)}"
        else:
            yield "paragraph", " ".join(_filled(templates.pop(), dice) for _ in range(dice.randint(1, 4)))
    yield from (("paragraph", _filled(template, dice)) for template in templates[:4])
    if dice.random() < 0.3:
        yield "table", _table(dice)


def _page(number: int, blocks: Sequence[tuple[BlockType, str]]) -> Page:
    """The blocks set line by line, each word with its box, a line height of 1.2 % of the page."""
    words: list[WordPosition] = []
    page_blocks: list[Block] = []
    row = position = 0
    for kind, text in blocks:
        first, column = row, 0
        for match in _TOKEN.finditer(text):
            if column and (column + len(match.group()) > _LINE or text[match.start() - 1] == "\n"):
                row, column = row + 1, 0
            x, y = 600 + 95 * column, 300 + 120 * row
            words.append(
                (
                    position + match.start(),
                    position + match.end(),
                    x,
                    y,
                    min(9950, x + 95 * len(match.group())),
                    y + 100,
                )
            )
            column += len(match.group()) + 1
        row += 1
        page_blocks.append(
            Block(type=kind, text=text, box=(0.06, 0.03 + 0.012 * first, 0.94, min(1.0, 0.03 + 0.012 * row)))
        )
        position += len(text) + 1
    paragraphs = tuple(text for _, text in blocks)
    kinds = tuple(kind for kind, _ in blocks)
    return Page(
        page_num=number,
        status=PageStatus.TEXT,
        text="\n".join(paragraphs),
        paragraphs=paragraphs,
        layout_metadata=LayoutMetadata(block_types=kinds, has_tables="table" in kinds),
        blocks=tuple(page_blocks),
        words=PackedWords(words),
    )


def list_planted_pages(seed: int, count: int) -> Iterator[DocumentBundle]:
    """Made-up clinical documents of three pages each, pathology to consent forms, that hold every kind.

    Args:
        seed: the same seed gives the same documents, and a smaller count the first of them.
        count: how many documents.
    """
    for number in range(1, count + 1):
        dice = _dice("pages", seed, number)
        pages = tuple(_page(page_number, list(_written(dice))) for page_number in range(1, _PAGES_PER_DOCUMENT + 1))
        digest = hashlib.sha256("\f".join(page.text for page in pages).encode()).hexdigest()
        name = f"planted-{seed}-{number:03d}"
        yield DocumentBundle(
            doc_id=name,
            file_path=f"{name}.pdf",
            sha256=digest,
            reader="benchmark",
            total_pages=len(pages),
            processing_timestamp="2026-01-01T00:00:00Z",
            pages=pages,
        )
