"""Kinds of operations: the five of Meajil, El-Ghazawi and Sterling's centroids, and finer ones within them."""

from __future__ import annotations

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
