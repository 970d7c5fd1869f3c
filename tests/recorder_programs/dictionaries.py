"""Four functions that spend their time outside of arithmetic: a search in a list, growing text, words, patterns."""

import re
import sys


def unique(names: list[str]) -> list[str]:
    seen: list[str] = []
    for name in names:
        if name not in seen:
            seen.append(name)
    return seen


class Page:
    def __init__(self) -> None:
        self.text = ""

    def render(self, rows: range) -> str:
        for row in rows:
            self.text = self.text + str(row)
        return self.text


def count(words: list[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for word in words:
        key = word.strip().lower()
        if key in counts:
            counts[key] = counts[key] + 1
        else:
            counts[key] = 1
    return counts


def find(lines: list[str]) -> int:
    pattern = re.compile(r"(\d+)\.(\d+)\.(\d+)\.(\d+) (\S+)$")
    return sum(1 for line in lines if pattern.search(line))


often = int(sys.argv[1])
names = [f"name {number}" for number in range(9000)]
for _ in range(often):
    print(len(unique(names)), len(Page().render(range(40000))))
    print(len(count(names * 33)), find(["10.0.17.255 /index"] * 50000))
