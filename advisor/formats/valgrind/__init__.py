"""What callgrind and cachegrind write in common: counts of simulated events by function and line."""
