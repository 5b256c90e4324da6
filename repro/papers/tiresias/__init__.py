"""Computations of single figures of Tiresias."""
