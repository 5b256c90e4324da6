"""Your own policies in a paper's figure: entries of the parameter ``extra``, never judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from repro.base.errors import ParamError, PolicyError, near, refuse_unknown
from repro.model.families import ALIASES
from repro.model.policy import make, policies

#: Inputs that list the policies of a figure.
_LISTS = ("policies", "series")
_FORM = "give the name of a policy, {policy: NAME, settings: {…}, label: TEXT}, or a list of these"
#: Remedy for an unknown policy in a figure. The notebook of a figure runs in a separate process,
#: which does not know the policies that another process registered.
_NEW_POLICY = "`repro new-policy NAME` writes a file of your own in repro/policies/own"


@dataclass(frozen=True)
class ExtraPolicy:
    """A policy that a figure shows next to the paper's."""

    label: str
    name: str
    settings: Mapping[str, Any]


def read_extra(extra: Any, remedy: str = _NEW_POLICY) -> list[ExtraPolicy]:
    """Policies of the parameter ``extra``.

    ``remedy`` ends the message about an unknown policy.

    >>> [entry.label for entry in read_extra(["srtf", {"policy": "las-2d", "label": "LAS"}])]
    ['srtf', 'LAS']
    """
    if extra is None:
        return []
    items = extra if isinstance(extra, list | tuple) else [extra]
    return [_read(item, remedy) for item in items]


def _read(item: Any, remedy: str) -> ExtraPolicy:
    """Policy of an item of ``extra``."""
    entry = {"policy": item} if isinstance(item, str) else item
    if not isinstance(entry, Mapping) or not isinstance(entry.get("policy"), str):
        raise ParamError(f"extra: {item!r:.60} is no policy; {_FORM}")
    refuse_unknown("extra: unknown key", entry, ("policy", "settings", "label"))
    name = entry["policy"]
    if name not in policies and name not in ALIASES:
        raise _unknown(name, remedy)
    settings = entry.get("settings") or {}
    if not isinstance(settings, Mapping):
        raise ParamError(f"extra: settings of {name} are {settings!r:.60}; give {{name: value}}")
    try:
        make(name, **settings)
    except ParamError as error:
        raise ParamError(f"extra: {error}") from error
    return ExtraPolicy(str(entry.get("label", name)), name, dict(settings))


def _unknown(name: str, remedy: str) -> PolicyError:
    """Error for a name that is no policy, with the nearest names in one line."""
    if fault := policies.fault(name):
        return PolicyError(f"extra: policy {name!r:.60} cannot be read: {fault}")
    # a file is often named like its policy
    similar = near(name.removesuffix(".py"), policies) or "; `repro policies` lists all"
    return PolicyError(f"extra: unknown policy {name!r:.60}{similar}; {remedy}")


def policy_entries(policies: Mapping[str, Any] | Sequence[str]) -> dict[str, tuple[str, Any]]:
    """Name and settings of each policy of a figure, by series.

    ``policies`` has one of the four forms of `with_extra`.

    >>> policy_entries({"srtf": {}, "Muri-L, 2 jobs": ["muri-l", {"group_size": 2}]})
    {'srtf': ('srtf', {}), 'Muri-L, 2 jobs': ('muri-l', {'group_size': 2})}
    """
    if not isinstance(policies, Mapping):
        return {name: (name, {}) for name in policies}
    entries = {}
    for series, entry in policies.items():
        if isinstance(entry, Mapping) and "policy" in entry:
            entry = [entry["policy"], entry.get("settings")]
        name, settings = entry if isinstance(entry, list) else (series, entry)
        entries[series] = (name, settings or {})
    return entries


def with_extra(inputs: Mapping[str, Any], extra: list[ExtraPolicy]) -> dict[str, Any]:
    """Inputs with the extra policies at the end of the figure's policies.

    The policies have one of four forms: ``{label: [policy, settings]}``, a list of names,
    ``{label: {policy, settings}}`` in the input ``series``, or ``{policy: settings}`` in the input
    ``policies``.
    """
    merged = dict(inputs)
    if not extra:
        return merged
    key = next((name for name in _LISTS if isinstance(inputs.get(name), Mapping | list)), None)
    if key is None:
        raise ParamError("extra: this figure has no list of policies (inputs policies or series)")
    entries = inputs[key]
    merged[key] = entries.copy()
    remedy = "give a label" if _takes_labels(entries, key) else "leave it out"
    for item in extra:
        if item.label in merged[key]:
            raise ParamError(f"extra: {item.label!r} is in the figure already; {remedy}")
        if isinstance(entries, list):
            merged[key].append(_name_alone(item))
        else:
            merged[key][item.label] = _entry_like(entries, key, item)
    return merged


def _takes_labels(entries: Mapping[str, Any] | list[str], key: str) -> bool:
    """Whether the policies of a figure are shown by labels rather than by their names."""
    if isinstance(entries, list):
        return False
    return key == "series" or isinstance(next(iter(entries.values()), None), list)


def _name_alone(item: ExtraPolicy) -> str:
    """An entry of a list of names, which has no room for settings or a label."""
    if item.settings:
        raise ParamError(
            f"extra: policies of this figure have no settings; leave out {item.name}'s"
        )
    _refuse_label(item)
    return item.name


def _refuse_label(item: ExtraPolicy) -> None:
    """Refuse a label where policies are shown by name."""
    if item.label != item.name:
        raise ParamError(f"extra: policies of this figure have no labels; leave out {item.label!r}")


def _entry_like(entries: Mapping[str, Any], key: str, item: ExtraPolicy) -> Any:
    """Entry of an extra policy in the form of the other entries."""
    first_entry = next(iter(entries.values()), None)
    if isinstance(first_entry, list):
        return [item.name, dict(item.settings)]
    # A mapping in `series` has the keys policy and settings. In `policies` it is the settings.
    if key == "series":
        return {"policy": item.name, "settings": dict(item.settings)}
    _refuse_label(item)
    return dict(item.settings)
