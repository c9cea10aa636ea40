"""Random selection of accepted documents for an audit by a person.

Source: contract ruling 11. A document is selected if its hash, mixed with the seed, falls below the probability; the
selection does not depend on order, so that any run selects the same documents.
"""

from __future__ import annotations

import hashlib

from evalkit.settings import Settings


def get_inclusion_probability(settings: Settings, completed_audit_count: int) -> float:
    """Return the probability (0..1) that an accepted document is audited.

    ``audit_rate_start`` until ``audit_target`` audits are completed, then ``audit_rate``.
    """
    return settings.audit_rate_start if completed_audit_count < settings.audit_target else settings.audit_rate


def is_drawn_for_audit(seed: str, document_sha256: str, probability: float) -> bool:
    """Return True if the document with this SHA-256 is selected for an audit."""
    hash_number = int(hashlib.sha256(f"{seed}{document_sha256}".encode()).hexdigest(), 16)
    return hash_number < probability * 2**256
