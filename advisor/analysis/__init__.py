"""From a Profile to bounds, gaps and their causes: loads, machine models, quality, merging, comparison of builds."""
