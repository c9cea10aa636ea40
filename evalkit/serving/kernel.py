"""The kernel of a page: ipykernel without its debugger.

The server finds it as ``python3``, before the machine's own.

Each open page is a process of its own, so that modules which no page needs are not loaded. The kernel's specification
(``jupyter/kernels/python3/kernel.json``) sets one heap for all threads and fixes glibc's thresholds: glibc would raise them
after the first large image is freed, and keep some 20 MB of pages that were drawn long ago.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Mapping
from importlib import import_module

from evalkit.serving.page import PAGE_MEMORY_VARIABLE

#: Instead of a kernel's options: preload modules, then wait on standard input for the page's assignment.
WARM_START_OPTION = "--when-assigned"
#: Modules that pages load, except ipywidgets, which looks for its kernel while it is imported.
_PRELOADED_MODULES = ("ipykernel.kernelapp", "evalkit.review", "sqlalchemy.dialects.sqlite")
_PARENT_PID_VARIABLE = "JPY_PARENT_PID"
#: Megabytes for the stacks of threads, which count although hardly any of them is used.
_THREAD_STACK_MB = 512


def main() -> None:
    """Run the kernel that the command line describes."""
    sys.modules["debugpy"] = None  # type: ignore[assignment]  # ipykernel works without it: saves 8 MB
    arguments = sys.argv[1:]
    if arguments == [WARM_START_OPTION]:
        arguments = _wait_and_apply_assignment()
    limit_kernel_memory(os.environ)
    from ipykernel import kernelapp

    kernelapp.launch_new_instance(argv=arguments)


def _wait_and_apply_assignment() -> list[str]:
    """Wait for an assignment, apply it, and return the kernel's options."""
    for module_name in _PRELOADED_MODULES:
        import_module(module_name)
    payload = sys.stdin.buffer.read()
    if not payload:
        sys.exit()  # the server has ended
    assignment = json.loads(payload)
    parent_pid = os.environ[_PARENT_PID_VARIABLE]  # ipykernel watches it, to end with the server
    os.environ.clear()
    os.environ.update(assignment["environ"] | {_PARENT_PID_VARIABLE: parent_pid})
    os.chdir(assignment["folder"])
    arguments: list[str] = assignment["words"]
    return arguments


def limit_kernel_memory(environ: Mapping[str, str]) -> None:
    """Refuse allocations far above the limit, which the server checks every second."""
    if budget_mb := int(environ.get(PAGE_MEMORY_VARIABLE, "0")):
        _, hard_limit = resource.getrlimit(resource.RLIMIT_DATA)
        new_limit = 2 * budget_mb + _THREAD_STACK_MB << 20
        resource.setrlimit(
            resource.RLIMIT_DATA, (new_limit if hard_limit < 0 else min(new_limit, hard_limit), hard_limit)
        )


if __name__ == "__main__":
    main()
