"""A machine model from the outputs of benchmarks that measure machines: OSU, IMB, STREAM (``docs/machines.md``)."""

from advisor_processor.machine_benchmarks.command import import_benchmarks

__all__ = ["import_benchmarks"]
