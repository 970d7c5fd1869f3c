"""Coding agents: tools, resources and prompts of the Model Context Protocol, bounded, within allowed directories."""
