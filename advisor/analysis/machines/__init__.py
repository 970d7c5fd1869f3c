"""Models of machines: those that come along, those of users and plugins, and the machine this runs on."""

from advisor.analysis.machines.models import HOST, as_document, host, load, names
from advisor.analysis.machines.records import Machine

__all__ = ["HOST", "Machine", "as_document", "host", "load", "names"]
