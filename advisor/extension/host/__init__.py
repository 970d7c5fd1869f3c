"""The host of the plugins: finds them, asks each one by itself, and checks what it answers."""

from advisor.extension.host.discovery import Loaded
from advisor.extension.host.plugin_host import Host, load
from advisor.extension.host.search import Found

__all__ = ["Found", "Host", "Loaded", "load"]
