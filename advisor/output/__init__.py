"""From Advice and Report to the screen and to files; no arithmetic in here."""
