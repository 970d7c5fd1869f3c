"""Further passes over a program that was recorded: which would change the advice, what they take, what they showed."""
