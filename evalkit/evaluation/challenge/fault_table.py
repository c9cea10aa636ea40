"""Table of all fault kinds, with the issue codes that should detect each."""

from __future__ import annotations

from collections.abc import Mapping

from evalkit.evaluation.challenge.evidence_faults import EVIDENCE_FAULTS
from evalkit.evaluation.challenge.label_faults import LABEL_FAULTS
from evalkit.evaluation.challenge.mutated_answer import MutationOperator
from evalkit.evaluation.challenge.structure_faults import STRUCTURE_FAULTS

#: All fault kinds, in the order of the report's rows.
FAULTS: tuple[MutationOperator, ...] = (*STRUCTURE_FAULTS, *LABEL_FAULTS, *EVIDENCE_FAULTS)
FAULT_BY_ID: Mapping[str, MutationOperator] = {fault.fault_id: fault for fault in FAULTS}
