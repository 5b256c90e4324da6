"""Iterations stage by stage: storage, CPU, GPU, network, each under the lock of its resource."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from repro.measure.parameter_server import ParameterServer
from repro.measure.parts import PARTS
from repro.measure.training import Training

Locks = Mapping[str, AbstractContextManager[Any]]


class StagedTraining:
    """Iterations of a job that exchanges gradients and parameters with a parameter server.

    Parameters
    ----------
    training : Training
        The job.
    server : ParameterServer
        Server with its parameters.
    """

    def __init__(self, training: Training, server: ParameterServer) -> None:
        self._training = training
        self._server = server

    def iterate(self, locks: Locks | None = None) -> dict[str, float]:
        """Seconds of each part of one iteration, and ``wait``, those spent on waiting for locks."""
        seconds = dict.fromkeys((*PARTS, "wait"), 0.0)
        training = self._training
        with self._held("storage", locks, seconds):
            raw = self._timed(seconds, "storage", training.inputs.read)
        with self._held("cpu", locks, seconds):
            batch = self._timed(
                seconds, "cpu", lambda: training.pinned(training.inputs.decode(raw))
            )
        with self._held("gpu", locks, seconds):
            on_device = self._timed(seconds, "h2d", lambda: training.to_device(batch))
            loss = self._timed(seconds, "forward", lambda: training.forward(on_device))
            self._timed(seconds, "backward", loss.backward)
            self._timed(seconds, "update", training.optimizer.step)
        with self._held("network", locks, seconds):
            gradients = self._timed(seconds, "d2h", training.gradients)
            training.optimizer.zero_grad(set_to_none=True)
            self._timed(seconds, "push_pull", lambda: self._server.exchange(gradients.numpy()))
            values = torch.from_numpy(self._server.values)
            self._timed(seconds, "h2d_params", lambda: training.set_values(values))
        return seconds

    def _held(
        self, stage: str, locks: Locks | None, seconds: dict[str, float]
    ) -> AbstractContextManager[Any]:
        """Context that holds the lock of a stage and counts the wait for it.

        Without locks, it holds nothing.
        """
        if locks is None:
            return nullcontext()
        return _Waited(locks[stage], seconds)

    def _timed(self, seconds: dict[str, float], part: str, work: Callable[[], Any]) -> Any:
        """Result of a part, whose time includes the work of the GPU."""
        begin = time.perf_counter()
        result = work()
        self._training.synchronize()
        seconds[part] += time.perf_counter() - begin
        return result


class _Waited(AbstractContextManager[None]):
    """A lock that counts the seconds until it was acquired."""

    def __init__(self, lock: AbstractContextManager[Any], seconds: dict[str, float]) -> None:
        self._lock = lock
        self._seconds = seconds

    def __enter__(self) -> None:
        begin = time.perf_counter()
        self._lock.__enter__()
        self._seconds["wait"] += time.perf_counter() - begin

    def __exit__(self, *details: Any) -> None:
        self._lock.__exit__(*details)
