"""What a run will cost is said before it, and a paid model is not asked without a limit."""

from __future__ import annotations

import io
import json
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from commands import evalkit_command
from system.runs.live import MODEL, gemini_run, notes, serve_model

from evalkit.cli.spending import run_within_budget
from evalkit.errors import UsageError
from evalkit.pipeline.model_session import ModelSession
from evalkit.settings import Settings

NOTES = 3


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return notes(tmp_path_factory.mktemp("spending") / "notes", NOTES)


def estimate(written: Path, output: Path, *options: str, **environment: str) -> dict[str, Any]:
    words = gemini_run(written, output, "--estimate", "--json", *options)[3:]
    done = evalkit_command(*words, **environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_estimate_is_what_the_run_then_calls(written: Path, tmp_path: Path) -> None:
    """Without a key or a server; the run that follows makes just these calls, and the next one none."""
    output = tmp_path / "output"
    expected = estimate(written, output)
    assert {row["role"]: row["usage"]["calls"] for row in expected["rows"]} == dict.fromkeys(
        ("V2", "V3", "V4", "classifier"), NOTES
    )
    assert {row["model"] for row in expected["rows"]} == {f"gemini:{MODEL}"}
    assert not list(output.glob("results/*.json"))
    read_at = {path.name: path.stat().st_mtime_ns for path in output.glob("document_bundles/*.json")}
    assert len(read_at) == NOTES
    with serve_model(output) as served:
        done = evalkit_command(*gemini_run(written, output, "--json")[3:], **served.environment)
        assert done.returncode == 0, done.stderr
        assert len(served.calls) == expected["usage"]["calls"]
        spent = json.loads(done.stdout)["by_agent"]
    assert {path.name: path.stat().st_mtime_ns for path in output.glob("document_bundles/*.json")} == read_at
    for row in expected["rows"]:
        assert 0 < spent[row["role"]]["input_tokens"] <= row["usage"]["input_tokens"]
        assert 0 < Decimal(spent[row["role"]]["cost_usd"]) <= Decimal(row["usage"]["cost_usd"])
    address = {"EVALKIT_GEMINI_BASE_URL": served.server.url}
    again = estimate(written, output, **address)
    assert (again["rows"], again["finished"], again["minutes"]) == ([], NOTES, 0)
    lean = estimate(written, output, "--profile", "lean", **address)
    assert [(row["role"], row["usage"]["calls"]) for row in lean["rows"]] == [("verifier", NOTES)]
    assert lean["rows"][0]["is_time_measured"]
    fresh = estimate(written, output, "--fresh", **address)
    assert fresh["usage"]["calls"] == 4 * NOTES
    with_fields = estimate(written, output, "--extract", **address)
    assert {row["role"] for row in with_fields["rows"]} == {"extractor"}
    assert with_fields["finished"] == 0


def test_an_unanswered_question_is_estimated_again(written: Path, tmp_path: Path) -> None:
    output = tmp_path / "output"
    with serve_model(output, lambda call: "I cannot say." if call.role == "V4" else None) as served:
        evalkit_command(*gemini_run(written, output)[3:], **served.environment)
    again = estimate(written, output, EVALKIT_GEMINI_BASE_URL=served.server.url)
    assert [(row["role"], row["usage"]["calls"]) for row in again["rows"]] == [("V4", NOTES)]
    assert again["finished"] == 0


def test_the_estimate_says_that_a_price_is_unknown(written: Path, tmp_path: Path) -> None:
    done = evalkit_command("run", written, "--output", tmp_path, "--model", "gemini:house-model", "--estimate")
    assert done.returncode == 0
    assert "price unknown" in done.stdout
    assert "10.0 (assumed)" in done.stdout


def test_the_built_in_model_is_estimated_without_reading(written: Path, tmp_path: Path) -> None:
    done = evalkit_command("run", written, "--output", tmp_path / "output", "--estimate")
    assert "0 calls, 0.00 US dollars" in done.stdout
    assert not list((tmp_path / "output").glob("document_bundles/*"))


def test_a_paid_model_without_limit_is_refused(written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EVALKIT_LIMITS__CALLS_PER_RUN")
    output = tmp_path / "output"
    with serve_model(output) as served:
        environment = served.environment
        del environment["EVALKIT_LIMITS__USD_PER_RUN"]
        for command in ("run", "extract"):
            words = (command, written, "--output", output, "--model", f"gemini:{MODEL}")
            done = evalkit_command(*words, **environment)
            assert (done.returncode, served.calls, served.server.probes) == (2, [], [])
            assert "--usd-per-run N" in done.stderr
        done = evalkit_command(*("run", *words[1:], "--usd-per-run", 5), **environment)
        assert done.returncode == 0, done.stderr
        assert len(served.calls) == 4 * NOTES
    assert evalkit_command("run", written, "--output", tmp_path / "embedded").returncode == 0


@pytest.mark.parametrize(
    ("model", "address", "is_refused"),
    [
        ("embedded", None, False),
        ("ollama:llama3.1", None, False),
        ("openai:house-model", "http://127.0.0.1:9/v1", False),
        ("openai:gpt-4.1", "http://127.0.0.1:9/v1", True),
        ("openai:gpt-4.1", None, True),
        ("openai:house-model", None, True),
        (f"gemini:{MODEL}", None, True),
        ("anthropic:claude-sonnet-4-5", None, True),
    ],
)
@pytest.mark.parametrize("limits", [{}, {"usd_per_run": 0}, {"usd_per_run": 5}, {"tokens_per_run": 1000}])
def test_only_paid_models_need_a_limit(
    model: str, address: str | None, is_refused: bool, limits: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EVALKIT_LIMITS__CALLS_PER_RUN")
    for name in ("GEMINI_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "k")
    settings = Settings.load(models={"default": model}, limits=limits, openai_base_url=address)
    try:
        ModelSession(settings)
        code = None
    except UsageError as error:
        code = error.code
    has_no_price = is_refused and model == "openai:house-model" and limits.get("usd_per_run")
    assert code == ("MODEL-LIMIT" if is_refused and not limits else "MODEL-PRICE" if has_no_price else None)


def test_the_limit_is_asked_at_a_terminal_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.delenv("EVALKIT_LIMITS__CALLS_PER_RUN")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GEMINI_API_KEY", "k")
    (tmp_path / "evalkit.toml").write_text(f'[models]\ndefault = "gemini:{MODEL}"')
    limits: list[Any] = []

    def run(limit: Any) -> str:
        limits.append(limit)
        ModelSession(Settings.load(limits={"usd_per_run": limit} if limit else None))
        return "done"

    monkeypatch.setattr(sys, "stdin", Terminal("7.5\n"))
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert run_within_budget(run, None) == "done"
    assert limits == [None, Decimal("7.5")]
    assert Settings.load().limits.usd_per_run == Decimal("7.5")
    assert Settings.load().models.default == f"gemini:{MODEL}"
    assert run_within_budget(run, None) == "done"
    assert limits[2:] == [None], "it is not asked again"
