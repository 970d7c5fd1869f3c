"""Whatever a plugin returns, the host gets something that is as promised, or a note that it is not."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from native_documents import PROFILES

from advisor.extension.hookspecs import hookimpl
from advisor.extension.host import LoadedPlugin, PluginHost, discovery
from advisor.formats import native
from advisor.model.records import Finding

FIGURE = native.advisor_read(PROFILES / "fig4.json")

numbers = st.integers() | st.floats() | st.booleans() | st.none()
findings = st.builds(
    Finding,
    *(st.text(max_size=5) | st.none() for _ in range(4)),
    st.dictionaries(st.text(max_size=5) | st.integers(), numbers, max_size=3) | numbers,
)
leaves = numbers | st.text(max_size=5) | findings | st.just(np.zeros(3)) | st.just(FIGURE) | st.just(Path("/"))
nonsense = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner, inner)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


class Plugin:
    """Answers every hook with the same value."""

    def __init__(self, answer: object) -> None:
        self.answer = answer

    @hookimpl
    def advisor_findings(self) -> object:
        return self.answer

    @hookimpl
    def advisor_expected_gain(self) -> object:
        return self.answer

    @hookimpl
    def advisor_facts(self) -> object:
        return self.answer

    @hookimpl
    def advisor_rules(self) -> object:
        return self.answer

    @hookimpl
    def advisor_sniff(self) -> object:
        return self.answer


HOOKS = tuple(name for name in dir(Plugin) if name.startswith("advisor_"))


def host_of(answer: object) -> PluginHost:
    manager = discovery.make_manager()
    manager.register(Plugin(answer), "odd")
    return PluginHost(manager, (LoadedPlugin("odd", "here", None, None, HOOKS),))


@settings(max_examples=300, deadline=None)
@given(nonsense)
def test_only_what_is_promised_gets_through(answer: object) -> None:
    host = host_of(answer)
    found = host.collect_findings(FIGURE, (), (), None, ())
    assert all(one.plugin == "odd" and type(one.text) is str for one in found)
    assert all(math.isfinite(value) for one in found for value in one.measures.values())
    assert all(isinstance(path, Path) and path.is_file() for path in host.rule_files())
    assert all(0 < sure <= 1 for _, sure in host.sniff_all(PROFILES / "fig4.json"))
    assert host.collect_facts() == ()
    if not isinstance(answer, list | tuple) or len(answer):
        assert host.problems


@settings(max_examples=200, deadline=None)
@given(st.tuples(numbers, numbers, numbers) | numbers)
def test_a_gain_is_a_number_inside_its_interval(answer: object) -> None:
    recommendation: Any = None
    host = host_of(answer)
    gain = host.expected_gain(FIGURE, recommendation, None)
    if gain is None:
        assert answer is None or host.problems
    else:
        assert gain[1] <= gain[0] <= gain[2]
        assert all(type(value) is float and math.isfinite(value) for value in gain)
