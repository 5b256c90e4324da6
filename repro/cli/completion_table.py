"""Options and arguments of all commands as a table, for completion in shells.

A command imports pandas and more as it is loaded. Completion reads the table instead, builds the
command without its code, and calls a function of `repro.cli.complete`. ``python
docs/completion.py`` writes the table, and a test compares it with the commands.
"""

import importlib
import inspect
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from repro.cli import complete

TABLE = Path(__file__).with_name("completion.json")
#: Row of a parameter.
Row = dict[str, Any]


def command(name: str, path: str) -> Any:
    """Command with the options and arguments of the table, and without code.

    Parameters
    ----------
    name : str
        Last word of the command.
    path : str
        All words of the command, such as ``trace info``.
    """
    rows = json.loads(TABLE.read_text("utf-8")).get(path, [])

    def run(**values: Any) -> None:
        pass

    parameters = [_parameter(row) for row in rows]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(name)(run)
    return typer.main.get_command(app)


def rows_of(function: Callable[..., Any], built: Any) -> Iterator[Row]:
    """Rows of the parameters of a command; ``built`` is what typer makes of its ``function``."""
    completions = {
        name: completion.__name__
        for name, parameter in inspect.signature(function, eval_str=True).parameters.items()
        for entry in get_args(parameter.annotation)[1:]
        if (completion := getattr(entry, "autocompletion", None)) is not None
    }
    for param in built.params:
        if param.name == "help":
            continue
        is_option = param.param_type_name == "option"
        flags = "/".join(filter(None, (",".join(param.opts), ",".join(param.secondary_opts))))
        yield {
            "name": param.name,
            "flags": flags if is_option else "",
            "switch": bool(getattr(param, "is_flag", False)),
            "several": bool(getattr(param, "multiple", False)) or param.nargs == -1,
            "help": param.help or "",
            "words": completions.get(param.name, ""),
        }


def current(groups: Iterable[Any]) -> dict[str, list[Row]]:
    """Table of the commands of some groups (`repro.cli.app.LazyGroup`) as they are now."""
    table: dict[str, list[Row]] = {}
    for group in groups:
        for name, (target, _) in group.targets.items():
            module, _, function_name = target.partition(":")
            function = getattr(importlib.import_module(f"repro.cli.{module}"), function_name)
            app = typer.Typer(add_completion=False, rich_markup_mode=None)
            app.command(name)(function)
            built = typer.main.get_command(app)
            table[f"{group.words} {name}".strip()] = list(rows_of(function, built))
    return table


def _parameter(row: Row) -> inspect.Parameter:
    """Parameter of a function that typer turns into an option or an argument."""
    completion = getattr(complete, row["words"], None) if row["words"] else None
    value_type: Any = list[str] if row["several"] else str
    if row["switch"]:
        value_type = bool
    declared: Any = (
        typer.Option(*row["flags"].split(","), help=row["help"], autocompletion=completion)
        if row["flags"]
        else typer.Argument(help=row["help"], autocompletion=completion)
    )
    default: Any = False
    if not row["switch"]:
        value_type = value_type | None
        default = None
    kind = inspect.Parameter.KEYWORD_ONLY
    annotation = Annotated[value_type, declared]
    return inspect.Parameter(row["name"], kind, default=default, annotation=annotation)
