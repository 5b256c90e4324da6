"""Mutation tests: small faults in the source, and the tests that notice them."""
