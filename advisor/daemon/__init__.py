"""The daemon: scan, settle, identify, read, remember.

A scan is the truth; events of the file system only start one earlier. Each file that is seen ends in exactly one state
of the ledger (``history.ledger``); whatever reads its content runs in a child process (``work``, ``sandbox``).
"""
