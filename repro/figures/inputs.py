"""The inputs of a figure's run, read by key or by attribute."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from repro.errors import ParamError


class Inputs(Mapping[str, Any]):
    """The inputs of a run, read by key or by attribute.

    Examples
    --------
    >>> inputs = Inputs({"cluster": "15x4", "seeds": [0, 1]})
    >>> inputs["cluster"], inputs.seeds
    ('15x4', [0, 1])
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = dict(values)

    def __getitem__(self, key: str) -> Any:
        if key not in self._values:
            raise ParamError(f"no input {key!r} (inputs: {', '.join(self._values) or 'none'})")
        return self._values[key]

    def __getattr__(self, key: str) -> Any:
        if key.startswith("_"):
            raise AttributeError(key)
        try:
            return self[key]
        except ParamError as error:
            raise AttributeError(str(error)) from None

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Inputs({self._values!r})"
