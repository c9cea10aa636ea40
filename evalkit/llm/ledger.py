"""Ledger of model calls: journal, costs and spending limits.

A call is journalled before its answer is used. An identical question (the same bytes, the same model) is answered from
the journal, in this run or a later one. Failed calls are never reused.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from typing import Protocol

from typing_extensions import override

from evalkit.errors import ModelError, RunStopped, StoreError
from evalkit.llm.model import Usage
from evalkit.llm.providers import find_family
from evalkit.settings import LimitSettings
from evalkit.store import ModelCall


class Journal(Protocol):
    """Interface of a store of model calls, on disk or in memory."""

    def add_call(self, call: ModelCall) -> None:
        """Store a call durably before returning."""

    def find_calls(self, question_sha256: str, *, after_call_number: int = 0) -> list[ModelCall]:
        """List a question's calls with numbers above ``after_call_number``, oldest first."""

    def get_or_mark_last_call_before_run(self) -> int:
        """Return the number of the last call before the current fresh run.

        A fresh run ignores earlier answers. It begins now, unless an earlier fresh run was interrupted: then that run
        continues.
        """

    def forget_last_call_before_run(self) -> None:
        """Mark the fresh run as finished."""


class MemoryJournal(Journal):
    """A journal in memory, which is lost at the end of the process."""

    def __init__(self) -> None:
        self._calls: list[ModelCall] = []

    @override
    def add_call(self, call: ModelCall) -> None:
        self._calls.append(call)

    @override
    def find_calls(self, question_sha256: str, *, after_call_number: int = 0) -> list[ModelCall]:
        return [call for call in self._calls[after_call_number:] if call.question == question_sha256]

    @override
    def get_or_mark_last_call_before_run(self) -> int:
        return len(self._calls)

    @override
    def forget_last_call_before_run(self) -> None:
        """Do nothing: a journal in memory has no interrupted runs."""


class SpendingLimitError(ModelError):
    """Error for a call that would exceed a spending limit."""


class Ledger:
    """The calls of one run: their journal, cost and limits."""

    def __init__(
        self,
        journal: Journal | None = None,
        limits: LimitSettings | None = None,
        *,
        ignore_earlier_answers: bool = False,
    ) -> None:
        """Open the ledger of a run; default: a journal in memory, no limits.

        ``ignore_earlier_answers``: begin a fresh run, which reuses no answers of earlier runs, except of an interrupted
        fresh run.
        """
        self._journal = journal or MemoryJournal()
        self.limits = limits or LimitSettings(calls_per_document=0)
        self._after_number = self._journal.get_or_mark_last_call_before_run() if ignore_earlier_answers else 0
        self._usage_by_document: dict[str, Usage] = {}
        self._usage_by_role: dict[str, Usage] = {}
        self.usage_by_model: dict[str, Usage] = {}
        """Cost of this run's calls by model; answers from the journal cost nothing."""
        self.seconds_by_model: dict[str, float] = defaultdict(float)
        """Seconds of this run's calls by model; calls overlap."""
        self._run_usage = Usage()
        self._expected_by_document: dict[str, list[Usage]] = defaultdict(list)
        self._journal_error: StoreError | None = None
        self.stops_run_at_limit = True
        """False: a call over a limit of the run only gets no answer, so that a measurement reports what it has."""

    def find_calls_of_latest_answer(self, question_sha256: str) -> list[ModelCall]:
        """List the calls that led to a question's latest answer, oldest first.

        If the last call was answered: this call and the failed calls directly before it. Otherwise: all failed calls
        since the last answer.
        """
        calls = self._journal.find_calls(question_sha256, after_call_number=self._after_number)
        answered_indices = [-1, *(index for index, call in enumerate(calls) if call.failure is None)]
        is_answered = answered_indices[-1] == len(calls) - 1
        return (
            calls[answered_indices[-2] + 1 :]
            if is_answered and len(answered_indices) > 1
            else calls[answered_indices[-1] + 1 :]
        )

    @property
    def usage_by_role(self) -> dict[str, Usage]:
        """Cost of this run's calls by role; answers from the journal are free."""
        return dict(sorted(self._usage_by_role.items()))

    def get_usage_in_this_run(self, document_sha256: str) -> Usage:
        """Return the cost of this run's calls about a document."""
        return self._usage_by_document.get(document_sha256, Usage())

    @contextmanager
    def reserve_usage_within_limits(self, document_sha256: str, expected_usage: Usage) -> Iterator[None]:
        """Reserve the expected cost of a call while the call runs.

        SpendingLimitError if the call would exceed a limit: do not send it then. StoreError if an earlier call could
        not be journalled, because further answers would be paid and lost too.
        """
        if self._journal_error:
            raise self._journal_error
        open_usages = [usage for usages in self._expected_by_document.values() for usage in usages]
        _raise_if_over_limit(
            "one document",
            "per_document",
            [self.get_usage_in_this_run(document_sha256), *self._expected_by_document[document_sha256]],
            expected_usage,
            self.limits,
        )
        try:
            _raise_if_over_limit("one run", "per_run", [self._run_usage, *open_usages], expected_usage, self.limits)
        except SpendingLimitError as error:
            if not self.stops_run_at_limit:
                raise
            raise RunStopped(
                f"{error.message}, so the run was stopped",
                code=error.code,
                remedy="Raise this limit in the section [limits], and run the same command again: finished documents are kept.",
            ) from None
        self._expected_by_document[document_sha256].append(expected_usage)
        try:
            yield
        finally:
            self._expected_by_document[document_sha256].remove(expected_usage)
            if not self._expected_by_document[document_sha256]:
                del self._expected_by_document[document_sha256]

    def record_call(self, call: ModelCall) -> None:
        """Count and journal a finished call. StoreError if it cannot be journalled."""
        usage = get_call_usage(call)
        self.count_usage(call.role, call.document, usage)
        self.usage_by_model[call.model] = self.usage_by_model.get(call.model, Usage()) + usage
        self.seconds_by_model[call.model] += call.seconds
        try:
            self._journal.add_call(call)
        except StoreError as error:
            self._journal_error = error
            raise

    def count_usage(self, role: str, document_sha256: str, usage: Usage) -> None:
        """Count what a call cost, for the limits and the run's summary."""
        self._usage_by_document[document_sha256] = self.get_usage_in_this_run(document_sha256) + usage
        self._usage_by_role[role] = self._usage_by_role.get(role, Usage()) + usage
        self._run_usage += usage

    def mark_fresh_run_finished(self) -> None:
        """Mark the fresh run as finished, so that the next fresh run reuses no answers."""
        self._journal.forget_last_call_before_run()


def get_call_usage(call: ModelCall) -> Usage:
    """Return the cost of a journalled call."""
    return Usage(1, call.input_tokens, call.output_tokens, call.cost_usd, call.cached_tokens, call.thought_tokens)


def sum_usages(usages: Iterable[Usage]) -> Usage:
    """Sum usages; the dollars are None if any usage has no dollars."""
    return sum(usages, Usage())


def add_list_price(provider_and_model: str, usage: Usage) -> Usage:
    """Return the usage with its price in US dollars; None if the price is unknown.

    ``provider_and_model``: the model as ``--model`` takes it. The prices are the list prices in genai-prices; prices of
    batches, regions or contracts may differ.
    """
    family = find_family(provider_and_model)
    if family is None or family.description.prices is None:
        return replace(usage, cost_usd="0" if family and family.description.free else None)
    import genai_prices

    token_counts = genai_prices.Usage(
        input_tokens=usage.input_tokens, cache_read_tokens=usage.cached_tokens, output_tokens=usage.output_tokens
    )
    try:
        price = genai_prices.calc_price(
            token_counts, model_ref=provider_and_model.partition(":")[2], provider_id=family.description.prices
        )
    except (LookupError, ValueError):
        return replace(usage, cost_usd=None)
    return replace(usage, cost_usd=str(price.total_price.normalize() + 0))


def _raise_if_over_limit(
    scope_phrase: str, setting_suffix: str, spent_usages: Sequence[Usage], expected_usage: Usage, limits: LimitSettings
) -> None:
    total = sum_usages([*spent_usages, expected_usage])
    for unit, amount, limit_format in (
        ("calls", total.calls, "{} calls"),
        ("tokens", total.input_tokens + total.output_tokens, "{:,} tokens"),
        # A paid model without a price is refused at the start; what a site's own server costs is not limited.
        ("usd", sum(Decimal(usage.cost_usd or 0) for usage in (*spent_usages, expected_usage)), "{} US dollars"),
    ):
        setting_name = f"{unit}_{setting_suffix}"
        limit = getattr(limits, setting_name)
        if limit and amount > limit:
            raise SpendingLimitError(
                f"the next call would exceed the limit of {limit_format.format(limit)} for {scope_phrase}",
                code="LLM-LIMIT",
                remedy=f"Decide without this model's answer, or raise {setting_name} in the section [limits] and run again.",
            )
