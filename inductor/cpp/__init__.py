"""C++ for the CPU: `loops` prints loop trees (start there) with `values` for operations.

`contractions` prints contractions as calls of a core: `gemm` and `conv` choose one, `*_core` print them. `prelude`, `vector_math` and
`random_bits` are the functions that generated code calls. `units` calls printed kernels and collects their texts into source files.
`transposes` finds the loops that run as transposes in vector registers.
"""
