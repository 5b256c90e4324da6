"""Measure job types on the GPU of this machine: profiles, pairs, stages, pauses, sequences."""
