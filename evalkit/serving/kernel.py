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

from evalkit.serving.page import PAGE_MEMORY_VARIABLE

WARM_START_OPTION = "--when-told"
"""In the place of a kernel's options: load what pages load, and wait on standard input for whose page it is."""
_PRELOADED_MODULES = ("ipykernel.kernelapp", "evalkit.review", "sqlalchemy.dialects.sqlite")
"""What pages load; ipywidgets is not among it, which looks for its kernel while it is loaded."""
_PARENT_PID_VARIABLE = "JPY_PARENT_PID"
_THREAD_STACK_MB = 512
"""For the stacks of threads, which count although hardly any of them is used."""


def main() -> None:
    """Run the kernel that the command line describes."""
    sys.modules["debugpy"] = None  # type: ignore[assignment]  # ipykernel does without what cannot be imported: 8 MB
    arguments = sys.argv[1:]
    if arguments == [WARM_START_OPTION]:
        arguments = _wait_and_apply_assignment()
    limit_kernel_memory(os.environ)
    from ipykernel import kernelapp

    kernelapp.launch_new_instance(argv=arguments)


def _wait_and_apply_assignment() -> list[str]:
    """The options of the kernel that this process is to be, in the environment and the folder that it is to have."""
    for module_name in _PRELOADED_MODULES:
        import_module(module_name)
    payload = sys.stdin.buffer.read()
    if not payload:
        sys.exit()  # the server has ended
    assignment = json.loads(payload)
    parent_pid = os.environ[_PARENT_PID_VARIABLE]  # which ipykernel looks at, to end with it
    os.environ.clear()
    os.environ.update(assignment["environ"] | {_PARENT_PID_VARIABLE: parent_pid})
    os.chdir(assignment["folder"])
    arguments: list[str] = assignment["words"]
    return arguments


def limit_kernel_memory(environ: Mapping[str, str]) -> None:
    """The server looks once a second what a kernel uses, and ends it; what would take far more in between is refused."""
    if budget_mb := int(environ.get(PAGE_MEMORY_VARIABLE, "0")):
        _, hard_limit = resource.getrlimit(resource.RLIMIT_DATA)
        new_limit = 2 * budget_mb + _THREAD_STACK_MB << 20
        resource.setrlimit(
            resource.RLIMIT_DATA, (new_limit if hard_limit < 0 else min(new_limit, hard_limit), hard_limit)
        )


if __name__ == "__main__":
    main()
