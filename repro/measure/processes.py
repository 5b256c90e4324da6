"""Processes of a measurement: each ends with the measurement, whatever happens."""

from __future__ import annotations

from multiprocessing.process import BaseProcess

#: Seconds for a process to end by itself; a busy machine needs many for the exit of PyTorch.
_EXIT_S = 20.0


def end_process(process: BaseProcess, wait_s: float = _EXIT_S) -> None:
    """Wait for the end of a process; end it if it goes on."""
    process.join(wait_s)
    if process.is_alive():
        process.terminate()
        process.join(wait_s)
    if process.is_alive():
        process.kill()
        process.join()
