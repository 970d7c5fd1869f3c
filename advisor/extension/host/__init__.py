"""The host of the plugins: finds them, calls each one separately, and checks its answers."""

from advisor.extension.host.discovery import LoadedPlugin
from advisor.extension.host.plugin_host import PluginHost, load_plugins
from advisor.extension.host.search import FoundProfile

__all__ = ["FoundProfile", "LoadedPlugin", "PluginHost", "load_plugins"]
