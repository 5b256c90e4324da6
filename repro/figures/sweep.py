"""Runs many simulations: cached cases are read, the others run in processes or on dask workers.

A *measure* is the function from a case to its *outcome*, the part of its simulation that is kept.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import itertools
import math
import os
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import joblib
import pandas as pd
from joblib.externals.loky import get_reusable_executor
from joblib.externals.loky.process_executor import TerminatedWorkerError

from repro.base import paths
from repro.base.errors import InputWarning, ParamError, ReproError, refuse_unknown
from repro.base.extras import needed_for
from repro.engine.simulate import simulate
from repro.figures import cache, data, remote
from repro.figures.costs import COSTS
from repro.figures.progress import (
    ENV_SCHEDULER,
    progress_file_name,
    read_progress,
    show_progress,
)
from repro.files import public
from repro.model.cluster.spec import Cluster
from repro.model.policy import Policy, make
from repro.model.records import Result
from repro.perf import throughput_files
from repro.trace.load import load

#: Deaths of a worker process in a row after which a sweep gives up.
_MAX_DEATHS = 3
#: Arguments of `simulate` that are no fields of a case.
SETTINGS = tuple(
    name
    for name in inspect.signature(simulate).parameters
    if name not in ("trace", "cluster", "policy", "rules", "seed")
)

Outcome = Result | dict[str, Any]
#: Keys of cases that are not cacheable.
_uncacheable = itertools.count()


def trace_of(case: Case) -> pd.DataFrame:
    """Trace of a case."""
    if isinstance(case.trace, pd.DataFrame):
        return case.trace
    if data.is_own(case.trace):
        return load(data.own_path(case.trace), **case.options)
    return data.open_trace(case.trace, case.seed, **case.options)[0]


def simulated(case: Case, trace: pd.DataFrame, **more: Any) -> Result:
    """Simulate a case on a trace, with further settings of `simulate`."""
    settings = {**case.settings, **more}
    if isinstance(settings.get("perf"), str):
        settings["perf"] = throughput_files.load_throughputs(settings["perf"])
    with warnings.catch_warnings():
        # Cases of a sweep are intended, even those that warn a user (PCS with a single class).
        warnings.simplefilter("ignore", InputWarning)
        return simulate(
            trace, case.cluster, case.policy, rules=case.rules, seed=case.seed, **settings
        )


def keep_all_records(case: Case) -> Result:
    """Simulate a case and keep all records."""
    return simulated(case, trace_of(case))


def _rate(case: Case) -> float:
    """Jobs per hour that a case's trace option ``rate`` gives; ParamError without one."""
    if "rate" not in case.options:
        raise ParamError(
            "MeasuredJobs(last=...) needs the trace option rate (jobs per hour), so that jobs keep "
            "arriving; give options={'rate': ...}, or leave last out"
        )
    return float(case.options["rate"])


@dataclass(frozen=True)
class MeasuredJobs:
    """Measure of the jobs ``first`` to ``last``: their records and columns of the trace.

    Jobs are numbered from 0 in the order of the trace. With a last job, the simulation ends when
    all measured jobs have finished. Jobs go on to arrive for ``horizon_h`` hours, at the trace's
    ``rate`` per hour, so that the last measured jobs still compete for GPUs. If measured jobs are
    then unfinished, the simulation runs again with four times the horizon. Jobs unfinished after
    that have no end.
    """

    first: int = 0
    last: int | None = None
    horizon_h: float = 2000.0

    def __call__(self, case: Case) -> Result:
        """Simulate a case; keep the records of the measured jobs, without intervals."""
        end = None if self.last is None else self.last + 1
        measured = slice(self.first, end)
        for horizon_h in (self.horizon_h, 4 * self.horizon_h):
            options = dict(case.options)
            stop_settings = {}
            if end is not None:
                options["jobs"] = end + math.ceil(_rate(case) * horizon_h)
            trace = trace_of(replace(case, options=options))
            if end is not None:
                stop_settings = {
                    "until": trace["job_id"].iloc[measured],
                    "stop_time": trace["submit_time"].max(),
                }
            result = simulated(case, trace, keep_intervals=False, **stop_settings)
            jobs = result.jobs.iloc[measured]
            if jobs["end_time"].notna().all():
                break
        new_columns = [name for name in trace.columns if name not in jobs.columns]
        columns = trace[new_columns].iloc[measured].reset_index(drop=True)
        records = jobs.reset_index(drop=True).join(columns)
        return Result(records, result.intervals.iloc[:0], result.meta)


@dataclass(frozen=True)
class Case:
    """A simulation and its measure; cluster, policy and rules as for ``repro.simulate``.

    Parameters
    ----------
    trace : str or DataFrame
        Name of a generator or a public trace, path of a user's file, or a trace.
    cluster : Cluster or str
        Cluster, or spec.
    policy : Policy or str
        Policy, or registered name.
    rules : str
        Rule set.
    seed : int
        Seed of the trace and of the simulation.
    options : mapping
        Options of the trace's generator or format.
    settings : mapping
        Further arguments of ``repro.simulate``. ``perf`` may be the name of a throughput table.
    measure : callable
        Function of this package, or dataclass with ``__call__``, from the case to a Result or a
        dict.

    Raises
    ------
    ParamError
        If ``repro.simulate`` has no argument of a name in ``settings``.

    Examples
    --------
    >>> from repro.testing import small_trace
    >>> len(outcome(Case(small_trace(), "1x4", "srtf").resolved()).jobs)
    6
    """

    trace: str | pd.DataFrame
    cluster: Cluster | str
    policy: Policy | str
    rules: str = "paper"
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    measure: Callable[[Case], Outcome] = keep_all_records

    def __post_init__(self) -> None:
        refuse_unknown("a simulation has no setting", self.settings, SETTINGS)

    def resolved(self) -> Case:
        """Case with policy and cluster in place of their names.

        A trace that is a DataFrame may have a throughput table in its attributes. This table
        becomes the setting ``perf`` if that is not set, the cluster has GPU types, and the rules
        know GPU types.
        """
        policy = self.policy
        cluster = Cluster.parse(self.cluster)
        if isinstance(policy, str):
            policy = make(policy, self.rules)
        settings = dict(self.settings)
        trace = self.trace if isinstance(self.trace, pd.DataFrame) else pd.DataFrame()
        # rules pcs know no GPU types
        knows_types = bool(cluster.gpu_types) and self.rules != "pcs"
        if settings.get("perf") is None and knows_types and "throughputs" in trace.attrs:
            # The content of the table then counts in the cache key. If the policy has a model of
            # its own, `simulate` multiplies the rates of this model by the throughputs.
            settings["perf"] = throughput_files.throughputs_of(trace)
        return replace(self, policy=policy, cluster=cluster, settings=settings)


def named_files(policy: object) -> list[str]:
    """Names of public files in the settings of a policy, such as that of a history, sorted."""
    values = vars(policy).values() if dataclasses.is_dataclass(policy) else ()
    return sorted({text for text in values if isinstance(text, str) and public.is_known(text)})


def digests(cases: Iterable[Case]) -> list[str | None]:
    """Cache keys of resolved cases, equal exactly for equal simulations; None: not cacheable."""
    state = functools.cache(_state)
    sources = functools.cache(_sources)
    keys: list[str | None] = []
    for case in cases:
        texts = [case.settings.get("perf"), *case.options.values(), *named_files(case.policy)]
        if isinstance(case.trace, str):
            # Generators may use the public throughput table without an option that names it.
            texts += [case.trace, throughput_files.PUBLIC]
        files = [(text, state(text)) for text in texts if isinstance(text, str)]
        overhead = case.settings.get("overhead")
        # An overhead may name a measured folder, whose content then counts in the key. Any other
        # overhead counts with the settings of the case.
        if isinstance(overhead, str) and (contents := state(overhead)) is not None:
            files.append((overhead, contents))
        trace_name = getattr(case.trace, "attrs", {}).get("name")
        code = sources(case.measure.__module__)
        # the notes of the result name the alias, which is no field of the policy
        alias = [name] if (name := getattr(case.policy, "alias", "")) else []
        try:
            keys.append(cache.key(case, trace_name, files, *code, *alias))
        except cache.NotCacheable:
            keys.append(None)
    return keys


def _state(text: str) -> str | bool | None:
    """State of the file or folder that a text may name, for the cache key.

    The state is the availability of a public file, the checksum of a user's file, the hash of the
    tables of a measured folder, or None.
    """
    if public.is_known(text):
        return public.available(text)
    if data.is_own(text):
        return data.own_file(text).sha256
    files = throughput_files.measured_files(text)
    return cache.files_hash(files) if files else None


def _sources(module: str) -> tuple[str | None, str]:
    """Hashes of the code that the measures of a module run, and of the tables that they may read.

    The hash of the code is None for this module, which `cache.source_hash` covers, and for modules
    outside ``repro``.
    """
    if module == __name__ or not module.startswith("repro."):
        return None, cache.simulated_tables_hash()
    from repro.base.compiled import sources

    files = sources(module).values()
    return cache.files_hash(files), cache.simulated_tables_hash(files)


def outcome(case: Case, digest: str | None = None) -> Any:
    """Outcome of a resolved case, read from the cache or computed."""
    key = digest or digests([case])[0]
    return _entry(next(_uncacheable) if key is None else key, case).result


def _entry(key: str | int, case: Case) -> cache.Entry:
    """Outcome of a case and its cost; a number as key says that the case is not cacheable."""
    if isinstance(key, str):
        return cache.entry_of(key, lambda: _computed(case))
    with COSTS.computing() as spent:
        computed = _computed(case)
    COSTS.use(key, spent.cpu_s)
    return cache.Entry(computed, spent.cpu_s)


def _computed(case: Case) -> Outcome:
    """Compute the outcome of a case; a dict gets ``wall_s``, which a Result has in ``meta``."""
    started = time.perf_counter()
    computed = case.measure(case)
    if isinstance(computed, Result):
        return computed
    return {"wall_s": time.perf_counter() - started, **computed}


def run(cases: Sequence[Case], workers: int | None = None, before: int = 0) -> list[Any]:
    """Run the cases that are not cached; return all outcomes in input order.

    ``before`` is the number of simulations that this notebook has done already.
    """
    if workers is not None and (type(workers) is not int or workers < 1):
        raise ParamError(f"workers is {workers!r:.60}; give 1 or more processes")
    keys = [next(_uncacheable) if digest is None else digest for digest in digests(cases)]
    # Equal cases have equal keys and are simulated once.
    to_run = dict(zip(keys, cases, strict=True))
    done: dict[str | int, Outcome] = {}
    with COSTS.parallel_batch():
        for key in to_run:
            if isinstance(key, str) and (cached := cache.recall(key)) is not None:
                done[key] = cached
        to_run = {key: to_run[key] for key in _spread(to_run)}
        with show_progress(before + len(done), before + len(to_run)) as show:
            _run_missing(to_run, done, workers, lambda: show(before + len(done)))
    return [done[key] for key in keys]


def _run_missing(
    cases: Mapping[str | int, Case],
    done: dict[str | int, Outcome],
    workers: int | None,
    show: Callable[[], None],
) -> None:
    """Run the cases that ``done`` lacks and add their outcomes; call ``show`` after each."""
    address = os.environ.get(ENV_SCHEDULER)
    deaths = 0
    while missing := [key for key in cases if key not in done]:
        if address:
            _run_on_dask({key: cases[key] for key in missing}, done, show, address)
            return
        done_before = len(done)
        try:
            with _pool(len(missing), workers) as settings:
                parallel = joblib.Parallel(return_as="generator_unordered", **settings)
                calls = (joblib.delayed(_keyed_entry)(key, cases[key]) for key in missing)
                for key, entry in parallel(calls):
                    done[key] = entry.result
                    COSTS.use(key, entry.cpu_s)
                    show()
        except TerminatedWorkerError:
            deaths = deaths + 1 if len(done) == done_before else 1
            if deaths == _MAX_DEATHS:
                remaining = len(cases) - len(done)
                raise ReproError(
                    f"a worker process died {deaths} times in a row, {remaining} simulations are "
                    "left; memory may be short, so use fewer workers; finished simulations are kept"
                ) from None
            print("a worker process died; its simulations run again", flush=True)


def _run_on_dask(
    cases: Mapping[str | int, Case],
    done: dict[str | int, Outcome],
    show: Callable[[], None],
    address: str,
) -> None:
    """Run cases on the workers of a dask scheduler; add their outcomes as they end.

    A case whose worker dies begins again on another worker. Outcomes are stored in the cache of
    this machine, too.
    """
    with needed_for("a sweep on dask workers"):
        import distributed

    with contextlib.ExitStack() as stack:
        client = stack.enter_context(remote.connected(address, f"{ENV_SCHEDULER}={address}"))
        session = remote.inherited()
        in_batch = session is not None
        if session is None:
            session = stack.enter_context(remote.opened_session(client, _own_files(cases.values())))
            client.subscribe_topic("all", functools.partial(_print_loss, session))
        root = str(paths.checkout())
        trace_names: dict[int, str] = {}
        futures = {}
        for key, case in cases.items():
            trace_name = None
            if isinstance(case.trace, pd.DataFrame):
                if id(case.trace) not in trace_names:
                    trace_names[id(case.trace)] = remote.publish_trace(client, session, case.trace)
                trace_name = trace_names[id(case.trace)]
                case = replace(case, trace="")
            label = key if isinstance(key, str) else f"{client.id}-{key}"
            future = client.submit(
                _entry_on_worker,
                *(session, key, case, trace_name, root),
                key=session.key("simulation", label),
                pure=False,
                # Simulations of running notebooks come before notebooks that have not begun.
                priority=1,
            )
            futures[future] = key
        num_done = 0
        for future in distributed.as_completed(list(futures)):
            key = futures[future]
            try:
                entry = future.result()
            except distributed.KilledWorker:
                raise ReproError(
                    "a simulation ended every dask worker that ran it; memory may be short, so "
                    "give each worker more; finished simulations are kept"
                ) from None
            done[key] = entry.result
            COSTS.use(key, entry.cpu_s)
            if isinstance(key, str):
                cache.store(key, entry)
            show()
            if in_batch:
                num_done += 1
                _report(client, session, num_done, [other.key for other in futures])


def _report(client: Any, session: remote.Session, num_done: int, task_keys: Sequence[str]) -> None:
    """Report progress to the batch on another machine.

    The first report names the tasks on the scheduler, whose outcomes the batch holds in case this
    notebook begins again on another worker.
    """
    report: dict[str, Any] = {"notebook": progress_file_name(), "progress": read_progress()}
    if num_done == 1:
        report["hold"] = list(task_keys)
    client.log_event(session.name, report)


def _own_files(cases: Iterable[Case]) -> list[Path]:
    """User's files that cases name, which must lie in the checkout."""
    texts = {
        text
        for case in cases
        for text in (case.trace, case.settings.get("perf"), *case.options.values())
        if isinstance(text, str) and data.is_own(text)
    }
    return [remote.checked_own_file(text) for text in sorted(texts)]


def _print_loss(session: remote.Session, event: tuple[float, Any]) -> None:
    """Print a line if a worker of a session was lost; ``event`` is one of the scheduler."""
    message = event[1]
    line = remote.loss_line(session, message) if isinstance(message, dict) else None
    if line:
        print(line, flush=True)


def _entry_on_worker(
    session: remote.Session, key: str | int, case: Case, trace_name: str | None, root: str
) -> cache.Entry:
    """Outcome and cost of a case on a dask worker, with the inputs of the client.

    ``root`` is the client's checkout, in which user's files lie.
    """
    with remote.using_inputs(session):
        options = {name: remote.local_path(value, root) for name, value in case.options.items()}
        settings = {name: remote.local_path(value, root) for name, value in case.settings.items()}
        trace: Any = remote.local_path(case.trace, root)
        if trace_name is not None:
            trace = remote.received_trace(trace_name)
        return _entry(key, replace(case, trace=trace, options=options, settings=settings))


def _spread(cases: Mapping[str | int, Case]) -> list[str | int]:
    """Cache keys in an order in which cases of one policy class are far apart.

    Processes that start with the same policy class would all compile the same code.
    """
    earlier_cases: Counter[type] = Counter()
    turn: dict[str | int, int] = {}
    for key, case in cases.items():
        turn[key] = earlier_cases[type(case.policy)]
        earlier_cases[type(case.policy)] += 1
    return sorted(turn, key=turn.__getitem__)


def _keyed_entry(key: str | int, case: Case) -> tuple[str | int, cache.Entry]:
    """Key of a case, and its outcome with the cost."""
    return key, _entry(key, case)


@contextlib.contextmanager
def _pool(tasks: int, workers: int | None) -> Iterator[dict[str, Any]]:
    """Yield settings of `joblib.Parallel` for processes of this machine; then end them."""
    workers = workers or joblib.cpu_count()
    in_this_process = tasks < 2 or workers == 1
    try:
        yield {"n_jobs": 1 if in_this_process else workers}
    finally:
        if not in_this_process:
            get_reusable_executor().shutdown(wait=True)
