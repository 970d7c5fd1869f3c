"""What a program behaves like: parallel instructions on an oracle machine, and what is known of similar workloads."""

from advisor_similarity.hooks import advisor_api, advisor_commands, advisor_document, advisor_findings

__all__ = ["advisor_api", "advisor_commands", "advisor_document", "advisor_findings"]
