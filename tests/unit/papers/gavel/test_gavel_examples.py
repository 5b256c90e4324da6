"""Gavel's worked examples: rounds, constraints, the motivation table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.optimize
from hypothesis import given
from hypothesis import strategies as st

from repro import figure, make, simulate
from repro.base.errors import ParamError, PolicyError
from repro.base.paths import figures_dir
from repro.model.records import durations
from repro.papers.gavel import curves, examples
from repro.papers.gavel import models as motivation
from repro.papers.gavel.cost import at_every_round
from repro.papers.gavel.decisions import (
    NO_SOLVER,
    first_shares,
    first_view,
    job_by_job,
    policy_table,
)
from repro.papers.gavel.hierarchy import (
    end_parts,
    entity_shares,
    points,
    random_speeds,
    stages,
)
from repro.papers.gavel.models import configurations
from repro.papers.gavel.rounds import received_after
from repro.perf.synthetic_throughputs import gavel_like
from repro.perf.throughput import ThroughputTable
from repro.solve.counted import counted_solves
from repro.testing import small_trace

X = np.array([[0.6, 0.4, 0.0], [0.2, 0.6, 0.2], [0.2, 0.0, 0.8]])
ONES = [1, 1, 1]


def test_ten_rounds_are_ten_times_the_shares():
    rounds = examples.scheduled_rounds(X, ONES, ONES, 10)
    assert examples.received_rounds(rounds, X.shape) == pytest.approx(10 * X)
    assert (rounds.groupby("round").size() == 3).all()
    assert not rounds.duplicated(["round", "job"]).any()
    assert not rounds.duplicated(["round", "type"]).any()


@given(
    st.lists(st.lists(st.integers(0, 5), min_size=3, max_size=3), min_size=1, max_size=4),
    st.integers(0, 12),
)
def test_played_rounds_are_those_of_the_mechanism(weights, number):
    shares = np.array(weights, float) / max(1, np.sum(weights))
    widths = [1 + row % 2 for row in range(len(shares))]
    rounds = examples.scheduled_rounds(shares, widths, [2, 1, 2], number)
    whole = received_after(shares, np.zeros_like(shares), widths, [2, 1, 2], more=number)
    assert np.array_equal(examples.received_rounds(rounds, shares.shape), whole)


def test_bars_go_by_lane_then_time():
    rounds = examples.scheduled_rounds(X, ONES, ONES, 3)
    bars = examples.bars_of_rounds(rounds, ["a", "b", "c"], ["V100", "P100", "K80"], 6.0)
    assert bars["lane"].tolist() == ["V100"] * 3 + ["P100"] * 3 + ["K80"] * 3
    assert bars["start"].tolist() == [0, 6, 12] * 3
    assert (bars["end"] - bars["start"] == 6).all()


def test_constraints_of_the_example_are_tight_and_wide_gangs_count_more():
    sums = examples.constraint_sums(X, ONES, ONES)
    assert sums["time"] == pytest.approx([1, 1, 1]) and sums["gpus"] == pytest.approx([1, 1, 1])
    wide = examples.constraint_sums(X, [2, 1, 1], [2, 1, 4])
    assert wide["gpus"] == pytest.approx([0.8, 1.4, 0.25])


def test_cells_name_every_entry():
    frame = examples.cells([[0.25, np.inf], [0.123, 2]], ["a", "b"], ["x", "y"])
    assert frame["text"].tolist() == ["0.25", "∞", "0.12", "2"]
    assert frame[["row", "column"]].to_numpy().tolist() == [
        list(p) for p in ("ax", "ay", "bx", "by")
    ]


def test_the_newest_gpu_helps_models_unequally():
    models = {"Transformer": 256, "ResNet-50": 128}
    table = motivation.select_models(motivation.motivation(), models)
    assert table["model"].tolist() == ["Transformer", "ResNet-50"]
    assert (table["v100"] / table["k80"]).round(1).tolist() == [3.3, 9.6]


def test_speeds_of_the_simulations_are_those_of_the_batch_size():
    perf = gavel_like()
    table = motivation.simulated_speeds(perf, {"A3C": None, "LM": 20}, ["k80", "v100"])
    assert table.loc["A3C", "v100"] == perf.steps_per_s("A3C", 1, "v100")
    assert table.loc["LM", "k80"] == perf.steps_per_s("LM (batch size 20)", 1, "k80")


def test_a_batch_size_that_was_not_measured_is_refused():
    with pytest.raises(ParamError, match="0 rows of ResNet-18 with batch size 32"):
        motivation.select_models(motivation.motivation(), {"ResNet-18": 32})


def test_pairs_are_symmetric_measurements():
    models = {"CycleGAN": None, "LM": 20, "Transformer": 64}
    table = motivation.select_models(motivation.motivation(), models)
    forth = motivation.pair_speeds(table, list(models)).set_index(["row", "column"])
    back = motivation.pair_speeds(table, list(models)[::-1]).set_index(["row", "column"])
    for one, other in (("CycleGAN", "LM"), ("LM", "Transformer"), ("CycleGAN", "Transformer")):
        for speed in ("in_pair", "alone"):
            first = forth.loc[(one, other), f"first_{speed}"]
            assert first == back.loc[(other, one), f"second_{speed}"]
    assert len(forth) == 6


SPEEDS = {
    "m0": {"v100": 40, "k80": 10},
    "m1": {"v100": 12, "k80": 4},
    "m2": {"v100": 100, "k80": 50},
}


def three_jobs(hours=20.0):
    return pd.DataFrame(
        {"job_id": ["a", "b", "c"], "submit_time": 0.0, "duration": 3600 * hours, "num_gpus": 1}
    ).assign(model=list(SPEEDS))


def test_lecture_allocation():
    perf = ThroughputTable.of(SPEEDS, "v100")
    aware = first_shares(three_jobs(), "1xv100,1xk80", "gavel-las", ["v100", "k80"], perf=perf)
    assert 11 * aware == pytest.approx(np.array([[5, 0], [5, 1], [1, 10]]), abs=1e-6)
    equal = first_shares(three_jobs(), "1xv100,1xk80", "las-agnostic", ["k80", "v100"], perf=perf)
    assert equal == pytest.approx(np.full((3, 2), 1 / 3))
    speeds = np.array([list(row.values()) for row in SPEEDS.values()], float)
    gain = (aware * speeds).sum(axis=1) / (equal[:, ::-1] * speeds).sum(axis=1)
    assert gain == pytest.approx([12 / 11] * 3)


def test_jobs_that_have_not_arrived_have_no_share():
    trace = three_jobs().assign(submit_time=[0.0, 0.0, 7200.0])
    shares = first_shares(trace, "1xv100,1xk80", "las-agnostic", ["v100", "k80"])
    assert shares.sum() == pytest.approx(2) and shares[2].tolist() == [0, 0]


def test_shares_are_in_the_order_of_the_trace():
    trace = three_jobs().assign(submit_time=[5.0, 0.0, 0.0], num_gpus=[1, 2, 4])
    types = {"v100": 4, "k80": 4}
    shares = first_shares(trace, "4xv100,4xk80", "gavel-fifo", list(types))
    # the first job has not arrived; each of the others has one GPU type
    assert shares.sum(axis=1) == pytest.approx([0, 1, 1])
    table = policy_table({"FIFO": "gavel-fifo"}, trace, "4xv100,4xk80", types)
    assert table["most_gpus"].tolist() == [1.0]


def test_policies_without_shares_are_refused():
    with pytest.raises(PolicyError, match="answers with runs"):
        first_shares(small_trace(), "1x4", "max-min", [None])
    with pytest.raises(PolicyError, match="'srtf' only ranks jobs"):
        first_shares(small_trace(), "1x4", "srtf", [None])


def test_table_1_says_what_its_committed_copy_says(tmp_path):
    # a solver that does not declare its sort of problem, or a changed description, shows here
    fig = figure("gavel/tab01_policies", profile="quick", seed=0, out=tmp_path)
    trace = fig.trace(fig.inputs.trace, jobs=fig.inputs.jobs, priorities=True, slos=True)
    at_once = trace.assign(submit_time=0.0, entity=["product", "research"] * (len(trace) // 2))
    table = policy_table(fig.inputs.rows, at_once, fig.inputs.cluster, fig.inputs.gpus)
    committed = pd.read_csv(figures_dir() / "gavel" / "tab01_policies" / "tab01_policies.csv")
    columns = ["row", "policy", "objective", "solver"]
    assert table[columns].to_dict("list") == committed[columns].to_dict("list")
    assert table["reads"].map(", ".join).tolist() == committed["reads"].tolist()


HIGHS = {"lp_backend": "highs"}


@pytest.mark.parametrize(
    ("policy", "settings"),
    [("gavel-las", HIGHS), ("gavel-ftf", HIGHS), ("gavel-max-throughput", {})],
)
def test_every_call_of_the_linear_solver_is_counted(policy, settings, monkeypatch):
    called = []
    milp = scipy.optimize.milp

    def watched(*args, **how):
        called.append(1)
        return milp(*args, **how)

    monkeypatch.setattr(scipy.optimize, "milp", watched)
    made = make(policy, **settings)
    speeds = ThroughputTable.of(SPEEDS, "v100")
    view = first_view(three_jobs(), "1xv100,1xk80", made, speeds)
    with counted_solves() as counts:
        made.session(view)(view)
    assert len(called) > 0
    assert counts == {"LP": len(called)}


def test_counting_ends_with_the_block():
    with counted_solves() as outer:
        with counted_solves() as inner:
            first_shares(three_jobs(), "1xv100,1xk80", "gavel-las", ["v100"])
        assert inner == {"LP": 1}
    first_shares(three_jobs(), "1xv100,1xk80", "gavel-las", ["v100"])
    assert outer == {"LP": 1}


JOBS = {str(i): {"entity": "a" if i < 4 else "b"} for i in range(1, 6)}
INNER = {"a": {"inner": "fairness"}, "b": {"inner": "fifo"}}


def test_the_head_of_the_queue_has_the_weight_of_its_entity():
    table = entity_shares(JOBS, INNER, {"v100": 2})
    assert table["share"].tolist() == pytest.approx([1 / 3] * 3 + [1, 0], abs=1e-6)
    double = {**INNER, "b": {"inner": "fifo", "weight": 2}}
    table = entity_shares(JOBS, double, {"v100": 2})
    assert table["share"].tolist() == pytest.approx([2 / 9] * 3 + [1, 1 / 3], abs=1e-6)


def test_weights_pass_on_when_jobs_end():
    table = stages(JOBS, INNER, {"v100": 2}, ["4", "5"])
    shares = table["share"].to_numpy().reshape(3, 5)
    assert shares[1] == pytest.approx([1 / 3] * 3 + [0, 1], abs=1e-6)
    assert shares[2] == pytest.approx([2 / 3] * 3 + [0, 0], abs=1e-6)
    assert table["present"].to_numpy().reshape(3, 5).sum(axis=1).tolist() == [5, 4, 3]


def test_the_levels_of_an_entity_are_fair_on_unequal_gpus():
    speeds = [{"x": 40, "y": 10}, {"x": 12, "y": 4}, {"x": 9, "y": 8}, {"x": 30, "y": 3}, {}]
    jobs = {
        name: {**job, "steps_per_s": row}
        for (name, job), row in zip(JOBS.items(), speeds, strict=True)
    }
    table = entity_shares(jobs, INNER, {"x": 1, "y": 1})
    levels = (table["throughput"] / table["equal_throughput"]).to_numpy()
    assert levels[:3] == pytest.approx(levels[0], abs=1e-6)
    assert levels[:3].sum() == pytest.approx(levels[3:].sum(), abs=1e-6)


def run(**rounds):
    perf = ThroughputTable.of(SPEEDS, "v100")
    return simulate(three_jobs(), "1xv100,1xk80", "gavel-las", perf=perf, rounds=rounds)


def test_every_round_pays_without_renewal_and_fewer_with_it():
    renewed = run(preemption_overhead_s=12.0)
    paid = run(preemption_overhead_s=12.0, lease_renewal=False)
    lost = [result.meta["overhead_s"] / durations(result).sum() for result in (renewed, paid)]
    assert 0 < lost[0] < lost[1] < 12 / 360
    assert lost[1] == pytest.approx(at_every_round(paid, 12.0, 360.0))
    assert run(lease_renewal=False).meta["overhead_s"] == 0


def test_configurations_are_those_that_are_drawn():
    table = configurations(gavel_like(), "v100", "k80")
    assert len(table) == 26
    sizes = table.groupby("model", sort=False)["batch_size"].apply(list)
    assert sizes.iloc[3] == [5, 10, 20, 40, 80]
    assert table.groupby("model")["dataset"].first()["A3C"] == "Pong"
    assert (table["steps_per_s"] / table["unit_steps_per_s"] > 0).all()


def test_the_table_of_policies_tells_what_they_declare_and_solve():
    rows = {"aware": "gavel-las", "agnostic": "las-agnostic", "fair": "gavel-ftf"}
    trace = three_jobs()
    trace.attrs["throughputs"] = "gavel-like-throughputs"
    trace["model"] = ["A3C", "CycleGAN", "A3C"]
    table = policy_table(rows, trace, "1xv100,1xk80", {"v100": 1, "k80": 1})
    assert table["solver"].tolist() == ["LP", NO_SOLVER, "convex"]
    assert table["reads"].tolist() == [["speeds", "weights"], ["weights"], ["speeds", "work left"]]
    assert table["objective"].str.len().min() > 20 and table["objective"].nunique() == 3
    assert table[["most_time", "most_gpus"]].to_numpy().max() <= 1 + 1e-6


def test_a_policy_that_is_not_registered_is_named():
    with pytest.raises(PolicyError, match="'gavel-lsa'"):
        policy_table({"LAS": "gavel-lsa"}, three_jobs(), "1xv100,1xk80", {"v100": 1})


def test_published_totals_and_single_jobs_stand_beside_ours():
    given = {"series": "mine", "timestep": 1, "job_id": [0, 1], "throughput": [0.25, 0.5]}
    steps = pd.DataFrame(given).assign(inner="fairness", instance="jobs")
    totals = {"fairness": curves.published("hierarchical_fairness")}
    found = points(totals, steps, {"agnostic": "mine"}, True).set_index(["series", "x"])
    assert found.loc[("fairness, agnostic", 1), ["published", "ours"]].tolist() == [1.0, 0.75]
    first = found.loc[[("fairness, jobs, agnostic", 1)]]
    assert first[["quantity", "ours"]].to_numpy().tolist() == [["throughput of job 0", 0.25]]
    assert points(totals, steps, {"agnostic": "mine"}, False)["ours"].isna().all()


def test_a_row_per_job_gives_equal_jobs_the_shares_of_their_kind():
    perf = ThroughputTable.of(
        {"a": {"v100": 2.0, "k80": 1.0}, "b": {"v100": 3.0, "k80": 1.0}}, "v100"
    )
    trace = pd.DataFrame(
        {"job_id": range(6), "submit_time": 0.0, "duration": 3600.0, "num_gpus": 1}
    ).assign(model=list("ababab"))
    policy = make("gavel-las")
    view = first_view(trace, "2xv100,1xk80", policy, perf)
    rows = job_by_job(policy, view)()
    assert rows == pytest.approx(policy.session(view)(view).fractions, abs=1e-6)


def test_ends_of_the_published_stack_repeat_the_weights_of_an_entity():
    ends = end_parts([1.0, 3.0, 2.0, 2.0], 4, 69)
    assert ends["part"].tolist() == [n / 16 for n in (1, 4, 5, 8, 10, 12, 14, 16)]
    assert set(ends["timestep"]) == {69}


def test_random_speeds_ascend_from_the_first_type():
    speeds = random_speeds(["k80", "p100", "v100"], 5)
    assert list(speeds) == [f"job {number}" for number in range(5)]
    assert all(list(row.values()) == sorted(row.values()) for row in speeds.values())
    assert speeds == random_speeds(["k80", "p100", "v100"], 5)
