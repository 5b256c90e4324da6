"""The round mechanism for a policy that has returned shares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from repro.base.errors import ParamError
from repro.engine.holdings import Holdings
from repro.engine.renewals import renewals_refused
from repro.engine.run_settings import RunSettings
from repro.model.jobs import JobTable
from repro.model.performance import Renewing
from repro.model.policy import Policy
from repro.model.speeds import Speeds

if TYPE_CHECKING:
    from repro.engine.rounds.mechanism import RoundMechanism


def make_rounds(
    table: JobTable, policy: Policy, speeds: Speeds, holdings: Holdings, settings: RunSettings
) -> RoundMechanism:
    """Make the round mechanism of a run: rounds on a grid, of whole steps, or ideal execution.

    Parameters
    ----------
    table : JobTable
        Jobs of the run.
    policy : Policy
        A policy that returns shares.
    speeds : Speeds
        Steps per second by GPU type.
    holdings : Holdings
        Jobs that hold GPUs; its record of intervals is shared.
    settings : RunSettings
        Options of the run.

    Raises
    ------
    ParamError
        If an option does not go with rounds.
    """
    if settings.interval is not None:
        raise ParamError(
            f"interval is {settings.interval:g} s, but policy {policy.name!r} returns shares, "
            f"whose rounds have a length of their own; set round_s={settings.interval:g} instead"
        )
    # compiled loops take longer to import than most runs without rounds
    from repro.engine.rounds.ideal import Ideal
    from repro.engine.rounds.mechanism import GridRounds
    from repro.engine.rounds.whole_steps import WholeSteps

    rounds = settings.rounds
    perf = settings.perf
    if isinstance(perf, Renewing):
        raise renewals_refused()
    interval_blocks = holdings.intervals.blocks if settings.keep_intervals else None
    knows_rates = speeds.determine_rates(perf)
    if rounds.ideal:
        if settings.overhead is not None:
            raise ParamError(
                "in ideal execution no job starts or stops, so no overhead can be paid; leave "
                "out the overhead, or choose rules without one"
            )
        return Ideal(
            table,
            speeds,
            policy,
            rounds,
            writes_holds=True,
            interval_blocks=interval_blocks,
            perf=None if knows_rates else perf,
        )
    # without intervals, whole steps need no rates
    knows_rates = knows_rates or (rounds.whole_steps and interval_blocks is None)
    return (WholeSteps if rounds.whole_steps else GridRounds)(
        table,
        speeds,
        policy,
        rounds,
        seed=settings.seed,
        interval_blocks=interval_blocks,
        writes_holds=knows_rates and holdings.gangs.counts_only and not settings.processes,
    )
