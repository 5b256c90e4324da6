"""What a policy is: `Policy` decides, `Order` only ranks; both are frozen and stateless."""

from __future__ import annotations

import dataclasses
import keyword
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

from repro.base.errors import PolicyError, refuse_unknown
from repro.base.typing import Floats
from repro.model.baseline import Baseline
from repro.model.cluster.spec import Cluster
from repro.model.decision import Decision
from repro.model.families import explain
from repro.model.jobs import JobTable
from repro.model.performance import Overhead, Performance
from repro.model.records import Intervals
from repro.model.registry import Registry
from repro.model.rules import Completions
from repro.model.settings import check_given, check_settings
from repro.model.view import View

Key = Any
P = TypeVar("P", bound="Policy")
T = TypeVar("T")
#: What `register` takes: a class of policies or a key function.
D = TypeVar("D", bound=Callable[..., Any])

policies: Registry[type[Policy]] = Registry(
    "policy", "repro.policies", PolicyError, group="repro.policies", explain=explain
)


#: Compiled loops that simulate a whole run at nominal speed and write `JobTable.state`. Intervals
#: None: who held GPUs when is not recorded.
Play = Callable[[JobTable, Cluster, Intervals | None], None]


def register(name: str, needs: Iterable[str] = ()) -> Callable[[D], D]:
    """Return a decorator that registers a policy: a class, or a key function.

    Parameters
    ----------
    name : str
        What ``repro simulate --policy`` and parameter files call it.
    needs : iterable of str
        What a key function reads beyond the information-agnostic part of the view, such as
        ``"duration"``; a class says so in its own ``needs``.

    Returns
    -------
    callable
        Registers a class of policies, or a function of a view and a job: the key of an `Order`,
        smaller runs first. It returns what it is given.

    Examples
    --------
    >>> @register("newest")
    ... def newest(view, job):
    ...     return -view.submit(job)
    >>> from repro.testing import small_trace
    >>> from repro import simulate
    >>> simulate(small_trace(), "1x4", "newest").summary()["n_finished"]
    6
    """

    def keep(definition: D) -> D:
        cls: type[Policy]
        if not isinstance(definition, type):
            cls = _order_by(definition, frozenset(needs))
        elif needs:
            raise PolicyError(f"policy {name!r}: say what the class needs in its own `needs`")
        else:
            cls = definition
        cls.name = name
        policies.register(name)(cls)
        return definition

    return keep


def _order_by(key: Callable[[View, int], Key], needs: frozenset[str]) -> type[Order]:
    """Make the class of an `Order` from its key function."""
    members = {
        "__doc__": key.__doc__ or f"Order by `{key.__name__}`.",
        "__module__": key.__module__,
        "__qualname__": key.__qualname__,
        "needs": needs,
        "key": lambda policy, view, job: key(view, job),
        # the module has the function under this name, not the class
        "__reduce__": lambda policy: (make, (policy.name,)),
    }
    return dataclass(frozen=True)(type(key.__name__, (Order,), members))


@dataclass(frozen=True)
class Policy:
    """A scheduling policy: looks at a `View`, returns a `Decision`.

    Subclasses are frozen dataclasses whose fields are their parameters. A field whose default is
    None is filled from `rule_values`, so that one class serves the paper's rules and the rules of a
    public simulator.

    Examples
    --------
    >>> from repro.model.decision import RunSet
    >>> @dataclass(frozen=True)
    ... class Newest(Policy):
    ...     def decide(self, view):
    ...         return RunSet(sorted(view.jobs, key=view.submit, reverse=True))
    >>> from repro.testing import small_trace
    >>> from repro import simulate
    >>> simulate(small_trace(), "1x4", Newest()).summary()["n_finished"]
    6
    """

    name: ClassVar[str] = "unnamed"
    #: what `View` opens beyond the information-agnostic part
    needs: ClassVar[frozenset[str]] = frozenset()
    #: words that others use for it, under which ``--policy WORD`` lists it
    families: ClassVar[tuple[str, ...]] = ()
    #: placement used unless the caller names one
    placement: ClassVar[str] = "count"
    #: rules name -> values for fields left at None
    rule_values: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    #: parameters in seconds or GPU-seconds
    time_fields: ClassVar[tuple[str, ...]] = ()
    #: may give a job other than the GPUs it asked for
    elastic: ClassVar[bool] = False
    #: the policy that this one equals while none of the inputs named there is given
    baseline: ClassVar[Baseline | None] = None

    def __post_init__(self) -> None:
        check_settings(f"policy {self.name!r}:", self)

    def decide(self, view: View) -> Decision:
        """Return what every unfinished job holds until the next decision."""
        raise PolicyError(f"policy {self.name!r} defines neither `decide` nor `key`")

    def session(self, view: View) -> Callable[[View], Decision]:
        """Return the decision function of one run; a policy with memory makes a fresh one here."""
        return self.decide

    def player(self, cluster: Cluster) -> Play | None:
        """Return compiled loops that do what the engine would by `session`; None: there are none.

        They count only for the class that defines them, not for one that changes its decisions.
        """
        return None

    def performance(self) -> Performance | None:
        """Return the performance model to use where the caller names none."""
        return None

    def overhead(self) -> Overhead | None:
        """Return what starts cost where neither the caller nor the rules say."""
        return None

    @property
    def interval(self) -> float | None:
        """Decide only at multiples of this many seconds; None: at every event."""
        return None

    def completions(self) -> Completions:
        """When the engine notices completions; at once unless a policy overrides it."""
        return Completions()

    def under(self: P, rules: str) -> P:
        """Return a copy whose None fields hold the values of ``rules``."""
        values = self.rule_values.get(rules, self.rule_values.get("paper", {}))
        fill = {k: v for k, v in values.items() if getattr(self, k) is None}
        return dataclasses.replace(self, **fill) if fill else self


class FromSettings(Generic[T]):
    """A value of a policy class that an instance derives from its parameters.

    >>> class Sized(Policy):
    ...     gangs = True
    ...     elastic = FromSettings(False, lambda policy: not policy.gangs)
    >>> Sized.elastic, Sized().elastic
    (False, False)
    """

    def __init__(self, of_class: T, of_instance: Callable[[Any], T]) -> None:
        self.of_class = of_class
        self.of_instance = of_instance

    def __get__(self, policy: Policy | None, owner: type[Policy]) -> T:
        return self.of_class if policy is None else self.of_instance(policy)


def speaks_for(policy: Policy, name: str, others: Iterable[str]) -> bool:
    """Tell whether no subclass of the class that defines ``name`` defines one of the ``others``."""
    definer = {
        known: next(cls for cls in type(policy).__mro__ if known in vars(cls))
        for known in (name, *others)
    }
    return all(issubclass(definer[name], other) for other in definer.values())


class Selection(Protocol):
    """Which jobs run, best key first, brought up to date at every event."""

    @property
    def waits(self) -> bool:
        """Whether a job waits."""

    @property
    def running(self) -> Iterable[int]:
        """The jobs that hold GPUs."""

    def arrive(self, job: int, now: float) -> None:
        """Add a new job."""

    def finish(self, job: int) -> None:
        """Take a finished job out."""

    def move(self, job: int, now: float) -> None:
        """Read the key of a job again that jumped."""

    def select(self, now: float) -> tuple[list[int], list[int]]:
        """Return the jobs that lose and those that get their GPUs, in order of decision."""


class Steady(NamedTuple):
    """Numbers that give the keys of an `Order` while jobs run at their nominal speed.

    key = ``per_second`` * remaining time (s) + ``per_service`` * attained service (GPU-seconds), of
    all jobs or each; or, with ``limits``, first the number of limits of attained service that the
    job has crossed, then its first start. The last limit is infinity.
    """

    per_second: float | Floats = 0.0
    per_service: float | Floats = 0.0
    limits: tuple[float, ...] = ()


#: Makes the selection of a run.
Select = Callable[[JobTable, "Ordering", Cluster], Selection]


@dataclass(frozen=True)
class Order(Policy):
    """A policy that is only an ordering: the smallest key runs first, what does not fit is skipped.

    A key may change when the job starts, stops or is re-queued; in between it may drift
    linearly while the job runs (`slope`). Ties end with submission, then the order in the file.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class WidestFirst(Order):
    ...     def key(self, view, job):
    ...         return -view.gpus(job)
    >>> from repro.testing import small_trace
    >>> from repro import simulate
    >>> simulate(small_trace(), "1x4", WidestFirst()).summary()["n_finished"]
    6
    """

    #: a running job may be stopped for a better one
    preemptive: ClassVar[bool] = True
    #: the first job that does not fit blocks all behind it
    blocking: ClassVar[bool] = False

    def key(self, view: View, job: int) -> Key:
        """Return the key of ``job`` now, a number or a tuple of numbers; smaller runs first."""
        raise PolicyError(f"ordering policy {self.name!r} defines no `key`")

    def slope(self, view: View, job: int) -> float:
        """Return how fast the (numeric) key of ``job`` changes while it runs, per second."""
        return 0.0

    def quantum_s(self) -> float:
        """Return the seconds between decisions while jobs wait; infinity = at events only."""
        return math.inf

    def steady(self, view: View) -> Steady | None:
        """Return the numbers `key` follows, so that compiled loops need not ask; None: they ask.

        It counts only for the class that defines it, not for one that changes `key` or `ordering`.
        """
        return None

    def ordering(self, view: View) -> Ordering:
        """Return the state of one run; policies with queues override it."""
        return Ordering(self, view)


class Ordering:
    """One run of an `Order`: the hooks the engine calls. This base keeps no state."""

    def __init__(self, policy: Order, view: View) -> None:
        self.policy = policy
        self.view = view
        #: how jobs are selected if not incrementally; for keys that do not drift linearly
        self.selection: Select | None = None

    def key(self, job: int, now: float) -> Key:
        """Return the key of ``job``."""
        return self.policy.key(self.view, job)

    def slope(self, job: int) -> float:
        """Return the drift of the key while running, per second."""
        return self.policy.slope(self.view, job)

    def arrive(self, job: int, now: float) -> None:
        """React to an arrival."""

    def start(self, job: int, now: float) -> None:
        """React to a job that got GPUs."""

    def stop(self, job: int, now: float) -> None:
        """React to a job that lost its GPUs."""

    def finish(self, job: int, now: float) -> None:
        """React to a completion."""

    def moves(self, now: float) -> list[int]:
        """Return the jobs whose key jumps at this instant (demotions, promotions), in order."""
        return []

    def wake(self, now: float) -> float:
        """Return the next instant at which `moves` has something to say."""
        return math.inf


def spellings(cls: type[Policy]) -> list[str]:
    """Return the parameters of a policy as users write them: lambda, a word of Python, is lambda_.

    >>> "lambda" in spellings(policies["liquid"])
    True
    """
    return [field.name.rstrip("_") for field in dataclasses.fields(cls)]


def make(name: str, rules: str = "paper", **settings: Any) -> Policy:
    """Make a registered policy.

    Parameters
    ----------
    name : str
        Registered name.
    rules : str
        Rule set that fills parameters left unset.
    **settings
        Parameters of the policy.

    Raises
    ------
    PolicyError
        Unknown name.
    ParamError
        Unknown parameter, or a value the policy refuses.

    Examples
    --------
    >>> make("tiresias-l", thresholds=(3200.0,)).thresholds
    (3200.0,)
    """
    cls = policies[name]
    given = [key.rstrip("_") for key in settings]
    refuse_unknown(f"policy {name!r} has no parameter", given, spellings(cls))
    settings = {f"{key}_" if keyword.iskeyword(key) else key: settings[key] for key in settings}
    check_given(f"policy {name!r}:", cls, settings)
    return cls(**settings).under(rules)
