"""Call-path profiles -> Profile: shared by all readers of aggregated measurements, as ``trace`` is for events."""
