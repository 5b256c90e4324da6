"""Networks with the parameters of the papers, and batches that fit them; needs PyTorch."""

from __future__ import annotations

import csv
import math

import pytest

from repro.base import paths
from repro.measure.job_types import JOB_TYPES

REASON = "PyTorch and Pillow are not installed (extra measure)"
torch = pytest.importorskip("torch", reason=REASON)
pytest.importorskip("PIL", reason=REASON)

from repro.measure import networks  # noqa: E402
from repro.measure.inputs import Inputs  # noqa: E402


def parameters():
    with (paths.traces_dir() / "measured" / "isolated.csv").open() as stream:
        rows = csv.DictReader(line for line in stream if not line.startswith("#"))
        return {row["job"]: float(row["params_m"]) for row in rows}


@pytest.mark.parametrize("job", JOB_TYPES)
def test_a_network_has_the_parameters_of_the_tables_of_the_checkout(job):
    network = networks.build(job, "meta")
    assert networks.parameter_count(network) / 1e6 == pytest.approx(parameters()[job], rel=0.01)


@pytest.mark.parametrize("job", JOB_TYPES.values(), ids=lambda job: job.name)
def test_a_batch_fits_its_network(job, tmp_path):
    inputs = Inputs(job, 2, job.input_size, tmp_path)
    batch, targets = inputs.batch()
    again, _ = Inputs(job, 2, job.input_size, tmp_path).batch()
    assert batch.shape == again.shape
    assert (inputs.bytes_read > 0) == (job.kind != "env")
    with torch.device("meta"):
        network = networks.build(job.name, "meta")
        loss = networks.loss(job.name, network(batch.to("meta")), targets.to("meta"))
    assert loss.shape == ()
    loss.backward()


def test_losses_are_finite_and_fall():
    torch.manual_seed(0)
    for name in ("cnn_mnist", "a2c", "dqn"):
        network = networks.build(name, "cpu")
        shape = (4, 1, 28, 28) if name == "cnn_mnist" else (4, 4, 84, 84)
        batch = torch.rand(shape)
        targets = torch.zeros(4, dtype=torch.long if name == "cnn_mnist" else torch.float)
        optimizer = torch.optim.SGD(network.parameters(), 0.01)
        losses = []
        for _ in range(5):
            optimizer.zero_grad()
            loss = networks.loss(name, network(batch), targets)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert all(map(math.isfinite, losses)), name
        # the advantages of A2C move with its value, so its loss need not fall
        assert name == "a2c" or losses[-1] < losses[0], name
