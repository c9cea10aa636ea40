"""A real `evalkit review` on a free port, with a stub in the workbench's place, and clients for it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import requests
from patience import SECONDS, eventually
from places import open_folder
from requests.adapters import HTTPAdapter

from evalkit.review.roster import ReviewerRoster
from evalkit.serving.kernel import WARM_START_OPTION

SECRETS = {
    "OPENAI_API_KEY": "sk-parent",
    "GEMINI_API_KEY": "parent",
    "GOOGLE_APPLICATION_CREDENTIALS": "/parent.json",
    "AWS_SECRET_ACCESS_KEY": "parent",
    "HTTPS_PROXY": "http://parent:3128",
    "JUPYTER_TOKEN": "parent",
}
PATIENT = "Jane Roe born 1950"
STUB = '''
import json, logging, os, pathlib, threading
import anywidget, ipywidgets, traitlets
from traitlets.log import get_logger


class Stub(anywidget.AnyWidget):
    _esm = """export default { render({ model, el }) {
        const button = document.createElement("button");
        button.id = "stub";
        button.textContent = "asked";
        button.onclick = () => { model.set("asked", true); model.save_changes(); };
        model.on("change:image", () => { button.textContent = `got ${model.get("image").byteLength}`; });
        el.appendChild(button);
    } };"""
    asked = traitlets.Bool(False).tag(sync=True)
    image = traitlets.Bytes(b"").tag(sync=True)

    @traitlets.observe("asked")
    def _asked(self, change):
        self.image = bytes(4_000_000)
        raise ValueError("PATIENT")


def show(output, reviewer):
    seen = pathlib.Path(os.environ["EVALKIT_OUTPUT"], "seen", os.environ["VOILA_KERNEL_ID"] + ".json")
    seen.parent.mkdir(exist_ok=True)
    seen.write_text(json.dumps({"environ": dict(os.environ), "cwd": os.listdir(), "pid": os.getpid()}))
    logging.getLogger("evalkit.widgets").error("told by a kernel")
    get_logger().error("PATIENT")  # the kernel's own log
    if os.environ["QUERY_STRING"] == "large":
        threading.Timer(1, lambda: globals().update(kept=bytearray(b"x") * (400 << 20))).start()
    if os.environ["QUERY_STRING"] == "fail":
        raise ValueError("PATIENT")
    return ipywidgets.VBox([Stub(), ipywidgets.HTML("<img src=x onerror='window.__xss = 1'>")])
'''


class Client:
    """A browser without a screen. Its ``address`` is one of this machine's loopback addresses."""

    def __init__(self, base: str, address: str = "127.0.0.1") -> None:
        self.base = base
        self.session = requests.Session()
        adapter = HTTPAdapter()
        adapter.init_poolmanager(4, 4, source_address=(address, 0))
        self.session.mount("http://", adapter)

    def ask(self, method: str, path: str, **given: Any) -> requests.Response:
        return self.session.request(method, self.base + path, allow_redirects=False, timeout=60, **given)

    def get(self, path: str, **given: Any) -> requests.Response:
        return self.ask("GET", path, **given)

    def log_in(self, code: str, path: str = "/") -> requests.Response:
        form = self.get("/login").text
        xsrf = re.search(r'name="_xsrf" value="([^"]+)"', form).group(1)
        return self.ask("POST", "/login", data={"_xsrf": xsrf, "code": code, "next": path})

    def log_out(self, base: str = "/", **given: Any) -> requests.Response:
        token = next(one.value for one in self.session.cookies if one.name == "_xsrf")
        # Named once more, because a cookie for TLS alone would not be sent behind the tests' proxies.
        return self.ask("POST", f"{base}logout", data={"_xsrf": token}, cookies={"_xsrf": token}, **given)

    @property
    def cookie(self) -> str:
        return "; ".join(f"{one.name}={one.value}" for one in self.session.cookies)

    @property
    def login_cookie(self) -> str:
        return next(one.value for one in self.session.cookies if one.name.startswith("evalkit-"))


class Server:
    """A running server and what is around it."""

    def __init__(self, folder: Path, *words: str, **environ: str) -> None:
        self.output = folder / "output"
        self.codes = {
            name: ReviewerRoster(open_folder(self.output)).add_reviewer_or_replace_code(name)
            for name in ("dr_lee", "dr_kim", "dr_ray")
        }
        stub = folder / "stub" / "widgets"
        stub.mkdir(parents=True)
        (stub / "__init__.py").write_text("")
        (stub / "workbench.py").write_text(STUB.replace("PATIENT", PATIENT))
        self._folder, self._log, self._words, self._environ = folder, folder / "log.txt", words, environ
        self.scratch = folder / "scratch"
        self.scratch.mkdir()
        self.start()

    def start(self, port: int = 0) -> None:
        """Start it, again on the port that it had."""
        paths = os.pathsep.join(["stub", *filter(None, [os.environ.get("PYTHONPATH")])])
        with self._log.open("a") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "evalkit", "review", "--port", str(port), "--output", "output", *self._words],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=self._folder,
                env=os.environ | SECRETS | {"PYTHONPATH": paths, "TMPDIR": str(self.scratch)} | self._environ,
                start_new_session=True,
            )
        self.said = self.process.stdout.readline()
        self.port = next(
            one.laddr.port for one in psutil.Process(self.process.pid).net_connections() if one.status == "LISTEN"
        )
        self.base = f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        return self._log.read_text()

    def client(self, reviewer: str | None = None, address: str = "127.0.0.1") -> Client:
        client = Client(self.base, address)
        if reviewer:
            assert client.log_in(self.codes[reviewer]).status_code == 302
        return client

    def open(self, client: Client, query: str = "", **given: Any) -> tuple[str, dict[str, Any]]:
        """Open the page, again if it asks for that: the kernel's id, and what the stub saw in it."""
        answer = client.get(f"/?{query}", **given)
        if "The review page could not be opened." in answer.text:  # a connection of another test has taken its port
            answer = client.get(f"/?{query}", **given)
        assert answer.status_code == 200, answer.text
        kernel_id = re.search(r'"kernelId": "([^"]+)"', answer.text).group(1)
        return kernel_id, json.loads((self.output / "seen" / f"{kernel_id}.json").read_text())

    def in_reserve(self) -> psutil.Process:
        """The process that waits to be a page's kernel, once there is one."""
        found: list[psutil.Process] = []

        def is_there() -> bool:
            pids = {json.loads(path.read_text())["pid"] for path in self.output.glob("seen/*.json")}
            for one in psutil.Process(self.process.pid).children():
                with suppress(psutil.Error):  # it has just ended
                    if WARM_START_OPTION in one.cmdline() and one.pid not in pids:
                        found.append(one)
            return bool(found)

        assert eventually(is_there)
        (only,) = found
        return only

    def stop(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        try:
            return self.process.wait(SECONDS)
        finally:
            self.process.kill()
            self.process.stdout.close()
