"""The kernel process of a review page: ipykernel without its debugger.

The server finds this kernel under the name ``python3``, before the kernels installed on the machine. Each open page has
its own process, so memory matters: modules that no page needs are not loaded, and the kernel's specification
(``jupyter/kernels/python3/kernel.json``) sets one heap for all threads and fixes glibc's thresholds. Otherwise glibc
would raise the thresholds after the first large image is freed and keep some 20 MB of images that are no longer used.
"""

import json
import os
import resource
import signal
import sys
from collections.abc import Mapping
from importlib import import_module

from evalkit.serving.page import PAGE_MEMORY_VARIABLE

#: Command-line option, instead of a kernel's options: preload modules, then wait on standard input for an assignment.
WARM_START_OPTION = "--when-assigned"
#: Modules to preload for pages. ipywidgets is not among them, because it needs a running kernel when it is imported.
_PRELOADED_MODULES = ("ipykernel.kernelapp", "evalkit.review", "sqlalchemy.dialects.sqlite")
_PARENT_PID_VARIABLE = "JPY_PARENT_PID"
#: Megabytes added to the memory limit for thread stacks, which count as allocated although they are hardly used.
_THREAD_STACK_MB = 512


def main() -> None:
    """Run a kernel with the options of the command line or of an assignment."""
    # A service manager sends SIGTERM to all processes at once. The server then shuts its kernels down, so that they give
    # their cases back; a kernel also ends by itself when the server is gone.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.modules["debugpy"] = None  # type: ignore[assignment]  # ipykernel works without it: saves 8 MB
    arguments = sys.argv[1:]
    if arguments == [WARM_START_OPTION]:
        arguments = _wait_and_apply_assignment()
    limit_kernel_memory(os.environ)
    from ipykernel import kernelapp

    kernelapp.launch_new_instance(argv=arguments)


def _wait_and_apply_assignment() -> list[str]:
    for module_name in _PRELOADED_MODULES:
        import_module(module_name)
    payload = sys.stdin.buffer.read()
    if not payload:
        sys.exit()  # the server has ended
    assignment = json.loads(payload)
    parent_pid = os.environ[_PARENT_PID_VARIABLE]  # ipykernel watches this process, to end when the server ends
    os.environ.clear()
    os.environ.update(assignment["environ"] | {_PARENT_PID_VARIABLE: parent_pid})
    os.chdir(assignment["folder"])
    arguments: list[str] = assignment["words"]
    return arguments


def limit_kernel_memory(environ: Mapping[str, str]) -> None:
    """Set a hard memory limit at about twice a page's budget.

    The budget is in ``EVALKIT_PAGE_MEMORY_MB``; 0 sets no limit. The server checks the budget itself every second; this
    limit stops sudden large allocations in between.
    """
    if budget_mb := int(environ.get(PAGE_MEMORY_VARIABLE, "0")):
        _, hard_limit = resource.getrlimit(resource.RLIMIT_DATA)
        new_limit = 2 * budget_mb + _THREAD_STACK_MB << 20
        resource.setrlimit(
            resource.RLIMIT_DATA, (new_limit if hard_limit < 0 else min(new_limit, hard_limit), hard_limit)
        )


if __name__ == "__main__":
    main()
