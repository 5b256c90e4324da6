"""Job selection, ratios, sweeps and the facts of the production trace on cases solved by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from repro import simulate
from repro.base.errors import ParamError
from repro.papers.tiresias import production
from repro.placement.tiresias_models import tiresias_models
from repro.trace.load import load


@pytest.fixture
def trace() -> pd.DataFrame:
    """One long narrow job, then a short wide one that waits behind it under FIFO."""
    return pd.DataFrame(
        {
            "job_id": [0, 1],
            "submit_time": [0.0, 10.0],
            "duration": [1000.0, 100.0],
            "num_gpus": [4, 8],
        }
    )


@pytest.fixture
def results(trace):
    return {("paper", name): simulate(trace, "2x4", name) for name in ("yarn-cs", "srtf")}


def test_window_starts_at_zero_and_takes_its_first_day_only():
    days = pd.DataFrame({"submit_time": [0.0, 86_400.0, 90_000.0, 172_800.0], "duration": 60.0})
    days["job_id"] = range(4)
    days["num_gpus"] = 1
    kept = production.pick_jobs(days, min_duration_s=60, days=[1, 2])
    assert kept["job_id"].tolist() == [1, 2]
    assert kept["submit_time"].tolist() == [0.0, 3600.0]
    assert kept.index.tolist() == [0, 1]


def test_short_jobs_are_left_out(trace):
    assert production.pick_jobs(trace, min_duration_s=101)["job_id"].tolist() == [0]


def test_nothing_left_is_an_error(trace):
    with pytest.raises(ParamError, match=r"no job of at least 60 s on days .* 2 jobs"):
        production.pick_jobs(trace, min_duration_s=60, days=[5, 6])


def test_a_users_trace_is_taken_whole(trace):
    trace.attrs |= {"name": "own.csv", "sha256": "0" * 64}
    kept = production.pick_jobs(trace, min_duration_s=500, days=[5, 6])
    assert kept["job_id"].tolist() == [0, 1]


def test_picking_keeps_the_name_of_the_trace(trace):
    trace.attrs["name"] = "philly"
    assert production.pick_jobs(trace, min_duration_s=1).attrs["name"] == "philly"


def test_files_of_virtual_clusters_are_put_on_one_clock(trace):
    first = trace.assign(submit_time=[0.0, 900_000.0])
    second = trace.assign(submit_time=[0.0, 10.0], service=1.0)
    for frame in (first, second):
        frame.attrs["synthetic"] = False
    # the file of 11cb48 starts 865,212 s after that of 6214e9
    jobs = production.on_one_clock({"6214e9": first, "11cb48": second})
    assert jobs["submit_time"].tolist() == [0.0, 865_212.0, 865_222.0, 900_000.0]
    assert jobs["vc"].tolist() == ["6214e9", "11cb48", "11cb48", "6214e9"]
    assert jobs["job_id"].tolist() == [0, 1, 2, 3]
    assert jobs["duration"].tolist() == [1000.0, 1000.0, 100.0, 100.0]
    assert jobs.attrs == {"name": "philly-vcs", "synthetic": False}


def test_one_missing_file_makes_the_whole_trace_a_stand_in(trace):
    class Figure:
        """The part of a figure that opens traces."""

        def trace(self, name, jobs=None):
            opened.append((name, jobs))
            frame = trace.copy()
            frame.attrs = {"name": name, "synthetic": name in missing}
            return frame

    opened: list[tuple[str, int | None]] = []
    missing = {"pcs-51b7ef", "philly-like"}
    assert production.open_trace(Figure(), "philly-vcs").attrs["name"] == "philly-like"
    assert len(opened) == 13
    missing.clear()
    assert production.open_trace(Figure(), "philly-vcs").attrs["name"] == "philly-vcs"
    assert production.open_trace(Figure(), "philly").attrs["name"] == "philly"


@pytest.mark.parametrize(
    ("values", "least", "expected"),
    [
        ([3, 2], 1, True),
        ([3, 2], 2, False),
        ([2, 3], 1, False),
        ([2, np.nan], 1, False),
    ],
)
def test_falls_is_strict(values, least, expected):
    assert production.falls(values, least) is expected


def test_sweeps_mark_their_base(results):
    sweep = {
        "panel": "a",
        "base": "srtf",
        "variants": [{"label": "srtf", "published": 1.0}, {"label": "yarn-cs"}],
    }
    runs = {name: result for (_, name), result in results.items()}
    table = production.sweep_table({**sweep, "statistic": "average"}, runs)
    longest = production.sweep_table({**sweep, "statistic": "max"}, runs)
    # FIFO: 1000 and 1090 s; SRTF: 1100 and 100 s
    assert table.set_index("variant")["jct"].to_dict() == {"yarn-cs": 1045.0, "srtf": 600.0}
    assert longest.set_index("variant")["jct"].to_dict() == {"yarn-cs": 1090.0, "srtf": 1100.0}
    assert table.loc[table["is_base"], "variant"].tolist() == ["srtf"]
    assert table.set_index("variant")["published"].isna().to_dict() == {
        "yarn-cs": True,
        "srtf": False,
    }


def test_unknown_statistic_is_an_error(results):
    sweep = {"panel": "a", "statistic": "p99", "base": "b", "variants": [{"label": "b"}]}
    with pytest.raises(ParamError, match="accepted: average, median, 95th, max"):
        production.sweep_table(sweep, {"b": results["paper", "srtf"]})


def test_iteration_times_are_those_of_the_published_sample(mirror):
    sample = load(mirror / "SymbioticLab+Tiresias" / "simulator" / "60_job.csv", "tiresias")
    ours = production.with_iteration_time(sample)
    seconds = sample["duration"] / sample["iterations"]
    # durations are whole seconds of at least 121 s, the table has three decimals
    assert (ours["iteration_s"] - seconds).abs().max() < 0.005
    assert ours["iteration_s"].notna().all()


def test_every_model_has_an_iteration_time_on_every_number_of_gpus():
    grid = pd.MultiIndex.from_product([tiresias_models().index, [1, 2, 4, 8]]).to_frame(index=False)
    jobs = grid.set_axis(["model", "num_gpus"], axis=1)
    assert len(jobs) == 40 and production.with_iteration_time(jobs)["iteration_s"].notna().all()
