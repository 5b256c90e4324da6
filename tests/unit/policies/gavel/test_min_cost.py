"""Cost policies: ratio and normalised objective, deadlines, prices."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from repro import simulate
from repro.base.errors import ParamError, PolicyError
from repro.model.policy import make
from repro.model.typed_shares import Kinds
from repro.perf.throughput import ThroughputTable
from repro.policies.gavel.min_cost import cost_efficient_shares
from repro.policies.gavel.prices import usd_per_hour
from repro.solve.linear import best_shares

# "cheap" does most steps per USD on K80, "keen" on V100
SPEEDS = {"cheap": {"k80": 3.0, "v100": 4.0}, "keen": {"k80": 1.0, "v100": 12.0}}
TABLE = ThroughputTable.of(SPEEDS, "v100")


def trace(models, slo=np.nan, duration=3600.0):
    count = len(models)
    return pd.DataFrame(
        {
            "job_id": range(count),
            "submit_time": [0.0] * count,
            "duration": [duration] * count,
            "num_gpus": [1] * count,
            "model": models,
            "slo": np.broadcast_to(slo, count),
        }
    )


@pytest.mark.parametrize("seed", range(30))
def test_the_ratio_of_the_closed_form_is_that_of_the_programme(seed):
    rng = np.random.default_rng(seed)
    kinds = int(rng.integers(1, 6))
    speeds = rng.uniform(0.5, 9, (kinds, 3))
    prices = rng.uniform(0.1, 3, 3)
    counts = rng.integers(1, 5, kinds).astype(float)
    widths = rng.choice([1.0, 2.0], kinds)
    capacity = rng.integers(2, 9, 3).astype(float)
    cost = widths[:, None] * prices
    programme = best_shares(speeds, counts, widths, capacity, cost=cost)
    job_kinds = Kinds(speeds, capacity, counts, widths, np.ones(kinds))
    shares = cost_efficient_shares("ratio", job_kinds, prices)
    has_time = programme.any(axis=1)
    assert shares[has_time] == pytest.approx(programme[has_time], abs=1e-5)
    best = (counts @ (speeds * programme).sum(1)) / (counts @ (cost * programme).sum(1))
    assert best == pytest.approx((speeds / cost).max(), rel=1e-6)
    # other kinds get idle GPUs: a kind without time means that no GPU is idle
    idle_gpus = capacity - (counts * widths) @ shares
    assert shares.any(axis=1).all() or (idle_gpus < 1e-3).all()


def test_normalised_objective_divides_by_the_price():
    speeds = np.array([[4.0, 6.0]])
    ones = np.ones(1)
    kinds = Kinds(speeds, np.ones(2), ones, ones, ones)
    shares = cost_efficient_shares("normalised", kinds, np.array([1.0, 2.0]))
    assert shares.round(6).tolist() == [[1.0, 0.0]]


def test_each_model_runs_where_a_dollar_buys_the_most_steps():
    run = simulate(trace(["cheap", "keen"]), "1xk80,1xv100", "gavel-min-cost", perf=TABLE)
    ends = run.jobs.set_index("job_id")["end_time"]
    assert ends.tolist() == pytest.approx([4800.0, 3600.0])


def test_a_kind_with_the_ratio_of_another_gets_the_gpus_that_this_leaves_idle():
    # both kinds do most steps per USD on the one K80; the V100 would be idle
    speeds = {"a": {"k80": 4.0, "v100": 10.0}, "b": {"k80": 4.0, "v100": 10.0}}
    table = ThroughputTable.of(speeds, "v100")
    jobs = simulate(trace(["a", "b"]), "1xk80,1xv100", "gavel-min-cost", perf=table).jobs
    assert jobs.set_index("job_id")["start_time"].tolist() == [0.0, 0.0]


def test_kinds_of_equal_ratio_are_served_in_order_until_no_gpu_is_idle():
    kinds = Kinds(
        np.full((3, 2), 4.0), np.array([2.0, 1.0]), np.array([3.0, 1.0, 1.0]), *np.ones((2, 3))
    )
    shares = cost_efficient_shares("ratio", kinds, np.array([1.0, 2.0]))
    assert shares.tolist() == [[pytest.approx(2 / 3), 0.0], [0.0, 1.0], [0.0, 0.0]]


def test_a_deadline_moves_the_job_to_the_faster_gpu():
    job = trace(["cheap"], slo=1.2)
    without_slo = simulate(job, "1xk80,1xv100", "gavel-min-cost", perf=TABLE).summary()["avg_jct"]
    with_slo = simulate(job, "1xk80,1xv100", "gavel-min-cost-slo", perf=TABLE).summary()["avg_jct"]
    assert without_slo == pytest.approx(4800.0)
    assert with_slo <= 1.2 * 3600.0 + 1e-6


@pytest.mark.parametrize("objective", ["ratio", "normalised"])
def test_without_deadlines_the_objective_decides(objective):
    jobs = trace(["cheap", "keen", "keen"], slo=100.0)
    ends = [
        simulate(jobs, "1xk80,1xv100", make(name, objective=objective), perf=TABLE).jobs["end_time"]
        for name in ("gavel-min-cost", "gavel-min-cost-slo")
    ]
    assert ends[0].tolist() == pytest.approx(ends[1].tolist())


def test_a_lost_deadline_does_not_cost_the_others_theirs():
    jobs = trace(["cheap", "cheap"], slo=[0.5, 1.2])
    cluster = "1xk80,1xv100"
    paper = simulate(jobs, cluster, make("gavel-min-cost-slo"), perf=TABLE)
    assert paper.jobs.set_index("job_id")["jct"][1] <= 1.2 * 3600.0 + 1e-6


def test_strict_names_a_job_that_is_too_slow_even_alone():
    strict = make("gavel-min-cost-slo", strict=True)
    with pytest.raises(
        PolicyError, match=r"infeasible SLO constraint of job 1: it needs 8 steps/s"
    ):
        simulate(trace(["cheap", "cheap"], [9.0, 0.5]), "1xk80,1xv100", strict, perf=TABLE)


def test_strict_names_the_first_job_for_which_too_little_is_left():
    strict = make("gavel-min-cost-slo", strict=True)
    with pytest.raises(PolicyError, match=r"infeasible SLO constraints: .* job 2 its 3.333 steps"):
        simulate(trace(["cheap"] * 3, 1.2), "1xk80,1xv100", strict, perf=TABLE)


def test_prices_are_positive_and_unknown_names_are_refused():
    assert usd_per_hour(["v100", "p100", "k80"], "on-demand").tolist() == [2.85, 1.68, 0.52]
    assert usd_per_hour([None]).tolist() == [1.0]
    with pytest.raises(ParamError, match="no preemptible price of GPU type 'a100'"):
        usd_per_hour(["a100"])
    with pytest.raises(ParamError, match=r"no prices of market 'spot'; .* on-demand, preemptible"):
        usd_per_hour(["k80"], "spot")
