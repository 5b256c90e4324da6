"""Traces: a validated table of jobs, its published formats, and where the public files come from.

``repro.trace.load`` reads, describes and writes; ``repro.trace.schema`` names the columns;
``repro.files.public`` knows the public files. Nothing is imported here, so that the command line
answers at once.
"""
