"""What is wrong with a line of an output of valgrind."""

from __future__ import annotations


class MistakeError(ValueError):
    """A line that says something impossible; who reads the file knows which line it is."""
