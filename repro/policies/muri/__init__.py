"""Muri (SIGCOMM 2022) and AntMan."""
