"""Read inputs that are nearly right, by every reader of which there is a recording, and advise on what they accept:
``python tests/fuzz.py SECONDS [READER…] [DIRECTORY…]``, with further recordings below the directories. Formats of which
only tests write recordings are reached by these: ``pytest --basetemp DIRECTORY tests/formats``.

An input may be refused with ``InputError``, and nothing else: no other exception, no crash, no more than 1 GiB of
memory, no more than ten seconds. What gives an answer that none before gave is changed further, and the smallest of
these inputs are kept in ``tests/corpus``, which the tests read again.
"""

from __future__ import annotations

import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import zipfile
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mutations import mutate

from advisor import pipeline
from advisor.extension.host import answers, load_plugins
from advisor.model.errors import InputError
from advisor.output.advice_document import build_advice_document, to_json
from advisor.output.markdown import render_comment
from advisor.support.contract import ContractError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from multiprocessing.sharedctypes import Synchronized

    from advisor.extension.host import PluginHost

HERE: Final = Path(__file__).parent
CORPUS: Final = HERE / "corpus"
#: A seed has at most so many bytes, and a reader so many seeds; so much of a reader's inputs is kept.
_SEED_B: Final = 200_000
_SEEDS: Final = 8
_KEPT_B: Final = 24_000
_KEPT: Final = 24
_MEMORY_B: Final = 1 << 30
_LONGEST_S: Final = 10
#: Advice takes longer than reading: so many of the inputs that are read are advised on.
_ADVISED: Final = 0.1
#: What differs between messages that say the same.
_DETAILS: Final = re.compile(r"'[^']*'|\"[^\"]*\"|[-+]?\d[\d.,e+-]*|/\S+")

#: An input: the files of a profile by their names below its directory; one alone is a profile that is a file.
Input = dict[str, bytes]


class HangError(BaseException):
    """An input took too long."""


def find_seeds(host: PluginHost, more: Sequence[Path] = ()) -> dict[str, list[Input]]:
    """Return recordings of each reader, small and larger ones, at most eight, also of those below directories."""
    found: dict[str, list[Input]] = {}
    for top in sorted([*(HERE / "profiles").iterdir(), *(each for place in more for each in place.iterdir())]):
        try:
            profiles = host.find_profiles(top)
        except InputError:
            continue
        for one in profiles:
            below = [one.path] if one.path.is_file() else sorted(one.path.rglob("*"))
            files = [path for path in below if path.is_file()]
            if sum(path.stat().st_size for path in files) <= _SEED_B:
                names = [path.name if path == one.path else str(path.relative_to(one.path)) for path in files]
                content = {name: path.read_bytes() for name, path in zip(names, files, strict=True)}
                seed = content if one.path.is_file() else {"": b"", **content}
                known = found.setdefault(one.reader, [])
                known += [seed] if seed not in known else []
    return {reader: sorted(seeds, key=size_B)[:: -(-len(seeds) // _SEEDS)] for reader, seeds in found.items()}


def size_B(files: Input) -> int:
    """Return how many bytes the files of an input have."""
    return sum(map(len, files.values()))


def write_input(files: Input, folder: Path) -> Path:
    """Write an input to an empty directory; return the path of the profile: of a directory it has the name ''."""
    shutil.rmtree(folder, ignore_errors=True)
    top = folder / "profile" if "" in files else folder
    top.mkdir(parents=True)
    for name, content in files.items():
        if name:
            (top / name).parent.mkdir(parents=True, exist_ok=True)
            (top / name).write_bytes(content)
    return top if "" in files else top / next(iter(files))


def try_input(host: PluginHost, reader: str, path: Path, *, advise: bool = True) -> str:
    """Read, and ``advise``; return what came of it, without details. Raises whatever is an error of ours."""
    implementation = dict(host._implementations("advisor_read"))[reader]
    try:
        if reader not in dict(host.sniff_all(path, {reader})):
            return "not recognized"
        profile = answers.require_profile(implementation.function(path))
    except (InputError, ContractError) as error:
        return _DETAILS.sub("#", f"{type(error).__name__}: {getattr(error, 'reason', error)}")[:200]
    if advise:
        advice = pipeline.study_run(pipeline.name_run(profile, path), pipeline.Options(), host).advice
        to_json(build_advice_document(advice))
        render_comment(advice, None)
    return f"read: {sorted({note.name for note in profile.notes})} {profile.status}"[:400]


def _fuzz(reader: str, seeds: list[Input], seed: int, seconds: float, place: Path, done: Synchronized[int]) -> None:
    """Try changed inputs in a process of its own until the time is over; the input at hand lies at ``place``."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_B, _MEMORY_B))
    signal.signal(signal.SIGALRM, _raise_hang)
    host, chance, end = load_plugins(), random.Random(seed), time.monotonic() + seconds
    pool = list(seeds)
    smallest: dict[str, Input] = {}
    while time.monotonic() < end:
        files = dict(chance.choice(pool))
        name = chance.choice([one for one in files if one])
        files[name] = mutate(files[name], chance)
        path = write_input(files, place / "input")
        signal.alarm(_LONGEST_S)
        answer = try_input(host, reader, path, advise=chance.random() < _ADVISED)
        signal.alarm(0)
        done.value += 1
        if answer not in smallest or size_B(files) < size_B(smallest[answer]):
            pool += [files] if answer not in smallest else []
            smallest[answer] = files
    keep_corpus(reader, list(smallest.values()))


def _raise_hang(*_: object) -> None:
    raise HangError


def keep_corpus(reader: str, inputs: list[Input]) -> None:
    """Write the smallest inputs to the corpus of a reader, beside what is there."""
    CORPUS.mkdir(exist_ok=True)
    known = read_corpus(reader)
    for files in sorted(inputs, key=size_B):
        if len(known) < _KEPT and files not in known and sum(map(size_B, known)) + size_B(files) <= _KEPT_B:
            known.append(files)
    if not known:
        return
    with zipfile.ZipFile(CORPUS / f"{reader}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for number, files in enumerate(known):
            for name, content in files.items():
                archive.writestr(zipfile.ZipInfo(f"{number}/{name or '.directory'}"), content, zipfile.ZIP_DEFLATED)


def read_corpus(reader: str) -> list[Input]:
    """Return the inputs of a reader that were kept."""
    path = CORPUS / f"{reader}.zip"
    found: dict[int, Input] = {}
    if path.exists():
        with zipfile.ZipFile(path) as archive:
            for member in archive.namelist():
                number, _, name = member.partition("/")
                found.setdefault(int(number), {})["" if name == ".directory" else name] = archive.read(member)
    return [files for _, files in sorted(found.items())]


def fuzz_reader(reader: str, seeds: list[Input], seconds: float, seed: int) -> Iterator[str]:
    """Yield what was found, a line each; the last one says how many inputs were tried."""
    context = get_context("fork")
    tried, end, found = 0, time.monotonic() + seconds, 0
    with tempfile.TemporaryDirectory() as folder:
        while (left := end - time.monotonic()) > 1 and found < 10:
            done = context.Value("L", 0)
            errors = Path(folder) / "errors"
            arguments = errors, reader, seeds, seed + tried, left, folder, done
            process = context.Process(target=_run_quietly, args=arguments)
            process.start()
            process.join()
            tried += done.value
            if process.exitcode:
                found += 1
                kept = Path(tempfile.mkdtemp(prefix=f"fuzz-{reader}-"))
                shutil.copytree(Path(folder) / "input", kept / "input")
                said = errors.read_text().strip().splitlines()
                yield f"{reader}: exit {process.exitcode}: {said[-1] if said else ''}: {kept}"
    yield f"{reader}: {tried:,} inputs from {len(seeds)} recordings, {found} errors"


def _run_quietly(
    errors: Path, reader: str, seeds: list[Input], seed: int, seconds: float, folder: str, done: Synchronized[int]
) -> None:
    with errors.open("w") as stream:
        os.dup2(stream.fileno(), 2)
        _fuzz(reader, seeds, seed, seconds, Path(folder), done)


if __name__ == "__main__":
    further = [Path(word) for word in sys.argv[2:] if Path(word).is_dir()]
    recordings = find_seeds(load_plugins(), further)
    for each in [word for word in sys.argv[2:] if Path(word) not in further] or sorted(recordings):
        for line in fuzz_reader(each, recordings[each] + read_corpus(each), float(sys.argv[1]), time.time_ns()):
            print(line, flush=True)
