"""Demands of jobs against a cluster: jobs that never fit, and unusual numbers of GPUs."""

from __future__ import annotations

import numpy as np
import pandas as pd

from repro.base.counts import quantity
from repro.base.typing import Flags
from repro.model.cluster.spec import Cluster
from repro.trace.doctor.findings import Finding, Level, first_ids
from repro.trace.load import gpu_seconds

#: Most sizes of gangs that a finding lists.
_SIZES = 6


def fits(frame: pd.DataFrame, cluster: Cluster) -> Flags:
    """Flag the jobs that demand no more GPUs than the cluster has, (jobs,)."""
    flags: Flags = frame["num_gpus"].to_numpy() <= cluster.num_gpus
    return flags


def check_demands(frame: pd.DataFrame, cluster: Cluster) -> list[Finding]:
    """Findings on jobs that are too wide for the cluster, for a GPU type or for a node.

    A job counts once, under the strictest of these findings.
    """
    gpus = frame["num_gpus"].to_numpy()
    too_wide = ~fits(frame, cluster)
    findings = []
    if too_wide.any():
        findings.append(
            _finding(
                frame,
                too_wide,
                "error",
                "never-fit",
                f"more GPUs than the cluster has ({cluster.num_gpus:,})",
                "leave them out or take a larger cluster; repro simulate refuses them",
            )
        )
    types = cluster.gpu_types
    wished = _beyond_wish(frame, types) & ~too_wide
    if wished.any():
        findings.append(
            _finding(
                frame,
                wished,
                "warning",
                "wished-type",
                f"more GPUs of their type (column gpu_type) than the cluster has "
                f"({_listed_types(types)})",
                _advice_on_types(frame[wished], types),
            )
        )
    most_of_type = max(types.values(), default=cluster.num_gpus)
    beyond_type = (gpus > most_of_type) & ~too_wide & ~wished
    if beyond_type.any():
        findings.append(
            _finding(
                frame,
                beyond_type,
                "warning",
                "wider-than-type",
                f"more GPUs than there are of any one type ({_listed_types(types)})",
                "gangs hold GPUs of one type where speeds by type are known: take a larger cluster",
            )
        )
    beyond_node = (gpus > cluster.gpus_per_node) & ~too_wide & ~wished & ~beyond_type
    if beyond_node.any() and cluster.gpus_per_node > 1:
        findings.append(
            _finding(
                frame,
                beyond_node,
                "note",
                "wider-than-node",
                f"more GPUs than the largest node has ({cluster.gpus_per_node})",
                "they span nodes; --slowdown makes that cost time",
            )
        )
    return findings


def check_sizes(frame: pd.DataFrame) -> list[Finding]:
    """Finding on gangs whose number of GPUs is not a power of two."""
    gpus = frame["num_gpus"].to_numpy(np.int64)
    odd = (gpus & (gpus - 1)) != 0
    if not odd.any():
        return []
    sizes, counts = np.unique(gpus[odd], return_counts=True)
    order = np.argsort(-counts, kind="stable")
    listed = ", ".join(f"{sizes[place]}: {counts[place]:,}" for place in order[:_SIZES])
    more = ", …" if len(sizes) > _SIZES else ""
    number = int(odd.sum())
    return [
        Finding(
            "note",
            "not-power-of-two",
            f"{quantity(number, 'job', 'demands', 'demand')} a number of GPUs that is no power of "
            f"two ({listed}{more})",
            number,
            first_ids(frame, odd),
            "some tables of models have powers of two alone",
        )
    ]


def _finding(
    frame: pd.DataFrame, flags: Flags, level: Level, code: str, excess: str, advice: str
) -> Finding:
    """Finding on jobs that demand too many GPUs, with their share of the GPU-seconds.

    ``excess`` is the object of "demands", such as ``more GPUs than the cluster has``.
    """
    number = int(flags.sum())
    seconds = gpu_seconds(frame)
    share = float(seconds[flags].sum() / seconds.sum())
    demanding = quantity(number, "job", "demands", "demand")
    what = f"{demanding} {excess}, {share:.1%} of the GPU-seconds"
    return Finding(level, code, what, number, first_ids(frame, flags), advice)


def _beyond_wish(frame: pd.DataFrame, types: dict[str, int]) -> Flags:
    """Flag the jobs that demand more GPUs than there are of any type that they accept, (jobs,)."""
    flags = np.zeros(len(frame), np.bool_)
    if not types or "gpu_type" not in frame:
        return flags
    gpus = frame["num_gpus"].to_numpy()
    wishes = frame["gpu_type"]
    for wish in wishes.dropna().unique():
        # a job may accept several GPU types
        most = max(types.get(name, 0) for name in str(wish).split("|"))
        flags |= (wishes == wish).to_numpy(bool) & (gpus > most)
    return flags


def _listed_types(types: dict[str, int]) -> str:
    """GPU types with their numbers: ``v100 36, k80 12``."""
    return ", ".join(f"{name} {gpus:,}" for name, gpus in types.items())


def _advice_on_types(frame: pd.DataFrame, types: dict[str, int]) -> str:
    """Advice on types of these jobs that the cluster lacks, or spells otherwise."""
    lower_case_types = {name.casefold() for name in types}
    names = {name for wish in frame["gpu_type"].dropna().unique() for name in wish.split("|")}
    absent = sorted(names - types.keys())
    alike = [name for name in absent if name.casefold() in lower_case_types]
    if alike:
        return f"write the types alike: {', '.join(alike)} differ in upper and lower case alone"
    if absent:
        return (
            f"name the types as the trace does ({', '.join(absent)} not in the cluster); --types "
            "wished refuses these jobs, other runs do not read the column"
        )
    return "take a larger cluster; --types wished refuses them, other runs do not read the column"
