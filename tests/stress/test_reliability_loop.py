"""Specification 002, section 6.3: three attempts within 30 seconds and 0.10 dollars, with a model that takes two seconds."""

from __future__ import annotations

import asyncio
import json
import time
from decimal import Decimal

import pytest
from extraction.reports import document, draw
from extraction.test_clinical_extractor import embedded_answer, praise
from servers.gemini import GeminiServer, scripted

from evalkit.extraction.field_template import get_field_template
from evalkit.extraction.optimizer import build_loop_config
from evalkit.extraction.reliability_loop import ReliabilityLoop
from evalkit.llm.client import LanguageModel
from evalkit.llm.concurrency_limiter import AimdLimiter
from evalkit.llm.ledger import Ledger
from evalkit.llm.providers.gemini import GeminiProvider

pytestmark = pytest.mark.stress
SENTENCE = "Sections of the specimen show tissue without any further finding of note. "


def test_three_attempts_with_a_model_that_takes_two_seconds() -> None:
    first = draw("pathology", 2).bundle.pages[0]
    bundle = document(first, *([("paragraph", SENTENCE * 40)] for _ in range(4)))
    full = embedded_answer(bundle, "pathology")
    poor = [
        json.dumps({**full, "fields": [one for one in full["fields"] if one["field"] not in ("grade", other)]})
        for other in ("margins", "date", "institution")  # what is judged a second time is not asked about again
    ]
    answers = {"extractor": poor, "evaluator": [lambda call: praise(call.prompt)]}
    with GeminiServer(scripted(answers), delay=2.0, caches=False) as server:
        ledger = Ledger()
        model = LanguageModel(
            GeminiProvider("gemini-2.5-flash", base_url=server.url, api_key="k"), ledger, AimdLimiter(4)
        )
        loop = ReliabilityLoop(build_loop_config(min_improvement=-1.0), model)
        began = time.monotonic()
        result = asyncio.run(loop.execute(bundle, range(1, 6), get_field_template("pathology")))
        seconds = time.monotonic() - began
    spent = ledger.get_usage_in_this_run(bundle.sha256)
    print(f"\n{result.iteration_count} attempts, {spent.calls} calls, {seconds:.1f} s, {spent.cost_usd} dollars")
    assert (result.iteration_count, spent.calls) == (3, 6)
    assert seconds < 30
    assert spent.cost_usd is not None
    assert Decimal(spent.cost_usd) < Decimal("0.10")
