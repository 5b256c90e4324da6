"""What a worker measures in an iteration, on a stand-in for a GPU."""

from __future__ import annotations

import types

import pytest

BATCH_S = 8.0
UPDATE_S = 2.0
EXCHANGE_S = 1.0


class Gpu:
    """Training on a device that works while the host goes on, on a clock without other time.

    The host waits for the device in `gradients`, which copies them, and in `synchronize`.
    """

    def __init__(self):
        self.now = 0.0
        self.queued_s = 0.0

    def to_device(self, batch):
        return batch

    def forward(self, batch):
        return self

    def backward(self):
        self.queued_s += BATCH_S

    def update(self):
        self.queued_s += UPDATE_S

    def gradients(self):
        self.synchronize()
        return self

    def numpy(self):
        return self

    def set_values(self, values):
        self.synchronize()

    def synchronize(self):
        self.now += self.queued_s
        self.queued_s = 0.0


class Server:
    """Parameter server that answers after a second."""

    values = None

    def __init__(self, gpu):
        self._gpu = gpu

    def exchange(self, gradients):
        self._gpu.now += EXCHANGE_S


@pytest.mark.parametrize(("with_server", "sync_s"), [(False, 0.0), (True, EXCHANGE_S)])
def test_forward_and_backward_are_computation(without_pytorch, monkeypatch, with_server, sync_s):
    module = without_pytorch("worker_requests")
    gpu = Gpu()
    monkeypatch.setattr(module, "time", types.SimpleNamespace(perf_counter=lambda: gpu.now))
    requests = object.__new__(module.Requests)
    requests._training = gpu
    requests._server = Server(gpu)
    measured = requests._iteration(None, with_server=with_server)
    assert measured == (BATCH_S + UPDATE_S, sync_s)
