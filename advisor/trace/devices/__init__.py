"""From host calls and device activities to a Profile whose levels of seconds sum to the run (docs/devices.md)."""
