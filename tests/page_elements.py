"""The elements and the text of a page that is to hold no attributes but those of cells."""

from __future__ import annotations

from html.parser import HTMLParser


class Elements(HTMLParser):
    """The elements of a page, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not attrs or tag in ("th", "td"), (tag, attrs)
        self.names.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data
