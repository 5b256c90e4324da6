"""Rates and paces of a performance model that no job can have: one line names model and job."""

import math
import re
from array import array

import numpy as np
import pandas as pd
import pytest

from repro import Policy, RunSet, simulate
from repro.base.errors import ParamError, PolicyError
from repro.files.checks import shown
from repro.model.decision import Run
from repro.perf import Interleaving
from repro.perf.on_types import OnTypes
from repro.perf.overhead import StartOverhead
from repro.perf.throughput import ThroughputTable
from repro.testing import small_trace


class Answers:
    """A performance model that gives one answer for every gang."""

    def __init__(self, answer):
        self.answer = answer

    def rates(self, table, run, nodes):
        return self.answer


class Paces(Answers):
    def rates(self, table, run, nodes):
        return [1.0]

    def paces(self, table, run, nodes):
        return self.answer


def refusal_of(perf, **options):
    with pytest.raises(ParamError) as caught:
        simulate(small_trace().head(1), "1x4", "best-effort", perf=perf, **options)
    return str(caught.value)


@pytest.mark.parametrize("options", [{}, {"slowdown": 2}], ids=["alone", "slowed"])
@pytest.mark.parametrize("rate", [math.inf, math.nan, -1.0, "1", None])
def test_a_rate_that_no_job_can_have_is_refused(rate, options):
    assert refusal_of(Answers([rate]), **options) == (
        f"performance model Answers: `rates` is {rate!r} for job 0; "
        f"give a finite number of 0 or more"
    )


@pytest.mark.parametrize("options", [{}, {"slowdown": 2}], ids=["alone", "slowed"])
@pytest.mark.parametrize(
    "rates",
    [
        0.5,
        [],
        [1.0, 1.0],
        None,
        {0: 1.0},
        {1.0},
        {0: 1.0}.values(),
        "1",
        b"1",
        memoryview(b"1"),
        np.ones(()),
        np.ones((1, 1)),
        pd.DataFrame({"rate": [1.0]}),
    ],
    ids=lambda rates: type(rates).__name__,
)
def test_a_gang_has_a_rate_per_member(rates, options):
    assert refusal_of(Answers(rates), **options) == (
        f"performance model Answers: `rates` is {shown(repr(rates))} for the gang of job 0; "
        f"give a list of a number per job, here 1"
    )


@pytest.mark.parametrize("policy", ["best-effort", "gavel-las"])
@pytest.mark.parametrize(
    "rates",
    [(0.5,), np.array([0.5]), pd.Series([0.5], index=[7]), array("d", [0.5])],
    ids=lambda rates: type(rates).__name__,
)
def test_rates_are_any_sequence_of_numbers(rates, policy):
    options = {"rounds": {"ideal": "fluid"}} if policy == "gavel-las" else {}
    result = simulate(small_trace().head(1), "1x4", policy, perf=Answers(rates), **options)
    assert result.jobs["jct"].tolist() == [20.0]


@pytest.mark.parametrize(
    ("rates", "fault"),
    [
        (lambda self, table, run, nodes: 1 / 0, "ZeroDivisionError: .*:[0-9]+ in <lambda>"),
        (lambda self, table: [1.0], "TypeError: .*takes 2 positional .*test_rates.py:[0-9]+"),
    ],
)
@pytest.mark.parametrize("options", [{}, {"slowdown": 2}], ids=["alone", "slowed"])
def test_a_model_whose_code_fails_is_named(rates, fault, options):
    perf = type("Slow", (), {"rates": rates, "__module__": __name__})()
    message = refusal_of(perf, **options)
    assert re.match(f"performance model Slow, job 0: `rates` fails: {fault}", message)
    assert message.count("\n") == 0


@pytest.mark.parametrize("overhead", [None, StartOverhead()], ids=["none", "every interval"])
def test_a_job_without_speed_is_refused(overhead):
    trace = small_trace().head(1).assign(model="vgg16")
    with pytest.raises(PolicyError, match="policy 'best-effort' runs job 0 at rate 0"):
        simulate(trace, "1x4", "best-effort", perf=Answers([0.0]), overhead=overhead)


@pytest.mark.parametrize("base", [Interleaving(), Answers([1.0])], ids=["with paces", "rates"])
@pytest.mark.parametrize("overhead", [None, StartOverhead()], ids=["none", "every interval"])
def test_a_job_on_a_gpu_type_that_cannot_run_its_model_is_refused(base, overhead):
    class OnK80(Policy):
        def decide(self, view):
            return RunSet([Run((0,), 1, "k80")])

    trace = small_trace().head(1).assign(model="vgg16", num_gpus=1)
    perf = OnTypes(base, ThroughputTable.of({"vgg16": {"v100": 4.0, "k80": 0.0}}, "v100"))
    message = r"job 0 runs on GPUs of type 'k80', on which the throughput table has 0 steps/s for"
    with pytest.raises(PolicyError, match=message):
        simulate(trace, "1xv100,1xk80", OnK80(), perf=perf, overhead=overhead)


@pytest.mark.parametrize(
    ("paces", "message"),
    [
        ([0.0], "`paces` is 0.0 for job 0; give a finite number above 0"),
        ([math.nan], "`paces` is nan for job 0; give a finite number above 0"),
        (2.0, "`paces` is 2.0 for the gang of job 0; give a list of a number per job, here 1"),
        (
            {0: 2},
            "`paces` is {0: 2} for the gang of job 0; give a list of a number per job, here 1",
        ),
    ],
)
def test_paces_are_checked_as_rates(paces, message):
    trace = small_trace().head(1).assign(model="vgg16")
    with pytest.raises(ParamError) as caught:
        simulate(trace, "1x4", "best-effort", perf=Paces(paces), overhead=StartOverhead())
    assert str(caught.value) == f"performance model Paces: {message}"
