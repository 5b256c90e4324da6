"""Bases of policies: `Policy` decides, `Order` ranks jobs. Both are frozen and stateless."""

from __future__ import annotations

import dataclasses
import functools
import keyword
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

from repro.base.errors import ParamError, PolicyError, refuse_unknown
from repro.base.outside import takes
from repro.base.typing import Floats, Ints
from repro.model.baseline import Baseline
from repro.model.cluster.spec import Cluster
from repro.model.decision import Decision
from repro.model.families import ALIASES, explain
from repro.model.jobs import JobTable
from repro.model.methods import check_methods, wrong_parameters
from repro.model.performance import Overhead, Performance
from repro.model.records import Intervals
from repro.model.registry import Registry, base_fault
from repro.model.rules import Completions, rules_named
from repro.model.settings import check_settings, check_values
from repro.model.view import View

Key = Any
P = TypeVar("P", bound="Policy")
T = TypeVar("T")
#: Argument of `register`: a class of policies or a key function.
Definition = TypeVar("Definition", bound=Callable[..., Any])

policies: Registry[type[Policy]] = Registry(
    "policy",
    "repro.policies",
    PolicyError,
    group="repro.policies",
    explain=explain,
    aliases=ALIASES,
    listing="`repro policies` lists all",
)

#: Compiled functions that simulate a whole run at nominal speed (durations as in the trace) and
#: write `JobTable.state`. Without `Intervals` they record no intervals.
CompiledRun = Callable[[JobTable, Cluster, Intervals | None], None]


def register(name: str, needs: Iterable[str] = ()) -> Callable[[Definition], Definition]:
    """Register a policy, as a decorator of a class or of a key function.

    Parameters
    ----------
    name : str
        Name for ``repro simulate --policy`` and for parameter files.
    needs : iterable of str
        Inputs that a key function reads beyond the information-agnostic part of the view, such as
        ``"duration"``. A class declares them in its own ``needs``.

    Returns
    -------
    callable
        Registers its argument and returns it unchanged. The argument is a class of policies, or a
        function of a view and a job. Such a function is the key of an `Order`, and the smallest key
        runs first.

    Raises
    ------
    PolicyError
        If another policy has the name, or the name has spaces or the characters ``,:=``. If
        ``needs`` is a text, or is passed for a class. If a class does not derive from `Policy`, or
        a key function does not take a view and a job.

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
    register_class = policies.register(name)
    if isinstance(needs, str):
        raise PolicyError(f"policy {name!r}: needs is {needs!r}; give a set, {{{needs!r}}}")

    def keep(definition: Definition) -> Definition:
        cls: type[Policy]
        if not isinstance(definition, type):
            if not callable(definition):
                raise PolicyError(
                    f"policy {name!r}: {definition!r:.60} is neither a class nor a function; "
                    f"register a class of policies, or a key function of a view and a job"
                )
            if not takes(definition, 2):
                function = getattr(definition, "__name__", "key")
                raise wrong_parameters(
                    f"policy {name!r}", function, definition, f"{function}(view, job)"
                )
            cls = _order_by(definition, frozenset(needs))
        elif needs:
            raise PolicyError(f"policy {name!r}: say what the class needs in its own `needs`")
        elif not issubclass(definition, Policy):
            bases = "repro.Order, Policy, Grouped, TypedShares or Elastic"
            raise PolicyError(base_fault("policy", name, definition, bases))
        else:
            cls = definition
        cls.name = name
        register_class(cls)
        return definition

    return keep


def _order_by(key: Callable[[View, int], Key], needs: frozenset[str]) -> type[Order]:
    """Class of an `Order` with this key function."""

    def reduce(policy: Order) -> tuple[Any, ...]:
        # Class and key function have the same name. Pickle looks this name up in the module and
        # finds the key function, not the class. So the policy is made from its registered name.
        # Other processes do not run a script or notebook, so its key function is pickled, too.
        if key.__module__ == "__main__":
            return _registered, (policy.name, key, needs)
        return make, (policy.name,)

    @functools.wraps(key)
    def method(policy: Order, view: View, job: int) -> Key:
        return key(view, job)

    members = {
        "__doc__": key.__doc__ or f"Order by `{key.__name__}`.",
        "__module__": key.__module__,
        "__qualname__": key.__qualname__,
        "needs": needs,
        "key": method,
        "__reduce__": reduce,
    }
    return dataclass(frozen=True)(type(key.__name__, (Order,), members))


def _registered(name: str, key: Callable[[View, int], Key], needs: frozenset[str]) -> Policy:
    """Policy of a key function, registered here if only another process has registered it."""
    if name not in policies:
        register(name, needs)(key)
    return make(name)


@dataclass(frozen=True)
class Policy:
    """A scheduling policy: it reads a `View` and returns a `Decision`.

    Subclasses are frozen dataclasses, and their fields are their parameters. A field that is
    None gets its value from `rule_values`, by rule set. So one class can follow the paper or a
    public simulator.

    In its methods, ``view`` is the `View` of the run, ``cluster`` the `Cluster` of the run, and
    ``gpu_type`` the name of a GPU type. A value of a parameter outside its bounds is a ParamError
    when the policy is made.

    Raises
    ------
    PolicyError
        If a method of a subclass takes other arguments than here.

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
    #: inputs that the policy reads beyond the information-agnostic part of `View`
    needs: ClassVar[frozenset[str]] = frozenset()
    #: trace columns without which a run is refused; of each tuple one column suffices
    requires: ClassVar[tuple[tuple[str, ...], ...]] = ()
    #: false: the policy needs "duration" only for deadlines or for the progress of jobs. Its
    #: decisions use no prediction of how long a job takes.
    reads_sizes: ClassVar[bool] = True
    #: families of the policy, such as las; ``--policy las`` lists the members of this family
    families: ClassVar[tuple[str, ...]] = ()
    #: default placement
    placement: ClassVar[str] = "count"
    #: true: under any placement the policy starts a gang only if first fit
    #: (`repro.placement.first_fit`) finds nodes for it
    first_fit: ClassVar[bool] = False
    #: rule set -> values of the fields that are None
    rule_values: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    #: names of the parameters in seconds or GPU-seconds
    time_fields: ClassVar[tuple[str, ...]] = ()
    #: true: the policy rounds times to whole seconds, so a run with all times doubled may differ
    rounds_times: ClassVar[bool] = False
    #: true: the policy may give a job fewer or more GPUs than its demand
    elastic: ClassVar[bool] = False
    #: policy that makes the same decisions in a run without certain inputs. Users are then warned.
    baseline: ClassVar[Baseline | None] = None
    #: true: decisions may name the GPU type of a gang (`Run.gpu_type`). False: decisions name no
    #: types, and the engine chooses the type of each gang.
    names_types: ClassVar[bool] = True
    #: true: where speeds do not depend on GPU types, the GPUs of all types are one pool, and a gang
    #: may hold GPUs of several types. False: a gang always holds GPUs of one type.
    pools_types: ClassVar[bool] = False

    #: name by which `make` was asked for the policy, if it was an alias such as fifo
    alias = ""

    def __post_init__(self) -> None:
        subject = f"policy {self.name!r}"
        check_methods(type(self), subject)
        check_settings(f"{subject}:", self)

    def decide(self, view: View) -> Decision:
        """Decision at the present instant: GPUs of each unfinished job until the next decision."""
        raise PolicyError(f"policy {self.name!r} defines neither `decide` nor `key`")

    def session(self, view: View) -> Callable[[View], Decision]:
        """Decision function of one run. A policy with memory keeps it in this function."""
        return self.decide

    def compiled_run(self, cluster: Cluster) -> CompiledRun | None:
        """Compiled functions with the same result as the engine with `session`, or None.

        The engine ignores them for a subclass that overrides `decide`, `session` or `completions`
        but not this method.
        """
        return None

    def never_runs(self, view: View) -> Callable[[int], str] | None:
        """Function with the reason why a job can never run on the empty cluster, empty if it can.

        None: the policy can run every job that the cluster has room for. The engine asks for the
        reasons of all jobs before the first event. A message has the id of the job in front of the
        reason, such as "asks for 2 GPUs, …".
        """
        return None

    def on_type(self: P, gpu_type: str, gpu_types: Sequence[str | None]) -> P:
        """Policy that decides about the GPUs of ``gpu_type``, one of ``gpu_types``.

        By default it is this policy for every type. The engine calls it for policies that divide or
        share GPUs and do not name types.
        """
        return self

    def performance(self) -> Performance | None:
        """Default performance model; None: the default of the rules, the trace and the cluster."""
        return None

    def overhead(self) -> Overhead | None:
        """Default costs of starts, unless the caller or the rules set them; None: no costs."""
        return None

    @property
    def interval(self) -> float | None:
        """Decisions are made at multiples of this time (s); None: at every event."""
        return None

    def completions(self) -> Completions:
        """Instants at which the engine notices completions; by default at once."""
        return Completions()

    def under(self: P, rules: str) -> P:
        """Copy in which fields that are None have the values of the rule set ``rules``.

        If `rule_values` has no entry for the rule set, they have the values of ``paper``.
        """
        values = self.rule_values.get(rules, self.rule_values.get("paper", {}))
        changes = {name: value for name, value in values.items() if getattr(self, name) is None}
        return dataclasses.replace(self, **changes) if changes else self


class FromSettings(Generic[T]):
    """An attribute with one value in a class of policies, and another in each instance.

    In the class it is ``of_class``. In an instance, ``of_instance`` computes it from the parameters
    of the instance.

    >>> class Sized(Policy):
    ...     gangs = False
    ...     elastic = FromSettings(False, lambda policy: not policy.gangs)
    >>> Sized.elastic, Sized().elastic
    (False, True)
    """

    def __init__(self, of_class: T, of_instance: Callable[[Any], T]) -> None:
        self.of_class = of_class
        self.of_instance = of_instance

    def __get__(self, policy: Policy | None, owner: type[Policy]) -> T:
        return self.of_class if policy is None else self.of_instance(policy)


def is_latest_definition(policy: Policy, name: str, others: Iterable[str]) -> bool:
    """Whether the class that defines ``name`` also defines each of ``others``, or inherits it.

    The classes are those of ``policy``. If the answer is no, a subclass overrides one of ``others``
    but not ``name``. The inherited ``name`` may then disagree with the override.
    """
    definer = {
        attribute: next(cls for cls in type(policy).__mro__ if attribute in vars(cls))
        for attribute in (name, *others)
    }
    return all(issubclass(definer[name], other) for other in definer.values())


class Selection(Protocol):
    """Selection of the jobs that run, smallest key first, updated at every event."""

    @property
    def waits(self) -> bool:
        """Whether any job waits."""

    @property
    def running(self) -> Iterable[int]:
        """Jobs that hold GPUs."""

    def arrive(self, job: int, now: float) -> None:
        """Add a new job."""

    def finish(self, job: int) -> None:
        """Remove a finished job."""

    def move(self, job: int, now: float) -> None:
        """Read the key of a job again, because it has jumped, such as after a demotion."""

    def select(self, now: float) -> tuple[list[int], list[int]]:
        """Jobs that lose their GPUs, and jobs that get GPUs, both in the order of their choice."""


class LinearKey(NamedTuple):
    """Numbers that determine the keys of an `Order` while jobs run at nominal speed.

    key = ``per_second`` * remaining time (s) + ``per_service`` * attained service (GPU-seconds).
    Each factor is a number, or an array with an entry per job.

    With ``limits`` the key is the pair (queue of the job, its first start). ``limits`` are the
    upper limits of the queues (GPU-seconds of attained service), and the last is infinity.
    """

    per_second: float | Floats = 0.0
    per_service: float | Floats = 0.0
    limits: tuple[float, ...] = ()


#: Function that makes the selection of a run.
SelectionFactory = Callable[[JobTable, "Ordering", Cluster], Selection]


@dataclass(frozen=True)
class Order(Policy):
    """A policy that ranks jobs: the smallest key runs first, and gangs that do not fit wait.

    The engine reads a key when the job arrives, starts or stops. It reads a key again at every
    event if the key depends on the state of other jobs, on the time that the job has waited, or on
    the progress of the job without a `slope`.

    Ties: order of submission, then order in the trace.

    In its methods, ``view`` is the `View` of the run, ``job`` the row number of a job, and ``jobs``
    an array of row numbers.

    Raises
    ------
    PolicyError
        If ``blocking`` and ``preemptive`` are both true.

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

    names_types: ClassVar[bool] = False
    pools_types: ClassVar[bool] = True
    #: a running job may be stopped for a job with a smaller key
    preemptive: ClassVar[bool] = True
    #: the first job that does not fit blocks all jobs after it; only if not ``preemptive``
    blocking: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.blocking and self.preemptive:
            raise PolicyError(
                f"policy {self.name!r}: blocking needs preemptive = False, because an order that "
                f"stops jobs starts every gang that fits"
            )

    def key(self, view: View, job: int) -> Key:
        """Key of ``job`` at the present instant, a number or tuple; the smallest key runs first."""
        raise PolicyError(f"ordering policy {self.name!r} defines no `key`")

    def keys(self, view: View, jobs: Ints) -> Floats | None:
        """Keys of several jobs, (jobs,) or (jobs, numbers of a key); None: the engine calls `key`.

        The engine ignores them for a subclass that overrides `key` but not this method.
        """
        return None

    def slope(self, view: View, job: int) -> float:
        """Change of a key per second while ``job`` runs, of the last number if it is a tuple.

        With it, the engine reads keys that depend on progress less often.
        """
        return 0.0

    def quantum_s(self) -> float:
        """Time between decisions while jobs wait (s); infinity: decisions at events only."""
        return math.inf

    def linear_key(self, view: View) -> LinearKey | None:
        """Numbers that determine `key`, for compiled functions; None: the engine calls `key`.

        The engine ignores them for a subclass that overrides `key`, `slope`, `ordering` or
        `quantum_s` but not this method.
        """
        return None

    def ordering(self, view: View) -> Ordering:
        """Ranking of the jobs of one run; policies with queues override it."""
        return Ordering(self, view)


class Ordering:
    """State of an `Order` in one run, with hooks that the engine calls. The base has no state."""

    def __init__(self, policy: Order, view: View) -> None:
        self.policy = policy
        self.view = view
        #: makes the selection, for keys that do not change linearly in time. None: the engine uses
        #: its selection for linear keys (`repro.engine.select.ranked.HeapSelection`).
        self.selection: SelectionFactory | None = None
        self._has_keys = is_latest_definition(policy, "keys", ("key",))

    def key(self, job: int, now: float) -> Key:
        """Key of ``job`` at the present instant."""
        return self.policy.key(self.view, job)

    def keys(self, jobs: Ints, now: float) -> Floats | None:
        """Keys of several jobs as in `Order.keys`; None: the engine calls `key` for each."""
        return self.policy.keys(self.view, jobs) if self._has_keys else None

    def slope(self, job: int) -> float:
        """Change of the key per second while ``job`` runs."""
        return self.policy.slope(self.view, job)

    def arrive(self, job: int, now: float) -> None:
        """React to an arrival."""

    def start(self, job: int, now: float) -> None:
        """React to the start of a job."""

    def stop(self, job: int, now: float) -> None:
        """React to the preemption of a job."""

    def finish(self, job: int, now: float) -> None:
        """React to a completion."""

    def moves(self, now: float) -> list[int]:
        """Jobs whose key jumps at this instant; their keys are read again in this order."""
        return []

    def wake(self, now: float) -> float:
        """Next instant at which the key of a job jumps (s)."""
        return math.inf


def parameter_names(cls: type[Policy]) -> list[str]:
    """Names of the parameters of a policy, for users.

    A field ``lambda_`` is the parameter ``lambda``, because this word is a keyword of Python.

    >>> "lambda" in parameter_names(policies["liquid"])
    True
    """
    return [field.name.rstrip("_") for field in dataclasses.fields(cls)]


def make(name: str, rules: str = "paper", **settings: Any) -> Policy:
    """Make a registered policy.

    Parameters
    ----------
    name : str
        Registered name, or an alias such as ``fifo`` (`repro.model.families.ALIASES`). The notes of
        a result name the policy that an alias runs.
    rules : str
        Rule set that fills the parameters without a value.
    **settings
        Parameters of the policy, as ``repro policies`` lists them. ``lambda_`` and ``lambda`` are
        the same parameter.

    Returns
    -------
    Policy
        A frozen dataclass with the parameters as fields.

    Raises
    ------
    PolicyError
        If no policy has the name; the message lists similar names.
    ParamError
        If the rule set or a parameter is unknown, a parameter has neither value nor default, or the
        policy does not accept its value.

    Examples
    --------
    >>> make("tiresias-l", thresholds=(3200.0,)).thresholds
    (3200.0,)
    """
    if not isinstance(name, str):
        raise PolicyError(f"the name of a policy is {name!r:.60}; give a text, such as 'srtf'")
    # a misspelt rule set would silently give the values of the paper
    rules_named(rules)
    cls = policies[name]
    names = [key.rstrip("_") for key in settings]
    refuse_unknown(f"policy {name!r} has no parameter", names, parameter_names(cls))
    values = {
        f"{key}_" if keyword.iskeyword(key) else key: value for key, value in settings.items()
    }
    check_values(f"policy {name!r}:", cls, values)
    missing = [
        field.name
        for field in dataclasses.fields(cls)
        if field.init
        and field.default is dataclasses.MISSING
        and field.default_factory is dataclasses.MISSING
        and field.name not in values
    ]
    if missing:
        raise ParamError(
            f"policy {name!r} has no default for {', '.join(missing)}; give a value: "
            f"make({name!r}, {missing[0]}=…)"
        )
    policy = cls(**values).under(rules)
    if name not in policies:
        object.__setattr__(policy, "alias", name)
    return policy
