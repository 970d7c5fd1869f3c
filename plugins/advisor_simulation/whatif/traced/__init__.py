"""Changes of a recorded program itself, its messages, meetings and loads, replayed at the recorded costs."""
