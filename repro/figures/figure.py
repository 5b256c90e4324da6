"""What a notebook works with: inputs, traces, simulations, random streams, and one way to save."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from repro import paths
from repro.cluster.spec import FILE_SUFFIXES, Cluster
from repro.errors import ParamError
from repro.figures import cache, data, params, record
from repro.figures.claims import judge_all, points_of
from repro.figures.fingerprint import fingerprint
from repro.figures.inputs import Inputs
from repro.figures.notebook import Kernel
from repro.figures.points import read_points
from repro.figures.progress import tell_points
from repro.figures.result_files import RESULT, sweep, to_json
from repro.figures.saved import checksum
from repro.files import public
from repro.files.whole import write_whole
from repro.trace.load import load

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure

    from repro.core.records import Result
    from repro.perf.throughput import ThroughputTable


class FigureRun:
    """One figure or table being regenerated; made by :func:`figure`.

    Attributes
    ----------
    id, paper, profile : str
        Which figure, of which paper, at which size.
    seed : int
        Seed of everything that is drawn unless a call names another.
    inputs : Inputs
        The parameter file's inputs after profile and overrides.
    published : dict
        Published value of each claim by claim id, for drawing beside ours.
    folder : Path
        Where :meth:`save` writes.
    """

    def __init__(
        self,
        entry: params.Entry,
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
        self._simulated = 0
        self._kernel = kernel
        own = {name: kernel.given[name] for name in kernel.given if name not in ("profile", "out")}
        # before anything runs: a file that changes meanwhile makes the result old, not wrong
        self._fingerprint = fingerprint(entry, profile, own)
        self.id, self.paper = entry.id, entry.paper
        self.profile, self.seed = profile, seed
        self.inputs = Inputs(self._spec.merged(profile, overrides))
        self.published = {claim.id: claim.published for claim in self._spec.claims}
        self.folder = out / entry.paper / entry.stem
        self._stem = entry.stem

    def __repr__(self) -> str:
        return f"<figure {self.id}, profile {self.profile}, seed {self.seed}>"

    def rng(self, purpose: str, seed: int | None = None) -> np.random.Generator:
        """Return the generator of this figure for one purpose.

        Parameters
        ----------
        purpose : str
            What is drawn; two purposes never share a stream.
        seed : int, optional
            Instead of the figure's seed.
        """
        return data.stream(self.id, self.seed if seed is None else seed, purpose)

    def trace(self, name: str, seed: int | None = None, **options: Any) -> pd.DataFrame:
        """Return a named trace, or one of the user's own, and record where it came from.

        Parameters
        ----------
        name : str
            A generator or a public trace, see ``repro trace list``; or the path of a file, from
            the project's root, with its ``format``.
        seed : int, optional
            Instead of the figure's seed; the same name and seed give the same trace everywhere.
        **options
            Passed to the generator or the loader; ``throughputs`` may be an own file, too.

        Raises
        ------
        ParamError
            If nothing has this name.
        DataMissingError
            If a public trace cannot be had and has no stand-in.
        TraceError
            If an own file breaks a rule of its format.
        """
        speeds = options.get("throughputs")
        if speeds is not None and data.is_own(speeds):
            options["throughputs"] = str(self.file(speeds))
        drawn = self.seed if seed is None else seed
        if data.is_own(name):
            return load(self.file(name), **options)
        frame, used = data.open_trace(name, drawn, **options)
        self._note(used)
        return frame

    def throughputs(self, name: str) -> ThroughputTable:
        """Return a throughput table and record where it came from.

        Parameters
        ----------
        name : str
            As for `repro.perf.throughput_files.load_throughputs`; a file by its path from the
            project's root.
        """
        from repro.perf.throughput_files import is_stand_in, load_throughputs

        if data.is_own(name):
            return load_throughputs(self.file(name))
        table = load_throughputs(name)
        replaced = is_stand_in(name)
        kind = data.STAND_IN if replaced else data.PUBLIC
        content = None if replaced else data.describe_file(name).sha256
        self._note(data.Used(name, kind, content, replaced))
        return table

    def file(self, path: str | Path) -> Path:
        """Record a file of the user's own, so that the figure runs again once it has changed.

        Parameters
        ----------
        path : str or Path
            From the project's root.

        Returns
        -------
        Path
            Where it is, to be read.

        Raises
        ------
        DataMissingError
            If there is no such file.
        """
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
        cluster: Any,
        policy: Any,
        rules: str = "paper",
        **settings: Any,
    ) -> Result:
        """Run ``repro.simulate``, or remember the same run from earlier.

        Parameters
        ----------
        trace : DataFrame
            From :meth:`trace`, whole or in part.
        cluster : Cluster or str
            ``8x8``, ``36xv100,36xk80``, a Cluster, or a file by its path from the project's root.
        policy : Policy or str
            A policy or a registered name.
        rules : str
            Event rules, ``paper`` or those of a public simulator.
        **settings
            placement, perf, overhead, interval … of ``repro.simulate``.

        Returns
        -------
        Result
        """
        chosen = cache.resolved(policy, rules)
        for name in cache.named_files(chosen):
            self._note(data.describe_file(name))
        if str(cluster).lower().endswith(FILE_SUFFIXES) and not isinstance(cluster, Cluster):
            cluster = self.file(cluster)
        self._note_source(trace)
        result = cache.cached_simulate(trace, cluster, chosen, rules=rules, **settings)
        self._simulated += 1
        tell_points(self._simulated)
        return result

    def save(
        self,
        plot: Figure,
        table: pd.DataFrame,
        values: Mapping[str, Any] | None = None,
        points: pd.DataFrame | None = None,
    ) -> pd.DataFrame:
        """Judge the claims and write picture, table, points and record.

        Parameters
        ----------
        plot : Figure
            Gets its title line here.
        table : DataFrame
            The plotted values; written without its index.
        values : mapping
            ``{claim id: number, bool or list}`` found by this run; None where not comparable.
        points : DataFrame, optional
            Published numbers beside ours: columns series, x, quantity, published, ours, unit,
            certainty, and data and rules where they are not those of the figure. Those of claims
            with a published number come in by themselves.

        Returns
        -------
        DataFrame
            One row per claim with its verdict.

        Raises
        ------
        ClaimError
            If claims and values do not match.
        """
        from repro.plot.style import caption, render

        stand_in = self._stand_in()
        facts = {
            "data": "stand-in" if stand_in else self._spec.data,
            "rules": params.judged_rules(dict(self.inputs)),
        }
        given = [] if points is None else read_points(points, **facts)
        verdicts = judge_all(self._spec.claims, values or {}, given)
        judged = [*given, *points_of(verdicts, **facts)]
        run = {
            "id": self.id,
            "profile": self.profile,
            "seed": self.seed,
            "stand_in": stand_in,
            "notes": self._notes,
            "params": dict(self.inputs),
        }
        caption(plot, record.title_line(self._spec, run, verdicts))
        files = {
            f"{self._stem}.png": render(plot, "png"),
            f"{self._stem}.svg": render(plot, "svg"),
            f"{self._stem}.csv": record.table_bytes(table, run),
        }
        if judged:
            files[f"{self._stem}.points.csv"] = record.points_bytes(judged, run)
        used = sorted(self._used.values(), key=lambda one: (one.name, one.kind, one.seed or 0))
        rows = [one.row() for one in used]
        result = record.result(self._spec, run, verdicts, judged, rows)
        result["files"] = {name: checksum(content) for name, content in files.items()}
        # only what the notebook's file says makes a result that the file need not run again for
        if self._kernel.is_faithful():
            result["fingerprint"] = self._fingerprint
        result["wall_s"] = round(time.perf_counter() - self._started, 3)
        sweep(self.folder)
        for name, content in files.items():
            write_whole(self.folder / name, content)
        write_whole(self.folder / RESULT, to_json(result))
        return record.verdict_frame(verdicts, stand_in)

    def _note(self, used: data.Used) -> None:
        self._used[used.name, used.kind, used.seed] = used

    def _note_source(self, trace: pd.DataFrame) -> None:
        """Record a trace that was read past :meth:`trace`; where from is not known."""
        read, name = trace.attrs.get("sha256"), str(trace.attrs.get("name"))
        if read and read not in {used.sha256 for used in self._used.values()}:
            kind = data.PUBLIC if public.is_known(name) else data.OWN
            self._note(data.Used(name, kind, read, False))

    def _stand_in(self) -> str | None:
        drawn = sorted({u.name for u in self._used.values() if u.kind == data.STAND_IN})
        parts = [self._spec.stand_in] if self._spec.stand_in else []
        if drawn:
            parts.append(f"{data.STAND_IN} for {', '.join(drawn)}")
        return "; ".join(parts) or None


def figure(
    id: str, *, profile: str = "quick", seed: int = 0, out: str | Path = "build/figures",
    **overrides: Any,
) -> FigureRun:  # fmt: skip
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

    Returns
    -------
    FigureRun

    Raises
    ------
    ParamError
        For an unknown figure, profile or input, and for a parameter given to papermill that the
        notebook does not have.

    Examples
    --------
    >>> figure("tiresias/fig10_testbed_jct", seed=3)
    <figure tiresias/fig10_testbed_jct, profile quick, seed 3>
    """
    root = paths.project_root()
    entry = params.Entry(id, root / "notebooks" / f"{id}.ipynb", root / "params" / f"{id}.yaml")
    if id.count("/") != 1 or not entry.params.is_file():
        entry = params.resolve(id, params.discover(root))
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise ParamError(f"seed is {seed!r}; give a whole number of 0 or more")
    kernel = Kernel.running(entry)
    top = Path.cwd() if "out" in kernel.given else root
    return FigureRun(entry, profile, seed, top / Path(out).expanduser(), overrides, kernel)
