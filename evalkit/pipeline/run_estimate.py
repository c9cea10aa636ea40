"""Expected cost of a run: calls, tokens, dollars and minutes by model and role."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any

from evalkit.llm.cost_estimate import EstimatingModel
from evalkit.llm.ledger import sum_usages
from evalkit.llm.model import Usage

#: Seconds that a call takes if no call of the model is in the journal.
ASSUMED_CALL_SECONDS = 10.0


@dataclass(frozen=True)
class EstimatedCalls:
    """Estimated number and cost of a model's calls in one role."""

    model: str
    role: str
    usage: Usage
    images: int
    seconds_per_call: float
    is_time_measured: bool
    """False if the seconds of a call are assumed, because the journal has no call of this model."""


@dataclass(frozen=True)
class RunEstimate:
    """Estimated cost of a run; documents were read, but no model was called."""

    rows: tuple[EstimatedCalls, ...]
    documents: int
    finished: int
    """The number of documents that an earlier run has finished."""
    problems: tuple[str, ...]
    """Inputs and documents that could not be read: one line each."""
    calls_in_flight: int

    @classmethod
    def create(
        cls, models: Iterable[EstimatingModel], seconds_by_model: Mapping[str, float | None], **counts: Any
    ) -> RunEstimate:
        """Sum what the models counted; ``seconds_by_model`` has measured times or None."""
        rows = (
            EstimatedCalls(
                model.name,
                role,
                usage,
                model.images_by_role[role],
                seconds_by_model[model.name] or ASSUMED_CALL_SECONDS,
                seconds_by_model[model.name] is not None,
            )
            for model in models
            for role, usage in sorted(model.usage_by_role.items())
        )
        return cls(tuple(rows), **counts)

    @property
    def usage(self) -> Usage:
        """The estimated usage of all models; its dollars are None if a price is unknown."""
        return sum_usages(row.usage for row in self.rows)

    @property
    def minutes(self) -> float:
        """Minutes of all calls, at the concurrency that the settings allow."""
        return sum(row.usage.calls * row.seconds_per_call for row in self.rows) / self.calls_in_flight / 60

    def format_cost(self) -> str:
        """Format the dollars of all calls, or say that a price is unknown."""
        return "price unknown" if self.usage.cost_usd is None else f"{Decimal(self.usage.cost_usd):.2f} US dollars"

    def suggest_usd_limit(self) -> Decimal | None:
        """Suggest a dollar limit for this run: twice the estimate, at least one dollar.

        Twice, because reasoning and repeated calls are not in the estimate. None if a price is unknown.
        """
        cost = self.usage.cost_usd
        return None if cost is None else max(Decimal(1), (2 * Decimal(cost)).quantize(Decimal(1), "ROUND_UP"))

    def to_json(self) -> dict[str, Any]:
        """Return the estimate as a JSON object."""
        return asdict(self) | {"usage": asdict(self.usage), "minutes": round(self.minutes, 1)}
