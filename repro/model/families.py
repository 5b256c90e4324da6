"""Families of policies, such as ``fifo``: their members and the papers of these."""

import re
import sys
from collections.abc import Mapping

#: Synonyms of the field -> name of the family.
_SAME = {
    "fairness": "max-min",
    "fcfs": "fifo",
    "finish-time-fairness": "ftf",
    "max-min-fairness": "max-min",
    "srpt": "srtf",
}
#: Shortest name of a family; a single letter marks a variant of one policy.
_SHORTEST = 2


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
    meant = re.sub(r"[_\s]+", "-", word.strip().casefold())
    if len(meant) < _SHORTEST:
        return []
    meant = _SAME.get(meant, meant)
    return [
        name
        for name, policy in sorted(policies.items())
        if f"-{meant}-" in f"-{name}-" or meant in getattr(policy, "families", ())
    ]


def explain(word: str, policies: Mapping[str, type]) -> list[str]:
    """Lines that list the policies of a family; none if no policy belongs to it.

    Parameters
    ----------
    word : str
        Such as ``fifo``.
    policies : mapping
        Name -> class.

    Returns
    -------
    list of str
        A first line, then one for each policy: name, paper, first line of the docstring.
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


def _paper(policy: type) -> str:
    """Return the paper that the package of a policy names as ``PAPER``, or its own name."""
    package = policy.__module__.rpartition(".")[0] or policy.__module__
    return str(getattr(sys.modules.get(package), "PAPER", package))


def _summary(policy: type) -> str:
    return ((policy.__doc__ or "").strip().splitlines() or [""])[0]
