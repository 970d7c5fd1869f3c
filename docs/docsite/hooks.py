"""What the code says of each hook: signature, docstring, where it is called, who implements it."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING

import advisor
from advisor.extension import hookspecs
from docsite import markdown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from advisor.extension.host import LoadedPlugin

PACKAGE = Path(advisor.__file__).parent


def names() -> tuple[str, ...]:
    """Return the names of all hooks, in the order of the contract."""
    return tuple(name for name, function in vars(hookspecs).items() if hasattr(function, "advisor_spec"))


def additions(plugins: Sequence[LoadedPlugin]) -> Mapping[str, str]:
    """Return what is added to the page of each hook, by its path below ``docs/``."""
    return {f"hooks/{name}.md": _addition(name, plugins) for name in names()}


def methods(hook: str) -> tuple[str, ...]:
    """Return the methods of ``Host`` that call a hook."""
    tree = ast.parse((PACKAGE / "extension" / "host" / "plugin_host.py").read_text(encoding="utf-8"))
    return tuple(
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and any(isinstance(inner, ast.Constant) and inner.value == hook for inner in ast.walk(node))
    )


def callers(hook: str) -> tuple[str, ...]:
    """Return the modules that call these methods, as paths in the repository."""
    call = re.compile(rf"\bhost\.({'|'.join(map(re.escape, methods(hook)))})\(|_host\.({'|'.join(methods(hook))})\(")
    found = (
        path.relative_to(PACKAGE.parent).as_posix()
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.parent.name != "host" and call.search(path.read_text(encoding="utf-8"))
    )
    return tuple(found)


def _addition(hook: str, plugins: Sequence[LoadedPlugin]) -> str:
    function = getattr(hookspecs, hook)
    lines = inspect.getsource(function).split('    """')[0].splitlines()
    signature = "\n".join(line for line in lines if not line.startswith("@"))
    by = ", ".join(f"`Host.{method}`" for method in methods(hook))
    where = ", ".join(map(markdown.code, callers(hook)))
    implementing = ", ".join(markdown.code(one.name) for one in plugins if hook in one.hooks)
    return "\n".join(
        (
            "\n## In the contract\n",
            markdown.block(signature, "python"),
            *(f"{paragraph}\n" for paragraph in (inspect.getdoc(function) or "").replace("``", "`").split("\n\n")),
            f"Called by {by} (`advisor/extension/host/plugin_host.py`), for {where}.\n",
            f"Of the plugins that come along these implement it: {implementing or 'none'}.\n",
        )
    )
