"""Counts of a program as formulas, composed from the control of its loops, branches and calls without a fit."""
