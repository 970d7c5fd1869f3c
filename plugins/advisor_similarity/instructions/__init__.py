"""From the bytes of an instruction to its steps on the oracle machine."""

from advisor_similarity.instructions.decoders import Decoder, make_decoder

__all__ = ["Decoder", "make_decoder"]
