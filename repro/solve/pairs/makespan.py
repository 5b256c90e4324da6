"""Least makespan where two jobs may share the same GPUs, over classes of jobs.

max tau subject to thr_i(X) >= left_i tau is a programme over jobs, because jobs of one kind have
different work left. Jobs of one kind may nevertheless be pooled: let Y be the shares of a pool with
work R = sum left_i, and give each job the part left_i / R of them. Then

- every job gets thr_i = thr(Y) left_i / R >= left_i tau as soon as thr(Y) >= R tau, and
- it is busy for left_i / R of the pool's time, so that the pool's time must not exceed
  R / max left_i (at most the number of its jobs, so no allocation is made too large).

The first is exact. The second costs nothing where the longest job of the pool, at its slowest,
needs no more time than there is; elsewhere it may, so that only jobs much shorter than the longest
of all are pooled and every other job is a class of its own.
"""

import numpy as np

from repro.base.typing import Floats, Ints
from repro.solve.max_min import bisected
from repro.solve.pairs.programme import PairCrowd, programme, shares, spread_thinly

#: Jobs that need less than this part of the least possible makespan are pooled by kind.
SHORT = 0.2


def classes(kinds: Ints, left: Floats, fastest: Floats, short: float = SHORT) -> Ints:
    """Return the class of each job: one per kind for short jobs, one per job for the others.

    A job with ``left`` steps is short if it needs less than a part ``short`` of the longest's time.
    """
    need = left / fastest
    pooled = need < short * need.max()
    # classes of one kind lie side by side, the pool first, then by work left
    order = np.lexsort((left, ~pooled, kinds))
    fresh = ~(
        pooled[order] & np.roll(pooled[order], 1) & (kinds[order] == np.roll(kinds[order], 1))
    )
    fresh[0] = True
    found = np.empty(len(kinds), dtype=np.int64)
    found[order] = np.cumsum(fresh) - 1
    return found


def makespan_pairs(
    crowd: PairCrowd,
    kinds: Ints,
    left: Floats,
    *,
    tolerance: float = 0.0,
    pairs: str = "all",
    short: float = SHORT,
) -> tuple[Ints, Floats, float]:
    """Return rows of jobs and pairs that minimise max_i left_i / thr_i, and that makespan (s).

    ``crowd`` has speeds as values; each job has its kind and steps left. Under a ``tolerance`` the
    makespan is where a bisection within this part of it ends, and the shares lie amid all that
    reach it. ``pairs`` is that of `programme`, ``short`` that of `classes`; 0 makes every job a
    class. Members of the rows are the numbers of the jobs (Gavel, sections 4.1 and 4.2).
    """
    left = np.maximum(left, 1e-9 * max(float(left.max()), 1e-300))
    fastest = crowd.value.max(axis=1)
    of_job = classes(kinds, left, fastest[kinds], short)
    counts = np.bincount(of_job).astype(float)
    total = np.bincount(of_job, left)
    longest = np.zeros(len(counts))
    np.maximum.at(longest, of_job, left)
    kind = np.empty(len(counts), dtype=np.int64)
    kind[of_job] = kinds
    scale = 1.0 / fastest[kind]
    # in units of the longest job's time on its best type
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
    given = shares(problem)
    end = unit / given.level
    if tolerance > 0:
        end = bisected(end, tolerance)
        given = shares(problem, given=unit / end)
    parts = left / total[of_job]
    return *spread_thinly(np.arange(len(left)), of_job, parts, given), end
