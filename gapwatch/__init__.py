"""The Python API, and the command's way in; both make sure that ``advisor`` is this project's package.

``gapwatch.load(path)`` reads a run and advises on it (docs/api.md). The names below are imported on first use, so that
``import gapwatch`` costs a few milliseconds.

A vendor's profiler ships a package of the same name and puts it on ``PYTHONPATH``, which comes before installed
packages. So the command does not look ``advisor`` up: it loads the package that was installed beside this one.
Neither ``PYTHONPATH`` nor the other package is touched; the programs that this one starts see both as ever.
"""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module

TYPE_CHECKING = False  # type checkers take it for true; the module typing would double the time of the import
if TYPE_CHECKING:
    from advisor.model.errors import AdvisorError
    from gapwatch.histories import History, open_history
    from gapwatch.recordings import record
    from gapwatch.reports import report
    from gapwatch.runs import Run, compare, load, load_runs

__all__ = ["AdvisorError", "History", "Run", "compare", "load", "load_runs", "main", "open_history", "record", "report"]

#: The module of each name of the API.
_MODULES = {
    "AdvisorError": "advisor.model.errors",
    "History": "gapwatch.histories",
    "Run": "gapwatch.runs",
    "compare": "gapwatch.runs",
    "load": "gapwatch.runs",
    "load_runs": "gapwatch.runs",
    "open_history": "gapwatch.histories",
    "record": "gapwatch.recordings",
    "report": "gapwatch.reports",
}
#: New objects after which garbage is looked for: by default so few that loading the program looks dozens of times, and
#: finds nothing, since what is loaded stays.
_LOOK_AFTER = 250_000


def main() -> int:
    """Run the command line and return its exit code."""
    gc.set_threshold(_LOOK_AFTER)
    bind_own_package()
    from advisor.cli import main as run

    return run()


def __getattr__(name: str) -> object:
    """Return a name of the API, imported on first use."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    bind_own_package(as_command=False)
    value: object = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})


def bind_own_package(*, as_command: bool = True) -> None:
    """Make ``import advisor`` mean this project's package.

    In the process of the command nothing becomes importable from the current directory; a program that uses the API
    keeps its search path.
    """
    if as_command:
        _leave_current_directory()
    folder = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "advisor")
    present = sys.modules.get("advisor")
    if present is not None and getattr(present, "__path__", None) == [folder]:
        return
    for name in [name for name in sys.modules if name == "advisor" or name.startswith("advisor.")]:
        del sys.modules[name]
    from importlib.util import module_from_spec, spec_from_file_location  # not before it is needed: it takes 10 ms

    spec = spec_from_file_location("advisor", os.path.join(folder, "__init__.py"), submodule_search_locations=[folder])
    if spec is None or spec.loader is None:
        raise ImportError(f"the package advisor is not installed beside {__file__}")
    module = module_from_spec(spec)
    sys.modules["advisor"] = module
    spec.loader.exec_module(module)


def _leave_current_directory() -> None:
    """Drop the current directory from the front of ``sys.path``, unless ``PYTHONPATH`` names it in full.

    ``python -m`` and an empty part in ``PYTHONPATH`` put it there, and with it whatever lies in a shared directory.
    What stands behind the standard library was installed and stays.
    """
    try:
        here = os.getcwd()
    except OSError:
        return
    if here in os.environ.get("PYTHONPATH", "").split(os.pathsep):
        return
    library = os.path.dirname(os.__file__)
    end = sys.path.index(library) if library in sys.path else 0
    sys.path[:end] = [entry for entry in sys.path[:end] if entry and os.path.realpath(entry) != os.path.realpath(here)]
