"""Label Studio beside us: its list of tasks and the saving of an annotation, over its API, on SQLite, on this machine.

A task carries what a row of our queue shows, and no document: its list gets no longer for what ours does not send.
"""

import os
import secrets
import socket
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import requests
from benchmarks.measuring import ANNOTATORS, ROUNDS, NotMeasured, environment

STARTED_WITHIN, IMPORTED_WITHIN = 600.0, 120.0
"""Seconds: the first start makes its database; importing ends when so long has passed."""
PORTION, PAGE, SAVED = 1_000, 50, 25
_LABELS = """<View><Text name="text" value="$text"/><Choices name="type" toName="text">
<Choice value="Clinical Note"/><Choice value="Other"/></Choices></View>"""
_CHOICE = {"from_name": "type", "to_name": "text", "type": "choices", "value": {"choices": ["Other"]}}


class PeerTimes(NamedTuple):
    """Milliseconds; how many tasks there were, and what the list was of."""

    tasks: int
    first_page: float
    saved: float


class _Api:
    def __init__(self, port: int, token: str) -> None:
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.headers["Authorization"] = f"Token {token}"
        self._address = f"http://127.0.0.1:{port}"

    def get(self, path: str) -> requests.Response:
        return self._checked(self._session.get(f"{self._address}{path}", timeout=300))

    def post(self, path: str, value: object) -> requests.Response:
        return self._checked(self._session.post(f"{self._address}{path}", json=value, timeout=300))

    def _checked(self, answer: requests.Response) -> requests.Response:
        answer.raise_for_status()
        return answer


@contextmanager
def _served() -> Iterator[_Api]:
    programs = environment(ANNOTATORS)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = secrets.token_hex(20)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        command = [
            *(programs / "python", programs / "label-studio", "start", "--no-browser", "--data-dir", folder),
            *("--port", str(port), "--internal-host", "127.0.0.1", "--username", "bench@example.org"),
            *("--password", secrets.token_hex(8), "--user-token", token, "--enable-legacy-api-token"),
        ]
        quiet = {"COLLECT_ANALYTICS": "False", "LATEST_VERSION_CHECK": "False", "LABEL_STUDIO_BASE_DATA_DIR": folder}
        server = subprocess.Popen(
            command, env={**os.environ, **quiet}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            api = _Api(port, token)
            _wait(api, server)
            yield api
        finally:
            server.terminate()
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def _wait(api: _Api, server: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + STARTED_WITHIN
    while time.monotonic() < until and server.poll() is None:
        try:
            api.get("/api/projects/")
        except requests.RequestException:
            time.sleep(1)
        else:
            return
    raise NotMeasured("not measured: Label Studio did not start")


def _milliseconds(work: Callable[[], object], rounds: int) -> float:
    took = []
    for turn in range(rounds + 1):
        began = time.perf_counter()
        work()
        if turn:  # the first one only fills caches
            took.append(1000 * (time.perf_counter() - began))
    return statistics.median(took)


def label_studio(wanted: int) -> PeerTimes:
    """With so many tasks, or as many as it takes in within two minutes. NotMeasured."""
    try:
        with _served() as api:
            project = api.post("/api/projects/", {"title": "queue", "label_config": _LABELS}).json()["id"]
            until = time.monotonic() + IMPORTED_WITHIN
            tasks = 0
            while tasks < wanted and time.monotonic() < until:
                api.post(f"/api/projects/{project}/import", [_task(tasks + number) for number in range(PORTION)])
                tasks += PORTION
            path = f"/api/tasks?project={project}&page=1&page_size={PAGE}"
            listed = api.get(path).json()
            assert (listed["total"], len(listed["tasks"])) == (tasks, PAGE)
            numbers = iter([task["id"] for task in listed["tasks"]])
            first_page = _milliseconds(lambda: api.get(path).content, ROUNDS)

            def saved() -> None:
                api.post(f"/api/tasks/{next(numbers)}/annotations/", {"result": [_CHOICE], "lead_time": 20})

            return PeerTimes(tasks, first_page, _milliseconds(saved, SAVED))
    except (requests.RequestException, OSError) as error:
        raise NotMeasured(f"not measured: {type(error).__name__}") from error


def _task(number: int) -> dict[str, object]:
    text = f"fax_{number:05d}.pdf: a critical failure cannot be corrected automatically"
    return {"data": {"text": text, "pages": 4, "type": "Genomic Report", "severity": "BLOCKER", "reason": "escalated"}}
