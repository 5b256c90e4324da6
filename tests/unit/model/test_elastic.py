"""A policy of ten lines on `Elastic`: completion times by hand, and wrong answers refused."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import dataclass

import pandas as pd
import pytest

from repro import simulate
from repro.base.errors import PolicyError
from repro.model.elastic import Elastic
from repro.perf import SpeedUp


@dataclass(frozen=True)
class Ranked(Elastic):
    """All it asks for to the first; ``narrow``: fewest GPUs first."""

    narrow: bool = False

    def key(self, view, job):
        return view.gpus(job) if self.narrow else view.submit(job)


@dataclass(frozen=True)
class Halves(Elastic):
    """Half of what is left to each job in turn."""

    def grants(self, view, total):
        for job in view.jobs:
            total -= (gpus := min(total / 2, view.gpus(job)))
            yield job, gpus


@dataclass(frozen=True)
class Fixed(Elastic):
    """The same answer at every event."""

    answer: tuple = ()

    def grants(self, view, total):
        return self.answer


def jct(policy, *gpus, **settings):
    frame = pd.DataFrame({"num_gpus": gpus, "submit_time": 0.0, "duration": 10.0, "model": "vgg"})
    jobs = frame.assign(job_id=range(len(gpus)))
    return simulate(jobs, "1x4", policy, **settings).jobs["jct"].tolist()


@pytest.mark.parametrize(
    ("narrow", "times"),
    [
        (False, [10, 20]),  # the first takes all four GPUs, the second waits
        (True, [15, 10]),  # two for each, so the wide job does half its work in 10 s
    ],
)
def test_the_smallest_key_takes_what_it_asks_for(narrow, times):
    assert jct(Ranked(narrow), 4, 2) == times


def test_speed_follows_the_curve_of_the_model():
    """S(2) / S(4) = 2/3: the wide job does 20/3 of its 10 s, then all four GPUs are its own."""
    curve = SpeedUp({"vgg": (1.0, 2.0, 2.5, 3.0)})
    assert jct(Ranked(narrow=True), 4, 2, perf=curve) == pytest.approx([10 + 10 / 3, 10])


def test_fractions_of_gpus():
    """Two GPUs and one: the first is done at 20 s, the second has half its work left for two."""
    assert jct(Halves(), 4, 4) == [20, 30]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (((0, 3), (1, 2)), "time 0 s, job 1: gives it 2 GPUs, but only 1 are free"),
        (((0, 5),), "job 0: gives it 5 GPUs, but only 4 are free"),
        (((0, 0),), "job 0: gives it 0 GPUs; give more than 0"),
        (((0, 1), (0, 1)), "job 0: names the job twice"),
    ],
)
def test_wrong_grants_are_refused_in_one_line(answer, says):
    with pytest.raises(PolicyError, match=says) as caught:
        jct(Fixed(answer), 4, 4)
    assert "\n" not in str(caught.value)


def test_a_generator_without_end_is_refused():
    @dataclass(frozen=True)
    class Endless(Elastic):
        def grants(self, view, total):
            return itertools.repeat((0, 1))

    with pytest.raises(PolicyError, match="job 0: names the job twice"):
        jct(Endless(), 4, 4)


@pytest.mark.parametrize("key", [math.nan, "a", None, [1], (1, math.nan), ()])
def test_a_key_is_a_number_or_a_tuple_of_numbers(key):
    @dataclass(frozen=True)
    class Keyed(Elastic):
        def key(self, view, job):
            return key if job else 1

    message = f"the key of job 1 is {re.escape(repr(key))}; return a number, or tuples of numbers"
    with pytest.raises(PolicyError, match=message):
        jct(Keyed(), 4, 2)


def test_a_policy_without_a_rule_is_refused():
    with pytest.raises(PolicyError, match="defines neither `key` nor `grants`"):
        jct(Elastic(), 4)


def test_gpus_of_two_types_without_speeds_are_divided_as_one_pool():
    jobs = pd.DataFrame({"job_id": [0], "submit_time": 0.0, "duration": 1.0, "num_gpus": 2})
    result = simulate(jobs, "1xv100,1xk80", Ranked())
    assert result.intervals["gpus"].tolist() == [2.0]
