"""Variations: runs of a figure with other inputs or another seed than its own, never judged."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from repro.base import paths
from repro.figures.cache import key
from repro.figures.params import FigureSpec

#: Inputs that change no result.
_WITHOUT_EFFECT = frozenset({"workers"})
#: Inputs on which published values do not depend.
_WITHOUT_PUBLISHED = frozenset({"extra", "rules", "seed", "seeds"})
#: Folder of variations below the folder of results.
FOLDER = "variations"
#: Letters of the name of a variation's folder.
_NAME_LETTERS = 10
_LONGEST_TEXT = 60


def differences(
    spec: FigureSpec,
    profile: str,
    overrides: Mapping[str, Any],
    default_seed: int | None = None,
) -> dict[str, list[Any]]:
    """Inputs that differ from the parameter file's, ``{name: [here, parameter file]}``.

    Policies added by ``extra`` count as a difference named ``extra``. An override named ``seed``
    that is not ``default_seed``, the notebook's own, counts as a difference, too. Without a
    ``default_seed``, seeds are not compared.
    """
    file_inputs = spec.merged(profile, {})
    changed = {
        name: [value, file_inputs[name]]
        for name, value in overrides.items()
        if value is not None
        and name in file_inputs
        # the seed of the run is compared below
        and name not in (*_WITHOUT_EFFECT, "seed")
        and value != file_inputs[name]
    }
    seed = overrides.get("seed")
    if None not in (seed, default_seed) and seed != default_seed:
        changed["seed"] = [seed, default_seed]
    extra = overrides.get("extra")
    return {**changed, "extra": [extra, None]} if extra else changed


def replaces_trace(changed: Mapping[str, list[Any]]) -> bool:
    """Whether a run has a trace that the parameter file lacks.

    The ``data`` and ``stand_in`` of the file then do not describe the run.
    """
    if "trace" in changed:
        return True
    # a difference is the value here and the value of the file
    traces, traces_in_file = changed.get("traces", [[], []])
    names_in_file = _trace_names(traces_in_file)
    return any(name not in names_in_file for name in _trace_names(traces))


def _trace_names(traces: Any) -> list[Any]:
    """Names of the input ``traces``: a list, or a mapping by label; empty for None."""
    return list(traces.values() if isinstance(traces, Mapping) else traces or ())


def folder(out: Path, figure_id: str, changed: Mapping[str, list[Any]], profile: str) -> Path:
    """Folder of a run: the figure's folder below ``out``, or a separate folder for a variation.

    If ``out`` is ``figures`` or ``build/figures``, variations are in ``build/variations``.
    Otherwise they are in the folder ``variations`` of ``out``.
    """
    if not changed:
        return out / figure_id
    # a difference is the value here and the value of the file
    seed = changed["seed"][0] if "seed" in changed else 0
    inputs = {name: values for name, values in changed.items() if name != "seed"}
    name = key(inputs, profile, seed)[:_NAME_LETTERS]
    return variations_folder(out) / figure_id / name


def variations_folder(out: Path) -> Path:
    """Folder with the variations that belong to a folder of results."""
    usual = (paths.build_dir(), paths.figures_dir())
    return paths.build_dir().parent / FOLDER if out.resolve() in usual else out / FOLDER


def text(changed: Mapping[str, list[Any]]) -> str:
    """Differences in words: ``cluster 4x8 instead of 8x8``.

    >>> text({"cluster": ["4x8", "8x8"], "extra": [["newest"], None]})
    'cluster 4x8 instead of 8x8; with newest'
    """
    return "; ".join(_difference(name, *values) for name, values in changed.items())


def setting_text(changed: Mapping[str, list[Any]], spec: FigureSpec) -> str:
    """The paper's values of the inputs that a run changes, ``cluster 8x8``; may be empty.

    They are those of the profile ``paper``, to which the published values belong. If the file has
    a stand-in trace, the text is "the paper's own trace". Published values do not depend on our
    seeds and rules, and an extra policy leaves them as they are.
    """
    paper_inputs = spec.merged("paper", {})
    has_papers_trace = not spec.stand_in and spec.unknown != "workload"
    texts = [
        f"{name} {_short(paper_inputs[name])}"
        if has_papers_trace or name not in ("trace", "traces")
        else "the paper's own trace"
        for name in changed
        if name not in _WITHOUT_PUBLISHED
    ]
    return ", ".join(texts)


def _difference(name: str, here: Any, in_file: Any) -> str:
    """Difference of an input in words."""
    if name == "extra":
        return f"with {_short(here)}"
    return f"{name} {_short(here)} instead of {_short(in_file)}"


def _short(value: Any) -> str:
    """Value in words, cut where it is long."""
    if isinstance(value, list | tuple):
        value = ", ".join(map(_short, value))
    elif isinstance(value, Mapping):
        value = ", ".join(f"{name}: {_short(item)}" for name, item in value.items())
    shown = "the default" if value is None else str(value)
    return shown if len(shown) <= _LONGEST_TEXT else f"{shown[: _LONGEST_TEXT - 1]}…"
