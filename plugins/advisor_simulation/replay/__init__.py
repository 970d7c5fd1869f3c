"""Replay of recorded traces on other machines, in the spirit of Dimemas."""
