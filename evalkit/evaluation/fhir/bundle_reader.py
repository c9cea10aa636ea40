"""Reading of ground truth from an export's folder of FHIR Bundles."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from evalkit.errors import StoreError
from evalkit.evaluation.fhir import terms
from evalkit.evaluation.fhir.structured_extension import find_extension
from evalkit.review.ground_truth import GroundTruth

#: Folder of the Bundles inside an export.
BUNDLES_FOLDER = "bundles"
#: What the ground-truth table says beside the record, and the Bundle's extension says too.
FACTS = ("sha256", "page_count", "patients_in_file", "pages_of_others", "answer_reviewers")


class TruthInBundle(NamedTuple):
    """Ground truth of one file, as stored in its FHIR Bundle."""

    record: GroundTruth
    """The record, without the patients' keys, which no export has."""
    facts: dict[str, Any]
    """By each of ``FACTS``: what the ground-truth table says beside the record."""


def read_bundle_export(folder: Path, problems: list[str]) -> Iterator[TruthInBundle]:
    """Yield the ground truth in the Bundles of an export, sorted by file name.

    Bundles without ground truth are skipped. A sentence for each file that cannot be read is added to ``problems``.
    """
    for path in sorted((folder / BUNDLES_FOLDER).glob("*.json")):
        try:
            truth = read_truth(json.loads(path.read_bytes()), path.name)
        except (OSError, ValueError):
            problems.append(f"{path.name} cannot be read as JSON. Export again.")
        except StoreError as error:
            problems.append(str(error))
        else:
            if truth:
                yield truth


def read_truth(bundle: Any, file_name: str) -> TruthInBundle | None:
    """Read the ground truth in a Bundle; None if it has none.

    Types and pages are read from the documents' own codes and page ranges, all else from extensions. ``file_name`` is for
    errors. StoreError if the Bundle is not one that evalkit wrote.
    """
    try:
        resources = [entry["resource"] for entry in bundle["entry"]]
        documents = [resource for resource in resources if resource["resourceType"] == "DocumentReference"]
        source = next(document for document in documents if _find_identifier(document, terms.DOCUMENT_SYSTEM))
        if not _has_extension(source, terms.TRUTH_URL):
            return None
        truth = find_extension(source, terms.TRUTH_URL)
        classification = truth["record"]["ground_truth_classification"]
        if classification["self_evaluation"] is not None:
            classification["self_evaluation"] = json.loads(classification["self_evaluation"])
        classification["dominant_type_overall"] = _read_type(source)
        classification["segments"] = [
            _read_segment(document) for document in documents if _has_extension(document, terms.PAGES_URL)
        ]
        truth["record"]["doc_id"] = _find_identifier(source, terms.DOCUMENT_SYSTEM)
        facts = truth["facts"] | {"sha256": _find_identifier(source, terms.HASH_SYSTEM)}
        facts["answer_reviewers"] = tuple(facts["answer_reviewers"])
        return TruthInBundle(GroundTruth.model_validate(truth["record"]), facts)
    except (LookupError, TypeError, AttributeError, StopIteration, ValueError, ValidationError):
        # "from None", because pydantic's message would quote the patient's document.
        raise StoreError(
            f"{file_name} is not a Bundle of ground truth that evalkit wrote, or was changed",
            code="EXPORT-BUNDLE",
            remedy="Export the ground truth again.",
        ) from None


def _read_segment(document: dict[str, Any]) -> dict[str, Any]:
    pages = find_extension(document, terms.PAGES_URL)
    own_range = {"start_page": pages["first"], "end_page": pages["last"], "dominant_type": _read_type(document)}
    return find_extension(document, terms.SEGMENT_URL) | own_range  # type: ignore[no-any-return]  # a dictionary, or TypeError


def _read_type(document: dict[str, Any]) -> str | None:
    codes = (coding["code"] for coding in document["type"]["coding"] if coding["system"] == terms.TYPE_SYSTEM)
    return next(codes, None)


def _find_identifier(resource: dict[str, Any], system: str) -> str | None:
    return next((row["value"] for row in resource["identifier"] if row["system"] == system), None)


def _has_extension(document: dict[str, Any], url: str) -> bool:
    return any(extension["url"] == url for extension in document.get("extension", ()))
