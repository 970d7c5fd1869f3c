"""A laboratory in virtual time: parallel programs whose faults and remedies have an exact truth.

It judges gapwatch, so its simulator shares no code with it; only ``judge.py`` calls the pipeline.
"""
