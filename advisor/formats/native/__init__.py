"""The project's own format ``gapwatch/profile/1``: JSON for small runs, NPZ for large ones (docs/formats/native.md).

``advisor_read`` and ``write_profile`` are each other's inverse; ``load_schema`` is the JSON Schema of the document.
"""

from advisor.formats.native.hooks import advisor_read, advisor_sniff, load_schema
from advisor.formats.native_writer import write_profile

__all__ = ["advisor_read", "advisor_sniff", "load_schema", "write_profile"]
