"""The course: assignments for students, the checks in their cells, release and grading."""

from repro.course.checks import Wrong, expect

__all__ = ["Wrong", "expect"]
