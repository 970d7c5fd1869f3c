"""What could be done about the gaps: facts, the rules that use them, ranking, what the past tells, and explanations."""
