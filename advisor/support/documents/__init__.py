"""YAML documents into frozen dataclasses; every mistake with its place, all of them at once (``loading``)."""

from advisor.support.documents.field_types import Between, Marked, former_key
from advisor.support.documents.loading import FieldErrors, build_lists, load_document, load_list, load_lists, load_many
from advisor.support.documents.nodes import Mark
from advisor.support.documents.scalars import suggest_word

__all__ = [
    "Between",
    "FieldErrors",
    "Mark",
    "Marked",
    "build_lists",
    "former_key",
    "load_document",
    "load_list",
    "load_lists",
    "load_many",
    "suggest_word",
]
