"""What the server answers: pages and JSON documents of the history, each made once for a state of the history."""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import asdict
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from advisor.history import overview
from advisor.history.access import read_history
from advisor.history.dialect import StoreLost
from advisor.history.file_states import FileStates
from advisor.history.items import ItemStore
from advisor.history.runs import RunStore
from advisor.model.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from advisor.history.location import HistoryLocation
    from advisor.history.overview import RunOverview
    from advisor.history.program_views import HistoryViews
    from advisor.history.runs import RunEntry
    from advisor.model.records import Advice

#: Runs of a program on the page that lists all, runs in a document, and answers that are kept.
_RUNS, _ENTRIES, _KEPT = 20, 1_000, 64
SCHEMA: Final = "gapwatch/site/1"


class HistoryAnswers:
    """Answers from the history at ``location``; threads may share it. Every method raises ``StoreError``.

    Pages are drawn one at a time, since the library that draws figures is not made for threads.
    """

    def __init__(self, location: HistoryLocation, views: HistoryViews) -> None:
        self._location, self._views = location, views
        self._lock = Lock()
        self._known: OrderedDict[tuple[object, ...], str] = OrderedDict()

    def render_index(self) -> str:
        """Return the page of all programs, with their newest runs."""
        return self._answer_once("index", 0, self._render_index)

    def render_run(self, number: int) -> str:
        """Return the page of a run."""
        return self._answer_once("run", number, lambda: self._render_run(number))

    def render_metrics(self) -> str:
        """Return the newest run of each program as OpenMetrics."""
        return self._answer_once("metrics", 0, self._render_metrics)

    def list_programs(self) -> dict[str, Any]:
        """Return the programs, each with its newest run and the number of unseen items."""
        found = self._views.list_programs()
        return {
            "schema": SCHEMA,
            "programs": [{"newest": asdict(one.newest), "new_items": one.new_items} for one in found],
        }

    def list_runs(self, program: str | None) -> dict[str, Any]:
        """Return the newest runs, of one program if given, the oldest first."""
        with read_history(self._location) as connection:
            return {
                "schema": SCHEMA, "runs": [asdict(one) for one in RunStore(connection).list_entries(program, _ENTRIES)],
            }  # fmt: skip

    def list_items(self, program: str) -> dict[str, Any]:
        """Return the items of a program with their states."""
        with read_history(self._location) as connection:
            return {
                "schema": SCHEMA, "items": [asdict(one) for one in ItemStore(connection).items_of_program(program)],
            }  # fmt: skip

    def build_run_document(self, number: int) -> dict[str, Any]:
        """Return the advice on a run, ``gapwatch/advice/1``."""
        from advisor.output.advice_document import build_advice_document

        with read_history(self._location) as connection:
            document: dict[str, Any] = json.loads(
                json.dumps(build_advice_document(RunStore(connection).load_advice(number)))
            )
            return document

    def count_files(self) -> dict[str, Any]:
        """Return the files by state."""
        with read_history(self._location) as connection:
            return {"schema": SCHEMA, "files": dict(FileStates(connection).count_states())}

    def _answer_once(self, kind: str, number: int, make_answer: Callable[[], str]) -> str:
        key = (kind, number, *self._views.read_version())
        with self._lock:
            if key not in self._known:
                self._known[key] = make_answer()
                while len(self._known) > _KEPT:
                    self._known.popitem(last=False)
            self._known.move_to_end(key)
            return self._known[key]

    def _render_index(self) -> str:
        from advisor.output.html import index

        shown: list[RunOverview] = []
        problems: list[str] = []
        if self._views.has_history:
            with read_history(self._location) as connection:
                runs = RunStore(connection)
                for program in runs.list_programs():
                    self._add_runs(runs, runs.list_entries(program, _RUNS), shown, problems)
        return index.render_index_page(overview.group_by_program(shown), tuple(problems))

    @staticmethod
    def _add_runs(runs: RunStore, entries: tuple[RunEntry, ...], shown: list[RunOverview], problems: list[str]) -> None:
        earlier: list[Advice] = []
        for entry in entries:
            try:
                advice = runs.load_advice(entry.number)
            except StoreLost:
                raise
            except StoreError as error:
                problems.append(f"{error}; it is left out")
                continue
            shown.append(overview.build_run_overview(advice, earlier, f"runs/{entry.number}"))
            earlier.append(advice)

    def _render_run(self, number: int) -> str:
        from advisor.history.history_queries import StoredHistory
        from advisor.output.html.advice_page import render_advice_page

        with read_history(self._location) as connection:
            advice = RunStore(connection).load_advice(number)
        past = StoredHistory(self._location, until=number - 1)
        earlier = past.load_summaries(advice.profile.program)
        return render_advice_page(StoredHistory(self._location).update_item_states(advice), earlier, "../")

    def _render_metrics(self) -> str:
        from advisor.output.open_metrics import render_open_metrics

        with read_history(self._location) as connection:
            runs = RunStore(connection)
            newest = [runs.list_entries(program, 1)[0] for program in runs.list_programs()]
            return render_open_metrics([runs.load_advice(entry.number) for entry in newest])
