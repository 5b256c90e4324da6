"""What an hour on a GPU of each type costs (Gavel)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pandas as pd

from repro import paths
from repro.errors import ParamError

_FILE = "gavel_prices.csv"


def gpu_prices() -> pd.DataFrame:
    """Return the price list.

    Returns
    -------
    DataFrame
        market (``on-demand``, ``preemptible``), gpu_type, usd_per_hour, source.

    Raises
    ------
    ParamError
        If ``params/gavel_prices.csv`` is missing, has lost a column, or a price is not above 0.

    References
    ----------
    Gavel, OSDI 2020, Figure 1 (b), and the constants of its public simulator.

    Examples
    --------
    >>> gpu_prices().query("market == 'on-demand'")["usd_per_hour"].tolist()
    [0.52, 1.68, 2.85]
    """
    return _read().copy()


def usd_per_hour(
    gpu_types: Sequence[str | None], market: str = "preemptible"
) -> npt.NDArray[np.float64]:
    """Return the price of a GPU of each type (USD per hour).

    Parameters
    ----------
    gpu_types : sequence of str or None
        Types; None, the only type of a cluster without types, costs 1.
    market : {"preemptible", "on-demand"}
        Column ``market`` of the price list.

    Returns
    -------
    ndarray, shape (GPU types,)

    Raises
    ------
    ParamError
        Unknown market, or a type that has no price in it.

    References
    ----------
    Gavel, OSDI 2020, section 4.2 (cost).

    Examples
    --------
    >>> usd_per_hour(["k80", "v100"]).tolist()
    [0.135, 0.74]
    """
    table = _read()
    markets = sorted(set(table["market"]))
    if market not in markets:
        raise ParamError(f"no prices of market {market!r}; {_FILE} has {', '.join(markets)}")
    chosen = table[table["market"] == market]
    price = dict(zip(chosen["gpu_type"], chosen["usd_per_hour"], strict=True))
    for kind in gpu_types:
        if kind is not None and kind not in price:
            raise ParamError(
                f"no {market} price of GPU type {kind!r}; params/{_FILE} has "
                f"{', '.join(sorted(price))}: add a row, or name another cluster"
            )
    return np.array([1.0 if kind is None else price[kind] for kind in gpu_types])


@lru_cache(maxsize=1)
def _read() -> pd.DataFrame:
    file = paths.params_dir() / _FILE
    if not file.is_file():
        raise ParamError(f"{file} is missing; restore it from the repository")
    table = pd.read_csv(file, comment="#")
    missing = [
        c for c in ("market", "gpu_type", "usd_per_hour", "source") if c not in table.columns
    ]
    if missing:
        raise ParamError(f"{file}: column {missing[0]!r} is missing")
    table["usd_per_hour"] = pd.to_numeric(table["usd_per_hour"], errors="coerce")
    wrong = table.index[~(table["usd_per_hour"] > 0)]
    if len(wrong):
        row = table.loc[wrong[0]]
        raise ParamError(
            f"{file}: usd_per_hour of {row['gpu_type']} ({row['market']}) must be a number above 0"
        )
    return table
