"""Write the mesh of CRASH: ``mesh.txt`` (neighbours of each element), ``elements.txt`` (plastic or not, row).

Two sheets of metal, one behind the other, with holes, numbered row by row as a mesh generator does it. Where the sheets
touch, elements have neighbours in the other sheet. Elements of the front part are plastic, the others elastic.
"""

from __future__ import annotations

import random
from pathlib import Path

HERE = Path(__file__).resolve().parent
WIDTH, HEIGHT, SHEETS = 37, 29, 2
PLASTIC = 0.3  # the share of the rows that is crushed
HOLES = 0.04


def elements(dice: random.Random) -> list[tuple[int, int, int]]:
    """Return sheet, row and column of each element in the order of their numbers."""
    cells = [(s, y, x) for s in range(SHEETS) for y in range(HEIGHT) for x in range(WIDTH)]
    return [cell for cell in cells if dice.random() >= HOLES]


def neighbours(cells: list[tuple[int, int, int]], dice: random.Random) -> list[list[int]]:
    """Return the neighbours of each element: around it in its sheet, and some of the sheet behind, in rising order."""
    number = {cell: k for k, cell in enumerate(cells)}
    found: list[set[int]] = [set() for _ in cells]
    for k, (sheet, y, x) in enumerate(cells):
        near = [(sheet, y + dy, x + dx) for dy in (0, 1) for dx in (-1, 0, 1) if (dy, dx) > (0, 0)]
        if sheet == 0 and y < PLASTIC * HEIGHT and dice.random() < 0.5:
            near.append((1, y, x))
        for cell in near:
            other = number.get(cell)
            diagonal = cell[1] != y and cell[2] != x
            if other is not None and not (diagonal and dice.random() < 0.3):
                found[k].add(other)
                found[other].add(k)
    return [sorted(each) for each in found]


def main() -> None:
    """Write both files."""
    dice = random.Random(5)
    cells = elements(dice)
    near = neighbours(cells, dice)
    lines = [" ".join(map(str, each)) for each in near]
    (HERE / "mesh.txt").write_text("\n".join(lines) + "\n", encoding="ascii")
    kinds = [f"{int(y < PLASTIC * HEIGHT)} {y}" for _, y, _ in cells]
    (HERE / "elements.txt").write_text("\n".join(kinds) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
