"""Start of the server process: checks, port and a minimal environment.

Errors in options and settings are reported here, before large libraries are loaded. The port is bound here and
inherited by the server, so the printed address is right, and a browser that connects early only has to wait.
"""

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
    """Replace this process by the server of the review screen.

    UsageError if the server cannot start.

    Args:
        output_folder: the output folder whose cases are reviewed.
        port: the port on this machine; 0 chooses a free port.
        public_url: the address that experts type, if a TLS proxy is in front of the server; else None.
        review_settings: the settings section ``[review]``.
        print_line: called with each line to print, such as the server's address.
        log_format: format of the log lines, ``text`` or ``json``.
        is_hub_service: True if JupyterHub started this process as a service; JupyterHub then sets the port and logs
            reviewers in.
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
            f"no reviewer can log in: {output_folder.root} has no reviewers yet",
            code="NO-REVIEWER",
            remedy="Add a reviewer with `evalkit reviewers add NAME`.",
        )
    listener = _bind_listener(port)
    print_line(
        f"The experts' screen is at {(public_url or format_listener_url(listener)).rstrip('/')}{url_prefix or '/'}  (Ctrl-C ends it)"
    )
    if review_settings.user_header:
        print_line(
            f"Reviewers are logged in by a proxy ({', '.join(map(str, review_settings.proxies))}), "
            f"which sends their name in the header {review_settings.user_header}."
        )
    listener.set_inheritable(True)
    # -P: the server must not import modules from the current folder, such as a json.py.
    command = [sys.executable, "-P", "-m", "evalkit.serving", str(listener.fileno()), public_url or "", url_prefix]
    command.append(review_settings.model_dump_json())
    extra_variables = {
        name: value for name, value in os.environ.items() if is_hub_service and name.startswith(HUB_VARIABLE_PREFIX)
    }
    extra_variables[LOG_FORMAT_VARIABLE] = log_format
    environ = build_server_environment(os.environ, output_folder.root, output_folder.database_url) | extra_variables
    os.execve(command[0], command, environ)  # noqa: S606 - no shell, and our own interpreter


def _read_hub_url_prefix_and_port(environ: Mapping[str, str], review_settings: ReviewServerSettings) -> tuple[str, int]:
    """Read the URL prefix and port from JupyterHub's environment variables.

    UsageError if they are missing, jupyterhub is not installed, or a proxy logs reviewers in as well.
    """
    if find_spec("jupyterhub") is None:
        raise UsageError(
            "the package jupyterhub is not installed",
            code="JUPYTERHUB",
            remedy=f"Run {format_install_hint('jupyterhub')}.",
        )
    url = urlsplit(environ.get("JUPYTERHUB_SERVICE_URL", ""))
    # A terminal in a user's notebook server has JupyterHub's other variables too, but not these two together.
    is_service = environ.get("JUPYTERHUB_API_TOKEN") and environ.get("JUPYTERHUB_SERVICE_NAME")
    if not is_service or url.hostname != _LOCAL_ADDRESS or not url.port:
        raise UsageError(
            "--jupyterhub works only in a service that JupyterHub starts itself, with a url of http://127.0.0.1:PORT",
            code="JUPYTERHUB",
            remedy="Configure the service as `evalkit review --example jupyterhub` shows.",
        )
    if review_settings.user_header:
        raise UsageError(
            f"reviewers would be logged in twice: by JupyterHub and by a proxy's header {review_settings.user_header}",
            code="JUPYTERHUB",
            remedy="Remove user_header and proxies from [review], or start without --jupyterhub.",
        )
    return environ["JUPYTERHUB_SERVICE_PREFIX"], url.port


def read_example_configuration(example_name: str) -> str:
    """Return the text of the example configuration for ``nginx`` or ``jupyterhub``."""
    return (files("evalkit.serving") / "examples" / f"{example_name}.txt").read_text()


def find_review_notebook() -> Path:
    """Return the path of the review notebook, in the wheel or a checkout.

    UsageError if the notebook is missing.
    """
    packaged_folder = Path(str(files("evalkit"))) / "_notebooks"
    path = (packaged_folder if packaged_folder.is_dir() else Path(__file__).parents[2] / "notebooks") / NOTEBOOK_NAME
    if not path.is_file():
        raise UsageError(
            f"the review notebook {path} is missing from the installation",
            code="NOTEBOOK",
            remedy="Install evalkit again.",
        )
    return path


def format_listener_url(listener: socket.socket) -> str:
    """Return the http URL of a bound socket."""
    host, port = listener.getsockname()
    return f"http://{host}:{port}/"


def build_server_environment(
    environ: Mapping[str, str], output: Path | str, database_url: str | None = None
) -> dict[str, str]:
    """Build the environment variables of the server and its kernels.

    The user's other settings are left out; the salt of the patient keys is kept. Credentials of the cloud provider and
    proxy settings are passed only if the output folder is in a bucket.
    """
    inherited = {name: environ[name] for name in _INHERITED_VARIABLES if name in environ}
    if environ.get("PYTHONPATH"):  # make relative entries absolute: the server has another current folder
        inherited["PYTHONPATH"] = os.pathsep.join(
            os.path.abspath(part) for part in environ["PYTHONPATH"].split(os.pathsep)
        )
    return {
        "PATH": os.defpath,
        **inherited,
        "PYTHONUSERBASE": site.getuserbase(),  # HOME will change; `pip install --user` must still be found
        **(
            {"EVALKIT_OUTPUT": output, **_build_bucket_environment(environ)}
            if isinstance(output, str)
            else {"EVALKIT_OUTPUT": os.path.abspath(output)}
        ),
        **(_build_database_environment(environ, database_url) if database_url else {}),
    }


def _build_bucket_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Select the variables for access to a bucket.

    Paths of credentials become absolute, because the server has another HOME.
    """
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
    """Select the variables for the database.

    The URL is passed as a variable, because other users could read a command line.
    """
    postgresql_variables = {name: value for name, value in environ.items() if name.startswith("PG")}
    return {"PGPASSFILE": str(Path("~/.pgpass").expanduser()), **postgresql_variables, "EVALKIT_DATABASE": database_url}


def _require_valid_public_url(url: str) -> None:
    if not _is_valid_public_url(url):
        raise UsageError(
            f"--public-url {url!r} is not a valid address of a TLS proxy",
            code="PUBLIC-URL",
            remedy="Write https://HOST or https://HOST:PORT; write a name with special letters in its ASCII form (xn--prfung-5ya for prüfung).",
        )


def _is_valid_public_url(url: str) -> bool:
    """Return True if the URL is https, a valid host name and an optional port."""
    try:
        url_parts = urlsplit(url)
        _ = url_parts.port  # ValueError for an invalid one
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
        return ip_address(host).is_loopback  # other IP addresses would allow DNS rebinding attacks
    except ValueError:
        return _HOST_PATTERN.fullmatch(host) is not None


def _bind_listener(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # restart without waiting for old connections to end
    try:
        listener.bind((_LOCAL_ADDRESS, port))
        listener.listen(1024)  # many may connect at once; the kernel refuses further ones for a second
    except OSError as error:
        listener.close()
        reason = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be used ({error.strerror})"
        raise UsageError(f"port {port} {reason}", code="PORT", remedy="Choose another port with --port.") from error
    return listener
