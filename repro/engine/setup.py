"""Setup of a simulation: its jobs, cluster, policy and placement, checked and connected."""

import dataclasses
from functools import partial

import numpy as np
import pandas as pd

from repro.engine import checks
from repro.engine.holdings import Holdings
from repro.engine.make_rounds import make_rounds
from repro.engine.run_errors import naming_the_policy
from repro.engine.run_settings import RunSettings
from repro.engine.select.ranked import OrderDriver
from repro.engine.whole_decisions import DecisionDriver
from repro.model.cluster.spec import Cluster, gpus_by_type
from repro.model.jobs import JobTable
from repro.model.policy import Order, Policy
from repro.model.speeds import Speeds
from repro.model.view import View
from repro.perf.slowdown import base_of
from repro.placement.by_type import by_type


class Setup:
    """Jobs, cluster, policy, placement and driver of one simulation, before its first event.

    Parameters
    ----------
    trace : DataFrame
        A validated trace.
    cluster : Cluster
        Cluster of the simulation.
    policy : Policy
        Policy with the values of the rule set.
    settings : RunSettings
        Options of the simulation; ``stop_time`` is a time in the trace (s).

    Raises
    ------
    TraceError, PolicyError, ParamError
        If a job can never run, the policy fails, or an option is out of range.
    """

    def __init__(
        self, trace: pd.DataFrame, cluster: Cluster, policy: Policy, settings: RunSettings
    ) -> None:
        self.table = JobTable(trace, settings.rules)
        stop_time = settings.stop_time - self.table.clock_start_s
        self.settings = dataclasses.replace(settings, stop_time=stop_time)
        self.cluster = cluster
        self.policy = policy
        self._rng = np.random.default_rng(settings.seed)
        self._initial_rng_state = self._rng.bit_generator.state
        self.placer = settings.placement.bind(cluster, self._rng)
        is_order = isinstance(policy, Order)
        placer_by_type = {} if is_order else by_type(settings.placement, cluster, self._rng)
        self.speeds = Speeds(self.table, base_of(settings.perf), gpus_by_type(cluster))
        self.view = View(self.table, cluster, policy.needs, policy.name, self.speeds, settings.seed)
        self.holdings = Holdings(
            self.table, cluster, policy.name, self.placer, placer_by_type, self.settings
        )
        self.view.holdings = self.holdings
        with naming_the_policy(policy, self.view, self.table):
            self.driver = self._driver()
        #: jobs that the simulation waits for; None: all jobs
        self.awaited = checks.awaited_jobs(self.table, settings.until)
        checks.check_demands(self.table, cluster, policy, self.placer)
        checks.check_decision_times(self.table, cluster, policy, self.settings)
        checks.check_starts(self.table, policy, self.settings)

    def _driver(self) -> OrderDriver | DecisionDriver:
        """Driver of the policy, which turns keys or decisions into starts and stops."""
        policy = self.policy
        holdings = self.holdings
        if isinstance(policy, Order):
            return OrderDriver(self.table, policy, self.view, self.placer, holdings.reserve_nodes)
        make = partial(make_rounds, self.table, policy, self.speeds, holdings, self.settings)
        return DecisionDriver(self.table, policy, self.view, holdings, make)

    @property
    def used_seed(self) -> bool:
        """Whether placement, policy, rounds or sampled predictions have read the seed so far."""
        rounds = self.driver.rounds
        return (
            self._rng.bit_generator.state != self._initial_rng_state
            or self.view.seed_read
            or 0 < (self.settings.predict or 0) < self.table.count
            or (rounds is not None and rounds.shuffles)
        )
