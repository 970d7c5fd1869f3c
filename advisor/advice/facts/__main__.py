"""``python -m advisor.advice.facts`` writes the page ``docs/facts.md``."""

import sys

from advisor.advice.facts.page import document

sys.stdout.write(document())
