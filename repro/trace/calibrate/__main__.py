"""Measure every table of ``traces/`` again and write it."""

from repro.trace.calibrate.tables import main

main()
