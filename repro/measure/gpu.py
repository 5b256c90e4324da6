"""The GPU of this machine: its name, and samples of utilisation, memory and power by NVML."""

from __future__ import annotations

import importlib
import os
import re
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

#: Words of the name of a GPU that say nothing about its type.
_NO_TYPE = {"nvidia", "tesla", "geforce", "quadro", "graphics", "device", "gpu"}
#: Words after the number of a GPU that make it another type.
_VARIANTS = {"ti", "super", "ada", "laptop", "max", "q", "d", "sff"}
_VISIBLE_DEVICES = "CUDA_VISIBLE_DEVICES"
_DEVICE_ORDER = "CUDA_DEVICE_ORDER"
#: Program that prints the identifier of the GPU that PyTorch counts first.
_PRINT_UUID = "import torch; print(torch.cuda.get_device_properties(0).uuid)"
#: Longest wait for this program, most of which is the import of PyTorch (s).
_PRINT_S = 120.0
#: Bytes of a MiB, the unit of GPU memory in all tables, although column names end in ``_mb``.
_MIB = 2**20


def gpu_type_of(name: str) -> str:
    """GPU type, as in cluster specs, from the name that the driver gives.

    >>> [gpu_type_of(name) for name in ("NVIDIA H100 80GB HBM3", "Tesla V100-SXM2-16GB")]
    ['h100', 'v100']
    >>> [gpu_type_of(f"NVIDIA GeForce RTX 2080{suffix}") for suffix in ("", " Ti")]
    ['rtx2080', 'rtx2080ti']
    """
    words = [word for word in re.findall("[a-z0-9]+", name.lower()) if word not in _NO_TYPE]
    for number, word in enumerate(words):
        if not any(letter.isdigit() for letter in word):
            continue
        series = words[number - 1] if word.isdigit() and number else ""
        variant = [later for later in words[number + 1 :] if later in _VARIANTS]
        return "".join([series, word, *variant])
    return "".join(words) or "gpu"


class Nvml:
    """Reader of one GPU. Values that the driver does not offer are None.

    Parameters
    ----------
    library : module
        ``pynvml``.
    """

    def __init__(self, library: Any) -> None:
        self._library = library
        library.nvmlInit()
        visible = os.environ.get(_VISIBLE_DEVICES, "0").split(",")[0].strip()
        number = int(visible or 0) if visible.isdigit() or not visible else None
        uuid = visible if number is None else None
        # CUDA counts the fastest GPU first, unless told to count by PCI bus as NVML does
        orders_differ = os.environ.get(_DEVICE_ORDER) != "PCI_BUS_ID"
        if number is not None and orders_differ and library.nvmlDeviceGetCount() > 1:
            uuid = _uuid_of_first()
        if uuid is not None:
            self._gpu = library.nvmlDeviceGetHandleByUUID(uuid)
        else:
            self._gpu = library.nvmlDeviceGetHandleByIndex(number or 0)

    def driver(self) -> str:
        """Version of the driver."""
        return _text(self._library.nvmlSystemGetDriverVersion())

    def name(self) -> str:
        """Name of the GPU."""
        return _text(self._library.nvmlDeviceGetName(self._gpu))

    def memory_mb(self) -> float:
        """Memory of the GPU (MiB)."""
        return float(self._library.nvmlDeviceGetMemoryInfo(self._gpu).total) / _MIB

    def sample(self, *, with_pcie: bool = False) -> dict[str, float | None]:
        """Values of this instant; those of PCIe take 20 ms each."""
        library = self._library
        gpu = self._gpu
        rates = self._value(lambda: library.nvmlDeviceGetUtilizationRates(gpu))
        memory = self._value(lambda: library.nvmlDeviceGetMemoryInfo(gpu))
        power = self._value(lambda: library.nvmlDeviceGetPowerUsage(gpu))
        values = {
            "gpu_util": None if rates is None else float(rates.gpu),
            "mem_util": None if rates is None else float(rates.memory),
            "mem_used_mb": None if memory is None else memory.used / _MIB,
            "power_w": None if power is None else power / 1000,
            "sm_mhz": self._value(
                lambda: library.nvmlDeviceGetClockInfo(gpu, library.NVML_CLOCK_SM)
            ),
            "energy_mj": self._value(lambda: library.nvmlDeviceGetTotalEnergyConsumption(gpu)),
        }
        if with_pcie:
            sent = library.NVML_PCIE_UTIL_TX_BYTES
            received = library.NVML_PCIE_UTIL_RX_BYTES
            values["pcie_tx_kb_s"] = self._value(
                lambda: library.nvmlDeviceGetPcieThroughput(gpu, sent)
            )
            values["pcie_rx_kb_s"] = self._value(
                lambda: library.nvmlDeviceGetPcieThroughput(gpu, received)
            )
        return values

    def _value(self, read: Callable[[], Any]) -> Any:
        """Value of a read; None if the GPU does not support it."""
        try:
            return read()
        except self._library.NVMLError:
            return None


def _uuid_of_first() -> str | None:
    """Identifier of the GPU that PyTorch counts first; None if PyTorch is too old to say."""
    # a process of its own, because PyTorch would keep a CUDA context in this one
    try:
        done = subprocess.run(
            [sys.executable, "-c", _PRINT_UUID],
            capture_output=True,
            text=True,
            timeout=_PRINT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None
    return f"GPU-{done.stdout.strip()}" if done.returncode == 0 else None


def _text(value: Any) -> str:
    """Text of the library, which is bytes in old versions."""
    return value.decode() if isinstance(value, bytes) else str(value)


def nvml() -> Nvml | None:
    """Reader of the GPU; None without ``pynvml`` or without a driver."""
    try:
        library = importlib.import_module("pynvml")
    except ModuleNotFoundError:
        return None
    try:
        return Nvml(library)
    except library.NVMLError:
        return None


class GpuSamples:
    """Samples of the GPU from the start to the end of a ``with`` block.

    Parameters
    ----------
    reader : Nvml, optional
        Reader; None: there are no samples.
    period_s : float
        Seconds between two samples.
    with_pcie : bool
        Whether every tenth sample, from the first on, has the traffic on PCIe.
    """

    def __init__(
        self, reader: Nvml | None, period_s: float = 0.05, *, with_pcie: bool = False
    ) -> None:
        self._reader = reader
        self._period_s = period_s
        self._with_pcie = with_pcie
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        #: samples, each with ``t``, the time (s since 1970)
        self.samples: list[dict[str, float | None]] = []

    def __enter__(self) -> GpuSamples:
        if self._reader is not None:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._reader is not None:
            self._thread.join()

    def values(self, name: str) -> list[float]:
        """Sampled values of a quantity."""
        values = (sample.get(name) for sample in self.samples)
        return [value for value in values if value is not None]

    def mean(self, name: str) -> float | None:
        """Mean of a quantity; None without samples."""
        values = self.values(name)
        return statistics.fmean(values) if values else None

    def std(self, name: str) -> float | None:
        """Standard deviation of a quantity; None with fewer than two samples."""
        values = self.values(name)
        return statistics.stdev(values) if len(values) > 1 else None

    def _sample(self) -> None:
        assert self._reader is not None
        number = 0
        while not self._stop.is_set():
            pcie = self._with_pcie and number % 10 == 0
            self.samples.append({"t": time.time(), **self._reader.sample(with_pcie=pcie)})
            number += 1
            self._stop.wait(self._period_s)
