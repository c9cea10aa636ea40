"""A notebook of one cell in JupyterLab, in a real browser."""

import json
import os
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from patience import SECONDS, eventually
from playwright.sync_api import Browser, Page


@contextmanager
def open_notebook(chromium: Browser, folder: Path, source: str) -> Iterator[Page]:
    """Open a notebook of one cell, which has not been run; nothing that it loads may come from another machine."""
    with _serve_notebook(folder, source) as address:
        context = chromium.new_context(viewport={"width": 1440, "height": 900})
        page = context.new_page()
        outside: list[str] = []
        page.on("request", lambda request: None if "//127.0.0.1" in request.url else outside.append(request.url))
        page.goto(address)
        page.wait_for_selector(".jp-Cell")
        page.wait_for_function("() => window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel")
        yield page
        assert [address for address in outside if not address.startswith(("data:", "blob:"))] == []
        context.close()


def run_cells(page: Page) -> None:
    page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-all-cells')")


@contextmanager
def _serve_notebook(folder: Path, source: str) -> Iterator[str]:
    cell = {"cell_type": "code", "id": "c1", "metadata": {}, "execution_count": None, "outputs": [], "source": source}
    kernel = {"name": "python3", "display_name": "Python 3"}
    notebook = {"cells": [cell], "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    (folder / "one_cell.ipynb").write_text(json.dumps(notebook))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    variables = {name: str(folder / name) for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR")}
    options = [f"--ServerApp.port={port}", "--IdentityProvider.token=", "--LabApp.expose_app_in_browser=True"]
    server = subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1", *options],
        cwd=folder,
        env=os.environ | variables | {"PYTHONPATH": os.pathsep.join(sys.path)},
        stderr=subprocess.DEVNULL,
    )
    try:
        assert eventually(lambda: _is_reachable(f"http://127.0.0.1:{port}/api"))
        yield f"http://127.0.0.1:{port}/lab/tree/one_cell.ipynb"
    finally:
        server.terminate()
        server.wait(SECONDS)


def _is_reachable(address: str) -> bool:
    try:
        return urllib.request.urlopen(address).status == 200
    except OSError:
        return False
