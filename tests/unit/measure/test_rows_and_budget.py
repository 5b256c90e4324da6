"""Measured tables that grow row by row, the budget, names of GPUs, job types."""

from __future__ import annotations

import csv
import signal
import sys
import types

import pytest

from repro.base import paths
from repro.base.errors import ParamError
from repro.measure import host, session
from repro.measure.budget import Budget
from repro.measure.columns import COLUMNS, KEYS
from repro.measure.gpu import GpuSamples, Nvml, gpu_type_of, nvml
from repro.measure.job_types import JOB_TYPES, job_types
from repro.measure.rows import RowTable


@pytest.mark.parametrize("file", COLUMNS)
def test_columns_are_those_of_the_tables_of_the_checkout(file):
    with (paths.traces_dir() / "measured" / file).open() as stream:
        header = next(csv.reader(line for line in stream if not line.startswith("#")))
    assert COLUMNS[file] == tuple(header)
    assert set(KEYS[file]) <= set(header)


def test_the_job_types_have_the_configurations_of_the_tables_of_the_checkout():
    with (paths.traces_dir() / "measured" / "isolated.csv").open() as stream:
        rows = list(csv.DictReader(line for line in stream if not line.startswith("#")))
    assert {row["job"] for row in rows} == set(JOB_TYPES)
    for row in rows:
        job = JOB_TYPES[row["job"]]
        assert (job.batch_size, job.input_size) == (int(row["batch_size"]), int(row["input_size"]))
        assert (job.precision, job.optimizer) == (row["precision"], row["optimizer"])
        assert job.batch_size in job.batch_sizes() and job.input_size in job.sizes


def test_unknown_job_types_are_refused():
    with pytest.raises(ParamError, match="no job type 'brt'; did you mean 'bert'"):
        job_types(["bert", "brt"])
    assert [job.name for job in job_types(["dqn", "bert", "dqn"])] == ["dqn", "bert"]


def pause_row(job, seconds=1.0):
    return {"job": job, "repeat": 0, "spawn_s": seconds}


def test_rows_are_on_the_disk_as_they_come(tmp_path):
    table = RowTable(tmp_path, "pause.csv")
    assert not table.path.exists()
    table.add(pause_row("bert", 0.123456789))
    lines = table.path.read_text().splitlines()
    assert lines[0] == ",".join(COLUMNS["pause.csv"])
    assert lines[1].startswith("bert,,,,0,0.123457,")
    table.add(pause_row("gpt2") | {"error": "out of\nmemory"})
    assert len(table.path.read_text().splitlines()) == 3


def test_a_second_run_knows_the_rows_of_the_first(tmp_path):
    RowTable(tmp_path, "pause.csv").add(pause_row("bert"))
    table = RowTable(tmp_path, "pause.csv")
    assert table.has("bert", 0)
    assert not table.has("gpt2", 0)
    table.add(pause_row("gpt2"))
    assert [row["job"] for row in RowTable(tmp_path, "pause.csv").rows] == ["bert", "gpt2"]


@pytest.mark.parametrize("cut", [1, 10, 20])
def test_a_line_that_a_kill_cut_off_is_measured_again(tmp_path, cut):
    table = RowTable(tmp_path, "pause.csv")
    table.add(pause_row("bert"))
    table.add(pause_row("gpt2"))
    table.path.write_bytes(table.path.read_bytes()[:-cut])
    resumed = RowTable(tmp_path, "pause.csv")
    assert resumed.has("bert", 0)
    assert not resumed.has("gpt2", 0)
    resumed.add(pause_row("gpt2"))
    assert len(table.path.read_text().splitlines()) == 3


def test_a_file_that_ends_within_its_header_begins_anew(tmp_path):
    (tmp_path / "pause.csv").write_text("job,params")
    table = RowTable(tmp_path, "pause.csv")
    table.add(pause_row("bert"))
    assert RowTable(tmp_path, "pause.csv").has("bert", 0)


def test_rows_of_a_group_are_there_together(tmp_path):
    table = RowTable(tmp_path, "machine.csv")
    table.extend({"name": name, "value": name} for name in "ab")
    assert table.path.read_text() == "name,value\na,a\nb,b\n"


def test_other_columns_are_refused_and_stay(tmp_path):
    (tmp_path / "pause.csv").write_text("job,seconds\nbert,1\n")
    with pytest.raises(ParamError, match="other columns than this measurement writes"):
        RowTable(tmp_path, "pause.csv")
    assert (tmp_path / "pause.csv").read_text() == "job,seconds\nbert,1\n"


def test_a_budget_is_spent_after_its_minutes():
    now = [100.0]
    budget = Budget(2, clock=lambda: now[0])
    assert (budget.used_s, budget.left_s, budget.is_spent) == (0, 120, False)
    now[0] += 120
    assert (budget.used_s, budget.left_s, budget.is_spent) == (120, 0, True)


@pytest.mark.parametrize(
    ("name", "gpu_type"),
    [
        ("NVIDIA A100-SXM4-40GB", "a100"),
        ("Tesla K80", "k80"),
        ("Tesla P100-PCIE-16GB", "p100"),
        ("NVIDIA GeForce GTX 1080", "gtx1080"),
        ("NVIDIA GeForce GTX 1080 Ti", "gtx1080ti"),
        ("NVIDIA GeForce RTX 2080", "rtx2080"),
        ("NVIDIA GeForce RTX 2080 Ti", "rtx2080ti"),
        ("NVIDIA GeForce RTX 2080 SUPER", "rtx2080super"),
        ("NVIDIA GeForce RTX 4070 Ti SUPER", "rtx4070tisuper"),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", "rtx4090laptop"),
        ("Quadro RTX 6000", "rtx6000"),
        ("NVIDIA RTX 6000 Ada Generation", "rtx6000ada"),
        ("NVIDIA RTX A6000", "a6000"),
        ("NVIDIA L4", "l4"),
        ("NVIDIA Graphics Device", "gpu"),
    ],
)
def test_types_of_gpus(name, gpu_type):
    assert gpu_type_of(name) == gpu_type


class FakeLibrary:
    """A GPU at half load that does not count energy."""

    NVML_CLOCK_SM = 1
    NVML_PCIE_UTIL_TX_BYTES = 0
    NVML_PCIE_UTIL_RX_BYTES = 1

    count = 1

    class NVMLError(Exception):
        pass

    class Rates:
        gpu = 50
        memory = 25
        used = 2**30
        total = 2**36

    def nvmlInit(self):
        pass

    def nvmlDeviceGetCount(self):
        return self.count

    def nvmlDeviceGetHandleByIndex(self, index):
        return index

    def nvmlDeviceGetHandleByUUID(self, name):
        return name

    def nvmlDeviceGetUtilizationRates(self, gpu):
        return self.Rates

    nvmlDeviceGetMemoryInfo = nvmlDeviceGetUtilizationRates

    def nvmlDeviceGetPowerUsage(self, gpu):
        return 300_000

    def nvmlDeviceGetClockInfo(self, gpu, clock):
        return 1980

    def nvmlDeviceGetPcieThroughput(self, gpu, counter):
        return 7 + counter

    def nvmlDeviceGetTotalEnergyConsumption(self, gpu):
        raise self.NVMLError

    def nvmlSystemGetDriverVersion(self):
        return b"580.159"

    def nvmlDeviceGetName(self, gpu):
        return "NVIDIA H100 80GB HBM3"


class WithoutDriver(FakeLibrary):
    def nvmlInit(self):
        raise self.NVMLError


def test_the_reader_of_the_gpu_needs_library_and_driver(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert nvml() is None
    monkeypatch.setitem(sys.modules, "pynvml", WithoutDriver())
    assert nvml() is None
    monkeypatch.setitem(sys.modules, "pynvml", FakeLibrary())
    assert nvml() is not None


def test_the_machine_is_named_by_the_reader(monkeypatch):
    with_gpu = types.SimpleNamespace(
        __version__="2.11", cuda=types.SimpleNamespace(is_available=lambda: True)
    )
    monkeypatch.setitem(sys.modules, "torch", with_gpu)
    monkeypatch.setitem(sys.modules, "pynvml", FakeLibrary())
    machine = session._machine(tiny=False)
    assert machine == ("cuda", "h100", "NVIDIA H100 80GB HBM3", "580.159", "2.11", 2**16)
    assert session._machine(tiny=True).device == "cpu"


def test_samples_of_the_gpu(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-abc,1")
    reader = Nvml(FakeLibrary())
    assert reader._gpu == "GPU-abc"
    assert reader.driver() == "580.159"
    with GpuSamples(reader, 0.001, with_pcie=True) as samples:
        while len(samples.samples) < 3:
            pass
    assert samples.mean("gpu_util") == 50
    assert samples.mean("power_w") == 300
    assert samples.mean("energy_mj") is None
    assert samples.std("mem_util") == 0
    assert samples.values("pcie_rx_kb_s")[0] == 8


class TwoGpus(FakeLibrary):
    count = 2


@pytest.mark.parametrize(
    ("environment", "gpu"),
    [
        ({}, "GPU-fast"),
        ({"CUDA_VISIBLE_DEVICES": "1"}, "GPU-slow"),
        ({"CUDA_VISIBLE_DEVICES": "1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, 1),
        ({"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, 0),
        ({"CUDA_VISIBLE_DEVICES": "GPU-abc"}, "GPU-abc"),
    ],
)
def test_the_gpu_of_the_samples_is_that_of_pytorch(monkeypatch, tmp_path, environment, gpu):
    # CUDA counts the fastest GPU first, NVML counts by PCI bus
    (tmp_path / "torch.py").write_text(
        "import os\n"
        "from types import SimpleNamespace\n"
        "names = ['fast', 'slow']\n"
        "first = int(os.environ.get('CUDA_VISIBLE_DEVICES', '0'))\n"
        "gpu = SimpleNamespace(uuid=names[first])\n"
        "cuda = SimpleNamespace(get_device_properties=lambda number: gpu)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    for name in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert Nvml(TwoGpus())._gpu == gpu


def test_an_old_pytorch_without_identifiers_of_gpus_leaves_the_number(monkeypatch, tmp_path):
    (tmp_path / "torch.py").write_text("cuda = None\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    monkeypatch.delenv("CUDA_DEVICE_ORDER", raising=False)
    assert Nvml(TwoGpus())._gpu == 1


def test_without_a_reader_there_are_no_samples():
    with GpuSamples(None) as samples:
        pass
    assert samples.mean("gpu_util") is None
    assert samples.std("gpu_util") is None


def test_a_signal_ends_a_measurement_as_ctrl_c_does(monkeypatch, tmp_path):
    machine = session.Machine("cpu", "cpu", "none", "", "2.0", None)
    monkeypatch.setattr(session, "_machine", lambda *, tiny: machine)
    earlier = signal.getsignal(signal.SIGTERM)
    with (
        pytest.raises(KeyboardInterrupt),
        session.opened(tmp_path / "mine", job_types(["bert"]), 1.0, print, tiny=True) as made,
    ):
        assert made.inputs.is_dir()
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) == earlier
    assert not made.inputs.exists()


def test_facts_on_the_host(monkeypatch, tmp_path):
    assert host.rss_mb() > 1
    monkeypatch.setattr(host, "_PROCESS", tmp_path)
    assert host.pss_mb() is None
    (tmp_path / "smaps_rollup").write_text("header\nRss: 9 kB\nPss:  1000 kB\n")
    (tmp_path / "io").write_text("rchar: 1\nread_bytes: 4096\n")
    assert host.pss_mb() == pytest.approx(1.024)
    assert host.disk_bytes() == 4096
