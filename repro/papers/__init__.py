"""Computations that only figures of the papers need, in a folder for each paper."""
