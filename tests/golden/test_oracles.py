"""Queues with a known mean response time: the engine agrees within three standard errors."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
import queueing
from queueing import EXPONENTIAL, HYPEREXPONENTIAL, poisson_trace

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


def agrees(result, expected, slack=0.0):
    """Compare by batch means after a warm-up of a tenth; slack is a known bias."""
    jct = result.jobs["jct"].to_numpy()
    kept = jct[len(jct) // 10 :]
    means = np.array([part.mean() for part in np.array_split(kept, BATCHES)])
    error = means.std(ddof=1) / math.sqrt(BATCHES)
    assert error < 0.12 * expected, "too few jobs for a test of anything"
    assert abs(means.mean() - expected) < 3 * error + slack


@pytest.mark.parametrize("servers", [1, 3, 16])
@pytest.mark.parametrize("name", ["yarn-cs", "best-effort"])
def test_mmc_fifo(name, servers):
    trace = poisson_trace(EXPONENTIAL, LOAD, 15_000, servers=servers)
    result = simulate(trace, f"1x{servers}", name, placement="count")
    agrees(result, queueing.servers_fifo(EXPONENTIAL, LOAD, servers))


@pytest.mark.parametrize("law", [EXPONENTIAL, HYPEREXPONENTIAL])
def test_mg1_fifo(law):
    result = simulate(poisson_trace(law, LOAD, 20_000), "1x1", "yarn-cs")
    agrees(result, queueing.fifo(law, LOAD))


@pytest.mark.parametrize("servers", [1, 3])
@pytest.mark.parametrize("name", ["yarn-cs", "fifo-elastic"])
def test_fifo_job_by_job(name, servers):
    trace = poisson_trace(HYPEREXPONENTIAL, 0.9, 4_000, servers=servers)
    ends = queueing.fifo_ends(
        trace["submit_time"].to_numpy(), trace["duration"].to_numpy(), servers
    )
    result = simulate(trace, f"1x{servers}", name, placement="count")
    assert (ends - trace["submit_time"] > 1.001 * trace["duration"]).mean() > 0.5, "no queue"
    # times of a result are those of the trace
    np.testing.assert_allclose(result.jobs["end_time"], ends, rtol=1e-12)


@pytest.mark.parametrize("law", [EXPONENTIAL, HYPEREXPONENTIAL])
def test_mg1_processor_sharing(law):
    """Insensitive: the mean alone counts."""
    trace = poisson_trace(law, LOAD, 8_000)
    result = simulate(trace, "1x1", EqualShares(), rounds={"ideal": "fluid"})
    agrees(result, queueing.processor_sharing(law, LOAD))


@pytest.mark.parametrize("law", [EXPONENTIAL, HYPEREXPONENTIAL])
def test_mg1_foreground_background(law):
    """Continuous 2D-LAS with a quantum far below the jobs."""
    quantum = 0.05
    trace = poisson_trace(law, LOAD, 6_000)
    result = simulate(trace, "1x1", make("las-2d", quantum=quantum))
    agrees(result, queueing.foreground_background(law, LOAD), slack=quantum)


def test_mg1_shortest_remaining_time():
    result = simulate(poisson_trace(HYPEREXPONENTIAL, LOAD, 20_000), "1x1", "srtf")
    agrees(result, queueing.shortest_remaining_time(HYPEREXPONENTIAL, LOAD))


LOADS = [0.3, 0.7, 0.95]
ALL_LAWS = list(queueing.LAWS.values())


@pytest.mark.parametrize("load", LOADS)
def test_blind_formulas_agree_for_exponential_durations(load):
    """Every order that knows nothing of the durations has the mean of FIFO."""
    formulas = [queueing.foreground_background, queueing.processor_sharing]
    means = [formula(EXPONENTIAL, load) for formula in formulas]
    means.append(queueing.multilevel_fifo(EXPONENTIAL, load, (0.4, 2.0)))
    means.append(queueing.servers_fifo(EXPONENTIAL, load, 1))
    assert means == pytest.approx([queueing.fifo(EXPONENTIAL, load)] * 4, rel=1e-9)


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("law", ALL_LAWS)
def test_queues_of_attained_service_tend_to_fifo_and_to_foreground_background(law, load):
    assert queueing.multilevel_fifo(law, load, ()) == pytest.approx(queueing.fifo(law, load))
    # in a queue just wide enough for one duration, jobs still go by arrival
    many = np.append(np.arange(0.002, 30.0, 0.002), 1e-6 + np.array([0.45, 1.0, 3.2]))
    fine = queueing.multilevel_fifo(law, load, np.sort(many))
    assert fine == pytest.approx(queueing.foreground_background(law, load), rel=0.05)


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("law", ALL_LAWS)
def test_formulas_keep_their_order(law, load):
    """SRPT has the least mean of all; the end of the busy period is the largest."""
    best = queueing.shortest_remaining_time(law, load)
    others = [
        queueing.shortest_job(law, load),
        queueing.fifo(law, load),
        queueing.processor_sharing(law, load),
        queueing.foreground_background(law, load),
        queueing.multilevel_fifo(law, load, (0.7,)),
    ]
    if law == queueing.TWO_DURATIONS:
        others.append(queueing.gittins_two_durations(law, load))
        # of the orders that do not know the durations Gittins is the best
        assert others[-1] <= min(others[1:-1])
    assert all(best <= mean * (1 + 1e-12) for mean in others)
    assert max(others) <= queueing.busy_period(law, load)


@pytest.mark.parametrize("load", LOADS)
def test_without_variance_knowing_durations_changes_nothing(load):
    law = queueing.DETERMINISTIC
    expected = pytest.approx(queueing.fifo(law, load), rel=1e-12)
    assert queueing.shortest_remaining_time(law, load) == expected
    assert queueing.shortest_job(law, load) == expected


@pytest.mark.parametrize("load", LOADS)
def test_priorities_conserve_the_work(load):
    """Kleinrock's conservation law: the waits weighted by load have the sum of FIFO."""
    law = HYPEREXPONENTIAL
    weights = [p * mean / law.mean for p, mean in zip(law.p, law.means, strict=True)]
    waits = [queueing.priorities(law, load, n) - law.means[n] for n in (0, 1)]
    assert np.dot(weights, waits) == pytest.approx(queueing.waiting_time(law, load), rel=1e-12)
    # of two durations, the class is the size
    both = queueing.TWO_DURATIONS
    mean = np.dot(both.p, [queueing.priorities(both, load, n) for n in (0, 1)])
    assert mean == pytest.approx(queueing.shortest_job(both, load), rel=1e-12)


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("servers", [1, 4, 64])
def test_bounds_of_several_servers_hold_where_the_mean_is_known(servers, load):
    mean = queueing.servers_fifo(EXPONENTIAL, load, servers)
    assert queueing.servers_lower_bound(EXPONENTIAL, load, servers) <= mean * (1 + 1e-12)
    assert mean <= queueing.servers_upper_bound(EXPONENTIAL, load, servers)


@pytest.mark.parametrize("law", ALL_LAWS)
def test_moments_of_a_law_are_those_of_its_samples(law):
    rng = np.random.default_rng(3)
    durations = law.sample(rng, rng.choice(len(law.p), size=200_000, p=law.p))
    # 0.45 and 3.2 are durations of the discrete law
    for x in (0.45, 1.0, 3.2):
        at = np.array(x)
        kept = np.where(durations <= x, durations, 0.0)
        below = np.where(durations < x, durations, 0.0)
        assert law.tail(at) == pytest.approx((durations > x).mean(), abs=0.01)
        for k in (1, 2):
            expected = (np.minimum(durations, x) ** k).mean()
            assert law.truncated(k, at) == pytest.approx(expected, rel=0.02)
            assert law.up_to(k, at) == pytest.approx((kept**k).mean(), rel=0.02, abs=1e-9)
            assert law.below(k, at) == pytest.approx((below**k).mean(), rel=0.02, abs=1e-9)
    assert law.mean == pytest.approx(durations.mean(), rel=0.02)
    assert law.second_moment() == pytest.approx((durations**2).mean(), rel=0.04)
    assert law.expected(np.square) == pytest.approx(law.second_moment(), rel=1e-9)
    assert law.expected_integral(np.ones_like) == pytest.approx(law.mean, rel=1e-9)
