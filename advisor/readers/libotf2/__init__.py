"""What runs in the process that calls libotf2, which damaged traces may take down: the standard library, and numba."""
