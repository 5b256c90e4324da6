"""Factors of improvement, allocated shares and training times on cases solved by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from repro import simulate
from repro.papers.tiresias.testbed import (
    allocated_cdf,
    count_bins,
    factors,
    job_table,
    over_seeds,
    over_tiresias,
    percentile_table,
    placement_ratios,
    points,
    run_table,
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


def test_factors_compare_the_same_seed_and_bin(results):
    table = factors(job_table(results), reference="srtf")
    yarn = table[(table["policy"] == "yarn-cs") & (table["seed"] == 1)].set_index("bin")
    # FIFO: 1000 and 1090 s; SRTF: 1100 and 100 s
    assert yarn["avg"].to_dict() == pytest.approx(
        {"Bin2": 1000 / 1100, "Bin3": 10.9, "ALL": 2090 / 1200}
    )
    assert (table.loc[table["policy"] == "srtf", ["avg", "median", "p95"]] == 1).all(axis=None)


def test_factors_need_the_reference_in_every_seed(results):
    results.pop(("paper", "srtf", 1))
    table = factors(job_table(results), reference="srtf")
    assert table.loc[table["seed"] == 1, "avg"].isna().all()


def test_means_over_seeds_keep_the_rows_apart():
    rows = pd.DataFrame(
        {"policy": ["a", "b", "a", "b"], "seed": [0, 0, 1, 1], "avg": [1.0, 5.0, 3.0, 5.0]}
    )
    table = over_seeds(rows)
    assert table["avg"].tolist() == [2.0, 5.0]
    assert table["avg_sd"].tolist() == pytest.approx([np.sqrt(2), 0.0])


def test_percentiles_of_pooled_jobs(results):
    table = percentile_table(job_table(results), "jct", [0, 50, 100])
    assert table[table["policy"] == "srtf"]["jct"].tolist() == [100.0, 600.0, 1100.0]


def test_makespan_relative_to_the_reference(results):
    ratios = over_tiresias(run_table(results), "makespan", reference="srtf")
    assert ratios["yarn-cs"].tolist() == [1.0, 1.0]


def test_allocated_share_counts_windows(results):
    table = allocated_cdf(results, [0.0, 0.5, 1.0], window_s=10.0)
    fractions = table[table["policy"] == "srtf"].groupby("share")["fraction"].first()
    # 8 of 8 GPUs from 10 to 110 s, half of them in the other 100 windows
    assert fractions.to_dict() == pytest.approx({0.0: 0.0, 0.5: 100 / 110, 1.0: 1.0})
    assert (
        table.groupby(["policy", "seed"])["fraction"]
        .apply(lambda f: f.is_monotonic_increasing)
        .all()
    )


def test_run_table_reports_the_cost_of_preemption(trace):
    costs = CheckpointOverhead({"ResNet50": 10.0}, resume=50.0)
    runs = {("paper", "srtf", 0): simulate(trace, "2x4", "srtf", overhead=costs)}
    row = run_table(runs).iloc[0]
    assert (row["preemptions"], row["overhead"], row["makespan"]) == (1, 60.0, 1160.0)


def test_ratio_of_training_times_is_the_slowdown(trace):
    perf = SpreadSlowdown({"VGG16": 0.5}, gpus_per_node=8)
    spread = {7: simulate(trace, "2x4", "srtf", placement="yarn", perf=perf)}
    near = {7: simulate(trace, "2x4", "srtf", placement="yarn")}
    table = placement_ratios(spread, near, ["VGG16"])
    assert training_time(near[7]).tolist() == [1000.0, 100.0]
    assert table[["seed", "job_id", "group", "ratio"]].to_numpy().tolist() == [
        [7, 0, "other", 1.0],
        [7, 1, "sensitive", 2.0],
    ]


def test_bins_of_a_trace(trace):
    table = count_bins({3: trace}, 4, 800)
    assert table.set_index("bin")["share"].to_dict() == {
        "Bin1": 0.0,
        "Bin2": 50.0,
        "Bin3": 50.0,
        "Bin4": 0.0,
    }


def test_rows_with_a_published_value_are_points_and_those_of_other_rules_stand_aside():
    table = pd.DataFrame(
        {
            "rules": ["tiresias", "paper", "tiresias"],
            "policy": ["srtf", "srtf", "yarn-cs"],
            "published": [2.0, 2.0, np.nan],
            "jct": [1.9, 2.1, 5.0],
        }
    )
    rows = points(table, "tiresias", series="policy", ours="jct", unit="s", certainty="paper")
    assert rows.to_dict("list") == {
        "published": [2.0, 2.0],
        "certainty": ["paper", "paper"],
        "series": ["srtf", "srtf"],
        "ours": [1.9, 2.1],
        "unit": ["s", "s"],
        "rules": ["tiresias", "paper"],
        "aside": [False, True],
    }
