"""SARIF of ten recorded runs of ten tools: valid by the official schema and by what GitHub states that it takes.

GitHub's limits: https://docs.github.com/en/code-security/code-scanning/integrating-with-code-scanning/sarif-support.
It was not uploaded to the host.
"""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import pytest
from command_line import ROOT
from jsonschema import Draft7Validator

from advisor.cli.entry import main

if TYPE_CHECKING:
    from pathlib import Path

PROFILES = ROOT / "tests" / "profiles"
CHECK = Draft7Validator(json.loads((ROOT / "tests" / "schemas" / "sarif-schema-2.1.0.json").read_text()))
RUNS = {
    "EZTrace": "otf2/eztrace-imbalance",
    "Score-P": "otf2/scorep-multiphase",
    "CUBE": "cube/faultlab-late4",
    "TAU": "tau/faultlab-imbalance30",
    "Caliper": "caliper/faultlab-imbalance30",
    "mpiP": "mpip/faultlab-imbalance30",
    "gprof": "gprof/faultlab-imbalance30",
    "Extrae": "paraver/faultlab-imbalance30",
    "Darshan": "darshan/faultlab-io256",
    "TALP": "talp/faultlab-imbalance30",
}
WITH_ADVICE = frozenset({"EZTrace", "Score-P", "TAU", "Caliper", "Extrae"})
#: What GitHub takes at most of a file (bytes, packed), of a run and of a rule; results it shows of one run.
MOST_BYTES, MOST_RESULTS, MOST_RULES, MOST_LOCATIONS, MOST_TAGS = 10_000_000, 25_000, 25_000, 1_000, 20


@pytest.mark.parametrize("tool", RUNS)
def test_the_host_takes_the_advice_on_a_recorded_run(tool: str, tmp_path: Path) -> None:
    if tool == "Darshan":
        pytest.importorskip("darshan", reason="the extra cluster, which reads Darshan's logs, is not installed")
    (tmp_path / "Makefile").write_text("all:\n", encoding="utf-8")
    file = tmp_path / "gapwatch.sarif"
    words = ["advise", str(PROFILES / RUNS[tool]), "--format", "sarif", "--source-root", str(tmp_path), "-o", str(file)]
    assert main(words) == 0
    log = json.loads(file.read_text(encoding="utf-8"))
    CHECK.validate(log)
    assert log["version"] == "2.1.0"
    assert len(gzip.compress(file.read_bytes())) < MOST_BYTES
    [run] = log["runs"]
    assert run["results"] or tool not in WITH_ADVICE, "an empty log passes every rule"
    rules = run["tool"]["driver"]["rules"]
    assert len(run["results"]) <= MOST_RESULTS
    assert len(rules) <= MOST_RULES
    assert run["automationDetails"]["id"].count("/") == 2, "the category, between the tool's name and the run's"
    for rule in rules:
        assert len(rule["properties"]["tags"]) <= MOST_TAGS
        assert rule["help"]["text"]
    for result in run["results"]:
        assert result["ruleId"] == rules[result["ruleIndex"]]["id"]
        assert result["level"] in {"note", "warning", "error"}
        assert result["message"]["text"]
        assert all(isinstance(value, str) for value in result["partialFingerprints"].values())
        assert 1 <= len(result["locations"]) <= MOST_LOCATIONS
        for location in result["locations"]:
            place = location["physicalLocation"]
            assert (tmp_path / place["artifactLocation"]["uri"]).is_file(), "it is a file of the checkout"
            assert place["region"]["startLine"] >= 1
