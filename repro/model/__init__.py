"""Vocabulary of the package: clusters, jobs, decisions, views, policies, records."""
