"""Statistics by run and bin, and training times, on cases solved by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from repro import simulate
from repro.papers.tiresias.prototype import FITTED_ON
from repro.papers.tiresias.testbed import (
    count_bins,
    job_table,
    over_seeds,
    percentile_table,
    points,
    run_table,
    statistics_table,
    training_time,
)
from repro.perf.overhead import CheckpointOverhead
from repro.placement.tiresias_models import SpreadSlowdown


@pytest.fixture
def trace() -> pd.DataFrame:
    """One long narrow job, then a short wide one that waits behind it under FIFO."""
    return pd.DataFrame(
        {
            "job_id": [0, 1],
            "submit_time": [0.0, 10.0],
            "duration": [1000.0, 100.0],
            "num_gpus": [4, 8],
            "model": ["ResNet50", "VGG16"],
        }
    )


@pytest.fixture
def results(trace):
    return {
        ("paper", name, seed): simulate(trace, "2x4", name)
        for name in ("yarn-cs", "srtf")
        for seed in (0, 1)
    }


def test_bins_go_by_gpus_and_length(results):
    jobs = job_table(results, small_gpus=4, short_s=800)
    assert jobs.groupby("policy")["bin"].apply(list).to_dict() == {
        "yarn-cs": ["Bin2", "Bin3"] * 2,
        "srtf": ["Bin2", "Bin3"] * 2,
    }


def test_statistics_by_bin_and_all_bins_together(results):
    jobs = job_table(results)
    table = statistics_table(jobs, "jct", by=["policy", "bin"])
    yarn = table[(table["policy"] == "yarn-cs") & (table["statistic"] == "average")]
    # FIFO: 1000 and 1090 s; SRTF: 1100 and 100 s
    assert yarn.set_index("bin")["jct"].to_dict() == {"Bin2": 1000.0, "Bin3": 1090.0}
    by_run = statistics_table(jobs, "jct")
    srtf = by_run[(by_run["policy"] == "srtf") & (by_run["seed"] == 1)]
    assert srtf["statistic"].tolist() == ["average", "median", "95th"]
    assert srtf["jct"].tolist() == pytest.approx([600.0, 600.0, 1050.0])


def test_means_over_seeds_keep_the_rows_apart():
    rows = pd.DataFrame(
        {"policy": ["a", "b", "a", "b"], "seed": [0, 0, 1, 1], "avg": [1.0, 5.0, 3.0, 5.0]}
    )
    table = over_seeds(rows)
    assert table["avg"].tolist() == [2.0, 5.0]
    assert table["avg_sd"].tolist() == pytest.approx([np.sqrt(2), 0.0])


def test_means_over_seeds_keep_rows_without_a_text():
    rows = pd.DataFrame(
        {
            "policy": ["a", "b", "a", "b"],
            "certainty": [None, "text", None, "text"],
            "seed": [0, 0, 1, 1],
            "avg": [1.0, 5.0, 3.0, 5.0],
        }
    )
    assert over_seeds(rows)["avg"].tolist() == [2.0, 5.0]
    nowhere = over_seeds(rows.assign(certainty=None))
    assert nowhere["avg"].tolist() == [2.0, 5.0]
    assert nowhere["certainty"].isna().all()


def test_percentiles_of_pooled_jobs(results):
    table = percentile_table(job_table(results), "jct", [0, 50, 100])
    assert table[table["policy"] == "srtf"]["jct"].tolist() == [100.0, 600.0, 1100.0]


def test_run_table_reports_the_cost_of_preemption(trace):
    costs = CheckpointOverhead({"ResNet50": 10.0}, resume=50.0)
    runs = {("paper", "srtf", 0): simulate(trace, "2x4", "srtf", overhead=costs)}
    row = run_table(runs).iloc[0]
    assert (row["preemptions"], row["overhead"], row["makespan"]) == (1, 60.0, 1160.0)


def test_training_time_is_the_time_on_gpus(trace):
    perf = SpreadSlowdown({"VGG16": 0.5}, gpus_per_node=8)
    spread = simulate(trace, "2x4", "srtf", placement="yarn", perf=perf)
    near = simulate(trace, "2x4", "srtf", placement="yarn")
    assert training_time(near).tolist() == [1000.0, 100.0]
    assert training_time(spread).tolist() == [1000.0, 200.0]


def test_bins_of_a_trace(trace):
    table = count_bins({3: trace}, 4, 800)
    assert table.set_index("bin")["jobs"].to_dict() == {"Bin1": 0, "Bin2": 1, "Bin3": 1, "Bin4": 0}


def test_rows_with_a_published_value_are_points_and_those_of_other_rules_stand_aside():
    table = pd.DataFrame(
        {
            "rules": ["tiresias", "paper", "prototype", "tiresias"],
            "policy": ["srtf", "srtf", "srtf", "yarn-cs"],
            "published": [2.0, 2.0, 2.0, np.nan],
            "jct": [1.9, 2.1, 2.2, 5.0],
        }
    )
    rows = points(table, "tiresias", series="policy", ours="jct", unit="s", certainty="paper")
    assert rows.to_dict("list") == {
        "published": [2.0, 2.0, 2.0],
        "certainty": ["paper", "paper", "paper"],
        "series": ["srtf", "srtf", "srtf"],
        "ours": [1.9, 2.1, 2.2],
        "unit": ["s", "s", "s"],
        "rules": ["tiresias", "paper", "prototype"],
        "aside": [False, True, True],
        "fitted_on": [None, None, FITTED_ON],
    }
