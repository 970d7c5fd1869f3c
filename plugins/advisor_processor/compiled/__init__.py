"""What the compiler emitted, and how fast it can run at best: MAC and MACS from a binary.

Read in this order: ``executions`` (how often each instruction ran, by callgrind), ``binary`` (functions and lines),
``instructions`` and ``units`` (what each instruction reads, writes and occupies), ``loops``, ``throughput`` and
``chains`` (the two limits of a loop), ``schedule`` (both, over a whole function), ``mca`` and ``osaca`` (second
opinions).
"""
