"""Time as operation counts times costs, T = X beta, with the counts as expressions of problem size and processors.

M. Clement and M. Quinn, Symbolic Performance Prediction of Scalable Parallel Programs, 1995.
"""
