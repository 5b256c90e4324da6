"""Gavel's worked examples: allocation matrices, their rounds and their constraints."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from repro.base.typing import Floats
from repro.papers.gavel.rounds import choose


def cells(matrix: npt.ArrayLike, rows: Sequence[str], columns: Sequence[str]) -> pd.DataFrame:
    """Matrix as rows of a heat map: row, column, value, text."""
    frame = pd.DataFrame(
        [(row, column) for row in rows for column in columns], columns=["row", "column"]
    )
    flat = np.asarray(matrix, dtype=float).ravel()
    texts = ["∞" if np.isinf(number) else f"{round(number, 2):g}" for number in flat]
    return frame.assign(value=flat, text=texts)


def scheduled_rounds(
    fractions: npt.ArrayLike, widths: Sequence[int], capacity: Sequence[int], rounds: int
) -> pd.DataFrame:
    """Jobs and their GPU types in each round of one allocation X (Gavel, section 5)."""
    shares = np.asarray(fractions, dtype=float)
    received = np.zeros_like(shares)
    records = []
    for number in range(rounds):
        for job, gpu_type in sorted(choose(shares, received, widths, capacity)):
            received[job, gpu_type] += 1
            records.append((number, job, gpu_type))
    return pd.DataFrame(records, columns=["round", "job", "type"], dtype=int)


def bars_of_rounds(
    rounds: pd.DataFrame, jobs: Sequence[str], types: Sequence[str], minutes: float
) -> pd.DataFrame:
    """`scheduled_rounds` as bars: lane (GPU type), job, start, end and minutes."""
    ordered = rounds.sort_values(["type", "round"], kind="stable", ignore_index=True)
    start = ordered["round"] * minutes
    lane = ordered["type"].map(types.__getitem__)
    job = ordered["job"].map(jobs.__getitem__)
    bars = {"lane": lane, "job": job, "start": start, "end": start + minutes, "minutes": minutes}
    return pd.DataFrame(bars)


def received_rounds(rounds: pd.DataFrame, shape: tuple[int, int]) -> Floats:
    """Number of rounds that each job received on each GPU type, (jobs, GPU types)."""
    matrix = np.zeros(shape)
    np.add.at(matrix, (rounds["job"].to_numpy(), rounds["type"].to_numpy()), 1.0)
    return matrix


def constraint_sums(
    fractions: npt.ArrayLike, widths: Sequence[int], capacity: Sequence[int]
) -> dict[str, list[float]]:
    """Sums that a valid X keeps at 1 or less (Gavel, section 3.1).

    ``time`` has the sum of X of each job. ``gpus`` has GPUs in use / GPUs of each type.
    """
    shares = np.asarray(fractions, dtype=float)
    used = np.asarray(widths, dtype=float) @ shares / np.asarray(capacity, dtype=float)
    return {"time": shares.sum(axis=1).tolist(), "gpus": used.tolist()}
