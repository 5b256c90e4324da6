"""Simulations in one compiled call, where policy and options allow it.

There are three kinds: orders whose keys are linear in time, policies with compiled loops of their
own, and elastic policies with a compiled division rule. Tests compare each kind with the engine,
event by event: the first two to the last bit, elastic policies within 1e-7 s.
"""

import numpy as np

from repro.base.errors import ParamError
from repro.base.typing import Flags
from repro.engine.policy_answers import compiled_run_of
from repro.engine.run_errors import naming_the_policy, unfinished
from repro.engine.run_records import AddedRecords
from repro.engine.select.ranked import OrderDriver
from repro.engine.setup import Setup
from repro.model.elastic import Elastic
from repro.model.performance import Curves, Renewing
from repro.model.policy import LinearKey, is_latest_definition

#: Methods by which a policy decides. `Policy.compiled_run` replaces them. If a subclass overrides
#: one of them but not `compiled_run`, the compiled run is out of date and not used.
_DECISIONS = ("decide", "session", "completions")


def simulate_compiled(setup: Setup) -> AddedRecords | None:
    """Simulate in one compiled call; None: the simulation needs the engine, event by event."""
    _refuse_ignored_settings(setup)
    if setup.settings.added_processes:
        return None
    if isinstance(setup.driver, OrderDriver):
        return AddedRecords() if _simulate_order(setup) else None
    if _simulate_own_loops(setup):
        return AddedRecords()
    return _simulate_elastic(setup)


def _is_nominal(setup: Setup) -> bool:
    """Whether jobs run at nominal speed without overheads, nodes, GPU types or an interval."""
    settings = setup.settings
    return (
        settings.perf is None
        and settings.overhead is None
        and settings.interval is None
        and not setup.placer.tracks_nodes
        and setup.type_choice is None
    )


def linear_order(setup: Setup) -> tuple[OrderDriver, LinearKey] | None:
    """Driver and keys of an `Order` whose keys are linear in time; None: it needs the engine."""
    driver = setup.driver
    if not isinstance(driver, OrderDriver) or driver.linear_key is None:
        return None
    if setup.settings.added_processes or not _is_nominal(setup) or setup.policy.completions().tie_s:
        return None
    return driver, driver.linear_key


def _simulate_order(setup: Setup) -> bool:
    """Simulate an `Order` whose keys are linear in time; False: it needs the engine."""
    order = linear_order(setup)
    if order is None:
        return False
    driver, linear_key = order
    from repro.engine.select.whole_run import simulate_order

    # The placement rule only counts GPUs. The compiled loop obeys it without a call, so it counts
    # as used.
    setup.holdings.gang_nodes.placement_used = True
    simulate_order(
        setup.table,
        linear_key,
        setup.cluster.num_gpus,
        driver.quantum,
        setup.holdings.intervals,
        setup.settings,
        setup.awaited,
    )
    return True


def _simulate_own_loops(setup: Setup) -> bool:
    """Simulate a policy by its own compiled loops; False: it needs the engine."""
    policy = setup.policy
    if not _is_nominal(setup) or setup.settings.ends_early or setup.table.counts_steps:
        # these loops count work in seconds
        return False
    with naming_the_policy(policy, setup.view, setup.table):
        compiled_run = compiled_run_of(policy, setup.cluster)
    if compiled_run is None or not is_latest_definition(policy, "compiled_run", _DECISIONS):
        return False
    setup.holdings.gang_nodes.placement_used = True
    intervals = setup.holdings.intervals if setup.settings.keep_intervals else None
    with naming_the_policy(policy, setup.view, setup.table):
        compiled_run(setup.table, setup.cluster, intervals)
    if np.isnan(setup.table.state.end).any():
        raise unfinished(policy.name, setup.table)
    return True


def _simulate_elastic(setup: Setup) -> AddedRecords | None:
    """Simulate an elastic policy in its compiled event loop; None: it needs the engine."""
    policy = setup.policy
    if not isinstance(policy, Elastic) or why_not_compiled(setup):
        return None
    from repro.engine.elastic import simulate_divided

    settings = setup.settings
    with naming_the_policy(policy, setup.view, setup.table):
        columns, held_gpu_s = simulate_divided(
            setup.table,
            policy,
            setup.view,
            setup.holdings.intervals if settings.keep_intervals else None,
            ticks_per_second=settings.rules.ticks_per_second,
            wants_prediction=sampled_jobs(setup.table.count, settings.predict, settings.seed),
        )
    return AddedRecords(columns, held_gpu_s)


def _refuse_ignored_settings(setup: Setup) -> None:
    """Raise ParamError for settings of an elastic policy that only its compiled loop obeys."""
    policy = setup.policy
    if not isinstance(policy, Elastic) or not (policy.size_error or policy.resize_s):
        return
    if reason := why_not_compiled(setup):
        raise ParamError(
            f"policy {policy.name!r}: size_error and resize_s need the compiled event loop, but "
            f"{reason}; set both to 0"
        )


def why_not_compiled(setup: Setup) -> str:
    """Reason why an elastic policy cannot use its compiled event loop; empty if it can."""
    settings = setup.settings
    policy = setup.policy
    if not isinstance(policy, Elastic) or policy.rule is None:
        return f"policy {policy.name!r} has no compiled division rule"
    no_curves = not isinstance(settings.perf, Curves | None)
    reasons = {
        "processes are added": bool(settings.added_processes),
        "starts cost time": settings.overhead is not None,
        "the run distinguishes GPU types": setup.type_choice is not None,
        "decisions are made at intervals": settings.interval is not None,
        "the placement rule chooses nodes": setup.placer.tracks_nodes,
        "the simulation may end before all jobs do": settings.ends_early,
        "the run has throughputs by GPU type": setup.speeds.has_throughputs,
        "the performance model has no speed-up curves": no_curves,
        "the performance model changes rates while jobs run": isinstance(settings.perf, Renewing),
    }
    return next((reason for reason, applies in reasons.items() if applies), "")


def sampled_jobs(num_jobs: int, num_sampled: int | None, seed: int) -> Flags:
    """Whether each job is predicted: ``num_sampled`` jobs chosen by the seed, or all (None).

    >>> int(sampled_jobs(4, 2, seed=0).sum())
    2
    """
    chosen = np.zeros(num_jobs, np.bool_)
    order = np.random.default_rng([seed, num_jobs]).permutation(num_jobs)
    chosen[order[:num_sampled]] = True
    return chosen
