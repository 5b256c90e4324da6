"""Completion of the command line: names that fit the beginning of a word.

A shell calls ``repro`` at every TAB. So this module imports neither pandas nor the registries, and
reads names from sources and file names.
"""

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib import metadata, util
from pathlib import Path
from typing import NamedTuple

import typer

from repro.base import paths
from repro.base.errors import ReproError
from repro.base.extras import is_installed
from repro.files import public
from repro.files.guess import UNITS
from repro.measure.job_types import JOB_TYPES
from repro.model.families import ALIASES
from repro.model.registry import names_in_sources
from repro.model.rules import RULES

#: A word and its explanation, which some shells show.
Word = tuple[str, str]
#: Function that completes a parameter of a command.
Completion = Callable[[typer.Context, str], list[Word]]

#: Folder of the package -> group of the entry points of other packages.
_REGISTRIES = {
    "policies": "repro.policies",
    "placement": "repro.placements",
    "trace/formats": "repro.trace_formats",
    "trace/synth": "",
}
#: Words of families that name several policies.
_FAMILIES = {
    "edf": "earliest deadline first",
    "fifo": "first in, first out",
    "ftf": "finish-time fairness",
    "gittins": "Gittins index",
    "las": "least attained service",
    "makespan": "makespan",
    "max-min": "max-min fairness",
    "sjf": "shortest job first",
    "srtf": "shortest remaining time first",
}
#: Tables of models for ``--dress`` and ``--models``.
_TABLES = ("muri", "gavel", "pcs", "liquid", "tiresias")


def _fixed(name: str, words: Mapping[str, str]) -> Completion:
    """Completion by fixed words with explanations.

    ``name`` is the name of the completion in this module.
    """

    def complete(ctx: typer.Context, incomplete: str) -> list[Word]:
        return _fitting(words.items(), incomplete)

    complete.__name__ = name
    return complete


rule_sets = _fixed(
    "rule_sets",
    {name: "the paper" if name == "paper" else "a public simulator" for name in RULES},
)
profiles = _fixed(
    "profiles", {"quick": "small, minutes for all figures", "paper": "the paper's size"}
)
backends = _fixed("backends", {"local": "processes", "dask": "workers of a dask scheduler"})
overheads = _fixed(
    "overheads",
    {
        "none": "preemptions cost nothing",
        "tiresias": "measured by Tiresias (Figure 4)",
        "h100": "measured on one H100",
    },
)
measured_folders = _fixed("measured_folders", {"h100": "measured on one H100"})
slowdowns = _fixed(
    "slowdowns",
    {
        "tiresias": "rates by model (Tiresias, Figure 3)",
        "node=": "factor of a gang on more nodes than it needs",
        "rack=": "factor of a gang on more racks than it needs",
    },
)
type_choices = _fixed(
    "type_choices", {"fastest": "by speed and load", "wished": "as the column gpu_type says"}
)
run_times = _fixed(
    "run_times", {"measured": "measured by Liquid", "k80": "model of a K80", "t4": "model of a T4"}
)
search_methods = _fixed(
    "search_methods", dict.fromkeys(("spea2", "nsga2", "gaussian-process", "random"), "")
)
written_formats = _fixed(
    "written_formats", {"repro": "CSV", "swf": "Standard Workload Format", "batsim": "JSON"}
)
policy_folders = _fixed(
    "policy_folders", dict.fromkeys(("own", "tiresias", "muri", "gavel", "liquid", "pcs"), "")
)
units = _fixed("units", {unit: noun for unit, (noun, *_) in UNITS.items()})


def policies(ctx: typer.Context, incomplete: str) -> list[Word]:
    """Policies and aliases."""
    return _fitting(_policy_words(), incomplete)


def policies_and_families(ctx: typer.Context, incomplete: str) -> list[Word]:
    """Policies, aliases and families."""
    return _fitting([*_policy_words(), *_FAMILIES.items()], incomplete)


def policies_or_given(ctx: typer.Context, incomplete: str) -> list[Word]:
    """Policies of Liquid, and ``given``."""
    words = [word for word in _policy_words() if _file_of(word[0]).parent.name == "liquid"]
    return _fitting([*words, ("given", "score the column tasks")], incomplete)


def policy_list(ctx: typer.Context, incomplete: str) -> list[Word]:
    """Policies separated by commas; completes the last of them."""
    before, comma, last = incomplete.rpartition(",")
    chosen = before.split(",")
    words = [word for word in _policy_words() if word[0] not in chosen]
    return [(f"{before}{comma}{word}", text) for word, text in _fitting(words, last)]


def job_type_list(ctx: typer.Context, incomplete: str) -> list[Word]:
    """Job types of `repro measure` separated by commas; completes the last of them."""
    before, comma, last = incomplete.rpartition(",")
    chosen = before.split(",")
    words = [(name, job.kind) for name, job in JOB_TYPES.items() if name not in chosen]
    return [(f"{before}{comma}{word}", text) for word, text in _fitting(words, last)]


def table_list(ctx: typer.Context, incomplete: str) -> list[Word]:
    """Tables of models separated by commas; completes the last of them."""
    before, comma, last = incomplete.rpartition(",")
    words = [("all", "all tables"), *((name, "") for name in _TABLES)]
    return [(f"{before}{comma}{word}", text) for word, text in _fitting(words, last)]


def jobs(ctx: typer.Context, incomplete: str) -> list[Word]:
    """Generators, public traces and files."""
    generators = _registered("trace/synth")
    words = [(name, "generator") for name in generators]
    return _fitting([*words, *_public_traces()], incomplete) + _files(incomplete)


def traces(ctx: typer.Context, incomplete: str) -> list[Word]:
    """Public traces and files."""
    return _fitting(_public_traces(), incomplete) + _files(incomplete)


def public_files(ctx: typer.Context, incomplete: str) -> list[Word]:
    """All public files."""
    return _fitting([(name, text) for name, _, text in _public()], incomplete)


def throughput_tables(ctx: typer.Context, incomplete: str) -> list[Word]:
    """Public throughput tables, the measured folder of the checkout, and files."""
    words = [(name, text) for name, kind, text in _public() if kind == "throughputs"]
    words.append(("h100", "measured on one H100"))
    return _fitting(words, incomplete) + _files(incomplete)


def speedup_tables(ctx: typer.Context, incomplete: str) -> list[Word]:
    """Speed-up curves of PCS, and files."""
    return _fitting([("pcs-speedups", "speed-up curves of PCS")], incomplete) + _files(incomplete)


def formats(ctx: typer.Context, incomplete: str) -> list[Word]:
    """Formats of traces."""
    return _fitting(_registered("trace/formats").items(), incomplete)


def placements(ctx: typer.Context, incomplete: str) -> list[Word]:
    """Placements."""
    return _fitting(_registered("placement").items(), incomplete)


def figures(ctx: typer.Context, incomplete: str) -> list[Word]:
    """Ids of figures and tables."""
    return _fitting([(name, "") for name in _figure_ids()], incomplete)


def papers(ctx: typer.Context, incomplete: str) -> list[Word]:
    """Papers with figures, and other groups of figures."""
    names = dict.fromkeys(name.partition("/")[0] for name in _figure_ids())
    return _fitting([(name, "") for name in names], incomplete)


def schemas(ctx: typer.Context, incomplete: str) -> list[Word]:
    """Documents with a JSON schema."""
    folder = Path(__file__).parent / "schemas"
    return _fitting([(file.stem, "") for file in sorted(folder.glob("*.json"))], incomplete)


def clusters(ctx: typer.Context, incomplete: str) -> list[Word]:
    """Forms of a cluster, and files."""
    forms = {
        "8x8": "8 nodes of 8 GPUs",
        "8x4:v100": "8 nodes of 4 V100",
        "36xv100": "36 nodes of one V100",
    }
    return _fitting(forms.items(), incomplete) + _files(incomplete)


def settings(ctx: typer.Context, incomplete: str) -> list[Word]:
    """``K=V`` of the policy, the rounds and the trace format that the command line names."""
    return _fitting(_policy_settings(ctx, rounds=True) + _format_settings(ctx), incomplete)


def policy_settings(ctx: typer.Context, incomplete: str) -> list[Word]:
    """``K=V`` of the policy and the trace format that the command line names."""
    return _fitting(_policy_settings(ctx, rounds=False) + _format_settings(ctx), incomplete)


def trace_settings(ctx: typer.Context, incomplete: str) -> list[Word]:
    """``K=V`` of the trace format or the generator that the command line names."""
    trace = ctx.params.get("trace")
    words = [] if trace is None else _argument_words("trace/synth", trace)
    return _fitting(words + _format_settings(ctx), incomplete)


class Parameters(NamedTuple):
    """Parameters of a policy, read from its source."""

    #: ``K=`` of each parameter, and ``K=V`` where its values are known
    words: list[Word]
    #: whether the policy runs in rounds, which have parameters of their own; an order does not
    has_rounds: bool


def _policy_settings(ctx: typer.Context, *, rounds: bool) -> list[Word]:
    """``K=V`` of the policy that the command line names, and of its rounds."""
    policy = ctx.params.get("policy")
    if not policy:
        return []
    parameters = policy_parameters(ALIASES.get(policy, policy))
    words = dict(parameters.words)
    if rounds and parameters.has_rounds:
        settings_file = paths.PACKAGE / "engine" / "rounds" / "settings.py"
        for _, base in _imported(settings_file, "RoundSettings"):
            words |= dict(_field_words(base))
    return list(words.items())


def _format_settings(ctx: typer.Context) -> list[Word]:
    """``K=V`` of the trace format that the command line names."""
    name = ctx.params.get("format")
    return _argument_words("trace/formats", name) if name else []


def policy_parameters(name: str) -> Parameters:
    """Parameters of a policy; none if no source registers it under this name."""
    file = _file_of(name)
    node = _definition(file, name)
    if not isinstance(node, ast.ClassDef):
        return Parameters([], has_rounds=False)
    bases = list(_lineage(file, node))
    words = [word for _, base in reversed(bases) for word in _field_words(base)]
    is_order = any(base.name == "Order" for _, base in bases)
    return Parameters(list(dict(words).items()), has_rounds=not is_order)


def _argument_words(folder: str, name: str) -> list[Word]:
    """``K=V`` of the arguments of a registered function, without the first."""
    file = _sources(folder).get(name)
    node = None if file is None else _definition(file, name)
    if not isinstance(node, ast.FunctionDef):
        return []
    arguments = [*node.args.args, *node.args.kwonlyargs]
    defaults = [*node.args.defaults, *node.args.kw_defaults]
    padded: list[ast.expr | None] = [None] * (len(arguments) - len(defaults))
    # the arguments without a default are the first
    padded += defaults
    return [
        word
        for argument, default in list(zip(arguments, padded, strict=True))[1:]
        for word in _words_of(argument.arg, argument.annotation, default)
    ]


def _definition(file: Path, name: str) -> ast.stmt | None:
    """Class or function of a file that a decorator registers under a name."""
    for node in _tree(file).body:
        for decorator in getattr(node, "decorator_list", []):
            if isinstance(decorator, ast.Call) and ast.unparse(decorator.func).endswith("register"):
                first = decorator.args[0] if decorator.args else None
                if isinstance(first, ast.Constant) and first.value == name:
                    return node
    return None


def _lineage(file: Path, node: ast.ClassDef) -> Iterator[tuple[Path, ast.ClassDef]]:
    """A class and its bases in the sources of the package, nearest first."""
    yield file, node
    tree = _tree(file)
    for base in node.bases:
        name = ast.unparse(base).partition("[")[0]
        for statement in tree.body:
            if isinstance(statement, ast.ClassDef) and statement.name == name:
                yield from _lineage(file, statement)
            elif isinstance(statement, ast.ImportFrom) and _imports(statement, name):
                source = paths.PACKAGE.parent.joinpath(*str(statement.module).split("."))
                yield from _imported(source.with_suffix(".py"), name)


def _imports(statement: ast.ImportFrom, name: str) -> bool:
    """Whether an import statement is absolute and imports a name."""
    return statement.level == 0 and name in [alias.name for alias in statement.names]


def _imported(file: Path, name: str) -> Iterator[tuple[Path, ast.ClassDef]]:
    """A class of another file, and its bases."""
    if file.is_file():
        for statement in _tree(file).body:
            if isinstance(statement, ast.ClassDef) and statement.name == name:
                yield from _lineage(file, statement)


def _field_words(node: ast.ClassDef) -> Iterator[Word]:
    """``K=V`` of the fields that a class itself declares."""
    for statement in node.body:
        if not isinstance(statement, ast.AnnAssign):
            continue
        if not ast.unparse(statement.annotation).startswith("ClassVar"):
            # a field ``lambda_`` is the parameter ``lambda``
            name = ast.unparse(statement.target).rstrip("_")
            yield from _words_of(name, statement.annotation, statement.value)


def _words_of(name: str, annotation: ast.expr | None, default: ast.expr | None) -> list[Word]:
    """``K=`` of a parameter, and ``K=V`` for its default and the values its annotation lists.

    If two or more words are possible, a shell completes only their common part, up to the ``=``.
    """
    values: list[str] = []
    if isinstance(default, ast.Constant):
        text = str(default.value)
        values.append(text.lower() if text in ("True", "False", "None") else text)
    elif default is not None and ast.unparse(default) == "math.inf":
        values.append("inf")
    for part in ast.walk(annotation) if annotation is not None else ():
        if isinstance(part, ast.Subscript) and ast.unparse(part.value) == "Literal":
            leaves = (leaf for leaf in ast.walk(part.slice) if isinstance(leaf, ast.Constant))
            values += [str(leaf.value) for leaf in leaves]
        elif isinstance(part, ast.Name) and part.id == "bool":
            values += ["true", "false"]
    return [(f"{name}=", ""), *((f"{name}={value}", "") for value in dict.fromkeys(values))]


@cache
def _tree(file: Path) -> ast.Module:
    """Syntax tree of a file; empty if it cannot be read."""
    try:
        return ast.parse(file.read_text("utf-8"))
    except (OSError, SyntaxError, ValueError):
        return ast.Module([], [])


def _policy_words() -> list[Word]:
    """Policies with their summaries, and aliases."""
    aliases = [(alias, f"the policy {name}") for alias, name in ALIASES.items()]
    return [*_registered("policies").items(), *aliases]


def _file_of(policy: str) -> Path:
    """File that registers a policy; a path that does not exist if none does."""
    file = _sources("policies").get(policy)
    if file is not None:
        return file
    for point in metadata.entry_points(group=_REGISTRIES["policies"], name=policy):
        spec = util.find_spec(point.module) if is_installed(point.module) else None
        if spec is not None and spec.origin is not None:
            return Path(spec.origin)
    return Path(policy)


@cache
def _sources(folder: str) -> dict[str, Path]:
    """Name -> file of the items that the sources of a folder of the package register."""
    return names_in_sources(paths.PACKAGE / folder)


def _registered(folder: str) -> dict[str, str]:
    """Names of registered items with the first lines of their docstrings, sorted."""
    words = {name: _summary(file, name) for name, file in _sources(folder).items()}
    if group := _REGISTRIES[folder]:
        points = metadata.entry_points(group=group)
        words |= {point.name: "installed package" for point in points}
    return dict(sorted(words.items()))


def _summary(file: Path, name: str) -> str:
    """First line of the docstring below the registration of a name."""
    _, _, below = file.read_text("utf-8").partition(f'register("{name}"')
    docstring = re.search(r'"""(.+?)(?:"""|\n)', below)
    return docstring[1] if docstring else ""


def _public() -> list[tuple[str, str, str]]:
    """Name, format and description of each public file."""
    try:
        return [(name, file.format, file.description) for name, file in public.entries().items()]
    except ReproError:
        return []


def _public_traces() -> list[Word]:
    """Public traces with their descriptions."""
    readable = _sources("trace/formats")
    return [(name, text) for name, kind, text in _public() if kind in readable]


def _figure_ids() -> list[str]:
    """``<paper>/<stem>`` of the parameter files of the checkout."""
    root = paths.checkout()
    files = [] if root is None else sorted(root.glob("params/*/*.yaml"))
    return [f"{file.parent.name}/{file.stem}" for file in files]


def _files(incomplete: str) -> list[Word]:
    """Files and folders whose path begins with a text; folders end in a slash."""
    folder, slash, start = incomplete.rpartition("/")
    try:
        parent = Path(f"{folder}{slash}" or ".").expanduser()
        entries = sorted(parent.iterdir())
    # a RuntimeError means a user without a home folder
    except (OSError, RuntimeError):
        return []
    names = [file for file in entries if file.name.startswith(start)]
    hidden = start.startswith(".")
    return [
        (f"{folder}{slash}{file.name}{'/' if file.is_dir() else ''}", "")
        for file in names
        if hidden or not file.name.startswith(".")
    ]


def _fitting(words: Iterable[Word], incomplete: str) -> list[Word]:
    """Words that begin with a text."""
    return [word for word in words if word[0].startswith(incomplete)]
