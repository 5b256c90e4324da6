"""A figure on dask workers that share no files with the batch, one of which is killed."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
#: Figure with 6 simulations of some seconds, which read public throughputs.
FIGURE = "gavel/figa6_cluster_sweep"
#: Fields of result.json that differ between runs.
OF_THE_RUN = {"wall_s", "cpu_s", "rounds"}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def environment(folder, **more):
    """Environment of a machine: folders of its own, no mirror, the compiled loops of all."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("REPRO_")}
    own["REPRO_CACHE_DIR"] = str(folder / "cache")
    own["PYTHONPATH"] = str(ROOT)
    return {**own, **more}


@pytest.fixture
def machines(tmp_path):
    """Function that starts a command in a folder of its own; all end with the test."""
    pytest.importorskip("distributed", reason="needs the extra dask")
    started = []

    def start(name, *words, **variables):
        folder = tmp_path / name
        folder.mkdir()
        with (folder / "log").open("w") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", *map(str, words)],
                cwd=folder,
                env=environment(folder, **variables),
                stdout=log,
                stderr=log,
            )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def wait_until(ready, what, seconds=300):
    end = time.monotonic() + seconds
    while not (value := ready()):
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.05)
    return value


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """Copy of the parts of the checkout that a figure needs, where no worker looks."""
    root = tmp_path_factory.mktemp("client") / "checkout"
    for name in ("notebooks", "params", "traces"):
        shutil.copytree(ROOT / name, root / name)
    shutil.copy(ROOT / "constraints.txt", root)
    return root


def command(checkout, *words, out):
    return [sys.executable, "-m", "repro.cli", "run", FIGURE, "-j", "1", "--out", out, *words]


@pytest.fixture(scope="module")
def local(checkout, mirror):
    """Files of the figure, run on this machine."""
    variables = {"REPRO_HOME": str(checkout), "REPRO_TRACE_MIRROR": str(mirror)}
    subprocess.run(
        command(checkout, out="local"),
        cwd=checkout,
        env=environment(checkout.parent / "local", **variables),
        check=True,
        capture_output=True,
    )
    return contents(checkout / "local" / FIGURE)


def contents(folder):
    """Bytes of the files of a result, and its fields without those of the run."""
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != ".json"}
    result = json.loads((folder / "result.json").read_text())
    return files, {name: value for name, value in result.items() if name not in OF_THE_RUN}


def where(client):
    """Addresses of the workers that run the notebook, and that run simulations; outcomes held."""
    processing = client.processing()
    on = {
        kind: [
            address for address, names in processing.items() if any(kind in name for name in names)
        ]
        for kind in ("-notebook-", "-simulation-")
    }
    finished = [name for name, workers in client.who_has().items() if "-simulation-" in str(name)]
    return on["-notebook-"], on["-simulation-"], finished


def written_address(file):
    """Address in the file of a scheduler; None until it is complete."""
    try:
        return json.loads(file.read_text())["address"]
    except (OSError, ValueError):
        return None


@pytest.fixture
def certificate(tmp_path):
    """Function that makes a certificate which all trust; gives the options of commands."""

    def make():
        openssl = shutil.which("openssl")
        if openssl is None:
            pytest.skip("needs openssl, which makes the certificate")
        files = {"key": tmp_path / "key.pem", "cert": tmp_path / "cert.pem"}
        words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=dask"]
        outputs = ["-keyout", files["key"], "-out", files["cert"]]
        subprocess.run([openssl, *words, *outputs], check=True, capture_output=True)
        return {"ca-file": files["cert"], **files}

    return make


@pytest.mark.nightly
@pytest.mark.parametrize(("loses", "protocol"), [("simulations", "tcp"), ("notebook", "tls")])
def test_a_killed_worker_without_shared_files_changes_no_byte(
    tmp_path, checkout, mirror, local, machines, certificate, loses, protocol
):
    distributed = pytest.importorskip("distributed")
    tls = certificate() if protocol == "tls" else {}
    options = [word for name, file in tls.items() for word in (f"--tls-{name}", file)]
    variables = {"REPRO_HOME": str(checkout), "REPRO_TRACE_MIRROR": str(mirror)}
    security = None
    if tls:
        ca, cert, key = (str(tls[name]) for name in ("ca-file", "cert", "key"))
        security = distributed.Security(
            require_encryption=True, tls_ca_file=ca, tls_client_cert=cert, tls_client_key=key
        )
        variables["DASK_DISTRIBUTED__COMM__TLS__CA_FILE"] = ca
        variables["DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT"] = cert
        variables["DASK_DISTRIBUTED__COMM__TLS__CLIENT__KEY"] = key
    file = tmp_path / "scheduler.json"
    words = ("--scheduler-file", file, "--port", 0, "--protocol", protocol, *options)
    machines("scheduler", "dask", "scheduler", *words)
    address = wait_until(lambda: written_address(file), "the scheduler")
    assert address.startswith(f"{protocol}://")
    workers = {
        name: machines(
            *(name, "dask", "worker", address, "--name", name),
            *("--nthreads", 1, "--no-nanny", *options),
        )
        for name in ("one", "two")
    }
    with distributed.Client(address, timeout="30s", security=security) as client:
        client.wait_for_workers(2, timeout=120)
        known = client.scheduler_info(n_workers=-1)["workers"]
        names = {worker_address: worker["name"] for worker_address, worker in known.items()}
        out = f"lost-{loses}"
        batch = subprocess.Popen(
            command(checkout, "--backend", "dask", "--scheduler", address, out=out),
            cwd=checkout,
            env=environment(tmp_path, **variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

        def has_inputs(name):
            """Whether a worker has unpacked the inputs into a cache of its own."""
            sent = tmp_path / name / "cache" / "sent"
            return len(list(sent.glob("[!.]*/project/params"))) == 1

        def candidates():
            """Workers to kill, of which each has begun what the test is about."""
            assert batch.poll() is None, batch.communicate()
            notebooks, simulations, finished = where(client)
            wanted = notebooks if loses == "notebook" else set(simulations) - set(notebooks)
            return [a for a in wanted if finished and simulations and has_inputs(names[a])]

        def stopped():
            """Worker that is stopped before what it runs could end."""
            for address in candidates():
                workers[names[address]].send_signal(signal.SIGSTOP)
                # messages that are under way arrive
                time.sleep(0.5)
                if address in candidates():
                    return address
                workers[names[address]].send_signal(signal.SIGCONT)
            return None

        lost = wait_until(stopped, "the first results")
        workers[names[lost]].kill()
    printed, errors = batch.communicate(timeout=600)
    assert batch.returncode == 0, printed + errors
    files, result = contents(checkout / out / FIGURE)
    assert files == local[0]
    assert result == local[1]
    assert any(used["kind"] == "public" for used in result["data"])
    (line,) = [line for line in printed.splitlines() if line.startswith("worker ")]
    found = re.fullmatch(rf"worker {lost} was lost: (.+) begins? again", line)
    *simulations, last = found[1].split(" and ")
    if loses == "notebook":
        assert last == FIGURE
    else:
        simulations.append(last)
        assert len(simulations) == 1
    # the first results are not lost with the worker: at most 5 of 6 simulations begin again
    assert all(re.fullmatch("1 simulation|[2-5] simulations", part) for part in simulations)
    assert all(map(has_inputs, workers))
