"""Computations of single figures of Liquid."""
