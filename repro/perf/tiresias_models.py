"""Ten deep-learning models of Tiresias: size, tensor skew, checkpoint cost, placement effect."""

from __future__ import annotations

import difflib
from functools import lru_cache
from statistics import fmean

import pandas as pd

from repro import paths
from repro.errors import ParamError
from repro.perf.overhead import CheckpointOverhead
from repro.perf.slowdown import SpreadSlowdown

#: Mean seconds to resume a preempted job: the published cost of 57.1 to 62.1 s per preemption
#: (section 5.2.4) less the mean pause of 10.4 s (Figure 4); the bars of Figure 5 have no labels.
RESUME_S = 50.0

_FILE = "tiresias_models.csv"


def model_profiles() -> pd.DataFrame:
    """Return what the paper prints about its ten models, one row each, in the paper's order."""
    return _read().copy()


def tiresias_models() -> pd.DataFrame:
    """Return :func:`model_profiles` indexed by model name."""
    return _read().set_index("model")


def pause_s(model: str) -> float:
    """Return the seconds a job of the model takes to checkpoint before it is preempted."""
    return _value(model, "pause_s")


def resume_s(model: str | None = None) -> float:
    """Return the seconds a preempted job of the model takes to resume."""
    if model is not None:
        _value(model, "pause_s")
    return RESUME_S


def random_slowdown(model: str) -> float:
    """Return the training time under random placement over that when consolidated."""
    return 1.0 / _value(model, "random_speed")


def skew_ratio(model: str) -> float:
    """Return the share of the model's size that is in its largest tensor."""
    return _value(model, "largest_ratio")


def checkpoint_overhead() -> CheckpointOverhead:
    """Return the preemption cost of the ten models; an unlisted one costs their mean pause."""
    pauses = _column("pause_s")
    return CheckpointOverhead(pauses, RESUME_S, fmean(pauses.values()))


def spread_slowdown(gpus_per_node: int) -> SpreadSlowdown:
    """Return the speed of the ten models when a gang is on more machines than it needs."""
    return SpreadSlowdown(_column("random_speed"), gpus_per_node)


@lru_cache(maxsize=1)
def _read() -> pd.DataFrame:
    path = paths.params_dir() / _FILE
    if not path.is_file():
        raise ParamError(f"{path}: the table of models is missing; restore it from the checkout")
    table = pd.read_csv(path, comment="#")
    wanted = {"model", "label", "size_mb", "largest_ratio", "pause_s", "random_speed", "source"}
    if lost := wanted - set(table.columns):
        raise ParamError(f"{path}:2: no column {', '.join(sorted(lost))}; restore the table")
    return table


def _column(column: str) -> dict[str, float]:
    table = _read()
    return dict(zip(table["model"], table[column].astype(float), strict=True))


def _value(model: str, column: str) -> float:
    values = _column(column)
    name = model.lower()
    if name not in values:
        near = difflib.get_close_matches(name, values, n=3)
        hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise ParamError(f"unknown model {model!r}{hint} (known: {', '.join(values)})")
    return values[name]
