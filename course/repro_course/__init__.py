"""Grader, release command and assignments of the course on GPU cluster scheduling."""
