"""Closed forms of queueing theory, and the random jobs to which they apply.

Times are multiples of the mean duration. ``load`` is the fraction of the GPUs in use: arrival rate
times mean duration, divided by the number of servers. Jobs arrive as a Poisson process, and
durations are independent of each other. `SOURCES` names the publication of each formula.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heapify, heapreplace
from typing import Protocol

import numpy as np
import pandas as pd

#: Author, year, title and place of each formula.
SOURCES = {
    "waiting_time": "Pollaczek (1930), Khintchine (1932); Kleinrock, Queueing Systems 1 (1975), "
    "5.6",
    "servers_waiting_time": "Erlang (1917); Kleinrock, Queueing Systems 1 (1975), 3.5",
    "processor_sharing": "Sakata, Noguchi, Oizumi (1969); Kleinrock, Queueing Systems 2 (1976), "
    "4.4",
    "servers_processor_sharing": "Cohen, The multiple phase service network with generalized "
    "processor sharing (1979)",
    "foreground_background": "Schrage, The queue M/G/1 with feedback to lower priority queues "
    "(1967); Kleinrock, Queueing Systems 2 (1976), 4.6",
    "multilevel_fifo": "Kleinrock, Queueing Systems 2 (1976), 4.7",
    "shortest_remaining_time": "Schrage, Miller, The queue M/G/1 with the shortest remaining "
    "processing time discipline (1966)",
    "shortest_job": "Phipps, Machine repair as a priority waiting-line problem (1956)",
    "preemptive_priorities": "Miller, Priority queues (1960)",
    "priorities": "Cobham, Priority assignment in waiting line problems (1954)",
    "gittins_two_durations": "Scully, Harchol-Balter, Scheller-Wolf, SOAP: one clean analysis of "
    "all age-based scheduling policies (2018), worked out for two durations",
    "busy_period": "lower: SRPT, Schrage, A proof of the optimality of the shortest remaining "
    "processing time discipline (1968); upper: every job ends before its busy period does, whose "
    "mean rest is work present / (1 − ρ), Takács (1962)",
    "servers_bounds": "upper: Kingman, Inequalities in the theory of queues (1970), proved by "
    "Brumelle (1971) and Mori (1975); lower: Brumelle, Some inequalities for parallel-server "
    "queues (1971)",
}

#: Nodes and weights of Gauss and Laguerre for integrals of f(u) exp(-u) from 0 to infinity.
_NODES, _WEIGHTS = np.polynomial.laguerre.laggauss(150)

Function = Callable[[np.ndarray], np.ndarray]


class Law(Protocol):
    """Distribution of durations S with phases: a job is in phase i with probability ``p[i]``."""

    p: tuple[float, ...]

    @property
    def mean(self) -> float:
        """E[S]."""

    def phase(self, number: int) -> Law:
        """Distribution of the durations in one phase."""

    def second_moment(self) -> float:
        """E[S^2]."""

    def tail(self, x: np.ndarray) -> np.ndarray:
        """P(S > x)."""

    def truncated(self, k: int, x: np.ndarray) -> np.ndarray:
        """E[min(S, x)^k] for k = 1 or 2."""

    def up_to(self, k: int, x: np.ndarray) -> np.ndarray:
        """E[S^k; S <= x] for k = 1 or 2."""

    def below(self, k: int, x: np.ndarray) -> np.ndarray:
        """E[S^k; S < x] for k = 1 or 2."""

    def expected(self, function: Function) -> float:
        """E[function(S)]."""

    def expected_integral(self, function: Function) -> float:
        """E of the integral of the function from 0 to S."""

    def sample(self, rng: np.random.Generator, phases: np.ndarray) -> np.ndarray:
        """Random durations of jobs in these phases."""


@dataclass(frozen=True)
class Phases:
    """Exponential durations with mean ``means[i]`` in phase i: hyperexponential."""

    p: tuple[float, ...] = (1.0,)
    means: tuple[float, ...] = (1.0,)

    @cached_property
    def _pairs(self) -> list[tuple[float, float]]:
        return list(zip(self.p, self.means, strict=True))

    @property
    def mean(self) -> float:
        """E[S]."""
        return sum(p * m for p, m in self._pairs)

    def phase(self, number: int) -> Phases:
        """Distribution of the durations in one phase."""
        return Phases((1.0,), (self.means[number],))

    def second_moment(self) -> float:
        """E[S^2]."""
        return 2 * sum(p * m**2 for p, m in self._pairs)

    def tail(self, x: np.ndarray) -> np.ndarray:
        """P(S > x)."""
        return sum(p * np.exp(-x / m) for p, m in self._pairs)

    def truncated(self, k: int, x: np.ndarray) -> np.ndarray:
        """E[min(S, x)^k] for k = 1 or 2."""
        if k == 1:
            return sum(-p * m * np.expm1(-x / m) for p, m in self._pairs)
        return self.up_to(2, x) + x**2 * self.tail(x)

    def up_to(self, k: int, x: np.ndarray) -> np.ndarray:
        """E[S^k; S <= x] for k = 1 or 2."""
        if k == 1:
            return sum(p * m * (1 - np.exp(-x / m) * (1 + x / m)) for p, m in self._pairs)
        return sum(
            p * m**2 * (2 - np.exp(-x / m) * ((x / m) ** 2 + 2 * x / m + 2)) for p, m in self._pairs
        )

    below = up_to

    def expected(self, function: Function) -> float:
        """E[function(S)]."""
        return float(sum(p * (_WEIGHTS @ function(m * _NODES)) for p, m in self._pairs))

    def expected_integral(self, function: Function) -> float:
        """E of the integral of the function from 0 to S."""
        return float(sum(p * m * (_WEIGHTS @ function(m * _NODES)) for p, m in self._pairs))

    def sample(self, rng: np.random.Generator, phases: np.ndarray) -> np.ndarray:
        """Random durations of jobs in these phases."""
        return rng.exponential(np.array(self.means)[phases])


@dataclass(frozen=True)
class Fixed:
    """Duration ``lengths[i]`` in phase i, in ascending order."""

    p: tuple[float, ...] = (1.0,)
    lengths: tuple[float, ...] = (1.0,)

    @property
    def mean(self) -> float:
        """E[S]."""
        return float(self._sum(np.array(self.lengths)))

    def _sum(self, terms: np.ndarray) -> np.ndarray:
        """Sum over the durations; the last axis of ``terms`` is that of the durations."""
        return terms @ np.array(self.p)

    def phase(self, number: int) -> Fixed:
        """Distribution of the durations in one phase."""
        return Fixed((1.0,), (self.lengths[number],))

    def second_moment(self) -> float:
        """E[S^2]."""
        return float(self._sum(np.array(self.lengths) ** 2))

    def tail(self, x: np.ndarray) -> np.ndarray:
        """P(S > x)."""
        return self._sum(np.array(self.lengths) > np.asarray(x)[..., None])

    def truncated(self, k: int, x: np.ndarray) -> np.ndarray:
        """E[min(S, x)^k] for k = 1 or 2."""
        return self._sum(np.minimum(self.lengths, np.asarray(x)[..., None]) ** k)

    def up_to(self, k: int, x: np.ndarray) -> np.ndarray:
        """E[S^k; S <= x] for k = 1 or 2."""
        lengths = np.array(self.lengths)
        return self._sum(lengths**k * (lengths <= np.asarray(x)[..., None]))

    def below(self, k: int, x: np.ndarray) -> np.ndarray:
        """E[S^k; S < x] for k = 1 or 2."""
        lengths = np.array(self.lengths)
        return self._sum(lengths**k * (lengths < np.asarray(x)[..., None]))

    def expected(self, function: Function) -> float:
        """E[function(S)]."""
        return float(self._sum(function(np.array(self.lengths))))

    def expected_integral(self, function: Function) -> float:
        """E of the integral from 0 to S of a function that is constant between the durations."""
        starts = np.array([0.0, *self.lengths[:-1]])
        steps = np.array(self.lengths) - starts
        return float((self.tail(starts) * steps) @ function(starts))

    def sample(self, rng: np.random.Generator, phases: np.ndarray) -> np.ndarray:
        """Durations of jobs in these phases."""
        return np.array(self.lengths)[phases]


EXPONENTIAL = Phases()
#: Squared coefficient of variation 3.4.
HYPEREXPONENTIAL = Phases((0.8, 0.2), (0.45, 3.2))
DETERMINISTIC = Fixed()
#: Squared coefficient of variation 1.2.
TWO_DURATIONS = Fixed((0.8, 0.2), (0.45, 3.2))
LAWS: dict[str, Law] = {
    "exponential": EXPONENTIAL,
    "hyperexponential": HYPEREXPONENTIAL,
    "deterministic": DETERMINISTIC,
    "two durations": TWO_DURATIONS,
}


def poisson_trace(
    law: Law, load: float, jobs: int, *, servers: int = 1, gpus: int = 1, seed: int = 1
) -> pd.DataFrame:
    """Trace of jobs with ``gpus`` GPUs each that arrive as a Poisson process.

    The column ``phase`` has the phase of each job. Durations are at least 1e-4, because a trace has
    no shorter ones. That adds less than 1e-8 to the mean duration.
    """
    rng = np.random.default_rng(seed)
    submits = np.cumsum(rng.exponential(law.mean / (load * servers), jobs))
    phases = rng.choice(len(law.p), size=jobs, p=law.p)
    return pd.DataFrame(
        {
            "job_id": np.arange(jobs),
            "submit_time": submits,
            "duration": np.maximum(law.sample(rng, phases), 1e-4),
            "num_gpus": np.full(jobs, gpus, np.int64),
            "phase": phases,
        }
    )


def fifo_ends(submits: np.ndarray, durations: np.ndarray, servers: int = 1) -> np.ndarray:
    """Ends under FIFO, job by job (Kiefer and Wolfowitz, 1955; one server: Lindley, 1952)."""
    free_at = [-math.inf] * servers
    heapify(free_at)
    ends = []
    for submit, duration in zip(submits.tolist(), durations.tolist(), strict=True):
        end = max(submit, free_at[0]) + duration
        heapreplace(free_at, end)
        ends.append(end)
    return np.array(ends)


def erlang_c(servers: int, load: float) -> float:
    """Probability that a job waits."""
    # B is Erlang's loss probability, by its recursion over the number of servers
    offered = servers * load
    loss = 1.0
    for count in range(1, servers + 1):
        loss = offered * loss / (count + offered * loss)
    return loss / (1 - load * (1 - loss))


def waiting_time(law: Law, load: float) -> float:
    """Mean wait under FIFO on one server."""
    return load / law.mean * law.second_moment() / (2 * (1 - load))


def servers_waiting_time(law: Law, load: float, servers: int) -> float:
    """Mean wait under FIFO on several servers, exponential durations."""
    return erlang_c(servers, load) * law.mean / (servers * (1 - load))


def fifo(law: Law, load: float) -> float:
    """Mean JCT under FIFO on one server."""
    return law.mean + waiting_time(law, load)


def servers_fifo(law: Law, load: float, servers: int) -> float:
    """Mean JCT under FIFO on several servers, exponential durations."""
    return law.mean + servers_waiting_time(law, load, servers)


def processor_sharing(law: Law, load: float) -> float:
    """Mean JCT under equal shares of one server: the mean of the law alone counts."""
    return law.mean / (1 - load)


def servers_processor_sharing(law: Law, load: float, servers: int) -> float:
    """Mean JCT under equal shares of several servers, at most one for each job.

    The mean of the law alone counts, so that it is that of exponential durations under FIFO.
    """
    return servers_fifo(law, load, servers)


def foreground_background(law: Law, load: float) -> float:
    """Mean JCT if the jobs of least attained service share one server."""
    rate = load / law.mean

    def response(x: np.ndarray) -> np.ndarray:
        idle = 1 - rate * law.truncated(1, x)
        return rate * law.truncated(2, x) / (2 * idle**2) + x / idle

    return law.expected(response)


def multilevel_fifo(law: Law, load: float, thresholds: Sequence[float]) -> float:
    """Mean JCT if jobs go by queue of attained service, and FIFO inside a queue.

    A job of duration x ends in the queue with limits (a, b]. It waits for the work that jobs
    present bring up to b, and for the work that later arrivals bring up to a.
    """
    rate = load / law.mean
    total = 0.0
    for low, high in zip([0.0, *thresholds], [*thresholds, math.inf], strict=True):
        if math.isinf(high):
            busy, second = load, law.second_moment()
            count, service = law.tail(low), law.mean - law.up_to(1, low)
        else:
            busy, second = rate * law.truncated(1, high), law.truncated(2, high)
            count = law.tail(low) - law.tail(high)
            service = law.up_to(1, high) - law.up_to(1, low)
        wait = rate * second / (2 * (1 - busy))
        total += (count * wait + service) / (1 - rate * law.truncated(1, low))
    return float(total)


def shortest_remaining_time(law: Law, load: float) -> float:
    """Mean JCT under preemptive shortest remaining time; equal times go by arrival."""
    rate = load / law.mean

    def wait(x: np.ndarray) -> np.ndarray:
        shorter, not_longer = rate * law.below(1, x), rate * law.up_to(1, x)
        return rate * law.truncated(2, x) / (2 * (1 - shorter) * (1 - not_longer))

    def stretch(t: np.ndarray) -> np.ndarray:
        return 1 / (1 - rate * law.up_to(1, t))

    return law.expected(wait) + law.expected_integral(stretch)


def shortest_job(law: Law, load: float) -> float:
    """Mean JCT under shortest job first without preemption; equal jobs go by arrival."""
    rate = load / law.mean

    def wait(x: np.ndarray) -> np.ndarray:
        shorter, not_longer = rate * law.below(1, x), rate * law.up_to(1, x)
        return rate * law.second_moment() / (2 * (1 - shorter) * (1 - not_longer))

    return law.mean + law.expected(wait)


def priorities(law: Law, load: float, number: int) -> float:
    """Mean JCT of phase ``number`` if phases go in order, without preemption."""
    busy = _loads(law, load)
    residual = load / law.mean * law.second_moment() / 2
    wait = residual / ((1 - sum(busy[:number])) * (1 - sum(busy[: number + 1])))
    return law.phase(number).mean + wait


def preemptive_priorities(law: Law, load: float, number: int) -> float:
    """Mean JCT of phase ``number`` if phases go in order, with preemption."""
    busy = _loads(law, load)
    before = 1 - sum(busy[:number])
    residual = sum(
        load / law.mean * p * law.phase(other).second_moment() / 2
        for other, p in enumerate(law.p[: number + 1])
    )
    wait = residual / (before * (1 - sum(busy[: number + 1])))
    return law.phase(number).mean / before + wait


def _loads(law: Law, load: float) -> list[float]:
    """Load of each phase."""
    return [load * p * law.phase(number).mean / law.mean for number, p in enumerate(law.p)]


def gittins_two_durations(law: Fixed, load: float) -> float:
    """Mean JCT under the largest Gittins index, for two durations s < l.

    The rank of a new job is r = min(s / P(s), E[S]), if l - s > r. A job that is older than s has
    the rank of its remaining time.
    """
    short, long = law.lengths
    p_short, p_long = law.p
    rank = min(short / p_short, law.mean)
    if long - short <= rank:
        raise ValueError("the longer duration is too short for this formula")
    rate = load / law.mean
    first_part = rate * short
    of_short = short + rate * (short**2 + p_long * rank**2) / (2 * (1 - first_part))
    wait_of_long = rate * law.second_moment() / (2 * (1 - load) * (1 - first_part))
    of_long = wait_of_long + (long - rank) / (1 - first_part) + rank
    return p_short * of_short + p_long * of_long


def busy_period(law: Law, load: float) -> float:
    """Upper bound of the mean JCT on one server that is never idle while a job is present."""
    return fifo(law, load) / (1 - load)


def servers_lower_bound(law: Law, load: float, servers: int) -> float:
    """Lower bound of the mean JCT under FIFO on several servers."""
    wait = law.second_moment() / (2 * law.mean) * (1 / (servers * (1 - load)) - 1)
    return law.mean + max(wait, 0.0)


def servers_upper_bound(law: Law, load: float, servers: int) -> float:
    """Upper bound of the mean JCT under FIFO on several servers."""
    gap = law.mean / (load * servers)
    variance = law.second_moment() - law.mean**2
    spread = gap**2 + variance / servers + (servers - 1) / servers**2 * law.mean**2
    return law.mean + spread / (2 * gap * (1 - load))
