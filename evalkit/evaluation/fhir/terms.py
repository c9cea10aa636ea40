"""Systems, extensions and codes in evalkit's FHIR resources."""

from typing import Any

from evalkit.core.loinc import Coding

_OWN = "urn:evalkit:fhir:"
DOCUMENT_SYSTEM, HASH_SYSTEM, SEGMENT_SYSTEM = f"{_OWN}document", f"{_OWN}sha256", f"{_OWN}segment"
PATIENT_SYSTEM, REVIEWER_SYSTEM, CASE_SYSTEM = f"{_OWN}patient", f"{_OWN}reviewer", f"{_OWN}case"
REPORT_SYSTEM, FIELD_SYSTEM, RECORD_SYSTEM = f"{_OWN}report", f"{_OWN}field", f"{_OWN}record"
TYPE_SYSTEM, ACTIVITY_SYSTEM = f"{_OWN}document-type", f"{_OWN}activity"
PAGES_URL, SHA256_URL, MEANING_URL, QUOTE_URL = f"{_OWN}pages", f"{_OWN}sha256", f"{_OWN}meaning", f"{_OWN}quote"
SEGMENT_URL, TRUTH_URL = f"{_OWN}segment", f"{_OWN}ground-truth"

#: The file's media type says all about how it is read. Source: IHE format codes.
PLAIN_FORMAT = {
    "system": "http://ihe.net/fhir/ihe.formatcode.fhir/CodeSystem/formatcode",
    "code": "urn:ihe:iti:xds:2017:mimeTypeSufficient",
    "display": "mimeType Sufficient",
}
_HL7 = "http://terminology.hl7.org/CodeSystem/"
UNKNOWN_TYPE = {"system": f"{_HL7}v3-NullFlavor", "code": "UNK", "display": "unknown"}
NOTE_CATEGORY = {
    "system": "http://hl7.org/fhir/us/core/CodeSystem/us-core-documentreference-category",
    "code": "clinical-note",
    "display": "Clinical Note",
}
ASSEMBLER, VERIFIER = (
    {"coding": [{"system": f"{_HL7}provenance-participant-type", "code": code, "display": code.capitalize()}]}
    for code in ("assembler", "verifier")
)
#: Meaning of a signature: the signer checked the document. Source: ASTM E1762-95, as in FHIR's value set.
VERIFICATION_SIGNATURE = {
    "system": "urn:iso-astm:E1762-95:2013",
    "code": "1.2.840.10065.1.12.1.5",
    "display": "Verification Signature",
}
#: Marks data that no person answered for: demonstrations and tests.
TEST_DATA = {"system": f"{_HL7}v3-ActReason", "code": "HTEST", "display": "test health data"}


def build_observation_category(code: str) -> dict[str, Any]:
    """Build a category of observations: ``laboratory``, ``imaging`` …"""
    return {"coding": [{"system": f"{_HL7}observation-category", "code": code, "display": code.capitalize()}]}


def build_coding(coding: Coding) -> dict[str, Any]:
    """Build a FHIR Coding."""
    return {"system": coding.system, "code": coding.code, "display": coding.display}
