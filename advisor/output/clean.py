"""Untrusted text on its way to a screen: the one door for names that come from profiles, traces and plugins.

They may hold anything: control characters, terminal commands, signs that reverse the reading direction, markup. What
comes out of ``clean_text`` is verbatim or visibly escaped.
"""

from __future__ import annotations

#: Unicode categories without a picture of their own: controls, formats (bidi, zero width), surrogates, separators.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def clean_text(text: str, encoding: str = "utf-8") -> str:
    """Return ``text`` with everything a terminal would act on, or the encoding lacks, as a backslash escape.

    Cleaning twice changes nothing. Line ends count as control characters: one name stays one line.
    """
    if text.isascii() and text.isprintable():
        return text
    from unicodedata import category  # help is plain ASCII, and need not pay for it

    shown = "".join(
        character.encode("unicode_escape").decode("ascii") if category(character) in _HIDDEN else character
        for character in text
    )
    return shown.encode(encoding, "backslashreplace").decode(encoding)
