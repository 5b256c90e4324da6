"""``repro place``: one decision of Liquid's policies, without a clock."""

import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from repro.base.counts import refuse_below
from repro.base.errors import ParamError, TraceError, refuse_unknown
from repro.cli import complete
from repro.cli.lines import complain
from repro.cli.run_options import FormatOption, open_jobs
from repro.cli.settings import (
    WITH_OPTION,
    MapOption,
    UnitOption,
    column_options,
    parse_settings,
)
from repro.engine.ignored import TYPES_ALIKE, ignored_lines
from repro.figures.saved import to_json
from repro.files.guess import renames
from repro.files.table import Document, Table
from repro.model.cluster.spec import Cluster
from repro.model.policy import make, policies
from repro.perf.parameter_server import PlanTimes, default_num_ps, named
from repro.placement.network import (
    DEFAULT_BANDWIDTH_MB_S,
    DEFAULT_GPU_MEM_MB,
    Gang,
    NodeResources,
    Scoring,
)
from repro.policies.liquid._containers import Containers, Plan
from repro.trace.load import has_format
from repro.trace.synth.liquid import WARM_UP

GIVEN = "given"
_REQUIRED = ("job_id", "num_ps", "num_workers")
_OPTIONAL = ("gpu_mem_mb", "bandwidth_mb_s", "tasks", "model", "batch_size", "num_batches")
#: Parameters that need running jobs or a clock, so that one decision does not depend on them.
_OVER_TIME = ("share", "load", "ahead_s", "heartbeat_s", "every_s")


def place_jobs(
    cluster: Annotated[
        str,
        typer.Option(
            metavar="SPEC",
            help="Nodes x GPUs, such as 8x4, or a file of nodes.",
            autocompletion=complete.clusters,
        ),
    ],
    jobs: Annotated[
        str,
        typer.Option(
            metavar="FILE|NAME",
            help="A trace, as for `repro simulate`, optionally with num_ps, gpu_mem_mb, "
            "bandwidth_mb_s; or a CSV with job_id, num_ps, num_workers and tasks.",
            autocompletion=complete.jobs,
        ),
    ],
    policy: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="A policy of Liquid, or 'given' to score the column tasks.",
            autocompletion=complete.policies_or_given,
        ),
    ],
    format: FormatOption = None,
    columns: MapOption = None,
    unit: UnitOption = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="K=V",
            help="Parameter of the policy, such as lambda=0.5; repeatable.",
            autocompletion=complete.policy_settings,
        ),
    ] = None,
    times: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Run times of plans: measured, k80 or t4.",
            autocompletion=complete.run_times,
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Seed of random policies; by default 0.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, nothing else.")] = False,
) -> None:
    """Place Liquid's jobs in one decision; print nodes, costs, scores and run times."""
    refuse_below("--seed", seed, 0)
    machines = Cluster.parse(cluster)
    site = NodeResources(machines)
    plan_times = None if times is None else named(times)
    reader_options = column_options(columns, unit)
    rows: _Jobs
    # names and unit of columns are those of a trace
    if not reader_options and _is_table(jobs, format):
        rows = _TableJobs(jobs, plan_times)
    else:
        rows = _TraceJobs(jobs, format, seed or 0, plan_times, reader_options)
    parameters = parse_settings(settings or [], WITH_OPTION | {"times": "--times"})
    is_random = False
    if policy == GIVEN:
        refuse_unknown("policy 'given' has no parameter", parameters, ("lambda", "score"))
        scoring = Scoring(parameters.get("lambda", 0.5), parameters.get("score", "paper"))
        plans: list[Plan | None] = rows.column_plans(site)
    else:
        placer = _placer(policy, parameters)
        is_random = placer.is_random
        rows.check_fits(site, placer.per_node())
        scoring = Scoring(getattr(placer, "lambda_", 0.5), getattr(placer, "score", "paper"))
        shows_progress = policy == "liquid-batch" and not as_json and sys.stderr.isatty()
        watch_option = {"watch": _show_generation} if shows_progress else {}
        # the policy allocates on nodes of its own; the report allocates on ``site``
        plans = placer.place(
            NodeResources(machines), rows.gangs, placer.generator(seed or 0), **watch_option
        )
    report = _report(site, rows, plans, scoring)
    unused = rows.unused(policy)
    _print_ignored(unused, list(machines.gpu_types))
    # Liquid's placement treats all GPUs alike
    options = [TYPES_ALIKE] if machines.gpu_types else []
    for line in [*rows.notes, *ignored_lines({"rows": rows.dropped})]:
        complain(line)
    if seed is not None and not is_random and not rows.seeded:
        complain(f"not used: --seed {seed} (policy {policy} uses no random numbers)")
        options.append("--seed")
    if over_time := [name for name in _OVER_TIME if name in parameters]:
        complain(f"not used: --set {', '.join(over_time)} (one decision has no running jobs)")
        options += over_time
    ignored = {"file_columns": list(unused), "rows": rows.dropped, "options": options}
    ignored = {name: values for name, values in ignored.items() if values}
    facts = {"policy": policy, "cluster": str(machines), "ignored": ignored}
    typer.echo(to_json(facts | report).decode().rstrip() if as_json else _report_lines(report))


def _placer(policy: str, settings: dict[str, Any]) -> Containers:
    """Policy that places containers; ParamError for another policy."""
    placer = make(policy, **settings)
    if isinstance(placer, Containers):
        return placer
    placers = [name for name in policies if issubclass(policies[name], Containers)]
    raise ParamError(
        f"policy {policy!r} does not place containers; accepted: {', '.join(placers)}, {GIVEN}"
    )


def _is_table(jobs: str, format: str | None) -> bool:
    """Whether a file has a row per gang (num_ps, num_workers) rather than a format of traces."""
    return format is None and Path(jobs).is_file() and not has_format(jobs)


class _Jobs(ABC):
    """Jobs in order, with their gangs, and what a run-time model reads of them."""

    def __init__(self, plan_times: PlanTimes | None) -> None:
        self.plan_times = plan_times
        self.ids: list[Any] = []
        self.gangs: list[Gang] = []
        #: name, batch size and iterations of each job, for a run-time model
        self.models: Sequence[Any] = ()
        self.batch_sizes: Sequence[float] = ()
        self.iterations: Sequence[float] = ()
        #: rows that the reader left out, by reason
        self.dropped: dict[str, int] = {}
        self.notes: list[str] = []
        #: whether a generator of the jobs used the seed
        self.seeded = False

    @abstractmethod
    def where(self, row: int, column: str = "") -> str:
        """Place of a value, for messages."""

    @abstractmethod
    def unused(self, policy: str) -> dict[str, str]:
        """Columns that are neither used nor empty, each with a reason or an empty text."""

    @abstractmethod
    def column_plans(self, site: NodeResources) -> list[Plan | None]:
        """Plans of the column ``tasks``; a job with an empty cell waits."""

    def run_s(self, row: int, plan: Plan) -> float | None:
        """Run time of a plan (s); None without a run-time model."""
        if self.plan_times is None:
            return None
        num_ps = self.gangs[row].num_ps
        try:
            return self.plan_times.run_s(
                str(self.models[row]), plan, self.batch_sizes[row], self.iterations[row], num_ps
            )
        except ParamError as error:
            raise TraceError(f"{self.where(row, 'model')}: {error}") from None

    def check_fits(self, site: NodeResources, max_per_node: float) -> None:
        """Refuse a job that fits no domain of the empty cluster.

        A node takes at most ``max_per_node`` containers of a job.
        """
        for row, gang in enumerate(self.gangs):
            if gang.size > (capacity := site.capacity(gang, max_per_node)):
                limit = f", at most {max_per_node:g} on a node" if max_per_node < np.inf else ""
                raise TraceError(
                    f"{self.where(row)}: job {self.ids[row]!r} has {gang.size} containers of one "
                    f"GPU, {gang.gpu_mem_mb:g} MB and {gang.bandwidth_mb_s:g} MB/s each; no domain "
                    f"takes more than {capacity} of them{limit}; use a larger cluster"
                )


class _TraceJobs(_Jobs):
    """Jobs of a trace, in order of arrival; a job has num_gpus containers."""

    def __init__(
        self,
        name: str,
        format: str | None,
        seed: int,
        plan_times: PlanTimes | None,
        reader_options: dict[str, str],
    ) -> None:
        super().__init__(plan_times)
        self._name = name
        opened = open_jobs(name, format, None, seed, {}, reader_options)
        frame = opened.frame
        self.seeded = opened.seeded
        self._frame = frame
        self.notes = list(frame.attrs.get("notes", ()))
        self.dropped = dict(frame.attrs.get("dropped", {}))
        self.ids = frame["job_id"].tolist()
        memory_mb = self._column("gpu_mem_mb", DEFAULT_GPU_MEM_MB)
        bandwidth_mb_s = self._column("bandwidth_mb_s", DEFAULT_BANDWIDTH_MB_S)
        widths = frame["num_gpus"].tolist()
        servers = [default_num_ps(width) for width in widths]
        if "num_ps" in frame:
            servers = frame["num_ps"].tolist()
        for row, (width, num_ps) in enumerate(zip(widths, servers, strict=True)):
            if num_ps > width:
                raise TraceError(
                    f"{self.where(row, 'num_ps')}: job {self.ids[row]!r} has {num_ps} parameter "
                    f"servers, but asks for {width} GPUs; give at most one per GPU"
                )
            self.gangs.append(Gang(num_ps, width - num_ps, memory_mb[row], bandwidth_mb_s[row]))
        self._read = {"job_id", "submit_time", "num_gpus", "num_ps", "gpu_mem_mb", "bandwidth_mb_s"}
        if plan_times is None:
            return
        columns = (
            ("model",) if plan_times.ignores_batches else ("model", "batch_size", "iterations")
        )
        if absent := [column for column in columns if column not in frame]:
            raise TraceError(
                f"{name}: --times needs the column {', '.join(absent)}; name them, or leave "
                "--times out"
            )
        for column in columns:
            if (gaps := frame[column].isna()).any():
                row = int(gaps.argmax())
                raise TraceError(
                    f"{self.where(row, column)}: job {self.ids[row]!r} has no {column}, which "
                    "--times needs; add it, or leave --times out"
                )
        self._read.update(columns)
        self.models = frame["model"].tolist()
        self.batch_sizes = self._column("batch_size", np.nan)
        self.iterations = self._column("iterations", np.nan)

    def _column(self, name: str, default: float) -> list[float]:
        """Numbers of a column; ``default`` where the trace has none."""
        if name not in self._frame:
            return [default] * len(self.ids)
        numbers: list[float] = self._frame[name].astype(float).fillna(default).tolist()
        return numbers

    def where(self, row: int, column: str = "") -> str:
        """Name of the trace, and of the column."""
        return f"{self._name}:{column}" if column else self._name

    def unused(self, policy: str) -> dict[str, str]:
        """Columns that are neither used nor empty, each with a reason or an empty text."""
        reasons = {
            "duration": "a plan has no duration without --times",
            "gpu_type": "a container goes on a GPU of any type",
        }
        if self.plan_times is None:
            reasons |= dict.fromkeys(("model", "batch_size", "iterations"), "only --times reads it")
        else:
            reasons["duration"] = "--times has run times of its own"
        if self.plan_times is not None and self.plan_times.ignores_batches:
            reasons |= dict.fromkeys(
                ("batch_size", "iterations"), "--times measured has one batch size only"
            )
        frame = self._frame
        names = [str(name) for name in frame if frame[name].notna().any()]
        unused = [name for name in names if name not in self._read]
        unused += [str(name) for name in frame.attrs.get("unread", ())]
        return {name: reasons.get(name, "") for name in unused}

    def column_plans(self, site: NodeResources) -> list[Plan | None]:
        """Refuse: a trace has no plans."""
        raise TraceError(
            f"{self._name}: a trace has no column tasks; for --policy {GIVEN!r} give a table with "
            f"{', '.join(_REQUIRED)}, tasks"
        )


class _TableJobs(_Jobs):
    """Rows of a table of gangs, in the order of the file."""

    def __init__(self, path: str, plan_times: PlanTimes | None) -> None:
        super().__init__(plan_times)
        self.path = Path(path)
        text_columns = ("model", "tasks")
        table = Table(Document.read(path), _REQUIRED, text=text_columns, ids="job_id")
        self.table = table
        self._check_ids()
        self.ids = table.frame["job_id"].tolist()
        servers, workers = (table.whole(name) for name in _REQUIRED[1:])
        table.refuse(servers + workers < 1, "num_workers", "no container", "a job has at least one")
        per_container = {
            name: table.numbers(name, f"{unit} above 0", low=1e-9)
            for name, unit in {"gpu_mem_mb": "MB of GPU memory", "bandwidth_mb_s": "MB/s"}.items()
            if name in table
        }
        self.gangs = [
            Gang(
                int(ps),
                int(count),
                **{name: float(values[row]) for name, values in per_container.items()},
            )
            for row, (ps, count) in enumerate(zip(servers, workers, strict=True))
        ]
        # NaN if the run-time model does not read them
        self.batch_sizes = self.iterations = [np.nan] * len(self.ids)
        if plan_times is None:
            return
        size_columns = () if plan_times.ignores_batches else ("batch_size", "num_batches")
        if absent := [name for name in ("model", *size_columns) if name not in table]:
            similar = renames(absent, table.header).values()
            hint = "".join(f", found {name!r}" for name in similar)
            raise TraceError(
                f"{path}:1: --times needs the column {', '.join(absent)}{hint}; name them, or "
                f"leave --times out"
            )
        self.models = table.frame["model"].tolist()
        if size_columns:
            batch_sizes, num_batches = (table.whole(name, 1) for name in size_columns)
            self.batch_sizes = batch_sizes.tolist()
            self.iterations = (num_batches + WARM_UP).tolist()

    def where(self, row: int, column: str = "") -> str:
        """File, line and column; the file may have blank rows."""
        line = self.table.line(int(self.table.frame.index[row]))
        return f"{self.path}:{line}:{column}" if column else f"{self.path}:{line}"

    def _check_ids(self) -> None:
        """Refuse a missing id and a repeated id."""
        ids = self.table.frame["job_id"]
        missing = ids.isna().to_numpy(bool)
        self.table.refuse(missing, "job_id", "missing value", "every job has an id")
        repeated = ids.duplicated().to_numpy(bool)
        self.table.refuse(repeated, "job_id", "appears twice", "every job has an id of its own")

    def unused(self, policy: str) -> dict[str, str]:
        """Columns that are neither used nor empty, each with a reason or an empty text."""
        frame = self.table.frame
        reasons = {"gpu_type": "a container goes on a GPU of any type"}
        if policy != GIVEN:
            reasons["tasks"] = f"only --policy {GIVEN!r} reads it"
        if self.plan_times is None:
            reasons |= dict.fromkeys(
                ("model", "batch_size", "num_batches"), "only --times reads it"
            )
        elif self.plan_times.ignores_batches:
            reasons |= dict.fromkeys(
                ("batch_size", "num_batches"),
                "--times measured has one batch size only",
            )
        accepted = (*_REQUIRED, *_OPTIONAL)
        absent = [name for name in accepted if name not in self.table]
        for name in self.table.header:
            if name not in accepted and name not in reasons:
                similar = renames(absent, [name])
                reasons[name] = "".join(f"did you mean {wanted!r}?" for wanted in similar)
        unused = [name for name in frame if name in reasons and frame[name].notna().any()]
        return {name: reasons[name] for name in unused}

    def column_plans(self, site: NodeResources) -> list[Plan | None]:
        """Plans of the column ``tasks``; a job with an empty cell waits.

        Plans must fit the GPUs, and the memory and the bandwidth if the table has these columns.
        """
        if "tasks" not in self.table:
            raise TraceError(
                f"{self.path}:1: --policy {GIVEN!r} needs the column tasks, such as 0 0 3"
            )
        idle = site.idle.copy()
        link_mb_s = site.link_mb_s.copy()
        plans = list[Plan | None]()
        for row, (text, gang) in enumerate(zip(self.table.frame["tasks"], self.gangs, strict=True)):
            words = text.split() if isinstance(text, str) else []
            nodes = [int(word) if word.isdecimal() and len(word) < 10 else -1 for word in words]
            where = self.where(row, "tasks")
            if words and len(words) != gang.size:
                raise TraceError(f"{where}: {len(words)} nodes for {gang.size} containers")
            for word, node in zip(words, nodes, strict=True):
                if not 0 <= node < len(idle):
                    raise TraceError(
                        f"{where}: no node {word[:20]!r}; nodes are 0 to {len(idle) - 1}"
                    )
                idle[node] -= 1
                if idle[node] < 0:
                    raise TraceError(
                        f"{where}: node {node} is full; all {site.idle[node]} GPUs are taken"
                    )
                if "gpu_mem_mb" in self.table and site.gpu_mem_mb[node] < gang.gpu_mem_mb:
                    raise TraceError(
                        f"{where}: node {node} has GPUs of {site.gpu_mem_mb[node]:g} MB; a "
                        f"container takes {gang.gpu_mem_mb:g} MB"
                    )
                if "bandwidth_mb_s" in self.table and link_mb_s[node] < gang.bandwidth_mb_s:
                    raise TraceError(
                        f"{where}: node {node} has {link_mb_s[node]:g} MB/s of bandwidth left; a "
                        f"container takes {gang.bandwidth_mb_s:g} MB/s"
                    )
                link_mb_s[node] -= gang.bandwidth_mb_s
            plans.append(tuple(nodes) if words else None)
        return plans


def _print_ignored(columns: dict[str, str], types: Sequence[str]) -> None:
    """Print the columns and GPU types that the report does not use."""
    if columns:
        texts = [f"{name} ({reason})" if reason else name for name, reason in columns.items()]
        complain(f"not used: columns of the file {', '.join(texts)}")
    if types:
        complain(f"not used: {TYPES_ALIKE} {', '.join(types)} (all GPUs are alike)")


def _report(
    site: NodeResources, rows: _Jobs, plans: Sequence[Plan | None], scoring: Scoring
) -> dict[str, Any]:
    """Cost, score and run time (s) per job, and totals; jobs are placed in order."""
    jobs: list[dict[str, Any]] = []
    for row, (plan, gang) in enumerate(zip(plans, rows.gangs, strict=True)):
        job = {"job_id": rows.ids[row], "tasks": None, "cost": None, "score": None, "run_s": None}
        if plan is not None:
            cost = site.cost(plan, gang.num_ps, scoring.formula)
            score = site.score(plan, gang, scoring)
            job |= {"tasks": list(plan), "cost": cost, "score": score}
            job["run_s"] = rows.run_s(row, plan)
            site.allocate(plan, gang)
        jobs.append(job)
    score = float(sum(job["score"] for job in jobs if job["score"] is not None))
    nodes = len({node for plan in plans for node in plan or ()})
    return {"jobs": jobs, "sum_score": score, "num_nodes": nodes, "objective": score + nodes}


def _report_lines(report: dict[str, Any]) -> str:
    """Report as text: a line per job, then the totals."""
    lines = []
    for job in report["jobs"]:
        line = f"{job['job_id']}  waits"
        if job["tasks"] is not None:
            nodes = " ".join(map(str, job["tasks"]))
            line = "{job_id}  nodes {}  cost {cost:g}  score {score:g}".format(nodes, **job)
        lines.append(line if job["run_s"] is None else f"{line}  {job['run_s']:,.1f} s")
    total = "sum of scores {sum_score:g}, {num_nodes} nodes, objective {objective:g}"
    return "\n".join([*lines, total.format(**report)])


def _show_generation(number: int, best: float) -> None:
    """Show the progress of the search on a terminal."""
    print(f"\rgeneration {number}: objective {best:g}", end="", file=sys.stderr, flush=True)
