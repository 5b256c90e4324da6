"""Gittins indices against the definition, evaluated sample by sample."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repro.policies.tiresias._gittins import (
    GittinsIndex,
    MeanServiceIndex,
    TotalServiceIndex,
    TotalServiceTable,
    _gittins,
)

SAMPLES = st.lists(st.integers(1, 60), min_size=1, max_size=25)


def ratio(samples, attained, delta):
    """P(S - a <= D | S > a) / E[min(S - a, D) | S > a], each by its definition."""
    remaining = [s - attained for s in samples if s > attained]
    if not remaining:
        return 0.0
    probability = sum(service <= delta for service in remaining) / len(remaining)
    return probability / (sum(min(service, delta) for service in remaining) / len(remaining))


def supremum(samples, attained):
    return max((ratio(samples, attained, s - attained) for s in samples if s > attained), default=0)


@given(samples=SAMPLES, attained=st.integers(0, 70))
@settings(max_examples=300)
def test_the_index_equals_the_supremum(samples, attained):
    index = GittinsIndex(np.array(samples, float))
    assert index(attained) == pytest.approx(supremum(samples, attained))


@given(samples=SAMPLES, attained=st.floats(0, 70))
@settings(max_examples=200)
def test_the_index_equals_the_supremum_between_samples(samples, attained):
    index = GittinsIndex(np.array(samples, float))
    assert index(attained) == pytest.approx(supremum(samples, attained), rel=1e-6)


@given(samples=SAMPLES, attained=st.integers(0, 70), delta=st.integers(1, 80))
@settings(max_examples=200)
def test_an_index_of_one_quantum_equals_the_ratio(samples, attained, delta):
    index = GittinsIndex(np.array(samples, float), float(delta))
    assert index(attained) == pytest.approx(ratio(samples, attained, delta))


@given(samples=SAMPLES, attained=st.integers(0, 70))
def test_an_infinite_quantum_gives_the_inverse_of_the_mean_remaining_service(samples, attained):
    remaining = [s - attained for s in samples if s > attained]
    expected = 1 / np.mean(remaining) if remaining else 0.0
    index = GittinsIndex(np.array(samples, float), float("inf"))
    assert index(attained) == pytest.approx(expected)


@given(samples=SAMPLES, attained=st.integers(0, 70))
def test_the_mean_index_is_the_inverse_of_the_mean_service(samples, attained):
    longer = [s for s in samples if s > attained]
    expected = 1 / np.mean(longer) if longer else 0.0
    assert MeanServiceIndex(np.array(samples, float))(attained) == pytest.approx(expected)


def test_a_large_history_is_built_and_read_quickly():
    """O(n log n) once and O(log n) per look-up: 200,000 samples, 20,000 look-ups."""
    rng = np.random.default_rng(0)
    samples = np.unique(rng.lognormal(8, 2, 200_000))
    index = GittinsIndex(samples)
    for attained in rng.lognormal(8, 2, 20_000).tolist():
        index(attained)
    few = GittinsIndex(samples[::1000])
    assert few(samples[5000]) == pytest.approx(supremum(samples[::1000].tolist(), samples[5000]))


def test_an_increasing_hazard_raises_the_index_and_a_decreasing_one_lowers_it():
    equal_services = GittinsIndex(np.array([10.0] * 5))
    assert equal_services(0) < equal_services(5) < equal_services(9)
    heavy_tail = GittinsIndex(np.array([1.0, 2, 4, 8, 16, 32, 64, 128, 256]))
    assert heavy_tail(0) > heavy_tail(4) > heavy_tail(64)


def test_the_table_of_one_sample():
    table = TotalServiceTable(np.array([5.0]), 10.0)
    assert table(0) == 0.0
    assert table(5) == 0.0


def test_the_table_rounds_halves_up():
    """P = 1 / 64 = 0.015625 is 0.01563, E = floor((10 + 63 * 5) / 64) = 5, G = 1e6 P / E."""
    table = TotalServiceTable(np.arange(10.0, 650.0, 10.0), 5.0)
    assert table(0) == 3126.0


@pytest.mark.parametrize(
    "make_index",
    [
        GittinsIndex,
        lambda samples: GittinsIndex(samples, 20.0),
        MeanServiceIndex,
        TotalServiceIndex,
        lambda samples: TotalServiceTable(samples, 20.0),
    ],
)
@given(samples=SAMPLES, attained=st.lists(st.floats(0, 70) | st.integers(0, 70), max_size=9))
@settings(max_examples=50)
def test_indices_at_several_services_are_those_at_each(make_index, samples, attained):
    index = make_index(np.array(samples, float))
    assert index.of(np.array(attained, float)).tolist() == [index(service) for service in attained]


@pytest.mark.parametrize("sample", [0.45, 3.2])
def test_a_service_one_rounding_error_below_a_sample_has_an_infinite_index(sample):
    """X of the sample and of the attained service are then the same number."""
    hull = GittinsIndex(np.array([0.45, 0.45, 0.45, 0.45, 3.2]))._hull
    attained = np.array([np.nextafter(sample, 0.0)])
    indices = np.zeros(1)
    # interpreted, a division by zero would be infinite, too
    getattr(_gittins, "kernel", _gittins)(hull, 0.0, attained, indices)
    assert indices[0] == np.inf


ONE_ULP_APART = [3.3, 3 * 1.1, 3 * 1.1 + 4e-16, 3.4]


@pytest.mark.parametrize("short", [0, 20, 1000])
def test_samples_that_differ_only_by_rounding_count_as_equal(short):
    """A sum of many short samples does not resolve the last bit of a long one."""
    close = GittinsIndex(np.array([1.0] * short + ONE_ULP_APART))
    equal = GittinsIndex(np.array([1.0] * short + [3.3] * 3 + [3.4]))
    for attained in (0.0, 0.5, 1.0, 2.0, 3.0, 3.35):
        assert close(attained) == pytest.approx(equal(attained))
    assert close(3.4) == 0.0


@given(
    samples=st.lists(st.integers(1, 10), min_size=1, max_size=40),
    factor=st.sampled_from([0.1, 1.1, 1e5 / 3]),
    attained=st.floats(0, 11),
)
@settings(max_examples=300)
def test_an_index_exists_for_samples_with_rounding_errors(samples, factor, attained):
    """Products of durations and GPUs: 3 * 1.1 is one rounding error above 3.3."""
    products = [sample * factor for sample in samples]
    products += [sum([factor] * sample) for sample in samples]
    index = GittinsIndex(np.array(products))(attained * factor)
    assert index >= 0.0
