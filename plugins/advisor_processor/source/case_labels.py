"""Conditions under which the statements behind the labels of a ``switch`` run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from advisor_processor.source.declared_types import iterate_descendants, node_text

if TYPE_CHECKING:
    from tree_sitter import Node

    #: By where a label begins: the condition as an expression of C, None where only a run tells.
    Conditions = dict[int, str | None]

_LEAVING: Final = ("break_statement", "continue_statement", "return_statement", "goto_statement")


def list_case_conditions(switch: Node) -> Conditions:
    """Return the condition of each label: one of the labels from which control gets there."""
    subject = node_text(switch.child_by_field_name("condition"))
    body = switch.child_by_field_name("body")
    labels = [child for child in body.named_children if child.type == "case_statement"] if body is not None else []
    values = [node_text(label.child_by_field_name("value")) for label in labels]
    tests = [f"({subject}) == ({value})" for value in values if value]
    default = f"!({' || '.join(tests)})" if tests else "1"
    found: Conditions = {}
    reaching: list[str] | None = []
    for label, value in zip(labels, values, strict=True):
        if reaching is not None:
            reaching = [*reaching, f"({subject}) == ({value})" if value else default]
        found[label.start_byte] = None if reaching is None else " || ".join(reaching)
        last = label.named_children[-1] if label.named_children else None
        if last is not None and last.type in _LEAVING:
            reaching = []
        elif any(one.type in _LEAVING for one in iterate_descendants(label)):
            reaching = None
    return found
