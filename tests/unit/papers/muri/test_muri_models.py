"""Muri's tables: shares and bottlenecks at 16 GPUs, throughput of the four-job group."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from repro.papers.muri import models as models
from repro.perf.muri_models import muri_profiles

FOUR = ["shufflenet_v2_x1_0", "a2c", "gpt2", "vgg16"]


@pytest.mark.parametrize(
    ("model", "shares"),
    [
        ("shufflenet_v2_x1_0", [77, 6, 2, 85]),
        ("a2c", [91, 2, 0, 93]),
        ("gpt2", [0, 85, 28, 113]),
        ("vgg16", [25, 20, 33, 79]),
        ("vgg19", [34, 26, 41, 100]),
        ("bert", [0, 68, 35, 103]),
        ("dqn", [83, 2, 0, 85]),
        ("resnet18", [70, 10, 9, 89]),
    ],
)
def test_shares_at_16_gpus(model: str, shares: list[int]) -> None:
    row = models.stage_times(16).loc[model]
    times = row[["data", "GPU", "network"]].astype(float)
    percent = 100 * times / row["iteration_time"]
    assert [*map(round, percent), round(percent.sum())] == shares
    assert times.idxmax() == row["labelled"]


def test_vgg_is_bound_by_its_data_on_one_machine() -> None:
    row = models.stage_times(8).loc["vgg16"]
    assert row["labelled"] == "network" and row["data"] > row["network"]
    profiles = muri_profiles().query("num_gpus == 8").set_index("model")
    times = models.with_bottleneck_times(profiles)
    margin = times["bottleneck_s"] / times["other_s"]
    assert margin["vgg16"] == pytest.approx(66 / 82)
    assert (margin.drop(["vgg16", "vgg19"]) > 1).all()


def test_four_models_together_do_the_work_of_two() -> None:
    table = models.group_periods(FOUR, 16)
    best, worst = (table[table["ordering"] == which] for which in ("best", "worst"))
    np.testing.assert_allclose(best["period"], 0.9010, atol=5e-5)
    np.testing.assert_allclose(worst["period"], 1.3010, atol=5e-5)
    np.testing.assert_allclose(best["iteration_time"], [1.006, 0.567, 0.491, 0.332])
    alone = 1.015 * best["iteration_time"]
    together = 1.37 / 1.015 * best["period"]
    np.testing.assert_allclose(alone / together, [0.84, 0.47, 0.41, 0.28], atol=0.005)
    assert (alone / together).sum() == pytest.approx(2.0, abs=0.005)


def test_jobs_off_the_profile_are_counted() -> None:
    profiles = muri_profiles().rename(columns={"stage_data": "stage_storage"})
    assert models.jobs_off_profile(profiles) == 0
    changed = profiles.copy()
    changed.loc[3, "stage_gpu"] = 99.0
    changed.loc[7, "iteration_time"] = 99.0
    changed.loc[9, "model"] = "alexnet"
    assert models.jobs_off_profile(changed) == 3
    assert models.jobs_off_profile(pd.concat([changed, changed])) == 6
