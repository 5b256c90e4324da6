"""Computations of PCS's figures."""
