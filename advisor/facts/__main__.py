"""``python -m advisor.facts`` writes the page ``docs/facts.md``."""

import sys

from advisor.facts.page import document

sys.stdout.write(document())
