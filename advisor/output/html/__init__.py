"""Advice and reports as one page of HTML: no script of others, no link to outside, nothing that a name could start."""
