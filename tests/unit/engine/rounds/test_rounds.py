"""Settings of rounds, accepted and refused; priorities and choices of the paper."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repro.base.errors import ParamError
from repro.engine.rounds.settings import RoundSettings
from repro.model.cluster.spec import Cluster, gpus_by_type
from repro.papers.gavel.rounds import choose, priorities, received_after

X = np.array([[0.6, 0.4, 0.0], [0.2, 0.6, 0.2], [0.2, 0.0, 0.8]])
N = np.array([[3.0, 1.0, 0.0], [1.0, 3.0, 0.0], [0.0, 0.0, 4.0]])


def test_settings_by_name():
    made = RoundSettings.of({"round_s": 720, "whole_steps": True, "ideal": "artifact"})
    assert made == RoundSettings(round_s=720, whole_steps=True, ideal="artifact")
    assert RoundSettings.of({}) == RoundSettings()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"round": 720}, "no round setting 'round'; accepted: round_s, min_realloc_interval_s, "),
        ({"round_s": 0}, "round setting round_s is 0; give a finite number of seconds above 0"),
        (
            {"round_s": -360.0},
            "round setting round_s is -360.0; give a finite number of seconds above 0",
        ),
        (
            {"round_s": "720"},
            "round setting round_s is '720'; give a finite number of seconds above 0",
        ),
        ({"round_s": True}, "round setting round_s is True; give"),
        ({"round_s": float("inf")}, "round setting round_s is inf; give"),
        ({"round_s": float("nan")}, "round setting round_s is nan; give"),
        (
            {"min_realloc_interval_s": -1},
            "min_realloc_interval_s is -1; give a finite number of seconds, 0 or more",
        ),
        ({"prior_rounds": -0.5}, "prior_rounds is -0.5; give a finite number of 0 or more"),
        (
            {"preemption_overhead_s": -5},
            "preemption_overhead_s is -5; give a finite number of seconds, 0 or more",
        ),
        ({"preemption_overhead_s": 360}, "is 360 s, a round 360 s; an overhead must be shorter"),
        ({"round_s": 10, "preemption_overhead_s": 20}, "is 20 s, a round 10 s; an overhead must"),
        ({"gang_tries": 3}, "gang_tries is 3; give 0, or choose rules that count training steps"),
        ({"ideal": "ideal"}, "round setting ideal is 'ideal'; give fluid or artifact"),
        ({"ideal": True}, "round setting ideal is True; give fluid or artifact"),
        ({"ideal": "artifact"}, "round setting ideal is 'artifact', which counts whole training"),
    ],
)
def test_settings_that_are_refused(values, message):
    with pytest.raises(ParamError) as caught:
        RoundSettings.of(values)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["min_realloc_interval_s", "prior_rounds"])
def test_zero_is_a_setting(name):
    assert getattr(RoundSettings.of({name: 0}), name) == 0


def test_all_settings_in_seconds_stretch():
    made = RoundSettings(100.0, 50.0, preemption_overhead_s=3.0, max_realloc_interval_s=150.0)
    assert made.stretched(2.0) == {
        "round_s": 200.0,
        "min_realloc_interval_s": 100.0,
        "max_realloc_interval_s": 300.0,
        "preemption_overhead_s": 6.0,
    }
    assert set(made.stretched(2.0)) == {n for n in vars(made) if n.endswith("_s")}


def test_the_example_of_the_lecture():
    expected = np.array([[0.2, 0.4, 0], [0.2, 0.2, np.inf], [np.inf, 0, 0.2]])
    np.testing.assert_allclose(priorities(X, N), expected)
    assert choose(X, N, [1, 1, 1], [1, 1, 1]) == [(2, 0), (1, 2), (0, 1)]
    after = received_after(X, N, [1, 1, 1], [1, 1, 1])
    assert after.tolist() == [[3, 2, 0], [1, 3, 1], [1, 0, 4]]


def test_ten_rounds_realise_the_example_exactly():
    received = received_after(X, 0 * X, [1, 1, 1], [1, 1, 1], more=10)
    np.testing.assert_allclose(received, 10 * X)


@given(data=st.data())
@settings(max_examples=100)
def test_choices_fit(data):
    jobs = data.draw(st.integers(1, 7))
    types = data.draw(st.integers(1, 3))

    def table(values):
        size = jobs * types
        entries = data.draw(st.lists(values, min_size=size, max_size=size))
        return np.array(entries, dtype=float).reshape(jobs, types)

    x = table(st.sampled_from([0.0, 0.25, 0.5]))
    rounds = table(st.integers(0, 3))
    widths = data.draw(st.lists(st.integers(1, 4), min_size=jobs, max_size=jobs))
    capacity = data.draw(st.lists(st.integers(0, 6), min_size=types, max_size=types))
    chosen = choose(x, rounds, widths, capacity)
    assert len({job for job, _ in chosen}) == len(chosen)
    free = np.array(capacity)
    for job, column in chosen:
        assert x[job, column] > 0
        free[column] -= widths[job]
    assert (free >= 0).all()
    # a waiting job with a share does not fit any more
    for job in set(range(jobs)) - {job for job, _ in chosen}:
        assert not ((x[job] > 0) & (free >= widths[job])).any()


def test_gpus_by_type():
    assert gpus_by_type(Cluster.parse("2x4:v100,3xk80")) == {"v100": 8, "k80": 3}
    assert gpus_by_type(Cluster.parse("2x4")) == {None: 8}
