"""Least makespan where two jobs may share the same GPUs, over pools of jobs.

max tau subject to thr_i(X) >= left_i tau is a programme over jobs, because jobs of one kind have
different remaining work. Jobs of one kind can still be pooled: let Y be the shares of a pool with
work R = sum left_i, and let each job have the part left_i / R of them. Then

- every job has thr_i = thr(Y) left_i / R >= left_i tau if thr(Y) >= R tau, and
- it is busy for left_i / R of the pool's time. The pool's time must therefore not exceed
  R / max left_i, which is at most the number of its jobs.

The first condition is exact. The second changes nothing where the longest job of the pool, at its
slowest, needs no more time than there is. Elsewhere it may. Therefore only jobs much shorter than
the longest of all are pooled, and every other job is a pool of its own.
"""

import numpy as np

from repro.base.typing import Floats, Ints
from repro.solve.max_min import bisected
from repro.solve.pairs.programme import PairCrowd, programme, shares, spread_thinly

#: Jobs that need less than this part of the longest job's time are pooled by kind.
SHORT = 0.2


def pools(kinds: Ints, left: Floats, fastest: Floats, short: float = SHORT) -> Ints:
    """Pool of each job, shape (jobs,): one per kind for short jobs, one per job for the others.

    A job with ``left`` steps is short if it needs less than the part ``short`` of the longest job's
    time.
    """
    need = left / fastest
    pooled = need < short * need.max()
    # Pools are numbered by kind; within a kind short jobs come first, then by remaining work.
    order = np.lexsort((left, ~pooled, kinds))
    same_kind = kinds[order] == np.roll(kinds[order], 1)
    begins = ~(pooled[order] & np.roll(pooled[order], 1) & same_kind)
    begins[0] = True
    pools = np.empty(len(kinds), dtype=np.int64)
    pools[order] = np.cumsum(begins) - 1
    return pools


def makespan_pairs(
    crowd: PairCrowd,
    kinds: Ints,
    left: Floats,
    *,
    tolerance: float = 0.0,
    pairs: str = "all",
    short: float = SHORT,
) -> tuple[Ints, Floats, float]:
    """Rows of jobs and pairs that minimise max_i left_i / thr_i, and that makespan (s).

    ``crowd`` has throughputs (steps/s) as values; ``kinds`` and ``left`` have the kind and the
    remaining steps of each job. With a ``tolerance`` the makespan is the end of a bisection within
    this part of it, and the shares are the centre of all that reach it. ``pairs`` is as in
    `programme`, ``short`` as in `pools`; 0 makes every job a pool. Members of the rows are job
    numbers (Gavel, sections 4.1 and 4.2).
    """
    left = np.maximum(left, 1e-9 * max(float(left.max()), 1e-300))
    fastest = crowd.value.max(axis=1)
    pool = pools(kinds, left, fastest[kinds], short)
    counts = np.bincount(pool).astype(float)
    total = np.bincount(pool, left)
    longest = np.zeros(len(counts))
    np.maximum.at(longest, pool, left)
    kind = np.empty(len(counts), dtype=np.int64)
    kind[pool] = kinds
    scale = 1.0 / fastest[kind]
    # Time is in units of the longest job's time on its best GPU type.
    unit = float((longest * scale).max())
    problem = programme(
        PairCrowd(
            crowd.value[kind] * scale[:, None],
            crowd.paired[np.ix_(kind, kind)] * scale[:, None, None],
            crowd.widths[kind],
            crowd.gpus,
        ),
        counts,
        demand=total * scale / unit,
        limits=np.minimum(counts, total / longest),
        within=(counts >= 2) & (2 * longest <= total),
        pairs=pairs,
    )
    pool_shares = shares(problem)
    makespan = unit / pool_shares.level
    if tolerance > 0:
        makespan = bisected(makespan, tolerance)
        pool_shares = shares(problem, level=unit / makespan)
    fractions = left / total[pool]
    return *spread_thinly(np.arange(len(left)), pool, fractions, pool_shares), makespan
