"""Measures the machine at hand with small C kernels and writes what it found as a machine model.

Read in this order: ``build`` builds the kernels, ``measure`` runs them, ``samples`` makes numbers of what they print,
``machine`` makes a machine model of the numbers, ``document`` writes it as YAML, ``command`` puts it all together.
"""
