"""The three readings of the Gittins formula, and the policy that ranks by them."""

import numpy as np
import pytest

from repro import make, simulate
from repro.base.errors import ParamError
from repro.papers.tiresias.examples import gittins_by_definition
from repro.policies.tiresias._gittins import TotalServiceIndex
from repro.policies.tiresias.gittins_2d import INDICES
from repro.testing import small_trace
from repro.trace.history import history

SAMPLES = np.array([4.0, 8.0, 12.0])


def test_total_service_index_is_the_ratio_over_every_quantum():
    rng = np.random.default_rng(0)
    for _ in range(20):
        samples = rng.integers(1, 30, rng.integers(1, 9)).astype(float)
        index = TotalServiceIndex(samples)
        for a in np.arange(0.0, samples.max() + 1, 0.5):
            longer = samples[samples > a]
            best = 0.0
            for end in longer:
                quantum = end - a
                served = np.where(longer <= end, longer, quantum).sum()
                best = max(best, (longer <= end).sum() / served)
            assert index(a) == pytest.approx(best)


def test_the_remaining_reading_equals_the_definition():
    rng = np.random.default_rng(1)
    samples = rng.integers(1, 40, 7).astype(float)
    index = INDICES["remaining"](samples)
    quanta = np.arange(0.5, 41, 0.5)
    fixed_quantum = make("gittins-2d", history=tuple(samples), delta=6.0).ranking()
    for a in range(40):
        assert index(float(a)) == pytest.approx(gittins_by_definition(samples, a, quanta))
        assert fixed_quantum(float(a)) == pytest.approx(gittins_by_definition(samples, a, 6.0))


@pytest.mark.parametrize("index", sorted(INDICES))
def test_every_job_completes_with_each_reading(index):
    policy = make("gittins-2d", history=(20, 40, 80), index=index, quantum=2.0)
    result = simulate(small_trace(), "1x4", policy)
    assert result.summary()["n_finished"] == 6


def test_the_index_is_0_beyond_the_longest_sample():
    assert [INDICES[name](SAMPLES)(12.0) for name in INDICES] == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"index": "sum"}, "give remaining or mean or total"),
        ({"quantum": 0.0}, "seconds above 0"),
        ({"delta": -1.0}, "GPU-seconds above 0"),
        ({"delta": 4.0, "index": "mean"}, "only with 'remaining'"),
    ],
)
def test_wrong_settings_are_refused(settings, message):
    with pytest.raises(ParamError, match=message):
        make("gittins-2d", history=(4, 8), **settings)


@pytest.mark.parametrize("source", [[[1, 2], [3, 4]], [[1, 2], [3]], ["x"], [None, "x"], [{}]])
def test_a_history_is_one_row_of_numbers(source):
    with pytest.raises(ParamError, match=r"^history is one list of numbers of GPU-seconds"):
        history(source)
