"""What tests need of the system, and what is said where it lacks that."""

from __future__ import annotations

import shutil
import subprocess

import pytest


def needs(*command: str) -> None:
    """Skip where this system does not let a test do something."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"there is no {command[0]} here: apt-get install util-linux gcc")
    made = subprocess.run(command, capture_output=True, check=False)
    if made.returncode != 0:
        pytest.skip(f"this system refuses {' '.join(command)}: run the test as root, or allow user namespaces")
