"""On what kind of file system does a path lie? Network file systems announce no changes and share no memory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

#: File systems that other machines write to, by the names of /proc/mounts.
NETWORK: Final = frozenset(
    (
        "nfs", "nfs4", "cifs", "smb3", "smbfs", "lustre", "gpfs", "beegfs", "ceph", "glusterfs", "orangefs", "pvfs2",
        "afs", "9p", "fuse.sshfs", "fuse.glusterfs", "fuse.ceph", "fuse.beegfs", "panfs", "wekafs", "virtiofs",
    )
)  # fmt: skip
#: More of them on which changes may go unannounced.
SILENT: Final = NETWORK | {"overlay", "fuse", "fuseblk", "autofs"}
MOUNTS: Final = "/proc/self/mountinfo"


def filesystem_type(path: Path, mounts: str = MOUNTS) -> str | None:
    """Return the type of the file system that ``path`` is on, None where the system does not say."""
    try:
        with open(mounts, encoding="utf-8", errors="surrogateescape") as file:
            entries = [_parse_mount(line) for line in file]
    except OSError:
        return None
    place = os.path.realpath(path)
    found = [(point, name) for point, name in entries if place == point or place.startswith(point.rstrip("/") + "/")]
    # The last of several mounts on one point hides the others.
    return max(enumerate(found), key=lambda each: (len(each[1][0]), each[0]))[1][1] if found else None


def is_network(path: Path, mounts: str = MOUNTS) -> bool:
    """Return whether other machines may write to ``path``: then processes there share no memory."""
    return filesystem_type(path, mounts) in NETWORK


def supports_inotify(path: Path, mounts: str = MOUNTS) -> bool:
    """Return whether the system announces all changes below ``path``."""
    return filesystem_type(path, mounts) not in SILENT


def _parse_mount(line: str) -> tuple[str, str]:
    """Return mount point and type of one line: ``36 35 98:0 /mnt1 /mnt2 rw … - ext3 /dev/root rw``."""
    fields = line.split(" ")
    point = fields[4].encode("latin-1", "surrogateescape").decode("unicode_escape") if len(fields) > 4 else ""
    after = fields[fields.index("-") + 1 :] if "-" in fields else []
    return point, after[0] if after else ""
