"""Speed-up curves: the rate of elastic jobs by their number of GPUs (PCS, AFS, Themis)."""

import functools
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np

from repro.base.errors import ParamError, TraceError
from repro.base.typing import Floats, Ints
from repro.files.checks import refuse_strange, shown
from repro.files.table import Document, Table
from repro.files.tables import ModelTable
from repro.model.decision import Run
from repro.model.jobs import MAX_GPUS_PER_JOB, JobTable
from repro.model.records import Nodes
from repro.perf.model_names import further_names

#: Name of the curves of PCS's simulator.
PUBLIC = "pcs-speedups"
_PUBLISHED = ModelTable("pcs_speedups.csv", ("model", "us_per_iteration"))
#: Value columns with their rules; a file of curves has exactly one of these columns.
_VALUES = {
    "us_per_iteration": "a time per iteration is above 0 and finite",
    "speedup": "a speed-up is above 0 and finite",
}
_MODEL_RULE = "the name of a model"
_COUNT_RULE = f"each model has a row for 1, 2, … GPUs without gaps, up to {MAX_GPUS_PER_JOB:,}"


@dataclass(frozen=True)
class SpeedUp:
    """Performance model of elastic jobs: rate S(g)/S(D) on g GPUs, S the speed-up, D the demand.

    S is linear between whole numbers of GPUs. A job on more than D GPUs has the speed-up S(D).

    In its methods, ``model`` is the name of a model, ``gpus`` a number of GPUs, ``table`` has the
    jobs of the trace, ``job`` is the row number of a job, ``run`` the gang, and ``nodes`` are its
    nodes, which play no role. In `table`, ``models``, ``gpus`` and ``ids`` have an entry per job.

    Parameters
    ----------
    curves : mapping of str to tuple of float
        Model to S(1), S(2), …; S(1) is 1. A model without a curve scales linearly.
    strict : bool
        Refuse a model without a curve. A job without a model still scales linearly.
    names : mapping of str to str
        Further names of models, each with the name of its curve. A curve goes on for a model of
        this mapping, as its jobs may ask for more GPUs than were measured.
    growth : float
        How curves go on beyond their end at n GPUs: S(g) = S(n) (g/n)^growth. 1: each further GPU
        adds as much as the measured ones on average; 0: the curve stays constant.
    rounded : bool
        Round linear speed-up as PCS's simulator does: t(1) / t(g) with t(g) = 1/g microseconds.
        Rounding leaves S(5), S(10) and others a little below g.

    References
    ----------
    PCS, arXiv 2401.10354, demand functions.

    Examples
    --------
    >>> SpeedUp({"vgg": (1.0, 1.5, 1.8)}).speed("vgg", 2.5), SpeedUp().speed(None, 2.5)
    (1.65, 2.5)
    """

    #: name of the table of these models in the map of names (`repro.perf.model_names`)
    table_name: ClassVar[str] = "pcs"

    curves: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    strict: bool = False
    rounded: bool = False
    names: Mapping[str, str] = field(default_factory=dict)
    growth: float = 1.0

    def own_name(self, model: str) -> str:
        """Name of the curve of a model; the name itself if it has none."""
        return model if model in self.curves else self.names.get(model, model)

    def covers(self, model: object) -> bool:
        """Whether a model has a curve."""
        return isinstance(model, str) and self.own_name(model) in self.curves

    #: rates are the same on any nodes
    reads_nodes: ClassVar[bool] = False

    def speed(self, model: str | None, gpus: float) -> float:
        """S(gpus), the speed-up over one GPU."""
        curve = self._curve_up_to(model, math.ceil(gpus))
        if curve is None:
            if not self.rounded:
                return gpus
            curve = tuple(rounded_linear(math.ceil(gpus)).tolist())
        whole_gpus = min(math.floor(gpus), len(curve))
        whole_speed = curve[whole_gpus - 1] if whole_gpus else 0.0
        if whole_gpus == len(curve):
            return whole_speed
        return whole_speed + (gpus - whole_gpus) * (curve[whole_gpus] - whole_speed)

    def of(self, table: JobTable, job: int, gpus: float) -> float:
        """S of a job of the trace on ``gpus`` GPUs, at most its demand."""
        model = table.models[job] if self.curves or self.strict else None
        demand = table.gpus[job]
        # Called for its checks of the curve.
        self._curve(model, demand, table.ids[job])
        return self.speed(model, min(gpus, demand))

    def table(
        self, models: Sequence[str | None], gpus: Sequence[int], ids: Sequence[object]
    ) -> tuple[Floats, Ints]:
        """S at 0, 1, … GPUs, shape (curves, widest demand + 2), and the row of each job.

        Row 0 is linear. Beyond its end a curve stays constant, unless its model is one of
        ``names``. The last column lets a loop read the speed-up with one GPU more than the demand.
        ``ids`` appear in messages only.
        """
        num_columns = max(gpus, default=0) + 2
        rows = [np.arange(num_columns, dtype=np.float64)]
        linear = tuple(rounded_linear(num_columns).tolist()) if self.rounded else None
        row_of: dict[str | None, int] = {}
        for model, demand, job in zip(models, gpus, ids, strict=True):
            # Called for its checks of the curve.
            self._curve(model, demand, job)
            if model not in row_of:
                curve = self._curve_up_to(model, num_columns - 1)
                curve = linear if curve is None else curve
                row_of[model] = 0 if curve is None else len(rows)
                if curve is not None:
                    values = np.array([0.0, *curve[: num_columns - 1]])
                    rows.append(np.pad(values, (0, num_columns - values.size), mode="edge"))
        return np.array(rows), np.array([row_of[model] for model in models], dtype=np.int64)

    def _curve(self, model: str | None, demand: int, job: object) -> tuple[float, ...] | None:
        """Curve of a job, None if linear. ParamError for a curve that is missing or too short."""
        curve = self._curve_up_to(model, demand)
        if curve is not None and demand > len(curve):
            raise ParamError(
                f"job {job!r} asks for {demand} GPUs but the speed-up curve of {model!r} "
                f"ends at {len(curve)}; give a longer curve or drop the job"
            )
        # a gap in the column is a NaN
        if curve is None and self.strict and isinstance(model, str) and model:
            raise ParamError(
                f"job {job!r} is of model {model!r}, which has no speed-up curve; give it one or "
                f"drop the job (known: {', '.join(self.curves) or 'none'})"
            )
        return curve

    def _curve_up_to(self, model: str | None, gpus: int) -> tuple[float, ...] | None:
        """Curve of a model, to ``gpus`` GPUs at least if the model is one of ``names``."""
        if model is None:
            return None
        curve = self.curves.get(self.own_name(model))
        if curve is None or model in self.curves:
            return curve
        end = len(curve)
        further = (curve[-1] * (count / end) ** self.growth for count in range(end + 1, gpus + 1))
        return (*curve, *further)

    def rates(self, table: JobTable, run: Run, nodes: Nodes) -> list[float]:
        """S(g)/S(D) of a single job."""
        if len(run.jobs) > 1:
            raise ParamError(
                "speed-up curves have no rates for groups of jobs; use another performance model"
            )
        job = run.jobs[0]
        return [self.of(table, job, run.gpus) / self.of(table, job, table.gpus[job])]


def rounded_linear(gpus: int) -> Floats:
    """Linear speed-up S(1), S(2), …, S(gpus) as PCS's simulator rounds it, shape (gpus,).

    Examples
    --------
    >>> rounded_linear(6).tolist()
    [1.0, 2.0, 3.0, 4.0, 4.999999999999999, 6.0]
    """
    seconds = 1.0 / np.arange(1, gpus + 1) / 1e6
    speed: Floats = (1.0 / 1e6) / seconds
    return speed


@functools.cache
def pcs_speedups(growth: float = 1.0) -> SpeedUp:
    """Curves of the nine models of PCS's simulator; other models are refused.

    A model of the map of names (`repro.perf.model_names`) has the curve of its name in PCS.

    Parameters
    ----------
    growth : float
        How the curve of such a model goes on beyond its end (`SpeedUp`).

    Returns
    -------
    SpeedUp
        S(n) = t(1) / t(n), from the times of an iteration in PCS's public simulator.

    Examples
    --------
    >>> curves = pcs_speedups()
    >>> len(curves.curves), round(curves.speed("VggnetModel256", 2), 2)
    (9, 1.82)
    """
    curves = {}
    for name, us in _published_times().items():
        # The simulator computes in seconds, and the last bit decides between equal jobs.
        curves[name] = tuple(((us[0] / 1e6) / (us / 1e6)).tolist())
    names = further_names("pcs")
    return SpeedUp(curves, strict=True, rounded=True, names=names, growth=growth)


def pcs_iteration_s(name: str, gpus: int) -> float:
    """Seconds per iteration of a model of PCS's simulator.

    Beyond the end of its times, the time is inversely proportional to the number of GPUs.
    """
    times_us = _published_times()[name]
    end = times_us.size
    if gpus > end:
        return float(times_us[-1] / 1e6 * end / gpus)
    return float(times_us[gpus - 1] / 1e6)


def _published_times() -> dict[str, Floats]:
    """Microseconds per iteration on 1, 2, … GPUs of the models of PCS's simulator."""
    accepted = "times above 0 for 1, 2, … GPUs"
    times = _PUBLISHED.lists("us_per_iteration", lambda us: us.size > 0 and min(us) > 0, accepted)
    return dict(zip(_PUBLISHED.frame["model"], times, strict=True))


def load_speedups(path: str | Path) -> SpeedUp:
    r"""Read speed-up curves from a CSV file; models without a curve are refused.

    The file has one row per model and number of GPUs, in any order, for 1, 2, … GPUs without gaps.
    Its columns are model, gpus, and either us_per_iteration or speedup. Any unit of time or speed
    will do, as S(g) = t(1) / t(g) or s(g) / s(1). Errors begin with ``file:line:column``.

    Parameters
    ----------
    path : str or Path
        The file, or ``pcs-speedups`` for `pcs_speedups` when no such file exists.

    Returns
    -------
    SpeedUp
        The curves. A job of a model without a curve is refused in a run.

    Raises
    ------
    TraceError
        If the file cannot be read, or a row breaks a rule.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "curves.csv"
    ...     _ = path.write_text("model,gpus,speedup\nvgg,1,1\nvgg,2,1.5\n")
    ...     load_speedups(path).speed("vgg", 2)
    1.5
    """
    if str(path) == PUBLIC and not os.path.exists(path):
        return pcs_speedups()
    table = Table(Document.read(path), ("model", "gpus"), text=("model",))
    present = [name for name in _VALUES if name in table]
    if len(present) != 1:
        header = shown(", ".join(table.header), 200)
        accepted = " or ".join(_VALUES)
        raise TraceError(f"{path}:1: give one column {accepted}, not both (found {header})")
    (value_column,) = present
    frame = table.frame
    table.refuse(frame["model"].isna().to_numpy(), "model", "missing value", _MODEL_RULE)
    refuse_strange(frame["model"], "model", table.source({}), _MODEL_RULE)
    gpus = table.numbers("gpus", _COUNT_RULE, low=1, high=MAX_GPUS_PER_JOB)
    table.refuse(gpus != np.floor(gpus), "gpus", "not a whole number", _COUNT_RULE)
    value_rule = _VALUES[value_column]
    values = table.numbers(value_column, value_rule)
    table.refuse(values <= 0, value_column, "not positive", value_rule)
    frame = frame.assign(gpus=gpus, value=values)
    table.refuse(frame.duplicated(["model", "gpus"]).to_numpy(), "gpus", "given twice", _COUNT_RULE)
    ranks = frame.groupby("model")["gpus"].rank().to_numpy()
    table.refuse(gpus != ranks, "gpus", "a smaller number of GPUs is missing", _COUNT_RULE)
    on_one_gpu = frame[gpus == 1].set_index("model")["value"].loc[frame["model"]].to_numpy()
    with np.errstate(over="ignore"):
        # As in `pcs_speedups`, times are divided in seconds, which decides the last bit.
        if value_column == "speedup":
            speed = values / on_one_gpu
        else:
            speed = (on_one_gpu / 1e6) / (values / 1e6)
    wrong = ~np.isfinite(speed) | (speed == 0)
    table.refuse(wrong, value_column, "no finite speed-up over 1 GPU", value_rule)
    curves = frame.assign(value=speed).sort_values("gpus").groupby("model", sort=False)["value"]
    return SpeedUp({str(name): tuple(curve.tolist()) for name, curve in curves}, strict=True)
