"""A page's kernel: ipykernel without its debugger. The server finds it as kernel ``python3``, before the machine's own.

Each open page is a process of its own, so what none of them needs is not loaded, and the kernel's specification
(``jupyter/kernels/python3/kernel.json``) fixes one heap for all threads, and glibc's thresholds: it would raise them after
the first large picture was freed, and keep some 20 MB of pages that were drawn long ago.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Mapping
from importlib import import_module

from evalkit.serving.page import MEMORY_MB

WHEN_TOLD = "--when-told"
"""In the place of a kernel's options: load what pages load, and wait on standard input for whose page it is."""
_LOADED = ("ipykernel.kernelapp", "evalkit.review", "sqlalchemy.dialects.sqlite")
"""What pages load; ipywidgets is not among it, which looks for its kernel while it is loaded."""
_PARENT = "JPY_PARENT_PID"
_SLACK_MB = 512
"""For the stacks of threads, which count although hardly any of them is used."""


def main() -> None:
    """Run the kernel that the command line describes."""
    sys.modules["debugpy"] = None  # type: ignore[assignment]  # ipykernel does without what cannot be imported: 8 MB
    words = sys.argv[1:]
    if words == [WHEN_TOLD]:
        words = _told()
    confine(os.environ)
    from ipykernel import kernelapp

    kernelapp.launch_new_instance(argv=words)


def _told() -> list[str]:
    """The options of the kernel that this process is to be, in the environment and the folder that it is to have."""
    for name in _LOADED:
        import_module(name)
    told = sys.stdin.buffer.read()
    if not told:
        sys.exit()  # the server has ended
    given = json.loads(told)
    parent = os.environ[_PARENT]  # which ipykernel looks at, to end with it
    os.environ.clear()
    os.environ.update(given["environ"] | {_PARENT: parent})
    os.chdir(given["folder"])
    words: list[str] = given["words"]
    return words


def confine(environ: Mapping[str, str]) -> None:
    """The server looks once a second what a kernel uses, and ends it; what would take far more in between is refused."""
    if budget := int(environ.get(MEMORY_MB, "0")):
        _, most = resource.getrlimit(resource.RLIMIT_DATA)
        wanted = 2 * budget + _SLACK_MB << 20
        resource.setrlimit(resource.RLIMIT_DATA, (wanted if most < 0 else min(wanted, most), most))


if __name__ == "__main__":
    main()
