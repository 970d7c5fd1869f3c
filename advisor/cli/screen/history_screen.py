"""What the screen shows of a history: a list of programs beside the chosen one, loaded in threads.

Nothing of a profile is ever markup: every text is a ``rich`` text made by ``output.text_cells.make_line``, or shown by
a widget with ``markup=False``. What takes long runs in threads and hands its result back as a record.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Final

from textual import on, work
from textual.app import App, ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widgets import DataTable, Footer, Input, Static, TabbedContent, TabPane
from textual.worker import get_current_worker

from advisor.cli.screen.page_view import PageView
from advisor.cli.screen.tables import ItemTable, ProgramTable, RowTable, trend_key
from advisor.model.errors import AdvisorError
from advisor.output import program_text
from advisor.output.history_series import build_history_series
from advisor.output.text_cells import make_line, shorten_text

if TYPE_CHECKING:
    from advisor.history.program_views import FileOverview, HistoryViews, ProgramSummary, ProgramView
    from advisor.output.page import Page

#: The history is looked at this often (seconds), and files are counted so many times as rarely as a count takes.
_LOOK_S: Final = 1.0
_COUNT_REST: Final = 20
#: How long the cursor rests on a program before that is loaded (seconds): who scrolls does not wait for each.
_REST_S: Final = 0.1
TABS: Final = ("gaps", "notices", "history", "files")


class HistoryScreen(App[None]):
    """The screen over a history; ``on_ready`` is called once it shows."""

    CSS_PATH = "screen.tcss"
    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (80, "-medium"), (120, "-wide")]  # noqa: RUF012 - as App declares it
    VERTICAL_BREAKPOINTS = [(0, "-short"), (24, "-tall")]  # noqa: RUF012

    def __init__(
        self, views: HistoryViews, page: Page, roots: Sequence[str], on_ready: Callable[[], None] = lambda: None
    ) -> None:
        super().__init__(ansi_color=True)
        self._views, self._page, self._on_ready = views, page, on_ready
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
                yield ProgramTable(id="programs", cursor_type="row")
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
        self._program_table.show_programs((), self._page)
        self._program_table.focus()
        self._show_top()
        self.set_interval(_LOOK_S, self.look_again)
        self.look_again()
        self._on_ready()

    @property
    def _program_table(self) -> ProgramTable:
        return self.screen_stack[0].query_one("#programs", ProgramTable)

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
                key = trend_key(one)
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
        """Show the list, or that there is nothing to list yet."""
        self._fill_list()
        self._choose_cursor()
        self._show_top()
        if not self._programs:
            text = f"Waiting for the first profile in {self._roots}"
            self._page_view("gaps").show_lines(lambda page: [make_line((page.clean_remark(text), "bold"))])

    def _fill_list(self) -> None:
        """List the programs that the filter lets through; the cursor stays on its program."""
        wanted = self.screen_stack[0].query_one("#filter", Input).value.casefold()
        shown = [one for one in self._programs if wanted in f"{one.program} {one.newest.build or ''}".casefold()]
        self._program_table.show_programs([(one, self._trends.get(trend_key(one))) for one in shown], self._page)

    def _show_program(self, view: ProgramView) -> None:
        self._view = view
        page = self._page
        self._page_view("gaps").show_lines(
            partial(program_text.render_program, view.number, view.advice, view.change), page
        )
        self._page_view("notices").show_lines(partial(program_text.render_notices, view.advice), page)
        series = build_history_series((*view.earlier, view.advice))
        self._page_view("history").show_lines(partial(program_text.render_history, series), page)
        self._show_items()

    def _show_items(self) -> None:
        if self._view is not None:
            table = self._item_table
            table.show_items(self._view, self._page)
            self.screen_stack[0].set_class(not table.row_count, "-no-items")

    @on(RowTable.Resized)
    def draw_tables_again(self) -> None:
        """Choose the columns of tables anew for another width; a last message comes when the screen has ended."""
        if self.screen_stack:
            self._fill_list()
            self._show_items()

    def _show_files(self) -> None:
        found = self._files
        if found is not None:
            self._page_view("files").show_lines(
                partial(program_text.render_files, tuple(found.counts.items()), found.troubles, found.remarks),
                self._page,
            )
        self._show_top()

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
