"""Gavel (OSDI 2020) and the policies it is compared with."""
