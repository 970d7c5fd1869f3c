"""``python -m advisor.advice.facts`` writes the page ``docs/facts.md``."""

import sys

from advisor.advice.facts.page import render_facts_page

sys.stdout.write(render_facts_page())
