"""Work in child processes, with limits: whatever happens to one of them is the result of its task and nothing more.

A child is warm (it loads once what every task needs), runs in its own process group, is limited in memory, and is
watched from outside: a task that takes too long loses its child and everything the child started. Parent and child
exchange JSON documents in frames; nothing that a child sends is ever executed.
"""

from advisor.extension.sandbox.worker import Limits, TaskFailed, Worker

__all__ = ["Limits", "TaskFailed", "Worker"]
