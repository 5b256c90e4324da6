"""Gavel's worked examples: allocation matrices, their rounds, and what they satisfy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from repro.sim.rounds.settings import choose

Array = npt.NDArray[np.float64]


def cells(matrix: npt.ArrayLike, rows: Sequence[str], columns: Sequence[str]) -> pd.DataFrame:
    """Return a matrix as one row per entry, for a heat map.

    Parameters
    ----------
    matrix : array, shape (rows, columns)
        Entries; infinity is written as a sign.
    rows, columns : sequence of str
        Names.

    Returns
    -------
    DataFrame
        row, column, value, text (two digits, without trailing zeros).

    Examples
    --------
    >>> cells([[0.2, float("inf")]], ["job 0"], ["V100", "K80"])["text"].tolist()
    ['0.2', '∞']
    """
    values = np.asarray(matrix, dtype=float)
    frame = pd.DataFrame(
        [(one, other) for one in rows for other in columns], columns=["row", "column"]
    )
    flat = values.ravel()
    texts = ["∞" if np.isinf(number) else f"{round(number, 2):g}" for number in flat]
    return frame.assign(value=flat, text=texts)


def played(
    fractions: npt.ArrayLike,
    widths: Sequence[int],
    capacity: Sequence[int],
    rounds: int,
    received: npt.ArrayLike | None = None,
) -> pd.DataFrame:
    """Return who runs where in each of some rounds of the same allocation.

    Parameters
    ----------
    fractions : array, shape (jobs, GPU types)
        Allocation matrix X.
    widths, capacity : sequence of int
        Gang sizes and GPUs of each type.
    rounds : int
        Number of rounds.
    received : array, shape (jobs, GPU types), optional
        Rounds received before.

    Returns
    -------
    DataFrame
        round, job, type (numbers from 0).

    References
    ----------
    Gavel, OSDI 2020, section 5.

    Examples
    --------
    >>> played([[0.5, 0.5], [0.5, 0.5]], [1, 1], [1, 1], 2).values.tolist()
    [[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]]
    """
    shares = np.asarray(fractions, dtype=float)
    so_far = np.zeros_like(shares) if received is None else np.asarray(received, dtype=float).copy()
    records = []
    for number in range(rounds):
        chosen = sorted(choose(shares, so_far, widths, capacity))
        for job, kind in chosen:
            so_far[job, kind] += 1
            records.append((number, job, kind))
    return pd.DataFrame(records, columns=["round", "job", "type"], dtype=int)


def bars_of_rounds(
    rounds: pd.DataFrame, jobs: Sequence[str], types: Sequence[str], minutes: float
) -> pd.DataFrame:
    """Return rounds as bars of a chart, one lane per GPU type.

    Parameters
    ----------
    rounds : DataFrame
        From `played`.
    jobs, types : sequence of str
        Names of the jobs and of the GPU types.
    minutes : float
        Length of a round (min).

    Returns
    -------
    DataFrame
        lane, job, start, end (min) and minutes, sorted by lane in the order of ``types``.

    Examples
    --------
    >>> rounds = played([[0.5, 0.5], [0.5, 0.5]], [1, 1], [1, 1], 2)
    >>> bars_of_rounds(rounds, ["job 0", "job 1"], ["V100", "K80"], 6.0)["start"].tolist()
    [0.0, 6.0, 0.0, 6.0]
    """
    ordered = rounds.sort_values(["type", "round"], kind="stable", ignore_index=True)
    start = ordered["round"] * minutes
    return pd.DataFrame(
        {
            "lane": [types[kind] for kind in ordered["type"]],
            "job": [jobs[job] for job in ordered["job"]],
            "start": start,
            "end": start + minutes,
            "minutes": minutes,
        }
    )


def received_rounds(rounds: pd.DataFrame, shape: tuple[int, int]) -> Array:
    """Return the matrix of rounds received.

    Parameters
    ----------
    rounds : DataFrame
        From `played`.
    shape : (int, int)
        Jobs and GPU types.

    Examples
    --------
    >>> received_rounds(played([[1.0, 0.0]], [1], [1, 1], 3), (1, 2)).tolist()
    [[3.0, 0.0]]
    """
    matrix = np.zeros(shape)
    np.add.at(matrix, (rounds["job"].to_numpy(), rounds["type"].to_numpy()), 1.0)
    return matrix


def constraint_sums(
    fractions: npt.ArrayLike, widths: Sequence[int], capacity: Sequence[int]
) -> dict[str, list[float]]:
    """Return what the constraints of Gavel's optimisation problem bound.

    Parameters
    ----------
    fractions : array, shape (jobs, GPU types)
        Allocation matrix X.
    widths, capacity : sequence of int
        Gang sizes and GPUs of each type.

    Returns
    -------
    dict
        ``time``: sum of each row, at most 1; ``gpus``: GPUs used of each type over those there are,
        at most 1; ``range``: least and largest entry, within 0 and 1.

    References
    ----------
    Gavel, OSDI 2020, section 3.1.

    Examples
    --------
    >>> constraint_sums([[0.5, 0.0], [0.5, 0.25]], [1, 2], [2, 1])["gpus"]
    [0.75, 0.5]
    """
    shares = np.asarray(fractions, dtype=float)
    used = np.asarray(widths, dtype=float) @ shares / np.asarray(capacity, dtype=float)
    return {
        "time": shares.sum(axis=1).tolist(),
        "gpus": used.tolist(),
        "range": [float(shares.min()), float(shares.max())],
    }


def effective(fractions: npt.ArrayLike, steps_per_s: Mapping[str, Mapping[str, float]]) -> Array:
    """Return the effective throughput of each job under an allocation (steps/s).

    Parameters
    ----------
    fractions : array, shape (jobs, GPU types)
        Allocation matrix X.
    steps_per_s : mapping of str to mapping of str to float
        Model of each job, in order, to its steps/s on each type, in the order of the columns.

    References
    ----------
    Gavel, OSDI 2020, section 3.1.

    Examples
    --------
    >>> effective([[0.5, 0.5]], {"m0": {"v100": 40, "k80": 10}}).tolist()
    [25.0]
    """
    speeds = np.array([list(row.values()) for row in steps_per_s.values()], dtype=float)
    return np.asarray((np.asarray(fractions, dtype=float) * speeds).sum(axis=1))
