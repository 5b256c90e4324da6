"""A job that trains on a device: iterations as a whole and by stage, checkpoints, offloading."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from repro.measure import networks
from repro.measure.inputs import Batch, Inputs
from repro.measure.job_types import JobType

_MB = 1e6
#: Batches in pinned memory that iterations without a loader use in turn.
POOL = 4
_LEARNING_RATE = 1e-4


class Training:
    """Network, optimizer and inputs of a job.

    Parameters
    ----------
    job : JobType
        Job type.
    batch_size : int
        Samples of an iteration.
    input_size : int
        Side of the images, or tokens of a sequence.
    precision : str
        One of `repro.measure.job_types.PRECISIONS`.
    optimizer : str
        One of `repro.measure.job_types.OPTIMIZERS`.
    folder : Path
        Folder of the input files.
    device : str
        ``cuda`` or ``cpu``.
    """

    def __init__(
        self,
        job: JobType,
        batch_size: int,
        input_size: int,
        precision: str,
        optimizer: str,
        folder: Path,
        device: str,
    ) -> None:
        torch.manual_seed(0)
        is_tf32 = precision == "tf32"
        torch.backends.cuda.matmul.allow_tf32 = is_tf32
        torch.backends.cudnn.allow_tf32 = is_tf32
        if device == "cpu":
            # several jobs share the cores
            torch.set_num_threads(1)
        self.job = job
        self.device = torch.device(device)
        self._bf16 = precision == "bf16"
        self.network = networks.build(job.name, self.device)
        parameters = list(self.network.parameters())
        self.optimizer: torch.optim.Optimizer
        if optimizer == "adam":
            self.optimizer = torch.optim.Adam(parameters, _LEARNING_RATE)
        else:
            momentum = 0.9 if optimizer == "momentum" else 0.0
            self.optimizer = torch.optim.SGD(parameters, _LEARNING_RATE, momentum)
        self.inputs = Inputs(job, batch_size, input_size, folder)
        self._pool: list[Batch] = []

    @property
    def params_m(self) -> float:
        """Parameters (million)."""
        return networks.parameter_count(self.network) / 1e6

    def fill_pool(self) -> None:
        """Decode the batches of the pool into pinned memory."""
        self._pool = [self.pinned(self.inputs.batch()) for _ in range(POOL)]

    def pinned(self, batch: Batch) -> Batch:
        """Batch in pinned memory, from which copies to the GPU are fastest."""
        if self.device.type != "cuda":
            return batch
        return batch[0].pin_memory(), batch[1].pin_memory()

    def synchronize(self) -> None:
        """Wait until the device has done all work."""
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def to_device(self, batch: Batch) -> Batch:
        """Copy of a batch on the device."""
        inputs, targets = (part.to(self.device, non_blocking=True) for part in batch)
        return inputs, targets

    def forward(self, batch: Batch) -> Tensor:
        """Loss of a batch on the device."""
        autocast: AbstractContextManager[Any] = nullcontext()
        if self._bf16:
            autocast = torch.autocast(self.device.type, torch.bfloat16)
        with autocast:
            output = self.network(batch[0])
            return networks.loss(self.job.name, output, batch[1])

    def update(self) -> None:
        """Step of the optimizer."""
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def step(self, batch: Batch) -> None:
        """Iteration on a batch in host memory, until the device has done it."""
        self.forward(self.to_device(batch)).backward()
        self.update()
        self.synchronize()

    def pool_batch(self, number: int) -> Batch:
        """Batch of the pool."""
        return self._pool[number % POOL]

    def iterate(self, number: int) -> None:
        """Iteration on a batch of the pool."""
        self.step(self.pool_batch(number))

    def gradients(self) -> Tensor:
        """All gradients in one tensor of the host, float32."""
        parts = [
            torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            for parameter in self.network.parameters()
        ]
        return torch.cat([part.detach().reshape(-1).float() for part in parts]).cpu()

    def values(self) -> Tensor:
        """All parameters in one tensor of the host, float32."""
        parameters = self.network.parameters()
        return torch.cat([part.detach().reshape(-1).float() for part in parameters]).cpu()

    def set_values(self, values: Tensor) -> None:
        """Copy parameters from one tensor of the host to the device."""
        flat = values.to(self.device)
        begin = 0
        with torch.no_grad():
            for parameter in self.network.parameters():
                end = begin + parameter.numel()
                parameter.copy_(flat[begin:end].view_as(parameter))
                begin = end
        self.synchronize()

    def state(self, device: torch.device | str) -> dict[str, Any]:
        """State of network and optimizer on a device; a copy, unless it is there already."""
        copied: dict[str, Any] = _moved(
            {"network": self.network.state_dict(), "optimizer": self.optimizer.state_dict()},
            torch.device(device),
        )
        self.synchronize()
        return copied

    def save(self, path: Path) -> dict[str, float]:
        """Write a checkpoint; seconds of the copy to the host, the write and the flush."""
        seconds: dict[str, float] = {}
        state = timed(seconds, "save_d2h_s", lambda: self.state("cpu"))
        with path.open("wb") as file:
            timed(seconds, "save_write_s", lambda: torch.save(state, file))
            file.flush()
            timed(seconds, "save_fsync_s", lambda: os.fsync(file.fileno()))
        seconds["checkpoint_mb"] = path.stat().st_size / _MB
        return seconds

    def restore(self, path: Path) -> dict[str, float]:
        """Read a checkpoint; seconds of the read and of the copy to the device."""
        seconds: dict[str, float] = {}
        state = timed(seconds, "resume_read_s", lambda: torch.load(path, map_location="cpu"))
        timed(seconds, "resume_restore_s", lambda: self._load(state))
        return seconds

    def offload(self) -> dict[str, float]:
        """Move the state off the GPU and back; seconds, and GPU memory (MiB) before and after."""
        seconds: dict[str, float] = {"offload_held_mb": self.reserved_mb()}
        state = timed(seconds, "offload_s", lambda: self._move_state_out())
        seconds["offload_left_mb"] = self.reserved_mb()
        timed(seconds, "reload_s", lambda: self._move_state_back(state))
        timed(seconds, "offload_after_s", lambda: self.iterate(0))
        return seconds

    def reserved_mb(self) -> float:
        """GPU memory that the allocator holds (MiB)."""
        return torch.cuda.memory_reserved() / 2**20 if self.device.type == "cuda" else 0.0

    def _move_state_out(self) -> dict[str, Any]:
        """Move network and optimizer to the host and free the GPU memory."""
        optimizer: dict[str, Any] = _moved(self.optimizer.state_dict(), torch.device("cpu"))
        self.network.cpu()
        self.optimizer.state.clear()
        self._free()
        return optimizer

    def _move_state_back(self, optimizer: dict[str, Any]) -> None:
        """Move network and optimizer to the device."""
        self.network.to(self.device)
        self.optimizer.load_state_dict(optimizer)
        self.synchronize()

    def _free(self) -> None:
        """Give unused GPU memory back."""
        if self.device.type == "cuda":
            torch.cuda.synchronize()
            torch.cuda.empty_cache()

    def _load(self, state: dict[str, Any]) -> None:
        """Copy a state into network and optimizer."""
        self.network.load_state_dict(state["network"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.synchronize()


def timed(seconds: dict[str, float], name: str, work: Callable[[], Any]) -> Any:
    """Result of a piece of work, whose time (s) is stored under ``name``."""
    begin = time.perf_counter()
    result = work()
    seconds[name] = time.perf_counter() - begin
    return result


def _moved(state: Any, device: torch.device) -> Any:
    """Nested state with its tensors on a device."""
    if isinstance(state, Tensor):
        return state.detach().to(device)
    if isinstance(state, dict):
        return {key: _moved(value, device) for key, value in state.items()}
    if isinstance(state, list):
        return [_moved(value, device) for value in state]
    return state
