"""Kernels forked from a process that has already imported the modules of every notebook.

Imports take most of the time of a small notebook. Forking is safe on Linux only. On other systems
each kernel is a new Python process.
"""

import asyncio
import gc
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from multiprocessing import forkserver
from multiprocessing.process import BaseProcess
from typing import Any, cast

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.provisioning.local_provisioner import LocalProvisioner

#: Modules that notebooks import, and modules that these import later, at a first call. `__main__`
#: is the script that runs the batch: multiprocessing would import it in each process.
_PRELOADED = (
    "__main__",
    "ipykernel.kernelapp",
    "ipykernel.zmqshell",
    # a kernel imports the debugger, even if nobody debugs
    "ipykernel.debugger",
    "IPython.core.completerlib",
    "IPython.core.debugger",
    "IPython.core.oinspect",
    "IPython.extensions.storemagic",
    "tornado.platform.asyncio",
    "tornado.queues",
    "matplotlib_inline.backend_inline",
    "repro",
    "repro.batch.numba_loaded",
    "repro.plot",
    "repro.figures.figure",
    "repro.engine.loop",
    "repro.model.typed_shares",
    "repro.placement.network",
    "repro.trace.load",
    "repro.trace.dressing",
    "repro.solve.max_min",
    "joblib",
    "pandas.core.methods.to_dict",
    "pandas.io.formats.csvs",
    "pandas.io.formats.html",
    "pandas.io.formats.string",
    "pandas.io.formats.style",
    "scipy.optimize",
    "scipy.stats",
    "matplotlib.backends.backend_svg",
)
_POLL_S = 0.005
_KILL_TIMEOUT_S = 1.0
_starting = threading.Lock()


def available() -> bool:
    """Whether kernels can be forked: on Linux, from a process that may have children."""
    return sys.platform == "linux" and not multiprocessing.current_process().daemon


class ForkedProvisioner(LocalProvisioner):
    """Provisioner of local kernels that starts a kernel by forking."""

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        """Fork a kernel; its arguments are those of ``cmd`` after the name of the module."""
        environment = kwargs["env"]
        arguments = cmd[cmd.index("ipykernel_launcher") + 1 :]
        _start_server(environment)
        process = multiprocessing.get_context("forkserver").Process(
            target=_become_kernel,
            args=(arguments, environment, kwargs["cwd"], kwargs["stdout"].name),
        )
        process.start()
        self.process = cast(Any, _Popen(process))
        # The kernel makes itself the leader of its own process group.
        self.pid = self.pgid = process.pid
        self.cwd = kwargs["cwd"]
        return self.connection_info

    async def kill(self, restart: bool = False) -> None:
        """Kill the kernel, and wait for its end.

        A killed process takes 0.01 s to end. The kernel manager alone would check only after 0.1 s.
        """
        await super().kill(restart)
        gives_up_at = time.monotonic() + _KILL_TIMEOUT_S
        while await self.poll() is None and time.monotonic() < gives_up_at:
            await asyncio.sleep(_POLL_S)


class _Popen:
    """A forked process with the methods of `subprocess.Popen` that provisioners use."""

    stdin = stdout = stderr = None

    def __init__(self, process: BaseProcess) -> None:
        self._process = process
        self.pid = process.pid

    def poll(self) -> int | None:
        """Exit status; None while the process runs."""
        return self._process.exitcode

    def wait(self) -> int | None:
        """Wait for the end of the process; return its exit status."""
        self._process.join()
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        """Send a signal to the process, if it still runs."""
        if self.pid is not None and self.poll() is None:
            os.kill(self.pid, number)


def _start_server(environment: Mapping[str, str]) -> None:
    """Start the process that forks kernels, with their environment variables."""
    with _starting:
        own_environment = os.environ.copy()
        os.environ.update(environment)
        try:
            multiprocessing.get_context("forkserver").set_forkserver_preload(list(_PRELOADED))
            forkserver.ensure_running()
        finally:
            os.environ.clear()
            os.environ.update(own_environment)


def _become_kernel(
    arguments: list[str], environment: Mapping[str, str], folder: str, log: str
) -> None:
    """Run a kernel in this process until it is shut down or the batch ends."""
    # Otherwise each garbage collection searches all imported objects. It writes to them, so that
    # the system copies the memory shared with the other kernels.
    gc.freeze()
    os.setsid()
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    with open(log, "ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=_end_with_batch, daemon=True).start()
    from ipykernel.kernelapp import IPKernelApp

    IPKernelApp.launch_instance(arguments)


def _end_with_batch() -> None:
    """End this process group when the process of the batch ends."""
    batch = multiprocessing.parent_process()
    assert batch is not None
    batch.join()
    os.killpg(os.getpgrp(), signal.SIGKILL)
