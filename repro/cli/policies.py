"""``repro policies``: every policy with its parameters."""

from __future__ import annotations

import dataclasses
import json
from typing import Annotated, Any

import typer

from repro.core.policy import policies


def policies_(
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON document, nothing else.")
    ] = False,
) -> None:
    """List the scheduling policies with their parameters."""
    rows = [_row(name) for name in policies]
    if as_json:
        typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    width = max((len(row["name"]) for row in rows), default=0)
    for row in rows:
        settings = ", ".join(f"{name}={value}" for name, value in row["parameters"].items())
        typer.echo(f"{row['name']:<{width}}  {row['summary']}")
        if settings:
            typer.echo(f"{'':<{width}}  --set {settings}")


def _row(name: str) -> dict[str, Any]:
    cls = policies[name]
    summary = (cls.__doc__ or "").strip().splitlines()
    return {
        "name": name,
        "summary": summary[0] if summary else "",
        "parameters": {field.name: _default(field) for field in dataclasses.fields(cls)},
        "needs": sorted(cls.needs),
        "placement": cls.placement,
    }


def _default(field: dataclasses.Field[Any]) -> str:
    if field.default is not dataclasses.MISSING:
        return repr(field.default)
    return "…" if field.default_factory is dataclasses.MISSING else repr(field.default_factory())
