"""From the command line to the server process: checks, the port, a minimal environment.

Everything that a user can have got wrong is found here, before anything heavy is loaded. The port is bound here and
inherited, so that the address is right when it is printed, and a browser that comes early only waits.
"""

from __future__ import annotations

import errno
import os
import re
import site
import socket
import sys
from collections.abc import Callable, Mapping
from importlib.resources import files
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit

from evalkit.errors import UsageError
from evalkit.extras import installing
from evalkit.logs import Form
from evalkit.review.roster import Roster
from evalkit.serving.page import HUB, LOG_FORMAT
from evalkit.settings import Review
from evalkit.store import Files, chosen

NOTEBOOK = "sme_review.ipynb"
_ADDRESS = "127.0.0.1"
_HOST = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?")
_OF_BUCKETS = (
    *("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT", "STORAGE_EMULATOR_HOST", "CLOUDSDK_CONFIG"),
    *("HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy", "SSL_CERT_FILE"),
)
_KEPT = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "LD_LIBRARY_PATH")


def review(
    output: Path | str,
    port: int,
    public_url: str | None,
    settings: Review,
    database: str | None,
    say: Callable[[str], None],
    *,
    log_format: Form = "text",
    is_of_hub: bool = False,
) -> NoReturn:
    """Become the server of the experts' screen. UsageError where it cannot start.

    ``public_url`` is what experts type where a TLS proxy stands before the server; ``port`` 0 is any free port;
    ``settings`` are those of ``[review]``; ``database`` and ``log_format`` those of these names;
    ``is_of_hub``: JupyterHub has started it as a service, gives the port, and says who is who.
    """
    find_notebook()
    prefix = ""
    if is_of_hub:
        prefix, port = _of_hub(os.environ, settings)
    chosen(output, database)
    if public_url is not None:
        _check_public(public_url)
    if not Roster(Files(output)).names():
        raise UsageError(
            "there is no reviewer who could log in", code="NO-REVIEWER", remedy="Run `evalkit reviewers add NAME`."
        )
    listener = _listen(port)
    say(f"The experts' screen is at {(public_url or address(listener)).rstrip('/')}{prefix or '/'}  (Ctrl-C ends it)")
    if settings.user_header:
        say(
            f"Whoever connects from {', '.join(map(str, settings.proxies))} says in {settings.user_header} who they are."
        )
    listener.set_inheritable(True)
    # -P: a json.py in the folder where the command was typed must not become a part of the server.
    words = [sys.executable, "-P", "-m", "evalkit.serving", str(listener.fileno()), public_url or "", prefix]
    words.append(settings.model_dump_json())
    told = {name: value for name, value in os.environ.items() if is_of_hub and name.startswith(HUB)}
    told[LOG_FORMAT] = log_format
    os.execve(words[0], words, environment(os.environ, output, database) | told)  # noqa: S606 - no shell, and our own interpreter


def _of_hub(given: Mapping[str, str], settings: Review) -> tuple[str, int]:
    """The prefix and the port that JupyterHub gives its service. UsageError where it gives none."""
    if find_spec("jupyterhub") is None:
        raise UsageError(
            "JupyterHub's library is not installed", code="JUPYTERHUB", remedy=f"Run {installing('jupyterhub')}."
        )
    url = urlsplit(given.get("JUPYTERHUB_SERVICE_URL", ""))
    # In a terminal of somebody's own notebook server all the others are set as well.
    is_service = given.get("JUPYTERHUB_API_TOKEN") and given.get("JUPYTERHUB_SERVICE_NAME")
    if not is_service or url.hostname != _ADDRESS or not url.port:
        raise UsageError(
            "--jupyterhub is for a service that JupyterHub starts itself, with a url of http://127.0.0.1:PORT",
            code="JUPYTERHUB",
            remedy="Look at `evalkit review --example jupyterhub`.",
        )
    if settings.user_header:
        raise UsageError(
            "both JupyterHub and the header of a proxy would say who the reviewer is",
            code="JUPYTERHUB",
            remedy="Take user_header and proxies out of [review], or leave --jupyterhub away.",
        )
    return given["JUPYTERHUB_SERVICE_PREFIX"], url.port


def example(name: str) -> str:
    """A configuration to begin with: ``nginx`` or ``jupyterhub``."""
    return (files("evalkit.serving") / "examples" / f"{name}.txt").read_text()


def find_notebook() -> Path:
    """The notebook that is served: in the wheel, or beside the package in a checkout."""
    shipped = Path(str(files("evalkit"))) / "_notebooks"
    path = (shipped if shipped.is_dir() else Path(__file__).parents[2] / "notebooks") / NOTEBOOK
    if not path.is_file():
        raise UsageError(f"the notebook {NOTEBOOK} is not there", code="NOTEBOOK", remedy="Install evalkit again.")
    return path


def address(listener: socket.socket) -> str:
    """The URL of a bound socket."""
    host, port = listener.getsockname()
    return f"http://{host}:{port}/"


def environment(given: Mapping[str, str], output: Path | str, database: str | None = None) -> dict[str, str]:
    """All that the server and its kernels get to see of the environment: no user's settings, and keys and proxies only
    where the output folder is in a bucket: the provider's own.
    """
    kept = {name: given[name] for name in _KEPT if name in given}
    if given.get("PYTHONPATH"):  # relative parts would mean other folders in the server
        kept["PYTHONPATH"] = os.pathsep.join(os.path.abspath(part) for part in given["PYTHONPATH"].split(os.pathsep))
    return {
        "PATH": os.defpath,
        **kept,
        "PYTHONUSERBASE": site.getuserbase(),  # HOME will be another one; `pip install --user` must still be found
        **(
            {"EVALKIT_OUTPUT": output, **_bucket(given)}
            if isinstance(output, str)
            else {"EVALKIT_OUTPUT": os.path.abspath(output)}
        ),
        **(_database(given, database) if database else {}),
    }


def _bucket(given: Mapping[str, str]) -> dict[str, str]:
    """What a kernel needs to read and write a bucket, as the providers' clients look for it; HOME will be another one."""
    at_home = {
        "AWS_CONFIG_FILE": "~/.aws/config",
        "AWS_SHARED_CREDENTIALS_FILE": "~/.aws/credentials",
        "CLOUDSDK_CONFIG": "~/.config/gcloud",
    }
    kept = {name: value for name, value in given.items() if name.startswith("AWS_") or name in _OF_BUCKETS}
    return {name: str(Path(path).expanduser()) for name, path in at_home.items()} | kept


def _database(given: Mapping[str, str], database: str) -> dict[str, str]:
    """What a kernel needs to be let in: never on a command line, which others on the machine can read."""
    own = {name: value for name, value in given.items() if name.startswith("PG")}
    return {"PGPASSFILE": str(Path("~/.pgpass").expanduser()), **own, "EVALKIT_DATABASE": database}


def _check_public(url: str) -> None:
    if not _is_of_proxy(url):
        raise UsageError(
            f"--public-url {url!r} is not the address of a TLS proxy",
            code="PUBLIC-URL",
            remedy="Give it as https://HOST or https://HOST:PORT, with a name as browsers send it: prüfung is xn--prfung-5ya.",
        )


def _is_of_proxy(url: str) -> bool:
    """Whether it is https, a host and at most a port; and a host that the server answers to."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # ValueError for what is none
    except ValueError:
        return False
    if parts.scheme != "https" or parts.path not in ("", "/") or parts.query or parts.fragment or "@" in parts.netloc:
        return False
    host = parts.hostname or ""
    try:
        return ip_address(host).is_loopback  # another address could be a name that was rebound to this machine
    except ValueError:
        return _HOST.fullmatch(host) is not None


def _listen(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # or a restart would wait for old connections
    try:
        listener.bind((_ADDRESS, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        reason = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be used ({error.strerror})"
        raise UsageError(f"port {port} {reason}", code="PORT", remedy="Choose another with --port.") from error
    return listener
