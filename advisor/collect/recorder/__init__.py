"""The recorder that ``gapwatch run`` preloads into programs: its C sources, their wrappers of MPI, its building."""
