"""How others extend gapwatch: ``hookspecs`` and ``commands`` are the published contract; the host calls the plugins.

``sandbox`` holds the child processes in which readers and plugins work for the daemon.
"""
