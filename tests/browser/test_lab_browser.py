"""A notebook in JupyterLab, as `make lab` serves it, opened and run in a real browser."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from chromium import Browser, found

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = "notebooks/tiresias/fig07_worked_example.ipynb"
PICTURES = "[...document.querySelectorAll('{} img')].map(one => one.naturalWidth)"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(found() is None, reason="no Chromium or Chrome on this machine"),
    pytest.mark.skipif(shutil.which("make") is None, reason="no make on this machine"),
]


@pytest.fixture
def address(tmp_path):
    """Serve what one notebook needs of the checkout; return its address in JupyterLab."""
    picture = "figures/tiresias/fig07_worked_example/fig07_worked_example.svg"
    for name in ("Makefile", ".jupyter/jupyter_server_config.py", NOTEBOOK, picture):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = f"--no-browser --allow-root --port={port} --IdentityProvider.token="
    options += " --LabApp.expose_app_in_browser=True"
    settings = {"REPRO_HOME": ROOT, "JUPYTER_RUNTIME_DIR": tmp_path, "HOME": tmp_path}
    settings |= {"PYTHONPATH": ROOT}
    server = subprocess.Popen(
        ["make", "lab", f"BIN={Path(sys.executable).parent}", f"LAB_ARGS={options}"],
        cwd=tmp_path,
        env=os.environ | {name: str(one) for name, one in settings.items()},
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    end = time.monotonic() + 60
    while not _answers(port):
        assert server.poll() is None and time.monotonic() < end, "JupyterLab does not start"
        time.sleep(0.1)
    yield f"http://localhost:{port}/lab/tree/{NOTEBOOK}?reset"
    os.killpg(server.pid, signal.SIGTERM)
    server.wait(30)


def _answers(port):
    """Tell whether a server listens."""
    with socket.socket() as asked:
        return asked.connect_ex(("127.0.0.1", port)) == 0


def test_a_notebook_shows_the_committed_picture_and_its_own(address, tmp_path):
    browser = Browser(tmp_path / "profile")
    try:
        # JupyterLab attaches only the cells that are in the window
        browser.resize(1500, 6000)
        browser.open(address)
        browser.wait("!!window.jupyterapp && !!document.querySelector('.jp-RenderedMarkdown img')")
        committed = PICTURES.format(".jp-RenderedMarkdown")
        browser.wait(f"{committed}.length == 1 && {committed}[0] > 0")
        kernel = "window.jupyterapp.shell.currentWidget.context.sessionContext.session?.kernel"
        browser.wait(f"{kernel}?.status === 'idle'")
        browser.evaluate(
            "window.jupyterapp.commands.execute('notebook:run-all-cells')"
            ".then(() => { window.ran = true })"
        )
        browser.wait("window.ran === true", 120)
        drawn = PICTURES.format(".jp-OutputArea")
        browser.wait(f"{drawn}.length == 1 && {drawn}[0] > 0")
        assert browser.evaluate("document.querySelectorAll('[data-mime-type*=error]').length") == 0
    finally:
        browser.close()
