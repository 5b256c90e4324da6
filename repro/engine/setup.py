"""Setup of a simulation: its jobs, cluster, policy and placement, checked and connected."""

import dataclasses
import math
from functools import partial

import numpy as np
import pandas as pd

from repro.engine import checks
from repro.engine.holdings import Holdings
from repro.engine.make_rounds import make_rounds
from repro.engine.partition import Partition
from repro.engine.policy_answers import session_of
from repro.engine.run_errors import naming_the_policy, refused_gang
from repro.engine.run_settings import RunSettings
from repro.engine.select.ranked import OrderDriver
from repro.engine.type_choice import TypeChoice
from repro.engine.whole_decisions import DecisionDriver
from repro.model.cluster.spec import Cluster, gpus_by_type
from repro.model.jobs import JobTable
from repro.model.policy import Order, Policy
from repro.model.share_policy import SharePolicy
from repro.model.speeds import ByType, Speeds
from repro.model.view import View
from repro.perf.slowdown import base_of
from repro.placement.base import Placer, bound
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
        if settings.arrivals is not None:
            num_absent = self.table.count - settings.arrivals
            self.table.submit[settings.arrivals :] = [math.inf] * num_absent
        stop_time = settings.stop_time - self.table.clock_start_s
        self.settings = dataclasses.replace(settings, stop_time=stop_time)
        #: whether the run distinguishes GPU types; otherwise its GPUs are one pool
        self.uses_types = bool(cluster.gpu_types) and (
            not policy.pools_types
            or isinstance(base_of(settings.perf), ByType)
            or settings.types == "wished"
        )
        if self.uses_types:
            checks.check_types(cluster)
        type_names = list(cluster.gpu_types)
        cluster = cluster if self.uses_types else cluster.without_types()
        self.cluster = cluster
        self.policy = policy
        self._rng = np.random.default_rng(settings.seed)
        self._initial_rng_state = self._rng.bit_generator.state
        self.placer = bound(settings.placement, cluster, self._rng)
        placer_by_type = by_type(settings.placement, cluster, self._rng)
        #: placer of each GPU type; the key None without types
        self.placers: dict[str | None, Placer] = placer_by_type or {None: self.placer}
        self.speeds = Speeds(
            self.table,
            base_of(settings.perf),
            gpus_by_type(cluster),
            in_rounds=isinstance(policy, SharePolicy),
        )
        #: GPU types of the jobs, if the engine chooses among several
        self.type_choice: TypeChoice | None = None
        #: choice of GPU types for gangs without a type, under a policy that names types itself.
        #: None: there is nothing to choose, or no speeds are known.
        self._default_types: TypeChoice | None = None
        if self.uses_types:
            choice = TypeChoice(
                self.table,
                self.speeds,
                follows_wishes=settings.types == "wished",
                divides=policy.elastic,
            )
            has_choice = len(cluster.gpu_types) > 1
            if not policy.names_types:
                # also on a cluster of one type, which may not be the type that a job asks for
                choice.check_wishes()
                self.type_choice = choice if has_choice else None
            elif has_choice and self.speeds.has_throughputs:
                self._default_types = choice
        self.view = View(self.table, cluster, policy.needs, policy.name, self.speeds, settings.seed)
        #: error of a placement that refuses a waiting gang at an instant (s), or None
        self.refused_gang = partial(
            refused_gang, policy, self.table, self.placers, self.type_choice
        )
        self.holdings = Holdings(
            self.table,
            cluster,
            policy.name,
            self.placer,
            placer_by_type,
            self.settings,
            type_names,
            self.refused_gang,
        )
        self.view.holdings = self.holdings
        if self.settings.failures is not None:
            checks.check_failures(self.holdings)
        with naming_the_policy(policy, self.view, self.table):
            self.driver = self._driver()
        # after the driver: some policies refuse such a trace in their own words
        checks.check_columns(self.table, policy)
        #: jobs that the simulation waits for; None: all jobs
        self.awaited = checks.awaited_jobs(self.table, settings.until)
        checks.check_demands(self.table, cluster, policy, self.placers, self.type_choice)
        checks.check_speeds(self.table, policy, self.speeds)
        if self.type_choice is None:
            with naming_the_policy(policy, self.view, self.table):
                checks.check_policy(self.table, policy, self.view)
        checks.check_decision_times(self.table, cluster, policy, self.settings)
        checks.check_starts(self.table, policy, self.settings)

    def _driver(self) -> OrderDriver | DecisionDriver:
        """Driver of the policy, which turns keys or decisions into starts and stops."""
        policy = self.policy
        holdings = self.holdings
        if isinstance(policy, Order):
            return OrderDriver(
                self.table,
                policy,
                self.view,
                self.placers,
                holdings.reserve_nodes,
                self.type_choice,
            )
        make = partial(make_rounds, self.table, policy, self.speeds, holdings, self.settings)
        no_choice = self.type_choice is None
        decide = session_of(policy, self.view) if no_choice else self._partition()
        return DecisionDriver(
            self.table, policy, self.view, holdings, make, decide, self._default_types
        )

    def _partition(self) -> Partition:
        """Decision function that asks the policy for each GPU type."""
        assert self.type_choice is not None
        return Partition(
            self.policy,
            self.table,
            self.type_choice,
            base_of(self.settings.perf),
            self.view,
            at_intervals=self.settings.interval is not None,
        )

    @property
    def used_seed(self) -> bool:
        """Whether placement, policy, rounds, predictions or processes may have read the seed."""
        rounds = self.driver.rounds
        return (
            self._rng.bit_generator.state != self._initial_rng_state
            or bool(self.settings.added_processes)
            or self.view.seed_read
            or 0 < (self.settings.predict or 0) < self.table.count
            or (rounds is not None and rounds.shuffles)
        )
