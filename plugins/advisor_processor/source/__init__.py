"""Operations of the source: what an ideal compiler would have to emit (M, MA), by loop, with counts from a run.

Tree-sitter and not clang's syntax tree: one parser for C, C++ and Fortran, installed with pip, that needs no headers,
no MPI and no compile commands, and gives every node its bytes, which is what inserting counters takes. It knows no
types; ``types`` infers what is floating point from the declarations in the file.

Read in this order: ``records``, ``types``, ``operations`` (of expressions), ``structure`` (loops and blocks of a
file), ``instrument`` (the copy with counters), ``counting`` (building and running it), ``symbols`` (expressions in N).
"""
