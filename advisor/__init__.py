"""gapwatch: bounds on run time, the gaps between them, and what to do about each."""

__version__ = "0.2.0"
