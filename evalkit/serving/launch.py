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

from evalkit.core.install_hint import format_install_hint
from evalkit.core.log_events import LogLineFormat
from evalkit.errors import UsageError
from evalkit.review.roster import ReviewerRoster
from evalkit.serving.page import HUB_VARIABLE_PREFIX, LOG_FORMAT_VARIABLE
from evalkit.settings import PATIENT_SALT_VARIABLE, ReviewServerSettings
from evalkit.store import OutputFolder, resolve_postgresql_url

NOTEBOOK_NAME = "sme_review.ipynb"
_LOCAL_ADDRESS = "127.0.0.1"
_HOST_PATTERN = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?")
_BUCKET_VARIABLES = (
    *("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT", "STORAGE_EMULATOR_HOST", "CLOUDSDK_CONFIG"),
    *("HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy", "SSL_CERT_FILE"),
)
_INHERITED_VARIABLES = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "LD_LIBRARY_PATH", PATIENT_SALT_VARIABLE)


def exec_review_server(
    output_folder: OutputFolder,
    port: int,
    public_url: str | None,
    review_settings: ReviewServerSettings,
    print_line: Callable[[str], None],
    *,
    log_format: LogLineFormat = "text",
    is_hub_service: bool = False,
) -> NoReturn:
    """Become the server of the experts' screen. UsageError where it cannot start.

    ``public_url`` is what experts type where a TLS proxy stands before the server; ``port`` 0 is any free port;
    ``review_settings`` are those of ``[review]``; ``log_format`` is that of this name;
    ``is_hub_service``: JupyterHub has started it as a service, gives the port, and says who is who.
    """
    find_review_notebook()
    url_prefix = ""
    if is_hub_service:
        url_prefix, port = _read_hub_url_prefix_and_port(os.environ, review_settings)
    resolve_postgresql_url(output_folder)
    if public_url is not None:
        _require_valid_public_url(public_url)
    if not ReviewerRoster(output_folder).list_reviewers():
        raise UsageError(
            "there is no reviewer who could log in", code="NO-REVIEWER", remedy="Run `evalkit reviewers add NAME`."
        )
    listener = _bind_listener(port)
    print_line(
        f"The experts' screen is at {(public_url or format_listener_url(listener)).rstrip('/')}{url_prefix or '/'}  (Ctrl-C ends it)"
    )
    if review_settings.user_header:
        print_line(
            f"Whoever connects from {', '.join(map(str, review_settings.proxies))} says in {review_settings.user_header} who they are."
        )
    listener.set_inheritable(True)
    # -P: a json.py in the folder where the command was typed must not become a part of the server.
    command = [sys.executable, "-P", "-m", "evalkit.serving", str(listener.fileno()), public_url or "", url_prefix]
    command.append(review_settings.model_dump_json())
    extra_variables = {
        name: value for name, value in os.environ.items() if is_hub_service and name.startswith(HUB_VARIABLE_PREFIX)
    }
    extra_variables[LOG_FORMAT_VARIABLE] = log_format
    environ = build_server_environment(os.environ, output_folder.root, output_folder.database_url) | extra_variables
    os.execve(command[0], command, environ)  # noqa: S606 - no shell, and our own interpreter


def _read_hub_url_prefix_and_port(environ: Mapping[str, str], review_settings: ReviewServerSettings) -> tuple[str, int]:
    """The prefix and the port that JupyterHub gives its service. UsageError where it gives none."""
    if find_spec("jupyterhub") is None:
        raise UsageError(
            "JupyterHub's library is not installed",
            code="JUPYTERHUB",
            remedy=f"Run {format_install_hint('jupyterhub')}.",
        )
    url = urlsplit(environ.get("JUPYTERHUB_SERVICE_URL", ""))
    # In a terminal of somebody's own notebook server all the others are set as well.
    is_service = environ.get("JUPYTERHUB_API_TOKEN") and environ.get("JUPYTERHUB_SERVICE_NAME")
    if not is_service or url.hostname != _LOCAL_ADDRESS or not url.port:
        raise UsageError(
            "--jupyterhub is for a service that JupyterHub starts itself, with a url of http://127.0.0.1:PORT",
            code="JUPYTERHUB",
            remedy="Look at `evalkit review --example jupyterhub`.",
        )
    if review_settings.user_header:
        raise UsageError(
            "both JupyterHub and the header of a proxy would say who the reviewer is",
            code="JUPYTERHUB",
            remedy="Take user_header and proxies out of [review], or leave --jupyterhub away.",
        )
    return environ["JUPYTERHUB_SERVICE_PREFIX"], url.port


def read_example_configuration(example_name: str) -> str:
    """A configuration to begin with: ``nginx`` or ``jupyterhub``."""
    return (files("evalkit.serving") / "examples" / f"{example_name}.txt").read_text()


def find_review_notebook() -> Path:
    """The notebook that is served: in the wheel, or beside the package in a checkout."""
    packaged_folder = Path(str(files("evalkit"))) / "_notebooks"
    path = (packaged_folder if packaged_folder.is_dir() else Path(__file__).parents[2] / "notebooks") / NOTEBOOK_NAME
    if not path.is_file():
        raise UsageError(f"the notebook {NOTEBOOK_NAME} is not there", code="NOTEBOOK", remedy="Install evalkit again.")
    return path


def format_listener_url(listener: socket.socket) -> str:
    """The URL of a bound socket."""
    host, port = listener.getsockname()
    return f"http://{host}:{port}/"


def build_server_environment(
    environ: Mapping[str, str], output: Path | str, database_url: str | None = None
) -> dict[str, str]:
    """All that the server and its kernels get to see of the environment: no user's settings; the salt of patients' keys; keys and
    proxies only where the output folder is in a bucket: the provider's own.
    """
    inherited = {name: environ[name] for name in _INHERITED_VARIABLES if name in environ}
    if environ.get("PYTHONPATH"):  # relative parts would mean other folders in the server
        inherited["PYTHONPATH"] = os.pathsep.join(
            os.path.abspath(part) for part in environ["PYTHONPATH"].split(os.pathsep)
        )
    return {
        "PATH": os.defpath,
        **inherited,
        "PYTHONUSERBASE": site.getuserbase(),  # HOME will be another one; `pip install --user` must still be found
        **(
            {"EVALKIT_OUTPUT": output, **_build_bucket_environment(environ)}
            if isinstance(output, str)
            else {"EVALKIT_OUTPUT": os.path.abspath(output)}
        ),
        **(_build_database_environment(environ, database_url) if database_url else {}),
    }


def _build_bucket_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """What a kernel needs to read and write a bucket, as the providers' clients look for it; HOME will be another one."""
    home_paths = {
        "AWS_CONFIG_FILE": "~/.aws/config",
        "AWS_SHARED_CREDENTIALS_FILE": "~/.aws/credentials",
        "CLOUDSDK_CONFIG": "~/.config/gcloud",
    }
    bucket_variables = {
        name: value for name, value in environ.items() if name.startswith("AWS_") or name in _BUCKET_VARIABLES
    }
    return {name: str(Path(path).expanduser()) for name, path in home_paths.items()} | bucket_variables


def _build_database_environment(environ: Mapping[str, str], database_url: str) -> dict[str, str]:
    """What a kernel needs to be let in: never on a command line, which others on the machine can read."""
    postgresql_variables = {name: value for name, value in environ.items() if name.startswith("PG")}
    return {"PGPASSFILE": str(Path("~/.pgpass").expanduser()), **postgresql_variables, "EVALKIT_DATABASE": database_url}


def _require_valid_public_url(url: str) -> None:
    if not _is_valid_public_url(url):
        raise UsageError(
            f"--public-url {url!r} is not the address of a TLS proxy",
            code="PUBLIC-URL",
            remedy="Give it as https://HOST or https://HOST:PORT, with a name as browsers send it: prüfung is xn--prfung-5ya.",
        )


def _is_valid_public_url(url: str) -> bool:
    """Whether it is https, a host and at most a port; and a host that the server answers to."""
    try:
        url_parts = urlsplit(url)
        _ = url_parts.port  # ValueError for what is none
    except ValueError:
        return False
    if (
        url_parts.scheme != "https"
        or url_parts.path not in ("", "/")
        or url_parts.query
        or url_parts.fragment
        or "@" in url_parts.netloc
    ):
        return False
    host = url_parts.hostname or ""
    try:
        return ip_address(host).is_loopback  # another address could be a name that was rebound to this machine
    except ValueError:
        return _HOST_PATTERN.fullmatch(host) is not None


def _bind_listener(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # or a restart would wait for old connections
    try:
        listener.bind((_LOCAL_ADDRESS, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        reason = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be used ({error.strerror})"
        raise UsageError(f"port {port} {reason}", code="PORT", remedy="Choose another with --port.") from error
    return listener
