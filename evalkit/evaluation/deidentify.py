"""De-identify texts by patterns: names, dates, numbers and places. No guarantee.

Three steps: (1) Mask values behind labels ("Patient: …", "MRN …") and forms that need no label (dates, telephone
numbers, e-mail addresses, "Dr. …", "…, MD"). (2) Mask each name or number that is labelled anywhere in the document
wherever else it appears: on other pages, in answers and in reviewers' notes. (3) Replace the names of the output
folder's documents and reviewers by pseudonyms, and mask the identifying words of these names.
``measure_missed_planted_identifiers`` measures with invented identifiers how many are missed,
``measure_masked_medical_terms`` how many medical terms are masked needlessly.

Kept on purpose: years alone, ages up to 89, times of the day, names of hospitals and laboratories.
"""

from __future__ import annotations

import hashlib
import random
import re
import tomllib
import unicodedata
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

from evalkit.classification.offline.lexicon import load_lexicon
from evalkit.classification.patient_keys import KeyedClassification
from evalkit.classification.schema import ClassificationOutput
from evalkit.classification.vendors import load_vendors
from evalkit.core.grouping import group_by
from evalkit.documents.bundle import DocumentBundle
from evalkit.documents.readers import SUFFIXES
from evalkit.evaluation.ground_truth_table import GroundTruthDocument
from evalkit.evaluation.intervals import estimate_proportion
from evalkit.review.ground_truth import SIMULATED_PREFIX, is_simulated_reviewer

if TYPE_CHECKING:
    import pandas as pd

# --- what identifiers look like -------------------------------------------------------------------------------------

_CAPITALS = "A-ZÀ-ÖØ-Þ"
#: One word of a name: a capital first, or particles before it. "O'Neill", "Smith-Jones", "McKay", "J.".
_NAME_WORD = rf"(?-i:[{_CAPITALS}](?:[\w'’-]*\w)?\.?)"
_NAME_PARTICLES = r"(?:(?:de|del|della|der|den|di|da|dos|du|la|le|van|von|ter|ten|al|el|bin|ibn|st\.?)[ ]){0,3}"
#: Capitalised words that appear where names do but are no names: the next label, a heading, a unit of a form.
_NOT_A_NAME = (
    r"(?!(?:D\.?O\.?B|MRN|SSN|Sex|Age|Date|Birth|Born|Gender|Ref|Acc|Accession|Account|Visit|Exam|Reports?|Reported|Provider|Physician"
    r"|Phone|Tel|Telephone|Fax|ID|Male|Female|Name|Patients?|Address|Room|Page|Status|History|Information|Signature|Signed|Organi[sz]ation"
    r"|Specimen|Record|Number|No|Department|Hospital|Clinic|Center|Centre|Laboratory|Laboratories|Medical|Health|Order|Ordered|Ordering"
    r"|Collected|Received|Referring|Attending|Facility|Insurance|Unit|Allergies|Diagnosis|Chief|Complaint|Sample|Test|Type|Location"
    r"|Message|The|This|Is|Was|Has|Had|And|Or|Of|For|To|With|By|In|On|At|From|Not|None|See|Denies|Reports|States|Presents|Education"
    r"|Care|Consent|Services?|Instructions|Relationship|Print|Please|Subject|Re|MD|M\.D|DO|RN|NP|PA|PA-C|PhD|Ph\.D|FACP|Copy"
    r"|She|He|They|It|I(?!\.)|We|You|Her|His|When|There|That|Which|Who|Also|Then|But"
    r"|January|February|March|April|June|July|August|September|October|November|December)\b(?!['’]))"
)
_NAME_PART = rf"{_NOT_A_NAME}{_NAME_PARTICLES}{_NAME_WORD}"
_PERSON_NAME = rf"{_NAME_PART}(?:(?:,[ ]?|[ ]|(?<=\.)){_NAME_PART}){{0,4}}"
_FULL_NAME = rf"{_NAME_PART}(?:[ ]{_NAME_PART}){{1,3}}"
_DEGREE = (
    r"(?-i:M\.?D\b\.?|D\.?O\b\.?|Ph\.?D\b\.?|R\.?N\b\.?|N\.?P\b\.?|PA(?:-C)?\b|P\.A\.|APRN|CRNA|LPN|DNP|FNP(?:-[A-Z]+)?|MSN?\b|MPH|CGC|LCGC|LCSW"
    r"|FACP|FACS|FACMG|FCAP|FRCP\w*|MBBS|MBChB|DDS|DMD|DPM|OD\b|PharmD|PT\b|OT\b|RD\b|Esq)"
)
#: Separator between a label and its value. Possessive quantifiers (``*+``) avoid slow backtracking in a form's long
#: gaps.
_LABEL_SEPARATOR = r"[ \t]*+(?:\([^)\n]{0,20}\)[ \t]*+)?[:#.=–-]?[ \t]*+[:#]?[ \t]*+\n?[ \t]*+"
#: A digit as OCR engines write it: they confuse O with 0, and l or I with 1.
_OCR_DIGIT = "[\\dOoIl]"
_PERSON_ROLE = (
    r"(?:pat[i1l]ent|pt|client|physician|provider|doctor|surgeon|assistant|nurse|pathologist|radiologist|oncologist|cardiologist"
    r"|ge?net?i?cist|genetic counsell?or|clinician|practitioner|technologist|technician|interpreter|caregiver|dentist|pharmacist"
    r"|guarantor|subscriber|insured|policy ?holder|member|beneficiary|guardian|witness|sender|recipient|author|requestor|requester|employer|employee|contact|contact person|director|applicant|donor)"
)
#: Relatives. "Father: Prostate cancer" is more frequent than a name, so only a full name is masked behind these labels.
_RELATIVE = (
    r"(?:parent|mother|father|spouse|husband|wife|son|daughter|brother|sister|partner|aunt|uncle|cousin|niece|nephew|grand(?:mother|father|son|daughter)"
    r"|friend|neighbor)"
)
_NAME_LABEL = (
    rf"(?:{_RELATIVE}['’]?s (?:full |first |last |maiden )?name|{_PERSON_ROLE}(?:['’]?s)?(?:[ ](?:full |legal |first |last |maiden )?name)?|name of (?:the )?{_PERSON_ROLE}"
    rf"|(?:attending|ordering|referring|requesting|reporting|treating|primary care|admitting|consulting|supervising|interpreting|family|submitting|signing"
    rf"|responsible|operating|copy to)(?: (?:{_PERSON_ROLE}|md|by))?(?: name)?|(?:full|first|last|middle|maiden|legal|given|family|print(?:ed)?|preferred|sur)[ ]?name"
    r"|(?<!\w )name|names?|pcp|attn\.?|attention|cc|c\.c\.|bcc|re|regarding|from|to|dear|emergency contact|next of kin|nok|copies to|copy to"
    r"|(?:specimen )?submitted by|a\.?k\.?a\.?|alias|on behalf of)"
)
_SIGNED_BY = (
    r"(?:(?:electronically |digitally |e-?)?(?:signed|authenticated|verified|approved|reviewed|finali[sz]ed|dictated|transcribed|reported|interpreted|read"
    r"|performed|prepared|written|completed|ordered|requested|referred|collected|released|validated|authori[sz]ed|supervised|assisted|entered|edited"
    r"|attested|witnessed|cosigned|co-signed|seen|examined|drawn|accompanied|sent|received|submitted|diagnosed)(?: out)?(?: electronically)?"
    r"(?: on [\d/]+)? by)"
)
_TITLE = r"(?:drs?|doctors?|mr|mrs|ms|mx|miss|mister|prof|professor|sister|nurse|rev|father|fr|capt|sgt|lt|col|hon|sir|madam|dame|señora?|sra?|herr|frau)"

_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?"
    r"|dec(?:ember)?)\b\.?"
)
_MONTH_ABBREVIATION = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"
_YEAR = r"(?:1[89]|2[0O])[\dOoIl]{2}"
_DAY = r"(?:3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th)?"
_MONTH_NUMBER, _DAY_NUMBER = r"(?:1[0-2]|0?[1-9])", r"(?:3[01]|[12]\d|0?[1-9])"
_WEEKDAY = r"(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\.?,?[ ])?"
#: Words that must precede a partial date ("on 3/14"), which alone could be a blood pressure or a fraction.
_DATE_CONTEXT = (
    r"(?:on|in|since|until|till|from|by|dated?|of|before|after|through|thru|due|seen|done|placed|begun|began|last|past|early|late|mid|next"
    r"|during|visit|exam|scan|study|colonoscopy|mammogram|surgery|biopsy|lmp|dos|admitted|discharged|collected|received|reported)"
)
_US_STATE = (
    r"(?:(?-i:AL|AK|AZ|AR|CA|CO|CT|DE|FL|GA|HI|ID|IL|IN|IA|KS|KY|LA|ME|MD|MA|MI|MN|MS|MO|MT|NE|NV|NH|NJ|NM|NY|NC|ND|OH|OK|OR|PA|RI|SC|SD|TN|TX|UT|VT"
    r"|VA|WA|WV|WI|WY|DC)|Alabama|Alaska|Arizona|Arkansas|California|Colorado|Connecticut|Delaware|Florida|Georgia|Hawaii|Idaho|Illinois|Indiana|Iowa"
    r"|Kansas|Kentucky|Louisiana|Maine|Maryland|Massachusetts|Michigan|Minnesota|Mississippi|Missouri|Montana|Nebraska|Nevada|New (?:Hampshire|Jersey"
    r"|Mexico|York)|(?:North|South) (?:Carolina|Dakota)|Ohio|Oklahoma|Oregon|Pennsylvania|Rhode Island|Tennessee|Texas|Utah|Vermont|(?:West )?Virginia"
    r"|Washington|Wisconsin|Wyoming)"
)
_STREET_SUFFIX = (
    r"(?:street|str|road|rd|avenue|ave|av|boulevard|blvd|lane|ln|drive|court|place|parkway|pkwy|highway|hwy|terrace|ter|circle|cir|square|sq|trail|trl|way"
    r"|walk|row|crescent|close|alley|turnpike|pike|plaza|broadway|route|expressway|(?-i:St|Dr|Ct|Pl|ST|DR))"
)
_STREET_WORD = r"(?-i:[A-ZÀ-Þ0-9][\w.'’-]*)"
_CITY = r"(?-i:[A-ZÀ-Þ][\w'’-]*\.?(?:[ ][A-ZÀ-Þ][\w'’-]*\.?){0,3})"
_ZIP = r"\d{5}(?:-\d{4})?(?!\d)"
_CITY_STATE = rf"{_CITY},?[ ]+{_US_STATE}\b\.?,?(?:[ ]+{_ZIP})?"
_UNIT = r"(?:,?[ ]*(?:apt|apartment|suite|ste|unit|floor|fl|room|rm|bldg|building|#)\.?[ ]*#?[\w-]+)?"

#: The value behind an ID label: letters and digits with at least one digit, also in groups, up to the next word.
_ID_NUMBER = r"(?=[\w/.-]*\d|[A-Z]{2,5}[ -]\d)[A-Za-z0-9][\w/.-]*(?:[ ]\d[\w-]*){0,3}(?<![.,/-])"
_ID_LABEL = (
    r"(?:mrn|mr ?#|m\.r\.n\.?|(?:medical |med\.? ?|health |hospital |patient |clinic )?rec(?:ord)?\.? ?(?:no\.?|number|num\.?|id|#)|medical rec(?:ord)?\.?"
    r"|(?:hospital|unit|chart|patient|pt|client|member|subscriber|insurance|insured|policy|group|plan|payer|claim|account|acct|accession|acc|specimen|sample"
    r"|case|lab|laboratory|order|requisition|req|report|document|doc|visit|encounter|enc|exam|study|test|kit|barcode|batch|block|slide|referral|authorization"
    r"|auth|confirmation|reference|ref|invoice|billing|license|licence|lic|driver['’]?s licen[cs]e|passport|health card|employee|clinician|provider|physician"
    r"|social security|soc\.? sec\.?|medicare|medicaid|certificate|device|serial|pacemaker serial|lot|vehicle|control|file|tracking|transaction"
    r"|registration|nhs|national|tax|ein|pin)\.?[ ]?(?:(?:no|nr|num|id|nos)\b\.?|number|identifier|i\.d\.|#|id #)"
    r"|acc(?:ession)?\.? ?#|accn|csn|fin|har|npi|dea|clia|ssn|s\.s\.n\.?|social security|acct\.?|guid|uid|vin|upin|(?<!\w )id|(?<!\w )no\.)(?![^\W\d_])"
)
#: ID labels that are also ordinary words ("case", "visit"): masked only if the value has at least four digits.
_WEAK_ID_LABEL = (
    r"(?:acc(?:ession)?|medicare|medicaid|account|requisition|specimen|order|chart|sample|report|case|visit|encounter|(?:group|policy|claim)(?:/(?:claim|policy|group))?"
    r"|subscriber|member|lab|record)\b\.?"
)
_PHONE_LABEL = r"(?:tel(?:ephone)?|phone|ph|fax|facsimile|cell(?:ular)?|mobile|pager|beeper|home|work|office|call|contact(?: number)?|reached at|voice|direct|ext(?:ension)?|[tfpc](?=[:. ]))"

#: (mask, pattern) rows. The group ``v`` is the part that is masked; without that group, the whole match. If two matches
#: overlap, their union gets the mask of the earlier row.
_MASK_PATTERN_ROWS: tuple[tuple[str, str], ...] = (
    ("EMAIL", r"(?<![\w.+'’-])[\w.+'’-]++[ ]?@[ ]?[\w-]+(?:\.[\w-]+)+"),
    ("URL", r"(?:https?://|www\.)[^\s<>\"]+"),
    ("ID", r"(?<![\w.-])\d{3}-\d{2}-\d{4}(?![\w-])|(?<![\w.-])\d{3} \d{2} \d{4}(?![\w-])|(?:[X*]{3}-[X*]{2}-\d{4})"),
    ("ID", rf"(?<![\w-]){_ID_LABEL}(?:[ ]is)?{_LABEL_SEPARATOR}(?-i:(?P<v>{_ID_NUMBER}))"),
    ("ID", rf"(?<![\w-]){_WEAK_ID_LABEL}{_LABEL_SEPARATOR}(?=(?:[A-Z/.-]*\d){{4}})(?-i:(?P<v>{_ID_NUMBER}))"),
    ("PHONE", rf"(?<!\w){_PHONE_LABEL}(?: (?:no\.?|number|#))?[ \t]*[:.#]?[ \t]*(?P<v>(?:\+?\d{{1,3}}[ .-]?)?\(?\d{{3}}\)?(?:[ .-]?\d){{4,10}}(?:[ ]?(?:x|ext\.?)[ ]?\d+)?)"),
    ("PHONE", r"(?<![\w.-])(?:\+?1[ .-]?)?(?:\(\d{3}\)[ ]?|\d{3}[ .–-])\d{3}[ .–-]\d{4}(?:,?[ ]?(?:x|ext\.?|extension)[ ]?\d+)?(?![\w-])"),
    ("PHONE", r"(?<![\w.-])\+\d{1,3}(?:[ .-]?\(?\d{1,4}\)?){2,5}(?![\w])"),
    ("PHONE", r"(?<![\w.,/-])\d{3}-\d{4}(?![\w.-]\w)(?![ ]?(?:mg|ml|mcg|g|IU|units?)\b)"),
    ("DATE", rf"(?<![\w.-])\d{{4}}[ ]?[-/.][ ]?{_MONTH_NUMBER}[ ]?[-/.][ ]?{_DAY_NUMBER}(?:T[\d:.]+(?:Z|[+-]\d\d:?\d\d)?)?(?![\w/-])"),
    ("DATE", r"(?<![\w./-])\d{1,2}[ ]?([-/.])[ ]?\d{1,2}[ ]?\1[ ]?(?:\d{4}|\d{2})(?![\d/-])(?!\.\d)"),
    ("DATE", rf"(?<![\w./-])(?=(?:[^\d\s]{{0,4}}\d){{4}}){_OCR_DIGIT}{{1,2}}([-/.]){_OCR_DIGIT}{{1,2}}\1(?:{_OCR_DIGIT}{{4}}|{_OCR_DIGIT}{{2}})(?![\w/-])"),
    ("PHONE", rf"(?<![\w.-])\(?(?=(?:\D?\d){{4}}|\d){_OCR_DIGIT}{{3}}(?:\)[ ]?|[-. ]){_OCR_DIGIT}{{3}}[-. ]{_OCR_DIGIT}{{4}}(?![\w-])"),
    ("DATE", r"(?<![\w.-])(?:(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01]))(?![\w-])"),
    ("DATE", rf"(?<!\w){_WEEKDAY}(?:the[ ])?{_DAY}[ ,.-]*(?:day )?(?:of[ ])?{_MONTH}[ ,.-]*(?:of[ ])?(?:'?\d{{2}}(?!\d)|{_YEAR})(?!\w)"),
    ("DATE", rf"(?<!\w){_WEEKDAY}{_MONTH}[ ,.-]*(?:the[ ])?{_DAY}(?:[ ,.-]+'?(?:\d{{4}}|\d{{2}}(?!\d)))?(?![\w:/]|\.\d)"),
    ("DATE", rf"(?<!\w){_WEEKDAY}(?:the[ ])?{_DAY}[ -]+(?:of[ ])?(?-i:[A-Z]{{3}}\b|[A-Z][a-z]{{2,8}}\b)(?<={_MONTH_ABBREVIATION})(?!\w)"),
    ("DATE", rf"(?<!\w){_DAY} (?:of )?{_MONTH}(?!\w)"),
    ("DATE", rf"(?<!\w)\d{{1,2}}{_MONTH_ABBREVIATION}(?:{_YEAR}|\d{{2}})(?!\w)"),
    ("DATE", rf"(?<!\w){_MONTH}(?:[ ,/-]+(?:of[ ])?){_YEAR}(?!\w)"),
    ("DATE", rf"(?<!\w)(?-i:[A-Z][a-z]{{2}}|[A-Z]{{3}})(?<={_MONTH_ABBREVIATION})[ ]'?\d{{2}}(?![\w%/]|\.\d|[ ](?:mg|ml|mm|cm))"),
    ("DATE", rf"(?<![\w./])(?:{_MONTH_NUMBER})[/-]{_YEAR}(?![\w/])"),
    ("DATE", rf"(?<!\w){_DATE_CONTEXT}:?[ ](?P<v>{_MONTH_NUMBER}[/-](?:{_DAY_NUMBER}|\d{{2}}))(?![\w/%-]|\.\d)(?![ ](?:mmhg|lymph|nodes?|mg|strength|pain))"),
    ("DATE", rf"(?<!\w){_DATE_CONTEXT}[ ](?P<v>(?-i:January|February|March|April|May|June|July|August|September|October|November|December))(?!\w)"),
    ("DATE", rf"(?<!\w)(?:d\.?o\.?b\.?|date of birth|birth ?date|born|birthday){_LABEL_SEPARATOR}(?P<v>[\w/.,' -]{{4,18}}?\d)(?!\w)"),
    ("DATE", rf"(?<!\w)(?:(?:twenty|thirty)[- ])?(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth|\w+teenth|twentieth|thirtieth)[ ](?:of[ ])?{_MONTH}(?:,?[ ]{_YEAR})?"),
    ("AGE", r"(?<![\w.-])(?P<v>9\d|1[0-2]\d)[- ]?(?:years?|yrs?|y\.?[ /]?o\.?|y/o|yo)\b"),
    ("AGE", r"(?<!\w)(?:aged?|age/sex|age & sex|sex/age)[ ]*[:=]?[ ]*(?:of )?(?P<v>9\d|1[0-2]\d)(?![\d.%])"),
    ("AGE", r"(?<!\w)(?P<v>ninety(?:[- ]\w+)?|(?:one|a) hundred(?: and \w+)?)[- ]years?[- ]old"),
    ("AGE", r"(?<!\w)(?:his|her|their) (?P<v>nineties|90['’]?s)\b"),
    ("ADDRESS", rf"(?<![\w./-])\d{{1,6}}[A-Z]?[ ](?:{_STREET_WORD}[ ]){{1,4}}{_STREET_SUFFIX}\b\.?(?:[ ](?-i:[NSEW]{{1,2}})\b)?{_UNIT}(?:,?[ \n]+{_CITY_STATE})?(?:,[ ]{_CITY}(?=[\n.,;]|$))?"),
    ("ADDRESS", rf"(?<!\w)p\.?[ ]?o\.?[ ]?box[ ]\d+(?:,?[ \n]+{_CITY_STATE})?"),
    ("ADDRESS", rf"(?<![\w'’-]){_CITY},?[ ]+{_US_STATE}\.?,?[ ]+{_ZIP}"),
    # These state abbreviations, if no ZIP code follows, are rather degrees, words or examinations ("MD", "OR", "CT").
    ("ADDRESS", rf"(?<!\w)(?-i:[A-ZÀ-Þ][a-zà-ÿ'’-]+\.?(?:[ ][A-ZÀ-Þ][a-zà-ÿ'’-]+\.?){{0,3}}),[ ](?!(?:MD|PA|MS|MA|OR|IN|ME|HI|OK|ID|CT)\b){_US_STATE}(?![\w])"),
    ("ADDRESS", rf"(?<!\w)(?:zip(?: ?code)?|postal code|postcode){_LABEL_SEPARATOR}(?P<v>[A-Z0-9][A-Z0-9 -]{{2,9}})\b"),
    ("ADDRESS", r"(?<!\w)(?:(?:home|street|mailing|postal|billing|e-?mail)?[ ]?address|residence|resides at|lives at|mail to)[ ]*[:\n][ ]*(?P<v>[^\n\t]{4,80})"),
    ("ADDRESS", rf"(?<!\w)(?:city|town|county)(?:/state)?[ ]*:[ ]*(?P<v>{_CITY})"),
    ("NAME", rf"(?<![\w-]){_SIGNED_BY}[ ]*:?[ \n]*(?:{_TITLE}\b\.?[ ]*)?(?P<v>{_PERSON_NAME})"),
    ("NAME", rf"(?m:^)(?-i:From|FROM|To|TO|Attn|ATTN|Re|RE)[ ](?P<v>{_FULL_NAME})"),
    ("NAME", rf"(?m:^)[ ]*(?P<v>{_FULL_NAME})(?:[ ,]+[\d/.:-]{{6,10}}(?:[ ,]+[\d:]+)?)?[ ]*\n(?=[^\n]{{0,40}}\b(?:{_PERSON_ROLE}|signed|signature|chief|fellow|resident)\b)"),
    ("NAME", rf"/s/[ ]*(?P<v>{_PERSON_NAME})"),
    ("NAME", rf"(?<!\w)(?-i:X)[ _]{{1,20}}(?P<v>{_FULL_NAME})"),
    ("NAME", rf"(?<!\w)(?:signed|signature|e-signed|sign here|initials)[ ]*:[ ]*(?P<v>{_PERSON_NAME})"),
    ("NAME", rf"(?<!\w)(?:sincerely|regards|respectfully|yours truly|thank you|faithfully|cordially)(?: yours)?,?\s+(?P<v>{_PERSON_NAME})"),
    ("NAME", rf"(?<![\w-]){_NAME_LABEL}[ ]*+(?:\([^)\n]{{0,20}}\)[ ]*+)?(?::|\t|[–-][ ])[ \t]*+\n?(?:{_TITLE}\b\.?[ ]*)?(?P<v>{_PERSON_NAME})"),
    ("NAME", rf"(?<![\w-])(?:{_PERSON_ROLE}(?:['’]?s)?[ ]?name|name of (?:the )?{_PERSON_ROLE}|(?:attending|ordering|referring|requesting) (?:physician|provider)|guarantor|pcp|attn)[ ]*[:\n]?[ ]*(?:{_TITLE}\b\.?[ ]*)?(?P<v>{_PERSON_NAME})"),
    ("NAME", r"(?<![\w-])(?:(?:patient|client|pt|physician|provider|first|last|full)(?:['’]?s)? name|surname|maiden name)[ ]*[:\t][ ]*(?P<v>[^\W\d_][\w'’-]+(?:,?[ ][^\W\d_][\w'’.-]*){0,2})"),
    ("NAME", r"(?m:^)[ ]*(?:patient|name)[ ]*:[ ]*(?P<v>[^\W\d_][\w'’-]+(?:[ ][^\W\d_][\w'’.-]*){1,3})[ ]*(?m:$)"),
    ("NAME", rf"(?<!\w){_TITLE}(?:[ ]?\.[ ]?|[ ])(?P<v>(?:(?-i:[{_CAPITALS}]\.)[ ]?)*{_PERSON_NAME})"),
    ("NAME", r"(?<!\w)(?:dr|mr|mrs|ms)\.[ ](?P<v>(?-i:[a-zà-ÿ])[\w'’-]{2,})"),
    ("NAME", r"(?<![^\W_])(?:dr|mr|mrs|ms|prof)_(?P<v>[^\W\d_][\w-]*+)"),
    ("NAME", rf"(?<![\w-])(?P<v>[\w-]++)(?:{'|'.join(map(re.escape, SUFFIXES))})(?![^\W_])"),
    ("NAME", rf"(?<![\w'’-])(?P<v>{_NAME_PART}(?:[ ]{_NAME_PART}){{0,3}}),?[ ]{_DEGREE}(?!\w)"),
    ("NAME", rf"(?<![\w'’-])(?P<v>{_FULL_NAME})(?=,?[ ](?:is|was|has|had)[ ]an?[ ]|,?[ ]an?[ ]\d{{1,3}}[ -]?y)"),
    ("NAME", rf"(?<!\w){_RELATIVE}[ ]*:[ ]*(?P<v>{_FULL_NAME})"),
    ("NAME", rf"(?<!\w)(?:the )?(?:patient|pt\.?|{_RELATIVE}|caregiver|named|called|concerns|saw|spoke (?:with|to)|discussed with|met with|thank you for (?:referring|seeing)|call(?:ed)?|met|greet(?:ed)?)(?:,[ ]|[ ])(?P<v>{_FULL_NAME})"),
    ("ID", r"(?<![\w.:/_>+-])(?-i:[A-Z]{1,4}(?:-[A-Z]{1,4})?-\d{4,}|[A-Z]{1,3}\d{2}-\d{3,}(?:-\d+)?|\d{2}[A-Z]{1,3}-?\d{4,}|[A-Z]{2}-[A-Z]{2}-\d{3,})(?![\w.]\w)"),
    ("ID", r"(?<![\w.:/_>,$+-])\d{7,}(?![\w:_>-]|[.,]\d)|(?<![\w.:/_>,$+-])\d{2,4}-\d{3,}-\d{4,}(?![\w-])"),
)  # fmt: skip
_MASK_PATTERNS = tuple((mask, re.compile(pattern, re.IGNORECASE)) for mask, pattern in _MASK_PATTERN_ROWS)

_PARTICLES_BEFORE_NAME = re.compile(rf"(?<!\w)(?:{_NAME_PARTICLES})\Z", re.IGNORECASE)

#: Words that may appear in a label's value without being part of a name: masking them everywhere would hide findings.
_NON_NAME_WORDS = frozenset(
    [
        "admission",
        "adult",
        "ambulatory",
        "anatomic",
        "appointment",
        "assessment",
        "automated",
        "blood",
        "cancer",
        "cell",
        "chart",
        "clinical",
        "confidential",
        "discharge",
        "electronic",
        "emergency",
        "evaluation",
        "family",
        "female",
        "final",
        "follow",
        "followup",
        "genetic",
        "genetics",
        "genomic",
        "genomics",
        "hematology",
        "hereditary",
        "impression",
        "inpatient",
        "internal",
        "lab",
        "left",
        "male",
        "mass",
        "medicine",
        "medication",
        "neurology",
        "new",
        "normal",
        "note",
        "nursing",
        "oncology",
        "outpatient",
        "panel",
        "pathology",
        "pending",
        "plan",
        "positive",
        "negative",
        "pain",
        "primary",
        "procedure",
        "progress",
        "radiology",
        "referral",
        "regarding",
        "report",
        "request",
        "requisition",
        "result",
        "results",
        "review",
        "right",
        "routine",
        "scan",
        "screening",
        "self",
        "breast",
        "prostate",
        "colon",
        "ovarian",
        "lung",
        "heart",
        "kidney",
        "liver",
        "brain",
        "skin",
        "bone",
        "stroke",
        "diabetes",
        "hypertension",
        "stage",
        "summary",
        "surgery",
        "surgical",
        "symptoms",
        "test",
        "therapy",
        "treatment",
        "tumor",
        "university",
        "unknown",
        "urgent",
        "variant",
        "associates",
        "company",
        "corporation",
        "diagnostics",
        "group",
        "foundation",
        "imaging",
        "inc",
        "institute",
        "laboratories",
        "llc",
        "molecular",
        "partners",
        "regional",
        "services",
        "mr",
        "mrs",
        "ms",
        "mx",
        "miss",
        "mister",
        "dr",
        "drs",
        "doctor",
        "prof",
        "professor",
        "sister",
        "nurse",
        "rev",
        "father",
        "sir",
        "madam",
        "jr",
        "sr",
        "ii",
        "iii",
    ]
)

#: Ordinary English words in file names that identify nobody, in addition to the lexicon's words.
_FILE_NAME_WORDS = """
a about above abstract access adult after again all also altered am an analyst and annual anonymous answer any appendix
april archive are as at attached attachment august back bad be because been before below between big blank board book
both bottom box but by can card case cd chart chest clean client color combined complete copies copy correct corrupt
count couple cover current cut daily damaged data date day days december deidentified demo department did different
do doc docs document documents does done double down download draft due duplicate during each early edited eight
eighteen eleven email empty encounter end english episode error even every example export external fabricated fake
false fax faxed february few fifteen fifth file files final first five folder follow form forms four fourteen fourth
friday from full further general genuine get go good group had half hand hard has have he her here high him his
history home hospital hour how id if image img in inbox incoming index input internal into is it its item items
january job july june just kind large last late latest left legible less letter level like line list lists little
local low made mail main male man manual many master me media men merged message middle mini minor misc missing mixed
model monday month more most mr mrs ms much multi multiple my name names never new next night nine no non none normal
not notes nothing november number numbered october of off office old on once one only open or order original other
others our out outgoing outside over own packet packets page pages paper part partial parts past patient patients pdf
per person photo piece place plain please poor portal post practice print printed private probe production proof public
put quarter quick quote quotes random raw read ready real rec received record records redacted release remote repeat
replaced req request rescan result results reviewer review revised right rotated round same sample samples saturday
save saved scan scanned scans script second section segment segments send sent september series set seven several
shared shares she short should show side signed simulated single six sixteen sixth size small so some split stack
staff standard start state still strange subset such sunday supplement synthetic system table tables taken temp ten
test tests text than that the their them then there these they thing third thirteen this those three through thursday
time tiny to today together too top total transcript true truth try tuesday twelve twenty two type unclear under
unknown unread unreadable unsigned until untitled up update updated upload urgent us use used user using version very
via visit was we wednesday week well were wet what when where which while who whole why will with within without
woman women word words work working would wrong xray year years yes yesterday yet you your zero zip
ap bx cc ct cta cv cxr dc dx ecg ed eeg ekg ent er ems fx gi gp gu hp hx icu ip iv jan feb mar apr jun jul aug sep
sept oct nov dec lab mg mra mri mrn no nos nr ob op ot pa pe pet pid pm pt pts px rt rx sw tx us vs ws xr
"""
#: Words that are also names ("may", "hope"): masked only if written with a capital.
_WORDS_THAT_ARE_ALSO_NAMES = frozenset(
    re.findall(
        r"\w+",
        """
        april august baylor bell bill black bloom blue brown castle dean drew ford frank glass gleason grace grant gray green
        grey hall hill hope hunt joy june king lane law little long love mark marks may mayo mill mills moon nottingham park
        pike pole price rich richardson rose sanger star stone violet ward white wild will winter wise wood young
        """,
    )
)
#: Words with a typical medical or technical ending ("-ectomy", "-graphy"), which are no names.
_TERM_SUFFIX_PATTERN = re.compile(r"\w{3,}(?:tions?|logy|graphy|scopy|ectomy|ical|ated|ized)")


@dataclass(frozen=True)
class KnownIdentifiers:
    """Names and numbers known to identify somebody, masked wherever they appear."""

    names: frozenset[str] = frozenset()
    """Full names, as written in the document."""
    numbers: frozenset[str] = frozenset()
    """Record numbers and other labelled numbers, as written in the document."""
    folder_words: frozenset[str] = frozenset()
    """Identifying words of the output folder's file and reviewer names, in lower case
    (``PseudonymMap.folder_words``)."""

    @classmethod
    def from_bundle(cls, bundle: DocumentBundle) -> KnownIdentifiers:
        """Collect the names and numbers that are labelled anywhere in a document."""
        labelled_identifiers = find_labelled_identifiers([page.text for page in bundle.pages])
        page_identifiers = [identifier for page in bundle.pages for identifier in page.identifiers]
        return cls(
            names=labelled_identifiers.names
            | {identifier.value for identifier in page_identifiers if identifier.kind == "patient"},
            numbers=labelled_identifiers.numbers
            | {identifier.value for identifier in page_identifiers if identifier.kind == "mrn"},
        )

    @cached_property
    def pattern(self) -> re.Pattern[str] | None:
        """Pattern of all names and numbers (groups ``name``, ``number``); None if empty."""
        name_parts = {name_part for name in self.names for name_part in _iterate_name_parts(name)}
        spellings = {
            spelling
            for name_part in name_parts
            for spelling in (name_part, name_part.upper(), name_part.title(), name_part.capitalize())
        }
        alternatives = []
        if spellings:
            any_spelling = "|".join(
                re.escape(spelling) for spelling in sorted(spellings, key=lambda form: (-len(form), form))
            )
            any_case = "|".join(
                re.escape(name_part) for name_part in sorted(name_parts, key=lambda part: (-len(part), part))
            )
            # In lower case, only two name parts in a row match: "may" and "long" alone are ordinary words.
            alternatives.append(
                rf"(?P<name>(?<![^\W_])(?:{any_spelling})(?:[ ](?:{any_spelling})|,[ ]?(?:{any_spelling})|[ ][{_CAPITALS}]\.(?=[ ](?:{any_spelling})))*(?![^\W_])"
                rf"|(?<![^\W_])(?i:(?:{any_case})[ ,]+(?:\w\.?[ ])?(?:{any_case}))(?![^\W_]))"
            )
        numbers = sorted(self.numbers, key=lambda number: (-len(number), number))
        if numbers:
            alternatives.append(rf"(?P<number>(?<!\w)(?i:{'|'.join(re.escape(number) for number in numbers)})(?!\w))")
        return re.compile("|".join(alternatives)) if alternatives else None


NO_IDENTIFIERS = KnownIdentifiers()


def find_labelled_identifiers(texts: Iterable[str]) -> KnownIdentifiers:
    """Collect names with a label, title or degree, and labelled numbers, in texts.

    Numbers with fewer than four digits are left out.
    """
    masked_values = [(mask, text[start:end]) for text in texts for mask, start, end in _find_pattern_matches(text)]
    numbers = {value for mask, value in masked_values if mask == "ID" and _count_digits(value) >= 4}
    return KnownIdentifiers(frozenset(value for mask, value in masked_values if mask == "NAME"), frozenset(numbers))


def _iterate_name_parts(name: str) -> Iterator[str]:
    """Yield a name's identifying words, without initials, titles and form words."""
    for name_part in re.findall(r"[^\W\d_](?:[\w'’-]*\w)?", name):
        if (
            len(name_part) > 1
            and name_part[0].isupper()
            and name_part.casefold() not in _NON_NAME_WORDS
            and not re.fullmatch(_DEGREE, name_part)
        ):
            yield name_part


def _count_digits(text: str) -> int:
    return sum(character.isdigit() for character in text)


@lru_cache(maxsize=64)  # each page is searched twice: for the names of the whole document, then to mask the page
def _find_pattern_matches(text: str) -> tuple[tuple[str, int, int], ...]:
    return tuple(
        (mask, *match.span("v" if "v" in pattern.groupindex else 0))
        for mask, pattern in _MASK_PATTERNS
        for match in pattern.finditer(text)
    )


def find_mask_spans(text: str, known_identifiers: KnownIdentifiers = NO_IDENTIFIERS) -> list[tuple[int, int, str]]:
    """List the spans to mask: (start, exclusive end, mask), sorted, not overlapping."""
    known_matches = [] if known_identifiers.pattern is None else [
        ("NAME" if match.lastgroup == "name" else "ID", _find_name_start(text, match.start()), match.end())
        for match in known_identifiers.pattern.finditer(text)
    ]  # fmt: skip
    ranked_spans = sorted(
        (start, end, rank, mask)
        for rank, (mask, start, end) in enumerate(
            chain(
                _find_pattern_matches(text),
                known_matches,
                _iterate_folder_word_masks_with_spans(known_identifiers.folder_words, text),
            )
        )
        if end > start
    )
    merged_spans: list[tuple[int, int, int, str]] = []
    for start, end, rank, mask in ranked_spans:
        if merged_spans and start < merged_spans[-1][1]:
            previous_span = merged_spans[-1]
            first_ranked_mask = min((previous_span[2], previous_span[3]), (rank, mask))
            merged_spans[-1] = (previous_span[0], max(previous_span[1], end), *first_ranked_mask)
        else:
            merged_spans.append((start, end, rank, mask))
    return [(start, end, mask) for start, end, _, mask in merged_spans]


def _iterate_folder_word_masks_with_spans(folder_words: Container[str], text: str) -> Iterator[tuple[str, int, int]]:
    """Yield (mask, start, end) for each word that occurs in a file or reviewer name."""
    for token in _TOKEN_PATTERN.finditer(text):
        if token[0].startswith(_DOCUMENT_PREFIX):
            continue
        if token[0].casefold() in folder_words and _is_written_as_name(token[0]):
            yield ("ID" if _count_digits(token[0]) else "NAME"), token.start(), token.end()
        elif not token[0].isalpha():
            for part in _LETTERS_PATTERN.finditer(token[0]):
                if part[0].casefold() in folder_words and _is_written_as_name(part[0]):
                    yield "NAME", token.start() + part.start(), token.start() + part.end()


def _is_written_as_name(word: str) -> bool:
    return word[0].isupper() or (len(word) > 2 and word.casefold() not in _WORDS_THAT_ARE_ALSO_NAMES)


def _find_name_start(text: str, start: int) -> int:
    """Return the start of a name, including particles before it ("de la" Fontaine)."""
    particles = _PARTICLES_BEFORE_NAME.search(text, max(start - 12, 0), start)
    return particles.start() if particles else start


def mask_text(text: str, known_identifiers: KnownIdentifiers = NO_IDENTIFIERS) -> str:
    """Return the text with identifiers replaced by masks such as ``[NAME]``.

    Further masks: ``[PHONE]``, ``[EMAIL]``, ``[URL]``, ``[ADDRESS]``, ``[ID]``, ``[AGE]``. ``known_identifiers`` are
    the names and numbers labelled on any page of the document; they are masked too.

    >>> mask_text("Patient: Helen Marsh  DOB: 03/22/1971. Mrs. Marsh is 66 years old, BRCA1 c.5266dupC, 12.5 mg.")
    'Patient: [NAME]  DOB: [DATE]. Mrs. [NAME] is 66 years old, BRCA1 c.5266dupC, 12.5 mg.'
    """
    text_parts, position = [], 0
    for start, end, mask in find_mask_spans(text, known_identifiers):
        text_parts += [text[position:start], f"[{mask}]"]
        position = end
    return "".join([*text_parts, text[position:]])


# --- records --------------------------------------------------------------------------------------------------------


_DOCUMENT_PREFIX = "doc_"


def create_document_pseudonym(sha256: str) -> str:
    """Create a document's pseudonym: ``doc_`` and 12 digits of the PDF's hash."""
    return f"{_DOCUMENT_PREFIX}{sha256[:12]}"


def assign_reviewer_pseudonyms(reviewers: Iterable[str]) -> dict[str, str]:
    """Return a pseudonym (``reviewer_1`` …) for each reviewer, in order of hashes.

    Simulated reviewers (programs) keep their prefix.
    """
    sorted_reviewers = sorted(
        set(reviewers), key=lambda name: hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()
    )
    return {
        reviewer: f"{SIMULATED_PREFIX if is_simulated_reviewer(reviewer) else ''}reviewer_{number}"
        for number, reviewer in enumerate(sorted_reviewers, 1)
    }


#: A run of letters and digits, or a document's pseudonym as a whole.
_TOKEN_PATTERN = re.compile(rf"{_DOCUMENT_PREFIX}[0-9a-f]{{12}}(?![^\W_])|[^\W_]+")
_LETTERS_PATTERN = re.compile(r"[^\W\d_]+")
_FILE_ENDING = re.compile(rf"(?:{'|'.join(map(re.escape, SUFFIXES))})(?![^\W_])", re.IGNORECASE)
#: Maximum number of characters between two words of a name, such as ", " or " (".
_MAX_NAME_GAP = 3


@dataclass(frozen=True)
class NamedDocument:
    """The names under which notes may mention a document of the output folder."""

    doc_id: str
    filename: str
    """File name of the PDF, with its extension."""
    sha256: str | None
    """SHA-256 of the PDF; None if neither ground truth, index nor result records it."""


@dataclass(frozen=True)
class _NameForm:
    """One spelling of a document's or reviewer's name, with its pseudonym."""

    words: tuple[str, ...]
    spelling: str
    pseudonym: str
    is_file: bool

    @cached_property
    def is_identifying(self) -> bool:
        """True if at least one word identifies the file or person; False for "ct_scan"."""
        return any(word not in _WORDS_THAT_ARE_ALSO_NAMES for word in _iterate_identifying_words(self.spelling))

    def is_name_reference(self, matched_text: str, *, has_file_ending: bool) -> bool:
        """Return True if the matched words mean this file or reviewer, not ordinary words."""
        if self.is_identifying or (has_file_ending and self.is_file):
            return True
        if not self.is_file:  # the reviewer "analyst" is not meant by "Analyst": the letter case must match
            return len(matched_text) > 1 and matched_text == self.spelling
        is_code = (
            not matched_text.isalpha()
            and not matched_text.isdigit()
            and len(matched_text) > 3
            and matched_text.isalnum()
        )
        return matched_text.casefold() == self.spelling.casefold() and (
            "_" in matched_text or (is_code and not _is_medical_term(matched_text))
        )


class PseudonymMap:
    """Pseudonyms of an output folder's documents and reviewers; replaces their names.

    Names are found in any letter case, with any separators between their words, and with or without the extension
    ``.pdf``. A name that consists of ordinary words only is found only if written exactly the same.
    """

    def __init__(self, documents: Iterable[NamedDocument], reviewers: Iterable[str]) -> None:
        named_documents = list(documents)
        self.reviewer_pseudonyms = assign_reviewer_pseudonyms(reviewers)
        """Reviewer's name → pseudonym."""
        self.document_pseudonyms = {
            named_document.doc_id: create_document_pseudonym(named_document.sha256)
            if named_document.sha256
            else "[NAME]"
            for named_document in named_documents
        }
        """doc_id → pseudonym; ``[NAME]`` if the PDF's hash is unknown."""
        name_forms = {
            _NameForm(_fold_name_words(name), name, pseudonym, is_file=False)
            for name, pseudonym in self.reviewer_pseudonyms.items()
        }
        for named_document in named_documents:
            for name in (named_document.doc_id, _FILE_ENDING.sub("", named_document.filename)):
                name_forms.add(
                    _NameForm(
                        _fold_name_words(name), name, self.document_pseudonyms[named_document.doc_id], is_file=True
                    )
                )
        sorted_forms = sorted(name_forms, key=lambda form: (-len(form.words), form.spelling, form.pseudonym))
        self._forms_by_first_word = group_by((form for form in sorted_forms if form.words), lambda form: form.words[0])
        identifying_names = (
            name_form.spelling
            for name_form in name_forms
            if name_form.is_file or not is_simulated_reviewer(name_form.spelling)
        )
        self.folder_words = frozenset(word for name in identifying_names for word in _iterate_identifying_words(name))
        """Identifying words of all file and reviewer names, in lower case, for ``KnownIdentifiers.folder_words``."""

    def pseudonymise_text(self, text: str) -> str:
        """Return the text with all documents' and reviewers' names replaced by pseudonyms."""
        tokens = list(_TOKEN_PATTERN.finditer(text))
        folded_tokens = [token[0].casefold() for token in tokens]
        text_parts, position, token_index = [], 0, 0
        while token_index < len(tokens):
            replacement = next(self._iterate_pseudonyms_at(text, tokens, folded_tokens, token_index), None)
            if replacement is None:
                token_index += 1
                continue
            pseudonym, end, token_count = replacement
            text_parts += [text[position : tokens[token_index].start()], pseudonym]
            position, token_index = end, token_index + token_count
            while token_index < len(tokens) and tokens[token_index].start() < end:  # skip the file extension
                token_index += 1
        return "".join([*text_parts, text[position:]])

    def _iterate_pseudonyms_at(
        self, text: str, tokens: Sequence[re.Match[str]], folded_tokens: Sequence[str], token_index: int
    ) -> Iterator[tuple[str, int, int]]:
        """Yield the names that begin at a token, longest first.

        Each is a tuple of pseudonym, end position in the text and number of tokens.
        """
        for name_form in self._forms_by_first_word.get(folded_tokens[token_index], ()):
            name_tokens = tokens[token_index : token_index + len(name_form.words)]
            if tuple(folded_tokens[token_index : token_index + len(name_form.words)]) != name_form.words:
                continue
            if any(next_token.start() - token.end() > _MAX_NAME_GAP for token, next_token in pairwise(name_tokens)):
                continue
            start, end = name_tokens[0].start(), name_tokens[-1].end()
            ending_match = _FILE_ENDING.match(text, end)
            if name_form.is_name_reference(text[start:end], has_file_ending=ending_match is not None):
                yield name_form.pseudonym, ending_match.end() if ending_match else end, len(name_tokens)


def _fold_name_words(name: str) -> tuple[str, ...]:
    """Return a name's words in lower case, with composed (NFC) accents."""
    return tuple(token[0].casefold() for token in _TOKEN_PATTERN.finditer(unicodedata.normalize("NFC", name)))


def _iterate_identifying_words(name: str) -> Iterator[str]:
    """Yield a name's identifying words, without ordinary words and short numbers.

    Words are in lower case.
    """
    for token in _fold_name_words(name):
        if _count_digits(token) > (4 if token.isdigit() else 3):
            yield token
        elif not _is_medical_term(token):
            yield from (
                letters
                for letters in _LETTERS_PATTERN.findall(token)
                if len(letters) > 1 and not _is_ordinary_word(letters)
            )


def _is_ordinary_word(word: str) -> bool:
    if word in _WORDS_THAT_ARE_ALSO_NAMES:
        return False
    return (
        bool({word, word.removesuffix("s")} & _load_ordinary_words())
        or _TERM_SUFFIX_PATTERN.fullmatch(word) is not None
    )


@cache
def _load_ordinary_words() -> frozenset[str]:
    """Load words that identify nobody: of file names, forms, types and vendors."""
    groups = (chain(group.phrases, group.symbols) for group in load_lexicon().groups)
    vendor_names = ((vendor.name, *vendor.names, *vendor.short_names) for vendor in load_vendors())
    joined_text = " ".join(chain.from_iterable(chain(groups, vendor_names)))
    return _NON_NAME_WORDS | {word.casefold() for word in _LETTERS_PATTERN.findall(f"{joined_text} {_FILE_NAME_WORDS}")}


def _is_medical_term(word: str) -> bool:
    return any(re.fullmatch(pattern, word, re.IGNORECASE) for pattern in _MEDICAL_TERM_PATTERNS.values())


def deidentify_document(
    document: GroundTruthDocument, known_identifiers: KnownIdentifiers, pseudonym_map: PseudonymMap
) -> GroundTruthDocument:
    """Return a copy of a record with pseudonyms and with its free text masked.

    ``known_identifiers`` are those of the record's document. ``pseudonym_map`` covers the whole output folder, because
    notes may mention other documents. KeyError if the record's document or a reviewer has no pseudonym.
    """
    record = document.record

    def redact(text: str) -> str:
        return mask_text(pseudonym_map.pseudonymise_text(text), known_identifiers)

    classification = _redact_classification(record.ground_truth_classification, redact)
    redacted_record = record.model_copy(
        update={
            "doc_id": pseudonym_map.document_pseudonyms[record.doc_id],
            "ground_truth_classification": classification,
            "correction_notes": redact(record.correction_notes),
            "reviewer": record.reviewer and pseudonym_map.reviewer_pseudonyms[record.reviewer],
        }
    )
    answer_reviewers = tuple(pseudonym_map.reviewer_pseudonyms[reviewer] for reviewer in document.answer_reviewers)
    return replace(document, record=redacted_record, answer_reviewers=answer_reviewers)


def _redact_classification(classification: ClassificationOutput, redact: Callable[[str], str]) -> KeyedClassification:
    answer_json = classification.to_json()
    for segment in answer_json["segments"]:
        segment["reasoning"] = redact(segment["reasoning"])
        for presence in segment["segment_composition"]:
            for evidence in presence["top_evidence"]:
                evidence["snippet"] = redact(evidence["snippet"])
                evidence["anchors_found"] = [redact(anchor) for anchor in evidence["anchors_found"]]
    answer_json["vendor_signals"] = [redact(signal) for signal in answer_json["vendor_signals"]]
    answer_json["self_evaluation"] = _redact_json(answer_json["self_evaluation"], redact)
    return KeyedClassification.model_validate(answer_json)


#: A number of five or more digits: in free-form JSON any such number may be a record number.
_LONG_NUMBER_PATTERN = re.compile(r"(?<![\w.,-])\d{5,}(?![\w-]|[.,]\d)")
_MIN_IDENTIFYING_NUMBER = 10_000


def _redact_json(json_value: Any, redact: Callable[[str], str]) -> Any:
    """Redact every text and key of a JSON value; mask numbers of five or more digits."""
    if isinstance(json_value, str):
        return _LONG_NUMBER_PATTERN.sub("[ID]", redact(json_value))
    if isinstance(json_value, list):
        return [_redact_json(member, redact) for member in json_value]
    if isinstance(json_value, dict):
        return {_redact_json(key, redact): _redact_json(member, redact) for key, member in json_value.items()}
    if (
        isinstance(json_value, int | float)
        and abs(json_value) >= _MIN_IDENTIFYING_NUMBER
        and (isinstance(json_value, int) or json_value.is_integer())
    ):
        return "[ID]"
    return json_value


# --- how good it is -------------------------------------------------------------------------------------------------


@cache
def _load_planted_texts() -> dict[str, dict[str, list[str]]]:
    return tomllib.loads((files("evalkit.evaluation") / "planted.toml").read_text("utf-8"))


def measure_missed_planted_identifiers(seed: int, count_per_kind: int) -> pd.DataFrame:
    """Plant invented identifiers into sentences and count those that survive masking.

    Columns: ``kind``; ``planted`` (``count_per_kind``); ``missed``: identifiers of which at least one word or number is
    left after masking; ``share``: missed / planted; ``high``, the upper end of the share's exact 95 % interval (Clopper
    and Pearson, 1934). Names and sentences come from ``planted.toml``. The same seed gives the same table.
    """
    import pandas as pd

    rows = []
    for kind in _load_planted_texts()["sentences"]:
        rng = random.Random(f"{seed}:{kind}")  # noqa: S311 - examples, no secrets
        missed_count = sum(_is_any_word_left_after_masking(*_create_example(kind, rng)) for _ in range(count_per_kind))
        rows.append(
            (
                kind,
                count_per_kind,
                missed_count,
                missed_count / count_per_kind,
                estimate_proportion(missed_count, count_per_kind).high,
            )
        )
    return pd.DataFrame(rows, columns=["kind", "planted", "missed", "share", "high"])


def _create_example(kind: str, rng: random.Random) -> tuple[list[str], str]:
    """Create page texts, and the planted identifier as written on the last page."""
    words = _load_planted_texts()["words"]
    identifier = _fill_template(rng.choice(_load_planted_texts()["values"][kind]), words, rng)
    sentence = rng.choice(_load_planted_texts()["sentences"][kind])
    *_, last_part = identifier.split(" ", 1)
    substitutions = {"value": identifier, "other": last_part, "OTHER": last_part.upper()}
    pages = [page.format(**substitutions) for page in sentence.split("|")]
    return pages, identifier if len(pages) == 1 else substitutions["OTHER"] if "{OTHER}" in sentence else last_part


def _fill_template(template: str, words: Mapping[str, Sequence[str]], rng: random.Random) -> str:
    chosen_words = {name: rng.choice(values) for name, values in words.items()}
    year, month, day = rng.randint(1930, 2025), rng.randint(1, 12), rng.randint(1, 28)
    ascii_names = {name: re.sub(r"[^a-z]", "", chosen_words[name].casefold()) for name in ("given", "family")}
    filled_text = template.format(
        **chosen_words | {"month": words["month"][month - 1], "mon": words["month"][month - 1][:3]},
        MON=words["month"][month - 1][:3].upper(),
        GIVEN=chosen_words["given"].upper(),
        FAMILY=chosen_words["family"].upper(),
        initial=chosen_words["given"][0],
        INITIAL=chosen_words["street"][0],
        family_ascii=ascii_names["family"],
        given_small=chosen_words["given"].casefold(),
        family_small=chosen_words["family"].casefold(),
        GIVEN_ASCII=ascii_names["given"].upper(),
        m=month,
        d=day,
        mm=f"{month:02d}",
        dd=f"{day:02d}",
        year=year,
        yy=f"{year % 100:02d}",
    )
    characters_by_sign = {"#": "0123456789", "@": "ABCDEFGHJKLMNPRSTUVWXYZ"}
    # In an e-mail address, "@" is not a placeholder.
    letter_sign = "@" if "{mail}" not in template else ""
    return "".join(rng.choice(characters_by_sign[sign]) if sign in ("#", letter_sign) else sign for sign in filled_text)


def _is_any_word_left_after_masking(pages: list[str], identifier: str) -> bool:
    """Return True if part of the identifier is left on the last page after masking."""
    remaining_words = set(
        re.findall(r"\w+", re.sub(r"\[[A-Z]+\]", " ", mask_text(pages[-1], find_labelled_identifiers(pages))))
    )
    text_around = pages[-1].replace(identifier, " ", 1)
    identifier_words = set(re.findall(r"\w+", identifier)) - set(re.findall(r"\w+", text_around))
    return any(word in remaining_words for word in identifier_words if len(word) > 1 or word.isdigit())


#: Patterns of medical terms by kind, which must not be masked although they resemble a name, a date or a number.
_MEDICAL_TERM_PATTERNS = {
    "gene or protein": r"(?-i:BRCA[12]|TP53|PALB2|CHEK2|ATM|PTEN|KRAS|NRAS|BRAF|EGFR|ALK|ROS1|HER-?2|ERBB2|PIK3CA|MLH1|MSH[26]|PMS2|APC|CDH1|RET|MET"
    r"|JAK2|FLT3|NPM1|IDH[12]|CD\d{1,3}|Ki-?67|PD-?L1|CA[ -]?(?:125|19-9|15-3)|PSA|CEA|IL-\d+|SOX10|GATA3|TTF-?1|CK\d+|p\d{2})",
    "variant or transcript": r"(?:c\.[\d_+*-]+(?:[ACGT]>[ACGT]|del\w*|dup\w*|ins\w*)|p\.\(?[A-Z][a-z]{2}\d+\w*|[NX][MRPC]_\d+(?:\.\d+)?|rs\d{4,}|chr\w{1,2}:[\d,]+)",
    "stage or grade": r"(?:stage[ ](?:0|I{1,3}V?|IV|[1-4])[ABC]?\d?|[cpy]{0,2}T(?:[0-4]|is|x)[a-d]?[ ,]*N[0-3x][a-c]?(?:[ ,]*M[01x])?|grade[ ](?:I{1,3}|[1-4])"
    r"|Gleason[ ](?:score[ ])?\d[ ]?\+[ ]?\d|BI-?RADS[ ](?:category[ ])?\d|\d/\d{1,2}[ ](?:lymph[ ])?nodes?)",
    "measurement or dose": r"(?<![\w.])\d+(?:\.\d+)?[ ]?(?:mg(?:/d[lL]|/m[lL])?|mcg|g/d[lL]|m[lL]|cm|mm|kg|lbs?|mmHg|mEq/L|mmol/L|IU|units?|%|bpm|x)(?!\w)",
    "blood pressure": r"(?<![\d/])(?:[89]\d|1\d\d|2[0-4]\d)/(?:[4-9]\d|1[0-3]\d)(?![\d/])",
    "drug": r"\w{3,}(?:mab|tinib|ciclib|parib|cillin|statin|prazole|olol|sartan|platin|taxel|mycin|floxacin|azepam|dipine|semide|formin|gliptin|rubicin)\b"
    r"|aspirin|insulin|lisinopril|warfarin|heparin|tamoxifen|letrozole|prednisone|albuterol|gabapentin|morphine|ibuprofen|acetaminophen|levothyroxine",
    "disease or finding": r"\w{3,}(?:carcinoma|sarcoma|lymphoma|melanoma|adenoma|leukemia|itis|osis|emia|opathy|pneumonia|edema|fibrillation|stenosis)\b"
    r"|cancer|tumou?r|diabetes|hypertension|asthma|fracture|nodule|metastas[ei]s|lesion|infarct\w*",
}


def measure_masked_medical_terms(texts: Iterable[str], folder_words: frozenset[str] = frozenset()) -> pd.DataFrame:
    """Count the medical terms in documents that masking removes needlessly, by kind.

    Each text is one document; ``folder_words`` are masked as well (``PseudonymMap.folder_words``). Columns: ``kind``;
    ``words``: number of medical terms found; ``masked``: how many of them were masked; ``share``: masked / words, null
    if none was found.
    """
    import pandas as pd

    counts_by_kind = {kind: [0, 0] for kind in _MEDICAL_TERM_PATTERNS}
    patterns = {kind: re.compile(pattern, re.IGNORECASE) for kind, pattern in _MEDICAL_TERM_PATTERNS.items()}
    for text in texts:
        mask_spans = find_mask_spans(text, replace(find_labelled_identifiers([text]), folder_words=folder_words))
        for kind, pattern in patterns.items():
            for match in pattern.finditer(text):
                counts_by_kind[kind][0] += 1
                counts_by_kind[kind][1] += any(
                    start < match.end() and match.start() < end for start, end, _ in mask_spans
                )
    rows = [
        (kind, word_count, masked_count, masked_count / word_count if word_count else None)
        for kind, (word_count, masked_count) in counts_by_kind.items()
    ]
    return pd.DataFrame(rows, columns=["kind", "words", "masked", "share"]).astype({"share": "Float64"})
