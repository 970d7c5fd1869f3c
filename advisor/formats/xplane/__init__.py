"""XPlane recordings of JAX and TensorFlow (see ``docs/formats/xplane.md``)."""

from advisor.formats.xplane.hooks import advisor_read, advisor_sniff

__all__ = ["advisor_read", "advisor_sniff"]
