"""The round mechanism for a policy that has returned shares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from repro.base.errors import ParamError
from repro.engine.checks import check_failures
from repro.engine.holdings import Holdings
from repro.engine.renewals import renewals_refused
from repro.engine.run_settings import RunSettings
from repro.model.jobs import JobTable
from repro.model.performance import Renewing
from repro.model.policy import Policy
from repro.model.speeds import Speeds
from repro.perf.slowdown import Slowed

if TYPE_CHECKING:
    from repro.engine.rounds.mechanism import RoundMechanism


def make_rounds(
    table: JobTable, policy: Policy, speeds: Speeds, holdings: Holdings, settings: RunSettings
) -> RoundMechanism:
    """Round mechanism of a simulation: rounds of fixed length or whole steps, or ideal execution.

    Parameters
    ----------
    table : JobTable
        Jobs of the simulation.
    policy : Policy
        A policy that returns shares.
    speeds : Speeds
        Steps per second by GPU type.
    holdings : Holdings
        Jobs that hold GPUs. Rounds append to its record of intervals.
    settings : RunSettings
        Options of the simulation.

    Raises
    ------
    ParamError
        If an option has no meaning in rounds.
    """
    if settings.interval is not None:
        raise ParamError(
            f"interval is {settings.interval:g} s, but policy {policy.name!r} returns shares, "
            f"whose rounds have a length of their own; set round_s={settings.interval:g} instead"
        )
    # importing the compiled loops takes longer than most simulations without rounds
    from repro.engine.rounds.ideal import Ideal
    from repro.engine.rounds.mechanism import GridRounds
    from repro.engine.rounds.whole_steps import WholeSteps

    rounds = settings.rounds
    perf = settings.perf
    if isinstance(perf, Renewing):
        raise renewals_refused()
    if isinstance(perf, Slowed) and (rounds.ideal or rounds.whole_steps):
        reason = "ideal execution has no nodes" if rounds.ideal else "rounds count whole steps"
        raise ParamError(
            f"slowdown: {reason}, the same under any placement; use rules other than gavel, and "
            "leave out ideal and whole_steps"
        )
    if settings.failures is not None:
        check_failures(holdings, rounds)
    interval_blocks = holdings.intervals.blocks if settings.keep_intervals else None
    rates_from_speeds = speeds.rates_follow(perf)
    if rounds.ideal:
        if settings.overhead is not None:
            raise ParamError(
                "in ideal execution no job starts or stops, so no overhead can be charged; leave "
                "out the overhead, or choose rules without overheads"
            )
        return Ideal(
            table,
            speeds,
            policy,
            rounds,
            writes_holds=True,
            interval_blocks=interval_blocks,
            perf=None if rates_from_speeds else perf,
        )
    if rounds.whole_steps and settings.overhead is not None:
        raise ParamError(
            "overhead: rounds of whole steps charge the round setting preemption_overhead_s "
            "instead; set it (--set preemption_overhead_s=SECONDS) and leave out the overhead, or "
            "use rules other than gavel"
        )
    # rounds of whole steps use rates only to record intervals
    needs_no_perf = rates_from_speeds or (rounds.whole_steps and interval_blocks is None)
    mechanism = WholeSteps if rounds.whole_steps else GridRounds
    return mechanism(
        table,
        speeds,
        policy,
        rounds,
        seed=settings.seed,
        interval_blocks=interval_blocks,
        # A hold is an interval in which a job holds GPUs. Where nodes, rates or added processes
        # matter, the engine writes the holds, because only the engine knows these.
        writes_holds=needs_no_perf
        and holdings.gang_nodes.counts_only
        and not settings.added_processes,
    )
