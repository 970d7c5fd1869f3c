"""``python -m gapwatch``: the same as the command ``gapwatch``."""

from __future__ import annotations

import sys

from gapwatch import main

sys.exit(main())
