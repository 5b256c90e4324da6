"""Docstrings of public names: summary, parameters, result, errors, example, place in the paper."""

from __future__ import annotations

import ast
import dataclasses
import doctest
import functools
import inspect
import pkgutil
import re
import sys
import textwrap
from dataclasses import is_dataclass
from pathlib import Path

import pytest

import repro
from repro.base.errors import ReproError

ROOT = Path(__file__).resolve().parents[2]
DEEP = re.findall(
    r"`(repro(?:_course)?\.\w+\.[\w.]+)`", (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
)
NAMES = [f"repro.{name}" for name in sorted(repro.__all__) if name != "__version__"] + DEEP


def public_object(name: str) -> object:
    """Function or class of a public name; ``repro.policies`` is a module that can be called."""
    named = pkgutil.resolve_name(name)
    return type(named).__call__ if inspect.ismodule(named) else named


CLASSES = [name for name in NAMES if inspect.isclass(public_object(name))]
FUNCTIONS = [name for name in NAMES if name not in CLASSES]

#: Names that implement a definition of a paper, and the place of the definition.
PLACES = {
    "repro.TypedShares": "Gavel, OSDI 2020, section 3.1",
    "repro.Shares": "Gavel, OSDI 2020, section 3.1",
    "repro.Grouped": "Muri, SIGCOMM 2022, Algorithm 1",
    "repro.Elastic": "PCS, arXiv 2401.10354, section 5.1",
    "repro.Preferences": "PCS, arXiv 2401.10354, section 3",
    "repro.dress": "Muri, SIGCOMM 2022, section 6.1",
    "repro.perf.Interleaving": "Muri, SIGCOMM 2022, Eq 3",
    "repro.perf.IterationModel": "Liquid, TPDS 2022, Eq 1",
    "repro.perf.TrainedModel": "Liquid, TPDS 2022, Eq 1",
    "repro.perf.SpeedUp": "PCS, arXiv 2401.10354, demand functions",
    "repro.perf.ThroughputTable": "Gavel, OSDI 2020, section 3",
    "repro.model.metrics.improvement": "Tiresias, NSDI 2019, section 5.1",
    "repro.model.metrics.bins": "Tiresias, NSDI 2019, Table 3",
    "repro.model.metrics.unfairness": "PCS, arXiv 2401.10354, section 2",
    "repro.papers.pcs.objectives.Objective": "PCS, arXiv 2401.10354, section 3.1",
    "repro.papers.pcs.fronts.search_front": "PCS, arXiv 2401.10354, section 3.4",
}


def sections(doc: str) -> dict[str, str]:
    """Numpydoc sections of a docstring by title; the text before the first has title ''."""
    parts = re.split(r"^([A-Z]\w+)\n-{3,}$\n?", doc, flags=re.M)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def described(section: str) -> dict[str, str]:
    """Names of a section of parameters (or errors), each with the text below it."""
    found = {}
    for entry in filter(None, re.split(r"\n(?=\S)", section.strip("\n"))):
        head, _, text = entry.partition("\n")
        for name in head.partition(" : ")[0].split(", "):
            found[name] = text.strip()
    return found


def parameters(public: object) -> set[str]:
    """Parameters of a function or of the constructor of a class, with stars."""
    if inspect.isclass(public):
        is_error = issubclass(public, BaseException) and "__init__" not in vars(public)
        takes_none = public.__init__ is object.__init__ and not issubclass(public, tuple)
        if is_error or takes_none or getattr(public, "_is_protocol", False):
            return set()
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    every = inspect.signature(public).parameters.values()
    return {stars.get(one.kind, "") + one.name for one in every} - {"self"}


def errors_of(public: object) -> set[type]:
    """Package errors that the body raises, or that the functions it calls document."""
    if inspect.isclass(public):
        # the code of __init__ of a dataclass is generated
        name = "__post_init__" if is_dataclass(public) else "__init__"
        bodies = [vars(public)[name]] if name in vars(public) else []
    else:
        bodies = [inspect.unwrap(public)]
    raised: set[type] = set()
    for body in bodies:
        tree = ast.parse(textwrap.dedent(inspect.getsource(body)))
        for node in ast.walk(tree):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                raised |= {resolved(node.exc.func, body)}
            elif isinstance(node, ast.Call) and (node.args or node.keywords):
                callee = resolved(node.func, body)
                documented = described(sections(inspect.getdoc(callee) or "").get("Raises", ""))
                names = {name for entry in documented for name in entry.split(", ")}
                raised |= {vars(repro.base.errors).get(name) for name in names}
    return {error for error in raised if inspect.isclass(error) and issubclass(error, ReproError)}


def resolved(node: ast.expr, function: object) -> object:
    """Object of the package that a name in a function means; None for all other expressions."""
    try:
        found = functools.reduce(getattr, ast.unparse(node).split("."), Scope(function))
    except (AttributeError, TypeError):
        return None
    module = getattr(found, "__module__", None) or ""
    return found if str(module).partition(".")[0] in ("repro", "repro_course") else None


class Scope:
    """Globals of a function as attributes."""

    def __init__(self, function: object) -> None:
        vars(self).update(function.__globals__)


@pytest.mark.parametrize("name", NAMES)
def test_a_summary_of_one_sentence_comes_first(name):
    first = (inspect.getdoc(public_object(name)) or "").split("\n\n")[0]
    assert first.endswith(".") and len(first.splitlines()) <= 2


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_is_described(name):
    public = public_object(name)
    texts = described(sections(inspect.getdoc(public)).get("Parameters", ""))
    assert texts.keys() == parameters(public)
    assert all(texts[parameter] for parameter in parameters(public))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_result_is_described(name):
    public = public_object(name)
    has_result = inspect.signature(public).return_annotation not in (None, "None")
    section = sections(inspect.getdoc(public)).get("Returns", "")
    assert has_result == bool(section)
    assert not has_result or all(described(section).values())


@pytest.mark.parametrize("name", NAMES)
def test_errors_about_bad_input_are_named(name):
    public = public_object(name)
    entries = described(sections(inspect.getdoc(public)).get("Raises", ""))
    named = [vars(repro.base.errors).get(error) for entry in entries for error in entry.split(", ")]
    missing = {
        error.__name__
        for error in errors_of(public)
        if not any(cls and issubclass(error, cls) for cls in named)
    }
    assert not missing, missing
    assert all(entries.values())


@pytest.mark.parametrize("name", NAMES)
def test_the_suite_runs_an_example(name):
    """By the finder of ``--doctest-modules``, in a folder of ``testpaths``."""
    public = inspect.unwrap(public_object(name))
    module = sys.modules[public.__module__]
    (found,) = doctest.DocTestFinder(recurse=False).find(public, name, module)
    run = [one for one in found.examples if not one.options.get(doctest.SKIP)]
    assert any(one.want or "print" not in one.source for one in run)
    assert Path(module.__file__).relative_to(ROOT).parts[0] in ("repro", "course")


@pytest.mark.parametrize("name", CLASSES)
def test_methods_say_what_they_do_and_name_their_parameters(name):
    """In their own docstring, or in the list of methods in that of the class."""
    public = public_object(name)
    of_class = inspect.getdoc(public)
    fields = {field.name for field in dataclasses.fields(public)} if is_dataclass(public) else ()
    missing = []
    for label, member in vars(public).items():
        method = getattr(member, "func", None) or getattr(member, "fget", None)
        method = method or getattr(member, "__func__", member)
        if label.startswith("_") or label in fields or not inspect.isfunction(method):
            continue
        doc = inspect.getdoc(method) or ""
        if not doc.split("\n\n")[0].endswith("."):
            missing.append(label)
        own = described(sections(doc).get("Parameters", ""))
        for parameter in list(inspect.signature(method).parameters)[1:]:
            quoted = rf"``[^`]*\b{parameter}\b[^`]*``"
            if not ({parameter, f"*{parameter}", f"**{parameter}"} & own.keys()) and not re.search(
                quoted, f"{doc}\n{of_class}"
            ):
                missing.append(f"{label}({parameter})")
    assert not missing, missing


@pytest.mark.parametrize("name", PLACES)
def test_a_definition_of_a_paper_has_its_place(name):
    doc = " ".join(inspect.getdoc(public_object(name)).split())
    assert name in NAMES and PLACES[name] in doc
