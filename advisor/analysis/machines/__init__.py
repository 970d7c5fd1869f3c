"""Models of machines: those that come along, those of users and plugins, and the machine this runs on."""

from advisor.analysis.machines.models import HOST, list_model_names, load_host_machine, load_machine, to_document
from advisor.analysis.machines.records import Machine

__all__ = ["HOST", "Machine", "list_model_names", "load_host_machine", "load_machine", "to_document"]
