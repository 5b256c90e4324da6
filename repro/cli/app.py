"""The command line: figures, simulations, single decisions, policies, traces, the course."""

import importlib
import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup

from repro.base.errors import ParamError, PolicyError, ReproError
from repro.base.release import VERSION
from repro.cli.lines import complain, join_pairs, warnings_in_lines

#: What a shell reports of a command that Ctrl-C has ended.
INTERRUPTED = 130
# Typer may bring a click of its own, so the base of its errors is taken from one of them.
_CLICK_ERROR: type[typer.BadParameter] = next(
    base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException"
)
_HELP = {"help_option_names": ["--help", "-h"]}


class OnceCommand(TyperCommand):
    """Command that refuses a second value of an option that has one."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Count the options before the parser keeps the last of each."""
        if not ctx.resilient_parsing:
            order = self.make_parser(ctx).parse_args(args=list(args))[2]
            for param, times in Counter(order).items():
                # a switch says the same twice
                single = not getattr(param, "multiple", False) and not _is_switch(param)
                if single and times > 1:
                    raise ParamError(
                        f"{param.opts[0]} is given {times} times; give it once, and run the "
                        f"command once for each value"
                    )
        return super().parse_args(ctx, args)


def _is_switch(param: Any) -> bool:
    """Whether an option is a switch that can only be turned on."""
    return getattr(param, "is_flag", False) and not param.secondary_opts


class LazyGroup(TyperGroup):
    """Commands of which only the one asked for is imported."""

    #: package of the modules
    home: ClassVar[str] = "repro.cli"
    #: name -> ("module:function", the line that the help says of it)
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
            app.command(name, cls=OnceCommand)(
                getattr(importlib.import_module(f"{self.home}.{module}"), function)
            )
            command = typer.main.get_command(app)
        return name, command, rest


class Commands(LazyGroup):
    """What stands directly after ``repro``."""

    places: ClassVar = {
        "list": ("figures:list_", "List the figures and tables that can be regenerated."),
        "run": (
            "run:run",
            "Regenerate figures and tables; write the gallery page; exit 1 if a notebook failed.",
        ),
        "check": (
            "figures:check",
            "Print the verdicts of the last results; exit 1 on a miss without a recorded "
            "deviation.",
        ),
        "report": (
            "figures:report",
            "Write the gallery page beside the last results and print its path.",
        ),
        "simulate": (
            "simulate:simulate",
            "Simulate a trace on a cluster under a policy and print the headline numbers.",
        ),
        "place": (
            "place:place",
            "Place jobs on a cluster in one decision: nodes, costs, scores, run times.",
        ),
        "front": (
            "front:front",
            "Search for configurations of PCS that no other beats in what is preferred.",
        ),
        "policies": ("policies:policies_", "List the scheduling policies with their parameters."),
        "new-policy": (
            "policies:new_policy",
            "Write repro/policies/PAPER/NAME.py, an ordering policy, and its test.",
        ),
    }
    #: Groups of other distributions: name -> (line of the help, message where it is not installed).
    elsewhere: ClassVar[Mapping[str, tuple[str, str]]] = {
        "course": (
            "Release assignments to students, grade what comes back.",
            "the course tools are a distribution of their own: `pip install ./course` in a "
            "checkout",
        ),
    }

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, (line, _) in self.elsewhere.items():
            self.commands[name] = TyperCommand(name, help=line, rich_markup_mode=None)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Import the group of another distribution if one of its commands is asked for."""
        name, command, rest = super().resolve_command(ctx, args)
        if name in self.elsewhere:
            entry_points = importlib.import_module("repro.cli.entry_points")
            found = entry_points.group(name)
            if found is None and not ctx.resilient_parsing:
                raise ParamError(self.elsewhere[name][1])
            command = found or command
        return name, command, rest


class TraceCommands(LazyGroup):
    """What stands after ``repro trace``."""

    places: ClassVar = {
        "list": ("trace:list_", "List the public files, and which of them are here."),
        "formats": (
            "trace:formats",
            "List the formats of traces: what each reads, its columns and options.",
        ),
        "fetch": ("trace:fetch", "Bring public files here, verified; print where each is."),
        "info": (
            "trace:info",
            "Print jobs, span, GPU mix, duration quantiles and offered load of a trace.",
        ),
        "convert": (
            "trace:convert",
            "Write a trace as CSV in the package's own columns, validated.",
        ),
    }


app = typer.Typer(
    cls=Commands,
    epilog="Add --debug to any command to see the traceback of an error.",
    context_settings=_HELP,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
trace = typer.Typer(cls=TraceCommands, context_settings=_HELP, rich_markup_mode=None)
app.add_typer(trace, name="trace")


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"repro {VERSION}")
        raise typer.Exit


@app.callback()
def _top(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Regenerate the figures and tables of five papers on GPU cluster scheduling."""


@trace.callback()
def _trace() -> None:
    """Public and own traces: list, fetch, look at, convert."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0 fine, 1 a check failed, 2 bad input, 130 interrupted."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"]
    try:
        with warnings_in_lines():
            given = {"args": join_pairs(words), "prog_name": "repro", "obj": {"debug": debug}}
            code = app(standalone_mode=False, **given)
        if code == INTERRUPTED:
            complain("interrupted")
        return code if isinstance(code, int) else 0
    except BrokenPipeError:
        # The reader (head, less) has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (ReproError, OSError) as error:
        if debug:
            raise
        # of an error in a policy's own code
        more = isinstance(error, PolicyError) and error.__cause__ is not None
        first, *items = error.args if isinstance(error, ReproError) else [str(error)]
        complain(f"{first}{'; --debug shows the traceback' if more else ''}", *items)
        return 2
    except typer.Abort:
        complain("interrupted")
        return INTERRUPTED
    except _CLICK_ERROR as error:
        if debug:
            raise
        complain(error.format_message() or "see `repro --help`")
        return 2
