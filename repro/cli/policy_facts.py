"""What is known about a policy: rule, parameters, columns, knowledge, GPU types, rules, example.

All facts come from the class of the policy, from its docstring and from that of its module.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from repro.base import docstrings
from repro.comparison.terms import knowledge
from repro.model.elastic import Elastic
from repro.model.families import ALIASES
from repro.model.policy import Order, Policy, policies
from repro.model.rules import RULES
from repro.model.settings import accepted
from repro.model.share_policy import SharePolicy, share_traits

#: Folder of `repro.policies` -> title of its group, in the order in which groups are listed.
GROUPS = {
    "tiresias": "Tiresias (NSDI 2019)",
    "muri": "Muri (SIGCOMM 2022)",
    "gavel": "Gavel (OSDI 2020), with the policies that it is compared with",
    "liquid": "Liquid (TPDS 2022), with the schedulers that it is compared with",
    "pcs": "PCS (arXiv 2401.10354, 2024), with the policies that it is compared with",
    "baselines": "Baselines that several papers share, and policies of the textbooks",
}
OTHER = "Policies of your own and of installed packages"

#: Trace column -> meaning, with unit.
COLUMNS = {
    "bandwidth_mb_s": "traffic of a container (MB/s); 100 where it is missing",
    "entity": "entity of the job, such as a department",
    "gpu_mem_mb": "GPU memory of a container (MB); 8192 where it is missing",
    "gpu_util": "GPU utilisation of the job alone (%)",
    "iteration_time": "time of an iteration of the job alone (s)",
    "memory_mib": "memory of the whole job (MiB)",
    "model": "model of the job, by which the throughput table has its speeds",
    "num_cpus": "CPU cores of the whole job",
    "num_ps": "parameter servers of the job; one where it is missing and the job has several GPUs",
    "post_s": "part of total_s after training (s)",
    "pre_s": "part of total_s before training (s)",
    "predicted_duration": "duration that the policy knows instead of the true one (s)",
    "priority": "0 guaranteed, 1 opportunistic",
    "priority_weight": "weight of the job; 1 where it is missing",
    "service": "work in single-GPU seconds: duration x speed-up at the demand",
    "slo": "deadline in multiples of the duration: submit_time + slo x duration",
    "stage_cpu": "time in the CPU stage (s per iteration); may be part of stage_storage",
    "stage_gpu": "time in the GPU stage (s per iteration)",
    "stage_network": "time in the network stage (s per iteration)",
    "stage_storage": "time in the storage stage (s per iteration)",
    "total_s": "run time of the job alone (s)",
    "user": "user of the job",
    "vc": "virtual cluster of the job",
}
#: Columns that every trace has.
BASE_COLUMNS = ("job_id", "submit_time", "duration", "num_gpus")
#: Inputs of policies that are not listed as columns: every trace has them, or they are no columns.
_NO_COLUMNS = {*BASE_COLUMNS, "throughput"}

#: How the GPU type of a job is chosen, in words: the texts of `_gpu_types`.
_AWARE = "aware: the policy chooses the GPU types of jobs by their throughputs"
_EQUAL = (
    "not aware: the policy gives jobs time on the GPU types, and treats all types as equally fast"
)
_ORDER = (
    "not aware: the engine gives each job the fastest type with enough idle GPUs; without speeds "
    "by type, all GPUs are one pool"
)
_POOLED = (
    "not aware: each GPU type is a cluster of its own, which a job joins at its arrival; without "
    "speeds by type, all GPUs are one pool"
)
_SEPARATE = (
    "not aware: each GPU type is a cluster of its own, and a job joins one type at its arrival"
)
_BY_ENGINE = "not aware: the engine gives each gang the fastest type with enough free GPUs"

_NO_COMPILED_RULE = "refused: these rules need a policy with a compiled rule that divides GPUs"


def _two_job_example(column: str, values: tuple[object, object], cluster: str, policy: str) -> str:
    """Example with a trace of two jobs, for a column that no generator makes."""
    lines = f"job_id,submit_time,duration,num_gpus,{column}\\n"
    lines += f"a,0,100,1,{values[0]}\\nb,10,50,1,{values[1]}\\n"
    simulate = f"repro simulate --trace jobs.csv --cluster {cluster} --policy {policy}"
    return f"printf '{lines}' > jobs.csv && {simulate}"


#: Policy -> its example, if `_example` cannot derive one from the inputs of the policy.
_EXAMPLES = {
    "allox": "repro simulate --trace lognormal --cluster 16xv100,16xp100,32xk80 --policy allox",
    "drf": _two_job_example("num_cpus,user", ("8,x", "4,y"), "1x4", "drf --set cpus_per_gpu=4"),
    "edf": _two_job_example("slo", (4, 2), "1x2", "edf"),
    "gavel-hierarchical": _two_job_example("vc", ("x", "y"), "1xv100,1xk80", "gavel-hierarchical"),
    "gavel-min-cost-slo": _two_job_example("slo", (4, 2), "1xv100,1xk80", "gavel-min-cost-slo"),
    "pcs": "repro simulate --trace pcs-workload --cluster 1x64 --policy pcs --set c2=1 "
    "--set decay=0.5",
}


@dataclass(frozen=True)
class Parameter:
    """A parameter of a policy, for users."""

    name: str
    #: default as text of Python; ``…`` if there is none
    default: str
    #: default as ``--set`` takes it
    set_default: str
    #: rule set -> default under it, where the rule set decides
    by_rules: dict[str, str]
    #: accepted values in words
    accepts: str
    #: unit, such as seconds; None: no unit
    unit: str | None
    #: meaning, from the docstring; empty if it has none
    meaning: str


@dataclass(frozen=True)
class RuleSet:
    """What a rule set changes in a policy."""

    #: why a run under the rule set is refused; empty: it is not
    refused: str
    #: parameter -> default under the rule set, where it differs from that under ``paper``
    parameters: dict[str, str]


@dataclass(frozen=True)
class Facts:
    """All that is known about a policy."""

    name: str
    summary: str
    group: str
    #: short title of the paper
    paper: str
    #: paper and section; empty if the docstrings name none
    reference: str
    #: rule and formula, paragraphs of the docstrings
    rule: str
    formula: str
    parameters: tuple[Parameter, ...]
    #: inputs that the policy reads, columns and others
    needs: tuple[str, ...]
    #: columns without which a run is refused; of each tuple one suffices
    requires: tuple[tuple[str, ...], ...]
    #: columns that the policy uses if the trace has them
    columns: tuple[str, ...]
    #: what the policy knows about jobs beyond submission, demand and attained service
    knowledge: str
    #: whether decisions depend on the speeds of jobs on the GPU types, and how types are chosen
    aware_of_types: bool
    gpu_types: str
    rules: dict[str, RuleSet]
    placement: str
    #: whether a gang starts only if first fit finds nodes for it, under any placement
    first_fit: bool
    elastic: bool
    families: tuple[str, ...]
    aliases: tuple[str, ...]
    example: str


def facts(name: str) -> Facts:
    """Facts about a registered policy.

    Examples
    --------
    >>> facts("las-2d").parameters[0].unit
    'seconds'
    """
    cls = policies[name]
    aware, gpu_types = _gpu_types(cls)
    return Facts(
        name=name,
        summary=docstrings.summary(cls.__doc__),
        group=group_of(cls),
        paper=paper_of(cls),
        reference=_reference(cls),
        rule=docstrings.description(cls.__doc__),
        formula=_formula(cls),
        parameters=tuple(_parameters(cls)),
        needs=tuple(sorted(cls.needs)),
        requires=cls.requires,
        columns=tuple(_optional_columns(cls)),
        knowledge=knowledge(_with_defaults(cls), "durations"),
        aware_of_types=aware,
        gpu_types=gpu_types,
        rules={rules: _rule_set(cls, rules) for rules in RULES},
        placement=cls.placement,
        first_fit=bool(cls.first_fit),
        elastic=bool(_with_defaults(cls).elastic),
        families=cls.families,
        aliases=tuple(alias for alias, known in ALIASES.items() if known == name),
        example=_example(name, cls),
    )


def group_of(cls: type) -> str:
    """Title of the group of a policy: its paper's, the baselines, or other policies."""
    parts = cls.__module__.split(".")
    is_own = parts[:2] == ["repro", "policies"] and len(parts) > 2
    return GROUPS.get(parts[2], OTHER) if is_own else OTHER


def grouped(names: Iterable[str]) -> dict[str, list[str]]:
    """Names of policies by title of their group; groups in the order of `GROUPS`."""
    members: dict[str, list[str]] = {title: [] for title in (*GROUPS.values(), OTHER)}
    for name in names:
        members[group_of(policies[name])].append(name)
    return {title: names for title, names in members.items() if names}


def paper_of(cls: type) -> str:
    """Paper of the module or package that a policy is in, or else the name of that package."""
    package = cls.__module__.rpartition(".")[0] or cls.__module__
    of_package = getattr(importlib.import_module(package), "PAPER", package)
    return str(getattr(importlib.import_module(cls.__module__), "PAPER", of_package))


def default_of(field: dataclasses.Field[Any]) -> str:
    """Default of a parameter as text; ``…`` if it has none."""
    if field.default is not dataclasses.MISSING:
        return repr(field.default)
    return "…" if field.default_factory is dataclasses.MISSING else repr(field.default_factory())


def _with_defaults(cls: type[Policy], rules: str = "paper") -> Policy:
    """Policy with the defaults of a rule set.

    If a field has no default, no policy can be made. The object then has no fields, only the
    attributes of the class.
    """
    has_defaults = all(default_of(field) != "…" for field in dataclasses.fields(cls))
    return cls().under(rules) if has_defaults else object.__new__(cls)


def _set_text(value: Any) -> str:
    """Value as ``--set`` takes it: lists with commas, true, false and none in small letters."""
    if isinstance(value, tuple) and value:
        return ",".join(map(_set_text, value))
    if isinstance(value, float) and value.is_integer():
        return f"{value:.0f}"
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return "" if value in ((), dataclasses.MISSING) else str(value)


def _bases(cls: type) -> list[type]:
    """Class of a policy and its bases, nearest first, without the general `Policy` and `Order`."""
    return [base for base in cls.__mro__ if base not in (object, Policy, Order)]


def _reference(cls: type) -> str:
    """Paper and section: those of the nearest class whose docstring names them."""
    texts = (docstrings.reference(vars(base).get("__doc__")) for base in _bases(cls))
    return next(filter(None, texts), "")


def _formula(cls: type) -> str:
    """Docstring of the module of a policy, without its title; empty for a script or a notebook."""
    module = sys.modules.get(cls.__module__)
    if module is None or cls.__module__ == "__main__":
        return ""
    _, _, body = inspect.cleandoc(module.__doc__ or "").partition("\n")
    return body.strip("\n").rstrip()


def _parameters(cls: type[Policy]) -> Iterator[Parameter]:
    """Parameters of a policy, each with the meaning in the nearest docstring that has it."""
    described: dict[str, docstrings.Described] = {}
    for base in reversed(_bases(cls)):
        described |= docstrings.parameters(vars(base).get("__doc__"))
    values = accepted(cls)
    for field in dataclasses.fields(cls):
        entry = described.get(field.name)
        yield Parameter(
            # a field ``lambda_`` is the parameter ``lambda``
            field.name.rstrip("_"),
            default_of(field),
            _set_text(field.default),
            {
                rules: _set_text(defaults[field.name])
                for rules, defaults in cls.rule_values.items()
                if field.name in defaults
            },
            values[field.name].words,
            values[field.name].unit or None,
            entry.meaning.replace("``", "") if entry else "",
        )


def _optional_columns(cls: type[Policy]) -> Iterator[str]:
    """Columns that a policy uses if the trace has them, sorted."""
    required = {column for columns in cls.requires for column in columns}
    names = cls.needs - _NO_COLUMNS - required
    if "throughput" in cls.needs:
        names |= {"model"}
    if "duration" in cls.needs and (cls.reads_sizes or issubclass(cls, Elastic)):
        names |= {"predicted_duration"}
    if "duration" in cls.needs and issubclass(cls, Elastic):
        names |= {"service"}
    yield from sorted(names)


def _gpu_types(cls: type[Policy]) -> tuple[bool, str]:
    """Whether a policy is aware of GPU types, and how the type of a job is chosen."""
    if issubclass(cls, SharePolicy):
        reads_speeds = "throughput" in cls.needs and cls.weighs_types
        aware = reads_speeds and share_traits(_with_defaults(cls)).tells_types
        return aware, _AWARE if aware else _EQUAL
    if cls.names_types or issubclass(cls, Order):
        return False, _ORDER if cls.pools_types else _BY_ENGINE
    return False, _POOLED if cls.pools_types else _SEPARATE


def _rule_set(cls: type[Policy], rules: str) -> RuleSet:
    """Refusal of a rule set, and the parameters that have other defaults under it."""
    of_paper: Mapping[str, Any] = cls.rule_values.get("paper", {})
    values = cls.rule_values.get(rules, of_paper)
    differing = {
        name: _set_text(value) for name, value in values.items() if value != of_paper.get(name, ...)
    }
    # Only rule set pcs rounds instants to a grid. A policy needs a compiled rule that divides GPUs
    # to run on this grid.
    needs_compiled = RULES[rules].ticks_per_second > 1
    policy = _with_defaults(cls, rules)
    is_compiled = isinstance(policy, Elastic) and policy.rule is not None
    return RuleSet(_NO_COMPILED_RULE if needs_compiled and not is_compiled else "", differing)


def _example(name: str, cls: type[Policy]) -> str:
    """Command that simulates a generated trace under a policy."""
    if name in _EXAMPLES:
        return _EXAMPLES[name]
    inputs = "testbed --cluster 15x4"
    settings = ""
    if "num_ps" in cls.needs:
        inputs = "liquid-batch-jobs --cluster 10x2"
        settings = " --set times=t4"
        if "generations" in {field.name for field in dataclasses.fields(cls)}:
            # the search of the default length takes many seconds
            settings += " --set generations=20"
    elif cls.needs & {"stage_gpu", "priority"}:
        inputs = "muri-like --cluster 8x8"
    elif issubclass(cls, SharePolicy):
        inputs = "gavel-physical --cluster 8xv100,16xp100,24xk80"
    elif issubclass(cls, Elastic):
        inputs = "pcs-workload --cluster 1x64"
    elif cls.requires:
        inputs = "jobs.csv --cluster 8x8"
    return f"repro simulate --trace {inputs} --policy {name}{settings}"
