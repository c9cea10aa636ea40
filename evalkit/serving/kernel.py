"""A page's kernel: ipykernel without its debugger. The server finds it as kernel ``python3``, before the machine's own.

Each open page is a process of its own, so what none of them needs is not loaded, and the kernel's specification
(``jupyter/kernels/python3/kernel.json``) fixes one heap for all threads, and glibc's thresholds: it would raise them after
the first large picture was freed, and keep some 20 MB of pages that were drawn long ago.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the kernel that the command line describes."""
    sys.modules["debugpy"] = None  # type: ignore[assignment]  # ipykernel does without what cannot be imported: 8 MB
    from ipykernel import kernelapp

    kernelapp.launch_new_instance()


if __name__ == "__main__":
    main()
