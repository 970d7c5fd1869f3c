"""Call-path profiles -> Profile: what all readers of summed-up measurements share, as ``traces`` is for events."""
