"""A real language model, small and bad, in every role: nothing crashes, and it makes no decision milder."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks import tax_forms
from commands import evalkit_command
from servers.small_model import is_installed, serve_small_model
from statements.drawn import draw
from statements.reviewing import build_sound_template, now, picture, reviewer_answer, serve_answers, statement

from evalkit.classification.v5_arbiter import Decision
from evalkit.llm.client import LanguageModel
from evalkit.llm.concurrency_limiter import AimdLimiter
from evalkit.llm.ledger import Ledger
from evalkit.llm.providers import build_provider
from evalkit.llm.providers.gemini import GeminiProvider
from evalkit.samples import write_demo_folder
from evalkit.statements.convergence import MAX_RETRIES_BY_SCENARIO
from evalkit.statements.template_review_loop import ReviewLoopConfig, TemplateReviewLoop, TemplateReviewResult

pytestmark = [
    pytest.mark.stress,
    pytest.mark.skipif(not is_installed(), reason="no small language model: run `make small-model`"),
]
MODEL = "openai:gemma-3-270m"
#: Without limits of time, which say more about the machine than about the program.
PATIENT = {
    "EVALKIT_CALL_SECONDS": "1200",
    "EVALKIT_CALLS_IN_FLIGHT": "1",
    "EVALKIT_LIMITS__CALLS_PER_DOCUMENT": "0",
    "EVALKIT_RELIABILITY_LOOP__MAX_ITERATIONS": "2",
    "EVALKIT_RELIABILITY_LOOP__TIMEOUT_MS": "3600000",
    **{
        f"EVALKIT_VLLM_REVIEW__TIMEOUTS__{name}_SECONDS": "3600"
        for name in ("SINGLE_REVIEWER", "BOTH_REVIEWERS", "ARBITRATION", "TOTAL_CYCLE")
    },
    "EVALKIT_VLLM_REVIEW__RETRY__MAX_ATTEMPTS": "1",
}
FIGURES: list[tuple[str, str, float, str | None]] = []
"""Run, role, seconds and failure of every call."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    began = time.monotonic()
    with serve_small_model() as url:
        yield url
    for role in sorted({role for _, role, _, _ in FIGURES}):
        calls = [(seconds, failure) for _, of, seconds, failure in FIGURES if of == role]
        parsed = sum(failure is None for _, failure in calls)
        spent = sum(seconds for seconds, _ in calls)
        failures = sorted({failure for _, failure in calls if failure})
        print(f"\n{role}: {len(calls)} calls, {spent:.0f} s, {parsed / len(calls):.0%} parsed", *failures, end="")
    print(f"\n{len(FIGURES)} calls; {time.monotonic() - began:.0f} s in all")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("small") / "demo"
    write_demo_folder(folder)
    return folder


def command(address: str, output: Path, *words: object, models: tuple[str, ...] = ("default",)) -> str:
    """Run a command with the small model in these roles; what it says."""
    chosen = {f"EVALKIT_MODELS__{role.upper()}": MODEL for role in models}
    environment = {**PATIENT, **chosen, "EVALKIT_OPENAI_BASE_URL": address, "EVALKIT_OUTPUT": str(output)}
    shown = evalkit_command(*words, cwd=output.parent, **environment)
    assert "Traceback" not in shown.stdout + shown.stderr
    assert shown.returncode in (0, 1), shown.stderr
    return shown.stdout


def ask(address: str, output: Path, *words: object, models: tuple[str, ...] = ("default",)) -> str:
    """Run a command that journals its calls, and count them."""
    told = command(address, output, *words, models=models)
    with sqlite3.connect(output / "evalkit.sqlite") as journal:
        calls = journal.execute("SELECT role, seconds, failure FROM calls").fetchall()
    FIGURES.extend((output.name, *call) for call in calls)
    return told


def answered_roles(output: Path) -> set[str]:
    """The roles that were asked in this output folder."""
    return {role for run, role, _, _ in FIGURES if run == output.name}


def decide(output: Path) -> dict[str, tuple[str, set[str]]]:
    """Each document's decision and its issues by code; none may be left without a decision."""
    results = [json.loads(path.read_text()) for path in sorted((output / "results").glob("*.json"))]
    return {row["doc_id"]: (row["decision"], {issue["code"] for issue in row["issues"]}) for row in results}


@pytest.mark.parametrize("profile", ["full", "lean"])
def test_a_bad_model_makes_no_decision_milder(address: str, demo: Path, tmp_path: Path, profile: str) -> None:
    words = ("run", demo, "--profile", profile, "--classifications", demo / "classifications")
    offline, asked = tmp_path / f"offline_{profile}", tmp_path / f"supplied_{profile}"
    assert evalkit_command(*words, "--output", offline, cwd=tmp_path).returncode == 0
    # The classifier is asked for the documents without a supplied answer too: these are compared with nothing.
    ask(address, asked, *words, models=("v2", "v3", "v4", "verifier"))
    ours, theirs = decide(offline), decide(asked)
    assert ours.keys() == theirs.keys()
    milder = [
        doc_id
        for doc_id, (decision, _) in theirs.items()
        if decision == Decision.AUTO_ACCEPT and ours[doc_id][0] != Decision.AUTO_ACCEPT
    ]
    assert milder == []
    lost = {doc_id: lacking for doc_id in ours if (lacking := ours[doc_id][1] - theirs[doc_id][1])}
    print(
        f"\n{profile}: {sum(ours[key][0] != theirs[key][0] for key in ours)} of {len(ours)} stricter; codes lost: {lost}"
    )
    assert answered_roles(asked) == ({"verifier"} if profile == "lean" else {"V2", "V3", "V4"})


def test_a_bad_classifier_crashes_nothing(address: str, demo: Path, tmp_path: Path) -> None:
    """In the lean profile alone: the other roles are asked above, and a call takes ten seconds."""
    output = tmp_path / "own_lean"
    ask(address, output, "run", demo, "--profile", "lean")
    decisions = [decision for decision, _ in decide(output).values()]
    documents = [path for path in demo.glob("*.*") if path.suffix not in (".csv", ".json")]
    assert len(decisions) == len(documents) + 1  # the mail has an attachment
    print(f"\n{decisions.count(Decision.AUTO_ACCEPT)} of {len(decisions)} accepted")
    assert "classifier" in answered_roles(output)


@pytest.mark.parametrize(
    ("models", "roles"),
    [(("extractor",), {"extractor"}), (("evaluator", "grader"), {"evaluator", "grader"})],
    ids=["extractor", "judges"],
)
def test_a_bad_model_extracts_and_judges(
    address: str, demo: Path, tmp_path: Path, models: tuple[str, ...], roles: set[str]
) -> None:
    forms = tmp_path / "forms"
    forms.mkdir()
    for name in ("pathology_report", "radiology_report", "genomic_report"):
        (forms / f"{name}.pdf").write_bytes((demo / f"{name}.pdf").read_bytes())
    (forms / "form.pdf").write_bytes(tax_forms.redrawn(0, 5, 0.0)[0])
    output = tmp_path / f"fields_{models[0]}"
    ask(address, output, "extract", forms, models=models)
    assert len(list((output / "extractions").glob("*.json"))) == 4
    assert answered_roles(output) == roles


def test_a_bad_model_builds_and_reviews_templates(address: str, tmp_path: Path) -> None:
    statement = tmp_path / "statement.pdf"
    statement.write_bytes(draw("check numbers", 1).pdf)
    template, reviewed = tmp_path / "bank.toml", tmp_path / "reviewed"
    told = command(address, tmp_path / "built", "build-template", statement, "--to", template)
    assert re.search(r"builder: [1-9]\d* calls?", told)
    ask(address, reviewed, "review-template", template, statement)
    assert {"layout_geometry", "semantic_financial"} <= answered_roles(reviewed)


def test_a_bad_model_arbitrates(address: str) -> None:
    bundle = statement()
    high = reviewer_answer(("high", "bbox_accuracy", "the last row of the table is cut off"))
    hours = ReviewLoopConfig(
        arbitration_seconds=3600, cycle_seconds=3600, max_retries_by_scenario=dict.fromkeys(MAX_RETRIES_BY_SCENARIO, 0)
    )
    ledger = Ledger()

    async def run() -> TemplateReviewResult:
        small = LanguageModel(
            build_provider(MODEL, environment={}, base_url=address), ledger, AimdLimiter(1), time_limit_seconds=3600
        )
        scripted = LanguageModel(GeminiProvider("m", base_url=server.url, api_key="k"), Ledger(), AimdLimiter(1))
        try:
            loop = TemplateReviewLoop(lambda role: small if role == "arbitrator" else scripted, hours, clock=now)
            return await loop.review_template(build_sound_template(bundle), bundle, page_images=[picture()])
        finally:
            await small.close()
            await scripted.close()

    with serve_answers({"layout_geometry": high}) as server:
        reviewed = asyncio.run(run())
    print(f"\narbitrator: {ledger.usage_by_role['arbitrator']}, {reviewed.cycles[0].outcome}")
    assert ledger.usage_by_role["arbitrator"].calls >= 1
    assert reviewed.cycles[0].outcome in ("approved", "rejected", "escalated")
