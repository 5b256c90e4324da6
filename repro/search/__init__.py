"""Searches over plans and configurations."""
