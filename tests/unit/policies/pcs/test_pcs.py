"""PCS by hand: classes, weights, caps on efficiency and their relaxation, whole GPUs in turns."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from repro import make, simulate
from repro.base.errors import ParamError
from repro.perf import SpeedUp
from repro.policies.pcs.pcs import caps, class_thresholds, decaying_weights

CURVE = (1.0, 1.2, 2.4, 2.6)
MODEL = SpeedUp({"bump": CURVE})


def trace(*rows, model=None):
    frame = pd.DataFrame(rows, columns=["submit_time", "duration", "num_gpus"], dtype=float)
    num_gpus = frame["num_gpus"].astype(int)
    return frame.assign(job_id=range(len(rows)), num_gpus=num_gpus, model=model)


def gpus_at_time_zero(policy, jobs, gpus, perf=None):
    """GPUs of each job at time 0, in the order of the trace."""
    spans = simulate(jobs, f"1x{gpus}", policy, perf=perf).intervals
    first = spans[spans["start"] == 0].set_index("job_id")["gpus"]
    return first.reindex(jobs["job_id"], fill_value=0.0).tolist()


def test_classes_share_by_weight_and_are_fifo_inside():
    """Sizes 10, 10 | 400, 400 on six GPUs, 2:1: four and two GPUs, each class in its own order."""
    jobs = trace((0, 5, 2), (0, 100, 4), (0, 5, 2), (0, 100, 4))
    policy = make("pcs", thresholds=(20.0,), weights=(2.0, 1.0))
    assert gpus_at_time_zero(policy, jobs, 6) == [2, 2, 2, 0]


def test_gpus_beyond_the_demand_of_a_class_go_to_the_others_by_weight():
    """The first class has a demand of two GPUs. The other ten of twelve are shared 3:1."""
    jobs = trace((0, 5, 2), (0, 10, 20), (0, 100, 20))
    policy = make("pcs", thresholds=(20.0, 250.0), weights=(8.0, 3.0, 1.0))
    assert gpus_at_time_zero(policy, jobs, 12) == pytest.approx([2, 7.5, 2.5])


def test_sharing_ends_at_an_unmet_demand_below_a_thousandth_of_a_gpu():
    """Of four GPUs the first class gets 1.9995 and demands 2. The second gets its demand of 1."""
    jobs = trace((0, 5, 2), (0, 100, 1))
    policy = make("pcs", thresholds=(20.0,), weights=(1.9995, 2.0005))
    assert gpus_at_time_zero(policy, jobs, 4) == pytest.approx([1.9995, 1], abs=1e-9)


def test_a_single_class_is_fifo():
    jobs = trace((0, 30, 3), (1, 20, 2), (2, 10, 4), (4, 9, 1))
    ends = [
        simulate(jobs, "1x4", name).jobs["end_time"].tolist() for name in ("pcs", "fifo-elastic")
    ]
    assert ends[0] == ends[1]


def test_caps_end_before_the_first_count_below_the_bound():
    """Efficiencies 1, 0.6, 0.8, 0.65: bound 0.7 caps at 1 GPU, although 3 GPUs are efficient.

    Bounds of 0.5 and less cap nothing. Only the first of these levels is kept.
    """
    curves = np.array([np.arange(6.0), [0.0, *CURVE, CURVE[-1]]])
    level_caps = caps(curves, 0.7, 0.2)
    assert level_caps[:, 1].tolist() == [1, 1 << 40]
    assert (level_caps[:, 0] == 1 << 40).all()


@given(st.floats(0, 1), st.floats(0.01, 1), st.lists(st.floats(0.05, 1), min_size=1, max_size=12))
def test_caps_equal_those_of_a_search_level_by_level(zeta_min, delta, efficiencies):
    counts = np.arange(1, len(efficiencies) + 1)
    curve = np.append(0.0, np.array([1.0, *efficiencies[1:]]) * counts)
    curves = np.array([np.arange(len(curve)), curve], dtype=float)
    expected = []
    bound = zeta_min
    for _ in range(math.ceil(zeta_min / delta) + 3):
        inefficient = [g for g in counts.tolist() if curve[g] / g < bound]
        expected.append(inefficient[0] - 1 if inefficient else 1 << 40)
        bound -= delta
    distinct = [cap for cap, _ in itertools.groupby(expected)]
    assert caps(curves, zeta_min, delta)[:, 1].tolist() == distinct


def test_the_cap_is_relaxed_for_all_jobs_of_a_class_until_no_gpu_is_left():
    """Bound 0.7: one GPU each, three of five are left. Bound 0.5: four and one GPUs."""
    jobs = trace((0, 10, 4), (0, 10, 4), model="bump")
    policy = make("pcs", zeta_min=0.7, delta=0.2)
    assert gpus_at_time_zero(policy, jobs, 5, MODEL) == [4, 1]
    assert gpus_at_time_zero(policy, jobs, 2, MODEL) == [1, 1]


def test_the_cap_is_not_relaxed_if_no_gpu_is_left():
    """Efficiencies 1, 0.95, 0.7, 0.6 and bound 0.9: two GPUs for each of two jobs take all four."""
    jobs = trace((0, 10, 4), (0, 10, 4), model="steep")
    policy = make("pcs", zeta_min=0.9, delta=0.4)
    steep = SpeedUp({"steep": (1.0, 1.9, 2.1, 2.4)})
    assert gpus_at_time_zero(policy, jobs, 4, steep) == [2, 2]
    assert gpus_at_time_zero(policy, jobs, 5, steep) == [4, 1]
    # the third job takes the two GPUs of the first, and the second job gets no more
    jobs = trace((0, 10, 4), (0, 20, 4), (0, 20, 4), model="steep")
    spans = simulate(jobs, "1x4", policy, perf=steep).intervals
    assert [spans.loc[spans["job_id"] == job, "gpus"].iloc[0] for job in range(3)] == [2, 2, 2]


def test_whole_gpus_take_turns():
    """Each class has 1.5 of three GPUs. A turn lasts half of 100 s, the second job has the first.

    The job of 100 s on three GPUs needs 300 GPU-seconds, 1.5 a second.
    """
    jobs = trace((0, 100, 3), (0, 1000, 3))
    policy = make("pcs", thresholds=(500.0,), turn=100.0)
    result = simulate(jobs, "1x3", policy)
    spans = result.intervals
    first = spans[spans["job_id"] == 0]
    assert first["start"].tolist() == [0, 50, 100, 150]
    assert first["gpus"].tolist() == [1, 2, 1, 2]
    assert result.jobs["end_time"].tolist() == [200.0, pytest.approx(1100.0)]


def test_turns_begin_anew_at_an_arrival():
    """The third job, whose class has no share left, arrives within the second turn."""
    jobs = trace((0, 100, 3), (0, 1000, 3), (70, 1000, 3))
    policy = make("pcs", thresholds=(500.0,), turn=100.0)
    spans = simulate(jobs, "1x3", policy).intervals
    first = spans[spans["job_id"] == 0]
    # 1 GPU, at 50 s two, at 70 s one again for a whole turn, at 120 s two
    assert first["start"].tolist()[:4] == [0, 50, 70, 120]
    assert first["gpus"].tolist()[:4] == [1, 2, 1, 2]


def test_turns_begin_anew_at_a_completion():
    """Each class has one GPU of three until the first job, of 30 GPU-seconds, ends at 30 s.

    Then each of the others has 1.5. The last job has the pooled GPU first, for half of 100 s.
    """
    jobs = trace((0, 10, 3), (0, 100, 3), (0, 1000, 3))
    policy = make("pcs", thresholds=(50.0, 500.0), turn=100.0)
    result = simulate(jobs, "1x3", policy)
    spans = result.intervals
    second = spans[(spans["job_id"] == 1) & (spans["gpus"] == 2)]
    assert second["start"].tolist() == [80, 180]
    assert result.jobs["end_time"].tolist()[:2] == [30, 215]


def test_the_predicted_size_decides_the_class():
    """Sizes 10 and 40, predicted 40 and 10, threshold 20: the second job is in the first class."""
    jobs = trace((0, 10, 1), (0, 40, 1)).assign(predicted_duration=[40.0, 10.0])
    policy = make("pcs", thresholds=(20.0,), weights=(3.0, 1.0))
    assert gpus_at_time_zero(policy, jobs, 1) == [0.25, 0.75]


def test_classes_are_cut_where_sizes_vary_more_than_c2():
    """The job of 100 exceeds the bound and counts in no class; the threshold is 2."""
    assert class_thresholds(np.array([1.0, 2.0, 100.0, 110.0, 9000.0, 1e6]), 0.5).tolist() == [
        2,
        110,
    ]
    # thresholds are cut to whole seconds: the job of 2.9 falls into the next class
    assert class_thresholds(np.array([2.9, 2.8, 50.0]), 0.5).tolist() == [2]


def test_a_class_may_have_exactly_the_largest_variation():
    """The squared coefficient of variation of sizes a and b is ((b - a) / (b + a))^2."""
    assert class_thresholds(np.array([1.0, 3.0]), 0.25).tolist() == []
    # the job of 3.2 is in no class, and the next class begins with the job of 10
    assert class_thresholds(np.array([1.0, 3.2, 10.0, 30.0]), 0.25).tolist() == [1]
    assert class_thresholds(np.array([1.0, 3.2, 10.0, 32.0]), 0.25).tolist() == [1, 10]


@given(st.integers(1, 6), st.floats(-3, 3))
def test_weights_decay_and_sum_to_one(classes, decay):
    try:
        weights = decaying_weights(classes, decay)
    except ParamError as error:
        assert "rounds to 0" in str(error)
        return
    assert weights.sum() == pytest.approx(1) and (weights > 0).all()
    order = np.diff(weights)
    assert (order <= 2e-3).all() if decay >= 0 else (order >= -2e-3).all()


@pytest.mark.parametrize("weights", [(1e-300, 1e300), (1e308, 1e308)])
def test_weights_that_round_to_0_next_to_their_sum_are_refused(weights):
    policy = make("pcs", thresholds=(10.0,), weights=weights)
    with pytest.raises(ParamError, match="rounds to 0 next to the sum of all"):
        policy.class_weights(2)


def test_a_last_weight_that_rounds_to_0_is_refused():
    """One minus the other weights is above 0 by rounding, and does not replace it."""
    with pytest.raises(ParamError, match="one of 5 classes has a weight that rounds to 0"):
        decaying_weights(5, 1.98)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"thresholds": (5, 3)}, "thresholds are .* ascending"),
        ({"thresholds": (5,), "weights": (1,)}, "1 weights for 1 thresholds"),
        ({"thresholds": (5,), "weights": (1, 0)}, "weights is .* above 0"),
        ({"thresholds": (5,), "c2": 1.0, "decay": 1.0}, "thresholds and weights, or c2 and decay"),
        ({"c2": 1.0}, "c2 and decay go together"),
        ({"c2": -1.0, "decay": 1.0}, "c2 is -1.0; give a number of 0 or more"),
        ({"zeta_min": 1.5}, "zeta_min is 1.5; give a number from 0 to 1"),
        ({"delta": 0.0}, "delta is 0.0"),
        ({"delta": 0.9999995e-6}, "delta is 9.999995e-07"),
        ({"type_weights": ("v100:3:0",)}, "type_weights has 'v100:3:0'"),
        ({"type_weights": ("v100",)}, "type_weights has 'v100'"),
        ({"turn": -1.0}, "turn is -1.0"),
    ],
)
def test_bad_settings_are_refused_in_one_line(settings, message):
    with pytest.raises(ParamError, match=message) as caught:
        make("pcs", **settings)
    assert "\n" not in str(caught.value)


def test_the_cap_has_at_most_a_million_levels():
    assert make("pcs", delta=1e-6).delta == 1e-6
