"""Print what gapwatch is built and tested with as a CycloneDX 1.6 document: ``python tools/sbom.py``, or ``make sbom``.

Made of ``requirements/newest.txt``, which names the version of each package and the hashes of its files; so the same
versions give the same document. ``markers`` say on which systems and Pythons a package is needed.
"""

from __future__ import annotations

import json
import re
import uuid
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
_PACKAGE: Final = re.compile(r"^(?P<name>[\w.-]+)==(?P<version>[^\s;\\]+)(?:\s*;\s*(?P<marker>[^\\]+?))?\s*\\?$", re.M)
_HASH: Final = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def build_document(requirements: str, version: str) -> dict[str, Any]:
    """Return the document of a file of requirements with hashes, for a version of gapwatch."""
    found = list(_PACKAGE.finditer(requirements))
    ends = [one.start() for one in found[1:]] + [len(requirements)]
    components = [_describe_package(one, requirements[one.end() : end]) for one, end in zip(found, ends, strict=True)]
    own = {"type": "application", "bom-ref": "gapwatch", "name": "gapwatch", "version": version}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, version + requirements)}",
        "version": 1,
        "metadata": {"component": {**own, "licenses": [{"license": {"id": "BSD-3-Clause"}}]}},
        "components": components,
    }


def _describe_package(found: re.Match[str], rest: str) -> dict[str, Any]:
    name, version, marker = found["name"], found["version"], found["marker"]
    purl = f"pkg:pypi/{name.lower().replace('_', '-')}@{version}"
    made = {
        "type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl,
        "hashes": [{"alg": "SHA-256", "content": text} for text in _HASH.findall(rest)],
    }  # fmt: skip
    return made | ({"properties": [{"name": "markers", "value": marker}]} if marker else {})


if __name__ == "__main__":
    from advisor import __version__

    text = (ROOT / "requirements" / "newest.txt").read_text(encoding="utf-8")
    print(json.dumps(build_document(text, __version__), indent=1))
