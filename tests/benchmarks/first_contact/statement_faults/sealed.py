"""The sealed half, which follows."""

from __future__ import annotations

from benchmarks.first_contact.statement_faults.making import Drawing, FaultKind

DRAWINGS: dict[str, Drawing] = {}
FAULTS: tuple[FaultKind, ...] = ()
