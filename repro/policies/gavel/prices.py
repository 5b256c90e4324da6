"""Price of an hour on a GPU of each type (Gavel, Figure 1 b and section 4.2)."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from repro.base.errors import ParamError
from repro.base.typing import Floats
from repro.files.tables import ModelTable

_PRICES = ModelTable("gavel_prices.csv", ("market", "gpu_type", "usd_per_hour", "source"))


def usd_per_hour(gpu_types: Sequence[str | None], market: str = "preemptible") -> Floats:
    """Price of a GPU of each type (USD per hour), shape (GPU types,).

    Parameters
    ----------
    gpu_types : sequence of str or None
        GPU types. None, the type of a cluster without types, has price 1.
    market : {"preemptible", "on-demand"}
        Value of the column ``market`` of ``params/gavel_prices.csv``.

    Raises
    ------
    ParamError
        The table has no such market, or no price above 0 of a GPU type.

    Examples
    --------
    >>> usd_per_hour(["v100", "k80"], "on-demand").tolist()
    [2.85, 0.52]
    """
    table = _PRICES.frame
    rows = table[table["market"] == market]
    if rows.empty:
        markets = ", ".join(sorted(set(table["market"])))
        raise ParamError(f"no prices of market {market!r}; {_PRICES.file} has {markets}")
    usd = pd.to_numeric(rows["usd_per_hour"], errors="coerce")
    price = dict(zip(rows["gpu_type"], usd, strict=True))
    for gpu_type in gpu_types:
        if gpu_type is not None and gpu_type not in price:
            raise ParamError(
                f"no {market} price of GPU type {gpu_type!r}; params/{_PRICES.file} has "
                f"{', '.join(sorted(price))}: add a row, or name another cluster"
            )
        if gpu_type is not None and not price[gpu_type] > 0:
            raise ParamError(
                f"{_PRICES.path}: usd_per_hour of {gpu_type} ({market}) must be a number above 0"
            )
    return np.array([1.0 if gpu_type is None else price[gpu_type] for gpu_type in gpu_types])
