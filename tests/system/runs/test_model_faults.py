"""Faults of the setup and of the service are no document's: what a run does, says and leaves, for each fault and role."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from commands import evalkit_command
from servers import gemini
from servers.gemini import Call, Fault
from system.runs.live import KEY, MODEL, notes, serve_model

import evalkit
from evalkit.errors import ModelSetupError
from evalkit.settings import Settings

#: The model of the role that fails; the others ask ``MODEL``.
FAULTY = "gemini-2.5-pro"
NOTES = 4


def has_role_schema(call: Call) -> bool:
    return "ready" not in call.schema["properties"]


class Case(NamedTuple):
    """A way in which each request of a role's model fails, and what the run makes of it."""

    react: Callable[[Call], Fault | None]
    exit_status: int
    said: str
    is_found_by_probe: bool
    escalates: bool = False


CASES = {
    "wrong key": Case(lambda call: gemini.WRONG_KEY, 2, "does not accept the key", True),
    "wrong model": Case(lambda call: gemini.NO_SUCH_MODEL, 2, "is unknown to its server", True),
    "refused parameter": Case(lambda call: gemini.BAD_REQUEST, 2, "rejects the request", True),
    "refused schema": Case(
        lambda call: gemini.BAD_REQUEST if has_role_schema(call) else None, 2, "rejects the request", False
    ),
    "no credit": Case(lambda call: gemini.http_error(402), 2, "rejects the request", True),
    "schema breaks it": Case(lambda call: gemini.INTERNAL if has_role_schema(call) else None, 2, "server error", False),
    "context too small": Case(
        lambda call: gemini.BAD_REQUEST if len(call.prompt) > 300 else None, 0, "", False, escalates=True
    ),
    "server down": Case(lambda call: gemini.INTERNAL, 1, "server error", False),
    "dropped": Case(lambda call: gemini.DROPPED, 1, "cannot be reached", True),
}
#: Each in the profile that asks it.
ROLES = {"classifier": "full", "v2": "full", "v3": "full", "v4": "full", "verifier": "lean"}
#: All are asked in one way: a fault is tried on the classifier and one of them, by turns.
JUDGES = ("v2", "v3", "v4", "verifier")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return notes(tmp_path_factory.mktemp("faults") / "notes", NOTES)


def run_command(written: Path, output: Path, role: str, react: Callable[[Call], Any], *options: str) -> Any:
    """Run the notes while one role's model reacts so; return what the command said, and its server."""

    def of_role(call: Call) -> Fault | None:
        return react(call) if call.model == FAULTY else None

    with serve_model(output, of_role) as served:
        served.server.answer_probe = lambda call: of_role(call) or "{}"
        done = evalkit_command(
            *("run", written, "--output", output, "--model", f"gemini:{MODEL}", "--profile", ROLES[role], *options),
            **served.environment,
            **{f"EVALKIT_MODELS__{role.upper()}": f"gemini:{FAULTY}"},
            EVALKIT_OUTAGE_SECONDS="2.5",
            EVALKIT_CALL_SECONDS="5",
        )
        return done, served.server


def list_results(output: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in output.glob("results/*.json")]


@pytest.mark.parametrize(
    ("fault", "role"),
    [(fault, role) for number, fault in enumerate(CASES) for role in ("classifier", JUDGES[number % len(JUDGES)])],
)
def test_setup_and_service_faults_escalate_nothing(fault: str, role: str, written: Path, tmp_path: Path) -> None:
    case, output = CASES[fault], tmp_path / "output"
    done, _ = run_command(written, output, role, case.react, "--no-probe")
    assert (done.returncode, "Traceback" in done.stderr) == (case.exit_status, False), done.stderr
    assert case.said in done.stderr
    if case.escalates:
        assert {result["decision"] for result in list_results(output)} == {"ESCALATE_TO_SME"}
        assert len(list_results(output)) == NOTES
        return
    assert f"gemini:{FAULTY}" in done.stderr
    assert list_results(output) == []
    assert not list(output.glob("sme_packets/*.json"))
    assert not list(output.glob("ground_truth/*.json"))


@pytest.mark.parametrize("fault", [name for name, case in CASES.items() if case.is_found_by_probe])
def test_the_probe_tells_a_setup_fault_before_any_document(fault: str, written: Path, tmp_path: Path) -> None:
    case, output = CASES[fault], tmp_path / "output"
    done, server = run_command(written, output, "v4", case.react)
    assert (done.returncode, server.calls) == (case.exit_status, [])
    assert (case.said in done.stderr, f"gemini:{FAULTY}" in done.stderr) == (True, True)
    assert case.said in done.stderr.splitlines()[-1], "one line is all that is said of it"
    assert not list(output.glob("document_bundles/*.json"))


def test_finished_documents_are_kept_when_the_key_is_revoked(written: Path, tmp_path: Path) -> None:
    output, taken = tmp_path / "output", []

    def react(call: Call) -> Fault | None:
        taken.append(call)
        return None if len(taken) <= 1 else gemini.WRONG_KEY

    done, _ = run_command(written, output, "v4", react, "--workers", "1", "--no-probe")
    assert done.returncode == 1, done.stderr
    assert "does not accept the key" in done.stderr
    assert [result["decision"] for result in list_results(output)] == ["AUTO_ACCEPT"]
    done, server = run_command(written, output, "v4", lambda call: None)
    assert done.returncode == 0, done.stderr
    assert len(list_results(output)) == NOTES
    assert {call.role for call in server.calls} == {"V4"}, "the other answers are in the journal"


def test_documents_wait_for_a_service_that_comes_back(written: Path, tmp_path: Path) -> None:
    output, probes = tmp_path / "output", []

    def react(call: Call) -> Fault | None:
        if call.role == "probe":
            probes.append(call)
        return gemini.OVERLOADED if len(probes) < 2 else None

    with serve_model(output, react) as served:
        served.server.answer_probe = lambda call: react(call) or "{}"
        done = evalkit_command(
            *("run", written, "--output", output, "--model", f"gemini:{MODEL}", "--no-probe"), **served.environment
        )
    assert done.returncode == 0, done.stderr
    assert {result["decision"] for result in list_results(output)} == {"AUTO_ACCEPT"}
    assert len(probes) == 2


def test_nothing_is_probed_when_every_document_is_finished(written: Path, tmp_path: Path) -> None:
    output = tmp_path / "output"
    with serve_model(output) as served:
        words = ("run", written, "--output", output, "--model", f"gemini:{MODEL}")
        for _ in range(2):
            assert evalkit_command(*words, **served.environment).returncode == 0
            assert len(served.server.probes) == 1
        assert evalkit_command(*words, "--fresh", **served.environment).returncode == 0
        assert len(served.server.probes) == 2


def test_evaluate_raises_for_a_wrong_key(written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    with serve_model(tmp_path, lambda call: gemini.WRONG_KEY) as served:
        settings = Settings.load(models={"default": f"gemini:{MODEL}"}, gemini_base_url=served.server.url)
        with pytest.raises(ModelSetupError) as refused:
            evalkit.evaluate(written / "note_001.pdf", settings=settings)
    assert refused.value.code == "LLM-KEY"


@pytest.mark.parametrize("options", [(), ("--no-probe",)])
def test_extract_stops_for_a_wrong_key(written: Path, tmp_path: Path, options: tuple[str, ...]) -> None:
    with serve_model(tmp_path, lambda call: gemini.WRONG_KEY) as served:
        served.server.answer_probe = lambda call: gemini.WRONG_KEY
        done = evalkit_command(
            *("extract", written, "--output", tmp_path / "output", "--model", f"gemini:{MODEL}", *options),
            **served.environment,
        )
        assert bool(served.calls) == bool(options)
    assert (done.returncode, "does not accept the key" in done.stderr) == (2, True), done.stderr
    assert not list((tmp_path / "output").glob("extractions/*.json"))
    assert not list((tmp_path / "output").glob("sme_packets/*.json"))
