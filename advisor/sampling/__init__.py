"""Runs a program and samples its processes where no profiler is at hand: CPU time, files, waiting, memory.

``launch.record`` runs it, ``profile.sampled`` says who did the work, ``profile.profile_of`` makes a Profile of that,
``tools.here`` names what shows more. What runs beside the program (``launch``) loads nothing heavy.
"""
