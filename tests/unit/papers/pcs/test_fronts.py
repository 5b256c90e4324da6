"""Searches for a front: what is a front, the same seed gives the same points, limits are kept."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from repro.base.errors import ParamError
from repro.papers.pcs.fronts import Method, hypervolume, nondominated, search_front

# left out by `make check`
pytestmark = pytest.mark.slow

METHODS = ("spea2", "nsga2", "gaussian-process", "random")
LOW = np.zeros(3)
HIGH = np.array([1.0, 1.0, 2.0])


def objectives(points, front=None):
    """A convex front at points[:, 1:] = 0; a corner of the box is not possible."""
    spare = points[:, 1:].sum(axis=1)
    values = np.column_stack([points[:, 0] + spare, (1 - points[:, 0]) ** 2 + spare])
    return np.where((points[:, 2] > 1.8)[:, None], np.inf, values)


def method(name, budget=90):
    return Method(name, budget, population=20, offspring=20)


@given(st.lists(st.tuples(*[st.sampled_from([0.0, 1.0, 2.0, np.inf])] * 2), max_size=12))
def test_the_front_is_what_nothing_beats(rows):
    values = np.array(rows, float).reshape(-1, 2)
    chosen = nondominated(values)
    front = [tuple(row) for row in values[chosen]]
    assert len(set(front)) == len(front)
    for row in values[np.isfinite(values).all(axis=1)]:
        beats = [(row <= one).all() and (row < one).any() for one in values[chosen]]
        assert not any(beats)
        assert any((np.array(one) <= row).all() for one in front)


@given(st.lists(st.tuples(*[st.integers(0, 9)] * 2), min_size=1, max_size=8))
def test_hypervolume_counts_cells(rows):
    values = np.array(rows, float)
    cells = sum(any(a <= x and b <= y for a, b in rows) for x in range(10) for y in range(10))
    assert hypervolume(values, np.array([10.0, 10.0])) == pytest.approx(cells)


@pytest.mark.parametrize("name", METHODS)
def test_a_seed_gives_the_same_points_within_box_and_budget(name):
    one, two = (search_front(objectives, LOW, HIGH, method(name), seed=5) for _ in range(2))
    assert np.array_equal(one.points, two.points)
    assert np.array_equal(one.values, two.values)
    assert one.points.shape == (90, 3)
    assert (one.points >= LOW).all() and (one.points <= HIGH).all()
    other = search_front(objectives, LOW, HIGH, method(name), seed=6)
    assert not np.array_equal(one.points, other.points)


def test_a_method_by_its_name_has_the_default_budget():
    by_name = search_front(objectives, LOW, HIGH, "random")
    assert len(by_name.points) == Method().budget
    default = search_front(objectives, LOW, HIGH, Method("random"))
    assert np.array_equal(by_name.points, default.points)


@pytest.mark.nightly
def test_searches_that_learn_find_more_than_chance():
    def volume(name, seed):
        found = search_front(objectives, LOW, HIGH, method(name, 240), seed=seed)
        return hypervolume(found.values, np.array([3.0, 3.0]))

    means = {name: np.mean([volume(name, seed) for seed in range(3)]) for name in METHODS}
    assert all(means[name] > means["random"] for name in METHODS[:3])


@pytest.mark.parametrize("name", METHODS)
def test_the_front_is_told_only_where_nothing_later_depends_on_it(name):
    told = []

    def evaluate(points, front):
        told.append((len(points), front))
        return objectives(points)

    known = search_front(evaluate, LOW, HIGH, method(name), seed=1)
    fronts = [front is not None for _, front in told]
    assert sum(number for number, _ in told) == 90
    assert fronts == [False] + [name == "random"] * (len(told) - 2) + [True]
    before = known.values[: -told[-1][0]]
    assert np.array_equal(told[-1][1], before[nondominated(before)])


@pytest.mark.parametrize("name", METHODS)
def test_hopeless_points_may_be_lower_bounds(name):
    def lazy(points, front):
        values = objectives(points)
        if front is None:
            return values
        beaten = np.array([(front <= row).all(axis=1).any() for row in values])
        return np.where(beaten[:, None], front.max(axis=0), values)

    exact, bounds = (
        search_front(one, LOW, HIGH, method(name), seed=2) for one in (objectives, lazy)
    )
    fronts = [one.values[nondominated(one.values)] for one in (exact, bounds)]
    assert np.array_equal(*(front[np.lexsort(front.T)] for front in fronts))


def test_a_generation_without_a_possible_point_goes_on():
    found = search_front(
        lambda points, front: np.full((len(points), 2), np.inf), LOW, HIGH, method("spea2")
    )
    assert len(found.points) == 90 and not nondominated(found.values).any()


@pytest.mark.filterwarnings("error:invalid value")
def test_an_objective_that_is_equal_for_all_points_does_not_mislead_the_search():
    def with_constant(points, front):
        return np.column_stack([objectives(points), np.full(len(points), 7.0)])

    def volume(name):
        values = search_front(with_constant, LOW, HIGH, method(name, 240), seed=1).values
        return hypervolume(values[:, :2], np.array([3.0, 3.0]))

    assert volume("spea2") > volume("random")


@pytest.mark.parametrize(
    ("given_", "said"),
    [
        ({"name": "tabu"}, "accepted: spea2, nsga2, gaussian-process, random"),
        ({"budget": 69}, "at least the population, which is 70"),
        ({"population": 1}, "population is 1; give 2 or more"),
        ({"offspring": 0}, "offspring is 0"),
    ],
)
def test_bad_settings_are_one_line(given_, said):
    with pytest.raises(ParamError, match=said):
        Method(**given_)
