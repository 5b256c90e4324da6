"""After the last arrival X is computed at once on an idle cluster (rules gavel)."""

from __future__ import annotations

import pandas as pd
import pytest

from repro import simulate
from repro.perf.throughput import ThroughputTable

#: One V100, steps of 1 s. Ends after the first submission (s), as the simulation loop of Gavel's
#: public simulator at c4fa400 gives them for a trace read from a file that starts at 0.
CASES = [
    ([(0, 100), (50, 100)], [100, 200]),
    ([(0, 100), (500, 100)], [100, 600]),
    ([(0, 200), (50, 100), (300, 100)], [200, 300, 400]),
]


def trace(rows, start=0.0):
    submit, steps = zip(*rows, strict=True)
    return pd.DataFrame(
        {
            "job_id": range(len(rows)),
            "submit_time": [start + float(s) for s in submit],
            "duration": [float(s) for s in steps],
            "num_gpus": 1,
            "model": "m",
            "iterations": steps,
        }
    )


def ends(jobs, **options):
    perf = ThroughputTable({("m", 1): {"v100": 1.0}}, "v100")
    run = simulate(jobs, "1xv100", "isolated", rules="gavel", perf=perf, **options)
    return (run.jobs["end_time"] - jobs["submit_time"].min()).tolist()


@pytest.mark.parametrize(("rows", "expected"), CASES)
@pytest.mark.parametrize("start", [0.0, 10.0])
def test_ends_of_the_public_simulator(rows, expected, start):
    assert ends(trace(rows, start)) == pytest.approx(expected, abs=1e-6)


def test_generated_runs_wait():
    jobs = trace(CASES[1][0])
    assert ends(jobs, rounds={"idle_reset": False})[1] > 2000
    jobs.attrs["synthetic"] = True
    assert ends(jobs)[1] > 2000
