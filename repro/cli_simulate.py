"""``repro simulate``: any trace, any cluster, any policy; and the list of policies."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from repro.errors import ParamError

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("job_id", "submit_time", "start_time", "end_time", "jct", "num_gpus")
_WORDS = {"true": True, "false": False, "none": None}


def simulate(
    trace: Annotated[
        str, typer.Option(metavar="FILE|NAME", help="A file, a generator or a public trace.")
    ],
    cluster: Annotated[str, typer.Option(metavar="SPEC", help="8x8, 8x4:v100, 36xv100, or FILE.")],
    policy: Annotated[str, typer.Option(metavar="NAME", help="See `repro policies`.")],
    format: Annotated[str | None, typer.Option(metavar="F", help="Format of the file.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="K=V", help="Parameter of the policy; lists by commas."),
    ] = None,
    placement: Annotated[str | None, typer.Option(metavar="NAME", help="Placement rule.")] = None,
    interval: Annotated[
        float | None, typer.Option(metavar="S", help="Decide only every S seconds.")
    ] = None,
    rules: Annotated[str, typer.Option(help="paper, or a public simulator's rules.")] = "paper",
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of what is drawn.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, nothing else.")] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="JOBS.csv", help="Write one row per job.")
    ] = None,
) -> None:
    """Simulate a trace on a cluster under a policy and print the headline numbers."""
    import repro
    from repro.batch.files import to_json, write_whole
    from repro.cluster.spec import Cluster
    from repro.policies.base import make

    if seed < 0:
        raise ParamError(f"--seed {seed}: give a whole number of 0 or more")
    machines = Cluster.parse(cluster)
    chosen = make(policy, rules, **parse_settings(settings or []))
    frame = _trace(trace, format, machines.num_gpus, seed)
    result = repro.simulate(
        frame,
        machines,
        chosen,
        placement=placement,
        rules=rules,
        interval=interval,
        seed=seed,
    )
    if out is not None:
        write_whole(out, jobs_csv(result.jobs).encode())
    summary = result.summary()
    typer.echo(to_json(summary).decode().rstrip() if as_json else "\n".join(_table(summary)))


def parse_settings(pairs: list[str]) -> dict[str, Any]:
    """Return policy parameters from ``K=V`` texts.

    Parameters
    ----------
    pairs : list of str
        Values are whole numbers, numbers (``inf`` too), true, false, none, or text; a comma makes
        a tuple.

    Raises
    ------
    ParamError
        For a text without ``=`` and for a parameter with an option of its own.

    Examples
    --------
    >>> parse_settings(["thresholds=3250,7200", "promote_knob=inf", "exact=true"])
    {'thresholds': (3250, 7200), 'promote_knob': inf, 'exact': True}
    """
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        name = name.strip()
        if not equals or not name:
            raise ParamError(f"--set {pair}: expected K=V, such as thresholds=3250,7200")
        if name in ("name", "rules"):
            raise ParamError(f"--set {pair}: use --{'policy' if name == 'name' else name} instead")
        parts = [part for part in value.split(",") if part.strip() or "," not in value]
        items = tuple(_scalar(part.strip()) for part in parts)
        found[name] = items if "," in value else items[0]
    return found


def jobs_csv(jobs: pd.DataFrame) -> str:
    """Return the jobs table of a run as CSV, whole numbers without a decimal point.

    Examples
    --------
    >>> import pandas as pd
    >>> row = {"job_id": 1, "submit_time": 0.0, "start_time": 0.5, "end_time": 3.0, "jct": 3.0}
    >>> print(jobs_csv(pd.DataFrame([row | {"num_gpus": 2}])).splitlines()[1])
    1,0,0.5,3,3,2
    """
    shown = jobs.loc[:, list(COLUMNS)].copy()
    for name in COLUMNS:
        if shown[name].dtype.kind == "f":
            shown[name] = [_number(value) for value in shown[name].tolist()]
    return str(shown.to_csv(index=False, lineterminator="\n"))


def policy_rows() -> list[dict[str, Any]]:
    """Return name, one-line summary, parameters with defaults and needs of every policy."""
    from repro.policies.base import policies

    rows = []
    for name in policies:
        cls = policies[name]
        summary = (cls.__doc__ or "").strip().splitlines()
        rows.append(
            {
                "name": name,
                "summary": summary[0] if summary else "",
                "parameters": {f.name: _default(f) for f in dataclasses.fields(cls)},
                "needs": sorted(cls.needs),
                "placement": cls.placement,
            }
        )
    return rows


def _trace(name: str, format: str | None, gpus: int, seed: int) -> pd.DataFrame:
    from repro.trace.load import load

    if Path(name).exists():
        return load(name, format, cluster_gpus=gpus)
    from repro.batch.data import open_trace
    from repro.trace import synth

    if not synth.is_known(name):
        return load(name, format, cluster_gpus=gpus)
    if format is not None:
        raise ParamError(f"--format {format}: {name!r} is a generator, not a file")
    return open_trace(name, seed)[0]


def _scalar(text: str) -> Any:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _number(value: float) -> str:
    if value != value:
        return ""
    return str(int(value)) if value == int(value) else repr(value)


def _default(field: dataclasses.Field[Any]) -> str:
    if field.default is not dataclasses.MISSING:
        return repr(field.default)
    return "…" if field.default_factory is dataclasses.MISSING else repr(field.default_factory())


def _table(summary: dict[str, Any]) -> list[str]:
    units = dict.fromkeys(
        ("avg_jct", "median_jct", "p95_jct", "p99_jct", "makespan", "avg_queueing", "wall_s"), " s"
    )
    width = max(map(len, summary))
    rows = []
    for name, value in summary.items():
        shown = f"{value:,.3f}" if isinstance(value, float) else str(value)
        if name == "utilisation":
            shown = f"{value:.1%}"
        rows.append(f"{name:<{width}}  {shown}{units.get(name, '')}")
    return rows
