"""Entry point of the server process, which :mod:`evalkit.serving.launch` starts.

The process inherits a bound socket and a minimal environment.
"""

import os
import resource
import shutil
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from evalkit.serving.launch import find_review_notebook
from evalkit.settings import ReviewServerSettings


def main(listener_fd: int, public_url: str, url_prefix: str, review_settings: ReviewServerSettings) -> None:
    """Serve the review screen on the inherited socket until Ctrl-C, SIGTERM or SIGHUP.

    ``listener_fd`` is the descriptor of the bound socket; ``public_url`` and ``url_prefix`` are empty if not used.
    """
    for signal_number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(signal_number) is not signal.SIG_IGN:  # nohup ignores SIGHUP
            signal.signal(signal_number, signal.default_int_handler)  # clean up even if stopped while loading
    _raise_open_file_limit()
    listener = socket.socket(fileno=listener_fd)
    listener.set_inheritable(False)
    with suppress(KeyboardInterrupt), TemporaryDirectory(prefix="evalkit-review-") as home:
        notebook = enter_private_home_with_notebook(Path(home))
        # Voilà loads jsonschema, which works without this URL grammar; building the grammar takes 1.5 s.
        sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]
        from evalkit.serving.server import serve_notebook

        serve_notebook(
            listener,
            notebook,
            output=os.environ["EVALKIT_OUTPUT"],
            public_url=public_url,
            review_settings=review_settings,
            url_prefix=url_prefix,
        )


#: Limit of open files to request. An open page needs 14, and more while it opens; many machines allow 1024 by default.
_MAX_OPEN_FILES = 65_536


def _raise_open_file_limit() -> None:
    soft_limit, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    new_limit = _MAX_OPEN_FILES if hard_limit < 0 else min(_MAX_OPEN_FILES, hard_limit)
    if 0 <= soft_limit < new_limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (new_limit, hard_limit))


def enter_private_home_with_notebook(home: Path) -> Path:
    """Make ``home`` the home folder of server and kernels; copy the notebook there.

    So server and kernels find no start-up files, kernels or credentials of the user, and their files are deleted at the
    end. The notebook is the only file in its folder.
    """
    os.environ.update(
        HOME=str(home),
        IPYTHONDIR=str(home / "ipython"),
        JUPYTER_CONFIG_DIR=str(home / "config"),
        JUPYTER_DATA_DIR=str(home / "data"),
        JUPYTER_RUNTIME_DIR=str(home / "runtime"),
        JUPYTER_PATH=str(Path(__file__).parent / "jupyter"),
        JUPYTER_PREFER_ENV_PATH="1",
        TMPDIR=str(home / "tmp"),
    )
    notebook_folder = home / "page"
    notebook_folder.mkdir()
    (home / "tmp").mkdir()
    return Path(shutil.copy(find_review_notebook(), notebook_folder))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3], ReviewServerSettings.model_validate_json(sys.argv[4]))
