"""Computations of Gavel's figures."""
