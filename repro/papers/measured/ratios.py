"""Ratios of means over the same samples, such as workloads, with intervals."""

import pandas as pd

from repro.base.errors import ParamError
from repro.comparison.intervals import ratio_interval


def ratio_rows(samples: pd.DataFrame, references: pd.DataFrame) -> pd.DataFrame:
    """Ratio of the mean of each row to the mean of its reference, with 95 % intervals.

    Parameters
    ----------
    samples : DataFrame
        A row per setting and a column per sample, numbers of 0 or more, (settings, samples).
    references : DataFrame
        The reference of each row, in the order of ``samples``, with the same columns.

    Returns
    -------
    DataFrame
        Columns n (samples), ratio, low, high; the index of ``samples``.

    Raises
    ------
    ParamError
        If the two do not have the same shape and columns.

    Examples
    --------
    >>> samples = pd.DataFrame({0: [2.0, 1.0], 1: [6.0, 2.0]}, index=["a", "b"])
    >>> ratio_rows(samples, samples.loc[["b", "b"]])["ratio"].round(3).to_dict()
    {'a': 2.667, 'b': 1.0}
    """
    if samples.shape != references.shape or list(samples) != list(references):
        raise ParamError(
            f"{len(samples)} rows of samples {list(samples)} and {len(references)} references of "
            f"{list(references)}; give each row a reference with the same samples"
        )
    pairs = zip(samples.to_numpy(float), references.to_numpy(float), strict=True)
    rows = [(samples.shape[1], *ratio_interval(values, others)) for values, others in pairs]
    return pd.DataFrame(rows, samples.index, ["n", "ratio", "low", "high"])
