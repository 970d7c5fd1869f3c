"""What installed tools know of this machine: lstopo its caches, likwid-bench what its memory delivers."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Final, cast, get_args

from advisor.analysis.machines.records import Cache, CacheName, Count, Machine, Number, NumberSource, iterate_numbers
from advisor.support.child_process import run_child
from advisor_processor.probe.samples import Samples

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_LIMIT_S: Final = 60.0
_LSTOPO: Final = ("lstopo-no-graphics", "lstopo")
_SOURCE: Final = "lstopo"
#: hwloc's number for caches of instructions.
_INSTRUCTIONS: Final = "2"
#: Names of likwid-bench's kernels end with what they are written for, by the bits of a vector.
_ENDINGS: Final = {512: "_avx512", 256: "_avx", 128: "_sse"}
_RATE: Final = re.compile(r"^MByte/s:\s+([0-9.]+)\s*$", re.MULTILINE)
_SAMPLES: Final = 4
#: What is measured: our name of it, likwid-bench's kernel, and whether all cores take part.
BANDWIDTHS: Final = (("read by likwid-bench", "load", False), ("triad by likwid-bench", "stream", True))


def add_caches(host: Machine) -> Machine:
    """Return the machine with the data caches that lstopo shows, which knows containers and processors by name."""
    program = next(filter(None, map(shutil.which, _LSTOPO)), None)
    done = run_child([program, "--of", "xml"], _LIMIT_S) if program else None
    caches = _parse_caches(done.text) if done and done.status == 0 else {}
    if not caches:
        return host
    known = host.sources | {_SOURCE: NumberSource("found here: lstopo (hwloc)")}
    caches = host.caches | caches
    parts = [getattr(host, part.name) for part in fields(host) if part.name != "caches"]
    named = {number.source for part in (*parts, caches) for _, number in iterate_numbers(part)}
    return replace(host, caches=caches, sources={name: source for name, source in known.items() if name in named})


def _parse_caches(text: str) -> dict[CacheName, Cache]:
    """Return the data caches above the first processor, innermost first; nothing where the text is not hwloc's."""
    from defusedxml.common import DefusedXmlException
    from defusedxml.ElementTree import ParseError, fromstring

    try:
        top = fromstring(text)
    except (ParseError, DefusedXmlException):
        return {}
    found = {}
    for cache in _iterate_first_caches(top):
        name = f"L{cache.get('depth')}"
        if name in get_args(CacheName) and cache.get("cache_type") != _INSTRUCTIONS:
            cores = sum(inner.get("type") == "Core" for inner in cache.iter("object"))
            found[cast("CacheName", name)] = Cache(
                size=_parse_number(cache, "cache_size"),
                line=_parse_number(cache, "cache_linesize"),
                ways=_parse_count(cache, "cache_associativity"),
                shared_by=Count(cores, _SOURCE) if cores else None,
            )
    return dict(sorted(found.items()))


def _iterate_first_caches(element: Element) -> Iterator[Element]:
    """Yield the caches on the way down to the first processor."""
    for inner in element.findall("object"):
        if any(deeper.get("type") == "PU" for deeper in inner.iter("object")):
            if inner.get("cache_size"):
                yield inner
            yield from _iterate_first_caches(inner)
            return


def _parse_number(cache: Element, name: str) -> Number | None:
    value = float(cache.get(name, 0))
    return Number(value, _SOURCE) if value > 0 else None


def _parse_count(cache: Element, name: str) -> Count | None:
    value = int(cache.get(name, 0))
    return Count(value, _SOURCE) if value > 0 else None


def measure_bandwidth(kernel: str, size: int, threads: int, width: int) -> Samples | None:
    """Return the seconds a byte of a kernel of likwid-bench over ``size`` bytes takes; None where it does not run.

    The bytes are those that the kernel names, as STREAM counts them.
    """
    program = shutil.which("likwid-bench")
    if not program:
        return None
    words = [program, "-t", kernel + _ENDINGS.get(width, ""), "-w", f"N:{size // 1_000_000}MB:{threads}"]
    runs = [run_child(words, _LIMIT_S) for _ in range(_SAMPLES)]
    rates = [float(found[1]) for done in runs if done.status == 0 and (found := _RATE.search(done.text))]
    seconds = tuple(1e-6 / rate for rate in rates if rate > 0)
    return Samples(seconds, (1.0,) * len(seconds)) if seconds else None
