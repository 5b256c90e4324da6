"""What a notebook works with: inputs, traces, simulations, random streams, and one way to save."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pandas as pd

from repro.base import paths
from repro.base.errors import ParamError
from repro.figures import data, params, saved, sweep
from repro.figures.claims import judge_all, points_of
from repro.figures.fingerprint import fingerprint
from repro.figures.notebook import Kernel, shell
from repro.figures.points import COLUMNS, read_points
from repro.figures.progress import tell_points
from repro.figures.sweep import Case, MeasuredJobs
from repro.files import public
from repro.files.whole import write_whole
from repro.model.cluster.spec import FILE_SUFFIXES, Cluster
from repro.model.policy import Policy
from repro.model.records import Result
from repro.perf.throughput import ThroughputTable
from repro.perf.throughput_files import is_stand_in, load_throughputs
from repro.plot.style import Chart, caption, render
from repro.trace.load import load

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure

Label = TypeVar("Label")


class Inputs(dict[str, Any]):
    """The inputs of a run, read by key or by attribute."""

    def __missing__(self, name: str) -> Any:
        raise ParamError(f"no input {name!r} (inputs: {', '.join(self) or 'none'})")

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except ParamError as error:
            raise AttributeError(str(error)) from None


class FigureRun:
    """One figure or table being regenerated; made by :func:`figure`.

    ``id``, ``paper`` and ``profile`` say which figure, of which paper, at which size; ``seed`` is
    that of everything drawn unless a call names another. ``inputs`` are those of the parameter file
    after profile and overrides, ``published`` the published value of each claim by its id, and
    ``folder`` is where :meth:`save` writes.
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
        self._spec = entry.load()
        self._used: dict[tuple[str, str, int | None], data.Used] = {}
        self._notes: list[str] = []
        self._drawn: set[int] = set()
        self._simulated = 0
        self._kernel = kernel
        own = {name: kernel.given[name] for name in kernel.given if name not in ("profile", "out")}
        # Taken before anything runs: a file that changes meanwhile makes the result old, not wrong.
        self._fingerprint = fingerprint(entry, profile, own)
        self.id = entry.id
        self.paper = entry.paper
        self.profile = profile
        self.seed = seed
        self.inputs = Inputs(self._spec.merged(profile, overrides))
        self.published = {claim.id: claim.published for claim in self._spec.claims}
        self.folder = out / entry.id
        self._stem = entry.stem

    def __repr__(self) -> str:
        return f"<figure {self.id}, profile {self.profile}, seed {self.seed}>"

    def rng(self, purpose: str, seed: int | None = None) -> np.random.Generator:
        """Return the generator of this figure for one purpose; no two purposes share a stream."""
        seed = self.seed if seed is None else seed
        self._drawn.add(seed)
        return data.stream(self.id, seed, purpose)

    def trace(self, name: str, seed: int | None = None, **options: Any) -> pd.DataFrame:
        """Return a named trace, or one of the user's own, and record where it came from.

        ``name`` is a generator or a public trace, see ``repro trace list``, or the path of a file,
        from the project's root, with its ``format``; the same name and seed give the same trace
        everywhere. Options go to the generator or the loader; ``throughputs`` may be an own file.
        """
        speeds = options.get("throughputs")
        if speeds is not None and data.is_own(speeds):
            options["throughputs"] = str(self.file(speeds))
        if data.is_own(name):
            return load(self.file(name), **options)
        frame, used = data.open_trace(name, self.seed if seed is None else seed, **options)
        self._note(used)
        return frame

    def throughputs(self, name: str) -> ThroughputTable:
        """Return a throughput table, as `load_throughputs`, and record where it came from."""
        if data.is_own(name):
            return load_throughputs(self.file(name))
        table = load_throughputs(name)
        replaced = is_stand_in(name)
        kind = data.STAND_IN if replaced else data.PUBLIC
        content = None if replaced else data.describe_file(name).sha256
        self._note(data.Used(name, kind, content, replaced))
        return table

    def file(self, path: str | Path) -> Path:
        """Return where an own file is, a path from the project's root, and record its content."""
        self._note(data.own_file(path))
        return data.own_path(path)

    def note(self, text: str) -> None:
        """Say something a reader must know: in the title line, the table, result and report."""
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
        """Run ``repro.simulate``, or remember the same run from earlier.

        The trace is one of :meth:`trace`, whole or in part; the file of a cluster is named by its
        path from the project's root. ``meta["wall_s"]`` is that of the run that computed it.
        """
        case = self._resolved(Case(trace, cluster, policy, rules, seed, {}, settings))
        result: Result = sweep.outcome(case)
        self._simulated += 1
        tell_points(self._simulated)
        return result

    def sweep(self, cases: Mapping[Label, Case], workers: int | None = None) -> dict[Label, Any]:
        """Run many simulations in parallel, each remembered on its own: a killed sweep goes on.

        The longest ``cases`` should come first; returned is what the measure of each gives, by
        label and in the same order. ``workers`` are processes on this machine, by default one per
        CPU, in a batch this notebook's share of them; with ``repro run --backend dask`` its workers
        run the cases.

        Examples
        --------
        >>> from repro.figures.sweep import Case
        >>> fig = figure("tiresias/fig10_testbed_jct")
        >>> cases = {n: Case("testbed", "2x4", "srtf", options={"jobs": n}) for n in (9, 6)}
        >>> [len(result.jobs) for result in fig.sweep(cases, workers=1).values()]
        [9, 6]
        """
        # Of the traces of a seed, which differ in length and rate, the last is recorded.
        named = [case for case in cases.values() if isinstance(case.trace, str)]
        for (name, seed), case in {(case.trace, case.seed): case for case in named}.items():
            length = {"jobs": 1} if isinstance(case.measure, MeasuredJobs) else {}
            self.trace(str(name), seed, **{**length, **case.options})
        resolved = [self._resolved(case) for case in cases.values()]
        found = sweep.run(resolved, workers, self._simulated)
        self._simulated += len(cases)
        return dict(zip(cases, found, strict=True))

    def _resolved(self, case: Case) -> Case:
        """Return a case with its parts made, and record the data that it names."""
        if isinstance(case.trace, pd.DataFrame):
            # read past :meth:`trace`, so that nothing else says where from
            read = case.trace.attrs.get("sha256")
            name = str(case.trace.attrs.get("name"))
            if read and read not in {used.sha256 for used in self._used.values()}:
                kind = data.PUBLIC if public.is_known(name) else data.OWN
                self._note(data.Used(name, kind, read, False))
        cluster = case.cluster
        if str(cluster).lower().endswith(FILE_SUFFIXES) and not isinstance(cluster, Cluster):
            cluster = str(self.file(cluster))
        settings = dict(case.settings)
        options = dict(case.options)
        if isinstance(settings.get("perf"), str):
            self.throughputs(settings["perf"])
        for given, name in ((settings, "perf"), (options, "throughputs")):
            if isinstance(given.get(name), str) and data.is_own(given[name]):
                given[name] = str(data.own_path(given[name]))
        found = replace(case, cluster=cluster, settings=settings, options=options)
        resolved = found.resolved()
        for name in sweep.named_files(resolved.policy):
            self._note(data.describe_file(name))
        return resolved

    def save(
        self,
        plot: Figure,
        table: pd.DataFrame,
        values: Mapping[str, Any] | None = None,
        points: pd.DataFrame | None = None,
    ) -> pd.DataFrame:
        """Judge the claims, write picture, table, points and ``result.json``; return the verdicts.

        The plot gets its title line here, and is shown if no cell has done so; the table of plotted
        values is written without its index. The verdicts are a table of claims, which a notebook
        shows below a sentence of what came out.
        ``values`` holds what this run found, ``{claim id: number, bool or list}``, None where not
        comparable; a ClaimError if they do not match the claims. ``points`` are published numbers
        beside ours: columns series, x, quantity, published, ours, unit, certainty; data and rules
        where they are not the figure's; aside for those not to be counted. Claims add their own.
        """
        stand_in = self._stand_in()
        facts = {
            "data": "stand-in" if stand_in else self._spec.data,
            "rules": params.judged_rules(self.inputs),
        }
        given = [] if points is None else read_points(points, **facts)
        verdicts = judge_all(self._spec.claims, values or {}, given)
        judged = [*given, *points_of(verdicts, given, **facts)]
        run = {name: getattr(self, name) for name in ("id", "profile", "seed")}
        run |= {"stand_in": stand_in, "notes": self._notes, "params": dict(self.inputs)}
        drawn = self._drawn | {one.seed for one in self._used.values() if one.seed is not None}
        caption(plot, saved.title_line(self._spec, run, verdicts, drawn))
        files = {f"{self._stem}.{suffix}": render(plot, suffix) for suffix in ("png", "svg")}
        files[f"{self._stem}.csv"] = saved.table_bytes(table, run)
        points_file = f"{self._stem}.points.csv"
        if judged:
            columns = [*COLUMNS, *["aside"] * any(point.aside for point in judged)]
            shown = pd.DataFrame([point.row() for point in judged], columns=columns)
            files[points_file] = saved.table_bytes(shown, run)
        used = sorted(self._used.values(), key=lambda one: (one.name, one.kind, one.seed or 0))
        result = saved.result(self._spec, run, verdicts, judged, list(map(asdict, used)))
        result["files"] = {name: saved.checksum(content) for name, content in files.items()}
        # Cells run by hand may differ from the file; their result does not stand for it.
        if self._kernel.is_faithful():
            result["fingerprint"] = self._fingerprint
        result["wall_s"] = round(time.perf_counter() - self._started, 3)
        saved.sweep(self.folder)
        if not judged:
            (self.folder / points_file).unlink(missing_ok=True)
        for name, content in files.items():
            write_whole(self.folder / name, content)
        write_whole(self.folder / saved.RESULT, saved.to_json(result))
        if isinstance(plot, Chart) and not plot.shown and shell() is not None:
            plot._ipython_display_()
        return saved.Verdicts.of(verdicts, judged, saved.remarks(run))

    def _note(self, used: data.Used) -> None:
        """Record a data set."""
        self._used[used.name, used.kind, used.seed] = used

    def _stand_in(self) -> str | None:
        """Return what stands in for real data."""
        drawn = sorted({u.name for u in self._used.values() if u.kind == data.STAND_IN})
        parts = [self._spec.stand_in] if self._spec.stand_in else []
        if drawn:
            parts.append(f"{data.STAND_IN} for {', '.join(drawn)}")
        return "; ".join(parts) or None


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
        Which size to run.
    seed : int
        Seed of the run.
    out : str or Path
        Folder of results; a relative one is taken from the top of the checkout, or, when papermill
        was given it, from the folder where that was started.
    **overrides
        Inputs to replace; None leaves an input as the parameter file has it.

    Examples
    --------
    >>> figure("tiresias/fig10_testbed_jct", seed=3)
    <figure tiresias/fig10_testbed_jct, profile quick, seed 3>
    """
    root = paths.project_root()
    entry = params.FigureEntry(id, root)
    if id.count("/") != 1 or not entry.params.is_file():
        entry = params.resolve(id, params.discover(root))
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise ParamError(f"seed is {seed!r}; give a whole number of 0 or more")
    kernel = Kernel.running(entry)
    top = Path.cwd() if "out" in kernel.given else root
    return FigureRun(entry, profile, seed, top / Path(out).expanduser(), overrides, kernel)
