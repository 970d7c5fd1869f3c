"""Runs a program under valgrind's lackey and schedules what comes through the pipe: slow, but needs no compiler.

lackey names each instruction by its address and each access to memory; the bytes of the instructions are read from
the memory of the process, or from the files that were mapped there once it has ended.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.model.errors import UsageError
from advisor.support.child_process import end_group
from advisor_similarity.decoding import DecodingCache, cache_file
from advisor_similarity.images import Block, Image, MemoryMapping, Stream, parse_mapping
from advisor_similarity.instructions import make_decoder
from advisor_similarity.oracle_kernel import INSTRUCTION, Octets, OracleMachine, build_template_table, parse_lackey
from advisor_similarity.qemu_tracing import TracedRun, TracePlan, find_architecture, find_program

if TYPE_CHECKING:
    from advisor.model.records import IntArray

#: The first piece of text is small, so that the process is still there when its code is read.
_FIRST_CHUNK: Final = 1 << 14
_CHUNK: Final = 4 << 20
_SHORTEST_LINE: Final = 5
_CODE: Final = 15


def trace_piped(plan: TracePlan, cache: Path, folder: Path) -> TracedRun:
    """Run the command of ``plan``; like ``tracing.trace``, without limit, windows, histogram, children and threads.

    All threads are one stream, in the order in which valgrind ran them. Raises ``UsageError``.
    """
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise UsageError("valgrind is not installed: apt-get install valgrind")
    program = find_program(plan.command[0])
    if find_architecture(program) != "x86_64":
        raise UsageError(f"{program.name}: only programs for x86_64 can be traced by valgrind")
    decodings = DecodingCache(make_decoder("x86_64", plan.follow_stack), cache_file(cache, "x86_64", plan.follow_stack))
    pipe = folder / "lackey"
    os.mkfifo(pipe, 0o600)
    command = [valgrind, "--tool=lackey", "--basic-counts=no", "--trace-mem=yes", f"--log-file={pipe}", str(program)]
    began = time.monotonic()
    exit_code, image = _run_valgrind(plan, [*command, *plan.command[1:]], pipe, decodings)
    decodings.write_cache()
    seconds = time.monotonic() - began
    return TracedRun(
        str(program), seconds, exit_code, (image,), tuple(decodings.templates), tuple(decodings.codes), folder
    )


def _run_valgrind(plan: TracePlan, command: list[str], pipe: Path, decodings: DecodingCache) -> tuple[int, Image]:
    out = subprocess.DEVNULL if plan.quiet else sys.stderr.fileno()
    # read and write, so that opening waits for nobody and valgrind can open the pipe as often as it likes
    reading = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    with (plan.stdin or Path(os.devnull)).open("rb") as stdin:
        process = subprocess.Popen(command, stdin=stdin, stdout=out, stderr=out, start_new_session=True)
        try:
            image = _follow_pipe(process, reading, decodings)
        finally:
            os.close(reading)
            end_group(process)
    return process.returncode if process.returncode >= 0 else 128 - process.returncode, image


def _follow_pipe(process: subprocess.Popen[bytes], reading: int, decodings: DecodingCache) -> Image:
    stream = _PipedStream(process.pid, decodings)
    waiting = bytearray()
    enough = _FIRST_CHUNK
    while True:
        ended = process.poll() is not None
        try:
            text = os.read(reading, 1 << 16)
        except BlockingIOError:
            text = b""
        waiting += text
        if len(waiting) >= enough or (ended and not text):
            enough = min(2 * enough, _CHUNK)
            cut = waiting.rfind(b"\n") + 1
            stream.schedule_text(bytes(waiting[:cut]))
            del waiting[:cut]
        if not text:
            if ended:
                return stream.finish_image()
            time.sleep(0.002)


class _PipedStream:
    """The records of a process on their way to the oracle machine."""

    def __init__(self, process: int, decodings: DecodingCache) -> None:
        self._process = process
        self._decodings = decodings
        self._machine = OracleMachine()
        self._numbers: dict[int, int] = {}
        self._counts: dict[int, int] = {}
        self._mappings: list[MemoryMapping] = []
        self._left: tuple[Octets, IntArray, IntArray] | None = None

    def schedule_text(self, text: bytes) -> None:
        """Schedule the instructions in whole lines, except for the last one: more of its accesses may follow."""
        most = len(text) // _SHORTEST_LINE + 1
        kinds, addresses = np.empty(most, dtype=np.uint8), np.empty(most, dtype=np.int64)
        sizes = np.empty(most, dtype=np.int64)
        found = parse_lackey(np.frombuffer(text, dtype=np.uint8), kinds, addresses, sizes)
        records = kinds[:found], addresses[:found], sizes[:found]
        if self._left is not None:
            records = (
                np.concatenate((self._left[0], records[0])),
                np.concatenate((self._left[1], records[1])),
                np.concatenate((self._left[2], records[2])),
            )
        starts = np.flatnonzero(records[0] == INSTRUCTION)
        whole = int(starts[-1]) if len(starts) else 0
        self._schedule_records(records[0][:whole], records[1][:whole], records[2][:whole])
        self._left = records[0][whole:], records[1][whole:], records[2][whole:]

    def _schedule_records(self, kinds: Octets, addresses: IntArray, sizes: IntArray) -> None:
        instructions = kinds == INSTRUCTION
        distinct, inverse, counts = np.unique(addresses[instructions], return_inverse=True, return_counts=True)
        if not len(distinct):
            return
        numbers = np.array([self._template_number(address) for address in distinct.tolist()], dtype=np.int64)
        for address, count in zip(distinct.tolist(), counts.tolist(), strict=True):
            self._counts[address] = self._counts.get(address, 0) + count
        templates = np.zeros(len(kinds), dtype=np.int64)
        templates[instructions] = numbers[inverse]
        self._machine.schedule_records(kinds, addresses, sizes, templates, build_template_table(self._decodings.wired))

    def _template_number(self, address: int) -> int:
        if address not in self._numbers:
            self._numbers[address] = self._decodings.template_number(self._read_code(address))
        return self._numbers[address]

    def _read_code(self, address: int) -> bytes:
        """Return the bytes of an instruction, longer than it is."""
        try:
            with open(f"/proc/{self._process}/mem", "rb", buffering=0) as memory:
                memory.seek(address)
                code = memory.read(_CODE)
            if not any(part.start <= address < part.end for part in self._mappings):
                lines = Path(f"/proc/{self._process}/maps").read_text(errors="surrogateescape").splitlines()
                self._mappings = [part for line in lines for part in parse_mapping(line)]
        except (OSError, OverflowError):
            return self._read_file_code(address)
        return code

    def _read_file_code(self, address: int) -> bytes:
        part = next((part for part in self._mappings if part.start <= address < part.end and part.path), None)
        if part is None:
            return b""
        try:
            with open(part.path, "rb") as file:
                file.seek(address - part.start + part.offset)
                return file.read(_CODE)
        except OSError:
            return b""

    def finish_image(self) -> Image:
        """Schedule what is left and return the process."""
        if self._left is not None:
            self._schedule_records(*self._left)
        machine = self._machine
        used = -(-machine.cycles // (1 << machine.shift))
        loads, stores = machine.accesses
        stream = Stream(machine.cycles, loads, stores, 0, 0, machine.shift, 0, buckets=machine.buckets[:used].tolist())
        blocks = {}
        for index, (address, count) in enumerate(self._counts.items()):
            blocks[index] = Block(address, (self._numbers[address],))
            stream.counts[index] = count
        return Image(self._process, False, [stream], blocks, self._mappings)
