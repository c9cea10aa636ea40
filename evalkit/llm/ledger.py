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

from evalkit.errors import ModelError, StoreError
from evalkit.llm.model import Usage
from evalkit.store import ModelCall

#: Prices by what ``--model`` says before the colon; local models cost nothing.
_PRICED_AS = {"gemini": "google", "openai": "openai", "anthropic": "anthropic"}
_FREE = ("embedded", "ollama")


class Journal(Protocol):
    """Where calls are kept: :class:`evalkit.store.CallJournal`, or memory."""

    def add(self, call: ModelCall) -> None:
        """Keep it; it is kept when this returns."""
        ...

    def of(self, question: str, *, after: int = 0) -> list[ModelCall]:
        """The calls of that question, oldest first; only those behind number ``after``."""
        ...

    def begin_fresh(self) -> int:
        """The number of the newest call when the fresh run began that has not ended yet; one begins, if none has."""
        ...

    def end_fresh(self) -> None:
        """No fresh run is under way any more."""
        ...


class MemoryJournal:
    """A journal that ends with the process."""

    def __init__(self) -> None:
        self._calls: dict[str, list[tuple[int, ModelCall]]] = defaultdict(list)
        self._last = 0

    def add(self, call: ModelCall) -> None:
        """Keep it."""
        self._last += 1
        self._calls[call.question].append((self._last, call))

    def of(self, question: str, *, after: int = 0) -> list[ModelCall]:
        """The calls of that question."""
        return [call for number, call in self._calls.get(question, ()) if number > after]

    def begin_fresh(self) -> int:
        """The number of the newest call."""
        return self._last

    def end_fresh(self) -> None:
        """Nothing to forget: the journal ends with the process."""


@dataclass(frozen=True)
class Limits:
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
    def has_money(self) -> bool:
        """Whether prices have to be known."""
        return self.usd_per_document is not None or self.usd_per_run is not None


class LimitReached(ModelError):
    """Asking would go beyond what may be spent."""


class Ledger:
    """The calls of one run."""

    def __init__(self, journal: Journal | None = None, limits: Limits | None = None, *, fresh: bool = False) -> None:
        """``fresh``: what earlier runs were answered counts for nothing, but for a fresh run that was interrupted."""
        self._journal = journal or MemoryJournal()
        self._limits = limits or Limits()
        self._after = self._journal.begin_fresh() if fresh else 0
        self._spent: dict[str, Usage] = {}
        self._by_role: dict[str, Usage] = {}
        self._run = Usage()
        self._under_way: dict[str, list[Usage]] = defaultdict(list)
        self._broken: StoreError | None = None

    def of(self, question: str) -> list[ModelCall]:
        """What this question was answered last: the calls that failed before it, and it; or those that failed since."""
        calls = self._journal.of(question, after=self._after)
        answered = [-1, *(at for at, call in enumerate(calls) if call.failure is None)]
        is_answered = answered[-1] == len(calls) - 1
        return calls[answered[-2] + 1 :] if is_answered and len(answered) > 1 else calls[answered[-1] + 1 :]

    @property
    def has_money(self) -> bool:
        """Whether what a call may cost has to be known before."""
        return self._limits.has_money

    @property
    def spent(self) -> dict[str, Usage]:
        """By this run, so far, by role; what came from the journal cost nothing again."""
        return dict(sorted(self._by_role.items()))

    def spent_on(self, document: str) -> Usage:
        """By this run on the document of that SHA-256, so far."""
        return self._spent.get(document, Usage())

    @contextmanager
    def begun(self, document: str, expected: Usage) -> Iterator[None]:
        """A call is under way, which counts from now on as ``expected``.

        LimitReached, and nothing is sent, where it may not be; StoreError where an earlier answer could not be kept:
        whatever would be answered now, and paid, would be lost as well.
        """
        if self._broken:
            raise self._broken
        others = [usage for usages in self._under_way.values() for usage in usages]
        _check(
            "a document", "per_document", [self.spent_on(document), *self._under_way[document]], expected, self._limits
        )
        _check("a run", "per_run", [self._run, *others], expected, self._limits)
        self._under_way[document].append(expected)
        try:
            yield
        finally:
            self._under_way[document].remove(expected)
            if not self._under_way[document]:
                del self._under_way[document]

    def note(self, call: ModelCall) -> None:
        """The call has ended: it is counted, and kept when this returns. StoreError where it cannot be kept."""
        usage = usage_of(call)
        self._spent[call.document] = self.spent_on(call.document) + usage
        self._by_role[call.role] = self._by_role.get(call.role, Usage()) + usage
        self._run += usage
        try:
            self._journal.add(call)
        except StoreError as error:
            self._broken = error
            raise

    def end(self) -> None:
        """The run has come to its end: the next fresh one begins anew."""
        self._journal.end_fresh()


def usage_of(call: ModelCall) -> Usage:
    """What a call cost."""
    return Usage(1, call.input_tokens, call.output_tokens, call.cost_usd, call.cached_tokens, call.thought_tokens)


def total(usages: Iterable[Usage]) -> Usage:
    """Their sum; the cost is unknown where one of them is."""
    return sum(usages, Usage())


def priced(model: str, usage: Usage) -> Usage:
    """The usage with its cost in US dollars by the provider's list (genai-prices); None where the model is not in it.

    ``model`` is as ``--model`` names it. A batch's, a region's or a contract's price may differ.
    """
    provider, _, name = model.partition(":")
    if provider in _FREE:
        return replace(usage, cost_usd="0")
    if provider not in _PRICED_AS:
        return replace(usage, cost_usd=None)
    import genai_prices

    counted = genai_prices.Usage(
        input_tokens=usage.input_tokens, cache_read_tokens=usage.cached_tokens, output_tokens=usage.output_tokens
    )
    try:
        price = genai_prices.calc_price(counted, model_ref=name, provider_id=_PRICED_AS[provider])
    except (LookupError, ValueError):
        return replace(usage, cost_usd=None)
    return replace(usage, cost_usd=str(price.total_price.normalize() + 0))


def _check(what: str, suffix: str, spent: Sequence[Usage], expected: Usage, limits: Limits) -> None:
    calls, tokens, usd = (getattr(limits, f"{name}_{suffix}") for name in ("calls", "tokens", "usd"))
    so_far = total(spent)
    then = total([so_far, expected])
    if calls is not None and then.calls > calls:
        raise _reached(what, f"{calls} calls", f"calls_{suffix}")
    if tokens is not None and then.input_tokens + then.output_tokens > tokens:
        raise _reached(what, f"{tokens:,} tokens", f"tokens_{suffix}")
    if usd is not None and (then.cost_usd is None or Decimal(then.cost_usd) > usd):
        raise _reached(what, f"{usd} US dollars", f"usd_{suffix}")


def _reached(what: str, how_many: str, setting: str) -> LimitReached:
    return LimitReached(
        f"the limit of {how_many} for {what} is reached",
        code="LLM-LIMIT",
        remedy=f"Decide it without this check, or raise {setting} in the section [limits] and run again.",
    )
