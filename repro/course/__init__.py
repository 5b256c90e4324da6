"""What the cells with tests of the course import. Solutions and grader are in ``repro_course``."""

from repro.course.checks import Wrong, expect

__all__ = ["Wrong", "expect"]
