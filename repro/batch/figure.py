"""What a notebook works with: inputs, traces, simulations, random streams, and one way to save."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from repro import params, paths
from repro.batch import cache, data, record
from repro.batch.files import RESULT, sweep, to_json, write_whole
from repro.claims import judge_all
from repro.errors import ParamError

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure

    from repro.perf.throughput import ThroughputTable
    from repro.sim.records import Result


class Inputs(Mapping[str, Any]):
    """The inputs of a run, read by key or by attribute.

    Examples
    --------
    >>> inputs = Inputs({"cluster": "15x4", "seeds": [0, 1]})
    >>> inputs["cluster"], inputs.seeds
    ('15x4', [0, 1])
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = dict(values)

    def __getitem__(self, key: str) -> Any:
        if key not in self._values:
            raise ParamError(f"no input {key!r} (inputs: {', '.join(self._values) or 'none'})")
        return self._values[key]

    def __getattr__(self, key: str) -> Any:
        if key.startswith("_"):
            raise AttributeError(key)
        try:
            return self[key]
        except ParamError as error:
            raise AttributeError(str(error)) from None

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Inputs({self._values!r})"


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
    ) -> None:
        self._started = time.perf_counter()
        self._spec = entry.load()
        self._used: dict[tuple[str, str, int | None], data.Used] = {}
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
        """Return a named trace and record where it came from.

        Parameters
        ----------
        name : str
            A generator or a public trace; see ``repro trace list``.
        seed : int, optional
            Instead of the figure's seed; the same name and seed give the same trace everywhere.
        **options
            Passed to the generator or the loader.

        Raises
        ------
        ParamError
            If nothing has this name.
        DataMissingError
            If a public trace cannot be had and has no stand-in.
        """
        frame, used = data.open_trace(name, self.seed if seed is None else seed, **options)
        self._note(used)
        return frame

    def throughputs(self, name: str) -> ThroughputTable:
        """Return a named throughput table and record where it came from.

        Parameters
        ----------
        name : str
            As for `repro.perf.throughput_files.load_throughputs`.
        """
        from repro.perf.throughput_files import is_stand_in, load_throughputs

        table = load_throughputs(name)
        replaced = is_stand_in(name)
        kind = data.STAND_IN if replaced else data.PUBLIC
        checksum = None if replaced else data.describe_file(name).sha256
        self._note(data.Used(name, kind, checksum, replaced))
        return table

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
            ``8x8``, ``36xv100,36xk80``, a file, or a Cluster.
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
        return cache.cached_simulate(trace, cluster, chosen, rules=rules, **settings)

    def save(
        self, plot: Figure, table: pd.DataFrame, values: Mapping[str, Any] | None = None
    ) -> pd.DataFrame:
        """Judge the claims and write picture, table and record.

        Parameters
        ----------
        plot : Figure
            Gets its title line here.
        table : DataFrame
            The plotted values; written without its index.
        values : mapping
            ``{claim id: number, bool or list}`` found by this run; None where not comparable.

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

        verdicts = judge_all(self._spec.claims, values or {})
        stand_in = self._stand_in()
        run = {"profile": self.profile, "seed": self.seed, "stand_in": stand_in}
        caption(plot, record.title_line(self._spec, run, verdicts))
        files = {
            "png": render(plot, "png"),
            "svg": render(plot, "svg"),
            "csv": record.table_bytes(table, stand_in),
        }
        used = sorted(self._used.values(), key=lambda one: (one.name, one.kind, one.seed or 0))
        result = record.result(
            self.id, self._spec, run, verdicts, dict(self.inputs), [one.row() for one in used]
        )
        result["wall_s"] = round(time.perf_counter() - self._started, 3)
        sweep(self.folder)
        for suffix, content in files.items():
            write_whole(self.folder / f"{self._stem}.{suffix}", content)
        write_whole(self.folder / RESULT, to_json(result))
        return record.verdict_frame(verdicts, stand_in)

    def replaced(self, name: str) -> None:
        """Record that something else stands in for what the figure should use."""
        self._note(data.Used(name, data.STAND_IN, None, False))

    def _note(self, used: data.Used) -> None:
        self._used[used.name, used.kind, used.seed] = used

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
        Folder of results; a relative one is taken from the top of the checkout.
    **overrides
        Inputs to replace; None leaves an input as the parameter file has it.

    Returns
    -------
    FigureRun

    Raises
    ------
    ParamError
        For an unknown figure, profile or input.

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
    return FigureRun(entry, profile, seed, root / Path(out).expanduser(), overrides)
