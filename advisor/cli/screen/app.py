"""The keys of the screen, and what the user does with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final, TypeVar

from textual import on, work
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import DataTable, Input, TabbedContent

from advisor.cli.screen.actions import ScreenActions, open_file
from advisor.cli.screen.dialogs import ItemScreen, ReasonDialog, Suppression, TextScreen, draw_help
from advisor.cli.screen.history_screen import TABS, HistoryScreen
from advisor.cli.screen.page_view import PageView
from advisor.model.errors import AdvisorError
from advisor.output import program_text
from advisor.output.report_text import render_report
from advisor.output.text_cells import make_line

if TYPE_CHECKING:
    from rich.text import Text
    from textual.widget import Widget

    from advisor.history.items import ItemState
    from advisor.history.program_views import HistoryViews, ProgramView
    from advisor.output.page import Page

Result = TypeVar("Result")

_KEYS: Final = (
    ("Up Down j k", "move; Home, End, Page Up and Page Down too"),
    ("Tab", "to the next part: programs, gaps, items"),
    ("Enter", "of a program: its items; of an item: why, how with code, evidence, side effects"),
    ("Escape", "back"),
    ("/", "filter the programs by a part of name or build"),
    ("1 2 3 4", "gaps and items, notices, history over builds, files"),
    ("a", "acknowledge the item: it is known"),
    ("s", "suppress the item, with a reason, until a day or for good"),
    ("p", "the item was applied: the next build shows what it gained"),
    ("c", "compare with the build before, gap by gap"),
    ("x", "explain the item: formula, inputs and thresholds of its numbers; reads the profile again"),
    ("o", "open the page of the run in a browser; says where it is where there is none"),
    ("t", "text instead of bars and lines of signs"),
    ("q Ctrl+C", "end"),
)


class DaemonMessage(Message):
    """A line that the daemon wrote, or its last one when it ended for a reason."""

    def __init__(self, text: str, *, ended: bool = False) -> None:
        super().__init__()
        self.text, self.ended = text, ended


class WatchApp(HistoryScreen):
    """The screen with its keys; ``on_ready`` is called once it shows."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark", "show_help", "Help", key_display="?"),
        Binding("a", "mark_item('acknowledged')", "Ack"),
        Binding("s", "mark_item('suppressed')", "Suppress"),
        Binding("p", "mark_item('applied')", "Applied"),
        Binding("c", "compare_builds", "Compare"),
        Binding("x", "explain_item", "Explain"),
        Binding("o", "open_page", "Page"),
        Binding("slash", "filter_programs", "Filter", key_display="/"),
        Binding("q,ctrl+c", "quit", "Quit", key_display="q"),
        Binding("t", "toggle_text", show=False),
        Binding("j", "move('down')", show=False),
        Binding("k", "move('up')", show=False),
        Binding("escape", "leave_detail", show=False),
        *(Binding(str(at), f"show_tab('{name}')", show=False) for at, name in enumerate(TABS, 1)),
    ]

    def __init__(
        self,
        views: HistoryViews,
        actions: ScreenActions,
        page: Page,
        roots: Sequence[str],
        on_ready: Callable[[WatchApp], None] = lambda app: None,
    ) -> None:
        super().__init__(views, page, roots, lambda: on_ready(self))
        self._actions = actions

    @on(DaemonMessage)
    def show_daemon_line(self, event: DaemonMessage) -> None:
        """Show what the daemon says; the last words of one that ended stay."""
        self._show_line(f"! {event.text}" if event.ended else event.text)
        self.look_again()

    @on(DataTable.RowSelected, "#programs")
    def open_program(self) -> None:
        """Go to the items; on a narrow screen they take the place of the list."""
        self.action_show_tab("gaps")

    @on(DataTable.RowSelected, "#items")
    def open_item(self) -> None:
        """Show an item in full."""
        view, fingerprint = self._view, self._chosen_fingerprint()
        if view is None or fingerprint is None or len(self.screen_stack) > 1:
            return
        item = next((one for one in view.advice.recommendations if one.fingerprint == fingerprint), None)
        if item is None:
            self._show_line("this run does not show the item any more: its state and gains are in the list")
            return
        self.push_screen(ItemScreen(self._page, partial(program_text.render_item, item, view.advice), "item"))

    def _chosen_fingerprint(self) -> str | None:
        """Return the chosen item; of items that another tab hides nobody can say which one that is."""
        return self._item_table.chosen_key if self._item_table.region else None

    def action_leave_detail(self) -> None:
        """Go back to the list, and from there to all programs."""
        field = self.screen_stack[0].query_one("#filter", Input)
        if field.has_focus or self._program_table.has_focus:
            field.value = ""
            field.remove_class("shown")
        self.screen_stack[0].remove_class("-detail")
        self._program_table.focus()

    def action_show_tab(self, name: str) -> None:
        """Show one of the parts of the chosen program."""
        self.screen_stack[0].add_class("-detail")
        self.screen_stack[0].query_one("#tabs", TabbedContent).active = f"tab-{name}"
        has_items = name == "gaps" and self._item_table.row_count
        part: Widget = self._item_table if has_items else self._page_view(name)
        if part.region:
            self.screen_stack[0].set_focus(part)
        else:  # it has no place yet
            self.call_after_refresh(part.focus)

    def action_move(self, where: str) -> None:
        """Move in what has the focus."""
        focused = self.focused
        if isinstance(focused, DataTable):
            (focused.action_cursor_down if where == "down" else focused.action_cursor_up)()
        elif isinstance(focused, PageView):
            (focused.scroll_down if where == "down" else focused.scroll_up)(animate=False)

    def action_filter_programs(self) -> None:
        """Ask for a part of a name."""
        field = self.screen_stack[0].query_one("#filter", Input)
        self.screen_stack[0].remove_class("-detail")
        field.add_class("shown")
        field.focus()

    @on(Input.Changed, "#filter")
    def filter_changed(self) -> None:
        """Show the programs that fit."""
        self._show_programs()

    @on(Input.Submitted, "#filter")
    def filter_submitted(self, event: Input.Submitted) -> None:
        """Go to the list; a filter that lets all through goes."""
        if not event.value:
            event.input.remove_class("shown")
        self._program_table.focus()

    def action_toggle_text(self) -> None:
        """Draw sentences instead of bars, or bars again."""
        self._page = replace(self._page, lists=not self._page.lists)
        self._show_programs()
        if self._view is not None:
            self._show_program(self._view)

    def action_mark_item(self, state: ItemState) -> None:
        """Note in the history what the user says of the chosen item."""
        if self._view is None or self._chosen_fingerprint() is None:
            self._show_line("no item is chosen: 1 shows the items")
        elif state == "suppressed":
            self.push_screen(ReasonDialog(), self._suppress)
        else:
            self._mark(state)

    def _suppress(self, found: Suppression | None) -> None:
        if found is not None:
            self._mark("suppressed", found.until, found.reason)

    def _mark(self, state: ItemState, until: str | None = None, reason: str | None = None) -> None:
        view, fingerprint = self._view, self._chosen_fingerprint()
        if view is not None and fingerprint is not None:
            task = partial(self._actions.mark_item, view.advice.profile.program, fingerprint, state, until, reason)
            self._run_task(task, self._report_mark)

    def _report_mark(self, said: str) -> None:
        self._show_line(said)
        self._load_chosen()

    def action_compare_builds(self) -> None:
        """Compare the newest run with the build before it."""
        from advisor.cli.compare import build_comparison_report

        if self._view is None or self._view.change is None:
            self._show_line(_explain_no_change(self._view))
            return
        report = build_comparison_report(self._view.change)
        plain = replace(self._page, color=False)
        self.push_screen(TextScreen(plain, lambda page: _split_lines(render_report(report, page)), "comparison"))

    def action_explain_item(self) -> None:
        """Explain the numbers of the chosen item."""
        view, fingerprint = self._view, self._chosen_fingerprint()
        found = [one for one in view.advice.recommendations if one.fingerprint == fingerprint] if view else []
        if view is None or not found:
            self._show_line("no item of the newest run is chosen: 1 shows the items")
            return
        screen = TextScreen(self._page, lambda page: [make_line("Reading the profile again ...")], "explanation")
        self.push_screen(screen)
        task = partial(self._actions.explain_run, view.number, found[0].action, self.size.width - 4)
        self._run_task(
            task, lambda text: screen.show_lines(lambda page: _split_lines(text)),
            lambda error: screen.show_lines(lambda page: _split_lines(error)),
        )  # fmt: skip

    def action_open_page(self) -> None:
        """Write the page of the newest run and open it."""
        view = self._view
        if view is None:
            return
        self._show_line("writing the page ...")
        self._run_task(
            lambda: self._actions.write_page(view),
            lambda file: self._show_line(f"{'opened' if open_file(file) else 'the page of the run:'} {file}"),
        )

    def action_show_help(self) -> None:
        """Show the keys."""
        self.push_screen(TextScreen(self._page, partial(draw_help, _KEYS), "help"))

    @work(thread=True, group="task", exit_on_error=False)
    def _run_task(
        self,
        task: Callable[[], Result],
        show_result: Callable[[Result], None],
        show_error: Callable[[str], None] | None = None,
    ) -> None:
        """Do something that takes a while; then show its result, or what went wrong."""
        try:
            found = task()
        except AdvisorError as error:
            self.call_from_thread(show_error or self._show_line, str(error))
        else:
            self.call_from_thread(show_result, found)


def _explain_no_change(view: ProgramView | None) -> str:
    if view is None:
        return "no program is chosen"
    if not view.advice.profile.has_run_time:
        return "the newest run has no run time to compare"
    if not view.earlier:
        return "this is the first run of the program"
    if not any(one.profile.build for one in view.earlier):
        return "no earlier run names its build (gapwatch stamp DIR --build NAME): compare runs by their numbers"
    return "no other build ran with the same ranks and parameters, and its run time known"


def _split_lines(text: str) -> list[Text]:
    return [make_line(row) for row in text.splitlines()]
