"""Measure the shape of the code: names, sizes, clones, imports, and what one command runs through.

    python tools/metrics.py [FOLDER ...]        # advisor and plugins unless told otherwise
    python tools/metrics.py --limits            # also the functions and files that are longer than they should be

Imports are read as ``tests/project/test_layers.py`` reads them, which allows neither cycles nor imports upwards.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of code: its path, its lines, and its functions and methods but for ``__magic__`` ones."""

    path: Path
    lines: int
    functions: tuple[ast.FunctionDef | ast.AsyncFunctionDef, ...]
    tree: ast.Module


def read_sources(folders: Iterable[Path]) -> Iterator[SourceFile]:
    """Yield every Python file below the folders."""
    for path in sorted(path for folder in folders for path in folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        nodes = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
        functions = tuple(node for node in nodes if not node.name.startswith("__"))
        yield SourceFile(path, text.count("\n"), functions, tree)


def is_one_word(name: str) -> bool:
    """Whether a name, its leading underscores aside, is a single word."""
    return "_" not in name.strip("_")


def has_logic(tree: ast.Module) -> bool:
    """Whether a module does more than import, export names and document itself."""
    for node in tree.body:
        documents = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        imports = isinstance(node, ast.Import | ast.ImportFrom)
        checks_types = isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        exports = isinstance(node, ast.Assign) and all(
            isinstance(target, ast.Name) and target.id.startswith("__") for target in node.targets
        )
        if not (documents or imports or checks_types or exports):
            return True
    return False


def percentile(values: Sequence[int], share: float) -> int:
    """Return the value below which ``share`` of the values lie."""
    return sorted(values)[min(int(share * len(values)), len(values) - 1)]


def print_metrics(sources: Sequence[SourceFile]) -> None:
    """Print one line for each figure."""
    functions = [function for source in sources for function in source.functions]
    lengths = [(function.end_lineno or function.lineno) - function.lineno + 1 for function in functions]
    sizes = [source.lines for source in sources]
    short = sum(is_one_word(function.name) for function in functions)
    packages = [source for source in sources if source.path.name == "__init__.py"]
    thick = [source.path for source in packages if has_logic(source.tree)]
    print(f"files {len(sources)}, lines {sum(sizes)}, functions {len(functions)}")
    print(f"function names of one word {short / len(functions):.1%}")
    print(f"function lines: median {median(lengths):.0f}, p90 {percentile(lengths, 0.9)}, most {max(lengths)}")
    print(f"file lines: median {median(sizes):.0f}, p90 {percentile(sizes, 0.9)}, most {max(sizes)}")
    print(f"__init__.py with logic {len(thick)} of {len(packages)}")
    for path in thick:
        print(f"  {path.relative_to(ROOT)}")


def find_clones(sources: Iterable[SourceFile], least_lines: int = 10) -> list[list[str]]:
    """Return the places of runs of statements with the same logic, whatever their names and constants are."""
    places: dict[object, list[str]] = {}
    for source in sources:
        for body in _statement_lists(source.tree):
            for first, last in _shortest_runs(body, least_lines):
                place = f"{source.path.relative_to(ROOT)}:{body[first].lineno}-{body[last].end_lineno}"
                places.setdefault(_shape(body[first : last + 1]), []).append(place)
    return [found for found in places.values() if len(found) > 1]


def _statement_lists(tree: ast.Module) -> Iterator[list[ast.stmt]]:
    """Yield the statements of each block inside functions, without docstrings."""
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody") if not isinstance(node, ast.Module | ast.ClassDef) else ():
            block = getattr(node, name, None)
            if isinstance(block, list):
                yield [s for s in block if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]


def _shortest_runs(body: Sequence[ast.stmt], least_lines: int) -> Iterator[tuple[int, int]]:
    """Yield first and last of the shortest run of statements from each on that has so many lines."""
    for first, start in enumerate(body):
        for last in range(first, len(body)):
            if (body[last].end_lineno or 0) - start.lineno + 1 >= least_lines:
                yield first, last
                break


def _shape(node: object) -> object:
    """Return a syntax tree without names, constants, annotations and places."""
    if isinstance(node, ast.Name | ast.arg):
        return "name"
    if isinstance(node, ast.Constant):
        return type(node.value).__name__
    if isinstance(node, ast.AST):
        skipped = {"ctx", "annotation", "returns", "decorator_list", "name", "attr", "arg", "type_comment"}
        return type(node).__name__, *(_shape(value) for name, value in ast.iter_fields(node) if name not in skipped)
    return tuple(map(_shape, node)) if isinstance(node, list) else str(type(node))


def count_cycles(edges: Mapping[Path, Iterable[Path]]) -> int:
    """Return how many groups of files import each other, be it by way of others."""
    reached = {path: _reach(path, edges) for path in edges}
    groups = {frozenset(other for other in reached[path] if path in reached.get(other, ())) for path in edges}
    return len([group for group in groups if group])


def _reach(path: Path, edges: Mapping[Path, Iterable[Path]]) -> set[Path]:
    seen: set[Path] = set()
    stack = [*edges[path]]
    while stack:
        if (other := stack.pop()) not in seen:
            seen.add(other)
            stack += edges.get(other, ())
    return seen


def print_imports() -> None:
    """Print how many groups of files import each other, and how many imports lead to a room above or beside."""
    sys.path.insert(0, str(ROOT / "tests" / "project"))
    import test_layers as layers

    cycles = 0
    for root, paths in ((ROOT, layers.files()), (ROOT / "plugins", layers.plugin_files())):
        modules = layers.modules(root, paths)
        names = {path: [name for name, _ in layers.named(path, types=True)] for path in paths}
        cycles += count_cycles({path: layers.imported(names[path], modules) for path in paths})
    upward = [
        f"{layers.label(path)}:{line} imports {name}"
        for path in layers.files()
        for name, line in layers.named(path)
        if (room := layers.room_named(name)) not in (None, layers.room_of(path))
        and layers.HEIGHT[room] >= layers.HEIGHT[layers.room_of(path)]
        and not layers.within(name, layers.CONTRACT)
    ]
    print(f"cycles {cycles}, upward imports {len(upward)}", *upward, sep="\n  ")


#: Runs a command of gapwatch and writes down each function of this project when it is first called, in its children as
#: well: these end without a word, and what they ran through has to be on the disk by then.
_TRACED = """
import os, sys
root, sink, seen, depth = sys.argv.pop(1), os.open(sys.argv.pop(1), os.O_WRONLY | os.O_APPEND), set(), 0
own = tuple(os.path.join(root, name, "") for name in ("advisor", "gapwatch", "plugins"))
deepest = 0
def note(frame, event, _):
    global depth, deepest
    code = frame.f_code
    if event not in ("call", "return") or not code.co_filename.startswith(own):
        return
    depth += 1 if event == "call" else -1
    if code in seen and depth <= deepest:
        return
    seen.add(code)
    deepest = max(deepest, depth)
    os.write(sink, f"{code.co_filename}\\t{code.co_qualname}\\t{code.co_firstlineno}\\t{deepest}\\n".encode())
sys.setprofile(note)
from gapwatch import main
main()
"""


@dataclass(frozen=True, slots=True)
class RunCounts:
    """What a command runs through: modules that it loads, modules and functions that it calls, calls in each other."""

    loaded: int
    modules: int
    functions: int
    deepest: int


def count_run(*arguments: str) -> RunCounts:
    """Return how much of this project a command runs through, in its own process and in its children."""
    with tempfile.NamedTemporaryFile() as sink:
        command = [sys.executable, "-c", _TRACED, str(ROOT), sink.name, *arguments]
        subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
        rows = [row.split("\t") for row in Path(sink.name).read_text(encoding="utf-8").splitlines()]
    called = {(file, name, line) for file, name, line, _ in rows}
    return RunCounts(
        loaded=sum(name == "<module>" for _, name, _ in called),
        modules=len({file for file, name, _ in called if name != "<module>"}),
        functions=sum(not name.endswith(">") for _, name, _ in called),
        deepest=max(int(deepest) for *_, deepest in rows),
    )


def print_run(*arguments: str) -> None:
    """Print how many modules and functions of this project a command runs through, and how deep its calls are."""
    counts = count_run(*arguments)
    ran = f"{counts.modules} run through, {counts.functions} functions, {counts.deepest} deep"
    print(f"gapwatch {' '.join(arguments)}: {counts.loaded} modules loaded, {ran}")


def print_long(sources: Iterable[SourceFile], most_function: int = 60, most_file: int = 400) -> None:
    """Print the functions and files that are longer than they should be."""
    for source in sources:
        name = source.path.relative_to(ROOT)
        if source.lines > most_file:
            print(f"{name}: {source.lines} lines")
        for function in source.functions:
            if (lines := (function.end_lineno or function.lineno) - function.lineno + 1) > most_function:
                print(f"{name}:{function.lineno} {function.name}: {lines} lines")


if __name__ == "__main__":
    folders = [argument for argument in sys.argv[1:] if argument != "--limits"]
    read = list(read_sources([ROOT / name for name in folders or ("advisor", "plugins")]))
    print_metrics(read)
    clones = find_clones(read)
    print(f"clones of ten lines or more {len(clones)}", *map(", ".join, clones), sep="\n  ")
    print_imports()
    print_run("advise", "examples/demo")
    if "--limits" in sys.argv:
        print_long(read)
