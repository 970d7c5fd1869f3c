"""Decodes the chunks of all locations, several at a time where the decoder is compiled, and hands them on in order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

import numpy as np

from advisor.formats.otf2 import plain_decoder
from advisor.formats.otf2.chunks import END_OF_FILE, HEADER, EventChunk
from advisor.formats.otf2.rows import PADDING, ChunkBytes, DecodedChunk, DecodingContext, DecodingError, EventRows
from advisor.model.errors import InputError

if TYPE_CHECKING:
    Decoder = Callable[[ChunkBytes, DecodingContext, EventRows], DecodedChunk]

#: Bytes of a chunk by which it is told from others.
_HEAD = 4096
#: Chunks that wait or are being decoded, for each thread.
_AHEAD = 2
#: Bytes of a chunk from which on decoding it takes longer than handing it to another thread.
_WORTH_A_THREAD = 1 << 16


class DecodingTask(NamedTuple):
    """A chunk to decode into ``target``, which has a row for each event that the chunk's header counts.

    The target is part of ``buffer``, which may be used again once the rows have been taken.
    """

    location: int
    chunk: EventChunk
    context: DecodingContext
    target: EventRows
    buffer: EventRows


def choose_decoder(*, compiled: bool) -> Decoder:
    """Return the decoder that numba compiles, or the plain one; importing numba takes half a second."""
    if not compiled:
        return plain_decoder.decode_events
    from advisor.formats.otf2 import compiled_decoder as by_numba

    return by_numba.decode_events


def decode_chunks(tasks: Iterable[DecodingTask], *, compiled: bool) -> Iterator[tuple[DecodingTask, DecodedChunk]]:
    """Yield every task, in order, with what was in its chunk; raises ``InputError`` for the first damaged one."""
    decoder = choose_decoder(compiled=compiled)
    threads = len(os.sched_getaffinity(0)) if compiled else 1
    if threads == 1:
        for task in tasks:
            yield task, _decode_task(task, decoder)
        return
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[tuple[DecodingTask, Callable[[], DecodedChunk]]] = deque()
        try:
            for task in tasks:
                decode = partial(_decode_task, task, decoder)
                waiting.append((task, pool.submit(decode).result if task.chunk.size >= _WORTH_A_THREAD else decode))
                if len(waiting) > _AHEAD * threads:
                    first, finish = waiting.popleft()
                    yield first, finish()
            for first, finish in waiting:
                yield first, finish()
        finally:
            pool.shutdown(cancel_futures=True)


def _decode_task(task: DecodingTask, decoder: Decoder) -> DecodedChunk:
    chunk = task.chunk
    content = read_bytes(chunk)
    try:
        decoded = decoder(content, task.context, task.target)
    except DecodingError as error:
        raise InputError(chunk.file, f"cannot be read: {error}", f"byte {chunk.begin + error.position}") from error
    if (decoded.end_record == END_OF_FILE) != chunk.last:
        reason = "ends between two chunks" if chunk.last else "goes on behind its last chunk"
        raise InputError(chunk.file, f"cannot be read: {reason}", f"byte {chunk.begin + chunk.size}")
    return decoded._replace(head=crc32(content.data[: min(content.size, _HEAD)].data))


def read_bytes(chunk: EventChunk) -> ChunkBytes:
    """Return the bytes of a chunk; a copy, since what is mapped would vanish with a file that becomes shorter."""
    data = np.empty(chunk.size + PADDING, dtype=np.uint8)
    data[chunk.size :] = 0
    try:
        with chunk.file.open("rb", buffering=0) as source:
            source.seek(chunk.begin)
            read = source.readinto(data[: chunk.size].data)
    except OSError as error:
        raise InputError(chunk.file, f"cannot be read: {error.strerror}") from error
    return ChunkBytes(data, read or 0, HEADER, chunk.big_endian)
