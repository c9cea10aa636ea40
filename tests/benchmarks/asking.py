"""Asking language models: documents a second, our own work, and what is sent.

Alone: `PYTHONPATH=tests .venv/bin/python tests/benchmarks/asking.py`.

Documents a second are counted from the first document's beginning to the last one's end, the filling and the emptying
of the line included; only google-genai is imported before. Our own work is CPU time of documents that were never seen
before, asked of a model in this process that answers at once, the journal in memory.
"""

import asyncio
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count, cycle, islice
from pathlib import Path
from typing import Literal
from unittest import mock

from benchmarks.measuring import ASKERS, ROUNDS, TOKENISERS, NotMeasured, Row, bundles_of, cpu, documents, peer
from builders import compose_model_answer, document
from rich.console import Console
from rich.table import Table
from system.runs.live import KEY, MODEL, notes

from evalkit.classification.orchestrator import ClassificationOutcome, RetryOrchestrator
from evalkit.classification.primary_classifier import classify_by_embedded_model
from evalkit.documents import DocumentBundle
from evalkit.llm.client import LanguageModel
from evalkit.llm.concurrency_limiter import AimdLimiter
from evalkit.llm.ledger import Ledger, MemoryJournal
from evalkit.llm.model import Model, Reply, Request, Usage
from evalkit.llm.prompts import fence_document
from evalkit.pipeline.model_session import ModelSession
from evalkit.settings import Settings

CALLS, LATENCY = 4, 2.0
"""Of a document in the full profile; seconds that the server waits with each answer."""
IN_FLIGHT = (4, 16, 64)
#: So many times the server's latency a run takes at least: what filling and emptying the line costs is known by that.
TURNS = 20
PAGES, PAGE = 8, 3_000
"""The document whose input is counted; characters of a page."""
EACH, SAMPLES = 60, 60
"""Documents, and inspect_ai's samples, of a round."""

Answers = dict[str, str]
"""Classifications by the beginning of the prompt, which no two documents share."""

_NUMBERS = count(1)
_NOTHING_FOUND = '{"findings": []}'

# Runs in a process of its own, or its work would be taken for ours.
_SERVER = """
import json, sys
from servers.gemini import GeminiServer
answers = json.load(open(sys.argv[1]))
def answer(call):
    return answers[call.prompt[: int(sys.argv[3])]] if call.role == "classifier" else sys.argv[4]
with GeminiServer(answer, delay=float(sys.argv[2]), caches=False) as server:
    print(server.url, flush=True)
    sys.stdin.read()
"""

# Runs in the peer's environment.
_PEER = """
import statistics, sys, tempfile, time
from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import generate
count, rounds = int(sys.argv[1]), int(sys.argv[2])
def answered(*_asked):  # with its usage, or each sample would be counted in tokens by a table that has to be fetched
    output = ModelOutput.from_content("mockllm/model", "Default output")
    output.usage = ModelUsage(input_tokens=10, output_tokens=2, total_tokens=12)
    return output
model = get_model("mockllm/model", custom_outputs=answered)
took = []
for turn in range(rounds + 1):
    samples = [Sample(input=f"question {turn} {number}", target="Default") for number in range(count)]
    task = Task(dataset=MemoryDataset(samples), solver=generate(), scorer=includes())
    with tempfile.TemporaryDirectory() as logs:
        began = time.process_time()
        (log,) = eval(task, model=model, display="none", log_dir=logs, log_samples=False, log_realtime=False)
        took.append((time.process_time() - began) / count)
    assert log.status == "success", log.error
print(1000 * statistics.median(took[1:]))
"""


# Runs where the tokeniser is installed, which has its vocabulary with it.
_TOKENISER = """
import json, sys
import bpe_openai
encoding = bpe_openai.get_encoding("o200k_base")
print(json.dumps([sum(len(encoding.encode(text)) for text in json.load(open(name))) for name in sys.argv[1:]]))
"""


class Instant:
    """A provider in memory: the right answer at once."""

    def __init__(self, name: str, answers: Answers) -> None:
        self.name = name
        self.sent: list[Request] = []
        self._answers = answers

    async def send(self, request: Request) -> Reply:
        self.sent.append(request)
        is_classifier = "segments" in request.answer_schema["properties"]
        text = self._answers[request.prompt[:_MARK]] if is_classifier else _NOTHING_FOUND
        return Reply(text, Usage(calls=1, input_tokens=len(request.prompt) // 4, output_tokens=len(text) // 4))

    async def close(self) -> None:
        pass


def beginning(bundle: DocumentBundle) -> str:
    """Of every prompt about it."""
    return fence_document(bundle, []).split()[0]


_MARK = len(beginning(document("any")))


def unseen(bundles: Sequence[DocumentBundle]) -> Iterator[DocumentBundle]:
    """These documents again and again, no two ever the same: pages are known by their text, documents by their hash."""
    while True:
        for bundle in bundles:
            last = str(next(_NUMBERS))
            pages = tuple(
                page.model_copy(
                    update={
                        "text": f"{page.text}\n{last}",
                        "paragraphs": (*page.paragraphs, last),
                        "blocks": (*page.blocks, page.blocks[-1].model_copy(update={"text": last})),
                    }
                )
                for page in bundle.pages
            )
            sha256 = hashlib.sha256(f"{bundle.sha256} {last}".encode()).hexdigest()
            yield bundle.model_copy(update={"sha256": sha256, "pages": pages})


def right(originals: Sequence[DocumentBundle], bundles: Sequence[DocumentBundle]) -> Answers:
    """What the embedded model says of the originals: asked of the bundles themselves, it would make them known."""
    said = [json.dumps(compose_model_answer(classify_by_embedded_model(bundle), bundle)) for bundle in originals]
    return {beginning(bundle): said[at % len(said)] for at, bundle in enumerate(bundles)}


async def decided(
    bundles: Sequence[DocumentBundle], model: Model, at_once: int, profile: Literal["full", "lean"] = "full"
) -> None:
    """So many at once, as a run has them under way."""
    orchestrator = RetryOrchestrator(model, profile=profile, window_characters=Settings().window_characters)
    gate = asyncio.Semaphore(at_once)

    async def one(bundle: DocumentBundle) -> ClassificationOutcome:
        async with gate:
            return await orchestrator.evaluate(bundle)

    outcomes = await asyncio.gather(*map(one, bundles))
    assert all(outcome.usage.calls == (CALLS if profile == "full" else 2) for outcome in outcomes)


# ---------------------------------------------------------------------------------------------- documents a second


@contextmanager
def slow_server(answers: Answers) -> Iterator[str]:
    """The address of a Gemini in another process."""
    with tempfile.TemporaryDirectory() as folder:
        known = Path(folder) / "answers.json"
        known.write_text(json.dumps(answers))
        arguments = [str(known), str(LATENCY), str(_MARK), _NOTHING_FOUND]
        server = subprocess.Popen(
            [sys.executable, "-c", _SERVER, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert server.stdin
        assert server.stdout
        try:
            yield server.stdout.readline().strip()
        finally:
            server.stdin.close()
            server.wait()


def throughput_row(in_flight: int) -> Row:
    originals = readable("demo")
    many = TURNS * in_flight // CALLS
    bundles = list(islice(unseen(originals), many))

    async def run(address: str) -> float:
        settings = Settings(
            models={"default": f"gemini:{MODEL}"},
            gemini_base_url=address,
            calls_in_flight=in_flight,
            workers=2,
            limits={"usd_per_run": 0},
        )
        async with ModelSession(settings) as asking:
            began = time.perf_counter()
            await decided(bundles, asking.model, in_flight + 3 * settings.workers)
            return time.perf_counter() - began

    import google.genai.types  # noqa: F401 - takes seconds, once in a process

    with slow_server(right(originals, bundles)) as address, mock.patch.dict(os.environ, GEMINI_API_KEY=KEY):
        seconds = asyncio.run(run(address))
    ideal = in_flight / (CALLS * LATENCY)
    return (
        f"{in_flight} calls at once of {LATENCY:g} s: {many} documents",
        f"{many / seconds:.2f} documents/s",
        f"{many / seconds / ideal:.3f} of the ideal {ideal:g}; goal 0.90",
    )


# ------------------------------------------------------------------------------------------------------- our own work


def readable(name: str) -> list[DocumentBundle]:
    return [bundle for bundle in documents()[name] if bundle.has_text]


def work(originals: Sequence[DocumentBundle], provider: str) -> Callable[[], object]:
    """Deciding documents that were never seen before, in each round others."""
    fresh = unseen(originals)
    rounds = [list(islice(fresh, EACH)) for _ in range(ROUNDS + 1)]
    answers = right(originals, [bundle for bundles in rounds for bundle in bundles])
    each = iter(rounds)

    def once() -> None:
        model = LanguageModel(Instant(provider, answers), Ledger(MemoryJournal()), AimdLimiter(16))
        asyncio.run(decided(next(each), model, at_once=1))

    return once


def work_rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        short = bundles_of(sorted(notes(Path(folder) / "notes", 20).glob("*.pdf")))
    demo, long = readable("demo"), [long_document()]
    tasks = {
        "notes of one page": (short, "memory:instant"),
        "the demo's documents": (demo, "memory:instant"),
        f"{PAGES} pages of {PAGE:,} characters": (long, "memory:instant"),
        f"the demo's, at {MODEL}'s prices": (demo, f"gemini:{MODEL}"),
    }
    times = cpu(*(work(bundles, provider) for bundles, provider in tasks.values()))
    ours = {name: 1000 * seconds / EACH for name, seconds in zip(tasks, times, strict=True)}
    for name, milliseconds in ours.items():
        bundles = tasks[name][0]
        characters = sum(len(page.text) for bundle in bundles for page in bundle.pages) / len(bundles)
        goal = f"goal 1.00; {characters:,.0f} characters of text"
        yield f"our own work: {name}", f"{milliseconds:.2f} ms CPU a document", goal
    try:
        theirs = float(peer(_PEER, [SAMPLES, ROUNDS], ASKERS))
    except NotMeasured as error:
        yield "our own work: inspect_ai", "", str(error)
        return
    ratio = ours["the demo's documents"] / theirs
    yield (
        "our own work: the demo's documents beside inspect_ai",
        f"{ratio:.2f} of its work, goal 0.10",
        f"{theirs:.2f} ms CPU a sample: mockllm, one call, no check of it",
    )


# ------------------------------------------------------------------------------------------------------- what is sent


def long_document() -> DocumentBundle:
    """The lines of the demo's note again and again, until each page is full."""
    note = next(bundle for bundle in readable("demo") if bundle.doc_id == "clinical_note")
    lines = cycle(line for page in note.pages for line in page.paragraphs)
    pages = []
    for _ in range(PAGES):
        text = next(lines)
        while len(text) < PAGE:
            text += f"\n{next(lines)}"
        pages.append(text[: PAGE - 1].rstrip().ljust(PAGE, "."))
    return document(*pages)


def sent(bundle: DocumentBundle, profile: Literal["full", "lean"]) -> list[Request]:
    provider = Instant("memory:instant", right([bundle], [bundle]))
    asyncio.run(decided([bundle], LanguageModel(provider, Ledger(MemoryJournal()), AimdLimiter(16)), 1, profile))
    return provider.sent


def count_input_characters(request: Request) -> int:
    """Count what is sent: system instruction, prompt and schema, the schema as the clients write it."""
    schema = json.dumps(dict(request.answer_schema), separators=(",", ":"))
    return len(request.system_instruction) + len(request.prompt) + len(schema)


def input_rows() -> Iterator[Row]:
    bundle = long_document()
    begins = fence_document(bundle)
    for profile in ("lean", "full"):
        requests = sent(bundle, profile)
        characters = sum(map(count_input_characters, requests))
        alike = all(one.prompt.encode().startswith(begins.encode()) for one in requests)
        goal = "goal 60,000; " if profile == "lean" else ""
        yield (
            f"{PAGES} pages of {PAGE:,} characters, {profile}: input of {len(requests)} calls",
            f"{characters:,} characters",
            f"{goal}the document, {len(begins):,} of each, identical to the byte and first: {alike}",
        )


def output_rows() -> Iterator[Row]:
    """Tokens of the shortest right answers: as asked, and as the public shape with quotes by their place."""
    bundles = readable("demo")
    rights = [classify_by_embedded_model(bundle) for bundle in bundles]
    asked = [compose_model_answer(right, bundle) for right, bundle in zip(rights, bundles, strict=True)]
    public = [right.to_json() for right in rights]
    for whole, short in zip(public, asked, strict=True):
        for segment, asked_segment in zip(whole["segments"], short["segments"], strict=True):
            places = {row["document_type"]: row["evidence"] for row in asked_segment["types"]}
            for row in segment["segment_composition"]:
                row["top_evidence"] = [
                    quote | place | {"snippet": ""}
                    for quote, place in zip(row["top_evidence"], places.get(row["document_type"], []), strict=True)
                ]
        whole["self_evaluation"] = ""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in ("asked", "public")]
        for file, values in zip(files, (asked, public), strict=True):
            file.write_text(json.dumps([json.dumps(value, separators=(",", ":")) for value in values]))
        try:
            tokens, public_tokens = json.loads(peer(_TOKENISER, files, TOKENISERS))
        except NotMeasured as error:
            yield "right answers about the demo's documents", "", str(error)
            return
    yield (
        f"right answers about the demo's {len(bundles)} documents",
        f"{tokens:,} tokens (o200k)",
        f"{tokens / public_tokens:.1%} of the public shape's {public_tokens:,}; goal 50 %",
    )


def asking() -> Table:
    table = Table("what", "evalkit", "beside", title=f"asking: CPU time medians of {ROUNDS}, documents/s of one run")
    for row in (*input_rows(), *output_rows(), *work_rows(), *map(throughput_row, IN_FLIGHT)):
        table.add_row(*row)
    return table


if __name__ == "__main__":
    Console(width=150).print(asking())
