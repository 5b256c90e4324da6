"""Computations on our own measurements of one GPU (``traces/measured``)."""
