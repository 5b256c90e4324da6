"""Every error the package raises on purpose; one line tells what, where and what to do."""

import difflib
from collections.abc import Collection, Iterable


class ReproError(Exception):
    """Base of all errors a user can cause; the command line prints it and exits with 2.

    Its message is one line; further arguments are the items of a list below it.

    >>> print(ReproError("policies of that family:", "gavel-fifo", "yarn-cs"))
    policies of that family:
      gavel-fifo
      yarn-cs
    """

    def __str__(self) -> str:
        return "\n  ".join(map(str, self.args))


class ParamError(ReproError):
    """A parameter, parameter file or command-line value is not accepted."""


class TraceError(ReproError):
    """A trace or cluster file breaks a rule; the message names file, line and column."""


class PolicyError(ReproError):
    """A policy is unknown, reads what it did not declare, or returned an impossible decision."""


class DataMissingError(ReproError):
    """Public data is neither cached, nor in the mirror, nor downloadable."""


class ClaimError(ReproError):
    """A claim in a parameter file is malformed or was given no value by its notebook."""


class InputWarning(UserWarning):
    """A property of the input changes the meaning of a result."""


class StandInWarning(UserWarning):
    """A public trace is not available and a generated stand-in takes its place."""


class CacheWarning(UserWarning):
    """The cache folder could not be read or written; what it should hold is computed again."""


class BrokenFileWarning(UserWarning):
    """A file of a family cannot be imported; what it defines is left out, the rest goes on."""


def near(name: object, known: Iterable[object]) -> str:
    """Return ``; did you mean 'seed'?`` for what a name comes close to, or nothing.

    >>> near("sede", ["seed", "jobs"])
    "; did you mean 'seed'?"
    """
    found = difflib.get_close_matches(str(name)[:60], list(map(str, known)), n=3)
    return f"; did you mean {' or '.join(map(repr, found))}?" if found else ""


def refuse_unknown(what: str, given: Iterable[str], accepted: Collection[str]) -> None:
    """Raise for the first name that is not accepted; ``what`` is such as ``'srtf' has no setting``.

    Raises
    ------
    ParamError
        With near matches, and all that is accepted.
    """
    for name in given:
        if name not in accepted:
            hint = f"{near(name, accepted)} (accepted: {', '.join(accepted) or 'none'})"
            raise ParamError(f"{what} {name!r:.60}{hint}")
