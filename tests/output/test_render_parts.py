"""What the parts of a report look like: bars, plots and heat maps, on wide and narrow pages, with and without signs."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_samples import BARS, CODE, DIVERGING, EVERYTHING, RISING, SERIES, TABLE, WAVE
from rich.cells import cell_len

from advisor.extension.host import answers
from advisor.model.reports import Axis, Bar, Bars, Code, HeatMap, Line, Part, Report, Series
from advisor.output import scales
from advisor.output.advice_document import to_json
from advisor.output.page import Page
from advisor.output.report_text import build_report_document, render_report

PARTS = {"code": CODE, "table": TABLE, "bars": BARS, "series": SERIES, "wave": WAVE, "map": DIVERGING, "wide": RISING}


def drawn(part: Part, page: Page) -> list[str]:
    return render_report(Report("", (part,)), page).split("\n")[:-1]


def test_bars_stand_on_one_scale_with_their_intervals() -> None:
    assert drawn(BARS, Page(80)) == [
        "Gains",
        "  A-29 at solve          ████████████████├──────┼─┤   3.60 s  2.50 s to 4.00 s",
        "    by simulation",
        "  A-1                    ███████▌                     1.20 s",
        "  not known                                                -",
        "  makes it slower  ├─┼──┤                            -500 ms  -900 ms to -100 ms",
    ]


def test_bars_in_ascii() -> None:
    assert drawn(BARS, Page(80, "ascii"))[1].strip() == (
        "A-29 at solve          ################[------+-]   3.60 s  2.50 s to 4.00 s"
    )


def test_bars_on_a_narrow_page_are_a_list() -> None:
    assert drawn(BARS, Page(40)) == [
        "Gains",
        "A-29 at solve: 3.60 s, 2.50 s to",
        "  4.00 s, by simulation",
        "A-1: 1.20 s",
        "not known: -",
        "makes it slower: -500 ms, -900 ms to",
        "  -100 ms",
    ]


def test_a_longer_bar_is_a_larger_value() -> None:
    bars = Bars("", "", tuple(Bar(f"{n}", float(n)) for n in range(1, 9)))
    lengths = [line.count("█") for line in drawn(bars, Page(80))]
    assert lengths == sorted(lengths)
    assert lengths[-1] > 4 * lengths[0]


def test_a_plot_has_axes_marks_and_values() -> None:
    lines = drawn(SERIES, Page(60))
    assert lines[:2] == ["Run time", "time (logarithmic)"]
    plot = lines[2:17]
    assert all(line[7] in "┤│" for line in plot)
    assert plot[0].startswith("       │") or plot[0].startswith(" 100 s ┤")
    assert lines[17] == "       └" + "─" * 52
    assert lines[18].split() == ["1", "2", "5", "10", "20", "50"]
    assert lines[19].strip() == "processors (logarithmic)"
    assert lines[20:22] == ["o measured", "* model"]
    assert lines[22].split() == ["processors", "measured", "model"]
    assert lines[23].split(maxsplit=3) == ["1", "100", "s", "100 s (80.0 s to 120 s)"]
    assert lines[-1].split(maxsplit=1) == ["64", "2.00 s (1.00 s to 3.00 s)"]
    assert sum(line.count("o") for line in plot) == 3  # the first point lies below that of the model, the last has no y
    assert sum(line.count("*") for line in plot) == 4
    assert any("░" in line for line in plot)
    assert any(set(line) & {chr(code) for code in range(0x2801, 0x2900)} for line in plot)


def test_a_plot_in_ascii() -> None:
    plot = drawn(SERIES, Page(60, "ascii"))[2:17]
    assert all(line[7] == "|" for line in plot)
    assert any(":" in line for line in plot)
    assert any("." in line.partition("|")[2] for line in plot)


def test_many_values_are_listed_in_part() -> None:
    lines = drawn(WAVE, Page(80))
    assert lines[-1] == "  21 of 100 places are listed; --format json has them all"
    assert len(drawn(WAVE, Page(80, verbose=True))) == len(lines) + 100 - 21 - 1


def test_what_a_logarithmic_axis_can_not_show_is_said() -> None:
    lines = drawn(Series("", Axis("x", "", "log"), Axis("y"), (Line("a", (0, 1, 2), (1.0, 2.0, 3.0)),)), Page(80))
    assert "1 of 3 points are not in the plot: a logarithmic axis has no place for them" in lines
    nothing = drawn(Series("", Axis("x"), Axis("y", "", "log"), (Line("a", (1,), (0.0,)),)), Page(80))
    assert [line.split() for line in nothing] == [["x", "a"], ["1", "0"]]


def test_a_page_too_narrow_for_a_plot_has_the_values() -> None:
    lines = drawn(SERIES, Page(24))
    assert "1" in [line.strip() for line in lines]
    assert not any("┤" in line for line in lines)


@pytest.mark.parametrize(
    ("values", "axis", "ends"),
    [
        ([1.0, 9.5], Axis("x"), (0.0, 10.0)),
        ([90.0, 99.0], Axis("x"), (90.0, 100.0)),
        ([-3.0, 4.0], Axis("x"), (-4.0, 4.0)),
        ([5.0], Axis("x"), (5.0, 6.0)),
        ([0.0], Axis("x"), (0.0, 1.0)),
        ([2.0, 300.0], Axis("x", "", "log"), (2.0, 300.0)),
    ],
)
def test_axes_hold_all_values_between_round_ends(values: list[float], axis: Axis, ends: tuple[float, float]) -> None:
    scale = scales.fit_scale(values, axis)
    assert scale is not None
    assert (scale.low, scale.high) == pytest.approx(ends)


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20),
    st.sampled_from(["linear", "log"]),
)
@settings(max_examples=200, deadline=None)
def test_every_value_has_a_place_on_its_axis(values: list[float], kind: str) -> None:
    scale = scales.fit_scale(values, Axis("x", "", "log" if kind == "log" else "linear"))
    if scale is None:
        assert max(values) <= 0
        return
    assert all(0 <= scale.to_share(value) <= 1 for value in values if scale.can_show(value))
    assert 0 < len(scale.ticks) <= 30


def test_a_map_says_without_colour_what_is_above_and_below() -> None:
    assert drawn(DIVERGING, Page(60)) == [
        "Coupling",
        "            copy    solve       add",
        "  copy      -      0.8 <<    1.3 >>",
        "  solve   0.8 <<     -      1.01",
        "  add     1.3 >>   0.9 <       -",
        "< below 1, > above it; << and >>: by more than 0.15",
    ]


def test_a_wide_map_is_drawn_in_blocks() -> None:
    lines = drawn(RISING, Page(60, "ascii"))
    heads = [line.split() for line in lines if "region" in line]
    assert [name for head in heads for name in head if name != "region"] == [str(n) for n in range(14)]
    assert len(heads) > 1
    assert lines[-1] == ". from 0 s, # up to 2.60 s, in four equal steps"
    assert "2.60 s #" in lines[-2]


def test_a_map_on_a_narrow_page_is_a_list() -> None:
    lines = drawn(DIVERGING, Page(40))
    assert "copy, solve: 0.8 <<" in lines
    assert "copy, copy: -" in lines


def test_a_map_has_colours_where_the_page_has_them() -> None:
    shown = render_report(Report("", (DIVERGING,)), Page(80, color=True))
    assert "\x1b[30;46m 0.8 <<" in shown
    assert "\x1b[30;43m 1.3 >>" in shown
    assert "\x1b" not in render_report(Report("", (DIVERGING,)), Page(80))


def test_code_is_shown_as_it_is() -> None:
    long = Code("", "sh", "  mpirun " + "-x y " * 40 + "\nend")
    assert drawn(long, Page(60)) == ["  mpirun " + ("-x y " * 40).rstrip(), "end"]
    assert drawn(CODE, Page(60)) == ["Model", "def seconds(p):", "    return 2.5 / p  # [bold]as it is[/bold]"]


def test_parts_without_content() -> None:
    parts = (Bars("b", "", ()), Series("s", Axis("x"), Axis("y"), ()), HeatMap("h", "", (), (), ()))
    assert render_report(Report("", parts), Page(60)).split() == ["b", "none", "s", "none", "h", "none"]


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
@pytest.mark.parametrize("width", [20, 30, 60, 80, 120, 300])
def test_no_part_is_wider_than_the_page(name: str, encoding: str, width: int) -> None:
    lines = drawn(PARTS[name], Page(width, encoding))
    assert lines
    assert all(cell_len(line) <= width or name == "code" for line in lines)
    "\n".join(lines).encode(encoding)


def test_every_part_is_plain_data_with_its_kind() -> None:
    parts = json.loads(to_json(build_report_document(EVERYTHING)))["parts"]
    kinds = ["text", "code", "table", "bars", "series", "series", "heatmap", "heatmap"]
    assert [part["kind"] for part in parts] == kinds
    assert parts[1] == {"kind": "code", "title": "Model", "language": "python", "text": CODE.text}
    assert parts[3]["bars"][0] == {
        "name": "A-29 at solve", "value": 3.6, "low": 2.5, "high": 4.0, "note": "by simulation"
    }  # fmt: skip
    assert parts[4]["x"] == {"name": "processors", "unit": "", "scale": "log", "names": []}
    assert parts[4]["lines"][0]["y"] == [100, 51, 26, 14, None]
    assert parts[6]["cells"][0] == [None, 0.8, 1.3]
    assert parts[6]["neutral"] == 1


@given(st.text(max_size=20), st.sampled_from([20, 60, 120]), st.sampled_from(["utf-8", "ascii"]))
@settings(max_examples=60, deadline=None)
def test_what_plugins_call_things_does_nothing_on_a_terminal(name: str, width: int, encoding: str) -> None:
    parts = (
        Code(name, name, name),
        Bars(name, "s", (Bar(name, 1.0, 0.5, 2.0, name), Bar(name, None))),
        Series(name, Axis(name), Axis(name), (Line(name, (1.0, 2.0), (1.0, None)), Line(name, (1.0,), (3.0,)))),
        HeatMap(name, "", (name, "b"), (name,), ((1.0,), (None,)), 1.0),
    )
    shown = render_report(Report(name, parts), Page(width, encoding))
    assert {c for c in shown if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"}} <= {"\n"}
    shown.encode(encoding)


numbers = st.none() | st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(st.tuples(numbers, numbers, numbers), max_size=8), st.sampled_from([20, 60, 120]))
@settings(max_examples=100, deadline=None)
def test_any_finite_numbers_are_drawn(rows: list[tuple[float | None, float | None, float | None]], width: int) -> None:
    bars = []
    for value, *ends in rows:
        known = sorted(end for end in ends if end is not None)
        bars.append(Bar("b", value, *known) if len(known) == 2 else Bar("b", value))
    known = [(x, y) for x, y, _ in rows if x is not None]
    line = Line("l", tuple(x for x, _ in known), tuple(y for _, y in known))
    cells = tuple(rows) or ((None,) * 3,)
    for scale in ("linear", "log"):
        parts = (
            Bars("", "s", tuple(bars)),
            Series("", Axis("x"), Axis("y", "s", "log" if scale == "log" else "linear"), (line,)),
            HeatMap("", "", ("r",) * len(cells), ("a", "b", "c"), cells, 1.0 if scale == "log" else None),
        )
        assert all(cell_len(shown) <= width for shown in render_report(Report("", parts), Page(width)).split("\n"))


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        (HeatMap("", "", ("a",), ("b",), ()), "parts[0].cells: 0 rows of cells for 1 rows"),
        (HeatMap("", "", ("a",), ("b",), ((1.0, 2.0),)), "parts[0].cells[0]: 2 cells for 1 columns"),
        (Bars("", "", (Bar("a", 1.0, 0.5),)), "parts[0].bars[0]: an interval has both ends"),
        (Bars("", "", (Bar("a", 1.0, 2.0, 0.5),)), "parts[0].bars[0]: the interval from 2 to 0.5 is empty"),
        (Series("", Axis("x"), Axis("y"), (Line("l", (1.0,), ()),)), "parts[0].lines[0]: 0 values of y for 1 of x"),
        (
            Series("", Axis("x"), Axis("y"), (Line("l", (1.0,), (1.0,), (0.5,)),)),
            "parts[0].lines[0]: 0 values of high for 1 of x",
        ),
        (
            Series("", Axis("x"), Axis("y"), (Line("l", (1.0,), (1.0,), (2.0,), (0.0,)),)),
            "parts[0].lines[0]: the interval from 2 to 0 is empty",
        ),
    ],
)
def test_parts_that_do_not_hold_together_are_refused(part: Part, reason: str) -> None:
    with pytest.raises(answers.ContractError) as caught:
        answers.require_report(Report("", (part,)))
    assert str(caught.value).startswith(reason)


def test_sound_parts_are_taken() -> None:
    assert answers.require_report(EVERYTHING) is EVERYTHING


@pytest.mark.parametrize("neutral", [None, 1.0])
def test_a_map_of_equal_values_has_no_steps_to_explain(neutral: float | None) -> None:
    shown = render_report(Report("", (HeatMap("h", "", ("a",), ("b", "c"), ((1.0, 1.0),), neutral),)), Page(60))
    assert "steps" not in shown
    assert "by more than" not in shown
    assert shown.rstrip().count("\n") == 2
