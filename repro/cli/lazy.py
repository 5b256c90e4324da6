"""Groups of commands of which only the one asked for is imported."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup


class LazyGroup(TyperGroup):
    """Commands by name: where each is, and the line that helps say of it."""

    #: name -> ("module:function", line), the module being one of `repro.cli`
    places: ClassVar[Mapping[str, tuple[str, str]]] = {}

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        first = {
            name: TyperCommand(name, help=line, rich_markup_mode=None)
            for name, (_, line) in self.places.items()
        }
        self.commands = {**first, **self.commands}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Show the help where no command is given."""
        return super().parse_args(ctx, args if args or ctx.resilient_parsing else ["--help"])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Import the command that is asked for."""
        name, command, rest = super().resolve_command(ctx, args)
        if name is not None and name in self.places:
            module, _, function = self.places[name][0].partition(":")
            app = typer.Typer(
                add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False
            )
            app.command(name)(getattr(importlib.import_module(f"repro.cli.{module}"), function))
            command = typer.main.get_command(app)
        return name, command, rest
