"""Predicted durations for the jobs of any trace, with an error."""

from __future__ import annotations

import math
import zlib

import numpy as np
import pandas as pd

from repro.base.counts import check_seed
from repro.base.errors import ParamError, TraceError
from repro.base.typing import Floats
from repro.model.jobs import prediction_factors_of
from repro.trace.schema import COLUMNS, validate_in_order

COLUMN = "predicted_duration"
#: Attribute of a frame with the error of its predictions.
ERROR = "prediction_error"


def predict_durations(trace: pd.DataFrame, error: float, seed: int = 0) -> pd.DataFrame:
    """Predict the duration of every job of a trace, with a log-normal error.

    The new column ``predicted_duration`` is duration x exp(error x z), with a standard normal z per
    job. Policies then know predicted durations and remaining times. Both are the true times
    multiplied by the factor of the job. Jobs run their true durations.

    Parameters
    ----------
    trace : DataFrame
        Jobs, as `repro.load` returns them.
    error : float
        Standard deviation of the logarithm of the factor, 0 or more: two thirds of the predictions
        are within a factor of exp(error). With 0 predictions are the true durations.
    seed : int
        Seed of the sample. The same jobs and seed give the same predictions in any order of rows,
        and larger errors have the same z.

    Returns
    -------
    DataFrame
        The jobs in the order of ``trace``. ``attrs["notes"]`` has a line on the error.

    Raises
    ------
    ParamError
        If an argument is not accepted, or a prediction is too small or large for a trace.
    TraceError
        If the trace predicts durations already.

    Examples
    --------
    >>> from repro.testing import small_trace
    >>> predicted = predict_durations(small_trace(), 0.5, seed=1)
    >>> predicted[["duration", "predicted_duration"]].round(1).head(3)
       duration  predicted_duration
    0      10.0                24.4
    1       4.0                 2.8
    2      25.0                21.5
    """
    is_number = isinstance(error, int | float | np.number) and not isinstance(error, bool)
    if not is_number or not 0 <= error < math.inf:
        raise ParamError(
            f"prediction error is {error!r}; give the standard deviation of the logarithm, a "
            "number of 0 or more such as 0.5"
        )
    check_seed(seed)
    frame = validate_in_order(trace)
    if prediction_factors_of(frame) is not None:
        name = str(trace.attrs.get("name", "trace"))
        raise TraceError(
            f"{name}: has {COLUMN} already; leave --prediction-error (prediction_error) out, or "
            "drop the column"
        )
    z = _standard_normal(frame, int(seed))
    with np.errstate(over="ignore"):
        predicted = frame["duration"].to_numpy() * np.exp(float(error) * z)
    limits = COLUMNS[COLUMN]
    if not ((predicted > limits.low) & (predicted <= limits.high)).all():
        raise ParamError(
            f"prediction error is {error:g}: predictions reach {predicted.min():.3g} to "
            f"{predicted.max():.3g} s, and a trace has durations above 0, at most "
            f"{limits.high:,.0f} s; give a smaller error"
        )
    frame[COLUMN] = predicted
    frame.attrs[ERROR] = float(error)
    note = f"{words(float(error))} (seed {seed})"
    frame.attrs["notes"] = [*frame.attrs.get("notes", ()), note]
    return frame


def words(error: float | None) -> str:
    """Phrase that says how durations were predicted.

    ``error`` is that of `predict_durations`. None stands for predictions that the trace has.

    >>> words(0.5), words(None)
    ('durations predicted with a log-normal error of 0.5', 'durations as predicted by the trace')
    """
    if error is None:
        return "durations as predicted by the trace"
    return f"durations predicted with a log-normal error of {error:g}"


def _standard_normal(frame: pd.DataFrame, seed: int) -> Floats:
    """Standard normal number of each job, (jobs,). Jobs draw in the order of their ids."""
    rng = np.random.default_rng([seed, zlib.crc32(b"predicted durations of a trace")])
    order = np.argsort(frame["job_id"].to_numpy(), kind="stable")
    z = np.empty(len(frame))
    z[order] = rng.standard_normal(len(frame))
    return z
