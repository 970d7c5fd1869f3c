"""The command's way in: makes sure that ``advisor`` is this project's package, then hands over to it.

A vendor's profiler ships a package of the same name and puts it on ``PYTHONPATH``, which comes before installed
packages. So the command does not look ``advisor`` up: it loads the package that was installed beside this one.
Neither ``PYTHONPATH`` nor the other package is touched; the programs that this one starts see both as ever.
"""

from __future__ import annotations

import gc
import os
import sys
from importlib.util import module_from_spec, spec_from_file_location

#: New objects after which garbage is looked for: by default so few that loading the program looks dozens of times, and
#: finds nothing, since what is loaded stays.
_LOOK_AFTER = 50_000


def main() -> int:
    """Run the command line and return its exit code."""
    gc.set_threshold(_LOOK_AFTER)
    bind_own_package()
    from advisor.cli import main as run

    return run()


def bind_own_package() -> None:
    """Make ``import advisor`` mean this project's package, and nothing importable from the current directory."""
    _leave_current_directory()
    folder = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "advisor")
    present = sys.modules.get("advisor")
    if present is not None and getattr(present, "__path__", None) == [folder]:
        return
    for name in [name for name in sys.modules if name == "advisor" or name.startswith("advisor.")]:
        del sys.modules[name]
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
