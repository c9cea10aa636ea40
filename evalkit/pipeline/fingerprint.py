"""Fingerprint of a result: a hash of all inputs, settings and versions.

A document with an unchanged fingerprint is not processed again.
"""

from dataclasses import asdict
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from evalkit.classification.evidence_strength import load_strength_tables
from evalkit.classification.offline.acts import load_shipped_act_weights
from evalkit.classification.offline.lexicon import load_lexicon
from evalkit.classification.offline.model_weights import load_embedded_weights, load_shipped_weights
from evalkit.classification.orchestrator import UnparseableClassification
from evalkit.classification.own_verifiers import compute_verifier_version
from evalkit.classification.patient_check import ANY_PATIENT, PatientExpectation
from evalkit.classification.traps import load_shipped_and_site_traps
from evalkit.document_types import compute_types_version
from evalkit.grounding import get_grounding_version
from evalkit.grounding.omitted_context import load_context_tables
from evalkit.llm.model_families import find_model_facts
from evalkit.llm.prompts import compute_prompt_versions
from evalkit.llm.providers import find_family
from evalkit.settings import Settings
from evalkit.store import hash_canonical_json

#: Tables that affect results and have no version number.
_FURTHER_TABLES = (
    ("evalkit.classification.offline", "act_features.toml"),
    ("evalkit.classification.offline", "text_genres.toml"),
    ("evalkit.classification", "judging.toml"),
    ("evalkit.llm", "answer_spellings.toml"),
    ("evalkit.documents", "furniture.toml"),
    ("evalkit.documents", "languages.toml"),
    ("evalkit.classification", "types.toml"),
)


def collect_versions(
    traps_file: str | None = None, own_verifiers: tuple[str, ...] = (), prompts_folder: str | None = None
) -> dict[str, Any]:
    """Collect the versions of code, tables, prompts, own verifiers and weights.

    UsageError as for ``_collect_installed_versions``.
    """
    installed_versions = _collect_installed_versions(traps_file, own_verifiers, prompts_folder)
    return installed_versions | {"types": compute_types_version(), "weights": load_embedded_weights().version}


@cache
def _collect_installed_versions(
    traps_file: str | None, own_verifiers: tuple[str, ...], prompts_folder: str | None
) -> dict[str, Any]:
    """Collect the versions that stay the same while the program runs.

    UsageError if a site's traps or prompts cannot be read, or one of its verifiers is not installed.
    """
    traps = load_shipped_and_site_traps(traps_file)
    own_versions = (
        {"own_verifiers": [asdict(compute_verifier_version(name)) for name in own_verifiers]} if own_verifiers else {}
    )
    return own_versions | {
        "evalkit": version("evalkit"),
        "grounding": get_grounding_version(),
        "lexicon": load_lexicon().version,
        "weights": load_shipped_weights().version,
        "acts": load_shipped_act_weights().version,
        "traps": traps.version,
        "tables_sha256": hash_canonical_json(
            [
                traps.model_dump(mode="json"),
                load_context_tables(),
                load_strength_tables(),
                *((files(package) / name).read_text("utf-8") for package, name in _FURTHER_TABLES),
            ]
        ),
        "prompts": compute_prompt_versions(prompts_folder),
    }


def compute_fingerprint(
    sha256: str,
    settings: Settings,
    reader_version: str,
    supplied_classification: Any,
    patient_expectation: PatientExpectation = ANY_PATIENT,
) -> str:
    """Return the hash of everything that determines a document's result.

    The number of workers, the output folder and production's labels do not determine it.
    """
    supplied_json = (
        {"unparseable": supplied_classification.reason}
        if isinstance(supplied_classification, UnparseableClassification)
        else supplied_classification
    )
    identity_json = [identifier.model_dump(mode="json") for identifier in patient_expectation.roster_identity]
    expectation_json = [patient_expectation.patients_per_file, identity_json]
    return hash_canonical_json(
        describe_settings(settings, reader_version)
        | {
            "sha256": sha256,
            "supplied": None if supplied_classification is None else hash_canonical_json(supplied_json),
        }
        | ({} if patient_expectation == ANY_PATIENT else {"patients": hash_canonical_json(expectation_json)})
    )


def describe_settings(settings: Settings, reader_version: str) -> dict[str, Any]:
    """Describe settings, versions and models that determine all results."""
    return {
        "reader": reader_version,
        "ocr_seconds": settings.ocr_seconds,
        "languages": settings.languages,
        "profile": settings.profile,
        "lossless_repair": settings.lossless_repair,
        "on_agent_failure": settings.on_agent_failure,
        "versions": collect_versions(settings.traps_file, settings.verifiers, settings.prompts_folder),
    } | describe_models(settings)


def describe_models(settings: Settings) -> dict[str, Any]:
    """Describe the facts about models that determine their results."""
    model_names = sorted(settings.models.all_model_names)
    return {
        "models": settings.models.model_dump(),
        "model_facts": [find_model_facts(name, settings.context_tokens).list_values() for name in model_names],
        "window_characters": find_window_characters(settings),
        "pictures": [settings.pictures_per_document, settings.picture_pixels],
        "own_servers": [find_own_server(name, settings) for name in model_names],
    }


def find_window_characters(settings: Settings) -> int:
    """Return how many characters of a document fit in one question to any model."""
    model_names = (*settings.models.all_model_names, *settings.reliability_loop.ensemble)
    return settings.window_characters or min(
        find_model_facts(name, settings.context_tokens).compute_window_characters() for name in model_names
    )


def find_base_url(provider_and_model: str, settings: Settings) -> str | None:
    """Return the setting ``{family}_base_url`` of a model; None if it is not set."""
    base_url: str | None = getattr(settings, f"{provider_and_model.partition(':')[0]}_base_url", None)
    return base_url


def find_own_server(provider_and_model: str, settings: Settings) -> str | None:
    """Return the address of a site's own model server; None for a provider's server."""
    family = find_family(provider_and_model)
    return find_base_url(provider_and_model, settings) if family and family.description.self_hostable else None
