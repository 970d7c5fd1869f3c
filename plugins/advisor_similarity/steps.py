"""What the oracle machine schedules: an instruction as load, operate and store steps over numbered locations.

A location is a register, a part of one, a group of flags or a value on its way from one step of an instruction to
the next. Numbers below 128 are whole locations. 128 + r and 160 + r are bits 0-7 and 8-15 of the general register
r: a write of only these leaves the rest of the register as available as it was.

Operations are of the five kinds of Meajil, El-Ghazawi and Sterling's centroids, and of finer ones within them.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

#: The components of a centroid, in the order of Table 11 of the paper.
COARSE: Final = ("int", "mem", "fp", "control", "branch")
#: Instructions that the disassembler does not know stand outside of the centroid, and are counted.
UNKNOWN: Final = len(COARSE)

#: Finer classes, each with the component that it belongs to.
FINE: Final = (
    ("int add", 0),
    ("int logic", 0),
    ("int shift", 0),
    ("int multiply", 0),
    ("int divide", 0),
    ("int move", 0),
    ("int compare", 0),
    ("int vector", 0),
    ("load", 1),
    ("store", 1),
    ("fp add", 2),
    ("fp multiply", 2),
    ("fp multiply-add", 2),
    ("fp divide", 2),
    ("fp compare", 2),
    ("fp convert", 2),
    ("fp move", 2),
    ("fp extended", 2),
    ("control", 3),
    ("branch conditional", 4),
    ("branch jump", 4),
    ("branch call", 4),
    ("branch return", 4),
    ("unknown", UNKNOWN),
)
FINE_NAMES: Final = tuple(name for name, _ in FINE)
FINE_INDEX: Final = {name: number for number, name in enumerate(FINE_NAMES)}
COARSE_OF: Final = tuple(coarse for _, coarse in FINE)


GENERAL: Final = 0
VECTOR_LOW: Final = 32
VECTOR_REST: Final = 64
CARRY, OVERFLOW, ZERO_SIGN, DIRECTION = 96, 97, 98, 99
FP_CONTROL, X87, SEGMENTS = 100, 101, 102
MASKS: Final = 104
LOADED, RESULT = 120, 121
#: Nothing is ever read from the one, and what is read from the other was always there.
SINK, ALWAYS = 126, 127
LOW_BYTE: Final = 128
SECOND_BYTE: Final = 160

OPERATE, LOAD, STORE, GATHER, ALSO = range(5)
#: A step works on parts of registers; and: it happens only if its instruction touched memory.
PARTS, IF_TOUCHED = 1, 2
_SLOTS: Final = 4
#: kind, component, flags, nothing, four inputs, four outputs, number of the instruction, nothing.
WIRE: Final = struct.Struct("<BBBx4s4sHxx")


@dataclass(frozen=True, slots=True)
class Step:
    """One operation: ``kind`` of OPERATE, LOAD, STORE; ``fine`` its class; locations read and written."""

    kind: int
    fine: int
    reads: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()
    if_touched: bool = False


@dataclass(frozen=True, slots=True)
class Template:
    """What one instruction does wherever it stands: its steps, its mnemonic, whether it was understood."""

    mnemonic: str
    steps: tuple[Step, ...]
    is_known: bool = True


def encode_template(template: Template, number: int = 0) -> bytes:
    """Return the steps as the schedulers written in C and numba read them, 16 bytes each."""
    return b"".join(_encode_step(step, number) for step in template.steps)


def _encode_step(step: Step, number: int) -> bytes:
    reads, writes = list(dict.fromkeys(step.reads)), list(dict.fromkeys(step.writes))
    flags = IF_TOUCHED if step.if_touched else 0
    records = []
    while len(reads) > _SLOTS:
        records.append(_encode_record(GATHER, step.fine, flags, reads[:_SLOTS], [], number))
        reads = reads[_SLOTS:]
    records.append(_encode_record(step.kind, step.fine, flags, reads, writes[:_SLOTS], number))
    further = range(_SLOTS, len(writes), _SLOTS)
    records += [_encode_record(ALSO, step.fine, flags, [], writes[start : start + _SLOTS], number) for start in further]
    return b"".join(records)


def _encode_record(kind: int, fine: int, flags: int, reads: list[int], writes: list[int], number: int) -> bytes:
    parts = any(location >= LOW_BYTE for location in (*reads, *writes))
    padded = bytes(reads + [ALWAYS] * (_SLOTS - len(reads))), bytes(writes + [SINK] * (_SLOTS - len(writes)))
    return WIRE.pack(kind, COARSE_OF[fine], flags | (PARTS if parts else 0), *padded, number)
