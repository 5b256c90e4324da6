"""Checks that the test cells of the course import.

Assignments, release and grader are in the distribution ``repro-course``.
"""

from repro.course.checks import Wrong, expect

__all__ = ["Wrong", "expect"]
