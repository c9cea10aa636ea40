"""What was asked and what it cost: journalled before an answer is used, counted, and capped.

An identical question is answered from the journal, on resuming and after a repair: it is the same to the byte, to the
same model. What failed is never used again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Protocol

from typing_extensions import override

from evalkit.errors import ModelError, StoreError
from evalkit.llm.model import Usage
from evalkit.llm.providers import find_family
from evalkit.store import ModelCall


class Journal(Protocol):
    """Where calls are kept: :class:`evalkit.store.CallJournal`, or memory."""

    def add_call(self, call: ModelCall) -> None:
        """Keep it; it is kept when this returns."""

    def find_calls(self, question_sha256: str, *, after_call_number: int = 0) -> list[ModelCall]:
        """The calls of that question, oldest first; only those behind number ``after_call_number``."""

    def get_or_mark_last_call_before_run(self) -> int:
        """The number of the newest call when the fresh run began that has not ended yet; one begins, if none has."""

    def forget_last_call_before_run(self) -> None:
        """No fresh run is under way any more."""


class MemoryJournal(Journal):
    """A journal that ends with the process."""

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
        """Nothing to forget: the journal ends with the process."""


@dataclass(frozen=True)
class SpendingLimits:
    """What may be spent; None: as much as it takes.

    Calls under way count as what they are expected to cost. One that costs more, because a model thinks for long, may
    go beyond a limit of tokens or dollars by that much.
    """

    calls_per_document: int | None = None
    tokens_per_document: int | None = None
    usd_per_document: Decimal | None = None
    calls_per_run: int | None = None
    tokens_per_run: int | None = None
    usd_per_run: Decimal | None = None

    @property
    def has_usd_limit(self) -> bool:
        """Whether prices have to be known."""
        return self.usd_per_document is not None or self.usd_per_run is not None


class SpendingLimitError(ModelError):
    """Asking would go beyond what may be spent."""


class Ledger:
    """The calls of one run."""

    def __init__(
        self,
        journal: Journal | None = None,
        limits: SpendingLimits | None = None,
        *,
        ignore_earlier_answers: bool = False,
    ) -> None:
        """``ignore_earlier_answers``: what earlier runs were answered counts for nothing, but for a fresh run that was interrupted."""
        self._journal = journal or MemoryJournal()
        self.limits = limits or SpendingLimits()
        self._after_number = self._journal.get_or_mark_last_call_before_run() if ignore_earlier_answers else 0
        self._usage_by_document: dict[str, Usage] = {}
        self._usage_by_role: dict[str, Usage] = {}
        self._run_usage = Usage()
        self._expected_by_document: dict[str, list[Usage]] = defaultdict(list)
        self._journal_error: StoreError | None = None

    def find_calls_of_latest_answer(self, question_sha256: str) -> list[ModelCall]:
        """What this question was answered last: the calls that failed before it, and it; or those that failed since."""
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
        """By this run, so far, by role; what came from the journal cost nothing again."""
        return dict(sorted(self._usage_by_role.items()))

    def get_usage_in_this_run(self, document_sha256: str) -> Usage:
        """By this run on the document of that SHA-256, so far."""
        return self._usage_by_document.get(document_sha256, Usage())

    @contextmanager
    def reserve_usage_within_limits(self, document_sha256: str, expected_usage: Usage) -> Iterator[None]:
        """A call is under way, which counts from now on as ``expected_usage``.

        SpendingLimitError, and nothing is sent, where it may not be; StoreError where an earlier answer could not be kept:
        whatever would be answered now, and paid, would be lost as well.
        """
        if self._journal_error:
            raise self._journal_error
        open_usages = [usage for usages in self._expected_by_document.values() for usage in usages]
        _raise_if_over_limit(
            "a document",
            "per_document",
            [self.get_usage_in_this_run(document_sha256), *self._expected_by_document[document_sha256]],
            expected_usage,
            self.limits,
        )
        _raise_if_over_limit("a run", "per_run", [self._run_usage, *open_usages], expected_usage, self.limits)
        self._expected_by_document[document_sha256].append(expected_usage)
        try:
            yield
        finally:
            self._expected_by_document[document_sha256].remove(expected_usage)
            if not self._expected_by_document[document_sha256]:
                del self._expected_by_document[document_sha256]

    def record_call(self, call: ModelCall) -> None:
        """The call has ended: it is counted, and kept when this returns. StoreError where it cannot be kept."""
        usage = get_call_usage(call)
        self._usage_by_document[call.document] = self.get_usage_in_this_run(call.document) + usage
        self._usage_by_role[call.role] = self._usage_by_role.get(call.role, Usage()) + usage
        self._run_usage += usage
        try:
            self._journal.add_call(call)
        except StoreError as error:
            self._journal_error = error
            raise

    def mark_fresh_run_finished(self) -> None:
        """The run has come to its end: the next fresh one begins anew."""
        self._journal.forget_last_call_before_run()


def get_call_usage(call: ModelCall) -> Usage:
    """What a call cost."""
    return Usage(1, call.input_tokens, call.output_tokens, call.cost_usd, call.cached_tokens, call.thought_tokens)


def sum_usages(usages: Iterable[Usage]) -> Usage:
    """Their sum; the cost is unknown where one of them is."""
    return sum(usages, Usage())


def add_list_price(provider_and_model: str, usage: Usage) -> Usage:
    """Add the cost in US dollars by the provider's list (genai-prices); None if the model is not in it.

    ``provider_and_model`` is as ``--model`` names it. A batch's, a region's or a contract's price may differ.
    """
    family = find_family(provider_and_model)
    if family is None or family.is_free or family.price_list is None:
        return replace(usage, cost_usd="0" if family and family.is_free else None)
    import genai_prices

    token_counts = genai_prices.Usage(
        input_tokens=usage.input_tokens, cache_read_tokens=usage.cached_tokens, output_tokens=usage.output_tokens
    )
    try:
        price = genai_prices.calc_price(
            token_counts, model_ref=provider_and_model.partition(":")[2], provider_id=family.price_list
        )
    except (LookupError, ValueError):
        return replace(usage, cost_usd=None)
    return replace(usage, cost_usd=str(price.total_price.normalize() + 0))


def _raise_if_over_limit(
    scope_phrase: str, setting_suffix: str, spent_usages: Sequence[Usage], expected_usage: Usage, limits: SpendingLimits
) -> None:
    total = sum_usages([*spent_usages, expected_usage])
    cost = None if total.cost_usd is None else Decimal(total.cost_usd)
    for unit, amount, limit_format in (
        ("calls", total.calls, "{} calls"),
        ("tokens", total.input_tokens + total.output_tokens, "{:,} tokens"),
        ("usd", cost, "{} US dollars"),
    ):
        setting_name = f"{unit}_{setting_suffix}"
        limit = getattr(limits, setting_name)
        if limit is not None and (amount is None or amount > limit):
            raise SpendingLimitError(
                f"the limit of {limit_format.format(limit)} for {scope_phrase} is reached",
                code="LLM-LIMIT",
                remedy=f"Decide it without this check, or raise {setting_name} in the section [limits] and run again.",
            )
