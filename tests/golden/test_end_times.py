"""No change of names, layout or speed moves a committed point or the end of a job."""

from __future__ import annotations

import warnings

import end_times
import pandas as pd
import pytest

from repro.base.errors import InputWarning

KEPT = pd.read_csv(end_times.TABLE, dtype=str).set_index("run")


@pytest.mark.parametrize("run", end_times.RUNS, ids=end_times.name_of)
def test_jobs_end_when_they_did(run):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        found = end_times.summary(run)
    assert found == {"run": found["run"], **KEPT.loc[found["run"]]}


def test_every_run_is_kept_once():
    assert KEPT.index.tolist() == [end_times.name_of(run) for run in end_times.RUNS]


def test_points_of_committed_figures_are_those_kept():
    kept = pd.read_csv(end_times.POINTS).set_index("file")["sha256"]
    found = end_times.points().set_index("file")["sha256"]
    moved = [name for name in kept.index.union(found.index) if kept.get(name) != found.get(name)]
    assert moved == []
