"""Changes of an application model: decomposition, layout, schedule, synchronization."""
