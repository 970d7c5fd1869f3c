"""From Advice to the screen and to files; no arithmetic in here."""
