"""Throughput tables: steps/s of a model on each GPU type, alone and in pairs (Gavel)."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from repro.base.errors import ParamError
from repro.base.typing import Floats
from repro.model.decision import Run
from repro.model.jobs import JobTable
from repro.model.records import Nodes
from repro.model.settings import AtLeast
from repro.model.speeds import NEEDS_MODEL
from repro.perf.iteration_times import iteration_s
from repro.perf.model_names import name_in

Row = Mapping[str, float]
#: GPU type to the steps/s of the first and of the second model.
PairRow = Mapping[str, tuple[float, float]]

_SPEED = AtLeast(0, finite=True)
#: Suffix of a GPU type, for gangs on more nodes than they need.
UNCONSOLIDATED = "_unconsolidated"


@dataclass(frozen=True)
class ThroughputTable:
    """Performance model of unequal GPU types: rate = T[model, type] / T[model, reference].

    Two jobs of equal demand may share their GPUs if the table has the pair; larger groups are
    refused. Some policies take a throughput table as a parameter. By default they use the table of
    the run. `repro.perf.throughput_files.load_throughputs` reads a file.

    A table of Gavel's job types also has the models of the map of names (`repro.perf.model_names`).
    Such a model uses the row of the job type that the map names. On the reference type an iteration
    of the model takes the time of `repro.perf.iteration_times`. The throughputs of the model on the
    GPU types have the same ratios as in the row. For a gang size that the table lacks, the row is
    that of the widest smaller gang that can run on the reference type. If the model has no time of
    an iteration, its steps/s are those of the row, in proportion to the GPUs. A gang of a size that
    the table lacks shares no GPUs.

    In its methods, ``model`` (also ``model_a`` and ``model_b``) is the name of a model, ``gpus``
    (``gpus_a``, ``gpus_b``) the size of its gang, ``gpu_type`` a GPU type and ``gpu_types`` several
    of them. ``table`` has the jobs of the trace, ``run`` is the gang, and ``nodes`` are its nodes.

    Parameters
    ----------
    rows : mapping of (str, int) to mapping of str to float
        (model, GPUs of the gang) to steps/s of the whole gang by GPU type; 0: it cannot run there.
    reference : str
        GPU type on which the durations of the trace were measured.
    pairs : mapping of (str, str, int) to mapping of str to (float, float)
        (model, other model, GPUs of each gang) to the steps/s of the two by GPU type; each pair in
        one order only; (0, 0) where the two do not fit into memory.
    server_gpus : int or mapping of str to int
        GPUs of a node (Gavel: server), or of the largest node of each GPU type. A gang on more
        nodes than it needs then has the throughput of ``<type>_unconsolidated``, if the table has
        it. 0: placement plays no role.
    stand_in : bool
        Whether the table is the stand-in for a public table that is not available.
    names : mapping of str to str, optional
        Further name of a model to its name in the table. The table's own names come first. None:
        the names of the map.

    Raises
    ------
    ParamError
        If a throughput of a single gang is no finite number of 0 or more.

    References
    ----------
    Gavel, OSDI 2020, section 3.

    Examples
    --------
    >>> ThroughputTable.of({"a3c": {"v100": 40, "k80": 10}}, "v100").steps_per_s("a3c", 1, "k80")
    10
    """

    #: name of the table of these models in the map of names (`repro.perf.model_names`)
    table_name: ClassVar[str] = "gavel"

    rows: Mapping[tuple[str, int], Row]
    reference: str
    pairs: Mapping[tuple[str, str, int], PairRow] = field(default_factory=dict)
    server_gpus: int | Mapping[str, int] = 0
    stand_in: bool = field(default=False, compare=False)
    names: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        for (model, gpus), row in self.rows.items():
            for gpu_type, steps_per_s in row.items():
                if not _SPEED.holds(steps_per_s):
                    raise ParamError(
                        f"the throughput table has {steps_per_s!r} steps/s for {model!r} on {gpus} "
                        f"GPUs of type {gpu_type!r}; give {_SPEED.words('a number')}"
                    )

    @classmethod
    def of(
        cls,
        single: Mapping[str, Row],
        reference: str,
        pairs: Mapping[tuple[str, str, int], PairRow] | None = None,
    ) -> ThroughputTable:
        """Table of one-GPU jobs.

        Parameters
        ----------
        single : mapping of str to mapping of str to float
            Model to GPU type to steps/s.
        reference : str
            GPU type on which the durations of the trace were measured.
        pairs : mapping, optional
            As of the class.

        Returns
        -------
        ThroughputTable
            Table with gangs of one GPU.
        """
        return cls({(model, 1): dict(row) for model, row in single.items()}, reference, pairs or {})

    @property
    def reads_nodes(self) -> bool:
        """Whether rates depend on the nodes of a gang."""
        return self.server_gpus != 0

    @cached_property
    def gpu_types(self) -> tuple[str, ...]:
        """GPU types of the table, alphabetical."""
        names = {gpu_type for row in self.rows.values() for gpu_type in row}
        return tuple(sorted(name for name in names if not name.endswith(UNCONSOLIDATED)))

    def steps_per_s(self, model: str | None, gpus: int, gpu_type: str | None) -> float:
        """Throughput of a gang of ``gpus`` GPUs of one type (steps/s)."""
        row = self._row(str(model), gpus)
        if row is None:
            raise self._no_row(str(model), gpus)
        if gpu_type is None:
            raise ParamError(
                f"{model!r} runs on GPUs without a type; a throughput table has speeds by type: "
                f"give one of {', '.join(self.gpu_types)}"
            )
        if gpu_type not in row:
            types = [name for name in self.gpu_types if name in row] or self.gpu_types
            raise ParamError(
                f"the throughput table has no GPU type {gpu_type!r} for {model!r}; it has "
                f"{', '.join(types)}: give a cluster of these types, such as 8x4:{types[0]}"
            )
        return row[gpu_type]

    def _no_row(self, model: str, gpus: int) -> ParamError:
        """Error for a model or a gang size that the table lacks."""
        gangs = sorted(width for name, width in self.rows if name == model)
        remedy = "give a table with it or drop the job"
        if gangs:
            unit = "GPU" if gangs == [1] else "GPUs"
            hint = f"it has gangs of {', '.join(map(str, gangs))} {unit}"
            remedy = "give a table with it, drop the job, or take a cluster without GPU types (8x8)"
        else:
            models = sorted({name for name, _ in self.rows})
            shown = difflib.get_close_matches(model, models, n=3) or models[:6]
            left_out = len(models) - len(shown)
            more = f" and {left_out} more" if left_out else ""
            hint = f"it has {', '.join(shown)}{more}"
        return ParamError(
            f"the throughput table has no model {model!r} on {gpus} GPUs; {hint}: {remedy}"
        )

    def speeds(self, model: str | None, gpus: int, gpu_types: Iterable[str | None]) -> list[float]:
        """Throughput on each of several GPU types (steps/s)."""
        return [self.steps_per_s(model, gpus, gpu_type) for gpu_type in gpu_types]

    def pair_speeds(
        self,
        model_a: str | None,
        gpus_a: int,
        model_b: str | None,
        gpus_b: int,
        gpu_types: Sequence[str | None],
    ) -> Floats:
        """Steps/s of two jobs that share their GPUs, shape (2, GPU types).

        0 for gangs of different sizes, for pairs that the table lacks, and where the two do not fit
        into memory.
        """
        speeds = np.zeros((2, len(gpu_types)))
        if gpus_a == gpus_b:
            for column, gpu_type in enumerate(gpu_types):
                speeds[:, column] = self._pair(model_a, model_b, gpus_a, gpu_type) or (0.0, 0.0)
        return speeds

    def rates(self, table: JobTable, run: Run, nodes: Nodes) -> Sequence[float]:
        """Rate of each member, relative to its throughput alone on the reference type."""
        model_of = table.named_models(NEEDS_MODEL)
        models = tuple([model_of[job] for job in run.jobs])
        widths = tuple([table.gpus[job] for job in run.jobs])
        server_gpus = self.server_gpus
        if isinstance(server_gpus, Mapping):
            server_gpus = server_gpus.get(str(run.gpu_type), 0)
        spread = server_gpus > 0 and len(nodes) > math.ceil(run.gpus / server_gpus)
        key = (models, widths, run.gpu_type, run.gpus, spread)
        rates = self._rates.get(key)
        if rates is None:
            rates = self._rates[key] = self._relative_rates(*key)
        return rates

    def _relative_rates(
        self,
        models: tuple[str | None, ...],
        widths: tuple[int, ...],
        gpu_type: str | None,
        gpus: float,
        spread: bool,
    ) -> tuple[float, ...]:
        """Rates of one job, or of two that share GPUs of a type.

        A rate also scales with the GPUs held over the demand.
        """
        if len(models) > 2:
            raise ParamError(
                f"a throughput table has pairs, not groups of {len(models)} jobs; give a policy "
                "that shares GPUs between two jobs at most"
            )
        first_row = self._row(str(models[0]), widths[0]) or {}
        type_name = gpu_type
        if spread and f"{gpu_type}{UNCONSOLIDATED}" in first_row:
            type_name = f"{gpu_type}{UNCONSOLIDATED}"
        speeds = self._speeds_on(models, widths, type_name)
        rates = []
        for model, width, speed in zip(models, widths, speeds, strict=True):
            reference_speed = self.steps_per_s(model, width, self.reference)
            if not reference_speed > 0:
                raise ParamError(
                    f"the throughput table has {reference_speed:g} steps/s for {model!r} on "
                    f"{width} GPUs of type {self.reference!r}, to which the durations of the trace "
                    "refer; give another reference GPU type"
                )
            rates.append(gpus / width * speed / reference_speed)
        return tuple(rates)

    def _speeds_on(
        self, models: tuple[str | None, ...], widths: tuple[int, ...], gpu_type: str | None
    ) -> tuple[float, ...]:
        """Steps/s of one job, or of two on the same GPUs."""
        if len(models) == 1:
            return (self.steps_per_s(models[0], widths[0], gpu_type),)
        model_a, model_b = models
        width_a, width_b = widths
        speeds = None
        if width_a == width_b:
            speeds = self._pair(model_a, model_b, width_a, gpu_type)
        if speeds is None:
            raise ParamError(
                f"the throughput table has no pair of {model_a!r} on {width_a} and {model_b!r} on "
                f"{width_b} GPUs of type {gpu_type!r}; give a table with this pair, or a policy "
                "that does not share GPUs"
            )
        return speeds

    def _pair(
        self, model_a: str | None, model_b: str | None, width: int, gpu_type: str | None
    ) -> tuple[float, float] | None:
        """Steps/s of two models that share their GPUs; None for a pair that the table lacks."""
        if gpu_type is None or model_a is None or model_b is None:
            return None
        row = self.pairs.get((model_a, model_b, width))
        if row is not None:
            return row.get(gpu_type)
        speeds = self.pairs.get((model_b, model_a, width), {}).get(gpu_type)
        if speeds is not None:
            return speeds[1], speeds[0]
        own_a = self.own_name(model_a)
        own_b = self.own_name(model_b)
        if (own_a, own_b) == (model_a, model_b):
            return None
        speeds = self._pair(own_a, own_b, width, gpu_type)
        if speeds is None:
            return None
        # pairs have no row of a narrower gang, which `scale` may use
        scale_a = self._scale_of_row(model_a, width, width)
        scale_b = self._scale_of_row(model_b, width, width)
        return speeds[0] * scale_a, speeds[1] * scale_b

    def _row(self, model: str, gpus: int) -> Row | None:
        """Steps/s by GPU type of a gang; None for a model or a gang size that the table lacks."""
        row = self.rows.get((model, gpus))
        if row is not None:
            return row
        key = (model, gpus)
        if key not in self._mapped_rows:
            self._mapped_rows[key] = self._mapped_row(model, gpus)
        return self._mapped_rows[key]

    def _mapped_row(self, model: str, gpus: int) -> Row | None:
        """Steps/s of a model of the map of names, in proportion to a gang of the table."""
        width = self._measured_width(model, gpus)
        if width is None:
            return None
        factor = self.scale(model, gpus)
        own_row = self.rows[self.own_name(model), width]
        return {gpu_type: speed * factor for gpu_type, speed in own_row.items()}

    def scale(self, model: str, gpus: int) -> float:
        """Steps/s of a model over those of the table's row that it uses.

        It is 1 if `_measured_width` is None. For a model with a time of an iteration it is also 1
        if the row has 0 steps/s on the reference type.
        """
        width = self._measured_width(model, gpus)
        return 1.0 if width is None else self._scale_of_row(model, gpus, width)

    def _scale_of_row(self, model: str, gpus: int, width: int) -> float:
        """Steps/s of a model over those of the table's row of ``width`` GPUs, as in `scale`."""
        own_name = self.own_name(model)
        if own_name == model:
            return gpus / width
        seconds = iteration_s(model, gpus) if self.names is None else None
        if seconds is None:
            return gpus / width
        on_reference = self.rows.get((own_name, width), {}).get(self.reference, 0.0)
        return 1.0 / (seconds * on_reference) if on_reference > 0 else 1.0

    def own_name(self, model: str) -> str:
        """Name that a model of a trace has in this table, such as that of a relative.

        It is the given name if the table has the model under it, or lacks the model.
        """
        if self.names is not None:
            return model if model in self._models else self.names.get(model, model)
        if model not in self._own_names:
            mapped = name_in("gavel", model)
            is_relative = mapped in self._models and model not in self._models
            self._own_names[model] = mapped if is_relative else model
        return self._own_names[model]

    def _measured_width(self, model: str, gpus: int) -> int | None:
        """Size of the gang in the table from which a gang of ``gpus`` GPUs gets its steps/s.

        It is the widest gang of at most ``gpus`` GPUs; gangs that can run on the reference type
        have precedence. None: the table has no such gang.

        A model that `own_name` leaves unchanged gets None, unless the table has ``names``.
        """
        name = self.own_name(model)
        if name == model and self.names is None:
            return None
        widths = [width for own, width in self.rows if own == name and width <= gpus]
        able = [width for width in widths if self.rows[name, width].get(self.reference, 0.0) > 0]
        return max(able or widths, default=None)

    @cached_property
    def _models(self) -> frozenset[str]:
        """Models of the table, under their names there."""
        return frozenset(model for model, _ in self.rows)

    @cached_property
    def _own_names(self) -> dict[str, str]:
        """Cache of `own_name`, by model.

        A look-up in the map of names takes longer, because it first finds the path of the map.
        """
        return {}

    @cached_property
    def _mapped_rows(self) -> dict[tuple[str, int], Row | None]:
        """Cache of `_mapped_row`, by its arguments."""
        return {}

    @cached_property
    def _rates(self) -> dict[object, tuple[float, ...]]:
        """Cache of `_relative_rates`, by its arguments."""
        return {}
