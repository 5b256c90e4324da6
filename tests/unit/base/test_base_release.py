"""Sources that changed since the process began, also after the clock was set back."""

import os
import time

import pytest

from repro.base import release
from repro.base.release import edited_since_start

HOUR_S = 3600.0


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "a.py"
    path.write_text("x = 1\n")
    return path


def set_clock(monkeypatch, seconds):
    """Let ``time.time`` differ from the clock of the files by some seconds."""
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + seconds)


def start(monkeypatch, seconds=0.0):
    """Let this process begin now, or some seconds ahead of the clock of the files."""
    monkeypatch.setattr(release, "STARTED", time.time() + seconds)
    monkeypatch.setattr(release, "_STARTED_MONOTONIC", time.monotonic())


def change(path):
    """Change a file at a later time of the file system, whose clock ticks every few ms."""
    before = path.stat().st_ctime_ns
    while path.stat().st_ctime_ns == before:
        os.utime(path)


def test_a_file_of_before_is_not_edited(source, monkeypatch):
    start(monkeypatch, 1)
    assert edited_since_start([source]) is None
    assert edited_since_start([source]) is None


def test_a_file_that_changed_since_the_start_is_edited(source, monkeypatch):
    monkeypatch.setattr(release, "STARTED", time.time() - 10)
    assert edited_since_start([source]) == source


def test_a_file_of_before_the_clock_was_set_back_is_not_edited(source, monkeypatch):
    set_clock(monkeypatch, -HOUR_S)
    monkeypatch.setattr(release, "STARTED", time.time() - 10)
    assert edited_since_start([source]) is None
    change(source)
    assert edited_since_start([source]) == source


def test_an_edit_is_seen_though_the_clock_was_set_back_since_the_start(source, monkeypatch):
    start(monkeypatch, HOUR_S)
    assert edited_since_start([source]) is None
    change(source)
    assert edited_since_start([source]) == source


def test_an_edit_before_the_first_look_is_seen_though_the_clock_was_set_back(source, monkeypatch):
    start(monkeypatch, HOUR_S)
    change(source)
    assert edited_since_start([source]) == source
