"""A real JupyterHub with dummy passwords, and with the example that `evalkit review --example jupyterhub` prints."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import requests
from patience import SECONDS, eventually
from system.serving.nginx import free_port

from evalkit.serving.launch import read_example_configuration

PROXY = "configurable-http-proxy"
"""Debian's package of the hub's own. The one in Python, 0.4, forgets the protocol of a websocket."""
PASSWORD = "of the dummy authenticator"
_LOOPBACK = """

c.JupyterHub.bind_url = "http://127.0.0.1:{port}"
c.JupyterHub.hub_bind_url = "http://127.0.0.1:{hub}"
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{api}"
c.ConfigurableHTTPProxy.command = [{proxy!r}]
c.JupyterHub.authenticator_class = "dummy"
c.DummyAuthenticator.password = {password!r}
c.Authenticator.allow_all = True
c.JupyterHub.db_url = "sqlite://"
c.JupyterHub.cookie_secret_file = {folder!r} + "/secret"
c.JupyterHub.log_level = "WARN"
"""


class Hub:
    """Where it is, and people who log in there."""

    def __init__(self, base: str) -> None:
        self.base = base
        self.evalkit = f"{base}/services/evalkit/"

    def log_in(self, name: str) -> requests.Session:
        """A browser without a screen in which somebody has logged in to the hub."""
        browser = requests.Session()
        form = browser.get(f"{self.base}/hub/login", timeout=SECONDS).text
        xsrf = re.search(r'name="_xsrf"\s+value="([^"]+)"', form).group(1)
        answer = browser.post(
            f"{self.base}/hub/login?next=/hub/token",
            data={"_xsrf": xsrf, "username": name, "password": PASSWORD},
            timeout=SECONDS,
        )
        assert answer.status_code == 200, answer.text
        return browser


@contextmanager
def hub(folder: Path, output: Path, **environ: str) -> Iterator[Hub]:
    """The hub, in ``folder``, with evalkit's screen over an output folder as its service."""
    folder.mkdir()
    port, inner, api, service = (free_port() for _ in range(4))
    filled = {
        '"/srv/evalkit/.venv/bin/evalkit",  # CHANGE\n            "review"': f'{sys.executable!r}, "-m", "evalkit",\n            "review"',
        "/srv/evalkit/output": str(output),
        "http://127.0.0.1:8866": f"http://127.0.0.1:{service}",
    }
    text = read_example_configuration("jupyterhub")
    for before, after in filled.items():
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    text += _LOOPBACK.format(port=port, hub=inner, api=api, proxy=PROXY, password=PASSWORD, folder=str(folder))
    given = {"PYTHONPATH": os.environ.get("PYTHONPATH", "")} | environ
    text += f"c.JupyterHub.services[0]['environment'] = {given!r}\n"
    (folder / "jupyterhub_config.py").write_text(text)
    with (folder / "log.txt").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "jupyterhub", "-f", "jupyterhub_config.py"],
            cwd=folder,
            env=os.environ
            | {"NODE_PATH": "/usr/share/nodejs"},  # where Debian's proxy finds Debian's libraries, whoever's node it is
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    made = Hub(f"http://127.0.0.1:{port}")
    try:
        _wait(process, made, folder / "log.txt")
        yield made
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(SECONDS)
        finally:
            process.kill()


def _wait(process: subprocess.Popen, made: Hub, log: Path) -> None:
    def answers() -> bool:
        assert process.poll() is None, log.read_text()
        with suppress(requests.ConnectionError):
            return requests.get(made.evalkit, timeout=SECONDS, allow_redirects=False).status_code == 302
        return False

    assert eventually(answers), log.read_text()
