"""What a timing table looks like, said by templates of its lines (``table_reading`` reads what they describe).

A template is a line as the program prints it, with fields in braces for what changes. A blank stands for any number of
blanks, beside a sign also for none, and ``…`` for the rest of a line. ``{name}`` is the row, ``{_}`` any word,
``{indent}`` the blanks before a row, ``{dots}`` what leads from a name to its number, ``{blank}`` an empty line.

All other fields are numbers. ``mean``, ``least`` and ``most`` are the seconds of a row over the ranks, ``deviation``
their standard deviation, ``least_at`` and ``most_at`` the ranks that take them, ``inclusive`` and ``inclusive_most``
mean and most with all that the row calls. ``on`` is on how many ranks the row runs, ``first`` and ``last`` on which.
``share`` (per cent) and ``fraction`` are of the run. ``{wall:time}`` is a time in any form that people write
(``1 h 2 min``, ``0:07:08.5``), ``{words:word}`` and ``{words:text}`` are what a line names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: ``apart``: rows stand beside each other. ``indented``: below the row that is indented less, above or below them.
#: ``unknown``: those are told apart that fit into the run beside each other.
Nesting = Literal["apart", "indented", "indented upwards", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableForm:
    """The form in which one program prints its times.

    ``marker`` is a text that no other output holds. Rows stand between the last line ``begin`` and the line ``end``
    (without one the next empty line or the end of the file); without ``begin`` they are wherever they match.
    ``section`` is a line that names what the rows below belong to, ``besides`` are lines that are no rows. The row
    ``whole`` is the run, else ``wall`` states its time, else the longest row is the run. ``sum`` states what all rows
    add up to. Of ``ranks`` the product counts; a program that prints none of them ran on one rank. ``averages`` is
    whether single numbers are means over the ranks, else they are the first rank's; ``cumulative`` whether they are
    the time since the run began. ``roles`` are patterns of names with what such rows do (``Role``), where names do not
    tell. ``finish`` is what a run that ends regularly prints behind the table.
    """

    tool: str
    marker: bytes
    rows: tuple[str, ...]
    begin: str = ""
    end: str = ""
    besides: tuple[str, ...] = ()
    section: str = ""
    whole: str = ""
    wall: tuple[str, ...] = ()
    cpu: str = ""
    sum: str = ""
    ranks: tuple[str, ...] = ()
    threads: tuple[str, ...] = ()
    program: str = ""
    run: str = ""
    started: str = ""
    finish: str = ""
    language: str | None = None
    nesting: Nesting = "unknown"
    averages: bool = False
    cumulative: bool = False
    unit_s: float = 1.0
    hides_waiting: bool = True
    roles: tuple[tuple[str, str], ...] = ()
