"""The screen itself: a list of programs beside the chosen one, and the keys.

Nothing of a profile is ever markup: every text is a ``rich`` text made by ``output.text_cells.make_line``, or shown by
a widget with ``markup=False``. What takes long runs in threads and hands its result back as a record.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, ClassVar, Final, TypeVar

from textual import on, work
from textual.app import App
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widgets import DataTable, Footer, Input, Static, TabbedContent, TabPane
from textual.worker import get_current_worker

from advisor.cli.screen import tables
from advisor.cli.screen.actions import open_file
from advisor.cli.screen.dialogs import ItemScreen, ReasonDialog, TextScreen, draw_help
from advisor.cli.screen.item_table import ItemTable
from advisor.cli.screen.page_view import PageView
from advisor.model.errors import AdvisorError
from advisor.output import program_text, run_pictures
from advisor.output.report_text import render_report
from advisor.output.text_cells import make_line, shorten_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.text import Text
    from textual.app import ComposeResult
    from textual.binding import BindingType
    from textual.widget import Widget

    from advisor.cli.screen.actions import ScreenActions
    from advisor.cli.screen.dialogs import Suppression
    from advisor.history.items import ItemState
    from advisor.history.program_views import FileOverview, HistoryViews, ProgramSummary, ProgramView
    from advisor.output.page import Page

Result = TypeVar("Result")

#: The history is looked at this often (seconds), and files are counted so many times as rarely as a count takes.
_LOOK_S: Final = 1.0
_COUNT_REST: Final = 20
#: How long the cursor rests on a program before that is loaded (seconds): who scrolls does not wait for each.
_REST_S: Final = 0.1
_TABS: Final = ("gaps", "notices", "history", "files")
_KEYS: Final = (
    ("Up Down j k", "move; Home, End, Page Up and Page Down too"),
    ("Tab", "to the next part: programs, gaps, items"),
    ("Enter", "of a program: its items; of an item: why, how with code, evidence, side effects"),
    ("Escape", "back"),
    ("/", "filter the programs by a part of name or build"),
    ("1 2 3 4", "gaps and items, notices, history over builds, files"),
    ("a", "acknowledge the item: it is known"),
    ("s", "suppress the item, with a reason, until a day or for good"),
    ("p", "the item was applied: the next build shows what it won"),
    ("c", "compare with the build before, gap by gap"),
    ("x", "explain the item: formula, inputs and thresholds of its numbers; reads the profile again"),
    ("o", "open the page of the run in a browser; says where it is where there is none"),
    ("t", "text instead of bars and lines of signs"),
    ("q Ctrl+C", "end"),
)


class DaemonSpoke(Message):
    """A line that the daemon wrote, or its last one when it ended for a reason."""

    def __init__(self, text: str, *, ended: bool = False) -> None:
        super().__init__()
        self.text, self.ended = text, ended


class WatchApp(App[None]):
    """The screen over a history; ``on_ready`` is called once it shows."""

    CSS_PATH = "screen.tcss"
    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (80, "-medium"), (120, "-wide")]  # noqa: RUF012 - as App declares it
    VERTICAL_BREAKPOINTS = [(0, "-short"), (24, "-tall")]  # noqa: RUF012
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
        *(Binding(str(at), f"show_tab('{name}')", show=False) for at, name in enumerate(_TABS, 1)),
    ]

    def __init__(
        self,
        views: HistoryViews,
        actions: ScreenActions,
        page: Page,
        roots: Sequence[str],
        on_ready: Callable[[WatchApp], None] = lambda app: None,
    ) -> None:
        super().__init__(ansi_color=True)
        self._views, self._actions, self._page, self._on_ready = views, actions, page, on_ready
        self._roots = ", ".join(map(page.clean_name, roots))
        self._version: tuple[object, ...] | None = None
        self._programs: tuple[ProgramSummary, ...] = ()
        self._trends: dict[tuple[str, int, str], program_text.Trend] = {}
        self._chosen: str | None = None
        self._view: ProgramView | None = None
        self._files: FileOverview | None = None
        self._count_due_s = 0.0
        self._daemon_line = ""

    def compose(self) -> ComposeResult:
        """Yield the parts of the screen."""
        yield Static("", id="top", markup=False)
        with Horizontal(id="middle"):
            with Vertical(id="programs-side"):
                yield Input(placeholder="part of a name or build", id="filter")
                yield tables.RowTable(id="programs", cursor_type="row")
            with Vertical(id="detail-side"), TabbedContent(id="tabs"):
                with TabPane("1 Gaps", id="tab-gaps"):
                    yield PageView(self._page, id="gaps")
                    yield ItemTable(id="items", cursor_type="row")
                for at, (name, title) in enumerate(
                    (("notices", "Notices"), ("history", "History"), ("files", "Files")), 2
                ):
                    with TabPane(f"{at} {title}", id=f"tab-{name}"):
                        yield PageView(self._page, id=name)
        yield Static("", id="said", markup=False)
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Begin to look."""
        self.theme = "ansi-dark"
        self._program_table.show_rows((), tables.PROGRAM_COLUMNS)
        self._program_table.focus()
        self._show_top()
        self.set_interval(_LOOK_S, self.look_again)
        self.look_again()
        self._on_ready(self)

    @property
    def _program_table(self) -> tables.RowTable:
        return self.screen_stack[0].query_one("#programs", tables.RowTable)

    @property
    def _item_table(self) -> ItemTable:
        return self.screen_stack[0].query_one("#items", ItemTable)

    def _page_view(self, name: str) -> PageView:
        return self.screen_stack[0].query_one(f"#{name}", PageView)

    def _show_line(self, text: str) -> None:
        line = make_line(shorten_text(self._page.clean_remark(text), self.size.width - 2, keep=0.3))
        for screen in {self.screen_stack[0], self.screen}:
            for place in screen.query("#said").results(Static):
                place.update(line)

    def _show_top(self) -> None:
        counts = self._files.counts if self._files else {}
        files = ", ".join(f"{count} {state}" for state, count in counts.items() if count) or "no files yet"
        new = sum(one.new_items for one in self._programs)
        items = f"; {new} new {'item' if new == 1 else 'items'}" if new else ""
        text = f"gapwatch  {files}{items}  {self._roots}"
        self.screen_stack[0].query_one("#top", Static).update(make_line(self._page.clean_remark(text)))

    # What the history holds, read in threads.

    @work(thread=True, group="look", exit_on_error=False)
    def look_again(self) -> None:
        """Look whether the history changed; show what did."""
        if self._is_working("list"):
            return
        try:
            version = self._views.read_version()
            if version != self._version:
                self._version = version
                self.call_from_thread(self._load_list)
            if monotonic() >= self._count_due_s:
                begin = monotonic()
                found = self._views.read_files()
                self._count_due_s = monotonic() + max(_LOOK_S, _COUNT_REST * (monotonic() - begin))
                if found != self._files:
                    self._files = found
                    self.call_from_thread(self._show_files)
        except AdvisorError as error:
            self.call_from_thread(self._show_line, str(error))

    def _is_working(self, group: str) -> bool:
        return any(worker.group == group and worker.is_running for worker in self.workers)

    @work(thread=True, exclusive=True, group="list", exit_on_error=False)
    def _load_list(self) -> None:
        """Load the list, then how each program moved, those first that ran last."""
        worker = get_current_worker()
        try:
            self._programs = self._views.list_programs()
            self.call_from_thread(self._show_programs)
            self.call_from_thread(self._load_chosen)
            for one in self._programs:
                key = tables.trend_key(one)
                if worker.is_cancelled:
                    return
                if key not in self._trends:
                    view = self._views.load_program(one.program)
                    if view is not None:
                        self._trends[key] = program_text.find_trend(view.change)
                        self.call_from_thread(self._show_programs)
        except AdvisorError as error:
            self.call_from_thread(self._show_line, str(error))

    @work(thread=True, exclusive=True, group="program", exit_on_error=False)
    def _load_chosen(self) -> None:
        """Load all of the chosen program."""
        program = self._chosen
        if program is None:
            return
        try:
            view = self._views.load_program(program)
        except AdvisorError as error:
            self.call_from_thread(self._show_line, str(error))
            return
        if view is not None and not get_current_worker().is_cancelled:
            self.call_from_thread(self._show_program, view)

    # What is shown.

    def _show_programs(self) -> None:
        """Show the list as far as the filter lets it through; the cursor stays on its program."""
        wanted = self.screen_stack[0].query_one("#filter", Input).value.casefold()
        shown = [one for one in self._programs if wanted in f"{one.program} {one.newest.build or ''}".casefold()]
        rows = tuple(
            tables.build_program_row(one, self._trends.get(tables.trend_key(one)), self._page) for one in shown
        )
        self._program_table.show_rows(rows)
        self._choose_cursor()
        self._show_top()
        if not self._programs:
            text = f"Waiting for the first profile in {self._roots}"
            self._page_view("gaps").show_lines(lambda page: [make_line((page.clean_remark(text), "bold"))])

    def _show_program(self, view: ProgramView) -> None:
        self._view = view
        page = self._page
        self._page_view("gaps").show_lines(
            partial(program_text.render_program, view.number, view.advice, view.change), page
        )
        self._page_view("notices").show_lines(partial(program_text.render_notices, view.advice), page)
        series = run_pictures.build_history_series((*view.earlier, view.advice))
        self._page_view("history").show_lines(partial(program_text.render_history, series), page)
        self._show_items()

    def _show_items(self) -> None:
        if self._view is not None:
            self._item_table.show_items(self._view, self._page)

    @on(ItemTable.Resized)
    def draw_items_again(self) -> None:
        """Choose the columns of items anew for another width; a last message comes when the screen has ended."""
        if self.screen_stack:
            self._show_items()

    def _show_files(self) -> None:
        found = self._files
        if found is not None:
            self._page_view("files").show_lines(
                partial(program_text.render_files, tuple(found.counts.items()), found.troubles, found.remarks),
                self._page,
            )
        self._show_top()

    @on(DaemonSpoke)
    def show_daemon_line(self, event: DaemonSpoke) -> None:
        """Show what the daemon says; the last words of one that ended stay."""
        self._show_line(f"! {event.text}" if event.ended else event.text)
        self.look_again()

    # What the user does.

    @on(DataTable.RowHighlighted, "#programs")
    def choose_program(self) -> None:
        """Show another program once the cursor rests on it."""
        self._choose_cursor()

    def _choose_cursor(self) -> None:
        program = self._program_table.chosen_key
        if program is not None and program != self._chosen:
            self._chosen = program
            self.set_timer(_REST_S, partial(self._load_rested, program))

    def _load_rested(self, program: str) -> None:
        if program == self._chosen:
            self._load_chosen()

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
        return self._item_table.chosen_key

    def action_leave_detail(self) -> None:
        """Go back to the list, and from there to all programs."""
        field = self.screen_stack[0].query_one("#filter", Input)
        if field.has_focus or (self._program_table.has_focus and field.value):
            field.value = ""
            field.remove_class("shown")
        self.screen_stack[0].remove_class("-detail")
        self._program_table.focus()

    def action_show_tab(self, name: str) -> None:
        """Show one of the parts of the chosen program."""
        self.screen_stack[0].add_class("-detail")
        self.screen_stack[0].query_one("#tabs", TabbedContent).active = f"tab-{name}"
        part: Widget = self._item_table if name == "gaps" else self._page_view(name)
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
    def filter_submitted(self) -> None:
        """Go to the list."""
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
            self._show_line("no item is chosen")
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
            self._show_line("there is no other build of this program on as many ranks to compare with")
            return
        report = build_comparison_report(self._view.change)
        plain = replace(self._page, color=False)
        self.push_screen(TextScreen(plain, lambda page: _split_lines(render_report(report, page)), "comparison"))

    def action_explain_item(self) -> None:
        """Explain the numbers of the chosen item."""
        view, fingerprint = self._view, self._chosen_fingerprint()
        found = [one for one in view.advice.recommendations if one.fingerprint == fingerprint] if view else []
        if view is None or not found:
            self._show_line("no item of the newest run is chosen")
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


def _split_lines(text: str) -> list[Text]:
    return [make_line(row) for row in text.splitlines()]
