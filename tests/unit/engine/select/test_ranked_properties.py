"""The incremental selection gives the schedule of a naive full scan, ties included."""

from __future__ import annotations

import contextlib
from typing import ClassVar
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_scan import first_come, gittins, preemptive

from repro import simulate
from repro.model.performance import Overhead
from repro.model.policy import make

# left out by `make check`
pytestmark = pytest.mark.slow

EXAMPLES = settings(max_examples=200)


@st.composite
def integer_rows(draw, widths=(1, 2, 3, 4, 6, 8)):
    """Few distinct numbers, so that arrivals, completions, keys and widths tie all the time."""
    n = draw(st.integers(1, 16))
    gaps = draw(st.lists(st.integers(0, 6), min_size=n, max_size=n))
    works = draw(st.lists(st.integers(1, 16), min_size=n, max_size=n))
    sizes = draw(st.lists(st.sampled_from(widths), min_size=n, max_size=n))
    # the clock starts at the first submission
    submits = (np.cumsum(gaps) - gaps[0]).tolist()
    return [(float(s), float(w), g) for s, w, g in zip(submits, works, sizes, strict=True)]


def float_rows(seed, n=60, widths=(1, 1, 1, 2, 3, 4, 8)):
    rng = np.random.default_rng(seed)
    gaps = rng.exponential(3.0, n)
    submits = (np.cumsum(gaps) - gaps[0]).tolist()
    works = rng.lognormal(1.5, 1.0, n).tolist()
    return list(zip(submits, works, rng.choice(widths, n).tolist(), strict=True))


def trace_of(rows):
    submits, works, widths = zip(*rows, strict=True)
    return pd.DataFrame(
        {
            "job_id": range(len(rows)),
            "submit_time": submits,
            "duration": works,
            "num_gpus": widths,
        }
    )


def agree(rows, cluster, policy, naive, tolerance=0.0, **options):
    trace = trace_of(rows)
    for event_by_event in (False, True):
        with event_by_event_if(event_by_event):
            jobs = simulate(trace, cluster, policy, **options).jobs
        same(jobs, naive, tolerance)


def event_by_event_if(wanted):
    """Keep a run out of the compiled loops that simulate it whole."""
    hidden = patch("repro.engine.simulate.simulate_compiled", lambda setup: None)
    return hidden if wanted else contextlib.nullcontext()


def same(jobs, naive, tolerance):
    np.testing.assert_allclose(jobs.end_time, [float(job.end) for job in naive], rtol=tolerance)
    np.testing.assert_allclose(
        jobs.start_time, [float(job.first_start) for job in naive], rtol=tolerance
    )
    assert jobs.preemptions.tolist() == [job.preemptions for job in naive]
    assert jobs.promotions.tolist() == [job.promotions for job in naive]


@pytest.mark.parametrize("name", ["sf", "srtf", "srsf"])
@given(rows=integer_rows())
@EXAMPLES
def test_known_durations(name, rows):
    agree(rows, "1x8", name, preemptive(rows, 8, name))


@given(rows=integer_rows(), quantum=st.sampled_from([1.0, 2.0, 5.0]))
@EXAMPLES
def test_las_with_quantum(rows, quantum):
    agree(
        rows, "1x8", make("las-2d", quantum=quantum), preemptive(rows, 8, "las-2d", quantum=quantum)
    )


# divisible by every width: all instants stay exact in floats
LIMITS = st.sampled_from([(24.0,), (24.0, 48.0), (24.0, 72.0, 96.0)])


@given(rows=integer_rows(), limits=LIMITS)
@EXAMPLES
def test_tiresias_l(rows, limits):
    agree(
        rows,
        "1x8",
        make("tiresias-l", thresholds=limits),
        preemptive(rows, 8, "tiresias-l", limits=limits),
    )


@given(rows=integer_rows(), limits=LIMITS, knob=st.sampled_from([0.25, 0.5, 1.0, 2.0, 4.0]))
@EXAMPLES
def test_tiresias_l_with_promotion(rows, limits, knob):
    agree(
        rows,
        "1x8",
        make("tiresias-l", thresholds=limits, promote_knob=knob),
        preemptive(rows, 8, "tiresias-l", limits=limits, knob=knob),
    )


SERVICES = st.lists(st.integers(1, 90), min_size=1, max_size=6)


@given(rows=integer_rows(), limits=LIMITS, samples=SERVICES)
@EXAMPLES
def test_tiresias_g(rows, limits, samples):
    agree(
        rows,
        "1x8",
        make("tiresias-g", thresholds=limits, history=tuple(samples)),
        preemptive(rows, 8, gittins(samples, limits), limits=limits),
    )


class ByWidth:
    """A performance model: speed depends on the gang size alone."""

    RATES: ClassVar[dict[int, float]] = {1: 1.0, 2: 0.5, 3: 2.0, 4: 0.25, 6: 1.0, 8: 4.0}

    def rates(self, table, run, nodes):
        return [self.RATES[table.gpus[run.jobs[0]]]]


class Load(Overhead):
    """Resuming takes a while during which GPUs are held and nothing progresses."""

    RESUME = 3.0

    def pause_s(self, table, job):
        return 0.0

    def resume_s(self, table, job):
        return self.RESUME


CASES = [
    ("srtf", {}, {}),
    ("srsf", {}, {}),
    ("las-2d", {"quantum": 5.0}, {"quantum": 5.0}),  # longer than resuming takes
    ("tiresias-l", {"thresholds": (24.0,)}, {"limits": (24.0,)}),
]


@pytest.mark.parametrize(("name", "settings", "naive"), CASES, ids=[case[0] for case in CASES])
@given(rows=integer_rows())
@EXAMPLES
def test_rates_other_than_one(name, settings, naive, rows):
    reference = preemptive(rows, 8, name, rates=ByWidth.RATES, **naive)
    agree(rows, "1x8", make(name, **settings), reference, perf=ByWidth())


@pytest.mark.parametrize(("name", "settings", "naive"), CASES, ids=[case[0] for case in CASES])
@given(rows=integer_rows())
@EXAMPLES
def test_resuming_takes_time(name, settings, naive, rows):
    reference = preemptive(rows, 8, name, resume=3, **naive)
    agree(rows, "1x8", make(name, **settings), reference, overhead=Load())


@pytest.mark.parametrize("placement", ["count", "yarn"])
@pytest.mark.parametrize("name", ["yarn-cs", "best-effort"])
@given(rows=integer_rows(widths=(1, 2, 3, 4, 6, 8, 12)))
@EXAMPLES
def test_first_come(name, placement, rows):
    naive = first_come(rows, [4, 4, 4], blocking=name == "yarn-cs", consolidate=placement == "yarn")
    agree(rows, "3x4", name, naive, placement=placement)


# 1.37: no two instants of different jobs coincide but for rounding (1.5 * 7 / 3 = 7 / 2 would)
@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize(
    ("name", "options", "naive"),
    [
        ("sf", {}, {}),
        ("srtf", {}, {}),
        ("srsf", {}, {}),
        ("las-2d", {"quantum": 1.0}, {"quantum": 1.0}),
        ("tiresias-l", {"thresholds": (7.0, 31.0)}, {"limits": (7.0, 31.0)}),
        (
            "tiresias-l",
            {"thresholds": (7.0, 31.0), "promote_knob": 1.37},
            {"limits": (7.0, 31.0), "knob": 1.37},
        ),
    ],
    ids=["sf", "srtf", "srsf", "las-2d", "tiresias-l", "tiresias-l-promote"],
)
def test_float_times(name, options, naive, seed):
    rows = float_rows(seed)
    reference = preemptive(rows, 8, name, **naive)
    assert name == "sf" or sum(job.preemptions for job in reference) > 5
    agree(rows, "1x8", make(name, **options), reference, tolerance=1e-9)
