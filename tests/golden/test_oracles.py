"""Queues with a known mean response time: the engine agrees within three standard errors."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from repro import simulate
from repro.model.decision import Shares
from repro.model.policy import Policy, make

LOAD = 0.7
BATCHES = 20


@dataclass(frozen=True)
class EqualShares(Policy):
    """Processor sharing on one GPU."""

    def decide(self, view):
        jobs = tuple(view.jobs)
        return Shares(jobs, (None,), np.full((len(jobs), 1), 1.0 / len(jobs)))


@dataclass(frozen=True)
class Exponential:
    mean: float = 1.0

    def sample(self, rng, n):
        return rng.exponential(self.mean, n)

    def tail(self, x):
        return math.exp(-x / self.mean)

    def second_moment(self):
        return 2 * self.mean**2


@dataclass(frozen=True)
class TwoPhases:
    """Short with probability p, else long: squared coefficient of variation about 3."""

    p: float = 0.8
    short: float = 0.45
    long: float = 3.2

    @property
    def mean(self):
        return self.p * self.short + (1 - self.p) * self.long

    def sample(self, rng, n):
        return rng.exponential(np.where(rng.random(n) < self.p, self.short, self.long))

    def tail(self, x):
        return self.p * math.exp(-x / self.short) + (1 - self.p) * math.exp(-x / self.long)

    def density(self, x):
        return self.p / self.short * math.exp(-x / self.short) + (
            1 - self.p
        ) / self.long * math.exp(-x / self.long)

    def second_moment(self):
        return 2 * (self.p * self.short**2 + (1 - self.p) * self.long**2)


def poisson_trace(law, n, servers=1, seed=1):
    rng = np.random.default_rng(seed)
    submits = np.cumsum(rng.exponential(law.mean / (LOAD * servers), n))
    return pd.DataFrame(
        {
            "job_id": np.arange(n),
            "submit_time": submits,
            "duration": law.sample(rng, n),
            "num_gpus": np.ones(n, np.int64),
        }
    )


def agrees(result, expected, slack=0.0):
    """Compare by batch means after a warm-up of a tenth; slack is a known bias."""
    jct = result.jobs["jct"].to_numpy()
    kept = jct[len(jct) // 10 :]
    means = np.array([part.mean() for part in np.array_split(kept, BATCHES)])
    error = means.std(ddof=1) / math.sqrt(BATCHES)
    assert error < 0.12 * expected, "too few jobs for a test of anything"
    assert abs(means.mean() - expected) < 3 * error + slack


def erlang_c(servers, load):
    offered = servers * load
    terms = [offered**k / math.factorial(k) for k in range(servers)]
    last = offered**servers / math.factorial(servers) / (1 - load)
    return last / (sum(terms) + last)


@pytest.mark.parametrize("servers", [1, 3, 16])
@pytest.mark.parametrize("name", ["yarn-cs", "best-effort"])
def test_mmc_fifo(name, servers):
    law = Exponential()
    wait = erlang_c(servers, LOAD) * law.mean / (servers * (1 - LOAD))
    trace = poisson_trace(law, 15_000, servers)
    agrees(simulate(trace, f"1x{servers}", name, placement="count"), law.mean + wait)


@pytest.mark.parametrize("law", [Exponential(), TwoPhases()])
def test_mg1_fifo(law):
    rate = LOAD / law.mean
    wait = rate * law.second_moment() / (2 * (1 - LOAD))  # Pollaczek and Khinchine
    agrees(simulate(poisson_trace(law, 20_000), "1x1", "yarn-cs"), law.mean + wait)


@pytest.mark.parametrize("law", [Exponential(), TwoPhases()])
def test_mg1_processor_sharing(law):
    """Insensitive: the mean alone counts."""
    result = simulate(poisson_trace(law, 8_000), "1x1", EqualShares(), rounds={"ideal": "fluid"})
    agrees(result, law.mean / (1 - LOAD))


STEP = 0.01
X = np.arange(0.0, 60.0, STEP)


def integral(values):
    """Return the integral from 0 to each point of X."""
    return np.concatenate([[0.0], np.cumsum((values[1:] + values[:-1]) / 2 * STEP)])


def foreground_background(law):
    """Integrate Schrage's conditional response time over the service law."""
    rate = LOAD / law.mean
    tail = np.array([law.tail(x) for x in X])
    idle = 1 - rate * integral(tail)
    response = rate * integral(2 * X * tail) / 2 / idle**2 + X / idle
    return float((-np.diff(tail) * (response[1:] + response[:-1]) / 2).sum())


@pytest.mark.parametrize("law", [Exponential(), TwoPhases()])
def test_mg1_foreground_background(law):
    """Continuous 2D-LAS with a quantum far below the jobs."""
    quantum = 0.05
    result = simulate(poisson_trace(law, 6_000), "1x1", make("las-2d", quantum=quantum))
    agrees(result, foreground_background(law), slack=quantum)


def test_foreground_background_formula():
    """For exponential service every blind discipline has the mean of FIFO."""
    assert foreground_background(Exponential()) == pytest.approx(1 / (1 - LOAD), rel=1e-3)


def test_mg1_shortest_remaining_time():
    """Schrage and Miller."""
    law = TwoPhases()
    rate = LOAD / law.mean
    tail = np.array([law.tail(x) for x in X])
    density = np.array([law.density(x) for x in X])
    idle = 1 - rate * integral(X * density)
    waiting = rate * (integral(X**2 * density) + X**2 * tail) / 2 / idle**2
    expected = float(integral((waiting + integral(1 / idle)) * density)[-1])
    agrees(simulate(poisson_trace(law, 20_000), "1x1", "srtf"), expected)
