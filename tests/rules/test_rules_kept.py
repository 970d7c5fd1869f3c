"""Rules that are kept as they were read: the same book, made anew whenever anything does not fit."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from zlib import crc32

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from advisor.advice import rules
from advisor.advice.facts import Fact
from advisor.advice.rules import rule_cache
from advisor.advice.rules import rule_loader as reading
from advisor.extension import host
from advisor.model.errors import DocumentError
from advisor.support.documents import yaml_nodes

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.advice.rules import RuleBook

ACTION = """
- id: site-1
  title: {title}
  step: 4
  issue: I-15
  targets: [L]
  when: {{all: [{{gap: L, share: '>= {share} %'}}, {{not: {{fact: run.has_openmp, is: true}}}}]}}
  applies_to: [mpi]
  effort: 2
  typical_fraction: 0.5
  change: {{schedule: dynamic}}
  why: Because.
  how: {{any: [{{text: Do it., language: c, before: a, after: b}}]}}
  sources: [somewhere]
  examples: [{{case: skewed-load, expect: fires, override: {{run.ranks: 4, L: 3 %}}}}]
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    forget()
    return tmp_path / "cache" / "gapwatch"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    path = tmp_path / "site.yaml"
    path.write_text(ACTION.format(title="Do something", share=2))
    return path


def forget() -> None:
    """Forget what this process has read, as a new one has read nothing."""
    reading._merge_files.cache_clear()
    reading.load_bundled_book.cache_clear()


def load(*files: Path, facts: tuple[Fact, ...] = ()) -> RuleBook:
    forget()
    return rules.load_default(files, facts, examples=False)


def unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_nodes, "read_yaml", lambda path: pytest.fail(f"{path} was read"))


def place(cache: Path) -> Path:
    (found,) = cache.glob("rules-*.json")
    return found


def test_all_rules_come_back_as_they_were(cache: Path) -> None:
    loaded = host.load_plugins()
    book = rules.load_default(loaded.rule_files(), loaded.collect_facts())
    assert any(action.examples for action in book.actions)
    back = rule_cache.from_plain(json.loads(json.dumps(rule_cache.to_plain(book))))
    assert back == book
    assert repr(back) == repr(book)
    kinds = {type(name) for action in book.actions for name in (action.step, action.issue, *action.targets)}
    assert kinds <= set(rule_cache.TYPES)


def test_what_is_kept_is_not_read_again(cache: Path, site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = load(site)
    unread(monkeypatch)
    again = load(site)
    assert again == first
    assert repr(again) == repr(first)
    assert again.find_action("site-1") is not None


def test_a_file_that_changed_is_read_again(cache: Path, site: Path) -> None:
    load(site)
    files = sorted(cache.glob("*"))
    site.write_text(ACTION.format(title="Do another thing", share=5))
    found = load(site).find_action("site-1")
    assert found is not None
    assert found.title == "Do another thing"
    assert sorted(cache.glob("*")) == files


def test_other_words_make_another_book(cache: Path, site: Path) -> None:
    site.write_text(site.read_text().replace("run.has_openmp, is: true", "run.moon, is: '>= 1'"))
    moon = Fact("run.moon", "count", "run", (), "look up", "the number of the moon")
    assert load(site, facts=(moon,)).find_action("site-1") is not None
    with pytest.raises(DocumentError, match=r"no such fact"):
        load(site)


def test_mistakes_are_said_each_time(cache: Path, site: Path) -> None:
    load()
    (bundled,) = cache.glob("*")
    site.write_text(ACTION.format(title="Do something", share="many"))
    for _ in range(2):
        with pytest.raises(DocumentError):
            load(site)
    assert list(cache.glob("*")) == [bundled]


def test_a_home_that_cannot_be_written_does_no_harm(
    tmp_path: Path, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert load(site) == load(site)


def test_examples_are_not_kept(cache: Path) -> None:
    forget()
    assert rules.load_default().actions[0].examples
    assert not cache.exists()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15)
@given(data=st.data())
def test_damage_is_noticed(cache: Path, data: st.DataObject) -> None:
    whole = load()
    file = place(cache)
    content = file.read_bytes()
    at = data.draw(st.integers(0, len(content) - 1))
    flipped = bytes([content[at] ^ 1 << data.draw(st.integers(0, 7))])
    damaged = data.draw(st.sampled_from([content[:at], content[:at] + flipped + content[at + 1 :]]))
    file.write_bytes(damaged)
    assert load() == whole
    assert file.read_bytes() == content


NO_BOOKS = (
    b"[99]", b"[2]", b"[2, 1, 2, 3, 4, 5, 6]", b"[]", b"{}", b"null", b"[[]]", b'["tuple"]', b"[0, 1]", b"[" * 9000
)  # fmt: skip


@pytest.mark.parametrize("body", NO_BOOKS, ids=range(len(NO_BOOKS)))
def test_what_is_no_book_is_not_taken_for_one(cache: Path, body: bytes) -> None:
    whole = load()
    head = place(cache).read_bytes().split(b"\n", 1)[0]
    place(cache).write_bytes(b"%b\n%d\n%b" % (head, crc32(body), body))
    assert load() == whole
