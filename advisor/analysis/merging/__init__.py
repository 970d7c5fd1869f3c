"""Merge several tools' recordings of one run into one profile."""

from advisor.analysis.merging.recordings import merge_recordings
from advisor.analysis.merging.runs import describe_content, group_by_run

__all__ = ["describe_content", "group_by_run", "merge_recordings"]
