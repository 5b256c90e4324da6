"""What a placement rule is (`Placement`) and how it acts on one cluster (`Placer`)."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from repro.base.errors import PolicyError, refuse_unknown
from repro.model.cluster.spec import Cluster
from repro.model.registry import Registry
from repro.model.settings import check_settings

Allocation = tuple[tuple[int, int], ...]


class Placer(ABC):
    """A placement rule at work on one cluster, all idle at first; holds which GPUs are taken."""

    #: False when the rule only counts GPUs and allocations name no nodes.
    tracks_nodes: ClassVar[bool] = True
    #: True when policies name the node of each task.
    takes_wishes: ClassVar[bool] = False
    #: True when the model of a job decides where it goes.
    reads_model: bool = False

    def __init__(self, cluster: Cluster) -> None:
        #: Idle GPUs, and GPUs of the cluster.
        self.free = self.num_gpus = cluster.num_gpus
        #: GPUs and places of each job
        self._held: dict[int, tuple[int, Allocation]] = {}

    def fits(self, gpus: int) -> bool:
        """Tell whether a gang of this size could be placed now by the rule itself."""
        return gpus <= self.free

    def possible(self, gpus: int) -> bool:
        """Tell whether a gang of this size could be placed by the rule on the empty cluster."""
        return gpus <= self.num_gpus

    def take(self, job: int, gpus: int, model: str | None = None) -> Allocation:
        """Give a gang its GPUs: (node index, GPUs there) by ascending node; empty if uncounted.

        PolicyError if fewer GPUs are idle, the job already holds some, or the rule has no place.
        """
        if gpus > self.free or gpus < 1 or job in self._held:
            raise self._refusal(job, gpus)
        allocation = self._place(job, gpus, model)
        if allocation is None:
            raise PolicyError(
                f"job {job}: no place for {gpus} GPUs under {type(self).__name__} although "
                f"{self.free} are idle; ask fits() first or allow a fallback"
            )
        self._held[job] = gpus, allocation
        self.free -= gpus
        return allocation

    def claim(self, job: int, tasks: tuple[int, ...]) -> Allocation:
        """Give a job one GPU per task, on the nodes its policy wishes for (``wished`` only)."""
        allocation = self._wished(job, tasks)
        self._held[job] = len(tasks), allocation
        self.free -= len(tasks)
        return allocation

    def _wished(self, job: int, tasks: tuple[int, ...]) -> Allocation:
        """Mark the GPUs that tasks wish for."""
        raise PolicyError(
            f"job {job} wishes for nodes {tasks} but {type(self).__name__} chooses nodes itself; "
            f"use placement 'wished'"
        )

    def give_back(self, job: int) -> None:
        """Return all GPUs of a job; PolicyError if it holds none."""
        if job not in self._held:
            raise PolicyError(f"job {job} holds no GPUs to give back")
        gpus, allocation = self._held.pop(job)
        self.free += gpus
        self._release(job, allocation)

    def taken(self) -> Iterator[tuple[int, int]]:
        """Yield (node index, GPUs there) of everything that jobs hold."""
        return (part for _, allocation in self._held.values() for part in allocation)

    @abstractmethod
    def _place(self, job: int, gpus: int, model: str | None) -> Allocation | None:
        """Choose and mark GPUs; ``gpus`` is between 1 and ``self.free``. None: no place."""

    @abstractmethod
    def _release(self, job: int, allocation: Allocation) -> None:
        """Mark the GPUs of an allocation idle again."""

    def _refusal(self, job: int, gpus: int) -> PolicyError:
        if gpus < 1:
            return PolicyError(f"job {job} asks for {gpus} GPUs; a gang has at least 1")
        if job in self._held:
            return PolicyError(f"job {job} already holds GPUs; give them back before taking more")
        return PolicyError(f"job {job} was given {gpus} GPUs but only {self.free} are idle")


@dataclass(frozen=True)
class Placement(ABC):
    """A placement rule and its settings; a frozen dataclass that checks and stores them."""

    def __post_init__(self) -> None:
        check_settings(f"placement {type(self).__name__.lower()!r}:", self)

    @abstractmethod
    def bind(self, cluster: Cluster, rng: np.random.Generator) -> Placer:
        """Set the rule to work on an empty cluster; ParamError if a setting is out of range."""


placements: Registry[type[Placement]] = Registry(
    "placement", "repro.placement", group="repro.placements"
)
register = placements.register


def make(name: str, **settings: Any) -> Placement:
    """Make a placement rule by its registered name.

    Parameters
    ----------
    name : str
        Such as ``yarn``, ``count``, ``random``, ``skew``, ``ilp``.
    **settings
        Fields of the rule's dataclass; a ParamError names one that is unknown.

    Examples
    --------
    >>> make("yarn")
    Yarn(fallback='least-fragmented')
    """
    rule = placements[name]
    known = [field.name for field in fields(rule)]
    refuse_unknown(f"placement {name!r} has no setting", settings, known)
    return rule(**settings)
