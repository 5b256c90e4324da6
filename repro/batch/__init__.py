"""Figures in bulk: the notebook's API, the cache, the runner and the gallery page."""
