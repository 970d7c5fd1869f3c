"""Where a history is: in a directory of the user's own, or on a PostgreSQL server that many share."""

from __future__ import annotations

import os
import pwd
import re
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, urlsplit

from advisor.model.errors import UsageError
from advisor.support.disk_cache import system_folder

SCHEMES: Final = ("postgresql", "postgres")
#: The parameter of the URL that names who writes; PostgreSQL keeps so many bytes of it.
_NAME_PARAMETER: Final = "application_name"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,62}")
_SECRETS: Final = ("password", "sslpassword")


@dataclass(frozen=True, slots=True)
class HistoryServer:
    """A database on a PostgreSQL server by its URL, in which no password stands, and under which name we write there.

    The ``writer`` tells the files of one daemon from those of others, whose directories may be called the same.
    """

    url: str
    writer: str

    def __str__(self) -> str:
        return self.url


HistoryLocation = Path | HistoryServer


def parse_location(text: str) -> HistoryLocation:
    """Return the directory or the server that ``text`` names; raises ``UsageError``, which repeats no password."""
    if text.partition("://")[0] not in SCHEMES or "://" not in text:
        return Path(text)
    try:
        parts = urlsplit(text)
        asked = parse_qs(parts.query)
        has_password = parts.password is not None or any(name in asked for name in _SECRETS)
    except ValueError:
        raise UsageError(
            "the URL of the history is malformed; it has the form postgresql://USER@HOST/DATABASE"
        ) from None
    if has_password:
        raise UsageError(
            "the URL of the history contains a password, which others could see in process lists and logs: "
            "put it into ~/.pgpass (mode 600) instead"
        )
    [name] = asked.get(_NAME_PARAMETER, [None])[-1:]
    if name is not None and not _NAME.fullmatch(name):
        raise UsageError(f"{_NAME_PARAMETER} in the URL of the history: expected up to 63 of A-Z a-z 0-9 . _ @ + -")
    return HistoryServer(text, name or _default_writer())


def working_folder(location: HistoryLocation) -> Path:
    """Return the directory on this machine for files that belong to a history, such as recordings."""
    return location if isinstance(location, Path) else system_folder("state")


def _default_writer() -> str:
    """Return ``USER@HOST``, which is unique where host names are."""
    user = str(os.getuid())
    with suppress(KeyError):
        user = pwd.getpwuid(os.getuid()).pw_name
    name = re.sub(r"[^A-Za-z0-9._@+-]", "_", f"{user}@{os.uname().nodename}")
    return (
        name
        if _NAME.fullmatch(name)
        else f"{name[:40].lstrip('._@+-')}-{blake2b(name.encode(), digest_size=8).hexdigest()}"
    )
