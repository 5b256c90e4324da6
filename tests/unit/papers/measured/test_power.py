"""Power of a GPU by its jobs, and energy of runs, by hand."""

from __future__ import annotations

import pandas as pd
import pytest

from repro.base import paths
from repro.figures.sweep import Case
from repro.papers.liquid import measured
from repro.papers.measured import power

POWER = power.Power(10.0, {"a": 20.0, "b": 40.0}, {("a", "b"): 50.0})


def read(name):
    path = paths.traces_dir() / "measured" / f"{name}.csv"
    return measured.rows(name, path, power.COLUMNS.get(name, ()))


def intervals(*rows):
    return pd.DataFrame(rows, columns=["job_id", "group", "start", "end"])


def test_the_order_of_a_pair_plays_no_role_and_unmeasured_pairs_take_turns():
    assert POWER.of(["b", "a"]) == POWER.of(["a", "b"]) == 50.0
    assert POWER.of(["b", "b"]) == 40.0


def test_a_pair_is_the_members_of_a_group_at_the_same_time():
    # one job of the pair goes on alone after the other has ended
    held = intervals((1, 1, 0.0, 10.0), (2, 1, 0.0, 4.0))
    assert power.busy_energy(held, {1: "a", 2: "b"}, POWER) == (4 * 50.0 + 6 * 20.0, 10.0)


def test_groups_are_gpus_of_their_own_and_gaps_are_not_busy():
    held = intervals((1, 1, 0.0, 2.0), (1, 1, 5.0, 6.0), (2, 2, 0.0, 2.0))
    assert power.busy_energy(held, {1: "a", 2: "b"}, POWER) == (3 * 20.0 + 2 * 40.0, 5.0)


def test_power_of_a_mode_has_its_pairs_in_alphabetical_order():
    isolated = pd.DataFrame({"job": ["a", "a", "b"], "power_w": [10.0, 30.0, 40.0]})
    colocated = pd.DataFrame(
        {
            "mode": ["mps", "timeslice"],
            "job_a": ["b", "a"],
            "job_b": ["a", "b"],
            "power_w": [55.0, 45.0],
        }
    )
    found = power.measured_power(isolated, colocated, "mps", 5.0)
    assert found == power.Power(5.0, {"a": 20.0, "b": 40.0}, {("a", "b"): 55.0})


def test_a_pair_without_gain_needs_the_energy_of_its_jobs_in_turn():
    alone = pd.DataFrame({"job": ["a", "b"], "power_w": [100.0, 300.0]})
    pair = {"mode": "mps", "job_a": "a", "job_b": "b", "norm_a": 0.5, "norm_b": 0.5}
    table = power.pair_energy(alone, pd.DataFrame([{**pair, "power_w": 200.0}]), 75.0)
    assert table["energy"].tolist() == [1.0]
    # without a gain nothing of the base power is saved
    assert table["predicted_w"].tolist() == [200.0]


def test_the_measured_pairs_save_energy():
    pairs = power.pair_energy(read("isolated"), read("colocated"), base_w=120.0)
    assert len(pairs) == 238
    assert pairs["energy"].mean() == pytest.approx(0.855, abs=0.001)


def test_energy_of_runs_in_a_row_is_that_of_the_counter():
    runs = power.sequence_energy(read("sequence"), read("sequence_gpu"))
    assert len(runs) == 8
    event = runs.query("model == 'cnn_mnist' and scenario == 'event'").iloc[0]
    # mean power of the samples times the makespan
    assert event["energy_kj"] == pytest.approx(4.52, abs=0.01)
    assert runs["idle_w"].between(74, 78).all()
    assert runs["base_w"].between(120, 124).all()


def test_a_run_pays_each_second_of_its_jobs():
    trace = pd.DataFrame(
        {"job_id": [7, 8], "submit_time": 0.0, "duration": [2.0, 3.0], "num_gpus": 1}
    ).assign(model=["a", "b"])
    run = power.RunEnergy(POWER)(Case(trace, "1x1", "yarn-cs"))
    assert run == {
        "avg_jct": 3.5,
        "makespan": 5.0,
        "n_jobs": 2,
        "n_finished": 2,
        "busy_j": 2 * 20.0 + 3 * 40.0,
        "busy_s": 5.0,
    }


def test_a_pair_measured_twice_has_the_mean_power_in_any_order():
    isolated = pd.DataFrame({"job": ["a", "b"], "power_w": [10.0, 40.0]})
    pairs = {"mode": "mps", "job_a": ["b", "a"], "job_b": ["a", "b"], "power_w": [55.0, 45.0]}
    for table in (pd.DataFrame(pairs), pd.DataFrame(pairs)[::-1]):
        assert power.measured_power(isolated, table, "mps", 5.0).pairs == {("a", "b"): 50.0}
