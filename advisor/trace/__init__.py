"""From the events of a trace to a Profile: events -> clocks -> calls -> waits -> phases -> profile.

Every trace reader fills a ``Trace`` (``events``) and hands it to ``profile.from_trace``; nothing in here
knows a file format.
"""
