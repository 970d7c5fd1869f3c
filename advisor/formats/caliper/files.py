"""One file of Caliper, whatever its layout, as a ``Table``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from advisor.formats.caliper import cali_records, detection, json_records, json_split
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from advisor.formats.caliper.tables import RecordTable

LIMIT = 2 << 30  # bytes of a file
_GLANCE = 4096  # bytes by which the layout is told


def read_table(path: Path) -> RecordTable:
    """Return the records of the file at ``path``; raises ``InputError`` with the place of what is damaged."""
    try:
        with path.open("rb") as stream:
            layout = detection.detect_layout(stream.read(_GLANCE))
            size = stream.seek(0, 2)
            stream.seek(0)
            if size > LIMIT:
                raise InputError(path, f"is larger than {LIMIT:,} bytes, the limit for this format")
            if layout == "cali":
                return cali_records.read_cali_table(path, stream)
            data = stream.read()
    except OSError as error:
        raise InputError(path, error.strerror or str(error)) from error
    if layout == "split":
        return json_split.read_split_table(path, data)
    if layout is None:
        raise InputError(path, "is not a Caliper profile: neither .cali nor JSON of cali-query", "byte 0")
    return json_records.read_record_table(path, data, layout)
