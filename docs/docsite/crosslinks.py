"""Names of rules, hooks, facts and commands lead to their pages wherever a text names them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sphinx.application import Sphinx

_RULE = re.compile(r"\b[A-Z]-\d+\b")
#: Where a link would be inside a link, or would be in the way.
_NOT_IN = (nodes.reference, nodes.title, nodes.literal_block, addnodes.pending_xref, addnodes.toctree, nodes.raw)


class CrossLinks(SphinxTransform):
    """Turns ``A-28`` in a text, and code spans that name a hook, a fact or a command, into links."""

    default_priority = 700

    def apply(self, **_: object) -> None:
        """Change the document in place."""
        for node in list(self.document.findall(nodes.Text)):
            if not _inside(node):
                self._replace(node)

    def _replace(self, node: nodes.Text) -> None:
        parent = node.parent
        if isinstance(parent, nodes.literal):
            page = self._page(str(node))
            if page and isinstance(parent.parent, nodes.Element):
                parent.parent.replace(parent, self._link(page, parent.deepcopy()))
        elif _RULE.search(node):
            parent.replace(node, list(self._pieces(str(node))))

    def _pieces(self, text: str) -> Iterator[nodes.Node]:
        at = 0
        for found in _RULE.finditer(text):
            page = self._known(f"docs/rules/{found[0]}")
            if page:
                yield nodes.Text(text[at : found.start()])
                yield self._link(page, nodes.inline("", found[0]))
                at = found.end()
        yield nodes.Text(text[at:])

    def _page(self, text: str) -> str | None:
        """Return the page on what a code span names."""
        words = text.split("(")[0].split()
        if len(words) > 1 and words[0] == "gapwatch":
            return self._known(f"docs/commands/{words[1]}")
        if len(words) == 1:
            return self._known(f"docs/hooks/{words[0]}") or self._known(f"docs/facts/{words[0]}")
        return None

    def _known(self, page: str) -> str | None:
        return page if page in self.env.found_docs and page != self.env.docname else None

    def _link(self, page: str, inner: nodes.Node) -> addnodes.pending_xref:
        settings = {"refdomain": "std", "reftype": "doc", "reftarget": f"/{page}", "refexplicit": True}
        return addnodes.pending_xref("", inner, refdoc=self.env.docname, refwarn=True, **settings)


def _inside(node: nodes.Node) -> bool:
    while node.parent is not None:
        node = node.parent
        if isinstance(node, _NOT_IN):
            return True
    return False


def setup(app: Sphinx) -> dict[str, bool]:
    """Give Sphinx the transform."""
    app.add_transform(CrossLinks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
