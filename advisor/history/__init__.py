"""What gapwatch remembers: runs and their advice, what became of each item, and every file that was ever looked at.

One SQLite database in a directory of the user's own. One process writes (``database.Writer`` holds the lock), any
number read. Everything in it can be made again from the profiles, as long as these are there.
"""
