"""Records of a finished simulation."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from repro.base.typing import Flags, Floats, Ints
from repro.engine.setup import Setup
from repro.model.records import Result, collect


class AddedRecords(NamedTuple):
    """Records of a simulation in one compiled call, beyond the job table and the intervals."""

    #: more columns of the job records; their rows are in order of submission
    columns: Mapping[str, Floats | Ints | Flags] = {}
    #: GPU-seconds held by all jobs; None: they follow from the intervals
    held_gpu_s: float | None = None


def records_of(setup: Setup, added: AddedRecords, **meta: Any) -> Result:
    """Collect the records of a finished simulation; ``meta`` has more entries of `Result.meta`."""
    table = setup.table
    holdings = setup.holdings
    run_meta = {
        "policy": setup.policy.name,
        "settings": repr(setup.policy),
        "trace": table.frame.attrs.get("name", "trace"),
        "cluster": str(setup.cluster),
        "placement": repr(setup.settings.placement),
        "num_gpus": setup.cluster.num_gpus,
        "overhead_s": holdings.overhead_s,
        "held_s": added.held_gpu_s,
    }
    columns = dict(added.columns)
    rounds = setup.driver.rounds
    if rounds is not None and rounds.settings.gang_tries:
        columns["given_up"] = rounds.constants.lost_rounds >= rounds.settings.gang_tries
    return collect(table, holdings.intervals, run_meta | meta, columns)
