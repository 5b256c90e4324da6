"""What a job needs, estimated from what jobs like it used: GPUs, GPU memory, bandwidth (Liquid)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import reduce
from typing import Any

import numpy as np
import pandas as pd

from repro.base.errors import TraceError, refuse_unknown
from repro.base.typing import Floats, Ints
from repro.files.checks import Origin, numbers, refuse, shown
from repro.papers.liquid.training_rows import ENOUGH, FEATURES, LABELS
from repro.perf.parameter_server import num_servers
from repro.placement.network import DEFAULT_BANDWIDTH_MB_S, DEFAULT_GPU_MEM_MB
from repro.trace.synth.liquid import WARM_UP

#: Regressors by name, in the order of the paper's Fig 10.
REGRESSORS = ("random_forest", "linear_regression", "adaboost", "gbdt", "decision_tree")
_TRAINING = Origin("training set")
_JOBS = Origin("jobs")
_TYPE = "model"
_FNV = 2166136261


@dataclass(frozen=True)
class Requirement:
    """The requirement vector <GPUs, GPU memory, bandwidth> of a job's containers, and the rest.

    ``gpus`` are workers of one GPU each; the others are of one container: GPU memory (MB),
    bandwidth (MB/s, the amount that is enough if that was learned, else what is received), CPU
    cores, host memory (MB), GPU utilisation (%). As they stand they are what Liquid's artifact
    takes before it has a model. Liquid, TPDS 2022, section 4.1.
    """

    gpus: int = 1
    gpu_mem_mb: float = DEFAULT_GPU_MEM_MB
    bandwidth_mb_s: float = DEFAULT_BANDWIDTH_MB_S
    cpu_cores: int = 4
    mem_mb: float = 4096.0
    gpu_util_pct: float = 100.0


#: Label to the field it decides and how the artifact rounds it; later ones overrule.
_ROUNDING: dict[str, tuple[str, Callable[[Floats], Floats]]] = {
    "cpu_pct": ("cpu_cores", lambda value: np.ceil(value / 100)),
    "mem_mb": ("mem_mb", lambda value: np.ceil(value / 1024) * 1024),
    "gpu_util_pct": ("gpu_util_pct", lambda value: 10 * np.floor(np.ceil(value) / 10)),
    "gpu_mem_mb": ("gpu_mem_mb", lambda value: np.ceil(value / 1024) * 1024),
    "bandwidth_kb_s": ("bandwidth_mb_s", lambda value: 100 * np.ceil(value / 100_000)),
    "enough_workers": ("gpus", lambda value: np.maximum(1, np.round(value))),
    "enough_mb_s": ("bandwidth_mb_s", lambda value: 25 * np.ceil(value / 25)),
}


def regressor(name: str, features: int, seed: int = 0) -> Any:
    """Return an untrained regressor with the parameters of Liquid's artifact (``rf.py``).

    ``features`` is the number of columns, which forests and boosting may all use in each split.

    Examples
    --------
    >>> regressor("random_forest", 6).n_estimators
    70
    """
    from sklearn import ensemble, linear_model, tree

    leaves = {"max_depth": 13, "min_samples_split": 10, "min_samples_leaf": 5}
    grown = {"n_estimators": 70, "max_features": features, "random_state": seed, **leaves}
    made: dict[str, Callable[[], Any]] = {
        "random_forest": lambda: ensemble.RandomForestRegressor(**grown),
        "linear_regression": linear_model.LinearRegression,
        "adaboost": lambda: ensemble.AdaBoostRegressor(random_state=seed),
        "gbdt": lambda: ensemble.GradientBoostingRegressor(loss="squared_error", **grown),
        "decision_tree": lambda: tree.DecisionTreeRegressor(max_depth=13, random_state=seed),
    }
    refuse_unknown("unknown regressor", [name], REGRESSORS)
    return made[name]()


def encode(column: pd.Series[Any]) -> Floats:
    """Return a column as numbers; text is hashed as in the artifact (FNV-1a, over 2^32: 0 to 1).

    Examples
    --------
    >>> (encode(pd.Series(["", "a"])) * 2**32).tolist()
    [2166136261.0, 3826002220.0]
    """
    if pd.api.types.is_numeric_dtype(column.dtype):
        return column.to_numpy(float)
    codes = {
        text: reduce(lambda code, byte: (code ^ byte) * 16777619 % 2**32, str(text).encode(), _FNV)
        for text in column.unique()
    }
    return column.map(codes).to_numpy(float) / 2**32


@dataclass
class RequirementEstimator:
    """Learns labels of containers from their features, and says what a new job needs.

    ``regressor`` is one of `REGRESSORS`; with ``per_type`` each model (column ``model``) has models
    of its own, as in the artifact, otherwise the model is a feature, hashed.

    Liquid, TPDS 2022, section 4.2.

    Examples
    --------
    >>> from repro.papers.liquid.training_rows import synthetic
    >>> known = synthetic(np.random.default_rng(0), 100)
    >>> estimator = RequirementEstimator().fit(known)
    >>> job = {"model": "vgg16", "batch_size": 32, "num_batches": 200}
    >>> estimator.predict(job).gpu_mem_mb >= 4096
    True
    """

    regressor: str = "random_forest"
    labels: Sequence[str] = (*LABELS, *ENOUGH)
    features: Sequence[str] = FEATURES
    per_type: bool = True
    seed: int = 0
    _trained: dict[tuple[str, str], Any] = field(default_factory=dict, init=False, repr=False)

    def fit(self, table: pd.DataFrame) -> RequirementEstimator:
        """Train on rows with features and labels; return the estimator.

        Raises
        ------
        TraceError
            A column is missing or holds no numbers, there are less than two rows (of a type), or a
            label is the same in all of them.
        """
        self._check(table, self.labels, _TRAINING)
        kinds = self._kinds(table)
        for kind, rows in {"": np.arange(len(table)), **kinds}.items():
            if len(rows) < 2:
                of = f" of type {shown(kind)}" if kind else ""
                raise TraceError(
                    f"training set: {len(rows)} row(s){of}; at least 2 are needed to "
                    "learn: add rows"
                )
        known = {
            label: numbers(table[label], label, _TRAINING, "a label is a number")
            for label in self.labels
        }
        for label, values in known.items():
            if np.ptp(values) == 0:
                raise TraceError(
                    f"training set:{label}: {shown(values[0])} in all {len(values)} rows, so there "
                    "is nothing to learn; give rows that differ, or leave the label out"
                )
        inputs = self._inputs(table, _TRAINING)
        trained = {}
        for kind, rows in kinds.items():
            for label, values in known.items():
                model = regressor(self.regressor, inputs.shape[1], self.seed)
                trained[kind, label] = model.fit(inputs[rows], values[rows])
        self._trained = trained
        return self

    def estimates(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the raw estimate of each label, NaN for a type that has no model yet."""
        self._check(table, (), _JOBS)
        found = pd.DataFrame(np.nan, index=table.index, columns=list(self.labels))
        inputs = self._inputs(table, _JOBS)
        for kind, rows in self._kinds(table).items():
            for place, label in enumerate(self.labels):
                if (kind, label) in self._trained:
                    model = self._trained[kind, label]
                    found.iloc[rows, place] = model.predict(inputs[rows])
        return found

    def requirements(self, jobs: pd.DataFrame) -> pd.DataFrame:
        """Return the fields of `Requirement` as columns, one row for each job.

        Needs the features but ``role``. May be left out: ``num_ps`` (1 if ``num_gpus`` is above 1),
        ``num_workers`` (``num_gpus`` less ``num_ps``, or 1), ``gpus_per_task`` (1), ``num_batches``
        (``iterations`` less 10 of warming up). Of a parameter server and a worker the larger need
        counts; of a type without a model the defaults hold. A trace to which ``gpu_mem_mb`` and
        ``bandwidth_mb_s`` are joined is placed by them.
        """
        rows = _filled(jobs)
        found = self._rounded(rows.assign(role=0))
        if "role" in self.features and (rows["num_ps"] > 0).any():
            server = self._rounded(rows.assign(role=1))
            both = pd.DataFrame(np.maximum(found, server), rows.index, found.columns)
            found = found.where(rows["num_ps"] == 0, both)
        return found

    def predict(self, job: Mapping[str, Any]) -> Requirement:
        """Return what one job needs, from the columns that `requirements` reads."""
        row = self.requirements(pd.DataFrame([job])).iloc[0]
        found: dict[str, Any] = {one.name: float(row[one.name]) for one in fields(Requirement)}
        found |= {name: int(found[name]) for name in ("gpus", "cpu_cores")}
        return Requirement(**found)

    def _check(self, table: pd.DataFrame, labels: Sequence[str], origin: Origin) -> None:
        """Raise if a column that is needed is not there."""
        needed = dict.fromkeys((*self.features, *labels, *[_TYPE] * self.per_type))
        if absent := [name for name in needed if name not in table]:
            raise origin.missing(absent, [str(name) for name in table])

    def _rounded(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the estimates of containers as the fields of `Requirement`."""
        raw = self.estimates(rows)
        found = pd.DataFrame(asdict(Requirement()), index=rows.index)
        for label, (name, rounding) in _ROUNDING.items():
            if label in raw:
                values = rounding(raw[label].to_numpy(float).clip(min=0))
                found[name] = np.where(np.isnan(values), found[name], values)
        return found

    def _inputs(self, table: pd.DataFrame, origin: Origin) -> Floats:
        """Return the features as an array, the model among them unless each has its own."""
        names = [name for name in self.features if not (self.per_type and name == _TYPE)]
        columns = {name: encode(table[name]) for name in names}
        for name, values in columns.items():
            gone = table[name].isna().to_numpy(bool) | np.isinf(values)
            refuse(gone, table[name], name, origin, "missing value", "every row has each feature")
        return np.column_stack(list(columns.values()))

    def _kinds(self, table: pd.DataFrame) -> dict[str, Ints]:
        """Return the rows of each type that has models of its own."""
        if not self.per_type:
            return {"": np.arange(len(table))}
        kinds = table[_TYPE].astype(str).to_numpy()
        return {kind: np.flatnonzero(kinds == kind) for kind in dict.fromkeys(kinds)}


def _filled(jobs: pd.DataFrame) -> pd.DataFrame:
    """Return jobs with the columns that may be left out."""
    rows = pd.DataFrame({"gpus_per_task": 1, "num_ps": 0, "num_workers": 1}, jobs.index)
    if "num_gpus" in jobs:
        rows["num_ps"] = jobs["num_ps"] if "num_ps" in jobs else jobs["num_gpus"].map(num_servers)
        rows["num_workers"] = jobs["num_gpus"] - rows["num_ps"]
    if "iterations" in jobs:
        rows["num_batches"] = jobs["iterations"] - WARM_UP
    rows[jobs.columns] = jobs
    return rows
