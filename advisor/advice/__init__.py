"""Advice on the gaps: facts, rules, ranking, experience from earlier runs, and explanations."""
