"""What an executable file tells: where its addresses stand in the source, how it was compiled, what its code does.

``addresses.resolve_addresses`` maps addresses to functions, lines and inlined frames. Below it, ``elf_files`` opens
the file, ``dwarf_units``, ``line_tables`` and ``inlined_frames`` decode its debug information, ``demangling`` makes
names readable.
"""
