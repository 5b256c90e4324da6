"""What is measured of real traces: the tables in ``traces/`` that ``repro.trace.synth`` draws from.

``python -m repro.trace.calibrate`` measures them again; it needs the public files.
"""
