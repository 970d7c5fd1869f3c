"""Tables for pandas (CSV, which needs nothing) and Parquet (which pyarrow writes)."""

from __future__ import annotations

import csv
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.formats.table_rows import PLACES, iterate_batches, list_measures
from advisor.model.errors import AdvisorError

if TYPE_CHECKING:
    from advisor.model.records import Profile

INSTALL_LINE: Final = 'pip install "pyarrow>=14"'
_NUMBERS: Final = ("iteration", "line", "rank", "thread")


def write_csv(profile: Profile, path: Path) -> None:
    """Write a row for each region, processor and iteration, as ``pandas.read_csv`` reads it."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow((*PLACES, *list_measures(profile)))
        for columns in iterate_batches(profile):
            writer.writerows(zip(*columns.values(), strict=True))


def write_parquet(profile: Profile, path: Path) -> None:
    """Write the same table with a row group for each batch, compressed; the run's name and time are its metadata.

    Raises ``AdvisorError`` with the line that installs pyarrow where it is missing.
    """
    if importlib.util.find_spec("pyarrow") is None:
        raise AdvisorError(f"the package pyarrow writes Parquet: {INSTALL_LINE}")
    import pyarrow as pa
    import pyarrow.parquet as pq

    text = pa.dictionary(pa.int32(), pa.string())
    types = {name: pa.int64() if name in _NUMBERS else text for name in PLACES}
    types |= dict.fromkeys(list_measures(profile), pa.float64())
    about = {"program": profile.program, "run": profile.run, "seconds": repr(profile.actual_s), "tool": profile.reader}
    schema = pa.schema(list(types.items()), metadata={f"gapwatch.{name}": value for name, value in about.items()})
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for columns in iterate_batches(profile):
            arrays = [pa.array(columns[name], pa.string()).dictionary_encode() if kind == text
                      else pa.array(columns[name], kind) for name, kind in types.items()]  # fmt: skip
            writer.write_batch(pa.record_batch(arrays, schema=schema))
