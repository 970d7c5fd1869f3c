"""What children of the daemon do: tell profiles from other files, hash them, and advise on them.

Everything here reads untrusted files; it runs in a child of ``sandbox`` only.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast, runtime_checkable

from advisor import pipeline
from advisor.analysis import merging
from advisor.collect import sidecar
from advisor.collect.binaries.executables import attach_executable
from advisor.extension import installed_plugins
from advisor.extension.host import FoundProfile, PluginHost, load_plugins
from advisor.history.child_reads import ParentConnection
from advisor.history.history_queries import StoredHistory
from advisor.history.location import HistoryServer
from advisor.history.run_packing import strip_arrays
from advisor.model.errors import AdvisorError
from advisor.support import bundled, record_json

_CHUNK = 1 << 20
#: A directory of which so many files come at once has more of them, as a rule.
_MANY = 50
#: What is larger is no document that plugins keep.
_LARGEST_DOCUMENT_B = 64 << 20


class _AskedPlugin:
    """The plugin that the host is calling, announced to whoever waits for the current task."""

    tell: Callable[[str, str], None] = staticmethod(lambda name, what: None)


@runtime_checkable
class _Parent(Protocol):
    """Whom a task may ask what it cannot find out itself."""

    def ask_parent(self, question: dict[str, object]) -> dict[str, object]:
        """Return the answer to a question."""


@cache
def _load_host(blocked: tuple[str, ...]) -> PluginHost:
    folders = filter(None, os.environ.get("GAPWATCH_PLUGINS", "").split(os.pathsep))
    return load_plugins(
        [Path(folder) for folder in folders], blocked, asking=lambda name, what: _AskedPlugin.tell(name, what)
    )


def prepare() -> None:
    """Load once what every task needs, but for plugins of others: importing them is part of a task, and may end it."""
    load_plugins(blocked=_foreign_plugins())


def warm_up() -> None:
    """Advise on the example that comes with the program, so that the first profile does not wait for what that loads.

    No plugin of others is asked.
    """
    trace = bundled.find_example_trace()
    if trace is not None:
        with suppress(AdvisorError):
            pipeline.advise([trace], pipeline.Options(), load_plugins(blocked=_foreign_plugins()))


def _foreign_plugins() -> list[str]:
    points, _ = installed_plugins.load_entry_points()
    return [point.name for point in points if point.package != installed_plugins.OWN]


def handle(task: dict[str, Any], at: Callable[[str, str], None]) -> object:
    """Return the result of a task: ``identify_files``, ``hash_content`` or ``advise_on_units``; of ``warm_up`` none.

    ``at`` is told which plugin is asked for what.
    """
    if task["do"] == "warm":
        warm_up()
        return None
    _AskedPlugin.tell = at
    host = _load_host(tuple(task.get("blocked", ())))
    host.forget_failures()
    if task["do"] == "identify":
        return identify_files(host, Path(task["root"]), Path(task["folder"]), task["names"])
    units = [FoundProfile(Path(path), reader) for path, reader in task["units"]]
    if task["do"] == "digest":
        return [hash_content(unit.path) for unit in units]
    left_out = tuple(f"plugin {name} is left out: it failed too often" for name in task.get("blocked", ()))
    past = _find_past(task["options"], tuple(unit.path for unit in units), at)
    advice = advise_on_units(host, units, Path(task["top"]), task["options"], past, left_out)
    return {"advice": advice, "failed": dict(host.failure_reasons)}


def _find_past(said: Mapping[str, Any], again: tuple[Path, ...], at: object) -> StoredHistory | None:
    """Return the history named by the options: in a directory, or on a server, queried through the parent."""
    if said.get("state"):
        return StoredHistory(Path(said["state"]), again)
    if said.get("writer") and isinstance(at, _Parent):
        server = HistoryServer("the server of the history", said["writer"])
        return StoredHistory(server, again, held=ParentConnection(at.ask_parent, server.writer))
    return None


def identify_files(
    host: PluginHost, root: Path, folder: Path, names: Sequence[str]
) -> dict[str, list[str] | dict[str, str | None] | str | None]:
    """Return the unit that each file of a directory belongs to, as path and reader; None for what is no profile.

    For a file that is no run and that a plugin knows it is what it is, and of which program.

    A reader that takes a directory, the folder or one above it up to ``root``, takes in there the files that it
    recognizes; so of a directory only the readers are asked that recognize one of ``names``. For a file that can't be
    looked into for now it is the reason.
    """
    hidden = {name: why for name in names if (why := _explain_unreadable(folder / name))}
    claims = {name: [one for one, _ in host.sniff_all(folder / name)] for name in names if name not in hidden}
    claiming = frozenset(reader for readers in claims.values() for reader in readers)
    taken: dict[str, Path] = {}
    for place in _iterate_folders(root, folder) if claiming else ():
        for reader in _find_folder_readers(host, place, names if place == folder else (), claiming):
            taken.setdefault(reader, place)
    return {
        name: hidden.get(name)
        or _choose_unit(folder / name, claims[name], taken)
        or _identify_document(host, folder / name)
        for name in names
    }


def _choose_unit(path: Path, claims: Sequence[str], taken: Mapping[str, Path]) -> list[str] | None:
    """Return the directory that the surest of the readers that claim a file takes, else the file itself."""
    for reader in claims:
        if reader in taken:
            return [str(taken[reader]), reader]
    return [str(path), claims[0]] if claims else None


class _FolderAnswer(NamedTuple):
    """Which of the readers ``asked`` take a directory, with what it held when they were asked."""

    host: PluginHost
    changed_ns: int
    files: dict[str, tuple[int, ...]]
    asked: frozenset[str]
    readers: tuple[str, ...]


#: The last answer on a large directory: its files come in many parts, and each reader may open all of them.
_last_answers: dict[Path, _FolderAnswer] = {}


def _find_folder_readers(
    host: PluginHost, folder: Path, names: Sequence[str], among: frozenset[str]
) -> tuple[str, ...]:
    """Return the readers that take a directory, as the last time where neither it nor the files ``names`` changed."""
    try:
        known, changed_ns = _last_answers.get(folder), folder.stat().st_mtime_ns
        same = known is not None and (known.host, known.changed_ns) == (host, changed_ns) and among <= known.asked
        if known and names and same and all(known.files.get(name) == _sign_file(folder / name) for name in names):
            return known.readers
        held = _sign_files(folder) if len(names) >= _MANY else {}
    except OSError:
        changed_ns, held = -1, {}
    readers = tuple(reader for reader, _ in host.sniff_all(folder, among))
    if held:
        _last_answers.clear()
        _last_answers[folder] = _FolderAnswer(host, changed_ns, held, among, readers)
    return readers


def _sign_files(folder: Path) -> dict[str, tuple[int, ...]]:
    with os.scandir(folder) as entries:
        return {entry.name: _sign_file(Path(entry.path)) for entry in entries if entry.is_file()}


def _sign_file(path: Path) -> tuple[int, ...]:
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _identify_document(host: PluginHost, path: Path) -> dict[str, str | None] | None:
    if path.name == sidecar.NAME or path.stat().st_size > _LARGEST_DOCUMENT_B:
        return None
    found = host.identify_document(path)
    return None if found is None else {"plugin": found[0], "words": found[1].words, "program": found[1].program}


def _explain_unreadable(path: Path) -> str | None:
    """Return why the content of a file can't be seen, None where it can."""
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError as error:
        return str(error)
    return None


def _iterate_folders(root: Path, folder: Path) -> Iterator[Path]:
    """Yield the directories from ``root`` to ``folder``."""
    yield root
    for part in folder.relative_to(root).parts:
        root = root / part
        yield root


def hash_content(path: Path) -> str:
    """Return a hash of the content of a file, or of all files at and below a directory with their names."""
    total = hashlib.blake2b(digest_size=16)
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if not file.is_file():
            continue
        if file != path:
            total.update(os.fsencode(file.relative_to(path)) + b"\0")
        part = hashlib.blake2b(digest_size=16)
        with file.open("rb") as stream:
            while block := stream.read(_CHUNK):
                part.update(block)
        total.update(part.digest())
    return total.hexdigest()


def advise_on_units(
    host: PluginHost,
    units: Sequence[FoundProfile],
    top: Path,
    said: Mapping[str, Any],
    past: StoredHistory | None = None,
    problems: tuple[str, ...] = (),
) -> dict[str, object] | None:
    """Return the advice on the run that ``units`` recorded, slim and packed; None where they are of several runs."""
    options = pipeline.Options(
        machine=said.get("machine"), rules=tuple(map(Path, said.get("rules", ()))), cores=said.get("cores")
    )
    recordings = [pipeline.read_recording(unit, top, options, host) for unit in units]
    runs = merging.group_by_run(recordings)
    if len(runs) > 1:
        return None
    folders = [unit.path if unit.path.is_dir() else unit.path.parent for unit in units]
    run = pipeline.name_run(merging.merge_recordings(runs[0]), units[0].path)
    run = attach_executable(run, None, folders, folders)
    meant = {sidecar.TARGET: said["target"]} if said.get("target") else {}
    run = replace(run, build=run.build or said.get("build"), parameters={**meant, **run.parameters})
    with ExitStack() as stack:
        past = stack.enter_context(past.hold_open()) if past else None
        advice = pipeline.study_run(run, options, host, recorded=units, past=past).advice
    return cast(
        "dict[str, object]",
        record_json.pack_record(strip_arrays(replace(advice, problems=(*advice.problems, *problems)))),
    )
