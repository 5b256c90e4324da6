"""Computations of Muri's figures."""
