"""Examples of sources whose operations are counted, and what counting them needs."""

from __future__ import annotations

import shutil

import pytest
from command_line import ROOT

EXAMPLES = ROOT / "examples" / "count"
NEEDS_GCC = pytest.mark.skipif(not shutil.which("gcc"), reason="needs a C compiler: apt install gcc")
