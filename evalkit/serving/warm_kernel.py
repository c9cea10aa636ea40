"""Spare kernel: a process with loaded modules that waits for the next page.

With it, a page opens a second sooner. Before the assignment the process knows no reviewer and has opened no file; after
it, the process is the kernel of exactly one page.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import EntryPoint
from subprocess import DEVNULL, PIPE, Popen
from typing import Any

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.launcher import launch_kernel
from jupyter_client.provisioning.factory import KernelProvisionerFactory
from jupyter_client.provisioning.local_provisioner import LocalProvisioner
from typing_extensions import override

from evalkit.serving.kernel import WARM_START_OPTION
from evalkit.serving.page import LOG_FD_VARIABLE

log = logging.getLogger("evalkit.serving")

#: The first option in a kernel's command line, after the words that start the interpreter and module.
_FIRST_KERNEL_OPTION = "-f"
#: Name under which ``kernel.json`` refers to the provisioner.
_PROVISIONER_NAME = "evalkit-reserve"


def register_warm_kernel_provisioner() -> None:
    """Register ``WarmKernelProvisioner`` with Jupyter, for this process only."""
    factory = KernelProvisionerFactory.instance()
    factory.provisioners[_PROVISIONER_NAME] = EntryPoint(
        _PROVISIONER_NAME, f"{__name__}:WarmKernelProvisioner", factory.GROUP_NAME
    )


class WarmKernel:
    """Holder of at most one spare kernel process.

    The process always ends with the server, because it reads from a pipe of the server.
    """

    def __init__(self) -> None:
        self._process: Popen[bytes] | None = None

    def start_unless_running(self, command: Sequence[str], environ: Mapping[str, str]) -> None:
        """Start a spare process for this kernel command, unless one is waiting.

        OSError if the process cannot be started.
        """
        if self._process is not None:
            exit_status = self._process.poll()
            if exit_status is None:
                return
            log.warning("the kernel in reserve ended by itself (%d)", exit_status)
            self.stop()
        arguments = [sys.executable, *command[1 : command.index(_FIRST_KERNEL_OPTION)], WARM_START_OPTION]
        server_log_fd = int(environ[LOG_FD_VARIABLE])
        self._process = launch_kernel(
            arguments, stdin=PIPE, stdout=DEVNULL, stderr=DEVNULL, env=dict(environ), pass_fds=(server_log_fd,)
        )

    def assign_kernel_command(
        self, command: Sequence[str], environ: Mapping[str, str], working_folder: str
    ) -> Popen[bytes] | None:
        """Turn the spare process into the kernel of a page and return the process.

        None if no process waits or the assignment fails; the caller then starts a new process.
        """
        process = self._process
        if process is None or process.stdin is None:
            return None
        assignment = {
            "words": list(command[command.index(_FIRST_KERNEL_OPTION) :]),
            "environ": dict(environ),
            "folder": str(working_folder),
        }
        try:
            with process.stdin as pipe:
                # Do not block: the process may still be loading, and a long assignment may not fit into the pipe.
                os.set_blocking(pipe.fileno(), False)
                pipe.write(json.dumps(assignment).encode())
        except OSError as error:
            log.warning("the kernel in reserve could not be used for a page (%s)", error.strerror)
            self.stop()
            return None
        self._process = None
        return process

    def stop(self) -> None:
        """Kill the spare process, if there is one."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            if self._process.stdin is not None:
                self._process.stdin.close()
            self._process = None


class WarmKernelProvisioner(LocalProvisioner):
    """Kernel provisioner that uses the spare process or starts a new process.

    ``kernel.json`` refers to this provisioner by name.
    """

    @override
    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        warm_kernel: WarmKernel = self.parent.parent.warm_kernel  # type: ignore[union-attr]  # of the ReviewKernelManager
        process = warm_kernel.assign_kernel_command(cmd, kwargs["env"], kwargs["cwd"])
        if process is None:
            return await super().launch_kernel(cmd, **kwargs)
        self.process = process
        self.pid = self.pgid = process.pid  # the process is the leader of its own session and process group
        self.cwd = kwargs["cwd"]
        return self.connection_info
