"""Strangers and honest clients at the review server: what gets through, and which honest clients are refused.

    cd tests && ../.venv/bin/python -m benchmarks.web_attacks [open|sealed] [--only NAME …]

The attacks are by an author who has not read the server. They run against a real ``evalkit review``, whose pages hold a stub
instead of the workbench. Memory is that of the server process without kernels, at its highest.
"""

from __future__ import annotations

import argparse
import json
import re
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import psutil
from benchmarks.first_contact.web_attacks.client import Answer, Attack, Client, Connection, Layout, find_faults, frame
from jupyter_server.services.kernels.connection.base import serialize_msg_to_ws_v1
from places import open_folder
from system.browser.conftest import launch_chromium
from system.browser.screen import Screen
from system.browser.server import serving
from system.browser.small_cases import PAGES, run_small
from system.serving.running import PATIENT, Server

from evalkit.errors import UsageError
from evalkit.review.roster import ReviewerRoster

#: How the server differs from what the author assumed: libraries need a login but no kernel.
LAYOUT = Layout(
    sign_out_method="POST", private="/voila/static/voila.js", static="/voila/static/", removal_seconds=10
)  # fmt: skip
PROTOCOL = "v1.kernel.websocket.jupyter.org"


class Outcome(NamedTuple):
    """What an attack or an honest client met; no faults: what the author expects."""

    row: Attack
    faults: list[str]
    memory_mb: float
    seconds: float


class Control:
    """What only the server's owner can do."""

    def __init__(self, server: Server) -> None:
        self.server = server

    def restart(self) -> None:
        """Stop and start the server."""
        self.stop()
        self.start()

    def stop(self) -> None:
        """Stop the server, by a signal that background processes do not ignore."""
        self.server.stop(signal.SIGTERM)

    def start(self) -> None:
        """Start the server on the port that it had."""
        self.server.start(self.server.port)

    def add_reviewer(self, name: str) -> str:
        """Add a reviewer or replace the code."""
        try:
            return ReviewerRoster(open_folder(self.server.output)).add_reviewer_or_replace_code(name)
        except UsageError as error:
            raise ValueError(str(error)) from error

    def remove_reviewer(self, name: str) -> None:
        """Remove a reviewer."""
        ReviewerRoster(open_folder(self.server.output)).remove_reviewer(name)


class ReviewClient(Client):
    """A client that asks for Jupyter's binary WebSocket protocol, as evalkit's pages do."""

    async def open_websocket(self, target: str, *more: tuple[str, str], **options: Any) -> tuple[Answer, Connection]:
        """Ask for a WebSocket with the protocol."""
        return await super().open_websocket(target, ("Sec-WebSocket-Protocol", PROTOCOL), *more, **options)


@contextmanager
def open_half(name: str) -> Iterator[Any]:
    """Load the half ``open`` or ``sealed``; its messages to kernels become those of the binary protocol."""
    half = import_module(f"benchmarks.first_contact.web_attacks.{name}")
    adapted = {"kernel_message": build_kernel_message, "frame": build_frame}
    with patch.multiple(half, **{name: build for name, build in adapted.items() if hasattr(half, name)}):
        yield half


def build_kernel_message(kind: str, content: object, padding: object = "") -> bytes:
    """Build a message to a kernel in the binary protocol."""
    header = {
        "msg_id": f"{time.monotonic_ns():032x}",
        "msg_type": kind,
        "username": "",
        "session": "w",
        "version": "5.3",
    }
    parts = {"header": header, "parent_header": {}, "metadata": {"padding": padding}, "content": content}
    return serialize_msg_to_ws_v1(parts, "shell", lambda part: json.dumps(part, ensure_ascii=False).encode())


def build_frame(opcode: int, payload: bytes, **options: Any) -> bytes:
    """Build a frame; a text frame becomes a binary one."""
    return frame(2 if opcode == 1 else opcode, payload, **options)


@contextmanager
def serve_and_connect(folder: Path, **scales: float) -> Iterator[tuple[Server, Client]]:
    """Start a server and make a client for it."""
    server = Server(folder)
    secrets = [PATIENT.encode(), str(server.output).encode(), *(code.encode() for code in server.codes.values())]
    try:
        yield server, ReviewClient(server.port, server.codes, Control(server), LAYOUT, secrets, **scales)
    finally:
        if server.process.poll() is None:
            server.stop(signal.SIGTERM)


def run_rows(rows: Sequence[Attack], server: Server, client: Client) -> Iterator[Outcome]:
    """Run attacks or honest clients, one after the other."""
    for row in rows:
        start = time.monotonic()
        with _measure_memory(server) as memory:
            try:
                faults = find_faults(row, row.run(client), client, memory["peak"])
            except subprocess.TimeoutExpired as error:
                faults = [f"the server did not end within {error.timeout:.0f} s"]
        if server.process.poll() is not None:
            server.start(server.port)
        yield Outcome(row, faults, memory["peak"], time.monotonic() - start)


@contextmanager
def _measure_memory(server: Server) -> Iterator[Mapping[str, float]]:
    """Measure the peak of the server process's memory, in MB, ten times a second."""
    memory, is_over = {"peak": 0.0}, threading.Event()

    def measure() -> None:
        is_last = False
        while not is_last:
            is_last = is_over.wait(0.1)
            with suppress(psutil.Error):  # it is being restarted
                memory["peak"] = max(memory["peak"], psutil.Process(server.process.pid).memory_info().rss / 2**20)

    thread = threading.Thread(target=measure)
    thread.start()
    try:
        yield memory
    finally:
        is_over.set()
        thread.join()


def find_stored_words(expressions: Sequence[str], folder: Path) -> dict[str, list[str]]:
    """Evaluate JavaScript in the screen with a case open; return the document's words in each result."""
    output = run_small(folder)
    words = {word.lower() for page in PAGES for line in page for word in re.findall(r"[^\W\d_]{6,}", line)}
    with launch_chromium() as browser, serving(output, ["dr_lee"]) as served:
        screen = Screen(browser, served.address, 1280, 720)
        screen.log_in(served.codes["dr_lee"])
        screen.open("one_document")
        if not any(word in screen.page.content().lower() for word in words):
            raise AssertionError("no document is shown")
        results = {expression: str(screen.page.evaluate(expression)).lower() for expression in expressions}
        screen.context.close()
    return {expression: sorted(word for word in words if word in result) for expression, result in results.items()}


def main() -> None:
    """Run a half and print each row, then how many attacks were met and how many honest clients refused."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("half", nargs="?", choices=["open", "sealed"], default="open")
    parser.add_argument("--only", nargs="*", default=[])
    wanted = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        open_half(wanted.half) as half,
        serve_and_connect(Path(folder)) as (server, client),
    ):
        for title, rows in (("attacks met", half.ATTACKS), ("honest clients served", half.HONEST_CLIENTS)):
            chosen = [row for row in rows if not wanted.only or row.name in wanted.only]
            outcomes = []
            for outcome in run_rows(chosen, server, client):
                outcomes.append(outcome)
                verdict = "; ".join(outcome.faults) or "as expected"
                print(
                    f"{outcome.row.name}: {verdict} ({outcome.memory_mb:.0f} MB, {outcome.seconds:.0f} s)", flush=True
                )
            print(f"{title}: {sum(not outcome.faults for outcome in outcomes)} of {len(outcomes)}", flush=True)
    if wanted.only:
        return
    with tempfile.TemporaryDirectory() as folder:
        found = find_stored_words(half.EXPRESSIONS, Path(folder))
    for expression, words in found.items():
        print(f"{expression}: {', '.join(words) or 'no word of the document'}")
    print(f"places in the browser without a word: {sum(not words for words in found.values())} of {len(found)}")


if __name__ == "__main__":
    main()
