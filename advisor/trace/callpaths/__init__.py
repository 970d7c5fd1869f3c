"""Call-path profiles -> Profile: what all readers of summed-up measurements share, as ``trace`` is for events."""
