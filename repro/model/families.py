"""Names that people try: aliases such as ``fifo``, and families of policies such as ``las``."""

import re
import sys
from collections.abc import Mapping

#: Common name that means one policy -> that policy. A policy that is registered under such a name
#: comes first. A word that several policies of this package could mean, such as ``las``, is no
#: alias: `explain` lists them.
ALIASES = {
    "dominant-resource-fairness": "drf",
    "earliest-deadline-first": "edf",
    "fcfs": "yarn-cs",
    "fifo": "yarn-cs",
    "first-come-first-served": "yarn-cs",
    "first-in-first-out": "yarn-cs",
    "shortest-job-first": "sjf",
    "shortest-remaining-time-first": "srtf",
    "srpt": "srtf",
}

#: Common name -> name of the family that it means.
_FAMILY_OF_SYNONYM = {
    "earliest-deadline-first": "edf",
    "fairness": "max-min",
    "fcfs": "fifo",
    "finish-time-fairness": "ftf",
    "first-come-first-served": "fifo",
    "first-in-first-out": "fifo",
    "max-min-fairness": "max-min",
    "shortest-job-first": "sjf",
    "shortest-remaining-time-first": "srtf",
    "srpt": "srtf",
}
#: Shortest name of a family (letters). A single letter marks a variant of a policy.
_MIN_LETTERS = 2


def family(word: str, policies: Mapping[str, type]) -> list[str]:
    """Names of the policies of a family.

    Parameters
    ----------
    word : str
        Such as ``fifo``, in any case.
    policies : mapping
        Name -> class. A policy belongs to the family if the word is a part of its name, between
        hyphens, or one of its ``families``.

    Examples
    --------
    >>> class Shortest:
    ...     families = ("fifo",)
    >>> family("FIFO", {"gavel-fifo": object, "my-sjf": Shortest, "las-2d": object})
    ['gavel-fifo', 'my-sjf']
    """
    name_part = re.sub(r"[_\s]+", "-", word.strip().casefold())
    if len(name_part) < _MIN_LETTERS:
        return []
    name_part = _FAMILY_OF_SYNONYM.get(name_part, name_part)
    return [
        name
        for name, policy in sorted(policies.items())
        if f"-{name_part}-" in f"-{name}-" or name_part in getattr(policy, "families", ())
    ]


def explain(word: str, policies: Mapping[str, type]) -> list[str]:
    """Message that lists the policies of a family, line by line; empty if there are none.

    Parameters
    ----------
    word : str
        Such as ``fifo``.
    policies : mapping
        Name -> class.

    Returns
    -------
    list of str
        A headline, then a line for each policy: name, paper, first line of the docstring.
    """
    names = family(word, policies)
    if not names:
        return []
    papers = {name: _paper(policies[name]) for name in names}
    width = max(map(len, names))
    paper_width = max(map(len, papers.values()))
    return [
        f'no policy "{word}"; policies of that family:',
        *(
            f"{name:<{width}}  {papers[name]:<{paper_width}}  {_summary(policies[name])}"
            for name in names
        ),
    ]


def alias_note(alias: str, policies: Mapping[str, type]) -> str:
    """Line that says which policy an alias runs, and names the other policies of the family.

    Parameters
    ----------
    alias : str
        A key of `ALIASES`.
    policies : mapping
        Name -> class.

    Examples
    --------
    >>> class Blocking:
    ...     "FIFO that blocks."
    ...     families = ("fifo",)
    >>> alias_note("fcfs", {"yarn-cs": Blocking, "gavel-fifo": object})
    'fcfs: runs yarn-cs (FIFO that blocks); others of the family: gavel-fifo'
    """
    name = ALIASES[alias]
    summary = _summary(policies[name]).rstrip(".")
    others = [other for other in family(alias, policies) if other != name]
    of_family = f"; others of the family: {', '.join(others)}" if others else ""
    return f"{alias}: runs {name} ({summary}){of_family}"


def _paper(policy: type) -> str:
    """``PAPER`` of the module of a policy or of its package, or the name of the package."""
    package = policy.__module__.rpartition(".")[0] or policy.__module__
    of_package = getattr(sys.modules.get(package), "PAPER", package)
    return str(getattr(sys.modules.get(policy.__module__), "PAPER", of_package))


def _summary(policy: type) -> str:
    """First line of the docstring of a policy."""
    return ((policy.__doc__ or "").strip().splitlines() or [""])[0]
