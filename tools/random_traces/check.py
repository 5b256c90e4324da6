"""One case: its run, the checks of its records, and one changed run that must agree with it."""

from __future__ import annotations

import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pandas as pd

from repro.base.errors import ParamError, PolicyError, ReproError, TraceError
from repro.engine.simulate import simulate
from repro.figures.data import stream
from repro.model.cluster.spec import Cluster
from repro.model.records import Result
from repro.model.rules import RULES
from repro.model.share_policy import SharePolicy
from repro.testing.audit import check_records, serves_exactly
from tools.random_traces import cases
from tools.random_traces.cases import Case
from tools.random_traces.idle import idle_fault
from tools.random_traces.relations import RELATIONS, Relation

#: Draws of a case, if each is refused.
MAX_ATTEMPTS = 20
#: CPU time of a case (s). The compilation of its loops counts.
LIMIT_S = 240.0
#: The first traces of a policy and rule set are all compared with a changed run. After them only
#: every tenth is, because a comparison takes as long as two checks.
FIRST_COMPARED = 500
EVERY_COMPARED = 10
#: Words of the messages for a job that a policy can never run (`Policy.never_runs`), and for jobs
#: that never progress (`repro.engine.livelock`).
CANNOT_RUN = ("use a larger cluster or drop the job", "can never be placed", "livelock at")


class Refused(Exception):
    """The settings of the run are refused: before its first event, or because of a livelock."""


class TooLong(Exception):
    """The case took more CPU time than `LIMIT_S`."""


@dataclass(frozen=True)
class Verdict:
    """Outcome of the checks of a case."""

    case: Case
    #: draws that were refused before this case
    refused: int = 0
    #: rule that is broken, and what happened; empty: none
    fault: str = ""
    #: relation that was checked; empty: none applies
    relation: str = ""


def check(policy: str, rules: str, seed: int, index: int) -> Verdict:
    """Draw a case that runs, and check it."""
    for attempt in range(MAX_ATTEMPTS):
        case = cases.draw(policy, rules, seed, index, attempt)
        relation = relation_of(case)
        try:
            return Verdict(
                case, attempt, fault_of(case, relation), relation.name if relation else ""
            )
        except Refused as error:
            reason = str(error)
    return Verdict(case, MAX_ATTEMPTS, f"every draw is refused: {reason}")


def relation_of(case: Case) -> Relation | None:
    """Relation that is checked for a case. None: none applies, or the case is not compared."""
    if case.index >= FIRST_COMPARED and case.index % EVERY_COMPARED:
        return None
    rng = stream("relation", case.policy, case.rules, case.seed, case.index)
    order = rng.permutation(len(RELATIONS))
    return next((RELATIONS[n] for n in order if RELATIONS[n].applies(case)), None)


def fault_of(case: Case, relation: Relation | None) -> str:
    """Fault of a case, empty if there is none.

    Raises
    ------
    Refused
        If the run is refused before its first event, or no job progresses under its settings.
    """
    try:
        with _limit(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                result = run(case)
            except (ParamError, TraceError) as error:
                raise Refused(str(error)) from error
            except PolicyError as error:
                if any(words in str(error) for words in CANNOT_RUN):
                    raise Refused(str(error)) from error
                raise
            return _fault_of(case, relation, result)
    except (ReproError, TooLong) as error:
        return str(error)
    except Refused:
        raise
    except Exception as error:
        # a run that fails in any other way is a violation, too
        return f"{type(error).__name__}: {error}"


def _fault_of(case: Case, relation: Relation | None, result: Result) -> str:
    """Fault of the records of a case, or of its changed run; empty if there is none."""
    policy = case.made()
    rules = RULES[case.rules]
    in_rounds = isinstance(policy, SharePolicy)
    check_records(
        result,
        Cluster.parse(case.cluster),
        gang=_holds_demand(case),
        exact=serves_exactly(policy, rules, case.options, in_rounds=in_rounds),
        tick_s=rules.tick_s,
        trace=case.trace,
    )
    if fault := idle_fault(case, result):
        return f"rule 'idle': {fault}"
    if relation is not None and (fault := relation.fault(case, result, run)):
        return f"relation {relation.name!r}: {fault}"
    return ""


def run(case: Case, **options: Any) -> Result:
    """Simulate a case; ``options`` replace some of its own."""
    trace: pd.DataFrame = case.trace
    return simulate(
        trace, case.cluster, case.made(), rules=case.rules, **{**case.options, **options}
    )


def _holds_demand(case: Case) -> bool:
    """Whether every running job holds its demand."""
    ideal = case.options.get("rounds", {}).get("ideal")
    return not case.made().elastic and ideal is None


@contextmanager
def _limit() -> Iterator[None]:
    """Raise TooLong in a block that takes more CPU time than `LIMIT_S`."""

    def stop(*_: Any) -> None:
        raise TooLong(f"takes more than {LIMIT_S:g} s of CPU time")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
