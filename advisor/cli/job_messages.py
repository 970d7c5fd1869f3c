"""Messages about a batch job: by mail, or to the webhook of a chat."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from advisor.model.errors import AdvisorError, UsageError
from advisor.support.private_files import read_secret

#: Mail programs lie here, where the PATH of a job may not lead.
_SENDMAIL_PLACES: Final = ("/usr/sbin", "/usr/lib")
_PATIENCE_S: Final = 30.0
_ADDRESS: Final = re.compile(r"[^\s,;<>\"\\()-][^\s,;<>\"\\()]*")
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


def send_mail(address: str, text: str) -> None:
    """Mail the text, its first line as the subject; raises ``AdvisorError`` where that fails."""
    from email.message import EmailMessage

    if not _ADDRESS.fullmatch(address):
        raise UsageError(f"--mail {address!r} is not an address")
    places = os.pathsep.join((os.environ.get("PATH", ""), *_SENDMAIL_PLACES))
    program = shutil.which("sendmail", path=places)
    if program is None:
        raise AdvisorError("cannot mail: no sendmail on this host; print the lines and let the scheduler mail them")
    message = EmailMessage()
    message["To"], message["Subject"] = address, f"gapwatch: {text.splitlines()[0]}"
    message.set_content(text)
    try:
        done = subprocess.run(
            [program, "-i", "--", address], input=message.as_bytes(), capture_output=True, timeout=_PATIENCE_S,
            check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise AdvisorError(f"can't mail: {error}") from error
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().split("\n")[0]
        raise AdvisorError(f"can't mail: {program} ended with {done.returncode} {said}".rstrip())


def read_address(file: Path) -> str:
    """Return the address in a file; raises ``UsageError`` for one that others may read, or that is not encrypted."""
    text = read_secret(file)
    parts = urlsplit(text)
    if parts.scheme == "https" and parts.hostname:
        return text
    if parts.scheme == "http" and parts.hostname in _LOOPBACK:
        return text
    raise UsageError(f"{file}: expected an address that begins with https://")


def post_text(address: str, text: str) -> None:
    """Post ``{"text": …}``, as Slack, Mattermost, Rocket.Chat and Zulip take it; raises ``AdvisorError``.

    The address is a secret and in no message. Names of jobs and programs mention nobody: ``<!channel>`` stays text.
    """
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    inert = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("@", "@\N{WORD JOINER}")
    body = json.dumps({"text": inert}).encode()
    request = Request(address, body, {"Content-Type": "application/json"}, method="POST")
    try:
        with urlopen(request, timeout=_PATIENCE_S):
            return
    except HTTPError as error:
        raise AdvisorError(f"can't post: {urlsplit(address).hostname} answers {error.code}") from error
    except (OSError, ValueError) as error:
        raise AdvisorError(f"can't post to {urlsplit(address).hostname}: {getattr(error, 'reason', error)}") from error
