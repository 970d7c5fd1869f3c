"""What is recorded of a run where no profiler is at hand, and what is known of it besides.

A program is run and its processes are sampled: CPU time, files, waiting, memory.

``launch.record`` runs it, ``sampled.sampled`` says who did the work, ``profile.profile_of`` makes a Profile of that,
``tools.here`` names what shows more. What runs beside the program (``launch``) loads nothing heavy.
``builds`` tells which build a program is, ``sidecar`` what its user states in ``gapwatch.json``.
"""
