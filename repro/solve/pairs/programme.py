"""Max-min fair shares of single jobs and pairs over GPU types, for kinds of equal jobs.

Rows of jobs and pairs that have these shares: members (-1 = no second), shares by GPU type.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from repro.base.errors import PolicyError
from repro.base.typing import Flags, Floats, Ints
from repro.solve.counted import SOLVED
from repro.solve.linear import minimise

TOLERANCE = 1e-8
MOST_STEPS = 60
#: Smaller shares of time are left out.
FLOOR = 1e-6


@dataclass(frozen=True)
class PairCrowd:
    """Kinds of jobs that may share GPUs two at a time, and these GPUs."""

    value: Floats  #: of all its time alone to one job, shape (kinds, types); 0 = cannot run there
    paired: Floats  #: at [a, b] to a job of kind a that shares its GPUs with one of kind b
    widths: Floats  #: GPUs of a job; only kinds of equal width are paired
    gpus: Floats  #: GPUs of each type


@dataclass(frozen=True)
class Programme:
    """Maximise v subject to A x + free v <= limits, x >= 0; one column per (kinds, GPU type).

    Rows: for each width, time and value of its kinds; then GPUs of each type. A sparse column has
    five: time of both members, value of both, GPUs. A job alone is its own second member; its first
    has coefficients 0.
    """

    first: Ints  #: kind of the first member of each column
    second: Ints  #: kind of the second member, -1 for a job alone
    column: Ints  #: GPU type
    rows: Ints  #: rows of A, shape (columns, 5)
    coefs: Floats  #: entries there
    free: Floats
    limits: Floats
    row_weights: Floats  #: constraints on jobs that each row stands for
    column_weights: Floats  #: jobs or pairs of jobs that each column stands for
    blocks: Ints  #: first row of each width, and of the GPU types


@dataclass(frozen=True)
class KindShares:
    """Time that kinds and pairs of kinds spend on each GPU type, summed over their jobs."""

    alone: Floats  #: of jobs that have their GPUs to themselves, shape (kinds, types)
    first: Ints  #: kinds of the pairs, first <= second
    second: Ints
    together: Floats  #: of pairs that share GPUs, shape (pairs, types)
    level: float  #: the maximised least value


def programme(
    crowd: PairCrowd,
    counts: Floats,
    *,
    demand: Floats | None = None,
    limits: Floats | None = None,
    within: Flags | None = None,
    pairs: str = "all",
) -> Programme:
    """Set up max-min fairness with space sharing (Gavel, OSDI 2020, section 4.1).

    All ``counts`` jobs of a kind get ``demand`` together per unit of v and may spend the time
    ``limits`` together (both: None = ``counts``); those of kinds ``within`` may be paired with each
    other (None: of two jobs or more). ``pairs`` offered are "all", also those that run out of
    memory (they take up barrier, as in the public simulator), "working", those that run, or
    "useful", those that beat time slicing on the GPU type.
    """
    from repro.solve.pairs.columns import OFFERS, columns

    kinds, types = crowd.value.shape
    within = counts >= 2 if within is None else within
    (first, second, column), rows, coefs, weights, blocks, time, value = columns(
        crowd.value, crowd.paired, counts, crowd.widths, crowd.gpus, within, OFFERS[pairs]
    )
    free = np.zeros(2 * kinds + types)
    bounds = np.zeros(2 * kinds + types)
    row_weights = np.ones(2 * kinds + types)
    free[value] = counts if demand is None else demand
    bounds[time] = counts if limits is None else limits
    bounds[2 * kinds :] = crowd.gpus
    row_weights[time] = row_weights[value] = counts
    return Programme(first, second, column, rows, coefs, free, bounds, row_weights, weights, blocks)


def solve(
    problem: Programme, method: str = "centre", given: float | None = None
) -> tuple[Floats, float]:
    """Return the columns and v of the optimum, or of a point amid all with v of at least ``given``.

    ``method`` "centre" (interior point) ends near the analytic centre of all optima; "vertex"
    (HiGHS) also stands in where the interior point fails. PolicyError if neither does.
    """
    found = _central(problem, given) if method == "centre" else None
    return _vertex(problem) if found is None else found


def _central(problem: Programme, given: float | None) -> tuple[Floats, float] | None:
    """Return columns and v near the centre; None where the interior point fails."""
    from repro.solve.pairs.interior import centre

    SOLVED["LP"] += 1
    free = problem.free
    limits = problem.limits
    goal = 1.0
    if given is not None:
        limits = limits - given * free
        free = np.zeros_like(free)
        goal = 0.0
    x, level, _, steps = centre(
        problem.rows,
        problem.coefs,
        free,
        limits,
        problem.column_weights,
        problem.row_weights,
        problem.first == problem.second,
        problem.blocks,
        goal,
        TOLERANCE,
        MOST_STEPS,
    )
    if steps < 0 or not np.isfinite(x).all():
        return None
    return np.maximum(x, 0.0), float(level) if given is None else given


def _vertex(problem: Programme) -> tuple[Floats, float]:
    """Return columns and v of an optimal vertex."""
    from scipy.sparse import csr_array, hstack

    count = len(problem.first)
    size = len(problem.limits)
    numbers = np.repeat(np.arange(count), 5)
    matrix: Any = csr_array(
        (problem.coefs.ravel(), (problem.rows.ravel(), numbers)), shape=(size, count)
    )
    matrix = hstack([matrix, csr_array(problem.free[:, None])])
    answer = minimise(np.append(np.zeros(count), -1.0), matrix, problem.limits)
    if answer.x is None:
        raise PolicyError(
            f"no max-min shares of pairs for {np.count_nonzero(problem.free)} job types: "
            f"{answer.message}"
        )
    return np.asarray(answer.x[:-1], dtype=float), float(answer.x[-1])


def shares(problem: Programme, method: str = "centre", given: float | None = None) -> KindShares:
    """Solve and sort the answer into single jobs and pairs; what cannot run is dropped."""
    x, level = solve(problem, method, given)
    a = problem.first
    b = problem.second
    j = problem.column
    kinds = problem.blocks[-1] // 2
    types = len(problem.limits) - problem.blocks[-1]
    # a column that brings a member nothing was only offered
    one = (b < 0) & (problem.coefs[:, 3] < 0)
    both = problem.coefs[:, 2] < 0
    both &= (problem.coefs[:, 3] < 0) | (a == b)
    alone = np.zeros((kinds, types))
    number = np.full((kinds, kinds), -1)
    alone[a[one], j[one]] = x[one]
    number[a[b >= 0], b[b >= 0]] = 0
    first, second = np.nonzero(number == 0)
    number[first, second] = np.arange(len(first))
    together = np.zeros((len(first), types))
    together[number[a[both], b[both]], j[both]] = x[both]
    return KindShares(alone, first, second, together, level)


def spread_evenly(
    jobs: Ints, kinds: Ints, counts: Floats, given: KindShares
) -> tuple[Ints, Floats]:
    """Return one row per job and per pair of jobs, equal for all pairs of the same kinds.

    Each job (row numbers ``jobs``, in the order in which rows are wanted, of kind ``kinds[i]``)
    comes after the pairs of those before it, and before its own pairs with them.
    """
    from repro.solve.pairs.columns import spread

    size = len(given.alone)
    pairs = np.where(
        given.first == given.second,
        counts[given.first] * (counts[given.first] - 1) / 2,
        counts[given.first] * counts[given.second],
    )
    each = given.together / pairs[:, None]
    each[each < FLOOR] = 0.0
    lookup = np.full((size, size), -1)
    used = np.flatnonzero(each.any(axis=1))
    lookup[given.first[used], given.second[used]] = used
    lookup[given.second[used], given.first[used]] = used
    members, fractions = spread(jobs, kinds, given.alone / counts[:, None], lookup, each)
    return members, fractions


def _facing(left: Floats, right: Floats, start: float, span: float) -> tuple[Ints, Ints, Floats]:
    """Return which interval of ``left`` at t faces which of ``right`` at t + start, and how long.

    The intervals of each, of these lengths, lie end to end on [0, 1]; t runs over [0, span].
    """
    a, b = np.cumsum(left)[:-1], np.cumsum(right)[:-1] - start
    cuts = np.unique(np.concatenate([a[a < span], b[(b > 0) & (b < span)], [0.0, span]]))
    middle = (cuts[1:] + cuts[:-1]) / 2
    return np.searchsorted(a, middle), np.searchsorted(b, middle), np.diff(cuts)


def spread_thinly(jobs: Ints, kinds: Ints, parts: Floats, given: KindShares) -> tuple[Ints, Floats]:
    """Return few rows in which each job has its part of the shares of its kind.

    The jobs of two kinds are laid along two circles of length one, each with an arc of the length
    of its part; those that face each other make the pairs. A kind paired with itself faces itself
    half way round. There are at most as many pairs as jobs of both kinds. The parts of a kind add
    up to one, and none exceeds one half in a kind that is paired with itself.
    """
    order = np.argsort(kinds, kind="stable")
    ends = np.searchsorted(kinds[order], np.arange(len(given.alone) + 1))
    members = [np.stack([jobs, np.full(len(jobs), -1)], axis=1)]
    fractions = [given.alone[kinds] * parts[:, None]]
    for a, b, together in zip(given.first, given.second, given.together, strict=True):
        if together.max() < FLOOR:
            continue
        left, right = order[ends[a] : ends[a + 1]], order[ends[b] : ends[b + 1]]
        if a == b:
            i, j, length = _facing(parts[left], parts[left], 0.5, 0.5)
            length = 2 * length
        else:
            i, j, length = _facing(parts[left], parts[right], 0.0, 1.0)
        kept = (length > 1e-9) & (left[i] != right[j])
        members.append(np.stack([jobs[left[i[kept]]], jobs[right[j[kept]]]], axis=1))
        fractions.append(length[kept, None] * together)
    all_members = np.concatenate(members)
    all_fractions = np.concatenate(fractions)
    all_members = np.where(all_members[:, 1:] < 0, all_members, np.sort(all_members, axis=1))
    return all_members, np.where(all_fractions < FLOOR, 0.0, all_fractions)
