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
    """Return the price list."""
    return _read().copy()


def usd_per_hour(
    gpu_types: Sequence[str | None], market: str = "preemptible"
) -> npt.NDArray[np.float64]:
    """Return the price of a GPU of each type (USD per hour)."""
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
