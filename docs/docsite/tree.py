"""Everything that the site is made of, in one directory laid out like the repository, so that links are the same."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.advice.facts import VOCABULARY
from advisor.advice.rules import load_default
from advisor.cli.commands import COMMANDS
from advisor.extension import host as hosts
from docsite import commands, facts, hooks, markdown, plugins, rules

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
CODE = re.compile(r"^(`{3,}).*?^\1\s*$|`[^`\n]+`", re.DOTALL | re.MULTILINE)

#: The navigation: what stands under which heading, by paths from the root. Pages in folders stand under their index.
NAVIGATION = {
    "Begin": ("README <README>", "docs/install", "docs/tutorial", "docs/concepts", "docs/README"),
    "Use": (
        "docs/recording",
        "docs/deep",
        "docs/clusters",
        "docs/ci",
        "docs/monitoring",
        "docs/daemon",
        "docs/site",
        "docs/faults",
        "docs/commands",
        "docs/commands/index",
        "docs/tuning",
        "docs/api",
        "docs/agents",
        "docs/conversion",
        "docs/machines",
    ),
    "Formats": ("docs/formats", "docs/traces", "docs/devices"),
    "Advice": (
        "docs/rules",
        "docs/rules/index",
        "docs/facts",
        "docs/facts/index",
        "docs/computation",
        "docs/quality",
        "docs/validation",
        "docs/studies",
        "studies/README",
    ),
    "Plugins": ("docs/plugins", "plugins/README"),
    "Background": (
        "docs/glossary",
        "docs/design",
        "docs/decisions/README",
        "docs/dependencies",
        "docs/speed",
        "docs/scale",
        "examples/index",
    ),
    "Project": ("CONTRIBUTING", "CHANGELOG", "packaging/README"),
}
#: Pages whose folder of pages stands below them.
FOLDERS = {
    "docs/decisions/README.md": "docs/decisions",
    "docs/formats.md": "docs/formats",
    "CONTRIBUTING.md": "docs/how-to",
    "docs/plugins.md": "docs/hooks",
    "docs/validation.md": "docs/validation",
    "plugins/README.md": "docs/plugins",
}


def written() -> dict[str, str]:
    """Return the hand-written pages, by their paths from the root of the repository."""
    top = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
    folders = ("examples/*/README.md", "packaging/README.md", "plugins/README.md", "studies/README.md")
    patterns = (*top, "docs/*.md", "docs/*/*.md", *folders)
    found = [path for pattern in patterns for path in sorted(ROOT.glob(pattern))]
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in found}


def pages() -> dict[str, str]:
    """Return all pages of the site, hand-written and made, by their paths from its root."""
    host = hosts.load_plugins()
    if host.problems:
        raise RuntimeError("; ".join(host.problems))
    extra, brought = host.collect_facts(), host.collect_commands(tuple(COMMANDS))
    book = load_default(host.rule_files(), extra)
    origins = _origins(host)
    everything = written()
    below = {path.removeprefix("docs/"): text for path, text in everything.items() if path.startswith("docs/")}
    made = rules.pages(book) | facts.pages((*VOCABULARY, *extra), origins, book) | commands.pages(brought, below)
    added = {**hooks.additions(host.plugins), **plugins.additions(host.plugins, brought, origins)}
    everything |= {f"docs/{path}": text for path, text in made.items()}
    for path, text in added.items():
        everything[f"docs/{path}"] = everything[f"docs/{path}"].rstrip("\n") + "\n" + text
    for path, folder in FOLDERS.items():
        everything[path] += "\n" + markdown.contents(_below(path, folder, everything))
    everything["docs/plugins.md"] += "\n" + markdown.contents(["sample_plugin/README"])
    return everything | {"examples/index.md": _examples(everything), "index.md": _home()}


def copied(all_pages: dict[str, str]) -> dict[str, Path]:
    """Return the files that pages link to and that are no pages, by their paths from the root."""
    found: dict[str, Path] = {}
    for page, text in all_pages.items():
        for target in links(text):
            path = (ROOT / page).parent / target
            if path.is_file() and path.suffix != ".md":
                found[path.resolve().relative_to(ROOT).as_posix()] = path.resolve()
    return found


def links(text: str) -> Iterator[str]:
    """Yield the files that a page links to, as it names them."""
    yield from LINK.findall(CODE.sub("", text))


def write(folder: Path) -> None:
    """Write the tree into an empty ``folder``."""
    everything = pages()
    for path, text in everything.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    for path, source in copied(everything).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, folder / path)


def _origins(host: hosts.PluginHost) -> dict[str, str]:
    """Return the plugin of each fact that a plugin brings."""
    found: dict[str, str] = {}
    for plugin in host.plugins:
        if "advisor_facts" in plugin.hooks:
            others = [one.name for one in host.plugins if one.name != plugin.name]
            found |= {fact.name: plugin.name for fact in hosts.load_plugins(blocked=others).collect_facts()}
    return found


def _below(page: str, folder: str, everything: dict[str, str]) -> list[str]:
    """Return the pages of a folder, relative to the folder of ``page``."""
    up = "../" * (len(Path(page).parts) - 1)
    inside = sorted(
        path.removesuffix(".md") for path in everything if Path(path).parent.as_posix() == folder and path != page
    )
    return [f"{up}{path}" for path in inside]


def _examples(everything: dict[str, str]) -> str:
    names = [path for path in everything if path.startswith("examples/")]
    rows = [
        (markdown.link(everything[path].split("\n", 1)[0].removeprefix("# "), path.removeprefix("examples/")),
         markdown.code(str(Path(path).parent)))
        for path in names
    ]  # fmt: skip
    entries = (path.removeprefix("examples/").removesuffix(".md") for path in names)
    return markdown.page(
        "Examples", "Programs that come with gapwatch, to try and to learn from.\n",
        markdown.table(("what", "where"), rows), markdown.contents(entries),
    )  # fmt: skip


def _home() -> str:
    start = (
        "An optimization advisor for parallel programs. It computes lower bounds on the run time from a profile,\n"
        "attributes every second between two bounds to a cause, and ranks tuning actions by what they can save.\n"
    )
    ways = [
        ("[README](README.md)", "what it shows, and how to install it"),
        ("[Tutorial](docs/tutorial.md)", "from the first profile to the verified gain"),
        ("[Concepts](docs/concepts.md)", "what the screen says, what each bound and gap is"),
        ("[All pages](docs/README.md)", "which page answers which question"),
        ("[All rules](docs/rules/index.md)", "what can be advised, with code before and after"),
        ("[All commands](docs/commands/index.md)", "what each takes"),
    ]
    table = markdown.table(("page", "what it tells"), ways)
    return markdown.page("gapwatch", start, table, *(markdown.contents(p, c) for c, p in NAVIGATION.items()))
