"""A language model is never believed by default: whatever goes wrong is repeated where that may help, or escalates."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from builders import (
    GENOMIC,
    codes,
    compose_model_answer,
    copy_with,
    doc2_6,
    doc2_6_answer,
    document,
    evidence,
    one_segment,
    parse_answer,
)
from patience import SECONDS
from PIL import Image
from pydantic import BaseModel
from servers import gemini
from servers.gemini import Call, Fault, GeminiServer

from evalkit.classification.orchestrator import ClassificationOutcome, RetryOrchestrator
from evalkit.classification.v4_evidence_quality import V4EvidenceQualityAssessor
from evalkit.documents.render import encode_png
from evalkit.errors import ModelSetupError, RunStopped, StoreError
from evalkit.llm.client import LanguageModel
from evalkit.llm.concurrency_limiter import AimdLimiter
from evalkit.llm.ledger import Ledger, MemoryJournal
from evalkit.llm.model import Question, Reply, Request, Usage
from evalkit.llm.model_families import estimate_input_tokens
from evalkit.llm.prompts import fence_document
from evalkit.llm.providers.gemini import GeminiProvider
from evalkit.settings import LimitSettings
from evalkit.store import hash_canonical_json

NOTHING_FOUND = '{"findings": []}'
ROLES = {"full": ["classifier", "V2", "V3", "V4"], "lean": ["verifier"]}
PATIENT, KEY = "Zebulon Quartermain", "AIza-planted-key"


def right(call: Call) -> str:
    if call.role == "classifier":
        return json.dumps(compose_model_answer(parse_answer(doc2_6_answer()), doc2_6()))
    return NOTHING_FOUND


def asked(
    server: GeminiServer, model: str = "gemini-2.5-flash", *, ledger: Ledger | None = None, seconds: float = 60
) -> LanguageModel:
    provider = GeminiProvider(model, base_url=server.url, api_key=KEY)
    return LanguageModel(
        provider, ledger or Ledger(), AimdLimiter(64), time_limit_seconds=seconds, max_first_wait=0.001, max_wait=0.01
    )


async def evaluated(model: LanguageModel, **options: Any) -> ClassificationOutcome:
    try:
        return await RetryOrchestrator(model, **options).evaluate(doc2_6())
    finally:
        await model.close()


# ------------------------------------------------------------------------------------------ faults × roles × attempts


PASSING = (
    gemini.INTERNAL,
    gemini.OVERLOADED,
    gemini.http_error(429, retry_after=0),
    gemini.HANG,
    gemini.DRIP,
    gemini.DROPPED,
    gemini.RESET,
    gemini.CUT,
    gemini.BABBLE,
    gemini.NOT_JSON,
    gemini.NO_RESPONSE,
    gemini.NO_CANDIDATES,
    gemini.EMPTY_TEXT,
    gemini.UNKNOWN_REASON,
)
NONSENSE = (gemini.HALF_JSON, gemini.WRONG_SCHEMA, gemini.OBJECT_FOR_LIST)
CUT_OFF = (gemini.TRUNCATED, gemini.finished(None, share=0.5), gemini.finished("", share=0.9))
#: The first is refused for its size or content, for a test question is answered.
FINAL = (
    gemini.BAD_REQUEST,
    gemini.SAFETY,
    gemini.RECITATION,
    gemini.BLOCKED,
)
#: No document's fault.
SETUP = (gemini.WRONG_KEY, gemini.FORBIDDEN, gemini.NO_SUCH_MODEL)
ALWAYS = 99
#: Attempts at a question that may pass, one that is answered with nonsense or not to its end, and one that is refused.
ATTEMPTS = ((PASSING, 5), (NONSENSE, 2), (CUT_OFF, 2), (FINAL, 1))


@pytest.mark.parametrize(
    ("fault", "attempts"), [(fault, attempts) for faults, attempts in ATTEMPTS for fault in faults], ids=repr
)
def test_faults_of_every_role_escalate_or_are_retried(fault: Fault, attempts: int) -> None:
    is_slow = fault in (gemini.HANG, gemini.DRIP)
    tried = 2 if is_slow else attempts
    cells = [
        (profile, role, times)
        for profile, roles in ROLES.items()
        for role in roles
        for times in (*range(1, min(tried, 4)), ALWAYS)
    ]
    bundles = [doc2_6().model_copy(update={"sha256": f"{number:064x}"}) for number in range(len(cells))]
    marks = {fence_document(bundle, []).split()[0]: number for number, bundle in enumerate(bundles)}
    seen: Counter[int] = Counter()

    def answer(call: Call) -> str | Fault:
        number = marks[call.prompt.split(maxsplit=1)[0]]
        _, role, times = cells[number]
        seen[number] += call.role == role
        return fault.within(right(call)) if call.role == role and seen[number] <= times else right(call)

    async def all_cells(server: GeminiServer) -> list[ClassificationOutcome]:
        model = asked(server, seconds=10 if is_slow else 60)
        judges = {profile: RetryOrchestrator(model, profile=profile) for profile in ROLES}  # type: ignore[arg-type]
        outcomes = (judges[cell[0]].evaluate(bundle) for cell, bundle in zip(cells, bundles, strict=True))
        try:
            return await asyncio.gather(*outcomes)
        finally:
            await model.close()

    with GeminiServer(answer) as server:
        found = asyncio.run(all_cells(server))
    for (profile, role, times), outcome in zip(cells, found, strict=True):
        is_shape = role == "classifier" and fault in (gemini.WRONG_SCHEMA, gemini.OBJECT_FOR_LIST)
        failing = ["V2", "V3", "V4"] if role == "verifier" else [role]
        failed = ["V1-UNPARSEABLE"] if is_shape else [f"{agent.upper()}-AGENT-FAILED" for agent in failing]
        expected = ("AUTO_ACCEPT", []) if times < tried else ("ESCALATE_TO_SME", failed)
        assert (outcome.verdict.decision, codes(outcome.issues)) == expected, (profile, role, times)
        assert outcome.evidence_quality_score == (1.0 if times < tried or role in ("V2", "V3") else None)
        assert outcome.usage.by_agent[role].calls == min(times + 1, tried)


@pytest.mark.parametrize("fault", [gemini.UNKNOWN_SEVERITY, gemini.INVENTED_IDS, gemini.THOUGHTS], ids=repr)
@pytest.mark.parametrize("role", ["V2", "V3", "V4", "verifier"])
def test_findings_that_do_not_fit_are_never_no_findings(fault: Fault, role: str) -> None:
    said = json.loads(gemini.RIGHT)
    said["findings"][0] |= {"check": "V3"}

    def answer(call: Call) -> str | Fault:
        return fault.within(json.dumps(said)) if call.role == role else right(call)

    with GeminiServer(answer) as server:
        outcome = asyncio.run(evaluated(asked(server), profile="lean" if role == "verifier" else "full"))
    agents = {"verifier": ["V2", "V3", "V4"]}.get(role, [role])
    if fault is gemini.UNKNOWN_SEVERITY:
        assert codes(outcome.issues) == [f"{agent}-AGENT-FAILED" for agent in agents]
    else:
        assert {issue.origin for issue in outcome.issues} == {"model"}
        assert all(issue.issue_id.startswith(issue.agent) for issue in outcome.issues)


@pytest.mark.parametrize("profile", ["full", "lean"])
def test_model_finding_nothing_keeps_rule_findings(profile: str) -> None:
    """A blood panel that is called a genomic report: the forms of the text say so, whatever the model answers."""
    bundle = document("CBC with differential\nWBC 8.2 4.0-11.0\nHemoglobin 13.4 12.0-16.0\nPlatelets 240 150-400")
    claimed = one_segment(GENOMIC, 1, evidence("WBC 8.2 4.0-11.0", 1))

    async def outcome_of(model: LanguageModel) -> ClassificationOutcome:
        try:
            return await RetryOrchestrator(model, profile=profile).evaluate(bundle, claimed)  # type: ignore[arg-type]
        finally:
            await model.close()

    with GeminiServer(lambda call: NOTHING_FOUND) as server:
        outcome = asyncio.run(outcome_of(asked(server)))
        assert {call.role for call in server.calls} == ({"verifier"} if profile == "lean" else {"V2", "V3", "V4"})
    assert outcome.verdict.decision == "ESCALATE_TO_SME"
    assert {"V2-SECOND-READING", "V2-SEMANTIC", "V4-EVIDENCE-WEAK"} <= set(codes(outcome.issues))
    assert {issue.origin for issue in outcome.issues} == {"rule"}


def test_retry_after_beyond_the_deadline_is_not_waited_for() -> None:
    with GeminiServer(lambda call: gemini.rate_limited(10_000)) as server:
        with pytest.raises(RunStopped, match="takes no calls within 600 seconds"):
            asyncio.run(evaluated(asked(server)))
        assert (len(server.calls), len(server.probes)) == (1, 0)


# ------------------------------------------------------------------------------------------------------- the ledger


def test_calls_as_ruling_4_counts_them() -> None:
    with GeminiServer(right) as server:
        journal = MemoryJournal()
        for profile, calls in (("full", 4), ("lean", 2)):
            before = len(server.calls)
            asyncio.run(evaluated(asked(server, ledger=Ledger(journal)), profile=profile))
            # The classifier's answer is in the journal when the second profile begins.
            assert len(server.calls) - before == calls - (profile == "lean")
        asyncio.run(evaluated(asked(server, ledger=Ledger(journal))))
        assert len(server.calls) == 5
        asyncio.run(evaluated(asked(server, ledger=Ledger(journal, ignore_earlier_answers=True))))
        assert len(server.calls) == 9


@pytest.mark.parametrize(
    ("changes", "roles"),
    [
        ({"number_of_segments": 3}, ["classifier"]),
        ({"segments.0.segment_composition.0.segment_share": 0.91}, ["V2", "V3", "V4", "classifier"]),
    ],
    ids=["V1 blocker", "repair"],
)
def test_a_blocker_ends_the_asking_and_a_repair_asks_no_more(changes: dict[str, Any], roles: list[str]) -> None:
    claimed = json.dumps(copy_with(doc2_6_answer(), changes))
    with GeminiServer(lambda call: claimed if call.role == "classifier" else NOTHING_FOUND) as server:
        outcome = asyncio.run(evaluated(asked(server)))
        assert sorted(call.role for call in server.calls) == roles
    assert outcome.usage.calls == len(roles)


def test_an_entry_that_cannot_be_read_any_more_is_asked_again() -> None:
    class Torn(MemoryJournal):
        def find_calls(self, question_sha256: str, *, after_call_number: int = 0) -> list[Any]:
            return [
                replace(call, answer="{}")
                for call in super().find_calls(question_sha256, after_call_number=after_call_number)
            ]

    journal = Torn()
    with GeminiServer(right) as server:
        for _ in range(2):
            outcome = asyncio.run(evaluated(asked(server, ledger=Ledger(journal))))
            assert outcome.verdict.decision == "AUTO_ACCEPT"
        assert len(server.calls) == 8


def test_when_answers_cannot_be_kept_no_more_are_paid() -> None:
    class Full(MemoryJournal):
        def add_call(self, call: Any) -> None:
            raise StoreError("no space", code="STORE-FULL", remedy="Free some.")

    async def three(server: GeminiServer) -> None:
        model = asked(server, ledger=Ledger(Full()))
        for _ in range(3):
            with pytest.raises(StoreError):
                await RetryOrchestrator(model).evaluate(doc2_6())
        await model.close()

    with GeminiServer(right) as server:
        asyncio.run(three(server))
        assert len(server.calls) == 1


def test_a_provider_that_wants_a_long_rest_is_left_alone() -> None:
    async def three(server: GeminiServer) -> None:
        model = asked(server)
        for _ in range(3):
            with pytest.raises(RunStopped):
                await RetryOrchestrator(model).evaluate(doc2_6())
        await model.close()

    with GeminiServer(lambda call: gemini.rate_limited(10_000)) as server:
        asyncio.run(three(server))
        assert (len(server.calls), len(server.probes)) == (1, 0)


@pytest.mark.parametrize(
    "said",
    [
        '{"findings": [], "findings": ["Zebulon Quartermain"]}',
        '{"Zebulon Quartermain": 1}',
        '{"findings": "Zebulon Quartermain"}',
        '{"findings": []} {"findings": [{"Zebulon": "Quartermain"}]}',
        "[" * 9_999,
    ],
    ids=["a field twice", "another field", "another type", "two answers", "nothing but brackets"],
)
def test_an_odd_answer_is_none_and_no_reason_quotes_it(said: str) -> None:
    with GeminiServer(lambda call: said if call.role == "V3" else right(call)) as server:
        outcome = asyncio.run(evaluated(asked(server)))
    (issue,) = outcome.issues
    assert issue.code == "V3-AGENT-FAILED"
    assert "Zebulon" not in issue.model_dump_json()


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ("The record holds a note.", "is not one JSON value: it is not JSON"),
        (json.dumps(doc2_6_answer())[:-9], "is not one JSON value: it is cut off"),
        (
            json.dumps(copy_with(doc2_6_answer(), {"segments.0.dominant_type": "Zebulon"})),
            "asked for: segments[0].dominant_type must be one of Clinical Note, Pathology Report,",
        ),
        (
            json.dumps(copy_with(doc2_6_answer(), {"segments.0.startPage": 3})),
            "asked for: segments[0].start_page appears twice",
        ),
    ],
    ids=["no JSON", "cut off", "another type", "two values"],
)
def test_the_second_attempt_is_told_what_was_wrong(said: str, fault: str) -> None:
    with GeminiServer(
        gemini.scripted({"classifier": [said, right], "V2": [right], "V3": [right], "V4": [right]})
    ) as server:
        outcome = asyncio.run(evaluated(asked(server)))
        first, second = (call.prompt for call in server.calls if call.role == "classifier")
    assert outcome.verdict.decision == "AUTO_ACCEPT"
    assert second.startswith(first)
    assert fault in second.removeprefix(first)
    assert "Zebulon" not in second
    assert "could not be used" not in first


def test_harmless_spellings_of_models_are_read_and_listed() -> None:
    def answer(call: Call) -> str:
        text = right(call) if call.role == "classifier" else "[]"
        return f"Here you are:\n```json\n{text}\n```" if call.role in ("classifier", "V3") else text

    with GeminiServer(answer) as server:
        journal = MemoryJournal()
        first, again = (asyncio.run(evaluated(asked(server, ledger=Ledger(journal)))) for _ in range(2))
        assert len(server.calls) == 4
    assert first.verdict.decision == "AUTO_ACCEPT"
    assert list(first.attempts[0].normalised) == [
        "V2: a bare list read as findings",
        "V3: a bare list read as findings",
        "V3: text around the JSON left out",
        "V4: a bare list read as findings",
        "classifier: text around the JSON left out",
    ]
    assert again.attempts == first.attempts


def test_cost_is_known_and_equal_from_the_journal() -> None:
    journal = MemoryJournal()
    with GeminiServer(
        gemini.scripted({"classifier": [gemini.INTERNAL, right], "V2": [right], "V3": [right], "V4": [right]})
    ) as server:
        first, second = (
            asyncio.run(evaluated(asked(server, "gemini-2.5-flash", ledger=Ledger(journal)))) for _ in range(2)
        )
        assert len(server.calls) == 5
    assert first.usage == second.usage
    assert first.usage.by_agent["classifier"].calls == 2
    assert Decimal(first.usage.cost_usd or "0") > 0
    assert first.usage.output_tokens > 4 * gemini.THOUGHT_TOKENS


def test_unpriced_model_has_unknown_cost() -> None:
    with GeminiServer(right) as server:
        assert asyncio.run(evaluated(asked(server, "house-model"))).usage.cost_usd is None


@pytest.mark.parametrize(
    ("limits", "calls"),
    [
        (LimitSettings(calls_per_document=1), 1),
        (LimitSettings(calls_per_document=3), 3),
        (LimitSettings(calls_per_document=0, tokens_per_document=10), 0),
        (LimitSettings(calls_per_document=0, usd_per_document=Decimal("0.0000001")), 0),
    ],
    ids=["document", "three", "tokens", "dollars"],
)
def test_a_document_limit_escalates_and_says_so_before_it_is_passed(limits: LimitSettings, calls: int) -> None:
    """Calls that are under way together count for each other."""
    with GeminiServer(right, delay=0.1) as server:
        outcome = asyncio.run(evaluated(asked(server, "gemini-2.5-flash", ledger=Ledger(limits=limits))))
        assert len(server.calls) == calls
    failed = [one for one in outcome.issues if one.code.endswith("-AGENT-FAILED")]
    assert outcome.verdict.decision == "ESCALATE_TO_SME"
    assert len(failed) == (4 - calls if calls else 1)
    assert all("the limit of" in one.message and "LLM-LIMIT" in one.message for one in failed)


@pytest.mark.parametrize(
    "limits",
    [
        LimitSettings(calls_per_document=0, calls_per_run=1),
        LimitSettings(calls_per_document=0, tokens_per_run=3_500),
        LimitSettings(calls_per_document=0, usd_per_run=Decimal("0.0035")),
    ],
    ids=["calls", "tokens", "dollars"],
)
def test_a_run_limit_stops_the_run_before_it_is_passed(limits: LimitSettings) -> None:
    with GeminiServer(right, delay=0.1) as server:
        with pytest.raises(RunStopped, match="for one run, so the run was stopped") as stopped:
            asyncio.run(evaluated(asked(server, "gemini-2.5-flash", ledger=Ledger(limits=limits))))
        assert len(server.calls) == 1
    assert stopped.value.code == "LLM-LIMIT"
    assert "section [limits]" in stopped.value.remedy


def test_an_answer_is_in_the_journal_before_it_is_used() -> None:
    class Broken(MemoryJournal):
        def add_call(self, call: Any) -> None:
            raise OSError("no space")

    with GeminiServer(right) as server, pytest.raises(OSError, match="no space"):
        asyncio.run(evaluated(asked(server, ledger=Ledger(Broken()))))


def test_cancelled_call_is_still_journalled() -> None:
    journal, arrived = MemoryJournal(), threading.Event()

    def answer(call: Call) -> str:
        arrived.set()
        return right(call)

    async def stopped(server: GeminiServer) -> None:
        model = asked(server, ledger=Ledger(journal))
        run = asyncio.create_task(RetryOrchestrator(model).evaluate(doc2_6()))
        await asyncio.to_thread(arrived.wait, 10)
        run.cancel()
        await asyncio.wait([run])
        await model.close()

    with GeminiServer(answer, delay=0.2) as server:
        asyncio.run(stopped(server))
        assert journal.get_or_mark_last_call_before_run() == 1
        asyncio.run(evaluated(asked(server, ledger=Ledger(journal))))
        assert [call.role for call in server.calls].count("classifier") == 1


def test_failed_call_of_a_stopped_run_prints_no_traceback() -> None:
    arrived = threading.Event()

    def answer(_call: Call) -> Fault:
        arrived.set()
        return gemini.WRONG_KEY

    async def list_complaints(server: GeminiServer) -> list[str]:
        complaints: list[str] = []
        asyncio.get_running_loop().set_exception_handler(lambda _loop, told: complaints.append(told["message"]))
        model = asked(server)
        run = asyncio.create_task(RetryOrchestrator(model).evaluate(doc2_6()))
        await asyncio.to_thread(arrived.wait, 10)
        run.cancel()
        # The call ends before anyone closes the model.
        await asyncio.wait(asyncio.all_tasks() - {asyncio.current_task()})
        gc.collect()
        await model.close()
        return complaints

    with GeminiServer(answer, delay=0.2) as server:
        assert asyncio.run(list_complaints(server)) == []


# ------------------------------------------------------------------------------------------------------- the prompt


def test_prompts_of_a_document_share_a_cached_prefix() -> None:
    bundle = doc2_6()
    with GeminiServer(right) as server:
        asyncio.run(evaluated(asked(server)))
        prompts = [call.prompt for call in server.calls]
    assert len(prompts) == 4
    end = prompts[0].index("</document-") + 24
    assert len({prompt[:end] for prompt in prompts}) == 1
    assert all(f"\n1|{page.paragraphs[0]}" in prompts[0][:end] for page in bundle.pages)


# ------------------------------------------------------------------------------------------------------- liars and leaks


def test_compliant_model_does_not_soften_the_verdict() -> None:
    fabricated = copy_with(
        doc2_6_answer(), {"segments.0.segment_composition.0.top_evidence.0.snippet": "words that stand nowhere at all"}
    )
    with GeminiServer(lambda call: json.dumps(fabricated) if call.role == "classifier" else NOTHING_FOUND) as server:
        outcome = asyncio.run(evaluated(asked(server)))
    assert V4EvidenceQualityAssessor().validate(outcome.classification, doc2_6()).issues  # type: ignore[arg-type]
    assert outcome.verdict.decision == "ESCALATE_TO_SME"


def test_no_log_at_any_level_has_text_name_or_key(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(1)
    faults = [*PASSING[:3], *PASSING[5:], *NONSENSE, *FINAL, *SETUP]
    for fault in faults:
        answer = partial(fault.within, f'{{"{PATIENT}": 1}}')
        with GeminiServer(lambda call, answer=answer: answer()) as server, suppress(ModelSetupError):  # type: ignore[misc]
            asyncio.run(evaluated(asked(server)))
    said = "\n".join(f"{record.getMessage()} {record.args} {record.exc_text}" for record in caplog.records)
    assert "classifier" in said  # that it failed is told
    for secret in (KEY, PATIENT, doc2_6().page(1).paragraphs[0]):
        assert secret not in said


# ------------------------------------------------------------------------------------------------------- the gate


@dataclass
class Clock:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Instant:
    """A provider that answers at once, and notes how many calls were under way together."""

    name: str = "ollama:instant"
    under_way: int = 0
    most: int = 0
    seconds: float = 0.0
    answer: Callable[[], str] = lambda: NOTHING_FOUND
    sent: list[Request] = field(default_factory=list)

    async def send(self, request: Request) -> Reply:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        self.sent.append(request)
        await asyncio.sleep(self.seconds)
        self.under_way -= 1
        return Reply(self.answer(), Usage(calls=1))

    async def close(self) -> None:
        pass


def test_no_more_calls_at_once_than_allowed() -> None:
    provider = Instant(seconds=0.005)

    async def many() -> None:
        gate = AimdLimiter(3)
        await asyncio.gather(*(evaluated(LanguageModel(provider, Ledger(), gate), profile="full") for _ in range(20)))

    asyncio.run(many())
    assert provider.most == 3


def test_throttling_halves_the_limit_once_and_success_raises_it() -> None:
    clock = Clock()

    async def use() -> list[int]:
        gate = AimdLimiter(8, clock)
        entered = [await gate.acquire_slot_and_get_time() for _ in range(8)]
        for when in entered:
            gate.release_slot()
            gate.record_throttling(when, 5.0)
        seen = [gate.current_limit]
        clock.now += 1
        waiting = asyncio.create_task(gate.acquire_slot_and_get_time())
        await asyncio.sleep(0)
        assert not waiting.done(), "the provider wanted rest"
        clock.now += 5
        gate._wake_waiters()
        gate.record_throttling(await waiting, None)
        seen.append(gate.current_limit)
        for _ in range(50):
            gate.record_success()
        return [*seen, gate.current_limit]

    assert asyncio.run(use()) == [4, 2, 8]


def test_slot_of_a_cancelled_waiter_goes_to_the_next() -> None:
    async def use() -> bool:
        gate = AimdLimiter(1)
        await gate.acquire_slot_and_get_time()
        first, second = (asyncio.create_task(gate.acquire_slot_and_get_time()) for _ in range(2))
        await asyncio.sleep(0)
        gate.release_slot()
        first.cancel()
        await asyncio.wait([second], timeout=2)
        return second.done()

    assert asyncio.run(use())


# ------------------------------------------------------------------------------------- a question's own time and mood


class Remark(BaseModel):
    words: str


class Aside(Question[Remark]):
    """A question of no task."""

    role, answer_type = "aside", Remark

    def __init__(self, temperature: float = 0.0, seconds: float | None = None) -> None:
        self.temperature, self.time_limit_seconds = temperature, seconds

    def render_prompt(self) -> str:
        return "What do you say?"

    def offline(self) -> Remark:
        return Remark(words="nothing")


async def said(server: GeminiServer, *questions: Aside, ledger: Ledger | None = None, seconds: float = 60) -> list[Any]:
    model = asked(server, ledger=ledger, seconds=seconds)
    try:
        return [await model.ask(question) for question in questions]
    finally:
        await model.close()


def test_the_temperature_arrives_and_makes_it_another_question() -> None:
    ledger = Ledger()
    with GeminiServer(lambda call: '{"words": "well"}') as server:
        asyncio.run(said(server, Aside(), Aside(0.2), Aside(0.2), Aside(), Aside(0.7), ledger=ledger))
        assert [call.config["temperature"] for call in server.calls] == [0, 0.2, 0.7]


def test_temperature_0_keeps_the_journal_key_stable() -> None:
    """What a journal has is not paid again because of a new version."""
    journal = MemoryJournal()
    question = Aside()
    plain = {
        "model": "gemini:gemini-2.5-flash", "address": None, "role": "aside", "prompt": question.prompt(),
        "schema": question.get_answer_schema(), "images": [],
    }  # fmt: skip
    with GeminiServer(lambda call: '{"words": "well"}') as server:
        asyncio.run(said(server, question, ledger=Ledger(journal)))
    assert [call.answer for call in journal.find_calls(hash_canonical_json(plain))] == ['{"words": "well"}']


@pytest.mark.parametrize(("own", "all_", "calls"), [(1.2, 600, 1), (None, 6, 2)])
def test_question_timeout_bounds_a_single_call(own: float | None, all_: float, calls: int) -> None:
    with GeminiServer(lambda call: gemini.HANG) as server:
        began = time.monotonic()
        (answer,) = asyncio.run(said(server, Aside(seconds=own), seconds=all_))
        assert (own or all_) - 0.1 <= time.monotonic() - began < SECONDS
        assert len(server.calls) == calls
    assert answer.value is None
    assert "LLM-TIMEOUT" in answer.failure


# ------------------------------------------------------------------------------------------------- answers without end


def test_a_truncated_answer_is_asked_for_once_with_more_room() -> None:
    long_answer = '{"words": "' + "well " * 40_000
    truncated = gemini.finished("MAX_TOKENS").within(long_answer)
    with GeminiServer(gemini.scripted([gemini.INTERNAL, truncated, '{"words": "well"}'])) as server:
        (answer,) = asyncio.run(said(server, Aside()))
        limits = [call.config.get("maxOutputTokens") for call in server.calls]
    assert answer.value == Remark(words="well")
    assert limits == [None, None, 4 * (len(long_answer) // 4 + gemini.THOUGHT_TOKENS)]
    with GeminiServer(lambda call: gemini.TRUNCATED) as server:
        (answer,) = asyncio.run(said(server, Aside()))
        assert [call.config.get("maxOutputTokens") for call in server.calls] == [None, 16_384]
    assert "LLM-TRUNCATED" in answer.failure


@pytest.mark.parametrize("reason", [None, "", "FINISH_REASON_UNSPECIFIED"])
@pytest.mark.parametrize(
    ("text", "code", "calls"),
    [
        ('Here:\n```json\n{"words": "well"}\n```', "", 1),
        ('{"words": "well', "LLM-TRUNCATED", 2),
        ('{"words": "well"}, {"wor', "LLM-TRUNCATED", 2),
        ('{"words": "well"} But page 2 says', "LLM-TRUNCATED", 2),
        ('{"voice": "well"}', "LLM-SHAPE", 2),
    ],
)
def test_without_finish_reason_the_content_decides(reason: str | None, text: str, code: str, calls: int) -> None:
    with GeminiServer(lambda call: gemini.finished(reason).within(text)) as server:
        (answer,) = asyncio.run(said(server, Aside()))
        assert len(server.calls) == calls
    assert (answer.value is None) == bool(code)
    assert code in (answer.failure or "")


@pytest.mark.parametrize(("size", "tokens"), [((1000, 500), 1000), ((1, 1), 0), ((910, 1287), 2342)])
def test_a_picture_costs_tokens_by_its_size(size: tuple[int, int], tokens: int) -> None:
    assert estimate_input_tokens("", "", {}, [encode_png(Image.new("L", size))]) == tokens


@pytest.mark.parametrize(("limit", "calls"), [(3_000, 0), (4_000, 1)])
def test_pictures_count_for_a_limit_before_they_are_sent(limit: int, calls: int) -> None:
    question = Aside()
    question.images = (encode_png(Image.new("L", (1000, 1000))),)
    with GeminiServer(lambda call: '{"words": "a picture"}') as server:
        limits = LimitSettings(calls_per_document=0, tokens_per_document=limit)
        asyncio.run(said(server, question, ledger=Ledger(limits=limits)))
        assert len(server.calls) == calls
