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

#: Exit code of a command that Ctrl-C ended, the same as in shells.
INTERRUPTED = 130
# Typer may carry its own copy of click, so ClickException is taken from the bases of a Typer error.
_CLICK_ERROR: type[typer.BadParameter] = next(
    base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException"
)
_HELP = {"help_option_names": ["--help", "-h"]}


class OnceCommand(TyperCommand):
    """Command that refuses a second value of an option that takes one value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse repeated options, of which the parser would keep the last."""
        if not ctx.resilient_parsing:
            # the parser lists an option once for each time it is passed
            passed_params = self.make_parser(ctx).parse_args(args=list(args))[2]
            for param, times in Counter(passed_params).items():
                # a repeated switch changes nothing
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
    """Commands that are imported when they run."""

    #: Package of the modules.
    package: ClassVar[str] = "repro.cli"
    #: Name -> ("module:function", line of the help).
    targets: ClassVar[Mapping[str, tuple[str, str]]] = {}
    #: Words between ``repro`` and the name of a command.
    words: ClassVar[str] = ""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        listed = {
            name: TyperCommand(name, help=line, rich_markup_mode=None)
            for name, (_, line) in self.targets.items()
        }
        self.commands = {**listed, **self.commands}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Show the help if no command is given."""
        return super().parse_args(ctx, args if args or ctx.resilient_parsing else ["--help"])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Import the command that is to run; for completion, build it from a table."""
        name, command, remaining = super().resolve_command(ctx, args)
        if name is not None and name in self.targets:
            if ctx.resilient_parsing:
                table = importlib.import_module("repro.cli.completion_table")
                return name, table.command(name, f"{self.words} {name}".strip()), remaining
            module, _, function = self.targets[name][0].partition(":")
            app = typer.Typer(
                add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False
            )
            app.command(name, cls=OnceCommand)(
                getattr(importlib.import_module(f"{self.package}.{module}"), function)
            )
            command = typer.main.get_command(app)
        return name, command, remaining


class Commands(LazyGroup):
    """Commands directly after ``repro``."""

    targets: ClassVar = {
        "list": ("figures:list_", "List the figures and tables that can be regenerated."),
        "run": (
            "run:run_figures",
            "Regenerate figures and tables; write the gallery page; exit 1 if a notebook failed.",
        ),
        "plan": (
            "plan:plan_figures",
            "Print the critical path of figures and their time on N workers, from recorded CPU "
            "times.",
        ),
        "check": (
            "figures:check_figures",
            "Print the verdicts of the last results; exit 1 on a miss without a recorded "
            "deviation.",
        ),
        "report": (
            "figures:report",
            "Write the gallery page next to the last results and print its path.",
        ),
        "crate": (
            "crate:crate",
            "Write results as a research object (Workflow Run RO-Crate) for an archive.",
        ),
        "schema": (
            "schema:schema",
            "Print the JSON schema of a document that repro writes, or list the documents.",
        ),
        "simulate": (
            "simulate:simulate_trace",
            "Simulate a trace on a cluster under a policy and print the headline numbers.",
        ),
        "compare": (
            "compare:compare_policies",
            "Compare policies on the same jobs under equal terms; print means with 95 % intervals.",
        ),
        "place": (
            "place:place_jobs",
            "Place Liquid's jobs in one decision; print nodes, costs, scores and run times.",
        ),
        "front": (
            "front:search_front",
            "Search for the Pareto front of a policy's configurations in the preferred metrics.",
        ),
        "policies": ("policies:policies_", "List the policies by paper, or explain one of them."),
        "new-policy": (
            "policies:new_policy",
            "Write repro/policies/PAPER/NAME.py, an ordering policy, and its test.",
        ),
    }
    #: Groups of other distributions: name -> (line of the help, message where it is not installed).
    external_groups: ClassVar[Mapping[str, tuple[str, str]]] = {
        "course": (
            "Release assignments to students, grade what comes back.",
            "the course tools are a distribution of their own: `pip install ./course` in a "
            "checkout",
        ),
    }

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, (line, _) in self.external_groups.items():
            self.commands[name] = TyperCommand(name, help=line, rich_markup_mode=None)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Import the group of another distribution if one of its commands is to run."""
        name, command, remaining = super().resolve_command(ctx, args)
        if name in self.external_groups:
            entry_points = importlib.import_module("repro.cli.entry_points")
            group = entry_points.group(name)
            if group is None and not ctx.resilient_parsing:
                raise ParamError(self.external_groups[name][1])
            command = group or command
        return name, command, remaining


class TraceCommands(LazyGroup):
    """Commands after ``repro trace``."""

    words: ClassVar = "trace"
    targets: ClassVar = {
        "list": ("trace:list_", "List the public files, and whether each is available here."),
        "formats": (
            "trace:formats",
            "List the formats of traces with their files, columns and options.",
        ),
        "fetch": (
            "trace:fetch_files",
            "Fetch public files, verify their checksums and print their paths.",
        ),
        "info": (
            "trace:info",
            "Print jobs, span, GPU mix, duration quantiles and offered load of a trace.",
        ),
        "doctor": (
            "doctor:doctor",
            "Examine a trace for a cluster: load, jobs, times, queue, policies; exit 1 on an "
            "error.",
        ),
        "convert": (
            "trace:convert",
            "Validate a trace and write it as CSV in the package's own columns, SWF or Batsim.",
        ),
        "dress": (
            "trace:dress_jobs",
            "Sample a model for every job and write the columns that each paper's policies read.",
        ),
    }


class ClusterCommands(LazyGroup):
    """Commands after ``repro cluster``."""

    words: ClassVar = "cluster"
    targets: ClassVar = {
        "show": (
            "cluster:show",
            "Print the topology of a cluster as a tree, with its totals; equal nodes are counted.",
        ),
    }


class MeasureCommands(LazyGroup):
    """Commands after ``repro measure``."""

    words: ClassVar = "measure"
    targets: ClassVar = {
        "profiles": (
            "measure:profiles",
            "Measure random configurations of each job type: times, memory, traffic, power.",
        ),
        "pairs": (
            "measure:pairs",
            "Measure job types alone and in pairs, by time slicing and, if it starts, under MPS.",
        ),
        "stages": (
            "measure:stages",
            "Measure storage, CPU, GPU and network stage of job types, alone and in groups.",
        ),
        "pause": (
            "measure:pause",
            "Measure launch, save, exit, restore and offloading of job types.",
        ),
        "sequence": (
            "measure:sequence",
            "Measure two jobs in a row, with four ways to launch the second.",
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
cluster = typer.Typer(cls=ClusterCommands, context_settings=_HELP, rich_markup_mode=None)
app.add_typer(cluster, name="cluster")
measure = typer.Typer(cls=MeasureCommands, context_settings=_HELP, rich_markup_mode=None)
app.add_typer(measure, name="measure")


def _print_version(is_set: bool) -> None:
    if is_set:
        typer.echo(f"repro {VERSION}")
        raise typer.Exit


@app.callback()
def _repro_options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Regenerate the figures and tables of five papers on GPU cluster scheduling."""


@trace.callback()
def _trace_options() -> None:
    """List, fetch, describe, examine, convert and dress traces."""


@cluster.callback()
def _cluster_options() -> None:
    """Show the topology of clusters."""


@measure.callback()
def _measure_options() -> None:
    """Measure job types on the GPU of this machine, for tables that simulations read."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    0: success, 1: a figure or a check failed, 2: bad input, 3: public data is missing, 130: Ctrl-C.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"]
    try:
        with warnings_in_lines():
            settings = {"args": join_pairs(words), "prog_name": "repro", "obj": {"debug": debug}}
            code = app(standalone_mode=False, **settings)
        if code == INTERRUPTED:
            complain("interrupted")
        return code if isinstance(code, int) else 0
    except BrokenPipeError:
        # A reader such as head has closed the pipe. The flush at exit must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (ReproError, OSError) as error:
        if debug:
            raise
        # An exception raised inside a policy's code is chained to the PolicyError as its cause.
        # SimPy chains an error of the package to a copy of itself, which has no more to show.
        cause = error.__cause__
        while isinstance(cause, ReproError):
            cause = cause.__cause__
        in_policy = isinstance(error, PolicyError) and cause is not None
        first, *items = error.args if isinstance(error, ReproError) else [str(error)]
        complain(f"{first}{'; --debug shows the traceback' if in_policy else ''}", *items)
        return 2
    except typer.Abort:
        complain("interrupted")
        return INTERRUPTED
    except _CLICK_ERROR as error:
        if debug:
            raise
        complain(error.format_message() or "see `repro --help`")
        return 2
