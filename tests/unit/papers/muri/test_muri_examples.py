"""Muri's worked examples: bars, plans, offsets, coupled groups."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repro.papers.muri import examples as examples
from repro.papers.muri.stage_simulation import simulate_group, simulate_groups, steady_period
from repro.perf.stages import interleaving_time

TWO = ("CPU", "GPU")
JOBS = {"A": (2, 1), "B": (1, 2), "C": (2, 1), "D": (1, 2)}


def test_bars_are_sorted_by_group_and_resource_and_leave_out_what_takes_no_time() -> None:
    groups = {"right": {"B": 0}, "left": {"A": 0}}
    stages = {"A": (2.0, 1.0), "B": (0.0, 1.0)}
    rows = simulate_groups(groups, stages, resources=TWO, iterations=2)
    drawn = examples.bars(rows, TWO)
    assert drawn["lane"].tolist() == ["left CPU"] * 2 + ["left GPU"] * 2 + ["right GPU"] * 2
    assert drawn["text"].tolist() == ["A1", "A2", "A1", "A2", "B1", "B2"]
    assert drawn["start"].tolist() == [0.0, 3.0, 2.0, 5.0, 0.0, 1.0]
    assert examples.bars(rows, TWO, until=2.0)["text"].tolist() == ["A1", "B1", "B2"]


def test_bars_of_one_unnamed_group_are_lanes_of_resources() -> None:
    rows = simulate_group({"A": (2, 1)}, resources=TWO, iterations=1)
    assert examples.bars(rows, ("GPU", "CPU"))["lane"].tolist() == ["GPU", "CPU"]


@given(st.lists(st.tuples(*[st.integers(1, 9)] * 4), min_size=1, max_size=4))
def test_the_best_offsets_give_the_period_of_the_best_ordering(
    members: list[tuple[int, ...]],
) -> None:
    stages = {f"J{i}": times for i, times in enumerate(members)}
    periods = [
        examples.offset_period(stages, dict(zip(stages, offsets, strict=True)))
        for offsets in itertools.permutations(range(4), len(members))
    ]
    floats = [tuple(map(float, times)) for times in members]
    assert min(periods) == interleaving_time(floats)
    assert max(periods) == interleaving_time(floats, "worst")


def test_plans_of_figure_4() -> None:
    plans = {"1": [["A", "B"], ["C", "D"]], "2": [["A", "C"], ["B", "D"]]}
    rows, table = examples.simulate_plans(plans, JOBS, TWO)
    assert table["group"].tolist() == ["A+B", "C+D", "A+C", "B+D"]
    assert table["period"].tolist() == table["period_closed"].tolist() == [3, 3, 4, 4]
    assert table["gamma_closed"].tolist() == [1, 1, 0.75, 0.75]
    assert table["idle CPU"].tolist() == [0, 0, 0, 0.5]
    assert table["idle GPU"].tolist() == [0, 0, 0.5, 0]
    assert set(rows["plan"]) == {"1", "2"} and len(rows) == 4 * 2 * 3 * 2


@pytest.mark.parametrize(("number", "ways"), [(2, 1), (4, 3), (6, 15)])
def test_every_way_to_pair_jobs(number: int, ways: int) -> None:
    jobs = "ABCDEF"[:number]
    plans = examples.pair_plans(jobs)
    assert len(plans) == ways
    for plan in plans.values():
        assert sorted(job for pair in plan for job in pair) == list(jobs)
    assert len({frozenset(map(frozenset, plan)) for plan in plans.values()}) == ways


def test_a_fused_job_of_figure_4_fills_both_resources() -> None:
    whole = tuple(a + b for a, b in zip(JOBS["A"], JOBS["C"], strict=True))
    rows = simulate_group({"E": whole, "F": (2, 4)}, resources=TWO)
    assert steady_period(rows).max() == 6.0


def test_groups_that_share_a_job_have_one_pace() -> None:
    stages = {"X": (2, 1), "A": (1, 2), "B": (1, 4), "C": (1, 1)}
    groups = {"1": {"X": 0, "A": 1}, "2": {"X": 0, "B": 1}, "3": {"C": 0}}
    rows = simulate_groups(groups, stages, resources=TWO)
    periods = {group: steady_period(of_one).max() for group, of_one in rows.groupby("group")}
    assert periods == {"1": 5.0, "2": 5.0, "3": 2.0}


def test_stalls_are_what_a_shared_job_costs_the_faster_group() -> None:
    stages = {"X": (2.0, 1.0), "A": (1.0, 2.0), "B": (1.0, 4.0)}
    groups = {"left": {"X": 0, "A": 1}, "right": {"X": 0, "B": 1}}
    rows = simulate_groups(groups, stages, resources=TWO, iterations=2)
    late = examples.stalls(rows, groups, stages, TWO)
    assert set(late["group"]) == {"left"} and set(late["job"]) == {"stalled"}
    for _, gap in late.iterrows():
        lane = rows[(rows["group"] == gap["group"]) & (rows["resource"] == gap["resource"])]
        assert not ((lane["start"] < gap["end"]) & (lane["end"] > gap["start"])).any()
    alone = {"left": groups["left"]}
    rows = simulate_groups(alone, stages, resources=TWO, iterations=2)
    assert examples.stalls(rows, alone, stages, TWO).empty
