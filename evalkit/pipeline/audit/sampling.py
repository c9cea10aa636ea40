"""Draw accepted documents for an audit by a person.

Source: contract ruling 11. A document is drawn when its hash, mixed with the seed, falls into the share; the draw does
not depend on order, so that any run draws the same documents.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True)
class AuditPlan:
    """How many accepted documents are drawn, from 0 to 1 each."""

    initial_rate: float
    """Until ``target_count`` audits are done."""
    later_rate: float
    """After that."""
    target_count: int
    seed: str

    def get_inclusion_probability(self, completed_audit_count: int) -> float:
        """The inclusion probability at this moment."""
        return self.initial_rate if completed_audit_count < self.target_count else self.later_rate

    def is_drawn_for_audit(self, document_sha256: str, probability: float) -> bool:
        """Whether the document with that hash is drawn."""
        hash_number = int(hashlib.sha256(f"{self.seed}{document_sha256}".encode()).hexdigest(), 16)
        return hash_number < probability * 2**256
