"""Apps of trials on whole GPUs, with costs of starts and stops: a model of PCS's testbed.

An AutoML app is D trials of one GPU, each with a training time of service / D seconds. At every
event the policy divides the GPUs among the apps, by its own division rule. An app then runs as many
trials as it has GPUs (timed FIFO, as in the artifact's testbed):

    more GPUs     trials that never ran start first, then stopped trials, each in order of number
    fewer GPUs    the running trials with the largest numbers stop
    reports       every ``epoch_s`` seconds of training; a trial ends with its first report at or
                  after its training time
    start         a trial trains from ``start_s`` seconds after its start or restart
    stop          the training since the last report is lost, up to ``epoch_s`` seconds

The policy sees the trials that have not ended as the demand of an app, and their training time as
last reported as its remaining work. It knows neither cost. A prediction is a simulation from the
state at an arrival, without costs and without further arrivals.

Events are ends of trials, ends of the policy's leases or turns, and arrivals. Events that coincide
happen in this order.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from repro.base.errors import ParamError, PolicyError
from repro.base.typing import Flags, Floats, Ints
from repro.figures.sweep import Case, trace_of
from repro.model.cluster.spec import Cluster
from repro.model.elastic import (
    NOW,
    WAKE,
    DivisionRule,
    Elastic,
    ElasticJobs,
    ElasticState,
    arrive,
    change_demand,
    count_event,
    depart,
    mean_jobs,
)
from repro.model.policy import make
from repro.model.records import Result
from repro.trace.schema import validate

#: States of a trial: not started, running, stopped, ended.
WAITING, RUNNING, STOPPED, ENDED = range(4)
#: Training times are compared with this tolerance (s): sums of floats have rounding errors.
_TOLERANCE_S = 1e-6
#: Distance from a whole number of GPUs that counts as rounding error.
_TOLERANCE_GPUS = 1e-6


@dataclass(frozen=True)
class Costs:
    """Costs of trials that policy and predictions do not know.

    Parameters
    ----------
    start_s : float
        Time from the start or restart of a trial until it trains (s).
    epoch_s : float
        Time between reports of a trial (s). 0: it reports at every instant.
    """

    start_s: float = 0.0
    epoch_s: float = 0.0

    def reported(self, trained_s: Floats) -> Floats:
        """Training times at the last reports (s)."""
        if self.epoch_s == 0:
            return trained_s
        return np.floor((trained_s + _TOLERANCE_S) / self.epoch_s) * self.epoch_s

    def until_end(self, training_s: Floats) -> Floats:
        """Training times at the report that ends each trial (s)."""
        if self.epoch_s == 0:
            return training_s
        return np.ceil((training_s - _TOLERANCE_S) / self.epoch_s) * self.epoch_s


FREE = Costs()


@dataclass
class Trials:
    """Trials of all apps, one app after the other; arrays have an entry per trial."""

    #: app of the trial
    app: Ints
    #: (apps + 1,): first trial of each app, then the number of trials
    first: Ints
    #: training time that is asked for (s)
    training_s: Floats
    #: training time so far (s)
    trained_s: Floats
    #: training time at which the trial ends (s)
    until_end_s: Floats
    #: instant from which a running trial trains (s)
    trains_from: Floats
    state: Ints

    @classmethod
    def of(cls, service: Floats, num_trials: Ints, costs: Costs) -> "Trials":
        """Trials before the first arrival."""
        training_s = np.repeat(service / num_trials, num_trials)
        return cls(
            app=np.repeat(np.arange(len(service)), num_trials),
            first=np.append(0, np.cumsum(num_trials)),
            training_s=training_s,
            trained_s=np.zeros(len(training_s)),
            until_end_s=costs.until_end(training_s),
            trains_from=np.zeros(len(training_s)),
            state=np.full(len(training_s), WAITING),
        )

    def foreseen(self, costs: Costs, now: float) -> "Trials":
        """Copy as a prediction sees the trials at an instant: last reports, and no costs."""
        return Trials(
            app=self.app,
            first=self.first,
            training_s=self.training_s,
            trained_s=np.minimum(costs.reported(self.trained_s), self.training_s),
            until_end_s=self.training_s,
            trains_from=np.minimum(self.trains_from, now),
            state=self.state.copy(),
        )


@dataclass
class TrialRun:
    """State of one simulation, or of one prediction.

    Apps are numbers in order of arrival, and times are seconds.
    """

    rule: DivisionRule
    policy_name: str
    #: constants of the apps; the demand of an app is its number of trials that have not ended
    apps: ElasticJobs
    #: settings of the policy for its rule
    settings: Any
    #: state of the policy
    policy_state: ElasticState
    trials: Trials
    costs: Costs
    #: apps that have arrived, in order of arrival; the others follow in `apps`
    arrived: int = 0
    present: list[int] = field(default_factory=list)
    now: float = 0.0
    #: instant at which the policy divides the GPUs again without another event
    lease_ends: float = math.inf
    #: starts and restarts of trials, and stops
    starts: int = 0
    stops: int = 0

    def next_trial(self) -> tuple[int, float]:
        """Running trial that ends next, and its end; (-1, infinity) if none runs."""
        running = np.flatnonzero(self.trials.state == RUNNING)
        if not len(running):
            return -1, math.inf
        trials = self.trials
        begin = np.maximum(trials.trains_from[running], self.now)
        left_s = np.maximum(trials.until_end_s[running] - trials.trained_s[running], 0.0)
        ends = begin + left_s
        earliest = int(np.argmin(ends))
        return int(running[earliest]), float(ends[earliest])

    def advance(self, now: float) -> None:
        """Let trials train until ``now``, and count the event there."""
        trials = self.trials
        running = np.flatnonzero(trials.state == RUNNING)
        begin = np.maximum(trials.trains_from[running], self.now)
        trials.trained_s[running] += np.maximum(now - begin, 0.0)
        self.now = now
        self.policy_state.clock[NOW] = now
        count_event(self.policy_state)

    def admit(self) -> int:
        """Let the next app arrive and return it."""
        app = self.arrived
        self.arrived += 1
        self.present.append(app)
        arrive(self.policy_state, self.apps, app)
        self.rule.admit(self.apps, self.settings, self.policy_state, app)
        return app

    def end_trial(self, trial: int) -> bool:
        """End a trial; return whether its app ends with it."""
        self.trials.state[trial] = ENDED
        app = int(self.trials.app[trial])
        remaining_trials = int(self.apps.demand[app]) - 1
        state = self.policy_state
        if remaining_trials:
            change_demand(self.rule, self.apps, self.settings, state, app, remaining_trials)
            return False
        depart(state, self.apps, app)
        self.rule.retire(self.apps, self.settings, state, app)
        self.present.remove(app)
        return True

    def divide(self) -> None:
        """Let the policy divide the GPUs, then start and stop trials."""
        state = self.policy_state
        present = np.array(self.present, np.int64)
        state.work_left[present] = self.reported_work()[present]
        self.rule.share(self.apps, self.settings, state)
        shares = state.gpus[present]
        gpus = np.rint(shares).astype(np.int64)
        fractional = np.flatnonzero(np.abs(shares - gpus) > _TOLERANCE_GPUS)
        if len(fractional):
            first = fractional[0]
            raise PolicyError(
                f"policy {self.policy_name!r}: app {present[first]} gets {shares[first]:g} GPUs at "
                f"{self.now:g} s, but trials run on whole GPUs; take a policy that gives whole "
                "GPUs, such as fifo-elastic, or pcs with a turn"
            )
        is_running = self.trials.state == RUNNING
        num_running = np.bincount(self.trials.app[is_running], minlength=len(state.gpus))[present]
        has_change = gpus != num_running
        for app, app_gpus in zip(present[has_change], gpus[has_change], strict=True):
            self.use_gpus(int(app), int(app_gpus))
        lease_ends = min(self.now + self.apps.lease, float(state.clock[WAKE]))
        self.lease_ends = lease_ends if self.present else math.inf

    def reported_work(self) -> Floats:
        """Remaining work of each app by the last reports of its trials (s on one GPU), (apps,)."""
        trials = self.trials
        left_s = np.maximum(trials.training_s - self.costs.reported(trials.trained_s), 0.0)
        left_s[trials.state == ENDED] = 0.0
        work = np.bincount(trials.app, left_s)
        # Trials that are about to report have no remaining work by their reports. Their app keeps a
        # little, because priority keys of the policies divide by it.
        return np.maximum(work, _TOLERANCE_S)

    def use_gpus(self, app: int, gpus: int) -> None:
        """Start or stop trials of an app until it runs as many as it has GPUs."""
        trials = self.trials
        first = trials.first[app]
        state = trials.state[first : trials.first[app + 1]]
        running = first + np.flatnonzero(state == RUNNING)
        if gpus < len(running):
            stopped = running[gpus:]
            trials.state[stopped] = STOPPED
            trials.trained_s[stopped] = self.costs.reported(trials.trained_s[stopped])
            self.stops += len(stopped)
        elif gpus > len(running):
            waiting = np.append(np.flatnonzero(state == WAITING), np.flatnonzero(state == STOPPED))
            started = first + waiting[: gpus - len(running)]
            trials.state[started] = RUNNING
            trials.trains_from[started] = self.now + self.costs.start_s
            self.starts += len(started)

    def prediction(self) -> "TrialRun":
        """Simulation from the present state, without costs and without further arrivals."""
        return TrialRun(
            rule=self.rule,
            policy_name=self.policy_name,
            apps=self.apps._replace(
                demand=self.apps.demand.copy(), full_speed=self.apps.full_speed.copy()
            ),
            settings=self.settings,
            policy_state=ElasticState._make(array.copy() for array in self.policy_state),
            trials=self.trials.foreseen(self.costs, self.now),
            costs=FREE,
            arrived=len(self.apps.work),
            present=list(self.present),
            now=self.now,
            lease_ends=self.lease_ends,
        )

    def end_of(self, app: int) -> float:
        """Simulate until an app ends, and return that instant."""
        while True:
            trial, end = self.next_trial()
            self.advance(min(end, self.lease_ends))
            if end <= self.now and self.end_trial(trial) and self.trials.app[trial] == app:
                return self.now
            self.divide()


def simulate_trials(
    trace: pd.DataFrame,
    num_gpus: int,
    policy: Elastic,
    costs: Costs = FREE,
    *,
    predicts: Flags | bool = True,
) -> pd.DataFrame:
    """Simulate apps of trials under a policy that divides GPUs.

    Parameters
    ----------
    trace : DataFrame
        Apps: submit_time (s), num_gpus (trials), duration (training time of a trial, s).
    num_gpus : int
        GPUs of the cluster.
    policy : Elastic
        Policy with a compiled division rule that gives whole GPUs.
    costs : Costs
        Costs of starts and stops.
    predicts : bool, or array of bool by app
        Whether the completion of each app is predicted at its arrival.

    Returns
    -------
    DataFrame
        A row per app: submit_time, end_time, num_gpus, duration, jct, predicted_jct (NaN without a
        prediction), fair_jct (PCS, section 2), as in `repro.model.records.Result`.

    Raises
    ------
    ParamError
        If the policy has no compiled division rule, or the cluster has no GPU.
    TraceError
        If a value of an app is missing or out of range.
    PolicyError
        If the policy gives an app a fraction of a GPU.

    Examples
    --------
    Two trials of 10 s on one GPU, each with a start of 1 s and reports every 4 s:

    >>> app = pd.DataFrame({"submit_time": [0.0], "num_gpus": [2], "duration": [10.0]})
    >>> jobs = simulate_trials(app, 1, make("fifo-elastic", "pcs"), Costs(1, 4))
    >>> jobs[["jct", "predicted_jct"]].to_numpy().tolist()
    [[26.0, 20.0]]
    """
    if policy.rule is None:
        raise ParamError(f"policy {policy.name!r} has no compiled division rule")
    if num_gpus < 1:
        raise ParamError(f"{num_gpus} GPUs; give 1 or more")
    columns = trace[["submit_time", "num_gpus", "duration"]]
    validate(columns.assign(job_id=np.arange(len(trace))), keep_order=True)
    order = np.argsort(trace["submit_time"].to_numpy(float), kind="stable")
    submit, num_trials, duration = columns.to_numpy(float)[order].T
    apps = _apps(policy, submit, duration * num_trials, num_trials.astype(np.int64), num_gpus)
    run = TrialRun(
        rule=policy.rule,
        policy_name=policy.name,
        apps=apps,
        settings=policy.settings(apps),
        policy_state=ElasticState.of(apps, policy.rule.memory),
        trials=Trials.of(apps.work, num_trials.astype(np.int64), costs),
        costs=costs,
    )
    is_predicted = np.broadcast_to(predicts, len(trace))[order]
    end = np.full(len(trace), math.nan)
    mean_present = np.ones(len(trace))
    predicted_end = np.full(len(trace), math.nan)
    while run.present or run.arrived < len(trace):
        next_submit = submit[run.arrived] if run.arrived < len(trace) else math.inf
        trial, trial_end = run.next_trial()
        run.advance(min(trial_end, run.lease_ends, next_submit))
        arrived_app = -1
        if trial_end <= run.now:
            app = int(run.trials.app[trial])
            if run.end_trial(trial):
                end[app] = run.now
                mean_present[app] = mean_jobs(run.policy_state, app)
        elif run.now < run.lease_ends:
            arrived_app = run.admit()
        run.divide()
        if arrived_app >= 0 and is_predicted[arrived_app]:
            predicted_end[arrived_app] = run.prediction().end_of(arrived_app)
    fair_gpus = np.minimum(num_gpus / mean_present, num_trials)
    records = pd.DataFrame(
        {
            "submit_time": submit,
            "end_time": end,
            "num_gpus": num_trials.astype(np.int64),
            "duration": duration,
            "jct": end - submit,
            "predicted_jct": predicted_end - submit,
            "fair_jct": apps.work / fair_gpus,
        }
    )
    records = records.iloc[np.argsort(order)].set_axis(trace.index)
    records.attrs = {"starts": run.starts, "stops": run.stops}
    return records


def _apps(
    policy: Elastic, submit: Floats, work: Floats, num_trials: Ints, num_gpus: int
) -> ElasticJobs:
    """Constants of the apps for the rule of a policy; their speed-up is linear in trials."""
    apps = ElasticJobs(
        submit=submit,
        work=work,
        predicted_work=work,
        size_factor=np.ones(len(work)),
        demand=num_trials.copy(),
        full_speed=num_trials.astype(float),
        curve=np.zeros(len(work), np.int64),
        curves=np.zeros((1, 2)),
        group=np.zeros(len(work), np.int64),
        num_groups=1,
        gpus=num_gpus,
        by_arrival=True,
        ticks_per_second=1.0,
        pause=0.0,
        lease=policy.lease_s,
    )
    group, num_groups = policy.groups(apps, alone=True)
    return apps._replace(group=group, num_groups=num_groups)


@dataclass(frozen=True)
class TrialJobs:
    """Measure of a sweep: records of `simulate_trials`."""

    costs: Costs = FREE
    predicts: bool = True

    def __call__(self, case: Case) -> Result:
        """Simulate a case trial by trial."""
        cluster = case.cluster if isinstance(case.cluster, Cluster) else Cluster.parse(case.cluster)
        policy = make(case.policy, case.rules) if isinstance(case.policy, str) else case.policy
        if not isinstance(policy, Elastic):
            raise ParamError(f"policy {policy.name!r} does not divide GPUs")
        jobs = simulate_trials(
            trace_of(case), cluster.num_gpus, policy, self.costs, predicts=self.predicts
        )
        meta = {"policy": policy.name, "starts": jobs.attrs["starts"], "stops": jobs.attrs["stops"]}
        return Result(jobs, pd.DataFrame(), meta)
