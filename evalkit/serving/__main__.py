"""The server process. Started by :mod:`evalkit.serving.launch` with a bound socket and a minimal environment."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import socket
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from evalkit.serving.launch import find_notebook
from evalkit.settings import Review


def main(descriptor: int, public_url: str, prefix: str, review: Review) -> None:
    """Serve until Ctrl-C, SIGTERM or SIGHUP."""
    for one in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(one) is not signal.SIG_IGN:  # nohup
            signal.signal(one, signal.default_int_handler)  # clean up also when told to stop while still loading
    _have_descriptors()
    listener = socket.socket(fileno=descriptor)
    listener.set_inheritable(False)
    try:
        with TemporaryDirectory(prefix="evalkit-review-") as home:
            notebook = settle(Path(home))
            # jsonschema, which Voilà loads, does without what cannot be imported: a grammar of addresses, built in 1.5 s.
            sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]
            from evalkit.serving.server import serve

            serve(
                listener,
                notebook,
                output=os.environ["EVALKIT_OUTPUT"],
                public_url=public_url,
                review=review,
                prefix=prefix,
            )
    except KeyboardInterrupt:
        pass


_MOST_DESCRIPTORS = 65_536
"""A page takes 14, and more while it opens: many machines allow 1024 unless more are asked for."""


def _have_descriptors() -> None:
    soft, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_DESCRIPTORS if most < 0 else min(_MOST_DESCRIPTORS, most)
    if 0 <= soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def settle(home: Path) -> Path:
    """Make a private home folder for server and kernels, so that no user's start-up file, kernel or credentials are
    found by either, and what they leave is gone at the end. Returns the notebook, alone in a folder that holds no data.
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
    folder = home / "page"
    folder.mkdir()
    (home / "tmp").mkdir()
    return Path(shutil.copy(find_notebook(), folder))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3], Review.model_validate_json(sys.argv[4]))
