"""Folders and their overrides."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from repro.base import paths
from repro.base.errors import ParamError


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """An empty checkout, and a working folder deep inside it."""
    for name in ("notebooks", "params", "notebooks/tiresias"):
        (tmp_path / name).mkdir()
    monkeypatch.delenv(paths.ENV_HOME, raising=False)
    monkeypatch.chdir(tmp_path / "notebooks" / "tiresias")
    return tmp_path.resolve()


def test_the_checkout_is_found_upwards(checkout):
    assert paths.project_root() == checkout


def test_every_folder_is_below_it(checkout):
    assert paths.params_dir() == checkout / "params"
    assert paths.figures_dir() == checkout / "figures"
    assert paths.traces_dir() == checkout / "traces"
    assert paths.build_dir() == checkout / "build" / "figures"


def test_an_override_comes_first(checkout, tmp_path_factory, monkeypatch):
    other = tmp_path_factory.mktemp("other")
    for name in ("notebooks", "params"):
        (other / name).mkdir()
    monkeypatch.setenv(paths.ENV_HOME, str(other))
    assert paths.project_root() == other.resolve()


def test_an_override_may_begin_at_home(checkout, monkeypatch):
    monkeypatch.setenv("HOME", str(checkout.parent))
    monkeypatch.setenv(paths.ENV_HOME, f"~/{checkout.name}")
    assert paths.project_root() == checkout


def test_an_override_that_is_no_checkout_is_an_error(checkout, tmp_path_factory, monkeypatch):
    """It is not silently replaced by the checkout one stands in."""
    monkeypatch.setenv(paths.ENV_HOME, str(tmp_path_factory.mktemp("empty")))
    with pytest.raises(ParamError, match="set REPRO_HOME"):
        paths.project_root()


def test_outside_a_checkout_the_one_beside_the_package_serves(tmp_path, monkeypatch):
    monkeypatch.delenv(paths.ENV_HOME, raising=False)
    monkeypatch.chdir(tmp_path)
    assert paths.project_root() == Path(paths.__file__).resolve().parents[2]


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A working folder outside any checkout, and where an installed package is."""
    monkeypatch.delenv(paths.ENV_HOME, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(paths, "PACKAGE", tmp_path / "site" / "repro")
    return tmp_path / "site" / "repro"


def test_no_checkout_at_all(site):
    assert paths.checkout() is None
    for folder in (paths.project_root, paths.params_dir, paths.figures_dir):
        with pytest.raises(ParamError, match=r"no project checkout .* get one with `git clone`"):
            folder()


def test_an_installed_package_has_its_own_tables(site, tmp_path, monkeypatch):
    for name in ("params", "traces"):
        (site / "tables" / name).mkdir(parents=True)
    assert paths.params_dir() == site / "tables" / "params"
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "params").mkdir()
    assert paths.project_root() == tmp_path
    assert paths.traces_dir() == site / "tables" / "traces"


def test_cache(monkeypatch, tmp_path):
    monkeypatch.delenv(paths.ENV_CACHE, raising=False)
    assert paths.cache_dir() == Path.home() / ".cache" / "repro"
    monkeypatch.setenv(paths.ENV_CACHE, str(tmp_path))
    assert paths.cache_dir() == tmp_path
    monkeypatch.setenv(paths.ENV_CACHE, "~/here")
    assert paths.cache_dir() == Path.home() / "here"


def test_a_home_folder_that_is_not_known_is_one_line(monkeypatch):
    text = "~no-such-user-of-this-machine/x"
    message = f"^{text}: there is no home folder ~no-such-user-of-this-machine; give another path$"
    with pytest.raises(ParamError, match=message):
        paths.expanded(text)
    monkeypatch.setenv(paths.ENV_CACHE, text)
    with pytest.raises(ParamError, match=message):
        paths.cache_dir()


def test_a_private_folder_is_made_and_left_alone(tmp_path):
    for _ in range(2):
        found = paths.make_private_folder(tmp_path / "a" / "b" / "c", tmp_path / "a")
        assert found == tmp_path / "a" / "b" / "c"
    with pytest.raises(FileExistsError):
        (tmp_path / "file").write_text("")
        paths.make_private_folder(tmp_path / "file")


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs permissions of files")
def test_a_private_folder_others_can_write_to_is_refused(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a").chmod(0o755)
    (tmp_path / "a" / "b").chmod(0o775)
    paths.make_private_folder(tmp_path / "a")
    for folder in ("b", "b/c"):
        with pytest.raises(ParamError, match=r"others can write .*chmod -R go-w .*set HERE to"):
            paths.make_private_folder(tmp_path / "a" / folder, tmp_path / "a", "HERE")
    assert not (tmp_path / "a" / "b" / "c").exists()
    (tmp_path / "a" / "b").chmod(0o755)
    made = paths.make_private_folder(tmp_path / "a" / "b" / "c", tmp_path / "a")
    assert made.stat().st_mode & 0o777 == 0o700


def test_mirror(monkeypatch, tmp_path):
    monkeypatch.delenv(paths.ENV_MIRROR, raising=False)
    assert paths.mirror_dir() is None
    monkeypatch.setenv(paths.ENV_MIRROR, str(tmp_path))
    assert paths.mirror_dir() == tmp_path
