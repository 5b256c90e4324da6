"""The command line, one file per command."""

from repro.cli.app import main

__all__ = ["main"]
