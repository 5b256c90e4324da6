"""Gavel's table of policies, read from the policies themselves and from what they do."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from repro.core.policy import policies
from repro.experiments.gavel.examples import constraint_sums
from repro.experiments.gavel.examples_decisions import first_shares, solver_calls

#: What a policy declares to look at -> what is written of it.
READS = {
    "throughput": "speeds",
    "duration": "work left",
    "priority_weight": "weights",
    "slo": "SLOs",
    "entity": "entities",
}
NONE = "greedy or closed form"


def policy_table(
    rows: Mapping[str, str], trace: pd.DataFrame, cluster: str, gpus: Mapping[str, int]
) -> pd.DataFrame:
    """Return what each policy minimises or maximises, what it looks at and how it solves.

    Parameters
    ----------
    rows : mapping of str to str
        Row of the table to the registered name.
    trace : DataFrame
        Jobs of the decision that is watched.
    cluster : str
        Cluster of that decision.
    gpus : mapping of str to int
        Its GPUs by type.

    Returns
    -------
    DataFrame
        row, policy, objective (first line of its description), reads (list), solver (kind of
        problem it solves), solves (calls), most_time and most_gpus (largest sum of shares of a
        job, largest use of a GPU type).

    Raises
    ------
    PolicyError
        If a name is not registered.

    References
    ----------
    Gavel, OSDI 2020, Table 1.

    Examples
    --------
    >>> trace = pd.DataFrame({"job_id": [0, 1], "submit_time": 0.0, "duration": 9.0, "num_gpus": 1})
    >>> gpus = {"v100": 1, "k80": 1}
    >>> table = policy_table({"LAS": "las-agnostic"}, trace, "1xv100,1xk80", gpus)
    >>> table[["solver", "most_gpus"]].to_numpy().tolist()
    [['greedy or closed form', 1.0]]
    """
    records = []
    for row, name in rows.items():
        held = policies[name]
        found: list[dict[str, list[float]]] = []

        def decide(name: str = name, found: list[dict[str, list[float]]] = found) -> None:
            shares = first_shares(trace, cluster, name, list(gpus))
            found.append(constraint_sums(shares, trace["num_gpus"].tolist(), list(gpus.values())))

        calls = solver_calls(decide)
        records.append(
            {
                "row": row,
                "policy": name,
                "objective": (held.__doc__ or "").strip().splitlines()[0],
                "reads": [word for need, word in READS.items() if need in held.needs],
                "solver": ", ".join(sorted(calls)) or NONE,
                "solves": sum(calls.values()),
                "most_time": max(found[0]["time"]),
                "most_gpus": max(found[0]["gpus"]),
            }
        )
    return pd.DataFrame(records)


def feature_cells(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table as cells: one per policy and thing it looks at, one for its solver.

    Parameters
    ----------
    table : DataFrame
        From `policy_table`.

    Returns
    -------
    DataFrame
        policy (row and registered name), column, value (1 if so, else 0), text.

    Examples
    --------
    >>> row = {"row": "LAS", "policy": "las", "reads": ["weights"], "solver": "LP", "solves": 2}
    >>> cells = feature_cells(pd.DataFrame([row]))
    >>> cells["text"].tolist()
    ['', '', 'yes', '', '', 'LP']
    """
    cells = []
    for _, one in table.iterrows():
        name = f"{one['row']}: {one['policy']}"
        for word in READS.values():
            read = word in one["reads"]
            cells.append((name, word, float(read), "yes" if read else ""))
        cells.append((name, "solves", float(one["solves"] > 0), one["solver"].split(" or ")[0]))
    return pd.DataFrame(cells, columns=["policy", "column", "value", "text"])
