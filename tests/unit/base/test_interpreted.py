"""Loops are interpreted while that is quicker: the same bits, and nothing left of a failed try."""

from __future__ import annotations

import contextlib
import functools
import gc
import math
import sys
import time
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repro import make, simulate
from repro.base.compiled import CompiledFunction, njit
from repro.base.errors import ParamError
from repro.base.interpreted import (
    ENV_SECONDS,
    THREAD_STATE,
    Interpretation,
    compiled_only,
    seconds_allowed,
)
from repro.engine.select import queues
from repro.perf import SpeedUp

CURVES = SpeedUp({"flat": (1.0, 1.6, 1.9, 2.0, 2.0, 2.1, 2.1, 2.1), "bump": (1.0, 1.2, 2.4, 2.9)})
PCS = {"thresholds": (20.0, 60.0), "weights": (5.0, 3.0, 1.0), "zeta_min": 0.9, "delta": 0.07}
ELASTIC = {
    "fifo-elastic": {},
    "srsf-elastic": {},
    "afs": {},
    "max-min": {},
    "reservation": {},
    "themis": {"lease": 7.0},
    "pcs": PCS,
}
ORDERS = {"srtf": {}, "srsf": {}, "yarn-cs": {}, "las-2d": {}, "tiresias-l": {}}
#: settings of rules tiresias and muri, with which policies keep one list of unfinished jobs
EVENTS = {"thresholds": (20.0, 60.0), "exact_demotion": False, "history_ties": True}
LISTS = [
    ("srsf", {"history_ties": True}),
    ("tiresias-l", {**EVENTS, "promote_knob": 2.0}),
    ("tiresias-l", {**EVENTS, "whole_second_limits": True, "skip_queues": True}),
    ("tiresias-g", {**EVENTS, "history": (5.0, 9.0, 30.0, 80.0, 200.0)}),
    ("gittins-2d", {"history": (5.0, 9.0, 30.0, 80.0, 200.0)}),
]
TYPED = {"gavel-las": {}, "las-agnostic": {}, "gavel-fifo": {}}
#: cluster, performance model and policies that run on it
SETTINGS = [
    *[("1x5", CURVES, name, more) for name, more in ELASTIC.items()],
    *[("2x4", None, name, more) for name, more in {**ORDERS, "gandiva": {}}.items()],
    *[("2x4", None, name, more) for name, more in LISTS],
    *[("4xk80,4xv100", None, name, more) for name, more in TYPED.items()],
]


@functools.cache
def compiled_functions(num_modules):
    """All compiled functions; a new search after an import, since each takes a second."""
    return [found for found in gc.get_objects() if type(found) is CompiledFunction]


@contextlib.contextmanager
def code_forgotten(*, interpret):
    """Let no function have machine code, and interpret all of them or none."""
    functions = compiled_functions(len(sys.modules))
    before = [dict(function.__dict__) for function in functions]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(ENV_SECONDS, "inf" if interpret else "0")
        for function in functions:
            if interpret:
                function.__dict__.pop("kernel", None)
            function.__dict__["_interpretation"] = Interpretation(function.py_func, None)
        try:
            yield
        finally:
            for function, state in zip(functions, before, strict=True):
                kernel = function.__dict__.get("kernel")
                function.__dict__.clear()
                function.__dict__.update(state)
                if kernel is not None:
                    function.__dict__["kernel"] = kernel


@st.composite
def traces(draw):
    count = draw(st.integers(1, 12))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    model = rng.choice(np.array(["flat", "bump", None], dtype=object), count)
    most = np.where(model == "bump", 4, 5)
    return pd.DataFrame(
        {
            "job_id": range(count),
            "submit_time": np.cumsum(rng.integers(0, 12, count)).astype(float),
            "duration": rng.choice([rng.uniform(1, 40), 10.0, 7.5], count),
            "num_gpus": np.minimum(rng.integers(1, most + 1), 4),
            "model": model,
        }
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cluster", "perf", "name", "more"), SETTINGS, ids=[row[2] for row in SETTINGS]
)
@given(trace=traces())
@settings(max_examples=15)
def test_interpreted_and_compiled_are_the_same_to_the_last_bit(cluster, perf, name, more, trace):
    results = []
    for interpret in (True, False):
        with code_forgotten(interpret=interpret):
            results.append(simulate(trace, cluster, make(name, **more), perf=perf))
    first, second = results
    pd.testing.assert_frame_equal(first.jobs, second.jobs, check_exact=True)
    pd.testing.assert_frame_equal(first.intervals, second.intervals, check_exact=True)
    assert first.summary().keys() == second.summary().keys()


def test_functions_that_add_floats_in_another_order_are_not_interpreted(monkeypatch):
    """Of NumPy's functions in compiled loops only sums of floats have an order that differs."""
    monkeypatch.setenv(ENV_SECONDS, "10")

    with code_forgotten(interpret=True):
        for function in (summed, sum_of_parts):
            assert function(np.ones(3)) == 3.0
            assert "kernel" in function.__dict__


def test_predictions_are_the_same_to_the_last_bit():
    trace = pd.DataFrame(
        {
            "job_id": range(30),
            "submit_time": np.arange(30) * 3.0,
            "duration": np.random.default_rng(3).uniform(1, 40, 30),
            "num_gpus": 2,
            "model": "flat",
        }
    )
    jobs = []
    for interpret in (True, False):
        with code_forgotten(interpret=interpret):
            result = simulate(trace, "1x5", make("pcs", **PCS), perf=CURVES, predict=30)
            jobs.append(result.jobs)
    pd.testing.assert_frame_equal(*jobs, check_exact=True)


class Pair(NamedTuple):
    counts: np.ndarray
    total: float


@njit()
def add_one(counts):
    counts += 1


@njit(exact=False)
def summed(counts):
    return counts.sum()


@njit()
def sum_of_parts(counts):
    return summed(counts)


def endless(pair, steps):
    """Change an array for ever, as long as nothing stops it."""
    for _ in range(steps):
        pair.counts[:] += 1
        add_one(pair.counts)
    return Pair(pair.counts, pair.counts[0])


def test_a_try_that_takes_too_long_leaves_the_arrays_as_they_were(monkeypatch, tmp_path):
    monkeypatch.setenv(ENV_SECONDS, "0.05")
    pair = Pair(np.zeros(3), 0.0)
    note = tmp_path / "note"
    interpretation = Interpretation(endless, note)
    began = time.perf_counter()
    assert interpretation.try_once((pair, 10**9), {}) == (False, None)
    assert time.perf_counter() - began < 5
    assert pair.counts.tolist() == [0, 0, 0]
    assert THREAD_STATE.deadline is None
    assert note.read_text() == "inf"
    # the next process, and the next call, do not try again
    assert Interpretation(endless, note).try_once((pair, 1), {}) == (False, None)
    assert interpretation.try_once((pair, 1), {}) == (False, None)


def test_a_result_has_numbers_of_python(monkeypatch):
    monkeypatch.setenv(ENV_SECONDS, "10")
    is_done, result = Interpretation(endless, None).try_once((Pair(np.zeros(3), 0.0), 2), {})
    assert is_done and isinstance(result, Pair)
    assert type(result.total) is float and result.total == 4.0


def test_seconds_add_up_over_processes(monkeypatch, tmp_path):
    monkeypatch.setenv(ENV_SECONDS, "0.3")
    note = tmp_path / "note"

    def slow(counts):
        time.sleep(0.2)
        return counts[0]

    for done in (True, True, False):
        assert Interpretation(slow, note).try_once((np.zeros(1),), {})[0] is done
    assert note.read_text() == "inf"
    note.write_text("half a num")
    assert Interpretation(slow, note).try_once((np.zeros(1),), {})[0]


def test_an_error_of_the_loop_is_left_to_the_compiled_loop(monkeypatch):
    monkeypatch.setenv(ENV_SECONDS, "10")

    def divide(counts):
        counts[:] = 7
        return 1 / 0

    counts = np.ones(2)
    assert Interpretation(divide, None).try_once((counts,), {}) == (False, None)
    assert counts.tolist() == [1, 1]


def test_arguments_that_cannot_be_restored_are_compiled_at_once(monkeypatch):
    monkeypatch.setenv(ENV_SECONDS, "10")
    assert Interpretation(len, None).try_once(([1, 2],), {}) == (False, None)


@pytest.mark.parametrize(("text", "seconds"), [("0", 0), ("2.5", 2.5), ("inf", math.inf), ("", 2)])
def test_seconds_are_those_of_the_environment(monkeypatch, text, seconds):
    monkeypatch.setenv(ENV_SECONDS, text)
    assert seconds_allowed() == seconds
    monkeypatch.delenv(ENV_SECONDS)
    assert seconds_allowed() == 2


@pytest.mark.parametrize("text", ["soon", "nan", "-1", "-inf"])
def test_wrong_seconds_are_an_error(monkeypatch, text):
    monkeypatch.setenv(ENV_SECONDS, text)
    with pytest.raises(ParamError, match=f"^{ENV_SECONDS}={text}: give seconds of 0 or more"):
        seconds_allowed()


def test_measurements_of_time_interpret_nothing(monkeypatch):
    monkeypatch.setenv(ENV_SECONDS, "10")
    with code_forgotten(interpret=True), compiled_only():
        simulate(
            pd.DataFrame({"job_id": [0], "submit_time": 0.0, "duration": 5.0, "num_gpus": 1}),
            "1x1",
            "srtf",
        )
        assert "kernel" in queues.simulate_events.__dict__
    assert not THREAD_STATE.is_compiled_only
