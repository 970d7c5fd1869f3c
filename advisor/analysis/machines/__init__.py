"""Machine models: bundled, from users and plugins, and of the local machine."""

from advisor.analysis.machines.models import HOST, list_model_names, load_host_machine, load_machine, to_document
from advisor.analysis.machines.records import Machine

__all__ = ["HOST", "Machine", "list_model_names", "load_host_machine", "load_machine", "to_document"]
