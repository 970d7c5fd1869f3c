"""Computes in Python and in C, each in a function of its own, and writes a file now and then."""

import json
import sys


def add_squares(count: int) -> int:
    total = 0
    for i in range(count):
        total += i * i
    return total


class Field:
    def smooth(self, values: list[float]) -> list[float]:
        return [0.5 * a + 0.5 * b for a, b in zip(values, values[1:] + values[:1], strict=True)]


def encode(values: list[float]) -> str:
    return json.dumps(values, indent=1)  # in a library


def main() -> None:
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    field, values = Field(), [float(i) for i in range(20000)]
    total = 0
    for _ in range(steps):
        total += add_squares(200000)
        for _ in range(4):
            values = field.smooth(values)
        text = encode(values)
        with open("loops.out", "w") as out:
            out.write(text)
    print(total, len(text))


main()
