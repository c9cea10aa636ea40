"""The commands of evalkit/docs/operations.md for many machines, typed as a new user would: Dask, PostgreSQL and a bucket, all on this one.

They are read out of its code blocks; only addresses differ, and the packages are installed already.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
import requests
from documents.nasty import DATA
from pipeline.operations import SETUP, TWO_COMMANDS
from playwright.sync_api import Browser
from servers.postgresql import PASSWORD, PostgreSQLServer, programs
from system.browser.conftest import CHROMIUM
from system.browser.screen import Screen
from system.dask.clusters import ROOT, kill_processes

from evalkit.samples import write_demo_folder

if TYPE_CHECKING:
    from servers.buckets import S3Server


pytestmark = [
    pytest.mark.stress,
    pytest.mark.skipif(
        CHROMIUM is None or programs() is None, reason="Debian's chromium or postgresql is not installed"
    ),
]

_PLAIN = "p@ss:word"
_SECRETS = (_PLAIN, PASSWORD, "not-a-real-secret")
_SHARED = ("multi/multi_01.pdf", "single/gen_01.pdf", "single/path_03.pdf")


class Machine:
    """A clone's folder, a home, and a shell in it that has nothing of the tests' environment."""

    def __init__(self, folder: Path, server: PostgreSQLServer, store: S3Server) -> None:
        self.clone, self._server = folder / "clone", server
        home = folder / "home"
        for made in (self.clone / ".venv", home / ".aws"):
            made.mkdir(parents=True)
        (self.clone / ".venv/bin").symlink_to(Path(sys.executable).parent)
        given = store.environment
        keys = "aws_access_key_id = {AWS_ACCESS_KEY_ID}\naws_secret_access_key = {AWS_SECRET_ACCESS_KEY}\n"
        where = "region = {AWS_DEFAULT_REGION}\nendpoint_url = {AWS_ENDPOINT_URL_S3}\n"
        _private(home / ".aws/credentials", "[default]\n" + keys.format_map(given))
        _private(home / ".aws/config", "[default]\n" + where.format_map(given))
        _private(home / ".pgpass", f"127.0.0.1:{server.port}:evalkit:evalkit:{_PLAIN.replace(':', chr(92) + ':')}\n")
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "PYTHONPATH": str(ROOT),
            "OMP_NUM_THREADS": "1",
        }
        self._port = _free_port()
        self.logs: list[Path] = []

    def here(self, command: str) -> str:
        """The command with this machine's addresses instead of the documented ones."""
        for theirs, ours in (
            ("10.0.0.4", f"127.0.0.1:{self._server.port}"),
            ("10.0.0.5:8786", f"127.0.0.1:{self._port}"),
            ("scheduler --host 10.0.0.5", f"scheduler --host 127.0.0.1 --port {self._port}"),
            ("10.0.0.6", "127.0.0.1"),
            (":8787", ":0"),
        ):
            command = command.replace(theirs, ours)
        return command

    def type(self, command: str, *, status: int = 0, said: str = "", **environment: str) -> str:
        """What the command prints; ``said`` is typed into it."""
        done = subprocess.run(
            ["bash", "-c", self.here(command)],
            cwd=self.clone,
            env=self._environment | environment,
            input=said,
            capture_output=True,
            text=True,
            start_new_session=True,  # who asks for a password would ask the terminal of whoever runs the tests
            check=False,
            timeout=300,
        )
        told = done.stdout + done.stderr
        assert done.returncode == status, told
        assert not any(secret in told for secret in _SECRETS)
        return told

    @contextmanager
    def running(self, command: str) -> Iterator[subprocess.Popen[bytes]]:
        """The command while it runs; all that it listens on is this machine's alone."""
        log = self.clone.parent / f"log{len(self.logs)}"
        self.logs.append(log)
        with log.open("wb") as out:
            process = subprocess.Popen(
                ["bash", "-c", f"exec {self.here(command)}" if "export" not in command else self.here(command)],
                cwd=self.clone,
                env=self._environment,
                stdout=out,
                stderr=out,
            )
        try:
            yield process
            family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
            heard = {one.laddr.ip for each in family for one in each.net_connections("inet") if one.status == "LISTEN"}
            assert heard == {"127.0.0.1"}, command
        finally:
            kill_processes([process])


def test_documented_commands_take_a_user_to_many_machines(tmp_path: Path, s3: S3Server, chromium: Browser) -> None:
    server = PostgreSQLServer()
    with ExitStack() as ending:
        ending.callback(server.remove)
        for what in ("DATABASE", "ROLE"):
            server.execute(f"DROP {what} evalkit")
        s3.faults.end()
        machine = Machine(tmp_path, server, s3)
        _walk(machine, server, chromium, ending)
        _leaves_nothing_open(machine, s3)


def _walk(machine: Machine, server: PostgreSQLServer, chromium: Browser, ending: ExitStack) -> None:
    records = machine.clone / "records"
    write_demo_folder(records / "demo")
    for name in _SHARED if DATA.is_dir() else ():
        (records / Path(name).name).write_bytes((DATA / "clinical_pdf" / name).read_bytes())
    count = len(json.loads((records / "demo/expected.json").read_text())["documents"]) + len(
        list(records.glob("*.pdf"))
    )

    _, database, scheduler, worker = SETUP
    as_postgres = {"PGHOST": server.socket_folder, "PGPORT": str(server.port), "PGUSER": "postgres"}
    machine.type(database, said=f"{_PLAIN}\n{_PLAIN}\n", **as_postgres)
    for command in (scheduler, worker, worker):
        ending.enter_context(machine.running(command))
    settings, run = TWO_COMMANDS
    told = machine.type(f"{settings}\n{run}")
    assert f"{count} documents" in told
    assert "s3://hospital/run" in told

    def evalkit(words: str, status: int = 0) -> str:
        return machine.type(f"{settings}\n.venv/bin/evalkit {words}", status=status)

    assert f"{count} were finished before" in machine.type(f"{settings}\n{run}")
    code = re.search(r"code: (\S+)", evalkit("reviewers add dr_lee"))
    assert code
    with machine.running(f"{settings}\nexec .venv/bin/evalkit review --port 0"):
        address = _address(machine.logs[-1])
        screen = Screen(chromium, address, 1280, 720)
        screen.log_in(code[1])
        reviewed = "scanned"
        assert reviewed in screen.cases()
        screen.open(reviewed)
        screen.see_everything()
        screen.page.keyboard.press("1")  # an audit is answered blind: Clinical Note
        screen.page.get_by_role("button", name="Submit my answer").and_(screen.page.locator(":enabled")).wait_for()
        screen.page.keyboard.press("Control+Enter")
        screen.page.wait_for_selector(f".ek-notice:has-text('{reviewed}.pdf validated')", timeout=30_000)
        screen.assert_clean()
        screen.close()
    assert "1 row written" in evalkit("export --to truth.jsonl")
    (row,) = [json.loads(line) for line in (machine.clone / "truth.jsonl").read_text().splitlines()]
    assert (row["doc_id"], row["ground_truth_source"]) == (reviewed, "SME_VALIDATED")
    evalkit("report --to report.html")
    assert " 1 review," in evalkit("audit verify")
    assert "1 document purged" in evalkit(f"purge {reviewed}")
    verified = evalkit("audit verify")
    assert verified.startswith("0 faults: ")
    assert " 1 purged" in verified
    assert "was purged" in machine.type(f"{settings}\n{run}", status=1)


def _leaves_nothing_open(machine: Machine, s3: S3Server) -> None:
    """No secret and no word of a patient where the programs wrote of themselves; all else is for its user's eyes."""
    for log in machine.logs:
        told = log.read_text(errors="replace")
        assert not [word for word in (*_SECRETS, "Pemberton", "Hemoglobin", "quest_cbc") if word in told], log.name
    made = {path.name: path.stat().st_mode & 0o777 for path in machine.clone.iterdir() if path.is_file()}
    assert made == {"truth.jsonl": 0o600, "report.html": 0o600}
    client = s3.client
    pages = client.get_paginator("list_objects_v2").paginate(Bucket="hospital", Prefix="run/")
    for key in [found["Key"] for page in pages for found in page["Contents"]]:
        content = client.get_object(Bucket="hospital", Key=key)["Body"].read()
        assert not [secret for secret in _SECRETS if secret.encode() in content], key


def _private(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o600)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def _address(log: Path) -> str:
    """Where the experts' screen is, once it answers."""
    for _ in range(300):
        found = re.search(r"http://127\.0\.0\.1:\d+", log.read_text())
        if found:
            requests.get(f"{found[0]}/login", timeout=30)
            return found[0]
        time.sleep(0.1)
    raise AssertionError(log.read_text())
