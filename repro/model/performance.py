"""Protocols of performance models (speed of jobs), and the costs of starts and preemptions."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from repro.base.errors import ParamError
from repro.base.outside import refuse_failure
from repro.base.typing import Floats, Ints
from repro.files.checks import shown
from repro.model.decision import Run
from repro.model.jobs import JobTable
from repro.model.records import Nodes
from repro.model.settings import Above, AtLeast, Bound

_RATES = AtLeast(0, finite=True)
_PACES = Above(0, finite=True)
_RENEWALS = Above(0, "seconds")
#: Sequences whose elements are no rates.
_TEXTS = (str, bytes, bytearray, memoryview)


class Performance(Protocol):
    """A performance model: speed of jobs on the GPUs that they hold.

    A model is any object with the method ``rates``. Its arguments are ``table``, the jobs of the
    trace, ``run``, the gang, and ``nodes``, a tuple of (node index, GPUs there), empty if the
    placement only counts GPUs. A model whose rates do not depend on nodes may say so by an
    attribute ``reads_nodes = False``.

    Examples
    --------
    A job on more than one node is slower by half:

    >>> class Spread:
    ...     def rates(self, table, run, nodes):
    ...         return [0.5 if len(nodes) > 1 else 1.0] * len(run.jobs)
    >>> from repro import simulate
    >>> from repro.testing import small_trace
    >>> result = simulate(small_trace(), "2x2", "srtf", perf=Spread(), placement="yarn")
    >>> result.jobs.loc[[2, 5], ["duration", "jct"]]
       duration   jct
    2      25.0  75.0
    5       5.0  10.0
    """

    def rates(self, table: JobTable, run: Run, nodes: Nodes) -> Sequence[float]:
        """Speed of each member of ``run`` relative to running alone, (members,).

        A list, tuple, Series or 1-D array, in the order of ``run.jobs``.
        """


def reads_nodes(perf: Performance | None) -> bool:
    """Whether rates may depend on the nodes of a gang; a model denies it by ``reads_nodes``."""
    return perf is not None and bool(getattr(perf, "reads_nodes", True))


@runtime_checkable
class Paced(Performance, Protocol):
    """A performance model with the exact time of a unit of work."""

    def paces(self, table: JobTable, run: Run, nodes: Nodes) -> Sequence[float]:
        """Seconds of a unit of work for each member of ``run``, (members,)."""


def rates_of(perf: Performance, table: JobTable, run: Run, nodes: Nodes) -> Sequence[float]:
    """Speed of each member of a gang relative to running alone, (members,), checked.

    Raises
    ------
    ParamError
        If the model does not give a list, tuple, Series or 1-D array of a finite number of 0 or
        more for each member, or its code fails.
    """
    try:
        rates = perf.rates(table, run, nodes)
    except Exception as error:
        _refuse_failure(error, perf, "rates", table, run)
        raise
    return _checked(perf, "rates", rates, _RATES, table, run)


def paces_of(perf: Paced, table: JobTable, run: Run, nodes: Nodes) -> Sequence[float]:
    """Seconds of a unit of work for each member of a gang, (members,), checked.

    Raises
    ------
    ParamError
        If the model does not give a list, tuple, Series or 1-D array of a finite number above 0
        for each member, or its code fails.
    """
    try:
        paces = perf.paces(table, run, nodes)
    except Exception as error:
        _refuse_failure(error, perf, "paces", table, run)
        raise
    return _checked(perf, "paces", paces, _PACES, table, run)


def _checked(
    perf: Performance, method: str, values: Sequence[float], bound: Bound, table: JobTable, run: Run
) -> Sequence[float]:
    """Answer of a method, after a check that it is a number within bounds per member."""
    if not _is_row(values) or len(values) != len(run.jobs):
        owner = f"the gang of job {table.ids[run.jobs[0]]!r}"
        accepted = f"a list of a number per job, here {len(run.jobs)}"
        raise _refusal(perf, method, values, owner, accepted)
    for job, value in zip(run.jobs, values, strict=True):
        if not bound.holds(value):
            owner = f"job {table.ids[job]!r}"
            raise _refusal(perf, method, value, owner, bound.words("a number"))
    # a Series counts by its labels, a list by position
    return values if isinstance(values, list | tuple) else list(values)


def _is_row(values: object) -> bool:
    """Whether values are a sequence, a Series, or an array of one dimension."""
    if isinstance(values, list | tuple):
        return True
    # the keys of a mapping would be read as rates, and a set has no order
    is_row = isinstance(values, Sequence) or getattr(values, "ndim", None) == 1
    return is_row and not isinstance(values, _TEXTS)


def _refuse_failure(
    error: Exception, perf: Performance, method: str, table: JobTable, run: Run
) -> None:
    """Raise ParamError of one line for an exception in a performance model of a user."""
    owner = f"job {table.ids[run.jobs[0]]!r}"
    subject = f"performance model {type(perf).__name__}, {owner}"
    refuse_failure(error, perf, method, subject, ParamError)


def _refusal(
    perf: Performance, method: str, answer: object, owner: str, accepted: str
) -> ParamError:
    """Error of an answer of a performance model for a job or gang."""
    return ParamError(
        f"performance model {type(perf).__name__}: `{method}` is {shown(repr(answer))} for "
        f"{owner}; give {accepted}"
    )


@runtime_checkable
class Renewing(Performance, Protocol):
    """A performance model whose rates change while a gang runs, such as goodput by epoch.

    It has the method ``renew`` besides ``rates``, with the same arguments ``table``, ``run`` and
    ``nodes`` as in `Performance`.

    Examples
    --------
    Every job runs at half speed for its first 2 seconds of progress:

    >>> class WarmUp:
    ...     def left(self, table, run):
    ...         job = run.jobs[0]
    ...         return table.work_left[job] - (table.duration[job] - 2)
    ...     def rates(self, table, run, nodes):
    ...         return [0.5 if self.left(table, run) > 0 else 1.0]
    ...     def renew(self, table, run, nodes):
    ...         left = self.left(table, run)
    ...         return left if left > 0 else float("inf")
    >>> from repro import simulate
    >>> from repro.testing import small_trace
    >>> result = simulate(small_trace().head(1), "1x4", "srtf", perf=WarmUp())
    >>> result.jobs["jct"].round(6).tolist()
    [12.0]
    """

    def renew(self, table: JobTable, run: Run, nodes: Nodes) -> float:
        """Time until the rates of ``run`` are computed again (s of progress); infinity: never.

        ``table.work_left`` has the remaining work of the members at the present instant. The engine
        calls this when the gang starts and at every renewal. A renewal is an event at which the
        policy decides.
        """


def renewal_of(perf: Renewing, table: JobTable, run: Run, nodes: Nodes) -> float:
    """Time until the rates of a gang are computed again (s of progress), checked.

    Raises
    ------
    ParamError
        If the model does not give a number above 0, or its code fails.
    """
    try:
        seconds = perf.renew(table, run, nodes)
    except Exception as error:
        _refuse_failure(error, perf, "renew", table, run)
        raise
    if not _RENEWALS.holds(seconds):
        owner = f"the gang of job {table.ids[run.jobs[0]]!r}"
        accepted = f"{_RENEWALS.words('a number')}, or infinity"
        raise _refusal(perf, "renew", seconds, owner, accepted)
    return seconds


@runtime_checkable
class Curves(Protocol):
    """A performance model with speed-up curves S of jobs."""

    def table(
        self, models: Sequence[str | None], gpus: Sequence[int], ids: Sequence[object]
    ) -> tuple[Floats, Ints]:
        """Curves S(0), S(1), … as rows, and the row of each job; row 0 is linear speed-up."""


class Overhead:
    """Costs of starts and preemptions, all 0 s; subclasses override the methods.

    In its methods, ``table`` has the jobs of the trace, and ``job`` is the row number of a job.

    Examples
    --------
    >>> class Restart(Overhead):
    ...     def start_s(self, table, job):
    ...         return 3.0
    >>> from repro import simulate
    >>> from repro.testing import small_trace
    >>> simulate(small_trace().head(1), "1x4", "srtf", overhead=Restart()).jobs["jct"].tolist()
    [13.0]
    """

    #: true: every running job pays its start again after every decision
    every_interval: bool = False
    #: true, with ``every_interval``: the policy decides at the end of an ``interval`` (of
    #: `repro.simulate`) only if a job arrived or ended in it, or at a wake-up of the policy. A job
    #: pays also in the interval in which it ends.
    restarts_on_change: bool = False
    #: true: a job runs on if its group changes and it stays on its GPUs. False: all members of the
    #: group start again.
    stays: bool = False
    #: true: a job with hosts, the jobs before it on its GPUs, follows them: it starts while they
    #: run, and progresses after they have left
    follows: bool = False

    def start_s(self, table: JobTable, job: int) -> float:
        """Time from the first start of a job until it progresses (s)."""
        return 0.0

    def launch_s(self, unit_s: Sequence[float]) -> float:
        """Time that the launch of a gang costs in each interval, beyond its members' starts (s).

        Only with ``every_interval``. ``unit_s`` has the seconds per unit of work of the members.
        """
        return 0.0

    def save_s(self, table: JobTable, job: int) -> float:
        """Time for which a job holds its GPUs after its last step (s)."""
        return 0.0

    def handover_s(self, table: JobTable, job: int) -> float:
        """Time from the last step of the hosts of a job until the job progresses (s)."""
        return 0.0

    def pause_s(self, table: JobTable, job: int) -> float:
        """Time for which a preempted job keeps its GPUs to write a checkpoint (s)."""
        return 0.0

    def resume_s(self, table: JobTable, job: int) -> float:
        """Time from the resumption of a job until it progresses (s); the default is `start_s`."""
        return self.start_s(table, job)
