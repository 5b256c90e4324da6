"""Named rule sets: what `--rules` changes in the engine; policies keep their own part."""

from __future__ import annotations

from dataclasses import dataclass

from repro.errors import ParamError


@dataclass(frozen=True)
class Rules:
    """Event rules of one public simulator, or of the papers.

    Parameters
    ----------
    whole_seconds : bool
        Submission times and durations are cut to whole seconds.
    file_ties : bool
        Jobs submitted at the same instant keep their order in the file; otherwise that of job_id.
    """

    whole_seconds: bool = False
    file_ties: bool = False


RULES: dict[str, Rules] = {
    "paper": Rules(),
    "tiresias": Rules(whole_seconds=True, file_ties=True),
}


def rules_named(name: str) -> Rules:
    """Return a rule set by name, or raise with the accepted names.

    Examples
    --------
    >>> rules_named("tiresias").whole_seconds
    True
    """
    if name not in RULES:
        raise ParamError(f"unknown rules {name!r}; accepted: {', '.join(RULES)}")
    return RULES[name]
