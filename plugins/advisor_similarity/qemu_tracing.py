"""Runs a program under qemu-user with the tracer in it, and collects what its processes left behind."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.model.errors import UsageError
from advisor.support.child_process import end_group
from advisor.support.native_tools import compile_library, find_plugin_version, find_qemu
from advisor_similarity.decoding import DecodingCache, DecodingServer, cache_file
from advisor_similarity.elf import find_loader
from advisor_similarity.images import Image, read_images
from advisor_similarity.instructions import make_decoder
from advisor_similarity.regions import Region

if TYPE_CHECKING:
    from advisor_similarity.steps import Template

#: Machine numbers in the heads of ELF files.
ARCHITECTURES: Final = {62: "x86_64", 183: "aarch64"}
_CROSS: Final = {"x86_64": "amd64", "aarch64": "arm64"}
_GRACE_S: Final = 5.0
#: Started by the launcher for every rank; everything it needs stands in variables, nothing is put into its text.
_RANK_SCRIPT: Final = """#!/bin/sh
rank=${OMPI_COMM_WORLD_RANK:-${PMIX_RANK:-${PMI_RANK:-${MV2_COMM_WORLD_RANK:-${SLURM_PROCID:-0}}}}}
if [ "$rank" = "$GAPWATCH_RANK" ]; then
    exec "$GAPWATCH_QEMU" -cpu max -plugin "$GAPWATCH_PLUGIN" "$GAPWATCH_PROGRAM" "$@"
fi
exec "$GAPWATCH_PROGRAM" "$@"
"""


@dataclass(frozen=True, slots=True)
class TracePlan:
    """How to run and schedule: the command, and the tracer's settings.

    ``limit`` operations a cycle (0: unlimited), ``rows`` cycles kept apart, a ``window`` of instructions in every
    ``period`` (0: all of them), the ``rank`` to observe where the command is started by an MPI launcher, the ``region``
    of interest.
    """

    command: tuple[str, ...]
    limit: int = 0
    rows: int = 0
    window: int = 0
    period: int = 0
    rank: int | None = None
    follow_stack: bool = True
    stdin: Path | None = None
    sysroot: Path | None = None
    quiet: bool = False
    tracer: str = "qemu"
    region: Region = field(default_factory=Region)


@dataclass(frozen=True, slots=True)
class TracedRun:
    """A run: the program, seconds, exit code as the shell counts, images of processes, templates of instructions."""

    program: str
    seconds: float
    exit_code: int
    images: tuple[Image, ...]
    templates: tuple[Template, ...]
    codes: tuple[bytes, ...]
    folder: Path


def find_architecture(program: Path) -> str | None:
    """Return ``x86_64`` or ``aarch64`` for a 64-bit program of these, None for any other file."""
    try:
        with program.open("rb") as file:
            head = file.read(20)
    except OSError as error:
        raise UsageError(f"{program} can't be read: {error.strerror}") from error
    if len(head) < 20 or head[:5] != b"\x7fELF\x02":
        return None
    return ARCHITECTURES.get(int.from_bytes(head[18:20], "little"))


def find_program(word: str) -> Path:
    """Return the file that a command's first word names; raises ``UsageError``."""
    found = shutil.which(word)
    if found is None:
        why = "may not be executed (chmod +x?)" if Path(word).is_file() and "/" in word else "there is no such program"
        raise UsageError(f"{word}: {why}")
    return Path(found).resolve()


def _check_loader(program: Path, architecture: str, sysroot: Path | None) -> None:
    """Refuse a program whose shared libraries are those of another machine and not at hand."""
    needed = find_loader(program)
    if needed is None or Path(needed).exists() or (sysroot and (sysroot / needed.lstrip("/")).exists()):
        return
    here = f"/usr/{architecture}-linux-gnu"
    raise UsageError(
        f"{program.name} is loaded by {needed}, which is not here: link it statically, or name the directory of its "
        f"libraries, such as --sysroot {here} (apt-get install libc6-{_CROSS[architecture]}-cross)"
    )


def make_options(qemu: str | None = None) -> tuple[str, ...]:
    """Return how C sources of this package are compiled; the tracer needs the version of its QEMU."""
    version = (f"-DQEMU_PLUGIN_API={find_plugin_version(qemu)}",) if qemu else ()
    return ("-O3", "-Wall", "-Wextra", *version)


def trace_program(plan: TracePlan, cache: Path, folder: Path) -> TracedRun:
    """Run the command of ``plan``; ``folder`` takes the files of the run and must outlive the answer."""
    program, arguments, launcher = _split_command(plan)
    # the architecture of a program, that of this machine's interpreter for a script
    found = find_architecture(program)
    with program.open("rb") as file:
        if found is None and file.read(4) == b"\x7fELF":
            raise UsageError(
                f"{program.name}: only 64-bit programs for {' and '.join(ARCHITECTURES.values())} can be run"
            )
    architecture = found or "x86_64"
    qemu = find_qemu(architecture)
    _check_loader(program, architecture, plan.sysroot)
    library = compile_library("advisor_similarity", "tracer.c", cache, make_options(qemu))
    decodings = DecodingCache(
        make_decoder(architecture, plan.follow_stack), cache_file(cache, architecture, plan.follow_stack)
    )
    with tempfile.TemporaryDirectory(prefix="gapwatch-") as short:
        socket_path = Path(short) / "s"
        traced = _traced_command(plan, qemu, library, socket_path, folder, program)
        command = _build_command(plan, launcher, traced, program, Path(short)) + arguments
        with DecodingServer(socket_path, decodings, plan.region) as server:
            began = time.monotonic()
            exit_code = _run_traced(plan, command, _build_environment(plan, traced, program), server)
            seconds = time.monotonic() - began
    decodings.write_cache()
    images = tuple(read_images(folder))
    return TracedRun(
        str(program), seconds, exit_code, images, tuple(decodings.templates), tuple(decodings.codes), folder
    )


def _split_command(plan: TracePlan) -> tuple[Path, list[str], list[str]]:
    """Return the program to observe, its arguments, and the words of an MPI launcher before it."""
    if not plan.command:
        raise UsageError("which program? gapwatch parallelism -- ./app arguments")
    first = find_program(plan.command[0])
    if plan.rank is None:
        return first, list(plan.command[1:]), []
    for number, word in enumerate(plan.command[1:], 1):
        if not word.startswith("-") and (found := shutil.which(word)) and find_architecture(Path(found)):
            return Path(found).resolve(), list(plan.command[number + 1 :]), list(plan.command[:number])
    raise UsageError(f"there is no program behind {plan.command[0]} whose rank {plan.rank} could be observed")


def _traced_command(
    plan: TracePlan, qemu: str, library: Path, socket_path: Path, folder: Path, program: Path
) -> list[str]:
    options = {"socket": socket_path, "folder": folder, "qemu": qemu, "limit": plan.limit, "rows": plan.rows}
    options |= {"window": plan.window, "period": plan.period, "parent": os.getpid()}
    options |= plan.region.options
    for value in (library, folder):
        if "," in str(value):
            raise UsageError(f"{value}: qemu can't be given a path with a comma")
    plugin = ",".join([str(library), *(f"{name}={value}" for name, value in options.items())])
    root = ["-L", str(plan.sysroot)] if plan.sysroot else []
    if find_architecture(program) is None:  # a script: its interpreter is what runs
        shell = find_program("env")
        return [qemu, "-cpu", "max", *root, "-plugin", plugin, str(shell), str(program)]
    return [qemu, "-cpu", "max", *root, "-plugin", plugin, str(program)]


def _build_command(plan: TracePlan, launcher: list[str], traced: list[str], program: Path, folder: Path) -> list[str]:
    if not launcher:
        return traced
    script = folder / "rank"
    script.write_text(_RANK_SCRIPT)
    script.chmod(0o700)
    return [*launcher, str(script)]


def _build_environment(plan: TracePlan, traced: list[str], program: Path) -> dict[str, str]:
    """Return the variables that the script of the ranks reads; shared memory between ranks is copied, not mapped."""
    if plan.rank is None:
        return dict(os.environ)
    plugin = traced[traced.index("-plugin") + 1]
    return {
        **os.environ,
        **{"GAPWATCH_RANK": str(plan.rank), "GAPWATCH_QEMU": traced[0], "GAPWATCH_PLUGIN": plugin},
        **{"GAPWATCH_PROGRAM": str(program), "OMPI_MCA_btl_vader_single_copy_mechanism": "none"},
    }


def _run_traced(plan: TracePlan, command: list[str], environment: dict[str, str], server: DecodingServer) -> int:
    """Run and answer its questions until it has ended; its output goes to standard error, or nowhere."""
    out = subprocess.DEVNULL if plan.quiet else sys.stderr.fileno()
    with (plan.stdin or Path(os.devnull)).open("rb") as stdin:
        process = subprocess.Popen(
            command, stdin=stdin, stdout=out, stderr=out, env=environment, start_new_session=True
        )
        try:
            while process.poll() is None:
                server.serve_requests(0.05)
            deadline = time.monotonic() + _GRACE_S
            while server.connection_count and time.monotonic() < deadline:
                server.serve_requests(0.05)
        finally:
            end_group(process)
    return process.returncode if process.returncode >= 0 else 128 - process.returncode
