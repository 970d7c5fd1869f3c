"""The command line: thin commands over the pipeline. ``entry`` runs them and is where errors end."""

from advisor.cli.entry import main

__all__ = ["main"]
