"""The one runner of simulations: each case is looked up, or run here, beside others or by dask."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import math
import os
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import joblib
import pandas as pd
from joblib.externals.loky import get_reusable_executor
from joblib.externals.loky.process_executor import TerminatedWorkerError

from repro.base.errors import InputWarning, ReproError, refuse_unknown
from repro.engine.simulate import simulate
from repro.figures import cache, data
from repro.figures.progress import ENV_SCHEDULER, tell_points
from repro.files import public
from repro.model.cluster.spec import Cluster
from repro.model.policy import Policy, make
from repro.model.records import Result
from repro.perf import throughput_files
from repro.trace.load import load

_SAY_EVERY_S = 10.0
#: Times in a row that a worker process may die before a sweep gives up.
_DEATHS = 3
#: What `simulate` takes beside the fields of a case.
SETTINGS = tuple(
    name
    for name in inspect.signature(simulate).parameters
    if name not in ("trace", "cluster", "policy", "rules", "seed")
)

Outcome = Result | dict[str, Any]


def opened(case: Case) -> pd.DataFrame:
    """Return the trace of a case."""
    if isinstance(case.trace, pd.DataFrame):
        return case.trace
    if data.is_own(case.trace):
        return load(data.own_path(case.trace), **case.options)
    return data.open_trace(case.trace, case.seed, **case.options)[0]


def simulated(case: Case, trace: pd.DataFrame, **more: Any) -> Result:
    """Simulate a case on a trace, with further settings."""
    settings = {**case.settings, **more}
    if isinstance(settings.get("perf"), str):
        settings["perf"] = throughput_files.load_throughputs(settings["perf"])
    with warnings.catch_warnings():
        # the cases of a sweep are chosen on purpose: PCS with one class is one point of its front
        warnings.simplefilter("ignore", InputWarning)
        return simulate(
            trace, case.cluster, case.policy, rules=case.rules, seed=case.seed, **settings
        )


def whole(case: Case) -> Result:
    """Return all records of a case."""
    return simulated(case, opened(case))


@dataclass(frozen=True)
class MeasuredJobs:
    """Measure that keeps the jobs ``first`` to ``last`` (from 0) and what the trace says of them.

    With a last job, the simulation ends when all of these have finished, and jobs go on to arrive
    for ``horizon_h`` hours, at the trace's ``rate`` per hour: without them the last ones would run
    too fast. Jobs unfinished after four times as long have no end.
    """

    first: int = 0
    last: int | None = None
    horizon_h: float = 2000.0

    def __call__(self, case: Case) -> Result:
        """Return the records of the measured jobs, without intervals."""
        end = None if self.last is None else self.last + 1
        for horizon_h in (self.horizon_h, 4 * self.horizon_h):
            options = dict(case.options)
            until = {}
            if end is not None:
                options["jobs"] = end + math.ceil(options["rate"] * horizon_h)
            trace = opened(replace(case, options=options))
            chosen = trace.index[self.first : end]
            if end is not None:
                until = {
                    "until": trace.loc[chosen, "job_id"],
                    "stop_time": trace["submit_time"].max(),
                }
            result = simulated(case, trace, keep_intervals=False, **until)
            jobs = result.jobs.loc[chosen]
            if jobs["end_time"].notna().all():
                break
        beside = [name for name in trace.columns if name not in jobs.columns]
        kept = jobs.join(trace.loc[chosen, beside]).reset_index(drop=True)
        return Result(kept, result.intervals.iloc[:0], result.meta)


@dataclass(frozen=True)
class Case:
    """One simulation and what is kept of it; cluster, policy and rules as for ``repro.simulate``.

    >>> from repro.testing import small_trace
    >>> len(outcome(Case(small_trace(), "1x4", "srtf").resolved()).jobs)
    6
    """

    #: name of a generator or a public trace, path of an own file, or a trace
    trace: str | pd.DataFrame
    cluster: Cluster | str
    policy: Policy | str
    rules: str = "paper"
    #: seed of what the trace and the simulation draw
    seed: int = 0
    #: options of the trace's generator or format
    options: Mapping[str, Any] = field(default_factory=dict)
    #: further arguments of ``repro.simulate``; ``perf`` may be the name of a throughput table
    settings: Mapping[str, Any] = field(default_factory=dict)
    #: a function of this package, or a dataclass with ``__call__``, to a Result or a small dict
    measure: Callable[[Case], Outcome] = whole

    def __post_init__(self) -> None:
        refuse_unknown("a simulation has no setting", self.settings, SETTINGS)

    def resolved(self) -> Case:
        """Return the case with its policy, its cluster and the speeds that its trace names."""
        policy = self.policy
        cluster = Cluster.parse(self.cluster)
        if isinstance(policy, str):
            policy = make(policy, self.rules)
        settings = dict(self.settings)
        trace = self.trace if isinstance(self.trace, pd.DataFrame) else pd.DataFrame()
        if settings.get("perf") is None and cluster.gpu_types and "throughputs" in trace.attrs:
            # so that their content counts, too
            settings["perf"] = policy.performance() or throughput_files.throughputs_of(trace)
        return replace(self, policy=policy, cluster=cluster, settings=settings)


def named_files(policy: object) -> list[str]:
    """Return the public files that parameters of a policy name (a history), sorted."""
    known = vars(policy).values() if dataclasses.is_dataclass(policy) else ()
    return sorted({text for text in known if isinstance(text, str) and public.is_known(text)})


def digests(cases: Iterable[Case]) -> list[str | None]:
    """Return the keys of resolved cases, equal exactly for the same run; None: cannot be told."""
    state = functools.cache(_state)
    sources = functools.cache(_sources)
    found: list[str | None] = []
    for case in cases:
        named = [case.settings.get("perf"), *case.options.values(), *named_files(case.policy)]
        if isinstance(case.trace, str):
            # generators may take the public speeds without being told
            named += [case.trace, throughput_files.PUBLIC]
        files = [(text, state(text)) for text in named if isinstance(text, str)]
        label = getattr(case.trace, "attrs", {}).get("name")
        try:
            found.append(cache.key(case, label, files, *sources(case.measure.__module__)))
        except cache.NotCacheable:
            found.append(None)
    return found


def _state(text: str) -> str | bool | None:
    """Return whether a public file is here, the checksum of an own file, None for other texts."""
    if public.is_known(text):
        return public.available(text)
    return data.own_file(text).sha256 if data.is_own(text) else None


def _sources(module: str) -> tuple[str | None, str]:
    """Return hashes of the code that a measure of another module may run, and of its tables."""
    if module == __name__ or not module.startswith("repro."):
        return None, cache.simulated_tables_hash()
    from repro.base.compiled import sources

    files = sources(module).values()
    return cache.files_hash(files), cache.simulated_tables_hash(files)


def outcome(case: Case, digest: str | None = None) -> Any:
    """Return what a resolved case gives, computed now unless it is remembered."""
    name = digest or digests([case])[0]
    return _computed(case) if name is None else cache.remembered(name, lambda: _computed(case))


def _computed(case: Case) -> Outcome:
    """Return what a case gives; a dict gets ``wall_s``, which a Result has in ``meta``."""
    started = time.perf_counter()
    found = case.measure(case)
    if isinstance(found, Result):
        return found
    return {"wall_s": time.perf_counter() - started, **found}


def run(cases: Sequence[Case], workers: int | None = None, before: int = 0) -> list[Any]:
    """Return what each resolved case gives, in the order given; what is not remembered runs.

    ``before`` is how many simulations this notebook has done already.
    """
    names = [name or number for number, name in enumerate(digests(cases))]
    # Several cases may be one simulation, under other labels.
    ahead = dict(zip(names, cases, strict=True))
    done: dict[str | int, Outcome] = {}
    for name in ahead:
        if isinstance(name, str) and (kept := cache.recall(name)) is not None:
            done[name] = kept
    total = before + len(ahead)
    told = time.monotonic()
    deaths = 0
    ahead = {name: ahead[name] for name in _spread(ahead)}
    while missing := [name for name in ahead if name not in done]:
        count = len(done)
        try:
            with _pool(len(missing), workers) as (settings, elsewhere):
                parallel = joblib.Parallel(return_as="generator_unordered", **settings)
                for name, found in parallel(joblib.delayed(_one)(n, ahead[n]) for n in missing):
                    done[name] = found
                    if elsewhere and isinstance(name, str):
                        cache.remembered(name, functools.partial(done.get, name))
                    tell_points(before + len(done), total)
                    if time.monotonic() - told > _SAY_EVERY_S:
                        told = time.monotonic()
                        print(f"{before + len(done)} of {total} points", flush=True)
        except TerminatedWorkerError:
            deaths = deaths + 1 if len(done) == count else 1
            if deaths == _DEATHS:
                left = len(ahead) - len(done)
                raise ReproError(
                    f"a worker process died {deaths} times in a row, {left} simulations are left; "
                    f"is there memory enough? Use fewer workers; what is done is kept"
                ) from None
            print("a worker process died; what it did is done again", flush=True)
    return [done[name] for name in names]


def _spread(cases: Mapping[str | int, Case]) -> list[str | int]:
    """Return names so that cases of one kind of policy are far apart.

    Processes that begin with several of one kind would all compile the same code.
    """
    before: Counter[type] = Counter()
    turn: dict[str | int, int] = {}
    for name, case in cases.items():
        turn[name] = before[type(case.policy)]
        before[type(case.policy)] += 1
    return sorted(turn, key=turn.__getitem__)


def _one(name: str | int, case: Case) -> tuple[str | int, Outcome]:
    """Return a case's name and what it gives."""
    return name, outcome(case, name) if isinstance(name, str) else _computed(case)


@contextlib.contextmanager
def _pool(tasks: int, workers: int | None) -> Iterator[tuple[dict[str, Any], bool]]:
    """Give settings of `joblib.Parallel` and whether others run it; stop what was started."""
    address = os.environ.get(ENV_SCHEDULER)
    if address and tasks:
        import distributed

        client = distributed.Client(address, timeout="10s")
        with client, joblib.parallel_config(backend="dask"):
            yield {"n_jobs": -1}, True
        return
    workers = workers or joblib.cpu_count()
    alone = tasks < 2 or workers == 1
    try:
        yield {"n_jobs": 1 if alone else workers}, False
    finally:
        if not alone:
            get_reusable_executor().shutdown(wait=True)
