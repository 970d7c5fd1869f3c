"""``python -m docsite DIRECTORY``: build the site there."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from docsite import building, tree

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m docsite DIRECTORY")
    with TemporaryDirectory() as source:
        tree.write(Path(source))
        sys.exit(building.build(Path(source), Path(sys.argv[1])))
