"""The control daemon of CUDA's Multi-Process Service, for the time of a measurement."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

_CONTROL = "nvidia-cuda-mps-control"
#: Variable -> folder below the temporary folder of the daemon.
_FOLDERS = {"CUDA_MPS_PIPE_DIRECTORY": "pipe", "CUDA_MPS_LOG_DIRECTORY": "log"}
_WAIT_S = 30


@contextmanager
def control_daemon() -> Iterator[str]:
    """Run the daemon; yields the reason why it does not run, empty if it does.

    Processes that start in the ``with`` block share the GPU under MPS. The daemon has folders of
    its own, so a daemon of another user is not touched.
    """
    if shutil.which(_CONTROL) is None:
        yield f"{_CONTROL} is not installed"
        return
    folder = tempfile.mkdtemp(prefix="repro-mps-")
    earlier = {name: os.environ.get(name) for name in _FOLDERS}
    try:
        for name, part in _FOLDERS.items():
            os.environ[name] = os.path.join(folder, part)
            os.mkdir(os.environ[name])
        yield from _running()
    finally:
        for name, value in earlier.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        shutil.rmtree(folder, ignore_errors=True)


def _running() -> Iterator[str]:
    """Start the daemon, yield once, and end it."""
    try:
        done = subprocess.run([_CONTROL, "-d"], capture_output=True, text=True, timeout=_WAIT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        yield f"{_CONTROL} does not start ({error})"
        return
    if done.returncode != 0:
        yield f"{_CONTROL} does not start ({' '.join(done.stderr.split()) or done.returncode})"
        return
    try:
        yield ""
    finally:
        subprocess.run([_CONTROL], input="quit\n", text=True, capture_output=True, timeout=_WAIT_S)
