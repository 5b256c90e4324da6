"""The fewest jobs of a case that still show a fault."""

from __future__ import annotations

from tools.random_traces.cases import Case
from tools.random_traces.check import Refused, fault_of
from tools.random_traces.relations import Relation

#: Runs that a reduction may take.
MAX_RUNS = 200


def reduced(case: Case, relation: Relation | None) -> tuple[list[int], str]:
    """Rows of the trace that still show a fault, and the fault.

    Jobs are left out in halves, then in quarters, down to single jobs, as long as a fault remains.
    """
    rows = list(range(len(case.trace)))
    fault = _fault(case, rows, relation)
    part = len(rows) // 2
    runs = 0
    while part and runs < MAX_RUNS:
        first = 0
        is_smaller = False
        while first < len(rows) and runs < MAX_RUNS:
            fewer = rows[:first] + rows[first + part :]
            runs += 1
            found = _fault(case, fewer, relation) if fewer else ""
            if found:
                rows = fewer
                fault = found
                is_smaller = True
            else:
                first += part
        if not is_smaller:
            part //= 2
    return rows, fault


def _fault(case: Case, rows: list[int], relation: Relation | None) -> str:
    """Fault of a case with some of its jobs; empty if there is none, or if it is refused."""
    try:
        return fault_of(case.of_rows(rows), relation)
    except Refused:
        return ""
