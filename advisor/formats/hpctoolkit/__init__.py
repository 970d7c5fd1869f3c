"""HPCToolkit databases: version 4 (meta.db, profile.db) and experiment.xml (see ``docs/formats/hpctoolkit.md``)."""

from advisor.formats.hpctoolkit.hooks import advisor_read, advisor_sniff, read_call_paths

__all__ = ["advisor_read", "advisor_sniff", "read_call_paths"]
