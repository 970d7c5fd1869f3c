"""The project's own format ``gapwatch/profile/1``: JSON for small runs, NPZ for large ones (docs/formats/native.md).

``advisor_read`` is the inverse of ``native_writer.write_profile``; ``load_schema`` is the JSON Schema of the document.
"""

from advisor.formats.native.hooks import advisor_read, advisor_sniff, load_schema

__all__ = ["advisor_read", "advisor_sniff", "load_schema"]
