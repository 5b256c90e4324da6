"""Requirements of a job (GPUs, GPU memory, bandwidth), estimated from similar jobs (Liquid)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import reduce
from typing import Any

import numpy as np
import pandas as pd

from repro.base.errors import TraceError, refuse_unknown
from repro.base.extras import needed_for
from repro.base.typing import Floats, Ints
from repro.files.checks import Source, numbers, refuse, shown
from repro.papers.liquid.training_rows import ENOUGH, FEATURES, LABELS
from repro.perf.parameter_server import default_num_ps
from repro.placement.network import DEFAULT_BANDWIDTH_MB_S, DEFAULT_GPU_MEM_MB
from repro.trace.synth.liquid import WARM_UP

#: Regressors by name, in the order of the paper's Fig 10.
REGRESSORS = ("random_forest", "linear_regression", "adaboost", "gbdt", "decision_tree")
_TRAINING = Source("training set")
_JOBS = Source("jobs")
_MODEL_COLUMN = "model"
_FNV = 2166136261


@dataclass(frozen=True)
class Requirement:
    """Requirement vector <GPUs, GPU memory, bandwidth> of a job, with further resources.

    ``gpus`` is the number of workers of one GPU each. The other fields are per container: GPU
    memory (MB), bandwidth (MB/s), CPU cores, host memory (MB), GPU utilisation (%). Bandwidth is
    the sufficient amount if that was learned, else the received amount. The defaults are those of
    Liquid's artifact before it has a model. Liquid, TPDS 2022, section 4.1.
    """

    gpus: int = 1
    gpu_mem_mb: float = DEFAULT_GPU_MEM_MB
    bandwidth_mb_s: float = DEFAULT_BANDWIDTH_MB_S
    cpu_cores: int = 4
    mem_mb: float = 4096.0
    gpu_util_pct: float = 100.0


#: Label -> its field of `Requirement` and the artifact's rounding; later labels overrule.
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
    """Untrained regressor with the parameters of Liquid's artifact (``rf.py``).

    ``features`` is the number of columns; forests and boosting may use all in each split.

    Examples
    --------
    >>> regressor("random_forest", 6).n_estimators
    70
    """
    with needed_for("a requirement estimator"):
        from sklearn import ensemble, linear_model, tree

    ensemble_settings = {
        "n_estimators": 70,
        "max_features": features,
        "random_state": seed,
        "max_depth": 13,
        "min_samples_split": 10,
        "min_samples_leaf": 5,
    }
    factories: dict[str, Callable[[], Any]] = {
        "random_forest": lambda: ensemble.RandomForestRegressor(**ensemble_settings),
        "linear_regression": linear_model.LinearRegression,
        "adaboost": lambda: ensemble.AdaBoostRegressor(random_state=seed),
        "gbdt": lambda: ensemble.GradientBoostingRegressor(
            loss="squared_error", **ensemble_settings
        ),
        "decision_tree": lambda: tree.DecisionTreeRegressor(max_depth=13, random_state=seed),
    }
    refuse_unknown("unknown regressor", [name], REGRESSORS)
    return factories[name]()


def encode(column: pd.Series[Any]) -> Floats:
    """Column as numbers; text is hashed to [0, 1) as in the artifact (FNV-1a / 2^32).

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
    """Estimator of a job's requirements, trained on measured containers.

    ``regressor`` is one of `REGRESSORS`. With ``per_model`` each model (column ``model``) has
    its own regressors, as in the artifact; otherwise the model is a hashed feature. Another feature
    is numeric if all its values in the training set are numbers or texts of numbers. Features of
    other text are hashed.

    Liquid, TPDS 2022, section 4.2.

    Examples
    --------
    >>> from repro.papers.liquid.training_rows import synthetic
    >>> rows = synthetic(np.random.default_rng(0), 100)
    >>> estimator = RequirementEstimator().fit(rows)
    >>> job = {"model": "vgg16", "batch_size": 32, "num_batches": 200}
    >>> estimator.predict(job).gpu_mem_mb >= 4096
    True
    """

    regressor: str = "random_forest"
    labels: Sequence[str] = (*LABELS, *ENOUGH)
    features: Sequence[str] = FEATURES
    per_model: bool = True
    seed: int = 0
    _trained: dict[tuple[str, str], Any] = field(default_factory=dict, init=False, repr=False)
    #: features that are numbers in the training set
    _numeric: frozenset[str] = field(default=frozenset(), init=False, repr=False)

    def fit(self, table: pd.DataFrame) -> RequirementEstimator:
        """Train on rows with features and labels; return the estimator.

        Raises
        ------
        TraceError
            A column is missing, a label holds no numbers, a feature has a missing value, there are
            fewer than two rows (with ``per_model``: of a model), or a label is the same in all
            rows.
        """
        self._check(table, self.labels, _TRAINING)
        rows_of_model = self._rows_of_model(table)
        for model, rows in {"": np.arange(len(table)), **rows_of_model}.items():
            if len(rows) < 2:
                of_model = f" of type {shown(model)}" if model else ""
                raise TraceError(
                    f"training set: {len(rows)} row(s){of_model}; at least 2 are needed to "
                    "learn: add rows"
                )
        values_of_label = {
            label: numbers(table[label], label, _TRAINING, "a label is a number")
            for label in self.labels
        }
        for label, values in values_of_label.items():
            if np.ptp(values) == 0:
                raise TraceError(
                    f"training set:{label}: {shown(values[0])} in all {len(values)} rows, so there "
                    "is nothing to learn; give rows that differ, or leave the label out"
                )
        numeric = frozenset(
            name for name in self.features if name != _MODEL_COLUMN and _are_numbers(table[name])
        )
        inputs = self._inputs(table, numeric, _TRAINING)
        trained = {}
        for model, rows in rows_of_model.items():
            for label, values in values_of_label.items():
                untrained = regressor(self.regressor, inputs.shape[1], self.seed)
                trained[model, label] = untrained.fit(inputs[rows], values[rows])
        self._trained = trained
        self._numeric = numeric
        return self

    def estimates(self, table: pd.DataFrame) -> pd.DataFrame:
        """Raw estimate of each label, NaN for a model without a regressor yet.

        Raises
        ------
        TraceError
            A feature is missing, or is no number and was one in the training set.
        """
        self._check(table, (), _JOBS)
        estimates = pd.DataFrame(np.nan, index=table.index, columns=list(self.labels))
        inputs = self._inputs(table, self._numeric, _JOBS)
        for model, rows in self._rows_of_model(table).items():
            for column, label in enumerate(self.labels):
                if (model, label) in self._trained:
                    trained = self._trained[model, label]
                    estimates.iloc[rows, column] = trained.predict(inputs[rows])
        return estimates

    def requirements(self, jobs: pd.DataFrame) -> pd.DataFrame:
        """Fields of `Requirement` as columns, one row per job.

        The jobs need all features but ``role``. Features without a column have defaults:

        - ``num_ps`` is 1 if ``num_gpus`` is above 1, else 0.
        - ``num_workers`` is ``num_gpus`` - ``num_ps``, or 1 without the column ``num_gpus``.
        - ``gpus_per_task`` is 1.
        - ``num_batches`` is ``iterations`` less 10 of warm-up.

        The larger requirement of a parameter server and a worker counts. A model without regressors
        has the defaults of `Requirement`. Liquid's policies read ``gpu_mem_mb`` and
        ``bandwidth_mb_s`` if these columns are joined to the trace.
        """
        rows = _filled(jobs)
        needs = self._rounded(rows.assign(role=0))
        if "role" in self.features and (rows["num_ps"] > 0).any():
            server = self._rounded(rows.assign(role=1))
            larger = pd.DataFrame(np.maximum(needs, server), rows.index, needs.columns)
            needs = needs.where(rows["num_ps"] == 0, larger)
        return needs

    def predict(self, job: Mapping[str, Any]) -> Requirement:
        """Predict the requirement of one job from the columns that `requirements` reads."""
        row = self.requirements(pd.DataFrame([job])).iloc[0]
        values: dict[str, Any] = {item.name: float(row[item.name]) for item in fields(Requirement)}
        values |= {name: int(values[name]) for name in ("gpus", "cpu_cores")}
        return Requirement(**values)

    def _check(self, table: pd.DataFrame, labels: Sequence[str], source: Source) -> None:
        """Raise if a needed column is missing."""
        needed = dict.fromkeys((*self.features, *labels, *[_MODEL_COLUMN] * self.per_model))
        if absent := [name for name in needed if name not in table]:
            raise source.missing(absent, [str(name) for name in table])

    def _rounded(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Rounded estimates of containers as the fields of `Requirement`; the default for NaN."""
        raw = self.estimates(rows)
        needs = pd.DataFrame(asdict(Requirement()), index=rows.index)
        for label, (name, rounding) in _ROUNDING.items():
            if label in raw:
                values = rounding(raw[label].to_numpy(float).clip(min=0))
                needs[name] = np.where(np.isnan(values), needs[name], values)
        return needs

    def _inputs(self, table: pd.DataFrame, numeric: frozenset[str], source: Source) -> Floats:
        """Features as an array (rows, features), with the model unless ``per_model``."""
        names = [name for name in self.features if not (self.per_model and name == _MODEL_COLUMN)]
        columns = {
            name: _numbers(table[name], name, source) if name in numeric else encode(table[name])
            for name in names
        }
        for name, values in columns.items():
            missing = table[name].isna().to_numpy(bool) | np.isinf(values)
            refuse(
                missing, table[name], name, source, "missing value", "every row has each feature"
            )
        return np.column_stack(list(columns.values()))

    def _rows_of_model(self, table: pd.DataFrame) -> dict[str, Ints]:
        """Rows of each model with its own regressors; all rows under "" unless ``per_model``."""
        if not self.per_model:
            return {"": np.arange(len(table))}
        models = table[_MODEL_COLUMN].astype(str).to_numpy()
        return {model: np.flatnonzero(models == model) for model in dict.fromkeys(models)}


def _filled(jobs: pd.DataFrame) -> pd.DataFrame:
    """Jobs with the optional columns filled in."""
    rows = pd.DataFrame({"gpus_per_task": 1, "num_ps": 0, "num_workers": 1}, jobs.index)
    if "num_gpus" in jobs:
        num_gpus = pd.Series(_numbers(jobs["num_gpus"], "num_gpus", _JOBS), jobs.index)
        rows["num_ps"] = num_gpus.map(default_num_ps)
        if "num_ps" in jobs:
            rows["num_ps"] = _numbers(jobs["num_ps"], "num_ps", _JOBS)
        rows["num_workers"] = num_gpus - rows["num_ps"]
    if "iterations" in jobs:
        rows["num_batches"] = _numbers(jobs["iterations"], "iterations", _JOBS) - WARM_UP
    rows[jobs.columns] = jobs
    rows["num_ps"] = _numbers(rows["num_ps"], "num_ps", _JOBS)
    return rows


def _numbers(column: pd.Series[Any], name: str, source: Source) -> Floats:
    """Column of numbers, which may be text, as float64; TraceError for another value."""
    if pd.api.types.is_numeric_dtype(column.dtype):
        return column.to_numpy(float, na_value=np.nan)
    return numbers(column, name, source, "a feature is a number, as in the training set")


def _are_numbers(column: pd.Series[Any]) -> bool:
    """Whether all values of a column are numbers or texts of numbers; gaps do not count."""
    values = pd.to_numeric(column, errors="coerce")
    return bool((values.notna() | column.isna()).all())
