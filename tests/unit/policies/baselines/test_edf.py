"""Earliest deadline first, by hand; deadlines as gavel-min-cost-slo has them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from repro import simulate
from repro.base.errors import TraceError
from repro.cli import main


def jobs(*rows):
    columns = ["submit_time", "duration", "num_gpus", "slo"]
    trace = pd.DataFrame(rows, columns=columns).astype({"submit_time": float, "duration": float})
    trace.insert(0, "job_id", range(len(trace)))
    return trace


def test_the_earliest_deadline_runs_and_a_job_without_one_is_last():
    # deadlines 50, 10, none, 6: 0 until 2, 1 until 4, 3 until 6, 1 until 8, 0 until 16, then 2
    trace = jobs((0, 10, 1, 5.0), (2, 4, 1, 2.0), (3, 1, 1, np.nan), (4, 2, 1, 1.0))
    result = simulate(trace, "1x1", "edf").jobs
    assert result["end_time"].tolist() == [16.0, 8.0, 17.0, 6.0]
    assert result["preemptions"].tolist() == [1, 1, 0, 0]


def test_jobs_without_a_deadline_go_by_arrival():
    # job 3 has a deadline far away, at 1002, and still runs before jobs 1 and 2
    trace = jobs((0, 5, 1, 1.0), (1, 9, 1, np.nan), (1.5, 1, 1, np.nan), (2, 10, 1, 100.0))
    assert simulate(trace, "1x1", "edf").jobs["end_time"].tolist() == [5.0, 24.0, 25.0, 15.0]


def test_a_job_keeps_its_place_after_its_deadline():
    # job 0 misses its deadline of 4, which is still the earliest
    trace = jobs((0, 8, 2, 0.5), (1, 2, 2, 3.0))
    assert simulate(trace, "1x2", "edf").jobs["end_time"].tolist() == [8.0, 10.0]


@pytest.mark.parametrize("slo", [None, np.nan])
def test_a_trace_without_deadlines_is_refused_in_one_line(slo):
    trace = jobs((0, 8, 2, 0.5)).drop(columns="slo")
    trace = trace if slo is None else trace.assign(slo=slo)
    with pytest.raises(TraceError, match="policy 'edf' needs the column slo, multiples of") as said:
        simulate(trace, "1x2", "edf")
    assert "\n" not in str(said.value)


def test_the_command_line_names_the_column(capsys):
    words = ["simulate", "--trace", "tiresias-60", "--cluster", "8x8", "--policy", "edf"]
    assert main(words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "needs the column slo" in line
