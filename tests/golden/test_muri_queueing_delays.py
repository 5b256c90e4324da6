"""The testbed's scheduler of Muri against the testbed's job log under SRTF."""

from __future__ import annotations

import pytest

from repro.engine.simulate import simulate
from repro.papers.muri import job_log
from repro.papers.muri.trace import run_metrics
from repro.trace.load import load

TRACE = "Rivendile+Muri/cluster_exp/trace-data/cluster_trace.csv"


@pytest.fixture(scope="module")
def srtf(mirror):
    """Log, and the simulation with the parameters that are fitted to it."""
    log = job_log.job_log()
    settings = job_log.fit(log, warm_up=5).settings(interval=360.0, warm_up=5)
    return log, simulate(load(mirror / TRACE, "muri"), "8x8", "srtf", rules="muri", **settings)


def test_jobs_wait_for_the_same_rounds_as_on_the_testbed(srtf):
    """Queueing delays are equal to the second until paces have made the schedules differ."""
    log, result = srtf
    submit = result.jobs.set_index("job_id")["submit_time"]
    spans = result.intervals
    held = (spans["end"] - spans["start"]).groupby(spans["job_id"]).sum()
    ends = result.jobs.set_index("job_id")["end_time"]
    first = log.head(20)
    measured = (first["end_s"] - first["executed_s"]).to_numpy() - submit[first["job_id"]]
    simulated = (ends - held)[first["job_id"]] - submit[first["job_id"]]
    assert simulated.to_numpy() == pytest.approx(measured.to_numpy(), abs=0.1)


def test_the_fitted_run_is_near_the_testbed(srtf):
    """Average JCT, makespan and p99 of Table 4 (s)."""
    metrics = run_metrics(srtf[1])
    assert metrics["avg_jct"] == pytest.approx(249140.176953, rel=0.01)
    assert metrics["makespan"] == pytest.approx(4156633.26289, rel=0.01)
    assert metrics["p99_jct"] == pytest.approx(2723588.792933, rel=0.01)
