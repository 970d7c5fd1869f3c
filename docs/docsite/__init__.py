"""The pages as a site: ``python -m docsite DIRECTORY`` (in ``docs/``) builds it, ``make docs`` as well.

Pages that follow from the code, the rules and the parsers are made here and lie nowhere else: a page for each rule,
fact, command, and what the code says of each hook, format and plugin beside what its author wrote in ``docs/``.
"""
