"""Every stage of interleaved jobs: worked examples step by step, Eq 3 as a property, coupling."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repro.base.errors import ParamError
from repro.papers.muri.stage_simulation import (
    RESOURCES,
    busy_shares,
    simulate_group,
    simulate_groups,
    steady_period,
)
from repro.perf.stages import efficiency, interleaving_time

TWO = ("CPU", "GPU")
SLOW_RIGHT = {"left": {"X": 0, "A": 1}, "right": {"X": 0, "B": 1}}
TIMES = {"X": (2, 1), "A": (1, 2), "B": (1, 4)}


def eq3(members: list[tuple[float, ...]], offsets: list[int]) -> float:
    """Eq 3 term by term, offsets written out."""
    k = len(members[0])
    return sum(
        max(stages[(offset + j) % k] for stages, offset in zip(members, offsets, strict=True))
        for j in range(k)
    )


@st.composite
def groups(draw: st.DrawFn) -> tuple[list[tuple[float, ...]], list[int]]:
    k = draw(st.integers(2, 5))
    size = draw(st.integers(1, k))
    time = st.floats(0, 10).map(lambda value: round(value, 3))
    member = st.tuples(*[time] * k).filter(lambda stages: sum(stages) > 0)
    members = draw(st.lists(member, min_size=size, max_size=size))
    return members, draw(st.permutations(range(k)))[:size]


def overlaps(rows: pd.DataFrame) -> list[float]:
    """How long two stages held one resource at once, for neighbours on it."""
    found = []
    lasting = rows[rows["end"] > rows["start"]]
    for _, of_one in lasting.groupby(["group", "resource"]):
        ordered = of_one.sort_values("start")
        found += (ordered["end"].shift() - ordered["start"]).dropna().tolist()
    return found


@pytest.mark.slow
@settings(max_examples=150)
@given(groups(), st.integers(3, 5))
def test_the_steady_period_is_eq_3(
    group: tuple[list[tuple[float, ...]], list[int]], iterations: int
) -> None:
    members, offsets = group
    names = [f"J{i}" for i in range(len(members))]
    resources = [f"R{j}" for j in range(len(members[0]))]
    rows = simulate_group(
        dict(zip(names, members, strict=True)),
        dict(zip(names, offsets, strict=True)),
        resources=resources,
        iterations=iterations,
    )
    period = eq3(members, offsets)
    assert len(rows) == len(members) * len(resources) * iterations
    np.testing.assert_allclose(steady_period(rows)[names], period, atol=1e-9)
    busy = np.array([sum(column) for column in zip(*members, strict=True)]) / period
    np.testing.assert_allclose(busy_shares(rows, resources), busy, atol=1e-6)
    assert max(overlaps(rows), default=-1) <= 1e-9
    np.testing.assert_allclose(rows["ready"], rows["start"], atol=1e-9)


@settings(max_examples=40)
@given(groups())
def test_best_and_worst_of_all_offsets_are_the_closed_form(
    group: tuple[list[tuple[float, ...]], list[int]],
) -> None:
    members, _ = group
    names = [f"J{i}" for i in range(len(members))]
    stages = dict(zip(names, members, strict=True))
    resources = [f"R{j}" for j in range(len(members[0]))]
    periods = []
    gammas = []
    for others in itertools.permutations(range(1, len(resources)), len(members) - 1):
        placed = dict(zip(names, (0, *others), strict=True))
        rows = simulate_group(stages, placed, resources=resources)
        periods.append(float(steady_period(rows).max()))
        gammas.append(float(busy_shares(rows, resources).mean()))
    assert min(periods) == pytest.approx(interleaving_time(members))
    assert max(periods) == pytest.approx(interleaving_time(members, "worst"))
    assert max(gammas) == pytest.approx(efficiency(members))


@settings(max_examples=60)
@given(groups())
def test_without_a_barrier_no_resource_serves_two_and_none_is_faster_than_its_load(
    group: tuple[list[tuple[float, ...]], list[int]],
) -> None:
    members, offsets = group
    names = [f"J{i}" for i in range(len(members))]
    resources = [f"R{j}" for j in range(len(members[0]))]
    rows = simulate_group(
        dict(zip(names, members, strict=True)),
        dict(zip(names, offsets, strict=True)),
        resources=resources,
        iterations=4,
        sharing="queue",
    )
    load = max(sum(column) for column in zip(*members, strict=True))
    assert max(overlaps(rows), default=-1) <= 1e-9
    assert rows["end"].max() >= 4 * load - 1e-6
    assert (rows["start"] >= rows["ready"] - 1e-9).all()


def test_figure_4_step_by_step() -> None:
    rows = simulate_group({"A": (2, 1), "B": (1, 2)}, resources=TWO, iterations=2)
    shown = rows[["job", "iteration", "resource", "start", "end"]]
    steps = [list(row) for row in shown.itertuples(index=False)]
    assert steps == [
        ["A", 1, "CPU", 0.0, 2.0],
        ["A", 1, "GPU", 2.0, 3.0],
        ["B", 1, "CPU", 2.0, 3.0],
        ["A", 2, "CPU", 3.0, 5.0],
        ["B", 1, "GPU", 3.0, 5.0],
        ["A", 2, "GPU", 5.0, 6.0],
        ["B", 2, "CPU", 5.0, 6.0],
        ["B", 2, "GPU", 6.0, 8.0],
    ]


def test_four_unit_jobs_do_four_iterations_in_the_time_of_one() -> None:
    stages = dict.fromkeys("ABCD", (1, 1, 1, 1))
    rows = simulate_group(stages, iterations=4)
    assert steady_period(rows).tolist() == [4.0] * 4
    assert busy_shares(rows).tolist() == [1.0] * 4
    alone = simulate_group(stages, iterations=3, sharing="alone")
    assert steady_period(alone).tolist() == [16.0] * 4
    first = alone[alone["iteration"] == 1]
    assert first.groupby("job")["end"].max().tolist() == [4.0, 8.0, 12.0, 16.0]
    assert first["resource"].tolist() == list(RESOURCES) * 4


@pytest.mark.parametrize(("ahead", "period"), [(1, 5.0), (2, 6.0), (3, 6.0)])
def test_figure_6(ahead: int, period: float) -> None:
    stages = {"A": (1, 2, 1, 1), "B": (1, 1, 2, 1)}
    rows = simulate_group(stages, {"A": 0, "B": ahead})
    assert set(steady_period(rows)) == {period}
    assert busy_shares(rows).mean() == pytest.approx(10 / (4 * period))


def test_equal_offsets_queue_for_the_resource() -> None:
    rows = simulate_group({"A": (1, 2), "B": (3, 1)}, {"A": 0, "B": 0}, resources=TWO)
    assert set(steady_period(rows)) == {1 + 3 + 2 + 1}
    assert (rows["start"] - rows["ready"]).max() == 2
    assert max(overlaps(rows)) <= 0


def test_a_slow_job_stalls_the_group_of_the_job_it_shares() -> None:
    own = simulate_group({"X": (2, 1), "A": (1, 2)}, resources=TWO)
    assert set(steady_period(own)) == {3.0}
    rows = simulate_groups(SLOW_RIGHT, TIMES, resources=TWO)
    for group in SLOW_RIGHT:
        assert set(steady_period(rows[rows["group"] == group])) == {5.0}
    ends = rows[(rows["job"] == "X") & (rows["resource"] == "GPU")]
    after = rows[(rows["job"] == "X") & (rows["resource"] == "CPU") & (rows["iteration"] == 2)]
    assert after["ready"].min() >= ends.loc[ends["iteration"] == 1, "end"].max()


def test_groups_without_a_common_job_do_not_wait_for_each_other() -> None:
    apart = {"left": {"A": 0, "C": 1}, "right": {"B": 0, "D": 1}}
    times = {"A": (1, 2), "C": (2, 1), "B": (1, 4), "D": (4, 1)}
    rows = simulate_groups(apart, times, resources=TWO)
    found = [float(steady_period(rows[rows["group"] == group]).max()) for group in apart]
    assert found == [3.0, 5.0]


def test_two_jobs_across_two_groups_in_opposite_orders_never_move() -> None:
    crossed = {"left": {"X": 0, "Y": 1}, "right": {"X": 1, "Y": 0}}
    with pytest.raises(ParamError, match="wait for each other for ever"):
        simulate_groups(crossed, {"X": (1, 1), "Y": (1, 1)}, resources=TWO)


@pytest.mark.parametrize(
    ("stages", "settings", "says"),
    [
        ({}, {}, "at least one job"),
        ({"A": (1, 2, 3)}, {"resources": TWO}, "'A' has stages"),
        ({"A": (1, -2)}, {"resources": TWO}, "0 or more"),
        ({"A": (1, 2)}, {"resources": TWO, "offsets": {"B": 0}}, "'B' has stages"),
        ({"A": (1, 2)}, {"resources": TWO, "iterations": 0}, "1 or more"),
    ],
)
def test_bad_groups(stages: dict[str, tuple[int, ...]], settings: dict, says: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(ParamError, match=says):
        simulate_group(stages, **settings)


def test_a_steady_period_needs_three_iterations() -> None:
    with pytest.raises(ParamError, match="at least 3"):
        steady_period(simulate_group({"A": (1, 2)}, resources=TWO, iterations=2))


def test_an_unknown_sharing_is_refused() -> None:
    with pytest.raises(ParamError, match="sharing is 'barier'; did you mean 'barrier'"):
        simulate_group({"A": (1, 2)}, resources=TWO, sharing="barier")  # type: ignore[arg-type]
