"""From the bytes of an instruction to its steps on the oracle machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from advisor.model.errors import UsageError
from advisor.support.extras import install_line

if TYPE_CHECKING:
    from advisor_similarity.steps import Template


class Decoder(Protocol):
    """Turns instructions of one architecture into templates."""

    def decode_instruction(self, code: bytes) -> Template:
        """Return what the instruction does; unknown ones give a template that is not ``known``."""


def make_decoder(architecture: str, follow_stack: bool = True) -> Decoder:
    """Return the decoder for ``x86_64`` or ``aarch64``.

    Without ``follow_stack`` the stack pointer is always available, as if every frame had its own.
    """
    try:
        if architecture == "x86_64":
            from advisor_similarity.instructions.x86 import X86Decoder

            return X86Decoder(follow_stack)
        if architecture == "aarch64":
            from advisor_similarity.instructions.arm64 import Arm64Decoder

            return Arm64Decoder(follow_stack)
    except ImportError as error:
        reason = f"the disassembler capstone is not installed: {install_line('processor')}"
        raise UsageError(reason) from error
    raise UsageError(f"programs for {architecture} can't be read: x86_64 and aarch64 can")
