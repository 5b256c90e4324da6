"""What each measurement writes, in which order, and where it goes on; workers are stand-ins."""

from __future__ import annotations

import csv
import itertools

import pytest

from repro.base.errors import ParamError
from repro.measure import crew, mps, pairs, pause, profiles, sequence, session, stages
from repro.measure.budget import Budget
from repro.measure.job_types import job_types
from repro.measure.parts import PARTS
from repro.measure.session import Machine, Session
from repro.measure.worker import WorkerError

PARTS_OF_A_LAUNCH = (
    *("spawn_s", "import_s", "cuda_init_s", "build_s", "pool_s", "first_iter_s"),
    *("launch_total_s", "ready_at", "resume_read_s", "resume_restore_s"),
)
LAUNCH = dict.fromkeys(PARTS_OF_A_LAUNCH, 1.0)
STAGE_RATE = {"n": 3, "rate": 6.0, "wait": 0.1, "storage": 1, "cpu": 2, "gpu": 3, "network": 4}
ANSWERS = {
    "facts": {"params_m": 1.5, "reserved_mb": 1000.0},
    "rate": {"n": 5, "seconds": 1.0, "rate": 5.0},
    "run": {"begin": 1.0, "end": 2.0},
    "save": {"save_d2h_s": 1, "save_write_s": 2, "save_fsync_s": 3, "checkpoint_mb": 4},
    "offload": {"offload_s": 1, "reload_s": 1, "offload_held_mb": 9, "offload_left_mb": 1},
    "connect": None,
    "stages": dict.fromkeys(PARTS, 1.0) | {"n": 2},
    "stage_rate": STAGE_RATE,
    "profile": {"iters": 4, "iter_s": 0.5, "params_m": 1.5},
}


class FakeWorker:
    """Worker without a process: it answers at once, and counts those that run."""

    running: list[FakeWorker] = []  # noqa: RUF012
    made: list[str] = []  # noqa: RUF012
    failing = ""

    def __init__(self, configuration, checkpoint=None, locks=None):
        self.configuration = configuration
        self.launch = {}

    def start(self):
        self.running.append(self)
        self.made.append(self.configuration.job.name)

    def wait_until_ready(self):
        if self.configuration.job.name == self.failing:
            raise WorkerError(f"{self.failing}: out of memory")
        self.launch = LAUNCH

    def __enter__(self):
        self.start()
        try:
            self.wait_until_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        if self in self.running:
            self.running.remove(self)
        return 0.5

    def ask(self, request, **arguments):
        self.send(request, **arguments)
        return self.answer()

    def send(self, request, **arguments):
        assert self in self.running
        self.request = request

    def answer(self):
        return ANSWERS[self.request]


@pytest.fixture(autouse=True)
def worker(monkeypatch):
    for module in (crew, pause, profiles, sequence, stages):
        monkeypatch.setattr(module, "Worker", FakeWorker)
    monkeypatch.setattr(FakeWorker, "made", [])
    monkeypatch.setattr(FakeWorker, "failing", "")
    yield FakeWorker
    assert FakeWorker.running == []


class Clock:
    """Seconds that pass by one with each look."""

    def __init__(self):
        self.times = itertools.count()

    def __call__(self):
        return float(next(self.times))


@pytest.fixture
def opened(tmp_path):
    def make(names, minutes=1e6, device="cpu", memory_mb=None):
        machine = Machine(device, device, "Some GPU", "", "2", memory_mb)
        budget = Budget(minutes, clock=Clock())
        lines = []
        made = Session(
            tmp_path, job_types(names), budget, lines.append, machine, None, tmp_path, True, 0
        )
        return made, lines

    return make


def rows(folder, file):
    with (folder / file).open() as stream:
        return list(csv.DictReader(stream))


def test_pairs_are_measured_between_the_jobs_alone(opened, tmp_path):
    made, lines = opened(["a2c", "bert"])
    assert pairs.measure(made) == 7
    alone = rows(tmp_path, "isolated.csv")
    assert [(row["job"], row["when"]) for row in alone] == [
        *[("a2c", "first"), ("bert", "first")],
        *[("a2c", "last"), ("bert", "last")],
    ]
    assert alone[1]["samples_per_s"] == "10"
    together = rows(tmp_path, "colocated.csv")
    assert [row["jobs"] for row in together] == ["a2c+a2c", "a2c+bert", "bert+bert"]
    assert {(row["norm_a"], row["norm_b"], row["norm_sum"]) for row in together} == {
        ("1", "1", "2")
    }
    assert together[0]["k"] == "2"
    assert lines[0].startswith("a2c by timeslice (1 of 7)")
    # nothing is left to do
    assert pairs.measure(made) == 0


def test_a_spent_budget_stops_and_the_next_run_goes_on(opened, tmp_path):
    made, lines = opened(["a2c", "bert"], minutes=0.2)
    first = pairs.measure(made)
    assert 0 < first < 7
    assert "minutes are used" in lines[-1]
    again, _ = opened(["a2c", "bert"])
    assert pairs.measure(again) == 7 - first
    assert len(rows(tmp_path, "isolated.csv")) == 4
    assert len(rows(tmp_path, "colocated.csv")) == 3


def test_workers_stay_as_far_as_the_memory_goes(opened, worker):
    small, _ = opened(["a2c", "bert", "gpt2"], memory_mb=4000.0)
    pairs.measure(small)
    few = len(worker.made)
    worker.made.clear()
    for file in small.out.glob("*.csv"):
        file.unlink()
    large, _ = opened(["a2c", "bert", "gpt2"], memory_mb=1e6)
    pairs.measure(large)
    # two of each job type, for the pairs of one job type
    assert sorted(worker.made) == sorted(["a2c", "bert", "gpt2"] * 2)
    assert few > len(worker.made)


def test_a_job_that_fails_leaves_its_pairs_out(opened, worker, tmp_path):
    worker.failing = "bert"
    made, lines = opened(["a2c", "bert"])
    # a2c before and after its pair
    assert pairs.measure(made) == 3
    assert {row["job"] for row in rows(tmp_path, "isolated.csv")} == {"a2c"}
    assert [row["jobs"] for row in rows(tmp_path, "colocated.csv")] == ["a2c+a2c"]
    assert any("left out, bert: out of memory" in line for line in lines)


def test_pairs_of_a_job_that_failed_alone_wait_for_its_rate(opened, monkeypatch, tmp_path):
    measured_alone = pairs._alone

    def failing_alone(session, crew, mode, when, job):
        if job.name == "bert":
            raise WorkerError("bert: out of memory")
        return measured_alone(session, crew, mode, when, job)

    monkeypatch.setattr(pairs, "_alone", failing_alone)
    made, lines = opened(["a2c", "bert"])
    assert pairs.measure(made) == 3
    assert "a2c+bert by timeslice: left out, bert has no rate alone" in lines
    assert [row["jobs"] for row in rows(tmp_path, "colocated.csv")] == ["a2c+a2c"]
    monkeypatch.setattr(pairs, "_alone", measured_alone)
    assert pairs.measure(opened(["a2c", "bert"])[0]) == 4
    assert {row["norm_b"] for row in rows(tmp_path, "colocated.csv")} == {"1"}


def test_mps_is_measured_where_its_daemon_runs(opened, monkeypatch, tmp_path):
    made, lines = opened(["a2c"], device="cuda")
    monkeypatch.setattr(mps.shutil, "which", lambda name: None)
    assert pairs.measure(made) == 3
    assert lines[-1] == "no pairs under MPS: nvidia-cuda-mps-control is not installed"
    calls = []

    def run(words, **options):
        calls.append((words[1:], options.get("input")))
        return mps.subprocess.CompletedProcess(words, 0, "", "")

    monkeypatch.setattr(mps.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(mps.subprocess, "run", run)
    monkeypatch.delenv("CUDA_MPS_PIPE_DIRECTORY", raising=False)
    assert pairs.measure(made) == 3
    assert {row["mode"] for row in rows(tmp_path, "colocated.csv")} == {"timeslice", "mps"}
    assert calls == [(["-d"], None), ([], "quit\n")]
    assert "CUDA_MPS_PIPE_DIRECTORY" not in mps.os.environ


def test_a_daemon_that_does_not_start_is_named(monkeypatch):
    monkeypatch.setattr(mps.shutil, "which", lambda name: f"/usr/bin/{name}")
    failed = mps.subprocess.CompletedProcess([], 1, "", "no\npermission")
    monkeypatch.setattr(mps.subprocess, "run", lambda *words, **options: failed)
    with mps.control_daemon() as reason:
        assert reason == "nvidia-cuda-mps-control does not start (no permission)"


def test_stages_and_groups(opened, tmp_path):
    made, _ = opened(["a2c", "bert", "lstm"])
    # three rows of stages; two members of groups alone; one pair, free and with locks
    assert stages.measure(made) == 3 + 2 + 2
    row = rows(tmp_path, "stages.csv")[0]
    assert (row["gpu_s"], row["network_s"], row["total_s"]) == ("4", "3", "9")
    assert float(row["gpu_share"]) == pytest.approx(4 / 9, abs=1e-6)
    groups = rows(tmp_path, "interleave.csv")
    assert [(row["group"], row["mode"], row["job"]) for row in groups] == [
        *[("alone", "alone", "a2c"), ("alone", "alone", "bert")],
        *[("a2c+bert", mode, job) for mode in ("free", "lock") for job in ("a2c", "bert")],
    ]
    assert groups[-1]["group_norm_sum"] == "2"
    assert stages.measure(made) == 0


def test_random_groups_are_the_same_each_time(opened):
    names = ["vgg16", "vgg19", "resnet18", "shufflenet", "bert", "gpt2", "a2c", "dqn"]
    made, _ = opened(names)
    groups = stages._groups(made)
    assert groups == stages._groups(made)
    sizes = [len(group) for group in groups]
    assert (sizes.count(2), sizes.count(3), sizes.count(4)) == (28, 28, 28)
    assert len(set(groups)) == len(groups)


def test_a_group_needs_the_rates_of_its_members(opened, worker, tmp_path):
    worker.failing = "bert"
    made, lines = opened(["a2c", "bert"])
    # stages of a2c, and a2c alone before its groups
    assert stages.measure(made) == 2
    assert [row["job"] for row in rows(tmp_path, "interleave.csv")] == ["a2c"]
    assert any("left out" in line for line in lines)


def test_pauses(opened, worker, tmp_path):
    worker.failing = "bert"
    made, _ = opened(["a2c", "bert"])
    assert pause.measure(made) == 2
    good, bad = rows(tmp_path, "pause.csv")
    # save 1 + 2 + 3 s, exit 0.5 s, launch 1 s
    assert good["pause_resume_total_s"] == "7.5"
    assert (good["iter_s"], good["resume_total_s"], good["error"]) == ("0.2", "1", "")
    assert bad["error"] == "bert: out of memory"


def test_sequences_have_four_scenarios(opened, tmp_path):
    made, _ = opened(["a2c"])
    assert sequence.measure(made) == 4
    measured = rows(tmp_path, "sequence.csv")
    assert [row["scenario"] for row in measured[::2]] == list(sequence.SCENARIOS)
    assert [row["job"] for row in measured[:2]] == ["0", "1"]
    for row in measured:
        assert float(row["spawn_at"]) <= float(row["saved_at"]) <= float(row["gone_at"])
    event = measured[1]
    assert float(event["spawn_at"]) >= float(measured[0]["gone_at"])
    assert (tmp_path / "sequence_gpu.csv").exists()
    assert sequence.measure(made) == 0


def test_sequences_that_are_left_out_are_not_counted(opened, worker):
    worker.failing = "bert"
    made, lines = opened(["a2c", "bert"])
    assert sequence.measure(made) == 4
    assert sum("left out" in line for line in lines) == 4


def test_profiles_are_random_and_repeatable(opened, worker, tmp_path):
    made, _ = opened(["a2c", "bert"])
    assert profiles.measure(made) == 2
    measured = rows(tmp_path, "profiles.csv")
    assert [row["run"] for row in measured] == ["a2c-0", "bert-0"]
    assert {row["status"] for row in measured} == {"ok"}
    assert measured[0]["input_mode"] == "env"
    assert float(measured[1]["samples_per_s"]) == 2 * float(measured[1]["batch_size"])
    before = (tmp_path / "profiles.csv").read_bytes()
    (tmp_path / "profiles.csv").unlink()
    profiles.measure(made)
    assert (tmp_path / "profiles.csv").read_bytes() == before
    (tmp_path / "profiles.csv").unlink()
    worker.failing = "bert"
    profiles.measure(made)
    failed = [row for row in rows(tmp_path, "profiles.csv") if row["model"] == "bert"]
    assert {(row["status"], row["error"]) for row in failed} == {("error", "bert: out of memory")}


def test_a_folder_belongs_to_one_gpu(tmp_path, monkeypatch):
    def on(gpu):
        machine = Machine("cuda", gpu.lower(), gpu, "1", "2", 1.0)
        monkeypatch.setattr(session, "_machine", lambda tiny: machine)

    on("H100")
    with session.opened(tmp_path / "mine", job_types(["a2c"]), 1, print) as first:
        inputs = first.inputs
        assert inputs.is_dir()
    assert not inputs.exists()
    facts = {row["name"]: row["value"] for row in rows(tmp_path / "mine", "machine.csv")}
    assert (facts["gpu_type"], facts["gpu"]) == ("h100", "H100")
    on("A100")
    with (
        pytest.raises(ParamError, match="has measurements of H100, and this machine has A100"),
        session.opened(tmp_path / "mine", job_types(["a2c"]), 1, print),
    ):
        pass
    with (
        pytest.raises(ParamError, match="make it first"),
        session.opened(tmp_path / "no" / "mine", job_types(["a2c"]), 1, print),
    ):
        pass
