"""`compare`: policies on the same jobs under equal terms, over loads, seeds and windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from repro.base.counts import is_count, quantity
from repro.base.errors import ParamError, refuse_unknown
from repro.comparison import terms
from repro.comparison.result import METRICS, Comparison
from repro.comparison.runs import Metrics
from repro.comparison.samples import Sample, Windows, at_loads, checked_options, checked_seeds, cut
from repro.engine import inputs
from repro.engine.failures import Failures
from repro.engine.ignored import ignored_lines
from repro.engine.many import named_policies
from repro.engine.many_inputs import checked_loads
from repro.engine.overheads import named_overhead
from repro.figures import data, sweep
from repro.model.cluster.spec import Cluster
from repro.model.performance import Overhead
from repro.model.policy import Policy
from repro.perf.slowdown import Slowdown
from repro.perf.throughput import ThroughputTable
from repro.perf.throughput_files import load_throughputs, source_of, throughputs_of
from repro.placement import base as placement_base
from repro.placement.base import Placement
from repro.trace import dressing, predictions, synth
from repro.trace.load import load as load_trace

RULES = "paper"


def compare(
    trace: pd.DataFrame | str | Path,
    cluster: Cluster | str,
    policies: str | Sequence[Policy | str] | Mapping[str, Policy | str],
    *,
    loads: Sequence[float] | None = None,
    seeds: int | Sequence[int] | None = None,
    windows: str | None = None,
    reference: str | None = None,
    dress: bool | str | None = None,
    predict: int = 0,
    prediction_error: float | None = None,
    overhead: Overhead | str | float = "none",
    placement: Placement | str | None = None,
    slowdown: float | str | Slowdown | None = None,
    failures: Failures | str | None = None,
    throughputs: ThroughputTable | str | Path | None = None,
    reference_gpu: str | None = None,
    options: Mapping[str, Any] | None = None,
    seed: int = 0,
    workers: int | None = None,
    out: str | Path | None = None,
) -> Comparison:
    """Compare policies on the same jobs, with 95 % intervals and paired differences.

    All policies run under rules ``paper``, at the same cost of preemptions, on the same samples.
    Runs are cached, so a comparison that was interrupted goes on where it ended. With a dask
    scheduler in ``REPRO_SCHEDULER`` its workers run the simulations.

    Parameters
    ----------
    trace : DataFrame, str or Path
        Jobs: a frame, a file, the name of a public trace, or of a generator.
    cluster : Cluster or str
        Cluster, or spec such as ``"8x8"``.
    policies : str, sequence or mapping
        Policies or registered names. A text is a list of names, separated by commas. A mapping
        gives labels.
    loads : sequence of float, optional
        Offered loads: GPU-seconds of all jobs over GPUs times the span of the submissions. Each
        sample runs at each load, with its submit times stretched to it. By default submit times
        stay as in the trace.
    seeds : int or sequence of int, optional
        Samples are seeds of the generator. Random policies, sampled models and prediction errors
        use the same seeds. A number N means the seeds 0 to N - 1; a list names the seeds.
    windows : str, optional
        Samples are windows of the trace, such as ``"20x7d"``: 20 windows of 7 days, spread evenly.
        A window has the jobs submitted inside, and its clock starts with it. ``"20x400j"``: windows
        of 400 successive jobs.
    reference : str, optional
        Policy for paired differences; by default the first that runs.
    dress : bool or str, optional
        Sample models for the jobs (`repro.dress`): True for all tables, or names of tables. By
        default only if a policy reads columns that the trace lacks; the notes say so.
    predict : int
        Number of jobs of each run whose JCT is predicted at their arrival.
    prediction_error : float, optional
        Standard deviation of the logarithm of predicted over true duration
        (`repro.predict_durations`, with the seed of the sample). Policies that know durations then
        know the predictions. By default they know those of the trace (column
        ``predicted_duration``), or else the true durations.
    overhead : Overhead, str or float
        Cost of preemptions of all policies: ``"none"``, ``"tiresias"``, ``"h100"``, seconds, or a
        measured folder.
    placement : Placement or str, optional
        Placement of all policies; by default each has its own.
    slowdown : float, str or Slowdown, optional
        Slow-down of gangs on several nodes, as for `repro.simulate`.
    failures : Failures or str, optional
        Failures of nodes, as for `repro.simulate`.
    throughputs : ThroughputTable, str or Path, optional
        Throughputs by GPU type, on a cluster with GPU types. By default those of the trace.
    reference_gpu : str, optional
        GPU type that durations refer to, where ``throughputs`` is a file or a name. By default
        v100, or the type of a measured folder.
    options : mapping, optional
        Options of the generator, or of the reader of the file, such as
        ``{"map": "submit_time=arrival", "unit": "h"}``.
    seed : int
        Seed of the bootstrap; without ``seeds`` also of the generator, random policies, models and
        prediction errors.
    workers : int, optional
        Number of processes; by default the number of cores.
    out : str or Path, optional
        Folder for comparison.csv, summary.csv, result.json, report.md, jct.svg and load.svg.

    Returns
    -------
    Comparison
        ``.frame`` has a row per run, ``.table()`` means and differences with intervals,
        ``.plot()`` pictures, ``.report()`` a report in Markdown, ``.refused`` the policies that
        cannot run, with the reason, ``.notes`` the terms.

    Raises
    ------
    ParamError
        If an argument is not accepted, or no policy can run on the input.
    TraceError
        If the trace breaks its schema.

    Examples
    --------
    >>> from repro.testing import small_trace
    >>> result = compare(small_trace(), "1x4", "srtf,tiresias-l", workers=1)
    >>> result.frame[["policy", "avg_jct"]].round(1)
           policy  avg_jct
    0        srtf     12.3
    1  tiresias-l     13.3
    """
    by_label = named_policies(_listed(policies), RULES)
    if reference is not None:
        refuse_unknown("reference: none of the policies is", [reference], list(by_label))
    spec = Cluster.parse(cluster)
    if windows is not None and seeds is not None:
        raise ParamError("seeds and windows are both samples; give one of them")
    if workers is not None and (not isinstance(workers, int) or workers < 1):
        raise ParamError(f"workers is {workers!r}; give a number of processes, 1 or more")
    (seed,) = checked_seeds([seed])
    load_values = [] if loads is None else checked_loads(loads).tolist()
    if len(set(load_values)) < len(load_values):
        raise ParamError(f"loads are {load_values}; give each load once")
    settings = _settings(
        predict=predict,
        overhead=overhead,
        placement=placement,
        slowdown=slowdown,
        failures=failures,
    )
    table = _throughputs(throughputs, reference_gpu, spec)
    sampled = _Samples(
        trace,
        spec,
        by_label,
        seeds=[seed] if seeds is None else checked_seeds(seeds),
        windows=None if windows is None else Windows.parse(windows),
        loads=load_values,
        dress=dress,
        prediction_error=prediction_error,
        has_speeds=table is not None,
        options=checked_options(options, ("path", "name", "seed", "rng")),
    )
    samples = sampled.samples
    cases = []
    for sample in samples:
        performance = _performance(table, sample.trace, spec)
        for policy in by_label.values():
            case = sweep.Case(
                sample.trace,
                spec,
                policy,
                seed=sample.seed,
                settings=settings | performance,
                measure=Metrics(),
            )
            cases.append(case.resolved())
    outcomes = sweep.run(cases, workers)
    by_policy = {label: outcomes[number :: len(by_label)] for number, label in enumerate(by_label)}
    refused = _refusals(by_policy)
    ran = {label: runs for label, runs in by_policy.items() if label not in refused}
    if not ran:
        reasons = [f"{label}: {reason}" for label, reason in refused.items()]
        raise ParamError("no policy can run on this input:", *reasons)
    used_reference = reference if reference in ran else next(iter(ran))
    attrs = samples[0].trace.attrs
    table_source = source_of(samples[0].trace)
    if throughputs is not None and table is not None:
        table_source = throughputs, table.reference
    table_name, table_reference = _named_table(table_source)
    notes = _notes(
        by_label,
        ran,
        sampled,
        settings,
        used_reference,
        terms.note_on_throughputs(table_name, table_reference) if spec.gpu_types else "",
        has_types=bool(spec.gpu_types),
    )
    if reference is not None and used_reference != reference:
        notes.insert(0, f"reference {reference} cannot run; differences are to {used_reference}")
    comparison = Comparison(
        _frame(samples, ran, sampled.kind),
        used_reference,
        refused,
        notes,
        {
            "trace": str(attrs.get("name", "trace")),
            "format": attrs.get("format"),
            "options": attrs.get("options", {}),
            "dress": _plain(dress),
            "cluster": str(spec),
            "rules": RULES,
            "policies": {label: repr(policy) for label, policy in by_label.items()},
            "predict": int(predict),
            "prediction_error": prediction_error,
            "overhead": _plain(overhead),
            "placement": _plain(placement),
            "slowdown": _plain(slowdown),
            "failures": _plain(failures),
            "throughputs": table_name,
            "reference_gpu": table_reference,
            "windows": windows,
            "seed": seed,
        },
        _jcts(samples, ran),
        seed,
    )
    if out is not None:
        comparison.write(out)
    return comparison


def _listed(policies: Any) -> Any:
    """Policies; a text with commas is a list of names."""
    if isinstance(policies, str):
        return [name.strip() for name in policies.split(",") if name.strip()]
    return policies


def _settings(**given: Any) -> dict[str, Any]:
    """Arguments of `repro.simulate` that all runs share; ParamError for a value of no meaning."""
    overhead = given["overhead"]
    if not isinstance(overhead, Overhead):
        is_text_or_number = isinstance(overhead, str | float | int)
        if not is_text_or_number or isinstance(overhead, bool):
            raise ParamError(f"overhead is {overhead!r}; give none, tiresias, h100, or seconds")
        named_overhead(overhead)
    if isinstance(given["placement"], str):
        placement_base.make(given["placement"])
    if given["slowdown"] is not None:
        Slowdown.of(given["slowdown"])
    if isinstance(given["failures"], str):
        Failures.parse(given["failures"])
    predict = given["predict"]
    if not is_count(predict):
        raise ParamError(f"predict is {predict!r}; give a number of jobs, 0 or more")
    return {name: value for name, value in given.items() if value is not None}


def _throughputs(
    throughputs: ThroughputTable | str | Path | None, reference_gpu: str | None, cluster: Cluster
) -> ThroughputTable | None:
    """Throughput table that the caller passed."""
    if reference_gpu is not None and not isinstance(throughputs, str | Path):
        raise ParamError(
            f"reference_gpu is {reference_gpu!r}: it is used only if throughputs is the file or "
            "name of a table; leave it out"
        )
    if throughputs is None:
        return None
    if not cluster.gpu_types:
        raise ParamError(
            f"throughputs: {cluster} names no GPU types; give a cluster such as 9x4:v100, or leave "
            "throughputs out"
        )
    if isinstance(throughputs, ThroughputTable):
        return throughputs
    return load_throughputs(throughputs, reference_gpu)


def _named_table(source_and_reference: tuple[Any, str] | None) -> tuple[str | None, str | None]:
    """Name of a throughput table and its reference GPU type, for ``result.json``."""
    if source_and_reference is None:
        return None, None
    source, reference = source_and_reference
    # a table has thousands of rows and no name
    name = str(source) if isinstance(source, str | Path) else type(source).__name__
    return name, reference


def _performance(
    table: ThroughputTable | None, trace: pd.DataFrame, cluster: Cluster
) -> dict[str, Any]:
    """Setting ``perf`` of a run on GPU types: a throughput table.

    `repro.simulate` multiplies its rates with those of the policy's performance model.
    """
    if not cluster.gpu_types:
        return {}
    chosen = throughputs_of(trace) if table is None else table
    return {} if chosen is None else {"perf": chosen}


class _Samples:
    """Samples of a comparison, and the lines that say how they came about."""

    def __init__(
        self,
        trace: pd.DataFrame | str | Path,
        cluster: Cluster,
        policies: Mapping[str, Policy],
        *,
        seeds: Sequence[int],
        windows: Windows | None,
        loads: Sequence[float],
        dress: bool | str | None,
        prediction_error: float | None,
        has_speeds: bool,
        options: Mapping[str, Any],
    ) -> None:
        self.kind = "seed" if windows is None else "window"
        self.notes: list[str] = []
        #: columns of the file, the frame or the generator, and what its reader left out
        self.source_columns: list[str] = []
        self.source_ignored: dict[str, Any] = {}
        #: notes of reader or generator
        self.source_notes: list[str] = []
        self.samples: list[Sample] = []
        is_generated = isinstance(trace, str) and trace in synth.generators
        opened = None if is_generated else _opened(trace, options)
        if opened is not None and len(seeds) > 1:
            self.notes.append(
                "the trace is the same for all seeds: they change random policies, predicted jobs, "
                "sampled models and prediction errors alone; windows sample the trace"
            )
        num_windows = 0
        overlap = False
        for seed in seeds:
            frame = opened
            if frame is None:
                frame = data.open_trace(str(trace), seed, **options)[0]
            self.source_columns = list(map(str, frame.columns))
            self.source_ignored = {
                "file_columns": frame.attrs.get("unread", ()),
                "rows": frame.attrs.get("dropped", {}),
            }
            self.source_notes += frame.attrs.get("notes", ())
            lacking = terms.lacking(policies, frame, cluster, has_speeds=has_speeds)
            frame = self._dressed(frame, lacking, dress, seed, is_first=seed == seeds[0])
            if prediction_error is not None:
                frame = predictions.predict_durations(frame, prediction_error, seed)
            parts = [(seed, frame)]
            if windows is not None:
                parts = list(cut(frame, windows, stretched=bool(loads)))
                num_windows = len(parts)
                overlap = windows.overlap(len(frame), float(np.ptp(frame["submit_time"])))
            for label, jobs in parts:
                self.samples += at_loads(label, jobs, seed, cluster.num_gpus, loads)
        # by load first, so that the rows of a load are together
        self.samples.sort(key=lambda sample: list(loads).index(sample.load) if loads else 0)
        empty = 0 if windows is None else windows.number - num_windows
        self.notes += terms.notes_on_samples(
            self.samples, self.kind, windows, overlap=overlap, empty=empty
        )

    def keeps(self, note: str) -> bool:
        """Whether a note of a run is kept in the notes of the comparison.

        With windows, the note on the start of the clock is left out: each window has another start.
        """
        return self.kind != "window" or not note.startswith("the clock starts")

    def _dressed(
        self,
        frame: pd.DataFrame,
        lacking: Mapping[str, str],
        dress: bool | str | None,
        seed: int,
        *,
        is_first: bool,
    ) -> pd.DataFrame:
        """Trace, with a model for each job if the caller asks for models.

        With ``dress`` None, jobs get models only if policies lack inputs that follow from models,
        and the trace has no value in a column of `dressing.PROFILE`.
        """
        filled = [name for name in dressing.PROFILE if name in frame and frame[name].notna().any()]
        wanted = bool(lacking) and not filled if dress is None else bool(dress)
        line = "jobs: as in the trace, no models sampled"
        if not wanted and lacking:
            line += f"; policies lack {terms.grouped(lacking)}"
            if dress is None:
                line += f" (the trace has {', '.join(filled)}; {terms.remedy(lacking, filled)})"
        if wanted:
            models = dress if isinstance(dress, str) else dressing.ALL
            before = list(frame.attrs.get("notes", ()))
            frame = dressing.dress(frame, models, seed)
            reason = f", because policies lack {terms.grouped(lacking)}" if dress is None else ""
            line = f"jobs: dressed from one model map{reason}"
            dressing_notes = [note for note in frame.attrs["notes"] if note not in before]
            line = "; ".join([line, *dressing_notes])
        if is_first:
            self.notes.append(line)
        return frame


def _opened(trace: pd.DataFrame | str | Path, options: Mapping[str, Any]) -> pd.DataFrame:
    """Validated jobs of a frame, a file or a public trace."""
    if isinstance(trace, str | Path):
        return load_trace(trace, **options)
    if options:
        raise ParamError("options: a frame has no reader; leave them out")
    return inputs.checked(trace)


def _refusals(by_policy: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, str]:
    """Reason of each policy whose run on at least one sample was refused, by label."""
    reasons: dict[str, str] = {}
    for label, runs in by_policy.items():
        refusals = [run["refused"] for run in runs if "refused" in run]
        if refusals:
            share = "" if len(refusals) == len(runs) else f" ({len(refusals)} of {len(runs)} runs)"
            reasons[label] = f"{refusals[0]}{share}"
    return reasons


def _frame(
    samples: Sequence[Sample], ran: Mapping[str, Sequence[Mapping[str, Any]]], kind: str
) -> pd.DataFrame:
    """Frame of a `Comparison`."""
    names = ["n_jobs", "n_finished", *METRICS]
    rows = []
    for number, sample in enumerate(samples):
        for label, runs in ran.items():
            row = {
                "policy": label,
                "load": sample.load,
                kind: sample.label,
                "offered_load": sample.offered_load,
            }
            rows.append(row | {name: runs[number][name] for name in names})
    return pd.DataFrame(rows)


def _jcts(
    samples: Sequence[Sample], ran: Mapping[str, Sequence[Mapping[str, Any]]]
) -> dict[tuple[str, int], list[Any]]:
    """JCTs by policy and number of the load, an array per sample."""
    numbers: dict[str, int] = {}
    arrays: dict[tuple[str, int], list[Any]] = {}
    for label, runs in ran.items():
        for sample, run in zip(samples, runs, strict=True):
            number = numbers.setdefault(str(sample.load), len(numbers))
            arrays.setdefault((label, number), []).append(run["jct"])
    return arrays


def _notes(
    policies: Mapping[str, Policy],
    ran: Mapping[str, Sequence[Mapping[str, Any]]],
    sampled: _Samples,
    settings: Mapping[str, Any],
    reference: str,
    throughputs: str,
    *,
    has_types: bool,
) -> list[str]:
    """Terms of a comparison, a line each.

    ``throughputs`` is the line on the throughput table, empty without one. ``has_types`` says
    whether the cluster names GPU types.
    """
    placements = {
        label: terms.placement(policies[label], runs[0]["placement"]) for label, runs in ran.items()
    }
    durations = terms.durations_of(sampled.samples[0].trace)
    known = {label: terms.knowledge(policies[label], durations) for label in ran}
    notes = [
        f"rules: {RULES}, all policies",
        terms.note_on_overhead(settings["overhead"]),
        f"placement: {terms.grouped(placements)}",
        *(f"{name}: {settings[name]}" for name in ("slowdown", "failures") if name in settings),
        *([throughputs] if throughputs else []),
        f"knowledge: {terms.grouped(known)}",
        *sampled.notes,
        terms.note_on_intervals(
            len({sample.label for sample in sampled.samples}), sampled.kind, reference
        ),
        terms.RHO,
        terms.CPU,
    ]
    if settings["predict"]:
        most_jobs = max(run["n_jobs"] for runs in ran.values() for run in runs)
        predicted = "all jobs"
        if settings["predict"] < most_jobs:
            predicted = f"up to {quantity(settings['predict'], 'job')}"
        notes.append(
            f"predictions: JCT at arrival of {predicted} of each run, as if no job came after; "
            "error: |JCT - predicted| / predicted"
        )
    unused = [label for label, runs in ran.items() if any(run["types_alike"] for run in runs)]
    if unused:
        notes.append(f"all GPU types count as equally fast: {', '.join(unused)}")
    unfinished = [
        label
        for label, runs in ran.items()
        if any(run["n_finished"] < run["n_jobs"] for run in runs)
    ]
    if unfinished:
        notes.append(f"some jobs have no end: {', '.join(unfinished)}")
    stand_ins = dict.fromkeys(
        name for runs in ran.values() for run in runs for name in run["stand_in"]
    )
    if stand_ins:
        notes.append(f"stand-ins for public data: {', '.join(stand_ins)}")
    run_notes = {
        label: [note for run in runs for note in run["notes"] if sampled.keeps(note)]
        for label, runs in ran.items()
    }
    all_runs = [run for runs in ran.values() for run in runs]
    unused_columns = [
        name
        for name in sampled.source_columns
        if all(name in run["unused_columns"] for run in all_runs)
    ]
    ignored = {"columns": unused_columns, **sampled.source_ignored}
    return [
        *notes,
        *ignored_lines(ignored, "any run", has_types=has_types),
        *(f"trace: {note}" for note in dict.fromkeys(sampled.source_notes)),
        *terms.notes_of_runs(run_notes),
    ]


def _plain(value: Any) -> Any:
    """Argument for ``result.json``."""
    return value if value is None or isinstance(value, str | int | float) else repr(value)
