"""The peer of the embedded classifier: one broad regular expression per type, most matches win."""

import re
from collections import Counter

from evalkit.classification.schema import DocumentType

VOTE = {
    DocumentType.CLINICAL_NOTE: r"chief complaint|history of|physical exam|review of systems|allerg|medication|vital|denies|presents|assessment|plan\b",
    DocumentType.PATHOLOGY_REPORT: r"patholog|specimen|biops|carcinoma|gross|microscopic|margin|formalin|histolog|lymph node|stain|tumor",
    DocumentType.GENOMIC_REPORT: r"\bgen(?:e|es|etic|omic)\b|variant|mutation|sequenc|exon|\bNM_|\bc\.\d|\bp\.[A-Z]|germline|somatic|allele|pathogenic",
    DocumentType.RADIOLOGY_REPORT: r"radiolog|\bCT\b|\bMRI\b|ultrasound|x-?ray|findings|impression|contrast|technique|comparison|axial|views?\b",
    DocumentType.OTHER: r"authoriz|consent|signature|insurance|fax|form\b|release|prescription|reference|mg/dL|requisition|\bRef\b",
}


def keyword_vote(text: str) -> DocumentType:
    """What five regular expressions would say: the type with most matches."""
    votes = Counter({kind: len(re.findall(pattern, text, re.IGNORECASE)) for kind, pattern in VOTE.items()})
    return max(DocumentType, key=votes.__getitem__)
