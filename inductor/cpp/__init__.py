"""C++ for the CPU: `loops` prints loop trees (start there) with `values` for operations, `kernel` is the record of a printed kernel.

`contractions` prints contractions as calls of a core, which `gemm` chooses and `gemm_core` prints. `prelude`, `vector_math` and
`random_bits` are the functions that generated code calls, and `units` collects the texts into source files. `transposes` finds the loops
that run as transposes in vector registers.
"""
