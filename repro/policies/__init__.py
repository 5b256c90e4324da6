"""Scheduling policies, a folder for each paper; ``repro.policies()`` lists their names."""

import sys
from types import ModuleType

from repro.model.policy import policies


class _Policies(ModuleType):
    """The package as a callable module."""

    def __call__(self) -> list[str]:
        """Names of the registered policies, sorted.

        Returns
        -------
        list of str
            Names that `repro.make` and ``repro simulate --policy`` accept, without aliases.

        Examples
        --------
        >>> import repro
        >>> "srtf" in repro.policies()
        True
        """
        return list(policies)


sys.modules[__name__].__class__ = _Policies
