"""Recorded traces for tests of the replay, whatever their format, packed or not."""

from __future__ import annotations

import gzip
import importlib
import shutil
from typing import TYPE_CHECKING

from advisor.trace.events import Trace

if TYPE_CHECKING:
    from pathlib import Path


def trace_of(folder: Path, unpacked: Path) -> Trace:
    """Return the trace in a folder; packed ones are unpacked first."""
    packed = folder / "trace.prv.gz"
    if packed.exists():
        shutil.copytree(folder, unpacked)
        (unpacked / "trace.prv").write_bytes(gzip.decompress(packed.read_bytes()))
        folder = unpacked
    for path in sorted(folder.rglob("*")):
        for name in ("otf2", "paraver"):
            reader = importlib.import_module(f"advisor.formats.{name}")
            if (reader.advisor_sniff(path) or 0.0) > 0.5:
                found = reader.advisor_trace(path)
                assert isinstance(found, Trace)
                return found
    raise AssertionError(f"{folder} holds no trace")
