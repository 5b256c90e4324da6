"""Fixtures of unit tests."""

import pytest
from tiny_project import Project


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path / "project")
