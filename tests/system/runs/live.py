"""Runs whose language model, and whose reader, are servers on this machine that speak the real protocols."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pymupdf
from servers.embedded import EmbeddedAnswers, stored
from servers.gemini import Call, GeminiServer, Reaction
from system.runs.killing import Command, run_of

KEY = "AIza-planted-key"
MODEL = "gemini-2.5-flash"
LINES = (
    "PROGRESS NOTE",
    "Chief complaint: follow-up of hypertension, visit number {number}.",
    "History of present illness: the patient feels well and takes the tablets daily.",
    "Review of systems: no chest pain, no shortness of breath.",
    "Physical examination: blood pressure {number}/80, heart regular, lungs clear.",
    "Assessment and plan: continue the present medication and return in {number} weeks.",
    "Electronically signed by the attending physician.",
)


@dataclass(frozen=True)
class Served:
    """A Gemini that answers as the embedded model would."""

    server: GeminiServer

    @property
    def environment(self) -> dict[str, str]:
        """What a run needs to ask it."""
        return {"EVALKIT_GEMINI_BASE_URL": self.server.url, "GEMINI_API_KEY": KEY, "EVALKIT_LIMITS__USD_PER_RUN": "0"}

    @property
    def calls(self) -> Sequence[Call]:
        return self.server.calls


@contextmanager
def serve_model(
    output: Path, instead: Callable[[Call], Reaction | None] = lambda call: None, delay: float = 0.0
) -> Iterator[Served]:
    """The server, for a run into ``output``; ``instead`` of an answer may give a fault or another one."""
    answers = EmbeddedAnswers(stored(output))

    def answer(call: Call) -> Reaction:
        return instead(call) or answers(call.role, call.prompt)

    with GeminiServer(answer, delay=delay, caches=False) as server:
        yield Served(server)


def gemini_run(documents: Path, output: Path, *options: str) -> Command:
    return run_of(documents, "--output", output, "--model", f"gemini:{MODEL}", *options)


def notes(folder: Path, count: int) -> Path:
    """So many short notes, no two alike."""
    folder.mkdir()
    for number in range(1, count + 1):
        with pymupdf.open() as document:
            page = document.new_page()
            for row, line in enumerate(LINES):
                page.insert_text((72, 90 + 22 * row), line.format(number=number), fontsize=11)
            document.save(folder / f"note_{number:03}.pdf", no_new_id=True)
    return folder


def journalled(output: Path) -> Counter[str]:
    """The answers in a folder's journal, by question."""
    with sqlite3.connect(output / "evalkit.sqlite") as database:
        return Counter(row[0] for row in database.execute("SELECT question FROM calls WHERE answer IS NOT NULL"))


def paid_twice(server: Served, output: Path) -> int:
    """Calls that were answered again. No question has two answers in the journal: those were under way at a kill."""
    answers = journalled(output)
    assert set(answers.values()) == {1}
    return len(server.calls) - len(answers)
