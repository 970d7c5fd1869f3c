"""Files of Kokkos Tools' simple kernel timer, one a process (see ``docs/formats/kokkos_timer.md``)."""

from advisor.formats.kokkos_timer.hooks import advisor_read, advisor_sniff, read_call_paths

__all__ = ["advisor_read", "advisor_sniff", "read_call_paths"]
