"""The figure as a notebook sees it: its inputs, traces, simulations, random streams, and `save`."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import compress, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pandas as pd

from repro.base import paths
from repro.base.errors import ParamError
from repro.base.ipython import after_failed_cell, shell, shorten_errors
from repro.figures import data, params, saved, sweep, variation
from repro.figures.claims import (
    NOT_PUBLISHED,
    Reason,
    absent_packages,
    judge_all,
    points_of,
)
from repro.figures.costs import Meter
from repro.figures.extra import policy_entries, read_extra, with_extra
from repro.figures.fingerprint import fingerprint
from repro.figures.notebook import Kernel, check_seed_parameter, default_seed, parameter_defaults
from repro.figures.points import point_table, read_points
from repro.figures.progress import in_batch, write_progress
from repro.figures.sweep import Case, MeasuredJobs
from repro.files import public
from repro.files.checks import type_of
from repro.files.whole import write_whole
from repro.model.cluster.spec import FILE_SUFFIXES, Cluster
from repro.model.policy import Policy, make
from repro.model.records import Result
from repro.perf.throughput import ThroughputTable
from repro.perf.throughput_files import (
    EARLY,
    is_stand_in,
    load_throughputs,
    measured_files,
)
from repro.plot.published_marks import fade_published
from repro.plot.style import Chart, caption, render
from repro.trace.load import load

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure

Label = TypeVar("Label")
#: Parameters of notebooks that replace no input of the parameter file.
_NO_INPUTS = ("extra", "format")


class Inputs(dict[str, Any]):
    """Inputs of a run, read by key or by attribute."""

    def __missing__(self, name: str) -> Any:
        raise ParamError(f"no input {name!r} (inputs: {', '.join(self) or 'none'})")

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except ParamError as error:
            raise AttributeError(str(error)) from None


class FigureRun:
    """A figure or table of a paper that a notebook regenerates; :func:`figure` opens it.

    Parameters
    ----------
    entry : FigureEntry
        Id, parameter file and notebook of the figure.
    profile : {"quick", "paper"}
        Size of the run.
    seed : int
        Seed of the run.
    out : Path
        Folder of results.
    overrides : mapping
        Inputs that replace those of the parameter file. `figure` explains ``extra`` and
        ``format``.
    kernel : Kernel
        Parameters of the notebook that runs.

    Attributes
    ----------
    id, paper, profile : str
        Id of the figure, folder name of its paper, and size of the run.
    seed : int
        Seed of :meth:`rng` and :meth:`trace` unless a call names another. Simulations have their
        own parameter ``seed``, 0 by default.
    inputs : Inputs
        Inputs of the parameter file after profile and overrides.
    file_inputs : Inputs
        Inputs of the parameter file with this profile, without overrides. Models are fitted on
        them.
    paper_inputs : Inputs
        Inputs of the parameter file after the profile ``paper``, without overrides: those of the
        published values.
    published : dict
        Published value of each claim, by claim id.
    variation : dict
        Inputs that differ from those of the parameter file, ``{name: [here, parameter file]}``, and
        a seed that differs from the notebook's. If there are any, nothing is judged.
    folder : Path
        Folder of the files of :meth:`save`: the figure's, or a separate one for a variation.

    Examples
    --------
    >>> fig = figure("tiresias/fig10_testbed_jct")
    >>> fig.paper, fig.inputs.cluster, len(fig.trace("testbed", jobs=60))
    ('tiresias', '15x4', 60)
    """

    def __init__(
        self,
        entry: params.FigureEntry,
        profile: str,
        seed: int,
        out: Path,
        overrides: Mapping[str, Any],
        kernel: Kernel,
    ) -> None:
        self._started = time.perf_counter()
        self._meter = Meter()
        self._spec = entry.load()
        self._used_data: dict[tuple[str, str, int | None], data.Provenance] = {}
        self._notes: list[str] = []
        self._seeds: set[int] = set()
        self._simulated = 0
        self._kernel = kernel
        # Computed before the run, so that a file that changes meanwhile outdates the result.
        self._fingerprint = fingerprint(entry, profile, kernel.parameters)
        self.id = entry.id
        self.paper = entry.paper
        self.profile = profile
        self._seed = seed
        self._seed_read = False
        input_overrides = {
            name: value for name, value in overrides.items() if name not in _NO_INPUTS
        }
        #: policies of the parameter ``extra``
        self.extra = read_extra(overrides.get("extra"))
        self.inputs = Inputs(with_extra(self._spec.merged(profile, input_overrides), self.extra))
        self.file_inputs = Inputs(self._spec.merged(profile, {}))
        self.paper_inputs = Inputs(self._spec.merged("paper", {}))
        self.published = {claim.id: claim.published for claim in self._spec.claims}
        #: format of the user's traces; None: recognised by the columns
        self.format: str | None = overrides.get("format")
        self._reads_own_trace = False
        own_seed = default_seed(parameter_defaults(entry))
        self.variation = variation.differences(
            self._spec, profile, {**overrides, "seed": seed}, own_seed
        )
        self._setting = variation.setting_text(self.variation, self._spec)
        # A cell shows the picture before `save` runs, so published marks are made pale before that.
        fade = partial(fade_published, setting=self._setting)
        Chart.before_shown = fade if self._setting else None
        # A list that exists has charts of another figure of this notebook, so it is kept.
        if in_batch() and shell() is not None and Chart.waiting is None:
            Chart.waiting = []
            after_failed_cell(Chart.show_waiting)
        self.folder = variation.folder(out, entry.id, self.variation, profile)
        self._stem = entry.stem

    def __repr__(self) -> str:
        return f"<figure {self.id}, profile {self.profile}, seed {self._seed}>"

    @property
    def seed(self) -> int:
        """Seed of the run."""
        self._seed_read = True
        return self._seed

    def rng(self, purpose: str, seed: int | None = None) -> np.random.Generator:
        """Random generator of a ``purpose`` of this figure; no two purposes share a stream.

        ``seed`` is by default the seed of the run.
        """
        seed = self._seed if seed is None else seed
        self._seeds.add(seed)
        return data.stream(self.id, seed, purpose)

    def trace(self, name: str, seed: int | None = None, **options: Any) -> pd.DataFrame:
        """Open a trace and record its provenance.

        ``name`` is a generator or a public trace (see ``repro trace list``), or the path of a file
        from the project's root, with its ``format``. The same name and seed give the same trace
        everywhere. ``options`` go to the generator or the loader. ``throughputs`` may be a user's
        file. The notebook's parameter ``format`` is that of the user's files.
        """
        throughputs = options.get("throughputs")
        if throughputs is not None and data.is_own(throughputs):
            options["throughputs"] = str(self.file(throughputs))
        if data.is_own(name):
            self._reads_own_trace = True
            formats = {} if self.format is None else {"format": self.format}
            return load(self.file(name), **formats | options)
        frame, used = data.open_trace(name, self._seed if seed is None else seed, **options)
        self._record(used)
        return frame

    def traces(self) -> dict[Any, pd.DataFrame]:
        """Open the traces that the inputs name, as `trace`.

        The input ``traces`` gives traces by label. Without it, the input ``trace`` is opened once
        for each seed of the input ``seeds``, by seed. A trace that is not generated is opened once,
        under the first seed. The input ``seeds`` is then cut to this seed.
        """
        if "traces" in self.inputs:
            return {label: self.trace(name) for label, name in self.inputs.traces.items()}
        traces = {}
        for seed in self.inputs.seeds:
            traces[seed] = self.trace(self.inputs.trace, seed)
            if not traces[seed].attrs.get("synthetic"):
                self.inputs["seeds"] = [seed]
                break
        return traces

    def throughputs(self, name: str) -> ThroughputTable:
        """Open a throughput table, as `load_throughputs`, and record its provenance."""
        if data.is_own(name):
            return load_throughputs(self.file(name))
        source = data.own_throughputs(name)
        table = load_throughputs(source)
        files = measured_files(source)
        for file in files:
            if not file.is_relative_to(paths.traces_dir()):
                self.file(file)
        if files or name == EARLY:
            # the tables of the checkout are part of the fingerprint
            return table
        stands_in = is_stand_in(name)
        kind = data.STAND_IN if stands_in else data.PUBLIC
        digest = None if stands_in else data.describe_file(name).sha256
        self._record(data.Provenance(name, kind, digest, stands_in))
        return table

    def file(self, path: str | Path) -> Path:
        """Record a user's file, ``path`` from the project's root; return its absolute path."""
        self._record(data.own_file(path))
        return data.own_path(path)

    def note(self, text: str) -> None:
        """Add a remark, ``text``, to the caption, the table, the result and the gallery."""
        if text not in self._notes:
            self._notes.append(text)

    def simulate(
        self,
        trace: pd.DataFrame,
        *,
        cluster: Cluster | str,
        policy: Policy | str,
        rules: str = "paper",
        seed: int = 0,
        **settings: Any,
    ) -> Result:
        """Run ``repro.simulate``, or read the result of the same run from the cache.

        ``meta["wall_s"]`` of the result is the wall time of the first run.

        Parameters
        ----------
        trace : DataFrame
            A trace of :meth:`trace`, or a part of it.
        cluster : Cluster or str
            Cluster, spec, or path of a cluster file from the project's root.
        policy : Policy or str
            Policy, or registered name.
        rules : str
            Rule set.
        seed : int
            Seed of random placements, policies and rounds.
        **settings
            Further arguments of `repro.simulate`.

        Returns
        -------
        Result
            Records of the run.
        """
        case = self._resolved(Case(trace, cluster, policy, rules, seed, {}, settings))
        result: Result = sweep.outcome(case)
        self._simulated += 1
        write_progress(self._simulated)
        return result

    def run_all(
        self,
        traces: pd.DataFrame | Mapping[Any, pd.DataFrame],
        policies: Mapping[str, Any] | Sequence[str] | None = None,
        *,
        cluster: Cluster | str | Sequence[Cluster | str] | None = None,
        rules: str | Sequence[str] | None = None,
        seed: int = 0,
        **settings: Any,
    ) -> dict[Any, Result]:
        """Simulate every policy of the parameter file on every trace, under every rule set.

        Parameters
        ----------
        traces : DataFrame or mapping
            One trace, or traces by label.
        policies : mapping or sequence of str, optional
            ``{name: settings}``, ``{series: [name, settings]}``,
            ``{series: {"policy": name, "settings": settings}}``, or a list of names. By default the
            input ``policies``.
        cluster : Cluster, str or sequence of them, optional
            GPUs, or several clusters; by default the input ``cluster``.
        rules : str or sequence of str, optional
            Rule set or rule sets; by default the input ``rules``.
        seed : int
            Seed of the simulations.
        **settings
            Further arguments of `simulate`, such as ``overhead``.

        Returns
        -------
        dict
            Result of each run by (rule set, series, label of the trace, cluster). Keys have no rule
            set if the rules are one text, no label if the trace is one DataFrame, and no cluster if
            the cluster is one. Keys of one part are no tuples.

        Examples
        --------
        >>> fig = figure("tiresias/tab05_trace_jct")
        >>> jobs = fig.trace("testbed").head(20)
        >>> list(fig.run_all(jobs, ["srtf", "yarn-cs"], cluster="8x4", rules="paper"))
        ['srtf', 'yarn-cs']
        """
        one_trace = isinstance(traces, pd.DataFrame)
        by_label = {"": traces} if isinstance(traces, pd.DataFrame) else traces
        entries = policy_entries(self.inputs.policies if policies is None else policies)
        chosen_rules = self.inputs.rules if rules is None else rules
        one_rule_set = isinstance(chosen_rules, str)
        rule_sets = [chosen_rules] if isinstance(chosen_rules, str) else list(chosen_rules)
        chosen_clusters = self.inputs.cluster if cluster is None else cluster
        one_cluster = isinstance(chosen_clusters, str | Cluster)
        clusters = (
            [chosen_clusters] if isinstance(chosen_clusters, str | Cluster) else chosen_clusters
        )
        varies = (not one_rule_set, True, not one_trace, not one_cluster)
        cases: dict[Any, Case] = {}
        for rule_set, series, label, case_cluster in product(
            rule_sets, entries, by_label, clusters
        ):
            name, policy_settings = entries[series]
            key = tuple(compress((rule_set, series, label, case_cluster), varies))
            cases[series if len(key) == 1 else key] = Case(
                by_label[label],
                case_cluster,
                make(name, rule_set, **policy_settings),
                rule_set,
                seed,
                settings=settings,
            )
        # Most of these simulations are shorter than the start of a process.
        return self.sweep(cases, workers=1)

    def sweep(self, cases: Mapping[Label, Case], workers: int | None = None) -> dict[Label, Any]:
        """Run many simulations in parallel and return their outcomes, by label, in input order.

        Each simulation is cached, so a killed sweep goes on where it stopped. The longest ``cases``
        should come first. ``workers`` are processes on this machine: by default one per CPU, in a
        batch this notebook's share of the CPUs. With ``repro run --backend dask`` the workers of
        dask run the cases.

        Examples
        --------
        >>> from repro.figures.sweep import Case
        >>> fig = figure("tiresias/fig10_testbed_jct")
        >>> cases = {n: Case("testbed", "2x4", "srtf", options={"jobs": n}) for n in (9, 6)}
        >>> [len(result.jobs) for result in fig.sweep(cases, workers=1).values()]
        [9, 6]
        """
        # Traces of one name and seed may differ in length and rate; the last trace is recorded.
        named = [case for case in cases.values() if isinstance(case.trace, str)]
        for (name, seed), case in {(case.trace, case.seed): case for case in named}.items():
            # MeasuredJobs sets the number of jobs itself; one job is enough for the provenance.
            length = {"jobs": 1} if isinstance(case.measure, MeasuredJobs) else {}
            self.trace(str(name), seed, **{**length, **case.options})
        resolved = [self._resolved(case) for case in cases.values()]
        outcomes = sweep.run(resolved, workers, self._simulated)
        self._simulated += len(cases)
        return dict(zip(cases, outcomes, strict=True))

    def _resolved(self, case: Case) -> Case:
        """Make the objects that a case names, and record its data."""
        if isinstance(case.trace, pd.DataFrame):
            # A trace that was not read by :meth:`trace` has no record yet.
            digest = case.trace.attrs.get("sha256")
            name = str(case.trace.attrs.get("name"))
            if digest and digest not in {used.sha256 for used in self._used_data.values()}:
                kind = data.PUBLIC if public.is_known(name) else data.OWN
                self._record(data.Provenance(name, kind, digest, False))
            # Models that were sampled for a trace may come from a stand-in table.
            table = case.trace.attrs.get("throughputs")
            if table is not None and is_stand_in(table):
                self.throughputs(table)
        cluster = case.cluster
        if str(cluster).lower().endswith(FILE_SUFFIXES) and not isinstance(cluster, Cluster):
            cluster = str(self.file(cluster))
        settings = dict(case.settings)
        options = dict(case.options)
        if self.format is not None and isinstance(case.trace, str) and data.is_own(case.trace):
            self._reads_own_trace = True
            options = {"format": self.format, **options}
        if isinstance(settings.get("perf"), str):
            self.throughputs(settings["perf"])
        for arguments, name in ((settings, "perf"), (options, "throughputs")):
            if isinstance(arguments.get(name), str):
                arguments[name] = data.own_throughputs(arguments[name])
        resolved = replace(case, cluster=cluster, settings=settings, options=options).resolved()
        for name in sweep.named_files(resolved.policy):
            self._record(data.describe_file(name))
        return resolved

    def save(
        self,
        plot: Figure,
        table: pd.DataFrame | Sequence[pd.DataFrame],
        values: Mapping[str, Any] | None = None,
        points: pd.DataFrame | Sequence[pd.DataFrame] | None = None,
    ) -> pd.DataFrame:
        """Judge the claims, write picture, table, points and ``result.json``; return the verdicts.

        If the folder has the same picture, values and verdicts already, its files stay as they are.

        Parameters
        ----------
        plot : Figure
            The picture. It gets its caption here and is shown if no cell has shown it. If the
            variable ``REPRO_PNG`` is set, a PNG is written beside the SVG.
        table : DataFrame or sequence of DataFrame
            The plotted values, written without index. Several tables are written below each other.
        values : mapping, optional
            Our value of each claim that is about no series, ``{claim id: number, bool or list}``.
            A claim with None or without an entry is not comparable. None is for a claim that nobody
            can compare. An entry may be absent if this run has other inputs than the profile
            ``paper``, or other data. NaN is an error.
        points : DataFrame or sequence of DataFrame, optional
            Published numbers and ours. Columns: series, x, quantity, published, ours, unit,
            certainty, and data, origin, fitted_on, unknown and rules where they differ from the
            figure's. Three optional columns are true or false. ``aside``: the point is not judged.
            ``uncounted``: claims judge the point, but it does not count as a published number.
            ``fitted``: a model was fitted to the published number. Claims with published numbers
            add their own points.

        Returns
        -------
        DataFrame
            Verdicts, a row per claim; a notebook shows them below a summary sentence.

        Raises
        ------
        ClaimError
            If ``values`` do not match the claims, or a value is NaN or a text instead of a number.
        ParamError
            If plot, table, values or points are of another type.
        """
        from matplotlib.figure import Figure

        if not isinstance(plot, Figure):
            raise ParamError(
                f"fig.save: the plot is {type_of(plot)}; give a matplotlib Figure, such as the "
                "result of repro.plot.line_chart, or ax.figure"
            )
        table = _joined("the table is", table)
        values = {} if values is None else values
        if not isinstance(values, Mapping):
            raise ParamError(
                f"fig.save: values are {type_of(values)}; give a dict of values by claim id"
            )
        if self.format is not None and not self._reads_own_trace:
            self.note(f"format {self.format} is not used, because no trace is a file of yours")
        stand_in = self._stand_in()
        facts: dict[str, Any] = {
            "data": "stand-in" if stand_in else self._spec.data,
            "origin": self._spec.origin,
            "fitted_on": self._spec.fitted_on,
            "unknown": self._spec.unknown,
            "rules": params.judged_rules(self.inputs),
        }
        own_points = [] if points is None else read_points(_joined("points are", points), **facts)
        reason = self._reason()
        if self.variation:
            verdicts = []
            all_points = []
        else:
            verdicts = judge_all(
                self._spec.claims,
                values,
                own_points,
                reason=reason,
                all_values=reason == NOT_PUBLISHED,
                missing_packages=absent_packages(self._spec.claims),
            )
            all_points = [*own_points, *points_of(verdicts, own_points, **facts)]
        seeds = self._seeds | {
            used.seed for used in self._used_data.values() if used.seed is not None
        }
        if "seed" in self.variation and not self._seed_read and self._seed not in seeds:
            self.note("nothing in this figure depends on the seed of the run")
        run = {"id": self.id, "profile": self.profile, "seed": self._seed}
        run |= {"stand_in": stand_in, "notes": self._notes, "params": dict(self.inputs)}
        if isinstance(plot, Chart):
            plot.complete()
        if self.variation:
            run["variation"] = self.variation
            if self._setting:
                fade_published(plot, self._setting)
        caption(plot, saved.title_line(self._spec, run, verdicts, seeds))
        svg = render(plot, "svg")
        files = {f"{self._stem}.svg": svg, f"{self._stem}.csv": saved.table_bytes(table, run)}
        if all_points:
            rows = point_table(point.row() for point in all_points)
            files[f"{self._stem}.points.csv"] = saved.table_bytes(rows, run)
        by_name = sorted(
            self._used_data.values(), key=lambda used: (used.name, used.kind, used.seed or 0)
        )
        result = saved.result(self._spec, run, verdicts, all_points, list(map(asdict, by_name)))
        result["files"] = {name: saved.checksum(content) for name, content in files.items()}
        # Cells that were run by hand may differ from the notebook's file.
        if self._kernel.is_faithful():
            result["fingerprint"] = self._fingerprint
        result["wall_s"] = round(time.perf_counter() - self._started, 3)
        result["cpu_s"] = round(self._meter.cpu_s(), 3)
        result["rounds"] = [_rounded(asdict(batch)) for batch in self._meter.parallel_batches()]
        saved.write_files(self.folder, self._stem, files, result)
        if os.environ.get(saved.ENV_PNG):
            write_whole(self.folder / f"{self._stem}.png", render(plot, "png"))
        if shell() is not None:
            if isinstance(plot, Chart) and (Chart.waiting is not None or not plot.shown):
                plot.display_svg(svg)
            Chart.show_waiting(without=plot)
        if self.variation:
            return saved.Verdicts.of_variation(self.variation, self.folder, saved.remarks(run))
        return saved.Verdicts.of(verdicts, all_points, saved.remarks(run))

    def _record(self, used: data.Provenance) -> None:
        """Record the provenance of a data set."""
        self._used_data[used.name, used.kind, used.seed] = used

    def _reason(self) -> Reason:
        """Why a claim without a value is not comparable in this run."""
        return self._spec.missing_value_reason(
            self.profile, self._replaced(), has_stand_in=self._stand_in() is not None
        )

    def _replaced(self) -> list[str]:
        """Names of the data sets that stand-ins replace in this run."""
        return sorted(
            {used.name for used in self._used_data.values() if used.kind == data.STAND_IN}
        )

    def _stand_in(self) -> str | None:
        """Text that names the stand-ins of this run; None without stand-ins."""
        replaced = self._replaced()
        is_papers_trace = not variation.replaces_trace(self.variation)
        texts = [self._spec.stand_in] if self._spec.stand_in and is_papers_trace else []
        if replaced:
            texts.append(f"{data.STAND_IN} for {', '.join(replaced)}")
        return "; ".join(texts) or None


def _rounded(costs: Mapping[str, float]) -> dict[str, float]:
    """Costs (s), rounded to milliseconds."""
    return {name: round(value, 3) for name, value in costs.items()}


def _joined(subject: str, tables: pd.DataFrame | Sequence[pd.DataFrame]) -> pd.DataFrame:
    """One table of several, below each other; ParamError, with its subject, for other types."""
    if isinstance(tables, pd.DataFrame):
        return tables
    is_sequence = isinstance(tables, Sequence) and not isinstance(tables, str)
    if not is_sequence or not tables or not all(isinstance(part, pd.DataFrame) for part in tables):
        kind = "a list without DataFrames" if is_sequence else type_of(tables)
        raise ParamError(
            f"fig.save: {subject} {kind}; give a DataFrame, or a list of one or more DataFrames"
        )
    return pd.concat(tables, ignore_index=True)


def figure(
    id: str,
    *,
    profile: str = "quick",
    seed: int = 0,
    out: str | Path = "build/figures",
    **overrides: Any,
) -> FigureRun:
    """Open a figure for regeneration; the first call of every notebook.

    Parameters
    ----------
    id : str
        ``<paper>/<stem>`` of the parameter file.
    profile : {"quick", "paper"}
        Size of the run.
    seed : int
        Seed of the run.
    out : str or Path
        Folder of results. A relative path starts at the top of the checkout, or, if papermill
        passes it, at the folder where papermill was started.
    **overrides
        Inputs to replace; None keeps the input of the parameter file. ``extra``: policies to show
        next to the paper's, a name, a list of names, or ``{"policy": name, "settings": {…}}``.
        ``format``: format of traces that are the user's files (see ``repro simulate --help``).
        A changed input, an extra policy or another seed makes the run a variation, which nothing
        judges.

    Returns
    -------
    FigureRun
        Inputs, traces and runs of the figure, and ``save`` for its results.

    Raises
    ------
    ParamError
        If no figure has the id, or profile, seed or an input is not accepted.

    Examples
    --------
    >>> figure("tiresias/fig10_testbed_jct", seed=3)
    <figure tiresias/fig10_testbed_jct, profile quick, seed 3>
    """
    # The batch keeps whole tracebacks.
    if not in_batch():
        shorten_errors()
    root = paths.project_root()
    entry = params.FigureEntry(id, root)
    if id.count("/") != 1 or not entry.params_file.is_file():
        entry = params.resolve(id, params.discover(root))
    check_seed_parameter(seed)
    kernel = Kernel.running(entry)
    top = Path.cwd() if "out" in kernel.parameters else root
    return FigureRun(entry, profile, seed, top / paths.expanded(out), overrides, kernel)
