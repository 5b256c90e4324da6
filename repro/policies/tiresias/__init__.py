"""Tiresias (NSDI 2019) and the policies it is compared with."""
