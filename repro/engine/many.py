"""`simulate_many`: many traces, loads and policies in, a row of metrics per run out."""

from __future__ import annotations

import contextlib
import inspect
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
import pandas as pd
from joblib.externals.loky import get_reusable_executor
from joblib.externals.loky.process_executor import TerminatedWorkerError

from repro.base.errors import InputWarning, ParamError, ReproError, refuse_unknown
from repro.base.typing import Floats
from repro.engine import arguments, inputs
from repro.engine.many_inputs import Workload, checked_loads, naming, workloads
from repro.engine.many_orders import LinearOrder, Outcome, ReadsView, simulate_orders
from repro.engine.simulate import simulate
from repro.model.cluster.spec import Cluster
from repro.model.policy import Policy, make
from repro.model.rules import Rules, rules_named

#: Arguments of `simulate` that `simulate_many` passes on.
_SETTINGS = {
    name: parameter.default
    for name, parameter in inspect.signature(simulate).parameters.items()
    if name not in ("trace", "cluster", "policy", "rules", "seed")
}
#: Entries of `Result.summary` that are not metrics.
_NO_METRICS = ("policy", "trace", "cluster", "wall_s", "ignored", "notes", "stand_in")
_COUNTS = ("n_jobs", "n_finished", "preemptions")

#: Positions of the trace, the load and the policy of a run.
Position = tuple[int, int, int]
Traces = (
    pd.DataFrame
    | str
    | Path
    | Sequence[pd.DataFrame | str | Path]
    | Mapping[Any, pd.DataFrame | str | Path]
    | Mapping[str, Any]
)


def simulate_many(
    traces: Traces,
    cluster: Cluster | str,
    policies: Policy | str | Sequence[Policy | str] | Mapping[str, Policy | str],
    *,
    loads: Sequence[float] | Floats = (1.0,),
    rules: str = "paper",
    seed: int | Sequence[int] = 0,
    workers: int | None = None,
    keep_jct: bool = False,
    **settings: Any,
) -> pd.DataFrame:
    """Simulate every policy on every trace at every load.

    The metrics of a run are those of `repro.simulate`, to the last digit, with any number of
    workers. Policies that rank jobs by keys that are linear in time (such as srtf, srsf, las-2d and
    tiresias-l under rules ``paper``) run in compiled batches, on a thread per worker. All other
    runs are simulated one by one, in a process per worker.

    Parameters
    ----------
    traces : DataFrame, str, Path, sequence or mapping
        One trace, a list of traces, or a mapping of labels (such as seeds) to traces. Each is a
        frame, a path or a public name. Traces may also be passed as a mapping of arrays
        submit_time, duration and num_gpus, each (traces, jobs), or (jobs,) for all traces.
    cluster : Cluster or str
        Cluster, or spec such as ``"8x8"``.
    policies : Policy, str, sequence or mapping
        One or several policies or registered names. A mapping gives them labels.
    loads : sequence of float
        Numbers by which the submit times of every trace are divided: 2 doubles the load.
    rules : str
        Rule set, as for `repro.simulate`.
    seed : int or sequence of int
        Seed of random placements, policies and rounds: one for all traces, or one per trace.
    workers : int, optional
        Number of threads or processes; by default the number of cores.
    keep_jct : bool
        Keep the JCT of every job.
    **settings
        Further arguments of `repro.simulate`. With any of them the runs are simulated one by one.

    Returns
    -------
    DataFrame
        A row per run, by trace, then load, then policy. Columns: trace (label, or position), load,
        seed, policy (label, or name), the metrics of `Result.summary` (n_jobs, n_finished, avg_jct,
        median_jct, p95_jct, p99_jct, makespan, avg_queueing (s), preemptions, utilisation, and more
        for divisible GPUs), notes and stand_in (text, empty where there is none). With
        ``keep_jct`` a column jct has an array per run, in order of the trace (s).

    Raises
    ------
    TraceError, PolicyError, ParamError
        As from `repro.simulate`. The message begins with trace, load and policy of the run.

    Warns
    -----
    InputWarning
        Once, if any runs have notes.

    Examples
    --------
    >>> from repro.testing import small_trace
    >>> runs = simulate_many(small_trace(), "1x4", ["srtf", "tiresias-l"], loads=(1, 2))
    >>> runs[["load", "policy", "avg_jct"]].round(1)
       load      policy  avg_jct
    0   1.0        srtf     12.3
    1   1.0  tiresias-l     13.3
    2   2.0        srtf     11.8
    3   2.0  tiresias-l     14.7
    """
    by_label = named_policies(policies, rules)
    divisors = checked_loads(loads)
    refuse_unknown("simulate_many has no argument", settings, tuple(_SETTINGS))
    if isinstance(settings.get("until"), Iterator):
        # each run reads the ids
        settings["until"] = list(settings["until"])
    if workers is not None and (not isinstance(workers, int) or workers < 1):
        raise ParamError(
            f"workers is {workers!r}; give a number of threads or processes, 1 or more"
        )
    seeds = list(seed) if isinstance(seed, Iterable) else [seed]
    for policy in by_label.values():
        values = {**_SETTINGS, **settings, "cluster": cluster, "policy": policy, "rules": rules}
        for number in seeds:
            arguments.check({**values, "seed": number})
    parsed_cluster = Cluster.parse(cluster)
    checked = workloads(traces, divisors)
    if len(seeds) == 1:
        seeds *= len(checked)
    if len(seeds) != len(checked):
        raise ParamError(
            f"seed: {len(seeds)} seeds for {len(checked)} traces; give one, or one for each trace"
        )
    table = _Table(checked, divisors, seeds, list(by_label))
    num_workers = workers or joblib.cpu_count()
    if rules_named(rules) == Rules() and not settings:
        for policy_number, policy in enumerate(by_label.values()):
            order = LinearOrder.of(policy, parsed_cluster, checked[0])
            if order is not None:
                # keys that read more of a view than demands cannot run in a batch;
                # `_simulate_others` simulates their runs
                with contextlib.suppress(ReadsView):
                    for outcome in simulate_orders(
                        order, checked, divisors, num_workers, keep_jct=keep_jct
                    ):
                        table.add_batch(policy_number, outcome, inputs.note_on_alias(policy))
    _simulate_others(
        table,
        list(by_label.values()),
        num_workers,
        {"cluster": parsed_cluster, "rules": rules, "keep_jct": keep_jct, **settings},
    )
    frame = table.frame(keep_jct=keep_jct)
    _warn_of_notes(frame)
    return frame


class _Run(NamedTuple):
    """Records of one run of `repro.simulate`."""

    metrics: dict[str, float]
    notes: Sequence[str]
    stand_in: Sequence[str]
    #: JCT of each job (s); None unless they are kept
    jct: Floats | None


class _Table:
    """Records of all runs, by position of trace, load and policy."""

    def __init__(
        self, traces: Sequence[Workload], loads: Floats, seeds: Sequence[int], policies: list[str]
    ) -> None:
        self.traces = traces
        self.loads = loads
        self.seeds = seeds
        self.policies = policies
        self._shape = (len(traces), len(loads), len(policies))
        self._is_done = np.zeros(self._shape, np.bool_)
        self._metrics: dict[str, Floats] = {}
        self._jct = np.empty(self._shape, object)
        self._notes = np.full(self._shape, "", object)
        self._stand_in = np.full(self._shape, "", object)

    def name(self, position: Position) -> str:
        """Name of a run for messages."""
        trace, load, policy = position
        return (
            f"trace {self.traces[trace].label} at load {self.loads[load]:g} under "
            f"{self.policies[policy]}"
        )

    def missing(self) -> list[Position]:
        """Positions of the runs without records, in order of the rows."""
        return [(trace, load, policy) for trace, load, policy in np.argwhere(~self._is_done)]

    def add_batch(self, policy: int, outcome: Outcome, policy_notes: Sequence[str]) -> None:
        """Add the records of a compiled batch; each run gets the notes on its policy."""
        positions = (outcome.trace, outcome.load, policy)
        for name, values in outcome.metrics.items():
            self._column(name)[positions] = values
        if outcome.jct is not None:
            for trace, load, jct in zip(*positions[:2], outcome.jct, strict=True):
                self._jct[trace, load, policy] = jct
        starts = outcome.clock_start.tolist()
        for trace, load, start_s in zip(*positions[:2], starts, strict=True):
            workload = self.traces[trace]
            notes = [
                *workload.attrs.get("notes", ()),
                *policy_notes,
                *inputs.note_on_clock(start_s),
            ]
            self._notes[trace, load, policy] = "; ".join(notes)
            if workload.frame is not None and workload.attrs:
                names = inputs.replaced_public_data(workload.frame, None, None)
                self._stand_in[trace, load, policy] = "; ".join(names)
        self._is_done[positions] = True

    def add_run(self, position: Position, run: _Run) -> None:
        """Add the records of one run."""
        for name, value in run.metrics.items():
            self._column(name)[position] = value
        self._jct[position] = run.jct
        self._notes[position] = "; ".join(run.notes)
        self._stand_in[position] = "; ".join(run.stand_in)
        self._is_done[position] = True

    def _column(self, name: str) -> Floats:
        """Values of a metric, NaN where a run lacks it."""
        return self._metrics.setdefault(name, np.full(self._shape, np.nan))

    def frame(self, *, keep_jct: bool) -> pd.DataFrame:
        """Frame that `simulate_many` returns."""
        rows = pd.MultiIndex.from_product(
            [range(len(self.traces)), self.loads.tolist(), self.policies]
        )
        trace_of_row = rows.get_level_values(0)
        labels = pd.Series([trace.label for trace in self.traces])
        columns: dict[str, Any] = {
            "trace": labels.iloc[trace_of_row].to_numpy(),
            "load": rows.get_level_values(1).to_numpy(),
            "seed": np.array(self.seeds)[trace_of_row],
            "policy": rows.get_level_values(2).to_numpy(),
        }
        for name, values in self._metrics.items():
            columns[name] = values.ravel().astype(np.int64 if name in _COUNTS else float)
        columns["notes"] = self._notes.ravel()
        columns["stand_in"] = self._stand_in.ravel()
        if keep_jct:
            columns["jct"] = self._jct.ravel()
        return pd.DataFrame(columns)


def named_policies(policies: Any, rules: str) -> dict[str, Policy]:
    """Policies by label; the label is the name unless a mapping gives another.

    Raises
    ------
    ParamError
        If there is no policy, a label is there twice, or a value is neither policy nor name.
    """
    if isinstance(policies, Mapping):
        items = [(str(label), policy) for label, policy in policies.items()]
    else:
        is_list = isinstance(policies, Iterable) and not isinstance(policies, str)
        listed = list(policies) if is_list else [policies]
        items = [(str(getattr(policy, "name", policy)), policy) for policy in listed]
    if not items:
        raise ParamError("policies: none; give a policy or a registered name")
    named: dict[str, Policy] = {}
    for label, policy in items:
        if label in named:
            raise ParamError(
                f"policies: two are named {label!r}; give a mapping of labels to policies"
            )
        arguments.check({"policy": policy})
        named[label] = make(policy, rules) if isinstance(policy, str) else policy.under(rules)
    return named


def _simulate_others(
    table: _Table, policies: list[Policy], workers: int, options: Mapping[str, Any]
) -> None:
    """Simulate the missing runs of the table, each by a call of `simulate`.

    Two or more runs are divided among ``workers`` processes.
    """
    positions = table.missing()
    calls = (
        joblib.delayed(_simulate_one)(
            table.traces[trace].at_load(table.loads[load]),
            policy=policies[policy],
            seed=int(table.seeds[trace]),
            **options,
        )
        for trace, load, policy in positions
    )
    in_this_process = len(positions) < 2 or workers == 1
    parallel = joblib.Parallel(n_jobs=1 if in_this_process else workers, return_as="generator")
    runs = parallel(calls)
    try:
        for position, run in zip(positions, runs, strict=True):
            if isinstance(run, ReproError):
                with naming(table.name(position)):
                    raise run
            table.add_run(position, run)
    except TerminatedWorkerError:
        raise ReproError(
            f"a worker process died with {len(table.missing())} of {len(positions)} simulations "
            "left; memory may be short, so use fewer workers"
        ) from None
    finally:
        with warnings.catch_warnings():
            # after an error joblib warns of the runs that it leaves out
            warnings.simplefilter("ignore", UserWarning)
            runs.close()
        if not in_this_process:
            get_reusable_executor().shutdown(wait=True)


def _simulate_one(trace: pd.DataFrame, *, keep_jct: bool, **options: Any) -> _Run | ReproError:
    """Simulate one run.

    An error is returned. The caller raises the error of the first failed run in the order of the
    table, whichever process ended first.
    """
    with warnings.catch_warnings():
        # `_warn_of_notes` warns once for all runs
        warnings.simplefilter("ignore", InputWarning)
        try:
            result = simulate(trace, **options)
        except ReproError as error:
            return error
    summary = result.summary()
    metrics = {name: value for name, value in summary.items() if name not in _NO_METRICS}
    jct = result.jobs["jct"].to_numpy() if keep_jct else None
    return _Run(metrics, summary["notes"], summary["stand_in"], jct)


def _warn_of_notes(frame: pd.DataFrame) -> None:
    """Warn once if runs have notes."""
    noted = frame[frame["notes"] != ""]
    if len(noted):
        first = noted.iloc[0]
        warnings.warn(
            f"{len(noted):,} of {len(frame):,} runs have notes (column notes), the first is trace "
            f"{first['trace']} at load {first['load']:g} under {first['policy']}: {first['notes']}",
            InputWarning,
            stacklevel=3,
        )
