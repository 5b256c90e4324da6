"""Throughput tables: steps per second of a model on each GPU type, alone and in pairs (Gavel)."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from repro.base.errors import ParamError
from repro.base.typing import Floats
from repro.model.decision import Run
from repro.model.jobs import JobTable
from repro.model.records import Nodes
from repro.model.speeds import READER

Row = Mapping[str, float]
#: GPU type to the steps per second of the first and of the second model.
PairRow = Mapping[str, tuple[float, float]]

#: Ends the name of a GPU type in the entries of gangs spread over more servers than they need.
UNCONSOLIDATED = "_unconsolidated"


@dataclass(frozen=True)
class ThroughputTable:
    """Performance model of unequal GPU types: rate = T[model, type] / T[model, reference].

    Two jobs with gangs of one size may share their GPUs if the table has the pair; larger groups
    are refused. Policies take the same table as a parameter. Gavel, OSDI 2020, section 3.

    Examples
    --------
    >>> ThroughputTable.of({"a3c": {"v100": 40, "k80": 10}}, "v100").steps_per_s("a3c", 1, "k80")
    10
    """

    #: (model, GPUs of the gang) to steps/s by GPU type, all GPUs together; 0: it cannot run there
    rows: Mapping[tuple[str, int], Row]
    #: GPU type on which the durations of the trace were measured
    reference: str
    #: (model, other model, GPUs of each gang), in one order, to the steps/s of the two by GPU type;
    #: (0, 0) where they do not fit into memory
    pairs: Mapping[tuple[str, str, int], PairRow] = field(default_factory=dict)
    #: GPUs of a server. A gang on more servers than it needs then takes the entries of
    #: ``<type>_unconsolidated``, where there are any; 0: its place plays no role
    server_gpus: int = 0
    #: whether it takes the place of a public table that is not available
    stand_in: bool = field(default=False, compare=False)

    @classmethod
    def of(
        cls,
        single: Mapping[str, Row],
        reference: str,
        pairs: Mapping[tuple[str, str, int], PairRow] | None = None,
    ) -> ThroughputTable:
        """Make a table of one-GPU jobs from model → GPU type → steps per second."""
        return cls({(model, 1): dict(row) for model, row in single.items()}, reference, pairs or {})

    @cached_property
    def gpu_types(self) -> tuple[str, ...]:
        """GPU types of the table, alphabetical."""
        held = {gpu_type for row in self.rows.values() for gpu_type in row}
        return tuple(sorted(gpu_type for gpu_type in held if not gpu_type.endswith(UNCONSOLIDATED)))

    def steps_per_s(self, model: str | None, gpus: int, gpu_type: str | None) -> float:
        """Return the throughput of a gang of ``gpus`` GPUs of one type (steps per second)."""
        row = self.rows.get((str(model), gpus))
        if row is None:
            raise self._no_row(str(model), gpus)
        if gpu_type is None:
            raise ParamError(
                f"{model!r} runs on GPUs of no named type, and a throughput table knows speeds by "
                f"type; give one of {', '.join(self.gpu_types)}"
            )
        if gpu_type not in row:
            raise ParamError(
                f"the throughput table has no GPU type {gpu_type!r} for {model!r}; it has "
                f"{', '.join(self.gpu_types)}: give a cluster of these types (2xv100,2xk80) and a "
                f"policy that chooses among them"
            )
        return row[gpu_type]

    def _no_row(self, model: str, gpus: int) -> ParamError:
        gangs = sorted(width for name, width in self.rows if name == model)
        if gangs:
            hint = f"its gangs there are {', '.join(map(str, gangs))}"
        else:
            known = sorted({name for name, _ in self.rows})
            shown = difflib.get_close_matches(model, known, n=3) or known[:6]
            more = f" and {len(known) - len(shown)} more" if len(known) > len(shown) else ""
            hint = f"it has {', '.join(shown)}{more}"
        return ParamError(
            f"the throughput table has no model {model!r} on {gpus} GPUs; {hint}: give a table "
            "with it or leave the job out"
        )

    def speeds(self, model: str | None, gpus: int, gpu_types: Iterable[str | None]) -> list[float]:
        """Return the throughput on each of several types (steps per second)."""
        return [self.steps_per_s(model, gpus, gpu_type) for gpu_type in gpu_types]

    def pair_speeds(
        self,
        model_a: str | None,
        gang_a: int,
        model_b: str | None,
        gang_b: int,
        gpu_types: Sequence[str | None],
    ) -> Floats:
        """Return steps/s of two jobs that share their GPUs, shape (2, GPU types).

        0 for gangs of different sizes, for pairs the table does not have, and where the two do not
        fit into memory.
        """
        found = np.zeros((2, len(gpu_types)))
        if gang_a == gang_b:
            for column, gpu_type in enumerate(gpu_types):
                found[:, column] = self._pair(model_a, model_b, gang_a, gpu_type) or (0.0, 0.0)
        return found

    def rates(self, table: JobTable, run: Run, nodes: Nodes) -> Sequence[float]:
        """Return work per second relative to the reference type."""
        named = table.named_models(READER)
        models = tuple([named[job] for job in run.jobs])
        widths = tuple([table.gpus[job] for job in run.jobs])
        spread = self.server_gpus > 0 and len(nodes) > math.ceil(run.gpus / self.server_gpus)
        key = (models, widths, run.gpu_type, run.gpus, spread)
        known = self._rates.get(key)
        if known is None:
            known = self._rates[key] = self._relative(*key)
        return known

    def _relative(
        self,
        models: tuple[str | None, ...],
        widths: tuple[int, ...],
        gpu_type: str | None,
        gpus: float,
        spread: bool,
    ) -> tuple[float, ...]:
        """Return the rates of one job or of two that share GPUs of a type."""
        if len(models) > 2:
            raise ParamError(
                f"a throughput table knows pairs, not groups of {len(models)} jobs; give a policy "
                "that shares GPUs between two jobs at most"
            )
        first = self.rows.get((str(models[0]), widths[0]), {})
        apart = f"{gpu_type}{UNCONSOLIDATED}"
        placed = apart if spread and apart in first else gpu_type
        speeds = self._together(models, widths, placed)
        rates = []
        for model, width, speed in zip(models, widths, speeds, strict=True):
            alone = self.steps_per_s(model, width, self.reference)
            if not alone > 0:
                raise ParamError(
                    f"the throughput table has {alone:g} steps/s for {model!r} on {width} GPUs of "
                    f"type {self.reference!r}, the type of the durations: give another reference"
                )
            rates.append(gpus / width * speed / alone)
        return tuple(rates)

    def _together(
        self, models: tuple[str | None, ...], widths: tuple[int, ...], gpu_type: str | None
    ) -> tuple[float, ...]:
        """Return the steps per second of one job or of two on the same GPUs."""
        if len(models) == 1:
            return (self.steps_per_s(models[0], widths[0], gpu_type),)
        one, other = models
        width, width_b = widths
        found = self._pair(one, other, width, gpu_type) if width == width_b else None
        if found is None:
            raise ParamError(
                f"the throughput table has no pair of {one!r} on {width} and {other!r} on "
                f"{width_b} GPUs of type {gpu_type!r}; give a table with this pair, or a policy "
                "that does not share GPUs"
            )
        return found

    def _pair(
        self, one: str | None, other: str | None, width: int, gpu_type: str | None
    ) -> tuple[float, float] | None:
        if gpu_type is None or one is None or other is None:
            return None
        row = self.pairs.get((one, other, width))
        if row is not None:
            return row.get(gpu_type)
        found = self.pairs.get((other, one, width), {}).get(gpu_type)
        return None if found is None else (found[1], found[0])

    @cached_property
    def _rates(self) -> dict[object, tuple[float, ...]]:
        return {}
