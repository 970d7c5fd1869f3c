"""The lines of what ``perf script`` prints: samples and the frames of their stacks.

Which fields a line has depends on the options (``-F``): ``comm pid/tid [cpu] time: period event: ip symbol (library)``,
where everything but the process or thread may be missing. With call graphs a sample's frames follow it on lines of
their own, innermost first, and a blank line ends them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_THREAD: Final = (
    rb"\s*(?P<comm>\S.*?)\s+(?P<pid>\d{1,10})(?:/(?P<tid>\d{1,10}))?\s+(?:\[(?P<cpu>\d{1,6})\]\s+)?"
    rb"(?:[.dDXxnNpPHhsbBGi]{4,7}\s+)?"
)
_TIME: Final = rb"(?P<time>\d{1,12}\.\d{1,9}):\s*"
_EVENT: Final = rb"(?:(?:(?P<period>\d{1,18})\s+)?(?P<event>[A-Za-z]\S*?):(?=\s|$)\s*)?(?P<rest>.*)"
SAMPLE: Final = re.compile(_THREAD + rb"(?:" + _TIME + rb")?" + _EVENT)
#: The same with a time: before it the name of a thread may hold numbers.
TIMED_SAMPLE: Final = re.compile(_THREAD + _TIME + _EVENT)
#: What starts a line that tells of something else than a sample.
RECORD: Final = b"PERF_RECORD_"
LOST: Final = b"PERF_RECORD_LOST"
_FRAME: Final = re.compile(
    r"(?:(?P<ip>[0-9a-f]{1,16})(?:$| +(?!\()))?(?P<symbol>.*?)(?:\+0x[0-9a-f]+)?"
    r"(?: \((?P<object>[^()]*(?: \(deleted\))?)\))?"
)
#: An address where perf was not asked for names; shorter ones are names, like ``add``.
_ADDRESS: Final = re.compile(r"[0-9a-f]{8,16}")
_UNKNOWN: Final = "[unknown]"
_INLINED: Final = "inlined"
#: What stands in brackets and is no part of the kernel.
_NOT_KERNEL: Final = frozenset(
    {"[unknown]", "[vdso]", "[vsyscall]", "[heap]", "[stack]", "[anon]", "[vvar]", "[uprobes]"}
)
#: Addresses from here on are the kernel's.
_KERNEL: Final = 0xFFFF800000000000


@dataclass(frozen=True, slots=True)
class StackFrame:
    """A function on a stack; ``symbol`` and ``object`` (its file) are None where perf does not know or print them."""

    symbol: str | None
    object: str | None
    kernel: bool


def parse_frame(line: bytes) -> StackFrame | None:
    """Return the function that a line names, None for one that the compiler inlined."""
    text = line.decode("utf-8", "surrogateescape").strip()
    found = _FRAME.fullmatch(text)
    if found is None or not text or found["object"] == _INLINED:
        return None
    symbol, place, address = found["symbol"].strip(), found["object"] or None, found["ip"]
    if _ADDRESS.fullmatch(symbol):
        symbol, address = "", symbol
    kernel = place is not None and place.startswith("[") and place not in _NOT_KERNEL
    kernel = kernel or (address is not None and int(address, 16) >= _KERNEL)
    return StackFrame(None if symbol in ("", _UNKNOWN) else symbol, None if place == _UNKNOWN else place, kernel)
