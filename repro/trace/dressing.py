"""Models for the jobs of any trace, with the columns that each paper's policies read."""

from __future__ import annotations

import math
import zlib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from repro.base.counts import check_seed
from repro.base.errors import ParamError, TraceError, refuse_unknown
from repro.base.typing import Floats
from repro.files.checks import shown
from repro.perf.iteration_times import iteration_s
from repro.perf.measured_folder import OTHER_NAMES, MeasuredFolder, measured_folder
from repro.perf.model_names import CONTENTS, TABLES, MappedModel, mapped_models
from repro.perf.muri_models import GPU_COUNTS, muri_profiles, nearest_count
from repro.perf.throughput import ThroughputTable
from repro.perf.throughput_files import PUBLIC, is_stand_in, load_throughputs, provenance
from repro.trace.schema import STAGES, validate_in_order

ALL = "all"
REFERENCE = "v100"
#: Columns that follow from the model of a job.
PROFILE = ("model", "batch_size", "iterations", "iteration_time", *STAGES)
#: Column of Muri's profiles -> column of the schema. The data stage is storage and CPU together.
_MURI_COLUMNS = {
    "stage_data": "stage_storage",
    "stage_gpu": "stage_gpu",
    "stage_network": "stage_network",
}


def dress(
    trace: pd.DataFrame,
    models: str | Sequence[str] = ALL,
    seed: int = 0,
    *,
    weights: Mapping[str, float] | None = None,
    reference: str = REFERENCE,
    throughputs: str | Path = PUBLIC,
    profiles: str | Path | None = None,
    replace: bool = False,
) -> pd.DataFrame:
    """Sample a model for every job of a trace, and add the columns that follow from it.

    The models of the jobs are independent (Muri, SIGCOMM 2022, section 6.1). Submit time, duration
    and GPUs of a job stay as they are. New columns are ``model``, ``batch_size``,
    ``iteration_time`` and ``iterations`` (whole iterations in the duration, at least 1). Table muri
    adds ``stage_storage`` (with the CPU's part), ``stage_gpu`` and ``stage_network``.

    A model is a name of ``params/model_names.csv``. Where the table of a paper lacks the model, a
    *relative* stands in: a model of the same family that the table has. All tables with the model
    or a relative accept the name.

    A job has one iteration time for all tables. It is `repro.perf.iteration_times.iteration_s`, or,
    where only Gavel's table has the model, 1 / throughput on the reference type. Stage times of a
    relative are scaled to this iteration time. A number of GPUs that Muri's or Tiresias' table
    lacks has the times of the nearest number. For throughputs and speed-up curves of larger gangs
    see `repro.perf.ThroughputTable` and `repro.perf.SpeedUp`.

    With ``profiles``, models and times are those of a measured folder instead
    (`repro.perf.measured_folder`), and ``stage_cpu`` is a stage of its own. A trace that has these
    models keeps them. Its iterations and stage times are replaced also without ``replace``. Gangs
    of any size have the times of one GPU.

    Parameters
    ----------
    trace : DataFrame
        Jobs, as `repro.load` returns them.
    models : str or sequence of str
        Tables that must accept the models: muri (stage times), gavel (throughputs by GPU type), pcs
        (speed-up curves), liquid (phases of an iteration), tiresias (sizes), several of them with
        commas, or ``all``. With one table, models are sampled from those that the table itself has.
        With several tables, they are sampled from the models that every table has or replaces by a
        relative. With ``weights``, one table also takes models that it replaces by a relative.
    seed : int
        Seed of the sample. The same jobs and seed give the same models in any order of rows.
    weights : mapping of str to float, optional
        Model to its weight in the sample; a model that is not named is not sampled. By default all
        models are equally likely.
    reference : str
        GPU type on which the durations were measured; only table gavel reads it.
    throughputs : str or Path
        Throughput table for table gavel (`repro.perf.throughput_files.load_throughputs`).
    profiles : str or Path, optional
        Measured folder with ``stages.csv``, or ``h100``, in place of the tables.
    replace : bool
        Replace the models, iterations and stage times of a trace that has them.

    Returns
    -------
    DataFrame
        The jobs in the order of ``trace``. ``attrs["notes"]`` has a line on the sample. With table
        gavel, ``attrs["throughputs"]`` and ``attrs["reference_gpu"]`` name the throughput table,
        which `repro.simulate` then uses on a cluster with GPU types.

    Raises
    ------
    ParamError
        If an argument is not accepted.
    TraceError
        If the trace has models, iterations or stage times, and ``replace`` is False. With
        ``profiles``, a trace with models is refused only if the folder lacks a model, or some jobs
        have none.
    DataMissingError
        If ``profiles`` is ``h100`` and the tables of the checkout are missing.

    Examples
    --------
    >>> jobs = {"job_id": [0, 1], "submit_time": 0, "duration": [600, 900], "num_gpus": [1, 3]}
    >>> dress(pd.DataFrame(jobs), "muri", seed=1)[["model", "iterations", "stage_gpu"]]
                    model  iterations  stage_gpu
    0            resnet18       770.0      0.110
    1  shufflenet_v2_x1_0      1015.0      0.062
    """
    tables = _tables(models)
    check_seed(seed)
    if profiles is not None:
        if models != ALL or (reference, throughputs) != (REFERENCE, PUBLIC):
            raise ParamError(
                f"profiles={shown(profiles)} takes the place of models, reference and throughputs; "
                "leave these out"
            )
        folder = measured_folder(profiles)
        return _dressed_by(folder, trace, int(seed), weights, replace=replace)
    if "gavel" not in tables and (reference, throughputs) != (REFERENCE, PUBLIC):
        raise ParamError(
            f"reference={reference!r}, throughputs={str(throughputs)!r}: only table gavel reads "
            f"them, and models={','.join(tables)}; add gavel or leave them out"
        )
    frame = validate_in_order(trace)
    name = str(trace.attrs.get("name", "trace"))
    frame = _without_model_columns(frame, name, replace=replace)
    shares = _shares(tables, weights)
    frame["model"] = pd.Series(_sampled_models(frame["job_id"], shares, int(seed))).astype("str")
    needs_table = "gavel" in tables or any(
        iteration_s(model, 1) is None for model in frame["model"].unique()
    )
    table = load_throughputs(throughputs, reference) if needs_table else None
    columns = profile_columns(frame, tables, table)
    frame = pd.concat([frame, columns], axis=1)
    frame.attrs = _without_throughputs(trace) if replace else dict(trace.attrs)
    if "gavel" in tables:
        frame.attrs.update(provenance(throughputs, reference))
    note = _note(frame, tables, int(seed), shares, weighted=weights is not None)
    if needs_table and is_stand_in(throughputs):
        note += "; a synthetic stand-in takes the place of the throughput table"
    frame.attrs["notes"] = [*frame.attrs.get("notes", ()), note]
    return frame


def _dressed_by(
    folder: MeasuredFolder,
    trace: pd.DataFrame,
    seed: int,
    weights: Mapping[str, float] | None,
    *,
    replace: bool,
) -> pd.DataFrame:
    """Trace with the models and times of a measured folder."""
    stages = folder.stage_times()
    frame = validate_in_order(trace)
    name = str(trace.attrs.get("name", "trace"))
    keeps = "model" in frame and bool(frame["model"].notna().any()) and not replace
    models = frame["model"] if keeps else None
    frame = _without_model_columns(frame, name, replace=replace or keeps)
    if models is None:
        shares = _weighted(dict.fromkeys(stages.index, 1.0), weights, str(folder.path))
        models = pd.Series(_sampled_models(frame["job_id"], shares, seed), frame.index)
        how = f"sampled by profiles={folder.path}, seed={seed}"
    elif weights is not None:
        raise ParamError(
            f"{name}: has models, which profiles keeps, so weights are not used; leave them out or "
            "pass --replace (replace=True)"
        )
    else:
        how = f"of the trace, with the times of profiles={folder.path}"
    other_names = models.map(OTHER_NAMES).fillna(models)
    names_in_folder = models.where(models.isin(stages.index), other_names)
    sample_hint = (
        f"sample models of the folder: repro trace dress {name} --profiles {folder.path} --replace "
        "--out FILE"
    )
    gaps = models.isna()
    if gaps.any():
        job = shown(frame["job_id"][gaps].iloc[0])
        raise TraceError(f"{name}: job {job} has no model; fill it, or {sample_hint}")
    unknown = ~names_in_folder.isin(stages.index)
    if unknown.any():
        model = shown(models[unknown].iloc[0])
        raise TraceError(
            f"{name}: model {model} is not in {folder.path / 'stages.csv'} "
            f"({', '.join(stages.index)}); measure it, or {sample_hint}"
        )
    columns = stages.loc[names_in_folder.tolist()].set_axis(frame.index)
    columns.insert(0, "model", models.astype("str"))
    columns.insert(2, "iterations", _whole_iterations(frame["duration"], columns["iteration_time"]))
    dressed = pd.concat([frame, columns], axis=1)
    dressed.attrs = _without_throughputs(trace)
    note = f"models {how}"
    if wide := int((frame["num_gpus"] > 1).sum()):
        note += f"; {wide:,} jobs of more GPUs have the times of one GPU"
    dressed.attrs["notes"] = [*dressed.attrs.get("notes", ()), note]
    return dressed


def profile_columns(
    frame: pd.DataFrame, tables: Sequence[str], throughputs: ThroughputTable | None = None
) -> pd.DataFrame:
    """Columns that follow from model, GPUs and duration of each job, with the index of ``frame``.

    Parameters
    ----------
    frame : DataFrame
        Jobs with models of ``params/model_names.csv``.
    tables : sequence of str
        Tables that accept the models. There are stage times only with table muri.
    throughputs : ThroughputTable, optional
        Throughputs of the models whose iteration time only Gavel's table has.
    """
    mapped = mapped_models()
    kinds = frame[["model", "num_gpus"]].drop_duplicates()
    rows = [
        _profile(mapped[model], int(gpus), tables, throughputs)
        for model, gpus in kinds.itertuples(index=False, name=None)
    ]
    profiles = pd.concat([kinds.reset_index(drop=True), pd.DataFrame(rows)], axis=1)
    columns = frame[["model", "num_gpus"]].merge(profiles, on=["model", "num_gpus"], how="left")
    columns = columns.drop(columns=["model", "num_gpus"]).set_axis(frame.index)
    columns.insert(1, "iterations", _whole_iterations(frame["duration"], columns["iteration_time"]))
    return columns


def _whole_iterations(durations: pd.Series[Any], iteration_times: pd.Series[Any]) -> Floats:
    """Whole iterations in each duration, at least 1; both times in seconds."""
    iterations: Floats = np.floor(durations / iteration_times + 1e-9).to_numpy(float)
    return np.maximum(iterations, 1.0)


def _without_throughputs(trace: pd.DataFrame) -> dict[Hashable, Any]:
    """Attributes of a trace without its throughput table and the reference type."""
    dropped = ("throughputs", "reference_gpu")
    return {name: value for name, value in trace.attrs.items() if name not in dropped}


def _profile(
    model: MappedModel, gpus: int, tables: Sequence[str], throughputs: ThroughputTable | None
) -> dict[str, float]:
    """Batch size, iteration time (s) and stage times (s) of a model on a number of GPUs."""
    seconds = iteration_s(model.name, gpus)
    if seconds is None:
        assert throughputs is not None
        speed = throughputs.steps_per_s(model.name, gpus, throughputs.reference)
        if not speed > 0:
            raise ParamError(
                f"model {model.name!r} cannot run on {gpus} GPUs of type {throughputs.reference!r} "
                "by the throughput table; give another reference or leave the model out (weights)"
            )
        seconds = 1.0 / speed
    profile: dict[str, float] = {"batch_size": model.batch_size, "iteration_time": seconds}
    if "muri" in tables:
        measured = _muri_profiles()[model.names["muri"], nearest_count(GPU_COUNTS, gpus)]
        scale = seconds / measured["iteration_time"]
        profile |= {column: measured[stage] * scale for stage, column in _MURI_COLUMNS.items()}
    return profile


@cache
def _muri_profiles() -> dict[tuple[str, int], dict[str, float]]:
    """Times (s) of Muri's models, by model and number of GPUs."""
    profiles = muri_profiles()
    names = ["iteration_time", *_MURI_COLUMNS]
    times = profiles[names].to_numpy(float).tolist()
    keys = zip(profiles["model"], profiles["num_gpus"], strict=True)
    return {key: dict(zip(names, row, strict=True)) for key, row in zip(keys, times, strict=True)}


def _tables(models: str | Sequence[str]) -> tuple[str, ...]:
    """Tables that an argument names, in the order of `TABLES`."""
    if not isinstance(models, Iterable):
        raise ParamError(f"models={shown(models)}: give names of tables, or {ALL}")
    names = models.split(",") if isinstance(models, str) else list(models)
    names = [str(name).strip() for name in names]
    if names == [ALL]:
        return TABLES
    if not names:
        raise ParamError(f"models is empty; give some of {', '.join(TABLES)}, or {ALL}")
    refuse_unknown("models: no table", names, (*TABLES, ALL))
    if ALL in names:
        raise ParamError(f"models={','.join(names)}: {ALL} stands alone")
    return tuple(table for table in TABLES if table in names)


def _without_model_columns(frame: pd.DataFrame, name: str, *, replace: bool) -> pd.DataFrame:
    """Trace without columns of models; TraceError if they have values and must stay."""
    present = [column for column in PROFILE if column in frame]
    filled = [column for column in present if frame[column].notna().any()]
    if filled and not replace:
        raise TraceError(
            f"{name}: has {', '.join(filled)} already; repro trace dress --replace (replace=True) "
            "samples other models and puts their columns in place of these"
        )
    return frame.drop(columns=present)


def _shares(tables: Sequence[str], weights: Mapping[str, float] | None) -> dict[str, float]:
    """Probability of each model in the sample, in the order of ``params/model_names.csv``."""
    fitting = {
        name: model for name, model in mapped_models().items() if set(tables) <= model.names.keys()
    }
    if weights is None:
        if len(tables) == 1:
            fitting = {
                name: model for name, model in fitting.items() if model.is_itself_in(tables[0])
            }
        if not fitting:
            raise ParamError(f"models={','.join(tables)}: no model is in all of these tables")
    return _weighted(fitting, weights, f"models={','.join(tables)}")


def _weighted(
    fitting: Mapping[str, object], weights: Mapping[str, float] | None, source: str
) -> dict[str, float]:
    """Probability of each fitting model, in their order: by weights, or equal."""
    if weights is None:
        return dict.fromkeys(fitting, 1 / len(fitting))
    if not isinstance(weights, Mapping):
        raise ParamError(f"weights={shown(weights)}: give a mapping of model to weight")
    refuse_unknown(f"weights: {source} has no model", weights, fitting)
    for model, weight in weights.items():
        is_number = isinstance(weight, int | float | np.number) and not isinstance(weight, bool)
        if not is_number or not 0 <= weight < math.inf:
            raise ParamError(f"weights: {model} has {weight!r}; give a number of 0 or more")
    total = math.fsum(weights.values())
    if not total > 0:
        raise ParamError("weights: give a model a weight above 0")
    return {name: weights[name] / total for name in fitting if weights.get(name)}


def _sampled_models(ids: pd.Series[Any], shares: Mapping[str, float], seed: int) -> list[str]:
    """Model of each job, sampled in the order of the ids, whatever the order of the rows."""
    rng = np.random.default_rng([seed, zlib.crc32(b"models of a trace")])
    order = np.argsort(ids.to_numpy(), kind="stable")
    u = np.empty(len(ids))
    u[order] = rng.random(len(ids))
    bounds = np.cumsum(list(shares.values()))[:-1]
    names = list(shares)
    return [names[index] for index in np.searchsorted(bounds, u, side="right")]


def _note(
    frame: pd.DataFrame,
    tables: Sequence[str],
    seed: int,
    shares: Mapping[str, float],
    *,
    weighted: bool,
) -> str:
    """Line on the sample: tables, seed, models, relatives, GPU counts that Muri's table lacks."""
    chosen = ALL if tuple(tables) == TABLES else ",".join(tables)
    sampled = ", ".join(
        f"{name} {share:.3g}" if weighted else name for name, share in shares.items()
    )
    known = mapped_models()
    relatives = [
        f"{CONTENTS[table]} of {sum(table in known[name].tables_with_relative for name in shares)}"
        for table in tables
        if any(table in known[name].tables_with_relative for name in shares)
    ]
    line = (
        f"models sampled by dress(models={chosen}, seed={seed}): "
        f"{'weights' if weighted else 'uniformly over'} {sampled}"
    )
    if relatives:
        line += f"; of relatives (params/model_names.csv): {', '.join(relatives)}"
    if "muri" in tables and (others := int((~frame["num_gpus"].isin(GPU_COUNTS)).sum())):
        line += f"; {others:,} jobs have the stage times of the nearest number of GPUs"
    return line
