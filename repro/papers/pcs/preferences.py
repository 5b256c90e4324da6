"""An operator's preference, a search for configurations of PCS, and a choice among them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pandas as pd

from repro.base.errors import ParamError, TraceError
from repro.base.typing import Floats
from repro.figures import sweep
from repro.figures.sweep import Case
from repro.model.cluster.spec import Cluster
from repro.model.policy import Policy, make
from repro.papers.pcs.encodings import Configuration, encoding
from repro.papers.pcs.fronts import Method, Searched, nondominated, search_front
from repro.papers.pcs.objectives import PREDICTED, Objective, parse
from repro.perf.speedup import SpeedUp, pcs_speedups

#: Parameters of the policy ``pcs`` that are searched.
CONFIGURATION = ("thresholds", "weights", "zeta_min", "delta")
#: Of the jobs this part is predicted before all are, to see whether that is worth while.
_FIRST = 8

#: Runs resolved cases and returns what each gives, in order.
Runner = Callable[[Sequence[Case]], list[Any]]


@dataclass(frozen=True)
class Judged:
    """Measure of a case: its objectives, and what tells early that it cannot be on the front.

    Parameters
    ----------
    objectives : tuple of Objective
        What is measured.
    front : tuple of tuple of float
        Values known already. JCTs are known without predictions, and a job not predicted yet adds
        nothing to an error: if that much is no better than one of these in any objective, the
        rest of the predictions are not made.

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
        """Return the objectives, whether they are complete or lower bounds, and CPU seconds."""
        trace = sweep.opened(case)
        started = time.process_time()
        predicts = any(one.metric == PREDICTED for one in self.objectives)
        steps = [0, -(-len(trace) // _FIRST), len(trace)] if predicts else [0]
        for number in steps if self.front else steps[-1:]:
            jobs = sweep.simulated(case, trace, predict=number, keep_intervals=False).jobs
            if "prefers" in trace:
                jobs = jobs.assign(prefers=trace["prefers"].to_numpy())
            values = [one.of(jobs) for one in self.objectives]
            beaten = any((np.array(known) <= values).all() for known in self.front)
            if number == steps[-1] or beaten:
                break
        cpu_s = time.process_time() - started
        return {"values": values, "complete": number == steps[-1], "cpu_s": cpu_s}


class Preferences:
    """Search and choose configurations of PCS by what an operator prefers.

    Parameters
    ----------
    trace : DataFrame
        Trace of divisible jobs (`repro.load`).
    cluster : Cluster or str
        The cluster.
    train : int, optional
        Configurations are searched on so many of the first jobs and can be tested on the others;
        by default on all.
    perf : SpeedUp, optional
        Speed-up curves, by default those of the nine models of PCS.
    rules : str
        Event rules of the simulations.
    workers : int, optional
        Processes, by default one per CPU.
    run : callable, optional
        What runs the simulations, by default the package's one runner: what was simulated before
        is remembered, so a search that was killed goes on where it was.

    Reference: PCS, arXiv 2401.10354, section 3: SetPreference, GetParetoFront, SetWFQConfig.

    Examples
    --------
    >>> from repro.trace import synth
    >>> trace = synth.make("pcs-workload", 1, jobs=60, load=1.2, num_gpus=16)
    >>> pcs = Preferences(trace, "1x16", workers=1)
    >>> pcs.set_preference([("jct", "avg"), ("pred_err", "avg")])
    >>> front = pcs.pareto_front(Method("random", budget=8, population=4))
    >>> pcs.set_wfq_config(front.iloc[0]).name
    'pcs'
    """

    def __init__(
        self,
        trace: pd.DataFrame,
        cluster: Cluster | str,
        *,
        train: int | None = None,
        perf: SpeedUp | None = None,
        rules: str = "pcs",
        workers: int | None = None,
        run: Runner | None = None,
    ) -> None:
        number = len(trace) if train is None else train
        if not 2 <= number <= len(trace):
            raise TraceError(
                f"trace {trace.attrs.get('name', 'unnamed')!r}: {number} of {len(trace)} jobs to "
                f"search on; give at least 2, and not more than there are"
            )
        self.train = trace.head(number)
        self.test = trace.iloc[number:]
        self.cluster = Cluster.parse(cluster)
        self.rules = rules
        self.objectives: tuple[Objective, ...] = ()
        self.policy: Policy | None = None
        self._settings = {} if perf is None else {"perf": perf}
        self._curves = perf or pcs_speedups()
        self._run = run or (lambda cases: sweep.run([one.resolved() for one in cases], workers))

    def set_preference(self, wishes: Sequence[Any]) -> None:
        """Say what counts, as (metric, measure) or (metric, measure, limit).

        Parameters
        ----------
        wishes : sequence
            Metric is jct, pred_err or unfairness, measure avg or a percentile; see
            `repro.papers.pcs.objectives.parse`, also for what is refused.
        """
        self.objectives = parse(wishes)

    def search(
        self,
        method: Method | None = None,
        *,
        seed: int = 0,
        heuristics: bool = True,
        watch: Callable[[pd.DataFrame], None] | None = None,
    ) -> pd.DataFrame:
        """Evaluate configurations on the jobs to search on.

        Parameters
        ----------
        method : Method, optional
            Algorithm, budget and generations; by default SPEA2 as the artifact's search.
        seed : int
            Of the search's draws.
        heuristics : bool
            Whether classes and weights follow from two numbers, or are searched one by one.
        watch : callable, optional
            Told all evaluations so far after each generation.

        Returns
        -------
        DataFrame
            One row per evaluation, in order: objectives (infinite where the configuration is not
            possible), whether they are complete (else a lower bound that is worse than the front),
            thresholds, weights, zeta_min, delta, and whether no other beats it (``front``).

        Raises
        ------
        ParamError
            If there is no preference yet.
        """
        if not self.objectives:
            raise ParamError("no preference yet; call set_preference first")
        work = self._work()
        models = self.train.get("model")
        linear = models is None or not models.isin(list(self._curves.curves)).any()
        how = encoding(work, heuristics=heuristics, linear=linear)
        rows: list[dict[str, Any]] = []

        def evaluate(points: Floats, front: Floats | None) -> Floats:
            limits = () if front is None else tuple(map(tuple, front.tolist()))
            decoded = [how.decode(point) for point in points]
            found = iter(self._judge([one for one in decoded if one], self.train, limits))
            none = {"values": [np.inf] * len(self.objectives), "complete": True}
            judged = [next(found) if one else none for one in decoded]
            rows.extend({**_row(one), **told} for one, told in zip(decoded, judged, strict=True))
            return np.array([told["values"] for told in judged])

        def told(known: Searched) -> None:
            if watch is not None:
                watch(self._table(rows))

        search_front(evaluate, how.low, how.high, method, seed=seed, watch=told)
        return self._table(rows)

    def pareto_front(self, method: Method | None = None, **options: Any) -> pd.DataFrame:
        """Return the configurations found that no other beats, by the first objective.

        Parameters
        ----------
        method, **options
            As of `search`.

        Raises
        ------
        ParamError
            If there is no preference yet, or none of the front is within all limits.
        """
        table = self.search(method, **options)
        front = table[table["front"]].sort_values(self.objectives[0].name)
        allowed = pd.Series(True, index=front.index)
        for one in self.objectives:
            if one.limit is not None:
                allowed &= front[one.name] <= one.limit
        if not allowed.any():
            least = ", ".join(f"{one.name} {front[one.name].min():g}" for one in self.objectives)
            wanted = ", ".join(
                f"{one.name} {one.limit:g}" for one in self.objectives if one.limit is not None
            )
            raise ParamError(
                f"no configuration found is within all limits ({wanted}); the least found of each "
                f"alone: {least}; raise a limit or the budget"
            )
        return front[allowed].drop(columns=["front", "complete"]).reset_index(drop=True)

    def set_wfq_config(self, configuration: Mapping[str, Any] | pd.Series[Any]) -> Policy:
        """Choose a configuration, a row of the front; return the policy to simulate or use."""
        parts = {name: configuration[name] for name in CONFIGURATION if name in configuration}
        self.policy = make("pcs", self.rules, **parts)
        return self.policy

    def evaluate(self, front: pd.DataFrame, jobs: pd.DataFrame | None = None) -> pd.DataFrame:
        """Return the front with its objectives on other jobs, by default those to test on.

        Parameters
        ----------
        front : DataFrame
            Rows with thresholds, weights, zeta_min and delta.
        jobs : DataFrame, optional
            A trace.
        """
        chosen = self.test if jobs is None else jobs
        if not len(chosen):
            raise TraceError("no jobs are left to test on; give fewer to search on")
        known = [{name: row[name] for name in CONFIGURATION} for _, row in front.iterrows()]
        found = np.array([told["values"] for told in self._judge(known, chosen)])
        return front.assign(**{one.name: found[:, k] for k, one in enumerate(self.objectives)})

    def _judge(
        self,
        configurations: Sequence[Configuration],
        jobs: pd.DataFrame,
        front: tuple[tuple[float, ...], ...] = (),
    ) -> list[Any]:
        """Return what each configuration comes to."""
        # limits do not change what is measured
        objectives = tuple(replace(one, limit=None) for one in self.objectives)
        cases = [
            Case(
                jobs,
                self.cluster,
                make("pcs", self.rules, **one),
                self.rules,
                settings=self._settings,
                measure=Judged(objectives, front),
            )
            for one in configurations
        ]
        return self._run(cases)

    def _work(self) -> Floats:
        """Return the sizes of the jobs to search on (s on one GPU)."""
        jobs = self.train
        if "service" in jobs:
            return jobs["service"].to_numpy(float)
        models = jobs["model"] if "model" in jobs else pd.Series(None, jobs.index, dtype=object)
        pairs = zip(models, jobs["num_gpus"], strict=True)
        speeds = [self._curves.speed(cast(str | None, model), gpus) for model, gpus in pairs]
        return np.asarray(jobs["duration"].to_numpy(float) * np.array(speeds))

    def _table(self, rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
        """Return the evaluations as a frame."""
        values = np.array([row["values"] for row in rows])
        parts = pd.DataFrame(values, columns=[one.name for one in self.objectives])
        rest = {name: [row[name] for row in rows] for name in ("complete", *CONFIGURATION)}
        return parts.assign(**rest, front=nondominated(values))


def _row(configuration: Configuration | None) -> Configuration:
    """Return the columns of a configuration, empty where it is not possible."""
    return configuration or dict.fromkeys(CONFIGURATION)


@dataclass(frozen=True)
class Searching:
    """Measure of a case: a whole search on its trace and cluster, whatever its policy.

    Many searches run beside each other so, each evaluating one configuration after the other.

    Parameters
    ----------
    objectives : tuple of Objective
        What counts.
    method : Method
        Algorithm, budget and generations.
    seed : int
        Of the search's draws.
    heuristics : bool
        As in `Preferences.search`.

    Examples
    --------
    >>> from repro.trace import synth
    >>> trace = synth.make("pcs-workload", 1, jobs=60, load=1.2, num_gpus=16)
    >>> how = Searching(parse([("jct", "avg")]), Method("random", 4, 4))
    >>> len(how(Case(trace, "1x16", "pcs", "pcs"))["table"])
    4
    """

    objectives: tuple[Objective, ...]
    method: Method
    seed: int = 0
    heuristics: bool = True

    def __call__(self, case: Case) -> dict[str, Any]:
        """Return all evaluations, as `Preferences.search` does, under ``table``."""
        known: dict[Any, Any] = {}

        def run(cases: Sequence[Case]) -> list[Any]:
            # not filed one by one: to write a result takes as long as to simulate it
            for one in cases:
                if (one.policy, one.measure) not in known:
                    known[one.policy, one.measure] = one.measure(one.resolved())
            return [known[one.policy, one.measure] for one in cases]

        pcs = Preferences(sweep.opened(case), case.cluster, rules=case.rules, run=run)
        pcs.set_preference(self.objectives)
        return {"table": pcs.search(self.method, seed=self.seed, heuristics=self.heuristics)}
