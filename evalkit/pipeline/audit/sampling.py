"""Draw accepted documents for an audit by a person.

Source: contract ruling 11. A document is drawn when its hash, mixed with the seed, falls into the share; the draw
does not depend on order, so that any run draws the same documents.
"""

from __future__ import annotations

import hashlib

from evalkit.settings import Settings


def get_inclusion_probability(settings: Settings, completed_audit_count: int) -> float:
    """Return the probability of an audit, 0..1, by how many are completed."""
    return settings.audit_rate_start if completed_audit_count < settings.audit_target else settings.audit_rate


def is_drawn_for_audit(seed: str, document_sha256: str, probability: float) -> bool:
    """Tell whether the document with that hash is drawn."""
    hash_number = int(hashlib.sha256(f"{seed}{document_sha256}".encode()).hexdigest(), 16)
    return hash_number < probability * 2**256
