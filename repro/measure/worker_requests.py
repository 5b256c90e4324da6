"""Requests that a worker answers: rates, stages, profiles, checkpoints."""

from __future__ import annotations

import statistics
import time
import warnings
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch

from repro.measure import host
from repro.measure.configuration import Configuration
from repro.measure.inputs import Batch
from repro.measure.parameter_server import ParameterServer
from repro.measure.parts import PARTS, stage_seconds
from repro.measure.staged import StagedTraining
from repro.measure.training import Training, timed

_MB = 1e6
#: Iterations under the profiler, which counts kernels.
_PROFILED = 3


class Requests:
    """A launched job; each public method is a request.

    Parameters
    ----------
    configuration : Configuration
        The job.
    checkpoint : Path, optional
        Checkpoint to restore.
    locks : mapping of str to lock, optional
        Lock of each resource.
    stack : ExitStack
        Contexts that end with the worker, such as its parameter server.
    """

    def __init__(
        self,
        configuration: Configuration,
        checkpoint: Path | None,
        locks: Mapping[str, AbstractContextManager[Any]] | None,
        stack: ExitStack,
    ) -> None:
        self._locks = locks
        self._stack = stack
        self._staged: StagedTraining | None = None
        #: seconds of each part of the launch
        self.launch: dict[str, float] = {}
        seconds = self.launch
        device = configuration.device
        timed(seconds, "cuda_init_s", lambda: torch.zeros(1, device=device))
        self._training: Training = timed(
            seconds,
            "build_s",
            lambda: Training(
                configuration.job,
                configuration.batch_size,
                configuration.input_size,
                configuration.precision,
                configuration.optimizer,
                configuration.inputs,
                device,
            ),
        )
        timed(seconds, "pool_s", self._training.fill_pool)
        if checkpoint is not None:
            seconds |= self._training.restore(checkpoint)
        timed(seconds, "first_iter_s", lambda: self._training.iterate(0))

    def facts(self) -> dict[str, float]:
        """Parameters (million), and GPU memory that the allocator holds (MiB)."""
        training = self._training
        return {"params_m": training.params_m, "reserved_mb": training.reserved_mb()}

    def rate(self, seconds: float, start_at: float | None = None) -> dict[str, float]:
        """Iterations in a window of time: n, seconds, iterations/s.

        ``start_at`` is the begin of the window (monotonic clock, s), which jobs that share a GPU
        have in common.
        """
        if start_at is not None:
            time.sleep(max(0.0, start_at - time.monotonic()))
        begin = time.monotonic()
        count = 0
        now = begin
        while now - begin < seconds:
            self._training.iterate(count)
            count += 1
            now = time.monotonic()
        return {"n": count, "seconds": now - begin, "rate": count / (now - begin)}

    def run(self, iterations: int) -> dict[str, float]:
        """Begin and end (monotonic clock, s) of a number of iterations."""
        begin = time.monotonic()
        for number in range(iterations):
            self._training.iterate(number)
        return {"begin": begin, "end": time.monotonic()}

    def save(self, path: Path) -> dict[str, float]:
        """Write a checkpoint; seconds of its parts, and its size (MB)."""
        return self._training.save(path)

    def offload(self) -> dict[str, float]:
        """Move the state out of the GPU and back; seconds, and GPU memory (MiB)."""
        return self._training.offload()

    def stages(self, seconds: float, least: int = 2, most: int = 12) -> dict[str, float]:
        """Mean seconds of each part of an iteration, and ``n``, the number of iterations."""
        staged = self._with_server()
        staged.iterate()
        totals = dict.fromkeys(PARTS, 0.0)
        begin = time.monotonic()
        count = 0
        while count < least or (count < most and time.monotonic() - begin < seconds):
            for part, value in staged.iterate().items():
                if part in totals:
                    totals[part] += value
            count += 1
        return {part: value / count for part, value in totals.items()} | {"n": count}

    def stage_rate(self, seconds: float, start_at: float, locked: bool) -> dict[str, float]:
        """Iterations by stages in a window: n, iterations/s, mean seconds by stage, and wait."""
        staged = self._with_server()
        time.sleep(max(0.0, start_at - time.monotonic()))
        totals = dict.fromkeys((*PARTS, "wait"), 0.0)
        begin = time.monotonic()
        count = 0
        while time.monotonic() - begin < seconds:
            for part, value in staged.iterate(self._locks if locked else None).items():
                totals[part] += value
            count += 1
        elapsed = time.monotonic() - begin
        means = {part: value / count for part, value in totals.items()}
        further = {"wait": means["wait"], "n": count, "rate": count / elapsed}
        return stage_seconds(means) | further

    def connect(self) -> None:
        """Start the parameter server and run an iteration by stages."""
        self._with_server().iterate()

    def profile(
        self, seconds: float, loader_workers: int | None, with_server: bool
    ) -> dict[str, float | None]:
        """Times, memory and traffic of iterations in a window.

        ``loader_workers`` threads read and decode batches ahead; None: batches of the pool.
        """
        if with_server:
            self._with_server()
        with _Loader(self._training, loader_workers) as loader:
            begin = time.monotonic()
            self._iteration(loader.batch(), with_server=with_server)
            warm_s = time.monotonic() - begin
            values = self._window(seconds, loader, with_server=with_server)
            kernels = self._kernels(loader.batch())
        return values | {"warm_s": warm_s} | self._memory() | self._busy(kernels, values["iter_s"])

    def _window(
        self, seconds: float, loader: _Loader, *, with_server: bool
    ) -> dict[str, float | None]:
        """Times and traffic of the iterations of a window."""
        training = self._training
        read_before = training.inputs.bytes_read
        disk_before = host.disk_bytes()
        cpu_before = time.process_time()
        times: list[float] = []
        parts: dict[str, list[float]] = {"data": [], "compute": [], "sync": []}
        moved = 0
        begin = time.monotonic()
        while time.monotonic() - begin < seconds:
            at = time.perf_counter()
            batch = loader.batch()
            data_s = time.perf_counter() - at
            compute_s, sync_s = self._iteration(batch, with_server=with_server)
            times.append(time.perf_counter() - at)
            moved += sum(part.numel() * part.element_size() for part in batch)
            for name, value in zip(parts, (data_s, compute_s, sync_s), strict=True):
                parts[name].append(value)
        window_s = time.monotonic() - begin
        cpu_s = time.process_time() - cpu_before
        disk = host.disk_bytes()
        disk_mb_s = None
        if disk is not None and disk_before is not None:
            disk_mb_s = (disk - disk_before) / _MB / window_s
        count = len(times)
        exchanged_mb = 4 * training.params_m * count if with_server else 0.0
        return {
            "iters": count,
            "window_s": window_s,
            "iter_s": statistics.fmean(times),
            "iter_s_p50": statistics.median(times),
            "iter_s_std": statistics.stdev(times) if count > 1 else 0.0,
            **{f"t_{name}_s": statistics.fmean(values) for name, values in parts.items()},
            "cpu_cores": cpu_s / window_s,
            "file_read_mb_s": (training.inputs.bytes_read - read_before) / _MB / window_s,
            "disk_read_mb_s": disk_mb_s,
            "h2d_mb_s": moved / _MB / window_s,
            "ps_mb_s_each_way": exchanged_mb / window_s,
        }

    def _memory(self) -> dict[str, float | None]:
        """Parameters (million), memory of the host (MB) and of the GPU (MiB)."""
        training = self._training
        values = {
            "params_m": training.params_m,
            "host_rss_mb": host.rss_mb(),
            "host_pss_mb": host.pss_mb(),
        }
        if training.device.type == "cuda":
            values["gpu_mem_alloc_mb"] = torch.cuda.max_memory_allocated() / 2**20
            values["gpu_mem_reserved_mb"] = training.reserved_mb()
        return values

    def _busy(
        self, kernels: tuple[float, float] | None, iter_s: float | None
    ) -> dict[str, float | None]:
        """Kernels of an iteration, their seconds, and their fraction of the iteration."""
        if kernels is None or not iter_s:
            return {}
        count, kernel_s = kernels
        return {
            "kernels_per_iter": count,
            "kernel_s_per_iter": kernel_s,
            "gpu_busy_frac": min(1.0, kernel_s / iter_s),
        }

    def _iteration(self, batch: Batch, *, with_server: bool) -> tuple[float, float]:
        """Seconds of computation and of synchronisation of an iteration."""
        training = self._training
        begin = time.perf_counter()
        training.forward(training.to_device(batch)).backward()
        sync_s = 0.0
        if with_server:
            # Without this wait, the copy of the gradients would wait for forward and backward, and
            # their time would count as synchronisation.
            training.synchronize()
            at = time.perf_counter()
            gradients = training.gradients()
            self._server.exchange(gradients.numpy())
            training.set_values(torch.from_numpy(self._server.values))
            sync_s = time.perf_counter() - at
        training.update()
        training.synchronize()
        return time.perf_counter() - begin - sync_s, sync_s

    def _kernels(self, batch: Batch) -> tuple[float, float] | None:
        """Kernels and copies of an iteration, and their seconds on the GPU; None on the CPU."""
        if self._training.device.type != "cuda":
            return None
        activities = [torch.profiler.ProfilerActivity.CUDA]
        with warnings.catch_warnings():
            # the warning is about several cycles, and this profile has one
            warnings.filterwarnings("ignore", message=".*Profiler clears events")
            with torch.profiler.profile(activities=activities) as profiler:
                for _ in range(_PROFILED):
                    self._training.step(batch)
        events = [
            event
            for event in profiler.events()
            if event.device_type == torch.autograd.DeviceType.CUDA
        ]
        seconds = sum(event.time_range.elapsed_us() for event in events) / 1e6
        return len(events) / _PROFILED, seconds / _PROFILED

    def _with_server(self) -> StagedTraining:
        """Job with its parameter server, which starts at the first call."""
        if self._staged is None:
            values = self._training.values().numpy()
            server = ParameterServer(get_context("spawn"), values)
            self._server = self._stack.enter_context(server)
            self._staged = StagedTraining(self._training, self._server)
        return self._staged


class _Loader:
    """Batches of the pool, or batches that threads read and decode ahead."""

    def __init__(self, training: Training, workers: int | None) -> None:
        self._training = training
        self._workers = workers
        self._number = 0
        self._ahead: deque[Future[Batch]] = deque()
        self._executor = ThreadPoolExecutor(workers) if workers else None

    def __enter__(self) -> _Loader:
        for _ in range(2 * (self._workers or 0)):
            self._submit()
        return self

    def __exit__(self, *_: object) -> None:
        if self._executor is not None:
            self._executor.shutdown(cancel_futures=True)

    def batch(self) -> Batch:
        """Next batch in host memory."""
        training = self._training
        # the frames of an environment follow from the last actions, so no batch comes from a pool
        if self._workers is None and training.job.kind != "env":
            self._number += 1
            return training.pool_batch(self._number)
        if self._executor is None:
            return training.pinned(training.inputs.batch())
        ready = self._ahead.popleft().result()
        self._submit()
        return ready

    def _submit(self) -> None:
        """Let a thread make one more batch."""
        assert self._executor is not None
        training = self._training
        self._ahead.append(self._executor.submit(lambda: training.pinned(training.inputs.batch())))
