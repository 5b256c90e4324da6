"""Parameter files of figures: read strictly, merged with a profile, found by id."""

from __future__ import annotations

import copy
import functools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from repro.base import paths
from repro.base.errors import ClaimError, ParamError, ReproError, near, refuse_unknown
from repro.figures.claims import (
    DATA_NOT_AVAILABLE,
    DATA_NOT_PUBLIC,
    NOT_AT_THIS_PROFILE,
    NOT_PUBLISHED,
    Claim,
    Reason,
    is_own_check,
)
from repro.figures.points import Data, Origin, Unknown
from repro.figures.tolerance import Strict
from repro.files import public
from repro.files.strict_yaml import MAX_BYTES, KeyPath, Located, parse_value, parse_yaml
from repro.files.whole import read_small

PROFILES = ("quick", "paper")
#: Folders of notebooks/ that hold no figures.
_NOT_PAPERS = frozenset({"course"})
#: Line of a parameter file with the key `notebook`.
_NOTEBOOK_LINE = re.compile(r"^notebook[ \t]*:[ \t](.*)$", re.MULTILINE)
#: ``<stem>`` or ``<paper>/<stem>`` of a notebook.
_NOTEBOOK_NAME = re.compile(r"(\w[\w.-]*/)?\w[\w.-]*")


class FigureSpec(Strict):
    """Content of a parameter file: what the figure shows, its inputs and its claims."""

    title: str
    paper: str
    #: ``<stem>`` or ``<paper>/<stem>`` of the notebook; None: the stem of this file
    notebook: str | None = None
    #: in a diagram each box names the parts of this package that implement it; a measured figure
    #: has measurements of ours, so its claims are own checks
    kind: Literal["figure", "diagram", "measured"] = "figure"
    reference: str
    shows: str
    #: note in the caption on the meaning of error bars, whiskers and bands
    marks: str = ""
    inputs: dict[str, Any] = Field(default_factory=dict)
    #: smallest number that each input accepts, for inputs with such a bound
    least: dict[str, float] = Field(default_factory=dict)
    #: input -> other input. If a run overrides the other input, the profile's value of the first
    #: is ignored: that of `inputs` holds
    goes_with: dict[str, str] = Field(default_factory=dict)
    profiles: dict[str, dict[str, Any]] = Field(default_factory=dict)
    stand_in: str | None = None
    #: source of the data of the points; points of claims with ``stand_in: true`` have "stand-in"
    data: Data = "author's"
    #: how the published numbers of the points came to be
    origin: Origin = "simulation"
    #: published numbers that a model of ours was fitted to; all points depend on this model
    fitted_on: str | None = None
    #: input of all points that only the authors know
    unknown: Unknown | None = None
    #: whether the figure measures computing time, so that its values differ between runs
    timed: bool = False
    claims: list[Claim] = Field(default_factory=list)

    @field_validator("title", "reference", "shows")
    @classmethod
    def _one_line(cls, text: str) -> str:
        if not text.strip() or "\n" in text.strip():
            raise ValueError("must be one line of text")
        return text.strip()

    @field_validator("notebook")
    @classmethod
    def _one_notebook(cls, name: str | None) -> str | None:
        if name is not None and (not _NOTEBOOK_NAME.fullmatch(name) or name.endswith(".ipynb")):
            raise ValueError(f"{name!r} is no notebook; give STEM or PAPER/STEM")
        return name

    @field_validator("profiles", mode="before")
    @classmethod
    def _valid_profiles(cls, profiles: Any) -> Any:
        if not isinstance(profiles, Mapping):
            return profiles
        for name in profiles:
            _check_profile(name, ValueError)
        return {name: overrides or {} for name, overrides in profiles.items()}

    @model_validator(mode="after")
    def _consistent(self) -> FigureSpec:
        for profile, overrides in self.profiles.items():
            for key in overrides:
                if key not in self.inputs:
                    raise ValueError(f"profile {profile} sets {key!r}, which inputs does not have")
        for key in self.least:
            if key not in self.inputs:
                raise ValueError(f"least names {key!r}, which inputs does not have")
        for key in (*self.goes_with, *self.goes_with.values()):
            if key not in self.inputs:
                raise ValueError(f"goes_with names {key!r}, which inputs does not have")
        ids = [claim.id for claim in self.claims]
        if twice := [claim_id for claim_id in ids if ids.count(claim_id) > 1]:
            raise ValueError(f"claim id {twice[0]!r} is used twice")
        if self.kind == "measured" and (about_paper := self._claims_about_paper()):
            raise ValueError(
                f"claim {about_paper[0]!r} is about a paper, but the figure is of kind measured; "
                "give the claim kind: check"
            )
        return self

    def _claims_about_paper(self) -> list[str]:
        """Ids of the claims that are no own checks."""
        return [claim.id for claim in self.claims if not is_own_check(claim.kind, claim.certainty)]

    def merged(self, profile: str, overrides: Mapping[str, Any]) -> dict[str, Any]:
        """Merge the inputs with the profile, then with the overrides that are not None."""
        _check_profile(profile, ParamError)
        refuse_unknown(f"{self.title}: unknown parameter", overrides, self.inputs)
        passed = {key: value for key, value in overrides.items() if value is not None}
        for name, value in passed.items():
            in_profiles = [inputs[name] for inputs in self.profiles.values() if name in inputs]
            _check_form(name, value, self.inputs[name], in_profiles, self.least.get(name))
        in_profile = {**self.inputs, **self.profiles.get(profile, {})}
        for name, other in self.goes_with.items():
            if passed.get(other, in_profile[other]) != in_profile[other]:
                in_profile[name] = self.inputs[name]
        return copy.deepcopy({**in_profile, **passed})

    def has_paper_inputs(self, profile: str) -> bool:
        """Whether the inputs of a profile are those of the profile ``paper``."""
        return self.merged(profile, {}) == self.merged("paper", {})

    def missing_value_reason(
        self, profile: str, replaced: Iterable[str], *, has_stand_in: bool
    ) -> Reason:
        """Why a claim without a value is not comparable in a run.

        ``replaced`` are the names of the data sets that stand-ins replace in the run.
        ``has_stand_in``: the run or the figure itself has stand-ins.
        """
        if any(map(public.is_known, replaced)):
            return DATA_NOT_AVAILABLE
        if not self.has_paper_inputs(profile):
            return NOT_AT_THIS_PROFILE
        return DATA_NOT_PUBLIC if has_stand_in else NOT_PUBLISHED


def _check_form(
    name: str, value: Any, file_value: Any, in_profiles: Sequence[Any], least: float | None
) -> None:
    """Refuse a value in a form that the parameter file does not use for this name.

    Whole numbers are accepted in place of numbers. Numbers below ``least`` are refused. If it is
    None, numbers below 0 are refused if the file has none: notebooks would leave them out, or count
    from the end of a list.
    """
    wanted = _form(file_value)
    accepted = [wanted, *map(_form, in_profiles)]
    # a whole number is a number; a parameter file's null says nothing about the form
    if wanted == "a number":
        accepted.append("a whole number")
    if wanted == "a list of numbers":
        accepted.append("a list of whole numbers")
    in_file = _numbers([file_value, *in_profiles])
    if least is None and in_file and min(in_file) >= 0:
        least = 0
    if least is not None and any(number < least for number in _numbers(value)):
        wanted += f" of {least:g} or more"
        accepted = []
    if file_value is not None and _form(value) not in accepted:
        text = str(file_value)
        shown = text if len(text) <= 60 else f"{text[:60]}…"
        raise ParamError(f"{name} is {value!r:.60}; give {wanted}, such as {shown}")


def _numbers(value: Any) -> list[float]:
    """Numbers of a value: itself, or those of a list."""
    if isinstance(value, list | tuple):
        return [number for item in value for number in _numbers(item)]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return [value] if is_number else []


def _form(value: Any) -> str:
    """Form of a value in words."""
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int):
        return "a whole number"
    if isinstance(value, float):
        return "a number" if math.isfinite(value) else "no number"
    if isinstance(value, str):
        return "a text"
    if isinstance(value, list | tuple):
        forms = {_form(item) for item in value}
        if forms == {"a number", "a whole number"}:
            forms = {"a number"}
        plurals = {"a whole number": "whole numbers", "a number": "numbers", "a text": "texts"}
        plural = plurals.get(forms.pop(), "values") if len(forms) == 1 else "values"
        return f"a list of {plural}" if value else "an empty list"
    return "a mapping" if isinstance(value, Mapping) else "another value"


def _check_profile(name: str, error: type[Exception]) -> None:
    """Refuse an unknown profile with an error of type ``error``."""
    if name not in PROFILES:
        raise error(f"unknown profile {name!r} (accepted: {', '.join(PROFILES)})")


def judged_rules(inputs: Mapping[str, Any]) -> str:
    """Rule set under which a figure is judged: the input ``judged``, or the first of ``rules``."""
    rules = inputs.get("rules", "paper")
    rule_sets = rules if isinstance(rules, list) and rules else [rules]
    judged = inputs.get("judged")
    return str(judged if judged in rule_sets else rule_sets[0])


@dataclass(frozen=True, order=True)
class FigureEntry:
    """A figure of the project: its parameter file, and the notebook that plots it.

    The notebook has the stem of the parameter file, or the name in its key ``notebook``.
    """

    id: str
    root: Path

    @property
    def paper(self) -> str:
        """Folder name of the paper."""
        return self.id.split("/")[0]

    @property
    def stem(self) -> str:
        """File name without suffix, ``figNN_slug`` or ``tabNN_slug``."""
        return self.id.split("/")[1]

    @functools.cached_property
    def notebook(self) -> Path:
        """Notebook of the figure."""
        name = _named_notebook(self.params_file) or self.stem
        return _notebook_file(self.root, name if "/" in name else f"{self.paper}/{name}")

    @property
    def names_notebook(self) -> bool:
        """Whether the parameter file names a notebook with another stem than its own."""
        return self.notebook != _notebook_file(self.root, self.id)

    @property
    def params_file(self) -> Path:
        """Parameter file of the figure."""
        return self.root / "params" / f"{self.id}.yaml"

    @property
    def executed_notebook(self) -> Path:
        """Executed notebook of the last batch."""
        return self.root / "build" / "notebooks" / f"{self.id}.ipynb"

    def load(self) -> FigureSpec:
        """Read and check the parameter file; a missing notebook is an error, too."""
        name = _shown(self.params_file)
        if not self.params_file.is_file() and self.notebook.is_file():
            raise ParamError(
                f"{_shown(self.notebook)} has no {name}, and no parameter file names it; "
                "write that file, or name the notebook in another (notebook: STEM)"
            )
        spec = load(self.params_file)
        if spec.notebook != _named_notebook(self.params_file):
            raise ParamError(f"{name}: notebook: write the key and its value on one line")
        self._check_notebook()
        if spec.paper != self.paper:
            raise ParamError(f"{name}: paper: is {spec.paper!r} but the folder is {self.paper!r}")
        return spec

    def _check_notebook(self) -> None:
        """Refuse a missing notebook, and a second notebook with the stem of the parameter file."""
        name = _shown(self.params_file)
        notebook = _shown(self.notebook)
        own = _notebook_file(self.root, self.id)
        if not self.notebook.is_file() and self.names_notebook:
            stems = sorted(path.stem for path in self.notebook.parent.glob("*.ipynb"))
            raise ParamError(
                f"{name}: notebook: there is no {notebook}{near(self.notebook.stem, stems)}"
            )
        if not self.notebook.is_file():
            raise ParamError(
                f"{name} has no {notebook}; write that notebook, or name another (notebook: STEM)"
            )
        if self.names_notebook and own.is_file():
            raise ParamError(
                f"{name} names {notebook}, but {_shown(own)} exists; remove one of them"
            )


def _notebook_file(root: Path, name: str) -> Path:
    """Path of the notebook ``<paper>/<stem>``."""
    return root / "notebooks" / f"{name}.ipynb"


def _named_notebook(path: Path) -> str | None:
    """Value of the key `notebook` of a parameter file; None without it.

    Only its line is parsed: the name must be known for every figure, also where the file is broken.
    """
    try:
        line = _NOTEBOOK_LINE.search(read_small(path, MAX_BYTES, ParamError))
        name = parse_value(line[1]) if line else None
    except ParamError:
        return None
    return name if isinstance(name, str) and _NOTEBOOK_NAME.fullmatch(name) else None


def load(path: Path) -> FigureSpec:
    """Read a parameter file as YAML 1.2; errors are ``file:line:key: what is wrong``."""
    name = _shown(path)
    located = parse_yaml(read_small(path, MAX_BYTES, ParamError, name), name, ParamError)
    if not isinstance(located.value, dict):
        raise ParamError(f"{name}:1: must be a mapping with the keys title, paper, reference, …")
    try:
        return FigureSpec.model_validate(located.value)
    except ValidationError as error:
        raise _first_problem(name, located, error) from None


def _first_problem(name: str, located: Located, error: ValidationError) -> Exception:
    """Error about the problem of a parameter file that is most useful to its writer."""
    # A misspelt key gives an unknown key and a missing one; the unknown key tells more.
    problems = sorted(error.errors(), key=lambda problem: problem["type"] != "extra_forbidden")
    key_paths = [_key_path(located.value, problem["loc"], problem["type"]) for problem in problems]
    # A value of several possible forms gives a problem per form; the deepest is the likely one.
    related = (path for path in key_paths if path[: len(key_paths[0])] == key_paths[0])
    keys = max(related, key=len)
    first = problems[key_paths.index(keys)]
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        accepted = FigureSpec.model_fields if len(keys) == 1 else {}
        message = f"unknown key{near(str(keys[-1]), accepted)}"
        if accepted:
            message += f" (accepted: {', '.join(accepted)})"
    elif first["type"] != "value_error" and not isinstance(first["input"], Mapping):
        message = f"{message}, not {first['input']!r:.60}"
    key = ".".join(map(str, keys)) or "file"
    others = len({path for path in key_paths if path != keys[: len(path)]})
    more = f" (and {others} more)" if others else ""
    error_class = ClaimError if keys[:1] == ("claims",) else ParamError
    return error_class(f"{name}:{located.line(keys)}:{key}: {message}{more}")


def _key_path(value: Any, loc: tuple[str | int, ...], problem_type: str) -> KeyPath:
    """Keys that lead to a problem in the file.

    ``loc`` of pydantic has these keys and the names of types that it tried, which are no keys.
    """
    keys: KeyPath = ()
    for part in loc:
        is_key = part in value if isinstance(value, dict) else isinstance(value, list)
        if is_key and (isinstance(value, dict) or isinstance(part, int)):
            keys = (*keys, part)
            value = value[part]
    return (*keys, loc[-1]) if problem_type == "missing" else keys


def discover(root: Path | None = None) -> list[FigureEntry]:
    """All figures of the checkout, sorted by id.

    A figure is a parameter file. A notebook that no parameter file names is listed too; to load it
    is an error.
    """
    root = paths.project_root() if root is None else root
    entries = [FigureEntry(name, root) for name in _names(root.glob("params/*/*.yaml"))]
    named = {entry.notebook for entry in entries} | {
        _notebook_file(root, entry.id) for entry in entries
    }
    unnamed = [
        FigureEntry(name, root)
        for name in _names(root.glob("notebooks/*/*.ipynb"))
        if _notebook_file(root, name) not in named
    ]
    return sorted([*entries, *unnamed])


def _names(files: Iterable[Path]) -> list[str]:
    """``<paper>/<stem>`` of each parameter file or notebook of a paper."""
    return [
        f"{path.parent.name}/{path.stem}"
        for path in files
        if path.parent.name not in _NOT_PAPERS
        # JupyterLab keeps checkpoints in hidden folders
        and not path.name.startswith(".")
        and not path.parent.name.startswith(".")
    ]


def loaded(
    entries: Sequence[FigureEntry],
) -> tuple[dict[FigureEntry, FigureSpec], dict[FigureEntry, ReproError]]:
    """Contents of all parameter files that can be read, and the errors of the others."""
    specs: dict[FigureEntry, FigureSpec] = {}
    broken: dict[FigureEntry, ReproError] = {}
    for entry in entries:
        try:
            specs[entry] = entry.load()
        except ReproError as error:
            broken[entry] = error
    return specs, broken


def resolve(text: str, entries: Sequence[FigureEntry]) -> FigureEntry:
    """Figure with an id, or with a unique prefix of an id or of a stem."""
    for attribute in ("id", "stem"):
        named = [(str(getattr(entry, attribute)), entry) for entry in entries]
        exact = [entry for name, entry in named if name == text]
        whole_word = [entry for name, entry in named if name.startswith(f"{text}_")]
        prefix = [entry for name, entry in named if name.startswith(text)]
        matches = exact or whole_word or prefix
        if len(matches) == 1:
            return matches[0]
        if matches:
            listed = ", ".join(entry.id for entry in matches)
            raise ParamError(f"figure {text!r} is ambiguous: {listed}")
    if plotted := _figures_of_notebook(text, entries):
        raise ParamError(f"{text!r} is the notebook of {', '.join(plotted)}; name a figure")
    ids = [entry.id for entry in entries]
    raise ParamError(
        f"unknown figure {text!r}{near(text, [*ids, *(entry.stem for entry in entries)])}; "
        "`repro list` shows all"
    )


def _beginning(text: str, entries: Sequence[FigureEntry]) -> list[FigureEntry]:
    """Figures whose id or stem begins with a text."""
    return [entry for entry in entries if entry.id.startswith(text) or entry.stem.startswith(text)]


def _figures_of_notebook(text: str, entries: Sequence[FigureEntry]) -> list[str]:
    """Ids of the figures whose parameter files name a notebook; ``text`` is its stem or name."""
    return [
        entry.id
        for entry in entries
        if entry.names_notebook
        and text in (entry.notebook.stem, f"{entry.notebook.parent.name}/{entry.notebook.stem}")
    ]


def select(
    ids: Sequence[str], entries: Sequence[FigureEntry], *, paper: str | None = None
) -> list[FigureEntry]:
    """Figures of a paper (None: of all papers), each once, in the order of ``entries``.

    If there are ``ids``, only figures with these ids or unique prefixes are selected. A prefix is
    one of the paper's figures. An id of another paper is an error, and so is a project without
    figures.
    """
    if not entries:
        raise ParamError("no figures here; write a parameter file params/PAPER/NAME.yaml")
    if paper is not None:
        papers = sorted({entry.paper for entry in entries})
        if paper not in papers:
            names = ", ".join(papers) or "none"
            raise ParamError(f"unknown paper {paper!r}{near(paper, papers)} (known: {names})")
        others = [entry for entry in entries if entry.paper != paper]
        entries = [entry for entry in entries if entry.paper == paper]
        for text in ids:
            elsewhere = _beginning(text, others)
            if elsewhere and not _beginning(text, entries):
                raise ParamError(
                    f"{elsewhere[0].id} is no figure of --paper {paper}; leave out --paper or the "
                    f"id"
                )
    chosen = [resolve(text, entries) for text in ids]
    return [entry for entry in entries if not ids or entry in chosen]


def _shown(path: Path) -> str:
    """Path from the project's root, if it is inside."""
    try:
        return str(path.resolve().relative_to(paths.project_root()))
    # a link to itself cannot be resolved
    except (ValueError, ParamError, RuntimeError):
        return str(path)
