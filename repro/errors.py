"""Every error the package raises on purpose; one line tells what, where and what to do."""


class ReproError(Exception):
    """Base of all errors a user can cause; the command line prints one line and exits with 2."""


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


class StandInWarning(UserWarning):
    """A public trace cannot be had and is replaced by a drawn one."""


class CacheWarning(UserWarning):
    """The cache folder could not be read or written; what it should hold is computed again."""


class BrokenFileWarning(UserWarning):
    """A file of a family cannot be imported; what it defines is left out, the rest goes on."""
