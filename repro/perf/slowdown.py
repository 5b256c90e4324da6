"""Slow-down of gangs that span more nodes or racks than they need, on top of any other model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from repro.base.errors import ParamError, TraceError, near
from repro.base.typing import Ints
from repro.files.tables import ModelTable
from repro.model.cluster.spec import Cluster
from repro.model.decision import Run
from repro.model.jobs import JobTable
from repro.model.performance import (
    Paced,
    Performance,
    Renewing,
    paces_of,
    rates_of,
    renewal_of,
)
from repro.model.records import Nodes
from repro.perf.model_names import with_further_names

#: Largest accepted factor.
MAX_FACTOR = 1000.0
LEVELS = ("node", "rack")
ACCEPTED = (
    "give a factor such as 1.3 (a gang on more nodes than it needs takes 1.3 times as long), "
    "factors by level such as node=1.2,rack=1.5, or tiresias (measured by model)"
)
_TIRESIAS = ModelTable("tiresias_models.csv", ("model", "random_speed"))


@dataclass(frozen=True)
class Slowdown:
    """Factors by which a gang takes longer if it spans more nodes, or more racks, than it needs.

    A gang needs the fewest nodes (racks) that hold it on the empty cluster. Only GPUs of its type
    count. If it spans more of both, the larger factor counts.

    Parameters
    ----------
    node, rack : float
        Factor for a gang on more nodes, or on more racks, than it needs; 1 or more.
    speed_by_model : mapping of str to float
        Rate of a gang on more nodes than it needs, relative to a consolidated one, by model. It
        replaces ``node``. A model that is not listed has rate 1. Case does not matter.

    Raises
    ------
    ParamError
        If a factor is below 1, or a rate is not positive or out of bounds.

    Examples
    --------
    >>> Slowdown.of("node=1.2,rack=1.5")
    Slowdown(node=1.2, rack=1.5, speed_by_model={})
    """

    node: float = 1.0
    rack: float = 1.0
    speed_by_model: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in LEVELS:
            factor = getattr(self, name)
            is_number = isinstance(factor, int | float) and not isinstance(factor, bool)
            if not is_number or not 1 <= factor <= MAX_FACTOR:
                raise ParamError(
                    f"slowdown: {name} is {factor!r:.40}; give a factor from 1 to {MAX_FACTOR:g}"
                )
        for model, speed in self.speed_by_model.items():
            if not 1 / MAX_FACTOR <= speed <= MAX_FACTOR:
                raise ParamError(
                    f"slowdown: the rate of {model!r} is {speed!r:.40}; give a number from "
                    f"{1 / MAX_FACTOR:g} to {MAX_FACTOR:g}"
                )
        lower = {model.lower(): speed for model, speed in self.speed_by_model.items()}
        object.__setattr__(self, "speed_by_model", lower)

    @classmethod
    def of(cls, value: float | str | Slowdown) -> Slowdown:
        """Slow-down of ``value``: a factor, text as on the command line, or a Slowdown."""
        if isinstance(value, Slowdown):
            return value
        if not isinstance(value, str):
            return cls(node=value)
        text = value.strip()
        if text == "tiresias":
            return tiresias_slowdown()
        if "=" not in text:
            return cls(node=_number(text, text))
        factors: dict[str, Any] = {}
        for word in text.split(","):
            name, _, number = word.partition("=")
            name = name.strip()
            if name not in LEVELS or name in factors:
                is_repeated = name in factors
                reason = "is given twice" if is_repeated else f"is no level{near(name, LEVELS)}"
                raise ParamError(f"slowdown {text!r:.60}: {name!r:.20} {reason}; {ACCEPTED}")
            factors[name] = _number(number.strip(), text)
        return cls(**factors)

    def speed(self, model: object, *, more_nodes: bool, more_racks: bool) -> float:
        """Rate of a gang relative to a consolidated one.

        ``model`` is the name of the model. ``more_nodes`` and ``more_racks``: the gang spans more
        nodes, or more racks, than it needs.
        """
        speed = 1.0
        if more_nodes:
            speed = 1.0 / self.node
            if self.speed_by_model:
                # a gap in the column is a NaN
                name = model.lower() if isinstance(model, str) else ""
                speed = self.speed_by_model.get(name, 1.0)
        return min(speed, 1.0 / self.rack) if more_racks and self.rack > 1 else speed


def tiresias_slowdown() -> Slowdown:
    """Rates of Tiresias' ten models under random placement, relative to consolidated gangs.

    Models with a dominant tensor (VGG, AlexNet) run at 0.72 to 0.80 of their speed, the others at
    1.02 to 1.08. The paper measured 8 workers; we assume the same rate for other gang sizes.
    Tiresias, NSDI 2019, section 2.2, Figure 3.
    """
    speeds = with_further_names("tiresias", _TIRESIAS.column("random_speed"))
    return Slowdown(speed_by_model=speeds)


def _number(text: str, whole_text: str) -> float:
    """Number in a part of the text of a slow-down; ParamError otherwise."""
    try:
        return float(text)
    except ValueError:
        raise ParamError(
            f"slowdown {whole_text!r:.60}: {text!r:.20} is no number; {ACCEPTED}"
        ) from None


class Slowed:
    """A performance model: the rates of another model, times those of a `Slowdown`.

    Made by `slowed`.
    """

    def __init__(self, base: Performance | None, slowdown: Slowdown, cluster: Cluster) -> None:
        #: model of consolidated gangs; None: nominal speed
        self.base: Any = base
        self.slowdown = slowdown
        self.cluster = cluster
        #: number of starts of gangs whose number of GPUs is not whole; such a gang has no nodes and
        #: is not slowed down
        self.starts_without_nodes = 0
        self._rack = cluster.racks.rack.tolist()
        self._capacities_by_type: dict[str | None, tuple[Ints, Ints]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return slowed, (self.base, self.slowdown, self.cluster)

    def __repr__(self) -> str:
        return f"slowed({self.base!r}, {self.slowdown!r})"

    def rates(self, table: JobTable, run: Run, nodes: Nodes) -> Sequence[float]:
        """Rate of each member of a gang."""
        if self.base is not None:
            rates = rates_of(self.base, table, run, nodes)
        elif len(run.jobs) == 1:
            rates = (run.gpus / table.gpus[run.jobs[0]],)
        else:
            raise ParamError(
                "a slow-down has no rates of grouped jobs; give a performance model (perf=...) "
                "that has them"
            )
        speeds = self._speeds(table, run, nodes)
        return [rate * speed for rate, speed in zip(rates, speeds, strict=True)]

    def needed(self, gpus: float, gpu_type: str | None) -> tuple[int, int]:
        """Fewest nodes and fewest racks of the empty cluster that hold a gang."""
        if gpu_type not in self._capacities_by_type:
            self._capacities_by_type[gpu_type] = self._capacities(gpu_type)
        by_nodes, by_racks = self._capacities_by_type[gpu_type]
        return (
            1 + int(np.searchsorted(by_nodes, gpus)),
            1 + int(np.searchsorted(by_racks, gpus)),
        )

    def _capacities(self, gpu_type: str | None) -> tuple[Ints, Ints]:
        """GPUs of a type that the 1, 2, … largest nodes have together; the same for racks."""
        nodes = self.cluster.nodes
        gpus = np.array([n.gpus if gpu_type in (None, n.gpu_type) else 0 for n in nodes], np.int64)
        in_racks = np.bincount(self._rack, gpus).astype(np.int64)
        by_nodes, by_racks = (np.cumsum(np.sort(part)[::-1]) for part in (gpus, in_racks))
        return by_nodes, by_racks

    def _speeds(self, table: JobTable, run: Run, nodes: Nodes) -> list[float]:
        """Rate of each member on its nodes, relative to a consolidated gang."""
        if not nodes:
            # the members of a gang that gets new rates are already running
            starts = not any(table.running[job] for job in run.jobs)
            self.starts_without_nodes += starts and run.gpus != int(run.gpus)
            return [1.0] * len(run.jobs)
        needed_nodes, needed_racks = self.needed(run.gpus, run.gpu_type)
        more_nodes = len(nodes) > needed_nodes
        more_racks = len({self._rack[node] for node, _ in nodes}) > needed_racks
        slowdown = self.slowdown
        models: Sequence[object] = table.models if slowdown.speed_by_model else ()
        return [
            slowdown.speed(
                models[job] if models else None, more_nodes=more_nodes, more_racks=more_racks
            )
            for job in run.jobs
        ]


class _SlowedPaces(Slowed):
    """A slowed model with exact times of a unit of work."""

    def paces(self, table: JobTable, run: Run, nodes: Nodes) -> Sequence[float]:
        """Seconds of a unit of work for each member of a gang."""
        seconds = paces_of(self.base, table, run, nodes)
        speeds = self._speeds(table, run, nodes)
        return [pace / speed for pace, speed in zip(seconds, speeds, strict=True)]


class _SlowedRenewals(Slowed):
    """A slowed model whose rates change while a gang runs."""

    def renew(self, table: JobTable, run: Run, nodes: Nodes) -> float:
        """Time until the rates of a gang are computed again (s of progress)."""
        # The base model gives the time at its own rates. A slowed member needs longer for the same
        # work. The time is divided by the smallest relative rate, so that it suffices for every
        # member.
        seconds = renewal_of(self.base, table, run, nodes)
        return seconds / min(self._speeds(table, run, nodes))


class _SlowedPacesAndRenewals(_SlowedPaces, _SlowedRenewals):
    """A slowed model with exact times and changing rates."""


def slowed(base: Performance | None, slowdown: Slowdown, cluster: Cluster) -> Slowed:
    """Performance model of a cluster: a base model whose spread gangs take longer.

    Parameters
    ----------
    base : Performance or None
        Model of consolidated gangs, such as a throughput table, speed-up curves or interleaving.
        None: nominal speed.
    slowdown : Slowdown
        Factors.
    cluster : Cluster
        Cluster of the simulation.

    Returns
    -------
    Slowed
        Performance model for `repro.simulate` with rates of ``base`` times those of ``slowdown``.

    Examples
    --------
    >>> model = slowed(None, Slowdown(node=1.5), Cluster.parse("2x4"))
    >>> model.needed(6, None)
    (2, 1)
    """
    is_paced = isinstance(base, Paced)
    renews = isinstance(base, Renewing)
    kind: type[Slowed] = Slowed
    if is_paced and renews:
        kind = _SlowedPacesAndRenewals
    elif is_paced:
        kind = _SlowedPaces
    elif renews:
        kind = _SlowedRenewals
    return kind(base, slowdown, cluster)


def base_of(perf: Any) -> Any:
    """Model under a slow-down, or the model itself."""
    return perf.base if isinstance(perf, Slowed) else perf


def note_on_models(slowdown: Slowdown, models: Sequence[object]) -> list[str]:
    """Note on jobs whose model has no measured slow-down; TraceError if no job has one."""
    if not slowdown.speed_by_model:
        return []
    names = [model.lower() if isinstance(model, str) else "" for model in models]
    unknown = sorted({name for name in names if name not in slowdown.speed_by_model})
    if not unknown:
        return []
    count = sum(name not in slowdown.speed_by_model for name in names)
    known = ", ".join(slowdown.speed_by_model)
    if count == len(names):
        raise TraceError(
            f"slowdown: no job of the trace has a model with a measured slow-down ({known}); give "
            "such models in the column model, or a factor such as 1.3"
        )
    shown = ", ".join(name or "no model" for name in unknown[:6])
    more = f" and {len(unknown) - 6} more" if len(unknown) > 6 else ""
    return [
        f"slowdown: {count:,} of {len(names):,} jobs have a model without a measured slow-down "
        f"({shown}{more}) and run at the same speed on any nodes"
    ]


def note_on_levels(slowdown: Slowdown, cluster: Cluster) -> list[str]:
    """Notes on factors that have no effect on a cluster of one node or one rack."""
    levels = []
    if cluster.num_nodes == 1 and (slowdown.node > 1 or slowdown.speed_by_model):
        levels.append("node")
    if len(np.unique(cluster.racks.rack)) == 1 and slowdown.rack > 1:
        levels.append("rack")
    return [
        f"slowdown: {cluster} has one {level}, so no gang spans more {level}s than it needs"
        for level in levels
    ]


__all__ = ["Slowdown", "base_of", "note_on_levels", "note_on_models", "slowed", "tiresias_slowdown"]
