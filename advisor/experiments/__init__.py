"""Experiments with programs: settings tried in turns, commits bisected, and the test that tells a gain from noise."""
