"""A report with every kind of part in it."""

from __future__ import annotations

from advisor.model.reports import Axis, Bar, Bars, Code, Column, HeatMap, Line, Report, Series, Table, Text

CODE = Code("Model", "python", "def seconds(p):\n\treturn 2.5 / p  # [bold]as it is[/bold]")
BARS = Bars(
    "Gains",
    "s",
    (
        Bar("A-29 at solve", 3.6, 2.5, 4.0, "by simulation"),
        Bar("A-1", 1.2),
        Bar("not known", None),
        Bar("makes it slower", -0.5, -0.9, -0.1),
    ),
)
SERIES = Series(
    "Run time",
    Axis("processors", "", "log"),
    Axis("time", "s", "log"),
    (
        Line("measured", (1, 2, 4, 8, 16), (100.0, 51.0, 26.0, 14.0, None), joined=False),
        Line("model", (1, 4, 16, 64), (100.0, 25.0, 6.0, 2.0), (80.0, 20.0, 4.0, 1.0), (120.0, 30.0, 8.0, 3.0)),
    ),
)
WAVE = Series(
    "Wave", Axis("t", "s"), Axis("height"), (Line("", tuple(range(100)), tuple(abs(n % 20 - 10) for n in range(100))),)
)
DIVERGING = HeatMap(
    "Coupling",
    "",
    ("copy", "solve", "add"),
    ("copy", "solve", "add"),
    ((None, 0.8, 1.3), (0.8, None, 1.01), (1.3, 0.9, None)),
    1.0,
)
RISING = HeatMap(
    "Seconds",
    "s",
    tuple(f"rank {n}" for n in range(3)),
    tuple(f"region {n}" for n in range(14)),
    tuple(tuple(rank * region * 0.1 for region in range(14)) for rank in range(3)),
)
TABLE = Table("Pairs", (Column("pair"), Column("rate", "B/s")), (("copy, solve", 3.5e9), ("copy, add", None)))
EVERYTHING = Report("Everything", (Text("Prose."), CODE, TABLE, BARS, SERIES, WAVE, DIVERGING, RISING))


def draw_pictures() -> tuple[Bars | Series | HeatMap, ...]:
    """One picture of each kind, small."""
    line = Line("one", (1.0, 2.0, 3.0), (1.0, None, 9.0), (0.5, 1.0, 8.0), (1.5, 3.0, 10.0))
    return (
        HeatMap("coupling", "", ("a", "b"), ("a", "b"), ((1.0, None), (0.8, 1.2)), neutral=1.0),
        HeatMap("misses", "share", ("a",), ("b", "c"), ((0.1, 0.4),)),
        Series("growth", Axis("ranks", scale="log"), Axis("time", "s", "log"), (line,)),
        Bars("sums", "s", (Bar("measured", 2.0, 1.5, 2.5, "three runs"), Bar("unknown", None))),
    )
