"""FHIR R4 resources of one file.

They are documents, reports, observations, provenance, tasks and patients. A Bundle is a ``transaction``, because
servers store its resources one by one. Each is written under an identifier of its own (conditional update), so that
posting a Bundle again changes nothing and a newer one replaces what it corrects.
"""

import base64
import hashlib
import json
import re
import uuid
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import Any
from urllib.parse import quote

from evalkit.classification.schema import ReviewedSegment
from evalkit.core.wording import format_page_range
from evalkit.document_types import get_report_category, get_type_coding, load_type_records
from evalkit.documents.bundle import DocumentBundle
from evalkit.evaluation.fhir import terms
from evalkit.evaluation.fhir.structured_extension import encode_extension
from evalkit.evaluation.fhir.subjects import FileSubjects
from evalkit.extraction.extraction_schema import FieldValue
from evalkit.review import (
    ExtractedFields,
    FieldsGroundTruth,
    GroundTruth,
    GroundTruthRecord,
    Review,
    SMEPacket,
    get_template_field_or_plain_text,
)
from evalkit.review.packet import ReviewStatus

_TASK_STATUS: dict[ReviewStatus, str] = {"in_review": "in-progress", "deferred": "on-hold"}
_ACTIVITY_BY_SOURCE = {
    "SME_VALIDATED": ("validated", "An expert validated the program's answer."),
    "SME_CORRECTED": ("corrected", "An expert corrected the program's answer."),
    "AUTO_ACCEPTED": ("auto-accepted", "The program accepted its answer; no expert has seen it."),
}
_OBSERVATION_CATEGORY_BY_TYPE = {
    "Radiology Report": "imaging",
    "Pathology Report": "laboratory",
    "Genomic Report": "laboratory",
}
_FULL_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DECIMAL = re.compile(r"-?\d+(?:\.\d+)?")
_UNREADABLE_BY_FHIR = re.compile(r"[^ \r\n\t\S]")
_VARIANT_PARTS = {
    "gene": re.compile(r"[A-Z][A-Z0-9-]*\b(?!\.)"),
    "coding_change": re.compile(r"\bc\.\S+"),
    "protein_change": re.compile(r"\bp\.\S+"),
}


@dataclass(frozen=True)
class FileRecord:
    """All data about one file that its FHIR Bundle contains."""

    bundle: DocumentBundle
    subjects: FileSubjects
    program: str
    """Name, version and model of the program that gave the answers."""
    truth: GroundTruth | None
    facts: Mapping[str, Any]
    """What the table of ground truth says beside the record: ``page_count``, ``patients_in_file`` …"""
    fields: FieldsGroundTruth | None
    reviews: Mapping[str, Review]
    """The review behind ``truth`` and ``fields``, by the name of these."""
    open_cases: tuple[SMEPacket, ...] = ()
    """The cases that wait for an expert."""
    cut_pdfs: Mapping[tuple[int, int], bytes] = field(default_factory=dict)
    """The PDF of each segment, by its pages; none of a segment whose pages are not all one patient's."""
    include_silver: bool = False
    is_test_data: bool = False


class BundleBuilder:
    """Builder of the Bundle of one file."""

    def __init__(self, record: FileRecord) -> None:
        """Start a Bundle without entries."""
        self._record = record
        self._sha256 = record.bundle.sha256
        self._entry_by_url: dict[str, dict[str, Any]] = {}

    def build(self) -> dict[str, Any]:
        """Build the whole Bundle as JSON values."""
        record = self._record
        targets = list(self._add_documents())
        if record.truth:
            self._add_provenance(record.truth, targets, "classification")
        if record.fields and (targets := list(self._add_reports(record.fields))):
            self._add_provenance(record.fields, targets, "fields")
        for packet in record.open_cases:
            self._add_task(packet)
        return {"resourceType": "Bundle", "type": "transaction", "entry": list(self._entry_by_url.values())}

    def _add(self, resource: dict[str, Any], system: str, value: str, *, is_shared: bool = False) -> dict[str, str]:
        """Add a resource under an identifier if it is new; return the reference to it.

        A shared resource is only created if the server does not have it, and never changed.
        """
        kind = resource["resourceType"]
        url = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'{kind}?{system}|{value}')}"
        search = f"identifier={system}|{quote(value)}"
        if self._record.is_test_data:
            resource = {"resourceType": kind, "meta": {"tag": [terms.TEST_DATA]}} | resource
        request = (
            {"method": "POST", "url": kind, "ifNoneExist": search}
            if is_shared
            else {"method": "PUT", "url": f"{kind}?{search}"}
        )
        identified = resource | {"identifier": [{"system": system, "value": value}, *resource.get("identifier", ())]}
        self._entry_by_url.setdefault(url, {"fullUrl": url, "resource": identified, "request": request})
        return {"reference": url, "type": kind}

    def _add_patient(self, start_page: int, end_page: int) -> dict[str, str]:
        identifier = self._record.subjects.find_subject(start_page, end_page)
        return self._add({"resourceType": "Patient"}, terms.PATIENT_SYSTEM, identifier, is_shared=True)

    # --- documents ---------------------------------------------------------------------------------------------------

    @cached_property
    def _source(self) -> dict[str, str]:
        """Add the file with its hash, without bytes, which may be about several patients."""
        bundle, truth = self._record.bundle, self._record.truth
        digest = base64.urlsafe_b64encode(bytes.fromhex(self._sha256)).decode().rstrip("=")
        source: dict[str, Any] = {
            "resourceType": "DocumentReference",
            "identifier": [
                {"system": terms.DOCUMENT_SYSTEM, "value": bundle.doc_id},
                {"system": terms.HASH_SYSTEM, "value": self._sha256},
            ],
            "status": "current",
            "docStatus": "preliminary",
            "type": _build_type(None, ""),
            "category": _build_categories(None),
            "description": f"The whole file, {format_page_range(1, bundle.total_pages)}",
            "content": [{"attachment": {"contentType": "application/pdf", "url": f"ni:///sha-256;{digest}"}}],
        }
        if len(self._record.subjects.persons) == 1:
            source["subject"] = self._add_patient(1, bundle.total_pages)
        if truth:
            record_json = truth.model_dump(mode="json")
            classification = record_json["ground_truth_classification"]
            overall_type = classification.pop("dominant_type_overall")
            classification.pop("segments")
            classification["self_evaluation"] = _dump_free_json(classification["self_evaluation"])
            is_final = truth.ground_truth_source != "AUTO_ACCEPTED" and "dominant_type" in truth.vouched
            truth_extension = encode_extension(
                terms.TRUTH_URL, {"record": record_json, "facts": json.loads(json.dumps(dict(self._record.facts)))}
            )
            source |= {
                "docStatus": "final" if is_final else "preliminary",
                "type": _build_type(overall_type, ""),
                "category": _build_categories(overall_type),
                "date": truth.reviewed_at,
                "extension": [truth_extension],
            }
        return self._add(source, terms.SEGMENT_SYSTEM, self._sha256)

    def _add_documents(self) -> Iterator[dict[str, str]]:
        yield self._source
        truth = self._record.truth
        yield from (
            self._add_segment(segment) for segment in (truth.ground_truth_classification.segments if truth else ())
        )

    def _add_segment(self, segment: ReviewedSegment) -> dict[str, str]:
        truth = self._record.truth
        assert truth is not None  # noqa: S101 - there are segments of ground truth only
        is_vouched = not {"segments", f"segment:{segment.segment_index}"}.isdisjoint(truth.vouched)
        segment_json = segment.model_dump(mode="json", exclude={"start_page", "end_page", "dominant_type", "patient"})
        document = {
            "resourceType": "DocumentReference",
            "status": "current",
            "docStatus": "final" if is_vouched and truth.ground_truth_source != "AUTO_ACCEPTED" else "preliminary",
            "type": _build_type(segment.dominant_type, self._read_page_text(segment.start_page)),
            "category": _build_categories(segment.dominant_type),
            "subject": self._add_patient(segment.start_page, segment.end_page),
            "date": truth.reviewed_at,
            "description": f"{segment.dominant_type or 'Document'}, {segment.page_range_text} of the file",
            "relatesTo": [{"code": "transforms", "target": self._source}],
            "content": [{"attachment": self._build_attachment(segment, truth), "format": terms.PLAIN_FORMAT}],
            "extension": [
                encode_extension(terms.PAGES_URL, {"first": segment.start_page, "last": segment.end_page}),
                encode_extension(terms.SEGMENT_URL, segment_json),
            ],
        }
        return self._add(document, terms.SEGMENT_SYSTEM, self._name_segment(segment))

    def _name_segment(self, segment: ReviewedSegment) -> str:
        assert self._record.truth is not None  # noqa: S101 - as above
        ranges = [
            (other.start_page, other.end_page) for other in self._record.truth.ground_truth_classification.segments
        ]
        pages = segment.start_page, segment.end_page
        is_repeated = ranges.count(pages) > 1  # only where nobody vouches for the segments
        return f"{self._sha256}.{pages[0]}-{pages[1]}{f'.{segment.segment_index}' * is_repeated}"

    def _build_attachment(self, segment: ReviewedSegment, truth: GroundTruth) -> dict[str, Any]:
        attachment = {"contentType": "application/pdf", "title": segment.page_range_text}
        cut_pdf = self._record.cut_pdfs.get((segment.start_page, segment.end_page))
        if cut_pdf is None:
            return attachment
        sha1 = hashlib.sha1(cut_pdf, usedforsecurity=False).digest()  # FHIR asks for it
        return attachment | {
            "data": base64.b64encode(cut_pdf).decode(),
            "size": len(cut_pdf),
            "hash": base64.b64encode(sha1).decode(),
            "creation": truth.reviewed_at,
            "extension": [encode_extension(terms.SHA256_URL, hashlib.sha256(cut_pdf).hexdigest())],
        }

    def _read_page_text(self, page_num: int) -> str:
        return next((page.text for page in self._record.bundle.iter_pages(page_num, page_num)), "")

    # --- fields ------------------------------------------------------------------------------------------------------

    def _add_reports(self, fields_truth: FieldsGroundTruth) -> Iterator[dict[str, str]]:
        """Add a report with observations for each clinical form that has a decided field."""
        is_expert = fields_truth.ground_truth_source != "AUTO_ACCEPTED"
        for form_number, form in enumerate(fields_truth.ground_truth_fields, 1):
            if form.document_type not in load_type_records():
                continue  # a tax form is no report about a patient
            statuses = {
                name: "final" if is_expert and f"{form_number}.{name}" in fields_truth.vouched else "preliminary"
                for name, value in form.fields.items()
                if value.is_found and value.value
            }
            exported_names = [
                name
                for name, status in statuses.items()
                if (status == "final" or self._record.include_silver) and not self._is_of_another(form, name)
            ]
            results = [
                self._add_observation(form, name, statuses[name], fields_truth.reviewed_at) for name in exported_names
            ]
            yield from results
            category = get_report_category(form.document_type)
            if not results or category is None:
                continue
            report: dict[str, Any] = {
                "resourceType": "DiagnosticReport",
                "status": _describe_report(statuses, exported_names),
                "category": [{"coding": [terms.build_coding(category)]}],
                "code": _build_type(form.document_type, self._read_page_text(form.start_page)),
                "subject": self._add_patient(form.start_page, form.end_page),
                "issued": fields_truth.reviewed_at,
                "result": results,
            }
            if "date" in exported_names and _is_full_date(day := form.fields["date"].value or ""):
                report["effectiveDateTime"] = day
            yield self._add(report, terms.REPORT_SYSTEM, f"{self._sha256}.{form.start_page}-{form.end_page}")

    def _is_of_another(self, form: ExtractedFields, name: str) -> bool:
        """Return True if the value's page names another patient than most of the form's."""
        return form.fields[name].page in self._record.subjects.list_pages_of_others(form.start_page, form.end_page)

    def _add_observation(self, form: ExtractedFields, name: str, status: str, issued: str) -> dict[str, str]:
        value, template_field = form.fields[name], get_template_field_or_plain_text(form, name)
        coding = template_field.part_codings.get(name.partition(".")[2], template_field.coding)
        local_code = {"system": terms.FIELD_SYSTEM, "code": f"{form.template}.{name.partition('.')[0]}"}
        label = _to_fhir_string(template_field.description)
        observation: dict[str, Any] = {
            "resourceType": "Observation",
            "status": status,
            "code": {"coding": [*([terms.build_coding(coding)] if coding else ()), local_code], "text": label},
            "subject": self._add_patient(form.start_page, form.end_page),
            "issued": issued,
            **_build_value(template_field.format, value),
        }
        category = _OBSERVATION_CATEGORY_BY_TYPE.get(form.document_type)
        if category:
            observation["category"] = [terms.build_observation_category(category)]
        components = [
            {"code": {"coding": [terms.build_coding(template_field.part_codings[part])]}, "valueString": match[0]}
            for part, pattern in _VARIANT_PARTS.items()
            if part in template_field.part_codings and (match := pattern.search(value.value or ""))
        ]
        if components:
            observation["component"] = components
        if value.page:
            place = {"page": value.page, "text": value.raw or value.value}
            observation["extension"] = [encode_extension(terms.QUOTE_URL, place)]
        identifier = f"{self._sha256}.{form.start_page}-{form.end_page}.{form.template}.{name}"
        return self._add(observation, terms.FIELD_SYSTEM, identifier)

    # --- who, and what is open ---------------------------------------------------------------------------------------

    def _add_provenance(self, truth: GroundTruthRecord, targets: list[dict[str, str]], topic: str) -> None:
        code, sentence = _ACTIVITY_BY_SOURCE[truth.ground_truth_source]
        agents: list[dict[str, Any]] = [{"type": terms.ASSEMBLER, "who": {"display": self._record.program}}]
        provenance: dict[str, Any] = {
            "resourceType": "Provenance",
            "target": targets,
            "occurredDateTime": truth.reviewed_at,
            "recorded": truth.reviewed_at,
            "activity": {"coding": [{"system": terms.ACTIVITY_SYSTEM, "code": code}], "text": sentence},
            "agent": agents,
            "entity": [
                {"role": "source", "what": {"identifier": {"system": terms.HASH_SYSTEM, "value": self._sha256}}}
            ],
        }
        if truth.reviewer:
            name = _to_fhir_string(truth.reviewer)
            expert = {"identifier": {"system": terms.REVIEWER_SYSTEM, "value": name}, "display": name}
            agents.append({"type": terms.VERIFIER, "who": expert})
            review = self._record.reviews.get(topic)
            if review and review.signature:
                provenance["signature"] = [
                    {
                        "type": [terms.VERIFICATION_SIGNATURE],
                        "when": review.submitted_at,
                        "who": expert,
                        "extension": [encode_extension(terms.MEANING_URL, review.signature.model_dump(mode="json"))],
                    }
                ]
        # A Provenance has no identifier; a tag that names the review keeps a server from storing it twice.
        tag = {"system": terms.RECORD_SYSTEM, "code": f"{self._sha256}.{topic}.{truth.revision}.{truth.reviewed_at}"}
        provenance["meta"] = {"tag": [tag, *([terms.TEST_DATA] if self._record.is_test_data else ())]}
        url = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, tag['code'])}"
        request = {"method": "POST", "url": "Provenance", "ifNoneExist": f"_tag={tag['system']}|{quote(tag['code'])}"}
        self._entry_by_url[url] = {"fullUrl": url, "resource": provenance, "request": request}

    def _add_task(self, packet: SMEPacket) -> None:
        task = {
            "resourceType": "Task",
            "status": _TASK_STATUS.get(packet.review_status, "requested"),  # a reopened one is open again
            "intent": "order",
            "code": {"coding": [{"system": terms.CASE_SYSTEM, "code": packet.kind}], "text": "Review by an expert"},
            "focus": self._source,
            "authoredOn": packet.created_at,
            "reasonCode": {"text": packet.review_reason},
        }
        if len(self._record.subjects.persons) == 1:
            task["for"] = self._add_patient(1, self._record.bundle.total_pages)
        self._add(task, terms.CASE_SYSTEM, self._sha256 + packet.case_id.removeprefix(packet.doc_id))


def _describe_report(statuses: Mapping[str, str], exported_names: Collection[str]) -> str:
    """Return a report's status: ``partial`` if values are left out of it."""
    if any(statuses[name] != "final" for name in exported_names):
        return "preliminary"
    return "final" if len(exported_names) == len(statuses) else "partial"


def _is_full_date(text: str) -> bool:
    """Return True if the text is a day that the calendar has."""
    try:
        return bool(_FULL_DATE.fullmatch(text)) and bool(date.fromisoformat(text))
    except ValueError:
        return False


def _build_type(document_type: str | None, first_page_text: str) -> dict[str, Any]:
    if document_type is None:
        return {"coding": [terms.UNKNOWN_TYPE]}
    own_code = {"system": terms.TYPE_SYSTEM, "code": document_type}
    return {
        "coding": [terms.build_coding(get_type_coding(document_type, first_page_text)), own_code],
        "text": document_type,
    }


def _build_categories(document_type: str | None) -> list[dict[str, Any]]:
    category = get_report_category(document_type) if document_type else None
    return [{"coding": [terms.NOTE_CATEGORY]}, *([{"coding": [terms.build_coding(category)]}] if category else ())]


def _build_value(field_format: str, value: FieldValue) -> dict[str, Any]:
    text = value.value or ""
    if field_format == "date" and _is_full_date(text):
        return {"valueDateTime": text}
    if field_format == "tmb" and _DECIMAL.fullmatch(text):
        return {"valueQuantity": {"value": float(text), "unit": "mutations per megabase"}}
    return {"valueString": _to_fhir_string(text)}


def _to_fhir_string(text: str) -> str:
    return _UNREADABLE_BY_FHIR.sub(" ", text)


def _dump_free_json(value: Any) -> str | None:
    """Write a value of any shape as text: its names may be no extension's."""
    return None if value is None else json.dumps(value, ensure_ascii=False)
