"""YAML documents into frozen dataclasses; every mistake with its place, all of them at once (``loading``)."""

from advisor.support.documents.field_types import Between, Marked
from advisor.support.documents.loading import FieldErrors, lists, load, load_list, load_lists, load_many
from advisor.support.documents.nodes import Mark
from advisor.support.documents.scalars import suggestion

__all__ = [
    "Between",
    "FieldErrors",
    "Mark",
    "Marked",
    "lists",
    "load",
    "load_list",
    "load_lists",
    "load_many",
    "suggestion",
]
