"""Shares of GPU types by ECOS, the solver of Gavel's public simulator (extra ``ecos``)."""

# A programme has many optima, and ECOS returns the one at which its own path ends. The path depends
# on how the programme is written, so it is written as in the simulator: a row per job, in order of
# submission, also for equal jobs. The shares are ordered by GPU type, then by job.

import functools
from typing import Any

import numpy as np

from repro.base.extras import needed_for
from repro.base.typing import Floats, Ints
from repro.solve.counted import SOLVED

#: Relative excess of time or GPUs that counts as rounding.
MAX_EXCESS = 1e-7
#: ECOS gets the simulator's weights if the largest is at most this, and at least its inverse.
_MAX_WEIGHT = 1e3
#: ECOS's exit codes for an optimum, and for an optimum of reduced accuracy.
_OPTIMAL_EXITS = (0, 10)


@functools.cache
def is_installed() -> bool:
    """Whether the solver's package can be imported."""
    try:
        import ecos  # noqa: F401
    except ImportError:
        return False
    return True


def ecos_level(
    job_kinds: Any, scale: Floats, floor: Floats | None = None
) -> tuple[Floats, float, Floats, Floats] | None:
    """ECOS's answer to `max_min.central_level`, as fields of `max_min.Centre`; None if it fails."""
    SOLVED["LP"] += 1
    kind_of = np.repeat(np.arange(len(job_kinds.value)), job_kinds.counts.astype(int))
    job_floor = np.zeros(len(kind_of)) if floor is None else floor[kind_of]
    has_floor = job_floor > -np.inf
    has_scale = (scale[kind_of] > 0) & has_floor
    unit = np.where(has_scale, scale[kind_of], 1.0)
    entries_of_shares, limits_of_shares, values = _shares(job_kinds, kind_of)
    # A job without a scale has an empty row, which any z satisfies.
    entries = [np.where(has_scale, -values / unit, 0.0).ravel(), entries_of_shares]
    limits = [np.where(has_scale, -job_floor / unit, 1.0), limits_of_shares]
    if floor is not None:
        # The simulator has the floors a second time, in rows of their own.
        entries.append(np.where(has_floor, -values, 0.0).ravel())
        limits.append(np.where(has_floor, -job_floor, 1.0))
    matrix = _level_matrix(len(kind_of), len(values), floor is not None)
    answer = _solve(
        -1.0, matrix, [has_scale.astype(float), np.column_stack(entries)], np.concatenate(limits)
    )
    if answer is None:
        return None
    first_job = np.searchsorted(kind_of, np.arange(len(scale)))
    shares = _by_job(answer["x"][1:], job_kinds, kind_of)[first_job]
    z = float(answer["x"][0])
    value = np.maximum((job_kinds.value * shares).sum(axis=1), 1e-300)
    slack = np.zeros(len(scale))
    price = np.zeros(len(scale))
    kinds = kind_of[has_scale]
    # The rows are in units of the scale.
    value_in_units = value[kinds] / unit[has_scale]
    slack[kinds] = answer["s"][: len(kind_of)][has_scale] / value_in_units
    price[kinds] = answer["z"][: len(kind_of)][has_scale] * value_in_units / max(abs(z), 1e-300)
    return shares, z, slack, price


def accurate_weights(weights: Floats) -> Floats:
    """Weights with the same ratios, scaled to a range in which ECOS is accurate.

    The level is about 1 / weight, and the tolerances of ECOS are absolute. If the largest weight is
    very large or very small, all weights are therefore divided by it.
    """
    largest = weights.max()
    return weights if 1.0 / _MAX_WEIGHT <= largest <= _MAX_WEIGHT else weights / largest


def ecos_sum(job_kinds: Any) -> Floats | None:
    """ECOS's shares of the highest total value, one job per row; None if it fails."""
    SOLVED["LP"] += 1
    job = np.arange(len(job_kinds.value))
    entries_of_shares, limits, values = _shares(job_kinds, job)
    matrix = _matrix([_rows(*job_kinds.value.shape)])
    answer = _solve(-values.ravel(), matrix, [entries_of_shares], limits)
    return None if answer is None else _by_job(answer["x"], job_kinds, job)


def ecos_point(job_kinds: Any, floor: Floats) -> Floats | None:
    """ECOS's shares that give each job its floor, one job per row; None if it fails.

    As in the simulator, an answer of reduced accuracy is a failure.
    """
    job = np.arange(len(job_kinds.value))
    entries_of_shares, limits, values = _shares(job_kinds, job)
    floor_row = len(limits) + np.tile(job, len(values))
    matrix = _matrix([np.column_stack([_rows(*job_kinds.value.shape), floor_row])])
    entries = np.column_stack([entries_of_shares, -values.ravel()])
    answer = _solve(0.0, matrix, [entries], np.append(limits, -floor))
    if answer is None or answer["info"]["exitFlag"]:
        return None
    return _by_job(answer["x"], job_kinds, job)


def ecos_ratio(
    job_kinds: Any, remaining: Floats, due: Floats, spent: Floats, keep_zeros: bool = True
) -> tuple[Floats, float] | None:
    """Shares and ratio of `max_min.central_ratio` by ECOS, one job per row; None if it fails.

    u_k is the speed of job k, the sum of its values times its shares. 1 / u_k is an unknown q_k of
    its own, with u_k q_k >= 1 as a second-order cone. ``keep_zeros`` passes also the zero entries
    of the matrix, as the simulator does in this programme. They change the order of elimination,
    and so the last bits.
    """
    SOLVED["convex"] += 1
    jobs = len(job_kinds.value)
    job = np.arange(jobs)
    entries_of_shares, limits_of_shares, values = _shares(job_kinds, job)
    # The cone of a job: |(u - q, 2)| <= u + q.
    cone = jobs + len(limits_of_shares) + 3 * job
    minus_value = -values.ravel()
    cone_of_share = np.tile(cone, len(values))
    rows = jobs + _rows(*job_kinds.value.shape)
    rows_of_share = [rows, cone_of_share, cone_of_share + 1, cone_of_share + 2]
    rows_of_inverse = [job, cone, cone + 1, cone + 2]
    matrix = _matrix([job[None], np.column_stack(rows_of_share), np.column_stack(rows_of_inverse)])
    entries = [
        -np.ones(jobs),
        np.column_stack([entries_of_shares, minus_value, minus_value, 0.0 * minus_value]),
        np.column_stack([remaining / due, -np.ones(jobs), np.ones(jobs), np.zeros(jobs)]),
    ]
    limits = np.concatenate([-spent / due, limits_of_shares, np.tile([0.0, 0.0, 2.0], jobs)])
    answer = _solve(1.0, matrix, entries, limits, cones=jobs, keep_zeros=keep_zeros)
    if answer is None:
        return None
    return _by_job(answer["x"][1 : 1 + len(rows)], job_kinds, job), float(answer["x"][0])


def simulator_values(speeds: Floats, widths: Floats, weights: Floats, gpus: Floats) -> Floats:
    """Normalised throughputs, shape (jobs, types), rounded as in the simulator.

    Each is demand times throughput, divided by the weight and by the throughput under an equal
    split of time. The last bit of these values can decide which job runs, and with it 0.1 % of
    average JCT.
    """
    gpus_per_job = gpus / len(speeds)
    equal = (speeds * (gpus_per_job / gpus_per_job.sum())).sum(axis=1)
    values: Floats = speeds * ((1.0 / weights) * (1.0 / equal))[:, None] * widths[:, None]
    return values


def _shares(job_kinds: Any, kind_of: Ints) -> tuple[Floats, Floats, Floats]:
    """Matrix entries of the shares, limits of the rows, and values.

    Entries are (shares, 3): a share has one in each of the three rows that `_rows` names. Limits
    are (rows,), values are (types, jobs). ``kind_of`` has the row of each job in ``job_kinds``.
    """
    jobs = len(kind_of)
    types = job_kinds.value.shape[1]
    size = jobs * types
    entries = np.ones((size, 3))
    limits = np.ones(size + types + jobs)
    entries[:, 0] = -1.0
    entries[:, 1] = np.tile(job_kinds.widths[kind_of], types)
    limits[:size] = 0.0
    limits[size : size + types] = job_kinds.gpus
    return entries, limits, job_kinds.usable_value[kind_of].T


@functools.lru_cache(maxsize=1024)
def _rows(jobs: int, types: int) -> Ints:
    """Three rows of each share: share >= 0, GPUs of its type, and time of its job, (shares, 3)."""
    size = jobs * types
    of_type = np.repeat(np.arange(types), jobs)
    of_job = np.tile(np.arange(jobs), types)
    return np.column_stack([np.arange(size), size + of_type, size + types + of_job])


@functools.lru_cache(maxsize=1024)
def _level_matrix(jobs: int, types: int, floors: bool) -> Any:
    """Pattern of the matrix of `ecos_level`; its columns are z and the shares, by GPU type."""
    job = np.arange(jobs)
    of_job = np.tile(np.arange(jobs), types)
    rows_of_share = [of_job, jobs + _rows(jobs, types)]
    if floors:
        rows_of_share.append(2 * jobs + jobs * types + types + of_job)
    return _matrix([job[None], np.column_stack(rows_of_share)])


def _matrix(columns: list[Ints]) -> Any:
    """Sparse matrix of ones with a column per unknown.

    Each array of ``columns`` is (unknowns, entries): the rows of the entries of each unknown.
    """
    from scipy.sparse import csc_matrix

    sizes = np.repeat([block.shape[1] for block in columns], [len(block) for block in columns])
    ends = np.cumsum(sizes)
    rows = np.concatenate([block.ravel() for block in columns])
    entries = (np.ones(len(rows)), rows, np.append(0, ends))
    return csc_matrix(entries, shape=(int(rows.max()) + 1, len(ends)))


def _by_job(x: Floats, job_kinds: Any, kind_of: Ints) -> Floats:
    """Shares by job and GPU type, 0 where the job cannot run.

    If a job exceeds its time, or a type its GPUs, one factor scales down all shares.
    """
    shares = np.clip(x.reshape(job_kinds.value.shape[1], -1).T, 0.0, 1.0)
    shares = np.where(job_kinds.usable[kind_of], shares, 0.0)
    # An answer of reduced accuracy may use more time or GPUs than there are.
    used = (job_kinds.widths[kind_of] @ shares / np.maximum(job_kinds.gpus, 1e-300)).max()
    worst = max(float(shares.sum(axis=1).max()), float(used))
    return shares / worst if worst > 1.0 + MAX_EXCESS else shares


def _solve(
    goal: float | Floats,
    matrix: Any,
    entries: list[Floats],
    limits: Floats,
    cones: int = 0,
    keep_zeros: bool = False,
) -> Any:
    """Minimise ``goal`` x subject to limits - G x in the cones; None if ECOS fails.

    A scalar ``goal`` is the coefficient of the first unknown. ``entries`` are the values of G at
    the pattern ``matrix``, column by column. The rows of the second-order ``cones`` come last.
    """
    with needed_for("the solver ecos", otherwise="use the solver centre"):
        import ecos

    matrix.data = np.concatenate([block.ravel() for block in entries])
    if not keep_zeros and not matrix.data.all():
        # The simulator leaves zeros out. They would change the order of elimination, and so the
        # last bits.
        matrix = matrix.copy()
        matrix.eliminate_zeros()
    cost = np.zeros(matrix.shape[1])
    cost[: np.size(goal)] = goal
    dims = {"l": len(limits) - 3 * cones, "q": [3] * cones, "e": 0}
    answer = ecos.solve(cost, matrix, limits, dims, verbose=False)
    return answer if answer["info"]["exitFlag"] in _OPTIMAL_EXITS else None
