"""Logs of CUDA's command-line profiler: sums of kernels, copies and the calls that issued them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from advisor.analysis import soundness
from advisor.formats import nsys
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.model.records import Profile

LOG = """# CUDA_PROFILE_LOG_VERSION 2.0
# CUDA_DEVICE 0 Tesla C2070
# CUDA_CONTEXT 1
# TIMESTAMPFACTOR fffff6faa0f3f368
method,gputime,cputime,occupancy
method=[ memcpyHtoD ] gputime=[ 1000.000 ] cputime=[ 1500.000 ]
method=[ _Z5sweepPfi ] gputime=[ 20000.000 ] cputime=[ 20.000 ] occupancy=[ 0.500 ]
method=[ _Z5sweepPfi ] gputime=[ 22000.000 ] cputime=[ 10.000 ] occupancy=[ 0.500 ]
method=[ memcpyDtoHasync ] gputime=[ 3000.000 ] cputime=[ 5.000 ]
"""
CSV = """# CUDA_PROFILE_LOG_VERSION 2.0
# CUDA_PROFILE_CSV 1
gpustarttimestamp,method,gputime,cputime,occupancy,streamid
131aa5a9ff2a4da0,memcpyHtoD,1000.0,1500.0
131aa5a9ff2a4db0,_Z5sweepPfi,42000.0,30.0,0.5,1
131aa5a9ff2a4dc0,memcpyDtoHasync,3000.0,5.0,,1
"""


def read(tmp_path: Path, text: str) -> Profile:
    path = tmp_path / "cuda_profile_0.log"
    path.write_text(text)
    assert nsys.advisor_sniff(path) == 0.9
    return nsys.advisor_read(path)


@pytest.mark.parametrize("text", [LOG, CSV])
def test_sums(tmp_path: Path, text: str) -> None:
    profile = read(tmp_path, text)
    soundness.check_profile(profile)
    names = [region.name for region in profile.regions]
    sums = {
        measure: dict(zip(names, profile.counts[measure].sum(axis=1).tolist(), strict=True))
        for measure in ("device_s", "runtime_call_s")
    }
    assert {name: value for name, value in sums["device_s"].items() if value} == pytest.approx(
        {"memcpyHtoD": 1e-3, "_Z5sweepPfi": 42e-3, "memcpyDtoHasync": 3e-3}
    )
    assert {name: value for name, value in sums["runtime_call_s"].items() if value} == pytest.approx(
        {"cudaMemcpy": 1.5e-3, "cudaLaunchKernel": 30e-6, "cudaMemcpyAsync": 5e-6}
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (LOG[:-30], r"line 9.*cut off"),
        (LOG.replace("gputime=[ 22000.000 ]", "gputime=[ -22 ]"), r"line 8.*impossible"),
        (LOG + LOG, r"line 10.*second log"),
        ("\n".join(LOG.splitlines()[:5]) + "\n", "no kernels"),
    ],
)
def test_damaged_logs_are_refused(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        read(tmp_path, text)
