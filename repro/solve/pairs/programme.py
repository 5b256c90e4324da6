"""Max-min fair shares of single jobs and pairs over GPU types, for kinds of equal jobs.

The result has a row per job or pair of jobs. ``members``, shape (rows, 2), has -1 for no second
member. ``shares`` of time have shape (rows, types).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from repro.base.errors import PolicyError
from repro.base.typing import Flags, Floats, Ints
from repro.solve.counted import SOLVED
from repro.solve.linear import MIN_SHARE, minimise_linear

#: Relative accuracy of the interior-point method.
TOLERANCE = 1e-8
#: Largest number of steps of the interior-point method.
MAX_STEPS = 60


@dataclass(frozen=True)
class PairableKinds:
    """Kinds of jobs that may share GPUs two at a time, and GPUs of each type."""

    #: value of a job that runs alone on a GPU type all the time, (kinds, types); 0: cannot run. The
    #: value is what max-min compares, such as normalised throughput.
    value: Floats
    paired: Floats  #: value of a job of kind a paired with kind b, (kinds, kinds, types)
    widths: Floats  #: GPUs of a job; only kinds of equal width are paired
    gpus: Floats  #: GPUs of each type


@dataclass(frozen=True)
class Programme:
    """Maximise v subject to A x + f v <= limits, x >= 0; one column per (kinds, GPU type).

    The rows are time and value of the kinds, width by width, then GPUs of each type. The five
    entries of a column are: time of the first and of the second member, value of the first and of
    the second member, and GPUs. For a job alone the entries of the first member are 0. The entries
    of the second member stand for the job, although ``first_kind`` names its kind.
    """

    first_kind: Ints  #: kind of the first member, by column
    second_kind: Ints  #: kind of the second member, -1 for a job alone
    gpu_type: Ints  #: position of the GPU type, by column
    rows: Ints  #: rows of A, shape (columns, 5)
    coefs: Floats  #: entries in these rows
    level_coefs: Floats  #: f, coefficient of v, by row
    limits: Floats  #: right-hand side, by row
    row_weights: Floats  #: number of jobs (or 1 for a GPU type), by row
    column_weights: Floats  #: number of jobs or pairs of jobs, by column
    blocks: Ints  #: first row of each width, and of the GPU types


@dataclass(frozen=True)
class KindShares:
    """Time of kinds and pairs of kinds on each GPU type, summed over their jobs."""

    alone: Floats  #: time of jobs that share no GPUs, shape (kinds, types)
    first_kind: Ints  #: lower kind of each pair of kinds
    second_kind: Ints  #: higher kind, or the same
    together: Floats  #: time of pairs that share GPUs, shape (pairs, types)
    level: float  #: the maximised least value


def programme(
    job_kinds: PairableKinds,
    counts: Floats,
    *,
    value_per_level: Floats | None = None,
    time_limits: Floats | None = None,
    pairs_within_kind: Flags | None = None,
    pairs: str = "all",
) -> Programme:
    """Set up max-min fairness with space sharing (Gavel, OSDI 2020, section 4.1).

    All arrays have an entry per kind. The ``counts`` jobs of a kind have together a value of at
    least ``value_per_level`` times v (None: ``counts`` times v). Their time together is at most
    ``time_limits`` (None: ``counts``). ``pairs_within_kind`` flags the kinds whose jobs may be
    paired with each other (None: kinds of two jobs or more). ``pairs`` names the pairs on offer:
    "all", "working" (pairs that fit into memory) or "useful" (pairs that beat time slicing on the
    GPU type). With "all", pairs that do not fit are columns of value 0. They get no share but move
    the centre, as in the public simulator. If no pair can run, no pair has a column under any
    offer.
    """
    from repro.solve.pairs.columns import OFFERS, columns

    kinds, types = job_kinds.value.shape
    if pairs_within_kind is None:
        pairs_within_kind = counts >= 2
    names, rows, coefs, column_weights, blocks, time_row, value_row = columns(
        job_kinds.value,
        job_kinds.paired,
        counts,
        job_kinds.widths,
        job_kinds.gpus,
        pairs_within_kind,
        OFFERS[pairs],
    )
    level_coefs = np.zeros(2 * kinds + types)
    limits = np.zeros(2 * kinds + types)
    row_weights = np.ones(2 * kinds + types)
    level_coefs[value_row] = counts if value_per_level is None else value_per_level
    limits[time_row] = counts if time_limits is None else time_limits
    limits[2 * kinds :] = job_kinds.gpus
    row_weights[time_row] = counts
    row_weights[value_row] = counts
    first_kind, second_kind, gpu_type = names
    return Programme(
        first_kind,
        second_kind,
        gpu_type,
        rows,
        coefs,
        level_coefs,
        limits,
        row_weights,
        column_weights,
        blocks,
    )


def solve(
    problem: Programme, method: str = "centre", level: float | None = None
) -> tuple[Floats, float]:
    """Values of the columns (x) and v at an optimum, or centre of all points with v >= ``level``.

    ``method`` "centre" (interior-point method) ends near the analytic centre of all optima. HiGHS
    ("vertex") also replaces an interior-point method that fails. Its answer is an optimum, whatever
    ``level`` is. PolicyError if both fail.
    """
    answer = _central(problem, level) if method == "centre" else None
    return _vertex(problem) if answer is None else answer


def _central(problem: Programme, level: float | None) -> tuple[Floats, float] | None:
    """Values of the columns and v near the centre; None if the interior-point method fails."""
    from repro.solve.pairs.interior import centre

    SOLVED["LP"] += 1
    level_coefs = problem.level_coefs
    limits = problem.limits
    goal = 1.0
    if level is not None:
        limits = limits - level * level_coefs
        level_coefs = np.zeros_like(level_coefs)
        goal = 0.0
    x, best_level, _, steps = centre(
        problem.rows,
        problem.coefs,
        level_coefs,
        limits,
        problem.column_weights,
        problem.row_weights,
        problem.first_kind == problem.second_kind,
        problem.blocks,
        goal,
        TOLERANCE,
        MAX_STEPS,
    )
    if steps < 0 or not np.isfinite(x).all():
        return None
    return np.maximum(x, 0.0), float(best_level) if level is None else level


def _vertex(problem: Programme) -> tuple[Floats, float]:
    """Values of the columns and v at an optimal vertex."""
    from scipy.sparse import csr_array, hstack

    count = len(problem.first_kind)
    size = len(problem.limits)
    columns = np.repeat(np.arange(count), 5)
    matrix: Any = csr_array(
        (problem.coefs.ravel(), (problem.rows.ravel(), columns)), shape=(size, count)
    )
    matrix = hstack([matrix, csr_array(problem.level_coefs[:, None])])
    answer = minimise_linear(np.append(np.zeros(count), -1.0), matrix, problem.limits)
    if answer.x is None:
        raise PolicyError(
            f"no max-min shares of pairs for {np.count_nonzero(problem.level_coefs)} job kinds: "
            f"{answer.message}"
        )
    return np.asarray(answer.x[:-1], dtype=float), float(answer.x[-1])


def solved_shares(
    problem: Programme, method: str = "centre", level: float | None = None
) -> KindShares:
    """Solve, and split the columns into single jobs and pairs that can run."""
    x, level = solve(problem, method, level)
    a = problem.first_kind
    b = problem.second_kind
    j = problem.gpu_type
    kinds = problem.blocks[-1] // 2
    types = len(problem.limits) - problem.blocks[-1]
    # A column that has no value for a member cannot run. It only adds to the barrier.
    is_single = (b < 0) & (problem.coefs[:, 3] < 0)
    is_pair = problem.coefs[:, 2] < 0
    is_pair &= (problem.coefs[:, 3] < 0) | (a == b)
    alone = np.zeros((kinds, types))
    alone[a[is_single], j[is_single]] = x[is_single]
    pair_number = np.full((kinds, kinds), -1)
    pair_number[a[b >= 0], b[b >= 0]] = 0
    first, second = np.nonzero(pair_number == 0)
    pair_number[first, second] = np.arange(len(first))
    together = np.zeros((len(first), types))
    together[pair_number[a[is_pair], b[is_pair]], j[is_pair]] = x[is_pair]
    return KindShares(alone, first, second, together, level)


def spread_evenly(
    jobs: Ints, kind_of: Ints, counts: Floats, kind_shares: KindShares
) -> tuple[Ints, Floats]:
    """Rows of members and shares, a row per job and per pair of jobs.

    All pairs of the same two kinds get equal shares. ``jobs`` are the job numbers in the
    wanted order, and ``kind_of`` their kinds. The row of a job comes before its pairs with earlier
    jobs, and after all pairs among earlier jobs.
    """
    from repro.solve.pairs.columns import spread

    size = len(kind_shares.alone)
    first = kind_shares.first_kind
    second = kind_shares.second_kind
    pairs = np.where(
        first == second,
        counts[first] * (counts[first] - 1) / 2,
        counts[first] * counts[second],
    )
    pair_shares = kind_shares.together / pairs[:, None]
    pair_shares[pair_shares < MIN_SHARE] = 0.0
    pair_row = np.full((size, size), -1)
    used = np.flatnonzero(pair_shares.any(axis=1))
    pair_row[first[used], second[used]] = used
    pair_row[second[used], first[used]] = used
    job_shares = kind_shares.alone / counts[:, None]
    members, shares = spread(jobs, kind_of, job_shares, pair_row, pair_shares)
    return members, shares


def _overlaps(
    first_lengths: Floats, second_lengths: Floats, offset: float, span: float
) -> tuple[Ints, Ints, Floats]:
    """Overlaps of the arcs of two circles of length 1, one circle over the other.

    The results are, for each overlap, the arc of the first circle, the arc of the second circle,
    and the length. The arcs of a circle follow each other from position 0. ``first_lengths`` and
    ``second_lengths`` are the lengths of the arcs. Position t of the first circle, from 0 to
    ``span``, lies over position t + ``offset`` of the second. An overlap ends where an arc of
    either circle ends.
    """
    first_ends = np.cumsum(first_lengths)[:-1]
    second_ends = np.cumsum(second_lengths)[:-1] - offset
    inside_first = first_ends[first_ends < span]
    inside_second = second_ends[(second_ends > 0) & (second_ends < span)]
    cuts = np.unique(np.concatenate([inside_first, inside_second, [0.0, span]]))
    middle = (cuts[1:] + cuts[:-1]) / 2
    return (
        np.searchsorted(first_ends, middle),
        np.searchsorted(second_ends, middle),
        np.diff(cuts),
    )


def spread_over_few_pairs(
    jobs: Ints, kind_of: Ints, fractions: Floats, kind_shares: KindShares
) -> tuple[Ints, Floats]:
    """Rows of members and shares: two kinds of m and n jobs form at most m + n pairs of jobs.

    A job gets the part ``fractions`` of the time of its kind. Each kind is a circle of length 1,
    and a job is an arc whose length is its fraction. Arcs that lie over each other are paired. A
    kind paired with itself is turned by 1/2. The fractions of a kind add up to 1. In a kind that is
    paired with itself no fraction exceeds 1/2.
    """
    order = np.argsort(kind_of, kind="stable")
    begins = np.searchsorted(kind_of[order], np.arange(len(kind_shares.alone) + 1))
    members = [np.stack([jobs, np.full(len(jobs), -1)], axis=1)]
    row_shares = [kind_shares.alone[kind_of] * fractions[:, None]]
    pairs = zip(kind_shares.first_kind, kind_shares.second_kind, kind_shares.together, strict=True)
    for a, b, together in pairs:
        if together.max() < MIN_SHARE:
            continue
        first_jobs = order[begins[a] : begins[a + 1]]
        second_jobs = order[begins[b] : begins[b + 1]]
        if a == b:
            i, j, length = _overlaps(fractions[first_jobs], fractions[first_jobs], 0.5, 0.5)
            length = 2 * length
        else:
            i, j, length = _overlaps(fractions[first_jobs], fractions[second_jobs], 0.0, 1.0)
        kept = (length > 1e-9) & (first_jobs[i] != second_jobs[j])
        pair_members = [jobs[first_jobs[i[kept]]], jobs[second_jobs[j[kept]]]]
        members.append(np.stack(pair_members, axis=1))
        row_shares.append(length[kept, None] * together)
    all_members = np.concatenate(members)
    all_shares = np.concatenate(row_shares)
    all_members = np.where(all_members[:, 1:] < 0, all_members, np.sort(all_members, axis=1))
    return all_members, np.where(all_shares < MIN_SHARE, 0.0, all_shares)
