"""A kernel in reserve: one process has loaded what every page loads, and waits to be told whose page it will be.

A page opens sooner by the second that loading takes. Until it is told, the process knows nobody and has opened nothing; it
becomes one page's kernel and no other's.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from subprocess import DEVNULL, PIPE, Popen
from typing import TYPE_CHECKING, Any

from jupyter_client.launcher import launch_kernel
from jupyter_client.provisioning.local_provisioner import LocalProvisioner

from evalkit.serving.kernel import WHEN_TOLD
from evalkit.serving.page import LOG_DESCRIPTOR

if TYPE_CHECKING:
    from jupyter_client.connect import KernelConnectionInfo


class Reserve:
    """At most one such process. It ends with the server too, however that ends: it reads from the server's pipe."""

    def __init__(self) -> None:
        self._process: Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Of the process that waits, if one does."""
        return self._process.pid if self._process and self._process.poll() is None else None

    def fill(self, environ: Mapping[str, str]) -> None:
        """Start one in that environment, unless there is one. OSError."""
        if self.pid is None:
            # -P: neither it nor the page that it becomes loads anything from the folder that it is started in.
            words = [sys.executable, "-P", "-m", "evalkit.serving.kernel", WHEN_TOLD]
            log = int(environ[LOG_DESCRIPTOR])
            self._process = launch_kernel(
                words, stdin=PIPE, stdout=DEVNULL, stderr=DEVNULL, env=dict(environ), pass_fds=(log,)
            )

    def take(self, words: Sequence[str], environ: Mapping[str, str], folder: str) -> Popen[bytes] | None:
        """The process, told to be the kernel of that command line; None where none waits."""
        process, self._process = self._process, None
        if process is None or process.stdin is None:
            return None
        told = {"words": list(words), "environ": dict(environ), "folder": str(folder)}
        try:
            with process.stdin:
                process.stdin.write(json.dumps(told).encode())
        except OSError:  # it has ended
            process.wait()
            return None
        return process

    def end(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


class ReserveProvisioner(LocalProvisioner):
    """What ``kernel.json`` names as the way to start a kernel: the one in reserve, or else one from the beginning."""

    async def launch_kernel(self, cmd: list[str], **given: Any) -> KernelConnectionInfo:
        """Have the kernel that the command describes. OSError."""
        reserve: Reserve = self.parent.parent.reserve  # type: ignore[union-attr]  # the ReviewKernels', by their manager
        process = reserve.take(cmd[cmd.index("-f") :], given["env"], given["cwd"])
        if process is None:
            return await super().launch_kernel(cmd, **given)
        self.process = process
        self.pid = self.pgid = process.pid  # it is the first of a session of its own
        self.cwd = given["cwd"]
        return self.connection_info
