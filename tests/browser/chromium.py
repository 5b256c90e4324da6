"""Headless Chromium spoken to over two pipes, so that tests need nothing but the browser."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
#: Sandboxes need rights that containers lack; the pages under test are our own.
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
    *("--no-first-run", "--disable-extensions", "--disable-background-networking"),
    *("--hide-scrollbars", "--remote-debugging-pipe", "--disable-component-update"),
)


def found() -> str | None:
    """Return the browser of this machine."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One page of a browser: open, resize, evaluate, and hear what it complains of."""

    def __init__(self, profile: Path):
        read, self._write = os.pipe()
        self._read, write = os.pipe()

        def give_ends() -> None:
            # the browser reads from 3 and writes to 4; neither may overwrite the other's source
            high = os.dup(write), os.dup(read)
            os.dup2(high[1], 3)
            os.dup2(high[0], 4)

        self._process = subprocess.Popen(
            [str(found()), *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            preexec_fn=give_ends,
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(read)
        os.close(write)
        self._number = 0
        self._rest = b""
        self._session = None
        #: what the browser told without being asked, by its method
        self.events: list[dict] = []
        (page, *_) = [
            one for one in self.call("Target.getTargets")["targetInfos"] if one["type"] == "page"
        ]
        attached = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)

    def call(self, method: str, **params: object) -> dict:
        """Send a command and return its result."""
        self._number += 1
        asked = {"id": self._number, "method": method, "params": params}
        asked |= {"sessionId": self._session} if self._session else {}
        os.write(self._write, json.dumps(asked).encode() + b"\0")
        while True:
            told = self._message()
            if told.get("id") == self._number:
                assert "error" not in told, f"{method}: {told['error']}"
                return told["result"]
            self.events.append(told)

    def open(self, address: str) -> None:
        """Load a page and wait until it is complete."""
        self.call("Page.navigate", url="about:blank")
        self.events.clear()
        self.call("Page.navigate", url=address)
        self.wait('document.readyState === "complete" && location.href !== "about:blank"', 180)

    def evaluate(self, script: str) -> object:
        """Return the value of an expression in the page."""
        told = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    def wait(self, script: str, seconds: float = 60.0) -> None:
        """Wait until an expression holds."""
        end = time.monotonic() + seconds
        while not self.evaluate(script):
            assert time.monotonic() < end, f"did not come true: {script}"
            time.sleep(0.02)

    def resize(self, width: int, height: int = 900) -> None:
        """Set the size of the window in CSS pixels."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def scheme(self, name: str) -> None:
        """Prefer ``light`` or ``dark`` colours."""
        features = [{"name": "prefers-color-scheme", "value": name}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def scripts(self, enabled: bool) -> None:
        """Let pages run scripts, or not."""
        self.call("Emulation.setScriptExecutionDisabled", value=not enabled)

    def press(self, key: str, code: int, text: str = "") -> None:
        """Press and release a key; a button needs the text of the key too."""
        about = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        down = {"type": "keyDown", "text": text} if text else {"type": "rawKeyDown"}
        self.call("Input.dispatchKeyEvent", **about, **down)
        self.call("Input.dispatchKeyEvent", **about, type="keyUp")

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        """Write a picture of the window, or of the whole page."""
        told = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(told["data"]))

    def complaints(self) -> list[str]:
        """Return exceptions, console errors and warnings since the page was opened."""
        self.evaluate("0")
        found = []
        for event in self.events:
            what = event.get("method")
            about = event.get("params", {})
            if what == "Runtime.exceptionThrown":
                found.append(str(about["exceptionDetails"]))
            elif what == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning"):
                found.append(str(about["entry"]))
            elif what == "Runtime.consoleAPICalled" and about["type"] in ("error", "warning"):
                found.append(str(about["args"]))
        return found

    def requests(self) -> list[str]:
        """Return the addresses asked for since the page was opened."""
        self.evaluate("0")
        asked = [one for one in self.events if one.get("method") == "Network.requestWillBeSent"]
        return [one["params"]["request"]["url"] for one in asked]

    def close(self) -> None:
        """End the browser."""
        with contextlib.suppress(OSError, AssertionError):
            self._session = None
            self.call("Browser.close")
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(10)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait(10)
        os.close(self._read)
        os.close(self._write)

    def _message(self) -> dict:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._read], [], [], 180)
            assert ready, "the browser says nothing for three minutes"
            told = os.read(self._read, 1 << 20)
            if not told:
                raise OSError("the browser ended")
            self._rest += told
        first, _, self._rest = self._rest.partition(b"\0")
        return json.loads(first)
