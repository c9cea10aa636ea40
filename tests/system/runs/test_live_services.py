"""The real clients against servers on this machine: Gemini classifies and verifies, Document AI reads."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from patience import SECONDS
from places import open_folder
from samples.demo_runs import run_samples
from servers import gemini
from servers.documentai import DocumentAiServer
from servers.gemini import Call, Reaction
from system.runs.killing import killed_at_random, resume_run
from system.runs.live import KEY, gemini_run, notes, paid_twice, serve_model

import evalkit
from evalkit.errors import UsageError
from evalkit.pipeline import RunSummary
from evalkit.pipeline.input_monitoring import read_monitoring_record
from evalkit.settings import Settings
from evalkit.store import BUNDLES_FOLDER, CONVERTED_FOLDER

PROCESSOR = "projects/p/locations/us/processors/abc/processorVersions/pretrained-layout-parser-v1.0-2024-06-03"


def decisions(summary: RunSummary) -> dict[str, tuple[str | None, str | None]]:
    return {one.doc_id: (one.decision, one.dominant_type) for one in summary.documents}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    return monkeypatch


class Undisturbed(NamedTuple):
    """Notes, and what a run over them leaves that nothing breaks."""

    notes: Path
    contents: dict[str, Any]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    folder = tmp_path_factory.mktemp("undisturbed")
    written, output = notes(folder / "notes", 12), folder / "whole"
    with serve_model(output) as server:
        whole = resume_run(gemini_run(written, output), output, server.environment)
        assert len(server.calls) == 4 * 12
    return Undisturbed(written, whole)


@pytest.mark.parametrize(("profile", "most"), [("full", 4), ("lean", 2)])
def test_the_samples_are_decided_as_by_the_embedded_model(
    samples: Path, demo_run: RunSummary, tmp_path: Path, asked: pytest.MonkeyPatch, profile: str, most: int
) -> None:
    output = tmp_path / "output"
    bundles = shutil.copytree(
        Path(demo_run.output) / BUNDLES_FOLDER, output / BUNDLES_FOLDER
    )  # read already, by the same reader
    shutil.copytree(Path(demo_run.output) / CONVERTED_FOLDER, output / CONVERTED_FOLDER)
    read_at = {path.name: path.stat().st_mtime_ns for path in bundles.iterdir()}
    with serve_model(output) as server:
        asked.setenv("EVALKIT_GEMINI_BASE_URL", server.server.url)
        settings = Settings.load(output=str(output), models={"default": "gemini:gemini-2.5-flash"}, profile=profile)
        summary = run_samples(samples, output, settings=settings)
        assert decisions(summary) == decisions(demo_run)
        assert {path.name: path.stat().st_mtime_ns for path in bundles.iterdir()} == read_at
        assert max(one.calls for one in summary.documents) == most
        assert sum(one.calls for one in summary.documents) == len(server.calls)
        assert sum(usage.calls for usage in summary.by_agent.values()) == len(server.calls) + len(server.server.probes)
        made = len(server.calls)
        again = run_samples(samples, output, settings=settings)
        assert all(one.resumed or one.error for one in again.documents)
        assert len(server.calls) == made


def test_document_ai_reads_and_gemini_decides(samples: Path, demo_run: RunSummary, tmp_path: Path) -> None:
    """By the command line; what Document AI and this machine read alike is decided alike."""
    output = tmp_path / "output"
    with serve_model(output) as server, DocumentAiServer() as reader:
        environment = server.environment | {
            "EVALKIT_DOCUMENTAI_ENDPOINT": reader.url,
            "EVALKIT_DOCUMENTAI_PROCESSOR": PROCESSOR,
        }
        options = (
            "--classifications",
            str(samples / "classifications"),
            "--production",
            str(samples / "production.csv"),
        )
        command = gemini_run(samples, output, "--reader", "documentai", "--json", *options)
        done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert reader.calls
    told = {one["doc_id"]: (one["decision"], one["dominant_type"]) for one in json.loads(done.stdout)["documents"]}
    # The server derives its answers from the text of a PDF; of a picture it sees nothing.
    assert told == decisions(demo_run) | dict.fromkeys(("scanned", "faxed_result"), ("ESCALATE_TO_SME", None))
    bundle = json.loads((output / "document_bundles" / "clinical_note.json").read_text())
    assert bundle["reader"].startswith("documentai ")
    assert "pretrained-layout-parser-v1.0-2024-06-03" in bundle["reader"]


def test_run_continues_after_the_model_server_restarts(tmp_path: Path, undisturbed: Undisturbed) -> None:
    """Stopped under a running command, connections and all; started again; the command given once more."""
    output = tmp_path / "output"
    with serve_model(output, delay=0.2) as server:
        environment = os.environ | server.environment | {"EVALKIT_OUTAGE_SECONDS": "2", "EVALKIT_CALLS_IN_FLIGHT": "8"}
        command = gemini_run(undisturbed.notes, output)
        run = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while not list(output.glob("ground_truth/*.json")) and run.poll() is None:
            time.sleep(0.02)
        server.server.stop()
        assert "the run was stopped" in run.communicate(timeout=120)[1]
        assert run.returncode == 1
        decisions = [json.loads(path.read_text())["decision"] for path in output.glob("results/*.json")]
        assert set(decisions) == {"AUTO_ACCEPT"}, "no document escalates for a server that is down"
        made = len(server.calls)
        server.server.start()
        assert but_for_usage(resume_run(command, output, server.environment)) == but_for_usage(undisturbed.contents)
        decided_count = read_monitoring_record(open_folder(output)).document_count
        assert decided_count == len(list(output.glob("results/*.json"))), "the stopped run's documents count too"
        assert len(server.calls) - made <= 4 * (12 - len(decisions))
        # What was under way when it stopped, and nothing else, is asked twice.
        assert paid_twice(server, output) <= 8


def test_ignored_verifier_failure_is_asked_again_next_run(tmp_path: Path) -> None:
    folder, output = notes(tmp_path / "notes", 1), tmp_path / "output"
    command = gemini_run(folder, output)
    with serve_model(output, lambda call: "no JSON" if call.role == "V3" else None) as server:
        environment = server.environment | {"EVALKIT_ON_AGENT_FAILURE": "ignore"}
        first = resume_run(command, output, environment)["results/note_001.json"]
    with serve_model(output) as server:
        second = resume_run(command, output, server.environment | {"EVALKIT_ON_AGENT_FAILURE": "ignore"})
        assert {call.role for call in server.calls} == {"V3"}, "what was answered is in the journal"
    assert (first["unanswered"], second["results/note_001.json"]["unanswered"]) == (["V3"], [])


def but_for_usage(contents: dict[str, Any]) -> dict[str, Any]:
    """The calls that nobody answered are counted, and each start of a run: a run that met them tells of more."""
    return {
        name: {key: value for key, value in of.items() if key != "usage"}
        for name, of in contents.items()
        if not name.startswith("runs/")
    }


def test_repeatedly_killed_run_equals_undisturbed_one(tmp_path: Path, undisturbed: Undisturbed) -> None:
    output = tmp_path / "killed"
    with serve_model(output, delay=0.2) as server:
        command = gemini_run(undisturbed.notes, output)
        killed = [killed_at_random(command, seed, 4.0, server.environment) for seed in range(2)]
        assert resume_run(command, output, server.environment) == undisturbed.contents
        assert paid_twice(server, output) <= 16 * sum(killed)


def test_interrupt_starts_nothing_new_and_keeps_paid_answers(tmp_path: Path) -> None:
    folder, output = notes(tmp_path / "notes", 16), tmp_path / "output"
    with serve_model(output, delay=0.5) as server:
        command = gemini_run(folder, output)
        run = subprocess.Popen(command, env=os.environ | server.environment, stderr=subprocess.PIPE, text=True)
        while len(server.calls) < 20 and run.poll() is None:
            time.sleep(0.05)
        run.send_signal(signal.SIGINT)
        _, said = run.communicate(timeout=SECONDS)
        assert run.returncode == 130
        assert "again to continue" in said
        assert len(server.calls) < 4 * 16
        made = len(server.calls)
        resume_run(command, output, server.environment)
        assert len(server.calls) == 4 * 16, f"{made} calls were made before the interrupt"
        assert paid_twice(server, output) == 0


def test_what_nobody_may_read_is_in_no_log(tmp_path: Path) -> None:
    """At any level, from any library: neither the text, nor the name in it or in the file's name, nor the key."""
    folder = notes(tmp_path / "notes", 3)
    (folder / "note_001.pdf").rename(folder / "Quartermain_Zebulon.pdf")
    faults: list[Reaction | None] = [None, gemini.INTERNAL, gemini.NOT_JSON, gemini.DROPPED, gemini.SAFETY, None]
    output = tmp_path / "output"
    with serve_model(output, lambda call: faults[call.number % len(faults)]) as server:
        script = (
            "import logging, sys; logging.basicConfig(level=1, stream=sys.stderr)\n"
            "import evalkit\n"
            f"evalkit.run([{str(folder)!r}], output={str(output)!r}, model='gemini:gemini-2.5-flash')\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", script],
            env=os.environ | server.environment,
            capture_output=True,
            text=True,
            check=True,
        )
    assert "DEBUG" in done.stderr, "the log is on"
    for secret in (KEY, "Zebulon", "takes the tablets", "attending physician"):
        assert secret not in done.stderr + done.stdout


def run_samples_of(folder: Path, settings: Settings) -> RunSummary:
    return evalkit.run([folder], settings=settings)


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"models": {"default": "gemini:x"}}, "MODEL-KEY"),
        ({"models": {"default": "nobody:x"}}, "MODEL-NAME"),
        ({"reader": "documentai"}, "DOCUMENTAI-PROCESSOR"),
    ],
)
def test_what_cannot_be_asked_is_said_before_any_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, object], code: str
) -> None:
    for name in ("GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    folder = notes(tmp_path / "notes", 1)
    with pytest.raises(UsageError) as refused:
        run_samples_of(folder, Settings.load(output=str(tmp_path / "output"), **settings))
    assert refused.value.code == code


def test_a_model_without_a_price_cannot_be_limited_in_dollars(tmp_path: Path, asked: pytest.MonkeyPatch) -> None:
    settings = Settings.load(
        output=str(tmp_path / "output"), models={"default": "gemini:house-model"}, limits={"usd_per_run": "5"}
    )
    with pytest.raises(UsageError, match="price"):
        run_samples_of(notes(tmp_path / "notes", 1), settings)


@pytest.mark.parametrize(
    ("reaction", "is_fine"), [(lambda call: None, True), (lambda call: gemini.FORBIDDEN, False)], ids=["key", "no key"]
)
def test_the_doctor_asks_once(tmp_path: Path, reaction: Callable[[Call], Reaction | None], is_fine: bool) -> None:
    def answer(call: Call) -> Reaction:
        return reaction(call) or '{"ready": true}'

    with gemini.GeminiServer(answer) as server:
        command = [sys.executable, "-m", "evalkit", "doctor", "--live", "--model", "gemini:m", "--json"]
        environment = os.environ | {"EVALKIT_GEMINI_BASE_URL": server.url, "GEMINI_API_KEY": KEY}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=tmp_path, check=False)
        assert len(server.calls) == 1
    (found,) = (one for one in json.loads(done.stdout) if one["name"] == "language model")
    assert found["is_fine"] is is_fine
    assert ("answers" in found["found"]) is is_fine
    assert KEY not in done.stdout + done.stderr


def test_an_estimate_sends_nothing_to_document_ai(tmp_path: Path) -> None:
    with DocumentAiServer() as reader:
        settings = Settings.load(
            output=str(tmp_path / "output"),
            models={"default": "gemini:gemini-2.5-flash"},
            reader="documentai",
            documentai_processor=PROCESSOR,
            documentai_endpoint=reader.url,
        )
        estimated = evalkit.pipeline.estimate([notes(tmp_path / "notes", 1)], settings=settings)
        assert not reader.calls
    assert "not counted" in estimated.problems[0]
    assert not estimated.rows


def test_document_ai_outage_loses_nothing_and_is_retried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, output = notes(tmp_path / "notes", 1), tmp_path / "output"
    monkeypatch.setattr("evalkit.documents.readers.documentai.reader._FIRST_WAIT", 0.001)
    with DocumentAiServer() as reader:
        settings = Settings.load(
            output=str(output),
            reader="documentai",
            documentai_processor=PROCESSOR,
            documentai_endpoint=reader.url,
            documentai_seconds=2,
        )
        assert run_samples_of(folder, settings).documents[0].decision == "AUTO_ACCEPT"
        (truth,) = (output / "ground_truth").iterdir()
        reader.stop()
        away = evalkit.run([folder], settings=settings, fresh=True)
        assert away.documents[0].error
        assert truth.exists(), "what was finished stays"
        reader.start()
        assert evalkit.run([folder], settings=settings, fresh=True).documents[0].decision == "AUTO_ACCEPT"


def test_a_fresh_run_that_was_interrupted_goes_on_where_it_was(tmp_path: Path) -> None:
    folder, output = notes(tmp_path / "notes", 6), tmp_path / "output"
    with serve_model(output, delay=0.3) as server:
        resume_run(gemini_run(folder, output), output, server.environment)
        assert len(server.calls) == 24
        command = gemini_run(folder, output, "--fresh")
        run = subprocess.Popen(command, env=os.environ | server.environment, stderr=subprocess.DEVNULL)
        while len(server.calls) < 30 and run.poll() is None:
            time.sleep(0.05)
        run.send_signal(signal.SIGINT)
        run.communicate(timeout=SECONDS)
        resume_run(command, output, server.environment)
        assert len(server.calls) == 48
        resume_run(command, output, server.environment)
        assert len(server.calls) == 72, "the next fresh run asks everything anew"


def test_addresses_in_the_environment_are_checked(tmp_path: Path, asked: pytest.MonkeyPatch) -> None:
    asked.setenv("GOOGLE_GEMINI_BASE_URL", "http://192.0.2.2")
    with pytest.raises(UsageError, match="without encryption"):
        run_samples_of(
            notes(tmp_path / "notes", 1), Settings.load(output=str(tmp_path / "o"), models={"default": "gemini:m"})
        )
