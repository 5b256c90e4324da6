"""Other simulators and repro on the same jobs, one after the other: `make peers`.

A peer is another simulator under one policy. AccaSim and Ciw are installed into build/peers.
`make peers PEERS=folder` also runs the simulators of Muri and Tiresias. The folder contains their
checkouts as Muri and Tiresias. Costs are written to build/bench/peers.csv. `make speed` makes the
table of docs/speed.md from this file.

The cost of a peer is the CPU time of its process, minus that of the same command on the first job
alone. The cost of repro is the CPU time of `repro.simulate` after a first run.
"""

from __future__ import annotations

import os
import resource
import shlex
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pandas as pd
from costs import OUT
from unit import cpu_of, unit

import repro
from repro.base.errors import ReproError
from repro.files import public

ROOT = Path(__file__).resolve().parents[2]
TABLE = OUT / "peers.csv"
PYTHON = ROOT / "build" / "peers" / "bin" / "python"
TRACE = "muri-trace4"
#: Number of runs of a peer, and of repro.
RUNS = 3
OUR_RUNS = 9


# the inputs --------------------------------------------------------------------------------------


def whole_seconds(jobs: pd.DataFrame) -> pd.DataFrame:
    """Submission (s), duration (s) and demand of each job in whole numbers, (jobs, 3)."""
    numbers = jobs[["submit_time", "duration", "num_gpus"]]
    whole = numbers.astype(int)
    if (whole != numbers).any(axis=None):
        raise ReproError("these simulators take whole seconds only")
    return whole


def swf(jobs: pd.DataFrame) -> str:
    """Jobs in the Standard Workload Format, 18 fields a job, with GPUs as processors."""
    lines = [
        f"{number} {submit} -1 {duration} {gpus} -1 -1 {gpus} {duration} -1 1 1 1 1 1 1 -1 -1\n"
        for number, submit, duration, gpus in whole_seconds(jobs).itertuples(name=None)
    ]
    return "".join(lines)


def one_gpu_each(jobs: pd.DataFrame) -> pd.DataFrame:
    """Jobs with a demand of one GPU and the same GPU-seconds."""
    service = jobs["duration"] * jobs["num_gpus"]
    return jobs[["job_id", "submit_time"]].assign(duration=service, num_gpus=1)


def services(jobs: pd.DataFrame) -> str:
    """Submission (s) and GPU-seconds of each job, a line a job."""
    lines = [
        f"{submit},{duration * gpus}\n"
        for submit, duration, gpus in whole_seconds(jobs).itertuples(index=False, name=None)
    ]
    return "".join(lines)


def tiresias_csv(jobs: pd.DataFrame) -> str:
    """Jobs for the simulator of Tiresias. Its placement `count` ignores the model of a job."""
    lines = ["job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n"]
    lines += [
        f"{number},{gpus},{submit},1,resnet50,{duration},0\n"
        for number, submit, duration, gpus in whole_seconds(jobs).itertuples(name=None)
    ]
    return "".join(lines)


def muri_csv(jobs: pd.DataFrame) -> str:
    """First lines of the public file of the trace, which Muri's simulator reads unchanged."""
    lines = public.fetch(TRACE).read_text().splitlines(keepends=True)
    return "".join(lines[: len(jobs) + 1])


# the peers ---------------------------------------------------------------------------------------


def printed_jct(output: str, folder: Path) -> float:
    """Average JCT (s) in the last line that `peer_accasim.py` or `peer_ciw.py` prints."""
    return float(output.splitlines()[-1])


def logged_jct(output: str, folder: Path) -> float:
    """Average JCT (s) in the log of the simulators of Tiresias and Muri."""
    return float(pd.read_csv(folder / "job.csv")["JCT"].mean())


def as_they_are(jobs: pd.DataFrame) -> pd.DataFrame:
    """Jobs unchanged."""
    return jobs


@dataclass(frozen=True)
class Peer:
    """Another simulator under one policy, and the policy and cluster of repro compared with it."""

    name: str
    #: FILE is the input file, OUT a folder for the output, `python` the Python of build/peers.
    command: str
    write: Callable[[pd.DataFrame], str]
    jct: Callable[[str, Path], float]
    policy: str
    rules: str = "paper"
    jobs: Callable[[pd.DataFrame], pd.DataFrame] = as_they_are
    cluster: str = "8x8"
    #: Folder below PEERS where the command runs; empty for the repository.
    checkout: str = ""
    suffix: str = ".csv"

    def words(self, source: Path, out: Path) -> list[str]:
        """Words of the command, with the paths of FILE, OUT and python."""
        paths = {"FILE": str(source), "OUT": str(out)}
        words = []
        for word in self.command.split():
            option, equals, value = word.rpartition("=")
            words.append(option + equals + paths.get(value, value))
        return [str(PYTHON) if words[0] == "python" else words[0], *words[1:]]

    def why_not(self, checkouts: Path | None) -> str:
        """Reason why the peer cannot run; empty if it can."""
        if self.checkout and not (checkouts and (checkouts / self.checkout).is_dir()):
            return f"no {self.checkout} in PEERS"
        program = self.words(Path(), Path())[0]
        return "" if shutil.which(program) else f"no {program}"


#: The simulators of Tiresias and Muri have the same options.
OPTIONS = "run_sim.py {} --scheme={} --schedule={} --trace_file=FILE --log_path=OUT"


PEERS = [
    Peer(
        "accasim fifo",
        "python tests/bench/peer_accasim.py FILE OUT",
        swf,
        printed_jct,
        "yarn-cs",
        # AccaSim lets a gang spread over nodes
        cluster="1x64",
        suffix=".swf",
    ),
    Peer(
        "ciw fifo",
        "python tests/bench/peer_ciw.py FILE",
        services,
        printed_jct,
        "yarn-cs",
        jobs=one_gpu_each,
    ),
    Peer(
        "tiresias dlas-gpu",
        "python2.7 "
        + OPTIONS.format("--num_node_p_switch=8 --num_gpu_p_node=8", "count", "dlas-gpu"),
        tiresias_csv,
        logged_jct,
        "tiresias-l",
        rules="tiresias",
        checkout="Tiresias/simulator",
    ),
    Peer(
        "muri shortest",
        "python " + OPTIONS.format("--cluster_spec=cluster_spec/n8g8.csv", "yarn", "shortest"),
        muri_csv,
        logged_jct,
        "srtf",
        rules="muri",
        checkout="Muri/simulator",
    ),
    Peer(
        "muri dlas-gpu",
        "python " + OPTIONS.format("--cluster_spec=cluster_spec/n8g8.csv", "yarn", "dlas-gpu"),
        muri_csv,
        logged_jct,
        "tiresias-l",
        rules="muri",
        checkout="Muri/simulator",
    ),
]


# the measurement ---------------------------------------------------------------------------------


def process_cpu(command: list[str], folder: Path) -> tuple[float, str]:
    """CPU seconds of a process with its children, and its output."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise ReproError(f"{shlex.join(command)} in {folder}: ended with {done.returncode}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used, done.stdout


def peer_cost(peer: Peer, jobs: pd.DataFrame, folder: Path) -> tuple[float, float]:
    """Median CPU seconds of the runs of a peer's process, and its average JCT (s)."""
    out = OUT / "peers" / peer.name.replace(" ", "-")
    out.mkdir(parents=True, exist_ok=True)
    source = out / f"jobs{peer.suffix}"
    source.write_text(peer.write(jobs))
    costs = []
    for _ in range(RUNS):
        cost, output = process_cpu(peer.words(source, out), folder)
        costs.append(cost)
    return statistics.median(costs), peer.jct(output, out)


def our_cost(peer: Peer, jobs: pd.DataFrame) -> tuple[float, float]:
    """Median CPU seconds of the runs of `repro.simulate`, and its average JCT (s)."""
    ours = peer.jobs(jobs)
    result = repro.simulate(ours, peer.cluster, peer.policy, rules=peer.rules)
    costs = [
        cpu_of(repro.simulate, ours, peer.cluster, peer.policy, rules=peer.rules)[0]
        for _ in range(OUR_RUNS)
    ]
    return statistics.median(costs), float(result.jobs["jct"].mean())


def source_of(folder: Path) -> str:
    """Commit of the checkout around a simulator's folder; a remark if there is no checkout."""
    root = folder.parent
    if not (root / ".git").exists():
        return "a copy, no checkout"
    command = ["git", "-C", str(root), "rev-parse", "--short", "HEAD"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    return f"commit {done.stdout.strip()}"


def measure(peer: Peer, jobs: pd.DataFrame, folder: Path) -> dict[str, object]:
    """Costs of a peer and of repro on the same jobs, in seconds and in U."""
    before = unit()
    start_s, _ = peer_cost(peer, jobs.head(1), folder)
    process_s, jct = peer_cost(peer, jobs, folder)
    our_s, our_jct = our_cost(peer, jobs)
    pace = (before + unit()) / 2
    return {
        "policy": peer.policy,
        "rules": peer.rules,
        "jobs": len(jobs),
        "U_s": pace,
        "start_s": start_s,
        "cpu_s": process_s - start_s,
        "cost_U": (process_s - start_s) / pace,
        "our_cpu_s": our_s,
        "our_cost_U": our_s / pace,
        "jct": jct,
        "our_jct": our_jct,
        "date": date.today().isoformat(),
        "source": source_of(folder) if peer.checkout else "",
        "command": f"cd {peer.checkout}; {peer.command}" if peer.checkout else peer.command,
    }


def keep(name: str, row: dict[str, object]) -> None:
    """Write the row of a peer to build/bench/peers.csv; it replaces the peer's earlier row."""
    OUT.mkdir(parents=True, exist_ok=True)
    rows = pd.DataFrame([row], index=pd.Index([name], name="name"))
    if TABLE.is_file():
        before = pd.read_csv(TABLE, index_col="name").drop(index=name, errors="ignore")
        rows = pd.concat([before, rows])
    unfinished = TABLE.with_suffix(".unfinished")
    rows.to_csv(unfinished, float_format="%.12g")
    os.replace(unfinished, TABLE)


def main(checkouts: Path | None) -> None:
    """Measure each peer that can run."""
    jobs = repro.load(TRACE)
    for peer in PEERS:
        reason = peer.why_not(checkouts)
        if reason:
            print(f"{peer.name}: {reason}, not measured")
            continue
        folder = checkouts / peer.checkout if checkouts and peer.checkout else ROOT
        row = measure(peer, jobs, folder)
        keep(peer.name, row)
        print(
            f"{peer.name}: {row['cost_U']:.3g} U, repro {row['our_cost_U']:.2g} U "
            f"(U = {row['U_s']:.3f} s); average JCT {row['jct']:.6f} and {row['our_jct']:.6f} s"
        )


if __name__ == "__main__":
    try:
        checkouts = Path(sys.argv[1]).expanduser().resolve() if len(sys.argv) > 1 else None
        if checkouts and not checkouts.is_dir():
            raise ReproError(f"PEERS: {checkouts} is not a folder")
        main(checkouts)
    except ReproError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
