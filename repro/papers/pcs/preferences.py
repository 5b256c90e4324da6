"""Search and choice of configurations of PCS, or of any policy, by preferences of an operator."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pandas as pd

from repro.base.counts import quantity
from repro.base.errors import InputWarning, ParamError, TraceError, refuse_unknown
from repro.base.typing import Floats
from repro.engine.inputs import checked
from repro.figures import sweep
from repro.figures.sweep import Case
from repro.files.checks import shown, type_of
from repro.model.cluster.spec import Cluster
from repro.model.families import ALIASES, alias_note
from repro.model.performance import Performance
from repro.model.policy import Policy, make, policies
from repro.model.view import exact_work
from repro.papers.pcs.encodings import Configuration, Encoding, encoding
from repro.papers.pcs.fronts import Method, Searched, nondominated, search_front
from repro.papers.pcs.objectives import PREDICTED, UNFAIRNESS, Objective, parse
from repro.papers.pcs.ranges import fields_of, no_ranges, ranges_encoding, ranges_of
from repro.perf.speedup import SpeedUp, pcs_speedups

#: Parameters of the policy ``pcs`` that are searched.
CONFIGURATION = ("thresholds", "weights", "zeta_min", "delta")
#: One job in eight is predicted before the others, to see early that a configuration is dominated.
_EARLY_DIVISOR = 8
#: Least number of jobs of a search.
_LEAST_JOBS = 2
#: Configurations that `Preferences.front_of` runs at a time.
_BATCH = 2000

#: Runs resolved cases and returns their results in order.
Runner = Callable[[Sequence[Case]], list[Any]]


def default_rules(policy: str) -> str:
    """Rule set of a search without one: ``pcs`` for the policy ``pcs``, else ``paper``."""
    return "pcs" if policy == "pcs" else "paper"


@dataclass(frozen=True)
class Judged:
    """Measure of a case: its objectives. It stops early if the case cannot be on the front.

    Parameters
    ----------
    objectives : tuple of Objective
        Measured objectives.
    front : tuple of tuple of float
        Objectives of earlier configurations. Prediction stops once a row of the front is at least
        as good in every objective. A job without a prediction counts as error 0, so the objectives
        are lower bounds until all jobs are predicted.

    Examples
    --------
    >>> from repro.testing import small_trace
    >>> case = Case(small_trace(), "1x4", "fifo-elastic", "pcs")
    >>> Judged(parse([("jct", "avg"), ("pred_err", "avg")]), ((1.0, 0.0),))(case)["complete"]
    False
    """

    objectives: tuple[Objective, ...]
    front: tuple[tuple[float, ...], ...] = ()

    def __call__(self, case: Case) -> dict[str, Any]:
        """Objectives (``values``), whether they are complete or lower bounds, and CPU seconds."""
        trace = sweep.trace_of(case)
        started = time.process_time()
        predicts = any(objective.metric == PREDICTED for objective in self.objectives)
        predicted_counts = [0, -(-len(trace) // _EARLY_DIVISOR), len(trace)] if predicts else [0]
        for number in predicted_counts if self.front else predicted_counts[-1:]:
            jobs = sweep.simulated(case, trace, predict=number, keep_intervals=False).jobs
            if "prefers" in trace:
                jobs = jobs.assign(prefers=trace["prefers"].to_numpy())
            values = [objective.of(jobs) for objective in self.objectives]
            dominated = any((np.array(row) <= values).all() for row in self.front)
            if number == predicted_counts[-1] or dominated:
                break
        cpu_s = time.process_time() - started
        return {"values": values, "complete": number == predicted_counts[-1], "cpu_s": cpu_s}


class Preferences:
    """Search and choice of configurations of PCS, or of any policy, by an operator's preferences.

    Parameters
    ----------
    trace : DataFrame
        Trace (`repro.load`). Under PCS and other policies that divide GPUs, a job runs on any
        number of GPUs up to its demand.
    cluster : Cluster or str
        The cluster.
    policy : Policy or str
        Policy to configure. If it is a `Policy`, parameters that are not searched keep its values.
    parameters : mapping, optional
        Parameters to search and their ranges: name -> (low, high), `repro.papers.pcs.ranges.Range`
        or its text, such as ``"100:1e5:log:1-3"``, or a list of them. By default the configuration
        of PCS; any other policy needs them.
    train : int, optional
        Number of jobs, in order of submission, on which configurations are searched; the other
        jobs are for tests. By default all.
    perf : Performance, optional
        Performance model, by default as in `repro.simulate`; for PCS, speed-up curves, by default
        those of its nine models.
    rules : str, optional
        Event rules of the simulations, by default ``pcs`` for PCS and ``paper`` for other policies.
    workers : int, optional
        Processes, by default one per CPU.
    run : callable, optional
        Runs the simulations, by default through the package's cache, so that a killed search
        resumes.

    Raises
    ------
    TraceError
        If the trace has fewer than 2 jobs, or ``train`` is below 2 or above the number of jobs.
    ParamError
        If another policy than ``pcs`` has no ranges, or does not accept the ends of a range, or if
        ``train`` is no whole number.
    PolicyError
        If no policy has the name.

    References
    ----------
    PCS, arXiv 2401.10354, section 3: SetPreference, GetParetoFront, SetWFQConfig.

    Examples
    --------
    >>> from repro.trace import synth
    >>> trace = synth.make("pcs-workload", 1, jobs=60, load=1.2, num_gpus=16)
    >>> pcs = Preferences(trace, "1x16", workers=1)
    >>> pcs.set_preference([("jct", "avg"), ("pred_err", "avg")])
    >>> front = pcs.pareto_front(Method("random", budget=8, population=4))
    >>> pcs.set_wfq_config(front.iloc[0]).name
    'pcs'

    A search over the promote knob and the thresholds of Tiresias. The number of thresholds sets
    the number of queues.

    >>> ranges = {"promote_knob": (1, 8), "thresholds": "100:1e5:log:1-3"}
    >>> tiresias = Preferences(trace, "1x16", policy="tiresias-l", parameters=ranges, workers=1)
    >>> tiresias.set_preference([("jct", "avg"), ("preemptions", "avg")])
    >>> front = tiresias.pareto_front(Method("random", budget=8, population=4))
    >>> tiresias.set_wfq_config(front.iloc[0]).name
    'tiresias-l'
    """

    def __init__(
        self,
        trace: pd.DataFrame,
        cluster: Cluster | str,
        *,
        policy: Policy | str = "pcs",
        parameters: Mapping[str, Any] | None = None,
        train: int | None = None,
        perf: Performance | None = None,
        rules: str | None = None,
        workers: int | None = None,
        run: Runner | None = None,
    ) -> None:
        number = len(trace) if train is None else train
        if not isinstance(number, int | np.integer) or isinstance(number, bool):
            raise ParamError(f"train is {shown(repr(number))}; give a whole number of jobs")
        subject = f"trace {trace.attrs.get('name', 'unnamed')!r}:"
        if len(trace) < _LEAST_JOBS:
            raise TraceError(
                f"{subject} has {quantity(len(trace), 'job')}; a search needs at least "
                f"{_LEAST_JOBS}"
            )
        if not _LEAST_JOBS <= number <= len(trace):
            raise TraceError(
                f"{subject} train is {number}; give {_LEAST_JOBS} to {len(trace)}, as "
                f"the trace has {len(trace)} jobs"
            )
        ordered = trace if train is None else _by_submission(trace)
        self.train = ordered.head(number)
        self.test = ordered.iloc[number:]
        self.cluster = Cluster.parse(cluster)
        self._base = policy
        self._class = policies[policy] if isinstance(policy, str) else type(policy)
        if isinstance(policy, str) and policy in ALIASES and policy not in policies:
            known = {name: policies[name] for name in policies}
            warnings.warn(alias_note(policy, known), InputWarning, stacklevel=2)
        if parameters is None and self._class.name != "pcs":
            raise no_ranges(self._class)
        self._ranges = None if parameters is None else ranges_of(self._class, parameters)
        #: names of the parameters that are searched
        self.parameters = CONFIGURATION if self._ranges is None else tuple(self._ranges)
        self.rules = rules or default_rules(self._class.name)
        self.objectives: tuple[Objective, ...] = ()
        self.policy: Policy | None = None
        self._settings = {} if perf is None else {"perf": perf}
        self._curves = perf if isinstance(perf, SpeedUp) else pcs_speedups()
        self._run = run or (lambda cases: sweep.run([case.resolved() for case in cases], workers))

    def set_preference(self, preferences: Sequence[Any]) -> None:
        """Set the objectives, as (metric, statistic) or (metric, statistic, limit).

        Parameters
        ----------
        preferences : sequence
            Metric is jct, pred_err, unfairness or preemptions. Statistic is avg or a percentile;
            see `repro.papers.pcs.objectives.parse`. Only policies that divide GPUs have
            unfairness, in runs without costs of starts and without throughputs by GPU type.

        Raises
        ------
        ParamError
            If a metric, statistic or limit is not accepted.
        """
        self.objectives = parse(preferences)

    def search(
        self,
        method: Method | str | None = None,
        *,
        seed: int = 0,
        heuristics: bool = True,
        watch: Callable[[pd.DataFrame], None] | None = None,
    ) -> pd.DataFrame:
        """Evaluate configurations on the jobs to search on.

        Parameters
        ----------
        method : Method or str, optional
            Algorithm, budget and generations, or the name of the algorithm; by default SPEA2 as the
            artifact's search.
        seed : int
            Seed of the search.
        heuristics : bool
            Whether thresholds and weights of PCS follow from T and W (PCS, section 3.4), or are
            searched one by one.
        watch : callable, optional
            Called with all evaluations so far after each generation.

        Returns
        -------
        DataFrame
            One row per evaluation, in order: objectives (infinite where the configuration is not
            possible), whether they are complete (else a lower bound that the front dominates),
            the parameters searched (for PCS thresholds, weights, zeta_min, delta), and whether it
            is nondominated (``front``).

        Raises
        ------
        ParamError
            If there is no preference yet, no algorithm has the name, runs of the policy do not have
            a preferred metric, or ``heuristics`` is False and the parameters have ranges.
        """
        self._check_preference()
        code = self._encoding(heuristics)
        rows: list[dict[str, Any]] = []

        def evaluate(points: Floats, front: Floats | None) -> Floats:
            front_rows = () if front is None else tuple(map(tuple, front.tolist()))
            decoded = [code.decode(point) for point in points]
            possible = [configuration for configuration in decoded if configuration]
            measured = iter(self._measure(possible, self.train, front_rows))
            impossible = {"values": [np.inf] * len(self.objectives), "complete": True}
            results = [next(measured) if item else impossible for item in decoded]
            rows.extend(
                {**self._row(item), **result} for item, result in zip(decoded, results, strict=True)
            )
            return np.array([result["values"] for result in results])

        def after_generation(evaluated: Searched) -> None:
            if watch is not None:
                watch(self._table(rows))

        search_front(evaluate, code.low, code.high, method, seed=seed, watch=after_generation)
        return self._table(rows)

    def pareto_front(self, method: Method | str | None = None, **options: Any) -> pd.DataFrame:
        """Search, and return the front within all limits, sorted by the first objective.

        Parameters
        ----------
        method, **options
            As of `search`.

        Returns
        -------
        DataFrame
            One row per configuration: objectives, and the parameters searched.

        Raises
        ------
        ParamError
            If `search` raises it, or no configuration of the front is within all limits.
        """
        table = self.search(method, **options)
        if not table["front"].any():
            raise ParamError(
                f"policy {self._class.name!r} accepts none of the {len(table)} configurations; "
                "change the ranges"
            )
        front = table[table["front"]].sort_values(self.objectives[0].name)
        allowed = pd.Series(True, index=front.index)
        for objective in self.objectives:
            if objective.limit is not None:
                allowed &= front[objective.name] <= objective.limit
        if not allowed.any():
            names = [objective.name for objective in self.objectives]
            least = ", ".join(f"{name} {front[name].min():g}" for name in names)
            wanted = ", ".join(
                f"{objective.name} {objective.limit:g}"
                for objective in self.objectives
                if objective.limit is not None
            )
            raise ParamError(
                f"no configuration found is within all limits ({wanted}); the least found of each "
                f"alone: {least}; raise a limit or the budget"
            )
        return front[allowed].drop(columns=["front", "complete"]).reset_index(drop=True)

    def set_wfq_config(self, configuration: Mapping[str, Any] | pd.Series[Any]) -> Policy:
        """Choose a configuration.

        Parameters
        ----------
        configuration : mapping or Series
            A row of the front, or values of some of the parameters searched. The other parameters
            keep their values.

        Returns
        -------
        Policy
            Policy with the configuration, for `repro.simulate`.

        Raises
        ------
        ParamError
            If the configuration is neither mapping nor Series, lacks all parameters searched, or
            lacks some of them and has a name that is no parameter searched.
        """
        if not isinstance(configuration, Mapping | pd.Series):
            raise ParamError(
                f"a configuration is {type_of(configuration)}; give a row of pareto_front(), "
                "such as front.iloc[0], or a dict of parameters"
            )
        settings = {name: configuration[name] for name in self.parameters if name in configuration}
        # a row of the front has further columns, such as the objectives
        if len(settings) < len(self.parameters):
            names = map(str, configuration.keys())
            refuse_unknown("the search has no parameter", names, self.parameters)
        if not settings:
            raise ParamError(
                f"the configuration has no parameter of the search; give "
                f"{', '.join(self.parameters)}, such as in a row of the front"
            )
        self.policy = self._configured(settings)
        return self.policy

    def evaluate(self, front: pd.DataFrame, jobs: pd.DataFrame | None = None) -> pd.DataFrame:
        """Evaluate a front on other jobs, by default the test jobs.

        Parameters
        ----------
        front : DataFrame
            Rows with the parameters searched, for PCS thresholds, weights, zeta_min and delta.
        jobs : DataFrame, optional
            A trace.

        Returns
        -------
        DataFrame
            The front, with the objectives on these jobs.

        Raises
        ------
        ParamError
            If there is no preference yet, or the front is no DataFrame or lacks a parameter.
        TraceError
            If there are no test jobs.
        """
        self._check_preference()
        if not isinstance(front, pd.DataFrame):
            raise ParamError(
                f"the front is {type_of(front)}; give the DataFrame of pareto_front(), or rows of "
                "it, such as front.iloc[[0]]"
            )
        if absent := [name for name in self.parameters if name not in front]:
            raise ParamError(
                f"the front has no column {', '.join(absent)}; give one that pareto_front returned"
            )
        test_jobs = self.test if jobs is None else jobs
        if not len(test_jobs):
            raise TraceError("no jobs are left to test on; give fewer to search on")
        configurations = [
            {name: row[name] for name in self.parameters} for _, row in front.iterrows()
        ]
        results = self._measure(configurations, test_jobs)
        names = [objective.name for objective in self.objectives]
        values = np.array([result["values"] for result in results]).reshape(-1, len(names))
        return front.assign(**dict(zip(names, values.T, strict=True)))

    def front_of(self, configurations: Sequence[Configuration]) -> Floats:
        """Objectives of the nondominated ones among configurations, (points, objectives).

        Parameters
        ----------
        configurations : sequence of dict
            Settings of the policy. They run in batches. The run of a configuration stops early if
            the front of the earlier batches dominates it.

        Raises
        ------
        ParamError
            If there is no preference yet.
        """
        self._check_preference()
        front = np.empty((0, len(self.objectives)))
        for begin in range(0, len(configurations), _BATCH):
            front_rows = tuple(map(tuple, front.tolist()))
            batch = configurations[begin : begin + _BATCH]
            results = self._measure(batch, self.train, front_rows)
            both = np.vstack([front, [result["values"] for result in results]])
            front = both[nondominated(both)]
        return front

    def _measure(
        self,
        configurations: Sequence[Configuration],
        jobs: pd.DataFrame,
        front: tuple[tuple[float, ...], ...] = (),
    ) -> list[Any]:
        """Run each configuration on jobs; see `Judged` for the results."""
        # limits do not change the values, so cached results serve all limits
        objectives = tuple(replace(objective, limit=None) for objective in self.objectives)
        cases = [
            Case(
                jobs,
                self.cluster,
                self._configured(configuration),
                self.rules,
                settings=self._settings,
                measure=Judged(objectives, front),
            )
            for configuration in configurations
        ]
        return self._run(cases)

    def _configured(self, configuration: Mapping[str, Any]) -> Policy:
        """Policy with a configuration."""
        if isinstance(self._base, str):
            return make(self._base, self.rules, **configuration)
        return replace(self._base, **fields_of(configuration)).under(self.rules)

    def _encoding(self, heuristics: bool) -> Encoding:
        """Encoding of the configurations; PCS's own unless ranges are given."""
        if self._ranges is not None:
            if not heuristics:
                raise ParamError(
                    "without heuristics, every threshold and weight of PCS is searched; leave it "
                    "out, as the parameters have ranges"
                )
            return ranges_encoding(self._class, self._ranges)
        models = self.train.get("model")
        linear = models is None or not any(map(self._curves.covers, models))
        return encoding(self._work(), heuristics=heuristics, linear=linear)

    def _check_preference(self) -> None:
        """Refuse to evaluate before `set_preference`, or unfairness if the runs do not have it."""
        if not self.objectives:
            raise ParamError("no preference yet; call set_preference first")
        metrics = {objective.metric for objective in self.objectives}
        if UNFAIRNESS not in metrics:
            return
        jobs = self.train.head(2)
        base = self._base
        policy = make(base, self.rules) if isinstance(base, str) else base.under(self.rules)
        case = Case(jobs, self.cluster, policy, self.rules, settings=self._settings).resolved()
        reason = sweep.simulated(case, jobs, predict=0, keep_intervals=False).meta["rollout_reason"]
        if reason:
            raise ParamError(
                f"runs of policy {self._class.name!r} have no unfairness here: {reason}; prefer "
                f"jct, preemptions or pred_err"
            )

    def _work(self) -> Floats:
        """Sizes of the jobs to search on, (jobs,) s on one GPU."""
        jobs = self.train
        models = jobs["model"] if "model" in jobs else pd.Series(None, jobs.index, dtype=object)
        pairs = zip(models, jobs["num_gpus"], strict=True)
        speeds = [self._curves.speed(cast(str | None, model), gpus) for model, gpus in pairs]
        product = np.asarray(jobs["duration"].to_numpy(float) * np.array(speeds))
        if "service" not in jobs:
            return product
        return exact_work(product, jobs["service"].to_numpy(float))

    def _row(self, configuration: Configuration | None) -> Configuration:
        """Columns of a configuration, None where it is not possible."""
        return configuration or dict.fromkeys(self.parameters)

    def _table(self, rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
        """Table of the evaluations."""
        values = np.array([row["values"] for row in rows])
        names = [objective.name for objective in self.objectives]
        columns = {name: [row[name] for row in rows] for name in ("complete", *self.parameters)}
        table = pd.DataFrame(values, columns=names)
        return table.assign(**columns, front=nondominated(values))


def _by_submission(trace: pd.DataFrame) -> pd.DataFrame:
    """Trace in order of submission; the trace itself if it has this order."""
    submit = checked(trace)["submit_time"].to_numpy(float)
    if (np.diff(submit) >= 0).all():
        return trace
    return trace.iloc[np.argsort(submit, kind="stable")]


@dataclass(frozen=True)
class Searching:
    """Measure of a case: a whole search on its trace and cluster, with its performance model.

    The case's policy is not used. A case with other settings than ``perf`` is refused. Several
    searches run in parallel. Each evaluates its configurations in sequence.

    Parameters
    ----------
    objectives : tuple of Objective
        Objectives of the search.
    method : Method
        Algorithm, budget and generations.
    seed : int
        Seed of the search.
    heuristics : bool
        As in `Preferences.search`.

    Examples
    --------
    >>> from repro.trace import synth
    >>> trace = synth.make("pcs-workload", 1, jobs=60, load=1.2, num_gpus=16)
    >>> search = Searching(parse([("jct", "avg")]), Method("random", 4, 4))
    >>> len(search(Case(trace, "1x16", "pcs", "pcs"))["table"])
    4
    """

    objectives: tuple[Objective, ...]
    method: Method
    seed: int = 0
    heuristics: bool = True

    def __call__(self, case: Case) -> dict[str, Any]:
        """All evaluations, as `Preferences.search` returns them, under ``table``."""
        refuse_unknown("a search has no setting", case.settings, ("perf",))
        results: dict[Any, Any] = {}

        def run(cases: Sequence[Case]) -> list[Any]:
            # not cached on disk one by one: writing takes as long as simulating
            for item in cases:
                if (item.policy, item.measure) not in results:
                    results[item.policy, item.measure] = item.measure(item.resolved())
            return [results[item.policy, item.measure] for item in cases]

        perf = case.settings.get("perf")
        pcs = Preferences(sweep.trace_of(case), case.cluster, perf=perf, rules=case.rules, run=run)
        pcs.set_preference(self.objectives)
        return {"table": pcs.search(self.method, seed=self.seed, heuristics=self.heuristics)}
