"""Pairs of ways to solve one problem."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from unittest.mock import patch

import numpy as np

from repro.base.compiled import CompiledFunction
from repro.base.interpreted import compiled_only
from repro.model.cluster.spec import Cluster
from repro.papers.muri.stage_simulation import simulate_group
from repro.perf import Interleaving
from repro.perf.stages import interleaving_time
from repro.placement.first_fit import FirstFit
from repro.placement.yarn import Yarn
from repro.policies.muri._grouping import Profiles
from repro.policies.muri._grouping.matchings import Matchings
from repro.solve import ecos, slots
from repro.solve.linear import best_shares
from repro.solve.matching import RESOLUTION, KindMatcher, counted_pairs
from repro.solve.max_min import (
    JobKinds,
    central_level,
    central_ratio,
    vertex_level,
    vertex_ratio,
)
from repro.solve.nash import nash_shares, strategy_proof_shares
from repro.solve.pairs.makespan import makespan_pairs
from repro.solve.pairs.programme import (
    PairableKinds,
    programme,
    solve,
    solved_shares,
    spread_evenly,
    spread_over_few_pairs,
)
from tools.two_ways.pair import Difference, Pair, between, one_by_one, relative


def job_kinds(rng: np.random.Generator, *, rows: int | None = None, most: int = 3) -> JobKinds:
    """Random kinds of jobs; some run on some GPU types only."""
    rows = rows or int(rng.integers(1, 13))
    types = int(rng.integers(1, 5))
    values = 10 ** rng.uniform(-1, 2.5, (rows, types))
    values[rng.random((rows, types)) < 0.15] = 0.0
    values[:, 0] = np.maximum(values[:, 0], 0.05)
    gpus = rng.integers(1, 9, types).astype(float)
    gpus[0] = max(gpus[0], 4.0)
    counts = rng.integers(1, most + 1, rows)
    return JobKinds(values, counts, rng.choice([1, 2, 4], rows), gpus)


def by_job(kinds: JobKinds) -> JobKinds:
    """The same jobs, each a kind of its own."""
    return JobKinds(
        np.repeat(kinds.value, kinds.counts, axis=0),
        np.ones(int(kinds.counts.sum())),
        np.repeat(kinds.widths, kinds.counts),
        kinds.gpus,
    )


def _level_by_vertex(rng: np.random.Generator) -> Difference:
    """Largest least level by the interior-point method, and by HiGHS."""
    kinds = job_kinds(rng)
    scale = rng.uniform(0.2, 5.0, len(kinds.value))
    answer = central_level(kinds, scale)
    if answer is None:
        return None
    return relative(answer.level, vertex_level(kinds, scale)[1])


def _level_by_job(rng: np.random.Generator) -> Difference:
    """Largest least level over kinds, and over jobs."""
    kinds = job_kinds(rng, most=6)
    scale = rng.uniform(0.2, 5.0, len(kinds.value))
    together = central_level(kinds, scale)
    apart = central_level(by_job(kinds), np.repeat(scale, kinds.counts))
    if together is None or apart is None:
        return None
    return relative(together.level, apart.level)


def _shares_by_job(rng: np.random.Generator) -> Difference:
    """Central shares over kinds, and over jobs."""
    kinds = job_kinds(rng, most=6)
    scale = rng.uniform(0.2, 5.0, len(kinds.value))
    together = central_level(kinds, scale)
    apart = central_level(by_job(kinds), np.repeat(scale, kinds.counts))
    if together is None or apart is None:
        return None
    return between(np.repeat(together.shares, kinds.counts, axis=0), apart.shares)


def _times(rng: np.random.Generator, rows: int) -> tuple[Any, Any, Any]:
    """Remaining work, time due and time spent of each job."""
    return rng.uniform(1, 1e4, rows), rng.uniform(10, 1e4, rows), rng.uniform(0, 1e4, rows)


def _ratio_by_bisection(rng: np.random.Generator) -> Difference:
    """Least finish-time fairness by the interior-point method, and by bisection of HiGHS."""
    kinds = job_kinds(rng, rows=int(rng.integers(1, 7)), most=1)
    times = _times(rng, len(kinds.value))
    answer = central_ratio(kinds, *times)
    if answer is None:
        return None
    return relative(answer[1], vertex_ratio(kinds, *times)[1])


def _by_ecos(method: Callable[..., Any], *values: Any) -> Any:
    """Answer of a method that uses ECOS; None if ECOS fails or reports reduced accuracy."""
    solve_by_ecos = ecos._solve
    flags: list[int] = []

    def solve_and_note(*arguments: Any, **named: Any) -> Any:
        answer = solve_by_ecos(*arguments, **named)
        if answer is not None:
            flags.append(answer["info"]["exitFlag"])
        return answer

    with patch.object(ecos, "_solve", solve_and_note):
        answer = method(*values)
    return None if any(flags) else answer


def _level_by_ecos(rng: np.random.Generator) -> Difference:
    """Largest least level by our interior-point method, and by ECOS."""
    kinds = job_kinds(rng)
    scale = rng.uniform(0.2, 5.0, len(kinds.value))
    ours = central_level(kinds, scale)
    theirs = _by_ecos(ecos.ecos_level, kinds, scale, None)
    if ours is None or theirs is None:
        return None
    return relative(ours.level, theirs[1])


def _ratio_by_ecos(rng: np.random.Generator) -> Difference:
    """Least finish-time fairness by our interior-point method, and by ECOS."""
    kinds = job_kinds(rng, rows=int(rng.integers(1, 9)), most=1)
    times = _times(rng, len(kinds.value))
    ours = central_ratio(kinds, *times)
    theirs = _by_ecos(ecos.ecos_ratio, kinds, *times)
    if ours is None or theirs is None:
        return None
    return relative(ours[1], theirs[1])


def _sum_by_ecos(rng: np.random.Generator) -> Difference:
    """Largest sum of values by HiGHS, and by ECOS."""
    kinds = job_kinds(rng, most=1)
    theirs = _by_ecos(ecos.ecos_sum, kinds)
    ours = best_shares(kinds.usable_value, kinds.counts, kinds.widths, kinds.gpus)
    if ours is None or theirs is None:
        return None
    return relative((kinds.value * ours).sum(), (kinds.value * theirs).sum())


def pairable(
    rng: np.random.Generator, *, kinds: int | None = None, most: int = 4
) -> tuple[PairableKinds, Any]:
    """Random kinds alone and in pairs, and jobs of each; some pairs do not fit into memory."""
    kinds = kinds or int(rng.integers(1, 7))
    values = rng.uniform(0.2, 3.0, (kinds, 3))
    paired = values[:, None] * rng.uniform(0.3, 1.0, (kinds, kinds, 3))
    for a, b in zip(*np.nonzero(rng.random((kinds, kinds)) < 0.15), strict=True):
        paired[a, b] = paired[b, a] = 0.0
    widths = rng.choice([1.0, 1.0, 2.0], kinds)
    counts = rng.integers(1, most + 1, kinds).astype(float)
    return PairableKinds(values, paired, widths, np.full(3, 4.0)), counts


def _pairs_by_vertex(rng: np.random.Generator) -> Difference:
    """Level with space sharing by the interior-point method, and by HiGHS."""
    problem = programme(*pairable(rng))
    return relative(solve(problem)[1], solve(problem, "vertex")[1])


def _pairs_by_job(rng: np.random.Generator) -> Difference:
    """Level with space sharing over kinds, and over jobs."""
    together, counts = pairable(rng, most=3)
    kind_of = np.repeat(np.arange(len(counts)), counts.astype(int))
    apart = PairableKinds(
        together.value[kind_of],
        together.paired[np.ix_(kind_of, kind_of)],
        together.widths[kind_of],
        together.gpus,
    )
    by_jobs = programme(apart, np.ones(len(kind_of)))
    return relative(solve(programme(together, counts))[1], solve(by_jobs)[1])


def _useful_pairs(rng: np.random.Generator) -> Difference:
    """Level with all pairs on offer, and with those that gain throughput."""
    arguments = pairable(rng, kinds=int(rng.integers(2, 10)))
    offer = str(rng.choice(["working", "useful"]))
    return relative(solve(programme(*arguments))[1], solve(programme(*arguments, pairs=offer))[1])


def _makespan_pools(rng: np.random.Generator) -> Difference:
    """Least makespan with pools of short jobs, and with every job by itself."""
    kinds = int(rng.integers(1, 5))
    together, _ = pairable(rng, kinds=kinds)
    narrow = PairableKinds(together.value, together.paired, np.ones(kinds), np.ones(3))
    count = int(rng.integers(2, 15))
    kind_of = rng.integers(0, kinds, count)
    steps = 10 ** rng.uniform(0, 2, count)
    *_, pooled = makespan_pairs(narrow, kind_of, steps)
    *_, single = makespan_pairs(narrow, kind_of, steps, short=0.0)
    return relative(pooled, single)


def _spreading(rng: np.random.Generator) -> Difference:
    """Time of each job if pairs are spread evenly, and over few pairs."""
    kinds, counts = pairable(rng, kinds=int(rng.integers(1, 6)), most=5)
    kind_of = rng.permutation(np.repeat(np.arange(len(counts)), counts.astype(int)))
    answer = solved_shares(programme(kinds, counts))
    numbers = np.arange(len(kind_of))
    even = spread_evenly(numbers, kind_of, counts, answer)
    few = spread_over_few_pairs(numbers, kind_of, 1.0 / counts[kind_of], answer)
    return between(_time(*even, len(kind_of)), _time(*few, len(kind_of)))


def _time(members: Any, shares: Any, count: int) -> Any:
    """Share of time of each job on each GPU type."""
    time = np.zeros((count, shares.shape[1]))
    np.add.at(time, members[:, 0], shares)
    is_pair = members[:, 1] >= 0
    np.add.at(time, members[is_pair, 1], shares[is_pair])
    return time


def _discount(rng: np.random.Generator) -> Difference:
    """Strategy-proof shares with all problems in one call, and with a call for each."""
    rows = int(rng.integers(1, 6))
    speeds = rng.uniform(0.2, 10, (rows, 3)) * (rng.random((rows, 3)) < 0.8)
    speeds[:, 0] = np.maximum(speeds[:, 0], 0.1)
    counts = rng.integers(1, 5, rows).astype(float)
    widths = rng.choice([1.0, 2.0, 4.0], rows)
    gpus = rng.integers(1, 9, 3).astype(float)
    together = strategy_proof_shares(speeds, counts, widths, gpus)
    nash = nash_shares(speeds, counts, widths, gpus)
    throughputs = (speeds * nash).sum(axis=1)
    apart = nash.copy()
    for kind in range(rows):
        others = counts.copy()
        others[kind] -= 1
        present = others > 0
        if present.any():
            without = nash_shares(speeds[present], others[present], widths[present], gpus)
            ratio = throughputs[present] / (speeds[present] * without).sum(axis=1)
            apart[kind] *= min(1.0, np.prod(ratio ** others[present]))
    return between(together, apart)


def _matching(rng: np.random.Generator) -> Difference:
    """Weight of a matching by kind, and job by job."""
    kinds = int(rng.integers(1, 9))
    weights = (
        rng.random((kinds, kinds)),
        rng.choice([0.25, 0.5, 0.75, 1.0], (kinds, kinds)),
        rng.random((kinds, kinds)) * (rng.random((kinds, kinds)) < 0.5),
        0.5 + 1e-6 * rng.random((kinds, kinds)),
    )[rng.integers(4)]
    symmetric = np.triu(weights) + np.triu(weights, 1).T
    counts = tuple(rng.integers(0, 9, kinds).tolist())
    # both ways round weights to these units, so that the totals are whole numbers
    units = np.rint(symmetric / RESOLUTION)
    totals = [
        sum(units[a, b] * number for a, b, number in pairs)
        for pairs in (KindMatcher(symmetric).pairs(counts), counted_pairs(symmetric, counts))
    ]
    return between(*totals)


def _muri_groups(rng: np.random.Generator) -> Difference:
    """Efficiency of Muri's pairs with jobs collapsed to kinds, and job by job."""
    kinds = rng.integers(1, 6, (int(rng.integers(1, 7)), 4)).astype(float)
    stages = [tuple(row) for row in kinds[rng.integers(0, len(kinds), rng.integers(2, 40))]]
    totals = []
    for collapse in (True, False):
        profiles = Profiles(stages, three_stages=False, perf=Interleaving(), max_group=2)
        counts: Mapping[int, int] = Counter(profiles.alone)
        (pairs,) = Matchings(profiles, collapse=collapse).counts([counts])
        totals.append(sum(np.rint(pair[0] / RESOLUTION) * count for pair, count in pairs.items()))
    return between(*totals)


def _slots(rng: np.random.Generator) -> Difference:
    """AlloX's matching on all slots, and on those that an optimum can use."""
    idle = rng.integers(0, 5, 3)
    idle[rng.integers(3)] += 1
    count = int(rng.integers(1, 35))
    durations = rng.lognormal(0.0, 1.5, (count, 1)) * rng.uniform(1.0, 8.0, (count, 3))
    waiting_s = np.sort(rng.uniform(0.0, 30.0, count))[::-1]
    whole = slots.jobs_to_start(durations, idle, waiting_s)
    with patch.object(slots, "MAX_ENTRIES", 0):
        part = slots.jobs_to_start(durations, idle, waiting_s)
    return float(len(set(whole) ^ set(part)))


def _first_fit(rng: np.random.Generator) -> Difference:
    """Gangs that fit by first fit for one decision, and by placement yarn."""
    spec = str(rng.choice(["8x8", "4x8", "8x4", "2x8", "3x4,2x8", "2x8,1x4", "2x2x4", "5x3"]))
    widths = rng.choice([1, 2, 3, 4, 5, 6, 8, 12, 16, 32], rng.integers(1, 41)).tolist()
    if rng.random() < 0.5:
        widths = [width for width in widths if width in (1, 2, 4, 8, 16, 32)]
    cluster = Cluster.parse(spec)
    nodes = FirstFit(cluster, set(widths) if rng.random() < 0.5 else None)
    placer = Yarn(fallback=None).bind(cluster, np.random.default_rng(0))
    difference = 0
    for job, width in enumerate(widths):
        fits = placer.fits(width)
        if fits:
            placer.take(job, width)
        difference += fits != nodes.take(width)
    return float(difference + (placer.free != nodes.free))


def _stages(rng: np.random.Generator) -> Difference:
    """Period of a group by Muri's formula, and by a simulation of every stage."""
    members = [tuple(row) for row in rng.integers(1, 10, (int(rng.integers(1, 5)), 4)).tolist()]
    names = [f"job {number}" for number in range(len(members))]
    stages = dict(zip(names, members, strict=True))
    periods = []
    for offsets in itertools.permutations(range(4), len(members)):
        run = simulate_group(stages, dict(zip(names, offsets, strict=True)), iterations=4)
        first = run[run["job"] == names[0]].groupby("iteration")["start"].min()
        periods.append(float(first.loc[3] - first.loc[2]))
    return max(
        between(interleaving_time(members), min(periods)),
        between(interleaving_time(members, "worst"), max(periods)),
    )


def _solver_in_python(rng: np.random.Generator) -> Difference:
    """Interior-point methods as machine code, and in Python."""

    def solutions() -> list[Any]:
        answer = central_level(kinds, scale)
        ratio = central_ratio(kinds, *times)
        shared = solve(problem)
        return [
            np.nan if answer is None else answer.level,
            np.nan if ratio is None else ratio[1],
            shared[1],
        ]

    kinds = job_kinds(rng, rows=int(rng.integers(1, 7)), most=1)
    scale = rng.uniform(0.2, 5.0, len(kinds.value))
    times = _times(rng, len(kinds.value))
    problem = programme(*pairable(rng, kinds=int(rng.integers(1, 4)), most=2))
    with compiled_only():
        fast = solutions()

    def in_python(function: CompiledFunction, *values: Any, **named: Any) -> Any:
        return function.py_func(*values, **named)

    with patch.object(CompiledFunction, "__call__", in_python), np.errstate(all="ignore"):
        slow = solutions()
    return relative(fast, slow)


_NO_CENTRE = "the interior-point method does not converge, and HiGHS replaces it"
_NO_ECOS = "one of the two does not converge, or ECOS reports reduced accuracy"

PAIRS: Sequence[Pair] = (
    Pair(
        "level-highs",
        "largest least level by the interior-point method",
        "by HiGHS",
        1e-7,
        "relative",
        one_by_one(_level_by_vertex),
        quick=30,
        long=2000,
        aside=_NO_CENTRE,
    ),
    Pair(
        "level-kinds",
        "largest least level over kinds",
        "over jobs",
        1e-9,
        "relative",
        one_by_one(_level_by_job),
        quick=30,
        long=2000,
        aside=_NO_CENTRE,
    ),
    Pair(
        "shares-kinds",
        "central shares over kinds",
        "over jobs",
        1e-9,
        "share",
        one_by_one(_shares_by_job),
        quick=30,
        long=2000,
        aside=_NO_CENTRE,
    ),
    Pair(
        "ratio-bisection",
        "least finish-time fairness by the interior-point method",
        "by bisection with HiGHS",
        1e-6,
        "relative",
        one_by_one(_ratio_by_bisection),
        quick=8,
        long=1000,
        aside=_NO_CENTRE,
    ),
    Pair(
        "level-ecos",
        "largest least level by our interior-point method",
        "by ECOS",
        1e-6,
        "relative",
        one_by_one(_level_by_ecos),
        quick=30,
        long=2000,
        aside=_NO_ECOS,
        needs=("ecos",),
    ),
    Pair(
        "ratio-ecos",
        "least finish-time fairness by our interior-point method",
        "by ECOS",
        1e-5,
        "relative",
        one_by_one(_ratio_by_ecos),
        quick=30,
        long=2000,
        aside=_NO_ECOS,
        needs=("ecos",),
    ),
    Pair(
        "sum-ecos",
        "largest sum of values by HiGHS",
        "by ECOS",
        1e-6,
        "relative",
        one_by_one(_sum_by_ecos),
        quick=15,
        long=2000,
        aside=_NO_ECOS,
        needs=("ecos",),
    ),
    Pair(
        "python-solvers",
        "interior-point methods as machine code",
        "in Python",
        1e-7,
        "relative",
        one_by_one(_solver_in_python),
        quick=2,
        long=100,
    ),
    Pair(
        "pairs-highs",
        "level with space sharing by the interior-point method",
        "by HiGHS",
        1e-6,
        "relative",
        one_by_one(_pairs_by_vertex),
        quick=20,
        long=1000,
    ),
    Pair(
        "pairs-kinds",
        "level with space sharing over kinds",
        "over jobs",
        1e-6,
        "relative",
        one_by_one(_pairs_by_job),
        quick=20,
        long=1000,
    ),
    Pair(
        "pairs-offered",
        "level with all pairs of jobs on offer",
        "with pairs that can run or gain",
        1e-6,
        "relative",
        one_by_one(_useful_pairs),
        quick=20,
        long=1000,
    ),
    Pair(
        "makespan-pools",
        "least makespan with pools of short jobs",
        "with every job by itself",
        1e-6,
        "relative",
        one_by_one(_makespan_pools),
        quick=15,
        long=1000,
    ),
    Pair(
        "spread-pairs",
        "time of each job with pairs spread evenly",
        "with few pairs",
        2e-5,
        "share",
        one_by_one(_spreading),
        quick=20,
        long=1000,
    ),
    Pair(
        "discounts",
        "strategy-proof shares with all problems in one call",
        "with a call for each problem",
        1e-5,
        "share",
        one_by_one(_discount),
        quick=15,
        long=1000,
    ),
    Pair(
        "matching-kinds",
        "weight of a matching by kind",
        "job by job",
        0.0,
        "units of weight",
        one_by_one(_matching),
        quick=60,
        long=3000,
    ),
    Pair(
        "muri-groups",
        "efficiency of pairs of collapsed kinds",
        "of pairs of jobs",
        0.0,
        "units of weight",
        one_by_one(_muri_groups),
        quick=30,
        long=1000,
    ),
    Pair(
        "allox-slots",
        "jobs that start by the matrix of all slots",
        "by the slots that an optimum can use",
        0.0,
        "jobs",
        one_by_one(_slots),
        quick=40,
        long=2000,
    ),
    Pair(
        "first-fit",
        "gangs that fit by the first fit of one decision",
        "by placement yarn",
        0.0,
        "gangs",
        one_by_one(_first_fit),
        quick=80,
        long=3000,
    ),
    Pair(
        "muri-stages",
        "best and worst period of a group by the formula",
        "by a simulation of every stage",
        0.0,
        "s",
        one_by_one(_stages),
        quick=15,
        long=1000,
    ),
)
