"""The vocabulary of the whole package: clusters, jobs, decisions, views, policies, records."""
