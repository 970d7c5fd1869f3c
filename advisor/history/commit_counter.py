"""How many transactions are known to have lasted, in a file of its own beside the database.

SQLite does not notice a write-ahead log that was deleted, or a database copied without it: rows are gone and every
check passes. So each transaction counts itself in the database, and the count is noted here once that is on the disk.
A power loss can only leave a count that is too low here, which means nothing; a database that knows of fewer lost its
tail, or is an older copy.
"""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from pathlib import Path
from typing import Final

from advisor.support.private_files import open_private_file

NAME: Final = "commits"
_COUNT: Final = struct.Struct("<Q")


class CommitCounter:
    """The count in a directory; several processes may note theirs, and the highest stays."""

    def __init__(self, folder: Path) -> None:
        self._file = open_private_file(folder / NAME, os.O_RDWR | os.O_CREAT)

    def read_count(self) -> int:
        """Return the count, 0 where there is none."""
        said = os.pread(self._file, _COUNT.size, 0)
        return int(_COUNT.unpack(said)[0]) if len(said) == _COUNT.size else 0

    def raise_count(self, count: int) -> None:
        """Record the number of committed transactions. If that fails the count is too low, which does no harm."""
        if count > self.read_count():
            self.set_count(count)

    def set_count(self, count: int) -> None:
        """Begin anew at a count."""
        with suppress(OSError):
            os.pwrite(self._file, _COUNT.pack(count), 0)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)
