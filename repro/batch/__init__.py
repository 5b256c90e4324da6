"""Batches of figures: run their notebooks, check their results, write the gallery."""
