"""The simulator's period of three-stage jobs: published values, literal recursion, bad input."""

from __future__ import annotations

import itertools
import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repro.base.errors import ParamError
from repro.perf.muri_models import muri_profiles
from repro.perf.stages import ThreeStages, interleaving_time

three_stage_time = partial(interleaving_time, merged=True)
TIMES = st.integers(0, 800).map(float)
GROUPS = st.lists(
    st.tuples(TIMES, TIMES, TIMES).filter(lambda one: sum(one) > 0), min_size=1, max_size=4
)


def profile(model: str, gpus: int) -> ThreeStages:
    table = muri_profiles()
    row = table[(table["model"] == model) & (table["num_gpus"] == gpus)].iloc[0]
    return float(row["stage_data"]), float(row["stage_gpu"]), float(row["stage_network"])


def literal(order: list[ThreeStages]) -> float:
    """The recursion of the simulator, index by index."""
    size = len(order)
    ends = {0: 0.0}
    for s in range(8):
        terms = [0.0]
        a = (s + 1) % 4
        b = (s + 2) % 4
        c = (s + 3) % 4
        if a < size:
            terms.append(ends[s] + order[a][2])
        if b < size:
            terms.append(ends[s] + order[b][1])
        if s > 0 and c < size:
            terms.append(ends[s - 1] + order[c][0])
        ends[s + 1] = max(terms)
        if s >= 4:
            one, two = ends[s + 1] - ends[s - 3], ends[s] - ends[s - 4]
            if math.isclose(one, two, rel_tol=1e-3):
                return one
    return ends[8] - ends[4]


@pytest.mark.parametrize(
    ("models", "gpus", "best", "worst"),
    [
        (("dqn", "vgg16"), 1, 0.454, 0.563),
        (("bert", "vgg16"), 1, 0.228, 0.345),
        (("gpt2", "a2c"), 1, 0.528, 0.938),
        (("shufflenet_v2_x1_0", "a2c", "gpt2", "vgg16"), 16, 0.901, 1.301),
    ],
)
def test_known_groups(models: tuple[str, ...], gpus: int, best: float, worst: float) -> None:
    members = [profile(model, gpus) for model in models]
    assert three_stage_time(members) == pytest.approx(best)
    assert three_stage_time(members, "worst") == pytest.approx(worst)


@settings(max_examples=200)
@given(GROUPS.filter(lambda group: len(group) > 1))
def test_every_order_by_the_literal_recursion(group: list[ThreeStages]) -> None:
    periods = [literal(list(order)) for order in itertools.permutations(group)]
    if len(group) == 2:
        (d0, g0, n0), (d1, g1, n1) = group
        periods.append(max(d0, g1 + n1) + max(d1, g0 + n0))
    assert three_stage_time(group) == min(periods)
    assert three_stage_time(group, "worst") == max(periods)


@settings(max_examples=100)
@given(GROUPS, st.randoms(use_true_random=False), st.integers(-8, 8))
def test_order_of_members_and_unit_of_time_change_nothing(
    group: list[ThreeStages], random: object, power: int
) -> None:
    shuffled = group[::-1]
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert three_stage_time(shuffled) == three_stage_time(group)
    scale = 2.0**power
    scaled = [(d * scale, g * scale, n * scale) for d, g, n in group]
    for ordering in ("best", "worst"):
        assert three_stage_time(scaled, ordering) == scale * three_stage_time(group, ordering)


def test_one_job_alone_needs_the_sum_of_its_stages() -> None:
    assert three_stage_time([(3, 2, 1)]) == three_stage_time([(3, 2, 1)], "worst") == 6.0


def test_numpy_rows_are_accepted_and_a_plain_float_comes_back() -> None:
    rows = np.array([[117.0, 68.0, 0.0], [0.5, 160.0, 0.0]])
    assert three_stage_time([tuple(row) for row in rows]) == 228.0
    assert type(three_stage_time([tuple(row) for row in rows])) is float


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ([], "1 to 4 jobs"),
        ([(1.0, 1.0, 1.0)] * 5, "a group of 5 jobs"),
        ([(1.0, 1.0)], "three stages"),
        ([(1.0, -1.0, 1.0)], "0 or more"),
        ([(1.0, math.inf, 1.0)], "finite"),
        ([(0.0, 0.0, 0.0), (1.0, 1.0, 1.0)], "no stage of any length"),
    ],
)
def test_bad_groups(members: list[ThreeStages], says: str) -> None:
    with pytest.raises(ParamError, match=says):
        three_stage_time(members)


def test_unknown_ordering() -> None:
    with pytest.raises(ParamError, match="'best' or 'worst'"):
        three_stage_time([(1.0, 1.0, 1.0)], "middle")  # type: ignore[arg-type]
