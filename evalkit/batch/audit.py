"""Which accepted documents a person looks at all the same.

Source: contract ruling 11. A document is drawn when its hash, mixed with the seed, falls into the share; the draw
does not depend on order, so that any run draws the same documents.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True)
class AuditPlan:
    """How many accepted documents are drawn, from 0 to 1 each."""

    rate_start: float
    """Until ``target`` audits are done."""
    rate: float
    """After that."""
    target: int
    seed: str

    def share(self, audits_done: int) -> float:
        """The inclusion probability at this moment."""
        return self.rate_start if audits_done < self.target else self.rate

    def draws(self, sha256: str, share: float) -> bool:
        """Whether the document with that hash is drawn."""
        place = int(hashlib.sha256(f"{self.seed}{sha256}".encode()).hexdigest(), 16)
        return place < share * 2**256
