"""Gavel's motivation: how unequal GPU types are, per dollar too, and what sharing a GPU costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from repro import paths
from repro.errors import ParamError
from repro.perf.throughput import ThroughputTable

_FILE = "gavel_motivation.csv"
_BESIDE = "p100_beside_"
_SECOND = "p100_second_of_two"
GPU_TYPES = ("k80", "p100", "v100")


def motivation() -> pd.DataFrame:
    """Return the measurements behind Figures 1 and 4, one row per model and batch size.

    Returns
    -------
    DataFrame
        model, batch_size (NaN where the model has one only), steps/s alone (k80, p100, v100),
        steps/s on a P100 beside each of six models (p100_beside_<model>, 0 out of memory) and of
        the second of two equal jobs (p100_second_of_two).

    Raises
    ------
    ParamError
        If the checkout's ``params/gavel_motivation.csv`` is missing or has lost a column.

    References
    ----------
    Gavel, OSDI 2020, Figures 1 and 4; motivation notebooks of the artifact.

    Examples
    --------
    >>> len(motivation()), motivation()["k80"].min() > 0
    (8, np.True_)
    """
    path = paths.params_dir() / _FILE
    if not path.is_file():
        raise ParamError(f"{path}: the motivation table is missing; restore it from the checkout")
    table = pd.read_csv(path, comment="#")
    if lost := [c for c in ("model", "batch_size", *GPU_TYPES, _SECOND) if c not in table]:
        raise ParamError(f"{path}:2: no column {', '.join(lost)}; restore the table")
    return table


def picked(table: pd.DataFrame, models: Mapping[str, int | None]) -> pd.DataFrame:
    """Return the rows of some models with a batch size each.

    Parameters
    ----------
    table : DataFrame
        With model and batch_size.
    models : mapping of str to int
        Model to its batch size, None where it has one only.

    Raises
    ------
    ParamError
        If the table has no such row.

    Examples
    --------
    >>> picked(motivation(), {"ResNet-18": 64})["p100"].tolist()
    [30.85]
    """
    rows = []
    for model, batch in models.items():
        same = table["batch_size"].isna() if batch is None else table["batch_size"] == batch
        found = table[(table["model"] == model) & same]
        if len(found) != 1:
            raise ParamError(
                f"{_FILE}: {len(found)} rows of {model} with batch size {batch}, not 1"
            )
        rows.append(found)
    return pd.concat(rows, ignore_index=True)


def job_type(model: str, batch: int | None) -> str:
    """Return the name of a model and batch size in the artifact's throughput tables.

    Examples
    --------
    >>> job_type("ResNet-18", 64), job_type("A3C", None)
    ('ResNet-18 (batch size 64)', 'A3C')
    """
    return model if batch is None else f"{model} (batch size {batch})"


def from_throughputs(
    throughputs: ThroughputTable, models: Mapping[str, int | None]
) -> pd.DataFrame:
    """Return the same rows as `picked` from the throughputs of the simulations, on one GPU.

    Parameters
    ----------
    throughputs : ThroughputTable
        Steps/s by model and GPU type.
    models : mapping of str to int
        Model to its batch size, None where it has one only.

    Examples
    --------
    >>> speeds = ThroughputTable.of({"A3C": {"k80": 1.0, "p100": 2.0, "v100": 3.0}}, "v100")
    >>> from_throughputs(speeds, {"A3C": None})["v100"].tolist()
    [3.0]
    """
    types = {model: job_type(model, batch) for model, batch in models.items()}
    columns = {
        kind: [throughputs.steps_per_s(name, 1, kind) for name in types.values()]
        for kind in GPU_TYPES
    }
    return pd.DataFrame({"model": list(types), **columns})


def relative_speed(table: pd.DataFrame, prices: Mapping[str, float]) -> pd.DataFrame:
    """Return the throughput on each GPU type relative to the first, and the same per dollar.

    Parameters
    ----------
    table : DataFrame
        model and one column of steps/s per GPU type.
    prices : mapping of str to float
        GPU type to USD/h; the first is the unit.

    Returns
    -------
    DataFrame
        model, gpu_type (capitals), speed, per_dollar.

    References
    ----------
    Gavel, OSDI 2020, Figure 1.

    Examples
    --------
    >>> table = pd.DataFrame({"model": ["m"], "k80": [2.0], "v100": [10.0]})
    >>> relative_speed(table, {"k80": 0.5, "v100": 2.5})[["speed", "per_dollar"]].values.tolist()
    [[1.0, 1.0], [5.0, 1.0]]
    """
    unit = next(iter(prices))
    frames = [
        pd.DataFrame(
            {
                "model": table["model"],
                "gpu_type": kind.upper(),
                "speed": table[kind] / table[unit],
                "per_dollar": table[kind] / table[unit] * prices[unit] / price,
            }
        )
        for kind, price in prices.items()
    ]
    return pd.concat(frames).sort_index(kind="stable").reset_index(drop=True)


def labels(relative: pd.DataFrame, column: str) -> list[list[float]]:
    """Return one column of `relative_speed` as printed: one decimal, a list per model."""
    rounded = relative[column].round(1)
    return [rows.tolist() for _, rows in rounded.groupby(relative["model"], sort=False)]


def shared_speeds(table: pd.DataFrame, models: Sequence[str]) -> pd.DataFrame:
    r"""Return what each of two models keeps of its speed when they share a P100.

    Parameters
    ----------
    table : DataFrame
        Rows of `motivation`, one per model.
    models : sequence of str
        Order of rows and columns.

    Returns
    -------
    DataFrame
        row, column, first and second (speed in the pair over speed alone), total, text; the upper
        triangle.

    References
    ----------
    Gavel, OSDI 2020, Figure 4.

    Examples
    --------
    >>> table = picked(motivation(), {"A3C": None, "CycleGAN": None})
    >>> shared_speeds(table, ["A3C", "CycleGAN"])["text"].tolist()
    ['1.00\n1.00', '0.92\n0.87', '0.59\n0.59']
    """
    by_model = table.set_index("model")
    alone = by_model["p100"]
    records = []
    for at, one in enumerate(models):
        for other in models[at:]:
            back = by_model.loc[other, _BESIDE + one if other != one else _SECOND]
            first = by_model.loc[one, _BESIDE + other] / alone[one]
            records.append((one, other, first, back / alone[other]))
    frame = pd.DataFrame(records, columns=["row", "column", "first", "second"])
    texts = [f"{a:.2f}\n{b:.2f}" for a, b in zip(frame["first"], frame["second"], strict=True)]
    return frame.assign(total=frame["first"] + frame["second"], text=texts)
