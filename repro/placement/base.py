"""Base classes of a placement rule with its settings (`Placement`) and on a cluster (`Placer`)."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

import numpy as np

from repro.base.errors import ParamError, PolicyError, refuse_unknown
from repro.base.outside import outside_classes, place_note, refuse_failure, shown_call
from repro.files.checks import shown
from repro.model.cluster.spec import Cluster
from repro.model.methods import check_methods
from repro.model.registry import Registry, base_fault
from repro.model.settings import check_settings

#: GPUs of a gang: (node index, GPUs there), by ascending node. Empty if the rule only counts GPUs.
Allocation = tuple[tuple[int, int], ...]


#: Base of placements, for messages.
_BASE = "repro.placement.Placement"


class Placer(ABC):
    """State of a placement rule on one cluster: the allocation of each job, none at first.

    In its methods, ``job`` is the row number of a job, ``gpus`` the size of its gang, ``model`` the
    model that the job trains, and ``tasks`` the node of each task. An allocation is a tuple of
    (node index, GPUs there), empty if the rule only counts GPUs.

    Parameters
    ----------
    cluster : Cluster
        Cluster on which gangs are placed; all its GPUs are idle at first.

    Examples
    --------
    >>> placer = make("yarn").bind(Cluster.parse("2x4"), np.random.default_rng(0))
    >>> placer.take(0, 3), placer.take(1, 4), placer.free
    (((0, 3),), ((1, 4),), 1)
    >>> placer.give_back(0)
    >>> placer.fits(4), placer.possible(9)
    (True, False)
    """

    #: Whether allocations name nodes; else the rule only counts GPUs.
    tracks_nodes: ClassVar[bool] = True
    #: Whether policies name the node of each task (`Run.tasks`).
    takes_wishes: ClassVar[bool] = False
    #: Whether the placement of a job depends on its model.
    reads_model: bool = False

    def __init__(self, cluster: Cluster) -> None:
        #: GPUs of the cluster.
        self.num_gpus = cluster.num_gpus
        #: Number of each node in messages. It differs from the index on the nodes of one GPU type.
        self.node_numbers: Sequence[int] = range(cluster.num_nodes)
        #: Id of each job in messages; empty: messages have row numbers.
        self._job_ids: Sequence[object] = ()
        #: Idle GPUs.
        self.free = cluster.num_gpus
        #: GPUs and allocation of each job.
        self._allocated: dict[int, tuple[int, Allocation]] = {}

    def name_jobs(self, ids: Sequence[object]) -> None:
        """Name jobs by their ids in messages; ``ids`` has the id of each row number."""
        self._job_ids = ids

    def _name(self, job: int) -> str:
        """Name of a job in messages."""
        return f"job {self._job_ids[job]!r}" if self._job_ids else f"job {job}"

    def fits(self, gpus: int) -> bool:
        """Whether the rule itself, without a fallback, can place a gang of this size now.

        Only policies with ``preemptive = False`` call this. Other policies start every gang for
        which enough GPUs are idle, and the rule has to place it.
        """
        return gpus <= self.free

    def possible(self, gpus: int) -> bool:
        """Whether the rule can place a gang of this size on the empty cluster."""
        return gpus <= self.num_gpus

    def take(self, job: int, gpus: int, model: str | None = None) -> Allocation:
        """Allocate the GPUs of a gang. The allocation is empty if the rule only counts GPUs.

        PolicyError if ``gpus`` is below 1 or above the number of idle GPUs, if the job already
        holds GPUs, or if the rule cannot place the gang.
        """
        if gpus > self.free or gpus < 1 or job in self._allocated:
            raise self._refusal(job, gpus)
        try:
            allocation = self._place(job, gpus, model)
        except Exception as error:
            self._refuse_failure(error, "_place", job)
            raise
        if allocation is None:
            raise PolicyError(
                f"{self._name(job)}: no nodes for {gpus} GPUs under {type(self).__name__} although "
                f"{self.free} are idle; set fallback=least-fragmented if the placement has it, or "
                f"use a policy that tests whether a gang fits, such as yarn-cs"
            )
        self._allocated[job] = gpus, allocation
        self.free -= gpus
        return allocation

    def claim(self, job: int, tasks: tuple[int, ...]) -> Allocation:
        """Allocate one GPU per task on the nodes that the policy names (``wished`` only)."""
        allocation = self._wished(job, tasks)
        self._allocated[job] = len(tasks), allocation
        self.free -= len(tasks)
        return allocation

    def _wished(self, job: int, tasks: tuple[int, ...]) -> Allocation:
        """Mark one GPU per task as allocated, on the nodes that the policy names."""
        raise PolicyError(
            f"{self._name(job)} names nodes but {type(self).__name__} chooses nodes itself; use "
            f"placement 'wished'"
        )

    def give_back(self, job: int) -> None:
        """Free all GPUs of a job; PolicyError if it holds none."""
        if job not in self._allocated:
            raise PolicyError(f"{self._name(job)} holds no GPUs to give back")
        gpus, allocation = self._allocated.pop(job)
        self.free += gpus
        try:
            self._release(job, allocation)
        except Exception as error:
            self._refuse_failure(error, "_release", job)
            raise

    @abstractmethod
    def _place(self, job: int, gpus: int, model: str | None) -> Allocation | None:
        """Choose ``gpus`` idle GPUs and mark them as allocated. None if the rule cannot."""

    @abstractmethod
    def _release(self, job: int, allocation: Allocation) -> None:
        """Mark the GPUs of an allocation as idle."""

    def _refuse_failure(self, error: Exception, method: str, job: int) -> None:
        """Raise PolicyError of one line for an exception in a placement rule of a user."""
        subject = f"placement {type(self).__name__}, {self._name(job)}"
        refuse_failure(error, self, method, subject, PolicyError)

    def _refusal(self, job: int, gpus: int) -> PolicyError:
        """Error for a gang that cannot be allocated."""
        if gpus < 1:
            return PolicyError(f"{self._name(job)} asks for {gpus} GPUs; a gang has at least 1")
        if job in self._allocated:
            return PolicyError(
                f"{self._name(job)} already holds GPUs; give them back before taking more"
            )
        return PolicyError(f"{self._name(job)} was given {gpus} GPUs but only {self.free} are idle")


@dataclass(frozen=True)
class Placement(ABC):
    """A placement rule and its settings. Rules are frozen dataclasses that check their settings.

    `repro.placement.make` makes a rule by name. In ``bind``, ``cluster`` is the `Cluster` of a run,
    and ``rng`` a numpy generator for random choices.

    Raises
    ------
    ParamError
        If a setting has a value outside its bounds.

    Examples
    --------
    >>> rule = make("random")
    >>> isinstance(rule, Placement), rule.bind(Cluster.parse("2x4"), np.random.default_rng(0)).free
    (True, 8)
    """

    def __post_init__(self) -> None:
        check_settings(f"placement {type(self).__name__.lower()!r}:", self)

    @abstractmethod
    def bind(self, cluster: Cluster, rng: np.random.Generator) -> Placer:
        """Make a placer on an empty cluster."""


def are_idle(allocation: object, gpus: int, idle: Sequence[int]) -> bool:
    """Whether an allocation is pairs (node, GPUs there) with ``gpus`` idle GPUs, each node once.

    ``idle`` has the idle GPUs of every node.
    """
    if not isinstance(allocation, tuple):
        return False
    total = 0
    try:
        for node, count in allocation:
            has_room = 0 <= node < len(idle) and 0 < count <= idle[node]
            if not has_room or count != int(count):
                return False
            total += count
        names_each_once = len(dict(allocation)) == len(allocation)
    except (TypeError, ValueError):
        # a placement of the caller may return anything
        return False
    return names_each_once and total == gpus


def rule_name(placer: Placer) -> str:
    """Name of a placement rule for messages, from the class of its placer."""
    return type(placer).__name__.removesuffix("Placer").lower()


def wrong_nodes(
    placer: Placer, job_name: str, gpus: int, allocation: object, where: str = ""
) -> PolicyError:
    """Error for an allocation that is not valid. ``where`` says which nodes the placer has."""
    return PolicyError(
        f"placement {rule_name(placer)}: the nodes of {job_name} are {shown(repr(allocation))}; "
        f"give a tuple of (node, GPUs there) with {gpus} idle GPUs in all, each node once{where}"
    )


def _check_rule(name: str, cls: type[Placement]) -> None:
    """Raise ParamError if what is registered is no class of placements, or has no `bind`."""
    if not isinstance(cls, type):
        raise ParamError(
            f"placement {name!r}: {cls!r:.60} is no class; register a class derived from {_BASE}"
        )
    if not issubclass(cls, Placement):
        raise ParamError(base_fault("placement", name, cls, _BASE))
    if inspect.isabstract(cls):
        raise ParamError(
            f"placement {name!r}: the class {cls.__name__}{place_note(cls)} has no method `bind`; "
            f"define {shown_call('bind', Placement.bind)}"
        )


placements: Registry[type[Placement]] = Registry(
    "placement", "repro.placement", group="repro.placements", check=_check_rule
)
register = placements.register


def bound(placement: Placement, cluster: Cluster, rng: np.random.Generator) -> Placer:
    """Placer of a rule on a cluster, checked.

    Raises
    ------
    PolicyError
        If `Placement.bind` of a user fails or returns no `Placer`, if a method of the placer takes
        other arguments, or if the placer was made without the initializer of `Placer`.
    """
    subject = f"placement {type(placement).__name__}"
    try:
        placer = placement.bind(cluster, rng)
    except Exception as error:
        refuse_failure(error, placement, "bind", subject, PolicyError)
        raise
    if not isinstance(placer, Placer):
        note = place_note(type(placement).bind)
        raise PolicyError(f"{subject}: `bind` returned {placer!r:.60}{note}; return a Placer")
    cls = type(placer)
    check_methods(cls, f"{subject}, {cls.__name__}")
    if not hasattr(placer, "_allocated"):
        note = place_note(cls.__init__)
        raise PolicyError(
            f"{subject}: `__init__` of {cls.__name__}{note} does not call the initializer of "
            f"Placer; begin it with super().__init__(cluster)"
        )
    return placer


def answer(placer: Placer, method: Literal["fits", "possible"], gpus: int) -> bool:
    """Answer of `Placer.fits` or `Placer.possible` for a size of gangs, checked.

    Raises
    ------
    PolicyError
        If the method of a user fails, or returns neither True nor False.
    """
    subject = f"placement {type(placer).__name__}"
    try:
        is_so = getattr(placer, method)(gpus)
    except Exception as error:
        refuse_failure(error, placer, method, subject, PolicyError)
        raise
    if not isinstance(is_so, bool | np.bool_) and outside_classes(type(placer)):
        note = place_note(getattr(placer, method))
        raise PolicyError(
            f"{subject}: `{method}` returned {is_so!r:.60}{note}; return True or False"
        )
    return bool(is_so)


def make(name: str, **settings: Any) -> Placement:
    """Make a placement rule by its registered name.

    Parameters
    ----------
    name : str
        Such as ``yarn``, ``count``, ``random``, ``skew``, ``ilp``, ``liquid``.
    **settings
        Settings of the rule, the fields of its dataclass.

    Returns
    -------
    Placement
        The rule; `Placement.bind` makes its state on a cluster.

    Raises
    ------
    ParamError
        If the rule or a setting is unknown, or a setting has a value outside its bounds.

    Examples
    --------
    >>> make("yarn")
    Yarn(fallback='least-fragmented')
    """
    rule = placements[name]
    # ``lambda`` is a keyword of Python, so its field is ``lambda_``
    field_of = {field.name.rstrip("_"): field.name for field in fields(rule)}
    named = {setting.rstrip("_"): value for setting, value in settings.items()}
    refuse_unknown(f"placement {name!r} has no setting", named, field_of)
    return rule(**{field_of[setting]: value for setting, value in named.items()})
