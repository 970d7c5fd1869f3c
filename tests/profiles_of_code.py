"""Profiles of programs that are a file: functions with their seconds, and the seconds in code of a kind."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from advisor.model.records import Phase, Processor, Profile, Region


def profile_of(names: tuple[str, ...], seconds: tuple[float, ...], **changed: object) -> Profile:
    arrays = {"cpu_s": np.array(seconds).reshape(-1, 1, 1), "wall_s": np.array(seconds).reshape(-1, 1, 1)}
    made = Profile(
        program="program",
        run="1",
        reader="perf",
        actual_s=sum(seconds),
        processors=(Processor(0),),
        regions=tuple(Region(name) for name in names),
        phases=(Phase("run", "whole", np.arange(len(names)), arrays),),
        status={"cpu_s": "estimated", "wall_s": "estimated"},
    )
    return replace(made, **changed)  # type: ignore[arg-type]


def seconds_of(profile: Profile, kind: str) -> list[float]:
    return [round(float(value), 6) for value in profile.counts[f"code.{kind}_s"][:, 0]]
