"""Jobs that take turns on several resources: interleaving time and grouping efficiency (Muri)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt

from repro.errors import ParamError

Stages = tuple[float, ...]
Ordering = Literal["best", "worst"]


def interleaving_time(members: Sequence[Stages], ordering: Ordering = "best") -> float:
    """Return the period T in which every member completes one iteration.

    Each member starts one or more stages after the next, with a barrier after every step, so that
    no two members use one resource at once.

    Parameters
    ----------
    members : sequence of tuple of float
        Time on each of k resources per iteration (s), one tuple per job; at most k jobs.
    ordering : {"best", "worst"}
        Which of all assignments of jobs to offsets counts: the shortest or the longest.

    Returns
    -------
    float
        T (s); for one job the sum of its stages.

    Raises
    ------
    ParamError
        No member, more members than resources, unequal or negative stages.

    References
    ----------
    Muri, SIGCOMM 2022, Eq 1 and 3.

    Examples
    --------
    >>> interleaving_time([(2, 1), (1, 2)]), interleaving_time([(2, 1), (2, 1)])
    (3.0, 4.0)
    """
    return _period(*_checked(members), ordering)


def efficiency(members: Sequence[Stages], ordering: Ordering = "best") -> float:
    """Return the grouping efficiency gamma: the mean busy share of the k resources.

    Parameters
    ----------
    members, ordering
        As for `interleaving_time`.

    Returns
    -------
    float
        Between 0 and 1.

    References
    ----------
    Muri, SIGCOMM 2022, Eq 2 and 4.

    Examples
    --------
    >>> efficiency([(2, 1), (1, 2)]), efficiency([(2, 1), (2, 1)])
    (1.0, 0.75)
    """
    group, resources = _checked(members)
    period = _period(group, resources, ordering)
    return sum(map(sum, group)) / (resources * period)


def pair_efficiencies(members: Sequence[Stages]) -> npt.NDArray[np.float64]:
    """Return gamma of every pair, the weights of Muri's matching; 0 on the diagonal.

    Parameters
    ----------
    members : sequence of tuple of float
        Stage times of each job (s).

    Examples
    --------
    >>> pair_efficiencies([(2, 1), (1, 2), (2, 1)])[0].tolist()
    [0.0, 1.0, 0.75]
    """
    gamma = np.zeros((len(members), len(members)))
    for i, j in itertools.combinations(range(len(members)), 2):
        gamma[i, j] = gamma[j, i] = efficiency((members[i], members[j]))
    return gamma


def _checked(members: Sequence[Stages]) -> tuple[tuple[Stages, ...], int]:
    """Return members in sorted order, so that equal groups share one cache entry, and k."""
    group = tuple(sorted(tuple(map(float, stages)) for stages in members))
    resources = len(group[0]) if group else 0
    if not 1 <= len(group) <= resources or any(len(stages) != resources for stages in group):
        raise ParamError(
            f"a group of {len(group)} jobs with stages {list(members)}; give 1 to k jobs with the "
            f"times of the same k resources each"
        )
    if any(not 0 <= time < float("inf") for stages in group for time in stages):
        raise ParamError(f"stage times {list(members)}: each is 0 s or more")
    if any(sum(stages) == 0 for stages in group):
        raise ParamError(f"stage times {list(members)}: a job uses no resource at all")
    return group, resources


@lru_cache(maxsize=100_000)
def _period(group: tuple[Stages, ...], resources: int, ordering: Ordering) -> float:
    steps = range(resources)
    periods = []
    # Rotating all offsets together changes nothing, so the first member stays at offset 0.
    for others in itertools.permutations(steps[1:], len(group) - 1):
        offsets = (0, *others)
        busy = ([stages[(step + o) % resources] for stages, o in zip(group, offsets, strict=True)]
                for step in steps)  # fmt: skip
        periods.append(sum(map(max, busy)))
    return min(periods) if ordering == "best" else max(periods)
